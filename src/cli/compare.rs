//! `fencepost compare`: the answers of several models about the same tests, and why they differ.

use super::args::{CompareArgs, QuestionArgs};
use super::decide::{self, Decided};
use super::load::File;
use super::panics;
use super::plan::{self, Question, RequestedModels, Unit};
use super::run::Run;
use super::settings::Settings;
use super::terminal::Terminal;
use diag::Diagnostic;
use front::mapping::Mapping;
use program::litmus::{LitmusTest, Quantifier, Reachability};
use report::{Column, Comparison, ReportSubject};
use verdict::{Finding, Relation};
use why::Ask;
use why::difference::{self, Means, Side};

/// Runs it; returns the exit code.
pub(super) fn run(args: &CompareArgs, terminal: &Terminal) -> u8 {
    compare(args, terminal).unwrap_or_else(|code| code)
}

fn compare(args: &CompareArgs, terminal: &Terminal) -> Result<u8, u8> {
    let mut models = args.compared.clone();
    models.extend(args.question.models.iter().cloned());
    if models.iter().collect::<indexmap::IndexSet<_>>().len() == 1 {
        let plain = Diagnostic::plain("too-few-models", "a comparison needs two models");
        let help = "name them as in `--models opencl,ptx`, or name none for those of the tests' \
        expectations";
        terminal.diagnose(&plain.help(help));
        return Err(super::exit::INVALID);
    }
    let question = QuestionArgs {
        models,
        ..args.question.clone()
    };
    let mut run = Run::new(terminal, &question, ReportSubject::Comparisons)?;
    run.sources = args.sources.options();
    let selection = run.select(&args.select)?;
    let files = run.load(&args.paths);
    let mut asked = question.models.clone();
    if let Some(path) = &args.target {
        let targets = run.load(std::slice::from_ref(path));
        if run.events.invalid {
            return Ok(run.end());
        }
        let mapping = by_hand(&files, &targets).map_err(|diagnostic| {
            terminal.diagnose(&diagnostic);
            super::exit::INVALID
        })?;
        if asked.is_empty() {
            asked = [mapping.from, mapping.to]
                .map(|dialect| dialect.default_model().to_owned())
                .to_vec();
        }
        run.settings.mapping = Some(Box::leak(Box::new(mapping)));
    }
    let mut units = run.plan_for(&files, RequestedModels::Expected(&asked), |test, model| {
        Ok(questions(test, model))
    });
    selection.narrow(&mut units);
    run.open(&units, false)?;
    // A test that one model alone can judge gives nothing to compare.
    let same = |a: &Unit<'_>, b: &Unit<'_>| (a.path, &a.test.name) == (b.path, &b.test.name);
    let alone = units
        .chunk_by(same)
        .filter(|group| group.len() == 1)
        .count();
    if alone > 0 {
        let s = if alone == 1 { "" } else { "s" };
        let message = format!("{alone} test{s} passed over: only one of the models applies");
        run.complain(&[Diagnostic::plain("nothing-to-compare", message).warning()]);
        run.summary.passed_over += alone;
    }
    let groups: Vec<&[Unit<'_>]> = units
        .chunk_by(same)
        .filter(|group| group.len() > 1)
        .collect();
    run.decide(
        &groups,
        |group, settings| judge(group, settings),
        |run, comparison| {
            run.summary.add_comparison(&comparison);
            run.events.answered = true;
            // A difference that the test expects is no failure, nor is one without an expectation.
            run.events.unmet |= comparison
                .findings
                .iter()
                .any(|f| f.relation == Relation::Violated)
                || comparison
                    .columns
                    .iter()
                    .flat_map(|c| &c.lines)
                    .any(|line| line.status().fails());
            fn undecided(c: &Column) -> bool {
                let verdict = c.lines.first().map(|line| &line.answer.verdict);
                verdict.is_none_or(|v| v.reason().is_some())
            }
            run.events.undecided |= comparison.columns.iter().any(undecided)
                || comparison
                    .findings
                    .iter()
                    .any(|f| f.relation == Relation::Undecided);
            run.outputs.comparison(&comparison)
        },
    );
    Ok(run.end())
}

/// The mapping of the one test of a run to the one that is its target.
fn by_hand(sources: &[File], targets: &[File]) -> Result<Mapping, Box<Diagnostic>> {
    let one = |files: &'_ [File], which: &str| {
        let mut tests = files.iter().flat_map(|file| &file.tests);
        match (tests.next(), tests.count()) {
            (Some(test), 0) => Ok(test.clone()),
            (first, more) => {
                let count = usize::from(first.is_some()) + more;
                let message = format!(
                    "`--target` takes one source test and one target test; the {which} has \
                    {count} tests"
                );
                Err(Box::new(Diagnostic::plain("no-pair", message)))
            }
        }
    };
    let (source, target) = (one(sources, "source")?, one(targets, "target")?);
    Mapping::by_hand(&source, &target).map_err(|why| {
        let message = format!(
            "`{}` cannot be the target of `{}`: {why}",
            target.file.name, source.file.name
        );
        let help = "name registers and locations of the target as in the source";
        Box::new(Diagnostic::plain("no-pair", message).help(help))
    })
}

/// The condition, and the properties that may make its answer worthless. Every model gets the same
/// question: if the condition is `required` under one of them, the question is about its violation.
pub(super) fn questions(test: &LitmusTest, model: &str) -> Vec<Question> {
    let mut own = plan::own_condition(test, model);
    let required = test
        .expect
        .values()
        .any(|e| e.reachability == Some(Reachability::Required));
    if required && own.quantifier != Quantifier::ForAll.name() {
        own = Question {
            ask: Ask::Reachability {
                prop: test.condition.clone(),
                negate: true,
            },
            quantifier: Quantifier::ForAll.name(),
            expected: None,
            ..own
        };
    }
    let quantifier = own.quantifier;
    let [race, undefined] = [Ask::Race, Ask::Undefined].map(|ask| Question {
        quantifier,
        ..Question::new(test, ask, None)
    });
    vec![Question { axiom: None, ..own }, race, undefined]
}

/// All answers of one test, and the conclusions from them.
pub(super) fn judge(units: &[Unit<'_>], settings: &Settings) -> Decided<Comparison> {
    let mut defects = Vec::new();
    let mut columns = Vec::new();
    for unit in units {
        let mut answers = decide::answers(unit, settings);
        // The lines say whether it is defined.
        let outcomes = decide::outcomes(unit, settings, decide::Also::default());
        defects.append(&mut answers.defects);
        defects.extend(outcomes.defects);
        for line in &mut answers.results {
            // `ask` gives the evidence.
            line.drop_evidence();
        }
        columns.extend(outcomes.results.into_iter().map(|table| Column {
            lines: std::mem::take(&mut answers.results),
            outcomes: table.outcomes,
        }));
    }
    let means = Means {
        engine: settings.engine,
        limits: settings.limits,
        set: settings.set.clone(),
    };
    let findings = (1..units.len().min(columns.len()))
        .map(|i| {
            let (a, b) = (side(&units[0], &columns[0]), side(&units[i], &columns[i]));
            panics::catch(|| difference::finding(&a, &b, &means)).unwrap_or_else(|message| {
                Finding {
                    left: units[0].model.request.clone(),
                    right: units[i].model.request.clone(),
                    differs: None,
                    relation: Relation::Undecided,
                    rule: None,
                    by: None,
                    places: Vec::new(),
                    why: format!("a defect of Fencepost: {message}"),
                }
            })
        })
        .collect();
    let (path, test) = (units[0].path.to_owned(), units[0].test.name.clone());
    Decided::new(
        vec![Comparison {
            path,
            test,
            columns,
            findings,
        }],
        defects,
    )
}

/// The results of one unit.
fn side<'a>(unit: &'a Unit<'_>, column: &'a Column) -> Side<'a> {
    Side {
        label: &unit.model.request,
        model: &unit.model.model,
        mapping: unit.mapping,
        source: unit.source,
        test: &unit.test,
        condition: match unit.questions.first().map(|q| &q.ask) {
            Some(ask @ Ask::Reachability { .. }) => ask.clone(),
            _ => Ask::Reachability {
                prop: None,
                negate: false,
            },
        },
        answers: column
            .lines
            .iter()
            .map(|line| (&line.property, &line.answer))
            .collect(),
        outcomes: &column.outcomes,
    }
}
