//! The program IR: threads of micro-ops at places in a scope tree, over named memory.
//!
//! Micro-ops are the contract between the dialects (PTX, OpenCL C, CUDA C++, the `.litmus` files)
//! and their two consumers, the skeleton and the executor. Each dialect lowers an instruction to
//! micro-ops in one place.
//!
//! # Invariants
//! - Everything is resolved: registers, locations and branch targets are indices, valid in their
//!   tables.
//! - A branch target is in `0..=code.len()`; `code.len()` is the end of the thread.
//! - Models see an instruction's order, scope and proxy as [`Tags`] entries from [`tags::TAGS`].
//! - Values are `i64`. A value of type [`Ty`] is kept wrapped to that type by [`Ty::wrap`].

pub mod dialect;
pub mod edits;
mod event;
pub mod extent;
mod float;
mod group_copy;
pub mod host;
mod ids;
mod instr;
mod layout;
pub mod litmus;
mod live;
mod location;
mod machine;
pub mod mbarrier;
pub mod memory;
mod ndrange;
pub mod occupancy;
pub mod options;
mod parts;
mod place;
pub mod points;
mod program;
pub mod progress;
pub mod proxy;
pub mod strength;
pub mod tags;
mod tensor;
mod tile;
mod ty;
pub mod unknown;
mod value;
pub mod waiting;
pub mod words;
pub mod writing;

pub use diag::SourceLine;
pub use dialect::{Dialect, DialectRow, Runtime};
pub use event::{EVENT_SETS, EventKind, KINDS, KindRow};
pub use float::{FloatOp, Format, Fused, NumberType, Rounding};
pub use group_copy::GroupCopy;
pub use ids::{InstrId, LocId, RegId, ThreadId};
pub use instr::{
    ATTENDED, Access, AsmInstr, Attendance, Barrier, BarrierAction, BarrierNaming, Element, Expr,
    Instr, Mark, Op, Update, is_further, is_of_word,
};
pub use layout::{Field, Layout};
pub use live::live_registers;
pub use location::{Class, CopyPer, Init, Location, LocationKind, OpenClMemory, Space};
pub use machine::{ATTRIBUTES, Machine, MemoryKind, SVM_ATOMICS};
pub use ndrange::{NdRange, RangeError, SubGroups, WorkItem};
pub use parts::Parts;
pub use place::{
    GroupKey, GroupRelation, GroupSeat, Place, SCOPE_ROWS, Scope, ScopeRow, SharedNumbers,
};
pub use program::{KernelInstance, Program, Register, Thread};
pub use proxy::Proxy;
pub use tags::{Tag, Tags};
pub use tensor::{COLUMNS, TENSOR_TAGS, TensorPart};
pub use tile::Tile;
pub use ty::Ty;
pub use value::{BinOp, CmpOp};
