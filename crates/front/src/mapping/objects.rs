//! Lowers barriers of the library to mbarrier objects.
//!
//! # Invariants
//! - The word of a barrier already has an mbarrier object's encoding ([`program::mbarrier`]). The
//!   computed values stay; only the tags that models see change.
//! - A read of a barrier becomes a test; the code after it uses the result.
//!
//! # Sources
//! - libcu++, `cuda/__barrier/barrier_block_scope.h`, for sm_90, and its compiled code. A barrier
//!   of block scope in shared memory is an mbarrier object. `init` is `mbarrier.init`; arrivals are
//!   `mbarrier.arrive` and `mbarrier.arrive_drop`; waits are loops around `mbarrier.try_wait`, by
//!   token or parity.
//! - PTX ISA 9.4, *mbarrier*: `init` of an existing object, and an expected count of zero, are
//!   undefined.

use std::collections::BTreeSet;

use super::Unmapped;
use super::lower::{half, steps};
use super::table::{Mapping, OpKind, SourceOrder};
use crate::isa::ptx::{parts, reuse};
use diag::{Sink, SourceFile, Span};
use program::mbarrier as state;
use program::points::{Points, access_of};
use program::{
    Access, BinOp, Class, CmpOp, Expr, Init, Instr, LocId, LocationKind, Op, Program, RegId,
    Register, Scope, Space, Tag, Tags, ThreadId, Ty, Update,
};

/// The objects of a program, and the addresses that may reach them.
pub(super) struct BarrierObjects<'a> {
    pub(super) program: &'a Program,
    /// The possible targets of addresses; `None` if the program has no objects.
    points: Option<Points>,
}

/// The class of a source object in PTX.
pub(super) fn class(of: Option<Class>, space: Space) -> Option<Class> {
    (of == Some(Class::Barrier(Scope::Cta)) && space == Space::Shared
        || of == Some(Class::Mbarrier))
    .then_some(Class::Mbarrier)
}

/// Marks words that inline assembly uses as mbarrier objects as such objects.
pub(super) fn mark(program: &mut Program, unmapped: &mut Vec<Unmapped>) {
    if !program
        .instrs()
        .any(|(_, _, instr)| instr.op.has(Tag::Mbarrier))
    {
        return;
    }
    let points = Points::compute(program);
    let of = |t: ThreadId, instr: &Instr| match instr.op.address() {
        Some(addr) if instr.op.has(Tag::Mbarrier) => points.of(usize::from(t.0), addr),
        _ => Default::default(),
    };
    let mut found = Vec::new();
    for (t, _, instr) in program.instrs() {
        for object in of(t, instr) {
            let bits = program.element(object).bits;
            match program.location(object).kind {
                LocationKind::Object {
                    space: Space::Shared,
                    ..
                } if bits == state::WORD.bits => found.push(object),
                _ => {
                    let name = &program.location(object).name;
                    let rule = format!(
                        "object rows: an mbarrier object is a word of 64 bits in shared \
                         memory, and `{name}` is not"
                    );
                    unmapped.push(Unmapped {
                        span: instr.span,
                        rule,
                    });
                }
            }
        }
    }
    fn is_reused(program: &Program, object: LocId, points: &Points) -> bool {
        let mut all = program.instrs();
        all.any(|(t, _, instr)| {
            let address = access_of(&instr.op).filter(|_| !instr.op.has(Tag::Mbarrier));
            address.is_some_and(|(addr, _)| points.of(usize::from(t.0), addr).contains(&object))
        })
    }
    let (reused, found): (BTreeSet<LocId>, BTreeSet<LocId>) = found
        .into_iter()
        .partition(|object| is_reused(program, *object, &points));
    separate(program, reused.into_iter().collect(), unmapped);
    for object in found {
        if let LocationKind::Object { class, .. } =
            &mut program.locations[usize::from(object.0)].kind
        {
            *class = Some(Class::Mbarrier);
        }
    }
}

/// Separates mbarrier objects from the other data of their storage, as in PTX.
fn separate(program: &mut Program, reused: Vec<LocId>, unmapped: &mut Vec<Unmapped>) {
    if reused.is_empty() {
        return;
    }
    for object in &reused {
        parts::in_bytes(program, *object);
    }
    let mut points = Points::compute(program);
    let mut untyped = vec![Some(Vec::new()); program.threads.len()];
    while reuse::separate(program, &points, &reused, &mut untyped) {
        points = Points::compute(program);
    }
    let mut sink = Sink::new(&SourceFile::new("", ""));
    let cells = parts::cut(program, &points, &reused, &mut sink);
    for ((thread, instr), count) in cells {
        program.threads[thread].code[instr].element.cells = count;
    }
    let first = program
        .instrs()
        .find(|(_, _, instr)| instr.op.has(Tag::Mbarrier))
        .map_or_else(Span::default, |(_, _, instr)| instr.span);
    unmapped.extend(sink.into_diagnostics().into_iter().map(|error| Unmapped {
        span: first,
        rule: format!("object rows: {}", error.message),
    }));
}

impl BarrierObjects<'_> {
    pub(super) fn new(program: &Program) -> BarrierObjects<'_> {
        let any = program
            .instrs()
            .any(|(_, _, instr)| instr.op.has(Tag::Object));
        BarrierObjects {
            program,
            points: any.then(|| Points::compute(program)),
        }
    }

    /// Whether an address can only point to objects that become mbarrier objects.
    fn becomes_mbarrier(&self, t: ThreadId, addr: &Expr) -> bool {
        let mut targets = self
            .points
            .iter()
            .flat_map(|points| points.of(usize::from(t.0), addr))
            .peekable();
        targets.peek().is_some()
            && targets.all(|object| match self.program.location(object).kind {
                LocationKind::Object {
                    class: of, space, ..
                } => class(of, space).is_some(),
                LocationKind::Alias { .. } => false,
            })
    }

    /// The micro-ops for an operation on an object; branch targets count from the first of them.
    pub(super) fn op(
        &self,
        mapping: &Mapping,
        t: ThreadId,
        at: usize,
        regs: &mut Vec<Register>,
    ) -> Result<Vec<Op>, String> {
        let code = &self.program.thread(t).code;
        let op = &code[at].op;
        if op.is_fence() {
            // A mark by which models check that no thread still waits at a barrier.
            return Ok(vec![misuse()]);
        }
        if !op
            .address()
            .is_some_and(|addr| self.becomes_mbarrier(t, addr))
        {
            let text = "object rows: of barriers, latches, semaphores and votes of the library, \
                     the mapping covers barriers of block scope in shared memory, which are \
                     mbarrier objects";
            return Err(text.into());
        }
        match op {
            Op::Rmw {
                dst, addr, update, ..
            } => {
                let arrive = OwnMbarrierOp {
                    dst: *dst,
                    addr,
                    update: update.clone(),
                };
                arrive.rows(mapping, OpKind::Arrive, op.scope())
            }
            Op::Load { dst, addr, .. } => {
                let Some(Op::Assign { value, .. }) = code.get(at + 1).map(|next| &next.op) else {
                    return Err("object rows: the phase that this barrier tests is unknown".into());
                };
                let wait = OwnMbarrierOp {
                    dst: Some(*dst),
                    addr,
                    update: Update::When {
                        cond: value.clone(),
                        new: Expr::Reg(*dst),
                    },
                };
                wait.rows(mapping, OpKind::Wait, op.scope())
            }
            Op::Store { addr, value, .. } => begin(addr, value, regs),
            _ => Err("object rows: this is not an operation of a barrier".into()),
        }
    }
}

/// A mark of a call that breaks its precondition, or that ends a barrier.
fn misuse() -> Op {
    Op::fence(Tags::of(&[Tag::Misuse]), None)
}

/// The micro-ops that begin an object with the word `value`, unless there is an object already.
fn begin(addr: &Expr, value: &Expr, regs: &mut Vec<Register>) -> Result<Vec<Op>, String> {
    let id = u16::try_from(regs.len()).map_err(|_| "a thread has at most 65535 registers")?;
    let old = RegId(id);
    regs.push(Register {
        name: format!("init#{}", old.0),
        ty: state::WORD,
        init: Init::Int(0),
    });
    let word = Expr::Reg(old);
    let dead = Expr::Cmp(
        CmpOp::Eq,
        Ty::WORD,
        state::live(word.clone()).into(),
        Expr::Const(0).into(),
    );
    let ok = state::both(dead, state::live(value.clone()));
    // The phase stays the same.
    let new = Expr::Bin(BinOp::Add, state::WORD, word.into(), value.clone().into());
    let init = OwnMbarrierOp {
        dst: Some(old),
        addr,
        update: Update::When {
            cond: ok.clone(),
            new,
        },
    };
    let tags = HalfTags {
        read: Tag::Weak,
        write: Tag::Weak,
        role: Tag::MbarrierInit,
    };
    Ok(vec![
        init.op(tags, None),
        Op::Branch {
            cond: ok,
            target: 3,
        },
        misuse(),
    ])
}

/// The orders of the halves of an operation on an mbarrier object, and its role for models.
struct HalfTags {
    read: Tag,
    write: Tag,
    role: Tag,
}

/// An operation on an mbarrier object of the thread's own CTA.
struct OwnMbarrierOp<'a> {
    dst: Option<RegId>,
    addr: &'a Expr,
    update: Update,
}

impl OwnMbarrierOp<'_> {
    /// The micro-ops of the mapping's row for an arrival or a wait.
    fn rows(
        &self,
        mapping: &Mapping,
        kind: OpKind,
        scope: Option<Scope>,
    ) -> Result<Vec<Op>, String> {
        let (order, role) = match kind {
            OpKind::Wait => (SourceOrder::Acquire, Tag::MbarrierWait),
            _ => (SourceOrder::Release, Tag::MbarrierArrive),
        };
        steps(mapping, kind, order, scope, |step, scope| {
            let (acquires, releases) = half(step.semantics);
            let write = match kind {
                OpKind::Wait => acquires,
                _ => releases,
            };
            let tags = HalfTags {
                read: Tag::Relaxed,
                write,
                role,
            };
            Ok(self.op(tags, scope))
        })
    }

    fn op(&self, tags: HalfTags, scope: Option<Scope>) -> Op {
        Op::Rmw {
            dst: self.dst,
            addr: self.addr.clone(),
            update: self.update.clone(),
            read: object_half(tags.read, Tag::OwnCta, scope),
            write: object_half(tags.write, tags.role, scope),
        }
    }
}

fn object_half(order: Tag, role: Tag, scope: Option<Scope>) -> Access {
    let mut tags = Tags::of(&[Tag::Generic, Tag::Atomic, Tag::Rmw, Tag::Mbarrier, order]);
    tags.insert(role);
    Access {
        tags,
        scope,
        ty: state::WORD,
    }
}
