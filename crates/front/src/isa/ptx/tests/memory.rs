//! Addresses, accesses and parameters.

use super::*;
use program::Tag;

#[test]
fn elements_of_vectors_are_accesses_of_their_own() {
    let elements = |code: &str| -> Vec<(u8, u8)> {
        lower(code).threads[0]
            .code
            .iter()
            .map(|i| (i.element.at, i.element.of))
            .collect()
    };
    assert_eq!(
        elements("ld.v2.u32 {r0, r1}, [a]\nst x, 1"),
        [(0, 2), (1, 2), (0, 1)]
    );
    for code in [
        "ld.weak.v2.u32 {r0, r1}, a\n",
        "ld.acquire.gpu.v2.u32 {r0, r1}, a\n",
        "ld.volatile.v2.u32 {r0, r1}, a\n",
        "st.release.cta.v2.u32 a, {7, 8}\n",
        "mov.u64 rd, a\nst.weak.v2.u32 [rd], {7, 8}\n",
    ] {
        assert_eq!(short(code), code);
    }
    // All loads use the old address: the load that overwrites it comes last.
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
        (
            "mov.u64 rd, a\nst.v8.u64 [rd], {1, 2, 3, 4, 5, 6, 7, 8}",
            "unsupported-qualifier",
        ),
        ("st.v3.u32 [a], {1, 2, 3}", "unknown-qualifier"),
        (
            "atom.add.v2.u32 {r0, r1}, [a], {1, 1}",
            "unsupported-qualifier",
        ),
        (
            "atom.shared.add.v2.f32 {r0, r1}, [sw], {1, 1}",
            "unsupported-qualifier",
        ),
        ("atom.add.v2.f32 {r0, r1}, [gw], {1, r0}", "wrong-operand"),
        ("atom.add.v2.f32 {r0, r0}, [gw], {1, 1}", "wrong-operand"),
        ("atom.add.v2.f32 {r0, r1}, [gw+4], {1, 1}", "misaligned"),
        ("red.max.v2.f32 [gw], {1, 1}", "conflicting-qualifiers"),
    ] {
        fails(code, id);
    }
}

/// `mov.b128`, and registers of 128 bits as operands of `ld`, `st` and `atom`; also in blocks and
/// families.
#[test]
fn a_register_of_128_bits_is_its_halves() {
    let declared = ".reg .b128 q, p<2>;\n";
    for (wide, halves) in [
        (
            "mov.b128 q, {1, 2}; st.b128 [a], q",
            "mov.b64 l, 1; mov.b64 h, 2; st.b128 [a], {l, h}",
        ),
        (
            "ld.b128 p1, [a]; mov.b128 {r0, r1}, p1",
            "ld.b128 {l, h}, [a]; mov.b64 r0, l; mov.b64 r1, h",
        ),
        (
            "ld.b128 q, [a]; atom.relaxed.gpu.exch.b128 q, [a], q",
            "ld.b128 {l, h}, [a]; atom.relaxed.gpu.exch.b128 {l, h}, [a], {l, h}",
        ),
    ] {
        let ops = |code: &str| -> Vec<String> {
            lower(code).threads[0]
                .code
                .iter()
                .map(|instr| format!("{:?}", instr.op))
                .collect()
        };
        assert_eq!(ops(&format!("{declared}{wide}")), ops(halves), "{wide}");
        assert_eq!(
            ops(&format!("{{ {declared}{wide} }}")),
            ops(halves),
            "{wide}"
        );
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
    assert_eq!(
        tags("atom.acq_rel.gpu.add r0, x, 1"),
        r#"{"A", "ACQ", "GEN", "RMW"} {"A", "GEN", "REL", "RMW"}"#
    );
    assert_eq!(
        tags("atom.release.gpu.add r0, x, 1"),
        r#"{"A", "GEN", "RLX", "RMW"} {"A", "GEN", "REL", "RMW"}"#
    );
    assert_eq!(
        tags("red.add x, 1"),
        r#"{"A", "GEN", "RED", "RLX", "RMW"} {"A", "GEN", "RED", "RLX", "RMW"}"#
    );
}

#[test]
fn bytes_go_through_wider_registers() {
    let code =
        ".reg .b16 %rs<3>;\nld.u8 %rs1, [x]\nst.u8 [x], %rs1\nmov.b16 %rs1, 300\nst.u8 [x], %rs1";
    let program = lower(code);
    let thread = &program.threads[0];
    assert_eq!(
        thread.regs[0].ty,
        Ty {
            bits: 16,
            signed: false
        },
        "as wide as what is written to it"
    );
    match &thread.code[3].op {
        Op::Store { value, .. } => {
            assert!(
                matches!(value, program::Expr::Cast(Ty { bits: 8, .. }, _)),
                "{value:?}"
            )
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
    let ops: Vec<String> = program.threads[0]
        .code
        .iter()
        .map(|i| format!("{:?}", i.op))
        .collect();
    assert!(ops[3].ends_with("Const(8)) }"), "{}", ops[3]);
    assert!(ops[5].contains("Const(4)"), "{}", ops[5]);
    assert!(ops[6].ends_with("Const(8)) }"), "{}", ops[6]);
    match &program.locations[1].kind {
        LocationKind::Object { layout, .. } => {
            assert_eq!(layout.field(0).ty, Ty::U32, "inferred through the register")
        }
        other => panic!("{other:?}"),
    }
    fails(
        "mov.u64 %rd1, a\nadd.s64 %rd1, %rd1, 2\nst.u32 [%rd1], 1",
        "misaligned",
    );
    fails(
        "mov.u64 %rd1, a\nst.u32 [%rd1], 1\nst.u64 [%rd1], 1",
        "mixed-size",
    );
    fails(
        "mov.u64 %rd1, a\nst.u32 [%rd1], 1\nld r1, a[1]",
        "mixed-size",
    );
    fails("mov %rd1, 5\nst.u32 [%rd1], 1", "not-an-address");
    for operands in ["%rd1, %rd2, %rd2", "%rd2, %rd2, %rd1"] {
        fails(
            &format!(
                "st.u32 [a], 1\nmov.u64 %rd2, 1\nmov.u64 %rd1, a\nfma.rn.f64 %rd3, {operands}"
            ),
            "unsupported-address",
        );
    }
    for mask in ["15", "-8", "-3", "4", "%rd9"] {
        let masked =
            format!("st.u32 [a], 1\nmov.u64 %rd9, 1\nmov.u64 %rd1, a\nand.b64 %rd2, %rd1, {mask}");
        fails(&masked, "unsupported-address");
    }
}

/// The offset of an address in its word is a number. More bits of it would depend on the placement
/// of objects, however they are computed.
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
    // A compiler decides the alignment of variables in shared memory.
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
        // The printed text has the size, too.
        let printed = lower(&short(code));
        assert_eq!(
            printed.threads[0]
                .code
                .last()
                .expect("an access")
                .element
                .cells,
            cells,
            "{code}"
        );
    }
    for (code, id) in [
        ("ld.u32 w, [x]\nst.u64 [x], 1", "mixed-size"),
        ("ld.u64 w, [x]\nst.u32 [x], 1", "mixed-size"),
        ("mov.u64 %rd1, words\nst.u16 [%rd1], 1", "mixed-size"),
        (
            "mov.u32 r1, sw\nmbarrier.init.shared.b64 [r1], 2",
            "mixed-size",
        ),
        ("mov.u64 %rd1, words\nst.u64 [%rd1+4], 1", "misaligned"),
        (
            "st.u64 [x], 1\nmov.u64 %rd1, words\nmov.u64 %rd1, x\nst.u64 [%rd1], 1",
            "mixed-size",
        ),
    ] {
        fails(code, id);
    }
}

#[test]
fn non_coherent_loads_are_of_what_nobody_writes() {
    let program =
        lower("ld.global.nc.u32 r, [words+4]; prefetch.global.L2 [words]; prefetchu.L1 [words]");
    assert!(
        matches!(program.threads[0].code.as_slice(), [one] if matches!(one.op, Op::Load { .. }))
    );
    lower("mov.u64 rd, words; ld.global.nc.L1::no_allocate.v2.u32 {r, q}, [rd]; st.u64 [x], 1");
    fails(
        "ld.global.nc.u32 r, [words+4]; st.u32 [words], 1",
        "unsupported-load",
    );
    fails(
        "mov.u64 rd, words; mov.u64 re, words; ld.global.nc.u32 r, [rd]; red.add.u32 [re], 1",
        "unsupported-load",
    );
    fails(
        "ld.relaxed.gpu.global.nc.u32 r, [words]",
        "unknown-qualifier",
    );
}

#[test]
fn shared_addresses_fit_32_bits_and_parameters_are_what_the_test_sets() {
    lower("mov.u32 r, s\nadd.s32 r2, r, 0\nst.shared.u32 [r2], 1");
    lower(".reg .b32 %r<4>;\nmov.u32 %r1, s\nst.shared.u32 [%r1], 1");
    lower("mov.u64 rd, s\ncvta.to.shared.u64 rd2, rd\ncvt.u32.u64 r, rd2\nst.shared.u32 [r], 1");
    fails("mov.u32 r, a\nst.u32 [r], 1", "type-mismatch");
    fails(
        "mov.u64 rd, a\ncvt.u32.u64 r, rd\nst.u32 [r], 1",
        "unsupported-address",
    );
    fails("ld.param.u64 rd, [k_param_0]", "unknown-register");
    let param = RegInit {
        name: "k_param_0".into(),
        init: Init::Int(7),
        span: Span::default(),
    };
    let env = PtxEnv {
        regs: vec![param],
        ..env()
    };
    let program = lower_with("ld.param.u32 r, [k_param_0]\nst.u32 [x], r", &env).expect("bound");
    assert!(matches!(program.threads[0].code[0].op, Op::Assign { .. }));
    assert!(lower_with("ld.param.u32 r, [k_param_0+4]", &env).is_err());
    assert!(
        lower_with("mov.u64 rd, k_param_0\nld.param.u32 r, [%rd]", &env).is_err(),
        "through a register"
    );
    assert!(lower_with("mov.u64 t, %globaltimer", &env).is_err());
    let timer = RegInit {
        name: "%globaltimer".into(),
        init: Init::Int(7),
        span: Span::default(),
    };
    lower_with(
        "mov.u64 t, %globaltimer",
        &PtxEnv {
            regs: vec![timer],
            ..env.clone()
        },
    )
    .expect("an input");
    let message =
        lower_with("mov.u32 t, %reserved_smem_offset_1", &env).expect_err("the driver knows it");
    assert!(
        message.contains("the special register `%reserved_smem_offset_1` has no value here"),
        "{message}"
    );
}

/// Each piece of a structure that code reads is a register.
#[test]
fn structures_are_bound_piece_by_piece() {
    let piece = |name: &str, v| RegInit {
        name: name.into(),
        init: Init::Int(v),
        span: Span::default(),
    };
    let env = PtxEnv {
        regs: vec![piece("p", 7), piece("p+4", 8), piece("p+8", 9)],
        ..env()
    };
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
    assert_eq!(
        assigned("setp.eq.u32 k, 1, 1\n@k ld.param.v2.b32 {r, q}, [p]")[1..],
        [7, 8]
    );
    assert_eq!(
        assigned("ld.param.u64 rd, [p+8]\nld.param.u32 r, [p+8]"),
        [9, 9]
    );
    for (code, id) in [
        ("ld.param.u32 r, [p+12]", "unknown-register"),
        ("ld.param.u64 rd, [p]; ld.param.u32 r, [p+4]", "mixed-size"),
        ("ld.param.u32 r, [p+4]; ld.param.u64 rd, [p]", "mixed-size"),
        ("ld.param.v4.u32 {r, q}, [p]", "wrong-operand"),
    ] {
        assert!(
            lower_with(code, &env).expect_err(code).contains(id),
            "{code}"
        );
    }
}

/// A parameter whose address is taken is memory; one that code only reads by name is a register.
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
    for load in [
        "ld.param.u32 %r1, [%rd2]",
        "ld.param.u32 %r1, [param+8]",
        "ld.param::entry.u32 %r1, [%rd1+4]",
    ] {
        let read = load.replace(".param::entry", "").replace(".param", "");
        assert_eq!(loads(&format!("{taken}{load}")), [read]);
    }
    assert_eq!(
        loads(&format!("{taken}ld.param.v2.u32 {{%r1, %r2}}, [%rd1]")).len(),
        2
    );
    assert_eq!(
        loads("mov.b64 %rd1, param\ncvta.param.u64 %rd2, %rd1\nld.u32 %r1, [%rd2+4]").len(),
        1
    );
    // Triton takes the address in 32 bits.
    assert_eq!(
        loads(
            "mov.b32 %r9, param\ncvt.u64.u32 %rd1, %r9\ncvta.param.u64 %rd2, %rd1\n\
             ld.u32 %r1, [%rd2+4]"
        ),
        loads("mov.b64 %rd1, param\ncvta.param.u64 %rd2, %rd1\nld.u32 %r1, [%rd2+4]")
    );
    assert_eq!(
        loads("{\n.param .b32 p;\nst.param.b32 [p], 3;\nld.param.b32 %r1, [p];\n}"),
        [""; 0]
    );
    fails(
        &format!("{taken}st.param.u32 [%rd2], 1"),
        "unsupported-address",
    );
    fails("st.u32 [param], 1", "read-only");
    fails("ld.global.u32 %r1, [param]", "wrong-space");
    fails(
        &format!("{taken}ld.param.u32 %r1, [%rd3]"),
        "unknown-register",
    );
}

#[test]
fn state_spaces_of_addresses_are_known_where_all_objects_are_in_one() {
    let answer = |code: &str| {
        let program = lower(code);
        program.threads[0]
            .code
            .iter()
            .find(|i| i.text.starts_with("isspacep"))
            .map(|i| match &i.op {
                Op::Assign {
                    value: Expr::Const(v),
                    ..
                } => *v,
                other => panic!("{code}: {other:?}"),
            })
    };
    assert_eq!(answer("mov.u64 rd, x\nisspacep.global p, rd"), Some(1));
    assert_eq!(answer("mov.u64 rd, x\nisspacep.shared p, rd"), Some(0));
    assert_eq!(answer("mov.u64 rd, s\nisspacep.shared::cta p, rd"), Some(1));
    assert_eq!(
        answer("mov.u64 rd, s\nisspacep.local p, rd\n@p bra L\nst.u32 [rd], 1\nL:"),
        Some(0)
    );
    let either = "mov.u64 rd, x\nsetp.eq.u32 q, 1, 1\n@q mov.u64 rd, s\nisspacep.shared p, rd";
    fails(either, "unsupported-address");
    fails(
        "mov.u64 rd, 8\nisspacep.shared p, rd",
        "unsupported-address",
    );
    fails("mov.u64 rd, s\nisspacep.bogus p, rd", "unknown-qualifier");
    // If the answer is known, unreachable code is not checked.
    let bytes = |before: &str| {
        format!(
            "mov.u64 rd, s\n{before}isspacep.local p, rd\nM: @p bra L\nst.u32 [rd], 1\nbra E\nL: st.u8 [rd], 1\nE:"
        )
    };
    assert_eq!(answer(&bytes("")), Some(0));
    let program = lower(&bytes(""));
    assert_eq!(
        program.threads[0]
            .code
            .iter()
            .filter(|i| i.op.is_access())
            .count(),
        1
    );
    fails(&bytes("setp.eq.u32 q, 1, 1\n@q bra M\n"), "mixed-size");
    assert_eq!(answer(&bytes("setp.eq.u32 p, 1, 1\n")), Some(0));
    // Without optimisation, compilers first convert the answer to a number.
    let copied = |from: &str| {
        let asked =
            "isspacep.local q, rd\nselp.u32 r, 1, 0, q\ncvt.u16.u32 h, r\nsetp.ne.s16 p, h, 0";
        bytes("").replace(
            "isspacep.local p, rd",
            &format!("ld.shared.u32 w, [s]\n{asked}{from}"),
        )
    };
    assert_eq!(answer(&copied("")), Some(0));
    fails(&copied("\nsetp.ne.u32 p, w, 0"), "mixed-size");
    let shared = lower(&bytes("").replace(".local", ".shared"));
    let accesses = shared.threads[0]
        .code
        .iter()
        .flat_map(|i| i.op.accesses())
        .map(|access| access.ty.bits);
    assert_eq!(accesses.collect::<Vec<_>>(), [8]);
    let cluster = PtxEnv {
        cluster: vec![0, 1],
        ..env()
    };
    assert!(lower_with("mov.u64 rd, s\nisspacep.shared p, rd", &cluster).is_err());
    assert!(lower_with("mov.u64 rd, s\nisspacep.shared::cluster p, rd", &cluster).is_ok());
    // The rank of the CTA that an address points into.
    let second = PtxEnv {
        cluster: vec![-1, 0],
        ..env()
    };
    let program = lower_with(
        "mov.u64 rd, s\ngetctarank.shared::cluster.u64 r, rd",
        &second,
    )
    .expect("its own");
    assert!(program.threads[0].code.iter().any(|i| matches!(
        i.op,
        Op::Assign {
            value: Expr::Const(1),
            ..
        }
    )));
    fails("mov.u64 rd, x\ngetctarank.u64 r, rd", "wrong-space");
    fails("ld.u64 rd, x\ngetctarank.u64 r, rd", "wrong-operand");
}

/// The cells of an object: offset, bits, and whether it is an mbarrier object.
fn cells(program: &Program, name: &str) -> Vec<(i64, u8, bool)> {
    let object = program
        .locations
        .iter()
        .find(|l| l.name == name)
        .expect("a location");
    let LocationKind::Object { layout, init, .. } = &object.kind else {
        panic!("an alias")
    };
    let of = |cell: u32| {
        (
            layout.offset(cell),
            layout.field(cell).ty.bits,
            layout.field(cell).mbarrier,
        )
    };
    (0..init.len() as u32).map(of).collect()
}

/// The number of cells of each access.
fn counts(program: &Program) -> Vec<u8> {
    program.threads[0]
        .code
        .iter()
        .filter(|i| i.op.is_access())
        .map(|i| i.element.cells)
        .collect()
}

#[test]
fn an_array_of_bytes_is_cut_where_its_accesses_cut_it() {
    // An object, a word and a byte; the other bytes become words.
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
    // A loop over constants gives exact addresses.
    let program = lower(
        "mov.u32 i, 0\nmov.u32 %rb, bytes\nL: st.shared.u32 [%rb], i\nadd.u32 %rb, %rb, 8\nadd.u32 i, i, 1\nsetp.lt.u32 p, i, 2\n\
         @p bra L\nst.shared.u64 [bytes+16], 1\nld.shared.u16 r, [bytes+30]",
    );
    let all = cells(&program, "bytes");
    assert!(
        all.contains(&(0, 32, false))
            && all.contains(&(8, 32, false))
            && all.contains(&(16, 64, false)),
        "{all:?}"
    );
    assert!(all.contains(&(30, 16, false)), "{all:?}");
    // A mask bounds an index that was read from memory.
    let program = lower(
        "ld.u32 i, [words]\nand.b32 i, i, 1\nshl.b32 i, i, 4\nmov.u32 %rb, bytes\nadd.u32 %rb, %rb, i\nst.shared.u16 [%rb+4], 1\n\
         st.shared.u64 [bytes+8], 1\nst.shared.u32 [bytes], 1",
    );
    let all = cells(&program, "bytes");
    assert!(
        all.contains(&(4, 16, false))
            && all.contains(&(20, 16, false))
            && all.contains(&(8, 64, false)),
        "{all:?}"
    );
    // An access with an unknown index can be anywhere.
    let program = lower(
        "ld.u32 i, [words]\nmul.lo.u32 i, i, 4\nmov.u32 %rb, bytes\nadd.u32 %rb, %rb, i\nst.shared.u32 [%rb], 1\nst.shared.u64 [bytes+8], 1",
    );
    assert_eq!(
        cells(&program, "bytes"),
        (0..8).map(|n| (4 * n, 32, false)).collect::<Vec<_>>()
    );
    assert_eq!(counts(&program), [1, 1, 2]);
    // A division at one place of an access applies to all its places.
    let program = lower(
        "ld.u32 i, [words]\nand.b32 i, i, 1\nshl.b32 i, i, 3\nmov.u32 %rb, bytes\nadd.u32 %rb, %rb, i\nst.shared.u64 [%rb], 1\n\
         ld.shared.u32 r, [bytes]\nld.shared.u64 rd, [bytes+24]",
    );
    let all = cells(&program, "bytes");
    assert!(
        all.contains(&(8, 32, false)) && all.contains(&(12, 32, false)),
        "{all:?}"
    );
    assert_eq!(
        counts(&program),
        [
            1,
            2,
            1,
            u8::from(all.contains(&(24, 64, false))) + 2 * u8::from(all.contains(&(28, 32, false)))
        ]
    );
}

/// If storage has both uses, mbarrier objects move behind the data. Operations that begin or end an
/// object write the data bytes; accesses to these first test for an object.
#[test]
fn storage_of_objects_is_used_again() {
    let program = lower(
        "mov.u32 %rb, bytes\nmbarrier.init.shared.b64 [%rb+8], 1\nmbarrier.arrive.shared.b64 _, [%rb+8]\nmbarrier.inval.shared.b64 [%rb+8]\n\
         st.shared.u32 [%rb+12], 1\nst.shared.v2.u32 [%rb+8], {1, 2}\nst.shared.u32 [%rb], 1",
    );
    let all = cells(&program, "bytes");
    assert!(
        all.contains(&(8, 32, false))
            && all.contains(&(12, 32, false))
            && all.contains(&(40, 64, true)),
        "{all:?}"
    );
    let code = &program.threads[0].code;
    let objects = code.iter().filter(|i| i.op.has(Tag::Mbarrier)).count();
    let unknown = |i: &&program::Instr| matches!(&i.op, Op::Store { value, .. } if value.any(&|e| matches!(e, Expr::Bin(program::BinOp::Unknown, ..))));
    // Three operations, and a test before each access; a vector inside one word needs a single
    // test.
    assert_eq!((objects, code.iter().filter(unknown).count()), (5, 4));
    // If all bytes have a single use, nothing is moved.
    let program = lower(
        "mbarrier.init.shared.b64 [bytes+8], 1\nmbarrier.inval.shared.b64 [bytes+8]\nst.shared.u32 [bytes], 1",
    );
    assert!(cells(&program, "bytes").iter().all(|cell| cell.0 < 32));
}

#[test]
fn what_is_no_whole_field_is_refused() {
    // An access with an unknown index, or by a copy, cannot be separated from the object.
    let part = "mbarrier.init.shared.b64 [bytes+8], 1\n";
    fails(
        &format!(
            "{part}ld.u32 i, [words]\nmov.u32 %rb, bytes\nadd.u32 %rb, %rb, i\nst.shared.u32 [%rb], 1"
        ),
        "mbarrier-access",
    );
    fails(
        &format!("{part}cp.async.ca.shared.global [bytes+8], [gg], 8"),
        "mbarrier-access",
    );
    fails("st.shared.u32 [structure+4], 1", "mixed-size");
    fails(
        "mov.u32 %rb, structure\nst.shared.u16 [%rb+18], 1\nst.shared.u64 [%rb+16], 1",
        "mixed-size",
    );
    fails(
        "ld.u32 i, [words]\nand.b32 i, i, 1\nshl.b32 i, i, 4\nmov.u32 %rb, structure\nadd.u32 %rb, %rb, i\nst.shared.u16 [%rb], 1\n\
         st.shared.u32 [%rb+4], 1",
        "mixed-size",
    );
    // Several fields of one size can be one access.
    assert_eq!(
        counts(&lower(
            "st.shared.u32 [structure+16], 1\nst.shared.u64 [structure], 1\nst.shared.u16 [structure+18], 1"
        )),
        [2, 1, 1]
    );
}
