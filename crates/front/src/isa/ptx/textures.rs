//! Fetches from textures, and loads and stores of surfaces, as compilers print them.
//!
//! A reference is the address of the memory that the texture or the surface shows, and
//! `[t, {x}]` names a texel from there on. The address may be that of a buffer, or of an alias with
//! a proxy. The instruction decides the proxy of the access.
//!
//! # Invariants
//! - A reference is known when the code is lowered. Otherwise the instruction is an error.
//! - All accesses are weak: the instructions have no order.
//!
//! # Sources
//! - PTX ISA 9.4, *tex*, *tld4*: coordinates, components, results.
//! - PTX ISA 9.4, *suld*, *sust*: byte offsets, and the modes `.trap`, `.clamp` and `.zero`.
//! - PTX ISA 9.4, *txq*, *suq*: attributes.
//!
//! # Where we differ
//! - The host decides the layout of a texture. Here the memory of one with several dimensions has
//!   rows of 64 bytes, and slices or layers of four rows. One dimension is the whole memory.
//! - A texel of a fetch has the type of the result. It has as many channels (1, 2 or 4) as the code
//!   uses results, and all other results are unknown.
//! - Coordinates are not normalised. A fetch with floating-point coordinates reads the texel that
//!   contains the point, and its value is unknown because of filters.
//! - A fetch outside of the texture reads the nearest texel, and its value is unknown.

use super::arith::op;
use super::floats::unary;
use super::lower::{Emit, PtxArg, PtxInstr};
use super::memory::is_ordinary;
use super::parse::OperandKind;
use super::table::{CACHE, InstrRow, OperandRole, QualGroup, QualKind, TYPES};
use super::{CodeItem, regs};
use program::{
    Access, BinOp, CmpOp, Expr, FloatOp, Format, LocId, NumberType, Op, Proxy, RegId, Rounding,
    Space, Tag, Tags, Ty,
};

/// The bytes of a row, and the rows of a slice or a layer, of memory with several dimensions.
const ROW: i64 = 64;
const ROWS_OF_SLICE: i64 = 4;

const SHAPES: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &["1d", "2d", "3d", "a1d", "a2d"],
};
const PLANE: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &["2d", "a2d"],
};
const FOUR: QualGroup = QualGroup {
    kind: QualKind::Vector,
    words: &["v4"],
};
const FETCHED: QualGroup = QualGroup {
    kind: QualKind::Types,
    words: &["u32", "s32", "f32"],
};
const COMPONENTS: QualGroup = QualGroup {
    kind: QualKind::Round,
    words: &["r", "g", "b", "a"],
};
const ELEMENTS: QualGroup = QualGroup {
    kind: QualKind::Vector,
    words: &["v2", "v4"],
};
/// What an access outside of a surface does.
const MODES: QualGroup = QualGroup {
    kind: QualKind::Clamp,
    words: &["trap", "clamp", "zero"],
};
const ATTRIBUTES: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &[
        "width",
        "height",
        "depth",
        "channel_data_type",
        "channel_order",
        "normalized_coords",
        "array_size",
        "num_mipmap_levels",
        "num_samples",
        "force_unnormalized_coords",
        "filter_mode",
        "addr_mode_0",
        "addr_mode_1",
        "addr_mode_2",
        "memory_layout",
    ],
};

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "tex",
        "`tex.1d|.2d|.3d|.a1d|.a2d.v4.type.s32|.f32 d, [t, {x, …}]`",
        "fetches a texel through the texture proxy; with floating-point coordinates, or outside \
         of the texture, the value is not worked out",
        &[SHAPES, FOUR, FETCHED],
        &[OperandRole::Dst, OperandRole::Texel],
        fetch,
    ),
    InstrRow::new(
        "tld4",
        "`tld4.r|.g|.b|.a.2d|.a2d.v4.type.f32 d, [t, {x, …}]`",
        "fetches a component of four neighbouring texels through the texture proxy; the values \
         are not worked out",
        &[COMPONENTS, PLANE, FOUR, FETCHED],
        &[OperandRole::Dst, OperandRole::Texel],
        gather,
    ),
    InstrRow::new(
        "suld",
        "`suld.b.1d|.2d|.3d|.a1d|.a2d{.v2|.v4}.type.trap|.clamp|.zero d, [s, {x, …}]`",
        "loads from a surface through the surface proxy; `x` counts bytes",
        &[SHAPES, CACHE, ELEMENTS, TYPES, MODES],
        &[OperandRole::Dst, OperandRole::Texel],
        load,
    )
    .keyed(&["b"]),
    InstrRow::new(
        "sust",
        "`sust.b.1d|.2d|.3d|.a1d|.a2d{.v2|.v4}.type.trap|.clamp|.zero [s, {x, …}], a`",
        "stores to a surface through the surface proxy; `x` counts bytes",
        &[SHAPES, CACHE, ELEMENTS, TYPES, MODES],
        &[OperandRole::Texel, OperandRole::Val],
        store,
    )
    .keyed(&["b"]),
    InstrRow::new(
        "txq",
        "`txq.attribute.b32 d, [t]`",
        "an attribute of a texture, which is not worked out; no memory access",
        &[ATTRIBUTES, TYPES],
        &[OperandRole::Dst, OperandRole::Addr],
        query,
    ),
    InstrRow::new(
        "suq",
        "`suq.attribute.b32 d, [s]`",
        "an attribute of a surface, which is not worked out; no memory access",
        &[ATTRIBUTES, TYPES],
        &[OperandRole::Dst, OperandRole::Addr],
        query,
    ),
];

fn query(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    if let Some(dst) = c.dst(0) {
        e.push(Op::Assign {
            dst,
            value: Expr::unknown(c.ty),
        });
    }
}

/// The memory of a texture or surface: an address in it, and the bytes from there to its end.
struct Shown {
    address: Expr,
    bytes: i64,
}

/// One dimension: a coordinate, its limit, and the bytes from one to the next.
struct Dimension {
    coordinate: Expr,
    limit: i64,
    stride: i64,
}

/// A texel: its dimensions, in the memory that shows it.
struct Texel {
    shown: Shown,
    dimensions: Vec<Dimension>,
}

impl Texel {
    /// Whether all coordinates are inside.
    fn is_inside(&self) -> Expr {
        let inside = |d: &Dimension| match d.coordinate {
            Expr::Const(x) => Expr::Const(i64::from((0..d.limit).contains(&x))),
            ref x => Expr::Cmp(
                CmpOp::Lt,
                Ty::U32,
                x.clone().into(),
                Expr::Const(d.limit).into(),
            ),
        };
        let all = self.dimensions.iter().map(inside);
        all.fold(Expr::Const(1), |all, one| match (all, one) {
            (Expr::Const(1), one) => one,
            (all, Expr::Const(1)) => all,
            (Expr::Const(0), _) | (_, Expr::Const(0)) => Expr::Const(0),
            (all, one) => op(BinOp::And, Ty::WORD, all, one),
        })
    }

    /// The address of the nearest texel.
    fn nearest(&self) -> Expr {
        let mut constant = 0;
        let mut address = self.shown.address.clone();
        for d in &self.dimensions {
            let most = d.limit - 1;
            match &d.coordinate {
                Expr::Const(x) => constant += (*x).clamp(0, most) * d.stride,
                x => {
                    let x = op(BinOp::Max, Ty::S32, x.clone(), Expr::Const(0));
                    let x = op(BinOp::Min, Ty::S32, x, Expr::Const(most));
                    let x = Expr::Cast(Ty::U32, x.into());
                    let offset = op(BinOp::Mul, Ty::U64, x, Expr::Const(d.stride));
                    address = op(BinOp::Add, Ty::U64, address, offset);
                }
            }
        }
        super::known::behind(address, constant)
    }
}

/// The memory that a reference names.
fn shown(e: &mut Emit<'_, '_>, c: &PtxInstr, reference: &Expr) -> Option<Shown> {
    let (loc, offset) = match reference {
        Expr::Address(loc) => (*loc, 0),
        Expr::Bin(BinOp::Add, _, base, offset) => match (&**base, &**offset) {
            (Expr::Address(loc), Expr::Const(offset)) => (*loc, *offset),
            _ => return unknown_reference(e, c),
        },
        _ => return unknown_reference(e, c),
    };
    is_ordinary(e, loc, &c.opcode)?;
    is_global(e, c, loc)?;
    let bytes = e.bytes_of(loc) - offset;
    Some(Shown {
        address: reference.clone(),
        bytes,
    })
}

fn unknown_reference<T>(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<T> {
    // The second lowering knows the addresses in registers.
    e.ask();
    let message = "the texture or surface of this instruction is not known";
    e.error("unknown-reference", c.opcode.clone(), message, |d| {
        d.label("expected a location, or a register with its address")
            .help("give the parameter a buffer: `--arg t=x:u32[16]`, or `regs = { t = \"&x\" }`")
    });
    None
}

fn is_global(e: &mut Emit<'_, '_>, c: &PtxInstr, loc: LocId) -> Option<()> {
    if e.symbols.object(loc).1.space == Space::Global {
        return Some(());
    }
    let symbol = e.symbols.get(loc);
    let (message, place) = (
        format!(
            "`{}` is not in global memory, so textures and surfaces cannot show it",
            symbol.name
        ),
        symbol.span,
    );
    e.error("wrong-space", c.opcode.clone(), message, |d| {
        d.label("expected a location in global memory")
            .also(place, "declared here")
    });
    None
}

/// The texel of operand `at`. An access has `bytes`; if `scaled`, the first coordinate counts
/// such accesses, else it counts bytes.
fn texel(e: &mut Emit<'_, '_>, c: &PtxInstr, at: usize, bytes: i64, scaled: bool) -> Option<Texel> {
    let mut parts = c.elements(at).iter().map(|part| match part {
        PtxArg::Expr(part) => part.clone(),
        _ => Expr::Const(0),
    });
    let reference = parts.next()?;
    let coordinates: Vec<Expr> = parts.collect();
    let shown = shown(e, c, &reference)?;
    let shape = c.quals.get(QualKind::Op).unwrap_or_default();
    let Some(order) = order(shape).filter(|order| coordinates.len() >= order.len()) else {
        let message = format!(
            "`.{shape}` takes other coordinates than these {}",
            coordinates.len()
        );
        e.error("wrong-operand", c.opcode.clone(), message, |d| {
            d.label(format!("expected the form {}", c.row.syntax))
        });
        return None;
    };
    let several = order.len() > 1;
    let row = if several { ROW } else { shown.bytes };
    let slice = ROWS_OF_SLICE * ROW;
    let up = |whole: i64, part: i64| (whole + part - 1) / part;
    let dimensions = order.iter().map(|(axis, place)| {
        let (limit, stride) = match (axis, order.len()) {
            ('x', _) if scaled => (row / bytes, bytes),
            ('x', _) => (row - bytes + 1, 1),
            ('y', 3) => (ROWS_OF_SLICE, ROW),
            ('y', _) => (up(shown.bytes, ROW), ROW),
            _ => (up(shown.bytes, slice), slice),
        };
        Dimension {
            coordinate: coordinates[*place].clone(),
            limit: limit.max(1),
            stride,
        }
    });
    let dimensions = dimensions.collect();
    Some(Texel { shown, dimensions })
}

/// The axes of a shape, with the places of their coordinates. A layer is the last axis.
fn order(shape: &str) -> Option<&'static [(char, usize)]> {
    Some(match shape {
        "1d" => &[('x', 0)],
        "2d" => &[('x', 0), ('y', 1)],
        "3d" => &[('x', 0), ('y', 1), ('z', 2)],
        "a1d" => &[('y', 0), ('x', 1)],
        "a2d" => &[('z', 0), ('x', 1), ('y', 2)],
        _ => return None,
    })
}

fn weak(proxy: Proxy, ty: Ty) -> Access {
    Access {
        tags: Tags::of(&[proxy.row().tag, Tag::Weak]),
        scope: None,
        ty,
    }
}

/// An address that later micro-ops may use after the registers of its coordinates have changed.
fn kept(e: &mut Emit<'_, '_>, c: &PtxInstr, value: Expr) -> Option<Expr> {
    if !value.any(&|part| matches!(part, Expr::Reg(_))) {
        return Some(value);
    }
    let dst = e.temporary(c, "texel", Ty::U64)?;
    e.push(Op::Assign { dst, value });
    Some(Expr::Reg(dst))
}

/// The coordinates as integers. The texel that contains a point has its rounded coordinates.
fn whole(c: &PtxInstr, texel: &mut Texel) -> bool {
    let floating = c.quals.conversion().is_some_and(|types| types.1 == "f32");
    if floating {
        for d in &mut texel.dimensions {
            let to = FloatOp::To(NumberType::Int(Ty::S32), Rounding::Down);
            // The layer of an array is an integer.
            let is_layer = matches!(c.quals.get(QualKind::Op), Some("a1d")) && d.stride == ROW
                || matches!(c.quals.get(QualKind::Op), Some("a2d"))
                    && d.stride == ROWS_OF_SLICE * ROW;
            if !is_layer {
                let point = std::mem::replace(&mut d.coordinate, Expr::Const(0));
                let point = unary(to, Format::SINGLE, point);
                d.coordinate = Expr::Cast(Ty::S32, point.into());
            }
        }
    }
    floating
}

fn fetch(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let results = registers(c);
    let channels = channels(e, c, &results);
    let bytes = i64::from(c.ty.bytes());
    let Some(mut texel) = texel(e, c, 1, bytes * channels, true) else {
        return;
    };
    let filtered = whole(c, &mut texel);
    let inside = if filtered {
        Expr::Const(0)
    } else {
        texel.is_inside()
    };
    let Some(address) = kept(e, c, texel.nearest()) else {
        return;
    };
    let is_known = inside == Expr::Const(1);
    let Some(inside) = kept_truth(e, c, inside) else {
        return;
    };
    let mut loads = Vec::new();
    for channel in 0..channels {
        let Some(dst) = result(e, c, &results, channel as usize) else {
            return;
        };
        loads.push(Op::Load {
            dst,
            addr: super::known::behind(address.clone(), channel * bytes),
            access: weak(Proxy::Texture, c.ty),
        });
    }
    e.push_elements(loads);
    for (channel, dst) in (0..).zip(&results) {
        let Some(dst) = *dst else { continue };
        let unknown = Expr::unknown(c.ty);
        let value = match channel < channels {
            true if is_known => continue,
            true => Expr::Select(inside.clone().into(), Expr::Reg(dst).into(), unknown.into()),
            false => unknown,
        };
        e.push(Op::Assign { dst, value });
    }
}

/// A truth value that later micro-ops may use after its registers have changed.
fn kept_truth(e: &mut Emit<'_, '_>, c: &PtxInstr, value: Expr) -> Option<Expr> {
    if matches!(value, Expr::Const(_)) {
        return Some(value);
    }
    let dst = e.temporary(c, "inside", Ty::U32)?;
    e.push(Op::Assign { dst, value });
    Some(Expr::Reg(dst))
}

/// The registers of the results.
fn registers(c: &PtxInstr) -> Vec<Option<RegId>> {
    let results = c.elements(0).iter().map(|arg| match arg {
        PtxArg::Dst(dst) => *dst,
        _ => None,
    });
    results.collect()
}

/// The register of a result, or one that code cannot name.
fn result(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    results: &[Option<RegId>],
    channel: usize,
) -> Option<RegId> {
    match results.get(channel) {
        Some(Some(dst)) => Some(*dst),
        _ => e.temporary(c, &format!("channel {channel}"), c.ty),
    }
}

/// The channels of a texel: as many as results that some other instruction uses.
fn channels(e: &Emit<'_, '_>, c: &PtxInstr, results: &[Option<RegId>]) -> i64 {
    let is_used = |dst: &Option<RegId>| dst.is_some_and(|dst| is_read(e, dst));
    let last = results.iter().rposition(is_used).unwrap_or(0);
    match last {
        0 => 1,
        1 => 2,
        _ => results.len() as i64,
    }
    .min(ROW / i64::from(c.ty.bytes()))
}

/// Whether an instruction reads a register.
fn is_read(e: &Emit<'_, '_>, register: RegId) -> bool {
    let Some(info) = e.regs.get(register) else {
        return false;
    };
    let name = info.name.as_str();
    e.unit.items.iter().any(|item| {
        let CodeItem::Instr(m) = item else {
            return false;
        };
        m.operands().any(|(role, operand, _)| match &operand.kind {
            OperandKind::Name(n) => {
                !matches!(role, OperandRole::Dst | OperandRole::Label)
                    && regs::bare(e.str(&n.name)) == name
            }
            _ => false,
        })
    })
}

fn gather(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let components = ["r", "g", "b", "a"];
    let component = c.quals.get(QualKind::Round).unwrap_or("r");
    let component = components.iter().position(|word| *word == component);
    let component = component.unwrap_or(0) as i64;
    let channels = [1, 2, 4, 4][component as usize];
    let bytes = i64::from(c.ty.bytes());
    let Some(mut texel) = texel(e, c, 1, bytes * channels, true) else {
        return;
    };
    whole(c, &mut texel);
    let corner = texel.nearest();
    let mut loads = Vec::new();
    let results = registers(c);
    // Counter-clockwise from the lower left one.
    for (at, (right, up)) in [(0, 1), (1, 1), (1, 0), (0, 0)].into_iter().enumerate() {
        let Some(dst) = result(e, c, &results, at) else {
            return;
        };
        let mut near = Texel {
            shown: Shown {
                address: texel.shown.address.clone(),
                bytes: texel.shown.bytes,
            },
            dimensions: Vec::new(),
        };
        for d in &texel.dimensions {
            let by = match d.stride {
                ROW => up,
                stride if stride < ROW => right,
                _ => 0,
            };
            near.dimensions.push(Dimension {
                coordinate: shifted(&d.coordinate, by),
                limit: d.limit,
                stride: d.stride,
            });
        }
        let addr = if (right, up) == (0, 0) {
            corner.clone()
        } else {
            near.nearest()
        };
        loads.push(Op::Load {
            dst,
            addr: super::known::behind(addr, component * bytes),
            access: weak(Proxy::Texture, c.ty),
        });
    }
    e.push_elements(loads);
    for dst in results.into_iter().flatten() {
        e.push(Op::Assign {
            dst,
            value: Expr::unknown(c.ty),
        });
    }
}

fn shifted(coordinate: &Expr, by: i64) -> Expr {
    match coordinate {
        coordinate if by == 0 => coordinate.clone(),
        Expr::Const(x) => Expr::Const(x + by),
        x => op(BinOp::Add, Ty::S32, x.clone(), Expr::Const(by)),
    }
}

/// An access to a surface: its address, and whether it is inside.
struct SurfaceAccess {
    address: Expr,
    inside: Expr,
}

fn surface(e: &mut Emit<'_, '_>, c: &PtxInstr, at: usize) -> Option<SurfaceAccess> {
    let Some(mode) = c.quals.get(QualKind::Clamp) else {
        let message = "a surface access says what it does outside of the surface";
        e.error("missing-mode", c.opcode.clone(), message, |d| {
            d.label("expected `.trap`, `.clamp` or `.zero`")
        });
        return None;
    };
    let bytes = i64::from(c.ty.bytes()) * c.quals.width() as i64;
    let texel = texel(e, c, at, bytes, false)?;
    let inside = texel.is_inside();
    let nearest = texel.nearest();
    let address = match (mode, &inside) {
        // Address 0 is outside of all memory.
        ("trap", Expr::Const(0)) => Expr::Const(0),
        ("trap", inside) if *inside != Expr::Const(1) => {
            Expr::Select(inside.clone().into(), nearest.into(), Expr::Const(0).into())
        }
        _ => nearest,
    };
    let address = kept(e, c, address)?;
    let inside = match mode {
        "zero" => kept_truth(e, c, inside)?,
        _ => Expr::Const(1),
    };
    Some(SurfaceAccess { address, inside })
}

fn load(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some(SurfaceAccess { address, inside }) = surface(e, c, 1) else {
        return;
    };
    let mut loads = Vec::new();
    for (at, dst) in (0..).zip(registers(c)) {
        let Some(dst) = dst else {
            let message = "a load needs a register to write to";
            return e.error("wrong-operand", c.opcode.clone(), message, |d| {
                d.label("expected a register for each element")
            });
        };
        loads.push(Op::Load {
            dst,
            addr: super::known::behind(address.clone(), at * i64::from(c.ty.bytes())),
            access: weak(Proxy::Surface, c.ty),
        });
    }
    let zeros: Vec<Op> = loads
        .iter()
        .filter_map(Op::defines)
        .map(|dst| Op::Assign {
            dst,
            value: Expr::Const(0),
        })
        .collect();
    if inside == Expr::Const(0) {
        return zeros.into_iter().for_each(|zero| e.push(zero));
    }
    let outside = skip(e, &inside);
    e.push_elements(loads);
    if let Some(outside) = outside {
        let over = e.here();
        e.jump(Expr::Const(1), over);
        e.aim(outside, e.here());
        zeros.into_iter().for_each(|zero| e.push(zero));
        e.aim(over, e.here());
    }
}

/// A jump over code that runs only if a condition holds.
fn skip(e: &mut Emit<'_, '_>, condition: &Expr) -> Option<usize> {
    if *condition == Expr::Const(1) {
        return None;
    }
    let at = e.here();
    e.jump(super::lower::truth(condition.clone(), true), at);
    Some(at)
}

fn store(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some(SurfaceAccess { address, inside }) = surface(e, c, 0) else {
        return;
    };
    let values = c.elements(1).iter().map(|arg| match arg {
        PtxArg::Expr(value) => e.fit(value.clone(), c.ty),
        _ => Expr::Const(0),
    });
    let stores = (0..).zip(values).map(|(at, value)| Op::Store {
        addr: super::known::behind(address.clone(), at * i64::from(c.ty.bytes())),
        value,
        access: weak(Proxy::Surface, c.ty),
    });
    let stores = stores.collect();
    if inside == Expr::Const(0) {
        return;
    }
    let outside = skip(e, &inside);
    e.push_elements(stores);
    if let Some(outside) = outside {
        e.aim(outside, e.here());
    }
}
