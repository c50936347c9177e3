//! Loads, stores and transpositions of matrices of 8 × 8 elements of 16 bits by a warp. Each lane
//! gives the address of a row and holds a fragment of two elements.
//!
//! # Sources
//! - PTX ISA 9.4, *ldmatrix*, *stmatrix*, *movmatrix*: lane 8m + r gives the address of row r of
//!   matrix m. A group of four lanes loads or stores a row, the first group the first row, each
//!   lane one fragment. Transposed, a lane has two elements of one column. Rows are aligned to 16
//!   bytes.
//! - Memory Consistency Model: these accesses are weak. A lane makes the accesses of its fragment,
//!   at an address that another lane gave.
//!
//! # Where we differ
//! - Other shapes and types are refused. So are warps of fewer than 32 lanes, for which the page
//!   does not define the loaded values.

use super::copies::aligned;
use super::lanes::{LaneSet, taken};
use super::lower::{Emit, PtxArg, PtxInstr};
use super::needs::Need;
use super::operands::plus;
use super::table::{InstrRow, OperandRole, QualGroup, QualKind, ResultTy};
use program::{Access, BinOp, Expr, Op, RegId, Scope, Space, Tag, Tags, Ty};

const COUNT: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &["x1", "x2", "x4"],
};
const TRANSPOSED: QualGroup = QualGroup {
    kind: QualKind::Flag,
    words: &["trans"],
};
const SHARED: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &["shared", "shared::cta"],
};
const REST: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["aligned"],
};

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "ldmatrix",
        "`ldmatrix.sync.aligned.m8n8.{x1|x2|x4}{.trans}{.shared{::cta}}.b16 {d, …}, [a]`",
        "weak loads of fragments of matrices, at addresses of rows that other lanes give",
        &[COUNT, TRANSPOSED, SHARED, REST],
        &[OperandRole::Dsts, OperandRole::Addr],
        load,
    )
    .needs(&[Need::always((6, 5), 75)])
    .keyed(&["sync", "m8n8", "b16"])
    .result(ResultTy::U32),
    InstrRow::new(
        "stmatrix",
        "`stmatrix.sync.aligned.m8n8.{x1|x2|x4}{.trans}{.shared{::cta}}.b16 [a], {b, …}`",
        "weak stores of fragments of matrices, at addresses of rows that other lanes give",
        &[COUNT, TRANSPOSED, SHARED, REST],
        &[OperandRole::Addr, OperandRole::Vals],
        store,
    )
    .needs(&[Need::always((7, 8), 90)])
    .keyed(&["sync", "m8n8", "b16"]),
    InstrRow::new(
        "movmatrix",
        "`movmatrix.sync.aligned.m8n8.trans.b16 d, a`",
        "a matrix in the registers of a warp, transposed; orders no accesses",
        &[REST],
        &[OperandRole::Dst, OperandRole::Loose],
        transpose,
    )
    .needs(&[Need::always((7, 8), 75)])
    .keyed(&["sync", "m8n8", "trans", "b16"])
    .result(ResultTy::U32),
];

/// The lanes of a matrix instruction. Reports an error and returns `None` if the warp has fewer
/// than 32 lanes.
fn whole(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<LaneSet> {
    let of = e.env.seats.warp_size();
    if of != 32 {
        e.error(
            "unsupported-mask",
            c.opcode.clone(),
            "a matrix is distributed over a warp of 32 lanes",
            |d| d.label(format!("this one has {of}")),
        );
        return None;
    }
    Some(LaneSet::new(
        Scope::Warp,
        e.env.seats.warp(),
        Expr::Const(-1),
    ))
}

/// The addresses of this lane's fragment of each matrix, in parts, and the type of a part.
fn pieces(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    address: usize,
    registers: usize,
) -> Option<(Vec<Vec<Expr>>, Ty)> {
    // The type qualifier is not the type of the accesses.
    e.through_register = false;
    let count = match c.quals.get(QualKind::Op) {
        Some("x1") => 1,
        Some("x2") => 2,
        Some("x4") => 4,
        _ => 0,
    };
    if count != registers {
        e.error(
            "wrong-operand",
            c.opcode.clone(),
            "a register is needed for each matrix",
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
        return None;
    }
    if let Some(loc) = c.loc
        && e.symbols.object(loc).1.space != Space::Shared
    {
        e.error(
            "wrong-space",
            c.opcode.clone(),
            "the rows of a matrix are not in shared memory",
            |d| d.label("expected a location that is declared with `space = \"shared\"`"),
        );
        return None;
    }
    let lanes = whole(e, c)?;
    let lane = lanes.seat.rank;
    // The rows that contain elements of this lane, the first element's column in units of `ty`, and
    // the type of a part.
    let (rows, column, ty) = match c.quals.get(QualKind::Flag) {
        None => (vec![lane / 4], i64::from(lane % 4), Ty::U32),
        Some(_) => (
            vec![lane % 4 * 2, lane % 4 * 2 + 1],
            i64::from(lane / 4),
            HALF,
        ),
    };
    e.push(lanes.meet(aligned(c.expr(address), 16), Expr::Const(1)));
    let mut all = Vec::new();
    for matrix in 0..count as u32 {
        let mut own = Vec::new();
        for row in &rows {
            let lane = 8 * matrix + row;
            // The register must not be shared with exchanged values, which would then count as
            // addresses.
            let dst = e.temporary(c, &format!("row {lane}"), Ty::U64)?;
            e.push(Op::Take {
                dst,
                lane: lane as u8,
            });
            own.push(plus(Expr::Reg(dst), column, ty));
        }
        all.push(own);
    }
    Some((all, ty))
}

/// The type of one element.
const HALF: Ty = Ty {
    bits: 16,
    signed: false,
};

fn weak(ty: Ty) -> Access {
    Access {
        tags: Tags::of(&[Tag::Generic, Tag::Weak]),
        scope: None,
        ty,
    }
}

fn bin(op: BinOp, a: Expr, b: i64) -> Expr {
    Expr::Bin(op, Ty::U32, a.into(), Expr::Const(b).into())
}

/// Joins two elements into a register.
fn pair(low: Expr, high: Expr) -> Expr {
    Expr::Bin(
        BinOp::Or,
        Ty::U32,
        low.into(),
        bin(BinOp::Shl, high, 16).into(),
    )
}

fn load(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let registers: Vec<RegId> = c
        .elements(0)
        .iter()
        .filter_map(|arg| {
            if let PtxArg::Dst(dst) = arg {
                *dst
            } else {
                None
            }
        })
        .collect();
    let Some((matrices, ty)) = pieces(e, c, 1, registers.len()) else {
        return;
    };
    for (addresses, dst) in matrices.into_iter().zip(registers) {
        let mut halves = Vec::new();
        for (n, addr) in addresses.into_iter().enumerate() {
            let Some(half) = e.temporary(c, &format!("element {n}"), ty) else {
                return;
            };
            e.push(Op::Load {
                dst: half,
                addr,
                access: weak(ty),
            });
            halves.push(Expr::Reg(half));
        }
        let value = match halves.as_slice() {
            [low, high] => pair(
                Expr::Cast(Ty::U32, low.clone().into()),
                Expr::Cast(Ty::U32, high.clone().into()),
            ),
            all => all[0].clone(),
        };
        e.push(Op::Assign { dst, value });
    }
}

fn store(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let values: Vec<Expr> = c
        .elements(1)
        .iter()
        .filter_map(|arg| {
            if let PtxArg::Expr(value) = arg {
                Some(value.clone())
            } else {
                None
            }
        })
        .collect();
    let Some((matrices, ty)) = pieces(e, c, 0, values.len()) else {
        return;
    };
    for (addresses, value) in matrices.into_iter().zip(values) {
        for (addr, k) in addresses.into_iter().zip([0, 16]) {
            let value = e.fit(
                if k == 0 {
                    value.clone()
                } else {
                    bin(BinOp::Shr, value.clone(), k)
                },
                ty,
            );
            e.push(Op::Store {
                addr,
                value,
                access: weak(ty),
            });
        }
    }
}

/// Transposes a matrix: a lane takes the elements of one column from the lanes of two rows.
fn transpose(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let value = e.fit(c.expr(1), Ty::U32);
    let (Some(dst), Some(lanes)) = (c.dst(0), whole(e, c)) else {
        return;
    };
    let (row, column) = (lanes.seat.rank % 4 * 2, lanes.seat.rank / 4);
    e.push(lanes.meet(value, Expr::Const(1)));
    let mut halves = Vec::new();
    for row in [row, row + 1] {
        let Some(pair) = taken(e, c, 4 * row + column / 2, Ty::U32) else {
            return;
        };
        let half = bin(BinOp::Shr, Expr::Reg(pair), i64::from(column % 2 * 16));
        halves.push(bin(BinOp::And, half, 0xffff));
    }
    e.push(Op::Assign {
        dst,
        value: pair(halves[0].clone(), halves[1].clone()),
    });
}
