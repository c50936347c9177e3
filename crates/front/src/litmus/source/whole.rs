//! Whole programs: `main` of a source file with the kernels that it launches, as a test with a
//! host.
//!
//! # Invariants
//! - The document is one that a test could be, so that the mechanism of host programs gives it its
//!   meaning, and `import` can write it down.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;

use crate::isa::clike::host_main::{
    LaunchRange, ProgramArgument, ProgramKernel, ProgramMemory, ProgramTrace,
};
use crate::isa::clike::{ClikeCode, KernelHead, KernelParameter};
use crate::litmus::toml::{FileCode, ProgramCode, SourceTest, UNKNOWN, read_made};
use crate::litmus::write::{ObjectTable, quote, toml_key};
use diag::{Diagnostic, MappedText, Sink, SourceFile, Span};
use program::Dialect;
use program::litmus::{FullLaunches, GivenLaunch, KernelLaunch, LaunchOrigin, LitmusTest};
use std::sync::Arc;

/// The kernels of the file, read: by number, and by the arguments of their template.
pub(super) type ReadKernels = BTreeMap<(usize, Option<String>), (Rc<KernelHead>, Rc<ClikeCode>)>;

/// The arguments of a program, and the constants that were given for it.
#[derive(Clone, Copy)]
pub(super) struct ProgramOptions<'a> {
    pub(super) arguments: &'a [String],
    pub(super) constants: &'a BTreeMap<String, i64>,
}

/// A program with smaller constants than are written.
pub(super) struct SmallerProgram {
    /// The constants, in a sentence.
    pub(super) note: String,
    /// The launches with the written ones.
    pub(super) full: FullLaunches,
}

/// The number of a kernel, with the arguments of its template.
fn key(kernel: &ProgramKernel) -> (usize, Option<String>) {
    (kernel.kernel, kernel.instance.clone())
}

/// A way through a program, bound to the parameters of its kernels.
pub(super) struct BoundProgram<'a> {
    trace: &'a ProgramTrace,
    given: ProgramOptions<'a>,
    /// The constants that were made smaller, and the launches before.
    smaller: Option<&'a SmallerProgram>,
    /// The kernels of the file that it launches, by number.
    kernels: &'a ReadKernels,
    memory: Vec<ProgramMemory>,
    /// Of each kernel with arguments: the values of its registers.
    registers: Vec<Vec<(String, String)>>,
    /// Dynamic shared memory: its name, its type, its length, and the array at which it begins.
    dynamic: Vec<(String, String, u64, Option<String>)>,
}

impl<'a> BoundProgram<'a> {
    /// Binds the arguments of each launch.
    ///
    /// # Errors
    /// Those that do not fit a kernel.
    pub(super) fn new(
        trace: &'a ProgramTrace,
        kernels: &'a ReadKernels,
        given: ProgramOptions<'a>,
        smaller: Option<&'a SmallerProgram>,
        file: &Arc<SourceFile>,
    ) -> Result<BoundProgram<'a>, Vec<Diagnostic>> {
        let mut bound = BoundProgram {
            trace,
            given,
            smaller,
            kernels,
            memory: trace.memory.clone(),
            registers: Vec::new(),
            dynamic: Vec::new(),
        };
        let mut errors = Vec::new();
        for kernel in &trace.kernels {
            match bound.registers_of(kernel, file) {
                Ok(registers) => bound.registers.push(registers),
                Err(wrong) => errors.push(*wrong),
            }
            bound.add_dynamic(kernel);
        }
        match errors.is_empty() {
            true => Ok(bound),
            false => Err(errors),
        }
    }

    fn registers_of(
        &mut self,
        kernel: &ProgramKernel,
        file: &Arc<SourceFile>,
    ) -> Result<Vec<(String, String)>, Box<Diagnostic>> {
        let head = &self.kernels[&key(kernel)].0;
        let wrong = |message: String, label: String| {
            let d = Diagnostic::error("launch-argument", file, kernel.span, message);
            Box::new(d.label(label))
        };
        let (given, taken) = (kernel.arguments.len(), head.parameters.len());
        if given != taken {
            let s = if taken == 1 { "" } else { "s" };
            let message = format!("`{}` takes {taken} argument{s}, {given} given", head.name);
            let names: Vec<&str> = head.parameters.iter().map(|p| p.name.as_str()).collect();
            return Err(wrong(message, format!("expected ({})", names.join(", "))));
        }
        let mut all = Vec::new();
        for (argument, parameter) in kernel.arguments.iter().zip(&head.parameters) {
            let name = &parameter.name;
            let value = match (argument, &parameter.pointee) {
                (ProgramArgument::Address(Some((memory, offset))), Some(pointee)) => {
                    self.settle(*memory, pointee);
                    if parameter.space == Some("const") {
                        self.memory[*memory].space = parameter.space;
                    }
                    let memory = &self.memory[*memory];
                    if memory
                        .packet
                        .is_some_and(|packet| packet as u64 != memory.size)
                    {
                        let message = format!("the packets of `{name}` have another size");
                        let of = format!("expected packets of {} bytes", memory.size);
                        let d = wrong(message, of);
                        return Err(Box::new(d.note("clCreatePipe (OpenCL API, Pipes)")));
                    }
                    let at = *offset / memory.size.max(1) as i64;
                    if *offset % memory.size.max(1) as i64 != 0 || at < 0 {
                        let message = format!("`{name}` points into an element");
                        return Err(wrong(message, "expected the address of an element".into()));
                    }
                    // The name already means the memory.
                    if at == 0 && memory.name == *name {
                        continue;
                    }
                    quote(&match at {
                        0 => format!("&{}", memory.name),
                        at => format!("&{}[{at}]", memory.name),
                    })
                }
                (ProgramArgument::Address(None) | ProgramArgument::Number(0), _) => "0".to_owned(),
                (ProgramArgument::Number(number), None) => {
                    number_for(*number as f64, *number, parameter)
                }
                (ProgramArgument::Float(number), None) => {
                    number_for(*number, *number as i64, parameter)
                }
                (ProgramArgument::Address(_), None) => {
                    let message = format!("`{name}` is a value, and this is an address");
                    return Err(wrong(message, "expected a number".to_owned()));
                }
                (_, Some(_)) => {
                    let message = format!("`{name}` is a pointer, and this is a number");
                    return Err(wrong(message, "expected an address".to_owned()));
                }
            };
            all.push((name.clone(), value));
        }
        Ok(all)
    }

    /// The value of a name under `[memory]`.
    fn object(&self, memory: &ProgramMemory) -> ObjectTable {
        match memory.alias {
            Some(first) => ObjectTable::default().with_text("alias", &self.memory[first].name),
            None => object(memory),
        }
    }

    /// The launches of the program, in order, as the command line takes them.
    pub(super) fn full_launches(&self) -> FullLaunches {
        let texts = self.trace.ranges.iter().filter_map(|range| {
            let mut kernels = self.trace.kernels.iter();
            let kernel = kernels.find(|kernel| kernel.name == range.kernel)?;
            self.launch_text(kernel, range)
        });
        let texts: Vec<String> = texts.collect();
        FullLaunches {
            are_all: texts.len() == self.trace.launches,
            texts,
        }
    }

    /// A launch as the command line takes it; `None`: it has no words for an argument.
    fn launch_text(&self, kernel: &ProgramKernel, range: &LaunchRange) -> Option<String> {
        let head = &self.kernels[&key(kernel)].0;
        let mut told: BTreeSet<usize> = BTreeSet::new();
        let mut arguments = Vec::new();
        for (argument, parameter) in kernel.arguments.iter().zip(&head.parameters) {
            arguments.push(match (argument, &parameter.pointee) {
                (ProgramArgument::Address(Some((number, offset))), Some(pointee)) => {
                    let memory = &self.memory[*number];
                    let size = memory.size.max(1);
                    let is_plain = memory.alias.is_none() && memory.packet.is_none();
                    if !is_plain || size != size_of(pointee) || offset % size as i64 != 0 {
                        return None;
                    }
                    let (at, length) = (offset / size as i64, (memory.bytes / size) as i64);
                    let uses = kernel.arguments.iter().filter(|other| {
                        matches!(other, ProgramArgument::Address(Some((of, _))) if of == number)
                    });
                    match (uses.count(), told.insert(*number)) {
                        // The rest of the memory is all that the kernel sees.
                        (1, _) => format!("{}[{}]", memory.name, (length - at).max(1)),
                        (_, true) if at == 0 => format!("{}[{}]", memory.name, length.max(1)),
                        (_, true) => return None,
                        _ if at == 0 => memory.name.clone(),
                        _ => format!("&{}[{at}]", memory.name),
                    }
                }
                (ProgramArgument::Number(number), None) => number.to_string(),
                (ProgramArgument::Float(number), None) if number.fract() == 0.0 => {
                    (*number as i64).to_string()
                }
                _ => return None,
            });
        }
        let instance = kernel.instance.as_ref();
        let instance = instance.map_or(String::new(), |given| format!("<{given}>"));
        Some(format!(
            "{}{instance}<<<{}, {}>>>({})",
            head.name,
            range.sizes(),
            kernel.shared,
            arguments.join(", ")
        ))
    }

    /// Gives memory of no type that of a parameter.
    fn settle(&mut self, memory: usize, pointee: &str) {
        if let Some(first) = self.memory[memory].alias {
            self.settle(first, pointee);
        }
        let memory = &mut self.memory[memory];
        if pointee.contains("::") && memory.size == size_of(pointee) {
            memory.element = Some(pointee.to_owned());
        }
        if memory.element.is_none() {
            memory.element = Some(pointee.to_owned());
            memory.size = size_of(pointee);
            let length = (memory.bytes / memory.size.max(1)) as usize;
            memory
                .initial
                .resize(length.min(memory.initial.len().max(1)), None);
            memory.initial.fill(None);
        }
    }

    /// Adds the arrays of dynamic shared memory of a kernel, which all begin at one place.
    fn add_dynamic(&mut self, kernel: &ProgramKernel) {
        let mut first: Option<String> = None;
        for (name, element) in &self.kernels[&key(kernel)].0.dynamic {
            let size = size_of(element);
            let length = (kernel.shared / size).max(1);
            match self.dynamic.iter_mut().find(|known| known.0 == *name) {
                Some(known) => known.2 = known.2.max(length),
                None => {
                    self.dynamic
                        .push((name.clone(), element.clone(), length, first.clone()));
                }
            }
            first.get_or_insert(name.clone());
        }
    }

    /// The document, without the code.
    fn head(&self, name: &str, source: &str) -> MappedText {
        let at = self.trace.span;
        let mut text = MappedText::new();
        let mut line = |line: String, span: Span| text.push_opaque(&(line + "\n"), span);
        line(format!("name = {}", quote(name)), at);
        line(format!("source = {}", quote(source)), at);
        line(
            format!("dialect = {}", quote(self.trace.dialect.name())),
            at,
        );
        line("tags = [\"kernel\"]".to_owned(), at);
        let cuda = self.trace.dialect == Dialect::Cuda;
        if cuda && !self.trace.events.is_empty() {
            let all: Vec<String> = self.trace.events.iter().map(|e| quote(e)).collect();
            line(format!("events = [{}]", all.join(", ")), at);
        }
        line("[memory]".to_owned(), at);
        for memory in self.memory.iter().filter(|memory| memory.bytes > 0) {
            line(
                format!("{} = {}", toml_key(&memory.name), self.object(memory)),
                memory.span,
            );
        }
        for (name, element, length, same_as) in &self.dynamic {
            let table = ObjectTable::default();
            let table = match same_as {
                Some(first) => table.with_text("at", first),
                None => table
                    .with_text("init", UNKNOWN)
                    .with("size", length)
                    .with_text("type", element)
                    .in_space("shared"),
            };
            line(format!("{} = {table}", toml_key(name)), at);
        }
        if !self.trace.streams.is_empty() {
            let table = if cuda { "[streams]" } else { "[queues]" };
            line(table.to_owned(), at);
        }
        for (name, blocking) in &self.trace.streams {
            let kind = match (cuda, *blocking) {
                (true, true) => "blocking",
                (true, false) => "non-blocking",
                (false, true) => "in-order",
                (false, false) => "out-of-order",
            };
            line(format!("{} = {}", toml_key(name), quote(kind)), at);
        }
        self.add_kernels(&mut line);
        for (key, all) in [
            ("function", &self.trace.functions),
            ("host", &self.trace.threads),
        ] {
            for (name, _) in all {
                line(format!("[[{key}]]"), at);
                line(format!("name = {}", quote(name)), at);
                line("code = \"\"".to_owned(), at);
            }
        }
        text
    }

    /// The kernels of the document.
    fn add_kernels(&self, line: &mut dyn FnMut(String, Span)) {
        for (kernel, registers) in self.trace.kernels.iter().zip(&self.registers) {
            let span = kernel.span;
            line("[[kernel]]".to_owned(), span);
            line(format!("name = {}", quote(&kernel.name)), span);
            let all = registers.iter();
            let all: Vec<String> = all
                .map(|(name, value)| format!("{} = {value}", toml_key(name)))
                .collect();
            line(format!("regs = {{ {} }}", all.join(", ")), span);
            if let Some(cluster) = self.kernels[&key(kernel)].0.cluster {
                line(format!("cluster = {cluster:?}"), span);
            }
            if kernel.cooperative {
                line("cooperative = true".to_owned(), span);
            }
            line("code = \"\"".to_owned(), span);
        }
    }

    fn units(&self) -> impl Iterator<Item = &'a Rc<ClikeCode>> {
        let all = self.trace.kernels.iter();
        let kernels = self.kernels;
        all.map(move |kernel| &kernels[&key(kernel)].1)
    }

    /// The document with its code, as a file.
    pub(super) fn document(&self, name: &str, source: &str) -> String {
        let head = self.head(name, source);
        let functions = self.trace.functions.iter().chain(&self.trace.threads);
        let codes = self
            .units()
            .map(|unit| unit.text())
            .chain(functions.map(|f| f.1.as_str()));
        let mut text = String::new();
        let mut rest = head.as_str();
        for code in codes {
            let Some((before, behind)) = rest.split_once("code = \"\"\n") else {
                break;
            };
            let _ = write!(text, "{before}code = '''\n{code}'''\n");
            rest = behind;
        }
        text + rest
    }

    /// The test, with warnings.
    ///
    /// # Errors
    /// The errors of its code.
    pub(super) fn test(
        &self,
        name: &str,
        sink: &Sink,
    ) -> Result<(LitmusTest, Vec<Diagnostic>), Vec<Diagnostic>> {
        let head = self.head(name, &sink.file().name);
        fn codes(all: &[(String, MappedText)]) -> Vec<MappedText> {
            all.iter().map(|f| f.1.clone()).collect()
        }
        let made = SourceTest {
            head: &head,
            code: FileCode::Program(ProgramCode {
                kernels: self.units().cloned().collect(),
                functions: codes(&self.trace.functions),
                threads: codes(&self.trace.threads),
            }),
        };
        let mut own = Sink::new(sink.file());
        let test = read_made(&made, &mut own).filter(|_| own.errors() == 0);
        let found = own.into_diagnostics();
        let Some(mut test) = test else {
            return Err(found);
        };
        test.launch = Some(self.launch());
        Ok((test, found))
    }

    fn launch(&self) -> KernelLaunch {
        let open = self.memory.iter().filter(|memory| memory.open);
        KernelLaunch {
            kernel: "main".to_owned(),
            text: "main".to_owned(),
            grid: vec![1],
            block: vec![1],
            by: LaunchOrigin::Main(self.trace.launches),
            span: self.trace.span,
            inputs: open.map(|memory| memory.name.clone()).collect(),
            is_smaller: false,
            zeroed: Vec::new(),
            notes: {
                let smaller = self.smaller.iter().map(|smaller| smaller.note.clone());
                smaller.chain(self.trace.choices.clone()).collect()
            },
            arguments: self.given.arguments.to_vec(),
            constants: self.given.constants.clone(),
            given: GivenLaunch::default(),
            full: self.smaller.map(|smaller| smaller.full.clone()),
            threads: None,
            compiler: None,
        }
    }
}

/// A number as a register of a parameter's type has it.
fn number_for(floating: f64, whole: i64, parameter: &KernelParameter) -> String {
    match parameter.type_name.as_str() {
        "float" => (floating as f32).to_bits().to_string(),
        "double" => (floating.to_bits() as i64).to_string(),
        _ => whole.to_string(),
    }
}

/// The size of a type of elements.
fn size_of(element: &str) -> u64 {
    match element {
        "bool" => 1,
        "half" => 2,
        "double" => 8,
        // `s32`, `float`
        _ => {
            // `cuda::atomic<int64_t, cuda::thread_scope_system>`
            let inside = element.split_once("int").map(|(_, rest)| rest);
            let digits = inside.and_then(|rest| rest.split("_t").next());
            let bits = digits.or(element.get(1..));
            let bits = bits.and_then(|bits| bits.parse::<u64>().ok());
            bits.map_or(4, |bits| bits.div_ceil(8))
        }
    }
}

/// The value of a name under `[memory]`.
fn object(memory: &ProgramMemory) -> ObjectTable {
    let element = memory.element.as_deref().unwrap_or("u8");
    let length = (memory.bytes / memory.size.max(1)).max(1);
    let first = memory.initial.first().unwrap_or(&None);
    let same = memory.initial.iter().all(|value| value == first);
    let (is_record, is_class) = (memory.cells as u64 != length, element.contains("::"));
    fn one(value: &Option<i64>) -> String {
        value.map_or_else(|| quote(UNKNOWN), |n| n.to_string())
    }
    let table = ObjectTable::default();
    if memory.packet.is_some() {
        let table = table.with("size", length).with_text("type", element);
        return table.with_text("kind", memory.kind);
    }
    let table = match first {
        // The zeros of a structure are those of its members.
        Some(0) if same && is_record => table.with("size", length),
        value if !same || value.is_some() && (is_record || (is_class && length > 1)) => {
            let all: Vec<String> = memory.initial.iter().map(one).collect();
            table.with("init", format!("[{}]", all.join(", ")))
        }
        _ => table.with("init", one(first)).of_size(length),
    };
    let table = table.with_text("type", element);
    let table = match memory.sizes {
        Some([width, height]) => table.with("width", width).with("height", height),
        None => table,
    };
    match memory.space {
        Some(space) => table.with_text("space", space),
        None => table.with_text("kind", memory.kind),
    }
}
