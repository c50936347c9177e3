//! Lowers PTX text between the statements of a C-like thread.
//!
//! # Invariants
//! - The registers of operands are those of the thread. All others are new, so two texts share
//!   none.
//! - An access of a statement has the size of the object that its pointer operand points to.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::groups::{CLUSTER_BARRIER, WORK_GROUP_BARRIER};
use super::inline_asm::{AsmOperand, How};
use super::lower::Lowering;
use super::types::Value;
use crate::isa::ptx;
use diag::{MappedText, Span};
use program::{
    AsmInstr, Barrier, BarrierNaming, BinOp, Expr, Instr, InstrId, Op, RegId, Scope, Tag, Tags, Ty,
};

/// PTX's names for the position of a thread, and the CUDA C++ equivalents.
const SPECIALS: &[(&str, &str)] = &[
    ("%tid.x", "threadIdx.x"),
    ("%tid.y", "threadIdx.y"),
    ("%tid.z", "threadIdx.z"),
    ("%ctaid.x", "blockIdx.x"),
    ("%ctaid.y", "blockIdx.y"),
    ("%ctaid.z", "blockIdx.z"),
    ("%ntid.x", "blockDim.x"),
    ("%ntid.y", "blockDim.y"),
    ("%ntid.z", "blockDim.z"),
    ("%nctaid.x", "gridDim.x"),
    ("%nctaid.y", "gridDim.y"),
    ("%nctaid.z", "gridDim.z"),
];

/// A form of PTX that tests in C-like code cannot have: the message, the label, the rest.
struct RefusedForm {
    message: &'static str,
    label: &'static str,
    note: Option<&'static str>,
    help: Option<&'static str>,
}

const NON_COHERENT: RefusedForm = RefusedForm {
    message: "non-coherent loads are not supported in assembly",
    label: "expected a load without `.nc`",
    note: Some("only tests in PTX can show that no thread writes the memory that it reads"),
    help: None,
};

const SPACE_QUERY: RefusedForm = RefusedForm {
    message: "queries of state spaces are not supported in assembly",
    label: "expected no `isspacep`",
    note: Some("which objects an address can be of is known in tests in PTX alone"),
    help: None,
};

const EXIT: RefusedForm = RefusedForm {
    message: "ending the thread is not supported in assembly",
    label: "expected no `exit` and no `ret`",
    note: None,
    help: Some("write `return;`"),
};

/// The place of PTX text in a thread, while its instructions are added.
struct SplicePoint<'a> {
    /// The register of the thread for each register of the text.
    regs: Vec<RegId>,
    /// The types that registers point to.
    points: HashMap<RegId, Ty>,
    /// The index of the first micro-op, and the number of them.
    start: usize,
    len: usize,
    /// The highest number of an instruction before the text.
    last: u32,
    /// Spans of operations of several micro-ops. They tell one operation from the next.
    of_several: HashSet<Span>,
    /// Whether the last micro-op is undefined behaviour.
    undefined: bool,
    range: &'a Range<usize>,
    how: &'a How,
}

impl Lowering<'_, '_> {
    /// Lowers PTX text with operands, between the statements of a thread.
    pub(super) fn lower_ptx(
        &mut self,
        text: MappedText,
        given: Vec<AsmOperand>,
        range: &Range<usize>,
        how: &How,
    ) -> Option<()> {
        let before = self.sink.errors();
        let env = self.ptx_env(&given);
        let lowered = ptx::PtxCode::parse(text, self.sink).lower(&env, self.symbols, self.sink);
        if self.sink.errors() > before || !self.may_be_spliced(&lowered, &given, range, how) {
            return None;
        }
        self.warn_of_movable(&lowered.code, range, how);
        // Each instruction of the assembly text is one of the thread.
        let last = self.last.0;
        self.last.0 += lowered.code.iter().map(|i| i.id.0).max().unwrap_or(0);
        // Asynchronous operations, and operations on objects, consist of several micro-ops.
        fn is_of_several(i: &&Instr) -> bool {
            i.op.has(Tag::Asynchronous) || i.op.has(Tag::Mbarrier)
        }
        let mut splice = SplicePoint {
            regs: self.registers_for(&lowered, &given),
            points: targets(&given),
            start: self.code.len(),
            len: lowered.code.len(),
            last,
            of_several: lowered
                .code
                .iter()
                .filter(is_of_several)
                .map(|i| i.span)
                .collect(),
            undefined: false,
            range,
            how,
        };
        for instr in lowered.code {
            self.add_ptx(instr, &mut splice)?;
        }
        for value in given {
            if let AsmOperand::Register {
                reg,
                ty,
                place: Some(place),
                ..
            } = value
            {
                let value = Value::of(Expr::Reg(reg), ty).converted(&place.of().ty).expr;
                self.write(&place, value);
            }
        }
        Some(())
    }

    /// The masks of lanes beside the thread's own (PTX ISA, *Special Registers*).
    fn lane_masks(&self) -> [(String, i64); 5] {
        let own = 1i64 << (self.env.warp.rank % 32);
        let all = i64::from(u32::MAX);
        [
            ("eq", own),
            ("lt", own - 1),
            ("le", own * 2 - 1),
            ("gt", all & !(own * 2 - 1)),
            ("ge", all & !(own - 1)),
        ]
        .map(|(word, mask)| (format!("%lanemask_{word}"), mask))
    }

    /// What PTX text sees of the thread around it.
    fn ptx_env(&self, given: &[AsmOperand]) -> ptx::PtxEnv {
        let lane = ("%laneid".to_string(), i64::from(self.env.warp.rank));
        let specials = SPECIALS.iter().filter_map(|(ptx, cuda)| {
            let value = self.env.specials.iter().find(|s| s.0 == *cuda)?.1;
            Some((ptx.to_string(), value))
        });
        let regs = given.iter().filter_map(|g| match g {
            AsmOperand::Register {
                name,
                known: Some(init),
                ..
            } => Some(ptx::RegInit {
                name: name.clone(),
                init: init.clone(),
                span: Span::default(),
            }),
            _ => None,
        });
        let operands = given
            .iter()
            .filter(|g| matches!(g, AsmOperand::Register { .. }))
            .map(AsmOperand::word);
        ptx::PtxEnv {
            strict: true,
            seats: ptx::Seats::new(self.env.warp, self.env.block),
            cluster: self.env.cluster.clone(),
            specials: specials
                .chain([lane])
                .chain(self.lane_masks())
                .map(|(name, value)| (name, Expr::Const(value)))
                .collect(),
            regs: regs.collect(),
            operands: operands.collect(),
            nameless: true,
            ..ptx::PtxEnv::default()
        }
    }

    /// Whether C-like code can contain this PTX code. Reports an error if not.
    fn may_be_spliced(
        &mut self,
        lowered: &ptx::LoweredThread,
        given: &[AsmOperand],
        range: &Range<usize>,
        how: &How,
    ) -> bool {
        let code = &lowered.code;
        let refused = if code.iter().any(ptx::is_non_coherent) {
            Some(NON_COHERENT)
        } else if code.iter().any(|instr| ptx::asks_space(instr).is_some()) {
            Some(SPACE_QUERY)
        } else if lowered.leaves {
            Some(EXIT)
        } else {
            None
        };
        if let Some(form) = refused {
            self.error("unsupported", range, form.message, |d| {
                let d = d.label(form.label);
                let d = form.note.into_iter().fold(d, |d, note| d.note(note));
                form.help.into_iter().fold(d, |d, help| d.help(help))
            });
            return false;
        }
        if matches!(how, How::Statement { .. }) && writes_input(lowered, given) {
            self.error(
                "written-input",
                range,
                "the assembly writes an operand that is an input",
                |d| {
                    d.label("expected it among the outputs, as in `: \"+r\"(x)`")
                        .note("the compiler takes an input for unchanged (GCC, Extended Asm)")
                },
            );
            return false;
        }
        if !lowered.untyped().is_empty() {
            self.error(
                "missing-type",
                range,
                "an access of assembly names its type",
                |d| d.label("expected a type such as `.u32` or `.b32`"),
            );
            return false;
        }
        true
    }

    /// Warns about a statement with accesses that a compiler may move.
    fn warn_of_movable(&mut self, code: &[Instr], range: &Range<usize>, how: &How) {
        let acts = code
            .iter()
            .any(|i| i.op.is_ptx() || matches!(i.op, Op::Barrier(_)));
        let lacks = match *how {
            How::Statement {
                volatile: false, ..
            } => "without `volatile`",
            How::Statement { memory: false, .. } => "without `\"memory\"`",
            _ => return,
        };
        if !acts {
            return;
        }
        let span = self.unit.text.span(range.clone());
        let message = format!("an assembly statement {lacks} may be moved");
        self.sink.warn("movable-assembly", span, message, |d| {
            d.label("here it stays where it is")
                .help("write `asm volatile(\"…\" : … : … : \"memory\")`")
                .note(
                    "a compiler may move accesses to memory across it (Inline PTX Assembly in \
                    CUDA, Incorrect Optimization)",
                )
        });
    }

    /// The register of the thread for each register of the text.
    fn registers_for(&mut self, lowered: &ptx::LoweredThread, given: &[AsmOperand]) -> Vec<RegId> {
        let mut regs = Vec::new();
        for reg in &lowered.regs {
            let of_operand = given.iter().find_map(|g| match g {
                AsmOperand::Register { reg: id, name, .. } if *name == reg.name => Some(*id),
                _ => None,
            });
            regs.push(match of_operand {
                Some(id) => id,
                // The elected lane of a mask remains the same, so its register lasts.
                None if reg.name.starts_with(ptx::ELECTED) => self.hidden(&reg.name, reg.ty),
                None => self.temporary(reg.ty),
            });
        }
        regs
    }

    /// Adds a micro-op of the text to the thread. `None`: this function reported an error.
    fn add_ptx(&mut self, mut instr: Instr, splice: &mut SplicePoint<'_>) -> Option<()> {
        let place = Some(instr.span).filter(|span| splice.of_several.contains(span));
        let id = InstrId(splice.last + instr.id.0);
        let assembly = instr.assembly.take();
        // After undefined behaviour, the thread ends. If it belongs to an asynchronous operation,
        // the thread continues.
        let end = splice.len;
        let leaves =
            matches!(&instr.op, Op::Branch { cond: Expr::Const(1), target } if *target == end);
        if std::mem::replace(&mut splice.undefined, instr.op.has(Tag::Misuse)) && leaves {
            self.leave();
            self.placed(id, place, assembly);
            return Some(());
        }
        splice.relocate(&mut instr.op);
        match instr.op {
            Op::Barrier(barrier) => self.add_barrier(barrier, splice),
            op => {
                let fits = match splice.how {
                    How::Statement { .. } => self.sized(&op, &mut splice.points, splice.range),
                    How::Library(of) => self.moves(&op, *of, splice.range),
                };
                if !fits {
                    return None;
                }
                let at = self.push(op);
                self.code[at].element = instr.element;
                self.placed(id, place, assembly);
                Some(())
            }
        }
    }

    fn add_barrier(&mut self, barrier: Barrier, splice: &SplicePoint<'_>) -> Option<()> {
        match (barrier.domain, splice.how) {
            (Scope::Cta, _) => self.named_barrier(barrier),
            (Scope::Cluster, How::Library(_)) => self.cluster_barrier(barrier),
            _ => {
                self.error(
                    "unsupported",
                    splice.range,
                    "of barriers, only those of a block are supported here",
                    |d| {
                        d.label("expected `bar.sync` or `bar.arrive`").help(
                            "use `__syncwarp` or a group, or write the test in PTX: \
                            `dialect = \"ptx\"`",
                        )
                    },
                );
                return None;
            }
        }
        Some(())
    }

    /// Gives the last micro-op the parts of its instruction, and its place, if there is one.
    fn placed(&mut self, id: InstrId, place: Option<Span>, assembly: Option<Arc<AsmInstr>>) {
        if let Some(last) = self.code.last_mut() {
            (last.id, last.assembly) = (id, assembly);
            last.span = place.unwrap_or(last.span);
        }
    }

    /// Whether an access has the size of the object at its address. Follows addresses from register
    /// to register.
    fn sized(&mut self, op: &Op, points: &mut HashMap<RegId, Ty>, range: &Range<usize>) -> bool {
        if let Op::Assign { dst, value } = op {
            match pointee(value, points) {
                Some(ty) => points.insert(*dst, ty),
                None => points.remove(dst),
            };
            return true;
        }
        let (Some(addr), Some(access)) = (op.address(), op.accesses().next()) else {
            return true;
        };
        if !op.is_ptx() {
            self.error(
                "unsupported",
                range,
                "assembly through other proxies than the generic one",
                |d| {
                    d.label("expected accesses such as `ld.global` and `ld.shared`")
                        .help("write the test in PTX: `dialect = \"ptx\"`")
                },
            );
            return false;
        }
        let wanted = access.ty;
        match pointee(addr, points) {
            Some(ty) if ty.bits == wanted.bits => true,
            Some(ty) => {
                self.mixed_size(range, wanted, ty);
                false
            }
            None => {
                self.error(
                    "unsupported-address",
                    range,
                    "the memory of this access is unknown",
                    |d| {
                        d.label("expected the address of a pointer operand, perhaps with an offset")
                            .help("give the pointer itself: `\"l\"(p)`")
                    },
                );
                false
            }
        }
    }

    /// Whether an asynchronous access has the size of the elements that the function copies.
    fn moves(&mut self, op: &Op, of: Option<Ty>, range: &Range<usize>) -> bool {
        let access = op
            .accesses()
            .next()
            .filter(|access| access.tags.has(Tag::Asynchronous) && !access.tags.has(Tag::Mbarrier));
        let (Some(access), Some(of)) = (access, of) else {
            return true;
        };
        if access.ty.bits != of.bits {
            self.mixed_size(range, access.ty, of);
        }
        access.ty.bits == of.bits
    }

    /// Lowers a cluster barrier. A relaxed arrival remains a PTX arrival, since C++ has no word for
    /// it. Other arrivals and waits become those of the cluster group.
    fn cluster_barrier(&mut self, mut barrier: Barrier) {
        if barrier.arrive.has(Tag::Relaxed) {
            barrier.arrive.insert(Tag::Generic);
        } else {
            barrier.naming = BarrierNaming::Counted {
                id: Expr::Const(CLUSTER_BARRIER),
                count: None,
            };
            barrier.scope = None;
            plain_halves(&mut barrier);
        }
        self.push(Op::Barrier(barrier));
    }

    fn named_barrier(&mut self, mut barrier: Barrier) {
        if let BarrierNaming::Counted {
            id: id @ Expr::Const(0),
            ..
        } = &mut barrier.naming
        {
            *id = Expr::Const(WORK_GROUP_BARRIER);
        }
        plain_halves(&mut barrier);
        self.push(Op::Barrier(barrier));
    }
}

impl SplicePoint<'_> {
    /// Gives a micro-op the registers of the thread, and targets among its code.
    fn relocate(&self, op: &mut Op) {
        for expr in op.operands_mut() {
            expr.visit_mut(&mut |e| {
                if let Expr::Reg(r) = e {
                    *r = self.regs[usize::from(r.0)];
                }
            });
        }
        if let Some(dst) = op.defines_mut() {
            *dst = self.regs[usize::from(dst.0)];
        }
        if let Some(target) = op.target_mut() {
            *target += self.start;
        }
    }
}

/// The types that the registers of operands point to.
fn targets(given: &[AsmOperand]) -> HashMap<RegId, Ty> {
    fn target(value: &AsmOperand) -> Option<(RegId, Ty)> {
        match value {
            AsmOperand::Register { reg, target, .. } => target.map(|ty| (*reg, ty)),
            AsmOperand::Constant(_) => None,
        }
    }
    given.iter().filter_map(target).collect()
}

/// Whether code writes an operand that is only an input.
fn writes_input(lowered: &ptx::LoweredThread, given: &[AsmOperand]) -> bool {
    let mut written = lowered.code.iter().filter_map(|i| i.op.defines());
    written.any(|r| {
        let name = &lowered.regs[usize::from(r.0)].name;
        given
            .iter()
            .any(|g| matches!(g, AsmOperand::Register { name: n, place: None, .. } if n == name))
    })
}

/// Gives a barrier the tags of the language's own barrier, aligned if the PTX barrier is.
fn plain_halves(barrier: &mut Barrier) {
    for (half, tags) in [
        (Tag::BarrierArrive, &mut barrier.arrive),
        (Tag::BarrierWait, &mut barrier.wait),
    ] {
        let aligned = tags.has(Tag::Aligned);
        *tags = Tags::of(&[Tag::Barrier, half]);
        if aligned {
            tags.insert(Tag::Aligned);
        }
    }
}

/// The type that an expression points to, given those of registers. The expression is a register,
/// perhaps with an offset, or a choice.
fn pointee(expr: &Expr, points: &HashMap<RegId, Ty>) -> Option<Ty> {
    let of = |e: &Expr| pointee(e, points);
    match expr {
        Expr::Reg(r) => points.get(r).copied(),
        Expr::Bin(BinOp::Add, _, a, b) => match (of(a), of(b)) {
            (Some(ty), None) | (None, Some(ty)) => Some(ty),
            _ => None,
        },
        Expr::Bin(BinOp::Sub, _, a, b) if of(b).is_none() => of(a),
        // The address of a vector, if it is aligned.
        Expr::Select(_, a, b) if matches!(**b, Expr::Const(_)) => of(a),
        _ => None,
    }
}
