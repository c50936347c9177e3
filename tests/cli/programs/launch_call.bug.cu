__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

int main() {
  int *a, *h;
  int first = 5;
  cudaMalloc(&a, 4 * sizeof(int));
  cudaMallocHost(&h, 4 * sizeof(int));
  cudaStream_t s;
  cudaStreamCreate(&s);
  void *arguments[] = {&a, &first};
  cudaLaunchKernel((void *)produce, dim3(1), dim3(4), arguments, 0, s);
  cudaMemcpyAsync(h, a, 4 * sizeof(int), cudaMemcpyDeviceToHost, cudaStreamPerThread);
  cudaStreamSynchronize(s);
  return h[0] - 5;
}
