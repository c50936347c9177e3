#include <cassert>
#include <cuda.h>

__global__ void both(int *a, int *b, int *out) {
  *a = 1;
  asm volatile("fence.proxy.alias;" ::: "memory");
  *out = *b;
}

int main() {
  size_t size = 64;
  CUdeviceptr first, second;
  CUmemGenericAllocationHandle handle;
  CUmemAllocationProp prop = {};
  CUmemAccessDesc access = {};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  cuMemCreate(&handle, size, &prop, 0);
  cuMemAddressReserve(&first, size, 0, 0, 0);
  cuMemAddressReserve(&second, size, 0, 0, 0);
  cuMemMap(first, size, 0, handle, 0);
  cuMemMap(second, size, 0, handle, 0);
  cuMemSetAccess(first, size, &access, 1);
  cuMemSetAccess(second, size, &access, 1);
  int *a = (int *)first, *b = (int *)second, *out;
  cudaMallocManaged(&out, sizeof(int));
  both<<<1, 1>>>(a, b, out);
  cudaDeviceSynchronize();
  assert(*out == 1);
}
