// The host hands work to a kernel that runs, through managed memory and a flag of system scope.
#include <cuda/atomic>
#include <cstdio>

using flag_t = cuda::atomic<int, cuda::thread_scope_system>;

__global__ void worker(int *data, flag_t *ready, flag_t *done) {
  while (ready->load(cuda::memory_order_acquire) == 0) {
  }
  data[1] = data[0] + 1;
  done->store(1, cuda::memory_order_release);
}

int main() {
  int *data;
  flag_t *ready, *done;
  cudaMallocManaged(&data, 2 * sizeof(int));
  cudaMallocManaged(&ready, sizeof(flag_t));
  cudaMallocManaged(&done, sizeof(flag_t));
  new (ready) flag_t(0);
  new (done) flag_t(0);
  worker<<<1, 1>>>(data, ready, done);
  data[0] = 41;
  ready->store(1, cuda::memory_order_relaxed);
  while (done->load(cuda::memory_order_acquire) == 0) {
  }
  printf("%d\n", data[1]);
  cudaDeviceSynchronize();
  cudaFree(data);
  return 0;
}
