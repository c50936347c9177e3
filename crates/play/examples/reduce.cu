__global__ void block_sum(const int *in, int *out, int n) {
  __shared__ int s[64];
  int tid = threadIdx.x;
  int i = blockIdx.x * blockDim.x + tid;
  s[tid] = i < n ? in[i] : 0;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k /= 2) {
    if (tid < k) s[tid] += s[tid + k];
  }
  if (tid == 0) out[blockIdx.x] = s[0];
}
