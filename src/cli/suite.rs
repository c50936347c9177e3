//! `fencepost distinguish MODEL --suite`: the minimal conformance suite of a model.
//!
//! All engines decide every test before it is written; a test that they contradict is a defect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::args::DistinguishArgs;
use super::distinguish::Side;
use super::run::Run;
use super::{import, seams};
use cat::model::clauses::{Clause, ModelText};
use cat::model::ir::Model;
use cat::model::{Library, OnDisk, Shipped};
use diag::Diagnostic;
use distinguish::{
    Alphabet, DifferingProgram, JudgeSetup, LetterMeanings, SearchRequest, SuiteRequest, Tier,
};
use engine::Engine;
use engine::skeleton::signature::signature;
use report::{ConformanceSuite, SuiteTest, Unshown};
use verdict::{Reason, Verdict};
use why::Session;

/// The largest size of programs that are not minimal: each clause needs a search.
const UNSHOWN: usize = 3;

/// Makes and reports the suite.
pub(super) fn suite(
    run: &mut Run<'_>,
    args: &DistinguishArgs,
    side: &Side,
    alphabet: &Alphabet,
) -> Result<(), u8> {
    if let Some(mapping) = run.settings.mapping {
        let message = format!(
            "a suite is made in the language of its model, not through mapping `{}`",
            mapping.name
        );
        run.terminal
            .diagnose(&Diagnostic::plain("unfit-mapping", message).help("leave out `--mapping`"));
        return Err(super::exit::INVALID);
    }
    let model: &Model = &side.model.model;
    let refused = |run: &Run<'_>, why: String| {
        run.terminal
            .diagnose(&Diagnostic::plain("cannot-distinguish", why));
        super::exit::INVALID
    };
    let set = run.settings.set.clone();
    let learnt = JudgeSetup {
        model,
        mapping: None,
        set: &set,
        learnt: None,
    };
    let learnt = Arc::new(LetterMeanings::new(learnt, alphabet).map_err(|why| refused(run, why))?);
    let judged = JudgeSetup {
        model,
        mapping: None,
        set: &set,
        learnt: Some(&learnt),
    };
    let signature = signature();
    let main = model.files[0].clone();
    let shipped = Library::model(&side.model.label).is_some_and(|file| file.text == main.text);
    let on_disk = OnDisk::of(main.name.as_ref());
    let text = ModelText {
        main,
        name: &side.model.label,
        includes: if shipped { &Shipped } else { &on_disk },
        signature: &signature,
        prelude: Some(
            args.question
                .prelude
                .as_deref()
                .unwrap_or(alphabet.dialect.row().prelude),
        ),
    };
    let invalid = |run: &Run<'_>, errors: Vec<Diagnostic>| {
        run.terminal.diagnose_all(&errors);
        super::exit::INVALID
    };
    let (whole, clauses) = text.clauses().map_err(|errors| invalid(run, errors))?;
    let said =
        distinguish::says(judged.instead(&whole), alphabet).map_err(|why| refused(run, why))?;
    // A clause says nothing here if its removal leaves no model, one that no longer judges such
    // programs, or one with the same answers.
    let (clauses_of, mutants): (Vec<&Clause>, Vec<Model>) = clauses
        .iter()
        .filter_map(|clause| Some((clause, text.without(clause).ok()?)))
        .filter(|(_, mutant)| {
            distinguish::says(judged.instead(mutant), alphabet).is_ok_and(|of| of != said)
        })
        .unzip();
    let deadline = run.settings.limits.timeout.map(|t| Instant::now() + t);
    let jobs = run.pool.jobs();
    let size = usize::from(args.size);
    let wanted = SuiteRequest {
        model: judged,
        mutants: &mutants,
        alphabet,
        size,
        jobs,
        deadline,
    };
    let made = distinguish::suite(&wanted).map_err(|why| refused(run, why))?;
    let mut names = BTreeMap::new();
    let mut tests = Vec::new();
    for minimal in &made.tests {
        let why = format!(
            "`{}` forbids it, and allows every weakening of it.",
            side.model.label
        );
        let decided = decided(
            run,
            side,
            (alphabet, &mut names),
            (&minimal.test, Verdict::Forbidden),
            &why,
        );
        let Some((test, program)) = decided else {
            continue;
        };
        let clauses = minimal
            .needs
            .iter()
            .map(|&m| clauses_of[m].name.clone())
            .collect();
        tests.push(SuiteTest {
            test,
            size: minimal.test.letters.len(),
            clauses,
            program,
        });
    }
    let mut unshown = Vec::new();
    // Clauses that time ran out for.
    let mut late = 0;
    for (number, (clause, mutant)) in clauses_of.iter().zip(&mutants).enumerate() {
        if number >= made.asked {
            late += 1;
            continue;
        }
        if made
            .tests
            .iter()
            .any(|minimal| minimal.needs.contains(&number))
        {
            continue;
        }
        let mut shown = Unshown {
            clause: clause.name.clone(),
            test: None,
            verdict: None,
            program: None,
            complete: true,
        };
        if stop::late(deadline) {
            late += 1;
            continue;
        }
        for verdict in [Verdict::Forbidden, Verdict::Allowed] {
            let (allows, forbids) = match verdict {
                Verdict::Forbidden => (judged.instead(mutant), judged),
                _ => (judged, judged.instead(mutant)),
            };
            let (allows, forbids) = (vec![allows], vec![forbids]);
            let size = size.min(UNSHOWN);
            let tiers = &[Tier::Critical, Tier::Other];
            let sought = SearchRequest {
                allows,
                forbids,
                alphabet,
                size,
                tiers,
                all: false,
                jobs,
                deadline,
            };
            let answer = distinguish::search(&sought).map_err(|why| refused(run, why))?;
            shown.complete &= answer.stopped.is_none();
            let (word, label) = (verdict.word(), &side.model.label);
            let clause = clause.name.replace('\\', "\\\\");
            let why = format!("`{label}` says {word} of it, and the opposite without `{clause}`.");
            let first = answer.found.first().map(|found| (found, verdict));
            let found =
                first.and_then(|first| decided(run, side, (alphabet, &mut names), first, &why));
            if let Some((test, program)) = found {
                shown = Unshown {
                    test: Some(test),
                    verdict: Some(word.to_owned()),
                    program: Some(program),
                    ..shown
                };
                break;
            }
        }
        unshown.push(shown);
    }
    if let Some(folder) = &args.output {
        let programs = tests.iter().map(|t| (&t.test, &t.program));
        let others = unshown
            .iter()
            .filter_map(|u| Some((u.test.as_ref()?, u.program.as_ref()?)));
        for (name, program) in programs.chain(others) {
            if let Err(diagnostic) = import::put(
                &folder.join(format!("{name}.toml")),
                program.clone(),
                args.force,
            ) {
                run.terminal.diagnose(&diagnostic);
                return Err(super::exit::INVALID);
            }
        }
    }
    let suite = ConformanceSuite {
        model: side.model.label.clone(),
        size,
        searched: made.searched,
        complete: made.stopped.is_none() && late == 0 && unshown.iter().all(|u| u.complete),
        stopped: made.stopped,
        late,
        alphabet: alphabet.describe(),
        tests,
        unshown,
        unshown_searched: size.min(UNSHOWN),
        silent: clauses.len() - clauses_of.len(),
    };
    run.summary.add_suite(&suite);
    run.events.answered = true;
    run.events.undecided |= !suite.complete;
    let _ = run.outputs.suite(&suite);
    Ok(())
}

/// The name and the text of a test, if all engines confirm its expectations.
fn decided(
    run: &mut Run<'_>,
    side: &Side,
    (alphabet, names): (&Alphabet, &mut BTreeMap<String, usize>),
    (found, expected): (&DifferingProgram, Verdict),
    why: &str,
) -> Option<(String, String)> {
    let shape = found.shape.name();
    let number = names.entry(shape.clone()).or_insert(0);
    *number += 1;
    let name = if *number == 1 {
        shape
    } else {
        format!("{shape}.{number}")
    };
    let mut text = found.text(alphabet, &name, why);
    if side.model.label == side.model.request {
        text += &format!(
            "\n[expect]\n\"{}\" = {{ reachability = \"{}\" }}\n",
            side.model.label,
            expected.word()
        );
    }
    let tests = seams::read_tests("suite.toml", text.as_bytes()).map(|read| read.tests);
    let verdict = tests.ok().and_then(|mut tests| tests.pop()).map(|test| {
        let (limits, set) = (run.settings.limits, &run.settings.set);
        Session::new(&test, &side.model.model, Engine::Both, limits, set).reachability(None, false)
    });
    match verdict
        .as_ref()
        .map(|answer| (&answer.verdict, &answer.defect))
    {
        Some((said, None)) if *said == expected => Some((name, text)),
        Some((Verdict::Undecided(Reason::Time | Reason::Interrupted), None)) => {
            run.events.undecided = true;
            None
        }
        said => {
            let said = said.map_or("that it is no test".to_owned(), |(verdict, _)| {
                format!("`{}`", verdict.word())
            });
            let message = format!(
                "a defect of Fencepost: the search found a program that is {}, the engines say {said}",
                expected.word()
            );
            run.events.defect = true;
            run.terminal
                .diagnose(&Diagnostic::plain("defect", message).note(text));
            None
        }
    }
}
