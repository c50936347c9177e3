// Transposes a matrix through a tile in shared memory.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                            \
  do {                                                                         \
    cudaError_t err = (call);                                                  \
    if (err != cudaSuccess) {                                                  \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,                       \
              cudaGetErrorString(err));                                        \
      exit(EXIT_FAILURE);                                                      \
    }                                                                          \
  } while (0)

constexpr int TILE = 2;
constexpr int ROWS = 1;

__global__ void transpose(float *out, const float *in, int width, int height) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS)
    tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS)
    out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

int main() {
  const int width = 4, height = 2;
  const size_t bytes = width * height * sizeof(float);
  std::vector<float> in(width * height), out(width * height);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);

  float *d_in = nullptr, *d_out = nullptr;
  CHECK(cudaMalloc(&d_in, bytes));
  CHECK(cudaMalloc(&d_out, bytes));
  CHECK(cudaMemcpy(d_in, in.data(), bytes, cudaMemcpyHostToDevice));
  dim3 block(TILE, ROWS);
  dim3 grid(width / TILE, height / TILE);
  transpose<<<grid, block>>>(d_out, d_in, width, height);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      if (out[x * height + y] != in[y * width + x]) {
        printf("wrong at %d, %d\n", x, y);
        return EXIT_FAILURE;
      }
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  puts("ok");
  return 0;
}
