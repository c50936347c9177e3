//! Arguments of the commands for work by hand: `new`, `explain`, `completions`, `man`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};

use program::Dialect;

// Arguments of `fencepost new`.
#[derive(Debug, Args)]
pub(in crate::cli) struct NewArgs {
    /// The test's name; folders before it say where, as in litmus/MP+rel+acq
    #[arg(value_name = "NAME")]
    pub(in crate::cli) name: PathBuf,
    /// The language of the code
    #[arg(long, value_parser = dialects(), default_value = Dialect::default().name())]
    pub(in crate::cli) dialect: String,
    /// What to begin with
    #[arg(long, value_enum, default_value = "mp")]
    pub(in crate::cli) template: TemplateArg,
}

/// The languages that have templates.
fn dialects() -> PossibleValuesParser {
    PossibleValuesParser::new(
        front::litmus::dialects().map(|d| PossibleValue::new(d.name()).help(d.row().doc)),
    )
}

/// Templates of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum TemplateArg {
    /// Message passing.
    Mp,
    /// Store buffering.
    Sb,
    /// Load buffering.
    Lb,
    /// Independent reads of independent writes.
    Iriw,
    /// A lock by compare-and-swap.
    Cas,
    /// A barrier of the block.
    Barrier,
    /// A kernel with a grid and a barrier.
    Kernel,
}

// Arguments of `fencepost explain`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ExplainArgs {
    /// An axiom, a relation, a tag, an option or a term; without one, what there is
    #[arg(value_name = "AXIOM|RELATION|TERM")]
    pub(in crate::cli) word: Vec<String>,
    /// As this model has it: a name, or a .cat file [default: the first shipped model that knows
    /// the word]
    #[arg(long, value_name = "NAME|FILE.cat")]
    pub(in crate::cli) model: Option<String>,
    /// What a .cat file without `free` declarations takes for granted
    #[arg(long, value_name = "NAME", default_value = "ptx")]
    pub(in crate::cli) prelude: String,
}

// Arguments of `fencepost completions`.
#[derive(Debug, Args)]
pub(in crate::cli) struct CompletionsArgs {
    /// For which shell
    #[arg(value_enum)]
    pub(in crate::cli) shell: clap_complete::Shell,
}

// Arguments of `fencepost man`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ManArgs {
    /// A folder for one page per command; without it, the page of `fencepost` goes to standard
    /// output
    #[arg(short, long = "output", value_name = "DIR")]
    pub(in crate::cli) output: Option<PathBuf>,
}
