//! Parses calls of the runtime.

use std::ops::Range;

use super::ast::{Arg, HostCall, StmtKind};
use super::host::{is_call, is_value};
use super::lex::Tok;
use super::parse::{Parsed, Parser};
use super::ptx_forms::is_instruction;

/// Types of the variables that runtime calls use. Their declaration has no effect.
const TYPES: &[&str] = &["cl_event", "cudaEvent_t", "clk_event_t", "queue_t"];

/// Whether a statement of this module begins here.
pub(super) fn begins(p: &Parser<'_, '_>) -> bool {
    let word = p.word();
    fn is_host_call(word: &str) -> bool {
        is_call(word) && !is_value(word) && !is_instruction(word)
    }
    let assigned = p.tokens.peek_at(1) == Tok::Punct("=") && is_host_call(p.word_at(2));
    let launch = p.tokens.peek_at(1) == Tok::Punct("<<") && p.tokens.peek_at(2) == Tok::Punct("<");
    TYPES.contains(&word)
        || (is_host_call(word) && p.tokens.peek_at(1) == Tok::Punct("("))
        || assigned
        || launch
}

impl Parser<'_, '_> {
    /// Parses a call of the runtime, without the `;`.
    pub(super) fn host_call(&mut self) -> Parsed<StmtKind> {
        let declared = TYPES.contains(&self.word());
        if declared {
            self.next();
        }
        let mut call = HostCall {
            result: None,
            name: None,
            args: Vec::new(),
            launch: false,
        };
        if declared || self.tokens.peek_at(1) == Tok::Punct("=") {
            call.result = Some(self.host_name("the name of an event")?);
            while declared && self.eat(",") {
                self.host_name("the name of an event")?;
            }
            if !self.eat("=") {
                return Ok(StmtKind::Host(Box::new(call)));
            }
        }
        call.name = Some(self.host_name("a function of the runtime")?);
        if self.eat("<<") {
            self.expect("<")?;
            call.launch = true;
            call.args = self.host_args(">>")?;
            self.expect(">")?;
            self.expect("(")?;
            // A kernel names its memory itself, so a launch has no arguments.
            self.expect(")")?;
        } else {
            self.expect("(")?;
            call.args = self.host_args(")")?;
        }
        Ok(StmtKind::Host(Box::new(call)))
    }

    fn host_name(&mut self, expected: &str) -> Parsed<Range<usize>> {
        if self.tokens.peek() == Tok::Name {
            Ok(self.next())
        } else {
            self.unexpected(expected)
        }
    }

    /// Parses operands up to a closing token.
    fn host_args(&mut self, close: &str) -> Parsed<Vec<Arg>> {
        let mut all = Vec::new();
        if self.eat(close) {
            return Ok(all);
        }
        loop {
            all.push(self.nested(Self::host_arg)?);
            if self.eat(close) {
                return Ok(all);
            }
            if !self.eat(",") {
                return self.unexpected(&format!("`,` or `{close}`"));
            }
        }
    }

    fn host_arg(&mut self) -> Parsed<Arg> {
        let start = self.tokens.range().start;
        if self.eat("&") {
            let name = self.host_name("a name")?;
            if self.eat("[") {
                let Tok::Int(n, _) = self.tokens.peek() else {
                    return self.unexpected("the number of an element");
                };
                self.next();
                self.expect("]")?;
                let range = start..self.tokens.last().range.end;
                return Ok(Arg::Element(name, n as u32, range));
            }
            return Ok(Arg::Address(start..self.tokens.last().range.end));
        }
        if self.eat("{") {
            let all = self.host_args("}")?;
            return Ok(Arg::List(all, start..self.tokens.last().range.end));
        }
        if self.eat("^") {
            return self.host_block_syntax(start);
        }
        let minus = self.eat("-");
        match (self.tokens.peek(), self.word()) {
            (Tok::Int(n, _), _) => {
                self.next();
                let n = if minus { n.wrapping_neg() } else { n };
                if !self.eat("*") {
                    return Ok(Arg::Int(n, start..self.tokens.last().range.end));
                }
                if self.word() != "sizeof" {
                    return self.unexpected("`sizeof`");
                }
                self.host_size(n)
            }
            _ if minus => self.unexpected("a number"),
            (_, "sizeof") => self.host_size(1),
            (_, "get_default_queue") => {
                let name = self.next();
                self.expect("(")?;
                self.expect(")")?;
                Ok(Arg::Names(vec![name]))
            }
            (_, word @ ("ndrange_1D" | "ndrange_2D" | "ndrange_3D")) => {
                let dimensions = usize::from(word.as_bytes()[8] - b'0');
                self.next();
                self.expect("(")?;
                let all = self.host_args(")")?;
                Ok(Arg::Range(
                    dimensions,
                    all,
                    start..self.tokens.last().range.end,
                ))
            }
            (_, "dim3") => {
                self.next();
                self.expect("(")?;
                let all = self.host_args(")")?;
                Ok(Arg::List(all, start..self.tokens.last().range.end))
            }
            (Tok::Name, _) => {
                let mut all = vec![self.next()];
                while self.eat("|") {
                    all.push(self.host_name("a flag")?);
                }
                Ok(Arg::Names(all))
            }
            _ => self.unexpected("a name, `&` and a name, a number, or a list in `{}`"),
        }
    }

    /// `{ child(); }` or `(local void *p){ child(p); }`, behind the `^` at `start`. A kernel names
    /// its other memory itself.
    fn host_block_syntax(&mut self, start: usize) -> Parsed<Arg> {
        let mut locals = Vec::new();
        if self.eat("(") {
            while matches!(self.word(), "local" | "__local") {
                self.next();
                self.host_name("`void`")?;
                self.expect("*")?;
                locals.push(self.host_name("the name of local memory")?);
                if !self.eat(",") {
                    break;
                }
            }
            if locals.is_empty() {
                self.host_name("`void`, or `local void *` and a name")?;
            }
            self.expect(")")?;
        }
        self.expect("{")?;
        let kernel = self.host_name("the name of a kernel")?;
        self.expect("(")?;
        for (n, local) in locals.iter().enumerate() {
            if n > 0 {
                self.expect(",")?;
            }
            let given = self.host_name("the parameters of the block, in their order")?;
            if self.str(&given) != self.str(local) {
                return self.unexpected("the parameters of the block, in their order");
            }
        }
        for token in [")", ";", "}"] {
            self.expect(token)?;
        }
        let range = start..self.tokens.last().range.end;
        Ok(Arg::Block(kernel, locals, range))
    }

    /// `sizeof(x)`
    fn host_size(&mut self, factor: i64) -> Parsed<Arg> {
        self.next();
        self.expect("(")?;
        let of = self.host_name("a type or the name of memory")?;
        self.expect(")")?;
        Ok(Arg::Size(factor, of))
    }
}
