//! `fencepost distinguish MODEL --suite`: the minimal conformance suite of a model.
//!
//! All engines decide every test before it is written; a test that they contradict is a defect.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::args::DistinguishArgs;
use super::distinguish::MappedModel;
use super::run::Run;
use super::{import, seams};
use cat::model::clauses::ModelText;
use cat::model::ir::Model;
use cat::model::{Library, OnDisk, Shipped};
use diag::Diagnostic;
use distinguish::{
    Alphabet, DifferingProgram, JudgeSetup, LetterMeanings, MinimalSuite, SearchRequest,
    SuiteRequest, Tier,
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
    side: &MappedModel,
    alphabet: &Alphabet,
) -> Result<(), u8> {
    if let Some(mapping) = run.settings.mapping {
        let message = format!(
            "a suite is in the language of its model, not behind mapping `{}`",
            mapping.name
        );
        run.terminal
            .diagnose(&Diagnostic::plain("unfit-mapping", message).help("leave out `--mapping`"));
        return Err(super::exit::INVALID);
    }
    let model: &Model = &side.model.model;
    let set = run.settings.set.clone();
    let learnt = JudgeSetup {
        model,
        mapping: None,
        set: &set,
        learnt: None,
    };
    let learnt = LetterMeanings::new(learnt, alphabet).map_err(|why| refused(run, why))?;
    let learnt = Arc::new(learnt);
    let judged = JudgeSetup {
        model,
        mapping: None,
        set: &set,
        learnt: Some(&learnt),
    };
    let clauses = SpokenClauses::of(run, args, side, &judged, alphabet)?;
    let deadline = run.settings.limits.timeout.map(|t| Instant::now() + t);
    let jobs = run.pool.jobs();
    let size = usize::from(args.size);
    let wanted = SuiteRequest {
        model: judged,
        mutants: &clauses.mutants,
        alphabet,
        size,
        jobs,
        deadline,
    };
    let made = distinguish::suite(&wanted).map_err(|why| refused(run, why))?;
    let mut maker = SuiteMaker {
        run,
        side,
        alphabet,
        judged,
        size: size.min(UNSHOWN),
        deadline,
        names: BTreeMap::new(),
        late: 0,
    };
    let tests = maker.minimal_tests(&made, &clauses);
    let unshown = maker.unshown(&made, &clauses)?;
    let late = maker.late;
    if let Some(folder) = &args.output {
        write(run, folder, args.force, &tests, &unshown)?;
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
        silent: clauses.silent,
    };
    run.summary.add_suite(&suite);
    run.events.answered = true;
    run.events.undecided |= !suite.complete;
    let _ = run.outputs.suite(&suite);
    Ok(())
}

/// Reports the reason why a search is refused; returns the exit code.
fn refused(run: &Run<'_>, why: String) -> u8 {
    let diagnostic = Diagnostic::plain("cannot-distinguish", why);
    run.terminal.diagnose(&diagnostic);
    super::exit::INVALID
}

/// The clauses of a model that decide something about the programs of an alphabet.
struct SpokenClauses {
    names: Vec<String>,
    /// The model without each of them.
    mutants: Vec<Model>,
    /// The number of the model's other clauses.
    silent: usize,
}

impl SpokenClauses {
    /// Leaves out a clause if its removal leaves no model, one that no longer judges such
    /// programs, or one with the same answers.
    fn of(
        run: &Run<'_>,
        args: &DistinguishArgs,
        side: &MappedModel,
        judged: &JudgeSetup<'_>,
        alphabet: &Alphabet,
    ) -> Result<SpokenClauses, u8> {
        let signature = signature();
        let main = side.model.model.files[0].clone();
        let shipped = Library::model(&side.model.label).is_some_and(|file| file.text == main.text);
        let on_disk = OnDisk::of(main.name.as_ref());
        let own_prelude = args.question.prelude.as_deref();
        let text = ModelText {
            main,
            name: &side.model.label,
            includes: if shipped { &Shipped } else { &on_disk },
            signature: &signature,
            prelude: Some(own_prelude.unwrap_or(alphabet.dialect.row().prelude)),
        };
        let (whole, clauses) = text.clauses().map_err(|errors| {
            run.terminal.diagnose_all(&errors);
            super::exit::INVALID
        })?;
        let said =
            distinguish::says(judged.instead(&whole), alphabet).map_err(|why| refused(run, why))?;
        let (names, mutants): (Vec<String>, Vec<Model>) = clauses
            .iter()
            .filter_map(|clause| Some((clause.name.clone(), text.without(clause).ok()?)))
            .filter(|(_, mutant)| {
                distinguish::says(judged.instead(mutant), alphabet).is_ok_and(|of| of != said)
            })
            .unzip();
        Ok(SpokenClauses {
            silent: clauses.len() - names.len(),
            names,
            mutants,
        })
    }
}

/// A suite in the making.
struct SuiteMaker<'a, 'r> {
    run: &'a mut Run<'r>,
    side: &'a MappedModel,
    alphabet: &'a Alphabet,
    judged: JudgeSetup<'a>,
    /// The largest size of programs for clauses without a minimal test.
    size: usize,
    deadline: Option<Instant>,
    /// The number of tests of each shape, for their names.
    names: BTreeMap<String, usize>,
    /// The number of clauses that time ran out for.
    late: usize,
}

impl SuiteMaker<'_, '_> {
    /// The minimal tests that all engines confirm.
    fn minimal_tests(&mut self, made: &MinimalSuite, clauses: &SpokenClauses) -> Vec<SuiteTest> {
        let label = &self.side.model.label;
        let why = format!("`{label}` forbids it, and allows every weakening of it.");
        let mut tests = Vec::new();
        for minimal in &made.tests {
            let Some((test, program)) = self.confirmed(&minimal.test, Verdict::Forbidden, &why)
            else {
                continue;
            };
            let names = minimal.needs.iter().map(|&m| clauses.names[m].clone());
            tests.push(SuiteTest {
                test,
                size: minimal.test.letters.len(),
                clauses: names.collect(),
                program,
            });
        }
        tests
    }

    /// The clauses that no minimal test needs, each with a program that shows it if there is one.
    fn unshown(
        &mut self,
        made: &MinimalSuite,
        clauses: &SpokenClauses,
    ) -> Result<Vec<Unshown>, u8> {
        let mut unshown = Vec::new();
        for (number, (name, mutant)) in clauses.names.iter().zip(&clauses.mutants).enumerate() {
            if number < made.asked && made.tests.iter().any(|m| m.needs.contains(&number)) {
                continue;
            }
            if number >= made.asked || stop::late(self.deadline) {
                self.late += 1;
                continue;
            }
            unshown.push(self.shown(name, mutant)?);
        }
        Ok(unshown)
    }

    /// Searches for a program that the model and its mutant without a clause judge differently.
    fn shown(&mut self, clause: &str, mutant: &Model) -> Result<Unshown, u8> {
        let mut shown = Unshown {
            clause: clause.to_owned(),
            test: None,
            verdict: None,
            program: None,
            complete: true,
        };
        for verdict in [Verdict::Forbidden, Verdict::Allowed] {
            let (allows, forbids) = match verdict {
                Verdict::Forbidden => (self.judged.instead(mutant), self.judged),
                _ => (self.judged, self.judged.instead(mutant)),
            };
            let sought = SearchRequest {
                allows: vec![allows],
                forbids: vec![forbids],
                alphabet: self.alphabet,
                size: self.size,
                tiers: &[Tier::Critical, Tier::Other],
                all: false,
                jobs: self.run.pool.jobs(),
                deadline: self.deadline,
            };
            let answer = distinguish::search(&sought).map_err(|why| refused(self.run, why))?;
            shown.complete &= answer.stopped.is_none();
            let Some(found) = answer.found.first() else {
                continue;
            };
            let (word, label) = (verdict.word(), &self.side.model.label);
            let clause = clause.replace('\\', "\\\\");
            let why = format!("`{label}` says {word} of it, and the opposite without `{clause}`.");
            if let Some((test, program)) = self.confirmed(found, verdict, &why) {
                shown.test = Some(test);
                shown.verdict = Some(word.to_owned());
                shown.program = Some(program);
                break;
            }
        }
        Ok(shown)
    }

    /// The name of the next test of a shape.
    fn name(&mut self, shape: String) -> String {
        let number = self.names.entry(shape.clone()).or_insert(0);
        *number += 1;
        match *number {
            1 => shape,
            number => format!("{shape}.{number}"),
        }
    }

    /// The name and the text of a test, if all engines confirm its expectations.
    fn confirmed(
        &mut self,
        found: &DifferingProgram,
        expected: Verdict,
        why: &str,
    ) -> Option<(String, String)> {
        let name = self.name(found.shape.name());
        let model = &self.side.model;
        let mut text = found.text(self.alphabet, &name, why);
        if model.label == model.request {
            text += &format!(
                "\n[expect]\n\"{}\" = {{ reachability = \"{}\" }}\n",
                model.label,
                expected.word()
            );
        }
        let tests = seams::read_tests("suite.toml", text.as_bytes()).map(|read| read.tests);
        let settings = &self.run.settings;
        let verdict = tests.ok().and_then(|mut tests| tests.pop()).map(|test| {
            let (limits, set) = (settings.limits, &settings.set);
            Session::new(&test, &model.model, Engine::Both, limits, set).reachability(None, false)
        });
        match verdict
            .as_ref()
            .map(|answer| (&answer.verdict, &answer.defect))
        {
            Some((said, None)) if *said == expected => Some((name, text)),
            Some((Verdict::Undecided(Reason::Time | Reason::Interrupted), None)) => {
                self.run.events.undecided = true;
                None
            }
            said => {
                let said = said.map_or("that it cannot be read".to_owned(), |(verdict, _)| {
                    format!("`{}`", verdict.word())
                });
                let message = format!(
                    "a defect of Fencepost: the search found a program that is {}, the engines \
                     say {said}",
                    expected.word()
                );
                self.run.events.defect = true;
                let diagnostic = Diagnostic::plain("defect", message).note(text);
                self.run.terminal.diagnose(&diagnostic);
                None
            }
        }
    }
}

/// Writes each test to a file of its own in a folder.
fn write(
    run: &Run<'_>,
    folder: &Path,
    force: bool,
    tests: &[SuiteTest],
    unshown: &[Unshown],
) -> Result<(), u8> {
    let programs = tests.iter().map(|t| (&t.test, &t.program));
    let others = unshown
        .iter()
        .filter_map(|u| Some((u.test.as_ref()?, u.program.as_ref()?)));
    for (name, program) in programs.chain(others) {
        let file = folder.join(format!("{name}.toml"));
        if let Err(diagnostic) = import::put(&file, program.clone(), force) {
            run.terminal.diagnose(&diagnostic);
            return Err(super::exit::INVALID);
        }
    }
    Ok(())
}
