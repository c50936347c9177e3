#include <cstdio>

__global__ void scale(float *m, size_t pitch, int width, int height, float f) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) m[y * (pitch / sizeof(float)) + x] *= f;
}

int main() {
  const int width = 3, height = 2;
  float h[height * width];
  for (int i = 0; i < width * height; ++i) h[i] = i;
  float *m;
  size_t pitch;
  cudaStream_t s;
  cudaStreamCreate(&s);
  cudaMallocPitch(&m, &pitch, width * sizeof(float), height);
  const size_t row = width * sizeof(float);
  cudaMemcpy2D(m, pitch, h, row, row, height, cudaMemcpyHostToDevice);
  dim3 block(2, 2), grid;
  grid.x = (width + block.x - 1) / block.x;
  grid.y = (height + block.y - 1) / block.y;
  scale<<<grid, block, 0, s>>>(m, pitch, width, height, 2.0f);
  cudaMemcpy2DAsync(h, row, m, pitch, row, height, cudaMemcpyDeviceToHost, s);
  printf("%f\n", h[5]);
  cudaFree(m);
}
