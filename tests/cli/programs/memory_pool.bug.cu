#include <cstdlib>

__global__ void add(int *data, int n) {
  int i = threadIdx.x;
  if (i < n) data[i] += 1;
}

int main() {
  const int n = 4;
  cudaMemPool_t pool;
  cudaDeviceGetDefaultMemPool(&pool, 0);
  unsigned long long threshold = ~0ull;
  cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
  cudaStream_t *streams = (cudaStream_t *)malloc(2 * sizeof(cudaStream_t));
  for (int i = 0; i < 2; ++i) cudaStreamCreate(&(streams[i]));
  cudaEvent_t done;
  cudaEventCreate(&done);
  int *data;
  cudaMallocFromPoolAsync(&data, n * sizeof(int), pool, streams[0]);
  cudaMemsetAsync(data, 0, n * sizeof(int), streams[0]);
  cudaEventRecord(done, streams[0]);
  add<<<1, n, 0, streams[1]>>>(data, n);
  cudaDeviceSynchronize();
  cudaFreeAsync(data, streams[0]);
  cudaDeviceSynchronize();
  for (int i = 0; i < 2; ++i) cudaStreamDestroy(streams[i]);
  free(streams);
}
