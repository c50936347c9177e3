//! Atomic objects in host code: `cuda::atomic<T, scope>`, `cuda::atomic_ref<T, scope>`, and those
//! of `std`, whose scope is the system.
//!
//! # Invariants
//! - What the host writes before the first command is the initial value. Any other access stays
//!   in the program that remains, with its order.
//!
//! # Sources
//! - ISO C++, atomics.types.generic, atomics.ref.generic; libcu++, *Extended API: Synchronization
//!   Primitives*.

use std::ops::Range;

use super::machine::{Machine, element_of};
use super::parser::Read;
use super::tree::{HostBase, HostDeclared, HostExpr, HostExprKind, HostType};
use super::values::{AllocatedBy, AtomicObject, HostPlace, HostValue, Pointer};

/// The operations that give a value, with the number of their operands without orders.
const GIVE: [(&str, usize); 7] = [
    ("load", 0),
    ("exchange", 1),
    ("fetch_add", 1),
    ("fetch_sub", 1),
    ("fetch_and", 1),
    ("fetch_or", 1),
    ("fetch_xor", 1),
];

impl Machine<'_> {
    /// The atomic object of `of`, as in `flag->load()`; `None`: it is something else.
    pub(super) fn atomic_of(&mut self, of: &HostExpr) -> Read<Option<AtomicObject>> {
        let Some(mut place) = self.place_if_any(of)? else {
            return Ok(None);
        };
        if let HostPlace::Cell(at) = place {
            place = match self.state.cells[at].value.clone() {
                HostValue::Atomic(object) => return Ok(Some(object)),
                pointer @ HostValue::Pointer(Pointer {
                    memory: Some(_), ..
                }) => self.element(&pointer, 0, &of.range)?,
                _ => return Ok(None),
            };
        }
        let HostPlace::Memory(memory, offset, _) = place else {
            return Ok(None);
        };
        let object = &self.state.memory[memory];
        let is_atomic = object.class.is_some();
        let ty = object.element.ty;
        Ok(is_atomic.then_some(AtomicObject {
            memory,
            offset,
            ty,
            reference: None,
        }))
    }

    /// `std::atomic<int> flag{0}`
    pub(super) fn declare_atomic(&mut self, declared: &HostDeclared) -> Read<()> {
        let value = match declared.value.as_ref().map(|tree| (tree, &tree.kind)) {
            Some((_, HostExprKind::Braces(all) | HostExprKind::Construct(_, all))) => {
                match all.first() {
                    Some(first) => self.value(first)?,
                    None => HostValue::Int(0, program::Ty::S32),
                }
            }
            Some((tree, _)) => self.value(tree)?,
            None => HostValue::Int(0, program::Ty::S32),
        };
        let HostBase::Atomic(ty, ..) = declared.of.base else {
            return Ok(());
        };
        let element = element_of(&declared.of.base);
        let memory = self.allocate_of(
            &declared.name,
            &declared.range,
            &declared.of.base,
            element.bytes(),
            AllocatedBy::Variable,
        );
        self.state.memory[memory].escapes = !self.state.is_alone();
        let object = AtomicObject {
            memory,
            offset: 0,
            ty,
            reference: None,
        };
        self.atomic_initial(&object, 0, &value);
        self.bind(&declared.name, HostPlace::Memory(memory, 0, element));
        Ok(())
    }

    /// `++n`, `n += 2`: a read-modify-write. Returns the old value; `None`: it is no atomic object.
    pub(super) fn atomic_update(
        &mut self,
        op: &str,
        target: &HostExpr,
        value: &HostExpr,
        range: &Range<usize>,
    ) -> Read<Option<HostValue>> {
        let method = match op {
            "+" => "fetch_add",
            "-" => "fetch_sub",
            "&" => "fetch_and",
            "|" => "fetch_or",
            "^" => "fetch_xor",
            _ => return Ok(None),
        };
        let object = match target.kind {
            HostExprKind::Name(_) => self.atomic_of(target)?,
            _ => None,
        };
        let Some(object) = object else {
            return Ok(None);
        };
        let value = std::slice::from_ref(value);
        self.atomic_method(&object, method, value, range).map(Some)
    }

    /// `cuda::atomic_ref<int, cuda::thread_scope_system> r(*p)`
    pub(super) fn atomic_reference(
        &mut self,
        of: &HostType,
        arguments: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let (HostBase::Atomic(ty, true, name), [number]) = (&of.base, arguments) else {
            return Ok(HostValue::Unknown);
        };
        match self.place(number)? {
            HostPlace::Memory(memory, offset, _) => Ok(HostValue::Atomic(AtomicObject {
                memory,
                offset,
                ty: *ty,
                reference: Some(name.clone()),
            })),
            _ => self.wrong(
                range,
                "an atomic reference to a variable is not followed",
                "expected a number in memory that the device can access",
                "allocate it with `cudaMallocManaged` or `cudaMallocHost`",
            ),
        }
    }

    /// `flag.store(1, cuda::memory_order_release)`
    pub(super) fn atomic_method(
        &mut self,
        object: &AtomicObject,
        method: &str,
        arguments: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let cell = self.atomic_cell(object, range)?;
        // Nothing waits for it: a loop with a load is what waits.
        if method.starts_with("notify_") {
            return Ok(HostValue::Unset);
        }
        let given = GIVE.iter().find(|row| row.0 == method).map(|row| row.1);
        let Some(operands) = given.or((method == "store").then_some(1)) else {
            return self.wrong(
                range,
                format!("`{method}` of an atomic object is not followed"),
                "expected `load`, `store`, `exchange`, `fetch_add` or another `fetch_…`",
                "write it with these",
            );
        };
        let mut texts = Vec::new();
        let mut first = HostValue::Unset;
        for (i, tree) in arguments.iter().enumerate() {
            if i >= operands {
                texts.push(self.code.text.as_str()[tree.range.clone()].to_owned());
                continue;
            }
            first = self.value(tree)?;
            texts.push(match &first {
                HostValue::Int(n, _) => object.ty.wrap(*n).to_string(),
                HostValue::Register(name, _) => name.clone(),
                _ => self.anything(range),
            });
        }
        if method == "store" && !self.state.begun && object.reference.is_none() {
            self.atomic_initial(object, cell, &first);
            return Ok(HostValue::Unset);
        }
        let shadow = self.state.memory[object.memory].shadow.get(cell);
        if let (false, "load", Some(value)) = (self.state.begun, method, shadow) {
            return Ok(HostValue::Int(value, object.ty));
        }
        self.state.memory[object.memory].shadow.set(cell, None);
        let named = self.named(object.memory, cell);
        let named = match &object.reference {
            Some(name) => format!("{name}({named})"),
            None => named,
        };
        let call = format!("{named}.{method}({})", texts.join(", "));
        if method == "store" {
            self.emit(format!("{call};"), range);
            return Ok(HostValue::Unset);
        }
        let register = self.register();
        let sign = if object.ty.signed { "" } else { "u" };
        let bits = object.ty.bits;
        self.emit(format!("{sign}int{bits}_t {register} = {call};"), range);
        Ok(HostValue::Register(register, object.ty))
    }

    /// The number of memory that an atomic object is.
    fn atomic_cell(&mut self, object: &AtomicObject, range: &Range<usize>) -> Read<usize> {
        self.alive(object.memory, range)?;
        let bytes = i64::from(object.ty.bits / 8);
        self.within(object.memory, object.offset, bytes, range)?;
        match self.state.memory[object.memory].cell_at(object.offset) {
            Some((cell, own)) if own.ty.bits == object.ty.bits => Ok(cell),
            _ => self.wrong(
                range,
                "the host accesses memory with elements of another size",
                format!("expected elements of {bytes} bytes"),
                "use one type for the memory",
            ),
        }
    }

    fn atomic_initial(&mut self, object: &AtomicObject, cell: usize, value: &HostValue) {
        let bits = match value {
            HostValue::Int(n, _) => Some(object.ty.wrap(*n)),
            _ => None,
        };
        let memory = &mut self.state.memory[object.memory];
        memory.initial.set(cell, bits);
        memory.shadow.set(cell, bits);
        memory.open |= bits.is_none();
    }

    /// `new (p) T(0)`: makes an object in memory that is there.
    pub(super) fn placed(
        &mut self,
        at: &HostExpr,
        of: &HostType,
        arguments: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let pointer = self.value(at)?;
        let pointer = self.converted(
            pointer,
            &HostType {
                pointers: 1,
                ..of.clone()
            },
        );
        let place = self.element(&pointer, 0, range)?;
        let value = match arguments {
            [one] => self.value(one)?,
            _ => HostValue::Int(0, program::Ty::S32),
        };
        match (&of.base, &place) {
            (HostBase::Atomic(ty, false, _), HostPlace::Memory(memory, offset, _)) => {
                let object = AtomicObject {
                    memory: *memory,
                    offset: *offset,
                    ty: *ty,
                    reference: None,
                };
                if self.state.begun {
                    return self.wrong(
                        range,
                        "an atomic object that is made while commands may run is not followed",
                        "expected it before the first copy, fill or launch",
                        "make it in front of them",
                    );
                }
                let cell = self.atomic_cell(&object, range)?;
                self.atomic_initial(&object, cell, &value);
            }
            _ => self.store(&place, value, range)?,
        }
        Ok(pointer)
    }
}
