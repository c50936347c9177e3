// A product of square matrices, tile by tile.
const int TILE = 2;

__global__ void product(const int *a, const int *b, int *c, int n) {
  __shared__ int as[2][2], bs[2][2];
  int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  int sum = 0;
  for (int t = 0; t < n / TILE; t++) {
    as[threadIdx.y][threadIdx.x] = a[row * n + t * TILE + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(t * TILE + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < TILE; k++) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
  }
  c[row * n + column] = sum;
}
