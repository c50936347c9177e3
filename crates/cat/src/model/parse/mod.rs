//! Parses tokens to a syntax tree: files and statements. Expressions are in `expr`.
//!
//! # Invariants
//! - One pass finds all errors of a file: after an error, the parser continues at the next word
//!   that can only begin a statement.
//! - Brackets nest at most [`MAX_NESTING`] deep; deeper text is an error, so no later pass can
//!   exhaust the stack.
//!
//! # Sources
//! - herdtools7, `lib/modelParser.mly`; Dartagnan's `Cat.g4`; both for statements and precedences.
//! # Where we differ
//! - `free`, `values`, `final` and `option` are our own statements and therefore reserved words.

use std::sync::Arc;

use super::ast::{
    CatExpr, CatStmt, CatStmtKind, FreeDecl, Ident, LetBinding, ModelFile, TestRole, TestStmt,
    TestWord,
};
use super::lex::{CatTok, Comment, clean, lex};
use diag::{Cursor, Diagnostic, MAX_NESTING, SourceFile, Span};

mod cursor;
mod expr;

/// The limit on syntax errors in a file.
const MAX_ERRORS: usize = 100;

/// Words that begin a statement and cannot occur inside an expression. The parser continues at them
/// after an error.
const STATEMENT_WORDS: &[&str] = &[
    "acyclic",
    "irreflexive",
    "empty",
    "flag",
    "undefined_unless",
    "show",
    "unshow",
    "showflag",
    "include",
    "procedure",
    "call",
    "free",
    "values",
    "final",
    "option",
    "cut",
];

/// The remaining reserved words.
const OTHER_WORDS: &[&str] = &[
    "let",
    "rec",
    "and",
    "in",
    "as",
    "with",
    "from",
    "end",
    "if",
    "then",
    "else",
    "try",
    "match",
    "fun",
    "within",
    "containing",
    "covering",
];

/// Parses a whole file. The tree contains the parts without errors.
pub fn parse(source: &Arc<SourceFile>) -> (ModelFile, Vec<Diagnostic>) {
    let lexed = lex(source);
    let mut parser = CatParser {
        source,
        tokens: Cursor::new(lexed.tokens),
        comments: lexed.comments,
        too_deep: false,
        diagnostics: lexed.diagnostics,
    };
    let file = parser.file();
    let mut diagnostics = parser.diagnostics;
    diagnostics.sort_by_key(|d| d.span);
    (file, diagnostics)
}

/// A syntax error was reported; the caller continues at the next statement.
struct SyntaxError;

type ParseResult<T> = Result<T, SyntaxError>;

struct CatParser<'a> {
    source: &'a Arc<SourceFile>,
    tokens: Cursor<CatTok<'a>>,
    comments: Vec<Comment>,
    /// Whether too deep nesting was reported.
    too_deep: bool,
    diagnostics: Vec<Diagnostic>,
}

impl CatParser<'_> {
    fn file(&mut self) -> ModelFile {
        let mut file = ModelFile::default();
        self.head(&mut file);
        let first = self.span().start;
        if self.comments.first().is_some_and(|c| c.span.start < first) {
            let mut end = 1;
            while end < self.comments.len() && self.adjacent(end - 1, self.comments[end].span.start)
            {
                end += 1;
            }
            file.header = clean(&self.comments[..end]);
        }
        file.statements = self.statements(&[]);
        file
    }

    /// Architecture name and title: words and strings before the first statement.
    fn head(&mut self, file: &mut ModelFile) {
        loop {
            match self.tokens.peek() {
                CatTok::Name(word) if !reserved(word) => file.head.push(word.to_owned()),
                CatTok::Text(title) => {
                    if file.title.is_empty() {
                        title.clone_into(&mut file.title);
                    }
                    file.head.push(format!("\"{title}\""));
                }
                _ => return,
            }
            self.tokens.advance();
        }
    }

    /// Statements up to one of the closing words (which is not consumed) or the end of the file.
    fn statements(&mut self, closers: &[&str]) -> Vec<CatStmt> {
        let mut list = Vec::new();
        while !matches!(self.tok(), CatTok::End)
            && self.diagnostics.len() < MAX_ERRORS
            && !closers.iter().any(|c| self.is_word(c))
        {
            let (before, depth) = (self.tokens.position(), self.tokens.depth());
            match self.statement() {
                Ok(statement) => list.push(statement),
                Err(SyntaxError) => {
                    self.tokens.ascend_to(depth);
                    self.recover(before);
                }
            }
        }
        list
    }

    /// Skips to the next word that begins a statement; always consumes a token.
    fn recover(&mut self, before: usize) {
        if self.tokens.position() == before {
            self.tokens.advance();
        }
        loop {
            match self.tok() {
                CatTok::End => return,
                CatTok::Name(w) if w == "let" || w == "end" || STATEMENT_WORDS.contains(&w) => {
                    return;
                }
                _ => drop(self.tokens.advance()),
            }
        }
    }

    fn statement(&mut self) -> ParseResult<CatStmt> {
        let start = self.span();
        let kind = match self.tok() {
            CatTok::Sym("~") => self.test(TestRole::Axiom, start)?,
            CatTok::Name(word) => match word {
                "acyclic" | "irreflexive" | "empty" => self.test(TestRole::Axiom, start)?,
                "flag" => {
                    self.tokens.advance();
                    self.test(TestRole::Flag, start)?
                }
                "undefined_unless" => {
                    self.tokens.advance();
                    self.test(TestRole::UndefinedUnless, start)?
                }
                "let" => {
                    self.tokens.advance();
                    let recursive = self.take_word("rec");
                    let kind = CatStmtKind::Let {
                        recursive,
                        bindings: self.bindings()?,
                    };
                    if self.is_word("in") {
                        return Err(self.unexpected("a statement (`let … in …` is an expression)"));
                    }
                    kind
                }
                "free" => self.free()?,
                "values" => CatStmtKind::Values(self.word_then_name()?),
                "final" => CatStmtKind::Final(self.word_then_name()?),
                "option" => {
                    let name = self.word_then_name()?;
                    self.expect("=")?;
                    CatStmtKind::Option(name, self.name("a value")?)
                }
                "show" => self.show()?,
                "unshow" => CatStmtKind::Unshow(self.word_then_names()?),
                "showflag" => CatStmtKind::ShowFlag(self.word_then_names()?),
                "include" => {
                    self.tokens.advance();
                    CatStmtKind::Include(self.text("a file name in quotes")?)
                }
                "procedure" => self.procedure()?,
                "call" => {
                    let name = self.word_then_name()?;
                    let args = if self.is_sym("(") {
                        self.arguments()?
                    } else {
                        vec![self.primary()?]
                    };
                    CatStmtKind::Call(name, args)
                }
                "with" => {
                    let name = self.word_then_name()?;
                    if !self.take_word("from") {
                        return Err(self.unexpected("`from`"));
                    }
                    CatStmtKind::With(name, self.expr()?)
                }
                "if" => self.conditional()?,
                "cut" => {
                    let at = self.span();
                    self.not_supported("cut", at);
                    return Err(SyntaxError);
                }
                _ => return Err(self.unexpected("a statement")),
            },
            _ => return Err(self.unexpected("a statement")),
        };
        Ok(CatStmt {
            kind,
            span: start.to(self.before()),
        })
    }

    fn test(&mut self, role: TestRole, start: Span) -> ParseResult<CatStmtKind> {
        let doc = self.doc_above(start);
        let negated = self.take_sym("~");
        let word = match self.tok() {
            CatTok::Name("acyclic") => TestWord::Acyclic,
            CatTok::Name("irreflexive") => TestWord::Irreflexive,
            CatTok::Name("empty") => TestWord::Empty,
            _ => return Err(self.unexpected("`acyclic`, `irreflexive` or `empty`")),
        };
        self.tokens.advance();
        let expr = self.expr()?;
        let name = if self.take_word("as") {
            Some(self.name("a name for the axiom")?)
        } else {
            None
        };
        let flag = role != TestRole::Axiom;
        let means = if flag && self.take_word("means") {
            Some(self.name("a meaning")?)
        } else {
            None
        };
        Ok(CatStmtKind::Test(Box::new(TestStmt {
            role,
            negated,
            word,
            expr,
            name,
            means,
            doc,
        })))
    }

    fn bindings(&mut self) -> ParseResult<Vec<LetBinding>> {
        let mut list = Vec::new();
        loop {
            if self.is_sym("(") {
                let at = self.span();
                self.not_supported("a pattern of several names", at);
                return Err(SyntaxError);
            }
            let name = self.name("a name to define")?;
            let params = if self.is_sym("(") {
                Some(self.parameters()?)
            } else if matches!(self.tok(), CatTok::Name(w) if !reserved(w)) {
                let mut names = Vec::new();
                while !self.is_sym("=") {
                    names.push(self.name("a parameter or `=`")?);
                }
                Some(names)
            } else {
                None
            };
            self.expect("=")?;
            let body = self.expr()?;
            list.push(LetBinding { name, params, body });
            if !self.take_word("and") {
                return Ok(list);
            }
        }
    }

    /// `(a, b)`
    fn parameters(&mut self) -> ParseResult<Vec<Ident>> {
        self.expect("(")?;
        let mut names = Vec::new();
        while !self.is_sym(")") {
            names.push(self.name("a parameter")?);
            if !self.take_sym(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(names)
    }

    fn free(&mut self) -> ParseResult<CatStmtKind> {
        let name = self.word_then_name()?;
        self.expect(":")?;
        let shape = self.name("`function` or `order`")?;
        if !self.take_word("within") {
            return Err(self.unexpected("`within`"));
        }
        let within = self.expr()?;
        let containing = if self.take_word("containing") {
            Some(self.expr()?)
        } else {
            None
        };
        let covering = if self.take_word("covering") {
            Some(self.expr()?)
        } else {
            None
        };
        Ok(CatStmtKind::Free(Box::new(FreeDecl {
            name,
            shape,
            within,
            containing,
            covering,
        })))
    }

    fn show(&mut self) -> ParseResult<CatStmtKind> {
        self.tokens.advance();
        let mut list = Vec::new();
        loop {
            let expr = self.expr()?;
            let name = if self.take_word("as") {
                Some(self.name("a name to show it by")?)
            } else {
                None
            };
            list.push((expr, name));
            if !self.take_sym(",") {
                return Ok(CatStmtKind::Show(list));
            }
        }
    }

    fn procedure(&mut self) -> ParseResult<CatStmtKind> {
        let name = self.word_then_name()?;
        let params = self.parameters()?;
        self.expect("=")?;
        let body = self.nested(|p| Ok(p.statements(&["end"])))?;
        self.end()?;
        Ok(CatStmtKind::Procedure(name, params, body))
    }

    fn conditional(&mut self) -> ParseResult<CatStmtKind> {
        self.tokens.advance();
        let variant = self.text("the name of a variant in quotes")?;
        let yes = self.nested(|p| Ok(p.statements(&["else", "end"])))?;
        let no = if self.take_word("else") {
            self.nested(|p| Ok(p.statements(&["end"])))?
        } else {
            Vec::new()
        };
        self.end()?;
        Ok(CatStmtKind::If(variant, yes, no))
    }

    fn end(&mut self) -> ParseResult<()> {
        if self.take_word("end") {
            Ok(())
        } else {
            Err(self.unexpected("`end`"))
        }
    }

    /// Runs `inner` one level deeper, or reports that it is too deep.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if !self.tokens.descend() {
            let at = self.span();
            // Reported once per file: the other brackets at the same place would be too deep, too.
            if std::mem::replace(&mut self.too_deep, true) {
                return Err(SyntaxError);
            }
            self.diagnostics.push(
                Diagnostic::error(
                    "nesting-too-deep",
                    self.source,
                    at,
                    "brackets nest too deeply",
                )
                .label(format!("more than {MAX_NESTING} levels"))
                .help("give parts of the expression names with `let`"),
            );
            return Err(SyntaxError);
        }
        let result = inner(self);
        self.tokens.ascend();
        result
    }

    /// The comments directly above a statement, each at the beginning of its line.
    fn doc_above(&self, start: Span) -> String {
        let end = self.comments.partition_point(|c| c.span.end <= start.start);
        let mut first = end;
        let mut below = start.start;
        while first > 0 && self.adjacent(first - 1, below) && self.begins_line(first - 1) {
            first -= 1;
            below = self.comments[first].span.start;
        }
        clean(&self.comments[first..end])
    }

    /// Whether only white space, without an empty line, separates a comment from a later offset.
    fn adjacent(&self, comment: usize, place: u32) -> bool {
        let gap = &self.source.text[self.comments[comment].span.end as usize..place as usize];
        gap.trim().is_empty() && gap.matches('\n').count() <= 1
    }

    fn begins_line(&self, comment: usize) -> bool {
        let before = &self.source.text[..self.comments[comment].span.start as usize];
        before.rsplit('\n').next().unwrap_or("").trim().is_empty()
    }
}

/// Whether a word cannot be a name.
fn reserved(word: &str) -> bool {
    STATEMENT_WORDS.contains(&word) || OTHER_WORDS.contains(&word)
}

impl CatParser<'_> {
    fn expr(&mut self) -> ParseResult<CatExpr> {
        self.binary(0)
    }
}
