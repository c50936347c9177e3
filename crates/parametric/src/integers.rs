//! Questions over the integers, in SMT-LIB: arithmetic that does not leave its types.
//!
//! Sums and products become polynomials over atoms. A product of atoms is a number of its own, of
//! which lemmas say what linear arithmetic needs: `u > 0` and `D >= 1` give `u * D >= u`, for the
//! factors `u` and sums `D` that polynomials have. The lemmas hold of all integers.
//!
//! # Invariants
//! - Whatever is not expressed is a free number or function: an unsatisfiable question is one.
//! - Sums, products and conversions are taken to stay in their types; where ranges do not show it,
//!   they are noted, and answers name the assumption.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use program::{BinOp, CmpOp, Ty};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::term::{Node, Origin, SymbolId, Term, Terms, exact, range_of};

/// A product of atoms, sorted.
type Monomial = Vec<Term>;

/// A sum of products with coefficients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Poly(BTreeMap<Monomial, i128>);

impl Poly {
    fn constant(v: i128) -> Poly {
        Poly::of(Vec::new(), v)
    }

    fn of(monomial: Monomial, by: i128) -> Poly {
        let mut poly = Poly::default();
        if by != 0 {
            poly.0.insert(monomial, by);
        }
        poly
    }

    fn plus(mut self, other: &Poly, by: i128) -> Poly {
        for (monomial, c) in &other.0 {
            let sum = self.0.entry(monomial.clone()).or_default();
            *sum += c * by;
            if *sum == 0 {
                self.0.remove(monomial);
            }
        }
        self
    }

    fn times(&self, other: &Poly) -> Poly {
        let mut product = Poly::default();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                let mut monomial = [a.clone(), b.clone()].concat();
                monomial.sort_unstable();
                product = product.plus(&Poly::of(monomial, x * y), 1);
            }
        }
        product
    }

    fn single(&self) -> Option<Term> {
        let mut all = self.0.iter();
        match (all.next(), all.next()) {
            (Some((monomial, 1)), None) if monomial.len() == 1 => Some(monomial[0]),
            _ => None,
        }
    }
}

/// Makes a question.
pub struct Integers<'a> {
    terms: &'a mut Terms,
    declarations: String,
    lemmas: String,
    /// The terms that are taken to stay in their types, and may not.
    trusted: BTreeSet<Term>,
    polys: FxHashMap<Term, Poly>,
    conditions: FxHashMap<Term, String>,
    atoms: FxHashSet<Term>,
    functions: FxHashSet<SymbolId>,
    products: BTreeSet<Monomial>,
    /// By factor: the atoms that it is multiplied by.
    factors: BTreeMap<Monomial, BTreeSet<Term>>,
    told: FxHashSet<String>,
    ranges: FxHashMap<Term, (i128, i128)>,
}

/// A number as SMT-LIB writes it.
fn number(v: i128) -> String {
    if v < 0 {
        format!("(- {})", v.unsigned_abs())
    } else {
        v.to_string()
    }
}

/// The question whether all of the conditions can hold, and whether it takes sums not to overflow.
pub fn question(terms: &mut Terms, all: &[Term]) -> (String, bool) {
    let mut integers = Integers::new(terms);
    let mut asserts = String::new();
    for t in all {
        let condition = integers.condition(*t);
        let _ = writeln!(asserts, "(assert {condition})");
    }
    integers.pairs();
    let text = format!("{}{}{asserts}", integers.declarations, integers.lemmas);
    (text, !integers.trusted.is_empty())
}

/// The terms that a question about conditions and values takes to stay in their types.
pub(crate) fn trusted(terms: &mut Terms, conditions: &[Term], values: &[Term]) -> BTreeSet<Term> {
    let mut integers = Integers::new(terms);
    for t in conditions {
        integers.condition(*t);
    }
    for t in values {
        let poly = integers.poly(*t);
        integers.linear(&poly);
    }
    integers.trusted
}

/// The question whether the result of an operation is outside of its type, under those of the
/// conditions that hold if all terms before it stay in their types. `None`: it is not expressed.
pub(crate) fn leaving(terms: &mut Terms, conditions: &[Term], t: Term) -> Option<String> {
    let before = conditions.iter().copied();
    let before =
        before.filter(|condition| trusted(terms, &[*condition], &[]).iter().all(|c| *c < t));
    let before: Vec<Term> = before.collect();
    let (Node::Bin(_, ty, ..) | Node::Cast(ty, _)) = *terms.node(t) else {
        return None;
    };
    let mut integers = Integers::new(terms);
    let poly = integers.poly(t);
    if poly.0.contains_key(&vec![t]) {
        return None;
    }
    let mut asserts = String::new();
    for condition in before {
        let condition = integers.condition(condition);
        let _ = writeln!(asserts, "(assert {condition})");
    }
    let sum = integers.linear(&poly);
    let (least, most) = range_of(ty);
    let (least, most) = (number(least), number(most));
    let _ = writeln!(asserts, "(assert (or (< {sum} {least}) (> {sum} {most})))");
    integers.factored(&poly);
    integers.pairs();
    Some(format!(
        "{}{}{asserts}",
        integers.declarations, integers.lemmas
    ))
}

impl<'a> Integers<'a> {
    fn new(terms: &'a mut Terms) -> Integers<'a> {
        Integers {
            terms,
            declarations: String::new(),
            lemmas: String::new(),
            trusted: BTreeSet::new(),
            polys: FxHashMap::default(),
            conditions: FxHashMap::default(),
            atoms: FxHashSet::default(),
            functions: FxHashSet::default(),
            products: BTreeSet::new(),
            factors: BTreeMap::new(),
            told: FxHashSet::default(),
            ranges: FxHashMap::default(),
        }
    }
}

impl Integers<'_> {
    /// A condition.
    fn condition(&mut self, t: Term) -> String {
        if let Some(known) = self.conditions.get(&t) {
            return known.clone();
        }
        let text = match self.terms.node(t).clone() {
            Node::Const(v) => (v != 0).to_string(),
            Node::And(all) => self.join("and", &all),
            Node::Or(all) => self.join("or", &all),
            Node::Not(a) => format!("(not {})", self.condition(a)),
            Node::Cmp(op, _, a, b) => self.comparison(op, a, b),
            _ => {
                let poly = self.poly(t);
                format!("(not (= {} 0))", self.linear(&poly))
            }
        };
        let name = format!("c{}", t.0);
        if text.len() < 24 {
            self.conditions.insert(t, text.clone());
            return text;
        }
        let _ = writeln!(self.lemmas, "(declare-fun {name} () Bool)");
        let _ = writeln!(self.lemmas, "(assert (= {name} {text}))");
        self.conditions.insert(t, name.clone());
        name
    }

    fn join(&mut self, op: &str, all: &[Term]) -> String {
        let parts: Vec<String> = all.iter().map(|t| self.condition(*t)).collect();
        format!("({op} {})", parts.join(" "))
    }

    fn comparison(&mut self, op: CmpOp, a: Term, b: Term) -> String {
        let (a, b) = (self.poly(a), self.poly(b));
        let difference = a.plus(&b, -1);
        self.factored(&difference);
        let sum = self.linear(&difference);
        match op {
            CmpOp::Eq => format!("(= {sum} 0)"),
            CmpOp::Ne => format!("(not (= {sum} 0))"),
            CmpOp::Lt => format!("(< {sum} 0)"),
            CmpOp::Le => format!("(<= {sum} 0)"),
            CmpOp::Gt => format!("(> {sum} 0)"),
            CmpOp::Ge => format!("(>= {sum} 0)"),
        }
    }

    /// A polynomial as a linear sum of products.
    fn linear(&mut self, poly: &Poly) -> String {
        let mut parts = Vec::new();
        for (monomial, c) in &poly.0 {
            let name = self.product(monomial);
            parts.push(match (*c, monomial.is_empty()) {
                (c, true) => number(c),
                (1, _) => name,
                (c, _) => format!("(* {} {name})", number(c)),
            });
        }
        match &parts[..] {
            [] => "0".into(),
            [one] => one.clone(),
            _ => format!("(+ {})", parts.join(" ")),
        }
    }

    /// The name of a product of atoms.
    fn product(&mut self, monomial: &Monomial) -> String {
        for atom in monomial {
            self.atom(*atom);
        }
        let names: Vec<String> = monomial.iter().map(|t| format!("t{}", t.0)).collect();
        let name = names.join("_");
        if monomial.len() > 1 && self.products.insert(monomial.clone()) {
            let _ = writeln!(self.declarations, "(declare-fun {name} () Int)");
            for at in 0..monomial.len() {
                let mut rest = monomial.clone();
                let atom = rest.remove(at);
                self.factors.entry(rest).or_default().insert(atom);
            }
            for at in 0..monomial.len() {
                let mut rest = monomial.clone();
                let atom = rest.remove(at);
                self.lemma(&rest, &Poly::of(vec![atom], 1));
            }
        }
        name
    }

    /// Lemmas about the common factors of a polynomial.
    fn factored(&mut self, poly: &Poly) {
        let mut sums: BTreeMap<Monomial, Poly> = BTreeMap::new();
        for (monomial, c) in poly.0.iter().filter(|(m, _)| m.len() > 1) {
            for at in 0..monomial.len() {
                let mut rest = monomial.clone();
                let atom = rest.remove(at);
                let sum = sums.remove(&rest).unwrap_or_default();
                sums.insert(rest, sum.plus(&Poly::of(vec![atom], *c), 1));
            }
        }
        for (factor, sum) in sums {
            self.lemma(&factor, &sum);
            if let Some(own) = poly.0.get(&factor) {
                let sum = sum.plus(&Poly::constant(*own), 1);
                self.lemma(&factor, &sum);
            }
        }
    }

    /// Lemmas about the differences of what is multiplied by the same factor.
    fn pairs(&mut self) {
        let factors = self.factors.clone();
        for (factor, atoms) in factors.iter().filter(|(_, atoms)| atoms.len() <= 12) {
            let atoms: Vec<Term> = atoms.iter().copied().collect();
            for (i, a) in atoms.iter().enumerate() {
                for b in &atoms[i + 1..] {
                    let difference = Poly::of(vec![*a], 1).plus(&Poly::of(vec![*b], 1), -1);
                    self.lemma(factor, &difference);
                }
            }
        }
    }

    /// What linear arithmetic has to know of the product of a factor and a sum of atoms.
    fn lemma(&mut self, factor: &Monomial, sum: &Poly) {
        let u = self.product(factor);
        let by = Poly::of(factor.clone(), 1);
        let product = sum.times(&by);
        let (d, p) = (self.linear(sum), self.linear(&product));
        let text = format!(
            "(assert (and (=> (> {u} 0) (and (=> (>= {d} 1) (>= {p} {u})) \
            (=> (<= {d} (- 1)) (<= {p} (- {u}))))) (=> (= {d} 0) (= {p} 0)) (=> (= {u} 0) (= \
            {p} 0))))"
        );
        if self.told.insert(text.clone()) {
            let _ = writeln!(self.lemmas, "{text}");
        }
    }

    /// Declares an atom.
    fn atom(&mut self, t: Term) {
        if !self.atoms.insert(t) {
            return;
        }
        let name = format!("t{}", t.0);
        let _ = writeln!(self.declarations, "(declare-fun {name} () Int)");
        let (least, most) = self.terms.range(t);
        let _ = writeln!(
            self.declarations,
            "(assert (and (<= {} {name}) (<= {name} {})))",
            number(least),
            number(most)
        );
        match self.terms.node(t).clone() {
            Node::Symbol(id, args) if !args.is_empty() => {
                let function = format!("f{}", id.0);
                if self.functions.insert(id) {
                    let sorts = vec!["Int"; args.len()].join(" ");
                    let _ = writeln!(self.declarations, "(declare-fun {function} ({sorts}) Int)");
                }
                self.applied(&name, &function, &args);
            }
            Node::Ite(c, a, b) => {
                let (c, a, b) = (self.condition(c), self.poly(a), self.poly(b));
                let (a, b) = (self.linear(&a), self.linear(&b));
                let _ = writeln!(self.lemmas, "(assert (= {name} (ite {c} {a} {b})))");
            }
            Node::Cmp(..) | Node::And(_) | Node::Or(_) | Node::Not(_) => {
                let c = self.condition(t);
                let _ = writeln!(self.lemmas, "(assert (= {name} (ite {c} 1 0)))");
            }
            Node::Cast(ty, a) => {
                let a = self.poly(a);
                let a = self.linear(&a);
                let wrapped = wrapped(ty, &a);
                let _ = writeln!(self.lemmas, "(assert (= {name} {wrapped}))");
            }
            Node::Bin(op, ty, a, b) => self.operation(&name, op, ty, a, b),
            Node::Const(_) | Node::Symbol(..) | Node::Address(..) => {}
        }
    }

    fn applied(&mut self, name: &str, function: &str, args: &[Term]) {
        let mut parts = Vec::new();
        for arg in args {
            let poly = self.poly(*arg);
            parts.push(self.linear(&poly));
        }
        let _ = writeln!(
            self.lemmas,
            "(assert (= {name} ({function} {})))",
            parts.join(" ")
        );
    }

    /// Says what the result of an operation is, as far as it can be said.
    fn operation(&mut self, name: &str, op: BinOp, ty: Ty, a: Term, b: Term) {
        let (pa, pb) = (self.poly(a), self.poly(b));
        let (x, y) = (self.linear(&pa), self.linear(&pb));
        let (ra, rb) = (self.range(a), self.range(b));
        let text = match op {
            BinOp::Add | BinOp::Sub | BinOp::Mul => {
                let exact = match op {
                    BinOp::Add => pa.plus(&pb, 1),
                    BinOp::Sub => pa.plus(&pb, -1),
                    _ => pa.times(&pb),
                };
                let exact = self.linear(&exact);
                format!("(= {name} {})", wrapped(ty, &exact))
            }
            BinOp::Min => format!("(= {name} (ite (<= {x} {y}) {x} {y}))"),
            BinOp::Max => format!("(= {name} (ite (>= {x} {y}) {x} {y}))"),
            BinOp::Div if rb.0 > 0 && rb.0 == rb.1 => {
                format!("(= {name} (ite (>= {x} 0) (div {x} {y}) (- (div (- {x}) {y}))))")
            }
            BinOp::Rem if rb.0 > 0 && rb.0 == rb.1 => {
                format!("(= {name} (ite (>= {x} 0) (mod {x} {y}) (- (mod (- {x}) {y}))))")
            }
            BinOp::Div if ra.0 >= 0 && rb.0 > 0 => {
                let q = Poly::of(vec![self.named(op, ty, a, b)], 1);
                let rest = pa.plus(&q.times(&pb), -1);
                let rest = self.linear(&rest);
                format!("(and (<= 0 {rest}) (< {rest} {y}))")
            }
            BinOp::Shl if ra.0 >= 0 => {
                let own = self.named(op, ty, a, b);
                self.trusted.insert(own);
                let f = self.known(op, ty);
                format!(
                    "(and (= {name} ({f} {x} {y})) (>= {name} {x}) (=> (>= {y} 1) (>= {name} (* \
                    2 {x}))))"
                )
            }
            BinOp::Shr if ra.0 >= 0 && rb.0 == rb.1 && (0..63).contains(&rb.0) => {
                format!("(= {name} (div {x} {}))", 1i128 << rb.0)
            }
            BinOp::Shr if ra.0 >= 0 => {
                let f = self.known(op, ty);
                format!(
                    "(and (= {name} ({f} {x} {y})) (<= {name} {x}) (=> (>= {y} 1) (<= (* 2 \
                    {name}) {x})))"
                )
            }
            BinOp::And if ra.0 >= 0 && rb.0 == rb.1 && rb.0 >= 0 && (rb.0 & (rb.0 + 1)) == 0 => {
                format!("(= {name} (mod {x} {}))", rb.0 + 1)
            }
            _ => {
                let f = self.known(op, ty);
                format!("(= {name} ({f} {x} {y}))")
            }
        };
        let _ = writeln!(self.lemmas, "(assert {text})");
    }

    fn named(&mut self, op: BinOp, ty: Ty, a: Term, b: Term) -> Term {
        self.terms.bin(op, ty, a, b)
    }

    /// The function of an operation of which only this is said: equal operands, equal results.
    fn known(&mut self, op: BinOp, ty: Ty) -> String {
        let name = format!("|{op:?} {}{}|", ty.bits, ty.signed);
        if self.told.insert(name.clone()) {
            let _ = writeln!(self.declarations, "(declare-fun {name} (Int Int) Int)");
        }
        name
    }

    fn poly(&mut self, t: Term) -> Poly {
        if let Some(known) = self.polys.get(&t) {
            return known.clone();
        }
        let poly = self.poly_of(t);
        self.polys.insert(t, poly.clone());
        poly
    }

    fn poly_of(&mut self, t: Term) -> Poly {
        match self.terms.node(t).clone() {
            Node::Const(v) => Poly::constant(i128::from(v)),
            Node::Cast(ty, a) => {
                if self.keeps(ty, a) {
                    self.trusted.insert(t);
                    return self.poly(a);
                }
                Poly::of(vec![t], 1)
            }
            Node::Bin(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), ty, a, b) => {
                let (pa, pb) = (self.poly(a), self.poly(b));
                let ranges = [self.range(a), self.range(b)];
                let of = range_of(ty);
                let fits = exact(op, ranges).is_some_and(|r| of.0 <= r.0 && r.1 <= of.1);
                if !fits && self.wraps(op, ty, ranges) {
                    return Poly::of(vec![t], 1);
                }
                if !fits {
                    self.trusted.insert(t);
                }
                match op {
                    BinOp::Add => pa.plus(&pb, 1),
                    BinOp::Sub => pa.plus(&pb, -1),
                    _ => pa.times(&pb),
                }
            }
            Node::Bin(BinOp::Shl, ty, a, b) => match self.terms.constant(b) {
                Some(n) if (0..i64::from(ty.bits) - 1).contains(&n) => {
                    let range = self.range(a);
                    let of = range_of(ty);
                    let fits = (range.0 << n) >= of.0 && (range.1 << n) <= of.1;
                    if !fits {
                        self.trusted.insert(t);
                    }
                    self.poly(a).times(&Poly::constant(1i128 << n))
                }
                _ => Poly::of(vec![t], 1),
            },
            Node::Bin(BinOp::Rem, ty, a, b)
                if self.range(a).0 >= 0
                    && self.range(b).0 > 0
                    && self.terms.constant(b).is_none() =>
            {
                let quotient = self.named(BinOp::Div, ty, a, b);
                let (pa, pb) = (self.poly(a), self.poly(b));
                let quotient = self.poly(quotient);
                if let Some(atom) = quotient.single() {
                    self.atom(atom);
                }
                pa.plus(&quotient.times(&pb), -1)
            }
            _ => Poly::of(vec![t], 1),
        }
    }

    /// The least and largest value of a term where sums and products do not overflow.
    fn range(&mut self, t: Term) -> (i128, i128) {
        if let Some(known) = self.ranges.get(&t) {
            return *known;
        }
        let own = self.terms.range(t);
        fn within(ty: Ty, r: (i128, i128)) -> (i128, i128) {
            let of = range_of(ty);
            (r.0.clamp(of.0, of.1), r.1.clamp(of.0, of.1))
        }
        let range = match self.terms.node(t).clone() {
            Node::Cast(ty, a) if self.keeps(ty, a) => within(ty, self.range(a)),
            Node::Bin(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), ty, a, b) => {
                let ranges = [self.range(a), self.range(b)];
                match exact(op, ranges) {
                    Some(r) if !self.wraps(op, ty, ranges) => within(ty, r),
                    _ => own,
                }
            }
            _ => own,
        };
        self.ranges.insert(t, range);
        range
    }

    /// Whether a conversion is taken to keep a number: one that is not negative and not cut.
    fn keeps(&mut self, ty: Ty, a: Term) -> bool {
        self.range(a).0 >= 0 && ty.bits >= 32 && !self.is_wrapping(a)
    }

    /// Whether an operation on unsigned numbers is written to wrap around: a difference, or a sum
    /// with the complement of a number.
    fn wraps(&self, op: BinOp, ty: Ty, [a, b]: [(i128, i128); 2]) -> bool {
        let huge = |r: (i128, i128)| r.0 == r.1 && r.0 > range_of(ty).1 / 2;
        fn negative(r: (i128, i128)) -> bool {
            r.0 < 0
        }
        match op {
            _ if ty.signed => ty.bits < 32,
            BinOp::Sub => true,
            BinOp::Add => huge(a) || huge(b) || negative(a) || negative(b),
            _ => huge(a) || huge(b) || negative(a) || negative(b),
        }
    }

    /// Whether a term is a difference that wraps around where it is negative.
    fn is_wrapping(&mut self, t: Term) -> bool {
        match *self.terms.node(t) {
            Node::Bin(op @ (BinOp::Sub | BinOp::Add | BinOp::Mul), ty, a, b) => {
                let ranges = [self.range(a), self.range(b)];
                let of = range_of(ty);
                let fits = exact(op, ranges).is_some_and(|r| of.0 <= r.0 && r.1 <= of.1);
                (!fits && self.wraps(op, ty, ranges)) || self.is_wrapping(a) || self.is_wrapping(b)
            }
            Node::Cast(_, a) => self.range(a).0 < 0,
            Node::Symbol(id, _) => !matches!(
                self.terms.symbol(id).origin,
                Origin::Place | Origin::Iteration | Origin::Last | Origin::Loop
            ),
            _ => false,
        }
    }
}

/// A number, wrapped to a type.
fn wrapped(ty: Ty, x: &str) -> String {
    let (least, most) = range_of(ty);
    let size = 1i128 << ty.bits.min(64);
    let (least, most) = (number(least), number(most));
    let rest = match ty.signed {
        false => format!("(mod {x} {size})"),
        true => format!(
            "(ite (> (mod {x} {size}) {most}) (- (mod {x} {size}) {size}) (mod {x} {size}))"
        ),
    };
    format!("(ite (and (<= {least} {x}) (<= {x} {most})) {x} {rest})")
}
