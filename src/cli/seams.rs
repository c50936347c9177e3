//! Where the command line meets the test front end and the model language: everything it asks of them, in one place.

use std::path::Path;

use cat::model;
use cat::model::ir::Model;
use diag::Diagnostic;
use engine::skeleton::signature::signature;
use front::litmus;
use front::mapping::Mapping;
use program::Dialect;
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
pub(super) fn read_tests(name: &str, bytes: &[u8]) -> Result<litmus::Read, Vec<Diagnostic>> {
    litmus::read(name, bytes)
}

/// A proposition in the words of the test's condition.
pub(super) fn parse_prop(test: &LitmusTest, text: &str) -> Result<Prop, Vec<Diagnostic>> {
    litmus::parse_prop(test, text)
}

/// The test in the TOML format.
pub(super) fn to_toml(test: &LitmusTest) -> Result<String, Box<Diagnostic>> {
    litmus::to_toml(test)
}

/// The text of a test file with another expectation; `None`: no place in it speaks of that test alone.
pub(super) fn bless(text: &str, test: &str, model: &str, property: &str, verdict: &str) -> Option<String> {
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
    model::Library::names().into_iter().map(str::to_owned).collect()
}

/// The preludes that may be asked for.
pub(super) fn prelude_names() -> Vec<&'static str> {
    model::Library::preludes()
}

/// Whether a shipped model can judge tests of a dialect. Of a file by the user we cannot know: it always may.
pub(super) fn speaks(shipped: &str, dialect: Dialect) -> bool {
    Dialect::of_model(shipped).is_none_or(|of| of == dialect)
}

/// The mapping through which a model judges tests of a dialect, if it needs one: shipped models of what it maps to do. A
/// file by the user is taken for such a model where a mapping was asked for.
pub(super) fn mapping(
    model: &str,
    shipped: bool,
    dialect: Dialect,
    selected: Option<&'static Mapping>,
) -> Option<&'static Mapping> {
    let selected = selected.filter(|m| m.from == dialect);
    if !shipped {
        return selected;
    }
    // What speaks the dialect itself needs none, and none is read for it.
    let of = Dialect::of_model(model).filter(|&of| of != dialect)?;
    selected.or_else(|| Mapping::current(dialect)).filter(|m| of == m.to)
}
