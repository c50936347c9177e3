//! A mapping for one source program alone, given by a target program that a person wrote or a
//! compiler printed.
//!
//! # Invariants
//! - The observations are the source's. Registers and locations correspond by name, threads by
//!   place.
//! - Only that source program has an image; any other program is an error.

use super::table::Mapping;
use program::litmus::{Atom, ConditionTerm, LitmusTest, Observable, Prop};
use program::{Layout, LocId, Program, RegId, ThreadId};

/// The source program with its given target.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    source: Program,
    target: LitmusTest,
}

impl Mapping {
    /// A mapping from one program to a given target.
    ///
    /// # Errors
    /// Why the two do not match, as a sentence: both are of one language, or the target lacks a
    /// name in the source's condition.
    pub fn by_hand(source: &LitmusTest, target: &LitmusTest) -> Result<Mapping, String> {
        let (from, to) = (source.program.dialect, target.program.dialect);
        if from == to {
            let language = from.row().doc;
            return Err(format!(
                "source and target are both {language}, and one model judges both"
            ));
        }
        let mut pair = Pair {
            source: source.program.clone(),
            target: target.clone(),
        };
        pair.lowered(source)?;
        // Conditions compare a register in the type of the source register that it corresponds to.
        for (of, thread) in source
            .program
            .threads
            .iter()
            .zip(&mut pair.target.program.threads)
        {
            for register in &mut thread.regs {
                register.ty = of
                    .register(&register.name)
                    .map_or(register.ty, |r| of.regs[usize::from(r.0)].ty);
            }
        }
        Ok(Mapping {
            name: target.name.clone(),
            asked: target.file.name.clone(),
            from,
            to,
            current: false,
            doc: format!("the target of `{}` in `{}`", source.name, target.file.name),
            sources: Vec::new(),
            rows: Vec::new(),
            scopes: Vec::new(),
            groups: Vec::new(),
            wider: Vec::new(),
            gaps: Vec::new(),
            by_hand: Some(Box::new(pair)),
        })
    }
}

impl Mapping {
    /// Translates a proposition about the source test into one about the lowered test.
    ///
    /// # Errors
    /// What the given target lacks, as a sentence.
    pub fn meant(&self, prop: &Prop) -> Result<Prop, String> {
        self.by_hand
            .as_ref()
            .map_or(Ok(prop.clone()), |pair| pair.prop(prop))
    }
}

impl Pair {
    /// As [`Mapping::lowered`].
    pub(super) fn lowered(&self, test: &LitmusTest) -> Result<LitmusTest, String> {
        // Two programs are the same if their printed forms are.
        if format!("{:?}", test.program) != format!("{:?}", self.source) {
            return Err(format!(
                "`{}` is the target of one program alone",
                self.target.name
            ));
        }
        Ok(LitmusTest {
            program: self.target.program.clone(),
            file: self.target.file.clone(),
            condition: self.optional_prop(test.condition.as_ref())?,
            condition_span: self.target.condition_span,
            filter: self.optional_prop(test.filter.as_ref())?,
            observe: test
                .observe
                .iter()
                .map(|o| self.observable(*o))
                .collect::<Result<_, _>>()?,
            bound: test.bound.or(self.target.bound),
            ..test.clone()
        })
    }

    fn optional_prop(&self, prop: Option<&Prop>) -> Result<Option<Prop>, String> {
        prop.map(|prop| self.prop(prop)).transpose()
    }

    fn props(&self, props: &[Prop]) -> Result<Vec<Prop>, String> {
        props.iter().map(|prop| self.prop(prop)).collect()
    }

    fn prop(&self, prop: &Prop) -> Result<Prop, String> {
        Ok(match prop {
            Prop::And(props) => Prop::And(self.props(props)?),
            Prop::Or(props) => Prop::Or(self.props(props)?),
            Prop::Not(prop) => Prop::Not(Box::new(self.prop(prop)?)),
            Prop::Cmp(op, ty, a, b) => Prop::Cmp(*op, *ty, self.side(a)?, self.side(b)?),
        })
    }

    fn side(&self, side: &ConditionTerm) -> Result<ConditionTerm, String> {
        side.mapped(&mut |atom| self.atom(atom))
    }

    fn atom(&self, atom: &Atom) -> Result<Atom, String> {
        Ok(match *atom {
            Atom::Const(value) => Atom::Const(value),
            Atom::Observable(o) => Atom::Observable(self.observable(o)?),
            Atom::Address { loc, index } => Atom::Address {
                loc: self.location(loc, index)?,
                index,
            },
        })
    }

    fn observable(&self, o: Observable) -> Result<Observable, String> {
        Ok(match o {
            Observable::Reg(thread, register) => {
                Observable::Reg(thread, self.register(thread, register)?)
            }
            Observable::Mem { loc, index, viewer } => {
                let viewer = viewer.map(|t| self.thread(t)).transpose()?;
                Observable::Mem {
                    loc: self.location(loc, index)?,
                    index,
                    viewer,
                }
            }
        })
    }

    fn thread(&self, thread: ThreadId) -> Result<ThreadId, String> {
        match self.target.program.threads.get(usize::from(thread.0)) {
            Some(_) => Ok(thread),
            None => Err(self.lacking(&format!("thread {}", self.source.thread(thread).name))),
        }
    }

    fn register(&self, thread: ThreadId, register: RegId) -> Result<RegId, String> {
        let of = self.thread(thread)?;
        let thread = self.source.thread(thread);
        let name = &thread.regs[usize::from(register.0)].name;
        let found = self.target.program.thread(of).register(name);
        found.ok_or_else(|| self.lacking(&format!("register {}:{name}", thread.name)))
    }

    fn location(&self, location: LocId, index: u32) -> Result<LocId, String> {
        let name = &self.source.location(location).name;
        let at = self
            .target
            .program
            .locations
            .iter()
            .position(|l| l.name == *name);
        let at = LocId(at.ok_or_else(|| self.lacking(&format!("location `{name}`")))? as u16);
        let (source, target) = (self.source.layout(location), self.target.program.layout(at));
        let cell = |layout: &Layout| (layout.cells(), layout.field(index).ty);
        if cell(source) != cell(target) {
            let doc = "which conditions compare: it needs the same type in both";
            return Err(format!(
                "`{name}` holds other numbers in `{}`, {doc}",
                self.target.name
            ));
        }
        Ok(at)
    }

    fn lacking(&self, what: &str) -> String {
        format!(
            "`{}` has no {what}, and the source's condition uses it",
            self.target.name
        )
    }
}
