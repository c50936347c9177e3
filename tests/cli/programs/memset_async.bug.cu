__global__ void count(int *bins, const int *in) {
  atomicAdd(&bins[in[threadIdx.x] & 1], 1);
}

int main() {
  int *bins, *in;
  cudaMalloc(&bins, 2 * sizeof(int));
  cudaMalloc(&in, 4 * sizeof(int));
  cudaStream_t s, t;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  cudaMemsetAsync(in, 0, 4 * sizeof(int), s);
  cudaMemsetAsync(bins, 0, 2 * sizeof(int), t);
  count<<<1, 4, 0, s>>>(bins, in);
  cudaDeviceSynchronize();
}
