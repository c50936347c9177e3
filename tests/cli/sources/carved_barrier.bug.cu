// The threads arrive at the barrier and do not wait.
// fencepost: exchange<<<1, 4, 40>>>(out[4])
#include <cuda/barrier>

using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void exchange(int *out) {
  extern __shared__ char pool[];
  int *value = (int *)pool;
  Barrier *all = reinterpret_cast<Barrier *>(pool + 32);
  int t = threadIdx.x;
  if (t == 0) init(all, blockDim.x);
  __syncthreads();
  value[t] = t;
  (void)all->arrive();
  out[t] = value[3 - t];
}
