//! Kernels at 1,024 threads by 65,536 blocks and for every launch: proved, and refuted with one
//! barrier dropped.
#![cfg(feature = "z3")]

mod common;

use common::{asked_within, kernel, never, races, without};
use parametric::{KernelLimits, KernelProperty, KernelVerdict, Proved};

/// A launch of 65,536 blocks of 1,024 threads.
const LARGE: &str = "grid = 65536\nblock = 1024";

/// A kernel of CUDA C++ as a file.
fn cuda(memory: &str, launch: &str, code: &str) -> String {
    kernel("cuda", memory, launch, code)
}

/// The kernel as it is proved, and without its barrier number `nth` refuted.
fn both(memory: &str, kernel: &str, code: &str, nth: usize) {
    never(&cuda(memory, kernel, code), false, Proved::EveryContent);
    let dropped = without(code, "__syncthreads();", nth);
    races(&cuda(memory, kernel, &dropped), false);
}

const REDUCTION: &str = "__shared__ int s[1024];
int t = threadIdx.x;
int i = blockIdx.x * blockDim.x + t;
s[t] = a[i];
__syncthreads();
for (int d = blockDim.x / 2; d > 0; d /= 2) {
  if (t < d) s[t] += s[t + d];
  __syncthreads();
}
if (t == 0) r[blockIdx.x] = s[0];";

#[test]
fn reduction() {
    let memory = "a = { type = \"int\", size = 67108864 }\nr = { type = \"int\", size = 65536 }";
    both(memory, LARGE, REDUCTION, 1);
    both(memory, LARGE, REDUCTION, 0);
}

#[test]
fn reduction_for_every_launch() {
    let memory = "a = { type = \"int\", size = 64 }\nr = { type = \"int\", size = 64 }";
    never(
        &cuda(memory, "block = 4", REDUCTION),
        true,
        Proved::EveryLaunch,
    );
}

#[test]
fn interleaved_reduction() {
    let code = "__shared__ int s[1024];
int t = threadIdx.x;
s[t] = a[blockIdx.x * blockDim.x + t];
__syncthreads();
for (int d = 1; d < blockDim.x; d *= 2) {
  int at = 2 * d * t;
  if (at + d < blockDim.x) s[at] += s[at + d];
  __syncthreads();
}
if (t == 0) r[blockIdx.x] = s[0];";
    let memory = "a = { type = \"int\", size = 67108864 }\nr = { type = \"int\", size = 65536 }";
    both(memory, LARGE, code, 1);
}

#[test]
fn transpose() {
    let code = "__shared__ int tile[1056];
int x = blockIdx.x * 32 + threadIdx.x;
int y = blockIdx.y * 32 + threadIdx.y;
tile[threadIdx.y * 33 + threadIdx.x] = a[y * 8192 + x];
__syncthreads();
x = blockIdx.y * 32 + threadIdx.x;
y = blockIdx.x * 32 + threadIdx.y;
b[y * 8192 + x] = tile[threadIdx.x * 33 + threadIdx.y];";
    let memory = "a = { type = \"int\", size = 67108864 }\nb = { type = \"int\", size = 67108864 }";
    both(memory, "grid = [256, 256]\nblock = [32, 32]", code, 0);
}

#[test]
fn stencil() {
    let code = "__shared__ int s[1026];
int t = threadIdx.x;
int i = blockIdx.x * blockDim.x + t;
s[t + 1] = a[i + 1];
if (t == 0) s[0] = a[i];
if (t == blockDim.x - 1) s[t + 2] = a[i + 2];
__syncthreads();
b[i] = s[t] + s[t + 1] + s[t + 2];";
    let memory = "a = { type = \"int\", size = 67108866 }\nb = { type = \"int\", size = 67108864 }";
    both(memory, LARGE, code, 0);
}

#[test]
fn scan() {
    let code = "__shared__ int s[1024];
int t = threadIdx.x;
s[t] = a[blockIdx.x * blockDim.x + t];
__syncthreads();
for (int d = 1; d < blockDim.x; d *= 2) {
  int v = 0;
  if (t >= d) v = s[t - d];
  __syncthreads();
  s[t] += v;
  __syncthreads();
}
a[blockIdx.x * blockDim.x + t] = s[t];";
    let memory = "a = { type = \"int\", size = 67108864 }";
    both(memory, LARGE, code, 1);
    both(memory, LARGE, code, 2);
}

#[test]
fn histogram() {
    let code = "__shared__ unsigned h[256];
if (threadIdx.x < 256) h[threadIdx.x] = 0;
__syncthreads();
unsigned v = a[blockIdx.x * blockDim.x + threadIdx.x];
atomicAdd(&h[v % 256], 1);
__syncthreads();
if (threadIdx.x < 256) atomicAdd(&r[threadIdx.x], h[threadIdx.x]);";
    let memory = "a = { type = \"u32\", size = 67108864 }\nr = { type = \"u32\", size = 256 }";
    both(memory, LARGE, code, 0);
    both(memory, LARGE, code, 1);
}

#[test]
fn bitonic_sort() {
    let code = "__shared__ int s[1024];
unsigned t = threadIdx.x;
s[t] = a[blockIdx.x * blockDim.x + t];
__syncthreads();
for (unsigned k = 2; k <= blockDim.x; k *= 2) {
  for (unsigned j = k / 2; j > 0; j /= 2) {
    unsigned other = t ^ j;
    if (other > t) {
      int x = s[t];
      int y = s[other];
      if (((t & k) == 0) == (x > y)) { s[t] = y; s[other] = x; }
    }
    __syncthreads();
  }
}
a[blockIdx.x * blockDim.x + t] = s[t];";
    let memory = "a = { type = \"int\", size = 67108864 }";
    both(memory, LARGE, code, 1);
}

#[test]
fn tiled_product() {
    let code = "__shared__ int x[1024];
__shared__ int y[1024];
int column = blockIdx.x * 32 + threadIdx.x;
int row = blockIdx.y * 32 + threadIdx.y;
int sum = 0;
for (int m = 0; m < 256; m++) {
  x[threadIdx.y * 32 + threadIdx.x] = a[row * 8192 + m * 32 + threadIdx.x];
  y[threadIdx.y * 32 + threadIdx.x] = b[(m * 32 + threadIdx.y) * 8192 + column];
  __syncthreads();
  for (int k = 0; k < 32; k++) sum += x[threadIdx.y * 32 + k] * y[k * 32 + threadIdx.x];
  __syncthreads();
}
c[row * 8192 + column] = sum;";
    let array = "= { type = \"int\", size = 67108864 }";
    let memory = format!("a {array}\nb {array}\nc {array}");
    both(&memory, "grid = [256, 256]\nblock = [32, 32]", code, 0);
    both(&memory, "grid = [256, 256]\nblock = [32, 32]", code, 1);
}

#[test]
fn grid_stride_loop() {
    let code =
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
  b[i] = 2 * a[i];";
    let memory = "a = { type = \"int\", size = 64 }\nb = { type = \"int\", size = 64 }";
    let kernel = "block = 4\nregs = { n = 16 }";
    never(&cuda(memory, kernel, code), true, Proved::EveryLaunch);
    let wrong = code.replace("blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x");
    races(&cuda(memory, kernel, &wrong), true);
}

/// What a shuffle gives is any value. The second pair of accesses is one too many for the proof.
#[test]
fn a_suspicion_is_tried_where_a_limit_ends_the_proof() {
    let memory = "x = { type = \"int\", size = 8 }";
    let code = "int n = __shfl_sync(15, threadIdx.x, 0);\nx[n] = 1;\nx[n + 1] = 2;";
    let text = cuda(memory, "grid = 1\nblock = 4", code);
    let limits = KernelLimits {
        pairs: 1,
        ..KernelLimits::default()
    };
    match asked_within(&text, KernelProperty::Race, false, &limits) {
        KernelVerdict::Happens { exact, .. } => assert!(exact.witness.is_some()),
        other => panic!("{other:?}"),
    }
}
