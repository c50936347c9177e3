//! Settles accesses through addresses in registers: finds their possible objects, and from these
//! their types.
//!
//! An access through a register names no object. A flow-insensitive analysis over the whole program
//! finds the objects whose address can reach the register. They determine the type of an access
//! without one, and such accesses determine the type of an object without one.
//!
//! # Invariants
//! - An access through a register covers the same number of elements of every object that the
//!   register can point to. Anything else is reported as `mixed-size`. [`super::parts`] divides
//!   objects with several fields.
//! - No result depends on the placement of objects in memory: arithmetic on addresses other than
//!   with offsets is reported.
//! - Threads that are not in PTX, such as those of the host, already have types. The analysis
//!   follows addresses through them and leaves them unchanged.

use std::collections::{BTreeMap, HashMap};

use super::LoweredThread;
use super::descriptors;
use super::known;
use super::memory;
use super::parts;
use super::private;
use super::regs::is_half;
use super::reuse::{self, Separation};
use crate::isa::OpenObjects;
use diag::{Sink, Span};
use program::mbarrier;
use program::points::{Points, Targets, access_of};
use program::{
    BinOp, Class, Expr, Init, Layout, LocId, LocationKind, Op, Program, RegId, Space, Tag, Ty,
    is_further,
};

/// For a thread in PTX, its accesses through registers without a type; `None` for other threads.
pub(super) type Untyped = Option<Vec<usize>>;

/// The supported arithmetic on addresses.
const OFFSETS: &str =
    "only adding an offset to an address is supported, in 64 bits or, of shared memory, 32";

/// Settles accesses through addresses in registers. `untyped` lists accesses without a type, by
/// thread; `open` lists objects with properties that no declaration decides.
pub fn resolve(program: &mut Program, untyped: &[Untyped], open: &OpenObjects, sink: &mut Sink) {
    descriptors::relative(program);
    private::keep(program, untyped, open);
    spaces(program, untyped, sink);
    let mut points = Points::compute(program);
    let mut untyped = untyped.to_vec();
    let found = loop {
        match reuse::separate(program, &points, &open.bytes, &mut untyped) {
            Separation::Moved => points = Points::compute(program),
            Separation::Kept(found) => break found,
        }
    };
    let untyped = &untyped[..];
    let gave_types = infer(program, &points, untyped, &open.untyped, sink);
    let errors = sink.errors();
    // Offsets of initial addresses depend on types.
    let found = found.filter(|_| !gave_types);
    let parts = parts::cut(program, &points, &open.bytes, found, sink);
    if sink.errors() > errors {
        return;
    }
    let open = &open.untyped;
    objects(program, &points, untyped, sink);
    for (t, untyped) in untyped.iter().enumerate() {
        let Some(untyped) = untyped else { continue };
        for i in 0..program.threads[t].code.len() {
            let instr = &program.threads[t].code[i];
            let mut pass = PointerCheck {
                program,
                points: &points,
                open,
                thread: t,
                span: instr.span,
                sink,
            };
            let known = parts.get(&(t, i)).copied();
            // A tile has bytes, whatever the elements of its object.
            let ty = match instr.tile {
                Some(_) => None,
                None => pass.access(&instr.op, untyped.binary_search(&i).is_ok(), known),
            };
            if memory::is_non_coherent(instr) {
                pass.never_written(&instr.op);
            }
            if let Op::Assign { dst, value } = &instr.op
                // The token that an arrival returns is not an address, although it is computed from
                // one.
                && !is_further(&program.threads[t].code, i)
                && !pass.is_masked(*dst, value)
            {
                pass.arithmetic(value);
            }
            if let Some(ty) = ty {
                program.threads[t].code[i]
                    .op
                    .accesses_mut()
                    .for_each(|access| access.ty = ty);
            }
            if let Some(cells) = known.or_else(|| cells(program, &points, t, i)) {
                program.threads[t].code[i].element.cells = cells;
            }
        }
    }
}

/// Answers `isspacep` instructions, and removes the code that becomes unreachable: libraries have
/// separate code for local memory, which accesses it byte by byte.
fn spaces(program: &mut Program, untyped: &[Untyped], sink: &mut Sink) {
    if !program
        .instrs()
        .any(|(_, _, instr)| memory::asks_space(instr).is_some())
    {
        return;
    }
    let points = Points::compute(program);
    for t in (0..program.threads.len()).filter(|t| untyped[*t].is_some()) {
        let mut asks = false;
        for i in 0..program.threads[t].code.len() {
            let instr = &program.threads[t].code[i];
            let Some((address, is_in)) = memory::asks_space(instr) else {
                continue;
            };
            let mut pass = PointerCheck {
                program,
                points: &points,
                open: &[],
                thread: t,
                span: instr.span,
                sink,
            };
            let answer = i64::from(pass.is_in_space(address, is_in));
            if let Op::Assign { value, .. } = &mut program.threads[t].code[i].op {
                *value = Expr::Const(answer);
                asks = true;
            }
        }
        if asks {
            let code = &mut program.threads[t].code;
            let reached = known::reached(code, &|_| false);
            for (at, instr) in code.iter_mut().enumerate().filter(|(at, _)| !reached[*at]) {
                instr.op = Op::Branch {
                    cond: Expr::Const(0),
                    target: at + 1,
                };
            }
        }
    }
}

/// Marks objects that mbarrier operations reach through registers, whatever their declaration: in
/// PTX, an mbarrier object is a word of shared memory (PTX ISA, *mbarrier*, Contents of the
/// mbarrier object). The object must be a single element, so that each operation is one event.
fn objects(program: &mut Program, points: &Points, untyped: &[Untyped], sink: &mut Sink) {
    let mut found: BTreeMap<LocId, Span> = BTreeMap::new();
    for (t, thread) in program
        .threads
        .iter()
        .enumerate()
        .filter(|(t, _)| untyped[*t].is_some())
    {
        for instr in thread
            .code
            .iter()
            .filter(|instr| instr.op.has(Tag::Mbarrier))
        {
            let reached = instr
                .op
                .address()
                .map(|addr| points.of(t, addr))
                .unwrap_or_default();
            // Objects with several fields are marked field by field elsewhere.
            reached
                .into_iter()
                .filter(|object| program.layout(*object).cells() == 1)
                .for_each(|object| {
                    found.entry(object).or_insert(instr.span);
                });
        }
    }
    for (object, span) in found {
        let bits = program.element(object).bits;
        if bits != mbarrier::WORD.bits {
            let name = &program.location(object).name;
            let message = format!("an mbarrier object in `{name}`, which has {bits}-bit elements");
            sink.error("mixed-size", span, message, |d| {
                d.label(format!(
                    "an mbarrier object is one word of {} bits",
                    mbarrier::WORD.bits
                ))
                .help(format!(
                    "declare `{name}` with `type = \"u64\"`, and separately the memory with other \
                    accesses"
                ))
            });
        }
        if let LocationKind::Object { class, .. } =
            &mut program.locations[usize::from(object.0)].kind
        {
            class.get_or_insert(Class::Mbarrier);
        }
    }
}

/// The number of cells that an access covers, if there are several.
fn cells(program: &Program, points: &Points, t: usize, i: usize) -> Option<u8> {
    let (addr, ty) = access_of(&program.threads[t].code[i].op)?;
    let object = addr
        .base()
        .or_else(|| points.of(t, addr).first().copied())?;
    Some(ty.bits / program.element(object).bits).filter(|cells| *cells > 1)
}

/// Gives each object without a type the type of the first access through a register; returns
/// whether there was one.
fn infer(
    program: &mut Program,
    points: &Points,
    untyped: &[Untyped],
    open: &[LocId],
    sink: &mut Sink,
) -> bool {
    let mut found: HashMap<LocId, Ty> = HashMap::new();
    for (t, (thread, untyped)) in program.threads.iter().zip(untyped).enumerate() {
        let Some(untyped) = untyped else { continue };
        for (i, instr) in thread.code.iter().enumerate() {
            let Some((addr, ty)) = access_of(&instr.op) else {
                continue;
            };
            let is_typed = untyped.binary_search(&i).is_err() && instr.tile.is_none();
            if is_typed && addr.base().is_none() {
                for object in points.of(t, addr).into_iter().filter(|o| open.contains(o)) {
                    found.entry(object).or_insert(ty);
                }
            }
        }
    }
    for (object, new) in &found {
        if let LocationKind::Object { layout, init, .. } =
            &mut program.locations[usize::from(object.0)].kind
        {
            *layout = Layout::from(*new);
            init.iter_mut().for_each(|v| {
                if let Init::Int(v) = v {
                    *v = new.wrap(*v);
                }
            });
        }
    }
    for (t, untyped) in untyped.iter().enumerate() {
        for i in 0..program.threads[t].code.len() {
            let Some((addr, known)) = access_of(&program.threads[t].code[i].op) else {
                continue;
            };
            let object = addr.base().map(|loc| program.object(loc));
            let Some((object, ty)) = object.and_then(|object| Some((object, found.get(&object)?)))
            else {
                continue;
            };
            if untyped.is_some() {
                program.threads[t].code[i]
                    .op
                    .accesses_mut()
                    .for_each(|access| access.ty = *ty);
            } else if known != *ty {
                // The thread's further computation depends on the value's type.
                let (name, span) = (
                    program.location(object).name.clone(),
                    program.threads[t].code[i].span,
                );
                sink.error(
                    "missing-type",
                    span,
                    format!("`{name}` needs a type"),
                    |d| {
                        d.label("only accesses through registers show the type")
                            .help(format!(
                                "declare it, for example `{name} = {{ type = \"u32\" }}`"
                            ))
                    },
                );
            }
        }
    }
    !found.is_empty()
}

/// The check of one instruction against the result of the analysis.
struct PointerCheck<'a> {
    program: &'a Program,
    points: &'a Points,
    open: &'a [LocId],
    thread: usize,
    span: Span,
    sink: &'a mut Sink,
}

impl PointerCheck<'_> {
    /// The size of an element of an object.
    fn bits(&self, object: LocId) -> u8 {
        self.program.element(object).bits
    }

    /// Whether elements of an object have several fields.
    fn has_fields(&self, object: LocId) -> bool {
        self.program.layout(object).cells() > 1
    }

    /// The type of an access through a register; reports an error and returns `None` if it is not
    /// supported. `parts`: the number of cells that it covers, if it may reach an object with
    /// several fields.
    fn access(&mut self, op: &Op, untyped: bool, parts: Option<u8>) -> Option<Ty> {
        let (addr, ty) = access_of(op).filter(|(addr, _)| addr.base().is_none() && !op.aborts())?;
        let targets = self.points.of(self.thread, addr);
        let Some(first) = targets.first().copied() else {
            self.sink.error(
                "not-an-address",
                self.span,
                "no address of a location can get into this register",
                |d| {
                    d.label("expected a register that holds an address").help(
                        "give it one with `mov.u64 %rd1, x` or with `regs = { rd1 = \"&x\" }`",
                    )
                },
            );
            return None;
        };
        let wanted = if untyped {
            self.program.element(first)
        } else {
            ty
        };
        if untyped && wanted.bits != ty.bits && matches!(addr, Expr::Bin(..)) {
            self.sink.error(
                "missing-type",
                self.span,
                "an offset from a register needs the access's type",
                |d| d.label(format!("expected a type of {} bits", wanted.bits)),
            );
            return None;
        }
        if let Some(parts) = parts.filter(|_| !untyped)
            && targets
                .iter()
                .all(|o| self.has_fields(*o) || self.bits(*o) * parts == wanted.bits)
        {
            return Some(wanted);
        }
        // The access may cover several elements of each object, if the declaration gives their
        // type.
        let piece = self.bits(first);
        let several = piece != 0 && wanted.bits > piece && wanted.bits.is_multiple_of(piece);
        if targets.iter().all(|o| {
            several && self.bits(*o) == piece && !self.open.contains(o) && !self.has_fields(*o)
        }) {
            return Some(wanted);
        }
        if let Some(other) = targets.into_iter().find(|o| self.bits(*o) != wanted.bits) {
            let (name, bits) = (&self.program.location(other).name, self.bits(other));
            let message = format!(
                "a {}-bit access that can reach `{name}`, which has {bits}-bit elements",
                wanted.bits
            );
            self.sink.error("mixed-size", self.span, message, |d| {
                d.label(format!("{} bits", wanted.bits)).help(
                    "declare the objects with the smallest type that they are \
                     accessed with, for example `type = \"u32\"`",
                )
            });
            return None;
        }
        Some(wanted)
    }

    /// Reports a non-coherent load of memory that some thread may write: the PTX memory model does
    /// not define its value (PTX ISA, *ld.global.nc*: memory that is read-only while the kernel
    /// runs). Other non-coherent loads are weak loads.
    fn never_written(&mut self, op: &Op) {
        let read = op
            .address()
            .map(|addr| self.points.of(self.thread, addr))
            .unwrap_or_default();
        if let Some(object) = self
            .points
            .written(self.program)
            .find(|object| read.contains(object))
        {
            let name = &self.program.location(object).name;
            let message = format!("a non-coherent load of `{name}`, which is written");
            self.sink
                .error("unsupported-load", self.span, message, |d| {
                    d.label("the PTX memory model does not cover this").note(
                        "memory that is read with `.nc` is read-only while the kernel runs (PTX \
                         ISA, ld.global.nc)",
                    )
                });
        }
    }

    /// Whether an address is in a state space. Reports an error if the answer differs between its
    /// possible objects.
    fn is_in_space(&mut self, address: &Expr, is_in: memory::IsIn) -> bool {
        let space = |object: &LocId| match &self.program.location(*object).kind {
            LocationKind::Object { space, .. } => *space,
            _ => Space::Global,
        };
        let answers: Vec<bool> = self
            .points
            .of(self.thread, address)
            .iter()
            .map(|o| is_in(space(o)))
            .collect();
        let known = answers
            .first()
            .copied()
            .filter(|first| answers.iter().all(|other| other == first));
        if known.is_none() {
            self.unsupported(if answers.is_empty() {
                "no address of a location can get into this register"
            } else {
                "its state space depends on the object to which it points"
            });
        }
        known == Some(true)
    }

    /// Reports arithmetic on an address other than adding an offset, and offsets that point inside
    /// an element.
    fn arithmetic(&mut self, value: &Expr) {
        match value {
            Expr::Bin(op, ty, a, b) => {
                let (left, right) = (
                    self.points.of(self.thread, a),
                    self.points.of(self.thread, b),
                );
                let (base, offset) = match (op, left.is_empty(), right.is_empty()) {
                    (_, true, true) => return,
                    (BinOp::Add | BinOp::Sub, false, true) if self.fits(&left, *ty) => (left, b),
                    (BinOp::Add, true, false) if self.fits(&right, *ty) => (right, a),
                    // The distance of two bytes of one object.
                    (BinOp::Sub, false, false) if left.len() == 1 && left == right => {
                        self.arithmetic(a);
                        return self.arithmetic(b);
                    }
                    (BinOp::And, false, true) if self.is_aligned(&left, b, *ty) => {
                        return self.arithmetic(a);
                    }
                    (BinOp::And, true, false) if self.is_aligned(&right, a, *ty) => {
                        return self.arithmetic(b);
                    }
                    (BinOp::And, ..) => {
                        return self.unsupported(
                            "an address is a multiple of the element size, and objects in global \
                            memory begin at words: code can mask only the bits below",
                        );
                    }
                    _ => return self.unsupported(OFFSETS),
                };
                let size = self.smallest(&base);
                if matches!(**offset, Expr::Const(n) if n % i64::from(size) != 0) {
                    let message = "this offset is not a multiple of the element size";
                    self.sink.error("misaligned", self.span, message, |d| {
                        d.label(format!("elements have {size} bytes"))
                            .note("partially overlapping accesses are not supported")
                    });
                }
                self.arithmetic(a);
                self.arithmetic(b);
            }
            Expr::Cast(ty, inner) if !self.fits(&self.points.of(self.thread, inner), *ty) => {
                self.unsupported(
                    "an address does not fit fewer than 64 bits, or 32 if it is of shared memory",
                );
            }
            Expr::Cast(_, inner) => self.arithmetic(inner),
            Expr::Fused(_, three)
                if three
                    .iter()
                    .any(|e| !self.points.of(self.thread, e).is_empty()) =>
            {
                self.unsupported(OFFSETS);
            }
            Expr::Select(_, a, b) => {
                self.arithmetic(a);
                self.arithmetic(b);
            }
            _ => {}
        }
    }

    /// Whether an assignment takes low bits of an address, possibly shifted left, into a register
    /// whose other bits code never reads. Only bits below the element size count as low. Compilers
    /// implement an atomic operation on a part of a word this way, by one on the word.
    fn is_masked(&self, dst: RegId, value: &Expr) -> bool {
        let (ty, address, by) = match value {
            Expr::Cast(ty, address) if ty.bits >= 32 => (*ty, address, 0),
            Expr::Bin(BinOp::Shl, ty, address, by) if let Expr::Const(by) = **by => {
                (*ty, address, by)
            }
            _ => return false,
        };
        let targets = self.points.of(self.thread, address);
        if !matches!(**address, Expr::Reg(_))
            || targets.is_empty()
            || !(0..i64::from(ty.bits)).contains(&by)
        {
            return false;
        }
        let known = 0..i64::from(self.unit(&targets)) << by;
        let reads = |e: &Expr| e.any(&|e| *e == Expr::Reg(dst));
        let takes = |op: &Op| match op {
            // A check of the mask, or of the next operation, decides whether these bits are known.
            Op::Assign {
                value: Expr::Bin(BinOp::And | BinOp::Shl, _, a, b),
                ..
            } if by == 0 && **a == Expr::Reg(dst) => {
                matches!(**b, Expr::Const(_))
            }
            Op::Assign {
                value: Expr::Bin(BinOp::And, _, a, b),
                ..
            } if **a == Expr::Reg(dst) => {
                matches!(**b, Expr::Const(mask) if known.contains(&mask))
            }
            _ => false,
        };
        let code = &self.program.threads[self.thread].code;
        !self.fits(&targets, ty) | (by > 0)
            && code
                .iter()
                .all(|i| takes(&i.op) || !i.op.operands().into_iter().any(reads))
    }

    /// The size of the smallest element of some objects. An object with several fields counts as
    /// bytes. Objects in registers have no elements.
    fn smallest(&self, objects: &Targets) -> u32 {
        objects
            .iter()
            .filter(|o: &&LocId| {
                !matches!(
                    self.program.location(**o).kind,
                    LocationKind::Object {
                        space: Space::Register,
                        ..
                    }
                )
            })
            .map(|o| match self.program.layout(*o) {
                layout if layout.cells() > 1 => 1,
                layout => layout.field(0).ty.bytes(),
            })
            .min()
            .unwrap_or(1)
    }

    /// The alignment known for addresses of these objects: the element size, and at least a word in
    /// global memory, where every allocation begins at a word (CUDA C++ Programming Guide, Device
    /// Memory Accesses).
    fn unit(&self, objects: &Targets) -> u32 {
        let size = self.smallest(objects);
        if objects.iter().all(|o: &LocId| {
            matches!(
                self.program.location(*o).kind,
                LocationKind::Object {
                    space: Space::Global,
                    ..
                }
            )
        }) {
            size.max(4)
        } else {
            size
        }
    }

    /// Whether a mask removes, or selects, only bits of an address below the known alignment.
    fn is_aligned(&self, objects: &Targets, mask: &Expr, ty: Ty) -> bool {
        let Expr::Const(mask) = mask else {
            return false;
        };
        let mask = Ty { signed: true, ..ty }.wrap(*mask);
        let below = 0..i64::from(self.unit(objects));
        // Selected low bits are also in the lower half of the address.
        below.contains(&mask)
            || self.fits(objects, ty) && below.contains(&!mask) && (!mask + 1).count_ones() == 1
    }

    /// Whether a type can hold addresses of these objects. Those of shared memory fit 32 bits (PTX
    /// ISA, Generic Addressing).
    fn fits(&self, objects: &Targets, ty: Ty) -> bool {
        ty.bits == 64
            || (ty.bits == 32
                && objects
                    .iter()
                    .all(|o| self.program.is_shared(*o) || self.is_low(*o)))
            || objects.is_empty()
    }

    /// Whether the test binds half of a pointer to the object.
    fn is_low(&self, object: LocId) -> bool {
        let halves = self.program.threads[self.thread]
            .regs
            .iter()
            .filter(|r| is_half(&r.name));
        halves.into_iter().any(|r| match r.init {
            Init::Address { loc, .. } => self.program.object(loc) == object,
            _ => false,
        })
    }

    fn unsupported(&mut self, why: &str) {
        self.sink.error(
            "unsupported-address",
            self.span,
            "this arithmetic on an address is not supported",
            |d| d.label("computes with an address").note(why),
        );
    }
}

impl LoweredThread {
    /// Indices of accesses through registers without a type, for [`resolve`].
    pub fn untyped(&self) -> &[usize] {
        &self.untyped
    }
}
