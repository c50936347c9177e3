//! The cases into which the liveness of a host program falls: which of its points are never reached
//! because threads before them never end.
//!
//! A command ends when its threads do, and a call is issued when its thread comes to it. Each such
//! point that threads may fail to come to is a [`Brink`]. For each set of them there is a case:
//! that just these are never reached, and nothing that they do not hold up. What they hold up then
//! never runs, and the program without it waits for nothing that may not come to pass: it is a
//! program like any other.
//!
//! # Invariants
//! - Every execution that never ends belongs to one case, and every one of a case's program that
//!   keeps what the case says of threads is one of the program.
//! - Where a flush is never issued, implementations may or may not start what it would submit: both
//!   are cases.
//!
//! # Sources
//! - See [`program::host`]; OpenCL API specification, *Flush and Finish*; clGetEventInfo, for the
//!   status of an event.

use std::collections::BTreeSet;
use std::ops::Range;

use super::beside::Beside;
use super::held;
use super::sure;
use program::host::{
    Asked as About, ChildStart, CommandId, HandleKind, HostOp, LaunchGraph, Node, Origin, Partial,
    QueryId, Ref,
};
use program::{Expr, Op, Program, ThreadId};
use verdict::hang::Wait;
use verdict::{Reason, ThreadEnd};

/// More sets of points than this are too many.
const MAX_SETS: usize = 128;

/// A part of a thread's code in which it may loop or wait for ever, without a call in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The thread.
    pub thread: ThreadId,
    /// Its instructions.
    pub range: Range<usize>,
}

/// A point that may never be reached, although everything before it that calls order comes to pass.
#[derive(Clone, Debug)]
pub(super) struct Brink {
    pub(super) node: Node,
    /// It is reached just if no thread stays in one of these; none for a command that nobody need
    /// start.
    pub(super) behind: Vec<Stretch>,
}

/// That just some points are never reached, and what they hold up.
pub(super) struct Case {
    /// The program, without what never runs.
    pub(super) program: Program,
    /// The program with it.
    pub(super) whole: Program,
    /// Of each of these, at least one thread never leaves its part.
    pub(super) stay: Vec<Vec<Stretch>>,
    /// Of these, every thread leaves its part.
    pub(super) leave: Vec<Stretch>,
    /// How those stand that never run, or not to their end.
    pub(super) held: Vec<(ThreadId, ThreadEnd)>,
    /// What those wait for who ask about what never completes, by thread and instruction.
    pub(super) polls: Vec<(ThreadId, usize, Wait)>,
    /// What may run at the same time as threads of a kernel that may not end.
    pub(super) beside: Beside,
}

/// A query about what never completes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) thread: ThreadId,
    /// Its instruction.
    pub(super) at: usize,
    pub(super) of: QueryId,
}

impl Asked {
    /// The point that brings what the query would tell, if it is asked after all calls.
    pub(super) fn awaits(&self, program: &Program, graph: &LaunchGraph) -> Node {
        let host = host(program);
        match host.query(self.of).of {
            About::Event(Ref::Command(c)) => Node::Done(c),
            About::Event(Ref::Handle(h)) if host.handle(h).kind == HandleKind::User => {
                Node::User(h)
            }
            _ => Node::Query(self.of, graph.views_of(self.of).saturating_sub(1)),
        }
    }
}

impl Case {
    /// The only one of a program in which nothing waits for what may not end.
    pub(super) fn only(program: &Program) -> Case {
        let (stay, leave, held, polls) = Default::default();
        let beside = Beside::Nothing;
        Case {
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

/// The cases of a program whose calls can be issued in these ways, which all end where threads do.
/// `stops`: threads of kernels may be stopped.
///
/// # Errors
/// Why nobody knows them.
pub(super) fn cases(
    program: &Program,
    ways: &[LaunchGraph],
    stops: bool,
) -> Result<Vec<Case>, Reason> {
    let unset = unset(program);
    let mut polled = program.clone();
    never_complete(&mut polled, &unset);
    let mut all = of_polled(&polled, ways, stops)?;
    let polls = held::unset(program, &unset);
    all.iter_mut()
        .for_each(|case| case.polls.extend(polls.clone()));
    Ok(all)
}

/// The queries about user events that no call sets.
fn unset(program: &Program) -> Vec<Asked> {
    let host = host(program);
    let never = |q: QueryId| match host.query(q).of {
        About::Event(Ref::Handle(h)) => {
            host.handle(h).kind == HandleKind::User
                && host.calls.iter().all(|c| c.op != HostOp::SetUser(h))
        }
        _ => false,
    };
    queries(program).filter(|a| never(a.of)).collect()
}

/// The queries of all threads.
fn queries(program: &Program) -> impl Iterator<Item = Asked> + '_ {
    program.instrs().filter_map(|(thread, at, i)| match i.op {
        Op::Status { of, .. } => Some(Asked { thread, at, of }),
        _ => None,
    })
}

/// Has these queries tell that what they ask for is not complete.
fn never_complete(program: &mut Program, asked: &[Asked]) {
    for Asked { thread, at, .. } in asked {
        let instr = &mut program.threads[usize::from(thread.0)].code[*at];
        if let Op::Status { dst, .. } = instr.op {
            instr.op = Op::Assign {
                dst,
                value: Expr::Const(1),
            };
        }
    }
}

/// The cases of a program that has no query about what is never set.
fn of_polled(program: &Program, ways: &[LaunchGraph], stops: bool) -> Result<Vec<Case>, Reason> {
    let sure = sure::all(program);
    let mut all = if sure.iter().all(|sure| *sure) {
        Vec::new()
    } else {
        brinks(program, &sure, stops)
    };
    let none = BTreeSet::new();
    let beside = ways
        .iter()
        .map(|way| Beside::of((program, &sure), way, &none))
        .max();
    let beside = beside.unwrap_or(Beside::Nothing);
    if all.is_empty() {
        return Ok(vec![Case {
            beside,
            ..Case::only(program)
        }]);
    }
    let unsubmitted = unsubmitted(program, &all)?;
    if unsubmitted.is_empty() && !records_compete(program) {
        all.retain(|b| ways.iter().any(|way| matters(program, way, b)));
    }
    all.extend(unsubmitted.into_iter().map(|c| Brink {
        node: Node::Start(c),
        behind: Vec::new(),
    }));
    let leave = all.iter().flat_map(|b| b.behind.clone()).collect();
    let none = Case {
        leave,
        beside,
        ..Case::only(program)
    };
    let mut search = Search {
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

fn host(program: &Program) -> &program::host::HostProgram {
    program.host.as_deref().expect("a host program")
}

/// The points of a program that threads may fail to come to.
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
            let node = match code.get(end).map(|i| Node::of(&i.op)) {
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

/// What the end of a command's thread brings on: the end of its work-group, if something waits for
/// that, else of the command.
pub(super) fn end_of(program: &Program, command: CommandId, t: ThreadId) -> Node {
    let host = host(program);
    let group = |t: ThreadId| {
        let of = host.command(command);
        of.threads
            .iter()
            .position(|u| *u == t)
            .map(|at| of.groups[at])
    };
    let waits = |c: CommandId| match host.command(c).origin {
        Origin::Device {
            parent,
            thread,
            flag: ChildStart::WaitWorkGroup,
        } => parent == command && group(thread) == group(t),
        _ => false,
    };
    match group(t) {
        Some(group) if host.command_ids().any(waits) => Node::GroupEnd(command, group),
        _ => Node::End(command),
    }
}

/// Whether a thread may loop or wait for ever there.
fn may_stay(program: &Program, t: ThreadId, range: &Range<usize>) -> bool {
    let code = &program.thread(t).code;
    range
        .clone()
        .any(|at| code[at].op.jumps_back(at) || code[at].op.barrier().is_some())
}

/// The commands that nobody need start if threads do not end, as a flush is not issued.
fn unsubmitted(program: &Program, brinks: &[Brink]) -> Result<Vec<CommandId>, Reason> {
    let mut stops: Vec<Node> = brinks.iter().map(|b| b.node).collect();
    let mut found: BTreeSet<CommandId> = BTreeSet::new();
    loop {
        let before = found.len();
        for partial in
            Partial::all(program, &stops).map_err(|why| Reason::Calls(why.to_string()))?
        {
            found.extend(partial.idle(program));
        }
        if found.len() == before {
            return Ok(found.into_iter().collect());
        }
        stops.extend(found.iter().map(|c| Node::Start(*c)));
    }
}

/// Whether several threads record an event: what it stands for depends on which of them come to
/// that.
fn records_compete(program: &Program) -> bool {
    let host = host(program);
    let recorders = |h: &HostOp| {
        let same = host.calls.iter().filter(|c| match (&c.op, h) {
            (HostOp::Record(a, _), HostOp::Record(b, _)) => a == b,
            _ => false,
        });
        same.map(|c| c.thread).collect::<BTreeSet<_>>().len()
    };
    host.calls.iter().any(|c| recorders(&c.op) > 1)
}

/// Whether anything else that does something has to wait for a point, or asks about what does.
fn matters(program: &Program, way: &LaunchGraph, brink: &Brink) -> bool {
    let graph = LaunchGraph::untimed(program, &way.order);
    let never = graph.never(&[brink.node]);
    let own = |u: ThreadId| match brink.node {
        Node::End(c) | Node::GroupEnd(c, _) => host(program).command_of(u) == Some(c),
        _ => brink.behind.iter().any(|s| s.thread == u),
    };
    let waits = program.thread_ids().filter(|u| !own(*u)).any(|u| {
        let code = &program.thread(u).code;
        code[held::runs(program, &never, u)..]
            .iter()
            .any(|i| i.op.is_visible())
    });
    waits || asked(program, &graph, &never).map_or(true, |asked| !asked.is_empty())
}

/// The queries about what is never complete.
///
/// # Errors
/// If it depends on when one is asked.
fn asked(
    program: &Program,
    graph: &LaunchGraph,
    never: &BTreeSet<Node>,
) -> Result<Vec<Asked>, Reason> {
    let mut found = Vec::new();
    for query in queries(program) {
        let views: Vec<bool> = (0..graph.views_of(query.of))
            .map(|v| never.contains(&Node::Query(query.of, v)))
            .collect();
        match (views.contains(&true), views.contains(&false)) {
            (true, true) => {
                return Err(Reason::Calls("liveness of host programs in which it depends on when a query is asked whether what it asks about can ever be complete, as threads may loop or wait for ever".into()));
            }
            (true, false) => found.push(query),
            _ => {}
        }
    }
    Ok(found)
}

/// The search for sets of points, of which none holds up another.
struct Search<'a> {
    program: &'a Program,
    sure: &'a [bool],
    all: &'a [Brink],
    sets: usize,
    found: Vec<Case>,
}

impl Search<'_> {
    /// Takes a set, and all that begin with it.
    fn from(&mut self, set: &mut Vec<usize>) -> Result<(), Reason> {
        self.sets += 1;
        if self.sets > MAX_SETS {
            return Err(Reason::Calls(format!(
                "liveness of host programs in which more than {MAX_SETS} sets of commands and calls may wait for ever for threads that may loop or wait"
            )));
        }
        let stops: Vec<Node> = set.iter().map(|&i| self.all[i].node).collect();
        let partials =
            Partial::all(self.program, &stops).map_err(|why| Reason::Calls(why.to_string()))?;
        let mut ways: Vec<(Kind, Case)> = Vec::new();
        for partial in partials.iter().filter(|p| self.is_minimal(set, p)) {
            let kind = self.kind(set, partial)?;
            match ways.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, case)) => {
                    orders(&mut case.program).push(partial.graph.order.clone());
                    case.beside = case.beside.max(Beside::of(
                        (self.program, self.sure),
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

    /// Whether each point of a set is one that the others do not hold up, and none is of a command
    /// that is submitted.
    fn is_minimal(&self, set: &[usize], partial: &Partial) -> bool {
        set.iter().all(|&i| {
            let others: Vec<Node> = set
                .iter()
                .filter(|&&j| j != i)
                .map(|&j| self.all[j].node)
                .collect();
            let held = partial.graph.never(&others).contains(&self.all[i].node);
            let idle = match self.all[i].node {
                Node::Start(c) => partial.graph.unsubmitted.contains(&c),
                _ => true,
            };
            !held && idle
        })
    }

    /// What an order of calls makes of the program if just these points are never reached.
    fn kind(&self, set: &[usize], partial: &Partial) -> Result<Kind, Reason> {
        let (program, never) = (self.program, &partial.never);
        let reached = self
            .all
            .iter()
            .enumerate()
            .filter(|(i, b)| !set.contains(i) && !never.contains(&b.node));
        Ok(Kind {
            runs: program
                .thread_ids()
                .map(|t| held::runs(program, never, t))
                .collect(),
            asked: asked(program, &partial.graph, never)?,
            leave: reached.flat_map(|(_, b)| b.behind.clone()).collect(),
        })
    }

    fn case(&self, set: &[usize], partial: &Partial, kind: &Kind) -> Case {
        let brinks: Vec<&Brink> = set.iter().map(|&i| &self.all[i]).collect();
        let mut whole = self.program.clone();
        never_complete(&mut whole, &kind.asked);
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
        let beside = Beside::of((self.program, self.sure), &partial.graph, &partial.never);
        Case {
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

/// What an order of calls makes of a program if some points are never reached.
#[derive(PartialEq, Eq)]
struct Kind {
    /// By thread: how many of its instructions run.
    runs: Vec<usize>,
    asked: Vec<Asked>,
    /// The parts that every thread leaves, as something behind them is reached.
    leave: Vec<Stretch>,
}

/// The orders in which the calls of a program are issued.
fn orders(program: &mut Program) -> &mut Vec<Vec<program::host::CallId>> {
    let host = program.host.as_deref_mut().expect("a host program");
    host.orders.get_or_insert_default()
}
