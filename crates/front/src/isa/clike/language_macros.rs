//! Lists the types and functions of OpenCL C and CUDA C++ that stand for others, as macros.
//!
//! # Sources
//! - OpenCL C 3.1, *Sub-group Ballot Functions*; *Async Copies from Global to Local Memory*.
//! - CUDA C++ Programming Guide, *Address Space Conversion Functions*.
//! - GPUVerify, `annotations.h` of its distribution: functions without a definition.

/// The macros of CUDA C++. Here, an address in a state space is the generic address.
pub(super) const CUDA_MACROS: &[&str] = &[
    "__cvta_generic_to_shared(p) ((size_t)(p))",
    "__cvta_generic_to_global(p) ((size_t)(p))",
    "__cvta_shared_to_generic(a) ((void *)(size_t)(a))",
    "__cvta_global_to_generic(a) ((void *)(size_t)(a))",
    "DECLARE_UF_UNARY(name, a, result) __device__ result name(a)",
    "DECLARE_UF_BINARY(name, a, b, result) __device__ result name(a, b)",
    "DECLARE_UF_TERNARY(name, a, b, c, result) __device__ result name(a, b, c)",
    "__mod_pow2(a, b) ((a) % (b))",
];

/// The macros of OpenCL C. A set of work-items is a `uint4`.
pub(super) const MACROS: &[&str] = &[
    // An event of a copy is a number.
    "event_t int",
    // A reservation of a pipe is a number, and no reservation has this one.
    "CLK_NULL_RESERVE_ID 0",
    // A sampler is a number.
    "sampler_t int",
    "CLK_NORMALIZED_COORDS_FALSE 0",
    "CLK_NORMALIZED_COORDS_TRUE 1",
    "CLK_ADDRESS_NONE 0",
    "CLK_ADDRESS_CLAMP_TO_EDGE 2",
    "CLK_ADDRESS_CLAMP 4",
    "CLK_ADDRESS_REPEAT 6",
    "CLK_ADDRESS_MIRRORED_REPEAT 8",
    "CLK_FILTER_NEAREST 0x10",
    "CLK_FILTER_LINEAR 0x20",
    // The values of these powers are not worked out.
    "pown(x, n) pow((x), (n))",
    "powr(x, y) pow((x), (y))",
    "rootn(x, n) pow((x), (n))",
    "half_powr(x, y) pow((x), (y))",
    "native_powr(x, y) pow((x), (y))",
    "DECLARE_UF_UNARY(name, a, result) result name(a)",
    "DECLARE_UF_BINARY(name, a, b, result) result name(a, b)",
    "DECLARE_UF_TERNARY(name, a, b, c, result) result name(a, b, c)",
    "__mod_pow2(a, b) ((a) % (b))",
    "__add_noovfl_int(a, b) ((a) + (b))",
    "__add_noovfl_unsigned_int(a, b) ((a) + (b))",
    "sub_group_elect() __sub_group_elect(1)",
    "__sub_group_set(bits) ((uint4)((bits), 0u, 0u, 0u))",
    "__sub_group_first(n) ((n) < 32u ? (1u << (n)) - 1u : ~0u)",
    "__sub_group_bits() __sub_group_first(get_max_sub_group_size())",
    "sub_group_ballot(predicate) __sub_group_set(__sub_group_ballot(predicate))",
    "sub_group_ballot_bit_count(value) popcount((value).x & __sub_group_bits())",
    "sub_group_ballot_exclusive_scan(value) \
        popcount((value).x & __sub_group_first(get_sub_group_local_id()))",
    "sub_group_ballot_inclusive_scan(value) \
        popcount((value).x & __sub_group_first(get_sub_group_local_id() + 1u))",
    "sub_group_inverse_ballot(value) __sub_group_inverse_ballot((value).x)",
    "sub_group_ballot_bit_extract(value, index) \
        ((int)__sub_group_bit((value).x, (uint)(index), (uint)get_sub_group_size()))",
    "sub_group_ballot_find_lsb(value) __sub_group_lowest((value).x & __sub_group_bits())",
    "sub_group_ballot_find_msb(value) __sub_group_highest((value).x & __sub_group_bits())",
    "get_sub_group_eq_mask() __sub_group_set(1u << get_sub_group_local_id())",
    "get_sub_group_lt_mask() __sub_group_set(__sub_group_first(get_sub_group_local_id()))",
    "get_sub_group_le_mask() __sub_group_set(__sub_group_first(get_sub_group_local_id() + 1u))",
    "get_sub_group_ge_mask() \
        __sub_group_set(__sub_group_bits() & ~__sub_group_first(get_sub_group_local_id()))",
    "get_sub_group_gt_mask() \
        __sub_group_set(__sub_group_bits() & ~__sub_group_first(get_sub_group_local_id() + 1u))",
];
