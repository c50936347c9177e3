__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  const int rounds = 3;
  int *buffer[2], *out;
  cudaStream_t fill, drain;
  cudaEvent_t filled[2], drained[2];
  cudaStreamCreateWithFlags(&fill, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&drain, cudaStreamNonBlocking);
  cudaMalloc(&out, 2 * sizeof(int));
  for (int i = 0; i < 2; ++i) {
    cudaMalloc(&buffer[i], 2 * sizeof(int));
    cudaEventCreate(&filled[i]);
    cudaEventCreate(&drained[i]);
  }
  for (int round = 0; round < rounds; ++round) {
    int at = round % 2;
    produce<<<1, 2, 0, fill>>>(buffer[at], round);
    cudaEventRecord(filled[at], fill);
    cudaStreamWaitEvent(drain, filled[at], 0);
    consume<<<1, 2, 0, drain>>>(buffer[at], out);
    cudaEventRecord(drained[at], drain);
  }
  cudaDeviceSynchronize();
}
