//! Runs the second half of the search: sources, values and choices are known; final writes and
//! orders are not.

use super::candidate::{
    OrderChoices, PartialCandidate, SearchStop, SettledCandidate, StaticValues,
};
use super::orders::OrderBounds;
use super::search::{CandidateSearch, SearchGoal};
use crate::eval;
use crate::eval::Eval;
use crate::execution::Execution;
use crate::facts::Facts;
use crate::query::FinalState;
use cat::algebra::bounds::{Bound, Truth};
use cat::model::ir::{FreeShape, NodeId};
use cat::rel::Rel;
use program::litmus::Observable;
use program::memory::CellId;

impl CandidateSearch<'_, '_, '_> {
    /// Continues with final writes and orders after all sources, values and choices are known.
    pub(super) fn settle(&mut self, partial: PartialCandidate) -> Result<(), SearchStop> {
        let facts = self.facts;
        let mut eval = Eval::new(&facts.sk, &partial.known);
        if eval.cond(self.query.require) != Some(true)
            || self.query.no_fault && eval.cond(facts.fault) != Some(false)
            || self.needs_complete() && eval.cond(facts.sk.complete) != Some(true)
        {
            return Ok(());
        }
        let known = self.known.clone().expect("it was found plausible");
        let reads_from = Rel::from_pairs(
            facts.sk.len(),
            partial
                .source
                .iter()
                .enumerate()
                .filter_map(|(r, w)| w.map(|w| (w, r))),
        );
        let mut orders: Vec<Option<OrderBounds>> = Vec::new();
        let mut covering = Vec::new();
        for f in &facts.task.model.free {
            covering.push(f.covering.map(|id| static_rel(&known, id)));
            orders.push(match f.shape {
                FreeShape::Function => None,
                FreeShape::Order => {
                    match OrderBounds::new(
                        static_rel(&known, f.within),
                        f.containing.map(|id| static_rel(&known, id)),
                        &known.algebra.must,
                    ) {
                        Some(order) => Some(order),
                        None => return Ok(()),
                    }
                }
            });
        }
        if let Some(order) = &mut orders[facts.task.model.finals.0 as usize]
            && !partial.chains.ordered().all(|(a, b)| order.require(a, b))
        {
            return Ok(());
        }
        let settled = SettledCandidate {
            partial,
            known,
            reads_from,
            covering,
        };
        self.finals(
            &settled,
            OrderChoices {
                orders,
                finals: Vec::new(),
            },
        )
    }

    /// Chooses the final write of the next observed cell.
    fn finals(
        &mut self,
        settled: &SettledCandidate,
        chosen: OrderChoices,
    ) -> Result<(), SearchStop> {
        self.tick()?;
        let facts = self.facts;
        let Some(&index) = self.cells.get(chosen.finals.len()) else {
            return self.evaluate(settled, chosen);
        };
        let here = writers(facts, settled, index);
        let order = facts.task.model.finals.0 as usize;
        for &last in &here {
            let mut next = chosen.clone();
            let bounds = next.orders[order].as_mut().expect("`final` names an order");
            if here.iter().all(|&w| w == last || bounds.exclude(last, w)) {
                next.finals.push((facts.observed_cells[index], last));
                self.finals(settled, next)?;
                if self.over() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Compares the final values with the query.
    fn evaluate(
        &mut self,
        settled: &SettledCandidate,
        chosen: OrderChoices,
    ) -> Result<(), SearchStop> {
        let facts = self.facts;
        let mut eval = Eval::new(&facts.sk, &settled.partial.known);
        let mut value = |o: Observable| match o {
            Observable::Reg(t, r) => eval.register(t, r),
            o => {
                let cell = facts.sk.observed_cell(o)?;
                eval.value(chosen.finals.iter().find(|last| last.0 == cell)?.1)
            }
        };
        for (p, truth) in &self.query.props {
            if eval::prop(p, &mut |a| facts.atom_value(a, &mut value)) != Some(*truth) {
                return Ok(());
            }
        }
        let states = self.goal == SearchGoal::States;
        let state = states
            .then(|| {
                facts
                    .observed
                    .iter()
                    .map(|&o| value(o))
                    .collect::<Option<FinalState>>()
            })
            .flatten();
        if state.as_ref().is_some_and(|s| self.states.contains(s)) {
            return Ok(());
        }
        let mut accepted = None;
        self.orders(settled, chosen, &mut accepted)?;
        if let Some(execution) = accepted {
            match state {
                Some(s) => {
                    self.states.insert(s);
                }
                None => self.found = Some(execution),
            }
        }
        Ok(())
    }

    /// Decides pairs of the orders until every axiom is sure.
    fn orders(
        &mut self,
        settled: &SettledCandidate,
        chosen: OrderChoices,
        accepted: &mut Option<Execution>,
    ) -> Result<(), SearchStop> {
        self.tick()?;
        let free = chosen.orders.iter().map(|o| match o {
            Some(o) => Bound {
                must: o.must.clone(),
                may: o.may.clone(),
            },
            None => Bound {
                must: settled.reads_from.clone(),
                may: settled.reads_from.clone(),
            },
        });
        let (axioms, flags) = self.judged(&settled.known, &free.collect::<Vec<_>>())?;
        if axioms == Truth::No || flags == Truth::No {
            return Ok(());
        }
        let executed = &settled.known.algebra.must;
        let undecided = chosen
            .orders
            .iter()
            .zip(&settled.covering)
            .enumerate()
            .find_map(|(f, (o, c))| {
                let (o, c) = (o.as_ref()?, c.as_ref()?);
                c.iter()
                    .find(|&(i, j): &(usize, usize)| {
                        i != j
                            && executed.has(i)
                            && executed.has(j)
                            && !o.must.has(i, j)
                            && !o.must.has(j, i)
                    })
                    .map(|(i, j)| (f, i, j))
            });
        let (f, edits) = if let Some((f, i, j)) = undecided {
            (f, [(true, i, j), (true, j, i)])
        } else if axioms == Truth::Yes && flags == Truth::Yes {
            if !chosen
                .orders
                .iter()
                .flatten()
                .any(|o| o.must.has_cycle(executed))
            {
                *accepted = Some(self.execution(settled, &chosen));
            }
            return Ok(());
        } else {
            let open = chosen.orders.iter().enumerate().find_map(|(f, o)| {
                o.as_ref()
                    .and_then(OrderBounds::first_open)
                    .map(|(i, j)| (f, i, j))
            });
            let (f, i, j) = open.expect("with every pair decided, bounds are exact");
            (f, [(false, i, j), (true, i, j)])
        };
        self.room = self
            .room
            .checked_sub(chosen.size())
            .ok_or(SearchStop::Room)?;
        for (include, i, j) in edits {
            let mut next = chosen.clone();
            let order = next.orders[f]
                .as_mut()
                .expect("orders are split, functions are not");
            if if include {
                order.require(i, j)
            } else {
                order.exclude(i, j)
            } {
                self.orders(settled, next, accepted)?;
                if accepted.is_some() {
                    break;
                }
            }
        }
        self.room += chosen.size();
        Ok(())
    }

    /// Final writes of all observed cells: the chosen ones, and for other cells a write that no
    /// write follows.
    fn all_finals(
        &self,
        settled: &SettledCandidate,
        chosen: &OrderChoices,
    ) -> Vec<(CellId, usize)> {
        let facts = self.facts;
        let mut finals = chosen.finals.clone();
        let Some(order) = chosen.orders[facts.task.model.finals.0 as usize].as_ref() else {
            return finals;
        };
        for (index, &cell) in facts.observed_cells.iter().enumerate() {
            if finals.iter().any(|last| last.0 == cell) {
                continue;
            }
            let here = writers(facts, settled, index);
            if let Some(&last) = here
                .iter()
                .find(|&&w| here.iter().all(|&v| !order.must.has(w, v)))
            {
                finals.push((cell, last));
            }
        }
        finals
    }

    fn execution(&self, settled: &SettledCandidate, chosen: &OrderChoices) -> Execution {
        Execution {
            executed: settled.known.algebra.must.clone(),
            reads: settled.partial.known.reads.clone(),
            choices: settled
                .partial
                .known
                .choices
                .iter()
                .map(|c| c.unwrap_or(false))
                .collect(),
            free: chosen
                .orders
                .iter()
                .map(|o| {
                    o.as_ref()
                        .map_or_else(|| settled.reads_from.clone(), |o| o.must.clone())
                })
                .collect(),
            finals: self.all_finals(settled, chosen),
        }
    }
}

/// The largest value of a static relation.
fn static_rel(known: &StaticValues, id: NodeId) -> Rel {
    known.values[id.index()]
        .as_deref()
        .expect("bounds are static")
        .rel()
        .may
        .clone()
}

/// The writes to an observed cell.
fn writers(facts: &Facts<'_>, settled: &SettledCandidate, index: usize) -> Vec<usize> {
    let mut eval = Eval::new(&facts.sk, &settled.partial.known);
    let executed = &settled.known.algebra.must;
    let here = facts.at_cell[index]
        .iter()
        .filter(|(w, at)| executed.has(*w) && eval.cond(*at) == Some(true));
    here.map(|(w, _)| *w).collect()
}
