//! Values that a loop makes step by step: conversions to narrow types, and what a first iteration
//! finds that later ones do not.
#![cfg(feature = "z3")]

#[expect(dead_code, reason = "questions about races alone")]
mod common;

use common::{asked, kernel, races};
use parametric::{KernelProperty, KernelVerdict};

/// The code in a block of four threads, in each of which `n` is 2.
fn cuda(code: &str) -> String {
    let head = "__shared__ int s[16];\nint n;\nint t = threadIdx.x;\n";
    let memory = "a = { type = \"int\", size = 16 }\nh = { type = \"int\", size = 16 }";
    let launch = "grid = 1\nblock = 4\nregs = { n = 2 }";
    kernel("cuda", memory, launch, &[head, code].concat())
}

/// Some threads come to the access of `s[0]` behind the loop. With the other number, none does.
fn comes(code: &str, number: &str, other: &str) {
    races(&cuda(&code.replace("NUMBER", number)), false);
    let free = cuda(&code.replace("NUMBER", other));
    let said = asked(&free, KernelProperty::Race, false);
    let is_right = match &said {
        KernelVerdict::Never { .. } => true,
        KernelVerdict::Tried { .. } => true,
        KernelVerdict::Happens { .. } | KernelVerdict::Undecided { .. } => false,
    };
    assert!(is_right, "{said:?} of\n{free}");
}

#[test]
fn a_conversion_in_front_of_a_sum() {
    let code = "int x = t;
for (int k = 0; k < 4; k++) x = (unsigned char)x + 100;
if (x < NUMBER) s[0] = t;";
    comes(code, "146", "144");
}

#[test]
fn a_conversion_in_front_of_a_product() {
    let code = "int x = 64;
for (int k = 0; k < 3; k++) x = (unsigned char)x * 2;
if (x == NUMBER) s[0] = t;";
    comes(code, "0", "512");
}

#[test]
fn a_conversion_behind_a_shift() {
    let code = "int x = 0x3ff;
for (int k = 0; k < 3; k++) x = (unsigned char)(x >> 1);
if (x == NUMBER) s[0] = t;";
    comes(code, "0x3f", "0x7f");
}

#[test]
fn the_first_value_is_not_converted() {
    let code = "int x = 300 + t;
for (int k = 0; k < n; k++) { if (x > NUMBER) s[0] = t; x = (unsigned char)(x + 1); }";
    comes(code, "290", "303");
    let code = "long long w = (1ll << 40) + t;
for (int k = 0; k < n; k++) { if (w > NUMBER) s[0] = t; w = (int)w + 1; }";
    comes(code, "1000", "0x20000000000ll");
}

#[test]
fn the_first_value_is_larger_than_all_others() {
    let code = "int x = 9;
for (int k = 0; k < n; k++) { if (x > NUMBER) s[0] = t; x = a[t] & 7; }";
    comes(code, "8", "9");
}

/// A conversion of 64 bits keeps the word, and not the number.
#[test]
fn a_number_that_becomes_negative() {
    let code = "unsigned long long w = 1ull << NUMBER;
for (int k = 0; k < 1; k++) w *= 2;
if ((long long)w < 0) s[0] = t;";
    comes(code, "62", "61");
}

/// A sum of 64 bits wraps around where a number below 0 became a large one.
#[test]
fn a_large_number_that_wraps_around() {
    let code = "unsigned long long w = (unsigned long long)(t / 2) - 1;
w += 2;
if (w == NUMBER) s[0] = t;";
    comes(code, "1", "0");
    // The same place by a large number, and by a negative one.
    let code = "__shared__ unsigned char c[8];
unsigned char *z = &c[4];
z[(unsigned long long)t - 4] = 1;
z[(t ^ NUMBER) - 4] = 2;";
    comes(code, "1", "0");
}

/// A sum of 16 bits wraps around before its remainder is taken.
#[test]
fn a_remainder_of_a_sum_of_16_bits() {
    let code = "\t.reg .pred %p<9>;
\t.reg .b32 %r<9>;
\t.reg .u16 %h<9>;
\tmov.u32 %r1, %tid.x;
\tmov.u32 %r2, 0;
\tmov.u16 %h1, 0;
STEP:
\tadd.u16 %h1, %h1, 40000;
\trem.u16 %h1, %h1, 50000;
\tadd.u32 %r2, %r2, 1;
\tsetp.lt.u32 %p1, %r2, 2;
\t@%p1 bra STEP;
\tsetp.ne.u16 %p2, %h1, NUMBER;
\t@%p2 bra DONE;
\tst.shared.u32 [s], %r1;
DONE:
\tret;";
    let memory = "s = { type = \"u32\", size = 16, space = \"shared\" }";
    let ptx = |number: &str| {
        let code = code.replace("NUMBER", number);
        kernel("ptx", memory, "grid = 1\nblock = 4", &code)
    };
    races(&ptx("14464"), false);
    let said = asked(&ptx("30000"), KernelProperty::Race, false);
    assert!(!matches!(said, KernelVerdict::Happens { .. }), "{said:?}");
}

/// An address that may be of several objects, one of them behind a pointer.
#[test]
fn a_pointer_that_is_one_of_two() {
    let code = "int *p = &h[0];
*(t == 0 ? &a[0] : PLACE) = 3;
if (h[0] == 3) __syncthreads();
s[t] = t;";
    let is_uniform = |place: &str| {
        let said = asked(
            &cuda(&code.replace("PLACE", place)),
            KernelProperty::Divergence,
            true,
        );
        matches!(said, KernelVerdict::Never { .. })
    };
    assert!(!is_uniform("p"));
    assert!(is_uniform("&a[1]"));
}
