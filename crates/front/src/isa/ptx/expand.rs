//! Expands blocks, functions and wide registers: makes each name unique, replaces calls by the
//! function's code, and replaces registers of 128 bits by their halves.
//!
//! # Invariants
//! - The resulting text has no functions and no calls. Every byte of it maps to a place in the
//!   file; a function's body appears once for each call.
//! - A name that an inner block or a function declares gets the block's number, so it never clashes
//!   with a name outside.
//! - A parameter in the parameter space becomes a register for each accessed piece. Pieces do not
//!   overlap.
//! - A register `q` of 128 bits becomes the vector `{q$lo, q$hi}` of registers of 64 bits wherever
//!   code names it.
//!
//! # Sources
//! - PTX ISA 9.4, *Statements* (blocks are scopes of names), *Kernel and Function Directives*
//!   (`.func`), *Control Flow Instructions* (`call`, `ret`), *Abstracting the ABI* (parameters are
//!   passed by value).
//!
//! # Where we differ
//! - Recursion is refused, and so is a function that the text does not declare.
//! - A call of a function that is declared without a body is a call of an unknown function. So the
//!   code is read, and an execution that reaches the call has no verdict.
//! - The target of a call through a register is known if one `mov` sets it, possibly through
//!   parameters and registers with no other writer. Otherwise it is a call of an unknown function
//!   ([`super::control`]).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::indirect;
use super::lex::{PtxToken, lex};
use super::table::bits_named;
use diag::{ErrorReported, MappedText, Sink, Span, Token};

/// The form and description of `call`, for the list of instructions. It has no row, because
/// expansion removes calls before instructions are looked up.
#[cfg(test)]
pub(super) const CALL: (&str, &str) = (
    "`call{.uni} (results), function, (parameters)`",
    "the code of the function, in the place of the call",
);

/// The function that a failed assertion calls: it prints and stops the kernel, as `trap` does (CUDA
/// C++ Programming Guide, Assertion).
const ASSERTION: &str = "__assertfail";

/// The function behind `printf`. It prints data that the thread wrote for it alone, which orders
/// nothing (CUDA C++ Programming Guide, Formatted Output).
const PRINT: &str = "vprintf";

/// Whether calls of a function are lowered by its name, without any declaration.
pub(super) fn has_meaning_of_its_own(name: &str) -> bool {
    [ASSERTION, PRINT].contains(&name)
}

/// The type of wide registers, and that of their halves.
const WIDE: &str = ".b128";
const HALF: &str = ".b64";
const HALVES: [&str; 2] = ["$lo", "$hi"];

/// The maximum length of the expanded text.
const LONGEST: usize = 1 << 20;

/// The text without blocks, functions, calls and wide registers; `None` if it has none of these.
pub(super) fn expand(text: &MappedText, sink: &mut Sink) -> Option<MappedText> {
    let tokens = lex(text.as_str());
    if !tokens.iter().any(|token| is_expanded(text, token)) {
        return None;
    }
    let mut separator = "$".to_owned();
    while text.as_str().match_indices(&separator).any(|(at, _)| {
        text.as_str()[at + separator.len()..].starts_with(|c: char| c.is_ascii_digit())
    }) {
        separator.push('$');
    }
    let mut unknown = HashSet::new();
    let before = sink.mark();
    loop {
        let mut expander = Expander {
            text,
            tokens: &tokens,
            sink: &mut *sink,
            out: MappedText::new(),
            functions: HashMap::new(),
            separator: separator.clone(),
            scopes: Vec::new(),
            calls: Vec::new(),
            pieces: HashMap::new(),
            addressed: addressed(text, &tokens),
            followed: Vec::new(),
            taken: HashSet::new(),
            unknown: unknown.clone(),
            returned: BTreeSet::new(),
            unset: BTreeSet::new(),
            fresh: 0,
            full: false,
        };
        let main = expander.functions();
        expander.scopes.push(BlockScope::default());
        for range in main {
            expander.labels(range.clone());
            expander.walk(range);
        }
        expander.write_returned();
        let (out, full) = (expander.out, expander.full);
        let followed = expander.followed.into_iter();
        let again =
            followed.filter(|(_, holders)| indirect::is_written_again(out.as_str(), holders));
        let known = unknown.len();
        unknown.extend(again.map(|(at, _)| at));
        if unknown.len() == known {
            // If the text grew too long, return none of it: half of it would name things that
            // nothing declares.
            return Some(if full { MappedText::new() } else { out });
        }
        sink.take_back(before);
    }
}

/// Whether a token is part of a construct that [`expand`] replaces.
fn is_expanded(text: &MappedText, token: &Token<PtxToken>) -> bool {
    match token.kind {
        PtxToken::Punct(c) => c == '{',
        PtxToken::Word => {
            let word = &text.as_str()[token.range.clone()];
            word == ".func"
                || word == WIDE
                || opcode(word) == "call"
                || word.split('.').any(is_space)
        }
        _ => false,
    }
}

/// The opcode of an instruction without its qualifiers.
fn opcode(word: &str) -> &str {
    word.split('.').next().unwrap_or(word)
}

/// Whether a qualifier names the parameter space.
fn is_space(qualifier: &str) -> bool {
    qualifier.starts_with("param")
}

/// The second operands of `mov` and `cvta`, which may be names that code takes the address of.
fn addressed<'a>(text: &'a MappedText, tokens: &[Token<PtxToken>]) -> HashSet<&'a str> {
    let word = |t: &Token<PtxToken>| &text.as_str()[t.range.clone()];
    tokens
        .windows(4)
        .filter(|four: &&[Token<PtxToken>]| {
            four[0].kind == PtxToken::Word
                && ["mov", "cvta"].contains(&opcode(word(&four[0])))
                && four[2].kind == PtxToken::Punct(',')
        })
        .map(|four| word(&four[3]))
        .collect()
}

/// A parameter in a function's declaration.
#[derive(Clone)]
struct Formal {
    /// Whether it is in the parameter space, rather than a register.
    param: bool,
    /// Its type, with the leading dot.
    ty: String,
    name: String,
}

#[derive(Clone)]
struct FuncDefinition {
    returns: Vec<Formal>,
    params: Vec<Formal>,
    /// The range of its tokens between the braces; `None` for a declaration without a body.
    body: Option<Range<usize>>,
}

/// The names that a block declares.
#[derive(Default)]
struct BlockScope {
    /// The block's number, which becomes part of its names. 0 is the outermost block; its names
    /// stay.
    number: usize,
    /// Whether this is a function's outermost block, from which outer names are not visible.
    function: bool,
    /// Registers, labels and parameters. `families` maps the stem of a family such as `%r<9>` to
    /// its size and kind.
    names: HashMap<String, NameDeclaration>,
    families: HashMap<String, (i64, NameDeclaration)>,
}

impl BlockScope {
    /// The declaration of a name, by itself or as a member of a family.
    fn find(&self, name: &str) -> Option<NameDeclaration> {
        if let Some(found) = self.names.get(name) {
            return Some(found.clone());
        }
        let digits = &name[stem(name).len()..];
        let number = digits
            .parse::<i64>()
            .ok()
            .filter(|_| digits == "0" || !digits.starts_with('0'))?;
        self.families
            .get(stem(name))
            .filter(|family| number < family.0)
            .map(|family| family.1.clone())
    }
}

#[derive(Clone)]
enum NameDeclaration {
    Name,
    /// A register of 128 bits.
    Wide,
    /// A variable in the parameter space.
    Param,
    /// A formal parameter: the caller's variable, and whether the function may write it.
    Bound(String, bool),
}

/// The operands of a call, as positions of tokens.
struct InlinedCall {
    returns: Vec<usize>,
    callee: usize,
    /// The name of the function.
    name: String,
    params: Vec<usize>,
    /// The position after the operands.
    end: usize,
}

/// The parameters of a call: those in the parameter space are bound to names of the caller, those
/// in registers are copied before or after the call.
#[derive(Default)]
struct PassedParams {
    bound: Vec<(String, NameDeclaration)>,
    before: Vec<(Formal, String)>,
    after: Vec<(Formal, String)>,
}

/// A call whose code is being inserted.
struct OpenCall {
    name: String,
    /// The label that `ret` jumps to.
    end: String,
}

struct Expander<'a> {
    text: &'a MappedText,
    tokens: &'a [Token<PtxToken>],
    sink: &'a mut Sink,
    out: MappedText,
    functions: HashMap<String, FuncDefinition>,
    /// The text between a name and the number of its block.
    separator: String,
    scopes: Vec<BlockScope>,
    calls: Vec<OpenCall>,
    /// The accessed pieces of each parameter, as offset and size.
    pieces: HashMap<String, Vec<(i64, i64)>>,
    /// Names that instructions take the address of.
    addressed: HashSet<&'a str>,
    /// Resolved calls through registers, each with the names that pass the function's address on.
    followed: Vec<(usize, Vec<String>)>,
    /// Functions that code takes the address of.
    taken: HashSet<&'a str>,
    /// Calls through registers that count as unknown, because another instruction writes a register
    /// on the way.
    unknown: HashSet<usize>,
    /// Results of calls of unknown functions: parameters, and undeclared registers.
    returned: BTreeSet<String>,
    unset: BTreeSet<String>,
    fresh: usize,
    full: bool,
}

impl<'a> Expander<'a> {
    fn kind(&self, at: usize) -> PtxToken {
        self.tokens.get(at).map_or(PtxToken::End, |t| t.kind)
    }

    fn range(&self, at: usize) -> Range<usize> {
        self.tokens[at.min(self.tokens.len() - 1)].range.clone()
    }

    fn word(&self, at: usize) -> &'a str {
        if self.kind(at) == PtxToken::Word {
            &self.text.as_str()[self.range(at)]
        } else {
            ""
        }
    }

    fn is(&self, at: usize, c: char) -> bool {
        self.kind(at) == PtxToken::Punct(c)
    }

    fn skip_lines(&self, mut at: usize) -> usize {
        while self.kind(at) == PtxToken::Newline {
            at += 1;
        }
        at
    }

    fn error(
        &mut self,
        id: &'static str,
        at: usize,
        message: String,
        label: &str,
    ) -> ErrorReported {
        let span = self.text.span(self.range(at));
        self.sink.error(id, span, message, |d| d.label(label));
        ErrorReported
    }

    /// The position after the brace that closes the one at `at`.
    fn closed(&mut self, at: usize) -> usize {
        let mut depth = 0;
        for i in at..self.tokens.len() {
            match self.kind(i) {
                PtxToken::Punct('{') => depth += 1,
                PtxToken::Punct('}') if depth == 1 => return i + 1,
                PtxToken::Punct('}') => depth -= 1,
                _ => {}
            }
        }
        self.error(
            "syntax",
            at,
            "this `{` is never closed".into(),
            "expected `}` after it",
        );
        self.tokens.len() - 1
    }

    /// Finds the functions. Returns the ranges of all other code, which is the thread's.
    fn functions(&mut self) -> Vec<Range<usize>> {
        let (mut main, mut from, mut at) = (Vec::new(), 0, 0);
        while self.kind(at) != PtxToken::End {
            if self.word(at) != ".func" {
                at += 1;
                continue;
            }
            let mut start = at;
            while start > from && matches!(self.word(start - 1), ".visible" | ".extern" | ".weak") {
                start -= 1;
            }
            main.push(from..start);
            at = match self.function(at + 1) {
                Ok(end) => end,
                // The error was reported; continue after the function's code.
                Err(ErrorReported) => {
                    let mut end = at + 1;
                    while !matches!(self.kind(end), PtxToken::End | PtxToken::Punct('{' | ';')) {
                        end += 1;
                    }
                    if self.is(end, '{') {
                        self.closed(end)
                    } else {
                        end
                    }
                }
            };
            from = at;
        }
        main.push(from..at);
        main
    }

    fn function(&mut self, at: usize) -> Result<usize, ErrorReported> {
        let mut at = self.skip_lines(at);
        let mut returns = Vec::new();
        if self.is(at, '(') {
            (returns, at) = self.formals(at)?;
        }
        at = self.skip_lines(at);
        let name = self.word(at).to_owned();
        let place = at;
        if name.is_empty() || name.starts_with('.') {
            return Err(self.error(
                "syntax",
                at,
                "expected the name of a function".into(),
                "expected a name",
            ));
        }
        at = self.skip_lines(at + 1);
        let mut params = Vec::new();
        if self.is(at, '(') {
            (params, at) = self.formals(at)?;
        }
        while !matches!(self.kind(at), PtxToken::End | PtxToken::Punct('{' | ';')) {
            at += 1;
        }
        let (body, end) = if self.is(at, '{') {
            let end = self.closed(at);
            (Some(at + 1..(end - 1).max(at + 1)), end)
        } else {
            (None, (at + 1).min(self.tokens.len() - 1))
        };
        if body.is_some() && self.functions.get(&name).is_some_and(|f| f.body.is_some()) {
            let message = format!("the function `{name}` is defined twice");
            return Err(self.error("duplicate-name", place, message, "defined again here"));
        }
        if body.is_some() || !self.functions.contains_key(&name) {
            self.functions.insert(
                name,
                FuncDefinition {
                    returns,
                    params,
                    body,
                },
            );
        }
        Ok(end)
    }

    /// Reads a list of declarations in parentheses. Returns the position after it, too.
    fn formals(&mut self, at: usize) -> Result<(Vec<Formal>, usize), ErrorReported> {
        let mut all = Vec::new();
        let mut at = self.skip_lines(at + 1);
        while !self.is(at, ')') {
            let param = match self.word(at) {
                ".param" => true,
                ".reg" => false,
                _ => {
                    let message = "expected a parameter of the function".into();
                    return Err(self.error("syntax", at, message, "expected `.param` or `.reg`"));
                }
            };
            let mut ty = String::new();
            at += 1;
            while self.word(at).starts_with('.') || matches!(self.kind(at), PtxToken::Int(_)) {
                let word = self.word(at);
                if bits_named(word.trim_start_matches('.')).is_some() {
                    word.clone_into(&mut ty);
                } else if !param && !word.is_empty() {
                    let message = format!("registers of type `{word}` are not supported");
                    return Err(self.error(
                        "unsupported-type",
                        at,
                        message,
                        "expected an integer type, `.f32`, `.f64` or `.pred`",
                    ));
                }
                at += 1;
            }
            let name = self.word(at).to_owned();
            if name.is_empty() {
                let message = "expected the name of a parameter".into();
                return Err(self.error("syntax", at, message, "expected a name"));
            }
            at += 1;
            if self.is(at, '[') {
                at += 3;
            }
            all.push(Formal { param, ty, name });
            at = self.skip_lines(at);
            if self.is(at, ',') {
                at = self.skip_lines(at + 1);
            } else if !self.is(at, ')') {
                let message = "expected `,` or `)` behind a parameter".into();
                return Err(self.error("syntax", at, message, "expected `,` or `)`"));
            }
        }
        Ok((all, at + 1))
    }

    /// The positions of the names in the declaration at `at`, each with its count if it is a
    /// family.
    fn names(&self, at: usize) -> Vec<(usize, Option<i64>)> {
        let mut names = Vec::new();
        let mut at = at + 1;
        while self.word(at).starts_with('.') || matches!(self.kind(at), PtxToken::Int(_)) {
            at += 1;
        }
        while !self.word(at).is_empty() {
            let name = at;
            at += 1;
            let mut count = None;
            if self.is(at, '<') {
                count = match self.kind(at + 1) {
                    PtxToken::Int(n) => Some(n),
                    _ => None,
                };
                at += 3;
            } else if self.is(at, '[') {
                at += 3;
            }
            names.push((name, count));
            if !self.is(at, ',') {
                break;
            }
            at = self.skip_lines(at + 1);
        }
        names
    }

    /// Declares the labels of a block in advance, because code may use them before they are set.
    fn labels(&mut self, range: Range<usize>) {
        let (mut depth, mut begins) = (0, true);
        for at in range {
            match self.kind(at) {
                PtxToken::Punct('{') => depth += 1,
                PtxToken::Punct('}') => depth -= 1,
                PtxToken::Word if begins && depth == 0 && self.is(at + 1, ':') => {
                    let name = self.word(at).to_owned();
                    self.declare(name, NameDeclaration::Name);
                }
                _ => {}
            }
            begins = matches!(
                self.kind(at),
                PtxToken::Newline | PtxToken::Punct(';' | '{' | '}' | ':')
            );
        }
    }

    fn declare(&mut self, name: String, what: NameDeclaration) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name, what);
        }
    }

    fn enter(&mut self, function: bool) {
        self.fresh += 1;
        self.scopes.push(BlockScope {
            number: self.fresh,
            function,
            ..BlockScope::default()
        });
    }

    /// The name in the resulting text for a name in the source, and its declaration in a block.
    fn resolve(&self, name: &str) -> (String, Option<NameDeclaration>) {
        for scope in self.scopes.iter().rev() {
            if let Some(found) = scope.find(name) {
                let called = match &found {
                    NameDeclaration::Bound(actual, _) => actual.clone(),
                    NameDeclaration::Wide => {
                        format!("{{{}}}", self.halves(name, scope.number).join(", "))
                    }
                    _ => self.numbered(name, scope.number),
                };
                return (called, Some(found));
            }
            if scope.function {
                break;
            }
        }
        (name.to_owned(), None)
    }

    /// A name with the number of the block that declares it.
    fn numbered(&self, name: &str, number: usize) -> String {
        if number == 0 {
            return name.to_owned();
        }
        let stem = stem(name);
        format!("{stem}{}{number}_{}", self.separator, &name[stem.len()..])
    }

    /// The names of a wide register's halves, the lower one first.
    fn halves(&self, name: &str, number: usize) -> [String; 2] {
        let stem = stem(name);
        HALVES.map(|half| self.numbered(&format!("{stem}{half}{}", &name[stem.len()..]), number))
    }

    fn put(&mut self, text: &str, span: Span) {
        self.out.push_opaque(text, span);
    }

    /// Copies a token and the blanks after it.
    fn copy(&mut self, at: usize, next: usize) {
        let (range, end) = (self.range(at), self.range(next).start);
        let name = self.word(at);
        let (called, _) = self.resolve(name);
        if name.is_empty() || name.starts_with('.') || called == name {
            self.out.push_slice(self.text, range.start..end);
            return;
        }
        self.put(&called, self.text.span(range.clone()));
        self.out.push_slice(self.text, range.end..end);
    }

    /// The end of the statement that begins at `at`.
    fn statement_end(&self, at: usize) -> usize {
        // A call can extend over several lines.
        let first = if self.is(at, '@') {
            at + if self.is(at + 1, '!') { 3 } else { 2 }
        } else {
            at
        };
        let mut depth =
            usize::from(opcode(self.word(first)) == "call" || self.word(first) == ".branchtargets");
        for i in at..self.tokens.len() {
            match self.kind(i) {
                PtxToken::Punct('{' | '(' | '[') => depth += 1,
                PtxToken::Punct('}' | ')' | ']') if depth > 0 => depth -= 1,
                PtxToken::End | PtxToken::Punct(';' | '}') => return i,
                PtxToken::Newline if depth == 0 && !self.is(i - 1, ',') => return i,
                _ => {}
            }
        }
        self.tokens.len() - 1
    }

    /// Writes the statements of a block.
    fn walk(&mut self, range: Range<usize>) {
        let mut at = range.start;
        while at < range.end {
            if self.out.as_str().len() > LONGEST {
                if !std::mem::replace(&mut self.full, true) {
                    let message = "inlining each call makes too much code".into();
                    self.error("too-many-instructions", at, message, "at this point");
                }
                return;
            }
            match self.kind(at) {
                PtxToken::Newline | PtxToken::Punct(';' | '}') => {
                    self.out
                        .push_slice(self.text, self.range(at).start..self.range(at + 1).start);
                    at += 1;
                }
                PtxToken::Punct('{') => {
                    let end = self.closed(at).min(range.end);
                    let inner = at + 1..if self.is(end - 1, '}') { end - 1 } else { end };
                    self.enter(false);
                    self.labels(inner.clone());
                    self.put("\n", self.text.span(self.range(at)));
                    self.walk(inner);
                    self.put("\n", self.text.span(self.range(end - 1)));
                    self.scopes.pop();
                    at = end;
                }
                PtxToken::Word if self.is(at + 1, ':') => {
                    self.copy(at, at + 1);
                    self.out.push_slice(
                        self.text,
                        self.range(at + 1).start..self.range(at + 2).start,
                    );
                    at += 2;
                }
                _ => {
                    let end = self.statement_end(at).min(range.end).max(at + 1);
                    let _ = self.statement(at..end);
                    at = end;
                }
            }
        }
    }

    fn statement(&mut self, range: Range<usize>) -> Result<(), ErrorReported> {
        let first = self.word(range.start);
        match first {
            ".reg" | ".param" => return self.declaration(range),
            // The target of a call through a register comes from the register, so these directives
            // are dropped.
            ".callprototype" | ".calltargets" => return Ok(()),
            ".branchtargets" => {
                range.for_each(|at| self.copy(at, at + 1));
                return Ok(());
            }
            word if word.starts_with('.') => {
                self.out.push_slice(
                    self.text,
                    self.range(range.start).start..self.range(range.end).start,
                );
                return Ok(());
            }
            _ => {}
        }
        let mut at = range.start;
        if self.is(at, '@') {
            at += if self.is(at + 1, '!') { 3 } else { 2 };
        }
        if opcode(self.word(at)) == "call" {
            return self.call(range, at);
        }
        self.take_function(&range);
        // Write the whole instruction or, after an error, nothing.
        let before = std::mem::take(&mut self.out);
        let done = self.instruction(range, at);
        let statement = std::mem::replace(&mut self.out, before);
        if done.is_ok() {
            self.out.push_slice(&statement, 0..statement.as_str().len());
        }
        done
    }

    /// Writes an instruction that is not a call; `at` is the position of its opcode.
    fn instruction(&mut self, range: Range<usize>, mut at: usize) -> Result<(), ErrorReported> {
        let word = self.word(at);
        let of_param = word.split('.').any(is_space);
        if of_param
            && opcode(word) == "ld"
            && range
                .clone()
                .any(|i| self.is(i, '[') && self.in_memory(i + 1))
        {
            let plain: Vec<&str> = word.split('.').filter(|q| !is_space(q)).collect();
            for i in range {
                match i == at {
                    true => self.put(
                        &format!("{} ", plain.join(".")),
                        self.text.span(self.range(at)),
                    ),
                    false => self.copy(i, i + 1),
                }
            }
            return Ok(());
        }
        if of_param
            && let Some((width, vector)) = ["v2", "v4"]
                .iter()
                .zip([2, 4])
                .find_map(|(v, width)| word.split('.').any(|q| q == *v).then_some((width, *v)))
        {
            return self.elements(range, at, width, vector);
        }
        for i in range.start..at {
            self.copy(i, i + 1);
        }
        if opcode(word) == "ret"
            && let Some(called) = self.calls.last()
        {
            let text = format!("bra {}", called.end);
            self.put(&text, self.text.span(self.range(at)));
            self.put(" ", self.text.span(self.range(at)));
            at += 1;
        } else if at < range.end {
            self.out
                .push_slice(self.text, self.range(at).start..self.range(at + 1).start);
            at += 1;
        }
        while at < range.end {
            if of_param && self.is(at, '[') {
                let (register, end) = self.piece(at, word, 0)?;
                let (from, to) = (self.range(at).start, self.range(end - 1).end);
                self.put(&register, self.text.span(from..to));
                self.out.push_slice(self.text, to..self.range(end).start);
                at = end;
                continue;
            }
            if matches!(
                self.resolve(self.word(at)),
                (_, Some(NameDeclaration::Wide))
            ) && !word.contains(WIDE)
            {
                let message = format!("`{}` is a register of 128 bits", self.word(at));
                return Err(self.error(
                    "type-mismatch",
                    at,
                    message,
                    "expected an instruction with `.b128`",
                ));
            }
            self.copy(at, at + 1);
            at += 1;
        }
        Ok(())
    }

    /// Whether an access to the parameter space is to memory: through a register, or to a kernel
    /// parameter that code takes the address of.
    fn in_memory(&self, at: usize) -> bool {
        let name = self.word(at);
        match self.resolve(name).1 {
            Some(NameDeclaration::Name) => true,
            Some(_) => false,
            None => name.starts_with('%') || self.addressed.contains(name),
        }
    }

    /// Writes an access to a vector of a parameter, element by element; `at` is the position of its
    /// opcode.
    fn elements(
        &mut self,
        range: Range<usize>,
        at: usize,
        width: usize,
        vector: &str,
    ) -> Result<(), ErrorReported> {
        let word = self.word(at);
        let one = word.replacen(&format!(".{vector}"), "", 1);
        let find = |c| range.clone().find(|i| self.is(*i, c));
        let (Some(open), Some(place)) = (find('{'), find('[')) else {
            let message = format!("`.{vector}` takes a vector of {width} elements");
            return Err(self.error("wrong-operand", at, message, "expected `{…}` and `[name]`"));
        };
        if !self.is(open + 2 * width, '}') {
            let message = format!("`.{vector}` takes a vector of {width} elements");
            return Err(self.error("wrong-operand", open, message, "expected as many"));
        }
        let span = self
            .text
            .span(self.range(range.start).start..self.range(range.end - 1).end);
        for i in 0..width {
            for p in range.start..at {
                self.copy(p, p + 1);
            }
            let (register, _) = self.piece(place, word, i as i64)?;
            let element = &self.text.as_str()[self.range(open + 1 + 2 * i)];
            let (element, _) = self.resolve(element);
            let (first, second) = if open < place {
                (element, register)
            } else {
                (register, element)
            };
            let end = if i + 1 < width { ";\n" } else { "" };
            self.put(&format!("{one} {first}, {second}{end}"), span);
        }
        Ok(())
    }

    /// The register for `[p+8]`, a piece of a parameter, and the position after it. For a vector,
    /// it is the register of one element.
    fn piece(
        &mut self,
        at: usize,
        instruction: &str,
        element: i64,
    ) -> Result<(String, usize), ErrorReported> {
        let name = at + 1;
        // Parameters of the kernel have no declaration in this text.
        let (called, declared) = self.resolve(self.word(name));
        if self.word(name).starts_with('%') || matches!(declared, Some(NameDeclaration::Name)) {
            let message = "a parameter through a register is not supported".into();
            return Err(self.error(
                "unsupported-address",
                name,
                message,
                "expected the name of a parameter",
            ));
        }
        let (offset, end) = match (self.kind(at + 2), self.kind(at + 3)) {
            (PtxToken::Punct(']'), _) => (0, at + 3),
            (PtxToken::Punct('+'), PtxToken::Int(n)) if self.is(at + 4, ']') => (n, at + 5),
            _ => {
                let message = "expected a parameter with an offset".into();
                return Err(self.error("syntax", name, message, "expected `[name]` or `[name+8]`"));
            }
        };
        if matches!(declared, Some(NameDeclaration::Bound(_, false))) && opcode(instruction) == "st"
        {
            let message = format!(
                "`{}` is a parameter that the caller passes",
                self.word(name)
            );
            return Err(self.error("read-only", name, message, "this writes it"));
        }
        let ty = instruction.split('.').rev().find_map(bits_named);
        let size = ty.map_or(8, |ty| i64::from(ty.bytes()));
        let offset = offset.saturating_add(element * size);
        let pieces = self.pieces.entry(called.clone()).or_default();
        // A read may take only the lower bytes of a piece.
        let same = pieces.iter().position(|(o, s)| {
            let read = opcode(instruction) == "ld" && (size < *s || declared.is_none());
            *o == offset && (size == *s || read)
        });
        let last = offset.saturating_add(size);
        if (0..)
            .zip(&*pieces)
            .any(|(i, (o, s))| same != Some(i) && offset < o + s && *o < last)
        {
            let message = format!("`{}` is accessed in pieces that overlap", self.word(name));
            return Err(self.error(
                "mixed-size",
                name,
                message,
                "another access is to a part of these bytes",
            ));
        }
        match same {
            Some(i) => pieces[i].1 = pieces[i].1.max(size),
            None => pieces.push((offset, size)),
        }
        Ok((
            if offset == 0 {
                format!("[{called}]")
            } else {
                format!("[{called}+{offset}]")
            },
            end,
        ))
    }

    fn declaration(&mut self, range: Range<usize>) -> Result<(), ErrorReported> {
        let param = self.word(range.start) == ".param";
        let names = self.names(range.start);
        let wide = !param && range.clone().any(|at| self.word(at) == WIDE);
        let number = self.scopes.last().map_or(0, |scope| scope.number);
        for (at, count) in &names {
            let name = self.word(*at).to_owned();
            let what = match (param, wide) {
                (true, _) => NameDeclaration::Param,
                (_, true) => NameDeclaration::Wide,
                _ => NameDeclaration::Name,
            };
            match count {
                Some(count) => {
                    if let Some(scope) = self.scopes.last_mut() {
                        scope
                            .families
                            .insert(stem(&name).to_owned(), (*count, what));
                    }
                }
                None => self.declare(name, what),
            }
        }
        if param {
            // Registers with such a name need no declaration.
            return Ok(());
        }
        if wide {
            let all = names
                .iter()
                .map(|(at, count): &(usize, Option<i64>)| {
                    let count = count.map_or(String::new(), |count| format!("<{count}>"));
                    self.halves(self.word(*at), number)
                        .map(|half| half + &count)
                        .join(", ")
                })
                .collect::<Vec<_>>()
                .join(", ");
            let span = self
                .text
                .span(self.range(range.start).start..self.range(range.end - 1).end);
            self.put(&format!(".reg {HALF} {all}"), span);
            return Ok(());
        }
        for at in range {
            // The name of a family is not the name of one of its registers.
            if names.iter().any(|(n, count)| *n == at && count.is_some()) {
                let called = self.numbered(self.word(at), number);
                self.put(&called, self.text.span(self.range(at)));
            } else {
                self.copy(at, at + 1);
            }
        }
        Ok(())
    }

    /// Replaces a call by the function's code.
    fn call(&mut self, range: Range<usize>, opcode: usize) -> Result<(), ErrorReported> {
        let span = self.text.span(self.range(opcode));
        let predicate = range.start..opcode;
        let mut site = self.call_site(opcode)?;
        if self.word(site.callee).starts_with('%') {
            // A prototype follows the operands.
            let next = self.skip_lines(site.end);
            if self.is(next, ',') {
                site.end = self.skip_lines(next + 1) + 1;
            }
            match self.pointed(site.callee) {
                Some(function) => site.name = function,
                None => {
                    let register = self.resolve(self.word(site.callee)).0;
                    return self.unfollowed(predicate, &register, site.callee, &site.returns);
                }
            }
        }
        if site.end < range.end {
            let message = "expected the end of the call".into();
            return Err(self.error("syntax", site.end, message, "expected `;`"));
        }
        if site.name == ASSERTION {
            for i in predicate {
                self.copy(i, i + 1);
            }
            self.put("trap", span);
            return Ok(());
        }
        let defined = self
            .functions
            .get(&site.name)
            .is_some_and(|f| f.body.is_some());
        if site.name == PRINT && !defined {
            return self.printed(predicate, span, &site.returns);
        }
        let function = self.called_function(&site)?;
        if function.body.is_none() {
            // Its name stands for its address, in a register that nothing sets.
            self.unset.insert(site.name.clone());
            return self.unfollowed(predicate, &site.name, site.callee, &site.returns);
        }
        self.fresh += 1;
        let skip = self.numbered("$skip", self.fresh);
        let end = self.numbered("$return", self.fresh);
        if !predicate.is_empty() {
            let negated = self.is(range.start + 1, '!');
            let (pred, _) = self.resolve(self.word(opcode - 1));
            self.put(
                &format!("@{}{pred} bra {skip};\n", if negated { "" } else { "!" }),
                span,
            );
        }
        let passed = self.passed(&site, &function)?;
        self.insert(&site, &function, passed, end, span);
        if !predicate.is_empty() {
            self.put(&format!("{skip}:\n"), span);
        }
        Ok(())
    }

    /// Reads the operands of a call, up to the parameters.
    fn call_site(&mut self, opcode: usize) -> Result<InlinedCall, ErrorReported> {
        let mut at = self.skip_lines(opcode + 1);
        let mut returns = Vec::new();
        if self.is(at, '(') {
            (returns, at) = self.actuals(at)?;
            at = self.skip_lines(at);
            if self.is(at, ',') {
                at = self.skip_lines(at + 1);
            }
        }
        let (callee, name) = (at, self.word(at).to_owned());
        at = self.skip_lines(at + 1);
        let mut params = Vec::new();
        if self.is(at, ',') && self.is(self.skip_lines(at + 1), '(') {
            (params, at) = self.actuals(self.skip_lines(at + 1))?;
        }
        Ok(InlinedCall {
            returns,
            callee,
            name,
            params,
            end: at,
        })
    }

    /// The function that a call through a register reaches, if it is known.
    fn pointed(&mut self, callee: usize) -> Option<String> {
        let register = self.resolve(self.word(callee)).0;
        let (function, holders) = indirect::pointed(self.out.as_str(), &self.taken, &register)
            .filter(|_| !self.unknown.contains(&callee))?;
        self.followed.push((callee, holders));
        Some(function)
    }

    /// The function of a call. Reports functions without a declaration, recursion, and a wrong
    /// number of operands.
    fn called_function(&mut self, site: &InlinedCall) -> Result<FuncDefinition, ErrorReported> {
        let name = &site.name;
        let Some(function) = self.functions.get(name).cloned() else {
            let message = format!("the code calls `{name}`, and the module does not declare it");
            return Err(self.error(
                "unknown-function",
                site.callee,
                message,
                "expected a `.func` with a body",
            ));
        };
        if self.calls.iter().any(|called| called.name == *name) {
            let message = format!("`{name}` calls itself");
            return Err(self.error(
                "unsupported-call",
                site.callee,
                message,
                "recursion is not supported",
            ));
        }
        let declared = (function.returns.len(), function.params.len());
        let given = (site.returns.len(), site.params.len());
        if declared != given {
            let message = format!(
                "`{name}` has {} results and {} parameters, the call {} and {}",
                declared.0, declared.1, given.0, given.1
            );
            return Err(self.error(
                "wrong-operands",
                site.callee,
                message,
                "expected the numbers of results and parameters that the function declares",
            ));
        }
        Ok(function)
    }

    /// Resolves the actual parameters in the caller's scope, before entering the function's.
    fn passed(
        &mut self,
        site: &InlinedCall,
        function: &FuncDefinition,
    ) -> Result<PassedParams, ErrorReported> {
        let mut passed = PassedParams::default();
        let results = function.returns.iter().zip(&site.returns);
        let params = function.params.iter().zip(&site.params);
        for (formal, actual, writes) in results
            .map(|(f, a)| (f, a, true))
            .chain(params.map(|(f, a)| (f, a, false)))
        {
            let (called, what) = self.resolve(self.word(*actual));
            let called = if self.word(*actual).is_empty() {
                self.text.as_str()[self.range(*actual)].to_owned()
            } else {
                called
            };
            let is_param = matches!(
                what,
                Some(NameDeclaration::Param | NameDeclaration::Bound(..))
            );
            if formal.param != is_param {
                let message = format!(
                    "`{}` of `{}` is neither a register nor a constant",
                    formal.name, site.name
                );
                let expected = if formal.param {
                    "expected a `.param` variable"
                } else {
                    "expected a register or a constant"
                };
                return Err(self.error("wrong-operand", *actual, message, expected));
            }
            match (formal.param, writes) {
                (true, _) => passed
                    .bound
                    .push((formal.name.clone(), NameDeclaration::Bound(called, writes))),
                (false, true) => passed.after.push((formal.clone(), called)),
                (false, false) => passed.before.push((formal.clone(), called)),
            }
        }
        Ok(passed)
    }

    /// Writes the code of a function with its parameters.
    fn insert(
        &mut self,
        site: &InlinedCall,
        function: &FuncDefinition,
        passed: PassedParams,
        end: String,
        span: Span,
    ) {
        let body = function.body.clone().unwrap_or_default();
        self.enter(true);
        self.calls.push(OpenCall {
            name: site.name.clone(),
            end: end.clone(),
        });
        for (name, declared) in passed.bound {
            self.declare(name, declared);
        }
        for (formal, _) in passed.before.iter().chain(&passed.after) {
            self.declare(formal.name.clone(), NameDeclaration::Name);
        }
        for (formal, actual) in &passed.before {
            let name = self.resolve(&formal.name).0;
            self.put(&format!("mov{} {name}, {actual};\n", formal.ty), span);
        }
        self.put("\n", span);
        self.labels(body.clone());
        self.walk(body);
        // The branch separates the function's last instruction from the first one of the next call.
        self.put(&format!("\nbra {end};\n{end}:\n"), span);
        for (formal, actual) in &passed.after {
            let name = self.resolve(&formal.name).0;
            self.put(&format!("mov{} {actual}, {name};\n", formal.ty), span);
        }
        self.calls.pop();
        self.scopes.pop();
    }

    /// Declares a register with the name of a function that an instruction takes the address of.
    /// Its value is unknown.
    fn take_function(&mut self, range: &Range<usize>) {
        for at in range.clone() {
            let name = self.word(at);
            let of_function = self.functions.contains_key(name) && self.resolve(name).1.is_none();
            if of_function && self.taken.insert(name) {
                self.put(
                    &format!(".reg {HALF} {name};\n"),
                    self.text.span(self.range(at)),
                );
            }
        }
    }

    /// Writes a call of an unknown function, with its address. No verdict is about the code after
    /// it, so its results are never read.
    fn unfollowed(
        &mut self,
        predicate: Range<usize>,
        address: &str,
        callee: usize,
        returns: &[usize],
    ) -> Result<(), ErrorReported> {
        for at in returns {
            let (called, declared) = self.resolve(self.word(*at));
            match declared {
                Some(NameDeclaration::Param) => _ = self.returned.insert(called),
                // An undeclared register needs an instruction that writes it.
                None => _ = self.unset.insert(called),
                Some(_) => {}
            }
        }
        let span = self.text.span(self.range(callee));
        for i in predicate {
            self.copy(i, i + 1);
        }
        self.put(&format!("call {address}"), span);
        Ok(())
    }

    /// Writes the results of calls of unknown functions in unreachable code at the end: every
    /// register must have a writer.
    fn write_returned(&mut self) {
        let all = std::mem::take(&mut self.returned);
        let end = self.text.span(self.range(self.tokens.len() - 1));
        let mut text = String::new();
        for called in all {
            for (offset, size) in self.pieces.get(&called).into_iter().flatten() {
                let at = if *offset == 0 {
                    String::new()
                } else {
                    format!("+{offset}")
                };
                text += &format!("st.param.b{} [{called}{at}], 0;\n", 8 * size);
            }
        }
        for register in std::mem::take(&mut self.unset) {
            text += &format!("mov.u64 {register}, 0;\n");
        }
        if !text.is_empty() {
            self.put(&format!("\nexit;\n{text}"), end);
        }
    }

    /// Replaces the result of `printf` by an unknown value.
    fn printed(
        &mut self,
        predicate: Range<usize>,
        span: Span,
        returns: &[usize],
    ) -> Result<(), ErrorReported> {
        self.fresh += 1;
        let value = self.numbered("%printed", self.fresh);
        for at in returns {
            let (called, declared) = self.resolve(self.word(*at));
            if !matches!(declared, Some(NameDeclaration::Param)) {
                let message = format!("`{PRINT}` returns a parameter");
                return Err(self.error(
                    "wrong-operand",
                    *at,
                    message,
                    "expected a `.param` variable",
                ));
            }
            self.pieces.entry(called.clone()).or_default().push((0, 4));
            self.put(&format!("ex2.approx.f32 {value}, {};\n", self.fresh), span);
            for i in predicate.clone() {
                self.copy(i, i + 1);
            }
            self.put(&format!("st.param.b32 [{called}], {value}"), span);
        }
        Ok(())
    }

    /// Reads operands in parentheses. Returns the position after them, too.
    fn actuals(&mut self, at: usize) -> Result<(Vec<usize>, usize), ErrorReported> {
        let mut all = Vec::new();
        let mut at = self.skip_lines(at + 1);
        while !self.is(at, ')') {
            if !matches!(self.kind(at), PtxToken::Word | PtxToken::Int(_)) {
                let message = "expected an operand of the call".into();
                return Err(self.error("syntax", at, message, "expected a name or an integer"));
            }
            all.push(at);
            at = self.skip_lines(at + 1);
            if self.is(at, ',') {
                at = self.skip_lines(at + 1);
            }
        }
        Ok((all, at + 1))
    }
}

/// The name without the digits at its end.
fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}
