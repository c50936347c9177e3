//! `fencepost distinguish`: the smallest program with an outcome that one model allows and another
//! forbids.
//!
//! The search returns a test. It is read, compared by all engines as `compare` would, and shown
//! with its reasons. A result that the engines do not confirm is a defect.

use std::borrow::Cow;
use std::time::Instant;

use super::args::{DistinguishArgs, EngineArg, QuestionArgs};
use super::catalogue::{Catalogue, NameKind, Named};
use super::compare;
use super::decide::Decided;
use super::defect;
use super::plan::Unit;
use super::run::Run;
use super::seams;
use super::terminal::Terminal;
use clap::ValueEnum as _;
use diag::Diagnostic;
use distinguish::{Alphabet, DifferingProgram, Further, JudgeSetup, SearchRequest, Tier};
use front::mapping::{GapTest, Mapping, shipped};
use program::Dialect;
use program::litmus::LitmusTest;
use program::options::Setting;
use report::{Comparison, Distinction, DistinguishingProgram, ReportSubject};
use verdict::{Property, Relation, Verdict};
use why::known_gap;

/// Runs it; returns the exit code.
pub(super) fn run(args: &DistinguishArgs, terminal: &Terminal) -> u8 {
    distinguish(args, terminal).unwrap_or_else(|code| code)
}

/// A model, and the mapping through which it judges the programs.
#[derive(Clone)]
pub(super) struct MappedModel {
    /// The model.
    pub model: Named,
    /// The mapping.
    pub mapping: Option<&'static Mapping>,
}

impl MappedModel {
    /// In the form that the search takes.
    pub(super) fn judged<'a>(&'a self, set: &'a [Setting]) -> JudgeSetup<'a> {
        JudgeSetup {
            model: &self.model.model,
            mapping: self.mapping,
            set,
            learnt: None,
        }
    }

    /// Its name in reports.
    pub(super) fn called(&self) -> String {
        match self.mapping {
            Some(mapping) => format!("{} via {}", self.model.label, mapping.name),
            None => self.model.label.clone(),
        }
    }

    /// Whether the model is a shipped one that judges programs directly or through the current
    /// mapping: any reader of a test means it by its name.
    fn is_plain(&self) -> bool {
        let is_current =
            |m: &'static Mapping| Mapping::current(m.from).is_some_and(|c| std::ptr::eq(c, m));
        self.model.label == self.model.request && self.mapping.is_none_or(is_current)
    }

    /// A test under the model, with the questions of comparisons.
    ///
    /// # Errors
    /// If the mapping cannot lower the test.
    fn unit<'a>(&self, path: &'a str, test: &'a LitmusTest) -> Result<Unit<'a>, String> {
        let judged = match self.mapping.map(|m| m.lowered(test)) {
            None => Cow::Borrowed(test),
            Some(lowered) => Cow::Owned(lowered?),
        };
        Ok(Unit {
            path,
            test: judged,
            source: test,
            mapping: self.mapping,
            refused: None,
            model: self.model.clone(),
            questions: compare::questions(test, &self.model.label),
            place: 0,
        })
    }
}

fn distinguish(args: &DistinguishArgs, terminal: &Terminal) -> Result<u8, u8> {
    let mut question = args.question.clone();
    // All engines of this build decide the result.
    if question.engine == EngineArg::Auto {
        question.engine = EngineArg::Both;
    }
    // The suite of a model separates it from the model without a clause.
    let names = [
        args.allows.clone(),
        args.forbids.clone().unwrap_or_else(|| args.allows.clone()),
    ];
    if !question.models.is_empty() {
        let plain = Diagnostic::plain(
            "model-twice",
            "`distinguish` takes its two models as arguments, without `--model`",
        );
        terminal.diagnose(&plain.help("write, for example, `fencepost distinguish ptx sc`"));
        return Err(super::exit::INVALID);
    }
    let mut run = Run::new(terminal, &question, ReportSubject::Others)?;
    let (sides, dialect) =
        sides(&names, &question, run.settings.mapping).map_err(|diagnostics| {
            terminal.diagnose_all(&diagnostics);
            super::exit::INVALID
        })?;
    run.open(&[], false)?;
    let (alphabet, further) = alphabet(args, dialect).map_err(|unfit| {
        terminal.diagnose(&unfit);
        super::exit::INVALID
    })?;
    if args.suite {
        let unfit = [
            (
                Further::Reduce,
                "red",
                "reductions: no outcome shows the value that they read, so no weakening changes it",
            ),
            (
                Further::Barrier,
                "barrier",
                "barriers: without one of them, the other threads wait forever",
            ),
        ];
        if let Some((_, word, why)) = unfit.iter().find(|(letters, ..)| further.contains(letters)) {
            let unfit = Diagnostic::plain("no-such-letters", format!("a suite cannot have {why}"));
            terminal.diagnose(&unfit.help(format!("leave out `{word}`")));
            return Err(super::exit::INVALID);
        }
        super::suite::suite(&mut run, args, &sides[1], &alphabet)?;
        return Ok(run.end());
    }
    let [allows, forbids] = &sides;
    let way = Way { allows, forbids };
    let mut ways = vec![way];
    if args.both {
        ways.push(way.back());
    }
    for way in ways {
        let within = search(&mut run, args, way, &alphabet, Gaps::Within)?;
        fn relation(d: &Distinction) -> Option<Relation> {
            d.found
                .first()
                .and_then(|p| Some(p.comparison.findings.first()?.relation))
        }
        let known = within
            .as_ref()
            .is_some_and(|d| relation(d) == Some(Relation::KnownGap));
        // A known gap is not all that may exist.
        if within.is_some() && known && !args.all {
            search(&mut run, args, way, &alphabet, Gaps::Beyond)?;
        }
        if within.is_none() {
            break;
        }
    }
    Ok(run.end())
}

/// The letters that are asked for, and the chosen ones among them.
///
/// # Errors
/// If the language lacks some.
fn alphabet(
    args: &DistinguishArgs,
    dialect: Dialect,
) -> Result<(Alphabet, Vec<Further>), Box<Diagnostic>> {
    let further: Vec<Further> = args.with.iter().map(|letters| letters.further()).collect();
    for (word, letters) in args.with.iter().zip(&further) {
        if let Some(noun) = letters.lacks(dialect) {
            let word = word
                .to_possible_value()
                .map_or(String::new(), |word| word.get_name().to_owned());
            let message = format!(
                "`--with {word}` needs {noun}, and {} has none",
                dialect.row().doc
            );
            let unfit = Diagnostic::plain("no-such-letters", message);
            return Err(Box::new(unfit.help(format!("leave out `{word}`"))));
        }
    }
    let alphabet = Alphabet::new(dialect, &further);
    if !args.guidelines {
        return Ok((alphabet, further));
    }
    if dialect != Dialect::OpenCl {
        let message = format!("{} has no guidelines", dialect.row().doc);
        let unfit = Diagnostic::plain("no-such-letters", message);
        return Err(Box::new(unfit.help("leave out `--guidelines`")));
    }
    Ok((alphabet.of_guidelines(), further))
}

/// The direction of a search.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    /// The model that allows the programs.
    pub allows: &'a MappedModel,
    /// The model that forbids them.
    pub forbids: &'a MappedModel,
}

impl<'a> Way<'a> {
    fn back(self) -> Way<'a> {
        Way {
            allows: self.forbids,
            forbids: self.allows,
        }
    }
}

/// Whether known gaps of a mapping count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gaps {
    Within,
    Beyond,
}

/// Searches and reports; `None`: the reader has left.
fn search(
    run: &mut Run<'_>,
    args: &DistinguishArgs,
    way: Way<'_>,
    alphabet: &Alphabet,
    gaps: Gaps,
) -> Result<Option<Distinction>, u8> {
    let Way { allows, forbids } = way;
    let set = run.settings.set.clone();
    // An outcome is in a known gap if a weakened source model allows it, or another mapping
    // excludes it.
    let known = allows
        .mapping
        .filter(|_| gaps == Gaps::Beyond)
        .map_or(&[][..], |m| &m.gaps);
    let reduced: Vec<_> = known
        .iter()
        .filter_map(|gap| known_gap::reduced(&forbids.model.model, gap))
        .collect();
    let mended = known.iter().filter_map(|gap| match &gap.told {
        GapTest::Mended(by) => Mapping::named(by),
        GapTest::Less => None,
    });
    let judged = |model, mapping| JudgeSetup {
        model,
        mapping,
        set: &set,
        learnt: None,
    };
    let mut allowing = vec![judged(&allows.model.model, allows.mapping)];
    allowing.extend(mended.map(|by| judged(&allows.model.model, Some(by))));
    let mut forbidding = vec![judged(&forbids.model.model, forbids.mapping)];
    forbidding.extend(reduced.iter().map(|model| judged(model, forbids.mapping)));
    let sought = SearchRequest {
        allows: allowing,
        forbids: forbidding,
        alphabet,
        size: usize::from(args.size),
        tiers: if args.critical {
            &[Tier::Critical]
        } else {
            &[Tier::Critical, Tier::Other]
        },
        all: args.all,
        jobs: run.pool.jobs(),
        deadline: run.settings.limits.timeout.map(|t| Instant::now() + t),
    };
    let answer = distinguish::search(&sought).map_err(|why| {
        run.terminal
            .diagnose(&Diagnostic::plain("cannot-distinguish", why));
        super::exit::INVALID
    })?;
    let mut found = Vec::new();
    for (number, program) in answer.found.iter().enumerate() {
        found.extend(confirmed(run, way, alphabet, program, number));
    }
    let beyond = if gaps == Gaps::Beyond {
        " beyond its known gaps"
    } else {
        ""
    };
    let outcomes = match args.critical {
        true => {
            "; only outcomes that no interleaving shows, while each location alone behaves like \
            memory"
        }
        false => "",
    };
    let distinction = Distinction {
        allows: format!("{}{beyond}", allows.called()),
        forbids: forbids.called(),
        alphabet: alphabet.describe() + outcomes,
        size: usize::from(args.size),
        searched: answer.searched,
        stopped: answer.stopped,
        found,
    };
    run.summary.add_distinction(&distinction);
    run.events.answered = true;
    run.events.unmet |= distinction.violated();
    run.events.undecided |= distinction.stopped.is_some();
    Ok(run
        .outputs
        .distinction(&distinction)
        .is_continue()
        .then_some(distinction))
}

/// The models and their mappings, and the language of the programs.
fn sides(
    names: &[String; 2],
    question: &QuestionArgs,
    selected: Option<&'static Mapping>,
) -> Result<([MappedModel; 2], Dialect), Vec<Diagnostic>> {
    let mut catalogue = Catalogue::new(question.prelude.clone());
    // A file without a statement counts as the model that its name begins with, like a shipped
    // model.
    fn of_name(name: &String) -> Option<Dialect> {
        let stem = std::path::Path::new(name)
            .file_stem()
            .map(|s| s.to_string_lossy().into_owned());
        Dialect::of_model(&stem.unwrap_or_default())
    }
    let of = names.each_ref().map(|name| {
        let shipped = catalogue.kind(name) == NameKind::Shipped;
        catalogue
            .spoken(name, Dialect::default())
            .or_else(|| of_name(name).filter(|_| !shipped))
    });
    let (dialect, mapping) = match (of, selected) {
        ([Some(a), Some(b)], None) if a != b => {
            let current = [a, b].into_iter().filter_map(Mapping::current);
            let fits = |m: &&Mapping| [m.from, m.to] == [a, b] || [m.from, m.to] == [b, a];
            match current.into_iter().find(fits) {
                Some(mapping) => (mapping.from, Some(mapping)),
                None => return Err(vec![apart(names, a, b)]),
            }
        }
        ([a, b], None) => (a.or(b).unwrap_or_default(), None),
        (of, Some(mapping)) => {
            if let Some(other) = of
                .iter()
                .flatten()
                .find(|d| ![mapping.from, mapping.to].contains(d))
            {
                let message = format!(
                    "mapping `{}` does not map {}",
                    mapping.name,
                    other.row().doc
                );
                let note = format!(
                    "it maps {} to {}",
                    mapping.from.row().doc,
                    mapping.to.row().doc
                );
                return Err(vec![Diagnostic::plain("unfit-mapping", message).note(note)]);
            }
            (mapping.from, Some(mapping))
        }
    };
    let through = |i: usize| {
        let mapping = mapping?;
        match of[i] {
            Some(d) => (d == mapping.to).then_some(mapping),
            // A file without a statement belongs to the other side than the other model.
            None if catalogue.kind(&names[i]) == NameKind::Shipped => None,
            None => (of[1 - i] == Some(mapping.from)).then_some(mapping),
        }
    };
    let via = [through(0), through(1)];
    let mut load = |i: usize| {
        let spoken = via[i].map_or(dialect, |m: &Mapping| m.to);
        catalogue.get(&names[i], spoken).map(|model| MappedModel {
            model,
            mapping: via[i],
        })
    };
    match (load(0), load(1)) {
        (Some(a), Some(b)) => Ok(([a, b], dialect)),
        _ => Err(catalogue.diagnostics()),
    }
}

/// Two models that share no programs.
fn apart(names: &[String; 2], a: Dialect, b: Dialect) -> Diagnostic {
    let message = format!(
        "`{}` judges {}, `{}` judges {}, and no mapping connects the two",
        names[0],
        a.row().doc,
        names[1],
        b.row().doc
    );
    let known = shipped()
        .iter()
        .map(Mapping::name)
        .collect::<Vec<_>>()
        .join(", ");
    Diagnostic::plain("no-common-dialect", message).note(format!("mappings: {known}"))
}

/// The program as a test, with the engines' answers; nothing if they contradict the search.
pub(super) fn confirmed(
    run: &mut Run<'_>,
    way: Way<'_>,
    alphabet: &Alphabet,
    found: &DifferingProgram,
    number: usize,
) -> Option<DistinguishingProgram> {
    let name = match number {
        0 => found.shape.name(),
        _ => format!("{}.{}", found.shape.name(), number + 1),
    };
    let text = way.text(alphabet, found, &name);
    match way.compared(run, &format!("{name}.toml"), &text) {
        Ok(comparison) => Some(DistinguishingProgram {
            size: found.letters.len(),
            text,
            comparison,
        }),
        Err(Unconfirmed::Undecided) => {
            run.events.undecided = true;
            None
        }
        Err(Unconfirmed::Broken(why)) => {
            let message = format!("a defect of Fencepost: {why}");
            run.events.defect = true;
            run.terminal
                .diagnose(&Diagnostic::plain("defect", message).note(text));
            None
        }
    }
}

/// The reason why the engines do not confirm a program.
enum Unconfirmed {
    Undecided,
    /// A defect of Fencepost.
    Broken(String),
}

impl Way<'_> {
    /// The program as the text of a test, with expectations if any reader of the test would judge
    /// it so.
    fn text(self, alphabet: &Alphabet, found: &DifferingProgram, name: &str) -> String {
        let Way { allows, forbids } = self;
        let (a, b) = (allows.called(), forbids.called());
        let remark = format!("`{a}` allows an outcome that `{b}` forbids.");
        let mut text = found.text(alphabet, name, &remark);
        if allows.is_plain() && forbids.is_plain() {
            text += "\n[expect]\n";
            for (side, word) in [(allows, "allowed"), (forbids, "forbidden")] {
                // Names such as `opencl-3.1` are keys only in quotes.
                text += &format!(
                    "\"{}\" = {{ reachability = \"{word}\" }}\n",
                    side.model.label
                );
            }
        }
        text
    }

    /// The answers of the engines, if they confirm the search.
    fn compared(
        self,
        run: &mut Run<'_>,
        path: &str,
        text: &str,
    ) -> Result<Comparison, Unconfirmed> {
        let mut tests = seams::read_tests(path, text.as_bytes())
            .map_err(|errors| {
                let why = errors.first().map_or(String::new(), |e| e.message.clone());
                Unconfirmed::Broken(format!(
                    "the search wrote a program that cannot be read: {why}"
                ))
            })?
            .tests;
        let test = tests
            .pop()
            .ok_or_else(|| Unconfirmed::Broken("the search wrote no program".to_owned()))?;
        let units = [self.allows, self.forbids].map(|side| side.unit(path, &test));
        let units = units.into_iter().collect::<Result<Vec<_>, _>>();
        let units = units.map_err(Unconfirmed::Broken)?;
        let Decided {
            results, defects, ..
        } = compare::judge(&units, &run.settings);
        for broken in &defects {
            run.events.defect = true;
            run.terminal.diagnose(&defect::diagnostic(broken));
        }
        let comparison = results.into_iter().next();
        let comparison = comparison.ok_or(Unconfirmed::Undecided)?;
        let said = |i: usize| {
            let column = comparison.columns.get(i)?;
            column.verdict(Property::Reachability).cloned()
        };
        let mut findings = comparison.findings.iter();
        let exempt = findings.any(|f| f.relation == Relation::Exempt);
        match (said(0), said(1)) {
            (Some(Verdict::Allowed), Some(Verdict::Forbidden)) if !exempt => Ok(comparison),
            (Some(Verdict::Undecided(_)), _) | (_, Some(Verdict::Undecided(_))) => {
                Err(Unconfirmed::Undecided)
            }
            (x, y) => {
                let [x, y] = [x, y].map(|v| v.map_or("nothing", |v| v.word()));
                Err(Unconfirmed::Broken(format!(
                    "the search found that {} allows and {} forbids, the engines say {x} and {y}",
                    self.allows.called(),
                    self.forbids.called(),
                )))
            }
        }
    }
}
