//! Parses the expressions of host code.

use std::ops::Range;
use std::rc::Rc;

use super::parser::{HostParser, Read};
use super::tree::{HostExpr, HostExprKind, HostFunction, HostLaunch, TemplateArgument};
use crate::isa::clike::lex::Tok;
use crate::isa::clike::signs::{self, ADDITIVE, ASSIGNMENTS};

/// Casts that are written like calls of templates.
const CASTS: [&str; 3] = ["static_cast", "reinterpret_cast", "const_cast"];

impl HostParser<'_> {
    /// Any expression, with commas.
    pub(super) fn comma(&mut self) -> Read<HostExpr> {
        let mut left = self.expression()?;
        while self.eat(",") {
            let right = self.expression()?;
            let range = left.range.start..right.range.end;
            let kind = HostExprKind::Comma(left.into(), right.into());
            left = HostExpr { kind, range };
        }
        Ok(left)
    }

    /// An expression without a comma operator.
    pub(super) fn expression(&mut self) -> Read<HostExpr> {
        self.nested(|p| {
            if p.sign(0) == "{" {
                let start = p.next().start;
                let kind = HostExprKind::Braces(p.list("}")?);
                let range = start..p.end();
                return Ok(HostExpr { kind, range });
            }
            let left = p.binary(0)?;
            let start = left.range.start;
            let sign = p.sign(0);
            let op = ASSIGNMENTS.iter().find(|a| a.0 == sign);
            let op = op.and_then(|a| a.0.strip_suffix('='));
            if sign == "=" || op.is_some() {
                p.next();
                let value = p.expression()?;
                let range = start..value.range.end;
                let kind = HostExprKind::Assign(op, left.into(), value.into());
                return Ok(HostExpr { kind, range });
            }
            if !p.eat("?") {
                return Ok(left);
            }
            let then = p.comma()?;
            p.expect(":")?;
            let other = p.expression()?;
            let range = start..other.range.end;
            let kind = HostExprKind::Choice(left.into(), then.into(), other.into());
            Ok(HostExpr { kind, range })
        })
    }

    /// An expression without comparisons, as a template argument is.
    pub(super) fn additive(&mut self) -> Read<HostExpr> {
        self.binary(ADDITIVE)
    }

    fn binary(&mut self, loosest: usize) -> Read<HostExpr> {
        let mut left = self.unary()?;
        loop {
            let sign = self.sign(0);
            let Some((level, _)) = signs::binary(sign, loosest) else {
                return Ok(left);
            };
            self.next();
            let right = self.nested(|p| p.binary(level + 1))?;
            let range = left.range.start..right.range.end;
            let kind = HostExprKind::Binary(sign, left.into(), right.into());
            left = HostExpr { kind, range };
        }
    }

    fn unary(&mut self) -> Read<HostExpr> {
        self.nested(Self::unary_inner)
    }

    fn unary_inner(&mut self) -> Read<HostExpr> {
        let start = self.token(0).range.start;
        let sign = self.sign(0);
        let kind = match sign {
            "-" | "!" | "~" | "*" | "&" | "+" => {
                self.next();
                HostExprKind::Unary(sign, self.unary()?.into())
            }
            "++" | "--" => {
                self.next();
                HostExprKind::Step(self.unary()?.into(), sign == "++", true)
            }
            "(" if self.is_cast() => {
                self.next();
                let of = self.type_name()?;
                self.expect(")")?;
                HostExprKind::Cast(of, self.unary()?.into())
            }
            _ => match self.word(0) {
                "sizeof" => self.size()?,
                "new" => self.allocation()?,
                "delete" => {
                    self.next();
                    if self.eat("[") {
                        self.expect("]")?;
                    }
                    HostExprKind::Delete(self.unary()?.into())
                }
                _ => return self.postfix(),
            },
        };
        let range = start..self.end();
        Ok(HostExpr { kind, range })
    }

    fn size(&mut self) -> Read<HostExprKind> {
        self.next();
        if self.is_cast() || (self.sign(0) == "(" && self.word(1) == "struct") {
            self.next();
            let of = self.type_name()?;
            self.expect(")")?;
            return Ok(HostExprKind::SizeOfType(of));
        }
        Ok(HostExprKind::SizeOf(self.unary()?.into()))
    }

    fn allocation(&mut self) -> Read<HostExprKind> {
        self.next();
        let mut at = None;
        if self.eat("(") {
            at = Some(self.expression()?);
            self.expect(")")?;
        }
        let of = self.type_name()?;
        let mut length = None;
        if self.eat("[") {
            length = Some(Box::new(self.expression()?));
            self.expect("]")?;
        }
        let values = match self.sign(0) {
            "(" => {
                self.next();
                self.list(")")?
            }
            "{" => {
                self.next();
                self.list("}")?
            }
            _ => Vec::new(),
        };
        match at {
            Some(at) => Ok(HostExprKind::Place(at.into(), of, values)),
            None => Ok(HostExprKind::New(of, length, values)),
        }
    }

    /// Expressions up to a closing sign.
    pub(super) fn list(&mut self, close: &str) -> Read<Vec<HostExpr>> {
        let mut all = Vec::new();
        while !self.eat(close) {
            if !all.is_empty() {
                self.expect(",")?;
                if self.eat(close) {
                    break;
                }
            }
            all.push(self.expression()?);
        }
        Ok(all)
    }

    fn postfix(&mut self) -> Read<HostExpr> {
        let mut of = self.primary()?;
        loop {
            let start = of.range.start;
            let kind = match self.sign(0) {
                "(" => {
                    self.next();
                    HostExprKind::Call(of.into(), self.list(")")?)
                }
                "[" => {
                    self.next();
                    let at = self.comma()?;
                    self.expect("]")?;
                    HostExprKind::Index(of.into(), at.into())
                }
                "." | "->" => {
                    self.next();
                    let (name, _) = self.name("the name of a member")?;
                    HostExprKind::Member(of.into(), name)
                }
                sign @ ("++" | "--") => {
                    self.next();
                    HostExprKind::Step(of.into(), sign == "++", false)
                }
                "<<" if self.sign(1) == "<" && matches!(of.kind, HostExprKind::Name(_)) => {
                    self.launch(of.range.clone(), None)?
                }
                _ => return Ok(of),
            };
            let range = start..self.end();
            of = HostExpr { kind, range };
        }
    }

    /// `<<<grid, block>>>(arguments)` behind the name of a kernel.
    fn launch(
        &mut self,
        kernel: Range<usize>,
        instance: Option<Range<usize>>,
    ) -> Read<HostExprKind> {
        self.next();
        self.next();
        let mut configuration = Vec::new();
        loop {
            // `>>>` ends the list, so a shift needs parentheses.
            configuration.push(match self.sign(0) {
                "{" => self.expression()?,
                _ => self.binary(ADDITIVE)?,
            });
            if !self.eat(",") {
                break;
            }
        }
        self.expect(">>")?;
        self.expect(">")?;
        self.expect("(")?;
        let arguments = self.list(")")?;
        Ok(HostExprKind::Launch(Box::new(HostLaunch {
            kernel,
            instance,
            configuration,
            arguments,
        })))
    }

    fn primary(&mut self) -> Read<HostExpr> {
        let range = self.token(0).range.clone();
        let start = range.start;
        let kind = match self.peek() {
            Tok::Int(n, ty) => {
                self.next();
                HostExprKind::Int(n, ty)
            }
            Tok::Float(bits, format) => {
                self.next();
                HostExprKind::Float(match format == program::Format::SINGLE {
                    true => f64::from(f32::from_bits(bits as u32)),
                    false => f64::from_bits(bits as u64),
                })
            }
            Tok::Str => {
                let mut text = String::new();
                while self.peek() == Tok::Str {
                    let range = self.next();
                    text += &self.str(&range)[1..range.len() - 1];
                }
                HostExprKind::Str(text)
            }
            Tok::Punct("(") => {
                self.next();
                let inner = self.comma()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Tok::Punct("[") => self.lambda()?,
            Tok::Name => return self.named(),
            _ => return self.unexpected("an expression"),
        };
        let range = start..self.end();
        Ok(HostExpr { kind, range })
    }

    /// An expression that begins with a name.
    fn named(&mut self) -> Read<HostExpr> {
        let start = self.token(0).range.start;
        let word = self.word(0);
        let kind = if CASTS.contains(&word) && self.sign(1) == "<" {
            self.next();
            self.expect("<")?;
            let of = self.type_name()?;
            self.expect(">")?;
            self.expect("(")?;
            let value = self.comma()?;
            self.expect(")")?;
            HostExprKind::Cast(of, value.into())
        } else if self.is_construction() {
            let of = self.type_name()?;
            let close = if self.sign(0) == "{" { "}" } else { ")" };
            if !self.eat("(") {
                self.expect("{")?;
            }
            HostExprKind::Construct(of, self.list(close)?)
        } else {
            let (name, kernel) = self.name("an expression")?;
            match self.instance_of_launch() {
                Some(instance) => self.launch(kernel, Some(instance))?,
                None => match self.instance_of_call() {
                    Some(given) => HostExprKind::Instance(name, given),
                    None => HostExprKind::Name(name),
                },
            }
        };
        let range = start..self.end();
        Ok(HostExpr { kind, range })
    }

    /// `<int, 4>` before `<<<`, without the brackets.
    fn instance_of_launch(&mut self) -> Option<Range<usize>> {
        if self.sign(0) != "<" {
            return None;
        }
        let (at, tokens) = self.save();
        let start = self.token(0).range.end;
        let is = self.template_arguments().is_ok();
        if is && self.sign(0) == "<<" && self.sign(1) == "<" {
            return Some(start..self.end() - 1);
        }
        self.restore(at, tokens);
        None
    }

    /// `<float>` in `cudaCreateChannelDesc<float>()`.
    fn instance_of_call(&mut self) -> Option<Rc<[TemplateArgument]>> {
        if self.sign(0) != "<" {
            return None;
        }
        let (at, tokens) = self.save();
        self.next();
        let number = matches!(self.peek(), Tok::Int(..)) && matches!(self.sign(1), ">" | ",");
        let name = self.peek() == Tok::Name && matches!(self.sign(1), ">" | "*");
        let typed = number || name || self.is_type();
        self.restore(at, tokens);
        let (at, tokens) = self.save();
        let given = match typed {
            true => self.template_values().ok(),
            false => None,
        };
        if given.is_none() || self.sign(0) != "(" {
            self.restore(at, tokens);
            return None;
        }
        given
    }

    /// `[&](int n) { … }`
    fn lambda(&mut self) -> Read<HostExprKind> {
        let start = self.next().start;
        let mut copies = false;
        while !self.eat("]") {
            let by_name = self.peek() == Tok::Name && self.end() == start + 1;
            let behind_comma = self.peek() == Tok::Name && !self.captures_reference();
            copies |= self.sign(0) == "=" || by_name || behind_comma;
            if !matches!(self.sign(0), "&" | "=" | ",") && self.peek() != Tok::Name {
                return self.unexpected("a list of captures");
            }
            self.next();
        }
        let params = match self.sign(0) {
            "(" => self.parameters()?,
            _ => Vec::new(),
        };
        self.eat_word("mutable");
        if self.eat("->") {
            self.type_name()?;
        }
        let body = self.body()?;
        let function = HostFunction {
            name: String::new(),
            params,
            body,
            range: start..self.end(),
        };
        Ok(HostExprKind::Lambda(Rc::new(function), copies))
    }

    /// Whether the name that comes next stands behind `&`.
    fn captures_reference(&self) -> bool {
        let end = self.end();
        self.text.as_str()[..end].ends_with('&') || self.word(0) == "this"
    }
}
