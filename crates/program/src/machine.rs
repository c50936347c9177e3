//! The machine of a test, and the kinds of its memory. They decide whether an operation of the
//! widest scope is atomic, and which processors may access memory while a kernel uses it.
//!
//! This module holds facts only; the rule is in the text of the model.
//!
//! # Sources
//! - libcu++, *Memory model*, Atomicity; CUDA Runtime API, `cudaDeviceProp`,
//!   `cudaDeviceGetP2PAttribute`.
//! - OpenCL API specification, *Memory Model: Shared Virtual Memory*; `CL_DEVICE_SVM_CAPABILITIES`.

/// The kind of an object's allocation. It decides which accesses are atomic at system scope
/// (libcu++, *Memory model*, Atomicity). In OpenCL it decides how devices share the object (OpenCL
/// API specification, *Memory Model: Shared Virtual Memory*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Managed memory; the default if a test says nothing.
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
    /// OpenCL: a buffer object, no shared virtual memory.
    Buffer,
    /// OpenCL: an image object.
    Image {
        /// The pixels of a row; 0: it has one row.
        width: u32,
        /// The rows of a slice; 0: it has one slice.
        height: u32,
    },
    /// OpenCL: a pipe object, its packets or its state.
    Pipe,
    /// OpenCL: coarse-grained shared virtual memory.
    SvmCoarse,
    /// OpenCL: fine-grained shared virtual memory of a buffer, without atomics.
    SvmFine,
    /// OpenCL: the same with atomics.
    SvmFineAtomic,
    /// OpenCL: fine-grained shared virtual memory of the system; the machine decides whether it has
    /// atomics.
    SvmSystem,
    /// OpenCL: a variable at program scope. Each device has a copy, and the host has none (OpenCL
    /// C, *global Address Space*).
    ProgramScope,
}

impl MemoryKind {
    /// Whether it is fine-grained shared virtual memory, with or without atomics.
    pub fn is_fine_grained(self) -> bool {
        matches!(
            self,
            MemoryKind::SvmFine | MemoryKind::SvmFineAtomic | MemoryKind::SvmSystem
        )
    }

    /// The set of accesses to such memory in models.
    pub fn set(self) -> &'static str {
        match self {
            MemoryKind::Managed => "MANAGED",
            MemoryKind::Mapped => "MAPPED",
            MemoryKind::System => "PAGEABLE",
            MemoryKind::File => "PAGEABLE_FILE",
            MemoryKind::Device(_) => "GPU_MEMORY",
            MemoryKind::Private => "PRIVATE",
            MemoryKind::Buffer => "BUFFER",
            MemoryKind::Image { .. } => "IMAGE",
            MemoryKind::Pipe => "PIPE",
            MemoryKind::SvmCoarse => "SVM_COARSE",
            MemoryKind::SvmFine => "SVM_FINE",
            MemoryKind::SvmFineAtomic => "SVM_FINE_ATOMIC",
            MemoryKind::SvmSystem => "SVM_SYSTEM",
            MemoryKind::ProgramScope => "PROGRAM_SCOPE",
        }
    }
}

/// The machine, given by attributes of its devices (CUDA Runtime API, `cudaDeviceProp`; OpenCL API
/// specification, *Querying Devices*).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The attributes that the machine does not have.
    lacks: Vec<&'static str>,
    /// The pairs of GPUs with native atomics between them; `None`: all.
    pub p2p: Option<Vec<(u32, u32)>>,
}

/// Names of machine attributes. In models, each is the set of all events or the empty set.
pub const ATTRIBUTES: &[&str] = &[
    "pageableMemoryAccess",
    "pageableMemoryAccessUsesHostPageTables",
    "concurrentManagedAccess",
    "hostNativeAtomicSupported",
    "CL_DEVICE_SVM_ATOMICS",
];

/// The attribute of OpenCL, a bit of `CL_DEVICE_SVM_CAPABILITIES`.
pub const SVM_ATOMICS: &str = "CL_DEVICE_SVM_ATOMICS";

impl Machine {
    /// A machine with all attributes.
    pub fn full() -> Machine {
        Machine {
            lacks: Vec::new(),
            p2p: None,
        }
    }

    /// Removes an attribute.
    ///
    /// # Panics
    /// If [`ATTRIBUTES`] does not contain it.
    pub fn without(&mut self, attribute: &str) {
        let name = ATTRIBUTES.iter().find(|a| **a == attribute);
        self.lacks.push(name.expect("an attribute of the table"));
    }

    /// Whether it has an attribute.
    pub fn supports(&self, attribute: &str) -> bool {
        !self.lacks.contains(&attribute)
    }

    /// Whether memory of that kind is fine-grained shared virtual memory with atomics.
    pub fn has_svm_atomics(&self, kind: MemoryKind) -> bool {
        kind == MemoryKind::SvmFineAtomic
            || (kind == MemoryKind::SvmSystem && self.supports(SVM_ATOMICS))
    }

    /// Whether two GPUs have native atomics between them (`p2pNativeAtomicSupported`).
    pub fn peers(&self, a: u32, b: u32) -> bool {
        a == b
            || self
                .p2p
                .as_ref()
                .is_none_or(|all| all.contains(&(a, b)) || all.contains(&(b, a)))
    }
}
