__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

int main() {
  int *a;
  cudaMalloc(&a, 4 * sizeof(int));
  cudaEvent_t e;
  cudaEventCreate(&e);
  produce<<<1, 4>>>(a, 0);
  cudaEventRecord(e);
  cudaEventDestroy(e);
  cudaEventSynchronize(e);
}
