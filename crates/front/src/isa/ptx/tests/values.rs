//! Values of arithmetic, compared with the processor, the ISA's pages and results of a GPU.

use super::*;

/// Operations with unknown results write unknown values, and are not folded.
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
        let made = program.threads[0]
            .code
            .iter()
            .filter_map(|instr| match &instr.op {
                Op::Assign { dst, value }
                    if value.any(&|e| matches!(e, program::Expr::Bin(BinOp::Unknown, ..))) =>
                {
                    assert_eq!(value.value(&|_| Some(1)), None, "{code}");
                    Some(*dst)
                }
                _ => None,
            });
        let silent = ["mov", "ld", "applypriority"];
        let lines = code
            .lines()
            .filter(|line| !silent.iter().any(|opcode| line.starts_with(opcode)));
        assert!(made.count() >= lines.count(), "{code}");
    }
    assert_eq!(
        run("mov.b32 p, 0x80000001\nmov.b32 q, 0x3f800000\ncopysign.f32 d, p, q") as u32,
        0xbf80_0000
    );
}

/// The value of the last destination after straight-line code.
fn run(code: &str) -> i64 {
    let program = lower(code);
    let mut regs = vec![0; program.threads[0].regs.len()];
    let mut last = 0;
    for instr in &program.threads[0].code {
        let Op::Assign { dst, value } = &instr.op else {
            panic!("{code}: {:?}", instr.op)
        };
        let reg = |e: &program::Expr| match e {
            program::Expr::Reg(r) => Some(regs[usize::from(r.0)]),
            _ => None,
        };
        last = value.value(&reg).unwrap_or_else(|| panic!("{code}"));
        regs[usize::from(dst.0)] = last;
    }
    last
}

/// Results computed by hand from the rules of the ISA: 1 is 0x3c00 in `.f16`, 0x3f80 in `.bf16` and
/// 0x3f800000 in `.f32`; 0x7fff is a NaN.
#[test]
fn numbers_of_16_bits_and_limits() {
    let bits = |ty: &str| program_type(ty).bits;
    for (code, operands, expected) in [
        ("add.f16", "0x3c00 0x3c00", 0x4000),
        ("sub.rn.bf16", "0x3f80 0x4000", 0xbf80),
        // 1 + 2^-11 is a tie; with one more in the last bit it is not.
        ("add.f16", "0x3c00 0x1000", 0x3c00),
        ("add.f16", "0x3c01 0x1000", 0x3c02),
        ("add.f16x2", "0x3c003c01 0x10001000", 0x3c00_3c02),
        ("mul.f16x2", "0x40004200 0x3800c000", 0x3c00_c600),
        ("mul.bf16x2", "0x40003f80 0x3f80bf80", 0x4000_bf80),
        // The smallest number, with and without flushing.
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
        (
            "fma.rn.bf16x2",
            "0x3f803f80 0x40003f80 0x3f80bf80",
            0x4040_0000,
        ),
        (
            "fma.rz.f32",
            "0x3f800001 0x3f800001 0x3f800000",
            0x4000_0001,
        ),
        (
            "fma.rp.f32",
            "0x3f800001 0x3f800001 0x3f800000",
            0x4000_0002,
        ),
        // The square of 1 plus the last bit, minus 1: twice that bit plus its square, in one
        // rounding.
        (
            "fma.rn.f64",
            "0x3ff0000000000001 0x3ff0000000000001 0xbff0000000000000",
            0x3cc0_0000_0000_0000,
        ),
        (
            "fma.rp.f64",
            "0x3ff0000000000001 0x3ff0000000000001 0xbff0000000000000",
            0x3cc0_0000_0000_0001,
        ),
        // The intermediate result overflows.
        (
            "mad.rn.f64",
            "0x7fe0000000000000 0x4000000000000000 0xffefffffffffffff",
            0x7ca0_0000_0000_0000,
        ),
        (
            "mad.rn.sat.f32",
            "0x3f800000 0x3f800000 0x3f800000",
            0x3f80_0000,
        ),
        // Each half separately: 1 + 2 and -1 + 1; numbers below the smallest one; a tie and a
        // number beyond it.
        (
            "add.f32x2",
            "0x3f800000bf800000 0x400000003f800000",
            0x4040_0000_0000_0000,
        ),
        (
            "add.rn.ftz.f32x2",
            "0x000000013f800000 0x0000000000000000",
            0x3f80_0000,
        ),
        (
            "sub.rz.f32x2",
            "0x3f8000003f800000 0x3080000030800000",
            0x3f7f_ffff_3f7f_ffff,
        ),
        (
            "mul.f32x2",
            "0x4000000040400000 0x3f000000c0000000",
            0x3f80_0000_c0c0_0000,
        ),
        (
            "fma.rz.f32x2",
            "0x3f8000013f800000 0x3f80000140000000 0x3f800000bf800000",
            0x4000_0001_3f80_0000,
        ),
        ("neg.f16x2", "0x3c000000", 0xbc00_8000),
        ("abs.bf16", "0xbf80", 0x3f80),
        ("min.f16", "0x7fff 0x3c00", 0x3c00),
        ("min.NaN.f16", "0x7fff 0x3c00", 0x7fff),
        ("max.NaN.f32", "0x3f800000 0x40000000", 0x4000_0000),
        ("max.bf16x2", "0x80003f80 0x0000bf80", 0x0000_3f80),
        ("add.rp.f32", "0x3f800000 0x00000001", 0x3f80_0001),
        (
            "sub.rm.f64",
            "0x3ff0000000000000 0x3ff0000000000000",
            i64::MIN,
        ),
        ("div.rz.f32", "0x3f800000 0x40400000", 0x3eaa_aaaa),
        ("rcp.rp.f32", "0x40400000", 0x3eaa_aaab),
        ("sqrt.rm.f32", "0x40000000", 0x3fb5_04f3),
        ("set.lt.f16.f16", "0x3c00 0x4000", 0x3c00),
        ("set.lt.u16.bf16", "0x3f80 0x4000", 0xffff),
        ("set.ge.u32.f16x2", "0x3c003c00 0x40003c00", 0xffff),
        (
            "set.ltu.bf16x2.bf16x2",
            "0x7fff3f80 0x3f803f80",
            0x3f80_0000,
        ),
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
        let ty = |i: usize| {
            code.split('.')
                .rev()
                .filter(|word| bits_named(word).is_some())
                .nth(i)
        };
        let (of, to) = if code.starts_with("cvt") || code.starts_with("set") {
            (ty(0), ty(1))
        } else {
            (ty(0), ty(0))
        };
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
        let program = lower(&format!(
            "mov.b32 ha, 0x3c004000\nmov.b32 hb, 0x3c003c00\nsetp.eq.u32 r, 1, 2\n{code}"
        ));
        let instrs = &program.threads[0].code;
        let values: Vec<i64> = instrs[3..]
            .iter()
            .map(|instr| match &instr.op {
                Op::Assign { value, .. } => value
                    .value(&|e| match e {
                        program::Expr::Reg(r) => {
                            Some([0x3c00_4000, 0x3c00_3c00, 0][usize::from(r.0)])
                        }
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

/// `recorded.tsv` has an opcode, the types of its result and operands, and a last operand that is
/// part of the opcode. Each row of operands has the result of an NVIDIA H200 (PTX through `ptxas`
/// 13.0, all operands in registers), all in bits. A NaN is written as `nan`, because no source
/// defines its bits (*Floating-Point Instructions*).
#[test]
fn operations_give_what_a_gpu_computed() {
    let mut compared = 0;
    for line in include_str!("recorded.tsv").lines() {
        let [opcode, result, operands, last, cases @ ..] =
            &line.split('\t').collect::<Vec<_>>()[..]
        else {
            panic!("{line}")
        };
        let bits = |ty: &str| {
            if ty == "pred" {
                1
            } else {
                ty[1..].parse().expect("a size")
            }
        };
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
            let got = if nan {
                "nan".into()
            } else {
                format!("{got:x}")
            };
            assert_eq!(got, wanted, "{opcode} of {given}");
            compared += 1;
        }
    }
    assert_eq!(compared, 7556);
}

#[test]
fn operations_on_bits_are_those_of_the_processor() {
    let words = [
        0u32,
        1,
        2,
        0x80,
        0xff,
        0x8000_0000,
        0xffff_ffff,
        0x7fff_ffff,
        0x1234_5678,
        0xdead_beef,
        0x0001_0000,
    ];
    for a in words {
        let one = |op: &str| run(&format!("mov.b32 p, {a}\n{op} d, p")) as u32;
        assert_eq!(one("popc.b32"), a.count_ones(), "{a:#x}");
        assert_eq!(one("clz.b32"), a.leading_zeros(), "{a:#x}");
        assert_eq!(one("brev.b32"), a.reverse_bits(), "{a:#x}");
        assert_eq!(
            one("bfind.u32"),
            a.checked_ilog2().unwrap_or(u32::MAX),
            "{a:#x}"
        );
        let magnitude = if (a as i32) < 0 { !a } else { a };
        assert_eq!(
            one("bfind.s32"),
            magnitude.checked_ilog2().unwrap_or(u32::MAX),
            "{a:#x}"
        );
        assert_eq!(one("abs.s32"), (a as i32).wrapping_abs() as u32, "{a:#x}");
        assert_eq!(one("cnot.b32"), u32::from(a == 0), "{a:#x}");
        let wide = (u64::from(a) << 17) | u64::from(a.rotate_left(5));
        let long = |op: &str| run(&format!("mov.b64 p, {wide}\n{op} d, p"));
        assert_eq!(long("popc.b64") as u32, wide.count_ones(), "{wide:#x}");
        assert_eq!(long("clz.b64") as u32, wide.leading_zeros(), "{wide:#x}");
        assert_eq!(long("brev.b64") as u64, wide.reverse_bits(), "{wide:#x}");
        for b in words {
            let two = |op: &str, rest: &str| {
                run(&format!(
                    "mov.b32 p, {a}\nmov.b32 q, {b}\n{op} d, p, q{rest}"
                )) as u32
            };
            assert_eq!(
                two("mul.hi.u32", ""),
                ((u64::from(a) * u64::from(b)) >> 32) as u32
            );
            assert_eq!(
                two("mul.hi.s32", ""),
                ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32
            );
            assert_eq!(
                two("mad.hi.u32", ", 3"),
                (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(3)
            );
            assert_eq!(two("sad.u32", ", 5"), a.abs_diff(b).wrapping_add(5));
            assert_eq!(
                two("sad.s32", ", 5"),
                (a as i32).abs_diff(b as i32).wrapping_add(5)
            );
            assert_eq!(two("lop3.b32", ", 0x0f0f0f0f, 0x96"), a ^ b ^ 0x0f0f_0f0f);
            assert_eq!(
                two("lop3.b32", ", 0x0f0f0f0f, 0xe8"),
                (a & b) | (a & 0x0f0f_0f0f) | (b & 0x0f0f_0f0f)
            );
            assert_eq!(two("lop3.b32", ", 0, 0"), 0);
            let bytes = |from: [usize; 4]| {
                let all = [a.to_le_bytes(), b.to_le_bytes()].concat();
                u32::from_le_bytes(from.map(|n| all[n]))
            };
            assert_eq!(two("prmt.b32", ", 0x3216"), bytes([6, 1, 2, 3]));
            // A selector that is not constant.
            let all = [a.to_le_bytes(), b.to_le_bytes()].concat();
            let of = |nibble: u32| {
                let byte = all[(nibble & 7) as usize];
                if nibble & 8 == 0 {
                    u32::from(byte)
                } else {
                    u32::from(byte >> 7) * 0xff
                }
            };
            let by_b = (0..4).fold(0, |d, i| d | of(b >> (4 * i) & 15) << (8 * i));
            assert_eq!(two("prmt.b32", ", q"), by_b, "{a:#x} {b:#x}");
            for (cmp, holds) in [("eq", a == b), ("lt", a < b), ("hs", a >= b)] {
                assert_eq!(
                    two(&format!("set.{cmp}.u32.u32"), ""),
                    if holds { u32::MAX } else { 0 }
                );
                assert_eq!(
                    two(&format!("set.{cmp}.f32.u32"), ""),
                    if holds { 0x3f80_0000 } else { 0 }
                );
                let other = format!(
                    "setp.eq.u32 y, {a}, {a}\nmov.b32 p, {a}\nmov.b32 q, {b}\nset.{cmp}.xor.u32.u32 d, p, q, y"
                );
                assert_eq!(run(&other) as u32, if holds { 0 } else { u32::MAX });
            }
            assert_eq!(
                two("set.lt.s32.s32", ""),
                if (a as i32) < (b as i32) { u32::MAX } else { 0 }
            );
            for (base, offset) in [
                (0, 1),
                (3, 1),
                (3, -1),
                (2, -1),
                (5, 0),
                (31, -2),
                (0, 7),
                (30, 2),
            ] {
                // The algorithm of the page.
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
                let (x, y) = (
                    u64::from(x) << 32 | u64::from(y),
                    u64::from(y) << 32 | u64::from(x ^ 0x8000_0001),
                );
                let wide =
                    |op: &str| run(&format!("mov.b64 u, {x}\nmov.b64 v, {y}\n{op} d, u, v")) as u64;
                assert_eq!(
                    wide("mul.hi.u64"),
                    ((u128::from(x) * u128::from(y)) >> 64) as u64,
                    "{x:#x} {y:#x}"
                );
                let signed = (i128::from(x as i64) * i128::from(y as i64)) >> 64;
                assert_eq!(wide("mul.hi.s64"), signed as u64, "{x:#x} {y:#x}");
            }
            let sign = |n: usize| {
                if [a.to_le_bytes(), b.to_le_bytes()].concat()[n] & 0x80 == 0 {
                    0
                } else {
                    0xffu32
                }
            };
            assert_eq!(
                two("prmt.b32", ", 0xf8"),
                sign(0) | (sign(7) << 8) | ((a & 0xff) << 16) | ((a & 0xff) << 24)
            );
            for n in [0u32, 1, 13, 31, 32, 40] {
                let pair = (u64::from(b) << 32) | u64::from(a);
                let (wrapped, clamped) = (n & 31, n.min(32));
                assert_eq!(
                    two("shf.l.wrap.b32", &format!(", {n}")),
                    ((pair << wrapped) >> 32) as u32
                );
                assert_eq!(
                    two("shf.l.clamp.b32", &format!(", {n}")),
                    ((u128::from(pair) << clamped) >> 32) as u32
                );
                assert_eq!(
                    two("shf.r.wrap.b32", &format!(", {n}")),
                    (pair >> wrapped) as u32
                );
                assert_eq!(
                    two("shf.r.clamp.b32", &format!(", {n}")),
                    (pair >> clamped) as u32
                );
                for len in [0u32, 1, 7, 32] {
                    let field = |signed: bool| {
                        // The algorithm of the page, bit by bit.
                        let sign = if !signed || len == 0 {
                            0
                        } else {
                            (a >> (n + len - 1).min(31)) & 1
                        };
                        let bit = |i: u32| {
                            if i < len && n + i <= 31 {
                                (a >> (n + i)) & 1
                            } else {
                                sign
                            }
                        };
                        (0..32).fold(0u32, |d, i| d | (bit(i) << i))
                    };
                    let of =
                        |op: &str| run(&format!("mov.b32 p, {a}\n{op} d, p, {n}, {len}")) as u32;
                    assert_eq!(
                        (of("bfe.u32"), of("bfe.s32")),
                        (field(false), field(true)),
                        "{a:#x} {n} {len}"
                    );
                    let inserted = (0..len).filter(|i| n + i <= 31).fold(b, |d, i| {
                        (d & !(1 << (n + i))) | (((a >> i) & 1) << (n + i))
                    });
                    assert_eq!(
                        two("bfi.b32", &format!(", {n}, {len}")),
                        inserted,
                        "{a:#x} {b:#x} {n} {len}"
                    );
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
    let words = [
        0u32,
        1,
        2,
        0x80,
        0xff,
        0x8000_0000,
        0xffff_ffff,
        0x0012_3456,
        0xdead_beef,
        31,
        32,
        33,
    ];
    for a in words {
        for b in words {
            let two = |code: &str| run(&format!("mov.b32 p, {a}\nmov.b32 q, {b}\n{code}")) as u32;
            for (mode, n) in [("clamp", b.min(32)), ("wrap", b & 31)] {
                // As the page defines it: the sign is the last bit of the field.
                let sign = if n == 0 { 0 } else { a >> (n - 1) & 1 };
                let extended = |sign: u32| {
                    (0..32).fold(0, |d, i| d | (if i < n { a >> i & 1 } else { sign }) << i)
                };
                assert_eq!(
                    two(&format!("szext.{mode}.s32 d, p, q")),
                    extended(sign),
                    "{a:#x} {b}"
                );
                assert_eq!(
                    two(&format!("szext.{mode}.u32 d, p, q")),
                    extended(0),
                    "{a:#x} {b}"
                );
                let pos = if mode == "clamp" { a.min(32) } else { a & 31 };
                let field = (0..32u32)
                    .filter(|i| (pos..pos + n).contains(i))
                    .fold(0, |d, i| d | 1 << i);
                assert_eq!(
                    two(&format!("bmsk.{mode}.b32 d, p, q")),
                    field,
                    "{a:#x} {b}"
                );
            }
            let low = |v: u32| ((v as i32) << 8 >> 8) as u32;
            assert_eq!(two("mul24.lo.s32 d, p, q"), low(a).wrapping_mul(low(b)));
            assert_eq!(
                two("mul24.lo.u32 d, p, q"),
                (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff)
            );
            let sum = |of: fn(u8, u8) -> i32| {
                a.to_le_bytes()
                    .into_iter()
                    .zip(b.to_le_bytes())
                    .fold(7i32, |sum, (x, y)| sum.wrapping_add(of(x, y)))
            };
            assert_eq!(
                two("dp4a.u32.u32 d, p, q, 7"),
                sum(|x, y| i32::from(x) * i32::from(y)) as u32
            );
            assert_eq!(
                two("dp4a.s32.u32 d, p, q, 7"),
                sum(|x, y| i32::from(x as i8) * i32::from(y)) as u32
            );
            assert_eq!(
                two("dp4a.s32.s32 d, p, q, 7"),
                sum(|x, y| i32::from(x as i8) * i32::from(y as i8)) as u32
            );
            assert_eq!(
                two("slct.u32.s32 d, 3, 4, p"),
                if a as i32 >= 0 { 3 } else { 4 }
            );
            assert_eq!(
                two("slct.u32.f32 d, 3, 4, p"),
                if f32::from_bits(a) >= 0.0 { 3 } else { 4 }
            );
        }
    }
}

#[test]
fn carries_are_kept_before_they_are_read() {
    lower("add.cc.u32 r, 1, 2; addc.u32 r, 1, 2; st.u32 [x], r");
    fails("addc.u32 r, 1, 2; add.cc.u32 r, 1, 2", "unknown-register");
    fails("add.u32 r, 1, 2; subc.u32 r, 1, 2", "unknown-register");
    fails("add.cc.u16 r, 1, 2", "unknown-qualifier");
}

#[test]
fn floating_point_operations_are_those_of_the_processor() {
    let numbers = [
        0f32,
        -0.0,
        1.0,
        -1.5,
        0.1,
        3e38,
        1e-40,
        -1e-45,
        f32::INFINITY,
        f32::NAN,
        16_777_217.0,
        2.5,
    ];
    let canonical = |v: f32| if v.is_nan() { 0x7fff_ffff } else { v.to_bits() };
    let flush = |v: f32| {
        if v.is_subnormal() {
            0f32.copysign(v)
        } else {
            v
        }
    };
    for a in numbers {
        let (bits, long) = (a.to_bits(), f64::from(a).to_bits());
        let one = |code: &str| run(&format!("mov.b32 p, {bits}\n{code}"));
        assert_eq!(one("neg.f32 d, p") as u32, canonical(-a), "{a}");
        assert_eq!(one("abs.f32 d, p") as u32, canonical(a.abs()), "{a}");
        assert_eq!(
            one("abs.ftz.f32 d, p") as u32,
            canonical(flush(a).abs()),
            "{a}"
        );
        assert_eq!(one("sqrt.rn.f32 d, p") as u32, canonical(a.sqrt()), "{a}");
        assert_eq!(one("rcp.rn.f32 d, p") as u32, canonical(1.0 / a), "{a}");
        assert_eq!(
            one("cvt.f64.f32 d, p"),
            if a.is_nan() { i64::MAX } else { long as i64 },
            "{a}"
        );
        assert_eq!(one("cvt.rzi.s32.f32 d, p") as i32, a as i32, "{a}");
        assert_eq!(
            one("cvt.rmi.f32.f32 d, p") as u32,
            canonical(a.floor()),
            "{a}"
        );
        assert_eq!(
            run(&format!("mov.b64 p, {long}\ncvt.rn.f32.f64 d, p")) as u32,
            canonical(a),
            "{a}"
        );
        for b in numbers {
            let two = |code: &str| {
                run(&format!(
                    "mov.b32 p, {bits}\nmov.b32 q, {}\n{code}",
                    b.to_bits()
                )) as u32
            };
            assert_eq!(two("add.f32 d, p, q"), canonical(a + b), "{a} {b}");
            assert_eq!(
                two("add.rn.ftz.f32 d, p, q"),
                canonical(flush(flush(a) + flush(b))),
                "{a} {b}"
            );
            assert_eq!(two("sub.rn.f32 d, p, q"), canonical(a - b), "{a} {b}");
            assert_eq!(two("mul.rn.f32 d, p, q"), canonical(a * b), "{a} {b}");
            assert_eq!(two("div.rn.f32 d, p, q"), canonical(a / b), "{a} {b}");
            assert_eq!(
                two("min.f32 d, p, q"),
                canonical(if a == b {
                    if a.is_sign_negative() { a } else { b }
                } else {
                    a.min(b)
                })
            );
            assert_eq!(
                two("fma.rn.f32 d, p, q, 0f3DCCCCCD"),
                canonical(a.mul_add(b, 0.1)),
                "{a} {b}"
            );
            let wide = |code: &str| {
                run(&format!(
                    "mov.b64 p, {long}\nmov.b64 q, {}\n{code}",
                    f64::from(b).to_bits()
                )) as u64
            };
            let product = f64::from(a) * f64::from(b);
            assert_eq!(
                wide("mul.f64 d, p, q"),
                if product.is_nan() {
                    i64::MAX as u64
                } else {
                    product.to_bits()
                }
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
                assert_eq!(
                    two(&format!("setp.{word}.f32 d, p, q")),
                    u32::from(holds),
                    "{a} {word} {b}"
                );
            }
        }
    }
    assert_eq!(
        run("mov.b64 p, 0x1122334455667788\nmov.b64 {q, r}, p"),
        0x1122_3344
    );
    assert_eq!(
        run("mov.b64 p, 0x1122334455667788\nmov.b64 {q, r, u, v}, p\nmov.b32 d, {v, q}"),
        0x7788_1122
    );
    assert_eq!(
        run("mov.b16 p, 0x1122\nmov.b16 {q, r}, p\nmov.b64 d, {q, r, q, 0xffff}"),
        0xffff_0022_0011_0022_u64 as i64
    );
    assert_eq!(run("mov.f32 d, 1.5"), i64::from(1.5f32.to_bits()));
    assert_eq!(run("mov.f64 d, 0.1"), 0.1f64.to_bits() as i64);
    assert_eq!(
        run("mov.b32 p, 3\ncvt.rn.f32.s32 d, p"),
        i64::from(3f32.to_bits())
    );
    assert_eq!(
        run("mov.b64 p, -3\ncvt.rn.f64.s64 d, p"),
        (-3f64).to_bits() as i64
    );
    for (code, id) in [
        ("add.rn.u32 r, 1, 1", "conflicting-qualifiers"),
        (
            "mul.lo.f32 r, 0f00000000, 0f00000000",
            "conflicting-qualifiers",
        ),
        (
            "add.ftz.f64 r, 0d0000000000000000, 0d0000000000000000",
            "conflicting-qualifiers",
        ),
        ("rem.f32 r, 0f00000000, 0f00000000", "unsupported-qualifier"),
        ("add.f32 r, 0f00000000, 1", "wrong-operand"),
        ("mov.f64 r, 0f00000000", "wrong-operand"),
        ("div.f32 r, 0f00000000, 0f00000000", "unsupported-qualifier"),
        (
            "fma.f32 r, 0f00000000, 0f00000000, 0f00000000",
            "unsupported-qualifier",
        ),
        ("mov.b32 p, 1; cvt.f32.s32 r, p", "conflicting-qualifiers"),
        (
            "mov.b32 p, 1; cvt.rn.s32.f32 r, p",
            "conflicting-qualifiers",
        ),
        (
            "mov.b32 p, 1; cvt.rn.s32.u32 r, p",
            "conflicting-qualifiers",
        ),
        ("setp.equ.s32 p, 1, 1", "missing-operation"),
        ("setp.lo.f32 p, 0f00000000, 0f00000000", "missing-operation"),
        (
            "atom.max.f32 r, [words], 0f00000000",
            "conflicting-qualifiers",
        ),
        ("abs.ftz.s32 r, 1", "conflicting-qualifiers"),
    ] {
        fails(code, id);
    }
}
