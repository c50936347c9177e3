#include <thread>

__global__ void increment(int *a) { a[threadIdx.x] += 1; }

int main() {
  int *a;
  cudaMalloc(&a, 2 * sizeof(int));
  cudaMemset(a, 0, 2 * sizeof(int));
  cudaDeviceSynchronize();
  cudaStream_t s, t;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
  std::thread first([=] { increment<<<1, 2, 0, s>>>(a); });
  std::thread second([=] { increment<<<1, 2, 0, s>>>(a); });
  first.join();
  second.join();
  cudaDeviceSynchronize();
}
