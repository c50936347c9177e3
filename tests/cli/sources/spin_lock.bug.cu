// A lock for each update of a sum.
#include <cuda/atomic>

__global__ void locked(int *lock, int *sum) {
  cuda::atomic_ref<int, cuda::thread_scope_device> l(*lock);
  if (threadIdx.x == 0) {
    while (l.exchange(1, cuda::memory_order_acquire) != 0) {
    }
    *sum += 1;
  }
}
