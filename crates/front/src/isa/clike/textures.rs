//! Fetches from texture objects of CUDA C++: `tex2D<float>(t, x, y)`.
//!
//! # Invariants
//! - A fetch is no access here, and its value is not worked out: filters and conversions decide it.
//!   A fetch of memory that the same kernel writes returns undefined data, and makes no race.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *Texture Functions*; *Texture and Surface Memory*, Read/Write
//!   Coherency.

use std::ops::Range;

use super::ast::{Expr as Tree, TemplateArgument};
use super::lower::Lowering;
use super::place::{Place, shifted};
use super::texture_words::FETCHES;
use super::types::{Qualified, Type, Value};
use program::Expr;

impl Lowering<'_, '_> {
    /// Fetches a texel; `None`: the call is another one.
    pub(super) fn texture_fetch(
        &mut self,
        tree: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Option<Value> {
        if !self.env.language.cpp || !FETCHES.contains(&self.str(name)) {
            return None;
        }
        let unit = self.unit;
        let [TemplateArgument::Type(of)] = &unit.instances.of_calls.get(&name.start)?[..] else {
            return None;
        };
        for arg in args {
            self.eval(arg);
        }
        let of = self.named_type(of)?;
        if !matches!(of.ty, Type::Struct(_)) {
            let bits = of.ty.word()?;
            return Some(Value::new(Expr::unknown(bits), of.ty));
        }
        let at = self.unnamed("texel", &of, &tree.range)?;
        for (offset, part) in of.parts() {
            let unknown = Expr::unknown(part.ty.word()?);
            self.write(&Place::Memory(shifted(&at, offset), part), unknown);
        }
        Some(Value::new(at, of.ty))
    }

    /// The structure that a fetch gives.
    pub(super) fn fetched(&self, name: &Range<usize>) -> Option<Qualified> {
        if !FETCHES.contains(&self.str(name)) {
            return None;
        }
        match &self.unit.instances.of_calls.get(&name.start)?[..] {
            [TemplateArgument::Type(of)] => self.known_structure(of).map(Qualified::from),
            _ => None,
        }
    }
}
