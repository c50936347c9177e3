//! Describes why an execution does not end: which thread waits for which, and the picture of it.
//!
//! This is plain data: the engines and the executor fill in the parts that they have, and both
//! print alike.

use std::fmt::Write as _;

use diag::SourceLine;
use serde::{Deserialize, Serialize};

use super::{Ending, ThreadEnd};

/// One thing that a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The awaited event or value.
    pub goal: Goal,
    /// Instructions that would bring it, of threads that have not reached them. Line 0 means some
    /// instruction of that thread.
    pub helpers: Vec<Site>,
    /// Whether these instructions are the only ones that can bring it.
    pub only: bool,
    /// Writes that brought it unseen: another write overwrote them, or they come before another in
    /// coherence order.
    pub missed: Vec<Site>,
}

/// The awaited event or value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Goal {
    /// A value: `x == 1`, `x != 0`.
    Value(String),
    /// Another value of a location, together with other goals.
    Change(String),
    /// Other threads at a barrier.
    Barrier,
    /// An event of the host program: `` `K1` to complete ``.
    Event(String),
}

/// An instruction of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The thread's name.
    pub thread: String,
    /// 1-based line; 0 if it is unknown.
    pub line: SourceLine,
}

impl Wait {
    /// A wait at a barrier at which the threads `absent` never arrive.
    pub fn at_barrier(absent: &[String]) -> Wait {
        let helpers = absent
            .iter()
            .map(|name| Site {
                thread: name.clone(),
                line: 0.into(),
            })
            .collect();
        Wait {
            goal: Goal::Barrier,
            helpers,
            only: true,
            missed: Vec::new(),
        }
    }
}

/// Why a thread waits without end at a barrier at which the threads `absent` never arrive.
pub fn never_arrive(absent: &[String]) -> String {
    match absent {
        [] => "waits forever: too few threads arrive".to_string(),
        [one] => format!("waits forever: {one} never arrives"),
        some => format!("waits forever: {} never arrive", some.join(", ")),
    }
}

/// The values that a loop polls: `, reading x = 0 and y = 1`.
pub fn reading(polls: &[(String, String)]) -> String {
    let mut said: Vec<String> = polls
        .iter()
        .map(|(place, value)| format!("{place} = {value}"))
        .collect();
    said.dedup();
    if said.is_empty() {
        String::new()
    } else {
        format!(", reading {}", said.join(" and "))
    }
}

impl Goal {
    /// The goal as a clause: `waits for x == 1`, `waits at the barrier`.
    fn text(&self) -> String {
        match self {
            Goal::Value(what) => format!("waits for {what}"),
            Goal::Change(place) => format!("waits for another value of {place}"),
            Goal::Event(what) => format!("waits for {what}"),
            Goal::Barrier => "waits at the barrier".to_owned(),
        }
    }
}

impl Site {
    fn text(&self) -> String {
        if self.line.is_known() {
            format!("{} line {}", self.thread, self.line)
        } else {
            self.thread.clone()
        }
    }
}

impl ThreadEnd {
    /// The end of a thread that runs to its end.
    pub fn done(thread: &str) -> ThreadEnd {
        ThreadEnd {
            thread: thread.to_owned(),
            ending: Ending::Done,
            line: 0.into(),
            text: String::new(),
            served: true,
            waits_for: Vec::new(),
            polls: Vec::new(),
            period: None,
            waits: Vec::new(),
            why: "runs to its end".to_owned(),
        }
    }

    /// The place as text: `P0 line 12`.
    fn place(&self) -> String {
        Site {
            thread: self.thread.clone(),
            line: self.line.clone(),
        }
        .text()
    }
}

/// Whether threads wait in a circle, and lines that follow the arrows from waiter to helper,
/// circles first: `P0 line 12 waits for x == 1 -> only P1 line 20 writes it -> P1 line 18 waits at
/// the barrier -> P0 never arrives`.
pub fn picture(ends: &[ThreadEnd]) -> (bool, Vec<String>) {
    let circle = circle(ends);
    let mut told = vec![false; ends.len()];
    let mut lines = Vec::new();
    let starts = circle.iter().map(|c| c[0]).chain(0..ends.len());
    for start in starts {
        if !told[start] && !ends[start].waits.is_empty() {
            lines.push(line(
                ends,
                start,
                circle.as_deref().unwrap_or_default(),
                &mut told,
            ));
        }
    }
    (circle.is_some(), lines)
}

/// The threads that could help thread `t`, in order.
fn helpers(ends: &[ThreadEnd], t: usize) -> impl Iterator<Item = usize> + '_ {
    let sites = ends[t].waits.iter().flat_map(|w| &w.helpers);
    sites.filter_map(|s| ends.iter().position(|e| e.thread == s.thread))
}

/// A cycle of threads: each waits for the next one, the last for the first.
fn circle(ends: &[ThreadEnd]) -> Option<Vec<usize>> {
    fn follow(
        ends: &[ThreadEnd],
        t: usize,
        path: &mut Vec<usize>,
        dead: &mut [bool],
    ) -> Option<Vec<usize>> {
        if let Some(at) = path.iter().position(|&p| p == t) {
            return Some(path[at..].to_vec());
        }
        if dead[t] {
            return None;
        }
        path.push(t);
        let found = helpers(ends, t).find_map(|u| follow(ends, u, path, dead));
        path.pop();
        dead[t] = true;
        found
    }
    let mut dead = vec![false; ends.len()];
    (0..ends.len()).find_map(|t| follow(ends, t, &mut Vec::new(), &mut dead))
}

/// The arrows from thread `start` on, along the circle if the thread is on it.
fn line(ends: &[ThreadEnd], start: usize, circle: &[usize], told: &mut [bool]) -> String {
    let mut text = String::new();
    let mut at = start;
    loop {
        let end = &ends[at];
        if told[at] {
            let _ = write!(text, "{}", end.thread);
            return text;
        }
        told[at] = true;
        let in_circle = circle
            .iter()
            .position(|&c| c == at)
            .map(|i| circle[(i + 1) % circle.len()]);
        let wait = in_circle.and_then(|u| {
            end.waits
                .iter()
                .find(|w| w.helpers.iter().any(|s| s.thread == ends[u].thread))
        });
        let wait = wait
            .or_else(|| end.waits.iter().find(|w| !w.helpers.is_empty()))
            .or(end.waits.first());
        let Some(wait) = wait else {
            text += &match end.ending {
                Ending::Stopped => {
                    format!(
                        "{} does not run {}",
                        end.thread,
                        if end.line.is_known() {
                            "any more"
                        } else {
                            "at all"
                        }
                    )
                }
                Ending::Looping => format!("{} loops forever", end.place()),
                Ending::Blocked => format!("{} waits", end.place()),
                Ending::Done => format!("{} has ended", end.thread),
            };
            return text;
        };
        let _ = write!(text, "{} {}", end.place(), wait.goal.text());
        if let Some(missed) = wait.missed.first() {
            let _ = write!(text, " ({} wrote it, and is not seen)", missed.text());
        }
        let next = in_circle.and_then(|u| wait.helpers.iter().find(|s| s.thread == ends[u].thread));
        let Some(helper) = next.or(wait.helpers.first()) else {
            let nobody = match wait.goal {
                Goal::Event(_) => "no thread or copy brings it",
                Goal::Barrier => "too few threads arrive",
                Goal::Value(_) | Goal::Change(_) if wait.only => "no thread writes it any more",
                Goal::Value(_) | Goal::Change(_) => "no thread is known to write it",
            };
            let _ = write!(text, " -> {nobody}");
            return text;
        };
        let alone = wait.only && wait.helpers.iter().all(|s| s.thread == helper.thread);
        let only = if alone { "only " } else { "" };
        let _ = match wait.goal {
            Goal::Event(_) if !helper.line.is_known() => write!(text, " -> "),
            Goal::Event(_) => write!(text, " -> {only}{} brings it -> ", helper.text()),
            Goal::Barrier => write!(text, " -> {only}{} could arrive -> ", helper.text()),
            Goal::Value(_) | Goal::Change(_) => {
                write!(text, " -> {only}{} writes it -> ", helper.text())
            }
        };
        let Some(u) = ends.iter().position(|e| e.thread == helper.thread) else {
            return text;
        };
        at = u;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(thread: &str, ending: Ending, line: u32, waits: Vec<Wait>) -> ThreadEnd {
        ThreadEnd {
            ending,
            line: line.into(),
            waits,
            ..ThreadEnd::done(thread)
        }
    }

    fn wait(goal: Goal, helpers: &[(&str, u32)]) -> Wait {
        let site = |&(thread, line): &(&str, u32)| Site {
            thread: thread.into(),
            line: line.into(),
        };
        Wait {
            goal,
            helpers: helpers.iter().map(site).collect(),
            only: true,
            missed: Vec::new(),
        }
    }

    #[test]
    fn a_circle_comes_first_and_closes() {
        let ends = [
            end(
                "P0",
                Ending::Looping,
                4,
                vec![wait(Goal::Value("y == 1".into()), &[("P1", 9)])],
            ),
            end(
                "P1",
                Ending::Looping,
                8,
                vec![wait(Goal::Value("x == 1".into()), &[("P2", 20)])],
            ),
            end(
                "P2",
                Ending::Blocked,
                18,
                vec![wait(Goal::Barrier, &[("P1", 0)])],
            ),
        ];
        let told = [
            "P1 line 8 waits for x == 1 -> only P2 line 20 writes it -> P2 line 18 waits at the \
            barrier -> \
             only P1 could arrive -> P1",
            "P0 line 4 waits for y == 1 -> only P1 line 9 writes it -> P1",
        ];
        assert_eq!(picture(&ends), (true, told.map(str::to_owned).to_vec()));
    }

    #[test]
    fn a_chain_ends_where_nobody_waits() {
        let ends = [
            end(
                "P0",
                Ending::Looping,
                4,
                vec![wait(Goal::Value("x != 0".into()), &[("P1", 9)])],
            ),
            end("P1", Ending::Stopped, 0, Vec::new()),
            end(
                "P2",
                Ending::Looping,
                7,
                vec![wait(Goal::Value("z == 2".into()), &[])],
            ),
        ];
        let told = [
            "P0 line 4 waits for x != 0 -> only P1 line 9 writes it -> P1 does not run at all",
            "P2 line 7 waits for z == 2 -> no thread writes it any more",
        ];
        assert_eq!(picture(&ends), (false, told.map(str::to_owned).to_vec()));
    }
}
