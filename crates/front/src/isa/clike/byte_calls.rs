//! Lowers copies of memory by a number of bytes: `memcpy(to, from, n * sizeof(int))`.
//!
//! # Sources
//! - C11, 7.24.2, *Copying functions*; 7.24.6.1, *The memset function*.

use std::ops::Range;

use program::{BinOp, Expr};

use super::ast::Expr as Tree;
use super::library::{COPY, OF_BYTES};
use super::lower::Lowering;
use super::types::{Type, Value, folded};

impl Lowering<'_, '_> {
    /// `memcpy(to, from, bytes)` and its like; `None`: the call is another one.
    ///
    /// The number of bytes is a known multiple of the elements' size: where a part of an element is
    /// copied, the front end refuses the call.
    pub(super) fn call_of_bytes(
        &mut self,
        tree: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Option<Value> {
        let row = OF_BYTES.iter().find(|row| row.0 == self.str(name))?;
        let known = self.functions.get(row.1)?.clone();
        let [to, middle, bytes] = args else {
            return None;
        };
        let size = self.element_size(to)?;
        let copied = row.1 == COPY;
        let alike = match copied {
            true => self.element_size(middle) == Some(size),
            false => self.peeked(middle) == Expr::Const(0),
        };
        let count = self.peeked(bytes);
        if !alike || !is_multiple(&folded(count), size) {
            let expected = match copied {
                true => "whole elements, and two pointers to elements of one size",
                false => "whole elements, and the byte 0",
            };
            self.error(
                "unsupported-function",
                &tree.range,
                format!("this call of `{}` is not supported", row.0),
                |d| {
                    d.label(format!("expected {expected}"))
                        .help("write the number of bytes as `n * sizeof(…)`, or use a loop")
                },
            );
            return Some(Value::void());
        }
        let given: &[&Tree] = if copied {
            &[to, middle, bytes]
        } else {
            &[to, bytes]
        };
        self.call_function(&tree.range, name, &known, None, given)
    }

    /// The value of an expression, without its code.
    fn peeked(&mut self, tree: &Tree) -> Expr {
        let code = self.code.len();
        let value = self.eval(tree).expr;
        self.code.truncate(code);
        self.read_only.retain(|read| *read < code);
        value
    }

    /// The bytes of an element behind a pointer or of an array.
    fn element_size(&mut self, pointer: &Tree) -> Option<u64> {
        let value = self.unevaluated(pointer);
        let of = match &value.ty {
            Type::Array(of, _) => of.ty.clone(),
            _ => value.target()?.ty.clone(),
        };
        Some(of.size()).filter(|size| *size > 0)
    }
}

/// Whether a number is a multiple of `size` for all values of its parts.
fn is_multiple(number: &Expr, size: u64) -> bool {
    match number {
        Expr::Const(n) => n.unsigned_abs().is_multiple_of(size),
        Expr::Bin(BinOp::Mul, _, a, b) => is_multiple(a, size) || is_multiple(b, size),
        Expr::Bin(BinOp::Add | BinOp::Sub, _, a, b) => is_multiple(a, size) && is_multiple(b, size),
        Expr::Bin(BinOp::Shl, _, a, b) => match &**b {
            Expr::Const(by @ 0..=31) => (1_u64 << by).is_multiple_of(size) || is_multiple(a, size),
            _ => false,
        },
        Expr::Cast(_, a) => is_multiple(a, size),
        _ => false,
    }
}
