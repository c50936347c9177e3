#include <cstdio>

__global__ void scale(int *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = 3 * a[i];
}

int main() {
  const int n = 8, streams = 2, chunk = n / streams;
  int *h, *d;
  cudaMallocHost(&h, n * sizeof(int));
  cudaMalloc(&d, n * sizeof(int));
  for (int i = 0; i < n; ++i) h[i] = i;
  cudaStream_t s[streams];
  for (auto &stream : s) cudaStreamCreate(&stream);
  for (int i = 0; i < streams; ++i) {
    int first = i * chunk;
    cudaMemcpyAsync(d + first, h + first, chunk * sizeof(int), cudaMemcpyHostToDevice, s[i]);
    scale<<<chunk / 2, 2, 0, s[i]>>>(d + first, chunk);
    cudaMemcpyAsync(h + first, d + first, chunk * sizeof(int), cudaMemcpyDeviceToHost, s[i]);
  }
  cudaDeviceSynchronize();
  for (int i = 0; i < n; ++i)
    if (h[i] != 3 * i) printf("%d is wrong\n", i);
}
