//! Questions about two threads: can two of their accesses conflict, with nothing between them; can
//! they part before a barrier.
//!
//! # Why two threads suffice
//! A race is a pair of accesses of two threads. What the other threads do shows in the values that
//! the two read and in which barriers order what. Values that others may have written are free, and
//! barriers are passed by all threads of a block together (or threads part before one, which is
//! asked apart), so the number of barriers that a thread has passed says which accesses are
//! ordered.
//!
//! # Clauses of the models
//! - *Conflict*: two accesses of different threads to overlapping memory, one of them a write
//!   (`conflicting` in `models/ptx.cat`, `models/cuda-base.cat`, `models/opencl-base.cat`).
//! - *Morally strong*, *inclusive scopes*: both atomic, of the same size, in scopes that include
//!   each other ([`Inclusion`]): no race ([`exclude`]).
//! - *Asynchronous copies*: an access of a copy by `cp.async` comes behind all earlier events of
//!   its thread, and before a wait for its group (`starts`, `group-done` in `models/ptx.cat`). So
//!   it is in no barrier interval, and may race with its own thread.
//! - *Synchronizes by barrier*: what comes before a barrier of a block happens before what comes
//!   behind it, in memory that the barrier orders.
//! - *Synchronizes by mbarrier*: [`crate::phases`] has the argument.

use program::{Dialect, Scope};
use rustc_hash::FxHashMap;

use crate::exec::{AccessAt, Among, BarrierAt, BeginAt, Behaviour, ExitAt, MemoryEffect};
use crate::launch::LaunchFacts;
use crate::operations::{Handover, Ticket};
use crate::term::{Level, Node, Origin, Symbol, SymbolId, Term, Terms};

use program::{CmpOp, Space, Ty};

/// How two threads stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Together {
    /// One thread: an asynchronous copy that it has begun, and another access of it.
    Thread,
    /// Different threads of one block.
    Block,
    /// Threads of different blocks.
    Grid,
}

impl Together {
    /// The narrowest scope that holds both.
    fn scope(self) -> Scope {
        match self {
            Together::Thread | Together::Block => Scope::Cta,
            Together::Grid => Scope::Gpu,
        }
    }
}

/// Conditions, and the symbols of threads that they speak of.
#[derive(Clone, Debug)]
pub struct PairQuestion {
    /// All of them hold.
    pub conditions: Vec<Term>,
    /// The ones that hold for all accesses in the same iterations.
    pub common: Vec<Term>,
    /// Coordinates of the two threads, as terms, by the name of the register.
    pub places: [Vec<(String, Term)>; 2],
    /// That no barrier comes between the two accesses.
    pub unordered: Option<Term>,
    /// The iterations of both, pair by pair, where both are in the same loops.
    pub iterations: Vec<(Term, Term)>,
    /// Where the access of the first one is in its object.
    pub offset: Option<Term>,
}

/// When two atomic accesses include each other in their scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inclusion {
    /// Each scope holds both threads (PTX ISA, *Morally Strong Operations*; CUDA C++).
    Wide,
    /// The scopes are equal, and hold both (OpenCL C, *Overview of Atomic and Fence Operations*).
    Equal,
}

impl Inclusion {
    /// That of the model of a dialect.
    pub fn of(dialect: Dialect) -> Inclusion {
        match dialect {
            Dialect::OpenCl => Inclusion::Equal,
            _ => Inclusion::Wide,
        }
    }
}

/// Whether two accesses exclude each other wherever they happen: both are atomic, their scopes
/// include each other, and they are of one size.
pub fn exclude(a: &AccessAt, b: &AccessAt, together: Together, inclusion: Inclusion) -> bool {
    let wide = |x: &AccessAt| x.atomic.is_some_and(|scope| scope >= together.scope());
    let included = inclusion == Inclusion::Wide || a.atomic == b.atomic;
    wide(a) && wide(b) && included && a.bytes == b.bytes
}

/// Whether two accesses conflict where they overlap.
pub fn conflict(
    a: &AccessAt,
    b: &AccessAt,
    together: Together,
    space: Space,
    inclusion: Inclusion,
) -> bool {
    let writes = a.does != MemoryEffect::Reads || b.does != MemoryEffect::Reads;
    let shared = match together {
        Together::Thread => a.copy.is_some() || b.copy.is_some(),
        Together::Block => true,
        Together::Grid => space != Space::Shared,
    };
    writes && shared && a.object == b.object && !exclude(a, b, together, inclusion)
}

/// The symbols of two threads. All questions use the same ones, so equal questions have equal
/// terms.
#[derive(Debug)]
pub struct Sides {
    thread: [Renaming; 2],
    block: [Renaming; 2],
    grid: [Renaming; 2],
}

impl Default for Sides {
    fn default() -> Sides {
        fn of(together: Together) -> [Renaming; 2] {
            [0, 1].map(|which| Renaming::new(together, which))
        }
        Sides {
            thread: of(Together::Thread),
            block: of(Together::Block),
            grid: of(Together::Grid),
        }
    }
}

/// A kernel with a launch, run symbolically.
pub(crate) struct SymbolicRun {
    pub(crate) terms: Terms,
    pub(crate) setting: LaunchFacts,
    pub(crate) behaviour: Behaviour,
    /// What mbarrier objects order.
    pub(crate) handovers: Vec<Handover>,
    /// Whether these take sums not to overflow.
    pub(crate) trusts_phases: bool,
    pub(crate) sides: Sides,
    /// Questions whether two unordered threads are in the same iteration, each with its answer.
    /// With it, whether that takes sums not to overflow.
    pub(crate) equal: FxHashMap<Vec<Term>, Option<bool>>,
}

/// Gives each of two threads symbols of its own.
#[derive(Debug)]
struct Renaming {
    together: Together,
    which: usize,
    symbols: FxHashMap<SymbolId, SymbolId>,
    memo: FxHashMap<Term, Term>,
}

impl Renaming {
    fn new(together: Together, which: usize) -> Renaming {
        Renaming {
            together,
            which,
            symbols: FxHashMap::default(),
            memo: FxHashMap::default(),
        }
    }

    fn symbol(&mut self, terms: &mut Terms, id: SymbolId) -> SymbolId {
        let symbol = terms.symbol(id).clone();
        let own = match symbol.level {
            Level::Thread => self.together != Together::Thread,
            Level::Block => self.together == Together::Grid,
            Level::Grid => symbol.origin == Origin::Iteration,
        };
        if !own {
            return id;
        }
        let which = self.which;
        *self.symbols.entry(id).or_insert_with(|| {
            let name = format!("{} of thread {which}", symbol.name);
            terms.declare(Symbol { name, ..symbol })
        })
    }

    fn of(&mut self, terms: &mut Terms, t: Term) -> Term {
        if let Some(known) = self.memo.get(&t) {
            return *known;
        }
        for (symbol, id) in terms.symbols_in(&[t]) {
            if self.memo.contains_key(&symbol) {
                continue;
            }
            let new = self.symbol(terms, id);
            let Node::Symbol(_, args) = terms.node(symbol).clone() else {
                continue;
            };
            let args = args.into_iter().map(|a| self.of(terms, a)).collect();
            let new = terms.add(Node::Symbol(new, args));
            self.memo.insert(symbol, new);
        }
        let mut memo = FxHashMap::default();
        let new = terms.replace_in(t, &self.memo, &mut memo);
        self.memo.insert(t, new);
        new
    }
}

/// What two threads have in common, and what they do not.
pub(crate) struct Two<'a> {
    pub(crate) terms: &'a mut Terms,
    setting: &'a LaunchFacts,
    behaviour: &'a Behaviour,
    handovers: &'a [Handover],
    sides: &'a mut [Renaming; 2],
}

impl<'a> Two<'a> {
    pub(crate) fn new(run: &'a mut SymbolicRun, together: Together) -> Two<'a> {
        Two {
            terms: &mut run.terms,
            setting: &run.setting,
            behaviour: &run.behaviour,
            handovers: &run.handovers,
            sides: match together {
                Together::Thread => &mut run.sides.thread,
                Together::Block => &mut run.sides.block,
                Together::Grid => &mut run.sides.grid,
            },
        }
    }

    /// A value of one of the threads.
    pub(crate) fn of(&mut self, which: usize, t: Term) -> Term {
        self.sides[which].of(self.terms, t)
    }

    /// The condition that a value of the first thread is one of the second.
    pub(crate) fn are_equal(&mut self, [a, b]: [Term; 2]) -> Term {
        let (a, b) = (self.of(0, a), self.of(1, b));
        self.terms.cmp(CmpOp::Eq, Ty::WORD, a, b)
    }

    /// That the threads are different ones, and in one block or in two.
    pub(crate) fn apart(&mut self) -> Vec<Term> {
        let mut all = self.setting.facts.clone();
        for which in 0..2 {
            for t in &self.setting.of_thread {
                all.push(self.sides[which].of(self.terms, *t));
            }
        }
        let coordinates = match self.sides[0].together {
            Together::Thread => return all,
            Together::Block => self.setting.local.clone(),
            Together::Grid => self.setting.group.clone(),
        };
        let mut different = Vec::new();
        for t in coordinates {
            let (a, b) = (self.of(0, t), self.of(1, t));
            different.push(self.terms.cmp(CmpOp::Ne, Ty::WORD, a, b));
        }
        all.push(self.terms.or(different));
        all
    }

    /// That one of the accesses is behind the last barrier of a thread that ends early, and the
    /// other one not in front of that.
    fn last(
        &mut self,
        which: usize,
        access: &AccessAt,
        exit: &ExitAt,
        intervals: [Term; 2],
    ) -> Term {
        let both = self.terms.and(vec![access.guard, exit.guard]);
        let ends = self.of(which, both);
        if self.terms.constant(ends) == Some(0) {
            return ends;
        }
        let passed = self.of(which, exit.intervals[access.kind]);
        let (own, other) = (intervals[which], intervals[1 - which]);
        let last = self.terms.cmp(CmpOp::Eq, Ty::WORD, own, passed);
        let behind = self.terms.cmp(CmpOp::Ge, Ty::WORD, other, own);
        self.terms.and(vec![ends, last, behind])
    }

    /// The condition that no barrier comes between two accesses.
    fn unordered(&mut self, (a, b): (&AccessAt, &AccessAt), intervals: [Term; 2]) -> Term {
        let [p, q] = intervals;
        let same = self.terms.cmp(CmpOp::Eq, Ty::WORD, p, q);
        let in_warp = self.unordered_in_warp(a, b);
        let mut ways = vec![self.terms.and(vec![same, in_warp])];
        let behaviour = self.behaviour;
        for (which, access) in [(0, a), (1, b)] {
            for exit in &behaviour.exits {
                ways.push(self.last(which, access, exit, intervals));
            }
        }
        let mut all = vec![self.terms.or(ways)];
        for (which, own, other) in [(0, a, b), (1, b, a)] {
            for handover in self.handovers {
                let handed = self.handed_over(which, own, other, handover);
                all.push(self.terms.not(handed));
            }
        }
        self.terms.and(all)
    }

    /// The condition that the access of a thread comes before an arrival of it, which a wait has
    /// seen before the access of the other thread.
    fn handed_over(
        &mut self,
        which: usize,
        own: &AccessAt,
        other: &AccessAt,
        handover: &Handover,
    ) -> Term {
        let (arrival, wait) = (&handover.arrival, &handover.wait);
        let is_before =
            own.order < arrival.order && own.iterations.starts_with(&arrival.iterations);
        let is_behind = wait.order < other.order && other.iterations.starts_with(&wait.iterations);
        if !is_before || !is_behind {
            return self.terms.int(0);
        }
        let arrives = self.of(which, arrival.guard);
        let waits = self.of(1 - which, wait.guard);
        let objects = [
            self.of(which, arrival.offset),
            self.of(1 - which, wait.offset),
        ];
        let same = self.terms.cmp(CmpOp::Eq, Ty::WORD, objects[0], objects[1]);
        let number = self.of(which, handover.number);
        let complete = self.of(1 - which, handover.complete);
        let seen = self.terms.cmp(CmpOp::Lt, Ty::WORD, number, complete);
        self.terms.and(vec![arrives, waits, same, seen])
    }

    /// The condition that no barrier of a warp comes between two accesses: the threads have passed
    /// each barrier that brings both together equally often.
    fn unordered_in_warp(&mut self, a: &AccessAt, b: &AccessAt) -> Term {
        let mut all = Vec::new();
        let masks = self.behaviour.masks.iter().enumerate();
        for (n, mask) in masks {
            let (p, q) = (self.of(0, a.of_warp[n]), self.of(1, b.of_warp[n]));
            let same = self.terms.cmp(CmpOp::Eq, Ty::WORD, p, q);
            let together = self.in_one_warp(*mask);
            let apart = self.terms.not(together);
            all.push(self.terms.or(vec![apart, same]));
        }
        self.terms.and(all)
    }

    /// The condition that both threads are in one warp, and in a mask.
    fn in_one_warp(&mut self, mask: u32) -> Term {
        let warps = [0, 1].map(|which| self.of(which, self.setting.warp));
        let mut all = vec![self.terms.cmp(CmpOp::Eq, Ty::WORD, warps[0], warps[1])];
        for which in 0..2 {
            let lane = self.of(which, self.setting.lane);
            let mut ways = Vec::new();
            for (first, last) in runs(mask) {
                let (first, last) = (self.terms.int(first), self.terms.int(last));
                let from = self.terms.cmp(CmpOp::Ge, Ty::WORD, lane, first);
                let to = self.terms.cmp(CmpOp::Le, Ty::WORD, lane, last);
                ways.push(self.terms.and(vec![from, to]));
            }
            if mask != u32::MAX {
                all.push(self.terms.or(ways));
            }
        }
        self.terms.and(all)
    }

    /// The same condition if one access belongs to an asynchronous copy, or both do. A thread waits
    /// for such a copy and comes to a barrier; the copy precedes all accesses behind that barrier.
    fn copied(&mut self, pair: [&AccessAt; 2], intervals: [Term; 2]) -> Term {
        // A thread that has ended comes to no barrier. Such kernels get no order here.
        if !self.behaviour.exits.is_empty() {
            return self.terms.int(1);
        }
        let mut open = Vec::new();
        for which in 0..2 {
            let before = match pair[which].copy {
                None => {
                    let (own, other) = (intervals[which], intervals[1 - which]);
                    self.terms.cmp(CmpOp::Lt, Ty::WORD, own, other)
                }
                Some(group) => {
                    let group = self.of(which, group);
                    let complete = self.complete_at(which, pair[1 - which]);
                    self.terms.cmp(CmpOp::Lt, Ty::WORD, group, complete)
                }
            };
            open.push(self.terms.not(before));
        }
        self.terms.and(open)
    }

    /// The condition that nothing orders two accesses of a block, one of which belongs to a copy of
    /// the work-group, or both do.
    fn copied_by_group(&mut self, pair: [&AccessAt; 2], intervals: [Term; 2]) -> Term {
        if !self.behaviour.exits.is_empty() {
            return self.terms.int(1);
        }
        let mut open = Vec::new();
        for which in 0..2 {
            let (own, other) = (intervals[which], intervals[1 - which]);
            let before = match (pair[which].of_group, pair[which].copy) {
                (Some(place), Some(number)) => {
                    let number = self.of(which, number);
                    let waited = self.of(1 - which, pair[1 - which].waited[place]);
                    self.terms.cmp(CmpOp::Lt, Ty::WORD, number, waited)
                }
                // What orders a copy of one thread before a copy of the group is not looked at.
                (_, Some(_)) => continue,
                (_, None) => self.terms.cmp(CmpOp::Lt, Ty::WORD, own, other),
            };
            open.push(self.terms.not(before));
        }
        let [a, b] = pair;
        if let (true, Some(p), Some(q)) = (a.of_group == b.of_group, a.copy, b.copy) {
            // One copy does not race with itself.
            let (p, q) = (self.of(0, p), self.of(1, q));
            open.push(self.terms.cmp(CmpOp::Ne, Ty::WORD, p, q));
        }
        self.terms.and(open)
    }

    /// How many groups of copies of a thread were complete at the last barrier before an access of
    /// the other one. Both come to that barrier in the same iterations, or else threads part.
    fn complete_at(&mut self, which: usize, other: &AccessAt) -> Term {
        let complete = self.of(which, other.complete[1]);
        let mut by = FxHashMap::default();
        for t in &other.iterations {
            let (own, others) = (self.of(which, *t), self.of(1 - which, *t));
            by.insert(own, others);
        }
        self.terms.replace(complete, &by)
    }

    /// The condition that a copy of a thread is not complete at a later access of the thread.
    fn own_copy(&mut self, pair: [&AccessAt; 2]) -> Term {
        let mut ways = Vec::new();
        for which in 0..2 {
            let (own, other) = (pair[which], pair[1 - which]);
            let Some(group) = own.copy else { continue };
            let group = self.of(which, group);
            let complete = match own.of_group {
                Some(place) => other.waited[place],
                None => other.complete[0],
            };
            let complete = self.of(1 - which, complete);
            let open = self.terms.cmp(CmpOp::Le, Ty::WORD, complete, group);
            let earlier = self.earlier(which, own, other);
            ways.push(self.terms.and(vec![open, earlier]));
        }
        self.terms.or(ways)
    }

    /// The condition that an access of the thread comes before another one in program order.
    fn earlier(&mut self, which: usize, own: &AccessAt, other: &AccessAt) -> Term {
        let pairs = own.iterations.iter().zip(&other.iterations);
        let shared: Vec<Term> = pairs.take_while(|(x, y)| x == y).map(|(x, _)| *x).collect();
        let mut earlier = self.terms.int(i64::from(own.order < other.order));
        for t in shared.into_iter().rev() {
            let (x, y) = (self.of(which, t), self.of(1 - which, t));
            let before = self.terms.cmp(CmpOp::Lt, Ty::WORD, x, y);
            let same = self.terms.cmp(CmpOp::Eq, Ty::WORD, x, y);
            let inside = self.terms.and(vec![same, earlier]);
            earlier = self.terms.or(vec![before, inside]);
        }
        earlier
    }

    /// What holds of the tickets of both threads that conditions speak of: where both add to one
    /// place, they read values that are apart.
    fn tickets(&mut self, conditions: &[Term]) -> Vec<Term> {
        let together = self.sides[0].together;
        if together == Together::Thread || self.behaviour.tickets.is_empty() {
            return Vec::new();
        }
        let symbols = self.terms.symbols_in(conditions);
        let speaks = |t: Term| symbols.iter().any(|(symbol, _)| *symbol == t);
        let mut all = Vec::new();
        let behaviour = self.behaviour;
        for first in &behaviour.tickets {
            for second in behaviour
                .tickets
                .iter()
                .filter(|t| t.object == first.object)
            {
                let values = [self.of(0, first.value), self.of(1, second.value)];
                if values.iter().all(|value| speaks(*value)) {
                    all.extend(self.are_apart([first, second], values, together));
                }
            }
        }
        // A counter that wraps around would give a number twice.
        self.terms.may_overflow |= !all.is_empty();
        all
    }

    fn are_apart(
        &mut self,
        [first, second]: [&Ticket; 2],
        [x, y]: [Term; 2],
        together: Together,
    ) -> Option<Term> {
        if first.is_shared && together == Together::Grid {
            return None;
        }
        let mut both = vec![
            self.of(0, first.guard),
            self.of(1, second.guard),
            self.are_equal([first.offset, second.offset]),
        ];
        match (first.interval, second.interval) {
            (None, None) => {}
            (Some(p), Some(q)) if together == Together::Block => both.push(self.are_equal([p, q])),
            _ => return None,
        }
        let (by, to) = (self.of(0, first.by), self.of(1, second.by));
        let (behind_x, behind_y) = (self.terms.plus(x, by), self.terms.plus(y, to));
        let before = self.terms.cmp(CmpOp::Le, Ty::WORD, behind_x, y);
        let behind = self.terms.cmp(CmpOp::Le, Ty::WORD, behind_y, x);
        for (by, ticket) in [(by, first), (to, second)] {
            let most = self.terms.int(ticket.most);
            both.push(self.terms.cmp(CmpOp::Le, Ty::WORD, by, most));
        }
        let both = self.terms.and(both);
        let not = self.terms.not(both);
        Some(self.terms.or(vec![not, before, behind]))
    }

    /// The question whether conditions hold together, with terms replaced.
    fn question(&mut self, conditions: Vec<Term>, by: &FxHashMap<Term, Term>) -> PairQuestion {
        let conditions = conditions.into_iter();
        let conditions = conditions.map(|t| self.terms.replace(t, by)).collect();
        PairQuestion {
            conditions,
            common: Vec::new(),
            places: self.places(),
            unordered: None,
            iterations: Vec::new(),
            offset: None,
        }
    }

    fn places(&mut self) -> [Vec<(String, Term)>; 2] {
        let places = self.setting.places.clone();
        [0, 1].map(|which| {
            places
                .iter()
                .map(|(name, t)| (name.clone(), self.of(which, *t)))
                .collect()
        })
    }
}

/// Whether two threads can come to two accesses that race.
pub(crate) fn race(
    run: &mut SymbolicRun,
    a: &AccessAt,
    b: &AccessAt,
    together: Together,
) -> PairQuestion {
    let mut two = Two::new(run, together);
    let mut common = two.apart();
    for (which, access) in [(0, a), (1, b)] {
        for fact in &access.facts {
            let fact = two.of(which, *fact);
            common.push(fact);
        }
    }
    let mut conditions = Vec::new();
    for (which, access) in [(0, a), (1, b)] {
        let guard = two.of(which, access.guard);
        conditions.push(guard);
    }
    let (x, y) = (two.of(0, a.offset), two.of(1, b.offset));
    conditions.push(overlap(two.terms, [x, y], [a.bytes, b.bytes]));
    let intervals =
        (together == Together::Block).then(|| [two.of(0, a.interval), two.of(1, b.interval)]);
    let of_group = a.of_group.is_some() || b.of_group.is_some();
    let has_copy = a.copy.is_some() || b.copy.is_some();
    let unordered = match intervals {
        Some(intervals) if of_group => Some(two.copied_by_group([a, b], intervals)),
        Some(intervals) if has_copy => Some(two.copied([a, b], intervals)),
        Some(intervals) => Some(two.unordered((a, b), intervals)),
        None => (together == Together::Thread).then(|| two.own_copy([a, b])),
    };
    let pairs = a.iterations.iter().zip(&b.iterations);
    let shared = pairs.take_while(|(x, y)| x == y);
    let shared: Vec<Term> = shared.map(|(x, _)| *x).collect();
    let iterations = shared.iter().map(|t| (two.of(0, *t), two.of(1, *t)));
    let iterations = iterations.collect();
    let places = two.places();
    let roots: Vec<Term> = intervals.iter().flatten().copied().collect();
    common.extend(grown(two.terms, two.behaviour, &roots));
    conditions.extend(&common);
    let of_tickets = two.tickets(&conditions);
    conditions.extend(of_tickets);
    PairQuestion {
        conditions,
        common,
        places,
        unordered,
        iterations,
        offset: Some(x),
    }
}

/// Whether two threads of a block can part before a barrier: one comes to it and the other does
/// not, in the same iterations.
pub(crate) fn divergence(run: &mut SymbolicRun, barrier: &BarrierAt) -> PairQuestion {
    let mut two = Two::new(run, Together::Block);
    let mut conditions = two.apart();
    let comes = two.of(0, barrier.guard);
    let (other, same) = (two.of(1, barrier.guard), barrier.iterations.clone());
    let stays = two.terms.not(other);
    conditions.extend([comes, stays]);
    if let Among::Lanes(mask) = barrier.among {
        let together = two.in_one_warp(mask);
        conditions.push(together);
    }
    let behaviour = two.behaviour;
    // Lanes that have ended are waited for where a mask names them.
    let exits = behaviour.exits.iter();
    let exits = exits.filter(|_| barrier.among == Among::Block);
    for exit in exits.filter(|exit| exit.order < barrier.order) {
        let ends = two.of(1, exit.guard);
        conditions.push(two.terms.not(ends));
    }
    // The other thread may have left the loop before that iteration.
    let own = barrier.within.iter().map(|fact| (0, *fact));
    let both = barrier
        .facts
        .iter()
        .flat_map(|fact| [(0, *fact), (1, *fact)]);
    for (which, fact) in own.chain(both) {
        let fact = two.of(which, fact);
        conditions.push(fact);
    }
    let iterations: Vec<(Term, Term)> = same
        .iter()
        .map(|t| (two.of(0, *t), two.of(1, *t)))
        .collect();
    let by: FxHashMap<Term, Term> = iterations.iter().map(|(a, b)| (*b, *a)).collect();
    two.question(conditions, &by)
}

/// Whether two threads of a block can begin one copy of their work-group with different operands.
pub(crate) fn unlike(run: &mut SymbolicRun, begin: &BeginAt) -> PairQuestion {
    let mut two = Two::new(run, Together::Block);
    let mut conditions = two.apart();
    for which in 0..2 {
        for t in begin.facts.iter().chain([&begin.guard]) {
            let t = two.of(which, *t);
            conditions.push(t);
        }
    }
    let mut differ = Vec::new();
    for t in &begin.operands {
        let same = two.are_equal([*t; 2]);
        differ.push(two.terms.not(same));
    }
    conditions.push(two.terms.or(differ));
    let iterations = begin.iterations.iter();
    let by: FxHashMap<Term, Term> = iterations.map(|t| (two.of(1, *t), two.of(0, *t))).collect();
    two.question(conditions, &by)
}

/// The runs of ones in a mask: the first and last bit of each.
fn runs(mask: u32) -> Vec<(i64, i64)> {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for bit in (0..32).filter(|bit| mask >> bit & 1 != 0) {
        match runs.last_mut() {
            Some((_, last)) if *last == bit - 1 => *last = bit,
            _ => runs.push((bit, bit)),
        }
    }
    runs
}

/// Whether accesses of these sizes at two offsets share a byte.
fn overlap(terms: &mut Terms, offsets: [Term; 2], sizes: [u32; 2]) -> Term {
    let ([x, y], [m, n]) = (offsets, sizes);
    if m == n {
        let stride = |t: Term, terms: &Terms| multiple(terms, t, m);
        if stride(x, terms) && stride(y, terms) {
            return terms.cmp(CmpOp::Eq, Ty::WORD, x, y);
        }
    }
    let (m, n) = (terms.int(i64::from(m)), terms.int(i64::from(n)));
    let (behind_x, behind_y) = (terms.plus(x, m), terms.plus(y, n));
    let first = terms.cmp(CmpOp::Lt, Ty::WORD, x, behind_y);
    let second = terms.cmp(CmpOp::Lt, Ty::WORD, y, behind_x);
    terms.and(vec![first, second])
}

/// Whether a term is seen to be a multiple of a number.
fn multiple(terms: &Terms, t: Term, of: u32) -> bool {
    use program::BinOp;
    let of64 = i64::from(of);
    match *terms.node(t) {
        Node::Const(v) => v % of64 == 0,
        Node::Bin(BinOp::Add | BinOp::Sub, _, a, b) => {
            multiple(terms, a, of) && multiple(terms, b, of)
        }
        Node::Bin(BinOp::Mul, _, a, b) => multiple(terms, a, of) || multiple(terms, b, of),
        Node::Bin(BinOp::Shl, _, _, b) => {
            of.is_power_of_two()
                && terms
                    .constant(b)
                    .is_some_and(|n| n >= i64::from(of.trailing_zeros()) && n < 63)
        }
        Node::Ite(_, a, b) => multiple(terms, a, of) && multiple(terms, b, of),
        _ => false,
    }
}

/// What growing counters have to do with each other: in a later iteration there is at least as much
/// as behind an earlier one.
fn grown(terms: &mut Terms, behaviour: &Behaviour, roots: &[Term]) -> Vec<Term> {
    let mut all = Vec::new();
    for growth in &behaviour.growths {
        let mut uses: Vec<(Term, Vec<Term>)> = Vec::new();
        for (t, id) in terms.symbols_in(roots) {
            if let Node::Symbol(_, args) = terms.node(t)
                && id == growth.counter
            {
                uses.push((t, args.clone()));
            }
        }
        for (early, args) in &uses {
            let by: FxHashMap<Term, Term> = growth
                .iterations
                .iter()
                .copied()
                .zip(args.iter().copied())
                .collect();
            let (from, by) = (
                terms.replace(growth.from, &by),
                terms.replace(growth.by, &by),
            );
            let Some((k, outer)) = args.split_last() else {
                continue;
            };
            all.push(terms.cmp(CmpOp::Ge, Ty::WORD, *early, from));
            let zero = terms.int(0);
            let later = terms.cmp(CmpOp::Ne, Ty::WORD, *k, zero);
            let same = terms.cmp(CmpOp::Eq, Ty::WORD, *early, from);
            all.push(terms.or(vec![later, same]));
            let behind = terms.plus(*early, by);
            for (late, others) in uses.iter().filter(|(t, _)| t != early) {
                let Some((l, others)) = others.split_last() else {
                    continue;
                };
                let mut ways = vec![terms.cmp(CmpOp::Ge, Ty::WORD, *k, *l)];
                for (x, y) in outer.iter().zip(others) {
                    ways.push(terms.cmp(CmpOp::Ne, Ty::WORD, *x, *y));
                }
                ways.push(terms.cmp(CmpOp::Le, Ty::WORD, behind, *late));
                all.push(terms.or(ways));
            }
        }
    }
    all
}
