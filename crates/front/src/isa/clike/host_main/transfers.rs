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

use super::library::{memory_of, repeated};
use super::machine::Machine;
use super::parser::Read;
use super::runtime::{RuntimeCallSite, SUCCESS, kind_word};
use super::values::{Allocation, HostValue, Pointer};

impl Machine<'_> {
    /// An address that a call is handed.
    fn address_at(&mut self, call: &RuntimeCallSite<'_>, at: usize) -> Read<(usize, Pointer)> {
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

    /// `cudaMemcpy` and `cudaMemcpyAsync`
    pub(super) fn copy(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let waits = match call.name {
            "cudaMemcpy" => true,
            "cudaMemcpyAsync" => false,
            _ => return self.refused(call),
        };
        let (to, target) = self.address_at(call, 0)?;
        let (from, source) = self.address_at(call, 1)?;
        let bytes = self.number_at(call, 2)?;
        let kind = match call.arguments.len() {
            3 => "cudaMemcpyDefault",
            _ => kind_word(self.number_at(call, 3)?),
        };
        let stream = match waits {
            true => self.stream_at(call, usize::MAX)?,
            false => self.stream_at(call, 4)?,
        };
        self.within(to, target.offset, bytes, call.range)?;
        self.within(from, source.offset, bytes, call.range)?;
        if bytes == 0 {
            return Ok(SUCCESS);
        }
        self.same_elements(to, from, call)?;
        let element = self.state.memory[to].element.bytes();
        if [target.offset, source.offset, bytes]
            .iter()
            .any(|n| n % element != 0)
        {
            return self.wrong(
                call.range,
                "this copies parts of elements",
                format!("expected a multiple of {element} bytes"),
                "copy whole elements",
            );
        }
        let (to_at, count) = (target.offset / element, bytes / element);
        self.copied += count;
        let pageable = self.state.memory[from].allocation.is_pageable();
        let staged = waits && pageable && self.state.memory[to].allocation.is_device();
        self.state.begun = true;
        let (from, from_at) = match staged {
            true => (
                self.stage(from, source.offset / element, count, &stream, call)?,
                0,
            ),
            false => (from, source.offset / element),
        };
        let (to_name, from_name) = (
            self.named(to, to_at as usize),
            self.named(from, from_at as usize),
        );
        let waits = waits && !staged;
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
            |allocation: Allocation| !allocation.is_device() && allocation != Allocation::Managed;
        if waits && self.code.per_thread && (of_host(a) || of_host(b)) {
            self.emit_call(format!("cudaStreamSynchronize({stream});"), call.range)?;
        }
        let last = (to_at + count) as usize;
        self.state.memory[to].shadow[to_at as usize..last].fill(None);
        for memory in [to, from] {
            self.state.memory[memory].escapes = true;
        }
        Ok(SUCCESS)
    }

    /// The two sides of a copy have elements of one size; the code may leave the one of them open.
    fn same_elements(&mut self, to: usize, from: usize, call: &RuntimeCallSite<'_>) -> Read<()> {
        for (a, b) in [(to, from), (from, to)] {
            let other = self.state.memory[b].element;
            let object = &mut self.state.memory[a];
            if !object.element.said && other.said {
                object.element = other;
                object.initial = vec![None; object.length()];
                object.shadow = object.initial.clone();
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
        first: i64,
        count: i64,
        stream: &str,
        call: &RuntimeCallSite<'_>,
    ) -> Read<usize> {
        self.emit_call(format!("cudaStreamSynchronize({stream});"), call.range)?;
        let element = self.state.memory[from].element;
        let name = format!("{}_staged", self.state.memory[from].name);
        let bytes = count * element.bytes();
        let stage = self.allocate(&name, call.range, element, bytes, Allocation::Pinned);
        for i in 0..count {
            let source = self.named(from, (first + i) as usize);
            let register = self.register();
            let ty = super::access::c_name(element);
            let target = self.named(stage, i as usize);
            self.emit(format!("{ty} {register} = {source};"), call.range);
            self.emit(format!("{target} = {register};"), call.range);
        }
        Ok(stage)
    }

    /// `cudaMemset` and `cudaMemsetAsync`
    pub(super) fn set_memory(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let stream = match call.name {
            "cudaMemset" => self.stream_at(call, usize::MAX)?,
            "cudaMemsetAsync" => self.stream_at(call, 3)?,
            _ => return self.refused(call),
        };
        let (to, target) = self.address_at(call, 0)?;
        let (byte, bytes) = (self.number_at(call, 1)?, self.number_at(call, 2)?);
        self.within(to, target.offset, bytes, call.range)?;
        let element = self.state.memory[to].element;
        if target.offset % element.bytes() != 0 || bytes % element.bytes() != 0 {
            return self.wrong(
                call.range,
                "this sets parts of elements",
                format!("expected a multiple of {} bytes", element.bytes()),
                "set whole elements",
            );
        }
        if bytes == 0 {
            return Ok(SUCCESS);
        }
        self.state.begun = true;
        let at = (target.offset / element.bytes()) as usize;
        let (name, value) = (self.named(to, at), element.ty.wrap(repeated(byte)));
        let text = format!("cudaMemsetAsync(&{name}, {value}, {bytes}, {stream});");
        self.emit_call(text, call.range)?;
        let last = at + (bytes / element.bytes()) as usize;
        self.state.memory[to].shadow[at..last].fill(None);
        self.state.memory[to].escapes = true;
        // The host waits for a fill of pinned memory.
        if call.name == "cudaMemset" && self.state.memory[to].allocation == Allocation::Pinned {
            self.emit_call(format!("cudaStreamSynchronize({stream});"), call.range)?;
        }
        Ok(SUCCESS)
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
                allocation.is_device() || allocation == Allocation::Managed,
                "`cudaMalloc` or `cudaMallocManaged`",
            ),
            "cudaFreeHost" => (
                allocation == Allocation::Pinned,
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
                self.state.memory[memory].freed = Some(call.range.clone());
            }
            ("cudaFree", Allocation::Device | Allocation::Managed) => {
                if self.state.begun {
                    self.wait_for_device(call)?;
                }
                self.state.memory[memory].freed = Some(call.range.clone());
            }
            _ => self.free_on_host(memory, call.range),
        }
        Ok(SUCCESS)
    }

    /// `cudaLaunchHostFunc(stream, function, data)`
    pub(super) fn host_function(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let (stream, data) = (self.stream_at(call, 0)?, self.operand(call, 2)?);
        let function = match self.operand(call, 1)? {
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
        for object in &mut self.state.memory {
            object.shadow.fill(None);
        }
        self.state.begun = true;
        self.function(&function, vec![data], None)?;
        self.inside = inside;
        let own = std::mem::replace(&mut self.state.lines, lines);
        // The values that the function writes are unknown from here on.
        for (object, shadow) in self.state.memory.iter_mut().zip(shadows) {
            let named = format!("{}[", object.name);
            let writes = own.iter().any(|line| line.text.starts_with(&named));
            object.shadow = if writes {
                vec![None; object.length()]
            } else {
                shadow
            };
        }
        self.state.functions.push((name.clone(), own));
        self.emit_call(
            format!("cudaLaunchHostFunc({stream}, {name}, 0);"),
            call.range,
        )?;
        Ok(SUCCESS)
    }
}
