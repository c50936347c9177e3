//! Calls of OpenCL's host API in host code.
//!
//! # Invariants
//! - A buffer is memory of its own. The host accesses it through mappings only.
//! - An argument that a call of `clSetKernelArg` gives stays until the next one (OpenCL API
//!   specification, clSetKernelArg).
//!
//! # Sources
//! - OpenCL API specification, *Command Queues*, *Buffer Objects*, *Kernel Objects*, *Event
//!   Objects*, *Shared Virtual Memory*.
//!
//! # Where we differ
//! - Calls succeed, and give `CL_SUCCESS`.
//! - An access of a kernel behind the end of its sub-buffer is one of the whole buffer.

use std::ops::Range;

use super::library::memory_of;
use super::machine::{BYTE, Machine};
use super::parser::Read;
use super::runtime::{RuntimeCallSite, SUCCESS};
use super::values::{
    AllocatedBy, EventObject, HostValue, KernelObject, KernelUse, ObjectKind, Pointer,
    StreamObject, StreamValue,
};
use program::{Dialect, Ty};

/// Calls without an effect that a model could see.
const SILENT: [&str; 26] = [
    "clGetPlatformIDs",
    "clGetPlatformInfo",
    "clGetDeviceIDs",
    "clGetDeviceInfo",
    "clGetContextInfo",
    "clCreateContext",
    "clCreateContextFromType",
    "clCreateProgramWithSource",
    "clCreateProgramWithBinary",
    "clCreateProgramWithIL",
    "clBuildProgram",
    "clCompileProgram",
    "clGetProgramInfo",
    "clGetProgramBuildInfo",
    "clGetKernelInfo",
    "clGetKernelWorkGroupInfo",
    "clGetEventProfilingInfo",
    "clRetainContext",
    "clRetainProgram",
    "clRetainKernel",
    "clReleaseContext",
    "clReleaseProgram",
    "clReleaseKernel",
    "clReleaseDevice",
    "clUnloadPlatformCompiler",
    "clSetProgramSpecializationConstant",
];

/// `CL_QUEUE_PROPERTIES`, and the property of out-of-order queues.
const QUEUE_PROPERTIES: i64 = 0x1093;
const OUT_OF_ORDER: i64 = 1;

/// `CL_EVENT_COMMAND_EXECUTION_STATUS`
const EXECUTION_STATUS: i64 = 0x11D3;

/// Flags of memory.
pub(super) const USE_HOST_PTR: i64 = 1 << 3;
pub(super) const COPY_HOST_PTR: i64 = 1 << 5;
const FINE_GRAIN: i64 = 1 << 10;
const SVM_ATOMICS: i64 = 1 << 11;

/// Names of numbers in the header of OpenCL.
pub(super) const CL_CONSTANTS: [(&str, i64); 58] = [
    ("CL_TRUE", 1),
    ("CL_FALSE", 0),
    ("CL_BLOCKING", 1),
    ("CL_NON_BLOCKING", 0),
    ("CL_SUCCESS", 0),
    ("CL_DEVICE_NOT_FOUND", -1),
    ("CL_DEVICE_NOT_AVAILABLE", -2),
    ("CL_COMPILER_NOT_AVAILABLE", -3),
    ("CL_MEM_OBJECT_ALLOCATION_FAILURE", -4),
    ("CL_OUT_OF_RESOURCES", -5),
    ("CL_OUT_OF_HOST_MEMORY", -6),
    ("CL_PROFILING_INFO_NOT_AVAILABLE", -7),
    ("CL_BUILD_PROGRAM_FAILURE", -11),
    ("CL_INVALID_VALUE", -30),
    ("CL_INVALID_DEVICE", -33),
    ("CL_INVALID_CONTEXT", -34),
    ("CL_INVALID_COMMAND_QUEUE", -36),
    ("CL_INVALID_MEM_OBJECT", -38),
    ("CL_INVALID_PROGRAM", -44),
    ("CL_INVALID_PROGRAM_EXECUTABLE", -45),
    ("CL_INVALID_KERNEL_NAME", -46),
    ("CL_INVALID_KERNEL", -48),
    ("CL_INVALID_KERNEL_ARGS", -52),
    ("CL_INVALID_WORK_GROUP_SIZE", -54),
    ("CL_INVALID_EVENT", -58),
    ("CL_COMPLETE", 0),
    ("CL_RUNNING", 1),
    ("CL_SUBMITTED", 2),
    ("CL_QUEUED", 3),
    ("CL_EVENT_COMMAND_EXECUTION_STATUS", EXECUTION_STATUS),
    ("CL_QUEUE_PROFILING_ENABLE", 2),
    ("CL_BUFFER_CREATE_TYPE_REGION", 0x1220),
    ("CL_MEM_READ_WRITE", 1),
    ("CL_MEM_WRITE_ONLY", 2),
    ("CL_MEM_READ_ONLY", 4),
    ("CL_MEM_USE_HOST_PTR", USE_HOST_PTR),
    ("CL_MEM_ALLOC_HOST_PTR", 1 << 4),
    ("CL_MEM_COPY_HOST_PTR", COPY_HOST_PTR),
    ("CL_MEM_HOST_WRITE_ONLY", 1 << 7),
    ("CL_MEM_HOST_READ_ONLY", 1 << 8),
    ("CL_MEM_SVM_FINE_GRAIN_BUFFER", FINE_GRAIN),
    ("CL_MEM_SVM_ATOMICS", SVM_ATOMICS),
    ("CL_MAP_READ", 1),
    ("CL_MAP_WRITE", 2),
    ("CL_MAP_WRITE_INVALIDATE_REGION", 4),
    ("CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE", OUT_OF_ORDER),
    ("CL_QUEUE_PROPERTIES", QUEUE_PROPERTIES),
    ("CL_R", 0x10B0),
    ("CL_RGBA", 0x10B5),
    ("CL_SIGNED_INT32", 0x10D9),
    ("CL_UNSIGNED_INT32", 0x10DC),
    ("CL_FLOAT", 0x10DE),
    ("CL_MEM_OBJECT_IMAGE2D", 0x10F1),
    ("CL_MEM_OBJECT_IMAGE3D", 0x10F2),
    ("CL_MEM_OBJECT_IMAGE2D_ARRAY", 0x10F3),
    ("CL_MEM_OBJECT_IMAGE1D", 0x10F4),
    ("CL_MEM_OBJECT_IMAGE1D_ARRAY", 0x10F5),
    ("CL_MEM_OBJECT_IMAGE1D_BUFFER", 0x10F6),
];

/// The operands that every enqueued command ends with, by the number of the first.
pub(super) struct CommandEnd {
    waits: String,
    event: String,
}

impl CommandEnd {
    /// As the last operands of a call.
    pub(super) fn text(&self) -> String {
        match (self.waits.as_str(), self.event.as_str()) {
            ("NULL", "NULL") => String::new(),
            (waits, "NULL") => format!(", {waits}"),
            (waits, event) => format!(", {waits}, {event}"),
        }
    }
}

impl Machine<'_> {
    /// A call of OpenCL's host API.
    pub(super) fn opencl_call(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        if SILENT.contains(&call.name) {
            return self.silent_call(call);
        }
        match call.name {
            "clCreateCommandQueue" | "clCreateCommandQueueWithProperties" => self.new_queue(call),
            "clCreateKernel" => self.new_kernel(call),
            "clCreateBuffer" => self.new_buffer(call),
            "clCreateSubBuffer" => self.sub_buffer(call),
            "clCreatePipe" => self.new_pipe(call),
            "clCreateImage" => self.new_image(call),
            "clGetEventInfo" => self.event_info(call),
            "clSVMAlloc" => self.new_shared(call),
            "clSetKernelArg" => self.kernel_argument(call),
            "clSetKernelArgSVMPointer" => {
                let value = self.operand(call, 2)?;
                self.set_argument(call, value)
            }
            "clCreateUserEvent" => {
                self.no_error(call, 1)?;
                let event = self.new_event(&call.hint);
                let text = format!("cl_event {event} = clCreateUserEvent(context);");
                self.emit_call(text, call.range)?;
                Ok(HostValue::Event(self.state.events.len() - 1))
            }
            "clReleaseMemObject" | "clRetainMemObject" | "clSVMFree" => self.memory_count(call),
            "clRetainCommandQueue" => self.queue_count(call),
            name if name.starts_with("clEnqueue") => self.enqueued(call),
            _ => self.waiting_call(call),
        }
    }

    /// A call without an effect. Its results are unknown, but for its error.
    fn silent_call(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let last = call.arguments.len().saturating_sub(1);
        self.forget_results(call.arguments);
        if call.name.starts_with("clCreate") {
            self.no_error(call, last)?;
            return Ok(HostValue::Unknown);
        }
        Ok(SUCCESS)
    }

    /// Writes `CL_SUCCESS` to the operand that takes an error, if it is there.
    pub(super) fn no_error(&mut self, call: &RuntimeCallSite<'_>, at: usize) -> Read<()> {
        match call.arguments.get(at) {
            Some(HostValue::Cell(cell)) => {
                self.state.cells[*cell].value = HostValue::Int(0, Ty::S32);
            }
            // A variable whose address some code takes.
            Some(HostValue::Pointer(Pointer {
                memory: Some(memory),
                ..
            })) => {
                let begun = self.state.begun;
                let object = &mut self.state.memory[*memory];
                object.shadow.fill(Some(0));
                if !begun {
                    object.initial.fill(Some(0));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn new_queue(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let mut properties = match self.operand(call, 2)? {
            HostValue::Int(n, _) => n,
            _ => 0,
        };
        if call.name.ends_with("WithProperties") {
            properties = self.queue_properties(call)?;
        }
        self.no_error(call, 3)?;
        let name = self.unique(&call.hint);
        self.state.streams.push(StreamObject {
            name,
            blocking: properties & OUT_OF_ORDER == 0,
            destroyed: None,
        });
        Ok(HostValue::Stream(StreamValue::Made(
            self.state.streams.len() - 1,
        )))
    }

    /// The properties in a list `{CL_QUEUE_PROPERTIES, …, 0}`.
    fn queue_properties(&mut self, call: &RuntimeCallSite<'_>) -> Read<i64> {
        let list = self.operand(call, 2)?;
        if !matches!(
            list,
            HostValue::Pointer(Pointer {
                memory: Some(_),
                ..
            })
        ) {
            return Ok(0);
        }
        for at in (0..16).step_by(2) {
            let place = self.element(&list, at, call.range)?;
            let key = self.load(&place, call.range)?;
            match self.known(&key, call.range)? {
                0 => break,
                QUEUE_PROPERTIES => {
                    let place = self.element(&list, at + 1, call.range)?;
                    let value = self.load(&place, call.range)?;
                    return self.known(&value, call.range);
                }
                _ => {}
            }
        }
        Ok(0)
    }

    fn new_kernel(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let name = match self.operand(call, 1)? {
            HostValue::Text(name) => name,
            _ => String::new(),
        };
        self.no_error(call, 2)?;
        let Some(kernel) = self.code.kernels.iter().position(|k| *k == name) else {
            let message = format!("this file has no kernel `{name}`");
            let d = self.code.error("unknown-kernel", call.range, message);
            let known: Vec<&str> = self.code.kernels.iter().map(String::as_str).collect();
            let help = "put the kernels and `main` into one file: `#include \"kernels.cl\"`";
            let d = d.label("expected the name of one in quotes").help(help);
            return Err(Box::new(d.did_you_mean(&name, known)));
        };
        self.state.kernel_objects.push(KernelObject {
            kernel,
            arguments: Vec::new(),
        });
        Ok(HostValue::Kernel(self.state.kernel_objects.len() - 1))
    }

    /// `clCreateBuffer(context, flags, bytes, host, &error)`
    fn new_buffer(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let (flags, bytes) = (self.number_at(call, 1)?, self.number_at(call, 2)?);
        let host = self.operand(call, 3)?;
        self.no_error(call, 4)?;
        let bytes = self.size(bytes, 8, call.range)?;
        if flags & USE_HOST_PTR != 0 {
            return self.buffer_of_host(call, &host, bytes);
        }
        let memory = self.allocate(&call.hint, call.range, BYTE, bytes, AllocatedBy::Buffer);
        if let (HostValue::Pointer(from), true) = (&host, flags & COPY_HOST_PTR != 0)
            && let Some(source) = from.memory
        {
            self.alive(source, call.range)?;
            self.within(source, from.offset, bytes, call.range)?;
            self.begins_with(memory, source, from.offset, call)?;
        }
        Ok(address(memory, self.state.memory[memory].element))
    }

    /// `CL_MEM_USE_HOST_PTR`: from here on, memory of the host is a buffer. Implementations may
    /// keep its contents elsewhere, so the host accesses it through mappings only.
    fn buffer_of_host(
        &mut self,
        call: &RuntimeCallSite<'_>,
        host: &HostValue,
        bytes: i64,
    ) -> Read<HostValue> {
        let memory = memory_of(host).and_then(|pointer| Some((pointer.memory?, pointer.offset)));
        let usable = memory.filter(|(memory, offset)| {
            let object = &self.state.memory[*memory];
            let whole = *offset == 0 && object.bytes == bytes;
            whole && object.allocation.is_pageable() && !object.escapes && !self.state.begun
        });
        let Some((memory, _)) = usable else {
            return self.wrong(
                call.range,
                "a buffer that uses this memory of the host is not followed",
                "expected all of an array, before the first command",
                "make the buffer before commands, or copy the memory with `CL_MEM_COPY_HOST_PTR`",
            );
        };
        self.alive(memory, call.range)?;
        let object = &mut self.state.memory[memory];
        object.allocation = AllocatedBy::Buffer;
        object.shadow.fill(None);
        object.escapes = true;
        let element = object.element;
        // The host's accesses count from here on, and the memory outlives the buffer.
        self.state.begun = true;
        self.state.retained.push(ObjectKind::Memory(memory));
        Ok(address(memory, element))
    }

    /// `clCreateSubBuffer(buffer, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &error)`: a part of
    /// a buffer, which lives as long as its parts.
    fn sub_buffer(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let (memory, buffer) = self.address_at(call, 0)?;
        let region = self.operand(call, 3)?;
        self.no_error(call, 4)?;
        let [origin, bytes] = self.members(&region, call.range)?;
        if buffer.offset != 0 || bytes == 0 {
            return self.wrong(
                call.range,
                "this sub-buffer is an error",
                "expected a part of a buffer that has at least one byte",
                "make each sub-buffer of the whole buffer (OpenCL API, clCreateSubBuffer)",
            );
        }
        self.within(memory, origin, bytes, call.range)?;
        self.state.retained.push(ObjectKind::Memory(memory));
        Ok(HostValue::Pointer(Pointer {
            offset: origin,
            ..buffer
        }))
    }

    /// The numbers with which a structure or an array begins.
    pub(super) fn members<const N: usize>(
        &mut self,
        of: &HostValue,
        range: &Range<usize>,
    ) -> Read<[i64; N]> {
        let mut numbers = [0; N];
        let record = match of {
            HostValue::Cell(cell) => match &self.state.cells[*cell].value {
                HostValue::Record(record) => Some(record.first),
                _ => None,
            },
            _ => None,
        };
        for (at, number) in numbers.iter_mut().enumerate() {
            let value = match record {
                Some(first) => self.state.cells[first + at].value.clone(),
                None => {
                    let place = self.element(of, at as i64, range)?;
                    self.load(&place, range)?
                }
            };
            *number = self.known(&value, range)?;
        }
        Ok(numbers)
    }

    /// Lets a buffer begin with the values that memory of the host has.
    pub(super) fn begins_with(
        &mut self,
        memory: usize,
        source: usize,
        offset: i64,
        call: &RuntimeCallSite<'_>,
    ) -> Read<()> {
        let from = self.state.memory[source].clone();
        if from.escapes {
            return self.wrong(
                call.range,
                "a buffer that begins with memory that commands may write is not followed",
                "expected memory that no command before accesses",
                "write the buffer with `clEnqueueWriteBuffer`",
            );
        }
        let object = &mut self.state.memory[memory];
        (object.element, object.record) = (from.element, from.record.clone());
        object.retyped(None);
        let cells = from.cells_in(offset, object.bytes);
        for (to, cell) in cells.enumerate() {
            let value = from.shadow.get(cell);
            object.initial.set(to, value);
            object.open |= value.is_none();
        }
        Ok(())
    }

    /// `clSVMAlloc(context, flags, bytes, alignment)`
    fn new_shared(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let (flags, bytes) = (self.number_at(call, 1)?, self.number_at(call, 2)?);
        let bytes = self.size(bytes, 8, call.range)?;
        let allocation = match (flags & FINE_GRAIN != 0, flags & SVM_ATOMICS != 0) {
            (true, true) => AllocatedBy::SvmAtomic,
            (true, false) => AllocatedBy::SvmFine,
            (false, _) => AllocatedBy::SvmCoarse,
        };
        let memory = self.allocate(&call.hint, call.range, BYTE, bytes, allocation);
        Ok(address(memory, BYTE))
    }

    /// `clSetKernelArg(kernel, number, bytes, &value)`
    fn kernel_argument(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let value = match self.operand(call, 3)? {
            HostValue::Cell(cell) => self.state.cells[cell].value.clone(),
            pointer @ HostValue::Pointer(Pointer {
                memory: Some(_), ..
            }) => {
                let place = self.element(&pointer, 0, call.range)?;
                self.load(&place, call.range)?
            }
            // Memory that the work-items of a group share.
            _ => {
                let bytes = self.number_at(call, 2)?;
                let memory =
                    self.allocate("group_memory", call.range, BYTE, bytes, AllocatedBy::Buffer);
                self.state.memory[memory].space = Some("shared");
                address(memory, BYTE)
            }
        };
        self.set_argument(call, value)
    }

    fn set_argument(&mut self, call: &RuntimeCallSite<'_>, value: HostValue) -> Read<HostValue> {
        let kernel = self.kernel_object(call, 0)?;
        let at = self.number_at(call, 1)?;
        let arguments = &mut self.state.kernel_objects[kernel].arguments;
        let at = usize::try_from(at).unwrap_or(0);
        if arguments.len() <= at {
            arguments.resize(at + 1, HostValue::Unset);
        }
        arguments[at] = value;
        Ok(SUCCESS)
    }

    fn kernel_object(&mut self, call: &RuntimeCallSite<'_>, at: usize) -> Read<usize> {
        match self.operand(call, at)? {
            HostValue::Kernel(kernel) => Ok(kernel),
            _ => self.wrong(
                call.range,
                "this kernel is not worked out",
                "expected one that `clCreateKernel` makes",
                "keep kernels in variables or arrays",
            ),
        }
    }

    /// A new event, by its name.
    fn new_event(&mut self, hint: &str) -> String {
        let name = self.unique(if hint == "memory" { "event" } else { hint });
        self.state.events.push(EventObject {
            name: name.clone(),
            destroyed: None,
        });
        name
    }

    /// The wait list and the event of a command: a count, a list, and the address of a variable.
    pub(super) fn command_end(
        &mut self,
        call: &RuntimeCallSite<'_>,
        at: usize,
    ) -> Read<CommandEnd> {
        let count = match call.arguments.get(at) {
            Some(_) => self.number_at(call, at)?,
            None => 0,
        };
        let waits = match count {
            0 => "NULL".to_owned(),
            count => self.event_list(call, at + 1, count)?,
        };
        let event = match call.arguments.get(at + 2) {
            Some(HostValue::Cell(cell)) => {
                let name = self.new_event("event");
                let event = self.state.events.len() - 1;
                self.state.cells[*cell].value = HostValue::Event(event);
                format!("&{name}")
            }
            _ => "NULL".to_owned(),
        };
        Ok(CommandEnd { waits, event })
    }

    /// `{e, f}`: the events of a list.
    fn event_list(&mut self, call: &RuntimeCallSite<'_>, at: usize, count: i64) -> Read<String> {
        let list = self.operand(call, at)?;
        let mut names = Vec::new();
        for i in 0..count {
            let place = self.element(&list, i, call.range)?;
            let value = self.load(&place, call.range)?;
            names.push(self.event_text(&value, call)?);
        }
        Ok(format!("{{{}}}", names.join(", ")))
    }

    /// `clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, bytes, &status, &size)`
    fn event_info(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let event = self.operand(call, 0)?;
        let event = self.event_text(&event, call)?;
        let status = call.arguments.get(3).cloned();
        self.forget_results(call.arguments);
        if self.number_at(call, 1)? != EXECUTION_STATUS {
            return Ok(SUCCESS);
        }
        let register = self.register();
        self.emit(format!("int {register} = CL_QUEUED;"), call.range);
        let query = "CL_EVENT_COMMAND_EXECUTION_STATUS";
        let text = format!("clGetEventInfo({event}, {query}, &{register});");
        self.emit(text, call.range);
        let value = HostValue::Register(register, Ty::S32);
        match status {
            Some(HostValue::Cell(cell)) => self.state.cells[cell].value = value,
            Some(pointer @ HostValue::Pointer(_)) => {
                let place = self.element(&pointer, 0, call.range)?;
                self.state.begun = true;
                self.store(&place, value, call.range)?;
            }
            _ => {}
        }
        Ok(SUCCESS)
    }

    /// A call that enqueues a command.
    fn enqueued(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let queue = self.operand(call, 0)?;
        let queue = self.stream_text(&queue, call)?;
        self.state.begun = true;
        match call.name {
            "clEnqueueNDRangeKernel" => self.enqueue_range(call, &queue),
            "clEnqueueTask" => {
                let end = self.command_end(call, 2)?;
                let sizes = ["NULL".to_owned(), "1".to_owned(), "1".to_owned()];
                self.enqueue_kernel(call, &queue, &sizes, &end)
            }
            "clEnqueueReadBuffer" | "clEnqueueWriteBuffer" => self.transfer(call, &queue),
            "clEnqueueReadBufferRect" | "clEnqueueWriteBufferRect" | "clEnqueueCopyBufferRect" => {
                self.transfer_rectangle(call, &queue)
            }
            "clEnqueueReadImage" | "clEnqueueWriteImage" => self.transfer_image(call, &queue),
            "clEnqueueCopyImage" => self.copy_image(call, &queue),
            "clEnqueueCopyImageToBuffer" | "clEnqueueCopyBufferToImage" => {
                self.copy_image_and_buffer(call, &queue)
            }
            "clEnqueueFillImage" => self.fill_image(call, &queue),
            "clEnqueueMapImage" => self.map_image(call, &queue),
            "clEnqueueCopyBuffer" => {
                let end = self.command_end(call, 6)?;
                let sides = [self.buffer_at(call, 2, 4)?, self.buffer_at(call, 1, 3)?];
                let bytes = self.number_at(call, 5)?;
                let [to, from] = self.sides(call, &sides, bytes)?;
                let text = format!(
                    "clEnqueueCopyBuffer({queue}, &{from}, &{to}, {bytes} * sizeof(char){});",
                    end.text()
                );
                self.emit_call(text, call.range)?;
                Ok(SUCCESS)
            }
            "clEnqueueFillBuffer" => self.fill_buffer(call, &queue),
            "clEnqueueMapBuffer" | "clEnqueueSVMMap" => self.map(call, &queue),
            "clEnqueueUnmapMemObject" | "clEnqueueSVMUnmap" => self.unmap(call, &queue),
            "clEnqueueMarkerWithWaitList" | "clEnqueueBarrierWithWaitList" => {
                let end = self.command_end(call, 1)?;
                let text = format!("{}({queue}{});", call.name, end.text());
                self.emit_call(text, call.range)?;
                Ok(SUCCESS)
            }
            _ => self.refused(call),
        }
    }

    /// `clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, …)`
    fn enqueue_range(&mut self, call: &RuntimeCallSite<'_>, queue: &str) -> Read<HostValue> {
        let dimensions = self.number_at(call, 2)?;
        let end = self.command_end(call, 6)?;
        let sizes = [
            self.sizes_text(call, 3, dimensions)?,
            self.sizes_text(call, 4, dimensions)?,
            self.sizes_text(call, 5, dimensions)?,
        ];
        let mut threads = 1i64;
        for at in 0..dimensions {
            threads = threads.saturating_mul(self.size_at(call, 4, at)?);
        }
        self.threads = self.threads.saturating_add(threads);
        self.enqueue_kernel(call, queue, &sizes, &end)
    }

    /// A size in a list.
    fn size_at(&mut self, call: &RuntimeCallSite<'_>, list: usize, at: i64) -> Read<i64> {
        let list = self.operand(call, list)?;
        let place = self.element(&list, at, call.range)?;
        let value = self.load(&place, call.range)?;
        self.known(&value, call.range)
    }

    /// Sizes as the program that remains has them.
    fn sizes_text(
        &mut self,
        call: &RuntimeCallSite<'_>,
        list: usize,
        dimensions: i64,
    ) -> Read<String> {
        let is_null = match self.operand(call, list)? {
            HostValue::Pointer(pointer) => pointer.memory.is_none(),
            HostValue::Int(0, _) => true,
            _ => false,
        };
        if is_null {
            return Ok("NULL".to_owned());
        }
        let mut all = Vec::new();
        for at in 0..dimensions {
            all.push(self.size_at(call, list, at)?.to_string());
        }
        Ok(match all.as_slice() {
            [one] => one.clone(),
            several => format!("{{{}}}", several.join(", ")),
        })
    }

    fn enqueue_kernel(
        &mut self,
        call: &RuntimeCallSite<'_>,
        queue: &str,
        sizes: &[String; 3],
        end: &CommandEnd,
    ) -> Read<HostValue> {
        let object = self.kernel_object(call, 1)?;
        let KernelObject { kernel, arguments } = self.state.kernel_objects[object].clone();
        let mut handed = Vec::new();
        for value in arguments {
            handed.push(self.handed(value, call.range)?);
        }
        let name = self.kernel_name(KernelUse {
            name: String::new(),
            kernel,
            instance: None,
            arguments: handed,
            cooperative: false,
            shared: 0,
            range: call.range.clone(),
        });
        self.launches += 1;
        let [offset, global, local] = sizes;
        let local = match local.as_str() {
            "NULL" => String::new(),
            local => format!(", {local}"),
        };
        let text = match (local.as_str(), end.text().as_str()) {
            ("", "") => format!("clEnqueueNDRangeKernel({queue}, {name}, {offset}, {global});"),
            ("", end) => {
                format!("clEnqueueNDRangeKernel({queue}, {name}, {offset}, {global}, NULL{end});")
            }
            (local, end) => {
                format!("clEnqueueNDRangeKernel({queue}, {name}, {offset}, {global}{local}{end});")
            }
        };
        self.emit_call(text, call.range)?;
        self.forget_shared();
        Ok(SUCCESS)
    }

    /// Memory and the offset in it, of two operands.
    pub(super) fn buffer_at(
        &mut self,
        call: &RuntimeCallSite<'_>,
        at: usize,
        offset: usize,
    ) -> Read<(usize, i64)> {
        let (memory, pointer) = self.address_at(call, at)?;
        let offset = match call.arguments.get(offset) {
            Some(_) => self.number_at(call, offset)?,
            None => 0,
        };
        Ok((memory, pointer.offset + offset))
    }

    /// The names of both sides of a copy: where it goes, and where it comes from.
    fn sides(
        &mut self,
        call: &RuntimeCallSite<'_>,
        sides: &[(usize, i64); 2],
        bytes: i64,
    ) -> Read<[String; 2]> {
        let [(to, target), (from, source)] = *sides;
        self.within(to, target, bytes, call.range)?;
        self.within(from, source, bytes, call.range)?;
        self.same_elements(to, from, call)?;
        self.whole_elements(to, &[target, source, bytes], call)?;
        let cells = self.state.memory[to].cells_in(target, bytes);
        self.copied += cells.len() as i64;
        self.state.memory[to].shadow.forget(cells);
        for memory in [to, from] {
            self.state.memory[memory].escapes = true;
        }
        Ok([
            self.element_named(to, target),
            self.element_named(from, source),
        ])
    }

    /// `clEnqueueReadBuffer(queue, buffer, blocking, offset, bytes, host, …)`, or a write.
    fn transfer(&mut self, call: &RuntimeCallSite<'_>, queue: &str) -> Read<HostValue> {
        let end = self.command_end(call, 6)?;
        let blocking = self.blocking_word(call, 2)?;
        let bytes = self.number_at(call, 4)?;
        let (buffer, host) = (
            self.buffer_at(call, 1, 3)?,
            self.buffer_at(call, 5, usize::MAX)?,
        );
        let reads = call.name == "clEnqueueReadBuffer";
        let sides = if reads {
            [host, buffer]
        } else {
            [buffer, host]
        };
        let [to, from] = self.sides(call, &sides, bytes)?;
        let (first, second) = if reads { (from, to) } else { (to, from) };
        let text = format!(
            "{}({queue}, &{first}, {blocking}, &{second}, {bytes} * sizeof(char){});",
            call.name,
            end.text()
        );
        self.emit_call(text, call.range)?;
        Ok(SUCCESS)
    }

    pub(super) fn blocking_word(
        &mut self,
        call: &RuntimeCallSite<'_>,
        at: usize,
    ) -> Read<&'static str> {
        Ok(match self.number_at(call, at)? {
            0 => "CL_FALSE",
            _ => "CL_TRUE",
        })
    }

    /// `clEnqueueFillBuffer(queue, buffer, &pattern, size, offset, bytes, …)`
    fn fill_buffer(&mut self, call: &RuntimeCallSite<'_>, queue: &str) -> Read<HostValue> {
        let end = self.command_end(call, 6)?;
        let (memory, offset) = self.buffer_at(call, 1, 4)?;
        let (size, bytes) = (self.number_at(call, 3)?, self.number_at(call, 5)?);
        let pattern = self.operand(call, 2)?;
        let place = self.element(&pattern, 0, call.range)?;
        let pattern = self.load(&place, call.range)?;
        self.within(memory, offset, bytes, call.range)?;
        self.pattern_type(memory, size);
        let element = self.state.memory[memory].element;
        let value = super::access::bits_of(&pattern, element);
        let Some(value) = value.filter(|_| element.bytes() == size) else {
            return self.wrong(
                call.range,
                "this pattern is not followed",
                format!(
                    "expected a number of {} bytes, as the elements have",
                    element.bytes()
                ),
                "fill whole elements with a number that the host knows",
            );
        };
        self.whole_elements(memory, &[offset, bytes], call)?;
        let cells = self.state.memory[memory].cells_in(offset, bytes);
        self.state.memory[memory].shadow.forget(cells);
        self.state.memory[memory].escapes = true;
        let named = self.element_named(memory, offset);
        let text = format!(
            "clEnqueueFillBuffer({queue}, &{named}, {value}, {bytes} * sizeof(char){});",
            end.text()
        );
        self.emit_call(text, call.range)?;
        Ok(SUCCESS)
    }

    /// Gives memory of no type the size of a pattern.
    fn pattern_type(&mut self, memory: usize, size: i64) {
        let object = &mut self.state.memory[memory];
        if !object.element.said && [1, 2, 4, 8].contains(&size) {
            let ty = Ty {
                bits: (size * 8) as u8,
                signed: true,
            };
            object.element = super::values::ElementType::number(ty, false);
            object.retyped(None);
        }
    }

    /// `clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, bytes, …, &error)`, or
    /// `clEnqueueSVMMap(queue, blocking, flags, pointer, bytes, …)`
    fn map(&mut self, call: &RuntimeCallSite<'_>, queue: &str) -> Read<HostValue> {
        let shared = call.name == "clEnqueueSVMMap";
        let [blocking, flags, bytes] = if shared { [1, 2, 4] } else { [2, 3, 5] };
        let end = self.command_end(call, bytes + 1)?;
        let blocking = self.blocking_word(call, blocking)?;
        let (flags, bytes) = (self.number_at(call, flags)?, self.number_at(call, bytes)?);
        let (memory, offset) = match shared {
            true => self.buffer_at(call, 3, usize::MAX)?,
            false => self.buffer_at(call, 1, 4)?,
        };
        self.within(memory, offset, bytes, call.range)?;
        self.whole_elements(memory, &[offset, bytes], call)?;
        let cells = self.state.memory[memory].cells_in(offset, bytes);
        let object = &mut self.state.memory[memory];
        object.shadow.forget(cells);
        object.escapes = true;
        let part = match offset == 0 && bytes == object.bytes {
            true => None,
            false => Some(format!("{bytes} * sizeof(char)")),
        };
        let (name, element) = (object.name.clone(), object.element);
        let named = match part {
            None => name,
            Some(_) => format!("&{}", self.element_named(memory, offset)),
        };
        let part = part.map_or(String::new(), |part| format!(", {part}"));
        let (words, end) = (map_words(flags), end.text());
        let text = match shared {
            true => format!("clEnqueueSVMMap({queue}, {blocking}, {words}, {named}{part}{end});"),
            false => {
                format!("clEnqueueMapBuffer({queue}, {named}, {blocking}, {words}{part}{end});")
            }
        };
        self.emit_call(text, call.range)?;
        if shared {
            return Ok(SUCCESS);
        }
        self.no_error(call, 9)?;
        Ok(HostValue::Pointer(Pointer {
            memory: Some(memory),
            offset,
            element,
        }))
    }

    /// `clEnqueueUnmapMemObject(queue, buffer, pointer, …)`, or `clEnqueueSVMUnmap(queue, pointer,
    /// …)`
    fn unmap(&mut self, call: &RuntimeCallSite<'_>, queue: &str) -> Read<HostValue> {
        let shared = call.name == "clEnqueueSVMUnmap";
        let pointer = if shared { 1 } else { 2 };
        let end = self.command_end(call, pointer + 1)?;
        let (memory, offset) = self.buffer_at(call, pointer, usize::MAX)?;
        // An end belongs to the mapping that begins where its pointer does.
        let named = match offset {
            0 => self.state.memory[memory].name.clone(),
            _ => format!("&{}", self.element_named(memory, offset)),
        };
        let text = format!("{}({queue}, {named}{});", call.name, end.text());
        self.emit_call(text, call.range)?;
        Ok(SUCCESS)
    }

    /// Calls that wait, submit, or end the life of something.
    fn waiting_call(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let text = match call.name {
            "clFinish" | "clFlush" | "clReleaseCommandQueue" => {
                let queue = self.operand(call, 0)?;
                let object = match queue {
                    HostValue::Stream(StreamValue::Made(made)) => Some(ObjectKind::Queue(made)),
                    _ => None,
                };
                let text = self.stream_text(&queue, call)?;
                let is_kept = object.is_some_and(|queue| self.state.retained.contains(&queue));
                match (call.name, is_kept) {
                    // A release flushes the queue, even if it is not the last one.
                    ("clReleaseCommandQueue", true) => format!("clFlush({text});"),
                    (name, _) => format!("{name}({text});"),
                }
            }
            "clWaitForEvents" => {
                let count = self.number_at(call, 0)?;
                let list = self.event_list(call, 1, count)?;
                format!("clWaitForEvents({list});")
            }
            "clReleaseEvent" | "clRetainEvent" => {
                let event = self.operand(call, 0)?;
                let event = self.event_text(&event, call)?;
                format!("{}({event});", call.name)
            }
            "clSetUserEventStatus" => {
                let event = self.operand(call, 0)?;
                let event = self.event_text(&event, call)?;
                let status = match self.number_at(call, 1)? {
                    0 => "CL_COMPLETE".to_owned(),
                    status => status.to_string(),
                };
                format!("clSetUserEventStatus({event}, {status});")
            }
            _ => return self.refused(call),
        };
        self.emit_call(text, call.range)?;
        match call.name {
            "clReleaseCommandQueue" => self.queue_count(call),
            "clReleaseEvent" | "clRetainEvent" => self.event_count(call),
            _ => Ok(SUCCESS),
        }
    }

    /// Submits what the queues have, where the following ends: what the program does behind that
    /// place is nothing that it could be told of.
    pub(super) fn flush_queues(&mut self) {
        if self.code.dialect != Dialect::OpenCl {
            return;
        }
        for queue in self.state.streams.clone() {
            if queue.destroyed.is_none() {
                self.emit(format!("clFlush({});", queue.name), &(0..0));
            }
        }
    }

    /// Counts a reference to an object; whether none is left.
    fn count(&mut self, call: &RuntimeCallSite<'_>, object: ObjectKind) -> bool {
        if call.name.starts_with("clRetain") {
            self.state.retained.push(object);
            return false;
        }
        let retained = self
            .state
            .retained
            .iter()
            .position(|other| *other == object);
        match retained {
            Some(at) => {
                self.state.retained.remove(at);
                false
            }
            None => true,
        }
    }

    fn queue_count(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let queue = self.operand(call, 0)?;
        self.stream_text(&queue, call)?;
        if let HostValue::Stream(StreamValue::Made(made)) = queue
            && self.count(call, ObjectKind::Queue(made))
        {
            self.state.streams[made].destroyed = Some(call.range.clone());
        }
        Ok(SUCCESS)
    }

    fn event_count(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        if let HostValue::Event(made) = self.operand(call, 0)?
            && self.count(call, ObjectKind::Event(made))
        {
            self.state.events[made].destroyed = Some(call.range.clone());
        }
        Ok(SUCCESS)
    }

    /// `clReleaseMemObject`, which leaves the memory to the commands that use it; `clSVMFree`,
    /// which does not wait for them.
    fn memory_count(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let at = usize::from(call.name == "clSVMFree");
        let value = self.operand(call, at)?;
        if memory_of(&value).is_some_and(|pointer| pointer.memory.is_none()) {
            return Ok(SUCCESS);
        }
        let (memory, _) = self.address_at(call, at)?;
        if call.name == "clSVMFree" {
            self.free_on_host(memory, call.range);
        } else if self.count(call, ObjectKind::Memory(memory)) {
            self.state.memory[memory].freed = Some((call.range.clone(), self.thread));
        }
        Ok(SUCCESS)
    }
}

/// The names of flags of a mapping.
pub(super) fn map_words(flags: i64) -> String {
    let words: Vec<&str> = [
        (1, "CL_MAP_READ"),
        (2, "CL_MAP_WRITE"),
        (4, "CL_MAP_WRITE_INVALIDATE_REGION"),
    ]
    .iter()
    .filter(|(bit, _)| flags & bit != 0)
    .map(|(_, word)| *word)
    .collect();
    words.join(" | ")
}

/// The address of memory.
pub(super) fn address(memory: usize, element: super::values::ElementType) -> HostValue {
    HostValue::Pointer(Pointer {
        memory: Some(memory),
        offset: 0,
        element,
    })
}
