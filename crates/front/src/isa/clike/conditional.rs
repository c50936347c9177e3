//! Decides the conditions of `#if` from the code and its language. A name that only a compiler's
//! command line defines is unknown.
//!
//! # Invariants
//! - A condition is decided only if every compiler of the language agrees on it. If a version is at
//!   least 700, `>= 600` holds and `>= 800` is unknown.
//!
//! # Sources
//! - C11, 6.10.1, *Conditional inclusion*, 6.10.8, *Predefined macro names*.
//! - CUDA C++ Programming Guide, *`__CUDA_ARCH__`*: memory models apply to compute capability 7.0
//!   and later.
//! - OpenCL C, *Preprocessor Directives and Macros*.

use super::signs::{self, Operator};
use super::words::column;
use program::Dialect;

/// A number, as far as the code and its language determine it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Is(i64),
    /// The version of this name is at least so high.
    AtLeast(i64, &'static str),
    /// The number depends on this name.
    Unknown(String),
}

use Number::{AtLeast, Is, Unknown};

/// A name that compilers define: its least versions in C, OpenCL C and CUDA C++, and the version
/// that a file is read with if the least one decides nothing.
type VersionRow = (&'static str, [Option<i64>; 3], i64);

const VERSIONS: &[VersionRow] = &[
    ("__CUDA_ARCH__", [None, None, Some(700)], 900),
    ("CUDART_VERSION", [None, None, Some(12_000)], 13_000),
    ("CUDA_VERSION", [None, None, Some(12_000)], 13_000),
    ("__CUDACC_VER_MAJOR__", [None, None, Some(12)], 13),
    ("__cplusplus", [None, None, Some(201_703)], 201_703),
    ("__OPENCL_VERSION__", [None, Some(200), None], 300),
    ("__OPENCL_C_VERSION__", [None, Some(200), None], 300),
    (
        "__STDC_VERSION__",
        [Some(201_112), Some(199_901), None],
        201_710,
    ),
];

/// The version that a whole file is read with, where every version above the least is possible.
pub(super) fn chosen_version(name: &str) -> Option<(&'static str, i64)> {
    let (name, _, chosen) = VERSIONS.iter().find(|row| row.0 == name)?;
    Some((name, *chosen))
}

/// The number that every compiler of the language defines a name as. The outer `None`: unknown; the
/// inner `None`: compilers do not define it.
pub(super) fn predefined(name: &str, dialect: Dialect) -> Option<Option<Number>> {
    if name == "__CUDACC__" {
        return Some((dialect == Dialect::Cuda).then_some(Is(1)));
    }
    let (name, least, _) = VERSIONS.iter().find(|row| row.0 == name)?;
    Some(least[column(dialect)].map(|n| AtLeast(n, name)))
}

/// Evaluates the words of a condition; `named` gives the numbers of names.
///
/// # Errors
/// A message if the words do not form an expression.
pub(super) fn value(words: &[String], named: &dyn Fn(&str) -> Number) -> Result<Number, String> {
    let mut reader = ConditionReader {
        words,
        at: 0,
        named,
        depth: 0,
    };
    let value = reader.level(0)?;
    match words.get(reader.at) {
        None => Ok(value),
        Some(word) => Err(format!("`{word}` is not allowed here")),
    }
}

struct ConditionReader<'r> {
    words: &'r [String],
    at: usize,
    named: &'r dyn Fn(&str) -> Number,
    depth: usize,
}

impl<'r> ConditionReader<'r> {
    fn word(&self) -> &'r str {
        self.words.get(self.at).map_or("", String::as_str)
    }

    /// Reads operators of the level `loosest` and of tighter levels.
    fn level(&mut self, loosest: usize) -> Result<Number, String> {
        let mut left = self.unary()?;
        while let Some((level, _)) = signs::binary(self.word(), loosest) {
            let op = self.word();
            self.at += 1;
            let right = self.level(level + 1)?;
            left = apply(op, left, right)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Number, String> {
        self.depth += 1;
        if self.depth > diag::MAX_NESTING {
            return Err("this is nested too deeply".into());
        }
        let word = self.word().to_string();
        self.at += 1;
        let value = match word.as_str() {
            "" => return Err("the condition ends here".into()),
            "!" => match truth(&self.unary()?) {
                Ok(holds) => Is(i64::from(!holds)),
                Err(name) => Unknown(name),
            },
            "-" => apply("-", Is(0), self.unary()?)?,
            "+" => self.unary()?,
            "(" => {
                let value = self.level(0)?;
                if self.word() != ")" {
                    return Err("a parenthesis is not closed".into());
                }
                self.at += 1;
                value
            }
            word if word.starts_with(|c: char| c.is_ascii_digit()) => Is(number(word)?),
            word if word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
                (self.named)(word)
            }
            word => return Err(format!("`{word}` is not allowed here")),
        };
        self.depth -= 1;
        Ok(value)
    }
}

fn number(word: &str) -> Result<i64, String> {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16),
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(&digits[1..], 8),
        None => digits.parse(),
    };
    value.map_err(|_| format!("`{word}` is not a number"))
}

/// Whether a number is not 0. The error: the name that the answer depends on.
pub(super) fn truth(number: &Number) -> Result<bool, String> {
    match number {
        Is(n) => Ok(*n != 0),
        AtLeast(n, _) if *n > 0 => Ok(true),
        AtLeast(_, name) => Err((*name).into()),
        Unknown(name) => Err(name.clone()),
    }
}

fn apply(op: &str, a: Number, b: Number) -> Result<Number, String> {
    fn is(holds: bool) -> Result<Number, String> {
        Ok(Is(i64::from(holds)))
    }
    match (op, truth(&a), truth(&b)) {
        ("||", Ok(true), _) | ("||", _, Ok(true)) => return is(true),
        ("&&", Ok(false), _) | ("&&", _, Ok(false)) => return is(false),
        ("||" | "&&", Ok(_), Ok(b)) => return is(b),
        ("||" | "&&", Err(name), _) | ("||" | "&&", _, Err(name)) => return Ok(Unknown(name)),
        _ => {}
    }
    let decided = match (&a, &b) {
        (Is(a), Is(b)) => Some(calculated(op, *a, *b)?),
        (AtLeast(n, _), Is(c)) => at_least(op, *n, *c),
        (Is(c), AtLeast(n, _)) => {
            let mirrored = match op {
                "<" => ">",
                "<=" => ">=",
                ">" => "<",
                ">=" => "<=",
                op => op,
            };
            at_least(mirrored, *n, *c).filter(|_| is_comparison(op))
        }
        _ => None,
    };
    Ok(match (decided, a, b) {
        (Some(n), ..) => Is(n),
        (None, Unknown(name), _) | (None, _, Unknown(name)) => Unknown(name),
        (None, AtLeast(_, name), _) | (None, _, AtLeast(_, name)) => Unknown(name.into()),
        (None, Is(_), Is(_)) => unreachable!("two numbers have a result"),
    })
}

fn is_comparison(op: &str) -> bool {
    matches!(signs::binary(op, 0), Some((_, Operator::Cmp(_))))
}

/// The result of `number op c` for a number that is at least `n`; `None`: unknown.
fn at_least(op: &str, n: i64, c: i64) -> Option<i64> {
    match op {
        ">=" if c <= n => Some(1),
        ">" | "!=" if c < n => Some(1),
        "<" if c <= n => Some(0),
        "<=" | "==" if c < n => Some(0),
        _ => None,
    }
}

fn calculated(op: &str, a: i64, b: i64) -> Result<i64, String> {
    fn shift(by: i64) -> Result<u32, String> {
        u32::try_from(by)
            .ok()
            .filter(|by| *by < 64)
            .ok_or("a shift by too much".to_string())
    }
    Ok(match op {
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "==" => i64::from(a == b),
        "!=" => i64::from(a != b),
        "<" => i64::from(a < b),
        "<=" => i64::from(a <= b),
        ">" => i64::from(a > b),
        ">=" => i64::from(a >= b),
        "<<" => a << shift(b)?,
        ">>" => a >> shift(b)?,
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" => a.checked_div(b).ok_or("a division by zero")?,
        _ => a.checked_rem(b).ok_or("a division by zero")?,
    })
}
