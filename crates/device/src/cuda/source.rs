//! Writes a test as a kernel in PTX, which the driver compiles: no toolkit is needed.
//!
//! # Invariants
//! - Threads of the same warp of the test share a warp of the device, and others do not; the same
//!   holds for CTAs.
//! - [`ptx::opcode`] gives the words of accesses and fences; the state space names the memory.
//! - A register of the test is a register of 64 bits that holds its value with the sign of its
//!   type. The kernel computes values like [`program::BinOp::apply`].
//! - `.version` and `.target` are the lowest that the instructions allow, because of old drivers.
//!
//! # Sources
//! - PTX ISA 9.4, *Data Movement and Conversion Instructions*, *Parallel Synchronization and
//!   Communication Instructions*, with the notes there on PTX ISA and target.

use program::tags::OnDevices;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write;

use super::skeleton;
use crate::kernel::{
    KernelLanguage, KernelSpace, MAX_STEPS, RegisterStart, ResultValue, ThreadRegister,
    ThreadSelection, body, slots, unbuilt,
};
use crate::launch::{FINISHED, KernelShape};
use front::isa::ptx;
use program::litmus::LitmusTest;
use program::{
    Barrier, BarrierAction, BarrierNaming, BinOp, CmpOp, Dialect, Expr, Op, Place, Proxy, Scope,
    Tag, ThreadId, Ty, Update,
};

/// A kernel, and the number of threads of each of its groups.
///
/// # Errors
/// If the language cannot express part of the test.
pub(crate) fn source(
    test: &LitmusTest,
    shape: &KernelShape,
    warps: WarpFill,
) -> Result<(String, usize), String> {
    if test.program.dialect != Dialect::Ptx {
        return Err(
            "it is not in PTX: `--on cuda` runs the PTX that a compiler prints for it, under \
            `--model ptx`"
                .into(),
        );
    }
    let firsts = shape.groups.iter().map(|group| place(test, group[0]));
    let firsts: Vec<&Place> = firsts.collect();
    let mut earlier = firsts.iter().enumerate().map(|(at, p)| (&firsts[..at], p));
    if earlier.any(|(earlier, p)| earlier.iter().any(|q| q.same(p, Scope::Cluster))) {
        return Err(unbuilt("CTAs of one cluster"));
    }
    let seats = seats(test, shape, warps)?;
    let last = seats.iter().flatten().max().copied().unwrap_or(0);
    let size = if last > 0 && warps == WarpFill::Whole {
        (last / WARP + 1) * WARP
    } else {
        last + 1
    };
    let language = Ptx {
        shape,
        seats,
        words: Cell::new(0),
        halves: Cell::new(0),
        longs: Cell::new(0),
        truths: Cell::new(0),
    };
    let instances = body(test, shape, &language)?;
    let (version, target) = least(&instances);
    let text = skeleton::text(
        test,
        shape,
        &skeleton::SkeletonParts {
            version,
            target,
            slots: slots(test, shape),
            instances: &instances,
            counts: [
                &language.words,
                &language.halves,
                &language.longs,
                &language.truths,
            ]
            .map(Cell::get),
        },
    );
    Ok((text, size))
}

/// The number of threads of a launch for each warp of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpFill {
    /// As many as a warp of a device has; most of them only execute barriers.
    Whole,
    /// As many as in the test: for other checkers, where each thread costs.
    Bare,
}

/// The number of threads of a warp.
const WARP: usize = 32;

/// The seat of each thread of each group: threads of the same warp of the test are neighbours,
/// others are in different warps.
fn seats(
    test: &LitmusTest,
    shape: &KernelShape,
    warps: WarpFill,
) -> Result<Vec<Vec<usize>>, String> {
    let mut seats = Vec::new();
    for group in &shape.groups {
        seats.push(seats_of_group(test, group, warps)?);
    }
    Ok(seats)
}

fn place(test: &LitmusTest, t: ThreadId) -> &Place {
    &test.program.thread(t).place
}

/// The seat of each thread of a group.
fn seats_of_group(
    test: &LitmusTest,
    group: &[ThreadId],
    warps: WarpFill,
) -> Result<Vec<usize>, String> {
    let mut all: Vec<Vec<ThreadId>> = Vec::new();
    for &t in group {
        match all
            .iter_mut()
            .find(|warp| place(test, warp[0]).same(place(test, t), Scope::Warp))
        {
            Some(warp) => warp.push(t),
            None => all.push(vec![t]),
        }
    }
    if all.iter().any(|warp| warp.len() > WARP) {
        return Err(unbuilt("a warp of more threads than it has lanes"));
    }
    fn of_warp(op: &Op) -> bool {
        match op {
            Op::Barrier(barrier) => barrier.domain == Scope::Warp,
            op => matches!(op, Op::Give { .. }),
        }
    }
    if warps == WarpFill::Bare
        && all.len() > 1
        && group
            .iter()
            .flat_map(|t| test.program.thread(*t).code.iter())
            .any(|instr| of_warp(&instr.op))
    {
        return Err(unbuilt(
            "operations of whole warps, of which it has several",
        ));
    }
    let mut seat_of = BTreeMap::new();
    let mut next = 0;
    for warp in all {
        warp.iter()
            .enumerate()
            .for_each(|(lane, t)| _ = seat_of.insert(*t, next + lane));
        next += if warps == WarpFill::Whole {
            WARP
        } else {
            warp.len()
        };
    }
    Ok(group.iter().map(|t| seat_of[t]).collect())
}

/// The requirements of instructions: words in their opcode, the version of the ISA, the
/// architecture.
const NEEDS: &[(&[&str], (u8, u8), u8)] = &[
    (&["cas", "b16"], (6, 3), 70),
    (&["fence", "proxy"], (7, 5), 70),
    (&["cluster"], (7, 8), 90),
    (&["mmio"], (8, 2), 70),
    (&["fence", "acquire"], (8, 6), 90),
    (&["fence", "release"], (8, 6), 90),
];

/// The lowest version and target that have all the instructions.
fn least(text: &str) -> ((u8, u8), u8) {
    let opcodes = text
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| !word.starts_with('@')));
    opcodes.fold(((6, 0), 70), |(version, target), opcode| {
        let words: Vec<&str> = opcode.trim_end_matches(';').split(['.', ':']).collect();
        let needed = NEEDS
            .iter()
            .filter(|row| row.0.iter().all(|word| words.contains(word)));
        needed.fold((version, target), |(v, t), row| {
            (v.max(row.1), t.max(row.2))
        })
    })
}

/// Writes PTX.
struct Ptx<'t> {
    shape: &'t KernelShape,
    /// The seat of each thread of a group, in the order of groups.
    seats: Vec<Vec<usize>>,
    /// The number of temporary registers of 32 bits so far.
    words: Cell<u32>,
    /// The same for 16 bits.
    halves: Cell<u32>,
    /// The same for 64 bits.
    longs: Cell<u32>,
    /// The same for predicates.
    truths: Cell<u32>,
}

/// The resource of the barriers for handing over values, and of those of the skeleton.
const OWN_BARRIER: i64 = 15;

impl Ptx<'_> {
    fn fresh(kind: char, count: &Cell<u32>) -> String {
        count.set(count.get() + 1);
        format!("%{kind}{}", count.get() - 1)
    }

    fn long(&self) -> String {
        Ptx::fresh('t', &self.longs)
    }

    fn truth(&self) -> String {
        Ptx::fresh('q', &self.truths)
    }

    /// A value in a register of 64 bits.
    fn value(&self, out: &mut String, value: &Expr, t: ThreadId) -> Result<String, String> {
        Ok(match value {
            Expr::Reg(r) => register(ThreadRegister(t, *r)),
            Expr::Const(value) => {
                let to = self.long();
                line(out, &format!("mov.b64 {to}, {value}"));
                to
            }
            Expr::Address(loc) if self.shape.is_local(*loc) => {
                let to = self.long();
                line(out, &format!("mov.u64 {to}, L{}", loc.0));
                to
            }
            Expr::Address(loc) => format!("%M{}", loc.0),
            Expr::Cast(ty, of) => {
                let of = self.value(out, of, t)?;
                self.wrapped(out, *ty, &of)
            }
            Expr::Fused(..) => return Err("arithmetic of floating point".into()),
            Expr::Select(cond, a, b) => {
                let cond = self.value(out, cond, t)?;
                let (a, b) = (self.value(out, a, t)?, self.value(out, b, t)?);
                let (q, to) = (self.truth(), self.long());
                line(out, &format!("setp.ne.s64 {q}, {cond}, 0"));
                line(out, &format!("selp.b64 {to}, {a}, {b}, {q}"));
                to
            }
            Expr::Cmp(op, ty, a, b) => {
                let ty = of_register(*ty);
                let q = self.compared(out, *op, ty, a, b, t)?;
                let to = self.long();
                line(out, &format!("selp.b64 {to}, 1, 0, {q}"));
                to
            }
            Expr::Bin(op, ty, a, b) => {
                let ty = of_register(*ty);
                let left = self.value(out, a, t)?;
                // A shift by a constant stays one here: the bits that remain depend only on the
                // constant.
                if let (BinOp::Shl | BinOp::Shr, Expr::Const(by)) = (*op, &**b) {
                    let by = (Ty {
                        signed: false,
                        ..ty
                    }
                    .wrap(*by) as u64)
                        .min(64);
                    if by >= u64::from(ty.bits) && !(*op == BinOp::Shr && ty.signed) {
                        return self.value(out, &Expr::Const(0), t);
                    }
                    return Ok(self.shifted(out, *op, ty, &left, &by.to_string()));
                }
                let right = self.value(out, b, t)?;
                self.binary(out, *op, ty, &left, &right)?
            }
        })
    }

    /// A comparison, in a predicate.
    fn compared(
        &self,
        out: &mut String,
        op: CmpOp,
        ty: Ty,
        a: &Expr,
        b: &Expr,
        t: ThreadId,
    ) -> Result<String, String> {
        let (a, b) = (self.value(out, a, t)?, self.value(out, b, t)?);
        let (a, b) = (self.wrapped(out, ty, &a), self.wrapped(out, ty, &b));
        let q = self.truth();
        line(
            out,
            &format!(
                "setp.{}.{} {q}, {a}, {b}",
                op.ptx_name(),
                wide(ty).ptx_name()
            ),
        );
        Ok(q)
    }

    /// The value of a type with the same low bits.
    fn wrapped(&self, out: &mut String, ty: Ty, value: &str) -> String {
        if ty.bits == 64 {
            return value.into();
        }
        let to = self.long();
        match ty.bits {
            1 => line(out, &format!("and.b64 {to}, {value}, 1")),
            _ => line(
                out,
                &format!(
                    "cvt.{}.{} {to}, {value}",
                    wide(ty).ptx_name(),
                    ty.ptx_name()
                ),
            ),
        }
        to
    }

    /// `a op b` in a type.
    fn binary(
        &self,
        out: &mut String,
        op: BinOp,
        ty: Ty,
        a: &str,
        b: &str,
    ) -> Result<String, String> {
        let (a, b) = (self.wrapped(out, ty, a), self.wrapped(out, ty, b));
        let (whole, to) = (wide(ty).ptx_name(), self.long());
        let mut put = |text: String| line(out, &text);
        match op {
            BinOp::Add => put(format!("add.s64 {to}, {a}, {b}")),
            BinOp::Sub => put(format!("sub.s64 {to}, {a}, {b}")),
            BinOp::Mul => put(format!("mul.lo.s64 {to}, {a}, {b}")),
            BinOp::And => put(format!("and.b64 {to}, {a}, {b}")),
            BinOp::Or => put(format!("or.b64 {to}, {a}, {b}")),
            BinOp::Xor => put(format!("xor.b64 {to}, {a}, {b}")),
            BinOp::Min => put(format!("min.{whole} {to}, {a}, {b}")),
            BinOp::Max => put(format!("max.{whole} {to}, {a}, {b}")),
            // A shift by more than the number of bits shifts all of them out.
            BinOp::Shl | BinOp::Shr => {
                let (bits, by, clamped) = (self.long(), Ptx::fresh('w', &self.words), self.long());
                put(format!("{} {bits}, {b}", bit_pattern(ty)));
                put(format!("min.u64 {clamped}, {bits}, 64"));
                put(format!("cvt.u32.u64 {by}, {clamped}"));
                return Ok(self.shifted(out, op, ty, &a, &by));
            }
            // Avoids division by 0, and of the least number by -1.
            BinOp::Div | BinOp::Rem => {
                let (zero, one) = (self.truth(), self.truth());
                let [safe, safer, negated, rest] = [(); 4].map(|()| self.long());
                put(format!("setp.eq.s64 {zero}, {b}, 0"));
                put(format!("setp.eq.s64 {one}, {b}, -1"));
                put(format!("selp.b64 {safe}, 1, {b}, {zero}"));
                if ty.signed {
                    put(format!("selp.b64 {safer}, 1, {safe}, {one}"));
                } else {
                    put(format!("mov.b64 {safer}, {safe}"));
                }
                let name = if op == BinOp::Div { "div" } else { "rem" };
                put(format!("{name}.{whole} {rest}, {a}, {safer}"));
                let by_one = match (op, ty.signed) {
                    (BinOp::Div, true) => {
                        put(format!("neg.s64 {negated}, {a}"));
                        let to = self.long();
                        put(format!("selp.b64 {to}, {negated}, {rest}, {one}"));
                        to
                    }
                    _ => rest,
                };
                let by_zero = if op == BinOp::Div { "-1" } else { &a };
                put(format!("selp.b64 {to}, {by_zero}, {by_one}, {zero}"));
            }
            BinOp::Inc | BinOp::Dec | BinOp::Float(..) | BinOp::Unknown | BinOp::Tells => {
                return Err("this arithmetic".into());
            }
        }
        Ok(self.wrapped(out, ty, &to))
    }

    /// A value shifted, by no more than 64.
    fn shifted(&self, out: &mut String, op: BinOp, ty: Ty, value: &str, by: &str) -> String {
        let (value, to) = (self.wrapped(out, ty, value), self.long());
        let op = if op == BinOp::Shl {
            "shl.b64".into()
        } else {
            format!("shr.{}", wide(ty).ptx_name())
        };
        line(out, &format!("{op} {to}, {value}, {by}"));
        self.wrapped(out, ty, &to)
    }

    /// A value in a register that is as wide as a type; PTX has none of 8 bits.
    fn narrow(&self, out: &mut String, value: &str, ty: Ty) -> Result<String, String> {
        let to = match ty.bits {
            16 => Ptx::fresh('h', &self.halves),
            32 => Ptx::fresh('w', &self.words),
            64 => return Ok(value.into()),
            _ => return Err("a read-modify-write of this size".into()),
        };
        line(out, &format!("cvt.u{0}.u64 {to}, {value}", ty.bits));
        Ok(to)
    }

    fn read_modify_write(
        &self,
        out: &mut String,
        t: ThreadId,
        op: &Op,
        place: &str,
    ) -> Result<(), String> {
        let Op::Rmw {
            dst, update, read, ..
        } = op
        else {
            return Err(format!("this {}", op.noun()));
        };
        let ty = read.ty;
        let (update, op) = match update {
            // There is no atomic subtraction, but an atomic addition.
            Update::Apply(BinOp::Sub, value) => {
                let minus = Expr::Bin(
                    BinOp::Sub,
                    Ty::WORD,
                    Box::new(Expr::Const(0)),
                    Box::new(value.clone()),
                );
                let mut op = op.clone();
                let update = Update::Apply(BinOp::Add, minus);
                if let Op::Rmw { update: own, .. } = &mut op {
                    *own = update.clone();
                }
                (update, op)
            }
            update => (update.clone(), op.clone()),
        };
        if read.tags.has(Tag::Reduction) && read.tags.has(Tag::Acquire) {
            return Err("a reduction that acquires, which PTX does not have".into());
        }
        let opcode = ptx::opcode(&op).ok_or("this read-modify-write")?;
        let plain = Ty {
            signed: false,
            ..ty
        };
        let suffix = match &update {
            Update::Exchange(_) | Update::CompareExchange { .. } => format!("b{}", ty.bits),
            Update::Apply(BinOp::And | BinOp::Or | BinOp::Xor, _) => format!("b{}", ty.bits),
            Update::Apply(BinOp::Min | BinOp::Max, _) => ty.ptx_name(),
            Update::Apply(..) => plain.ptx_name(),
            Update::When { .. } => return Err("this read-modify-write".into()),
        };
        let mut operands = match &update {
            Update::Exchange(value) | Update::Apply(_, value) => vec![value],
            Update::CompareExchange { expected, new } => vec![expected, new],
            Update::When { .. } => Vec::new(),
        }
        .into_iter();
        let operands = operands.try_fold(Vec::new(), |mut all, value| {
            let value = self.value(out, value, t)?;
            all.push(self.narrow(out, &value, ty)?);
            Ok::<_, String>(all)
        })?;
        let operands = operands.join(", ");
        let (head, name) = opcode.rsplit_once('.').ok_or("this read-modify-write")?;
        let space = place.split_once(' ').map_or("", |(space, _)| space);
        let place = place.trim_start_matches(space).trim_start();
        let opcode = format!("{head}.{space}.{name}.{suffix}");
        if opcode.starts_with("red") {
            line(out, &format!("{opcode} {place}, {operands}"));
            return Ok(());
        }
        let old = match ty.bits {
            16 => Ptx::fresh('h', &self.halves),
            32 => Ptx::fresh('w', &self.words),
            _ => self.long(),
        };
        line(out, &format!("{opcode} {old}, {place}, {operands}"));
        if let Some(dst) = dst {
            let dst = register(ThreadRegister(t, *dst));
            let convert = if ty.bits == 64 {
                "mov.b64".into()
            } else {
                format!("cvt.{}.{}", wide(ty).ptx_name(), ty.ptx_name())
            };
            line(out, &format!("{convert} {dst}, {old}"));
        }
        Ok(())
    }
}

impl KernelLanguage for Ptx<'_> {
    fn register(&self, to: ThreadRegister, start: RegisterStart) -> Result<String, String> {
        let to = register(to);
        Ok(match start {
            RegisterStart::Number(value) => {
                format!("\t.reg .b64 {to};\n\tmov.b64 {to}, {value};\n")
            }
            RegisterStart::Address(loc, offset) => {
                format!(
                    "\t.reg .b64 {to};\n\tadd.s64 {to}, %M{}, {offset};\n",
                    loc.0
                )
            }
        })
    }

    fn counters(&self) -> String {
        "\tmov.u32 %steps, 0;\n\tmov.u32 %ended, 0;\n".into()
    }

    fn only(&self, who: ThreadSelection, lines: &str) -> String {
        let mut text = String::new();
        let end = format!(
            "END_{}",
            Ptx::fresh('q', &self.truths).trim_start_matches('%')
        );
        let mut unless = |what: String| {
            let q = self.truth();
            line(&mut text, &what.replace("{q}", &q));
            line(&mut text, &format!("@{q} bra {end}"));
        };
        unless(format!("setp.ne.u32 {{q}}, %group, {}", who.group));
        if let Some(at) = who.at {
            unless(format!(
                "setp.ne.u32 {{q}}, %me, {}",
                self.seats[who.group][at]
            ));
        }
        if who.running {
            unless("setp.ne.u32 {q}, %ended, 0".into());
        }
        format!("{text}{lines}{end}:\n")
    }

    fn label(&self, label: &str) -> String {
        format!("{label}:\n")
    }

    fn jump(
        &self,
        t: ThreadId,
        cond: &Expr,
        to: &str,
        end: Option<&str>,
    ) -> Result<String, String> {
        let mut text = String::new();
        let cond = self.value(&mut text, cond, t)?;
        let (q, given_up) = (self.truth(), self.truth());
        line(&mut text, &format!("setp.ne.s64 {q}, {cond}, 0"));
        if let Some(end) = end {
            line(&mut text, &format!("@{q} add.u32 %steps, %steps, 1"));
            line(
                &mut text,
                &format!("setp.gt.u32 {given_up}, %steps, {MAX_STEPS}"),
            );
            line(&mut text, &format!("@{given_up} mov.u32 %ended, 2"));
            line(&mut text, &format!("@{given_up} bra {end}"));
        }
        line(&mut text, &format!("@{q} bra {to}"));
        Ok(text)
    }

    fn assign(&self, to: ThreadRegister, value: &Expr) -> Result<String, String> {
        let mut text = String::new();
        let value = self.value(&mut text, value, to.0)?;
        line(&mut text, &format!("mov.b64 {}, {value}", register(to)));
        Ok(text)
    }

    fn give(&self, t: ThreadId, value: &Expr, slot: usize) -> Result<String, String> {
        let mut text = String::new();
        let value = self.value(&mut text, value, t)?;
        line(
            &mut text,
            &format!("st.shared.u64 [given+{}], {value}", 8 * slot),
        );
        Ok(text)
    }

    fn take(&self, to: ThreadRegister, slot: usize) -> String {
        format!("\tld.shared.u64 {}, [given+{}];\n", register(to), 8 * slot)
    }

    fn fence(&self, op: &Op) -> Result<String, String> {
        let opcode = ptx::opcode(op)
            .filter(|_| !is_unbuilt(op))
            .ok_or_else(|| format!("this {}", op.noun()))?;
        Ok(format!("\t{opcode};\n"))
    }

    fn access(&self, t: ThreadId, op: &Op, space: KernelSpace) -> Result<String, String> {
        if is_unbuilt(op) {
            return Err("an operation on an mbarrier object, or an asynchronous one".into());
        }
        if op
            .accesses()
            .any(|access| Proxy::tagged(&access.tags) != Some(Proxy::Generic))
        {
            return Err("an access through another proxy".into());
        }
        let space = match space {
            KernelSpace::Global => "global",
            KernelSpace::Local => "shared",
        };
        let mut text = String::new();
        let address = self.value(&mut text, op.address().expect("an access has one"), t)?;
        let opcode = || ptx::opcode(op).ok_or("this access");
        match op {
            Op::Load { dst, access, .. } => {
                let dst = register(ThreadRegister(t, *dst));
                line(
                    &mut text,
                    &format!(
                        "{}.{space}.{} {dst}, [{address}]",
                        opcode()?,
                        access.ty.ptx_name()
                    ),
                );
            }
            Op::Store { value, access, .. } => {
                let value = self.value(&mut text, value, t)?;
                line(
                    &mut text,
                    &format!(
                        "{}.{space}.{} [{address}], {value}",
                        opcode()?,
                        access.ty.ptx_name()
                    ),
                );
            }
            _ => self.read_modify_write(&mut text, t, op, &format!("{space} [{address}]"))?,
        }
        Ok(text)
    }

    fn barrier(&self, op: &Op, all: i64) -> Result<String, String> {
        match op {
            Op::Barrier(one) => barrier(one, all),
            // These order more than necessary, and show less.
            Op::Give {
                among: Scope::Warp,
                lanes: Expr::Const(lanes),
                ..
            } if lanes & all == all => Ok(self.meet()),
            _ => Err(unbuilt("values handed to a part of a group")),
        }
    }

    fn meet(&self) -> String {
        format!("\tbarrier.sync {OWN_BARRIER};\n")
    }

    fn result(&self, word: usize, value: ResultValue) -> String {
        let mut text = String::new();
        let value = match value {
            ResultValue::End => {
                let (q, w, to) = (self.truth(), Ptx::fresh('w', &self.words), self.long());
                line(&mut text, &format!("setp.eq.u32 {q}, %ended, 0"));
                line(&mut text, &format!("selp.u32 {w}, {FINISHED}, %ended, {q}"));
                line(&mut text, &format!("cvt.u64.u32 {to}, {w}"));
                to
            }
            ResultValue::Register(r) => register(r),
            ResultValue::Local(loc, offset, ty) => {
                let (address, to) = (self.long(), self.long());
                line(&mut text, &format!("mov.u64 {address}, L{}", loc.0));
                line(
                    &mut text,
                    &format!(
                        "ld.volatile.shared.{} {to}, [{address}+{offset}]",
                        ty.ptx_name()
                    ),
                );
                to
            }
        };
        line(
            &mut text,
            &format!("st.global.u64 [%mine+{}], {value}", 8 * word),
        );
        text
    }
}

/// Whether a tag of the operation says that devices are not given it.
fn is_unbuilt(op: &Op) -> bool {
    op.tags().iter().any(|(_, tags)| {
        tags.iter()
            .any(|tag| tag.row().devices == OnDevices::Unbuilt)
    })
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "\t{text};").expect("a string");
}

fn register(ThreadRegister(t, r): ThreadRegister) -> String {
    format!("%r{}_{}", t.0, r.0)
}

/// Truth values are computed in integers.
fn of_register(ty: Ty) -> Ty {
    if ty.bits == 1 { Ty::U32 } else { ty }
}

/// The type of 64 bits with the same sign.
fn wide(ty: Ty) -> Ty {
    Ty { bits: 64, ..ty }
}

/// The instruction that takes the low bits of a type, without a sign.
fn bit_pattern(ty: Ty) -> String {
    if ty.bits == 64 {
        "mov.b64".into()
    } else {
        format!("cvt.u64.u{}", ty.bits)
    }
}

/// A barrier of all threads of a group, or of a warp.
fn barrier(barrier: &Barrier, all: i64) -> Result<String, String> {
    let of_all = match &barrier.naming {
        BarrierNaming::Counted { count, .. } | BarrierNaming::Instance { quorum: count, .. } => {
            match count {
                None => true,
                Some(Expr::Const(count)) => *count == i64::from(all.count_ones()),
                Some(_) => false,
            }
        }
    };
    let id = match &barrier.naming {
        BarrierNaming::Counted {
            id: Expr::Const(id),
            ..
        } if (0..OWN_BARRIER).contains(id) => Some(*id),
        BarrierNaming::Instance {
            instance, id: None, ..
        } if (0..OWN_BARRIER).contains(instance) => Some(*instance),
        _ => None,
    };
    match (barrier.domain, barrier.action, id) {
        (Scope::Cta, BarrierAction::Sync, Some(id)) if of_all => {
            Ok(format!("\tbarrier.sync {id};\n"))
        }
        (Scope::Warp, BarrierAction::Sync, _) => match &barrier.lanes {
            Some(Expr::Const(lanes)) if lanes & all != all => {
                Err(unbuilt("a barrier of a part of a warp"))
            }
            Some(Expr::Const(_)) | None => Ok("\tbar.warp.sync 0xffffffff;\n".into()),
            Some(_) => Err(unbuilt("a barrier with a computed set of lanes")),
        },
        _ => Err(unbuilt("a barrier that is not one of a whole CTA or warp")),
    }
}

#[cfg(test)]
mod tests {
    use crate::cuda::WarpFill;
    use crate::{Trouble, prepare_ptx};

    /// The kernel of a test of two threads, or the reason why there is none.
    fn built(
        memory: &str,
        codes: [&str; 2],
        place: &str,
        condition: &str,
    ) -> Result<String, String> {
        let mut text = format!("name = \"T\"\ncondition = '{condition}'\n[memory]\n{memory}\n");
        for (at, code) in codes.iter().enumerate() {
            text += &format!(
                "[[thread]]\n{}\ncode = \"{code}\"\n",
                place.replace("{at}", &at.to_string())
            );
        }
        let test = front::litmus::parse("t.toml", text.as_bytes())
            .expect("a good test")
            .remove(0);
        match prepare_ptx(&test, WarpFill::Whole) {
            Ok(prepared) => Ok(prepared.source),
            Err(Trouble::Refused(why) | Trouble::Failed(why)) => Err(why),
        }
    }

    const MEMORY: &str = "x = { type = \"u32\" }\ny = { type = \"s64\" }\ns = { type = \"u32\", \
        space = \"shared\" }\nh = { type = \"u16\" }\nv = { type = \"u32\", size = 2 }";

    #[test]
    fn every_form_becomes_the_same_form() {
        let forms = [
            ("st.weak x, 5", "st.weak.global.u32 [%M0]", "6.0"),
            ("st.volatile s, 5", "st.volatile.shared.u32 [%t", "6.0"),
            (
                "ld.acquire.sys r, y",
                "ld.acquire.sys.global.s64 %r0_0, [%M1]",
                "6.0",
            ),
            (
                "ld.relaxed.cluster r, x",
                "ld.relaxed.cluster.global.u32",
                "7.8",
            ),
            (
                "ld.mmio.relaxed.sys r, x",
                "ld.mmio.relaxed.sys.global.u32",
                "8.2",
            ),
            (
                "atom.acq_rel.gpu.cas r, x, 1, 2",
                "atom.acq_rel.gpu.global.cas.b32 %w",
                "6.0",
            ),
            (
                "atom.relaxed.cta.cas.b16 r, h, 1, 2",
                "atom.relaxed.cta.global.cas.b16 %h",
                "6.3",
            ),
            (
                "atom.relaxed.gpu.exch r, y, 1",
                "atom.relaxed.gpu.global.exch.b64 %t",
                "6.0",
            ),
            (
                "atom.relaxed.gpu.min.s64 r, y, 1",
                "atom.relaxed.gpu.global.min.s64 %t",
                "6.0",
            ),
            (
                "red.release.sys.add x, 1",
                "red.release.sys.global.add.u32 [%M0], %w",
                "6.0",
            ),
            (
                "atom.relaxed.cta.or r, s, 1",
                "atom.relaxed.cta.shared.or.b32 %w",
                "6.0",
            ),
            ("fence.sc.cta", "\tfence.sc.cta;", "6.0"),
            ("fence.acquire.gpu", "\tfence.acquire.gpu;", "8.6"),
            ("fence.proxy.alias", "\tfence.proxy.alias;", "7.5"),
            (
                "L: ld.relaxed.gpu r, x; bne r, 1, L",
                "@%q1 add.u32 %steps, %steps, 1;",
                "6.0",
            ),
        ];
        for (code, wanted, version) in forms {
            let source = built(MEMORY, [code, "st.weak y, 1"], "cta = {at}", "y == 0").expect(code);
            assert!(
                source.contains(wanted),
                "{code}: `{wanted}` is missing in:\n{source}"
            );
            assert!(
                source.contains(&format!(".version {version}\n")),
                "{code}: {version}\n{source}"
            );
        }
    }

    #[test]
    fn threads_of_a_warp_are_in_one_warp() {
        let at = |place: &str| {
            let codes = [
                "st.weak x, 1; bar.warp.sync 0xffffffff",
                "bar.warp.sync 0xffffffff; ld.weak r, x",
            ];
            let source = built(MEMORY, codes, place, "P1:r == 0").expect("a kernel");
            assert!(source.contains("\tbar.warp.sync 0xffffffff;"), "{source}");
            source.contains("%me, 1;")
        };
        assert!(at("cta = 0\nwarp = 0"), "lanes of one warp");
        assert!(!at("cta = 0\nwarp = {at}"), "warps of one CTA");
    }

    #[test]
    fn what_cannot_be_built_faithfully_is_refused() {
        let refused = [
            (
                ["bar.cta.arrive 1, 2", "bar.cta.sync 1, 2"],
                "cta = 0",
                "not one of a whole CTA or warp",
            ),
            (
                ["bar.cta.sync 1", "st.weak x, 1"],
                "cta = 0",
                "different barriers",
            ),
            (
                [
                    "beq r, 0, L; bar.cta.sync 1; L: ld.weak r, x",
                    "bar.cta.sync 1",
                ],
                "cta = 0",
                "behind a branch",
            ),
            (
                ["st.weak x, 1", "st.weak x, 2"],
                "cta = {at}\ncluster = 0",
                "CTAs of one cluster",
            ),
            (
                ["ld.weak.v2.u32 {r0, r1}, v", "st.weak x, 1"],
                "cta = {at}",
                "an access of several cells",
            ),
            (
                ["trap", "st.weak x, 1"],
                "cta = {at}",
                "an instruction that ends the program",
            ),
            (
                ["cp.async.commit_group", "st.weak x, 1"],
                "cta = {at}",
                "this fence",
            ),
        ];
        for (codes, place, wanted) in refused {
            let codes = codes.map(|code| code.replace("beq r,", "mov r, 0; beq r,"));
            let why = built(MEMORY, [&codes[0], &codes[1]], place, "x == 0").expect_err(wanted);
            assert!(why.contains(wanted), "{why}");
        }
    }
}
