//! Holds the parts of a test that is made of a kernel, and writes them as a document.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use super::super::write::{ObjectTable, toml_key};
use super::binding::BufferContents;
use super::object::{of_bytes, of_fields};
use program::{Init, LocationKind, Program, Space};

/// What a test of a kernel is made of.
pub(super) struct KernelDraft {
    /// The document in front of the memory.
    pub(super) top: String,
    /// The objects under `[memory]`.
    pub(super) objects: Vec<(String, ObjectTable)>,
    /// The document from the memory to the code.
    pub(super) launch: String,
    /// Lines that name the files which the code came from.
    pub(super) files: String,
    /// The code.
    pub(super) code: String,
    /// Its parts, with where they begin in the module.
    pub(super) places: Vec<(Range<usize>, usize)>,
    pub(super) memory: BTreeMap<String, BufferContents>,
    pub(super) order: Vec<String>,
}

impl KernelDraft {
    /// The document, up to the code.
    pub(super) fn head(&self) -> String {
        let mut out = format!("{}\n[memory]\n", self.top);
        for (name, table) in &self.objects {
            let _ = writeln!(out, "{} = {table}", toml_key(name));
        }
        out + "\n" + &self.launch
    }

    /// The document up to the code of the module.
    pub(super) fn front(&self) -> String {
        // A line end behind the opening quotes is no part of a string.
        format!("{}code = '''\n{}", self.head(), self.files)
    }

    /// Gives arrays of bytes the fields that the accesses of the program decided.
    pub(super) fn give_fields(&mut self, program: &Program) {
        for (name, table) in &mut self.objects {
            let location = program.locations.iter().find(|l| l.name == *name);
            let Some(LocationKind::Object {
                layout,
                init,
                space,
                ..
            }) = location.map(|location| &location.kind)
            else {
                continue;
            };
            let unknown = init.contains(&Init::Unknown);
            // Objects in registers have no fields. Accesses beyond the end make a larger layout.
            let bytes = of_bytes(layout.bytes(init.len()), space.name(), unknown);
            if *space != Space::Register && *table == bytes {
                *table = of_fields(layout, init.len(), space.name(), unknown);
            }
        }
    }

    /// The whole document.
    pub(super) fn text(&self) -> String {
        format!("{}{}'''\n", self.front(), self.code)
    }
}
