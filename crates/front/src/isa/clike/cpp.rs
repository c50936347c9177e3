//! Parses the parts of CUDA C++ that C lacks: atomic references, methods, thread groups. Also
//! parses casts, in C, too.
//!
//! # Sources
//! - libcu++, *Extended API*, `cuda::atomic_ref`.

use std::ops::Range;

use super::ast::{
    Base, Declaration, Declarator, Declared, Expr, ExprKind, Initial, Qualifiers, Reference,
    Specifiers,
};
use super::classes::{atomic_alias, is_class, is_class_word, is_pipeline_class};
use super::lex::Tok;
use super::parse::{Parsed, Parser};
use super::words::{GROUP_TYPES, group_word, is_keyword};
use program::Ty;

/// Properties of types that `if constexpr` asks for.
/// The template of the limits of types.
const LIMITS_OF_TYPE: &str = "numeric_limits";

pub(super) const TRAITS: [&str; 7] = [
    "is_same",
    "is_integral",
    "is_floating_point",
    "is_arithmetic",
    "is_pointer",
    "is_signed",
    "is_unsigned",
];

/// Names of the template; the last one is for code with `using namespace cuda`.
const TEMPLATES: &[&str] = &[
    "cuda::atomic_ref",
    "cuda::std::atomic_ref",
    "std::atomic_ref",
    "atomic_ref",
];

impl Parser<'_, '_> {
    /// Whether the next tokens begin the type of an atomic reference.
    pub(super) fn names_reference(&self) -> bool {
        TEMPLATES.contains(&self.word())
            && matches!(
                self.tokens.peek_at(1),
                Tok::Punct("<" | "(" | "{") | Tok::Name
            )
    }

    /// Whether the next tokens declare an atomic reference: the type, then a name.
    pub(super) fn declares_reference(&self) -> bool {
        if !self.names_reference() {
            return false;
        }
        let mut n = 1;
        loop {
            match self.tokens.peek_at(n) {
                Tok::Name if n == 1 => return true,
                Tok::Punct(">") => return self.tokens.peek_at(n + 1) == Tok::Name,
                Tok::Name | Tok::Punct("," | "<" | "*") => n += 1,
                _ => return false,
            }
        }
    }

    /// Declares names with types that follow from their values.
    fn deduced(&self, range: Range<usize>, all: Vec<(Range<usize>, Expr)>) -> Declaration {
        let (storage, of_base) = (Vec::new(), Qualifiers::default());
        let declared = |(name, value)| {
            let declarator = Declarator {
                name,
                ..Declarator::default()
            };
            Declared {
                declarator,
                value: Some(Initial::Value(value)),
            }
        };
        let all = all.into_iter().map(declared).collect();
        Declaration {
            specifiers: Specifiers {
                base: Base::Auto,
                of_base,
                storage,
                range,
            },
            all,
        }
    }

    /// `cuda::atomic_ref<int, scope> f(x), g(y)`, without the `;`.
    pub(super) fn refer(&mut self) -> Parsed<Declaration> {
        let (start, first) = (self.tokens.position(), self.tokens.range().start);
        let mut all = Vec::new();
        loop {
            // The type before the first name is that of every name.
            let here = self.tokens.position();
            self.tokens.go_to(start);
            let mut reference = self.template()?;
            if !all.is_empty() {
                self.tokens.go_to(here);
            }
            if self.tokens.peek() != Tok::Name {
                return self.unexpected("the name of a reference");
            }
            let name = self.next();
            // `= cuda::atomic_ref<…>(x)` repeats the type.
            reference.object = self.object()?;
            let (range, depth) = (first..self.tokens.last().range.end, reference.object.depth);
            all.push((
                name,
                self.node(ExprKind::Refer(reference.into()), range, depth)?,
            ));
            if !self.eat(",") {
                return Ok(self.deduced(first..self.tokens.last().range.end, all));
            }
        }
    }

    /// Whether the token `n` ahead names a library class with objects in memory.
    pub(super) fn names_class(&self, n: usize) -> bool {
        let word = self.word_at(n);
        let alias = atomic_alias(word).is_some() && self.tokens.peek_at(n + 1) == Tok::Name;
        self.language.cpp
            && (is_class(word)
                || is_pipeline_class(word)
                || alias
                || (is_class_word(word) && self.tokens.peek_at(n + 1) == Tok::Punct("<")))
    }

    /// `cuda::barrier<cuda::thread_scope_block>`. With `::arrival_token` after it, the type is an
    /// integer here.
    pub(super) fn class(&mut self) -> Parsed<Base> {
        let start = self.next().start;
        if self.eat("<") {
            while !self.eat(">") {
                match self.tokens.peek() {
                    Tok::Name | Tok::Int(..) | Tok::Punct(",") => drop(self.next()),
                    _ => return self.unexpected("`>`"),
                }
            }
        }
        let range = start..self.tokens.last().range.end;
        if self.eat(":") {
            self.expect(":")?;
            if self.word() != "arrival_token" {
                return self.unexpected("`arrival_token`");
            }
            self.next();
            return Ok(Base::Int(Ty::WORD));
        }
        Ok(Base::Class(range))
    }

    /// Whether the next parameter has the type of an atomic reference.
    pub(super) fn takes_reference(&self) -> bool {
        self.language.cpp
            && TEMPLATES.contains(&self.word())
            && self.tokens.peek_at(1) == Tok::Punct("<")
    }

    /// `cuda::atomic_ref<int, scope>(x)`.
    pub(super) fn reference(&mut self) -> Parsed<Reference> {
        let mut reference = self.template()?;
        reference.object = self.object()?;
        Ok(reference)
    }

    /// The type of a reference; the caller fills in the object.
    pub(super) fn template(&mut self) -> Parsed<Reference> {
        let name = self.next();
        let object = Expr {
            kind: ExprKind::Name,
            range: name.clone(),
            depth: 1,
        };
        if !self.eat("<") {
            return Ok(Reference {
                name,
                ty: None,
                scope: None,
                object,
            });
        }
        let ty = Some(self.type_name()?);
        let mut scope = None;
        if self.eat(",") {
            if self.tokens.peek() != Tok::Name {
                return self.unexpected("a scope such as `cuda::thread_scope_device`");
            }
            scope = Some(self.next());
        }
        self.close_angle()?;
        Ok(Reference {
            name,
            ty,
            scope,
            object,
        })
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

    /// Whether the next tokens declare a thread group by its type, as in `cg::grid_group g = …`.
    pub(super) fn declares_group(&self) -> bool {
        let tile =
            self.tokens.peek_at(1) == Tok::Punct("<") && self.tokens.peek_at(3) == Tok::Punct(">");
        let name = if tile { 4 } else { 1 };
        GROUP_TYPES.contains(&group_word(self.word())) && self.tokens.peek_at(name) == Tok::Name
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
        Ok(self.deduced(start..self.tokens.last().range.end, vec![(name, value)]))
    }

    /// Whether the size of a tile follows the name that was just read.
    pub(super) fn partitions(&self, name: &Range<usize>) -> bool {
        group_word(self.str(name)) == "tiled_partition" && self.tokens.peek() == Tok::Punct("<")
    }

    /// `cg::tiled_partition<4>(group)`, after the name: a call with the size as first argument.
    pub(super) fn partition(&mut self, name: Range<usize>) -> Parsed<Expr> {
        self.next();
        let at = self.tokens.range();
        let Tok::Int(size, _) = self.tokens.peek() else {
            return self.unexpected("the size of a tile, such as 4");
        };
        self.next();
        self.expect(">")?;
        self.expect("(")?;
        let (given, depth) = self.arguments()?;
        let mut args = vec![Expr {
            kind: ExprKind::Int(size, Ty::S32),
            range: at,
            depth: 1,
        }];
        args.extend(given);
        let whole = name.start..self.tokens.last().range.end;
        self.node(ExprKind::Call(name, args), whole, depth.max(1))
    }

    /// The member or call after `object.`.
    pub(super) fn method(&mut self, object: Expr) -> Parsed<Expr> {
        let start = self.tokens.range().start;
        if self.language.cpp {
            // `b.~barrier()`
            self.eat("~");
        }
        if self.tokens.peek() != Tok::Name {
            return self.unexpected("a member, or a function such as `load`");
        }
        let name = start..self.next().end;
        if self.templates.contains(self.str(&name)) && self.tokens.peek() == Tok::Punct("<") {
            let given = self.template_arguments()?;
            self.instances.of_calls.insert(name.start, given);
        }
        if self.tokens.peek() != Tok::Punct("(") {
            let (range, depth) = (object.range.start..name.end, object.depth);
            return self.node(ExprKind::Field(object.into(), name), range, depth);
        }
        self.expect("(")?;
        let (args, depth) = self.arguments()?;
        let (range, depth) = (
            object.range.start..self.tokens.last().range.end,
            depth.max(object.depth),
        );
        self.node(ExprKind::Method(object.into(), name, args), range, depth)
    }

    /// Whether the next tokens begin a cast.
    pub(super) fn casts(&self) -> bool {
        // `(int(b) << 16)` begins with a conversion, `(int (*)(int))f` is a cast.
        let converts =
            self.tokens.peek_at(2) == Tok::Punct("(") && self.tokens.peek_at(3) != Tok::Punct("*");
        self.tokens.peek() == Tok::Punct("(") && self.is_type_alone(1) && !converts
    }

    /// `(type) a` or `(type*) a`.
    pub(super) fn cast(&mut self) -> Parsed<Expr> {
        let start = self.next().start;
        let to = self.type_name()?;
        self.expect(")")?;
        if self.tokens.peek() == Tok::Punct("{") {
            return self.braced(start, Some(to));
        }
        // `(int2)(1, 2)` has two values, `(int2)((1, 2))` one.
        let vector = self.language.row().regions && self.names_vector(&to);
        if vector && self.eat("(") {
            let (all, depth) = self.arguments()?;
            return self.node(
                ExprKind::Vector(to.into(), all),
                start..self.tokens.last().range.end,
                depth,
            );
        }
        let inner = self.nested(Self::unary)?;
        let (range, depth) = (start..inner.range.end, inner.depth);
        self.node(ExprKind::Cast(to.into(), inner.into()), range, depth)
    }

    /// Whether a type name is that of a vector type.
    fn names_vector(&self, of: &super::ast::TypeName) -> bool {
        let alone = of.declarator.pointers.is_empty() && of.declarator.arrays.is_empty();
        match &of.specifiers.base {
            Base::Named(range) => alone && self.language.vector(self.str(range)).is_some(),
            _ => false,
        }
    }

    /// Whether the next tokens begin a cast such as `static_cast<int>(a)`.
    pub(super) fn named_cast(&self) -> bool {
        self.language.cpp
            && matches!(
                self.word(),
                "static_cast" | "reinterpret_cast" | "const_cast"
            )
            && self.tokens.peek_at(1) == Tok::Punct("<")
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

    /// Whether the next tokens begin a conversion such as `int(a)`.
    pub(super) fn converts(&self) -> bool {
        if let Some(behind) = self.behind_instance(0) {
            return matches!(self.tokens.peek_at(behind), Tok::Punct("(" | "{" | ":"));
        }
        if self.names_group(0) {
            return false;
        }
        let name =
            self.types.contains(self.word()) || !is_keyword(self.word(), self.language.dialect);
        self.is_type(0) && (!name || matches!(self.tokens.peek_at(1), Tok::Punct("(" | "{")))
    }

    /// `int(a)`, `unsigned{a}`
    pub(super) fn cast_by_call(&mut self) -> Parsed<Expr> {
        let start = self.tokens.range().start;
        let specifiers = self.specifiers()?;
        if self.tokens.peek() == Tok::Punct("{") {
            let to = super::ast::TypeName {
                specifiers,
                declarator: Declarator::default(),
            };
            return self.braced(start, Some(to));
        }
        let to = super::ast::TypeName {
            specifiers,
            declarator: Declarator::default(),
        };
        if self.tokens.peek() == Tok::Punct(":") {
            return self.scoped(start, to);
        }
        self.expect("(")?;
        let (mut all, depth) = self.arguments()?;
        let range = start..self.tokens.last().range.end;
        match all.len() {
            1 => {
                let inner = all.swap_remove(0);
                self.node(ExprKind::Cast(to.into(), inner.into()), range, depth)
            }
            _ => self.node(ExprKind::Made(to.into(), all), range, depth),
        }
    }

    /// `::value` or `::f(x)` behind a class.
    fn scoped(&mut self, start: usize, of: super::ast::TypeName) -> Parsed<Expr> {
        self.expect(":")?;
        self.expect(":")?;
        if self.tokens.peek() != Tok::Name {
            return self.unexpected("the name of a constant or of a function");
        }
        let name = self.next();
        let (args, depth) = match self.eat("(") {
            true => {
                let (args, depth) = self.arguments()?;
                (Some(args), depth)
            }
            false => (None, 0),
        };
        let range = start..self.tokens.last().range.end;
        self.node(ExprKind::Scoped(of.into(), name, args), range, depth)
    }

    /// `new (p) T(1, 2)`: an object at an address.
    pub(super) fn placed(&mut self) -> Parsed<Expr> {
        let start = self.next().start;
        self.expect("(")?;
        let at = self.comma()?;
        self.expect(")")?;
        let of = self.type_name()?;
        let (args, depth) = match self.tokens.peek() {
            Tok::Punct("(") => {
                self.next();
                self.arguments()?
            }
            Tok::Punct("{") => {
                self.next();
                let mut all = Vec::new();
                while !self.eat("}") {
                    all.push(self.expression()?);
                    if !self.eat(",") {
                        self.expect("}")?;
                        break;
                    }
                }
                let depth = all.iter().map(|arg| arg.depth).max().unwrap_or(0);
                (all, depth)
            }
            _ => (Vec::new(), 0),
        };
        let depth = depth.max(at.depth);
        let range = start..self.tokens.last().range.end;
        self.node(ExprKind::Placed(at.into(), of.into(), args), range, depth)
    }

    /// Whether a property of types comes next, as in `std::is_same_v<T, int>`.
    pub(super) fn names_trait(&self) -> bool {
        let word = super::words::bare(self.word());
        self.language.cpp
            && self.tokens.peek_at(1) == Tok::Punct("<")
            && (TRAITS.contains(&word.strip_suffix("_v").unwrap_or(word)) || word == LIMITS_OF_TYPE)
    }

    /// `std::numeric_limits<T>::max()`: the name of the limit, with the type.
    fn limit_of_type(&mut self) -> Parsed<Expr> {
        let start = self.next().start;
        self.expect("<")?;
        let of = self.type_name()?;
        self.close_angle()?;
        self.expect(":")?;
        self.expect(":")?;
        let name = self.next();
        if self.eat("(") {
            self.expect(")")?;
        }
        let range = start..self.tokens.last().range.end;
        self.node(ExprKind::Trait(name, vec![of]), range, 0)
    }

    /// `std::is_same_v<T, int>`, `std::is_same<T, int>::value`, `std::numeric_limits<T>::max()`
    pub(super) fn type_trait(&mut self) -> Parsed<Expr> {
        if super::words::bare(self.word()) == LIMITS_OF_TYPE {
            return self.limit_of_type();
        }
        let name = self.next();
        self.expect("<")?;
        let mut all = vec![self.type_name()?];
        while self.eat(",") {
            all.push(self.type_name()?);
        }
        self.close_angle()?;
        if !self.str(&name).ends_with("_v") {
            self.expect(":")?;
            self.expect(":")?;
            if self.word() != "value" {
                return self.unexpected("`value`");
            }
            self.next();
        }
        let range = name.start..self.tokens.last().range.end;
        self.node(ExprKind::Trait(name, all), range, 0)
    }

    /// `{1, 2}` as a value.
    pub(super) fn braced(
        &mut self,
        start: usize,
        to: Option<super::ast::TypeName>,
    ) -> Parsed<Expr> {
        let all = self.nested(Self::initial_value)?;
        let mut depth = 0;
        all.each_expr(&mut |part| depth = depth.max(part.depth));
        self.node(
            ExprKind::Braced(to.map(Box::new), all.into()),
            start..self.tokens.last().range.end,
            depth,
        )
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
