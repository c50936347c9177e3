//! Tests in a C-like dialect: memory kinds and threads.
//!
//! # Sources
//! - OpenCL API specification, *Memory Model: Shared Virtual Memory*: only fine-grained memory with
//!   atomics keeps the widest scope; local memory belongs to a work-group, which limits the scope
//!   of operations on it.

use std::rc::Rc;

use ::toml::de::{DeTable, DeValue};

use super::TestReader;
use super::memory::is_identifier;
use super::template::TemplateChoice;
use crate::document::{Value, span_of};
use crate::isa::clike::{ClikeCode, Env, Language, MOST_PACKETS, Record, wide_integer};
use crate::isa::{Object, SymbolKind, Symbols};
use crate::litmus::build::CThreadDraft;
use crate::litmus::demands::check_block;
use crate::litmus::fronts::{Front, Syntax, language};
use crate::litmus::keys;
use crate::litmus::reading::Reading;
use diag::{Sink, Span};
use program::dialect::AllocationKinds;
use program::{Class, Dialect, GroupSeat, MemoryKind, OpenClMemory, SVM_ATOMICS, Space, Ty};

fn has_region(table: &DeTable<'_>, region: &str) -> bool {
    match table.get("regions").map(Value::get_ref) {
        Some(DeValue::Array(all)) => all.iter().any(|r| r.get_ref().as_str() == Some(region)),
        _ => false,
    }
}

impl TestReader<'_, '_> {
    /// Reads the keys of an object that only C-like dialects have.
    pub(super) fn c_object(
        &mut self,
        dialect: Dialect,
        value: &Value<'_>,
        kind: &mut SymbolKind,
        choice: &TemplateChoice,
    ) {
        let empty = DeTable::new();
        let table = value.get_ref().as_table().unwrap_or(&empty);
        // Host copies depend on how memory was allocated, so PTX tests with a host have these keys,
        // too.
        let (front, allocation) = (Front::of(dialect), dialect.row().allocation);
        let of_host = matches!(front.syntax, Syntax::Ptx) && self.root.contains_key("host");
        let of_host_too = |key: &str| {
            of_host && matches!(kind, SymbolKind::Object(_)) && ["kind", "gpu"].contains(&key)
        };
        for key in front
            .foreign
            .iter()
            .filter(|k| table.contains_key(**k) && !of_host_too(k))
        {
            let span = table.get(*key).map_or(span_of(value), span_of);
            let message = format!("memory of the dialect `{dialect}` has no `{key}`");
            self.sink.error("conflicting-keys", span, message, |d| {
                d.label("expected no such key")
            });
        }
        let SymbolKind::Object(object) = kind else {
            return;
        };
        self.check_class(dialect, value, object);
        if let Syntax::Ptx = front.syntax {
            if of_host {
                self.cuda_memory(table, object, choice);
            }
            return;
        }
        // Without a type, as in `x = 0`, an object is an `int`.
        if object.record.is_none() {
            object.ty.get_or_insert((Ty::S32, span_of(value)));
        }
        if let Some(DeValue::Boolean(atomic)) = table.get("atomic").map(Value::get_ref) {
            object.atomic = Some(*atomic);
        }
        if allocation == AllocationKinds::Cuda {
            self.cuda_memory(table, object, choice);
        }
        if allocation != AllocationKinds::OpenCl {
            return;
        }
        self.opencl_memory(table, object, choice);
    }

    /// Reports classes and atomic types that the dialect does not have.
    fn check_class(&mut self, dialect: Dialect, value: &Value<'_>, object: &Object) {
        let front = Front::of(dialect);
        let table = value.get_ref().as_table();
        let span = table
            .and_then(|table| table.get("type"))
            .map_or(span_of(value), span_of);
        if object.class == Some(Class::Mbarrier) {
            if !matches!(front.syntax, Syntax::Ptx) {
                let message = format!("memory of the dialect `{dialect}` holds no mbarrier object");
                self.sink.error("conflicting-keys", span, message, |d| {
                    d.label("expected a type of this dialect")
                });
            } else if object.space != Space::Shared {
                self.sink.error(
                    "wrong-space",
                    span,
                    "an mbarrier object is in shared memory",
                    |d| {
                        d.label("expected `space = \"shared\"` with it")
                            .note("PTX ISA 9.4, mbarrier")
                    },
                );
            }
        } else if object.class.is_some() && !Language::of(dialect).is_some_and(|l| l.cpp) {
            let message = format!("memory of the dialect `{dialect}` cannot have a class of C++");
            self.sink.error("conflicting-keys", span, message, |d| {
                d.label("expected a type of this dialect")
            });
        } else if object.atomic == Some(true) && front.foreign.contains(&"atomic") {
            // The dialect's accesses would give an atomic type of C neither an order nor a scope.
            let message = format!("memory of the dialect `{dialect}` has no atomic types of C");
            self.sink
                .error("conflicting-keys", span, message, |d| match front.syntax {
                    Syntax::Ptx => d.label("expected a type such as `u32`"),
                    _ => d.label("expected a class").help(
                        "`cuda::atomic<int, cuda::thread_scope_device>`, or \
                         `cuda::std::atomic_int`; or `int`, and `cuda::atomic_ref` in the code",
                    ),
                });
        }
    }

    /// Sets the region and the kind of an OpenCL object.
    fn opencl_memory(&mut self, table: &DeTable<'_>, object: &mut Object, choice: &TemplateChoice) {
        let memory = self.opencl_kind(table, choice);
        if table.contains_key("regions") {
            let (global, local) = (has_region(table, "global"), has_region(table, "local"));
            object.opencl = OpenClMemory {
                global,
                local,
                capped: false,
            };
            object.kind = if global {
                MemoryKind::SvmFineAtomic
            } else {
                MemoryKind::Private
            };
            object.space = Space::Global;
        } else if matches!(object.space, Space::Local | Space::Shared) {
            object.opencl = OpenClMemory {
                local: true,
                capped: true,
                ..OpenClMemory::default()
            };
            object.space = Space::Shared;
            object.kind = MemoryKind::Private;
        } else {
            object.opencl = OpenClMemory {
                global: true,
                ..OpenClMemory::default()
            };
            object.kind = memory;
        }
        self.image_memory(table, object, choice);
        if object.kind == MemoryKind::Pipe {
            self.pipe_memory(table, object);
        }
    }

    /// Reports a pipe that is not supported. Only atomic operations access it.
    fn pipe_memory(&mut self, table: &DeTable<'_>, object: &mut Object) {
        let at = |key: &str| table.get(key).map_or(Span::default(), span_of);
        if table.contains_key("init") {
            let message = "a pipe begins without packets";
            self.sink
                .error("conflicting-keys", at("init"), message, |d| {
                    d.label("expected `size`, the number of packets that it can hold")
                });
        }
        if object.init.len() > MOST_PACKETS {
            let message = format!("pipes of more than {MOST_PACKETS} packets are not supported");
            self.sink.error("unsupported", at("size"), message, |d| {
                d.label("expected fewer")
            });
        }
        if object.atomic == Some(true) || object.boolean {
            let message = "the packets of this pipe are not supported";
            self.sink.error("unsupported", at("type"), message, |d| {
                d.label("expected a number, a vector, or a structure of them")
            });
        }
        object.atomic = Some(true);
    }

    /// Sets the sizes of an image, and reports images that are not supported.
    fn image_memory(&mut self, table: &DeTable<'_>, object: &mut Object, choice: &TemplateChoice) {
        let at = |key: &str| table.get(key).map_or(Span::default(), span_of);
        let [width, height] = ["width", "height"].map(|key| self.count(table, &[key], choice));
        let is_image = matches!(object.kind, MemoryKind::Image { .. });
        for (key, size) in [("width", width), ("height", height)] {
            let needed = if is_image { "width" } else { "kind" };
            if size.is_some() && (!is_image || key == "height" && width.is_none()) {
                let message = match is_image {
                    true => "the height of an image needs its width".to_owned(),
                    false => format!("only images have a {key}"),
                };
                self.sink.error("conflicting-keys", at(key), message, |d| {
                    d.label(format!("expected `{needed}` of an image with it"))
                });
                return;
            }
        }
        if !is_image {
            return;
        }
        let is_word = object.ty.is_some_and(|(ty, _)| ty.bits == 32);
        if !is_word || object.record.is_some() || object.atomic == Some(true) || object.boolean {
            let message = "the pixels of this image are not supported";
            self.sink.error("unsupported", at("kind"), message, |d| {
                d.label("expected the type `int`, `uint` or `float`: one channel of 32 bits")
            });
        }
        let pixels = object.init.len() as u32;
        let mut parts = 1;
        for (key, size) in [("width", width), ("height", height)] {
            let Some(size) = size else {
                continue;
            };
            parts = size.saturating_mul(parts);
            if parts == 0 || !pixels.is_multiple_of(parts) {
                let message = format!("{pixels} pixels are not whole parts of {parts}");
                self.sink.error("bad-number", at(key), message, |d| {
                    d.label("expected a divisor of the size")
                });
                return;
            }
        }
        object.kind = MemoryKind::Image {
            width: width.unwrap_or(0),
            height: height.unwrap_or(0),
        };
    }

    /// The structure that the type names, defined by some code of the test.
    pub(super) fn structure(
        &mut self,
        dialect: Dialect,
        table: &DeTable<'_>,
        choice: &TemplateChoice,
    ) -> Option<Record> {
        let text = self.string(table, "type", choice)?;
        let name = text.as_str().trim();
        let name = name.strip_prefix("struct ").unwrap_or(name).trim();
        let word = name.rsplit(' ').next().unwrap_or(name);
        let name = wide_integer(name).unwrap_or(name);
        let language = Language::of(dialect)
            .filter(|_| is_identifier(name) && !keys::TYPES.contains(&name))?;
        if let Some(unit) = self.of_source() {
            return unit.structure(name, language);
        }
        if let Some(program) = self.program() {
            let mut kernels = program.kernels.iter();
            return kernels.find_map(|unit| unit.structure(name, language));
        }
        let mut found = None;
        for key in ["kernel", "thread", "host", "function"] {
            let all = match self.root.get(key).map(Value::get_ref) {
                Some(DeValue::Table(one)) => vec![one],
                Some(DeValue::Array(all)) => {
                    all.iter().filter_map(|v| v.get_ref().as_table()).collect()
                }
                _ => Vec::new(),
            };
            for table in all {
                let Some(code) = self
                    .string(table, "code", choice)
                    .filter(|_| found.is_none())
                else {
                    continue;
                };
                if code.as_str().contains(word) {
                    let unit = ClikeCode::parse(code, language, &mut Sink::new(self.sink.file()));
                    found = unit.structure(name, language);
                }
            }
        }
        found
    }

    /// How an OpenCL object is allocated: a buffer, unless `kind`, or `svm` as another notation,
    /// says otherwise.
    fn opencl_kind(&mut self, table: &DeTable<'_>, choice: &TemplateChoice) -> MemoryKind {
        let svm = self.word(table, "svm", keys::SVM, choice);
        let kind = self.word(table, "kind", keys::OPENCL_KINDS, choice);
        let place = ["svm", "regions", "space"]
            .into_iter()
            .find_map(|key| Some((key, table.get(key)?)));
        if let (Some(value), Some((other, place))) = (table.get("kind"), place) {
            let message = format!("`kind` and `{other}` both give the kind of this memory");
            self.sink
                .error("conflicting-keys", span_of(value), message, |d| {
                    d.label("expected one of them")
                        .also(span_of(place), "the other one")
                });
        }
        let kind = match (kind, svm) {
            (Some("image"), _) => MemoryKind::Image {
                width: 0,
                height: 0,
            },
            (Some("pipe"), _) => MemoryKind::Pipe,
            (Some("svm-coarse"), _) | (None, Some("coarse")) => MemoryKind::SvmCoarse,
            (Some("svm-fine"), _) | (None, Some("fine")) => MemoryKind::SvmFine,
            (Some("svm-fine-atomic"), _) | (None, Some("fine-atomic")) => MemoryKind::SvmFineAtomic,
            (Some("system"), _) => MemoryKind::SvmSystem,
            (Some("program-scope"), _) => MemoryKind::ProgramScope,
            _ => MemoryKind::Buffer,
        };
        if kind == MemoryKind::SvmFineAtomic && self.lacks(SVM_ATOMICS) {
            let span = table
                .get("kind")
                .or(table.get("svm"))
                .map_or(Span::default(), span_of);
            let message = format!("this machine has no `{SVM_ATOMICS}`, so it has no such memory");
            self.sink.error("conflicting-keys", span, message, |d| {
                d.label("expected `svm-fine`, or a machine that has it")
                    .help(
                        "clSVMAlloc fails with CL_MEM_SVM_ATOMICS on a device without the \
                         capability",
                    )
            });
        }
        kind
    }

    /// Whether the test declares memory by regions, as the published suites do.
    fn as_published(&self) -> bool {
        let memory = self.root.get("memory").and_then(|v| v.get_ref().as_table());
        memory.is_some_and(|m| {
            m.iter().any(|(_, v)| {
                v.get_ref()
                    .as_table()
                    .is_some_and(|t| t.contains_key("regions"))
            })
        })
    }

    pub(super) fn c_threads(
        &mut self,
        dialect: Dialect,
        symbols: &Symbols,
        choice: &TemplateChoice,
    ) -> Vec<CThreadDraft> {
        let mut threads = Vec::new();
        if let Some(kernel) = self.root.get("kernel").and_then(|v| v.get_ref().as_table()) {
            self.c_kernel(dialect, kernel, symbols, choice, &mut threads);
        }
        self.each_thread(
            dialect,
            threads.len(),
            choice,
            |reader, table, name, place| {
                let Some(code) = reader.string(table, "code", choice) else {
                    return;
                };
                let unit = Rc::new(ClikeCode::parse(code, language(dialect), reader.sink));
                let env = reader.env(dialect, table, symbols, choice);
                threads.push(CThreadDraft {
                    name,
                    place,
                    unit,
                    of_kernel: false,
                    env,
                });
            },
        );
        threads
    }

    pub(super) fn env(
        &mut self,
        dialect: Dialect,
        table: &DeTable<'_>,
        symbols: &Symbols,
        choice: &TemplateChoice,
    ) -> Env {
        let regs = self
            .regs(table, symbols, choice)
            .into_iter()
            .map(|r| (r.name, r.init, r.span))
            .collect();
        let capped = dialect.row().regions && !self.as_published();
        let specials = Vec::new();
        let language = language(dialect);
        Env {
            language,
            strict: true,
            capped,
            warp: GroupSeat::ALONE,
            block: GroupSeat::ALONE,
            cluster: Vec::new(),
            specials,
            places_are_registers: false,
            visible: None,
            regs,
            host: None,
        }
    }

    /// Adds the threads of a kernel: one code; they differ in their place and in the built-in
    /// variables.
    fn c_kernel(
        &mut self,
        dialect: Dialect,
        table: &DeTable<'_>,
        symbols: &Symbols,
        choice: &TemplateChoice,
        threads: &mut Vec<CThreadDraft>,
    ) {
        if dialect.row().levels.is_empty() {
            let span = self.root.get("kernel").map_or(Span::default(), span_of);
            let message = format!("the dialect `{dialect}` has no kernels");
            self.sink.error("unsupported-kernel", span, message, |d| {
                d.label("expected one `[[thread]]` for each thread")
            });
            return;
        }
        let grid = self.grid(dialect, table, choice);
        let unit = match self.of_source() {
            Some(unit) => unit,
            None => {
                let Some(code) = self.string(table, "code", choice) else {
                    return;
                };
                Rc::new(ClikeCode::parse(code, language(dialect), self.sink))
            }
        };
        let launched = grid.first().map(|(at, _)| at.range);
        if let (Some(range), Reading::Exact) = (launched, &self.reading)
            && check_block(&unit, language(dialect), &range, self.sink).is_none()
        {
            return;
        }
        let env = self.env(dialect, table, symbols, choice);
        for (at, place) in grid {
            let name = format!("P{}", threads.len());
            let env = Env {
                specials: env.language.specials(at),
                places_are_registers: matches!(self.reading, Reading::Form),
                ..env.clone()
            };
            threads.push(CThreadDraft {
                name,
                place,
                unit: unit.clone(),
                of_kernel: true,
                env,
            });
        }
    }
}
