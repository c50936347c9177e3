#include <thread>

__global__ void fill(int *out, int value) { out[threadIdx.x] = value; }

void worker(int *a, cudaStream_t s) {
  fill<<<1, 2, 0, s>>>(a, 1);
  cudaStreamSynchronize(s);
}

int main() {
  int *a;
  cudaMalloc(&a, 2 * sizeof(int));
  cudaStream_t s;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  std::thread t(worker, a, s);
  cudaFree(a);
  t.join();
}
