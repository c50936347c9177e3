//! Makes registers of the objects of a thread, where its code names the parts of an object one by
//! one.
//!
//! A structure with a constructor or with member functions is memory of its thread until here. As
//! registers, its members are values that every later analysis follows.
//!
//! # Invariants
//! - An object becomes registers only if no code takes its address, computes with it, or accesses a
//!   part with another size. Its initial contents are 0, as those of registers are.
//! - Objects that a condition may name stay memory: only kernels of source files are changed.

use std::collections::{HashMap, HashSet};

use super::lower::Lowering;
use program::{BinOp, Expr, Init, LocId, Op, RegId, Space, Tags, Ty};

/// A part of an object: the object and the number of the cell.
type Part = (LocId, u32);

impl Lowering<'_, '_> {
    /// Replaces accesses to objects of the thread by assignments of registers.
    pub(super) fn promote_objects(&mut self) {
        let all = self.declared_memory.iter().copied();
        let mut objects: HashSet<LocId> = all
            .filter(|loc| self.symbols.object(*loc).1.space == Space::Local)
            .collect();
        for instr in &self.code {
            let mut named: Vec<LocId> = Vec::new();
            for operand in instr.op.operands() {
                operand.visit(&mut |expr| {
                    if let Expr::Address(loc) = expr {
                        named.push(*loc);
                    }
                });
            }
            match (self.part_of(&instr.op), named.as_slice()) {
                (_, []) => {}
                (Some((part, _)), [one]) if part.0 == *one => {}
                _ => objects.retain(|loc| !named.contains(loc)),
            }
        }
        let mut registers: HashMap<Part, (RegId, Ty)> = HashMap::new();
        for at in 0..self.code.len() {
            let Some((part, ty)) = self.part_of(&self.code[at].op) else {
                continue;
            };
            if !objects.contains(&part.0) {
                continue;
            }
            let (reg, own) = match registers.get(&part) {
                Some(known) => *known,
                None => {
                    let name = format!("{}#{}", self.symbols.get(part.0).name, self.regs.len());
                    let reg = self.add(&name, ty, Init::Int(0));
                    registers.insert(part, (reg, ty));
                    (reg, ty)
                }
            };
            fn fit(to: Ty, from: Ty, value: Expr) -> Expr {
                match to == from {
                    true => value,
                    false => Expr::Cast(to, value.into()),
                }
            }
            self.code[at].op = match self.code[at].op.clone() {
                Op::Load { dst, .. } => Op::Assign {
                    dst,
                    value: fit(ty, own, Expr::Reg(reg)),
                },
                Op::Store { value, .. } => Op::Assign {
                    dst: reg,
                    value: fit(own, ty, value),
                },
                other => other,
            };
        }
    }

    /// The part of an object that a plain load or store accesses, and the type of the access.
    fn part_of(&self, op: &Op) -> Option<(Part, Ty)> {
        let (addr, access) = match op {
            Op::Load { addr, access, .. } | Op::Store { addr, access, .. } => (addr, access),
            _ => return None,
        };
        let (loc, offset) = match addr {
            Expr::Address(loc) => (*loc, 0),
            Expr::Bin(BinOp::Add, _, base, offset) => match (&**base, &**offset) {
                (Expr::Address(loc), Expr::Const(offset)) => (*loc, *offset),
                _ => return None,
            },
            _ => return None,
        };
        let object = self.symbols.object(loc).1;
        let layout = object.layout();
        let cell = (0..object.init.len() as u32).find(|cell| layout.offset(*cell) == offset)?;
        let fits = layout.field(cell).ty.bits == access.ty.bits;
        (fits && access.tags == Tags::default()).then_some(((loc, cell), access.ty))
    }
}
