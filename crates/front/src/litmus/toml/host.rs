//! Reads host programs: `[[host]]`, `[[kernel]]`, `[[function]]`, `[streams]`, `[queues]`,
//! `events`.
//!
//! Declarations become [`Names`]; host threads are lowered with them. [`super::super::host`] turns
//! their calls of the runtime into commands.

use std::collections::HashMap;
use std::rc::Rc;

use ::toml::de::{DeTable, DeValue};

use super::TestReader;
use super::memory::is_identifier;
use super::template::{TemplateChoice, tables};
use crate::document::{Value, entries, span_of};
use crate::isa::clike::host::Names;
use crate::isa::clike::{ClikeCode, Env};
use crate::isa::ptx;
use crate::isa::{SymbolKind, Symbols};
use crate::litmus::build::{CThreadDraft, declare_votes};
use crate::litmus::fronts::{Front, Syntax, language};
use crate::litmus::host::{HostDeclarations, PtxKernels, Routine, RoutineCode, assemble};
use crate::litmus::keys;
use crate::litmus::places::host_place;
use diag::{MappedText, Sink, Span};
use program::dialect::Runtime;
use program::host::{Lane, LaneId, LaneKind};
use program::{Dialect, Machine, MemoryKind, Program};

/// Advice for code in a language that is not allowed there.
const WRONG_HOST: &str = "the host of a test in PTX is in CUDA C++: only kernels are in PTX";
const WRONG_KERNEL: &str =
    "this looks like PTX: with `dialect = \"ptx\"`, kernels are in PTX, the host in CUDA C++";
const C_KERNEL: &str =
    "kernels are in PTX here; with `dialect = \"cuda\"`, they are in CUDA C++, as the host is";
const CALLS_IN_KERNEL: &str =
    "kernels are in PTX here, and only `[[host]]` threads call the runtime";

/// The name of the default context.
const CONTEXT: &str = "context";

/// Adds a stream of the runtime in the default context.
fn add_stream(
    declared: &mut HostDeclarations,
    name: String,
    kind: LaneKind,
    device: u32,
) -> LaneId {
    let id = LaneId(declared.lanes.len() as u16);
    declared.lanes.push(Lane { name, kind, device });
    declared.contexts.push(CONTEXT.to_string());
    id
}

impl TestReader<'_, '_> {
    /// Reads a program with host threads. `assembly`: settings for reading kernels in PTX.
    pub(super) fn host_program(
        &mut self,
        dialect: Dialect,
        mut symbols: Symbols,
        assembly: ptx::PtxEnv,
        choice: &TemplateChoice,
    ) -> Program {
        let errors = self.sink.errors();
        self.host_keys(dialect);
        // If the dialect has no host programs, that was reported; the rest is still read, for
        // further errors.
        let runtime = dialect.row().runtime.unwrap_or(Runtime::OpenCl);
        let mut declared = HostDeclarations {
            runtime,
            ..HostDeclarations::default()
        };
        if let Syntax::Ptx = Front::of(dialect).syntax {
            declared.assembly = Some(PtxKernels {
                units: Vec::new(),
                env: assembly,
            });
        }
        self.lanes(runtime, &symbols, choice, &mut declared);
        let names = self.host_names(&symbols, choice, &mut declared);
        self.host_threads(&names, &symbols, choice, &mut declared);
        let units = declared.kernels.iter().filter_map(|k| match &k.text {
            RoutineCode::C(unit, _) => Some(&**unit),
            RoutineCode::Ptx { .. } => None,
        });
        declare_votes(dialect, units, &mut symbols, self.sink);
        if self.sink.errors() > errors {
            return Program {
                dialect,
                threads: Vec::new(),
                locations: symbols.into_locations(),
                machine: Machine::full(),
                host: None,
                assumed: Vec::new(),
                group_copies: Vec::new(),
            };
        }
        assemble(declared, symbols, self.sink)
    }

    /// Declares events, kernels and functions. Returns all names that host threads can use.
    fn host_names(
        &mut self,
        symbols: &Symbols,
        choice: &TemplateChoice,
        declared: &mut HostDeclarations,
    ) -> Names {
        let runtime = declared.runtime;
        let mut names = Names {
            lanes: declared
                .lanes
                .iter()
                .enumerate()
                .map(|(i, l)| (l.name.clone(), LaneId(i as u16)))
                .collect(),
            contexts: declared.contexts.clone(),
            ..Names::default()
        };
        names.contexts.push(CONTEXT.to_string());
        declared
            .contexts
            .resize(declared.lanes.len(), CONTEXT.to_string());
        if runtime == Runtime::Cuda {
            for device in 0..self.devices(symbols, declared) {
                let name = "the legacy default stream".to_string();
                names
                    .null
                    .push(add_stream(declared, name, LaneKind::Null, device));
            }
        }
        names.events = self.event_names();
        declared.events = names.events.clone();
        declared.kernels = self.codes(runtime, "kernel", symbols, &mut declared.assembly, choice);
        declared.functions = self.codes(runtime, "function", symbols, &mut None, choice);
        names.kernels = declared.kernels.iter().map(|k| k.name.clone()).collect();
        names.functions = declared.functions.iter().map(|k| k.name.clone()).collect();
        let inside = Rc::new(Names {
            inside: true,
            ..names.clone()
        });
        let of_kernel = Rc::new(Names {
            of_kernel: true,
            ..names.clone()
        });
        for (codes, names) in [
            (&mut declared.functions, inside),
            (&mut declared.kernels, of_kernel),
        ] {
            for code in codes {
                if let RoutineCode::C(_, env) = &mut code.text {
                    env.host = Some(names.clone());
                }
            }
        }
        names
    }

    fn event_names(&mut self) -> Vec<String> {
        let mut events = Vec::new();
        for (text, span) in self.names("events") {
            if events.contains(&text) {
                self.sink.error(
                    "duplicate-name",
                    span,
                    format!("two events are called `{text}`"),
                    |d| d.label("the second one"),
                );
            }
            events.push(text);
        }
        events
    }

    /// Reports kernels and functions with the same name. Returns all their names.
    fn routine_names(&mut self, declared: &HostDeclarations) -> HashMap<String, Span> {
        let mut taken: HashMap<String, Span> = HashMap::new();
        for code in declared.kernels.iter().chain(&declared.functions) {
            if let Some(first) = taken.insert(code.name.clone(), code.span) {
                let message = format!("two kernels or functions are called `{}`", code.name);
                self.sink.error("duplicate-name", code.span, message, |d| {
                    d.label("the second one").also(first, "the first one")
                });
            }
        }
        taken
    }

    /// Reads the host threads.
    fn host_threads(
        &mut self,
        names: &Names,
        symbols: &Symbols,
        choice: &TemplateChoice,
        declared: &mut HostDeclarations,
    ) {
        let dialect = declared.runtime.dialect();
        let mut taken = self.routine_names(declared);
        for (number, table) in tables(self.root, "host").into_iter().enumerate() {
            let name = self
                .string(table, "name", choice)
                .map(|t| (t.as_str().to_string(), t.span(0..t.as_str().len())));
            let (name, span) = name.unwrap_or((format!("H{number}"), Span::default()));
            self.code_name(&name, span);
            if let Some(first) = taken.insert(name.clone(), span) {
                self.sink.error(
                    "duplicate-thread",
                    span,
                    format!("`{name}` is the name of something else"),
                    |d| {
                        d.label("expected an unused name")
                            .also(first, "the other one")
                    },
                );
            }
            let own = self.program().and_then(|p| p.threads.get(number).cloned());
            let code = own.or_else(|| self.string(table, "code", choice));
            let Some(code) = code else { continue };
            let mut names = names.clone();
            if declared.runtime == Runtime::Cuda && code.as_str().contains("cudaStreamPerThread") {
                let stream = format!("the default stream of {name}");
                let kind = LaneKind::Stream { blocking: true };
                names.per_thread = Some(add_stream(declared, stream, kind, 0));
            }
            let in_ptx = declared.assembly.is_some();
            let unit = Rc::new(self.c_code(dialect, code, in_ptx, WRONG_HOST));
            let env = Env {
                host: Some(Rc::new(names)),
                ..self.env(dialect, table, symbols, choice)
            };
            declared.hosts.push(CThreadDraft {
                name,
                place: host_place(number),
                unit,
                of_kernel: false,
                env,
            });
        }
    }

    /// Reports keys of host programs in a test without a host.
    pub(super) fn without_host(&mut self) {
        let list = self
            .root
            .get("kernel")
            .filter(|k| k.get_ref().as_array().is_some());
        let others =
            ["function", "streams", "queues", "events"].map(|key| (key, self.root.get(key)));
        for (key, value) in [("[[kernel]]", list)].into_iter().chain(others) {
            let Some(value) = value else { continue };
            let message = format!("`{key}` has no effect without a host");
            self.sink
                .error("conflicting-keys", span_of(value), message, |d| {
                    d.label("expected a `[[host]]` thread that uses it")
                });
        }
    }

    /// Reports keys that conflict with a host program or with this dialect.
    fn host_keys(&mut self, dialect: Dialect) {
        let at = |key: &str| self.root.get(key).map_or(Span::default(), span_of);
        if dialect.row().runtime.is_none() {
            let message = format!("host programs in the dialect `{dialect}` are not supported");
            self.sink.error("unsupported", at("host"), message, |d| {
                d.label(
                    "expected `dialect = \"cuda\"`, `dialect = \"opencl\"` or `dialect = \"ptx\"`",
                )
            });
        }
        let foreign: &[(&str, &str)] = match dialect.row().runtime {
            Some(Runtime::Cuda) => &[("queues", "CUDA has streams: declare `[streams]`")],
            Some(Runtime::OpenCl) => &[
                ("streams", "OpenCL has command queues: declare `[queues]`"),
                (
                    "events",
                    "an event is named by the call that makes it, as in `&e`",
                ),
            ],
            None => &[],
        };
        let never = [(
            "thread",
            "kernels run where the host launches them: declare `[[kernel]]`",
        )];
        for (key, help) in foreign
            .iter()
            .chain(&never)
            .filter(|k| self.root.contains_key(k.0))
        {
            let message = format!("`{key}` does not go with `host` here");
            self.sink.error("conflicting-keys", at(key), message, |d| {
                d.label("expected no such key").help(*help)
            });
        }
        if let Some(kernel) = self
            .root
            .get("kernel")
            .filter(|k| k.get_ref().as_table().is_some())
        {
            self.sink.error(
                "conflicting-keys",
                span_of(kernel),
                "no thread launches this kernel",
                |d| {
                    d.label("expected `[[kernel]]` with a `name`").note(
                        "in a host program, calls launch kernels by name, with a grid and a block",
                    )
                },
            );
        }
    }

    /// Reads streams and queues.
    fn lanes(
        &mut self,
        runtime: Runtime,
        symbols: &Symbols,
        choice: &TemplateChoice,
        declared: &mut HostDeclarations,
    ) {
        let key = if runtime == Runtime::Cuda {
            "streams"
        } else {
            "queues"
        };
        let Some(table) = self.root.get(key).and_then(|v| v.get_ref().as_table()) else {
            return;
        };
        for (name, span, value) in entries(table) {
            self.code_name(name, span);
            if symbols.find(name).is_some() {
                self.sink.error(
                    "duplicate-name",
                    span,
                    format!("`{name}` is the name of a location"),
                    |d| d.label("expected an unused name"),
                );
            }
            let empty = DeTable::new();
            let given = value.get_ref().as_table().unwrap_or(&empty);
            let word = match value.get_ref() {
                DeValue::Table(t) => {
                    let (key, words) = if runtime == Runtime::Cuda {
                        ("kind", keys::STREAMS)
                    } else {
                        ("order", keys::QUEUES)
                    };
                    self.word(t, key, words, choice).map(str::to_string)
                }
                _ => self.text(value, choice).map(|t| t.as_str().to_string()),
            };
            let kind = match (runtime, word.as_deref()) {
                (Runtime::Cuda, word) => LaneKind::Stream {
                    blocking: word != Some("non-blocking"),
                },
                (_, Some("out-of-order")) => LaneKind::OutOfOrder,
                _ => LaneKind::InOrder,
            };
            let device = self.count(given, &["device"], choice).unwrap_or(0);
            let context = self.string(given, "context", choice);
            declared
                .contexts
                .push(context.map_or(CONTEXT.to_string(), |t| t.as_str().to_string()));
            declared.lanes.push(Lane {
                name: name.to_string(),
                kind,
                device,
            });
        }
    }

    /// The number of devices, from those of streams and of memory.
    fn devices(&self, symbols: &Symbols, declared: &HostDeclarations) -> u32 {
        let of_memory = symbols
            .names()
            .filter_map(|n| symbols.find(n))
            .filter_map(|id| match &symbols.get(id).kind {
                SymbolKind::Object(object) => match object.kind {
                    MemoryKind::Device(gpu) => Some(gpu),
                    _ => None,
                },
                SymbolKind::Alias { .. } => None,
            });
        let last = declared
            .lanes
            .iter()
            .map(|l| l.device)
            .chain(of_memory)
            .max()
            .unwrap_or(0);
        // No machine has more devices; a larger number is a slip and should not cost memory.
        last.min(63) + 1
    }

    /// Reads kernels or functions. Code in PTX goes to `assembly`.
    fn codes(
        &mut self,
        runtime: Runtime,
        key: &str,
        symbols: &Symbols,
        assembly: &mut Option<PtxKernels>,
        choice: &TemplateChoice,
    ) -> Vec<Routine> {
        let mut all = Vec::new();
        for (number, table) in tables(self.root, key).into_iter().enumerate() {
            let own = self.program().map(|program| match key {
                "kernel" => (program.kernels.get(number).cloned(), None),
                _ => (None, program.functions.get(number).cloned()),
            });
            let (of_file, own) = own.unwrap_or_default();
            let code = own.or_else(|| self.string(table, "code", choice));
            let (Some(name), Some(code)) = (self.string(table, "name", choice), code) else {
                continue;
            };
            let span = name.span(0..name.as_str().len());
            self.code_name(name.as_str(), span);
            let text = match assembly {
                Some(assembly) => {
                    assembly.units.push(self.ptx_code(code));
                    RoutineCode::Ptx {
                        unit: assembly.units.len() - 1,
                        regs: self.regs(table, symbols, choice),
                    }
                }
                None => {
                    let may_be_ptx = key == "kernel" && runtime == Runtime::Cuda;
                    let unit = match of_file {
                        Some(unit) => unit,
                        None => {
                            let dialect = runtime.dialect();
                            self.c_code(dialect, code, may_be_ptx, WRONG_KERNEL).into()
                        }
                    };
                    RoutineCode::C(unit, self.env(runtime.dialect(), table, symbols, choice))
                }
            };
            let Some(layout) = self.layout(table, choice) else {
                continue;
            };
            let initializer = self.of_opencl(runtime, table, ("initializer", "initialisers"), span);
            let cleanup = self.of_opencl(runtime, table, ("cleanup", "clean-up"), span);
            let uniform = self.uniform(runtime.dialect(), table);
            let programmatic = table
                .get("programmatic")
                .and_then(|v| v.get_ref().as_bool())
                .unwrap_or(false);
            if programmatic && runtime == Runtime::OpenCl {
                self.sink.error(
                    "unsupported",
                    span,
                    "OpenCL has no dependent launches",
                    |d| d.label("expected no `programmatic`"),
                );
            }
            let name = name.as_str().to_string();
            all.push(Routine {
                name,
                span,
                text,
                layout,
                initializer,
                cleanup,
                uniform,
                programmatic,
            });
        }
        all
    }

    /// Whether a kernel has a key that only OpenCL has.
    fn of_opencl(
        &mut self,
        runtime: Runtime,
        table: &DeTable<'_>,
        key: (&str, &str),
        at: Span,
    ) -> bool {
        let (key, purpose) = key;
        let is_set = table.get(key).and_then(|value| value.get_ref().as_bool());
        let is_set = is_set.unwrap_or(false);
        if is_set && runtime != Runtime::OpenCl {
            let message = format!("only OpenCL has kernels of {purpose}");
            self.sink.error("conflicting-keys", at, message, |d| {
                d.label(format!("expected no `{key}`"))
            });
        }
        is_set
    }

    /// Parses code in a C-like dialect. If that fails and the code reads as PTX (`may_be_ptx`),
    /// adds `advice`.
    fn c_code(
        &mut self,
        dialect: Dialect,
        code: MappedText,
        may_be_ptx: bool,
        advice: &str,
    ) -> ClikeCode {
        let (kept, errors) = (self.sink.kept(), self.sink.errors());
        let text = may_be_ptx.then(|| code.clone());
        let unit = ClikeCode::parse(code, language(dialect), self.sink);
        if let (Some(text), true) = (text, self.sink.errors() > errors) {
            let mut other = Sink::new(self.sink.file());
            ptx::PtxCode::parse(text, &mut other);
            if other.errors() == 0 {
                self.sink.advise(kept, advice);
            }
        }
        unit
    }

    /// Parses code in PTX. If that fails, adds advice if it reads as CUDA C++ or calls the runtime.
    fn ptx_code(&mut self, code: MappedText) -> ptx::PtxCode {
        let (kept, errors) = (self.sink.kept(), self.sink.errors());
        let text = code.clone();
        let unit = ptx::PtxCode::parse(code, self.sink);
        if self.sink.errors() > errors {
            let mut other = Sink::new(self.sink.file());
            ClikeCode::parse(text.clone(), language(Dialect::Cuda), &mut other);
            if ["cuda", "<<<"]
                .iter()
                .any(|call| text.as_str().contains(call))
            {
                self.sink.advise(kept, CALLS_IN_KERNEL);
            } else if other.errors() == 0 {
                self.sink.advise(kept, C_KERNEL);
            }
        }
        unit
    }

    fn code_name(&mut self, name: &str, span: Span) {
        if !is_identifier(name) {
            self.sink.error(
                "bad-name",
                span,
                format!("`{name}` cannot be a name"),
                |d| d.label("expected letters, digits and `_`, not starting with a digit"),
            );
        }
    }

    /// The names in a list, with their places.
    fn names(&mut self, key: &str) -> Vec<(String, Span)> {
        let Some(DeValue::Array(items)) = self.root.get(key).map(Value::get_ref) else {
            return Vec::new();
        };
        let all: Vec<(String, Span)> = items
            .iter()
            .filter_map(|v| Some((v.get_ref().as_str()?.to_string(), span_of(v))))
            .collect();
        for (name, span) in &all {
            self.code_name(name, *span);
        }
        all
    }
}
