//! `fencepost outcomes`: every outcome of a test.

use std::slice;

use super::args::OutcomesArgs;
use super::decide;
use super::run::Run;
use super::terminal::Terminal;
use report::ReportSubject;

/// Runs it; returns the exit code: 3 if a list is incomplete.
pub(super) fn run(args: &OutcomesArgs, terminal: &Terminal) -> u8 {
    outcomes(args, terminal).unwrap_or_else(|code| code)
}

fn outcomes(args: &OutcomesArgs, terminal: &Terminal) -> Result<u8, u8> {
    let mut run = Run::new(terminal, &args.question, ReportSubject::Outcomes)?;
    run.sources = args.sources.options();
    let files = run.load(slice::from_ref(&args.test));
    let units = run.plan(&files, |_, _| Ok(Vec::new()));
    run.open(&units, false)?;
    let also = decide::Also {
        definedness: true,
        races: args.races,
    };
    run.decide(
        &units,
        |unit, settings| decide::outcomes(unit, settings, also),
        |run, table| {
            run.summary.add_table(&table);
            run.events.answered = true;
            run.events.undecided |= !table.outcomes.complete;
            run.outputs.table(&table)
        },
    );
    Ok(run.end())
}
