//! Instructions and qualifiers of PTX that the checker does not support, so that messages
//! distinguish them from unknown names.
//!
//! # Invariants
//! - The table contains every instruction of the ISA that is not in [`super::rows`], and no other.
//!
//! # Sources
//! - PTX ISA 9.4, *Instruction Set* and *Identifiers*, reserved instruction keywords. The assembler
//!   `ptxas` knows each of these names.

/// Instructions without a row: descriptions and names.
const INSTRUCTIONS: &[(&str, &[&str])] = &[
    ("matrix instructions", &["wmma"]),
    ("questions for the kind of a reference", &["istypep"]),
    (
        "the text has neither order nor scope for it, nor does it say that it is atomic: \
         \"Reduction to surface memory using a surface coordinate vector\" (PTX ISA, sured)",
        &["sured"],
    ),
    (
        "non-coherent loads, which the PTX memory model does not cover",
        &["ldu"],
    ),
    (
        "operations of the fabric proxy, of which no clause of causality order speaks: they are \
         for accesses \"using the generic proxy\", those \"using the same proxy, and by the same \
         thread block\", and aliases (PTX ISA, Causality Order)",
        &["fabric"],
    ),
    ("performance events", &["pmevent"]),
    ("stack allocation", &["alloca", "stacksave", "stackrestore"]),
    ("floating-point operations", &["testp"]),
    (
        "video instructions",
        &[
            "vadd",
            "vsub",
            "vabsdiff",
            "vmin",
            "vmax",
            "vshl",
            "vshr",
            "vmad",
            "vset",
            "vadd2",
            "vsub2",
            "vavrg2",
            "vabsdiff2",
            "vmin2",
            "vmax2",
            "vset2",
            "vadd4",
            "vsub4",
            "vavrg4",
            "vabsdiff4",
            "vmin4",
            "vmax4",
            "vset4",
        ],
    ),
];

/// Qualifiers that no row has: descriptions and names.
const QUALIFIERS: &[(&str, &[&str])] = &[
    (
        "floating-point types",
        &["f16", "f32", "f64", "bf16", "tf32", "e4m3", "e5m2"],
    ),
    (
        "packed types",
        &["f16x2", "bf16x2", "u16x2", "s16x2", "f32x2"],
    ),
    (
        "floating-point operations that are not defined to the last bit, or that no test has \
         needed",
        &[
            "noftz", "ftz", "rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi", "approx",
            "full", "NaN", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
        ],
    ),
    (
        "128-bit types other than in moves, loads, stores, exchanges and bulk copies",
        &["b128"],
    ),
    (
        "vectors of other instructions than loads, stores and sums",
        &["v2", "v4", "v8"],
    ),
    (
        "the parameter space other than `ld.param`, which reads values from `regs`",
        &["param", "param::entry"],
    ),
    ("the parameter space", &["param::func"]),
    (
        "it stands behind the address: `ld.global.u32 d, [a].unified`",
        &["unified"],
    ),
    (
        "tensor copies other than those of a tile",
        &[
            "im2col",
            "im2col::w",
            "im2col::w::128",
            "tile::gather4",
            "tile::scatter4",
        ],
    ),
    ("pairs of CTAs", &["cta_group::2"]),
    (
        "products other than dense ones without scale vectors, of one CTA",
        &[
            "ws",
            "block_scale",
            "ashift",
            "kind::mxf8f6f4",
            "kind::mxf4",
            "kind::mxf4nvf4",
        ],
    ),
    (
        "elements of 16 bits in tensor memory",
        &["pack::16b", "unpack::16b"],
    ),
    ("shifts and copies within tensor memory", &["shift", "down"]),
    ("the mode of a tile without coordinates", &["tile"]),
    ("prefetches other than of tiles", &["prefetch"]),
    ("masks of bytes", &["cp_mask"]),
    ("counts that an arrival returns", &["pending_count"]),
    (
        "conditional phases of mbarrier objects",
        &["layout::v1", "conditional"],
    ),
    ("the upper half of a product", &["hi"]),
    ("saturation", &["sat"]),
    (
        "other levels of mipmaps, gradients, cubes and samples",
        &["base", "level", "grad", "cube", "acube", "2dms", "a2dms"],
    ),
    ("formatted accesses to surfaces", &["p"]),
    (
        "copies to tensor memory; and of a multimem address, which is an alias: no clause of \
         causality order relates aliases through the async proxy: there is \"an alias proxy fence \
         along the base causality path\" alone (PTX ISA, Causality Order)",
        &["cp"],
    ),
    (
        "forms of PTX ISA 9.5: a restricted fence of aliases, where causality order has \"an alias \
         proxy fence along the base causality path\" alone (PTX ISA, Causality Order)",
        &["alias"],
    ),
    (
        "waits of PTX ISA 9.5 for some accesses of a group: a group is complete with \"all the \
         prior bulk async-groups\" (PTX ISA, cp.async.bulk.wait_group)",
        &[
            "sync_restrict",
            "sync_restrict::reads",
            "sync_restrict::writes",
            "sync_restrict::shared::cta",
            "sync_restrict::shared::cluster",
            "sync_restrict::global",
        ],
    ),
    ("multimem addresses", &["multimem"]),
];

/// All refused instructions and qualifiers.
#[cfg(test)]
pub(super) const REFUSED: [&[(&str, &[&str])]; 2] = [INSTRUCTIONS, QUALIFIERS];

fn what(
    table: &'static [(&'static str, &'static [&'static str])],
    name: &str,
) -> Option<&'static str> {
    table
        .iter()
        .find(|row| row.1.contains(&name))
        .map(|row| row.0)
}

/// The description of an instruction without a row; `None` if PTX has no such instruction.
pub(super) fn instruction(name: &str) -> Option<&'static str> {
    what(INSTRUCTIONS, name)
}

/// The description of a qualifier that no row has; `None` if PTX has no such qualifier.
pub(super) fn qualifier(name: &str) -> Option<&'static str> {
    what(QUALIFIERS, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_not_outside_and_names_stand_once() {
        for row in super::super::rows() {
            assert_eq!(instruction(row.opcode), None, "{}", row.opcode);
        }
        for table in [INSTRUCTIONS, QUALIFIERS] {
            let mut names: Vec<_> = table.iter().flat_map(|row| row.1).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|w| w[0] != w[1]));
        }
    }

    #[test]
    fn instructions_that_exist_are_told_from_those_that_do_not() {
        assert!(instruction("wmma").is_some() && instruction("istypep").is_some());
        assert!(instruction("lop4").is_none() && instruction("fance").is_none());
    }
}
