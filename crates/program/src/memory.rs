//! The address map from addresses to memory.
//!
//! Every copy of every location has its address range. Shared memory has one copy per CTA, local
//! memory one per thread, an OpenCL variable at program scope one per device. Aliases have distinct
//! addresses and share the memory of their target.
//!
//! # Invariants
//! - Address 0 refers to no memory.
//! - Addresses count bytes. Each field of an element is one cell, and cells are sorted by address.
//! - Only [`Memory::cell_at`] maps the address and size of an access to a cell. An access covers
//!   exactly one whole cell, or it fails.
//! - Two addresses have the same [`Cell::memory`] iff they are the same physical location. They
//!   have the same [`Cell::virtual_address`] iff they are the same generic virtual address. A
//!   texture, surface or constant handle shares the virtual address of its target; a generic alias
//!   does not (PTX ISA, Proxies; ISCA 2022, virtual against physical aliases).

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use crate::litmus::Observable;
use crate::mbarrier::MbarrierState;
use crate::points::Points;
use crate::waiting::ExitValues;
use crate::{
    CopyPer, Expr, Init, LocId, LocationKind, Op, Place, Program, Proxy, Scope, Space, ThreadId, Ty,
};

/// Index into [`Memory::cells`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellId(pub u32);

/// One addressable element.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The address of its first byte.
    pub address: i64,
    /// Its memory: the cell of the underlying object.
    pub memory: CellId,
    /// The cell that represents its generic virtual address.
    pub virtual_address: CellId,
    /// The type of its value.
    pub ty: Ty,
    /// Initial value of the object's cell.
    pub init: i64,
    /// Whether the initial value is unknown ([`Init::Unknown`]). A word without an initialised
    /// mbarrier object has a known value.
    pub unknown: bool,
    /// Its state space.
    pub space: Space,
    /// The location, and the cell's number in it.
    pub location: (LocId, u32),
    /// The threads that may name this copy; `None`: all.
    pub owner: Option<ThreadId>,
    /// The name in messages: `x`, `a[1]`, `n.data`.
    pub name: String,
}

/// The address map of a program.
#[derive(Clone, Debug)]
pub struct Memory {
    /// All cells, by address; those of objects come before those of their aliases.
    pub cells: Vec<Cell>,
    /// First cell of each copy of each location: `(location, representative thread)`.
    bases: FxHashMap<(LocId, Option<ThreadId>), CellId>,
    /// For each thread, the first thread that shares its CTA.
    cta_of: Vec<ThreadId>,
    /// For each thread, the first thread of its device.
    device_of: Vec<ThreadId>,
    /// The result of the points-to analysis, computed on first use.
    points: Arc<OnceLock<Points>>,
}

/// The addresses of objects are multiples of this.
pub const ALIGNMENT: i64 = GAP;
const GAP: i64 = 0x100;

/// The distance between consecutive copies of an object with this number of bytes. Copies are
/// contiguous, in the order of the first threads that see them.
pub fn stride(bytes: u64) -> i64 {
    (bytes as i64 / GAP + 1) * GAP
}

impl Memory {
    /// Lays out the memory of a program.
    pub fn new(program: &Program) -> Memory {
        fn first(like: &dyn Fn(&Place, &Place) -> bool, program: &Program) -> Vec<ThreadId> {
            fn place(t: ThreadId, program: &Program) -> &Place {
                &program.thread(t).place
            }
            let of = |t: ThreadId| {
                program
                    .thread_ids()
                    .take_while(|u| *u < t)
                    .find(|&u| like(place(u, program), place(t, program)))
            };
            program.thread_ids().map(|t| of(t).unwrap_or(t)).collect()
        }
        let cta_of = first(&|a, b| a.same(b, Scope::Cta), program);
        let device_of = first(&Place::same_gpu, program);
        let (cells, bases) = Default::default();
        let mut memory = Memory {
            cells,
            bases,
            cta_of,
            device_of,
            points: Arc::default(),
        };
        // Objects come first, so that an alias finds an object that is declared later.
        let (objects, aliases): (Vec<LocId>, Vec<LocId>) = (0..program.locations.len() as u16)
            .map(LocId)
            .partition(|&l| matches!(program.location(l).kind, LocationKind::Object { .. }));
        let mut next = GAP;
        for &loc in objects.iter().chain(&aliases) {
            let object = program.object(loc);
            let LocationKind::Object {
                layout,
                init,
                space,
                ..
            } = &program.location(object).kind
            else {
                unreachable!("Program::object ends at an object");
            };
            for owner in memory.copies(program, loc) {
                memory
                    .bases
                    .insert((loc, owner), CellId(memory.cells.len() as u32));
                for index in 0..init.len() as u32 {
                    let id = CellId(memory.cells.len() as u32);
                    let at = |l: LocId| CellId(memory.bases[&(l, owner)].0 + index);
                    let address = next + layout.offset(index);
                    let before = memory.cells.last().filter(|_| index > 0);
                    let (target, virtual_address) = match program.location(loc).kind {
                        // Members of a union are one cell.
                        LocationKind::Object { .. } => before
                            .filter(|cell| cell.address == address)
                            .map_or((id, id), |cell| (cell.memory, cell.virtual_address)),
                        LocationKind::Alias {
                            proxy: Proxy::Generic,
                            ..
                        } => (at(object), id),
                        LocationKind::Alias { of, .. } => {
                            (at(object), memory.cells[at(of).0 as usize].virtual_address)
                        }
                    };
                    let name = memory.element_name(program, loc, index, owner);
                    memory.cells.push(Cell {
                        address,
                        memory: target,
                        virtual_address,
                        ty: layout.field(index).ty,
                        init: 0,
                        unknown: false,
                        space: *space,
                        location: (loc, index),
                        owner,
                        name,
                    });
                }
                next += stride(layout.bytes(init.len()));
            }
        }
        for i in 0..memory.cells.len() {
            let (loc, index) = memory.cells[i].location;
            if let LocationKind::Object { init, .. } = &program.location(program.object(loc)).kind {
                let viewer = memory.cells[i].owner;
                memory.cells[i].init =
                    memory.cells[i]
                        .ty
                        .wrap(memory.initial(program, &init[index as usize], viewer));
                memory.cells[i].unknown =
                    init[index as usize] == Init::Unknown && !program.is_mbarrier(loc, index);
            }
        }
        memory
    }

    /// The value of an initialiser, as seen by a thread that owns the copy.
    pub fn initial(&self, program: &Program, init: &Init, viewer: Option<ThreadId>) -> i64 {
        match *init {
            Init::Int(v) => v,
            Init::Unknown => 0,
            Init::Address { loc, index } => {
                let viewer = viewer.or_else(|| program.thread_ids().next());
                self.address(program, loc, index, viewer).unwrap_or(0)
            }
        }
    }

    fn copies(&self, program: &Program, loc: LocId) -> Vec<Option<ThreadId>> {
        let mut owners: Vec<ThreadId> = match program.copied(loc) {
            CopyPer::Not => return vec![None],
            CopyPer::ByThread => program.thread_ids().collect(),
            CopyPer::ByCta => self.cta_of.clone(),
            CopyPer::ByDevice => {
                let of_devices = program
                    .thread_ids()
                    .filter(|t| !program.thread(*t).place.host);
                of_devices
                    .map(|t| self.device_of[usize::from(t.0)])
                    .collect()
            }
        };
        owners.sort_unstable();
        owners.dedup();
        owners.into_iter().map(Some).collect()
    }

    fn element_name(
        &self,
        program: &Program,
        loc: LocId,
        index: u32,
        owner: Option<ThreadId>,
    ) -> String {
        let location = program.location(loc);
        let object = program.location(program.object(loc));
        let mut name = location.name.clone();
        if let LocationKind::Object { layout, init, .. } = &object.kind {
            name.push_str(&layout.suffix(index, init.len()));
        }
        match owner {
            Some(t) if self.copies(program, loc).len() > 1 => {
                format!("{}:{name}", program.thread(t).name)
            }
            _ => name,
        }
    }

    /// A cell.
    pub fn cell(&self, id: CellId) -> &Cell {
        &self.cells[id.0 as usize]
    }

    /// The cell that begins at an address.
    pub fn at(&self, address: i64) -> Option<CellId> {
        self.cells
            .binary_search_by_key(&address, |c| c.address)
            .ok()
            .map(|i| CellId(i as u32))
    }

    /// The cell that an access of `size` bytes at an address covers. `None` if there is none, or if
    /// the access covers a part of a cell or several cells: accesses of mixed sizes are not
    /// supported.
    pub fn cell_at(&self, address: i64, size: u32) -> Option<CellId> {
        self.at(address)
            .filter(|&c| self.cell(c).ty.bytes() == size)
    }

    /// The cell of an element of a location, in the copy that `viewer` sees. `None` if the element
    /// does not exist, or if there are several copies and no viewer.
    pub fn cell_of(
        &self,
        program: &Program,
        loc: LocId,
        index: u32,
        viewer: Option<ThreadId>,
    ) -> Option<CellId> {
        let owner = match (program.copied(loc), viewer) {
            (CopyPer::Not, _) => None,
            (_, None) => Some(self.only_copy(program, loc)?),
            (CopyPer::ByThread, Some(t)) => Some(t),
            (CopyPer::ByCta, Some(t)) => Some(self.cta_of[t.0 as usize]),
            (CopyPer::ByDevice, Some(t)) => Some(self.device_of[t.0 as usize]),
        };
        let base = *self.bases.get(&(loc, owner))?;
        let id = CellId(base.0 + index);
        let cell = self.cells.get(id.0 as usize)?;
        (cell.location == (loc, index)).then_some(id)
    }

    /// The address of an element of a location, in the copy that `viewer` sees, as
    /// [`Memory::cell_of`].
    pub fn address(
        &self,
        program: &Program,
        loc: LocId,
        index: u32,
        viewer: Option<ThreadId>,
    ) -> Option<i64> {
        self.cell_of(program, loc, index, viewer)
            .map(|c| self.cell(c).address)
    }

    fn only_copy(&self, program: &Program, loc: LocId) -> Option<ThreadId> {
        match self.copies(program, loc).as_slice() {
            [Some(t)] => Some(*t),
            _ => None,
        }
    }

    /// The memory cell of an observable, if it observes memory.
    pub fn observed(&self, program: &Program, observable: Observable) -> Option<CellId> {
        match observable {
            Observable::Reg(..) => None,
            Observable::Mem { loc, index, viewer } => {
                let cell = self.cell_of(program, loc, index, viewer)?;
                Some(self.cell(cell).memory)
            }
        }
    }

    /// Whether `thread` may access the cell. Shared memory is accessible within its cluster, local
    /// memory only by its thread (PTX ISA, State Spaces).
    pub fn reachable(&self, program: &Program, cell: CellId, thread: ThreadId) -> bool {
        let cell = self.cell(cell);
        match (cell.space, cell.owner) {
            (Space::Shared, Some(owner)) => {
                let (a, b) = (&program.thread(owner).place, &program.thread(thread).place);
                owner == thread || a.same(b, Scope::Cluster)
            }
            (Space::Local | Space::Register, Some(owner)) => owner == thread,
            (Space::Global, Some(owner)) => program
                .thread(owner)
                .place
                .same_gpu(&program.thread(thread).place),
            _ => true,
        }
    }

    /// The cell that an access covers, if `thread` may access it: the cell is reachable and no
    /// write goes to read-only memory.
    pub fn accessed(
        &self,
        program: &Program,
        thread: ThreadId,
        address: i64,
        size: u32,
        write: bool,
    ) -> Option<CellId> {
        let cell = self.cell_at(address, size)?;
        let writable = !write || !self.cell(cell).space.is_read_only();
        (writable && self.reachable(program, cell, thread)).then_some(cell)
    }

    /// The name of an observable in outcomes.
    pub fn observable_name(&self, program: &Program, o: Observable) -> String {
        match o {
            Observable::Reg(t, r) => {
                let thread = program.thread(t);
                format!("{}:{}", thread.name, thread.regs[r.0 as usize].name)
            }
            Observable::Mem { loc, index, viewer } => {
                match self.cell_of(program, loc, index, viewer) {
                    Some(c) => self.cell(c).name.clone(),
                    None => program.location(loc).name.clone(),
                }
            }
        }
    }

    /// A value of a cell as text: the state of an mbarrier object, or the result of
    /// [`Memory::show_held`].
    pub fn show_in(&self, program: &Program, cell: CellId, v: i64) -> String {
        if self.is_mbarrier(program, cell) {
            MbarrierState::of(v).text()
        } else {
            let Cell {
                ty,
                location: (loc, index),
                ..
            } = *self.cell(cell);
            self.show_held(
                program,
                Observable::Mem {
                    loc,
                    index,
                    viewer: None,
                },
                ty,
                v,
            )
        }
    }

    fn is_mbarrier(&self, program: &Program, cell: CellId) -> bool {
        let (loc, index) = self.cell(cell).location;
        program.is_mbarrier(loc, index)
    }

    /// Describes what a polling thread waits for: values that it wants from a cell, given the value
    /// that it reads now.
    pub fn awaited(
        &self,
        program: &Program,
        cell: CellId,
        wanted: &ExitValues,
        seen: i64,
    ) -> String {
        let name = &self.cell(cell).name;
        if self.is_mbarrier(program, cell) {
            return format!(
                "the next phase of {name} ({})",
                MbarrierState::of(seen).text()
            );
        }
        wanted.text(name, &|v| self.show_in(program, cell, v))
    }

    /// A typed value of a register or of memory as text: the name of the memory whose address it
    /// is, if it can be one, else a number.
    pub fn show_held(&self, program: &Program, by: Observable, ty: Ty, v: i64) -> String {
        let v = ty.wrap(v);
        let cell = self
            .at(v)
            .filter(|_| ty.bits == Ty::WORD.bits)
            .map(|c| self.cell(c));
        match cell.filter(|cell| {
            self.points
                .get_or_init(|| Points::compute(program))
                .holds(by, program.object(cell.location.0))
        }) {
            Some(cell) => format!("&{}", cell.name),
            None => v.to_string(),
        }
    }

    /// A value as text. If the program uses addresses as values and this is one, the name of the
    /// memory.
    pub fn show(&self, program: &Program, v: i64) -> String {
        match self.at(v) {
            Some(c) if addresses_are_values(program) => format!("&{}", self.cell(c).name),
            _ => v.to_string(),
        }
    }
}

fn addresses_are_values(program: &Program) -> bool {
    fn is_address(i: &Init) -> bool {
        matches!(i, Init::Address { .. })
    }
    program.locations.iter().any(
        |l| matches!(&l.kind, LocationKind::Object { init, .. } if init.iter().any(is_address)),
    ) || program.threads.iter().any(|t| {
        t.regs.iter().any(|r| is_address(&r.init))
            || t.code.iter().any(|i| {
                matches!(
                    &i.op,
                    Op::Assign {
                        value: Expr::Address(_),
                        ..
                    } | Op::Store {
                        value: Expr::Address(_),
                        ..
                    }
                )
            })
    })
}
