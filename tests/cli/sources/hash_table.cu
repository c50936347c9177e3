// Keys go into an open table by compare-and-swap; the thread that wins a slot writes its value.
// fencepost: insert<<<1, 4>>>(slots[4] = 0, values[4] = 0, keys[4] = {1, 5, 2, 6}, 4)
__global__ void insert(int *slots, int *values, const int *keys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int key = keys[i];
  int at = key & 3;
  for (int tries = 0; tries < 4; tries++) {
    int old = atomicCAS(&slots[at], 0, key);
    if (old == 0) {
      values[at] = i;
      return;
    }
    at = (at + 1) & 3;
  }
}
