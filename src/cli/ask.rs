//! `fencepost ask`: is an outcome possible, and why?

use std::slice;

use super::args::AskArgs;
use super::plan::{self, Question};
use super::run::Run;
use super::terminal::Terminal;
use super::{decide, seams};
use diag::Diagnostic;
use program::litmus::LitmusTest;
use report::{ReportFormat, ReportSubject};

/// Runs it; returns the exit code.
pub(super) fn run(args: &AskArgs, terminal: &Terminal) -> u8 {
    ask(args, terminal).unwrap_or_else(|code| code)
}

fn ask(args: &AskArgs, terminal: &Terminal) -> Result<u8, u8> {
    let mut run = Run::new(terminal, &args.question, ReportSubject::Answers)?;
    run.sources = args.sources.options();
    // Questions whose answers no output shows are skipped. Other formats name axioms, and propose a
    // repair for an unmet expectation.
    let shown =
        run.formats(|format, quiet| format.explains() && !(quiet && format == ReportFormat::Human));
    run.settings.explain = shown;
    run.settings.explain_unmet = !shown;
    run.settings.name_axioms = run.formats(|format, _| format != ReportFormat::Human);
    let files = run.load(slice::from_ref(&args.test));
    let units = run.plan(&files, |test, model| {
        question(test, model, args.outcome.as_deref())
    });
    run.open(&units, true)?;
    run.decide(&units, decide::answers, |run, line| {
        run.summary.add(&line);
        // Whether an expectation is met is the business of `check`: here, every answer will do.
        run.events.answered = true;
        run.events.undecided |= line.answer.verdict.reason().is_some();
        run.outputs.line(&line)
    });
    Ok(run.end())
}

/// The question about an outcome, or the test's own.
pub(super) fn question(
    test: &LitmusTest,
    model: &str,
    outcome: Option<&str>,
) -> Result<Vec<Question>, Vec<Diagnostic>> {
    let Some(text) = outcome else {
        if test.launch.is_some() {
            return Ok(plan::of_kernel(test));
        }
        return Ok(vec![plan::own_condition(test, model)]);
    };
    let prop = seams::parse_prop(test, text)?;
    Ok(vec![Question::of_outcome(prop, text.trim().to_owned())])
}
