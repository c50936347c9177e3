//! Describes threads held up by points of a host program that are never reached: the goal of each,
//! and the threads that could bring it.

use std::collections::BTreeSet;

use super::brink::{Brink, StatusQuery, end_of};
use program::host::{
    CallId, CommandId, CommandOrigin, HostOp, HostProgram, LaunchGraph, LaunchNode, PartialLaunch,
    QueryId, QuerySubject as About, Ref,
};
use program::memory::Memory;
use program::waiting::{LoopWalk, PausedProgram, WalkEnd, loop_at};
use program::{LocId, Program, ThreadId};
use verdict::hang::{Goal, Site, Wait, reading};
use verdict::{Ending, ThreadEnd, Witness};

/// The number of a thread's instructions that run if some points are never reached.
pub(super) fn runs(program: &Program, never: &BTreeSet<LaunchNode>, t: ThreadId) -> usize {
    let code = &program.thread(t).code;
    if never.contains(&LaunchNode::Enter(t)) {
        return 0;
    }
    let stop = code
        .iter()
        .enumerate()
        .find_map(|(at, i)| match LaunchNode::of(&i.op)? {
            (before, _) if never.contains(&before) => Some(at),
            (_, after) if never.contains(&after) => Some(at + 1),
            _ => None,
        });
    stop.unwrap_or(code.len())
}

/// The end of each thread if some points are never reached; `why` is the reason.
pub(super) fn witness(
    program: &Program,
    graph: &LaunchGraph,
    never: &BTreeSet<LaunchNode>,
    why: &str,
) -> Witness {
    let (events, relations, state, threads, derived, styles) = Default::default();
    let teller = HoldExplainer {
        program,
        graph,
        never,
    };
    let ends = program.thread_ids().map(|t| match teller.held(t) {
        Some(point) => teller.end(t, point, why),
        None => teller.at_liberty(t),
    });
    Witness {
        events,
        relations,
        state,
        ends: ends.collect(),
        threads,
        derived,
        styles,
    }
}

/// The ends of the threads that are held up, or wait for those, if exactly these points are never
/// reached.
pub(super) fn held(
    program: &Program,
    partial: &PartialLaunch,
    brinks: &[&Brink],
) -> Vec<(ThreadId, ThreadEnd)> {
    let teller = HoldExplainer {
        program,
        graph: &partial.graph,
        never: &partial.never,
    };
    // A thread that could reach a point, but does not, has its own reason.
    let held = program
        .thread_ids()
        .filter_map(|t| Some((t, teller.held(t)?)))
        .filter(|(t, point)| !is_own(brinks, *t, *point));
    held.map(|(t, point)| {
        let why = teller.why(point, brinks.iter().map(|b| b.node));
        (t, teller.end(t, point, &why))
    })
    .collect()
}

/// Whether a thread could reach a point, but does not.
fn is_own(brinks: &[&Brink], t: ThreadId, point: LaunchNode) -> bool {
    brinks
        .iter()
        .any(|b| b.node == point && b.behind.iter().any(|s| s.thread == t))
}

/// The ends of finished threads whose calls wait for points that others never reach, although
/// nothing later depends on them. The calls are issued in this order. Each thread is before the
/// instruction in `rest`, or at its end (`None`).
pub(super) fn waiting(
    program: &Program,
    order: &[CallId],
    rest: &[Option<usize>],
) -> Vec<(ThreadId, ThreadEnd)> {
    let graph = LaunchGraph::untimed(program, order);
    let stops: BTreeSet<LaunchNode> = program
        .thread_ids()
        .filter_map(|t| Some((t, rest[usize::from(t.0)]?)))
        .map(|(t, at)| next_point(program, t, at))
        .collect();
    let never = graph.never(&stops.iter().copied().collect::<Vec<_>>());
    // A point that others hold up is not a separate reason.
    let reasons: Vec<LaunchNode> = stops
        .iter()
        .copied()
        .filter(|stop: &LaunchNode| {
            !stops
                .iter()
                .any(|s| s != stop && graph.never(&[*s]).contains(stop))
        })
        .collect();
    let teller = HoldExplainer {
        program,
        graph: &graph,
        never: &never,
    };
    let over = program
        .thread_ids()
        .filter(|t| rest[usize::from(t.0)].is_none());
    let held = over.filter_map(|t| Some((t, teller.held(t)?)));
    held.map(|(t, point)| {
        (
            t,
            teller.end(t, point, &teller.why(point, reasons.iter().copied())),
        )
    })
    .collect()
}

/// The next point of a thread that is before an instruction.
fn next_point(program: &Program, t: ThreadId, at: usize) -> LaunchNode {
    let code = &program.thread(t).code;
    let next = code
        .get(at..)
        .into_iter()
        .flatten()
        .find_map(|i| LaunchNode::of(&i.op));
    next.map(|(before, _)| before).unwrap_or_else(|| {
        program
            .host
            .as_ref()
            .and_then(|host| host.command_of(t))
            .map_or(LaunchNode::Leave(t), |c| end_of(program, c, t))
    })
}

/// The waits of threads that repeat a status query.
pub(super) fn polls(
    program: &Program,
    partial: &PartialLaunch,
    asked: &[StatusQuery],
) -> Vec<(ThreadId, usize, Wait)> {
    let teller = HoldExplainer {
        program,
        graph: &partial.graph,
        never: &partial.never,
    };
    asked
        .iter()
        .map(|a| {
            (
                a.thread,
                a.at,
                teller.wait(a.awaits(program, &partial.graph)),
            )
        })
        .collect()
}

/// As [`polls`], for user events that no call sets.
pub(super) fn unset(program: &Program, asked: &[StatusQuery]) -> Vec<(ThreadId, usize, Wait)> {
    let host = program.host.as_deref().expect("a host program");
    asked
        .iter()
        .filter_map(|a| Some((a.thread, a.at, wait_for_set(host, a.of)?)))
        .collect()
}

/// The wait of a query about a user event that no call sets.
fn wait_for_set(host: &HostProgram, of: QueryId) -> Option<Wait> {
    match host.query(of).of {
        About::Event(Ref::Handle(h)) => {
            let goal = Goal::Event(format!("`{}` to be set", host.handle(h).name));
            Some(Wait {
                goal,
                helpers: Vec::new(),
                only: true,
                missed: Vec::new(),
            })
        }
        _ => None,
    }
}

struct HoldExplainer<'a> {
    program: &'a Program,
    graph: &'a LaunchGraph,
    never: &'a BTreeSet<LaunchNode>,
}

impl HoldExplainer<'_> {
    /// The point at which a thread is held up.
    fn held(&self, t: ThreadId) -> Option<LaunchNode> {
        if self.never.contains(&LaunchNode::Enter(t)) {
            return Some(LaunchNode::Enter(t));
        }
        let points = self
            .program
            .thread(t)
            .code
            .iter()
            .filter_map(|i| LaunchNode::of(&i.op));
        points
            .flat_map(|(before, after)| [before, after])
            .find(|point| self.never.contains(point))
    }

    /// The end of a thread that no call holds up: it may still loop for a write of threads that
    /// never run.
    fn at_liberty(&self, t: ThreadId) -> ThreadEnd {
        let (program, thread) = (self.program, self.program.thread(t));
        let mut end = ThreadEnd::done(&thread.name);
        let jumps = thread
            .code
            .iter()
            .enumerate()
            .filter(|(at, i)| i.op.jumps_back(*at));
        let Some(header) = jumps.filter_map(|(_, i)| i.op.target()).min() else {
            return end;
        };
        // Its end may depend on other threads, which the graph does not cover.
        end.why = "no call holds it up".to_owned();
        let Some(range) = loop_at(program, t, header) else {
            return end;
        };
        let memory = Memory::new(program);
        let address = |t: ThreadId, loc: LocId| memory.address(program, loc, 0, Some(t));
        let cell = |a: i64| memory.at(a).map(|c| memory.cell(c).memory);
        let same = |a: i64, b: i64| cell(a) == cell(b);
        let ways = |idle: bool| {
            let rest = program.thread_ids().map(|u| {
                let never = self.never.contains(&LaunchNode::Enter(u));
                (never == idle).then_some(0)
            });
            PausedProgram {
                program,
                address: &address,
                same: &same,
                rest: rest.collect(),
            }
        };
        // An initial value remains unless a running thread, itself or another, writes the location.
        let (running, idle) = (ways(false), ways(true));
        let seen = |a: i64| {
            let first = memory.cell(cell(a)?);
            (!first.unknown && !running.may_write(a)).then_some(first.init)
        };
        let regs = thread
            .regs
            .iter()
            .map(|r| memory.initial(program, &r.init, Some(t)))
            .collect();
        let mut walk = LoopWalk { pc: 0, regs };
        if header > 0
            && idle.walk(t, &mut walk, Some(&(0..=header - 1)), &mut |a| seen(a)) != WalkEnd::Left
            || walk.pc != header
            || idle.walk(t, &mut walk.clone(), Some(&range), &mut |a| seen(a)) != WalkEnd::Again
        {
            return end;
        }
        for poll in idle.polls(t, &walk, &range, &|a| seen(a)) {
            let Some(at) = memory.at(poll.address) else {
                continue;
            };
            let place = memory.cell(at).name.clone();
            end.polls
                .push((place.clone(), memory.show_in(program, at, poll.seen)));
            let goal = match &poll.wanted {
                Some(wanted) => Goal::Value(memory.awaited(program, at, wanted, poll.seen)),
                None => Goal::Change(place),
            };
            let helpers = poll
                .writers
                .iter()
                .map(|&(u, pc): &(ThreadId, usize)| {
                    let by = program.thread(u);
                    Site {
                        thread: by.name.clone(),
                        line: by.code[pc].line.clone(),
                    }
                })
                .collect();
            end.waits.push(Wait {
                goal,
                helpers,
                only: poll.sure,
                missed: Vec::new(),
            });
        }
        end.ending = Ending::Looping;
        end.why = format!("loops forever{}", reading(&end.polls));
        (end.line, end.text) = (
            thread.code[header].line.clone(),
            thread.code[header].text.clone(),
        );
        end
    }

    fn end(&self, t: ThreadId, point: LaunchNode, why: &str) -> ThreadEnd {
        let thread = self.program.thread(t);
        let mut end = ThreadEnd::done(&thread.name);
        let mut wait_for = |node: LaunchNode| {
            let awaited = self.graph.awaited(node, self.never);
            end.waits_for = awaited.iter().map(|n| n.describe(self.program)).collect();
            end.waits = awaited.into_iter().map(|n| self.wait(n)).collect();
        };
        match point {
            LaunchNode::Enter(_) => {
                if let Some(command) = self.program.host.as_ref().and_then(|h| h.command_of(t)) {
                    wait_for(LaunchNode::Start(command));
                }
                // If its command never starts, the report omits waits for invisible points.
                end.waits_for.clear();
                end.ending = Ending::Stopped;
                end.why = format!("never starts: {why}");
            }
            _ => {
                wait_for(point);
                end.ending = Ending::Blocked;
                end.why = format!("waits forever: {why}");
                if let Some((_, call)) = point.site(self.program) {
                    (end.line, end.text) = (call.line.clone(), call.text.clone());
                }
            }
        }
        end
    }

    /// Why a point is never reached; `stops` are the points that threads fail to reach.
    fn why(&self, point: LaunchNode, stops: impl Iterator<Item = LaunchNode>) -> String {
        let why: Vec<String> = stops
            .filter(|stop| self.graph.never(&[*stop]).contains(&point))
            .map(|stop| self.reason(stop))
            .collect();
        why.join(" and ")
    }

    /// Why threads fail to reach a point.
    fn reason(&self, point: LaunchNode) -> String {
        let host = self.program.host.as_deref().expect("a host program");
        match point {
            LaunchNode::End(c) | LaunchNode::GroupEnd(c, _) => {
                format!("{} does not end", quoted(host, c))
            }
            LaunchNode::Start(c) => format!("nothing submits {}", quoted(host, c)),
            node => format!("{} is never issued", node.describe(self.program)),
        }
    }

    fn wait(&self, node: LaunchNode) -> Wait {
        let mut helpers = Vec::new();
        self.bringers(node, &mut BTreeSet::new(), &mut helpers);
        helpers.sort_by(|a: &Site, b| (&a.thread, &a.line).cmp(&(&b.thread, &b.line)));
        helpers.dedup();
        Wait {
            goal: Goal::Event(self.goal(node)),
            helpers,
            only: true,
            missed: Vec::new(),
        }
    }

    /// The goal in words: `` `K1` to complete ``.
    fn goal(&self, node: LaunchNode) -> String {
        let host = self.program.host.as_deref().expect("a host program");
        match node {
            LaunchNode::Done(c) => format!("{} to complete", quoted(host, c)),
            LaunchNode::End(c) => format!("{} to end", quoted(host, c)),
            LaunchNode::GroupEnd(c, group) => {
                format!("group {group} of {} to end", quoted(host, c))
            }
            LaunchNode::Start(c) => format!("{} to start", quoted(host, c)),
            LaunchNode::User(h) => format!("`{}` to be set", host.handle(h).name),
            LaunchNode::Call(c) => match &host.call(c).op {
                HostOp::Enqueue { command, .. } => {
                    format!("{} to be enqueued", quoted(host, *command))
                }
                HostOp::CreateUser(h) => format!("`{}` to be made", host.handle(*h).name),
                _ => node.describe(self.program),
            },
            LaunchNode::Enqueue(c) => format!("{} to be enqueued", quoted(host, c)),
            node => node.describe(self.program),
        }
    }

    /// The threads that could reach a point, or that state their own wait.
    fn bringers(&self, node: LaunchNode, seen: &mut BTreeSet<LaunchNode>, found: &mut Vec<Site>) {
        if !self.never.contains(&node) || !seen.insert(node) {
            return;
        }
        let host = self.program.host.as_deref().expect("a host program");
        match node {
            LaunchNode::Call(_) | LaunchNode::Enqueue(_) => {
                let site = node.site(self.program);
                found.extend(site.map(|(t, i)| Site {
                    thread: self.program.thread(t).name.clone(),
                    line: i.line.clone(),
                }));
            }
            LaunchNode::User(h) => {
                let sets = host
                    .call_ids()
                    .filter(|c| host.call(*c).op == HostOp::SetUser(h));
                sets.for_each(|c| self.bringers(LaunchNode::Call(c), seen, found));
            }
            // The command's own threads state their waits, or where they stay.
            LaunchNode::Done(c)
            | LaunchNode::End(c)
            | LaunchNode::GroupEnd(c, _)
            | LaunchNode::Start(c)
                if self.never.contains(&LaunchNode::Start(c))
                    && !host.command(c).threads.is_empty() =>
            {
                match (self.is_issued(c), host.command(c).origin) {
                    (false, CommandOrigin::Call(call)) => {
                        self.bringers(LaunchNode::Call(call), seen, found)
                    }
                    _ => self.threads_of(c, found),
                }
            }
            LaunchNode::End(c) | LaunchNode::GroupEnd(c, _) => {
                let before = found.len();
                self.threads_of(c, found);
                if found.len() == before {
                    self.before(node, seen, found);
                }
            }
            node => self.before(node, seen, found),
        }
    }

    /// Adds the threads of a command.
    fn threads_of(&self, c: CommandId, found: &mut Vec<Site>) {
        let host = self.program.host.as_deref().expect("a host program");
        let names = host
            .command(c)
            .threads
            .iter()
            .map(|t| self.program.thread(*t).name.clone());
        found.extend(names.map(|thread| Site {
            thread,
            line: 0.into(),
        }));
    }

    fn before(&self, node: LaunchNode, seen: &mut BTreeSet<LaunchNode>, found: &mut Vec<Site>) {
        for before in self.graph.awaited(node, self.never) {
            self.bringers(before, seen, found);
        }
    }

    fn is_issued(&self, command: CommandId) -> bool {
        let host = self.program.host.as_deref().expect("a host program");
        match host.command(command).origin {
            CommandOrigin::Call(call) => !self.never.contains(&LaunchNode::Call(call)),
            _ => true,
        }
    }
}

/// The name of a command in backquotes.
fn quoted(host: &HostProgram, c: CommandId) -> String {
    format!("`{}`", host.name_of(c))
}
