// One array of dynamic shared memory has three views: counts, numbers behind them, and flags.
// fencepost: reverse<<<1, 4, 64>>>(out[4])
extern __shared__ unsigned char pool[];

__global__ void reverse(float *out) {
  int *count = reinterpret_cast<int *>(pool);
  float *number = (float *)(pool + blockDim.x * sizeof(int));
  unsigned char *flag = (unsigned char *)(number + blockDim.x);
  int t = threadIdx.x;
  count[t] = t;
  number[t] = 1.5f;
  flag[t] = 1;
  __syncthreads();
  out[t] = flag[3 - t] ? number[3 - t] : count[3 - t];
}
