//! Where a thread of a kernel stands, by the names that the dialects have for it.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *Built-in Variables*; OpenCL C, *Work-Item Functions*. A grid has one dimension here.

use super::ast::Expr as Tree;
use super::eval::Value;
use super::lower::Lowering;
use crate::program::{Dialect, Expr, Ty};

/// The place of a thread in its kernel.
#[derive(Clone, Copy, Debug)]
pub struct Coordinates {
    /// Its number in the block.
    pub thread: u32,
    /// Threads in a block.
    pub block: u32,
    /// The number of its block in the grid.
    pub group: u32,
    /// Blocks in the grid.
    pub grid: u32,
    /// Threads in a warp.
    pub warp: u32,
}

/// The values that code can name, in that dialect. OpenCL's functions of a dimension have that of dimension 0.
pub fn specials(dialect: Dialect, at: Coordinates) -> Vec<(&'static str, i64)> {
    let Coordinates { thread, block, group, grid, warp } = at;
    let all: Vec<(&'static str, u32)> = match dialect {
        Dialect::Cuda => vec![
            ("threadIdx.x", thread),
            ("threadIdx.y", 0),
            ("threadIdx.z", 0),
            ("blockIdx.x", group),
            ("blockIdx.y", 0),
            ("blockIdx.z", 0),
            ("blockDim.x", block),
            ("blockDim.y", 1),
            ("blockDim.z", 1),
            ("gridDim.x", grid),
            ("gridDim.y", 1),
            ("gridDim.z", 1),
            ("warpSize", warp),
        ],
        Dialect::OpenCl => vec![
            ("get_global_id", group * block + thread),
            ("get_local_id", thread),
            ("get_group_id", group),
            ("get_global_size", grid * block),
            ("get_local_size", block),
            ("get_enqueued_local_size", block),
            ("get_num_groups", grid),
            ("get_global_offset", 0),
            ("get_global_linear_id", group * block + thread),
            ("get_local_linear_id", thread),
            ("get_work_dim", 1),
            ("get_sub_group_id", thread / warp),
            ("get_sub_group_local_id", thread % warp),
            ("get_sub_group_size", warp.min(block - thread / warp * warp)),
            ("get_max_sub_group_size", warp.min(block)),
            ("get_num_sub_groups", block.div_ceil(warp)),
        ],
        _ => Vec::new(),
    };
    all.into_iter().map(|(name, value)| (name, i64::from(value))).collect()
}

/// OpenCL's functions of a dimension, with what they give for one that the grid does not have.
const OF_DIMENSION: &[(&str, i64)] = &[
    ("get_global_id", 0),
    ("get_local_id", 0),
    ("get_group_id", 0),
    ("get_global_offset", 0),
    ("get_global_size", 1),
    ("get_local_size", 1),
    ("get_enqueued_local_size", 1),
    ("get_num_groups", 1),
];

impl Lowering<'_, '_> {
    /// `threadIdx.x`, `warpSize`: a value of the thread's place, or nothing of that name.
    pub(super) fn special(&self, name: &str) -> Option<Value> {
        let ty = if self.env.dialect == Dialect::Cuda { Ty::U32 } else { Ty::U64 };
        let value = self.env.specials.iter().find(|s| s.0 == name)?.1;
        Some(Value { expr: Expr::Const(value), ty, target: None })
    }

    /// `threadIdx.x` and its like.
    pub(super) fn member(&mut self, tree: &Tree) -> Value {
        let name = self.str(&tree.range);
        if let Some(value) = self.special(name) {
            return value;
        }
        let kernel = !self.env.specials.is_empty();
        let names: Vec<&str> = self.env.specials.iter().map(|s| s.0).collect();
        self.error("unknown-name", &tree.range, format!("`{name}` has no value here"), |d| {
            if kernel {
                d.label("expected a built-in variable, or a call such as `f.load()`").did_you_mean(name, names)
            } else {
                d.label("only threads of a `[kernel]` have such values")
            }
        });
        Value::int(0)
    }

    /// `get_global_id(0)` and its like; `None`: no such function.
    pub(super) fn coordinate(&mut self, tree: &Tree, name: &str, args: &[Tree]) -> Option<Value> {
        let of_dimension = OF_DIMENSION.iter().find(|f| f.0 == name);
        let known = |at: Coordinates| specials(Dialect::OpenCl, at).iter().any(|s| s.0 == name);
        if self.env.dialect != Dialect::OpenCl
            || !known(Coordinates { thread: 0, block: 1, group: 0, grid: 1, warp: 1 })
        {
            return None;
        }
        let Some(value) = self.special(name) else {
            self.error("unknown-name", &tree.range, format!("`{name}` has no value here"), |d| {
                d.label("only work-items of a `[kernel]` have such values")
            });
            return Some(Value::int(0));
        };
        let Some((_, otherwise)) = of_dimension else {
            if !args.is_empty() {
                self.error("wrong-operands", &tree.range, format!("`{name}` takes no argument"), |d| {
                    d.label(format!("expected `{name}()`"))
                });
            }
            return Some(value);
        };
        let dimension = match args {
            [one] => self.eval(one).constant(),
            _ => None,
        };
        match dimension {
            Some(0) => Some(value),
            Some(_) => Some(Value::int(*otherwise)),
            None => {
                self.error(
                    "wrong-operands",
                    &tree.range,
                    format!("`{name}` takes the number of a dimension"),
                    |d| d.label(format!("expected `{name}(0)`")),
                );
                Some(Value::int(0))
            }
        }
    }
}
