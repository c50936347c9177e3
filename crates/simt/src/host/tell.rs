//! Describes host programs in words: the conditions that a held thread waits for, and the threads
//! that could bring them about.

use super::{CommandStage, EntryContent, HostCondition, HostProgress, call_site, host};
use crate::code::Code;
use crate::thread::ThreadState;
use program::Op;
use program::host::{CommandId, CommandKind, HostOp, Node, Origin};
use verdict::hang::{Goal, Site, Wait};

/// Chains of waits longer than this are cut, so that a circle appears once.
const MAX_DEPTH: usize = 8;

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
    let texts: Vec<String> = open(code, state, threads, t)
        .into_iter()
        .map(|c| text(code, c))
        .collect();
    let command = host(code).command_of(program::ThreadId(t as u16));
    match (command, texts.as_slice()) {
        (Some(c), _) if state.stage(c) == CommandStage::Absent => "is not enqueued".into(),
        (Some(c), _) if state.stage(c) == CommandStage::Queued => {
            "is queued, and nothing submits it".into()
        }
        (Some(_), []) => "has not begun".into(),
        (Some(_), some) => format!("has not begun: it waits for {}", some.join(" and ")),
        (None, some) => format!("waits for {}", some.join(" and ")),
    }
}

fn open<C: Default>(
    code: &Code,
    state: &HostProgress<C>,
    threads: &[ThreadState],
    t: usize,
) -> Vec<HostCondition> {
    let conds = match (
        state.calls.get(&t),
        host(code).command_of(program::ThreadId(t as u16)),
    ) {
        (Some(call), _) => call.waits.clone(),
        (None, Some(c)) => state.item(c).map(|i| i.waits.clone()).unwrap_or_default(),
        (None, None) => Default::default(),
    };
    conds
        .into_iter()
        .filter(|&c| !state.holds(code, threads, c))
        .collect()
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
    let name = |t: usize| code.program.threads[t].name.clone();
    let alive = |t: usize| !threads[t].is_over();
    match cond {
        HostCondition::Set(h) | HostCondition::Made(h) => {
            let makes = [HostOp::SetUser(h), HostOp::CreateUser(h)];
            let op = &makes[usize::from(matches!(cond, HostCondition::Made(_)))];
            for call in host.call_ids().filter(|c| host.call(*c).op == *op) {
                let (t, line) = call_site(code, call);
                if alive(t) {
                    found.push(Site {
                        thread: name(t),
                        line,
                    });
                }
            }
        }
        HostCondition::Passed(i) => {
            let waits = state.items[i].waits.clone();
            waits
                .into_iter()
                .for_each(|c| bringers(code, state, threads, c, depth + 1, found));
        }
        HostCondition::Reached(c, _)
        | HostCondition::GroupEnded(c, _)
        | HostCondition::Triggered(c) => match state.stage(c) {
            CommandStage::Absent => match host.command(c).origin {
                Origin::Call(call) => {
                    let (t, line) = call_site(code, call);
                    found.push(Site {
                        thread: name(t),
                        line,
                    });
                }
                Origin::Device { thread, .. } => {
                    let at = Node::Enqueue(c).site(&code.program);
                    found.push(Site {
                        thread: name(usize::from(thread.0)),
                        line: at.map_or(0.into(), |(_, i)| i.line.clone()),
                    });
                }
                Origin::Start => {}
            },
            CommandStage::Queued => {
                // Any thread that still flushes the queue.
                let lane = host.command(c).lane;
                for call in host.call_ids() {
                    let (t, line) = call_site(code, call);
                    let op = &host.call(call).op;
                    let ahead = code.program.threads[t].code
                        [threads[t].pc.min(code.program.threads[t].code.len())..]
                        .iter()
                        .any(|i| matches!(i.op, Op::Call(id) if id == call));
                    if ahead
                        && HostProgress::<C>::flushes(host, op)
                            .into_iter()
                            .any(|l| Some(l) == lane)
                    {
                        found.push(Site {
                            thread: name(t),
                            line,
                        });
                    }
                }
            }
            CommandStage::Submitted => match host.command(c).threads.first() {
                // Its own threads show its conditions.
                Some(t) => found.push(Site {
                    thread: name(usize::from(t.0)),
                    line: 0.into(),
                }),
                None => {
                    let waits = state.item(c).map(|i| i.waits.clone()).unwrap_or_default();
                    waits
                        .into_iter()
                        .for_each(|w| bringers(code, state, threads, w, depth + 1, found));
                }
            },
            CommandStage::Running => {
                let own = host
                    .command(c)
                    .threads
                    .iter()
                    .map(|t| usize::from(t.0))
                    .filter(|&t| alive(t));
                found.extend(own.map(|t| Site {
                    thread: name(t),
                    line: 0.into(),
                }));
            }
            CommandStage::Ended | CommandStage::Complete => {
                for d in host.command_ids().filter(|d| matches!(host.command(*d).origin, Origin::Device { parent, .. } if parent == c)) {
                    bringers(
                        code,
                        state,
                        threads,
                        HostCondition::Reached(d, CommandStage::Complete),
                        depth + 1,
                        found,
                    );
                }
            }
        },
    }
}

impl<C: Default> HostProgress<C> {
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
                let open = item
                    .waits
                    .iter()
                    .filter(|&&w| !self.holds(code, threads, w));
                let waits: Vec<String> = open.map(|&w| text(code, w)).collect();
                let why = if waits.is_empty() {
                    String::new()
                } else {
                    format!(": it waits for {}", waits.join(" and "))
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
