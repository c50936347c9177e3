//! Tests the parts of the C-like front end that kernels of C++ use: numbers of floating point,
//! templates, overloads, member functions, annotations of verifiers.

use super::tests::{lowered, wrong};
use program::Dialect;

#[track_caller]
fn cuda(code: &str, expected: &str) {
    assert_eq!(lowered(Dialect::Cuda, code), expected, "{code}");
}

#[test]
fn numbers_of_floating_point_are_values() {
    cuda("float f = 1.5f; int r = f * 2;", "= =");
    cuda("double d = 1; d += 0.5; int r = d > 1.25f;", "= = =");
    // The value of a function that is not exact is not worked out, and is a value all the same.
    cuda("float f = expf(1.0f); int r = f > 0;", "= = =");
    for (code, part) in [
        ("float f = 1.0f; f %= 2;", "no such operation on `float`"),
        (
            "float f = 1.0f; int r = f << 1;",
            "no such operation on `float`",
        ),
        ("float f = fmaxf(1.0f);", "`fmaxf` takes 2 arguments"),
        ("int t[2]; int r = t[1.0f];", "no such operation"),
        ("switch (1.0f) { case 1: x = 1; }", "this is not an integer"),
        (
            "double r = 0x1p3;",
            "this floating-point number is not supported",
        ),
        ("int *p = &x; p = 1.0f;", "a number is not an address"),
        ("float t = 1.0f; cuda::atomic_ref<float> f(t);", ""),
    ] {
        wrong(Dialect::Cuda, code, part);
    }
    wrong(Dialect::C, "half h;", "there is no `half` in C");
}

#[test]
fn a_variable_with_an_address_is_memory() {
    cuda(
        "int t = 1; int *p = &t; *p = 2; int r = t;",
        "W.na = W.na R.na =",
    );
    cuda("int t = 1; int r = t;", "= =");
    // The expected value of a compare-exchange needs no address.
    cuda(
        "long t = 1; __nv_atomic_compare_exchange_n(&x, &t, 2L, false, \
         __NV_ATOMIC_RELAXED, __NV_ATOMIC_RELAXED);",
        "= = cas.RLX@Sys/RLX@Sys = if6 =",
    );
}

#[test]
fn an_atomic_object_of_several_members_has_no_gaps_and_few_functions() {
    for (code, part) in [
        (
            "struct S { int a; char b; }; S s; cuda::atomic_ref<S> f(s);",
            "a `S` is not an integer",
        ),
        (
            "struct S { long a, b; }; S s; cuda::atomic_ref<S> f(s);",
            "a `S` is not an integer",
        ),
        (
            "longlong4_32a v; cuda::atomic_ref<longlong4_32a> f(v);",
            "a `longlong4_32a` is not an integer",
        ),
        (
            "ulonglong2 v; cuda::atomic_ref<longlong2> f(v);",
            "a `ulonglong2` is not an integer",
        ),
        (
            "ulonglong2 v; cuda::atomic_ref<ulonglong2> f(v); f.fetch_add(v);",
            "`fetch_add` of a structure",
        ),
        (
            "ulonglong2 v; cuda::atomic_ref<ulonglong2> f(v); long e; \
             f.compare_exchange_strong(e, v);",
            "the expected value is not a `ulonglong2`",
        ),
        ("int4_16a v;", "int4_16a"),
    ] {
        wrong(Dialect::Cuda, code, part);
    }
    cuda(
        "long4_16a v = make_long4_16a(1, 2, 3, 4);",
        "W.na W.na W.na W.na R.na R.na R.na R.na W.na W.na W.na W.na",
    );
}

#[test]
fn numbers_of_floating_point_are_added_atomically() {
    let shared = "__shared__ float s; ";
    cuda(
        &format!("{shared}atomicAdd(&s, 1.5f);"),
        "Float(Add(Nearest), Format { bits: 32, fraction: 23 }).RLX@Gpu/RLX@Gpu",
    );
    for (code, part) in [
        (
            "atomicSub(&s, 1.0f);",
            "`atomicSub` of a `float` is not supported",
        ),
        (
            "atomicMax(&s, 1.0f);",
            "`atomicMax` of a `float` is not supported",
        ),
        ("int *p = &s;", "a `float*` is not a `int*`"),
    ] {
        wrong(Dialect::Cuda, &format!("{shared}{code}"), part);
    }
    wrong(
        Dialect::Cuda,
        "int r = 1; atomicAdd(&r, 1);",
        "`atomicAdd` on memory of one thread",
    );
}

#[test]
fn templates_are_instantiated_by_their_uses() {
    cuda(
        "template <typename T> T f(const T *p) { return *p; } int r = f(&x);",
        "R.na = goto3 =",
    );
    for (code, part) in [
        (
            "template <typename T> T f() { return 1; } int r = f();",
            "nothing says what `T` of `f` is",
        ),
        (
            "template <int N> int f() { return N; } int r = f<x>();",
            "the argument of a template is not a constant",
        ),
        (
            "template <int N> int f() { return N; } int r = f<int>();",
            "`N` of the template is a constant",
        ),
        (
            "template <typename... T> struct P { };",
            "templates of any number of parameters are not supported",
        ),
        (
            "template <typename T> struct S { T a; }; S<int, 4> s; S<> t;",
            "nothing says what `T` of `S` is",
        ),
        (
            "template <> int f<int>(int v) { return v; }",
            "a specialisation of nothing",
        ),
        (
            "template <int N> struct S { S<N + 1> *next; }; S<1> s;",
            "this template has too many instances",
        ),
        (
            "template <typename T> __global__ void k(int n) { T t = n; }",
            "nothing says what `T` of `k` is",
        ),
        // Behind a template, its parameters mean nothing.
        (
            "template <typename T> T f(T v) { return v; } T r = f(1);",
            "is not allowed here",
        ),
    ] {
        wrong(Dialect::Cuda, code, part);
    }
    // A kernel's template takes its type from the memory of its parameter, or from an instance.
    cuda(
        "template <typename T> __global__ void k(T *x) { T t = *x; }",
        "R.na =",
    );
    cuda(
        "template <int N> __global__ void k(long *x) { x[0] = N; } \
         template __global__ void k<3>(long *);",
        "W.na",
    );
}

#[test]
fn the_types_of_arguments_choose_an_overload() {
    let overloads = "int f(int v) { return v; } int f(float v) { x = 1; return 1; } ";
    cuda(&format!("{overloads}int r = f(2);"), "=");
    cuda(&format!("{overloads}int r = f(2.0f);"), "W.na = goto3 =");
    for (call, part) in [
        ("f(2.0)", "two functions `f` suit these arguments alike"),
        ("f(&x)", "no `f` takes arguments of these types"),
        ("f(1, 2)", "no `f` takes 2 arguments"),
    ] {
        wrong(Dialect::Cuda, &format!("{overloads}int r = {call};"), part);
    }
    wrong(
        Dialect::Cuda,
        "int f(int v) { return v; } int f(int w) { return 1; } int r = f(1);",
        "there is a function `f` before",
    );
    wrong(
        Dialect::Cuda,
        "int f(int a, int b = 1) { return a; } int r = f();",
        "takes 2 arguments, 0 given",
    );
    wrong(
        Dialect::Cuda,
        "int f(int a, int b = 1); int r = 1;",
        "a default argument in a declaration",
    );
}

#[test]
fn classes_are_made_by_their_constructors() {
    let class = "struct S { int a; int b = 2; S(int n) : a(n) { } int sum() { return a + b; } }; ";
    cuda(
        &format!("{class}S s(1); int r = s.sum();"),
        "W.na W.na R.na R.na = goto6 =",
    );
    cuda(
        "struct G { long *p; G(long *q) : p(q) { } ~G() { *p = 0; } }; { G g(&x); x = 1; } x = 2;",
        "W.na W.na R.na W.na W.na",
    );
    // Control leaves a block by `break`, too.
    cuda(
        "struct G { int a; ~G() { x = a; } }; while (true) { G g = {1}; break; }",
        "if8 W.na R.na W.na goto8 R.na W.na goto0",
    );
    for (code, part) in [
        ("S s;", "`S` takes 1 arguments, 0 given"),
        ("S s(1, 2);", "takes 1 arguments, 2 given"),
        ("S s(&x);", "an address is not a number"),
    ] {
        wrong(Dialect::Cuda, &format!("{class}{code}"), part);
    }
}

#[test]
fn instances_of_class_templates_are_types() {
    let class = "template <typename T, int N> struct B { T v[N]; T &at(int i) { return v[i]; } }; ";
    cuda(
        &format!("{class}B<int, 2> b; b.at(1) = 3; int r = b.at(0);"),
        "= goto2 W.na = goto5 R.na =",
    );
    cuda(
        "template <int N> struct L { static constexpr int n = 1 + L<N / 2>::n; }; \
         template <> struct L<1> { static constexpr int n = 0; }; int r = L<8>::n;",
        "=",
    );
    wrong(
        Dialect::Cuda,
        &format!("{class}B<int, 2> b; B<int, 3> c; b = c;"),
        "a `B<int, 3>` is not a `B<int, 2>`",
    );
    wrong(
        Dialect::Cuda,
        &format!("{class}int r = B<int, 2>::size;"),
        "has no constant or function `size`",
    );
}

#[test]
fn operators_of_structures_are_functions() {
    let class = "struct V { int a; V operator+(const V &o) const { return V{a + o.a}; } }; ";
    cuda(
        &format!("{class}V u = {{1}}, v = {{2}}; V w = u + v;"),
        "W.na W.na R.na R.na W.na R.na W.na goto8 R.na W.na",
    );
    wrong(
        Dialect::Cuda,
        &format!("{class}V u = {{1}}; V w = u - u;"),
        "this is not a `V` in memory",
    );
}

#[test]
fn lambdas_see_what_they_capture() {
    cuda(
        "int n = 1; auto f = [&](int by) { n += by; }; f(2); n = n;",
        "= = =",
    );
    // A capture by value keeps the value that the variable had.
    cuda(
        "int n = 1; auto f = [n] { return n; }; n = 2; int r = f();",
        "= = = = goto5 =",
    );
    for (code, part) in [
        (
            "auto f = [](int n) { return n; }; int r = f();",
            "this function takes 1 arguments",
        ),
        (
            "auto f = [] { return 1; }; int r = f;",
            "`f` is not a value",
        ),
        ("int r = [] { return 1; };", "a lambda is not a value here"),
    ] {
        wrong(Dialect::Cuda, code, part);
    }
}

#[test]
fn pointers_to_functions_are_their_functions() {
    let one = "int one(int v) { return v + 1; } ";
    let apply = "int apply(int (*f)(int), int v) { return f(v); } ";
    // The calls compute with constants alone.
    for code in [
        "int (*f)(int) = one; int r = f(1);",
        "int (*f)(int) = &one; int r = (*f)(1);",
        "typedef int (*op)(int); op f = one; int r = f(1);",
        "using op = int (*)(int); op f = one; int r = f(1);",
        "int r = apply(one, 1);",
        "int r = apply(&one, 1);",
        "int (*t[])(int) = { one, one }; int r = t[1](1);",
    ] {
        cuda(&format!("{one}{apply}{code}"), "=");
    }
    let by_template = "template <int (*F)(int)> int call(int v) { return F(v); } ";
    cuda(&format!("{one}{by_template}int r = call<one>(1);"), "=");
    for (code, part) in [
        ("int (*f)(int);", "a pointer to a function is not followed"),
        (
            "int (*f)(int) = one; f = one;",
            "this cannot be assigned to",
        ),
        ("auto f = one; int r = f;", "`f` is not a value"),
        (
            "long r = (long)one;",
            "a pointer to a function is not followed",
        ),
        ("int (*f)(int) = one; int r = f;", "`f` is not a value"),
        (
            "int (*t[])(int) = { one, one }; int i = x; int r = t[i](1);",
            "a pointer to a function is not followed",
        ),
        (
            "int r = apply(0, 1);",
            "a pointer to a function is not followed",
        ),
        (
            "int f(int v) { return v; } int f(float v) { return 1; } int r = apply(f, 1);",
            "several functions are called `f`",
        ),
        (
            "struct S { int (*f)(int); };",
            "a pointer to a function is not followed",
        ),
    ] {
        wrong(Dialect::Cuda, &format!("{one}{apply}{code}"), part);
    }
}

#[test]
fn packs_are_written_out() {
    let sum = "template <typename... T> int sum(T... v) { return (v + ... + 0); } ";
    cuda(&format!("{sum}int r = sum(1, 2, 3);"), "=");
    cuda(&format!("{sum}int r = sum();"), "=");
    let most = "template <typename T> T most(T a) { return a; } \
                template <typename T, typename... R> T most(T a, R... r) { \
                T m = most(r...); return a > m ? a : m; } ";
    cuda(&format!("{most}int r = most(3, 7, 5);"), "=");
    // A function without a pack goes before one with an empty pack.
    let both = "template <typename T> int f(T a) { return 1; } \
                template <typename T, typename... R> int f(T a, R... r) { return 2; } ";
    cuda(
        &format!("{both}int r = f(1); static_assert(f(1) == 1 && f(1, 2) == 2, \"\");"),
        "=",
    );
}

#[test]
fn a_constant_object_has_the_function_that_does_not_change_it() {
    let class = "struct V { int a; int get() { return 1; } int get() const { return 2; } }; ";
    cuda(
        &format!(
            "{class}int of(const V &v) {{ return v.get(); }} V v = {{0}}; \
             static_assert(of(v) == 2, \"\"); static_assert(v.get() == 1, \"\");"
        ),
        "W.na",
    );
}

#[test]
fn limits_of_types_are_constants() {
    for fact in [
        "std::numeric_limits<int>::max() == INT_MAX",
        "std::numeric_limits<int>::min() == INT_MIN",
        "std::numeric_limits<unsigned>::max() == UINT_MAX",
        "std::numeric_limits<unsigned>::min() == 0",
        "std::numeric_limits<long long>::max() == LLONG_MAX",
        "std::numeric_limits<float>::max() == FLT_MAX",
        "std::numeric_limits<float>::lowest() == -FLT_MAX",
        "std::numeric_limits<float>::min() == FLT_MIN",
        "std::numeric_limits<double>::infinity() > DBL_MAX",
        "std::numeric_limits<unsigned char>::max() == 255",
    ] {
        cuda(&format!("static_assert({fact}, \"\");"), "");
    }
}

#[test]
fn a_reference_to_a_constant_takes_a_value() {
    cuda("int f(const int &v) { return v; } int r = f(2 + 1);", "=");
    wrong(
        Dialect::Cuda,
        "int f(int &v) { return v; } int r = f(2);",
        "this cannot be assigned to",
    );
}

#[test]
fn vectors_of_opencl_have_operators() {
    assert_eq!(
        lowered(Dialect::OpenCl, "int2 u = (int2)(1, 2); int2 v = u.yx;"),
        "W.na@Thread W.na@Thread R.na@Thread R.na@Thread W.na@Thread W.na@Thread \
         R.na@Thread R.na@Thread W.na@Thread W.na@Thread R.na@Thread R.na@Thread \
         W.na@Thread W.na@Thread"
    );
    for (code, part) in [
        ("int2 u = 1; int2 v = u.xz;", "has no member `xz`"),
        ("int2 u = 1; int3 v = u + u;", "a `int2` is not a `int3`"),
        (
            "float f = 1.0f; int r = f ? 1 : 2;",
            "a number of floating point chooses",
        ),
    ] {
        wrong(Dialect::OpenCl, code, part);
    }
    cuda("float f = 1.0f; int r = f ? 1 : 2;", "= =");
}

#[test]
fn member_functions_see_the_members_of_their_object() {
    cuda(
        "struct S { int a; void set(int v) { a = v; } }; S s; s.set(1); int r = s.a;",
        "W.na R.na =",
    );
    for (code, part) in [
        (
            "struct S { int a; void set(int v) { a = v; } }; const S s = {1}; s.set(1);",
            "is `const`",
        ),
        (
            "struct S { int a; int get() { return a; } }; S s; int r = s.got();",
            "not an atomic reference",
        ),
        (
            "struct S { int a; int get() { return b; } }; S s; int r = s.get();",
            "no register or parameter `b`",
        ),
        ("int r = this->a;", "no register or parameter `this`"),
    ] {
        wrong(Dialect::Cuda, code, part);
    }
}

#[test]
fn loops_over_elements_need_an_array() {
    cuda(
        "int r = 0; for (int v : a) r += v;",
        "= = if8 R.na = = = goto2",
    );
    wrong(
        Dialect::Cuda,
        "int *p = &x; for (int v : p) x = v;",
        "this is not an array",
    );
}

#[test]
fn functions_without_a_body_give_any_value() {
    cuda("__device__ int f(int n); int r = f(x);", "R.na = = =");
    for (code, part) in [
        (
            "__device__ void f(int *p); f(&x);",
            "`f` has no body here, and is given an address",
        ),
        (
            "__device__ void f(int &r); f(x);",
            "`f` has no body here, and is given an address",
        ),
        (
            "__device__ int *f(); int r = *f();",
            "`f` has no body here, and returns an address",
        ),
        (
            "__device__ int f(int n); int r = f();",
            "`f` takes another number of arguments",
        ),
        // It is a function of the host.
        (
            "int f(int n); int r = f(1);",
            "there is no function `f` here",
        ),
    ] {
        wrong(Dialect::Cuda, code, part);
    }
}

#[test]
fn annotations_of_verifiers_are_read() {
    cuda(
        "__requires(1 < 2); __invariant(true); __barrier_invariant_1(x, 1); \
            __candidate_invariant(x == 1);",
        "",
    );
    cuda(
        "int r = 1; __assert(__implies(r == 0, r == 2));",
        "= if3 R.na",
    );
    for (code, part) in [
        ("__requires(false);", "the launch breaks this precondition"),
        (
            "__requires(x == 0);",
            "`__requires` of values that are not known before the kernel runs",
        ),
        (
            "int r = x; __assume(r == 0);",
            "`__assume` of values that are not known before the kernel runs",
        ),
        ("int r = __no_read(x);", "it describes a proof"),
        (
            "void __spec_f(int *p) { __writes_to(p); } __spec_f(&x);",
            "says what a function elsewhere does to memory",
        ),
        ("__assert();", "`__assert` takes one condition"),
    ] {
        wrong(Dialect::Cuda, code, part);
    }
    // A precondition of a function is a promise of its callers.
    cuda(
        "void f(int v) { __requires(v == 1); } f(x);",
        "R.na = if4 R.na",
    );
    // An annotation about accesses is a part of a proof.
    for of_proof in [
        "__invariant(__write_implies(x, 1));",
        "__assert(__no_read(x));",
        "__ensures(x == 1);",
    ] {
        cuda(of_proof, "");
    }
}

#[test]
fn bytes_are_copied_in_whole_elements() {
    let room = "__shared__ int to[4], from[4]; __shared__ short half[4]; ";
    for call in [
        "memcpy(to, from, sizeof(int));",
        "__builtin_memcpy(&to[1], from + 2, 4);",
        "memmove(to, from, (x + 1) * sizeof(int));",
        "memset(to, 0, 2 * sizeof(int));",
    ] {
        let code = lowered(Dialect::Cuda, &format!("{room}{call}"));
        assert!(code.contains("W.na"), "{call}: {code}");
    }
    for (call, part) in [
        (
            "memcpy(to, from, 3);",
            "this call of `memcpy` is not supported",
        ),
        (
            "memcpy(to, from, x);",
            "this call of `memcpy` is not supported",
        ),
        (
            "memcpy(to, half, 4);",
            "this call of `memcpy` is not supported",
        ),
        (
            "memset(to, 1, 4);",
            "this call of `memset` is not supported",
        ),
    ] {
        wrong(Dialect::Cuda, &format!("{room}{call}"), part);
    }
}

#[test]
fn objects_are_converted_as_their_class_says() {
    let class = "struct S { int n; __device__ operator int() const { return n + 1; } }; S s; \
                 s.n = 4; ";
    cuda(&format!("{class} int r = s;"), "W.na R.na = goto4 =");
    cuda(
        &format!("{class} int r = 2 * (s + 1);"),
        "W.na R.na = goto4 =",
    );
    let shared = "struct Shared { __device__ operator int *() { __shared__ int t[2]; return t; } \
                  __device__ operator const int *() const { __shared__ int t[2]; return t; } }; ";
    cuda(
        &format!("{shared} Shared all; int *p = all; p[1] = 2;"),
        "= goto2 = W.na",
    );
    cuda(
        &format!("{shared} int *p = Shared(); p[1] = 2;"),
        "= goto2 = W.na",
    );
    // Two conversions: nothing here says which one is meant.
    let two = "struct T { int n; __device__ operator int() { return n; } \
               __device__ operator float() { return 0.5f; } }; T t;";
    wrong(
        Dialect::Cuda,
        &format!("{two} int r = t;"),
        "this has no value",
    );
    wrong(
        Dialect::Cuda,
        "struct U { int n; }; U u; int r = u;",
        "this has no value",
    );
}

#[test]
fn a_union_holds_one_number_with_several_types() {
    cuda(
        "union { float f; unsigned u; } w; w.f = 1.5f; int r = w.u;",
        "W.na R.na =",
    );
    cuda(
        "union W { float f; int i; }; W v; v.i = 1; int r = v.f > 0;",
        "W.na R.na =",
    );
    for (code, part) in [
        (
            "union { double d; int i; } w;",
            "such unions are not supported",
        ),
        (
            "union { int i[2]; long l; } w;",
            "such unions are not supported",
        ),
        (
            "union W { float f; int i; }; W w = {1.0f};",
            "a list of values for a union",
        ),
    ] {
        wrong(Dialect::Cuda, code, part);
    }
}

#[test]
fn words_are_computed_by_their_parts() {
    for code in [
        "__byte_perm(0x33221100, 0x77665544, 0x7531)",
        "__vadd4(0x01ff0280, 0x01010180)",
        "__vcmpgtu4(0x02010201, 0x01010101)",
        "__dp4a(0x01020304, 0x01010101, 5)",
        "__umul64hi(1ull << 63, 6)",
    ] {
        cuda(&format!("int r = {code};"), "=");
    }
    // Such a fence orders no threads.
    cuda(
        "x = 1; cuda::std::atomic_signal_fence(cuda::std::memory_order_seq_cst); x = 2;",
        "W.na W.na",
    );
}
