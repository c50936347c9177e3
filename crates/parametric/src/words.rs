//! Questions over machine words, in SMT-LIB: arithmetic as it is, which wraps around.
//!
//! # Invariants
//! - Each value is a word of 64 bits, as the program IR has it: wrapped to its type.
//! - Whatever is not expressed is a free function: an unsatisfiable question is one.

use std::fmt::Write;

use program::{BinOp, CmpOp, Ty};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::term::{ALIGNED, Node, SymbolId, Term, Terms, addresses};

const SORT: &str = "(_ BitVec 64)";

struct WordTerms<'a> {
    terms: &'a Terms,
    text: String,
    values: FxHashMap<Term, String>,
    functions: FxHashSet<SymbolId>,
    known: FxHashSet<String>,
    /// Addresses of objects, and their bits.
    addresses: Vec<(String, u8)>,
}

/// The question whether all of the conditions can hold.
pub fn question(terms: &Terms, all: &[Term]) -> String {
    let mut words = WordTerms {
        terms,
        text: String::new(),
        values: FxHashMap::default(),
        functions: FxHashSet::default(),
        known: FxHashSet::default(),
        addresses: Vec::new(),
    };
    for t in all {
        let condition = words.condition(*t);
        let _ = writeln!(words.text, "(assert {condition})");
    }
    words.text
}

fn word(v: i64) -> String {
    format!("#x{:016x}", v as u64)
}

/// The low bits of a word.
fn low(ty: Ty, x: &str) -> String {
    match ty.bits {
        64 => x.to_string(),
        bits => format!("((_ extract {} 0) {x})", bits - 1),
    }
}

/// A value of a type as a word.
fn extended(ty: Ty, x: &str) -> String {
    match (ty.bits, ty.signed) {
        (64, _) => x.to_string(),
        (bits, true) => format!("((_ sign_extend {}) {x})", 64 - bits),
        (bits, false) => format!("((_ zero_extend {}) {x})", 64 - bits),
    }
}

impl WordTerms<'_> {
    fn condition(&mut self, t: Term) -> String {
        match self.terms.node(t).clone() {
            Node::Const(v) => (v != 0).to_string(),
            _ if self.terms.is_truth(t) => {
                let value = self.value(t);
                format!("(= {value} {})", word(1))
            }
            _ => {
                let value = self.value(t);
                format!("(not (= {value} {}))", word(0))
            }
        }
    }

    fn value(&mut self, t: Term) -> String {
        if let Some(known) = self.values.get(&t) {
            return known.clone();
        }
        let name = format!("w{}", t.0);
        let text = match self.terms.node(t).clone() {
            Node::Const(v) => {
                self.values.insert(t, word(v));
                return word(v);
            }
            Node::Symbol(id, args) => return self.symbol(t, id, &args),
            Node::Address(_, bits) => return self.address(t, bits),
            Node::And(all) => self.join("and", &all),
            Node::Or(all) => self.join("or", &all),
            Node::Not(a) => {
                let a = self.condition(a);
                format!("(ite {a} {} {})", word(0), word(1))
            }
            Node::Ite(c, a, b) => {
                let (c, a, b) = (self.condition(c), self.value(a), self.value(b));
                format!("(ite {c} {a} {b})")
            }
            Node::Cast(ty, a) => {
                let a = self.value(a);
                extended(ty, &low(ty, &a))
            }
            Node::Cmp(op, ty, a, b) => {
                let (a, b) = (self.value(a), self.value(b));
                let c = compared(op, ty, &low(ty, &a), &low(ty, &b));
                format!("(ite {c} {} {})", word(1), word(0))
            }
            Node::Bin(op, ty, a, b) => {
                let (a, b) = (self.value(a), self.value(b));
                self.operation(op, ty, &low(ty, &a), &low(ty, &b))
            }
        };
        let _ = writeln!(self.text, "(define-fun {name} () {SORT} {text})");
        self.values.insert(t, name.clone());
        name
    }

    /// The address of an object: any number that fits. No two objects have the same.
    fn address(&mut self, t: Term, bits: u8) -> String {
        let name = format!("t{}", t.0);
        let (least, most) = addresses(bits);
        let (least, most) = (word(least as i64), word(most as i64));
        let offset = word((1 << ALIGNED) - 1);
        let _ = writeln!(self.text, "(declare-fun {name} () {SORT})");
        let _ = writeln!(
            self.text,
            "(assert (and (bvule {least} {name}) (bvule {name} {most}) (= (bvand {name} {offset}) \
             {})))",
            word(0)
        );
        for (other, of) in &self.addresses {
            if *of == bits {
                let _ = writeln!(self.text, "(assert (not (= {name} {other})))");
            }
        }
        self.addresses.push((name.clone(), bits));
        self.values.insert(t, name.clone());
        name
    }

    fn join(&mut self, op: &str, all: &[Term]) -> String {
        let parts: Vec<String> = all.iter().map(|t| self.condition(*t)).collect();
        format!("(ite ({op} {}) {} {})", parts.join(" "), word(1), word(0))
    }

    fn symbol(&mut self, t: Term, id: SymbolId, args: &[Term]) -> String {
        let name = format!("t{}", t.0);
        let _ = writeln!(self.text, "(declare-fun {name} () {SORT})");
        if !args.is_empty() {
            let function = format!("f{}", id.0);
            if self.functions.insert(id) {
                let sorts = vec![SORT; args.len()].join(" ");
                let _ = writeln!(self.text, "(declare-fun {function} ({sorts}) {SORT})");
            }
            let args: Vec<String> = args.iter().map(|a| self.value(*a)).collect();
            let args = args.join(" ");
            let _ = writeln!(self.text, "(assert (= {name} ({function} {args})))");
        }
        let (least, most) = self.terms.range(t);
        if let (Ok(least), Ok(most)) = (i64::try_from(least), i64::try_from(most)) {
            let (least, most) = (word(least), word(most));
            let _ = writeln!(
                self.text,
                "(assert (and (bvsle {least} {name}) (bvsle {name} {most})))"
            );
        }
        self.values.insert(t, name.clone());
        name
    }

    fn operation(&mut self, op: BinOp, ty: Ty, a: &str, b: &str) -> String {
        let zero = format!("(_ bv0 {})", ty.bits);
        let least = |smaller: &str| format!("(ite {smaller} {a} {b})");
        let word = match op {
            BinOp::Add => format!("(bvadd {a} {b})"),
            BinOp::Sub => format!("(bvsub {a} {b})"),
            BinOp::Mul => format!("(bvmul {a} {b})"),
            BinOp::Div | BinOp::Rem => {
                let name = match (op, ty.signed) {
                    (BinOp::Div, true) => "bvsdiv",
                    (BinOp::Div, false) => "bvudiv",
                    (_, true) => "bvsrem",
                    (_, false) => "bvurem",
                };
                let otherwise = match op {
                    BinOp::Div => format!("(bvnot {zero})"),
                    _ => a.to_string(),
                };
                format!("(ite (= {b} {zero}) {otherwise} ({name} {a} {b}))")
            }
            BinOp::And => format!("(bvand {a} {b})"),
            BinOp::Or => format!("(bvor {a} {b})"),
            BinOp::Xor => format!("(bvxor {a} {b})"),
            // Amounts of all bits and more give what SMT-LIB gives.
            BinOp::Shl => format!("(bvshl {a} {b})"),
            BinOp::Shr if ty.signed => format!("(bvashr {a} {b})"),
            BinOp::Shr => format!("(bvlshr {a} {b})"),
            BinOp::Min => least(&compared(CmpOp::Lt, ty, a, b)),
            BinOp::Max => least(&compared(CmpOp::Gt, ty, a, b)),
            _ => {
                let name = format!("|{op:?} {}|", ty.bits);
                let sort = format!("(_ BitVec {})", ty.bits);
                if self.known.insert(name.clone()) {
                    let _ = writeln!(self.text, "(declare-fun {name} ({sort} {sort}) {sort})");
                }
                format!("({name} {a} {b})")
            }
        };
        extended(ty, &word)
    }
}

fn compared(op: CmpOp, ty: Ty, a: &str, b: &str) -> String {
    let sign = if ty.signed { 's' } else { 'u' };
    match op {
        CmpOp::Eq => format!("(= {a} {b})"),
        CmpOp::Ne => format!("(not (= {a} {b}))"),
        CmpOp::Lt => format!("(bv{sign}lt {a} {b})"),
        CmpOp::Le => format!("(bv{sign}le {a} {b})"),
        CmpOp::Gt => format!("(bv{sign}gt {a} {b})"),
        CmpOp::Ge => format!("(bv{sign}ge {a} {b})"),
    }
}
