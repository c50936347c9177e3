//! Computes once, for threads whose code differs in constants alone, the registers that an analysis
//! follows.
//!
//! Threads of a kernel mostly have the same code, with other constants for their places. Which
//! registers an analysis follows, and where they are live, does not depend on these.

use std::collections::HashSet;
use std::mem::discriminant;
use std::rc::Rc;

use super::followed::{Followed, LiveRegisters};
use program::points::access_of;
use program::{Expr, Instr, InstrId, Op, Program};

/// The registers that addresses and branches of a thread's code depend on.
pub(super) struct CodeShape {
    pub(super) followed: Followed,
    /// The exchanges among lanes through which they do.
    pub(super) exchanged: HashSet<InstrId>,
    /// For each target of a branch: the numbers of the followed registers that are live before it.
    pub(super) labels: Vec<Option<Vec<usize>>>,
    /// For each micro-op, and the end: the first one from there on that an analysis runs. The
    /// others define no register that is used.
    pub(super) next: Vec<usize>,
}

/// The shapes of a program's code, each with the first thread that has it.
pub(super) struct CodeShapes<'p> {
    program: &'p Program,
    all: Vec<(usize, Rc<CodeShape>)>,
}

impl<'p> CodeShapes<'p> {
    pub(super) fn new(program: &'p Program) -> CodeShapes<'p> {
        CodeShapes {
            program,
            all: Vec::new(),
        }
    }

    /// The shape of a thread's code.
    pub(super) fn of(&mut self, thread: usize) -> Rc<CodeShape> {
        let threads = &self.program.threads;
        let code = &threads[thread].code;
        // Neighbours are alike, and threads of a role are neighbours.
        let mut known = self.all.iter().rev();
        if let Some((_, shape)) = known.find(|(other, _)| are_alike(&threads[*other].code, code)) {
            return shape.clone();
        }
        let shape = Rc::new(CodeShape::of(code));
        self.all.push((thread, shape.clone()));
        shape
    }
}

impl CodeShape {
    fn of(code: &[Instr]) -> CodeShape {
        let mut sources = Vec::new();
        for (addr, _) in code.iter().filter_map(|instr| access_of(&instr.op)) {
            addr.registers(&mut |reg| sources.push(reg));
        }
        let mut exchanged = HashSet::new();
        loop {
            let followed = Followed::of(code, sources.iter().copied());
            let before = exchanged.len();
            exchanged.extend(code.iter().filter_map(|instr| match &instr.op {
                Op::Take { dst, .. } => followed.number(*dst).map(|_| instr.id),
                _ => None,
            }));
            if exchanged.len() == before {
                return CodeShape::with(code, followed, exchanged);
            }
            for instr in code.iter().filter(|instr| exchanged.contains(&instr.id)) {
                if let Op::Give { value, .. } = &instr.op {
                    value.registers(&mut |reg| sources.push(reg));
                }
            }
        }
    }

    fn with(code: &[Instr], followed: Followed, exchanged: HashSet<InstrId>) -> CodeShape {
        let live = followed.live(code);
        let labels = labels(code, &followed, &live);
        let is_run = |at: usize| {
            let op = &code[at].op;
            let defined = op.defines().and_then(|dst| followed.number(dst));
            labels[at].is_some()
                || matches!(op, Op::Branch { .. } | Op::Give { .. })
                || access_of(op).is_some()
                || defined.is_some_and(|number| live.has(at + 1, number))
        };
        let mut next: Vec<usize> = (0..=code.len()).collect();
        for at in (0..code.len()).rev() {
            if !is_run(at) {
                next[at] = next[at + 1];
            }
        }
        CodeShape {
            followed,
            exchanged,
            labels,
            next,
        }
    }
}

/// For each target of a branch: the numbers of the registers that are live before it.
fn labels(code: &[Instr], followed: &Followed, live: &LiveRegisters) -> Vec<Option<Vec<usize>>> {
    let mut labels = vec![None; code.len() + 1];
    for target in code.iter().filter_map(|instr| instr.op.target()) {
        labels[target].get_or_insert_with(|| {
            (0..followed.count)
                .filter(|number| live.has(target, *number))
                .collect()
        });
    }
    labels
}

/// Whether two codes differ in constants alone.
fn are_alike(a: &[Instr], b: &[Instr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_alike(a, b))
}

fn is_alike(a: &Instr, b: &Instr) -> bool {
    let (x, y) = (&a.op, &b.op);
    let (of_x, of_y) = (x.operands(), y.operands());
    a.id == b.id
        && discriminant(x) == discriminant(y)
        && x.defines() == y.defines()
        && x.target() == y.target()
        && x.falls_through() == y.falls_through()
        && of_x.len() == of_y.len()
        && of_x.iter().zip(&of_y).all(|(x, y)| is_like(x, y))
}

/// Whether two expressions differ in constants alone.
fn is_like(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Const(_), Expr::Const(_)) => true,
        (Expr::Reg(a), Expr::Reg(b)) => a == b,
        (Expr::Bin(op, _, a, c), Expr::Bin(other, _, b, d)) => {
            op == other && is_like(a, b) && is_like(c, d)
        }
        (Expr::Cmp(_, _, a, c), Expr::Cmp(_, _, b, d)) => is_like(a, b) && is_like(c, d),
        (Expr::Select(of_a, a, c), Expr::Select(of_b, b, d)) => {
            is_like(of_a, of_b) && is_like(a, b) && is_like(c, d)
        }
        (Expr::Cast(_, a), Expr::Cast(_, b)) => is_like(a, b),
        (a, b) => a == b,
    }
}
