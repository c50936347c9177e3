//! Lowers the asynchronous copies of work-groups, and the waits for them.
//!
//! One work-item of the group, which the execution chooses, makes a copy by plain accesses: in the
//! call that begins it, in the wait, or without one at its end. The wait releases and acquires what
//! that work-item did. So an access that only a completed copy would order races with it, whichever
//! work-item makes it.
//!
//! # Invariants
//! - All work-items call the functions in the same order, and number the copies alike. An event is
//!   four times the number of its last copy, plus the number of the work-item among those that may
//!   copy.
//! - An object of the group counts, for each of those, its last copy that a wait has completed.
//!
//! [`super::open_copies`] has those for every launch.
//!
//! # Sources
//! - OpenCL C, *Async Copies from Global to Local Memory, Local to Global Memory, and Prefetch*:
//!   no function synchronizes the source before the copy.
//!
//! # Where we differ
//! - A copy behind a wait in a loop is refused: no later wait of the loop is read yet that could
//!   make it.
//! - Of a larger group, the first two and the last two work-items may make a copy.
//! - A group of one work-item would order the accesses that it makes beside a copy. It is refused.

use std::ops::Range;

use super::ast::Expr as Tree;
use super::copy_sites::{COPIERS, COPIES, CopyEnd, CopySite};
use super::function::plain_access;
use super::lower::Lowering;
use super::types::{Qualified, Type, Value};
use crate::isa::ptx::LaneSet;
use program::{Access, BinOp, CmpOp, Expr, Op, RegId, Scope, Space, Tag, Tags, Ty};

/// The register in which each work-item counts the copies.
const BEGUN: &str = "$copies";
/// The bits of an event that number a work-item.
const COPIER_BITS: i64 = COPIERS.trailing_zeros() as i64;
/// The most elements of one copy.
const MOST_ELEMENTS: i64 = 256;

/// The functions, with their numbers of arguments.
const FUNCTIONS: [(&str, usize); 3] = [
    ("async_work_group_copy", 4),
    ("async_work_group_strided_copy", 5),
    ("wait_group_events", 2),
];

pub(super) fn bin(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::Bin(op, Ty::S32, a.into(), b.into())
}

/// The number of the work-item that makes the copies of an event.
fn copier_of(event: &Expr) -> Expr {
    bin(BinOp::And, event.clone(), Expr::Const(COPIERS as i64 - 1))
}

/// The number of the last copy of an event.
fn number_of(event: &Expr) -> Expr {
    bin(BinOp::Shr, event.clone(), Expr::Const(COPIER_BITS))
}

pub(super) fn equal(a: Expr, b: i64) -> Expr {
    Expr::Cmp(CmpOp::Eq, Ty::S32, a.into(), Expr::Const(b).into())
}

/// The words of an element, each with the byte at which it begins.
fn words_of(of: &Qualified) -> Vec<(i64, Ty)> {
    match of.word() {
        Some(ty) => vec![(0, ty)],
        None => {
            let parts = of.parts().into_iter();
            parts
                .flat_map(|(offset, part)| Some((offset as i64, part.word()?)))
                .collect()
        }
    }
}

/// Whether a copy is between global and local memory, and of elements of one type.
fn is_directed(to: &CopyEnd, from: &CopyEnd) -> bool {
    let directed = matches!(
        (to.space, from.space),
        (Some(Space::Shared), Some(Space::Global)) | (Some(Space::Global), Some(Space::Shared))
    );
    directed && to.ty == from.ty && (to.size, &to.words) == (from.size, &from.words)
}

impl Lowering<'_, '_> {
    /// A call of one of the functions; `None`: it is another function.
    pub(super) fn copies_async(&mut self, word: &str, tree: &Tree, args: &[Tree]) -> Option<Value> {
        if !self.env.language.row().regions {
            return None;
        }
        let (_, arguments) = FUNCTIONS.iter().find(|function| function.0 == word)?;
        let event = Type::Int(Ty::S32);
        let none = Value::new(Expr::Const(0), event.clone());
        if args.len() != *arguments {
            let message = format!("`{word}` takes {arguments} arguments, {} given", args.len());
            self.error("wrong-operands", &tree.range, message, |d| {
                d.label("expected as many")
            });
            return Some(none);
        }
        if self.env.places_are_registers {
            return Some(self.open_copy(tree, args).unwrap_or(none));
        }
        if self.refuse_group(tree) {
            return Some(none);
        }
        let done = match args {
            [number, events] => self.waits_for_copies(number, events).map(|()| none.clone()),
            [to, from, number, event] => self.begins_copy(tree, [to, from], [number, event], None),
            [to, from, number, stride, event] => {
                self.begins_copy(tree, [to, from], [number, event], Some(stride))
            }
            _ => None,
        };
        Some(done.unwrap_or(none))
    }

    /// Reports a group for which copies are not supported.
    fn refuse_group(&mut self, tree: &Tree) -> bool {
        let seat = self.env.block;
        let what = match seat.of {
            1 => "in a work-group of one work-item",
            n if n > i64::BITS => "in a work-group of more than 64",
            _ => return false,
        };
        let message = format!("asynchronous copies are not supported {what}");
        self.error("unsupported-group", &tree.range, message, |d| {
            d.label("expected a work-group of 2 to 64 work-items")
        });
        true
    }

    /// The ends of a copy; the stride is that of its global end. `None`: an error was reported.
    pub(super) fn strided(
        &mut self,
        tree: &Tree,
        [mut to, mut from]: [CopyEnd; 2],
        stride: Option<&Tree>,
    ) -> Option<[CopyEnd; 2]> {
        if let Some(stride) = stride {
            let stride = self.copy_number(stride)?;
            let global = match from.space {
                Some(Space::Global) => &mut from,
                _ => &mut to,
            };
            global.stride = stride;
        }
        if !is_directed(&to, &from) {
            self.refuse_direction(tree);
            return None;
        }
        Some([to, from])
    }

    /// Lowers the begin of a copy. Its value is the event.
    fn begins_copy(
        &mut self,
        tree: &Tree,
        ends: [&Tree; 2],
        [number, event]: [&Tree; 2],
        stride: Option<&Tree>,
    ) -> Option<Value> {
        let [to, from] = ends.map(|end| self.copy_end(end));
        let ends = [to?, from?];
        let number = self.copy_number(number)?;
        let [to, from] = self.strided(tree, ends, stride)?;
        let given = self.scalar(event);
        let given = self.kept(given).expr;
        if self.is_in_loop() && self.copies.waits_in_loop {
            let message = "an asynchronous copy behind a wait in a loop is not supported";
            self.error("unsupported", &tree.range, message, |d| {
                d.label("expected the copy in front of the wait of its turn")
                    .note("it may be made as late as in the wait of the next turn")
            });
            return None;
        }
        let (event, late) = self.new_event(given);
        let pending = self.hidden_register("copy", &Type::Int(Ty::S32));
        let (given_to, given_from) = (to.addr.clone(), from.addr.clone());
        let site = CopySite {
            to: self.kept_end(to),
            from: self.kept_end(from),
            number,
            pending,
        };
        if self.is_in_loop() {
            // The copy of the last turn is made before its place begins another one.
            self.make_copy(&site);
        }
        for (end, value) in [(&site.to, given_to), (&site.from, given_from)] {
            if let Expr::Reg(dst) = end.addr {
                self.push(Op::Assign { dst, value });
            }
        }
        let own = self.is_copier(&event);
        self.push(Op::Assign {
            dst: pending,
            value: Expr::Select(own.into(), event.clone().into(), Expr::Const(0).into()),
        });
        let skip = self.branch(late);
        self.make_copy(&site);
        let end = self.code.len();
        self.patch(skip, end);
        self.copies.sites.push(site);
        Some(Value::new(event, Type::Int(Ty::S32)))
    }

    pub(super) fn refuse_direction(&mut self, tree: &Tree) {
        let message = "this is no copy between global and local memory";
        self.error("wrong-operand", &tree.range, message, |d| {
            d.label("expected one pointer to each, to elements of one type")
        });
    }

    /// The same end, with a register of its own for its address.
    fn kept_end(&mut self, end: CopyEnd) -> CopyEnd {
        let addr = match end.addr {
            Expr::Reg(_) => Expr::Reg(self.temporary(Ty::WORD)),
            addr => addr,
        };
        CopyEnd { addr, ..end }
    }

    /// Makes a copy if it is pending and this work-item is to make it.
    fn make_copy(&mut self, site: &CopySite) {
        let skip = self.branch(equal(Expr::Reg(site.pending), 0));
        let words = site.from.words.iter();
        let words: Vec<i64> = words.copied().collect();
        for (k, word) in (0..site.number).flat_map(|k| words.iter().map(move |word| (k, *word))) {
            let dst = self.temporary(site.from.ty);
            let access = plain_access(site.from.ty, self.env.language.plain_scope);
            self.push(Op::Load {
                dst,
                addr: site.from.element(k, word),
                access: access.clone(),
            });
            self.push(Op::Store {
                addr: site.to.element(k, word),
                value: Expr::Reg(dst),
                access,
            });
        }
        self.push(Op::Assign {
            dst: site.pending,
            value: Expr::Const(0),
        });
        let end = self.code.len();
        self.patch(skip, end);
    }

    /// An end of a copy: a pointer to elements of a type with one word.
    pub(super) fn copy_end(&mut self, tree: &Tree) -> Option<CopyEnd> {
        let pointer = self.eval(tree);
        let (addr, of) = self.address(pointer, &tree.range)?;
        let words = words_of(&of);
        let ty = words.first().map(|word| word.1);
        let Some(ty) = ty.filter(|ty| words.iter().all(|word| word.1 == *ty)) else {
            let message = "an asynchronous copy of such elements is not supported";
            self.error("unsupported", &tree.range, message, |d| {
                d.label("expected a pointer to numbers, or to vectors of them")
            });
            return None;
        };
        let space = match addr.base() {
            Some(loc) => Some(self.symbols.object(loc).1.space),
            None => of.space,
        };
        let addr = self.stable(addr);
        Some(CopyEnd {
            addr,
            ty,
            space,
            size: of.ty.size() as i64,
            words: words.into_iter().map(|word| word.0).collect(),
            stride: 1,
        })
    }

    /// A number of elements: a positive constant.
    pub(super) fn copy_number(&mut self, tree: &Tree) -> Option<i64> {
        let number = self.eval(tree).constant();
        let number = number.filter(|n| (1..=MOST_ELEMENTS).contains(n));
        if number.is_none() {
            let message = "this number of elements is not supported";
            self.error("unsupported", &tree.range, message, |d| {
                d.label(format!("expected a constant of 1 to {MOST_ELEMENTS}"))
            });
        }
        number
    }

    /// Numbers the next copy, and agrees with the group on the work-item that makes it, and whether
    /// it makes it as late as in the wait. The work-item is that of the given event, or any. The
    /// result is the event, and whether it is late.
    fn new_event(&mut self, given: Expr) -> (Expr, Expr) {
        let seat = self.env.block;
        let bits = COPIER_BITS + 1;
        let mut any = Expr::Const(0);
        for _ in (0..bits).filter(|_| seat.rank == 0) {
            let dst = self.temporary(Ty::S32);
            self.push(Op::Choice {
                dst,
                spurious: false,
            });
            let doubled = bin(BinOp::Add, any.clone(), any);
            any = bin(BinOp::Add, doubled, Expr::Reg(dst));
        }
        let any = self.kept(Value::of(any, Ty::S32)).expr;
        let group = LaneSet::new(Scope::Cta, seat, Expr::Const(-1));
        let met = self.brings(&group, any, Ty::S32, Expr::Const(1), &[0]);
        let chosen = met.taken.first().map_or(Expr::Const(0), |t| t.1.clone());
        let late = bin(BinOp::Shr, chosen.clone(), Expr::Const(COPIER_BITS));
        let copier = Expr::Select(
            equal(given.clone(), 0).into(),
            copier_of(&chosen).into(),
            copier_of(&given).into(),
        );
        let begun = self.hidden(BEGUN, Ty::S32);
        let next = bin(BinOp::Add, Expr::Reg(begun), Expr::Const(1));
        self.push(Op::Assign {
            dst: begun,
            value: next,
        });
        let number = bin(BinOp::Shl, Expr::Reg(begun), Expr::Const(COPIER_BITS));
        // A copy that is given an event belongs to it, and returns it.
        let own = bin(BinOp::Add, number, copier);
        let event = Expr::Select(equal(given.clone(), 0).into(), own.into(), given.into());
        let event = Value::of(event, Ty::S32);
        (self.kept(event).expr, late)
    }

    /// Whether this work-item makes the copies of an event.
    fn is_copier(&self, event: &Expr) -> Expr {
        let seat = self.env.block;
        let last = seat.of - 1;
        let may = [0, 1.min(last), last.saturating_sub(1), last];
        let own = (0..).zip(may).filter(|(_, rank)| *rank == seat.rank);
        own.fold(Expr::Const(0), |is, (number, _)| {
            bin(BinOp::Or, is, equal(copier_of(event), number))
        })
    }

    /// `wait_group_events(number, events)`
    fn waits_for_copies(&mut self, number: &Tree, events: &Tree) -> Option<()> {
        let number = self.copy_number(number)?;
        let pointer = self.eval(events);
        let (addr, of) = self.address(pointer, &events.range)?;
        let Some(ty) = of.ty.word() else {
            let message = "these are no events";
            self.error("wrong-operand", &events.range, message, |d| {
                d.label("expected a pointer to `event_t`")
            });
            return None;
        };
        let all = CopyEnd {
            addr: self.stable(addr),
            ty,
            space: None,
            size: i64::from(ty.bytes()),
            words: vec![0],
            stride: 1,
        };
        for k in 0..number {
            let dst = self.temporary(ty);
            self.push(Op::Load {
                dst,
                addr: all.element(k, 0),
                access: plain_access(ty, self.env.language.plain_scope),
            });
            self.wait_for_copy(dst, &events.range);
        }
        Some(())
    }

    /// Makes the copies that no wait has waited for, at the end of the work-item.
    pub(super) fn end_copies(&mut self) {
        for site in std::mem::take(&mut self.copies).sites {
            self.make_copy(&site);
        }
    }

    /// Makes a copy if it is pending and a wait for an event waits for it.
    fn make_awaited_copy(&mut self, site: &CopySite, event: &Expr) {
        let pending = Expr::Reg(site.pending);
        let other = Expr::Cmp(
            CmpOp::Ne,
            Ty::S32,
            copier_of(&pending).into(),
            copier_of(event).into(),
        );
        let later = Expr::Cmp(
            CmpOp::Gt,
            Ty::S32,
            number_of(&pending).into(),
            number_of(event).into(),
        );
        let skip = self.branch(bin(BinOp::Or, other, later));
        self.make_copy(site);
        let end = self.code.len();
        self.patch(skip, end);
    }

    /// Releases the copies of an event, or acquires them.
    fn wait_for_copy(&mut self, event: RegId, range: &Range<usize>) {
        let Some(counters) = self.symbols.find(COPIES) else {
            let message = "asynchronous copies are not supported here";
            self.error("unknown-function", range, message, |d| {
                d.label("expected a kernel")
            });
            return;
        };
        let event = Expr::Reg(event);
        let number = number_of(&event);
        let bytes = Expr::Const(i64::from(Ty::S32.bytes()));
        let offset = bin(BinOp::Mul, copier_of(&event), bytes);
        let addr = Expr::Bin(
            BinOp::Add,
            Ty::WORD,
            Expr::Address(counters).into(),
            Expr::Cast(Ty::WORD, offset.into()).into(),
        );
        let addr = self.stable(addr);
        let counter = Access {
            tags: Tags::of(&[Tag::Atomic, Tag::Relaxed, Tag::Object]),
            scope: Some(Scope::Cta),
            ty: Ty::S32,
        };
        let acquires = self.branch(equal(self.is_copier(&event), 0));
        for site in self.copies.sites.clone() {
            self.make_awaited_copy(&site, &event);
        }
        self.copies.waits_in_loop |= self.is_in_loop();
        self.push(Op::fence(
            Tags::of(&[Tag::Release, Tag::Global, Tag::Local]),
            Some(Scope::Cta),
        ));
        self.push(Op::Store {
            addr: addr.clone(),
            value: number.clone(),
            access: counter.clone(),
        });
        let released = self.branch(Expr::Const(1));
        let head = self.code.len();
        self.patch(acquires, head);
        let dst = self.temporary(Ty::S32);
        self.push(Op::Load {
            dst,
            addr,
            access: counter,
        });
        let cond = Expr::Cmp(CmpOp::Lt, Ty::S32, Expr::Reg(dst).into(), number.into());
        self.push(Op::Branch { cond, target: head });
        self.push(Op::fence(
            Tags::of(&[Tag::Acquire, Tag::Global, Tag::Local]),
            Some(Scope::Cta),
        ));
        let end = self.code.len();
        self.patch(released, end);
    }
}
