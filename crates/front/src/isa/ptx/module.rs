//! Reads a PTX module as a compiler prints it: its kernels with their parameters, functions and
//! variables.
//!
//! # Invariants
//! - A kernel's body keeps its lines. Only declarations of variables become blank, because a test
//!   has them under `[memory]`.
//! - A construct that tests cannot have is reported at its place. Only constructs without effect on
//!   the program's meaning are dropped: line information, sections, performance directives.
//!
//! # Sources
//! - PTX ISA 9.4, *Directives*: Module, Kernel and Function, Variable Declaration; *State Spaces*.

use std::ops::Range;

use super::constant::constant;
use super::expand::has_meaning_of_its_own;
use super::lex::{PtxToken, lex};
use super::needs::{ModuleTarget, TargetFeatures};
use super::origin;
use super::table::bits_named;
use diag::{Cursor, ErrorReported, Sink, Span};
use program::Ty;

/// The parts of a module that tests use.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The operand of `.target`: `sm_90`.
    pub target: String,
    /// The version and target of the module, if it gives them.
    pub made: Option<ModuleTarget>,
    /// Kernels, in file order.
    pub kernels: Vec<Kernel>,
    /// Functions with a body, in file order.
    pub functions: Vec<ModuleFunction>,
    /// Variables at module scope.
    pub variables: Vec<ModuleVariable>,
    /// Source files of `.loc` directives: number and name.
    pub files: Vec<(i64, String)>,
}

/// A function that kernels call.
#[derive(Clone, Debug)]
pub struct ModuleFunction {
    /// Its name.
    pub name: String,
    /// Variables declared in its body.
    pub variables: Vec<ModuleVariable>,
    /// Its definition, with blanks instead of declarations of variables; or its declaration, if the
    /// module does not define it.
    pub text: String,
    /// Whether the module defines it.
    pub is_defined: bool,
    /// The offset of that text in the module.
    pub start: usize,
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Variables declared in its body.
    pub variables: Vec<ModuleVariable>,
    /// The text between its braces, with blanks instead of declarations of variables.
    pub body: String,
    /// The offset of the body in the module.
    pub start: usize,
    /// Its requirements on a launch, in file order.
    pub demands: Vec<Demand>,
}

impl Kernel {
    /// The numbers of a directive, if the kernel has it.
    pub fn demands(&self, directive: &str) -> Option<&[u32]> {
        self.demands
            .iter()
            .find(|demand| demand.directive == directive)
            .map(|demand| demand.sizes.as_slice())
    }
}

/// A parameter of a kernel.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type as written, without the dot.
    pub ty: String,
    /// Its number of elements; more than one means a structure.
    pub elements: u64,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct ModuleVariable {
    /// Its name.
    pub name: String,
    /// `global`, `const`, `shared` or `local`.
    pub space: &'static str,
    /// The declared type of its elements.
    pub ty: Ty,
    /// The number of elements; `None` if the launch decides (`.extern .shared`).
    pub elements: Option<u64>,
    /// Initial values of the first elements; the other elements are 0.
    pub init: Vec<ElementInit>,
    /// The place of the declaration.
    pub span: Span,
}

/// The initial value of an element of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementInit {
    /// A number.
    Int(i64),
    /// The address of a function, or of a byte of a variable: name and offset.
    Address(String, i64),
}

/// A requirement of a kernel on its launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The directive: `.reqntid`.
    pub directive: &'static str,
    /// The numbers of the directive; missing ones count as 1.
    pub sizes: Vec<u32>,
    /// The place of the directive.
    pub span: Span,
}

/// Parses a module and reports mistakes to `sink`.
pub fn parse(text: &str, sink: &mut Sink) -> Module {
    let tokens = lex(text)
        .into_iter()
        .filter(|t| t.kind != PtxToken::Newline)
        .collect();
    let mut reader = ModuleReader {
        text,
        tokens: Cursor::new(tokens),
        sink,
        module: Module::default(),
        version: None,
    };
    while reader.tokens.peek() != PtxToken::End {
        if reader.item().is_err() {
            reader.skip();
        }
    }
    reader.module
}

struct ModuleReader<'a> {
    text: &'a str,
    tokens: Cursor<PtxToken>,
    sink: &'a mut Sink,
    module: Module,
    /// The operand of `.version`.
    version: Option<(u32, u32)>,
}

/// Types of texture and surface references.
const OPAQUE: [&str; 3] = [".texref", ".surfref", ".samplerref"];

/// Directives that restrict launches (PTX ISA 9.4, *Performance-Tuning Directives*, *Cluster
/// Dimension Directives*).
const DEMANDS: [&str; 6] = [
    ".maxntid",
    ".reqntid",
    ".reqnctapercluster",
    ".explicitcluster",
    ".maxclusterrank",
    ".blocksareclusters",
];

/// State spaces of variables.
const SPACES: [(&str, &str); 4] = [
    (".global", "global"),
    (".const", "const"),
    (".shared", "shared"),
    (".local", "local"),
];

impl ModuleReader<'_> {
    fn word(&self) -> &str {
        if self.tokens.peek() == PtxToken::Word {
            &self.text[self.tokens.range()]
        } else {
            ""
        }
    }

    fn next(&mut self) -> Range<usize> {
        self.tokens.advance().range
    }

    fn eat(&mut self, c: char) -> bool {
        self.tokens.eat(PtxToken::Punct(c))
    }

    fn error<T>(
        &mut self,
        id: &'static str,
        message: String,
        label: &str,
    ) -> Result<T, ErrorReported> {
        let range = self.tokens.range();
        self.sink
            .error(id, Span::new(range.start, range.end), message, |d| {
                d.label(label)
            });
        Err(ErrorReported)
    }

    fn fail<T>(&mut self, expected: &str) -> Result<T, ErrorReported> {
        let found = match self.tokens.peek() {
            PtxToken::End => "the end of the file".to_owned(),
            PtxToken::OpenComment => "a comment that is never closed".to_owned(),
            _ => format!("`{}`", &self.text[self.tokens.range()]),
        };
        self.error(
            "syntax",
            format!("expected {expected}, found {found}"),
            &format!("expected {expected}"),
        )
    }

    fn expect(&mut self, c: char) -> Result<(), ErrorReported> {
        if self.eat(c) {
            Ok(())
        } else {
            self.fail(&format!("`{c}`"))
        }
    }

    fn name(&mut self, what: &str) -> Result<String, ErrorReported> {
        if self.tokens.peek() != PtxToken::Word || self.word().starts_with('.') {
            return self.fail(what);
        }
        let range = self.next();
        Ok(self.text[range].to_owned())
    }

    fn count(&mut self) -> Result<u64, ErrorReported> {
        let place = self.tokens.position();
        match constant(self.text, &mut self.tokens).map(u64::try_from) {
            Some(Ok(n)) => Ok(n),
            _ => {
                self.tokens.go_to(place);
                self.fail("a number")
            }
        }
    }

    /// Skips the statement or the block that begins here.
    fn skip(&mut self) {
        let mut depth = 0;
        while self.tokens.peek() != PtxToken::End {
            match self.tokens.peek() {
                PtxToken::Punct('{') => depth += 1,
                PtxToken::Punct('}') if depth <= 1 => {
                    self.next();
                    return;
                }
                PtxToken::Punct('}') => depth -= 1,
                PtxToken::Punct(';') if depth == 0 => {
                    self.next();
                    return;
                }
                _ => {}
            }
            self.next();
        }
    }

    /// Skips the rest of the line.
    fn skip_line(&mut self) {
        let start = self.tokens.range().start;
        let end = self.text[start..]
            .find('\n')
            .map_or(self.text.len(), |n| start + n);
        while self.tokens.peek() != PtxToken::End && self.tokens.range().start < end {
            self.next();
        }
    }

    fn item(&mut self) -> Result<(), ErrorReported> {
        match self.word() {
            ".version" | ".address_size" | ".file" | ".loc" | ".pragma" => {
                let (bits, version) = (self.word() == ".address_size", self.word() == ".version");
                let file = self.word() == ".file";
                self.next();
                if file {
                    let operands = [
                        self.tokens.token_at(0).clone(),
                        self.tokens.token_at(1).clone(),
                    ];
                    let found = origin::file(self.text, &operands)
                        .map(|(number, name)| (number, name.to_owned()));
                    self.module.files.extend(found);
                }
                if version {
                    let line = self.text[self.tokens.range().start..]
                        .lines()
                        .next()
                        .unwrap_or_default();
                    let number = line
                        .split_whitespace()
                        .next()
                        .and_then(|word| word.split_once('.'));
                    self.version =
                        number.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                }
                if bits && self.tokens.peek() != PtxToken::Int(64) {
                    self.skip_line();
                    return self.error(
                        "unsupported-target",
                        "addresses of this module do not have 64 bits".into(),
                        "expected `.address_size 64`",
                    );
                }
                self.skip_line();
                Ok(())
            }
            ".target" => {
                self.next();
                let name = self.word().to_owned();
                let digits = name.strip_prefix("sm_").unwrap_or_default();
                let (digits, features) = match digits.chars().last() {
                    Some('a') => (&digits[..digits.len() - 1], TargetFeatures::Architecture),
                    Some('f') => (&digits[..digits.len() - 1], TargetFeatures::Family),
                    _ => (digits, TargetFeatures::Common),
                };
                match digits.parse() {
                    Ok(target) if target >= 70 => {
                        self.module.target = name;
                        self.module.made = self.version.map(|version| ModuleTarget {
                            version,
                            target,
                            features,
                        });
                    }
                    _ => {
                        let message =
                            format!("`{name}` is not a target that the memory model covers");
                        let _ = self.error::<()>(
                            "unsupported-target",
                            message,
                            "expected `sm_70` or later",
                        );
                    }
                }
                self.skip_line();
                Ok(())
            }
            ".visible" | ".extern" | ".weak" | ".common" => {
                self.next();
                Ok(())
            }
            ".section" => {
                self.skip();
                Ok(())
            }
            ".entry" => self.kernel(),
            ".func" => self.function(),
            // A call of the alias reports the error, if there is one.
            ".alias" => {
                self.skip();
                Ok(())
            }
            word if SPACES.iter().any(|s| s.0 == word) => {
                let variable = self.variable()?;
                self.module.variables.extend(variable);
                Ok(())
            }
            word if word == ".tex" || OPAQUE.contains(&word) => self.error(
                "unsupported-directive",
                "references to textures and surfaces are not supported".into(),
                "expected a kernel or a variable",
            ),
            _ => self.fail("a directive such as `.visible .entry`"),
        }
    }

    fn kernel(&mut self) -> Result<(), ErrorReported> {
        self.next();
        let name = self.name("the name of a kernel")?;
        let mut params = Vec::new();
        if self.eat('(') && !self.eat(')') {
            loop {
                params.push(self.param()?);
                if self.eat(')') {
                    break;
                }
                self.expect(',')?;
            }
        }
        let mut demands = Vec::new();
        while self.tokens.peek() != PtxToken::Punct('{') {
            let directive = self.word().to_owned();
            match directive.as_str() {
                word if let Some(known) = DEMANDS.iter().find(|known| **known == word) => {
                    let range = self.next();
                    let mut sizes = Vec::new();
                    // `.explicitcluster` and `.blocksareclusters` have no numbers.
                    if matches!(self.tokens.peek(), PtxToken::Int(_) | PtxToken::Punct('(')) {
                        loop {
                            sizes.push(u32::try_from(self.count()?).unwrap_or(u32::MAX));
                            if !self.eat(',') {
                                break;
                            }
                        }
                    }
                    let end = self.tokens.last().range.end;
                    demands.push(Demand {
                        directive: known,
                        sizes,
                        span: Span::new(range.start, end),
                    });
                }
                ".minnctapersm" | ".maxnctapersm" | ".maxnreg" | ".noreturn" | ".pragma"
                | ".local_maxnreg" => {
                    self.next();
                    while matches!(
                        self.tokens.peek(),
                        PtxToken::Int(_) | PtxToken::Str | PtxToken::Punct(',' | ';')
                    ) {
                        self.next();
                    }
                }
                _ => return self.fail("`{` and the kernel's code"),
            }
        }
        let start = self.next().end;
        let (body, variables) = self.body(start, 1)?;
        self.next();
        self.module.kernels.push(Kernel {
            name,
            params,
            variables,
            body,
            start,
            demands,
        });
        Ok(())
    }

    /// Reads a function. Only the name in its head is needed here; the head is parsed again with
    /// the code that calls the function.
    fn function(&mut self) -> Result<(), ErrorReported> {
        let start = self.next().start;
        if self.eat('(') {
            while !self.eat(')') {
                if self.tokens.peek() == PtxToken::End {
                    return self.fail("`)` behind the results of a function");
                }
                self.next();
            }
        }
        let name = self.name("the name of a function")?;
        while self.tokens.peek() != PtxToken::Punct('{') {
            if self.eat(';') {
                self.declared(name, start);
                return Ok(());
            }
            if self.tokens.peek() == PtxToken::End {
                return self.fail("`{` and the function's code");
            }
            self.next();
        }
        let (text, variables) = self.body(start, 0)?;
        let text = text + "}\n";
        self.next();
        // The definition of a function replaces its declaration.
        self.module
            .functions
            .retain(|f| f.name != name || f.is_defined);
        self.module.functions.push(ModuleFunction {
            name,
            variables,
            text,
            is_defined: true,
            start,
        });
        Ok(())
    }

    /// Keeps the declaration that just ended, unless the function is known: a call of the function
    /// needs it.
    fn declared(&mut self, name: String, start: usize) {
        let known = self.module.functions.iter().any(|f| f.name == name);
        if !known && !has_meaning_of_its_own(&name) {
            self.module.functions.push(ModuleFunction {
                name,
                variables: Vec::new(),
                text: self.text[start..self.tokens.last().range.end].to_owned() + "\n",
                is_defined: false,
                start,
            });
        }
    }

    /// The text from `start` to the brace that closes the code, and the variables declared in it,
    /// which become blank. `depth`: the number of open braces.
    fn body(
        &mut self,
        start: usize,
        mut depth: usize,
    ) -> Result<(String, Vec<ModuleVariable>), ErrorReported> {
        let mut body = String::new();
        let (mut variables, mut from) = (Vec::new(), start);
        loop {
            match self.tokens.peek() {
                PtxToken::End => return self.fail("`}` behind the code"),
                PtxToken::Punct('{') => depth += 1,
                PtxToken::Punct('}') => depth -= 1,
                PtxToken::Word
                    if SPACES.iter().any(|s| s.0 == self.word()) || self.word() == ".extern" =>
                {
                    let range = self.tokens.range();
                    body.push_str(&self.text[from..range.start]);
                    if self.word() == ".extern" {
                        self.next();
                    }
                    variables.extend(self.variable()?);
                    from = self.tokens.last().range.end;
                    // Blanks keep the offsets of the text after them.
                    body.extend(self.text[range.start..from].chars().map(|c| {
                        if c == '\n' {
                            "\n".to_owned()
                        } else {
                            " ".repeat(c.len_utf8())
                        }
                    }));
                    continue;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
            self.next();
        }
        body.push_str(&self.text[from..self.tokens.range().start]);
        Ok((body, variables))
    }

    fn param(&mut self) -> Result<Param, ErrorReported> {
        if self.word() != ".param" {
            return self.fail("`.param`");
        }
        self.next();
        let mut ty = String::new();
        loop {
            match self.word() {
                ".align" => {
                    self.next();
                    self.count()?;
                }
                ".ptr" => {
                    self.next();
                }
                word if word.starts_with('.') => {
                    let word = word[1..].to_owned();
                    if ty.is_empty() {
                        ty = word;
                    }
                    self.next();
                }
                _ => break,
            }
        }
        let name = self.name("the name of a parameter")?;
        let mut elements = 1;
        if self.eat('[') {
            elements = self.count()?;
            self.expect(']')?;
        }
        Ok(Param { name, ty, elements })
    }

    /// Reads a declaration of variables, including its `;`.
    fn variable(&mut self) -> Result<Vec<ModuleVariable>, ErrorReported> {
        let word = self.word().to_owned();
        let space = SPACES
            .iter()
            .find(|s| s.0 == word)
            .map_or("global", |s| s.1);
        self.next();
        let mut ty = None;
        loop {
            match self.word() {
                ".align" => {
                    self.next();
                    self.count()?;
                }
                ".attribute" => {
                    self.next();
                    while !self.eat(')') && self.tokens.peek() != PtxToken::End {
                        self.next();
                    }
                }
                word if word.starts_with('.') => {
                    match bits_named(&word[1..]).filter(|_| word != ".pred") {
                        Some(found) => {
                            ty = Some(found);
                            self.next();
                        }
                        None => {
                            let message = if OPAQUE.contains(&word) {
                                "references to textures and surfaces are not supported".to_owned()
                            } else {
                                format!("variables of type `{word}` are not supported")
                            };
                            let expected = "expected an integer type, `.f32` or `.f64`";
                            return self.error("unsupported-type", message, expected);
                        }
                    }
                }
                _ => break,
            }
        }
        let Some(ty) = ty else {
            return self.fail("a type such as `.u32`");
        };
        let mut all = Vec::new();
        loop {
            let range = self.tokens.range();
            let name = self.name("the name of a variable")?;
            let mut elements = Some(1);
            while self.eat('[') {
                if self.eat(']') {
                    elements = None;
                    continue;
                }
                let n = self.count()?;
                elements = elements.map(|e: u64| e.saturating_mul(n));
                self.expect(']')?;
            }
            let init = if self.eat('=') {
                self.initialiser(ty)?
            } else {
                Vec::new()
            };
            if elements.is_none() && !init.is_empty() {
                elements = Some(init.len() as u64);
            }
            all.push(ModuleVariable {
                name,
                space,
                ty,
                elements,
                init,
                span: Span::new(range.start, range.end),
            });
            if !self.eat(',') {
                break;
            }
        }
        self.expect(';')?;
        Ok(all)
    }

    fn initialiser(&mut self, ty: Ty) -> Result<Vec<ElementInit>, ErrorReported> {
        let braces = self.eat('{');
        let mut values = Vec::new();
        loop {
            if braces && self.eat('}') {
                return Ok(values);
            }
            if braces && self.tokens.peek() == PtxToken::Punct('{') {
                values.extend(self.initialiser(ty)?);
            } else if matches!(self.tokens.peek(), PtxToken::Int(_))
                && self.tokens.peek_at(1) == PtxToken::Punct('(')
            {
                values.push(self.address(ty)?);
            } else if let Some(n) = constant(self.text, &mut self.tokens) {
                values.push(ElementInit::Int(ty.wrap(n)));
            } else {
                values.push(self.address(ty)?);
            }
            if !self.eat(',') {
                break;
            }
        }
        if braces {
            self.expect('}')?;
        }
        Ok(values)
    }

    /// Reads an address: `name`, `name+8`, `generic(name)`. Here, addresses in all state spaces are
    /// generic.
    fn address(&mut self, ty: Ty) -> Result<ElementInit, ErrorReported> {
        if self.tokens.peek_at(1) == PtxToken::Punct('(') && self.word() != "generic" {
            return self.error(
                "unsupported-initialiser",
                "a part of an address is not supported".into(),
                "expected an integer, or the address of a function or a variable",
            );
        }
        if ty.bits != 64 && self.tokens.peek() == PtxToken::Word {
            let message = format!("an address has 64 bits, and an element {}", ty.bits);
            return self.error("type-mismatch", message, "expected an integer");
        }
        let generic = self.word() == "generic" && self.tokens.peek_at(1) == PtxToken::Punct('(');
        if generic {
            self.next();
            self.next();
        }
        let name = self.name("an integer, or the name of a function or a variable")?;
        if generic {
            self.expect(')')?;
        }
        let minus = self.tokens.peek() == PtxToken::Punct('-');
        let mut offset = 0;
        if minus || self.tokens.peek() == PtxToken::Punct('+') {
            self.next();
            let Some(bytes) = constant(self.text, &mut self.tokens) else {
                return self.fail("a number of bytes");
            };
            offset = if minus { bytes.wrapping_neg() } else { bytes };
        }
        Ok(ElementInit::Address(name, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diag::SourceFile;

    fn read(text: &str) -> Result<Module, Vec<String>> {
        let mut sink = Sink::new(&SourceFile::new("k.ptx", text));
        let module = parse(text, &mut sink);
        let ids: Vec<String> = sink
            .into_diagnostics()
            .iter()
            .map(|d| d.id.to_string())
            .collect();
        if ids.is_empty() { Ok(module) } else { Err(ids) }
    }

    const HEAD: &str = ".version 8.0\n.target sm_90a, debug\n.address_size 64\n";

    #[test]
    fn kernels_have_parameters_variables_and_code() {
        let text = format!(
            "{HEAD}.global .align 4 .u32 count = 3;\n.const .u32 table[4] = {{1, \
             2}};\n.extern .shared .align 16 .b8 dyn[];\n.visible .entry k(\n .param .u64 \
             .ptr .global .align 4 k_0,\n .param .align 8 .b8 k_1[16]\n)\n.maxntid 64, 1, \
             1\n.reqnctapercluster 2\n{{\n.reg .b32 %r<3>;\n// demoted variable\n.shared \
             .align 4 .u32 s[2][3];\n{{ ret; }}\n}}\n.section .debug {{ .b8 1 }}\n"
        );
        let module = read(&text).expect("well-formed");
        assert_eq!(module.target, "sm_90a");
        let [kernel] = module.kernels.as_slice() else {
            panic!("{:?}", module.kernels)
        };
        assert_eq!(
            (kernel.name.as_str(), kernel.demands(".reqnctapercluster")),
            ("k", Some(&[2][..]))
        );
        assert_eq!(kernel.demands(".maxntid"), Some(&[64, 1, 1][..]));
        let params: Vec<_> = kernel
            .params
            .iter()
            .map(|p| (p.name.as_str(), p.ty.as_str(), p.elements))
            .collect();
        assert_eq!(params, [("k_0", "u64", 1), ("k_1", "b8", 16)]);
        assert_eq!(
            (
                kernel.variables[0].name.as_str(),
                kernel.variables[0].elements
            ),
            ("s", Some(6))
        );
        assert_eq!(kernel.body.lines().count(), 5, "{}", kernel.body);
        assert!(kernel.body.contains("{ ret; }") && !kernel.body.contains(".shared"));
        let variables: Vec<_> = module
            .variables
            .iter()
            .map(|v| (v.name.as_str(), v.space, v.elements, v.init.as_slice()))
            .collect();
        assert_eq!(
            variables,
            [
                ("count", "global", Some(1), &[ElementInit::Int(3)][..]),
                (
                    "table",
                    "const",
                    Some(4),
                    &[ElementInit::Int(1), ElementInit::Int(2)]
                ),
                ("dyn", "shared", None, &[])
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_reported() {
        for (text, id) in [
            (".target sm_60\n", "unsupported-target"),
            (".address_size 32\n", "unsupported-target"),
            (".visible .entry k( .param .u64 a { ret; }", "syntax"),
            (".visible .entry k() { ret;", "syntax"),
            (".global .b1 x;", "unsupported-type"),
            (".global .u32 x[;", "syntax"),
            (".global .texref t;", "unsupported-type"),
            ("garbage", "syntax"),
            ("/* never closed", "syntax"),
        ] {
            assert_eq!(read(text).expect_err(text)[0], id, "{text}");
        }
    }
}
