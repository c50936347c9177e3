#include <thread>

__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

void worker(int *a) {
  cudaStream_t s;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  produce<<<1, 2, 0, s>>>(a, 1);
  cudaStreamSynchronize(s);
  cudaStreamDestroy(s);
}

int main() {
  int *a;
  cudaMallocManaged(&a, 2 * sizeof(int));
  std::thread t(worker, a);
  int got = a[0];
  t.join();
  return got == 1 ? 0 : 1;
}
