#pragma once
#define LIMIT 1.0f
__device__ inline int clamped(int i, int n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }
