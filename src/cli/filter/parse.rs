//! Turns the words of a filter into its tree. Errors point into the text and state the expectation.
//!
//! # Invariants
//! - Parsing a deep filter does not recurse past [`MAX_NESTING`].

use std::sync::Arc;

use super::pattern::Pattern;
use super::{FilterExpr, FilterKey, KEYS, Match};
use diag::{Cursor, Diagnostic, MAX_NESTING, SourceFile, Span};

const OPERATORS: &str = "`=`, `!=`, `~` or `!~`";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterToken<'a> {
    Word(&'a str),
    /// In quotes: never a keyword.
    Quoted(&'a str),
    Operator(&'static str),
    Open,
    Close,
    End,
}

type Fail = Box<Diagnostic>;

/// Reads a whole filter.
pub(super) fn parse(file: &Arc<SourceFile>) -> Result<FilterExpr, Fail> {
    let mut parser = FilterParser {
        file,
        tokens: Cursor::new(lex(file)?),
    };
    let expr = parser.expr()?;
    match parser.tokens.peek() {
        FilterToken::End => Ok(expr),
        FilterToken::Close => Err(parser.wrong("this `)` closes nothing", "")),
        _ => Err(parser.wrong(
            "two conditions without a word between them",
            "expected `and` or `or` between them",
        )),
    }
}

fn lex(file: &Arc<SourceFile>) -> Result<Vec<diag::Token<FilterToken<'_>>>, Fail> {
    let text = file.text.as_str();
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let start = text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            tokens.push(diag::Token::new(FilterToken::End, start..start));
            return Ok(tokens);
        };
        let operator = ["!=", "!~", "=", "~"]
            .into_iter()
            .find(|op| rest.starts_with(op));
        let (token, length) = match first {
            '(' => (FilterToken::Open, 1),
            ')' => (FilterToken::Close, 1),
            _ if operator.is_some() => {
                let operator = operator.unwrap_or_default();
                (FilterToken::Operator(operator), operator.len())
            }
            '"' | '\'' => match rest[1..].find(first) {
                Some(end) => (FilterToken::Quoted(&rest[1..=end]), end + 2),
                None => {
                    let span = Span::new(start, text.len());
                    let plain =
                        Diagnostic::error("filter", file, span, "a value in quotes does not end");
                    return Err(Box::new(plain.label(format!("expected another {first}"))));
                }
            },
            _ => {
                let end = rest
                    .find(|c: char| c.is_whitespace() || "()=~\"'".contains(c))
                    .unwrap_or(rest.len());
                // `name!=x`: the mark belongs to the operator.
                let word = match rest[end..].starts_with(['=', '~']) {
                    true => rest[..end].strip_suffix('!').unwrap_or(&rest[..end]),
                    false => &rest[..end],
                };
                (FilterToken::Word(word), word.len())
            }
        };
        tokens.push(diag::Token::new(token, start..start + length));
        rest = &rest[length..];
    }
}

struct FilterParser<'a> {
    file: &'a Arc<SourceFile>,
    tokens: Cursor<FilterToken<'a>>,
}

impl<'a> FilterParser<'a> {
    fn next(&mut self) -> (FilterToken<'a>, Span) {
        let token = self.tokens.advance();
        (token.kind, Span::new(token.range.start, token.range.end))
    }

    fn is(&self, keyword: &str) -> bool {
        self.tokens.peek() == FilterToken::Word(keyword)
    }

    fn wrong(&self, message: &str, label: &str) -> Fail {
        let range = self.tokens.range();
        Box::new(
            Diagnostic::error(
                "filter",
                self.file,
                Span::new(range.start, range.end),
                message,
            )
            .label(label),
        )
    }

    fn expr(&mut self) -> Result<FilterExpr, Fail> {
        self.list("or", FilterParser::term, FilterExpr::Or)
    }

    fn term(&mut self) -> Result<FilterExpr, Fail> {
        self.list("and", FilterParser::factor, FilterExpr::And)
    }

    fn list(
        &mut self,
        keyword: &str,
        part: fn(&mut Self) -> Result<FilterExpr, Fail>,
        all: fn(Vec<FilterExpr>) -> FilterExpr,
    ) -> Result<FilterExpr, Fail> {
        let first = part(self)?;
        let mut parts = vec![first];
        while self.is(keyword) {
            self.next();
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 {
            parts.remove(0)
        } else {
            all(parts)
        })
    }

    fn factor(&mut self) -> Result<FilterExpr, Fail> {
        if !self.tokens.descend() {
            return Err(self.wrong(
                "this filter is nested too deeply",
                &format!("at most {MAX_NESTING} levels"),
            ));
        }
        let expr = self.inner()?;
        self.tokens.ascend();
        Ok(expr)
    }

    fn inner(&mut self) -> Result<FilterExpr, Fail> {
        if self.is("not") {
            self.next();
            return Ok(FilterExpr::Not(Box::new(self.factor()?)));
        }
        if self.tokens.peek() == FilterToken::Open {
            let (_, open) = self.next();
            let expr = self.expr()?;
            if self.tokens.peek() != FilterToken::Close {
                let mut fail = self.wrong("a `(` is not closed", "expected `)`");
                fail.secondary.push((open, "opened here".into()));
                return Err(fail);
            }
            self.next();
            return Ok(expr);
        }
        if self.is_name() {
            let part = self.wanted(FilterKey::Name, "name", "~")?;
            return Ok(FilterExpr::Is(FilterKey::Name, part));
        }
        let (key, name) = self.key()?;
        let (operator, span) = self.next();
        let FilterToken::Operator(operator) = operator else {
            let plain = Diagnostic::error(
                "filter",
                self.file,
                span,
                format!("`{name}` alone is not a condition"),
            );
            return Err(Box::new(plain.label(format!("expected {OPERATORS}"))));
        };
        let wanted = self.wanted(key, name, operator)?;
        let is = FilterExpr::Is(key, wanted);
        Ok(if operator.starts_with('!') {
            FilterExpr::Not(Box::new(is))
        } else {
            is
        })
    }

    /// Whether a word or text stands alone: it is a pattern for the name.
    fn is_name(&self) -> bool {
        let FilterToken::Word(word) = self.tokens.peek() else {
            return matches!(self.tokens.peek(), FilterToken::Quoted(_));
        };
        let is_taken = KEYS.iter().any(|row| row.0 == word) || ["and", "or"].contains(&word);
        !is_taken && !matches!(self.tokens.peek_at(1), FilterToken::Operator(_))
    }

    fn key(&mut self) -> Result<(FilterKey, &'static str), Fail> {
        let names = || KEYS.iter().map(|row| row.0);
        let listed = names().collect::<Vec<_>>().join(", ");
        let (token, span) = self.next();
        let FilterToken::Word(word) = token else {
            let plain = Diagnostic::error("filter", self.file, span, "a condition is missing");
            return Err(Box::new(
                plain
                    .label("expected a key, `not` or `(`")
                    .note(format!("keys: {listed}")),
            ));
        };
        match KEYS.iter().find(|row| row.0 == word) {
            Some(row) => Ok((row.1, row.0)),
            None => {
                let message = format!("`{word}` is not a key of filters");
                let plain =
                    Diagnostic::error("filter", self.file, span, message).label("expected a key");
                Err(Box::new(
                    plain
                        .note(format!("keys: {listed}"))
                        .did_you_mean(word, names()),
                ))
            }
        }
    }

    fn wanted(&mut self, key: FilterKey, name: &str, operator: &str) -> Result<Match, Fail> {
        let (token, span) = self.next();
        let (FilterToken::Word(value) | FilterToken::Quoted(value)) = token else {
            let message = format!("`{name}` has no value to compare with");
            let plain = Diagnostic::error("filter", self.file, span, message);
            return Err(Box::new(
                plain.label("expected a value; put blanks and parentheses in quotes"),
            ));
        };
        if operator.ends_with('~') {
            return Pattern::parse(value).map(Match::Like).map_err(|what| {
                Box::new(
                    Diagnostic::error(
                        "filter",
                        self.file,
                        span,
                        format!("`{value}` is not a pattern"),
                    )
                    .label(what),
                )
            });
        }
        if let Some(words) = key.words()
            && !words.contains(&value)
        {
            let plain = Diagnostic::error(
                "filter",
                self.file,
                span,
                format!("no {name} is called `{value}`"),
            );
            let noted = plain
                .label("never true")
                .note(format!("{name}: {}", words.join(", ")));
            return Err(Box::new(noted.did_you_mean(value, words)));
        }
        Ok(Match::Exactly(value.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diag::{TextStyle, render};

    fn tree(text: &str) -> String {
        match parse(&SourceFile::new("--filter", text)) {
            Ok(expr) => expr.to_string(),
            Err(fail) => render(&fail, TextStyle::Plain),
        }
    }

    #[test]
    fn and_binds_closer_than_or_and_not_closest() {
        assert_eq!(
            tree("name=a or name=b and not tag=c"),
            "(name=a or (name=b and not tag=c))"
        );
        assert_eq!(
            tree("(name = a or name = b) and tag = c"),
            "((name=a or name=b) and tag=c)"
        );
        assert_eq!(tree("not not name!=a"), "not not not name=a");
        assert_eq!(
            tree("name ~ 'a (b) or' and path~x/*"),
            "(name~a (b) or and path~x/*)"
        );
        assert_eq!(tree("expected=none"), "expected=none");
    }

    #[test]
    fn a_word_alone_is_a_part_of_the_name() {
        assert_eq!(tree("MP-gpu"), "name~MP-gpu");
        assert_eq!(
            tree("not (MP or '^a b') and model=ptx"),
            "(not (name~MP or name~^a b) and model=ptx)"
        );
        assert!(tree("MP[").contains("`MP[` is not a pattern"));
    }

    #[test]
    fn errors_point_at_the_place_and_propose() {
        let expected = "\
error[filter]: `nmae` is not a key of filters
 --> --filter:1:12
  |
1 | model=a or nmae = b
  |            ^^^^ expected a key
  |
  = note: keys: name, path, tag, feature, dialect, model, property, expected, verdict
  = help: did you mean `name`?
";
        assert_eq!(tree("model=a or nmae = b"), expected);
        for (text, word) in [
            ("", "a condition is missing"),
            ("name", "alone is not a condition"),
            ("name =", "has no value to compare with"),
            ("name = a b", "expected `and` or `or`"),
            ("name = a name = b", "expected `and` or `or`"),
            ("(name = a", "is not closed"),
            ("name = a)", "closes nothing"),
            ("name = 'a", "does not end"),
            ("verdict = forbiden", "did you mean `forbidden`?"),
            ("dialect = ptxx", "did you mean `ptx`?"),
            ("name ~ [a", "expected `]`"),
            ("and", "`and` is not a key of filters"),
            ("= a", "a condition is missing"),
        ] {
            let shown = tree(text);
            assert!(
                shown.starts_with("error[filter]") && shown.contains(word),
                "{text}: {shown}"
            );
        }
    }

    #[test]
    fn depth_is_limited() {
        assert!(tree(&"(".repeat(100_000)).contains("nested too deeply"));
        assert!(tree(&"not ".repeat(100_000)).contains("nested too deeply"));
    }
}
