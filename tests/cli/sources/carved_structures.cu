// An array of dynamic shared memory holds counts, and pairs behind them.
// fencepost: fold<<<1, 4, 48>>>(out[4])
struct Pair {
  int key;
  short weight[2];
};

__global__ void fold(int *out) {
  extern __shared__ char pool[];
  int *count = reinterpret_cast<int *>(pool);
  Pair *pair = (Pair *)(pool + blockDim.x * sizeof(int));
  int t = threadIdx.x;
  count[t] = t;
  pair[t].key = t;
  pair[t].weight[0] = 2;
  pair[t].weight[1] = 3;
  __syncthreads();
  Pair *other = &pair[3 - t];
  out[t] = other->key + other->weight[0] * other->weight[1] + count[3 - t];
}
