//! Tests the C-like front end: the micro-ops that statements become.

use super::{ClikeCode, Env, Language};
use crate::isa::{Object, SymbolKind, Symbols};
use diag::{MappedText, Sink, SourceFile, TextStyle, render};
use program::{Access, BarrierNaming, Dialect, Expr, GroupSeat, Op, Scope, Tag, Update};

/// The environment of a thread of a dialect that is alone.
pub(super) fn env(dialect: Dialect) -> Env {
    Env {
        language: Language::of(dialect).expect("a C-like one"),
        strict: true,
        capped: false,
        visible: None,
        regs: Vec::new(),
        warp: GroupSeat::ALONE,
        block: GroupSeat::ALONE,
        cluster: Vec::new(),
        specials: Vec::new(),
        places_are_registers: false,
        host: None,
    }
}

/// Lowers a thread's code with the locations `x`, `y` and `a[2]`. The result has one word for each
/// micro-op, or the messages.
pub(super) fn lowered(dialect: Dialect, code: &str) -> String {
    let file = SourceFile::new("test", code);
    let mut sink = Sink::new(&file);
    let mut symbols = Symbols::default();
    for (name, elements) in [("x", 1), ("y", 1), ("a", 2)] {
        let object = Object {
            init: vec![program::Init::Int(0); elements],
            ..Object::scalar(0)
        };
        symbols.declare(
            name,
            Default::default(),
            SymbolKind::Object(object),
            &mut sink,
        );
    }
    let env = env(dialect);
    let unit = ClikeCode::parse(MappedText::verbatim(code, 0), env.language, &mut sink);
    let lowered = unit.lower(&env, &mut symbols, &mut sink);
    if sink.errors() > 0 {
        return sink
            .into_diagnostics()
            .iter()
            .map(|d| render(d, TextStyle::Plain))
            .collect();
    }
    lowered
        .code
        .iter()
        .map(|i| word(&i.op))
        .collect::<Vec<_>>()
        .join(" ")
}

fn access(a: &Access) -> String {
    let tags: Vec<&str> = a
        .tags
        .without(&[Tag::Atomic, Tag::Rmw])
        .iter()
        .map(Tag::name)
        .collect();
    let scope = a.scope.map_or(String::new(), |s| format!("@{s:?}"));
    format!(
        "{}{scope}",
        if tags.is_empty() {
            "na".to_string()
        } else {
            tags.join("+")
        }
    )
}

fn word(op: &Op) -> String {
    match op {
        Op::Load { access: a, .. } => format!("R.{}", access(a)),
        Op::Store { access: a, .. } => format!("W.{}", access(a)),
        Op::Rmw {
            read,
            write,
            update,
            ..
        } => {
            let kind = match update {
                Update::Exchange(_) => "xchg".to_string(),
                Update::Apply(op, _) => format!("{op:?}"),
                Update::CompareExchange { .. } => "cas".to_string(),
                Update::When { .. } => "when".to_string(),
            };
            format!("{kind}.{}/{}", access(read), access(write))
        }
        Op::Give {
            lanes: Expr::Const(lanes),
            ..
        } => format!("give.{lanes:x}"),
        Op::Give { .. } => "give".into(),
        Op::Take { lane, .. } => format!("take.{lane}"),
        Op::Choice {
            spurious: false, ..
        } => "either".to_string(),
        Op::Choice { .. } => "spurious".to_string(),
        Op::Call(_) | Op::Enqueue(_) => "call".to_string(),
        Op::Status { .. } => "status".to_string(),
        Op::Mark { mark, .. } => {
            format!(
                "F.{:?}{}",
                mark.tags,
                mark.scope.map_or(String::new(), |s| format!("@{s:?}"))
            )
        }
        Op::Barrier(b) => match &b.naming {
            BarrierNaming::Instance { instance, .. } => format!("bar#{instance}"),
            BarrierNaming::Counted { .. } => format!("bar.{:?}", b.domain),
        },
        Op::Assign { .. } => "=".to_string(),
        Op::Branch {
            cond: Expr::Const(_),
            target,
        } => format!("goto{target}"),
        Op::Branch { target, .. } => format!("if{target}"),
    }
}

#[track_caller]
fn c(code: &str, expected: &str) {
    assert_eq!(lowered(Dialect::C, code), expected, "{code}");
}

#[track_caller]
fn opencl(code: &str, expected: &str) {
    assert_eq!(lowered(Dialect::OpenCl, code), expected, "{code}");
}

#[track_caller]
pub(super) fn wrong(dialect: Dialect, code: &str, part: &str) {
    let message = lowered(dialect, code);
    assert!(message.contains(part), "{code}\n{message}");
}

#[test]
fn accesses() {
    c(
        "*x = 1; int r = *x; x[0] = r; a[1] = *a;",
        "W.na R.na = W.na R.na W.na",
    );
    c("atomic_store(x, 1); int r = atomic_load(x);", "W.SC R.SC =");
    c(
        "atomic_store_explicit(x, 1, memory_order_release);",
        "W.REL",
    );
    c(
        "int r = atomic_load_explicit(&a[1], memory_order_consume);",
        "R.CON =",
    );
    c("*x += 1;", "R.na W.na");
    opencl("*x = 1; atomic_store(x, 2);", "W.na@Thread W.SC@Gpu");
    opencl(
        "atomic_store_explicit(x, 1, memory_order_relaxed, memory_scope_sub_group);",
        "W.RLX@Warp",
    );
}

#[test]
fn halves_of_a_read_modify_write_have_the_order_that_concerns_them() {
    c(
        "int r = atomic_fetch_add_explicit(x, 1, memory_order_acq_rel);",
        "Add.ACQ/REL =",
    );
    c(
        "int r = atomic_exchange_explicit(x, 1, memory_order_release);",
        "xchg.RLX/REL =",
    );
    c("atomic_fetch_min(x, 1);", "Min.SC/SC");
}

#[test]
fn a_compare_exchange_touches_the_expected_location_plainly() {
    let code = "int r = atomic_compare_exchange_strong_explicit(x, y, 1, memory_order_acquire, memory_order_relaxed);";
    c(code, "R.na cas.ACQ/RLX = if5 W.na =");
    // The weak form may fail spuriously; then it only reads.
    c(
        "int e = 0; int r = atomic_compare_exchange_weak(x, &e, 1);",
        "= = spurious if7 R.SC = goto10 cas.SC/SC = if11 = =",
    );
    opencl(
        "int r = atomic_compare_exchange_strong(x, y, 1);",
        "R.na@Gpu cas.SC@Gpu/SC@Gpu = if5 W.na@Gpu =",
    );
}

#[test]
fn control_flow() {
    c(
        "if (*x) { *y = 1; } else *y = 2;",
        "R.na if4 W.na goto5 W.na",
    );
    c("while (atomic_load(x) == 0);", "R.SC if3 goto0");
    c("do { *x = 1; } while (*y);", "W.na R.na if4 goto0");
    c(
        "for (int i = 0; i < 2; i++) { if (i) break; *x = i; continue; }",
        "= if8 if4 goto8 W.na goto6 = goto1",
    );
    c("int r = *x && *y;", "R.na = if5 R.na = =");
    c("return; *x = 1;", "goto2 W.na");
    c("L1: *x = 1; goto L1;", "W.na goto0");
    c("goto end; *x = 1; end:;", "goto2 W.na");
    c("{ goto end; } *x = 1; end: *y = 1;", "goto2 W.na W.na");
    c(
        "while (*x) { if (*y) goto out; } out:;",
        "R.na if6 R.na if5 goto6 goto0",
    );
}

#[test]
fn fences_and_barriers() {
    c("atomic_thread_fence(memory_order_seq_cst);", r#"F.{"SC"}"#);
    let code = "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE, memory_order_release, memory_scope_device);";
    opencl(code, r#"F.{"GLOBAL", "LOCAL", "REL"}@Gpu"#);
    opencl(
        "mem_fence(CLK_LOCAL_MEM_FENCE);",
        r#"F.{"ACQ_REL", "LOCAL"}@Cta"#,
    );
    opencl(
        "B3: barrier(CLK_GLOBAL_MEM_FENCE); work_group_barrier(0); sub_group_barrier(0);",
        "bar#3 bar.Cta bar.Warp",
    );
}

#[test]
fn qualifiers_belong_to_their_level() {
    c(
        "volatile long *p = x; *p = 1; long r = p[0];",
        "= W.VOLATILE R.VOLATILE =",
    );
    c("long *volatile p = x; *p = 1;", "= W.na");
    c(
        "typedef volatile long word; word *p = x; *p = 1;",
        "= W.VOLATILE",
    );
    opencl(
        "volatile global long *p = x; *p = 1;",
        "= W.VOLATILE@Thread",
    );
    opencl(
        "local int t; t = 1; local int *p = &t; *p = 2;",
        "W.na@Thread = W.na@Thread",
    );
    wrong(Dialect::C, "const long *p = x; *p = 1;", "is `const`");
    wrong(Dialect::C, "const int r = 1; r = 2;", "is `const`");
    wrong(
        Dialect::C,
        "volatile long *p = x; long *q = p;",
        "would lose its `volatile`",
    );
    wrong(
        Dialect::C,
        "const long *p = x; long *q = p;",
        "would lose its `const`",
    );
    wrong(
        Dialect::C,
        "int *p = x;",
        "a 32-bit access to 64-bit elements",
    );
    wrong(
        Dialect::Cuda,
        "const int n = 1; int &r = n;",
        "would lose `const`",
    );
}

#[test]
fn what_no_order_is_said_of_is_refused_or_chosen() {
    let undefined = [
        "i++ + i",
        "i + (i = 2)",
        "i++ + i++",
        "(i = 1) + (i = 2)",
        "i = i++",
        "i = ++i",
        "i += i++",
    ];
    for code in undefined {
        wrong(
            Dialect::C,
            &format!("int i = 0; int r = {code};"),
            "in no order",
        );
    }
    c(
        "int i = 0; int r = (i++, i) + 1; i = (i++, 2);",
        "= = = = =",
    );
    for code in ["i = i++", "i << i++", "i += i++"] {
        assert!(
            lowered(Dialect::Cuda, &format!("int i = 0; int r = {code};")).starts_with('='),
            "{code}"
        );
    }
    wrong(Dialect::Cuda, "int i = 0; int r = i++ + i;", "in no order");
    // A single access is before all of the other operand, or behind it.
    c(
        "int r = atomic_load(x) + *y;",
        "either if7 R.SC = R.na = goto11 R.na = R.SC = =",
    );
    c(
        "volatile long *p = x; int r = *p + *p;",
        "= either if8 R.VOLATILE = R.VOLATILE = goto12 R.VOLATILE = R.VOLATILE = =",
    );
    for code in [
        "(atomic_load(x) + *y) + atomic_load(x)",
        "atomic_load(x) + (atomic_load(y) + atomic_load(x))",
        "atomic_load(&a[atomic_load(x)]) + *y",
    ] {
        wrong(Dialect::C, &format!("int r = {code};"), "left open");
    }
    wrong(
        Dialect::C,
        "int i = 0; int r = atomic_load(x) + (i = *y);",
        "left open",
    );
    wrong(Dialect::Cuda, "int r = (x = 1) + y;", "left open");
    c("long r = *x + *y + a[1];", "R.na R.na R.na =");
}

#[test]
fn what_the_languages_forbid_is_refused() {
    let both = [
        ("int t = 1; int t = 2;", "declared twice"),
        ("int r = t; int t = 1;", "no register or parameter `t`"),
        ("{ int t = 1; } int r = t;", "is declared in another block"),
        ("int t = t + 1;", "in its own initialiser"),
        ("int r = 1 / 0;", "division by zero"),
        ("int n = 1; int r = n >> 32;", "a shift by 32 of 32 bits"),
        ("int r = 2147483647 + 1;", "overflows `int`"),
        ("int r = 08;", "is not an integer"),
        ("int r = 99999999999999999999;", "is not an integer"),
        ("int p[2]; p = 0;", "cannot be assigned to"),
        ("int n = 2; int t[n];", "is not a constant"),
        ("int t[2] = {1, 2, 3};", "more values than a `int[2]` has"),
        (
            "switch (1) { case 1: case 1: ; }",
            "there is a `case 1` before",
        ),
        (
            "switch (1) { int t = 1; case 1: ; }",
            "jumps past this declaration",
        ),
        ("switch (1) { if (1) { case 1: ; } }", "labels nothing"),
        ("case 1: ;", "labels nothing"),
        ("static_assert(1 > 2);", "does not hold"),
        ("void v;", "would be a `void`"),
        ("return 1;", "gives no value back"),
        ("unsigned char short c;", "is not a type"),
        ("1 = 2;", "cannot be assigned to"),
        ("int r = sizeof(void);", "has no size"),
    ];
    for (code, part) in both {
        wrong(Dialect::C, code, part);
        wrong(Dialect::Cuda, code, part);
    }
    wrong(Dialect::OpenCl, "local int t = 1;", "has an initialiser");
    wrong(Dialect::OpenCl, "global int t;", "outside of kernels only");
    wrong(Dialect::Cuda, "__shared__ int t = 1;", "has an initialiser");
    wrong(
        Dialect::Cuda,
        "__device__ int t;",
        "outside of functions only",
    );
    wrong(
        Dialect::Cuda,
        "enum E { A }; E e = 1;",
        "a `int` is not a `E`",
    );
    wrong(Dialect::Cuda, "int *p = 1;", "a number is not an address");
    wrong(Dialect::C, "int r = x;", "an address is not a number");
    wrong(Dialect::C, "int &r = *x;", "not allowed here");
}

#[test]
fn what_the_languages_have_and_fencepost_does_not_is_said() {
    for code in ["static int t;", "extern int t[];", "__nv_fp8_e4m3 t;"] {
        wrong(Dialect::Cuda, code, "not supported");
    }
    wrong(Dialect::C, "int (*p)[2];", "not supported");
    wrong(Dialect::C, "goto out;", "has no label `out`");
    wrong(Dialect::C, "a: a:;", "there is a label `a` before");
    wrong(Dialect::C, "goto in; { in: *x = 1; }", "jumps into a block");
    wrong(
        Dialect::C,
        "goto end; int t = 1; end: *x = t;",
        "jumps past a declaration",
    );
    wrong(
        Dialect::Cuda,
        "goto end; int t; end: t = 1;",
        "jumps past a declaration",
    );
    wrong(
        Dialect::Cuda,
        "auto t = {1};",
        "`std::initializer_list` are not supported",
    );
    lowered(Dialect::Cuda, "auto t{1}; int r = {t};");
    wrong(
        Dialect::Cuda,
        "int *p = &(y + 1);",
        "the value of an expression has none",
    );
    wrong(
        Dialect::Cuda,
        "volatile int *p = &y; int r = (*p = 1);",
        "left open",
    );
}

#[test]
fn pointers_to_other_address_spaces_and_atomic_arithmetic_on_what_has_none_are_errors() {
    for code in [
        "local int l; global int *p = (global int *)&l;",
        "local int l; global int *p = &l;",
        "*(local int *)x = 1;",
    ] {
        wrong(Dialect::OpenCl, code, "a pointer to another address space");
    }
    opencl(
        "local int l; int *p = &l; local int *q = (local int *)p; *q = 1;",
        "= = W.na@Thread",
    );
    const REF: &str = "cuda::atomic_ref<bool, cuda::thread_scope_device> a(s); ";
    wrong(
        Dialect::Cuda,
        &format!("__shared__ bool s; {REF} a.fetch_or(1);"),
        "`fetch_or` on a `bool`",
    );
    let pointer = REF.replace("bool", "int *");
    wrong(
        Dialect::Cuda,
        &format!("__shared__ int *s; {pointer} a.fetch_or(1);"),
        "`fetch_or` on a `int*`",
    );
    wrong(
        Dialect::Cuda,
        "__shared__ int *s; atomicAdd(&s, 1);",
        "`atomicAdd` on a `int*`",
    );
}

#[test]
fn what_is_printed_is_read() {
    for dialect in [Dialect::C, Dialect::OpenCl, Dialect::Cuda] {
        let x = if dialect == Dialect::Cuda { "x" } else { "*x" };
        let plain = lowered(dialect, &format!("int r = {x}; int s = {x};"));
        let print = format!("printf(\"%5d, \" \"%-3lld%%\\n\", {x}, 2 * {x});");
        assert_eq!(lowered(dialect, &print), plain.replace(" =", ""));
        assert_eq!(lowered(dialect, "printf(\"100%%\");"), "");
        for (code, part) in [
            (
                "printf();",
                "`printf` formats other than strings are not supported",
            ),
            (
                "printf(x);",
                "`printf` formats other than strings are not supported",
            ),
            ("printf(\"%d\");", "values in the format: 1, given: 0"),
            ("printf(\"\", 1);", "values in the format: 0, given: 1"),
            (
                "printf(\"%a\", 1);",
                "only numbers and addresses are printed here",
            ),
            (
                "printf(\"%*d\", 1, 2);",
                "only numbers and addresses are printed here",
            ),
            (
                "printf(\"%s\", \"a\");",
                "only numbers and addresses are printed here",
            ),
            ("int r = printf(\"a\");", "this has no value"),
            ("int r = 0; printf(\"%d%d\", r++, r);", "in no order"),
        ] {
            wrong(dialect, code, part);
        }
    }
}

#[test]
fn functions_stand_where_they_are_called() {
    c("int f(int v) { return v; } int r = f(1);", "= goto2 =");
    c("void f(long *p) { *p = 1; } f(x); f(y);", "W.na W.na");
    c(
        "int f(int v) { return v; } int i = 0; int r = f(i) + f(i);",
        "= = = goto4 = = goto7 =",
    );
    wrong(
        Dialect::C,
        "int f(int v) { return f(v); } int r = f(1);",
        "calls itself",
    );
    wrong(
        Dialect::C,
        "int f(int v) { return v; } int r = f();",
        "takes 1 arguments, 0 given",
    );
    wrong(
        Dialect::C,
        "int f(int v) { if (v) return v; } int r = f(1);",
        "may end without a value",
    );
    wrong(
        Dialect::C,
        "int t = 1; int f(int v) { return t; } int r = f(1);",
        "`t` is declared in another block",
    );
    wrong(
        Dialect::C,
        "int f(int v) { return v; } int f(long v) { return v; } f(1);",
        "is a function `f` before",
    );
    wrong(
        Dialect::C,
        "int f(int v) { return v; }",
        "nothing that runs",
    );
    wrong(
        Dialect::C,
        "int f(int v) { return v; } int i = 0; int r = f(i++) + i;",
        "in no order",
    );
    // Two plain reads need no order; an effect that others may notice does.
    c(
        "int f(long *p) { return *p; } int r = f(x) + f(y);",
        "R.na = goto3 R.na = goto6 =",
    );
    // No other evaluation comes inside of a function.
    c(
        "int f(volatile long *p) { return *p; } int r = f(x) + f(y);",
        "either if11 R.VOLATILE = goto5 = R.VOLATILE = goto9 = goto19 R.VOLATILE = goto14 = \
        R.VOLATILE = goto18 = =",
    );
    wrong(
        Dialect::C,
        "int f(volatile long *p) { return *p; } int r = f(x) + (f(y) + f(x));",
        "left open",
    );
    wrong(
        Dialect::Cuda,
        "__device__ int f(int &a) { return a++; } int i = 0; int r = f(i) + i;",
        "in no order",
    );
    wrong(
        Dialect::Cuda,
        "__device__ void f(int &a) { a = 1; } const int n = 0; f(n);",
        "would lose `const`",
    );
    wrong(
        Dialect::C,
        "int r = atomic_store(x, 1);",
        "this has no value",
    );
    wrong(
        Dialect::Cuda,
        "__global__ void k(volatile long *x) { int r = *x + (*x + *x); }",
        "left open",
    );
    // Functions that double calls, without other code, and deeply nested calls end with a message.
    let mut doubling = String::from("void f0(void) { }\n");
    (1..40).for_each(|i| doubling += &format!("void f{i}(void) {{ f{0}(); f{0}(); }}\n", i - 1));
    wrong(Dialect::C, &format!("{doubling} f39();"), "too long");
    let mut nested = String::from("int f0(int v) { return v; }\n");
    (1..200).for_each(|i| nested += &format!("int f{i}(int v) {{ return f{}(v); }}\n", i - 1));
    wrong(
        Dialect::C,
        &format!("{nested} int r = f199(1);"),
        "nested too deeply",
    );
    wrong(
        Dialect::C,
        "union U { int a; long b; }; union U u; int r = 1;",
        "write the whole as one integer",
    );
    wrong(
        Dialect::Cuda,
        "short r = *(short *)&x;",
        "it is undefined (ISO C++, basic.lval)",
    );
    wrong(
        Dialect::C,
        "int r = ((unsigned char *)x)[1];",
        "the language has it (C11, 6.5)",
    );
    wrong(
        Dialect::OpenCl,
        "int r = *(global uchar *)x;",
        "take a part of its value",
    );
}

#[test]
fn kernels_are_bound_by_name() {
    let cuda =
        |code: &str, expected: &str| assert_eq!(lowered(Dialect::Cuda, code), expected, "{code}");
    cuda(
        "__global__ void k(long *x) { *x = 1; x[0] = 2; }",
        "W.na W.na",
    );
    cuda(
        "extern \"C\" __global__ void __launch_bounds__(32) k(volatile long *__restrict__ x) { *x = 1; }",
        "W.VOLATILE",
    );
    cuda("__global__ void k(long *x) { x++; }", "= =");
    opencl(
        "kernel void k(global long *x, global const long *y) { *x = *y; }",
        "R.na@Thread W.na@Thread",
    );
    wrong(
        Dialect::Cuda,
        "__global__ void k(int n) { }",
        "nothing is bound to the parameter `n`",
    );
    wrong(
        Dialect::Cuda,
        "__global__ void k(int *x) { }",
        "a 32-bit access to 64-bit elements",
    );
    wrong(
        Dialect::Cuda,
        "__global__ void k(long x) { }",
        "an address is not a number",
    );
    wrong(
        Dialect::Cuda,
        "__global__ int k() { return 1; }",
        "a kernel returns nothing",
    );
    wrong(
        Dialect::Cuda,
        "__global__ void k() { } __global__ void l() { }",
        "a second kernel",
    );
    wrong(
        Dialect::Cuda,
        "__global__ void k() { } y = 1;",
        "a statement outside of the kernel",
    );
    wrong(
        Dialect::OpenCl,
        "kernel void k(local long *x) { }",
        "in other memory",
    );
    wrong(
        Dialect::OpenCl,
        "kernel void k(global const long *x) { *x = 1; }",
        "is `const`",
    );
}

#[test]
fn mistakes_are_named() {
    wrong(
        Dialect::C,
        "atomic_store_explicit(x, 1, memory_order_acquire);",
        "cannot have the order",
    );
    wrong(
        Dialect::C,
        "atomic_stor(x, 1);",
        "did you mean `atomic_store`",
    );
    wrong(Dialect::C, "barrier(0);", "another dialect has it");
    wrong(
        Dialect::OpenCl,
        "atomic_store_explicit(x, 1, memory_order_relaxed, memory_scope_devise);",
        "did you mean",
    );
    wrong(
        Dialect::OpenCl,
        "int r = atomic_load_explicit(x, memory_order_consume);",
        "cannot have the order",
    );
    wrong(Dialect::C, "r = 1;", "no register or parameter `r`");
    wrong(Dialect::C, "int r = 1; *r = 2;", "this is not a pointer");
    wrong(Dialect::C, "break;", "outside of a loop");
    wrong(Dialect::C, "int r = ;", "is not allowed here");
    wrong(Dialect::C, "if (1) { *x = 1;", "not closed");
    wrong(Dialect::C, "atomic_load(x, x);", "takes 1 arguments");
}

#[test]
fn assembly_is_held_against_its_operands() {
    let asm = |text: &str| format!("int r; long q; asm volatile({text});");
    for (text, part) in [
        (
            r#""mov.u32 %0, %1;" : "=r"(r) : "r"(q)"#,
            "is for 32 bits, this operand has 64",
        ),
        (
            r#""ld.u32 %0, [%1];" : "=r"(r) : "l"(&x) : "memory""#,
            "a 32-bit access to 64-bit elements",
        ),
        (
            r#""ld.shared.u32 %0, [%1];" : "=r"(r) : "l"(&x) : "memory""#,
            "not one of that space",
        ),
        (
            r#""ld.u32 %0, [%1];" : "=r"(r) : "l"(q) : "memory""#,
            "is unknown",
        ),
        (
            r#""ld.const.u32 %0, [%1];" : "=r"(r) : "l"(&x) : "memory""#,
            "other proxies",
        ),
        (r#""mov.u32 %0, %1;" : "=r"(r)"#, "no operand `%1`"),
        (r#""mov.u32 %0, %1;" : "=r"(r) : "n"(r)"#, "not a constant"),
        (
            r#""mov.f32 %0, 0;" : "=f"(r)"#,
            "not a supported constraint",
        ),
        (
            r#""barrier.cluster.arrive;" ::: "memory""#,
            "only those of a block",
        ),
        (r#""exit;" ::: "memory""#, "ending the thread"),
        (r#""ret;" ::: "memory""#, "ending the thread"),
        (
            r#""{ .reg .pred p; setp.eq.u32 p, %0, 0; @p exit; }" :: "r"(r)"#,
            "ending the thread",
        ),
        (
            r#""mov.u32 %0, 5;" :: "r"(r)"#,
            "an operand that is an input",
        ),
        (
            r#""ld.global.nc.u64 %0, [%1];" : "=l"(q) : "l"(&x) : "memory""#,
            "non-coherent loads",
        ),
        (
            r#""{ .reg .pred p; isspacep.const p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(r) : "l"(&x)"#,
            "state spaces",
        ),
        (
            r#""getctarank.u64 %0, %1;" : "=r"(r) : "l"(&x)"#,
            "not in shared memory",
        ),
    ] {
        wrong(Dialect::Cuda, &asm(text), part);
    }
    wrong(Dialect::C, "asm(\"\");", "not supported in this dialect");
}

#[test]
fn letters_of_other_alphabets_are_refused_without_harm() {
    wrong(Dialect::C, "int é = 1;", "means nothing here");
    wrong(Dialect::Cuda, "asm volatile(\"é %0 é\" :: \"r\"(1));", "é");
    wrong(Dialect::Cuda, "#define é 1\né;", "without a name");
}

#[test]
fn deep_and_long_input_is_refused_without_harm() {
    let deep = |n: usize| {
        [
            format!("int r = {}1{};", "(".repeat(n), ")".repeat(n)),
            format!("int r = 1{};", "+1".repeat(n)),
            format!("int r = {}1;", "- ".repeat(n)),
            format!(
                "int r = {}1{};",
                "1 ? (int)(2 || ".repeat(n),
                ") : 3".repeat(n)
            ),
            format!("{}*x = 1;", "if (1) ".repeat(n)),
            format!("{}*x = 1;", "while (*x) ".repeat(n)),
            format!(
                "{}*x = 1;{}",
                "do { switch (1) { case 1: ".repeat(n),
                "} } while (0);".repeat(n)
            ),
            format!("{}*x = 1;{}", "{".repeat(n), "}".repeat(n)),
            format!("int r = x{};", "[0]".repeat(n)),
            format!("int r = {}0{};", "x[".repeat(n), "]".repeat(n)),
        ]
    };
    for code in deep(5000) {
        assert!(!lowered(Dialect::C, &code).starts_with('='), "refused");
    }
    // Fencepost reads and lowers the deepest code that it accepts, with the stack of an unoptimised
    // build, too.
    let taken = |code: &String| !lowered(Dialect::C, code).contains("deep");
    for code in 0..deep(0).len() {
        let deepest = (1..100).rev().find(|n| taken(&deep(*n)[code]));
        assert!(
            deepest.is_some_and(|n| n > 8),
            "{}: {deepest:?}",
            deep(2)[code]
        );
    }
}

#[test]
fn scopes_have_all_their_names() {
    for (name, scope) in program::dialect::OPENCL_SCOPES {
        let code = format!("atomic_store_explicit(x, 1, memory_order_relaxed, {name});");
        assert_eq!(lowered(Dialect::OpenCl, &code), format!("W.RLX@{scope:?}"));
    }
    assert!(
        program::dialect::OPENCL_SCOPES
            .iter()
            .any(|s| s.1 == Scope::Sys)
    );
}

/// Structures, arrays of arrays, scoped enumerations: refused forms next to modelled ones.
#[test]
fn structures_are_read_as_the_language_has_them() {
    let node = "struct Node { int data; long at[2]; volatile int v; struct Node *next; };";
    let mut unlike = Vec::new();
    let mut wrong = |dialect, code: &str, part: &str| {
        let said = lowered(dialect, &format!("{node} {code}"));
        if !said.contains(part) {
            unlike.push(format!("{code}: expected {part}: {said}"));
        }
    };
    for (code, part) in [
        ("struct Node t; int r = t;", "this has no value"),
        ("struct Node t; int r = t.date;", "did you mean `data`"),
        ("struct Node t; int r = t->data;", "this is not a pointer"),
        ("struct Node t, *p = &t; int r = p.data;", "write `p->…`"),
        ("struct Node t[2]; int r = t.data;", "write `t[0].…`"),
        ("struct Node t; t = 1;", "this is not a `Node` in memory"),
        ("struct Node t, u; t = u;", "volatile or atomic members"),
        (
            "struct Node t; int *p = (int *)&t;",
            "a pointer to `Node` as one to `int`",
        ),
        ("struct Node t; int *p = &t;", "a `Node*` is not a `int*`"),
        (
            "struct Other { int a; } o; struct Node *p = &o;",
            "a `Other*` is not a `Node*`",
        ),
        (
            "struct Node t = {1, {2, 3}, 4, 0, 5};",
            "more values than a `Node` has",
        ),
        ("struct Node t = {{1}};", "a list for one value"),
        ("struct Node t; t.at[3] = 1;", "element 3 of an array of 2"),
        ("struct Node t; t.data.x = 1;", "a `int` has no member `x`"),
        (
            "struct Late *p; int r = p->a;",
            "a `Late` has no member `a`",
        ),
        ("struct Late t;", "a `Late` has no size here"),
        ("struct Self { int a; struct Self s; };", "no size here"),
        ("struct Empty { }; int r = 1;", "a structure of 1 to"),
        (
            "struct Bits { int a : 3; };",
            "bit-fields are not supported",
        ),
        ("struct Bits { int : 3; };", "bit-fields are not supported"),
        (
            "struct Odd { long double f; };",
            "floating-point types of more than 64 bits are not supported",
        ),
        ("struct Odd { int a, a; };", "a second member of that name"),
        (
            "struct __attribute__((packed)) P { int a; };",
            "alignment and packing of structures",
        ),
        (
            "int t[2] = { [1] = 1 };",
            "designated elements are not supported",
        ),
        (
            "struct Node t = { .data = 1, 2 };",
            "among those with names",
        ),
        (
            "struct Node t = { .data = 1, .data = 2 };",
            "has two values",
        ),
        ("struct Node t = { .date = 1 };", "has no member `date`"),
        (
            "struct Node t, u; int r = (t = u).data;",
            "this use of a structure is not supported",
        ),
        ("const struct Node t = {1}; t.data = 2;", "is `const`"),
        (
            "int f(struct Node t) { return 1; } struct Node t; int r = f(t);",
            "with volatile or atomic members",
        ),
        ("int m[2][2]; int r = m[0];", "an address is not a number"),
        ("int m[2][2]; m[0] = 0;", "cannot be assigned to"),
        (
            "int m[2][2]; int r = m[0][5];",
            "element 5 of an array of 2",
        ),
        (
            "int m[2][2] = {1, 2, 3, 4, 5};",
            "more values than a `int[2][2]` has",
        ),
        ("int m[][2] = {1, 2, 3, 4};", "an array without a size"),
        ("int m[99999][99999];", "an array has 1 to"),
        (
            "struct Big { int a[65536]; int b; };",
            "a structure of 1 to",
        ),
    ] {
        wrong(Dialect::C, code, part);
    }
    for (code, part) in [
        (
            "struct A { int a; }; struct B { int b; }; struct Sub : A, B { int c; };",
            "a second base class",
        ),
        (
            "struct M { int a; int get(); }; M m = {1}; int r = m.get();",
            "is not an atomic reference",
        ),
        (
            "struct M { int a; M() : b(1) { } }; M m;",
            "a `M` has no member `b`",
        ),
        (
            "struct M { int a; virtual int get() { return a; } };",
            "such members of classes are not supported",
        ),
        (
            "struct M { static int a; };",
            "variables that the objects of a class share are not supported",
        ),
        (
            "struct M { cuda::latch<cuda::thread_scope_block> a; };",
            "a member of a class that is made with a count",
        ),
        ("struct M { int &a; };", "a reference in a structure"),
        (
            "Node t; Node &u = t; const Node &v = t; v.data = 1;",
            "is `const`",
        ),
        (
            "enum class E { A, B }; int r = E::A;",
            "a `E` is not a `int`",
        ),
        ("enum class E { A, B }; E e = 1;", "a `int` is not a `E`"),
        (
            "enum class E { A, B }; int r = A;",
            "no register or parameter `A`",
        ),
        (
            "enum class E { A, B }; E e = E::A; if (e) x = 1;",
            "a `E` is not a truth value",
        ),
        (
            "enum class E { A, B }; E e = E::A; int r = !e;",
            "a `E` is not a truth value",
        ),
        (
            "enum class E { A, B }; E e = E::A; int r = e + 1;",
            "no such operation",
        ),
        (
            "enum class E { A }; enum class F { B }; int r = E::A == F::B;",
            "no comparison of `E` and `F`",
        ),
        (
            "enum class E { A }; E e = E::A; switch (e) { case 0: x = 1; }",
            "a label is not a constant",
        ),
        (
            "enum E : unsigned char { A = 300 }; int r = A;",
            "not a value of the underlying type",
        ),
    ] {
        wrong(Dialect::Cuda, code, part);
    }
    assert!(unlike.is_empty(), "{}", unlike.join("\n"));
}

#[test]
fn members_are_accessed_as_their_types_say() {
    let read = |dialect, code: &str| {
        lowered(
            dialect,
            &format!("struct N {{ int d; volatile int v; long at[2]; }}; {code}"),
        )
    };
    assert_eq!(
        read(Dialect::C, "struct N t; t.d = 1; t.v = 2; t.at[1] = 3;"),
        "W.na W.VOLATILE W.na"
    );
    assert_eq!(
        read(
            Dialect::C,
            "struct N t; volatile struct N *p = &t; p->d = 1; int r = p->at[0];"
        ),
        "= W.VOLATILE R.VOLATILE ="
    );
    assert_eq!(
        read(
            Dialect::C,
            "struct A { atomic_int a; int b; } t; t.a = 1; t.a++; t.b = 2;"
        ),
        "W.SC Add.SC/SC W.na"
    );
    assert_eq!(
        read(
            Dialect::Cuda,
            "struct P { int a, b[2]; } t = {1}, u; u = t;"
        ),
        "W.na W.na W.na R.na R.na R.na W.na W.na W.na"
    );
    // An element of an array of arrays is one access; a whole inner array is not an access.
    assert_eq!(
        read(Dialect::C, "int m[2][2]; int *p = m[1]; m[1][0] = p[1];"),
        "= R.na W.na"
    );
}

#[test]
fn objects_of_classes_are_where_the_code_says() {
    let cuda = |code: &str, ops: &str| assert_eq!(lowered(Dialect::Cuda, code), ops, "{code}");
    const KERNEL: &str = "__global__ void k() ";
    let atomic = "cuda::atomic<int, cuda::thread_scope_device>";
    cuda(
        &format!("__shared__ {atomic} f; f = 1; int r = f; f++;"),
        "W.SC@Gpu R.SC@Gpu = Add.SC@Gpu/SC@Gpu",
    );
    cuda(
        &format!(
            "__device__ {atomic} f{{3}}, g; {KERNEL} {{ f.store(g, cuda::memory_order_release); }}"
        ),
        "R.SC@Gpu W.REL@Gpu",
    );
    cuda(
        &format!("__device__ int v = 1; {KERNEL} {{ v = 2; int v = 3; x = v; }}"),
        "W.na = W.na",
    );
    cuda(
        "using R = cuda::atomic_ref<long>; R r(x), s{y}; auto t = r; auto &u = s; t = 1; u.load();",
        "W.SC@Sys R.SC@Sys",
    );
    cuda(
        "__shared__ cuda::barrier<cuda::thread_scope_block> b[2]; init(&b[1], 2); init(b, 1);",
        "W.BEGINS+OBJECT W.BEGINS+OBJECT",
    );
    wrong(
        Dialect::Cuda,
        &format!("__shared__ {atomic} f; auto r = f;"),
        "an object, which has no copies",
    );
    wrong(Dialect::Cuda, &format!("{atomic} f(1);"), "of one thread");
    wrong(
        Dialect::Cuda,
        "__shared__ cuda::barrier<cuda::thread_scope_block> b; b = 1;",
        "is an object of a class",
    );
    wrong(
        Dialect::Cuda,
        "__shared__ cuda::atomic<float> f;",
        "`float` is not an integer type",
    );
    wrong(
        Dialect::Cuda,
        "__shared__ cuda::barrier<cuda::thread_scope_block>::token t;",
        "expected `arrival_token`",
    );
    wrong(
        Dialect::Cuda,
        &format!("int v = 1; {KERNEL} {{ v = 2; }}"),
        "a variable of the host",
    );
    wrong(
        Dialect::Cuda,
        &format!("__device__ int v = y; {KERNEL} {{ }}"),
        "not an initial value",
    );
    wrong(
        Dialect::Cuda,
        &format!("__device__ int v[2] = {{1, 2, 3}}; {KERNEL} {{ }}"),
        "more values than a `int[2]` has",
    );
    wrong(
        Dialect::Cuda,
        &format!("__device__ int x; {KERNEL} {{ }}"),
        "is the name of a location",
    );
    wrong(
        Dialect::Cuda,
        "__device__ int v; v = 1;",
        "outside of functions",
    );
    wrong(
        Dialect::Cuda,
        "extern __shared__ int s[];",
        "the size of `s` is not in the code",
    );
    wrong(
        Dialect::Cuda,
        "void f(cuda::atomic_ref<int> r) { r = 1; } f(3);",
        "this cannot be assigned to",
    );
    wrong(
        Dialect::Cuda,
        "void f(cuda::atomic_ref<long> r) { } cuda::atomic_ref<long, cuda::thread_scope_block> r(x); f(r);",
        "not a reference of the type",
    );
    wrong(
        Dialect::OpenCl,
        "local int v; kernel void k() { }",
        "of no thread",
    );
}

#[test]
fn structures_without_names_are_memory_of_the_thread() {
    let cuda = |code: &str, ops: &str| assert_eq!(lowered(Dialect::Cuda, code), ops, "{code}");
    const P: &str = "struct P { int a, b; }; ";
    cuda(
        &format!("{P}P f(int v) {{ return {{v, 2}}; }} int r = f(1).b;"),
        "W.na W.na goto3 R.na =",
    );
    cuda(
        &format!("{P}int f(P p) {{ return p.b; }} int r = f(P{{.b = 2}});"),
        "W.na W.na R.na R.na W.na W.na R.na = goto9 =",
    );
    cuda(
        "int2 v = make_int2(1, 2); v = int2{3};",
        "W.na W.na R.na R.na W.na W.na W.na W.na R.na R.na W.na W.na",
    );
    wrong(
        Dialect::Cuda,
        "int2 v = make_int2(1);",
        "is made of 2 values, 1 given",
    );
    wrong(
        Dialect::Cuda,
        "int r = make_int2(1, 2);",
        "a `int2` is not a number",
    );
    wrong(
        Dialect::Cuda,
        &format!("{P}P f(int v) {{ if (v) return P{{v}}; }} f(1);"),
        "may end without a value",
    );
    wrong(
        Dialect::Cuda,
        &format!("{P}P f() {{ return; }} f();"),
        "this function returns a structure",
    );
    wrong(
        Dialect::Cuda,
        &format!("{P}int f() {{ return {{1, 2}}; }} f();"),
        "nothing says what type",
    );
    opencl(
        "int2 v = (int2)(1, 2); int r = v.y;",
        "W.na@Thread W.na@Thread R.na@Thread R.na@Thread W.na@Thread W.na@Thread R.na@Thread =",
    );
    wrong(
        Dialect::OpenCl,
        "int2 v = (int2)(1, 2, 3);",
        "is made of 2 values, 3 given",
    );
    // A comma inside further parentheses is an operator.
    opencl(
        "int2 v = (int2)((1, 2));",
        "W.na@Thread W.na@Thread R.na@Thread R.na@Thread W.na@Thread W.na@Thread",
    );
    wrong(
        Dialect::OpenCl,
        "longlong2 v;",
        "there is no `longlong2` in OpenCL C",
    );
    wrong(Dialect::C, "int2 v;", "there is no `int2` in C");
    opencl(
        "int8 v; v.s5 = 3; int16 w; w.sf = v.s5;",
        "W.na@Thread R.na@Thread W.na@Thread",
    );
    wrong(Dialect::OpenCl, "int8 v; v.s8 = 3;", "no member `s8`");
    wrong(Dialect::OpenCl, "int7 v;", "`v` is not allowed here");
    wrong(Dialect::Cuda, "int8 v;", "`int8`");
}

#[test]
fn types_of_other_languages_are_told_apart() {
    for (code, part) in [
        ("uint r = 1;", "there is no `uint` in C"),
        ("uchar *p;", "OpenCL C has it"),
        ("int r = (ulong)1;", "there is no `ulong` in C"),
        ("int r = sizeof(ushort);", "there is no `ushort` in C"),
        ("half r;", "OpenCL C and CUDA C++ have it"),
        ("__shared__ int r;", "there is no `__shared__` in C"),
        ("local int r;", "there is no `local` in C"),
        ("__int128 r;", "integers of 128 bits are not supported"),
        (
            "long double r;",
            "floating-point types of more than 64 bits are",
        ),
        ("int float = 1;", "`float` is a keyword"),
        ("enum { int };", "`int` is a keyword"),
        ("struct while { int a; };", "`while` is a keyword"),
    ] {
        wrong(Dialect::C, code, part);
    }
    for (code, part) in [
        ("uchar c = 1;", "there is no `uchar` in CUDA C++"),
        ("_Bool b;", "there is no `_Bool` in CUDA C++"),
        ("_Atomic int b;", "there is no `_Atomic` in CUDA C++"),
        ("kernel void k() { }", "there is no `kernel` in CUDA C++"),
        ("register int r;", "there is no `register` in CUDA C++"),
        ("__nv_fp8_e4m3 h;", "floating-point types are not supported"),
        ("typedef int bool;", "`bool` is a keyword"),
        ("using int = long;", "`int` is a keyword"),
    ] {
        wrong(Dialect::Cuda, code, part);
    }
    for (code, part) in [
        ("int32_t r;", "there is no `int32_t` in OpenCL C"),
        ("atomic_char r;", "there is no `atomic_char` in OpenCL C"),
        ("long long r;", "`long long` is reserved in OpenCL C"),
        (
            "__global__ void k() { }",
            "there is no `__global__` in OpenCL C",
        ),
        ("typedef long uint;", "`uint` is a keyword"),
        ("register int r;", "there is no `register` in OpenCL C"),
    ] {
        wrong(Dialect::OpenCl, code, part);
    }
    // In languages in which they are not keywords, these words may name variables and types.
    c(
        "int half = 1; half = half * 2; int local = (half) + 1;",
        "= = =",
    );
    c(
        "typedef short uint; uint r = 70000; typedef long int2; int2 s = r;",
        "= =",
    );
    c("typedef signed char bool; bool r = 2;", "=");
}

#[test]
fn variables_of_address_spaces_stand_where_the_language_has_them() {
    const NESTED: &str = "inside of a block or a function";
    for (code, part) in [
        ("if (*x) { local int t; t = 1; }", NESTED),
        ("{ local int t; }", NESTED),
        (
            "generic int t = 1;",
            "in the generic address space, in which nothing is",
        ),
        (
            "int *__generic p = 0;",
            "in the generic address space, in which nothing is",
        ),
        (
            "int f(generic int n) { return n; } int r = f(1);",
            "in the generic address space, in which nothing is",
        ),
        ("for (local int i = 0; ; ) ;", NESTED),
        ("void f() { local int t; t = 1; } f();", NESTED),
        ("kernel void k() { { constant int t = 1; } }", NESTED),
        ("kernel void k() { constant int t; }", "has no value"),
        ("constant int t; kernel void k() { }", "has no value"),
        (
            "kernel void k() { constant int t = 1; t = 2; }",
            "constant memory",
        ),
        (
            "kernel void k() { global int *global p; }",
            "outside of kernels only",
        ),
        (
            "kernel void k(local int t) { }",
            "a parameter with an address space",
        ),
        (
            "void f(global int t) { } f(1);",
            "a parameter with an address space",
        ),
    ] {
        wrong(Dialect::OpenCl, code, part);
    }
    opencl(
        "kernel void k() { local int t; t = 1; constant int c[2] = {1, 2}; t = c[1]; }",
        "W.na@Thread R.na@Thread W.na@Thread",
    );
    assert_eq!(
        lowered(Dialect::Cuda, "if (x) { __shared__ int t; t = 1; }"),
        "R.na if3 W.na"
    );
}

#[test]
fn sizes_are_those_of_the_types_of_operators() {
    let size = |dialect, code: &str| {
        let of = format!(
            "char c = 1, d = 2; short s = 3; long l = 4; bool b = 1; static_assert({code});"
        );
        lowered(dialect, &of)
    };
    c("enum { A }; static_assert(sizeof(A) == 4);", "");
    assert_eq!(
        lowered(
            Dialect::Cuda,
            "enum E : short { A }; static_assert(sizeof(A) == 2);"
        ),
        ""
    );
    assert_eq!(
        lowered(
            Dialect::Cuda,
            "void f(short n) { static_assert(sizeof(n) == 2); } f(1);"
        ),
        ""
    );
    let same = [
        "sizeof(+c) == 4",
        "sizeof(c + d) == 4",
        "sizeof(c << l) == 4",
        "sizeof(l << c) == 8",
        "sizeof(~b) == 4",
        "sizeof(1 ? c : s) == 4",
        "sizeof(1 ? c : l) == 8",
        "sizeof(c, d) == 1",
        "sizeof(c = 5) == 1",
        "sizeof(c += l) == 1",
        "sizeof(c++) == 1",
        "sizeof(--s) == 2",
        "sizeof(-s) == 4",
        "sizeof(1u) == 4",
        "sizeof(sizeof(c)) == 8",
        "sizeof((short)l) == 2",
        "sizeof(1L) == 8",
        "sizeof(&c - &c) == 8",
    ];
    for (dialect, sizes) in [
        (Dialect::C, [4, 4, 4, 4, 4]),
        (Dialect::OpenCl, [4, 4, 4, 4, 4]),
        (Dialect::Cuda, [1, 1, 1, 1, 1]),
    ] {
        let differ = ["1 ? c : d", "!c", "c == d", "'a'", "c && d"];
        let differ = differ
            .iter()
            .zip(sizes)
            .map(|(of, n)| format!("sizeof({of}) == {n}"));
        for code in same
            .iter()
            .map(|s| s.to_string())
            .chain(differ)
            .filter(|code| !code.contains('&') || code.contains("&&"))
        {
            assert!(
                !size(dialect, &code).contains("error"),
                "{code} in {dialect}: {}",
                size(dialect, &code)
            );
        }
    }
}

/// Constructs that the languages have and Fencepost does not, and constructs of other languages:
/// each gets a message that names it, and not a syntax error.
#[test]
fn constructs_that_are_not_supported_are_named() {
    let mut unlike = Vec::new();
    let mut said = |dialect: Dialect, rows: &[(&str, &str)]| {
        for (code, part) in rows {
            let message = lowered(dialect, code);
            if !message.contains(part) || message.contains("is not allowed here") {
                unlike.push(format!("{dialect}: {code}: expected {part}: {message}"));
            }
        }
    };
    let everywhere = [
        (
            "int r = 1.f + 0x1p3;",
            "this floating-point number is not supported",
        ),
        ("goto in; { in: ; }", "jumps into a block"),
        ("int r = \"abc\"[0];", "strings are not supported"),
        ("int r = 'ab';", "this character is not supported"),
        (
            "union { int a; long b; } u;",
            "such unions are not supported",
        ),
        (
            "int (*f)[2];",
            "pointers to arrays, and to functions in OpenCL C, are not supported",
        ),
        (
            "void f(int a, ...) { }",
            "functions of any number of arguments are not supported",
        ),
        ("struct S { int a : 3; };", "bit-fields are not supported"),
        (
            "int r = ({ int t = 1; t; });",
            "statements in expressions are not supported",
        ),
        (
            "int r = 1 ? : 2;",
            "choices without a middle are not supported",
        ),
        (
            "switch (1) { case 1 ... 3: ; }",
            "ranges of labels are not supported",
        ),
        (
            "__attribute__((packed)) int r;",
            "such attributes are not supported",
        ),
        ("int n = 2; int t[n];", "is not a constant"),
        (
            "int t[2] = { [1] = 2 };",
            "designated elements are not supported",
        ),
    ];
    for dialect in [Dialect::C, Dialect::OpenCl, Dialect::Cuda] {
        said(dialect, &everywhere);
    }
    said(
        Dialect::C,
        &[
            (
                "int r = _Generic(1, int: 5);",
                "generic selections are not supported",
            ),
            (
                "int r = _Alignof(int);",
                "alignments of your own are not supported",
            ),
            (
                "_Alignas(8) int r;",
                "alignments of your own are not supported",
            ),
            ("_Thread_local int r;", "such variables are not supported"),
            ("typeof(1) r;", "types of expressions are not supported"),
            (
                "_Noreturn void f(void) { }",
                "functions that do not return are not supported",
            ),
            ("_Complex c;", "floating-point types are not supported"),
            ("int r = alignof(int);", "there is no `alignof` in C"),
            ("decltype(1) r;", "there is no `decltype` in C"),
            ("class A { int a; };", "there is no `class` in C"),
            (
                "template <class T> void f();",
                "there is no `template` in C",
            ),
            ("constexpr int n = 1;", "there is no `constexpr` in C"),
            (
                "int r = static_cast<int>(1);",
                "there is no `static_cast` in C",
            ),
            ("if (int t = 1) ;", "a declaration is not a condition in C"),
            ("[[likely]] int r;", "C has no attributes in `[[ ]]`"),
            ("int r = threadIdx.x;", "there is no `threadIdx` in C"),
            ("sampler_t s;", "there is no `sampler_t` in C"),
            ("throw 1;", "there is no `throw` in C"),
        ],
    );
    said(
        Dialect::OpenCl,
        &[
            ("image2d_t i;", "this cannot be an image"),
            (
                "kernel void k(read_only image2d_t i) { }",
                "nothing is bound to the image `i`",
            ),
            (
                "kernel void k(read_only image3d_t i) { }",
                "nothing is bound to the image `i`",
            ),
            (
                "kernel void k(read_only image2d_depth_t i) { }",
                "images of this shape are not supported",
            ),
            (
                "kernel void k(read_only global int *x) { }",
                "this parameter is not an image",
            ),
            ("read_only int i;", "`read_only` is said of a variable"),
            ("pipe int p;", "`pipe` is said of a variable"),
            (
                "kernel void k(read_write pipe int p) { }",
                "a kernel cannot read from and write to the same pipe",
            ),
            (
                "kernel void k(read_only pipe int p) { }",
                "nothing is bound to the pipe `p`",
            ),
            ("int r = read_pipe(x, &y);", "this is not a pipe"),
            (
                "int r = read_imagei(x, 0x20, 0).x;",
                "a sampler that has a linear filter is not supported",
            ),
            (
                "local reserve_id_t i;",
                "a reservation outside of private memory is not supported",
            ),
            (
                "event_t e = async_work_group_copy(x, y, 1, 0);",
                "asynchronous copies are not supported",
            ),
            ("int4 v = vload4(0, x);", "`vload4` is not supported"),
            ("vstore4(1, 0, x);", "`vstore4` is not supported"),
            (
                "int r = convert_int4(1);",
                "`convert_int4` is not supported",
            ),
            ("int r = as_char(1);", "`as_char` of a `int`"),
            (
                "int r = read_imagei(1);",
                "`read_imagei` takes 3 arguments, 1 given",
            ),
            ("int r = read_imagei(x, 0).x;", "this is not an image"),
            ("read_imageh(x, 0);", "`read_imageh` is not supported"),
            ("__shared__ int r;", "there is no `__shared__` in OpenCL C"),
            ("if (int t = 1) ;", "a declaration is not a condition in C"),
            (
                "template <int n> void f();",
                "there is no `template` in OpenCL C",
            ),
            (
                "char c = 1; int r = 300; r = hadd(c, r);",
                "operands of different types",
            ),
        ],
    );
    said(
        Dialect::Cuda,
        &[
            (
                "int r = alignof(int);",
                "alignments of your own are not supported",
            ),
            (
                "alignas(3) int r;",
                "alignments of your own are not supported",
            ),
            (
                "__align__(512) int r;",
                "alignments of your own are not supported",
            ),
            (
                "struct S { alignas(8) int a; };",
                "alignments of members are not supported",
            ),
            (
                "auto pipe = cuda::make_pipeline(1);",
                "this is not a supported pipeline",
            ),
            (
                "int r = cuda::make_pipeline();",
                "a pipeline is not a value here",
            ),
            (
                "auto pipe = cuda::make_pipeline(); pipe.quit();",
                "`quit` of a pipeline is not supported",
            ),
            (
                "auto pipe = cuda::make_pipeline(); auto copy = pipe;",
                "`pipe` is not a value",
            ),
            (
                "cuda::pipeline<cuda::thread_scope_device> pipe;",
                "this declaration of a pipeline is not supported",
            ),
            (
                "cuda::pipeline_shared_state<cuda::thread_scope_block, 2> s;",
                "this declaration of a pipeline",
            ),
            (
                "auto g = cg::this_cluster(); int *p = g.map_shared_rank(&x, 1);",
                "`x` is not in shared memory",
            ),
            (
                "for (int i = 0; int t = i; ) ;",
                "declarations as the condition of `for` are not supported",
            ),
            (
                "struct A { virtual void f(); };",
                "such members of classes are not supported",
            ),
            ("int *p = new int;", "memory from the heap is not supported"),
            ("delete p;", "memory from the heap is not supported"),
            ("throw 1;", "exceptions are not supported"),
            ("try { } catch (int e) { }", "exceptions are not supported"),
            (
                "thread_local int r;",
                "variables of threads of the host are not supported",
            ),
            ("int r = not 0;", "operators in words are not supported"),
            ("int r = 1 and 0;", "operators in words are not supported"),
            ("[[clang::opt]] int r;", "such attributes are not supported"),
            (
                "__global__ void __cluster_dims__(2, 1, 1) k() { }",
                "shapes of launches in the code are not supported",
            ),
            (
                "__managed__ int r;",
                "managed variables of the code are not supported",
            ),
            ("dim3 d;", "variables of type `dim3` are not supported"),
            ("extern int r;", "`extern` declarations are not supported"),
            (
                "int r = L'a';",
                "strings and characters of other character sets are not supported",
            ),
            ("int r = typeid(1);", "types at run time are not supported"),
            (
                "namespace mine { int r; }",
                "namespaces of your own are not supported",
            ),
        ],
    );
    assert!(unlike.is_empty(), "{}", unlike.join("\n"));
    // Constructs without an effect that a model could see.
    let cuda = |code: &str, ops: &str| assert_eq!(lowered(Dialect::Cuda, code), ops, "{code}");
    cuda(
        "[[maybe_unused]] int r = 1; if (r) [[likely]] { r = 2; }",
        "= if3 =",
    );
    cuda(
        "__device__ __noinline__ __attribute__((noinline, cold)) int f() { return 1; } int r = f();",
        "=",
    );
    cuda(
        "__global__ void __launch_bounds__(32, 2) k() { x = 1; }",
        "W.na",
    );
    cuda("int r = 1'000 + '\\x41' + '\\101' + '\\'';", "=");
    cuda(
        "int r = 0; if (int t = r; t > 0) r = t; while (int t = r) r = t; switch (int t = r) { case 1: ; }",
        "= = if4 = = if7 goto8 goto10 = goto4 = if13 goto13",
    );
    opencl(
        "kernel __attribute__((reqd_work_group_size(2, 1, 1))) void k() { *x = 1; }",
        "W.na@Thread",
    );
}

/// A copy that a later turn waits for could be made then, beside a write to its source.
#[test]
fn a_copy_behind_a_wait_in_a_loop_is_refused() {
    let errors = |turn: &str| {
        let text = format!(
            "name = \"K\"\ndialect = \"opencl\"\ncondition = 'out[0] == 1'\n[memory]\n\
             g = {{ init = [1, 2] }}\nout = {{ init = [0, 0] }}\n\
             [kernel]\ngrid = 1\nblock = 2\ncode = '''\n\
             kernel void k(global int *g, global int *out) {{\n\
             local int l[2];\nevent_t e = async_work_group_copy(l, g, 2, 0);\n\
             for (int k = 0; k < 2; k++) {{ {turn} }}\n}}\n'''\n"
        );
        match crate::litmus::parse("k.toml", text.as_bytes()) {
            Ok(_) => String::new(),
            Err(errors) => errors.iter().map(|e| e.message.clone()).collect(),
        }
    };
    let (begin, wait) = (
        "e = async_work_group_copy(l, g, 2, 0);",
        "wait_group_events(1, &e);",
    );
    assert_eq!(errors(&format!("{begin} {wait}")), "");
    let refused = "an asynchronous copy behind a wait in a loop is not supported";
    assert_eq!(errors(&format!("{wait} {begin}")), refused);
}
