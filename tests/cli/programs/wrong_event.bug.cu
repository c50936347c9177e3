__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  int *a;
  float ms;
  cudaMallocManaged(&a, 4 * sizeof(int));
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  cudaEventRecord(start);
  produce<<<1, 4>>>(a, 1);
  cudaEventRecord(stop);
  cudaEventSynchronize(start);
  cudaEventElapsedTime(&ms, start, stop);
  int got = a[2];
  return got == 3 ? 0 : 1;
}
