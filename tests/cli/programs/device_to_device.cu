__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  int *a, *b;
  cudaMallocManaged(&a, 4 * sizeof(int));
  cudaMallocManaged(&b, 4 * sizeof(int));
  produce<<<1, 4>>>(a, 1);
  cudaMemcpy(b, a, 4 * sizeof(int), cudaMemcpyDeviceToDevice);
  cudaDeviceSynchronize();
  int got = b[0];
  return got == 1 ? 0 : 1;
}
