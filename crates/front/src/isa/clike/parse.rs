//! Parses the statements of the C-like dialects.
//!
//! # Invariants
//! - After an error the parser goes on after the next `;` or `}`: one pass reports all errors.

use std::collections::HashSet;
use std::ops::Range;

use std::rc::Rc;

use super::ast::{
    Declaration, Declarator, Expr, ExprKind, Function, Specifiers, Stmt, StmtKind,
    TemplateParameter, TypeName,
};
use super::host_calls::begins;
use super::inline_asm;
use super::language::Language;
use super::lex::{Tok, tokens};
use super::refused::class;
use super::signs::ASSIGNMENTS;
use super::templates::Instances;
use super::texture_words::FETCHES;
use super::words::is_keyword;
use diag::{Cursor, MAX_NESTING, MappedText, Sink, Token};

/// Reads tokens one by one.
pub(super) struct Parser<'a, 's> {
    pub(super) text: &'a MappedText,
    pub(super) language: &'static Language,
    /// Names of types that the code declared.
    pub(super) types: HashSet<&'a str>,
    /// Those of the types of pointers to functions.
    pub(super) pointers: HashSet<&'a str>,
    /// Other names that the code declared.
    pub(super) variables: HashSet<&'a str>,
    /// Names of function templates, and the arguments that the code gives them.
    pub(super) templates: HashSet<&'a str>,
    pub(super) instances: Instances,
    /// The parameters of the template that begins here.
    pub(super) pending: Vec<TemplateParameter>,
    /// Names of class templates.
    pub(super) classes: HashSet<&'a str>,
    /// Names of classes, and of types that they declare.
    pub(super) nested_types: HashSet<(String, &'a str)>,
    /// The parts of the class that is being read.
    pub(super) class: ClassParts,
    pub(super) tokens: Cursor<Tok>,
    pub(super) sink: &'s mut Sink,
}

/// The contents of a class that are no members of its objects.
#[derive(Default)]
pub(super) struct ClassParts {
    pub(super) functions: Vec<Rc<Function>>,
    pub(super) constants: Vec<Declaration>,
    /// The name of the class.
    pub(super) name: String,
}

/// The parser found an error, and reported it.
pub(super) struct Failed;

pub(super) type Parsed<T> = Result<T, Failed>;

/// Parses the statements of a thread's code.
pub(super) fn statements(
    text: &MappedText,
    language: &'static Language,
    sink: &mut Sink,
) -> (Vec<Stmt>, Instances) {
    let tokens = Cursor::new(tokens(text, language.cpp, sink));
    let mut parser = Parser {
        text,
        language,
        types: HashSet::new(),
        pointers: HashSet::new(),
        variables: HashSet::new(),
        templates: match language.cpp {
            true => FETCHES.into(),
            false => HashSet::new(),
        },
        instances: Instances::default(),
        pending: Vec::new(),
        classes: HashSet::new(),
        nested_types: HashSet::new(),
        class: ClassParts::default(),
        tokens,
        sink,
    };
    let mut all = Vec::new();
    while parser.tokens.peek() != Tok::End {
        parser.one(&mut all);
    }
    (all, parser.instances)
}

impl<'a> Parser<'a, '_> {
    pub(super) fn str(&self, range: &Range<usize>) -> &'a str {
        &self.text.as_str()[range.clone()]
    }

    pub(super) fn word(&self) -> &'a str {
        self.word_at(0)
    }

    /// The word `n` tokens ahead; empty if that token is not a word.
    pub(super) fn word_at(&self, n: usize) -> &'a str {
        let token = self.tokens.token_at(n);
        if token.kind == Tok::Name {
            self.str(&token.range)
        } else {
            ""
        }
    }

    pub(super) fn next(&mut self) -> Range<usize> {
        self.tokens.advance().range
    }

    pub(super) fn eat(&mut self, punct: &str) -> bool {
        self.tokens.eat(Tok::Punct(punct_of(punct)))
    }

    /// The contents of the string that comes next, if one does.
    pub(super) fn string(&mut self) -> Option<Range<usize>> {
        (self.tokens.peek() == Tok::Str).then(|| {
            let range = self.next();
            range.start + 1..range.end - 1
        })
    }

    pub(super) fn fail<T>(
        &mut self,
        range: Range<usize>,
        message: impl Into<String>,
        expected: &str,
    ) -> Parsed<T> {
        let span = self.text.span(range);
        self.sink.error("c-syntax", span, message, |d| {
            d.label(format!("expected {expected}"))
        });
        Err(Failed)
    }

    /// Reports that the next token is not allowed here.
    pub(super) fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        let range = self.tokens.range();
        // If this word or the one before is not of the language, or is not supported, report that.
        let last = self.tokens.last().clone();
        for Token { kind, range } in [last, Token::new(self.tokens.peek(), range.clone())] {
            if kind == Tok::Name {
                self.refused_word(&range)?;
            }
        }
        let found = match self.tokens.peek() {
            Tok::End => "the code ends here".to_string(),
            _ => format!("`{}` is not allowed here", self.str(&range)),
        };
        self.fail(range, found, expected)
    }

    pub(super) fn expect(&mut self, punct: &str) -> Parsed<Range<usize>> {
        let range = self.tokens.range();
        if self.eat(punct) {
            Ok(range)
        } else {
            self.unexpected(&format!("`{punct}`"))
        }
    }

    /// Counts a level of nesting around `f`.
    pub(super) fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if !self.tokens.descend() {
            let range = self.tokens.range();
            return self.fail(
                range,
                "this is nested too deeply",
                &format!("at most {MAX_NESTING} levels"),
            );
        }
        let result = f(self);
        self.tokens.ascend();
        result
    }

    /// Reads a statement into `all`, or skips it after an error.
    fn one(&mut self, all: &mut Vec<Stmt>) {
        let (start, depth) = (self.tokens.position(), self.tokens.depth());
        match self.statement() {
            Ok(stmt) => all.push(stmt),
            Err(Failed) => {
                self.tokens.ascend_to(depth);
                self.recover(start);
            }
        }
    }

    /// Skips a statement with an error, together with its blocks.
    fn recover(&mut self, start: usize) {
        self.tokens.go_to(self.tokens.position().max(start));
        let mut open: Vec<&str> = Vec::new();
        for token in self.tokens.since(start) {
            match token.kind {
                Tok::Punct(sign @ ("{" | "(")) => open.push(sign),
                Tok::Punct("}" | ")") => drop(open.pop()),
                _ => {}
            }
        }
        loop {
            match self.tokens.peek() {
                Tok::End => return,
                Tok::Punct(sign @ ("{" | "(")) => open.push(sign),
                Tok::Punct(")") if open.last() == Some(&"(") => drop(open.pop()),
                Tok::Punct("}") if open.contains(&"{") => {
                    while open.pop() != Some("{") {}
                    if open.is_empty() {
                        self.next();
                        self.eat(";");
                        return;
                    }
                }
                // This brace closes the block around the statement.
                Tok::Punct("}") if self.tokens.depth() > 0 => return,
                // If a parenthesis is never closed, the statement ends here.
                Tok::Punct(";" | "}")
                    if !open.contains(&"{") && (open.is_empty() || !self.closes()) =>
                {
                    self.next();
                    return;
                }
                _ => {}
            }
            self.next();
        }
    }

    /// Whether a `)` comes before the next brace.
    fn closes(&self) -> bool {
        let behind = self.tokens.rest().iter().map(|token| token.kind);
        let mut signs =
            behind.filter(|tok| matches!(tok, Tok::Punct("{" | "}" | "(" | ")") | Tok::End));
        signs.next() == Some(Tok::Punct(")"))
    }

    fn statement(&mut self) -> Parsed<Stmt> {
        self.nested(Self::statement_inner)
    }

    fn statement_inner(&mut self) -> Parsed<Stmt> {
        let start = self.tokens.range().start;
        if let Some((what, instead)) = class(self.word()) {
            return self.refuse(what, instead);
        }
        self.attributes()?;
        if self.language.cpp && self.word() == "template" && !self.in_block() {
            let kind = self.template_declaration()?;
            return Ok(Stmt {
                kind,
                range: start..self.tokens.last().range.end,
            });
        }
        self.refuse_first_word()?;
        let label = self.tokens.peek_at(1) == Tok::Punct(":");
        let kind = match (self.tokens.peek(), self.word()) {
            (Tok::Punct(";"), _) => {
                self.next();
                StmtKind::Empty
            }
            (Tok::Punct("{"), _) => self.block()?,
            (_, "if") => self.if_statement(start)?,
            (_, "while") => self.while_loop()?,
            (_, "do") => self.do_loop()?,
            (_, "for") => self.for_loop()?,
            (_, word) if inline_asm::begins(word) => {
                let assembly = self.assembly()?;
                self.ended(StmtKind::Assembly(assembly.into()))?
            }
            (_, "break") => {
                self.next();
                self.ended(StmtKind::Break)?
            }
            (_, "goto") => {
                self.next();
                let name = self.new_name("a label")?;
                self.ended(StmtKind::Goto(name))?
            }
            (_, "continue") => {
                self.next();
                self.ended(StmtKind::Continue)?
            }
            (_, "return") => self.return_statement()?,
            (_, "switch") => {
                self.next();
                let (before, value) = self.head(true)?;
                let body = Box::new(self.statement()?);
                self.behind(before, StmtKind::Switch { value, body }, start)
            }
            (_, "case") => self.case()?,
            (_, "default") if label => {
                self.next();
                self.next();
                StmtKind::Case(None)
            }
            (_, "static_assert" | "_Static_assert")
                if self.tokens.peek_at(1) == Tok::Punct("(") =>
            {
                self.static_assertion()?
            }
            (Tok::Name, _) if label => self.labelled()?,
            (Tok::Name, _) if begins(self) => {
                let call = self.host_call()?;
                self.ended(call)?
            }
            (Tok::Name, "__attribute__" | "__attribute") => self.declared()?,
            (Tok::Name, _) if self.declares() => self.declared()?,
            (Tok::Name, _) if self.declares_group() => {
                let all = self.group()?;
                self.ended(StmtKind::Declare(all))?
            }
            (Tok::Name, _) if self.declares_reference() => {
                let all = self.refer()?;
                self.ended(StmtKind::Declare(all))?
            }
            _ => self.expression_statement()?,
        };
        let end = self.tokens.last().range.end.max(start);
        Ok(Stmt {
            kind,
            range: start..end,
        })
    }

    /// Takes the `;` behind a statement.
    fn ended(&mut self, kind: StmtKind) -> Parsed<StmtKind> {
        self.expect(";")?;
        Ok(kind)
    }

    /// Refuses a statement that begins with an unsupported word, used as a name of the language.
    fn refuse_first_word(&mut self) -> Parsed<()> {
        let label = self.tokens.peek_at(1) == Tok::Punct(":");
        if self.tokens.peek() != Tok::Name || label || self.names_class(0) {
            return Ok(());
        }
        let operated = match self.tokens.peek_at(1) {
            Tok::Punct("=" | "." | "->" | "[" | "++" | "--") => true,
            Tok::Punct(sign) => ASSIGNMENTS.iter().any(|a| a.0 == sign),
            _ => false,
        };
        if operated && !is_keyword(self.word(), self.language.dialect) {
            return Ok(());
        }
        self.refused_word(&self.tokens.range())
    }

    /// `if (cond) then else other`
    fn if_statement(&mut self, start: usize) -> Parsed<StmtKind> {
        self.next();
        let constant = self.language.cpp && self.word() == "constexpr";
        if constant {
            self.next();
        }
        let (before, cond) = self.head(true)?;
        let then = Box::new(self.statement()?);
        let mut other = None;
        if self.word() == "else" {
            self.next();
            other = Some(Box::new(self.statement()?));
        }
        let choice = StmtKind::If {
            constant,
            cond,
            then,
            other,
        };
        Ok(self.behind(before, choice, start))
    }

    /// `while (cond) body`
    fn while_loop(&mut self) -> Parsed<StmtKind> {
        self.next();
        let (before, cond) = self.head(false)?;
        let range = cond.range.clone();
        let body = self.statement()?;
        if before.is_empty() {
            return Ok(StmtKind::Loop {
                init: None,
                cond: Some(cond),
                step: None,
                body: body.into(),
                test_last: false,
            });
        }
        // Each iteration declares the variables of the condition anew.
        let test = StmtKind::If {
            constant: false,
            cond,
            then: StmtKind::Empty.at(&range).into(),
            other: Some(StmtKind::Break.at(&range).into()),
        };
        let all = before.into_iter().chain([test.at(&range), body]).collect();
        Ok(StmtKind::Loop {
            init: None,
            cond: None,
            step: None,
            body: StmtKind::Block(all).at(&range).into(),
            test_last: false,
        })
    }

    /// `do body while (cond);`
    fn do_loop(&mut self) -> Parsed<StmtKind> {
        self.next();
        let body = Box::new(self.statement()?);
        if self.word() != "while" {
            return self.unexpected("`while`");
        }
        self.next();
        self.expect("(")?;
        let cond = Some(self.comma()?);
        self.expect(")")?;
        self.ended(StmtKind::Loop {
            init: None,
            cond,
            step: None,
            body,
            test_last: true,
        })
    }

    /// `return value;`
    fn return_statement(&mut self) -> Parsed<StmtKind> {
        self.next();
        let value = match self.tokens.peek() {
            Tok::Punct(";") => None,
            Tok::Punct("{") if self.language.cpp => {
                Some(self.braced(self.tokens.range().start, None)?)
            }
            _ => Some(self.comma()?),
        };
        self.ended(StmtKind::Return(value))
    }

    /// `case value:`
    fn case(&mut self) -> Parsed<StmtKind> {
        self.next();
        let value = self.expression()?;
        if self.tokens.peek() == Tok::Punct("...") {
            return self.refuse("ranges of labels are", "write one `case` for each value");
        }
        self.expect(":")?;
        Ok(StmtKind::Case(Some(value)))
    }

    /// `static_assert(holds, "message");`
    fn static_assertion(&mut self) -> Parsed<StmtKind> {
        self.next();
        self.next();
        let holds = self.expression()?;
        if self.eat(",") && self.string().is_none() {
            return self.unexpected("a message in quotes");
        }
        self.expect(")")?;
        self.ended(StmtKind::Assert(holds))
    }

    /// `B1: barrier();`
    fn labelled(&mut self) -> Parsed<StmtKind> {
        let word = self.word();
        let label = self.next();
        self.next();
        let number = word.strip_prefix('B').and_then(|n| n.parse::<u32>().ok());
        let short = word.starts_with(|c: char| c.is_ascii_uppercase()) && word.len() <= 3;
        let of_barrier = short && !self.jumps_to(word);
        if number.is_none() && !of_barrier {
            let stmt = match self.tokens.peek() {
                Tok::Punct("}") => Stmt {
                    kind: StmtKind::Empty,
                    range: label.clone(),
                },
                _ => self.statement()?,
            };
            return Ok(StmtKind::Labelled(label, Box::new(stmt)));
        }
        let Some(number) = number else {
            let message = format!("`{word}` is not a label of a barrier");
            let expected = "a label such as `B1:`, the barrier's instance";
            return self.fail(label, message, expected);
        };
        let barrier = Box::new(self.statement()?);
        Ok(StmtKind::Instance {
            number: i64::from(number),
            barrier,
        })
    }

    /// Whether the code has `goto` with this word behind it.
    fn jumps_to(&self, word: &str) -> bool {
        let mut jumps = self.text.as_str().split("goto ").skip(1);
        jumps.any(|rest| {
            let rest = rest.trim_start().strip_prefix(word);
            rest.is_some_and(|rest| rest.trim_start().starts_with(';'))
        })
    }

    /// `value;`
    fn expression_statement(&mut self) -> Parsed<StmtKind> {
        let value = self.comma()?;
        // `st.weak [x], 1` is PTX.
        if let ExprKind::Comma(first, _) = &value.kind
            && let ExprKind::Index(of, _) = &first.kind
            && matches!(of.kind, ExprKind::Field(..))
        {
            let expected = "an assignment or a call";
            return self.fail(first.range.clone(), "this does nothing", expected);
        }
        self.ended(StmtKind::Expr(value))
    }

    fn block(&mut self) -> Parsed<StmtKind> {
        self.body().map(StmtKind::Block)
    }

    /// Whether the parser is inside a block.
    pub(super) fn in_block(&self) -> bool {
        self.tokens.depth() > 1
    }

    /// Parses the statements of a block.
    pub(super) fn body(&mut self) -> Parsed<Vec<Stmt>> {
        let open = self.next();
        let mut all = Vec::new();
        loop {
            match self.tokens.peek() {
                Tok::Punct("}") => {
                    self.next();
                    return Ok(all);
                }
                Tok::End => return self.fail(open, "this block is not closed", "`}` after it"),
                _ => self.one(&mut all),
            }
        }
    }

    /// Parses the head of a statement in parentheses. Statements may precede the condition, as in
    /// `int t = f(); t > 0`; the condition may declare a variable, as in `int t = f()` (ISO C++17,
    /// stmt.select).
    fn head(&mut self, with_statement: bool) -> Parsed<(Vec<Stmt>, Expr)> {
        self.expect("(")?;
        let mut before = Vec::new();
        loop {
            let start = self.tokens.range().start;
            let (kind, cond) = if self.declares() {
                if !self.language.cpp {
                    let range = self.tokens.range();
                    return self.fail(
                        range,
                        "a declaration is not a condition in C",
                        "an expression",
                    );
                }
                let declaration = self.declaration()?;
                let names = declaration
                    .all
                    .iter()
                    .filter(|d| d.value.is_some())
                    .map(|d| &d.declarator.name);
                let names: Vec<_> = names.cloned().collect();
                let cond = match names.as_slice() {
                    [name] if declaration.all.len() == 1 => {
                        Some(self.node(ExprKind::Name, name.clone(), 0)?)
                    }
                    _ => None,
                };
                (StmtKind::Declare(declaration), cond)
            } else if self.language.cpp && self.tokens.peek() == Tok::Punct(";") {
                (StmtKind::Empty, None)
            } else {
                let value = self.comma()?;
                if self.tokens.peek() == Tok::Punct(")") {
                    self.next();
                    return Ok((before, value));
                }
                (StmtKind::Expr(value), None)
            };
            before.push(Stmt {
                kind,
                range: start..self.tokens.last().range.end.max(start),
            });
            if self.language.cpp && with_statement && before.len() == 1 && self.eat(";") {
                continue;
            }
            self.expect(")")?;
            return match cond {
                Some(cond) => Ok((before, cond)),
                None => self.fail(
                    start..self.tokens.last().range.end,
                    "this declares no condition",
                    "one name with a value",
                ),
            };
        }
    }

    /// A statement preceded by others in a block that holds only these.
    fn behind(&self, mut before: Vec<Stmt>, kind: StmtKind, start: usize) -> StmtKind {
        if before.is_empty() {
            return kind;
        }
        before.push(Stmt {
            kind,
            range: start..self.tokens.last().range.end.max(start),
        });
        StmtKind::Block(before)
    }

    /// Skips attributes without an effect that a model could see: `[[likely]]`.
    pub(super) fn attributes(&mut self) -> Parsed<()> {
        while self.tokens.peek() == Tok::Punct("[") && self.tokens.peek_at(1) == Tok::Punct("[") {
            if !self.language.cpp {
                let range = self.tokens.range();
                return self.fail(range, "C has no attributes in `[[ ]]`", "a statement");
            }
            self.next();
            self.next();
            let known = matches!(
                self.word(),
                "likely"
                    | "unlikely"
                    | "fallthrough"
                    | "nodiscard"
                    | "maybe_unused"
                    | "noreturn"
                    | "deprecated"
            );
            if !known {
                return self.refuse(
                    "such attributes are",
                    "leave it out, if nothing depends on it",
                );
            }
            while self.tokens.peek() != Tok::Punct("]") && self.tokens.peek() != Tok::End {
                self.next();
            }
            self.expect("]")?;
            self.expect("]")?;
        }
        Ok(())
    }

    /// `a) body` of `for (int v : a) body`.
    fn over_elements(&mut self, specifiers: Specifiers, element: Declarator) -> Parsed<StmtKind> {
        let word = self.str(&element.name);
        self.variables.insert(word);
        let start = self.tokens.range().start;
        let over = match self.tokens.peek() {
            Tok::Punct("{") => self.braced(start, None)?,
            _ => self.comma()?,
        };
        self.expect(")")?;
        let body = Box::new(self.statement()?);
        let element = TypeName {
            specifiers,
            declarator: element,
        };
        Ok(StmtKind::Elements {
            element: element.into(),
            over,
            body,
        })
    }

    fn for_loop(&mut self) -> Parsed<StmtKind> {
        self.next();
        self.expect("(")?;
        let start = self.tokens.range().start;
        let init = match self.tokens.peek() {
            Tok::Punct(";") => None,
            _ if self.declares() => {
                let specifiers = self.specifiers()?;
                let first = self.declarator(true)?;
                if self.language.cpp && self.eat(":") {
                    return self.over_elements(specifiers, first);
                }
                Some(StmtKind::Declare(self.declarators(specifiers, first)?))
            }
            _ => Some(StmtKind::Expr(self.comma()?)),
        };
        let init = init.map(|kind| {
            Box::new(Stmt {
                kind,
                range: start..self.tokens.range().start,
            })
        });
        self.expect(";")?;
        let cond = match self.tokens.peek() {
            Tok::Punct(";") => None,
            _ if self.language.cpp && self.declares() => {
                return self.refuse(
                    "declarations as the condition of `for` are",
                    "declare it before the loop",
                );
            }
            _ => Some(self.comma()?),
        };
        self.expect(";")?;
        let start = self.tokens.range().start;
        let step = if self.tokens.peek() == Tok::Punct(")") {
            None
        } else {
            Some(self.comma()?)
        };
        let step = step.map(|e| {
            Box::new(Stmt {
                kind: StmtKind::Expr(e),
                range: start..self.tokens.range().start,
            })
        });
        self.expect(")")?;
        let body = Box::new(self.statement()?);
        Ok(StmtKind::Loop {
            init,
            cond,
            step,
            body,
            test_last: false,
        })
    }
}

/// The same text with the lifetime of the tokens; empty if it is no punctuation, so it matches no
/// token.
fn punct_of(text: &str) -> &'static str {
    super::lex::punctuation(text).unwrap_or("")
}
