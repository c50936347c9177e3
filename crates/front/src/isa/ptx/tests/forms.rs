//! Spelling, functions, and the lowering of instructions other than arithmetic.

use super::*;

#[test]
fn compilers_spelling_and_short_form_mean_the_same() {
    for (long, expected) in [
        (
            "ld.global.relaxed.gpu.s64 %r1, [x];",
            "ld.relaxed.gpu r1, x\n",
        ),
        (
            "ld.relaxed.gpu.global.L1::evict_first.s64 %r1, [x];",
            "ld.relaxed.gpu r1, x\n",
        ),
        ("ld.global.ca.s64 %r1, [x]", "ld.weak r1, x\n"),
        ("ld.volatile.global.s64 %r1, [x]", "ld.volatile r1, x\n"),
        ("ld.global.s64 %r1, [x].unified;", "ld.weak r1, x\n"),
        (
            "ld.mmio.relaxed.sys.s64 %r1, [x]",
            "ld.mmio.relaxed.sys r1, x\n",
        ),
        (
            "ld.mmio.acquire.sys.s64 %r1, [x]",
            "ld.mmio.acquire.sys r1, x\n",
        ),
        ("st.u32 [a+8], 7;", "st.weak a[2], 7\n"),
        ("ld.global.s64 { %r1 }, [ x + 0 ];", "ld.weak r1, x\n"),
        ("st.global.s64 [ x + 0 ], { 7 };", "st.weak x, 7\n"),
        (
            "st.release.cluster.shared::cta.u32 [s], 7;",
            "st.release.cluster s, 7\n",
        ),
        (
            "atom.global.add.s64 %r1, [x], 1;",
            "atom.relaxed.gpu.add r1, x, 1\n",
        ),
        (
            "atom.acq_rel.sys.cas.b64 %r1, [x], 0, 1",
            "atom.acq_rel.sys.cas r1, x, 0, 1\n",
        ),
        (
            "atom.exch.release.cta _, x, 3",
            "atom.release.cta.exch _, x, 3\n",
        ),
        (
            "red.release.gpu.global.inc.u32 [x], 3",
            "red.release.gpu.inc x, 3\n",
        ),
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
    fails(
        "{ .reg .u32 t; mov.u32 t, 1 }; mov.u32 r, t",
        "unknown-register",
    );
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
    let text = short(&format!(
        "{twice}.reg .b32 %r<3>; mov.u32 %r1, 4\n{}st.u32 [x], %r2",
        call("")
    ));
    in_order(
        &text,
        &[
            "mov.u32 r1, 4",
            "mov.u32 a$1_, r1",
            "goto",
            "add.u32 r$3_2, r$3_1, r$3_1",
            "cvt.u32.s64 r2, b$1_",
        ],
    );
    // Two calls, one of them predicated.
    lower(&format!(
        "{twice}.reg .b32 %r<3>; mov.u32 %r1, 4; setp.eq.u32 q, 1, 1\n{}{}",
        call("@!q "),
        call("")
    ));
    // Parameters in registers are copied.
    let wide = ".func (.reg .u64 d) next(.reg .u64 s) { add.u64 s, s, 8; mov.u64 d, s; }\n";
    let text = short(&format!(
        "{wide}mov.u64 q, 1; call (r), next, (q); call (r), next, (7);"
    ));
    in_order(
        &text,
        &[
            "mov.u64 s$2_, q",
            "add.u64 s$2_, s$2_, 8",
            "mov.u64 r, d$2_",
            "mov.u64 s$4_, 7",
        ],
    );
    for (code, id) in [
        (format!("{wide}call (r), last, (s);"), "unknown-function"),
        (format!("{wide}call next, (s);"), "wrong-operands"),
        ("call f;".into(), "unknown-function"),
        (".extern .func f(.param .b32 p);\ncall f;".into(), "wrong-operands"),
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
    // A call through a register that one `mov` sets, passed as a parameter.
    let apply = ".func (.reg .u64 d) apply(.param .b64 f, .reg .u64 s) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [f];\n\
                 P : .callprototype (.reg .u64 _) _ (.reg .u64 _);\ncall (d), \n%rd1, \n(\ns\n)\n, P; }\n";
    let call = ".param .b64 g; mov.u64 %f, next; st.param.b64 [g], %f; call (r), apply, (g, 3);";
    let program = lower(&format!("{wide}{apply}{call}"));
    assert!(
        program.threads[0]
            .code
            .iter()
            .any(|i| i.text.starts_with("add.u64 s$")),
        "{program:?}"
    );
    // A read of a parameter's low part, as compilers print it for a narrower type.
    lower(".param .b32 g; st.param.b32 [g], 300; ld.param.u8 r, [g];");
    // Nested calls with two calls in each function.
    let mut code = ".func f0() { mov.u32 r, 1; }\n".to_owned();
    (0..30).for_each(|n| code += &format!(".func f{}() {{ call f{n}; call f{n}; }}\n", n + 1));
    fails(&(code + "call f30;"), "too-many-instructions");
    // Names in the dropped code cause no further errors.
    let mut code = ".func f0() { mov.u32 r, 1; }\n".to_owned();
    (0..30).for_each(|n| {
        code += &format!(
            ".func f{}() {{ bra L; call f{n}; call f{n}; L: ret; }}\n",
            n + 1
        )
    });
    let said = lower_with(&(code + "call f30;"), &PtxEnv::default()).expect_err("too much");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Checks that the texts occur in that order.
#[track_caller]
fn in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some(at) = rest.find(part) else {
            panic!("`{part}` is not behind what stands before it:\n{text}")
        };
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn what_is_printed_lowers_to_the_same_micro_ops() {
    let code = "L: ld.acquire.gpu r0, x; bne r0, 1, L\n\
                mov.u32 r1, 5\nadd.u32 r2, r1, 1\nmad.lo.s32 r3, r1, r2, -3\nsetp.lt.u32 p, r1, r2\n\
                @p bra E\n@!p st.weak x, 3\nselp.b32 r4, r1, 7, p\ncvt.u16.u32 r5, r1\nE: exit\nst.release.sys x, r0";
    let strip = |p: &Program| {
        let ops: Vec<String> = p.threads[0]
            .code
            .iter()
            .map(|i| format!("{:?}", i.op))
            .collect();
        (
            ops,
            p.threads[0]
                .regs
                .iter()
                .map(|r| (r.name.clone(), r.ty))
                .collect::<Vec<_>>(),
        )
    };
    let first = lower(code);
    let printed = short(code);
    assert_eq!(strip(&first), strip(&lower(&printed)), "{printed}");
}

#[test]
fn predicated_instructions_are_branched_around() {
    let program = lower("setp.eq p, 1, 1\n@p st x, 1\n@!p st x, 2\nst x, 3");
    let targets: Vec<usize> = program.threads[0]
        .code
        .iter()
        .filter_map(|i| i.op.target())
        .collect();
    assert_eq!(targets, [3, 5]);
}

#[test]
fn registers_come_in_order_of_appearance_with_the_type_of_their_first_writer() {
    let program = lower(".reg .b32 %q<5>;\nld.u32 %q2, [a]\nld r1, 5\nadd.u64 r9, r1, 1");
    let regs: Vec<(&str, Ty)> = program.threads[0]
        .regs
        .iter()
        .map(|r| (r.name.as_str(), r.ty))
        .collect();
    assert_eq!(regs, [("q2", Ty::U32), ("r1", Ty::WORD), ("r9", Ty::U64)]);
}

#[test]
fn barriers_have_two_ways_to_read_their_operands() {
    let litmus = PtxEnv {
        instance_barriers: true,
        ..env()
    };
    assert!(lower_with("bar.cta.sync 99, r0, 3; mov r0, 1", &litmus).is_ok());
    fails("bar.cta.sync 1, 2, 3", "wrong-operands");
    fails("bar.sync 16", "out-of-range");
    fails("bar.arrive 1", "wrong-operands");
    let of = |threads| PtxEnv {
        seats: Seats::new(
            GroupSeat::ALONE,
            GroupSeat {
                of: threads,
                ..GroupSeat::ALONE
            },
        ),
        ..env()
    };
    let red = "setp.eq.u32 p, 1, 1; bar.red.popc.u32 r0, 1, p; barrier.cta.red.and.aligned.pred q, 0, !p; bar.red.or.pred q, 0, p";
    assert!(lower_with(red, &of(64)).is_ok());
    assert!(
        lower_with(red, &of(65))
            .expect_err("too many")
            .contains("unsupported-barrier")
    );
    assert!(
        lower_with("bar.red.or.pred q, 16, q", &of(1))
            .expect_err("no such")
            .contains("out-of-range")
    );
    fails("bar.red.popc.u32 r0, 1, 32, p", "wrong-operands");
    let warp = PtxEnv {
        seats: Seats::new(
            GroupSeat {
                of: 4,
                ..GroupSeat::ALONE
            },
            GroupSeat::ALONE,
        ),
        ..env()
    };
    assert!(lower_with("bar.warp.sync 0xf", &warp).is_ok());
    assert!(lower_with("bar.warp.sync 0x7", &warp).is_ok());
    assert!(
        lower_with("bar.warp.sync 0x10", &warp).is_err(),
        "there is no such lane"
    );
    assert!(lower_with("mov.u32 r0, 3; bar.warp.sync r0", &warp).is_ok());
}

#[test]
fn lanes_meet_by_masks() {
    let warp = PtxEnv {
        seats: Seats::new(
            GroupSeat {
                rank: 1,
                of: 4,
                unsaid: false,
                anywhere: false,
            },
            GroupSeat::ALONE,
        ),
        ..env()
    };
    let ok = |code: &str| {
        assert!(
            lower_with(&format!("mov.u32 r0, 3; {code}"), &warp).is_ok(),
            "{code}"
        )
    };
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
    ok("ld.u32 r2, words; shfl.sync.idx.b32 r1, r0, 0, r2, -1");
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
        assert!(
            printed.lines().any(|line| line == code),
            "{code}: {printed}"
        );
        assert_eq!(
            lower(&printed).threads[0].code.len(),
            program.threads[0].code.len(),
            "{printed}"
        );
    }
    let count = lower("ld.u32 n, [a]; mbarrier.arrive.b64 _, [b], n");
    let address = count.threads[0].code[1]
        .op
        .address()
        .expect("an operation on an object");
    assert!(
        matches!(address, Expr::Select(..)),
        "a count that does not fit makes no address"
    );
}

/// Lines count through comments. A `.loc` holds up to the next one, and applies to a function's
/// code at each call. Inlined code names its call. Lines without a known origin have none.
#[test]
fn instructions_say_where_they_came_from() {
    let origins = |code: &str| -> Vec<String> {
        lower(code).threads[0]
            .code
            .iter()
            .map(|i| i.line.came_from().trim().to_owned())
            .collect()
    };
    assert_eq!(origins("st.weak x, 1"), [""]);
    let numbered = "st.weak x, 1\n#line 40 \"a/k.ptx\"\n/*\n*/ st.weak x, 2;\nL: st.weak x,\n3\n#line 7 \"l.ptx\"\nst.weak x, 4";
    assert_eq!(
        origins(numbered),
        ["", "[k.ptx:41]", "[k.ptx:42]", "[l.ptx:7]"]
    );
    let source = ".file 1 \"/s/k.cu\"\n.file 2 \"/lib/a.h\"\n.file 3 \"/s/own/b.h\"\n.loc 1 5 1\nst.weak x, 1\n\
                  .loc 1 6 1\n.loc 3 9 1, function_name $f, inlined_at 1 6 1\nst.weak x, 2\n\
                  .loc 2 8 1, function_name $g, inlined_at 3 9 1\nst.weak x, 3\n.loc 1 0 0\nst.weak x, 4\n\
                  .loc 9 1 1\nst.weak x, 5\n#line 4 \"k.ptx\"\nst.weak x, 6";
    let both = "[b.h:9, inlined at k.cu:6]";
    let all = "[a.h:8, inlined at b.h:9, inlined at k.cu:6]";
    assert_eq!(
        origins(source),
        ["[k.cu:5]", both, all, "", "", "[k.ptx:4]"]
    );
    // A chain through a library keeps its first and its last line.
    let deep = ".file 1 \"/s/k.cu\"\n.file 2 \"/lib/a.h\"\n.loc 2 8 1, function_name $g, inlined_at 1 3 1\n\
                .loc 2 70 1, function_name $h, inlined_at 2 8 1\n.loc 2 90 1, function_name $i, inlined_at 2 70 1\nst.weak x, 1\n\
                #line 4 \"k.ptx\"\n.loc 2 90 1, function_name $i, inlined_at 2 70 1\nst.weak x, 1";
    let chain = "a.h:90, inlined at a.h:8, inlined at k.cu:3";
    assert_eq!(
        origins(deep),
        [format!("[{chain}]"), format!("[{chain}, k.ptx:5]")]
    );
    let called = "#line 3 \"k.ptx\"\n.func f() {\nst.weak x, 1;\nret;\n}\n#line 20 \"k.ptx\"\ncall f;\nst.weak x, 2;\ncall f;";
    // The copy of the result comes after the code of the function.
    let at = [4, 5, 20, 21, 4, 5, 22].map(|line| format!("[k.ptx:{line}]"));
    assert_eq!(origins(called), at);
}

#[test]
fn every_row_is_documented_and_reachable() {
    for row in rows() {
        assert!(
            row.syntax.starts_with('`') && row.syntax.contains(row.opcode),
            "{}",
            row.syntax
        );
        assert!(!row.doc.is_empty());
    }
    assert_eq!(
        Scope::Cta as u8,
        2,
        "scopes are ordered from narrow to wide"
    );
}

/// Declared registers that nothing writes have an unknown value; undeclared ones are an error.
#[test]
fn registers_without_a_value() {
    let program = lower(
        ".reg .b16 %rs<3>;\n.reg .b32 %r<3>;\nmov.b32 %r1, 7\nst.relaxed.gpu.u32 [x], %r2\nst.weak.u32 [a], %r1",
    );
    let code = &program.threads[0].code;
    let unset = code.iter().filter(
        |i| matches!(&i.op, Op::Assign { value, .. } if value.any(&|e| matches!(e, program::Expr::Bin(BinOp::Unknown, ..)))),
    );
    assert_eq!(
        unset.map(|i| i.line.number).collect::<Vec<_>>(),
        [4],
        "{code:?}"
    );
    assert_eq!(code.len(), 4);
    fails("st.relaxed.gpu.u32 [x], %r2", "unknown-register");
    fails(
        ".reg .b32 %r<3>;\nst.relaxed.gpu.u32 [x], %t2",
        "unknown-register",
    );
}

#[test]
fn vectors_of_parameters_are_passed_to_functions() {
    let f = ".func (.param .b32 o) f(.param .b64 a) { .reg .b32 %r<4>; ld.param.v2.b32 {%r1, %r2}, [a]; add.u32 %r3, %r1, %r2; \
             st.param.b32 [o], %r3; ret; }\n";
    let call = "{ .param .b64 a; .param .b32 o; st.param.v2.b32 [a], {1, 2}; call.uni (o), f, (a); ld.param.b32 r, [o]; }";
    lower(&format!("{f}{call}\nst.u32 [x], r"));
}

/// For a call of an unknown function, a verdict only says whether the call is reached; no other
/// code reads its results.
#[test]
fn calls_of_unknown_functions_are_read() {
    let next = ".func (.reg .u64 d) next(.reg .u64 s) { add.u64 d, s, 8; }\n";
    for code in [
        format!("{next}ld.u64 %f, [x]; call (r), %f, (1), P; st.u64 [x], r"),
        format!("{next}mov.u64 %f, next; mov.u64 r, 1; L: call (r), %f, (r), P; mov.u64 %f, r; bra L;"),
        format!("{next}mov.u64 %f, next; mov.u64 r, 1; L: call (r), %f, (r), P; M: ld.v2.u64 \t{{q, %f}}, [gg]; bra L;"),
        "ld.u64 %f, [x]; { .param .b64 a; .param .align 8 .b8 o[16]; st.param.b64 [a], 1; call.uni (o), %f, (a), P; \
         ld.param.b64 r, [o]; ld.param.b32 q, [o+8]; } st.u64 [x], r"
            .to_owned(),
        "setp.eq.u32 p, 1, 2; ld.u64 %f, [x]; @p call %f, P;".to_owned(),
    ] {
        let program = lower(&code);
        assert_eq!(program.threads[0].code.iter().filter(|i| i.op.aborts()).count(), 1, "{code}");
    }
    // A register with a single writer is still followed.
    let followed = lower(&format!(
        "{next}mov.u64 %f, next; mov.u64 r, 1; call (r), %f, (r), P; st.u64 [x], r"
    ));
    assert!(!followed.threads[0].code.iter().any(|i| i.op.aborts()));
}

/// An indexed branch becomes a branch to each label of its list, also in a function that is
/// inserted twice. Beyond the end of the list it is a trap.
#[test]
fn jumps_by_number_have_a_list() {
    let jump = "ts: .branchtargets\n A,\n B;\nbrx.idx.uni i, ts;\nA: mov.u32 r, 1; bra.uni C;\nB: mov.u32 r, 2;\nC: ret;\n";
    let targets = |code: &str| {
        let program = lower(code);
        let code = &program.threads[0].code;
        let at = code.iter().filter(|i| {
            matches!(
                &i.op,
                Op::Branch {
                    cond: Expr::Cmp(..),
                    ..
                }
            )
        });
        let mut all: Vec<usize> = at.filter_map(|i| i.op.target()).collect();
        all.sort_unstable();
        let before = all.len();
        all.dedup();
        assert_eq!(before, all.len(), "{code:?}");
        (all.len(), code.iter().filter(|i| i.op.aborts()).count())
    };
    assert_eq!(targets(&format!("ld.u32 i, [x];\n{jump}")), (2, 1));
    let call = "{ .param .b32 a; ld.u32 q, [x]; st.param.b32 [a], q; call f, (a); }\n";
    let jump = format!("ld.param.b32 i, [p];\n{jump}");
    assert_eq!(
        targets(&format!(
            ".func f(.param .b32 p) {{ .reg .b32 i, r; {jump} }}\n{call}{call}"
        )),
        (4, 2)
    );
    fails("mov.u32 i, 1; brx.idx i, A; A: ret;", "unknown-label");
    fails(
        "mov.u32 i, 1; ts: .branchtargets A, B; brx.idx i, ts; A: ret;",
        "unknown-label",
    );
    fails("mov.u32 i, 1; ts: .branchtargets 1; A: ret;", "syntax");
}

/// A failed assertion stops the kernel.
#[test]
fn a_failed_assertion_is_a_trap() {
    let declared = ".extern .func __assertfail(.param .b64 m);\n";
    let call = "setp.eq.u32 p, 1, 1\n{ .param .b64 m; st.param.b64 [m], 0; @p call.uni __assertfail, (m); }\nst.u32 [x], 1";
    let program = lower(&format!("{declared}{call}"));
    let code = &program.threads[0].code;
    assert!(code.iter().any(|i| i.op.aborts()));
    fails(
        "{ .param .b64 m; call.uni malloc, (m); }",
        "unknown-function",
    );
}

/// Printing orders nothing, and the result of `printf` is unknown. A function of the test with that
/// name is an ordinary one.
#[test]
fn printing_is_no_event() {
    let call = "{ .param .b64 m; .param .b32 n; st.param.b64 [m], 0; call.uni (n), vprintf, (m, m); ld.param.b32 r, [n]; }";
    let program = lower(&format!("{call}\nst.u32 [x], r"));
    let code = &program.threads[0].code;
    let accesses = code
        .iter()
        .filter(|i| !matches!(i.op, Op::Assign { .. }))
        .count();
    let unknown = |i: &program::Instr| match &i.op {
        Op::Assign { value, .. } => {
            value.any(&|e| matches!(e, Expr::Bin(program::BinOp::Unknown, ..)))
        }
        _ => false,
    };
    assert_eq!(
        (accesses, code.iter().filter(|i| unknown(i)).count()),
        (1, 1)
    );
    let own = ".func (.param .b32 o) vprintf(.param .b64 a, .param .b64 b) { st.param.b32 [o], 3; ret; }\n";
    let program = lower(&format!("{own}{call}\nst.u32 [x], r"));
    assert!(!program.threads[0].code.iter().any(unknown));
}
