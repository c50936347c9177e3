// One thread waits at another barrier than the others.
// fencepost: shift<<<1, 4>>>(a[4], 3)
__global__ void shift(int *a, int n) {
  __shared__ int s[4];
  int tid = threadIdx.x;
  if (tid < n) {
    s[tid] = a[tid];
    __syncthreads();
    a[tid] = s[(tid + 1) % n];
  } else {
    __syncthreads();
  }
}
