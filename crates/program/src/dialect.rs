//! Dialects: a table with one row for each language in which tests are written.
//!
//! Code that depends on a dialect reads a word or a capability from its row and never compares
//! dialects. A new dialect then only needs a new row.

use crate::Tag;
use std::fmt;

use crate::Scope;
use crate::strength::ALL_FLAGS;
use crate::words::{ORDERS, Order, PTX_ORDERS};
use crate::writing::{self, Writing};

/// The language in which a test is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// NVIDIA PTX assembly; the dialect of a test that names none.
    #[default]
    Ptx,
    /// CUDA C++ with `cuda::atomic_ref` and friends.
    Cuda,
    /// OpenCL C atomics.
    OpenCl,
    /// SPIR-V/Vulkan in the notation of the published suite.
    Vulkan,
    /// C11 atomics.
    C,
}

/// A level of the scope tree, with the words that a dialect has for it.
#[derive(Debug)]
pub struct ScopeLevel {
    /// The scope that covers exactly one group of this level.
    pub scope: Scope,
    /// The word in messages: `work-group`.
    pub noun: &'static str,
    /// The key in test files: `work_group`.
    pub key: &'static str,
}

/// The runtime that the host code of a program calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Runtime {
    /// The CUDA runtime.
    Cuda,
    /// The OpenCL runtime.
    OpenCl,
}

impl Runtime {
    /// The dialect that the host is written in.
    pub fn dialect(self) -> Dialect {
        match self {
            Runtime::Cuda => Dialect::Cuda,
            Runtime::OpenCl => Dialect::OpenCl,
        }
    }

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Runtime::Cuda => "CUDA",
            Runtime::OpenCl => "OpenCL",
        }
    }
}

/// Which kinds of memory allocation a test of the dialect can declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationKinds {
    /// None.
    Unsaid,
    /// The kinds of memory of CUDA.
    Cuda,
    /// Buffers and shared virtual memory of OpenCL.
    OpenCl,
}

/// Which threads of its group a barrier requires to arrive together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convergence {
    /// No requirement.
    Unasked,
    /// An aligned barrier requires all threads of a warp to execute the same instruction (PTX ISA,
    /// `barrier`).
    Aligned,
    /// All threads of the group must reach the same barrier; else the program is undefined (OpenCL
    /// C, *Synchronization Functions*).
    All,
    /// All threads of the group that have not ended must reach a barrier. The threads of a warp may
    /// call different ones (CUDA Programming Guide, *Synchronization Functions*).
    Running,
}

/// The rules by which the executor's own race detector orders one thread's writes before another
/// thread's reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaceRules {
    /// The release and acquire patterns of PTX and `fence.sc` order. Reductions take no part in
    /// acquire patterns.
    Patterns,
    /// The release sequences of C++.
    Sequences,
}

/// The properties of a dialect.
#[derive(Debug)]
pub struct DialectRow {
    /// The dialect that the row describes.
    pub dialect: Dialect,
    /// The spelling used in test files and messages.
    pub name: &'static str,
    /// A short description for messages.
    pub doc: &'static str,
    /// The model that judges a test by default.
    pub default_model: &'static str,
    /// The families of models that judge only this dialect. A model's family is its name up to the
    /// first `-`.
    pub models: &'static [&'static str],
    /// The prelude of models that declare no free relations.
    pub prelude: &'static str,

    /// The levels of the scope tree that give a thread's place, widest first. Empty if the dialect
    /// has no groups of threads.
    pub levels: &'static [ScopeLevel],
    /// The levels whose groups have progress guarantees, widest first.
    pub progress: &'static [Scope],
    /// All scopes as written in source, narrowest first.
    pub scopes: &'static [(&'static str, Scope)],
    /// The scopes that an atomic access may have, as written in source.
    pub access_scopes: &'static [(&'static str, Scope)],
    /// The memory orders as written in source.
    pub orders: &'static [(&'static str, Order)],
    /// Writes a fence as source text.
    pub fence: fn(order: &str, scope: &str) -> String,
    /// Writes other changed instructions as source text; `None`: messages print the parsed
    /// instructions.
    pub writing: Option<&'static Writing>,
    /// The tags of a fence in addition to the tag of its order.
    pub fence_tags: &'static [Tag],

    /// Whether the dialect has proxies and aliases of locations.
    pub proxies: bool,
    /// Whether accesses that are not strong carry the tag for weak; in other dialects they are
    /// plain.
    pub weak: bool,
    /// Whether accesses, and not only fences, may be sequentially consistent.
    pub sc_accesses: bool,
    /// Whether fences and barriers name the regions of memory that they order.
    pub regions: bool,
    /// Which kinds of memory allocation a test can declare.
    pub allocation: AllocationKinds,
    /// Whether division by zero and similar operations are undefined. Otherwise the type defines
    /// the result.
    pub undefined_division: bool,
    /// Which threads a barrier requires to arrive together.
    pub convergence: Convergence,
    /// The rules of the executor's own race detector; `None`: only the language's memory (`--memory
    /// language`) detects races.
    pub race_rules: Option<RaceRules>,
    /// Whether races are undefined and the program knows which changes repair them.
    pub repairable: bool,
    /// The runtime that host code calls; `None`: the dialect has no host programs.
    pub runtime: Option<Runtime>,
    /// Whether host code is C, whose atomic operations have no scopes.
    pub host_without_scopes: bool,
}

const fn level(scope: Scope, noun: &'static str, key: &'static str) -> ScopeLevel {
    ScopeLevel { scope, noun, key }
}

const CLUSTER: ScopeLevel = level(Scope::Cluster, "cluster", "cluster");
const WARP: ScopeLevel = level(Scope::Warp, "warp", "warp");

/// Scopes of PTX.
pub const PTX_SCOPES: &[(&str, Scope)] = &[
    (".cta", Scope::Cta),
    (".cluster", Scope::Cluster),
    (".gpu", Scope::Gpu),
    (".sys", Scope::Sys),
];

/// Scopes of OpenCL C. The first one is only for image fences.
pub const OPENCL_SCOPES: &[(&str, Scope)] = &[
    ("memory_scope_work_item", Scope::Thread),
    ("memory_scope_sub_group", Scope::Warp),
    ("memory_scope_work_group", Scope::Cta),
    ("memory_scope_device", Scope::Gpu),
    ("memory_scope_all_svm_devices", Scope::Sys),
    ("memory_scope_all_devices", Scope::Sys),
];

/// Scopes of CUDA C++. The cluster scope comes from the compiler's builtins.
pub const CUDA_SCOPES: &[(&str, Scope)] = &[
    ("thread_scope_thread", Scope::Thread),
    ("thread_scope_block", Scope::Cta),
    ("thread_scope_cluster", Scope::Cluster),
    ("thread_scope_device", Scope::Gpu),
    ("thread_scope_system", Scope::Sys),
];

/// C11 lacks all optional capabilities. The other rows start from it and state their additions.
const C: DialectRow = DialectRow {
    dialect: Dialect::C,
    name: "c",
    doc: "C11 atomics",
    default_model: "c11",
    models: &["c11", "rc11"],
    prelude: "total",
    levels: &[],
    progress: &[Scope::Gpu, Scope::Cta],
    scopes: &[],
    access_scopes: &[],
    orders: ORDERS,
    fence: |order, _| format!("atomic_thread_fence({order})"),
    writing: Some(&writing::C),
    fence_tags: &[],
    proxies: false,
    weak: false,
    sc_accesses: true,
    regions: false,
    allocation: AllocationKinds::Unsaid,
    undefined_division: true,
    convergence: Convergence::Unasked,
    race_rules: None,
    repairable: true,
    runtime: None,
    host_without_scopes: false,
};

/// The dialects, in the order of [`Dialect`].
pub static DIALECTS: [DialectRow; 5] = [
    DialectRow {
        dialect: Dialect::Ptx,
        name: "ptx",
        doc: "PTX assembly",
        default_model: "ptx",
        models: &["ptx"],
        prelude: "ptx",
        levels: &[
            level(Scope::Gpu, "GPU", "gpu"),
            CLUSTER,
            level(Scope::Cta, "CTA", "cta"),
            WARP,
        ],
        scopes: PTX_SCOPES,
        access_scopes: PTX_SCOPES,
        orders: PTX_ORDERS,
        fence: |order, scope| format!("fence{order}{scope}"),
        writing: None,
        fence_tags: &[Tag::Generic],
        proxies: true,
        weak: true,
        sc_accesses: false,
        undefined_division: false,
        convergence: Convergence::Aligned,
        race_rules: Some(RaceRules::Patterns),
        repairable: false,
        runtime: Some(Runtime::Cuda),
        ..C
    },
    DialectRow {
        dialect: Dialect::Cuda,
        name: "cuda",
        doc: "CUDA C++",
        default_model: "cuda",
        models: &["cuda"],
        levels: &[
            level(Scope::Gpu, "GPU", "gpu"),
            CLUSTER,
            level(Scope::Cta, "block", "block"),
            WARP,
        ],
        scopes: CUDA_SCOPES,
        access_scopes: CUDA_SCOPES,
        fence: |order, scope| format!("cuda::atomic_thread_fence(cuda::{order}, cuda::{scope})"),
        writing: Some(&writing::CUDA),
        allocation: AllocationKinds::Cuda,
        convergence: Convergence::Running,
        race_rules: Some(RaceRules::Sequences),
        runtime: Some(Runtime::Cuda),
        ..C
    },
    DialectRow {
        dialect: Dialect::OpenCl,
        name: "opencl",
        doc: "OpenCL C",
        default_model: "opencl",
        models: &["opencl"],
        levels: &[
            level(Scope::Gpu, "device", "device"),
            CLUSTER,
            level(Scope::Cta, "work-group", "work_group"),
            level(Scope::Warp, "sub-group", "sub_group"),
        ],
        progress: &[Scope::Gpu, Scope::Cta, Scope::Warp],
        scopes: OPENCL_SCOPES,
        access_scopes: OPENCL_SCOPES.split_at(1).1,
        fence: |order, scope| format!("atomic_work_item_fence({ALL_FLAGS}, {order}, {scope})"),
        writing: Some(&writing::OPENCL),
        fence_tags: &[Tag::Global, Tag::Local],
        regions: true,
        allocation: AllocationKinds::OpenCl,
        convergence: Convergence::All,
        runtime: Some(Runtime::OpenCl),
        host_without_scopes: true,
        ..C
    },
    DialectRow {
        dialect: Dialect::Vulkan,
        name: "vulkan",
        doc: "Vulkan",
        default_model: "vulkan",
        models: &["vulkan"],
        levels: &[
            level(Scope::Gpu, "device", "device"),
            level(Scope::QueueFamily, "queue family", "queue_family"),
            level(Scope::Cta, "workgroup", "workgroup"),
            level(Scope::Warp, "subgroup", "subgroup"),
        ],
        progress: &[Scope::Gpu, Scope::Cta, Scope::Warp],
        writing: None,
        repairable: false,
        ..C
    },
    C,
];

impl Dialect {
    /// The row of the dialect.
    pub const fn row(self) -> &'static DialectRow {
        &DIALECTS[self as usize]
    }

    /// The spelling used in test files and messages.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The model that judges a test of this dialect by default.
    pub fn default_model(self) -> &'static str {
        self.row().default_model
    }

    /// The one dialect that a shipped model judges; `None`: the model judges all dialects.
    pub fn of_model(model: &str) -> Option<Dialect> {
        let family = model.split('-').next().unwrap_or(model);
        DIALECTS
            .iter()
            .find(|row| row.models.contains(&family))
            .map(|row| row.dialect)
    }

    /// All keys that tests use for a thread's group at that level.
    pub fn keys(scope: Scope) -> Vec<&'static str> {
        let mut keys: Vec<&str> = Vec::new();
        for level in DIALECTS
            .iter()
            .flat_map(|row| row.levels)
            .filter(|l| l.scope == scope)
        {
            if !keys.contains(&level.key) {
                keys.push(level.key);
            }
        }
        keys
    }
}

impl DialectRow {
    /// The levels of the scope tree. A dialect without groups gets the default dialect's levels,
    /// because its tests may still place threads in groups.
    pub fn tree(&self) -> &'static [ScopeLevel] {
        if self.levels.is_empty() {
            Dialect::default().row().levels
        } else {
            self.levels
        }
    }

    /// The noun for a group of that level; PTX's noun if the dialect has none.
    pub fn noun(&self, scope: Scope) -> &'static str {
        if scope == Scope::Grid {
            return "grid";
        }
        let mut all = self
            .levels
            .iter()
            .chain(DIALECTS.iter().flat_map(|row| row.levels));
        all.find(|level| level.scope == scope)
            .map_or("system", |level| level.noun)
    }

    /// A scope as written in the dialect; in PTX's spelling if the dialect lacks the scope.
    pub fn scope_word(&self, scope: Scope) -> String {
        let own = self.scopes.iter().find(|s| s.1 == scope);
        own.map_or_else(|| scope.suffix(), |s| s.0.to_owned())
    }

    /// A scope for messages: its word without the prefix that all scopes share.
    pub fn bare_scope(&self, scope: Scope) -> String {
        let word = self.scope_word(scope);
        word.split_once("_scope_")
            .map_or(word.trim_start_matches('.'), |(_, bare)| bare)
            .to_owned()
    }

    /// The scopes that an atomic access may have, narrowest first.
    pub fn choices(&self) -> Vec<Scope> {
        let mut choices: Vec<Scope> = self.access_scopes.iter().map(|s| s.1).collect();
        choices.dedup();
        choices
    }

    /// An order as it is written.
    pub fn order_word(&self, order: Order) -> &'static str {
        self.orders
            .iter()
            .find(|o| o.1 == order)
            .map_or("", |o| o.0)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order() {
        for (number, row) in DIALECTS.iter().enumerate() {
            assert_eq!(row.dialect as usize, number, "{}", row.name);
        }
    }

    #[test]
    fn models_are_of_their_dialect() {
        assert_eq!(Dialect::of_model("ptx-v6.0"), Some(Dialect::Ptx));
        assert_eq!(Dialect::of_model("rc11"), Some(Dialect::C));
        assert_eq!(Dialect::of_model("sc"), None);
        assert!(
            DIALECTS
                .iter()
                .all(|row| Dialect::of_model(row.default_model) == Some(row.dialect))
        );
    }

    #[test]
    fn scopes_have_words() {
        let row = Dialect::OpenCl.row();
        assert_eq!(row.scope_word(Scope::Sys), "memory_scope_all_svm_devices");
        assert_eq!(row.bare_scope(Scope::Sys), "all_svm_devices");
        assert_eq!(Dialect::Ptx.row().bare_scope(Scope::Sys), "sys");
        assert_eq!(
            (row.noun(Scope::Cta), Dialect::C.row().noun(Scope::Cta)),
            ("work-group", "CTA")
        );
        assert_eq!(
            Dialect::keys(Scope::Cta),
            ["cta", "block", "work_group", "workgroup"]
        );
    }
}
