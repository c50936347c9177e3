__global__ void fill(int *out, int value) { out[threadIdx.x] = value; }

int main() {
  int *a;
  cudaMalloc(&a, 4 * sizeof(int));
  fill<<<1, 4>>>(a, 1);
  cudaDeviceSynchronize();
  cudaFree(a);
  cudaFree(a);
}
