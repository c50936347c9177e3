//! Resolves the names in a thread's code to registers, locations and special registers.
//!
//! # Invariants
//! - A name is a location or a register, never both: a clash is reported.
//! - Registers that instructions without a row might write are not reported as unknown.

use std::ops::Range;

use super::CodeItem;
use super::lower::Emit;
use super::parse::OperandKind;
use super::regs::bare;
use super::table::{InstrRow, Matched, OperandRole, PRED, QualKind, ResultTy, bits_named};
use diag::Span;
use program::{Expr, LocId, Op, Ty};

/// The meaning of a name.
pub(super) enum NameMeaning {
    Location(LocId),
    Register,
    /// Its value.
    Special(Expr),
    UnknownSpecial,
    Unknown,
}

impl<'a> Emit<'a, '_> {
    /// Collects the names that some instruction writes, or that the test gives a value.
    pub(super) fn collect_written(&mut self) {
        let unit = self.unit;
        self.written
            .extend(self.env.regs.iter().map(|r| bare(&r.name)));
        self.written
            .extend(self.env.operands.iter().map(String::as_str));
        for item in &unit.items {
            let CodeItem::Instr(m) = item else { continue };
            for (role, operand, _) in m.operands() {
                if let (
                    OperandRole::Dst | OperandRole::DstPred | OperandRole::DstParam,
                    OperandKind::Name(n),
                ) = (role, &operand.kind)
                {
                    self.written.insert(bare(self.str(&n.piece())));
                }
            }
        }
    }

    /// Numbers the registers in order of appearance and finds their types.
    pub(super) fn collect_registers(&mut self) {
        let unit = self.unit;
        for item in &unit.items {
            match item {
                CodeItem::Label(_) | CodeItem::Targets(_) => {}
                CodeItem::Reg { ty, name, count } => self.declare(ty, name, *count),
                CodeItem::Instr(m) => self.registers_of(m),
            }
        }
        if self.env.strict && !unit.incomplete {
            let unknown: Vec<(String, Span)> = self
                .regs
                .iter()
                .filter(|info| !self.is_set(&info.name) && !unit.suspects.contains(&info.name))
                .filter(|info| self.unset_ty(&info.name).is_none())
                .filter_map(|info| Some((info.name.clone(), info.read?)))
                .collect();
            let mut known: Vec<&str> = self.written.iter().copied().collect();
            known.sort_unstable();
            for (name, span) in unknown {
                let message =
                    format!("register `{name}` is read, but nothing in this thread writes it");
                self.sink.error("unknown-register", span, message, |d| {
                    let d = d
                        .label("expected a register that has a value")
                        .did_you_mean(&name, known.iter().copied());
                    match d.help {
                        Some(_) => d,
                        None => d.help(format!("give it a value with `regs = {{ {name} = 0 }}`")),
                    }
                });
            }
        }
        for reg in &self.env.regs {
            if self.symbols.find(bare(&reg.name)).is_some() {
                self.clash(bare(&reg.name), reg.span);
            }
            if self.regs.intern(&reg.name).is_none() {
                self.sink.error(
                    "too-many-registers",
                    reg.span,
                    "a thread has at most 65535 registers",
                    |d| d,
                );
            }
        }
    }

    /// Whether a register ever gets a value.
    fn is_set(&self, name: &str) -> bool {
        self.written.contains(name)
    }

    /// Gives unknown values to registers that are declared and read but never written. Compilers
    /// print such registers for variables without a value, and for empty structures as parameters.
    /// The registers with the total size of shared memory are unknown, too, because the system adds
    /// to it.
    pub(super) fn leave_unset(&mut self) {
        if !self.env.strict {
            return;
        }
        let unset: Vec<(String, Span)> = self
            .regs
            .iter()
            .filter(|info| !self.is_set(&info.name) && self.unset_ty(&info.name).is_some())
            .filter_map(|info| Some((info.name.clone(), info.read?)))
            .collect();
        for (name, span) in unset {
            let (Some(dst), Some(ty)) = (self.regs.find(&name), self.unset_ty(&name)) else {
                continue;
            };
            self.regs.wrote(dst, ty);
            self.at(span, format!("register `{name}`, which is never written"));
            let value = Expr::unknown(ty);
            self.push(Op::Assign { dst, value });
        }
    }

    fn clash(&mut self, name: &str, span: Span) {
        let place = self.symbols.find(name).map(|id| self.symbols.get(id).span);
        self.sink.error(
            "name-clash",
            span,
            format!("`{name}` is a location, not a register"),
            |d| {
                let d = d.label("expected a register");
                match place {
                    Some(place) if place != span => d.also(place, "the location"),
                    _ => d,
                }
            },
        );
    }

    fn declare(&mut self, ty: &Range<usize>, name: &Range<usize>, count: Option<i64>) {
        let spelled = self.str(ty).trim_start_matches('.');
        let Some(known) = bits_named(spelled) else {
            let message = format!("registers of type `.{spelled}` are not supported");
            self.error("unsupported-type", ty.clone(), message, |d| {
                d.label("expected an integer type, `.f32`, `.f64` or `.pred`")
            });
            return;
        };
        let name = bare(self.str(name));
        match count {
            None => {
                self.declared.insert(name.to_string(), known);
            }
            // Only names that occur matter, so a large count costs nothing.
            Some(_) => {
                self.declared.insert(format!("{name}<"), known);
            }
        }
    }

    /// The type of a register that may remain without a value.
    fn unset_ty(&self, name: &str) -> Option<Ty> {
        self.declared_ty(name)
            .or_else(|| SIZES.contains(&bare(name)).then_some(Ty::U32))
    }

    /// The type of a declared register: by its name, or as a member of a declared family `%r<n>`.
    fn declared_ty(&self, name: &str) -> Option<Ty> {
        let name = bare(name);
        if self.declared.is_empty() {
            return None;
        }
        let family = name.trim_end_matches(|c: char| c.is_ascii_digit());
        self.declared
            .get(name)
            .or_else(|| self.declared.get(&format!("{family}<")))
            .copied()
    }

    fn registers_of(&mut self, m: &'a Matched) {
        if let Some((_, pred)) = &m.raw.pred {
            self.note_read(pred, OperandRole::Pred, PRED);
        }
        let ty = self.call_ty(m);
        for (role, operand, pieces) in m.operands() {
            let OperandKind::Name(n) = &operand.kind else {
                continue;
            };
            let ty = if m.row.result == ResultTy::Own {
                ty.piece(pieces)
            } else {
                ty
            };
            match role {
                OperandRole::Dst | OperandRole::DstAndPred | OperandRole::Dsts => {
                    self.note_write(&n.name, result_ty(m.row, ty))
                }
                OperandRole::DstPred => self.note_write(&n.name, PRED),
                OperandRole::DstParam => self.note_write(&n.piece(), ty),
                // Addresses of shared memory may have 32 bits.
                OperandRole::Addr if shared(m) => self.note_read(&n.name, role, Ty::U32),
                OperandRole::Addr => self.note_read(&n.name, role, Ty::U64),
                OperandRole::Val | OperandRole::Pred | OperandRole::Loose => {
                    self.note_read(&n.name, role, ty)
                }
                OperandRole::Param => self.note_read(&n.piece(), OperandRole::Loose, ty),
                OperandRole::Any
                | OperandRole::Vals
                | OperandRole::Tensor
                | OperandRole::Matrix => self.note_read(&n.name, OperandRole::Loose, ty),
                OperandRole::Label | OperandRole::Texel => {}
            }
        }
    }

    fn note_write(&mut self, range: &Range<usize>, ty: Ty) {
        let name = self.str(range);
        if self.symbols.find(bare(name)).is_some() {
            let span = self.unit.text.span(range.clone());
            self.clash(bare(name), span);
            return;
        }
        if let Some(declared) = self
            .declared_ty(name)
            .filter(|d| d.bits < ty.bits || (*d == PRED) != (ty == PRED))
        {
            self.mismatch(range, declared, ty);
        }
        match self.regs.intern(name) {
            Some(id) => self.regs.wrote(id, ty),
            None => self.too_many_registers(range),
        }
    }

    fn too_many_registers(&mut self, range: &Range<usize>) {
        self.error(
            "too-many-registers",
            range.clone(),
            "a thread has at most 65535 registers",
            |d| d,
        );
    }

    fn mismatch(&mut self, range: &Range<usize>, declared: Ty, used: Ty) {
        let message = format!(
            "`{}` is {}, used as {}",
            self.str(range),
            described(declared),
            described(used)
        );
        self.error("type-mismatch", range.clone(), message, |d| {
            d.label(format!("expected {}", described(used)))
        });
    }

    fn note_read(&mut self, range: &Range<usize>, role: OperandRole, ty: Ty) {
        let name = self.str(range);
        if !matches!(self.classify(name, role), NameMeaning::Register) {
            return;
        }
        if !self.env.strict && self.symbols.find(name).is_some() {
            let span = self.unit.text.span(range.clone());
            self.clash(name, span);
            return;
        }
        let bits = match role {
            OperandRole::Pred => PRED,
            _ => ty,
        };
        if role != OperandRole::Loose
            && let Some(declared) = self.declared_ty(name).filter(|d| {
                bits != Ty::WORD && (d.bits < bits.bits || (bits == PRED) != (*d == PRED))
            })
        {
            self.mismatch(range, declared, bits);
        }
        let span = self.unit.text.span(range.clone());
        match self.regs.intern(name) {
            Some(id) => self.regs.read(id, span),
            None => self.too_many_registers(range),
        }
    }

    /// The meaning of a name in an operand with that role.
    pub(super) fn classify(&self, name: &str, role: OperandRole) -> NameMeaning {
        if name.starts_with('%') {
            if let Some((_, value)) = self.env.specials.iter().find(|s| s.0 == name) {
                return NameMeaning::Special(value.clone());
            }
            // A special register that the test sets is an input, such as a timer.
            let is_unknown = is_special(name)
                && !SIZES.contains(&bare(name))
                && !self.env.regs.iter().any(|r| bare(&r.name) == bare(name));
            return if is_unknown {
                NameMeaning::UnknownSpecial
            } else {
                NameMeaning::Register
            };
        }
        // The published suites distinguish registers from locations only by their position.
        if !self.env.strict {
            return if role == OperandRole::Addr {
                self.symbols
                    .find(name)
                    .map_or(NameMeaning::Unknown, NameMeaning::Location)
            } else {
                NameMeaning::Register
            };
        }
        if role != OperandRole::Pred
            && !self.env.nameless
            && let Some(loc) = self.symbols.find(name)
        {
            return NameMeaning::Location(loc);
        }
        let register = role != OperandRole::Addr
            || self.written.contains(name)
            || self.declared_ty(name).is_some();
        if register {
            NameMeaning::Register
        } else {
            NameMeaning::Unknown
        }
    }
}

fn described(ty: Ty) -> String {
    if ty == PRED {
        "a predicate".to_string()
    } else {
        format!("{} bits wide", ty.bits)
    }
}

/// Whether an access names shared memory.
fn shared(m: &Matched) -> bool {
    let words = [QualKind::Space, QualKind::Ignored]
        .into_iter()
        .flat_map(|kind| m.quals.all(kind));
    words.into_iter().any(|word| word.starts_with("shared"))
}

/// Registers with the total size of a CTA's shared memory. It is a multiple of the target's
/// allocation unit and includes the system's share (PTX ISA, Special Registers), so it is unknown
/// here.
const SIZES: [&str; 2] = ["total_smem_size", "aggr_smem_size"];

/// Whether a name is one of PTX's special registers (PTX ISA, Special Registers).
fn is_special(name: &str) -> bool {
    const NAMES: [&str; 17] = [
        "%laneid",
        "%warpid",
        "%nwarpid",
        "%smid",
        "%nsmid",
        "%gridid",
        "%clock",
        "%clock64",
        "%clock_hi",
        "%globaltimer",
        "%globaltimer_lo",
        "%globaltimer_hi",
        "%is_explicit_cluster",
        "%dynamic_smem_size",
        "%total_smem_size",
        "%aggr_smem_size",
        "%current_graph_exec",
    ];
    const STEMS: [&str; 5] = [
        "%lanemask_",
        "%cluster_",
        "%envreg",
        "%pm",
        "%reserved_smem_offset_",
    ];
    name.contains('.') || NAMES.contains(&name) || STEMS.iter().any(|stem| name.starts_with(stem))
}

/// The type of a row's result if its operation has type `ty`.
fn result_ty(row: &InstrRow, ty: Ty) -> Ty {
    match row.result {
        ResultTy::Own => ty,
        ResultTy::Pred => PRED,
        ResultTy::U32 => Ty::U32,
        ResultTy::Wide => Ty {
            bits: ty.bits.saturating_mul(2).min(64),
            ..ty
        },
    }
}
