//! Divides structures, and arrays of bytes that hold values of several sizes, into cells according
//! to their accesses.
//!
//! An array declared in bytes gets the coarsest cells such that each access covers whole cells. An
//! object with fields has a cell for each field.
//!
//! # Invariants
//! - At all its places, an access covers the same number of cells, all of one size, so the program
//!   determines that number. A division at one of its places therefore applies to all of them.
//! - An mbarrier object is one cell (PTX ISA, *mbarrier*, Contents of the mbarrier object). Other
//!   accesses to possible mbarrier objects are reported.
//! - An access to a place that the analysis did not find belongs to no cell ([`super::offsets`]).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::offsets::{Offsets, places};
use super::ranges::Range;
use diag::{Sink, Span};
use program::points::{Points, access_of};
use program::{Dialect, Field, Init, Layout, LocId, LocationKind, Program, Tag, Ty, mbarrier};

/// The number of cells of each access, by thread and micro-op, for accesses that may reach objects
/// with several fields.
pub(crate) type Cells = HashMap<(usize, usize), u8>;

/// An access to an object through a register, with its possible places.
#[derive(Clone)]
pub(super) struct RegisterAccess {
    /// Its thread and micro-op.
    pub(super) at: (usize, usize),
    span: Span,
    /// Its size in bytes.
    pub(super) size: u32,
    /// Whether it is an operation on an mbarrier object.
    pub(super) of_object: bool,
    /// The offsets at which it can begin. Accesses of one size with equal places share them.
    pub(super) places: Rc<[i64]>,
}

/// The size of an access and its ranges in an object; `None`: it can be anywhere.
type AccessRanges = (u32, Option<Vec<Range>>);

/// The size of an access and the identity of its places.
type AccessShape = (u32, *const i64);

impl RegisterAccess {
    fn shape(&self) -> AccessShape {
        (self.size, self.places.as_ptr())
    }
}

/// The objects that are divided: the arrays in `bytes`, and those with several fields.
pub(super) fn divided(program: &Program, bytes: &[LocId]) -> Vec<LocId> {
    (0..program.locations.len() as u16)
        .map(LocId)
        .filter(|object| bytes.contains(object) || has_several_cells(program, *object))
        .collect()
}

/// Divides the arrays in `bytes`. Returns the number of cells for all accesses to objects with
/// several fields. `found`: the accesses to divided objects, if they are known.
pub(crate) fn cut(
    program: &mut Program,
    points: &Points,
    bytes: &[LocId],
    found: Option<ObjectAccesses>,
    sink: &mut Sink,
) -> Cells {
    let objects = divided(program, bytes);
    if objects.is_empty() {
        return Cells::new();
    }
    let found = found.unwrap_or_else(|| ObjectAccesses::of(program, points, &objects));
    let all: BTreeMap<LocId, Vec<RegisterAccess>> = objects
        .iter()
        .map(|object| (*object, found.to(program, *object)))
        .filter(|(_, accesses)| !accesses.is_empty())
        .collect();
    for object in bytes {
        let accesses = all.get(object).map_or(&[][..], Vec::as_slice);
        let layout = whole(program, *object, accesses, sink);
        lay(program, *object, layout);
    }
    let mut cells = Cells::new();
    for (object, accesses) in &all {
        marked(program, *object, accesses);
        let count = match &program.location(*object).kind {
            LocationKind::Object { init, .. } => init.len() as u32,
            LocationKind::Alias { .. } => 0,
        };
        let layout = program.layout(*object);
        let mut starts = vec![0; layout.bytes(count as usize) as usize];
        for cell in 0..count {
            starts[layout.offset(cell) as usize] = layout.field(cell).ty.bytes();
        }
        // Threads often make the same accesses.
        let mut counts: HashMap<AccessShape, Option<u8>> = HashMap::new();
        // An access without a place in this object has one in another, or faults.
        for access in accesses.iter().filter(|access| !access.places.is_empty()) {
            let count = counts
                .entry(access.shape())
                .or_insert_with(|| counted(&starts, access));
            match *count {
                Some(n) if cells.insert(access.at, n).is_none_or(|other| other == n) => {}
                found => refuse(program, *object, access, found.is_some(), sink),
            }
        }
    }
    for access in all.values().flatten() {
        cells.entry(access.at).or_insert(1);
    }
    cells
}

fn has_several_cells(program: &Program, object: LocId) -> bool {
    match &program.location(object).kind {
        LocationKind::Object { layout, .. } => layout.cells() > 1,
        LocationKind::Alias { .. } => false,
    }
}

/// The accesses to objects, without their places.
pub(crate) struct ObjectAccesses {
    all: BTreeMap<LocId, Vec<RegisterAccess>>,
    offsets: Offsets,
}

impl ObjectAccesses {
    /// The accesses to some objects. Computes where all of them can be, which takes long.
    pub(super) fn of(program: &Program, points: &Points, objects: &[LocId]) -> ObjectAccesses {
        let mut all: BTreeMap<LocId, Vec<RegisterAccess>> = BTreeMap::new();
        let mut threads: BTreeSet<usize> = BTreeSet::new();
        for (t, i, instr) in program.instrs() {
            let t = usize::from(t.0);
            let Some((addr, ty)) = access_of(&instr.op) else {
                continue;
            };
            // A tile has bytes, not cells; a tile with an mbarrier object is a race with it.
            if instr.tile.is_some() {
                continue;
            }
            let targets = points.of(t, addr);
            for object in targets
                .into_iter()
                .filter(|object| objects.contains(object))
            {
                threads.insert(t);
                let of_object = instr.op.has(Tag::Mbarrier);
                let access = RegisterAccess {
                    at: (t, i),
                    span: instr.span,
                    size: ty.bytes(),
                    of_object,
                    places: Rc::default(),
                };
                all.entry(object).or_default().push(access);
            }
        }
        let offsets = Offsets::compute(program, &threads);
        ObjectAccesses { all, offsets }
    }

    /// The accesses to an object, with their places in it.
    pub(super) fn to(&self, program: &Program, object: LocId) -> Vec<RegisterAccess> {
        let mut all = self.all.get(&object).cloned().unwrap_or_default();
        let mut shared: HashMap<AccessRanges, Rc<[i64]>> = HashMap::new();
        for access in &mut all {
            let shape = (access.size, self.offsets.ranges(access.at, object));
            let known = shared.entry(shape).or_insert_with_key(|(size, ranges)| {
                places(program, object, *size, ranges.as_deref()).into()
            });
            access.places = known.clone();
        }
        all
    }
}

/// The layout with the coarsest cells such that each access covers whole cells.
fn whole(program: &Program, object: LocId, accesses: &[RegisterAccess], sink: &mut Sink) -> Layout {
    let bytes = match &program.location(object).kind {
        LocationKind::Object { init, .. } => init.len(),
        LocationKind::Alias { .. } => 0,
    };
    let mut sizes: Vec<u32> = vec![0; bytes];
    // Threads often make the same accesses.
    let shapes: HashMap<AccessShape, &[i64]> = accesses
        .iter()
        .map(|access| (access.shape(), &*access.places))
        .collect();
    loop {
        let mut changed = false;
        for (&(most, _), places) in &shapes {
            let all = || places.iter().flat_map(|place| bytes_at(place, most));
            let size = all()
                .map(|at| sizes[at])
                .filter(|size| *size > 0)
                .min()
                .unwrap_or(most)
                .min(most);
            for at in all() {
                changed |= sizes[at] != size;
                sizes[at] = size;
            }
        }
        if !changed {
            break;
        }
    }
    // Mark the bytes of mbarrier objects, then report other accesses to them.
    let mut objects = vec![false; bytes];
    for access in accesses.iter().filter(|access| access.of_object) {
        access
            .places
            .iter()
            .flat_map(|place| bytes_at(place, access.size))
            .for_each(|at| objects[at] = true);
    }
    let mut reported: HashSet<Span> = HashSet::new();
    for access in accesses.iter().filter(|access| !access.of_object) {
        let hit = access
            .places
            .iter()
            .find(|place| bytes_at(place, access.size).any(|at| objects[at]));
        if let Some(place) = hit.filter(|_| reported.insert(access.span)) {
            let name = &program.location(object).name;
            let word =
                place / i64::from(mbarrier::WORD.bytes()) * i64::from(mbarrier::WORD.bytes());
            let message =
                format!("this can be an access to an mbarrier object, at byte {word} of `{name}`");
            sink.error("mbarrier-access", access.span, message, |d| {
                d.label(if access.places.len() == 1 {
                    "at its place"
                } else {
                    "at some of its places"
                })
                .note(
                    "an ordinary access to an mbarrier object is undefined (PTX ISA \
                     9.4, mbarrier)",
                )
                .help(format!(
                    "if it is to other bytes, declare the layout: `{name} = {{ fields = {{ \
                     data = \"u32[4]\", bar = \"mbarrier\" }} }}`"
                ))
            });
        }
    }
    layout(&sizes, &objects)
}

fn bytes_at(place: &i64, size: u32) -> std::ops::Range<usize> {
    *place as usize..*place as usize + size as usize
}

/// The distance from one structure to the next, if the array holds equal structures. Bytes that are
/// never accessed fit any structure.
fn period(sizes: &[u32], objects: &[bool]) -> usize {
    let largest = sizes.iter().copied().max().unwrap_or(0) as usize;
    let repeats = |apart: &usize| {
        let at = |n: usize| {
            (n..sizes.len())
                .step_by(*apart)
                .map(|at| (sizes[at], objects[at]))
        };
        sizes.len().is_multiple_of(*apart)
            && (0..*apart).all(|n| {
                let mut known = at(n).filter(|(size, _)| *size > 0);
                let Some(first) = known.next() else {
                    return true;
                };
                // A word that no operation uses as an mbarrier object is not one.
                known.all(|other| other == first) && (!first.1 || at(n).all(|other| other == first))
            })
    };
    let mut all = (1..=sizes.len() / largest.max(1)).map(|n| n * largest);
    all.find(|apart| *apart > 0 && repeats(apart))
        .unwrap_or(sizes.len())
}

/// The layout from each byte's cell size.
fn layout(sizes: &[u32], objects: &[bool]) -> Layout {
    let apart = period(sizes, objects);
    let of: Vec<(u32, bool)> = (0..apart)
        .map(|byte| {
            (byte..sizes.len())
                .step_by(apart)
                .find(|at| sizes[*at] > 0)
                .map_or((0, false), |at| (sizes[at], objects[at]))
        })
        .collect();
    let mut cells: Vec<(usize, u32, bool)> = Vec::new();
    let (mut at, mut end) = (0, 0);
    while at < apart {
        // Bytes that are never accessed become words, as large as fit.
        if end <= at {
            end = (at..apart).find(|end| of[*end].0 > 0).unwrap_or(apart);
        }
        let size = match of[at].0 {
            0 => [8, 4, 2, 1]
                .into_iter()
                .find(|size| {
                    at.is_multiple_of(*size as usize) && (end - at).is_multiple_of(*size as usize)
                })
                .unwrap_or(1),
            size => size,
        };
        cells.push((at, size, of[at].1));
        at += size as usize;
    }
    if let [(_, size, false)] = cells[..] {
        return Layout::from(byte_ty(size));
    }
    let mut fields: Vec<Field> = Vec::new();
    for group in cells.chunk_by(|a, b| (a.1, a.2) == (b.1, b.2)) {
        for (k, &(at, size, mbarrier)) in group.iter().enumerate() {
            let index = if group.len() > 1 {
                format!("[{k}]")
            } else {
                String::new()
            };
            let path = format!(".at{}{index}", group[0].0);
            fields.push(Field {
                path,
                offset: at as u32,
                ty: byte_ty(size),
                boolean: false,
                mbarrier,
            });
        }
    }
    Layout::record(None, fields, apart as u32)
}

fn byte_ty(size: u32) -> Ty {
    Ty {
        bits: 8 * size as u8,
        signed: false,
    }
}

/// Makes an array one of bytes. Values that are known become zero.
pub(crate) fn in_bytes(program: &mut Program, object: LocId) {
    let LocationKind::Object { init, layout, .. } =
        &mut program.locations[usize::from(object.0)].kind
    else {
        return;
    };
    let first = match init.contains(&Init::Unknown) {
        true => Init::Unknown,
        false => Init::Int(0),
    };
    *init = vec![first; layout.bytes(init.len()) as usize];
    *layout = Layout::from(byte_ty(1));
}

/// Gives an array of bytes its cells, and converts initial addresses from bytes to cells.
fn lay(program: &mut Program, object: LocId, new: Layout) {
    let LocationKind::Object { layout, init, .. } =
        &mut program.locations[usize::from(object.0)].kind
    else {
        return;
    };
    let bytes = init.len() as i64;
    let count = init.len() / new.bytes(new.cells()).max(1) as usize * new.cells();
    let at: HashMap<i64, u32> = (0..count as u32)
        .map(|cell| (new.offset(cell), cell))
        .collect();
    // A byte inside a cell has no index; use the cell itself, because the points-to analysis starts
    // there.
    let cell = |byte: u32| {
        (0..=i64::from(byte).min(bytes))
            .rev()
            .find_map(|n| at.get(&n).copied())
            .unwrap_or(0)
    };
    let first = if init.contains(&Init::Unknown) {
        Init::Unknown
    } else {
        Init::Int(0)
    };
    *init = vec![first; count];
    *layout = new;
    let starts = program
        .locations
        .iter_mut()
        .flat_map(|location| match &mut location.kind {
            LocationKind::Object { init, .. } => init.iter_mut().collect::<Vec<_>>(),
            LocationKind::Alias { .. } => Vec::new(),
        });
    let regs = program
        .threads
        .iter_mut()
        .flat_map(|thread| thread.regs.iter_mut().map(|reg| &mut reg.init));
    for init in starts.chain(regs) {
        if let Init::Address { loc, index } = init
            && *loc == object
        {
            *index = cell(*index);
        }
    }
}

/// Marks words that code uses as mbarrier objects as such, whatever their declaration says.
fn marked(program: &mut Program, object: LocId, accesses: &[RegisterAccess]) {
    let LocationKind::Object { layout, .. } = &mut program.locations[usize::from(object.0)].kind
    else {
        return;
    };
    if layout.cells() > 1 {
        let places = accesses
            .iter()
            .filter(|access| access.of_object)
            .flat_map(|access| access.places.iter());
        *layout = layout.with_mbarriers(&places.copied().collect());
    }
}

/// The number of cells that an access covers, if it is the same at all places where it covers whole
/// cells. `cells` has the size of the cell that begins at each byte, or 0.
fn counted(cells: &[u32], access: &RegisterAccess) -> Option<u8> {
    fn size_at(byte: i64, cells: &[u32]) -> Option<u32> {
        let at = usize::try_from(byte).ok()?;
        cells.get(at).copied().filter(|size| *size > 0)
    }
    let mut counts = access.places.iter().filter_map(|place: &i64| {
        let size = size_at(*place, cells)?;
        let n = (access.size.is_multiple_of(size)).then_some(access.size / size)?;
        (0..n)
            .all(|k| size_at(place + i64::from(k * size), cells) == Some(size))
            .then_some(n as u8)
    });
    let first = counts.next()?;
    counts.all(|other| other == first).then_some(first)
}

fn refuse(
    program: &Program,
    object: LocId,
    access: &RegisterAccess,
    differs: bool,
    sink: &mut Sink,
) {
    let name = &program.location(object).name;
    let bits = 8 * access.size;
    let layout = program.layout(object);
    let count = match &program.location(object).kind {
        LocationKind::Object { init, .. } => init.len(),
        LocationKind::Alias { .. } => 0,
    };
    let cell = access.places.first().and_then(|place| {
        (0..count as u32).find(|cell: &u32| {
            let from = layout.offset(*cell);
            (from..from + i64::from(layout.field(*cell).ty.bytes())).contains(place)
        })
    });
    let message = match (cell, &*access.places) {
        (Some(cell), [_]) if !differs => {
            let of = layout.field(cell).ty.bits;
            format!(
                "a {bits}-bit access to `{name}{}`, which has {of} bits",
                layout.suffix(cell, count)
            )
        }
        _ => format!("a {bits}-bit access to one field or to several of `{name}`"),
    };
    sink.error("mixed-size", access.span, message, |d| {
        let help = match program.dialect {
            Dialect::Ptx => format!(
                "declare `{name}` with its size alone, `{{ bytes = {} }}`: its fields are then \
                 what its accesses make of it",
                layout.bytes(count)
            ),
            _ => "let each pointer into it stay within values of one size".to_owned(),
        };
        d.label(format!("{bits} bits")).help(help)
    });
}
