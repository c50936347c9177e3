//! Asynchronous copies by `cp.async`: pipelines of stages with any number of rounds.
#![cfg(feature = "z3")]

mod common;

use common::{kernel, never, races, without};
use parametric::Proved;

const MEMORY: &str = "a = { type = \"int\", size = 64 }
r = { type = \"int\", size = 64 }";

fn cuda(launch: &str, code: &str) -> String {
    kernel("cuda", MEMORY, launch, code)
}

const SMALL: &str = "grid = 1\nblock = 2\nregs = { n = 4 }";

/// A copy of one round.
const ROUND: &str = "__shared__ int s[256];
int n;
int t = threadIdx.x;
__pipeline_memcpy_async(&s[t], &a[t], 4);
__pipeline_commit();
__pipeline_wait_prior(0);
__syncthreads();
r[blockIdx.x * blockDim.x + t] = s[(t + 1) % blockDim.x];";

#[test]
fn one_round() {
    never(&cuda(SMALL, ROUND), true, Proved::EveryLaunch);
    races(&cuda(SMALL, &without(ROUND, "__syncthreads();", 0)), true);
    races(
        &cuda(SMALL, &without(ROUND, "__pipeline_commit();", 0)),
        true,
    );
    races(
        &cuda(SMALL, &without(ROUND, "__pipeline_wait_prior(0);", 0)),
        true,
    );
}

#[test]
fn own_copy() {
    // Each thread reads its own copy only.
    let own = ROUND.replace("(t + 1) % blockDim.x", "t");
    let own = without(&own, "__syncthreads();", 0);
    never(&cuda(SMALL, &own), true, Proved::EveryLaunch);
    races(
        &cuda(SMALL, &without(&own, "__pipeline_wait_prior(0);", 0)),
        true,
    );
    let early = own.replace(
        "__pipeline_memcpy_async",
        "s[t] = 1;\n__pipeline_memcpy_async",
    );
    never(&cuda(SMALL, &early), true, Proved::EveryLaunch);
    let late = own.replace("__pipeline_commit", "s[t] = 1;\n__pipeline_commit");
    races(&cuda(SMALL, &late), true);
}

/// Two stages and any number of rounds: while one is computed with, the next one is copied.
const TWO_STAGES: &str = "__shared__ int s[2048];
int n;
int t = threadIdx.x;
int sum = 0;
__pipeline_memcpy_async(&s[t], &a[t], 4);
__pipeline_commit();
for (int i = 0; i < n; i++) {
  if (i + 1 < n)
    __pipeline_memcpy_async(&s[(i + 1) % 2 * 1024 + t], &a[(i + 1) * blockDim.x + t], 4);
  __pipeline_commit();
  __pipeline_wait_prior(1);
  __syncthreads();
  sum += s[i % 2 * 1024 + (t + 1) % blockDim.x];
  __syncthreads();
}
r[blockIdx.x * blockDim.x + t] = sum;";

#[test]
fn two_stages() {
    never(&cuda(SMALL, TWO_STAGES), true, Proved::EveryLaunch);
    races(
        &cuda(SMALL, &without(TWO_STAGES, "__syncthreads();", 0)),
        true,
    );
    races(
        &cuda(SMALL, &without(TWO_STAGES, "__syncthreads();", 1)),
        true,
    );
    // The wait is off by one.
    let late = TWO_STAGES.replace("wait_prior(1)", "wait_prior(2)");
    races(&cuda(SMALL, &late), true);
}

const NARROW: &str = "grid = 1\nblock = 2\nregs = { n = 4 }\nassume = \"blockDim.x <= 8\"";

/// Three stages, with the stage as a variable; one barrier a round is enough.
const RING: &str = "__shared__ int s[24];
int n;
int t = threadIdx.x;
int sum = 0;
for (int i = 0; i < 2; i++) {
  __pipeline_memcpy_async(&s[i * 8 + t], &a[i * blockDim.x + t], 4);
  __pipeline_commit();
}
int full = 0;
int empty = 2;
for (int i = 0; i < n; i++) {
  __pipeline_wait_prior(1);
  __syncthreads();
  if (i + 2 < n)
    __pipeline_memcpy_async(&s[empty * 8 + t], &a[(i + 2) * blockDim.x + t], 4);
  __pipeline_commit();
  sum += s[full * 8 + (t + 1) % blockDim.x];
  full = (full + 1) % 3;
  empty = empty == 2 ? 0 : empty + 1;
}
r[blockIdx.x * blockDim.x + t] = sum;";

#[test]
fn ring_of_three_stages() {
    never(&cuda(NARROW, RING), true, Proved::EveryLaunch);
    let late = RING.replace("wait_prior(1)", "wait_prior(2)");
    races(&cuda(NARROW, &late), true);
    races(&cuda(NARROW, &without(RING, "__syncthreads();", 0)), true);
    // With two stages, a copy overwrites a stage that others still read.
    let few = RING
        .replace("% 3", "% 2")
        .replace("empty == 2", "empty == 1");
    let few = few.replace("int empty = 2", "int empty = 0");
    races(&cuda(NARROW, &few), true);
}
