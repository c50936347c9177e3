//! Lowers barriers, latches, semaphores and votes of the library: to mbarrier objects, or to atomic
//! operations on a word.
//!
//! # Invariants
//! - The word of a barrier already has an mbarrier object's encoding ([`program::mbarrier`]). The
//!   computed values stay; only the tags that models see change.
//! - A read of a barrier becomes a test; the code after it uses the result.
//! - An operation on a word of the library is one PTX operation with the order that libcu++ gives
//!   it. Where libcu++ has a second operation, that one adds no order: `operation_on_word` says
//!   why.
//!
//! # Sources
//! - libcu++, `cuda/__barrier/barrier_block_scope.h`, for sm_90, and its compiled code. A barrier
//!   of block scope in shared memory is an mbarrier object. `init` is `mbarrier.init`; arrivals are
//!   `mbarrier.arrive` and `mbarrier.arrive_drop`; waits are loops around `mbarrier.try_wait`, by
//!   token or parity.
//! - libcu++, `cuda/std/__barrier/barrier.h`, `cuda/std/__latch/latch.h`,
//!   `cuda/std/__semaphore/atomic_semaphore.h`: all other objects are words with atomic operations.
//! - PTX ISA 9.4, *mbarrier*: `init` of an existing object, and an expected count of zero, are
//!   undefined. *bar*: `bar.red` counts the predicates of `__syncthreads_count` and its like.

use std::collections::BTreeSet;

use super::Unmapped;
use super::lower::{access, half, steps};
use super::table::{Mapping, OpKind, SourceOrder};
use crate::isa::ptx::parts;
use crate::isa::ptx::reuse::{self, Separation};
use diag::{Sink, SourceFile, Span};
use program::mbarrier as state;
use program::points::{Points, access_of};
use program::{
    Access, BinOp, Class, CmpOp, Expr, Init, Instr, LocId, LocationKind, MemoryKind, Op, Program,
    RegId, Register, Scope, Space, Tag, Tags, ThreadId, Ty, Update,
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
    while let Separation::Moved = reuse::separate(program, &points, &reused, &mut untyped) {
        points = Points::compute(program);
    }
    let mut sink = Sink::new(&SourceFile::new("", ""));
    let cells = parts::cut(program, &points, &reused, None, &mut sink);
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

    /// How PTX has the objects that an address can point to. The error says that it has them in
    /// several ways, or that they are unknown.
    fn form(&self, t: ThreadId, addr: &Expr) -> Result<PtxForm, String> {
        let targets = self
            .points
            .iter()
            .flat_map(|points| points.of(usize::from(t.0), addr));
        let mut forms = targets.map(|object| self.form_of(object));
        let first = forms.next().flatten();
        first
            .filter(|first| forms.all(|form| form.as_ref() == Some(first)))
            .ok_or_else(|| {
                "object rows: the mapping has no row for this object of the library, or it may be \
                 one of several that PTX has in different forms"
                    .into()
            })
    }

    fn form_of(&self, object: LocId) -> Option<PtxForm> {
        let location = self.program.location(self.program.object(object));
        let LocationKind::Object {
            class: of,
            space,
            kind,
            ..
        } = location.kind
        else {
            return None;
        };
        match of {
            _ if class(of, space).is_some() => Some(PtxForm::Mbarrier),
            Some(of) => Some(PtxForm::Word(of)),
            // Counters that the front end declares. Those of OpenCL's copies are other memory.
            None => (kind == MemoryKind::Private).then_some(PtxForm::Votes),
        }
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
        // A mark by which models check that no thread still waits at a barrier comes after the
        // arrival that it belongs to.
        let object = code[..=at]
            .iter()
            .rev()
            .find_map(|instr| instr.op.address());
        let form = match object {
            Some(addr) => self.form(t, addr)?,
            None => return Err("object rows: this operation names no object".into()),
        };
        match form {
            PtxForm::Mbarrier => self.operation_on_mbarrier(mapping, &code[at..], regs),
            _ if op.is_fence() => Ok(Vec::new()),
            PtxForm::Word(of) => operation_on_word(mapping, of, op),
            // `bar.red` counts between two barriers of the block, here with a counter.
            PtxForm::Votes => {
                let kind = match op {
                    Op::Load { .. } => OpKind::Load,
                    _ => OpKind::Rmw,
                };
                in_ptx(mapping, kind, SourceOrder::Relaxed, op)
            }
        }
    }

    fn operation_on_mbarrier(
        &self,
        mapping: &Mapping,
        code: &[Instr],
        regs: &mut Vec<Register>,
    ) -> Result<Vec<Op>, String> {
        let op = &code[0].op;
        if op.is_fence() {
            return Ok(vec![misuse()]);
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
                let Some(Op::Assign { value, .. }) = code.get(1).map(|next| &next.op) else {
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
            Op::Store { addr, .. } if op.has(Tag::Ends) => begin_or_end(addr, None, regs),
            Op::Store { addr, value, .. } => begin_or_end(addr, Some(value), regs),
            _ => Err("object rows: this is not an operation of a barrier".into()),
        }
    }
}

/// The form that an object of the library has in PTX.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PtxForm {
    /// An mbarrier object.
    Mbarrier,
    /// A word with atomic operations, for an object of a class.
    Word(Class),
    /// The counter of a block's votes.
    Votes,
}

/// The micro-ops of a row.
fn in_ptx(mapping: &Mapping, kind: OpKind, order: SourceOrder, op: &Op) -> Result<Vec<Op>, String> {
    steps(mapping, kind, order, op.scope(), |step, scope| {
        Ok(access(op, step, scope))
    })
}

/// The micro-ops for an operation on a word of the library.
///
/// - Barrier: `arrive` is a `fetch_add` with `acq_rel`, waits load with `acquire`. The last arrival
///   adds again, relaxed, to prepare the next phase; `arrive_and_drop` begins with a relaxed
///   addition. Both continue the chain of read-modify-writes, so a wait observes the same arrivals.
/// - Latch: `count_down` is a `fetch_sub` with `release`, waits load with `acquire`.
/// - Semaphore: `release` is a `fetch_add` with `release`. Acquisitions load with `acquire`, then
///   exchange with `acquire` if the count is the same. All writes are read-modify-writes, so the
///   exchange observes what the load does.
/// - Binary semaphore: `release` stores 1 with `release`; acquisitions exchange with 0. Where that
///   finds 0 it writes what it read, without a release: no thread can tell it from a read.
fn operation_on_word(mapping: &Mapping, of: Class, op: &Op) -> Result<Vec<Op>, String> {
    let releases = op.write().is_some_and(|write| write.tags.has(Tag::Release));
    let (kind, order) = match (op, of) {
        // A destructor has no instructions; a constructor stores.
        (Op::Store { .. }, _) if op.has(Tag::Ends) => return Ok(Vec::new()),
        (Op::Store { .. }, _) => (OpKind::Store, SourceOrder::Plain),
        (Op::Load { .. }, _) => (OpKind::Load, SourceOrder::Acquire),
        (Op::Rmw { .. }, Class::Barrier(_)) => (OpKind::Rmw, SourceOrder::AcqRel),
        (Op::Rmw { .. }, Class::Latch(_)) => (OpKind::Rmw, SourceOrder::Release),
        (Op::Rmw { dst, .. }, Class::Semaphore(_, 1)) if releases => {
            return release_of_binary(mapping, *dst, op);
        }
        (Op::Rmw { .. }, Class::Semaphore(..)) if releases => (OpKind::Rmw, SourceOrder::Release),
        (Op::Rmw { .. }, Class::Semaphore(_, 1)) => (OpKind::Rmw, SourceOrder::Acquire),
        (Op::Rmw { .. }, Class::Semaphore(..)) => (OpKind::Cas, SourceOrder::Acquire),
        _ => return Err("object rows: this is not an operation of the library".into()),
    };
    in_ptx(mapping, kind, order, op)
}

/// The micro-ops that store 1 in a binary semaphore. The value before is not read: it is taken as
/// 0, which the precondition demands.
fn release_of_binary(mapping: &Mapping, dst: Option<RegId>, op: &Op) -> Result<Vec<Op>, String> {
    let (Some(addr), Some(write)) = (op.address(), op.write()) else {
        return Err("object rows: this is not a release of a semaphore".into());
    };
    let store = Op::Store {
        addr: addr.clone(),
        value: Expr::Const(1),
        access: write.clone(),
    };
    let mut ops = in_ptx(mapping, OpKind::Store, SourceOrder::Release, &store)?;
    ops.extend(dst.map(|dst| Op::Assign {
        dst,
        value: Expr::Const(0),
    }));
    Ok(ops)
}

/// A mark of a call that breaks its precondition, or that ends a barrier.
fn misuse() -> Op {
    Op::fence(Tags::of(&[Tag::Misuse]), None)
}

/// The micro-ops that begin an object with the word `value`, unless there is an object already.
/// Without a value, they end an object, if there is one: `mbarrier.init`, `mbarrier.inval`.
fn begin_or_end(
    addr: &Expr,
    value: Option<&Expr>,
    regs: &mut Vec<Register>,
) -> Result<Vec<Op>, String> {
    let id = u16::try_from(regs.len()).map_err(|_| "a thread has at most 65535 registers")?;
    let old = RegId(id);
    regs.push(Register {
        name: format!("init#{}", old.0),
        ty: state::WORD,
        init: Init::Int(0),
    });
    let word = Expr::Reg(old);
    let live = state::live(word.clone());
    let (ok, new) = match value {
        None => (live, state::inval(word)),
        Some(value) => {
            let dead = Expr::Cmp(CmpOp::Eq, Ty::WORD, live.into(), Expr::Const(0).into());
            let ok = state::both(dead, state::live(value.clone()));
            // The phase stays the same.
            let new = Expr::Bin(BinOp::Add, state::WORD, word.into(), value.clone().into());
            (ok, new)
        }
    };
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
