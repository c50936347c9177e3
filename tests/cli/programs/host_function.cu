__global__ void produce(int *out, int first) {
  out[threadIdx.x] = first + threadIdx.x;
}

__global__ void consume(const int *in, int *out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

struct Unused;

void CUDART_CB add(void *data) {
  int *h = (int *)data;
  h[0] = h[0] + h[1];
}

int main() {
  int *h, *d;
  cudaMallocHost(&h, 4 * sizeof(int));
  cudaMalloc(&d, 4 * sizeof(int));
  cudaStream_t s;
  cudaStreamCreate(&s);
  produce<<<1, 4, 0, s>>>(d, 1);
  cudaMemcpyAsync(h, d, 4 * sizeof(int), cudaMemcpyDeviceToHost, s);
  cudaLaunchHostFunc(s, add, h);
  cudaStreamSynchronize(s);
  int total = h[0];
  return total == 3 ? 0 : 1;
}
