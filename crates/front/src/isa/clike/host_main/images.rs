//! Pipes, images and rectangles of OpenCL's host API in host code.
//!
//! # Invariants
//! - An image has pixels of one number of 32 bits. The number in its format is the type of its
//!   elements.
//!
//! # Sources
//! - OpenCL API specification, *Image Objects*: clCreateImage, *Image Format Descriptor*, *Image
//!   Descriptor*, clEnqueueReadImage, clEnqueueWriteImage, clEnqueueCopyImage,
//!   clEnqueueCopyImageToBuffer, clEnqueueCopyBufferToImage, clEnqueueFillImage,
//!   clEnqueueMapImage; *Buffer Objects*: clEnqueueReadBufferRect, clEnqueueWriteBufferRect,
//!   clEnqueueCopyBufferRect; *Pipes*: clCreatePipe.
//!
//! # Where we differ
//! - Images of a buffer, and images that use memory of the host, are refused.

use super::machine::{BYTE, Machine};
use super::opencl::{COPY_HOST_PTR, USE_HOST_PTR, address};
use super::parser::Read;
use super::runtime::{RuntimeCallSite, SUCCESS};
use super::values::{AllocatedBy, ElementType, HostValue, Pointer};
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
        let image = self.image_at(call, 1)?;
        let (host, offset) = self.buffer_at(call, 7, usize::MAX)?;
        let (origin, region) = (self.three_at(call, 3)?, self.three_at(call, 4)?);
        let pitches = [self.number_at(call, 5)?, self.number_at(call, 6)?];
        let packed = Packing::of(region, pitches, PIXEL);
        self.pixels_of(image, (host, offset), region, packed, call)?;
        let (name, first) = (self.name_of(image), self.element_named(host, offset));
        let text = format!(
            "{}({queue}, {name}, {blocking}, {}, {}, {}, {}, &{first}{});",
            call.name,
            three(origin),
            three(region),
            pitches[0],
            pitches[1],
            end.text()
        );
        self.emit_call(text, call.range)?;
        Ok(SUCCESS)
    }

    /// `clEnqueueCopyImage(queue, from, to, origin, origin, region, …)`
    pub(super) fn copy_image(
        &mut self,
        call: &RuntimeCallSite<'_>,
        queue: &str,
    ) -> Read<HostValue> {
        let end = self.command_end(call, 6)?;
        let (from, to) = (self.image_at(call, 1)?, self.image_at(call, 2)?);
        let (source, target) = (self.three_at(call, 3)?, self.three_at(call, 4)?);
        let region = self.three_at(call, 5)?;
        self.same_elements(to, from, call)?;
        self.written_by_command(&[from, to], region);
        let text = format!(
            "clEnqueueCopyImage({queue}, {}, {}, {}, {}, {}{});",
            self.name_of(from),
            self.name_of(to),
            three(source),
            three(target),
            three(region),
            end.text()
        );
        self.emit_call(text, call.range)?;
        Ok(SUCCESS)
    }

    /// `clEnqueueCopyImageToBuffer(queue, image, buffer, origin, region, offset, …)`, or the other
    /// way: `clEnqueueCopyBufferToImage(queue, buffer, image, offset, origin, region, …)`.
    pub(super) fn copy_image_and_buffer(
        &mut self,
        call: &RuntimeCallSite<'_>,
        queue: &str,
    ) -> Read<HostValue> {
        let end = self.command_end(call, 6)?;
        let to_buffer = call.name == "clEnqueueCopyImageToBuffer";
        let [image, buffer, origin, region, at] = match to_buffer {
            true => [1, 2, 3, 4, 5],
            false => [2, 1, 4, 5, 3],
        };
        let (image, buffer) = (
            self.image_at(call, image)?,
            self.buffer_at(call, buffer, at)?,
        );
        let (origin, region) = (self.three_at(call, origin)?, self.three_at(call, region)?);
        let packed = Packing::of(region, [0, 0], PIXEL);
        self.pixels_of(image, buffer, region, packed, call)?;
        let (image, memory) = (self.name_of(image), self.name_of(buffer.0));
        let (end, offset) = (end.text(), buffer.1);
        let (origin, region) = (three(origin), three(region));
        let text = match to_buffer {
            true => format!(
                "{}({queue}, {image}, {memory}, {origin}, {region}, {offset}{end});",
                call.name
            ),
            false => format!(
                "{}({queue}, {memory}, {image}, {offset}, {origin}, {region}{end});",
                call.name
            ),
        };
        self.emit_call(text, call.range)?;
        Ok(SUCCESS)
    }

    /// `clEnqueueFillImage(queue, image, color, origin, region, …)`: the first number of the color
    /// is the one that a pixel keeps.
    pub(super) fn fill_image(
        &mut self,
        call: &RuntimeCallSite<'_>,
        queue: &str,
    ) -> Read<HostValue> {
        let end = self.command_end(call, 5)?;
        let image = self.image_at(call, 1)?;
        let color = self.operand(call, 2)?;
        let place = self.element(&color, 0, call.range)?;
        let color = self.load(&place, call.range)?;
        let (origin, region) = (self.three_at(call, 3)?, self.three_at(call, 4)?);
        let element = self.state.memory[image].element;
        let Some(color) = super::access::bits_of(&color, element) else {
            return self.wrong(
                call.range,
                "this color is not followed",
                "expected a list of four numbers that the host knows",
                "a pixel of `CL_R` keeps the first of them (OpenCL API, clEnqueueFillImage)",
            );
        };
        self.written_by_command(&[image], region);
        let text = format!(
            "clEnqueueFillImage({queue}, {}, {color}, {}, {}{});",
            self.name_of(image),
            three(origin),
            three(region),
            end.text()
        );
        self.emit_call(text, call.range)?;
        Ok(SUCCESS)
    }

    /// `clEnqueueMapImage(queue, image, blocking, flags, origin, region, &row, &slice, …, &error)`
    pub(super) fn map_image(&mut self, call: &RuntimeCallSite<'_>, queue: &str) -> Read<HostValue> {
        let end = self.command_end(call, 8)?;
        let blocking = self.blocking_word(call, 2)?;
        let image = self.image_at(call, 1)?;
        let flags = self.number_at(call, 3)?;
        let (origin, region) = (self.three_at(call, 4)?, self.three_at(call, 5)?);
        let AllocatedBy::Image(width, height) = self.state.memory[image].allocation else {
            return Ok(HostValue::Unknown);
        };
        let (row, slice) = (width * PIXEL, width * height * PIXEL);
        for (at, bytes) in [(6, row), (7, slice)] {
            let bytes = HostValue::Int(
                bytes,
                Ty {
                    bits: 64,
                    signed: false,
                },
            );
            self.result_at(call, at, bytes)?;
        }
        self.assume("the rows of a mapped image are taken to lie behind each other".to_owned());
        self.written_by_command(&[image], region);
        let (words, name) = (super::opencl::map_words(flags), self.name_of(image));
        let text = format!(
            "clEnqueueMapImage({queue}, {name}, {blocking}, {words}, {}, {}, NULL, NULL{});",
            three(origin),
            three(region),
            end.text()
        );
        self.emit_call(text, call.range)?;
        self.no_error(call, 11)?;
        Ok(HostValue::Pointer(Pointer {
            memory: Some(image),
            offset: origin[2] * slice + origin[1] * row + origin[0] * PIXEL,
            element: self.state.memory[image].element,
        }))
    }

    /// `clEnqueueReadBufferRect(queue, buffer, blocking, origin, origin, region, four pitches,
    /// host, …)`, a write, or `clEnqueueCopyBufferRect(queue, from, to, …, four pitches, …)`.
    pub(super) fn transfer_rectangle(
        &mut self,
        call: &RuntimeCallSite<'_>,
        queue: &str,
    ) -> Read<HostValue> {
        let copies = call.name == "clEnqueueCopyBufferRect";
        let [second, first_pitch, last] = match copies {
            true => [2, 6, 10],
            false => [10, 6, 11],
        };
        let end = self.command_end(call, last)?;
        let one = self.buffer_at(call, 1, usize::MAX)?;
        let other = self.buffer_at(call, second, usize::MAX)?;
        let origins = [self.three_at(call, 3)?, self.three_at(call, 4)?];
        let region = self.three_at(call, 5)?;
        let mut pitches = [0; 4];
        for (n, pitch) in pitches.iter_mut().enumerate() {
            *pitch = self.number_at(call, first_pitch + n)?;
        }
        self.same_elements(one.0, other.0, call)?;
        let mut bytes = vec![one.1, other.1, region[0], origins[0][0], origins[1][0]];
        bytes.extend(pitches);
        self.whole_elements(one.0, &bytes, call)?;
        self.written_by_command(&[one.0, other.0], region);
        let sides = [one, other].map(|(memory, offset)| self.element_named(memory, offset));
        let [from, to, region] = [origins[0], origins[1], region].map(three);
        let [a, b, c, d] = pitches;
        let (name, text) = (call.name, end.text());
        let text = match copies {
            true => format!(
                "{name}({queue}, &{}, &{}, {from}, {to}, {region}, {a}, {b}, {c}, {d}{text});",
                sides[0], sides[1]
            ),
            false => {
                let blocking = self.blocking_word(call, 2)?;
                format!(
                    "{name}({queue}, &{}, {blocking}, {from}, {to}, {region}, {a}, {b}, {c}, {d}, \
                     &{}{text});",
                    sides[0], sides[1]
                )
            }
        };
        self.emit_call(text, call.range)?;
        Ok(SUCCESS)
    }

    /// The image that an operand names.
    fn image_at(&mut self, call: &RuntimeCallSite<'_>, at: usize) -> Read<usize> {
        let (image, _) = self.buffer_at(call, at, usize::MAX)?;
        match self.state.memory[image].allocation {
            AllocatedBy::Image(..) => Ok(image),
            _ => self.wrong(
                call.range,
                "this memory is not an image",
                "expected one that `clCreateImage` makes",
                "buffers have `clEnqueueReadBuffer` and `clEnqueueWriteBuffer`",
            ),
        }
    }

    /// An origin or a region.
    fn three_at(&mut self, call: &RuntimeCallSite<'_>, at: usize) -> Read<[i64; 3]> {
        let numbers = self.operand(call, at)?;
        self.members(&numbers, call.range)
    }

    fn name_of(&self, memory: usize) -> String {
        self.state.memory[memory].name.clone()
    }

    /// A command copies pixels between an image and other memory.
    fn pixels_of(
        &mut self,
        image: usize,
        other: (usize, i64),
        region: [i64; 3],
        packed: Packing,
        call: &RuntimeCallSite<'_>,
    ) -> Read<()> {
        let (memory, offset) = other;
        self.same_elements(memory, image, call)?;
        self.within(memory, offset, packed.bytes, call.range)?;
        self.whole_elements(memory, &[offset, packed.row, packed.slice], call)?;
        self.written_by_command(&[image, memory], region);
        Ok(())
    }

    /// A command accesses memory, so its values are unknown from here on.
    fn written_by_command(&mut self, all: &[usize], region: [i64; 3]) {
        let elements = region.iter().copied().fold(1, i64::saturating_mul);
        self.copied = self.copied.saturating_add(elements);
        for memory in all {
            let object = &mut self.state.memory[*memory];
            object.shadow.fill(None);
            object.escapes = true;
        }
    }
}

/// The bytes between rows and between slices, and those of all together.
#[derive(Clone, Copy)]
struct Packing {
    row: i64,
    slice: i64,
    bytes: i64,
}

impl Packing {
    /// A pitch of 0 stands for rows, or slices, without a gap.
    fn of(region: [i64; 3], pitches: [i64; 2], pixel: i64) -> Packing {
        let width = region[0].saturating_mul(pixel);
        let row = if pitches[0] == 0 { width } else { pitches[0] };
        let slice = match pitches[1] {
            0 => region[1].saturating_mul(row),
            slice => slice,
        };
        let last = (region[2] - 1).saturating_mul(slice);
        let last = last.saturating_add((region[1] - 1).saturating_mul(row));
        Packing {
            row,
            slice,
            bytes: last.saturating_add(width),
        }
    }
}

/// As the program that remains has an origin or a region.
fn three(all: [i64; 3]) -> String {
    let [x, y, z] = all;
    format!("{{{x}, {y}, {z}}}")
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
