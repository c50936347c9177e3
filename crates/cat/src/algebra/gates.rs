//! Boolean circuits: hash-consed conjunctions with complemented edges.
//!
//! # Invariants
//! - Operands of a gate are sorted, distinct, not constant, and no two are complements of each
//!   other.
//! - A gate's operands have smaller indices.
//! - Once the [`Budget`] is used up, later gates are meaningless, and no answer may depend on them.

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

/// The function of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate<'g> {
    /// True.
    True,
    /// An input: a variable of the problem.
    Input,
    /// Conjunction.
    And(&'g [Lit]),
}

/// Limits on the size and the build time of a circuit.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// The limit on gates, or on clauses over them.
    pub size: usize,
    /// The deadline.
    pub deadline: Option<Instant>,
}

/// The default limit on gates, or on clauses over them.
pub const LARGEST: usize = 2_000_000;

impl Default for Budget {
    fn default() -> Self {
        Budget {
            size: LARGEST,
            deadline: None,
        }
    }
}

/// The reason for abandoning a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// It became too large.
    Size,
    /// It took too long, or exceeded the memory or stack of its query.
    Time,
}

/// A circuit under construction.
#[derive(Clone, Debug)]
pub struct Gates {
    /// The operands of all gates, concatenated; an input has none.
    operands: Vec<Lit>,
    /// For each gate, the end of its operands.
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

    /// Sets a new deadline; an abandoned circuit stays abandoned.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.budget.deadline = deadline;
    }

    /// Whether recursive functions have to return: the circuit was abandoned, or the stack is
    /// nearly used up, which abandons it now.
    pub fn deep(&mut self) -> bool {
        if stop::deep() {
            self.exhausted.get_or_insert(Exhausted::Time);
        }
        self.exhausted.is_some()
    }

    /// Why the circuit was abandoned, if it was. Long loops check this and stop.
    pub fn exhausted(&self) -> Option<Exhausted> {
        self.exhausted
    }

    /// Counts a unit of work; `size` is the size of a structure other than the gates.
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

    /// Always false: the constant is always present.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// A new input.
    pub fn input(&mut self) -> Lit {
        self.end()
    }

    /// Closes the gate whose operands were just appended.
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
                self.ids.insert_unique(hash, l.0 >> 1, |&gate| {
                    FxBuildHasher.hash_one(self::operands(
                        &self.operands,
                        &self.ends,
                        gate as usize,
                    ))
                });
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
