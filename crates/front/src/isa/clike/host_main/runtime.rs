//! Calls of CUDA's runtime and launches in host code.
//!
//! # Sources
//! - CUDA runtime API, *Stream Management*, *Event Management*, *Execution Control*, *Stream
//!   Ordered Memory Allocator*.

use std::ops::Range;

use super::machine::{Machine, element_of};
use super::parser::Read;
use super::tree::{HostExpr, HostExprKind, HostLaunch};
use super::values::{
    AllocatedBy, EventObject, HostPlace, HostValue, KernelUse, LaunchRange, Pointer, StreamObject,
    StreamValue,
};
use program::{Dialect, Ty};

/// Calls without an effect that a model could see.
const SILENT: [&str; 31] = [
    "cudaGetLastError",
    "cudaPeekAtLastError",
    "cudaSetDeviceFlags",
    "cudaFuncSetAttribute",
    "cudaFuncSetCacheConfig",
    "cudaDeviceSetCacheConfig",
    "cudaDeviceSetLimit",
    "cudaMemAdvise",
    "cudaMemPrefetchAsync",
    "cudaProfilerStart",
    "cudaProfilerStop",
    "cudaDeviceReset",
    "cudaGetDeviceProperties",
    "cudaDeviceGetStreamPriorityRange",
    "cudaMemGetInfo",
    "cudaDriverGetVersion",
    "cudaRuntimeGetVersion",
    "cudaDeviceGetDefaultMemPool",
    "cudaDeviceGetMemPool",
    "cudaDeviceSetMemPool",
    "cudaMemPoolCreate",
    "cudaMemPoolDestroy",
    "cudaMemPoolSetAttribute",
    "cudaMemPoolGetAttribute",
    "cudaMemPoolSetAccess",
    "cudaMemPoolTrimTo",
    "cudaMallocArray",
    "cudaMalloc3DArray",
    "cudaFreeArray",
    "cudaCreateChannelDesc",
    "cudaDestroyTextureObject",
];

/// The kinds of copies, by number.
const KINDS: [&str; 5] = [
    "cudaMemcpyHostToHost",
    "cudaMemcpyHostToDevice",
    "cudaMemcpyDeviceToHost",
    "cudaMemcpyDeviceToDevice",
    "cudaMemcpyDefault",
];

/// Operands that are variables of the device, by the number of the operand.
const SYMBOLS: [(&str, usize); 3] = [
    ("cudaMemcpyToSymbol", 0),
    ("cudaMemcpyFromSymbol", 1),
    ("cudaGetSymbolAddress", 1),
];

/// The result of a call that succeeds.
pub(super) const SUCCESS: HostValue = HostValue::Int(0, Ty::S32);

impl Machine<'_> {
    /// A call of the runtime.
    pub(super) fn runtime_call(
        &mut self,
        name: &str,
        arguments: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        if matches!(name, "cudaGetErrorString" | "cudaGetErrorName") {
            for argument in arguments {
                self.value(argument)?;
            }
            return Ok(HostValue::Text(String::new()));
        }
        let hint = match arguments.first() {
            Some(target) => self.target_name(target)?,
            None => None,
        };
        let values = self.operands(name, arguments)?;
        let call = RuntimeCallSite {
            name,
            arguments: &values,
            range,
            hint: match self.code.dialect {
                Dialect::OpenCl => self.hint(),
                _ => hint.unwrap_or_else(|| self.hint()),
            },
        };
        if self.code.dialect == Dialect::OpenCl {
            return self.opencl_call(&call);
        }
        if is_driver_call(name) {
            return self.driver_call(&call);
        }
        if SILENT.contains(&name) {
            self.forget_results(&values);
            return Ok(SUCCESS);
        }
        if name == "cudaCreateTextureObject" {
            return self.answer(&call, HostValue::Int(1, Ty::U64));
        }
        if name.starts_with("cudaOccupancy") {
            return self.occupancy(&call);
        }
        if name.starts_with("cudaMalloc") || name == "cudaHostAlloc" {
            return self.allocation(&call);
        }
        if name.starts_with("cudaFree") {
            return self.release_memory(&call);
        }
        if name.starts_with("cudaMemcpy") {
            return self.copy(&call);
        }
        if name.starts_with("cudaMemset") {
            return self.set_memory(&call);
        }
        if name.starts_with("cudaStream") || name == "cudaThreadSynchronize" {
            return self.stream_call(&call);
        }
        if name.starts_with("cudaEvent") {
            return self.event_call(&call);
        }
        if name.starts_with("cudaGraph") {
            return self.graph_call(&call);
        }
        self.other_call(&call)
    }

    /// The values of the operands of a call.
    fn operands(&mut self, name: &str, arguments: &[HostExpr]) -> Read<Vec<HostValue>> {
        let mut values = Vec::new();
        for (at, argument) in arguments.iter().enumerate() {
            let value = match SYMBOLS.contains(&(name.trim_end_matches("Async"), at)) {
                true => self.symbol(argument)?,
                false => self.value(argument)?,
            };
            let value = self.converted_object(value, &argument.range)?;
            values.push(self.decayed(value));
        }
        Ok(values)
    }

    /// The name of the variable in `(void**)&p`.
    fn target_name(&mut self, tree: &HostExpr) -> Read<Option<String>> {
        Ok(match &tree.kind {
            HostExprKind::Name(name) => Some(name.clone()),
            HostExprKind::Unary(_, of) | HostExprKind::Cast(_, of) => self.target_name(of)?,
            HostExprKind::Index(of, at) => {
                let at = self.value(at)?;
                match (self.target_name(of)?, at) {
                    (Some(name), HostValue::Int(n, _)) => Some(format!("{name}_{n}")),
                    (name, _) => name,
                }
            }
            _ => None,
        })
    }

    /// Makes variables unknown to which a call without an effect writes.
    pub(super) fn forget_results(&mut self, values: &[HostValue]) {
        for value in values {
            match value {
                HostValue::Cell(at) => self.state.cells[*at].value = HostValue::Unknown,
                HostValue::Pointer(Pointer {
                    memory: Some(memory),
                    ..
                }) => self.state.memory[*memory].shadow.fill(None),
                _ => {}
            }
        }
    }

    pub(super) fn refused<T>(&mut self, call: &RuntimeCallSite<'_>) -> Read<T> {
        self.wrong(
            call.range,
            format!("`{}` is not followed", call.name),
            "expected a call of the list in `docs/src/source-files.md`",
            "check one kernel with `--launch`, or write the test by hand, with `[[host]]`",
        )
    }

    /// An operand of a call.
    pub(super) fn operand(&mut self, call: &RuntimeCallSite<'_>, at: usize) -> Read<HostValue> {
        match call.arguments.get(at) {
            Some(value) => Ok(value.clone()),
            None => self.wrong(
                call.range,
                format!("`{}` lacks operands", call.name),
                format!("expected at least {}", at + 1),
                "look it up in the CUDA runtime API",
            ),
        }
    }

    pub(super) fn number_at(&mut self, call: &RuntimeCallSite<'_>, at: usize) -> Read<i64> {
        let value = self.operand(call, at)?;
        self.known(&value, call.range)
    }

    /// The variable that a call writes.
    pub(super) fn variable_at(&mut self, call: &RuntimeCallSite<'_>, at: usize) -> Read<usize> {
        match self.operand(call, at)? {
            HostValue::Cell(cell) => Ok(cell),
            _ => self.wrong(
                call.range,
                format!("`{}` writes to something that is not followed", call.name),
                "expected the address of a variable",
                "declare a variable, and hand over its address",
            ),
        }
    }

    fn allocation(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let allocation = match call.name {
            "cudaMalloc" | "cudaMallocPitch" => AllocatedBy::Device,
            "cudaMallocAsync" | "cudaMallocFromPoolAsync" => AllocatedBy::DeviceAsync,
            "cudaMallocManaged" => AllocatedBy::Managed,
            "cudaMallocHost" | "cudaHostAlloc" => AllocatedBy::Pinned,
            _ => return self.refused(call),
        };
        let cell = self.variable_at(call, 0)?;
        let of = self.state.cells[cell].of.clone();
        let element = element_of(&of.base);
        let bytes = match call.name {
            "cudaMallocPitch" => self.pitched(call)?,
            _ => self.number_at(call, 1)?,
        };
        let bytes = self.size(bytes, element.bytes(), call.range)?;
        let memory = self.allocate_of(&call.hint, call.range, &of.base, bytes, allocation);
        self.state.cells[cell].value = HostValue::Pointer(Pointer {
            memory: Some(memory),
            offset: 0,
            element,
        });
        if allocation == AllocatedBy::DeviceAsync {
            // `cudaMallocFromPoolAsync` has the pool before the stream.
            let last = if call.name == "cudaMallocAsync" { 2 } else { 3 };
            let stream = self.operand(call, last)?;
            let stream = self.stream_text(&stream, call)?;
            let name = self.state.memory[memory].name.clone();
            self.state.begun = true;
            self.emit_call(format!("cudaMallocAsync({name}, {stream});"), call.range)?;
        }
        Ok(SUCCESS)
    }

    /// `cudaMallocPitch(&p, &pitch, width, height)`: the bytes of all rows. The runtime chooses the
    /// pitch; here rows follow each other without a gap.
    fn pitched(&mut self, call: &RuntimeCallSite<'_>) -> Read<i64> {
        let (width, height) = (self.number_at(call, 2)?, self.number_at(call, 3)?);
        let pitch = HostValue::Int(width, Ty::U64);
        match self.operand(call, 1)? {
            HostValue::Cell(at) => self.state.cells[at].value = pitch,
            HostValue::Pointer(Pointer {
                memory: Some(memory),
                offset,
                element,
            }) => {
                let place = HostPlace::Memory(memory, offset, element);
                self.store(&place, pitch, call.range)?;
            }
            _ => {}
        }
        Ok(width * height)
    }

    /// A variable of the device that a call names.
    fn symbol(&mut self, tree: &HostExpr) -> Read<HostValue> {
        match &tree.kind {
            HostExprKind::Name(_) => self.address(tree, &tree.range),
            HostExprKind::Cast(_, of) => self.symbol(of),
            _ => self.value(tree),
        }
    }

    /// A stream as the program that remains names it.
    pub(super) fn stream_text(
        &mut self,
        value: &HostValue,
        call: &RuntimeCallSite<'_>,
    ) -> Read<String> {
        let stream = match value {
            HostValue::Stream(stream) => *stream,
            HostValue::Int(0, _) => StreamValue::Default,
            // `cudaStreamLegacy` and `cudaStreamPerThread` have such values.
            HostValue::Int(1, _) => StreamValue::Legacy,
            HostValue::Int(2, _) => StreamValue::PerThread,
            HostValue::Pointer(p) if p.memory.is_none() => StreamValue::Default,
            HostValue::Unset => {
                let d = self.code.error(
                    "released",
                    call.range,
                    "this stream is not made before it is used",
                );
                return Err(Box::new(d.label("expected `cudaStreamCreate` before").note(
                    "a stream handle that was not created is not valid (CUDA runtime API, Stream \
                     Management)",
                )));
            }
            _ => {
                return self.wrong(
                    call.range,
                    "this stream is not worked out",
                    "expected a stream that the program makes",
                    "keep streams in variables or arrays",
                );
            }
        };
        let default = match self.code.per_thread {
            true => StreamValue::PerThread,
            false => StreamValue::Legacy,
        };
        let made = match if stream == StreamValue::Default {
            default
        } else {
            stream
        } {
            StreamValue::PerThread => return Ok("cudaStreamPerThread".to_owned()),
            StreamValue::Made(made) => made,
            _ => return Ok("0".to_owned()),
        };
        let object = self.state.streams[made].clone();
        match object.destroyed {
            None => Ok(object.name),
            Some(at) => self.late_use(&object.name, &at, call.range),
        }
    }

    /// An event as the program that remains names it.
    pub(super) fn event_text(
        &mut self,
        value: &HostValue,
        call: &RuntimeCallSite<'_>,
    ) -> Read<String> {
        let HostValue::Event(made) = value else {
            let d = self.code.error(
                "released",
                call.range,
                "this event is not made before it is used",
            );
            return Err(Box::new(d.label("expected `cudaEventCreate` before").note(
                "an event handle that was not created is not valid (CUDA runtime API, Event \
                 Management)",
            )));
        };
        let object = self.state.events[*made].clone();
        match object.destroyed {
            None => Ok(object.name),
            Some(at) => self.late_use(&object.name, &at, call.range),
        }
    }

    fn stream_call(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let name = call.name;
        match name {
            "cudaStreamCreate" | "cudaStreamCreateWithFlags" | "cudaStreamCreateWithPriority" => {
                let cell = self.variable_at(call, 0)?;
                let flags = match call.arguments.len() {
                    1 => 0,
                    _ => self.number_at(call, 1)?,
                };
                let made = self.unique(&call.hint);
                self.state.streams.push(StreamObject {
                    name: made,
                    blocking: flags & 1 == 0,
                    destroyed: None,
                });
                let stream = StreamValue::Made(self.state.streams.len() - 1);
                self.state.cells[cell].value = HostValue::Stream(stream);
                Ok(SUCCESS)
            }
            "cudaStreamDestroy" => {
                let value = self.operand(call, 0)?;
                let text = self.stream_text(&value, call)?;
                self.emit_call(format!("cudaStreamDestroy({text});"), call.range)?;
                if let HostValue::Stream(StreamValue::Made(made)) = value {
                    self.state.streams[made].destroyed = Some(call.range.clone());
                }
                Ok(SUCCESS)
            }
            "cudaStreamSynchronize" => {
                let value = self.operand(call, 0)?;
                let text = self.stream_text(&value, call)?;
                self.emit_call(format!("cudaStreamSynchronize({text});"), call.range)?;
                Ok(SUCCESS)
            }
            "cudaThreadSynchronize" => self.wait_for_device(call),
            "cudaStreamBeginCapture" => self.begin_capture(call),
            "cudaStreamEndCapture" => self.end_capture(call),
            "cudaStreamQuery" => {
                let value = self.operand(call, 0)?;
                let text = self.stream_text(&value, call)?;
                Ok(self.query(&format!("cudaStreamQuery({text})"), call.range))
            }
            "cudaStreamWaitEvent" => {
                let (stream, event) = (self.operand(call, 0)?, self.operand(call, 1)?);
                let stream = self.stream_text(&stream, call)?;
                let event = self.event_text(&event, call)?;
                self.emit_call(
                    format!("cudaStreamWaitEvent({stream}, {event});"),
                    call.range,
                )?;
                Ok(SUCCESS)
            }
            _ => self.refused(call),
        }
    }

    /// A question to the runtime; its answer depends on the device.
    fn query(&mut self, text: &str, range: &Range<usize>) -> HostValue {
        let register = self.register();
        self.emit(format!("int {register} = {text};"), range);
        HostValue::Register(register, Ty::S32)
    }

    fn event_call(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let name = call.name;
        match name {
            "cudaEventCreate" | "cudaEventCreateWithFlags" => {
                let cell = self.variable_at(call, 0)?;
                let made = self.unique(&call.hint);
                self.state.events.push(EventObject {
                    name: made,
                    destroyed: None,
                });
                let event = self.state.events.len() - 1;
                self.state.cells[cell].value = HostValue::Event(event);
                Ok(SUCCESS)
            }
            "cudaEventDestroy" => {
                let value = self.operand(call, 0)?;
                self.event_text(&value, call)?;
                if let HostValue::Event(made) = value {
                    self.state.events[made].destroyed = Some(call.range.clone());
                }
                Ok(SUCCESS)
            }
            "cudaEventRecord" | "cudaEventRecordWithFlags" => {
                let event = self.operand(call, 0)?;
                let event = self.event_text(&event, call)?;
                let stream = self.stream_at(call, 1)?;
                self.emit_call(format!("cudaEventRecord({event}, {stream});"), call.range)?;
                Ok(SUCCESS)
            }
            "cudaEventSynchronize" => {
                let event = self.operand(call, 0)?;
                let event = self.event_text(&event, call)?;
                self.emit_call(format!("cudaEventSynchronize({event});"), call.range)?;
                Ok(SUCCESS)
            }
            "cudaEventQuery" => {
                let event = self.operand(call, 0)?;
                let event = self.event_text(&event, call)?;
                Ok(self.query(&format!("cudaEventQuery({event})"), call.range))
            }
            "cudaEventElapsedTime" => {
                for at in [1, 2] {
                    let event = self.operand(call, at)?;
                    self.event_text(&event, call)?;
                }
                self.forget_results(&call.arguments[..1]);
                Ok(SUCCESS)
            }
            _ => self.refused(call),
        }
    }

    /// The stream of an operand that may be left out.
    pub(super) fn stream_at(&mut self, call: &RuntimeCallSite<'_>, at: usize) -> Read<String> {
        let value = call.arguments.get(at).cloned();
        let value = value.unwrap_or(HostValue::Stream(StreamValue::Default));
        self.stream_text(&value, call)
    }

    pub(super) fn wait_for_device(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        self.emit_call("cudaDeviceSynchronize();".to_owned(), call.range)?;
        Ok(SUCCESS)
    }

    fn other_call(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        match call.name {
            "cudaDeviceSynchronize" => self.wait_for_device(call),
            "cudaSetDevice" => match self.operand(call, 0)? {
                HostValue::Int(0, _) => Ok(SUCCESS),
                HostValue::Unknown => Ok(self.first_device()),
                _ => self.wrong(
                    call.range,
                    "programs with several devices are not followed",
                    "expected device 0",
                    "write the test by hand: `[[host]]` knows `cudaSetDevice`",
                ),
            },
            "cudaGetDevice" | "cudaGetDeviceCount" => {
                let value = HostValue::Int(i64::from(call.name == "cudaGetDeviceCount"), Ty::S32);
                self.answer(call, value)
            }
            "cudaDeviceGetAttribute" => self.device_attribute(call),
            "cudaHostRegister" => self.register_memory(call),
            "cudaHostUnregister" => Ok(SUCCESS),
            "cudaHostGetDevicePointer" | "cudaGetSymbolAddress" => {
                let (cell, value) = (self.variable_at(call, 0)?, self.operand(call, 1)?);
                self.state.cells[cell].value = value;
                Ok(SUCCESS)
            }
            "cudaLaunchHostFunc" => self.host_function(call),
            "cudaLaunchKernel" => self.launch_call(call, false),
            "cudaLaunchCooperativeKernel" => self.launch_call(call, true),
            "cudaLaunchKernelEx" => self.launch_with_attributes(call),
            _ => self.refused(call),
        }
    }

    /// `cudaHostRegister(p, bytes, flags)`: pins memory, and kernels can access it.
    fn register_memory(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        if let HostValue::Pointer(Pointer {
            memory: Some(memory),
            ..
        }) = self.operand(call, 0)?
        {
            self.state.memory[memory].allocation = AllocatedBy::Registered;
        }
        Ok(SUCCESS)
    }

    /// Writes the answer of a call to its first operand.
    pub(super) fn answer(
        &mut self,
        call: &RuntimeCallSite<'_>,
        value: HostValue,
    ) -> Read<HostValue> {
        match self.operand(call, 0)? {
            HostValue::Cell(at) => self.state.cells[at].value = value,
            HostValue::Pointer(Pointer {
                memory: Some(memory),
                offset,
                element,
            }) => {
                let place = HostPlace::Memory(memory, offset, element);
                self.store(&place, value, call.range)?;
            }
            _ => {}
        }
        Ok(SUCCESS)
    }

    /// `kernel<<<grid, block, bytes, stream>>>(arguments)`
    pub(super) fn launch(&mut self, launch: &HostLaunch, range: &Range<usize>) -> Read<HostValue> {
        let name = self.code.text.as_str()[launch.kernel.clone()].to_owned();
        let Some(kernel) = self.code.kernels.iter().position(|k| *k == name) else {
            let known: Vec<&str> = self.code.kernels.iter().map(String::as_str).collect();
            let d = self.code.error(
                "unknown-kernel",
                &launch.kernel,
                format!("this file has no kernel `{name}`"),
            );
            return Err(Box::new(
                d.label("launched here").did_you_mean(&name, known),
            ));
        };
        let mut sizes = Vec::new();
        for tree in launch.configuration.iter().take(2) {
            let value = self.value(tree)?;
            sizes.push(self.extent(&value, &tree.range)?);
        }
        let shared = match launch.configuration.get(2) {
            Some(tree) => self.number(tree)?,
            None => 0,
        };
        let stream = match launch.configuration.get(3) {
            Some(tree) => {
                let value = self.value(tree)?;
                self.converted_object(value, &tree.range)?
            }
            None => HostValue::Stream(StreamValue::Default),
        };
        let mut arguments = Vec::new();
        for tree in &launch.arguments {
            let value = self.value(tree)?;
            let value = self.converted_object(value, &tree.range)?;
            arguments.push(self.handed(value, &tree.range)?);
        }
        self.default_arguments(kernel, &mut arguments, range)?;
        let call = RuntimeCallSite {
            name: &name,
            arguments: &[],
            range,
            hint: String::new(),
        };
        let stream = self.stream_text(&stream, &call)?;
        let instance = match &launch.instance {
            Some(given) => Some(self.instance(given)?),
            None => self.deduced(&name, &arguments),
        };
        let of = KernelUse {
            name: String::new(),
            kernel,
            instance,
            arguments,
            cooperative: false,
            shared,
            range: range.clone(),
        };
        self.start_kernel(of, &sizes, &stream)?;
        Ok(HostValue::Unset)
    }

    /// Adds the default arguments of a kernel that a launch leaves out.
    fn default_arguments(
        &mut self,
        kernel: usize,
        arguments: &mut Vec<HostValue>,
        range: &Range<usize>,
    ) -> Read<()> {
        let params = self.code.kernel_parameters(kernel).unwrap_or_default();
        for param in params.iter().skip(arguments.len()) {
            let Some(tree) = &param.value else { break };
            let value = self.value(tree)?;
            let value = self.converted(value, &param.of);
            arguments.push(self.handed(value, range)?);
        }
        Ok(())
    }

    /// The name of a kernel with these arguments in the program that remains.
    pub(super) fn kernel_name(&mut self, mut of: KernelUse) -> String {
        match self.state.kernels.iter().find(|k| {
            (k.kernel, &k.instance, &k.arguments, k.shared, k.cooperative)
                == (
                    of.kernel,
                    &of.instance,
                    &of.arguments,
                    of.shared,
                    of.cooperative,
                )
        }) {
            Some(known) => known.name.clone(),
            None => {
                let name = self.code.kernels[of.kernel].clone();
                of.name = self.unique(&name);
                self.state.kernels.push(of.clone());
                of.name
            }
        }
    }

    /// Forgets the values of memory that a kernel may write.
    pub(super) fn forget_shared(&mut self) {
        let all = self.state.memory.iter_mut();
        for object in all.filter(|memory| memory.allocation.is_shared()) {
            object.escapes = true;
            object.shadow.fill(None);
        }
    }

    /// Emits a launch.
    pub(super) fn start_kernel(
        &mut self,
        of: KernelUse,
        sizes: &[[i64; 3]],
        stream: &str,
    ) -> Read<()> {
        let range = of.range.clone();
        let name = self.kernel_name(of);
        if sizes.iter().flatten().any(|size| *size <= 0) {
            let d = self
                .code
                .error("empty-range", &range, "a launch of no threads");
            return Err(Box::new(d.label("a size of it is 0")));
        }
        let one = [1; 3];
        let [grid, block] = [0, 1].map(|at| sizes.get(at).unwrap_or(&one));
        let all = grid.iter().chain(block);
        let threads = all.fold(1, |n: i64, size| n.saturating_mul((*size).max(1)));
        self.threads = self.threads.saturating_add(threads);
        let text = format!(
            "{name}<<<{}, {}, 0, {stream}>>>();",
            listed(grid),
            listed(block)
        );
        self.state.begun = true;
        self.launches += 1;
        if self.state.capture.is_none() {
            self.ranges.push(LaunchRange {
                kernel: name,
                grid: *grid,
                block: *block,
            });
        }
        self.emit_call(text, &range)?;
        self.forget_shared();
        Ok(())
    }

    /// A size of a launch.
    pub(super) fn extent(&mut self, value: &HostValue, range: &Range<usize>) -> Read<[i64; 3]> {
        match value {
            HostValue::Dim3(sizes) => Ok(*sizes),
            HostValue::Register(..) => self.wrong(
                range,
                "the size of this launch depends on what the device computes",
                "expected a number that the host knows before the program runs",
                "write a number here, to check this case",
            ),
            value => Ok([self.known(value, range)?, 1, 1]),
        }
    }

    /// A value that a kernel is handed.
    pub(super) fn handed(&mut self, value: HostValue, range: &Range<usize>) -> Read<HostValue> {
        let value = self.decayed(value);
        match &value {
            HostValue::Int(..) | HostValue::Float(..) => Ok(value),
            HostValue::Record(record) => self.record_memory(record, range),
            HostValue::Pointer(pointer) => {
                if let Some(memory) = pointer.memory {
                    self.alive(memory, range)?;
                    let object = &self.state.memory[memory];
                    if object.allocation.is_pageable() {
                        let (name, made) = (object.name.clone(), object.range.clone());
                        let made = self.code.text.span(made);
                        let d = self.code.error(
                            "wrong-memory",
                            range,
                            format!("the kernel is handed `{name}`, which is memory of the host"),
                        );
                        return Err(Box::new(
                            d.label("expected memory that the device can access")
                                .also(made, "allocated here")
                                .help("use `cudaMalloc` or `cudaMallocManaged`"),
                        ));
                    }
                }
                Ok(value)
            }
            HostValue::Register(..) => self.wrong(
                range,
                "this argument depends on what the device computes",
                "expected a value that the host knows before the program runs",
                "hand the kernel its address, or write a number here",
            ),
            HostValue::Unset => self.wrong(
                range,
                "this argument has no value",
                "the variable was not written before",
                "give it a value",
            ),
            _ => self.wrong(
                range,
                "this argument is not worked out",
                "expected a number, or the address of memory",
                "write a number here, or hand the kernel an address",
            ),
        }
    }
}

/// A call of the runtime with its operands.
pub(super) struct RuntimeCallSite<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a [HostValue],
    pub(super) range: &'a Range<usize>,
    /// The name of the variable that receives the result.
    pub(super) hint: String,
}

/// Whether a function is of the driver.
pub(super) fn is_driver_call(name: &str) -> bool {
    let rest = name.strip_prefix("cu").unwrap_or("");
    rest.starts_with(|c: char| c.is_ascii_uppercase())
}

/// The word of a kind of copies.
pub(super) fn kind_word(kind: i64) -> &'static str {
    usize::try_from(kind)
        .ok()
        .and_then(|at| KINDS.get(at))
        .unwrap_or(&KINDS[4])
}

/// A size of a launch as text.
fn listed(sizes: &[i64; 3]) -> String {
    let used = sizes
        .iter()
        .rposition(|size| *size != 1)
        .map_or(1, |at| at + 1);
    let all: Vec<String> = sizes[..used].iter().map(i64::to_string).collect();
    match all.as_slice() {
        [one] => one.clone(),
        several => format!("{{{}}}", several.join(", ")),
    }
}
