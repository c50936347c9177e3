//! Turns the origins and regions of image commands into those of memory, in bytes.
//!
//! # Sources
//! - OpenCL API specification, clEnqueueReadImage, clEnqueueWriteImage, clEnqueueCopyImage,
//!   clEnqueueCopyImageToBuffer, clEnqueueCopyBufferToImage, clEnqueueFillImage,
//!   clEnqueueMapImage.
//! # Where we differ
//! - A filled or mapped region is part of one row, whole rows of a slice, or whole slices.

use super::Request;
use super::calls::CallAction;
use super::lower::Wrong;
use crate::isa::clike::images::sizes_of_image;
use crate::isa::clike::lower::Lowering;
use program::{LocId, MemoryKind};

/// The calls, and whether they write an image and read one.
const CALLS: [(&str, [bool; 2]); 7] = [
    ("clEnqueueReadImage", [false, true]),
    ("clEnqueueWriteImage", [true, false]),
    ("clEnqueueCopyImage", [true, true]),
    ("clEnqueueCopyImageToBuffer", [false, true]),
    ("clEnqueueCopyBufferToImage", [true, false]),
    ("clEnqueueFillImage", [true, false]),
    ("clEnqueueMapImage", [true, false]),
];

/// An image: the bytes of a pixel, and its width, height and depth in pixels.
struct ImageShape {
    pixel: u64,
    sizes: [u64; 3],
}

impl Lowering<'_, '_> {
    /// Turns the pixels of an image command into bytes.
    pub(super) fn image_operands(&mut self, request: &mut Request) -> Result<(), Wrong> {
        let Some((_, ends)) = CALLS.iter().find(|call| call.0 == request.name) else {
            return Ok(());
        };
        let Some(mut region) = self.three_sizes(request, 2) else {
            return self.wrong_region(request, "expected three numbers for the region");
        };
        let pixels = region;
        for (end, is_image) in ends.iter().enumerate() {
            let Some((loc, span)) = request.memory[end] else {
                continue;
            };
            let shape = self.shape_of_image(loc);
            if !is_image {
                // A buffer has an offset in place of a distance between slices.
                let offset = match request.name.starts_with("clEnqueueCopy") {
                    true => std::mem::take(&mut request.pitches[2 * end + 1]),
                    false => 0,
                };
                request.sizes[end] = Some((vec![offset, 0, 0], span));
                continue;
            }
            let Some(shape) = shape else {
                let message = format!("`{}` of memory that is not an image", request.name);
                self.sink.error("wrong-operand", span, message, |d| {
                    d.label("expected an image")
                        .help("such memory has the kind `image`")
                });
                return Err(Wrong);
            };
            let Some(mut origin) = self.three_sizes(request, end) else {
                return self.wrong_region(request, "expected three numbers for each origin");
            };
            let inside = |at: usize| {
                let all = origin[at].checked_add(pixels[at]);
                pixels[at] > 0 && all.is_some_and(|all| all <= shape.sizes[at])
            };
            if !(0..3).all(inside) {
                return self.wrong_region(request, "expected a region inside of the image");
            }
            if request.does != CallAction::CopyRect {
                return self.part_of_image(request, &shape, origin, pixels);
            }
            origin[0] *= shape.pixel;
            region[0] = pixels[0] * shape.pixel;
            request.sizes[end] = Some((origin.to_vec(), span));
            let row = shape.sizes[0] * shape.pixel;
            request.pitches[2 * end] = row;
            request.pitches[2 * end + 1] = row * shape.sizes[1];
        }
        let at = request.sizes[2]
            .as_ref()
            .map_or(request.span, |sizes| sizes.1);
        request.sizes[2] = Some((region.to_vec(), at));
        Ok(())
    }

    fn three_sizes(&self, request: &Request, n: usize) -> Option<[u64; 3]> {
        let (sizes, _) = request.sizes[n].as_ref()?;
        sizes.as_slice().try_into().ok()
    }

    /// `None`: it is no image.
    fn shape_of_image(&self, loc: LocId) -> Option<ImageShape> {
        let (layout, object) = (self.symbols.layout(loc), self.symbols.object(loc).1);
        if !matches!(object.kind, MemoryKind::Image { .. }) {
            return None;
        }
        Some(ImageShape {
            pixel: layout.bytes(layout.cells()),
            sizes: sizes_of_image(object.kind, self.symbols.elements(loc) as u64),
        })
    }

    /// The elements of a region that a call fills or maps.
    fn part_of_image(
        &mut self,
        request: &mut Request,
        shape: &ImageShape,
        origin: [u64; 3],
        region: [u64; 3],
    ) -> Result<(), Wrong> {
        let [width, height, _] = shape.sizes;
        let (rows, slices) = (region[1] > 1 || region[2] > 1, region[2] > 1);
        if (rows && region[0] != width) || (slices && region[1] != height) {
            let expected = "expected part of one row, whole rows, or whole slices";
            return self.wrong_region(request, expected);
        }
        let span = request.sizes[2]
            .as_ref()
            .map_or(request.span, |sizes| sizes.1);
        let rows = origin[2] * height + origin[1];
        request.first[0] = (rows * width + origin[0]) as u32;
        request.bytes = Some((region.iter().product::<u64>() * shape.pixel, span));
        request.sizes = [None, None, None];
        Ok(())
    }

    fn wrong_region(&mut self, request: &Request, expected: &str) -> Result<(), Wrong> {
        let message = format!("`{}` does not take such a region", request.name);
        self.sink.error("bad-range", request.span, message, |d| {
            d.label(expected)
                .note("OpenCL API, clEnqueueReadImage: CL_INVALID_VALUE")
        });
        Err(Wrong)
    }
}
