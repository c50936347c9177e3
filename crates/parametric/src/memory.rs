//! Accesses of one thread: the object and offset of an address, and what a read gives.
//!
//! | memory | a read gives |
//! |---|---|
//! | that nothing writes | a function of the address |
//! | of the thread alone | the thread's last write to the place, if its value is known |
//! | that the thread wrote, and did not synchronize since | the same |
//! | that the kernel writes, if only barriers of blocks synchronize it | one value, see below |
//! | other | any value |
//!
//! In the fourth row, threads of a block read one value by the same instruction at the same place,
//! in the same iterations and barrier interval.
//!
//! # Invariants
//! - The third and fourth row hold up to the first race of an execution: a write of another thread
//!   in between would race. Only synchronization of the thread itself orders such a write behind
//!   its own write and before its read. So these rows prove a kernel race-free, and nothing of a
//!   kernel that races.
//! - A ticket is what an atomic addition reads. Up to the first race, two additions to the same
//!   place read values that are at least the first summand apart, as long as nothing but such
//!   additions writes there. A large summand stands for a subtraction, so it tells nothing.

use program::tags::Tag;
use program::{Access, BinOp, Dialect, Expr, LocId, LocationKind, Space, Ty};

use crate::exec::{AccessAt, Counter, Exec, MemoryEffect, PlaceAt, State};
use crate::operations::{Cell, Ticket, added, is_plain, is_strong, synchronizes};
use crate::term::{Level, Node, Origin, Symbol, SymbolId, Term, range_of};

/// So many additions to one place do not make its value wrap around.
const MANY: i128 = 1 << 16;

/// A place that an access may reach, if a condition holds.
#[derive(Clone, Copy)]
pub(crate) struct GuardedPlace {
    pub(crate) guard: Term,
    pub(crate) object: LocId,
    /// In bytes, from the start of the object.
    pub(crate) offset: Term,
}

impl Exec<'_> {
    /// An access; what it reads.
    pub(crate) fn access(
        &mut self,
        at: usize,
        state: &mut State,
        addr: &Expr,
        does: MemoryEffect,
        access: &Access,
    ) -> Term {
        let address = self.eval(at, addr, state);
        let Some(places) = self.places(address) else {
            self.unknown(at, "an address of which the object is not known");
            state.cells.clear();
            return self.free(at, access.ty);
        };
        if self.recording && self.may_be_null(address) {
            self.found.nulls.insert(self.origin[at]);
        }
        let is_one = places.len() == 1;
        let mut value: Option<Term> = None;
        for mut place in places {
            let space = match &self.program.location(place.object).kind {
                LocationKind::Object { space, .. } => *space,
                LocationKind::Alias { .. } => continue,
            };
            let number = usize::from(place.object.0);
            let is_holder = self.targets.iter().any(|t| t.holder == place.object);
            if does != MemoryEffect::Reads && is_holder && !self.writes.written[number] {
                self.unknown(at, "a parameter is written through a pointer");
            }
            let cond = place.guard;
            place.guard = self.terms.and(vec![state.guard, cond]);
            self.note_place(at, state, place, access.ty);
            let cell = (place.object, place.offset, access.ty);
            let known = state.cells.get(&cell).copied().filter(|_| is_one);
            if does != MemoryEffect::Reads {
                // A store whose value is known follows in `store`.
                self.overwrite(state, cell);
            }
            let held = if space.is_local() {
                let known = known.filter(|_| self.reads.remembers);
                known.unwrap_or_else(|| self.free(at, access.ty))
            } else {
                let is_own = does == MemoryEffect::Reads && is_plain(access, self.program);
                let known = known.filter(|_| is_own && self.reads.trusting);
                self.found.trusts |= known.is_some();
                let held = known.unwrap_or_else(|| self.held(at, state, place, does, access));
                if self.recording {
                    self.note(at, state, place, does, access);
                    self.note_ticket(at, state, place, (held, access.ty));
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
        self.counter(match self.program.is_shared(object) {
            true => Counter::Shared,
            false => Counter::Global,
        })
    }

    /// Notes an access.
    fn note(
        &mut self,
        at: usize,
        state: &State,
        place: GuardedPlace,
        does: MemoryEffect,
        access: &Access,
    ) {
        let counter = self.counter_of(place.object);
        let groups = state.regs[self.counter(Counter::Groups)];
        let complete = [Counter::Complete, Counter::AtBarrier];
        let complete = complete.map(|counter| state.regs[self.counter(counter)]);
        let of_group = match access.tags.has(Tag::Asynchronous) {
            true => self.of_group(state),
            false => None,
        };
        let waited = self.waited(state);
        let strong = access.tags.has(Tag::Atomic) || is_strong(&access.tags, self.program);
        self.found.accesses.push(AccessAt {
            guard: place.guard,
            facts: [&state.facts[..], &state.within].concat(),
            does,
            atomic: access.scope.filter(|_| strong),
            object: place.object,
            offset: place.offset,
            bytes: access.ty.bytes(),
            interval: state.regs[counter],
            kind: counter - self.program.threads[0].regs.len(),
            copy: { access.tags.has(Tag::Asynchronous) }.then_some(match of_group {
                Some((_, begun)) => begun,
                None => groups,
            }),
            of_group: of_group.map(|(place, _)| place),
            waited,
            complete,
            of_warp: state.regs[self.of_warps()].to_vec(),
            iterations: self.outer.clone(),
            at: self.origin[at],
            order: at,
        });
    }

    /// Notes the place of an access.
    fn note_place(&mut self, at: usize, state: &State, place: GuardedPlace, ty: Ty) {
        if !self.recording {
            return;
        }
        self.found.places.push(PlaceAt {
            guard: place.guard,
            facts: [&state.facts[..], &state.within].concat(),
            object: place.object,
            offset: place.offset,
            bytes: ty.bytes(),
            at: self.origin[at],
        });
    }

    /// Notes what an atomic addition reads: a value of a type.
    fn note_ticket(&mut self, at: usize, state: &State, place: GuardedPlace, read: (Term, Ty)) {
        let (value, ty) = read;
        let GuardedPlace {
            guard,
            object,
            offset,
        } = place;
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
        let (most, range) = (range_of(ty).1 / MANY, self.terms.range(by));
        if self.writes.counted[number] && range.0 >= 0 && range.0 <= most {
            self.found.tickets.push(Ticket {
                guard,
                value,
                by,
                most: most as i64,
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
        place: GuardedPlace,
        does: MemoryEffect,
        access: &Access,
    ) -> Term {
        let GuardedPlace { object, offset, .. } = place;
        let LocationKind::Object { space, init, .. } = &self.program.location(object).kind else {
            return self.free(at, access.ty);
        };
        let is_read = does == MemoryEffect::Reads;
        let begins = *space != Space::Shared && !init.is_empty();
        if is_read && begins && !self.writes.written[usize::from(object.0)] {
            return self.constant_memory(object, offset, access.ty);
        }
        if !(is_read
            && is_plain(access, self.program)
            && self.reads.trusting
            && self.writes.only_barriers)
        {
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

    /// Forgets what memory holds where a thread writes a place.
    fn overwrite(&self, state: &mut State, cell: Cell) {
        state.cells.retain(|other, _| self.are_apart(*other, cell));
    }

    /// Whether two places are seen not to overlap.
    fn are_apart(&self, a: Cell, b: Cell) -> bool {
        let [(x, m), (y, n)] = [a.1, b.1].map(|t| self.based(t));
        let [before, behind] = [a.2, b.2].map(|ty| i64::from(ty.bytes()));
        let distance = n.wrapping_sub(m);
        a.0 != b.0 || (x == y && (distance >= before || distance <= -behind))
    }

    /// A sum without its constant, and that constant.
    fn based(&self, t: Term) -> (Option<Term>, i64) {
        match *self.terms.node(t) {
            Node::Const(n) => (None, n),
            Node::Bin(BinOp::Add, Ty::WORD, a, b) => match self.terms.constant(b) {
                Some(n) => (Some(a), n),
                None => (Some(t), 0),
            },
            _ => (Some(t), 0),
        }
    }

    /// Notes what a thread stores.
    pub(crate) fn store(
        &mut self,
        at: usize,
        state: &mut State,
        addr: &Expr,
        value: &Expr,
        access: &Access,
    ) {
        let address = self.eval(at, addr, state);
        let places = self.places(address).unwrap_or_default();
        let [GuardedPlace { object, offset, .. }] = places[..] else {
            return;
        };
        let LocationKind::Object { space, .. } = &self.program.location(object).kind else {
            return;
        };
        if space.is_local() || is_plain(access, self.program) {
            let value = self.eval(at, value, state);
            let value = self.terms.cast(access.ty, value);
            state.cells.insert((object, offset, access.ty), value);
        }
    }

    /// Forgets what others may write as soon as a thread synchronizes with them.
    pub(crate) fn forget_shared(&self, state: &mut State) {
        state.cells.retain(|(object, ..), _| {
            matches!(
                &self.program.location(*object).kind,
                LocationKind::Object { space, .. } if space.is_local()
            )
        });
    }

    /// Forgets what a loop may write.
    pub(crate) fn forget(&self, header: usize, end: usize, state: &mut State) {
        if self.code[header..=end].iter().any(|i| synchronizes(&i.op)) {
            self.forget_shared(state);
        }
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

    /// Whether an address of a language with pointers may be null.
    fn may_be_null(&self, address: Term) -> bool {
        let is_compiled = matches!(self.program.dialect, Dialect::Ptx);
        match *self.terms.node(address) {
            Node::Const(0) => !is_compiled,
            Node::Cast(_, inner) => self.may_be_null(inner),
            Node::Ite(_, a, b) | Node::Bin(BinOp::Add, _, a, b) => {
                self.may_be_null(a) || (self.may_be_null(b) && !self.is_offset(address))
            }
            _ => false,
        }
    }

    /// Whether a term is a sum, whose second part is a distance.
    fn is_offset(&self, t: Term) -> bool {
        matches!(self.terms.node(t), Node::Bin(..))
    }

    /// The object that a pointer of a parameter structure leads to, if a value is one.
    fn target(&mut self, id: SymbolId, args: &[Term]) -> Option<Vec<GuardedPlace>> {
        let offset = self.terms.constant(*args.first()?)?;
        let of = self.memory.iter().find(|(_, symbol)| **symbol == id);
        let holder = of.map(|((object, _), _)| *object)?;
        let mut targets = self.targets.iter().filter(|t| t.holder == holder);
        let target = targets.find(|t| t.offset == offset)?;
        if self.recording {
            self.found.followed.insert(holder);
        }
        Some(vec![GuardedPlace {
            guard: self.terms.int(1),
            object: target.object,
            offset: self.terms.int(0),
        }])
    }

    /// The objects that an address may be of, each with its condition and offset.
    pub(crate) fn places(&mut self, address: Term) -> Option<Vec<GuardedPlace>> {
        match *self.terms.node(address) {
            Node::Address(object, _) => Some(vec![GuardedPlace {
                guard: self.terms.int(1),
                object,
                offset: self.terms.int(0),
            }]),
            Node::Symbol(id, ref args) => {
                let args = args.clone();
                self.target(id, &args)
            }
            // A null pointer points to no memory.
            Node::Const(0) => Some(Vec::new()),
            Node::Cast(ty, inner) if ty.bits >= 32 => self.places(inner),
            Node::Ite(cond, a, b) => {
                let not = self.terms.not(cond);
                let mut all = Vec::new();
                for (way, part) in [(cond, a), (not, b)] {
                    // An address that is not aligned becomes 0.
                    for mut place in self.places(part)? {
                        place.guard = self.terms.and(vec![way, place.guard]);
                        all.push(place);
                    }
                }
                Some(all)
            }
            Node::Bin(op @ (BinOp::Add | BinOp::Sub), ty, a, b) if ty.bits >= 32 => {
                let (mut places, by) = match self.places(a) {
                    Some(places) if !places.is_empty() || op == BinOp::Sub => (places, b),
                    none => match (self.places(b), none) {
                        (Some(places), _) if op == BinOp::Add => (places, a),
                        (_, Some(none)) => (none, b),
                        _ => return None,
                    },
                };
                // Addresses of shared memory have 32 bits in PTX and wrap around, so the summand
                // may be negative.
                let by = match ty.bits {
                    32 => self.terms.cast(Ty::S32, by),
                    _ => by,
                };
                for place in &mut places {
                    place.offset = self.terms.bin(op, Ty::WORD, place.offset, by);
                }
                Some(places)
            }
            _ => None,
        }
    }
}
