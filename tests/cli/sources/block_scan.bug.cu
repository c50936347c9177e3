// An inclusive scan of a block, in place.
__global__ void scan(const int *in, int *out) {
  __shared__ int s[8];
  int tid = threadIdx.x;
  s[tid] = in[tid];
  __syncthreads();
  for (int step = 1; step < blockDim.x; step *= 2) {
    if (tid >= step) s[tid] += s[tid - step];
    __syncthreads();
  }
  out[tid] = s[tid];
}
