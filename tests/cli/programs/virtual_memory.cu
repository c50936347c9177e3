#include <cstdio>
#include <cuda.h>

__global__ void fill(int *data) { data[threadIdx.x] = threadIdx.x; }
__global__ void add(int *data, int *out) { *out = data[0] + data[1]; }

int main() {
  size_t size = 64;
  CUdeviceptr address;
  CUmemGenericAllocationHandle handle;
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  cuMemAddressReserve(&address, size, 0, 0, 0);
  cuMemCreate(&handle, size, &prop, 0);
  cuMemMap(address, size, 0, handle, 0);
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  cuMemSetAccess(address, size, &access, 1);
  int *data = (int *)address, *out;
  cudaMallocManaged(&out, sizeof(int));
  fill<<<1, 2>>>(data);
  add<<<1, 1>>>(data, out);
  cudaDeviceSynchronize();
  printf("%d\n", *out);
  cuMemUnmap(address, size);
  cuMemRelease(handle);
  cuMemAddressFree(address, size);
  cudaFree(out);
}
