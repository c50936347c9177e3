//! Mappings to PTX: a program of another dialect, as its compiler would translate it, on the IR.
//!
//! | File | What |
//! |---|---|
//! | `table` | what a mapping says; the shipped ones |
//! | `file` | the files that say it, `models/mappings/*.toml` or the user's |
//! | `lower` | one micro-op of the source to those of PTX |
//! | `objects` | barriers of the library to mbarrier objects |
//! | `atomicity` | which operations PTX would make more atomic than the source's model |
//! | `spell` | what was lowered, as the text of PTX can say it |
//! | `by_hand` | a target program that is given |
//! | `gaps` | what a mapping is known not to keep |
//!
//! # Invariants
//! - Threads, registers and locations keep their indices, so that a condition means the same before
//!   and after; where the target is given, they keep their names.
//! - Every micro-op of what was lowered points to the source instruction that it comes from.
//! - Branches go to the first micro-op of what their target became; those that a mapping adds stay
//!   inside of what one became.
//! - What is in PTX already, in assembly, stays as it is.

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

pub use gaps::{Gap, Told};
pub use table::{
    KINDS, Kind, Mapping, ORDERS, Order, Reach, Row, SEMANTICS, Semantics, Step, shipped,
};

use diag::Span;
use objects::Objects;
use program::litmus::LitmusTest;
use program::{
    Dialect, Instr, LocationKind, Machine, MemoryKind, Op, Program, Register, Tag, ThreadId,
};

/// An operation that PTX has no counterpart of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmapped {
    /// The instruction in the test's source file.
    pub span: Span,
    /// The rule of the mapping that it meets, or that is missing.
    pub rule: String,
}

impl Mapping {
    /// The test with its program in PTX; its condition means the same registers and locations.
    ///
    /// # Errors
    /// What has no counterpart there, in one sentence with the first such line: the test is valid,
    /// only this model has no words for it.
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

    /// As [`Mapping::lowered`], such that the text of PTX can say it: operands that the source
    /// computes on the way are registers of their own. What the test expects of models of PTX and
    /// of runs stays.
    ///
    /// # Errors
    /// As there.
    pub fn spelled(&self, test: &LitmusTest) -> Result<LitmusTest, String> {
        let mut lowered = self.lowered(test)?;
        lowered.program = spell::spelled(&lowered.program);
        lowered
            .expect
            .retain(|model, _| Dialect::of_model(model) == Some(self.to));
        Ok(lowered)
    }

    /// The program in PTX.
    ///
    /// # Errors
    /// All operations that have no counterpart there.
    pub fn lower(&self, program: &Program) -> Result<Program, Vec<Unmapped>> {
        self.lower_where(program, |_| true)
    }

    /// The program in PTX, if only the threads of which `maps` holds are not there yet.
    ///
    /// # Errors
    /// All operations of theirs that have no counterpart there.
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
        let objects = Objects::new(program);
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
                // What each device has of its own, it has there.
                let of_program = *kind == MemoryKind::ProgramScope;
                (*opencl, *kind, *class) = (
                    Default::default(),
                    Default::default(),
                    objects::class(*class, *space),
                );
                if of_program {
                    *kind = MemoryKind::ProgramScope;
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
        objects: &Objects,
        t: ThreadId,
        regs: &mut Vec<Register>,
    ) -> Result<Vec<Instr>, Vec<Unmapped>> {
        let program = objects.program;
        let thread = program.thread(t);
        // Atomic operations have no scopes, as they are those of the host's language.
        let host = thread.place.host && program.dialect.row().host_without_scopes;
        let code = &thread.code;
        let mut out: Vec<Instr> = Vec::with_capacity(code.len());
        // By index in the source: where what it became begins. The end of the code is a target,
        // too.
        let mut starts = Vec::with_capacity(code.len() + 1);
        let mut unmapped = Vec::new();
        for (at, instr) in code.iter().enumerate() {
            starts.push(out.len());
            let lowered = match atomicity::unmet(program, &instr.op).filter(|_| !instr.op.is_ptx())
            {
                Some(rule) => Err(rule),
                None if host => lower::op(self, &lower::of_host(&instr.op)),
                None if instr.op.has(Tag::Object) => objects.op(self, t, at, regs),
                None => lower::op(self, &instr.op),
            };
            match lowered {
                Ok(ops) => out.extend(ops.into_iter().map(|op| Instr {
                    op,
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
