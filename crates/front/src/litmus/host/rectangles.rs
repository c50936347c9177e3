//! Finds the cells that a copy of a rectangle copies.
//!
//! # Invariants
//! - Origins and the region are a number of bytes, one of rows, and one of slices. A pitch of 0 is
//!   that of the region.
//!
//! # Sources
//! - OpenCL API specification, clEnqueueReadBufferRect, clEnqueueWriteBufferRect,
//!   clEnqueueCopyBufferRect.

use super::HostBuilder;
use super::bodies::CopiedCell;
use crate::isa::clike::host::Request;
use program::{Layout, LocId};

/// A rectangle in memory: its first byte, and the distances of rows and slices in bytes.
struct Rectangle {
    first: u64,
    row: u64,
    slice: u64,
}

impl Rectangle {
    /// `None`: the pitches do not fit the region.
    fn new(origin: &[u64; 3], pitches: [u64; 2], region: &[u64; 3]) -> Option<Rectangle> {
        let [row, slice] = pitches;
        let row = if row == 0 { region[0] } else { row };
        let height = region[1].checked_mul(row)?;
        let slice = if slice == 0 { height } else { slice };
        let first = origin[2].checked_mul(slice)?;
        let first = first.checked_add(origin[1].checked_mul(row)?)?;
        let first = first.checked_add(origin[0])?;
        let fits = row >= region[0] && slice >= height && slice % row == 0;
        fits.then_some(Rectangle { first, row, slice })
    }

    /// The byte behind the last one.
    fn end(&self, region: &[u64; 3]) -> Option<u64> {
        let rows = (region[1] - 1).checked_mul(self.row)?;
        let slices = (region[2] - 1).checked_mul(self.slice)?;
        self.first
            .checked_add(rows)?
            .checked_add(slices)?
            .checked_add(region[0])
    }
}

impl HostBuilder<'_, '_> {
    /// The cells that a copy of a rectangle copies.
    pub(super) fn rectangle(
        &mut self,
        request: &Request,
        to: LocId,
        from: LocId,
    ) -> Option<Vec<CopiedCell>> {
        let [target, source] = [to, from].map(|memory| self.bodies.layout(memory));
        let size = target.bytes(target.cells());
        let sizes = |n: usize| -> Option<[u64; 3]> {
            let (all, _) = request.sizes[n].as_ref()?;
            all.as_slice().try_into().ok()
        };
        let (Some(to_origin), Some(from_origin), Some(region)) = (sizes(0), sizes(1), sizes(2))
        else {
            return self.no_rectangle(
                request,
                "expected three numbers for each origin and the region",
            );
        };
        if !target.is_alike(&source) {
            return self.no_rectangle(request, "expected two memories of one type");
        }
        if region.contains(&0) {
            return self.no_rectangle(request, "expected positive numbers in the region");
        }
        let [to_row, to_slice, from_row, from_slice] = request.pitches;
        let into = Rectangle::new(&to_origin, [to_row, to_slice], &region);
        let out_of = Rectangle::new(&from_origin, [from_row, from_slice], &region);
        let (Some(into), Some(out_of)) = (into, out_of) else {
            return self.no_rectangle(
                request,
                "expected rows as wide as the region, and slices of whole rows",
            );
        };
        let ends = |memory: LocId, rectangle: &Rectangle| {
            let bytes = u64::from(self.bodies.elements(memory)) * size;
            rectangle.end(&region).is_some_and(|end| end <= bytes)
        };
        if !ends(to, &into) || !ends(from, &out_of) {
            return self.no_rectangle(request, "expected a rectangle inside of the memory");
        }
        let numbers = [region[0], into.first, into.row, into.slice];
        let others = [out_of.first, out_of.row, out_of.slice];
        if numbers.iter().chain(&others).any(|n| n % size != 0) {
            let message = format!("expected whole elements of {size} bytes");
            return self.no_rectangle(request, &message);
        }
        if to == from {
            return self.no_rectangle(
                request,
                "expected two memories: overlapping ones are an error",
            );
        }
        Some(cells_of([&target, &source], [&into, &out_of], &region))
    }

    fn no_rectangle<T>(&mut self, request: &Request, expected: &str) -> Option<T> {
        let message = format!("`{}` does not copy such a rectangle", request.name);
        self.sink.error("bad-range", request.span, message, |d| {
            d.label(expected)
                .note("OpenCL API, clEnqueueCopyBufferRect: CL_INVALID_VALUE, CL_MEM_COPY_OVERLAP")
        });
        None
    }
}

/// The cells of two rectangles of a size, in memory with such elements.
fn cells_of(
    layouts: [&Layout; 2],
    rectangles: [&Rectangle; 2],
    region: &[u64; 3],
) -> Vec<CopiedCell> {
    let ([target, source], [into, out_of]) = (layouts, rectangles);
    let size = target.bytes(target.cells());
    let mut all = Vec::new();
    for slice in 0..region[2] {
        for row in 0..region[1] {
            let start = |of: &Rectangle| (of.first + row * of.row + slice * of.slice) / size;
            let row = [start(into), start(out_of), region[0] / size];
            row_of_cells(&mut all, target, source, row);
        }
    }
    all
}

/// Appends the cells of a row. `row`: the first elements in the two memories, and the number of
/// elements.
fn row_of_cells(all: &mut Vec<CopiedCell>, target: &Layout, source: &Layout, row: [u64; 3]) {
    let cells = target.cells() as u64;
    let [to, from, length] = row.map(|elements| (elements * cells) as u32);
    all.extend((0..length).map(|at| CopiedCell {
        to: target.offset(to + at),
        from: source.offset(from + at),
        ty: target.field(at).ty,
    }));
}
