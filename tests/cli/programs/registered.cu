#include <cstdio>
#include <cstdlib>

__global__ void fill(int *data) { data[threadIdx.x] = threadIdx.x; }

int main() {
  int *host = (int *)malloc(4 * sizeof(int)), *mapped;
  cudaHostRegister(host, 4 * sizeof(int), cudaHostRegisterMapped);
  cudaHostGetDevicePointer((void **)&mapped, host, 0);
  fill<<<1, 4>>>(mapped);
  cudaDeviceSynchronize();
  printf("%d\n", host[3]);
  cudaHostUnregister(host);
  free(host);
}
