#include <atomic>
#include <cstdio>
#include <thread>

__global__ void fill(int *data) { *data = 7; }

int main() {
  std::atomic<int> ready{0};
  std::atomic<int> seen = 0;
  int *data;
  cudaMallocManaged(&data, sizeof(int));
  std::thread reader([&] {
    while (ready.load(std::memory_order_acquire) == 0) {}
    printf("%d\n", *data);
    ++seen;
  });
  fill<<<1, 1>>>(data);
  cudaDeviceSynchronize();
  ready.store(1, std::memory_order_relaxed);
  reader.join();
  printf("%d\n", seen.load());
  cudaFree(data);
}
