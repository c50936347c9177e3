__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  int *a, *b, *c;
  cudaMalloc(&a, 4 * sizeof(int));
  cudaMalloc(&b, 4 * sizeof(int));
  cudaMalloc(&c, 4 * sizeof(int));
  cudaStream_t s, t, u;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&u, cudaStreamNonBlocking);
  cudaEvent_t e;
  cudaEventCreate(&e);
  produce<<<1, 4, 0, s>>>(a, 0);
  cudaEventRecord(e, s);
  cudaStreamWaitEvent(u, e, 0);
  produce<<<1, 4, 0, t>>>(b, 0);
  cudaEventRecord(e, t);
  cudaStreamWaitEvent(u, e, 0);
  consume<<<1, 4, 0, u>>>(a, c);
  consume<<<1, 4, 0, u>>>(b, c);
  cudaDeviceSynchronize();
}
