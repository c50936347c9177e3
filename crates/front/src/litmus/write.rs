//! Writes a test as TOML text, for `import`.
//!
//! # Invariants
//! - The text reads back to the same program, condition, filter and expectations.
//! - Keys with default values are left out; threads, registers and locations keep their order.

use std::collections::HashSet;
use std::fmt::{self, Display, Write};

use super::fronts::{Front, Syntax, printed};
use crate::isa::clike::class_name;
use diag::Diagnostic;
use program::dialect::AllocationKinds;
use program::litmus::{Expectation, LitmusTest, Quantifier, Reachability, RunExpectation};
use program::litmus::{show, show_observable};
use program::{
    ATTRIBUTES, BarrierNaming, Class, Dialect, Field, Init, Layout, Location, LocationKind,
    Machine, MemoryKind, OpenClMemory, Place, Program, Proxy, RegId, Scope, Space, Tag, Thread,
    ThreadId, Ty, mbarrier,
};

/// An object under `[memory]`: an inline table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ObjectTable(Vec<(&'static str, String)>);

impl ObjectTable {
    /// Adds a key.
    pub(super) fn with(mut self, key: &'static str, value: impl Display) -> ObjectTable {
        self.0.push((key, value.to_string()));
        self
    }

    /// Adds a key with a string.
    pub(super) fn with_text(self, key: &'static str, text: &str) -> ObjectTable {
        self.with(key, quote(text))
    }

    /// Adds the number of elements, if there are several.
    pub(super) fn of_size(self, count: u64) -> ObjectTable {
        match count {
            0 | 1 => self,
            _ => self.with("size", count),
        }
    }

    /// Adds the state space, unless it is the default one.
    pub(super) fn in_space(self, space: &str) -> ObjectTable {
        match space {
            "global" => self,
            _ => self.with_text("space", space),
        }
    }
}

impl Display for ObjectTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.0.iter().map(|(key, value)| format!("{key} = {value}"));
        write!(f, "{{ {} }}", list(keys))
    }
}

/// The test as TOML text.
///
/// # Errors
/// If the format cannot express the program.
pub fn to_toml(test: &LitmusTest) -> Result<String, Box<Diagnostic>> {
    let mut out = String::new();
    let program = &test.program;
    if program.host.is_some() {
        let message = format!(
            "`{}` is a host program, and Fencepost cannot write those",
            test.name
        );
        return Err(Box::new(Diagnostic::plain("cannot-write", message)));
    }
    let _ = writeln!(out, "name = {}", quote(&test.name));
    for (key, text) in [("doc", &test.doc), ("source", &test.source)] {
        if !text.is_empty() {
            let _ = writeln!(out, "{key} = {}", quote(text));
        }
    }
    if !test.tags.is_empty() {
        let _ = writeln!(out, "tags = [{}]", list(test.tags.iter().map(|t| quote(t))));
    }
    if program.dialect != Dialect::default() {
        let _ = writeln!(out, "dialect = {}", quote(program.dialect.name()));
    }
    let ops = || program.instrs().map(|(_, _, i)| &i.op);
    let has_instances = ops().any(|op| {
        op.barrier()
            .is_some_and(|b| matches!(b.naming, BarrierNaming::Instance { .. }))
    });
    if matches!(Front::of(program.dialect).syntax, Syntax::Ptx) && has_instances {
        out.push_str("barriers = \"litmus\"\n");
    }
    if ops().any(|op| op.has(Tag::Reduction) && op.has(Tag::Acquire)) {
        out.push_str("reductions = \"litmus\"\n");
    }
    if let Some(condition) = &test.condition {
        let _ = writeln!(out, "condition = {}", quote(&show(condition, program)));
    }
    match test.quantifier {
        Quantifier::NotExists => out.push_str("quantifier = \"~exists\"\n"),
        Quantifier::ForAll => out.push_str("quantifier = \"forall\"\n"),
        Quantifier::Exists | Quantifier::None => {}
    }
    if let Some(filter) = &test.filter {
        let _ = writeln!(out, "filter = {}", quote(&show(filter, program)));
    }
    if !test.observe.is_empty() {
        let observed = test
            .observe
            .iter()
            .map(|o| quote(&show_observable(*o, program)));
        let _ = writeln!(out, "observe = [{}]", list(observed));
    }
    if !test.options.is_empty() {
        out.push_str("\n[options]\n");
        for (key, value) in test.options.iter().map(|o| o.words()) {
            let _ = writeln!(out, "{key} = {}", quote(value));
        }
    }
    write_machine(&program.machine, &mut out);
    if !program.locations.is_empty() {
        out.push_str("\n[memory]\n");
        for location in &program.locations {
            let _ = writeln!(
                out,
                "{} = {}",
                toml_key(&location.name),
                memory(location, program)
            );
            for name in &location.also {
                let _ = writeln!(
                    out,
                    "{} = {{ at = {} }}",
                    toml_key(name),
                    quote(&location.name)
                );
            }
        }
    }
    for id in program.thread_ids() {
        write_thread(test, id, &mut out)?;
    }
    if !test.expect.is_empty() {
        out.push_str("\n[expect]\n");
        for (model, expectation) in &test.expect {
            let _ = writeln!(out, "{} = {{ {} }}", toml_key(model), expected(expectation));
        }
    }
    test.runs.iter().for_each(|run| write_run(run, &mut out));
    Ok(out)
}

fn write_machine(machine: &Machine, out: &mut String) {
    if *machine == Machine::full() {
        return;
    }
    out.push_str("\n[machine]\n");
    for attribute in ATTRIBUTES.iter().filter(|a| !machine.supports(a)) {
        let _ = writeln!(out, "{attribute} = false");
    }
    if let Some(pairs) = &machine.p2p {
        let pairs = list(pairs.iter().map(|(a, b)| format!("[{a}, {b}]")));
        let _ = writeln!(out, "p2pNativeAtomicSupported = [{pairs}]");
    }
}

fn write_run(run: &RunExpectation, out: &mut String) {
    out.push_str("\n[[run]]\n");
    let why = run.why.as_deref();
    let words = [
        ("memory", run.memory),
        ("early", run.early),
        ("scheduling", run.scheduling),
        ("schedule", run.schedule),
        ("ends", run.ends),
        ("race", run.race),
        ("condition", run.condition),
        ("target", run.target),
        ("why", why),
    ];
    for (key, word) in words {
        if let Some(word) = word {
            let _ = writeln!(out, "{key} = {}", quote(word));
        }
    }
    let numbers = [
        ("runs", run.runs),
        ("steps", run.steps),
        ("warp_size", run.warp_size),
        ("sms", run.sms),
        ("resident", run.resident),
        ("registers", run.registers),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            let _ = writeln!(out, "{key} = {number}");
        }
    }
    if run.cooperative {
        out.push_str("cooperative = true\n");
    }
}

fn write_thread(test: &LitmusTest, id: ThreadId, out: &mut String) -> Result<(), Box<Diagnostic>> {
    let program = &test.program;
    let thread = program.thread(id);
    out.push_str("\n[[thread]]\n");
    if thread.name != format!("P{}", id.0) {
        let _ = writeln!(out, "name = {}", quote(&thread.name));
    }
    write_place(&thread.place, program.dialect, out);
    let regs = initial(thread, program);
    if !regs.is_empty() {
        let _ = writeln!(out, "regs = {{ {} }}", list(regs.into_iter()));
    }
    let Some(printed) = printed(thread, program) else {
        if thread.source.is_empty() && !thread.code.is_empty() {
            let message = "a thread of a kernel cannot be written alone";
            let diagnostic =
                Diagnostic::error("cannot-write", &test.file, thread.code[0].span, message);
            return Err(Box::new(
                diagnostic.label("it shares its code with the others"),
            ));
        }
        // The code as written, without the indentation that all lines share.
        let lines: Vec<&str> = thread
            .source
            .lines()
            .map(str::trim_end)
            .filter(|l| !l.trim().is_empty())
            .collect();
        let indent = lines
            .iter()
            .map(|l| l.len() - l.trim_start().len())
            .min()
            .unwrap_or(0);
        let code: String = lines
            .iter()
            .map(|l| format!("{}\n", l.get(indent..).unwrap_or(l)))
            .collect();
        let _ = if code.contains("'''") {
            writeln!(out, "code = {}", quote(&code))
        } else {
            write!(out, "code = '''\n{code}'''\n")
        };
        return Ok(());
    };
    let code = printed.map_err(|e| {
        let span = thread
            .code
            .get(e.index)
            .map_or(diag::Span::default(), |i| i.span);
        let message = "this instruction cannot be written as TOML";
        let diagnostic = Diagnostic::error("cannot-write", &test.file, span, message);
        Box::new(
            diagnostic
                .label("the short form cannot express it")
                .note(e.what),
        )
    })?;
    let _ = write!(out, "code = '''\n{code}'''\n");
    Ok(())
}

fn write_place(place: &Place, dialect: Dialect, out: &mut String) {
    if place.host {
        out.push_str("host = true\n");
        return;
    }
    // `launched` only matters for a place in a cluster.
    if place.launched && place.cluster.is_some() {
        out.push_str("launched = true\n");
    }
    if place.kernel != 0 {
        let _ = writeln!(out, "kernel = {}", place.kernel);
    }
    if place.domain != 0 {
        let _ = writeln!(out, "domain = {}", place.domain);
    }
    let row = dialect.row();
    for level in row.tree() {
        // Defaults that can be left out: the first device and its first queue family. Without
        // groups in the dialect, also the first group.
        let understood = match level.scope {
            Scope::Gpu | Scope::QueueFamily => true,
            Scope::Cta => row.levels.is_empty(),
            _ => false,
        };
        if let Some(number) = place.group(level.scope).filter(|n| *n != 0 || !understood) {
            let _ = writeln!(out, "{} = {number}", level.key);
        }
    }
}

/// Registers that need an initial value: those that do not start at 0, and those that no
/// instruction writes.
fn initial(thread: &Thread, program: &Program) -> Vec<String> {
    let written: HashSet<RegId> = thread.code.iter().filter_map(|i| i.op.defines()).collect();
    let needed = thread
        .regs
        .iter()
        .enumerate()
        .filter(|(i, r)| r.init != Init::Int(0) || !written.contains(&RegId(*i as u16)));
    needed
        .map(|(_, r)| format!("{} = {}", toml_key(&r.name), value(&r.init, program)))
        .collect()
}

fn value(init: &Init, program: &Program) -> String {
    match init {
        Init::Int(v) => v.to_string(),
        Init::Unknown => quote("unknown"),
        Init::Address { loc, index: 0 } => quote(&format!("&{}", program.location(*loc).name)),
        // The suffix selects the same cell whether the location has one element or several.
        Init::Address { loc, index } => {
            let suffix = program.layout(*loc).suffix(*index, usize::MAX);
            quote(&format!("&{}{suffix}", program.location(*loc).name))
        }
    }
}

/// The value of a location's key under `[memory]`.
fn memory(location: &Location, program: &Program) -> String {
    let LocationKind::Alias { of, proxy } = &location.kind else {
        return match Front::of(program.dialect).syntax {
            Syntax::C => c_object(location, program),
            Syntax::Ptx => ptx_object(location, program),
        };
    };
    let of = ObjectTable::default().with_text("alias", &program.location(*of).name);
    match proxy {
        Proxy::Generic => of.to_string(),
        other => of.with_text("proxy", other.row().word).to_string(),
    }
}

/// An initial value, or the list of several.
fn initial_values(init: &[Init], program: &Program) -> String {
    match init {
        [one] => value(one, program),
        all => format!("[{}]", list(all.iter().map(|v| value(v, program)))),
    }
}

/// An object in a C-like dialect.
fn c_object(location: &Location, program: &Program) -> String {
    let LocationKind::Object {
        layout,
        init,
        atomic,
        opencl,
        space,
        kind,
        class,
    } = &location.kind
    else {
        return String::new();
    };
    let allocation = program.dialect.row().allocation;
    let (type_name, start) = match class {
        Some(class) => of_class(*class, c_type(layout), init, program),
        None => (c_type(layout).to_string(), initial_values(init, program)),
    };
    let mut table = ObjectTable::default()
        .with("init", start)
        .with_text("type", &type_name);
    if *atomic {
        table = table.with("atomic", true);
    }
    if allocation == AllocationKinds::Cuda {
        table = table.in_space(space.name());
    }
    let word = match kind {
        MemoryKind::Device(0) => "device",
        MemoryKind::Device(gpu) => {
            table = table.with("gpu", gpu);
            "device"
        }
        MemoryKind::Mapped => "mapped",
        MemoryKind::System => "system",
        MemoryKind::File => "file",
        _ => "",
    };
    if !word.is_empty() && allocation == AllocationKinds::Cuda {
        table = table.with_text("kind", word);
    }
    if allocation == AllocationKinds::OpenCl {
        table
            .0
            .extend(opencl_memory(*opencl, *kind, capped(program)));
        if let MemoryKind::Image { width, height } = *kind {
            for (key, size) in [("width", width), ("height", height)] {
                if size > 0 {
                    table = table.with(key, size);
                }
            }
        }
    }
    table.to_string()
}

/// An object in PTX.
fn ptx_object(location: &Location, program: &Program) -> String {
    let LocationKind::Object {
        layout,
        init,
        space,
        class,
        ..
    } = &location.kind
    else {
        return String::new();
    };
    if let Some(class) = class {
        let (name, start) = of_class(*class, "", init, program);
        let table = ObjectTable::default().with("init", start);
        let table = table.with_text("type", &name).in_space("shared");
        return table.to_string();
    }
    if layout.cells() > 1 {
        let count = init.len() / layout.cells();
        let start = list(init.iter().enumerate().map(|(cell, v)| match v {
            Init::Int(word) if layout.field(cell as u32).mbarrier => {
                mbarrier::count_of(*word).to_string()
            }
            v => value(v, program),
        }));
        let table = ObjectTable::default().with("init", format!("[{start}]"));
        let table = table.with("fields", fields(layout)).of_size(count as u64);
        return table.in_space(space.name()).to_string();
    }
    let ty = layout.field(0).ty;
    let start = initial_values(init, program);
    if ty == Ty::WORD && *space == Space::Global {
        return start;
    }
    let mut table = ObjectTable::default().with("init", start);
    if ty != Ty::WORD {
        table = table.with_text("type", &ty.ptx_name());
    }
    table.in_space(space.name()).to_string()
}

/// The fields of an element of PTX memory, as an inline table.
pub(super) fn fields(layout: &Layout) -> String {
    let all: Vec<&Field> = (0..layout.cells() as u32)
        .map(|cell| layout.field(cell))
        .collect();
    let fields = all
        .chunk_by(|a, b| field_name(a) == field_name(b))
        .map(|group| {
            let ty = if group[0].mbarrier {
                "mbarrier".to_string()
            } else {
                group[0].ty.ptx_name()
            };
            let count = if group[0].path.contains('[') {
                format!("[{}]", group.len())
            } else {
                String::new()
            };
            format!("{} = \"{ty}{count}\"", toml_key(&field_name(group[0])))
        });
    format!("{{ {} }}", list(fields))
}

fn field_name(field: &Field) -> String {
    field
        .path
        .trim_start_matches('.')
        .split('[')
        .next()
        .unwrap_or_default()
        .to_string()
}

/// The name of a class, and the counts given to the constructors of its objects.
fn of_class(class: Class, element: &str, init: &[Init], program: &Program) -> (String, String) {
    let start = |v: &Init| match v {
        Init::Int(word) => class_name(class, element, *word).1.to_string(),
        address => value(address, program),
    };
    let starts: Vec<String> = init.iter().map(start).collect();
    let start = if starts.len() == 1 {
        starts[0].clone()
    } else {
        format!("[{}]", starts.join(", "))
    };
    (class_name(class, element, 0).0, start)
}

/// The name of a type in the C-like dialects. A structure is written by its name; the code defines
/// it.
fn c_type(layout: &Layout) -> &str {
    if let Some(name) = layout.name() {
        return name;
    }
    let field = layout.field(0);
    match (field.ty.bits, field.ty.signed) {
        _ if field.boolean => "bool",
        (8, true) => "char",
        (8, false) => "uchar",
        (16, true) => "short",
        (16, false) => "ushort",
        (32, true) => "int",
        (32, false) => "uint",
        (_, true) => "long",
        (_, false) => "ulong",
    }
}

/// Whether the scope of operations in local memory is limited to the work-group. In the published
/// suites it is not; then memory is written with its regions.
fn capped(program: &Program) -> bool {
    let memory =
        |l: &Location| matches!(&l.kind, LocationKind::Object { opencl, .. } if opencl.capped);
    program.locations.iter().any(memory) || program.instrs().any(|(_, _, i)| i.op.has(Tag::Capped))
}

fn opencl_memory(
    memory: OpenClMemory,
    kind: MemoryKind,
    capped: bool,
) -> Option<(&'static str, String)> {
    if memory.capped {
        return Some(("space", quote("local")));
    }
    if capped || (memory.global && !memory.local && kind != MemoryKind::SvmFineAtomic) {
        let word = match kind {
            MemoryKind::Image { .. } => "image",
            MemoryKind::Pipe => "pipe",
            MemoryKind::SvmCoarse => "svm-coarse",
            MemoryKind::SvmFine => "svm-fine",
            MemoryKind::SvmFineAtomic => "svm-fine-atomic",
            MemoryKind::SvmSystem => "system",
            MemoryKind::ProgramScope => "program-scope",
            _ => return None,
        };
        return Some(("kind", quote(word)));
    }
    let regions = [(memory.global, "global"), (memory.local, "local")];
    let regions = regions.iter().filter(|r| r.0).map(|r| quote(r.1));
    Some(("regions", format!("[{}]", list(regions))))
}

fn expected(expectation: &Expectation) -> String {
    let mut parts = Vec::new();
    let mut word = |key: &str, word: Option<&str>| {
        if let Some(word) = word {
            parts.push(format!("{key} = {}", quote(word)));
        }
    };
    word(
        "reachability",
        expectation.reachability.map(|r| match r {
            Reachability::Allowed => "allowed",
            Reachability::Forbidden => "forbidden",
            Reachability::Required => "required",
        }),
    );
    word(
        "race",
        expectation
            .race
            .map(|racy| if racy { "racy" } else { "race-free" }),
    );
    word(
        "undefined",
        expectation
            .undefined
            .map(|u| if u { "undefined" } else { "defined" }),
    );
    word(
        "lifetime",
        expectation
            .lifetime
            .map(|misused| if misused { "misused" } else { "proper" }),
    );
    word("axiom", expectation.axiom.as_deref());
    word("known", expectation.known.as_deref());
    word("source", expectation.source.as_deref());
    if !expectation.liveness.is_empty() {
        parts.push(format!(
            "liveness = {{ {} }}",
            list(
                expectation
                    .liveness
                    .iter()
                    .map(|(progress, hangs): (&String, &bool)| {
                        format!(
                            "{} = \"{}\"",
                            toml_key(progress),
                            if *hangs { "hangs" } else { "terminates" }
                        )
                    })
            )
        ));
    }
    parts.join(", ")
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// A TOML string: literal if possible, otherwise with escapes.
pub(super) fn quote(text: &str) -> String {
    let escape = text.contains('\'') || text.chars().any(char::is_control);
    if !escape && text.contains(['"', '\\']) {
        return format!("'{text}'");
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A TOML key, quoted if necessary.
pub(super) fn toml_key(key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if bare { key.to_string() } else { quote(key) }
}
