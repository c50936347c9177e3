__global__ void fill(int *out, int value) { out[threadIdx.x] = value; }

int main() {
  int *a;
  cudaStream_t s, t;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  cudaMallocAsync(&a, 4 * sizeof(int), s);
  fill<<<1, 4, 0, s>>>(a, 1);
  cudaFreeAsync(a, s);
  fill<<<1, 4, 0, s>>>(a, 2);
  cudaStreamSynchronize(s);
}
