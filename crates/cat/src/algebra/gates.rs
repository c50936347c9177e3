//! Boolean circuits: hash-consed conjunctions with complemented edges.
//!
//! # Invariants
//! - Operands of a gate are sorted, distinct, not constant, and no two are complements of each
//!   other.
//! - A gate's operands have smaller indices.
//! - Once the [`Budget`] is used up, what is built is meaningless: no answer may come from it.

use std::hash::BuildHasher;
use std::time::Instant;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// A gate or its complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lit(u32);

impl Lit {
    /// True.
    pub const TRUE: Lit = Lit(0);
    /// False.
    pub const FALSE: Lit = Lit(1);

    /// The gate's index.
    pub fn gate(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// Whether it is the complement of its gate.
    pub fn negated(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether it is a constant.
    pub fn is_const(self) -> bool {
        self.0 < 2
    }

    /// The constant.
    pub fn constant(b: bool) -> Lit {
        if b { Lit::TRUE } else { Lit::FALSE }
    }
}

impl std::ops::Not for Lit {
    type Output = Lit;
    fn not(self) -> Lit {
        Lit(self.0 ^ 1)
    }
}

/// What a gate computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate<'g> {
    /// True.
    True,
    /// An input: a variable of the problem.
    Input,
    /// Conjunction.
    And(&'g [Lit]),
}

/// How large a circuit may become, and until when it may be built.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// At most this many gates, or clauses over them.
    pub size: usize,
    /// The time to give up.
    pub deadline: Option<Instant>,
}

/// How large a circuit may become, if nobody says otherwise: in gates, or clauses over them.
pub const LARGEST: usize = 2_000_000;

impl Default for Budget {
    fn default() -> Self {
        Budget {
            size: LARGEST,
            deadline: None,
        }
    }
}

/// Why a circuit was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// It became too large.
    Size,
    /// It took too long, or more memory or stack than its question may use.
    Time,
}

/// A circuit under construction.
#[derive(Clone, Debug)]
pub struct Gates {
    /// The operands of all gates, one gate's behind the other's; an input has none.
    operands: Vec<Lit>,
    /// By gate: where its operands end.
    ends: Vec<u32>,
    /// Conjunctions by their operands.
    ids: HashTable<u32>,
    budget: Budget,
    exhausted: Option<Exhausted>,
    ticks: u32,
}

impl Default for Gates {
    fn default() -> Self {
        Gates::within(Budget::default())
    }
}

impl Gates {
    /// An empty circuit.
    pub fn within(budget: Budget) -> Self {
        Gates {
            operands: Vec::new(),
            ends: vec![0],
            ids: HashTable::new(),
            budget,
            exhausted: None,
            ticks: 0,
        }
    }

    /// Sets a new deadline; a circuit that was given up stays so.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.budget.deadline = deadline;
    }

    /// Whether functions that call themselves have to end: the circuit was given up, or is now, for
    /// want of stack.
    pub fn deep(&mut self) -> bool {
        if stop::deep() {
            self.exhausted.get_or_insert(Exhausted::Time);
        }
        self.exhausted.is_some()
    }

    /// Why the circuit was given up, if it was. Long loops ask, and end early.
    pub fn exhausted(&self) -> Option<Exhausted> {
        self.exhausted
    }

    /// Counts a step of work; `size` is what is being built besides gates.
    pub fn tick(&mut self, size: usize) -> bool {
        self.ticks = self.ticks.wrapping_add(1);
        if self.exhausted.is_none() {
            if self.len().max(size) > self.budget.size {
                self.exhausted = Some(Exhausted::Size);
            } else if self.ticks.is_multiple_of(64) && stop::late(self.budget.deadline) {
                self.exhausted = Some(Exhausted::Time);
            }
        }
        self.exhausted.is_some()
    }

    /// A gate by index.
    pub fn gate(&self, index: usize) -> Gate<'_> {
        match (index, operands(&self.operands, &self.ends, index)) {
            (0, _) => Gate::True,
            (_, []) => Gate::Input,
            (_, operands) => Gate::And(operands),
        }
    }

    /// Number of gates, constant included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Never: there is always the constant.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// A new input.
    pub fn input(&mut self) -> Lit {
        self.end()
    }

    /// The gate whose operands are all there by now.
    fn end(&mut self) -> Lit {
        self.ends.push(self.operands.len() as u32);
        Lit((self.ends.len() as u32 - 1) << 1)
    }

    /// Conjunction of any number of literals.
    pub fn all(&mut self, lits: impl IntoIterator<Item = Lit>) -> Lit {
        let mut operands: SmallVec<[Lit; 8]> =
            lits.into_iter().filter(|&l| l != Lit::TRUE).collect();
        operands.sort_unstable();
        operands.dedup();
        let contradiction = operands.windows(2).any(|w| w[0] == !w[1]);
        match operands.as_slice() {
            _ if contradiction || operands.contains(&Lit::FALSE) => Lit::FALSE,
            [] => Lit::TRUE,
            [one] => *one,
            _ => {
                let hash = FxBuildHasher.hash_one(operands.as_slice());
                let of = |gate: u32| self::operands(&self.operands, &self.ends, gate as usize);
                if let Some(&gate) = self.ids.find(hash, |&gate| of(gate) == operands.as_slice()) {
                    return Lit(gate << 1);
                }
                if self.tick(0) {
                    return Lit::FALSE;
                }
                self.operands.extend_from_slice(&operands);
                let l = self.end();
                let of = |gate: u32| self::operands(&self.operands, &self.ends, gate as usize);
                self.ids
                    .insert_unique(hash, l.0 >> 1, |&gate| FxBuildHasher.hash_one(of(gate)));
                l
            }
        }
    }

    /// Disjunction of any number of literals.
    pub fn any(&mut self, lits: impl IntoIterator<Item = Lit>) -> Lit {
        !self.all(lits.into_iter().map(|l| !l))
    }

    /// Conjunction of two.
    pub fn and(&mut self, a: Lit, b: Lit) -> Lit {
        if a == Lit::TRUE {
            return b;
        }
        if b == Lit::TRUE {
            return a;
        }
        self.all([a, b])
    }

    /// Disjunction of two.
    pub fn or(&mut self, a: Lit, b: Lit) -> Lit {
        !self.and(!a, !b)
    }

    /// `if c then a else b`.
    pub fn ite(&mut self, c: Lit, a: Lit, b: Lit) -> Lit {
        if a == b || c == Lit::TRUE {
            return a;
        }
        if c == Lit::FALSE {
            return b;
        }
        let (x, y) = (self.and(c, a), self.and(!c, b));
        self.or(x, y)
    }

    /// Values of all gates under an assignment of the inputs.
    pub fn evaluate(&self, mut input: impl FnMut(usize) -> bool) -> Vec<bool> {
        let mut values: Vec<bool> = Vec::with_capacity(self.len());
        for i in 0..self.len() {
            let v = match self.gate(i) {
                Gate::True => true,
                Gate::Input => input(i),
                Gate::And(ls) => ls.iter().all(|l| values[l.gate()] != l.negated()),
            };
            values.push(v);
        }
        values
    }
}

/// The operands of a gate.
fn operands<'g>(all: &'g [Lit], ends: &[u32], gate: usize) -> &'g [Lit] {
    let start = if gate == 0 { 0 } else { ends[gate - 1] };
    &all[start as usize..ends[gate] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_fold() {
        let mut g = Gates::default();
        let (a, b) = (g.input(), g.input());
        assert_eq!(g.and(a, !a), Lit::FALSE);
        assert_eq!(g.and(a, b), g.and(b, a));
        assert_eq!(g.or(a, Lit::TRUE), Lit::TRUE);
        assert_eq!(g.ite(a, b, b), b);
        assert_eq!(g.all([]), Lit::TRUE);
        assert_eq!(g.any([]), Lit::FALSE);
    }
}
