//! Tiles: the bytes that one access of a matrix instruction or a tensor copy covers.
//!
//! In a large CTA, an access to a tile is one micro-op. Its address is that of the tile's start,
//! and the tile lists the bytes. In a small one, each element of a tile is a micro-op, and
//! there are no tiles.
//!
//! # Invariants
//! - Only asynchronous loads and stores have tiles, and nothing depends on the values that they
//!   transfer.
//! - An engine that does not know tiles refuses programs with one (`Program::tiled`): the type of
//!   such an access says nothing about its size.

/// The bytes of an access; `E` are expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tile<E> {
    /// Pieces of shared memory.
    Pieces {
        /// The offset of each piece from the start of the tile, and its number of bytes. In order.
        offsets: Vec<(i64, i64)>,
        /// The bits of an offset in the object that its swizzle changes, by those three above them.
        swizzle: i64,
    },
    /// A box of a tensor in global memory; the address is that of the tensor.
    Box {
        /// The size in bytes of an element.
        element: i64,
        /// The number of elements of the tensor in each dimension; adjacent ones first.
        sizes: Vec<i64>,
        /// The distance in bytes between neighbours, in each dimension but the first.
        strides: Vec<i64>,
        /// The number of elements of the box in each dimension.
        boxes: Vec<i64>,
        /// The first element of the box in each dimension.
        coordinates: Vec<E>,
    },
}

impl<E> Tile<E> {
    /// The offset behind its last byte, as far as constants give it.
    pub fn end(&self) -> i64 {
        match self {
            Tile::Pieces { offsets, swizzle } => {
                let last = offsets.last().map_or(0, |(at, bytes)| at + bytes);
                // A swizzle permutes the pieces of a line.
                ((last - 1) | *swizzle) + 1
            }
            Tile::Box {
                element,
                sizes,
                strides,
                ..
            } => {
                let steps = strides.iter().zip(&sizes[1..]);
                let last: i64 = steps.map(|(stride, size)| stride * (size - 1)).sum();
                last + sizes[0] * element
            }
        }
    }

    /// The ranges of bytes from the start of the object, or of the tensor, if the tile begins at
    /// `start` there. `value` gives coordinates; `None` if one is unknown.
    pub fn ranges(&self, start: i64, value: &dyn Fn(&E) -> Option<i64>) -> Option<Vec<(i64, i64)>> {
        match self {
            Tile::Pieces { offsets, swizzle } => {
                let placed = offsets.iter().map(|(offset, bytes)| {
                    let at = start + offset;
                    let at = at ^ (at >> 3 & swizzle);
                    (at, at + bytes)
                });
                Some(merged(placed.collect()))
            }
            Tile::Box {
                element,
                sizes,
                strides,
                boxes,
                coordinates,
            } => {
                let first: Option<Vec<i64>> = coordinates.iter().map(value).collect();
                let first: Vec<i64> = first?.into_iter().map(|c| i64::from(c as i32)).collect();
                let from = first[0].max(0);
                let to = (first[0] + boxes[0]).min(sizes[0]);
                let rows: i64 = boxes[1..].iter().product();
                let mut all = Vec::new();
                for number in 0..rows {
                    let (mut rest, mut at, mut inside) = (number, start, from < to);
                    for axis in 1..boxes.len() {
                        let place = first[axis] + rest % boxes[axis];
                        rest /= boxes[axis];
                        inside &= (0..sizes[axis]).contains(&place);
                        at += place * strides[axis - 1];
                    }
                    if inside {
                        all.push((at + from * element, at + to * element));
                    }
                }
                Some(merged(all))
            }
        }
    }
}

/// Ranges in order, with adjacent ones joined.
fn merged(mut all: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    all.sort_unstable();
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for (from, to) in all {
        match joined.last_mut() {
            Some(last) if last.1 >= from => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swizzled_slice_covers_two_chunks_of_each_row() {
        let offsets = (0..8).map(|row| (row * 128, 32)).collect();
        let slice: Tile<i64> = Tile::Pieces {
            offsets,
            swizzle: 0,
        };
        let plain = slice.ranges(1024, &|_| None).expect("known");
        assert_eq!((plain.len(), plain[1]), (8, (1152, 1184)));
        let offsets = (0..8).flat_map(|row| [(row * 128, 16), (row * 128 + 16, 16)]);
        let slice: Tile<i64> = Tile::Pieces {
            offsets: offsets.collect(),
            swizzle: 0x70,
        };
        let turned = slice.ranges(1024, &|_| None).expect("known");
        assert_eq!(turned[..3], [(1024, 1056), (1152, 1184), (1312, 1344)]);
    }

    #[test]
    fn a_box_ends_with_its_tensor() {
        let tile = Tile::Box {
            element: 2,
            sizes: vec![64, 10],
            strides: vec![128],
            boxes: vec![32, 8],
            coordinates: vec![32, 8],
        };
        let rows = tile.ranges(0, &|place: &i64| Some(*place));
        assert_eq!(rows, Some(vec![(1088, 1152), (1216, 1280)]));
    }
}
