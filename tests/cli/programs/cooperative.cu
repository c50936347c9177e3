#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void relax(int *a, int *b, int rounds) {
  auto grid = cg::this_grid();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; r < rounds; ++r) {
    b[i] = a[(i + 1) % 4];
    grid.sync();
    a[i] = b[i] + 1;
    grid.sync();
  }
}

int main() {
  int *a, *b, rounds = 2;
  cudaMallocManaged(&a, 4 * sizeof(int));
  cudaMallocManaged(&b, 4 * sizeof(int));
  for (int i = 0; i < 4; ++i) a[i] = i;
  void *arguments[] = {&a, &b, &rounds};
  cudaLaunchCooperativeKernel((void *)relax, 2, 2, arguments, 0, 0);
  cudaDeviceSynchronize();
  return a[0];
}
