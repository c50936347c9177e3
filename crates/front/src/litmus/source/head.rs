//! The document of a test that a kernel and its launch make, without the code.

use super::bind::{Argument, BoundLaunch, LaunchMemory, bytes_of};
use super::launch::Contents;
use crate::litmus::toml::UNKNOWN;
use crate::litmus::write::{ObjectTable, quote, toml_key};
use diag::{MappedText, Span};
use program::Dialect;

/// Elements of a buffer in the trial that finds its length.
pub(super) const TRIAL: u64 = 1024;

/// The document.
pub(super) fn head(name: &str, source: &str, dialect: Dialect, bound: &BoundLaunch) -> MappedText {
    let at = bound.span;
    let mut text = MappedText::new();
    let mut line = |line: String, span: Span| text.push_opaque(&(line + "\n"), span);
    line(format!("name = {}", quote(name)), at);
    line(format!("source = {}", quote(source)), at);
    line(format!("dialect = {}", quote(dialect.name())), at);
    line("tags = [\"kernel\"]".to_owned(), at);
    line("[memory]".to_owned(), at);
    for memory in &bound.memory {
        let key = toml_key(&memory.name);
        line(format!("{key} = {}", object(memory)), memory.span);
    }
    line("[kernel]".to_owned(), at);
    line(format!("grid = {:?}", bound.grid), at);
    line(format!("block = {:?}", bound.block), at);
    if let Some(cluster) = &bound.cluster {
        line(format!("cluster = {cluster:?}"), at);
    }
    if bound.cooperative {
        line("cooperative = true".to_owned(), at);
    }
    line("code = \"\"".to_owned(), at);
    let values = bound.arguments.iter();
    let registers: Vec<_> = values
        .filter_map(|a| Some((a, register(a, bound)?)))
        .collect();
    if !registers.is_empty() {
        line("[kernel.regs]".to_owned(), at);
    }
    for (argument, value) in registers {
        let key = toml_key(&argument.parameter);
        line(format!("{key} = {value}"), argument.span);
    }
    text
}

/// The value of a parameter's register; `None`: the parameter is the memory of its name.
fn register(argument: &Argument, bound: &BoundLaunch) -> Option<String> {
    match argument.of {
        None => Some(argument.number.to_string()),
        Some(memory) => {
            let name = &bound.memory[memory].name;
            match argument.number {
                0 if *name == argument.parameter => None,
                0 => Some(quote(&format!("&{name}"))),
                at => Some(quote(&format!("&{name}[{at}]"))),
            }
        }
    }
}

/// The value of a name under `[memory]`.
pub(super) fn object(memory: &LaunchMemory) -> ObjectTable {
    let mut table = ObjectTable::default();
    if let Some(first) = &memory.same_as {
        return table.with_text("at", first);
    }
    let length = memory.length.unwrap_or(TRIAL).max(1);
    match &memory.contents {
        Contents::Values(values) if values.len() > 1 => {
            let mut values = values.clone();
            values.resize(values.len().max(length as usize), 0);
            table = table.with("init", format!("{values:?}"));
        }
        contents => {
            let first = match contents {
                Contents::Values(values) => values.first().copied().unwrap_or(0).to_string(),
                Contents::Open | Contents::Unknown => quote(UNKNOWN),
            };
            // The 0 of a structure is that of each member.
            let whole = bytes_of(&memory.element).is_none() && memory.class.is_none();
            if !(whole && first == "0") {
                table = table.with("init", first);
            }
            // An object of a class is one, or a list of them.
            table = table.of_size(length);
        }
    }
    let table = table.with_text("type", &memory.element);
    table.in_space(memory.space.unwrap_or("global"))
}
