// An inclusive scan of a block, with two buffers.
__global__ void scan(const int *in, int *out) {
  __shared__ int s[2][8];
  int tid = threadIdx.x;
  int from = 0;
  s[0][tid] = in[tid];
  __syncthreads();
  for (int step = 1; step < blockDim.x; step *= 2) {
    int to = 1 - from;
    s[to][tid] = tid >= step ? s[from][tid] + s[from][tid - step] : s[from][tid];
    __syncthreads();
    from = to;
  }
  out[tid] = s[from][tid];
}
