//! Writes atomic operations, fences and barriers.
//!
//! # Sources
//! - SPIR-V Specification, 3.25, *Memory Semantics*, and 3.27, *Scope*; OpenCL SPIR-V Environment
//!   Specification, *Atomic Instructions*: scopes and orders are those of OpenCL C.

use rspirv::spirv::{MemorySemantics, Op};

use super::kernel::Writer;
use super::refusal::Translated;
use super::types::integer;
use super::values::{SpirvValue, address};

/// The scopes by their numbers.
const SCOPES: [&str; 5] = [
    "memory_scope_all_svm_devices",
    "memory_scope_device",
    "memory_scope_work_group",
    "memory_scope_sub_group",
    "memory_scope_work_item",
];

/// The orders.
const ORDERS: [(MemorySemantics, &str); 4] = [
    (MemorySemantics::ACQUIRE, "memory_order_acquire"),
    (MemorySemantics::RELEASE, "memory_order_release"),
    (MemorySemantics::ACQUIRE_RELEASE, "memory_order_acq_rel"),
    (
        MemorySemantics::SEQUENTIALLY_CONSISTENT,
        "memory_order_seq_cst",
    ),
];

/// The memory that semantics name.
const MEMORY: [(MemorySemantics, &str); 3] = [
    (MemorySemantics::WORKGROUP_MEMORY, "CLK_LOCAL_MEM_FENCE"),
    (
        MemorySemantics::CROSS_WORKGROUP_MEMORY,
        "CLK_GLOBAL_MEM_FENCE",
    ),
    (MemorySemantics::IMAGE_MEMORY, "CLK_IMAGE_MEM_FENCE"),
];

/// Operations that read, compute and write: the function, whether on numbers with a sign, and the
/// operand in place of one in the code.
const UPDATES: &[(Op, &str, bool, Option<&str>)] = &[
    (Op::AtomicExchange, "atomic_exchange", false, None),
    (Op::AtomicIAdd, "atomic_fetch_add", false, None),
    (Op::AtomicISub, "atomic_fetch_sub", false, None),
    (Op::AtomicIIncrement, "atomic_fetch_add", false, Some("1")),
    (Op::AtomicIDecrement, "atomic_fetch_sub", false, Some("1")),
    (Op::AtomicSMin, "atomic_fetch_min", true, None),
    (Op::AtomicUMin, "atomic_fetch_min", false, None),
    (Op::AtomicSMax, "atomic_fetch_max", true, None),
    (Op::AtomicUMax, "atomic_fetch_max", false, None),
    (Op::AtomicAnd, "atomic_fetch_and", false, None),
    (Op::AtomicOr, "atomic_fetch_or", false, None),
    (Op::AtomicXor, "atomic_fetch_xor", false, None),
    (Op::AtomicFAddEXT, "atomic_fetch_add", false, None),
    (Op::AtomicFMinEXT, "atomic_fetch_min", false, None),
    (Op::AtomicFMaxEXT, "atomic_fetch_max", false, None),
];

impl Writer<'_> {
    /// A scope, by the constant that an operand is.
    fn scope(&self, at: usize, operand: usize) -> Translated<&'static str> {
        let number = self.module.constant(self.module.id(at, operand)?);
        match number.and_then(|n| SCOPES.get(n as usize)) {
            Some(scope) => Ok(scope),
            None => {
                let message = format!("operand {} has a scope that OpenCL lacks", operand + 1);
                self.module
                    .fail(at, &message, "expected a constant from 0 to 4")
            }
        }
    }

    /// Memory semantics, by the constant that an operand is.
    fn semantics(&self, at: usize, operand: usize) -> Translated<MemorySemantics> {
        let number = self.module.constant(self.module.id(at, operand)?);
        match number.and_then(|n| MemorySemantics::from_bits(n as u32)) {
            Some(semantics) => Ok(semantics),
            None => {
                let message = format!("operand {} has unknown memory semantics", operand + 1);
                self.module.fail(at, &message, "expected a constant")
            }
        }
    }

    /// The order of semantics.
    fn order(&self, at: usize, semantics: MemorySemantics) -> Translated<&'static str> {
        let others = MemorySemantics::MAKE_AVAILABLE
            | MemorySemantics::MAKE_VISIBLE
            | MemorySemantics::OUTPUT_MEMORY;
        if semantics.intersects(others) {
            return self
                .module
                .refuse(at, "semantics of the Vulkan memory model");
        }
        let all: Vec<&str> = ORDERS
            .iter()
            .filter(|(bit, _)| semantics.contains(*bit))
            .map(|(_, order)| *order)
            .collect();
        match all.as_slice() {
            [] => Ok("memory_order_relaxed"),
            [one] => Ok(one),
            _ => {
                let message = format!("its semantics have {} orders", all.len());
                self.module.fail(at, &message, "expected one")
            }
        }
    }

    /// The flags of the memory that semantics name.
    fn flags(semantics: MemorySemantics) -> String {
        let all: Vec<&str> = MEMORY
            .iter()
            .filter(|(bit, _)| semantics.contains(*bit))
            .map(|(_, flag)| *flag)
            .collect();
        match all.is_empty() {
            true => "0".to_owned(),
            false => all.join(" | "),
        }
    }

    /// The pointer to an atomic object, cast to the type that the function is for.
    fn object(&mut self, at: usize, operand: usize, signed: bool) -> Translated<String> {
        let module = self.module;
        let id = module.id(at, operand)?;
        let (place, ty) = self.place(at, id)?;
        let pointer = address(&place);
        if !signed {
            return Ok(pointer);
        }
        let class = self.pointed(at, module.type_id(at, id)?)?.0;
        let whole = self.pointer_type(at, class, ty)?;
        let bits = self.bits(at, ty)?;
        let ty = whole.replace(
            integer(bits, false),
            &format!("atomic_{}", integer(bits, true)),
        );
        Ok(format!("(volatile {ty}){pointer}"))
    }

    /// The order and the scope of an atomic operation, as arguments.
    fn order_and_scope(&mut self, at: usize, operand: usize) -> Translated<String> {
        let scope = self.scope(at, operand)?;
        let semantics = self.semantics(at, operand + 1)?;
        Ok(format!("{}, {scope}", self.order(at, semantics)?))
    }

    /// Writes an atomic operation, a fence or a barrier; whether it is one.
    pub(super) fn atomic(&mut self, at: usize, op: Op) -> Translated<bool> {
        match op {
            Op::AtomicLoad | Op::AtomicFlagTestAndSet => {
                let (p, how) = (self.object(at, 0, false)?, self.order_and_scope(at, 1)?);
                match op {
                    Op::AtomicLoad => self.set(at, &format!("atomic_load_explicit({p}, {how})"))?,
                    _ => {
                        let call = format!("atomic_flag_test_and_set_explicit({p}, {how})");
                        self.set(at, &call)?;
                    }
                }
            }
            Op::AtomicStore => {
                let (p, how) = (self.object(at, 0, false)?, self.order_and_scope(at, 1)?);
                let value = self.operand(at, 3)?;
                self.emit(at, format!("atomic_store_explicit({p}, {value}, {how});"));
            }
            Op::AtomicFlagClear => {
                let (p, how) = (self.object(at, 0, false)?, self.order_and_scope(at, 1)?);
                self.emit(at, format!("atomic_flag_clear_explicit({p}, {how});"));
            }
            Op::AtomicCompareExchange | Op::AtomicCompareExchangeWeak => {
                self.compare_exchange(at, op)?;
            }
            Op::MemoryBarrier => {
                let (scope, semantics) = (self.scope(at, 0)?, self.semantics(at, 1)?);
                let (flags, order) = (Self::flags(semantics), self.order(at, semantics)?);
                // An order of no memory orders nothing.
                if order != "memory_order_relaxed" && flags != "0" {
                    self.emit(
                        at,
                        format!("atomic_work_item_fence({flags}, {order}, {scope});"),
                    );
                }
            }
            Op::ControlBarrier => self.barrier(at)?,
            op => match UPDATES.iter().find(|row| row.0 == op) {
                Some((_, function, signed, fixed)) => {
                    let (p, how) = (self.object(at, 0, *signed)?, self.order_and_scope(at, 1)?);
                    let value = match fixed {
                        Some(value) => (*value).to_owned(),
                        None => self.operand(at, 3)?,
                    };
                    self.set(at, &format!("{function}_explicit({p}, {value}, {how})"))?;
                }
                None => return Ok(false),
            },
        }
        Ok(true)
    }

    /// The result is the value before, which the function leaves in the expected value.
    fn compare_exchange(&mut self, at: usize, op: Op) -> Translated<()> {
        let module = self.module;
        let p = self.object(at, 0, false)?;
        let scope = self.scope(at, 1)?;
        let equal = self.semantics(at, 2)?;
        let unequal = self.semantics(at, 3)?;
        let (equal, unequal) = (self.order(at, equal)?, self.order(at, unequal)?);
        let (new, expected) = (self.operand(at, 4)?, self.operand(at, 5)?);
        let (id, ty) = (
            module.inst(at).result_id.unwrap_or(0),
            module.inst(at).result_type.unwrap_or(0),
        );
        let name = self.variable(at, id, ty)?;
        self.emit(at, format!("{name} = {expected};"));
        let strength = match op {
            Op::AtomicCompareExchangeWeak => "weak",
            _ => "strong",
        };
        self.emit(
            at,
            format!(
                "atomic_compare_exchange_{strength}_explicit({p}, &{name}, {new}, {equal}, \
                 {unequal}, {scope});"
            ),
        );
        self.bind(id, SpirvValue::Text(name));
        Ok(())
    }

    fn barrier(&mut self, at: usize) -> Translated<()> {
        let function = match self.scope(at, 0)? {
            "memory_scope_work_group" => "work_group_barrier",
            "memory_scope_sub_group" => "sub_group_barrier",
            _ => {
                return self
                    .module
                    .refuse(at, "expected the scope of a work-group or a sub-group");
            }
        };
        let (scope, semantics) = (self.scope(at, 1)?, self.semantics(at, 2)?);
        let flags = match self.order(at, semantics)? {
            "memory_order_relaxed" => "0".to_owned(),
            "memory_order_acq_rel" | "memory_order_seq_cst" => Self::flags(semantics),
            _ => {
                let why = "expected the order `AcquireRelease` or `SequentiallyConsistent`";
                return self.module.refuse(at, why);
            }
        };
        let scope = match flags.as_str() {
            "0" => String::new(),
            _ => format!(", {scope}"),
        };
        self.emit(at, format!("{function}({flags}{scope});"));
        Ok(())
    }
}
