//! Pipes and images of OpenCL's host API in host code.
//!
//! # Invariants
//! - An image has pixels of one number of 32 bits. The number in its format is the type of its
//!   elements.
//!
//! # Sources
//! - OpenCL API specification, *Image Objects*: clCreateImage, *Image Format Descriptor*, *Image
//!   Descriptor*, clEnqueueReadImage, clEnqueueWriteImage; *Pipes*: clCreatePipe.
//!
//! # Where we differ
//! - Images of a buffer, and images that use memory of the host, are refused.

use super::machine::{BYTE, Machine};
use super::opencl::{COPY_HOST_PTR, USE_HOST_PTR, address};
use super::parser::Read;
use super::runtime::{RuntimeCallSite, SUCCESS};
use super::values::{AllocatedBy, ElementType, HostValue};
use program::Ty;

/// `CL_R`
const ONE_CHANNEL: i64 = 0x10B0;

/// `CL_SIGNED_INT32`, `CL_UNSIGNED_INT32`, `CL_FLOAT`
const SIGNED: i64 = 0x10D9;
const UNSIGNED: i64 = 0x10DC;
const FLOAT: i64 = 0x10DE;

/// The bytes of a pixel.
const PIXEL: i64 = 4;

/// The sizes in the descriptor of an image.
struct ImageSizes {
    width: i64,
    height: i64,
    depth: i64,
}

impl ImageSizes {
    /// The sizes that count for a type of images; `None`: there is no such type.
    fn new(ty: i64, [width, height, depth, images]: [i64; 4]) -> Option<ImageSizes> {
        let [height, depth] = match ty {
            0x10F1 => [height, 1],
            0x10F2 => [height, depth],
            0x10F3 => [height, images],
            0x10F4 => [1, 1],
            0x10F5 => [images, 1],
            _ => return None,
        };
        Some(ImageSizes {
            width,
            height,
            depth,
        })
    }
}

impl Machine<'_> {
    /// `clCreatePipe(context, flags, packet, packets, properties, &error)`
    pub(super) fn new_pipe(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let (packet, packets) = (self.number_at(call, 2)?, self.number_at(call, 3)?);
        self.no_error(call, 5)?;
        if packet <= 0 || packets <= 0 {
            return self.wrong(
                call.range,
                "this pipe is an error",
                "expected packets of at least one byte, and at least one of them",
                "give the size of a packet, then their number (OpenCL API, clCreatePipe)",
            );
        }
        let bytes = self.size(packet.saturating_mul(packets), 8, call.range)?;
        let pipe = AllocatedBy::Pipe(packet);
        let memory = self.allocate(&call.hint, call.range, BYTE, bytes, pipe);
        Ok(address(memory, BYTE))
    }

    /// `clCreateImage(context, flags, &format, &descriptor, host, &error)`
    pub(super) fn new_image(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let flags = self.number_at(call, 1)?;
        let (format, descriptor) = (self.operand(call, 2)?, self.operand(call, 3)?);
        let host = self.operand(call, 4)?;
        self.no_error(call, 5)?;
        let [order, channel] = self.members(&format, call.range)?;
        let Some(element) = pixel_of(order, channel) else {
            return self.wrong(
                call.range,
                "the pixels of this image are not supported",
                "expected the format `CL_R` with `CL_SIGNED_INT32`, `CL_UNSIGNED_INT32` or \
                 `CL_FLOAT`",
                "use an image for each channel: orders and races do not depend on it",
            );
        };
        let [ty, width, height, depth, images] = self.members(&descriptor, call.range)?;
        let sizes = ImageSizes::new(ty, [width, height, depth, images]);
        let usable = sizes.filter(|of| of.width > 0 && of.height > 0 && of.depth > 0);
        let Some(sizes) = usable.filter(|_| flags & USE_HOST_PTR == 0) else {
            return self.wrong(
                call.range,
                "this image is not followed",
                "expected one of one, two or three dimensions, or an array of images, with memory \
                 of its own",
                "give the sizes in `cl_image_desc`, and copy values with `CL_MEM_COPY_HOST_PTR`",
            );
        };
        let pixels = sizes.width.saturating_mul(sizes.height);
        let bytes = pixels.saturating_mul(sizes.depth).saturating_mul(PIXEL);
        let bytes = self.size(bytes, PIXEL, call.range)?;
        let image = AllocatedBy::Image(sizes.width, sizes.height);
        let memory = self.allocate(&call.hint, call.range, element, bytes, image);
        if let (HostValue::Pointer(from), true) = (&host, flags & COPY_HOST_PTR != 0)
            && let Some(source) = from.memory
        {
            self.alive(source, call.range)?;
            self.within(source, from.offset, bytes, call.range)?;
            self.same_elements(memory, source, call)?;
            self.begins_with(memory, source, from.offset, call)?;
            self.state.memory[memory].element = element;
        }
        Ok(address(memory, element))
    }

    /// `clEnqueueReadImage(queue, image, blocking, origin, region, …, host, …)`, or a write.
    pub(super) fn transfer_image(
        &mut self,
        call: &RuntimeCallSite<'_>,
        queue: &str,
    ) -> Read<HostValue> {
        let end = self.command_end(call, 8)?;
        let blocking = self.blocking_word(call, 2)?;
        let (image, _) = self.buffer_at(call, 1, usize::MAX)?;
        let (host, offset) = self.buffer_at(call, 7, usize::MAX)?;
        let (origin, region) = (self.operand(call, 3)?, self.operand(call, 4)?);
        let origin: [i64; 3] = self.members(&origin, call.range)?;
        let region: [i64; 3] = self.members(&region, call.range)?;
        let pitches = [self.number_at(call, 5)?, self.number_at(call, 6)?];
        let AllocatedBy::Image(..) = self.state.memory[image].allocation else {
            return self.wrong(
                call.range,
                "this memory is not an image",
                "expected one that `clCreateImage` makes",
                "buffers have `clEnqueueReadBuffer` and `clEnqueueWriteBuffer`",
            );
        };
        self.same_elements(host, image, call)?;
        let row = match pitches[0] {
            0 => region[0].saturating_mul(PIXEL),
            row => row,
        };
        let slice = match pitches[1] {
            0 => region[1].saturating_mul(row),
            slice => slice,
        };
        let last = (region[2] - 1).saturating_mul(slice);
        let last = last.saturating_add((region[1] - 1).saturating_mul(row));
        let bytes = last.saturating_add(region[0].saturating_mul(PIXEL));
        self.within(host, offset, bytes, call.range)?;
        self.whole_elements(host, &[offset, row, slice], call)?;
        let pixels = region.iter().product::<i64>();
        self.copied = self.copied.saturating_add(pixels);
        for memory in [host, image] {
            let object = &mut self.state.memory[memory];
            object.shadow.fill(None);
            object.escapes = true;
        }
        let named = [image, host].map(|memory| self.state.memory[memory].name.clone());
        let first = self.element_named(host, offset);
        let [x, y, z] = origin;
        let [width, height, depth] = region;
        let text = format!(
            "{}({queue}, {}, {blocking}, {{{x}, {y}, {z}}}, {{{width}, {height}, {depth}}}, \
             {}, {}, &{first}{});",
            call.name,
            named[0],
            pitches[0],
            pitches[1],
            end.text()
        );
        self.emit_call(text, call.range)?;
        Ok(SUCCESS)
    }
}

/// The number in a pixel; `None`: pixels of this format are not supported.
fn pixel_of(order: i64, channel: i64) -> Option<ElementType> {
    let (signed, floating) = match channel {
        SIGNED => (true, false),
        UNSIGNED => (false, false),
        FLOAT => (true, true),
        _ => return None,
    };
    let ty = Ty { bits: 32, signed };
    (order == ONE_CHANNEL).then(|| ElementType::number(ty, floating))
}
