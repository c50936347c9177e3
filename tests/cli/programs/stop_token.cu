#include <atomic>
#include <cstdio>
#include <thread>

__global__ void fill(int *data) { *data = 7; }

int main() {
  int *data;
  cudaMallocManaged(&data, sizeof(int));
  std::jthread watcher([=](std::stop_token token) {
    while (!token.stop_requested()) {}
    printf("%d\n", *data);
  });
  fill<<<1, 1>>>(data);
  cudaDeviceSynchronize();
  watcher.request_stop();
  watcher.join();
  cudaFree(data);
}
