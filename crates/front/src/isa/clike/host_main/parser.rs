//! Parses host code: statements, declarations and types. [`expressions`](super::expressions) has
//! the expressions.
//!
//! # Invariants
//! - The first error ends the reading: a program is followed as a whole, or not at all.
//! - The parser refuses other constructs at their places.

use std::collections::HashMap;
use std::ops::Range;

use super::tree::{
    HostBase, HostDeclared, HostExpr, HostExprKind, HostFunction, HostRecord, HostStmt,
    HostStmtKind, HostType,
};
use crate::isa::clike::classes::{class_name, class_named};
use crate::isa::clike::lex::{Tok, tokens};
use crate::isa::clike::words::type_named;
use diag::{Diagnostic, MappedText, Sink, SourceFile, Token};
use program::Ty;

/// The result of a reading, or the error that ended it.
pub(super) type Read<T> = Result<T, Box<Diagnostic>>;

/// An enumerator: its name, the expression that its value counts from, and the distance to it.
pub(super) type Enumerator = (String, (Option<HostExpr>, i64));

/// Reads the tokens of one item of a file.
pub(super) struct HostParser<'a> {
    pub(super) text: &'a MappedText,
    pub(super) file: &'a std::sync::Arc<SourceFile>,
    tokens: Vec<Token<Tok>>,
    at: usize,
    depth: usize,
    /// The types that the file declares, by name; `None`: one that host code cannot use.
    pub(super) types: &'a HashMap<String, Option<HostType>>,
}

/// The largest nesting of a program.
const DEEPEST: usize = 100;

/// Words that say nothing of a value.
const QUALIFIERS: [&str; 18] = [
    "CUDART_CB",
    "const",
    "static",
    "volatile",
    "constexpr",
    "inline",
    "extern",
    "register",
    "__restrict__",
    "restrict",
    "typename",
    "__host__",
    "__device__",
    "__constant__",
    "__managed__",
    "__forceinline__",
    "struct",
    "class",
];

/// Types of OpenCL's host API.
const OF_OPENCL: [&str; 10] = [
    "cl_context_properties",
    "cl_mem",
    "cl_event",
    "cl_kernel",
    "cl_program",
    "cl_context",
    "cl_device_id",
    "cl_platform_id",
    "cl_command_queue",
    "cl_queue_properties",
];

/// Words of integer types.
const PARTS: [&str; 6] = ["signed", "unsigned", "char", "short", "int", "long"];

/// Words that begin no expression and no declaration.
const RESERVED: [&str; 12] = [
    "return", "if", "else", "while", "for", "do", "break", "continue", "switch", "case", "delete",
    "new",
];

impl<'a> HostParser<'a> {
    /// A parser of the text in `range`, a whole item.
    pub(super) fn new(
        text: &'a MappedText,
        range: Range<usize>,
        file: &'a std::sync::Arc<SourceFile>,
        types: &'a HashMap<String, Option<HostType>>,
    ) -> Read<HostParser<'a>> {
        let mut part = MappedText::new();
        part.push_slice(text, range.clone());
        let mut sink = Sink::new(file);
        let mut all = tokens(&part, true, &mut sink);
        if let Some(wrong) = sink.into_diagnostics().into_iter().next() {
            return Err(Box::new(wrong));
        }
        for token in &mut all {
            token.range = token.range.start + range.start..token.range.end + range.start;
        }
        Ok(HostParser {
            text,
            file,
            tokens: all,
            at: 0,
            depth: 0,
            types,
        })
    }

    pub(super) fn error<T>(
        &self,
        range: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Read<T> {
        let span = self.text.span(range);
        let d = Diagnostic::error("host-syntax", self.file, span, message.into());
        Err(Box::new(d.label(label.into())))
    }

    pub(super) fn token(&self, ahead: usize) -> &Token<Tok> {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    pub(super) fn peek(&self) -> Tok {
        self.token(0).kind
    }

    pub(super) fn str(&self, range: &Range<usize>) -> &'a str {
        &self.text.as_str()[range.clone()]
    }

    /// The word `ahead` tokens ahead; empty for another token.
    pub(super) fn word(&self, ahead: usize) -> &'a str {
        let token = self.token(ahead);
        match token.kind {
            Tok::Name => self.str(&token.range),
            _ => "",
        }
    }

    /// The sign `ahead` tokens ahead; empty for another token.
    pub(super) fn sign(&self, ahead: usize) -> &'static str {
        match self.token(ahead).kind {
            Tok::Punct(sign) => sign,
            _ => "",
        }
    }

    pub(super) fn next(&mut self) -> Range<usize> {
        let range = self.token(0).range.clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        range
    }

    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let found = self.sign(0) == sign;
        if found {
            self.next();
        }
        found
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.word(0) == word;
        if found {
            self.next();
        }
        found
    }

    pub(super) fn expect(&mut self, sign: &str) -> Read<()> {
        // `>>` closes two lists of template arguments.
        if sign == ">" && self.sign(0) == ">>" {
            let token = &mut self.tokens[self.at];
            token.kind = Tok::Punct(">");
            token.range.start += 1;
            return Ok(());
        }
        if self.eat(sign) {
            return Ok(());
        }
        self.unexpected(&format!("`{sign}`"))
    }

    pub(super) fn unexpected<T>(&self, expected: &str) -> Read<T> {
        let range = self.token(0).range.clone();
        let message = match self.peek() {
            Tok::End => "this function ends here".to_owned(),
            _ => format!("`{}` cannot be read here", self.str(&range)),
        };
        self.error(range, message, format!("expected {expected}"))
    }

    /// The end of the last token.
    pub(super) fn end(&self) -> usize {
        self.tokens[self.at.saturating_sub(1)].range.end
    }

    pub(super) fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth == DEEPEST {
            let range = self.token(0).range.clone();
            let most = format!("expected at most {DEEPEST} levels");
            return self.error(range, "this is nested too deeply", most);
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    pub(super) fn name(&mut self, expected: &str) -> Read<(String, Range<usize>)> {
        if self.peek() != Tok::Name || RESERVED.contains(&self.word(0)) {
            return self.unexpected(expected);
        }
        let range = self.next();
        Ok((self.str(&range).to_owned(), range))
    }

    /// A function: its type, name, parameters and body.
    pub(super) fn function(&mut self) -> Read<HostFunction> {
        if self.word(0) == "template" {
            let range = self.next();
            return self.error(
                range,
                "templates of host functions have no value here",
                "expected a call of the template",
            );
        }
        self.function_behind_template()
    }

    /// The parameters of a function, without its body.
    pub(super) fn signature(&mut self) -> Read<Vec<HostDeclared>> {
        self.type_name()?;
        self.name("the name of a function")?;
        self.parameters()
    }

    /// A function without the head of its template.
    pub(super) fn function_behind_template(&mut self) -> Read<HostFunction> {
        let start = self.token(0).range.start;
        self.type_name()?;
        let (name, _) = self.name("the name of a function")?;
        let params = self.parameters()?;
        self.eat_word("noexcept");
        let body = self.body()?;
        Ok(HostFunction {
            name,
            params,
            body,
            range: start..self.end(),
        })
    }

    /// `struct S { int a, b[2]; };`; `None`: it has more than members.
    pub(super) fn record(&mut self) -> Read<Option<HostRecord>> {
        self.eat_word("typedef");
        self.next();
        let mut name = String::new();
        while self.sign(0) != "{" {
            // No base classes, attributes and alignments.
            if self.peek() != Tok::Name || self.word(0) == "final" {
                return Ok(None);
            }
            name = self.word(0).to_owned();
            self.next();
        }
        self.next();
        let mut members = Vec::new();
        while !self.eat("}") {
            if self.peek() == Tok::End || !self.declares() {
                return Ok(None);
            }
            let all = self.declaration()?;
            if !self.eat(";") {
                return Ok(None);
            }
            members.extend(all);
        }
        // `typedef struct { … } S;`
        if name.is_empty() {
            name = self.word(0).to_owned();
        }
        Ok(HostRecord::new(name, members))
    }

    /// `enum E { A, B = 4, C };`: its name, and each enumerator with the expression that its value
    /// counts from.
    pub(super) fn enumeration(&mut self) -> Read<(String, Vec<Enumerator>)> {
        self.next();
        let scoped = self.eat_word("class") || self.eat_word("struct");
        let mut name = String::new();
        if self.sign(0) != "{" && self.sign(0) != ":" {
            name = self.name("the name of an enumeration")?.0;
        }
        if self.eat(":") {
            self.type_name()?;
        }
        self.expect("{")?;
        let (mut all, mut from, mut distance) = (Vec::new(), None, 0);
        while !self.eat("}") {
            let (own, _) = self.name("an enumerator")?;
            if self.eat("=") {
                (from, distance) = (Some(self.expression()?), 0);
            }
            if !scoped {
                all.push((own.clone(), (from.clone(), distance)));
            }
            all.push((format!("{name}::{own}"), (from.clone(), distance)));
            distance += 1;
            if !self.eat(",") && self.sign(0) != "}" {
                return self.unexpected("`}`");
            }
        }
        Ok((name, all))
    }

    /// A list of parameters in parentheses.
    pub(super) fn parameters(&mut self) -> Read<Vec<HostDeclared>> {
        self.expect("(")?;
        let mut all = Vec::new();
        if self.word(0) == "void" && self.sign(1) == ")" {
            self.next();
        }
        while !self.eat(")") {
            if !all.is_empty() {
                self.expect(",")?;
            }
            let of = self.type_name()?;
            all.push(self.declarator(of, true)?);
        }
        Ok(all)
    }

    /// The statements between braces.
    pub(super) fn body(&mut self) -> Read<Vec<HostStmt>> {
        self.expect("{")?;
        let mut all = Vec::new();
        while !self.eat("}") {
            if self.peek() == Tok::End {
                return self.unexpected("`}`");
            }
            all.push(self.statement()?);
        }
        Ok(all)
    }

    pub(super) fn statement(&mut self) -> Read<HostStmt> {
        let start = self.token(0).range.start;
        let kind = self.nested(Self::statement_kind)?;
        Ok(HostStmt {
            kind,
            range: start..self.end().max(start),
        })
    }

    fn statement_kind(&mut self) -> Read<HostStmtKind> {
        while self.sign(0) == "[" && self.sign(1) == "[" {
            while !(self.sign(0) == "]" && self.sign(1) == "]") && self.peek() != Tok::End {
                self.next();
            }
            self.next();
            self.next();
        }
        Ok(match (self.sign(0), self.word(0)) {
            (";", _) => {
                self.next();
                HostStmtKind::Empty
            }
            ("{", _) => HostStmtKind::Block(self.body()?),
            (_, "if") => self.choice()?,
            (_, "while" | "do" | "for") => self.repetition()?,
            (_, "switch") => {
                self.next();
                self.expect("(")?;
                let value = self.comma()?;
                self.expect(")")?;
                HostStmtKind::Switch(value, self.body()?)
            }
            (_, "case" | "default") => {
                let value = match self.eat_word("default") {
                    true => None,
                    false => {
                        self.next();
                        Some(self.expression()?)
                    }
                };
                self.expect(":")?;
                HostStmtKind::Case(value)
            }
            (_, "try") => self.try_block()?,
            (_, "throw") => {
                self.next();
                if self.sign(0) != ";" {
                    self.comma()?;
                }
                self.expect(";")?;
                HostStmtKind::Throw
            }
            (_, "goto") => {
                self.next();
                let (label, _) = self.name("a label")?;
                self.expect(";")?;
                HostStmtKind::Goto(label)
            }
            (_, label) if !label.is_empty() && self.sign(1) == ":" => {
                self.next();
                self.next();
                HostStmtKind::Label(label.to_owned())
            }
            (_, "break") => self.word_alone(HostStmtKind::Break)?,
            (_, "continue") => self.word_alone(HostStmtKind::Continue)?,
            (_, "return") => {
                self.next();
                let value = match self.sign(0) {
                    ";" => None,
                    _ => Some(self.comma()?),
                };
                self.expect(";")?;
                HostStmtKind::Return(value)
            }
            (_, "enum") if self.begins_enumeration() => self.local_enumeration()?,
            (_, "using" | "static_assert" | "typedef") => {
                while !self.eat(";") {
                    if self.peek() == Tok::End {
                        return self.unexpected("`;`");
                    }
                    self.next();
                }
                HostStmtKind::Empty
            }
            _ => {
                let kind = self.simple()?;
                self.expect(";")?;
                kind
            }
        })
    }

    /// Whether `enum {` or `enum E {` begins here.
    fn begins_enumeration(&self) -> bool {
        self.sign(1) == "{" || self.sign(2) == "{"
    }

    /// `enum { A, B = 2 };` in a function: a constant for each enumerator.
    fn local_enumeration(&mut self) -> Read<HostStmtKind> {
        let range = self.token(0).range.clone();
        let (_, all) = self.enumeration()?;
        self.expect(";")?;
        let made = |kind| HostExpr {
            kind,
            range: range.clone(),
        };
        let constant = |(name, (from, distance)): Enumerator| {
            let distance = made(HostExprKind::Int(distance, Ty::S32));
            HostDeclared {
                name,
                range: range.clone(),
                of: HostType::plain(HostBase::Int(Ty::S32)),
                arrays: Vec::new(),
                value: Some(match from {
                    Some(from) => made(HostExprKind::Binary(
                        "+",
                        Box::new(from),
                        Box::new(distance),
                    )),
                    None => distance,
                }),
            }
        };
        let named = all.into_iter().filter(|(name, _)| !name.contains("::"));
        Ok(HostStmtKind::Declare(named.map(constant).collect()))
    }

    fn try_block(&mut self) -> Read<HostStmtKind> {
        self.next();
        let body = self.body()?;
        let mut handlers = Vec::new();
        while self.eat_word("catch") {
            let (mut open, mut name) = (0, "");
            while self.peek() != Tok::End {
                if !self.word(0).is_empty() {
                    name = self.word(0);
                }
                open += match self.sign(0) {
                    "(" => 1,
                    ")" => -1,
                    _ => 0,
                };
                self.next();
                if open == 0 {
                    break;
                }
            }
            handlers.push((name.to_owned(), self.body()?));
        }
        Ok(HostStmtKind::Try(body, handlers))
    }

    fn word_alone(&mut self, kind: HostStmtKind) -> Read<HostStmtKind> {
        self.next();
        self.expect(";")?;
        Ok(kind)
    }

    /// A declaration or an expression, without the `;`.
    fn simple(&mut self) -> Read<HostStmtKind> {
        match self.declares() {
            true => Ok(HostStmtKind::Declare(self.declaration()?)),
            false => Ok(HostStmtKind::Expr(self.comma()?)),
        }
    }

    fn choice(&mut self) -> Read<HostStmtKind> {
        self.next();
        self.eat_word("constexpr");
        self.expect("(")?;
        let start = self.token(0).range.start;
        let first = self.simple()?;
        let before = match first {
            HostStmtKind::Expr(_) if self.sign(0) == ")" => None,
            HostStmtKind::Declare(_) | HostStmtKind::Expr(_) if self.sign(0) == ";" => {
                self.next();
                Some(first.clone())
            }
            HostStmtKind::Declare(_) => Some(first.clone()),
            _ => return self.unexpected("`)`"),
        };
        let cond = match (first, self.sign(0)) {
            (HostStmtKind::Expr(cond), ")") if before.is_none() => cond,
            // `if (int n = f())`
            (HostStmtKind::Declare(all), ")") => HostExpr {
                kind: super::tree::HostExprKind::Name(
                    all.first().map_or(String::new(), |d| d.name.clone()),
                ),
                range: start..self.end(),
            },
            _ => self.comma()?,
        };
        self.expect(")")?;
        let then = Box::new(self.statement()?);
        let other = match self.eat_word("else") {
            true => Some(Box::new(self.statement()?)),
            false => None,
        };
        let kind = HostStmtKind::If(cond, then, other);
        let range = start..self.end();
        Ok(match before {
            None => kind,
            Some(before) => HostStmtKind::Block(vec![
                HostStmt {
                    kind: before,
                    range: range.clone(),
                },
                HostStmt { kind, range },
            ]),
        })
    }

    fn repetition(&mut self) -> Read<HostStmtKind> {
        let word = self.word(0);
        self.next();
        if word == "do" {
            let body = Box::new(self.statement()?);
            if !self.eat_word("while") {
                return self.unexpected("`while`");
            }
            self.expect("(")?;
            let cond = Some(self.comma()?);
            self.expect(")")?;
            self.expect(";")?;
            let (init, step) = (None, None);
            let test_last = true;
            return Ok(HostStmtKind::Loop {
                init,
                cond,
                step,
                body,
                test_last,
            });
        }
        self.expect("(")?;
        let (mut init, mut step) = (None, None);
        let cond = if word == "while" {
            Some(self.comma()?)
        } else {
            let start = self.token(0).range.start;
            if self.sign(0) != ";" {
                let kind = self.simple()?;
                if let (HostStmtKind::Declare(all), true) = (&kind, self.sign(0) == ":")
                    && let [one] = all.as_slice()
                {
                    self.next();
                    let over = self.expression()?;
                    self.expect(")")?;
                    let body = Box::new(self.statement()?);
                    return Ok(HostStmtKind::Elements(one.clone(), over, body));
                }
                let range = start..self.end();
                init = Some(Box::new(HostStmt { kind, range }));
            }
            self.expect(";")?;
            let cond = match self.sign(0) {
                ";" => None,
                _ => Some(self.comma()?),
            };
            self.expect(";")?;
            if self.sign(0) != ")" {
                step = Some(self.comma()?);
            }
            cond
        };
        self.expect(")")?;
        let body = Box::new(self.statement()?);
        let test_last = false;
        Ok(HostStmtKind::Loop {
            init,
            cond,
            step,
            body,
            test_last,
        })
    }

    /// Whether a declaration begins here: a type, and a name behind it.
    pub(super) fn declares(&mut self) -> bool {
        if self.peek() != Tok::Name || RESERVED.contains(&self.word(0)) {
            return false;
        }
        let (at, tokens) = self.save();
        let of = self.type_name();
        // `a && b[0]`
        let joins = self.at > 0 && self.tokens[self.at - 1].kind == Tok::Punct("&&");
        let joins = joins
            && of
                .as_ref()
                .is_ok_and(|of| matches!(of.base, HostBase::Other(_)));
        let is = of.is_ok()
            && !joins
            && self.peek() == Tok::Name
            && !RESERVED.contains(&self.word(0))
            && matches!(self.sign(1), "=" | ";" | "," | "[" | "(" | "{" | ":" | ")");
        self.restore(at, tokens);
        is
    }

    /// The state to which a trial returns.
    pub(super) fn save(&self) -> (usize, Vec<Token<Tok>>) {
        let end = (self.at + 40).min(self.tokens.len());
        (self.at, self.tokens[self.at..end].to_vec())
    }

    pub(super) fn restore(&mut self, at: usize, tokens: Vec<Token<Tok>>) {
        self.at = at;
        self.tokens[at..at + tokens.len()].clone_from_slice(&tokens);
    }

    /// `int *p = &x, n`, without the `;`.
    pub(super) fn declaration(&mut self) -> Read<Vec<HostDeclared>> {
        let first = self.type_name()?;
        let base = HostType::plain(first.base.clone());
        let mut all = vec![self.declarator(first, false)?];
        while self.eat(",") {
            let mut of = base.clone();
            self.stars(&mut of);
            all.push(self.declarator(of, false)?);
        }
        Ok(all)
    }

    /// A name with its array sizes and its initialiser. A parameter may lack its name.
    fn declarator(&mut self, of: HostType, parameter: bool) -> Read<HostDeclared> {
        let (name, range) = match parameter && self.peek() != Tok::Name {
            true => (String::new(), self.token(0).range.clone()),
            false => self.name("a name")?,
        };
        let mut arrays = Vec::new();
        while self.eat("[") {
            arrays.push(match self.sign(0) {
                "]" => None,
                _ => Some(self.expression()?),
            });
            self.expect("]")?;
        }
        let start = self.token(0).range.start;
        let value = match self.sign(0) {
            "=" => {
                self.next();
                Some(self.expression()?)
            }
            "(" | "{" if !parameter => {
                let close = if self.sign(0) == "(" { ")" } else { "}" };
                self.next();
                let all = self.list(close)?;
                let kind = match (&of.base, close, of.pointers) {
                    (HostBase::Int(_) | HostBase::Bool | HostBase::Float(_), _, _)
                    | (_, _, 1..)
                        if all.len() == 1 && arrays.is_empty() =>
                    {
                        return Ok(HostDeclared {
                            name,
                            range,
                            of,
                            arrays,
                            value: all.into_iter().next(),
                        });
                    }
                    (_, "}", _) if !matches!(of.base, HostBase::Dim3 | HostBase::Thread(_)) => {
                        super::tree::HostExprKind::Braces(all)
                    }
                    _ => super::tree::HostExprKind::Construct(of.clone(), all),
                };
                Some(HostExpr {
                    kind,
                    range: start..self.end(),
                })
            }
            _ => None,
        };
        Ok(HostDeclared {
            name,
            range,
            of,
            arrays,
            value,
        })
    }

    fn stars(&mut self, of: &mut HostType) {
        loop {
            match (self.sign(0), self.word(0)) {
                ("*", _) => of.pointers += 1,
                ("&" | "&&", _) => of.reference = true,
                (_, "const" | "volatile" | "__restrict__" | "restrict" | "__restrict") => {}
                _ => return,
            }
            self.next();
        }
    }

    /// A type.
    pub(super) fn type_name(&mut self) -> Read<HostType> {
        let mut constant = false;
        let mut parts: Vec<&str> = Vec::new();
        let mut base = None;
        loop {
            let word = self.word(0);
            if QUALIFIERS.contains(&word) {
                constant |= word.starts_with("const");
                self.next();
            } else if PARTS.contains(&word) && base.is_none() {
                parts.push(word);
                self.next();
            } else if word == "double" && parts == ["long"] {
                parts.clear();
                base = Some(self.base()?);
            } else if base.is_none() && parts.is_empty() && !word.is_empty() {
                base = Some(self.base()?);
            } else {
                break;
            }
        }
        let base = match base {
            Some(base) => base,
            None if parts.is_empty() => return self.unexpected("a type"),
            None => HostBase::Int(integer_of(&parts)),
        };
        let mut of = match base {
            HostBase::Other(name) => match self.types.get(&name) {
                Some(Some(HostType {
                    base: HostBase::Template,
                    ..
                })) if self.sign(0) == "<" => {
                    HostType::plain(HostBase::Instance(name, self.template_values()?))
                }
                Some(Some(known)) => known.clone(),
                _ => HostType::plain(HostBase::Other(name)),
            },
            base => HostType::plain(base),
        };
        of.constant = constant;
        self.stars(&mut of);
        Ok(of)
    }

    /// A type that is one name, with its template arguments.
    fn base(&mut self) -> Read<HostBase> {
        let range = self.next();
        let word = self.str(&range);
        let bare = bare_type(word);
        Ok(match bare {
            "void" => HostBase::Void,
            "bool" => HostBase::Bool,
            "float" => HostBase::Float(32),
            "double" => HostBase::Float(64),
            "auto" => HostBase::Auto,
            "cudaStream_t" => HostBase::Stream,
            "cudaEvent_t" => HostBase::Event,
            "cl_queue_properties" | "cl_command_queue_properties" | "cl_mem_flags" => {
                HostBase::Int(Ty {
                    bits: 64,
                    signed: false,
                })
            }
            "cudaError_t" => HostBase::Int(Ty::S32),
            "dim3" => HostBase::Dim3,
            "thread" | "jthread" if word != bare => HostBase::Thread(bare == "jthread"),
            _ if word.ends_with("::atomic") || word.ends_with("::atomic_ref") => {
                self.atomic(range.start)?
            }
            "vector" | "array" | "unique_ptr" | "make_unique" => {
                self.expect("<")?;
                let of = self.type_name()?;
                let length = match self.eat(",") {
                    true if bare == "array" => Some(Box::new(self.additive()?)),
                    true => return self.unexpected("`>`"),
                    false => None,
                };
                let owns = matches!(bare, "unique_ptr" | "make_unique");
                let of_array = owns && self.eat("[");
                if of_array {
                    self.expect("]")?;
                }
                self.expect(">")?;
                match bare {
                    _ if owns && !of_array => HostBase::Other(word.to_owned()),
                    _ => HostBase::Vector(Box::new(of), length),
                }
            }
            _ => match type_named(bare) {
                Some((ty, false)) => HostBase::Int(ty),
                _ => {
                    if self.sign(0) == "<" && word.contains("::") {
                        self.template_arguments()?;
                    }
                    HostBase::Other(word.to_owned())
                }
            },
        })
    }

    /// `cuda::atomic<int, cuda::thread_scope_system>`, which begins at `start`.
    fn atomic(&mut self, start: usize) -> Read<HostBase> {
        if self.sign(0) == "<" {
            self.template_arguments()?;
        }
        let written = self.str(&(start..self.end()));
        let reference = written.contains("atomic_ref");
        let Some(Ok((ty, class))) = class_named(&written.replace("atomic_ref", "atomic")) else {
            return Ok(HostBase::Other(written.to_owned()));
        };
        let sign = if ty.signed { "" } else { "u" };
        let name = class_name(class, &format!("{sign}int{}_t", ty.bits), 0).0;
        let name = match reference {
            true => name.replace("::atomic<", "::atomic_ref<"),
            false => name,
        };
        Ok(HostBase::Atomic(ty, reference, name.into()))
    }

    /// Skips template arguments.
    pub(super) fn template_arguments(&mut self) -> Read<()> {
        self.expect("<")?;
        let mut open = 1usize;
        while open > 0 {
            match self.sign(0) {
                "<" => open += 1,
                ">" => open -= 1,
                ">>" => open = open.saturating_sub(2),
                ";" | "{" => return self.unexpected("`>`"),
                _ if self.peek() == Tok::End => return self.unexpected("`>`"),
                _ => {}
            }
            self.next();
        }
        Ok(())
    }

    /// Whether the text ends here.
    pub(super) fn ends(&self) -> bool {
        self.peek() == Tok::End
    }

    /// Whether a type comes next.
    pub(super) fn is_type(&self) -> bool {
        self.is_type_at(0)
    }

    fn is_type_at(&self, ahead: usize) -> bool {
        let word = self.word(ahead);
        let names = [
            "void",
            "bool",
            "float",
            "double",
            "cudaStream_t",
            "cudaEvent_t",
            "dim3",
        ];
        let atomic = word.ends_with("::atomic") || word.ends_with("::atomic_ref");
        PARTS.contains(&word)
            || QUALIFIERS.contains(&word)
            || self.types.get(word).is_some_and(Option::is_some)
            || names.contains(&word)
            || atomic
            || type_named(bare_type(word)).is_some()
            || matches!(bare_type(word), "float" | "double" | "bool")
            || OF_OPENCL.contains(&word)
    }

    /// Whether a type in parentheses begins behind the next token, as in a cast.
    pub(super) fn is_cast(&self) -> bool {
        // `(float(i) + 1)` begins with a conversion, `(int (*)(int))f` is a cast.
        let converts = self.sign(2) == "(" && self.sign(3) != "*";
        let typed = self.is_type_at(1) && !converts;
        self.sign(0) == "(" && (typed || self.is_pointer_cast())
    }

    /// `(T *)`, `(T **)`: no expression ends with `*`, whatever `T` is.
    fn is_pointer_cast(&self) -> bool {
        let stars = (2..5).take_while(|ahead| self.sign(*ahead) == "*").count();
        !self.word(1).is_empty() && stars > 0 && self.sign(2 + stars) == ")"
    }

    /// Whether the next word is a type that is called like a function, as `dim3(2, 2)`.
    pub(super) fn is_construction(&self) -> bool {
        let word = self.word(0);
        let bare = word.strip_prefix("std::").unwrap_or(word);
        let typed = matches!(bare, "dim3" | "float" | "double" | "bool")
            || PARTS.contains(&word)
            || type_named(bare).is_some();
        let known = self.types.get(word).and_then(Option::as_ref);
        let typed = typed || known.is_some_and(HostType::is_record);
        let is_class = known.is_some_and(|of| matches!(of.base, HostBase::Template));
        let instance = is_class && self.sign(1) == "<";
        let template = matches!(
            word,
            "std::vector" | "std::array" | "std::thread" | "std::jthread" | "std::make_unique"
        ) || word.ends_with("::atomic_ref");
        let of_time = word.starts_with("std::chrono::") && self.sign(1) == "<";
        (typed && matches!(self.sign(1), "(" | "{")) || template || instance || of_time
    }
}

/// The type that a prefix of a library is before: `std::size_t`, `cl_int`.
fn bare_type(word: &str) -> &str {
    let bare = word.strip_prefix("std::").unwrap_or(word);
    match bare.strip_prefix("cl_") {
        Some(rest) if type_named(rest).is_some() || matches!(rest, "float" | "double" | "bool") => {
            rest
        }
        _ => bare,
    }
}

/// The type of words such as `unsigned long`.
fn integer_of(parts: &[&str]) -> Ty {
    let has = |word: &str| parts.contains(&word);
    let bits = match () {
        () if has("char") => 8,
        () if has("short") => 16,
        () if has("long") => 64,
        () => 32,
    };
    Ty {
        bits,
        signed: !has("unsigned"),
    }
}
