//! Virtual memory of CUDA's driver: addresses that a program reserves, and memory that it maps.
//!
//! A range of addresses is memory of the program that remains. The first range to which an
//! allocation is mapped is its memory, and each other one is an alias of the first.
//!
//! # Invariants
//! - A range is used only while it is mapped and its access is set. Anything else is an error.
//! - A mapping ends only while no command runs.
//! - A range and an allocation are mapped as a whole.
//!
//! # Sources
//! - CUDA driver API, *Virtual Memory Management*; CUDA C++ Programming Guide, *Virtual Memory
//!   Management*, *Virtual Aliasing Support*.
//!
//! # Where we differ
//! - Memory is that of the device, whatever the location in the properties. The host does not
//!   access it.

use std::ops::Range;

use super::machine::{BYTE, Machine};
use super::parser::Read;
use super::runtime::{RuntimeCallSite, SUCCESS};
use super::values::{AddressRange, AllocatedBy, HostValue, PhysicalMemory, Pointer};
use program::Ty;

/// Calls that prepare the driver, without an effect that a model could see.
const SILENT: [&str; 8] = [
    "cuInit",
    "cuCtxCreate",
    "cuCtxDestroy",
    "cuCtxSetCurrent",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease",
];

/// The granularity of allocations, in bytes. A device has a larger one.
const GRANULARITY: i64 = 64;

impl Machine<'_> {
    /// A call of the driver.
    pub(super) fn driver_call(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        match call.name {
            "cuMemGetAllocationGranularity" => {
                self.assume(format!(
                    "`{}` is taken to give {GRANULARITY} bytes",
                    call.name
                ));
                self.answer(call, HostValue::Int(GRANULARITY, Ty::U64))
            }
            "cuMemAddressReserve" => self.reserve(call),
            "cuMemAddressFree" => self.free_addresses(call),
            "cuMemCreate" => self.create_memory(call),
            "cuMemRelease" => {
                let handle = self.handle_at(call, 0)?;
                self.state.physical[handle].released = true;
                Ok(SUCCESS)
            }
            "cuMemMap" => self.map_memory(call),
            "cuMemSetAccess" => {
                let memory = self.range_at(call, 0)?;
                self.whole_range(memory, 1, call)?;
                if self.addresses(memory).mapped.is_none() {
                    return self.not_mapped(memory, call.range);
                }
                self.addresses_mut(memory).accessible = true;
                Ok(SUCCESS)
            }
            "cuMemUnmap" => self.unmap_memory(call),
            name if SILENT.contains(&name) => {
                self.forget_results(call.arguments);
                Ok(SUCCESS)
            }
            _ => self.refused(call),
        }
    }

    /// `cuMemAddressReserve(&p, bytes, alignment, address, flags)`
    fn reserve(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let cell = self.variable_at(call, 0)?;
        let bytes = self.number_at(call, 1)?;
        let bytes = self.size(bytes, 8, call.range)?;
        let memory = self.allocate(&call.hint, call.range, BYTE, bytes, AllocatedBy::Device);
        self.state.memory[memory].addresses = Some(AddressRange::default());
        self.state.cells[cell].value = HostValue::Pointer(Pointer {
            memory: Some(memory),
            offset: 0,
            element: BYTE,
        });
        Ok(SUCCESS)
    }

    /// `cuMemCreate(&handle, bytes, &properties, flags)`
    fn create_memory(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let cell = self.variable_at(call, 0)?;
        let bytes = self.number_at(call, 1)?;
        self.state.physical.push(PhysicalMemory {
            bytes,
            first: None,
            released: false,
        });
        let handle = self.state.physical.len() - 1;
        self.state.cells[cell].value = HostValue::PhysicalMemory(handle);
        Ok(SUCCESS)
    }

    /// `cuMemMap(p, bytes, offset, handle, flags)`
    fn map_memory(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let memory = self.range_at(call, 0)?;
        let handle = self.handle_at(call, 3)?;
        self.whole_range(memory, 1, call)?;
        let whole = self.state.physical[handle].bytes == self.state.memory[memory].bytes;
        if self.number_at(call, 2)? != 0 || !whole {
            return self.partly(call);
        }
        let range = self.addresses(memory);
        if range.mapped.is_some() || range.ended.is_some() {
            return self.wrong(
                call.range,
                format!("`{}` is mapped twice", self.state.memory[memory].name),
                "expected a range that nothing was mapped to before",
                "reserve another range: `cuMemAddressReserve`",
            );
        }
        let first = *self.state.physical[handle].first.get_or_insert(memory);
        if first != memory {
            self.state.memory[memory].alias = Some(first);
        }
        self.addresses_mut(memory).mapped = Some(handle);
        Ok(SUCCESS)
    }

    /// `cuMemUnmap(p, bytes)`: nothing may use the range from here on, and no command may run.
    fn unmap_memory(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let memory = self.range_at(call, 0)?;
        self.whole_range(memory, 1, call)?;
        self.alive(memory, call.range)?;
        if self.addresses(memory).mapped.is_none() {
            return self.not_mapped(memory, call.range);
        }
        let waited = self.state.lines.iter().rfind(|line| line.calls());
        let runs = waited.is_some_and(|line| line.text != "cudaDeviceSynchronize();");
        if runs || !self.state.is_alone() {
            return self.wrong(
                call.range,
                "a command may still use this mapping",
                "expected `cudaDeviceSynchronize()` before, and no command behind it",
                "wait for all commands, then unmap",
            );
        }
        let range = self.addresses_mut(memory);
        (range.mapped, range.accessible) = (None, false);
        range.ended = Some(call.range.clone());
        self.state.memory[memory].freed = Some((call.range.clone(), self.thread));
        Ok(SUCCESS)
    }

    /// `cuMemAddressFree(p, bytes)`
    fn free_addresses(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let memory = self.range_at(call, 0)?;
        self.whole_range(memory, 1, call)?;
        if self.addresses(memory).mapped.is_some() {
            return self.wrong(
                call.range,
                "addresses are freed while memory is mapped to them",
                "expected `cuMemUnmap` before",
                "unmap the range first",
            );
        }
        self.state.memory[memory].freed = Some((call.range.clone(), self.thread));
        Ok(SUCCESS)
    }

    /// Reports a use of addresses without mapped memory, or without access.
    pub(super) fn mapped(&mut self, memory: usize, range: &Range<usize>) -> Read<()> {
        match &self.state.memory[memory].addresses {
            Some(AddressRange {
                mapped: None,
                ended: None,
                ..
            }) => self.not_mapped(memory, range),
            Some(AddressRange {
                mapped: Some(_),
                accessible: false,
                ..
            }) => self.wrong(
                range,
                format!(
                    "the access to `{}` is not set",
                    self.state.memory[memory].name
                ),
                "expected `cuMemSetAccess` before",
                "call `cuMemSetAccess(p, size, &access, 1)` behind `cuMemMap`",
            ),
            _ => Ok(()),
        }
    }

    fn not_mapped<T>(&self, memory: usize, range: &Range<usize>) -> Read<T> {
        self.wrong(
            range,
            format!(
                "no memory is mapped to `{}`",
                self.state.memory[memory].name
            ),
            "expected `cuMemMap` before",
            "call `cuMemMap(p, size, 0, handle, 0)`, then `cuMemSetAccess`",
        )
    }

    fn partly<T>(&self, call: &RuntimeCallSite<'_>) -> Read<T> {
        self.wrong(
            call.range,
            "a part of a range or of an allocation is not followed",
            "expected the size of the whole, from its beginning",
            "reserve a range for each allocation",
        )
    }

    /// The memory of a range of addresses, from its beginning.
    fn range_at(&mut self, call: &RuntimeCallSite<'_>, at: usize) -> Read<usize> {
        match self.operand(call, at)? {
            HostValue::Pointer(Pointer {
                memory: Some(memory),
                offset: 0,
                ..
            }) if self.state.memory[memory].addresses.is_some() => Ok(memory),
            _ => self.wrong(
                call.range,
                "these addresses are not worked out",
                "expected the beginning of a range of `cuMemAddressReserve`",
                "keep the address in a variable",
            ),
        }
    }

    fn whole_range(&mut self, memory: usize, at: usize, call: &RuntimeCallSite<'_>) -> Read<()> {
        match self.number_at(call, at)? == self.state.memory[memory].bytes {
            true => Ok(()),
            false => self.partly(call),
        }
    }

    fn handle_at(&mut self, call: &RuntimeCallSite<'_>, at: usize) -> Read<usize> {
        match self.operand(call, at)? {
            HostValue::PhysicalMemory(handle) if !self.state.physical[handle].released => {
                Ok(handle)
            }
            _ => self.wrong(
                call.range,
                "this is no allocation, or it was released",
                "expected a handle of `cuMemCreate`",
                "release it behind its last use",
            ),
        }
    }

    fn addresses(&self, memory: usize) -> AddressRange {
        self.state.memory[memory]
            .addresses
            .clone()
            .unwrap_or_default()
    }

    fn addresses_mut(&mut self, memory: usize) -> &mut AddressRange {
        let range = &mut self.state.memory[memory].addresses;
        range.get_or_insert_with(AddressRange::default)
    }
}
