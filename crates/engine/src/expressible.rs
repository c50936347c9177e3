//! Refuses programs with a feature that the model does not speak of, by one table of features.
//!
//! A model that does not speak of a feature would give it no meaning, and the answer would be
//! wrong.
//!
//! # Invariants
//! - The first row that refuses a program gives the reason.

use cat::model::ir::{FreeShape, Model};
use program::litmus::LitmusTest;
use program::{Instr, Location, LocationKind, MemoryKind, Program, TENSOR_TAGS, Tag};
use verdict::Reason;

use crate::skeleton::signature::{self, BaseRole};

/// The word by which a model speaks of a feature.
enum ModelWord {
    /// A base relation with this role.
    Role(BaseRole),
    /// One with either of these roles.
    EitherRole(BaseRole, BaseRole),
    /// A tag, unless the model tells no accesses apart by their tags.
    Tag(Tag),
    /// Any of these sets of accesses to memory and of fences of it, unless the model tells no
    /// accesses apart by their tags.
    Memory(&'static [&'static str]),
}

impl ModelWord {
    fn is_missing_in(&self, model: &Model) -> bool {
        match *self {
            ModelWord::Role(role) => !signature::speaks_of(model, role),
            ModelWord::EitherRole(a, b) => {
                !signature::speaks_of(model, a) && !signature::speaks_of(model, b)
            }
            ModelWord::Tag(tag) => signature::is_deaf_to(model, tag),
            ModelWord::Memory(sets) => {
                signature::has_tags(model) && !signature::has_set(model, sets)
            }
        }
    }
}

/// A feature of programs: its word in models, and the first use in a program, described.
struct Feature(ModelWord, fn(&Program) -> Option<String>);

/// All features that some model does not speak of.
const FEATURES: &[Feature] = &[
    Feature(ModelWord::Role(BaseRole::Launch), |program| {
        let calls = "calls of the runtime by host threads";
        program.host.as_ref().map(|_| calls.to_owned())
    }),
    Feature(ModelWord::Tag(Tag::Generic), |program| {
        let why = "PTX in assembly or in a function of the library, which means something under a \
        model of PTX alone";
        program.assembly().map(|instr| explained(instr, why))
    }),
    Feature(ModelWord::Tag(Tag::LaunchDependents), |program| {
        let mut commands = program.host.iter().flat_map(|host| &host.commands);
        let command = commands.find(|command| command.programmatic)?;
        Some(format!("dependent launches (`{}`)", command.name))
    }),
    Feature(ModelWord::Tag(Tag::Mbarrier), |program| {
        tagged(program, Tag::Mbarrier, "mbarrier objects")
    }),
    Feature(ModelWord::Tag(Tag::MbarrierInit), |program| {
        tagged(program, Tag::MbarrierInit, "mbarrier objects")
    }),
    Feature(ModelWord::Tag(Tag::LaunchDependents), |program| {
        tagged(program, Tag::LaunchDependents, "dependent launches")
    }),
    Feature(ModelWord::Tag(Tag::GridWait), |program| {
        tagged(program, Tag::GridWait, "dependent launches")
    }),
    Feature(ModelWord::Tag(Tag::TensorLoad), |program| {
        let mut instrs = program.instrs().map(|(_, _, instr)| instr);
        let instr = instrs.find(|instr| instr.op.has_any(&TENSOR_TAGS))?;
        Some(named("tensor memory", instr))
    }),
    Feature(ModelWord::Tag(Tag::Half), |program| {
        tagged(program, Tag::Half, "proxy fences of one direction")
    }),
    Feature(ModelWord::Memory(&["IMAGE", "IMAGE_FENCE"]), |program| {
        of_kind(program, "images", |kind| {
            matches!(kind, MemoryKind::Image { .. })
        })
    }),
    Feature(
        ModelWord::Memory(&["PIPE", "PIPE_READ", "PIPE_WRITE"]),
        |program| of_kind(program, "pipes", |kind| kind == MemoryKind::Pipe),
    ),
    Feature(ModelWord::Role(BaseRole::Asynchronous), |program| {
        let instr = program.asynchronous()?;
        Some(named("asynchronous operations", instr))
    }),
    Feature(ModelWord::Role(BaseRole::Address), |program| {
        let name = program.alias_in_source()?;
        Some(format!("virtual aliases (`{name}`)"))
    }),
    Feature(ModelWord::Role(BaseRole::Whole), |program| {
        let mut instrs = program.instrs().map(|(_, _, instr)| instr);
        let instr = instrs.find(|instr| instr.element.cells > 1)?;
        let why = "an access to an object that is accessed in smaller pieces elsewhere";
        Some(explained(instr, why))
    }),
    Feature(
        ModelWord::EitherRole(BaseRole::Whole, BaseRole::Members),
        |program| {
            let instr = program.of_several_cells()?;
            Some(explained(instr, "one access to several cells"))
        },
    ),
];

/// The first object of a kind in a program, described.
fn of_kind(program: &Program, what: &str, is: impl Fn(MemoryKind) -> bool) -> Option<String> {
    let is_of = |location: &&Location| match location.kind {
        LocationKind::Object { kind, .. } => is(kind),
        LocationKind::Alias { .. } => false,
    };
    let found = program.locations.iter().find(is_of)?;
    Some(format!("{what} (`{}`)", found.name))
}

/// The first instruction with a tag, described.
fn tagged(program: &Program, tag: Tag, what: &str) -> Option<String> {
    let mut instrs = program.instrs().map(|(_, _, instr)| instr);
    let instr = instrs.find(|instr| instr.op.has(tag))?;
    Some(named(what, instr))
}

fn named(what: &str, instr: &Instr) -> String {
    format!("{what} (`{}`, line {})", instr.text, instr.line)
}

fn explained(instr: &Instr, why: &str) -> String {
    format!("`{}` (line {}), {why}", instr.text, instr.line)
}

/// Why the engines refuse an access to a tile.
const TILES: &str = "an access to a tile by a CTA of more than 32 threads";

/// Checks that the model can express the program, and that the engines support the model.
///
/// # Errors
/// The model has another free function than `values`, or does not speak of a feature.
pub(crate) fn check(test: &LitmusTest, model: &Model) -> Result<(), Reason> {
    if let Some(instr) = test.program.tiled() {
        return Err(Reason::Unsupported(explained(instr, TILES)));
    }
    let values = model.values.0 as usize;
    for (at, free) in model.free.iter().enumerate() {
        if free.shape == FreeShape::Function && at != values {
            let what = format!("a free function `{}` other than `values`", free.name);
            return Err(Reason::Unsupported(what));
        }
    }
    let refused = FEATURES.iter().find_map(|Feature(word, first_use)| {
        first_use(&test.program).filter(|_| word.is_missing_in(model))
    });
    refused.map_or(Ok(()), |what| Err(Reason::NotInModel(what)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{corpus, shipped};

    #[test]
    fn each_feature_needs_a_model_that_speaks_of_it() {
        let models = ["ptx", "ptx-v7.5", "cuda", "opencl", "c11", "sc"].map(shipped);
        let mut seen = vec![[false; 2]; FEATURES.len()];
        for test in corpus("") {
            for (Feature(word, first_use), seen) in FEATURES.iter().zip(&mut seen) {
                if seen.contains(&false) && first_use(&test.program).is_some() {
                    for model in &models {
                        let refused = check(&test, model).is_err();
                        let missing = word.is_missing_in(model);
                        assert!(refused || !missing, "{}", test.name);
                        seen[usize::from(refused)] |= refused == missing;
                    }
                }
            }
        }
        for (at, seen) in seen.iter().enumerate() {
            assert_eq!(*seen, [true; 2], "feature {at} is taken and refused");
        }
    }
}
