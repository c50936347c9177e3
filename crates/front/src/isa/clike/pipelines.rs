//! Lowers pipelines of the CUDA C++ library: those of one thread, and those with stages that
//! threads of a block share.
//!
//! # Invariants
//! - A pipeline of one thread consists of its groups of asynchronous copies. The thread counts the
//!   groups that it began, and those that it waited for.
//! - A shared pipeline has two barriers for each stage: `state[2n]` for the producers of stage `n`,
//!   and `state[2n + 1]` for its consumers. Each thread keeps its current stages and the parities
//!   of their phases.
//!
//! # Sources
//! - libcu++, `cuda/pipeline`, and the code that nvcc generates from it for sm_90.
//!
//! # Where we differ
//! - A pipeline lasts until its thread ends: its destructor is not modelled. Fencepost refuses
//!   `quit()`.

use std::ops::Range;
use std::rc::Rc;

use super::ast::{Base, Declaration, Expr as Tree, ExprKind, Storage};
use super::classes::is_pipeline_class;
use super::lower::Lowering;
use super::objects::{self, WaitPhase};
use super::ptx_forms::plain;
use super::scope::{Atomic, Binding, Pipeline, PipelineState, SharedPipeline, ThreadGroup};
use super::types::{Enumeration, Qualified, Type, Value};
use program::dialect::CUDA_SCOPES;
use program::{
    Access, BarrierAction, BinOp, Class, CmpOp, Expr, LocId, Op, RegId, Scope, Tag, Tags, Ty,
    Update,
};

/// The two barriers of a stage.
#[derive(Clone, Copy)]
enum PipelineSide {
    Produced,
    Consumed,
}

/// Methods of a pipeline, and their numbers of arguments.
const METHODS: &[(&str, usize)] = &[
    ("producer_acquire", 0),
    ("producer_commit", 0),
    ("consumer_wait", 0),
    ("consumer_release", 0),
    ("consumer_wait_for", 1),
];

const ROLE: &str = "cuda::pipeline_role";
/// The type of the counters in a pipeline of one thread.
const COUNT: Ty = Ty {
    bits: 8,
    signed: false,
};
/// The largest number of incomplete groups that the library's waits allow.
const MOST_PRIOR: i64 = 8;
/// The largest number of stages.
const MOST_STAGES: i64 = u8::MAX as i64;

fn bin(op: BinOp, ty: Ty, a: Expr, b: Expr) -> Expr {
    Expr::Bin(op, ty, a.into(), b.into())
}

fn differ(a: Expr, b: Expr) -> Expr {
    Expr::Cmp(CmpOp::Ne, Ty::U32, a.into(), b.into())
}

/// The value of a role's name.
pub(super) fn role(name: &str) -> Option<Value> {
    let value = match plain(name) {
        "pipeline_role::producer" => 0,
        "pipeline_role::consumer" => 1,
        _ => return None,
    };
    let (name, ty) = (ROLE.to_owned(), Ty::S32);
    Some(Value::literal(
        value,
        Type::Enum(Rc::new(Enumeration {
            name,
            ty,
            promoted: ty,
            scoped: true,
        })),
    ))
}

impl Lowering<'_, '_> {
    /// Declares pipelines or their states. Returns false for any other declaration.
    pub(super) fn declares_pipeline(&mut self, declaration: &Declaration) -> bool {
        let specifiers = &declaration.specifiers;
        let Base::Class(range) = &specifiers.base else {
            return false;
        };
        let text = self.str(range);
        let (head, args) = text.split_once('<').unwrap_or((text, ">"));
        if !is_pipeline_class(head.trim()) {
            return false;
        }
        let state = plain(head.trim()) == "pipeline_shared_state";
        let args: Vec<&str> = args
            .trim_end_matches('>')
            .split(',')
            .map(str::trim)
            .collect();
        let scope = CUDA_SCOPES
            .iter()
            .find(|s| s.0 == plain(args[0]))
            .map(|s| s.1);
        let stages = args
            .get(1)
            .and_then(|n| n.parse().ok())
            .filter(|n| (1..=MOST_STAGES).contains(n));
        for declared in &declaration.all {
            let name = declared.declarator.name.clone();
            let plain =
                declared.declarator.pointers.is_empty() && declared.declarator.arrays.is_empty();
            let problem = match (state, scope, stages) {
                _ if !plain => "expected neither pointers nor arrays of them",
                (true, Some(Scope::Cta), Some(stages))
                    if specifiers.has(Storage::Shared).is_some() =>
                {
                    self.pipeline_state(&name, stages);
                    continue;
                }
                (true, ..) => {
                    "expected `__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, \
                    n> state;`: others have no mbarrier objects"
                }
                (false, Some(Scope::Cta | Scope::Thread), None) => {
                    let value = match &declared.value {
                        Some(super::ast::Initial::Value(value)) => Some(value),
                        _ => None,
                    };
                    match value.and_then(|value| self.pipeline_of(value)) {
                        Some(pipe) if pipe.shared.is_some() == (scope == Some(Scope::Cta)) => {
                            self.bind(&name, Binding::Pipeline(pipe));
                            continue;
                        }
                        _ => "expected `= cuda::make_pipeline(…)` of that scope behind it",
                    }
                }
                _ => {
                    "expected `cuda::pipeline<cuda::thread_scope_block>` or \
                    `cuda::pipeline<cuda::thread_scope_thread>`"
                }
            };
            self.error(
                "unsupported",
                range,
                "this declaration of a pipeline is not supported",
                |d| d.label(problem),
            );
        }
        true
    }

    /// Binds a parameter that is a reference to a pipeline.
    pub(super) fn pipeline_given(&mut self, wanted: &str, arg: &Tree) -> Option<Binding> {
        let pipe = self
            .is_pipeline(arg)
            .then(|| self.pipeline_of(arg))
            .flatten();
        match pipe {
            Some(pipe) if pipe.shared.is_none() == wanted.contains("thread_scope_thread") => {
                Some(Binding::Pipeline(pipe))
            }
            _ => {
                self.error(
                    "wrong-operand",
                    &arg.range,
                    "this is not a pipeline of the type of the parameter",
                    |d| d.label(format!("expected a `{wanted}`")),
                );
                None
            }
        }
    }

    /// Declares the memory that the threads of a pipeline share.
    fn pipeline_state(&mut self, name: &Range<usize>, stages: i64) {
        let word = self.str(name);
        let barrier = Type::Object(Class::Barrier(Scope::Cta), Type::Int(Ty::WORD).into());
        let barriers = Type::Array(Qualified::from(barrier).into(), 2 * stages as u32).into();
        let count = Type::Object(Class::Atomic(Scope::Cta), Type::Int(Ty::U32).into()).into();
        let (Some(barriers), Some(count)) = (
            self.shared_object(word, name, name.start, &barriers),
            self.shared_object(&format!("{word}.producers"), name, name.end, &count),
        ) else {
            return;
        };
        self.bind(
            name,
            Binding::PipelineState(PipelineState {
                barriers,
                count,
                stages,
            }),
        );
    }

    /// The pipeline that an expression denotes; `None`: the expression denotes no pipeline.
    pub(super) fn pipeline_of(&mut self, tree: &Tree) -> Option<Pipeline> {
        match &tree.kind {
            ExprKind::Name => match self.binding(tree) {
                Some(Binding::Pipeline(pipe)) => Some(*pipe),
                _ => None,
            },
            ExprKind::Call(name, args) if plain(self.str(name)) == "make_pipeline" => {
                self.make_pipeline(tree, args)
            }
            _ => None,
        }
    }

    /// Whether an expression names a pipeline.
    pub(super) fn is_pipeline(&self, tree: &Tree) -> bool {
        matches!(self.binding(tree), Some(Binding::Pipeline(_)))
    }

    fn make_pipeline(&mut self, tree: &Tree, args: &[Tree]) -> Option<Pipeline> {
        let [head, tail] = [(); 2].map(|()| self.set(COUNT, Expr::Const(0)));
        let (group_tree, state, how) = match args {
            [] => {
                return Some(Pipeline {
                    head,
                    tail,
                    shared: None,
                });
            }
            [group, state] => (group, state, None),
            [group, state, how] => (group, state, Some(how)),
            _ => return self.no_pipeline(tree),
        };
        let ExprKind::AddressOf(named) = &state.kind else {
            return self.no_pipeline(tree);
        };
        let group = self.group_of(group_tree);
        let (Some(group), Some(Binding::PipelineState(state))) =
            (group, self.binding(named).cloned())
        else {
            return self.no_pipeline(tree);
        };
        if !matches!(group.domain, Scope::Cta | Scope::Warp) {
            return self.no_pipeline(tree);
        }
        let first = self.rank_in(&group_tree.range, group)? == 0;
        let size = self.size_of_group(&group_tree.range, group)?;
        let all = Expr::Const(size);
        let producers = match how.map(|how| self.eval(how)) {
            None => None,
            Some(role) if matches!(&role.ty, Type::Enum(of) if of.name == ROLE) => {
                Some(self.count_producers(role, state.count, group, first))
            }
            Some(count) => Some(match count.constant() {
                Some(n) => Expr::Const(n),
                None => self.stable(count.fit(Ty::WORD)),
            }),
        };
        let consumers = match &producers {
            None => all.clone(),
            Some(Expr::Const(n)) => Expr::Const(size - n),
            Some(producers) => bin(BinOp::Sub, Ty::WORD, all.clone(), producers.clone()),
        };
        let producers = producers.unwrap_or(all);
        if first {
            for stage in 0..state.stages {
                let stage = Expr::Const(stage);
                let consumed = barrier_at(state, PipelineSide::Consumed, &stage);
                self.make_barrier(consumed, consumers.clone(), &tree.range);
                let produced = barrier_at(state, PipelineSide::Produced, &stage);
                self.make_barrier(produced, producers.clone(), &tree.range);
            }
        }
        self.sync(group, BarrierAction::Sync);
        let consumed = self.set(Ty::S32, Expr::Const(1));
        let produced = self.set(Ty::S32, Expr::Const(0));
        Some(Pipeline {
            head,
            tail,
            shared: Some(SharedPipeline {
                state,
                consumed,
                produced,
            }),
        })
    }

    /// The number of threads with the role of a producer: they add themselves up in memory.
    fn count_producers(
        &mut self,
        role: Value,
        count: LocId,
        group: ThreadGroup,
        first: bool,
    ) -> Expr {
        let addr = Expr::Address(count);
        let whole = Access {
            tags: Tags::of(&[Tag::Atomic, Tag::Relaxed]),
            scope: Some(Scope::Cta),
            ty: Ty::U32,
        };
        let mut half = whole.clone();
        half.tags.insert(Tag::Rmw);
        if first {
            self.push(Op::Store {
                addr: addr.clone(),
                value: Expr::Const(0),
                access: whole.clone(),
            });
        }
        self.sync(group, BarrierAction::Sync);
        let skip = self.branch(differ(role.expr, Expr::Const(0)));
        self.push(Op::Rmw {
            dst: None,
            addr: addr.clone(),
            update: Update::Apply(BinOp::Add, Expr::Const(1)),
            read: half.clone(),
            write: half,
        });
        let end = self.code.len();
        self.patch(skip, end);
        self.sync(group, BarrierAction::Sync);
        let dst = self.temporary(Ty::U32);
        if first {
            self.push(Op::Load {
                dst,
                addr,
                access: whole,
            });
        }
        let counted = Value::new(Expr::Reg(dst), Type::Int(Ty::WORD));
        self.kept(counted).expr
    }

    fn no_pipeline<T>(&mut self, tree: &Tree) -> Option<T> {
        self.error(
            "wrong-operands",
            &tree.range,
            "this is not a supported pipeline",
            |d| {
                d.label(
                    "expected `cuda::make_pipeline()`, or a group of the block, `&state`, and \
                    perhaps a number of producers or a role",
                )
                .help(
                    "declare the state in this code: `__shared__ \
                    cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;`",
                )
            },
        );
        None
    }

    /// Copies a value to a new register.
    fn set(&mut self, ty: Ty, value: Expr) -> RegId {
        let dst = self.temporary(ty);
        self.push(Op::Assign { dst, value });
        dst
    }

    /// A call of a method of a pipeline.
    pub(super) fn pipeline_method(
        &mut self,
        tree: &Tree,
        object: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Option<Value> {
        let pipe = self.pipeline_of(object)?;
        let word = self.str(name);
        if !METHODS.contains(&(word, args.len())) {
            let message = format!("`{word}` of a pipeline is not supported");
            self.error("unknown-function", name, message, |d| {
                let names: Vec<&str> = METHODS.iter().map(|m| m.0).collect();
                d.label(format!("expected one of `{}`", names.join("`, `")))
                    .did_you_mean(word, names)
            });
            return Some(self.nothing());
        }
        fn parity(reg: RegId) -> WaitPhase {
            objects::parity(Expr::Reg(reg))
        }
        match (word, pipe.shared) {
            ("producer_acquire", Some(shared)) => {
                let stage = self.stage(shared.state, PipelineSide::Consumed, pipe.head);
                self.wait_for_phase(&stage, &parity(shared.consumed));
            }
            ("producer_commit", Some(shared)) => {
                let stage = self.stage(shared.state, PipelineSide::Produced, pipe.head);
                self.arrive_on_copies(stage.addr.clone(), &tree.range);
                self.arrive(&stage, Expr::Const(1), false);
                self.advance(pipe.head, shared.consumed, shared.state.stages);
            }
            ("producer_commit", None) => {
                self.library(
                    &["cp.async.commit_group;".to_owned()],
                    Vec::new(),
                    &tree.range,
                    None,
                );
                self.count(pipe.head);
            }
            ("consumer_wait", Some(shared)) => {
                let stage = self.stage(shared.state, PipelineSide::Produced, pipe.tail);
                self.wait_for_phase(&stage, &parity(shared.produced));
            }
            ("consumer_wait_for", Some(shared)) => {
                let stage = self.stage(shared.state, PipelineSide::Produced, pipe.tail);
                return Some(self.attempt(|l| l.test_phase(&stage, &parity(shared.produced))));
            }
            ("consumer_wait" | "consumer_wait_for", None) => {
                self.wait_for_oldest(&pipe, &tree.range);
                if word == "consumer_wait_for" {
                    return Some(Value::literal(1, Type::Bool));
                }
            }
            ("consumer_release", Some(shared)) => {
                let stage = self.stage(shared.state, PipelineSide::Consumed, pipe.tail);
                self.arrive(&stage, Expr::Const(1), false);
                self.advance(pipe.tail, shared.produced, shared.state.stages);
            }
            _ => {}
        }
        Some(Value::void())
    }

    /// A barrier of the thread's current stage.
    fn stage(&mut self, state: PipelineState, side: PipelineSide, at: RegId) -> Atomic {
        let addr = self.stable(barrier_at(state, side, &Expr::Reg(at)));
        Atomic {
            addr,
            of: Ty::WORD.into(),
            scope: Scope::Cta,
        }
    }

    /// Moves to the next stage. After the last stage, the first one follows in the next phase.
    fn advance(&mut self, at: RegId, parity: RegId, stages: i64) {
        let next = self.set(
            Ty::S32,
            bin(BinOp::Add, Ty::S32, Expr::Reg(at), Expr::Const(1)),
        );
        let last = Expr::Cmp(
            CmpOp::Eq,
            Ty::S32,
            Expr::Reg(next).into(),
            Expr::Const(stages).into(),
        );
        let value = Expr::Select(
            last.clone().into(),
            Expr::Const(0).into(),
            Expr::Reg(next).into(),
        );
        self.push(Op::Assign { dst: at, value });
        let value = bin(BinOp::Xor, Ty::S32, Expr::Reg(parity), last);
        self.push(Op::Assign { dst: parity, value });
    }

    fn count(&mut self, at: RegId) {
        self.push(Op::Assign {
            dst: at,
            value: bin(BinOp::Add, COUNT, Expr::Reg(at), Expr::Const(1)),
        });
    }

    /// Waits for the thread's oldest group that it has not waited for, if there is one.
    fn wait_for_oldest(&mut self, pipe: &Pipeline, range: &Range<usize>) {
        let (head, tail) = (Expr::Reg(pipe.head), Expr::Reg(pipe.tail));
        let none = self.branch(Expr::Cmp(
            CmpOp::Eq,
            Ty::U32,
            head.clone().into(),
            tail.clone().into(),
        ));
        let left = bin(BinOp::Sub, COUNT, head, tail);
        let prior = self.set(COUNT, bin(BinOp::Sub, COUNT, left, Expr::Const(1)));
        let mut ends = Vec::new();
        for n in 0..=MOST_PRIOR {
            let other =
                (n < MOST_PRIOR).then(|| self.branch(differ(Expr::Reg(prior), Expr::Const(n))));
            self.library(
                &[format!("cp.async.wait_group {n};")],
                Vec::new(),
                range,
                None,
            );
            ends.push(self.branch(Expr::Const(1)));
            if let Some(other) = other {
                let next = self.code.len();
                self.patch(other, next);
            }
        }
        let end = self.code.len();
        ends.into_iter().for_each(|at| self.patch(at, end));
        self.count(pipe.tail);
        let end = self.code.len();
        self.patch(none, end);
    }

    /// `pipeline_consumer_wait_prior<n>(pipe)`: waits for all groups except the last `n`.
    pub(super) fn wait_prior(&mut self, tree: &Tree, n: i64, pipe: &Tree) {
        let Some(pipe) = self
            .pipeline_of(pipe)
            .filter(|pipe| pipe.shared.is_none() && (0..=MOST_STAGES).contains(&n))
        else {
            self.error(
                "wrong-operands",
                &tree.range,
                "this takes a number and a pipeline of one thread",
                |d| d.label("expected the form `cuda::pipeline_consumer_wait_prior<n>(pipe)`"),
            );
            return;
        };
        let text = format!("cp.async.wait_group {};", n.min(MOST_PRIOR));
        self.library(&[text], Vec::new(), &tree.range, None);
        let value = bin(BinOp::Sub, COUNT, Expr::Reg(pipe.head), Expr::Const(n));
        self.push(Op::Assign {
            dst: pipe.tail,
            value,
        });
    }

    /// Lets the phase of a barrier wait for the copies of this thread.
    fn arrive_on_copies(&mut self, barrier: Expr, range: &Range<usize>) {
        let object = self.passed(barrier, 1, Ty::U64);
        let text = format!("cp.async.mbarrier.arrive.shared.b64 [{}];", object.word());
        self.library(&[text], vec![object], range, None);
    }

    /// The rank of the thread in a group, if known.
    pub(super) fn rank_in(&mut self, range: &Range<usize>, group: ThreadGroup) -> Option<i64> {
        self.rank(group, range, "thread_rank").constant()
    }

    pub(super) fn size_of_group(
        &mut self,
        range: &Range<usize>,
        group: ThreadGroup,
    ) -> Option<i64> {
        self.rank(group, range, "size").constant()
    }
}

/// The address of a barrier of a stage.
fn barrier_at(state: PipelineState, side: PipelineSide, stage: &Expr) -> Expr {
    let bytes = i64::from(Ty::WORD.bytes());
    let offset = if matches!(side, PipelineSide::Consumed) {
        bytes
    } else {
        0
    };
    let offset = match stage {
        Expr::Const(n) => Expr::Const(n * 2 * bytes + offset),
        stage => {
            let of_stage = bin(BinOp::Mul, Ty::WORD, stage.clone(), Expr::Const(2 * bytes));
            bin(BinOp::Add, Ty::WORD, of_stage, Expr::Const(offset))
        }
    };
    match offset {
        Expr::Const(0) => Expr::Address(state.barriers),
        offset => bin(BinOp::Add, Ty::WORD, Expr::Address(state.barriers), offset),
    }
}
