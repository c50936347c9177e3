//! Plans the questions: for each test, its models and properties.
//!
//! # Invariants
//! - Units come in the order of the tests, and for one test in the order of its models: as given by
//!   `--model`, else as the test's expectations name them, or, for runs of the executor, that of
//!   its dialect.
//! - Every expectation of a planned (test, model) pair becomes a question, even one that cannot be
//!   decided yet.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::catalogue::{Catalogue, NameKind, Named};
use super::load::File;
use super::seams;
use crate::stop;
use crate::verdict::Reason;
use diag::{Diagnostic, Span};
use engine::ProgressModel;
use front::mapping::Mapping;
use program::Dialect;
use program::litmus::{LitmusTest, Prop, Quantifier, Reachability};
use report::FileSite;
use verdict::Property;
use why::Ask;

/// One test under one model: its questions share a session.
pub(super) struct Unit<'a> {
    /// `path` in result lines.
    pub path: &'a str,
    /// The test; with a mapping, as the mapping lowered it.
    pub test: Cow<'a, LitmusTest>,
    /// The test as written.
    pub source: &'a LitmusTest,
    /// The mapping through which it is judged.
    pub mapping: Option<&'static Mapping>,
    /// Why the model cannot speak of this test: every question is undecided, and no other may be
    /// put.
    pub refused: Option<Reason>,
    /// The model.
    pub model: Named,
    /// The questions, in order; none if the command asks in another way.
    pub questions: Vec<Question>,
    /// Its place among all pairs of the whole run.
    pub place: usize,
}

/// One question, with the words of its result line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// The question.
    pub ask: Ask,
    /// For the result line.
    pub quantifier: &'static str,
    /// The proposition as written.
    pub proposition: String,
    /// What the test expects.
    pub expected: Option<&'static str>,
    /// The axiom that an expected `forbidden` rests on.
    pub axiom: Option<String>,
}

/// Turns a question about a test into the same one about the lowered test.
fn translate(ask: &mut Ask, via: Option<&Mapping>) {
    if let (
        Ask::Reachability {
            prop: Some(prop), ..
        },
        Some(via),
    ) = (ask, via)
        && let Ok(meant) = via.meant(prop)
    {
        // If that fails, the test was not lowered either, and gets no question.
        *prop = meant;
    }
}

impl Question {
    /// A question about anything but an outcome.
    pub(super) fn new(test: &LitmusTest, ask: Ask, expected: Option<&'static str>) -> Question {
        Question {
            ask,
            quantifier: test.quantifier.name(),
            proposition: String::new(),
            expected,
            axiom: None,
        }
    }

    /// Whether an outcome is allowed.
    pub(super) fn of_outcome(prop: Prop, text: String) -> Question {
        Question {
            ask: Ask::Reachability {
                prop: Some(prop),
                negate: false,
            },
            quantifier: "exists",
            proposition: text,
            expected: None,
            axiom: None,
        }
    }

    /// The property that it is about.
    pub(super) fn property(&self) -> Property {
        self.ask.property()
    }
}

/// The models of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequestedModels<'a> {
    /// Those of `--model`; without any, those that the tests have expectations about.
    Expected(&'a [String]),
    /// Those of `--model`; without any, that of each test's dialect.
    Dialect(&'a [String]),
}

impl RequestedModels<'_> {
    /// Those of `--model`.
    fn requested(&self) -> &[String] {
        let (RequestedModels::Expected(list) | RequestedModels::Dialect(list)) = self;
        list
    }

    /// The models to ask about a test.
    fn of(&self, test: &LitmusTest) -> Vec<String> {
        match self {
            // One answer per model, also for one that was named twice.
            _ if !self.requested().is_empty() => self
                .requested()
                .iter()
                .collect::<indexmap::IndexSet<_>>()
                .into_iter()
                .cloned()
                .collect(),
            // Expectations about the executor alone are no question for the models.
            RequestedModels::Expected(_) if !test.expect.is_empty() || !test.runs.is_empty() => {
                test.expect.keys().cloned().collect()
            }
            _ => vec![own_model(test).to_owned()],
        }
    }
}

/// The model that a test is asked under where nothing names one: that of its language. What only
/// PTX has words for is asked of its model.
fn own_model(test: &LitmusTest) -> &'static str {
    match test.launch.is_some() && test.program.assembly().is_some() {
        true => Dialect::Ptx.default_model(),
        false => test.program.dialect.default_model(),
    }
}

impl Unit<'_> {
    /// Whether it is asked of its own model, by the usual way there.
    pub(super) fn asks_own_model(&self) -> bool {
        let (own, dialect) = (own_model(self.source), self.source.program.dialect);
        let usual = match self.mapping {
            None => own == dialect.default_model(),
            Some(mapping) => Mapping::current(dialect).is_some_and(|m| std::ptr::eq(m, mapping)),
        };
        self.model.request == own && usual
    }
}

/// The plan.
#[derive(Default)]
pub(super) struct Plan<'a> {
    /// The units to decide.
    pub units: Vec<Unit<'a>>,
    /// Faults of models and expectations; warnings about skipped tests.
    pub diagnostics: Vec<Diagnostic>,
    /// The number of skipped (test, model) pairs.
    pub passed_over: usize,
}

/// Plans all tests. `asked` names the models; `questions` gives the questions of a pair, or their
/// faults; `mapping` is that of `--mapping`.
pub(super) fn plan<'a>(
    files: &'a [File],
    asked: RequestedModels<'_>,
    mapping: Option<&'static Mapping>,
    catalogue: Catalogue,
    mut questions: impl FnMut(&'a LitmusTest, &str) -> Result<Vec<Question>, Vec<Diagnostic>>,
) -> Plan<'a> {
    let mut planner = Planner {
        plan: Plan::default(),
        mapping,
        catalogue,
        requested: !asked.requested().is_empty(),
        passed: BTreeMap::new(),
    };
    for file in files {
        for test in &file.tests {
            if stop::requested().is_some() {
                break;
            }
            for name in asked.of(test) {
                let Some(unit) = planner.unit(&file.path, test, name) else {
                    continue;
                };
                match questions(test, &unit.model.label) {
                    Ok(mut questions) => {
                        for question in &mut questions {
                            translate(&mut question.ask, unit.mapping);
                        }
                        planner.plan.units.push(Unit { questions, ..unit });
                    }
                    // The fault is the test's, not the model's: once is enough.
                    Err(diagnostics) => {
                        planner.plan.diagnostics.extend(diagnostics);
                        break;
                    }
                }
            }
        }
    }
    planner.refuse_unused_mapping(files);
    planner.finish()
}

/// A plan in the making.
struct Planner<'a> {
    plan: Plan<'a>,
    /// That of `--mapping`.
    mapping: Option<&'static Mapping>,
    catalogue: Catalogue,
    /// Whether the command line names models.
    requested: bool,
    /// Per model and dialect: the number of skipped tests.
    passed: BTreeMap<(String, Dialect), usize>,
}

impl<'a> Planner<'a> {
    /// A test under a model, without questions; `None` if the model does not judge it.
    fn unit(&mut self, path: &'a str, test: &'a LitmusTest, name: String) -> Option<Unit<'a>> {
        let dialect = test.program.dialect;
        let kind = self.catalogue.kind(&name);
        // If a file says nothing of its dialect, the mapping of the request decides.
        let of = self.catalogue.spoken(&name, dialect).or_else(|| {
            self.mapping
                .filter(|m| kind == NameKind::File && m.from == dialect)
                .map(|m| m.to)
        });
        let via = seams::mapping(of, dialect, self.mapping);
        if let (Some(_), Some(other)) = (via, self.mapping.filter(|m| m.from != dialect)) {
            self.say_once(seams::unfit(other, dialect));
            return None;
        }
        let foreign = of.is_some_and(|of| of != dialect) && via.is_none();
        if foreign || (kind == NameKind::Reserved && !self.requested) {
            *self.passed.entry((name, dialect)).or_default() += 1;
            return None;
        }
        if kind == NameKind::Unknown && !self.requested {
            let unknown = unknown_in_expectation(test, &name, &self.catalogue);
            self.plan.diagnostics.push(unknown);
            return None;
        }
        let spoken = via.map_or(dialect, |via| via.to);
        let model = self.catalogue.get(&name, spoken)?;
        let (judged, refused) = match via.map(|via| via.lowered(test)) {
            None => (Cow::Borrowed(test), None),
            Some(Ok(lowered)) => (Cow::Owned(lowered), None),
            // The test is valid: this model has no words for it.
            Some(Err(why)) => (Cow::Borrowed(test), Some(Reason::NotInModel(why))),
        };
        Some(Unit {
            path,
            test: judged,
            source: test,
            mapping: via,
            refused,
            model,
            questions: Vec::new(),
            place: 0,
        })
    }

    fn say_once(&mut self, diagnostic: Diagnostic) {
        if !self.plan.diagnostics.contains(&diagnostic) {
            self.plan.diagnostics.push(diagnostic);
        }
    }

    /// A mapping whose language no test has judges none.
    fn refuse_unused_mapping(&mut self, files: &[File]) {
        let tests = files.iter().flat_map(|file| &file.tests);
        let dialects: Vec<Dialect> = tests.map(|test| test.program.dialect).collect();
        let (Some(mapping), Some(first)) = (self.mapping, dialects.first()) else {
            return;
        };
        if !dialects.contains(&mapping.from) {
            self.say_once(seams::unfit(mapping, *first));
            self.plan.units.clear();
        }
    }

    /// The plan, with the faults of models and a warning for each model that was passed over.
    fn finish(self) -> Plan<'a> {
        let mut plan = self.plan;
        for ((model, dialect), tests) in self.passed {
            plan.passed_over += tests;
            let why = match self.catalogue.kind(&model) {
                NameKind::Reserved => "is not shipped yet".to_owned(),
                _ => format!("does not judge {} programs", dialect.name()),
            };
            let s = if tests == 1 { "" } else { "s" };
            let message = format!(
                "model `{model}` {why}: passed over for {tests} {} test{s}",
                dialect.name()
            );
            plan.diagnostics
                .push(Diagnostic::plain("passed-over", message).warning());
        }
        plan.diagnostics.splice(0..0, self.catalogue.diagnostics());
        plan
    }
}

fn unknown_in_expectation(test: &LitmusTest, name: &str, catalogue: &Catalogue) -> Diagnostic {
    let plain = catalogue.unknown(name);
    let span = test.expect.get(name).map(|e| e.span).unwrap_or_default();
    let mut diagnostic = Diagnostic::error(plain.id, &test.file, span, plain.message);
    (diagnostic.notes, diagnostic.help) = (plain.notes, plain.help);
    diagnostic
}

/// The questions of `check`: the test's expectations of this model, or reachability if it has none;
/// with `all`, every property.
pub(super) fn expectations(test: &LitmusTest, model: &str, all: bool) -> Vec<Question> {
    let expectation = test.expect.get(model).cloned().unwrap_or_default();
    if test.launch.is_some() && !all && expectation.answers() == 0 {
        return of_kernel(test);
    }
    let mut questions = Vec::new();
    let question = |ask, expected| Question::new(test, ask, expected);
    let others = expectation.race.is_some()
        || expectation.undefined.is_some()
        || expectation.lifetime.is_some()
        || !expectation.liveness.is_empty();
    if all || expectation.reachability.is_some() || !others {
        questions.push(own_condition(test, model));
    }
    if all || expectation.race.is_some() {
        let expected = expectation
            .race
            .map(|racy| if racy { "racy" } else { "race-free" });
        questions.push(question(Ask::Race, expected));
    }
    if let Some(undefined) = expectation.undefined {
        let expected = if undefined { "undefined" } else { "defined" };
        questions.push(question(Ask::Undefined, Some(expected)));
    } else if all {
        questions.push(question(Ask::Undefined, None));
    }
    if all && test.program.host.is_some() || expectation.lifetime.is_some() {
        let expected = expectation
            .lifetime
            .map(|misused| if misused { "misused" } else { "proper" });
        questions.push(question(Ask::Lifetime, expected));
    }
    for progress in ProgressModel::ALL {
        let expected = expectation.liveness.get(progress.name());
        if all || expected.is_some() {
            let expected = expected.map(|&hangs| if hangs { "hangs" } else { "terminates" });
            questions.push(question(Ask::Liveness(progress), expected));
        }
    }
    questions
}

/// What is asked of a kernel of a source file, where nothing else is said: whether it races,
/// whether anything else in it is undefined, such as a barrier that some threads miss, and whether
/// it ends. Of a whole program also whether it uses something after its end.
pub(super) fn of_kernel(test: &LitmusTest) -> Vec<Question> {
    let lifetime = test.program.host.as_ref().map(|_| Ask::Lifetime);
    [Ask::Race, Ask::Misuse]
        .into_iter()
        .chain(lifetime)
        .chain([Ask::Liveness(ProgressModel::Fair)])
        .map(|ask| Question::new(test, ask, None))
        .collect()
}

/// The question whether threads of a block of a kernel can part before a barrier.
pub(super) fn of_barriers(test: &LitmusTest) -> Question {
    Question::new(test, Ask::Divergence, None)
}

/// The place of a test's expectation of a model; else its condition, else its beginning.
pub(super) fn site(test: &LitmusTest, model: &str) -> FileSite {
    let expected = test.expect.get(model).map(|e| e.span);
    let launched = test.launch.as_ref().map(|launch| launch.span);
    let spans = [expected, Some(test.condition_span), launched];
    let span = spans
        .into_iter()
        .flatten()
        .find(|span| *span != Span::default())
        .unwrap_or_default();
    FileSite::at(&test.file, span)
}

/// The question of the test itself. An expected `required` asks for a violation, whatever the
/// test's quantifier.
pub(super) fn own_condition(test: &LitmusTest, model: &str) -> Question {
    let expectation = test.expect.get(model);
    let expected = expectation.and_then(|e| e.reachability);
    let quantifier = match expected {
        Some(Reachability::Required) => Quantifier::ForAll,
        _ => test.quantifier,
    };
    Question {
        ask: Ask::Reachability {
            prop: test.condition.clone(),
            negate: quantifier == Quantifier::ForAll,
        },
        quantifier: quantifier.name(),
        proposition: test.condition_text.trim().to_owned(),
        expected: expected.map(Reachability::word),
        axiom: expectation.and_then(|e| e.axiom.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diag::SourceFile;
    use program::litmus::Expectation;
    use program::{Machine, Program};

    fn test() -> LitmusTest {
        LitmusTest {
            tags: Vec::new(),
            name: "T".into(),
            doc: String::new(),
            source: String::new(),
            file: SourceFile::new("T.toml", ""),
            program: Program {
                dialect: Dialect::Ptx,
                threads: Vec::new(),
                locations: Vec::new(),
                machine: Machine::full(),
                host: None,
                assumed: Vec::new(),
                group_copies: Vec::new(),
            },
            condition: Some(Prop::And(Vec::new())),
            condition_text: " x == 1 ".into(),
            condition_span: diag::Span::default(),
            quantifier: Quantifier::Exists,
            filter: None,
            observe: Vec::new(),
            expect: indexmap::IndexMap::new(),
            options: Vec::new(),
            bound: None,
            runs: Vec::new(),
            launch: None,
        }
    }

    fn asked(test: &LitmusTest, all: bool) -> Vec<(String, Option<&'static str>)> {
        expectations(test, "ptx", all)
            .into_iter()
            .map(|q| (q.property().to_string(), q.expected))
            .collect()
    }

    #[test]
    fn without_an_expectation_reachability_is_asked() {
        let mut t = test();
        assert_eq!(asked(&t, false), [("reachability".into(), None)]);
        let safety = ["reachability", "race", "undefined"].map(|property| (property.into(), None));
        let liveness = ProgressModel::ALL.map(|progress| (format!("liveness:{progress}"), None));
        assert_eq!(asked(&t, true), [&safety[..], &liveness].concat());
        t.expect.insert(
            "ptx".into(),
            Expectation {
                source: Some("§8".into()),
                ..Expectation::default()
            },
        );
        assert_eq!(asked(&t, false), [("reachability".into(), None)]);
    }

    #[test]
    fn every_expectation_is_a_question() {
        let mut t = test();
        let liveness = [("fair".to_owned(), false)].into();
        let e = Expectation {
            race: Some(true),
            undefined: Some(false),
            liveness,
            ..Expectation::default()
        };
        t.expect.insert("ptx".into(), e);
        let others = [
            ("race".into(), Some("racy")),
            ("undefined".into(), Some("defined")),
            ("liveness:fair".into(), Some("terminates")),
        ];
        assert_eq!(asked(&t, false), others);
        assert_eq!(asked(&t, true)[0], ("reachability".into(), None));
    }

    #[test]
    fn required_asks_for_a_violation() {
        let mut t = test();
        let e = Expectation {
            reachability: Some(Reachability::Required),
            ..Expectation::default()
        };
        t.expect.insert("ptx".into(), e);
        let q = own_condition(&t, "ptx");
        assert_eq!(
            (q.quantifier, q.expected, q.proposition.as_str()),
            ("forall", Some("required"), "x == 1")
        );
        assert!(matches!(q.ask, Ask::Reachability { negate: true, .. }));
        let q = own_condition(&t, "sc");
        assert_eq!((q.quantifier, q.expected), ("exists", None));
        assert!(matches!(q.ask, Ask::Reachability { negate: false, .. }));
    }

    #[test]
    fn models_come_from_the_command_line_the_expectations_or_the_dialect() {
        let mut t = test();
        assert_eq!(RequestedModels::Expected(&[]).of(&t), ["ptx"]);
        for name in ["sc", "ptx-v7.5"] {
            t.expect.insert(name.into(), Expectation::default());
        }
        assert_eq!(RequestedModels::Expected(&[]).of(&t), ["sc", "ptx-v7.5"]);
        assert_eq!(RequestedModels::Dialect(&[]).of(&t), ["ptx"]);
        assert_eq!(
            RequestedModels::Expected(&["a.cat".to_owned()]).of(&t),
            ["a.cat"]
        );
        assert_eq!(
            RequestedModels::Dialect(&["b", "a", "b"].map(str::to_owned)).of(&t),
            ["b", "a"]
        );
        // Expectations about runs alone are no question for the models.
        t.expect.clear();
        t.runs.push(program::litmus::RunExpectation::default());
        assert!(RequestedModels::Expected(&[]).of(&t).is_empty());
        assert_eq!(RequestedModels::Dialect(&[]).of(&t), ["ptx"]);
    }

    #[test]
    fn models_that_are_not_shipped_are_passed_over_and_typos_are_errors() {
        let mut t = test();
        for name in ["vulkan", "pxt"] {
            t.expect.insert(name.into(), Expectation::default());
        }
        let files = [File {
            path: "T.toml".into(),
            below: "T.toml".into(),
            tests: vec![t.clone(), t],
        }];
        let plan = plan(
            &files,
            RequestedModels::Expected(&[]),
            None,
            Catalogue::new(None),
            |_, _| Ok(Vec::new()),
        );
        assert_eq!(plan.passed_over, 2);
        let ids: Vec<_> = plan.diagnostics.iter().map(|d| d.id).collect();
        assert_eq!(ids, ["unknown-model", "unknown-model", "passed-over"]);
    }
}
