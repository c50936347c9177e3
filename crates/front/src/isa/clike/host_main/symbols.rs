//! Variables of the device that the host names: `__device__`, `__constant__` and `__managed__`.
//!
//! # Invariants
//! - Each is memory with its name, so that kernels name the same memory.
//! - It begins with the values of its declaration, or with zeros.

use std::collections::HashSet;

use super::code::words_of;
use super::machine::{Machine, element_of};
use super::parser::Read;
use super::tree::{HostDeclared, HostExpr, HostExprKind};
use super::values::{AllocatedBy, HostPlace, HostValue};

impl Machine<'_> {
    /// Makes the variables of the device that code of the host names.
    pub(super) fn device_variables(&mut self) -> Read<()> {
        let code = self.code;
        let mut used = HashSet::new();
        for range in code.host_functions() {
            used.extend(words_of(code, &range));
        }
        let all = code.of_device();
        for (range, declared) in &all {
            // One declaration is one item of the file.
            let mut same = all.iter().filter(|(other, _)| other == range);
            let named = same.any(|(_, other)| used.contains(&other.name));
            if named && declared.of.is_memory() {
                self.device_variable(declared, &words_of(code, range))?;
            }
        }
        Ok(())
    }

    fn device_variable(&mut self, declared: &HostDeclared, words: &HashSet<String>) -> Read<()> {
        let mut length = 1;
        for size in &declared.arrays {
            let Some(size) = size else { return Ok(()) };
            length *= self.number(size)?;
        }
        let allocation = match words.contains("__managed__") {
            true => AllocatedBy::Managed,
            false => AllocatedBy::Device,
        };
        let element = element_of(&declared.of.base);
        let bytes = self.size(length * element.bytes(), element.bytes(), &declared.range)?;
        let (name, range) = (&declared.name, &declared.range);
        let memory = self.allocate_of(name, range, &declared.of.base, bytes, allocation);
        let object = &mut self.state.memory[memory];
        object.name.clone_from(name);
        object.symbol = true;
        self.zeroed(memory);
        if let Some(tree) = &declared.value {
            self.first_values(memory, tree)?;
        }
        let place = match declared.arrays.is_empty() {
            true => HostPlace::Memory(memory, 0, element),
            false => HostPlace::Cell(self.cell(HostValue::Buffer(memory), declared.of.clone())),
        };
        self.bind(name, place);
        Ok(())
    }

    /// The values of an initialiser: a number, or a list of them.
    fn first_values(&mut self, memory: usize, tree: &HostExpr) -> Read<()> {
        let all = match &tree.kind {
            HostExprKind::Braces(all) => all.as_slice(),
            _ => std::slice::from_ref(tree),
        };
        for (at, tree) in all.iter().enumerate() {
            let value = self.value(tree)?;
            let object = &self.state.memory[memory];
            let element = object.cell_element(at);
            let bits = super::access::bits_of(&value, element);
            self.state.memory[memory].initial.set(at, bits);
        }
        let object = &mut self.state.memory[memory];
        object.shadow = object.initial.clone();
        Ok(())
    }
}
