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
  const int flags = cudaStreamDefault;
  cudaStream_t s, t;
  cudaStreamCreateWithFlags(&s, flags);
  cudaStreamCreateWithFlags(&t, flags);
  produce<<<1, 4, 0, s>>>(a, 0);
  produce<<<1, 4>>>(b, 0);
  consume<<<1, 4, 0, t>>>(a, b);
  cudaDeviceSynchronize();
}
