#include <cstdio>

__global__ void fill(int *a, int v) { a[threadIdx.x] = v; }

int main() {
  int *d;
  cudaMalloc(&d, 2 * sizeof(int));
  cudaStream_t s;
  cudaStreamCreate(&s);
  for (int i = 0; i < 2; ++i) {
    int part[2];
    fill<<<1, 2, 0, s>>>(d, i);
    cudaMemcpyAsync(part, d, sizeof(part), cudaMemcpyDeviceToHost, s);
  }
  cudaDeviceSynchronize();
}
