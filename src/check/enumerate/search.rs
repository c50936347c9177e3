//! The depth-first search itself.

use std::collections::{BTreeMap, BTreeSet};

use super::orders::OrderBounds;
use crate::algebra::bounds::{Bound, Bounds, Truth};
use crate::algebra::{Leaves, Value, Values, interpret, needed};
use crate::check::eval::{self, Assignment, Eval};
use crate::check::execution::Execution;
use crate::check::query::{Deadline, FinalState, Query};
use crate::check::task::Task;
use crate::litmus::Observable;
use crate::model::ir::{FreeId, Kind, NodeId, Shape};
use crate::rel::{EventSet, Rel};
use crate::skeleton::CellId;
use crate::skeleton::base::Base;
use crate::skeleton::domain::fits;

/// What the search collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// One execution.
    One,
    /// The final states of all.
    States,
}

/// Why a search ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Out of time.
    Time,
    /// Out of steps.
    Steps,
}

/// What is decided so far of sources, values and choices.
#[derive(Clone)]
struct Partial {
    known: Assignment,
    /// By event: the source of a read.
    source: Vec<Option<usize>>,
    /// Reads that name no memory, and return 0 from nowhere.
    astray: Vec<bool>,
}

/// Everything decided but the orders.
struct Settled {
    partial: Partial,
    algebra: Bounds,
    /// Values of static nodes.
    fixed: Values<Bounds>,
    /// The values relation.
    reads_from: Rel,
    covering: Vec<Option<Rel>>,
}

/// What has been decided of the orders below a [`Settled`] candidate.
#[derive(Clone)]
struct Chosen {
    orders: Vec<Option<OrderBounds>>,
    finals: BTreeMap<CellId, usize>,
}

pub(super) struct Search<'t, 'a, 'q> {
    task: &'t Task<'a>,
    query: &'q Query<'q>,
    goal: Goal,
    deadline: Deadline,
    limit: Option<u64>,
    steps: u64,
    /// Nodes below the axioms and flags of the query.
    wanted: Vec<bool>,
    /// Nodes below the bounds of free relations, and static nodes among `wanted`.
    fixed: Vec<bool>,
    /// Static nodes by what they depend on: executed events and open base cells.
    cache: Option<(Bounds, Vec<Option<bool>>, Values<Bounds>)>,
    cells: Vec<usize>,
    pub(super) found: Option<Execution>,
    pub(super) states: BTreeSet<FinalState>,
}

/// Bounds of the leaves for a partial candidate.
struct PartialLeaves<'x> {
    task: &'x Task<'x>,
    algebra: &'x Bounds,
    open: &'x BTreeMap<String, Vec<Option<bool>>>,
    free: Vec<Bound<Rel>>,
}

impl Leaves<Bounds> for PartialLeaves<'_> {
    fn base(&self, name: &str, _: Kind) -> Value<Bound<EventSet>, Bound<Rel>> {
        match self.task.base(name) {
            Base::Set(s) => {
                let s = s.clone().and(&self.algebra.may);
                Value::Set(Bound { must: s.clone(), may: s })
            }
            Base::Rel(r) => {
                let fixed = r.fixed.clone().restricted(&self.algebra.may);
                let (mut must, mut may) = (fixed.clone(), fixed);
                if !r.open.is_empty() {
                    for (&(i, j, _), value) in r.open.iter().zip(&self.open[name]) {
                        if *value == Some(true) {
                            must.insert(i, j);
                        }
                        if *value != Some(false) {
                            may.insert(i, j);
                        }
                    }
                    must = must.restricted(&self.algebra.may);
                    may = may.restricted(&self.algebra.may);
                }
                Value::Rel(Bound { must, may })
            }
        }
    }

    fn free(&self, id: FreeId) -> Bound<Rel> {
        self.free[id.0 as usize].clone()
    }
}

impl<'t, 'a, 'q> Search<'t, 'a, 'q> {
    pub(super) fn new(
        task: &'t Task<'a>,
        query: &'q Query<'q>,
        goal: Goal,
        deadline: Deadline,
        limit: Option<u64>,
    ) -> Self {
        let model = task.model;
        let axioms = model.axioms.iter().zip(&query.axioms).filter(|(_, on)| **on).map(|(a, _)| a.node);
        let flags = query.flags.iter().flatten().map(|&f| model.flags[f].node);
        let bounds = model.free.iter().flat_map(|f| [Some(f.within), f.containing, f.covering]);
        let wanted = needed(model, axioms.chain(flags));
        let mut fixed = needed(model, bounds.flatten());
        for (i, node) in model.nodes.iter().enumerate() {
            fixed[i] |= wanted[i] && node.is_static;
        }
        let mut mentioned: Vec<Observable> = eval::observables(query.props.iter().map(|p| p.0), &[]);
        if goal == Goal::States {
            mentioned.extend(&task.observed);
        }
        let cells = (0..task.observed_cells.len())
            .filter(|&c| mentioned.iter().any(|&o| task.sk.observed_cell(o) == Some(task.observed_cells[c])))
            .collect();
        Search {
            task,
            query,
            goal,
            deadline,
            limit,
            steps: 0,
            wanted,
            fixed,
            cache: None,
            cells,
            found: None,
            states: BTreeSet::new(),
        }
    }

    /// Runs to the end, or to the first execution.
    ///
    /// # Errors
    /// If a limit was hit; what was found so far stays.
    pub(super) fn run(&mut self) -> Result<(), Stop> {
        let sk = &self.task.sk;
        let partial = Partial {
            known: Assignment {
                reads: vec![None; sk.len()],
                choices: vec![None; sk.pool.choice_count() as usize],
            },
            source: vec![None; sk.len()],
            astray: vec![false; sk.len()],
        };
        self.sources(partial)
    }

    fn tick(&mut self) -> Result<(), Stop> {
        self.steps += 1;
        if self.limit.is_some_and(|l| self.steps > l) {
            return Err(Stop::Steps);
        }
        if self.steps.is_multiple_of(16) && self.deadline.passed() { Err(Stop::Time) } else { Ok(()) }
    }

    fn over(&self) -> bool {
        self.goal == Goal::One && self.found.is_some()
    }

    fn needs_complete(&self) -> bool {
        self.query.complete || !self.query.props.is_empty() || self.goal == Goal::States
    }

    /// Decides sources, choices and values, one after the other.
    fn sources(&mut self, mut partial: Partial) -> Result<(), Stop> {
        self.tick()?;
        let task = self.task;
        let sk = &task.sk;
        if !self.propagate(&mut partial) {
            return Ok(());
        }
        let mut eval = Eval::new(&sk.pool, &partial.known);
        let guards: Vec<Option<bool>> = sk.events.iter().map(|e| eval.cond(e.guard)).collect();
        for &c in &sk.constraints {
            if eval.cond(c) == Some(false) {
                return Ok(());
            }
        }
        if self.needs_complete() && eval.cond(sk.complete) == Some(false)
            || eval.cond(self.query.require) == Some(false)
            || self.query.no_fault && eval.cond(task.fault) == Some(true)
        {
            return Ok(());
        }
        for (p, truth) in &self.query.props {
            let mut register = |o: Observable| match o {
                Observable::Reg(t, r) => eval.term(sk.final_regs[t.0 as usize][r.0 as usize]),
                Observable::Mem { .. } => None,
            };
            if eval::prop(p, &mut |a| task.atom_value(a, &mut register)) == Some(!*truth) {
                return Ok(());
            }
        }
        if self.goal == Goal::States && self.cells.is_empty() {
            // Every completion ends in a state that was found already.
            let register = |o: &Observable| match o {
                Observable::Reg(t, r) => eval.term(sk.final_regs[t.0 as usize][r.0 as usize]),
                Observable::Mem { .. } => None,
            };
            let state: Option<FinalState> = task.observed.iter().map(register).collect();
            if state.is_some_and(|s| self.states.contains(&s)) {
                return Ok(());
            }
        }
        // A chosen source that does not execute, or an execution that a later decision took away.
        for (r, &w) in partial.source.iter().enumerate() {
            let Some(w) = w else { continue };
            if guards[r] == Some(false) || guards[w] == Some(false) || !self.may_read(&partial, r, w) {
                return Ok(());
            }
        }
        let algebra = Bounds {
            must: EventSet::from_fn(sk.len(), |e| guards[e.index()] == Some(true)),
            may: EventSet::from_fn(sk.len(), |e| guards[e.index()] != Some(false)),
        };
        if self.barriers_circular(&partial, &algebra) {
            return Ok(());
        }
        if !self.plausible(&partial, &algebra)? {
            return Ok(());
        }
        // Next decision: a read that surely executes at a known address.
        let mut eval = Eval::new(&sk.pool, &partial.known);
        for r in algebra.must.iter() {
            let event = &sk.events[r];
            if !event.is_read() || partial.source[r].is_some() || partial.astray[r] {
                continue;
            }
            let Some(address) = event.addr.and_then(|a| eval.term(a)) else { continue };
            let known_cell = sk.memory.at(address).filter(|&c| fits(sk, event, c));
            if known_cell.is_none() {
                let mut next = partial.clone();
                next.astray[r] = true;
                next.known.reads[r] = Some(0);
                return self.sources(next);
            }
            for w in (0..sk.len()).filter(|&w| sk.events[w].is_write() && algebra.may.has(w)) {
                if !self.may_read(&partial, r, w) {
                    continue;
                }
                let mut next = partial.clone();
                next.source[r] = Some(w);
                self.sources(next)?;
                if self.over() {
                    return Ok(());
                }
            }
            return Ok(());
        }
        if let Some(choice) = partial.known.choices.iter().position(Option::is_none) {
            for value in [true, false] {
                let mut next = partial.clone();
                next.known.choices[choice] = Some(value);
                self.sources(next)?;
                if self.over() {
                    return Ok(());
                }
            }
            return Ok(());
        }
        // Only values that depend on themselves are left.
        let draw = (0..sk.len()).find(|&r| partial.source[r].is_some() && partial.known.reads[r].is_none());
        if let Some(r) = draw {
            let term = sk.events[r].value.expect("reads have values");
            for &v in task.domains.of(term) {
                let mut next = partial.clone();
                next.known.reads[r] = Some(v);
                self.sources(next)?;
                if self.over() {
                    return Ok(());
                }
            }
            return Ok(());
        }
        debug_assert!(guards.iter().all(Option::is_some), "without open reads and choices all guards are known");
        self.settle(partial, algebra)
    }

    /// Whether read `r` may take its value from write `w`, as far as addresses are known.
    fn may_read(&self, partial: &Partial, r: usize, w: usize) -> bool {
        let sk = &self.task.sk;
        let mut eval = Eval::new(&sk.pool, &partial.known);
        let mut cell = |e: usize| {
            let address = sk.events[e].addr.and_then(|a| eval.term(a))?;
            Some(sk.memory.at(address).filter(|&c| fits(sk, &sk.events[e], c)).map(|c| sk.memory.cell(c).memory))
        };
        match (cell(r), cell(w)) {
            (Some(x), Some(y)) => x.is_some() && x == y,
            _ => self.task.domains.may_overlap(sk, r, w),
        }
    }

    /// Values follow sources. False if a drawn value turns out wrong.
    fn propagate(&self, partial: &mut Partial) -> bool {
        let sk = &self.task.sk;
        loop {
            let mut updates: Vec<(usize, i64)> = Vec::new();
            {
                let mut eval = Eval::new(&sk.pool, &partial.known);
                for (r, &source) in partial.source.iter().enumerate() {
                    let Some(w) = source else { continue };
                    let value = sk.events[w].value.expect("writes have values");
                    let Some(v) = eval.term(value) else { continue };
                    let v = sk.events[r].ty.wrap(v);
                    match partial.known.reads[r] {
                        Some(old) if old != v => return false,
                        Some(_) => {}
                        None => updates.push((r, v)),
                    }
                }
            }
            if updates.is_empty() {
                return true;
            }
            for (r, v) in updates {
                partial.known.reads[r] = Some(v);
            }
        }
    }

    fn barriers_circular(&self, partial: &Partial, algebra: &Bounds) -> bool {
        if !self.task.check_barrier_order {
            return false;
        }
        let sk = &self.task.sk;
        let mut eval = Eval::new(&sk.pool, &partial.known);
        let mut order = Rel::from_fn(sk.len(), |i, j| {
            i < j && sk.events[i].thread.is_some() && sk.events[i].thread == sk.events[j].thread
        });
        for &(a, b, cond) in &sk.barrier_order {
            if eval.cond(cond) == Some(true) {
                order.insert(a.index(), b.index());
            }
        }
        order.has_cycle(&algebra.must)
    }

    fn open_cells(&self, partial: &Partial) -> BTreeMap<String, Vec<Option<bool>>> {
        let mut eval = Eval::new(&self.task.sk.pool, &partial.known);
        let mut open = BTreeMap::new();
        for (name, base) in &self.task.bases {
            if let Base::Rel(r) = base
                && !r.open.is_empty()
            {
                open.insert(name.clone(), r.open.iter().map(|o| eval.cond(o.2)).collect());
            }
        }
        open
    }

    /// Bounds of the static nodes.
    fn fixed_values(&mut self, partial: &Partial, algebra: &Bounds) -> Result<Values<Bounds>, Stop> {
        let open = self.open_cells(partial);
        let key: Vec<Option<bool>> = open.values().flatten().copied().collect();
        if let Some((a, k, values)) = &self.cache
            && a == algebra
            && *k == key
        {
            return Ok(values.clone());
        }
        let leaves = PartialLeaves { task: self.task, algebra, open: &open, free: Vec::new() };
        let values = interpret(self.task.model, algebra, &leaves, &self.fixed, &Vec::new(), self.deadline.0);
        let values = values.ok_or(Stop::Time)?;
        self.cache = Some((algebra.clone(), key, values.clone()));
        Ok(values)
    }

    /// Whether no axiom fails for sure.
    fn plausible(&mut self, partial: &Partial, algebra: &Bounds) -> Result<bool, Stop> {
        let fixed = self.fixed_values(partial, algebra)?;
        let sk = &self.task.sk;
        let n = sk.len();
        let model = self.task.model;
        let bound = |id: NodeId| fixed[id.index()].as_deref().expect("bounds are static").rel();
        let mut free = Vec::new();
        for (i, f) in model.free.iter().enumerate() {
            let within = bound(f.within);
            if i == model.values.0 as usize {
                let mut rf = Bound { must: Rel::empty(n), may: Rel::empty(n) };
                for r in (0..n).filter(|&r| sk.events[r].is_read() && algebra.may.has(r)) {
                    match partial.source[r] {
                        Some(w) => {
                            if !within.may.has(w, r) {
                                return Ok(false);
                            }
                            rf.must.insert(w, r);
                            rf.may.insert(w, r);
                        }
                        None if partial.astray[r] => {}
                        None => {
                            for w in algebra.may.iter() {
                                if within.may.has(w, r) && self.may_read(partial, r, w) {
                                    rf.may.insert(w, r);
                                }
                            }
                        }
                    }
                }
                free.push(rf);
            } else {
                let must = f.containing.map_or_else(|| Rel::empty(n), |c| bound(c).must.clone());
                let mut may = within.may.clone().minus(&must.inverse());
                (0..n).for_each(|i| may.remove(i, i));
                free.push(Bound { must: must.and(&may), may });
            }
        }
        let values = self.run_model(partial, algebra, &fixed, free)?;
        Ok(self.axioms(algebra, &values) != Truth::No && self.flags(algebra, &values) != Truth::No)
    }

    fn run_model(
        &self,
        partial: &Partial,
        algebra: &Bounds,
        fixed: &Values<Bounds>,
        free: Vec<Bound<Rel>>,
    ) -> Result<Values<Bounds>, Stop> {
        // Static nodes are all in `fixed`, so no base relation is built again.
        let open = if self.wanted.iter().zip(fixed).any(|(w, f)| *w && f.is_none()) {
            self.open_cells(partial)
        } else {
            BTreeMap::new()
        };
        let leaves = PartialLeaves { task: self.task, algebra, open: &open, free };
        interpret(self.task.model, algebra, &leaves, &self.wanted, fixed, self.deadline.0).ok_or(Stop::Time)
    }

    fn axioms(&self, algebra: &Bounds, values: &Values<Bounds>) -> Truth {
        let mut all = Truth::Yes;
        for (a, _) in self.task.model.axioms.iter().zip(&self.query.axioms).filter(|(_, on)| **on) {
            let value = values[a.node.index()].as_deref().expect("axioms are wanted");
            match negate(algebra.holds(a.test, value), a.negated) {
                Truth::No => return Truth::No,
                Truth::Unknown => all = Truth::Unknown,
                Truth::Yes => {}
            }
        }
        all
    }

    /// Whether one of the flags asked for is raised.
    fn flags(&self, algebra: &Bounds, values: &Values<Bounds>) -> Truth {
        let Some(flags) = &self.query.flags else { return Truth::Yes };
        let mut any = Truth::No;
        for &f in flags {
            let flag = &self.task.model.flags[f];
            let value = values[flag.node.index()].as_deref().expect("flags are wanted");
            match negate(algebra.holds(flag.test, value), flag.negated) {
                Truth::Yes => return Truth::Yes,
                Truth::Unknown => any = Truth::Unknown,
                Truth::No => {}
            }
        }
        any
    }

    /// All sources, values and choices are known: go on with final writes and orders.
    fn settle(&mut self, partial: Partial, algebra: Bounds) -> Result<(), Stop> {
        let task = self.task;
        {
            let mut eval = Eval::new(&task.sk.pool, &partial.known);
            if eval.cond(self.query.require) != Some(true)
                || self.query.no_fault && eval.cond(task.fault) != Some(false)
                || self.needs_complete() && eval.cond(task.sk.complete) != Some(true)
            {
                return Ok(());
            }
        }
        let fixed = self.fixed_values(&partial, &algebra)?;
        let rel = |id: NodeId| fixed[id.index()].as_deref().expect("bounds are static").rel().may.clone();
        let reads_from = Rel::from_pairs(
            task.sk.len(),
            partial.source.iter().enumerate().filter_map(|(r, w)| w.map(|w| (w, r))),
        );
        let mut orders = Vec::new();
        let mut covering = Vec::new();
        for f in &task.model.free {
            covering.push(f.covering.map(rel));
            orders.push(match f.shape {
                Shape::Function => None,
                Shape::Order => match OrderBounds::new(rel(f.within), f.containing.map(rel), &algebra.must) {
                    Some(order) => Some(order),
                    None => return Ok(()),
                },
            });
        }
        let settled = Settled { partial, algebra, fixed, reads_from, covering };
        self.finals(&settled, Chosen { orders, finals: BTreeMap::new() })
    }

    /// Chooses the final write of the next observed cell.
    fn finals(&mut self, settled: &Settled, chosen: Chosen) -> Result<(), Stop> {
        self.tick()?;
        let task = self.task;
        let Some(&index) = self.cells.get(chosen.finals.len()) else {
            return self.evaluate(settled, chosen);
        };
        let here: Vec<usize> = {
            let mut eval = Eval::new(&task.sk.pool, &settled.partial.known);
            task.at_cell[index]
                .iter()
                .filter(|(w, cond)| settled.algebra.must.has(*w) && eval.cond(*cond) == Some(true))
                .map(|(w, _)| *w)
                .collect()
        };
        let order = task.model.finals.0 as usize;
        for &last in &here {
            let mut next = chosen.clone();
            let bounds = next.orders[order].as_mut().expect("`final` names an order");
            if here.iter().all(|&w| w == last || bounds.exclude(last, w)) {
                next.finals.insert(task.observed_cells[index], last);
                self.finals(settled, next)?;
                if self.over() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// All final values are known: compare with what is asked.
    fn evaluate(&mut self, settled: &Settled, chosen: Chosen) -> Result<(), Stop> {
        let task = self.task;
        let mut state = None;
        {
            let mut eval = Eval::new(&task.sk.pool, &settled.partial.known);
            let mut value = |o: Observable| match o {
                Observable::Reg(t, r) => eval.term(task.sk.final_regs[t.0 as usize][r.0 as usize]),
                o => {
                    let w = *chosen.finals.get(&task.sk.observed_cell(o)?)?;
                    eval.term(task.sk.events[w].value?)
                }
            };
            for (p, truth) in &self.query.props {
                if eval::prop(p, &mut |a| task.atom_value(a, &mut value)) != Some(*truth) {
                    return Ok(());
                }
            }
            if self.goal == Goal::States {
                state = task.observed.iter().map(|&o| value(o)).collect::<Option<Vec<i64>>>();
            }
        }
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
    fn orders(&mut self, settled: &Settled, chosen: Chosen, accepted: &mut Option<Execution>) -> Result<(), Stop> {
        self.tick()?;
        let free = chosen
            .orders
            .iter()
            .map(|o| match o {
                Some(o) => Bound { must: o.must.clone(), may: o.may.clone() },
                None => Bound { must: settled.reads_from.clone(), may: settled.reads_from.clone() },
            })
            .collect();
        let values = self.run_model(&settled.partial, &settled.algebra, &settled.fixed, free)?;
        let (axioms, flags) = (self.axioms(&settled.algebra, &values), self.flags(&settled.algebra, &values));
        if axioms == Truth::No || flags == Truth::No {
            return Ok(());
        }
        let executed = &settled.algebra.must;
        let mut branches: Vec<Chosen> = Vec::new();
        let mut split = |f: usize, edits: [(bool, usize, usize); 2]| {
            for (include, i, j) in edits {
                let mut next = chosen.clone();
                let order = next.orders[f].as_mut().expect("orders are split, functions are not");
                if if include { order.require(i, j) } else { order.exclude(i, j) } {
                    branches.push(next);
                }
            }
        };
        let undecided = chosen.orders.iter().zip(&settled.covering).enumerate().find_map(|(f, (o, c))| {
            let (o, c) = (o.as_ref()?, c.as_ref()?);
            let open = |&(i, j): &(usize, usize)| {
                i != j && executed.has(i) && executed.has(j) && !o.must.has(i, j) && !o.must.has(j, i)
            };
            c.iter().find(open).map(|(i, j)| (f, i, j))
        });
        if let Some((f, i, j)) = undecided {
            split(f, [(true, i, j), (true, j, i)]);
        } else if axioms == Truth::Yes && flags == Truth::Yes {
            let cyclic = |o: &OrderBounds| o.must.has_cycle(executed);
            if !chosen.orders.iter().flatten().any(cyclic) {
                *accepted = Some(self.execution(settled, &chosen));
            }
            return Ok(());
        } else {
            let open = chosen
                .orders
                .iter()
                .enumerate()
                .find_map(|(f, o)| o.as_ref().and_then(OrderBounds::first_open).map(|(i, j)| (f, i, j)));
            let (f, i, j) = open.expect("with every pair decided, bounds are exact");
            split(f, [(false, i, j), (true, i, j)]);
        }
        for next in branches {
            self.orders(settled, next, accepted)?;
            if accepted.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Final writes of all observed cells: those chosen, and where the query asked for none, a write that nothing
    /// follows.
    fn all_finals(&self, settled: &Settled, chosen: &Chosen) -> BTreeMap<CellId, usize> {
        let (task, executed) = (self.task, &settled.algebra.must);
        let mut finals = chosen.finals.clone();
        let Some(order) = chosen.orders[task.model.finals.0 as usize].as_ref() else { return finals };
        let mut eval = Eval::new(&task.sk.pool, &settled.partial.known);
        for (cell, writers) in task.observed_cells.iter().zip(&task.at_cell) {
            let here: Vec<usize> = writers
                .iter()
                .filter(|(w, cond)| executed.has(*w) && eval.cond(*cond) == Some(true))
                .map(|(w, _)| *w)
                .collect();
            if let Some(&last) = here.iter().find(|&&w| here.iter().all(|&v| !order.must.has(w, v))) {
                finals.entry(*cell).or_insert(last);
            }
        }
        finals
    }

    fn execution(&self, settled: &Settled, chosen: &Chosen) -> Execution {
        Execution {
            executed: settled.algebra.must.clone(),
            reads: settled.partial.known.reads.clone(),
            choices: settled.partial.known.choices.iter().map(|c| c.unwrap_or(false)).collect(),
            free: chosen
                .orders
                .iter()
                .map(|o| o.as_ref().map_or_else(|| settled.reads_from.clone(), |o| o.must.clone()))
                .collect(),
            finals: self.all_finals(settled, chosen),
        }
    }
}

fn negate(t: Truth, negated: bool) -> Truth {
    match (t, negated) {
        (Truth::Yes, true) => Truth::No,
        (Truth::No, true) => Truth::Yes,
        (t, _) => t,
    }
}
