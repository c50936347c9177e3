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

__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  const int n = 4;
  int *h, *d;
  CHECK(cudaMallocHost(&h, n * sizeof(int)));
  CHECK(cudaMalloc((void **)&d, n * sizeof(int)));
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  produce<<<1, n, 0, s>>>(d, 1);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpyAsync(h, d, n * sizeof(int), cudaMemcpyDeviceToHost, s));
  int sum = 0;
  for (int i = 0; i < n; i++) sum += h[i];
  printf("%d\n", sum);
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(d));
  CHECK(cudaFreeHost(h));
  return 0;
}
