template <typename T, int BLOCK>
__global__ void rotate(T *a) {
  __shared__ T s[BLOCK];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = s[(threadIdx.x + 1) % BLOCK];
}

template <typename T>
__global__ void shift(T *a, T by) { a[threadIdx.x] += by; }

int main() {
  const int block = 4;
  int *a;
  cudaMallocManaged(&a, block * sizeof(int));
  for (int i = 0; i < block; ++i) a[i] = i;
  rotate<int, block><<<1, block>>>(a);
  shift<<<1, block>>>(a, 1);
  cudaDeviceSynchronize();
  int got = a[0];
  return got == 2 ? 0 : 1;
}
