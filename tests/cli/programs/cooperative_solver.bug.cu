// Iterates to a fixed point in one cooperative launch: the grid synchronises between steps.
#include <cooperative_groups.h>
#include <cstdio>

namespace cg = cooperative_groups;

__global__ void solve(float *x, float *y, float *error, int n, int steps) {
  cg::grid_group grid = cg::this_grid();
  const int i = grid.thread_rank();
  for (int t = 0; t < steps; ++t) {
    if (i < n) {
      float left = i > 0 ? x[i - 1] : 0.0f;
      float right = i + 1 < n ? x[i + 1] : 0.0f;
      y[i] = 0.5f * (left + right);
    }
    __syncthreads();
    if (i < n) {
      atomicAdd(error, fabsf(y[i] - x[i]));
    }
    float *z = x;
    x = y;
    y = z;
  }
}

int main() {
  int n = 4, steps = 2;
  float *x, *y, *error;
  cudaMalloc((void **)&x, n * sizeof(float));
  cudaMalloc((void **)&y, n * sizeof(float));
  cudaMallocManaged((void **)&error, sizeof(float));
  cudaMemset(x, 0, n * sizeof(float));
  *error = 0.0f;
  int device = 0, supported = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, device);
  if (!supported) {
    fprintf(stderr, "no cooperative launches\n");
    return 1;
  }
  void *args[] = {&x, &y, &error, &n, &steps};
  cudaLaunchCooperativeKernel((void *)solve, dim3(2), dim3(2), args, 0, 0);
  cudaDeviceSynchronize();
  printf("%f\n", *error);
  cudaFree(x);
  cudaFree(y);
  cudaFree(error);
  return 0;
}
