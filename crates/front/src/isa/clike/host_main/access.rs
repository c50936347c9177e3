//! Reads and writes variables and memory of the host.
//!
//! # Invariants
//! - What the host writes before the first command is the initial value of the memory.
//! - A read of memory is a statement of the program that remains, unless its value is known: then
//!   no command that was enqueued before writes the memory.

use std::ops::Range;

use super::cell_values::CellValues;
use super::machine::{BYTE, Machine, element_of, null};
use super::parser::Read;
use super::tree::{HostBase, HostExpr, HostExprKind, HostType};
use super::values::{
    AllocatedBy, ElementType, HostPlace, HostValue, LineEffect, MemoryObject, Pointer, zero_of,
};
use program::{Dialect, Ty};

/// Elements of memory that is followed.
const MOST_ELEMENTS: i64 = 1 << 12;

/// Bytes of memory where only the launches count.
const MOST_BYTES: i64 = 1 << 40;

/// Memory of any value, for what is not worked out.
const ANYTHING: &str = "anything";

impl Machine<'_> {
    /// Makes memory of any contents.
    pub(super) fn allocate(
        &mut self,
        name: &str,
        range: &Range<usize>,
        element: ElementType,
        bytes: i64,
        allocation: AllocatedBy,
    ) -> usize {
        let name = self.unique(name);
        let mut object = MemoryObject {
            name,
            range: range.clone(),
            element,
            record: None,
            class: None,
            bytes,
            allocation,
            initial: CellValues::default(),
            shadow: CellValues::default(),
            freed: None,
            escapes: false,
            open: false,
            space: None,
            is_member: false,
            symbol: false,
            addresses: None,
            alias: None,
        };
        object.retyped(None);
        self.state.memory.push(object);
        self.state.memory.len() - 1
    }

    /// Makes memory of a type.
    pub(super) fn allocate_of(
        &mut self,
        name: &str,
        range: &Range<usize>,
        of: &HostBase,
        bytes: i64,
        allocation: AllocatedBy,
    ) -> usize {
        let memory = self.allocate(name, range, element_of(of), bytes, allocation);
        self.settle_type(memory, of);
        memory
    }

    /// Gives memory the structure or the class of a type.
    fn settle_type(&mut self, memory: usize, of: &HostBase) {
        let object = &mut self.state.memory[memory];
        match of {
            HostBase::Record(record) if !record.cells.is_empty() => {
                object.record = Some(record.clone());
                object.retyped(object.initial.begin_with_zero().then_some(0));
            }
            HostBase::Atomic(_, false, class) => object.class = Some(class.clone()),
            _ => {}
        }
    }

    /// Checks a size of memory.
    pub(super) fn size(&mut self, bytes: i64, element: i64, range: &Range<usize>) -> Read<i64> {
        let most = match self.for_launches {
            true => MOST_BYTES,
            false => MOST_ELEMENTS * element,
        };
        if (0..=most).contains(&bytes) {
            return Ok(bytes);
        }
        self.too_large(
            range,
            format!("memory of {bytes} bytes is too large to be followed"),
            format!("expected at most {MOST_ELEMENTS} elements"),
        )
    }

    /// Lets memory begin with zeros.
    pub(super) fn zeroed(&mut self, memory: usize) {
        let object = &mut self.state.memory[memory];
        object.initial.fill(Some(0));
        object.shadow.fill(Some(0));
    }

    /// An array of a type.
    pub(super) fn array(
        &mut self,
        name: &str,
        range: &Range<usize>,
        of: &HostType,
        length: i64,
        zeroed: bool,
    ) -> Read<HostValue> {
        if of.is_memory() {
            let stride = element_of(&of.base).bytes();
            let bytes = self.size(length * stride, stride, range)?;
            let memory = self.allocate_of(name, range, &of.base, bytes, AllocatedBy::Variable);
            if zeroed {
                self.zeroed(memory);
            }
            return Ok(HostValue::Buffer(memory));
        }
        let length = self.size(length, 1, range)? as usize;
        let first = self.state.cells.len();
        for _ in 0..length {
            let value = match of.base {
                HostBase::Stream if zeroed => zero_of(of),
                _ if zeroed && of.pointers > 0 => zero_of(of),
                _ => HostValue::Unset,
            };
            self.cell(value, of.clone());
        }
        if let HostBase::Record(record) = &of.base {
            for at in first..first + length {
                let record = record.clone();
                self.state.cells[at].value = self.new_record(&record)?;
            }
        }
        Ok(HostValue::Cells(first, length))
    }

    /// How many elements an array or a vector has.
    pub(super) fn length_of(&mut self, value: &HostValue, range: &Range<usize>) -> Read<i64> {
        match value {
            HostValue::Buffer(memory) => Ok(self.state.memory[*memory].length() as i64),
            HostValue::Cells(_, length) => Ok(*length as i64),
            _ => self.wrong(
                range,
                "this has no elements that are followed",
                "expected an array or a vector",
                "use a loop over indices",
            ),
        }
    }

    /// The place of an element.
    pub(super) fn element(
        &mut self,
        of: &HostValue,
        at: i64,
        range: &Range<usize>,
    ) -> Read<HostPlace> {
        match of {
            HostValue::Buffer(memory) => {
                let element = self.state.memory[*memory].element;
                Ok(HostPlace::Memory(*memory, at * element.bytes(), element))
            }
            HostValue::Pointer(Pointer {
                memory: Some(memory),
                offset,
                element,
            }) => {
                let offset = offset + at * element.bytes();
                Ok(HostPlace::Memory(*memory, offset, *element))
            }
            HostValue::Cells(first, length) if (0..*length as i64).contains(&at) => {
                Ok(HostPlace::Cell(first + at as usize))
            }
            HostValue::Cell(first) if (*first as i64 + at) < self.state.cells.len() as i64 => {
                Ok(HostPlace::Cell((*first as i64 + at).max(0) as usize))
            }
            HostValue::Cells(_, length) => {
                let d = self.code.error(
                    "out-of-bounds",
                    range,
                    format!("element {at} of an array of {length}"),
                );
                Err(Box::new(d.label("this is outside of the array")))
            }
            HostValue::Pointer(_) => {
                let d = self
                    .code
                    .error("null-pointer", range, "the host uses the null pointer");
                Err(Box::new(d.label("expected the address of an object")))
            }
            _ => self.wrong(
                range,
                "the host uses an address that is not worked out",
                "expected the address of memory that the program allocates",
                "use `--launch` to check one kernel alone",
            ),
        }
    }

    /// The place that an expression names; `None`: it names none.
    pub(super) fn place_if_any(&mut self, tree: &HostExpr) -> Read<Option<HostPlace>> {
        Ok(match &tree.kind {
            HostExprKind::Name(name) => self.find(name),
            HostExprKind::Index(of, at) => {
                let of = self.value(of)?;
                let index = self.value(at)?;
                if let Some(place) = self.some_element(&of, &index) {
                    return Ok(Some(place));
                }
                let at = self.known(&index, &at.range)?;
                Some(self.element(&of, at, &tree.range)?)
            }
            HostExprKind::Unary("*", of) => {
                let of = self.value(of)?;
                Some(self.element(&of, 0, &tree.range)?)
            }
            HostExprKind::Member(of, name) => self.member_place(of, name)?,
            _ => None,
        })
    }

    /// An element with an unknown number, in memory that only this thread uses. The memory has no
    /// known values behind this. `None`: the memory is another one.
    fn some_element(&mut self, of: &HostValue, at: &HostValue) -> Option<HostPlace> {
        if !matches!(at, HostValue::Unknown | HostValue::Register(..)) {
            return None;
        }
        let HostValue::Pointer(Pointer {
            memory: Some(memory),
            ..
        }) = self.decayed(of.clone())
        else {
            return None;
        };
        // The program that remains has no such write.
        let begun = self.state.begun;
        let object = &mut self.state.memory[memory];
        if begun || object.escapes || !object.allocation.is_pageable() || object.record.is_some() {
            return None;
        }
        object.shadow.fill(None);
        object.initial.fill(None);
        object.open = true;
        let of = HostType::plain(HostBase::Auto);
        Some(HostPlace::Cell(self.cell(HostValue::Unknown, of)))
    }

    pub(super) fn place(&mut self, tree: &HostExpr) -> Read<HostPlace> {
        if let Some(place) = self.place_if_any(tree)? {
            return Ok(place);
        }
        let text = self.code.text.as_str()[tree.range.clone()].to_owned();
        self.wrong(
            &tree.range,
            format!("`{text}` is not followed"),
            "expected a variable, or an element of an array",
            "use `--launch` to check one kernel alone",
        )
    }

    /// Checks an access of the host. Returns the number of the element.
    fn accessed(
        &mut self,
        memory: usize,
        offset: i64,
        element: ElementType,
        range: &Range<usize>,
    ) -> Read<usize> {
        self.alive(memory, range)?;
        let object = &self.state.memory[memory];
        if object.allocation.is_device() {
            let (name, made) = (object.name.clone(), object.range.clone());
            let d = self.code.error(
                "wrong-memory",
                range,
                format!("the host accesses `{name}`, which is memory of the device"),
            );
            let made = self.code.text.span(made);
            return Err(Box::new(
                d.label("expected memory of the host, or managed memory")
                    .also(made, "allocated here")
                    .help("copy it with `cudaMemcpy`, or allocate it with `cudaMallocManaged`"),
            ));
        }
        self.within(memory, offset, element.bytes(), range)?;
        let object = &self.state.memory[memory];
        let cell = object.cell_at(offset);
        if let Some((at, _)) = cell.filter(|(_, own)| own.bytes() == element.bytes()) {
            return Ok(at);
        }
        let message = format!(
            "the elements of `{}` have {} bytes",
            object.name,
            object.element.bytes()
        );
        self.wrong(
            range,
            "the host accesses memory with elements of another size",
            message,
            "use one type for the memory",
        )
    }

    /// Marks the use of memory that was freed before, and ends the following there.
    pub(super) fn alive(&mut self, memory: usize, range: &Range<usize>) -> Read<()> {
        let object = &self.state.memory[memory];
        let Some((freed, by)) = object.freed.clone() else {
            return self.mapped(memory, range);
        };
        // What another thread frees beside this one, the model orders.
        let is_before = by == 0 || by == self.thread || self.state.joined.contains(&(by - 1));
        if !is_before {
            return Ok(());
        }
        let name = object.name.clone();
        self.late_use(&name, &freed, range)
    }

    /// Marks a use of something behind its end, and ends the following of this thread: nothing is
    /// defined from here on.
    pub(super) fn late_use<T>(
        &mut self,
        name: &str,
        ended: &Range<usize>,
        range: &Range<usize>,
    ) -> Read<T> {
        self.emit(format!("ended({name});"), ended);
        self.mark_late_use(name, range);
        self.state.late = true;
        let message = format!("`{name}` is used after its end");
        Err(self.code.error("late-use", range, message))
    }

    /// Adds the mark of a use behind the end.
    pub(super) fn mark_late_use(&mut self, name: &str, range: &Range<usize>) {
        let text = format!("used_after_end({name});");
        self.emit_with(LineEffect::LateUse, text, range);
    }

    /// The end of a following that stops at a late use.
    pub(super) fn unless_late<T>(&mut self, followed: Read<T>, otherwise: T) -> Read<T> {
        match followed {
            Err(_) if std::mem::take(&mut self.state.late) => Ok(otherwise),
            other => other,
        }
    }

    /// Reports bytes outside of memory.
    pub(super) fn within(
        &mut self,
        memory: usize,
        offset: i64,
        bytes: i64,
        range: &Range<usize>,
    ) -> Read<()> {
        let object = &self.state.memory[memory];
        if offset >= 0 && offset + bytes <= object.bytes {
            return Ok(());
        }
        let d = self.code.error(
            "out-of-bounds",
            range,
            format!(
                "bytes {offset} to {} of `{}`, which has {}",
                offset + bytes - 1,
                object.name,
                object.bytes
            ),
        );
        let made = self.code.text.span(object.range.clone());
        Err(Box::new(
            d.label("this is outside of the memory")
                .also(made, "allocated here"),
        ))
    }

    /// `h[3]`, `h[3].key`: a number in memory, as the program that remains names it.
    pub(super) fn named(&self, memory: usize, cell: usize) -> String {
        self.state.memory[memory].path(cell)
    }

    /// `h[3]`: an element, by its offset in bytes.
    pub(super) fn element_named(&self, memory: usize, offset: i64) -> String {
        let object = &self.state.memory[memory];
        format!("{}[{}]", object.name, offset / object.element.bytes())
    }

    /// The value at a place.
    pub(super) fn load(&mut self, place: &HostPlace, range: &Range<usize>) -> Read<HostValue> {
        match place {
            HostPlace::Cell(at) => Ok(self.state.cells[*at].value.clone()),
            HostPlace::Component(at, component) => Ok(match self.state.cells[*at].value {
                HostValue::Dim3(sizes) => HostValue::Int(sizes[*component], Ty::U32),
                _ => HostValue::Unknown,
            }),
            HostPlace::Memory(memory, offset, element) => {
                if let Some(of) = self.record_in(*memory, *offset, *element) {
                    return self.load_record(&of, [*memory as i64, *offset], range);
                }
                let at = self.accessed(*memory, *offset, *element, range)?;
                let object = &self.state.memory[*memory];
                let alone = self.state.is_alone() || !object.escapes;
                let own = object.cell_element(at);
                let known = object.shadow.get(at).filter(|_| alone);
                let text = self.named(*memory, at);
                if let Some(value) = known {
                    // The host may write it before the runtime calls the function.
                    if self.inside {
                        self.read(&text, own, range);
                    }
                    return Ok(number_of(value, own));
                }
                Ok(self.read(&text, own, range))
            }
        }
    }

    /// Emits a read of memory into a register.
    pub(super) fn read(
        &mut self,
        text: &str,
        element: ElementType,
        range: &Range<usize>,
    ) -> HostValue {
        let register = self.register();
        let ty = self.type_text(element);
        self.emit(format!("{ty} {register} = {text};"), range);
        match element.floating {
            true => HostValue::Unknown,
            false => HostValue::Register(register, element.ty),
        }
    }

    /// A type of numbers as the program that remains names it.
    pub(super) fn type_text(&self, element: ElementType) -> String {
        if self.code.dialect != Dialect::OpenCl || element.floating {
            return c_name(element);
        }
        let word = match element.ty.bits {
            8 => "char",
            16 => "short",
            32 => "int",
            _ => "long",
        };
        let sign = if element.ty.signed { "" } else { "u" };
        format!("{sign}{word}")
    }

    /// A register of any value.
    pub(super) fn anything(&mut self, range: &Range<usize>) -> String {
        let known = self.state.memory.iter().position(|m| m.name == ANYTHING);
        let element = element_of(&HostBase::Int(Ty::S32));
        if known.is_none() {
            let at = self.allocate(
                ANYTHING,
                range,
                element,
                element.bytes(),
                AllocatedBy::Variable,
            );
            self.state.memory[at].open = true;
        }
        let register = self.register();
        self.emit(format!("int {register} = {ANYTHING}[0];"), range);
        register
    }

    /// Writes a value to a place.
    pub(super) fn store(
        &mut self,
        place: &HostPlace,
        value: HostValue,
        range: &Range<usize>,
    ) -> Read<()> {
        match place {
            HostPlace::Cell(at) => {
                self.not_shared(*at, range)?;
                let of = self.state.cells[*at].of.clone();
                let value = self.own_copy(value);
                self.state.cells[*at].value = self.converted(value, &of);
                Ok(())
            }
            HostPlace::Component(at, component) => {
                let size = self.known(&value, range)?;
                if let HostValue::Dim3(sizes) = &mut self.state.cells[*at].value {
                    sizes[*component] = size;
                }
                Ok(())
            }
            HostPlace::Memory(memory, offset, element) => {
                if let HostValue::Record(record) = &value
                    && !record.of.cells.is_empty()
                {
                    return self.store_record(record, [*memory as i64, *offset], range);
                }
                let at = self.accessed(*memory, *offset, *element, range)?;
                self.write(*memory, at, &value, range)
            }
        }
    }

    /// Writes an element of memory.
    fn write(
        &mut self,
        memory: usize,
        at: usize,
        value: &HostValue,
        range: &Range<usize>,
    ) -> Read<()> {
        let element = self.state.memory[memory].cell_element(at);
        let bits = bits_of(value, element);
        self.state.memory[memory].shadow.set(at, bits);
        if !self.state.begun {
            self.state.memory[memory].initial.set(at, bits);
            self.state.memory[memory].open |= bits.is_none();
            return Ok(());
        }
        let text = match (bits, value) {
            (Some(bits), _) if element.floating => float_text(bits, element),
            (Some(bits), _) => bits.to_string(),
            (None, HostValue::Register(name, _)) if !element.floating => name.clone(),
            (None, HostValue::Unknown | HostValue::Unset | HostValue::Register(..)) => {
                self.anything(range)
            }
            _ => {
                return self.wrong(
                    range,
                    "this value cannot be kept in memory here",
                    "expected a number",
                    "keep addresses and streams in variables",
                );
            }
        };
        let named = self.named(memory, at);
        let text = format!("{named} = {text};");
        self.emit_with(LineEffect::Write(memory), text, range);
        Ok(())
    }

    /// Ends the life of a variable's memory.
    pub(super) fn end_of_life(&mut self, memory: usize) {
        let range = self.state.memory[memory].range.clone();
        if self.state.memory[memory].freed.is_none() {
            self.free_on_host(memory, &range);
        }
    }

    /// Frees memory as the host does. Commands that access it may still run.
    pub(super) fn free_on_host(&mut self, memory: usize, range: &Range<usize>) {
        let thread = self.thread;
        let object = &mut self.state.memory[memory];
        object.freed = Some((range.clone(), thread));
        if object.escapes {
            let text = format!("end_of_life({});", object.name);
            self.emit(text, range);
        }
    }

    /// A value as a variable of a type has it.
    pub(super) fn converted(&mut self, value: HostValue, of: &HostType) -> HostValue {
        let element = element_of(&of.base);
        if of.pointers > 0 {
            return self.pointer_to(value, of, element);
        }
        match (value, &of.base) {
            (HostValue::Int(n, _), HostBase::Int(ty)) => HostValue::Int(ty.wrap(n), *ty),
            (HostValue::Int(n, _), HostBase::Bool) => HostValue::Int(i64::from(n != 0), Ty::S32),
            (HostValue::Int(n, _), HostBase::Float(bits)) => HostValue::Float(n as f64, *bits),
            (HostValue::Float(n, _), HostBase::Int(ty)) => HostValue::Int(ty.wrap(n as i64), *ty),
            (HostValue::Float(n, _), HostBase::Float(32)) => {
                HostValue::Float(f64::from(n as f32), 32)
            }
            (HostValue::Float(n, _), HostBase::Float(bits)) => HostValue::Float(n, *bits),
            (HostValue::Int(0, _), HostBase::Stream) => {
                HostValue::Stream(super::values::StreamValue::Default)
            }
            (HostValue::Pointer(p), HostBase::Stream) if p.memory.is_none() => {
                HostValue::Stream(super::values::StreamValue::Default)
            }
            (HostValue::Int(n, _), HostBase::Dim3) => HostValue::Dim3([n, 1, 1]),
            (HostValue::Register(..), HostBase::Float(_)) => HostValue::Unknown,
            (value, _) => value,
        }
    }

    /// Whether memory of the heap that has no type yet holds streams, events or addresses.
    fn holds_objects(&self, pointer: &Pointer, of: &HostType) -> bool {
        let objects = matches!(of.base, HostBase::Stream | HostBase::Event) && of.pointers == 1;
        let addresses = of.pointers == 2 && !matches!(of.base, HostBase::Void);
        let fresh = pointer.memory.is_some_and(|memory| {
            let object = &self.state.memory[memory];
            object.allocation == AllocatedBy::Heap && !object.element.said && object.bytes > 0
        });
        (objects || addresses) && fresh && pointer.offset == 0
    }

    /// `(cudaStream_t *)malloc(n * sizeof(cudaStream_t))`: variables in place of memory.
    fn objects_on_heap(&mut self, pointer: &Pointer, of: &HostType) -> HostValue {
        let Some(memory) = pointer.memory else {
            return HostValue::Unset;
        };
        let count = std::mem::take(&mut self.state.memory[memory].bytes) / 8;
        let of = HostType {
            pointers: of.pointers - 1,
            ..of.clone()
        };
        let first = self.state.cells.len();
        for _ in 0..count {
            self.cell(HostValue::Unset, of.clone());
        }
        HostValue::Cell(first)
    }

    fn pointer_to(&mut self, value: HostValue, of: &HostType, element: ElementType) -> HostValue {
        // The type behind the pointer is numbers only with one `*`.
        let element = if of.pointers == 1 { element } else { BYTE };
        let pointer = match value {
            HostValue::Buffer(memory) => Pointer {
                memory: Some(memory),
                offset: 0,
                element: self.state.memory[memory].element,
            },
            HostValue::Cells(first, _) => return HostValue::Cell(first),
            HostValue::Int(0, _) => return null(element),
            HostValue::Pointer(pointer) if self.holds_objects(&pointer, of) => {
                return self.objects_on_heap(&pointer, of);
            }
            HostValue::Pointer(pointer) => pointer,
            other => return other,
        };
        if let Some(memory) = pointer.memory.filter(|_| element.said) {
            let object = &mut self.state.memory[memory];
            if !object.element.said {
                let zeroed = object.initial.begin_with_zero();
                object.element = element;
                object.retyped(zeroed.then_some(0));
                self.settle_type(memory, &of.base);
            }
        }
        HostValue::Pointer(Pointer {
            element: if element.said {
                element
            } else {
                pointer.element
            },
            ..pointer
        })
    }
}

/// The value of bits in memory.
pub(super) fn number_of(bits: i64, element: ElementType) -> HostValue {
    match (element.floating, element.ty.bits) {
        (true, 32) => HostValue::Float(f64::from(f32::from_bits(bits as u32)), 32),
        (true, bits_of) => HostValue::Float(f64::from_bits(bits as u64), bits_of),
        _ => HostValue::Int(bits, element.ty),
    }
}

/// A value as memory has it; `None`: it is not known.
pub(super) fn bits_of(value: &HostValue, element: ElementType) -> Option<i64> {
    match (value, element.floating) {
        (HostValue::Int(n, _), false) => Some(element.ty.wrap(*n)),
        (HostValue::Int(n, _), true) => Some(float_bits(*n as f64, element)),
        (HostValue::Float(n, _), true) => Some(float_bits(*n, element)),
        (HostValue::Float(n, _), false) => Some(element.ty.wrap(*n as i64)),
        _ => None,
    }
}

/// The bits of a number of floating point.
pub(super) fn float_bits(value: f64, element: ElementType) -> i64 {
    match element.ty.bits {
        32 => i64::from((value as f32).to_bits()),
        _ => value.to_bits() as i64,
    }
}

fn float_text(bits: i64, element: ElementType) -> String {
    match element.ty.bits {
        32 => format!("{:?}f", f32::from_bits(bits as u32)),
        _ => format!("{:?}", f64::from_bits(bits as u64)),
    }
}

/// The name of a type in CUDA C++.
pub(super) fn c_name(element: ElementType) -> String {
    match (element.floating, element.ty.bits, element.ty.signed) {
        (true, 32, _) => "float".to_owned(),
        (true, ..) => "double".to_owned(),
        (_, bits, true) => format!("int{bits}_t"),
        (_, bits, false) => format!("uint{bits}_t"),
    }
}
