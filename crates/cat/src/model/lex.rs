//! Tokens of the model language.
//!
//! # Invariants
//! - Lexing never fails: unreadable text becomes a diagnostic and is skipped. The parser always
//!   gets a token list that ends in [`CatTok::End`].
//! - Comments are not tokens. They are kept separately, because the comment above an axiom
//!   documents it.
//!
//! # Sources
//! - herdtools7, manual, *The cat language*: names, `(* *)` comments that nest, `#` comments.
//! - Dartagnan's grammar: `//` and `/* */` comments, `(r)-1` for an inverse.

use std::sync::Arc;

use diag::{Diagnostic, SourceFile, Span, Token};

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CatTok<'a> {
    /// A name or a keyword.
    Name(&'a str),
    /// `"…"`, without its quotes.
    Text(&'a str),
    /// An operator or bracket, spelled as in [`SYMBOLS`] (a postfix operator without its hat).
    Sym(&'static str),
    /// `0`
    Zero,
    /// The end of the text.
    End,
}

/// A comment: its text without markers, and its span.
#[derive(Clone, Debug)]
pub(super) struct Comment {
    pub(super) text: String,
    pub(super) span: Span,
}

/// The tokens, comments and errors of one text.
pub(super) struct TokenList<'a> {
    pub(super) tokens: Vec<Token<CatTok<'a>>>,
    pub(super) comments: Vec<Comment>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Source spelling and token, longest first.
const SYMBOLS: &[(&str, &str)] = &[
    ("^-1", "^-1"),
    ("^+", "+"),
    ("^*", "^*"),
    ("^?", "?"),
    ("-1", "^-1"),
    ("->", "->"),
    ("++", "++"),
    ("||", "||"),
    ("&&", "&&"),
    ("|", "|"),
    (";", ";"),
    ("\\", "\\"),
    ("&", "&"),
    ("~", "~"),
    ("+", "+"),
    ("*", "*"),
    ("?", "?"),
    ("(", "("),
    (")", ")"),
    ("[", "["),
    ("]", "]"),
    ("{", "{"),
    ("}", "}"),
    (",", ","),
    ("=", "="),
    (":", ":"),
];

/// Reads a whole text.
pub(super) fn lex(source: &Arc<SourceFile>) -> TokenList<'_> {
    let mut lexer = ModelLexer {
        source,
        text: &source.text,
        at: 0,
        out: TokenList {
            tokens: Vec::new(),
            comments: Vec::new(),
            diagnostics: Vec::new(),
        },
    };
    while lexer.step() {}
    let end = source.text.len();
    lexer.out.tokens.push(Token::new(CatTok::End, end..end));
    lexer.out
}

struct ModelLexer<'a> {
    source: &'a Arc<SourceFile>,
    text: &'a str,
    at: usize,
    out: TokenList<'a>,
}

impl<'a> ModelLexer<'a> {
    /// Reads one token, comment or run of blanks; false at the end.
    fn step(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else {
            return false;
        };
        if first.is_whitespace() || first == '\u{feff}' {
            self.at += first.len_utf8();
        } else if rest.starts_with("(*") {
            self.nested_comment();
        } else if rest.starts_with("/*") {
            self.block_comment();
        } else if rest.starts_with("//") || first == '#' {
            self.line_comment(if first == '#' { 1 } else { 2 });
        } else if first == '"' {
            self.string();
        } else if first.is_ascii_alphabetic() || first == '_' {
            self.name();
        } else if first == '0' && !rest[1..].starts_with(|c: char| c.is_ascii_alphanumeric()) {
            self.push(CatTok::Zero, 1);
        } else if let Some((spelling, token)) = SYMBOLS.iter().find(|(s, _)| rest.starts_with(s)) {
            self.push(CatTok::Sym(token), spelling.len());
        } else {
            self.unexpected(first);
        }
        true
    }

    fn push(&mut self, tok: CatTok<'a>, len: usize) {
        self.out
            .tokens
            .push(Token::new(tok, self.at..self.at + len));
        self.at += len;
    }

    /// A name: letters, digits and `_`. `-` and `.` belong to it only before a letter, digit or
    /// `_`, so that `r->` and a final `-` end it.
    fn name(&mut self) {
        let bytes = self.text.as_bytes();
        fn word(b: u8) -> bool {
            b.is_ascii_alphanumeric() || b == b'_'
        }
        let mut end = self.at + 1;
        while end < bytes.len() {
            let inner = (bytes[end] == b'-' || bytes[end] == b'.')
                && bytes.get(end + 1).is_some_and(|&b| word(b));
            if word(bytes[end]) || inner || bytes[end] == b'\'' {
                end += 1;
            } else {
                break;
            }
        }
        self.push(CatTok::Name(&self.text[self.at..end]), end - self.at);
    }

    fn string(&mut self) {
        match self.text[self.at + 1..].find('"') {
            Some(len) => self.push(
                CatTok::Text(&self.text[self.at + 1..self.at + 1 + len]),
                len + 2,
            ),
            None => self.unterminated("unterminated-string", "this string has no closing `\"`", 1),
        }
    }

    fn nested_comment(&mut self) {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let (mut at, mut depth) = (start + 2, 1usize);
        while depth > 0 {
            match bytes.get(at..at + 2) {
                Some(b"(*") => {
                    depth += 1;
                    at += 2;
                }
                Some(b"*)") => {
                    depth -= 1;
                    at += 2;
                }
                Some(_) => at += 1,
                None => {
                    return self.unterminated(
                        "unterminated-comment",
                        "this comment has no closing `*)`",
                        2,
                    );
                }
            }
        }
        self.comment(start + 2, at - 2, start, at);
    }

    fn block_comment(&mut self) {
        match self.text[self.at + 2..].find("*/") {
            Some(len) => {
                let inner = self.at + 2;
                self.comment(inner, inner + len, self.at, inner + len + 2);
            }
            None => self.unterminated(
                "unterminated-comment",
                "this comment has no closing `*/`",
                2,
            ),
        }
    }

    fn line_comment(&mut self, marker: usize) {
        let end = self.text[self.at..]
            .find('\n')
            .map_or(self.text.len(), |n| self.at + n);
        self.comment(self.at + marker, end, self.at, end);
    }

    fn comment(&mut self, from: usize, to: usize, start: usize, end: usize) {
        let text = self.text[from..to].to_string();
        self.out.comments.push(Comment {
            text,
            span: Span::new(start, end),
        });
        self.at = end;
    }

    /// Reports an opening token that is never closed; the rest of the text cannot be read.
    fn unterminated(&mut self, id: &'static str, message: &str, len: usize) {
        let span = Span::new(self.at, self.at + len);
        self.out
            .diagnostics
            .push(Diagnostic::error(id, self.source, span, message).label("opened here"));
        self.at = self.text.len();
    }

    /// Reports a run of the same unexpected character once.
    fn unexpected(&mut self, first: char) {
        let start = self.at;
        while self.text[self.at..].starts_with(first) {
            self.at += first.len_utf8();
        }
        let shown = first.escape_debug();
        self.out.diagnostics.push(
            Diagnostic::error(
                "unexpected-character",
                self.source,
                Span::new(start, self.at),
                format!("`{shown}` has no meaning in the model language"),
            )
            .label("not expected here"),
        );
    }
}

/// The texts of several comments as one: markers, frames of stars and common leading blanks
/// removed.
pub(super) fn clean(comments: &[Comment]) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for comment in comments {
        for line in comment.text.lines() {
            let frame = !line.trim().is_empty() && line.trim().chars().all(|c| c == '*');
            if frame {
                continue;
            }
            let line = line
                .trim()
                .trim_start_matches('*')
                .trim_end_matches('*')
                .trim();
            if !(line.is_empty() && lines.last().is_some_and(|l| l.is_empty())) {
                lines.push(line);
            }
        }
    }
    while lines.first().is_some_and(|l| l.is_empty()) {
        lines.remove(0);
    }
    while lines.last().is_some_and(|l| l.is_empty()) {
        lines.pop();
    }
    lines.join("\n")
}
