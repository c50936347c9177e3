//! Orders events by the answers of queries, in one launch graph.
//!
//! In CUDA, the answer "all complete" orders the queried work before everything behind the query.
//! That includes work that the host thread launches later. So several answers in a row may order a
//! pair of events. The answer "not complete" orders nothing, but it is impossible once all is
//! complete.
//!
//! The queried work may depend on the time of the query. Each query executes in one of its
//! [`View`](program::host::View)s, which is a choice like the answer. [`ViewAnswer`] is an answer
//! in one view.
//!
//! # Invariants
//! - An answer is a choice under the guard of its query. The choices match an execution in time.
//!   Work that was seen complete is never incomplete later, and complete work has ended. Views of a
//!   thread come in the order of the calls.
//! - Answers of OpenCL order no memory. Each one says that a command has or has not been
//!   submitted, started and completed, and no two of these facts contradict the launch graph.
//!
//! # Sources
//! - See [`program::host::Query`]; CUDA Programming Guide, *Asynchronous Concurrent Execution*:
//!   work need not start before the host waits or polls, but it starts in the end.
//! - OpenCL API specification, *Execution Model*: the states of a command follow one another.
//!
//! # Where we differ
//! - Answers of OpenCL in different threads are compared only where calls order the two queries.

use std::collections::{BTreeMap, BTreeSet};

use crate::skeleton::pool::Cond;
use crate::skeleton::unrolling::unrolled::{QueryAnswer, Unrolling};
use program::host::{
    HandleKind, HostProgram, LaunchGraph, LaunchNode, NeverComplete, QueryId, QuerySubject, Ref,
};
use program::{Program, ThreadId};

/// An answer in one view of its query.
#[derive(Clone, Copy)]
struct ViewAnswer {
    /// Index of the answer.
    answer: usize,
    /// Index of the view among all views.
    view: usize,
    /// The condition that the query executes in that view.
    asked: Cond,
    /// The condition that it also answers "all complete".
    complete: Cond,
    /// The condition that it answers "not complete".
    open: Cond,
    /// The condition that it answers "not started", and "not submitted".
    waiting: Cond,
    queued: Cond,
}

/// Answers in one launch graph, and the operations of all events.
pub(crate) struct Answers<'a> {
    host: &'a HostProgram,
    program: &'a Program,
    out: &'a mut Unrolling,
    way: &'a LaunchGraph,
    /// Events of threads, and the operation of each.
    events: &'a [usize],
    operations: &'a [(ThreadId, usize)],
    answers: Vec<QueryAnswer>,
    /// All views: the query of each, and its number there.
    views: Vec<(QueryId, usize)>,
    said: Vec<ViewAnswer>,
    /// By answer and operation: whether the operation comes before the answer, or after. It does so
    /// in another thread, by the order of calls, or in the answer's thread.
    earlier: Vec<Vec<bool>>,
    later: Vec<Vec<bool>>,
    /// By answer and answer: whether the second comes after the first in the same way.
    follows: Vec<Vec<bool>>,
    /// By view and operation or answer: whether it comes after the completion of all work that the
    /// view queries.
    after: Vec<Vec<bool>>,
    after_answers: Vec<Vec<bool>>,
    /// By view and view: whether "all complete" in the second view covers the work of the first.
    covered: Vec<Vec<bool>>,
    /// Each query executes in exactly one view.
    choices: Vec<Cond>,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(
        program: &'a Program,
        out: &'a mut Unrolling,
        way: &'a LaunchGraph,
        events: &'a [usize],
        operations: &'a [(ThreadId, usize)],
    ) -> Answers<'a> {
        let host = program.host.as_deref().expect("a host program");
        let answers = out.answers.clone();
        let asked: Vec<(ThreadId, usize)> = answers.iter().map(|a| (a.thread, a.instr)).collect();
        let both: Vec<(ThreadId, usize)> = operations.iter().chain(&asked).copied().collect();
        let ordered = way.ordered(&both, true);
        let n = operations.len();
        let later = (0..answers.len())
            .map(|i| {
                let own = |b: usize| {
                    operations[b].0 == answers[i].thread && events[b] >= answers[i].events
                };
                (0..n).map(|b| own(b) || ordered[n + i][b]).collect()
            })
            .collect();
        let earlier = (0..answers.len())
            .map(|i| {
                let own = |a: usize| {
                    operations[a].0 == answers[i].thread && events[a] < answers[i].events
                };
                (0..n).map(|a| own(a) || ordered[a][n + i]).collect()
            })
            .collect();
        let follows = (0..answers.len())
            .map(|i| {
                (0..answers.len())
                    .map(|j| {
                        (answers[i].thread == answers[j].thread && i < j) || ordered[n + i][n + j]
                    })
                    .collect()
            })
            .collect();
        let views = way.views();
        let mut after = way.after_views(&both);
        let after_answers = after.iter_mut().map(|row| row.split_off(n)).collect();
        let (mut said, mut choices) = (Vec::new(), Vec::new());
        for (i, answer) in answers.iter().enumerate() {
            let own: Vec<usize> = (0..views.len())
                .filter(|&v| views[v].0 == answer.query)
                .collect();
            let taken: Vec<Cond> = match own.len() {
                1 => vec![Cond::TRUE],
                n => (0..n).map(|_| out.pool.fresh_choice()).collect(),
            };
            if own.len() > 1 {
                choices.push(out.pool.exactly(1, &taken));
            }
            for (view, taken) in own.into_iter().zip(taken) {
                let asked = out.pool.and(answer.guard, taken);
                let not_open = out.pool.not(answer.open);
                let complete = out.pool.and(asked, not_open);
                let [open, waiting, queued] = [answer.open, answer.waiting, answer.queued]
                    .map(|state| out.pool.and(asked, state));
                said.push(ViewAnswer {
                    answer: i,
                    view,
                    asked,
                    complete,
                    open,
                    waiting,
                    queued,
                });
            }
        }
        Answers {
            host,
            program,
            out,
            events,
            operations,
            answers,
            said,
            earlier,
            later,
            follows,
            after,
            after_answers,
            covered: way.covered(),
            views,
            way,
            choices,
        }
    }

    /// Indices of the answers that order events.
    fn ordering(&self) -> Vec<usize> {
        (0..self.said.len())
            .filter(|&i| {
                let (query, _) = self.views[self.said[i].view];
                let query = self.host.query(query);
                query.never.is_none() && query.orders(self.host)
            })
            .collect()
    }

    /// By two views: the condition that answers and calls order everything before an answer in the
    /// first view before an answer in the second. `fine` means fine-grained memory.
    fn chains(&mut self, fine: bool) -> Vec<Vec<Cond>> {
        let asked: Vec<(ThreadId, usize)> =
            self.answers.iter().map(|a| (a.thread, a.instr)).collect();
        let before = self.way.before_views(&asked, fine);
        let views = self.views.len();
        let mut chains = vec![vec![Cond::FALSE; views]; views];
        for i in self.ordering() {
            let said = self.said[i];
            for to in (0..views).filter(|&to| before[to][said.answer]) {
                chains[said.view][to] = self.out.pool.or(chains[said.view][to], said.complete);
            }
        }
        // Chains through other views, by Warshall's algorithm.
        for middle in 0..views {
            for from in 0..views {
                for to in 0..views {
                    let both = self.out.pool.and(chains[from][middle], chains[middle][to]);
                    chains[from][to] = self.out.pool.or(chains[from][to], both);
                }
            }
        }
        chains
    }

    /// Adds to a table of pairs of operations the conditions under which answers order them.
    pub(crate) fn order(&mut self, fine: bool, table: &mut [Vec<Cond>]) {
        let views = self.views.len();
        let before = self.way.before_views(self.operations, fine);
        let chains = self.chains(fine);
        for (a, row) in table.iter_mut().enumerate() {
            // By view: the condition under which the whole operation precedes the completion of its
            // work.
            let known: Vec<Cond> = (0..views)
                .map(|v| {
                    let direct = Cond::constant(before[v][a]);
                    let through = (0..views).filter(|&u| before[u][a]).map(|u| chains[u][v]);
                    through.fold(direct, |any, c| self.out.pool.or(any, c))
                })
                .collect();
            for i in self.ordering() {
                let said = self.said[i];
                let cond = self.out.pool.and(said.complete, known[said.view]);
                if cond == Cond::FALSE {
                    continue;
                }
                for (b, slot) in row.iter_mut().enumerate() {
                    if self.later[said.answer][b] && self.operations[a].0 != self.operations[b].0 {
                        *slot = self.out.pool.or(*slot, cond);
                    }
                }
            }
        }
    }

    /// The other answers that report the work of answer `i` complete, each with its condition.
    fn told_by(&mut self, i: usize, chains: &[Vec<Cond>]) -> Vec<(usize, Cond)> {
        let (views, asks) = (self.views.len(), self.said[i].view);
        let mut told = Vec::new();
        for other in self.ordering() {
            let said = self.said[other];
            let direct = Cond::constant(self.covered[asks][said.view]);
            let through = (0..views)
                .filter(|&v| self.covered[asks][v])
                .map(|v| chains[v][said.view]);
            let covers = through.fold(direct, |any, c| self.out.pool.or(any, c));
            let cond = self.out.pool.and(covers, said.complete);
            if cond != Cond::FALSE {
                told.push((other, cond));
            }
        }
        told
    }

    /// Adds to a table the pairs of operations that come in that order in time. Either an answer
    /// "not complete" comes between them, or the queried work changes before or after them.
    pub(crate) fn times(&mut self, table: &mut [Vec<Cond>]) {
        let chains = self.chains(true);
        for i in self.ordering() {
            let said = self.said[i];
            let (query, number) = self.views[said.view];
            let changes = self.way.view(query, number);
            for &call in &changes.before {
                let earlier = self.way.before_call(call, self.operations);
                self.put(
                    table,
                    said.asked,
                    &earlier,
                    &self.later[said.answer].clone(),
                );
            }
            for &call in &changes.after {
                let later = self.way.after_call(call, self.operations);
                self.put(
                    table,
                    said.asked,
                    &self.earlier[said.answer].clone(),
                    &later,
                );
            }
            if self.after_answers[said.view][said.answer] {
                // Such an answer is impossible: see the constraints.
                continue;
            }
            let told = self.told_by(i, &chains);
            for b in 0..self.operations.len() {
                let seen = told
                    .iter()
                    .filter(|(other, _)| self.later[self.said[*other].answer][b])
                    .map(|t| t.1);
                let start = Cond::constant(self.after[said.view][b]);
                let complete = seen.fold(start, |any, c| self.out.pool.or(any, c));
                let cond = self.out.pool.and(said.open, complete);
                let only: Vec<bool> = (0..self.operations.len()).map(|other| other == b).collect();
                self.put(table, cond, &self.earlier[said.answer].clone(), &only);
            }
        }
    }

    /// Adds pairs of operations to a table, under a condition.
    fn put(&mut self, table: &mut [Vec<Cond>], cond: Cond, before: &[bool], after: &[bool]) {
        if cond == Cond::FALSE {
            return;
        }
        for (a, row) in table.iter_mut().enumerate().filter(|(a, _)| before[*a]) {
            for (b, slot) in row.iter_mut().enumerate().filter(|(b, _)| after[*b]) {
                if self.events[a] != self.events[b] {
                    *slot = self.out.pool.or(*slot, cond);
                }
            }
        }
    }

    /// The constraints of all answers.
    pub(crate) fn constraints(&mut self) -> Vec<Cond> {
        let mut all = self.choices.clone();
        let chains = self.chains(true);
        let ordering = self.ordering();
        for i in 0..self.said.len() {
            let said = self.said[i];
            let (query, number) = self.views[said.view];
            if let Some(never) = self.host.query(query).never {
                all.push(self.stays(said, never));
                continue;
            }
            let (threads, ever) = self.way.awaited_by(self.program, query, number);
            let ended = threads
                .iter()
                .map(|t| self.out.endings[usize::from(t.0)].done);
            let ended = ended.fold(Cond::constant(ever), |all, done| {
                self.out.pool.and(all, done)
            });
            all.push(self.out.pool.implies(said.complete, ended));
            // Work that has ended is complete in the end.
            let in_vain = self
                .out
                .pool
                .and(self.answers[said.answer].for_ever, said.open);
            let in_vain = self.out.pool.and(in_vain, ended);
            all.push(self.out.pool.not(in_vain));
            if !ordering.contains(&i) {
                continue;
            }
            let start = Cond::constant(self.after_answers[said.view][said.answer]);
            let told = self.told_by(i, &chains);
            let before = told
                .iter()
                .filter(|(other, _)| self.follows[self.said[*other].answer][said.answer])
                .map(|t| t.1);
            let known = before.fold(start, |any, c| self.out.pool.or(any, c));
            let against = self.out.pool.and(said.open, known);
            all.push(self.out.pool.not(against));
        }
        self.states(&mut all);
        // A thread queries in the order of its code, and the calls of other threads come in their
        // order.
        for (i, j) in (0..self.said.len()).flat_map(|i| (0..self.said.len()).map(move |j| (i, j))) {
            let (one, other) = (&self.said[i], &self.said[j]);
            let (x, y) = (one.answer, other.answer);
            if x < y && self.answers[x].thread == self.answers[y].thread {
                let (from, to) = (self.views[one.view], self.views[other.view]);
                if self.way.comes_later(self.host, from, to) {
                    let both = self.out.pool.and(one.asked, other.asked);
                    all.push(self.out.pool.not(both));
                }
            }
        }
        // Answers that wait for each other in a cycle are impossible.
        all.extend(
            chains
                .iter()
                .enumerate()
                .map(|(v, row)| self.out.pool.not(row[v])),
        );
        all
    }

    /// An answer that repeats without end is a status in which the subject may stay.
    fn stays(&mut self, said: ViewAnswer, never: NeverComplete) -> Cond {
        let leaves = match never.stays {
            1 => said.waiting,
            2 => said.queued,
            _ => Cond::FALSE,
        };
        let for_ever = self.answers[said.answer].for_ever;
        let both = self.out.pool.and(for_ever, leaves);
        self.out.pool.not(both)
    }

    /// Adds the constraints of answers about events of OpenCL: what one answer says has happened
    /// before it. No such point comes after another one that a later answer says has not.
    fn states(&mut self, all: &mut Vec<Cond>) {
        let said = self.said.clone();
        let points: Vec<Vec<StatePoint>> = said.iter().map(|s| self.points(*s)).collect();
        if points.iter().all(Vec::is_empty) {
            return;
        }
        let sites: Vec<(LaunchNode, LaunchNode)> = (self.answers.iter())
            .map(|a| self.way.around((a.thread, a.instr)))
            .collect();
        let after: Vec<BTreeSet<LaunchNode>> = sites
            .iter()
            .map(|(_, next)| self.way.never(&[*next]))
            .collect();
        // By point: the points behind it.
        let behind: BTreeMap<LaunchNode, BTreeSet<LaunchNode>> = (points.iter().flatten())
            .map(|point| (point.node, self.way.never(&[point.node])))
            .collect();
        for (i, of_first) in points.iter().enumerate() {
            let first = self.said[i].answer;
            // By a single answer: the launch graph may place a point before or after the query.
            for point in of_first {
                if after[first].contains(&point.node) {
                    let no = self.out.pool.not(point.past);
                    all.push(no);
                }
                if behind[&point.node].contains(&sites[first].0) {
                    let no = self.out.pool.not(point.ahead);
                    all.push(no);
                }
            }
            for (j, of_second) in points.iter().enumerate() {
                let second = self.said[j].answer;
                let own = self.answers[first].thread == self.answers[second].thread;
                let follows = match own {
                    true => first <= second,
                    false => after[first].contains(&sites[second].0),
                };
                if !follows {
                    continue;
                }
                self.submission(i, j, all);
                for (x, y) in of_first
                    .iter()
                    .flat_map(|x| of_second.iter().map(move |y| (x, y)))
                {
                    if behind[&y.node].contains(&x.node) {
                        let both = self.out.pool.and(x.past, y.ahead);
                        all.push(self.out.pool.not(both));
                    }
                }
            }
        }
    }

    /// Adds the constraint that a command which was submitted in one answer is not queued in a
    /// later one. The launch graph has no point for it.
    fn submission(&mut self, one: usize, other: usize, all: &mut Vec<Cond>) {
        let [first, second] = [self.said[one], self.said[other]];
        let of = |said: ViewAnswer| self.host.query(self.views[said.view].0).of;
        if of(first) == of(second) {
            let not = self.out.pool.not(first.queued);
            let past = self.out.pool.and(first.asked, not);
            let both = self.out.pool.and(past, second.queued);
            all.push(self.out.pool.not(both));
        }
    }

    /// The points about which an answer speaks; none in CUDA.
    fn points(&mut self, said: ViewAnswer) -> Vec<StatePoint> {
        let (query, _) = self.views[said.view];
        let pool = &mut self.out.pool;
        let mut point = |node: LaunchNode, ahead: Cond| {
            let not = pool.not(ahead);
            let past = pool.and(said.asked, not);
            StatePoint { node, past, ahead }
        };
        match self.host.query(query).of {
            QuerySubject::Event(Ref::Command(c)) => vec![
                point(LaunchNode::Start(c), said.waiting),
                point(LaunchNode::Done(c), said.open),
            ],
            QuerySubject::Event(Ref::Handle(h)) if self.host.handle(h).kind == HandleKind::User => {
                vec![point(LaunchNode::User(h), said.open)]
            }
            _ => Vec::new(),
        }
    }
}

/// A point in the life of a command or a user event, about which an answer speaks.
struct StatePoint {
    node: LaunchNode,
    /// The condition that the point comes before the query.
    past: Cond,
    /// The condition that it comes after the query.
    ahead: Cond,
}
