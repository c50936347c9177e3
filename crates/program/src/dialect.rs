//! Dialects: the languages in which tests are written, a row each.
//!
//! Who has to know something of a dialect asks its row for a word or a capability, never which
//! dialect it is: what is true of a further one is then said in its row.

use crate::Tag;
use std::fmt;

use crate::Scope;
use crate::strength::ALL_FLAGS;
use crate::tags::scope_suffix;
use crate::words::{CUDA_SCOPES, OPENCL_SCOPES, ORDERS, Order, PTX_ORDERS, PTX_SCOPES};
use crate::writing::{self, Writing};

/// The language in which a test is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// NVIDIA PTX assembly; of tests that name none.
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

/// A level of the scope tree by the words that a dialect has for it.
#[derive(Debug)]
pub struct Level {
    /// The scope that reaches its groups and no further.
    pub scope: Scope,
    /// In text: `work-group`.
    pub noun: &'static str,
    /// As a key of tests: `work_group`.
    pub key: &'static str,
}

/// Whose runtime the host of a program calls.
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

    /// In text.
    pub fn name(self) -> &'static str {
        match self {
            Runtime::Cuda => "CUDA",
            Runtime::OpenCl => "OpenCL",
        }
    }
}

/// What a test may say of who allocated memory, and of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Nothing.
    Unsaid,
    /// The kinds of memory of CUDA.
    Cuda,
    /// Buffers and shared virtual memory of OpenCL.
    OpenCl,
}

/// What a barrier asks of the threads of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convergence {
    /// Nothing.
    Unasked,
    /// That a warp's threads come to the same one, if it is an aligned one (PTX ISA, `barrier`).
    Aligned,
    /// That all come to the same one; else the program is undefined (OpenCL C, *Synchronization
    /// Functions*).
    All,
    /// The same of those that have not ended; a warp's may be different calls (CUDA Programming
    /// Guide, *Synchronization Functions*).
    Running,
}

/// How one thread's writes are ordered before another's reads where the executor looks for races
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaceRules {
    /// By the release and acquire patterns of PTX, of which reductions are no acquiring part, and
    /// by `fence.sc` order.
    Patterns,
    /// By the release sequences of C++.
    Sequences,
}

/// What there is to know of a dialect.
#[derive(Debug)]
pub struct DialectRow {
    /// Whose row it is.
    pub dialect: Dialect,
    /// The spelling used in test files and messages.
    pub name: &'static str,
    /// What it is, in a few words.
    pub doc: &'static str,
    /// The model that judges a test when nobody names one.
    pub default_model: &'static str,
    /// The families of models that judge its tests and no others: what stands before the first `-`
    /// of their names.
    pub models: &'static [&'static str],
    /// The prelude of models that declare no free relations.
    pub prelude: &'static str,

    /// The levels of the scope tree that a thread's place is told by, from the widest; none where
    /// threads are part of nothing.
    pub levels: &'static [Level],
    /// The levels whose groups forward progress is owed to, from the widest.
    pub progress: &'static [Scope],
    /// Scopes as they are written, narrowest first.
    pub scopes: &'static [(&'static str, Scope)],
    /// Those that an atomic access may have.
    pub access_scopes: &'static [(&'static str, Scope)],
    /// Orders as they are written.
    pub orders: &'static [(&'static str, Order)],
    /// A fence as it is written.
    pub fence: fn(order: &str, scope: &str) -> String,
    /// How other changes are written; `None`: instructions are printed.
    pub writing: Option<&'static Writing>,
    /// Tags of a fence besides that of its order.
    pub fence_tags: &'static [Tag],

    /// Memory is accessed through proxies and under several names.
    pub proxies: bool,
    /// Accesses that are not strong are weak, and say so; elsewhere they are plain.
    pub weak: bool,
    /// Accesses may be sequentially consistent, not only fences.
    pub sc_accesses: bool,
    /// Fences and barriers say which regions of memory they concern.
    pub regions: bool,
    /// What may be said of memory and of the machine.
    pub allocation: Allocation,
    /// Division by zero, and the like, is undefined; elsewhere its result is what the type makes
    /// it.
    pub undefined_division: bool,
    /// What a barrier asks of those that meet.
    pub convergence: Convergence,
    /// By which rules the executor looks for races; `None`: only a memory of the language's own
    /// does.
    pub race_rules: Option<RaceRules>,
    /// Races are undefined, and it is known which changes of a program mend them.
    pub repairable: bool,
    /// Whose runtime the host of a program calls; `None`: there are no host programs.
    pub runtime: Option<Runtime>,
    /// The host's code is C, whose atomic operations have no scopes.
    pub host_without_scopes: bool,
}

const fn level(scope: Scope, noun: &'static str, key: &'static str) -> Level {
    Level { scope, noun, key }
}

const CLUSTER: Level = level(Scope::Cluster, "cluster", "cluster");
const WARP: Level = level(Scope::Warp, "warp", "warp");

/// C11, which has nothing that the others need: their rows say what they have besides.
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
    allocation: Allocation::Unsaid,
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
        allocation: Allocation::Cuda,
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
        allocation: Allocation::OpenCl,
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
    /// What there is to know of it.
    pub const fn row(self) -> &'static DialectRow {
        &DIALECTS[self as usize]
    }

    /// The spelling used in test files and messages.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The model that judges a test of this dialect when nobody names one.
    pub fn default_model(self) -> &'static str {
        self.row().default_model
    }

    /// The only dialect whose tests a shipped model judges; `None`: it judges all.
    pub fn of_model(model: &str) -> Option<Dialect> {
        let family = model.split('-').next().unwrap_or(model);
        DIALECTS
            .iter()
            .find(|row| row.models.contains(&family))
            .map(|row| row.dialect)
    }

    /// All keys by which tests say a thread's group at that level.
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
    /// The levels of the scope tree; where threads are part of nothing, those that tests may give
    /// them all the same.
    pub fn tree(&self) -> &'static [Level] {
        if self.levels.is_empty() {
            Dialect::default().row().levels
        } else {
            self.levels
        }
    }

    /// What a group of that level is called; one that the dialect has no word for, as in PTX.
    pub fn noun(&self, scope: Scope) -> &'static str {
        let mut all = self
            .levels
            .iter()
            .chain(DIALECTS.iter().flat_map(|row| row.levels));
        all.find(|level| level.scope == scope)
            .map_or("system", |level| level.noun)
    }

    /// A scope as it is written; one that the dialect does not have, as PTX would write it.
    pub fn scope_word(&self, scope: Scope) -> String {
        let own = self.scopes.iter().find(|s| s.1 == scope);
        own.map_or_else(|| scope_suffix(scope), |s| s.0.to_owned())
    }

    /// A scope in text: its word without what all scopes begin with.
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
