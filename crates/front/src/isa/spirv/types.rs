//! Writes types of SPIR-V as OpenCL C does.

use rspirv::spirv::StorageClass;

use super::kernel::Writer;
use super::module::SpirvType;
use super::refusal::Translated;

/// The address space that a storage class is, with a blank behind it.
fn space(class: StorageClass) -> Option<&'static str> {
    match class {
        StorageClass::CrossWorkgroup => Some("global "),
        StorageClass::Workgroup => Some("local "),
        StorageClass::UniformConstant => Some("constant "),
        StorageClass::Function | StorageClass::Generic => Some(""),
        _ => None,
    }
}

/// An unsigned integer, or its signed counterpart.
pub(super) fn integer(bits: u32, signed: bool) -> &'static str {
    match (bits, signed) {
        (8, false) => "uchar",
        (8, true) => "char",
        (16, false) => "ushort",
        (16, true) => "short",
        (32, false) => "uint",
        (32, true) => "int",
        (_, false) => "ulong",
        (_, true) => "long",
    }
}

impl Writer<'_> {
    /// The name of a type that no declarator needs to complete.
    pub(super) fn type_name(&mut self, at: usize, id: u32) -> Translated<String> {
        let module = self.module;
        Ok(match module.type_at(at, id)? {
            SpirvType::Void => "void".to_owned(),
            SpirvType::Bool => "bool".to_owned(),
            SpirvType::Int(bits) => integer(*bits, false).to_owned(),
            SpirvType::Float(16) => "half".to_owned(),
            SpirvType::Float(32) => "float".to_owned(),
            SpirvType::Float(_) => "double".to_owned(),
            SpirvType::Event => "event_t".to_owned(),
            SpirvType::Vector(of, n) => format!("{}{n}", self.type_name(at, *of)?),
            SpirvType::Struct(members) => {
                if module.packed.contains(&id) {
                    return module.refuse(at, "a structure without padding");
                }
                self.structure(at, id, members)?;
                format!("struct S{id}")
            }
            SpirvType::Pointer(class, to) => {
                let Some(space) = space(*class) else {
                    let message = format!("pointers to `{class:?}` are not supported");
                    return module.fail(at, &message, "used here");
                };
                match module.type_at(at, *to)? {
                    SpirvType::Array(..) => {
                        let message = "a pointer to an array as a value is not supported";
                        return module.fail(at, message, "expected a pointer to an element");
                    }
                    _ => format!("{space}{} *", self.type_name(at, *to)?),
                }
            }
            SpirvType::Array(..) | SpirvType::Function => {
                return module.fail(at, "an array as a value is not supported", "used here");
            }
        })
    }

    /// The declaration of a name.
    pub(super) fn declared(&mut self, at: usize, id: u32, name: &str) -> Translated<String> {
        let (mut id, mut sizes) = (id, String::new());
        while let SpirvType::Array(of, n) = self.module.type_at(at, id)? {
            sizes += &format!("[{n}]");
            id = *of;
        }
        let ty = self.type_name(at, id)?;
        Ok(format!("{ty} {name}{sizes}"))
    }

    /// Defines a structure, once.
    fn structure(&mut self, at: usize, id: u32, members: &[u32]) -> Translated<()> {
        if self.structures.contains(&id) {
            return Ok(());
        }
        let mut text = format!("struct S{id} {{");
        for (n, member) in members.iter().enumerate() {
            let member = self.declared(at, *member, &format!("m{n}"))?;
            text += &format!(" {member};");
        }
        self.structures.push(id);
        self.outside.push((text + " };", at));
        Ok(())
    }

    /// The bits of an integer or of the elements of a vector of integers.
    pub(super) fn bits(&self, at: usize, ty: u32) -> Translated<u32> {
        match self.module.type_at(at, ty)? {
            SpirvType::Int(bits) => Ok(*bits),
            SpirvType::Vector(of, _) => self.bits(at, *of),
            SpirvType::Bool => Ok(8),
            _ => self.module.fail(at, "expected an integer", "used here"),
        }
    }

    /// A cast to the signed counterpart of the type of a value.
    pub(super) fn signed(&self, at: usize, ty: u32, text: &str) -> Translated<String> {
        let name = integer(self.bits(at, ty)?, true);
        Ok(match self.module.type_at(at, ty)? {
            SpirvType::Vector(_, n) => format!("as_{name}{n}({text})"),
            _ => format!("({name}){text}"),
        })
    }
}
