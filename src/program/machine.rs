//! The machine of a test, and who allocated its memory: what decides whether an operation of system scope is atomic.
//!
//! Facts only; the rule is in the text of the model.
//!
//! # Sources
//! - libcu++, *Memory model*, Atomicity; CUDA Runtime API, `cudaDeviceProp`, `cudaDeviceGetP2PAttribute`.

/// Who allocated an object, which decides what is atomic at system scope (libcu++, *Memory model*, Atomicity).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Managed memory; also what no test says anything about.
    #[default]
    Managed,
    /// Mapped (pinned, zero-copy) memory of the host.
    Mapped,
    /// System-allocated (pageable) memory.
    System,
    /// System-allocated memory that maps a file or is of a huge-page file system.
    File,
    /// Memory of that GPU.
    Device(u32),
    /// On chip, or of a single thread: no other GPU and no host can name it.
    Private,
}

impl MemoryKind {
    /// The set of accesses to such memory in models.
    pub fn set(self) -> &'static str {
        match self {
            MemoryKind::Managed => "MANAGED",
            MemoryKind::Mapped => "MAPPED",
            MemoryKind::System => "PAGEABLE",
            MemoryKind::File => "PAGEABLE_FILE",
            MemoryKind::Device(_) => "GPU_MEMORY",
            MemoryKind::Private => "PRIVATE",
        }
    }
}

/// The machine: what CUDA's device attributes say of it (CUDA Runtime API, `cudaDeviceProp`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The attributes that do not hold.
    lacks: Vec<&'static str>,
    /// The pairs of GPUs that have native atomics between them; `None`: all.
    pub p2p: Option<Vec<(u32, u32)>>,
}

/// Attributes of a machine by name: each is a set of all events, or of none, in models.
pub const ATTRIBUTES: &[&str] = &[
    "pageableMemoryAccess",
    "pageableMemoryAccessUsesHostPageTables",
    "concurrentManagedAccess",
    "hostNativeAtomicSupported",
];

impl Machine {
    /// A machine that has everything.
    pub fn full() -> Machine {
        Machine { lacks: Vec::new(), p2p: None }
    }

    /// Takes an attribute away.
    ///
    /// # Panics
    /// If it is none of [`ATTRIBUTES`].
    pub fn without(&mut self, attribute: &str) {
        let name = ATTRIBUTES.iter().find(|a| **a == attribute);
        self.lacks.push(name.expect("an attribute of the table"));
    }

    /// Whether it has an attribute.
    pub fn has(&self, attribute: &str) -> bool {
        !self.lacks.contains(&attribute)
    }

    /// Whether two GPUs have native atomics between them (`p2pNativeAtomicSupported`).
    pub fn peers(&self, a: u32, b: u32) -> bool {
        a == b || self.p2p.as_ref().is_none_or(|all| all.contains(&(a, b)) || all.contains(&(b, a)))
    }
}
