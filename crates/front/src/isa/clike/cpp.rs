//! What CUDA C++ writes beyond C, to syntax trees: atomic references, methods, thread groups; and casts, which C has too.
//!
//! # Sources
//! - libcu++, *Extended API*, `cuda::atomic_ref`.

use std::ops::Range;

use super::ast::{
    Base, Declaration, Declarator, Declared, Expr, ExprKind, Initial, Qualifiers, Reference, Specifiers,
};
use super::lex::Tok;
use super::parse::{Parsed, Parser};
use super::words::{GROUP_TYPES, group_word};
use program::Ty;

/// Names of the template; the last one is for code that is `using namespace cuda`.
const TEMPLATES: &[&str] = &["cuda::atomic_ref", "cuda::std::atomic_ref", "std::atomic_ref", "atomic_ref"];

impl Parser<'_, '_> {
    /// Whether the next tokens begin the type of an atomic reference.
    pub(super) fn names_reference(&self) -> bool {
        TEMPLATES.contains(&self.word()) && matches!(self.peek_at(1), Tok::Punct("<" | "(" | "{") | Tok::Name)
    }

    /// Whether the next tokens declare an atomic reference: a name stands behind its type.
    pub(super) fn declares_reference(&self) -> bool {
        if !self.names_reference() {
            return false;
        }
        let mut n = 1;
        loop {
            match self.peek_at(n) {
                Tok::Name if n == 1 => return true,
                Tok::Punct(">") => return self.peek_at(n + 1) == Tok::Name,
                Tok::Name | Tok::Punct("," | "<" | "*") => n += 1,
                _ => return false,
            }
        }
    }

    /// A name whose value decides what it is.
    fn deduced(&self, range: Range<usize>, name: Range<usize>, value: Expr) -> Declaration {
        let (storage, of_base) = (Vec::new(), Qualifiers::default());
        let declarator = Declarator { name, ..Declarator::default() };
        let all = vec![Declared { declarator, value: Some(Initial::Value(value)) }];
        Declaration { specifiers: Specifiers { base: Base::Auto, of_base, storage, range }, all }
    }

    /// `cuda::atomic_ref<int, scope> f(x)`, without the `;`.
    pub(super) fn refer(&mut self) -> Parsed<Declaration> {
        let mut reference = self.template()?;
        let name = self.next();
        // `= cuda::atomic_ref<…>(x)` says it twice.
        reference.object = self.object()?;
        let (range, depth) = (reference.name.start..self.last_end(), reference.object.depth);
        let value = self.node(ExprKind::Refer(reference.into()), range.clone(), depth)?;
        Ok(self.deduced(range, name, value))
    }

    /// `cuda::atomic_ref<int, scope>(x)`.
    pub(super) fn reference(&mut self) -> Parsed<Reference> {
        let mut reference = self.template()?;
        reference.object = self.object()?;
        Ok(reference)
    }

    /// The type of a reference; the object is still to be filled in.
    fn template(&mut self) -> Parsed<Reference> {
        let name = self.next();
        let object = Expr { kind: ExprKind::Name, range: name.clone(), depth: 1 };
        if !self.eat("<") {
            return Ok(Reference { name, ty: None, scope: None, object });
        }
        let ty = Some(self.type_name()?);
        let mut scope = None;
        if self.eat(",") {
            if self.peek() != Tok::Name {
                return self.unexpected("a scope such as `cuda::thread_scope_device`");
            }
            scope = Some(self.next());
        }
        self.expect(">")?;
        Ok(Reference { name, ty, scope, object })
    }

    /// `(x)` or `{x}`.
    fn object(&mut self) -> Parsed<Expr> {
        let close = if self.eat("{") { "}" } else { ")" };
        if close == ")" {
            self.expect("(")?;
        }
        let object = self.expression()?;
        self.expect(close)?;
        Ok(object)
    }

    /// Whether the next tokens declare a group of threads by the name of its type, as in `cg::grid_group g = …`.
    pub(super) fn declares_group(&self) -> bool {
        let tile = self.peek_at(1) == Tok::Punct("<") && self.peek_at(3) == Tok::Punct(">");
        let name = if tile { 4 } else { 1 };
        GROUP_TYPES.contains(&group_word(self.word())) && self.peek_at(name) == Tok::Name
    }

    /// `cg::grid_group g = value`, without the `;`.
    pub(super) fn group(&mut self) -> Parsed<Declaration> {
        let start = self.next().start;
        if self.eat("<") {
            self.next();
            self.expect(">")?;
        }
        let name = self.next();
        self.expect("=")?;
        let value = self.expression()?;
        Ok(self.deduced(start..self.last_end(), name, value))
    }

    /// Whether the name just read is followed by the size of a tile.
    pub(super) fn partitions(&self, name: &Range<usize>) -> bool {
        group_word(self.str(name)) == "tiled_partition" && self.peek() == Tok::Punct("<")
    }

    /// `cg::tiled_partition<4>(group)`, behind the name: a call whose first argument is the size.
    pub(super) fn partition(&mut self, name: Range<usize>) -> Parsed<Expr> {
        self.next();
        let at = self.range();
        let Tok::Int(size, _) = self.peek() else { return self.unexpected("the size of a tile, such as 4") };
        self.next();
        self.expect(">")?;
        self.expect("(")?;
        let (given, depth) = self.arguments()?;
        let mut args = vec![Expr { kind: ExprKind::Int(size, Ty::S32), range: at, depth: 1 }];
        args.extend(given);
        let whole = name.start..self.last_end();
        self.node(ExprKind::Call(name, args), whole, depth.max(1))
    }

    /// What stands behind `object.`.
    pub(super) fn method(&mut self, object: Expr) -> Parsed<Expr> {
        if self.peek() != Tok::Name {
            return self.unexpected("a member, or a function such as `load`");
        }
        let name = self.next();
        if self.peek() != Tok::Punct("(") {
            let (range, depth) = (object.range.start..name.end, object.depth);
            return self.node(ExprKind::Field(object.into(), name), range, depth);
        }
        self.expect("(")?;
        let (args, depth) = self.arguments()?;
        let (range, depth) = (object.range.start..self.last_end(), depth.max(object.depth));
        self.node(ExprKind::Method(object.into(), name, args), range, depth)
    }

    /// Whether the next tokens begin a cast.
    pub(super) fn casts(&self) -> bool {
        self.peek() == Tok::Punct("(") && self.is_type(1)
    }

    /// `(type) a` or `(type*) a`.
    pub(super) fn cast(&mut self) -> Parsed<Expr> {
        let start = self.next().start;
        let to = self.type_name()?;
        self.expect(")")?;
        if self.peek() == Tok::Punct("{") {
            return self.refuse("compound literals are", "declare a variable");
        }
        let inner = self.nested(Self::unary)?;
        let (range, depth) = (start..inner.range.end, inner.depth);
        self.node(ExprKind::Cast(to.into(), inner.into()), range, depth)
    }

    /// Whether the next tokens begin a cast such as `static_cast<int>(a)`.
    pub(super) fn named_cast(&self) -> bool {
        self.language.cpp
            && matches!(self.word(), "static_cast" | "reinterpret_cast" | "const_cast")
            && self.peek_at(1) == Tok::Punct("<")
    }

    /// `static_cast<int>(a)`
    pub(super) fn cast_by_name(&mut self) -> Parsed<Expr> {
        let start = self.next().start;
        self.expect("<")?;
        let to = self.type_name()?;
        self.expect(">")?;
        self.expect("(")?;
        let inner = self.comma()?;
        let (range, depth) = (start..self.expect(")")?.end, inner.depth);
        self.node(ExprKind::Cast(to.into(), inner.into()), range, depth)
    }

    /// `int(a)`, `unsigned{a}`
    pub(super) fn cast_by_call(&mut self) -> Parsed<Expr> {
        let start = self.range().start;
        let specifiers = self.specifiers()?;
        let inner = self.object()?;
        let (range, depth) = (start..self.last_end(), inner.depth);
        let to = super::ast::TypeName { specifiers, declarator: Declarator::default() };
        self.node(ExprKind::Cast(to.into(), inner.into()), range, depth)
    }

    /// `sizeof(int)`, `sizeof a`
    pub(super) fn size_of(&mut self) -> Parsed<Expr> {
        let start = self.next().start;
        if self.casts() {
            self.next();
            let of = self.type_name()?;
            let end = self.expect(")")?.end;
            return self.node(ExprKind::SizeOfType(of.into()), start..end, 0);
        }
        let of = self.nested(Self::unary)?;
        let (range, depth) = (start..of.range.end, of.depth);
        self.node(ExprKind::SizeOf(of.into()), range, depth)
    }
}
