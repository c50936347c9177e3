//! Answers about kernels of source files: told at their lines, and counted by kernel.

use std::fmt::Write;

use diag::Diagnostic;
use indexmap::IndexMap;
use verdict::{Fault, Property, Verdict};

use super::counted::counted;
use super::line::AnswerLine;
use super::status::QueryStatus;

/// The part of an answer about a kernel that its source file shows.
#[derive(Clone, Debug)]
pub struct KernelAnswer {
    /// The kernel.
    pub kernel: String,
    /// Its launch, as it can be written.
    pub launch: String,
    /// The origin of the launch.
    pub origin: LaunchSource,
    /// The errors of the kernel, each at its place in the file.
    pub found: Vec<Diagnostic>,
    /// Remarks on the launch.
    pub notes: Vec<String>,
    /// What the answer says of other launches and inputs.
    pub beyond: Option<String>,
}

/// The origin of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchSource {
    /// The file says it.
    File,
    /// The command line says it.
    CommandLine,
    /// `main` of the file has so many launches.
    Main(usize),
    /// It was chosen.
    Chosen,
    /// It is smaller than the given one, which has too many threads.
    Smaller,
}

/// Kernels, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernels {
    /// By path, test and model.
    all: IndexMap<(String, String, String), Tally>,
    /// How many answers were about kernels.
    pub(super) answers: usize,
}

/// What came out of one kernel with one launch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tally {
    kernel: String,
    launch: String,
    origin: LaunchSource,
    notes: Vec<String>,
    /// What the answers say of other launches.
    beyond: Vec<String>,
    race: Option<&'static str>,
    /// The name of undefined behaviour other than a race; `Some(None)`: it has none.
    misuse: Option<Option<String>>,
    hangs: Option<bool>,
    /// It uses something after its end.
    late: Option<bool>,
    undecided: bool,
    /// It accesses memory outside of every object.
    outside: bool,
}

impl Kernels {
    /// Counts an answer, if it is about one.
    pub(super) fn add(&mut self, line: &AnswerLine) {
        let Some(answer) = &line.kernel else { return };
        self.answers += 1;
        let key = (line.path.clone(), line.test.clone(), line.model.clone());
        let tally = self.all.entry(key).or_insert_with(|| Tally {
            kernel: answer.kernel.clone(),
            launch: answer.launch.clone(),
            origin: answer.origin,
            notes: answer.notes.clone(),
            beyond: Vec::new(),
            race: None,
            misuse: None,
            hangs: None,
            late: None,
            undecided: false,
            outside: false,
        });
        if answer.origin == LaunchSource::Smaller && tally.origin != LaunchSource::Smaller {
            tally.origin = LaunchSource::Smaller;
            tally.launch.clone_from(&answer.launch);
            tally.notes.clone_from(&answer.notes);
        }
        for (name, value) in &line.settings {
            tally.notes.push(format!("`{name}={value}` is set"));
        }
        tally.beyond.extend(answer.beyond.clone());
        let verdict = &line.answer.verdict;
        let outside = verdict.reason().is_some() && !answer.found.is_empty();
        tally.outside |= outside;
        tally.undecided |= verdict.reason().is_some();
        match (&line.property, verdict) {
            (_, Verdict::Undecided(_)) => {}
            (Property::Race, verdict) => {
                tally.race = Some(if *verdict == Verdict::Racy {
                    "racy"
                } else {
                    "race-free"
                })
            }
            (Property::Undefined, Verdict::Defined) => tally.misuse = Some(None),
            (Property::Undefined, _) => {
                let fault = line.answer.fault.as_ref();
                let fault = fault.filter(|fault| !fault.race && !fault.lifetime);
                tally.misuse = Some(fault.map(|fault| misuse_name(fault)));
            }
            (Property::Divergence, Verdict::Divergent) => {
                tally.misuse = Some(Some("barrier divergence".to_owned()));
            }
            (Property::Lifetime, verdict) => tally.late = Some(*verdict == Verdict::Misused),
            (Property::Liveness(_), verdict) => tally.hangs = Some(*verdict == Verdict::Hangs),
            _ => {}
        }
    }

    /// The chosen launches, and the reasons for smaller ones, a line for each.
    pub(super) fn launches(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for tally in self.all.values() {
            lines.extend(tally.notes.iter().map(|note| format!("note: {note}")));
            if matches!(tally.origin, LaunchSource::Chosen | LaunchSource::Smaller) {
                lines.push(format!("launch chosen: {}", tally.launch));
            }
            lines.extend(tally.beyond.iter().cloned());
        }
        lines.dedup();
        lines
    }

    /// Sums up the answers about all kernels in one line. `None` if no test is a kernel.
    pub(super) fn text(&self) -> Option<String> {
        let all: Vec<&Tally> = self.all.values().collect();
        let first = all.first()?;
        let mut names: Vec<(&str, &str)> = Vec::new();
        for ((path, ..), tally) in &self.all {
            let name = (path.as_str(), tally.kernel.as_str());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let kernels = counted(names.len(), "kernel");
        let one = all.len() == 1;
        let mut text = if names.len() == all.len() {
            kernels
        } else {
            format!(
                "{} of {kernels}",
                if one {
                    "1 launch".to_owned()
                } else {
                    format!("{} launches", all.len())
                }
            )
        };
        if let LaunchSource::Main(launches) = first.origin
            && all
                .iter()
                .all(|tally| matches!(tally.origin, LaunchSource::Main(_)))
        {
            text = programs(all.len(), names.len(), launches);
        }
        let launches = if one { "launch" } else { "launches" };
        fn kind(origin: LaunchSource) -> std::mem::Discriminant<LaunchSource> {
            std::mem::discriminant(&origin)
        }
        let same = all
            .iter()
            .all(|tally| kind(tally.origin) == kind(first.origin));
        let origin = match first.origin {
            _ if !same => "partly chosen",
            LaunchSource::Main(_) => "as in `main`",
            LaunchSource::File => "as in the file",
            LaunchSource::CommandLine => "as on the command line",
            LaunchSource::Chosen => "chosen",
            LaunchSource::Smaller => "smaller than given",
        };
        match first.origin {
            LaunchSource::Main(_) if same => text += ": ",
            _ => {
                let _ = write!(text, ", {launches} {origin}: ");
            }
        }
        let count = |is: &dyn Fn(&Tally) -> bool| all.iter().filter(|tally| is(tally)).count();
        let mut races = Vec::new();
        for word in ["racy", "race-free"] {
            match count(&|tally| tally.race == Some(word)) {
                0 => {}
                n => races.push(format!("{n} {word}")),
            }
        }
        match count(&|tally| tally.outside) {
            0 => {}
            n => races.push(format!("{n} out of bounds")),
        }
        match count(&|tally| tally.undecided && !tally.outside) {
            0 => {}
            n => races.push(format!("{n} not decided")),
        }
        text += &races.join(", ");
        let rest: Vec<String> = [self.misuses(), self.hangs(), self.late()]
            .into_iter()
            .flatten()
            .collect();
        if !rest.is_empty() {
            text += "; ";
            text += &rest.join(", ");
        }
        Some(text)
    }

    fn misuses(&self) -> Option<String> {
        let known: Vec<_> = self
            .all
            .values()
            .filter_map(|tally| tally.misuse.as_ref())
            .collect();
        let mut names: IndexMap<&str, usize> = IndexMap::new();
        known
            .iter()
            .filter_map(|misuse| misuse.as_deref())
            .for_each(|name| {
                *names.entry(name).or_default() += 1;
            });
        if names.is_empty() {
            return (known.len() == self.all.len()).then(|| "no barrier divergence".to_owned());
        }
        let all: Vec<String> = names
            .iter()
            .map(|(name, n)| format!("{n} with {name}"))
            .collect();
        Some(all.join(", "))
    }

    fn late(&self) -> Option<String> {
        let known: Vec<bool> = self.all.values().filter_map(|tally| tally.late).collect();
        match known.iter().filter(|late| **late).count() {
            0 => (!known.is_empty()).then(|| "nothing used after its end".to_owned()),
            1 => Some("1 uses something after its end".to_owned()),
            n => Some(format!("{n} use something after its end")),
        }
    }

    fn hangs(&self) -> Option<String> {
        let known: Vec<bool> = self.all.values().filter_map(|tally| tally.hangs).collect();
        match known.iter().filter(|hangs| **hangs).count() {
            0 => (known.len() == self.all.len()).then(|| "no hang".to_owned()),
            1 => Some("1 hangs".to_owned()),
            n => Some(format!("{n} hang")),
        }
    }
}

/// The name of undefined behaviour other than a race.
pub fn misuse_name(fault: &Fault) -> String {
    match fault.name().as_str() {
        "divergence" => "barrier divergence".to_owned(),
        // The name of a set of events.
        name => name.to_lowercase(),
    }
}

/// `1 program, 3 launches as in `main``.
fn programs(ways: usize, programs: usize, launches: usize) -> String {
    let text = counted(programs, "program");
    match (programs, ways) {
        (1, 1) => format!("{text}, {} as in `main`", plural(launches, "launch")),
        (programs, ways) if programs == ways => format!("{text}, launches as in `main`"),
        _ => format!("{text}, {ways} ways through `main`"),
    }
}

fn plural(n: usize, word: &str) -> String {
    match n {
        1 => format!("1 {word}"),
        n => format!("{n} {word}es"),
    }
}

impl AnswerLine {
    /// Whether the answer finds fault with a program of which nothing is expected.
    pub(super) fn fault_status(&self) -> Option<QueryStatus> {
        let bad = match self.answer.verdict {
            Verdict::Racy | Verdict::Hangs | Verdict::Divergent | Verdict::Misused => true,
            // The answer about races tells of a race.
            Verdict::Undefined => {
                let fault = self.answer.fault.as_ref();
                fault.is_none_or(|fault| !fault.race && !fault.lifetime)
            }
            // The kernel has another error, and the question stays open.
            Verdict::Undecided(_) => self.kernel.as_ref().is_some_and(|k| !k.found.is_empty()),
            _ => false,
        };
        let asked = self.kernel.is_some() || self.denies_fault;
        (bad && asked && self.expected.is_none()).then_some(QueryStatus::Fault(self.denies_fault))
    }
}
