//! Lowers the functions of pipes in OpenCL C: packets, reservations, queries.
//!
//! # Invariants
//! - Every access to a pipe is a relaxed atomic operation, so a pipe orders nothing but itself.
//!   One read-modify-write of the state takes entries, so no two work-items have the same one.
//! - For each place that reserves, a work-item keeps the open reservation, and a bit for each of
//!   its entries that it wrote. A violated precondition is an event `MISUSE`, as is a reservation
//!   that is open at the end.
//! - A group makes a reservation, or commits it, by its first work-item. All of the group meet.
//! - An entry that is committed without a write is written with a value that code must not read.
//!
//! # Sources
//! - OpenCL C, *Pipe Functions*; *Built-in Pipe Read and Write Functions*; *Built-in Work-group
//!   Pipe Read and Write Functions*; *Built-in Sub-Group Pipe Functions*; *Pipe Query Functions*;
//!   their restrictions.
//!
//! # Where we differ
//! - A reservation has a constant number of entries, the same in all places of a kernel that
//!   reserve entries of a pipe. It stays in private memory.
//! - A place that reserves again while its reservation is open gives no verdict. In a loop, it
//!   stands before the uses.
//! - No verdict follows from the number of packets while entries are reserved.

use std::ops::Range;

use super::ast::{Expr as Tree, ExprKind, Storage, TypeName};
use super::lower::Lowering;
use super::pipe_words::{
    MOST_RESERVED, PipeAction, PipeEnd, PipeParameter, PipeState, Reservation, ReserveSite, STATE,
    action, add, bin, cmp, state_name,
};
use super::place::{Place, shifted};
use super::scope::Binding;
use super::types::{Qualified, Type, Value};
use crate::isa::ptx::LaneSet;
use program::{
    Access, BinOp, CmpOp, Expr, Init, LocId, MemoryKind, Op, Scope, Tag, Tags, Ty, Update,
};

/// An access to a pipe.
fn access(end: PipeEnd, ty: Ty, rmw: bool) -> Access {
    let mut tags = Tags::of(&[Tag::Atomic, Tag::Relaxed, end.tag()]);
    if rmw {
        tags.insert(Tag::Rmw);
    }
    let scope = Some(Scope::Gpu);
    Access { tags, scope, ty }
}

fn both(a: Expr, b: Expr) -> Expr {
    Expr::Bin(BinOp::And, Ty::S32, a.into(), b.into())
}

/// The numbers of a packet, each with the byte at which it begins.
fn cells(of: &Qualified) -> Vec<(i64, Qualified)> {
    match of.word() {
        Some(_) => vec![(0, of.clone())],
        None => {
            let parts = of.parts().into_iter();
            parts.map(|(at, part)| (at as i64, part)).collect()
        }
    }
}

fn equal(a: Expr, b: Expr) -> Expr {
    cmp(CmpOp::Eq, a, b)
}

impl Lowering<'_, '_> {
    /// Takes a parameter that is a pipe. The memory of its name is the pipe.
    pub(super) fn bind_pipe(&mut self, param: &TypeName) -> bool {
        if param.specifiers.has(Storage::Pipe).is_none() {
            return false;
        }
        let name = &param.declarator.name;
        let word = self.str(name).to_owned();
        let has = |storage| param.specifiers.has(storage);
        if has(Storage::ReadWrite).is_some()
            || (has(Storage::ReadOnly).is_some() && has(Storage::WriteOnly).is_some())
        {
            self.refuse_both_ends(name);
            return true;
        }
        let end = match has(Storage::WriteOnly) {
            Some(_) => PipeEnd::Write,
            None => PipeEnd::Read,
        };
        let Some(of) = self.kernel_parameter(param) else {
            return true;
        };
        let Some(parameter) = self.pipe_of_memory(word, end) else {
            let message = format!("nothing is bound to the pipe `{}`", self.str(name));
            self.error("unbound-parameter", name, message, |d| {
                d.label("expected a pipe of that name").help(
                    "declare it in `[memory]`: `p = { type = \"int\", kind = \"pipe\", size = 4 }`",
                )
            });
            return true;
        };
        let mut others = self.pipes.iter();
        if others.any(|other| other.packets == parameter.packets && other.end != end) {
            self.refuse_both_ends(name);
            return true;
        }
        let there = self.of_location(parameter.packets);
        if of.ty != there.ty || !param.declarator.pointers.is_empty() {
            let message = format!("the packets of this pipe are `{}`", there.ty.name());
            let expected = format!("expected `{} pipe {}`", end.words().0, there.ty.name());
            self.error("wrong-operand", name, message, |d| {
                d.label(expected)
                    .note("clCreatePipe gives the size of a packet (OpenCL API, Pipes)")
            });
        }
        self.pipes.push(parameter);
        true
    }

    fn refuse_both_ends(&mut self, name: &Range<usize>) {
        let message = "a kernel cannot read from and write to the same pipe";
        self.error("wrong-operand", name, message, |d| {
            d.label("expected `read_only` or `write_only`, and another pipe for the other end")
                .note("OpenCL C, Pipe Functions")
        });
    }

    fn pipe_of_memory(&mut self, name: String, end: PipeEnd) -> Option<PipeParameter> {
        let packets = match self.scopes.find(&name) {
            Some(Binding::Register(given)) => match self.initial(given.reg) {
                Init::Address { loc, index: 0 } => Some(loc),
                _ => None,
            },
            _ => self.location(&name),
        };
        let packets = packets.filter(|loc| self.is_pipe(*loc))?;
        let state = state_name(&self.symbols.get(packets).name);
        let state = self.symbols.find(&state)?;
        let most = self.symbols.elements(packets) as i64;
        Some(PipeParameter {
            name,
            end,
            packets,
            state,
            most,
            sites: Vec::new(),
            entries: None,
            is_used: false,
        })
    }

    fn is_pipe(&self, loc: LocId) -> bool {
        self.symbols.object(loc).1.kind == MemoryKind::Pipe
    }

    /// Reports a pipe that code uses like other memory.
    pub(super) fn refuse_pipe(&mut self, loc: LocId, range: &Range<usize>) {
        if !self.is_pipe(loc) {
            return;
        }
        let message = format!("`{}` is a pipe", self.str(range));
        self.error("wrong-operand", range, message, |d| {
            d.label("expected `read_pipe(…)`, `write_pipe(…)` or another function of pipes")
                .note(
                    "\"Pipe objects can only be accessed using built-in functions that read from \
                     and write to a pipe\" (OpenCL API, Pipes)",
                )
        });
    }

    /// Reports a reservation in memory that other work-items could read.
    pub(super) fn refuse_shared_reservation(&mut self, range: &Range<usize>) {
        let message = "a reservation outside of private memory is not supported";
        self.error("unsupported", range, message, |d| {
            d.label("expected a private variable: all work-items of a group get its reservation")
        });
    }

    /// A call of a function of pipes; `None`: it is another function.
    pub(super) fn pipe_call(&mut self, word: &str, tree: &Tree, args: &[Tree]) -> Option<Value> {
        let action = action(word).filter(|_| self.env.language.row().regions)?;
        let [least, most] = action.arguments();
        let fits = match action {
            PipeAction::Packet(_) => [least, most].contains(&args.len()),
            _ => args.len() == most,
        };
        let nothing = self.nothing();
        if !fits {
            let message = format!("`{word}` does not take {} arguments", args.len());
            let expected = match action {
                PipeAction::Packet(_) => "expected a pipe and a pointer; between them may be a \
                                          reservation and an index"
                    .to_owned(),
                _ => format!("expected {most}"),
            };
            self.error("wrong-operands", &tree.range, message, |d| {
                d.label(expected)
            });
            return Some(nothing);
        }
        if let (PipeAction::IsValid, [id]) = (action, args) {
            let id = Reservation(self.eval(id).fit(STATE));
            return Some(Value::new(id.is_valid(), Type::Bool));
        }
        let done = self.pipe_named(action, &args[0]).and_then(|pipe| {
            Some(match (action, &args[1..]) {
                (PipeAction::Packet(end), [pointer]) => self.packet(&pipe, end, pointer)?,
                (PipeAction::Packet(end), [id, index, pointer]) => {
                    self.reserved_packet(&pipe, end, [id, index, pointer])?
                }
                (PipeAction::Reserve(end, group), [n]) => self.reserve(&pipe, end, group, n)?,
                (PipeAction::Commit(end, group), [id]) => self.commit(&pipe, end, group, id)?,
                (PipeAction::MostPackets, _) => Value::of(Expr::Const(pipe.most), Ty::U32),
                _ => self.number_of_packets(&pipe),
            })
        });
        Some(done.unwrap_or(nothing))
    }

    /// The pipe that an argument names.
    fn pipe_named(&mut self, action: PipeAction, tree: &Tree) -> Option<PipeParameter> {
        let word = self.str(&tree.range);
        let named = matches!(tree.kind, ExprKind::Name);
        let found = self.pipes.iter().find(|pipe| named && pipe.name == word);
        let Some(pipe) = found.cloned() else {
            self.error("wrong-operand", &tree.range, "this is not a pipe", |d| {
                d.label("expected a pipe that the kernel takes: `read_only pipe int p`")
                    .note("OpenCL C, Pipe Functions: Restrictions")
            });
            return None;
        };
        if action.end().is_some_and(|end| end != pipe.end) {
            let (is, not) = pipe.end.words();
            let message = format!("the pipe `{}` is {is}, and is {not}", pipe.name);
            self.error("wrong-operand", &tree.range, message, |d| {
                d.label("expected the other end, in another kernel").note(
                    "\"A kernel cannot read from and write to the same pipe object\" (OpenCL C, \
                     Pipe Functions)",
                )
            });
            return None;
        }
        Some(pipe)
    }

    /// Changes the state of a pipe, and gives the state before.
    fn change_pipe(
        &mut self,
        pipe: &PipeParameter,
        change: impl FnOnce(&PipeState) -> (Expr, Expr),
    ) -> PipeState {
        let old = self.temporary(STATE);
        let state = PipeState {
            word: Expr::Reg(old),
            most: pipe.most,
        };
        let (cond, new) = change(&state);
        // Elsewhere the value does not matter. So there are no more values than a pipe has states.
        let new = Expr::Select(cond.clone().into(), new.into(), state.word.clone().into());
        self.push(Op::Rmw {
            dst: Some(old),
            addr: Expr::Address(pipe.state),
            update: Update::When { cond, new },
            read: access(pipe.end, STATE, true),
            write: access(pipe.end, STATE, true),
        });
        state
    }

    /// A value in a register of its own.
    fn in_register(&mut self, value: Expr, ty: Ty) -> Expr {
        let dst = self.temporary(ty);
        self.push(Op::Assign { dst, value });
        Expr::Reg(dst)
    }

    /// `read_pipe(p, pointer)`, `write_pipe(p, pointer)`
    fn packet(&mut self, pipe: &PipeParameter, end: PipeEnd, pointer: &Tree) -> Option<Value> {
        let (there, of) = self.end_of_packet(pipe, pointer)?;
        let old = self.change_pipe(pipe, |old| (old.has(end, 1), old.moved(end, 1)));
        let done = self.in_register(old.has(end, 1), Ty::S32);
        let entry = self.in_register(old.next(end), STATE);
        let skip = self.branch(cmp(CmpOp::Eq, done.clone(), Expr::Const(0)));
        self.move_packet(pipe, entry, &there, &of);
        let end = self.code.len();
        self.patch(skip, end);
        let result = Expr::Select(done.into(), Expr::Const(0).into(), Expr::Const(-1).into());
        Some(Value::of(result, Ty::S32))
    }

    /// The address and the type of a packet outside of its pipe.
    fn end_of_packet(&mut self, pipe: &PipeParameter, pointer: &Tree) -> Option<(Expr, Qualified)> {
        let given = self.eval(pointer);
        let (addr, of) = self.address(given, &pointer.range)?;
        let there = self.of_location(pipe.packets);
        if of.ty != there.ty {
            let message = format!("the packets of `{}` are `{}`", pipe.name, there.ty.name());
            let expected = format!("expected a pointer to `{}`", there.ty.name());
            self.error("wrong-operand", &pointer.range, message, |d| {
                d.label(expected)
                    .note("OpenCL C, Built-in Pipe Read and Write Functions")
            });
            return None;
        }
        Some((self.stable(addr), of))
    }

    /// The address of the packet of an entry.
    fn packet_at(&mut self, pipe: &PipeParameter, entry: Expr, of: &Qualified) -> Expr {
        let size = Expr::Const(of.ty.size() as i64);
        let offset = bin(BinOp::Mul, entry, size);
        self.in_register(add(Expr::Address(pipe.packets), offset), STATE)
    }

    /// Reads or writes the packet of an entry.
    fn move_packet(&mut self, pipe: &PipeParameter, entry: Expr, there: &Expr, of: &Qualified) {
        let packet = self.packet_at(pipe, entry, of);
        for (at, cell) in cells(of) {
            let ty = cell.word().unwrap_or(Ty::S32);
            let within = add(packet.clone(), Expr::Const(at));
            let outside = Place::Memory(shifted(there, at as u64), cell);
            match pipe.end {
                PipeEnd::Read => {
                    let value = self.load(within, access(pipe.end, ty, false)).expr;
                    self.write(&outside, value);
                }
                PipeEnd::Write => {
                    let value = self.read(outside).expr;
                    self.push(Op::Store {
                        addr: within,
                        value,
                        access: access(pipe.end, ty, false),
                    });
                }
            }
        }
    }

    /// `read_pipe(p, id, index, pointer)`, `write_pipe(p, id, index, pointer)`
    fn reserved_packet(
        &mut self,
        pipe: &PipeParameter,
        end: PipeEnd,
        [id, index, pointer]: [&Tree; 3],
    ) -> Option<Value> {
        let id = self.reservation(pipe, id);
        let index = self.eval(index).fit(Ty::U32);
        let index = self.in_register(Expr::Cast(STATE, index.into()), STATE);
        let (there, of) = self.end_of_packet(pipe, pointer)?;
        let open = self.is_open(pipe, &id);
        let entries = Expr::Const(pipe.entries.unwrap_or(0));
        let inside = cmp(CmpOp::Lt, index.clone(), entries);
        let misused = self.misuse_unless(both(open, inside));
        let entry = pipe.entry(add(id.first(), index.clone()));
        let entry = self.in_register(entry, STATE);
        self.move_packet(pipe, entry, &there, &of);
        if end == PipeEnd::Write {
            for site in &pipe.sites {
                let bit = bin(BinOp::Shl, Expr::Const(1), index.clone());
                let bit = Expr::Select(site.has(&id).into(), bit.into(), Expr::Const(0).into());
                let value = bin(BinOp::Or, Expr::Reg(site.written), bit);
                self.push(Op::Assign {
                    dst: site.written,
                    value,
                });
            }
        }
        self.misused(misused);
        Some(Value::int(0))
    }

    /// Branches unless a condition holds. [`Lowering::misused`] ends the code where it does.
    fn misuse_unless(&mut self, ok: Expr) -> usize {
        let ok = self.in_register(ok, Ty::S32);
        self.branch(cmp(CmpOp::Eq, ok, Expr::Const(0)))
    }

    /// Marks that a precondition does not hold. The work-item goes on: its group waits for it.
    fn misused(&mut self, branch: usize) {
        let over = self.branch(Expr::Const(1));
        let here = self.code.len();
        self.patch(branch, here);
        self.push(Op::fence(Tags::of(&[Tag::Misuse]), None));
        let end = self.code.len();
        self.patch(over, end);
    }

    fn reservation(&mut self, pipe: &PipeParameter, tree: &Tree) -> Reservation {
        let mut all = self.pipes.iter_mut();
        if let Some(pipe) = all.find(|other| other.name == pipe.name) {
            pipe.is_used = true;
        }
        let given = self.eval(tree).fit(STATE);
        Reservation(self.in_register(given, STATE))
    }

    /// Whether a reservation of a pipe is open.
    fn is_open(&mut self, pipe: &PipeParameter, id: &Reservation) -> Expr {
        let sites = pipe.sites.iter().map(|site| site.has(id));
        let open = sites.fold(Expr::Const(0), |some, has| {
            Expr::Bin(BinOp::Or, Ty::S32, some.into(), has.into())
        });
        both(id.is_valid(), open)
    }

    /// The work-items that make a reservation together.
    fn makers(&mut self, group: Scope, range: &Range<usize>) -> Option<LaneSet> {
        let seat = match group {
            Scope::Warp => self.env.warp,
            _ => self.env.block,
        };
        if seat.anywhere || seat.of > i64::BITS {
            let message = "reservations of this group are not supported";
            self.error("unsupported-group", range, message, |d| {
                d.label("expected at most 64 work-items")
            });
            return None;
        }
        Some(self.all_of(group, seat))
    }

    /// Whether all of a group bring the same value.
    fn brings_same(&mut self, all: &LaneSet, value: Expr) -> Expr {
        let met = self.brings(all, value, STATE, Expr::Const(1), &all.possible());
        self.in_register(met.same(STATE), Ty::S32)
    }

    /// `reserve_read_pipe(p, n)`, `reserve_write_pipe(p, n)`, and those of groups.
    fn reserve(
        &mut self,
        pipe: &PipeParameter,
        end: PipeEnd,
        group: Scope,
        tree: &Tree,
    ) -> Option<Value> {
        let n = self.entries_to_reserve(pipe, tree)?;
        let site = ReserveSite {
            group,
            open: self.temporary(STATE),
            written: self.temporary(STATE),
        };
        let mut all = self.pipes.iter_mut();
        if let Some(pipe) = all.find(|other| other.name == pipe.name) {
            pipe.sites.push(site);
            pipe.entries = Some(n);
        }
        self.unknown_unless(pipe, equal(Expr::Reg(site.open), Expr::Const(0)));
        let id = match group {
            Scope::Thread => self.new_reservation(pipe, end, n),
            _ => {
                let all = self.makers(group, &tree.range)?;
                let same = self.brings_same(&all, Expr::Const(n));
                let misused = self.misuse_unless(same);
                self.misused(misused);
                let id = match all.seat.rank {
                    0 => self.new_reservation(pipe, end, n),
                    _ => Expr::Const(0),
                };
                let met = self.brings(&all, id, STATE, Expr::Const(1), &[0]);
                met.taken.first().map_or(Expr::Const(0), |t| t.1.clone())
            }
        };
        let id = self.in_register(id, STATE);
        for (dst, value) in [(site.open, id.clone()), (site.written, Expr::Const(0))] {
            self.push(Op::Assign { dst, value });
        }
        Some(Value::of(id, STATE))
    }

    /// The number of entries that a call reserves: a constant, and one for each pipe.
    fn entries_to_reserve(&mut self, pipe: &PipeParameter, tree: &Tree) -> Option<i64> {
        let number = self.eval(tree).constant();
        let Some(n) = number.filter(|n| (1..=MOST_RESERVED).contains(n)) else {
            let message = "this number of packets is not supported";
            self.error("unsupported", &tree.range, message, |d| {
                d.label(format!("expected a constant of 1 to {MOST_RESERVED}"))
            });
            return None;
        };
        if pipe.entries.is_some_and(|others| others != n) {
            let message = "reservations of several sizes are not supported";
            self.error("unsupported", &tree.range, message, |d| {
                d.label("expected the number of the other reservations of this pipe")
            });
            return None;
        }
        if self.is_in_loop() && pipe.is_used {
            let message = "a reservation behind a use in a loop is not supported";
            self.error("unsupported", &tree.range, message, |d| {
                d.label("expected the reservation in front of its uses")
            });
            return None;
        }
        Some(n)
    }

    /// Reserves entries, and numbers the reservation; 0 if there is no room.
    fn new_reservation(&mut self, pipe: &PipeParameter, end: PipeEnd, n: i64) -> Expr {
        let number = self.hidden(&format!("${}.reservations", pipe.name), STATE);
        let next = add(Expr::Reg(number), Expr::Const(1));
        self.push(Op::Assign {
            dst: number,
            value: next,
        });
        let old = self.change_pipe(pipe, |old| (old.has(end, n), old.reserved(end, n)));
        let made = Reservation::of(old.next(end), Expr::Reg(number), pipe.packets);
        let id = Expr::Select(old.has(end, n).into(), made.into(), Expr::Const(0).into());
        self.in_register(id, STATE)
    }

    /// `commit_read_pipe(p, id)`, `commit_write_pipe(p, id)`, and those of groups.
    fn commit(
        &mut self,
        pipe: &PipeParameter,
        end: PipeEnd,
        group: Scope,
        tree: &Tree,
    ) -> Option<Value> {
        let id = self.reservation(pipe, tree);
        let mut ok = self.is_open(pipe, &id);
        let mut written = Expr::Const(0);
        for site in &pipe.sites {
            written = Expr::Select(
                site.has(&id).into(),
                Expr::Reg(site.written).into(),
                written.into(),
            );
        }
        let mut leads = true;
        if group != Scope::Thread {
            let all = self.makers(group, &tree.range)?;
            leads = all.seat.rank == 0;
            ok = both(ok, self.brings_same(&all, id.0.clone()));
            if end == PipeEnd::Write {
                let ranks = all.possible();
                let met = self.brings(&all, written, STATE, Expr::Const(1), &ranks);
                written = met.combined(BinOp::Or, STATE);
            }
        }
        let written = self.in_register(written, STATE);
        let misused = self.misuse_unless(ok);
        for site in &pipe.sites {
            if site.group != group {
                self.unknown_unless(pipe, equal(site.has(&id), Expr::Const(0)));
            }
            let value = Expr::Select(
                site.has(&id).into(),
                Expr::Const(0).into(),
                Expr::Reg(site.open).into(),
            );
            self.push(Op::Assign {
                dst: site.open,
                value,
            });
        }
        if leads {
            let n = pipe.entries.unwrap_or(0);
            if end == PipeEnd::Write {
                self.discard_unwritten(pipe, &id, &written);
            }
            self.change_pipe(pipe, |old| (old.is_reserved(end, n), old.committed(end, n)));
        }
        self.misused(misused);
        Some(Value::void())
    }

    /// Writes to the entries of a reservation that no work-item wrote.
    fn discard_unwritten(&mut self, pipe: &PipeParameter, id: &Reservation, written: &Expr) {
        let of = self.of_location(pipe.packets);
        for index in 0..pipe.entries.unwrap_or(0) {
            let has = bin(BinOp::Shr, written.clone(), Expr::Const(index));
            let has = bin(BinOp::And, has, Expr::Const(1));
            let skip = self.branch(cmp(CmpOp::Ne, has, Expr::Const(0)));
            let entry = pipe.entry(add(id.first(), Expr::Const(index)));
            let packet = self.packet_at(pipe, entry, &of);
            for (at, cell) in cells(&of) {
                let mut access = access(pipe.end, cell.word().unwrap_or(Ty::S32), false);
                access.tags.insert(Tag::Discards);
                self.push(Op::Store {
                    addr: add(packet.clone(), Expr::Const(at)),
                    value: Expr::Const(0),
                    access,
                });
            }
            let end = self.code.len();
            self.patch(skip, end);
        }
    }

    /// Reads memory that does not exist unless a condition holds, so that no verdict follows.
    fn unknown_unless(&mut self, pipe: &PipeParameter, ok: Expr) {
        let skip = self.branch(ok);
        self.load(Expr::Const(0), access(pipe.end, STATE, false));
        let end = self.code.len();
        self.patch(skip, end);
    }

    /// `get_pipe_num_packets(p)`
    fn number_of_packets(&mut self, pipe: &PipeParameter) -> Value {
        let word = self.load(Expr::Address(pipe.state), access(pipe.end, STATE, false));
        let state = PipeState {
            word: word.expr,
            most: pipe.most,
        };
        let (packets, settled) = state.packets();
        self.unknown_unless(pipe, settled);
        let number = self.in_register(Expr::Cast(Ty::U32, packets.into()), Ty::U32);
        Value::of(number, Ty::U32)
    }

    /// Marks reservations that are open at the end of the work-item.
    pub(super) fn end_pipes(&mut self) {
        let pipes = std::mem::take(&mut self.pipes);
        for site in pipes.iter().flat_map(|pipe| &pipe.sites) {
            let skip = self.branch(equal(Expr::Reg(site.open), Expr::Const(0)));
            self.push(Op::fence(Tags::of(&[Tag::Misuse]), None));
            let end = self.code.len();
            self.patch(skip, end);
        }
    }
}
