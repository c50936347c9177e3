//! The registers of one thread with their order and types.
//!
//! # Invariants
//! - Order: by first appearance in the code, followed by registers that only the test initialises.
//!   Giving a register an initial value therefore never renumbers the others.
//! - `%r1` and `r1` are one register.

use std::collections::HashMap;

use diag::Span;
use program::{Init, RegId, Register, Ty};

/// Registers by name.
#[derive(Default)]
pub(super) struct Regs {
    index: HashMap<String, RegId>,
    list: Vec<Info>,
}

/// A register while its thread is being read.
pub(super) struct Info {
    pub(super) name: String,
    /// The widest type with which an instruction writes it; among equally wide ones, the first.
    pub(super) ty: Option<Ty>,
    /// Whether instructions of different types write it.
    pub(super) mixed: bool,
    /// The first place that reads it.
    pub(super) read: Option<Span>,
}

/// The name without `%`.
pub(super) fn bare(name: &str) -> &str {
    name.strip_prefix('%').unwrap_or(name)
}

/// Whether an address in a register of that name fits 32 bits: a test may bind `%envreg` to half of
/// a pointer, and the object then has a low address.
pub(super) fn is_half(name: &str) -> bool {
    bare(name).starts_with("envreg")
}

impl Regs {
    /// The register of that name, added if it is new; `None` if there are too many.
    pub(super) fn intern(&mut self, name: &str) -> Option<RegId> {
        let name = bare(name);
        if let Some(id) = self.index.get(name) {
            return Some(*id);
        }
        let id = RegId(u16::try_from(self.list.len()).ok()?);
        self.index.insert(name.to_string(), id);
        self.list.push(Info {
            name: name.to_string(),
            ty: None,
            mixed: false,
            read: None,
        });
        Some(id)
    }

    pub(super) fn find(&self, name: &str) -> Option<RegId> {
        self.index.get(bare(name)).copied()
    }

    /// `None` for the placeholder of a special register ([`super::sharing`]).
    pub(super) fn get(&self, id: RegId) -> Option<&Info> {
        self.list.get(usize::from(id.0))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Info> {
        self.list.iter()
    }

    pub(super) fn wrote(&mut self, id: RegId, ty: Ty) {
        let info = &mut self.list[usize::from(id.0)];
        match info.ty {
            None => info.ty = Some(ty),
            Some(first) => {
                info.mixed |= first != ty;
                if ty.bits > first.bits {
                    info.ty = Some(ty);
                }
            }
        }
    }

    pub(super) fn read(&mut self, id: RegId, span: Span) {
        self.list[usize::from(id.0)].read.get_or_insert(span);
    }

    /// Whether instructions write the register with this type, and none with a wider one.
    pub(super) fn has_type(&self, id: RegId, ty: Ty) -> bool {
        self.get(id).is_some_and(|info| info.ty == Some(ty))
    }

    /// Whether the type can represent every value of the register.
    pub(super) fn holds(&self, id: RegId, ty: Ty) -> bool {
        let is_held = |info: &Info| !info.mixed && info.ty == Some(ty);
        self.get(id).is_some_and(is_held)
    }

    /// The registers for the program, with the given initial values.
    pub(super) fn finish(self, init: &HashMap<&str, &Init>) -> Vec<Register> {
        self.list
            .into_iter()
            .map(|info: Info| {
                let ty = info.ty.unwrap_or(Ty::WORD);
                let init = match init.get(info.name.as_str()) {
                    Some(Init::Int(v)) => Init::Int(ty.wrap(*v)),
                    Some(address) => (*address).clone(),
                    None => Init::Int(0),
                };
                Register {
                    name: info.name,
                    ty,
                    init,
                }
            })
            .collect()
    }
}
