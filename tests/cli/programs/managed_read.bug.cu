#include <cstdio>

__global__ void square(int *a) { a[threadIdx.x] *= a[threadIdx.x]; }

int main() {
  int *a;
  cudaMallocManaged(&a, 4 * sizeof(int));
  for (int i = 0; i < 4; ++i) a[i] = i;
  square<<<1, 4>>>(a);
  printf("%d\n", a[3]);
  cudaFree(a);
}
