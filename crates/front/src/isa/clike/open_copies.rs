//! Lowers the asynchronous copies of work-groups in code for every launch.
//!
//! Any work-item may make a copy, at any time before the wait. So each one makes it at the place of
//! the call, for one element with an unknown number. The accesses are marked as asynchronous: what
//! orders them is in [`program::GroupCopy`] and in `crates/parametric`.
//!
//! # Invariants
//! - An event is the bit of the place in the code that made it. A copy that is given an event
//!   belongs to that event, and returns it.
//! - A wait completes the copies of a place only where at most one of them is open: the event of
//!   an earlier one would look the same.
//! - The places behind a wait in the text stay open: an alarm may be wrong, a proof is not.

use super::ast::Expr as Tree;
use super::async_copies::{bin, equal};
use super::copy_sites::CopyEnd;
use super::function::plain_access;
use super::lower::Lowering;
use super::types::{Type, Value};
use program::{Access, BinOp, CmpOp, Expr, GroupCopy, Op, RegId, Tag, Tags, Ty};

/// The most places in one kernel: the bits of an event.
const MOST_PLACES: usize = 30;

impl Lowering<'_, '_> {
    /// A call of one of the functions, for every launch; `None`: there was an error.
    pub(super) fn open_copy(&mut self, tree: &Tree, args: &[Tree]) -> Option<Value> {
        match args {
            [number, events] => self.open_wait(number, events).map(|()| Value::int(0)),
            [to, from, number, event] => self.open_begin(tree, [to, from], [number, event], None),
            [to, from, number, stride, event] => {
                self.open_begin(tree, [to, from], [number, event], Some(stride))
            }
            _ => None,
        }
    }

    fn open_begin(
        &mut self,
        tree: &Tree,
        ends: [&Tree; 2],
        [number, event]: [&Tree; 2],
        stride: Option<&Tree>,
    ) -> Option<Value> {
        let [to, from] = ends.map(|end| self.copy_end(end));
        let ends = [to?, from?];
        let number = self.scalar(number).converted(&Type::Int(Ty::U32));
        let number = self.kept(number).expr;
        let [to, from] = self.strided(tree, ends, stride)?;
        let given = self.scalar(event);
        let given = self.kept(given).expr;
        let place = self.symbols.group_copies.len();
        if place == MOST_PLACES {
            let message = format!("more than {MOST_PLACES} asynchronous copies in a kernel");
            self.error("unsupported", &tree.range, message, |d| {
                d.label("expected fewer, or some of them in a loop")
            });
            return None;
        }
        let copy = self.new_group_copy(place);
        self.symbols.group_copies.push(copy);
        let is_first = equal(Expr::Reg(copy.open), 0);
        let open = Expr::Select(
            is_first.into(),
            Expr::Const(1).into(),
            Expr::Const(2).into(),
        );
        let begun = bin(BinOp::Add, Expr::Reg(copy.begun), Expr::Const(1));
        for (dst, value) in [
            (copy.to, to.addr.clone()),
            (copy.from, from.addr.clone()),
            (copy.number, number.clone()),
        ] {
            self.push(Op::Assign { dst, value });
        }
        self.copy_an_element(copy, [&to, &from], number);
        for (dst, value) in [(copy.open, open), (copy.begun, begun)] {
            self.push(Op::Assign { dst, value });
        }
        let is_new = equal(given.clone(), 0);
        let own = Expr::Const(1 << place);
        let value = Expr::Select(is_new.into(), own.into(), given.into());
        let event = self.event_of(place);
        self.push(Op::Assign { dst: event, value });
        let event = self.kept(Value::of(Expr::Reg(event), Ty::S32)).expr;
        Some(Value::of(event, Ty::S32))
    }

    /// The registers of a place, which begin with 0.
    fn new_group_copy(&mut self, place: usize) -> GroupCopy {
        let mut register = |what: &str, ty: Ty| self.hidden(&format!("$copy-{what}-{place}"), ty);
        GroupCopy {
            to: register("to", Ty::WORD),
            from: register("from", Ty::WORD),
            number: register("number", Ty::U32),
            begun: register("begun", Ty::S32),
            open: register("open", Ty::S32),
            runs: register("runs", Ty::S32),
        }
    }

    /// The register of the event that the last copy of a place belongs to.
    fn event_of(&mut self, place: usize) -> RegId {
        self.hidden(&format!("$copy-event-{place}"), Ty::S32)
    }

    /// Copies some element.
    fn copy_an_element(&mut self, copy: GroupCopy, [to, from]: [&CopyEnd; 2], number: Expr) {
        let k = self.temporary(Ty::U32);
        let value = Expr::unknown(Ty::U32);
        self.push(Op::Assign { dst: k, value });
        let behind = Expr::Cmp(CmpOp::Ge, Ty::U32, Expr::Reg(k).into(), number.into());
        let skip = self.branch(behind);
        self.assign_number(copy.runs, 1);
        let access = Access {
            tags: Tags::of(&[Tag::Asynchronous]),
            ..plain_access(from.ty, self.env.language.plain_scope)
        };
        for word in from.words.clone() {
            let dst = self.temporary(from.ty);
            self.push(Op::Load {
                dst,
                addr: some_element(from, k, word),
                access: access.clone(),
            });
            self.push(Op::Store {
                addr: some_element(to, k, word),
                value: Expr::Reg(dst),
                access: access.clone(),
            });
        }
        let end = self.code.len();
        self.patch(skip, end);
        self.assign_number(copy.runs, 0);
    }

    fn assign_number(&mut self, dst: RegId, number: i64) {
        let value = Expr::Const(number);
        self.push(Op::Assign { dst, value });
    }

    /// `wait_group_events(number, events)`
    fn open_wait(&mut self, number: &Tree, events: &Tree) -> Option<()> {
        let number = self.copy_number(number)?;
        let all = self.copy_end(events)?;
        for k in 0..number {
            let event = self.temporary(all.ty);
            self.push(Op::Load {
                dst: event,
                addr: all.element(k, 0),
                access: plain_access(all.ty, self.env.language.plain_scope),
            });
            for (place, copy) in self.symbols.group_copies.clone().into_iter().enumerate() {
                let own = Expr::Reg(self.event_of(place));
                let bit = bin(BinOp::And, Expr::Reg(event), own);
                let is_of_event = Expr::Cmp(CmpOp::Ne, Ty::S32, bit.into(), Expr::Const(0).into());
                let is_alone = equal(Expr::Reg(copy.open), 1);
                let is_complete = bin(BinOp::And, is_of_event, is_alone);
                let value = Expr::Select(
                    is_complete.into(),
                    Expr::Const(0).into(),
                    Expr::Reg(copy.open).into(),
                );
                self.push(Op::Assign {
                    dst: copy.open,
                    value,
                });
            }
        }
        Some(())
    }
}

/// The address of a word of the element that a register numbers.
fn some_element(end: &CopyEnd, k: RegId, word: i64) -> Expr {
    let size = Expr::Const(end.stride * end.size);
    let k = Expr::Cast(Ty::WORD, Expr::Reg(k).into());
    let distance = Expr::Bin(BinOp::Mul, Ty::WORD, k.into(), size.into());
    let distance = match word {
        0 => distance,
        _ => Expr::Bin(
            BinOp::Add,
            Ty::WORD,
            distance.into(),
            Expr::Const(word).into(),
        ),
    };
    Expr::Bin(
        BinOp::Add,
        Ty::WORD,
        end.addr.clone().into(),
        distance.into(),
    )
}
