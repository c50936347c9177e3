//! Defines the values of host code and the state of a program: variables, memory, streams, events.
//!
//! # Invariants
//! - A value is known, or it is a register of the host program that remains, or nothing is known of
//!   it. No known value depends on the device.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;

use super::cell_values::CellValues;
pub(super) use super::tree::ElementType;
use super::tree::{HostBase, HostFunction, HostRecord, HostType, element_of};
use program::Ty;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HostValue {
    /// None: of a function without a result, or of a variable without a value.
    Unset,
    Int(i64, Ty),
    /// A number of floating point, with its bits.
    Float(f64, u8),
    /// Nothing is known of it.
    Unknown,
    /// A register of the host program that remains.
    Register(String, Ty),
    /// The address of memory.
    Pointer(Pointer),
    /// The address of a variable that is not memory.
    Cell(usize),
    /// The variables of an array or a vector: the first one, and how many.
    Cells(usize, usize),
    /// An array or vector of numbers in memory.
    Buffer(usize),
    Stream(StreamValue),
    Event(usize),
    Dim3([i64; 3]),
    /// A structure in variables.
    Record(RecordValue),
    /// An atomic object, or a reference to a number.
    Atomic(AtomicObject),
    Text(String),
    /// A function or a kernel, by its name.
    Function(String),
    Closure(Rc<HostLambda>),
    /// A host thread.
    Thread(usize),
    /// An allocation of the driver.
    PhysicalMemory(usize),
    /// A stop state.
    Stop(usize),
    /// A callback of a stop state.
    StopCallback(usize),
    /// A graph, or an instance of one.
    Graph(usize),
    /// A kernel of OpenCL with its arguments.
    Kernel(usize),
    /// A node of a graph: the numbers of both.
    Node(usize, usize),
}

/// The address of memory; `None` is the null pointer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pointer {
    pub(super) memory: Option<usize>,
    /// In bytes.
    pub(super) offset: i64,
    pub(super) element: ElementType,
}

/// An atomic object in memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AtomicObject {
    pub(super) memory: usize,
    pub(super) offset: i64,
    pub(super) ty: Ty,
    /// The type of a reference to a number.
    pub(super) reference: Option<Rc<str>>,
}

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamValue {
    /// The default stream.
    Default,
    /// The legacy default stream, by its name.
    Legacy,
    /// The default stream of the thread.
    PerThread,
    /// One that the program makes.
    Made(usize),
}

/// A lambda with the variables that it captures.
#[derive(Debug)]
pub(super) struct HostLambda {
    pub(super) function: Rc<HostFunction>,
    pub(super) scope: HashMap<String, HostPlace>,
}

impl PartialEq for HostLambda {
    fn eq(&self, other: &HostLambda) -> bool {
        std::ptr::eq(self, other)
    }
}

/// The place of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HostPlace {
    /// A variable.
    Cell(usize),
    /// `grid.x`
    Component(usize, usize),
    /// Memory, by its offset in bytes.
    Memory(usize, i64, ElementType),
}

/// A variable.
#[derive(Clone, Debug)]
pub(super) struct HostVariable {
    pub(super) value: HostValue,
    pub(super) of: HostType,
}

/// How memory was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllocatedBy {
    /// `cudaMalloc`
    Device,
    /// `cudaMallocAsync`
    DeviceAsync,
    /// `cudaMallocManaged`
    Managed,
    /// `cudaMallocHost`, `cudaHostAlloc`
    Pinned,
    /// `clCreateBuffer`
    Buffer,
    /// `clSVMAlloc`
    SvmCoarse,
    /// `clSVMAlloc` with fine-grained sharing.
    SvmFine,
    /// The same with atomics.
    SvmAtomic,
    /// `clCreatePipe`, with the bytes of a packet.
    Pipe(i64),
    /// `clCreateImage`, with its width and its height in pixels.
    Image(i64, i64),
    /// `malloc` and `cudaHostRegister`
    Registered,
    /// `malloc`, `new`
    Heap,
    /// A variable, an array or a vector.
    Variable,
}

impl AllocatedBy {
    /// The kind of memory as a test writes it.
    pub(super) fn kind(self) -> &'static str {
        match self {
            AllocatedBy::Device | AllocatedBy::DeviceAsync => "device",
            AllocatedBy::Managed => "managed",
            AllocatedBy::Pinned | AllocatedBy::Registered => "mapped",
            AllocatedBy::Buffer => "buffer",
            AllocatedBy::SvmCoarse => "svm-coarse",
            AllocatedBy::SvmFine => "svm-fine",
            AllocatedBy::SvmAtomic => "svm-fine-atomic",
            AllocatedBy::Pipe(_) => "pipe",
            AllocatedBy::Image(..) => "image",
            AllocatedBy::Heap | AllocatedBy::Variable => "system",
        }
    }

    pub(super) fn is_device(self) -> bool {
        matches!(self, AllocatedBy::Device | AllocatedBy::DeviceAsync)
    }

    /// Whether a kernel may access it.
    pub(super) fn is_shared(self) -> bool {
        let svm = matches!(
            self,
            AllocatedBy::SvmCoarse | AllocatedBy::SvmFine | AllocatedBy::SvmAtomic
        );
        let pinned = matches!(self, AllocatedBy::Pinned | AllocatedBy::Registered);
        svm || pinned || self == AllocatedBy::Managed
    }

    pub(super) fn is_pageable(self) -> bool {
        matches!(self, AllocatedBy::Heap | AllocatedBy::Variable)
    }
}

/// Memory that the program allocates.
#[derive(Clone, Debug)]
pub(super) struct MemoryObject {
    pub(super) name: String,
    pub(super) range: Range<usize>,
    pub(super) element: ElementType,
    /// The structure that its elements are.
    pub(super) record: Option<Rc<HostRecord>>,
    /// The class of the library that its elements are.
    pub(super) class: Option<Rc<str>>,
    pub(super) bytes: i64,
    pub(super) allocation: AllocatedBy,
    /// The values that it begins with; `None`: any.
    pub(super) initial: CellValues,
    /// The values that it is known to have.
    pub(super) shadow: CellValues,
    /// The place of the call that freed it, and the number of the host thread.
    pub(super) freed: Option<(Range<usize>, usize)>,
    /// Whether a command of the device or another host thread may access it.
    pub(super) escapes: bool,
    /// Whether it begins with a value that is not worked out.
    pub(super) open: bool,
    /// The state space, if it is not that of the allocation.
    pub(super) space: Option<&'static str>,
    /// Whether it is one number of a structure in variables.
    pub(super) is_member: bool,
    /// Whether it is a variable of the device that the file declares.
    pub(super) symbol: bool,
    /// The range of addresses that it is, if the program maps it.
    pub(super) addresses: Option<AddressRange>,
    /// Other memory, if both are mapped to one allocation.
    pub(super) alias: Option<usize>,
}

impl MemoryObject {
    pub(super) fn length(&self) -> usize {
        (self.bytes / self.element.bytes()) as usize
    }

    /// How many numbers each element has.
    fn cells_each(&self) -> usize {
        self.record.as_ref().map_or(1, |record| record.cells.len())
    }

    /// How many numbers it has.
    pub(super) fn cells(&self) -> usize {
        self.length() * self.cells_each()
    }

    /// The number that begins at an offset, and its type.
    pub(super) fn cell_at(&self, offset: i64) -> Option<(usize, ElementType)> {
        let (at, inside) = (offset / self.element.bytes(), offset % self.element.bytes());
        let first = at as usize * self.cells_each();
        match &self.record {
            None => (inside == 0).then_some((first, self.element)),
            Some(record) => {
                let cell = record.cells.iter().position(|cell| cell.offset == inside)?;
                Some((first + cell, record.cells[cell].element))
            }
        }
    }

    /// The offset of a number, and its type.
    pub(super) fn cell_place(&self, cell: usize) -> (i64, ElementType) {
        match &self.record {
            None => (cell as i64 * self.element.bytes(), self.element),
            Some(record) => {
                let (at, inside) = (cell / record.cells.len(), cell % record.cells.len());
                let inside = &record.cells[inside];
                (at as i64 * record.size + inside.offset, inside.element)
            }
        }
    }

    /// The type of a number in it.
    pub(super) fn cell_element(&self, cell: usize) -> ElementType {
        match &self.record {
            Some(record) => record.cells[cell % record.cells.len()].element,
            None => self.element,
        }
    }

    /// A number as the program that remains names it: `h[3]`, `h[3].key`.
    pub(super) fn path(&self, cell: usize) -> String {
        let at = cell / self.cells_each().max(1);
        let path = match &self.record {
            Some(record) => record.cells[cell % record.cells.len()].path.as_str(),
            None => "",
        };
        format!("{}[{at}]{path}", self.name)
    }

    /// The numbers of whole elements from an offset on.
    pub(super) fn cells_in(&self, offset: i64, bytes: i64) -> Range<usize> {
        let each = self.cells_each();
        let [first, count] = [offset, bytes].map(|n| (n / self.element.bytes()) as usize * each);
        first..first + count
    }

    /// Forgets its values, as its type was not known before.
    pub(super) fn retyped(&mut self, value: Option<i64>) {
        self.initial = CellValues::all(value, self.cells());
        self.shadow = self.initial.clone();
    }
}

/// The state of a range of addresses.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AddressRange {
    /// The allocation that is mapped to it.
    pub(super) mapped: Option<usize>,
    pub(super) accessible: bool,
    /// Where its mapping ended.
    pub(super) ended: Option<Range<usize>>,
}

/// An allocation of `cuMemCreate`.
#[derive(Clone, Debug)]
pub(super) struct PhysicalMemory {
    pub(super) bytes: i64,
    /// The first memory to which it was mapped.
    pub(super) first: Option<usize>,
    pub(super) released: bool,
}

/// A stream of the program.
#[derive(Clone, Debug)]
pub(super) struct StreamObject {
    pub(super) name: String,
    pub(super) blocking: bool,
    pub(super) destroyed: Option<Range<usize>>,
}

/// An event of the program.
#[derive(Clone, Debug)]
pub(super) struct EventObject {
    pub(super) name: String,
    pub(super) destroyed: Option<Range<usize>>,
}

/// Calls that streams capture.
#[derive(Clone, Debug)]
pub(super) struct StreamCapture {
    /// The stream that the capture began with.
    pub(super) origin: String,
    /// All streams that are captured.
    pub(super) streams: BTreeSet<String>,
    /// Events that these record.
    pub(super) events: BTreeSet<String>,
    pub(super) lines: Vec<HostLine>,
    /// Launches and threads before it.
    pub(super) started: (usize, i64),
}

/// A node of a graph with its stream, and the event behind its command.
#[derive(Clone, Debug)]
pub(super) struct GraphNode {
    pub(super) stream: String,
    pub(super) event: String,
    /// The nodes that it depends on.
    pub(super) behind: Vec<usize>,
    pub(super) lines: Vec<HostLine>,
    pub(super) range: Range<usize>,
}

/// A graph, or an instance of one.
#[derive(Clone, Debug)]
pub(super) struct GraphObject {
    pub(super) capture: StreamCapture,
    /// Nodes that the program adds one by one.
    pub(super) nodes: Vec<GraphNode>,
    pub(super) launches: usize,
    pub(super) threads: i64,
    /// Its own streams and events, by the names of the captured ones.
    pub(super) names: Option<BTreeMap<String, String>>,
    /// Whether it was launched before.
    pub(super) launched: bool,
}

/// A kernel of OpenCL, and the arguments that were set.
#[derive(Clone, Debug)]
pub(super) struct KernelObject {
    pub(super) kernel: usize,
    pub(super) arguments: Vec<HostValue>,
}

/// A kernel with the arguments of a launch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KernelUse {
    pub(super) name: String,
    pub(super) kernel: usize,
    /// The arguments of its template.
    pub(super) instance: Option<String>,
    pub(super) arguments: Vec<HostValue>,
    pub(super) cooperative: bool,
    pub(super) shared: i64,
    pub(super) range: Range<usize>,
}

/// A launch with its sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRange {
    /// The name of its kernel in the program.
    pub kernel: String,
    /// Blocks, by dimension.
    pub grid: [i64; 3],
    /// Threads per block, by dimension.
    pub block: [i64; 3],
}

impl LaunchRange {
    /// The sizes as they are written: `2, dim3(8, 8)`.
    pub fn sizes(&self) -> String {
        fn extent(all: [i64; 3]) -> String {
            let last = all.iter().rposition(|size| *size != 1).unwrap_or(0);
            match last {
                0 => all[0].to_string(),
                _ => {
                    let sizes: Vec<String> = all[..=last].iter().map(i64::to_string).collect();
                    format!("dim3({})", sizes.join(", "))
                }
            }
        }
        format!("{}, {}", extent(self.grid), extent(self.block))
    }
}

/// A line of the host program that remains.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HostLine {
    pub(super) text: String,
    pub(super) range: Range<usize>,
    pub(super) effect: LineEffect,
}

/// The effect of a line of the host program that remains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEffect {
    /// It calls the runtime, other than to ask.
    Call,
    /// It writes an element of memory, given by its number.
    Write(usize),
    /// It uses something behind its end.
    LateUse,
    /// The callbacks of a stop state run here.
    Callbacks(usize),
    /// Anything else.
    Other,
}

impl HostLine {
    /// Whether it calls the runtime, other than to ask.
    pub(super) fn calls(&self) -> bool {
        self.effect == LineEffect::Call
    }
}

/// The state of a program.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgramState {
    pub(super) cells: Vec<HostVariable>,
    pub(super) memory: Vec<MemoryObject>,
    pub(super) streams: Vec<StreamObject>,
    pub(super) events: Vec<EventObject>,
    /// Allocations of the driver.
    pub(super) physical: Vec<PhysicalMemory>,
    pub(super) graphs: Vec<GraphObject>,
    /// The capture that has begun.
    pub(super) capture: Option<StreamCapture>,
    pub(super) kernels: Vec<KernelUse>,
    pub(super) kernel_objects: Vec<KernelObject>,
    /// The lines of the thread or function that is followed.
    pub(super) lines: Vec<HostLine>,
    /// The lines of threads that have started, with their names.
    pub(super) threads: Vec<(String, Vec<HostLine>)>,
    /// Variables that a running thread or a stop callback captures by reference.
    pub(super) shared: Vec<(usize, Borrower)>,
    /// The flags of stop states.
    pub(super) stops: Vec<String>,
    /// The stop state of each thread that has one.
    pub(super) stop_of_thread: BTreeMap<usize, usize>,
    pub(super) stop_callbacks: Vec<StopCallback>,
    /// The threads that were joined.
    pub(super) joined: Vec<usize>,
    /// OpenCL: memory, queues and events that were retained, once for each retain.
    pub(super) retained: Vec<ObjectKind>,
    /// The following ends at a use of something behind its end.
    pub(super) late: bool,
    /// Functions that the runtime calls.
    pub(super) functions: Vec<(String, Vec<HostLine>)>,
    /// Names that are taken.
    pub(super) names: HashMap<String, usize>,
    pub(super) registers: usize,
    /// Whether a command was enqueued, or a thread started.
    pub(super) begun: bool,
    /// Whether `exit` was called in a function.
    pub(super) ended: bool,
    /// Whether a function threw something that it did not catch.
    pub(super) thrown: bool,
}

impl ProgramState {
    /// Whether no code but that which is followed accesses memory of the host.
    pub(super) fn is_alone(&self) -> bool {
        self.threads.is_empty() && self.stop_callbacks.is_empty()
    }
}

/// The code that captures a variable by reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Borrower {
    Thread(usize),
    StopCallback(usize),
}

/// A function that a request to stop calls.
#[derive(Clone, Debug)]
pub(super) struct StopCallback {
    /// The number of its stop state.
    pub(super) stop: usize,
    /// The flag that says whether it is registered, taken or withdrawn.
    pub(super) registered: String,
    /// The flag that says whether its function has returned.
    pub(super) returned: String,
    pub(super) lines: Vec<HostLine>,
    pub(super) range: Range<usize>,
}

/// An object with a count of references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Memory(usize),
    Queue(usize),
    Event(usize),
}

/// The null pointer.
pub(super) fn null(element: ElementType) -> HostValue {
    HostValue::Pointer(Pointer {
        memory: None,
        offset: 0,
        element,
    })
}

/// The value of a variable of a type that begins with zeros.
pub(super) fn zero_of(of: &HostType) -> HostValue {
    match &of.base {
        _ if of.pointers > 0 => null(element_of(&of.base)),
        HostBase::Float(bits) => HostValue::Float(0.0, *bits),
        HostBase::Int(ty) => HostValue::Int(0, *ty),
        HostBase::Dim3 => HostValue::Dim3([1, 1, 1]),
        HostBase::Stream => HostValue::Stream(StreamValue::Default),
        _ => HostValue::Int(0, Ty::S32),
    }
}

/// A structure in variables: its type, and the variable of its first member.
#[derive(Clone, Debug)]
pub(super) struct RecordValue {
    pub(super) of: Rc<HostRecord>,
    pub(super) first: usize,
}

impl PartialEq for RecordValue {
    fn eq(&self, other: &RecordValue) -> bool {
        self.first == other.first
    }
}
