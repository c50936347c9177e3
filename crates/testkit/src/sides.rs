//! Compares the executor's memories of languages with their models: shown against allowed
//! behaviour.

use crate::suite::shipped;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use cat::model::{Library, Model, Shipped, load};
use diag::SourceFile;
use engine::skeleton::signature::signature;
use engine::{Engine, Limits};
use front::litmus::read_path;
use program::litmus::LitmusTest;
use simt::record::HazardKind;
use simt::{MachineMemory, MemoryRules, RunOptions, Schedule, observe};
use verdict::{State, Verdict};
use why::Session;

use super::clike::Lang;
use super::clike::shapes::program;
use super::suite::{files, number};

/// A memory, the language of its programs, and its model with and without early binds.
pub struct Side {
    pub memory: MachineMemory,
    pub lang: Lang,
    pub full: Model,
    pub in_order: Model,
}

impl Side {
    pub fn new(memory: MachineMemory, lang: Lang) -> Side {
        let name = memory.model();
        let text = &Library::model(name).expect("shipped").text;
        let text =
            format!("{text}\nacyclic po | rf | syncbar | exitbar | nextbar | meets as In-Order\n");
        let file = SourceFile::new("in-order.cat", text);
        let in_order = load(file, "in-order", &Shipped, &signature(), None).expect("valid");
        Side {
            memory,
            lang,
            full: shipped(name),
            in_order,
        }
    }

    pub fn options(&self, rules: MemoryRules) -> RunOptions {
        let timeout = Some(Duration::from_millis(timeout()));
        RunOptions {
            memory: self.memory,
            rules,
            states: 400_000,
            timeout,
            ..RunOptions::default()
        }
    }
}

pub fn sides() -> [Side; 6] {
    [
        Side::new(MachineMemory::OpenCl, Lang::OpenCl),
        Side::new(MachineMemory::OpenCl31, Lang::OpenCl),
        Side::new(MachineMemory::Cuda, Lang::Cuda),
        Side::new(MachineMemory::Cuda17, Lang::Cuda),
        Side::new(MachineMemory::C11, Lang::C),
        Side::new(MachineMemory::Rc11, Lang::C),
    ]
}

pub fn timeout() -> u64 {
    number("FENCEPOST_TIMEOUT_MS", 2_000)
}

/// The possible behaviour: outcomes, whether some execution races, and whether some is undefined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behaviour {
    pub outcomes: BTreeSet<State>,
    pub racy: bool,
    pub undefined: bool,
}

/// The behaviour that a model allows; `None` if it is not known within the time.
pub fn modelled(test: &LitmusTest, model: &Model) -> Option<Behaviour> {
    let limits = Limits {
        bound: Some(6),
        timeout: Some(Duration::from_millis(timeout())),
    };
    let mut session = Session::new(test, model, Engine::Auto, limits, &[]);
    let outcomes = session.outcomes();
    assert_eq!(outcomes.defect, None, "{}", test.file.text);
    let flag = |answer: Option<verdict::Answer>| match answer?.verdict {
        Verdict::Racy | Verdict::Undefined => Some(true),
        Verdict::RaceFree | Verdict::Defined => Some(false),
        _ => None,
    };
    let (racy, undefined) = (flag(session.race())?, flag(session.undefined())?);
    let allowed = outcomes
        .outcomes
        .into_iter()
        .filter(|o| o.allowed)
        .map(|o| o.state);
    outcomes.complete.then(|| Behaviour {
        outcomes: allowed.collect(),
        racy,
        undefined,
    })
}

/// The behaviour that the machine shows, and the number of its states.
pub fn shown(test: &LitmusTest, options: &RunOptions) -> Result<(Behaviour, u64), String> {
    let observation = observe(test, options, Schedule::Exhaustive)?;
    if let Some(reason) = &observation.reason {
        return Err(format!(
            "machine: {}",
            reason.split(':').next().unwrap_or_default()
        ));
    }
    let hazards = operational::hazards(test, &observation);
    let racy = hazards.iter().any(|h| h.kind == HazardKind::Race);
    let outcomes = operational::name(test, &observation)
        .into_iter()
        .map(|n| n.0)
        .collect();
    let undefined = hazards.iter().any(|h| h.kind.is_undefined());
    Ok((
        Behaviour {
            outcomes,
            racy,
            undefined,
        },
        observation.states,
    ))
}

/// A rule, the way to take it out, and the memories on which its absence must show.
pub type Mutant = (&'static str, fn(&mut MemoryRules), &'static [MachineMemory]);

/// Requires for each rule that some program shows its absence, among the written ones of the
/// language and random ones.
pub fn each_is_missed(
    mutants: &[Mutant],
    shows: &dyn Fn(&Side, &LitmusTest, MemoryRules) -> Option<String>,
) {
    let (sides, limit) = (sides(), number("FENCEPOST_MUTANTS", 4_000));
    let written = [Lang::OpenCl, Lang::Cuda, Lang::C].map(|lang| (lang, written(lang)));
    for (name, remove, memories) in mutants {
        let mut rules = MemoryRules::ALL;
        remove(&mut rules);
        for memory in *memories {
            let side = sides
                .iter()
                .find(|s| s.memory == *memory)
                .expect("one of them");
            let (_, written) = written
                .iter()
                .find(|of| of.0 == side.lang)
                .expect("all are there");
            let random =
                (1..=limit).map(|seed| program(side.lang, seed).read(&format!("seed {seed}")));
            let mut all = written
                .iter()
                .map(Cow::Borrowed)
                .chain(random.map(Cow::Owned));
            let caught = all.find_map(|test| Some((shows(side, &test, rules)?, test.name.clone())));
            let (how, test) = caught
                .unwrap_or_else(|| panic!("{}: nobody misses the rule `{name}`", memory.name()));
            println!("{} without {name}: {test}: {how}", memory.name());
        }
    }
}

/// The tests of the repository in a language, smallest first: they are quick.
fn written(lang: Lang) -> Vec<LitmusTest> {
    let folder = match lang {
        Lang::OpenCl => "opencl",
        Lang::Cuda => "cuda",
        Lang::C => "c11",
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../litmus")
        .join(folder);
    let mut all: Vec<_> = files(&folder, &["toml"])
        .iter()
        .flat_map(|f| read_path(f).unwrap_or_default())
        .collect();
    all.sort_by_key(|test| test.program.instrs().count());
    all
}
