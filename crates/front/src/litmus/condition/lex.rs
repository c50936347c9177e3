//! Tokens of propositions.

use super::cmp;
use diag::Token;
use program::CmpOp;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    Int,
    Cmp(CmpOp),
    And,
    Or,
    Not,
    Open,
    Close,
    OpenBracket,
    CloseBracket,
    Colon,
    Ampersand,
    Plus,
    Minus,
    Star,
    /// A character that does not begin a token.
    Stray,
    End,
}

/// Spellings of tokens; longer ones come first.
const SYMBOLS: &[(&str, TokenKind)] = &[
    ("/\\", TokenKind::And),
    ("\\/", TokenKind::Or),
    ("&&", TokenKind::And),
    ("||", TokenKind::Or),
    ("==", cmp(CmpOp::Eq)),
    ("!=", cmp(CmpOp::Ne)),
    ("<=", cmp(CmpOp::Le)),
    (">=", cmp(CmpOp::Ge)),
    ("=", cmp(CmpOp::Eq)),
    ("<", cmp(CmpOp::Lt)),
    (">", cmp(CmpOp::Gt)),
    ("~", TokenKind::Not),
    ("!", TokenKind::Not),
    ("(", TokenKind::Open),
    (")", TokenKind::Close),
    ("[", TokenKind::OpenBracket),
    ("]", TokenKind::CloseBracket),
    (":", TokenKind::Colon),
    ("&", TokenKind::Ampersand),
    ("+", TokenKind::Plus),
    ("-", TokenKind::Minus),
    ("*", TokenKind::Star),
];

/// All tokens of a text; the last one is [`TokenKind::End`].
pub(super) fn lex(text: &str) -> Vec<Token<TokenKind>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        let start = at;
        if b.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let kind = if is_word_byte(b) {
            let number = b.is_ascii_digit() && !text[at..].starts_with("0x");
            while bytes.get(at).is_some_and(|&b| is_word_byte(b)) {
                at += 1;
                // A sign after `e` or `E` belongs to the exponent.
                let signed = bytes.get(at).is_some_and(|&b| matches!(b, b'+' | b'-'))
                    && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
                at += usize::from(number && signed && matches!(bytes[at - 1], b'e' | b'E'));
            }
            match &text[start..at] {
                "not" => TokenKind::Not,
                _ if b.is_ascii_digit() => TokenKind::Int,
                _ => TokenKind::Word,
            }
        } else if let Some((symbol, kind)) = SYMBOLS.iter().find(|s| text[at..].starts_with(s.0)) {
            at += symbol.len();
            *kind
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
            TokenKind::Stray
        };
        tokens.push(Token::new(kind, start..at));
    }
    tokens.push(Token::new(TokenKind::End, text.len()..text.len()));
    tokens
}

fn is_word_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'%' | b'.')
}
