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
  cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice);
  h[0] = 5;
  consume<<<1, 4>>>(d, out);
  cudaDeviceSynchronize();
}
