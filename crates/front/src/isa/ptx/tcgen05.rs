//! Instructions of tensor memory and of the tensor cores that work on it.
//!
//! # Invariants
//! - An access to tensor memory is a mark: the number in its operand says where, and its
//!   [`TensorPart`] how much. No value of tensor memory is worked out.
//! - `mma` reads matrices in shared memory through the async proxy. `commit` arrives at an mbarrier
//!   object when these reads, and the accesses to tensor memory, are complete.
//! - The first lane of a warp performs `ld`, `st`, `alloc` and `dealloc` for its warp.
//! - [`place_columns`] gives every `alloc` in the text columns of its own.
//!
//! # Sources
//! - PTX ISA 9.4, *Tensor Memory* (Addressing, Allocation, Access restrictions), *Data Movement
//!   Shape*, *Matrix Descriptors*, *Instruction descriptor*, and the pages of `tcgen05.alloc`,
//!   `.ld`, `.st`, `.wait`, `.mma`, `.commit`, `.fence`.
//! - *Register dependencies, same thread*: a use of a register that `ld` writes needs no wait.
//!
//! # Where we differ
//! - Columns of the first `alloc` in the text come first, and each `alloc` has others. The hardware
//!   may give any, and waits until there are enough.
//! - Lanes that a mask disables count as written, and operands that a collector buffer holds as
//!   read. An accumulator of 16 bits takes a column for each element.
//! - An `alloc` behind `relinquish_alloc_permit`, and columns that a kernel keeps, are not found.
//! - Pairs of CTAs, sparse matrices, scale vectors, `.ws`, `cp`, `shift` and `ld.red` are refused.

use super::descriptors::Major;
use super::lower::{Emit, PtxArg, PtxInstr};
use super::mbarrier;
use super::needs::{Need, TargetFeatures, WITH_TENSOR_MEMORY};
use super::table::{InstrRow, OperandRole, QualGroup, QualKind, ResultTy};
use super::wgmma::{MatrixReader, read_matrix};
use diag::{Sink, Span};
use program::{
    Access, COLUMNS, EventKind, Expr, InstrId, Mark, Op, Program, Tag, Tags, TensorPart, Ty,
};

const NEEDS: &[Need] =
    &[Need::always((8, 6), 100).only(TargetFeatures::Family, WITH_TENSOR_MEMORY)];
const CTAS: QualGroup = QualGroup {
    kind: QualKind::Sem,
    words: &["cta_group::1"],
};
const ALIGNED: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["sync", "aligned"],
};
const SHARED: QualGroup = QualGroup {
    kind: QualKind::Space,
    words: &["shared::cta"],
};
const B32: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &["b32"],
};
const SHAPES: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &["32x32b", "16x64b", "16x128b", "16x256b", SPLIT],
};
/// The shape with two ranges of columns.
const SPLIT: &str = "16x32bx2";
const TIMES: QualGroup = QualGroup {
    kind: QualKind::Round,
    words: &["x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"],
};
const KINDS: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: &[HALF, "kind::tf32", "kind::f8f6f4", "kind::i8"],
};
/// The kind of matrices with elements of 16 bits.
const HALF: &str = "kind::f16";
const COLLECTORS: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &[
        "collector::a::fill",
        "collector::a::use",
        "collector::a::lastuse",
        "collector::a::discard",
    ],
};
const ARRIVES: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &["mbarrier::arrive::one", "shared::cluster"],
};
const B64: QualGroup = QualGroup {
    kind: QualKind::Type,
    words: &["b64"],
};

pub(super) const ROWS: &[InstrRow] = &[
    InstrRow::new(
        "tcgen05",
        "`tcgen05.alloc.cta_group::1.sync.aligned{.shared::cta}.b32 [a], columns`",
        "allocates columns of tensor memory, and stores the address of the first one",
        &[CTAS, ALIGNED, SHARED, B32],
        &[OperandRole::Addr, OperandRole::Loose],
        allocate,
    )
    .needs(NEEDS)
    .keyed(&["alloc"]),
    InstrRow::new(
        "tcgen05",
        "`tcgen05.dealloc.cta_group::1.sync.aligned.b32 t, columns`",
        "deallocates columns of tensor memory",
        &[CTAS, ALIGNED, B32],
        &[OperandRole::Loose, OperandRole::Loose],
        |e, c| {
            let Some(columns) = columns(e, c) else { return };
            if leads(e, c) {
                let part = TensorPart::columns(columns);
                access(e, Tag::TensorFree, c.expr(0), part);
            }
        },
    )
    .needs(NEEDS)
    .keyed(&["dealloc"]),
    InstrRow::new(
        "tcgen05",
        "`tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned`",
        "gives up the right to allocate; does nothing here",
        &[CTAS, ALIGNED],
        &[],
        |_, _| {},
    )
    .needs(NEEDS)
    .keyed(&["relinquish_alloc_permit"]),
    InstrRow::new(
        "tcgen05",
        "`tcgen05.ld.sync.aligned.shape.num.b32 {r, …}, [t]{, distance}`",
        "begins to read the lanes of its warp in tensor memory; the values are not worked out",
        &[SHAPES, TIMES, ALIGNED, B32],
        &[OperandRole::Dsts, OperandRole::Tensor, OperandRole::Loose],
        load,
    )
    .needs(NEEDS)
    .keyed(&["ld"])
    .result(ResultTy::U32)
    .optional(1),
    InstrRow::new(
        "tcgen05",
        "`tcgen05.st.sync.aligned.shape.num.b32 [t]{, distance}, {r, …}`",
        "begins to write the lanes of its warp in tensor memory",
        &[SHAPES, TIMES, ALIGNED, B32],
        &[OperandRole::Tensor, OperandRole::Vals, OperandRole::Vals],
        store,
    )
    .needs(NEEDS)
    .keyed(&["st"])
    .optional(1),
    InstrRow::new(
        "tcgen05",
        "`tcgen05.wait::ld.sync.aligned`",
        "waits until all `tcgen05.ld` of the thread are complete",
        &[ALIGNED],
        &[],
        |e, _| marked(e, Tag::TensorWaitLoad),
    )
    .needs(NEEDS)
    .keyed(&["wait::ld"]),
    InstrRow::new(
        "tcgen05",
        "`tcgen05.wait::st.sync.aligned`",
        "waits until all `tcgen05.st` of the thread are complete",
        &[ALIGNED],
        &[],
        |e, _| marked(e, Tag::TensorWaitStore),
    )
    .needs(NEEDS)
    .keyed(&["wait::st"]),
    InstrRow::new(
        "tcgen05",
        "`tcgen05.mma.cta_group::1.kind{.collector::a::…} [t], a-desc|[a], b-desc, i-desc\
         {, {mask, …}}, p{, scale}`",
        "begins to multiply matrices: reads those in shared memory through the async proxy, and \
        reads and writes its accumulator in tensor memory",
        &[CTAS, KINDS, COLLECTORS],
        &[
            OperandRole::Tensor,
            OperandRole::Matrix,
            OperandRole::Any,
            OperandRole::Any,
            OperandRole::Vals,
            OperandRole::Any,
            OperandRole::Any,
        ],
        multiply,
    )
    .needs(NEEDS)
    .keyed(&["mma"])
    .result(ResultTy::U32)
    .optional(2),
    InstrRow::new(
        "tcgen05",
        "`tcgen05.commit.cta_group::1.mbarrier::arrive::one{.shared::cluster}.b64 [a]`",
        "arrives at an mbarrier object when all `tcgen05.mma` of the thread so far are complete",
        &[CTAS, ARRIVES, B64],
        &[OperandRole::Addr],
        mbarrier::commit,
    )
    .needs(NEEDS)
    .keyed(&["commit"]),
    InstrRow::new(
        "tcgen05",
        "`tcgen05.fence::before_thread_sync`",
        "orders earlier operations on tensor memory before later ones of other threads",
        &[],
        &[],
        |e, _| marked(e, Tag::TensorBefore),
    )
    .needs(NEEDS)
    .keyed(&["fence::before_thread_sync"]),
    InstrRow::new(
        "tcgen05",
        "`tcgen05.fence::after_thread_sync`",
        "orders later operations on tensor memory after earlier ones of other threads",
        &[],
        &[],
        |e, _| marked(e, Tag::TensorAfter),
    )
    .needs(NEEDS)
    .keyed(&["fence::after_thread_sync"]),
];

/// A mark of tensor memory.
fn mark(tag: Tag, address: Option<Expr>, tensor: Option<TensorPart>) -> Op {
    Op::Mark {
        addr: address,
        mark: Mark {
            kind: EventKind::Fence,
            tags: Tags::of(&[tag]),
            scope: None,
            pending: None,
            tensor,
        },
    }
}

fn marked(e: &mut Emit<'_, '_>, tag: Tag) {
    e.push(mark(tag, None, None));
}

/// Emits an access to tensor memory.
fn access(e: &mut Emit<'_, '_>, tag: Tag, address: Expr, part: TensorPart) {
    e.push(mark(tag, Some(address), Some(part)));
}

/// Whether the thread performs an instruction of its warp. Reports an error if a small CTA has a
/// warp of several threads.
fn leads(e: &mut Emit<'_, '_>, c: &PtxInstr) -> bool {
    if !e.has_tiles() && e.env.seats.warp_size() > 1 {
        let message = "tensor memory in a warp of several threads needs a CTA of more than 32";
        e.error("unsupported-instruction", c.opcode.clone(), message, |d| {
            d.label("one thread performs this for its warp")
                .help("give each thread of the test its own `warp`")
        });
        return false;
    }
    e.env.seats.leads_warp()
}

/// The number of columns in operand 1. Reports an error and returns `None` for any other operand.
fn columns(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<u16> {
    if let Expr::Const(n) = c.expr(1)
        && (32..=COLUMNS).contains(&n)
        && n & (n - 1) == 0
    {
        return Some(n as u16);
    }
    e.error(
        "wrong-operand",
        c.opcode.clone(),
        "this is no number of columns of tensor memory",
        |d| d.label("expected a constant: 32, 64, 128, 256 or 512"),
    );
    None
}

fn allocate(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some(columns) = columns(e, c) else { return };
    if !leads(e, c) {
        return;
    }
    // `place_columns` fills in the numbers.
    let part = TensorPart::columns(columns);
    access(e, Tag::TensorAlloc, Expr::Const(0), part);
    e.push(Op::Store {
        addr: c.expr(0),
        value: Expr::Const(0),
        access: Access {
            tags: Tags::of(&[Tag::Generic, Tag::Weak]),
            scope: None,
            ty: Ty::U32,
        },
    });
}

/// The shape of `ld` and `st`: the part of tensor memory, and the registers of a thread. Reports an
/// error and returns `None` if there is no such form.
fn shape(e: &mut Emit<'_, '_>, c: &PtxInstr, apart: Option<Expr>) -> Option<(TensorPart, usize)> {
    let shape = c.quals.get(QualKind::Op);
    let times = c
        .quals
        .get(QualKind::Round)
        .and_then(|x| x[1..].parse().ok());
    let (Some(shape), Some(times)) = (shape, times) else {
        e.error(
            "missing-qualifier",
            c.opcode.clone(),
            "this needs a shape and a number of repetitions",
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
        return None;
    };
    let (groups, columns, registers): (u8, u16, usize) = match shape {
        "32x32b" => (0b11, 1, 1),
        "16x64b" => (0b1, 2, 1),
        "16x128b" => (0b1, 4, 2),
        "16x256b" => (0b1, 8, 4),
        _ => (0b1, 1, 1),
    };
    let times: u16 = times;
    let again = match (shape, apart) {
        (SPLIT, Some(Expr::Const(by))) if (0..COLUMNS).contains(&by) => Some(by as u16),
        (SPLIT, _) => {
            let message = "this shape needs the distance to its second half";
            e.error("wrong-operand", c.opcode.clone(), message, |d| {
                d.label(format!("expected a constant from 0 to {}", COLUMNS - 1))
            });
            return None;
        }
        (_, Some(_)) => {
            let message = format!("the shape `{shape}` has one half");
            e.error("wrong-operands", c.opcode.clone(), message, |d| {
                d.label(format!("expected a distance with `{SPLIT}` alone"))
            });
            return None;
        }
        (_, None) => None,
    };
    let part = TensorPart {
        groups,
        columns: columns * times,
        again,
        form: 0,
    };
    Some((part, registers * usize::from(times)))
}

/// Reports a list of registers of another length.
fn has_registers(e: &mut Emit<'_, '_>, c: &PtxInstr, at: usize, registers: usize) -> bool {
    let given = c.elements(at).len();
    if given != registers {
        let message = format!("this shape has {registers} registers in each thread");
        e.error("wrong-operands", c.opcode.clone(), message, |d| {
            d.label(format!("{given} given"))
        });
    }
    given == registers
}

fn load(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let Some((part, registers)) = shape(e, c, c.given(2)) else {
        return;
    };
    if !has_registers(e, c, 0, registers) {
        return;
    }
    if leads(e, c) {
        access(e, Tag::TensorLoad, c.expr(1), part);
    }
    for arg in c.elements(0) {
        if let PtxArg::Dst(Some(dst)) = arg {
            e.push(Op::Assign {
                dst: *dst,
                value: Expr::unknown(Ty::U32),
            });
        }
    }
}

fn store(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    let apart = c.args.get(2).and_then(|_| c.given(1));
    let values = if apart.is_some() { 2 } else { 1 };
    let Some((part, registers)) = shape(e, c, apart) else {
        return;
    };
    if has_registers(e, c, values, registers) && leads(e, c) {
        access(e, Tag::TensorStore, c.expr(0), part);
    }
}

/// The fields of an instruction descriptor.
struct ProductForm {
    rows: i64,
    columns: i64,
    /// Whether each matrix is transposed.
    transposed: [bool; 2],
    form: u64,
}

/// Reads operand 3. Reports an error and returns `None` if it is not known, or not supported.
fn product(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<ProductForm> {
    let mut kinds = KINDS.words.iter();
    let kind = c.quals.get(QualKind::Op);
    let Some(kind) = kinds.position(|word| Some(*word) == kind).zip(kind) else {
        e.error(
            "missing-qualifier",
            c.opcode.clone(),
            "a product needs its kind",
            |d| d.label(format!("expected the form {}", c.row.syntax)),
        );
        return None;
    };
    let Expr::Const(bits) = c.expr(3) else {
        let message = "the instruction descriptor of this product is not known here";
        e.error("unsupported-descriptor", c.opcode.clone(), message, |d| {
            d.label("operand 4").help("compute it from constants")
        });
        return None;
    };
    let field = |at: u32, length: u32| bits >> at & ((1 << length) - 1);
    let (rows, columns) = (field(24, 5) * 16, field(17, 6) * 8);
    let transposed = [15, 16].map(|at| field(at, 1) == 1);
    let wrong = match () {
        () if field(2, 1) == 1 => "a product with a sparse matrix is not supported",
        () if ![64, 128].contains(&rows) => "a product has 64 or 128 rows",
        () if columns == 0 || columns > 256 || rows == 128 && columns % 16 != 0 => {
            "a product has 8 to 256 columns, and with 128 rows a multiple of 16"
        }
        () if transposed.contains(&true) && kind.1 != HALF => {
            "a transposed matrix of elements with other than 16 bits is not supported"
        }
        () => {
            return Some(ProductForm {
                rows,
                columns,
                transposed,
                form: (rows << 16 | columns << 4 | kind.0 as i64) as u64,
            });
        }
    };
    e.error("unsupported-descriptor", c.opcode.clone(), wrong, |d| {
        d.label(format!("operand 4 is {bits:#x}"))
    });
    None
}

/// The bytes of a row of `A` or `B` in one product.
const DEPTH: u16 = 32;

fn multiply(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    e.ask();
    let Some(form) = product(e, c) else { return };
    // Of 64 rows, each warp has 16.
    let groups = if form.rows == 128 {
        u8::MAX
    } else {
        0b0101_0101
    };
    let major = |at: usize| match form.transposed[at] {
        true => Major::Outer,
        false => Major::K,
    };
    let reader = MatrixReader::TENSOR_CORE;
    // The agents of the executor take what follows the first read.
    let part = TensorPart {
        groups,
        columns: form.columns as u16,
        again: None,
        form: form.form,
    };
    access(e, Tag::TensorMultiply, c.expr(0), part);
    let operand = match c.args.get(1) {
        Some(PtxArg::Vector(address)) => match address.as_slice() {
            [PtxArg::Expr(address)] => Some(address.clone()),
            _ => None,
        },
        _ => None,
    };
    if let Some(address) = operand {
        let part = TensorPart {
            groups,
            columns: DEPTH / 4,
            again: None,
            form: 0,
        };
        access(e, Tag::TensorOperand, address, part);
    } else if read_matrix(e, c, 1, form.rows, major(0), &reader).is_none() {
        return;
    }
    // A descriptor that is not known is reported there.
    let _ = read_matrix(e, c, 2, form.columns, major(1), &reader);
}

/// Gives each `alloc` in the text its columns, in the order of the text.
pub fn place_columns(program: &mut Program, sink: &mut Sink) {
    let mut sites: Vec<(Span, i64)> = Vec::new();
    for thread in &program.threads {
        for instr in thread.code.iter().filter(|i| i.op.has(Tag::TensorAlloc)) {
            let part = instr.op.mark(EventKind::Fence).and_then(|m| m.tensor);
            let columns = part.map_or(0, |part| i64::from(part.columns));
            if !sites.iter().any(|site| site.0 == instr.span) {
                sites.push((instr.span, columns));
            }
        }
    }
    sites.sort_by_key(|site| site.0.start);
    let mut next = 0;
    let mut first: Vec<(Span, i64)> = Vec::new();
    for (span, columns) in sites {
        first.push((span, next));
        next += columns;
        if next > COLUMNS {
            let message = format!("the text allocates {next} columns up to here");
            sink.error("out-of-range", span, message, |d| {
                d.label(format!("tensor memory has {COLUMNS}"))
                    .note("each `tcgen05.alloc` of the text has columns of its own here")
            });
            return;
        }
    }
    for thread in &mut program.threads {
        let mut latest: Option<(InstrId, i64)> = None;
        for instr in &mut thread.code {
            let site = first.iter().find(|site| site.0 == instr.span);
            let Some((_, column)) = site else { continue };
            match &mut instr.op {
                Op::Mark { addr, mark } if mark.tags.has(Tag::TensorAlloc) => {
                    *addr = Some(Expr::Const(*column));
                    latest = Some((instr.id, *column));
                }
                Op::Store { value, .. } if latest == Some((instr.id, *column)) => {
                    *value = Expr::Const(*column);
                }
                _ => {}
            }
        }
    }
}
