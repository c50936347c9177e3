//! Copies, fills and frees of memory, and functions that the runtime calls.
//!
//! # Sources
//! - CUDA runtime API, *API synchronization behavior*: which copies the host waits for, and how
//!   copies from pageable memory are staged; *Memory Management*, cudaFree, cudaFreeHost; *Stream
//!   Ordered Memory Allocator*, cudaFreeAsync.
//!
//! # Where we differ
//! - A copy between the device and pageable memory that may be synchronous is asynchronous.
//! - `cudaFree` waits for the device if the memory is not of `cudaMallocAsync`. The reference says
//!   so of the other case only.

use super::cell_values::CellValues;
use super::library::{memory_of, repeated};
use super::machine::{Flow, Machine};
use super::parser::Read;
use super::runtime::{RuntimeCallSite, SUCCESS, kind_word};
use super::values::{AllocatedBy, HostValue, LineEffect, Pointer};

/// Bytes that a call copies: where they go, and where they are, each with its memory.
struct CopyPart {
    to: (usize, Pointer),
    from: (usize, Pointer),
    bytes: i64,
}

/// How a call copies.
struct CopyCall {
    kind: &'static str,
    stream: String,
    /// Whether it is not an asynchronous call.
    waits: bool,
}

impl Machine<'_> {
    /// An address that a call is handed.
    pub(super) fn address_at(
        &mut self,
        call: &RuntimeCallSite<'_>,
        at: usize,
    ) -> Read<(usize, Pointer)> {
        let value = self.operand(call, at)?;
        match memory_of(&value) {
            Some(pointer) if pointer.memory.is_some() => {
                let memory = pointer.memory.unwrap_or_default();
                self.alive(memory, call.range)?;
                Ok((memory, pointer))
            }
            Some(_) => {
                let d = self.code.error(
                    "null-pointer",
                    call.range,
                    format!("`{}` is handed the null pointer", call.name),
                );
                Err(Box::new(d.label("expected the address of memory")))
            }
            None => self.wrong(
                call.range,
                format!(
                    "an address that `{}` is handed is not worked out",
                    call.name
                ),
                "expected memory that the program allocates",
                "variables of the device, structures and arrays of pointers are not followed",
            ),
        }
    }

    /// All calls that copy.
    pub(super) fn copy(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let waits = !call.name.ends_with("Async");
        let (kind_at, parts) = match call.name.trim_end_matches("Async") {
            "cudaMemcpy" => {
                let (to, from) = (self.address_at(call, 0)?, self.address_at(call, 1)?);
                let bytes = self.number_at(call, 2)?;
                (3, vec![CopyPart { to, from, bytes }])
            }
            "cudaMemcpy2D" => (6, self.rows(call)?),
            name @ ("cudaMemcpyToSymbol" | "cudaMemcpyFromSymbol") => {
                (4, vec![self.symbol_part(call, name.ends_with("ToSymbol"))?])
            }
            _ => return self.refused(call),
        };
        let kind = match call.arguments.len() > kind_at {
            true => kind_word(self.number_at(call, kind_at)?),
            false => "cudaMemcpyDefault",
        };
        let stream = match waits {
            true => self.stream_at(call, usize::MAX)?,
            false => self.stream_at(call, kind_at + 1)?,
        };
        let how = CopyCall {
            kind,
            stream,
            waits,
        };
        for part in parts {
            self.copy_part(call, &how, &part)?;
        }
        Ok(SUCCESS)
    }

    /// `cudaMemcpy2D(to, pitch, from, pitch, width, height, kind)`: the rows that it copies.
    fn rows(&mut self, call: &RuntimeCallSite<'_>) -> Read<Vec<CopyPart>> {
        let (to, from) = (self.address_at(call, 0)?, self.address_at(call, 2)?);
        let (to_pitch, from_pitch) = (self.number_at(call, 1)?, self.number_at(call, 3)?);
        let (bytes, height) = (self.number_at(call, 4)?, self.number_at(call, 5)?);
        if bytes > to_pitch.min(from_pitch) {
            let d = self.code.error(
                "out-of-bounds",
                call.range,
                format!("rows of {bytes} bytes are wider than their pitch"),
            );
            return Err(Box::new(
                d.label(format!("the pitches are {to_pitch} and {from_pitch}"))
                    .note(
                        "the width must not exceed either pitch (CUDA runtime API, cudaMemcpy2D)",
                    ),
            ));
        }
        fn row(of: &(usize, Pointer), by: i64) -> (usize, Pointer) {
            let offset = of.1.offset + by;
            (
                of.0,
                Pointer {
                    offset,
                    ..of.1.clone()
                },
            )
        }
        let part = |y: i64| CopyPart {
            to: row(&to, y * to_pitch),
            from: row(&from, y * from_pitch),
            bytes,
        };
        Ok((0..height).map(part).collect())
    }

    /// `cudaMemcpyToSymbol(symbol, from, bytes, offset, kind)`, or the other way.
    fn symbol_part(&mut self, call: &RuntimeCallSite<'_>, to_symbol: bool) -> Read<CopyPart> {
        let (mut to, mut from) = (self.address_at(call, 0)?, self.address_at(call, 1)?);
        let bytes = self.number_at(call, 2)?;
        let offset = match call.arguments.len() > 3 {
            true => self.number_at(call, 3)?,
            false => 0,
        };
        match to_symbol {
            true => to.1.offset += offset,
            false => from.1.offset += offset,
        }
        Ok(CopyPart { to, from, bytes })
    }

    /// Emits one copy.
    fn copy_part(
        &mut self,
        call: &RuntimeCallSite<'_>,
        how: &CopyCall,
        part: &CopyPart,
    ) -> Read<()> {
        let ((to, target), (from, source)) = (&part.to, &part.from);
        let (to, from, bytes) = (*to, *from, part.bytes);
        self.within(to, target.offset, bytes, call.range)?;
        self.within(from, source.offset, bytes, call.range)?;
        if bytes == 0 {
            return Ok(());
        }
        self.same_elements(to, from, call)?;
        self.whole_elements(to, &[target.offset, source.offset, bytes], call)?;
        let cells = self.state.memory[to].cells_in(target.offset, bytes);
        self.copied += cells.len() as i64;
        let pageable = self.state.memory[from].allocation.is_pageable();
        let staged = how.waits && pageable && self.state.memory[to].allocation.is_device();
        self.state.begun = true;
        let stream = &how.stream;
        let from_name = match staged {
            true => {
                let stage = self.stage(from, source.offset, bytes, stream, call)?;
                self.element_named(stage, 0)
            }
            false => self.element_named(from, source.offset),
        };
        let to_name = self.element_named(to, target.offset);
        let waits = how.waits && !staged;
        let kind = how.kind;
        let text = match waits && !self.code.per_thread {
            true => format!("cudaMemcpy(&{to_name}, &{from_name}, {bytes}, {kind});"),
            false => {
                format!("cudaMemcpyAsync(&{to_name}, &{from_name}, {bytes}, {kind}, {stream});")
            }
        };
        self.emit_call(text, call.range)?;
        // The host waits for copies of its memory, whichever stream the default one is.
        let [a, b] = [to, from].map(|memory| self.state.memory[memory].allocation);
        let of_host =
            |allocation: AllocatedBy| !allocation.is_device() && allocation != AllocatedBy::Managed;
        if waits && self.code.per_thread && (of_host(a) || of_host(b)) {
            self.emit_call(format!("cudaStreamSynchronize({stream});"), call.range)?;
        }
        self.state.memory[to].shadow.forget(cells);
        for memory in [to, from] {
            self.state.memory[memory].escapes = true;
        }
        Ok(())
    }

    /// Refuses sizes and offsets that are not those of whole elements.
    pub(super) fn whole_elements(
        &mut self,
        memory: usize,
        all: &[i64],
        call: &RuntimeCallSite<'_>,
    ) -> Read<()> {
        let element = self.state.memory[memory].element.bytes();
        if all.iter().all(|n| n % element == 0) {
            return Ok(());
        }
        self.wrong(
            call.range,
            format!("`{}` takes parts of elements here", call.name),
            format!("expected a multiple of {element} bytes"),
            "let it begin and end with whole elements",
        )
    }

    /// The two sides of a copy have elements of one size; the code may leave the one of them open.
    pub(super) fn same_elements(
        &mut self,
        to: usize,
        from: usize,
        call: &RuntimeCallSite<'_>,
    ) -> Read<()> {
        for (a, b) in [(to, from), (from, to)] {
            let (other, record) = (
                self.state.memory[b].element,
                self.state.memory[b].record.clone(),
            );
            let object = &mut self.state.memory[a];
            if !object.element.said && other.said {
                object.element = other;
                object.record.clone_from(&record);
                object.retyped(None);
            }
        }
        let [a, b] = [to, from].map(|memory| &self.state.memory[memory]);
        if a.element.bytes() == b.element.bytes() {
            return Ok(());
        }
        self.wrong(
            call.range,
            "this copies between elements of different sizes",
            format!(
                "`{}` has elements of {} bytes, `{}` of {}",
                a.name,
                a.element.bytes(),
                b.name,
                b.element.bytes()
            ),
            "use one type on both sides",
        )
    }

    /// Copies pageable memory to the staging memory, from which the device copies. The host waits
    /// for the stream before.
    fn stage(
        &mut self,
        from: usize,
        offset: i64,
        bytes: i64,
        stream: &str,
        call: &RuntimeCallSite<'_>,
    ) -> Read<usize> {
        self.emit_call(format!("cudaStreamSynchronize({stream});"), call.range)?;
        let object = &self.state.memory[from];
        let (element, record) = (object.element, object.record.clone());
        let name = format!("{}_staged", object.name);
        let stage = self.allocate(&name, call.range, element, bytes, AllocatedBy::Pinned);
        self.state.memory[stage].record = record;
        self.state.memory[stage].retyped(None);
        if self.for_launches {
            return Ok(stage);
        }
        let cells = self.state.memory[from].cells_in(offset, bytes);
        for (to, cell) in cells.enumerate() {
            let source = self.named(from, cell);
            let register = self.register();
            let ty = super::access::c_name(self.state.memory[from].cell_element(cell));
            let target = self.named(stage, to);
            self.emit(format!("{ty} {register} = {source};"), call.range);
            let text = format!("{target} = {register};");
            self.emit_with(LineEffect::Write(stage), text, call.range);
        }
        Ok(stage)
    }

    /// A copy in a stream; `at`: the operands with both addresses and the size.
    pub(super) fn copy_in(
        &mut self,
        call: &RuntimeCallSite<'_>,
        at: [usize; 3],
        stream: &str,
    ) -> Read<()> {
        let part = CopyPart {
            to: self.address_at(call, at[0])?,
            from: self.address_at(call, at[1])?,
            bytes: self.number_at(call, at[2])?,
        };
        let how = CopyCall {
            kind: "cudaMemcpyDefault",
            stream: stream.to_owned(),
            waits: false,
        };
        self.copy_part(call, &how, &part)
    }

    /// `cudaMemset` and `cudaMemsetAsync`
    pub(super) fn set_memory(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let stream = match call.name {
            "cudaMemset" => self.stream_at(call, usize::MAX)?,
            "cudaMemsetAsync" => self.stream_at(call, 3)?,
            _ => return self.refused(call),
        };
        self.fill_in(call, &stream)?;
        Ok(SUCCESS)
    }

    /// A fill in a stream: the address, the byte, and how many.
    pub(super) fn fill_in(&mut self, call: &RuntimeCallSite<'_>, stream: &str) -> Read<()> {
        let (to, target) = self.address_at(call, 0)?;
        let (byte, bytes) = (self.number_at(call, 1)?, self.number_at(call, 2)?);
        self.within(to, target.offset, bytes, call.range)?;
        let element = self.state.memory[to].element;
        self.whole_elements(to, &[target.offset, bytes], call)?;
        if bytes == 0 {
            return Ok(());
        }
        self.state.begun = true;
        // Each member of a structure takes its part of the pattern.
        let value = match self.state.memory[to].record {
            Some(_) => repeated(byte),
            None => element.ty.wrap(repeated(byte)),
        };
        let name = self.element_named(to, target.offset);
        let text = format!("cudaMemsetAsync(&{name}, {value}, {bytes}, {stream});");
        self.emit_call(text, call.range)?;
        let cells = self.state.memory[to].cells_in(target.offset, bytes);
        self.state.memory[to].shadow.forget(cells);
        self.state.memory[to].escapes = true;
        // The host waits for a fill of pinned memory.
        if call.name == "cudaMemset" && self.state.memory[to].allocation.kind() == "mapped" {
            self.emit_call(format!("cudaStreamSynchronize({stream});"), call.range)?;
        }
        Ok(())
    }

    /// `cudaFree`, `cudaFreeHost`, `cudaFreeAsync`
    pub(super) fn release_memory(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let value = self.operand(call, 0)?;
        let null = memory_of(&value).is_some_and(|p| p.memory.is_none())
            || matches!(value, HostValue::Int(0, _));
        if null {
            return Ok(SUCCESS);
        }
        let (memory, pointer) = self.address_at(call, 0)?;
        let allocation = self.state.memory[memory].allocation;
        let (fits, expected) = match call.name {
            "cudaFree" => (
                allocation.is_device() || allocation == AllocatedBy::Managed,
                "`cudaMalloc` or `cudaMallocManaged`",
            ),
            "cudaFreeHost" => (
                allocation.kind() == "mapped",
                "`cudaMallocHost` or `cudaHostAlloc`",
            ),
            "cudaFreeAsync" => (allocation.is_device(), "`cudaMallocAsync`"),
            _ => return self.refused(call),
        };
        if !fits || pointer.offset != 0 {
            return self.wrong_free(memory, call.range, expected);
        }
        match (call.name, allocation) {
            ("cudaFreeAsync", _) => {
                let stream = self.stream_at(call, 1)?;
                let name = self.state.memory[memory].name.clone();
                self.emit_call(format!("cudaFreeAsync({name}, {stream});"), call.range)?;
                self.state.memory[memory].freed = Some((call.range.clone(), self.thread));
            }
            ("cudaFree", AllocatedBy::Device | AllocatedBy::Managed) => {
                // A single thread uses it behind this in no way that is not seen here.
                if !self.state.is_alone() {
                    let name = self.state.memory[memory].name.clone();
                    self.emit_call(format!("cudaFree({name});"), call.range)?;
                } else if self.state.begun {
                    self.wait_for_device(call)?;
                }
                self.state.memory[memory].freed = Some((call.range.clone(), self.thread));
            }
            _ => self.free_on_host(memory, call.range),
        }
        Ok(SUCCESS)
    }

    /// `cudaLaunchHostFunc(stream, function, data)`
    pub(super) fn host_function(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let (stream, data) = (self.stream_at(call, 0)?, self.operand(call, 2)?);
        let function = self.operand(call, 1)?;
        self.host_function_in(call, function, data, &stream)?;
        Ok(SUCCESS)
    }

    /// A function of the host in a stream.
    pub(super) fn host_function_in(
        &mut self,
        call: &RuntimeCallSite<'_>,
        function: HostValue,
        data: HostValue,
        stream: &str,
    ) -> Read<()> {
        let function = match function {
            HostValue::Function(name) => self.code.function(&name).transpose()?,
            HostValue::Closure(closure) => Some(closure.function.clone()),
            _ => None,
        };
        let Some(function) = function else {
            return self.wrong(
                call.range,
                "this function is not worked out",
                "expected a function of this file",
                "name the function",
            );
        };
        let hint = match function.name.as_str() {
            "" => "host_function",
            name => name,
        };
        let name = self.unique(hint);
        for object in &mut self.state.memory {
            object.escapes |= !object.allocation.is_device();
        }
        let lines = std::mem::take(&mut self.state.lines);
        let shadows: Vec<_> = self.state.memory.iter().map(|m| m.shadow.clone()).collect();
        let inside = std::mem::replace(&mut self.inside, true);
        let cells: Vec<HostValue> = self.state.cells.iter().map(|c| c.value.clone()).collect();
        let frames = self.frames.len();
        self.state.begun = true;
        let flow = self.function(&function, vec![data], None);
        self.unless_late(flow, Flow::Exit)?;
        self.frames.truncate(frames);
        self.inside = inside;
        let mut values = cells.iter().zip(&self.state.cells);
        if values.any(|(old, new)| *old != new.value) {
            return self.shared_variable(&function.range);
        }
        let own = std::mem::replace(&mut self.state.lines, lines);
        // The values that the function writes are unknown from here on.
        let memory = self.state.memory.iter_mut().zip(shadows).enumerate();
        for (number, (object, shadow)) in memory {
            let write = LineEffect::Write(number);
            object.shadow = if own.iter().any(|line| line.effect == write) {
                CellValues::all(None, object.cells())
            } else {
                shadow
            };
        }
        self.state.functions.push((name.clone(), own));
        self.emit_call(
            format!("cudaLaunchHostFunc({stream}, {name}, 0);"),
            call.range,
        )
    }
}
