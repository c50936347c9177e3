//! The PTX version and target that instructions require of their module.
//!
//! An assembler refuses an instruction that is newer than its module's version or target. Such a
//! module has no defined meaning, so it is refused here, too.
//!
//! # Sources
//! - PTX ISA 9.4, *PTX ISA Notes* and *Target ISA Notes* of each instruction. Each row was tested
//!   with ptxas 13.5: it accepts the instruction with that version and target, and refuses it with
//!   the previous one.

use super::table::Matched;
use super::{CodeItem, Unit};
use diag::Sink;

/// The requirement of some instructions.
struct VersionRequirement {
    /// The opcode; if empty, any opcode.
    opcode: &'static str,
    /// Qualifiers that the instruction must have.
    words: &'static [&'static str],
    /// Qualifiers that the instruction must not have.
    without: &'static [&'static str],
    version: (u32, u32),
    target: u32,
}

const fn need(
    opcode: &'static str,
    words: &'static [&'static str],
    version: (u32, u32),
    target: u32,
) -> VersionRequirement {
    VersionRequirement {
        opcode,
        words,
        without: &[],
        version,
        target,
    }
}

impl VersionRequirement {
    const fn without(self, without: &'static [&'static str]) -> VersionRequirement {
        VersionRequirement { without, ..self }
    }
}

/// If several rows match an instruction, it needs all of them.
const NEEDS: &[VersionRequirement] = &[
    need("activemask", &[], (6, 2), 70),
    need("nanosleep", &[], (6, 2), 70),
    need("redux", &[], (7, 0), 80),
    need("redux", &["f32"], (8, 6), 100),
    need("elect", &[], (8, 0), 90),
    need("cp", &["async"], (7, 0), 80),
    need("cp", &["async", "bulk"], (8, 0), 90),
    need("mbarrier", &[], (7, 0), 80),
    need("mbarrier", &["test_wait", "parity"], (7, 1), 80),
    need("mbarrier", &["try_wait"], (7, 8), 90),
    need("mbarrier", &["expect_tx"], (8, 0), 90),
    need("mbarrier", &["complete_tx"], (8, 0), 90),
    need("mbarrier", &["arrive", "release"], (8, 0), 80),
    need("mbarrier", &["arrive", "relaxed"], (8, 6), 90),
    need("mbarrier", &["arrive_drop", "release"], (8, 0), 80),
    need("mbarrier", &["arrive_drop", "relaxed"], (8, 6), 90),
    need("mbarrier", &["test_wait", "acquire"], (8, 0), 80),
    need("mbarrier", &["test_wait", "relaxed"], (8, 6), 90),
    need("mbarrier", &["try_wait", "acquire"], (8, 0), 90),
    need("mbarrier", &["try_wait", "relaxed"], (8, 6), 90),
    need("barrier", &["cluster"], (7, 8), 90),
    need("barrier", &["cta"], (7, 8), 70),
    need("fence", &["mbarrier_init"], (8, 0), 90),
    need("fence", &["proxy", "async"], (8, 0), 90),
    need("fence", &["proxy", "async::generic"], (8, 6), 90),
    need("fence", &["proxy", "tensormap::generic"], (8, 3), 90),
    need("fence", &["proxy", "alias"], (7, 5), 70),
    need("fence", &["acquire"], (8, 6), 90).without(&["proxy"]),
    need("fence", &["release"], (8, 6), 90).without(&["proxy", "mbarrier_init"]),
    need("mapa", &[], (7, 8), 90),
    need("getctarank", &[], (7, 8), 90),
    need("isspacep", &["param"], (7, 7), 70),
    need("isspacep", &["param::entry"], (8, 3), 70),
    need("st", &["async"], (8, 1), 90),
    need("red", &["async"], (8, 1), 90),
    need("multimem", &[], (8, 1), 90),
    need("wgmma", &[], (8, 0), 90),
    need("griddepcontrol", &[], (7, 8), 90),
    need("clusterlaunchcontrol", &[], (8, 6), 100),
    need("tensormap", &[], (8, 3), 90),
    need("discard", &[], (7, 4), 80),
    need("atom", &["noftz"], (6, 2), 70),
    need("red", &["noftz"], (6, 2), 70),
    need("szext", &[], (7, 6), 70),
    need("bmsk", &[], (7, 6), 70),
    need("mov", &["b128"], (8, 3), 70),
    need("ld", &["b128"], (8, 3), 70),
    need("st", &["b128"], (8, 3), 70),
    need("atom", &["b128"], (8, 3), 90),
    need("ex2", &["f16"], (7, 0), 75),
    need("ex2", &["f16x2"], (7, 0), 75),
    need("ex2", &["bf16"], (7, 8), 90),
    need("ex2", &["bf16x2"], (7, 8), 90),
    need("tanh", &[], (7, 0), 75),
    need("tanh", &["bf16"], (7, 8), 90),
    need("tanh", &["bf16x2"], (7, 8), 90),
    need("add", &["bf16"], (7, 8), 90),
    need("add", &["bf16x2"], (7, 8), 90),
    need("sub", &["bf16"], (7, 8), 90),
    need("sub", &["bf16x2"], (7, 8), 90),
    need("mul", &["bf16"], (7, 8), 90),
    need("mul", &["bf16x2"], (7, 8), 90),
    need("fma", &["bf16"], (7, 0), 80),
    need("fma", &["bf16x2"], (7, 0), 80),
    need("fma", &["relu"], (7, 0), 80),
    need("add", &["f32x2"], (8, 6), 100),
    need("sub", &["f32x2"], (8, 6), 100),
    need("mul", &["f32x2"], (8, 6), 100),
    need("fma", &["f32x2"], (8, 6), 100),
    need("min", &["f16"], (7, 0), 80),
    need("min", &["f16x2"], (7, 0), 80),
    need("min", &["bf16"], (7, 0), 80),
    need("min", &["bf16x2"], (7, 0), 80),
    need("min", &["NaN"], (7, 0), 80),
    need("min", &["xorsign"], (7, 2), 86),
    need("max", &["f16"], (7, 0), 80),
    need("max", &["f16x2"], (7, 0), 80),
    need("max", &["bf16"], (7, 0), 80),
    need("max", &["bf16x2"], (7, 0), 80),
    need("max", &["NaN"], (7, 0), 80),
    need("max", &["xorsign"], (7, 2), 86),
    need("abs", &["f16"], (6, 5), 70),
    need("abs", &["f16x2"], (6, 5), 70),
    need("abs", &["bf16"], (7, 0), 80),
    need("abs", &["bf16x2"], (7, 0), 80),
    need("neg", &["bf16"], (7, 0), 80),
    need("neg", &["bf16x2"], (7, 0), 80),
    need("cvt", &["bf16"], (7, 0), 80),
    need("cvt", &["bf16x2"], (7, 0), 80),
    need("cvt", &["tf32"], (7, 0), 80),
    need("cvt", &["e4m3x2"], (8, 1), 89),
    need("cvt", &["e5m2x2"], (8, 1), 89),
    need("setp", &["bf16"], (7, 8), 90),
    need("setp", &["bf16x2"], (7, 8), 90),
    need("ldmatrix", &[], (6, 5), 75),
    need("stmatrix", &[], (7, 8), 90),
    need("movmatrix", &[], (7, 8), 75),
    need("mma", &[], (6, 4), 70),
    need("mma", &["m16n8k16"], (7, 0), 80),
    need("createpolicy", &[], (7, 4), 80),
    need("applypriority", &[], (7, 4), 80),
    need("setmaxnreg", &[], (8, 0), 90),
    need("", &["L2::cache_hint"], (7, 4), 80),
    need("", &["cluster"], (7, 8), 90),
    need("", &["shared::cluster"], (7, 8), 90),
    need("", &["shared::cta"], (7, 8), 70),
];

/// The requirements of a row of the instruction table, and those that further qualifiers add, for
/// the book.
#[cfg(test)]
pub(super) fn of_row(row: &super::table::InstrRow) -> String {
    let can_have = |word: &str| row.groups.iter().any(|group| group.words.contains(&word));
    let mut always: Option<((u32, u32), u32)> = None;
    let mut further = Vec::new();
    for n in NEEDS
        .iter()
        .filter(|n| n.opcode == row.opcode && !n.without.iter().any(|w| row.keys.contains(w)))
    {
        let rest: Vec<&str> = n
            .words
            .iter()
            .copied()
            .filter(|w| !row.keys.contains(w))
            .collect();
        if rest.is_empty() {
            let (version, target) = always.unwrap_or(((0, 0), 0));
            always = Some((version.max(n.version), target.max(n.target)));
        } else if rest.iter().all(|w| can_have(w)) {
            further.push((rest, (n.version, n.target)));
        }
    }
    // Leave out requirements that the row has in any case.
    further.retain(|(_, (version, target))| {
        always.is_none_or(|all| all.0 < *version || all.1 < *target)
    });
    let further = further
        .into_iter()
        .map(|(words, need)| format!("`.{}`: {}", words.join("."), in_words(need)));
    always
        .map(in_words)
        .into_iter()
        .chain(further)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The requirements of qualifiers of any instruction, for the book.
#[cfg(test)]
pub(super) fn of_any() -> String {
    let any = NEEDS.iter().filter(|n| n.opcode.is_empty());
    any.map(|n| {
        format!(
            "`.{}` {}",
            n.words.join("."),
            in_words((n.version, n.target))
        )
    })
    .collect::<Vec<_>>()
    .join(", ")
}

/// Requirements of an opcode that none of the given texts about its rows mentions.
#[cfg(test)]
pub(super) fn told_of_none(told: &[String]) -> Vec<String> {
    NEEDS
        .iter()
        .filter(|n: &&VersionRequirement| {
            let of = super::rows()
                .zip(told)
                .filter(|(row, _)| row.opcode == n.opcode);
            !n.opcode.is_empty()
                && !of
                    .into_iter()
                    .any(|(_, text)| text.contains(&in_words((n.version, n.target))))
        })
        .map(|n| format!("{} {:?}", n.opcode, n.words))
        .collect()
}

#[cfg(test)]
fn in_words(((major, minor), target): ((u32, u32), u32)) -> String {
    format!("{major}.{minor}, `sm_{target}`")
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

impl Unit {
    /// Reports instructions that are newer than their module.
    pub fn newer(&self, made: ModuleTarget, sink: &mut Sink) {
        for item in &self.items {
            let CodeItem::Instr(m) = item else { continue };
            let Some((version, target)) = self.needs(m) else {
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
    fn needs(&self, m: &Matched) -> Option<((u32, u32), u32)> {
        let text = self.text.as_str();
        let opcode = &text[m.raw.opcode.clone()];
        let written = |word: &&'static str| m.raw.quals.iter().any(|q| text[q.clone()] == **word);
        let rows = NEEDS.iter().filter(|n: &&VersionRequirement| {
            (n.opcode.is_empty() || n.opcode == opcode)
                && n.words.iter().all(written)
                && !n.without.iter().any(written)
        });
        let of_clusters = m.raw.operands.iter().any(|o| {
            let name = text[o.range.clone()].trim_start();
            OF_CLUSTERS.iter().any(|r| name.starts_with(r))
        });
        let rows = rows
            .map(|n| (n.version, n.target))
            .chain(of_clusters.then_some(((7, 8), 90)));
        rows.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))
    }
}
