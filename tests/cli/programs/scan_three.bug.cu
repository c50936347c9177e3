#include <cstdio>
#include <cuda_runtime.h>

// A scan over three kernels: blocks, their sums, and the sums added back.
template <int BLOCK>
__global__ void scan_blocks(const int *__restrict__ in, int *__restrict__ out,
                            int *__restrict__ sums, int n) {
  __shared__ int buffer[2][BLOCK];
  const unsigned tid = threadIdx.x;
  const int i = blockIdx.x * BLOCK + tid;
  int now = 0;
  buffer[now][tid] = i < n ? in[i] : 0;
  __syncthreads();
  for (int offset = 1; offset < BLOCK; offset *= 2) {
    int v = buffer[now][tid];
    if (tid >= offset) v += buffer[now][tid - offset];

    buffer[now][tid] = v;
    __syncthreads();
  }
  if (i < n) out[i] = buffer[now][tid];
  if (sums != nullptr && tid == BLOCK - 1) sums[blockIdx.x] = buffer[now][tid];
}

__global__ void add_sums(int *out, const int *sums, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x > 0 && i < n) out[i] += sums[blockIdx.x - 1];
}

struct Timer {
  cudaEvent_t begin, end;
};

static void scan(const int *in, int *out, int *sums, int *scanned, int n, cudaStream_t stream) {
  constexpr int block = 4;
  const int blocks = (n + block - 1) / block;
  scan_blocks<block><<<blocks, block, 0, stream>>>(in, out, sums, n);
  scan_blocks<block><<<1, block, 0, stream>>>(sums, scanned, nullptr, blocks);
  add_sums<<<blocks, block, 0, stream>>>(out, scanned, n);
}

int main() {
  constexpr int n = 8;
  int *h_in = (int *)malloc(n * sizeof(int));
  int *h_out = (int *)malloc(n * sizeof(int));
  for (int i = 0; i < n; i++) h_in[i] = 1;
  int *in, *out, *sums, *scanned;
  cudaMalloc(&in, n * sizeof(int));
  cudaMalloc(&out, n * sizeof(int));
  cudaMalloc(&sums, 4 * sizeof(int));
  cudaMalloc(&scanned, 4 * sizeof(int));
  Timer timer;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaEventCreate(&timer.begin);
  cudaEventCreate(&timer.end);
  cudaMemcpyAsync(in, h_in, n * sizeof(int), cudaMemcpyHostToDevice, stream);
  cudaEventRecord(timer.begin, stream);
  scan(in, out, sums, scanned, n, stream);
  cudaEventRecord(timer.end, stream);
  cudaMemcpyAsync(h_out, out, n * sizeof(int), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  float ms;
  cudaEventElapsedTime(&ms, timer.begin, timer.end);
  int expected = 0;
  for (int i = 0; i < n; i++) {
    expected += h_in[i];
    if (h_out[i] != expected) printf("wrong at %d\n", i);
  }
  printf("%f ms\n", ms);
  free(h_in);
  free(h_out);
}
