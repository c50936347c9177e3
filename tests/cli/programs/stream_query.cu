__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  int *a;
  cudaMallocManaged(&a, 4 * sizeof(int));
  cudaStream_t s;
  cudaStreamCreate(&s);
  produce<<<1, 4, 0, s>>>(a, 7);
  int early = 0;
  if (cudaStreamQuery(s) == cudaSuccess) early = a[0];
  cudaStreamSynchronize(s);
  return early + a[1];
}
