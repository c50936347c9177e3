#include <cstdio>
#include <stop_token>
#include <thread>

__global__ void fill(int *data) { *data = 7; }

int main() {
  int *data;
  cudaMallocManaged(&data, sizeof(int));
  std::jthread worker([=](std::stop_token token) {
    std::stop_callback report(token, [=] { printf("%d\n", *data); });
    while (!token.stop_requested()) {}
  });
  fill<<<1, 1>>>(data);
  cudaDeviceSynchronize();
  worker.request_stop();
  worker.join();
  cudaFree(data);
}
