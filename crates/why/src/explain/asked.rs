//! The subject of a condition. Of several proofs, an explanation shows the one that speaks of it.

use engine::facts::Facts;
use program::litmus::{Observable, observables};
use program::{Op, RegId, Thread};

use super::derive::Step;
use super::links;

/// By event, the last observable of the condition that it may decide, counted from 1.
pub(crate) struct LastObservables(Vec<u32>);

/// The subject of a proof: the last observable that the condition names, which is most often the
/// surprise; 0: none.
pub(crate) type Said = u32;

impl LastObservables {
    /// For the test's condition.
    pub(crate) fn new(facts: &Facts<'_>) -> LastObservables {
        let sk = &facts.sk;
        let asked = observables(&facts.task.test.condition, &[]);
        let sources: Vec<Vec<RegId>> = asked
            .iter()
            .map(|o| sources(&sk.program.threads, *o))
            .collect();
        let decides = |e: usize, (observable, sources): (&Observable, &Vec<RegId>)| {
            let event = &sk.events[e];
            let op = event
                .thread
                .map(|t| &sk.program.thread(t).code[event.instr].op);
            match *observable {
                Observable::Reg(t, _) => {
                    event.thread == Some(t)
                        && event.is_read()
                        && op
                            .and_then(Op::defines)
                            .is_some_and(|dst| sources.contains(&dst))
                }
                Observable::Mem { loc, .. } => {
                    let memory = |&cell| sk.memory.cell(sk.memory.cell(cell).memory).location.0;
                    let object = sk.program.object(loc);
                    event.thread.is_some()
                        && event.is_write()
                        && facts.domains.cells[e].iter().any(|c| memory(c) == object)
                }
            }
        };
        LastObservables(
            (0..sk.len())
                .map(|e| {
                    let number = asked
                        .iter()
                        .zip(&sources)
                        .rposition(|which| decides(e, which));
                    number.map_or(0, |number| number as u32 + 1)
                })
                .collect(),
        )
    }

    /// The subject of some steps.
    pub(crate) fn said<'s>(&self, steps: impl IntoIterator<Item = &'s Step>) -> Said {
        let mut events = Vec::new();
        steps
            .into_iter()
            .for_each(|step| links::events(step, &mut events));
        events.into_iter().map(|e| self.0[e]).max().unwrap_or(0)
    }
}

/// The registers whose values a register is made of.
fn sources(threads: &[Thread], observable: Observable) -> Vec<RegId> {
    let Observable::Reg(t, reg) = observable else {
        return Vec::new();
    };
    let code = &threads[usize::from(t.0)].code;
    let mut all = vec![reg];
    let mut done = 0;
    while let Some(&reg) = all.get(done) {
        done += 1;
        for instr in code {
            if let Op::Assign { dst, value } = &instr.op
                && *dst == reg
            {
                value.registers(&mut |from| {
                    if !all.contains(&from) {
                        all.push(from);
                    }
                });
            }
        }
    }
    all
}
