// The last block to finish adds up what all blocks found.
__device__ unsigned int arrived = 0;

__global__ void sum(volatile int *partial, int *total) {
  __shared__ bool last;
  partial[blockIdx.x] = blockIdx.x + 1;
  last = atomicInc(&arrived, gridDim.x) == gridDim.x - 1;
  if (last) {
    __threadfence();
    int all = 0;
    for (int i = 0; i < gridDim.x; i++) all += partial[i];
    *total = all;
  }
}
