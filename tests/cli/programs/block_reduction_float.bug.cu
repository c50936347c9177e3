#include <cstdio>
#include <cuda_runtime.h>

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <typename T, int BLOCK, typename Op>
__device__ T block_reduce(T value, T *shared, Op op) {
  const int tid = threadIdx.x;
  shared[tid] = value;
  __syncthreads();
#pragma unroll
  for (int stride = BLOCK / 2; stride > 0; stride >>= 1) {
    if (tid < stride) shared[tid] = op(shared[tid], shared[tid + stride]);
    __syncthreads();
  }
  return shared[0];
}

template <typename T, int BLOCK>
__global__ void extremes(const T *in, T *sum, T *max, int n) {
  __shared__ T scratch[BLOCK];
  T value = T(0);
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
    value += in[i];
  T total = block_reduce<T, BLOCK>(value, scratch, Sum{});
  T largest = block_reduce<T, BLOCK>(value, scratch, Max{});
  if (threadIdx.x == 0) {
    sum[blockIdx.x] = total;
    max[blockIdx.x] = largest;
  }
}

int main(int argc, char **argv) {
  const int n = 4, blocks = 1;
  float *in, *sum, *max;
  cudaMallocManaged(&in, n * sizeof(float));
  cudaMallocManaged(&sum, blocks * sizeof(float));
  cudaMallocManaged(&max, blocks * sizeof(float));
  for (int i = 0; i < n; i++) in[i] = 0.5f * i;
  extremes<float, 2><<<blocks, 2>>>(in, sum, max, n);
  cudaError_t status = cudaDeviceSynchronize();
  if (status != cudaSuccess) {
    fprintf(stderr, "%s\n", cudaGetErrorString(status));
    return 1;
  }
  printf("%f %f\n", sum[0], max[0]);
  cudaFree(in);
  cudaFree(sum);
  cudaFree(max);
}
