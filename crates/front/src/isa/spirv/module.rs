//! The tables of a module: types, constants, functions with their blocks, kernels.
//!
//! # Invariants
//! - An id has one instruction, and a type refers to types before it. So walks over types end.
//!
//! # Sources
//! - SPIR-V Specification, 2.4, *Logical Layout of a Module*.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode};
use rspirv::spirv::{ExecutionModel, FunctionParameterAttribute, Op, StorageClass};

use super::binary::SpirvText;
use super::refusal::{Refusal, Translated};
use diag::SourceOrigin;

/// The capabilities of modules that are read.
const CAPABILITIES: &[Capability] = &[
    Capability::Addresses,
    Capability::Linkage,
    Capability::Kernel,
    Capability::Matrix,
    Capability::Int8,
    Capability::Int16,
    Capability::Int64,
    Capability::Int64Atomics,
    Capability::Float16,
    Capability::Float16Buffer,
    Capability::Float64,
    Capability::Vector16,
    Capability::Groups,
    Capability::GenericPointer,
    Capability::SubgroupDispatch,
    Capability::GroupNonUniform,
    Capability::GroupNonUniformVote,
    Capability::GroupNonUniformArithmetic,
    Capability::GroupNonUniformBallot,
    Capability::GroupNonUniformShuffle,
    Capability::GroupNonUniformShuffleRelative,
    Capability::GroupNonUniformRotateKHR,
    Capability::AtomicFloat16AddEXT,
    Capability::AtomicFloat32AddEXT,
    Capability::AtomicFloat64AddEXT,
    Capability::AtomicFloat16MinMaxEXT,
    Capability::AtomicFloat32MinMaxEXT,
    Capability::AtomicFloat64MinMaxEXT,
    Capability::OptNoneEXT,
    Capability::ExpectAssumeKHR,
];

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpirvType {
    Void,
    Bool,
    Int(u32),
    Float(u32),
    Vector(u32, u32),
    Array(u32, u64),
    Struct(Vec<u32>),
    Pointer(StorageClass, u32),
    Function,
    /// The event of an asynchronous copy.
    Event,
}

/// A block of a function: its label, and the instructions behind it.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) id: u32,
    pub(super) body: Range<usize>,
}

/// A function.
#[derive(Clone, Debug, Default)]
pub(super) struct SpirvFunction {
    pub(super) at: usize,
    pub(super) params: Vec<usize>,
    pub(super) blocks: Vec<Block>,
}

/// An entry point.
#[derive(Clone, Debug)]
pub(super) struct EntryPoint {
    pub(super) at: usize,
    pub(super) name: String,
    pub(super) function: u32,
    /// The size of its work-groups, if it demands one.
    pub(super) size: Option<[u32; 3]>,
}

/// A module.
#[derive(Debug, Default)]
pub(super) struct SpirvModule {
    pub(super) listed: SpirvText,
    /// The instruction of each id.
    defined: HashMap<u32, usize>,
    pub(super) names: HashMap<u32, String>,
    pub(super) types: HashMap<u32, SpirvType>,
    pub(super) builtins: HashMap<u32, BuiltIn>,
    /// Structures without padding.
    pub(super) packed: Vec<u32>,
    /// Parameters that point to a copy of an argument.
    pub(super) by_value: Vec<u32>,
    pub(super) functions: BTreeMap<u32, SpirvFunction>,
    pub(super) kernels: Vec<EntryPoint>,
    /// The id of `OpenCL.std`.
    pub(super) library: Option<u32>,
    /// The source line of each instruction, by its line in the listing.
    pub(super) origins: BTreeMap<u32, SourceOrigin>,
}

/// The id that an operand is.
pub(super) fn id_of(operand: &Operand) -> Option<u32> {
    match operand {
        Operand::IdRef(id) | Operand::IdScope(id) | Operand::IdMemorySemantics(id) => Some(*id),
        _ => None,
    }
}

impl SpirvModule {
    pub(super) fn of(listed: SpirvText) -> Translated<SpirvModule> {
        let mut module = SpirvModule {
            names: listed.names.clone(),
            listed,
            ..SpirvModule::default()
        };
        for at in 0..module.listed.all.len() {
            module.declare(at)?;
        }
        module.functions()?;
        module.sources();
        Ok(module)
    }

    /// The refusal of an instruction.
    pub(super) fn refuse<T>(&self, at: usize, why: &str) -> Translated<T> {
        let name = format!("`Op{}` is not supported", self.inst(at).class.opname);
        self.fail(at, &name, why)
    }

    /// An error at an instruction.
    pub(super) fn fail<T>(&self, at: usize, message: &str, label: &str) -> Translated<T> {
        Err(Box::new(Refusal {
            at,
            message: message.to_owned(),
            label: label.to_owned(),
        }))
    }

    pub(super) fn inst(&self, at: usize) -> &Instruction {
        &self.listed.all[at]
    }

    /// The instruction with a result.
    pub(super) fn defined(&self, id: u32) -> Option<(usize, &Instruction)> {
        let at = *self.defined.get(&id)?;
        Some((at, self.inst(at)))
    }

    /// The operand of an instruction that is an id.
    pub(super) fn id(&self, at: usize, operand: usize) -> Translated<u32> {
        let found = self.inst(at).operands.get(operand).and_then(id_of);
        match found {
            Some(id) => Ok(id),
            None => self.fail(
                at,
                &format!("operand {} is not an id", operand + 1),
                "expected one",
            ),
        }
    }

    /// A literal number of an instruction.
    pub(super) fn literal(&self, at: usize, operand: usize) -> Translated<u64> {
        match self.inst(at).operands.get(operand) {
            Some(Operand::LiteralBit32(n)) => Ok(u64::from(*n)),
            Some(Operand::LiteralBit64(n)) => Ok(*n),
            _ => self.fail(
                at,
                &format!("operand {} is not a number", operand + 1),
                "expected one",
            ),
        }
    }

    /// The value of a constant integer.
    pub(super) fn constant(&self, id: u32) -> Option<u64> {
        let (_, inst) = self.defined(id)?;
        match (inst.class.opcode, inst.operands.first()) {
            (Op::Constant | Op::SpecConstant, Some(Operand::LiteralBit32(n))) => Some((*n).into()),
            (Op::Constant | Op::SpecConstant, Some(Operand::LiteralBit64(n))) => Some(*n),
            (Op::ConstantNull, _) => Some(0),
            _ => None,
        }
    }

    /// A type.
    pub(super) fn type_at(&self, at: usize, id: u32) -> Translated<&SpirvType> {
        match self.types.get(&id) {
            Some(ty) => Ok(ty),
            None => self.fail(
                at,
                &format!("%{id} is not a type that is read"),
                "used here",
            ),
        }
    }

    /// The id of the type of a value.
    pub(super) fn type_id(&self, at: usize, id: u32) -> Translated<u32> {
        match self.defined(id).and_then(|(_, inst)| inst.result_type) {
            Some(ty) => Ok(ty),
            None => self.fail(at, &format!("%{id} is not a value"), "expected one"),
        }
    }

    /// The type of a value.
    pub(super) fn type_of(&self, at: usize, id: u32) -> Translated<&SpirvType> {
        self.type_at(at, self.type_id(at, id)?)
    }

    /// Enters an instruction into the tables.
    fn declare(&mut self, at: usize) -> Translated<()> {
        let inst = self.inst(at).clone();
        if let Some(id) = inst.result_id
            && self.defined.insert(id, at).is_some()
        {
            return self.fail(
                at,
                &format!("%{id} is defined twice"),
                "expected another id",
            );
        }
        match inst.class.opcode {
            Op::Capability => self.capability(at, &inst)?,
            Op::MemoryModel => {
                if let Some(Operand::AddressingModel(AddressingModel::Logical)) =
                    inst.operands.first()
                {
                    return self.refuse(at, "a shader; kernels of OpenCL are read");
                }
            }
            Op::ExtInstImport => match inst.operands.first() {
                Some(Operand::LiteralString(name)) if name == "OpenCL.std" => {
                    self.library = inst.result_id;
                }
                _ => {}
            },
            Op::EntryPoint => self.entry(at, &inst)?,
            Op::ExecutionMode => self.mode(at, &inst)?,
            Op::Name => {
                if let (Ok(id), Some(Operand::LiteralString(name))) =
                    (self.id(at, 0), inst.operands.get(1))
                {
                    self.names.insert(id, name.clone());
                }
            }
            Op::Decorate => match inst.operands.as_slice() {
                [
                    Operand::IdRef(id),
                    Operand::Decoration(Decoration::BuiltIn),
                    Operand::BuiltIn(of),
                ] => {
                    self.builtins.insert(*id, *of);
                }
                [Operand::IdRef(id), Operand::Decoration(Decoration::CPacked)] => {
                    self.packed.push(*id);
                }
                [
                    Operand::IdRef(id),
                    Operand::Decoration(Decoration::FuncParamAttr),
                    Operand::FunctionParameterAttribute(FunctionParameterAttribute::ByVal),
                ] => {
                    self.by_value.push(*id);
                }
                _ => {}
            },
            _ => self.declare_type(at, &inst)?,
        }
        Ok(())
    }

    fn capability(&self, at: usize, inst: &Instruction) -> Translated<()> {
        match inst.operands.first() {
            Some(Operand::Capability(it)) if !CAPABILITIES.contains(it) => {
                let message = format!("the capability `{it:?}` is not supported");
                self.fail(at, &message, "needed by this module")
            }
            _ => Ok(()),
        }
    }

    fn entry(&mut self, at: usize, inst: &Instruction) -> Translated<()> {
        let [
            Operand::ExecutionModel(model),
            Operand::IdRef(function),
            Operand::LiteralString(name),
            ..,
        ] = inst.operands.as_slice()
        else {
            return self.fail(at, "an entry point without a name", "expected one");
        };
        if *model != ExecutionModel::Kernel {
            return self.refuse(at, "a shader; kernels of OpenCL are read");
        }
        self.kernels.push(EntryPoint {
            at,
            name: name.clone(),
            function: *function,
            size: None,
        });
        Ok(())
    }

    fn mode(&mut self, at: usize, inst: &Instruction) -> Translated<()> {
        let function = self.id(at, 0)?;
        let Some(Operand::ExecutionMode(ExecutionMode::LocalSize)) = inst.operands.get(1) else {
            return Ok(());
        };
        let size = [2, 3, 4].map(|n| self.literal(at, n).unwrap_or(1) as u32);
        let own = self
            .kernels
            .iter_mut()
            .filter(|kernel| kernel.function == function);
        own.for_each(|kernel| kernel.size = Some(size));
        Ok(())
    }

    fn declare_type(&mut self, at: usize, inst: &Instruction) -> Translated<()> {
        let Some(id) = inst.result_id else {
            return match inst.class.opcode {
                Op::TypeForwardPointer => self.refuse(at, "a type that refers to itself"),
                _ => Ok(()),
            };
        };
        let ty = match inst.class.opcode {
            Op::TypeVoid => SpirvType::Void,
            Op::TypeBool => SpirvType::Bool,
            Op::TypeInt => match self.literal(at, 0)? as u32 {
                bits @ (8 | 16 | 32 | 64) => SpirvType::Int(bits),
                bits => return self.refuse(at, &format!("an integer of {bits} bits")),
            },
            Op::TypeFloat => match self.literal(at, 0)? as u32 {
                bits @ (16 | 32 | 64) => SpirvType::Float(bits),
                bits => return self.refuse(at, &format!("a number of {bits} bits")),
            },
            Op::TypeVector => {
                SpirvType::Vector(self.known_type(at, 0)?, self.literal(at, 1)? as u32)
            }
            Op::TypeArray => {
                let length = self.constant(self.id(at, 1)?);
                let Some(length) = length.filter(|n| (1..=1 << 20).contains(n)) else {
                    return self.refuse(at, "expected a size from 1 to 1048576");
                };
                SpirvType::Array(self.known_type(at, 0)?, length)
            }
            Op::TypeStruct => {
                let all = (0..inst.operands.len()).map(|n| self.known_type(at, n));
                SpirvType::Struct(all.collect::<Translated<_>>()?)
            }
            Op::TypePointer => {
                let Some(Operand::StorageClass(class)) = inst.operands.first() else {
                    return self.fail(at, "a pointer without a storage class", "expected one");
                };
                SpirvType::Pointer(*class, self.known_type(at, 1)?)
            }
            Op::TypeFunction => SpirvType::Function,
            Op::TypeEvent => SpirvType::Event,
            op if op.is_type() => return self.refuse(at, "values of this type"),
            _ => return Ok(()),
        };
        self.types.insert(id, ty);
        Ok(())
    }

    /// A type that an earlier instruction made.
    fn known_type(&self, at: usize, operand: usize) -> Translated<u32> {
        let id = self.id(at, operand)?;
        self.type_at(at, id).map(|_| id)
    }

    /// Finds the functions and their blocks.
    fn functions(&mut self) -> Translated<()> {
        let mut open: Option<(u32, SpirvFunction)> = None;
        for at in 0..self.listed.all.len() {
            let inst = self.inst(at);
            let (op, id) = (inst.class.opcode, inst.result_id);
            match (op, &mut open) {
                (Op::Function, None) => {
                    let function = SpirvFunction {
                        at,
                        ..SpirvFunction::default()
                    };
                    open = Some((id.unwrap_or(0), function));
                }
                (Op::Function, Some(_)) => return self.fail(at, "a function in another", "here"),
                (Op::FunctionEnd, Some(_)) => {
                    if let Some((id, function)) = open.take() {
                        self.functions.insert(id, function);
                    }
                }
                (Op::FunctionParameter, Some((_, function))) => function.params.push(at),
                (Op::Label, Some((_, function))) => function.blocks.push(Block {
                    id: id.unwrap_or(0),
                    body: at + 1..at + 1,
                }),
                (_, Some((_, function))) => match function.blocks.last_mut() {
                    Some(block) => block.body.end = at + 1,
                    None if matches!(op, Op::Line | Op::NoLine) => {}
                    None => return self.fail(at, "an instruction outside of a block", "here"),
                },
                (Op::Label | Op::FunctionParameter | Op::FunctionEnd, None) => {
                    return self.fail(at, "this is outside of a function", "here");
                }
                (_, None) => {}
            }
        }
        match open {
            Some((_, function)) => self.fail(function.at, "this function does not end", "here"),
            None => Ok(()),
        }
    }

    /// Finds the source lines of instructions.
    fn sources(&mut self) {
        let mut strings: HashMap<u32, String> = HashMap::new();
        let mut here: Option<SourceOrigin> = None;
        let mut lines = 1;
        let mut from = 0;
        for (at, inst) in self.listed.all.iter().enumerate() {
            let start = self.listed.spans[at].range().start;
            lines += self.listed.text[from..start].matches('\n').count() as u32;
            from = start;
            match (inst.class.opcode, inst.operands.as_slice()) {
                (Op::String, [Operand::LiteralString(text)]) => {
                    strings.insert(inst.result_id.unwrap_or(0), text.clone());
                }
                (Op::Line, [Operand::IdRef(file), Operand::LiteralBit32(line), ..]) => {
                    here = strings.get(file).map(|file| SourceOrigin {
                        file: file.clone(),
                        line: *line,
                        inlined: false,
                    });
                }
                (Op::NoLine | Op::Label | Op::FunctionEnd, _) => here = None,
                _ => {
                    if let Some(here) = &here {
                        self.origins.insert(lines, here.clone());
                    }
                }
            }
        }
    }
}
