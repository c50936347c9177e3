//! What CUDA C++ writes beyond C, to syntax trees: atomic references, methods, thread groups; and casts, which C has too.
//!
//! # Sources
//! - libcu++, *Extended API*, `cuda::atomic_ref`.

use std::ops::Range;

use super::ast::{Declared, Expr, ExprKind, Reference, StmtKind, Target};
use super::lex::Tok;
use super::parse::{Parsed, Parser, is_type_word};
use super::words::{GROUP_TYPES, group_word};
use program::Ty;

/// Names of the template.
const TEMPLATES: &[&str] = &["cuda::atomic_ref", "cuda::std::atomic_ref", "std::atomic_ref"];

impl Parser<'_, '_> {
    /// Whether the next tokens begin the type of an atomic reference.
    pub(super) fn names_reference(&self) -> bool {
        TEMPLATES.contains(&self.word()) && self.peek_at(1) == Tok::Punct("<")
    }

    /// Whether the next tokens declare an atomic reference: a name stands behind its type.
    pub(super) fn declares_reference(&self) -> bool {
        if !self.names_reference() {
            return false;
        }
        let mut n = 2;
        loop {
            match self.peek_at(n) {
                Tok::Punct(">") => return self.peek_at(n + 1) == Tok::Name,
                Tok::Name | Tok::Punct(",") => n += 1,
                _ => return false,
            }
        }
    }

    /// `cuda::atomic_ref<int, scope> f(x)`, without the `;`.
    pub(super) fn refer(&mut self) -> Parsed<StmtKind> {
        let mut reference = self.template()?;
        let name = self.next();
        reference.object = self.object()?;
        Ok(StmtKind::Refer(name, reference))
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
        self.expect("<")?;
        let ty = self.type_words()?;
        let mut scope = None;
        if self.eat(",") {
            if self.peek() != Tok::Name {
                return self.unexpected("a scope such as `cuda::thread_scope_device`");
            }
            scope = Some(self.next());
        }
        self.expect(">")?;
        let object = Expr { kind: ExprKind::Name, range: name.clone(), depth: 1 };
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
    pub(super) fn group(&mut self) -> Parsed<StmtKind> {
        self.next();
        if self.eat("<") {
            self.next();
            self.expect(">")?;
        }
        let name = self.next();
        self.expect("=")?;
        let value = Some(self.expression()?);
        Ok(StmtKind::Declare(vec![Declared { ty: Ty::S32, pointer: false, auto: true, name, value }]))
    }

    /// Whether the name just read is followed by the size of a tile.
    pub(super) fn partitions(&self, name: &Range<usize>) -> bool {
        group_word(self.str(name)) == "tiled_partition" && self.peek() == Tok::Punct("<")
    }

    /// `cg::tiled_partition<4>(group)`, behind the name: a call whose first argument is the size.
    pub(super) fn partition(&mut self, name: Range<usize>) -> Parsed<Expr> {
        self.next();
        let at = self.range();
        let Tok::Int(size) = self.peek() else { return self.unexpected("the size of a tile, such as 4") };
        self.next();
        self.expect(">")?;
        self.expect("(")?;
        let (given, depth) = self.arguments()?;
        let mut args = vec![Expr { kind: ExprKind::Int(size), range: at, depth: 1 }];
        args.extend(given);
        let whole = name.start..self.last_end();
        self.node(ExprKind::Call(name, args), whole, depth.max(1))
    }

    /// What stands behind `object.`.
    pub(super) fn method(&mut self, object: Expr) -> Parsed<Expr> {
        if self.peek() != Tok::Name {
            return self.unexpected("a function such as `load`");
        }
        let name = self.next();
        if self.peek() != Tok::Punct("(") && matches!(object.kind, ExprKind::Name) {
            return self.node(ExprKind::Member, object.range.start..name.end, 0);
        }
        self.expect("(")?;
        let (args, depth) = self.arguments()?;
        let (range, depth) = (object.range.start..self.last_end(), depth.max(object.depth));
        self.node(ExprKind::Method(object.into(), name, args), range, depth)
    }

    /// Whether the next tokens begin a cast.
    pub(super) fn casts(&self) -> bool {
        self.peek() == Tok::Punct("(") && self.peek_at(1) == Tok::Name && is_type_word(self.word_at(1))
    }

    /// `(type) a` or `(type*) a`.
    pub(super) fn cast(&mut self) -> Parsed<Expr> {
        let start = self.next().start;
        let volatile = self.word() == "volatile" || self.word_at(1) == "volatile";
        let ty = self.type_words()?;
        let pointer = self.eat("*");
        self.expect(")")?;
        let inner = self.nested(Self::unary)?;
        let (range, depth) = (start..inner.range.end, inner.depth);
        self.node(ExprKind::Cast(Target { ty, pointer, volatile }, inner.into()), range, depth)
    }
}
