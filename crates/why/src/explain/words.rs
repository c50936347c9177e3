//! Says steps of a derivation in words.
//!
//! The model's text has the words for its names ([`cat::model::words`]), and the signature those
//! for base relations. The program adds details: which memory, whose scope, which groups. A name
//! without words appears as it is.
//!
//! # Invariants
//! - Clauses have `{a}` and `{b}` in place of the two events, and say no more than the step does.

use std::collections::BTreeMap;

use super::derive::Step;
use cat::model::ir::{FreeShape, Kind, NodeId, NodeOp};
use cat::model::signature::BaseId;
use cat::model::text;
use engine::execution::Execution;
use engine::facts::Facts;
use engine::skeleton::signature::{self, BaseRole};
use engine::{fault, witness};
use program::{Dialect, Place, Scope};

/// Says the steps of one execution.
pub(super) struct Words<'a> {
    facts: &'a Facts<'a>,
    execution: &'a Execution,
    of_model: BTreeMap<String, String>,
}

impl<'a> Words<'a> {
    /// For one execution.
    pub(super) fn new(facts: &'a Facts<'a>, execution: &'a Execution) -> Words<'a> {
        Words {
            facts,
            execution,
            of_model: cat::model::words::words(facts.task.model),
        }
    }

    /// The model's name for a node; an expression if it has no name.
    pub(super) fn name(&self, node: NodeId) -> String {
        text::expression(self.facts.task.model, node, false)
    }

    /// Whether the model's text has words for a node, by its name.
    pub(super) fn has(&self, node: NodeId) -> bool {
        self.facts
            .task
            .model
            .node(node)
            .name
            .as_ref()
            .is_some_and(|name| self.of_model.contains_key(name))
    }

    /// A step as a clause.
    pub(super) fn clause(&self, step: &Step) -> String {
        let model = self.facts.task.model;
        let node = model.node(step.node);
        let name = self.name(step.node);
        if let (false, Some(said)) = (step.holds, self.of_model.get(&format!("not {name}"))) {
            return said.clone();
        }
        if let Some(said) = self.of_model.get(&name) {
            // A pair of an event with itself: a pattern of one event.
            let alone = node.kind == Kind::Rel && step.from == step.to;
            let said = if alone {
                said.replace("{a} and {b} are", "{a} alone is")
            } else {
                said.clone()
            };
            return if step.holds {
                said
            } else {
                format!("it does not hold that {said}")
            };
        }
        match &node.op {
            _ if node.name.is_some() => plain(&name, node.kind, step.holds),
            NodeOp::Base(base) => self.base(*base, step),
            NodeOp::Free(free) => {
                let relation = &model.free[free.0 as usize];
                let place = witness::cell(self.facts, self.execution, step.from)
                    .map_or("memory", |c| self.facts.sk.memory.cell(c).name.as_str());
                let says = if *free == model.values {
                    [
                        "{a} wrote the value that {b} reads".to_owned(),
                        "{b} does not read from {a}".to_owned(),
                    ]
                } else if *free == model.finals {
                    [
                        format!("{{a}} comes before {{b}} in the order of writes to `{place}`"),
                        format!(
                            "{{a}} does not come before {{b}} in the order of writes to `{place}`"
                        ),
                    ]
                } else {
                    assert_eq!(relation.shape, FreeShape::Order);
                    let name = &relation.name;
                    [
                        format!("{{a}} comes before {{b}} in `{name}`"),
                        format!("{{a}} does not come before {{b}} in `{name}`"),
                    ]
                };
                let [yes, no] = says;
                if step.holds { yes } else { no }
            }
            NodeOp::Inverse(inner) if step.holds => {
                let turned = Step {
                    node: *inner,
                    from: step.to,
                    to: step.from,
                    ..step.clone()
                };
                swapped(&self.clause(&turned))
            }
            NodeOp::IdentityOn(set) => {
                let inner = Step {
                    node: *set,
                    ..step.clone()
                };
                self.clause(&inner)
            }
            _ => plain(&name, node.kind, step.holds),
        }
    }

    /// A base set or relation: the words of the signature, and the details that the program adds.
    fn base(&self, base: BaseId, step: &Step) -> String {
        let row = signature::row(base);
        let clause = &row.says[usize::from(!step.holds)];
        match self.detail(row.role, step) {
            Some(Detail::Instead(detail)) => detail,
            Some(Detail::More(detail)) => format!("{clause}: {detail}"),
            None => clause.clone(),
        }
    }

    fn detail(&self, role: BaseRole, step: &Step) -> Option<Detail> {
        let sk = &self.facts.sk;
        let (a, b) = (&sk.events[step.from], &sk.events[step.to]);
        match role {
            BaseRole::Memory | BaseRole::Address => {
                let place = |e| {
                    witness::cell(self.facts, self.execution, e).map(|c| &sk.memory.cell(c).name)
                };
                let (x, y) = (place(step.from)?, place(step.to)?);
                Some(match (step.holds, x == y) {
                    (true, true) => Detail::Instead(format!("both access `{x}`")),
                    (true, false) => Detail::Instead(format!("`{x}` and `{y}` are one memory")),
                    (false, _) if role == BaseRole::Address => {
                        Detail::Instead(format!("`{x}` and `{y}` are different addresses"))
                    }
                    (false, _) => Detail::Instead(format!("`{x}` and `{y}` are different memory")),
                })
            }
            BaseRole::Inclusion => {
                let (x, y) = (a.thread?, b.thread?);
                let (px, py) = (sk.program.thread(x), sk.program.thread(y));
                if step.holds {
                    let common = common_group(&px.place, &py.place, sk.program.dialect);
                    return Some(Detail::More(format!(
                        "{} and {} are {common}",
                        px.name, py.name
                    )));
                }
                for (event, which, from, to) in [(a, "{a}", px, py), (b, "{b}", py, px)] {
                    let Some(scope) = event.scope else {
                        return Some(Detail::Instead(format!("{which} has no scope")));
                    };
                    if !from.place.same(&to.place, scope) {
                        return Some(Detail::Instead(format!(
                            "the scope of {which}, `{}`, does not include {}{}",
                            fault::scope_word(self.facts, scope),
                            to.name,
                            fault::elsewhere(&from.place, &to.place, scope, sk.program.dialect)
                        )));
                    }
                }
                None
            }
            _ => None,
        }
    }
}

/// A detail that a program adds to a clause.
enum Detail {
    Instead(String),
    More(String),
}

/// A relation or a set by its name alone.
fn plain(name: &str, kind: Kind, holds: bool) -> String {
    let not = if holds { "" } else { "not " };
    match kind {
        Kind::Set => format!("{{a}} is {not}in `{name}`"),
        Kind::Rel => format!("{{a}} and {{b}} are {not}in `{name}`"),
    }
}

/// A clause with its two events swapped.
fn swapped(clause: &str) -> String {
    clause
        .replace("{a}", "{c}")
        .replace("{b}", "{a}")
        .replace("{c}", "{b}")
}

/// The narrowest group that holds two threads, after "are".
fn common_group(a: &Place, b: &Place, dialect: Dialect) -> String {
    let row = dialect.row();
    let levels = row.levels.iter().rev().map(|level| level.scope);
    match levels.into_iter().find(|&scope| a.same(b, scope)) {
        Some(scope @ Scope::Gpu) => format!("on one {}", row.noun(scope)),
        Some(scope) => format!("in one {}", row.noun(scope)),
        None => "in one system".to_owned(),
    }
}
