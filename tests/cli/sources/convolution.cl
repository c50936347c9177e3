// A convolution with a tile and its borders in local memory.
__kernel void convolve(__global const int *in, __global int *out, __local int *tile, int n) {
  int i = get_global_id(0), l = get_local_id(0), size = get_local_size(0);
  tile[l + 1] = i < n ? in[i] : 0;
  if (l == 0) tile[0] = i > 0 ? in[i - 1] : 0;
  if (l == size - 1) tile[size + 1] = i + 1 < n ? in[i + 1] : 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i < n) out[i] = tile[l] + 2 * tile[l + 1] + tile[l + 2];
}
