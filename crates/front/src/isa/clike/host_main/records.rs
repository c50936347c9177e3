//! Makes, copies and fills structures of host code, and finds their members.

use std::ops::Range;
use std::rc::Rc;

use super::access::{bits_of, number_of};
use super::machine::{Machine, element_of};
use super::parser::Read;
use super::tree::{HostBase, HostExpr, HostExprKind, HostRecord, HostType, RecordMember};
use super::values::{
    AllocatedBy, ElementType, HostPlace, HostValue, Pointer, RecordValue, zero_of,
};

impl Machine<'_> {
    /// A structure in new variables.
    pub(super) fn new_record(&mut self, of: &Rc<HostRecord>) -> Read<HostValue> {
        let mut values = Vec::new();
        for member in &of.members {
            let (declared, range) = (&member.declared, &member.declared.range);
            values.push(match (member.length, &declared.of.base) {
                (Some(length), _) => {
                    self.array(&declared.name, range, &declared.of, length, false)?
                }
                (None, HostBase::Record(inner)) if declared.of.pointers == 0 => {
                    self.new_record(&inner.clone())?
                }
                (None, HostBase::Dim3) => HostValue::Dim3([1, 1, 1]),
                (None, _) => HostValue::Unset,
            });
        }
        let first = self.state.cells.len();
        for (member, value) in of.members.iter().zip(values) {
            self.cell(value, member.declared.of.clone());
        }
        for (at, member) in of.members.iter().enumerate() {
            if let Some(tree) = &member.declared.value {
                let value = self.value(tree)?;
                self.store(&HostPlace::Cell(first + at), value, &tree.range)?;
            }
        }
        let of = of.clone();
        Ok(HostValue::Record(RecordValue { of, first }))
    }

    /// A structure with listed members; the others are zero.
    pub(super) fn record_of(
        &mut self,
        of: &HostType,
        all: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let HostBase::Record(record) = &of.base else {
            return Ok(HostValue::Unset);
        };
        let made = self.new_record(record)?;
        let HostValue::Record(RecordValue { first, .. }) = &made else {
            return Ok(made);
        };
        self.fill_record(
            record,
            &|_, at| Some(HostPlace::Cell(first + at)),
            all,
            range,
        )?;
        Ok(made)
    }

    /// Writes listed values to the members of a structure.
    fn fill_record(
        &mut self,
        record: &Rc<HostRecord>,
        place: &dyn Fn(&RecordMember, usize) -> Option<HostPlace>,
        all: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<()> {
        for (at, member) in record.members.iter().enumerate() {
            let of = &member.declared.of;
            let Some(place) = place(member, at).filter(|_| member.length.is_none()) else {
                return self.wrong(
                    range,
                    "a list for a structure with arrays is not followed",
                    "expected numbers and addresses",
                    "write member after member",
                );
            };
            let value = match all.get(at).map(|tree| (tree, &tree.kind)) {
                Some((tree, HostExprKind::Braces(inner))) if of.is_record() => {
                    self.record_of(of, &inner.clone(), &tree.range)?
                }
                Some((tree, _)) => self.named_value(tree, &member.declared.name)?,
                None if member.declared.value.is_some() || of.is_record() => continue,
                None => zero_of(of),
            };
            self.store(&place, value, range)?;
        }
        Ok(())
    }

    /// Writes a list to a structure in memory; whether the place is one.
    pub(super) fn stores_list(
        &mut self,
        place: &HostPlace,
        all: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<bool> {
        let record = match place {
            HostPlace::Memory(memory, ..) => self.state.memory[*memory].record.clone(),
            HostPlace::Cell(at) => match &self.state.cells[*at].of {
                of if of.is_record() => {
                    let of = of.clone();
                    let value = self.record_of(&of, all, range)?;
                    self.state.cells[*at].value = value;
                    return Ok(true);
                }
                _ => None,
            },
            HostPlace::Component(..) => None,
        };
        let (Some(record), HostPlace::Memory(memory, offset, element)) = (record, place) else {
            return Ok(false);
        };
        if element.bytes() != record.size {
            return Ok(false);
        }
        let (memory, offset) = (*memory, *offset);
        let place = |member: &RecordMember, _: usize| {
            let element = element_of(&member.declared.of.base);
            Some(HostPlace::Memory(memory, offset + member.offset, element))
        };
        self.fill_record(&record, &place, all, range)?;
        Ok(true)
    }

    /// The place of `of.name` and `of->name`; `None`: it is not followed.
    pub(super) fn member_place(&mut self, of: &HostExpr, name: &str) -> Read<Option<HostPlace>> {
        let place = match self.place_if_any(of)? {
            Some(HostPlace::Cell(at)) => match self.state.cells[at].value.clone() {
                HostValue::Dim3(_) => {
                    let component = ["x", "y", "z"].iter().position(|c| *c == name);
                    return Ok(component.map(|component| HostPlace::Component(at, component)));
                }
                HostValue::Record(record) => return Ok(self.member_of(&record, name)),
                pointer @ (HostValue::Pointer(Pointer {
                    memory: Some(_), ..
                })
                | HostValue::Cell(_)
                | HostValue::Buffer(_)) => self.element(&pointer, 0, &of.range)?,
                _ => return Ok(None),
            },
            Some(place) => place,
            None => return Ok(None),
        };
        Ok(match place {
            HostPlace::Cell(at) => match &self.state.cells[at].value {
                HostValue::Record(record) => self.member_of(record, name),
                HostValue::Dim3(_) => {
                    let component = ["x", "y", "z"].iter().position(|c| *c == name);
                    component.map(|component| HostPlace::Component(at, component))
                }
                _ => None,
            },
            HostPlace::Memory(memory, offset, element) => {
                let (object, size) = (&self.state.memory[memory], element.bytes());
                let inside = offset % object.element.bytes();
                let whole = object.record.clone();
                let of = whole.and_then(|of| HostRecord::record_at(&of, inside, size));
                of.and_then(|of| {
                    let member = &of.members[of.member(name)?];
                    let element = element_of(&member.declared.of.base);
                    Some(HostPlace::Memory(memory, offset + member.offset, element))
                })
            }
            HostPlace::Component(..) => None,
        })
    }

    /// The structure at a place in memory; `None`: a number is there.
    pub(super) fn record_in(
        &self,
        memory: usize,
        offset: i64,
        element: ElementType,
    ) -> Option<Rc<HostRecord>> {
        let object = &self.state.memory[memory];
        let inside = offset.rem_euclid(object.element.bytes());
        let of = HostRecord::record_at(object.record.as_ref()?, inside, element.bytes())?;
        // A structure of one number is that number.
        (of.cells.len() > 1 || of.cells[0].element != element).then_some(of)
    }

    /// Reads a structure in memory, number by number.
    pub(super) fn load_record(
        &mut self,
        of: &Rc<HostRecord>,
        [memory, offset]: [i64; 2],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let memory = memory as usize;
        let made = self.new_record(of)?;
        let HostValue::Record(RecordValue { first, .. }) = &made else {
            return Ok(made);
        };
        for (at, member) in of.members.iter().enumerate() {
            let start = offset + member.offset;
            let value = match (&member.declared.of.base, member.length) {
                (HostBase::Record(inner), None) => {
                    self.load_record(&inner.clone(), [memory as i64, start], range)?
                }
                (_, Some(_)) => {
                    return self.wrong(
                        range,
                        "a copy of a structure with arrays is not followed",
                        "expected numbers",
                        "copy member after member",
                    );
                }
                (base, None) => {
                    let place = HostPlace::Memory(memory, start, element_of(base));
                    self.load(&place, range)?
                }
            };
            self.state.cells[first + at].value = value;
        }
        Ok(made)
    }

    /// Writes a structure to memory, number by number.
    pub(super) fn store_record(
        &mut self,
        record: &RecordValue,
        [memory, offset]: [i64; 2],
        range: &Range<usize>,
    ) -> Read<()> {
        let mut values = Vec::new();
        self.numbers_of(record, &mut values);
        for (cell, value) in record.of.cells.iter().zip(values) {
            let place = HostPlace::Memory(memory as usize, offset + cell.offset, cell.element);
            self.store(&place, value, range)?;
        }
        Ok(())
    }

    /// A value for another variable: a structure is copied.
    pub(super) fn own_copy(&mut self, value: HostValue) -> HostValue {
        let HostValue::Record(RecordValue { of, first }) = value else {
            return value;
        };
        let old: Vec<_> = self.state.cells[first..first + of.members.len()].to_vec();
        let members: Vec<usize> = (first..first + of.members.len()).collect();
        let values: Vec<HostValue> = members
            .into_iter()
            .map(|cell| match self.in_memory(cell) {
                Some((place, range)) => self.load(&place, &range).unwrap_or(HostValue::Unknown),
                None => self.own_copy(self.state.cells[cell].value.clone()),
            })
            .collect();
        let first = self.state.cells.len();
        for (variable, value) in old.into_iter().zip(values) {
            self.cell(value, variable.of);
        }
        HostValue::Record(RecordValue { of, first })
    }

    pub(super) fn member_of(&self, record: &RecordValue, name: &str) -> Option<HostPlace> {
        let cell = record.first + record.of.member(name)?;
        let memory = self.in_memory(cell).map(|(place, _)| place);
        Some(memory.unwrap_or(HostPlace::Cell(cell)))
    }

    /// Lets the numbers of a structure be memory, which other threads of the host may access.
    pub(super) fn members_in_memory(&mut self, record: &RecordValue, name: &str) -> Read<()> {
        for (at, member) in record.of.members.iter().enumerate() {
            let (declared, cell) = (&member.declared, record.first + at);
            let name = format!("{name}_{}", declared.name);
            if let HostValue::Record(inner) = self.state.cells[cell].value.clone() {
                self.members_in_memory(&inner, &name)?;
            }
            if member.length.is_some() || !declared.of.is_number() {
                continue;
            }
            let (range, element) = (declared.range.clone(), element_of(&declared.of.base));
            let bytes = element.bytes();
            let memory = self.allocate(&name, &range, element, bytes, AllocatedBy::Variable);
            self.state.memory[memory].is_member = true;
            let value = HostValue::Buffer(memory);
            let value = std::mem::replace(&mut self.state.cells[cell].value, value);
            if value != HostValue::Unset {
                self.store(&HostPlace::Memory(memory, 0, element), value, &range)?;
            }
        }
        Ok(())
    }

    /// The place of a number of a structure that is memory.
    fn in_memory(&self, cell: usize) -> Option<(HostPlace, Range<usize>)> {
        let variable = &self.state.cells[cell];
        let HostValue::Buffer(memory) = variable.value else {
            return None;
        };
        let object = &self.state.memory[memory];
        let is_number = variable.of.is_number() && object.is_member;
        let place = HostPlace::Memory(memory, 0, object.element);
        is_number.then(|| (place, object.range.clone()))
    }

    /// The memory from which the threads of a launch copy a structure that is handed by value.
    pub(super) fn record_memory(
        &mut self,
        record: &RecordValue,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        if record.of.cells.is_empty() {
            return self.wrong(
                range,
                format!("a `{}` is handed to a kernel by value", record.of.name),
                "only structures of numbers are followed",
                "hand over its addresses as arguments of their own",
            );
        }
        let mut values = Vec::new();
        self.numbers_of(record, &mut values);
        let name = record.of.name.to_lowercase();
        let base = HostBase::Record(record.of.clone());
        let memory = self.allocate_of(&name, range, &base, record.of.size, AllocatedBy::Device);
        let object = &mut self.state.memory[memory];
        for (at, value) in values.iter().enumerate() {
            let bits = bits_of(value, record.of.cells[at].element);
            object.initial.set(at, bits);
            object.open |= bits.is_none();
        }
        Ok(HostValue::Pointer(Pointer {
            memory: Some(memory),
            offset: 0,
            element: ElementType::record(&record.of),
        }))
    }

    /// The numbers of a structure, in order.
    fn numbers_of(&self, record: &RecordValue, all: &mut Vec<HostValue>) {
        for at in 0..record.of.members.len() {
            match &self.state.cells[record.first + at].value {
                HostValue::Record(inner) => self.numbers_of(inner, all),
                HostValue::Buffer(memory) => {
                    let object = &self.state.memory[*memory];
                    let cells = (0..object.cells()).map(|cell| (cell, object.shadow.get(cell)));
                    all.extend(cells.map(|(cell, value)| match value {
                        Some(bits) => number_of(bits, object.cell_element(cell)),
                        None => HostValue::Unknown,
                    }));
                }
                value => all.push(value.clone()),
            }
        }
    }
}
