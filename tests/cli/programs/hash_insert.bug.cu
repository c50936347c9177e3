// A hash table with open addressing: a slot is claimed with a compare-and-swap on its key.
#include <cstdio>
#include <cstdint>
#include <vector>

constexpr uint32_t EMPTY = 0xffffffffu;
constexpr uint32_t CAPACITY = 4;

struct Slot {
  uint32_t key;
  uint32_t value;
};

__device__ uint32_t hash(uint32_t k) {
  k ^= k >> 16;
  k *= 0x85ebca6b;
  return k & (CAPACITY - 1);
}

__global__ void insert(Slot *table, const uint32_t *keys, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint32_t key = keys[i];
  for (uint32_t at = hash(key);; at = (at + 1) & (CAPACITY - 1)) {
    uint32_t seen = atomicCAS(&table[at].key, EMPTY, key);
    if (seen == EMPTY || seen == key) {
      table[at].value += 1u;
      return;
    }
  }
}

__global__ void count(const Slot *table, uint32_t *total) {
  if (table[threadIdx.x].key != EMPTY) atomicAdd(total, table[threadIdx.x].value);
}

int main() {
  const uint32_t n = 3;
  std::vector<uint32_t> keys = {1, 5, 1};
  uint32_t *d_keys, *total;
  Slot *table;
  cudaMalloc(&table, CAPACITY * sizeof(Slot));
  cudaMalloc(&d_keys, n * sizeof(uint32_t));
  cudaMallocManaged(&total, sizeof(uint32_t));
  *total = 0;
  Slot empty[CAPACITY];
  for (auto &slot : empty) slot = {EMPTY, 0};
  cudaMemcpy(table, empty, sizeof(empty), cudaMemcpyHostToDevice);
  cudaMemcpy(d_keys, keys.data(), n * sizeof(uint32_t), cudaMemcpyHostToDevice);
  insert<<<1, 4>>>(table, d_keys, n);
  count<<<1, CAPACITY>>>(table, total);
  cudaDeviceSynchronize();
  printf("%u\n", *total);
}
