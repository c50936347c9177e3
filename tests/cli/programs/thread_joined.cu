#include <thread>

__global__ void fill(int *out, int value) { out[threadIdx.x] = value; }

void worker(int *a) {
  fill<<<1, 2>>>(a, 1);
  cudaDeviceSynchronize();
}

int main() {
  int *a;
  cudaMallocManaged(&a, 2 * sizeof(int));
  std::thread t(worker, a);
  t.join();
  return a[0] == 1 ? 0 : 1;
}
