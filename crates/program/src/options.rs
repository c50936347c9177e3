//! Options: the settings by which a model controls the skeleton, and the readings of ambiguous
//! sources among which a model can choose.
//!
//! [`OPTIONS`] is the only table. A model's `option`, a test's `[options]`, `--set` and the
//! executor read it.
//!
//! # Invariants
//! - The skeleton implements its options in code. A reading is implemented in the model's text: the
//!   set `NAME.VALUE` contains every event if the option has that value, and no event otherwise.

use crate::{Program, Scope, Tag};

/// One option; the first value is the default.
#[derive(Debug)]
pub struct OptionRow {
    /// The name after `option`.
    pub name: &'static str,
    /// The possible values.
    pub values: &'static [&'static str],
    /// A description in one line.
    pub doc: &'static str,
    /// A base name of models. If a published file does not mention it, the option is on.
    pub unspoken: Option<&'static str>,
    /// Whether answers mention the option if it is set.
    pub told: bool,
    /// For a reading: the subject of the disagreement, and the ambiguous passages.
    pub reading: Option<SourceReading>,
}

/// A disagreement between readings of a source.
#[derive(Debug)]
pub struct SourceReading {
    /// The property on which the readings differ.
    pub on: &'static str,
    /// The ambiguous passages, by document and section.
    pub source: &'static str,
    /// Whether a program contains the constructs that the readings concern.
    bears: fn(&Program) -> bool,
    /// Whether the reading changes the events of a program, and not only the model's relations over
    /// them.
    events: bool,
}

impl SourceReading {
    /// Whether an answer for a program can depend on the reading.
    pub fn bears_on(&self, program: &Program) -> bool {
        (self.bears)(program)
    }
}

fn has(program: &Program, tags: &[Tag]) -> bool {
    program
        .instrs()
        .any(|(_, _, instr)| tags.iter().all(|tag| instr.op.has(*tag)))
}

/// Whether its threads are in several CTAs.
fn is_spread(program: &Program) -> bool {
    let mut places = program.threads.iter().map(|thread| &thread.place);
    places
        .next()
        .is_some_and(|first| places.any(|place| !place.same(first, Scope::Cta)))
}

/// Every option.
pub const OPTIONS: &[OptionRow] = &[
    OptionRow {
        name: "failed-cas",
        values: &["none", "write"],
        doc: "whether a failed compare-and-swap writes nothing or the old value",
        unspoken: None,
        told: false,
        reading: None,
    },
    OptionRow {
        name: "red",
        values: &["no-acquire", "atom"],
        doc: "whether the read half of a reduction can acquire: never (PTX ISA, 8.11), or as an \
            atom does",
        unspoken: None,
        told: false,
        reading: None,
    },
    OptionRow {
        name: "dep",
        values: &["value", "syntactic"],
        doc: "dependencies: only those that a value really carries, or all that the syntax shows",
        unspoken: None,
        told: false,
        reading: None,
    },
    OptionRow {
        name: "rmw",
        values: &["pair", "single"],
        doc: "a read-modify-write: a read and a write, or one event that is both (published files \
            that never say rmw)",
        unspoken: Some("rmw"),
        told: false,
        reading: None,
    },
    OptionRow {
        name: "same-value",
        values: &["racy", "benign"],
        doc: "for the property `race`, two unordered writes that store the same value in every \
            execution: a race, as the text says, or none",
        unspoken: None,
        told: true,
        reading: None,
    },
    OptionRow {
        name: "b128",
        values: &["single", "split"],
        doc: "a strong access of 128 bits: one access, or two unordered accesses of 64 bits each",
        unspoken: None,
        told: false,
        reading: Some(SourceReading {
            on: "whether an access of 128 bits is one scalar",
            source: "PTX ISA 9.4, Memory Consistency Model, Vector Data-types, where scalars have \
                64 bits at most; Packed Data-types",
            bears: |program| {
                let mut accesses = program.instrs().filter(|(_, _, instr)| instr.element.whole);
                accesses.any(|(_, _, instr)| !matches!(instr.op, crate::Op::Rmw { .. }))
            },
            events: true,
        }),
    },
    OptionRow {
        name: "tearing",
        values: &["cells", "none"],
        doc: "whether a weak access to several cells can read only a part of a write (cells), or \
            reads it whole (none)",
        unspoken: None,
        told: false,
        reading: Some(SourceReading {
            on: "whether weak accesses are torn",
            source: "PTX ISA 9.4, Memory Consistency Model, Axioms, Atomicity, which speaks of \
                morally strong operations alone",
            bears: |program| {
                program
                    .instrs()
                    .any(|(_, _, instr)| instr.element.cells > 1 && instr.op.has(Tag::Weak))
            },
            events: false,
        }),
    },
    OptionRow {
        name: "mbarrier",
        values: &["phase", "chain"],
        doc: "an arrival at an mbarrier object synchronizes with a wait through its phase, or \
            through a chain of operations with morally strong links",
        unspoken: None,
        told: false,
        reading: Some(SourceReading {
            on: "whether an arrival of smaller scope cuts off the ones before it in its phase",
            source: "PTX ISA 9.4, mbarrier.test_wait / mbarrier.try_wait; Memory Consistency \
                Model, Observation Order",
            bears: |program| has(program, &[Tag::MbarrierArrive]) && is_spread(program),
            events: false,
        }),
    },
    OptionRow {
        name: "cross-proxy",
        values: &["letter", "strong"],
        doc: "whether strong accesses through the generic and the async proxy can be morally \
            strong: never, or as within one proxy",
        unspoken: None,
        told: false,
        reading: Some(SourceReading {
            on: "whether strong accesses are morally strong across proxies",
            source: "PTX ISA 9.4, Memory Consistency Model, Morally Strong Operations; Strong \
                Proxy Accesses",
            bears: |program| has(program, &[Tag::Asynchronous, Tag::AsyncProxy, Tag::Atomic]),
            events: false,
        }),
    },
    OptionRow {
        name: "async-fence",
        values: &["path", "cta", "thread", "letter"],
        doc: "the accesses that `fence.proxy.async` orders: any with the fence on the path \
            between them; those of its CTA with ordered ones; generic ones of its thread with \
            ordered ones; those of its thread",
        unspoken: None,
        told: false,
        reading: Some(SourceReading {
            on: "the reach of fence.proxy.async",
            source: "PTX ISA 9.4, Memory Consistency Model, Causality Order, which has no clause \
                     for it; membar / fence; \
                     Asynchronous Copy, Async Proxy",
            bears: |program| {
                has(program, &[Tag::ProxyFence, Tag::AsyncProxy])
                    && has(program, &[Tag::Asynchronous, Tag::AsyncProxy])
            },
            events: false,
        }),
    },
    OptionRow {
        name: "async-home",
        values: &["issuer", "destination", "cluster", "one"],
        doc: "accesses of the async proxy that need no fence between them: those begun in one \
            CTA; those that write shared memory of one CTA (or write none and begin there); those \
            begun in one cluster; all",
        unspoken: None,
        told: false,
        reading: Some(SourceReading {
            on: "the thread block of an asynchronous operation",
            source: "PTX ISA 9.4, Memory Consistency Model, Causality Order, second clause",
            bears: |program| {
                has(program, &[Tag::Asynchronous, Tag::AsyncProxy]) && is_spread(program)
            },
            events: false,
        }),
    },
    OptionRow {
        name: "read-wait",
        values: &["completes", "strict"],
        doc: "whether `cp.async.bulk.wait_group.read` brings the proxy fence of completion for \
            the memory that the copies read",
        unspoken: None,
        told: false,
        reading: Some(SourceReading {
            on: "whether a wait for reads brings the implicit proxy fence",
            source: "PTX ISA 9.4, Asynchronous Copy, Async Proxy; cp.async.bulk.wait_group",
            bears: |program| has(program, &[Tag::WaitGroupRead]),
            events: false,
        }),
    },
    OptionRow {
        name: "completion-scope",
        values: &["any", "issuer"],
        doc: "whether a wait learns of a copy whatever its scope, or only if that includes the \
            thread that began the copy",
        unspoken: None,
        told: false,
        reading: Some(SourceReading {
            on: "the scope of a wait for a copy of another CTA",
            source: "PTX ISA 9.4, Asynchronous Copy, Mbarrier-based Completion Mechanism",
            bears: |program| has(program, &[Tag::MbarrierBytes]) && is_spread(program),
            events: false,
        }),
    },
    OptionRow {
        name: "alias-overlap",
        values: &["letter", "fenced"],
        doc: "whether accesses of one location through different addresses can be morally strong: \
              never, or if a fence of aliases is between them",
        unspoken: None,
        told: false,
        reading: Some(SourceReading {
            on: "whether aliases with a fence between them overlap completely",
            source: "PTX ISA 9.4, Memory Consistency Model, Overlap; Aliases; Morally Strong \
                     Operations; and as the barriers between \
                     devices use it that NVIDIA publishes, multimem.red.release.sys, \
                     fence.proxy.alias, ld.acquire.sys",
            bears: |program| has(program, &[Tag::Alias]),
            events: false,
        }),
    },
];

/// An option with a chosen value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    /// Its index in [`OPTIONS`].
    pub option: usize,
    /// The index of its value.
    pub value: usize,
}

impl Setting {
    /// Reads a name and a value.
    ///
    /// # Errors
    /// The row, if only the value is unknown.
    pub fn read(name: &str, value: &str) -> Result<Setting, Option<&'static OptionRow>> {
        let option = OPTIONS
            .iter()
            .position(|row| row.name == name)
            .ok_or(None)?;
        let row = &OPTIONS[option];
        let value = row
            .values
            .iter()
            .position(|v| *v == value)
            .ok_or(Some(row))?;
        Ok(Setting { option, value })
    }

    /// The option's name and value as written.
    pub fn words(self) -> (&'static str, &'static str) {
        let row = &OPTIONS[self.option];
        (row.name, row.values[self.value])
    }

    /// The option.
    pub fn row(self) -> &'static OptionRow {
        &OPTIONS[self.option]
    }

    /// Whether it has another value than the default.
    pub fn is_on(self) -> bool {
        self.value != 0
    }
}

/// A value for each option, by index in [`OPTIONS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OptionValues([usize; OPTIONS.len()]);

impl OptionValues {
    /// Applies settings in order; later ones override earlier ones.
    pub fn of(settings: impl IntoIterator<Item = Setting>) -> OptionValues {
        let mut options = OptionValues::default();
        for setting in settings {
            options.0[setting.option] = setting.value;
        }
        options
    }

    /// Whether an option has a value.
    pub fn has(self, setting: Setting) -> bool {
        self.0[setting.option] == setting.value
    }

    /// Whether a program has the same events under both options; the model may treat them
    /// differently.
    pub fn same_events(self, other: OptionValues) -> bool {
        OPTIONS
            .iter()
            .zip(self.0.iter().zip(&other.0))
            .all(|(row, (a, b))| {
                a == b || !row.reading.as_ref().is_none_or(|reading| reading.events)
            })
    }

    /// `failed-cas = write`: a failed compare-and-swap writes the old value back.
    pub fn failed_cas_write(self) -> bool {
        self.is("failed-cas", "write")
    }

    /// `red = atom`: a reduction is an atomic that drops its result.
    pub fn red_atom(self) -> bool {
        self.is("red", "atom")
    }

    /// `dep = syntactic`.
    pub fn dep_syntactic(self) -> bool {
        self.is("dep", "syntactic")
    }

    /// `same-value = benign`: two writes of the same value are no race.
    pub fn same_value_benign(self) -> bool {
        self.is("same-value", "benign")
    }

    /// `b128 = split`: a strong access of 128 bits makes two events.
    pub fn b128_split(self) -> bool {
        self.is("b128", "split")
    }

    /// `rmw = single`: a read-modify-write makes one event.
    pub fn rmw_single(self) -> bool {
        self.is("rmw", "single")
    }

    fn is(self, name: &str, value: &str) -> bool {
        Setting::read(name, value).is_ok_and(|setting| self.has(setting))
    }
}
