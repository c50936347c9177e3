//! Micro-ops, and the expressions they are made of.
//!
//! # Invariants
//! - What a model may see of an instruction (order, scope, proxy) is a [`Tags`] entry; how it
//!   computes is an [`Expr`].
//! - An access has an address and a type, whose width is its size.

use super::{BinOp, CmpOp, EventKind, Fused, LocId, RegId, Scope, Tag, Tags, Ty, host};
use diag::{SourceLine, Span};

/// A micro-op with its place in the source.
#[derive(Clone, Debug)]
pub struct Instr {
    /// What it does.
    pub op: Op,
    /// Which element of a vector instruction it is.
    pub element: Element,
    /// The instruction in the test's source file.
    pub span: Span,
    /// Its line.
    pub line: SourceLine,
    /// The instruction as written, on one line.
    pub text: String,
}

impl Instr {
    /// Whether it is a further micro-op of an instruction that begins with an operation on an
    /// mbarrier object, or is a copy.
    pub fn follows(&self, operation: &Instr) -> bool {
        (operation.op.has(Tag::Mbarrier) || operation.op.has(Tag::Asynchronous))
            && operation.span == self.span
    }
}

/// Whether a micro-op is a further one of its instruction, as by [`Instr::follows`].
pub fn is_further(code: &[Instr], at: usize) -> bool {
    let mut before = code[..at]
        .iter()
        .rev()
        .take_while(|before| before.span == code[at].span);
    before.any(|before| code[at].follows(before))
}

/// Whether a micro-op is a further one of its instruction, and what it computes is of what that
/// found in memory: no address is.
pub fn is_of_word(code: &[Instr], at: usize) -> bool {
    let Op::Assign { value, .. } = &code[at].op else {
        return is_further(code, at);
    };
    let found = |before: &Instr| before.op.defines().filter(|_| code[at].follows(before));
    let words: Vec<RegId> = code[..at]
        .iter()
        .rev()
        .take_while(|b| b.span == code[at].span)
        .filter_map(found)
        .collect();
    value.any(&|e| matches!(e, Expr::Reg(r) if words.contains(r)))
}

/// A vector instruction is one micro-op per element, one behind the other and in no order among
/// themselves (PTX ISA, Memory Consistency Model, Vector Data-types). What is no vector has one
/// element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// How many elements of its instruction stand before it.
    pub at: u8,
    /// How many elements its instruction has.
    pub of: u8,
    /// How many cells its access is to: more than one where its object is accessed in smaller
    /// pieces elsewhere.
    pub cells: u8,
    /// The elements are pieces of one scalar of 128 bits, the lowest first.
    pub whole: bool,
}

impl Element {
    /// That of an instruction that is no vector.
    pub const ONLY: Element = Element {
        at: 0,
        of: 1,
        cells: 1,
        whole: false,
    };

    /// The micro-ops of its instruction, where it is number `index` of the code.
    pub fn siblings(self, index: usize) -> std::ops::Range<usize> {
        let first = index - usize::from(self.at);
        first..first + usize::from(self.of)
    }
}

/// Micro-ops. The executor has them with accesses `A` and marks `M` of its own.
#[derive(Clone, Debug)]
pub enum Op<A = Access, M = Mark> {
    /// `dst = [addr]`
    Load {
        /// Receives the value.
        dst: RegId,
        /// Address.
        addr: Expr,
        /// Order, scope, proxy, type.
        access: A,
    },
    /// `[addr] = value`
    Store {
        /// Address.
        addr: Expr,
        /// Value.
        value: Expr,
        /// Order, scope, proxy, type.
        access: A,
    },
    /// `dst = [addr]; [addr] = update(dst)` in one step.
    Rmw {
        /// Receives the old value; `None` for a reduction or a discarded result.
        dst: Option<RegId>,
        /// Address.
        addr: Expr,
        /// The new value.
        update: Update,
        /// Order, scope, proxy, type of the read half.
        read: A,
        /// Of the write half.
        write: A,
    },
    /// An event that neither reads nor writes: a fence, or what else models know by its kind. Never
    /// waits.
    Mark {
        /// The address that it names, if it names one.
        addr: Option<Expr>,
        /// Which event.
        mark: M,
    },
    /// A barrier: waits for other threads.
    Barrier(Barrier),
    /// Hands a value to threads of its group: waits until all that are named have come to one that
    /// names the same, and goes on with what they brought. Orders no accesses to memory.
    Give {
        /// What this thread brings.
        value: Expr,
        /// The group is that of this scope; of a warp, its threads are lanes.
        among: Scope,
        /// Those that meet, as a set of bits; none but the first 64 threads of a group can. Who is
        /// not among its own meets nobody, which is undefined.
        lanes: Expr,
        /// Whether not all of them have to come: it meets any of those that are at the same
        /// instruction, and takes of itself what all of these bring, as one set of bits.
        converged: bool,
    },
    /// `dst` = what a thread of the group brought when this one met it last; 0 if it did not.
    Take {
        /// Receives the value.
        dst: RegId,
        /// Which one of the group.
        lane: u8,
    },
    /// `dst` = 0 or 1: a free choice of the execution.
    Choice {
        /// Receives the choice.
        dst: RegId,
        /// Whether 1 means that a library function fails here without a reason.
        spurious: bool,
    },
    /// A call of the runtime by a host thread: a point between its accesses.
    Call(host::CallId),
    /// A thread of a kernel enqueues a command (OpenCL, `enqueue_kernel`): a point between its
    /// accesses.
    Enqueue(host::CommandId),
    /// `dst` = 0 if an event or the work of a stream is complete, else 1. What an answer says of
    /// memory is the query's matter.
    Status {
        /// Receives the status.
        dst: RegId,
        /// The query.
        of: host::QueryId,
    },
    /// `dst = value`
    Assign {
        /// Receives the value.
        dst: RegId,
        /// Value.
        value: Expr,
    },
    /// `if (cond != 0) goto target`; an unconditional jump has a non-zero constant.
    Branch {
        /// Condition.
        cond: Expr,
        /// Index into the thread's code.
        target: usize,
    },
}

/// What a memory access carries besides address and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Order, proxy, … as seen by models.
    pub tags: Tags,
    /// The operation's scope, `None` for weak (non-atomic) accesses.
    pub scope: Option<Scope>,
    /// Size and signedness.
    pub ty: Ty,
}

/// An event that neither reads nor writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What it is.
    pub kind: EventKind,
    /// Order, proxy, flags.
    pub tags: Tags,
    /// `None` for what has none (proxy fences).
    pub scope: Option<Scope>,
    /// Of a wait for groups of asynchronous copies: how many of them, the last ones, need not be
    /// complete.
    pub pending: Option<u32>,
}

/// What an RMW writes, given the value it read.
#[derive(Clone, Debug)]
pub enum Update {
    /// The operand, whatever was read.
    Exchange(Expr),
    /// `old op operand`.
    Apply(BinOp, Expr),
    /// `new` if the old value equals `expected`, else nothing
    /// (or the old value, under the option `failed-cas = write`).
    CompareExchange {
        /// Compared with the value read.
        expected: Expr,
        /// Written on success.
        new: Expr,
    },
    /// `new` if `cond` is not 0, else nothing. Both may read the operation's `dst`, which holds the
    /// value read by then.
    When {
        /// Whether it writes.
        cond: Expr,
        /// Written in that case.
        new: Expr,
    },
}

/// A barrier instruction.
#[derive(Clone, Debug)]
pub struct Barrier {
    /// Arrive, wait, or both.
    pub action: BarrierAction,
    /// Which threads it can bring together: those in one group of this scope.
    pub domain: Scope,
    /// The lanes that it can bring together, as a set of bits, where it is one of a warp that names
    /// them; `None`: all threads of the group.
    pub lanes: Option<Expr>,
    /// Which barrier it is, and how many it waits for.
    pub naming: BarrierNaming,
    /// Tags of the arrival event.
    pub arrive: Tags,
    /// Tags of the wait event.
    pub wait: Tags,
    /// Scope of both events as models see it; PTX's CTA barriers have none.
    pub scope: Option<Scope>,
}

impl Barrier {
    /// Whether all threads of a warp must execute it together.
    pub fn is_aligned(&self) -> bool {
        self.arrive.has(Tag::Aligned) || self.wait.has(Tag::Aligned)
    }

    /// Whether it says how many threads have to come.
    pub fn says_count(&self) -> bool {
        match &self.naming {
            BarrierNaming::Counted { count, .. } => count.is_some(),
            BarrierNaming::Instance { quorum, .. } => quorum.is_some(),
        }
    }

    /// Whether one of such a group that says no thread count waits for threads that have ended, and
    /// so for ever. That of a grid is made of memory, in which nobody but a thread counts its own
    /// arrival; those of smaller groups are the machine's, which counts who is left (PTX ISA,
    /// `exit`).
    pub fn awaits_ended(domain: Scope) -> bool {
        domain == Scope::Gpu
    }

    /// Whether it is a collective of its group: undefined unless every thread takes part, also one
    /// that has ended.
    pub fn is_collective(&self) -> bool {
        self.arrive.has(Tag::Collective)
    }

    /// Whether its arrivals and waits can be separate instructions of a barrier for all threads of
    /// the group, which have to come in turn.
    pub fn takes_turns(&self) -> bool {
        matches!(self.naming, BarrierNaming::Counted { count: None, .. })
    }
}

/// What a barrier instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierAction {
    /// Arrives, then waits for the phase to complete.
    Sync,
    /// Arrives without waiting.
    Arrive,
    /// Waits for the phase in which this thread arrived last.
    Wait,
}

/// How barrier instructions find each other.
#[derive(Clone, Debug)]
pub enum BarrierNaming {
    /// PTX's counted, resetting barriers (PTX ISA, `bar`/`barrier`).
    Counted {
        /// Barrier resource, 0..=15.
        id: Expr,
        /// Threads that make up a phase; `None`: all threads of the domain that have not exited.
        count: Option<Expr>,
    },
    /// The published suites' barriers, paired by a static instance number.
    Instance {
        /// Static number; equal numbers belong together.
        instance: i64,
        /// Run-time identifier; must be equal too.
        id: Option<Expr>,
        /// Number of threads expected; `None`: every matching barrier of the unrolled program.
        quorum: Option<Expr>,
    },
}

/// Side-effect-free expressions over registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// An integer.
    Const(i64),
    /// A register's current value.
    Reg(RegId),
    /// The address of a location (of the copy that the executing thread sees).
    Address(LocId),
    /// An operation, carried out in the given type.
    Bin(BinOp, Ty, Box<Expr>, Box<Expr>),
    /// 1 if the comparison holds in the given type, else 0.
    Cmp(CmpOp, Ty, Box<Expr>, Box<Expr>),
    /// `if cond != 0 then a else b`.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Conversion to a type.
    Cast(Ty, Box<Expr>),
    /// A product of two floating-point numbers and the sum of it and a third.
    Fused(Fused, [Box<Expr>; 3]),
}
