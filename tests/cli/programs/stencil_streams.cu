// Jacobi steps on two halves of a line, each in its stream; events hand the halo over.
#include <cstdio>
#include <utility>

__global__ void step(const float *from, float *to, int first, int count, int n) {
  int i = first + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < first + count && i > 0 && i < n - 1) to[i] = 0.5f * (from[i - 1] + from[i + 1]);
}

int main() {
  const int n = 8, half = n / 2, steps = 3;
  float *a, *b;
  float host[n];
  for (int i = 0; i < n; ++i) host[i] = i == 0 ? 1.0f : 0.0f;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMemcpy(a, host, sizeof(host), cudaMemcpyHostToDevice);
  cudaMemcpy(b, host, sizeof(host), cudaMemcpyHostToDevice);
  cudaStream_t stream[2];
  cudaEvent_t done[2];
  for (int s = 0; s < 2; ++s) {
    cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done[s], cudaEventDisableTiming);
  }
  cudaDeviceSynchronize();
  for (int t = 0; t < steps; ++t) {
    for (int s = 0; s < 2; ++s) {
      step<<<1, half, 0, stream[s]>>>(a, b, s * half, half, n);
      cudaEventRecord(done[s], stream[s]);
    }
    for (int s = 0; s < 2; ++s) cudaStreamWaitEvent(stream[s], done[1 - s], 0);
    std::swap(a, b);
  }
  for (auto &s : stream) cudaStreamSynchronize(s);
  cudaMemcpy(host, a, sizeof(host), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i) printf("%g ", host[i]);
  for (int s = 0; s < 2; ++s) {
    cudaEventDestroy(done[s]);
    cudaStreamDestroy(stream[s]);
  }
  cudaFree(a);
  cudaFree(b);
}
