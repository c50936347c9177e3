//! The kinds of change, each with its knobs in a program: scopes, orders, fences, proxies,
//! barriers, places, and others.

use std::collections::BTreeSet;

use super::{Knob, Spot, at, instr, sites_of, spots};
use program::edits::{Change, EditSite, NewFence, PROXIES, enough, fence_text};
use program::strength::{self, Order};
use program::{
    BarrierNaming, DialectRow, Expr, Instr, LocId, Location, LocationKind, MemoryKind, Op, Program,
    Scope, Space, Tag,
};

/// A kind of change: its knobs in a program.
pub type Kind = fn(&Around<'_>) -> Vec<Knob>;

/// A program, and the narrowest scope that is wide enough for it.
pub struct Around<'p> {
    program: &'p Program,
    wide: Scope,
}

impl<'p> Around<'p> {
    /// A program, with its narrowest scope that is wide enough.
    pub fn new(program: &'p Program) -> Around<'p> {
        Around {
            program,
            wide: enough(program),
        }
    }

    /// A program in which even wider scopes are tried.
    pub fn unbounded(program: &'p Program) -> Around<'p> {
        Around {
            program,
            wide: Scope::Sys,
        }
    }

    /// The narrowest scope that is wide enough.
    pub fn wide(&self) -> Scope {
        self.wide
    }

    /// A knob for each instruction (with its copies) that has `levels`: those below, the written
    /// one, and those above.
    fn each(&self, levels: impl Fn(&Instr) -> Option<Levels>) -> Vec<Knob> {
        // Assembly has other words than its program.
        let own = |op: &Op| self.row().proxies || !op.is_ptx();
        let sites = sites_of(self.program, &|instr| {
            own(&instr.op) && levels(instr).is_some()
        });
        sites
            .into_iter()
            .filter_map(|spots| {
                let (below, own, above) = levels(instr(self.program, spots[0]))?;
                Some(Knob::new(at(&spots), below, own, above))
            })
            .collect()
    }

    fn row(&self) -> &'static DialectRow {
        self.program.dialect.row()
    }

    /// The names of the function that an instruction calls, if they state the scope and no word
    /// states an order.
    fn family(&self, instr: &Instr) -> Option<Vec<(String, Scope)>> {
        let writing = self.row().writing?;
        instr
            .text
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .find_map(|word| writing.family(word))
    }

    /// The levels of an order.
    pub(crate) fn order(&self, instr: &Instr) -> Option<Levels> {
        let (row, op) = (self.row(), &instr.op);
        if self.family(instr).is_some() {
            return op.is_fence().then(|| {
                (
                    vec![(Change::Nothing, String::new())],
                    String::new(),
                    vec![],
                )
            });
        }
        let word = |o: Order| row.order_word(o).to_owned();
        // These are no instructions, or have one form.
        if op.is_ptx_mark()
            || op.has_any(&[Tag::Misuse, Tag::Asynchronous, Tag::Half])
            || op.has(Tag::Mbarrier) && op.has(Tag::Weak)
        {
            return None;
        }
        if op.has(Tag::Weak) {
            let synchronizing = if op.read().is_some() {
                Order::Acquire
            } else {
                Order::Release
            };
            let scope = row.scope_word(self.wide);
            return Some((
                vec![],
                WEAK.to_owned(),
                [Order::Relaxed, synchronizing]
                    .map(|o| {
                        (
                            Change::Atomic(o, Some(self.wide)),
                            format!("{}{scope}", word(o)),
                        )
                    })
                    .into(),
            ));
        }
        let own = strength::order(op);
        let mut below = Vec::new();
        if op.is_fence() {
            below.push((Change::Nothing, String::new()));
        } else if row.weak && op.accesses().count() == 1 {
            below.push((Change::Weak, WEAK.to_owned()));
        }
        let level = |o: Order| (Change::Order(o), word(o));
        below.extend(strength::weaker(op).into_iter().map(level));
        let above = strength::stronger(op)
            .into_iter()
            .filter(|o| *o != Order::SeqCst || row.sc_accesses || op.is_fence())
            .map(level)
            .collect();
        (own.is_some() || op.is_fence()).then(|| (below, own.map_or_else(String::new, word), above))
    }

    /// Fences in front of all accesses but the first of a thread.
    fn fences_before(&self, kinds: &[NewFence]) -> Vec<Knob> {
        self.fences_at(kinds, false)
    }

    /// A knob for a fence before each access; with `first`, also before the first access of a
    /// thread.
    fn fences_at(&self, kinds: &[NewFence], first: bool) -> Vec<Knob> {
        let program = self.program;
        let above: Vec<_> = kinds
            .iter()
            .map(|&fence| {
                (
                    Change::FenceBefore(fence),
                    fence_text(program.dialect, fence),
                )
            })
            .collect();
        let mut sites = sites_of(program, &|i| i.op.is_access());
        // A fence before a thread's first access orders nothing, and none fits between the
        // micro-ops of one instruction.
        sites.retain(|spots| {
            let (thread, at) = spots[0];
            let before = &program.thread(thread).code[..at];
            !is_inside(program, spots[0]) && (first || before.iter().any(|i| i.op.is_visible()))
        });
        sites
            .iter()
            .map(|spots| Knob::new(at(spots), vec![], String::new(), above.clone()))
            .collect()
    }

    /// A knob for each location that can become another.
    fn locations(
        &self,
        change: Change,
        says: &str,
        can: impl Fn(&LocationKind) -> bool,
    ) -> Vec<Knob> {
        let locations = self
            .program
            .locations
            .iter()
            .zip(0..)
            .filter(|(l, _)| can(&l.kind));
        locations
            .map(|(_, l)| {
                Knob::new(
                    vec![EditSite::Location(LocId(l))],
                    vec![],
                    String::new(),
                    vec![(change, says.to_owned())],
                )
            })
            .collect()
    }
}

/// Whether an instruction continues the visible micro-ops of one in front of it.
fn is_inside(program: &Program, (thread, at): Spot) -> bool {
    let code = &program.thread(thread).code;
    let before = code[..at].iter().rev();
    before
        .take_while(|i| i.id == code[at].id)
        .any(|i| i.op.is_visible())
}

/// The levels below the written one, its words, and the levels above it.
pub(crate) type Levels = (Vec<(Change, String)>, String, Vec<(Change, String)>);

/// The word for an access that is not strong.
pub const WEAK: &str = ".weak";

/// Scopes, up to one that holds all threads.
pub fn scopes(around: &Around<'_>) -> Vec<Knob> {
    let row = around.row();
    around.each(|instr| {
        let own = strength::scope(&instr.op).filter(|_| {
            !instr.op.is_fence() || !(instr.op.has(Tag::MbarrierInit) || instr.op.has(Tag::Half))
        })?;
        let words: Vec<(String, Scope)> = around.family(instr).unwrap_or_else(|| {
            let choices = row.choices().into_iter();
            choices.map(|s| (row.scope_word(s), s)).collect()
        });
        let says = words
            .iter()
            .find(|word| word.1 == own)
            .map_or_else(|| row.scope_word(own), |word| word.0.clone());
        let (below, above): (Vec<_>, Vec<_>) = words
            .into_iter()
            .filter(|s| s.1 != own)
            .partition(|s| s.1 < own);
        let most = if instr.op.has(Tag::Mbarrier) {
            Scope::Cluster.min(around.wide)
        } else {
            around.wide
        };
        let above = above.into_iter().filter(|s| s.1 <= most);
        Some((
            below
                .into_iter()
                .map(|(word, s)| (Change::Scope(s), word))
                .collect(),
            says,
            above.map(|(word, s)| (Change::Scope(s), word)).collect(),
        ))
    })
}

/// Orders of accesses.
pub fn orders(around: &Around<'_>) -> Vec<Knob> {
    around.each(|i| around.order(i).filter(|_| !i.op.is_fence()))
}

/// Fences, and their orders.
pub fn fences(around: &Around<'_>) -> Vec<Knob> {
    around.each(|i| around.order(i).filter(|_| i.op.is_fence()))
}

/// Orders of accesses and fences; for a reduction of PTX, whether it reads.
pub fn strengths(around: &Around<'_>) -> Vec<Knob> {
    around.each(
        |i| match i.op.has(Tag::Reduction) && !i.op.has(Tag::Asynchronous) {
            true => Some((
                vec![],
                "red".to_owned(),
                vec![(Change::Result, "atom".to_owned())],
            )),
            false => around.order(i),
        },
    )
}

/// Proxies of PTX.
pub fn proxies(around: &Around<'_>) -> Vec<Knob> {
    around.each(|i| {
        let through = around.row().proxies && has_proxy(&i.op) && !i.op.has(Tag::Asynchronous);
        through.then(|| {
            (
                vec![],
                "its proxy".to_owned(),
                vec![(Change::Generic, "the generic proxy".to_owned())],
            )
        })
    })
}

/// Whether an access of PTX goes through another proxy than the generic one.
pub fn has_proxy(op: &Op) -> bool {
    PROXIES.iter().any(|p| goes_through(op, *p))
}

/// Second names of locations (PTX).
pub fn names(around: &Around<'_>) -> Vec<Knob> {
    around.locations(Change::OneName, "", |kind| {
        matches!(kind, LocationKind::Alias { .. })
    })
}

/// Flags of fences and barriers of OpenCL.
pub fn flags(around: &Around<'_>) -> Vec<Knob> {
    around.each(|i| {
        let lacks = around.row().regions && strength::lacks_flags(&i.op);
        lacks.then(|| {
            (
                vec![],
                "its flags".to_owned(),
                vec![(Change::Regions, strength::ALL_FLAGS.to_owned())],
            )
        })
    })
}

/// Local memory of OpenCL.
pub fn regions(around: &Around<'_>) -> Vec<Knob> {
    around.locations(Change::Global, "", |kind| match kind {
        LocationKind::Object { opencl, .. } => opencl.local && !opencl.global,
        LocationKind::Alias { .. } => false,
    })
}

/// Buffers of OpenCL that several devices use.
pub fn buffers(around: &Around<'_>) -> Vec<Knob> {
    let program = around.program;
    let devices: BTreeSet<u32> = program.threads.iter().map(|t| t.place.gpu).collect();
    let several = around.row().regions && devices.len() > 1;
    around.locations(Change::FineGrained, "", |kind| match kind {
        // An object that each device has a copy of is not shared.
        LocationKind::Object {
            kind: MemoryKind::ProgramScope,
            ..
        } => false,
        LocationKind::Object { opencl, kind, .. } => {
            several && opencl.global && !program.machine.has_svm_atomics(*kind)
        }
        LocationKind::Alias { .. } => false,
    })
}

/// Barriers, each with those that it meets.
pub fn barriers(around: &Around<'_>) -> Vec<Knob> {
    let mut groups: Vec<(String, Vec<Spot>)> = Vec::new();
    for spot in spots(around.program) {
        let Some(barrier) = instr(around.program, spot).op.barrier() else {
            continue;
        };
        let key = match &barrier.naming {
            BarrierNaming::Counted { id, .. } => format!("{id:?}"),
            BarrierNaming::Instance { instance, .. } => instance.to_string(),
        };
        match groups.iter_mut().find(|g| g.0 == key) {
            Some(group) => group.1.push(spot),
            None => groups.push((key, vec![spot])),
        }
    }
    groups
        .iter()
        .map(|g| {
            Knob::new(
                at(&g.1),
                vec![(Change::Nothing, String::new())],
                String::new(),
                vec![],
            )
        })
        .collect()
}

/// Places of threads. Programs with barriers or shared memory have none: these mean something else
/// at another place.
pub fn places(around: &Around<'_>) -> Vec<Knob> {
    let program = around.program;
    fn local(l: &Location) -> bool {
        matches!(
            l.kind,
            LocationKind::Object {
                space: Space::Shared,
                ..
            }
        )
    }
    let barrier = program.instrs().any(|(_, _, i)| i.op.barrier().is_some());
    if barrier || program.locations.iter().any(local) || around.row().levels.is_empty() {
        return Vec::new();
    }
    let group = around.row().noun(Scope::Cta);
    program
        .thread_ids()
        .filter_map(|t| {
            let b = program.thread(t);
            let other = program.thread_ids().take_while(|o| *o < t).find(|&o| {
                let a = program.thread(o);
                a.place != b.place && !a.place.host && !b.place.host
            })?;
            let says = format!(
                "{} in the {group} of {}",
                b.name,
                program.thread(other).name
            );
            Some(Knob::new(
                vec![EditSite::Thread(t)],
                vec![],
                String::new(),
                vec![(Change::PlaceOf(other), says)],
            ))
        })
        .collect()
}

/// Fences between the proxies that a program of PTX goes through.
pub fn proxy_fences(around: &Around<'_>) -> Vec<Knob> {
    fences_of_proxies(around, false)
}

/// As [`proxy_fences`], also before the first access of a thread: in one reading of the source, a
/// fence there orders its accesses for others.
pub fn proxy_fences_anywhere(around: &Around<'_>) -> Vec<Knob> {
    fences_of_proxies(around, true)
}

fn fences_of_proxies(around: &Around<'_>, first: bool) -> Vec<Knob> {
    let program = around.program;
    let kinds = PROXIES
        .into_iter()
        .filter(|p| around.row().proxies && uses_proxy(program, *p));
    kinds
        .flat_map(|p| around.fences_at(&[NewFence::Proxy(p)], first))
        .collect()
}

/// Whether a program has a second name of a location, or an access through a proxy.
fn uses_proxy(program: &Program, proxy: Tag) -> bool {
    match proxy {
        Tag::Alias => program
            .locations
            .iter()
            .any(|l| matches!(l.kind, LocationKind::Alias { .. })),
        _ => spots(program).any(|s| goes_through(&instr(program, s).op, proxy)),
    }
}

/// Fences that order memory.
pub fn fences_before(around: &Around<'_>) -> Vec<Knob> {
    around.fences_before(
        &[Order::AcqRel, Order::SeqCst].map(|order| NewFence::Memory(order, around.wide)),
    )
}

/// Stores of values that were read, and branches on them, in the execution that the answer rests
/// on. `value` gives the value that a store writes, and `path` whether a branch is taken.
pub fn dependencies(
    program: &Program,
    value: &dyn Fn(Spot) -> Option<i64>,
    path: &dyn Fn(Spot) -> Option<bool>,
) -> Vec<Knob> {
    fn reads(e: &Expr) -> bool {
        let mut any = false;
        e.registers(&mut |_| any = true);
        any
    }
    spots(program)
        .filter_map(|spot| {
            let level = match &instr(program, spot).op {
                Op::Store { value: written, .. } if reads(written) => {
                    let v = value(spot)?;
                    (
                        Change::Value(v),
                        format!("the value {v} whatever the read returns"),
                    )
                }
                Op::Branch { cond, .. } if reads(cond) => {
                    let taken = path(spot)?;
                    let word = if taken { "always" } else { "never" };
                    (
                        Change::Path(taken),
                        format!("a branch that is {word} taken"),
                    )
                }
                _ => return None,
            };
            Some(Knob::new(
                at(&[spot]),
                vec![level],
                DEPENDENCE.to_owned(),
                vec![],
            ))
        })
        .collect()
}

/// The written state of a dependency.
const DEPENDENCE: &str = "the dependency";

/// Whether an access goes through a proxy of PTX.
fn goes_through(op: &Op, proxy: Tag) -> bool {
    op.is_access() && op.has(proxy)
}
