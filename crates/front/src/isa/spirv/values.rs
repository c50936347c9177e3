//! Writes operands: constants, variables, and places that pointers lead to.
//!
//! # Invariants
//! - The text of a place names results. A jump that assigns one of them again leads to a block from
//!   which the place is computed again.

use rspirv::dr::Operand;
use rspirv::spirv::{BuiltIn, Op, StorageClass};

use super::kernel::Writer;
use super::module::SpirvType;
use super::refusal::Translated;
use super::types::integer;

/// A result in the code.
#[derive(Clone, Debug)]
pub(super) enum SpirvValue {
    /// An expression without effects.
    Text(String),
    /// A pointer to a place of a type.
    Place(String, u32),
    /// The pointer to a value of another type that another pointer becomes.
    Recast(Box<SpirvValue>, u32),
    /// A number of the work-item in each dimension, or one number.
    Builtin(BuiltIn),
    /// No value.
    Undefined,
}

/// The functions of the numbers of a work-item: with a dimension, or without.
const BUILTINS: &[(BuiltIn, &str, bool)] = &[
    (BuiltIn::GlobalInvocationId, "get_global_id", true),
    (BuiltIn::LocalInvocationId, "get_local_id", true),
    (BuiltIn::WorkgroupId, "get_group_id", true),
    (BuiltIn::NumWorkgroups, "get_num_groups", true),
    (BuiltIn::WorkgroupSize, "get_local_size", true),
    (
        BuiltIn::EnqueuedWorkgroupSize,
        "get_enqueued_local_size",
        true,
    ),
    (BuiltIn::GlobalSize, "get_global_size", true),
    (BuiltIn::GlobalOffset, "get_global_offset", true),
    (BuiltIn::GlobalLinearId, "get_global_linear_id", false),
    (BuiltIn::LocalInvocationIndex, "get_local_linear_id", false),
    (BuiltIn::WorkDim, "get_work_dim", false),
    (BuiltIn::SubgroupSize, "get_sub_group_size", false),
    (BuiltIn::SubgroupMaxSize, "get_max_sub_group_size", false),
    (BuiltIn::NumSubgroups, "get_num_sub_groups", false),
    (
        BuiltIn::NumEnqueuedSubgroups,
        "get_enqueued_num_sub_groups",
        false,
    ),
    (BuiltIn::SubgroupId, "get_sub_group_id", false),
    (
        BuiltIn::SubgroupLocalInvocationId,
        "get_sub_group_local_id",
        false,
    ),
];

/// A number of an unsigned type.
pub(super) fn number(bits: u32, value: u64) -> String {
    match bits {
        8 => format!("(uchar){}", value & 0xff),
        16 => format!("(ushort){}", value & 0xffff),
        32 => format!("{}u", value & 0xffff_ffff),
        _ => format!("{value}ul"),
    }
}

impl Writer<'_> {
    /// The storage class and the type behind a pointer type.
    pub(super) fn pointed(&self, at: usize, ty: u32) -> Translated<(StorageClass, u32)> {
        match self.module.type_at(at, ty)? {
            SpirvType::Pointer(class, to) => Ok((*class, *to)),
            _ => self.module.fail(at, "expected a pointer", "used here"),
        }
    }

    /// The call of the function for a number of the work-item.
    pub(super) fn builtin(&self, at: usize, of: BuiltIn, dimension: u64) -> Translated<String> {
        match BUILTINS.iter().find(|row| row.0 == of) {
            Some((_, name, true)) => Ok(format!("{name}({dimension})")),
            Some((_, name, false)) => Ok(format!("{name}()")),
            None => {
                let message = format!("`BuiltIn {of:?}` is not supported");
                self.module.fail(at, &message, "used here")
            }
        }
    }

    /// Whether a builtin is one number.
    fn is_single(of: BuiltIn) -> bool {
        BUILTINS.iter().any(|row| row.0 == of && !row.2)
    }

    /// The value of an id.
    pub(super) fn value(&mut self, at: usize, id: u32) -> Translated<SpirvValue> {
        if let Some(value) = self.bound(id) {
            return Ok(value.clone());
        }
        let module = self.module;
        let Some((defined, inst)) = module.defined(id) else {
            return module.fail(at, &format!("%{id} is not defined"), "used here");
        };
        match inst.class.opcode {
            Op::Variable => self.variable_outside(defined, id),
            Op::Undef => Ok(SpirvValue::Undefined),
            _ => match self.constant_text(defined)? {
                Some(text) => Ok(SpirvValue::Text(text)),
                None => {
                    let message = format!("%{id} is used before it has a value");
                    module.fail(at, &message, "used here")
                }
            },
        }
    }

    /// A constant as an expression or, of an array or a structure, as an initialiser.
    pub(super) fn constant_text(&mut self, at: usize) -> Translated<Option<String>> {
        let module = self.module;
        let inst = module.inst(at);
        let Some(ty) = inst.result_type else {
            return Ok(None);
        };
        let of = module.type_at(at, ty)?;
        Ok(match (inst.class.opcode, of) {
            (Op::ConstantTrue | Op::SpecConstantTrue, _) => Some("true".to_owned()),
            (Op::ConstantFalse | Op::SpecConstantFalse, _) => Some("false".to_owned()),
            (Op::Constant | Op::SpecConstant, SpirvType::Int(bits)) => {
                Some(number(*bits, module.literal(at, 0)?))
            }
            (Op::Constant | Op::SpecConstant, SpirvType::Float(bits)) => {
                Some(self.float(at, *bits)?)
            }
            (Op::ConstantNull, _) => Some(self.null(at, ty)?),
            (Op::ConstantComposite | Op::SpecConstantComposite, _) => {
                let mut parts = Vec::new();
                for n in 0..inst.operands.len() {
                    let (part, _) = match module.defined(module.id(at, n)?) {
                        Some(found) => found,
                        None => return Ok(None),
                    };
                    match self.constant_text(part)? {
                        Some(text) => parts.push(text),
                        None => return Ok(None),
                    }
                }
                let parts = parts.join(", ");
                Some(match of {
                    SpirvType::Vector(..) => format!("({})({parts})", self.type_name(at, ty)?),
                    _ => format!("{{{parts}}}"),
                })
            }
            _ => None,
        })
    }

    /// A number of floating point, by its bits.
    fn float(&mut self, at: usize, bits: u32) -> Translated<String> {
        let value = self.module.literal(at, 0)?;
        Ok(match bits {
            16 => format!("as_half((ushort){})", value & 0xffff),
            32 => format!("as_float({}u)", value & 0xffff_ffff),
            _ => format!("as_double({value}ul)"),
        })
    }

    /// The zero of a type.
    fn null(&mut self, at: usize, ty: u32) -> Translated<String> {
        let module = self.module;
        Ok(match module.type_at(at, ty)? {
            SpirvType::Bool => "false".to_owned(),
            SpirvType::Int(bits) => number(*bits, 0),
            SpirvType::Float(16) => "as_half((ushort)0)".to_owned(),
            SpirvType::Float(32) => "0.0f".to_owned(),
            SpirvType::Float(_) => "0.0".to_owned(),
            SpirvType::Pointer(..) => "0".to_owned(),
            SpirvType::Vector(of, n) => {
                let one = self.null(at, *of)?;
                let all = vec![one; *n as usize].join(", ");
                format!("({})({all})", self.type_name(at, ty)?)
            }
            SpirvType::Array(of, n) => {
                let one = self.null(at, *of)?;
                format!("{{{}}}", vec![one; *n as usize].join(", "))
            }
            SpirvType::Struct(members) => {
                let mut all = Vec::new();
                for member in members {
                    all.push(self.null(at, *member)?);
                }
                format!("{{{}}}", all.join(", "))
            }
            _ => return module.refuse(at, "a zero of this type"),
        })
    }

    /// A variable outside of all functions.
    fn variable_outside(&mut self, at: usize, id: u32) -> Translated<SpirvValue> {
        let module = self.module;
        if let Some(of) = module.builtins.get(&id) {
            return Ok(SpirvValue::Builtin(*of));
        }
        let inst = module.inst(at);
        let (class, to) = self.pointed(at, inst.result_type.unwrap_or(0))?;
        let short = module.names.get(&id).map(|name| {
            let inner = module
                .kernels
                .iter()
                .find_map(|kernel| name.strip_prefix(kernel.name.as_str())?.strip_prefix('.'));
            inner.unwrap_or(name).to_owned()
        });
        let wanted = short.unwrap_or(format!("v{id}"));
        if class == StorageClass::Workgroup {
            if let Some(name) = self.local.get(&id) {
                return Ok(SpirvValue::Place(name.clone(), to));
            }
            let name = self.fresh(&wanted);
            let text = self.declared(at, to, &name)?;
            self.declare(at, format!("local {text}"));
            self.local.insert(id, name.clone());
            return Ok(SpirvValue::Place(name, to));
        }
        let word = match class {
            StorageClass::CrossWorkgroup => "global",
            StorageClass::UniformConstant => "constant",
            _ => return module.refuse(at, "expected a builtin, or memory of OpenCL"),
        };
        if let Some(name) = self.program_scope.get(&id) {
            return Ok(SpirvValue::Place(name.clone(), to));
        }
        let initial = match inst.operands.get(1) {
            Some(Operand::IdRef(of)) => match module.defined(*of) {
                Some((defined, _)) => match self.constant_text(defined)? {
                    Some(text) => format!(" = {text}"),
                    None => return module.refuse(at, "expected a constant as its initial value"),
                },
                None => return module.fail(at, "its initial value is not defined", "here"),
            },
            _ => String::new(),
        };
        let name = self.fresh(&wanted);
        let text = self.declared(at, to, &name)?;
        self.outside.push((format!("{word} {text}{initial};"), at));
        self.program_scope.insert(id, name.clone());
        Ok(SpirvValue::Place(name, to))
    }

    /// An operand as an expression.
    pub(super) fn operand(&mut self, at: usize, n: usize) -> Translated<String> {
        self.text(at, self.module.id(at, n)?)
    }

    /// A value as an expression.
    pub(super) fn text(&mut self, at: usize, id: u32) -> Translated<String> {
        match self.value(at, id)? {
            SpirvValue::Text(text) => Ok(text),
            SpirvValue::Builtin(of) if Self::is_single(of) => self.builtin(at, of, 0),
            SpirvValue::Builtin(of) => {
                let message = format!("the numbers `{of:?}` as a whole are not supported");
                self.module.fail(at, &message, "expected one component")
            }
            SpirvValue::Undefined => {
                let message = format!("%{id} has no value");
                self.module.fail(at, &message, "the code is undefined here")
            }
            SpirvValue::Place(place, to) => match self.module.type_at(at, to)? {
                SpirvType::Array(..) => {
                    let message = "a pointer to an array as a value is not supported";
                    self.module
                        .fail(at, message, "expected a pointer to an element")
                }
                _ => Ok(address(&place)),
            },
            SpirvValue::Recast(of, to) => {
                let class = self.pointed(at, self.module.type_id(at, id)?)?.0;
                let pointer = self.pointer_text(at, &of)?;
                let ty = self.pointer_type(at, class, to)?;
                Ok(format!("(({ty}){pointer})"))
            }
        }
    }

    /// A pointer type as a cast has it.
    pub(super) fn pointer_type(
        &mut self,
        at: usize,
        class: StorageClass,
        to: u32,
    ) -> Translated<String> {
        let space = match class {
            StorageClass::CrossWorkgroup => "global ",
            StorageClass::Workgroup => "local ",
            StorageClass::UniformConstant => "constant ",
            _ => "",
        };
        Ok(format!("{space}{} *", self.type_name(at, to)?))
    }

    fn pointer_text(&mut self, at: usize, value: &SpirvValue) -> Translated<String> {
        Ok(match value {
            SpirvValue::Text(text) => text.clone(),
            SpirvValue::Place(place, to) => match self.module.type_at(at, *to)? {
                SpirvType::Array(..) => address(&format!("{place}[0]")),
                _ => address(place),
            },
            SpirvValue::Recast(of, _) => self.pointer_text(at, of)?,
            SpirvValue::Builtin(_) | SpirvValue::Undefined => {
                return self.module.fail(at, "expected a pointer", "used here");
            }
        })
    }

    /// The place that a pointer leads to, and its type.
    pub(super) fn place(&mut self, at: usize, id: u32) -> Translated<(String, u32)> {
        let (class, to) = self.pointed(at, self.module.type_id(at, id)?)?;
        match self.value(at, id)? {
            SpirvValue::Place(place, to) => Ok((place, to)),
            SpirvValue::Text(text) => Ok((format!("*{text}"), to)),
            SpirvValue::Recast(of, to) => self.recast_place(at, &of, class, to),
            SpirvValue::Builtin(_) => self.module.fail(at, "a builtin is not memory", "used here"),
            SpirvValue::Undefined => {
                let message = format!("%{id} has no value");
                self.module.fail(at, &message, "the code is undefined here")
            }
        }
    }

    /// The place of another type that a pointer leads to.
    fn recast_place(
        &mut self,
        at: usize,
        of: &SpirvValue,
        class: StorageClass,
        to: u32,
    ) -> Translated<(String, u32)> {
        if let SpirvValue::Place(place, inner) = of {
            // The first part of an object begins where the object does.
            let (mut place, mut inner) = (place.clone(), *inner);
            loop {
                if inner == to {
                    return Ok((place, to));
                }
                match self.module.type_at(at, inner)? {
                    SpirvType::Array(element, _) => {
                        place = format!("{}[0]", in_parentheses(&place));
                        inner = *element;
                    }
                    SpirvType::Struct(members) if !members.is_empty() => {
                        place = format!("{}.m0", in_parentheses(&place));
                        inner = members[0];
                    }
                    _ => break,
                }
            }
        }
        let pointer = self.pointer_text(at, of)?;
        let ty = self.pointer_type(at, class, to)?;
        Ok((format!("*(({ty}){pointer})"), to))
    }

    /// `OpAccessChain` and its like; `element`: the first index is that of `OpPtrAccessChain`.
    pub(super) fn chain(&mut self, at: usize, element: bool) -> Translated<()> {
        let module = self.module;
        let base = module.id(at, 0)?;
        let Some(result) = module.inst(at).result_id else {
            return module.fail(at, "an instruction without a result", "expected one");
        };
        if let SpirvValue::Builtin(of) = self.value(at, base)? {
            let dimension = module.constant(module.id(at, 1)?);
            let Some(dimension) = dimension else {
                return module.refuse(at, "expected a constant dimension");
            };
            let call = self.builtin(at, of, dimension)?;
            self.bind(result, SpirvValue::Text(call));
            return Ok(());
        }
        let count = module.inst(at).operands.len();
        let (place, ty) = self.chain_place(at, element, count)?;
        self.bind(result, SpirvValue::Place(place, ty));
        Ok(())
    }

    /// The place that the first operands of `OpAccessChain` and its like lead to.
    pub(super) fn chain_place(
        &mut self,
        at: usize,
        element: bool,
        count: usize,
    ) -> Translated<(String, u32)> {
        let module = self.module;
        let base = module.id(at, 0)?;
        let (mut place, mut ty) = self.place(at, base)?;
        let mut first = 1;
        if element && count > 1 {
            first = 2;
            let index = module.id(at, 1)?;
            if module.constant(index) != Some(0) {
                let index = self.index(at, index)?;
                place = match place.strip_prefix('*') {
                    Some(pointer) => format!("{pointer}[{index}]"),
                    None => self.beyond(at, &place, &index, ty)?,
                };
            }
        }
        for n in first..count {
            let index = module.id(at, n)?;
            let whole = in_parentheses(&place);
            match module.type_at(at, ty)? {
                SpirvType::Struct(members) => {
                    let member = module.constant(index).map(|n| n as usize);
                    let Some(of) = member.and_then(|n| members.get(n)) else {
                        return module.fail(at, "this structure has no such member", "here");
                    };
                    place = format!("{whole}.m{}", member.unwrap_or(0));
                    ty = *of;
                }
                SpirvType::Array(of, _) => {
                    place = format!("{whole}[{}]", self.index(at, index)?);
                    ty = *of;
                }
                SpirvType::Vector(of, _) => {
                    let Some(component) = module.constant(index).filter(|n| *n < 16) else {
                        return module.refuse(at, "expected a constant component of a vector");
                    };
                    place = format!("{whole}.s{component:x}");
                    ty = *of;
                }
                _ => return module.fail(at, "this has no parts", "expected fewer indices"),
            }
        }
        Ok((place, ty))
    }

    /// The element behind a place.
    fn beyond(&mut self, at: usize, place: &str, index: &str, ty: u32) -> Translated<String> {
        match self.module.type_at(at, ty)? {
            SpirvType::Array(..) => {
                let message = "a place beyond an array is not supported";
                self.module.fail(at, message, "expected an index of 0")
            }
            _ => Ok(format!("*({} + {index})", address(place))),
        }
    }

    /// An index, which has a sign.
    fn index(&mut self, at: usize, id: u32) -> Translated<String> {
        let ty = self.module.type_id(at, id)?;
        let bits = self.bits(at, ty)?;
        if let Some(n) = self.module.constant(id) {
            let shift = 64 - bits;
            return Ok(((n << shift) as i64 >> shift).to_string());
        }
        let text = self.text(at, id)?;
        Ok(match bits {
            64 => text,
            bits => format!("({}){text}", integer(bits, true)),
        })
    }

    /// Stores a value at a place.
    pub(super) fn store(&mut self, at: usize, place: &str, ty: u32, id: u32) -> Translated<()> {
        let module = self.module;
        if let SpirvValue::Undefined = self.value(at, id)? {
            return module.refuse(at, "the value is not defined");
        }
        let null = module.defined(id).is_some_and(|(_, inst)| {
            matches!(
                inst.class.opcode,
                Op::ConstantNull | Op::ConstantComposite | Op::SpecConstantComposite
            )
        });
        match (null, module.type_at(at, ty)?) {
            (true, SpirvType::Array(..) | SpirvType::Struct(_)) => {
                self.store_parts(at, place, ty, id)
            }
            _ => {
                let value = self.text(at, id)?;
                self.emit(at, format!("{place} = {value};"));
                Ok(())
            }
        }
    }

    /// Stores a constant of several parts, one by one.
    fn store_parts(&mut self, at: usize, place: &str, ty: u32, id: u32) -> Translated<()> {
        let module = self.module;
        let parts: Vec<(String, u32)> = self.parts_of(at, place, ty)?;
        let inst = module.defined(id).map(|(defined, _)| defined);
        for (n, (place, ty)) in parts.iter().enumerate() {
            let part = inst.and_then(|defined| module.id(defined, n).ok());
            match part {
                Some(part) => self.store(at, place, *ty, part)?,
                None => match module.type_at(at, *ty)? {
                    SpirvType::Array(..) | SpirvType::Struct(_) => {
                        self.store_parts(at, place, *ty, id)?;
                    }
                    _ => {
                        let zero = self.null(at, *ty)?;
                        self.emit(at, format!("{place} = {zero};"));
                    }
                },
            }
        }
        Ok(())
    }

    /// The parts of a place of an array or a structure.
    fn parts_of(&mut self, at: usize, place: &str, ty: u32) -> Translated<Vec<(String, u32)>> {
        let whole = in_parentheses(place);
        Ok(match self.module.type_at(at, ty)? {
            SpirvType::Array(of, n) => (0..*n).map(|i| (format!("{whole}[{i}]"), *of)).collect(),
            SpirvType::Struct(members) => {
                let all = members.iter().enumerate();
                all.map(|(n, of)| (format!("{whole}.m{n}"), *of)).collect()
            }
            _ => Vec::new(),
        })
    }

    /// Copies an object to another place, part by part.
    pub(super) fn copy(&mut self, at: usize, to: &str, from: &str, ty: u32) -> Translated<()> {
        match self.module.type_at(at, ty)? {
            SpirvType::Array(..) => {
                let (to, from) = (self.parts_of(at, to, ty)?, self.parts_of(at, from, ty)?);
                for ((to, of), (from, _)) in to.iter().zip(&from) {
                    self.copy(at, to, from, *of)?;
                }
            }
            _ => self.emit(at, format!("{to} = {from};")),
        }
        Ok(())
    }
}

/// The address of a place.
pub(super) fn address(place: &str) -> String {
    match place.strip_prefix('*') {
        Some(pointer) => pointer.to_owned(),
        None => format!("&{place}"),
    }
}

/// A place that a member or an index may follow.
pub(super) fn in_parentheses(place: &str) -> String {
    match place.starts_with('*') {
        true => format!("({place})"),
        false => place.to_owned(),
    }
}
