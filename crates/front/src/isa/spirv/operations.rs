//! Writes the computations of SPIR-V, and its plain accesses.
//!
//! # Invariants
//! - Results have unsigned types. An operation on numbers with a sign casts its operands.

use rspirv::dr::Operand;
use rspirv::spirv::{MemoryAccess, Op};

use super::binary::extended;
use super::kernel::Writer;
use super::module::SpirvType;
use super::refusal::Translated;
use super::types::integer;
use super::values::{SpirvValue, in_parentheses};

/// How an operation is written: `{0}` and so on are its operands, `{s0}` with a sign.
const FORMS: &[(Op, &str)] = &[
    (Op::IAdd, "{0} + {1}"),
    (Op::ISub, "{0} - {1}"),
    (Op::IMul, "{0} * {1}"),
    (Op::UDiv, "{0} / {1}"),
    (Op::UMod, "{0} % {1}"),
    (Op::SDiv, "{s0} / {s1}"),
    (Op::SRem, "{s0} % {s1}"),
    (Op::SNegate, "-{0}"),
    (Op::ShiftLeftLogical, "{0} << {1}"),
    (Op::ShiftRightLogical, "{0} >> {1}"),
    (Op::ShiftRightArithmetic, "{s0} >> {1}"),
    (Op::BitwiseAnd, "{0} & {1}"),
    (Op::BitwiseOr, "{0} | {1}"),
    (Op::BitwiseXor, "{0} ^ {1}"),
    (Op::Not, "~{0}"),
    (Op::BitCount, "popcount({0})"),
    (Op::LogicalAnd, "{0} & {1}"),
    (Op::LogicalOr, "{0} | {1}"),
    (Op::LogicalNot, "!{0}"),
    (Op::LogicalEqual, "{0} == {1}"),
    (Op::LogicalNotEqual, "{0} != {1}"),
    (Op::IEqual, "{0} == {1}"),
    (Op::INotEqual, "{0} != {1}"),
    (Op::PtrEqual, "{0} == {1}"),
    (Op::PtrNotEqual, "{0} != {1}"),
    (Op::ULessThan, "{0} < {1}"),
    (Op::ULessThanEqual, "{0} <= {1}"),
    (Op::UGreaterThan, "{0} > {1}"),
    (Op::UGreaterThanEqual, "{0} >= {1}"),
    (Op::SLessThan, "{s0} < {s1}"),
    (Op::SLessThanEqual, "{s0} <= {s1}"),
    (Op::SGreaterThan, "{s0} > {s1}"),
    (Op::SGreaterThanEqual, "{s0} >= {s1}"),
    (Op::FAdd, "{0} + {1}"),
    (Op::FSub, "{0} - {1}"),
    (Op::FMul, "{0} * {1}"),
    (Op::FDiv, "{0} / {1}"),
    (Op::FNegate, "-{0}"),
    (Op::FOrdEqual, "{0} == {1}"),
    (Op::FUnordNotEqual, "{0} != {1}"),
    (Op::FOrdLessThan, "{0} < {1}"),
    (Op::FOrdLessThanEqual, "{0} <= {1}"),
    (Op::FOrdGreaterThan, "{0} > {1}"),
    (Op::FOrdGreaterThanEqual, "{0} >= {1}"),
    (Op::FUnordLessThan, "!({0} >= {1})"),
    (Op::FUnordLessThanEqual, "!({0} > {1})"),
    (Op::FUnordGreaterThan, "!({0} <= {1})"),
    (Op::FUnordGreaterThanEqual, "!({0} < {1})"),
    (Op::FOrdNotEqual, "({0} < {1}) | ({0} > {1})"),
    (Op::FUnordEqual, "!(({0} < {1}) | ({0} > {1}))"),
    (Op::Ordered, "({0} == {0}) & ({1} == {1})"),
    (Op::Unordered, "({0} != {0}) | ({1} != {1})"),
    (Op::IsNan, "{0} != {0}"),
    (Op::UConvert, "{0}"),
    (Op::SConvert, "{s0}"),
    (Op::FConvert, "{0}"),
    (Op::ConvertUToF, "{0}"),
    (Op::ConvertSToF, "{s0}"),
    (Op::CopyObject, "{0}"),
    (Op::ExpectKHR, "{0}"),
];

/// The signs in front of names of `OpenCL.std`, and whether operands have a sign.
const SIGNS: [(&str, bool); 2] = [("s_", true), ("u_", false)];

impl Writer<'_> {
    /// Writes an instruction that does not end a block.
    pub(super) fn instruction(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        let inst = module.inst(at);
        match inst.class.opcode {
            Op::Line
            | Op::NoLine
            | Op::Nop
            | Op::Label
            | Op::Phi
            | Op::SelectionMerge
            | Op::LoopMerge
            | Op::LifetimeStart
            | Op::LifetimeStop
            | Op::AssumeTrueKHR => Ok(()),
            Op::Variable => self.private_variable(at),
            Op::Undef => Ok(()),
            Op::Load => self.load(at),
            Op::Store => {
                self.plain(at, 2)?;
                let (place, ty) = self.place(at, module.id(at, 0)?)?;
                self.store(at, &place, ty, module.id(at, 1)?)
            }
            Op::CopyMemory => {
                self.plain(at, 2)?;
                let (to, ty) = self.place(at, module.id(at, 0)?)?;
                let (from, _) = self.place(at, module.id(at, 1)?)?;
                self.copy(at, &to, &from, ty)
            }
            Op::CopyMemorySized => self.copy_bytes(at),
            Op::AccessChain | Op::InBoundsAccessChain => self.chain(at, false),
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => self.chain(at, true),
            Op::PtrCastToGeneric | Op::GenericCastToPtr => {
                let value = self.value(at, module.id(at, 0)?)?;
                self.bind_result(at, value)
            }
            Op::GenericCastToPtrExplicit => self.convert_space(at),
            Op::Bitcast => self.bitcast(at),
            Op::FunctionCall => self.call(at),
            Op::Select => self.select(at),
            Op::SMod => self.modulo(at),
            Op::ConvertFToU | Op::ConvertFToS | Op::ConvertPtrToU | Op::ConvertUToPtr => {
                self.converted(at, inst.class.opcode)
            }
            Op::ExtInst => self.extended(at),
            Op::CompositeExtract => self.extract(at),
            Op::CompositeInsert => self.insert(at),
            Op::CompositeConstruct => self.construct(at),
            Op::VectorShuffle => self.shuffle(at),
            op if self.atomic(at, op)? || self.group(at, op)? => Ok(()),
            op => match FORMS.iter().find(|form| form.0 == op) {
                Some((_, form)) => self.formed(at, form),
                None => module.refuse(at, "in the code of a kernel"),
            },
        }
    }

    /// Conversions to an integer, and to a pointer.
    fn converted(&mut self, at: usize, op: Op) -> Translated<()> {
        let ty = self.module.inst(at).result_type.unwrap_or(0);
        let value = self.operand(at, 0)?;
        let to = match op {
            Op::ConvertPtrToU => "ulong".to_owned(),
            Op::ConvertUToPtr => {
                let (class, to) = self.pointed(at, ty)?;
                self.pointer_type(at, class, to)?
            }
            op => integer(self.bits(at, ty)?, op == Op::ConvertFToS).to_owned(),
        };
        self.set(at, &format!("({to}){value}"))
    }

    /// Gives the result of an instruction a value that needs no variable.
    fn bind_result(&mut self, at: usize, value: SpirvValue) -> Translated<()> {
        match self.module.inst(at).result_id {
            Some(id) => self.bind(id, value),
            None => {
                return self
                    .module
                    .fail(at, "an instruction without a result", "here");
            }
        }
        Ok(())
    }

    fn formed(&mut self, at: usize, form: &str) -> Translated<()> {
        let module = self.module;
        let mut text = form.to_owned();
        for n in 0..module.inst(at).operands.len() {
            let signed = format!("{{s{n}}}");
            if text.contains(&signed) {
                let id = module.id(at, n)?;
                let (value, ty) = (self.text(at, id)?, module.type_id(at, id)?);
                text = text.replace(&signed, &self.signed(at, ty, &value)?);
            }
            let plain = format!("{{{n}}}");
            if text.contains(&plain) {
                let value = self.operand(at, n)?;
                text = text.replace(&plain, &value);
            }
        }
        self.set(at, &text)
    }

    /// Refuses accesses that are more than plain ones.
    fn plain(&self, at: usize, operand: usize) -> Translated<()> {
        let others = MemoryAccess::all()
            .difference(MemoryAccess::VOLATILE)
            .difference(MemoryAccess::ALIGNED)
            .difference(MemoryAccess::NONTEMPORAL);
        match self.module.inst(at).operands.get(operand) {
            Some(Operand::MemoryAccess(access)) if access.intersects(others) => self
                .module
                .refuse(at, "an access that is made available or visible"),
            _ => Ok(()),
        }
    }

    fn load(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        self.plain(at, 1)?;
        let pointer = module.id(at, 0)?;
        if let SpirvValue::Builtin(of) = self.value(at, pointer)? {
            return self.bind_result(at, SpirvValue::Builtin(of));
        }
        let (place, _) = self.place(at, pointer)?;
        self.set(at, &place)
    }

    /// `OpCopyMemorySized` of a whole object.
    fn copy_bytes(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        let (to, from) = (module.id(at, 0)?, module.id(at, 1)?);
        if let Some(size) = module.constant(module.id(at, 2)?)
            && let Some((to, ty)) = self.object_at(at, to, size)?
            && let Some((from, of)) = self.object_at(at, from, size)?
        {
            let ((to, ty), (from, of)) = (self.only(at, to, ty)?, self.only(at, from, of)?);
            if self.same_shape(at, ty, of)? {
                return self.copy(at, &to, &from, ty);
            }
        }
        module.refuse(at, "expected a copy of a whole object")
    }

    /// The only element of an array of one, or the object itself.
    fn only(&self, at: usize, place: String, ty: u32) -> Translated<(String, u32)> {
        match self.module.type_at(at, ty)? {
            SpirvType::Array(of, 1) => self.only(at, format!("{}[0]", in_parentheses(&place)), *of),
            _ => Ok((place, ty)),
        }
    }

    /// The object of a size that begins where a pointer leads to.
    fn object_at(&mut self, at: usize, id: u32, size: u64) -> Translated<Option<(String, u32)>> {
        let module = self.module;
        let Some((defined, inst)) = module.defined(id) else {
            return module.fail(at, &format!("%{id} is not defined"), "used here");
        };
        match inst.class.opcode {
            Op::Bitcast | Op::PtrCastToGeneric | Op::GenericCastToPtr => {
                self.object_at(at, module.id(defined, 0)?, size)
            }
            Op::AccessChain | Op::InBoundsAccessChain => {
                self.object_around(at, defined, false, size)
            }
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => {
                self.object_around(at, defined, true, size)
            }
            _ => {
                let inner = match self.value(at, id)? {
                    SpirvValue::Recast(of, _) => *of,
                    value => value,
                };
                let (place, ty) = match inner {
                    SpirvValue::Place(place, ty) => (place, ty),
                    _ => self.place(at, id)?,
                };
                Ok((self.size(at, ty)? == size).then_some((place, ty)))
            }
        }
    }

    /// An access chain leads to the first part of an object; returns that object if it has the size.
    fn object_around(
        &mut self,
        at: usize,
        chain: usize,
        element: bool,
        size: u64,
    ) -> Translated<Option<(String, u32)>> {
        let module = self.module;
        for count in (2..=module.inst(chain).operands.len()).rev() {
            let (place, ty) = self.chain_place(chain, element, count)?;
            if self.size(at, ty)? == size {
                return Ok(Some((place, ty)));
            }
            if module.constant(module.id(chain, count - 1)?) != Some(0) {
                return Ok(None);
            }
        }
        self.object_at(at, module.id(chain, 0)?, size)
    }

    /// Whether two types have the same parts.
    fn same_shape(&self, at: usize, a: u32, b: u32) -> Translated<bool> {
        Ok(a == b
            || match (self.module.type_at(at, a)?, self.module.type_at(at, b)?) {
                (SpirvType::Array(a, n), SpirvType::Array(b, m)) => {
                    n == m && self.same_shape(at, *a, *b)?
                }
                (a, b) => a == b,
            })
    }

    /// The size of a type in bytes.
    fn size(&self, at: usize, ty: u32) -> Translated<u64> {
        Ok(self.layout(at, ty)?.0)
    }

    /// The size and the alignment of a type in bytes.
    fn layout(&self, at: usize, ty: u32) -> Translated<(u64, u64)> {
        Ok(match self.module.type_at(at, ty)? {
            SpirvType::Bool => (1, 1),
            SpirvType::Int(bits) | SpirvType::Float(bits) => {
                (u64::from(bits / 8), u64::from(bits / 8))
            }
            SpirvType::Vector(of, n) => {
                let n = if *n == 3 { 4 } else { u64::from(*n) };
                let size = self.size(at, *of)? * n;
                (size, size)
            }
            SpirvType::Array(of, n) => {
                let (size, align) = self.layout(at, *of)?;
                (size * n, align)
            }
            SpirvType::Struct(members) => {
                let (mut size, mut most) = (0u64, 1);
                for member in members {
                    let (own, align) = self.layout(at, *member)?;
                    size = size.next_multiple_of(align) + own;
                    most = most.max(align);
                }
                (size.next_multiple_of(most), most)
            }
            SpirvType::Pointer(..) => (8, 8),
            _ => return self.module.fail(at, "a type without a size", "here"),
        })
    }

    fn bitcast(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        let (from, ty) = (module.id(at, 0)?, module.inst(at).result_type.unwrap_or(0));
        let of = module.type_id(at, from)?;
        match (module.type_at(at, ty)?, module.type_at(at, of)?) {
            (SpirvType::Pointer(_, to), SpirvType::Pointer(..)) => {
                let inner = match self.value(at, from)? {
                    // A pointer in a variable has one type, that of the variable.
                    SpirvValue::Recast(of, _) => of,
                    value => Box::new(value),
                };
                self.bind_result(at, SpirvValue::Recast(inner, *to))
            }
            (SpirvType::Pointer(..), _) | (_, SpirvType::Pointer(..)) => {
                module.refuse(at, "expected two pointers, or two numbers")
            }
            (a, b) if a == b => {
                let value = self.operand(at, 0)?;
                self.set(at, &value)
            }
            _ => {
                let (value, name) = (self.operand(at, 0)?, self.type_name(at, ty)?);
                self.set(at, &format!("as_{name}({value})"))
            }
        }
    }

    /// `to_global` and its like.
    fn convert_space(&mut self, at: usize) -> Translated<()> {
        use rspirv::spirv::StorageClass;
        let module = self.module;
        let (class, _) = self.pointed(at, module.inst(at).result_type.unwrap_or(0))?;
        let name = match class {
            StorageClass::CrossWorkgroup => "to_global",
            StorageClass::Workgroup => "to_local",
            StorageClass::Function => "to_private",
            _ => return module.refuse(at, "expected the space global, local or private"),
        };
        let value = self.operand(at, 0)?;
        self.set(at, &format!("{name}({value})"))
    }

    fn select(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        if let SpirvType::Vector(..) = module.type_of(at, module.id(at, 0)?)? {
            return module.refuse(at, "expected one condition");
        }
        self.formed(at, "{0} ? {1} : {2}")
    }

    /// A remainder with the sign of the divisor.
    fn modulo(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        let ty = module.inst(at).result_type.unwrap_or(0);
        let (a, b) = (self.operand(at, 0)?, self.operand(at, 1)?);
        let (a, b) = (self.signed(at, ty, &a)?, self.signed(at, ty, &b)?);
        let other = format!("(({a} % {b} != 0) & (({a} % {b} < 0) != ({b} < 0)))");
        self.set(at, &format!("{other} ? {a} % {b} + {b} : {a} % {b}"))
    }

    /// An instruction of `OpenCL.std`; those that describe the source do nothing.
    fn extended(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        let inst = module.inst(at);
        let [
            Operand::IdRef(set),
            Operand::LiteralExtInstInteger(number),
            ..,
        ] = inst.operands.as_slice()
        else {
            return module.fail(at, "an instruction without a number", "expected one");
        };
        if Some(*set) != module.library {
            return match module.type_at(at, inst.result_type.unwrap_or(0))? {
                SpirvType::Void => Ok(()),
                _ => module.refuse(at, "expected an instruction of `OpenCL.std`"),
            };
        }
        let name = extended(*number);
        let sign = SIGNS.iter().find_map(|(sign, signed)| {
            name.strip_prefix(sign)
                .map(|rest| (rest.to_owned(), *signed))
        });
        let (function, signed) = sign.unwrap_or((name, false));
        let mut given = Vec::new();
        for n in 2..inst.operands.len() {
            let id = module.id(at, n)?;
            let (text, ty) = (self.text(at, id)?, module.type_id(at, id)?);
            given.push(match signed {
                true => self.signed(at, ty, &text)?,
                false => text,
            });
        }
        self.set(at, &format!("{function}({})", given.join(", ")))
    }

    /// The literal indices of an instruction, from an operand on.
    fn literals(&self, at: usize, from: usize) -> Translated<Vec<u64>> {
        let count = self.module.inst(at).operands.len();
        (from..count).map(|n| self.module.literal(at, n)).collect()
    }

    /// The part of a value that indices lead to.
    fn part(&self, at: usize, whole: &str, ty: u32, indices: &[u64]) -> Translated<String> {
        let (mut text, mut ty) = (whole.to_owned(), ty);
        for index in indices {
            ty = match self.module.type_at(at, ty)? {
                SpirvType::Vector(of, n) if *index < u64::from(*n) => {
                    text += &format!(".s{index:x}");
                    *of
                }
                SpirvType::Struct(members) if (*index as usize) < members.len() => {
                    text += &format!(".m{index}");
                    members[*index as usize]
                }
                SpirvType::Array(of, n) if index < n => {
                    text += &format!("[{index}]");
                    *of
                }
                _ => return self.module.fail(at, "there is no such part", "here"),
            };
        }
        Ok(text)
    }

    fn extract(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        let (whole, indices) = (module.id(at, 0)?, self.literals(at, 1)?);
        if let SpirvValue::Builtin(of) = self.value(at, whole)? {
            let call = self.builtin(at, of, indices.first().copied().unwrap_or(0))?;
            return self.bind_result(at, SpirvValue::Text(call));
        }
        let (text, ty) = (self.text(at, whole)?, module.type_id(at, whole)?);
        let part = self.part(at, &text, ty, &indices)?;
        self.set(at, &part)
    }

    fn insert(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        let (object, whole) = (self.operand(at, 0)?, module.id(at, 1)?);
        let ty = module.inst(at).result_type.unwrap_or(0);
        let indices = self.literals(at, 2)?;
        let id = module.inst(at).result_id.unwrap_or(0);
        let name = self.variable(at, id, ty)?;
        let known = match self.value(at, whole)? {
            SpirvValue::Undefined => false,
            _ => {
                let before = self.text(at, whole)?;
                self.emit(at, format!("{name} = {before};"));
                true
            }
        };
        // Parts that no instruction gives a value are read by none in code that is defined.
        if !known && indices.len() > 1 {
            return module.refuse(at, "the value before is not defined");
        }
        let part = self.part(at, &name, ty, &indices)?;
        self.emit(at, format!("{part} = {object};"));
        self.bind(id, SpirvValue::Text(name));
        Ok(())
    }

    fn construct(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        let ty = module.inst(at).result_type.unwrap_or(0);
        let mut parts = Vec::new();
        for n in 0..module.inst(at).operands.len() {
            parts.push(self.operand(at, n)?);
        }
        if let SpirvType::Vector(..) = module.type_at(at, ty)? {
            let name = self.type_name(at, ty)?;
            return self.set(at, &format!("({name})({})", parts.join(", ")));
        }
        let id = module.inst(at).result_id.unwrap_or(0);
        let name = self.variable(at, id, ty)?;
        for (n, value) in parts.iter().enumerate() {
            let part = self.part(at, &name, ty, &[n as u64])?;
            self.emit(at, format!("{part} = {value};"));
        }
        self.bind(id, SpirvValue::Text(name));
        Ok(())
    }

    fn shuffle(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        let ty = module.inst(at).result_type.unwrap_or(0);
        let (first, second) = (module.id(at, 0)?, module.id(at, 1)?);
        let SpirvType::Vector(_, n) = module.type_of(at, first)? else {
            return module.fail(at, "expected a vector", "here");
        };
        let mut parts = Vec::new();
        for index in self.literals(at, 2)? {
            let (of, component) = match index < u64::from(*n) {
                true => (first, index),
                false => (second, index - u64::from(*n)),
            };
            if index == u64::from(u32::MAX) {
                return module.refuse(at, "a component is not defined");
            }
            let (text, ty) = (self.text(at, of)?, module.type_id(at, of)?);
            parts.push(self.part(at, &text, ty, &[component])?);
        }
        let name = self.type_name(at, ty)?;
        self.set(at, &format!("({name})({})", parts.join(", ")))
    }
}
