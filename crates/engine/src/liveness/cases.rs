//! Splits the liveness of a host program into cases: the points that are never reached because
//! threads before them never end.
//!
//! A command ends when its threads do, and a call is issued when its thread reaches it. Each such
//! point that threads may fail to reach is a [`Brink`]. Each set of them gives a case: exactly
//! these points are never reached, and the points that they hold up. The commands behind them never
//! run. The program without those waits only for points that it reaches, so it is a program like
//! any other.
//!
//! # Invariants
//! - Every execution that never ends belongs to one case. Every execution of a case's program that
//!   satisfies the case's conditions on threads is one of the original program.
//! - If a flush is never issued, implementations may or may not start the commands that it would
//!   submit: both are cases.
//!
//! # Sources
//! - See [`program::host`]; OpenCL API specification, *Flush and Finish*; clGetEventInfo, for the
//!   status of an event.

use std::collections::BTreeSet;
use std::ops::Range;

use super::beside::ConcurrentCommands;
use super::brink::{Brink, StatusQuery, Stretch, end_of, host};
use super::held;
use super::sure;
use program::host::{
    CommandId, HandleKind, HostOp, HostProgram, LaunchGraph, LaunchNode, NeverComplete,
    PartialLaunch, QueryId, QuerySubject as About, Ref,
};
use program::{Op, Program, ThreadId};
use verdict::hang::Wait;
use verdict::{Reason, ThreadEnd};

/// The largest number of sets of points to try.
const MAX_SETS: usize = 128;

/// A set of points that are never reached, with everything that they hold up.
pub(super) struct LivenessCase {
    /// The program without the parts that never run.
    pub(super) program: Program,
    /// The program with those parts.
    pub(super) whole: Program,
    /// In each of these lists, at least one thread never leaves its part.
    pub(super) stay: Vec<Vec<Stretch>>,
    /// Every thread leaves these parts.
    pub(super) leave: Vec<Stretch>,
    /// The ends of the threads that never run, or not to their end.
    pub(super) held: Vec<(ThreadId, ThreadEnd)>,
    /// The waits of queries for work that never completes, by thread and instruction.
    pub(super) polls: Vec<(ThreadId, usize, Wait)>,
    /// The commands that may run at the same time as threads of a kernel that may not end.
    pub(super) beside: ConcurrentCommands,
}

impl LivenessCase {
    /// The only case of a program without waits for threads that may not end.
    pub(super) fn only(program: &Program) -> LivenessCase {
        let (stay, leave, held, polls) = Default::default();
        let beside = ConcurrentCommands::Nothing;
        LivenessCase {
            program: program.clone(),
            whole: program.clone(),
            stay,
            leave,
            held,
            polls,
            beside,
        }
    }
}

/// The cases of a program with these orders of calls, which all end if their threads do. `stops`:
/// the scheduler may stop threads of kernels.
///
/// # Errors
/// Why they are unknown.
pub(super) fn cases(
    program: &Program,
    ways: &[LaunchGraph],
    stops: bool,
) -> Result<Vec<LivenessCase>, Reason> {
    let unset = unset(program);
    let mut polled = program.clone();
    let submitted = NeverComplete {
        lowest: 2,
        stays: 2,
    };
    never_complete(&mut polled, unset.iter().map(|a| (a.of, submitted)));
    let mut all = of_polled(&polled, ways, stops)?;
    let polls = held::unset(program, &unset);
    all.iter_mut()
        .for_each(|case| case.polls.extend(polls.clone()));
    Ok(all)
}

/// The queries about user events that no call sets.
fn unset(program: &Program) -> Vec<StatusQuery> {
    let host = host(program);
    queries(program).filter(|a| is_unset(host, a.of)).collect()
}

/// Whether a query is about a user event that no call sets.
fn is_unset(host: &HostProgram, q: QueryId) -> bool {
    match host.query(q).of {
        About::Event(Ref::Handle(h)) => {
            host.handle(h).kind == HandleKind::User
                && host.calls.iter().all(|c| c.op != HostOp::SetUser(h))
        }
        _ => false,
    }
}

/// The queries of all threads, except those that never return "complete".
fn queries(program: &Program) -> impl Iterator<Item = StatusQuery> + '_ {
    let host = host(program);
    program.instrs().filter_map(|(thread, at, i)| match i.op {
        Op::Status { of, .. } if host.query(of).never.is_none() => {
            Some(StatusQuery { thread, at, of })
        }
        _ => None,
    })
}

/// Makes these queries never return "complete".
fn never_complete(program: &mut Program, asked: impl Iterator<Item = (QueryId, NeverComplete)>) {
    let host = program.host.as_deref_mut().expect("a host program");
    asked.for_each(|(of, never)| host.queries[usize::from(of.0)].never = Some(never));
}

/// The statuses of a query's subject if some points are never reached.
fn statuses(program: &Program, partial: &PartialLaunch, of: QueryId) -> NeverComplete {
    let (lowest, stays) = match host(program).query(of).of {
        About::Event(Ref::Command(c)) if partial.never.contains(&LaunchNode::Start(c)) => {
            let submitted = !partial.graph.unsubmitted.contains(&c);
            (2, if submitted { 2 } else { 3 })
        }
        About::Event(Ref::Handle(h)) if host(program).handle(h).kind == HandleKind::User => (2, 2),
        _ => (1, 1),
    };
    NeverComplete { lowest, stays }
}

/// The cases of a program without queries about unset user events.
fn of_polled(
    program: &Program,
    ways: &[LaunchGraph],
    stops: bool,
) -> Result<Vec<LivenessCase>, Reason> {
    let sure = sure::all(program);
    let mut all = if sure.iter().all(|sure| *sure) {
        Vec::new()
    } else {
        brinks(program, &sure, stops)
    };
    let none = BTreeSet::new();
    let beside = ways
        .iter()
        .map(|way| ConcurrentCommands::of(program, &sure, way, &none))
        .max();
    let beside = beside.unwrap_or(ConcurrentCommands::Nothing);
    if all.is_empty() {
        return Ok(vec![LivenessCase {
            beside,
            ..LivenessCase::only(program)
        }]);
    }
    let unsubmitted = unsubmitted(program, &all)?;
    if unsubmitted.is_empty() && !records_compete(program) {
        all.retain(|b| ways.iter().any(|way| matters(program, way, b)));
    }
    all.extend(unsubmitted.into_iter().map(|c| Brink {
        node: LaunchNode::Start(c),
        behind: Vec::new(),
    }));
    let leave = all.iter().flat_map(|b| b.behind.clone()).collect();
    let none = LivenessCase {
        leave,
        beside,
        ..LivenessCase::only(program)
    };
    let mut search = CaseSearch {
        program,
        sure: &sure,
        all: &all,
        sets: 0,
        found: vec![none],
    };
    for first in 0..all.len() {
        search.from(&mut vec![first])?;
    }
    Ok(search.found)
}

/// The points of a program that threads may fail to reach.
fn brinks(program: &Program, sure: &[bool], stops: bool) -> Vec<Brink> {
    let host = host(program);
    let mut all: Vec<Brink> = Vec::new();
    let may_stop =
        |t: ThreadId| stops && !program.thread(t).place.host && !program.thread(t).code.is_empty();
    for t in program
        .thread_ids()
        .filter(|t| may_stop(*t) || !sure[usize::from(t.0)])
    {
        let code = &program.thread(t).code;
        let mut start = 0;
        for end in 0..=code.len() {
            let node = match code.get(end).map(|i| LaunchNode::of(&i.op)) {
                Some(Some((before, _))) => Some(before),
                Some(None) => continue,
                None => host.command_of(t).map(|c| end_of(program, c, t)),
            };
            let range = start..end;
            start = end + 1;
            let Some(node) = node.filter(|_| may_stop(t) || may_stay(program, t, &range)) else {
                continue;
            };
            let stretch = Stretch { thread: t, range };
            match all.iter_mut().find(|b| b.node == node) {
                Some(brink) => brink.behind.push(stretch),
                None => all.push(Brink {
                    node,
                    behind: vec![stretch],
                }),
            }
        }
    }
    all
}

/// Whether a thread may loop or wait without end in that part.
fn may_stay(program: &Program, t: ThreadId, range: &Range<usize>) -> bool {
    let code = &program.thread(t).code;
    range
        .clone()
        .any(|at| code[at].op.jumps_back(at) || code[at].op.barrier().is_some())
}

/// The commands that implementations need not start if threads do not end, because a flush is not
/// issued.
fn unsubmitted(program: &Program, brinks: &[Brink]) -> Result<Vec<CommandId>, Reason> {
    let mut stops: Vec<LaunchNode> = brinks.iter().map(|b| b.node).collect();
    let mut found: BTreeSet<CommandId> = BTreeSet::new();
    loop {
        let before = found.len();
        for partial in
            PartialLaunch::all(program, &stops).map_err(|why| Reason::Calls(why.to_string()))?
        {
            found.extend(partial.idle(program));
        }
        if found.len() == before {
            return Ok(found.into_iter().collect());
        }
        stops.extend(found.iter().map(|c| LaunchNode::Start(*c)));
    }
}

/// Whether several threads record an event: the event then depends on which of them reach that
/// call.
fn records_compete(program: &Program) -> bool {
    let host = host(program);
    host.calls.iter().any(|c| recorders(host, &c.op) > 1)
}

/// The number of threads that record the event of a call.
fn recorders(host: &HostProgram, h: &HostOp) -> usize {
    let same = host.calls.iter().filter(|c| match (&c.op, h) {
        (HostOp::Record(a, _), HostOp::Record(b, _)) => a == b,
        _ => false,
    });
    same.map(|c| c.thread).collect::<BTreeSet<_>>().len()
}

/// Whether another thread with an effect waits for the point, or a query covers it.
fn matters(program: &Program, way: &LaunchGraph, brink: &Brink) -> bool {
    let graph = LaunchGraph::untimed(program, &way.order);
    let never = graph.never(&[brink.node]);
    let waits = program
        .thread_ids()
        .filter(|u| !is_own(program, brink, *u))
        .any(|u| {
            let code = &program.thread(u).code;
            code[held::runs(program, &never, u)..]
                .iter()
                .any(|i| i.op.is_visible())
        });
    waits || asked(program, &graph, &never).map_or(true, |asked| !asked.is_empty())
}

/// Whether a thread is one of those that reach the point.
fn is_own(program: &Program, brink: &Brink, u: ThreadId) -> bool {
    match brink.node {
        LaunchNode::End(c) | LaunchNode::GroupEnd(c, _) => host(program).command_of(u) == Some(c),
        _ => brink.behind.iter().any(|s| s.thread == u),
    }
}

/// The queries about work that never completes.
///
/// # Errors
/// Whether the work can complete depends on the time of the query.
fn asked(
    program: &Program,
    graph: &LaunchGraph,
    never: &BTreeSet<LaunchNode>,
) -> Result<Vec<StatusQuery>, Reason> {
    let mut found = Vec::new();
    for query in queries(program) {
        let views: Vec<bool> = (0..graph.views_of(query.of))
            .map(|v| never.contains(&LaunchNode::Query(query.of, v)))
            .collect();
        match (views.contains(&true), views.contains(&false)) {
            (true, true) => {
                return Err(Reason::Calls(
                    "liveness of host programs with a query about work that may never complete, \
                    depending on the time of the query"
                        .into(),
                ));
            }
            (true, false) => found.push(query),
            _ => {}
        }
    }
    Ok(found)
}

/// A search over sets of points, none of which holds up another.
struct CaseSearch<'a> {
    program: &'a Program,
    sure: &'a [bool],
    all: &'a [Brink],
    sets: usize,
    found: Vec<LivenessCase>,
}

impl CaseSearch<'_> {
    /// Handles a set, and all sets that begin with it.
    fn from(&mut self, set: &mut Vec<usize>) -> Result<(), Reason> {
        self.sets += 1;
        if self.sets > MAX_SETS {
            return Err(Reason::Calls(format!(
                "liveness of host programs with more than {MAX_SETS} sets of commands and calls \
                that may wait forever for threads"
            )));
        }
        let stops: Vec<LaunchNode> = set.iter().map(|&i| self.all[i].node).collect();
        let partials = PartialLaunch::all(self.program, &stops)
            .map_err(|why| Reason::Calls(why.to_string()))?;
        let mut ways: Vec<(RemainingProgram, LivenessCase)> = Vec::new();
        for partial in partials.iter().filter(|p| self.is_minimal(set, p)) {
            let kind = self.kind(set, partial)?;
            match ways.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, case)) => {
                    orders(&mut case.program).push(partial.graph.order.clone());
                    case.beside = case.beside.max(ConcurrentCommands::of(
                        self.program,
                        self.sure,
                        &partial.graph,
                        &partial.never,
                    ));
                }
                None => {
                    let case = self.case(set, partial, &kind);
                    ways.push((kind, case));
                }
            }
        }
        self.found.extend(ways.into_iter().map(|(_, case)| case));
        for next in set[set.len() - 1] + 1..self.all.len() {
            // A point that the others hold up adds nothing.
            if partials
                .iter()
                .any(|p| !p.never.contains(&self.all[next].node))
            {
                set.push(next);
                self.from(set)?;
                set.pop();
            }
        }
        Ok(())
    }

    /// Whether the others hold up no point of the set, and no point is the start of a submitted
    /// command.
    fn is_minimal(&self, set: &[usize], partial: &PartialLaunch) -> bool {
        set.iter().all(|&i| {
            let others: Vec<LaunchNode> = set
                .iter()
                .filter(|&&j| j != i)
                .map(|&j| self.all[j].node)
                .collect();
            let held = partial.graph.never(&others).contains(&self.all[i].node);
            let idle = match self.all[i].node {
                LaunchNode::Start(c) => partial.graph.unsubmitted.contains(&c),
                _ => true,
            };
            !held && idle
        })
    }

    /// The program that an order of calls leaves if exactly these points are never reached.
    fn kind(&self, set: &[usize], partial: &PartialLaunch) -> Result<RemainingProgram, Reason> {
        let (program, never) = (self.program, &partial.never);
        let reached = self
            .all
            .iter()
            .enumerate()
            .filter(|(i, b)| !set.contains(i) && !never.contains(&b.node));
        let asked = asked(program, &partial.graph, never)?;
        Ok(RemainingProgram {
            runs: program
                .thread_ids()
                .map(|t| held::runs(program, never, t))
                .collect(),
            statuses: asked
                .iter()
                .map(|a| statuses(program, partial, a.of))
                .collect(),
            asked,
            leave: reached.flat_map(|(_, b)| b.behind.clone()).collect(),
        })
    }

    fn case(
        &self,
        set: &[usize],
        partial: &PartialLaunch,
        kind: &RemainingProgram,
    ) -> LivenessCase {
        let brinks: Vec<&Brink> = set.iter().map(|&i| &self.all[i]).collect();
        let mut whole = self.program.clone();
        let statuses = kind.statuses.iter().copied();
        never_complete(&mut whole, kind.asked.iter().map(|a| a.of).zip(statuses));
        let mut program = whole.clone();
        for (thread, &runs) in program.threads.iter_mut().zip(&kind.runs) {
            thread.code.truncate(runs);
        }
        orders(&mut program).push(partial.graph.order.clone());
        let stay = brinks
            .iter()
            .map(|b| b.behind.clone())
            .filter(|b| !b.is_empty())
            .collect();
        let held = held::held(self.program, partial, &brinks);
        let polls = held::polls(self.program, partial, &kind.asked);
        let beside =
            ConcurrentCommands::of(self.program, self.sure, &partial.graph, &partial.never);
        LivenessCase {
            program,
            whole,
            stay,
            leave: kind.leave.clone(),
            held,
            polls,
            beside,
        }
    }
}

/// The part of a program that an order of calls leaves if some points are never reached.
#[derive(PartialEq, Eq)]
struct RemainingProgram {
    /// By thread: the number of its instructions that run.
    runs: Vec<usize>,
    asked: Vec<StatusQuery>,
    /// By query: its answers.
    statuses: Vec<NeverComplete>,
    /// The parts that every thread leaves, because a point behind them is reached.
    leave: Vec<Stretch>,
}

/// The orders in which the calls of a program are issued.
fn orders(program: &mut Program) -> &mut Vec<Vec<program::host::CallId>> {
    let host = program.host.as_deref_mut().expect("a host program");
    host.orders.get_or_insert_default()
}
