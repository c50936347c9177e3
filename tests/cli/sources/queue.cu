// One block fills a slot, the other waits for its flag.
#include <cuda/atomic>

__global__ void hand_over(int *slot, int *flag, int *out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 0) {
    *slot = 42;
    ready.store(1, cuda::memory_order_release);
  } else {
    while (ready.load(cuda::memory_order_acquire) == 0) {
    }
    *out = *slot;
  }
}
