//! The parser's access to tokens, and its reports of unexpected ones.

use std::ops::Range;

use super::{CatParser, ParseResult, STATEMENT_WORDS, SyntaxError, reserved};
use crate::model::ast::Ident;
use crate::model::lex::CatTok;
use diag::{Diagnostic, Span};

impl<'a> CatParser<'a> {
    /// The current token.
    pub(super) fn tok(&self) -> CatTok<'a> {
        self.tokens.peek()
    }

    /// The place of the current token.
    pub(super) fn span(&self) -> Span {
        span(&self.tokens.range())
    }

    /// The place of the token before the current one.
    pub(super) fn before(&self) -> Span {
        span(&self.tokens.last().range)
    }

    fn go_on(&mut self, found: bool) -> bool {
        if found {
            self.tokens.advance();
        }
        found
    }

    /// Whether the current token is this symbol.
    pub(super) fn is_sym(&self, symbol: &str) -> bool {
        matches!(self.tok(), CatTok::Sym(s) if s == symbol)
    }

    /// Consumes the current token if it is this symbol.
    pub(super) fn take_sym(&mut self, symbol: &str) -> bool {
        let found = self.is_sym(symbol);
        self.go_on(found)
    }

    /// Consumes the current token if it is this symbol, and reports it if not.
    pub(super) fn expect(&mut self, symbol: &'static str) -> ParseResult<()> {
        if self.take_sym(symbol) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{symbol}`")))
        }
    }

    /// Whether the current token is this word.
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.tok(), CatTok::Name(w) if w == word)
    }

    /// Consumes the current token if it is this word.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.go_on(found)
    }

    /// A name; a report calls it `expected`.
    pub(super) fn name(&mut self, expected: &str) -> ParseResult<Ident> {
        match self.tok() {
            CatTok::Name(word) if !reserved(word) && word != "_" => {
                let ident = Ident {
                    name: word.to_owned(),
                    span: self.span(),
                };
                self.tokens.advance();
                Ok(ident)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// Consumes a word and the name after it.
    pub(super) fn word_then_name(&mut self) -> ParseResult<Ident> {
        self.tokens.advance();
        self.name("a name")
    }

    /// Consumes a word and the names after it, separated by commas.
    pub(super) fn word_then_names(&mut self) -> ParseResult<Vec<Ident>> {
        let mut list = vec![self.word_then_name()?];
        while self.is_sym(",") {
            list.push(self.word_then_name()?);
        }
        Ok(list)
    }

    /// A string; a report calls it `expected`.
    pub(super) fn text(&mut self, expected: &str) -> ParseResult<String> {
        match self.tok() {
            CatTok::Text(text) => {
                self.tokens.advance();
                Ok(text.to_owned())
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// Reports that the current token is not the expected one.
    pub(super) fn unexpected(&mut self, expected: &str) -> SyntaxError {
        let found = match self.tok() {
            CatTok::Name(word) if reserved(word) => format!("the word `{word}`"),
            CatTok::Name(word) => format!("the name `{word}`"),
            CatTok::Text(_) => "a string".to_string(),
            CatTok::Sym("^*") => "`*`".to_string(),
            CatTok::Sym(symbol) => format!("`{symbol}`"),
            CatTok::Zero => "`0`".to_string(),
            CatTok::End => "the end of the file".to_string(),
        };
        let mut diagnostic = Diagnostic::error(
            "syntax-error",
            self.source,
            self.span(),
            format!("expected {expected}, found {found}"),
        )
        .label(format!("expected {expected}"));
        if let (CatTok::Name(word), "a statement") = (self.tok(), expected) {
            diagnostic = diagnostic.did_you_mean(
                word,
                STATEMENT_WORDS.iter().chain(&["let", "with"]).copied(),
            );
        }
        self.diagnostics.push(diagnostic);
        SyntaxError
    }

    /// Reports an unsupported construct.
    pub(super) fn not_supported(&mut self, what: &str, span: Span) {
        self.diagnostics.push(
            Diagnostic::error(
                "not-supported",
                self.source,
                span,
                format!("not supported: `{what}`"),
            )
            .label("this construct has no meaning here"),
        );
    }
}

fn span(range: &Range<usize>) -> Span {
    Span::new(range.start, range.end)
}
