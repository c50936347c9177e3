//! Micro-ops, and the expressions in them.
//!
//! # Invariants
//! - Models see an instruction's order, scope and proxy as [`Tags`] entries. An [`Expr`] says how
//!   it computes.
//! - An access has an address and a type; the width of the type is its size.

use super::{
    BinOp, CmpOp, EventKind, Fused, InstrId, LocId, RegId, Scope, Tag, Tags, TensorPart, Tile, Ty,
    host,
};
use diag::{SourceLine, Span};
use std::sync::Arc;

/// A micro-op with its place in the source.
#[derive(Clone, Debug)]
pub struct Instr {
    /// The instruction of the thread that it belongs to.
    pub id: InstrId,
    /// The operation.
    pub op: Op,
    /// Its position in a vector instruction.
    pub element: Element,
    /// The instruction in the test's source file.
    pub span: Span,
    /// The source line.
    pub line: SourceLine,
    /// The instruction as written, on one line.
    pub text: String,
    /// Its parts, if it is an assembly instruction.
    pub assembly: Option<Arc<AsmInstr>>,
    /// The bytes of its access, if that is to a tile.
    pub tile: Option<Arc<Tile<Expr>>>,
}

/// The parts of an assembly instruction behind its predicate, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsmInstr {
    /// The name in front of the qualifiers.
    pub opcode: String,
    /// The qualifiers, without their dots.
    pub qualifiers: Vec<String>,
    /// The operands, on one line.
    pub operands: String,
}

impl Instr {
    /// A micro-op of a scalar instruction that is not in assembly.
    pub fn new(id: InstrId, op: Op, span: Span, line: SourceLine, text: String) -> Instr {
        Instr {
            id,
            op,
            element: Element::ONLY,
            span,
            line,
            text,
            assembly: None,
            tile: None,
        }
    }

    /// Whether it is an assembly instruction with a qualifier.
    pub fn has_qualifier(&self, qualifier: &str) -> bool {
        self.assembly
            .as_ref()
            .is_some_and(|a| a.qualifiers.iter().any(|given| given == qualifier))
    }

    /// Whether this is a later micro-op of an instruction that begins with an mbarrier operation or
    /// an asynchronous copy.
    pub fn follows(&self, operation: &Instr) -> bool {
        (operation.op.has(Tag::Mbarrier) || operation.op.has(Tag::Asynchronous))
            && operation.id == self.id
    }
}

/// Whether a micro-op is a later one of its instruction, as defined by [`Instr::follows`].
pub fn is_further(code: &[Instr], at: usize) -> bool {
    let mut before = code[..at]
        .iter()
        .rev()
        .take_while(|before| before.id == code[at].id);
    before.any(|before| code[at].follows(before))
}

/// Whether a micro-op is a later one of its instruction. An assignment counts only if it computes
/// from a value that the instruction read from memory; addresses do not.
pub fn is_of_word(code: &[Instr], at: usize) -> bool {
    let Op::Assign { value, .. } = &code[at].op else {
        return is_further(code, at);
    };
    let words: Vec<RegId> = code[..at]
        .iter()
        .rev()
        .take_while(|b| b.id == code[at].id)
        .filter_map(|before| before.op.defines().filter(|_| code[at].follows(before)))
        .collect();
    value.any(&|e| matches!(e, Expr::Reg(r) if words.contains(r)))
}

/// A position in a vector instruction. Such an instruction becomes one micro-op per element. The
/// micro-ops are adjacent in the code and unordered among themselves (PTX ISA, Memory Consistency
/// Model, Vector Data-types). A scalar instruction has one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// The number of elements before it in its instruction.
    pub at: u8,
    /// The number of elements of its instruction.
    pub of: u8,
    /// The number of cells that its access covers: several if other accesses to the object are
    /// smaller.
    pub cells: u8,
    /// The elements are pieces of one scalar of 128 bits, the lowest first.
    pub whole: bool,
}

impl Element {
    /// The element of a scalar instruction.
    pub const ONLY: Element = Element {
        at: 0,
        of: 1,
        cells: 1,
        whole: false,
    };

    /// The micro-ops of its instruction, if this one has the given index in the code.
    pub fn siblings(self, index: usize) -> std::ops::Range<usize> {
        let first = index - usize::from(self.at);
        first..first + usize::from(self.of)
    }
}

/// The number under which [`Op::Take`] gets the set of threads that came to the last meeting.
pub const ATTENDED: u8 = 64;

/// The threads that a meeting ([`Op::Give`]) waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attendance {
    /// Every thread that is named.
    All,
    /// Every named thread that has not ended. The code looks which of them came.
    Running,
    /// The same, and a thread that can no longer come is not awaited, either: it is missed.
    Collective,
    /// Any named threads that are at the same instruction. Each of them then has the bit set of
    /// those that meet as its own contribution.
    Present,
}

impl Attendance {
    /// Whether the meeting does not wait for a thread that has ended.
    pub fn spares_ended(self) -> bool {
        matches!(self, Attendance::Running | Attendance::Collective)
    }
}

/// Micro-ops. The executor instantiates them with its own types of accesses `A` and marks `M`.
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
        /// The same of the write half.
        write: A,
    },
    /// An event that neither reads nor writes: a fence, or an event that models know by its kind.
    /// Never waits.
    Mark {
        /// The address operand, if any.
        addr: Option<Expr>,
        /// The event.
        mark: M,
    },
    /// A barrier: waits for other threads.
    Barrier(Barrier),
    /// Exchanges values within a group of threads. It waits until all named threads have come to a
    /// `Give` that names the same set, then collects their values. Orders no memory accesses.
    Give {
        /// The value that this thread contributes.
        value: Expr,
        /// The scope of the group; in a warp, threads are numbered by lane.
        among: Scope,
        /// The participating threads as a bit set; only the first 64 threads of a group can take
        /// part. A thread that is not in its own set meets no other thread, which is undefined.
        lanes: Expr,
        /// Which of the named threads have to come.
        attendance: Attendance,
    },
    /// `dst` = the value that a thread contributed when this thread last met it; 0 if it never did.
    Take {
        /// Receives the value.
        dst: RegId,
        /// The contributing thread's number in the group, or [`ATTENDED`].
        lane: u8,
    },
    /// `dst` = 0 or 1: a free choice of the execution.
    Choice {
        /// Receives the choice.
        dst: RegId,
        /// Whether 1 means a spurious failure of a library function.
        spurious: bool,
    },
    /// A call of the runtime by a host thread; it separates the accesses before and after it.
    Call(host::CallId),
    /// A kernel thread enqueues a command (OpenCL, `enqueue_kernel`); it separates the accesses
    /// before and after it.
    Enqueue(host::CommandId),
    /// `dst` = 0 if an event or the work of a stream is complete, else another of the query's
    /// answers ([`host::HostQuery::incomplete`]). The query defines how an answer orders memory.
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

/// The properties of a memory access other than address and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Order, proxy, … as models see them.
    pub tags: Tags,
    /// The operation's scope, `None` for weak (non-atomic) accesses.
    pub scope: Option<Scope>,
    /// Size and signedness.
    pub ty: Ty,
}

/// An event that neither reads nor writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The kind of event.
    pub kind: EventKind,
    /// Order, proxy, flags.
    pub tags: Tags,
    /// `None` for events without a scope (proxy fences).
    pub scope: Option<Scope>,
    /// For a wait for groups of asynchronous copies: the number of latest groups that may still be
    /// incomplete.
    pub pending: Option<u32>,
    /// For an access to tensor memory: the part of it, from the number in the address operand.
    pub tensor: Option<TensorPart>,
}

/// The value that an RMW writes, given the value it read.
#[derive(Clone, Debug)]
pub enum Update {
    /// The operand, for any old value.
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
    /// `new` if `cond` is not 0, else nothing. Both may read the operation's `dst`, which already
    /// holds the value read.
    When {
        /// Whether it writes.
        cond: Expr,
        /// The value written in that case.
        new: Expr,
    },
}

/// A barrier instruction.
#[derive(Clone, Debug)]
pub struct Barrier {
    /// Arrive, wait, or both.
    pub action: BarrierAction,
    /// The scope of the groups whose threads it can bring together.
    pub domain: Scope,
    /// The lanes that a warp barrier names, as a bit set; `None`: all threads of the group.
    pub lanes: Option<Expr>,
    /// Its identity, and the number of threads it waits for.
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

    /// Whether it states a thread count.
    pub fn says_count(&self) -> bool {
        match &self.naming {
            BarrierNaming::Counted { count, .. } => count.is_some(),
            BarrierNaming::Instance { quorum, .. } => quorum.is_some(),
        }
    }

    /// Whether a barrier of such groups without a thread count waits for ended threads, and so
    /// hangs. A grid barrier is implemented in memory, where only a thread itself counts its
    /// arrival. Hardware implements the barriers of smaller groups and counts the remaining threads
    /// (PTX ISA, `exit`).
    pub fn awaits_ended(domain: Scope) -> bool {
        domain == Scope::Grid
    }

    /// Whether it is a collective of its group: undefined unless every thread takes part, even a
    /// thread that has ended.
    pub fn is_collective(&self) -> bool {
        self.arrive.has(Tag::Collective)
    }

    /// Whether it is a barrier for all threads of the group whose arrivals and waits can be
    /// separate instructions. These must alternate.
    pub fn takes_turns(&self) -> bool {
        matches!(self.naming, BarrierNaming::Counted { count: None, .. })
    }
}

/// The action of a barrier instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierAction {
    /// Arrives, then waits for the phase to complete.
    Sync,
    /// Arrives without waiting.
    Arrive,
    /// Waits for the phase in which this thread arrived last.
    Wait,
}

/// The rules by which barrier instructions find their partners.
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

impl BarrierNaming {
    /// The number of a counted barrier, if it is a constant.
    pub fn number(&self) -> Option<i64> {
        match self {
            BarrierNaming::Counted {
                id: Expr::Const(id),
                ..
            } => Some(*id),
            _ => None,
        }
    }
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
    /// A fused multiply-add of floating-point numbers.
    Fused(Fused, [Box<Expr>; 3]),
}
