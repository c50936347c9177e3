//! Tensor copies and reductions at coordinates, as PTX has them.
//!
//! A tile is a box of elements of a tensor. In shared memory it is contiguous, and its chunks of 16
//! bytes may be permuted; in global memory, each row of the box is contiguous.
//!
//! # Invariants
//! - The test gives the shape of a tensor map's tensor; the address of the tensor is what the map
//!   holds. A copy through a map without a shape is refused.
//! - Elements outside the tensor become zeros in shared memory, and are not written in global
//!   memory. The completion counts the bytes of the whole box.
//!
//! # Sources
//! - PTX ISA 9.4, *Tensors* (Tensor dimension, size and format; Tiled Mode; Swizzling Modes),
//!   *cp.async.bulk.tensor*, *cp.reduce.async.bulk.tensor*, *cp.async.bulk.prefetch.tensor*.
//! - CUDA Driver API, `cuTensorMapEncodeTiled`: dimensions from the one with adjacent elements;
//!   rows and strides are multiples of 16 bytes.
//!
//! # Where we differ
//! - `.im2col`, `.tile::gather4`, `.tile::scatter4` and `.cta_group::2` are refused.
//! - The tile begins at a multiple of the swizzle's period in shared memory, 1,024 bytes or less.

use super::atomics::{RED_OPS, updated_by};
use super::copies::{
    self, AXES, AsyncAccess, BULK, DIMENSIONS, GROUPED, TRACKED, UNIT, aligned, end, one_address,
    one_type, reduction, unknown,
};
use super::lower::{Emit, PtxArg, PtxInstr};
use super::mbarrier;
use super::needs::{Need, TargetFeatures, WITH_TENSOR_MEMORY};
use super::operands::plus;
use super::table::{HINT, InstrRow, NOFTZ, NUMBERS, OperandRole, QualGroup, QualKind};
use super::tensormap::{PLACES, tensor_map};
use crate::isa::TensorShape;
use program::{BinOp, CmpOp, Expr, Op, Scope, Space, Tag, Tile, Ty};

const MODES: QualGroup = QualGroup {
    kind: QualKind::Flag,
    words: &["tile"],
};
const ONE_CTA: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["cta_group::1"],
};
const PREFETCHED: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["L2", "global"],
};

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "cp",
        "`cp.async.bulk.tensor.dim.shared::cta|::cluster.global{.tile}\
         .mbarrier::complete_tx::bytes{.multicast::cluster}{.cta_group::1} [dst], \
         [map, {c, …}], [a]{, mask}`",
        "begins to copy a tile of a tensor to shared memory through the async proxy, completed \
        through an mbarrier object; the tensormap proxy reads `map`, of which the test gives the \
        shape",
        &[DIMENSIONS, BULK, HINT, MODES, ONE_CTA],
        &[
            OperandRole::Addr,
            OperandRole::Addr,
            OperandRole::Vals,
            OperandRole::Addr,
            OperandRole::Loose,
        ],
        load,
    )
    .needs(&[
        Need::always((8, 0), 90),
        Need::of(&["cta_group::1"], (8, 6), 100).only(TargetFeatures::Family, WITH_TENSOR_MEMORY),
    ])
    .keyed(&["async", "bulk", "tensor", TRACKED])
    .tiled()
    .optional(1),
    InstrRow::new(
        "cp",
        "`cp.async.bulk.tensor.dim.global.shared::cta{.tile}.bulk_group [map, {c, …}], [src]`",
        "begins to copy a tile from shared memory to a tensor",
        &[DIMENSIONS, BULK, HINT, MODES],
        &[OperandRole::Addr, OperandRole::Vals, OperandRole::Addr],
        store,
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["async", "bulk", "tensor", GROUPED])
    .tiled(),
    InstrRow::new(
        "cp",
        "`cp.reduce.async.bulk.tensor.dim.global.shared::cta.op{.tile}.bulk_group [map, {c, …}], \
         [src]`",
        "begins to apply an operation, `.relaxed.gpu`, to each element of a tile of a tensor; the \
        type is that of the map",
        &[AXES, BULK, HINT, MODES, RED_OPS, NOFTZ, NUMBERS],
        &[OperandRole::Addr, OperandRole::Vals, OperandRole::Addr],
        reduce,
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["reduce", "async", "bulk", "tensor", GROUPED])
    .tiled(),
    InstrRow::new(
        "cp",
        "`cp.async.bulk.prefetch.tensor.dim.L2.global{.tile} [map, {c, …}]`",
        "a hint; does nothing here",
        &[DIMENSIONS, PREFETCHED, HINT, MODES],
        &[OperandRole::Addr, OperandRole::Vals],
        |e, _| e.through_register = false,
    )
    .needs(&[Need::always((8, 0), 90)])
    .keyed(&["async", "bulk", "prefetch", "tensor"])
    .tiled(),
];

/// Sixteen adjacent bytes of a tile.
struct TileChunk {
    /// Its offset in shared memory.
    shared: i64,
    /// Its offset from the tensor's first byte.
    global: Expr,
    /// Whether it lies in the tensor.
    inside: Expr,
}

/// The shape of the tensor of operand `at`, and its coordinates. Reports an error and returns
/// `None` if the test gives no shape, or one of other dimensions.
fn shape(e: &mut Emit<'_, '_>, c: &PtxInstr, at: usize) -> Option<(TensorShape, Vec<Expr>)> {
    e.through_register = false;
    tensor_map(e, c, at, &PLACES)?;
    let Expr::Address(map) = c.expr(at) else {
        return None;
    };
    let coordinates: Vec<Expr> = c
        .elements(at + 1)
        .iter()
        .filter_map(|one| match one {
            PtxArg::Expr(value) => Some(value.clone()),
            _ => None,
        })
        .collect();
    let symbol = e.symbols.get(map);
    let (name, place) = (symbol.name.clone(), symbol.span);
    let Some(shape) = e.symbols.object(map).1.tensor.clone() else {
        let message = format!("the shape of the tensor of `{name}` is not known");
        e.error("missing-shape", c.opcode.clone(), message, |d| {
            d.label("a copy at coordinates needs the box")
                .also(place, "declared here")
                .help(format!(
                    "give it with the map: `{name} = {{ init = \"&x\", tensor = \"b16[64, 128] \
                     box[64, 8] swizzle128\" }}`"
                ))
        });
        return None;
    };
    let dimensions = c.quals.get(QualKind::Op).or(c.quals.get(QualKind::Round));
    let rank = shape.sizes.len();
    if dimensions.is_some_and(|word| word != format!("{rank}d")) || coordinates.len() != rank {
        let message = format!("a tensor of {rank} dimensions");
        e.error("wrong-operand", c.opcode.clone(), message, |d| {
            d.label(format!("{} coordinates given", coordinates.len()))
                .also(place, "declared here")
        });
        return None;
    }
    Some((*shape, coordinates))
}

/// All chunks of a tile at some coordinates.
fn chunks(shape: &TensorShape, coordinates: &[Expr]) -> Vec<TileChunk> {
    let element = i64::from(shape.element);
    let row = shape.boxes[0] * element;
    let mask = (shape.swizzle / UNIT - 1).max(0) * UNIT;
    let rows: i64 = shape.boxes[1..].iter().product();
    let mut all = Vec::new();
    for number in 0..rows {
        let (mut global, mut inside) = (Expr::Const(0), Expr::Const(1));
        let mut rest = number;
        for (axis, start) in coordinates.iter().enumerate().skip(1) {
            let place = sum(start.clone(), rest % shape.boxes[axis]);
            rest /= shape.boxes[axis];
            inside = both(inside, below(place.clone(), shape.sizes[axis]));
            global = added(global, times(place, shape.strides[axis - 1]));
        }
        for at in (0..row).step_by(UNIT as usize) {
            let first = sum(coordinates[0].clone(), at / element);
            let shared = number * row + at;
            all.push(TileChunk {
                shared: shared ^ (shared >> 3 & mask),
                inside: both(inside.clone(), below(first.clone(), shape.sizes[0])),
                global: added(global.clone(), times(first, element)),
            });
        }
    }
    all
}

/// A coordinate as a signed number of 64 bits, plus a constant.
fn sum(coordinate: Expr, by: i64) -> Expr {
    match coordinate {
        Expr::Const(v) => Expr::Const(i64::from(v as i32) + by),
        other => added(Expr::Cast(Ty::S32, other.into()), Expr::Const(by)),
    }
}

fn added(a: Expr, b: Expr) -> Expr {
    match (a, b) {
        (Expr::Const(a), Expr::Const(b)) => Expr::Const(a + b),
        (a, Expr::Const(0)) | (Expr::Const(0), a) => a,
        (a, b) => Expr::Bin(BinOp::Add, Ty::U64, a.into(), b.into()),
    }
}

fn times(a: Expr, by: i64) -> Expr {
    match a {
        Expr::Const(v) => Expr::Const(v * by),
        a => Expr::Bin(BinOp::Mul, Ty::U64, a.into(), Expr::Const(by).into()),
    }
}

/// Whether a coordinate lies in a dimension: as an unsigned number, it is below its size.
fn below(place: Expr, size: i64) -> Expr {
    match place {
        Expr::Const(v) => Expr::Const(i64::from((0..size).contains(&v))),
        place => Expr::Cmp(CmpOp::Lt, Ty::U64, place.into(), Expr::Const(size).into()),
    }
}

fn both(a: Expr, b: Expr) -> Expr {
    match (a, b) {
        (Expr::Const(0), _) | (_, Expr::Const(0)) => Expr::Const(0),
        (Expr::Const(_), b) => b,
        (a, Expr::Const(_)) => a,
        (a, b) => Expr::Bin(BinOp::And, Ty::U64, a.into(), b.into()),
    }
}

/// The ends of a tensor copy.
struct TileEnds {
    shape: TensorShape,
    coordinates: Vec<Expr>,
    /// The type of the accesses.
    ty: Ty,
    /// The tensor's address, which the map holds.
    tensor: Expr,
}

/// Checks the operands, and emits the read of the map.
fn ends(e: &mut Emit<'_, '_>, c: &PtxInstr, map: usize, shared: usize) -> Option<TileEnds> {
    let (shape, coordinates) = shape(e, c, map)?;
    let tile = end(e, c, shared, Space::Shared, shape.bytes(), UNIT)?;
    let there = unknown(e, Space::Global);
    one_address(e, c, tile)?;
    one_address(e, c, there)?;
    let ty = one_type(e, c, tile, there)?;
    let at = copies::read_map(e, c, map)?;
    Some(TileEnds {
        shape,
        coordinates,
        ty,
        tensor: aligned(Expr::Reg(at), UNIT),
    })
}

/// Emits something for a chunk inside the tensor, and something else for one outside.
fn where_inside(
    e: &mut Emit<'_, '_>,
    inside: &Expr,
    copy: impl FnOnce(&mut Emit<'_, '_>) -> Option<()>,
    other: impl FnOnce(&mut Emit<'_, '_>),
) -> Option<()> {
    match inside {
        Expr::Const(0) => other(e),
        Expr::Const(_) => copy(e)?,
        inside => {
            let to_copy = e.here();
            e.jump(inside.clone(), usize::MAX);
            other(e);
            let over = e.here();
            e.jump(Expr::Const(1), usize::MAX);
            e.aim(to_copy, e.here());
            copy(e)?;
            e.aim(over, e.here());
        }
    }
    Some(())
}

fn load(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    if !is_form(
        e,
        c,
        &[&["shared::cta", "global"], &["shared::cluster", "global"]],
    ) {
        return;
    }
    let _ = tile_loaded(e, c);
}

fn tile_loaded(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<()> {
    let ends = ends(e, c, 1, 0)?;
    let multicast = c
        .quals
        .all(QualKind::Ignored)
        .any(|word| word == copies::MULTICAST);
    let targets = copies::targets(e, c, multicast)?;
    let (how, ty) = (AsyncAccess::weak(Tag::AsyncProxy), ends.ty);
    for (to, object) in targets {
        if e.has_tiles() {
            tile_copied(e, c, &ends, to, true)?;
            mbarrier::complete(e, c, 3, object, ends.shape.bytes());
            continue;
        }
        let to = aligned(to, UNIT);
        for chunk in chunks(&ends.shape, &ends.coordinates) {
            let parts = 0..UNIT / i64::from(ty.bytes());
            let place = |part: i64| plus(shifted(&to, chunk.shared), part, ty);
            let zeros = |e: &mut Emit<'_, '_>| {
                for part in parts.clone() {
                    e.push(Op::Store {
                        addr: place(part),
                        value: Expr::Const(0),
                        access: how.target(Tag::Relaxed, ty),
                    });
                }
            };
            let copy = |e: &mut Emit<'_, '_>| {
                let from = added(ends.tensor.clone(), chunk.global.clone());
                for part in parts.clone() {
                    let dst = e.temporary(c, &format!("copy {part}"), ty)?;
                    e.push(Op::Load {
                        dst,
                        addr: plus(from.clone(), part, ty),
                        access: how.source(ty),
                    });
                    e.push(Op::Store {
                        addr: place(part),
                        value: Expr::Reg(dst),
                        access: how.target(Tag::Relaxed, ty),
                    });
                }
                Some(())
            };
            where_inside(e, &chunk.inside, copy, zeros)?;
        }
        mbarrier::complete(e, c, 3, object, ends.shape.bytes());
    }
    Some(())
}

/// Emits a copy between a tensor and a tile in shared memory, which is contiguous there.
fn tile_copied(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    ends: &TileEnds,
    shared: Expr,
    to_shared: bool,
) -> Option<()> {
    let dst = e.temporary(c, "copy 0", Ty::U64)?;
    let how = AsyncAccess::weak(Tag::AsyncProxy);
    let shape = &ends.shape;
    let tensor = (
        ends.tensor.clone(),
        Tile::Box {
            element: i64::from(shape.element),
            sizes: shape.sizes.clone(),
            strides: shape.strides.clone(),
            boxes: shape.boxes.clone(),
            coordinates: ends.coordinates.clone(),
        },
    );
    // A swizzle permutes the pieces of a whole tile.
    let pieces = Tile::Pieces {
        offsets: vec![(0, shape.bytes())],
        swizzle: 0,
    };
    let (from, to) = if to_shared {
        (tensor, (shared, pieces))
    } else {
        ((shared, pieces), tensor)
    };
    let (addr, tile) = from;
    let access = how.source(Ty::U64);
    e.push_tile(Op::Load { dst, addr, access }, tile);
    let (addr, tile) = to;
    let access = how.target(Tag::Relaxed, Ty::U64);
    let value = Expr::Reg(dst);
    e.push_tile(
        Op::Store {
            addr,
            value,
            access,
        },
        tile,
    );
    Some(())
}

fn shifted(to: &Expr, by: i64) -> Expr {
    let byte = Ty {
        bits: 8,
        signed: false,
    };
    plus(to.clone(), by, byte)
}

fn store(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    if !is_form(e, c, &[&["global", "shared::cta"]]) {
        return;
    }
    let Some(ends) = ends(e, c, 0, 2) else { return };
    if e.has_tiles() {
        let _ = tile_copied(e, c, &ends, c.expr(2), false);
        return;
    }
    let (how, ty) = (AsyncAccess::weak(Tag::AsyncProxy), ends.ty);
    let from = aligned(c.expr(2), UNIT);
    for chunk in chunks(&ends.shape, &ends.coordinates) {
        let copy = |e: &mut Emit<'_, '_>| {
            let to = added(ends.tensor.clone(), chunk.global.clone());
            for part in 0..UNIT / i64::from(ty.bytes()) {
                let dst = e.temporary(c, &format!("copy {part}"), ty)?;
                e.push(Op::Load {
                    dst,
                    addr: plus(shifted(&from, chunk.shared), part, ty),
                    access: how.source(ty),
                });
                e.push(Op::Store {
                    addr: plus(to.clone(), part, ty),
                    value: Expr::Reg(dst),
                    access: how.target(Tag::Relaxed, ty),
                });
            }
            Some(())
        };
        if where_inside(e, &chunk.inside, copy, |_| {}).is_none() {
            return;
        }
    }
}

fn reduce(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    if !is_form(e, c, &[&["global", "shared::cta"]]) {
        return;
    }
    let Some(ends) = ends(e, c, 0, 2) else { return };
    if e.has_tiles() {
        let message = "a reduction of a tile in a CTA of more than 32 threads is not supported";
        e.error("unsupported-instruction", c.opcode.clone(), message, |d| {
            d.label("try a smaller launch")
        });
        return;
    }
    // The map has the type of the elements; here the instruction may name it, or they are words.
    if c.quals.get(QualKind::Type).is_none() || c.ty.bits != ends.ty.bits {
        let message = "a reduction of a tile needs the type of its elements";
        e.error("missing-type", c.opcode.clone(), message, |d| {
            d.label(format!(
                "expected one of {} bits behind the operation",
                ends.ty.bits
            ))
        });
        return;
    }
    if reduction(e, c, true).is_none() {
        return;
    }
    let how = AsyncAccess {
        strong: Some(Scope::Gpu),
        ..AsyncAccess::weak(Tag::AsyncProxy)
    };
    let from = aligned(c.expr(2), UNIT);
    for chunk in chunks(&ends.shape, &ends.coordinates) {
        let copy = |e: &mut Emit<'_, '_>| {
            let to = added(ends.tensor.clone(), chunk.global.clone());
            for part in 0..UNIT / i64::from(c.ty.bytes()) {
                let dst = e.temporary(c, &format!("copy {part}"), c.ty)?;
                let update = updated_by(e, c, Expr::Reg(dst))?;
                e.push(Op::Load {
                    dst,
                    addr: plus(shifted(&from, chunk.shared), part, c.ty),
                    access: AsyncAccess::weak(Tag::AsyncProxy).source(c.ty),
                });
                e.push(how.reduction(Tag::Relaxed, c.ty, plus(to.clone(), part, c.ty), update));
            }
            Some(())
        };
        if where_inside(e, &chunk.inside, copy, |_| {}).is_none() {
            return;
        }
    }
}

/// Whether the qualifiers name the state spaces of a form. Reports an error otherwise.
fn is_form(e: &mut Emit<'_, '_>, c: &PtxInstr, spaces: &[&[&str]]) -> bool {
    e.through_register = false;
    let given: Vec<&str> = c
        .quals
        .all(QualKind::Ignored)
        .filter(|word| ![TRACKED, GROUPED, copies::MULTICAST].contains(word))
        .collect();
    let multicast = c
        .quals
        .all(QualKind::Ignored)
        .any(|word| word == copies::MULTICAST);
    let away = given.first() == Some(&"shared::cluster");
    let fits = spaces.contains(&given.as_slice())
        && (!multicast || away && c.given(4).is_some())
        && (multicast || c.given(4).is_none());
    if !fits {
        e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "there is no such form of a tensor copy",
            |d| d.label(format!("expected {}", c.row.syntax)),
        );
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor() -> TensorShape {
        TensorShape {
            element: 2,
            sizes: vec![64, 10],
            strides: vec![128],
            boxes: vec![64, 8],
            swizzle: 128,
        }
    }

    #[test]
    fn a_tile_covers_its_box_once() {
        let all = chunks(&tensor(), &[Expr::Const(0), Expr::Const(1)]);
        let mut shared: Vec<i64> = all.iter().map(|chunk| chunk.shared).collect();
        shared.sort_unstable();
        assert_eq!(shared, (0..64).map(|k| k * 16).collect::<Vec<_>>());
        assert_eq!(
            (all[8].shared, all[8].global.clone()),
            (128 + 16, Expr::Const(256))
        );
        assert!(all.iter().all(|chunk| chunk.inside == Expr::Const(1)));
    }

    #[test]
    fn rows_beyond_the_tensor_are_outside() {
        let all = chunks(&tensor(), &[Expr::Const(0), Expr::Const(8)]);
        let inside = all.iter().filter(|chunk| chunk.inside == Expr::Const(1));
        assert_eq!(inside.count(), 16);
        let before = chunks(&tensor(), &[Expr::Const(0), Expr::Const(-1)]);
        assert_eq!(before[0].inside, Expr::Const(0));
    }
}
