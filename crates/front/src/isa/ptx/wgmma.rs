//! Matrix instructions of a warpgroup whose operands are matrix descriptors or registers, and the
//! registers that they use until they are waited for.
//!
//! # Invariants
//! - The instruction reads exactly the bytes that its descriptors cover, through the async proxy.
//! - A register of an accumulator, or of a fragment of `A`, is *in use* from the instruction to the
//!   wait for its group. Another instruction that names it before that is misuse.
//! - Such a register is *fenced* if no other instruction named it since the last `wgmma.fence`. A
//!   matrix instruction that uses it otherwise is misuse.
//! - Two counters for each list of registers hold these states: the number of groups made since the
//!   instruction, plus one, and whether the list is fenced.
//!
//! # Sources
//! - PTX ISA 9.4, *wgmma.mma_async* (operands in shared memory, shapes, transposition).
//! - *wgmma.fence*: needed before the first matrix instruction, and between another access to its
//!   registers and the instruction. Accumulators of one shape need none between instructions.
//! - *wgmma.wait_group*: an access to the registers of an instruction without a wait for it is
//!   undefined.
//!
//! # Where we differ
//! - Products are values that are not worked out.
//! - In a CTA of at most 32 threads, each thread makes all reads of its warpgroup's instruction. A
//!   thread of the test may so represent a warpgroup.
//! - In a larger one, the first lane of each warp makes them, as one access to a tile. No race is
//!   lost. The instruction waits for all lanes of its warp (`.sync`), so earlier accesses of a lane
//!   come before the reads of its warp. Those of other warps need synchronisation. An access of
//!   another lane of the warp has no order with these reads unless something orders the lanes, and
//!   an access of the first lane has none with those of the other three warps.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::CodeItem;
use super::copies::{AsyncAccess, CopyEnd, one_address, one_type};
use super::descriptors::{CHUNK, DescriptorForm, Major, SharedMatrix};
use super::lower::{Emit, PtxArg, PtxInstr};
use super::needs::WARPGROUP;
use super::operands::plus;
use super::parse::{OperandKind, PtxOperand};
use super::table::{InstrRow, Matched, OperandRole, QualGroup, QualKind, ResultTy};
use program::{BinOp, CmpOp, Expr, LocId, Op, RegId, Space, Tag, Tags, Ty};

macro_rules! shapes {
    ($($n:literal)*) => {
        &[$(
            concat!("m64n", $n, "k8"),
            concat!("m64n", $n, "k16"),
            concat!("m64n", $n, "k32"),
            concat!("m64n", $n, "k256"),
        )*]
    };
}

/// The shapes, in any combination of columns and depth; the types decide the depth.
const SHAPES: QualGroup = QualGroup {
    kind: QualKind::Op,
    words: shapes!(8 16 24 32 40 48 56 64 72 80 88 96 104 112 120 128 136 144 152 160 168 176 184
        192 200 208 216 224 232 240 248 256),
};
const OTHERS: QualGroup = QualGroup {
    kind: QualKind::Ignored,
    words: &[
        "f16",
        "bf16",
        "tf32",
        "f32",
        "s32",
        "s8",
        "u8",
        "b1",
        "e4m3",
        "e5m2",
        "satfinite",
        "and",
        "popc",
    ],
};

pub(super) const ROWS: &[InstrRow] = &[InstrRow::new(
    "wgmma",
    "`wgmma.mma_async.sync.aligned.shape.type.type.type {d, …}, a-desc|{a, …}, b-desc, scale-d, …`",
    "begins to multiply matrices: reads those in shared memory through the async proxy, and uses \
     its registers until its group is waited for; the products are values that are not worked out",
    &[SHAPES, OTHERS],
    &[
        OperandRole::Dsts,
        OperandRole::Vals,
        OperandRole::Val,
        OperandRole::Any,
        OperandRole::Any,
        OperandRole::Any,
        OperandRole::Any,
        OperandRole::Any,
    ],
    multiply,
)
.needs(&[WARPGROUP])
.keyed(&["mma_async", "sync", "aligned"])
.result(ResultTy::U32)
.optional(4)];

/// The counters of one list of registers.
#[derive(Clone, Debug)]
pub(super) struct FragmentState {
    /// The names of its registers.
    names: Arc<BTreeSet<String>>,
    /// 0, or 1 more than the number of groups that the thread made since the instruction began.
    in_use: RegId,
    /// Whether no other instruction named a register since the last fence.
    fenced: RegId,
}

impl<'a> Emit<'a, '_> {
    /// Finds the lists of registers that matrix instructions of the thread use.
    pub(super) fn collect_fragments(&mut self) {
        let unit = self.unit;
        for item in &unit.items {
            let CodeItem::Instr(m) = item else { continue };
            if !m.is_product() {
                continue;
            }
            for list in m.raw.operands.iter().take(2) {
                let names = self.list(list);
                if names.is_empty() || self.fragments.iter().any(|other| *other.names == names) {
                    continue;
                }
                let n = self.fragments.len();
                let mut counter = |what: &str| {
                    let id = self.regs.intern(&format!("{what} {n}"))?;
                    self.regs.wrote(id, Ty::U32);
                    Some(id)
                };
                if let (Some(in_use), Some(fenced)) = (counter("in use"), counter("fenced")) {
                    self.fragments.push(FragmentState {
                        names: Arc::new(names),
                        in_use,
                        fenced,
                    });
                }
            }
        }
    }

    /// The names in a list of registers; empty for any other operand.
    fn list(&self, operand: &PtxOperand) -> BTreeSet<String> {
        let OperandKind::Vector(all) = &operand.kind else {
            return BTreeSet::new();
        };
        all.iter().filter_map(|one| self.name_of(one)).collect()
    }

    fn name_of(&self, operand: &PtxOperand) -> Option<String> {
        match &operand.kind {
            OperandKind::Name(name) => Some(self.str(&name.name).to_owned()),
            _ => None,
        }
    }

    /// The lists that share a register with an instruction, or with its predicate.
    fn touched(&self, m: &'a Matched) -> Vec<FragmentState> {
        if self.fragments.is_empty() {
            return Vec::new();
        }
        let mut names: Vec<&str> = Vec::new();
        let mut note = |operand: &'a PtxOperand| {
            if let OperandKind::Name(name) = &operand.kind {
                names.push(self.str(&name.name));
            }
        };
        for operand in &m.raw.operands {
            match &operand.kind {
                OperandKind::Vector(all) | OperandKind::Pair(all) => all.iter().for_each(&mut note),
                _ => note(operand),
            }
        }
        self.fragments
            .iter()
            .filter(|list| names.iter().any(|name| list.names.contains(*name)))
            .cloned()
            .collect()
    }

    /// Checks the registers of an instruction, before its own micro-ops.
    pub(super) fn check_fragments(&mut self, m: &'a Matched) {
        let touched = self.touched(m);
        if !m.is_product() {
            for list in touched {
                self.require(is_zero(list.in_use));
                self.set(list.fenced, Expr::Const(0));
            }
            return;
        }
        let own: Vec<BTreeSet<String>> = m
            .raw
            .operands
            .iter()
            .take(2)
            .map(|o| self.list(o))
            .collect();
        for list in touched {
            if own.contains(&*list.names) {
                self.require(Expr::Reg(list.fenced));
                self.set(list.in_use, Expr::Const(1));
            } else {
                self.require(is_zero(list.in_use));
            }
        }
    }

    /// Misuse, unless a condition holds.
    fn require(&mut self, holds: Expr) {
        let passed = self.here() + 3;
        self.jump(holds, passed);
        self.push(Op::fence(Tags::of(&[Tag::Misuse]), None));
        self.leave();
        self.checks += 2;
    }

    fn set(&mut self, dst: RegId, value: Expr) {
        self.push(Op::Assign { dst, value });
    }

    /// `wgmma.fence` orders all registers.
    pub(super) fn fence_fragments(&mut self) {
        for list in self.fragments.clone() {
            self.set(list.fenced, Expr::Const(1));
        }
    }

    /// `wgmma.commit_group`: one group more since each instruction.
    pub(super) fn commit_fragments(&mut self) {
        for list in self.fragments.clone() {
            let old = Expr::Reg(list.in_use);
            let next = Expr::Bin(
                BinOp::Add,
                Ty::U32,
                old.clone().into(),
                Expr::Const(1).into(),
            );
            let next = Expr::Select(old.into(), next.into(), Expr::Const(0).into());
            self.set(list.in_use, next);
        }
    }

    /// `wgmma.wait_group`: all but the latest groups are complete.
    pub(super) fn release_fragments(&mut self, pending: i64) {
        for list in self.fragments.clone() {
            let old = Expr::Reg(list.in_use);
            let most = Expr::Const(pending + 1);
            let later = Expr::Cmp(CmpOp::Le, Ty::U32, old.clone().into(), most.into());
            let left = Expr::Select(later.into(), old.into(), Expr::Const(0).into());
            self.set(list.in_use, left);
        }
    }
}

fn is_zero(reg: RegId) -> Expr {
    Expr::Cmp(
        CmpOp::Eq,
        Ty::U32,
        Expr::Reg(reg).into(),
        Expr::Const(0).into(),
    )
}

impl Matched {
    /// Whether an instruction has operands that are matrix descriptors.
    pub(super) fn takes_descriptors(&self) -> bool {
        self.is_product() || self.row.opcode == "tcgen05" && self.quals.contains("mma")
    }

    /// Whether an instruction is a product with its operands as PTX has them.
    pub(super) fn is_product(&self) -> bool {
        self.row.opcode == "wgmma"
            && self.quals.contains("sync")
            && self.quals.contains("mma_async")
    }
}

/// The form of a product.
struct Product {
    /// The number of columns of `B`.
    columns: i64,
    /// Elements of 16 bits, which descriptors may have transposed.
    half: bool,
    /// The number of registers of the accumulator.
    registers: i64,
    /// `A` is in registers.
    in_registers: bool,
}

/// The form that the qualifiers and operands give. Reports an error and returns `None` if PTX has
/// no such form.
fn product(e: &mut Emit<'_, '_>, c: &PtxInstr) -> Option<Product> {
    let types: Vec<&str> = c.quals.all(QualKind::Ignored).collect();
    let shape = c.quals.get(QualKind::Op).and_then(|shape| {
        let (columns, depth) = shape.strip_prefix("m64n")?.split_once('k')?;
        Some((columns.parse::<i64>().ok()?, depth))
    });
    let (depth, extra) = match types.get(1) {
        Some(&("f16" | "bf16")) => ("16", 5),
        Some(&"tf32") => ("8", 3),
        Some(&("e4m3" | "e5m2")) => ("32", 3),
        Some(&("s8" | "u8")) => ("32", 1),
        Some(&"b1") => ("256", 1),
        _ => ("", 0),
    };
    let in_registers = matches!(c.args.get(1), Some(PtxArg::Vector(_)));
    let half = depth == "16";
    let extra = extra - usize::from(half && in_registers);
    let given = shape.filter(|shape| shape.1 == depth && c.args.len() == 3 + extra);
    let Some((columns, _)) = given else {
        e.error(
            "conflicting-qualifiers",
            c.opcode.clone(),
            "there is no such form of `wgmma.mma_async`",
            |d| {
                d.label(format!(
                    "expected the form {}, with the depth and the operands of its \
                types",
                    c.row.syntax
                ))
            },
        );
        return None;
    };
    let registers = columns / if types[0] == "f16" { 4 } else { 2 };
    Some(Product {
        columns,
        half,
        registers,
        in_registers,
    })
}

fn multiply(e: &mut Emit<'_, '_>, c: &PtxInstr) {
    e.through_register = false;
    let Some(form) = product(e, c) else { return };
    let fragment = if form.in_registers { 4 } else { 1 };
    let given = (c.elements(0).len() as i64, c.elements(1).len());
    if given != (form.registers, fragment) {
        let message = format!(
            "this shape has {} registers in each thread for the accumulator, and 4 for `A`",
            form.registers
        );
        e.error("wrong-operands", c.opcode.clone(), message, |d| {
            d.label(format!("{} given", given.0))
        });
        return;
    }
    // The agents of the executor take what follows the first read.
    for arg in c.elements(0) {
        if let PtxArg::Dst(Some(dst)) = arg {
            e.push(Op::Assign {
                dst: *dst,
                value: Expr::unknown(Ty::U32),
            });
        }
    }
    let major = |e: &mut Emit<'_, '_>, at: usize| match c.given(at).filter(|_| form.half) {
        None | Some(Expr::Const(0)) => Some(Major::K),
        Some(Expr::Const(1)) => Some(Major::Outer),
        Some(_) => {
            let message = "the transposition of a matrix is 0 or 1";
            e.error("wrong-operand", c.opcode.clone(), message, |d| {
                d.label(format!("operand {}", at + 1))
            });
            None
        }
    };
    let last = c.args.len() - 1;
    if !form.in_registers {
        let Some(major) = major(e, last - 1) else {
            return;
        };
        if read(e, c, 1, 64, major).is_none() {
            return;
        }
    }
    let Some(major) = major(e, last) else { return };
    // A descriptor that is not known is reported there.
    let _ = read(e, c, 2, form.columns, major);
}

/// The number of bytes of an object.
fn length(e: &Emit<'_, '_>, object: LocId) -> i64 {
    match &e.symbols.object(object).1 {
        declared if declared.record.is_some() => {
            e.symbols.layout(object).bytes(declared.init.len()) as i64
        }
        _ => e.symbols.count(object) as i64 * i64::from(e.symbols.ty(object).bytes()),
    }
}

/// An instruction that reads matrices in shared memory.
pub(super) struct MatrixReader {
    /// The tag of the reads.
    tag: Tag,
    /// The form of its descriptors.
    form: DescriptorForm,
    /// Whether its warp executes it together, so that one lane reads for all.
    of_warp: bool,
}

impl MatrixReader {
    const WARPGROUP: MatrixReader = MatrixReader {
        tag: Tag::Wgmma,
        form: DescriptorForm::Warpgroup,
        of_warp: true,
    };
    /// `tcgen05.mma`, which one thread executes.
    pub(super) const TENSOR_CORE: MatrixReader = MatrixReader {
        tag: Tag::TensorCore,
        form: DescriptorForm::TensorCore,
        of_warp: false,
    };
}

fn read(e: &mut Emit<'_, '_>, c: &PtxInstr, at: usize, outer: i64, major: Major) -> Option<()> {
    read_matrix(e, c, at, outer, major, &MatrixReader::WARPGROUP)
}

/// Emits the reads of a matrix in shared memory.
pub(super) fn read_matrix(
    e: &mut Emit<'_, '_>,
    c: &PtxInstr,
    at: usize,
    outer: i64,
    major: Major,
    reader: &MatrixReader,
) -> Option<()> {
    let matrix = SharedMatrix::read(e, c, at, reader.form)?;
    let end = CopyEnd::Of(matrix.object);
    one_address(e, c, end)?;
    let (_, object) = e.symbols.object(matrix.object);
    let symbol = e.symbols.get(matrix.object);
    let (name, place, space) = (symbol.name.clone(), symbol.span, object.space);
    // Accesses decide the types of an array of bytes.
    let ty = if object.cut || object.fields.is_some() {
        Ty::U64
    } else {
        one_type(e, c, end, end)?
    };
    if space != Space::Shared {
        let message = format!("a matrix descriptor of `{name}`, which is not in shared memory");
        e.error("wrong-space", c.opcode.clone(), message, |d| {
            d.label("expected a location in shared memory")
                .also(place, "declared here")
        });
        return None;
    }
    let bytes = length(e, matrix.object);
    if reader.of_warp && e.has_tiles() && !e.env.seats.leads_warp() {
        // The first lane reads for its warp.
        return Some(());
    }
    let addresses = matrix.addresses(e, c, outer, major)?;
    let last = addresses.iter().filter_map(|(_, at)| *at).max();
    if let Some(end) = last.map(|at| at + CHUNK).filter(|end| *end > bytes) {
        let message = format!("this matrix ends at byte {end} of `{name}`, which has {bytes}");
        e.error("out-of-bounds", c.opcode.clone(), message, |d| {
            d.label(format!("the descriptor of operand {}", at + 1))
                .also(place, "declared here")
        });
        return None;
    }
    let mut access = AsyncAccess::weak(Tag::AsyncProxy).source(ty);
    access.tags.insert(reader.tag);
    let dst = e.temporary(c, "matrix operand", ty)?;
    if e.has_tiles() {
        let (addr, tile) = matrix.tile(outer, major)?;
        e.push_tile(Op::Load { dst, addr, access }, tile);
        return Some(());
    }
    let parts = CHUNK / i64::from(ty.bytes());
    for (chunk, _) in addresses {
        for part in 0..parts {
            e.push(Op::Load {
                dst,
                addr: plus(chunk.clone(), part, ty),
                access: access.clone(),
            });
        }
    }
    Some(())
}
