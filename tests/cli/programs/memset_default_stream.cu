__global__ void increment(int *a) { a[threadIdx.x] += 1; }

int main() {
  int *a;
  cudaMalloc(&a, 4 * sizeof(int));
  cudaStream_t s;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  cudaMemset(a, 0, 4 * sizeof(int));
  cudaStreamSynchronize(0);
  increment<<<1, 4, 0, s>>>(a);
  cudaStreamSynchronize(s);
}
