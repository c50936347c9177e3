__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  int *a, *b;
  cudaStream_t s, t;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  cudaMallocAsync(&a, 4 * sizeof(int), s);
  cudaMallocAsync(&b, 4 * sizeof(int), s);
  produce<<<1, 4, 0, s>>>(a, 0);
  consume<<<1, 4, 0, s>>>(a, b);
  cudaFreeAsync(a, s);
  cudaFreeAsync(b, s);
  cudaDeviceSynchronize();
}
