//! Reads the assumptions of a file about a launch: `n <= 1024 && blockDim.x % 32 == 0`.
//!
//! Names are arguments and coordinates; operators and their precedence are those of C, over
//! integers that do not overflow.

use program::{BinOp, CmpOp, Ty};
use rustc_hash::FxHashMap;

use crate::term::{Term, Terms};

/// Reads an assumption.
///
/// # Errors
/// What is wrong with it, for people.
pub fn parse(
    text: &str,
    names: &FxHashMap<String, Term>,
    terms: &mut Terms,
) -> Result<Term, String> {
    let mut parser = AssumptionParser {
        rest: text,
        names,
        terms,
        depth: 0,
    };
    let term = parser.level(0)?;
    if !parser.rest.trim().is_empty() {
        let rest = parser.rest.trim();
        return Err(format!("expected an operator instead of `{rest}`"));
    }
    Ok(parser.terms.truth(term))
}

struct AssumptionParser<'a> {
    rest: &'a str,
    names: &'a FxHashMap<String, Term>,
    terms: &'a mut Terms,
    depth: u32,
}

/// Operators, weakest first; of those of one line, longer ones come first.
const LEVELS: [&[&str]; 6] = [
    &["||"],
    &["&&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// How deep parentheses may be nested.
const DEEPEST: u32 = 100;

impl AssumptionParser<'_> {
    fn level(&mut self, level: usize) -> Result<Term, String> {
        let Some(operators) = LEVELS.get(level) else {
            return self.atom();
        };
        let mut left = self.level(level + 1)?;
        loop {
            self.rest = self.rest.trim_start();
            let found = operators.iter().find(|op| self.rest.starts_with(**op));
            let Some(op) = found else {
                return Ok(left);
            };
            self.rest = &self.rest[op.len()..];
            let right = self.level(level + 1)?;
            left = self.operation(op, left, right);
        }
    }

    fn operation(&mut self, op: &str, a: Term, b: Term) -> Term {
        let terms = &mut *self.terms;
        let bin = match op {
            "+" => Some(BinOp::Add),
            "-" => Some(BinOp::Sub),
            "*" => Some(BinOp::Mul),
            "/" => Some(BinOp::Div),
            "%" => Some(BinOp::Rem),
            _ => None,
        };
        if let Some(bin) = bin {
            return terms.bin(bin, Ty::WORD, a, b);
        }
        let cmp = match op {
            "==" => CmpOp::Eq,
            "!=" => CmpOp::Ne,
            "<" => CmpOp::Lt,
            "<=" => CmpOp::Le,
            ">" => CmpOp::Gt,
            ">=" => CmpOp::Ge,
            _ => {
                let (a, b) = (terms.truth(a), terms.truth(b));
                return match op {
                    "&&" => terms.and(vec![a, b]),
                    _ => terms.or(vec![a, b]),
                };
            }
        };
        terms.cmp(cmp, Ty::WORD, a, b)
    }

    fn atom(&mut self) -> Result<Term, String> {
        self.rest = self.rest.trim_start();
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("this is nested too deeply".into());
        }
        let term = self.atom_inside();
        self.depth -= 1;
        term
    }

    fn atom_inside(&mut self) -> Result<Term, String> {
        if let Some(rest) = self.rest.strip_prefix('(') {
            self.rest = rest;
            let inner = self.level(0)?;
            self.rest = self.rest.trim_start();
            self.rest = match self.rest.strip_prefix(')') {
                Some(rest) => rest,
                None => return Err("expected `)`".into()),
            };
            return Ok(inner);
        }
        if let Some(rest) = self.rest.strip_prefix('!') {
            self.rest = rest;
            let inner = self.atom()?;
            let inner = self.terms.truth(inner);
            return Ok(self.terms.not(inner));
        }
        if let Some(rest) = self.rest.strip_prefix('-') {
            self.rest = rest;
            let (zero, inner) = (self.terms.int(0), self.atom()?);
            return Ok(self.terms.bin(BinOp::Sub, Ty::WORD, zero, inner));
        }
        let first = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '%')))
            .unwrap_or(self.rest.len());
        // `%` begins a register, and is an operator behind a name.
        let end = match self.rest.get(1..first).and_then(|rest| rest.find('%')) {
            Some(at) => at + 1,
            None => first,
        };
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if word.is_empty() {
            return Err(match self.rest.is_empty() {
                true => "expected a name or a number at the end".into(),
                false => format!("expected a name or a number before `{}`", self.rest),
            });
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return match word.parse() {
                Ok(v) => Ok(self.terms.int(v)),
                Err(_) => Err(format!("`{word}` is not a number")),
            };
        }
        self.name(word)
    }

    /// `n`, `blockDim.x`, `%ntid.x`, `get_local_size(0)`.
    fn name(&mut self, word: &str) -> Result<Term, String> {
        let mut name = word.trim_start_matches('%').to_string();
        if let Some(rest) = self.rest.trim_start().strip_prefix('(')
            && let Some((axis, rest)) = rest.split_once(')')
        {
            self.rest = rest;
            let axis = axis.trim();
            name = match axis {
                "" => name,
                _ => format!("{name}.{axis}"),
            };
        }
        let known = self.names.get(&name).copied();
        known.ok_or_else(|| format!("`{name}` is neither an argument nor a coordinate"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::{Level, Origin};

    fn holds(text: &str, n: i64) -> Result<bool, String> {
        let mut terms = Terms::default();
        let range = (i128::from(i32::MIN), i128::from(i32::MAX));
        let x = terms.fresh("n", Level::Grid, Origin::Argument, range);
        let names = FxHashMap::from_iter([("n".to_string(), x), ("blockDim.x".to_string(), x)]);
        let term = parse(text, &names, &mut terms)?;
        let value = terms.int(n);
        let term = terms.replace(term, &FxHashMap::from_iter([(x, value)]));
        Ok(terms.constant(term) == Some(1))
    }

    #[test]
    fn assumptions_are_conditions() {
        assert_eq!(holds("n <= 1024 && blockDim.x % 32 == 0", 64), Ok(true));
        assert_eq!(holds("n <= 1024 && n%32 == 0", 65), Ok(false));
        assert_eq!(holds("!(n > 3) || n == 7", 7), Ok(true));
        assert_eq!(holds("n*2 + 1 > -3", 0), Ok(true));
    }

    #[test]
    fn mistakes_are_told() {
        for text in ["n <=", "m > 1", "n > 1)", "(n > 1", "n 1"] {
            assert!(holds(text, 1).is_err(), "{text}");
        }
    }
}
