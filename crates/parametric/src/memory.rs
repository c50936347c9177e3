//! Accesses of one thread: the object and offset of an address, and what a read gives.
//!
//! | memory | a read gives |
//! |---|---|
//! | that nothing writes | a function of the address |
//! | of the thread alone, at a constant place | what the thread wrote last, if that is known |
//! | that the kernel writes, in a kernel that synchronizes by barriers of blocks alone | what other threads of the block read by the same instruction there, in the same iterations and barrier interval |
//! | other | any value |
//!
//! # Invariants
//! - The third row holds up to the first race of an execution: a write between two such reads would
//!   race with one of them. So it proves a kernel race-free, and nothing of a kernel that races.
//! - A ticket is what an atomic addition reads. Up to the first race, two additions to the same
//!   place read values that are at least the first summand apart, as long as nothing but such
//!   additions writes there.

use program::tags::Tag;
use program::{
    BarrierAction, BarrierNaming, BinOp, EventKind, Expr, LocId, LocationKind, Op, Program, Scope,
    Space, Ty, Update,
};

use crate::exec::{AccessAt, Counter, Does, Exec, State};
use crate::term::{Level, Node, Origin, Symbol, Term, range_of};

/// A place in the memory of one thread: an object, an offset and a type.
pub(crate) type Cell = (LocId, i64, Ty);

/// What an atomic addition reads.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// The condition under which it happens.
    pub guard: Term,
    /// The value that it reads.
    pub value: Term,
    /// What it adds.
    pub by: Term,
    /// The object.
    pub object: LocId,
    /// Whether each block has one of its own.
    pub is_shared: bool,
    /// The number of bytes behind its beginning.
    pub offset: Term,
    /// The barrier interval in which two additions have to be, if the kernel writes the object in
    /// other ways, too.
    pub interval: Option<Term>,
}

/// How a program writes its objects.
pub(crate) struct Writes {
    /// The objects that some instruction may write.
    written: Vec<bool>,
    /// The objects that only atomic additions write, and plain stores.
    counted: Vec<bool>,
    /// Those of them that no plain store writes.
    added: Vec<bool>,
    /// Whether nothing but barriers of a block orders accesses.
    only_barriers: bool,
}

impl Writes {
    pub(crate) fn of(program: &Program) -> Writes {
        let count = program.locations.len();
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
            let mut bases = Vec::new();
            if let Some(address) = instr.op.address() {
                address.visit(&mut |e| {
                    if let Expr::Address(loc) = e {
                        bases.push(usize::from(program.object(*loc).0));
                    }
                });
            }
            if bases.is_empty() {
                bases.extend(0..count);
            }
            let (is_sum, is_store) = (added(&instr.op).is_some(), is_plain_store(&instr.op));
            for object in bases {
                writes.written[object] = true;
                writes.counted[object] &= is_sum || is_store;
                writes.added[object] &= is_sum;
            }
        }
        writes
    }
}

/// The summand of an atomic addition.
fn added(op: &Op) -> Option<&Expr> {
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

fn is_plain_store(op: &Op) -> bool {
    matches!(op, Op::Store { access, .. } if access.scope.is_none()) && !op.has(Tag::Asynchronous)
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

impl Exec<'_> {
    /// An access; what it reads.
    pub(crate) fn access(
        &mut self,
        at: usize,
        state: &mut State,
        addr: &Expr,
        does: Does,
        access: &program::Access,
    ) -> Term {
        let address = self.eval(at, addr, state);
        let Some(places) = self.places(address) else {
            self.unknown(at, "an address of which the object is not known");
            state.cells.clear();
            return self.free(at, access.ty);
        };
        let is_one = places.len() == 1;
        let mut value: Option<Term> = None;
        for (cond, object, offset) in places {
            let space = match &self.program.location(object).kind {
                LocationKind::Object { space, .. } => *space,
                LocationKind::Alias { .. } => continue,
            };
            let guard = self.terms.and(vec![state.guard, cond]);
            let place = (guard, object, offset);
            let held = if space.is_local() {
                self.private(at, state, (object, offset), (does, access.ty), is_one)
            } else {
                let held = self.held(at, state, (object, offset), (does, access));
                if self.recording {
                    self.note(at, state, place, does, access);
                    self.note_ticket(at, state, place, held);
                }
                held
            };
            value = Some(match value {
                None => held,
                Some(other) => self.terms.ite(cond, held, other),
            });
        }
        value.unwrap_or_else(|| self.free(at, access.ty))
    }

    /// The counter of barriers that order memory of a kind.
    fn counter_of(&self, object: LocId) -> usize {
        let is_shared = matches!(
            &self.program.location(object).kind,
            LocationKind::Object {
                space: Space::Shared,
                ..
            }
        );
        self.counter(match is_shared {
            true => Counter::Shared,
            false => Counter::Global,
        })
    }

    /// Notes an access.
    fn note(
        &mut self,
        at: usize,
        state: &State,
        (guard, object, offset): (Term, LocId, Term),
        does: Does,
        access: &program::Access,
    ) {
        let counter = self.counter_of(object);
        let groups = state.regs[self.counter(Counter::Groups)];
        let complete = [Counter::Complete, Counter::AtBarrier];
        let complete = complete.map(|counter| state.regs[self.counter(counter)]);
        let strong = access.tags.has(Tag::Atomic) || is_strong(&access.tags, self.program);
        self.found.accesses.push(AccessAt {
            guard,
            facts: [&state.facts[..], &state.within].concat(),
            does,
            atomic: access.scope.filter(|_| strong),
            object,
            offset,
            bytes: access.ty.bytes(),
            interval: state.regs[counter],
            kind: counter - self.program.threads[0].regs.len(),
            copy: { access.tags.has(Tag::Asynchronous) }.then_some(groups),
            complete,
            of_warp: state.regs[self.of_warps()].to_vec(),
            iterations: self.outer.clone(),
            at: self.origin[at],
            order: at,
        });
    }

    /// Notes what an atomic addition reads.
    fn note_ticket(
        &mut self,
        at: usize,
        state: &State,
        (guard, object, offset): (Term, LocId, Term),
        value: Term,
    ) {
        let code = self.code;
        let Some(by) = added(&code[at].op) else {
            return;
        };
        let by = self.eval(at, by, state);
        let number = usize::from(object.0);
        let interval = match self.writes.added[number] {
            true => None,
            false if self.writes.only_barriers && self.is_shared(object) => {
                Some(state.regs[self.counter_of(object)])
            }
            false => return,
        };
        if self.writes.counted[number] && self.terms.range(by).0 >= 0 {
            self.found.tickets.push(Ticket {
                guard,
                value,
                by,
                object,
                is_shared: self.is_shared(object),
                offset,
                interval,
            });
        }
    }

    fn is_shared(&self, object: LocId) -> bool {
        self.counter_of(object) == self.counter(Counter::Shared)
    }

    /// What a read of memory gives that other threads see.
    fn held(
        &mut self,
        at: usize,
        state: &State,
        (object, offset): (LocId, Term),
        (does, access): (Does, &program::Access),
    ) -> Term {
        let LocationKind::Object { space, init, .. } = &self.program.location(object).kind else {
            return self.free(at, access.ty);
        };
        let is_read = does == Does::Reads;
        let begins = *space != Space::Shared && !init.is_empty();
        if is_read && begins && !self.writes.written[usize::from(object.0)] {
            return self.constant_memory(object, offset, access.ty);
        }
        let is_plain = access.scope.is_none() && !access.tags.has(Tag::Volatile);
        if !(is_read && is_plain && self.trusting && self.writes.only_barriers) {
            return self.free(at, access.ty);
        }
        let symbol = Symbol {
            name: format!("value read at instruction {at}"),
            level: Level::Block,
            origin: Origin::Free,
            range: range_of(access.ty),
        };
        let id = self.terms.declare(symbol);
        let interval = state.regs[self.counter_of(object)];
        let mut args = self.outer.clone();
        args.extend([offset, interval]);
        self.found.trusts = true;
        self.terms.add(Node::Symbol(id, args))
    }

    /// An access to memory of the thread alone.
    fn private(
        &mut self,
        at: usize,
        state: &mut State,
        (object, offset): (LocId, Term),
        (does, ty): (Does, Ty),
        is_one: bool,
    ) -> Term {
        let cell = self
            .terms
            .constant(offset)
            .map(|offset| (object, offset, ty));
        let known = cell
            .filter(|_| is_one)
            .and_then(|cell| state.cells.get(&cell));
        let held = known.copied();
        if does != Does::Reads {
            // A store whose value is known follows in `store`.
            let over = |(other, from, of): &Cell| match cell {
                Some((_, to, _)) => {
                    *other == object
                        && *from < to + i64::from(ty.bytes())
                        && to < from + i64::from(of.bytes())
                }
                None => *other == object,
            };
            state.cells.retain(|cell, _| !over(cell));
        }
        held.unwrap_or_else(|| self.free(at, ty))
    }

    /// Notes what a thread stores in its own memory.
    pub(crate) fn store(
        &mut self,
        at: usize,
        state: &mut State,
        (addr, value): (&Expr, &Expr),
        ty: Ty,
    ) {
        let address = self.eval(at, addr, state);
        let places = self.places(address).unwrap_or_default();
        let [(_, object, offset)] = places[..] else {
            return;
        };
        let is_local = matches!(
            &self.program.location(object).kind,
            LocationKind::Object { space, .. } if space.is_local()
        );
        if let (true, Some(offset)) = (is_local, self.terms.constant(offset)) {
            let value = self.eval(at, value, state);
            let value = self.terms.cast(ty, value);
            state.cells.insert((object, offset, ty), value);
        }
    }

    /// Forgets what a loop may write in the memory of the thread.
    pub(crate) fn forget(&self, header: usize, end: usize, state: &mut State) {
        for instr in &self.code[header..=end] {
            if instr.op.write().is_none() {
                continue;
            }
            match instr.op.address().and_then(Expr::base) {
                Some(loc) => {
                    let object = self.program.object(loc);
                    state.cells.retain(|(other, ..), _| *other != object);
                }
                None => state.cells.clear(),
            }
        }
    }

    /// What memory holds that no thread writes.
    fn constant_memory(&mut self, object: LocId, offset: Term, ty: Ty) -> Term {
        let name = self.program.location(object).name.clone();
        let id = match self.memory.get(&(object, ty)) {
            Some(id) => *id,
            None => {
                let symbol = Symbol {
                    name,
                    level: Level::Grid,
                    origin: Origin::Memory,
                    range: range_of(ty),
                };
                let id = self.terms.declare(symbol);
                self.memory.insert((object, ty), id);
                id
            }
        };
        self.terms.add(Node::Symbol(id, vec![offset]))
    }

    /// The objects that an address may be of, each with its condition and offset.
    pub(crate) fn places(&mut self, address: Term) -> Option<Vec<(Term, LocId, Term)>> {
        let (yes, zero) = (self.terms.int(1), self.terms.int(0));
        match *self.terms.node(address) {
            Node::Address(loc) => Some(vec![(yes, loc, zero)]),
            Node::Cast(ty, inner) if ty.bits >= 32 => self.places(inner),
            Node::Ite(cond, a, b) => {
                let not = self.terms.not(cond);
                let mut all = Vec::new();
                for (way, part) in [(cond, a), (not, b)] {
                    // An address that is not aligned becomes 0, and points to no memory.
                    if self.terms.constant(part) == Some(0) {
                        continue;
                    }
                    for (c, loc, offset) in self.places(part)? {
                        all.push((self.terms.and(vec![way, c]), loc, offset));
                    }
                }
                Some(all)
            }
            Node::Bin(op @ (BinOp::Add | BinOp::Sub), ty, a, b) if ty.bits >= 32 => {
                let (base, by) = match self.places(a) {
                    Some(base) => (base, b),
                    None if op == BinOp::Add => (self.places(b)?, a),
                    None => return None,
                };
                // Addresses of shared memory have 32 bits in PTX and wrap around, so the summand
                // may be negative.
                let by = match ty.bits {
                    32 => self.terms.cast(Ty::S32, by),
                    _ => by,
                };
                let mut all = Vec::new();
                for (cond, loc, offset) in base {
                    all.push((cond, loc, self.terms.bin(op, Ty::WORD, offset, by)));
                }
                Some(all)
            }
            _ => None,
        }
    }
}

/// Whether an access of PTX is strong (PTX ISA, Memory Consistency Model, Strong Operations).
fn is_strong(tags: &program::Tags, program: &Program) -> bool {
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
