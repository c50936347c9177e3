__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  int *a;
  cudaStream_t s, t;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  cudaEvent_t allocated;
  cudaEventCreate(&allocated);
  cudaMallocAsync(&a, 4 * sizeof(int), s);
  cudaEventRecord(allocated, s);
  produce<<<1, 4, 0, t>>>(a, 0);
  cudaDeviceSynchronize();
  cudaFree(a);
}
