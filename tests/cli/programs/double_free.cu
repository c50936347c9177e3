__global__ void fill(int *out, int value) { out[threadIdx.x] = value; }

int main() {
  int *a, *b;
  cudaMalloc(&a, 4 * sizeof(int));
  cudaMalloc(&b, 4 * sizeof(int));
  fill<<<1, 4>>>(a, 1);
  fill<<<1, 4>>>(b, 1);
  cudaFree(a);
  cudaFree(b);
}
