//! Gives the position of a thread in its kernel under the names that each dialect uses for it.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *Built-in Variables*; OpenCL C, *Work-WorkItem Functions*.

use super::ast::{Expr as Tree, ExprKind};
use super::calls::In;
use super::lower::Lowering;
use super::refused;
use super::types::Value;
use program::{Expr, Init, NdRange, Scope, SubGroups, Ty, WorkItem};

/// The position of a thread in its kernel.
#[derive(Clone, Copy, Debug)]
pub struct Coordinates {
    /// The kernel's index space.
    pub range: NdRange,
    /// The thread's position in that space.
    pub item: WorkItem,
    /// The number of threads in a warp.
    pub warp: u32,
    /// The number of CTAs in a cluster, by dimension.
    pub cluster: [u64; 3],
    /// Which threads share a warp.
    pub mapping: WarpMapping,
}

/// Which work-items of a group share a sub-group. OpenCL leaves it to the implementation: all
/// sub-groups but the last one have the same size (OpenCL API specification, *Execution Model:
/// Mapping work-items onto an ND-range*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WarpMapping {
    /// Those with consecutive linear ids, as in CUDA.
    #[default]
    Consecutive,
    /// A sub-group takes every n-th work-item, where n is the number of sub-groups.
    Strided,
}

impl WarpMapping {
    /// The sub-group of a work-item, by its linear id in the group. Work-items of a sub-group have
    /// the order of their linear ids.
    pub fn sub_group(self, groups: SubGroups, item: u64) -> u64 {
        match self {
            WarpMapping::Consecutive => groups.of(item),
            WarpMapping::Strided => {
                let step = groups.count();
                // In front of it are the items with a smaller remainder.
                let before: u64 = (0..item % step)
                    .map(|rest| (groups.size - rest).div_ceil(step))
                    .sum();
                groups.of(before + item / step)
            }
        }
    }

    /// The place of a work-item in its sub-group.
    fn local_id(self, groups: SubGroups, item: u64) -> u64 {
        let own = self.sub_group(groups, item);
        let before = (0..item).filter(|other| self.sub_group(groups, *other) == own);
        before.count() as u64
    }
}

/// Names of CUDA's variables, by dimension.
const VARIABLES: [[&str; 3]; 4] = [
    ["threadIdx.x", "threadIdx.y", "threadIdx.z"],
    ["blockIdx.x", "blockIdx.y", "blockIdx.z"],
    ["blockDim.x", "blockDim.y", "blockDim.z"],
    ["gridDim.x", "gridDim.y", "gridDim.z"],
];

/// The values of CUDA's variables for one thread.
pub(super) fn of_thread(
    Coordinates {
        range,
        item,
        warp,
        cluster,
        ..
    }: Coordinates,
) -> Vec<(&'static str, u64)> {
    let mut all = Vec::new();
    let values = [item.local, item.group, range.local(), range.groups()];
    for (names, values) in VARIABLES.into_iter().zip(values) {
        all.extend(names.into_iter().zip(values));
    }
    all.push(("warpSize", u64::from(warp)));
    // Ranks count with x fastest. Ranks in the grid count block after block.
    fn size(shape: [u64; 3]) -> u64 {
        shape.iter().product::<u64>()
    }
    fn linear(at: [u64; 3], shape: [u64; 3]) -> u64 {
        at[0] + shape[0] * (at[1] + shape[1] * at[2])
    }
    let in_cluster = [0, 1, 2].map(|d| item.group[d] % cluster[d]);
    let clusters = [0, 1, 2].map(|d| range.groups()[d] / cluster[d]);
    let (rank, threads) = (range.local_linear_id(item), size(range.local()));
    let (block, of_cluster) = (
        linear(item.group, range.groups()),
        linear(in_cluster, cluster),
    );
    let values = [
        rank,
        threads,
        of_cluster * threads + rank,
        size(cluster) * threads,
        of_cluster,
        size(cluster),
        block * threads + rank,
        size(range.groups()) * threads,
        block,
        size(range.groups()),
        linear([0, 1, 2].map(|d| item.group[d] / cluster[d]), clusters),
        size(clusters),
    ];
    all.extend(RANKS.iter().map(|row| row.0).zip(values));
    all
}

/// The functions of thread groups that give a number (CUDA C++ Programming Guide, *Cooperative
/// Groups*). A row has an internal key, the group, the functions and their type.
const RANKS: [(&str, Scope, &[&str], Ty); 12] = [
    ("rank in block", Scope::Cta, &["thread_rank"], Ty::U32),
    (
        "threads of block",
        Scope::Cta,
        &["num_threads", "size"],
        Ty::U32,
    ),
    ("rank in cluster", Scope::Cluster, &["thread_rank"], Ty::U32),
    (
        "threads of cluster",
        Scope::Cluster,
        &["num_threads", "size"],
        Ty::U32,
    ),
    ("block in cluster", Scope::Cluster, &["block_rank"], Ty::U32),
    (
        "blocks of cluster",
        Scope::Cluster,
        &["num_blocks"],
        Ty::U32,
    ),
    ("rank in grid", Scope::Grid, &["thread_rank"], Ty::U64),
    (
        "threads of grid",
        Scope::Grid,
        &["num_threads", "size"],
        Ty::U64,
    ),
    ("block in grid", Scope::Grid, &["block_rank"], Ty::U64),
    ("blocks of grid", Scope::Grid, &["num_blocks"], Ty::U64),
    ("cluster in grid", Scope::Grid, &["cluster_rank"], Ty::U64),
    ("clusters of grid", Scope::Grid, &["num_clusters"], Ty::U64),
];

/// The functions of groups that give three numbers, and the variable with the same numbers.
const SHAPES: [(Scope, &str, &str); 7] = [
    (Scope::Cta, "thread_index", "threadIdx"),
    (Scope::Cta, "group_index", "blockIdx"),
    (Scope::Cta, "dim_threads", "blockDim"),
    (Scope::Cta, "group_dim", "blockDim"),
    (Scope::Grid, "block_index", "blockIdx"),
    (Scope::Grid, "dim_blocks", "gridDim"),
    (Scope::Grid, "group_dim", "gridDim"),
];

/// The names of the group functions that give a thread's position.
pub(super) fn of_groups() -> impl Iterator<Item = &'static str> {
    RANKS
        .iter()
        .flat_map(|row| row.2)
        .copied()
        .chain(SHAPES.iter().map(|row| row.1))
}

/// Whether a group function gives three numbers.
pub(super) fn is_shape(name: &str) -> bool {
    SHAPES.iter().any(|row| row.1 == name)
}

/// The values of OpenCL's work-item functions. A function of a dimension has three entries, one for
/// each dimension.
pub(super) fn of_item(
    Coordinates {
        range,
        item,
        warp,
        mapping,
        ..
    }: Coordinates,
) -> Vec<(&'static str, u64)> {
    let mut all = Vec::new();
    let (size, room) = (range.size(item.group), u64::from(warp));
    let lane = range.local_linear_id(item);
    let here = SubGroups {
        size: size.iter().product(),
        room,
    };
    let full = SubGroups {
        size: range.local().iter().product(),
        room,
    };
    let sub_group = mapping.sub_group(here, lane);
    let of_dimension = [
        range.global_id(item),
        item.local,
        item.group,
        range.offset(),
        range.global(),
        size,
        range.local(),
        range.groups(),
    ];
    for ((name, _), values) in OF_DIMENSION.iter().zip(of_dimension) {
        all.extend(values.map(|value| (*name, value)));
    }
    all.extend([
        ("get_global_linear_id", range.global_linear_id(item)),
        ("get_local_linear_id", lane),
        ("get_work_dim", range.dimensions() as u64),
        ("get_sub_group_id", sub_group),
        ("get_sub_group_local_id", mapping.local_id(here, lane)),
        ("get_sub_group_size", here.members(sub_group)),
        ("get_max_sub_group_size", room.min(full.size)),
        ("get_num_sub_groups", here.count()),
        ("get_enqueued_num_sub_groups", full.count()),
    ]);
    all
}

/// OpenCL's functions of a dimension, and their results for a dimension that no index space has.
const OF_DIMENSION: [(&str, i64); 8] = [
    ("get_global_id", 0),
    ("get_local_id", 0),
    ("get_group_id", 0),
    ("get_global_offset", 0),
    ("get_global_size", 1),
    ("get_local_size", 1),
    ("get_enqueued_local_size", 1),
    ("get_num_groups", 1),
];

/// OpenCL's work-item functions without a dimension.
const OF_ITEM: [&str; 9] = [
    "get_global_linear_id",
    "get_local_linear_id",
    "get_work_dim",
    "get_sub_group_id",
    "get_sub_group_local_id",
    "get_sub_group_size",
    "get_max_sub_group_size",
    "get_num_sub_groups",
    "get_enqueued_num_sub_groups",
];

impl Lowering<'_, '_> {
    /// The value of `threadIdx.x`, `warpSize` and the like; `None`: no such name.
    pub(super) fn special(&self, name: &str) -> Option<Value> {
        self.special_of(name, 0)
    }

    /// The same for one dimension of a function.
    fn special_of(&self, name: &str, dimension: usize) -> Option<Value> {
        let narrow = self.env.language.cpp || name.contains("sub_group") || name == "get_work_dim";
        let ty = if narrow { Ty::U32 } else { Ty::U64 };
        let mut all = self.env.specials.iter().enumerate();
        let (number, (_, value)) = all.by_ref().filter(|(_, s)| s.0 == name).nth(dimension)?;
        let expr = match self.places.get(number) {
            Some(reg) => Expr::Reg(*reg),
            None => Expr::Const(*value),
        };
        Some(Value::of(expr, ty))
    }

    /// Has the values of the thread's place in registers: `threadIdx.x`, `get_global_id.1`.
    pub(super) fn place_registers(&mut self) {
        for (number, (name, value)) in self.env.specials.iter().enumerate() {
            let before = self.env.specials[..number].iter();
            let dimension = before.filter(|s| s.0 == *name).count();
            let full = match OF_DIMENSION.iter().any(|row| row.0 == *name) {
                true => format!("{name}.{dimension}"),
                false => (*name).to_owned(),
            };
            let reg = self.add(&full, Ty::WORD, Init::Int(*value));
            self.places.push(reg);
        }
    }

    /// The result of a group function that gives the thread's position; `None`: no such function,
    /// or not in this group.
    pub(super) fn place_in_group(&self, group: Scope, name: &str) -> Option<Value> {
        let (key, _, _, ty) = RANKS
            .iter()
            .find(|row| row.1 == group && row.2.contains(&name))?;
        Some(Value::of(self.special(key)?.expr, *ty))
    }

    /// `block.thread_index().x`; `None`: the group has no such function.
    fn shape_of_group(&mut self, group: &Tree, name: &str, axis: &str) -> Option<Value> {
        let group = self.group_of(group)?.domain;
        let (_, _, variable) = SHAPES.iter().find(|row| row.0 == group && row.1 == name)?;
        self.special(&format!("{variable}.{axis}"))
    }

    /// `threadIdx.x` and similar members.
    pub(super) fn member(&mut self, tree: &Tree) -> Value {
        // A macro puts space between the words.
        let name: String = self.str(&tree.range).split_whitespace().collect();
        let name = name.as_str();
        if let ExprKind::Field(object, axis) = &tree.kind
            && let ExprKind::Method(group, function, _) = &object.kind
            && let Some(value) = self.shape_of_group(group, self.str(function), self.str(axis))
        {
            return value;
        }
        if let Some(value) = self.special(name) {
            return value;
        }
        if let ExprKind::Field(object, _) = &tree.kind
            && let Some(refused) = refused::word(self.str(&object.range), self.env.language.dialect)
        {
            let span = self.unit.text.span(object.range.clone());
            refused.report(
                self.str(&object.range),
                self.env.language.dialect,
                span,
                self.sink,
            );
            return self.nothing();
        }
        let kernel = !self.env.specials.is_empty();
        let names: Vec<&str> = self.env.specials.iter().map(|s| s.0).collect();
        self.error(
            "unknown-name",
            &tree.range,
            format!("`{name}` has no value here"),
            |d| {
                if kernel {
                    d.label("expected a built-in variable, or a call such as `f.load()`")
                        .did_you_mean(name, names)
                } else {
                    d.label("only threads of a `[kernel]` have such values")
                }
            },
        );
        Value::int(0)
    }

    /// `get_global_id(0)` and the like; `None`: no such function.
    pub(super) fn coordinate(&mut self, tree: &Tree, name: &str, args: &[Tree]) -> Option<Value> {
        let of_dimension = OF_DIMENSION.iter().find(|f| f.0 == name);
        let known = of_dimension.is_some() || OF_ITEM.contains(&name);
        if !self.env.language.functions.contains(&In::OpenCl) || !known {
            return None;
        }
        let Some(value) = self.special(name) else {
            self.error(
                "unknown-name",
                &tree.range,
                format!("`{name}` has no value here"),
                |d| d.label("only work-items of a `[kernel]` have such values"),
            );
            return Some(Value::int(0));
        };
        let Some((_, otherwise)) = of_dimension else {
            if !args.is_empty() {
                self.error(
                    "wrong-operands",
                    &tree.range,
                    format!("`{name}` takes no argument"),
                    |d| d.label(format!("expected `{name}()`")),
                );
            }
            return Some(value);
        };
        let dimension = match args {
            [one] => self.eval(one).constant(),
            _ => None,
        };
        match dimension {
            Some(n) => {
                let here = usize::try_from(n)
                    .ok()
                    .and_then(|n| self.special_of(name, n));
                Some(here.unwrap_or(Value {
                    expr: Expr::Const(*otherwise),
                    ..value
                }))
            }
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
