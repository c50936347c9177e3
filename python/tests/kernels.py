"""Kernels of Triton for the tests."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@triton.jit
def overlap(x, y, out, n, BLOCK: tl.constexpr):
    # Blocks store different values to the same elements.
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    own = tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask) + tl.program_id(0)
    tl.store(out + offsets, own, mask=mask)


@triton.jit
def softmax(x, out, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    value = tl.load(x + row * stride + columns, mask=mask, other=-float("inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * stride + columns, power / tl.sum(power, axis=0), mask=mask)


@triton.jit
def split_k(a, b, c, lock, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SEM: tl.constexpr):
    # Two blocks, each with half of the products; a lock around the sum in memory.
    m, n = tl.arange(0, M), tl.arange(0, N)
    k = tl.program_id(0) * K + tl.arange(0, K)
    left = tl.load(a + m[:, None] * (2 * K) + k[None, :])
    right = tl.load(b + k[:, None] * N + n[None, :])
    part = tl.sum(left[:, :, None] * right[None, :, :], axis=1)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    place = c + m[:, None] * N + n[None, :]
    tl.store(place, tl.load(place) + part)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem=SEM)


@triton.jit
def persistent(a, b, c, tiles, APART: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STEP: tl.constexpr):
    # Each block takes every STEP-th tile of four rows; tiles that are closer to each other share rows.
    m, n, k = tl.arange(0, 4), tl.arange(0, N), tl.arange(0, K)
    right = tl.load(b + k[:, None] * N + n[None, :])
    for tile in range(tl.program_id(0), tiles, STEP):
        rows = tile * APART + m
        left = tl.load(a + rows[:, None] * K + k[None, :])
        part = tl.sum(left[:, :, None] * right[None, :, :], axis=1)
        tl.store(c + rows[:, None] * N + n[None, :], part)
