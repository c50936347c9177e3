//! Why a question stays open although nothing ran out: loop bounds, values out of thin air, accesses that go astray.

use crate::eval::Assignment;
use crate::execution::Execution;
use crate::replay;
use crate::task::Task;

/// Why values out of thin air leave a question open.
pub const OPEN_VALUES: &str = "values out of thin air: this model does not exclude them, and they are too many";

/// Why a loop bound leaves a question open.
pub fn loop_bound(bound: u32) -> String {
    format!("loop bound: a thread can go on after {bound} iterations")
}

/// Names an access of the execution that names no memory.
pub fn astray(task: &Task<'_>, execution: &Execution) -> String {
    let sk = &task.sk;
    let known = Assignment {
        reads: execution.reads.clone(),
        choices: execution.choices.iter().map(|&b| Some(b)).collect(),
    };
    let mut accesses = (0..sk.len()).filter(|&e| execution.executed.has(e) && task.domains.may_fault[e]);
    let culprit = accesses.find(|&e| replay::astray(task, &known, e));
    match culprit.and_then(|e| Some((e, sk.events[e].thread?))) {
        Some((e, t)) => {
            let instr = &sk.program.thread(t).code[sk.events[e].instr];
            format!(
                "`{}` ({}, line {}) can access memory that no location names, or that it may not access",
                instr.text,
                sk.program.thread(t).name,
                instr.line
            )
        }
        None => "an access can name no memory".to_string(),
    }
}
