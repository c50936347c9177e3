//! Resolves names in propositions to registers and locations of a program.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use diag::{MappedText, Sink};
use program::litmus::Observable;
use program::{
    Class, CopyPer, Init, Layout, LocId, Location, LocationKind, MemoryKind, OpenClMemory, Program,
    RegId, Register, Space, ThreadId, Ty,
};

/// The treatment of names that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::litmus) enum Unknown {
    /// Unknown names are errors.
    Reject,
    /// Unknown registers are added, since the code that may write them could not be read. Other
    /// unknown names are errors.
    AddRegisters,
    /// Unknown registers and locations are added; they are 0.
    Add,
}

/// A name, with the suffix that selects a part of it.
pub(super) struct NamePath {
    pub(super) range: Range<usize>,
    /// `[1]`, `.data`, `[1].at[0]`, without white space.
    pub(super) suffix: String,
}

/// The largest number of fields that a message names.
const MOST_FIELDS: usize = 8;

/// Looks up names in a program.
pub(in crate::litmus) struct Resolver<'p> {
    program: &'p mut Program,
    unknown: Unknown,
    threads: HashMap<String, ThreadId>,
    locations: HashMap<String, LocId>,
    /// Filled for a thread when a proposition first names it.
    regs: HashMap<ThreadId, HashMap<String, RegId>>,
}

impl<'p> Resolver<'p> {
    pub(in crate::litmus) fn new(program: &'p mut Program, unknown: Unknown) -> Resolver<'p> {
        let threads = program.threads.iter().enumerate();
        let threads = threads
            .map(|(i, t)| (t.name.clone(), ThreadId(i as u16)))
            .collect();
        let locations = program.locations.iter().enumerate();
        let locations = locations
            .flat_map(|(i, l)| {
                l.also
                    .iter()
                    .chain([&l.name])
                    .map(move |name| (name.clone(), LocId(i as u16)))
            })
            .collect();
        Resolver {
            program,
            unknown,
            threads,
            locations,
            regs: HashMap::new(),
        }
    }

    /// Finds a thread by its name, `P1` or `1`.
    pub(super) fn thread(
        &mut self,
        text: &MappedText,
        range: Range<usize>,
        sink: &mut Sink,
    ) -> Option<ThreadId> {
        let word = &text.as_str()[range.clone()];
        if let Some(id) = self.threads.get(word) {
            return Some(*id);
        }
        let number = word.strip_prefix('P').unwrap_or(word);
        if let Some(i) = number
            .parse::<u16>()
            .ok()
            .filter(|i| usize::from(*i) < self.program.threads.len())
        {
            return Some(ThreadId(i));
        }
        let names: Vec<&str> = self
            .program
            .threads
            .iter()
            .map(|t| t.name.as_str())
            .collect();
        sink.error(
            "unknown-thread",
            text.span(range),
            format!("there is no thread `{word}`"),
            |d| {
                d.label(match names.as_slice() {
                    [] => "this test has no threads".to_string(),
                    [only] => format!("the only thread is `{only}`"),
                    [first, .., last] => format!("the threads are `{first}` to `{last}`"),
                })
                .did_you_mean(word, names)
            },
        );
        None
    }

    fn registers(&mut self, thread: ThreadId) -> &mut HashMap<String, RegId> {
        let regs = &self.program.threads[usize::from(thread.0)].regs;
        self.regs.entry(thread).or_insert_with(|| {
            regs.iter()
                .enumerate()
                .map(|(i, r)| (r.name.clone(), RegId(i as u16)))
                .collect()
        })
    }

    /// Resolves `thread:name`: a register, or else the thread's copy of a location.
    pub(super) fn of_thread(
        &mut self,
        thread: ThreadId,
        text: &MappedText,
        named: NamePath,
        sink: &mut Sink,
    ) -> Option<(Observable, Ty)> {
        let (range, whole) = (named.range.clone(), named.suffix.is_empty());
        let written = &text.as_str()[range.clone()];
        let name = written.strip_prefix('%').unwrap_or(written);
        if whole && let Some(id) = self.registers(thread).get(name).copied() {
            let ty = self.program.thread(thread).regs[usize::from(id.0)].ty;
            return Some((Observable::Reg(thread, id), ty));
        }
        if self.location(name).is_some() {
            return self.memory(Some(thread), text, named, sink);
        }
        let regs = &mut self.program.threads[usize::from(thread.0)].regs;
        if let (false, true, Ok(id)) = (
            self.unknown == Unknown::Reject,
            whole,
            u16::try_from(regs.len()),
        ) {
            regs.push(Register {
                name: name.to_string(),
                ty: Ty::WORD,
                init: Init::Int(0),
            });
            self.registers(thread).insert(name.to_string(), RegId(id));
            return Some((Observable::Reg(thread, RegId(id)), Ty::WORD));
        }
        let owner = self.program.thread(thread);
        let message = format!("thread `{}` has no register `{written}`", owner.name);
        sink.error("unknown-register", text.span(range), message, |d| {
            d.label("expected a register of this thread")
                .did_you_mean(name, owner.regs.iter().map(|r| r.name.as_str()))
        });
        None
    }

    /// The location that a word names, and the field names after it.
    fn location<'t>(&self, word: &'t str) -> Option<(LocId, &'t str)> {
        let (name, fields) = match self.locations.contains_key(word) {
            true => (word, ""),
            false => word.split_at(word.find('.')?),
        };
        self.locations.get(name).map(|id| (*id, fields))
    }

    /// Resolves a cell of an existing location.
    pub(super) fn element(
        &mut self,
        text: &MappedText,
        named: &NamePath,
        sink: &mut Sink,
    ) -> Option<(LocId, u32)> {
        let range = named.range.clone();
        let name = &text.as_str()[range.clone()];
        let known = self.location(name);
        let (id, fields) = match known.or_else(|| self.add_location(name).map(|id| (id, ""))) {
            Some(found) => found,
            None => {
                sink.error(
                    "unknown-location",
                    text.span(range),
                    format!("there is no location `{name}`"),
                    |d| {
                        let mut names: Vec<&str> =
                            self.locations.keys().map(String::as_str).collect();
                        names.sort_unstable();
                        let d = d.label(
                            "expected a location, or a register with its thread as in `P0:r0`",
                        );
                        d.did_you_mean(name, names)
                    },
                );
                return None;
            }
        };
        let (layout, cells) = match &self.program.location(self.program.object(id)).kind {
            LocationKind::Object { layout, init, .. } => (layout, init.len()),
            LocationKind::Alias { .. } => return None,
        };
        let suffix = format!("{fields}{}", named.suffix);
        let found = layout.find(&suffix, cells);
        if found.is_none() {
            let name = name.strip_suffix(fields).unwrap_or(name);
            let count = cells / layout.cells();
            match suffix
                .strip_prefix('[')
                .and_then(|s| s.strip_suffix(']'))
                .filter(|s| !s.contains([']', '.']))
            {
                Some(index) => {
                    let has = if count == 1 {
                        "one element".to_string()
                    } else {
                        format!("{count} elements")
                    };
                    let message = format!("`{name}` has {has}, this is number {index}");
                    sink.error("out-of-bounds", text.span(range), message, |d| {
                        d.label("counted from 0")
                    });
                }
                None => self.no_field(id, text, named, &suffix, sink),
            }
        }
        found.map(|cell| (id, cell))
    }

    /// Reports a suffix that is not a field of the named location.
    fn no_field(
        &self,
        id: LocId,
        text: &MappedText,
        named: &NamePath,
        suffix: &str,
        sink: &mut Sink,
    ) {
        let LocationKind::Object { layout, init, .. } =
            &self.program.location(self.program.object(id)).kind
        else {
            return;
        };
        let name = &self.program.location(id).name;
        let known: Vec<String> = (0..init.len() as u32)
            .map(|cell| format!("{name}{}", layout.suffix(cell, init.len())))
            .take(MOST_FIELDS)
            .collect();
        let message = match (suffix, layout.cells()) {
            (_, 1) => format!("`{name}{suffix}`: `{name}` is not a structure"),
            ("", _) => format!("`{name}` has more than one value"),
            _ => format!("`{name}` has no `{suffix}`"),
        };
        sink.error("no-field", text.span(named.range.clone()), message, |d| {
            let more = if init.len() > known.len() {
                ", …"
            } else {
                ""
            };
            d.label(format!("expected one of `{}`{more}", known.join("`, `")))
                .did_you_mean(&format!("{name}{suffix}"), known.iter().map(String::as_str))
        });
    }

    fn add_location(&mut self, name: &str) -> Option<LocId> {
        let id = LocId(
            u16::try_from(self.program.locations.len())
                .ok()
                .filter(|_| self.unknown == Unknown::Add)?,
        );
        let (init, opencl, kind) = (
            vec![Init::Int(0)],
            OpenClMemory::default(),
            MemoryKind::default(),
        );
        let kind = LocationKind::Object {
            layout: Layout::from(Ty::WORD),
            init,
            space: Space::Global,
            atomic: false,
            opencl,
            kind,
            class: None,
        };
        self.program.locations.push(Location {
            name: name.to_string(),
            also: Vec::new(),
            kind,
        });
        self.locations.insert(name.to_string(), id);
        Some(id)
    }

    /// The final value of an element, in the copy that `viewer` sees.
    pub(super) fn memory(
        &mut self,
        viewer: Option<ThreadId>,
        text: &MappedText,
        named: NamePath,
        sink: &mut Sink,
    ) -> Option<(Observable, Ty)> {
        let (loc, index) = self.element(text, &named, sink)?;
        let range = named.range.clone();
        let field = self.program.layout(loc).field(index);
        let (ty, written) = (
            field.ty,
            format!("{}{}", &text.as_str()[range.clone()], named.suffix),
        );
        if !written.ends_with(&field.path) {
            let name = &self.program.location(loc).name;
            let suffix = written
                .strip_prefix(name.as_str())
                .unwrap_or("")
                .to_string();
            self.no_field(loc, text, &named, &suffix, sink);
            return None;
        }
        let object = &self.program.location(self.program.object(loc)).kind;
        if let LocationKind::Object {
            space: Space::Register,
            ..
        } = object
        {
            let message = format!("`{written}` is held in registers, and has no final value");
            sink.error("kept-in-registers", text.span(range), message, |d| {
                d.label("local memory that every thread accesses at known places")
                    .help(format!(
                        "the registers are called `P0:{}$0`, after the byte that each begins at; \
                         or name it in the test's own condition",
                        self.program.location(loc).name
                    ))
            });
            return None;
        }
        let is_barrier = matches!(
            object,
            LocationKind::Object {
                class: Some(Class::Barrier(_)),
                ..
            }
        );
        if is_barrier || self.program.is_mbarrier(loc, index) {
            sink.error(
                "wrong-operand",
                text.span(range),
                "the state of a barrier is not a value",
                |d| d.label("expected a register or another location"),
            );
            return None;
        }
        let copied = self.program.copied(loc);
        if viewer.is_none() && self.copies(copied) > 1 {
            let name = &written;
            let owner = match copied {
                CopyPer::ByCta => "CTA",
                CopyPer::ByDevice => "device",
                _ => "thread",
            };
            let message = format!("every {owner} has its own copy of `{name}`");
            sink.error("ambiguous-copy", text.span(range.clone()), message, |d| {
                d.label("whose copy?")
                    .help(format!("write `P0:{name}` for the copy that P0 sees"))
            });
            return None;
        }
        Some((Observable::Mem { loc, index, viewer }, ty))
    }

    /// The number of copies of an object.
    fn copies(&self, copied: CopyPer) -> usize {
        let places = || {
            self.program
                .threads
                .iter()
                .map(|t| &t.place)
                .filter(|p| !p.host)
        };
        match copied {
            CopyPer::Not => 1,
            CopyPer::ByThread => self.program.threads.len(),
            CopyPer::ByDevice => places().map(|p| p.gpu).collect::<HashSet<_>>().len(),
            CopyPer::ByCta => places()
                .map(|p| (p.gpu, p.domain, p.queue_family, p.cta))
                .collect::<HashSet<_>>()
                .len(),
        }
    }
}
