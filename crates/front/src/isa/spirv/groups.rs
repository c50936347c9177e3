//! Writes the functions of work-groups and sub-groups.
//!
//! # Sources
//! - SPIR-V Specification, *Group and Subgroup Instructions*, *Non-Uniform Instructions*; OpenCL C,
//!   *Work-group Collective Functions*, *Sub-group Functions*.

use rspirv::dr::Operand;
use rspirv::spirv::{GroupOperation, Op};

use super::kernel::Writer;
use super::refusal::Translated;

/// Combinations of the values of a group: the word, and whether of numbers with a sign.
const COMBINED: &[(Op, &str, bool)] = &[
    (Op::GroupIAdd, "add", false),
    (Op::GroupFAdd, "add", false),
    (Op::GroupUMin, "min", false),
    (Op::GroupFMin, "min", false),
    (Op::GroupSMin, "min", true),
    (Op::GroupUMax, "max", false),
    (Op::GroupFMax, "max", false),
    (Op::GroupSMax, "max", true),
];

/// Functions of sub-groups with their operands behind the scope.
const OF_SUB_GROUPS: &[(Op, &str)] = &[
    (Op::GroupNonUniformShuffle, "sub_group_shuffle"),
    (Op::GroupNonUniformShuffleXor, "sub_group_shuffle_xor"),
    (Op::GroupNonUniformShuffleUp, "sub_group_shuffle_up"),
    (Op::GroupNonUniformShuffleDown, "sub_group_shuffle_down"),
    (Op::GroupNonUniformRotateKHR, "sub_group_rotate"),
    (Op::GroupNonUniformBallot, "sub_group_ballot"),
];

impl Writer<'_> {
    /// The words with which functions of a group begin.
    fn group_word(&self, at: usize) -> Translated<&'static str> {
        match self.module.constant(self.module.id(at, 0)?) {
            Some(2) => Ok("work_group"),
            Some(3) => Ok("sub_group"),
            _ => self
                .module
                .refuse(at, "expected the scope of a work-group or a sub-group"),
        }
    }

    /// Writes a function of a group; whether it is one.
    pub(super) fn group(&mut self, at: usize, op: Op) -> Translated<bool> {
        let module = self.module;
        match op {
            Op::GroupAll | Op::GroupAny => {
                let group = self.group_word(at)?;
                let value = self.operand(at, 1)?;
                let word = if op == Op::GroupAll { "all" } else { "any" };
                self.set(at, &format!("{group}_{word}({value}) != 0"))?;
            }
            Op::GroupBroadcast => {
                let group = self.group_word(at)?;
                let (value, from) = (self.operand(at, 1)?, self.operand(at, 2)?);
                self.set(at, &format!("{group}_broadcast({value}, {from})"))?;
            }
            Op::GroupAsyncCopy => self.async_copy(at)?,
            Op::GroupWaitEvents => {
                let (count, events) = (self.operand(at, 1)?, self.operand(at, 2)?);
                self.emit(at, format!("wait_group_events({count}, {events});"));
            }
            op => {
                if let Some((_, word, signed)) = COMBINED.iter().find(|row| row.0 == op) {
                    self.combined(at, word, *signed)?;
                } else if let Some((_, name)) = OF_SUB_GROUPS.iter().find(|row| row.0 == op) {
                    if module.constant(module.id(at, 0)?) != Some(3) {
                        return module.refuse(at, "expected the scope of a sub-group");
                    }
                    let mut given = Vec::new();
                    for n in 1..module.inst(at).operands.len() {
                        given.push(self.operand(at, n)?);
                    }
                    self.set(at, &format!("{name}({})", given.join(", ")))?;
                } else {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn combined(&mut self, at: usize, word: &str, signed: bool) -> Translated<()> {
        let module = self.module;
        let group = self.group_word(at)?;
        let kind = match module.inst(at).operands.get(1) {
            Some(Operand::GroupOperation(GroupOperation::Reduce)) => "reduce",
            Some(Operand::GroupOperation(GroupOperation::InclusiveScan)) => "scan_inclusive",
            Some(Operand::GroupOperation(GroupOperation::ExclusiveScan)) => "scan_exclusive",
            _ => return module.refuse(at, "expected a reduction or a scan"),
        };
        let mut value = self.operand(at, 2)?;
        if signed {
            let ty = module.type_id(at, module.id(at, 2)?)?;
            value = self.signed(at, ty, &value)?;
        }
        self.set(at, &format!("{group}_{kind}_{word}({value})"))
    }

    /// `async_work_group_copy`, and with a stride the strided one.
    fn async_copy(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        let (to, from) = (self.operand(at, 1)?, self.operand(at, 2)?);
        let (count, event) = (self.operand(at, 3)?, self.operand(at, 5)?);
        let stride = module.id(at, 4)?;
        match module.constant(stride) {
            Some(1) => {
                let call = format!("async_work_group_copy({to}, {from}, {count}, {event})");
                self.set(at, &call)
            }
            _ => {
                let stride = self.text(at, stride)?;
                self.set(
                    at,
                    &format!(
                        "async_work_group_strided_copy({to}, {from}, {count}, {stride}, {event})"
                    ),
                )
            }
        }
    }
}
