//! `fencepost check`: decides every expectation.

use std::ops::ControlFlow;

use super::args::CheckArgs;
use super::run::Run;
use super::terminal::Terminal;
use super::{decide, plan};
use crate::litmus::LitmusTest;
use crate::report::{Line, Subject};

/// Runs it; returns the exit code.
pub(super) fn run(args: &CheckArgs, terminal: &Terminal) -> u8 {
    check(args, terminal).unwrap_or_else(|code| code)
}

fn check(args: &CheckArgs, terminal: &Terminal) -> Result<u8, u8> {
    let mut run = Run::new(terminal, &args.question, Subject::Answers)?;
    let files = run.load(&args.paths);
    if args.question.models.is_empty() {
        let alone = |t: &&LitmusTest| t.expect.is_empty() && !t.runs.is_empty();
        run.of_runs = files.iter().flat_map(|f| &f.tests).filter(alone).count();
    }
    let units = run.plan(&files, |test, model| Ok(plan::expectations(test, model, args.all_properties)));
    let mut outputs = run.open(&units, false)?;
    run.decide(&units, decide::answers, |run, mut line| {
        // The evidence is for `ask` and `show`.
        line.drop_evidence();
        count(run, &line);
        outputs.line(&line)?;
        let failed = line.met() == Some(false) || line.answer.defect.is_some();
        if args.fail_fast && failed {
            run.summary.stopped = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    Ok(run.end(outputs))
}

/// Counts a line, and remembers what the exit code depends on.
fn count(run: &mut Run<'_>, line: &Line) {
    run.summary.add(line);
    run.events.answered = true;
    run.events.unmet |= line.met() == Some(false);
    run.events.undecided |= line.answer.verdict.reason().is_some();
}
