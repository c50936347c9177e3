__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  int *a;
  cudaMallocManaged(&a, 4 * sizeof(int));
  cudaEvent_t done;
  cudaEventCreate(&done);
  produce<<<1, 4>>>(a, 7);
  cudaEventRecord(done);
  cudaEventQuery(done);
  int got = a[0];
  return got == 7 ? 0 : 1;
}
