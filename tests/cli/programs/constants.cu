#include <cstdio>
#include "params.cuh"

__constant__ float weights[3];
__device__ int overflow;

__global__ void convolve(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int k = -1; k <= 1; ++k) {
    int j = clamped(i + k, n);
    sum += weights[k + 1] * in[j];
  }
  if (i < n) out[i] = sum;
  if (sum > LIMIT) atomicExch(&overflow, 1);
}

int main() {
  const int n = 4;
  float h_weights[3] = {0.25f, 0.5f, 0.25f};
  float h[n] = {1, 2, 3, 4};
  float *in, *out;
  int flag = 0;
  cudaMalloc(&in, sizeof(h));
  cudaMalloc(&out, sizeof(h));
  cudaMemcpyToSymbol(weights, h_weights, sizeof(h_weights));
  cudaMemcpyToSymbol(overflow, &flag, sizeof(int));
  cudaMemcpy(in, h, sizeof(h), cudaMemcpyHostToDevice);
  convolve<<<2, 2>>>(in, out, n);
  cudaMemcpy(h, out, sizeof(h), cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(&flag, overflow, sizeof(flag));
  printf("%f %d\n", h[0], flag);
}
