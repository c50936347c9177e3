//! Finds the values that executions compute, so that reports list only forbidden outcomes made of
//! them.
//!
//! An observable can take its value at the end of some consistent execution. It can also take a
//! written value: an initial value, a constant that the code writes, or a value that a consistent
//! execution writes. All other values require reads that no axiom allows, such as a sum of values
//! that a barrier separates. There may be thousands.
//!
//! # Invariants
//! - It examines one of the executions that end in a state. Values that only the others write may
//!   be missing.

use std::collections::{BTreeMap, BTreeSet};

use super::eval::{Assignment, Eval};
use super::execution::Execution;
use super::facts::Facts;
use super::query::FinalState;
use program::CmpOp;
use program::litmus::{Atom, Observable, Prop};
use program::memory::CellId;

/// The number of ways to assign values to the reads of a register that it tries.
const WAYS: usize = 256;

/// By the memory of a cell: the numbers written there.
type Numbers = BTreeMap<CellId, BTreeSet<i64>>;

/// The proposition that every observable has a value that executions compute. `consistent` are the
/// final states of consistent executions, and `executions` are some of these.
pub fn computed(facts: &Facts<'_>, consistent: &[FinalState], executions: &[Execution]) -> Prop {
    let mut numbers = numbers(facts);
    executions
        .iter()
        .for_each(|execution| written(facts, execution, &mut numbers));
    Prop::And(
        facts
            .observed
            .iter()
            .enumerate()
            .map(|(i, &o): (usize, &Observable)| {
                let ty = facts.observable_ty(o);
                let mut values: BTreeSet<i64> =
                    consistent.iter().map(|state| ty.wrap(state[i])).collect();
                values.extend(come_to(facts, &numbers, o).into_iter().map(|v| ty.wrap(v)));
                let values = values.into_iter().map(|v| equals(facts, o, v));
                Prop::Or(values.collect())
            })
            .collect(),
    )
}

fn numbers(facts: &Facts<'_>) -> Numbers {
    let (sk, mut numbers) = (&facts.sk, Numbers::new());
    for (e, event) in sk
        .events
        .iter()
        .enumerate()
        .filter(|(_, event)| event.is_write())
    {
        let Some(value) = event.value.and_then(|value| sk.pool.as_const(value)) else {
            continue;
        };
        for cell in &facts.domains.cells[e] {
            numbers
                .entry(sk.memory.cell(*cell).memory)
                .or_default()
                .insert(value);
        }
    }
    numbers
}

/// Adds the values that an execution writes.
fn written(facts: &Facts<'_>, execution: &Execution, numbers: &mut Numbers) {
    let known = execution.known();
    let mut eval = Eval::new(&facts.sk, &known);
    for e in execution
        .executed
        .iter()
        .filter(|&e| facts.sk.events[e].is_write())
    {
        if let (Some(Some(cell)), Some(value)) = (eval.memory(e), eval.value(e)) {
            numbers.entry(cell).or_default().insert(value);
        }
    }
}

/// The proposition that an execution ends in a state.
pub fn ends_in(facts: &Facts<'_>, state: &FinalState) -> Prop {
    let values = facts.observed.iter().zip(state);
    Prop::And(values.map(|(&o, &v)| equals(facts, o, v)).collect())
}

/// The proposition that an observable has a value.
fn equals(facts: &Facts<'_>, o: Observable, v: i64) -> Prop {
    Prop::Cmp(
        CmpOp::Eq,
        facts.observable_ty(o),
        Atom::Observable(o).into(),
        Atom::Const(v).into(),
    )
}

/// The numbers that an observable can take.
fn come_to(facts: &Facts<'_>, numbers: &Numbers, o: Observable) -> BTreeSet<i64> {
    let sk = &facts.sk;
    if let Some(cell) = sk.observed_cell(o) {
        return numbers.get(&cell).cloned().unwrap_or_default();
    }
    let Some(term) = sk.observed_register(o) else {
        return BTreeSet::new();
    };
    let (mut found, mut open) = (BTreeSet::new(), vec![Assignment::nothing(sk)]);
    for _ in 0..WAYS {
        let Some(known) = open.pop() else { break };
        let mut eval = Eval::new(sk, &known);
        if let Some(value) = eval.term(term) {
            found.insert(value);
        } else if let Some(read) = eval.waits_for(term) {
            let cells = facts.domains.cells[read]
                .iter()
                .filter_map(|c| numbers.get(&sk.memory.cell(*c).memory));
            for value in cells.flatten().collect::<BTreeSet<_>>() {
                let mut more = known.clone();
                more.reads[read] = Some(sk.events[read].ty.wrap(*value));
                open.push(more);
            }
        }
    }
    found
}
