__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  int *a;
  cudaMallocManaged(&a, 4 * sizeof(int));
  cudaStream_t s, t;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  produce<<<1, 4, 0, s>>>(a, 1);
  cudaStreamSynchronize(t);
  int got = a[2];
  return got == 3 ? 0 : 1;
}
