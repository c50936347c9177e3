//! Launches by calls: `cudaLaunchKernel`, `cudaLaunchCooperativeKernel`, `cudaLaunchKernelEx`.
//!
//! # Sources
//! - CUDA runtime API, *Execution Control*: cudaLaunchKernel, cudaLaunchKernelExC,
//!   cudaLaunchAttributeID.

use std::ops::Range;

use super::machine::Machine;
use super::parser::Read;
use super::runtime::{RuntimeCallSite, SUCCESS};
use super::values::{HostPlace, HostValue, KernelUse, Pointer};

/// The attribute of cooperative launches, by its number.
const COOPERATIVE: i64 = 2;

/// A launch with its arguments in a list.
pub(super) struct KernelLaunchCall {
    pub(super) kernel: HostValue,
    /// Grid and block.
    pub(super) sizes: [HostValue; 2],
    /// The list of the addresses of the arguments.
    pub(super) list: HostValue,
    /// Bytes of dynamic shared memory.
    pub(super) shared: HostValue,
    pub(super) cooperative: bool,
}

impl Machine<'_> {
    /// `cudaLaunchKernel(kernel, grid, block, arguments, bytes, stream)`
    pub(super) fn launch_call(
        &mut self,
        call: &RuntimeCallSite<'_>,
        cooperative: bool,
    ) -> Read<HostValue> {
        let launch = KernelLaunchCall {
            kernel: self.operand(call, 0)?,
            sizes: [self.operand(call, 1)?, self.operand(call, 2)?],
            list: self.operand(call, 3)?,
            shared: call.arguments.get(4).cloned().unwrap_or(HostValue::Unset),
            cooperative,
        };
        let stream = self.stream_at(call, 5)?;
        self.launch_by_list(&launch, &stream, call.range)?;
        Ok(SUCCESS)
    }

    /// `cudaLaunchKernelEx(&config, kernel, arguments…)`
    pub(super) fn launch_with_attributes(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let config = self.record_at(call, 0)?;
        let [grid, block, shared, stream, attributes, count] = [
            "gridDim",
            "blockDim",
            "dynamicSmemBytes",
            "stream",
            "attrs",
            "numAttrs",
        ]
        .map(|name| self.member_value(&config, name));
        let stream = match stream {
            HostValue::Unset => "0".to_owned(),
            stream => self.stream_text(&stream, call)?,
        };
        let cooperative = self.attributes(call, &attributes, &count)?;
        let mut arguments = Vec::new();
        for value in call.arguments.iter().skip(2) {
            arguments.push(self.handed(value.clone(), call.range)?);
        }
        let launch = KernelLaunchCall {
            kernel: self.operand(call, 1)?,
            sizes: [grid, block],
            list: HostValue::Unset,
            shared,
            cooperative,
        };
        self.launch_with(&launch, arguments, &stream, call.range)?;
        Ok(SUCCESS)
    }

    /// Whether the attributes of a launch make it cooperative.
    fn attributes(
        &mut self,
        call: &RuntimeCallSite<'_>,
        list: &HostValue,
        count: &HostValue,
    ) -> Read<bool> {
        let mut cooperative = false;
        let count = match count {
            HostValue::Unset => 0,
            count => self.known(count, call.range)?,
        };
        for i in 0..count {
            let place = self.element(list, i, call.range)?;
            let HostValue::Record(attribute) = self.load(&place, call.range)? else {
                return self.refused_attribute(call);
            };
            let (id, value) = (
                self.member_value(&attribute, "id"),
                self.member_value(&attribute, "val"),
            );
            let HostValue::Record(value) = value else {
                return self.refused_attribute(call);
            };
            if self.known(&id, call.range)? != COOPERATIVE {
                return self.refused_attribute(call);
            }
            let value = self.member_value(&value, "cooperative");
            cooperative |= self.known(&value, call.range)? != 0;
        }
        Ok(cooperative)
    }

    fn refused_attribute<T>(&mut self, call: &RuntimeCallSite<'_>) -> Read<T> {
        self.wrong(
            call.range,
            "an attribute of this launch is not followed",
            "expected none but `cudaLaunchAttributeCooperative`",
            "check the kernel with `--launch`, or write the test by hand, with `[[host]]`",
        )
    }

    /// A launch whose arguments stand in a list of addresses.
    pub(super) fn launch_by_list(
        &mut self,
        launch: &KernelLaunchCall,
        stream: &str,
        range: &Range<usize>,
    ) -> Read<()> {
        let mut arguments = Vec::new();
        for cell in self.listed(&launch.list) {
            let value = match self.state.cells[cell].value.clone() {
                HostValue::Cell(at) => self.state.cells[at].value.clone(),
                HostValue::Pointer(Pointer {
                    memory: Some(memory),
                    offset,
                    element,
                }) => self.load(&HostPlace::Memory(memory, offset, element), range)?,
                _ => HostValue::Unset,
            };
            arguments.push(self.handed(value, range)?);
        }
        self.launch_with(launch, arguments, stream, range)
    }

    fn launch_with(
        &mut self,
        launch: &KernelLaunchCall,
        arguments: Vec<HostValue>,
        stream: &str,
        range: &Range<usize>,
    ) -> Read<()> {
        let kernel = match &launch.kernel {
            HostValue::Function(name) => self.code.kernels.iter().position(|k| k == name),
            _ => None,
        };
        let Some(kernel) = kernel else {
            return self.wrong(
                range,
                "this kernel is not worked out",
                "expected the name of a kernel of this file",
                "name the kernel, as in `(void*)kernel`",
            );
        };
        let mut sizes = Vec::new();
        for size in &launch.sizes {
            sizes.push(self.extent(size, range)?);
        }
        let shared = match &launch.shared {
            HostValue::Unset => 0,
            shared => self.known(shared, range)?,
        };
        let instance = self.deduced(&self.code.kernels[kernel], &arguments);
        let of = KernelUse {
            name: String::new(),
            kernel,
            instance,
            arguments,
            cooperative: launch.cooperative,
            shared,
            range: range.clone(),
        };
        self.start_kernel(of, &sizes, stream)
    }

    /// The variables of an array, from its first one.
    fn listed(&self, list: &HostValue) -> Vec<usize> {
        let HostValue::Cell(first) = list else {
            return Vec::new();
        };
        // The array is a variable, too, so its length is known.
        let length = self
            .state
            .cells
            .iter()
            .find_map(|variable| match variable.value {
                HostValue::Cells(start, length) if start == *first => Some(length),
                _ => None,
            });
        (*first..*first + length.unwrap_or(0)).collect()
    }
}
