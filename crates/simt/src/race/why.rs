//! Explains why two accesses race: finds the weaker requirement that would order them.

use super::RacingAccesses;
use super::order::{ClockHandover, Requirement, RunOrder};
use crate::code::Code;
use crate::record::RunEvent;
use program::{Proxy, Scope, ThreadId};

/// The reason, in words.
pub(super) fn why(code: &Code, events: &[RunEvent], found: &RacingAccesses) -> String {
    let (a, b) = (&found.first, &found.second);
    if let Some(why) = proxies(code, events, found) {
        return why;
    }
    if a.touch.access.strong && b.touch.access.strong {
        return format!(
            "scope too small: {} does not hold {}",
            scope(code, a.touch.thread, a.touch.access.scope, b.touch.thread)
                .or_else(|| scope(code, b.touch.thread, b.touch.access.scope, a.touch.thread))
                .unwrap_or_else(|| "one of the scopes".into()),
            "the other thread"
        );
    }
    if let Some(link) = handover(code, events, Requirement::AnyScope, found) {
        let (t, u) = (link.from.0, link.to.0);
        let small = scope(code, t, link.scopes.0, u).or_else(|| scope(code, u, link.scopes.1, t));
        let what = small.unwrap_or_else(|| "a scope on the way".into());
        let held = if code.holds(t, link.scopes.0, u) {
            t
        } else {
            u
        };
        return format!(
            "scope too small: {} hands over to {}, but {what} does not hold {}",
            at(code, link.from.0, link.from.1),
            at(code, link.to.0, link.to.1),
            code.program.threads[held].name
        );
    }
    if let Some(link) = handover(code, events, Requirement::Communication, found) {
        return format!(
            "fence missing: {} reads what {} wrote, but without a release before the one and an \
                acquire after the other nothing else is handed over",
            at(code, link.to.0, link.to.1),
            at(code, link.from.0, link.from.1)
        );
    }
    let [t, u] = [a, b].map(|p| ThreadId(p.touch.thread as u16));
    if let Some(why) = code
        .program
        .host
        .as_deref()
        .and_then(|host| host.apart(&code.program, t, u))
    {
        return why;
    }
    let same_block = code.cta[a.touch.thread] == code.cta[b.touch.thread];
    match same_block {
        true if a.epoch == b.epoch => "no barrier between them".into(),
        true => "no barrier between them joins these two threads".into(),
        false => "they are in different blocks, and no synchronization connects the blocks".into(),
    }
}

/// The reason of a race that the proxies of its accesses decide; `None`: they do not.
fn proxies(code: &Code, events: &[RunEvent], found: &RacingAccesses) -> Option<String> {
    let [a, b] = [&found.first.touch, &found.second.touch];
    let [from, to] = [a, b].map(|touch| touch.access.proxy);
    let maps = [a, b].map(|touch| touch.access.map);
    if from == Proxy::Generic && to == Proxy::Generic && maps == [false; 2] {
        return None;
    }
    if ordered(code, events, Requirement::All, found).0 {
        match maps {
            [true, _] => {
                let why =
                    "the completion of the first, which reads a tensor map, was not waited for";
                return Some(why.into());
            }
            [_, true] => {
                let why = "events order them, but a copy sees the write of a tensor map only \
                    behind a release half and an acquire half of `fence.proxy.tensormap`";
                return Some(why.into());
            }
            _ => {}
        }
        let missing = "events order them, but `fence.proxy.async` is missing between them";
        return Some(match (from, to) {
            (Proxy::Generic, _) => format!("{missing}: only the second is of the async proxy"),
            (_, Proxy::Generic) => format!(
                "{missing}: only the first is of the async proxy, and its completion was not \
                    waited for"
            ),
            _ => format!("{missing}: they are of the async proxy, in different blocks"),
        });
    }
    let scopes = code.mutual(a.thread, a.access.scope, b.thread, b.access.scope);
    (from != to && a.access.strong && b.access.strong && scopes)
        .then(|| "both are strong, but they are of different proxies".into())
}

/// The link that hands over from the first access to the second, if weaker requirements order the
/// two.
fn handover(
    code: &Code,
    events: &[RunEvent],
    asked: Requirement,
    found: &RacingAccesses,
) -> Option<ClockHandover> {
    let (true, links) = ordered(code, events, asked, found) else {
        return None;
    };
    let (a, b) = (found.first, found.second);
    let covers = |l: &&ClockHandover| l.clock[a.touch.thread] >= a.time;
    let choices: [Option<&ClockHandover>; 4] = [
        links.iter().find(|l| {
            covers(l)
                && l.to.0 == b.touch.thread
                && !code.mutual(l.from.0, l.scopes.0, l.to.0, l.scopes.1)
        }),
        links
            .iter()
            .find(|l| covers(l) && !code.mutual(l.from.0, l.scopes.0, l.to.0, l.scopes.1)),
        links.iter().find(|l| covers(l) && l.to.0 == b.touch.thread),
        links.iter().find(covers),
    ];
    let first = if asked == Requirement::AnyScope { 0 } else { 2 };
    choices[first..]
        .iter()
        .flatten()
        .next()
        .map(|l| (*l).clone())
}

/// Whether events order the first access before the second under some requirements, whatever their
/// proxies; and the handovers up to the second.
fn ordered(
    code: &Code,
    events: &[RunEvent],
    asked: Requirement,
    found: &RacingAccesses,
) -> (bool, Vec<ClockHandover>) {
    let (a, b) = (found.first, found.second);
    let mut order = RunOrder::new(code, asked);
    let mut yes = false;
    for event in events {
        order.event(event, &mut |order, touch| {
            let clock = &order.clocks[touch.thread];
            let now = (touch.thread, touch.instr, touch.loc, touch.write);
            if now == (b.touch.thread, b.touch.instr, b.touch.loc, b.touch.write)
                && clock[touch.thread] == b.time
            {
                yes = clock[a.touch.thread] >= a.time;
            }
        });
        if order.clocks[b.touch.thread][b.touch.thread] >= b.time {
            break;
        }
    }
    (yes, order.links)
}

/// `scope` of thread `t` in words, if it does not include `u`.
fn scope(code: &Code, t: usize, scope: Scope, u: usize) -> Option<String> {
    if code.holds(t, scope, u) {
        return None;
    }
    let (noun, thread) = (scope.row().noun, &code.program.threads[t].name);
    Some(format!("the {noun} scope of {thread}"))
}

fn at(code: &Code, thread: usize, instr: usize) -> String {
    let thread = &code.program.threads[thread];
    format!(
        "{} at line {} (`{}`)",
        thread.name, thread.code[instr].line, thread.code[instr].text
    )
}
