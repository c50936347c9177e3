//! A launch bound to the parameters of its kernel.

use std::fmt::Write;
use std::sync::Arc;

use super::WrittenLaunches;
use super::launch::{ArgumentValue, Buffer, Contents, KernelNumbers, NUMBERS, WrittenLaunch};
use crate::isa::clike::{KernelHead, KernelParameter};
use diag::{Diagnostic, SourceFile, Span};
use program::Class;
use program::litmus::{GivenLaunch, LaunchOrigin};

/// A kernel's launch, with a value for each parameter.
#[derive(Clone, Debug)]
pub(super) struct BoundLaunch {
    pub(super) kernel: String,
    /// The place of the launch in the file, or of the kernel's name.
    pub(super) span: Span,
    pub(super) grid: Vec<u32>,
    pub(super) block: Vec<u32>,
    pub(super) cluster: Option<Vec<u32>>,
    pub(super) cooperative: bool,
    pub(super) by: LaunchOrigin,
    pub(super) arguments: Vec<Argument>,
    pub(super) memory: Vec<LaunchMemory>,
    /// The reason for fewer threads than in the given launch.
    pub(super) smaller: Option<String>,
    /// Buffers without values that have to begin with 0.
    pub(super) zeroed: Vec<String>,
    /// Bytes of a buffer of a module while it is found out how far its accesses reach.
    pub(super) trial_bytes: u64,
}

/// An argument.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    pub(super) parameter: String,
    /// The buffer that it is an address in; `None`: it is a number.
    pub(super) of: Option<usize>,
    /// The number, or the element.
    pub(super) number: i64,
    pub(super) span: Span,
}

/// Memory of a launch.
#[derive(Clone, Debug)]
pub(super) struct LaunchMemory {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) element: String,
    /// Elements; `None`: as many as the launch accesses.
    pub(super) length: Option<u64>,
    pub(super) contents: Contents,
    pub(super) space: Option<&'static str>,
    pub(super) class: Option<Class>,
    /// Whether the launch says its size in bytes, and its code its name.
    pub(super) dynamic: bool,
    /// Whether the launch says the type of its elements, as no parameter does.
    pub(super) typed: bool,
    /// The memory that it begins at.
    pub(super) same_as: Option<String>,
}

impl BoundLaunch {
    /// Its sizes and numbers.
    pub(super) fn given(&self) -> GivenLaunch {
        let numbers = self.arguments.iter().filter(|a| a.of.is_none());
        GivenLaunch {
            text: self.text(),
            grid: self.grid.clone(),
            block: self.block.clone(),
            numbers: numbers.map(|a| (a.parameter.clone(), a.number)).collect(),
            has_arguments: true,
        }
    }

    /// Threads in all.
    pub(super) fn threads(&self) -> u64 {
        let all = self.grid.iter().chain(&self.block);
        all.fold(1, |n: u64, size| n.saturating_mul(u64::from(*size)))
    }

    /// Threads in the first dimension.
    pub(super) fn width(&self) -> i64 {
        fn first(sizes: &[u32]) -> i64 {
            i64::from(sizes.first().copied().unwrap_or(1))
        }
        first(&self.grid) * first(&self.block)
    }

    /// The launch as it can be written.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{}<<<{}, {}",
            self.kernel,
            extent(&self.grid),
            extent(&self.block)
        );
        let dynamic = self
            .memory
            .iter()
            .find(|m| m.dynamic && m.same_as.is_none());
        if let Some(memory) = dynamic
            && let (Some(length), Some(bytes)) = (memory.length, bytes_of(&memory.element))
        {
            let _ = write!(text, ", {}", length * bytes);
        }
        text += ">>>(";
        let mut told = vec![false; self.memory.len()];
        for (i, argument) in self.arguments.iter().enumerate() {
            text += if i > 0 { ", " } else { "" };
            let Some(of) = argument.of else {
                let _ = write!(text, "{}", argument.number);
                continue;
            };
            let memory = &self.memory[of];
            match (std::mem::replace(&mut told[of], true), argument.number) {
                (false, 0) => text += &buffer(memory),
                (_, 0) => text += &memory.name,
                (_, at) => {
                    let _ = write!(text, "&{}[{at}]", memory.name);
                }
            }
        }
        text + ")"
    }
}

/// A size as it can be written.
pub(super) fn extent(sizes: &[u32]) -> String {
    match sizes {
        [one] => one.to_string(),
        several => {
            let all: Vec<String> = several.iter().map(u32::to_string).collect();
            format!("dim3({})", all.join(", "))
        }
    }
}

/// A buffer as it can be written.
fn buffer(memory: &LaunchMemory) -> String {
    let length = memory.length.map_or(String::new(), |n| n.to_string());
    let typed = if memory.typed {
        format!(":{}", memory.element)
    } else {
        String::new()
    };
    let contents = match &memory.contents {
        Contents::Open => String::new(),
        Contents::Unknown => " = unknown".to_owned(),
        Contents::Values(values) => match values.as_slice() {
            [one] => format!(" = {one}"),
            several => {
                let all: Vec<String> = several.iter().map(i64::to_string).collect();
                format!(" = {{{}}}", all.join(", "))
            }
        },
    };
    format!("{}{typed}[{length}]{contents}", memory.name)
}

/// The size of an integer type.
pub(super) fn bytes_of(element: &str) -> Option<u64> {
    match element {
        "bool" | super::ptx::BYTES => Some(1),
        "half" => Some(2),
        "float" => Some(4),
        "double" => Some(8),
        "b128" => Some(16),
        // Any other name is that of a structure, such as `S128`.
        _ => match element.strip_prefix(['b', 'f', 's', 'u'])? {
            "8" => Some(1),
            "16" => Some(2),
            "32" => Some(4),
            "64" => Some(8),
            _ => None,
        },
    }
}

/// What of a parameter's memory its type says.
fn memory(parameter: &KernelParameter, span: Span, block: u64, all: u64) -> LaunchMemory {
    let contents = match parameter.class {
        // As many come as there are threads.
        Some(Class::Barrier(program::Scope::Cta)) => Contents::Values(vec![block as i64]),
        Some(Class::Barrier(_)) => Contents::Values(vec![all as i64]),
        Some(Class::Latch(_)) => Contents::Values(vec![block as i64]),
        Some(Class::Semaphore(..)) => Contents::Values(vec![1]),
        Some(_) => Contents::Values(vec![0]),
        None => Contents::Open,
    };
    LaunchMemory {
        name: parameter.name.clone(),
        span,
        element: parameter
            .pointee
            .clone()
            .unwrap_or_else(|| "s32".to_owned()),
        length: (parameter.class.is_some() || parameter.by_value).then_some(1),
        contents,
        space: parameter.space,
        class: parameter.class,
        dynamic: false,
        typed: parameter.pointee.as_deref() == Some(super::ptx::BYTES),
        same_as: None,
    }
}

/// Chooses a value for each parameter.
pub(super) fn choose_arguments(bound: &mut BoundLaunch, head: &KernelHead) {
    let block = bound.block.iter().map(|n| u64::from(*n)).product();
    let (all, span) = (bound.threads(), bound.span);
    for parameter in &head.parameters {
        let number = super::choose::scalar(parameter, head, bound.width());
        let of = parameter.pointee.as_ref().map(|_| {
            let number = bound.memory.len();
            let mut memory = memory(parameter, span, block, all);
            // A buffer needs another name than its parameter in PTX.
            if memory.typed {
                memory.name = format!("buffer{number}");
            }
            bound.memory.push(memory);
            number
        });
        bound.arguments.push(Argument {
            parameter: parameter.name.clone(),
            of,
            number: if of.is_some() { 0 } else { number },
            span,
        });
    }
}

/// Gives a kernel's numbers the values that a file for GPUVerify says.
///
/// # Errors
/// Values that do not fit the kernel.
pub(super) fn bind_numbers(
    bound: &mut BoundLaunch,
    head: &KernelHead,
    launch: &WrittenLaunch,
    file: &Arc<SourceFile>,
) -> Result<(), Box<Diagnostic>> {
    let own = |given: &&KernelNumbers| given.kernel == head.name;
    let Some(given) = launch.numbers.iter().find(own) else {
        return Ok(());
    };
    let wrong = |message: String, label: String| {
        let d = Diagnostic::error("launch-argument", file, given.span, message);
        Box::new(d.label(label).help(format!(
            "give the whole launch in a line `// fencepost: {}`",
            bound.text()
        )))
    };
    fn by_value(p: &&KernelParameter) -> bool {
        p.pointee.is_none() || p.by_value
    }
    let wanted: Vec<&KernelParameter> = head.parameters.iter().filter(by_value).collect();
    if let Some(structure) = wanted.iter().find(|p| p.by_value) {
        return Err(wrong(
            format!(
                "`{}` is a structure, and `{NUMBERS}` gives numbers",
                structure.name
            ),
            "its bytes are not taken from here".into(),
        ));
    }
    if wanted.len() != given.values.len() {
        let names: Vec<String> = wanted.iter().map(|p| format!("`{}`", p.name)).collect();
        return Err(wrong(
            format!(
                "`{NUMBERS}` has another number of values than `{}`",
                head.name
            ),
            format!("expected a value for each of: {}", names.join(", ")),
        ));
    }
    let mut values = Vec::new();
    for (parameter, written) in wanted.iter().zip(&given.values) {
        let digits = written.strip_prefix("0x").unwrap_or(written);
        let Ok(value) = u64::from_str_radix(digits, 16) else {
            return Err(wrong(
                format!("`{}` has no value in `{NUMBERS}`", parameter.name),
                format!("`{written}` is no hexadecimal number; open values are not supported"),
            ));
        };
        values.push((parameter.name.clone(), value as i64));
    }
    for (name, value) in values {
        let of = bound.arguments.iter_mut().find(|a| a.parameter == name);
        if let Some(argument) = of {
            argument.number = value;
        }
    }
    Ok(())
}

/// Binds the arguments that a launch has.
///
/// # Errors
/// Those that do not fit the kernel.
pub(super) fn bind(
    bound: &mut BoundLaunch,
    head: &KernelHead,
    written: &WrittenLaunches,
) -> Result<(), Vec<Diagnostic>> {
    let Some(arguments) = &written.launch.arguments else {
        choose_arguments(bound, head);
        return Ok(());
    };
    let (given, taken) = (arguments.len(), head.parameters.len());
    if given != taken {
        let s = if taken == 1 { "" } else { "s" };
        let message = format!("`{}` takes {taken} argument{s}, {given} given", head.name);
        let d = misfit(written, written.launch.span, message);
        return Err(vec![d.label(format!("expected {}", signature(head)))]);
    }
    let mut binder = Binder {
        head,
        written,
        block: bound.block.iter().map(|n| u64::from(*n)).product(),
        all: bound.threads(),
        made: Vec::new(),
    };
    let (mut errors, mut bound_to) = (Vec::new(), Vec::new());
    for (argument, parameter) in arguments.iter().zip(&head.parameters) {
        let span = match written.by {
            LaunchOrigin::Line => argument.span,
            _ => bound.span,
        };
        match binder.place(argument, parameter, span) {
            Ok((of, number)) => bound_to.push(Argument {
                parameter: parameter.name.clone(),
                of,
                number,
                span,
            }),
            Err(wrong) => errors.push(*wrong),
        }
    }
    (bound.memory, bound.arguments) = (binder.made, bound_to);
    match errors.is_empty() {
        true => Ok(()),
        false => Err(errors),
    }
}

fn misfit(written: &WrittenLaunches, span: Span, message: String) -> Diagnostic {
    Diagnostic::error("launch-argument", &written.file, span, message)
}

/// `block_sum(in[], out[], n)`.
fn signature(head: &KernelHead) -> String {
    let all = head.parameters.iter().map(|p| match &p.pointee {
        Some(_) => format!("{}[]", p.name),
        None => p.name.clone(),
    });
    format!("`{}({})`", head.name, all.collect::<Vec<_>>().join(", "))
}

/// Binds one argument after the other.
struct Binder<'a> {
    head: &'a KernelHead,
    written: &'a WrittenLaunches,
    /// Threads of a block, and of the launch.
    block: u64,
    all: u64,
    /// The buffers so far.
    made: Vec<LaunchMemory>,
}

impl Binder<'_> {
    /// The buffer and the element of an argument, or the number that it is.
    fn place(
        &mut self,
        argument: &super::launch::WrittenArgument,
        parameter: &KernelParameter,
        span: Span,
    ) -> Result<(Option<usize>, i64), Box<Diagnostic>> {
        let name = &parameter.name;
        let wrong = |message: String, expected: String| {
            Box::new(misfit(self.written, argument.span, message).label(expected))
        };
        match (&argument.value, &parameter.pointee) {
            (ArgumentValue::Number(_, Some(other)), _) if other != name => {
                let message = format!("found `{other}`, expected `{name}`");
                Err(wrong(message, format!("expected {}", signature(self.head))))
            }
            (ArgumentValue::Number(number, _), None) => Ok((None, *number)),
            (ArgumentValue::Number(0, _), Some(_)) => Ok((None, 0)),
            // A module does not say which parameters of 64 bits are pointers.
            (ArgumentValue::Number(number, _), Some(of)) if of == super::ptx::BYTES => {
                Ok((None, *number))
            }
            (ArgumentValue::Number(..), Some(_)) => {
                let message = format!("`{name}` is a pointer, and this is a number");
                Err(wrong(
                    message,
                    format!("expected a buffer, as in `{name}[4]`"),
                ))
            }
            (_, None) => {
                let message = format!("`{name}` is a value, and this is a buffer");
                Err(wrong(message, "expected a number".to_owned()))
            }
            (ArgumentValue::Buffer(buffer), Some(_)) => {
                if self.made.iter().any(|m| m.name == buffer.name) {
                    let message = format!("there is a buffer `{}` before", buffer.name);
                    let d = *wrong(message, "expected another name".to_owned());
                    let same = format!("the same buffer again is `{}`", buffer.name);
                    return Err(Box::new(d.help(same)));
                }
                let of_type = memory(parameter, span, self.block, self.all);
                self.made.push(said(buffer, of_type));
                Ok((Some(self.made.len() - 1), 0))
            }
            (ArgumentValue::Element(buffer, at), Some(_)) => {
                let of = self.made.iter().position(|m| m.name == *buffer);
                of.map(|of| (Some(of), *at as i64)).ok_or_else(|| {
                    let message = format!("no earlier argument binds a buffer `{buffer}`");
                    let expected = format!("expected a buffer, as in `{buffer}[4]`");
                    let known = self.made.iter().map(|m| m.name.as_str());
                    Box::new(wrong(message, expected).did_you_mean(buffer, known))
                })
            }
        }
    }
}

/// A buffer as a launch says it, where it says something.
fn said(buffer: &Buffer, of_type: LaunchMemory) -> LaunchMemory {
    let contents = match &buffer.contents {
        Contents::Open => of_type.contents,
        said => said.clone(),
    };
    let listed = match &contents {
        Contents::Values(values) if values.len() > 1 => Some(values.len() as u64),
        _ => None,
    };
    LaunchMemory {
        name: buffer.name.clone(),
        typed: of_type.typed || buffer.element.is_some(),
        element: buffer.element.clone().unwrap_or(of_type.element),
        length: buffer.length.or(listed).or(of_type.length),
        contents,
        ..of_type
    }
}
