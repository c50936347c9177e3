//! Launches: the first values of a thread's registers, and the facts about its coordinates.
//!
//! # Assumptions
//! - A launch that is left open has blocks of at most 1,024 threads, and fewer than 2^31 threads
//!   altogether (CUDA C++ Programming Guide, *Compute Capabilities*). It has one dimension, unless
//!   the code reads the coordinates of others.

use front::litmus::form::{BlockLimit, Form};
use program::{BinOp, CmpOp, RegId, Ty};
use rustc_hash::FxHashMap;

use crate::exec::initial;
use crate::term::{Level, Origin, Term, Terms, range_of};

/// The sizes of a launch; `None`: any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Threads in a block, by dimension.
    pub block: [Option<u64>; 3],
    /// Blocks in the grid, by dimension.
    pub grid: [Option<u64>; 3],
    /// Whether numbers given to the kernel may be any.
    pub any_arguments: bool,
}

impl Sizes {
    /// Every launch, with any arguments.
    pub const ANY: Sizes = Sizes {
        block: [None; 3],
        grid: [None; 3],
        any_arguments: true,
    };

    /// These sizes, as far as the kernel takes them.
    pub fn within(self, limit: Option<BlockLimit>) -> Sizes {
        let Some(BlockLimit::Exactly(demanded)) = limit else {
            return self;
        };
        let block = [0, 1, 2].map(|d| self.block[d].or(Some(u64::from(demanded[d]))));
        Sizes { block, ..self }
    }

    /// The launch that a file gives, with its arguments.
    pub fn given(form: &Form) -> Sizes {
        Sizes {
            block: form.range.local().map(Some),
            grid: form.range.groups().map(Some),
            any_arguments: false,
        }
    }
}

/// What holds where a kernel is launched.
#[derive(Clone, Debug)]
pub struct LaunchFacts {
    /// What registers begin with.
    pub regs: Vec<Term>,
    /// What holds of the launch.
    pub facts: Vec<Term>,
    /// What holds of each thread.
    pub of_thread: Vec<Term>,
    /// The thread's number in its block, by dimension.
    pub local: Vec<Term>,
    /// The number of its block, by dimension.
    pub group: Vec<Term>,
    /// Its number in the block.
    pub rank: Term,
    /// The number of its warp in the block.
    pub warp: Term,
    /// Its number in the warp.
    pub lane: Term,
    /// The number of threads of the grid.
    pub count: Term,
    /// Coordinates, sizes and arguments, by name.
    pub places: Vec<(String, Term)>,
    /// The dimensions that are left open and taken to be 1, as the code does not read them.
    pub unread: Vec<&'static str>,
}

const AXES: [&str; 3] = ["x", "y", "z"];
const MOST_THREADS: u64 = 1024;
const MOST: i128 = (1 << 31) - 1;

/// The terms of coordinates.
struct Places {
    local: [Term; 3],
    group: [Term; 3],
    block: [Term; 3],
    grid: [Term; 3],
    offset: [Term; 3],
    dimensions: usize,
}

/// The registers that some instruction reads.
fn used(form: &Form) -> Vec<bool> {
    let thread = &form.test.program.threads[0];
    let mut used = vec![false; thread.regs.len()];
    for instr in &thread.code {
        for e in instr.op.operands().as_slice() {
            e.registers(&mut |r: RegId| used[usize::from(r.0)] = true);
        }
    }
    used
}

/// Makes the setting of a launch.
pub fn setting(form: &Form, sizes: Sizes, terms: &mut Terms) -> LaunchFacts {
    let program = &form.test.program;
    let thread = &program.threads[0];
    let used = used(form);
    let reads = |axis: usize| {
        let suffixes = [format!(".{}", AXES[axis]), format!(".{axis}")];
        let all = thread.regs.iter().zip(&used);
        { all }.any(|(reg, used)| *used && suffixes.iter().any(|s| reg.name.ends_with(s.as_str())))
    };
    let axes = [true, reads(1), reads(2)];
    let (mut facts, mut of_thread) = (Vec::new(), Vec::new());
    let places = places(form, sizes, axes, terms);
    for d in 0..3 {
        let pairs = [
            (places.local[d], places.block[d]),
            (places.group[d], places.grid[d]),
        ];
        for (at, size) in pairs {
            if terms.constant(size).is_none() {
                of_thread.push(terms.cmp(CmpOp::Lt, Ty::WORD, at, size));
            }
        }
    }
    let threads = product(terms, places.block);
    let blocks = product(terms, places.grid);
    if terms.constant(threads).is_none() {
        let most = terms.int(most_threads(form) as i64);
        facts.push(terms.cmp(CmpOp::Le, Ty::WORD, threads, most));
    }
    let all = terms.bin(BinOp::Mul, Ty::WORD, threads, blocks);
    if terms.constant(all).is_none() {
        let most = terms.int(MOST as i64);
        facts.push(terms.cmp(CmpOp::Le, Ty::WORD, all, most));
    }
    let rank = rank_in_block(terms, &places);
    let size = terms.int(i64::from(form.warp.max(1)));
    let warp = terms.bin(BinOp::Div, Ty::WORD, rank, size);
    let lane = terms.bin(BinOp::Rem, Ty::WORD, rank, size);
    let mut named: Vec<(String, Term)> = Vec::new();
    let mut regs = Vec::new();
    for (n, reg) in thread.regs.iter().enumerate() {
        let is_argument = form
            .arguments
            .iter()
            .any(|name| name.strip_prefix('%').unwrap_or(name) == reg.name);
        let value = match coordinate(terms, &places, &reg.name) {
            _ if is_argument && sizes.any_arguments => {
                let range = range_of(reg.ty);
                terms.fresh(&reg.name, Level::Grid, Origin::Argument, range)
            }
            _ if is_argument => initial(program, &reg.init, terms).unwrap_or_else(|| terms.int(0)),
            Some(value) => value,
            None if used[n] && is_place(&reg.name) => {
                let range = match reg.name.starts_with("lanemask_") {
                    true => range_of(Ty::U32),
                    false => (0, MOST),
                };
                terms.fresh(&reg.name, Level::Thread, Origin::Free, range)
            }
            None => initial(program, &reg.init, terms).unwrap_or_else(|| terms.int(0)),
        };
        if is_argument || coordinate_name(&reg.name) {
            named.push((reg.name.clone(), value));
        }
        regs.push(value);
    }
    for (d, axis) in AXES.into_iter().enumerate() {
        named.push((format!("thread {axis}"), places.local[d]));
        named.push((format!("block {axis}"), places.group[d]));
    }
    LaunchFacts {
        regs,
        facts,
        of_thread,
        local: places.local.to_vec(),
        group: places.group.to_vec(),
        rank,
        warp,
        lane,
        count: all,
        places: named,
        unread: { 0..3 }
            .filter(|d| !axes[*d] && (sizes.block[*d].is_none() || sizes.grid[*d].is_none()))
            .map(|d| AXES[d])
            .collect(),
    }
}

/// The largest number of threads in a block.
pub fn most_threads(form: &Form) -> u64 {
    match form.limit {
        Some(BlockLimit::AtMost(most)) => MOST_THREADS.min(u64::from(most)),
        _ => MOST_THREADS,
    }
}

fn product(terms: &mut Terms, sizes: [Term; 3]) -> Term {
    let xy = terms.bin(BinOp::Mul, Ty::WORD, sizes[0], sizes[1]);
    terms.bin(BinOp::Mul, Ty::WORD, xy, sizes[2])
}

fn places(form: &Form, sizes: Sizes, axes: [bool; 3], terms: &mut Terms) -> Places {
    let mut size = |name: &str, given: Option<u64>, axis: usize, most: i128| match given {
        Some(n) => terms.int(n as i64),
        None if !axes[axis] => terms.int(1),
        None => {
            let name = format!("{name} {}", AXES[axis]);
            terms.fresh(name, Level::Grid, Origin::Place, (1, most))
        }
    };
    let block = [0, 1, 2].map(|d| {
        size(
            "block size",
            sizes.block[d],
            d,
            i128::from(most_threads(form)),
        )
    });
    let grid = [0, 1, 2].map(|d| size("grid size", sizes.grid[d], d, MOST));
    let mut at = |name: &str, size: Term, axis: usize, level: Level| {
        let most = terms.range(size).1 - 1;
        match most {
            0 => terms.int(0),
            _ => {
                let name = format!("{name} {}", AXES[axis]);
                terms.fresh(name, level, Origin::Place, (0, most))
            }
        }
    };
    let local = [0, 1, 2].map(|d| at("thread", block[d], d, Level::Thread));
    let group = [0, 1, 2].map(|d| at("block", grid[d], d, Level::Block));
    let offset = form.range.offset().map(|n| terms.int(n as i64));
    Places {
        local,
        group,
        block,
        grid,
        offset,
        dimensions: form.range.dimensions(),
    }
}

/// Whether a register is one of the thread's place.
fn is_place(name: &str) -> bool {
    let bare = name.split('.').next().unwrap_or(name);
    name.contains(' ')
        || bare.starts_with("get_")
        || ["laneid", "warpid", "nwarpid", "clusterid", "nclusterid"].contains(&bare)
        || bare.starts_with("cluster_")
        || bare.starts_with("lanemask_")
        || coordinate_name(name)
}

fn coordinate_name(name: &str) -> bool {
    let bare = name.split('.').next().unwrap_or(name);
    let words = [
        "threadIdx",
        "blockIdx",
        "blockDim",
        "gridDim",
        "tid",
        "ntid",
        "ctaid",
        "nctaid",
    ];
    words.contains(&bare) || bare.starts_with("get_")
}

/// The number of a thread in its block.
fn rank_in_block(terms: &mut Terms, places: &Places) -> Term {
    linear(terms, places.local, places.block)
}

/// The number of a place in a box of some size.
fn linear(terms: &mut Terms, at: [Term; 3], size: [Term; 3]) -> Term {
    let z = terms.bin(BinOp::Mul, Ty::WORD, at[2], size[1]);
    let rows = terms.plus(at[1], z);
    let rows = terms.bin(BinOp::Mul, Ty::WORD, rows, size[0]);
    terms.plus(at[0], rows)
}

/// The value of a coordinate by its name.
fn coordinate(terms: &mut Terms, places: &Places, name: &str) -> Option<Term> {
    let rank = rank_in_block(terms, places);
    let threads = product(terms, places.block);
    let block = linear(terms, places.group, places.grid);
    let blocks = product(terms, places.grid);
    let warp = terms.int(32);
    Some(match name {
        "warpSize" => warp,
        "rank in block" | "get_local_linear_id" => rank,
        "threads of block" => threads,
        "block in grid" => block,
        "blocks of grid" => blocks,
        "threads of grid" => terms.bin(BinOp::Mul, Ty::WORD, threads, blocks),
        "rank in grid" => {
            let before = terms.bin(BinOp::Mul, Ty::WORD, block, threads);
            terms.plus(before, rank)
        }
        "laneid" => terms.bin(BinOp::Rem, Ty::WORD, rank, warp),
        "warpid" => terms.bin(BinOp::Div, Ty::WORD, rank, warp),
        "get_work_dim" => terms.int(places.dimensions as i64),
        "get_global_linear_id" if places.dimensions == 1 => {
            let before = terms.bin(BinOp::Mul, Ty::WORD, places.group[0], places.block[0]);
            terms.plus(before, places.local[0])
        }
        _ => return of_axis(terms, places, name),
    })
}

fn of_axis(terms: &mut Terms, places: &Places, name: &str) -> Option<Term> {
    let (bare, axis) = name.split_once('.')?;
    let axis = AXES
        .iter()
        .position(|a| *a == axis)
        .or_else(|| axis.parse().ok().filter(|n| *n < 3))?;
    Some(match bare {
        "threadIdx" | "tid" | "get_local_id" => places.local[axis],
        "blockIdx" | "ctaid" | "get_group_id" => places.group[axis],
        "blockDim" | "ntid" | "get_local_size" | "get_enqueued_local_size" => places.block[axis],
        "gridDim" | "nctaid" | "get_num_groups" => places.grid[axis],
        "get_global_offset" => places.offset[axis],
        "get_global_size" => terms.bin(BinOp::Mul, Ty::WORD, places.grid[axis], places.block[axis]),
        "get_global_id" => {
            let (group, size) = (places.group[axis], places.block[axis]);
            let before = terms.bin(BinOp::Mul, Ty::WORD, group, size);
            let at = terms.plus(before, places.local[axis]);
            terms.plus(at, places.offset[axis])
        }
        _ => return None,
    })
}

/// The values of named things, for assumptions.
pub fn names(form: &Form, setting: &LaunchFacts) -> FxHashMap<String, Term> {
    let mut all: FxHashMap<String, Term> = FxHashMap::default();
    let regs = form.test.program.threads[0].regs.iter();
    for (reg, value) in regs.zip(&setting.regs) {
        all.insert(reg.name.clone(), *value);
    }
    all
}
