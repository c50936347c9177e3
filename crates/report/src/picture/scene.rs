//! The content of a picture: threads at their places, events, edges, and text.
//!
//! # Invariants
//! - An agent is next to its thread, in a separate box.
//! - Events of a thread are in program order; edges refer to events and relations by index.
//! - The steps of the cycle are always drawn, and so are their events and marked events.
//! - [`Scene::says`] lists the parts that are left out.

use std::collections::BTreeSet;

use super::super::execution::{Actor, actors, letter};
use super::style::{self, EdgeStyle, WAITS};
use verdict::{Ending, Seat, Witness, hang};

mod edges;

/// The limit on drawn threads and agents: a warp. A reader cannot follow more columns.
const MOST_THREADS: usize = 32;
/// The approximate limit on events of a thread.
const MOST_ROWS: usize = 24;
/// A relation with more edges is drawn only on request,
const MOST_EDGES: usize = 40;
/// and one with more than this never.
const FAR_TOO_MANY: usize = 400;

/// One step of the decisive cycle or chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleStep {
    /// The index of an event of the witness.
    pub from: usize,
    /// Another one.
    pub to: usize,
    /// The relation between them.
    pub name: String,
}

/// An execution with its annotations.
#[derive(Clone, Debug)]
pub struct PictureSubject<'a> {
    /// The test's name.
    pub title: &'a str,
    /// The model, the query, the verdict: one line each.
    pub facts: Vec<String>,
    /// The execution.
    pub witness: &'a Witness,
    /// The steps that are drawn in bold.
    pub cycle: Vec<CycleStep>,
    /// Marked events of the witness, with their marks.
    pub marks: Vec<(usize, String)>,
    /// Text below the picture.
    pub says: Vec<String>,
}

/// The relations to draw.
#[derive(Clone, Debug, Default)]
pub struct RelationChoice {
    /// These relations; `None`: those drawn by default ([`EdgeStyle::shown`], and those that the
    /// model shows).
    pub relations: Option<Vec<String>>,
    /// Include the other relations as hidden ones, for pages that can switch them on.
    pub rest: bool,
    /// Leave out the title and the text around the picture.
    pub no_caption: bool,
    /// Leave out initial writes.
    pub no_initial: bool,
    /// Draw only marked events and those of the cycle, as long as there are some.
    pub only_vital: bool,
}

/// The content of a picture.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The test's name.
    pub title: String,
    /// Lines below it.
    pub facts: Vec<String>,
    /// The threads in the order of the test, each before its agents. An agent is in a separate
    /// group.
    pub seats: Vec<Seat>,
    /// The events.
    pub events: Vec<SceneEvent>,
    /// The relations, shown ones first.
    pub relations: Vec<SceneRelation>,
    /// The edges.
    pub edges: Vec<SceneEdge>,
    /// Text below the picture.
    pub says: Vec<String>,
}

/// The role of an event in a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventRole {
    /// An initial write.
    Init,
    /// An event of a thread.
    Step,
    /// The final state of a thread that does not run to its end.
    End,
    /// A placeholder for omitted events.
    Gap,
}

/// An event of a scene.
#[derive(Clone, Debug)]
pub struct SceneEvent {
    /// The thread's index in [`Scene::seats`]; `None` for initial writes.
    pub thread: Option<usize>,
    /// Its role.
    pub role: EventRole,
    /// Its letter and action: `c: R x = 1`.
    pub action: String,
    /// Line and code: `14: ld.weak r0, x`.
    pub code: String,
    /// Its mark.
    pub mark: Option<String>,
    /// Whether the cycle goes through it.
    pub on_cycle: bool,
}

/// A relation of a scene.
#[derive(Clone, Debug)]
pub struct SceneRelation {
    /// Its name.
    pub name: String,
    /// Its style.
    pub kind: EdgeStyle,
    /// Whether it is visible initially.
    pub shown: bool,
}

/// An edge of a scene.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SceneEdge {
    /// An event.
    pub from: usize,
    /// Another event.
    pub to: usize,
    /// The relation.
    pub relation: usize,
    /// Whether it is a step of the cycle.
    pub bold: bool,
    /// Whether the relation holds in both directions.
    pub both: bool,
}

impl Scene {
    /// Creates the scene for a subject.
    pub fn new(subject: &PictureSubject<'_>, choice: &RelationChoice) -> Scene {
        let mut scene = Scene {
            title: subject.title.to_owned(),
            facts: subject.facts.clone(),
            seats: Vec::new(),
            events: Vec::new(),
            relations: Vec::new(),
            edges: Vec::new(),
            says: subject.says.clone(),
        };
        let place = scene.place_events(subject, choice);
        scene.add_ends(subject.witness);
        scene.add_relations(subject, choice, &place);
        scene.relations_in_order();
        if choice.no_caption {
            scene.title.clear();
            scene.facts.clear();
            scene.says.clear();
        }
        scene
    }

    /// Chooses threads and events. Returns the new index of each drawn event of the witness.
    fn place_events(
        &mut self,
        subject: &PictureSubject<'_>,
        choice: &RelationChoice,
    ) -> Vec<Option<usize>> {
        let witness = subject.witness;
        let steps = subject.cycle.iter().flat_map(|s| [s.from, s.to]);
        let on_cycle: BTreeSet<usize> = steps.clone().collect();
        let vital: BTreeSet<usize> = steps.chain(subject.marks.iter().map(|m| m.0)).collect();
        let of = |actor: &Actor<'_>| -> Vec<usize> {
            (0..witness.events.len())
                .filter(|&e| Actor::of(&witness.events[e]) == *actor)
                .collect()
        };
        let all = columns(witness);
        let only_vital = choice.only_vital && !vital.is_empty();
        let mut drawn = chosen_columns(witness, &all, &vital);
        if only_vital {
            drawn.retain(|actor| of(actor).iter().any(|e| vital.contains(e)));
        }
        let left_out: Vec<&Actor<'_>> = all.iter().filter(|actor| !drawn.contains(actor)).collect();
        if !left_out.is_empty() {
            let events: usize = left_out.iter().map(|actor| of(actor).len()).sum();
            let agents = if left_out.iter().any(|actor| actor.agent.is_some()) {
                " and agents"
            } else {
                ""
            };
            self.says.push(format!(
                "Not drawn: {} more thread{}{agents} with {events} event{}.",
                left_out.len(),
                plural(left_out.len()),
                plural(events)
            ));
        }
        let mut place = vec![None; witness.events.len()];
        let mut add = |scene: &mut Scene, e: usize, thread: Option<usize>| {
            let event = &witness.events[e];
            place[e] = Some(scene.events.len());
            let code = event.text.trim();
            scene.events.push(SceneEvent {
                thread,
                role: if thread.is_none() {
                    EventRole::Init
                } else {
                    EventRole::Step
                },
                action: format!("{}: {}", letter(e), event.action),
                code: match (&event.line, code.is_empty()) {
                    (line, _) if !line.is_known() => code.to_owned(),
                    (line, true) => format!("line {line}"),
                    (line, false) => format!("{line}: {code}"),
                },
                mark: subject.marks.iter().find(|m| m.0 == e).map(|m| m.1.clone()),
                on_cycle: on_cycle.contains(&e),
            });
        };
        let initial = (0..witness.events.len())
            .filter(|&e| witness.events[e].thread.is_none())
            .filter(|e| vital.contains(e) || !(choice.no_initial || only_vital));
        for e in initial {
            add(self, e, None);
        }
        for (seat, actor) in drawn.iter().enumerate() {
            let events = of(actor);
            self.seats.extend(
                actor
                    .thread
                    .map(|t| self::seat(witness, t, events.first().copied())),
            );
            let mut keep = chosen_rows(&events, &vital);
            if only_vital {
                keep.retain(|e| vital.contains(e));
            }
            let mut skipped = 0;
            for (i, &e) in events.iter().enumerate() {
                if !keep.contains(&e) {
                    skipped += 1;
                }
                let next_is_kept = events.get(i + 1).is_none_or(|n| keep.contains(n));
                if keep.contains(&e) {
                    add(self, e, Some(seat));
                } else if next_is_kept {
                    self.events.push(SceneEvent {
                        thread: Some(seat),
                        role: EventRole::Gap,
                        action: format!("\u{22ee} {skipped} event{} not drawn", plural(skipped)),
                        code: String::new(),
                        mark: None,
                        on_cycle: false,
                    });
                    skipped = 0;
                }
            }
        }
        place
    }

    /// Adds the final states of threads and their waits, if the picture is about these.
    fn add_ends(&mut self, witness: &Witness) {
        if witness.ends.is_empty() {
            return;
        }
        let mut at = Vec::new();
        for end in &witness.ends {
            let seat = self.seats.iter().position(|s| s.thread == end.thread);
            at.push(seat.map(|seat| {
                let code = if end.line.is_known() {
                    format!("{}: {}", end.line, end.text.trim())
                } else {
                    String::new()
                };
                let action = end.ending.word().to_owned();
                let (mark, on_cycle) = (None, false);
                let event = SceneEvent {
                    thread: Some(seat),
                    role: EventRole::End,
                    action,
                    code,
                    mark,
                    on_cycle,
                };
                self.events.push(event);
                self.events.len() - 1
            }));
        }
        let mut edges = Vec::new();
        for (i, end) in witness.ends.iter().enumerate() {
            let helpers = end
                .waits
                .iter()
                .flat_map(|w| &w.helpers)
                .map(|site| &site.thread);
            let targets: BTreeSet<usize> = helpers
                .chain(&end.waits_for)
                .filter_map(|name| witness.ends.iter().position(|e| e.thread == *name))
                .collect();
            edges.extend(targets.into_iter().filter(|&to| to != i).map(|to| (i, to)));
        }
        for end in witness.ends.iter().filter(|e| e.ending != Ending::Done) {
            self.says.push(format!(
                "{}: {}, {}.",
                end.thread,
                end.ending.word(),
                end.why
            ));
        }
        self.says.extend(
            hang::picture(&witness.ends)
                .1
                .into_iter()
                .map(|line| format!("{line}.")),
        );
        if edges.is_empty() {
            return;
        }
        self.relations.push(SceneRelation {
            name: WAITS.to_owned(),
            kind: style::WAIT,
            shown: true,
        });
        for &(from, to) in &edges {
            let (Some(a), Some(b)) = (at[from], at[to]) else {
                continue;
            };
            let bold = reaches(&edges, to, from);
            self.events[a].on_cycle |= bold;
            self.edges.push(SceneEdge {
                from: a,
                to: b,
                relation: self.relations.len() - 1,
                bold,
                both: false,
            });
        }
    }

    /// The steps of the cycle and the events as text.
    pub fn description(&self) -> String {
        let mut out = Vec::new();
        for (t, seat) in self.seats.iter().enumerate() {
            let events: Vec<_> = self.events.iter().filter(|e| e.thread == Some(t)).collect();
            let said: Vec<_> = events.iter().map(|e| e.action.as_str()).collect();
            let place = if seat.groups.is_empty() {
                String::new()
            } else {
                format!(" ({})", seat.groups.join(", "))
            };
            out.push(format!("{}{place}: {}.", seat.thread, said.join("; ")));
        }
        let name = |e: usize| {
            self.events[e]
                .action
                .split(':')
                .next()
                .unwrap_or("")
                .to_owned()
        };
        let edges = self.edges.iter().filter(|e| {
            self.relations[e.relation].shown && self.relations[e.relation].kind.class != "po"
        });
        let edges: Vec<_> = edges
            .map(|e| {
                format!(
                    "{} {} {}",
                    name(e.from),
                    self.relations[e.relation].name,
                    name(e.to)
                )
            })
            .collect();
        if !edges.is_empty() {
            out.push(format!("Edges: {}.", edges.join(", ")));
        }
        out.extend(self.says.iter().cloned());
        out.join(" ")
    }
}

/// The ending of a plural.
fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// All possible columns: every thread, with or without events, followed by its agents.
fn columns(witness: &Witness) -> Vec<Actor<'_>> {
    let agents = actors(witness)
        .into_iter()
        .filter(|actor| actor.agent.is_some());
    let mut all: Vec<Actor<'_>> = (0..witness.threads.len())
        .map(|t| Actor {
            thread: Some(t),
            agent: None,
        })
        .chain(agents)
        .collect();
    all.sort_by_key(|actor| (actor.thread, actor.agent.is_some()));
    all
}

/// The columns to draw; those with vital events take precedence.
fn chosen_columns<'a>(
    witness: &Witness,
    all: &[Actor<'a>],
    vital: &BTreeSet<usize>,
) -> Vec<Actor<'a>> {
    let has_vital = |at: usize| {
        vital
            .iter()
            .any(|&e| Actor::of(&witness.events[e]) == all[at])
    };
    let mut columns: Vec<usize> = (0..all.len()).collect();
    columns.sort_by_key(|&at| (!has_vital(at), at));
    let most = MOST_THREADS.max(columns.iter().filter(|&&at| has_vital(at)).count());
    columns.truncate(most);
    columns.sort_unstable();
    columns.into_iter().map(|at| all[at]).collect()
}

/// The place of a thread, or of its agent if an event of the agent is given.
fn seat(witness: &Witness, thread: usize, event: Option<usize>) -> Seat {
    let mut seat = witness.threads[thread].clone();
    if let Some(event) = event
        .map(|e| &witness.events[e])
        .filter(|e| e.agent.is_some())
    {
        seat.thread = format!("from line {}", event.line);
        seat.groups.push(event.who());
    }
    seat
}

/// The events of a column to draw: vital ones and their neighbours, then the first ones.
fn chosen_rows(events: &[usize], vital: &BTreeSet<usize>) -> BTreeSet<usize> {
    if events.len() <= MOST_ROWS {
        return events.iter().copied().collect();
    }
    let mut keep: BTreeSet<usize> = (0..events.len())
        .filter(|&i| {
            let range = &events[i.saturating_sub(1)..(i + 2).min(events.len())];
            range.iter().any(|e| vital.contains(e))
        })
        .map(|i| events[i])
        .collect();
    for &e in events {
        if keep.len() >= MOST_ROWS {
            break;
        }
        keep.insert(e);
    }
    keep
}

/// Whether `edges` lead from `from` to `to`.
fn reaches(edges: &[(usize, usize)], from: usize, to: usize) -> bool {
    let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
    while let Some(at) = todo.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            todo.extend(edges.iter().filter(|e| e.0 == at).map(|e| e.1));
        }
    }
    false
}
