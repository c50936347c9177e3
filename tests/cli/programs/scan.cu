#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                              \
  do {                                                           \
    cudaError_t status = (call);                                 \
    if (status != cudaSuccess) {                                 \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,         \
              cudaGetErrorString(status));                       \
      exit(EXIT_FAILURE);                                        \
    }                                                            \
  } while (0)

__global__ void scan_blocks(int *a, int *sums, int n) {
  __shared__ int s[4];
  int t = threadIdx.x, i = blockIdx.x * 4 + t;
  s[t] = i < n ? a[i] : 0;
  __syncthreads();
  for (int step = 1; step < 4; step *= 2) {
    int left = t >= step ? s[t - step] : 0;
    __syncthreads();
    s[t] += left;
    __syncthreads();
  }
  if (i < n) a[i] = s[t];
  if (t == 3) sums[blockIdx.x] = s[t];
}

__global__ void scan_sums(int *sums, int blocks) {
  for (int b = 1; b < blocks; ++b) sums[b] += sums[b - 1];
}

__global__ void add_sums(int *a, const int *sums, int n) {
  int i = (blockIdx.x + 1) * 4 + threadIdx.x;
  if (i < n) a[i] += sums[blockIdx.x];
}

void scan(int *a, int *sums, int n, cudaStream_t first, cudaStream_t last) {
  int blocks = (n + 3) / 4;
  scan_blocks<<<blocks, 4, 0, first>>>(a, sums, n);
  CHECK(cudaGetLastError());
  scan_sums<<<1, 1, 0, first>>>(sums, blocks);
  add_sums<<<blocks - 1, 4, 0, last>>>(a, sums, n);
}

int main() {
  const int n = 8;
  int *a, *sums, h[n];
  CHECK(cudaMalloc(&a, n * sizeof(int)));
  CHECK(cudaMalloc(&sums, 2 * sizeof(int)));
  for (int i = 0; i < n; ++i) h[i] = 1;
  CHECK(cudaMemcpy(a, h, n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());
  cudaStream_t s, t;
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaStreamCreate(&t));
  scan(a, sums, n, s, s);
  CHECK(cudaStreamSynchronize(s));
  CHECK(cudaMemcpy(h, a, n * sizeof(int), cudaMemcpyDeviceToHost));
  return h[n - 1] == n ? 0 : 1;
}
