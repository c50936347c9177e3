//! Splits PTX code into tokens, both as compilers print it and in the short form of litmus tests.
//!
//! # Invariants
//! - Lexing never fails: a character that begins no token becomes a separate token, for the parser
//!   to report.
//! - Linear in the text. Comments are dropped; line ends are kept because they end statements.

use diag::Token;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PtxToken {
    /// An opcode with qualifiers, a name, a register or a directive.
    Word,
    /// The bits of an integer that fits 64 bits.
    Int(i64),
    /// A number with a decimal point.
    Fraction(f64),
    /// A malformed number, or an integer that does not fit 64 bits.
    BadNumber,
    /// A string on one line, including its quotation marks.
    Str,
    Punct(char),
    Newline,
    /// A `/*` that is never closed.
    OpenComment,
    End,
}

/// The name of the predefined constant and its value (PTX ISA 9.4, *Predefined Constants*).
const WARP_SIZE: (&str, i64) = ("WARP_SZ", 32);

/// All tokens of a text; the last one is [`PtxToken::End`].
pub(super) fn lex(text: &str) -> Vec<Token<PtxToken>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::with_capacity(text.len() / 3 + 1);
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        let start = at;
        let kind = match b {
            b'\n' => {
                at += 1;
                PtxToken::Newline
            }
            b' ' | b'\t' | b'\r' | 0x0c => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = text[at..].find('\n').map_or(text.len(), |n| at + n);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => match text[at + 2..].find("*/") {
                Some(n) => {
                    at += n + 4;
                    continue;
                }
                None => {
                    at = text.len();
                    PtxToken::OpenComment
                }
            },
            b'"' if string(&text[at + 1..]).is_some() => {
                at += 2 + string(&text[at + 1..]).unwrap_or_default();
                PtxToken::Str
            }
            b'0'..=b'9' => {
                while bytes
                    .get(at)
                    .is_some_and(|&c| c.is_ascii_alphanumeric() || c == b'.' || c == b'_')
                {
                    at += 1;
                }
                let number = &text[start..at];
                integer(number)
                    .map(PtxToken::Int)
                    .or(number
                        .contains('.')
                        .then(|| number.parse().ok())
                        .flatten()
                        .map(PtxToken::Fraction))
                    .unwrap_or(PtxToken::BadNumber)
            }
            _ if is_word_start(b) => {
                at += 1;
                while let Some(&c) = bytes.get(at) {
                    if is_word_start(c) || c.is_ascii_digit() {
                        at += 1;
                    } else if c == b':'
                        && bytes.get(at + 1) == Some(&b':')
                        && bytes.get(at + 2).is_some_and(u8::is_ascii_alphanumeric)
                    {
                        at += 2;
                    } else {
                        break;
                    }
                }
                if &text[start..at] == WARP_SIZE.0 {
                    PtxToken::Int(WARP_SIZE.1)
                } else {
                    PtxToken::Word
                }
            }
            _ => {
                let c = text[at..].chars().next().unwrap_or('?');
                at += c.len_utf8();
                PtxToken::Punct(c)
            }
        };
        tokens.push(Token {
            kind,
            range: start..at,
        });
    }
    tokens.push(Token {
        kind: PtxToken::End,
        range: text.len()..text.len(),
    });
    tokens
}

/// The length of the text before a closing quotation mark on the same line.
fn string(text: &str) -> Option<usize> {
    text.find(['"', '\n'])
        .filter(|&n| text[n..].starts_with('"'))
}

fn is_word_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || matches!(b, b'_' | b'$' | b'%' | b'.')
}

/// Parses a PTX integer constant: decimal, `0x`, `0b` or octal with a leading zero, with an
/// optional `U`. A floating-point constant (`0f3F800000`, `0d3FF0000000000000`) gives its bits.
pub(super) fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_suffix(['U', 'u']).unwrap_or(text);
    let float = |prefixes: [&str; 2], count: usize| {
        let digits = text
            .strip_prefix(prefixes[0])
            .or_else(|| text.strip_prefix(prefixes[1]))?;
        u64::from_str_radix(digits, 16)
            .ok()
            .filter(|_| digits.len() == count)
            .map(|v| v as i64)
    };
    if let Some(bits) = float(["0f", "0F"], 8).or_else(|| float(["0d", "0D"], 16)) {
        return Some(bits);
    }
    let value = if let Some(hex) = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        u64::from_str_radix(hex, 16)
    } else if let Some(binary) = digits
        .strip_prefix("0b")
        .or_else(|| digits.strip_prefix("0B"))
    {
        u64::from_str_radix(binary, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(&digits[1..], 8)
    } else {
        digits.parse()
    };
    value.ok().map(|v| v as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_qualifiers_and_double_colons_but_not_label_colons() {
        let words: Vec<_> = lex("L1: ld.shared::cta.L1::evict_first.u32 %r1, [x+-4]; // c\n")
            .into_iter()
            .map(|t| t.kind)
            .collect();
        assert_eq!(words[1], PtxToken::Punct(':'));
        assert_eq!(words[2], PtxToken::Word);
        assert_eq!(words[3], PtxToken::Word);
        assert_eq!(words[words.len() - 2], PtxToken::Newline);
    }

    #[test]
    fn integers_are_those_of_ptx() {
        assert_eq!(integer("0x1F"), Some(31));
        assert_eq!(integer("017U"), Some(15));
        assert_eq!(integer("18446744073709551615"), Some(-1));
        assert_eq!(integer("0f3F800000"), Some(0x3f80_0000));
        assert_eq!(
            integer("0dBFF0000000000000"),
            Some(0xbff0_0000_0000_0000_u64 as i64)
        );
        assert_eq!(integer("0f3F8"), None);
        assert_eq!(integer("1.5"), None);
    }
}
