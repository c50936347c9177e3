// A blur of a texture by tiles; the coordinates are of floating point.
enum class Border { Keep, Zero };

__global__ void blur(float *out, int width, cudaTextureObject_t image, Border border) {
  __shared__ float tile[8];
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = tex2D<float>(image, x + 0.5f, 0.5f) + tex2D<float4>(image, x + 1.5f, 0.5f).x;
  __syncthreads();
  float left = threadIdx.x > 0 ? tile[threadIdx.x - 1] : border == Border::Zero ? 0.0f : tile[0];
  if (x < width) out[x] = 0.5f * (left + tile[threadIdx.x]);
}
