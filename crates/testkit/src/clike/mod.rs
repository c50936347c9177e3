//! Random programs in OpenCL C, CUDA C++ and C as text, and smaller versions of them.
//!
//! | File | Contents |
//! |---|---|
//! | this | a program that can be changed, and smaller ones |
//! | `text` | the program as a TOML test in its dialect |
//! | `kernel` | a program in OpenCL C as one kernel |
//! | `shapes` | the shapes of programs: critical cycles and loose sequences |
//!
//! # Invariants
//! - Every generated program is valid input: the front end accepts it, and every order is legal at
//!   its place.
//! - All registers and all memory outside work-groups are observed.
//! - There are no loops: a program has few outcomes, and every execution of it ends.

pub mod kernel;
pub mod shapes;
mod text;

use crate::made;
use program::litmus::LitmusTest;

/// The language of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lang {
    /// OpenCL C.
    OpenCl,
    /// CUDA C++.
    Cuda,
    /// C11.
    C,
}

/// Memory orders, from the weakest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// Not atomic.
    Plain,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

/// Scopes, from the narrowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Work-group, block.
    Group,
    /// Device.
    Device,
    /// All devices, system.
    All,
}

/// The order and scope of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    pub order: Order,
    pub scope: Scope,
}

/// Regions of memory, as flags of OpenCL's fences and barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    pub global: bool,
    pub local: bool,
}

/// A value that is written: a constant or a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Val {
    Int(i64),
    Reg(usize),
}

/// Read-modify-writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    Add,
    Exchange,
    /// Compare-exchange with the expected value and the order on failure.
    Cas(i64, Order),
}

/// Statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stmt {
    Load {
        dst: usize,
        loc: usize,
        how: How,
    },
    Store {
        loc: usize,
        value: Val,
        how: How,
    },
    Rmw {
        dst: usize,
        loc: usize,
        update: Update,
        value: i64,
        how: How,
    },
    Fence {
        how: How,
        flags: Flags,
    },
    Barrier {
        flags: Flags,
    },
    /// A shuffle (or its equivalent in OpenCL C) of a thread that is alone in its warp.
    Lanes {
        dst: usize,
        value: usize,
    },
    If {
        reg: usize,
        value: i64,
        body: Vec<Stmt>,
    },
}

/// A location: its region, and whether all devices and the host share its memory (OpenCL).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loc {
    pub name: String,
    /// Whether it is declared atomic; then only atomic functions access it.
    pub atomic: bool,
    pub local: bool,
    pub fine: bool,
}

/// A thread and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub name: String,
    pub device: u32,
    pub group: u32,
    /// Its warp in that group, if the test gives one.
    pub warp: Option<u32>,
    pub body: Vec<Stmt>,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub lang: Lang,
    /// The name of the shape that the generator filled in.
    pub shape: &'static str,
    pub locations: Vec<Loc>,
    pub threads: Vec<Thread>,
}

impl Program {
    /// Reads the program.
    ///
    /// # Panics
    /// If the front end rejects it: that is a defect of the front end or of the generator.
    pub fn read(&self, name: &str) -> LitmusTest {
        made::read(&self.text(name))
    }

    /// The smallest program that single steps of [`Program::smaller`] reach and on which `fails`
    /// still holds.
    pub fn shrink(&self, fails: impl Fn(&Program) -> bool) -> Program {
        made::smallest(self, Program::smaller, |p| p.readable() && fails(p))
    }

    fn readable(&self) -> bool {
        self.threads.iter().any(|t| !t.body.is_empty()) && made::is_read(&self.text("smaller"))
    }

    /// Programs that are a little smaller or weaker: without one thread or statement, without a
    /// condition, or with an order closer to relaxed.
    pub fn smaller(&self) -> Vec<Program> {
        let mut list = Vec::new();
        for t in (0..self.threads.len()).filter(|_| self.threads.len() > 1) {
            let mut p = self.clone();
            p.threads.remove(t);
            list.push(p);
        }
        for t in 0..self.threads.len() {
            for body in lessened(&self.threads[t].body) {
                let mut p = self.clone();
                p.threads[t].body = body;
                list.push(p);
            }
        }
        list
    }
}

/// Bodies with one statement less, or with one weaker statement.
fn lessened(body: &[Stmt]) -> Vec<Vec<Stmt>> {
    let mut list = Vec::new();
    let mut put = |i: usize, with: Vec<Stmt>| {
        let mut new = body.to_vec();
        new.splice(i..=i, with);
        list.push(new);
    };
    (0..body.len()).for_each(|i| put(i, Vec::new()));
    for (i, stmt) in body.iter().enumerate() {
        match stmt {
            Stmt::If { reg, value, body } => {
                put(i, body.clone());
                for less in lessened(body) {
                    put(
                        i,
                        vec![Stmt::If {
                            reg: *reg,
                            value: *value,
                            body: less,
                        }],
                    );
                }
            }
            Stmt::Rmw {
                dst,
                loc,
                value,
                how,
                ..
            } => {
                put(
                    i,
                    vec![Stmt::Load {
                        dst: *dst,
                        loc: *loc,
                        how: as_load(*how),
                    }],
                );
                put(
                    i,
                    vec![Stmt::Store {
                        loc: *loc,
                        value: Val::Int(*value),
                        how: as_store(*how),
                    }],
                );
            }
            _ => {}
        }
        for order in weaker(stmt) {
            let mut new = stmt.clone();
            if let Some(how) = how(&mut new) {
                how.order = order;
                put(i, vec![new]);
            }
        }
    }
    list
}

fn as_load(how: How) -> How {
    let order = match how.order {
        Order::Release => Order::Relaxed,
        Order::AcqRel => Order::Acquire,
        order => order,
    };
    How { order, ..how }
}

fn as_store(how: How) -> How {
    let order = match how.order {
        Order::Acquire => Order::Relaxed,
        Order::AcqRel => Order::Release,
        order => order,
    };
    How { order, ..how }
}

fn how(stmt: &mut Stmt) -> Option<&mut How> {
    match stmt {
        Stmt::Load { how, .. }
        | Stmt::Store { how, .. }
        | Stmt::Rmw { how, .. }
        | Stmt::Fence { how, .. } => Some(how),
        Stmt::Barrier { .. } | Stmt::Lanes { .. } | Stmt::If { .. } => None,
    }
}

/// The orders one step below the order of a statement.
fn weaker(stmt: &Stmt) -> Vec<Order> {
    let (order, load, store) = match stmt {
        Stmt::Load { how, .. } => (how.order, true, false),
        Stmt::Store { how, .. } => (how.order, false, true),
        // A compare-exchange must not be weaker on success than on failure.
        Stmt::Rmw {
            update: Update::Cas(..),
            ..
        } => return Vec::new(),
        Stmt::Rmw { how, .. } => (how.order, true, true),
        Stmt::Fence { how, .. } if how.order == Order::SeqCst => return vec![Order::AcqRel],
        Stmt::Fence { how, .. } if how.order == Order::AcqRel => {
            return vec![Order::Acquire, Order::Release];
        }
        _ => return Vec::new(),
    };
    match order {
        Order::SeqCst if load && store => vec![Order::AcqRel],
        Order::SeqCst if load => vec![Order::Acquire],
        Order::SeqCst => vec![Order::Release],
        Order::AcqRel => vec![Order::Acquire, Order::Release],
        Order::Acquire | Order::Release => vec![Order::Relaxed],
        _ => Vec::new(),
    }
}
