//! Describes host programs in words: the conditions that a held thread waits for, and the threads
//! that could bring them about.

use std::collections::BTreeSet;

use super::{CommandStage, EntryContent, HostCondition, HostProgress, call_site, host};
use crate::code::Code;
use crate::thread::ThreadState;
use program::host::{CommandId, CommandKind, CommandOrigin, HostOp, LaunchNode};
use program::{Op, SourceLine};
use verdict::hang::{Goal, Site, Wait};

/// Chains of waits longer than this are cut, so that a circle appears once.
const MAX_DEPTH: usize = 8;

static NO_CONDITIONS: BTreeSet<HostCondition> = BTreeSet::new();

/// The conditions that a held thread waits for, each with the threads that could bring it about.
pub(crate) fn held<C: Default>(
    code: &Code,
    state: &HostProgress<C>,
    threads: &[ThreadState],
    t: usize,
) -> Vec<Wait> {
    let mut waits: Vec<Wait> = Vec::new();
    for cond in open(code, state, threads, t) {
        let mut helpers = Vec::new();
        bringers(code, state, threads, cond, 0, &mut helpers);
        helpers.sort_by(|a: &Site, b| (&a.thread, &a.line).cmp(&(&b.thread, &b.line)));
        helpers.dedup();
        waits.push(Wait {
            goal: Goal::Event(text(code, cond)),
            helpers,
            only: true,
            missed: Vec::new(),
        });
    }
    waits
}

/// The conditions of a thread that do not hold yet, in words.
pub(crate) fn unmet<C: Default>(
    code: &Code,
    state: &HostProgress<C>,
    threads: &[ThreadState],
    t: usize,
) -> String {
    let waits = texts(code, &open(code, state, threads, t));
    let command = host(code).command_of(program::ThreadId(t as u16));
    match command {
        Some(c) if state.stage(c) == CommandStage::Absent => "is not enqueued".into(),
        Some(c) if state.stage(c) == CommandStage::Queued => {
            "is queued, and nothing submits it".into()
        }
        Some(_) if waits.is_empty() => "has not begun".into(),
        Some(_) => format!("has not begun: it waits for {waits}"),
        None => format!("waits for {waits}"),
    }
}

/// Conditions in words, joined by `and`.
fn texts(code: &Code, conds: &[HostCondition]) -> String {
    let texts: Vec<String> = conds.iter().map(|&c| text(code, c)).collect();
    texts.join(" and ")
}

/// The conditions that a thread waits for and that do not hold yet.
fn open<C: Default>(
    code: &Code,
    state: &HostProgress<C>,
    threads: &[ThreadState],
    t: usize,
) -> Vec<HostCondition> {
    let command = host(code).command_of(program::ThreadId(t as u16));
    let conds = match (state.calls.get(&t), command) {
        (Some(call), _) => &call.waits,
        (None, Some(c)) => state.conditions(c),
        (None, None) => &NO_CONDITIONS,
    };
    state.open(code, threads, conds).collect()
}

/// `K1 to complete`.
fn text(code: &Code, cond: HostCondition) -> String {
    let host = host(code);
    let name = |c: CommandId| format!("`{}`", host.name_of(c));
    match cond {
        HostCondition::Reached(c, CommandStage::Complete) => format!("{} to complete", name(c)),
        HostCondition::Reached(c, CommandStage::Ended) => format!("{} to end", name(c)),
        HostCondition::Reached(c, CommandStage::Queued) => format!("{} to be enqueued", name(c)),
        HostCondition::Reached(c, _) => format!("{} to be submitted", name(c)),
        HostCondition::GroupEnded(c, group) => format!("group {group} of {} to end", name(c)),
        HostCondition::Made(h) => format!("`{}` to be made", host.handle(h).name),
        HostCondition::Set(h) => format!("`{}` to be set", host.handle(h).name),
        HostCondition::Passed(_) => "earlier work of the stream".to_owned(),
        HostCondition::Triggered(c) => format!("{} to let it start", name(c)),
    }
}

/// The threads that could make a condition hold.
fn bringers<C: Default>(
    code: &Code,
    state: &HostProgress<C>,
    threads: &[ThreadState],
    cond: HostCondition,
    depth: usize,
    found: &mut Vec<Site>,
) {
    let host = host(code);
    if depth > MAX_DEPTH || state.holds(code, threads, cond) {
        return;
    }
    match cond {
        HostCondition::Set(h) | HostCondition::Made(h) => {
            let op = match cond {
                HostCondition::Made(_) => HostOp::CreateUser(h),
                _ => HostOp::SetUser(h),
            };
            for call in host.call_ids().filter(|c| host.call(*c).op == op) {
                let (t, line) = call_site(code, call);
                if !threads[t].is_over() {
                    found.push(site(code, t, line));
                }
            }
        }
        HostCondition::Passed(i) => {
            for &c in &state.items[i].waits {
                bringers(code, state, threads, c, depth + 1, found);
            }
        }
        HostCondition::Reached(c, _)
        | HostCondition::GroupEnded(c, _)
        | HostCondition::Triggered(c) => advancers(code, state, threads, c, depth, found),
    }
}

/// The threads that could take a command to its next stage.
fn advancers<C: Default>(
    code: &Code,
    state: &HostProgress<C>,
    threads: &[ThreadState],
    c: CommandId,
    depth: usize,
    found: &mut Vec<Site>,
) {
    let host = host(code);
    let command = host.command(c);
    match state.stage(c) {
        CommandStage::Absent => match command.origin {
            CommandOrigin::Call(call) => {
                let (t, line) = call_site(code, call);
                found.push(site(code, t, line));
            }
            CommandOrigin::Device { thread, .. } => {
                let at = LaunchNode::Enqueue(c).site(&code.program);
                let line = at.map_or(0.into(), |(_, i)| i.line.clone());
                found.push(site(code, usize::from(thread.0), line));
            }
            CommandOrigin::Start => {}
        },
        CommandStage::Queued => {
            // Any thread that still flushes the queue.
            for call in host.call_ids() {
                let (t, line) = call_site(code, call);
                let all = &code.program.threads[t].code;
                let is_ahead = all[threads[t].pc.min(all.len())..]
                    .iter()
                    .any(|i| matches!(i.op, Op::Call(id) if id == call));
                let flushed = HostProgress::<C>::flushes(host, &host.call(call).op);
                if is_ahead && flushed.into_iter().any(|l| Some(l) == command.lane) {
                    found.push(site(code, t, line));
                }
            }
        }
        CommandStage::Submitted => match command.threads.first() {
            // Its own threads show its conditions.
            Some(t) => found.push(site(code, usize::from(t.0), 0.into())),
            None => {
                for &w in state.conditions(c) {
                    bringers(code, state, threads, w, depth + 1, found);
                }
            }
        },
        CommandStage::Running => {
            let own = command.threads.iter().map(|t| usize::from(t.0));
            let alive = own.filter(|&t| !threads[t].is_over());
            found.extend(alive.map(|t| site(code, t, 0.into())));
        }
        CommandStage::Ended | CommandStage::Complete => {
            for d in host.command_ids() {
                let origin = &host.command(d).origin;
                if matches!(origin, CommandOrigin::Device { parent, .. } if *parent == c) {
                    let end = HostCondition::Reached(d, CommandStage::Complete);
                    bringers(code, state, threads, end, depth + 1, found);
                }
            }
        }
    }
}

fn site(code: &Code, t: usize, line: SourceLine) -> Site {
    Site {
        thread: code.program.threads[t].name.clone(),
        line,
    }
}

impl<C: Default> HostProgress<C> {
    /// The conditions of a command; none, if it was never enqueued.
    fn conditions(&self, command: CommandId) -> &BTreeSet<HostCondition> {
        self.item(command).map_or(&NO_CONDITIONS, |i| &i.waits)
    }

    /// Those conditions that do not hold yet.
    fn open(
        &self,
        code: &Code,
        threads: &[ThreadState],
        conds: &BTreeSet<HostCondition>,
    ) -> impl Iterator<Item = HostCondition> {
        conds
            .iter()
            .copied()
            .filter(move |&c| !self.holds(code, threads, c))
    }

    /// Whether a thread is in a call that has not returned.
    pub(crate) fn is_calling(&self, t: usize) -> bool {
        self.calls.contains_key(&t)
    }

    /// Commands that have no threads and never complete, in words.
    pub(crate) fn pending(&self, code: &Code, threads: &[ThreadState]) -> Vec<String> {
        let Some(host) = code.program.host.as_deref() else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        for item in &self.items {
            let EntryContent::Command(c) = item.what else {
                continue;
            };
            let command = host.command(c);
            if self.stage(c) == CommandStage::Queued {
                lines.push(format!(
                    "`{}` is queued, and nothing submits it",
                    host.name_of(c)
                ));
            } else if command.threads.is_empty() && self.stage(c) < CommandStage::Complete {
                let what = if command.kind == CommandKind::Barrier {
                    "barrier"
                } else {
                    "command"
                };
                let open: Vec<HostCondition> = self.open(code, threads, &item.waits).collect();
                let why = match texts(code, &open) {
                    none if none.is_empty() => none,
                    some => format!(": it waits for {some}"),
                };
                lines.push(format!(
                    "the {what} `{}` never completes{why}",
                    host.name_of(c)
                ));
            }
        }
        lines
    }
}
