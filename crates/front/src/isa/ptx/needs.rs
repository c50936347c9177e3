//! The PTX version and target that instructions require of their module.
//!
//! An assembler refuses an instruction that is newer than its module's version or target. Such a
//! module has no defined meaning, so it is refused here, too.
//!
//! # Invariants
//! - A row of the instruction table lists the requirements of its instructions. Only the qualifiers
//!   that every instruction may have ([`ANY_INSTRUCTION`]) and registers are listed here.
//!
//! # Sources
//! - PTX ISA 9.4, *PTX ISA Notes* and *Target ISA Notes* of each instruction. Each requirement was
//!   tested with ptxas 13.5: it accepts the instruction with that version and target, and refuses
//!   it with the previous one.

#[cfg(test)]
use super::table::InstrRow;
use super::table::Matched;
use super::{CodeItem, PtxCode};
use diag::Sink;

/// The least version and target of a module that may contain some instructions.
#[derive(Clone, Copy)]
pub(super) struct Need {
    /// Qualifiers, of which the instruction has at least one; if empty, all instructions of the
    /// row have the requirement.
    with: &'static [&'static str],
    module: ModuleTarget,
}

impl Need {
    /// The requirement of all instructions of a row.
    pub(super) const fn always(version: (u32, u32), target: u32) -> Need {
        Need::of(&[], version, target)
    }

    /// The requirement of each of some qualifiers.
    pub(super) const fn of(
        with: &'static [&'static str],
        version: (u32, u32),
        target: u32,
    ) -> Need {
        Need {
            with,
            module: ModuleTarget { version, target },
        }
    }
}

/// The requirements of qualifiers of any instruction.
const ANY_INSTRUCTION: &[Need] = &[
    Need::of(&["L2::cache_hint"], (7, 4), 80),
    Need::of(&["cluster", "shared::cluster"], (7, 8), 90),
    Need::of(&["shared::cta"], (7, 8), 70),
];

/// The requirement of the registers of clusters.
const CLUSTER_REGISTERS: ModuleTarget = ModuleTarget {
    version: (7, 8),
    target: 90,
};

/// The requirements of a row, and those that qualifiers add, for the book.
#[cfg(test)]
pub(super) fn of_row(row: &InstrRow) -> String {
    let always = row.needs.iter().find(|need| need.with.is_empty());
    let added = row.needs.iter().flat_map(with_qualifier);
    always
        .map(|need| need.module.in_words())
        .into_iter()
        .chain(added.map(|(word, module)| format!("`.{word}`: {}", module.in_words())))
        .collect::<Vec<_>>()
        .join("; ")
}

/// The requirements of qualifiers of any instruction, for the book.
#[cfg(test)]
pub(super) fn of_any() -> String {
    ANY_INSTRUCTION
        .iter()
        .flat_map(with_qualifier)
        .map(|(word, module)| format!("`.{word}` {}", module.in_words()))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
fn with_qualifier(need: &Need) -> impl Iterator<Item = (&'static str, ModuleTarget)> {
    let module = need.module;
    need.with.iter().map(move |word| (*word, module))
}

/// Qualifiers in a row's requirements that its instructions cannot have.
#[cfg(test)]
pub(super) fn impossible(row: &InstrRow) -> Vec<&'static str> {
    let words = row.needs.iter().flat_map(|need| need.with).copied();
    words.filter(|word| !row.names(word)).collect()
}

const OF_CLUSTERS: [&str; 3] = ["%cluster", "%nclusterid", "%is_explicit_cluster"];

/// The version and target of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleTarget {
    /// `.version`.
    pub version: (u32, u32),
    /// `.target`: the number.
    pub target: u32,
}

impl ModuleTarget {
    /// The older version and the lower target that satisfy both.
    fn and(self, other: ModuleTarget) -> ModuleTarget {
        ModuleTarget {
            version: self.version.max(other.version),
            target: self.target.max(other.target),
        }
    }

    #[cfg(test)]
    fn in_words(self) -> String {
        let (major, minor) = self.version;
        format!("{major}.{minor}, `sm_{}`", self.target)
    }
}

impl PtxCode {
    /// Reports instructions that are newer than their module.
    pub fn newer(&self, made: ModuleTarget, sink: &mut Sink) {
        for item in &self.items {
            let CodeItem::Instr(m) = item else { continue };
            let Some(ModuleTarget { version, target }) = self.needs(m) else {
                continue;
            };
            let (old, low) = (made.version < version, made.target < target);
            if !old && !low {
                continue;
            }
            let end = m.raw.quals.last().map_or(m.raw.opcode.end, |q| q.end);
            let range = m.raw.opcode.start..end;
            let what = &self.text.as_str()[range.clone()];
            let mut lacks = Vec::new();
            if low {
                lacks.push(format!(
                    "`.target sm_{target}`, and the module is for `sm_{}`",
                    made.target
                ));
            }
            if old {
                let ((a, b), (c, d)) = (version, made.version);
                lacks.push(format!(
                    "`.version {a}.{b}`, and the module is of `{c}.{d}`"
                ));
            }
            let message = format!("`{what}` needs {}", lacks.join("; "));
            sink.error("newer-instruction", self.text.span(range), message, |d| {
                d.label("newer than the module")
                    .help("compile for a target that has it, or leave it out")
            });
        }
    }

    /// The version and the target that an instruction requires.
    fn needs(&self, m: &Matched) -> Option<ModuleTarget> {
        let text = self.text.as_str();
        let is_written = |word: &&str| m.raw.quals.iter().any(|q| text[q.clone()] == **word);
        let names_cluster = m.raw.operands.iter().any(|o| {
            let name = text[o.range.clone()].trim_start();
            OF_CLUSTERS.iter().any(|r| name.starts_with(r))
        });
        let of_words = m
            .row
            .needs
            .iter()
            .chain(ANY_INSTRUCTION)
            .filter(|need| need.with.is_empty() || need.with.iter().any(is_written));
        of_words
            .map(|need| need.module)
            .chain(names_cluster.then_some(CLUSTER_REGISTERS))
            .reduce(ModuleTarget::and)
    }
}
