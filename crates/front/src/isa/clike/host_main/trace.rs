//! Follows all ways through `main`, and gives the program of each.

use std::collections::HashSet;

use super::code::HostCode;
use super::machine::Machine;
use super::parser::Read;
use super::values::{
    AllocatedBy, ElementType, HostLine, HostValue, KernelUse, LaunchRange, LineEffect,
    MemoryObject, ProgramState,
};
use diag::{Diagnostic, MappedText, Span};
use program::Dialect;

/// A program: one way through `main`.
#[derive(Clone, Debug)]
pub struct ProgramTrace {
    /// The place of the name `main`.
    pub span: Span,
    /// The language of the program.
    pub dialect: Dialect,
    /// What it allocates.
    pub memory: Vec<ProgramMemory>,
    /// The streams, and whether each synchronises with the legacy default stream.
    pub streams: Vec<(String, bool)>,
    /// The events.
    pub events: Vec<String>,
    /// Each kernel with each of its arguments.
    pub kernels: Vec<ProgramKernel>,
    /// The host threads with their statements.
    pub threads: Vec<(String, MappedText)>,
    /// Functions that the runtime calls.
    pub functions: Vec<(String, MappedText)>,
    /// Whether it uses something after its end.
    pub late: bool,
    /// How many launches there are.
    pub launches: usize,
    /// The launches that are no part of a graph, in order.
    pub ranges: Vec<LaunchRange>,
    /// Threads of all launches.
    pub launched: i64,
    /// Elements of all copies.
    pub copied: i64,
    /// The choices on the way.
    pub choices: Vec<String>,
}

/// Memory that a program allocates.
#[derive(Clone, Debug)]
pub struct ProgramMemory {
    /// Its name.
    pub name: String,
    /// Where it is allocated.
    pub span: Span,
    /// The type of its elements, as a test writes it; `None`: the code does not say it.
    pub element: Option<String>,
    /// Bytes of an element.
    pub size: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// How many numbers it has.
    pub cells: usize,
    /// Its kind as a test writes it.
    pub kind: &'static str,
    /// Of an image, its width and its height in pixels.
    pub sizes: Option<[i64; 2]>,
    /// Of a pipe, the bytes of a packet.
    pub packet: Option<i64>,
    /// Its state space, if it is not that of its kind.
    pub space: Option<&'static str>,
    /// Whether the file declares it as a variable of the device.
    pub symbol: bool,
    /// The values that it begins with; `None`: any.
    pub initial: Vec<Option<i64>>,
    /// The number of other memory, if both are mapped to one allocation.
    pub alias: Option<usize>,
    /// Whether the host writes values that are not worked out before the first command.
    pub open: bool,
}

/// A kernel with the arguments of a launch.
#[derive(Clone, Debug)]
pub struct ProgramKernel {
    /// Its name in the program.
    pub name: String,
    /// The number of the kernel in the file.
    pub kernel: usize,
    /// The arguments of its template.
    pub instance: Option<String>,
    /// Its arguments.
    pub arguments: Vec<ProgramArgument>,
    /// Whether it is launched cooperatively.
    pub cooperative: bool,
    /// Bytes of dynamic shared memory.
    pub shared: u64,
    /// The place of a launch.
    pub span: Span,
}

/// An argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProgramArgument {
    /// A number.
    Number(i64),
    /// A number of floating point.
    Float(f64),
    /// An address in memory: its number, and the offset in bytes; `None`: the null pointer.
    Address(Option<(usize, i64)>),
}

impl ProgramTrace {
    /// The variables of the device that are memory of the program.
    pub fn symbols(&self) -> impl Iterator<Item = String> {
        let all = self.memory.iter().filter(|memory| memory.symbol);
        all.map(|memory| memory.name.clone())
    }
}

/// The largest number of ways through a program.
const MOST_WAYS: usize = 16;

impl HostCode<'_> {
    /// All ways through `main`.
    ///
    /// # Errors
    /// What is not followed, at its place.
    pub fn follow(&self) -> Result<Vec<ProgramTrace>, Box<Diagnostic>> {
        self.follow_for(false)
    }

    /// The launches of all ways through `main`, of whatever size. The rest of a trace is no
    /// program.
    ///
    /// # Errors
    /// What is not followed, at its place.
    pub fn follow_launches(&self) -> Result<Vec<ProgramTrace>, Box<Diagnostic>> {
        self.follow_for(true)
    }

    fn follow_for(&self, launches: bool) -> Result<Vec<ProgramTrace>, Box<Diagnostic>> {
        let mut all: Vec<ProgramTrace> = Vec::new();
        let mut texts: HashSet<String> = HashSet::new();
        let mut plan: Vec<bool> = Vec::new();
        loop {
            let mut machine = Machine::new(self, plan);
            machine.for_launches = launches;
            machine.run()?;
            let decided = machine.decided.clone();
            let trace = self.trace(&machine)?;
            if texts.insert(format!("{:?}", (&trace.threads, &trace.functions))) {
                all.push(trace);
            }
            plan = decided;
            while plan.last() == Some(&false) {
                plan.pop();
            }
            let Some(last) = plan.last_mut() else {
                return Ok(all);
            };
            *last = false;
            if all.len() == MOST_WAYS {
                let at = machine.choices.last().map_or(0..0, |c| c.0.clone());
                let d = self.error("too-many-ways", &at, "too many ways through this program");
                return Err(Box::new(
                    d.label("the device decides which way the program goes here")
                        .note(format!("at most {MOST_WAYS} ways are followed"))
                        .help("let fewer branches that call the runtime depend on the device"),
                ));
            }
        }
    }

    /// The program that a way through `main` gives.
    fn trace(&self, machine: &Machine<'_>) -> Read<ProgramTrace> {
        let state = &machine.state;
        let main = self.function("main").transpose()?;
        let span = main.map_or(Span::default(), |f| {
            let from = f.range.start
                + self.text.as_str()[f.range.clone()]
                    .find("main")
                    .unwrap_or(0);
            self.text.span(from..from + 4)
        });
        let mut threads = vec![("main".to_owned(), self.mapped(&state.lines, state))];
        let others = state.threads.iter();
        threads.extend(others.map(|(name, lines)| (name.clone(), self.mapped(lines, state))));
        let functions = state.functions.iter();
        let choices = machine.choices.iter();
        Ok(ProgramTrace {
            span,
            dialect: self.dialect,
            memory: self.memory(state),
            streams: state
                .streams
                .iter()
                .map(|s| (s.name.clone(), s.blocking))
                .collect(),
            events: state.events.iter().map(|e| e.name.clone()).collect(),
            kernels: state.kernels.iter().map(|k| self.kernel(k)).collect(),
            threads,
            functions: functions
                .map(|(name, lines)| (name.clone(), self.mapped(lines, state)))
                .collect(),
            late: is_late(&state.lines),
            launches: machine.launches,
            ranges: machine.ranges.clone(),
            launched: machine.threads,
            copied: machine.copied,
            choices: choices
                .map(|(range, holds)| {
                    let line = self.line(range);
                    let word = if *holds { "holds" } else { "does not hold" };
                    format!("the condition in line {line} {word}")
                })
                .chain(machine.bounded.clone())
                .chain(machine.assumed.clone())
                .collect(),
        })
    }

    /// The lines of a thread as one text. Memory of one element is named without an index.
    fn mapped(&self, lines: &[HostLine], state: &ProgramState) -> MappedText {
        // In OpenCL C, a name of memory is a pointer.
        let cuda = self.dialect == Dialect::Cuda;
        let single = state.memory.iter();
        let single = single.filter(|memory| cuda && memory.length() == 1);
        let single: Vec<String> = single.map(|memory| format!("{}[0]", memory.name)).collect();
        let mut text = MappedText::new();
        for line in lines {
            let span = self.text.span(line.range.clone());
            let mut plain = line.text.clone();
            for named in &single {
                plain = without_index(&plain, named);
            }
            text.push_opaque(&format!("{plain}\n"), span);
        }
        text
    }

    fn memory(&self, state: &ProgramState) -> Vec<ProgramMemory> {
        let of = |m: &MemoryObject| ProgramMemory {
            name: m.name.clone(),
            span: self.text.span(m.range.clone()),
            element: type_of(m),
            size: m.element.bytes() as u64,
            bytes: m.bytes as u64,
            kind: m.allocation.kind(),
            sizes: match m.allocation {
                AllocatedBy::Image(width, height) => Some([width, height]),
                _ => None,
            },
            packet: match m.allocation {
                AllocatedBy::Pipe(packet) => Some(packet),
                _ => None,
            },
            space: m.space,
            symbol: m.symbol,
            cells: m.cells(),
            initial: m.initial.remembered().to_vec(),
            alias: m.alias,
            open: m.open,
        };
        state.memory.iter().map(of).collect()
    }

    fn kernel(&self, of: &KernelUse) -> ProgramKernel {
        ProgramKernel {
            name: of.name.clone(),
            kernel: of.kernel,
            instance: of.instance.clone(),
            arguments: of
                .arguments
                .iter()
                .map(|value| match value {
                    HostValue::Float(value, _) => ProgramArgument::Float(*value),
                    HostValue::Int(value, _) => ProgramArgument::Number(*value),
                    HostValue::Pointer(p) => {
                        ProgramArgument::Address(p.memory.map(|memory| (memory, p.offset)))
                    }
                    _ => ProgramArgument::Address(None),
                })
                .collect(),
            cooperative: of.cooperative,
            shared: of.shared as u64,
            span: self.text.span(of.range.clone()),
        }
    }
}

/// The type of the elements of memory, as a test writes it; `None`: the code does not say it.
fn type_of(memory: &MemoryObject) -> Option<String> {
    match (&memory.record, &memory.class) {
        (Some(record), _) => Some(record.name.clone()),
        (None, Some(class)) => Some(class.to_string()),
        (None, None) => memory.element.said.then(|| element_name(memory.element)),
    }
}

/// Whether lines have the mark of a late use.
fn is_late(lines: &[HostLine]) -> bool {
    lines.iter().any(|line| line.effect == LineEffect::LateUse)
}

/// The name of a type of numbers, as a test writes it.
pub(super) fn element_name(element: ElementType) -> String {
    match (element.floating, element.ty.bits) {
        (true, 32) => "float".to_owned(),
        (true, _) => "double".to_owned(),
        _ => element.ty.ptx_name().to_owned(),
    }
}

/// A text with `x` in place of `x[0]`.
fn without_index(text: &str, named: &str) -> String {
    let mut parts = text.split(named);
    let mut plain = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let inside = plain.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let kept = if inside {
            named
        } else {
            named.trim_end_matches("[0]")
        };
        plain += kept;
        plain += part;
    }
    plain
}
