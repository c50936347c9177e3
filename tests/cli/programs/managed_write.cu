__global__ void sum(const int *a, int *out) {
  int all = 0;
  for (int i = 0; i < 4; ++i) all += a[i];
  *out = all;
}

int main() {
  int *a, *out;
  cudaMallocManaged(&a, 4 * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 4; ++i) a[i] = round + i;
    sum<<<1, 1>>>(a, out);
    cudaDeviceSynchronize();
  }
  return *out;
}
