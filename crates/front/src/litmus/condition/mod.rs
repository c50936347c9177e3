//! Propositions over final states: syntax, resolution against a program, printing.
//!
//! ```text
//! prop  := prop '\/' prop | prop '/\' prop | '~' prop | '(' prop ')' | 'true' | 'false' | value cmp value
//! cmp   := '==' | '=' | '!=' | '<' | '<=' | '>' | '>='
//! value := thread ':' register | [thread ':'] location ['[' n ']'] | '[' location ['[' n ']'] ']'
//!        | '&' location ['[' n ']'] | integer
//! ```
//! `||`, `&&`, `!` and `not` may be written for `\/`, `/\` and `~`. `/\` binds tighter than `\/`. A thread is its name,
//! `P1` or `1`; `P0:x` with a location is the copy of `x` that P0 sees.
//!
//! # Invariants
//! - Every name is resolved; a proposition never names a register, thread or element that does not exist.
//! - Nesting is limited to [`MAX_DEPTH`], so no later recursion over a proposition can overflow the stack.
//! - A comparison is carried out in the type of the observable it is about; between observables of different types,
//!   on the plain values.

mod lex;
mod resolve;
#[cfg(test)]
mod tests;

pub use program::litmus::{show, show_observable};
use resolve::Named;
pub(super) use resolve::{Resolver, Unknown};

use diag::{Diagnostic, MappedText, Sink, SourceFile};
use lex::{Token, TokenKind, lex};
use program::litmus::{Atom, Observable, Prop};
use program::{CmpOp, Ty};

/// How deeply parentheses and negations may nest.
pub const MAX_DEPTH: usize = 500;

/// Parses a proposition. `None`: a diagnostic was reported.
pub(super) fn parse(text: &MappedText, resolver: &mut Resolver<'_>, sink: &mut Sink) -> Option<Prop> {
    let tokens = lex(text.as_str());
    let errors = sink.errors();
    let mut parser = Parser { text, tokens: &tokens, at: 0, resolver, sink };
    let prop = parser.disjunction(0)?;
    parser.finish("`/\\`, `\\/` or the end of the proposition")?;
    (sink.errors() == errors).then_some(prop)
}

/// Reads a proposition about the outcomes of a test that was read already, such as one given on the command line.
///
/// # Errors
/// Everything that is wrong with the text, or with the names in it.
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

/// Parses one observable: what `observe` lists. `None`: a diagnostic was reported.
pub(super) fn parse_observable(
    text: &MappedText,
    resolver: &mut Resolver<'_>,
    sink: &mut Sink,
) -> Option<Observable> {
    let tokens = lex(text.as_str());
    let errors = sink.errors();
    let mut parser = Parser { text, tokens: &tokens, at: 0, resolver, sink };
    let (atom, _) = parser.value()?;
    parser.finish("the end of the observable")?;
    match atom {
        Atom::Observable(o) => (sink.errors() == errors).then_some(o),
        _ => {
            let span = text.span(0..text.as_str().len());
            sink.error("not-observable", span, "only registers and locations can be observed", |d| {
                d.label("expected something like `P1:r0` or `x`")
            });
            None
        }
    }
}

struct Parser<'a, 'r, 'p> {
    text: &'a MappedText,
    tokens: &'a [Token],
    at: usize,
    resolver: &'r mut Resolver<'p>,
    sink: &'a mut Sink,
}

impl Parser<'_, '_, '_> {
    fn peek(&self) -> TokenKind {
        self.tokens[self.at].kind
    }

    fn next_is(&self, offset: usize, kind: TokenKind) -> bool {
        self.tokens.get(self.at + offset).is_some_and(|t| t.kind == kind)
    }

    fn word(&self) -> &str {
        &self.text.as_str()[self.tokens[self.at].range.clone()]
    }

    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.peek() == kind;
        if found {
            self.at += 1;
        }
        found
    }

    fn fail<T>(&mut self, expected: &str) -> Option<T> {
        let range = self.tokens[self.at].range.clone();
        let found =
            if self.peek() == TokenKind::End { "the end".to_string() } else { format!("`{}`", self.word()) };
        let message = format!("expected {expected}, found {found}");
        self.sink.error("condition-syntax", self.text.span(range), message, |d| {
            d.label(format!("expected {expected}"))
        });
        None
    }

    fn finish(&mut self, expected: &str) -> Option<()> {
        if self.peek() == TokenKind::End { Some(()) } else { self.fail(expected) }
    }

    fn disjunction(&mut self, depth: usize) -> Option<Prop> {
        let mut parts = vec![self.conjunction(depth)?];
        while self.eat(TokenKind::Or) {
            parts.push(self.conjunction(depth)?);
        }
        Some(if parts.len() == 1 { parts.remove(0) } else { Prop::Or(parts) })
    }

    fn conjunction(&mut self, depth: usize) -> Option<Prop> {
        let mut parts = vec![self.unary(depth)?];
        while self.eat(TokenKind::And) {
            parts.push(self.unary(depth)?);
        }
        Some(if parts.len() == 1 { parts.remove(0) } else { Prop::And(parts) })
    }

    fn unary(&mut self, depth: usize) -> Option<Prop> {
        if depth > MAX_DEPTH {
            let span = self.text.span(self.tokens[self.at].range.clone());
            let message = format!("a condition nests at most {MAX_DEPTH} deep");
            self.sink.error("nesting-too-deep", span, message, |d| d.label("too deep here"));
            return None;
        }
        match self.peek() {
            TokenKind::Not => {
                self.at += 1;
                Some(Prop::Not(Box::new(self.unary(depth + 1)?)))
            }
            TokenKind::Open => {
                self.at += 1;
                let inner = self.disjunction(depth + 1)?;
                if !self.eat(TokenKind::Close) {
                    return self.fail("`)`");
                }
                Some(inner)
            }
            TokenKind::Word if self.word() == "true" => {
                self.at += 1;
                Some(Prop::And(Vec::new()))
            }
            TokenKind::Word if self.word() == "false" => {
                self.at += 1;
                Some(Prop::Or(Vec::new()))
            }
            _ => self.comparison(),
        }
    }

    fn comparison(&mut self) -> Option<Prop> {
        let (a, ta) = self.value()?;
        let TokenKind::Cmp(op) = self.peek() else { return self.fail("a comparison such as `==`") };
        self.at += 1;
        let (b, tb) = self.value()?;
        let ty = match (ta, tb) {
            (Some(a), Some(b)) if a == b => a,
            (Some(_), Some(_)) | (None, None) => Ty::WORD,
            (Some(ty), None) | (None, Some(ty)) => ty,
        };
        Some(Prop::Cmp(op, ty, a, b))
    }

    fn integer(&mut self) -> Option<i64> {
        let range = self.tokens[self.at].range.clone();
        let digits = self.word();
        let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        };
        if value.is_none() {
            let message = format!("`{digits}` is not an integer of at most 64 bits");
            self.sink.error("bad-number", self.text.span(range), message, |d| d.label("expected an integer"));
            return None;
        }
        self.at += 1;
        value.map(|v| v as i64)
    }

    /// A value and its type; `None` for constants and addresses.
    fn value(&mut self) -> Option<(Atom, Option<Ty>)> {
        match self.peek() {
            TokenKind::Minus if self.next_is(1, TokenKind::Int) => {
                self.at += 1;
                Some((Atom::Const(self.integer()?.wrapping_neg()), None))
            }
            TokenKind::Int if !self.next_is(1, TokenKind::Colon) => Some((Atom::Const(self.integer()?), None)),
            TokenKind::Int | TokenKind::Word if self.next_is(1, TokenKind::Colon) => {
                let range = self.tokens[self.at].range.clone();
                let thread = self.resolver.thread(self.text, range, self.sink);
                self.at += 2;
                if self.peek() != TokenKind::Word {
                    return self.fail("a register or a location");
                }
                let named = self.named()?;
                let Some(thread) = thread else { return Some((Atom::Const(0), None)) };
                let found = self.resolver.of_thread(thread, self.text, named, self.sink);
                Some(found.map_or((Atom::Const(0), None), |(o, ty)| (Atom::Observable(o), Some(ty))))
            }
            TokenKind::Word => self.memory(),
            TokenKind::OpenBracket => {
                self.at += 1;
                let value = self.memory()?;
                if !self.eat(TokenKind::CloseBracket) {
                    return self.fail("`]`");
                }
                Some(value)
            }
            TokenKind::Ampersand => {
                self.at += 1;
                if self.peek() != TokenKind::Word {
                    return self.fail("a location");
                }
                let named = self.named()?;
                let found = self.resolver.element(self.text, &named, self.sink);
                let atom = found.map_or(Atom::Const(0), |(loc, index)| Atom::Address { loc, index });
                Some((atom, None))
            }
            _ => self.fail("a register such as `P0:r0`, a location or an integer"),
        }
    }

    fn memory(&mut self) -> Option<(Atom, Option<Ty>)> {
        if self.peek() != TokenKind::Word {
            return self.fail("a location");
        }
        let named = self.named()?;
        let found = self.resolver.memory(None, self.text, named, self.sink);
        Some(found.map_or((Atom::Const(0), None), |(o, ty)| (Atom::Observable(o), Some(ty))))
    }

    /// A name, and what stands behind it for a part of what it names: `[1]`, `.data`, `[1].at[0]`.
    fn named(&mut self) -> Option<Named> {
        let range = self.tokens[self.at].range.clone();
        self.at += 1;
        let mut suffix = String::new();
        loop {
            let part = self.tokens[self.at].range.clone();
            if self.eat(TokenKind::OpenBracket) {
                if self.peek() != TokenKind::Int {
                    return self.fail("an element number");
                }
                suffix.push_str(&format!("[{}]", self.integer()?));
                if !self.eat(TokenKind::CloseBracket) {
                    return self.fail("`]`");
                }
            } else if self.peek() == TokenKind::Word && self.text.as_str()[part.clone()].starts_with('.') {
                suffix.push_str(&self.text.as_str()[part]);
                self.at += 1;
            } else {
                return Some(Named { range, suffix });
            }
        }
    }
}

/// Used by the lexer's table of operators.
const fn cmp(op: CmpOp) -> TokenKind {
    TokenKind::Cmp(op)
}
