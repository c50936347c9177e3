//! Parses the expressions of the C-like dialects.

use std::ops::Range;

use super::ast::{Expr, ExprKind};
use super::groups::is_reduction;
use super::lex::{CHARACTER, Tok};
use super::parse::{Failed, Parser};
use super::ptx_forms::is_typed;
use super::refused::is_own_name;
use super::signs::{self, ASSIGNMENTS, Operator};
use super::words::{bare, type_named};
use diag::MAX_NESTING;
use program::{BinOp, Ty};

/// Library names with a number as template argument: a constant, an aligned size, a function.
const CONSTANT: &str = "n32_t";
const NUMBERED: &[&str] = &[
    CONSTANT,
    "aligned_size_t",
    "pipeline_consumer_wait_prior",
    "wait_prior",
];

impl Parser<'_, '_> {
    /// Parses any expression, with commas.
    pub(super) fn comma(&mut self) -> Result<Expr, Failed> {
        let mut left = self.expression()?;
        while self.eat(",") {
            let right = self.expression()?;
            let (range, depth) = (
                left.range.start..right.range.end,
                left.depth.max(right.depth),
            );
            left = self.node(ExprKind::Comma(left.into(), right.into()), range, depth)?;
        }
        Ok(left)
    }

    /// Parses an expression without a comma operator.
    pub(super) fn expression(&mut self) -> Result<Expr, Failed> {
        self.nested(|p| {
            let cond = p.binary(0)?;
            let assignment = match p.tokens.peek() {
                Tok::Punct("=") => Some(None),
                Tok::Punct(sign) => ASSIGNMENTS.iter().find(|a| a.0 == sign).map(|a| Some(a.1)),
                _ => None,
            };
            if let Some(op) = assignment {
                p.next();
                let value = p.expression()?;
                let (range, depth) = (
                    cond.range.start..value.range.end,
                    cond.depth.max(value.depth),
                );
                return p.node(
                    ExprKind::Assign(op, cond.into(), value.into()),
                    range,
                    depth,
                );
            }
            if !p.eat("?") {
                return Ok(cond);
            }
            if p.tokens.peek() == Tok::Punct(":") {
                return p.refuse(
                    "choices without a middle are",
                    "write the condition twice, or a variable",
                );
            }
            let then = p.comma()?;
            p.expect(":")?;
            let other = p.expression()?;
            let range = cond.range.start..other.range.end;
            let depth = cond.depth.max(then.depth).max(other.depth);
            p.node(
                ExprKind::Choice(cond.into(), then.into(), other.into()),
                range,
                depth,
            )
        })
    }

    /// Makes a tree node; reports a tree that is too deep.
    pub(super) fn node(
        &mut self,
        kind: ExprKind,
        range: Range<usize>,
        below: usize,
    ) -> Result<Expr, Failed> {
        if below >= MAX_NESTING {
            return self.fail(
                range,
                "this expression is too long",
                &format!("at most {MAX_NESTING} levels"),
            );
        }
        Ok(Expr {
            kind,
            range,
            depth: below + 1,
        })
    }

    /// Parses operators of the level `loosest` and of tighter levels. One stack frame handles all
    /// levels, so a nested expression uses little stack.
    pub(super) fn binary(&mut self, loosest: usize) -> Result<Expr, Failed> {
        let mut left = self.unary()?;
        while let Some((level, op)) = self.operator(loosest) {
            self.next();
            let right = self.binary(level + 1)?;
            let range = left.range.start..right.range.end;
            let depth = left.depth.max(right.depth);
            let (a, b) = (Box::new(left), Box::new(right));
            let kind = match op {
                Operator::Bin(op) => ExprKind::Bin(op, a, b),
                Operator::Cmp(op) => ExprKind::Cmp(op, a, b),
                Operator::And => ExprKind::Logic(true, a, b),
                Operator::Or => ExprKind::Logic(false, a, b),
            };
            left = self.node(kind, range, depth)?;
        }
        Ok(left)
    }

    /// The binary operator that comes next, with its level, if that is `loosest` or tighter.
    fn operator(&self, loosest: usize) -> Option<(usize, Operator)> {
        let Tok::Punct(sign) = self.tokens.peek() else {
            return None;
        };
        signs::binary(sign, loosest)
    }

    pub(super) fn unary(&mut self) -> Result<Expr, Failed> {
        if self.casts() {
            return self.nested(Self::cast);
        }
        if self.language.cpp && self.word() == "new" {
            if self.tokens.peek_at(1) == Tok::Punct("(") {
                return self.nested(Self::placed);
            }
            return self.refuse("memory from the heap is", "declare it in `[memory]`");
        }
        if self.word() == "sizeof" {
            return self.nested(Self::size_of);
        }
        if let Tok::Punct(sign @ ("++" | "--")) = self.tokens.peek() {
            let start = self.next().start;
            let target = self.nested(Self::unary)?;
            let range = start..target.range.end;
            return self.step(target, sign, range, true);
        }
        let Tok::Punct(sign @ ("-" | "+" | "!" | "~" | "*" | "&")) = self.tokens.peek() else {
            return self.postfix();
        };
        let start = self.next().start;
        let inner = self.nested(Self::unary)?;
        let (range, depth) = (start..inner.range.end, inner.depth);
        let inner = Box::new(inner);
        let kind = match sign {
            "-" => ExprKind::Neg(inner),
            "+" => ExprKind::Plus(inner),
            "!" => ExprKind::Not(inner),
            "~" => ExprKind::Complement(inner),
            "*" => ExprKind::Deref(inner),
            _ => ExprKind::AddressOf(inner),
        };
        self.node(kind, range, depth)
    }

    fn step(
        &mut self,
        target: Expr,
        sign: &str,
        range: Range<usize>,
        prefix: bool,
    ) -> Result<Expr, Failed> {
        let one = Expr {
            kind: ExprKind::Int(1, Ty::S32),
            range: target.range.clone(),
            depth: 1,
        };
        let op = if sign == "++" { BinOp::Add } else { BinOp::Sub };
        let depth = target.depth;
        self.node(
            ExprKind::Step {
                target: target.into(),
                one: one.into(),
                op,
                prefix,
            },
            range,
            depth,
        )
    }

    fn postfix(&mut self) -> Result<Expr, Failed> {
        let mut inner = self.primary()?;
        loop {
            if let Tok::Punct(sign @ ("++" | "--")) = self.tokens.peek() {
                let range = inner.range.start..self.next().end;
                inner = self.step(inner, sign, range, false)?;
                continue;
            }
            if self.eat("->") {
                let (range, depth) = (inner.range.clone(), inner.depth);
                inner = self.node(ExprKind::Deref(inner.into()), range, depth)?;
                inner = self.method(inner)?;
                continue;
            }
            if self.eat(".") {
                inner = self.method(inner)?;
                continue;
            }
            let called = matches!(
                inner.kind,
                ExprKind::Lambda(_)
                    | ExprKind::Deref(_)
                    | ExprKind::Index(..)
                    | ExprKind::Made(..)
                    | ExprKind::Braced(Some(_), _)
                    | ExprKind::Invoke(..)
            );
            if called && self.eat("(") {
                let (args, depth) = self.arguments()?;
                let range = inner.range.start..self.tokens.last().range.end;
                let depth = depth.max(inner.depth);
                inner = self.node(ExprKind::Invoke(inner.into(), args), range, depth)?;
                continue;
            }
            if !self.eat("[") {
                return Ok(inner);
            }
            let index = self.comma()?;
            let end = self.expect("]")?.end;
            let (range, depth) = (inner.range.start..end, inner.depth.max(index.depth));
            inner = self.node(ExprKind::Index(inner.into(), index.into()), range, depth)?;
        }
    }

    fn primary(&mut self) -> Result<Expr, Failed> {
        let range = self.tokens.range();
        match self.tokens.peek() {
            Tok::Int(value, ty) => {
                self.next();
                // A character is an `int` in C (C11, 6.4.4.4), a `char` in C++.
                let ty = if ty == CHARACTER && !self.language.cpp {
                    Ty::S32
                } else {
                    ty
                };
                self.node(ExprKind::Int(value, ty), range, 0)
            }
            Tok::Float(bits, format) => {
                self.next();
                self.node(ExprKind::Float(bits, format), range, 0)
            }
            Tok::Punct("(") => {
                self.next();
                if self.tokens.peek() == Tok::Punct("{") {
                    return self.refuse(
                        "statements in expressions are",
                        "write them before the statement",
                    );
                }
                let inner = self.comma()?;
                self.expect(")")?;
                Ok(inner)
            }
            Tok::Name if self.names_instance() => self.nested(Self::instance),
            Tok::Name if self.names_reduction() => self.nested(Self::reduction),
            Tok::Name if self.names_trait() => self.nested(Self::type_trait),
            Tok::Name if self.named_cast() => self.nested(Self::cast_by_name),
            Tok::Name if self.language.cpp && self.converts() => self.nested(Self::cast_by_call),
            Tok::Name if self.language.cpp && self.is_numbered() => self.nested(Self::numbered),
            Tok::Name if self.language.cpp && self.is_typed() => self.nested(Self::typed),
            Tok::Name if self.names_reference() => {
                let reference = self.reference()?;
                let (range, depth) = (
                    range.start..self.tokens.last().range.end,
                    reference.object.depth,
                );
                self.node(ExprKind::Refer(reference.into()), range, depth)
            }
            Tok::Name => {
                self.next();
                if self.partitions(&range) {
                    return self.partition(range);
                }
                let prefix = matches!(self.str(&range), "L" | "u" | "U" | "u8" | "R");
                let quoted = self.tokens.peek() == Tok::Str
                    || matches!(self.tokens.peek(), Tok::Int(_, CHARACTER));
                if prefix && quoted && self.tokens.range().start == range.end {
                    return self.refuse(
                        "strings and characters of other character sets are",
                        "write the number",
                    );
                }
                let cast =
                    self.tokens.peek() == Tok::Punct("<") && self.str(&range).ends_with("_cast");
                let called = self.tokens.peek() == Tok::Punct("(");
                let own = is_own_name(self.str(&range), self.language.dialect);
                if cast || (called && !own) {
                    self.refused_word(&range)?;
                }
                if !self.eat("(") {
                    return self.node(ExprKind::Name, range, 0);
                }
                let (args, depth) = match bare(self.str(&range)) {
                    "printf" => self.printed()?,
                    _ => self.arguments()?,
                };
                let whole = range.start..self.tokens.last().range.end;
                self.node(ExprKind::Call(range, args), whole, depth)
            }
            Tok::Str => self.refuse(
                "strings are",
                "leave out what prints them; a condition names registers",
            ),
            Tok::Punct("[") if self.language.cpp => self.nested(Self::lambda),
            _ => self.unexpected("an expression"),
        }
    }

    /// Whether a function object for a reduction comes next: `cg::plus<int>()`.
    fn names_reduction(&self) -> bool {
        self.language.cpp
            && self.tokens.peek_at(1) == Tok::Punct("<")
            && is_reduction(self.word())
            && !self.classes.contains(self.word())
            && !self.templates.contains(self.word())
    }

    fn reduction(&mut self) -> Result<Expr, Failed> {
        let name = self.next();
        self.expect("<")?;
        let of = self.type_name()?;
        self.close_angle()?;
        let close = if self.eat("{") { "}" } else { ")" };
        if close == ")" {
            self.expect("(")?;
        }
        self.expect(close)?;
        let range = name.start..self.tokens.last().range.end;
        self.node(
            ExprKind::Scoped(of.into(), name, Some(Vec::new())),
            range,
            0,
        )
    }

    /// Whether a library name with a number comes next.
    fn is_numbered(&self) -> bool {
        let name = self.word().rsplit("::").next().unwrap_or_default();
        NUMBERED.contains(&name) && self.tokens.peek_at(1) == Tok::Punct("<")
    }

    /// `cuda::ptx::n32_t<0>{}` is a constant; `cuda::aligned_size_t<16>(n)` is a call with the
    /// number before its arguments.
    fn numbered(&mut self) -> Result<Expr, Failed> {
        let constant = self.word().ends_with(CONSTANT);
        let name = self.next();
        self.expect("<")?;
        let number = self.primary()?;
        self.expect(">")?;
        let braced = self.eat("{");
        if !braced {
            self.expect("(")?;
        }
        if constant {
            self.expect(if braced { "}" } else { ")" })?;
            return Ok(number);
        }
        let (args, depth) = match braced {
            true => {
                let arg = self.expression()?;
                self.expect("}")?;
                let depth = arg.depth;
                (vec![arg], depth)
            }
            false => self.arguments()?,
        };
        let range = name.start..self.tokens.last().range.end;
        let depth = depth.max(number.depth);
        self.node(
            ExprKind::Call(name, std::iter::once(number).chain(args).collect()),
            range,
            depth,
        )
    }

    /// Whether a query comes next that names its result type.
    fn is_typed(&self) -> bool {
        let name = self.word().rsplit("::").next().unwrap_or_default();
        is_typed(name) && self.tokens.peek_at(1) == Tok::Punct("<")
    }

    /// `cuda::ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid_x<int>(r)`: a call, converted
    /// to the type.
    fn typed(&mut self) -> Result<Expr, Failed> {
        let name = self.next();
        self.expect("<")?;
        let start = self.tokens.range().start;
        let to = self.type_name()?;
        let word = self.str(&(start..self.tokens.last().range.end));
        let ty = type_named(word).map_or(0, |(ty, _)| ty.bits);
        if ty != 32 && word != "unsigned int" {
            return self.refuse(
                "coordinates of blocks of other types than integers of 32 bits are",
                "write `int`",
            );
        }
        self.expect(">")?;
        self.expect("(")?;
        let (args, depth) = self.arguments()?;
        let range = name.start..self.tokens.last().range.end;
        let call = self.node(ExprKind::Call(name, args), range.clone(), depth)?;
        self.node(ExprKind::Cast(to.into(), call.into()), range, depth + 1)
    }

    /// The arguments of `printf` after its format: integers and addresses.
    fn printed(&mut self) -> Result<(Vec<Expr>, usize), Failed> {
        let start = self.tokens.range();
        let mut format = String::new();
        if self.tokens.peek() != Tok::Str {
            return self.refuse(
                "`printf` formats other than strings are",
                "write the format as a string",
            );
        }
        while let Some(text) = self.string() {
            format.push_str(self.str(&text));
        }
        let range = start.start..self.tokens.last().range.end;
        let mut wanted = 0;
        for conversion in format.replace("%%", "").split('%').skip(1) {
            let of = conversion
                .trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #.hlzjt".contains(c));
            if !of.starts_with(['d', 'i', 'u', 'x', 'X', 'o', 'c', 'p', 'f', 'e', 'g']) {
                let message = "only numbers and addresses are printed here";
                return self.fail(
                    range,
                    message,
                    "`%d`, `%u`, `%x`, `%c`, `%f` and `%p`, with lengths",
                );
            }
            wanted += 1;
        }
        let (args, depth) = if self.eat(",") {
            self.arguments()?
        } else {
            (Vec::new(), 0)
        };
        if args.is_empty() {
            self.expect(")")?;
        }
        if wanted != args.len() {
            let message = format!("values in the format: {wanted}, given: {}", args.len());
            return self.fail(range, message, "one value for each `%`");
        }
        Ok((args, depth))
    }

    /// The arguments after the opening parenthesis, and the depth of the deepest.
    pub(super) fn arguments(&mut self) -> Result<(Vec<Expr>, usize), Failed> {
        let mut args = Vec::new();
        let mut depth = 0;
        if self.eat(")") {
            return Ok((args, depth));
        }
        loop {
            let arg = self.expression()?;
            depth = arg.depth.max(depth);
            args.push(arg);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok((args, depth))
    }
}
