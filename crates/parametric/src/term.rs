//! Values of a thread with an unknown number, as terms over symbols.
//!
//! # Invariants
//! - Terms are hash-consed: equal terms have equal indices.
//! - A term stands for the value that the program IR gives it: an `i64`, wrapped to its type.
//! - [`Level`] bounds how far a value is shared: the symbols of a term are shared at least so far.

use program::{BinOp, CmpOp, LocId, Ty};
use rustc_hash::FxHashMap;

/// Index of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(pub u32);

/// Which threads have the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// All of the grid.
    Grid,
    /// Those of a block.
    Block,
    /// One.
    Thread,
}

/// What a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// A coordinate of the thread or of the launch.
    Place,
    /// A number given to the kernel.
    Argument,
    /// The number of an iteration.
    Iteration,
    /// The number of the last iteration of a loop, which the conditions of the loop decide.
    Last,
    /// A value that other threads may have made: read from memory, or given up on.
    Free,
    /// What memory holds that nothing writes, as a function of the address.
    Memory,
    /// A value of a uniform loop, as a function of the iterations.
    Loop,
    /// An operation that a solver's theory has no word for.
    Operation,
}

/// A symbol: a constant, or a function of terms.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// What messages call it.
    pub name: String,
    /// Which threads share it, given equal arguments.
    pub level: Level,
    /// What it is.
    pub origin: Origin,
    /// Its least and largest value.
    pub range: (i128, i128),
}

/// Index of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

/// What a term is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A number.
    Const(i64),
    /// A symbol, with its arguments.
    Symbol(SymbolId, Vec<Term>),
    /// The address of an object, and the bits of its number.
    Address(LocId, u8),
    /// An operation in a type.
    Bin(BinOp, Ty, Term, Term),
    /// 1 if the comparison holds in the type, else 0.
    Cmp(CmpOp, Ty, Term, Term),
    /// The second if the first is not 0, else the third.
    Ite(Term, Term, Term),
    /// Conversion to a type.
    Cast(Ty, Term),
    /// 1 if all are not 0, else 0.
    And(Vec<Term>),
    /// 1 if one is not 0, else 0.
    Or(Vec<Term>),
    /// 1 if it is 0, else 0.
    Not(Term),
}

/// What is known of a term.
#[derive(Clone, Copy, Debug)]
struct TermFacts {
    level: Level,
    range: (i128, i128),
}

/// All terms and symbols of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    nodes: Vec<Node>,
    facts: Vec<TermFacts>,
    index: FxHashMap<Node, Term>,
    symbols: Vec<Symbol>,
    /// Sums and products that leave their type are possible as far as ranges tell.
    pub may_overflow: bool,
}

/// Objects begin at multiples of 2 to this power.
pub const ALIGNED: u32 = 4;

/// The numbers that addresses can be. No object ends where numbers wrap around, and in 64 bits none
/// begins at null.
pub fn addresses(bits: u8) -> (i128, i128) {
    let least = if bits < 64 { 0 } else { 1 << ALIGNED };
    (least, 1 << (bits - 2))
}

/// The numbers of a type.
pub fn range_of(ty: Ty) -> (i128, i128) {
    let bits = u32::from(ty.bits.min(64));
    if ty.signed {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    }
}

impl Terms {
    /// What a term is made of.
    pub fn node(&self, t: Term) -> &Node {
        &self.nodes[t.0 as usize]
    }

    /// A symbol.
    pub fn symbol(&self, id: SymbolId) -> &Symbol {
        &self.symbols[id.0 as usize]
    }

    /// Which threads have the same value of it, if they are in the same iterations.
    pub fn level(&self, t: Term) -> Level {
        self.facts[t.0 as usize].level
    }

    /// Its least and largest value.
    pub fn range(&self, t: Term) -> (i128, i128) {
        self.facts[t.0 as usize].range
    }

    /// A term as text, for tests and messages.
    pub fn show(&self, t: Term) -> String {
        let of = |t: &Term| self.show(*t);
        match self.node(t) {
            Node::Const(v) => v.to_string(),
            Node::Symbol(id, args) => {
                let args: Vec<String> = args.iter().map(of).collect();
                let symbol = self.symbol(*id);
                format!(
                    "[{} {} {:?}]({})",
                    symbol.name,
                    id.0,
                    symbol.level,
                    args.join(", ")
                )
            }
            Node::Address(loc, _) => format!("&{}", loc.0),
            Node::Bin(op, ty, a, b) => {
                format!("{op:?}.{}({}, {})", ty.ptx_name(), of(a), of(b))
            }
            Node::Cmp(op, ty, a, b) => {
                format!("({} {}.{} {})", of(a), op.symbol(), ty.ptx_name(), of(b))
            }
            Node::Ite(c, a, b) => format!("({} ? {} : {})", of(c), of(a), of(b)),
            Node::Cast(ty, a) => format!("{}({})", ty.ptx_name(), of(a)),
            Node::And(all) => {
                let all: Vec<String> = all.iter().map(of).collect();
                format!("({})", all.join(" && "))
            }
            Node::Or(all) => {
                let all: Vec<String> = all.iter().map(of).collect();
                format!("({})", all.join(" || "))
            }
            Node::Not(a) => format!("!{}", of(a)),
        }
    }

    /// Declares a symbol.
    pub fn declare(&mut self, symbol: Symbol) -> SymbolId {
        self.symbols.push(symbol);
        SymbolId(self.symbols.len() as u32 - 1)
    }

    /// A new constant.
    pub fn fresh(
        &mut self,
        name: impl Into<String>,
        level: Level,
        origin: Origin,
        range: (i128, i128),
    ) -> Term {
        let symbol = Symbol {
            name: name.into(),
            level,
            origin,
            range,
        };
        let id = self.declare(symbol);
        self.add(Node::Symbol(id, Vec::new()))
    }

    /// Narrows the range of a symbol without arguments.
    pub fn narrow(&mut self, t: Term, range: (i128, i128)) {
        if let Node::Symbol(id, _) = *self.node(t) {
            let symbol = &mut self.symbols[id.0 as usize];
            symbol.range = (symbol.range.0.max(range.0), symbol.range.1.min(range.1));
            self.facts[t.0 as usize].range = symbol.range;
        }
    }

    /// Adds a term as it is.
    pub fn add(&mut self, node: Node) -> Term {
        if let Some(known) = self.index.get(&node) {
            return *known;
        }
        let facts = self.facts_of(&node);
        let term = Term(self.nodes.len() as u32);
        self.nodes.push(node.clone());
        self.facts.push(facts);
        self.index.insert(node, term);
        term
    }

    fn facts_of(&self, node: &Node) -> TermFacts {
        let own = match node {
            Node::Symbol(id, _) => self.symbol(*id).level,
            _ => Level::Grid,
        };
        let level = children(node).iter().map(|c| self.level(*c)).max();
        let level = level.map_or(own, |level| level.max(own));
        let range = match node {
            Node::Const(v) => (i128::from(*v), i128::from(*v)),
            Node::Symbol(id, _) => self.symbol(*id).range,
            Node::Address(_, bits) => addresses(*bits),
            Node::Cmp(..) | Node::And(_) | Node::Or(_) | Node::Not(_) => (0, 1),
            Node::Ite(_, a, b) => {
                let (a, b) = (self.range(*a), self.range(*b));
                (a.0.min(b.0), a.1.max(b.1))
            }
            Node::Cast(ty, a) => fitted(*ty, self.range(*a)),
            Node::Bin(op, ty, a, b) => {
                let ab = [self.range(*a), self.range(*b)];
                exact(*op, ab).map_or(range_of(*ty), |range| fitted(*ty, range))
            }
        };
        TermFacts { level, range }
    }

    /// A number.
    pub fn int(&mut self, v: i64) -> Term {
        self.add(Node::Const(v))
    }

    /// The number that a term is.
    pub fn constant(&self, t: Term) -> Option<i64> {
        match self.node(t) {
            Node::Const(v) => Some(*v),
            _ => None,
        }
    }

    /// An operation, as far as it can be carried out.
    pub fn bin(&mut self, op: BinOp, ty: Ty, a: Term, b: Term) -> Term {
        let modular = matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul);
        let (a, b) = match modular {
            true => (a, b),
            false => (self.cast(ty, a), self.cast(ty, b)),
        };
        let (ca, cb) = (self.constant(a), self.constant(b));
        if let (Some(x), Some(y)) = (ca, cb)
            && !(op.divides() && y == 0)
        {
            return self.int(op.apply(ty, x, y));
        }
        let within = |s: &Terms, t: Term| {
            let (range, of) = (s.range(t), range_of(ty));
            of.0 <= range.0 && range.1 <= of.1
        };
        match (op, ca, cb) {
            (BinOp::Add | BinOp::Or | BinOp::Xor, Some(0), _) if within(self, b) => return b,
            (
                BinOp::Add | BinOp::Sub | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::Shr,
                _,
                Some(0),
            )
            | (BinOp::Mul | BinOp::Div, _, Some(1))
                if within(self, a) =>
            {
                return a;
            }
            (BinOp::Mul, Some(1), _) if within(self, b) => return b,
            (BinOp::Mul | BinOp::And, Some(0), _) | (BinOp::Mul | BinOp::And, _, Some(0)) => {
                return self.int(0);
            }
            (BinOp::Sub | BinOp::Xor, None, None) if a == b => return self.int(0),
            // All bits of a number change.
            (BinOp::Xor, _, Some(mask)) if self.is_below(a, mask) => {
                return self.bin(BinOp::Sub, ty, b, a);
            }
            (BinOp::And, _, Some(mask)) if mask > 0 && mask < 1 << self.zeros(a) => {
                return self.int(0);
            }
            _ => {}
        }
        // `(v + 1) + 1`, as two barriers count.
        if let (BinOp::Add, Some(y), &Node::Bin(BinOp::Add, of, inner, c)) = (op, cb, self.node(a))
            && of == ty
            && let Some(x) = self.constant(c)
        {
            let sum = self.int(BinOp::Add.apply(ty, x, y));
            return self.bin(BinOp::Add, ty, inner, sum);
        }
        self.add(Node::Bin(op, ty, a, b))
    }

    /// Whether a mask of lowest bits has all bits of a term.
    fn is_below(&self, t: Term, mask: i64) -> bool {
        let (least, most) = self.range(t);
        mask > 0 && mask & (mask + 1) == 0 && least >= 0 && most <= i128::from(mask)
    }

    /// How many of the lowest bits of a term are seen to be 0.
    fn zeros(&self, t: Term) -> u32 {
        match *self.node(t) {
            Node::Const(v) => v.trailing_zeros().min(62),
            Node::Address(..) => ALIGNED,
            Node::Bin(BinOp::Add | BinOp::Sub | BinOp::Or | BinOp::Xor, _, a, b) => {
                self.zeros(a).min(self.zeros(b))
            }
            Node::Bin(BinOp::And, _, a, b) => self.zeros(a).max(self.zeros(b)),
            Node::Bin(BinOp::Mul, ty, a, b) => {
                (self.zeros(a) + self.zeros(b)).min(u32::from(ty.bits) - 2)
            }
            Node::Bin(BinOp::Shl, ty, a, b) => match self.constant(b) {
                Some(n @ 0..64) => (self.zeros(a) + n as u32).min(u32::from(ty.bits) - 2),
                _ => self.zeros(a),
            },
            Node::Ite(_, a, b) => self.zeros(a).min(self.zeros(b)),
            Node::Cast(_, a) => self.zeros(a).min(30),
            _ => 0,
        }
    }

    /// A comparison, as far as it can be decided.
    pub fn cmp(&mut self, op: CmpOp, ty: Ty, a: Term, b: Term) -> Term {
        let (a, b) = (self.cast(ty, a), self.cast(ty, b));
        if let (Some(x), Some(y)) = (self.constant(a), self.constant(b)) {
            return self.int(i64::from(op.holds(ty, x, y)));
        }
        if a == b {
            let equal = matches!(op, CmpOp::Eq | CmpOp::Le | CmpOp::Ge);
            return self.int(i64::from(equal));
        }
        // `(a < b) != 0`, as compilers write conditions.
        if self.constant(b) == Some(0) && self.is_truth(a) {
            match op {
                CmpOp::Ne => return a,
                CmpOp::Eq => return self.not(a),
                _ => {}
            }
        }
        self.add(Node::Cmp(op, ty, a, b))
    }

    /// Whether a term is 0 or 1.
    pub fn is_truth(&self, t: Term) -> bool {
        matches!(
            self.node(t),
            Node::Cmp(..) | Node::And(_) | Node::Or(_) | Node::Not(_) | Node::Const(0 | 1)
        )
    }

    /// A condition: what is not 0.
    pub fn truth(&mut self, t: Term) -> Term {
        match *self.node(t) {
            Node::Const(v) => self.int(i64::from(v != 0)),
            Node::Ite(c, a, b) => {
                let (c, a, b) = (self.truth(c), self.truth(a), self.truth(b));
                let (yes, no) = (self.and(vec![c, a]), self.not(c));
                let no = self.and(vec![no, b]);
                self.or(vec![yes, no])
            }
            Node::Bin(BinOp::And, _, a, b) if self.is_truth(a) && self.is_truth(b) => {
                self.and(vec![a, b])
            }
            Node::Bin(BinOp::Or, _, a, b) if self.is_truth(a) && self.is_truth(b) => {
                self.or(vec![a, b])
            }
            Node::Bin(BinOp::Xor, _, a, b) if self.is_truth(a) && self.constant(b) == Some(1) => {
                self.not(a)
            }
            Node::Cast(ty, a) if ty.bits == 1 || self.is_truth(a) => match self.is_truth(a) {
                true => a,
                false => {
                    let zero = self.int(0);
                    self.cmp(CmpOp::Ne, ty, t, zero)
                }
            },
            _ if self.is_truth(t) => t,
            _ => {
                let zero = self.int(0);
                self.cmp(CmpOp::Ne, Ty::WORD, t, zero)
            }
        }
    }

    /// Negation of a condition.
    pub fn not(&mut self, t: Term) -> Term {
        match *self.node(t) {
            Node::Const(v) => self.int(i64::from(v == 0)),
            Node::Not(a) => a,
            Node::Or(ref all) => {
                let all = all.clone();
                let all = all.into_iter().map(|a| self.not(a)).collect();
                self.and(all)
            }
            Node::Cmp(op, ty, a, b) => {
                let op = match op {
                    CmpOp::Eq => CmpOp::Ne,
                    CmpOp::Ne => CmpOp::Eq,
                    CmpOp::Lt => CmpOp::Ge,
                    CmpOp::Le => CmpOp::Gt,
                    CmpOp::Gt => CmpOp::Le,
                    CmpOp::Ge => CmpOp::Lt,
                };
                self.add(Node::Cmp(op, ty, a, b))
            }
            _ => self.add(Node::Not(t)),
        }
    }

    /// Conjunction of conditions.
    pub fn and(&mut self, all: Vec<Term>) -> Term {
        let mut flat: Vec<Term> = Vec::new();
        for t in all {
            match self.node(t) {
                Node::And(inner) => flat.extend(inner.iter().copied()),
                _ => flat.push(t),
            }
        }
        let mut kept: Vec<Term> = Vec::new();
        for t in flat {
            match self.constant(t) {
                Some(0) => return self.int(0),
                Some(_) => {}
                None if kept.contains(&t) => {}
                None => kept.push(t),
            }
        }
        for i in 0..kept.len() {
            let negated = self.not(kept[i]);
            if kept.contains(&negated) {
                return self.int(0);
            }
        }
        kept.sort_unstable();
        match kept[..] {
            [] => self.int(1),
            [one] => one,
            _ => self.add(Node::And(kept)),
        }
    }

    /// Disjunction of conditions; what all have in common is said once.
    pub fn or(&mut self, all: Vec<Term>) -> Term {
        let mut kept: Vec<Term> = Vec::new();
        for t in all {
            match self.constant(t) {
                Some(0) => {}
                Some(_) => return self.int(1),
                None if kept.contains(&t) => {}
                None => kept.push(t),
            }
        }
        fn parts(s: &Terms, t: Term) -> Vec<Term> {
            match s.node(t) {
                Node::And(all) => all.clone(),
                _ => vec![t],
            }
        }
        match kept[..] {
            [] => self.int(0),
            [one] => one,
            [a, b] => {
                let (x, y) = (parts(self, a), parts(self, b));
                let common: Vec<Term> = x.iter().copied().filter(|t| y.contains(t)).collect();
                let rest = |all: &[Term]| -> Vec<Term> {
                    all.iter()
                        .copied()
                        .filter(|t| !common.contains(t))
                        .collect()
                };
                let (mut x, mut y) = (rest(&x), rest(&y));
                // `p or (not p and q)` is `p or q`.
                if let [p] = x[..] {
                    let not = self.not(p);
                    y.retain(|t| *t != not);
                } else if let [p] = y[..] {
                    let not = self.not(p);
                    x.retain(|t| *t != not);
                }
                if x.is_empty() || y.is_empty() {
                    return self.and(common);
                }
                let (x, y) = (self.and(x), self.and(y));
                let either = match self.not(x) == y || self.not(y) == x {
                    true => self.int(1),
                    false => {
                        let mut ways: Vec<Term> = Vec::new();
                        for t in [x, y] {
                            match self.node(t) {
                                Node::Or(inner) => ways.extend(inner.iter().copied()),
                                _ => ways.push(t),
                            }
                        }
                        ways.sort_unstable();
                        ways.dedup();
                        self.add(Node::Or(ways))
                    }
                };
                let mut all = common;
                all.push(either);
                self.and(all)
            }
            _ => {
                let mut folded = kept[0];
                for t in kept.into_iter().skip(1) {
                    folded = self.or(vec![folded, t]);
                }
                folded
            }
        }
    }

    /// A choice.
    pub fn ite(&mut self, cond: Term, a: Term, b: Term) -> Term {
        match self.constant(cond) {
            Some(0) => b,
            Some(_) => a,
            None if a == b => a,
            None => self.add(Node::Ite(cond, a, b)),
        }
    }

    /// A conversion.
    pub fn cast(&mut self, ty: Ty, a: Term) -> Term {
        if let Some(v) = self.constant(a) {
            return self.int(ty.wrap(v));
        }
        let (of, range) = (range_of(ty), self.range(a));
        if of.0 <= range.0 && range.1 <= of.1 {
            return a;
        }
        self.add(Node::Cast(ty, a))
    }

    /// The sum of 64 bits, where it cannot leave them.
    pub fn plus(&mut self, a: Term, b: Term) -> Term {
        self.bin(BinOp::Add, Ty::WORD, a, b)
    }

    /// Puts terms in the places of others.
    pub fn replace(&mut self, t: Term, by: &FxHashMap<Term, Term>) -> Term {
        let mut memo = FxHashMap::default();
        self.replace_in(t, by, &mut memo)
    }

    /// The same for several terms.
    pub fn replace_in(
        &mut self,
        t: Term,
        by: &FxHashMap<Term, Term>,
        memo: &mut FxHashMap<Term, Term>,
    ) -> Term {
        if let Some(new) = by.get(&t) {
            return *new;
        }
        if let Some(new) = memo.get(&t) {
            return *new;
        }
        let node = self.node(t).clone();
        let mut go = |s: &mut Terms, t: Term| s.replace_in(t, by, memo);
        let new = match node {
            Node::Const(_) | Node::Address(..) => t,
            Node::Symbol(id, args) => {
                let args = args.into_iter().map(|a| go(self, a)).collect();
                self.add(Node::Symbol(id, args))
            }
            Node::Bin(op, ty, a, b) => {
                let (a, b) = (go(self, a), go(self, b));
                self.bin(op, ty, a, b)
            }
            Node::Cmp(op, ty, a, b) => {
                let (a, b) = (go(self, a), go(self, b));
                self.cmp(op, ty, a, b)
            }
            Node::Ite(c, a, b) => {
                let (c, a, b) = (go(self, c), go(self, a), go(self, b));
                self.ite(c, a, b)
            }
            Node::Cast(ty, a) => {
                let a = go(self, a);
                self.cast(ty, a)
            }
            Node::And(all) => {
                let all = all.into_iter().map(|a| go(self, a)).collect();
                self.and(all)
            }
            Node::Or(all) => {
                let all = all.into_iter().map(|a| go(self, a)).collect();
                self.or(all)
            }
            Node::Not(a) => {
                let a = go(self, a);
                self.not(a)
            }
        };
        memo.insert(t, new);
        new
    }

    /// Calls `f` for a term and all inside, each once.
    pub fn visit(&self, roots: &[Term], f: &mut impl FnMut(Term)) {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut open = roots.to_vec();
        while let Some(t) = open.pop() {
            if seen.insert(t) {
                f(t);
                open.extend(children(self.node(t)));
            }
        }
    }

    /// The symbol terms inside of some.
    pub fn symbols_in(&self, roots: &[Term]) -> Vec<(Term, SymbolId)> {
        let mut all = Vec::new();
        self.visit(roots, &mut |t| {
            if let Node::Symbol(id, _) = self.node(t) {
                all.push((t, *id));
            }
        });
        all.sort_unstable();
        all
    }

    /// Whether a term has a symbol of that origin.
    pub fn has(&self, roots: &[Term], origin: Origin) -> bool {
        let all = self.symbols_in(roots);
        all.iter().any(|(_, id)| self.symbol(*id).origin == origin)
    }
}

/// The terms that a node is made of.
pub fn children(node: &Node) -> Vec<Term> {
    match node {
        Node::Const(_) | Node::Address(..) => Vec::new(),
        Node::Symbol(_, all) | Node::And(all) | Node::Or(all) => all.clone(),
        Node::Bin(_, _, a, b) | Node::Cmp(_, _, a, b) => vec![*a, *b],
        Node::Ite(c, a, b) => vec![*c, *a, *b],
        Node::Cast(_, a) | Node::Not(a) => vec![*a],
    }
}

/// A range, if it is within a type, else that of the type.
fn fitted(ty: Ty, range: (i128, i128)) -> (i128, i128) {
    let of = range_of(ty);
    if of.0 <= range.0 && range.1 <= of.1 {
        range
    } else {
        of
    }
}

/// The range of an operation on numbers that never leave their type.
pub fn exact(op: BinOp, [a, b]: [(i128, i128); 2]) -> Option<(i128, i128)> {
    fn of(all: [i128; 4]) -> Option<(i128, i128)> {
        let (least, most) = (all.iter().min(), all.iter().max());
        least.copied().zip(most.copied())
    }
    match op {
        BinOp::Add => Some((a.0 + b.0, a.1 + b.1)),
        BinOp::Sub => Some((a.0 - b.1, a.1 - b.0)),
        BinOp::Mul => {
            fn times(x: i128, y: i128) -> i128 {
                x.saturating_mul(y)
            }
            of([
                times(a.0, b.0),
                times(a.0, b.1),
                times(a.1, b.0),
                times(a.1, b.1),
            ])
        }
        BinOp::Div if b.0 > 0 && a.0 >= 0 => Some((a.0 / b.1, a.1 / b.0)),
        BinOp::Rem if b.0 > 0 && a.0 >= 0 => Some((0, a.1.min(b.1 - 1))),
        BinOp::And if a.0 >= 0 && b.0 >= 0 => Some((0, a.1.min(b.1))),
        BinOp::Or | BinOp::Xor if a.0 >= 0 && b.0 >= 0 => {
            let most = a.1.max(b.1) as u128;
            let bits = 128 - most.leading_zeros();
            Some((0, (1i128 << bits) - 1))
        }
        BinOp::Shr if a.0 >= 0 && b.0 >= 0 => {
            fn by(n: i128) -> u32 {
                n.min(100) as u32
            }
            Some((a.0 >> by(b.1), a.1 >> by(b.0)))
        }
        BinOp::Shl if a.0 >= 0 && b.0 >= 0 && b.1 < 40 && a.1 < (1 << 64) => {
            Some((a.0 << b.0, a.1 << b.1))
        }
        BinOp::Min => Some((a.0.min(b.0), a.1.min(b.1))),
        BinOp::Max => Some((a.0.max(b.0), a.1.max(b.1))),
        _ => None,
    }
}
