//! The parts of micro-ops and of expressions. Only this module enumerates them for all kinds.
//!
//! # Invariants
//! - The matches name every kind, so that a new kind needs its parts here. Other modules get the
//!   parts of a micro-op from here. They match on micro-ops only to execute, print or transform
//!   them.

use smallvec::SmallVec;

use super::{
    Barrier, BarrierNaming, BinOp, EventKind, Expr, LocId, Mark, Op, RegId, Scope, Tag, Tags, Ty,
    Update,
};

/// A few parts.
pub type Parts<T> = SmallVec<[T; 3]>;

/// The operands of an update; shared or mutable references, like the argument.
macro_rules! update_operands {
    ($update:expr) => {{
        let mut all = Parts::new();
        match $update {
            Update::Exchange(e) | Update::Apply(_, e) => all.push(e),
            Update::CompareExchange {
                expected: a,
                new: b,
            }
            | Update::When { cond: a, new: b } => all.extend([a, b]),
        }
        all
    }};
}

/// The operands of a micro-op; shared or mutable references, like the argument.
macro_rules! operands {
    ($op:expr) => {{
        let mut all = Parts::new();
        match $op {
            Op::Load { addr, .. } => all.push(addr),
            Op::Store { addr, value, .. } => all.extend([addr, value]),
            Op::Rmw { addr, update, .. } => {
                all.push(addr);
                all.extend(update_operands!(update));
            }
            Op::Mark { addr, .. } => all.extend(addr),
            Op::Barrier(Barrier {
                lanes,
                naming: BarrierNaming::Counted { id, count },
                ..
            }) => {
                all.extend(lanes);
                all.push(id);
                all.extend(count);
            }
            Op::Barrier(Barrier {
                lanes,
                naming: BarrierNaming::Instance { id, quorum, .. },
                ..
            }) => {
                all.extend(lanes);
                all.extend(id);
                all.extend(quorum);
            }
            Op::Assign { value, .. } => all.push(value),
            Op::Give { value, lanes, .. } => all.extend([value, lanes]),
            Op::Branch { cond, .. } => all.push(cond),
            Op::Take { .. }
            | Op::Choice { .. }
            | Op::Call(_)
            | Op::Enqueue(_)
            | Op::Status { .. } => {}
        }
        all
    }};
}

/// The address operand of a micro-op; a shared or mutable reference, like the argument.
macro_rules! address {
    ($op:expr) => {
        match $op {
            Op::Load { addr, .. } | Op::Store { addr, .. } | Op::Rmw { addr, .. } => Some(addr),
            Op::Mark { addr, .. } => addr.into(),
            Op::Barrier(_)
            | Op::Give { .. }
            | Op::Take { .. }
            | Op::Choice { .. }
            | Op::Call(_)
            | Op::Enqueue(_)
            | Op::Status { .. }
            | Op::Assign { .. }
            | Op::Branch { .. } => None,
        }
    };
}

/// The register that a micro-op writes; a shared or mutable reference, like the argument.
macro_rules! defined {
    ($op:expr) => {
        match $op {
            Op::Load { dst, .. }
            | Op::Assign { dst, .. }
            | Op::Take { dst, .. }
            | Op::Choice { dst, .. }
            | Op::Status { dst, .. } => Some(dst),
            Op::Rmw { dst, .. } => dst.into(),
            Op::Store { .. }
            | Op::Mark { .. }
            | Op::Barrier(_)
            | Op::Give { .. }
            | Op::Branch { .. }
            | Op::Call(_)
            | Op::Enqueue(_) => None,
        }
    };
}

/// The read access and the write access of a micro-op; shared or mutable references, like the
/// argument.
macro_rules! halves {
    ($op:expr) => {
        match $op {
            Op::Load { access, .. } => (Some(access), None),
            Op::Store { access, .. } => (None, Some(access)),
            Op::Rmw { read, write, .. } => (Some(read), Some(write)),
            Op::Mark { .. }
            | Op::Barrier(_)
            | Op::Give { .. }
            | Op::Take { .. }
            | Op::Choice { .. }
            | Op::Call(_)
            | Op::Enqueue(_)
            | Op::Status { .. }
            | Op::Assign { .. }
            | Op::Branch { .. } => (None, None),
        }
    };
}

impl<A, M> Op<A, M> {
    /// Every expression that it evaluates, addresses first.
    pub fn operands(&self) -> Parts<&Expr> {
        operands!(self)
    }

    /// The same as mutable references.
    pub fn operands_mut(&mut self) -> Parts<&mut Expr> {
        operands!(self)
    }

    /// The register that it writes.
    pub fn defines(&self) -> Option<RegId> {
        defined!(self).copied()
    }

    /// The same as a mutable reference.
    pub fn defines_mut(&mut self) -> Option<&mut RegId> {
        defined!(self)
    }

    /// The address operand.
    pub fn address(&self) -> Option<&Expr> {
        address!(self)
    }

    /// The same as a mutable reference.
    pub fn address_mut(&mut self) -> Option<&mut Expr> {
        address!(self)
    }

    /// The value that it writes, if it writes; `None` if the value depends on the value read.
    pub fn written(&self) -> Option<&Expr> {
        match self {
            Op::Store { value, .. } => Some(value),
            Op::Rmw {
                update: Update::Exchange(e) | Update::CompareExchange { new: e, .. },
                ..
            } => Some(e),
            _ => None,
        }
    }

    /// The read access.
    pub fn read(&self) -> Option<&A> {
        halves!(self).0
    }

    /// The write access.
    pub fn write(&self) -> Option<&A> {
        halves!(self).1
    }

    /// The read access and the write access.
    pub fn accesses(&self) -> impl Iterator<Item = &A> {
        let (read, write) = halves!(self);
        read.into_iter().chain(write)
    }

    /// The same as a pair of mutable references.
    pub fn halves_mut(&mut self) -> (Option<&mut A>, Option<&mut A>) {
        halves!(self)
    }

    /// The accesses of [`Op::accesses`] as mutable references.
    pub fn accesses_mut(&mut self) -> impl Iterator<Item = &mut A> {
        let (read, write) = halves!(self);
        read.into_iter().chain(write)
    }

    /// Whether it reads or writes memory.
    pub fn is_access(&self) -> bool {
        self.accesses().next().is_some()
    }

    /// Whether it makes events.
    pub fn is_visible(&self) -> bool {
        self.is_access() || matches!(self, Op::Mark { .. } | Op::Barrier(_))
    }

    /// The barrier, if it is one.
    pub fn barrier(&self) -> Option<&Barrier> {
        if let Op::Barrier(b) = self {
            Some(b)
        } else {
            None
        }
    }

    /// The branch target, if it is a branch.
    pub fn target(&self) -> Option<usize> {
        if let Op::Branch { target, .. } = self {
            Some(*target)
        } else {
            None
        }
    }

    /// The same as a mutable reference.
    pub fn target_mut(&mut self) -> Option<&mut usize> {
        if let Op::Branch { target, .. } = self {
            Some(target)
        } else {
            None
        }
    }

    /// Whether it is a branch to itself or to an earlier instruction.
    pub fn jumps_back(&self, pc: usize) -> bool {
        self.target().is_some_and(|target| target <= pc)
    }

    /// Whether the next instruction may follow it: false for a branch that is always taken.
    pub fn falls_through(&self) -> bool {
        !matches!(self, Op::Branch { cond: Expr::Const(c), .. } if *c != 0)
    }

    /// Converts its accesses, or its mark, to other types.
    ///
    /// # Errors
    /// The errors of `access` and `mark`.
    pub fn try_map<B, N, E>(
        self,
        access: impl Fn(A) -> Result<B, E>,
        mark: impl Fn(M) -> Result<N, E>,
    ) -> Result<Op<B, N>, E> {
        Ok(match self {
            Op::Load {
                dst,
                addr,
                access: a,
            } => Op::Load {
                dst,
                addr,
                access: access(a)?,
            },
            Op::Store {
                addr,
                value,
                access: a,
            } => Op::Store {
                addr,
                value,
                access: access(a)?,
            },
            Op::Rmw {
                dst,
                addr,
                update,
                read,
                write,
            } => Op::Rmw {
                dst,
                addr,
                update,
                read: access(read)?,
                write: access(write)?,
            },
            Op::Mark { addr, mark: m } => Op::Mark {
                addr,
                mark: mark(m)?,
            },
            Op::Barrier(b) => Op::Barrier(b),
            Op::Give {
                value,
                among,
                lanes,
                attendance,
            } => Op::Give {
                value,
                among,
                lanes,
                attendance,
            },
            Op::Take { dst, lane } => Op::Take { dst, lane },
            Op::Choice { dst, spurious } => Op::Choice { dst, spurious },
            Op::Call(call) => Op::Call(call),
            Op::Enqueue(command) => Op::Enqueue(command),
            Op::Status { dst, of } => Op::Status { dst, of },
            Op::Assign { dst, value } => Op::Assign { dst, value },
            Op::Branch { cond, target } => Op::Branch { cond, target },
        })
    }
}

impl Update {
    /// Every expression that it evaluates.
    pub fn operands(&self) -> Parts<&Expr> {
        update_operands!(self)
    }
}

/// The tags of a micro-op's events; shared or mutable references.
macro_rules! tags {
    ($op:expr $(, $mut:tt)?) => {{
        let mut all = Parts::new();
        match $op {
            Op::Load { access, .. } => all.push((EventKind::Read, &$($mut)? access.tags)),
            Op::Store { access, .. } => all.push((EventKind::Write, &$($mut)? access.tags)),
            Op::Rmw { read, write, .. } => {
                all.push((EventKind::Read, &$($mut)? read.tags));
                all.push((EventKind::Write, &$($mut)? write.tags));
            }
            Op::Mark { mark, .. } => all.push((mark.kind, &$($mut)? mark.tags)),
            Op::Barrier(b) => {
                all.push((EventKind::Arrive, &$($mut)? b.arrive));
                all.push((EventKind::Wait, &$($mut)? b.wait));
            }
            Op::Give { .. }
            | Op::Take { .. }
            | Op::Choice { .. }
            | Op::Call(_)
            | Op::Enqueue(_)
            | Op::Status { .. }
            | Op::Assign { .. }
            | Op::Branch { .. } => {}
        }
        all
    }};
}

impl Op {
    /// A fence.
    pub fn fence(tags: Tags, scope: Option<Scope>) -> Op {
        Op::Mark {
            addr: None,
            mark: Mark {
                kind: EventKind::Fence,
                tags,
                scope,
                pending: None,
                tensor: None,
            },
        }
    }

    /// The events that it may make, in order, each with its tags; for a barrier always both.
    pub fn tags(&self) -> Parts<(EventKind, &Tags)> {
        tags!(self)
    }

    /// The same as mutable references.
    pub fn tags_mut(&mut self) -> Parts<(EventKind, &mut Tags)> {
        tags!(self, mut)
    }

    /// Whether one of its events has the tag.
    pub fn has(&self, tag: Tag) -> bool {
        self.has_any(&[tag])
    }

    /// Whether one of its events has one of the tags.
    pub fn has_any(&self, any: &[Tag]) -> bool {
        self.tags().iter().any(|(_, tags)| tags.has_any(any))
    }

    /// Whether it exists only in PTX: an access or fence that names its proxy, an asynchronous
    /// operation, or an operation on groups of these or on launches.
    pub fn is_ptx(&self) -> bool {
        self.is_ptx_mark() || self.has_any(&[Tag::Generic, Tag::ProxyFence, Tag::Asynchronous])
    }

    /// Whether it is a mark that exists only in PTX, and in one form. These marks concern: groups
    /// of asynchronous operations and waits for them, launches, refused requests, and lanes that
    /// must execute together.
    pub fn is_ptx_mark(&self) -> bool {
        self.has_any(&[
            Tag::CommitGroup,
            Tag::WaitGroup,
            Tag::WaitGroupRead,
            Tag::WgmmaFence,
            Tag::LaunchDependents,
            Tag::GridWait,
            Tag::CancelRefused,
            Tag::Lanes,
        ])
    }

    /// The mark, if the micro-op is one of that kind.
    pub fn mark(&self, kind: EventKind) -> Option<&Mark> {
        if let Op::Mark { mark, .. } = self {
            Some(mark).filter(|m| m.kind == kind)
        } else {
            None
        }
    }

    /// The noun for it in messages; empty if it makes no events.
    pub fn noun(&self) -> &'static str {
        match (self.tags().as_slice(), self.is_access()) {
            ([_, _], true) => "read-modify-write",
            (tags, _) => tags.first().map_or("", |(kind, _)| kind.row().noun),
        }
    }

    /// Whether it aborts the kernel: it reads address 0, where there is no memory.
    pub fn aborts(&self) -> bool {
        matches!(
            self,
            Op::Load {
                addr: Expr::Const(0),
                ..
            }
        )
    }

    /// Whether it is a fence.
    pub fn is_fence(&self) -> bool {
        self.mark(EventKind::Fence).is_some()
    }

    /// The scope of an access or a mark.
    pub fn scope(&self) -> Option<Scope> {
        match self {
            Op::Mark { mark, .. } => mark.scope,
            other => other.accesses().next().and_then(|access| access.scope),
        }
    }

    /// Gives it another scope.
    pub fn set_scope(&mut self, scope: Option<Scope>) {
        match self {
            Op::Mark { mark, .. } => mark.scope = scope,
            other => other.accesses_mut().for_each(|access| access.scope = scope),
        }
    }
}

/// The operands of an expression; shared or mutable references, like the argument.
macro_rules! children {
    ($e:expr) => {{
        let mut all = Parts::new();
        match $e {
            Expr::Const(_) | Expr::Reg(_) | Expr::Address(_) => {}
            Expr::Bin(_, _, a, b) | Expr::Cmp(_, _, a, b) => all.extend([a, b]),
            Expr::Select(c, a, b) => all.extend([c, a, b]),
            Expr::Cast(_, a) => all.push(a),
            Expr::Fused(_, three) => all.extend(three),
        }
        all
    }};
}

impl Expr {
    /// An unknown value that depends on nothing.
    pub fn unknown(ty: Ty) -> Expr {
        Expr::Bin(
            BinOp::Unknown,
            ty,
            Box::new(Expr::Const(0)),
            Box::new(Expr::Const(0)),
        )
    }

    /// Calls `f` for the expression and all its subexpressions.
    pub fn visit(&self, f: &mut impl FnMut(&Expr)) {
        f(self);
        children!(self).into_iter().for_each(|e| e.visit(f));
    }

    /// Calls `f` for all subexpressions, then for the expression.
    pub fn visit_mut(&mut self, f: &mut impl FnMut(&mut Expr)) {
        children!(self).into_iter().for_each(|e| e.visit_mut(f));
        f(self);
    }

    /// Whether `is` holds for the expression or a subexpression.
    pub fn any(&self, is: &impl Fn(&Expr) -> bool) -> bool {
        is(self) || children!(self).into_iter().any(|e| e.any(is))
    }

    /// Calls `f` for every register that it reads.
    pub fn registers(&self, f: &mut impl FnMut(RegId)) {
        self.visit(&mut |e| {
            if let Expr::Reg(r) = e {
                f(*r);
            }
        });
    }

    /// Whether it reads a register.
    pub fn reads(&self) -> bool {
        self.any(&|e| matches!(e, Expr::Reg(_)))
    }

    /// The location whose address is the leftmost operand, if any.
    pub fn base(&self) -> Option<LocId> {
        match self {
            Expr::Address(loc) => Some(*loc),
            Expr::Bin(_, _, base, _) => base.base(),
            _ => None,
        }
    }

    /// Its value, given the values of registers and addresses; `None` if a needed one is unknown.
    pub fn value(&self, leaf: &impl Fn(&Expr) -> Option<i64>) -> Option<i64> {
        let of = |e: &Expr| e.value(leaf);
        match self {
            Expr::Const(v) => Some(*v),
            Expr::Reg(_) | Expr::Address(_) => leaf(self),
            Expr::Bin(BinOp::Unknown, ..) => None,
            Expr::Bin(op, ty, a, b) => Some(op.apply(*ty, of(a)?, of(b)?)),
            Expr::Cmp(op, ty, a, b) => Some(i64::from(op.holds(*ty, of(a)?, of(b)?))),
            Expr::Select(c, a, b) => of(if of(c)? != 0 { a } else { b }),
            Expr::Cast(ty, a) => of(a).map(|v| ty.wrap(v)),
            Expr::Fused(fused, three) => {
                let [a, b, c] = three.each_ref().map(|e| of(e));
                Some(fused.apply(a?, b?, c?))
            }
        }
    }
}
