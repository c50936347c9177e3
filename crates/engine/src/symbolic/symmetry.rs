//! Finds threads that can be exchanged, so that one arrangement of them represents all.
//!
//! Two threads are *alike* if exchanging their events, one by one in their order, maps the whole
//! task to itself. The task consists of guards, addresses and values of all events, and the memory
//! at addresses. It also has base sets and relations, constraints, barrier order, and the final
//! values with their condition. A model's definitions do not depend on the numbers of events. So
//! such an exchange maps an execution that satisfies its axioms to another one that does. Exchanges
//! of pairs generate all permutations of a class of threads that are alike.
//!
//! So take a query that has an answer, with requirements that the exchange preserves. It then also
//! has an answer in which the threads of a class are sorted by a [`SortKey`] that moves with them.
//! The key is the order of their writes to one location, or the values of their first reads. The
//! order may be partial, but has a linear extension. The search covers only such answers
//! ([`Encoding::sorted`]). A list of final states is then the permutations of the states found
//! ([`permuted`]).
//!
//! # Invariants
//! - Only the task decides whether threads are alike ([`classes`]), not the text of the program.
//!   Threads that cannot be mapped for any reason are not alike.
//! - The classes of a query are parts of those of the task.

use std::collections::BTreeSet;
use std::convert::Infallible;

use rustc_hash::{FxHashMap, FxHashSet};

use super::encode::Encoding;
use super::leaves::holds;
use crate::facts::Facts;
use crate::initial;
use crate::query::{Deadline, FinalState, Query};
use crate::skeleton::EdgeKind;
use crate::skeleton::base::Base;
use crate::skeleton::event::Event;
use crate::skeleton::images::Values;
use crate::skeleton::pool::{CondAtom, Term, TermPool};
use crate::skeleton::{Cond, Skeleton, TermId};
use cat::algebra::gates::Lit;
use cat::model::ir::FreeShape;
use cat::rel::{EventId, Rel};
use program::litmus::{Atom as PropAtom, ConditionTerm, Observable, Prop};
use program::{BinOp, CmpOp, ThreadId, Ty};
use verdict::Reason;

/// Programs with more events have no classes, because the search for them takes time.
const MOST_EVENTS: usize = 600;
/// The largest number of final states after permutation.
const MOST_STATES: usize = 2_000_000;
/// The number of reads of a thread that are compared.
const MOST_READS: usize = 8;

/// Threads that are alike, each with its events in order.
pub(super) struct SymmetryClass {
    threads: Vec<(ThreadId, Vec<usize>)>,
}

/// A property of each thread that moves with it, to sort the threads of a class by.
enum SortKey {
    /// The places of writes, by thread, in an order of the model.
    Order(usize, Vec<usize>),
    /// The values of reads, by thread.
    Values(Vec<Vec<usize>>),
}

/// An exchange of events, extended to terms and conditions.
struct Exchange<'p> {
    pool: &'p mut TermPool,
    events: &'p [Event],
    to: Vec<usize>,
    terms: FxHashMap<TermId, TermId>,
    conds: FxHashMap<Cond, Cond>,
}

impl Exchange<'_> {
    fn term(&mut self, of: TermId) -> TermId {
        if let Some(&known) = self.terms.get(&of) {
            return known;
        }
        let made = match self.pool.term(of) {
            Term::Const(_) => of,
            Term::Read(event) => {
                let to = self.to[event.index()];
                self.pool.read(EventId::new(to), self.events[to].ty)
            }
            Term::Bin(op, ty, a, b) => {
                let (a, b) = (self.term(a), self.term(b));
                self.pool.bin(op, ty, a, b)
            }
            Term::Cast(ty, a) => {
                let a = self.term(a);
                self.pool.cast(ty, a)
            }
            Term::Fused(fused, three) => {
                let three = three.map(|t| self.term(t));
                self.pool.fused(fused, three)
            }
            Term::Ite(c, a, b) => {
                let (c, a, b) = (self.cond(c), self.term(a), self.term(b));
                self.pool.ite(c, a, b)
            }
        };
        self.terms.insert(of, made);
        made
    }

    fn cond(&mut self, of: Cond) -> Cond {
        let Some((atom, low, high)) = self.pool.decision(of) else {
            return of;
        };
        if let Some(&known) = self.conds.get(&of) {
            return known;
        }
        let decided = match self.pool.atom(atom) {
            CondAtom::Eq(ty, a, b) => {
                let (a, b) = (self.term(a), self.term(b));
                self.pool.cmp(CmpOp::Eq, ty, a, b)
            }
            CondAtom::Lt(ty, a, b) => {
                let (a, b) = (self.term(a), self.term(b));
                self.pool.cmp(CmpOp::Lt, ty, a, b)
            }
            // A choice stays unchanged, so conditions on it must stay, too.
            CondAtom::Choice(_) => self.pool.of_atom(atom),
        };
        let (low, high) = (self.cond(low), self.cond(high));
        let made = self.pool.ite_cond(decided, high, low);
        self.conds.insert(of, made);
        made
    }

    /// Whether it maps guards, addresses and values of all events to those of their images. Any
    /// event may depend on any read.
    fn keeps_events(&mut self) -> bool {
        let events = self.events;
        events.iter().enumerate().all(|(e, event)| {
            let image = &events[self.to[e]];
            self.cond(event.guard) == image.guard
                && event.addr.map(|t| self.term(t)) == image.addr
                && event.value.map(|t| self.term(t)) == image.value
        })
    }

    /// Whether it maps the base sets and relations of a task to themselves. They can differ only at
    /// moved events.
    fn keeps_bases(&mut self, facts: &Facts<'_>, moved: &[usize]) -> bool {
        facts.bases.values().all(|(_, base)| match base {
            Base::Set(set) => moved.iter().all(|&e| set.has(e) == set.has(self.to[e])),
            Base::Rel(rel) => keeps_pairs(moved, &self.to, &rel.fixed) && self.keeps(&rel.open),
        })
    }

    /// Whether it maps barrier order and the constraints of a program to themselves.
    fn keeps_constraints(&mut self, sk: &Skeleton) -> bool {
        let order: Vec<(usize, usize, Cond)> = sk
            .edges
            .of(EdgeKind::BarrierOrder)
            .iter()
            .map(|&(x, y, c)| (x.index(), y.index(), c))
            .collect();
        let constraints: FxHashSet<Cond> = sk.constraints.iter().copied().collect();
        self.keeps(&order)
            && constraints
                .iter()
                .all(|&c| constraints.contains(&self.cond(c)))
    }

    /// Whether it maps the final values of two threads to each other, and keeps the conditions that
    /// they exist.
    fn keeps_final_values(&mut self, facts: &Facts<'_>, a: ThreadId, b: ThreadId) -> bool {
        let sk = &facts.sk;
        let [of_a, of_b] = [a, b].map(|thread| usize::from(thread.0));
        let types = [a, b].map(|thread| {
            let regs = &sk.program.thread(thread).regs;
            regs.iter().map(|r| (&r.name, r.ty)).collect::<Vec<_>>()
        });
        types[0] == types[1]
            && sk.final_regs[of_a]
                .iter()
                .zip(&sk.final_regs[of_b])
                .all(|(&x, &y)| self.term(x) == y && self.term(y) == x)
            && self.cond(sk.done[of_a]) == sk.done[of_b]
            && self.cond(sk.complete) == sk.complete
            && self.cond(facts.fault) == facts.fault
    }

    /// Whether the exchange maps these pairs of events, with their conditions, to each other.
    fn keeps(&mut self, pairs: &[(usize, usize, Cond)]) -> bool {
        let all: FxHashSet<(usize, usize, Cond)> = pairs.iter().copied().collect();
        all.iter()
            .all(|&(a, b, c)| all.contains(&(self.to[a], self.to[b], self.cond(c))))
    }
}

/// The classes of a task.
pub(super) fn classes(facts: &Facts<'_>) -> Vec<SymmetryClass> {
    let sk = &facts.sk;
    if sk.len() > MOST_EVENTS
        || sk.program.host.is_some()
        || sk.progress.is_some()
        || !sk.phases.is_empty()
    {
        return Vec::new();
    }
    let mut events: Vec<Vec<usize>> = vec![Vec::new(); sk.program.threads.len()];
    for (e, event) in sk.events.iter().enumerate() {
        if let Some(ThreadId(thread)) = event.thread {
            events[usize::from(thread)].push(e);
        }
    }
    let mut pool = None;
    let mut classes: Vec<SymmetryClass> = Vec::new();
    for (thread, mine) in events.into_iter().enumerate() {
        let thread = ThreadId(thread as u16);
        let class = classes.iter().position(|class| {
            let (first, theirs) = &class.threads[0];
            looks_alike(facts, theirs, &mine) && {
                let pool = pool.get_or_insert_with(|| sk.pool.clone());
                alike(
                    facts,
                    pool,
                    (*first, theirs.as_slice()),
                    (thread, mine.as_slice()),
                )
            }
        });
        match class {
            Some(class) => classes[class].threads.push((thread, mine)),
            None => classes.push(SymmetryClass {
                threads: vec![(thread, mine)],
            }),
        }
    }
    classes.retain(|class| class.threads.len() > 1);
    classes
}

/// Whether a detailed comparison is worthwhile.
fn looks_alike(facts: &Facts<'_>, a: &[usize], b: &[usize]) -> bool {
    let sk = &facts.sk;
    let kind = |e: usize| {
        let Event {
            kind,
            tags,
            scope,
            ty,
            part,
            parts,
            ..
        } = &sk.events[e];
        let address = sk.events[e]
            .addr
            .and_then(|address| sk.pool.as_const(address));
        (*kind, *tags, *scope, *ty, *part, *parts, address)
    };
    a.len() == b.len() && !a.is_empty() && a.iter().zip(b).all(|(&a, &b)| kind(a) == kind(b))
}

/// Whether exchanging two threads maps the task to itself.
fn alike(
    facts: &Facts<'_>,
    pool: &mut TermPool,
    a: (ThreadId, &[usize]),
    b: (ThreadId, &[usize]),
) -> bool {
    let sk = &facts.sk;
    let mut to: Vec<usize> = (0..sk.len()).collect();
    for (&x, &y) in a.1.iter().zip(b.1) {
        (to[x], to[y]) = (y, x);
    }
    let moved: Vec<usize> = a.1.iter().chain(b.1).copied().collect();
    if !keeps_pairs(&moved, &to, sk.program_order()) {
        return false;
    }
    let mut exchange = Exchange {
        pool,
        events: &sk.events,
        to,
        terms: FxHashMap::default(),
        conds: FxHashMap::default(),
    };
    exchange.keeps_events()
        && names_same_memory(facts, &moved, &exchange.to)
        && keeps_rmw(sk, &exchange.to)
        && exchange.keeps_bases(facts, &moved)
        && exchange.keeps_constraints(sk)
        && exchange.keeps_final_values(facts, a.0, b.0)
}

/// Whether an exchange of events maps a relation to itself, which can fail only at moved events.
fn keeps_pairs(moved: &[usize], to: &[usize], rel: &Rel) -> bool {
    moved.iter().all(|&e| {
        (0..to.len()).all(|f| {
            rel.has(e, f) == rel.has(to[e], to[f]) && rel.has(f, e) == rel.has(to[f], to[e])
        })
    })
}

/// Whether moved events and their images may access the same memory. It may depend on the thread,
/// which has private memory.
fn names_same_memory(facts: &Facts<'_>, moved: &[usize], to: &[usize]) -> bool {
    let sk = &facts.sk;
    moved.iter().all(|&e| {
        let image = to[e];
        let cells: BTreeSet<_> = facts.domains.cells[e].iter().collect();
        cells == facts.domains.cells[image].iter().collect()
            && facts.domains.may_fault[e] == facts.domains.may_fault[image]
            && sk.events[e].addr.is_none_or(|address| {
                facts
                    .domains
                    .addresses(address)
                    .iter()
                    .all(|&at| sk.cell(e, at) == sk.cell(image, at))
            })
    })
}

/// Whether an exchange of events maps the halves of each atomic to those of an atomic.
fn keeps_rmw(sk: &Skeleton, to: &[usize]) -> bool {
    let rmw: FxHashSet<(usize, usize)> =
        sk.rmw.iter().map(|(r, w)| (r.index(), w.index())).collect();
    rmw.iter().all(|&(r, w)| rmw.contains(&(to[r], to[w])))
}

/// Whether the domains of values and addresses are the same for two threads' events.
fn have_same_values(facts: &Facts<'_>, a: &[usize], b: &[usize]) -> bool {
    a.iter().zip(b).all(|(&a, &b)| {
        let (a, b) = (&facts.sk.events[a], &facts.sk.events[b]);
        listed(facts, a.value) == listed(facts, b.value)
            && listed(facts, a.addr) == listed(facts, b.addr)
    })
}

/// The listed values of a term.
fn listed<'t>(facts: &'t Facts<'_>, term: Option<TermId>) -> Option<Option<&'t Values>> {
    term.map(|term| facts.domains.of(term))
}

/// The parts of a task's classes that a query treats alike. Exchanging two threads of a part
/// preserves the query's requirements on final values; with `states`, it also preserves the
/// observables.
pub(super) fn of_query(
    facts: &Facts<'_>,
    classes: &[SymmetryClass],
    query: &Query<'_>,
    states: bool,
) -> Vec<SymmetryClass> {
    if !query.require.is_const()
        || query
            .flags
            .iter()
            .flatten()
            .any(|flag: &usize| initial::is_ours(facts.task.model, *flag))
    {
        return Vec::new();
    }
    // If values may be missing, an execution may map to one with missing values.
    let misses_values = facts.misses_values(&query.axioms);
    let props: Vec<(String, bool)> = query
        .props
        .iter()
        .map(|&(p, truth)| (written(p, &|o| o), truth))
        .collect();
    let mut mentioned = BTreeSet::new();
    for (prop, _) in &query.props {
        prop.observables(&mut |o| {
            mentioned.extend(match o {
                Observable::Reg(thread, _) => Some(thread),
                Observable::Mem { viewer, .. } => viewer,
            });
        });
    }
    let mut parts: Vec<SymmetryClass> = Vec::new();
    for class in classes {
        let first = parts.len();
        for (thread, events) in &class.threads {
            let part = parts[first..].iter().position(|part| {
                let (other, theirs) = &part.threads[0];
                (!states || shows_alike(facts, *other, *thread))
                    && demands_alike(query, &props, &mentioned, *other, *thread)
                    && (!misses_values || have_same_values(facts, theirs, events))
            });
            let one = (*thread, events.clone());
            match part {
                Some(part) => parts[first + part].threads.push(one),
                None => parts.push(SymmetryClass { threads: vec![one] }),
            }
        }
    }
    parts.retain(|part| part.threads.len() > 1);
    parts
}

/// A thread after two threads are exchanged.
fn exchanged(a: ThreadId, b: ThreadId, thread: ThreadId) -> ThreadId {
    if thread == a {
        b
    } else if thread == b {
        a
    } else {
        thread
    }
}

/// An observable after two threads are exchanged.
fn exchanged_observable(a: ThreadId, b: ThreadId, o: Observable) -> Observable {
    match o {
        Observable::Reg(thread, reg) => Observable::Reg(exchanged(a, b, thread), reg),
        Observable::Mem { loc, index, viewer } => Observable::Mem {
            loc,
            index,
            viewer: viewer.map(|thread| exchanged(a, b, thread)),
        },
    }
}

/// Whether final states show the same observables after two threads are exchanged.
fn shows_alike(facts: &Facts<'_>, a: ThreadId, b: ThreadId) -> bool {
    facts.observed.iter().all(|&o| match o {
        Observable::Reg(..) => facts.observed.contains(&exchanged_observable(a, b, o)),
        // A location that each thread or block has privately.
        Observable::Mem { viewer, .. } => {
            viewer.is_none_or(|viewer| exchanged(a, b, viewer) == viewer)
        }
    })
}

/// Whether a query demands the same of final values after two threads are exchanged. `props` are
/// its propositions as text, and `mentioned` the threads in them.
fn demands_alike(
    query: &Query<'_>,
    props: &[(String, bool)],
    mentioned: &BTreeSet<ThreadId>,
    a: ThreadId,
    b: ThreadId,
) -> bool {
    let is_mentioned = mentioned.contains(&a) || mentioned.contains(&b);
    !is_mentioned
        || query
            .props
            .iter()
            .map(|&(p, truth)| (written(p, &|o| exchanged_observable(a, b, o)), truth))
            .eq(props.iter().cloned())
}

/// A proposition as text that does not depend on the order of its parts.
fn written(prop: &Prop, observable: &dyn Fn(Observable) -> Observable) -> String {
    match prop {
        Prop::And(parts) => format!("and({})", sorted(observable, parts)),
        Prop::Or(parts) => format!("or({})", sorted(observable, parts)),
        Prop::Not(part) => format!("not({})", written(part, observable)),
        Prop::Cmp(op, ty, a, b) => {
            let (mut a, mut b) = (side(observable, a), side(observable, b));
            if matches!(op, CmpOp::Eq | CmpOp::Ne) && b < a {
                std::mem::swap(&mut a, &mut b);
            }
            format!("{op:?}({ty:?}, {a}, {b})")
        }
    }
}

/// A calculated side of a comparison as text.
fn side(observable: &dyn Fn(Observable) -> Observable, of: &ConditionTerm) -> String {
    let combined = &mut |op: BinOp, mut a: String, mut b: String| {
        if op.is_free_of_order() && b < a {
            std::mem::swap(&mut a, &mut b);
        }
        format!("{op:?}({a}, {b})")
    };
    of.fold(&mut |a| Ok::<_, Infallible>(atom(observable, a)), combined)
        .unwrap_or_else(|never| match never {})
}

/// A side of a comparison as text.
fn atom(observable: &dyn Fn(Observable) -> Observable, a: &PropAtom) -> String {
    match *a {
        PropAtom::Observable(o) => format!("{:?}", observable(o)),
        ref other => format!("{other:?}"),
    }
}

/// Propositions as text, sorted.
fn sorted(observable: &dyn Fn(Observable) -> Observable, parts: &[Prop]) -> String {
    let mut parts: Vec<String> = parts.iter().map(|p| written(p, observable)).collect();
    parts.sort_unstable();
    parts.join(", ")
}

impl Encoding<'_> {
    /// The sort key for a class. An order is preferred, because it makes the end of a search
    /// quickest. But without an axiom that `ties` reads to orders, the search would repeat all read
    /// values under each order.
    fn key(&self, class: &SymmetryClass, ties: bool) -> Option<SortKey> {
        let columns: Vec<Vec<usize>> = (0..class.threads[0].1.len())
            .map(|k| column(class, k))
            .collect();
        ties.then(|| self.key_by_order(&columns, true))
            .flatten()
            .or_else(|| self.key_by_values(class, &columns))
            .or_else(|| self.key_by_order(&columns, true))
            .or_else(|| self.key_by_order(&columns, false))
    }

    /// A key by an order of writes that surely execute, or of others. Prefers the last write, which
    /// is behind loops, and a value that depends on reads: other values determine little else.
    fn key_by_order(&self, columns: &[Vec<usize>], sure: bool) -> Option<SortKey> {
        let found: Vec<&Vec<usize>> = columns
            .iter()
            .rev()
            .filter(|column| self.must(column[0]) == sure)
            .collect();
        found
            .iter()
            .filter(|column| Self::is_computed(&self.facts.sk, column))
            .chain(&found)
            .find_map(|column| Some(SortKey::Order(self.order_of(column)?, column.to_vec())))
    }

    /// An order of the model that can relate any two of these writes.
    fn order_of(&self, column: &[usize]) -> Option<usize> {
        let facts = &self.facts;
        (0..facts.task.model.free.len())
            .filter(|&f| facts.task.model.free[f].shape == FreeShape::Order)
            .find(|&f| {
                let related = &self.inner.leaves.free[f];
                facts.sk.events[column[0]].is_write()
                    && column.iter().all(|&a| {
                        column
                            .iter()
                            .all(|&b| a == b || related.contains_key(&(a as u32, b as u32)))
                    })
            })
    }

    /// A key by the values of the first reads that surely execute.
    fn key_by_values(&self, class: &SymmetryClass, columns: &[Vec<usize>]) -> Option<SortKey> {
        let reads: Vec<&Vec<usize>> = columns
            .iter()
            .filter(|column| self.facts.sk.events[column[0]].is_read() && self.must(column[0]))
            .take(MOST_READS)
            .collect();
        (!reads.is_empty()).then(|| {
            SortKey::Values(
                (0..class.threads.len())
                    .map(|i| reads.iter().map(|column| column[i]).collect())
                    .collect(),
            )
        })
    }

    /// Whether an event surely executes.
    fn must(&self, e: usize) -> bool {
        self.start.algebra.must.has(e)
    }

    /// Whether the value of these writes depends on reads.
    fn is_computed(sk: &Skeleton, column: &[usize]) -> bool {
        sk.events[column[0]]
            .value
            .is_some_and(|value| sk.pool.as_const(value).is_none())
    }

    /// Literals that the threads of each class come in the order of their key, for a query with
    /// these axioms.
    pub(super) fn sorted(&mut self, classes: &[SymmetryClass], axioms: &[bool]) -> Vec<Lit> {
        let ties = axioms.contains(&true);
        let mut lits = Vec::new();
        for class in classes {
            match self.key(class, ties) {
                Some(SortKey::Order(f, writes)) => {
                    for (i, &a) in writes.iter().enumerate() {
                        lits.extend(
                            writes[i + 1..]
                                .iter()
                                .map(|&b| !self.inner.leaves.free[f][&(b as u32, a as u32)]),
                        );
                    }
                }
                Some(SortKey::Values(threads)) => {
                    for pair in threads.windows(2) {
                        let lit = self.at_most(&pair[0], &pair[1]);
                        lits.push(lit);
                    }
                }
                None => {}
            }
        }
        lits
    }

    /// The literal that the values of `these` reads are lexicographically at most those of `those`.
    fn at_most(&mut self, these: &[usize], those: &[usize]) -> Lit {
        let terms: Vec<(TermId, TermId)> = these
            .iter()
            .zip(those)
            .map(|(&a, &b)| (self.value_of_read(a), self.value_of_read(b)))
            .collect();
        let mut rest = Lit::TRUE;
        for (a, b) in terms.into_iter().rev() {
            let (a, b) = (self.value(a), self.value(b));
            let less = holds(&mut self.gates, CmpOp::Lt, Ty::WORD, &a, &b);
            let equal = holds(&mut self.gates, CmpOp::Eq, Ty::WORD, &a, &b);
            let go_on = self.gates.and(equal, rest);
            rest = self.gates.any(vec![less, go_on]);
        }
        rest
    }

    /// The value of a read.
    fn value_of_read(&self, e: usize) -> TermId {
        self.facts.sk.events[e].value.expect("reads have values")
    }
}

/// The events of number `k` of all threads of a class.
fn column(class: &SymmetryClass, k: usize) -> Vec<usize> {
    class
        .threads
        .iter()
        .map(|(_, events)| events[k])
        .collect::<Vec<usize>>()
}

/// The final states that the found ones represent.
///
/// # Errors
/// There are too many, or time ran out.
pub(super) fn permuted(
    facts: &Facts<'_>,
    classes: &[SymmetryClass],
    found: &BTreeSet<FinalState>,
    deadline: Deadline,
) -> Result<BTreeSet<FinalState>, Reason> {
    let mut states = found.clone();
    for class in classes {
        // By thread: its positions in a state, in the order of its registers.
        let columns: Vec<Vec<usize>> = class
            .threads
            .iter()
            .map(|(thread, _)| {
                let mut shown: Vec<_> = (facts.observed.iter().enumerate())
                    .filter_map(|(at, &o)| match o {
                        Observable::Reg(of, reg) if of == *thread => Some((reg, at)),
                        _ => None,
                    })
                    .collect();
                shown.sort_unstable();
                shown.into_iter().map(|(_, at)| at).collect()
            })
            .collect();
        let mut all = BTreeSet::new();
        for state in states {
            let mut parts: Vec<Vec<i64>> = columns
                .iter()
                .map(|of| of.iter().map(|&at| state[at]).collect())
                .collect();
            parts.sort_unstable();
            loop {
                if deadline.passed() {
                    return Err(Reason::Time);
                }
                if all.len() > MOST_STATES {
                    return Err(Reason::TooManyOutcomes(MOST_STATES));
                }
                let mut image = state.clone();
                for (of, part) in columns.iter().zip(&parts) {
                    of.iter()
                        .zip(part)
                        .for_each(|(&at, &value)| image[at] = value);
                }
                // A known image already came with all of its permutations.
                if !all.insert(image) && parts.is_sorted() {
                    break;
                }
                if !next_permutation(&mut parts) {
                    break;
                }
            }
        }
        states = all;
    }
    Ok(states)
}

/// Moves to the next permutation in lexicographic order, and returns whether there is one. From the
/// sorted one on, this visits each permutation once.
fn next_permutation<T: Ord>(of: &mut [T]) -> bool {
    let Some(pivot) = (1..of.len())
        .rev()
        .find(|&i| of[i - 1] < of[i])
        .map(|i| i - 1)
    else {
        return false;
    };
    let next = (pivot + 1..of.len())
        .rev()
        .find(|&i| of[pivot] < of[i])
        .expect("the one behind it is larger");
    of.swap(pivot, next);
    of[pivot + 1..].reverse();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{facts, holds, parsed, shipped};

    /// The sizes of the classes: of the task, of the reachability query, and of the same query over
    /// all candidates without axioms.
    fn sizes_of_all(threads: &[(u32, &str)], condition: &str) -> [Vec<usize>; 3] {
        let mut text =
            format!("name = \"T\"\ncondition = '{condition}'\nmemory = {{ x = 0, y = 0 }}\n");
        for (cta, code) in threads {
            text += &format!("[[thread]]\ncta = {cta}\ncode = \"{code}\"\n");
        }
        let test = parsed(&text);
        let model = shipped("ptx");
        let facts = facts(&test, &model);
        let query = holds(&test, &model);
        let candidates = Query {
            axioms: vec![false; model.axioms.len()],
            ..query.clone()
        };
        let of =
            |classes: &[SymmetryClass]| classes.iter().map(|class| class.threads.len()).collect();
        let classes = classes(&facts);
        let of_query = |query: &Query<'_>| of(&super::of_query(&facts, &classes, query, false));
        [of(&classes), of_query(&query), of_query(&candidates)]
    }

    fn sizes(threads: &[(u32, &str)], condition: &str) -> (Vec<usize>, Vec<usize>) {
        let [of_task, of_query, _] = sizes_of_all(threads, condition);
        (of_task, of_query)
    }

    const ADD: &str = "atom.relaxed.gpu.add.u32 r0, [x], 1";
    const READ: &str = "ld.relaxed.gpu r0, x";

    #[test]
    fn threads_are_alike_by_what_they_do_and_where() {
        assert_eq!(sizes(&[(0, ADD), (1, ADD), (2, ADD)], "x == 3").0, [3]);
        assert_eq!(sizes(&[(0, ADD), (0, ADD), (0, ADD)], "x == 3").0, [3]);
        // The third thread is not in the block of the other two.
        assert_eq!(sizes(&[(0, ADD), (0, ADD), (1, ADD)], "x == 3").0, [2]);
        assert_eq!(
            sizes(&[(0, ADD), (1, READ), (2, ADD), (3, READ)], "x == 2").0,
            [2, 2]
        );
        let other = "atom.relaxed.gpu.add.u32 r0, [y], 1";
        assert_eq!(
            sizes(
                &[(0, ADD), (1, other), (2, "st.relaxed.gpu x, 1")],
                "x == 2"
            )
            .0,
            [] as [usize; 0]
        );
    }

    #[test]
    fn candidates_are_alike_if_their_values_are() {
        // Without the axioms, additions continue without end, and the lists of their values end
        // somewhere: at the same place for all threads.
        assert_eq!(
            sizes_of_all(&[(0, ADD), (1, ADD), (2, ADD)], "x == 3"),
            [[3], [3], [3]]
        );
        // The third thread adds to the location that the first two read.
        let twice = "ld.relaxed.gpu r0, x; st.relaxed.gpu y, r0";
        assert_eq!(
            sizes_of_all(&[(0, twice), (1, twice), (2, ADD)], "y == 1"),
            [[2], [2], [2]]
        );
    }

    #[test]
    fn a_question_tells_threads_apart() {
        let adds = [(0, ADD), (1, ADD), (2, ADD)];
        assert_eq!(sizes(&adds, "P2:r0 == 1").1, [2]);
        assert_eq!(sizes(&adds, "P0:r0 == 1 && P2:r0 == 1").1, [2]);
        assert_eq!(
            sizes(&adds, "P0:r0 == 1 && P1:r0 == 1 && P2:r0 == 1").1,
            [3]
        );
        assert_eq!(sizes(&adds, "P0:r0 == P1:r0 && x == 3").1, [2]);
        assert_eq!(
            sizes(&adds, "P0:r0 == 0 && P1:r0 == 1 && P2:r0 == 2").1,
            [] as [usize; 0]
        );
    }

    #[test]
    fn each_arrangement_comes_once() {
        let mut of = [1, 1, 2, 3];
        let mut seen = BTreeSet::from([of]);
        while next_permutation(&mut of) {
            assert!(seen.insert(of));
        }
        assert_eq!(seen.len(), 12);
    }
}
