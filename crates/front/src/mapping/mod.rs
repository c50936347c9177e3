//! Mappings to PTX: translate a program of another dialect as its compiler would, on the IR.
//!
//! | File | Content |
//! |---|---|
//! | `table` | the rows of a mapping; the shipped mappings |
//! | `file` | reads mappings, from `models/mappings/*.toml` or the user's files |
//! | `lower` | lowers one micro-op of the source to micro-ops of PTX |
//! | `objects` | lowers barriers, latches, semaphores and votes of the library |
//! | `atomicity` | rejects operations that PTX would make more atomic than the source's model |
//! | `spell` | rewrites a lowered program so that PTX text can express it |
//! | `by_hand` | mappings given by a target program |
//! | `gaps` | properties that a mapping is known not to preserve |
//!
//! # Invariants
//! - Threads, registers and locations keep their indices, so a condition keeps its meaning. If the
//!   target is given, they correspond by name.
//! - Every lowered micro-op points to the source instruction that it comes from.
//! - Branches go to the first micro-op of their lowered target. Branches that a mapping adds stay
//!   inside the image of one micro-op.
//! - Inline PTX assembly stays as it is.

mod atomicity;
mod by_hand;
mod file;
mod gaps;
mod lower;
mod objects;
mod spell;
mod table;
#[cfg(test)]
mod tests;

pub use gaps::{Gap, GapTest};
pub use table::{
    KINDS, Mapping, MappingRow, MappingStep, ORDERS, OpKind, SEMANTICS, Semantics, SourceOrder,
    StepScope, shipped,
};

use diag::Span;
use objects::BarrierObjects;
use program::litmus::LitmusTest;
use program::{
    Dialect, Element, Instr, LocationKind, Machine, MemoryKind, Op, Program, Register, Tag,
    ThreadId,
};

/// An operation without a counterpart in PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmapped {
    /// The instruction in the test's source file.
    pub span: Span,
    /// The rule of the mapping that rejects the instruction, or that is missing.
    pub rule: String,
}

fn is_uncooperative(program: &Program, t: ThreadId, op: &Op) -> bool {
    matches!(op, Op::Barrier(barrier) if program.is_uncooperative(t, barrier))
}

impl Mapping {
    /// The test with its program in PTX; its condition means the same registers and locations.
    ///
    /// # Errors
    /// The first line without a counterpart in PTX, as one sentence. The test is valid; only PTX
    /// cannot express it.
    pub fn lowered(&self, test: &LitmusTest) -> Result<LitmusTest, String> {
        if let Some(pair) = &self.by_hand {
            return pair.lowered(test);
        }
        let unmapped = match self.lower(&test.program) {
            Ok(program) => {
                return Ok(LitmusTest {
                    program,
                    ..test.clone()
                });
            }
            Err(unmapped) => unmapped,
        };
        let first = &unmapped[0];
        let (line, _) = test.file.line_column(first.span.start as usize);
        let text = test.file.text.get(first.span.range()).unwrap_or_default();
        let others = match unmapped.len() - 1 {
            0 => String::new(),
            more => format!(" (and of {more} more)"),
        };
        let (mapping, rule) = (&self.name, &first.rule);
        Err(format!(
            "mapping `{mapping}` has no counterpart in PTX of `{text}`, line {line}{others}: {rule}"
        ))
    }

    /// Like [`Mapping::lowered`], in a form that PTX text can express: intermediate values of the
    /// source become registers. Only the expectations for models of PTX and for runs stay.
    ///
    /// # Errors
    /// Like [`Mapping::lowered`].
    pub fn spelled(&self, test: &LitmusTest) -> Result<LitmusTest, String> {
        let mut lowered = self.lowered(test)?;
        lowered.program = spell::spelled(&lowered.program);
        lowered
            .expect
            .retain(|model, _| Dialect::of_model(model) == Some(self.to));
        Ok(lowered)
    }

    /// Lowers a program to PTX.
    ///
    /// # Errors
    /// All operations without a counterpart in PTX.
    pub fn lower(&self, program: &Program) -> Result<Program, Vec<Unmapped>> {
        self.lower_where(program, |_| true)
    }

    /// Lowers to PTX the threads for which `maps` holds; the other threads are in PTX already.
    ///
    /// # Errors
    /// All operations of those threads without a counterpart in PTX.
    pub fn lower_where(
        &self,
        program: &Program,
        maps: impl Fn(ThreadId) -> bool,
    ) -> Result<Program, Vec<Unmapped>> {
        let mut mapped = Program {
            dialect: self.to,
            machine: Machine::full(),
            ..program.clone()
        };
        let mut unmapped = Vec::new();
        let objects = BarrierObjects::new(program);
        for (t, thread) in program
            .thread_ids()
            .zip(&mut mapped.threads)
            .filter(|(t, _)| maps(*t))
        {
            match self.code(&objects, t, &mut thread.regs) {
                Ok(code) => thread.code = code,
                Err(errors) => unmapped.extend(errors),
            }
        }
        for location in &mut mapped.locations {
            if let LocationKind::Object {
                opencl,
                kind,
                class,
                space,
                ..
            } = &mut location.kind
            {
                // Memory of program scope, which each device has separately, keeps its kind; and
                // images and pipes do, of which no model of PTX speaks.
                let of_opencl = matches!(
                    kind,
                    MemoryKind::ProgramScope | MemoryKind::Image { .. } | MemoryKind::Pipe
                );
                let kept = Some(*kind).filter(|_| of_opencl);
                (*opencl, *kind, *class) = (
                    Default::default(),
                    Default::default(),
                    objects::class(*class, *space),
                );
                if let Some(kept) = kept {
                    *kind = kept;
                }
            }
        }
        objects::mark(&mut mapped, &mut unmapped);
        if unmapped.is_empty() {
            Ok(mapped)
        } else {
            Err(unmapped)
        }
    }

    /// One thread's code.
    fn code(
        &self,
        objects: &BarrierObjects,
        t: ThreadId,
        regs: &mut Vec<Register>,
    ) -> Result<Vec<Instr>, Vec<Unmapped>> {
        let program = objects.program;
        let thread = program.thread(t);
        // Atomic operations have no scopes if the host's language has none.
        let host = thread.place.host && program.dialect.row().host_without_scopes;
        let code = &thread.code;
        let mut out: Vec<Instr> = Vec::with_capacity(code.len());
        // For each source index, the position of its first lowered micro-op. The end of the code
        // can be a branch target, too.
        let mut starts = Vec::with_capacity(code.len() + 1);
        let mut unmapped = Vec::new();
        for (at, instr) in code.iter().enumerate() {
            starts.push(out.len());
            let lowered = match atomicity::unmet(program, &instr.op).filter(|_| !instr.op.is_ptx())
            {
                Some(rule) => Err(rule),
                None if host => lower::op(self, &lower::of_host(&instr.op)),
                None if is_uncooperative(program, t, &instr.op) => Err(
                    "barrier rows: the barrier of a grid traps without a cooperative launch".into(),
                ),
                None if instr.op.has(Tag::Object) => objects.op(self, t, at, regs),
                None if instr.element.whole && !instr.op.is_ptx() => lower::member(self, instr),
                None => lower::op(self, &instr.op),
            };
            match lowered {
                Ok(ops) => out.extend(ops.into_iter().map(|op| Instr {
                    element: match (op.address(), instr.element.whole) {
                        (None, true) => Element::ONLY,
                        _ => instr.element,
                    },
                    op,
                    assembly: None,
                    ..instr.clone()
                })),
                Err(rule) => unmapped.push(Unmapped {
                    span: instr.span,
                    rule,
                }),
            }
        }
        starts.push(out.len());
        for (at, _) in code.iter().enumerate() {
            let (start, end) = (starts[at], starts[at + 1]);
            let added = !matches!(code[at].op, Op::Branch { .. });
            for target in out[start..end]
                .iter_mut()
                .filter_map(|instr| instr.op.target_mut())
            {
                *target = if added {
                    start + *target
                } else {
                    starts[*target]
                };
            }
        }
        if unmapped.is_empty() {
            Ok(out)
        } else {
            Err(unmapped)
        }
    }
}
