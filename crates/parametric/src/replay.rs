//! Tries pairs that a proof could not exclude on small launches, with the exact engines.
//!
//! The solver says in which small launch the two threads can meet, and with which arguments; the
//! kernel is read again with that launch, and decided exactly.

use std::time::{Duration, Instant};

use cat::model::load_shipped;
use engine::skeleton::signature::signature;
use engine::{Engine, Limits as ExactLimits};
use front::litmus::form::{BlockLimit, Form, LaunchVariant, at, of_source_at};
use front::mapping::Mapping;
use program::litmus::LitmusTest;
use program::points::access_of;
use program::tags::Tag;
use program::{
    CmpOp, Dialect, Expr, Init, Layout, LocId, LocationKind, NdRange, Op, Program, Ty, WorkItem,
};
use verdict::{Reason, Verdict};
use why::Session;

use crate::asking::{asked, asked_of_words};
use crate::bounds::outside;
use crate::decide::{Apart, KernelInput, KernelProperty, RunOptions, run};
use crate::launch::Sizes;
use crate::pairs::{PairQuestion, SymbolicRun, Together, divergence, race};
use crate::solver::Said;
use crate::term::{Node, Origin, Term};
use crate::trace::shortened;

/// A launch that was decided exactly.
pub(crate) struct ExactLaunch {
    /// The launch in words.
    pub(crate) launch: String,
    /// The exact answer, with its execution.
    pub(crate) answer: verdict::Answer,
    /// The kernel with that launch.
    pub(crate) test: LitmusTest,
}

/// What trying gave.
pub(crate) enum Replayed {
    /// It happens in that launch.
    Happens(Box<ExactLaunch>),
    /// It happens in none that was tried, up to so many blocks and threads.
    Never { up_to: [u64; 2] },
    /// Nothing was decided, and why.
    Unknown(String),
}

/// Blocks and threads of launches in one dimension.
const LINES: [[u64; 2]; 10] = [
    [1, 2],
    [2, 1],
    [1, 4],
    [2, 2],
    [1, 8],
    [2, 4],
    [3, 2],
    [1, 16],
    [1, 32],
    [1, 64],
];

/// And in two.
const PLANES: [[u64; 2]; 4] = [[1, 2], [2, 2], [1, 4], [2, 4]];

/// Arrays have at most so many elements in a launch that is tried: the fewest that do.
const MOST_ELEMENTS: [usize; 4] = [64, 1024, 8192, 65_536];

/// Coordinates of threads wherever they are in a launch. Such threads are to meet within so many
/// bytes of an object, for memory that is tried is small.
const FAR: i64 = 1 << 31;
const NEAR: i64 = 1 << 16;

/// Arguments are at most so large where the threads can meet with such.
const SMALL: [Option<i64>; 3] = [Some(4), Some(16), None];

/// The launches to try, smallest first.
fn launches(kernel: KernelInput<'_>, sizes: Sizes) -> Vec<Sizes> {
    let dimensions = kernel.form.range.dimensions();
    let square = |[blocks, threads]: [u64; 2]| {
        let of = |n: u64| [0, 1, 2].map(|d| Some(if d < dimensions { n } else { 1 }));
        Sizes {
            block: of(threads),
            grid: of(blocks),
            ..sizes
        }
    };
    let mut all: Vec<Sizes> = match dimensions {
        1 => LINES.into_iter().map(square).collect(),
        _ => PLANES.into_iter().map(square).collect(),
    };
    let given = Sizes {
        any_arguments: sizes.any_arguments,
        ..Sizes::given(kernel.form)
    };
    // A launch that is given may be tried smaller, but not larger.
    fn within([tried, of]: [&[Option<u64>; 3]; 2]) -> bool {
        let mut pairs = tried.iter().zip(of);
        pairs.all(|(n, most)| n.zip(*most).is_none_or(|(n, most)| n <= most))
    }
    all.retain(|tried| within([&tried.block, &sizes.block]) && within([&tried.grid, &sizes.grid]));
    if let Some(limit) = kernel.form.limit {
        if let BlockLimit::Exactly(demanded) = limit {
            let block = demanded.map(|n| Some(u64::from(n)));
            all.iter_mut().for_each(|tried| tried.block = block);
            all.dedup();
        }
        all.retain(|tried| limit.admits(tried.block.map(|n| n.unwrap_or(1))));
    }
    let block: u64 = given.block.iter().flatten().product();
    if block <= 256 {
        let grid: u64 = given.grid.iter().flatten().product();
        let grid = [1, 2].into_iter().filter(|n| *n <= grid);
        all.extend(grid.map(|n| Sizes {
            grid: [Some(n), Some(1), Some(1)],
            ..given
        }));
    }
    all
}

/// Where two threads can meet: the arguments, and the threads.
struct Meeting {
    arguments: Vec<(String, i64)>,
    threads: [WorkItem; 2],
    /// The object that both access.
    object: String,
}

/// Whether one of the accesses belongs to a copy of a work-group, for which all of it has to come.
fn is_of_group(form: &Form, apart: &Apart) -> bool {
    let program = &form.test.program;
    let code = &program.threads[0].code;
    let mut ops = apart.at.iter().map(|at| &code[*at].op);
    !program.group_copies.is_empty() && ops.any(|op| op.has(Tag::Asynchronous))
}

/// Tries what is suspected.
pub(crate) fn replay(
    kernel: KernelInput<'_>,
    property: KernelProperty,
    sizes: Sizes,
    apart: &Apart,
    time: Duration,
) -> Replayed {
    let end = Instant::now() + time.max(Duration::from_secs(2));
    let mut tried: Option<[u64; 2]> = None;
    let mut why = "no small launch shows it".to_string();
    let two = match is_of_group(kernel.form, apart) {
        true => None,
        false => neighbours(kernel, property, sizes, apart, end)
            .or_else(|| two_threads(kernel, property, sizes, apart, end)),
    };
    if let Some(found) = two {
        return Replayed::Happens(Box::new(found));
    }
    for sizes in launches(kernel, sizes) {
        if Instant::now() > end {
            return Replayed::Unknown("time ran out before all small launches were tried".into());
        }
        let Ok(mut run) = run(kernel.form, sizes, RunOptions::of(apart)) else {
            continue;
        };
        let meeting = SMALL
            .into_iter()
            .find_map(|most| meeting(kernel, &mut run, property, apart, None, most));
        let Some(meeting) = meeting else { continue };
        if property == KernelProperty::Race && apart.together != Together::Thread {
            let left = end.saturating_duration_since(Instant::now());
            let way = ReplayThreads::Short(apart);
            if let Ok(found) = exact(kernel, property, sizes, &meeting, way, left)
                && happens(property, &found.answer)
            {
                return Replayed::Happens(Box::new(found));
            }
        }
        let left = end.saturating_duration_since(Instant::now());
        match exact(
            kernel,
            property,
            sizes,
            &meeting,
            ReplayThreads::All(apart),
            left,
        ) {
            Ok(found) if happens(property, &found.answer) => {
                return Replayed::Happens(Box::new(found));
            }
            Ok(found) => match found.answer.verdict.reason() {
                Some(reason) => why = format!("a small launch is undecided: {reason}"),
                None => {
                    fn count(all: [Option<u64>; 3]) -> u64 {
                        all.iter().flatten().product::<u64>()
                    }
                    let size = [count(sizes.grid), count(sizes.block)];
                    let largest = tried.filter(|[b, t]| b * t >= size[0] * size[1]);
                    tried = Some(largest.unwrap_or(size));
                }
            },
            Err(reason) => why = reason,
        }
    }
    match tried {
        // Other arguments, or other contents of memory, may show it.
        Some(up_to) if !sizes.any_arguments => Replayed::Never { up_to },
        _ => Replayed::Unknown(why),
    }
}

/// Tries the two threads alone, in a launch of the sizes that are asked about. That shows a race
/// where it does not depend on what others write: they come to the same accesses beside others,
/// too.
fn two_threads(
    kernel: KernelInput<'_>,
    property: KernelProperty,
    sizes: Sizes,
    apart: &Apart,
    end: Instant,
) -> Option<ExactLaunch> {
    let is_one = apart.together == Together::Thread;
    let is_open = sizes.block.contains(&None) || sizes.grid.contains(&None);
    if property != KernelProperty::Race || is_open || is_one {
        return None;
    }
    let mut run = run(kernel.form, sizes, RunOptions::of(apart)).ok()?;
    // Indices that wrap around meet where the threads are far from each other.
    for most in [3, 70, 1024, FAR] {
        let meeting = meeting(kernel, &mut run, property, apart, Some(most), None);
        let Some(meeting) = meeting else { continue };
        let left = end.saturating_duration_since(Instant::now());
        let way = ReplayThreads::Alone(apart);
        let Ok(found) = exact(kernel, property, sizes, &meeting, way, left) else {
            continue;
        };
        if happens(property, &found.answer) {
            return Some(found);
        }
    }
    None
}

/// Tries threads beside each other, in the launch that the file gives with its arguments. Where
/// they meet, no solver has to find threads.
fn neighbours(
    kernel: KernelInput<'_>,
    property: KernelProperty,
    sizes: Sizes,
    apart: &Apart,
    end: Instant,
) -> Option<ExactLaunch> {
    let is_known = !sizes.any_arguments || kernel.form.arguments.is_empty();
    let given = Sizes {
        any_arguments: sizes.any_arguments,
        ..Sizes::given(kernel.form)
    };
    if property != KernelProperty::Race || !is_known || sizes != given {
        return None;
    }
    let code = &kernel.form.test.program.threads[0].code;
    let object = code[apart.at[0]].op.address().and_then(Expr::base)?;
    let program = &kernel.form.test.program;
    let object = &program.location(program.object(object)).name;
    let [block, grid] = [sizes.block, sizes.grid].map(|all| all.map(|n| n.unwrap_or(1)));
    fn place(rank: u64, size: [u64; 3]) -> [u64; 3] {
        let rows = rank / size[0];
        [rank % size[0], rows % size[1], rows / size[1]]
    }
    fn count(size: [u64; 3]) -> u64 {
        size.iter().product::<u64>()
    }
    let (threads, groups) = match apart.together {
        Together::Thread => return None,
        Together::Block => (vec![[0, 1], [0, 2], [1, 2], [0, block[0]]], [0, 0]),
        Together::Grid => (vec![[0, 0], [0, 1], [1, 0]], [0, 1]),
    };
    let pairs = threads.into_iter();
    let pairs = pairs.filter(|pair| pair.iter().all(|n| *n < count(block)));
    for pair in pairs.filter(|_| groups[1] < count(grid)) {
        let meeting = Meeting {
            arguments: Vec::new(),
            threads: [0, 1].map(|n| WorkItem {
                group: place(groups[n], grid),
                local: place(pair[n], block),
            }),
            object: object.clone(),
        };
        let left = end.saturating_duration_since(Instant::now());
        let way = ReplayThreads::Short(apart);
        if let Ok(found) = exact(kernel, property, sizes, &meeting, way, left)
            && happens(property, &found.answer)
        {
            return Some(found);
        }
    }
    None
}

/// Shows that a thread of a launch that is given leaves an object; `None`: no execution is found.
pub(crate) fn outside_of(
    kernel: KernelInput<'_>,
    sizes: Sizes,
    apart: &Apart,
    time: Duration,
) -> Option<ExactLaunch> {
    let property = KernelProperty::Bounds;
    let mut run = run(kernel.form, sizes, RunOptions::of(apart)).ok()?;
    let meeting = meeting(kernel, &mut run, property, apart, None, None)?;
    let way = ReplayThreads::One;
    let found = exact(kernel, property, sizes, &meeting, way, time).ok()?;
    let place = match found.answer.verdict.reason()? {
        Reason::Astray(place) => place.as_ref()?,
        _ => return None,
    };
    (place.line.number == apart.lines[0].number).then_some(found)
}

fn happens(property: KernelProperty, answer: &verdict::Answer) -> bool {
    match property {
        KernelProperty::Race => answer.verdict == Verdict::Racy,
        KernelProperty::Bounds => matches!(answer.verdict.reason(), Some(Reason::Astray(_))),
        KernelProperty::Divergence => {
            answer.verdict == Verdict::Undefined
                && answer
                    .fault
                    .as_ref()
                    .is_some_and(|fault| fault.relation.contains("diverg"))
        }
    }
}

/// Two threads that can meet in a launch, with coordinates of at most so much, and arguments of at
/// most so much; `None`: there are none.
fn meeting(
    kernel: KernelInput<'_>,
    run: &mut SymbolicRun,
    property: KernelProperty,
    apart: &Apart,
    most: Option<i64>,
    most_of_arguments: Option<i64>,
) -> Option<Meeting> {
    let time = Duration::from_secs(4);
    let mut found = None;
    for (mut question, object) in questions(kernel, run, property, apart) {
        let places = question.places.clone();
        fn of_thread(name: &str) -> bool {
            name.starts_with("thread ") || name.starts_with("block ")
        }
        if let Some(most) = most {
            // Blocks lie further apart than threads, and with them what they access.
            let of_blocks = i64::from(apart.together == Together::Grid);
            let own = places.iter().flatten().filter(|(name, _)| of_thread(name));
            for (name, t) in own {
                let of_block = name.starts_with("block ") && most < 1024;
                let most = run.terms.int(if of_block { of_blocks } else { most });
                let small = run.terms.cmp(CmpOp::Le, Ty::WORD, *t, most);
                question.conditions.push(small);
            }
        }
        if let (true, Some(offset)) = (most == Some(FAR), question.offset) {
            let most = run.terms.int(NEAR);
            let is_near = run.terms.cmp(CmpOp::Lt, Ty::WORD, offset, most);
            question.conditions.push(is_near);
        }
        if let Some(most) = most_of_arguments {
            let (least, most) = (run.terms.int(0), run.terms.int(most));
            for (_, t) in places[0].iter().filter(|(name, _)| !of_thread(name)) {
                let small = run.terms.cmp(CmpOp::Le, Ty::WORD, *t, most);
                let large = run.terms.cmp(CmpOp::Ge, Ty::WORD, *t, least);
                question.conditions.extend([small, large]);
            }
        }
        let said = match asked(run, question.clone(), time) {
            // Numbers may wrap around in the launch.
            (Said::No, _, true) => asked_of_words(run, question, time).0,
            (said, ..) => said,
        };
        if let Said::Yes(values) = said {
            found = Some((values, places, object));
            break;
        }
    }
    let (values, places, object) = found?;
    let number = |t: Term| {
        run.terms
            .constant(t)
            .unwrap_or_else(|| values.get(&format!("t{}", t.0)).copied().unwrap_or(0))
    };
    let threads = places.each_ref().map(|of| {
        let at = |name: &str| {
            ["x", "y", "z"].map(|axis| {
                let name = format!("{name} {axis}");
                let place = of.iter().find(|(n, _)| *n == name);
                place.map_or(0, |(_, t)| number(*t) as u64)
            })
        };
        WorkItem {
            group: at("block"),
            local: at("thread"),
        }
    });
    let named = run.setting.places.iter().filter(|(name, t)| {
        let Node::Symbol(id, _) = run.terms.node(*t) else {
            return false;
        };
        let is_argument = run.terms.symbol(*id).origin == Origin::Argument;
        is_argument && kernel.form.arguments.iter().any(|a| bare(a) == name)
    });
    Some(Meeting {
        arguments: named
            .map(|(name, t)| {
                let value = values.get(&format!("t{}", t.0)).copied();
                let given = kernel.form.arguments.iter().find(|a| bare(a) == name);
                (given.unwrap_or(name).clone(), value.unwrap_or(1))
            })
            .collect(),
        threads,
        object,
    })
}

/// The questions whose answers are such threads, each with the name of the object.
fn questions(
    kernel: KernelInput<'_>,
    run: &mut SymbolicRun,
    property: KernelProperty,
    apart: &Apart,
) -> Vec<(PairQuestion, String)> {
    let mut questions = Vec::new();
    match property {
        KernelProperty::Race => {
            let accesses = run.behaviour.accesses.clone();
            let at = |n: usize| accesses.iter().filter(move |a| a.at == apart.at[n]);
            for a in at(0) {
                for b in at(1).filter(|b| b.object == a.object) {
                    let question = race(run, a, b, apart.together);
                    let object = &kernel.form.test.program.location(a.object).name;
                    questions.push((question, object.clone()));
                }
            }
        }
        KernelProperty::Bounds => {
            let places = run.behaviour.places.clone().into_iter();
            for place in places.filter(|place| place.at == apart.at[0]) {
                let mut sizes = kernel.form.sizes.iter();
                if let Some(size) = sizes.find(|size| size.object == place.object) {
                    let question = outside(run, &place, size.bytes);
                    let object = &kernel.form.test.program.location(place.object).name;
                    questions.push((question, object.clone()));
                }
            }
        }
        KernelProperty::Divergence => {
            for barrier in run.behaviour.barriers.clone() {
                if barrier.at == apart.at[0] {
                    let question = divergence(run, &barrier);
                    questions.push((question, String::new()));
                }
            }
        }
    }
    questions
}

fn bare(name: &str) -> &str {
    name.strip_prefix('%').unwrap_or(name)
}

/// The model that a kernel is held against.
fn model(program: &Program) -> &'static str {
    match program.dialect {
        // The model of CUDA C++ has no word for these.
        Dialect::Cuda if program.assembly().is_some() => "ptx",
        Dialect::Cuda => "cuda",
        Dialect::OpenCl => "opencl",
        _ => "ptx",
    }
}

/// Which threads of a launch are decided exactly.
#[derive(Clone, Copy)]
enum ReplayThreads<'a> {
    /// All of them, with what was suspected.
    All(&'a Apart),
    /// The two that were suspected: shortened, or with what they do to one object.
    Alone(&'a Apart),
    /// The same, where they can be shortened.
    Short(&'a Apart),
    /// The first of them, with what it does to one object.
    One,
}

/// Decides a launch exactly.
fn exact(
    kernel: KernelInput<'_>,
    property: KernelProperty,
    sizes: Sizes,
    meeting: &Meeting,
    way: ReplayThreads<'_>,
    time: Duration,
) -> Result<ExactLaunch, String> {
    let [block, grid] = [sizes.block, sizes.grid].map(|all| all.map(|n| n.unwrap_or(1)));
    let dimensions = kernel.form.range.dimensions();
    let global = [0, 1, 2].map(|d| block[d] * grid[d]);
    let offset = kernel.form.range.offset();
    let range = NdRange::new(
        &global[..dimensions],
        &block[..dimensions],
        &offset[..dimensions],
    )
    .map_err(|error| error.to_string())?;
    let mut text = format!("<<<{}, {}>>>", sizes_text(grid), sizes_text(block));
    for (name, value) in &meeting.arguments {
        text.push_str(&format!(" {name} = {value}"));
    }
    let launch = |most_elements: usize| LaunchVariant {
        range,
        arguments: meeting.arguments.clone(),
        threads: match way {
            ReplayThreads::All(_) => None,
            ReplayThreads::One => Some(vec![meeting.threads[0]]),
            _ => Some(meeting.threads.to_vec()),
        },
        most_elements,
    };
    let object = meeting.object.as_str();
    let end = Instant::now() + time;
    let mut last = Err("time ran out before all small launches were tried".to_string());
    let numbers = match way {
        // A smaller array would be left sooner.
        ReplayThreads::One => &MOST_ELEMENTS[MOST_ELEMENTS.len() - 1..],
        _ => &MOST_ELEMENTS[..],
    };
    for most in numbers.iter().copied() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let (answer, test) = launched(kernel, property, launch(most), way, object, left)?;
        let open = answer.verdict.reason().is_some();
        last = Ok(ExactLaunch {
            launch: text.clone(),
            answer,
            test,
        });
        if !open {
            break;
        }
    }
    last
}

/// Leaves of a test what is to one object, and no conditions. Values of other memory do not decide
/// where its threads go, nor what they access there.
fn slice(test: &mut LitmusTest, object: &str) {
    (test.condition, test.filter) = (None, None);
    test.observe.clear();
    let program = &test.program;
    let kept: Vec<bool> = (0..program.locations.len() as u16)
        .map(|n| program.location(program.object(LocId(n))).name == object)
        .collect();
    let is_kept = |op: &Op| {
        let base = op.address().and_then(Expr::base);
        base.is_none_or(|loc| kept[usize::from(program.object(loc).0)])
    };
    let threads = program.threads.iter().map(|thread| {
        thread
            .code
            .iter()
            .enumerate()
            .map(
                |(at, instr)| match (instr.op.is_access(), instr.op.defines()) {
                    (true, _) if is_kept(&instr.op) => instr.op.clone(),
                    (true, Some(dst)) => Op::Assign {
                        dst,
                        value: Expr::Const(0),
                    },
                    (true, None) => Op::Branch {
                        cond: Expr::Const(0),
                        target: at + 1,
                    },
                    _ => instr.op.clone(),
                },
            )
            .collect::<Vec<Op>>()
    });
    let threads: Vec<Vec<Op>> = threads.collect();
    for (thread, code) in test.program.threads.iter_mut().zip(threads) {
        for (instr, op) in thread.code.iter_mut().zip(code) {
            instr.op = op;
        }
    }
    for (location, kept) in test.program.locations.iter_mut().zip(kept) {
        if let LocationKind::Object { init, .. } = &mut location.kind
            && !kept
        {
            init.truncate(1);
        }
    }
}

/// Lets pointers in parameter structures lead to memory of their own, whose elements have the size
/// of the suspected access. The launch gives these structures no values.
fn aim_pointers(test: &mut LitmusTest, form: &Form, apart: &Apart, elements: usize) {
    let suspected = &form.test.program.threads[0].code[apart.at[0]].op;
    let Some((_, ty)) = access_of(suspected) else {
        return;
    };
    for target in &form.targets {
        let name = &form.test.program.location(target.holder).name;
        let locations = &mut test.program.locations;
        let holder = locations.iter().position(|l| l.name == *name);
        let mut object = form.test.program.location(target.object).clone();
        let own = LocId(locations.len() as u16);
        let Some(LocationKind::Object { layout, init, .. }) =
            holder.map(|n| &mut locations[n].kind)
        else {
            continue;
        };
        let cell = (0..init.len()).find(|cell| layout.offset(*cell as u32) == target.offset);
        let Some(cell) = cell.filter(|cell| init[*cell] == Init::Int(0)) else {
            continue;
        };
        init[cell] = Init::Address { loc: own, index: 0 };
        if let LocationKind::Object { layout, init, .. } = &mut object.kind {
            *layout = Layout::of(ty, false);
            *init = vec![Init::Int(0); elements];
        }
        locations.push(object);
    }
}

/// What code states of its launches, rather than of its own values.
const ASSUMPTIONS: [&str; 4] = [
    "__assume",
    "__requires",
    "__global_requires",
    "__builtin_assume",
];

/// Lets threads end at assertions that fail. Accesses in front of these race all the same: without
/// barriers, no thread has to come to its assertion before the accesses.
fn end_at_assertions(test: &mut LitmusTest) {
    let text = &test.file.text;
    let assumes = ASSUMPTIONS.iter().any(|word| text.contains(word));
    let has_barriers = {
        let mut all = test.program.instrs();
        all.any(|(_, _, instr)| instr.op.barrier().is_some())
    };
    if assumes || has_barriers {
        return;
    }
    for thread in &mut test.program.threads {
        let target = thread.code.len();
        for instr in thread.code.iter_mut().filter(|i| i.op.aborts()) {
            let cond = Expr::Const(1);
            instr.op = Op::Branch { cond, target };
        }
    }
}

/// Decides a launch exactly.
fn launched(
    kernel: KernelInput<'_>,
    property: KernelProperty,
    launch: LaunchVariant,
    way: ReplayThreads<'_>,
    object: &str,
    time: Duration,
) -> Result<(verdict::Answer, LitmusTest), String> {
    let form = kernel.form;
    let most_elements = launch.most_elements;
    let read = match kernel.source {
        Some(test) => of_source_at(test, &launch),
        None => at(kernel.name, kernel.bytes, &form.test.name, launch),
    };
    let mut test = read
        .map_err(|errors| errors.first().map_or(String::new(), |d| d.message.clone()))?
        .ok_or("the kernel cannot be read with a small launch")?;
    if property == KernelProperty::Race {
        end_at_assertions(&mut test);
    }
    if let ReplayThreads::All(apart) = way {
        aim_pointers(&mut test, form, apart, most_elements);
    }
    match way {
        ReplayThreads::All(_) => {}
        ReplayThreads::One => slice(&mut test, object),
        ReplayThreads::Alone(apart) | ReplayThreads::Short(apart) => {
            match shortened(&test, apart) {
                Some(short) => {
                    test = short;
                    slice(&mut test, object);
                }
                None if matches!(way, ReplayThreads::Alone(_)) && !apart.free => {
                    slice(&mut test, object)
                }
                None => return Err("the two threads depend on writes of other threads".into()),
            }
        }
    }
    let name = model(&test.program);
    if name == "ptx" && test.program.dialect == Dialect::Cuda {
        let mapping = Mapping::current(Dialect::Cuda).ok_or("the mapping to PTX is not there")?;
        test = mapping.lowered(&test)?;
    }
    let model = match load_shipped(name, &signature()) {
        Some(Ok(model)) => model,
        _ => return Err(format!("the model `{name}` cannot be read")),
    };
    let limits = ExactLimits {
        bound: Some(64),
        timeout: Some((time / 4).max(Duration::from_secs(2))),
    };
    let mut session = Session::new(&test, &model, Engine::Auto, limits, &[]);
    let answer = match property {
        KernelProperty::Race | KernelProperty::Bounds => session.race(),
        KernelProperty::Divergence => session.undefined(),
    };
    let answer = answer.ok_or_else(|| format!("the model `{name}` has no answer for it"))?;
    drop(session);
    Ok((answer, test))
}

fn sizes_text(sizes: [u64; 3]) -> String {
    match sizes {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("({x}, {y})"),
        [x, y, z] => format!("({x}, {y}, {z})"),
    }
}
