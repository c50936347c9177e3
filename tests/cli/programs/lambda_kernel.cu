#include <cstdio>

template <typename F>
__global__ void for_each(int n, F f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) f(i);
}

int main() {
  const int n = 8;
  int *squares, host[n], step = 2;
  cudaMalloc(&squares, n * sizeof(int));
  for_each<<<2, 4>>>(n, [=] __device__ (int i) { squares[i] = step * i * i; });
  for_each<<<1, n>>>(n, [=] __device__ (int i) {
    squares[i] += step;
  });
  cudaMemcpy(host, squares, n * sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d\n", host[3]);
  cudaFree(squares);
}
