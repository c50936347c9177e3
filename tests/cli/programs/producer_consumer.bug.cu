// One warp copies tiles into a ring of two, the others compute: split barriers hand tiles over.
#include <cuda/barrier>
#include <cuda_runtime.h>
#include <utility>

using barrier_t = cuda::barrier<cuda::thread_scope_block>;
#define STAGES 2
#define TILE 1

__device__ void producer(barrier_t ready[], barrier_t filled[], int *ring, const int *in,
                         int tiles) {
  for (int i = 0; i < tiles; ++i) {
    (void)ready[i % STAGES].arrive();
    ring[(i % STAGES) * TILE + threadIdx.x % TILE] = in[i * TILE + threadIdx.x % TILE];
    barrier_t::arrival_token token = filled[i % STAGES].arrive();
    (void)token;
  }
}

__device__ void consumer(barrier_t ready[], barrier_t filled[], int *ring, int *out, int tiles) {
  (void)ready[0].arrive();
  (void)ready[1].arrive();
  for (int i = 0; i < tiles; ++i) {
    filled[i % STAGES].arrive_and_wait();
    out[i * TILE + threadIdx.x % TILE] = ring[(i % STAGES) * TILE + (threadIdx.x + 1) % TILE] * 2;
    (void)ready[i % STAGES].arrive();
  }
}

__global__ void pipeline(const int *in, int *out, int tiles) {
  __shared__ int ring[STAGES * TILE];
  __shared__ barrier_t bar[2 * STAGES];
  if (threadIdx.x == 0)
    for (int i = 0; i < 2 * STAGES; ++i) init(bar + i, blockDim.x);
  __syncthreads();
  if (threadIdx.x < TILE)
    producer(bar, bar + STAGES, ring, in, tiles);
  else
    consumer(bar, bar + STAGES, ring, out, tiles);
}

int main() {
  const int tiles = 3, n = tiles * TILE;
  int *in, *out;
  cudaMallocManaged(&in, n * sizeof(int));
  cudaMallocManaged(&out, n * sizeof(int));
  for (int i = 0; i < n; ++i) in[i] = i;
  pipeline<<<1, 2 * TILE>>>(in, out, tiles);
  cudaDeviceSynchronize();
  for (int i = 0; i < n; ++i)
    if (out[i] != 2 * in[i / TILE * TILE + (i + 1) % TILE]) return 1;
  cudaFree(in);
  cudaFree(out);
  return 0;
}
