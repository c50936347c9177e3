// Sums a grid by shuffles: each warp, then each block, then the last block the sums of all blocks.
__device__ unsigned int arrived = 0;

__device__ int warp_sum(int v) {
  for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(0xffffffff, v, k);
  return v;
}

__global__ void sum(const int *in, volatile int *sums, int *total, int n) {
  __shared__ bool last;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = warp_sum(i < n ? in[i] : 0);
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = v;
    __threadfence();
    last = atomicInc(&arrived, gridDim.x) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last) {
    v = warp_sum(threadIdx.x < gridDim.x ? sums[threadIdx.x] : 0);
    if (threadIdx.x == 0) *total = v;
  }
}
