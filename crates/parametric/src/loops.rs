//! Loops: values at the start of an iteration as functions of its number, and the iteration in
//! which a loop ends.
//!
//! A loop is run twice. First with a symbol for each value that changes, to see how it changes;
//! then with what that says of the values: `v + c * k`, `v >> c * k`, `v << c * k`, or a function
//! of `k` of which no more is known than whether threads share it.
//!
//! # Invariants
//! - A value is shared by threads only if that follows from its being so at the start, and one
//!   iteration keeping it so.
//! - Iteration numbers are at least 0 and fit 31 bits; loops end: both are assumptions that answers
//!   name.

use std::collections::BTreeMap;

use program::tags::Tag;
use program::{BinOp, CmpOp, Dialect, Instr, Ty};
use rustc_hash::FxHashMap;

use crate::exec::{Among, Counter, Doubling, Exec, Growth, LoopAt, State};
use crate::term::{Level, Node, Origin, Symbol, Term, range_of};

/// How many iterations a loop may have.
const MOST: i128 = (1 << 31) - 1;

/// The most stages of a ring whose rounds are counted.
const MOST_STAGES: i64 = 64;

/// A loop, with what its first run showed.
struct Shape {
    entry: State,
    /// The values that change: their numbers, and the symbols for them.
    changing: Vec<(usize, Term)>,
    /// The number of an iteration, and that of the last one.
    iteration: Term,
    last: Term,
    /// When the loop goes on behind an iteration, and when it ends in it.
    goes_on: Term,
    ends: Term,
    /// What the values are at the start of an iteration.
    closed: FxHashMap<Term, Term>,
}

impl Exec<'_> {
    /// Runs a loop; what leaves it goes to `pending`.
    pub(crate) fn looped(
        &mut self,
        header: usize,
        end: usize,
        mut entry: State,
        pending: &mut BTreeMap<usize, State>,
    ) {
        self.forget(header, end, &mut entry);
        if self.waits(header, end, &entry, pending) {
            return;
        }
        let shape = self.shape(header, end, entry);
        let head = self.head(&shape);
        let mut inside = BTreeMap::from([(header, head.clone())]);
        self.outer.push(shape.iteration);
        self.heads.push(head.guard);
        let before = self.found.barriers.len();
        let back = self.range(header..end + 1, &mut inside, Some(header));
        // Threads that come to a barrier together have to come to its iteration together.
        let mut inside_of: Vec<(Among, bool)> = Vec::new();
        for barrier in &self.found.barriers[before..] {
            if !inside_of.contains(&(barrier.among, barrier.orders)) {
                inside_of.push((barrier.among, barrier.orders));
            }
        }
        for (among, orders) in inside_of {
            self.comes(header, among, orders, &head);
        }
        self.outer.pop();
        self.heads.pop();
        if let Some(back) = back {
            self.growths(&shape, &head, &back);
        }
        let alone = inside.len() == 1;
        let at_last = FxHashMap::from_iter([(shape.iteration, shape.last)]);
        let ended = self.ended(&shape);
        if self.recording {
            self.found.loops.push(LoopAt {
                guard: shape.entry.guard,
                facts: [&shape.entry.facts[..], &shape.entry.within].concat(),
                ended,
                at: self.origin[header],
            });
        }
        for (target, exit) in inside {
            let mut memo = FxHashMap::default();
            let mut put = |exec: &mut Self, t: Term| exec.terms.replace_in(t, &at_last, &mut memo);
            let guard = match alone {
                true => shape.entry.guard,
                false => put(self, exit.guard),
            };
            let mut facts: Vec<Term> = exit.facts.into_iter().map(|t| put(self, t)).collect();
            facts.push(ended);
            let regs = exit.regs.into_iter().map(|t| put(self, t)).collect();
            let cells = exit.cells.into_iter();
            let cells = cells.map(|((object, offset, ty), t)| {
                let offset = put(self, offset);
                ((object, offset, ty), put(self, t))
            });
            let cells = cells.collect();
            let within = shape.entry.within.clone();
            let state = State {
                guard,
                facts,
                within,
                regs,
                cells,
            };
            self.leave_for(pending, target, state);
        }
    }

    /// The registers that a loop may change, and the counters behind them.
    fn assigned(&self, header: usize, end: usize) -> Vec<usize> {
        let code = &self.code[header..=end];
        let mut all: Vec<usize> = code
            .iter()
            .filter_map(|instr| instr.op.defines())
            .map(|r| usize::from(r.0))
            .collect();
        if code.iter().any(|instr| instr.op.barrier().is_some()) {
            let counters = [Counter::Shared, Counter::Global, Counter::AtBarrier];
            all.extend(counters.map(|counter| self.counter(counter)));
        }
        if code.iter().any(|instr| instr.op.barrier().is_some()) {
            all.extend(self.of_warps());
        }
        fn counts(instr: &Instr) -> bool {
            instr.op.has_any(&[Tag::CommitGroup, Tag::WaitGroup])
        }
        if code.iter().any(counts) {
            let counters = [Counter::Groups, Counter::Complete];
            all.extend(counters.map(|counter| self.counter(counter)));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Runs a loop once with symbols for what changes, until it is known which of them threads
    /// share.
    fn shape(&mut self, header: usize, end: usize, entry: State) -> Shape {
        let numbers = self.assigned(header, end);
        let mut levels: Vec<Level> = numbers
            .iter()
            .map(|n| self.terms.level(entry.regs[*n]))
            .collect();
        let iteration = self
            .terms
            .fresh("iteration", Level::Grid, Origin::Iteration, (0, MOST));
        let recording = std::mem::replace(&mut self.recording, false);
        self.outer.push(iteration);
        let (changing, back, exits) = loop {
            fn symbol(exec: &mut Exec<'_>, level: Level) -> Term {
                let range = range_of(Ty::WORD);
                exec.terms
                    .fresh("value in a loop", level, Origin::Free, range)
            }
            let changing: Vec<(usize, Term)> = numbers
                .iter()
                .zip(&levels)
                .map(|(n, level)| (*n, symbol(self, *level)))
                .collect();
            let mut state = entry.clone();
            state.guard = self.terms.int(1);
            for (n, symbol) in &changing {
                state.regs[*n] = *symbol;
            }
            let mut inside = BTreeMap::from([(header, state)]);
            let back = self.range(header..end + 1, &mut inside, Some(header));
            let mut stable = true;
            for (n, level) in numbers.iter().zip(&mut levels) {
                let needed = back
                    .as_ref()
                    .map(|b| b.regs[*n])
                    .map_or(*level, |t| self.terms.level(t));
                if needed > *level {
                    *level = needed;
                    stable = false;
                }
            }
            if stable {
                break (changing, back, inside);
            }
        };
        self.outer.pop();
        self.recording = recording;
        let mut shape = Shape {
            entry,
            changing,
            iteration,
            last: iteration,
            goes_on: self.terms.int(0),
            ends: self.terms.int(0),
            closed: FxHashMap::default(),
        };
        if let Some(back) = &back {
            self.close(&mut shape, &back.regs);
            shape.goes_on = self.terms.replace(back.guard, &shape.closed);
            self.note_doublings(header, &shape);
        } else {
            for (n, symbol) in &shape.changing {
                shape.closed.insert(*symbol, shape.entry.regs[*n]);
            }
        }
        let ends = exits.into_values().map(|exit| exit.guard).collect();
        let ends = self.terms.or(ends);
        shape.ends = self.terms.replace(ends, &shape.closed);
        shape.last = self.last(&shape);
        shape
    }

    /// Notes that a loop is taken to end before the numbers that it doubles leave their types.
    fn note_doublings(&mut self, header: usize, shape: &Shape) {
        for (room, wraps) in std::mem::take(&mut self.doubled) {
            let last = self.terms.int(room as i64);
            let by = FxHashMap::from_iter([(shape.iteration, last)]);
            let goes_on = self.terms.replace(shape.goes_on, &by);
            let goes_on = self.terms.and(vec![shape.entry.guard, goes_on]);
            if self.recording && self.terms.constant(goes_on) != Some(0) {
                self.found.doublings.push(Doubling {
                    goes_on,
                    facts: [&shape.entry.facts[..], &shape.entry.within].concat(),
                    wraps,
                    at: self.origin[header],
                });
            }
        }
    }

    /// The iteration in which a loop ends. Threads share it if what decides on it is shared.
    fn last(&mut self, shape: &Shape) -> Term {
        let level = self
            .terms
            .level(shape.ends)
            .max(self.terms.level(shape.goes_on));
        let symbol = Symbol {
            name: "last iteration".into(),
            level,
            origin: Origin::Last,
            range: self.terms.range(shape.iteration),
        };
        let id = self.terms.declare(symbol);
        let args = self.outer.clone();
        self.terms.add(Node::Symbol(id, args))
    }

    /// Finds the values at the start of an iteration, given those behind one.
    fn close(&mut self, shape: &mut Shape, after: &[Term]) {
        let mut open = Vec::new();
        self.close_constants(shape, after);
        for (n, symbol) in shape.changing.clone() {
            if shape.closed.contains_key(&symbol) {
                continue;
            }
            match self.closed(shape, symbol, shape.entry.regs[n], after[n]) {
                Some(closed) => {
                    shape.closed.insert(symbol, closed);
                }
                None => open.push((n, symbol)),
            }
        }
        for (n, symbol) in std::mem::take(&mut open) {
            match self.turned(shape, symbol, shape.entry.regs[n], after[n]) {
                Some(closed) => {
                    shape.closed.insert(symbol, closed);
                }
                None => open.push((n, symbol)),
            }
        }
        // A value that does not depend on itself follows from the others of the iteration before.
        loop {
            let before = open.len();
            for (n, symbol) in std::mem::take(&mut open) {
                match self.carried(shape, shape.entry.regs[n], after[n]) {
                    Some(closed) => {
                        shape.closed.insert(symbol, closed);
                    }
                    None => open.push((n, symbol)),
                }
            }
            if open.len() == before {
                break;
            }
        }
        for (n, symbol) in open {
            let value = self.any_value(shape, symbol, shape.entry.regs[n], after[n]);
            shape.closed.insert(symbol, value);
        }
    }

    /// Finds the values that are the same constant at the start of every iteration: they begin so,
    /// and an iteration that begins with all of them gives them again.
    fn close_constants(&mut self, shape: &mut Shape, after: &[Term]) {
        let entry = &shape.entry.regs;
        let begins = shape
            .changing
            .iter()
            .map(|(n, symbol)| (*n, *symbol, entry[*n]));
        let mut kept: Vec<(usize, Term, Term)> = begins
            .filter(|(_, _, value)| self.terms.constant(*value).is_some())
            .collect();
        loop {
            let by = kept.iter().map(|(_, symbol, value)| (*symbol, *value));
            let by: FxHashMap<Term, Term> = by.collect();
            let before = kept.len();
            kept.retain(|(n, _, value)| self.terms.replace(after[*n], &by) == *value);
            if kept.len() == before {
                break;
            }
        }
        let kept = kept.into_iter();
        shape
            .closed
            .extend(kept.map(|(_, symbol, value)| (symbol, value)));
    }

    /// The value at the start of an iteration of what each iteration makes anew from values that
    /// are known at its start.
    fn carried(&mut self, shape: &Shape, from: Term, after: Term) -> Option<Term> {
        let mut is_known = true;
        self.terms.visit(&[after], &mut |t| {
            let changes = shape.changing.iter().any(|(_, s)| *s == t);
            is_known &= !changes || shape.closed.contains_key(&t);
        });
        if !is_known || !self.closes(shape, after) {
            return None;
        }
        let k = shape.iteration;
        let after = self.terms.replace(after, &shape.closed);
        let one = self.terms.int(-1);
        let before = self.terms.plus(k, one);
        let after = self
            .terms
            .replace(after, &FxHashMap::from_iter([(k, before)]));
        let first = self.is_zero(k);
        Some(self.terms.ite(first, from, after))
    }

    /// Whether all free symbols of a term are those of values that change in a loop.
    fn closes(&self, shape: &Shape, t: Term) -> bool {
        !self.terms.symbols_in(&[t]).iter().any(|(t, id)| {
            let changes = shape.changing.iter().any(|(_, s)| s == t);
            !changes && self.terms.symbol(*id).origin == Origin::Free
        })
    }

    /// The value at the start of iteration `k`. It begins as `from`; an iteration makes `after` of
    /// `symbol`. `None`: this is not a known recurrence.
    fn closed(&mut self, shape: &Shape, symbol: Term, from: Term, after: Term) -> Option<Term> {
        if after == symbol {
            return Some(from);
        }
        let k = shape.iteration;
        let own = |exec: &Self, t: Term| {
            let all = exec.terms.symbols_in(&[t]);
            !all.iter().any(|(t, id)| {
                *t == k
                    || shape.changing.iter().any(|(_, s)| s == t)
                    || exec.terms.symbol(*id).origin == Origin::Free
            })
        };
        let (inner, cast) = match *self.terms.node(after) {
            Node::Cast(ty, inner) => (inner, Some(ty)),
            _ => (after, None),
        };
        let step = match *self.terms.node(inner) {
            Node::Bin(op, ty, a, b) if own(self, b) && self.converted(a, symbol).is_some() => {
                Some((op, ty, b, self.converted(a, symbol)))
            }
            Node::Bin(op @ (BinOp::Add | BinOp::Mul), ty, a, b) if own(self, a) => {
                Some((op, ty, a, self.converted(b, symbol)))
            }
            _ => None,
        };
        if let Some((op, ty, by, Some(to))) = step
            && self.keeps_step(op, from, [Some(ty), cast, to])
            && let Some(closed) = self.recurrence(shape, op, ty, from, by)
        {
            // A conversion cuts a number in each iteration, whatever the type of the operation.
            if let (Some(doubled), Some(_)) = (self.doubled.last_mut(), cast) {
                doubled.1 = true;
            }
            let closed = cast.map_or(closed, |ty| self.terms.cast(ty, closed));
            let out = cast.unwrap_or(ty);
            let is_plain = self.holds(out, from) && (out.bits <= ty.bits || self.holds(ty, from));
            // The first value is not converted.
            return Some(match is_plain {
                true => closed,
                false => {
                    let first = self.is_zero(k);
                    self.terms.ite(first, from, closed)
                }
            });
        }
        self.cyclic(shape, symbol, from, after)
    }

    /// Whether an operation and conversions, once in each iteration, make what the operation makes
    /// with all iterations at once. `types`: that of the operation, and those of the conversions
    /// behind it and in front of it.
    fn keeps_step(&self, op: BinOp, from: Term, types: [Option<Ty>; 3]) -> bool {
        match op {
            // Such numbers only fall.
            BinOp::Shr | BinOp::Div => types.into_iter().flatten().all(|ty| self.holds(ty, from)),
            // The lowest bits of the result are made of the lowest bits of the operands.
            _ => {
                let [of, behind, before] = types.map(|ty| ty.map_or(64, |ty| ty.bits));
                before >= of.min(behind)
            }
        }
    }

    /// Whether all values of a term are in a type. Any word is in one of 64 bits.
    fn holds(&self, ty: Ty, t: Term) -> bool {
        let (of, range) = (range_of(ty), self.terms.range(t));
        ty.bits >= 64 || (of.0 <= range.0 && range.1 <= of.1)
    }

    /// The conversion of a symbol that a term is, if it is that; `Some(None)`: it is the symbol.
    fn converted(&self, t: Term, symbol: Term) -> Option<Option<Ty>> {
        match *self.terms.node(t) {
            Node::Cast(ty, inner) if inner == symbol => Some(Some(ty)),
            _ => (t == symbol).then_some(None),
        }
    }

    /// Whether a term is a symbol, converted or not. A conversion to 32 bits or more keeps a value
    /// that is in both of its types.
    fn is(&self, t: Term, symbol: Term) -> bool {
        let of = self.converted(t, symbol);
        of.is_some_and(|ty| ty.is_none_or(|ty| ty.bits >= 32))
    }

    /// A value that comes back to itself: `(v + c) % n`, `v ^ c`, `1 - v`, `v + 1 == n ? 0 : v +
    /// 1`.
    fn cyclic(&mut self, shape: &Shape, symbol: Term, from: Term, after: Term) -> Option<Term> {
        let k = shape.iteration;
        fn constant(exec: &Exec<'_>, t: Term) -> Option<i64> {
            exec.terms.constant(t).filter(|v| *v > 0)
        }
        // The number that is added.
        let step = |exec: &Self, t: Term| match *exec.terms.node(t) {
            _ if range_of(Ty::S32).1 < exec.terms.range(from).1 => None,
            Node::Bin(BinOp::Add, ty, a, b) if exec.is(a, symbol) => Some((ty, constant(exec, b)?)),
            Node::Bin(BinOp::Add, ty, a, b) if exec.is(b, symbol) => Some((ty, constant(exec, a)?)),
            _ => None,
        };
        fn is_zero(exec: &Exec<'_>, t: Term) -> bool {
            exec.terms.constant(t) == Some(0)
        }
        // A mask takes the lowest bits, whether the sum leaves its type or not.
        let is_masked = matches!(self.terms.node(after), Node::Bin(BinOp::And, ..));
        let (ty, by, size) = match *self.terms.node(after) {
            Node::Bin(BinOp::Rem, _, a, n) => {
                let (ty, by) = step(self, a)?;
                (ty, by, constant(self, n)?)
            }
            Node::Bin(BinOp::And, _, a, n) => {
                let (ty, by) = step(self, a)?;
                let size = constant(self, n)? + 1;
                (ty, by, Some(size).filter(|n| n & (n - 1) == 0)?)
            }
            Node::Ite(cond, a, b) => {
                let Node::Cmp(op, _, x, n) = *self.terms.node(cond) else {
                    return None;
                };
                let next = match op {
                    CmpOp::Eq if is_zero(self, a) => b,
                    CmpOp::Ne if is_zero(self, b) => a,
                    _ => return None,
                };
                let (ty, by) = step(self, next)?;
                let last = match self.is(x, symbol) {
                    true => constant(self, n)? + 1,
                    false if x == next => constant(self, n)?,
                    false => return None,
                };
                (ty, Some(by).filter(|by| *by == 1)?, last)
            }
            Node::Bin(op @ (BinOp::Xor | BinOp::Sub), ty, a, b) => {
                let (other, own) = match op {
                    BinOp::Xor if self.is(a, symbol) => (b, a),
                    _ => (a, b),
                };
                self.terms
                    .constant(other)
                    .filter(|_| self.is(own, symbol))?;
                let swapped = self.terms.bin(op, ty, other, from);
                let types = [Some(ty), self.converted(own, symbol)?];
                let mut types = types.into_iter().flatten();
                let fits = |ty| self.holds(ty, from) && self.holds(ty, swapped);
                types.all(fits).then_some(())?;
                return Some(self.every_other(k, from, swapped));
            }
            Node::Cmp(CmpOp::Eq, _, a, b) if self.is(a, symbol) && is_zero(self, b) => {
                let (truth, not) = (self.terms.truth(from), self.is_zero(from));
                return (truth == from).then(|| self.every_other(k, from, not));
            }
            _ => return None,
        };
        let range = self.terms.range(from);
        if size > 1 << 20 || by > size || range.0 < 0 || range.1 >= i128::from(size) {
            return None;
        }
        let most = if is_masked { size - 1 } else { size - 1 + by };
        if i128::from(most) > range_of(ty).1 {
            return None;
        }
        let (by, size) = (self.terms.int(by), self.terms.int(size));
        let sum = self.terms.bin(BinOp::Mul, Ty::WORD, by, k);
        let sum = self.terms.plus(from, sum);
        let value = self.terms.bin(BinOp::Rem, Ty::WORD, sum, size);
        Some(self.terms.cast(ty, value))
    }

    /// A value that changes to another one and back, once in each round of a ring, as a phase does:
    /// `if (++stage == n) { stage = 0; phase ^= 1; }`.
    fn turned(&mut self, shape: &Shape, symbol: Term, from: Term, after: Term) -> Option<Term> {
        let Node::Ite(cond, a, b) = *self.terms.node(after) else {
            return None;
        };
        let (cond, turned) = match self.is(b, symbol) {
            true => (cond, a),
            false if self.is(a, symbol) => (self.terms.not(cond), b),
            false => return None,
        };
        let (op, ty, by) = match *self.terms.node(turned) {
            Node::Bin(BinOp::Xor, ty, x, by) if self.is(x, symbol) => (BinOp::Xor, ty, by),
            Node::Bin(op @ (BinOp::Xor | BinOp::Sub), ty, by, x) if self.is(x, symbol) => {
                (op, ty, by)
            }
            _ => return None,
        };
        self.terms.constant(by)?;
        let turned = self.terms.bin(op, ty, by, from);
        for t in [from, turned] {
            let most = range_of(Ty::S32).1;
            let value = i128::from(self.terms.constant(t)?);
            { (0..=most).contains(&value) }.then_some(())?;
        }
        let (size, turn) = self.turn(shape, cond)?;
        // How often it has changed before an iteration.
        let behind = self.terms.int(size - 1 - turn);
        let sum = self.terms.plus(shape.iteration, behind);
        let size = self.terms.int(size);
        let turns = self.terms.bin(BinOp::Div, Ty::WORD, sum, size);
        Some(self.every_other(turns, from, turned))
    }

    /// The number of iterations in a round of a ring, and the one in which a condition about its
    /// stage holds; `None`: the condition is no such one.
    fn turn(&mut self, shape: &Shape, cond: Term) -> Option<(i64, i64)> {
        let [(stage, _)] = self.terms.symbols_in(&[cond])[..] else {
            return None;
        };
        let mut closed = *shape.closed.get(&stage)?;
        while let Node::Cast(_, inner) = *self.terms.node(closed) {
            closed = inner;
        }
        let Node::Bin(BinOp::Rem, _, sum, size) = *self.terms.node(closed) else {
            return None;
        };
        let size = self
            .terms
            .constant(size)
            .filter(|n| (1..=MOST_STAGES).contains(n))?;
        let k = shape.iteration;
        let is_count = match *self.terms.node(sum) {
            Node::Bin(BinOp::Add, _, a, b) => {
                let is_start = |t: Term| self.terms.constant(t).is_some();
                (a == k && is_start(b)) || (b == k && is_start(a))
            }
            _ => sum == k,
        };
        let mut turns = Vec::new();
        for n in 0..if is_count { size } else { return None } {
            let n_term = self.terms.int(n);
            let stage_then = self
                .terms
                .replace(shape.closed[&stage], &FxHashMap::from_iter([(k, n_term)]));
            let by = FxHashMap::from_iter([(stage, stage_then)]);
            let then = self.terms.replace(cond, &by);
            if self.terms.constant(then)? != 0 {
                turns.push(n);
            }
        }
        match turns[..] {
            [turn] => Some((size, turn)),
            _ => None,
        }
    }

    /// The first value in even iterations, the second one in odd ones.
    fn every_other(&mut self, k: Term, even: Term, odd: Term) -> Term {
        let two = self.terms.int(2);
        let rest = self.terms.bin(BinOp::Rem, Ty::WORD, k, two);
        let is_even = self.is_zero(rest);
        self.terms.ite(is_even, even, odd)
    }

    /// An unknown value; the engine knows only whether threads share it.
    fn any_value(&mut self, shape: &Shape, symbol: Term, from: Term, after: Term) -> Term {
        let k = shape.iteration;
        let level = match *self.terms.node(symbol) {
            Node::Symbol(id, _) => self.terms.symbol(id).level,
            _ => Level::Thread,
        };
        let counter = self.terms.range(after);
        let range = match counter.0 >= 0 {
            true => {
                let first = self.terms.range(from);
                (counter.0.min(first.0), counter.1.max(first.1))
            }
            false => range_of(Ty::WORD),
        };
        let symbol = Symbol {
            name: "value in a loop".into(),
            level,
            origin: Origin::Loop,
            range,
        };
        let id = self.terms.declare(symbol);
        let mut args = self.outer.clone();
        args.push(k);
        self.terms.add(Node::Symbol(id, args))
    }

    /// `from` after `k` times `op by`.
    fn recurrence(
        &mut self,
        shape: &Shape,
        op: BinOp,
        ty: Ty,
        from: Term,
        by: Term,
    ) -> Option<Term> {
        let k = shape.iteration;
        fn power(v: i64) -> Option<i64> {
            (v > 0 && v & (v - 1) == 0).then(|| i64::from(v.trailing_zeros()))
        }
        let amount = self.terms.constant(by);
        let (shift, times) = match op {
            BinOp::Add | BinOp::Sub => {
                let product = self.terms.bin(BinOp::Mul, ty, by, k);
                return Some(self.terms.bin(op, ty, from, product));
            }
            BinOp::Shl | BinOp::Shr => (op, amount.filter(|n| (1..32).contains(n))?),
            BinOp::Mul => (BinOp::Shl, power(amount?)?),
            BinOp::Div => (BinOp::Shr, power(amount?)?),
            _ => return None,
        };
        let least = self.terms.range(from).0;
        if least < 0 {
            return None;
        }
        if shift == BinOp::Shl {
            let range = self.terms.range(from);
            let most = range_of(ty).1;
            if least == 0 || times != 1 || range.1 > most || range.0 != range.1 {
                return None;
            }
            if !self.reads.wraps {
                let room = (0..63).take_while(|n| least << n <= most).count() as i128 - 1;
                self.terms.narrow(k, (0, room));
                let wraps = !ty.signed || self.program.dialect == Dialect::Ptx;
                self.doubled.push((room, wraps));
            }
        }
        let amount = match times {
            1 if ty.bits >= 32 => k,
            _ => {
                // Behind so many iterations nothing is left, and the product stays in its type.
                let (times, most) = (self.terms.int(times), self.terms.int(64));
                let k = self.terms.bin(BinOp::Min, Ty::S32, k, most);
                self.terms.bin(BinOp::Mul, Ty::S32, times, k)
            }
        };
        Some(self.terms.bin(shift, ty, from, amount))
    }

    /// Where an iteration begins.
    fn head(&mut self, shape: &Shape) -> State {
        let mut state = shape.entry.clone();
        for (n, symbol) in &shape.changing {
            state.regs[*n] = shape.closed[symbol];
        }
        let came = self.came(shape, shape.iteration);
        state.guard = self.terms.and(vec![state.guard, came]);
        let within = self
            .terms
            .cmp(CmpOp::Le, Ty::WORD, shape.iteration, shape.last);
        let ended = self.ended(shape);
        state.facts.push(ended);
        state.within.push(within);
        state
    }

    /// What has to hold for the loop to come to an iteration from the one before.
    fn came(&mut self, shape: &Shape, iteration: Term) -> Term {
        let first = self.is_zero(iteration);
        let one = self.terms.int(-1);
        let before = self.terms.plus(iteration, one);
        let by = FxHashMap::from_iter([(shape.iteration, before)]);
        let goes_on = self.terms.replace(shape.goes_on, &by);
        self.terms.or(vec![first, goes_on])
    }

    /// The loop ends in its last iteration, where it is entered.
    fn ended(&mut self, shape: &Shape) -> Term {
        let by = FxHashMap::from_iter([(shape.iteration, shape.last)]);
        let ends = self.terms.replace(shape.ends, &by);
        let came = self.came(shape, shape.last);
        let ended = self.terms.and(vec![ends, came]);
        let not = self.terms.not(shape.entry.guard);
        self.terms.or(vec![not, ended])
    }

    /// Notes the counters of barriers that grow by what is not the same in all iterations.
    fn growths(&mut self, shape: &Shape, head: &State, back: &State) {
        for n in [Counter::Shared, Counter::Global].map(|counter| self.counter(counter)) {
            let before = head.regs[n];
            let Node::Symbol(counter, args) = self.terms.node(before).clone() else {
                continue;
            };
            if args.last() != Some(&shape.iteration) {
                continue;
            }
            let zero = self.terms.int(0);
            let by = FxHashMap::from_iter([(before, zero)]);
            let by = self.terms.replace(back.regs[n], &by);
            if self.grows(before, back.regs[n]) && self.terms.range(by).0 >= 0 {
                self.found.growths.push(Growth {
                    counter,
                    iterations: args,
                    from: shape.entry.regs[n],
                    by,
                });
            }
        }
    }

    /// Whether a term is another one with something added.
    fn grows(&self, before: Term, after: Term) -> bool {
        match *self.terms.node(after) {
            _ if after == before => true,
            Node::Bin(BinOp::Add, _, a, b) => {
                let without = |t: Term| {
                    let mut found = false;
                    self.terms
                        .visit(&[t], &mut |inner| found |= inner == before);
                    !found
                };
                (self.grows(before, a) && without(b)) || (self.grows(before, b) && without(a))
            }
            Node::Ite(_, a, b) => self.grows(before, a) && self.grows(before, b),
            _ => false,
        }
    }
}
