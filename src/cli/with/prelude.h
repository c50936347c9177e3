/* The words of CUDA C++ and OpenCL C that compile without headers of a toolkit. */
#ifdef __CUDA__
#include <__clang_cuda_builtin_vars.h>
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
static __device__ __forceinline__ void fencepost_barrier() { __nvvm_bar_sync(0); }
#define __syncthreads fencepost_barrier
static __device__ __forceinline__ void __threadfence() { __nvvm_membar_gl(); }
static __device__ __forceinline__ void __threadfence_block() { __nvvm_membar_cta(); }
static __device__ __forceinline__ void __threadfence_system() { __nvvm_membar_sys(); }
static __device__ __forceinline__ int atomicAdd(int *p, int v) { return __nvvm_atom_add_gen_i(p, v); }
static __device__ __forceinline__ unsigned atomicAdd(unsigned *p, unsigned v) {
  return __nvvm_atom_add_gen_i((int *)p, (int)v);
}
static __device__ __forceinline__ float atomicAdd(float *p, float v) { return __nvvm_atom_add_gen_f(p, v); }
static __device__ __forceinline__ int atomicExch(int *p, int v) { return __nvvm_atom_xchg_gen_i(p, v); }
static __device__ __forceinline__ int atomicCAS(int *p, int c, int v) { return __nvvm_atom_cas_gen_i(p, c, v); }
static __device__ __forceinline__ int atomicMax(int *p, int v) { return __nvvm_atom_max_gen_i(p, v); }
static __device__ __forceinline__ int atomicMin(int *p, int v) { return __nvvm_atom_min_gen_i(p, v); }
#else
#define FENCEPOST_AXIS(d, of) \
  ((d) == 0 ? __nvvm_read_ptx_sreg_##of##_x() : (d) == 1 ? __nvvm_read_ptx_sreg_##of##_y() : __nvvm_read_ptx_sreg_##of##_z())
#define get_local_id(d) ((size_t)FENCEPOST_AXIS(d, tid))
#define get_group_id(d) ((size_t)FENCEPOST_AXIS(d, ctaid))
#define get_local_size(d) ((size_t)FENCEPOST_AXIS(d, ntid))
#define get_num_groups(d) ((size_t)FENCEPOST_AXIS(d, nctaid))
#define get_global_id(d) (get_group_id(d) * get_local_size(d) + get_local_id(d))
#define get_global_size(d) (get_num_groups(d) * get_local_size(d))
#define barrier(flags) __nvvm_bar_sync(0)
#endif
