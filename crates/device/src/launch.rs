//! A launch: places the memory of each instance, draws the random parameters, and counts the
//! outcomes.
//!
//! # Invariants
//! - Instances share no byte of memory.
//! - The kernel's text does not depend on what is drawn: one build serves all launches.

use rand::Rng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use crate::histogram::Histogram;
use program::litmus::{LitmusTest, Observable};
use program::memory::{Cell, CellId, Memory};
use program::{CopyPer, Init, LocId, LocationKind, Scope, ThreadId};

/// The largest number of instances in a launch.
const LARGEST: u32 = 1 << 13;

/// The properties that are the same for all launches of a test.
#[derive(Clone, Debug)]
pub(crate) struct KernelShape {
    /// The threads of each work-group.
    pub(crate) groups: Vec<Vec<ThreadId>>,
    /// Objects that all groups see.
    pub(crate) shared: Vec<LaunchObject>,
    /// Objects of which each group has a copy, in its local memory.
    pub(crate) local: Vec<LaunchObject>,
    /// The words of an instance's results.
    pub(crate) results: Vec<ResultWord>,
}

/// An object.
#[derive(Clone, Debug)]
pub(crate) struct LaunchObject {
    /// Its location in the test.
    pub(crate) loc: LocId,
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// Its cells: the offset of each, and its initial content.
    pub(crate) cells: Vec<(u64, Cell)>,
}

/// The meaning of a 64-bit word of an instance's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultWord {
    /// Whether a thread came to its end: [`FINISHED`] or something else.
    End(ThreadId),
    /// A final value that is not in memory of all groups: the number of the observable.
    Final(usize),
}

/// The value of [`ResultWord::End`] for a thread that came to its end.
pub(crate) const FINISHED: i64 = 1;

impl KernelShape {
    /// The shape of a test, if it is a single kernel on a single device.
    pub(crate) fn of(test: &LitmusTest) -> Result<KernelShape, String> {
        let program = &test.program;
        if program.host.is_some() || program.threads.iter().any(|t| t.place.host) {
            return Err("host programs are not run on devices".into());
        }
        let first = &program.threads.first().ok_or("there is no thread")?.place;
        if program.threads.iter().any(|t| t.place.gpu != first.gpu) {
            return Err("its threads are on several devices".into());
        }
        if program
            .threads
            .iter()
            .any(|t| t.place.kernel != first.kernel || t.place.domain != first.domain)
        {
            return Err("its threads belong to several kernels".into());
        }
        let mut groups: Vec<Vec<ThreadId>> = Vec::new();
        for t in program.thread_ids() {
            let place = &program.thread(t).place;
            match groups
                .iter_mut()
                .find(|group| program.thread(group[0]).place.same(place, Scope::Cta))
            {
                Some(group) => group.push(t),
                None => groups.push(vec![t]),
            }
        }
        let memory = Memory::new(program);
        let (mut shared, mut local) = (Vec::new(), Vec::new());
        for loc in (0..program.locations.len() as u16).map(LocId) {
            let location = program.location(loc);
            let LocationKind::Object { layout, init, .. } = &location.kind else {
                return Err(format!("`{}` is another name for memory", location.name));
            };
            if init
                .iter()
                .any(|value| matches!(value, Init::Address { .. }))
            {
                return Err(format!("`{}` holds an address", location.name));
            }
            let cells: Vec<Cell> = memory
                .cells
                .iter()
                .filter(|c| c.location.0 == loc)
                .cloned()
                .collect();
            let cells = cells[..init.len()].iter().enumerate();
            let cells = cells
                .map(|(i, cell)| (layout.offset(i as u32) as u64, cell.clone()))
                .collect();
            let object = LaunchObject {
                loc,
                bytes: layout.bytes(init.len()),
                cells,
            };
            match program.copied(loc) {
                CopyPer::Not | CopyPer::ByDevice => shared.push(object),
                CopyPer::ByCta => local.push(object),
                CopyPer::ByThread => return Err(format!("`{}` is private memory", location.name)),
            }
        }
        let mut results: Vec<ResultWord> = program.thread_ids().map(ResultWord::End).collect();
        for (i, observable) in test.observables().into_iter().enumerate() {
            let seen_by_all = matches!(observable, Observable::Mem { loc, .. }
                if shared.iter().any(|object| object.loc == program.object(loc)));
            if !seen_by_all {
                results.push(ResultWord::Final(i));
            }
        }
        Ok(KernelShape {
            groups,
            shared,
            local,
            results,
        })
    }

    /// The size of its work-groups.
    pub(crate) fn group_size(&self) -> usize {
        self.groups.iter().map(Vec::len).max().unwrap_or(1)
    }

    /// Whether each group has a copy of an object.
    pub(crate) fn is_local(&self, loc: LocId) -> bool {
        self.local.iter().any(|object| object.loc == loc)
    }

    /// Whether the threads of a group have to wait for each other before and after an instance.
    pub(crate) fn meets(&self) -> bool {
        self.group_size() > 1 || !self.local.is_empty()
    }

    /// The place of a word in the results of an instance.
    pub(crate) fn word(&self, word: ResultWord) -> usize {
        self.results
            .iter()
            .position(|w| *w == word)
            .expect("it has a place")
    }
}

/// The random parameters of a launch.
#[derive(Clone, Debug)]
pub(crate) struct LaunchDraw {
    teams: u32,
    /// The instances of each team; a power of two.
    instances: u32,
    /// The order of the instances: number `i` is `(i * factor + first) % instances`.
    factor: u32,
    first: u32,
    /// For each group that joins a team: the group of the test that it runs.
    order: Vec<u32>,
    /// The number of times that a group looks for the others before it goes on alone; 0: they do
    /// not meet.
    patience: u32,
    /// The number of groups that only keep memory busy while the others run.
    stress: u32,
    /// The delay of a thread before an instance is less than this.
    delay: u32,
    /// The number of bytes between instances is a multiple of this.
    line: u64,
    /// Whether the objects of an instance are next to each other.
    together: bool,
    salt: u32,
}

impl LaunchDraw {
    /// Draws a launch of at most about `left` instances for a device with `units` compute units.
    pub(crate) fn draw(
        shape: &KernelShape,
        units: u32,
        left: u64,
        random: &mut Pcg64,
    ) -> LaunchDraw {
        let groups = shape.groups.len() as u32;
        // Groups that wait for each other must run at once. The remaining groups, and in some
        // launches half of all, stress memory.
        let room = (units / groups).clamp(1, 64);
        let teams = if random.random_ratio(1, 3) {
            room.div_ceil(2)
        } else {
            room
        };
        let stress = if random.random_ratio(1, 2) {
            units.saturating_sub(teams * groups).min(256)
        } else {
            0
        };
        let each = (LARGEST / teams).max(16);
        let instances = each.min(left.div_ceil(u64::from(teams)).min(u64::from(each)) as u32);
        let instances = instances.max(1).next_power_of_two();
        let mut order: Vec<u32> = (0..groups).collect();
        order.shuffle(random);
        LaunchDraw {
            teams,
            instances,
            factor: random.random_range(0..instances) | 1,
            first: random.random_range(0..instances),
            order,
            patience: if groups > 1 && groups <= units {
                20_000
            } else {
                0
            },
            stress,
            delay: *[0, 0, 4, 16, 64].choose_by(random),
            line: *[16, 64, 128, 256].choose_by(random),
            together: random.random_ratio(1, 3),
            salt: random.random(),
        }
    }

    /// The grid of the kernel: work-groups and their size. The launch has more groups than needed,
    /// because a device may give several to one unit, which runs them one after the other.
    pub(crate) fn grid(&self, groups: usize, size: usize) -> LaunchGrid {
        let needed = self.teams as usize * groups + self.stress as usize;
        LaunchGrid {
            groups: needed * 32,
            size,
        }
    }
}

/// Draws one of several.
trait ChooseBy<T> {
    fn choose_by(&self, random: &mut Pcg64) -> &T;
}

impl<T> ChooseBy<T> for [T] {
    fn choose_by(&self, random: &mut Pcg64) -> &T {
        &self[random.random_range(0..self.len())]
    }
}

/// The size of a launch.
#[derive(Clone, Copy, Debug)]
pub struct LaunchGrid {
    /// The number of work-groups.
    pub groups: usize,
    /// The number of work-items of each.
    pub size: usize,
}

/// The arguments of a kernel.
#[derive(Clone, Debug)]
pub struct Buffers {
    /// The initial memory of all instances.
    pub memory: Vec<u8>,
    /// For each object that all groups see: the place of its first copy, and the distance of
    /// copies.
    pub places: Vec<u64>,
    /// The number of words for meetings. They count the groups that have joined and those that are
    /// through; for each team, its meetings and its misses; stressing groups write behind them.
    /// Each is alone in its cache line.
    pub meeting: usize,
    /// The number of 64-bit words of results.
    pub results: usize,
    /// [`LaunchDraw::order`].
    pub order: Vec<u32>,
    /// Teams, instances of each, factor, first, patience, delay, salt, stressing groups.
    pub numbers: [u32; 8],
}

/// The distance of the counters of a meeting, in 32-bit words.
pub(crate) const APART: usize = 64;

/// The number of words of memory for stress; a power of two.
pub(crate) const STRESSED: usize = 256;

/// The layout of the memory of all instances.
#[derive(Debug)]
pub(crate) struct InstanceLayout<'s> {
    shape: &'s KernelShape,
    drawn: &'s LaunchDraw,
    /// For each object: the place of its first copy, and the distance of copies.
    places: Vec<(u64, u64)>,
    bytes: u64,
}

impl<'s> InstanceLayout<'s> {
    pub(crate) fn new(shape: &'s KernelShape, drawn: &'s LaunchDraw) -> InstanceLayout<'s> {
        let all = u64::from(drawn.teams) * u64::from(drawn.instances);
        fn aligned(bytes: u64, to: u64) -> u64 {
            bytes.max(1).div_ceil(to) * to
        }
        let mut places = Vec::new();
        let bytes = if drawn.together {
            let mut within = 0;
            for object in &shape.shared {
                places.push((within, 0));
                within += aligned(object.bytes, 16);
            }
            let stride = aligned(within, drawn.line);
            places.iter_mut().for_each(|place| place.1 = stride);
            stride * all
        } else {
            let mut next = 0;
            for object in &shape.shared {
                let stride = aligned(object.bytes, drawn.line);
                places.push((next, stride));
                next += stride * all;
            }
            next
        };
        InstanceLayout {
            shape,
            drawn,
            places,
            bytes,
        }
    }

    fn instances(&self) -> u64 {
        u64::from(self.drawn.teams) * u64::from(self.drawn.instances)
    }

    /// The arguments of the kernel.
    pub(crate) fn buffers(&self) -> Buffers {
        let mut memory = vec![0; self.bytes.max(16) as usize];
        for (object, (first, stride)) in self.shape.shared.iter().zip(&self.places) {
            for (offset, cell) in object.cells.iter().filter(|(_, cell)| cell.init != 0) {
                for i in 0..self.instances() {
                    let at = (first + i * stride + offset) as usize;
                    let size = cell.ty.bytes() as usize;
                    memory[at..at + size].copy_from_slice(&cell.init.to_le_bytes()[..size]);
                }
            }
        }
        let LaunchDraw {
            teams,
            instances,
            factor,
            first,
            patience,
            delay,
            salt,
            stress,
            ..
        } = *self.drawn;
        Buffers {
            memory,
            places: self
                .places
                .iter()
                .flat_map(|&(first, stride)| [first, stride])
                .collect(),
            meeting: (2 + 2 * teams as usize + STRESSED) * APART,
            results: self.instances() as usize * self.shape.results.len(),
            order: self.drawn.order.clone(),
            numbers: [
                teams, instances, factor, first, patience, delay, salt, stress,
            ],
        }
    }

    /// Counts the outcomes of a launch.
    pub(crate) fn count(
        &self,
        test: &LitmusTest,
        memory: &[u8],
        results: &[i64],
        seen: &mut Histogram,
    ) {
        let observables = test.observables();
        let map = Memory::new(&test.program);
        let place = |cell: CellId| {
            let (loc, index) = map.cell(map.cell(cell).memory).location;
            let at = self
                .shape
                .shared
                .iter()
                .position(|object| object.loc == loc)?;
            let (first, stride) = self.places[at];
            let (offset, cell) = &self.shape.shared[at].cells[index as usize];
            Some((first + offset, stride, cell.ty))
        };
        let places: Vec<_> = observables
            .iter()
            .map(|o| map.observed(&test.program, *o).and_then(place))
            .collect();
        let width = self.shape.results.len();
        for instance in 0..self.instances() as usize {
            let words = &results[instance * width..(instance + 1) * width];
            if !self
                .shape
                .results
                .iter()
                .zip(words)
                .all(|(word, value)| !matches!(word, ResultWord::End(_)) || *value == FINISHED)
            {
                seen.stuck += 1;
                continue;
            }
            let value = |(i, place): (usize, &Option<(u64, u64, program::Ty)>)| match *place {
                Some((first, stride, ty)) => {
                    let at = (first + instance as u64 * stride) as usize;
                    let mut bytes = [0; 8];
                    let size = ty.bytes() as usize;
                    bytes[..size].copy_from_slice(&memory[at..at + size]);
                    ty.wrap(i64::from_le_bytes(bytes))
                }
                None => words[self.shape.word(ResultWord::Final(i))],
            };
            let state: Vec<i64> = places.iter().enumerate().map(value).collect();
            *seen.outcomes.entry(state).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    const TEST: &str = "name = \"T\"\ndialect = \"opencl\"\ncondition = 'P0:r == 0 /\\ a[1] == 0 \
    /\\ c == 0'\n[memory]
a = { type = \"int\", init = [7, -8, 9] }\nb = { type = \"atomic_ulong\" }\nc = { type \
= \"char\", init = -1 }\n[[thread]]
work_group = 0\ncode = \"int r = *c;\"\n[[thread]]\nwork_group = 1\ncode = \"a[1] = 1;\"\n";

    #[test]
    fn every_instance_has_memory_and_a_result_of_its_own() {
        let test = front::litmus::parse("t.toml", TEST.as_bytes())
            .expect("a good test")
            .remove(0);
        let shape = KernelShape::of(&test).expect("a shape");
        for seed in 0..200 {
            let random = &mut Pcg64::seed_from_u64(seed);
            let drawn = LaunchDraw::draw(&shape, 1 + seed as u32 % 9, 1 + seed * 3, random);
            let room = (1 + seed as u32 % 9).max(2);
            assert!(
                drawn.teams >= 1 && 2 * drawn.teams + drawn.stress <= room,
                "more groups than there is room for"
            );
            let layout = InstanceLayout::new(&shape, &drawn);
            let mut given = layout.buffers();
            let [teams, instances, factor, first, ..] = given.numbers;
            assert!(
                u64::from(teams) * u64::from(instances) > seed * 3,
                "fewer instances than asked for"
            );
            let mut order = given.order.clone();
            order.sort_unstable();
            assert_eq!(order, [0, 1]);
            // In the kernel's order: each instance has separate bytes, with their initial content.
            let mut taken = vec![false; given.memory.len()];
            let mut results = vec![0; given.results];
            for team in 0..u64::from(teams) {
                for turn in 0..u64::from(instances) {
                    let turn = (turn * u64::from(factor) + u64::from(first)) % u64::from(instances);
                    let instance = team * u64::from(instances) + turn;
                    for (at, object) in shape.shared.iter().enumerate() {
                        let base = given.places[2 * at] + instance * given.places[2 * at + 1];
                        assert_eq!(base % 16, 0);
                        for byte in base..base + object.bytes {
                            assert!(
                                !std::mem::replace(&mut taken[byte as usize], true),
                                "byte {byte} is there twice"
                            );
                        }
                        for (offset, cell) in &object.cells {
                            let at = (base + offset) as usize;
                            let size = cell.ty.bytes() as usize;
                            assert_eq!(
                                given.memory[at..at + size],
                                cell.init.to_le_bytes()[..size]
                            );
                        }
                    }
                    // The result of instance `i`: a[1] = i, r = -i; every fifth has a stuck thread.
                    let a = (given.places[0] + instance * given.places[1]) as usize + 4;
                    given.memory[a..a + 4].copy_from_slice(&(instance as i32).to_le_bytes());
                    let words = &mut results[instance as usize * shape.results.len()..];
                    words[shape.word(ResultWord::End(ThreadId(0)))] = FINISHED;
                    words[shape.word(ResultWord::End(ThreadId(1)))] =
                        if instance % 5 == 4 { 2 } else { FINISHED };
                    words[shape.word(ResultWord::Final(0))] = -(instance as i64);
                }
            }
            let mut seen = Histogram::default();
            layout.count(&test, &given.memory, &results, &mut seen);
            let all = u64::from(teams) * u64::from(instances);
            assert_eq!((seen.instances(), seen.stuck), (all, all / 5));
            let expected = (0..all as i64)
                .filter(|i| i % 5 != 4)
                .map(|i| (vec![-i, i, -1], 1))
                .collect();
            assert_eq!(seen.outcomes, expected);
        }
    }
}
