//! The instruction table: what instructions become, and what is wrong with those that become nothing.

use super::*;
use crate::isa::{Object, SymbolKind};
use diag::SourceFile;
use program::{BinOp, Dialect, Expr, LocationKind, Machine, Op, Place, Program, Scope, Seat, Thread, Ty};

/// Lowers code against the locations x, a (three elements), c (constant), param (a parameter of three elements), s (shared), b (an mbarrier object), words, gw and sw,
/// declared as two words of 32 bits and as four, global and shared, gg and ss (two elements, global and shared), and aliased, which has a second address.
fn lower_with(code: &str, env: &Env) -> Result<Program, String> {
    let mut sink = Sink::new(&SourceFile::new("c", code));
    let mut symbols = Symbols::default();
    for (name, elements, space) in [
        ("x", 1, program::Space::Global),
        ("a", 3, program::Space::Global),
        ("c", 1, program::Space::Constant),
        ("param", 3, program::Space::Param),
        ("s", 1, program::Space::Shared),
        ("gg", 2, program::Space::Global),
        ("ss", 2, program::Space::Shared),
        ("aliased", 2, program::Space::Global),
    ] {
        let object = Object { init: vec![Init::Int(0); elements], space, ..Object::scalar(0) };
        symbols.declare(name, Span::default(), SymbolKind::Object(object), &mut sink);
    }
    let of = symbols.find("aliased").expect("it was declared");
    let alias = SymbolKind::Alias { of, proxy: program::Proxy::Generic };
    symbols.declare("second", Span::default(), alias, &mut sink);
    let (ty, class) = (Some((program::mbarrier::WORD, Span::default())), Some(program::Class::Mbarrier));
    let object = Object { space: program::Space::Shared, ty, class, ..Object::scalar(0) };
    symbols.declare("b", Span::default(), SymbolKind::Object(object), &mut sink);
    let ty = Some((Ty::U32, Span::default()));
    for (name, elements, space) in [
        ("words", 2, program::Space::Global),
        ("gw", 4, program::Space::Global),
        ("sw", 4, program::Space::Shared),
    ] {
        let words = Object { init: vec![Init::Int(0); elements], space, ty, declared: true, ..Object::scalar(0) };
        symbols.declare(name, Span::default(), SymbolKind::Object(words), &mut sink);
    }
    // Bytes, and a word of 64 bits, an mbarrier object and two of 16 bits.
    let ty = Some((Ty { bits: 8, signed: false }, Span::default()));
    let shared = Object { space: program::Space::Shared, ty, declared: true, ..Object::scalar(0) };
    let bytes = Object { init: vec![Init::Int(0); 32], cut: true, ..shared.clone() };
    let field = |path: &str, offset, bits, mbarrier| program::Field {
        path: path.into(),
        offset,
        ty: Ty { bits, signed: false },
        boolean: false,
        mbarrier,
    };
    let fields = vec![
        field(".key", 0, 64, false),
        field(".bar", 8, 64, true),
        field(".h[0]", 16, 16, false),
        field(".h[1]", 18, 16, false),
    ];
    let fields = Some(program::Layout::record(None, fields, 24));
    let structure = Object { init: vec![Init::Int(0); 4], fields, ..shared };
    for (name, object) in [("bytes", bytes), ("structure", structure)] {
        symbols.declare(name, Span::default(), SymbolKind::Object(object), &mut sink);
    }
    let unit = Unit::parse(MappedText::verbatim(code, 0), &mut sink);
    unit.settle_types(env.strict, &mut symbols, &mut sink);
    let lowered = unit.lower(env, &symbols, &mut sink);
    let untyped = [Some(lowered.untyped().to_vec())];
    let open = symbols.open();
    let (name, place, source) = ("P0".into(), Place::device(0, 0), String::new());
    let thread = Thread { name, place, regs: lowered.regs, code: lowered.code, source };
    let mut program = Program {
        dialect: Dialect::Ptx,
        threads: vec![thread],
        locations: symbols.into_locations(),
        machine: Machine::full(),
        host: None,
    };
    if sink.errors() == 0 {
        pointers::resolve(&mut program, &untyped, &open, &mut sink);
    }
    refuse_accumulators(&program, &mut sink);
    if sink.errors() == 0 {
        Ok(program)
    } else {
        Err(sink.into_diagnostics().iter().map(|d| format!("{}: {d}\n", d.id)).collect())
    }
}

fn env() -> Env {
    Env { strict: true, cluster: vec![0], ..Env::default() }
}

#[track_caller]
fn lower(code: &str) -> Program {
    lower_with(code, &env()).unwrap_or_else(|e| panic!("{code}\n{e}"))
}

#[track_caller]
fn short(code: &str) -> String {
    let program = lower(code);
    print(&program.threads[0], &program).unwrap_or_else(|e| panic!("{code}\n{e:?}"))
}

#[track_caller]
fn fails(code: &str, id: &str) {
    match lower_with(code, &env()) {
        Ok(_) => panic!("{code}: expected {id}"),
        Err(text) => assert!(text.starts_with(&format!("{id}: ")), "{code}: expected {id}, found\n{text}"),
    }
}

#[test]
fn compilers_spelling_and_short_form_mean_the_same() {
    for (long, expected) in [
        ("ld.global.relaxed.gpu.s64 %r1, [x];", "ld.relaxed.gpu r1, x\n"),
        ("ld.relaxed.gpu.global.L1::evict_first.s64 %r1, [x];", "ld.relaxed.gpu r1, x\n"),
        ("ld.global.ca.s64 %r1, [x]", "ld.weak r1, x\n"),
        ("ld.volatile.global.s64 %r1, [x]", "ld.volatile r1, x\n"),
        ("ld.mmio.relaxed.sys.s64 %r1, [x]", "ld.mmio.relaxed.sys r1, x\n"),
        ("st.u32 [a+8], 7;", "st.weak a[2], 7\n"),
        ("ld.global.s64 { %r1 }, [ x + 0 ];", "ld.weak r1, x\n"),
        ("st.global.s64 [ x + 0 ], { 7 };", "st.weak x, 7\n"),
        ("st.release.cluster.shared::cta.u32 [s], 7;", "st.release.cluster s, 7\n"),
        ("atom.global.add.s64 %r1, [x], 1;", "atom.relaxed.gpu.add r1, x, 1\n"),
        ("atom.acq_rel.sys.cas.b64 %r1, [x], 0, 1", "atom.acq_rel.sys.cas r1, x, 0, 1\n"),
        ("atom.exch.release.cta _, x, 3", "atom.release.cta.exch _, x, 3\n"),
        ("red.release.gpu.global.inc.u32 [x], 3", "red.release.gpu.inc x, 3\n"),
        ("membar.gl", "fence.sc.gpu\n"),
        ("fence.sys", "fence.acq_rel.sys\n"),
        ("membar.proxy.alias", "fence.proxy.alias\n"),
        ("barrier.cta.sync.aligned 3, 64;", "bar.cta.sync 3, 64\n"),
        (
            "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire",
            "barrier.cluster.arrive\nbarrier.cluster.wait\n",
        ),
        (
            "tld.weak r0, x\nsuld r1, x\nldc r2, x\nsust x, 1",
            "tld.weak r0, x\nsuld.weak r1, x\ncold.weak r2, x\nsust.weak x, 1\n",
        ),
    ] {
        assert_eq!(short(long), expected, "{long}");
    }
}

#[test]
fn blocks_have_names_of_their_own() {
    let code = "mov.u32 t, 1; bra L\n{ .reg .pred t, u<3>; setp.eq.u32 t, 1, 2; setp.eq.u32 u2, 1, 2; @u2 bra L; @t bra L; L: }\n\
                { .reg .u32 t; L: mov.u32 t, 3; { .reg .u32 s<2>; mov.u32 s1, t; mov.u32 s2, t } }\nL: add.u32 r, t, s2";
    let expected = "mov.u32 t, 1\ngoto L1\nsetp.eq.u32 t$1_, 1, 2\nsetp.eq.u32 u$1_2, 1, 2\n@u$1_2 bra L0\n@t$1_ bra L0\n\
                    L0:\nmov.u32 t$2_, 3\nmov.u32 s$3_1, t$2_\nmov.u32 s2, t$2_\nL1:\nadd.u32 r, t, s2\n";
    assert_eq!(short(code), expected);
    fails("{ .reg .u32 t; mov.u32 t, 1 }; mov.u32 r, t", "unknown-register");
    fails("{ L: }; bra L", "unknown-label");
    fails("{ mov.u32 r, 1", "syntax");
}

#[test]
fn calls_are_the_code_of_what_they_call() {
    let twice = ".visible .func (.param .b32 out) twice(.param .b32 in) {\n.reg .b32 %r<3>; .reg .pred p; ld.param.u32 %r1, [in];\n\
                 setp.eq.u32 p, %r1, 0; @!p bra L; st.param.b32 [out+0], 9; ret.uni;\n\
                 L: add.u32 %r2, %r1, %r1; st.param.b32 [out+0], %r2; ret; }\n";
    let call = |p: &str| {
        format!(
            "{{ .reg .b32 temp_param_reg; .param .b32 a; .param .b32 b; st.param.b32 [a+0], %r1;\n{p}call.uni (b), \ntwice, \n(\na\n);\n\
             ld.param.b32 %r2, [b+0]; }}\n"
        )
    };
    let text = short(&format!("{twice}.reg .b32 %r<3>; mov.u32 %r1, 4\n{}st.u32 [x], %r2", call("")));
    in_order(
        &text,
        &["mov.u32 r1, 4", "mov.u32 a$1_, r1", "goto", "add.u32 r$3_2, r$3_1, r$3_1", "cvt.u32.s64 r2, b$1_"],
    );
    // Twice, and under a predicate.
    lower(&format!("{twice}.reg .b32 %r<3>; mov.u32 %r1, 4; setp.eq.u32 q, 1, 1\n{}{}", call("@!q "), call("")));
    // Registers as parameters are copied.
    let wide = ".func (.reg .u64 d) next(.reg .u64 s) { add.u64 s, s, 8; mov.u64 d, s; }\n";
    let text = short(&format!("{wide}mov.u64 q, 1; call (r), next, (q); call (r), next, (7);"));
    in_order(&text, &["mov.u64 s$2_, q", "add.u64 s$2_, s$2_, 8", "mov.u64 r, d$2_", "mov.u64 s$4_, 7"]);
    for (code, id) in [
        (format!("{wide}call (r), %rd1, (s), proto;"), "unsupported-call"),
        (format!("{wide}mov.u64 %f, next; L: call (r), %f, (r), P; mov.u64 %f, r; bra L;"), "unsupported-call"),
        (
            format!("{wide}mov.u64 %f, next; L: call (r), %f, (r), P; M: ld.v2.u64 \t{{q, %f}}, [x]; bra L;"),
            "unsupported-call",
        ),
        (format!("{wide}mov.u64 %f, r; call (r), %f, (r), P;"), "unsupported-call"),
        (format!("{wide}call (r), last, (s);"), "unknown-function"),
        (format!("{wide}call next, (s);"), "wrong-operands"),
        (".extern .func f;\ncall f;".into(), "unknown-function"),
        (".func f() { call f; }\ncall f;".into(), "unsupported-call"),
        (".func f() { call g; }\n.func g() { call f; }\ncall f;".into(), "unsupported-call"),
        (".func f() { ret; }\n.func f() { ret; }".into(), "duplicate-name"),
        (".func f(.param .b32 p) { ret; }\nmov.u32 r, 1; call f, (r);".into(), "wrong-operand"),
        (
            ".func f(.param .b32 p) { st.param.b32 [p], 1; }\n.param .b32 g; st.param.b32 [g], 1; call f, (g);"
                .into(),
            "read-only",
        ),
        (".param .b8 g[8]; st.param.b64 [g], 1; st.param.b32 [g+4], 1;".into(), "mixed-size"),
        (".param .b8 g[8]; st.param.b32 [g], 1; ld.param.b32 r, [g+4];".into(), "unknown-register"),
        (".func f(.reg .b1 p) { ret; }".into(), "unsupported-type"),
        (".func f(.param .b32 p { ret; }".into(), "syntax"),
        (".func (.param".into(), "syntax"),
        (".func f() {".into(), "syntax"),
    ] {
        fails(&code, id);
    }
    // A call of a register, which one `mov` gives a function, by way of a parameter.
    let apply = ".func (.reg .u64 d) apply(.param .b64 f, .reg .u64 s) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [f];\n\
                 P : .callprototype (.reg .u64 _) _ (.reg .u64 _);\ncall (d), \n%rd1, \n(\ns\n)\n, P; }\n";
    let call = ".param .b64 g; mov.u64 %f, next; st.param.b64 [g], %f; call (r), apply, (g, 3);";
    let program = lower(&format!("{wide}{apply}{call}"));
    assert!(program.threads[0].code.iter().any(|i| i.text.starts_with("add.u64 s$")), "{program:?}");
    // A low part of a parameter, as it is read where it holds fewer bits than it was passed with.
    lower(".param .b32 g; st.param.b32 [g], 300; ld.param.u8 r, [g];");
    // Calls of calls of calls …
    let mut code = ".func f0() { mov.u32 r, 1; }\n".to_owned();
    (0..30).for_each(|n| code += &format!(".func f{}() {{ call f{n}; call f{n}; }}\n", n + 1));
    fails(&(code + "call f30;"), "too-many-instructions");
    // Nothing is said of names in what is not there.
    let mut code = ".func f0() { mov.u32 r, 1; }\n".to_owned();
    (0..30).for_each(|n| code += &format!(".func f{}() {{ bra L; call f{n}; call f{n}; L: ret; }}\n", n + 1));
    let said = lower_with(&(code + "call f30;"), &Env::default()).expect_err("too much");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Looks for texts in that order.
#[track_caller]
fn in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some(at) = rest.find(part) else { panic!("`{part}` is not behind what stands before it:\n{text}") };
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn what_is_printed_lowers_to_the_same_micro_ops() {
    let code = "L: ld.acquire.gpu r0, x; bne r0, 1, L\n\
                mov.u32 r1, 5\nadd.u32 r2, r1, 1\nmad.lo.s32 r3, r1, r2, -3\nsetp.lt.u32 p, r1, r2\n\
                @p bra E\n@!p st.weak x, 3\nselp.b32 r4, r1, 7, p\ncvt.u16.u32 r5, r1\nE: exit\nst.release.sys x, r0";
    let strip = |p: &Program| {
        let ops: Vec<String> = p.threads[0].code.iter().map(|i| format!("{:?}", i.op)).collect();
        (ops, p.threads[0].regs.iter().map(|r| (r.name.clone(), r.ty)).collect::<Vec<_>>())
    };
    let first = lower(code);
    let printed = short(code);
    assert_eq!(strip(&first), strip(&lower(&printed)), "{printed}");
}

#[test]
fn elements_of_vectors_are_accesses_of_their_own() {
    let elements = |code: &str| -> Vec<(u8, u8)> {
        lower(code).threads[0].code.iter().map(|i| (i.element.at, i.element.of)).collect()
    };
    assert_eq!(elements("ld.v2.u32 {r0, r1}, [a]\nst x, 1"), [(0, 2), (1, 2), (0, 1)]);
    for code in [
        "ld.weak.v2.u32 {r0, r1}, a\n",
        "ld.acquire.gpu.v2.u32 {r0, r1}, a\n",
        "ld.volatile.v2.u32 {r0, r1}, a\n",
        "st.release.cta.v2.u32 a, {7, 8}\n",
        "mov.u64 rd, a\nst.weak.v2.u32 [rd], {7, 8}\n",
    ] {
        assert_eq!(short(code), code);
    }
    // The address is that before the instruction: what changes it comes last.
    let program = lower("mov.u64 rd, a\nld.v2.u64 {rd, r1}, [rd]");
    assert!(matches!(program.threads[0].code[2].op, Op::Load { dst, .. } if dst.0 == 0));
    for (code, id) in [
        ("ld.v2.u32 r0, [a]", "wrong-operand"),
        ("ld.v2.u32 {r0}, [a]", "wrong-operand"),
        ("ld.v2.u32 {r0, r0}, [a]", "wrong-operand"),
        ("ld.v2.u32 {r0, _}, [a]", "wrong-operand"),
        ("ld.u32 {r0, r1}, [a]", "wrong-operand"),
        ("st.v2.u32 [a], {1, {2}}", "syntax"),
        ("st.v2.u32 [a], {1 2}", "syntax"),
        ("st.v2.u32 [a], {1, 2", "syntax"),
        ("st.v2.u32 [a+4], {1, 2}", "misaligned"),
        ("st.u64 [words+4], 1", "misaligned"),
        ("st.u64 [words+8], 1", "out-of-bounds"),
        ("st.u16 [words], 1", "mixed-size"),
        ("st.v2.u32 [x], {1, 2}", "out-of-bounds"),
        ("st.v4.u32 [a], {1, 2, 3, 4}", "out-of-bounds"),
        ("st.v2 [a], {1, 2}", "missing-type"),
        ("st.v8.u64 [a], {1, 2, 3, 4, 5, 6, 7, 8}", "out-of-bounds"),
        ("mov.u64 rd, a\nst.v8.u64 [rd], {1, 2, 3, 4, 5, 6, 7, 8}", "unsupported-qualifier"),
        ("st.v3.u32 [a], {1, 2, 3}", "unknown-qualifier"),
        ("atom.add.v2.u32 {r0, r1}, [a], {1, 1}", "unsupported-qualifier"),
        ("atom.shared.add.v2.f32 {r0, r1}, [sw], {1, 1}", "unsupported-qualifier"),
        ("atom.add.v2.f32 {r0, r1}, [gw], {1, r0}", "wrong-operand"),
        ("atom.add.v2.f32 {r0, r0}, [gw], {1, 1}", "wrong-operand"),
        ("atom.add.v2.f32 {r0, r1}, [gw+4], {1, 1}", "misaligned"),
        ("red.max.v2.f32 [gw], {1, 1}", "conflicting-qualifiers"),
    ] {
        fails(code, id);
    }
}

/// `mov.b128`, and a register of 128 bits where `ld`, `st` and `atom` have their halves; in blocks and families, too.
#[test]
fn a_register_of_128_bits_is_its_halves() {
    let declared = ".reg .b128 q, p<2>;\n";
    for (wide, halves) in [
        ("mov.b128 q, {1, 2}; st.b128 [a], q", "mov.b64 l, 1; mov.b64 h, 2; st.b128 [a], {l, h}"),
        ("ld.b128 p1, [a]; mov.b128 {r0, r1}, p1", "ld.b128 {l, h}, [a]; mov.b64 r0, l; mov.b64 r1, h"),
        (
            "ld.b128 q, [a]; atom.relaxed.gpu.exch.b128 q, [a], q",
            "ld.b128 {l, h}, [a]; atom.relaxed.gpu.exch.b128 {l, h}, [a], {l, h}",
        ),
    ] {
        let ops = |code: &str| -> Vec<String> {
            lower(code).threads[0].code.iter().map(|instr| format!("{:?}", instr.op)).collect()
        };
        assert_eq!(ops(&format!("{declared}{wide}")), ops(halves), "{wide}");
        assert_eq!(ops(&format!("{{ {declared}{wide} }}")), ops(halves), "{wide}");
    }
    for (code, id) in [
        ("ld.v2.u64 q, [a]", "type-mismatch"),
        ("mov.b64 r0, q", "type-mismatch"),
        ("mov.b128 q, 1", "wrong-operand"),
        ("mov.b128 q, r0", "wrong-operand"),
        ("mov.b128 q, {q, p0}", "syntax"),
        ("mov.b128 {r0, r1}, {r1, r0}", "wrong-operand"),
    ] {
        fails(&format!("{declared}mov r0, 1\nmov r1, 1\n{code}"), id);
    }
}

#[test]
fn halves_of_atomics_carry_their_own_order() {
    let tags = |code: &str| match &lower(code).threads[0].code[0].op {
        Op::Rmw { read, write, .. } => format!("{:?} {:?}", read.tags, write.tags),
        other => panic!("{other:?}"),
    };
    assert_eq!(tags("atom.acq_rel.gpu.add r0, x, 1"), r#"{"A", "ACQ", "GEN", "RMW"} {"A", "GEN", "REL", "RMW"}"#);
    assert_eq!(tags("atom.release.gpu.add r0, x, 1"), r#"{"A", "GEN", "RLX", "RMW"} {"A", "GEN", "REL", "RMW"}"#);
    assert_eq!(tags("red.add x, 1"), r#"{"A", "GEN", "RED", "RLX", "RMW"} {"A", "GEN", "RED", "RLX", "RMW"}"#);
}

#[test]
fn predicated_instructions_are_branched_around() {
    let program = lower("setp.eq p, 1, 1\n@p st x, 1\n@!p st x, 2\nst x, 3");
    let targets: Vec<usize> = program.threads[0].code.iter().filter_map(|i| i.op.target()).collect();
    assert_eq!(targets, [3, 5]);
}

#[test]
fn registers_come_in_order_of_appearance_with_the_type_of_their_first_writer() {
    let program = lower(".reg .b32 %q<5>;\nld.u32 %q2, [a]\nld r1, 5\nadd.u64 r9, r1, 1");
    let regs: Vec<(&str, Ty)> = program.threads[0].regs.iter().map(|r| (r.name.as_str(), r.ty)).collect();
    assert_eq!(regs, [("q2", Ty::U32), ("r1", Ty::WORD), ("r9", Ty::U64)]);
}

#[test]
fn bytes_go_through_wider_registers() {
    let code = ".reg .b16 %rs<3>;\nld.u8 %rs1, [x]\nst.u8 [x], %rs1\nmov.b16 %rs1, 300\nst.u8 [x], %rs1";
    let program = lower(code);
    let thread = &program.threads[0];
    assert_eq!(thread.regs[0].ty, Ty { bits: 16, signed: false }, "as wide as what is written to it");
    match &thread.code[3].op {
        Op::Store { value, .. } => {
            assert!(matches!(value, program::Expr::Cast(Ty { bits: 8, .. }, _)), "{value:?}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn addresses_count_bytes() {
    let program = lower(
        "mov.u64 %rd1, a\nmul.wide.u32 %rd2, %r1, 4\nadd.s64 %rd3, %rd1, %rd2\nadd.s64 %rd4, %rd1, 8\n\
         mov.u32 %r1, 1\nst.u32 [%rd3+4], 1\nadd.u64 %rd5, x, 8",
    );
    let ops: Vec<String> = program.threads[0].code.iter().map(|i| format!("{:?}", i.op)).collect();
    assert!(ops[3].ends_with("Const(8)) }"), "{}", ops[3]);
    assert!(ops[5].contains("Const(4)"), "{}", ops[5]);
    assert!(ops[6].ends_with("Const(8)) }"), "{}", ops[6]);
    match &program.locations[1].kind {
        LocationKind::Object { layout, .. } => {
            assert_eq!(layout.field(0).ty, Ty::U32, "inferred through the register")
        }
        other => panic!("{other:?}"),
    }
    fails("mov.u64 %rd1, a\nadd.s64 %rd1, %rd1, 2\nst.u32 [%rd1], 1", "misaligned");
    fails("mov.u64 %rd1, a\nst.u32 [%rd1], 1\nst.u64 [%rd1], 1", "mixed-size");
    fails("mov.u64 %rd1, a\nst.u32 [%rd1], 1\nld r1, a[1]", "mixed-size");
    fails("mov %rd1, 5\nst.u32 [%rd1], 1", "not-an-address");
    for operands in ["%rd1, %rd2, %rd2", "%rd2, %rd2, %rd1"] {
        fails(
            &format!("st.u32 [a], 1\nmov.u64 %rd2, 1\nmov.u64 %rd1, a\nfma.rn.f64 %rd3, {operands}"),
            "unsupported-address",
        );
    }
    for mask in ["15", "-8", "-3", "4", "%rd9"] {
        let masked = format!("st.u32 [a], 1\nmov.u64 %rd9, 1\nmov.u64 %rd1, a\nand.b64 %rd2, %rd1, {mask}");
        fails(&masked, "unsupported-address");
    }
}

/// Which byte of its word an address is of is a number; any more of it rests on where objects lie, by whatever way it comes out.
#[test]
fn bytes_of_a_word_have_numbers() {
    let of = |rest: &str| format!("st.u32 [a], 0\nmov.u64 %rd1, a\ncvt.u32.u64 %r1, %rd1\n{rest}");
    for rest in [
        "shl.b32 %r2, %r1, 3\nand.b32 %r3, %r2, 24\nshl.b32 %r4, 255, %r3\nadd.s32 %r5, %r3, 1\nst.u32 [a], %r4",
        "and.b32 %r2, %r1, 3\nshl.b32 %r3, %r2, 3\nst.u32 [a], %r3",
        "and.b32 %r2, %r1, 2\nst.u32 [a], %r2",
    ] {
        lower(&of(rest));
    }
    for rest in [
        "st.u32 [a], %r1",
        "add.s32 %r2, %r1, 1",
        "mov.u32 %r2, %r1\nst.u32 [a], %r2",
        "setp.eq.u32 %p1, %r1, 0",
        "and.b32 %r2, %r1, 4\nst.u32 [a], %r2",
        "and.b32 %r2, %r1, -4\nst.u32 [a], %r2",
        "shl.b32 %r2, %r1, 3\nand.b32 %r3, %r2, 32",
        "shl.b32 %r2, %r1, 3\nand.b32 %r3, %r2, 24\nst.u32 [a], %r2",
        "shl.b32 %r2, %r1, 3\nst.u32 [a], %r2",
        "shr.u32 %r2, %r1, 1\nand.b32 %r3, %r2, 1",
        "and.b32 %r2, %r1, 3\nst.u32 [a], %r2\nst.u32 [a], %r1",
    ] {
        fails(&of(rest), "unsupported-address");
    }
    // Variables in shared memory begin where a compiler puts them.
    for mask in ["-4", "3"] {
        fails(
            &format!("st.shared.u8 [bytes], 1\nmov.u64 %rd1, bytes\nand.b64 %rd2, %rd1, {mask}"),
            "unsupported-address",
        );
    }
}

#[test]
fn an_access_may_be_to_several_elements_of_an_object_that_is_declared_so() {
    for (code, cells) in [
        ("st.u64 [words], 1", 2),
        ("mov.u64 %rd1, words\nst.u64 [%rd1], 1", 2),
        ("mov.u64 %rd1, words\nst.u32 [%rd1+4], 1", 1),
        ("atom.add.u64 %rd1, [words], 1", 2),
        ("ld.v2.u32 {r1, r2}, [words]", 1),
    ] {
        let program = lower(code);
        let last = program.threads[0].code.last().expect("an access");
        assert_eq!(last.element.cells, cells, "{code}");
        // What is printed has the size, too.
        let printed = lower(&short(code));
        assert_eq!(printed.threads[0].code.last().expect("an access").element.cells, cells, "{code}");
    }
    for (code, id) in [
        ("ld.u32 w, [x]\nst.u64 [x], 1", "mixed-size"),
        ("ld.u64 w, [x]\nst.u32 [x], 1", "mixed-size"),
        ("mov.u64 %rd1, words\nst.u16 [%rd1], 1", "mixed-size"),
        ("mov.u32 r1, sw\nmbarrier.init.shared.b64 [r1], 2", "mixed-size"),
        ("mov.u64 %rd1, words\nst.u64 [%rd1+4], 1", "misaligned"),
        ("st.u64 [x], 1\nmov.u64 %rd1, words\nmov.u64 %rd1, x\nst.u64 [%rd1], 1", "mixed-size"),
    ] {
        fails(code, id);
    }
}

#[test]
fn barriers_have_two_ways_to_read_their_operands() {
    let litmus = Env { instance_barriers: true, ..env() };
    assert!(lower_with("bar.cta.sync 99, r0, 3; mov r0, 1", &litmus).is_ok());
    fails("bar.cta.sync 1, 2, 3", "wrong-operands");
    fails("bar.sync 16", "out-of-range");
    fails("bar.arrive 1", "wrong-operands");
    let of = |threads| Env { block: Seat { rank: 0, of: threads }, ..env() };
    let red = "setp.eq.u32 p, 1, 1; bar.red.popc.u32 r0, 1, p; barrier.cta.red.and.aligned.pred q, 0, !p; bar.red.or.pred q, 0, p";
    assert!(lower_with(red, &of(64)).is_ok());
    assert!(lower_with(red, &of(65)).expect_err("too many").contains("unsupported-barrier"));
    assert!(lower_with("bar.red.or.pred q, 16, q", &of(1)).expect_err("no such").contains("out-of-range"));
    fails("bar.red.popc.u32 r0, 1, 32, p", "wrong-operands");
    let warp = Env { warp: Seat { rank: 0, of: 4 }, ..env() };
    assert!(lower_with("bar.warp.sync 0xf", &warp).is_ok());
    assert!(lower_with("bar.warp.sync 0x7", &warp).is_ok());
    assert!(lower_with("bar.warp.sync 0x10", &warp).is_err(), "there is no such lane");
    assert!(lower_with("mov.u32 r0, 3; bar.warp.sync r0", &warp).is_ok());
}

#[test]
fn lanes_meet_by_masks() {
    let warp = Env { warp: Seat { rank: 1, of: 4 }, ..env() };
    let ok = |code: &str| assert!(lower_with(&format!("mov.u32 r0, 3; {code}"), &warp).is_ok(), "{code}");
    let wrong = |code: &str, id: &str| {
        let found = lower_with(&format!("mov.u32 r0, 3; {code}"), &warp).expect_err(code);
        assert!(found.contains(id), "{code}: {found}");
    };
    ok("shfl.sync.down.b32 r1, r0, 1, 31, -1");
    ok("shfl.sync.bfly.b32 r1|p, r0, 1, 31, 0x3");
    ok("vote.sync.ballot.b32 r1, p, 0xf; setp.eq.u32 p, r0, 3");
    ok("shfl.sync.idx.b32 r1, r0, r0, 31, -1");
    ok("shfl.sync.idx.b32 r1, r0, 0, 31, r0");
    ok("shfl.sync.idx.b32 r1, r0, 0, r0, -1");
    wrong("ld.u32 r2, words; shfl.sync.idx.b32 r1, r0, 0, r2, -1", "unsupported-operand");
    wrong("shfl.sync.idx.b32 r1, r0, 0, 31, 0x70", "unsupported-mask");
    wrong("shfl.sync.b32 r1, r0, 0, 31, -1", "unknown-instruction");
    wrong("shfl.idx.b32 r1, r0, 0, 31", "unknown-instruction");
    wrong("redux.sync.add.u32 r1|p, r0, -1", "unsupported-operand");
    ok("elect.sync r1|p, -1; elect.sync _|p, 0x3");
    ok("mov.u32 r2, -1; elect.sync r1|p, r2");
    wrong("ld.u32 r2, words; elect.sync r1|p, r2", "unsupported-mask");
    wrong("elect.sync r1|p, 0x70", "unsupported-mask");
    ok("activemask.b32 r1");
    ok("L: mov.u32 r2, 1; bar.sync 0; activemask.b32 r1");
    ok("L: activemask.b32 r1");
    ok("L: barrier.sync.aligned 0; activemask.b32 r1");
    ok("L: barrier.sync 0; activemask.b32 r1");
    ok("setp.eq.u32 p, r0, 3; @p bra L; activemask.b32 r1; L: mov.u32 r2, 1");
    ok("L: bar.sync 0, 64; activemask.b32 r1");
}

#[test]
fn mistakes_have_names() {
    for (code, id) in [
        ("setp.eq.and.u32 p, 1, 1", "wrong-operands"),
        ("lds r0, x", "unknown-instruction"),
        ("mbarrier.init.b64 [x], 1", "no-mbarrier"),
        ("mbarrier.arrive.global.b64 _, [b]", "unknown-qualifier"),
        ("mbarrier.arrive.b64 _, [b], 0", "out-of-range"),
        ("mbarrier.init.b64 [b], 40000", "out-of-range"),
        ("mbarrier.arrive.expect_tx.b64 _, [b], 1048576", "out-of-range"),
        ("mbarrier.arrive.release.b64 _, [b]", "missing-scope"),
        ("mbarrier.arrive.cluster.b64 _, [b]", "missing-order"),
        ("mbarrier.arrive.acquire.cta.b64 _, [b]", "unknown-qualifier"),
        ("mbarrier.arrive.release.gpu.b64 _, [b]", "unknown-qualifier"),
        ("mbarrier.arrive.shared::cluster.b64 t, [b]", "wrong-operand"),
        ("mbarrier.arrive.noComplete.relaxed.cta.b64 t, [b], 1", "conflicting-qualifiers"),
        ("mbarrier.test_wait.parity.b64 p, [b], 2", "out-of-range"),
        ("mbarrier.try_wait.parity.shared::cluster.b64 p, [b], 0", "unknown-qualifier"),
        ("mbarrier.wait.release.cta [b], 0", "unknown-qualifier"),
        ("mbarrier.pending_count.b64 r, t", "unsupported-qualifier"),
        ("mbarrier.arive.b64 _, [b]", "unknown-instruction"),
        ("ld.u64 r0, [b]", "mbarrier-access"),
        ("cp.async b, x, 8", "mbarrier-access"),
        ("cp.async s, x, 12", "wrong-operand"),
        ("cp.async s, x, 8, -1", "wrong-operand"),
        ("cp.async s, x, 8, 16", "wrong-operand"),
        ("cp.async s, x, 8, 8, 8", "wrong-operands"),
        ("ld.u32 n, words; cp.async s, x, n", "wrong-operand"),
        ("atom.add.s64 { r0 }, [x], 1", "wrong-operand"),
        ("ld.s64 { r0, r1 }, [x]", "wrong-operand"),
        ("ld.s64 r0, { x }", "wrong-operand"),
        ("cp.async x, x, 8", "wrong-space"),
        ("cp.async s, c, 8", "wrong-space"),
        ("cp.async.cg s, x, 8", "conflicting-qualifiers"),
        ("cp.async s, x, 16", "out-of-bounds"),
        ("cp.async s, x, 4", "misaligned"),
        ("cp.async s, x[1], 8", "out-of-bounds"),
        ("cp.async s, words, 8", "mixed-size"),
        ("mov.u64 p, x; cp.async [s], [p], 16", "out-of-bounds"),
        ("cp.async.wait_group n", "wrong-operand"),
        ("cp.async.wait_group -1", "wrong-operand"),
        ("cp.async.mbarrier.arrive.b64 [x]", "no-mbarrier"),
        ("cp.async.bulk.shared::cta.global [s], [x], 16", "conflicting-qualifiers"),
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [ss], [gg], 16", "conflicting-qualifiers"),
        ("cp.async.bulk.global.shared::cta.bulk_group [gg], [ss], 16, [b]", "conflicting-qualifiers"),
        (
            "cp.async.bulk.shared::cta.shared::cta.mbarrier::complete_tx::bytes [ss], [ss], 16, [b]",
            "conflicting-qualifiers",
        ),
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster [ss], [gg], 16, [b], 1",
            "conflicting-qualifiers",
        ),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [ss], [gg], 16, [b], 2",
            "out-of-range",
        ),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [ss], [gg], 16, [b], 0",
            "out-of-range",
        ),
        ("cp.async.bulk ss, gg, 8, b", "wrong-operand"),
        ("cp.async.bulk ss, gg, 24, b", "wrong-operand"),
        ("cp.async.bulk ss, gg, 32, b", "out-of-bounds"),
        ("cp.async.bulk ss, gg[1], 16, b", "misaligned"),
        ("cp.async.bulk gg, ss, 16, b", "wrong-space"),
        ("cp.async.bulk ss, gg, 16", "wrong-space"),
        ("cp.async.bulk ss, gg, 16, x", "no-mbarrier"),
        ("cp.async.bulk b, gg, 16, b", "mbarrier-access"),
        ("cp.async.bulk ss, aliased, 16, b", "unsupported-alias"),
        ("mov.u64 p, gg; cp.async.bulk ss, [p], 32, b", "out-of-bounds"),
        ("ld.u64 p, x; cp.async.bulk ss, [p], 16, b", "unsupported-alias"),
        ("ld.u32 n, words; cp.async.bulk ss, gg, n, b", "wrong-operand"),
        ("cp.async.bulk.tensor.1d.shared::cta.global [ss], [gg], 16", "conflicting-qualifiers"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group [gg], [ss], 16", "missing-operation"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add [gg], [ss], 16", "missing-type"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [gg], [ss], 16", "conflicting-qualifiers"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.u64 [gg], [ss], 16", "conflicting-qualifiers"),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.acquire.sys.add.u64 [gg], [ss], 16",
            "acquire-on-red",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.release.sys.add.u64 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.relaxed.add.u64 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.gpu.add.u64 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [gw], [sw], 16", "mixed-size"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [gg], [ss], 24", "wrong-operand"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [ss], [ss], 16", "wrong-space"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [aliased], [ss], 16", "unsupported-alias"),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [gg], [ss], 16, [b]",
            "conflicting-qualifiers",
        ),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [gg], [ss], 16", "out-of-bounds"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [gg], [ss], 16", "conflicting-qualifiers"),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.max.noftz.f16 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        ("atom.global.add.f16x2 r, [words], q", "conflicting-qualifiers"),
        ("red.global.min.f16x2 [words], q", "conflicting-qualifiers"),
        ("red.global.xor.noftz.f16x2 [words], q", "conflicting-qualifiers"),
        ("red.global.add.noftz.u32 [words], q", "conflicting-qualifiers"),
        ("red.shared.add.noftz.v2.f16x2 [sw], {q, q}", "unsupported-qualifier"),
        ("mov.u64 p, gg; red.global.add.noftz.v8.f16x2 [p], {q, q, q, q, q, q, q, q}", "unsupported-qualifier"),
        ("atom.add.b128 {r, q}, [gg], {1, 2}", "unsupported-qualifier"),
        ("atom.exch.b128 r, [gg], {1, 2}", "wrong-operand"),
        ("atom.cas.b128 {r, q}, [gg], 1, {1, 2}", "wrong-operand"),
        ("atom.cas.b128 {r, q}, [gg+8], {1, 2}, {1, 2}", "misaligned"),
        ("atom.exch.b128.u64 {r, q}, [gg], {1, 2}", "conflicting-qualifiers"),
        ("discard.global.L2 [gg], 128", "out-of-bounds"),
        ("discard.global.L2 [gg], 64", "wrong-operand"),
        ("discard.global [gg], 128", "wrong-operand"),
        ("discard.global.L2 [ss], 128", "wrong-space"),
        ("discard.L2 [b], 128", "mbarrier-access"),
        ("clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [gg], [b]", "wrong-space"),
        ("clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [ss], [ss]", "no-mbarrier"),
        ("clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [s], [b]", "out-of-bounds"),
        ("clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [b], [b]", "mbarrier-access"),
        ("clusterlaunchcontrol.try_cancel.async.b128 [ss], [b]", "conflicting-qualifiers"),
        ("clusterlaunchcontrol.try_cancel.mbarrier::complete_tx::bytes.b128 [ss], [b]", "unknown-instruction"),
        ("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q", "wrong-operand"),
        ("clusterlaunchcontrol.query_cancel.get_first_ctaid::w.b32.b128 r, {q, q}", "unknown-instruction"),
        ("tensormap.replace.tile.global_address.global.b1024.b64 [words], q", "wrong-operand"),
        ("tensormap.replace.tile.global_address.global.b1024.b32 [gg], q", "conflicting-qualifiers"),
        ("tensormap.replace.tile.global_address.global.b1024.b64 [ss], q", "wrong-space"),
        ("tensormap.replace.tile.box_dim.global.b1024.b64 [gg], 0, q", "conflicting-qualifiers"),
        ("tensormap.replace.tile.global.b1024.b32 [gg], q", "conflicting-qualifiers"),
        ("tensormap.replace.global_address.global.b1024.b64 [gg], q", "unknown-instruction"),
        (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [gg], [gg], 128",
            "wrong-space",
        ),
        (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu [gg], [ss], 128",
            "conflicting-qualifiers",
        ),
        (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [gg], [ss], 64",
            "conflicting-qualifiers",
        ),
        ("multimem.red.add.f16 [words], q", "conflicting-qualifiers"),
        ("multimem.st.v2.u32 [words], {q, r}", "conflicting-qualifiers"),
        ("multimem.ld_reduce.add.v2.f64 {q, r}, [gg]", "conflicting-qualifiers"),
        (
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [ss], [ss], 16, [b]",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64 [ss], [gg], 16, [b]",
            "wrong-space",
        ),
        (
            "cp.reduce.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.add.u64 [ss], [gg], 16, [b]",
            "conflicting-qualifiers",
        ),
        ("cp.async.bulk.relaxed.b128.global.shared::cta.bulk_group [gg], [ss], 16", "missing-scope"),
        ("cp.async.bulk.global.shared::cta.bulk_group.b128 [gg], [ss], 16", "conflicting-qualifiers"),
        ("st.async.weak.u64 [s], 1", "wrong-operands"),
        ("st.async.release.gpu.u64 [x], 1, [b]", "conflicting-qualifiers"),
        ("st.async.release.u64 [x], 1", "missing-scope"),
        ("st.async.release.cluster.u64 [x], 1", "conflicting-qualifiers"),
        ("st.async.release.gpu.shared::cluster.u64 [s], 1", "conflicting-qualifiers"),
        ("st.async.release.gpu.v2.u64 [gg], {1, 1}", "conflicting-qualifiers"),
        ("st.async.release.gpu.u64 [s], 1", "wrong-space"),
        ("st.async.relaxed.gpu.u64 [x], 1", "unknown-qualifier"),
        ("st.async.u64 [x], 1, [b]", "wrong-space"),
        ("st.async.u64 [s], 1, [x]", "no-mbarrier"),
        ("st.async.u64 [b], 1, [b]", "mbarrier-access"),
        ("st.async.cluster.u64 [s], 1, [b]", "conflicting-qualifiers"),
        ("st.async.mmio.u64 [s], 1, [b]", "conflicting-qualifiers"),
        ("st.async.global.u64 [s], 1, [b]", "conflicting-qualifiers"),
        ("st.async.b128 [s], 1, [b]", "out-of-bounds"),
        ("mov.u64 p, s; st.async [p], 1, [b]", "missing-type"),
        ("red.async.add.u32 [words], 1, [b]", "missing-order"),
        ("red.async.relaxed.add.u32 [words], 1, [b]", "missing-scope"),
        ("red.async.acquire.cluster.add.u32 [words], 1, [b]", "acquire-on-red"),
        ("red.async.relaxed.gpu.add.u32 [words], 1, [b]", "conflicting-qualifiers"),
        ("red.async.relaxed.cluster.add.u32 [words], 1", "wrong-operands"),
        ("red.async.relaxed.cluster.add.u32 [words], 1, [b]", "wrong-space"),
        ("red.async.relaxed.cluster.add.s64 [s], 1, [b]", "conflicting-qualifiers"),
        ("red.async.relaxed.cluster.u64 [s], 1, [b]", "missing-operation"),
        ("red.async.release.gpu.max.u32 [words], 1", "conflicting-qualifiers"),
        ("red.async.release.gpu.add.u64 [x], 1, [b]", "conflicting-qualifiers"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 q, [ss], 16", "unsupported-qualifier"),
        ("wgmma.mma_async q, [gg], 16", "wrong-space"),
        ("wgmma.mma_async q, [ss], 8", "wrong-operand"),
        ("wgmma.mma_async q, [ss], 16; add.u64 r, q, 1", "unsupported-operand"),
        ("wgmma.mma_async q, [ss], 16; mov.u64 q, 1", "unsupported-operand"),
        ("wgmma.wait_group -1", "wrong-operand"),
        ("wgmma.wait_group.read 0", "unknown-qualifier"),
        ("wgmma q", "unknown-instruction"),
        ("tcgen05.mma q", "unsupported-instruction"),
        ("ld.b128 r, [gg]", "wrong-operand"),
        ("ld.b128.u64 {r, q}, [gg]", "conflicting-qualifiers"),
        ("ld.b128 {r, q}, [gg+8]", "misaligned"),
        ("ld.relaxed.gpu.b128 {r, q}, [x]", "out-of-bounds"),
        ("mov.u64 p, gg; ld.relaxed.gpu.b128 {p, q}, [p]", "wrong-operand"),
        ("cp.async.bulk.prefetch.L2.global [gg], 16", "unsupported-qualifier"),
        ("cp.async.bulk.relaxed.sys.global.shared::cta.bulk_group [gg], [ss], 16", "conflicting-qualifiers"),
        ("cp.async.bulk.sys.global.shared::cta.bulk_group [gg], [ss], 16", "conflicting-qualifiers"),
        ("cp.async.bulk.wait_group -1", "wrong-operand"),
        ("cp.async.wait_group.read 0", "unknown-qualifier"),
        ("fence.proxy.async.local", "unknown-qualifier"),
        ("fence.proxy.alias.global", "conflicting-qualifiers"),
        ("fence.proxy.alias.release.gpu", "conflicting-qualifiers"),
        ("fence.proxy.alias.acq_rel.sys", "conflicting-qualifiers"),
        ("fence.proxy.async.acq_rel.gpu", "conflicting-qualifiers"),
        ("fence.proxy.async.gpu", "conflicting-qualifiers"),
        ("fence.release.sync_restrict::shared::cta.cta", "conflicting-qualifiers"),
        ("fence.acquire.sync_restrict::shared::cta.cluster", "conflicting-qualifiers"),
        ("fence.sc.sync_restrict::shared::cta.cluster", "conflicting-qualifiers"),
        ("fence.proxy.tensormap::generic.acquire.gpu [gg], 64", "wrong-operand"),
        ("fence.proxy.tensormap::generic.acquire.gpu [ss], 128", "wrong-space"),
        ("fence.proxy.tensormap::generic.acquire.gpu [words], 128", "wrong-operand"),
        ("fence.proxy.tensormap::generic.acquire.gpu [b], 128", "mbarrier-access"),
        ("fence.proxy.tensormap::generic.acquire.gpu", "conflicting-qualifiers"),
        ("fence.proxy.tensormap::generic.release.gpu [gg], 128", "conflicting-qualifiers"),
        ("fence.proxy.tensormap::generic.release", "missing-scope"),
        ("cp.async.bulk.tensor [ss], [ss], 16, [b]", "wrong-space"),
        ("cp.async.bulk.tensor [gg], [gg], 16, [b]", "wrong-space"),
        ("cp.async.bulk.tensor [ss], [gg], 17, [b]", "wrong-operand"),
        ("mov.u64 p, gg; cp.async.bulk.tensor [ss], [p], 16, [b]", "unsupported-address"),
        ("cp.async.bulk.tensor.global.shared::cta.bulk_group [ss], [gg], 16, [b]", "conflicting-qualifiers"),
        ("cp.async.bulk.tensor.1d [ss], [gg, {0}], [b]", "syntax"),
        ("cp.reduce.async.bulk.tensor.1d.add [gg], [ss], 16", "missing-type"),
        ("cp.reduce.async.bulk.tensor.add.u64 [ss], [ss], 16", "wrong-space"),
        ("cp.reduce.async.bulk.tensor.add.u64 [gg], [gg], 16", "wrong-space"),
        ("cp.reduce.async.bulk.tensor.add.u32 [gg], [ss], 16", "wrong-operand"),
        (
            "cp.reduce.async.bulk.tensor.mbarrier::complete_tx::bytes.add.u64 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        ("cp.reduce.async.bulk.tensor.tile.add.u64 [gg], [ss], 16", "unsupported-qualifier"),
        ("st.async.release.gpu.global.b128 [x], {1, 2}", "out-of-bounds"),
        ("multimem.st.u32 [words], 1", "wrong-operand"),
        ("mov.u64 p, gg; multimem.st.u64 [p], 1", "unsupported-address"),
        ("multimem.cp.async.bulk.global.shared::cta.bulk_group [gg], [ss], 16", "unknown-instruction"),
        ("griddepcontrol.wait 0", "wrong-operands"),
        ("griddepcontrol.launch", "unknown-instruction"),
        ("fence.proxy.alias.sys", "conflicting-qualifiers"),
        ("fence.proxy.alias.release", "conflicting-qualifiers"),
        ("fence.proxy.async.release.sys", "conflicting-qualifiers"),
        ("fence.proxy.async.global.acquire.sys", "conflicting-qualifiers"),
        ("fence.proxy.surface.acquire.sys", "conflicting-qualifiers"),
        ("atom.add.u64 r0, [b], 1", "mbarrier-access"),
        ("fence.proxy.async::generic.acquire.sync_restrict::shared::cta.cluster", "conflicting-qualifiers"),
        ("fence.proxy.async::generic.release.sync_restrict::shared::cta.gpu", "conflicting-qualifiers"),
        ("fence.proxy.async::generic", "conflicting-qualifiers"),
        ("fence.mbarrier_init.release.gpu", "missing-scope"),
        ("mapa.u64 r, b, 1", "out-of-range"),
        ("mapa.u64 r, x, 0", "wrong-space"),
        ("mov.u64 p, b; mapa.u64 r, p, 1", "out-of-range"),
        ("ld.u64 p, x; mapa.u64 r, p, 0", "wrong-operand"),
        ("pmevent 1", "unsupported-instruction"),
        ("set.eq.u32 r0, r1, r2", "missing-type"),
        ("set.eq.f64.u32 r0, r1, r2", "missing-type"),
        ("set.eq.ftz.u32.u32 r0, r1, r2", "conflicting-qualifiers"),
        ("lop4.b32 r0, r1, r2, r3, 0x96", "unknown-instruction"),
        ("testp.finite.f32 p, r0", "unsupported-instruction"),
        ("ex2.f32 r0, r1", "unknown-instruction"),
        ("add.f16.f32 r0, 1, 2", "conflicting-qualifiers"),
        ("add.rz.f16 r0, r1, r2", "conflicting-qualifiers"),
        ("add.ftz.bf16 r0, r1, r2", "conflicting-qualifiers"),
        ("mov.b16 r1, 1; add.f16 r0, r1, 0x3c00", "wrong-operand"),
        ("sub.sat.bf16x2 r0, r1, r2", "conflicting-qualifiers"),
        ("mul.sat.s32 r0, r1, r2", "conflicting-qualifiers"),
        ("div.rn.f16 r0, r1, r2", "unsupported-qualifier"),
        ("fma.f16 r0, r1, r2, r3", "unsupported-qualifier"),
        ("fma.rn.sat.relu.f16 r0, r1, r2, r3", "conflicting-qualifiers"),
        ("fma.rn.relu.f32 r0, r1, r2, r3", "conflicting-qualifiers"),
        ("fma.f64 r0, r1, r2, r3", "unsupported-qualifier"),
        ("fma.rn.sat.f64 r0, r1, r2, r3", "conflicting-qualifiers"),
        ("min.NaN.f64 r0, r1, r2", "conflicting-qualifiers"),
        ("mov.b16 r1, 1; setp.lt.bf16 p|q, r1, r1", "wrong-operand"),
        ("setp.lt.u32 p, 1, 2; setp.lt.and.u32 p|q, 1, 2, p", "wrong-operand"),
        ("setp.lo.f16 p, r1, r2", "missing-operation"),
        ("set.lt.f16.bf16 r0, r1, r2", "missing-type"),
        ("set.lt.bf16x2.f16x2 r0, r1, r2", "missing-type"),
        ("cvt.f16.bf16 r0, r1", "conflicting-qualifiers"),
        ("cvt.f16.f32 r0, r1", "conflicting-qualifiers"),
        ("cvt.rn.f32.f16 r0, r1", "conflicting-qualifiers"),
        ("cvt.rm.relu.f16.f32 r0, r1", "conflicting-qualifiers"),
        ("cvt.rn.sat.bf16.f32 r0, r1", "conflicting-qualifiers"),
        ("cvt.rn.ftz.f16.f64 r0, r1", "conflicting-qualifiers"),
        ("cvt.rn.f16x2.f32 r0, r1", "conflicting-qualifiers"),
        ("cvt.rn.f16.f32 r0, r1, r2", "conflicting-qualifiers"),
        ("cvt.rm.f16x2.f32 r0, r1, r2", "conflicting-qualifiers"),
        ("cvt.rn.bf16.u8 r0, r1", "conflicting-qualifiers"),
        ("cvt.rn.satfinite.f32.f64 r0, r1", "conflicting-qualifiers"),
        ("add.u32 r0, 1, 1.5", "wrong-operand"),
        ("mov.u32 r0, 1.5.0", "bad-number"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f64 {r0}, {r1}, {r2}, {r3}", "unsupported-qualifier"),
        ("createpolicy.range.L2::evict_last.b64 d, [x], 4, 4", "unknown-instruction"),
        ("ld.L2::cache_hint.u32 r0, [x]", "wrong-operand"),
        ("ld.L2::cache_hint.u32 r0, [x], 5", "wrong-operand"),
        ("fence.L2::cache_hint.sc.gpu", "unknown-qualifier"),
        ("ld.aquire.gpu r0, x", "unknown-qualifier"),
        ("ld.v2.u32 {r0, r1}, [x]", "out-of-bounds"),
        ("ld.f16 r0, x", "unsupported-qualifier"),
        ("ld.relaxed r0, x", "missing-scope"),
        ("ld.weak.gpu r0, x", "conflicting-qualifiers"),
        ("ld.volatile.relaxed.sys r0, x", "conflicting-qualifiers"),
        ("ld.relaxed.acquire.gpu r0, x", "conflicting-qualifiers"),
        ("ld.weak r0, yy", "unknown-location"),
        ("st.weak x, r0", "unknown-register"),
        ("goto L", "unknown-label"),
        ("L: L: exit", "duplicate-label"),
        ("ld.weak x, x", "name-clash"),
        ("ld.weak r0", "wrong-operands"),
        ("ld.weak 5, x", "wrong-operand"),
        ("st.u8 x, 256", "constant-out-of-range"),
        ("st.u32 [a+2], 1", "misaligned"),
        ("st.u32 [a+12], 1", "out-of-bounds"),
        ("ld.u32 r0, [a]; ld.u64 r1, [a]", "mixed-size"),
        ("ld.shared r0, x", "wrong-space"),
        ("st.weak c, 1", "read-only"),
        ("red.acquire.gpu.add x, 1", "acquire-on-red"),
        ("atom.gpu r0, x, 1", "missing-operation"),
        (".reg .pred p; add.u32 r0, p, 1", "type-mismatch"),
        (".reg .pred p; ld.u8 p, [x]", "type-mismatch"),
        (".reg .b16 q; setp.eq.u32 q, 1, 1", "type-mismatch"),
        ("mov.u32 r0, x", "type-mismatch"),
        ("mov.b32 r0, {1, 2, 3}", "wrong-operand"),
        ("mov.b16 {r0, r1, r2, r3}, 1", "wrong-operand"),
        ("ld.u32 r0, [a]; mov.b32 {r0, r1}, r0", "wrong-operand"),
        ("mov.b32 {r0, r1}, {r0, r1}", "wrong-operand"),
        (".reg .b16 q; mov.b64 {q, r}, 1", "type-mismatch"),
        ("mov.u64 r0, x; mov.b64 {r1, r2}, r0", "unsupported-address"),
        ("mov.u32 r0, %tid.x", "unknown-register"),
        (".shared .u32 y;", "unsupported-directive"),
        ("ld.weak r0 x", "syntax"),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {r0}, [ss]", "unknown-instruction"),
        ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r0}, [ss]", "wrong-operand"),
        ("ldmatrix.sync.aligned.m8n8.shared.b16 {r0}, [ss]", "wrong-operand"),
        ("ldmatrix.sync.aligned.m8n8.x1.global.b16 {r0}, [gg]", "unknown-qualifier"),
        ("ldmatrix.sync.aligned.m8n8.x1.b16 {r0}, [gg]", "wrong-space"),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r0}, [gg]", "wrong-space"),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r0}, [ss]", "unsupported-mask"),
        ("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [ss], {r0}", "unknown-instruction"),
        ("mov.u32 r0, 1; stmatrix.sync.aligned.m8n8.x1.shared.b16 [ss], {r0}", "unsupported-mask"),
        ("mov.u32 r0, 1; movmatrix.sync.aligned.m8n8.b16 r1, r0", "unknown-instruction"),
        ("mov.u32 r0, 1; movmatrix.sync.aligned.m8n8.trans.b16 r1, r0", "unsupported-mask"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.f16 {r0}, [ss]", "unsupported-instruction"),
        ("#line 17\nst.weak x, 1", "syntax"),
        ("#line -1 \"k.ptx\"\nst.weak x, 1", "syntax"),
        ("#include \"k.ptx\"\nst.weak x, 1", "syntax"),
        ("/* x", "unterminated-comment"),
        ("mov r0, 99999999999999999999", "bad-number"),
    ] {
        fails(code, id);
    }
}

#[test]
fn operations_on_objects_and_copies_are_printed_as_written() {
    for code in [
        "mbarrier.init.b64 [b], 1",
        "mbarrier.inval.shared::cta.b64 [b]",
        "mbarrier.arrive.release.cta.b64 _, [b]",
        "mbarrier.arrive_drop.expect_tx.relaxed.cluster.shared::cta.b64 t, [b], 16",
        "mbarrier.complete_tx.relaxed.cta.b64 [b], 16",
        "mbarrier.try_wait.parity.acquire.cta.b64 p, [b], 0",
        "mbarrier.wait.acquire.cta [b], 1",
        "fence.mbarrier_init.release.cluster",
        "cp.async.ca.shared.global [s], [x], 8",
        "cp.async.commit_group",
        "cp.async.wait_group 1",
        "cp.async.mbarrier.arrive.b64 [b]",
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [b]",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [ss], [gg], 16, [b]",
        "cp.async.bulk.global.shared::cta.bulk_group [gg], [ss], 16",
        "cp.async.bulk.commit_group",
        "cp.async.bulk.wait_group 0",
        "cp.async.bulk.wait_group.read 1",
        "fence.proxy.async",
        "fence.proxy.async.shared::cluster",
        "cp.async.bulk.relaxed.sys.global.shared::cta.bulk_group.b128 [gg], [ss], 16",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.relaxed.gpu.add.u64 [gg], [ss], 16",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64 [ss], [ss], 16, [b]",
        "st.async.mmio.release.gpu.global.u64 [x], 1",
        "red.async.relaxed.cluster.add.u64 [s], 1, [b]",
        "red.async.release.sys.global.add.u64 [x], 1",
        "wgmma.mma_async q, [ss], 16",
        "wgmma.fence",
        "wgmma.commit_group",
        "wgmma.wait_group 1",
        "ld.relaxed.gpu.b128 {r, q}, gg",
        "st.release.sys.b128 gg, {1, 2}",
    ] {
        let program = lower(code);
        let printed = print(&program.threads[0], &program).expect(code);
        assert!(printed.lines().any(|line| line == code), "{code}: {printed}");
        assert_eq!(lower(&printed).threads[0].code.len(), program.threads[0].code.len(), "{printed}");
    }
    let count = lower("ld.u32 n, [a]; mbarrier.arrive.b64 _, [b], n");
    let address = count.threads[0].code[1].op.address().expect("an operation on an object");
    assert!(matches!(address, Expr::Select(..)), "a count that does not fit makes no address");
}

/// Lines follow each other, through comments; what `.loc` says holds up to the next one, for the code of a function at each call of it;
/// lines of a library, and those that stand for nothing, are not told.
#[test]
fn instructions_say_where_they_came_from() {
    let origins = |code: &str| -> Vec<String> {
        lower(code).threads[0].code.iter().map(|i| i.line.came_from().trim().to_owned()).collect()
    };
    assert_eq!(origins("st.weak x, 1"), [""]);
    let numbered = "st.weak x, 1\n#line 40 \"a/k.ptx\"\n/*\n*/ st.weak x, 2;\nL: st.weak x,\n3\n#line 7 \"l.ptx\"\nst.weak x, 4";
    assert_eq!(origins(numbered), ["", "[k.ptx:41]", "[k.ptx:42]", "[l.ptx:7]"]);
    let source = ".file 1 \"/s/k.cu\"\n.file 2 \"/lib/a.h\"\n.file 3 \"/s/own/b.h\"\n.loc 1 5 1\nst.weak x, 1\n\
                  .loc 1 6 1\n.loc 3 9 1, function_name $f, inlined_at 1 6 1\nst.weak x, 2\n\
                  .loc 2 8 1, function_name $g, inlined_at 3 9 1\nst.weak x, 3\n.loc 1 0 0\nst.weak x, 4\n\
                  .loc 9 1 1\nst.weak x, 5\n#line 4 \"k.ptx\"\nst.weak x, 6";
    let both = "[k.cu:6, b.h:9]";
    assert_eq!(origins(source), ["[k.cu:5]", both, both, "", "", "[k.ptx:4]"]);
    let called = "#line 3 \"k.ptx\"\n.func f() {\nst.weak x, 1;\nret;\n}\n#line 20 \"k.ptx\"\ncall f;\nst.weak x, 2;\ncall f;";
    // Behind the code of a function stands what comes back from it.
    let at = [4, 5, 20, 21, 4, 5, 22].map(|line| format!("[k.ptx:{line}]"));
    assert_eq!(origins(called), at);
}

#[test]
fn one_mistake_does_not_cause_others() {
    let text = lower_with("ld.relaxed.gup r0, x\nst.weak x, r0", &env()).expect_err("a misspelt scope");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn suites_may_leave_names_undeclared() {
    let env = Env { acquiring_red: true, ..Env::default() };
    let program = lower_with("st.weak new, r7\nred.acq_rel.cta.add x, 1", &env).expect("lenient");
    assert_eq!(program.locations.last().map(|l| l.name.as_str()), Some("new"));
    assert_eq!(program.threads[0].regs[0].init, Init::Int(0));
}

#[test]
fn every_row_is_documented_and_reachable() {
    for row in rows() {
        assert!(row.syntax.starts_with('`') && row.syntax.contains(row.opcode), "{}", row.syntax);
        assert!(!row.doc.is_empty());
    }
    assert_eq!(Scope::Cta as u8, 2, "scopes are ordered from narrow to wide");
}

/// What operations without a known value write, and that constants are not folded.
#[test]
fn values_that_are_not_worked_out() {
    for code in [
        "mov.f32 fb, 0f3F800000\nex2.approx.ftz.f32 d, fa",
        "lg2.approx.f32 d, fa\nsin.approx.f32 d, fa\ncos.approx.ftz.f32 d, fa\ntanh.approx.f32 d, fa",
        "rsqrt.approx.ftz.f64 d, fa\nrcp.approx.ftz.f32 d, fa\nsqrt.approx.f32 d, fa\ndiv.full.f32 d, fa, fb",
        "fma.rn.oob.relu.f16 i, i, i, i",
        "min.xorsign.abs.f16x2 h, g, g\nmax.NaN.xorsign.abs.f32 d, fa, fb",
        "cvt.rna.tf32.f32 h, fa\ncvt.rn.satfinite.e4m3x2.f32 i, fa, fb\ncvt.rn.f16x2.e5m2x2 h, i",
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {d, e}, {fa, fb}, {fc}, {d, e}",
        "createpolicy.fractional.L2::evict_first.b64 fl, 1.0\nld.global.L2::cache_hint.u32 d, [x], fl",
        "createpolicy.cvt.L2.b64 fl, k\napplypriority.global.L2::evict_normal [x], 128",
    ] {
        let given = "mov.b32 fa, 1\nmov.b32 fb, 1\nmov.b32 fc, 1\nmov.b32 g, 1\nmov.b32 h, 1\nmov.b16 i, 1\nmov.b64 fl, 1\nmov.b64 k, 1\nsetp.eq.u32 r, 1, 1";
        let program = lower(&format!("{given}\n{code}"));
        let made = program.threads[0].code.iter().filter_map(|instr| match &instr.op {
            Op::Assign { dst, value } if value.any(&|e| matches!(e, program::Expr::Bin(BinOp::Unknown, ..))) => {
                assert_eq!(value.value(&|_| Some(1)), None, "{code}");
                Some(*dst)
            }
            _ => None,
        });
        let silent = ["mov", "ld", "applypriority"];
        let lines = code.lines().filter(|line| !silent.iter().any(|opcode| line.starts_with(opcode)));
        assert!(made.count() >= lines.count(), "{code}");
    }
    assert_eq!(run("mov.b32 p, 0x80000001\nmov.b32 q, 0x3f800000\ncopysign.f32 d, p, q") as u32, 0xbf80_0000);
}

/// What straight code leaves in its last destination.
fn run(code: &str) -> i64 {
    let program = lower(code);
    let mut regs = vec![0; program.threads[0].regs.len()];
    let mut last = 0;
    for instr in &program.threads[0].code {
        let Op::Assign { dst, value } = &instr.op else { panic!("{code}: {:?}", instr.op) };
        let reg = |e: &program::Expr| match e {
            program::Expr::Reg(r) => Some(regs[usize::from(r.0)]),
            _ => None,
        };
        last = value.value(&reg).unwrap_or_else(|| panic!("{code}"));
        regs[usize::from(dst.0)] = last;
    }
    last
}

/// What the rules of the ISA make of numbers that were worked out by hand: 1 is 0x3c00 of `.f16`, 0x3f80 of `.bf16` and 0x3f800000 of
/// `.f32`; 0x7fff is no number.
#[test]
fn numbers_of_16_bits_and_limits() {
    let bits = |ty: &str| program_type(ty).bits;
    for (code, operands, expected) in [
        ("add.f16", "0x3c00 0x3c00", 0x4000),
        ("sub.rn.bf16", "0x3f80 0x4000", 0xbf80),
        // 1 + 2^-11 is a tie, and one more of the last bit is none.
        ("add.f16", "0x3c00 0x1000", 0x3c00),
        ("add.f16", "0x3c01 0x1000", 0x3c02),
        ("add.f16x2", "0x3c003c01 0x10001000", 0x3c00_3c02),
        ("mul.f16x2", "0x40004200 0x3800c000", 0x3c00_c600),
        ("mul.bf16x2", "0x40003f80 0x3f80bf80", 0x4000_bf80),
        // The smallest number, flushed and not.
        ("add.f16", "0x0001 0x8000", 0x0001),
        ("add.ftz.f16", "0x8001 0x8000", 0x8000),
        ("add.sat.f16", "0x3c00 0x3c00", 0x3c00),
        ("sub.sat.f16", "0x3c00 0x4000", 0),
        ("sub.sat.f16", "0x7c00 0x7c00", 0),
        ("sub.f16", "0x7c00 0x7c00", 0x7fff),
        ("mul.sat.f32", "0x40000000 0x40000000", 0x3f80_0000),
        ("fma.rn.f16", "0x3c01 0x3c01 0xbc02", 0x0010),
        ("fma.rn.relu.f16", "0x3c00 0xc000 0x3c00", 0),
        ("fma.rn.relu.bf16", "0x7fc0 0x3f80 0x3f80", 0x7fff),
        ("fma.rn.bf16x2", "0x3f803f80 0x40003f80 0x3f80bf80", 0x4040_0000),
        ("fma.rz.f32", "0x3f800001 0x3f800001 0x3f800000", 0x4000_0001),
        ("fma.rp.f32", "0x3f800001 0x3f800001 0x3f800000", 0x4000_0002),
        // 1 and the last bit, squared, without the 1: twice that bit and the square of it, in one rounding.
        ("fma.rn.f64", "0x3ff0000000000001 0x3ff0000000000001 0xbff0000000000000", 0x3cc0_0000_0000_0000),
        ("fma.rp.f64", "0x3ff0000000000001 0x3ff0000000000001 0xbff0000000000000", 0x3cc0_0000_0000_0001),
        // What overflows on the way.
        ("mad.rn.f64", "0x7fe0000000000000 0x4000000000000000 0xffefffffffffffff", 0x7ca0_0000_0000_0000),
        ("mad.rn.sat.f32", "0x3f800000 0x3f800000 0x3f800000", 0x3f80_0000),
        ("neg.f16x2", "0x3c000000", 0xbc00_8000),
        ("abs.bf16", "0xbf80", 0x3f80),
        ("min.f16", "0x7fff 0x3c00", 0x3c00),
        ("min.NaN.f16", "0x7fff 0x3c00", 0x7fff),
        ("max.NaN.f32", "0x3f800000 0x40000000", 0x4000_0000),
        ("max.bf16x2", "0x80003f80 0x0000bf80", 0x0000_3f80),
        ("add.rp.f32", "0x3f800000 0x00000001", 0x3f80_0001),
        ("sub.rm.f64", "0x3ff0000000000000 0x3ff0000000000000", i64::MIN),
        ("div.rz.f32", "0x3f800000 0x40400000", 0x3eaa_aaaa),
        ("rcp.rp.f32", "0x40400000", 0x3eaa_aaab),
        ("sqrt.rm.f32", "0x40000000", 0x3fb5_04f3),
        ("set.lt.f16.f16", "0x3c00 0x4000", 0x3c00),
        ("set.lt.u16.bf16", "0x3f80 0x4000", 0xffff),
        ("set.ge.u32.f16x2", "0x3c003c00 0x40003c00", 0xffff),
        ("set.ltu.bf16x2.bf16x2", "0x7fff3f80 0x3f803f80", 0x3f80_0000),
        ("set.eq.ftz.u32.f16", "0x0001 0x8000", 0xffff_ffff),
        ("add.sat.s32", "0x7fffffff 1", 0x7fff_ffff),
        ("sub.sat.s32", "0x80000000 1", i64::from(i32::MIN)),
        ("cvt.f32.f16", "0x3c00", 0x3f80_0000),
        ("cvt.f32.bf16", "0x0001", 0x0001_0000),
        ("cvt.ftz.f32.bf16", "0x0001", 0),
        ("cvt.f64.f16", "0x0001", 0x3e70_0000_0000_0000),
        ("cvt.rn.f16.f32", "0x3f801000", 0x3c00),
        ("cvt.rp.f16.f32", "0x3f801000", 0x3c01),
        ("cvt.rz.bf16.f32", "0x3f80ffff", 0x3f80),
        ("cvt.rn.bf16.f32", "0x3f80ffff", 0x3f81),
        ("cvt.rn.f16.f32", "0x7f7fffff", 0x7c00),
        ("cvt.rn.satfinite.f16.f32", "0xff800000", 0xfbff),
        ("cvt.rn.relu.satfinite.bf16.f32", "0xff800000", 0),
        ("cvt.rn.satfinite.f16.f32", "0x7fc00000", 0x7fff),
        ("cvt.rn.f16x2.f32", "0x3f800000 0x40000000", 0x3c00_4000),
        ("cvt.rn.relu.bf16x2.f32", "0xbf800000 0x40000000", 0x4000),
        ("cvt.rn.sat.f16.f32", "0x40000000", 0x3c00),
        ("cvt.rn.bf16.f16", "0x3c01", 0x3f80),
        ("cvt.rni.f16.f16", "0x3e00", 0x4000),
        ("cvt.rmi.s32.f16", "0xc100", -3),
        ("cvt.rzi.u16.bf16", "0x4049", 3),
        ("cvt.rn.f16.u32", "70000", 0x7c00),
        ("cvt.rz.f16.s64", "70000", 0x7bff),
        ("cvt.rz.f32.f64", "0x3fefffffffffffff", 0x3f7f_ffff),
        ("cvt.sat.u8.s32", "0xfffffff0", 0),
        ("cvt.sat.s8.u32", "0xfffffff0", 127),
        ("cvt.rn.sat.f32.f64", "0x4000000000000000", 0x3f80_0000),
    ] {
        let ty = |i: usize| code.split('.').rev().filter(|word| bits_named(word).is_some()).nth(i);
        let (of, to) =
            if code.starts_with("cvt") || code.starts_with("set") { (ty(0), ty(1)) } else { (ty(0), ty(0)) };
        let (of, to) = (of.expect("a type"), to.expect("a type"));
        let mut text = String::new();
        let names: Vec<String> = operands
            .split(' ')
            .enumerate()
            .map(|(i, operand)| {
                text += &format!("mov.b{} a{i}, {operand}\n", bits(of).max(16));
                format!("a{i}")
            })
            .collect();
        let got = run(&format!("{text}{code} d, {}", names.join(", ")));
        let size = bits(to);
        let mask = if size == 64 { -1 } else { (1i64 << size) - 1 };
        assert_eq!(got & mask, expected & mask, "{code} {operands}: {got:#x}");
    }
    let both = |code: &str| {
        let program =
            lower(&format!("mov.b32 ha, 0x3c004000\nmov.b32 hb, 0x3c003c00\nsetp.eq.u32 r, 1, 2\n{code}"));
        let instrs = &program.threads[0].code;
        let values: Vec<i64> = instrs[3..]
            .iter()
            .map(|instr| match &instr.op {
                Op::Assign { value, .. } => value
                    .value(&|e| match e {
                        program::Expr::Reg(r) => Some([0x3c00_4000, 0x3c00_3c00, 0][usize::from(r.0)]),
                        _ => None,
                    })
                    .expect("a value"),
                other => panic!("{other:?}"),
            })
            .collect();
        values
    };
    assert_eq!(both("setp.gt.f16x2 p|q, ha, hb"), [1, 0]);
    assert_eq!(both("setp.gt.or.f16x2 p|q, ha, hb, !r"), [1, 1]);
    assert_eq!(both("setp.lt.u32 p|q, ha, hb"), [0, 1]);
    assert_eq!(both("setp.lt.and.u32 _|q, ha, hb, r"), [0]);
}

fn program_type(name: &str) -> program::Ty {
    bits_named(name).expect("a type")
}

/// `recorded.tsv`: an opcode, the types of its result and operands, a last operand that is part of the opcode, and for each
/// row of operands what an NVIDIA H200 computed (PTX through `ptxas` 13.0, all operands in registers), all in bits. What is
/// no number is told as `nan`, as its bits are nobody's promise (*Floating-Point Instructions*).
#[test]
fn operations_give_what_a_gpu_computed() {
    let mut compared = 0;
    for line in include_str!("recorded.tsv").lines() {
        let [opcode, result, operands, last, cases @ ..] = &line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let bits = |ty: &str| if ty == "pred" { 1 } else { ty[1..].parse().expect("a size") };
        for case in cases {
            let (given, wanted) = case.split_once('=').expect("a result");
            let mut code = String::new();
            let mut names = Vec::new();
            for (i, (value, ty)) in given.split(',').zip(operands.split(',')).enumerate() {
                code += &match ty {
                    "pred" => format!("setp.ne.u32 a{i}, {value}, 0\n"),
                    ty => format!("mov.b{} a{i}, 0x{value}\n", bits(ty).max(16)),
                };
                names.push(format!("a{i}"));
            }
            names.extend((!last.is_empty()).then(|| last.to_string()));
            let got = run(&format!("{code}{opcode} d, {}", names.join(", "))) as u64;
            let got = match bits(result) {
                64 => got,
                size => got & ((1 << size.max(16)) - 1),
            };
            let nan = match *result {
                "f32" => f32::from_bits(got as u32).is_nan(),
                "f64" => f64::from_bits(got).is_nan(),
                _ => false,
            };
            let got = if nan { "nan".into() } else { format!("{got:x}") };
            assert_eq!(got, wanted, "{opcode} of {given}");
            compared += 1;
        }
    }
    assert_eq!(compared, 7556);
}

#[test]
fn operations_on_bits_are_those_of_the_processor() {
    let words =
        [0u32, 1, 2, 0x80, 0xff, 0x8000_0000, 0xffff_ffff, 0x7fff_ffff, 0x1234_5678, 0xdead_beef, 0x0001_0000];
    for a in words {
        let one = |op: &str| run(&format!("mov.b32 p, {a}\n{op} d, p")) as u32;
        assert_eq!(one("popc.b32"), a.count_ones(), "{a:#x}");
        assert_eq!(one("clz.b32"), a.leading_zeros(), "{a:#x}");
        assert_eq!(one("brev.b32"), a.reverse_bits(), "{a:#x}");
        assert_eq!(one("bfind.u32"), a.checked_ilog2().unwrap_or(u32::MAX), "{a:#x}");
        let magnitude = if (a as i32) < 0 { !a } else { a };
        assert_eq!(one("bfind.s32"), magnitude.checked_ilog2().unwrap_or(u32::MAX), "{a:#x}");
        assert_eq!(one("abs.s32"), (a as i32).wrapping_abs() as u32, "{a:#x}");
        assert_eq!(one("cnot.b32"), u32::from(a == 0), "{a:#x}");
        let wide = (u64::from(a) << 17) | u64::from(a.rotate_left(5));
        let long = |op: &str| run(&format!("mov.b64 p, {wide}\n{op} d, p"));
        assert_eq!(long("popc.b64") as u32, wide.count_ones(), "{wide:#x}");
        assert_eq!(long("clz.b64") as u32, wide.leading_zeros(), "{wide:#x}");
        assert_eq!(long("brev.b64") as u64, wide.reverse_bits(), "{wide:#x}");
        for b in words {
            let two =
                |op: &str, rest: &str| run(&format!("mov.b32 p, {a}\nmov.b32 q, {b}\n{op} d, p, q{rest}")) as u32;
            assert_eq!(two("mul.hi.u32", ""), ((u64::from(a) * u64::from(b)) >> 32) as u32);
            assert_eq!(two("mul.hi.s32", ""), ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32);
            assert_eq!(two("mad.hi.u32", ", 3"), (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(3));
            assert_eq!(two("sad.u32", ", 5"), a.abs_diff(b).wrapping_add(5));
            assert_eq!(two("sad.s32", ", 5"), (a as i32).abs_diff(b as i32).wrapping_add(5));
            assert_eq!(two("lop3.b32", ", 0x0f0f0f0f, 0x96"), a ^ b ^ 0x0f0f_0f0f);
            assert_eq!(two("lop3.b32", ", 0x0f0f0f0f, 0xe8"), (a & b) | (a & 0x0f0f_0f0f) | (b & 0x0f0f_0f0f));
            assert_eq!(two("lop3.b32", ", 0, 0"), 0);
            let bytes = |from: [usize; 4]| {
                let all = [a.to_le_bytes(), b.to_le_bytes()].concat();
                u32::from_le_bytes(from.map(|n| all[n]))
            };
            assert_eq!(two("prmt.b32", ", 0x3216"), bytes([6, 1, 2, 3]));
            // A selector that is not known beforehand.
            let all = [a.to_le_bytes(), b.to_le_bytes()].concat();
            let of = |nibble: u32| {
                let byte = all[(nibble & 7) as usize];
                if nibble & 8 == 0 { u32::from(byte) } else { u32::from(byte >> 7) * 0xff }
            };
            let by_b = (0..4).fold(0, |d, i| d | of(b >> (4 * i) & 15) << (8 * i));
            assert_eq!(two("prmt.b32", ", q"), by_b, "{a:#x} {b:#x}");
            for (cmp, holds) in [("eq", a == b), ("lt", a < b), ("hs", a >= b)] {
                assert_eq!(two(&format!("set.{cmp}.u32.u32"), ""), if holds { u32::MAX } else { 0 });
                assert_eq!(two(&format!("set.{cmp}.f32.u32"), ""), if holds { 0x3f80_0000 } else { 0 });
                let other = format!(
                    "setp.eq.u32 y, {a}, {a}\nmov.b32 p, {a}\nmov.b32 q, {b}\nset.{cmp}.xor.u32.u32 d, p, q, y"
                );
                assert_eq!(run(&other) as u32, if holds { 0 } else { u32::MAX });
            }
            assert_eq!(two("set.lt.s32.s32", ""), if (a as i32) < (b as i32) { u32::MAX } else { 0 });
            for (base, offset) in [(0, 1), (3, 1), (3, -1), (2, -1), (5, 0), (31, -2), (0, 7), (30, 2)] {
                // As the page says it.
                let (mut found, mut place, mut left) = (u32::MAX, base, i32::abs(offset) - 1);
                if offset == 0 && a >> base & 1 == 1 {
                    found = base as u32;
                }
                while offset != 0 && (0..32).contains(&place) {
                    if a >> place & 1 == 1 {
                        if left == 0 {
                            found = place as u32;
                            break;
                        }
                        left -= 1;
                    }
                    place += offset.signum();
                }
                let of = format!("mov.b32 p, {a}\nfns.b32 d, p, {base}, {offset}");
                assert_eq!(run(&of) as u32, found, "{a:#x} {base} {offset}");
            }
            for (x, y) in [(a, b), (b, a), (u32::MAX, a), (1, u32::MAX)] {
                let (x, y) = (u64::from(x) << 32 | u64::from(y), u64::from(y) << 32 | u64::from(x ^ 0x8000_0001));
                let wide = |op: &str| run(&format!("mov.b64 u, {x}\nmov.b64 v, {y}\n{op} d, u, v")) as u64;
                assert_eq!(wide("mul.hi.u64"), ((u128::from(x) * u128::from(y)) >> 64) as u64, "{x:#x} {y:#x}");
                let signed = (i128::from(x as i64) * i128::from(y as i64)) >> 64;
                assert_eq!(wide("mul.hi.s64"), signed as u64, "{x:#x} {y:#x}");
            }
            let sign =
                |n: usize| if [a.to_le_bytes(), b.to_le_bytes()].concat()[n] & 0x80 == 0 { 0 } else { 0xffu32 };
            assert_eq!(
                two("prmt.b32", ", 0xf8"),
                sign(0) | (sign(7) << 8) | ((a & 0xff) << 16) | ((a & 0xff) << 24)
            );
            for n in [0u32, 1, 13, 31, 32, 40] {
                let pair = (u64::from(b) << 32) | u64::from(a);
                let (wrapped, clamped) = (n & 31, n.min(32));
                assert_eq!(two("shf.l.wrap.b32", &format!(", {n}")), ((pair << wrapped) >> 32) as u32);
                assert_eq!(
                    two("shf.l.clamp.b32", &format!(", {n}")),
                    ((u128::from(pair) << clamped) >> 32) as u32
                );
                assert_eq!(two("shf.r.wrap.b32", &format!(", {n}")), (pair >> wrapped) as u32);
                assert_eq!(two("shf.r.clamp.b32", &format!(", {n}")), (pair >> clamped) as u32);
                for len in [0u32, 1, 7, 32] {
                    let field = |signed: bool| {
                        // As the page says it, bit by bit.
                        let sign = if !signed || len == 0 { 0 } else { (a >> (n + len - 1).min(31)) & 1 };
                        let bit = |i: u32| if i < len && n + i <= 31 { (a >> (n + i)) & 1 } else { sign };
                        (0..32).fold(0u32, |d, i| d | (bit(i) << i))
                    };
                    let of = |op: &str| run(&format!("mov.b32 p, {a}\n{op} d, p, {n}, {len}")) as u32;
                    assert_eq!((of("bfe.u32"), of("bfe.s32")), (field(false), field(true)), "{a:#x} {n} {len}");
                    let inserted = (0..len)
                        .filter(|i| n + i <= 31)
                        .fold(b, |d, i| (d & !(1 << (n + i))) | (((a >> i) & 1) << (n + i)));
                    assert_eq!(two("bfi.b32", &format!(", {n}, {len}")), inserted, "{a:#x} {b:#x} {n} {len}");
                }
            }
        }
    }
    fails("ld.u32 w, [a]\nlop3.b32 d, w, w, w, w", "wrong-operand");
    fails("ld.u32 w, [a]\nfns.b32 d, 1, w, 1", "wrong-operand");
    fails("fns.b32 d, 1, 32, 1", "out-of-range");
    fails("bmsk.b32 d, 1, 2", "missing-operation");
    fails("szext.wrap.s64 d, 1, 2", "unsupported-type");
    fails("mul24.lo.u64 d, 1, 2", "unsupported-type");
    fails("dp4a.u32 d, 1, 2, 3", "missing-type");
    fails("slct.u32.u32 d, 1, 2, 3", "missing-type");
}

#[test]
fn fields_products_and_selections_are_those_of_the_page() {
    let words = [0u32, 1, 2, 0x80, 0xff, 0x8000_0000, 0xffff_ffff, 0x0012_3456, 0xdead_beef, 31, 32, 33];
    for a in words {
        for b in words {
            let two = |code: &str| run(&format!("mov.b32 p, {a}\nmov.b32 q, {b}\n{code}")) as u32;
            for (mode, n) in [("clamp", b.min(32)), ("wrap", b & 31)] {
                // As the page says it: the sign is the last bit of the field.
                let sign = if n == 0 { 0 } else { a >> (n - 1) & 1 };
                let extended =
                    |sign: u32| (0..32).fold(0, |d, i| d | (if i < n { a >> i & 1 } else { sign }) << i);
                assert_eq!(two(&format!("szext.{mode}.s32 d, p, q")), extended(sign), "{a:#x} {b}");
                assert_eq!(two(&format!("szext.{mode}.u32 d, p, q")), extended(0), "{a:#x} {b}");
                let pos = if mode == "clamp" { a.min(32) } else { a & 31 };
                let field = (0..32u32).filter(|i| (pos..pos + n).contains(i)).fold(0, |d, i| d | 1 << i);
                assert_eq!(two(&format!("bmsk.{mode}.b32 d, p, q")), field, "{a:#x} {b}");
            }
            let low = |v: u32| ((v as i32) << 8 >> 8) as u32;
            assert_eq!(two("mul24.lo.s32 d, p, q"), low(a).wrapping_mul(low(b)));
            assert_eq!(two("mul24.lo.u32 d, p, q"), (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff));
            let sum = |of: fn(u8, u8) -> i32| {
                a.to_le_bytes()
                    .into_iter()
                    .zip(b.to_le_bytes())
                    .fold(7i32, |sum, (x, y)| sum.wrapping_add(of(x, y)))
            };
            assert_eq!(two("dp4a.u32.u32 d, p, q, 7"), sum(|x, y| i32::from(x) * i32::from(y)) as u32);
            assert_eq!(two("dp4a.s32.u32 d, p, q, 7"), sum(|x, y| i32::from(x as i8) * i32::from(y)) as u32);
            assert_eq!(two("dp4a.s32.s32 d, p, q, 7"), sum(|x, y| i32::from(x as i8) * i32::from(y as i8)) as u32);
            assert_eq!(two("slct.u32.s32 d, 3, 4, p"), if a as i32 >= 0 { 3 } else { 4 });
            assert_eq!(two("slct.u32.f32 d, 3, 4, p"), if f32::from_bits(a) >= 0.0 { 3 } else { 4 });
        }
    }
}

#[test]
fn non_coherent_loads_are_of_what_nobody_writes() {
    let program = lower("ld.global.nc.u32 r, [words+4]; prefetch.global.L2 [words]; prefetchu.L1 [words]");
    assert!(matches!(program.threads[0].code.as_slice(), [one] if matches!(one.op, Op::Load { .. })));
    lower("mov.u64 rd, words; ld.global.nc.L1::no_allocate.v2.u32 {r, q}, [rd]; st.u64 [x], 1");
    fails("ld.global.nc.u32 r, [words+4]; st.u32 [words], 1", "unsupported-load");
    fails(
        "mov.u64 rd, words; mov.u64 re, words; ld.global.nc.u32 r, [rd]; red.add.u32 [re], 1",
        "unsupported-load",
    );
    fails("ld.relaxed.gpu.global.nc.u32 r, [words]", "unknown-qualifier");
}

#[test]
fn shared_addresses_fit_32_bits_and_parameters_are_what_the_test_sets() {
    lower("mov.u32 r, s\nadd.s32 r2, r, 0\nst.shared.u32 [r2], 1");
    lower(".reg .b32 %r<4>;\nmov.u32 %r1, s\nst.shared.u32 [%r1], 1");
    lower("mov.u64 rd, s\ncvta.to.shared.u64 rd2, rd\ncvt.u32.u64 r, rd2\nst.shared.u32 [r], 1");
    fails("mov.u32 r, a\nst.u32 [r], 1", "type-mismatch");
    fails("mov.u64 rd, a\ncvt.u32.u64 r, rd\nst.u32 [r], 1", "unsupported-address");
    fails("ld.param.u64 rd, [k_param_0]", "unknown-register");
    let param = RegInit { name: "k_param_0".into(), init: Init::Int(7), span: Span::default() };
    let env = Env { regs: vec![param], ..env() };
    let program = lower_with("ld.param.u32 r, [k_param_0]\nst.u32 [x], r", &env).expect("bound");
    assert!(matches!(program.threads[0].code[0].op, Op::Assign { .. }));
    assert!(lower_with("ld.param.u32 r, [k_param_0+4]", &env).is_err());
    assert!(lower_with("mov.u64 rd, k_param_0\nld.param.u32 r, [%rd]", &env).is_err(), "through a register");
    assert!(lower_with("mov.u64 t, %globaltimer", &env).is_err());
    let timer = RegInit { name: "%globaltimer".into(), init: Init::Int(7), span: Span::default() };
    lower_with("mov.u64 t, %globaltimer", &Env { regs: vec![timer], ..env.clone() }).expect("an input");
    let message = lower_with("mov.u32 t, %reserved_smem_offset_1", &env).expect_err("the driver knows it");
    assert!(message.contains("the special register `%reserved_smem_offset_1` has no value here"), "{message}");
}

/// What is declared and never written has some value; what is not even declared is a slip.
#[test]
fn registers_without_a_value() {
    let program = lower(
        ".reg .b16 %rs<3>;\n.reg .b32 %r<3>;\nmov.b32 %r1, 7\nst.relaxed.gpu.u32 [x], %r2\nst.weak.u32 [a], %r1",
    );
    let code = &program.threads[0].code;
    let unset = code.iter().filter(
        |i| matches!(&i.op, Op::Assign { value, .. } if value.any(&|e| matches!(e, program::Expr::Bin(BinOp::Unknown, ..)))),
    );
    assert_eq!(unset.map(|i| i.line.number).collect::<Vec<_>>(), [4], "{code:?}");
    assert_eq!(code.len(), 4);
    fails("st.relaxed.gpu.u32 [x], %r2", "unknown-register");
    fails(".reg .b32 %r<3>;\nst.relaxed.gpu.u32 [x], %t2", "unknown-register");
}

/// A structure has a register for each piece that is read.
#[test]
fn structures_are_bound_piece_by_piece() {
    let piece = |name: &str, v| RegInit { name: name.into(), init: Init::Int(v), span: Span::default() };
    let env = Env { regs: vec![piece("p", 7), piece("p+4", 8), piece("p+8", 9)], ..env() };
    let assigned = |code: &str| {
        let program = lower_with(code, &env).unwrap_or_else(|e| panic!("{code}: {e}"));
        let thread = &program.threads[0];
        let read = |i: &Instr| match &i.op {
            Op::Assign { value, .. } => value.value(&|leaf| match leaf {
                Expr::Reg(r) => match &thread.regs[usize::from(r.0)].init {
                    Init::Int(v) => Some(*v),
                    _ => None,
                },
                _ => None,
            }),
            _ => None,
        };
        thread.code.iter().filter_map(read).collect::<Vec<i64>>()
    };
    assert_eq!(assigned("ld.param.u32 r, [p+4]"), [8]);
    assert_eq!(assigned("ld.param.v2.u32 {r, q}, [p+4]"), [8, 9]);
    assert_eq!(assigned("setp.eq.u32 k, 1, 1\n@k ld.param.v2.b32 {r, q}, [p]")[1..], [7, 8]);
    assert_eq!(assigned("ld.param.u64 rd, [p+8]\nld.param.u32 r, [p+8]"), [9, 9]);
    for (code, id) in [
        ("ld.param.u32 r, [p+12]", "unknown-register"),
        ("ld.param.u64 rd, [p]; ld.param.u32 r, [p+4]", "mixed-size"),
        ("ld.param.u32 r, [p+4]; ld.param.u64 rd, [p]", "mixed-size"),
        ("ld.param.v4.u32 {r, q}, [p]", "wrong-operand"),
    ] {
        assert!(lower_with(code, &env).expect_err(code).contains(id), "{code}");
    }
}

#[test]
fn vectors_of_parameters_are_passed_to_functions() {
    let f = ".func (.param .b32 o) f(.param .b64 a) { .reg .b32 %r<4>; ld.param.v2.b32 {%r1, %r2}, [a]; add.u32 %r3, %r1, %r2; \
             st.param.b32 [o], %r3; ret; }\n";
    let call = "{ .param .b64 a; .param .b32 o; st.param.v2.b32 [a], {1, 2}; call.uni (o), f, (a); ld.param.b32 r, [o]; }";
    lower(&format!("{f}{call}\nst.u32 [x], r"));
}

/// An assertion that does not hold stops the kernel.
#[test]
fn a_failed_assertion_is_a_trap() {
    let declared = ".extern .func __assertfail(.param .b64 m);\n";
    let call = "setp.eq.u32 p, 1, 1\n{ .param .b64 m; st.param.b64 [m], 0; @p call.uni __assertfail, (m); }\nst.u32 [x], 1";
    let program = lower(&format!("{declared}{call}"));
    let code = &program.threads[0].code;
    assert!(code.iter().any(|i| i.op.aborts()));
    fails("{ .param .b64 m; call.uni malloc, (m); }", "unknown-function");
}

/// What is printed orders nothing, and what `printf` returns is not known; but a function of that name is one like any other.
#[test]
fn printing_is_no_event() {
    let call = "{ .param .b64 m; .param .b32 n; st.param.b64 [m], 0; call.uni (n), vprintf, (m, m); ld.param.b32 r, [n]; }";
    let program = lower(&format!("{call}\nst.u32 [x], r"));
    let code = &program.threads[0].code;
    let accesses = code.iter().filter(|i| !matches!(i.op, Op::Assign { .. })).count();
    let unknown = |i: &program::Instr| match &i.op {
        Op::Assign { value, .. } => value.any(&|e| matches!(e, Expr::Bin(program::BinOp::Unknown, ..))),
        _ => false,
    };
    assert_eq!((accesses, code.iter().filter(|i| unknown(i)).count()), (1, 1));
    let own = ".func (.param .b32 o) vprintf(.param .b64 a, .param .b64 b) { st.param.b32 [o], 3; ret; }\n";
    let program = lower(&format!("{own}{call}\nst.u32 [x], r"));
    assert!(!program.threads[0].code.iter().any(unknown));
}

/// A carry that nothing kept is none.
/// A parameter whose address is taken is memory, and one that is read by its name alone a register.
#[test]
fn parameters_with_addresses_are_in_memory() {
    let loads = |code: &str| {
        let program = lower(code);
        program.threads[0]
            .code
            .iter()
            .filter(|i| matches!(i.op, Op::Load { .. }))
            .map(|i| i.text.clone())
            .collect::<Vec<_>>()
    };
    let taken = "mov.b64 %rd1, param\nadd.s64 %rd2, %rd1, 4\n";
    for load in ["ld.param.u32 %r1, [%rd2]", "ld.param.u32 %r1, [param+8]", "ld.param::entry.u32 %r1, [%rd1+4]"] {
        let read = load.replace(".param::entry", "").replace(".param", "");
        assert_eq!(loads(&format!("{taken}{load}")), [read]);
    }
    assert_eq!(loads(&format!("{taken}ld.param.v2.u32 {{%r1, %r2}}, [%rd1]")).len(), 2);
    assert_eq!(loads("mov.b64 %rd1, param\ncvta.param.u64 %rd2, %rd1\nld.u32 %r1, [%rd2+4]").len(), 1);
    assert_eq!(loads("{\n.param .b32 p;\nst.param.b32 [p], 3;\nld.param.b32 %r1, [p];\n}"), [""; 0]);
    fails(&format!("{taken}st.param.u32 [%rd2], 1"), "unsupported-address");
    fails("st.u32 [param], 1", "read-only");
    fails("ld.global.u32 %r1, [param]", "wrong-space");
    fails(&format!("{taken}ld.param.u32 %r1, [%rd3]"), "unknown-register");
}

#[test]
fn carries_are_kept_before_they_are_read() {
    lower("add.cc.u32 r, 1, 2; addc.u32 r, 1, 2; st.u32 [x], r");
    fails("addc.u32 r, 1, 2; add.cc.u32 r, 1, 2", "unknown-register");
    fails("add.u32 r, 1, 2; subc.u32 r, 1, 2", "unknown-register");
    fails("add.cc.u16 r, 1, 2", "unknown-qualifier");
}

#[test]
fn state_spaces_of_addresses_are_known_where_all_objects_are_in_one() {
    let answer = |code: &str| {
        let program = lower(code);
        program.threads[0].code.iter().find(|i| i.text.starts_with("isspacep")).map(|i| match &i.op {
            Op::Assign { value: Expr::Const(v), .. } => *v,
            other => panic!("{code}: {other:?}"),
        })
    };
    assert_eq!(answer("mov.u64 rd, x\nisspacep.global p, rd"), Some(1));
    assert_eq!(answer("mov.u64 rd, x\nisspacep.shared p, rd"), Some(0));
    assert_eq!(answer("mov.u64 rd, s\nisspacep.shared::cta p, rd"), Some(1));
    assert_eq!(answer("mov.u64 rd, s\nisspacep.local p, rd\n@p bra L\nst.u32 [rd], 1\nL:"), Some(0));
    let either = "mov.u64 rd, x\nsetp.eq.u32 q, 1, 1\n@q mov.u64 rd, s\nisspacep.shared p, rd";
    fails(either, "unsupported-address");
    fails("mov.u64 rd, 8\nisspacep.shared p, rd", "unsupported-address");
    fails("mov.u64 rd, s\nisspacep.bogus p, rd", "unknown-qualifier");
    // What is never come to is not looked at: of where the answer is known.
    let bytes = |before: &str| {
        format!(
            "mov.u64 rd, s\n{before}isspacep.local p, rd\nM: @p bra L\nst.u32 [rd], 1\nbra E\nL: st.u8 [rd], 1\nE:"
        )
    };
    assert_eq!(answer(&bytes("")), Some(0));
    let program = lower(&bytes(""));
    assert_eq!(program.threads[0].code.iter().filter(|i| i.op.is_access()).count(), 1);
    fails(&bytes("setp.eq.u32 q, 1, 1\n@q bra M\n"), "mixed-size");
    assert_eq!(answer(&bytes("setp.eq.u32 p, 1, 1\n")), Some(0));
    // As compilers print it without optimisation: the answer is a number first.
    let copied = |from: &str| {
        let asked = "isspacep.local q, rd\nselp.u32 r, 1, 0, q\ncvt.u16.u32 h, r\nsetp.ne.s16 p, h, 0";
        bytes("").replace("isspacep.local p, rd", &format!("ld.shared.u32 w, [s]\n{asked}{from}"))
    };
    assert_eq!(answer(&copied("")), Some(0));
    fails(&copied("\nsetp.ne.u32 p, w, 0"), "mixed-size");
    let shared = lower(&bytes("").replace(".local", ".shared"));
    let accesses = shared.threads[0].code.iter().flat_map(|i| i.op.accesses()).map(|access| access.ty.bits);
    assert_eq!(accesses.collect::<Vec<_>>(), [8]);
    let cluster = Env { cluster: vec![0, 1], ..env() };
    assert!(lower_with("mov.u64 rd, s\nisspacep.shared p, rd", &cluster).is_err());
    assert!(lower_with("mov.u64 rd, s\nisspacep.shared::cluster p, rd", &cluster).is_ok());
    // Which CTA of a cluster it is that an address is in.
    let second = Env { cluster: vec![-1, 0], ..env() };
    let program = lower_with("mov.u64 rd, s\ngetctarank.shared::cluster.u64 r, rd", &second).expect("its own");
    assert!(program.threads[0].code.iter().any(|i| matches!(i.op, Op::Assign { value: Expr::Const(1), .. })));
    fails("mov.u64 rd, x\ngetctarank.u64 r, rd", "wrong-space");
    fails("ld.u64 rd, x\ngetctarank.u64 r, rd", "wrong-operand");
}

#[test]
fn floating_point_operations_are_those_of_the_processor() {
    let numbers = [0f32, -0.0, 1.0, -1.5, 0.1, 3e38, 1e-40, -1e-45, f32::INFINITY, f32::NAN, 16_777_217.0, 2.5];
    let canonical = |v: f32| if v.is_nan() { 0x7fff_ffff } else { v.to_bits() };
    let flush = |v: f32| if v.is_subnormal() { 0f32.copysign(v) } else { v };
    for a in numbers {
        let (bits, long) = (a.to_bits(), f64::from(a).to_bits());
        let one = |code: &str| run(&format!("mov.b32 p, {bits}\n{code}"));
        assert_eq!(one("neg.f32 d, p") as u32, canonical(-a), "{a}");
        assert_eq!(one("abs.f32 d, p") as u32, canonical(a.abs()), "{a}");
        assert_eq!(one("abs.ftz.f32 d, p") as u32, canonical(flush(a).abs()), "{a}");
        assert_eq!(one("sqrt.rn.f32 d, p") as u32, canonical(a.sqrt()), "{a}");
        assert_eq!(one("rcp.rn.f32 d, p") as u32, canonical(1.0 / a), "{a}");
        assert_eq!(one("cvt.f64.f32 d, p"), if a.is_nan() { i64::MAX } else { long as i64 }, "{a}");
        assert_eq!(one("cvt.rzi.s32.f32 d, p") as i32, a as i32, "{a}");
        assert_eq!(one("cvt.rmi.f32.f32 d, p") as u32, canonical(a.floor()), "{a}");
        assert_eq!(run(&format!("mov.b64 p, {long}\ncvt.rn.f32.f64 d, p")) as u32, canonical(a), "{a}");
        for b in numbers {
            let two = |code: &str| run(&format!("mov.b32 p, {bits}\nmov.b32 q, {}\n{code}", b.to_bits())) as u32;
            assert_eq!(two("add.f32 d, p, q"), canonical(a + b), "{a} {b}");
            assert_eq!(two("add.rn.ftz.f32 d, p, q"), canonical(flush(flush(a) + flush(b))), "{a} {b}");
            assert_eq!(two("sub.rn.f32 d, p, q"), canonical(a - b), "{a} {b}");
            assert_eq!(two("mul.rn.f32 d, p, q"), canonical(a * b), "{a} {b}");
            assert_eq!(two("div.rn.f32 d, p, q"), canonical(a / b), "{a} {b}");
            assert_eq!(
                two("min.f32 d, p, q"),
                canonical(if a == b { if a.is_sign_negative() { a } else { b } } else { a.min(b) })
            );
            assert_eq!(two("fma.rn.f32 d, p, q, 0f3DCCCCCD"), canonical(a.mul_add(b, 0.1)), "{a} {b}");
            let wide = |code: &str| {
                run(&format!("mov.b64 p, {long}\nmov.b64 q, {}\n{code}", f64::from(b).to_bits())) as u64
            };
            let product = f64::from(a) * f64::from(b);
            assert_eq!(
                wide("mul.f64 d, p, q"),
                if product.is_nan() { i64::MAX as u64 } else { product.to_bits() }
            );
            let ordered = !a.is_nan() && !b.is_nan();
            for (word, holds) in [
                ("eq", a == b),
                ("ne", ordered && a != b),
                ("lt", a < b),
                ("le", a <= b),
                ("gt", a > b),
                ("ge", a >= b),
                ("equ", !ordered || a == b),
                ("neu", a != b),
                ("ltu", !ordered || a < b),
                ("leu", !ordered || a <= b),
                ("gtu", !ordered || a > b),
                ("geu", !ordered || a >= b),
                ("num", ordered),
                ("nan", !ordered),
            ] {
                assert_eq!(two(&format!("setp.{word}.f32 d, p, q")), u32::from(holds), "{a} {word} {b}");
            }
        }
    }
    assert_eq!(run("mov.b64 p, 0x1122334455667788\nmov.b64 {q, r}, p"), 0x1122_3344);
    assert_eq!(run("mov.b64 p, 0x1122334455667788\nmov.b64 {q, r, u, v}, p\nmov.b32 d, {v, q}"), 0x7788_1122);
    assert_eq!(
        run("mov.b16 p, 0x1122\nmov.b16 {q, r}, p\nmov.b64 d, {q, r, q, 0xffff}"),
        0xffff_0022_0011_0022_u64 as i64
    );
    assert_eq!(run("mov.f32 d, 1.5"), i64::from(1.5f32.to_bits()));
    assert_eq!(run("mov.f64 d, 0.1"), 0.1f64.to_bits() as i64);
    assert_eq!(run("mov.b32 p, 3\ncvt.rn.f32.s32 d, p"), i64::from(3f32.to_bits()));
    assert_eq!(run("mov.b64 p, -3\ncvt.rn.f64.s64 d, p"), (-3f64).to_bits() as i64);
    for (code, id) in [
        ("add.rn.u32 r, 1, 1", "conflicting-qualifiers"),
        ("mul.lo.f32 r, 0f00000000, 0f00000000", "conflicting-qualifiers"),
        ("add.ftz.f64 r, 0d0000000000000000, 0d0000000000000000", "conflicting-qualifiers"),
        ("rem.f32 r, 0f00000000, 0f00000000", "unsupported-qualifier"),
        ("add.f32 r, 0f00000000, 1", "wrong-operand"),
        ("mov.f64 r, 0f00000000", "wrong-operand"),
        ("div.f32 r, 0f00000000, 0f00000000", "unsupported-qualifier"),
        ("fma.f32 r, 0f00000000, 0f00000000, 0f00000000", "unsupported-qualifier"),
        ("mov.b32 p, 1; cvt.f32.s32 r, p", "conflicting-qualifiers"),
        ("mov.b32 p, 1; cvt.rn.s32.f32 r, p", "conflicting-qualifiers"),
        ("mov.b32 p, 1; cvt.rn.s32.u32 r, p", "conflicting-qualifiers"),
        ("setp.equ.s32 p, 1, 1", "missing-operation"),
        ("setp.lo.f32 p, 0f00000000, 0f00000000", "missing-operation"),
        ("atom.max.f32 r, [words], 0f00000000", "conflicting-qualifiers"),
        ("abs.ftz.s32 r, 1", "conflicting-qualifiers"),
    ] {
        fails(code, id);
    }
}

/// The cells of an object: where each lies, its bits, and whether it is an mbarrier object.
fn cells(program: &Program, name: &str) -> Vec<(i64, u8, bool)> {
    let object = program.locations.iter().find(|l| l.name == name).expect("a location");
    let LocationKind::Object { layout, init, .. } = &object.kind else { panic!("an alias") };
    let of = |cell: u32| (layout.offset(cell), layout.field(cell).ty.bits, layout.field(cell).mbarrier);
    (0..init.len() as u32).map(of).collect()
}

/// How many cells each access is to.
fn counts(program: &Program) -> Vec<u8> {
    program.threads[0].code.iter().filter(|i| i.op.is_access()).map(|i| i.element.cells).collect()
}

#[test]
fn an_array_of_bytes_is_cut_where_its_accesses_cut_it() {
    // An object, a word and a byte; what is not accessed is of words.
    let program = lower(
        "mov.u32 %rb, bytes\nst.shared.u32 [%rb], 1\nst.shared.u8 [bytes+4], 1\nadd.u32 %rb, %rb, 8\nmbarrier.init.shared.b64 [%rb], 1",
    );
    assert_eq!(
        cells(&program, "bytes"),
        [
            (0, 32, false),
            (4, 8, false),
            (5, 8, false),
            (6, 16, false),
            (8, 64, true),
            (16, 64, false),
            (24, 64, false)
        ]
    );
    // A loop that numbers decide has the addresses that it has.
    let program = lower(
        "mov.u32 i, 0\nmov.u32 %rb, bytes\nL: st.shared.u32 [%rb], i\nadd.u32 %rb, %rb, 8\nadd.u32 i, i, 1\nsetp.lt.u32 p, i, 2\n\
         @p bra L\nst.shared.u64 [bytes+16], 1\nld.shared.u16 r, [bytes+30]",
    );
    let all = cells(&program, "bytes");
    assert!(
        all.contains(&(0, 32, false)) && all.contains(&(8, 32, false)) && all.contains(&(16, 64, false)),
        "{all:?}"
    );
    assert!(all.contains(&(30, 16, false)), "{all:?}");
    // So has an index that was read, as far as a mask says.
    let program = lower(
        "ld.u32 i, [words]\nand.b32 i, i, 1\nshl.b32 i, i, 4\nmov.u32 %rb, bytes\nadd.u32 %rb, %rb, i\nst.shared.u16 [%rb+4], 1\n\
         st.shared.u64 [bytes+8], 1\nst.shared.u32 [bytes], 1",
    );
    let all = cells(&program, "bytes");
    assert!(
        all.contains(&(4, 16, false)) && all.contains(&(20, 16, false)) && all.contains(&(8, 64, false)),
        "{all:?}"
    );
    // One that nothing is known of can be anywhere.
    let program = lower(
        "ld.u32 i, [words]\nmul.lo.u32 i, i, 4\nmov.u32 %rb, bytes\nadd.u32 %rb, %rb, i\nst.shared.u32 [%rb], 1\nst.shared.u64 [bytes+8], 1",
    );
    assert_eq!(cells(&program, "bytes"), (0..8).map(|n| (4 * n, 32, false)).collect::<Vec<_>>());
    assert_eq!(counts(&program), [1, 1, 2]);
    // A cut in one place of an access is one in all of them.
    let program = lower(
        "ld.u32 i, [words]\nand.b32 i, i, 1\nshl.b32 i, i, 3\nmov.u32 %rb, bytes\nadd.u32 %rb, %rb, i\nst.shared.u64 [%rb], 1\n\
         ld.shared.u32 r, [bytes]\nld.shared.u64 rd, [bytes+24]",
    );
    let all = cells(&program, "bytes");
    assert!(all.contains(&(8, 32, false)) && all.contains(&(12, 32, false)), "{all:?}");
    assert_eq!(
        counts(&program),
        [1, 2, 1, u8::from(all.contains(&(24, 64, false))) + 2 * u8::from(all.contains(&(28, 32, false)))]
    );
}

#[test]
fn what_is_no_whole_field_is_refused() {
    let part = "mov.u32 %rb, bytes\nmbarrier.init.shared.b64 [%rb+8], 1\nst.shared.u32 [%rb+12], 1";
    fails(part, "mbarrier-access");
    fails("mbarrier.init.shared.b64 [bytes+8], 1\nld.shared.u64 rd, [bytes+8]", "mbarrier-access");
    fails("st.shared.u32 [structure+4], 1", "mixed-size");
    fails("mov.u32 %rb, structure\nst.shared.u16 [%rb+18], 1\nst.shared.u64 [%rb+16], 1", "mixed-size");
    fails(
        "ld.u32 i, [words]\nand.b32 i, i, 1\nshl.b32 i, i, 4\nmov.u32 %rb, structure\nadd.u32 %rb, %rb, i\nst.shared.u16 [%rb], 1\n\
           st.shared.u32 [%rb+4], 1",
        "mixed-size",
    );
    // Several fields of one size are one access.
    assert_eq!(
        counts(&lower(
            "st.shared.u32 [structure+16], 1\nst.shared.u64 [structure], 1\nst.shared.u16 [structure+18], 1"
        )),
        [2, 1, 1]
    );
}
