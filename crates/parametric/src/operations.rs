//! Operations of a thread that proofs speak of by more than an access: tickets, operations on
//! mbarrier objects, and how a program writes its objects.

use front::litmus::form::PointerTarget;
use program::tags::Tag;
use program::{
    Access, BarrierAction, BarrierNaming, BinOp, EventKind, Expr, LocId, Op, Program, Scope, Ty,
    Update,
};

use crate::term::Term;

/// A place in memory: an object, an offset and a type.
pub(crate) type Cell = (LocId, Term, Ty);

/// What an atomic addition reads.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// The condition under which it happens.
    pub guard: Term,
    /// The value that it reads.
    pub value: Term,
    /// What it adds.
    pub by: Term,
    /// The largest summand that the proof takes: many of them do not make the sum wrap around.
    pub most: i64,
    /// The object.
    pub object: LocId,
    /// Whether each block has one of its own.
    pub is_shared: bool,
    /// In bytes, from the start of the object.
    pub offset: Term,
    /// The barrier interval in which two additions have to be, if the kernel writes the object in
    /// other ways, too.
    pub interval: Option<Term>,
}

/// How a program writes its objects.
pub(crate) struct Writes {
    /// The objects that some instruction may write.
    pub(crate) written: Vec<bool>,
    /// The objects that only atomic additions write, and plain stores.
    pub(crate) counted: Vec<bool>,
    /// Those of them that no plain store writes.
    pub(crate) added: Vec<bool>,
    /// Whether nothing but barriers of a block orders accesses.
    pub(crate) only_barriers: bool,
}

impl Writes {
    /// `targets`: the objects of pointers in parameter structures. Where there are any, a store
    /// through a pointer is taken to write none of these structures.
    pub(crate) fn of(program: &Program, targets: &[PointerTarget]) -> Writes {
        let count = program.locations.len();
        let holders: Vec<usize> = targets.iter().map(|t| usize::from(t.holder.0)).collect();
        let mut writes = Writes {
            written: vec![false; count],
            counted: vec![true; count],
            added: vec![true; count],
            only_barriers: program.instrs().all(|(_, _, i)| is_of_barriers(&i.op)),
        };
        for (_, _, instr) in program.instrs() {
            if instr.op.write().is_none() {
                continue;
            }
            let bases = instr.op.address().and_then(|e| bases(e, program));
            let bases =
                bases.unwrap_or_else(|| { 0..count }.filter(|n| !holders.contains(n)).collect());
            let is_sum = added(&instr.op).is_some();
            let is_store = is_plain_store(&instr.op, program);
            for object in bases {
                writes.written[object] = true;
                writes.counted[object] &= is_sum || is_store;
                writes.added[object] &= is_sum;
            }
        }
        writes
    }
}

/// The objects that an address may be of; `None`: it may be of any.
fn bases(address: &Expr, program: &Program) -> Option<Vec<usize>> {
    match address {
        Expr::Address(loc) => Some(vec![usize::from(program.object(*loc).0)]),
        Expr::Bin(_, _, a, b) => bases(a, program).or_else(|| bases(b, program)),
        Expr::Select(_, a, b) => Some([bases(a, program)?, bases(b, program)?].concat()),
        Expr::Cast(_, a) => bases(a, program),
        _ => None,
    }
}

/// The summand of an atomic addition.
pub(crate) fn added(op: &Op) -> Option<&Expr> {
    match op {
        Op::Rmw {
            update: Update::Apply(BinOp::Add, by),
            write,
            ..
        } if write.tags.has(Tag::Atomic) && !op.has_any(&[Tag::Mbarrier, Tag::Asynchronous]) => {
            Some(by)
        }
        _ => None,
    }
}

fn is_plain_store(op: &Op, program: &Program) -> bool {
    matches!(op, Op::Store { access, .. } if is_plain(access, program))
}

/// Whether an access is an ordinary one.
pub(crate) fn is_plain(access: &Access, program: &Program) -> bool {
    let others = [Tag::Atomic, Tag::Volatile, Tag::Asynchronous];
    !access.tags.has_any(&others) && !is_strong(&access.tags, program)
}

/// Whether a micro-op may order accesses of its thread with those of others.
pub(crate) fn synchronizes(op: &Op) -> bool {
    op.barrier().is_some() || !is_of_barriers(op)
}

/// Whether a micro-op orders accesses of different threads by no more than a barrier of a block.
fn is_of_barriers(op: &Op) -> bool {
    let ordered = [
        Tag::Acquire,
        Tag::Release,
        Tag::AcqRel,
        Tag::SeqCst,
        Tag::Object,
        Tag::Mbarrier,
        Tag::Asynchronous,
    ];
    match op {
        Op::Barrier(barrier) => {
            let is_plain = matches!(barrier.naming, BarrierNaming::Counted { count: None, .. });
            barrier.domain == Scope::Cta
                && barrier.lanes.is_none()
                && barrier.action == BarrierAction::Sync
                && is_plain
        }
        Op::Mark { mark, .. } => mark.kind != EventKind::Fence && !op.has_any(&ordered),
        Op::Call(_) | Op::Enqueue(_) | Op::Status { .. } => false,
        _ => !op.has_any(&ordered),
    }
}

/// An arrival and a wait at the same objects.
#[derive(Clone, Debug)]
pub struct Handover {
    /// The arrival.
    pub arrival: ObjectOp,
    /// How many times its thread arrived at the object before.
    pub number: Term,
    /// The wait.
    pub wait: ObjectOp,
    /// How many phases of the object are complete behind it.
    pub complete: Term,
}

/// An operation of a thread on an mbarrier object, or on a barrier of CUDA C++.
#[derive(Clone, Debug)]
pub struct ObjectOp {
    /// The condition under which it happens.
    pub guard: Term,
    /// The condition under which its iteration begins.
    pub head: Term,
    /// What holds of the symbols that it speaks of.
    pub facts: Vec<Term>,
    /// The object, or the array of objects.
    pub object: LocId,
    /// In bytes, from the start of the object.
    pub offset: Term,
    /// Its effect.
    pub role: ObjectRole,
    /// Whether it releases, if it is an arrival, or acquires, if it waits.
    pub synchronizes: bool,
    /// The iterations in which it is, outermost first.
    pub iterations: Vec<Term>,
    /// Its instruction.
    pub at: usize,
    /// Its position in a walk through the code.
    pub order: usize,
    /// The token that an arrival at a barrier of CUDA C++ returns.
    pub token: Option<Term>,
}

/// The effect of an operation on an mbarrier object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectRole {
    /// It makes the object, with so many arrivals in a phase.
    Init(Term),
    /// It arrives once.
    Arrive,
    /// It waits for the phase of a parity.
    Wait(Term),
    /// It waits for the phase of a token.
    WaitFor(Term),
    /// It does something else.
    Other,
}

/// Whether a micro-op is an operation that a thread itself performs on an mbarrier object.
pub(crate) fn is_of_object(op: &Op) -> bool {
    matches!(op, Op::Rmw { .. }) && op.has(Tag::Mbarrier) && !op.has(Tag::Asynchronous)
}

/// Whether a micro-op says that an operation breaks its precondition. The thread ends behind it.
pub(crate) fn is_misuse(op: &Op) -> bool {
    matches!(op, Op::Mark { mark, .. } if mark.tags.has(Tag::Misuse))
}

/// A test of a phase.
#[derive(Clone, Debug)]
pub(crate) struct PhaseTest {
    /// The condition under which it finds the phase complete.
    pub(crate) passes: Term,
    /// What it notes as a wait.
    pub(crate) ops: Vec<ObjectOp>,
}

/// Whether an access of PTX is strong (PTX ISA, Memory Consistency Model, Strong Operations).
pub(crate) fn is_strong(tags: &program::tags::Tags, program: &Program) -> bool {
    program.dialect.row().proxies
        && [
            Tag::Relaxed,
            Tag::Acquire,
            Tag::Release,
            Tag::SeqCst,
            Tag::Volatile,
            Tag::Mmio,
        ]
        .iter()
        .any(|tag| tags.has(*tag))
}
