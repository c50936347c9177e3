//! Propositions over final states: syntax, resolution against a program, printing.
//!
//! ```text
//! prop  := prop '\/' prop | prop '/\' prop | '~' prop | '(' prop ')' | 'true' | 'false'
//!        | sum cmp sum | value cmp number
//! cmp   := '==' | '=' | '!=' | '<' | '<=' | '>' | '>='
//! sum   := sum '+' sum | sum '-' sum | sum '*' sum | '-' sum | '(' sum ')' | value
//! value := thread ':' register | [thread ':'] location ['[' n ']'] | '[' location ['[' n ']'] ']'
//!        | '&' location ['[' n ']'] | integer
//! number := ['-'] digits '.' [digits] [exponent] | ['-'] digits exponent
//! ```
//! `||`, `&&`, `!` and `not` may be written for `\/`, `/\` and `~`. `/\` binds tighter than `\/`,
//! and `*` tighter than `+` and `-`. A thread is given by its name, `P1` or `1`. `P0:x` with a
//! location is the copy of `x` that P0 sees.
//!
//! # Invariants
//! - Every name is resolved; a proposition never names a register, thread or element that does not
//!   exist.
//! - Nesting is limited to [`MAX_NESTING`], so no later recursion over a proposition can overflow
//!   the stack.
//! - A comparison with a floating-point number, such as `1.5`, reads the other side as the bits of
//!   a 32-bit or 64-bit number ([`numbers`]).
//! - A comparison uses the type of its observable. Observables of different types are compared as
//!   plain values.
//! - Sums use plain values as signed 64-bit integers. They are unsigned if an observable in the
//!   comparison is unsigned with 64 bits.

mod lex;
mod numbers;
mod resolve;
#[cfg(test)]
mod tests;

pub use program::litmus::{show, show_observable};
use resolve::NamePath;
pub(super) use resolve::{Resolver, Unknown};

use std::ops::Range;

use diag::{Cursor, Diagnostic, MAX_NESTING, MappedText, Sink, SourceFile};
use lex::{TokenKind, lex};
use program::litmus::{Atom, ConditionTerm, Observable, Prop};
use program::{BinOp, CmpOp, Ty};

/// Parses a proposition. `None`: a diagnostic was reported.
pub(super) fn parse(
    text: &MappedText,
    resolver: &mut Resolver<'_>,
    sink: &mut Sink,
) -> Option<Prop> {
    refuse_quantifier(text, sink)?;
    let errors = sink.errors();
    let mut parser = PropParser {
        text,
        tokens: Cursor::new(lex(text.as_str())),
        resolver,
        sink,
    };
    let prop = parser.disjunction()?;
    parser.finish("`/\\`, `\\/` or the end of the proposition")?;
    (sink.errors() == errors).then_some(prop)
}

/// Refuses a quantifier in front of a proposition, as `.litmus` files have it.
fn refuse_quantifier(text: &MappedText, sink: &mut Sink) -> Option<()> {
    let written = text.as_str();
    let start = written.len() - written.trim_start().len();
    let quantifier = ["exists", "~exists", "forall"].into_iter().find(|word| {
        // A location may have this name: a comparison or a field follows it.
        let rest = written[start..].strip_prefix(word).unwrap_or_default();
        let is_word = rest.starts_with(|c: char| c == '(' || c.is_whitespace());
        is_word
            && rest
                .trim_start()
                .starts_with(|c: char| c == '(' || c.is_alphanumeric())
    });
    let Some(quantifier) = quantifier else {
        return Some(());
    };
    sink.error(
        "condition-syntax",
        text.span(start..start + quantifier.len()),
        "the condition is the proposition alone",
        |d| {
            d.label(format!(
                "expected `quantifier = \"{quantifier}\"` as a key of its own"
            ))
        },
    );
    None
}

/// Parses a proposition about the outcomes of a test that was already read, such as one from the
/// command line.
///
/// # Errors
/// All mistakes in the text, unknown names included.
pub fn parse_prop(test: &program::litmus::LitmusTest, text: &str) -> Result<Prop, Vec<Diagnostic>> {
    let mut sink = Sink::new(&SourceFile::new("<outcome>", text));
    let mut program = test.program.clone();
    let mut resolver = Resolver::new(&mut program, Unknown::Reject);
    let prop = parse(&MappedText::verbatim(text, 0), &mut resolver, &mut sink);
    match (prop, sink.into_diagnostics()) {
        (Some(prop), found) if found.is_empty() => Ok(prop),
        (_, found) => Err(found),
    }
}

/// Parses one observable, an item of `observe`. `None`: a diagnostic was reported.
pub(super) fn parse_observable(
    text: &MappedText,
    resolver: &mut Resolver<'_>,
    sink: &mut Sink,
) -> Option<Observable> {
    let errors = sink.errors();
    let mut parser = PropParser {
        text,
        tokens: Cursor::new(lex(text.as_str())),
        resolver,
        sink,
    };
    let (atom, _) = parser.value()?;
    parser.finish("the end of the observable")?;
    match atom {
        Atom::Observable(o) => (sink.errors() == errors).then_some(o),
        _ => {
            let span = text.span(0..text.as_str().len());
            sink.error(
                "not-observable",
                span,
                "only registers and locations can be observed",
                |d| d.label("expected something like `P1:r0` or `x`"),
            );
            None
        }
    }
}

/// A sum, and the types of the observables in it.
type Sum = (ConditionTerm, Vec<Ty>);

struct PropParser<'a, 'r, 'p> {
    text: &'a MappedText,
    tokens: Cursor<TokenKind>,
    resolver: &'r mut Resolver<'p>,
    sink: &'a mut Sink,
}

impl PropParser<'_, '_, '_> {
    fn word(&self) -> &str {
        &self.text.as_str()[self.tokens.range()]
    }

    fn fail<T>(&mut self, expected: &str) -> Option<T> {
        let range = self.tokens.range();
        let found = if self.tokens.peek() == TokenKind::End {
            "the end".to_string()
        } else {
            format!("`{}`", self.word())
        };
        let message = format!("expected {expected}, found {found}");
        self.sink
            .error("condition-syntax", self.text.span(range), message, |d| {
                d.label(format!("expected {expected}"))
            });
        None
    }

    fn finish(&mut self, expected: &str) -> Option<()> {
        if self.tokens.peek() == TokenKind::End {
            Some(())
        } else {
            self.fail(expected)
        }
    }

    fn disjunction(&mut self) -> Option<Prop> {
        let mut parts = vec![self.conjunction()?];
        while self.tokens.eat(TokenKind::Or) {
            parts.push(self.conjunction()?);
        }
        Some(if parts.len() == 1 {
            parts.remove(0)
        } else {
            Prop::Or(parts)
        })
    }

    fn conjunction(&mut self) -> Option<Prop> {
        let mut parts = vec![self.unary()?];
        while self.tokens.eat(TokenKind::And) {
            parts.push(self.unary()?);
        }
        Some(if parts.len() == 1 {
            parts.remove(0)
        } else {
            Prop::And(parts)
        })
    }

    fn nested<T>(&mut self, inner: fn(&mut Self) -> Option<T>) -> Option<T> {
        if !self.tokens.descend() {
            return self.too_deep();
        }
        let prop = inner(self);
        self.tokens.ascend();
        prop
    }

    fn too_deep<T>(&mut self) -> Option<T> {
        let span = self.text.span(self.tokens.range());
        let message = format!("a condition nests at most {MAX_NESTING} deep");
        self.sink.error("nesting-too-deep", span, message, |d| {
            d.label("too deep here")
        });
        None
    }

    fn unary(&mut self) -> Option<Prop> {
        match self.tokens.peek() {
            TokenKind::Not => {
                self.tokens.advance();
                Some(Prop::Not(Box::new(self.nested(Self::unary)?)))
            }
            TokenKind::Open if self.opens_prop() => {
                self.tokens.advance();
                let inner = self.nested(Self::disjunction)?;
                if !self.tokens.eat(TokenKind::Close) {
                    return self.fail("`)`");
                }
                Some(inner)
            }
            TokenKind::Word if self.word() == "true" => {
                self.tokens.advance();
                Some(Prop::And(Vec::new()))
            }
            TokenKind::Word if self.word() == "false" => {
                self.tokens.advance();
                Some(Prop::Or(Vec::new()))
            }
            _ => self.comparison(),
        }
    }

    /// Whether the parentheses that open here enclose a proposition, rather than a sum.
    fn opens_prop(&self) -> bool {
        let mut depth = 0;
        for token in self.tokens.rest() {
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close if depth == 1 => return false,
                TokenKind::Close => depth -= 1,
                TokenKind::Cmp(_) | TokenKind::And | TokenKind::Or | TokenKind::Not => return true,
                TokenKind::Word
                    if ["true", "false"].contains(&&self.text.as_str()[token.range.clone()]) =>
                {
                    return true;
                }
                _ => {}
            }
        }
        true
    }

    fn comparison(&mut self) -> Option<Prop> {
        // Within a comparison, each operator counts as a nesting level.
        let (depth, start) = (self.tokens.depth(), self.tokens.range().start);
        if let Some(number) = self.number_of_floating_point() {
            let number = number?;
            let op = self.comparison_sign()?;
            let behind = self.tokens.range().start;
            let (side, types) = self.sum()?;
            self.tokens.ascend_to(depth);
            return self.with_number(
                numbers::mirrored(op),
                (side, types),
                behind..self.tokens.last().range.end,
                number,
            );
        }
        let (a, mut types) = self.sum()?;
        let between = self.tokens.last().range.end;
        let op = self.comparison_sign()?;
        if let Some(number) = self.number_of_floating_point() {
            self.tokens.ascend_to(depth);
            return self.with_number(op, (a, types), start..between, number?);
        }
        let behind = self.tokens.range().start;
        let (b, more) = self.sum()?;
        let computes = [&a, &b]
            .iter()
            .any(|side| matches!(side, ConditionTerm::Of(..)));
        if computes {
            self.number(start..between, &a);
            self.number(behind..self.tokens.last().range.end, &b);
        }
        self.tokens.ascend_to(depth);
        types.extend(more);
        let ty = match &types[..] {
            _ if computes && types.contains(&Ty::U64) => Ty::U64,
            [first, rest @ ..] if !computes && rest.iter().all(|ty| ty == first) => *first,
            _ => Ty::WORD,
        };
        Some(Prop::Cmp(op, ty, a, b))
    }

    fn comparison_sign(&mut self) -> Option<CmpOp> {
        let TokenKind::Cmp(op) = self.tokens.peek() else {
            return self.fail("a comparison such as `==`");
        };
        self.tokens.advance();
        Some(op)
    }

    /// A number with a fraction or an exponent, if it is next; `Some(None)`: an error was reported.
    fn number_of_floating_point(&mut self) -> Option<Option<f64>> {
        let minus = usize::from(self.tokens.peek() == TokenKind::Minus);
        let token = self.tokens.token_at(minus).clone();
        let digits = &self.text.as_str()[token.range.clone()];
        if token.kind != TokenKind::Int
            || digits.starts_with("0x")
            || !digits.contains(['.', 'e', 'E'])
        {
            return None;
        }
        let number = digits
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite());
        if number.is_none() {
            let message = format!("`{digits}` is not a number");
            self.sink
                .error("bad-number", self.text.span(token.range), message, |d| {
                    d.label("expected one such as `1.5` or `2e-3`")
                });
        }
        for _ in 0..=minus {
            self.tokens.advance();
        }
        Some(number.map(|number| if minus > 0 { -number } else { number }))
    }

    /// Compares the sum at `place` with a floating-point number.
    fn with_number(
        &mut self,
        op: CmpOp,
        (side, types): Sum,
        place: Range<usize>,
        number: f64,
    ) -> Option<Prop> {
        let format = types.first().and_then(|ty| numbers::format(ty.bits));
        let bits = format.and_then(|format| numbers::nearest(format, number));
        if let (ConditionTerm::Atom(Atom::Observable(of)), Some(format), Some(bits)) =
            (&side, format, bits)
        {
            return Some(numbers::compared(op, format, *of, bits));
        }
        // An unknown name has no type and was already reported.
        let message = match types.first() {
            Some(ty) if format.is_some() && bits.is_none() => {
                format!("no number of {} bits is as large as {number:e}", ty.bits)
            }
            Some(ty) if matches!(side, ConditionTerm::Atom(_)) => {
                format!("{} bits have several floating-point formats", ty.bits)
            }
            _ => "a comparison of a floating-point number with another kind of value".to_owned(),
        };
        self.sink
            .error("not-a-number", self.text.span(place), message, |d| {
                d.label("expected a register or a location of 32 or 64 bits")
                    .help("of 16 bits, write the bits: `0x3e00`")
            });
        None
    }

    /// A sum of products.
    fn sum(&mut self) -> Option<Sum> {
        self.operations(
            &[
                (TokenKind::Plus, BinOp::Add),
                (TokenKind::Minus, BinOp::Sub),
            ],
            |parser| parser.operations(&[(TokenKind::Star, BinOp::Mul)], Self::factor),
        )
    }

    fn operations(
        &mut self,
        operators: &[(TokenKind, BinOp)],
        operand: fn(&mut Self) -> Option<Sum>,
    ) -> Option<Sum> {
        let start = self.tokens.range().start;
        let (mut side, mut types) = operand(self)?;
        while let Some(&(_, op)) = operators
            .iter()
            .find(|operator| operator.0 == self.tokens.peek())
        {
            if !self.tokens.descend() {
                return self.too_deep();
            }
            self.number(start..self.tokens.last().range.end, &side);
            self.tokens.advance();
            let behind = self.tokens.range().start;
            let (other, more) = operand(self)?;
            self.number(behind..self.tokens.last().range.end, &other);
            side = ConditionTerm::Of(op, side.into(), other.into());
            types.extend(more);
        }
        Some((side, types))
    }

    /// Reports an address used as a number.
    fn number(&mut self, place: Range<usize>, side: &ConditionTerm) {
        if let ConditionTerm::Atom(Atom::Address { .. }) = side {
            let span = self.text.span(place);
            self.sink.error(
                "not-a-number",
                span,
                "conditions cannot compute with an address",
                |d| d.label("expected a register, a location or an integer"),
            );
        }
    }

    fn factor(&mut self) -> Option<Sum> {
        match self.tokens.peek() {
            TokenKind::Open => {
                self.tokens.advance();
                let inner = self.nested(Self::sum)?;
                if !self.tokens.eat(TokenKind::Close) {
                    return self.fail("`)`");
                }
                Some(inner)
            }
            TokenKind::Minus if self.tokens.peek_at(1) != TokenKind::Int => {
                self.tokens.advance();
                let start = self.tokens.range().start;
                let (side, types) = self.nested(Self::factor)?;
                self.number(start..self.tokens.last().range.end, &side);
                Some((
                    ConditionTerm::Of(
                        BinOp::Sub,
                        ConditionTerm::Atom(Atom::Const(0)).into(),
                        side.into(),
                    ),
                    types,
                ))
            }
            _ => self
                .value()
                .map(|(atom, ty)| (atom.into(), ty.into_iter().collect())),
        }
    }

    fn integer(&mut self) -> Option<i64> {
        let range = self.tokens.range();
        let digits = self.word();
        let value = match digits
            .strip_prefix("0x")
            .or_else(|| digits.strip_prefix("0X"))
        {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        };
        if value.is_none() {
            let message = format!("`{digits}` is not an integer of at most 64 bits");
            let is_number = digits.parse::<f64>().is_ok();
            self.sink
                .error("bad-number", self.text.span(range), message, |d| {
                    let d = d.label("expected an integer");
                    if is_number {
                        d.help(
                            "a number of floating point is compared with a register or a \
                             location alone",
                        )
                    } else {
                        d
                    }
                });
            return None;
        }
        self.tokens.advance();
        value.map(|v| v as i64)
    }

    /// Parses a value; its type is `None` for constants and addresses.
    fn value(&mut self) -> Option<(Atom, Option<Ty>)> {
        match self.tokens.peek() {
            TokenKind::Minus if self.tokens.peek_at(1) == TokenKind::Int => {
                self.tokens.advance();
                Some((Atom::Const(self.integer()?.wrapping_neg()), None))
            }
            TokenKind::Int if self.tokens.peek_at(1) != TokenKind::Colon => {
                Some((Atom::Const(self.integer()?), None))
            }
            TokenKind::Int | TokenKind::Word if self.tokens.peek_at(1) == TokenKind::Colon => {
                let range = self.tokens.range();
                let thread = self.resolver.thread(self.text, range, self.sink);
                self.tokens.advance();
                self.tokens.advance();
                if self.tokens.peek() != TokenKind::Word {
                    return self.fail("a register or a location");
                }
                let named = self.named()?;
                let Some(thread) = thread else {
                    return Some((Atom::Const(0), None));
                };
                let found = self.resolver.of_thread(thread, self.text, named, self.sink);
                Some(found.map_or((Atom::Const(0), None), |(o, ty)| {
                    (Atom::Observable(o), Some(ty))
                }))
            }
            TokenKind::Word => self.memory(),
            TokenKind::OpenBracket => {
                self.tokens.advance();
                let value = self.memory()?;
                if !self.tokens.eat(TokenKind::CloseBracket) {
                    return self.fail("`]`");
                }
                Some(value)
            }
            TokenKind::Ampersand => {
                self.tokens.advance();
                if self.tokens.peek() != TokenKind::Word {
                    return self.fail("a location");
                }
                let named = self.named()?;
                let found = self.resolver.element(self.text, &named, self.sink);
                let atom =
                    found.map_or(Atom::Const(0), |(loc, index)| Atom::Address { loc, index });
                Some((atom, None))
            }
            _ => self.fail("a register such as `P0:r0`, a location or an integer"),
        }
    }

    fn memory(&mut self) -> Option<(Atom, Option<Ty>)> {
        if self.tokens.peek() != TokenKind::Word {
            return self.fail("a location");
        }
        let named = self.named()?;
        let found = self.resolver.memory(None, self.text, named, self.sink);
        Some(found.map_or((Atom::Const(0), None), |(o, ty)| {
            (Atom::Observable(o), Some(ty))
        }))
    }

    /// Parses a name and the suffix that selects a part of it: `[1]`, `.data`, `[1].at[0]`.
    fn named(&mut self) -> Option<NamePath> {
        let range = self.tokens.range();
        self.tokens.advance();
        let mut suffix = String::new();
        loop {
            let part = self.tokens.range();
            if self.tokens.eat(TokenKind::OpenBracket) {
                if self.tokens.peek() != TokenKind::Int {
                    return self.fail("an element number");
                }
                suffix.push_str(&format!("[{}]", self.integer()?));
                if !self.tokens.eat(TokenKind::CloseBracket) {
                    return self.fail("`]`");
                }
            } else if self.tokens.peek() == TokenKind::Word
                && self.text.as_str()[part.clone()].starts_with('.')
            {
                suffix.push_str(&self.text.as_str()[part]);
                self.tokens.advance();
            } else {
                return Some(NamePath { range, suffix });
            }
        }
    }
}

/// A constructor for the lexer's table of operators.
const fn cmp(op: CmpOp) -> TokenKind {
    TokenKind::Cmp(op)
}
