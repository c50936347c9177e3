__global__ void answer(int *p) { *p = 42; }

int main() {
  int *h, *d;
  cudaHostAlloc(&h, sizeof(int), cudaHostAllocMapped);
  cudaHostGetDevicePointer(&d, h, 0);
  *h = 0;
  answer<<<1, 1>>>(d);
  int got = *h;
  cudaFreeHost(h);
  return got == 42 ? 0 : 1;
}
