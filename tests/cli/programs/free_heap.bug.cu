#include <cstdlib>

__global__ void produce(int *out) { out[threadIdx.x] = threadIdx.x; }

void fetch(const int *d, cudaStream_t s) {
  int *h = (int *)malloc(4 * sizeof(int));
  cudaMemcpyAsync(h, d, 4 * sizeof(int), cudaMemcpyDeviceToHost, s);
  free(h);
}

int main() {
  int *d;
  cudaMalloc(&d, 4 * sizeof(int));
  cudaStream_t s;
  cudaStreamCreate(&s);
  produce<<<1, 4, 0, s>>>(d);
  fetch(d, s);
  cudaDeviceSynchronize();
}
