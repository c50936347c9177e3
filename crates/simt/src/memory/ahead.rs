//! Looks ahead of a thread: finds the instructions that it could bind before their turn.
//!
//! The look starts at the next instruction and follows code whose path is known. It passes fences
//! and unresolved accesses, but no branch with unknown operands. There are four kinds of binds:
//! - A store with known operands may become visible.
//! - A load may take its source, if it acquires or if something later needs its value.
//! - An atomic may do both at once.
//! - An exchange may publish its write first and take its source later, because its new value does
//!   not depend on the old one.
//!
//! Each memory defines the meaning of a bind, and how the instruction keeps it at its turn.
//!
//! # Invariants
//! - Binds happen in an order that contains reads-from and value dependencies: no value justifies
//!   itself.
//! - The look passes a barrier only in programs without branches: then no value decides whether the
//!   barrier lets a thread pass.

use super::Context;
use crate::code::new_value;
use crate::code::{Access, AccessPlace, Act, Code, Fence};
use crate::record::{RunEvent, Spot};
use crate::thread::ThreadState;
use crate::{Early, Result, StepHalt};
use program::{BinOp, Expr, Proxy, RegId, Scope, Update};

/// The accesses, fences and barriers that a look may pass.
const WINDOW: usize = 8;
/// The micro-ops that a look may pass.
const MAX_WALK: usize = 100;

/// The parts of an instruction that can be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BindKind {
    Read,
    Write,
    Both,
    /// An exchange's write alone.
    Publish,
    /// The read of an exchange whose write was published.
    Catch,
}

/// A release whose turn has not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Release {
    /// The thread's clock at its turn.
    pub(super) clock: u32,
    pub(super) instr: usize,
    pub(super) scope: Scope,
}

/// A bind that is possible now.
#[derive(Clone, Debug)]
pub(super) struct BindCandidate {
    pub(super) instr: usize,
    pub(super) clock: u32,
    pub(super) what: BindKind,
    pub(super) place: AccessPlace,
    /// A store's value.
    pub(super) value: i64,
    /// Releases before or at it whose turn has not come, if they could head a release pattern
    /// through its write.
    pub(super) releases: Vec<Release>,
    /// The known registers, for the operands of an atomic.
    pub(super) regs: Vec<Option<i64>>,
}

impl BindCandidate {
    /// Chooses one of the candidates, and logs it.
    pub(super) fn choose(
        mut all: Vec<BindCandidate>,
        cx: &mut Context<'_>,
        thread: usize,
    ) -> Result<BindCandidate> {
        if all.is_empty() {
            return Err(StepHalt::Refused);
        }
        let chosen = all.swap_remove(cx.chooser.choose(all.len()));
        cx.log.note(RunEvent::Early(Spot {
            thread,
            instr: chosen.instr,
        }));
        Ok(chosen)
    }

    /// The value that an atomic writes after reading `read`; `None` if it writes nothing.
    pub(super) fn written(&self, atomic: &Act, read: i64) -> Result<Option<i64>> {
        let Act::Rmw {
            dst,
            update,
            read: from,
            write: to,
            ..
        } = atomic
        else {
            return Err(StepHalt::Refused);
        };
        let old = from.ty.wrap(read);
        let regs = once_read(update, *dst, &self.regs, old);
        new_value(update, old, from.ty, to.ty, &|e| known(e, &regs)).ok_or(StepHalt::Refused)
    }
}

/// The earlier bind of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlierBind {
    /// The value that its read took, if the read has a source.
    pub(super) read: Option<i64>,
    /// Whether its write is visible.
    pub(super) write: bool,
}

/// The position and the limits of a look.
pub(super) struct LookAhead<'a> {
    pub(super) code: &'a Code,
    pub(super) early: Early,
    /// The thread's number.
    pub(super) t: usize,
    pub(super) thread: &'a ThreadState,
    /// The binds of its instructions, by clock.
    pub(super) bound: &'a dyn Fn(u32) -> Option<EarlierBind>,
    /// The number of binds that the thread has.
    pub(super) binds: usize,
    /// Whether the memory lets a thread publish an exchange's write alone.
    pub(super) halves: bool,
    /// Whether arrivals at barriers are release fences.
    pub(super) fences: bool,
}

/// The value of an expression, as far as it does not depend on unknown registers.
pub(super) fn known(e: &Expr, regs: &[Option<i64>]) -> Option<i64> {
    match e {
        Expr::Const(v) => Some(*v),
        Expr::Reg(r) => regs[r.0 as usize],
        Expr::Address(_) => unreachable!("addresses were resolved"),
        Expr::Bin(op, ty, a, b) => match (known(a, regs), known(b, regs)) {
            (Some(a), Some(b)) => Some(op.apply(*ty, a, b)),
            (Some(0), _) | (_, Some(0)) if matches!(op, BinOp::And | BinOp::Mul) => Some(0),
            _ if a == b && matches!(op, BinOp::Xor | BinOp::Sub) => Some(0),
            _ => None,
        },
        Expr::Cmp(op, ty, a, b) => Some(i64::from(op.holds(*ty, known(a, regs)?, known(b, regs)?))),
        Expr::Select(c, a, b) => {
            if known(c, regs)? != 0 {
                known(a, regs)
            } else {
                known(b, regs)
            }
        }
        Expr::Cast(ty, a) => known(a, regs).map(|v| ty.wrap(v)),
        Expr::Fused(fused, three) => {
            let [a, b, c] = three.each_ref().map(|e| known(e, regs));
            Some(fused.apply(a?, b?, c?))
        }
    }
}

/// The instructions between a thread's next one and the one in view.
#[derive(Default)]
struct Passed {
    /// With their address (`None`: every address, or unknown).
    releases: Vec<(Release, Option<u16>)>,
    /// Addresses of accesses; mode `local` binds nothing past an access to the same address.
    addresses: Vec<u16>,
    /// Whether there was an instruction that mode `local` does not pass.
    wall: bool,
}

/// A look ahead over a thread's code.
struct AheadWalk {
    early: Early,
    pc: usize,
    clock: u32,
    /// The known registers.
    regs: Vec<Option<i64>>,
    passed: Passed,
    found: Vec<BindCandidate>,
}

impl AheadWalk {
    /// Adds a candidate, if the mode allows it there.
    fn offer(
        &mut self,
        what: BindKind,
        place: Option<AccessPlace>,
        value: i64,
        plain: bool,
        releases: Vec<Release>,
    ) {
        let Some(place) = place else { return };
        if self.early != Early::Local || plain && !self.passed.addresses.contains(&place.va) {
            let (instr, clock, regs) = (self.pc, self.clock, self.regs.clone());
            self.found.push(BindCandidate {
                instr,
                clock,
                what,
                place,
                value,
                releases,
                regs,
            });
        }
    }

    /// The instruction in view releases; without a place, through every later write.
    fn release(&mut self, scope: Scope, place: Option<AccessPlace>) {
        let release = Release {
            clock: self.clock,
            instr: self.pc,
            scope,
        };
        self.passed.releases.push((release, place.map(|p| p.va)));
    }

    fn set(&mut self, dst: RegId, value: Option<i64>) {
        self.regs[dst.0 as usize] = value;
    }
}

/// The registers for the operands of an atomic that has read a value, on which some operands
/// depend.
fn once_read(
    update: &Update,
    dst: Option<RegId>,
    regs: &[Option<i64>],
    old: i64,
) -> Vec<Option<i64>> {
    let mut regs = regs.to_vec();
    if let (Update::When { .. }, Some(dst)) = (update, dst) {
        regs[dst.0 as usize] = Some(old);
    }
    regs
}

/// Whether the operands of an atomic are known.
fn operands_known(update: &Update, dst: Option<RegId>, regs: &[Option<i64>]) -> bool {
    // Any value will do: the read comes before the operands.
    let regs = once_read(update, dst, regs, 0);
    update.operands().iter().all(|e| known(e, &regs).is_some())
}

impl LookAhead<'_> {
    /// The binds that are possible for the thread now.
    pub(super) fn candidates(&self) -> Vec<BindCandidate> {
        let thread = self.thread;
        let acts = &self.code.threads[self.t].acts;
        let mut walk = AheadWalk {
            early: self.early,
            pc: thread.pc,
            clock: thread.clock,
            regs: thread.regs.iter().copied().map(Some).collect(),
            passed: Passed::default(),
            found: Vec::new(),
        };
        let mut seen = 0;
        for _ in 0..MAX_WALK {
            let Some(act) = acts.get(walk.pc) else { break };
            if seen == WINDOW || walk.passed.wall && self.early == Early::Local {
                break;
            }
            seen += usize::from(!matches!(act, Act::Assign { .. } | Act::Branch { .. }));
            let Some(next) = self.pass(&mut walk, act) else {
                break;
            };
            walk.pc = next;
            walk.clock += 1;
        }
        if self.binds >= self.early.limit() {
            // Keeps only the candidates that complete an existing bind.
            walk.found.retain(|c| c.what == BindKind::Catch);
        }
        walk.found
    }

    /// Adds the binds of an instruction, and passes it; returns the next instruction, or `None` if
    /// the look ends here.
    fn pass(&self, walk: &mut AheadWalk, act: &Act) -> Option<usize> {
        let code = self.code;
        let mut next = walk.pc + 1;
        match act {
            Act::Load { dst, addr, access } => {
                let first = walk.clock == self.thread.clock;
                let bind = (self.bound)(walk.clock);
                let place = self.place(walk, addr, access, false);
                let value = bind.and_then(|b| b.read).map(|v| access.ty.wrap(v));
                let needed = code.threads[self.t].used[next][dst.0 as usize];
                if bind.is_none() && (!first && needed || first && access.acquire) {
                    walk.offer(BindKind::Read, place, 0, !access.acquire, Vec::new());
                }
                walk.passed.access(place, access, access.acquire);
                walk.set(*dst, value);
            }
            Act::Store {
                addr,
                value,
                access,
            } => {
                let first = walk.clock == self.thread.clock;
                let bind = (self.bound)(walk.clock);
                let place = self.place(walk, addr, access, true);
                let value = known(value, &walk.regs).map(|v| access.ty.wrap(v));
                if access.release {
                    walk.release(access.scope, place);
                }
                if let (None, false, Some(value)) = (bind, first, value) {
                    let releases = walk.passed.releases_for(place);
                    walk.offer(BindKind::Write, place, value, !access.release, releases);
                }
                walk.passed.access(place, access, access.release);
            }
            Act::Rmw { .. } => self.pass_atomic(walk, act),
            Act::Mark { mark: fence, .. } => {
                walk.passed.wall = true;
                for fence in fence.in_turn() {
                    if let Fence::Thread {
                        release: true,
                        scope,
                        ..
                    } = fence
                    {
                        walk.release(scope, None);
                    }
                }
            }
            Act::Barrier(_) if code.branches => return None,
            Act::Barrier(b) => {
                walk.passed.wall = true;
                if self.fences {
                    walk.release(b.scope.unwrap_or(Scope::Thread), None);
                }
            }
            // A value from the runtime or from another lane is never bound early.
            Act::Call(_) | Act::Enqueue(_) | Act::Give { .. } | Act::Take { .. } => return None,
            Act::Status { of, .. }
                if code
                    .program
                    .host
                    .as_deref()
                    .is_some_and(|h| h.query(*of).orders(h)) =>
            {
                return None;
            }
            Act::Choice { dst, .. } | Act::Status { dst, .. } => walk.set(*dst, None),
            Act::Assign { dst, value } => {
                let value = known(value, &walk.regs);
                walk.set(*dst, value);
            }
            Act::Branch { cond, target } => {
                if known(cond, &walk.regs)? != 0 {
                    next = *target;
                }
            }
        }
        Some(next)
    }

    /// Adds the binds of a read-modify-write, and passes it.
    fn pass_atomic(&self, walk: &mut AheadWalk, act: &Act) {
        let Act::Rmw {
            dst,
            addr,
            update,
            read,
            write,
        } = act
        else {
            unreachable!("a read-modify-write")
        };
        let bind = (self.bound)(walk.clock);
        let place = self.place(walk, addr, read, true);
        let old = bind.and_then(|b| b.read).map(|v| read.ty.wrap(v));
        if write.release {
            walk.release(write.scope, place);
        }
        let releases = walk.passed.releases_for(place);
        let plain = !read.acquire && !write.release;
        match bind {
            // Operations on an mbarrier object happen in the order of their turns.
            None if read.object.is_some() => {}
            None if operands_known(update, *dst, &walk.regs) => {
                if walk.clock != self.thread.clock || read.acquire {
                    walk.offer(BindKind::Both, place, 0, plain, releases.clone());
                }
                if let (Update::Exchange(e), Early::Full(_), true) =
                    (update, self.early, self.halves)
                {
                    let value = known(e, &walk.regs).map_or(0, |v| write.ty.wrap(v));
                    walk.offer(BindKind::Publish, place, value, plain, releases);
                }
            }
            Some(b) if b.read.is_none() && b.write => {
                walk.offer(BindKind::Catch, place, 0, plain, Vec::new());
            }
            _ => {}
        }
        walk.passed.access(place, read, !plain);
        if let Some(dst) = dst {
            walk.set(*dst, old);
        }
    }

    fn place(
        &self,
        walk: &AheadWalk,
        addr: &Expr,
        access: &Access,
        write: bool,
    ) -> Option<AccessPlace> {
        let address = known(addr, &walk.regs)?;
        self.code.place(self.t, address, access.ty, write)
    }
}

impl Passed {
    fn access(&mut self, place: Option<AccessPlace>, access: &Access, wall: bool) {
        self.addresses.extend(place.map(|p| p.va));
        self.wall |= wall || place.is_none() || access.proxy != Proxy::Generic;
    }

    /// The releases that could head a release pattern through a write to that place.
    fn releases_for(&self, place: Option<AccessPlace>) -> Vec<Release> {
        let matters = |va: &Option<u16>| va.is_none_or(|va| place.is_none_or(|p| p.va == va));
        self.releases
            .iter()
            .filter(|r| matters(&r.1))
            .map(|r| r.0)
            .collect()
    }
}
