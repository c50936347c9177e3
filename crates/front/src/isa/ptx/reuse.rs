//! Storage that holds an mbarrier object at one time and ordinary data at another.
//!
//! The transformation gives mbarrier objects separate words: an object of `n` bytes doubles in
//! size, and an mbarrier operation at byte `k` moves to byte `n + k`. Added micro-ops connect the
//! two uses:
//! - An operation that begins or ends an mbarrier object writes unknown values to the data bytes at
//!   its place. So it races with unordered accesses, and no later read sees the old data.
//! - Before an ordinary access, a test reads the mbarrier word. If an mbarrier object is there, the
//!   access is misuse.
//!
//! # Invariants
//! - Only accesses that threads in PTX make to a single array of bytes are moved. All others stay,
//!   and [`super::parts`] reports them.
//!
//! # Sources
//! - PTX ISA 9.4, *mbarrier*: Contents of the mbarrier object, Lifecycle of the mbarrier object;
//!   *mbarrier.init* (the place holds no valid object), *mbarrier.inval* (an object is invalidated
//!   before its memory is used for anything else).

use std::collections::{BTreeMap, HashSet};

use super::operands::plus;
use super::parts::{self, ObjectAccesses, RegisterAccess};
use super::pointers::Untyped;
use diag::Span;
use program::points::{Points, access_of};
use program::{
    Access, BinOp, CmpOp, Element, Expr, Init, Instr, InstrId, LocId, LocationKind, Op, Program,
    RegId, Register, Scope, Tag, Tags, Ty, Update, mbarrier, memory,
};

/// The size of an mbarrier object in bytes.
const SIZE: i64 = 8;

/// The changes of a thread's micro-ops, by index.
type StorageChanges = BTreeMap<usize, StorageChange>;

/// A change of a micro-op.
#[derive(Clone, Copy)]
enum StorageChange {
    /// Move the access by this number of bytes, to the mbarrier word.
    Move(i64),
    /// Like `Move`, for an operation that begins or ends an object. Data accesses to its bytes have
    /// this size.
    Write(i64, u32),
    /// Insert a test of an mbarrier word before the instruction. The word is this number of bytes
    /// after the address, or contains the byte there.
    Look(i64, BytePosition),
}

/// The position of a byte in its word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BytePosition {
    /// The first byte.
    First,
    /// Any byte.
    Inside,
}

/// What became of a program in which accesses may mix mbarrier objects and data.
pub(crate) enum Separation {
    /// The objects of one array have places of their own now.
    Moved,
    /// Nothing had to be moved. The accesses to all divided objects, if they were computed.
    Kept(Option<ObjectAccesses>),
}

/// Separates the mbarrier objects of one array from its data, if accesses mix them.
pub(crate) fn separate(
    program: &mut Program,
    points: &Points,
    bytes: &[LocId],
    untyped: &mut [Untyped],
) -> Separation {
    // To find the places of all accesses takes long.
    let of_object = bytes.iter().copied().filter(|object| {
        program.instrs().any(|(t, _, instr)| {
            let addr = instr.op.address().filter(|_| instr.op.has(Tag::Mbarrier));
            addr.is_some_and(|addr| points.of(usize::from(t.0), addr).contains(object))
        })
    });
    let of_object: Vec<LocId> = of_object.collect();
    if of_object.is_empty() {
        return Separation::Kept(None);
    }
    let accesses = ObjectAccesses::of(program, points, &parts::divided(program, bytes));
    let found = of_object.into_iter().find_map(|object| {
        Some((
            object,
            changes(program, points, object, &accesses, untyped)?,
        ))
    });
    let Some((object, changes)) = found else {
        return Separation::Kept(Some(accesses));
    };
    extend(program, object);
    for (t, changes) in &changes {
        let moved = rewrite(program, *t, changes);
        untyped[*t]
            .iter_mut()
            .flatten()
            .for_each(|at| *at = moved[*at]);
    }
    Separation::Moved
}

/// The offset of the moved words.
fn end(program: &Program, object: LocId) -> i64 {
    (length(program, object) as u64).next_multiple_of(SIZE as u64) as i64
}

fn length(program: &Program, object: LocId) -> i64 {
    match &program.location(object).kind {
        LocationKind::Object { init, .. } => init.len() as i64,
        LocationKind::Alias { .. } => 0,
    }
}

fn extend(program: &mut Program, object: LocId) {
    let bytes = 2 * end(program, object) as usize;
    if let LocationKind::Object { init, .. } = &mut program.locations[usize::from(object.0)].kind {
        init.resize(bytes, Init::Int(0));
    }
}

/// The changes of all accesses to an array, by thread. `None` if no word has both uses, or some
/// access cannot be followed.
fn changes(
    program: &Program,
    points: &Points,
    object: LocId,
    accesses: &ObjectAccesses,
    untyped: &[Untyped],
) -> Option<BTreeMap<usize, StorageChanges>> {
    let all = accesses.to(program, object);
    let (last, end) = (length(program, object), end(program, object));
    let objects: HashSet<i64> = all
        .iter()
        .filter(|a| a.of_object)
        .flat_map(|a| a.places.iter().map(word_of))
        .collect();
    let is_shared = |access: &&RegisterAccess| {
        access.of_object
            || access
                .places
                .iter()
                .any(|place| objects.contains(&word_of(place)))
    };
    if all
        .iter()
        .all(|access| access.of_object || !is_shared(&access))
    {
        return None;
    }
    if program
        .threads
        .iter()
        .any(|t| t.regs.len() >= usize::from(u16::MAX))
    {
        return None;
    }
    // Code contains the distance to other CTAs' memory as a constant, so it must not change.
    let mut extended = program.clone();
    extend(&mut extended, object);
    let threads = &program.threads;
    let clustered = threads.iter().any(|t| {
        threads
            .iter()
            .any(|u| t.place.same(&u.place, Scope::Cluster) && !t.place.same(&u.place, Scope::Cta))
    });
    if clustered && memory::stride(last as u64) != memory::stride(2 * end as u64) {
        return None;
    }
    // An access beyond the end of the data could reach the moved words.
    let beyond = |access: &RegisterAccess| {
        access
            .places
            .iter()
            .any(|place| place + i64::from(access.size) > last)
    };
    if accesses.to(&extended, object).iter().any(beyond) {
        return None;
    }
    let data = all
        .iter()
        .filter(|access| !access.of_object && is_shared(access));
    let piece = data.map(|access| access.size).min().unwrap_or(SIZE as u32);
    let mut changes: BTreeMap<usize, StorageChanges> = BTreeMap::new();
    for access in all.iter().filter(is_shared) {
        let (t, i) = access.at;
        let instr = &program.threads[t].code[i];
        let (addr, _) = access_of(&instr.op)?;
        let followed = untyped[t].is_some() && points.of(t, addr).len() == 1;
        if !followed
            || (!access.of_object
                && (instr.op.has(Tag::Asynchronous) || !instr.op.has(Tag::Generic)))
        {
            return None;
        }
        let within: HashSet<i64> = access.places.iter().map(|place| place % SIZE).collect();
        let mut within = within.into_iter();
        let change = match (access.of_object, within.next(), within.next()) {
            (true, ..) if begins_or_ends(instr) => StorageChange::Write(end, piece),
            (true, ..) => StorageChange::Move(end),
            (false, Some(at), None) => StorageChange::Look(end - at, BytePosition::First),
            (false, ..) => StorageChange::Look(end, BytePosition::Inside),
        };
        changes.entry(t).or_default().insert(i, change);
    }
    Some(changes)
}

fn word_of(place: &i64) -> i64 {
    place - place % SIZE
}

/// Whether an operation begins or ends an mbarrier object.
fn begins_or_ends(instr: &Instr) -> bool {
    instr.op.has(Tag::MbarrierInit)
        || matches!(
            &instr.op,
            Op::Rmw {
                dst: Some(word),
                update: Update::When { new, .. },
                ..
            } if *new == mbarrier::inval(Expr::Reg(*word))
        )
}

/// The address `by` bytes further on; an address of 0, outside all memory, stays.
fn further(addr: &Expr, by: i64) -> Expr {
    match addr {
        Expr::Select(cond, addr, other) if **other == Expr::Const(0) => {
            Expr::Select(cond.clone(), further(addr, by).into(), other.clone())
        }
        addr => plus(
            addr.clone(),
            by,
            Ty {
                bits: 8,
                signed: false,
            },
        ),
    }
}

/// Applies the changes to a thread. Returns the new index of each micro-op.
fn rewrite(program: &mut Program, t: usize, changes: &StorageChanges) -> Vec<usize> {
    let thread = &mut program.threads[t];
    let word = RegId(thread.regs.len() as u16);
    thread.regs.push(Register {
        name: "mbarrier storage".to_owned(),
        ty: mbarrier::WORD,
        init: Init::Int(0),
    });
    let old = std::mem::take(&mut thread.code);
    let mut code: Vec<Instr> = Vec::new();
    let mut last = old.iter().map(|instr| instr.id.0).max().unwrap_or(0);
    // For each old micro-op, the new target of jumps to it, and its new index.
    let (mut begins, mut moved) = (Vec::new(), Vec::new());
    // Inserted jumps, with correct targets.
    let mut aimed: HashSet<usize> = HashSet::new();
    for (i, instr) in old.iter().enumerate() {
        begins.push(code.len());
        let first = instr.element.at == 0;
        let mut seen: Vec<Expr> = Vec::new();
        for k in instr.element.siblings(i).filter(|_| first) {
            let Some(StorageChange::Look(by, place)) = changes.get(&k) else {
                continue;
            };
            let Some((addr, _)) = old.get(k).and_then(|sibling| access_of(&sibling.op)) else {
                continue;
            };
            let addr = match place {
                BytePosition::First => further(addr, *by),
                BytePosition::Inside => Expr::Bin(
                    BinOp::And,
                    Ty::U64,
                    further(addr, *by).into(),
                    Expr::Const(-SIZE).into(),
                ),
            };
            if !seen.contains(&addr) {
                seen.push(addr.clone());
                // The test is an instruction apart from the access, before it.
                let at = instr.span.start as usize;
                last += 1;
                let like = Instr {
                    id: InstrId(last),
                    element: Element::ONLY,
                    span: Span::new(at, at),
                    ..instr.clone()
                };
                aimed.insert(code.len() + 1);
                let skip = code.len() + 4;
                code.extend(
                    look(addr, word, skip, old.len()).map(|op| Instr { op, ..like.clone() }),
                );
            }
        }
        let mut instr = instr.clone();
        if let (Some(StorageChange::Write(_, piece)), Some((addr, _))) =
            (changes.get(&i), access_of(&instr.op))
        {
            let ty = Ty {
                bits: 8 * *piece as u8,
                signed: false,
            };
            for at in (0..SIZE).step_by(*piece as usize) {
                let access = Access {
                    tags: Tags::of(&[Tag::Generic, Tag::Weak]),
                    scope: None,
                    ty,
                };
                let op = Op::Store {
                    addr: further(addr, at),
                    value: Expr::unknown(ty),
                    access,
                };
                code.push(Instr {
                    op,
                    ..instr.clone()
                });
            }
        }
        if let (Some(StorageChange::Move(by) | StorageChange::Write(by, _)), Op::Rmw { addr, .. }) =
            (changes.get(&i), &mut instr.op)
        {
            *addr = further(addr, *by);
        }
        moved.push(code.len());
        code.push(instr);
    }
    begins.push(code.len());
    for (_, instr) in code
        .iter_mut()
        .enumerate()
        .filter(|(at, _)| !aimed.contains(at))
    {
        if let Some(target) = instr.op.target_mut() {
            *target = begins[*target];
        }
    }
    program.threads[t].code = code;
    moved
}

/// Tests an mbarrier word: if an object is there, the thread ends and the program is undefined.
/// Like a failed test, it writes nothing and orders nothing.
fn look(addr: Expr, word: RegId, skip: usize, end: usize) -> [Op; 4] {
    let update = Update::When {
        cond: Expr::Const(0),
        new: Expr::Reg(word),
    };
    let live = mbarrier::live(Expr::Reg(word));
    let dead = Expr::Cmp(CmpOp::Eq, Ty::WORD, live.into(), Expr::Const(0).into());
    [
        Op::Rmw {
            dst: Some(word),
            addr,
            update,
            read: weak_half(),
            write: weak_half(),
        },
        Op::Branch {
            cond: dead,
            target: skip,
        },
        Op::fence(Tags::of(&[Tag::Misuse]), None),
        Op::Branch {
            cond: Expr::Const(1),
            target: end,
        },
    ]
}

fn weak_half() -> Access {
    Access {
        tags: Tags::of(&[
            Tag::Generic,
            Tag::Atomic,
            Tag::Rmw,
            Tag::Mbarrier,
            Tag::Weak,
        ]),
        scope: None,
        ty: mbarrier::WORD,
    }
}
