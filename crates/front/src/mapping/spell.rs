//! Rewrites a lowered program so that PTX text can express it: operands become constants, registers
//! and addresses, and names become valid in PTX.
//!
//! # Invariants
//! - The memory operations stay the same, in the same order. Registers keep their indices; new ones
//!   are appended.
//! - Operations without an instruction in PTX stay as they are; the printer refuses them.

use std::collections::HashSet;

use crate::isa::ptx::PRED;
use program::{BinOp, CmpOp, Expr, Init, Instr, Op, Program, RegId, Register, Thread, Ty};

/// The program with simple operands and names.
pub(super) fn spelled(program: &Program) -> Program {
    let mut program = program.clone();
    let places: HashSet<String> = program.locations.iter().map(|l| l.name.clone()).collect();
    for thread in &mut program.threads {
        let mut taken = places.clone();
        taken.extend(thread.regs.iter().map(|r| r.name.clone()));
        // Front ends make up names with characters that PTX does not allow.
        for reg in thread.regs.iter_mut().filter(|r| r.name.contains('#')) {
            reg.name = unused(&reg.name.replace('#', "_"), &mut taken);
        }
        let code = std::mem::take(&mut thread.code);
        let mut out: Vec<Instr> = Vec::with_capacity(code.len());
        let mut starts = Vec::with_capacity(code.len() + 1);
        for mut instr in code {
            starts.push(out.len());
            let mut speller = Speller {
                thread,
                taken: &mut taken,
                before: Vec::new(),
            };
            speller.op(&mut instr.op);
            out.extend(speller.before.into_iter().map(|op| Instr {
                op,
                ..instr.clone()
            }));
            out.push(instr);
        }
        starts.push(out.len());
        for target in out.iter_mut().filter_map(|instr| instr.op.target_mut()) {
            *target = starts[*target];
        }
        thread.code = out;
    }
    program
}

fn unused(stem: &str, taken: &mut HashSet<String>) -> String {
    let mut name = stem.to_owned();
    for n in 1.. {
        if taken.insert(name.clone()) {
            break;
        }
        name = format!("{stem}_{n}");
    }
    name
}

struct Speller<'a> {
    thread: &'a mut Thread,
    taken: &'a mut HashSet<String>,
    before: Vec<Op>,
}

impl Speller<'_> {
    fn op(&mut self, op: &mut Op) {
        let converted = op.accesses().next().map(|access| access.ty);
        match op {
            Op::Assign {
                dst,
                value: Expr::Cmp(_, ty, a, b),
            } if self.is_predicate(*dst) => {
                self.typed(a, *ty);
                self.typed(b, *ty);
            }
            Op::Assign { value, .. } => self.parts(value),
            Op::Branch { cond, .. } if self.predicate(cond).is_some() => {
                *cond = self.predicate(cond).map_or(Expr::Const(0), Expr::Reg);
            }
            Op::Branch {
                cond: Expr::Cmp(_, ty, a, b),
                ..
            } => {
                self.typed(a, *ty);
                self.typed(b, *ty);
            }
            Op::Branch { cond, .. } if !matches!(cond, Expr::Const(_)) => {
                let ty = ty_of(cond, self.thread);
                self.simple(cond);
                let reg = std::mem::replace(cond, Expr::Const(0));
                *cond = Expr::Cmp(CmpOp::Ne, ty, Box::new(reg), Box::new(Expr::Const(0)));
            }
            other => {
                for operand in other.operands_mut() {
                    match operand {
                        Expr::Cast(ty, inner) if Some(*ty) == converted => self.simple(inner),
                        operand => self.simple(operand),
                    }
                }
            }
        }
    }

    fn is_predicate(&self, reg: RegId) -> bool {
        self.thread.regs[usize::from(reg.0)].ty == PRED
    }

    /// The predicate register that a condition tests, alone or as a comparison with 0.
    fn predicate(&self, cond: &Expr) -> Option<RegId> {
        let reg = match cond {
            Expr::Reg(reg) => *reg,
            Expr::Cmp(CmpOp::Ne, _, a, b) => match (&**a, &**b) {
                (Expr::Reg(reg), Expr::Const(0)) => *reg,
                _ => return None,
            },
            _ => return None,
        };
        self.is_predicate(reg).then_some(reg)
    }

    /// Makes the operands of a value simple, so that one instruction can compute it.
    fn parts(&mut self, value: &mut Expr) {
        match value {
            Expr::Const(_) | Expr::Reg(_) | Expr::Address(_) => {}
            Expr::Bin(BinOp::Add, Ty::U64, base, offset)
                if matches!((&**base, &**offset), (Expr::Address(_), Expr::Const(_))) => {}
            Expr::Bin(_, ty, a, b) => {
                self.typed(a, *ty);
                self.typed(b, *ty);
            }
            // A comparison gives a predicate, not a number; a `selp` turns it into a number.
            Expr::Cmp(..) => {
                let holds = self.assigned(value.clone(), PRED);
                *value = chosen(holds, Expr::Const(1), Expr::Const(0));
            }
            Expr::Select(p, a, b) => {
                let holds = match (self.predicate(p), &**p) {
                    (Some(p), _) => p,
                    (None, Expr::Cmp(..)) => self.assigned((**p).clone(), PRED),
                    _ => {
                        let ty = ty_of(p, self.thread);
                        let zero = Box::new(Expr::Const(0));
                        self.assigned(Expr::Cmp(CmpOp::Ne, ty, p.clone(), zero), PRED)
                    }
                };
                self.simple(a);
                self.simple(b);
                **p = Expr::Reg(holds);
            }
            Expr::Cast(_, inner) => self.simple(inner),
            Expr::Fused(_, three) => three.iter_mut().for_each(|e| self.simple(e)),
        }
    }

    /// Makes an operand simple, and wraps a constant to the instruction's type.
    fn typed(&mut self, value: &mut Expr, ty: Ty) {
        self.simple(value);
        if let Expr::Const(constant) = value {
            *constant = ty.wrap(*constant);
        }
    }

    /// Turns a value into a constant, a register or an address.
    fn simple(&mut self, value: &mut Expr) {
        let address = match value {
            Expr::Const(_) | Expr::Reg(_) | Expr::Address(_) => return,
            Expr::Bin(BinOp::Add, Ty::U64, base, offset) => {
                matches!(
                    (&**base, &**offset),
                    (Expr::Address(_) | Expr::Reg(_), Expr::Const(_))
                )
            }
            _ => false,
        };
        if !address {
            let ty = ty_of(value, self.thread);
            *value = Expr::Reg(self.assigned(value.clone(), ty));
        }
    }

    /// A new register that holds the value, computed before the instruction.
    fn assigned(&mut self, mut value: Expr, ty: Ty) -> RegId {
        match &mut value {
            Expr::Cmp(_, of, a, b) if ty == PRED => {
                self.typed(a, *of);
                self.typed(b, *of);
            }
            value => self.parts(value),
        }
        let name = unused("t", self.taken);
        let dst = RegId(self.thread.regs.len() as u16);
        self.thread.regs.push(Register {
            name,
            ty,
            init: Init::Int(0),
        });
        self.before.push(Op::Assign { dst, value });
        dst
    }
}

fn chosen(holds: RegId, a: Expr, b: Expr) -> Expr {
    Expr::Select(Box::new(Expr::Reg(holds)), Box::new(a), Box::new(b))
}

/// The type that a value is computed in.
fn ty_of(value: &Expr, thread: &Thread) -> Ty {
    match value {
        Expr::Bin(_, ty, ..) | Expr::Cast(ty, _) => *ty,
        Expr::Reg(reg) => thread.regs[usize::from(reg.0)].ty,
        Expr::Select(_, a, b) if matches!(**a, Expr::Const(_)) => ty_of(b, thread),
        Expr::Select(_, a, _) => ty_of(a, thread),
        Expr::Address(_) => Ty::U64,
        Expr::Fused(fused, _) => Ty {
            bits: fused.format.bits,
            signed: false,
        },
        Expr::Const(_) | Expr::Cmp(..) => Ty {
            bits: 64,
            signed: true,
        },
    }
}
