__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  int h[4] = {1, 2, 3, 4};
  int *d, *out;
  cudaMalloc(&d, sizeof(h));
  cudaMalloc(&out, sizeof(h));
  cudaStream_t s;
  cudaStreamCreate(&s);
  cudaMemcpyAsync(d, h, sizeof(h), cudaMemcpyHostToDevice, s);
  consume<<<1, 4, 0, s>>>(d, out);
  cudaStreamSynchronize(s);
  h[0] = 5;
  cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice);
  cudaDeviceSynchronize();
}
