__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  int *h, *d;
  cudaMallocHost(&h, 4 * sizeof(int));
  cudaMalloc(&d, 4 * sizeof(int));
  cudaStream_t s;
  cudaStreamCreate(&s);
  produce<<<1, 4, 0, s>>>(d, 0);
  cudaMemcpyAsync(h, d, 4 * sizeof(int), cudaMemcpyDeviceToHost, s);
  cudaStreamSynchronize(s);
  cudaFreeHost(h);
  cudaFree(d);
}
