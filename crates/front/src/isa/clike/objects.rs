//! Lowers the member functions of barriers, latches and semaphores of the CUDA C++ library to
//! atomic operations on one word.
//!
//! # Invariants
//! - If the precondition of an operation fails, the operation changes nothing: it is an event
//!   `MISUSE`, and its thread ends there.
//! - Arrivals, countdowns and releases are read-modify-writes that release; waits and acquisitions
//!   acquire. Later read-modify-writes continue a release sequence. So all arrivals of a phase
//!   happen before a wait that sees the phase complete.
//! - The word of a barrier is that of an mbarrier object ([`program::mbarrier`]). So a mapping to
//!   PTX changes the operations, but not the values that they compute.
//! - The micro-ops that test a phase follow directly after the load of the barrier's word.
//!
//! # Sources
//! - ISO C++, thread.barrier.class, thread.latch.class, thread.sema.cnt.
//! - libcu++, *Memory model*: member functions race as atomic operations at the scope of the
//!   object's type would.
//! - libcu++, *cuda::barrier*: `init`, `wait_parity`, `try_wait_for`, `try_wait_parity_for`.
//!
//! # Where we differ
//! - The phases of a barrier follow one another. So a wait that sees a phase complete synchronises
//!   with the arrivals of earlier phases, too.
//! - A barrier counts up to 32,767 arrivals, not 2^20 - 1.

use std::ops::Range;

use super::ast::Expr as Tree;
use super::lower::Lowering;
use super::scope::{Atomic, Binding};
use super::types::{Qualified, Type, Value};
use program::mbarrier as state;
use program::words::Order;
use program::{Access, BinOp, Class, CmpOp, Expr, Op, RegId, Tag, Tags, Ty, Update};

/// A member function: its class, its name, and its smallest and largest numbers of arguments.
type Member = (&'static str, &'static str, usize, usize);

const MEMBERS: &[Member] = &[
    ("barrier", "arrive", 0, 1),
    ("barrier", "wait", 1, 1),
    ("barrier", "wait_parity", 1, 1),
    ("barrier", "try_wait_for", 2, 2),
    ("barrier", "try_wait_parity_for", 2, 2),
    ("barrier", "arrive_and_wait", 0, 0),
    ("barrier", "arrive_and_drop", 0, 0),
    ("latch", "count_down", 0, 1),
    ("latch", "wait", 0, 0),
    ("latch", "try_wait", 0, 0),
    ("latch", "arrive_and_wait", 0, 1),
    ("semaphore", "acquire", 0, 0),
    ("semaphore", "try_acquire", 0, 0),
    ("semaphore", "release", 0, 1),
];

fn bin(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::Bin(op, Ty::WORD, a.into(), b.into())
}

fn cmp(op: CmpOp, a: Expr, b: Expr) -> Expr {
    Expr::Cmp(op, Ty::WORD, a.into(), b.into())
}

fn both(a: Expr, b: Expr) -> Expr {
    Expr::Bin(BinOp::And, Ty::S32, a.into(), b.into())
}

/// The phase that a wait at a barrier waits for.
pub(super) enum WaitPhase {
    /// The phase of a token.
    Token(Expr),
    /// The current or the previous phase, chosen by its parity.
    Parity(Expr),
}

pub(super) fn parity(arg: Expr) -> WaitPhase {
    WaitPhase::Parity(cmp(CmpOp::Ne, arg, Expr::Const(0)))
}

impl WaitPhase {
    /// Whether a word shows the phase as complete, and whether the wait is allowed.
    fn by(&self, word: Expr, object: &Expr) -> (Expr, Expr) {
        let live = state::live(word.clone());
        match self {
            WaitPhase::Token(token) => {
                let of = state::is_token(word.clone(), token.clone(), object.clone());
                (state::has_passed(word, token.clone()), both(live, of))
            }
            WaitPhase::Parity(parity) => (state::has_passed_parity(word, parity.clone()), live),
        }
    }
}

/// The destructors, by kind of object.
const DESTRUCTORS: [(&str, &str); 4] = [
    ("barrier", "~barrier"),
    ("latch", "~latch"),
    ("semaphore", "~counting_semaphore"),
    ("semaphore", "~binary_semaphore"),
];

impl Lowering<'_, '_> {
    /// A member function of a barrier, latch or semaphore.
    pub(super) fn member_function(
        &mut self,
        class: Class,
        object: Atomic,
        tree: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Value {
        let kind = match class {
            Class::Barrier(_) => "barrier",
            Class::Latch(_) => "latch",
            _ => "semaphore",
        };
        let word = self.str(name);
        if DESTRUCTORS.contains(&(kind, word)) && args.is_empty() {
            self.destroy(object.addr);
            return Value::void();
        }
        let of_class = || MEMBERS.iter().filter(|m| m.0 == kind);
        let Some(&(_, word, least, most)) = of_class().find(|m| m.1 == word) else {
            self.error(
                "unknown-function",
                name,
                format!("the function `{word}` of a {kind} is not supported"),
                |d| {
                    let names: Vec<&str> = of_class().map(|m| m.1).collect();
                    d.label(format!("expected one of `{}`", names.join("`, `")))
                        .did_you_mean(word, names)
                },
            );
            return Value::int(0);
        };
        if !(least..=most).contains(&args.len()) {
            let wanted = match (least, most) {
                (1, _) => "one argument: the phase of the wait".to_string(),
                (2, _) => "two arguments: the phase of the wait, and a time".to_string(),
                _ => format!("at most {most} arguments"),
            };
            self.error(
                "wrong-operands",
                &tree.range,
                format!("`{word}` takes {wanted}"),
                |d| d.label(format!("{} given", args.len())),
            );
            return Value::int(0);
        }
        // The time limit of a wait does not matter: a wait may end at any time.
        let arg = match args {
            [arg, ..] => {
                let value = self.eval(arg);
                let dst = self.temporary(Ty::WORD);
                self.push(Op::Assign {
                    dst,
                    value: value.fit(Ty::WORD),
                });
                Expr::Reg(dst)
            }
            _ => Expr::Const(1),
        };
        match class {
            Class::Barrier(_) => self.barrier_function(word, &object, arg),
            Class::Latch(_) => self.latch_function(word, &object, &arg),
            Class::Semaphore(_, most) => self.semaphore_function(word, &object, &arg, most),
            _ => Value::int(0),
        }
    }

    /// Ends the life of an object: a plain write, which races with calls of other threads.
    pub(super) fn destroy(&mut self, addr: Expr) {
        let access = Access {
            tags: Tags::of(&[Tag::Object, Tag::Ends]),
            scope: None,
            ty: Ty::WORD,
        };
        self.push(Op::Store {
            addr,
            value: Expr::Const(0),
            access,
        });
    }

    fn barrier_function(&mut self, word: &str, object: &Atomic, arg: Expr) -> Value {
        match word {
            "arrive" => return Value::of(self.arrive(object, arg, false), Ty::WORD),
            "wait" => self.wait_for_phase(object, &WaitPhase::Token(arg)),
            "wait_parity" => self.wait_for_phase(object, &parity(arg)),
            "try_wait_for" => {
                return self.attempt(|l| l.test_phase(object, &WaitPhase::Token(arg)));
            }
            "try_wait_parity_for" => {
                return self.attempt(|l| l.test_phase(object, &parity(arg)));
            }
            "arrive_and_wait" => {
                let token = self.arrive(object, Expr::Const(1), false);
                self.wait_for_phase(object, &WaitPhase::Token(token));
            }
            _ => drop(self.arrive(object, Expr::Const(1), true)),
        }
        Value::int(0)
    }

    fn latch_function(&mut self, word: &str, object: &Atomic, arg: &Expr) -> Value {
        if word == "try_wait" {
            return self.attempt(|l| {
                let word = l.look(object);
                cmp(CmpOp::Eq, Expr::Reg(word), Expr::Const(0))
            });
        }
        if word != "wait" {
            self.change(
                object,
                Order::Release,
                |old| {
                    both(
                        cmp(CmpOp::Ge, arg.clone(), Expr::Const(0)),
                        cmp(CmpOp::Le, arg.clone(), old),
                    )
                },
                |old| bin(BinOp::Sub, old, arg.clone()),
            );
        }
        if word != "count_down" {
            self.until(object, |word| cmp(CmpOp::Eq, word, Expr::Const(0)));
        }
        Value::int(0)
    }

    fn semaphore_function(&mut self, word: &str, object: &Atomic, arg: &Expr, most: i64) -> Value {
        match word {
            "try_acquire" => {
                return self.attempt(|l| {
                    let old = l.take(object);
                    cmp(CmpOp::Gt, Expr::Reg(old), Expr::Const(0))
                });
            }
            "acquire" => {
                let head = self.code.len();
                let old = self.take(object);
                self.push(Op::Branch {
                    cond: cmp(CmpOp::Le, Expr::Reg(old), Expr::Const(0)),
                    target: head,
                });
            }
            _ => {
                self.change(
                    object,
                    Order::Release,
                    |old| {
                        let room = bin(BinOp::Sub, Expr::Const(most), old);
                        both(
                            cmp(CmpOp::Ge, arg.clone(), Expr::Const(0)),
                            cmp(CmpOp::Le, arg.clone(), room),
                        )
                    },
                    |old| bin(BinOp::Add, old, arg.clone()),
                );
            }
        }
        Value::int(0)
    }

    /// `init(&bar, n)`: writes the word without an atomic operation.
    pub(super) fn init_object(&mut self, tree: &Tree, args: &[Tree]) -> Value {
        let object = match args {
            [object, count] => {
                let pointer = self.eval(object);
                let is = pointer
                    .target()
                    .is_some_and(|of| matches!(&of.ty, Type::Object(Class::Barrier(_), _)));
                is.then_some((pointer.expr, count))
            }
            _ => None,
        };
        let Some((addr, count)) = object else {
            self.error(
                "wrong-operands",
                &tree.range,
                "`init` takes a barrier and a count",
                |d| d.label("expected the form `init(&bar, n)`"),
            );
            return Value::int(0);
        };
        let range = &count.range;
        let count = self.eval(count);
        let count = match count.constant() {
            Some(n) => Expr::Const(n),
            None => self.stable(count.fit(Ty::WORD)),
        };
        self.make_barrier(addr, count, range);
        Value::int(0)
    }

    /// Initialises a barrier at an address, with a count that is a constant or in a register.
    pub(super) fn make_barrier(&mut self, addr: Expr, count: Expr, range: &Range<usize>) {
        let most = state::MOST_ARRIVALS;
        if matches!(count, Expr::Const(n) if !(0..=most).contains(&n)) {
            self.error(
                "out-of-range",
                range,
                "a barrier cannot count this number of arrivals here",
                |d| d.label(format!("expected a count between 0 and {most}")),
            );
            return;
        }
        let value = state::init(Expr::Const(0), count.clone());
        // A count too large for the word makes the address invalid, so that no verdict follows from
        // it.
        let most = Expr::Cmp(
            CmpOp::Le,
            Ty::U64,
            count.clone().into(),
            Expr::Const(most).into(),
        );
        let addr = match count {
            Expr::Const(_) => addr,
            _ => Expr::Select(most.into(), addr.into(), Expr::Const(0).into()),
        };
        let access = Access {
            tags: Tags::of(&[Tag::Object, Tag::Begins]),
            scope: None,
            ty: Ty::WORD,
        };
        self.push(Op::Store {
            addr,
            value,
            access,
        });
    }

    fn half(object: &Atomic, order: Tag, rmw: bool) -> Access {
        let mut tags = Tags::of(&[Tag::Atomic, Tag::Object, order]);
        if rmw {
            tags.insert(Tag::Rmw);
        }
        Access {
            tags,
            scope: Some(object.scope),
            ty: Ty::WORD,
        }
    }

    /// A read-modify-write that writes only if `cond` holds for the old word. Returns the register
    /// of the old word.
    fn rmw(
        &mut self,
        object: &Atomic,
        order: Order,
        cond: impl Fn(Expr) -> Expr,
        new: impl Fn(Expr) -> Expr,
    ) -> RegId {
        let old = self.temporary(Ty::WORD);
        let update = Update::When {
            cond: cond(Expr::Reg(old)),
            new: new(Expr::Reg(old)),
        };
        let (read, write) = (
            Self::half(object, order.of_read(), true),
            Self::half(object, order.of_write(), true),
        );
        self.push(Op::Rmw {
            dst: Some(old),
            addr: object.addr.clone(),
            update,
            read,
            write,
        });
        old
    }

    /// The same with `ok` as a precondition: without it, the call is undefined.
    fn change(
        &mut self,
        object: &Atomic,
        order: Order,
        ok: impl Fn(Expr) -> Expr,
        new: impl Fn(Expr) -> Expr,
    ) -> RegId {
        let old = self.rmw(object, order, &ok, new);
        let skip = self.branch(ok(Expr::Reg(old)));
        self.push(Op::fence(Tags::of(&[Tag::Misuse]), None));
        self.leave();
        let end = self.code.len();
        self.patch(skip, end);
        old
    }

    /// Reads the word with acquire order.
    fn look(&mut self, object: &Atomic) -> RegId {
        let word = self.temporary(Ty::WORD);
        let access = Self::half(object, Order::Acquire.of_read(), false);
        self.push(Op::Load {
            dst: word,
            addr: object.addr.clone(),
            access,
        });
        word
    }

    /// Reads the word until `done` holds for it.
    fn until(&mut self, object: &Atomic, done: impl Fn(Expr) -> Expr) {
        let head = self.code.len();
        let word = self.look(object);
        let out = self.branch(done(Expr::Reg(word)));
        self.push(Op::Branch {
            cond: Expr::Const(1),
            target: head,
        });
        let end = self.code.len();
        self.patch(out, end);
    }

    /// Takes one from a semaphore, unless its count is 0.
    fn take(&mut self, object: &Atomic) -> RegId {
        self.rmw(
            object,
            Order::Acquire,
            |old| cmp(CmpOp::Gt, old, Expr::Const(0)),
            |old| bin(BinOp::Sub, old, Expr::Const(1)),
        )
    }

    /// A function that may fail spuriously; if it does not, `act` gives its result.
    pub(super) fn attempt(&mut self, act: impl FnOnce(&mut Self) -> Expr) -> Value {
        let (fails, result) = (self.temporary(Ty::S32), self.temporary(Ty::S32));
        self.push(Op::Choice {
            dst: fails,
            spurious: true,
        });
        self.push(Op::Assign {
            dst: result,
            value: Expr::Const(0),
        });
        let skip = self.branch(Expr::Reg(fails));
        let value = act(self);
        self.push(Op::Assign { dst: result, value });
        let end = self.code.len();
        self.patch(skip, end);
        Value::new(Expr::Reg(result), Type::Bool)
    }

    /// Arrives `n` times; returns the token of the phase of the arrival.
    pub(super) fn arrive(&mut self, object: &Atomic, n: Expr, drop: bool) -> Expr {
        let old = self.change(
            object,
            Order::Release,
            |old| {
                both(
                    state::live(old.clone()),
                    state::within(n.clone(), state::pending(old)),
                )
            },
            |old| {
                let word = if drop {
                    state::drop(old, n.clone())
                } else {
                    old
                };
                state::settled(state::arrive(word, n.clone()))
            },
        );
        if drop {
            // This event marks that no thread remains. It has no meaning here, but one in PTX.
            let skip = self.branch(cmp(CmpOp::Gt, state::expected(Expr::Reg(old)), n));
            self.push(Op::fence(Tags::of(&[Tag::Object]), None));
            let end = self.code.len();
            self.patch(skip, end);
        }
        state::token(Expr::Reg(old), object.addr.clone())
    }

    /// Tests whether a phase is complete.
    pub(super) fn test_phase(&mut self, object: &Atomic, awaited: &WaitPhase) -> Expr {
        let word = Expr::Reg(self.look(object));
        let (complete, may) = awaited.by(word, &object.addr);
        let done = self.temporary(Ty::S32);
        self.push(Op::Assign {
            dst: done,
            value: both(complete, may.clone()),
        });
        let skip = self.branch(may);
        self.push(Op::fence(Tags::of(&[Tag::Misuse]), None));
        self.leave();
        let end = self.code.len();
        self.patch(skip, end);
        Expr::Reg(done)
    }

    pub(super) fn wait_for_phase(&mut self, object: &Atomic, awaited: &WaitPhase) {
        let head = self.code.len();
        let done = self.test_phase(object, awaited);
        self.push(Op::Branch {
            cond: cmp(CmpOp::Eq, done, Expr::Const(0)),
            target: head,
        });
    }

    /// The object that an expression names, or refers to.
    pub(super) fn atomic_object(&mut self, tree: &Tree) -> Option<(Class, Atomic)> {
        if let Some(Binding::Atomic(atomic)) = self.binding(tree) {
            return Some((Class::Atomic(atomic.scope), atomic.clone()));
        }
        let (addr, of) = self.memory_place(tree)?;
        let Type::Object(class, value) = &of.ty else {
            return None;
        };
        let scope = match *class {
            Class::Atomic(s) | Class::Barrier(s) | Class::Latch(s) | Class::Semaphore(s, _) => s,
            Class::Flag | Class::Mbarrier => program::Scope::Sys,
        };
        let of = Qualified {
            constant: of.constant,
            ..Type::clone(value).into()
        };
        // The choice of the object comes before the arguments (ISO C++17, expr.call).
        Some((
            *class,
            Atomic {
                addr: self.stable(addr),
                of,
                scope,
            },
        ))
    }
}
