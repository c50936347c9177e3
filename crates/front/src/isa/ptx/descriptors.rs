//! Matrix descriptors: numbers of 64 bits that say where a matrix lies in shared memory.
//!
//! Code computes a descriptor from the address of an object: it shifts the address by 4, masks it,
//! and adds the other fields and the offset of a stage. Here such a value stays known as an object,
//! the offset in it and the fields, so the bytes that an instruction reads are known, too.
//!
//! # Invariants
//! - A descriptor names bytes of one object of shared memory. Everything counts from the first byte
//!   of the object, so no verdict depends on the placement of objects.
//! - The sum of offset and address never leaves its field of 14 bits: addresses of shared memory
//!   have 18 bits.
//!
//! # Sources
//! - PTX ISA 9.4, *Asynchronous Warpgroup Level Matrix Shared Memory Layout*: *Matrix Descriptor*
//!   (fields), *Strides* and *Canonical Layouts* (bytes).
//!
//! # Where we differ
//! - An object that a descriptor names begins at a multiple of 1,024 bytes, as swizzles of 128
//!   bytes need. The alignment of its declaration is not looked at.

use super::known::place;
use super::lower::{Emit, PtxInstr};
use super::operands::plus;
use program::points::Points;
use program::{BinOp, Expr, LocId, Op, Program, RegId, Tag, Tile, Ty};

/// The unit of addresses and strides in a descriptor, and the bytes of a row of a core matrix.
pub(super) const CHUNK: i64 = 16;
/// The alignment of objects that descriptors name.
pub(super) const ALIGNED: i64 = 1024;
/// The bits of a descriptor that hold an address.
const START: i64 = 0x3fff;
const WORD: i64 = 0xffff_ffff;
const HALF: i64 = 0xffff;
/// The bits that an address of shared memory may have, and a few more.
const WINDOW: i64 = 1 << 20;

/// Whether a mask keeps every bit that the address of an aligned object in shared memory may have.
pub(super) fn keeps_address(mask: i64) -> bool {
    let bits = ((START * CHUNK) | (CHUNK - 1)) & !(ALIGNED - 1);
    (0..WINDOW).contains(&mask) && mask & bits == bits
}

/// A value of which it is known from which object's address code computed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoded {
    /// The shifted address of an object plus a constant.
    At(LocId, i64),
    /// A number with unknown lower 16 bits, which hold the shifted address of some byte of an
    /// object, with these upper 32 ones, and these between them, if they are known.
    In(LocId, i64, Option<i64>),
    /// The address of some byte of an object.
    Inside(LocId),
}

impl Encoded {
    /// Reads the form that [`Encoded::expr`] gives.
    fn of(value: &Expr) -> Option<Encoded> {
        let Expr::Bin(op, Ty::U64, shifted, constant) = value else {
            return None;
        };
        let (Expr::Bin(BinOp::Shr, _, address, _), Expr::Const(constant)) =
            (&**shifted, &**constant)
        else {
            return None;
        };
        let Expr::Address(loc) = **address else {
            return None;
        };
        match op {
            BinOp::Add => Some(Encoded::At(loc, *constant)),
            BinOp::Or => {
                let middle = (constant >> 16) & HALF;
                let is_known = constant & 1 == 1;
                let high = (constant >> 32) & WORD;
                Some(Encoded::In(loc, high, is_known.then_some(middle)))
            }
            BinOp::Min => Some(Encoded::Inside(loc)),
            _ => None,
        }
    }

    fn expr(self) -> Expr {
        let (op, loc, constant) = match self {
            Encoded::At(loc, bits) => (BinOp::Add, loc, bits),
            Encoded::In(loc, high, middle) => {
                let lower = middle.map_or(0, |middle| middle << 16 | 1);
                (BinOp::Or, loc, high << 32 | lower)
            }
            // No code has this form.
            Encoded::Inside(loc) => (BinOp::Min, loc, 0),
        };
        let shifted = bin(BinOp::Shr, Expr::Address(loc), Expr::Const(4));
        bin(op, shifted, Expr::Const(constant))
    }

    /// The object, and the upper 32 bits.
    fn upper(self) -> (LocId, i64) {
        match self {
            Encoded::At(loc, bits) => (loc, (bits >> 32) & WORD),
            Encoded::In(loc, high, _) => (loc, high),
            Encoded::Inside(loc) => (loc, 0),
        }
    }

    /// The bits 16 to 31, if they are known.
    fn middle(self) -> Option<i64> {
        match self {
            Encoded::At(_, bits) => Some((bits >> 16) & HALF),
            Encoded::In(_, _, middle) => middle,
            Encoded::Inside(_) => None,
        }
    }

    /// The lower 32 bits.
    fn lower(self) -> Encoded {
        match self {
            Encoded::At(loc, bits) => Encoded::At(loc, bits & WORD),
            Encoded::In(loc, _, middle) => Encoded::In(loc, 0, middle),
            Encoded::Inside(_) => self,
        }
    }

    /// The result of an operation with a constant.
    fn with(self, op: BinOp, ty: Ty, by: i64) -> Option<Expr> {
        let word = |bits: i64| if ty.bits == 64 { bits } else { bits & WORD };
        let by = word(by);
        let upper = by >> 32 & WORD;
        let result = match (self, op) {
            (whole, BinOp::Shr | BinOp::Shl) if by == 0 => whole,
            (Encoded::Inside(_), BinOp::Add) => self,
            (Encoded::Inside(_), BinOp::And) if keeps_address(by) => self,
            (Encoded::Inside(loc), BinOp::Shr) if by == 4 => Encoded::In(loc, 0, None),
            (Encoded::At(_, bits), BinOp::Shr) if (16..64).contains(&by) => {
                return Some(Expr::Const((bits as u64 >> by) as i64));
            }
            (Encoded::In(_, high, _), BinOp::Shr) if (32..64).contains(&by) => {
                return Some(Expr::Const(high >> (by - 32)));
            }
            (Encoded::At(_, bits), BinOp::And) if by & 0xffff == 0 => {
                return Some(Expr::Const(bits & by));
            }
            (Encoded::In(_, high, _), BinOp::And) if by & WORD == 0 => {
                return Some(Expr::Const(high << 32 & by));
            }
            (Encoded::At(loc, bits), BinOp::And) if by & START == START => {
                Encoded::At(loc, bits & by)
            }
            (Encoded::In(loc, high, middle), BinOp::And) if by & START == START => {
                let kept = (by >> 16) & HALF;
                let middle = match kept {
                    0 => Some(0),
                    kept => middle.map(|middle| middle & kept),
                };
                Encoded::In(loc, high & upper, middle)
            }
            (Encoded::At(loc, bits), BinOp::Add) => Encoded::At(loc, word(bits.wrapping_add(by))),
            (Encoded::At(loc, bits), BinOp::Or | BinOp::Xor) if by & (START | bits) == 0 => {
                Encoded::At(loc, bits | by)
            }
            (Encoded::In(loc, high, middle), BinOp::Or) => {
                let middle = middle.map(|middle| middle | (by >> 16) & HALF);
                Encoded::In(loc, high | upper, middle)
            }
            // The fields leave two bits between them, so a sum carries nothing into the next one,
            // and a negative summand changes the offset alone.
            (Encoded::In(loc, high, middle), BinOp::Add) => {
                let summand = if upper == WORD { 0 } else { upper };
                let middle = middle.and_then(|middle| match (by >> 16) & HALF {
                    HALF => Some(middle),
                    by => Some(middle + by).filter(|sum| *sum <= HALF),
                });
                Encoded::In(loc, (high + summand) & WORD, middle)
            }
            _ => return None,
        };
        Some(result.expr())
    }
}

fn bin(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::Bin(op, Ty::U64, Box::new(a), Box::new(b))
}

/// Whether a known value was computed from an address, and is none that is known.
pub(super) fn is_encoded(value: &Expr) -> bool {
    Encoded::of(value).is_some()
}

/// Evaluates an operation with an operand that was computed from a shifted address, or that shifts
/// one. `None` inside means that the result is not known; `None` outside, that the operation has no
/// such operand. `narrow`: whether the addresses of a location fit 32 bits.
pub(super) fn computed(
    op: BinOp,
    ty: Ty,
    a: Option<&Expr>,
    b: Option<&Expr>,
    narrow: &dyn Fn(LocId) -> bool,
) -> Option<Option<Expr>> {
    if let (BinOp::Shr, Some(address), Some(Expr::Const(4))) = (op, a, b)
        && let Some((loc, offset)) = place(address)
    {
        let whole = narrow(loc) && offset >= 0 && offset % CHUNK == 0;
        return Some(whole.then(|| Encoded::At(loc, offset / CHUNK).expr()));
    }
    // Adding an unknown number to an address leads to some byte of its object.
    if let (BinOp::Add, Some(address), None) | (BinOp::Add, None, Some(address)) = (op, a, b)
        && let Some((loc, _)) = place(address)
    {
        return Some(narrow(loc).then(|| Encoded::Inside(loc).expr()));
    }
    let [left, right] = [a, b].map(|side| side.and_then(Encoded::of));
    let (encoded, other) = match (left, right) {
        (None, None) => return None,
        (Some(encoded), _) => (encoded, b),
        (None, Some(encoded)) if op.is_free_of_order() => (encoded, a),
        (None, Some(_)) => return Some(None),
    };
    Some(match (other, op) {
        (Some(Expr::Const(by)), BinOp::Sub) => encoded.with(BinOp::Add, ty, by.wrapping_neg()),
        (Some(Expr::Const(by)), _) => encoded.with(op, ty, *by),
        (None, BinOp::Add) if matches!(encoded, Encoded::Inside(_)) => Some(encoded.expr()),
        (None, BinOp::Add) if ty.bits == 32 => Some(Encoded::In(encoded.upper().0, 0, None).expr()),
        _ => None,
    })
}

/// The conversion of such a value to a type; `None` outside for other values.
pub(super) fn converted(value: &Expr, ty: Ty) -> Option<Option<Expr>> {
    let encoded = Encoded::of(value)?;
    Some(match ty.bits {
        64 => Some(encoded.expr()),
        32 => Some(encoded.lower().expr()),
        _ => None,
    })
}

/// A value that holds what is known of both: the object, and of a descriptor the upper word.
pub(super) fn joined(a: &Expr, b: &Expr, narrow: &dyn Fn(LocId) -> bool) -> Option<Expr> {
    if let [Some(a), Some(b)] = [a, b].map(inside) {
        return (a == b && narrow(a)).then(|| Encoded::Inside(a).expr());
    }
    let (a, b) = (Encoded::of(a)?, Encoded::of(b)?);
    let middle = a.middle().filter(|middle| b.middle() == Some(*middle));
    let (a, b) = (a.upper(), b.upper());
    (a == b).then(|| Encoded::In(a.0, a.1, middle).expr())
}

/// The object that a value is an address in.
fn inside(value: &Expr) -> Option<LocId> {
    match Encoded::of(value) {
        Some(Encoded::Inside(loc)) => Some(loc),
        Some(_) => None,
        None => place(value).map(|(loc, _)| loc),
    }
}

/// A known value as an operand: with the register that holds it, if its offset is not known. `None`
/// for an address that is not known.
pub(super) fn operand(known: Expr, register: &Expr) -> Option<Expr> {
    match Encoded::of(&known) {
        Some(Encoded::In(..)) => Some(bin(BinOp::Xor, known, register.clone())),
        Some(Encoded::Inside(_)) => None,
        _ => Some(known),
    }
}

/// The direction in which elements of a matrix are adjacent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Major {
    /// Along the dimension that the product sums up.
    K,
    /// Along the other dimension, `M` or `N`.
    Outer,
}

/// The form of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DescriptorForm {
    /// That of `wgmma`: the swizzle is in bits 62 and 63.
    Warpgroup,
    /// That of `tcgen05`: bits 46 to 48 are a constant, and the swizzle is in bits 61 to 63.
    TensorCore,
}

impl DescriptorForm {
    /// The number of adjacent chunks that the swizzle permutes, from the upper word.
    fn width(self, upper: i64) -> Option<i64> {
        match (self, upper >> 29 & 7) {
            (DescriptorForm::Warpgroup, field) => Some([1, 8, 4, 2][field as usize >> 1]),
            (DescriptorForm::TensorCore, 0) => Some(1),
            (DescriptorForm::TensorCore, 2) => Some(8),
            (DescriptorForm::TensorCore, 4) => Some(4),
            (DescriptorForm::TensorCore, 6) => Some(2),
            (DescriptorForm::TensorCore, _) => None,
        }
    }

    /// Whether the constant bits of the upper word are right, and no field is set that is not
    /// supported.
    fn fits(self, upper: i64) -> bool {
        let constant = upper >> 14 & 7 == 1 && upper >> 20 & 0x1ff == 0;
        self.width(upper).is_some() && (self == DescriptorForm::Warpgroup || constant)
    }
}

/// The layout that the fields of a descriptor give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MatrixLayout {
    /// The number of adjacent chunks that a swizzle permutes: 1 without one, 2, 4 or 8.
    width: i64,
    /// The leading dimension's byte offset, if it is known.
    leading: Option<i64>,
    /// The stride dimension's byte offset.
    stride: i64,
}

impl MatrixLayout {
    /// Reads the fields above the address; `leading` is the field of bits 16 to 29.
    fn of(form: DescriptorForm, upper: i64, leading: Option<i64>) -> MatrixLayout {
        MatrixLayout {
            width: form.width(upper).unwrap_or(1),
            leading: leading.map(|field| field * CHUNK),
            stride: (upper & START) * CHUNK,
        }
    }

    /// The offsets of all chunks from the start, before the swizzle. `outer` is the number of rows
    /// of `M` or columns of `N`. `None` if they depend on an unknown field.
    fn chunks(&self, outer: i64, major: Major) -> Option<Vec<i64>> {
        let (width, plain) = (self.width, self.width == 1);
        let leading = match (major, plain) {
            (Major::K, false) => CHUNK,
            // All columns lie within the first repetition.
            (Major::Outer, false) if outer / 8 <= width => 0,
            _ => self.leading?,
        };
        let mut all: Vec<i64> = match major {
            Major::K => (0..outer)
                .flat_map(|row| {
                    let at = row % 8 * width * CHUNK + row / 8 * self.stride;
                    [at, at + leading]
                })
                .collect(),
            // Elements have 16 bits: eight of them along the outer dimension, sixteen along `K`.
            Major::Outer => (0..outer / 8)
                .flat_map(|chunk| {
                    let (near, far) = if plain {
                        (chunk * self.stride, leading)
                    } else {
                        (chunk % width * CHUNK + chunk / width * leading, self.stride)
                    };
                    (0..16).map(move |k| near + k % 8 * width * CHUNK + k / 8 * far)
                })
                .collect(),
        };
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    /// The bits of an address that the swizzle changes.
    fn mask(&self) -> i64 {
        (self.width - 1) * CHUNK
    }
}

/// A matrix in shared memory.
pub(super) struct SharedMatrix {
    /// Its object.
    pub(super) object: LocId,
    /// The byte of the object at which it starts, if that is known.
    start: Option<i64>,
    /// The register with the descriptor, otherwise.
    register: Option<RegId>,
    layout: MatrixLayout,
}

impl SharedMatrix {
    /// The matrix that operand `at` describes. Reports an error and returns `None` if too little of
    /// the descriptor is known.
    pub(super) fn read(
        e: &mut Emit<'_, '_>,
        c: &PtxInstr,
        at: usize,
        form: DescriptorForm,
    ) -> Option<SharedMatrix> {
        e.ask();
        let value = c.expr(at);
        let (known, register) = match &value {
            Expr::Bin(BinOp::Xor, _, known, register) => (&**known, Some(&**register)),
            known => (known, None),
        };
        let encoded = Encoded::of(known).filter(|found| !matches!(found, Encoded::Inside(_)));
        let Some(encoded) = encoded else {
            let message = "the descriptor of this matrix is not known here";
            e.error("unsupported-descriptor", c.opcode.clone(), message, |d| {
                d.label(format!("operand {}", at + 1)).help(
                    "compute it from the address of a location in shared memory, shifted by 4, \
                     and from constants; only its lower word may depend on other values",
                )
            });
            return None;
        };
        let (object, upper) = encoded.upper();
        if !form.fits(upper) {
            let message = "a matrix descriptor of this form is not supported";
            e.error("unsupported-descriptor", c.opcode.clone(), message, |d| {
                d.label(format!("operand {} has the upper word {upper:#x}", at + 1))
                    .help("`tcgen05` needs 1 in bits 46 to 48, and 0 in bits 52 to 60")
            });
            return None;
        }
        if upper >> 17 & 7 != 0 {
            let message = "a matrix descriptor with a base offset is not supported";
            e.error("unsupported-descriptor", c.opcode.clone(), message, |d| {
                d.label(format!("operand {}", at + 1))
            });
            return None;
        }
        let start = match encoded {
            Encoded::At(_, bits) => Some((bits & START) * CHUNK),
            Encoded::In(..) | Encoded::Inside(_) => None,
        };
        let leading = encoded.middle().map(|middle| middle & START);
        let register = match register {
            Some(Expr::Reg(register)) => Some(*register),
            _ => None,
        };
        Some(SharedMatrix {
            object,
            start,
            register,
            layout: MatrixLayout::of(form, upper, leading),
        })
    }

    /// The addresses of its chunks, and their offsets in the object if the start is known. Reports
    /// an error and returns `None` if a stride is not known.
    pub(super) fn addresses(
        &self,
        e: &mut Emit<'_, '_>,
        c: &PtxInstr,
        outer: i64,
        major: Major,
    ) -> Option<Vec<(Expr, Option<i64>)>> {
        let Some(chunks) = self.layout.chunks(outer, major) else {
            let message = "the leading dimension's offset of a matrix descriptor is not known here";
            e.error("unsupported-descriptor", c.opcode.clone(), message, |d| {
                d.label("the layout needs it")
            });
            return None;
        };
        let mask = self.layout.mask();
        let all = chunks
            .into_iter()
            .map(|chunk| match (self.start, self.register) {
                (Some(start), _) => {
                    let at = start + chunk;
                    let at = at ^ (at >> 3 & mask);
                    (behind(self.object, at), Some(at))
                }
                (None, register) => {
                    let value = register.map_or(Expr::Const(0), Expr::Reg);
                    (self.swizzled(value, chunk, mask), None)
                }
            });
        Some(all.collect())
    }

    /// The address at which it starts, and its bytes from there. `None` if a stride is not known.
    pub(super) fn tile(&self, outer: i64, major: Major) -> Option<(Expr, Tile<Expr>)> {
        let chunks = self.layout.chunks(outer, major)?;
        let start = match (self.start, self.register) {
            (Some(start), _) => behind(self.object, start),
            (None, register) => {
                let value = register.map_or(Expr::Const(0), Expr::Reg);
                let start = bin(BinOp::And, value, Expr::Const(START));
                let start = bin(BinOp::Shl, start, Expr::Const(4));
                bin(BinOp::Add, Expr::Address(self.object), start)
            }
        };
        let tile = Tile::Pieces {
            offsets: chunks.into_iter().map(|at| (at, CHUNK)).collect(),
            swizzle: self.layout.mask(),
        };
        Some((start, tile))
    }

    /// The address of a chunk, from the value of the descriptor, which counts from the object.
    fn swizzled(&self, descriptor: Expr, chunk: i64, mask: i64) -> Expr {
        let start = bin(BinOp::And, descriptor, Expr::Const(START));
        let start = bin(BinOp::Shl, start, Expr::Const(4));
        let at = bin(BinOp::Add, start, Expr::Const(chunk));
        let at = if mask == 0 {
            at
        } else {
            let row = bin(BinOp::Shr, at.clone(), Expr::Const(3));
            bin(BinOp::Xor, at, bin(BinOp::And, row, Expr::Const(mask)))
        };
        bin(BinOp::Add, Expr::Address(self.object), at)
    }
}

/// The address of a byte of an object.
fn behind(object: LocId, bytes: i64) -> Expr {
    let byte = Ty {
        bits: 8,
        signed: false,
    };
    plus(Expr::Address(object), bytes, byte)
}

/// Makes numbers of addresses count from the object's first byte, where code shifts or masks the
/// address of an object that a descriptor names.
pub(super) fn relative(program: &mut Program) {
    let mut named: Vec<LocId> = program
        .instrs()
        .filter(|(_, _, instr)| {
            instr
                .op
                .accesses()
                .any(|access| access.tags.has_any(&[Tag::Wgmma, Tag::TensorCore]))
        })
        .filter_map(|(_, _, instr)| Some(program.object(instr.op.address()?.base()?)))
        .collect();
    named.sort_unstable();
    named.dedup();
    if named.is_empty() {
        return;
    }
    let points = Points::compute(program);
    for t in 0..program.threads.len() {
        for i in 0..program.threads[t].code.len() {
            if let Op::Assign { value, .. } = &mut program.threads[t].code[i].op {
                value.visit_mut(&mut |part| counted(part, t, &points, &named));
            }
        }
    }
}

/// Subtracts the object's address from a masked or shifted operand.
fn counted(part: &mut Expr, thread: usize, points: &Points, named: &[LocId]) {
    let Expr::Bin(op, _, a, b) = part else {
        return;
    };
    let takes_bits = match (&*op, &**b) {
        (BinOp::Shr, _) => true,
        (BinOp::And, Expr::Const(mask)) => (0..WINDOW).contains(mask),
        _ => false,
    };
    let targets = points.of(thread, a);
    if let (true, 1, Some(object)) = (takes_bits, targets.len(), targets.first())
        && named.contains(object)
    {
        let address = std::mem::replace(&mut **a, Expr::Const(0));
        **a = bin(BinOp::Sub, address, Expr::Address(*object));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: LocId = LocId(0);

    fn run(ops: &[(BinOp, Ty, Expr)], offset: i64) -> Option<Expr> {
        ops.iter()
            .try_fold(behind(X, offset), |value, (op, ty, by)| {
                computed(*op, *ty, Some(&value), Some(by), &|_| true)?
            })
    }

    #[test]
    fn the_fields_of_a_descriptor_stay_known() {
        let fields = 0x4000_0040_0001_0000;
        let ops = [
            (BinOp::Shr, Ty::U32, Expr::Const(4)),
            (BinOp::And, Ty::U32, Expr::Const(START)),
            (BinOp::Or, Ty::U64, Expr::Const(fields)),
            (BinOp::Add, Ty::U64, Expr::Const(64)),
        ];
        let found = run(&ops, 2048);
        assert_eq!(found, Some(Encoded::At(X, fields + 128 + 64).expr()));
        let upper = found
            .and_then(|value| Encoded::of(&value))
            .map(Encoded::upper);
        let layout = MatrixLayout::of(DescriptorForm::Warpgroup, upper.map_or(0, |u| u.1), Some(1));
        assert_eq!(
            (layout.width, layout.stride, layout.leading),
            (8, 1024, Some(16))
        );
    }

    #[test]
    fn an_address_of_an_unknown_stage_keeps_its_object() {
        let start = Expr::Address(X);
        let sum = computed(BinOp::Add, Ty::U32, Some(&start), None, &|_| true).flatten();
        let sum = sum.expect("known in part");
        let ops = [
            (BinOp::And, Expr::Const(0x3fc00)),
            (BinOp::Shr, Expr::Const(4)),
        ];
        let found = ops.iter().try_fold(sum.clone(), |value, (op, by)| {
            computed(*op, Ty::U32, Some(&value), Some(by), &|_| true)?
        });
        let found = found.and_then(|value| Encoded::of(&value));
        assert_eq!(found, Some(Encoded::In(X, 0, None)));
        assert_eq!(operand(sum.clone(), &Expr::Const(0)), None);
        assert_eq!(joined(&start, &behind(X, 1024), &|_| true), Some(sum));
    }

    #[test]
    fn masks_of_whole_addresses_are_told_from_others() {
        assert!(keeps_address(0x3ffff) && keeps_address(0x3fc00));
        assert!(!keeps_address(0x1ffff) && !keeps_address(1023) && !keeps_address(-16));
    }

    #[test]
    fn a_descriptor_comes_to_pieces() {
        let whole = Encoded::At(X, 0x4000_0040_0001_0080);
        let low = whole.with(BinOp::Shr, Ty::U64, 0).expect("known");
        let low = converted(&low, Ty::U32)
            .flatten()
            .and_then(|low| Encoded::of(&low));
        assert_eq!(low, Some(Encoded::At(X, 0x1_0080)));
        let high = whole.with(BinOp::Shr, Ty::U64, 32);
        assert_eq!(high, Some(Expr::Const(0x4000_0040)));
    }

    #[test]
    fn an_address_that_is_not_a_multiple_of_16_has_no_descriptor() {
        assert_eq!(run(&[(BinOp::Shr, Ty::U32, Expr::Const(4))], 8), None);
    }

    #[test]
    fn a_sum_with_an_unknown_number_keeps_the_object_and_the_upper_word() {
        let at = Encoded::At(X, 5).expr();
        let sum = computed(BinOp::Add, Ty::U32, Some(&at), None, &|_| true).flatten();
        let sum = sum.expect("known in part");
        assert_eq!(Encoded::of(&sum), Some(Encoded::In(X, 0, None)));
        let high = Expr::Const(0x4000_0040_0000_0000);
        let whole = computed(BinOp::Or, Ty::U64, Some(&high), Some(&sum), &|_| true).flatten();
        let whole = whole.and_then(|value| Encoded::of(&value));
        assert_eq!(whole, Some(Encoded::In(X, 0x4000_0040, None)));
    }

    #[test]
    fn a_mask_tells_the_leading_dimension_of_an_unknown_stage() {
        let stage = Encoded::In(X, 0, None);
        let masked = |mask| {
            let found = stage.with(BinOp::And, Ty::U32, mask);
            found.and_then(|value| Encoded::of(&value))
        };
        assert_eq!(masked(0x7fff), Some(Encoded::In(X, 0, Some(0))));
        assert_eq!(masked(0x1_ffff), Some(Encoded::In(X, 0, None)));
        let fields = 0x4000_0040_0002_0000;
        let own = Encoded::In(X, 0, Some(0)).with(BinOp::Or, Ty::U64, fields);
        let own = own.and_then(|value| Encoded::of(&value));
        assert_eq!(own, Some(Encoded::In(X, 0x4000_0040, Some(2))));
        let next = own.and_then(|own| own.with(BinOp::Add, Ty::U64, -2));
        assert_eq!(next, own.map(Encoded::expr));
        let other = Encoded::In(X, 0x4000_0040, Some(3)).expr();
        let both = own.and_then(|own| joined(&own.expr(), &other, &|_| true));
        assert_eq!(
            both.and_then(|value| Encoded::of(&value)),
            Some(Encoded::In(X, 0x4000_0040, None))
        );
    }

    #[test]
    fn one_repetition_needs_no_leading_dimension() {
        let form = DescriptorForm::Warpgroup;
        let layout = |leading| MatrixLayout::of(form, 0x4000_0040, leading);
        let one = layout(None).chunks(64, Major::Outer);
        assert_eq!(one, layout(Some(7)).chunks(64, Major::Outer));
        assert_eq!(one.map(|all| all.len()), Some(128));
        assert_eq!(layout(None).chunks(128, Major::Outer), None);
    }

    #[test]
    fn a_slice_of_a_swizzled_tile_covers_two_chunks_of_each_row() {
        let layout = MatrixLayout::of(DescriptorForm::Warpgroup, 0x4000_0040, Some(1));
        let chunks = layout.chunks(16, Major::K).expect("known");
        assert_eq!((chunks.len(), chunks[1], chunks[16]), (32, 16, 1024));
        let all: std::collections::BTreeSet<i64> = chunks
            .iter()
            .map(|at| at ^ (at >> 3 & layout.mask()))
            .collect();
        assert_eq!(all.len(), 32);
        assert!(all.contains(&(128 + 16)) && all.contains(&(2 * 128 + 32)));
    }

    #[test]
    fn layouts_cover_as_many_bytes_as_their_matrix_has() {
        for (upper, leading) in [(0x8, 0x40), (0xc000_0010, 0x80), (0x8000_0020, 0x100)] {
            let layout = MatrixLayout::of(DescriptorForm::Warpgroup, upper, Some(leading));
            let outer = layout.chunks(64, Major::Outer).map(|all| all.len());
            let inner = layout.chunks(64, Major::K).map(|all| all.len());
            assert_eq!((outer, inner), (Some(128), Some(128)), "{layout:?}");
        }
    }
}
