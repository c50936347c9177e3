// Threads beyond the end leave after the last barrier.
__global__ void shift(int *a, int n) {
  __shared__ int s[4];
  int tid = threadIdx.x;
  if (tid < n) s[tid] = a[tid];
  __syncthreads();
  if (tid < n) a[tid] = s[(tid + 1) % n];
}
