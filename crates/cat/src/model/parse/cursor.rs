//! The parser's access to tokens, and its reports of unexpected ones.

use std::ops::Range;

use super::{Parsed, Parser, Reported, STATEMENT_WORDS, reserved};
use crate::model::ast::Ident;
use crate::model::lex::Tok;
use diag::{Diagnostic, Span};

impl<'a> Parser<'a> {
    /// The current token.
    pub(super) fn tok(&self) -> Tok<'a> {
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
        matches!(self.tok(), Tok::Sym(s) if s == symbol)
    }

    /// Consumes the current token if it is this symbol.
    pub(super) fn take_sym(&mut self, symbol: &str) -> bool {
        let found = self.is_sym(symbol);
        self.go_on(found)
    }

    /// Consumes the current token if it is this symbol, and reports it if not.
    pub(super) fn expect(&mut self, symbol: &'static str) -> Parsed<()> {
        if self.take_sym(symbol) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{symbol}`")))
        }
    }

    /// Whether the current token is this word.
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.tok(), Tok::Name(w) if w == word)
    }

    /// Consumes the current token if it is this word.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.go_on(found)
    }

    /// A name; a report calls it `expected`.
    pub(super) fn name(&mut self, expected: &str) -> Parsed<Ident> {
        match self.tok() {
            Tok::Name(word) if !reserved(word) && word != "_" => {
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
    pub(super) fn word_then_name(&mut self) -> Parsed<Ident> {
        self.tokens.advance();
        self.name("a name")
    }

    /// Consumes a word and the names after it, separated by commas.
    pub(super) fn word_then_names(&mut self) -> Parsed<Vec<Ident>> {
        let mut list = vec![self.word_then_name()?];
        while self.is_sym(",") {
            list.push(self.word_then_name()?);
        }
        Ok(list)
    }

    /// A string; a report calls it `expected`.
    pub(super) fn text(&mut self, expected: &str) -> Parsed<String> {
        match self.tok() {
            Tok::Text(text) => {
                self.tokens.advance();
                Ok(text.to_owned())
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// Reports that the current token is not the expected one.
    pub(super) fn unexpected(&mut self, expected: &str) -> Reported {
        let found = match self.tok() {
            Tok::Name(word) if reserved(word) => format!("the word `{word}`"),
            Tok::Name(word) => format!("the name `{word}`"),
            Tok::Text(_) => "a string".to_string(),
            Tok::Sym("^*") => "`*`".to_string(),
            Tok::Sym(symbol) => format!("`{symbol}`"),
            Tok::Zero => "`0`".to_string(),
            Tok::End => "the end of the file".to_string(),
        };
        let mut diagnostic = Diagnostic::error(
            "syntax-error",
            self.source,
            self.span(),
            format!("expected {expected}, found {found}"),
        )
        .label(format!("expected {expected}"));
        if let (Tok::Name(word), "a statement") = (self.tok(), expected) {
            diagnostic = diagnostic.did_you_mean(
                word,
                STATEMENT_WORDS.iter().chain(&["let", "with"]).copied(),
            );
        }
        self.diagnostics.push(diagnostic);
        Reported
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
