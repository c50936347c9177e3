__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

#include <vector>

int main() {
  std::vector<int> h(4, 1);
  int *d, *out;
  cudaMalloc(&d, h.size() * sizeof(int));
  cudaMalloc(&out, h.size() * sizeof(int));
  cudaStream_t s;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  cudaMemcpy(d, h.data(), h.size() * sizeof(int), cudaMemcpyHostToDevice);
  consume<<<1, 4, 0, s>>>(d, out);
  cudaStreamSynchronize(s);
}
