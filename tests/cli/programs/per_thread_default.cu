#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include <thread>

__global__ void increment(int *a) { a[threadIdx.x] += 1; }

void work(int *a) { increment<<<1, 2>>>(a); }

int main() {
  int *a, *b;
  cudaMallocManaged(&a, 2 * sizeof(int));
  cudaMallocManaged(&b, 2 * sizeof(int));
  a[0] = a[1] = b[0] = b[1] = 0;
  std::thread first(work, a);
  std::thread second(work, b);
  first.join();
  second.join();
  cudaDeviceSynchronize();
  return a[0] + b[0];
}
