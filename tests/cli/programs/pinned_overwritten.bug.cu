__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  int *h, *d;
  cudaHostAlloc(&h, 4 * sizeof(int), cudaHostAllocDefault);
  cudaMalloc(&d, 4 * sizeof(int));
  for (int i = 0; i < 4; ++i) h[i] = i;
  cudaStream_t s;
  cudaStreamCreate(&s);
  cudaEvent_t copied;
  cudaEventCreate(&copied);
  cudaMemcpyAsync(d, h, 4 * sizeof(int), cudaMemcpyHostToDevice, s);
  cudaEventRecord(copied, s);
  for (int i = 0; i < 4; ++i) h[i] = 10 + i;
  consume<<<1, 4, 0, s>>>(d, d);
  cudaStreamSynchronize(s);
}
