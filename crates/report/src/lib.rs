//! Reports: answers in various formats, one file per format.
//!
//! # Invariants
//! - A report depends only on the answers: not on the clock (without timings), the terminal or
//!   threads. Equal answers give equal bytes.
//! - This crate does not know the checkers or the command line; any caller with answers can report
//!   them.
//! - A report that is not quiet mentions every answer. The exceptions `sarif`, `github`, `gitlab`
//!   and `markdown` list only cases that need attention.
//! - A format has one file and one row in [`FORMATS`] and [`reporter`]; no other code knows the
//!   list of formats.

mod advice;
mod answer;
mod case;
mod compact;
mod comparison;
mod compiled;
mod counted;
mod csv;
mod distinction;
mod execution;
mod explanation;
mod fault;
mod fold;
mod github;
mod gitlab;
mod html;
mod human;
mod json;
mod junit;
mod kernel;
mod latex;
mod line;
mod markdown;
mod observations;
pub mod picture;
mod reporter;
mod sarif;
mod status;
mod suite;
mod summary;
mod tap;
mod verdicts;

pub use advice::{AdviceItem, AdvicePart, AdviceReport, AdviceVerdict, unified};
pub use comparison::{Column, Comparison};
pub use compiled::{CompiledOperation, CompiledReport, CompiledVerdict};
pub use counted::counted;
pub use csv::Csv;
pub use distinction::{Distinction, DistinguishingProgram};
pub use explanation::remedy;
pub use github::Github;
pub use gitlab::Gitlab;
pub use html::Html;
pub use human::{Human, HumanOptions};
pub use json::Json;
pub use junit::Junit;
pub use kernel::{KernelAnswer, Kernels, LaunchSource, misuse_name};
pub use latex::Latex;
pub use line::{AnswerLine, FileSite, KnownFailure, OutcomeTable, PartOf, UnmetReading, is_met};
pub use markdown::Markdown;
pub use observations::{
    HazardPart, Hazards, Observations, ObservedHazard, ObservedOutcome, RacePair, RunExpected,
    UnfinishedRuns,
};
pub use reporter::Reporter;
pub use sarif::Sarif;
pub use status::QueryStatus;
pub use suite::{ConformanceSuite, SuiteTest, Unshown};
pub use summary::Summary;
pub use tap::Tap;

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// Text for people.
    Human,
    /// One JSON object: `{"version":1,"answers":[…],"summary":{…}}`.
    Json,
    /// One JSON object per answer, one per line.
    Jsonl,
    /// XML for CI servers.
    Junit,
    /// Cases that need attention, for code-scanning services.
    Sarif,
    /// Cases that need attention, as annotations of GitHub Actions.
    Github,
    /// Cases that need attention, for the Code Quality report of GitLab.
    Gitlab,
    /// A table of the cases that need attention, for summaries of jobs.
    Markdown,
    /// The Test Anything Protocol.
    Tap,
    /// A table for spreadsheets and scripts: comma-separated values.
    Csv,
    /// A table for papers: answers by test and model.
    Latex,
    /// A page with a table and pictures.
    Html,
}

/// The subjects of reports, from general to special.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportSubject {
    /// Answers, one per query.
    Answers,
    /// Comparisons of several models on a test.
    Comparisons,
    /// Lists of outcomes.
    Outcomes,
    /// Observations, searches.
    Others,
}

/// Every format: its name, and the last subject that it supports.
pub const FORMATS: &[(ReportFormat, &str, ReportSubject)] = &[
    (ReportFormat::Human, "human", ReportSubject::Others),
    (ReportFormat::Json, "json", ReportSubject::Others),
    (ReportFormat::Jsonl, "jsonl", ReportSubject::Others),
    (ReportFormat::Junit, "junit", ReportSubject::Comparisons),
    (ReportFormat::Sarif, "sarif", ReportSubject::Comparisons),
    (ReportFormat::Github, "github", ReportSubject::Comparisons),
    (ReportFormat::Gitlab, "gitlab", ReportSubject::Comparisons),
    (ReportFormat::Markdown, "markdown", ReportSubject::Outcomes),
    (ReportFormat::Tap, "tap", ReportSubject::Comparisons),
    (ReportFormat::Csv, "csv", ReportSubject::Outcomes),
    (ReportFormat::Latex, "latex", ReportSubject::Outcomes),
    (ReportFormat::Html, "html", ReportSubject::Comparisons),
];

impl ReportFormat {
    /// The name of the format.
    pub fn name(self) -> &'static str {
        FORMATS
            .iter()
            .find(|row| row.0 == self)
            .map_or("", |row| row.1)
    }

    /// Whether the format supports this subject.
    pub fn tells(self, subject: ReportSubject) -> bool {
        FORMATS.iter().any(|row| row.0 == self && subject <= row.2)
    }

    /// Whether it shows explanations, also for expected answers.
    pub fn explains(self) -> bool {
        matches!(
            self,
            ReportFormat::Human | ReportFormat::Json | ReportFormat::Jsonl | ReportFormat::Html
        )
    }
}

/// The writer of a format.
pub fn reporter(format: ReportFormat, human: &HumanOptions) -> Box<dyn Reporter> {
    match format {
        ReportFormat::Human => Box::new(Human::new(human.clone())),
        ReportFormat::Json => Box::new(Json::whole()),
        ReportFormat::Jsonl => Box::new(Json::lines()),
        ReportFormat::Junit => Box::new(Junit::default()),
        ReportFormat::Sarif => Box::new(Sarif::default()),
        ReportFormat::Github => Box::new(Github),
        ReportFormat::Gitlab => Box::new(Gitlab::default()),
        ReportFormat::Markdown => Box::new(Markdown::default()),
        ReportFormat::Tap => Box::new(Tap::default()),
        ReportFormat::Csv => Box::new(Csv::default()),
        ReportFormat::Latex => Box::new(Latex::default()),
        ReportFormat::Html => Box::new(Html::default()),
    }
}

/// Hand-written answers for the tests of formats.
#[cfg(test)]
pub(crate) mod samples {
    use super::*;
    use verdict::{
        Answer, InstrPlace, Outcome, Outcomes, Property, Reason, Seat, Verdict, Witness,
        WitnessEvent,
    };

    pub(crate) fn answer(verdict: Verdict) -> Answer {
        let negative = matches!(verdict, Verdict::Forbidden | Verdict::RaceFree);
        let axioms = if negative {
            vec!["Causality".into()]
        } else {
            Vec::new()
        };
        Answer {
            axioms,
            ..Answer::new(verdict, "symbolic")
        }
    }

    pub(crate) fn line(test: &str, verdict: Verdict, expected: Option<&'static str>) -> AnswerLine {
        let path = format!("ptx/{test}.litmus");
        AnswerLine {
            site: FileSite {
                file: format!("tests/{test}.litmus"),
                line: 3,
                column: 1,
            },
            quantifier: "exists",
            proposition: "P1:r0 == 1 /\\ P1:r1 == 0".into(),
            expected,
            ..AnswerLine::new(
                &path,
                test,
                "ptx-v7.5",
                Property::Reachability,
                answer(verdict),
            )
        }
    }

    /// Met, not met, undecided, a race, a defect.
    pub(crate) fn lines() -> Vec<AnswerLine> {
        let at = InstrPlace {
            text: "st x, r0".into(),
            thread: "P1".into(),
            line: 7.into(),
        };
        let mut undecided = line(
            "Loop",
            Verdict::Undecided(Reason::LoopBound { bound: 4, at }),
            Some("allowed"),
        );
        undecided.answer.bound = Some(4);
        let mut race = line("MP", Verdict::Racy, None);
        (race.property, race.quantifier) = (Property::Race, "none");
        let mut defect = line("Odd", Verdict::Allowed, None);
        defect.answer.defect = Some("engines differ: symbolic allowed, enumerate forbidden".into());
        defect.answer.engine = "both";
        let mut required = line("Atom", Verdict::Forbidden, Some("required"));
        required.quantifier = "forall";
        vec![
            line("MP-gpu", Verdict::Forbidden, Some("forbidden")),
            line("MP", Verdict::Allowed, Some("forbidden")),
            race,
            required,
            undecided,
            defect,
        ]
    }

    pub(crate) fn witness() -> Witness {
        fn event(thread: Option<usize>, line: u32, action: &str, text: &str) -> WitnessEvent {
            WitnessEvent {
                thread,
                thread_name: thread.map_or("init".into(), |t| format!("P{t}")),
                agent: None,
                line: line.into(),
                action: action.into(),
                text: text.into(),
            }
        }
        Witness {
            events: vec![
                event(None, 0, "W x = 0", ""),
                event(Some(0), 4, "W x = 1", "st.weak x, 1"),
                event(Some(1), 4, "R x = 1", "ld.weak r0, x"),
            ],
            relations: vec![("rf".into(), vec![(1, 2)]), ("co".into(), vec![(0, 1)])],
            state: vec![("P1:r0".into(), "1".into()), ("x".into(), "1".into())],
            ends: Vec::new(),
            threads: ["P0", "P1"]
                .map(|t| Seat {
                    thread: t.into(),
                    groups: vec!["GPU 0".into()],
                })
                .into(),
            derived: Vec::new(),
            styles: Vec::new(),
        }
    }

    pub(crate) fn table() -> OutcomeTable {
        fn outcome(r0: &str, x: &str, allowed: bool, racy: bool) -> Outcome {
            Outcome {
                state: vec![("P1:r0".into(), r0.into()), ("x".into(), x.into())],
                allowed,
                racy,
                race: None,
            }
        }
        OutcomeTable {
            path: "MP.toml".into(),
            test: "MP".into(),
            model: "ptx".into(),
            mapping: None,
            outcomes: Outcomes {
                complete: true,
                reason: None,
                outcomes: vec![
                    outcome("0", "2", true, true),
                    outcome("1", "10", false, false),
                ],
                engine: "enumerate",
                bound: None,
                defect: None,
                definedness: None,
            },
            ms: None,
        }
    }

    pub(crate) fn written(format: ReportFormat, options: &HumanOptions) -> String {
        report(format, options, &lines(), 1)
    }

    pub(crate) fn written_lines(format: ReportFormat, lines: &[AnswerLine]) -> String {
        report(format, &HumanOptions::default(), lines, 0)
    }

    fn report(
        format: ReportFormat,
        options: &HumanOptions,
        lines: &[AnswerLine],
        invalid: usize,
    ) -> String {
        let (mut out, mut summary) = (Vec::new(), Summary::default());
        let mut reporter = reporter(format, options);
        for line in lines {
            summary.add(line);
            reporter.line(&mut out, line).unwrap();
        }
        summary.invalid = invalid;
        reporter.end(&mut out, &summary).unwrap();
        String::from_utf8(out).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict::Verdict;

    #[test]
    fn expectations_are_judged_by_the_verdicts_word() {
        let met: Vec<_> = samples::lines().iter().map(AnswerLine::met).collect();
        assert_eq!(met, [Some(true), Some(false), None, Some(true), None, None]);
    }

    #[test]
    fn required_is_not_met_by_a_violation() {
        assert_eq!(
            samples::line("A", Verdict::Allowed, Some("required")).met(),
            Some(false)
        );
    }
}
