//! Checks operands against the instruction table and resolves them.

use super::lower::{Emit, PtxArg, truth};
use super::names::NameMeaning;
use super::parse::{NameOperand, OperandKind, PtxOperand};
use super::table::{Matched, OperandRole, QualKind};
use crate::isa::SymbolKind;
use diag::Diagnostic;
use program::{BinOp, Expr, LocId, Space, Ty};

impl Emit<'_, '_> {
    /// Resolves an operand, or the elements of a vector.
    pub(super) fn argument(
        &mut self,
        m: &Matched,
        role: OperandRole,
        operand: &PtxOperand,
        ty: Ty,
        loc: &mut Option<LocId>,
    ) -> Option<PtxArg> {
        let width = m.quals.width();
        let takes_vector = width > 1 && matches!(role, OperandRole::Dst | OperandRole::Val);
        match &operand.kind {
            OperandKind::Vector(all) if takes_vector && all.len() == width => all
                .iter()
                .map(|element| self.operand(m, role, element, ty, loc))
                .collect::<Option<_>>()
                .map(PtxArg::Vector),
            // Triton prints scalars in braces, too.
            OperandKind::Vector(all)
                if all.len() == width
                    && matches!(role, OperandRole::Dst | OperandRole::Val)
                    && matches!(m.row.opcode, "ld" | "st" | "suld" | "sust") =>
            {
                self.operand(m, role, &all[0], ty, loc)
            }
            OperandKind::Vector(all) if matches!(role, OperandRole::Dsts | OperandRole::Vals) => {
                let role = if role == OperandRole::Dsts {
                    OperandRole::Dst
                } else {
                    OperandRole::Any
                };
                let all = all
                    .iter()
                    .map(|element| self.operand(m, role, element, ty, loc));
                all.collect::<Option<_>>().map(PtxArg::Vector)
            }
            OperandKind::Pair(both) if role == OperandRole::DstAndPred => {
                let [first, second] = both.as_slice() else {
                    return None;
                };
                let first = self.operand(m, OperandRole::Dst, first, ty, loc)?;
                Some(PtxArg::Vector(vec![
                    first,
                    self.operand(m, OperandRole::DstPred, second, ty, loc)?,
                ]))
            }
            OperandKind::Texel(all) if role == OperandRole::Texel => {
                let parts = all.iter().enumerate().map(|(at, part)| {
                    let ty = if at == 0 { Ty::U64 } else { Ty::U32 };
                    self.operand(m, OperandRole::Any, part, ty, loc)
                });
                parts.collect::<Option<_>>().map(PtxArg::Vector)
            }
            _ if takes_vector => {
                let message = format!("`.v{width}` takes a vector of {width} elements");
                self.error("wrong-operand", operand.range.clone(), message, |d| {
                    d.label(format!("expected the form {}", m.row.syntax))
                });
                None
            }
            _ if matches!(role, OperandRole::DstAndPred | OperandRole::Dsts) => {
                self.operand(m, OperandRole::Dst, operand, ty, loc)
            }
            _ if role == OperandRole::Vals => self.operand(m, OperandRole::Val, operand, ty, loc),
            _ => self.operand(m, role, operand, ty, loc),
        }
    }

    fn operand(
        &mut self,
        m: &Matched,
        role: OperandRole,
        operand: &PtxOperand,
        ty: Ty,
        loc: &mut Option<LocId>,
    ) -> Option<PtxArg> {
        match (&operand.kind, role) {
            (OperandKind::Pair(_), _) => {
                let message = "a second destination after `|` is not supported here";
                self.error("unsupported-operand", operand.range.clone(), message, |d| {
                    d.label(format!("expected {}", role.expected()))
                });
                None
            }
            (OperandKind::Int(v), OperandRole::Val | OperandRole::Loose | OperandRole::Any) => {
                self.integer(m, role, operand, *v, ty)
            }
            (OperandKind::Int(_), _) => self.wrong(m, role, operand, "a constant"),
            // A floating-point constant has 64 bits until it is used (PTX ISA, Floating-Point
            // Constants).
            (OperandKind::Fraction(v), OperandRole::Val | OperandRole::Any)
                if role == OperandRole::Any
                    || m.quals.packed() == 1
                        && m.quals.format().is_some_and(|format| format.bits > 16) =>
            {
                let bits = if ty.bits == 32 {
                    i64::from((*v as f32).to_bits())
                } else {
                    v.to_bits() as i64
                };
                Some(PtxArg::Expr(Expr::Const(bits)))
            }
            (OperandKind::Fraction(_), _) => self.wrong(m, role, operand, "a fraction"),
            (OperandKind::Discard, OperandRole::Dst | OperandRole::DstPred) => {
                Some(PtxArg::Dst(None))
            }
            (OperandKind::Discard, _) => self.wrong(m, role, operand, "`_`"),
            (OperandKind::Vector(_), _) => self.wrong(m, role, operand, "a vector"),
            (OperandKind::Texel(_), _) => self.wrong(m, role, operand, "coordinates"),
            (OperandKind::Name(n), OperandRole::Dst | OperandRole::DstPred) if plain(n) => {
                Some(PtxArg::Dst(self.regs.find(self.str(&n.name))))
                    .filter(|arg| matches!(arg, PtxArg::Dst(Some(_))))
            }
            (OperandKind::Name(n), OperandRole::Label) if plain(n) => {
                Some(PtxArg::Label(n.name.clone()))
            }
            (OperandKind::Name(n), OperandRole::Pred) if !n.brackets => {
                let reg = self.regs.find(self.str(&n.name))?;
                Some(PtxArg::Expr(truth(Expr::Reg(reg), n.negated)))
            }
            (OperandKind::Name(n), OperandRole::Val | OperandRole::Loose | OperandRole::Any)
                if !n.brackets && !n.negated =>
            {
                self.value(n, ty)
            }
            (OperandKind::Name(n), OperandRole::Param) if n.brackets && n.index == 0 => Some(
                PtxArg::Expr(Expr::Reg(self.regs.find(self.str(&n.piece()))?)),
            ),
            (OperandKind::Name(n), OperandRole::DstParam) if n.brackets && n.index == 0 => {
                Some(PtxArg::Dst(self.regs.find(self.str(&n.piece()))))
            }
            (OperandKind::Name(n), OperandRole::Tensor) if n.brackets => self.tensor(n),
            (OperandKind::Name(n), OperandRole::Matrix) if n.brackets => {
                Some(PtxArg::Vector(vec![self.tensor(n)?]))
            }
            (OperandKind::Name(n), OperandRole::Matrix) if !n.negated => self.value(n, ty),
            (OperandKind::Name(n), OperandRole::Addr) if !n.negated => self.address(m, n, ty, loc),
            (OperandKind::Name(n), _) if n.brackets => self.wrong(m, role, operand, "an address"),
            (OperandKind::Name(n), _) => {
                let found = format!("`{}`", self.str(&n.name));
                self.wrong(m, role, operand, &found)
            }
        }
    }

    /// Reports an operand that does not fit its role.
    fn wrong(
        &mut self,
        m: &Matched,
        role: OperandRole,
        operand: &PtxOperand,
        found: &str,
    ) -> Option<PtxArg> {
        let message = format!("expected {}, found {found}", role.expected());
        self.error("wrong-operand", operand.range.clone(), message, |d| {
            d.label(format!("expected the form {}", m.row.syntax))
        });
        None
    }

    /// Checks a constant: its notation and its range.
    fn integer(
        &mut self,
        m: &Matched,
        role: OperandRole,
        operand: &PtxOperand,
        v: i64,
        ty: Ty,
    ) -> Option<PtxArg> {
        if (m.quals.is_half() || m.quals.packed() > 1) && role == OperandRole::Val {
            let message =
                "PTX has no floating-point constants of 16 bits, and none of packed types";
            self.error("wrong-operand", operand.range.clone(), message, |d| {
                d.label(
                    "expected a register; `mov.b16` or `mov.b32` sets it to the bits of a constant",
                )
            });
            return None;
        }
        let prefix = m
            .quals
            .format()
            .map(|format| if format.bits == 32 { "0f" } else { "0d" });
        let written = self.str(&operand.range);
        if let Some(prefix) = prefix
            && role == OperandRole::Val
            && !written.to_ascii_lowercase().starts_with(prefix)
        {
            let message = format!(
                "`{written}` is not a floating-point constant of {} bits",
                ty.bits
            );
            self.error("wrong-operand", operand.range.clone(), message, |d| {
                d.label(format!("expected the bits of one behind `{prefix}`"))
            });
        }
        if role == OperandRole::Val && !fits(v, ty) {
            let message = format!("{v} does not fit {} bits", ty.bits);
            self.error(
                "constant-out-of-range",
                operand.range.clone(),
                message,
                |d| d.label(format!("expected a constant of {} bits", ty.bits)),
            );
        }
        Some(PtxArg::Expr(Expr::Const(v)))
    }

    /// Resolves a register, a special register, or the address of a location.
    fn value(&mut self, n: &NameOperand, ty: Ty) -> Option<PtxArg> {
        let name = self.str(&n.name);
        match self.classify(name, OperandRole::Val) {
            NameMeaning::Special(value) => Some(PtxArg::Expr(value)),
            NameMeaning::UnknownSpecial => self.unknown_special(n),
            NameMeaning::Location(id) => {
                let narrow = self.symbols.object(id).1.space.is_narrow();
                if ty.bits != 64 && !(narrow && ty.bits == 32) {
                    let message = format!("the address of `{name}` needs 64 bits, not {}", ty.bits);
                    self.error("type-mismatch", n.name.clone(), message, |d| {
                        d.label("an address")
                    });
                    return None;
                }
                Some(PtxArg::Expr(self.named(n, id)?))
            }
            NameMeaning::Register | NameMeaning::Unknown => {
                let reg = self.regs.find(name)?;
                if n.offset != 0 || n.index != 0 {
                    let message = format!(
                        "`{name}` is a register; an offset belongs into an address or an `add`"
                    );
                    self.error("wrong-operand", n.name.clone(), message, |d| {
                        d.label("expected a location")
                    });
                    return None;
                }
                Some(PtxArg::Expr(Expr::Reg(reg)))
            }
        }
    }

    /// An address of tensor memory: a register, and a number of columns behind it.
    fn tensor(&mut self, n: &NameOperand) -> Option<PtxArg> {
        let reg = self.regs.find(self.str(&n.name))?;
        let behind = n.index + n.offset;
        Some(PtxArg::Expr(match behind {
            0 => Expr::Reg(reg),
            behind => Expr::Bin(
                BinOp::Add,
                Ty::U32,
                Expr::Reg(reg).into(),
                Expr::Const(behind).into(),
            ),
        }))
    }

    fn unknown_special(&mut self, n: &NameOperand) -> Option<PtxArg> {
        let name = self.str(&n.name);
        let known: Vec<&str> = self.env.specials.iter().map(|s| s.0.as_str()).collect();
        let message = format!("the special register `{name}` has no value here");
        self.error("unknown-register", n.name.clone(), message, |d| {
            let given = format!("give it a value as an input: `regs = {{ \"{name}\" = 0 }}`");
            let d = if known.is_empty() {
                d.label("known only in code given by `[kernel]`")
            } else {
                d.label("not a special register of the kernel form")
                    .did_you_mean(name, known)
            };
            if d.help.is_some() { d } else { d.help(given) }
        });
        None
    }

    /// The element selected by `+ bytes` and `[n]`.
    fn element(&mut self, n: &NameOperand, ty: Ty) -> Option<i64> {
        let size = i64::from(ty.bytes());
        if n.offset % size != 0 {
            let message = format!(
                "the offset {} is not a multiple of the element size, {size} bytes",
                n.offset
            );
            self.error("misaligned", n.name.start..n.name.end, message, |d| {
                d.label("offsets count bytes")
                    .note("partially overlapping accesses are not supported")
            });
            return None;
        }
        n.index.checked_add(n.offset / size)
    }

    /// The address of a named location with an offset.
    fn named(&mut self, n: &NameOperand, id: LocId) -> Option<Expr> {
        let (ty, count) = (self.symbols.ty(id), self.symbols.count(id));
        let element = self.element(n, ty)?;
        if usize::try_from(element).is_ok_and(|e| e < count) {
            return Some(plus(Expr::Address(id), element, ty));
        }
        let name = self.str(&n.name);
        let has = if count == 1 {
            "one element".to_string()
        } else {
            format!("{count} elements")
        };
        self.error(
            "out-of-bounds",
            n.name.clone(),
            format!("`{name}` has {has}, this is number {element}"),
            |d| d.label("counted from 0"),
        );
        None
    }

    fn address(
        &mut self,
        m: &Matched,
        n: &NameOperand,
        ty: Ty,
        loc: &mut Option<LocId>,
    ) -> Option<PtxArg> {
        let name = self.str(&n.name);
        match self.classify(name, OperandRole::Addr) {
            NameMeaning::Location(id) => {
                *loc = Some(id);
                self.check_space(m, n, id);
                let address = self.named(n, id)?;
                self.check_extent(m, n, id)?;
                Some(PtxArg::Expr(address))
            }
            NameMeaning::Register => {
                let reg = self.regs.find(name)?;
                let element = self.element(n, ty)?;
                self.through_register = m.quals.ty().is_none();
                Some(PtxArg::Expr(plus(Expr::Reg(reg), element, ty)))
            }
            NameMeaning::Special(_) | NameMeaning::UnknownSpecial => {
                self.error(
                    "wrong-operand",
                    n.name.clone(),
                    format!("`{name}` is not an address"),
                    |d| d.label(format!("expected {}", OperandRole::Addr.expected())),
                );
                None
            }
            NameMeaning::Unknown => {
                let full = self.sink.full();
                let known = self.symbols.names().filter(|_| !full);
                let span = self.unit.text.span(n.name.clone());
                let diagnostic = Diagnostic::error(
                    "unknown-location",
                    self.sink.file(),
                    span,
                    format!("there is no location `{name}`"),
                )
                .label("expected a location, or a register that holds an address")
                .did_you_mean(name, known);
                let diagnostic = match diagnostic.help {
                    Some(_) => diagnostic,
                    None => diagnostic.help(format!("declare it: `[memory]` with `{name} = 0`")),
                };
                self.sink.push(diagnostic);
                None
            }
        }
    }

    /// Checks that an access lies in one object, at a multiple of its size (PTX ISA, Operands,
    /// Vectors as Operands; Addresses as Operands).
    fn check_extent(&mut self, m: &Matched, n: &NameOperand, id: LocId) -> Option<()> {
        let (ty, declared) = (self.symbols.ty(id), self.symbols.object(id).1);
        // Operations on an mbarrier object are not accesses of the instruction's type.
        if declared.class == Some(program::Class::Mbarrier) {
            return Some(());
        }
        let count = self.symbols.count(id);
        let cells = m.quals.ty().map_or(1, |of| (of.bits / ty.bits).max(1));
        let width = m.quals.width() as i64 * i64::from(cells);
        let first = self.element(n, ty)?;
        let name = self.str(&n.name);
        let (what, is) = match m.quals.width() {
            1 => ("an access", "the access is to"),
            _ => ("a vector", "the vector has"),
        };
        if first % width != 0 {
            let size = width * i64::from(ty.bytes());
            let message =
                format!("element {first} of `{name}` is not at a multiple of {size} bytes");
            self.error("misaligned", n.name.clone(), message, |d| {
                d.label(format!(
                    "expected the address of {what} to be a multiple of its size"
                ))
            });
            return None;
        }
        if first + width > count as i64 {
            let message = format!("`{name}` ends before element {} of it", first + width - 1);
            self.error("out-of-bounds", n.name.clone(), message, |d| {
                d.label(format!("{is} {width} elements, from number {first} on"))
                    .help(format!(
                        "declare it with as many: `{name} = {{ init = [{}] }}`",
                        vec!["0"; (first + width) as usize].join(", ")
                    ))
            });
            return None;
        }
        Some(())
    }

    fn check_space(&mut self, m: &Matched, n: &NameOperand, id: LocId) {
        let Some(written) = m.quals.get(QualKind::Space) else {
            return;
        };
        let space = self.symbols.object(id).1.space;
        let matches = match written {
            "global" => space == Space::Global,
            "const" => {
                space == Space::Constant
                    || matches!(self.symbols.get(id).kind, SymbolKind::Alias { .. })
            }
            "local" => space.is_local(),
            "param" | "param::entry" => space == Space::Param,
            _ => space == Space::Shared,
        };
        if matches {
            return;
        }
        let name = self.str(&n.name);
        let place = m.quals.place(QualKind::Space).unwrap_or_default();
        let declared = self.symbols.get(id).span;
        let short = written.split(':').next().unwrap_or(written);
        let message = format!("`.{written}` access to `{name}`, which is in another state space");
        self.error("wrong-space", place, message, |d| {
            d.label("this state space")
                .also(declared, "declared here")
                .help(format!(
                    "declare it with `{name} = {{ init = 0, space = \"{short}\" }}`"
                ))
        });
    }
}

/// Whether the operand is only a name.
fn plain(n: &NameOperand) -> bool {
    !n.brackets && !n.negated && n.offset == 0 && n.index == 0
}

/// The address of element number `element`, of type `ty`, from `base` on.
pub(super) fn plus(base: Expr, element: i64, ty: Ty) -> Expr {
    match (element.wrapping_mul(i64::from(ty.bytes())), base) {
        (0, base) => base,
        (n, Expr::Bin(BinOp::Add, Ty::U64, base, first)) if matches!(*first, Expr::Const(_)) => {
            let Expr::Const(first) = *first else {
                unreachable!("just matched")
            };
            Expr::Bin(
                BinOp::Add,
                Ty::U64,
                base,
                Box::new(Expr::Const(first.wrapping_add(n))),
            )
        }
        (n, base) => Expr::Bin(
            BinOp::Add,
            Ty::U64,
            Box::new(base),
            Box::new(Expr::Const(n)),
        ),
    }
}

/// Whether a constant is a value of the type, read as signed or unsigned.
fn fits(v: i64, ty: Ty) -> bool {
    ty.bits == 64 || {
        let half = 1i64 << (ty.bits - 1);
        -half <= v && v < 2 * half
    }
}
