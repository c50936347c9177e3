//! Takes for granted the parts of a program that its file does not have: functions of other files,
//! and the device that it runs on.
//!
//! # Invariants
//! - The answer names each such thing.

use std::ops::Range;

use super::machine::Machine;
use super::parser::Read;
use super::runtime::{RuntimeCallSite, SUCCESS};
use super::tree::{HostBase, HostDeclared, HostExpr};
use super::values::{HostPlace, HostValue, Pointer};
use program::Ty;

/// Multiprocessors of the device, and blocks on each of them.
const BLOCKS: i64 = 2;

/// Threads of a block that the runtime suggests.
const BLOCK: i64 = 32;

/// Properties that all devices of today share (CUDA C++ Programming Guide, Compute Capabilities).
const PROPERTIES: [(&str, i64); 2] = [("warpSize", 32), ("maxThreadsPerBlock", 1024)];

/// Attributes of a device that all devices of today share, by number.
const ATTRIBUTES: [(i64, i64); 2] = [(1, 1024), (10, 32)];

/// The attribute with the number of multiprocessors.
const MULTIPROCESSORS: i64 = 16;

impl Machine<'_> {
    /// Notes something that is taken for granted.
    pub(super) fn assume(&mut self, note: String) {
        if !self.assumed.contains(&note) {
            self.assumed.push(note);
        }
    }

    /// A call of a function that the file declares and another one defines. It may access all
    /// memory of the host that it is handed.
    pub(super) fn call_elsewhere(
        &mut self,
        name: &str,
        params: &[HostDeclared],
        values: &[HostValue],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        for (at, value) in values.iter().enumerate() {
            let constant = params.get(at).is_some_and(|param| param.of.constant);
            match value {
                HostValue::Pointer(Pointer {
                    memory: Some(memory),
                    ..
                }) if !self.state.memory[*memory].allocation.is_device() => {
                    self.touch_all(*memory, constant, range)?;
                }
                HostValue::Int(..)
                | HostValue::Float(..)
                | HostValue::Unknown
                | HostValue::Register(..)
                | HostValue::Text(_) => {}
                HostValue::Pointer(pointer) if pointer.memory.is_none() => {}
                HostValue::Cell(cell) => {
                    self.not_shared(*cell, range)?;
                    self.state.cells[*cell].value = HostValue::Unknown;
                }
                _ => {
                    return self.wrong(
                        range,
                        format!("`{name}` is handed an object of the runtime"),
                        "this file declares it, and another one defines it",
                        "put its definition into this file",
                    );
                }
            }
        }
        self.assume(format!(
            "`{name}` is not in this file: it is taken to access the memory of the host that it \
             is handed, and to call nothing of the runtime"
        ));
        Ok(HostValue::Unknown)
    }

    /// Reads each number in memory, and writes it if the access is not of constants.
    fn touch_all(&mut self, memory: usize, constant: bool, range: &Range<usize>) -> Read<()> {
        for cell in 0..self.state.memory[memory].cells() {
            let (offset, element) = self.state.memory[memory].cell_place(cell);
            let place = HostPlace::Memory(memory, offset, element);
            self.load(&place, range)?;
            if !constant {
                self.store(&place, HostValue::Unknown, range)?;
            }
        }
        Ok(())
    }

    /// `cudaOccupancyMaxPotentialBlockSize` and its like.
    pub(super) fn occupancy(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let number = |n: i64| HostValue::Int(n, Ty::S32);
        let told = match call.name {
            "cudaOccupancyMaxActiveBlocksPerMultiprocessor"
            | "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"
            | "cudaOccupancyMaxActiveClusters" => {
                self.result_at(call, 0, number(BLOCKS))?;
                format!("{BLOCKS} blocks")
            }
            "cudaOccupancyMaxPotentialBlockSize"
            | "cudaOccupancyMaxPotentialBlockSizeWithFlags"
            | "cudaOccupancyMaxPotentialBlockSizeVariableSMem" => {
                self.result_at(call, 0, number(BLOCKS))?;
                self.result_at(call, 1, number(BLOCK))?;
                format!("{BLOCKS} blocks of {BLOCK} threads")
            }
            _ => return self.refused(call),
        };
        self.assume(format!("`{}` is taken to give {told}", call.name));
        Ok(SUCCESS)
    }

    /// Writes a result of a call to the variable of an operand.
    pub(super) fn result_at(
        &mut self,
        call: &RuntimeCallSite<'_>,
        at: usize,
        value: HostValue,
    ) -> Read<()> {
        match self.operand(call, at)? {
            HostValue::Cell(cell) => {
                let of = self.state.cells[cell].of.clone();
                self.state.cells[cell].value = self.converted(value, &of);
                Ok(())
            }
            HostValue::Pointer(Pointer {
                memory: Some(memory),
                offset,
                element,
            }) => self.store(
                &HostPlace::Memory(memory, offset, element),
                value,
                call.range,
            ),
            _ => Ok(()),
        }
    }

    /// `cudaDeviceGetAttribute(&value, attribute, device)`
    pub(super) fn device_attribute(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let value = match call.arguments.get(1) {
            Some(HostValue::Int(MULTIPROCESSORS, _)) => Some(self.multiprocessors()),
            Some(HostValue::Int(number, _)) => {
                let known = ATTRIBUTES.iter().find(|known| known.0 == *number);
                known.map(|known| HostValue::Int(known.1, Ty::S32))
            }
            _ => None,
        };
        match value {
            Some(value) => self.result_at(call, 0, value)?,
            None => self.forget_results(call.arguments),
        }
        Ok(SUCCESS)
    }

    /// A device that the program chooses itself.
    pub(super) fn first_device(&mut self) -> HostValue {
        self.assume("the program is taken to use one device".to_owned());
        SUCCESS
    }

    fn multiprocessors(&mut self) -> HostValue {
        self.assume(format!(
            "the device is taken to have {BLOCKS} multiprocessors"
        ));
        HostValue::Int(BLOCKS, Ty::S32)
    }

    /// A member of `cudaDeviceProp` that is known, or taken for granted.
    pub(super) fn device_property(&mut self, of: &HostExpr, name: &str) -> Option<HostValue> {
        let (declared, _) = self.declared_type(of)?;
        if !matches!(&declared.base, HostBase::Other(base) if base == "cudaDeviceProp") {
            return None;
        }
        if name == "multiProcessorCount" {
            return Some(self.multiprocessors());
        }
        let known = PROPERTIES.iter().find(|known| known.0 == name)?;
        Some(HostValue::Int(known.1, Ty::S32))
    }
}
