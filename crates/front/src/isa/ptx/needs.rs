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
//!   it with the previous one. The same for `a` and `f` behind a target; ptxas 13.5 no longer knows
//!   `sm_101`, an older name of `sm_110`.

#[cfg(test)]
use super::table::InstrRow;
use super::table::Matched;
use super::{CodeItem, PtxCode};
use diag::Sink;

/// The requirement of the matrix instructions of warpgroups.
pub(super) const WARPGROUP: Need =
    Need::always((8, 0), 90).only(TargetFeatures::Architecture, &[90]);
/// The targets since `sm_90` with features of their family.
pub(super) const SINCE_90: &[u32] = &[90, 100, 101, 103, 110, 120, 121];
/// The targets since `sm_100` with features of their family.
pub(super) const SINCE_100: &[u32] = &[100, 101, 103, 110, 120, 121];
/// The targets with tensor memory.
pub(super) const WITH_TENSOR_MEMORY: &[u32] = &[100, 101, 103, 110];
/// The family of `sm_100`.
pub(super) const FAMILY_OF_100: &[u32] = &[100, 103];

/// The least version and target of a module that may contain some instructions.
#[derive(Clone, Copy)]
pub(super) struct Need {
    /// Qualifiers, of which the instruction has at least one; if empty, all instructions of the
    /// row have the requirement.
    with: &'static [&'static str],
    module: ModuleTarget,
    /// The targets that have the instructions, if their features are not of all later targets.
    only: &'static [u32],
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
            module: ModuleTarget {
                version,
                target,
                features: TargetFeatures::Common,
            },
            only: &[],
        }
    }

    /// The same for instructions that only some targets have, and only with these features.
    pub(super) const fn only(mut self, features: TargetFeatures, targets: &'static [u32]) -> Need {
        self.module.features = features;
        self.only = targets;
        self
    }

    /// Whether a module's target is one of those that have the instructions.
    fn is_on(&self, made: ModuleTarget) -> bool {
        self.only.is_empty()
            || self.only.contains(&made.target) && made.features >= self.module.features
    }

    /// The targets that have the instructions, in words.
    fn targets(&self) -> String {
        let names = self.only.iter().map(|&target| {
            let least = ModuleTarget {
                target,
                ..self.module
            };
            // There is no `sm_90f`.
            format!("`{}`", least.name().replace("sm_90f", "sm_90a"))
        });
        names.collect::<Vec<_>>().join(", ")
    }
}

/// The requirements of qualifiers of any instruction.
const ANY_INSTRUCTION: &[Need] = &[
    Need::of(&["L2::cache_hint"], (7, 4), 80),
    Need::of(&["cluster", "shared::cluster"], (7, 8), 90),
    Need::of(&["shared::cta"], (7, 8), 70),
];

/// The requirement of the registers of clusters.
const CLUSTER_REGISTERS: Need = Need::always((7, 8), 90);

/// The requirements of a row, and those that qualifiers add, for the book.
#[cfg(test)]
pub(super) fn of_row(row: &InstrRow) -> String {
    let always = row.needs.iter().find(|need| need.with.is_empty());
    let added = row.needs.iter().flat_map(with_qualifier);
    always
        .map(Need::in_words)
        .into_iter()
        .chain(added.map(|(word, need)| format!("`.{word}`: {}", need.in_words())))
        .collect::<Vec<_>>()
        .join("; ")
}

/// The requirements of qualifiers of any instruction, for the book.
#[cfg(test)]
pub(super) fn of_any() -> String {
    ANY_INSTRUCTION
        .iter()
        .flat_map(with_qualifier)
        .map(|(word, need)| format!("`.{word}` {}", need.in_words()))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
impl Need {
    fn in_words(&self) -> String {
        let (major, minor) = self.module.version;
        let targets = match self.only {
            [] => format!("`{}`", self.module.name()),
            _ => self.targets(),
        };
        format!("{major}.{minor}, {targets}")
    }
}

#[cfg(test)]
fn with_qualifier(need: &Need) -> impl Iterator<Item = (&'static str, &Need)> {
    need.with.iter().map(move |word| (*word, need))
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
    /// `.target`: the letter behind the number.
    pub features: TargetFeatures,
}

/// The instructions of a target beyond those that all later targets have, too (PTX ISA, `.target`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetFeatures {
    /// None: `sm_90`.
    Common,
    /// Those of its family: `sm_100f`.
    Family,
    /// Those of its family and its own: `sm_90a`.
    Architecture,
}

impl ModuleTarget {
    /// The older version and the lower target that satisfy both.
    fn and(self, other: ModuleTarget) -> ModuleTarget {
        ModuleTarget {
            version: self.version.max(other.version),
            target: self.target.max(other.target),
            features: self.features.max(other.features),
        }
    }

    /// The target as `.target` names it.
    fn name(self) -> String {
        let letter = match self.features {
            TargetFeatures::Common => "",
            TargetFeatures::Family => "f",
            TargetFeatures::Architecture => "a",
        };
        format!("sm_{}{letter}", self.target)
    }
}

impl PtxCode {
    /// Reports instructions that are newer than their module.
    pub fn newer(&self, made: ModuleTarget, sink: &mut Sink) {
        for item in &self.items {
            let CodeItem::Instr(m) = item else { continue };
            let needs = self.needs(m);
            let modules = needs.iter().map(|need| need.module);
            let Some(ModuleTarget {
                version, target, ..
            }) = modules.reduce(ModuleTarget::and)
            else {
                continue;
            };
            let (old, low) = (made.version < version, made.target < target);
            let alone = needs.iter().find(|need| !need.is_on(made));
            if !old && !low && alone.is_none() {
                continue;
            }
            let end = m.raw.quals.last().map_or(m.raw.opcode.end, |q| q.end);
            let range = m.raw.opcode.start..end;
            let what = &self.text.as_str()[range.clone()];
            let mut lacks = Vec::new();
            let wanted = match alone {
                Some(need) if need.only.len() > 1 => {
                    Some(format!("one of the targets {}", need.targets()))
                }
                Some(need) => Some(format!("`.target {}`", need.targets().replace('`', ""))),
                None => low.then(|| format!("`.target sm_{target}`")),
            };
            if let Some(wanted) = wanted {
                lacks.push(format!("{wanted}, and the module is for `{}`", made.name()));
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

    /// The requirements of an instruction.
    fn needs(&self, m: &Matched) -> Vec<&'static Need> {
        let text = self.text.as_str();
        let is_written = |word: &&str| m.raw.quals.iter().any(|q| text[q.clone()] == **word);
        let names_cluster = m.raw.operands.iter().any(|o| {
            let name = text[o.range.clone()].trim_start();
            OF_CLUSTERS.iter().any(|r| name.starts_with(r))
        });
        m.row
            .needs
            .iter()
            .chain(ANY_INSTRUCTION)
            .filter(|need| need.with.is_empty() || need.with.iter().any(is_written))
            .chain(names_cluster.then_some(&CLUSTER_REGISTERS))
            .collect()
    }
}
