//! Every call of the command line to the test front end and the model language.

use std::path::Path;

use cat::model;
use cat::model::ir::Model;
use diag::Diagnostic;
use engine::skeleton::signature::{self, signature};
use front::litmus;
use front::mapping::{self, Mapping};
use program::Dialect;
use program::dialect::DIALECTS;
use program::litmus::{LitmusTest, Prop};

/// Names that are reserved for models; those not in [`model_names`] are not shipped yet.
pub(super) const RESERVED_NAMES: [&str; 15] = [
    "ptx",
    "ptx-v6.0",
    "ptx-v7.5",
    "cuda",
    "cuda-17",
    "opencl",
    "opencl-3.1",
    "opencl-simp",
    "opencl-2.0",
    "opencl-total",
    "c11",
    "rc11",
    "sc",
    "vulkan",
    "vulkan-nochains",
];

/// The tests in one file, with warnings: a template gives several.
pub(super) fn read_tests(name: &str, bytes: &[u8]) -> Result<litmus::TestFile, Vec<Diagnostic>> {
    litmus::read(name, bytes)
}

/// The tests in one file, which may be a source file: each kernel with each of its launches.
pub(super) fn read_file(
    name: &str,
    bytes: &[u8],
    options: &litmus::source::Options,
) -> Result<litmus::TestFile, Vec<Diagnostic>> {
    litmus::read_with(name, bytes, options)
}

/// A proposition in the words of the test's condition.
pub(super) fn parse_prop(test: &LitmusTest, text: &str) -> Result<Prop, Vec<Diagnostic>> {
    litmus::parse_prop(test, text)
}

/// The test in the TOML format.
pub(super) fn to_toml(test: &LitmusTest) -> Result<String, Box<Diagnostic>> {
    litmus::to_toml(test)
}

/// The text of a test file with another expectation; `None`: no place in it speaks of that test
/// alone.
pub(super) fn bless(
    text: &str,
    test: &str,
    model: &str,
    property: &str,
    verdict: &str,
) -> Option<String> {
    litmus::bless(text, test, model, property, verdict)
}

/// The JSON schema of the TOML format.
pub(super) fn schema() -> serde_json::Value {
    litmus::schema()
}

/// A shipped model by name, or a file; `prelude` is used if it declares no free relations.
pub(super) fn load_model(name_or_path: &str, prelude: &str) -> Result<Model, Vec<Diagnostic>> {
    let signature = signature();
    match model::load_shipped(name_or_path, &signature) {
        Some(result) => result,
        None => model::load_file(Path::new(name_or_path), &signature, Some(prelude)),
    }
}

/// The shipped models, in the order in which they are listed.
pub(super) fn model_names() -> Vec<String> {
    model::Library::names()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// The names of preludes.
pub(super) fn prelude_names() -> Vec<&'static str> {
    model::Library::preludes()
}

/// Whether a shipped model can judge tests of a dialect.
pub(super) fn speaks(shipped: &str, dialect: Dialect) -> bool {
    Dialect::of_model(shipped).is_none_or(|of| of == dialect)
}

/// The dialect whose programs a model in a file is about: the one that its head names, else the one
/// whose words it has. `None`: it may judge any.
pub(super) fn spoken(model: &Model) -> Option<Dialect> {
    let named = DIALECTS
        .iter()
        .map(|row| row.dialect)
        .find(|dialect| dialect.name().eq_ignore_ascii_case(&model.language));
    named.or_else(|| signature::has_words_of_ptx(model).then_some(Dialect::Ptx))
}

/// The mapping through which a model judges tests of a dialect, if it needs one. `spoken` is the
/// dialect that the model is about. If that is unknown and a mapping was given, the model counts as
/// one of the mapping's target.
pub(super) fn mapping(
    spoken: Option<Dialect>,
    dialect: Dialect,
    selected: Option<&'static Mapping>,
) -> Option<&'static Mapping> {
    // A model of the dialect itself needs no mapping, and none is read for it.
    let of = spoken.filter(|&of| of != dialect)?;
    selected
        .filter(|m| m.from == dialect)
        .or_else(|| Mapping::current(dialect))
        .filter(|m| of == m.to)
}

/// The error for a mapping on tests of a dialect that it does not map.
pub(super) fn unfit(mapping: &Mapping, dialect: Dialect) -> Diagnostic {
    let doc = dialect.row().doc;
    let message = format!("mapping `{}` does not map {doc}", mapping.asked);
    let fitting: Vec<&str> = mapping::shipped()
        .iter()
        .filter(|m| m.from == dialect)
        .map(|m| m.name.as_str())
        .collect();
    let fit = match fitting.is_empty() {
        true => format!("no mapping starts from {doc}: leave out `--mapping`"),
        false => format!("mappings from {doc}: {}", fitting.join(", ")),
    };
    Diagnostic::plain("unfit-mapping", message)
        .note(format!(
            "it maps {} to {}",
            mapping.from.row().doc,
            mapping.to.row().doc
        ))
        .help(fit)
}
