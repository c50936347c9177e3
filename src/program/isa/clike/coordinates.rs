//! Where a thread of a kernel stands, by the names that the dialects have for it.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *Built-in Variables*; OpenCL C, *Work-Item Functions*.

use super::ast::Expr as Tree;
use super::eval::Value;
use super::lower::Lowering;
use crate::program::host::{NdRange, WorkItem};
use crate::program::{Dialect, Expr, Ty};

/// The place of a thread in its kernel.
#[derive(Clone, Copy, Debug)]
pub struct Coordinates {
    /// All threads of the kernel.
    pub range: NdRange,
    /// This one.
    pub item: WorkItem,
    /// Threads in a warp.
    pub warp: u32,
}

/// The values that code can name, in that dialect. Those of OpenCL's functions of a dimension are by dimension.
pub fn specials(dialect: Dialect, at: Coordinates) -> Vec<(&'static str, i64)> {
    let Coordinates { range, item, warp } = at;
    let (thread, size, warp) = (item.linear(), item.group_size(), u64::from(warp.max(1)));
    let groups = range.groups();
    let all: Vec<(&'static str, u64)> = match dialect {
        Dialect::Cuda => {
            let axes = |names: [&'static str; 3], of: [u64; 3]| names.into_iter().zip(of);
            axes(["threadIdx.x", "threadIdx.y", "threadIdx.z"], item.local)
                .chain(axes(["blockIdx.x", "blockIdx.y", "blockIdx.z"], item.group))
                .chain(axes(["blockDim.x", "blockDim.y", "blockDim.z"], range.local))
                .chain(axes(["gridDim.x", "gridDim.y", "gridDim.z"], groups))
                .chain([("warpSize", warp)])
                .collect()
        }
        Dialect::OpenCl => {
            let of_dimensions = OF_DIMENSION.iter().flat_map(|(names, _)| {
                let values = match names[0] {
                    "get_global_id" => range.number(&item),
                    "get_local_id" => item.local,
                    "get_group_id" => item.group,
                    "get_global_offset" => range.offset,
                    "get_global_size" => range.global,
                    "get_local_size" => item.size,
                    "get_enqueued_local_size" => range.local,
                    _ => groups,
                };
                names.iter().copied().zip(values)
            });
            let others = [
                ("get_global_linear_id", range.linear(&item)),
                ("get_local_linear_id", thread),
                ("get_work_dim", u64::from(range.dims)),
                ("get_sub_group_id", thread / warp),
                ("get_sub_group_local_id", thread % warp),
                ("get_sub_group_size", warp.min(size - thread / warp * warp)),
                ("get_max_sub_group_size", warp.min(range.local.iter().product())),
                ("get_num_sub_groups", size.div_ceil(warp)),
            ];
            of_dimensions.chain(others).collect()
        }
        _ => Vec::new(),
    };
    all.into_iter().map(|(name, value)| (name, value as i64)).collect()
}

/// OpenCL's functions of a dimension, by dimension, with what they give for one that there is not.
const OF_DIMENSION: &[([&str; 3], i64)] = &[
    (["get_global_id", "get_global_id(1)", "get_global_id(2)"], 0),
    (["get_local_id", "get_local_id(1)", "get_local_id(2)"], 0),
    (["get_group_id", "get_group_id(1)", "get_group_id(2)"], 0),
    (["get_global_offset", "get_global_offset(1)", "get_global_offset(2)"], 0),
    (["get_global_size", "get_global_size(1)", "get_global_size(2)"], 1),
    (["get_local_size", "get_local_size(1)", "get_local_size(2)"], 1),
    (["get_enqueued_local_size", "get_enqueued_local_size(1)", "get_enqueued_local_size(2)"], 1),
    (["get_num_groups", "get_num_groups(1)", "get_num_groups(2)"], 1),
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
        let of_dimension = OF_DIMENSION.iter().find(|f| f.0[0] == name);
        let range = NdRange::row(1, 1);
        let one = WorkItem { group: [0; 3], local: [0; 3], size: [1; 3] };
        let known = |at: Coordinates| specials(Dialect::OpenCl, at).iter().any(|s| s.0 == name);
        if self.env.dialect != Dialect::OpenCl || !known(Coordinates { range, item: one, warp: 1 }) {
            return None;
        }
        let Some(value) = self.special(name) else {
            self.error("unknown-name", &tree.range, format!("`{name}` has no value here"), |d| {
                d.label("only work-items of a `[kernel]` have such values")
            });
            return Some(Value::int(0));
        };
        let Some((names, otherwise)) = of_dimension else {
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
            Some(d @ 0..3) => self.special(names[d as usize]).or(Some(value)),
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
