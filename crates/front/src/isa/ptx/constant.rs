//! Constant expressions: integers, the predefined constant `WARP_SZ`, and operators between them.
//!
//! # Invariants
//! - The reader consumes a whole expression or nothing: without a constant here, the tokens stay.
//!
//! # Sources
//! - PTX ISA 9.4, *Constants*: Integer Constants, Predefined Constants, Integer Constant Expression
//!   Evaluation.
//!
//! # Where we differ
//! - Expressions here have no `%` (it begins registers), comparisons, `!`, `&&`, `||`, `?:` or
//!   casts.
//! - `/` and `>>` reject negative constants, because their result depends on the signedness of
//!   constants.

use super::lex::PtxToken;
use diag::Cursor;

/// The operators, grouped by precedence, the weakest first. A shift is two tokens.
const LEVELS: [&[&str]; 6] = [
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/"],
];

const DEEPEST: usize = 32;

/// Reads the constant expression at the cursor, if there is one.
pub(super) fn constant(text: &str, tokens: &mut Cursor<PtxToken>) -> Option<i64> {
    let mut reader = ConstantReader { tokens, at: 0 };
    let value = reader.level(0, 0)?;
    let read = reader.at;
    // Operators do not accept floating-point constants, which are written as bits (`0f…`).
    let bits = |k: usize| {
        text[tokens.token_at(k).range.clone()]
            .get(..2)
            .is_some_and(|begin| ["0f", "0F", "0d", "0D"].contains(&begin))
    };
    if read > 1 && (0..read).any(bits) {
        return None;
    }
    tokens.go_to(tokens.position() + read);
    Some(value)
}

struct ConstantReader<'a> {
    tokens: &'a Cursor<PtxToken>,
    /// The number of tokens read.
    at: usize,
}

impl ConstantReader<'_> {
    fn is(&self, c: char, ahead: usize) -> bool {
        self.tokens.peek_at(self.at + ahead) == PtxToken::Punct(c)
    }

    /// Reads an expression of operators with at least the precedence of `level`.
    fn level(&mut self, level: usize, depth: usize) -> Option<i64> {
        let Some(operators) = LEVELS.get(level) else {
            return self.operand(depth);
        };
        let mut value = self.level(level + 1, depth)?;
        loop {
            let Some(operator) = operators
                .iter()
                .find(|op: &&&str| op.chars().enumerate().all(|(i, c)| self.is(c, i)))
            else {
                return Some(value);
            };
            let before = self.at;
            self.at += operator.len();
            let Some(right) = self.level(level + 1, depth) else {
                // The operator belongs to something else, such as the `|` before a second
                // destination.
                self.at = before;
                return Some(value);
            };
            value = apply(operator, value, right)?;
        }
    }

    fn operand(&mut self, depth: usize) -> Option<i64> {
        if depth > DEEPEST {
            return None;
        }
        let kind = self.tokens.peek_at(self.at);
        self.at += 1;
        match kind {
            PtxToken::Int(value) => Some(value),
            PtxToken::Punct('-') => self.operand(depth + 1).map(i64::wrapping_neg),
            PtxToken::Punct('+') => self.operand(depth + 1),
            PtxToken::Punct('~') => self.operand(depth + 1).map(|value| !value),
            PtxToken::Punct('(') => {
                let value = self.level(0, depth + 1)?;
                let closed = self.is(')', 0);
                self.at += 1;
                closed.then_some(value)
            }
            _ => None,
        }
    }
}

fn apply(operator: &str, a: i64, b: i64) -> Option<i64> {
    let natural = a >= 0 && b >= 0;
    match operator {
        "|" => Some(a | b),
        "^" => Some(a ^ b),
        "&" => Some(a & b),
        "+" => Some(a.wrapping_add(b)),
        "-" => Some(a.wrapping_sub(b)),
        "*" => Some(a.wrapping_mul(b)),
        "<<" => u32::try_from(b).ok().filter(|b| *b < 64).map(|b| a << b),
        ">>" => u32::try_from(b)
            .ok()
            .filter(|b| natural && *b < 64)
            .map(|b| a >> b),
        "/" => a.checked_div(b).filter(|_| natural),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::ptx::lex::lex;

    fn read(text: &str) -> (Option<i64>, usize) {
        let mut tokens = Cursor::new(lex(text));
        (constant(text, &mut tokens), tokens.position())
    }

    #[test]
    fn expressions_are_worked_out() {
        for (text, value) in [
            ("WARP_SZ", 32),
            ("-WARP_SZ", -32),
            ("WARP_SZ*2+1", 65),
            ("(WARP_SZ-1)", 31),
            ("1+2*3", 7),
            ("(1+2)*3", 9),
            ("~0", -1),
            ("1<<4|3", 19),
            ("0xff & 0x0f ^ 1", 14),
            ("96/WARP_SZ", 3),
            ("8 - 4 - 2", 2),
            ("64>>1", 32),
        ] {
            assert_eq!(read(text).0, Some(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_constant_stays_where_it_is() {
        for text in [
            "-x",
            "x",
            "(1",
            "!p",
            "-7/2",
            "-7>>1",
            "1/0",
            "*3",
            "-0f3F800000",
            "0f3F800000+0f3F800000",
            "",
        ] {
            assert_eq!(read(text), (None, 0), "{text}");
        }
        assert_eq!(read("4 + x"), (Some(4), 1));
        assert_eq!(read("0f3F800000"), (Some(0x3F80_0000), 1));
        assert_eq!(read(&"(".repeat(100_000)), (None, 0));
        assert_eq!(read(&"-".repeat(100_000)), (None, 0));
    }
}
