__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  int *a, *b;
  cudaMalloc(&a, 4 * sizeof(int));
  cudaMalloc(&b, 4 * sizeof(int));
  cudaStream_t s, t;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  cudaEvent_t done;
  cudaEventCreate(&done);
  cudaEventRecord(done, s);
  produce<<<1, 4, 0, s>>>(a, 0);
  cudaStreamWaitEvent(t, done, 0);
  consume<<<1, 4, 0, t>>>(a, b);
  cudaStreamSynchronize(t);
  cudaEventDestroy(done);
}
