//! Shortens two threads of a launch to two accesses that may race, and the barriers before them.
//!
//! A thread with a known place and known arguments runs here with numbers. Values from memory are
//! unknown, and the run ends at a branch that depends on one. So its accesses happen whatever
//! memory holds. Two accesses of both threads race if nothing orders them. The exact engine decides
//! that for threads that keep nothing else.
//!
//! # Invariants
//! - Both threads of a block keep the same barriers, so neither waits for the other in vain.
//! - No access that is left out could order the two: the threads wait for nothing but barriers.

use program::litmus::LitmusTest;
use program::{BinOp, Expr, Init, Instr, LocId, Op, Program, Scope, Tag, Thread, Ty};
use rustc_hash::FxHashMap;

use crate::decide::Apart;
use crate::pairs::Together;

/// Steps of one thread at most.
const MOST_STEPS: usize = 400_000;

/// Barriers that a shortened thread may have.
const MOST_BARRIERS: usize = 2_000;

/// A value of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TraceValue {
    Number(i64),
    /// A number of bytes behind the start of an object.
    Address(LocId, i64),
    Unknown,
}

/// An access that a thread comes to.
struct Arrival {
    at: usize,
    /// The operation with numbers for its operands.
    op: Op,
    object: LocId,
    offset: i64,
    bytes: i64,
    writes: bool,
    /// The number of barriers before it.
    barriers: usize,
}

/// The accesses and barriers of a thread before it needs an unknown value.
#[derive(Default)]
struct Course {
    arrivals: Vec<Arrival>,
    /// Its barriers: their instructions, and the operations with numbers for their operands.
    barriers: Vec<(usize, Op)>,
}

/// A test of two threads, shortened to the first two accesses of the given lines that overlap in
/// one barrier interval. `None`: numbers alone do not show such accesses.
pub(crate) fn shortened(test: &LitmusTest, apart: &Apart) -> Option<LitmusTest> {
    let program = &test.program;
    let [first, second] = &program.threads[..] else {
        return None;
    };
    let one_warp = first.place.same(&second.place, Scope::Warp);
    let courses = [
        course(program, first, apart, one_warp)?,
        course(program, second, apart, one_warp)?,
    ];
    let (a, b) = pair(program, &courses, apart)?;
    let codes = [(first, &courses[0], a), (second, &courses[1], b)]
        .map(|(thread, course, arrival)| kept(thread, course, arrival));
    let mut test = test.clone();
    for (thread, code) in test.program.threads.iter_mut().zip(codes) {
        thread.code = code;
    }
    Some(test)
}

/// Runs a thread; `None`: it reaches an instruction that is not modelled here.
/// Barriers of a warp count only if both threads are in one.
fn course(program: &Program, thread: &Thread, apart: &Apart, one_warp: bool) -> Option<Course> {
    let mut regs: Vec<TraceValue> = thread
        .regs
        .iter()
        .map(|r| begins(program, &r.init))
        .collect();
    let mut course = Course::default();
    let mut at = 0;
    for _ in 0..MOST_STEPS {
        let Some(instr) = thread.code.get(at) else {
            break;
        };
        let op = &instr.op;
        if op.aborts() || op.has(Tag::Asynchronous) || op.has(Tag::Mbarrier) {
            return None;
        }
        at += 1;
        match op {
            Op::Assign { dst, value } => regs[usize::from(dst.0)] = eval(program, value, &regs),
            Op::Branch { cond, target } => match eval(program, cond, &regs) {
                TraceValue::Number(0) => {}
                TraceValue::Number(_) => at = *target,
                _ => break,
            },
            Op::Barrier(barrier) if barrier.domain == Scope::Warp && !one_warp => {}
            Op::Barrier(barrier) => {
                if barrier.says_count() || course.barriers.len() == MOST_BARRIERS {
                    return None;
                }
                let op = numbers(program, op, &regs)?;
                course.barriers.push((at - 1, op));
            }
            Op::Call(_) | Op::Enqueue(_) | Op::Status { .. } => return None,
            _ => {
                if op.is_access() && (0..2).any(|n| is_named(instr, n, apart)) {
                    arrives(program, &mut course, at - 1, op, &regs);
                }
                if let Some(dst) = op.defines() {
                    regs[usize::from(dst.0)] = TraceValue::Unknown;
                }
            }
        }
    }
    Some(course)
}

/// Whether an instruction is the one of that number in a suspicion.
fn is_named(instr: &Instr, n: usize, apart: &Apart) -> bool {
    instr.span == apart.spans[n]
}

/// Notes an access, if its address is known.
fn arrives(program: &Program, course: &mut Course, at: usize, op: &Op, regs: &[TraceValue]) {
    let place = op.address().map(|address| eval(program, address, regs));
    let (Some(TraceValue::Address(object, offset)), Some(access)) = (place, op.accesses().next())
    else {
        return;
    };
    course.arrivals.push(Arrival {
        at,
        op: with_numbers(program, op, regs),
        object,
        offset,
        bytes: i64::from(access.ty.bytes()),
        writes: op.write().is_some(),
        barriers: course.barriers.len(),
    });
}

/// An operation with numbers for its operands; `None`: one of them is not known.
fn numbers(program: &Program, op: &Op, regs: &[TraceValue]) -> Option<Op> {
    let known = op
        .operands()
        .as_slice()
        .iter()
        .all(|e| matches!(eval(program, e, regs), TraceValue::Number(_)));
    known.then(|| with_numbers(program, op, regs))
}

/// An operation with numbers and addresses for its operands, and 0 for unknown ones.
fn with_numbers(program: &Program, op: &Op, regs: &[TraceValue]) -> Op {
    let mut op = op.clone();
    for e in op.operands_mut().as_mut_slice() {
        **e = match eval(program, e, regs) {
            TraceValue::Number(v) => Expr::Const(v),
            TraceValue::Address(object, offset) => {
                let base = Box::new(Expr::Address(object));
                Expr::Bin(BinOp::Add, Ty::WORD, base, Box::new(Expr::Const(offset)))
            }
            TraceValue::Unknown => Expr::Const(0),
        };
    }
    op
}

/// The first two accesses of both threads that the lines name, and that conflict.
fn pair<'c>(
    program: &Program,
    courses: &'c [Course; 2],
    apart: &Apart,
) -> Option<(&'c Arrival, &'c Arrival)> {
    let named = |which: usize, n: usize, arrival: &Arrival| {
        is_named(&program.threads[which].code[arrival.at], n, apart)
    };
    let interval = |arrival: &Arrival| match apart.together {
        Together::Thread | Together::Block => arrival.barriers,
        Together::Grid => 0,
    };
    let mut seen: FxHashMap<(usize, LocId, i64), Vec<&Arrival>> = FxHashMap::default();
    for a in &courses[0].arrivals {
        if named(0, 0, a) || named(0, 1, a) {
            for byte in a.offset..a.offset + a.bytes {
                let at = seen.entry((interval(a), a.object, byte)).or_default();
                at.push(a);
            }
        }
    }
    let conflicts = |a: &Arrival, b: &Arrival| {
        let both = (named(0, 0, a) && named(1, 1, b)) || (named(0, 1, a) && named(1, 0, b));
        let passed = |which: usize, n: usize| {
            let barriers: &[(usize, Op)] = &courses[which].barriers[..n];
            barriers.iter().map(|(at, _)| *at)
        };
        let same =
            apart.together == Together::Grid || passed(0, a.barriers).eq(passed(1, b.barriers));
        both && same && (a.writes || b.writes)
    };
    courses[1].arrivals.iter().find_map(|b| {
        let bytes = b.offset..b.offset + b.bytes;
        let mut met = bytes.filter_map(|byte| seen.get(&(interval(b), b.object, byte)));
        let a = met.find_map(|all| all.iter().find(|a| conflicts(a, b)))?;
        Some((*a, b))
    })
}

/// The code of a thread that keeps one access and the barriers before it.
fn kept(thread: &Thread, course: &Course, arrival: &Arrival) -> Vec<Instr> {
    let barriers = course.barriers[..arrival.barriers].iter();
    let all = barriers
        .map(|(at, op)| (*at, op))
        .chain([(arrival.at, &arrival.op)]);
    all.map(|(at, op)| Instr {
        op: op.clone(),
        ..thread.code[at].clone()
    })
    .collect()
}

/// The initial value of a register.
fn begins(program: &Program, init: &Init) -> TraceValue {
    match init {
        Init::Int(v) => TraceValue::Number(*v),
        Init::Address { loc, index } => {
            let offset = program.layout(*loc).offset(*index);
            TraceValue::Address(program.object(*loc), i64::from(offset as u32))
        }
        Init::Unknown => TraceValue::Unknown,
    }
}

/// The value of an expression.
fn eval(program: &Program, e: &Expr, regs: &[TraceValue]) -> TraceValue {
    let of = |e: &Expr| eval(program, e, regs);
    match e {
        Expr::Const(v) => TraceValue::Number(*v),
        Expr::Reg(r) => regs[usize::from(r.0)],
        Expr::Address(loc) => TraceValue::Address(program.object(*loc), 0),
        Expr::Bin(BinOp::Unknown | BinOp::Tells, ..) => TraceValue::Unknown,
        Expr::Bin(op, ty, a, b) => match (of(a), of(b)) {
            (TraceValue::Number(x), TraceValue::Number(y)) => {
                TraceValue::Number(op.apply(*ty, x, y))
            }
            (TraceValue::Address(o, x), TraceValue::Number(y)) if *op == BinOp::Add => {
                TraceValue::Address(o, x + y)
            }
            (TraceValue::Number(x), TraceValue::Address(o, y)) if *op == BinOp::Add => {
                TraceValue::Address(o, x + y)
            }
            (TraceValue::Address(o, x), TraceValue::Number(y)) if *op == BinOp::Sub => {
                TraceValue::Address(o, x - y)
            }
            _ => TraceValue::Unknown,
        },
        Expr::Cmp(op, ty, a, b) => match (of(a), of(b)) {
            (TraceValue::Number(x), TraceValue::Number(y)) => {
                TraceValue::Number(i64::from(op.holds(*ty, x, y)))
            }
            _ => TraceValue::Unknown,
        },
        Expr::Select(c, a, b) => match of(c) {
            TraceValue::Number(0) => of(b),
            TraceValue::Number(_) => of(a),
            _ => TraceValue::Unknown,
        },
        Expr::Cast(ty, a) => match of(a) {
            TraceValue::Number(v) => TraceValue::Number(ty.wrap(v)),
            address => address,
        },
        Expr::Fused(..) => TraceValue::Unknown,
    }
}
