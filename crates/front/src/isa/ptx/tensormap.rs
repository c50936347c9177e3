//! Tensor maps, and instructions that change them.
//!
//! # Sources
//! - PTX ISA 9.4, *tensormap.replace*: a weak operation of the generic proxy on a whole tensor map.
//! - PTX ISA 9.4, *tensormap.cp_fenceproxy*: a copy of a tensor map from shared to global memory by
//!   a whole warp, and a release half of `fence.proxy.tensormap`.
//!
//! # Where we differ
//! - A tensor map is a location that holds an address, where PTX has 128 bytes with shape and
//!   strides. A change of any other field writes the old address.
//! - A copy by a warp with several threads in the test is refused: no source says which of them
//!   makes it.

use super::copies::{CopyEnd, one_address};
use super::lower::{Emit, PtxInstr};
use super::memory::is_ordinary;
use super::needs::{Need, SINCE_90, TargetFeatures};
use super::table::{InstrRow, OperandRole, QualGroup, QualKind, SCOPES};
use program::{Access, EventKind, Expr, Mark, Op, Space, Tag, Tags, Ty};

/// The state spaces of tensor maps in tensor copies.
pub(super) const PLACES: [Space; 3] = [Space::Global, Space::Constant, Space::Param];

const SPACES: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &["global", "shared::cta"],
};
/// The sizes of a tensor map and of the value; they are not types of accesses.
const SIZES: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["b1024", "b32", "b64"],
};
const FIELDS: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &[
        "rank",
        "box_dim",
        "global_dim",
        "global_stride",
        "element_stride",
        "elemtype",
        "interleave_layout",
        "swizzle_mode",
        "swizzle_atomicity",
        "fill_mode",
    ],
};
const BY_WARP: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &[
        "global",
        "shared::cta",
        "tensormap::generic",
        "sync",
        "aligned",
    ],
};
const RELEASE: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["release"],
};

const REPLACE_NEEDS: &[Need] = &[Need::always((8, 3), 90).only(TargetFeatures::Family, SINCE_90)];

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "tensormap",
        "`tensormap.replace.tile.global_address{.global|.shared::cta}.b1024.b64 [map], a`",
        "writes the address that a tensor map holds",
        &[SPACES, SIZES],
        &[OperandRole::Addr, OperandRole::Val],
        |e, c| {
            if is_replaced(e, c, "b64").is_some() {
                let value = c.expr(1);
                e.push(Op::Store {
                    addr: c.expr(0),
                    value,
                    access: weak(),
                });
            }
        },
    )
    .needs(REPLACE_NEEDS)
    .keyed(&["replace", "tile", "global_address"]),
    InstrRow::new(
        "tensormap",
        "`tensormap.replace.tile.field{.global|.shared::cta}.b1024.type [map]{, ord}, a`",
        "writes another field of a tensor map: as a whole, with the address that it holds",
        &[SPACES, SIZES, FIELDS],
        &[OperandRole::Addr, OperandRole::Loose, OperandRole::Loose],
        |e, c| {
            let size = if c.quals.get(QualKind::Op) == Some("global_stride") {
                "b64"
            } else {
                "b32"
            };
            if is_replaced(e, c, size).is_some() {
                moved(e, c, 0, 0);
            }
        },
    )
    .needs(REPLACE_NEEDS)
    .keyed(&["replace", "tile"])
    .optional(1),
    InstrRow::new(
        "tensormap",
        "`tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned \
         [map], [src], 128`",
        "copies a tensor map from shared to global memory, then \
         `fence.proxy.tensormap::generic.release`",
        &[BY_WARP, RELEASE, SCOPES],
        &[OperandRole::Addr, OperandRole::Addr, OperandRole::Loose],
        copy_and_release,
    )
    .needs(&[Need::always((8, 3), 90)])
    .keyed(&["cp_fenceproxy"]),
];

fn weak() -> Access {
    Access {
        tags: Tags::of(&[Tag::Generic, Tag::Weak]),
        scope: None,
        ty: Ty::U64,
    }
}

/// Copies the contents of one tensor map to another.
fn moved(e: &mut Emit<'_, '_>, c: &PtxInstr, to: usize, from: usize) {
    let Some(dst) = e.temporary(c, "tensor map", Ty::U64) else {
        return;
    };
    e.push(Op::Load {
        dst,
        addr: c.expr(from),
        access: weak(),
    });
    e.push(Op::Store {
        addr: c.expr(to),
        value: Expr::Reg(dst),
        access: weak(),
    });
}

/// Reports an invalid replacement of a field with a value of that size.
fn is_replaced(e: &mut Emit<'_, '_>, c: &PtxInstr, size: &str) -> Option<()> {
    e.through_register = false;
    let is_field = c.quals.contains("global_address") || c.quals.get(QualKind::Op).is_some();
    if !is_field || !c.quals.all(QualKind::Ignored).eq(["b1024", size]) {
        e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "there is no such form of `tensormap.replace`",
            |d| {
                d.label(format!(
                    "expected the form {}, with `.{size}`",
                    c.row.syntax
                ))
            },
        );
        return None;
    }
    let places: &[Space] = match c.quals.get(QualKind::Space) {
        Some("global") => &[Space::Global],
        Some(_) => &[Space::Shared],
        None => &[Space::Global, Space::Shared],
    };
    tensor_map(e, c, 0, places)
}

fn copy_and_release(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    e.through_register = false;
    let words: Vec<&str> = c.quals.all(QualKind::Ignored).collect();
    let written = BY_WARP.words.iter().all(|word| words.contains(word))
        && c.quals.get(QualKind::Sem).is_some();
    if !written || c.quals.scope().is_none() || c.expr(2) != Expr::Const(128) {
        e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "there is no such form of this copy",
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
        return;
    }
    if e.env.seats.warp_size() > 1 {
        let message = "a copy of a tensor map by several threads of a warp is not supported";
        e.error("unsupported-instruction", c.opcode.clone(), message, |d| {
            d.label("expected a warp with one thread in the test")
        });
        return;
    }
    if tensor_map(e, c, 0, &[Space::Global]).is_none()
        || tensor_map(e, c, 1, &[Space::Shared]).is_none()
    {
        return;
    }
    moved(e, c, 0, 1);
    release(e, c);
}

/// The release half of a fence that makes writes visible to the tensormap proxy.
pub(super) fn release(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let tags = Tags::of(&[Tag::Release, Tag::Generic, Tag::TensormapProxy, Tag::Half]);
    e.push(Op::Mark {
        addr: None,
        mark: Mark {
            kind: EventKind::Fence,
            tags,
            scope: c.quals.scope(),
            pending: None,
            tensor: None,
        },
    });
}

/// Reports an operand that is not a tensor map.
pub(super) fn tensor_map(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    at: usize,
    places: &[Space],
) -> Option<()> {
    let found = c.is_found(at);
    if found {
        e.ask();
    }
    let Expr::Address(loc) = c.expr(at) else {
        e.ask();
        e.error(
            "unsupported-address",
            c.opcode.clone(),
            "a tensor map at an address that is not known is not supported",
            |d| d.label("expected the name of a location that holds an address"),
        );
        return None;
    };
    is_ordinary(e, loc, &c.opcode)?;
    one_address(e, c, CopyEnd::Of(loc))?;
    let space = e.symbols.object(loc).1.space;
    let symbol = e.symbols.get(loc);
    let (name, place) = (symbol.name.clone(), symbol.span);
    if !places.contains(&space) {
        let words = places
            .iter()
            .map(space_word)
            .collect::<Vec<_>>()
            .join(" or ");
        let message = format!("a tensor map is in {words} memory here, and `{name}` is not");
        e.error("wrong-space", c.opcode.clone(), message, |d| {
            d.label(format!(
                "expected a location there (PTX ISA, {})",
                c.row.syntax.replace('`', "")
            ))
            .also(place, "declared here")
        });
        return None;
    }
    if e.symbols.ty(loc).bits != 64 {
        let message = format!("`{name}` is not a tensor map: it holds no address");
        e.error("wrong-operand", c.opcode.clone(), message, |d| {
            d.label("expected a location that holds one, as in `m = \"&x\"`")
                .also(place, "declared here")
        });
        return None;
    }
    Some(())
}

fn space_word(space: &Space) -> &'static str {
    match space {
        Space::Shared => "shared",
        Space::Constant => "constant",
        Space::Param => "parameter",
        _ => "global",
    }
}
