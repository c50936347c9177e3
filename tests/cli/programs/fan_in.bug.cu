__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

#include <vector>

int main() {
  const int workers = 2;
  std::vector<cudaStream_t> streams(workers);
  std::vector<cudaEvent_t> done(workers);
  int *parts, *out;
  cudaMalloc(&parts, 2 * workers * sizeof(int));
  cudaMalloc(&out, 2 * workers * sizeof(int));
  for (int i = 0; i < workers; ++i) {
    cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming);
    produce<<<1, 2, 0, streams[i]>>>(parts + 2 * i, i);
    cudaEventRecord(done[i], streams[i]);
  }
  cudaStream_t last;
  cudaStreamCreateWithFlags(&last, cudaStreamNonBlocking);
  for (int i = 0; i + 1 < workers; ++i) cudaStreamWaitEvent(last, done[i], 0);
  consume<<<1, 2 * workers, 0, last>>>(parts, out);
  cudaDeviceSynchronize();
}
