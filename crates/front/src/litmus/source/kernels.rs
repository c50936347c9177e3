//! The tests of a source file: each kernel with each of its launches.
//!
//! # Invariants
//! - A kernel that cannot be read does not keep others from being tests.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;
use std::sync::Arc;

use super::bind::{Argument, BoundLaunch, LaunchMemory, bind, bind_numbers, bytes_of};
use super::launch::Contents;
use super::whole::{BoundProgram, ProgramOptions, ReadKernels, SmallerProgram};
use super::{Options, SourceKind, WrittenLaunches, choose, head, launch, ptx, written};
use crate::isa::clike::host_main::{Constants, HostCode, ProgramTrace};
use crate::isa::clike::{ClikeCode, KernelHead, SourceUnit};
use crate::litmus::demands::broken;
use crate::litmus::fronts::language;
use crate::litmus::kernel::PtxFile;
use crate::litmus::reading::{Form, LaunchVariant as OtherLaunch, PointerTarget, Reading};
use crate::litmus::toml::{FileCode, SourceTest, form_made, read_made, read_made_as};
use diag::{Diagnostic, MappedText, Sink, SourceFile, Span};
use program::litmus::{FullLaunches, KernelLaunch, LaunchOrigin, LitmusTest};
use program::{
    Dialect, Init, Layout, LocId, Location, LocationKind, MemoryKind, OpenClMemory, Space, Ty,
};

/// More threads than these are not decided one by one.
const MOST_THREADS: u64 = 256;

/// More threads of a whole program than these are not decided one by one.
const MOST_PROGRAM_THREADS: i64 = 512;

/// Threads of a program above which smaller constants come first.
const MANY_PROGRAM_THREADS: i64 = 96;

/// The largest number of buffers that steer the program.
const MOST_STEERING: usize = 32;

/// The kernels of a file.
enum SourceKernels {
    C(SourceUnit, Dialect),
    Ptx(Rc<PtxFile>),
}

/// The tests of a file: each kernel with each of its launches.
pub(in crate::litmus) fn read(
    kind: SourceKind,
    options: &Options,
    sink: &mut Sink,
    others: &mut Vec<Diagnostic>,
) -> Vec<LitmusTest> {
    let mut tests = Vec::new();
    each(kind, options, sink, others, &mut |made| match made {
        MadeTest::Kernel(_, _, test) => tests.push(test),
        MadeTest::Program(_, test) => tests.push(test),
    });
    tests
}

/// The documents of the tests of a file, with their names.
pub(in crate::litmus) fn documents(
    kind: SourceKind,
    options: &Options,
    sink: &mut Sink,
    others: &mut Vec<Diagnostic>,
) -> Vec<(String, String)> {
    let name = sink.file().name.clone();
    let mut all = Vec::new();
    each(kind, options, sink, others, &mut |made| match made {
        MadeTest::Kernel(kernel, bound, test) => {
            let text = kernel.document(&bound, &test.name, &name);
            all.push((test.name, text));
        }
        MadeTest::Program(program, test) => {
            let text = program.document(&test.name, &name);
            all.push((test.name, text));
        }
    });
    all
}

/// A test with its origin.
enum MadeTest<'a> {
    Kernel(&'a SourceKernel, Box<BoundLaunch>, LitmusTest),
    Program(&'a BoundProgram<'a>, LitmusTest),
}

/// Gives each kernel with each of its launches, or each way through the program, to `take`.
fn each(
    kind: SourceKind,
    options: &Options,
    sink: &mut Sink,
    others: &mut Vec<Diagnostic>,
    take: &mut dyn FnMut(MadeTest<'_>),
) {
    let file = sink.file().clone();
    let kernels = match SourceKernels::of(kind.dialect(), options, sink) {
        Ok(kernels) => kernels,
        Err(wrong) => {
            others.extend(wrong);
            return;
        }
    };
    let names = kernels.names();
    if names.is_empty() {
        sink.push(no_kernel(kind, sink));
        return;
    }
    let all = written(options, sink, others);
    let sizes = launch::sizes(&file.text);
    if all.is_empty()
        && options.launches.is_empty()
        && sizes.is_none()
        && programs(&kernels, options, sink, others, take)
    {
        return;
    }
    let mut taken: Vec<String> = Vec::new();
    let mut launched = vec![false; all.len()];
    for number in 0..names.len() {
        let own: Vec<usize> = (0..all.len())
            .filter(|i| kernels.meant(&all[*i].launch.kernel) == [number])
            .collect();
        own.iter().for_each(|&i| launched[i] = true);
        if own.is_empty() && !options.launches.is_empty() {
            continue;
        }
        let (kept, errors) = (sink.kept(), sink.errors());
        let given: Vec<Option<&WrittenLaunches>> = match own.as_slice() {
            [] => vec![None],
            own => own.iter().map(|&i| Some(&all[i])).collect(),
        };
        for given in given {
            for instance in kernels.instances(number, given, sizes.as_ref(), sink) {
                let kernel = kernels.kernel(number, instance.as_deref(), sink);
                if sink.errors() > errors {
                    break;
                }
                match kernel.test(given, sizes.as_ref(), &taken, sink) {
                    Ok(Some((bound, mut test))) => {
                        taken.push(test.name.clone());
                        if let Some(launch) = &mut test.launch {
                            launch.constants.clone_from(&options.constants);
                        }
                        take(MadeTest::Kernel(&kernel, Box::new(bound), test));
                    }
                    Ok(None) => {}
                    Err(wrong) => others.extend(wrong),
                }
            }
        }
        if let (true, SourceKernels::C(source, _)) = (sink.errors() > errors, &kernels) {
            missing_headers(source, kept, sink);
        }
    }
    for (written, _) in all.iter().zip(launched).filter(|(_, launched)| !launched) {
        others.push(unknown_kernel(written, &names, &file.name));
    }
}

/// Follows `main`; whether it replaces all launches of single kernels.
fn programs(
    kernels: &SourceKernels,
    options: &Options,
    sink: &mut Sink,
    others: &mut Vec<Diagnostic>,
    take: &mut dyn FnMut(MadeTest<'_>),
) -> bool {
    let file = sink.file().clone();
    let SourceKernels::C(source, dialect) = kernels else {
        return false;
    };
    let dialect = *dialect;
    let Some(host) = HostCode::new(source, &file, &options.arguments) else {
        return false;
    };
    let full = host.follow();
    let followed = full.clone().and_then(decidable(&file));
    let too_large = followed
        .as_ref()
        .is_err_and(|wrong| wrong.id == "too-large");
    // Arguments and constants that are given keep their values.
    let chosen = options.arguments.is_empty() && options.constants.is_empty();
    let heavy = followed
        .as_ref()
        .is_ok_and(|ways| ways.iter().any(is_heavy));
    let candidates = match too_large || (chosen && heavy) {
        true => Constants::candidates(&file.text),
        false => Vec::new(),
    };
    for smaller in candidates {
        let text = with_constants(&file, options);
        let mut own = Sink::new(&file);
        let language = language(dialect);
        let source = SourceUnit::read(smaller.put_into(&text), language, &mut own);
        let again = HostCode::new(&source, &file, &options.arguments);
        let ways = again.map(|host| host.follow().and_then(decidable(&file)));
        if let Some(Ok(ways)) = ways {
            let note = format!(
                "the program is decided with smaller constants: {} (`--define NAME=VALUE` gives \
                 others)",
                smaller.told()
            );
            let full = match full {
                Err(wrong) if wrong.id == "too-large" => host.follow_launches(),
                full => full,
            };
            let full = full.map_or_else(
                |_| FullLaunches::default(),
                |ways| full_launches(kernels, &ways, options, &file),
            );
            let smaller = SmallerProgram { note, full };
            let kernels = SourceKernels::C(source, dialect);
            return bound_programs(&kernels, &ways, Some(&smaller), options, sink, others, take);
        }
        // With smaller constants, the program gets as far as a construct that is not followed.
        if let Some(Err(wrong)) = ways
            && too_large
            && ["not-followed", "host-syntax", "wrong-memory"].contains(&wrong.id)
        {
            others.push(*wrong);
            return false;
        }
    }
    match followed {
        Ok(ways) => bound_programs(kernels, &ways, None, options, sink, others, take),
        Err(wrong) => {
            let open = ["not-followed", "host-syntax", "too-large"].contains(&wrong.id);
            others.push(*wrong);
            !open
        }
    }
}

/// Whether the exact engines take long for a program.
fn is_heavy(way: &ProgramTrace) -> bool {
    way.launched > MANY_PROGRAM_THREADS || way.copied > 2 * MANY_PROGRAM_THREADS
}

/// Refuses programs of too many threads.
fn decidable(
    file: &Arc<SourceFile>,
) -> impl Fn(Vec<ProgramTrace>) -> Result<Vec<ProgramTrace>, Box<Diagnostic>> {
    move |ways| {
        let Some(way) = ways
            .iter()
            .find(|way| way.launched > MOST_PROGRAM_THREADS || way.copied > MOST_PROGRAM_THREADS)
        else {
            return Ok(ways);
        };
        let (threads, copied) = (way.launched, way.copied);
        let message = format!(
            "this program has {threads} threads, and copies {copied} elements: too many to decide \
             them one by one"
        );
        let d = Diagnostic::error("too-large", file, way.span, message);
        Err(Box::new(
            d.label(format!("expected at most {MOST_PROGRAM_THREADS} of each"))
                .help(
                    "make the sizes smaller: `--define NAME=VALUE` for a constant, `--args` for \
                 arguments",
                ),
        ))
    }
}

/// The text of a file with the constants that are given.
fn with_constants(file: &SourceFile, options: &Options) -> MappedText {
    let given = Constants {
        named: options.constants.clone(),
        numbers: BTreeMap::new(),
    };
    given.put_into(&launch::with_macros(file))
}

/// The launches of all ways through a program, each once.
fn full_launches(
    kernels: &SourceKernels,
    ways: &[ProgramTrace],
    options: &Options,
    file: &Arc<SourceFile>,
) -> FullLaunches {
    let mut all = FullLaunches {
        texts: Vec::new(),
        are_all: true,
    };
    let mut read = ReadKernels::new();
    if !read_kernels(kernels, ways, &mut read, &mut Sink::new(file)) {
        return FullLaunches::default();
    }
    let given = ProgramOptions {
        arguments: &options.arguments,
        constants: &options.constants,
    };
    for way in ways {
        let Ok(bound) = BoundProgram::new(way, &read, given, None, file) else {
            return FullLaunches::default();
        };
        let full = bound.full_launches();
        all.are_all &= full.are_all;
        for text in full.texts {
            if !all.texts.contains(&text) {
                all.texts.push(text);
            }
        }
    }
    all
}

/// Reads the kernels that a program launches; whether there was no error.
fn read_kernels(
    kernels: &SourceKernels,
    ways: &[ProgramTrace],
    read: &mut ReadKernels,
    sink: &mut Sink,
) -> bool {
    for kernel in ways.iter().flat_map(|way| &way.kernels) {
        if let Entry::Vacant(vacant) = read.entry((kernel.kernel, kernel.instance.clone())) {
            let (kept, errors) = (sink.kept(), sink.errors());
            let found = kernels.kernel(kernel.kernel, kernel.instance.as_deref(), sink);
            if let (true, SourceKernels::C(source, _)) = (sink.errors() > errors, kernels) {
                missing_headers(source, kept, sink);
                return false;
            }
            if let KernelCode::C(unit, _) = found.code {
                vacant.insert((Rc::new(found.head), unit));
            }
        }
    }
    true
}

/// The tests of the ways through a program; whether they replace all launches of single kernels.
fn bound_programs(
    kernels: &SourceKernels,
    ways: &[ProgramTrace],
    smaller: Option<&SmallerProgram>,
    options: &Options,
    sink: &mut Sink,
    others: &mut Vec<Diagnostic>,
    take: &mut dyn FnMut(MadeTest<'_>),
) -> bool {
    let file = sink.file().clone();
    if ways.iter().all(|way| way.launches == 0 && !way.late) {
        others.push(no_launch(&file, ways));
        return false;
    }
    let symbols = ways.iter().flat_map(|way| way.symbols());
    let symbols: Vec<String> = symbols.collect();
    let without = match kernels {
        SourceKernels::C(source, dialect) if !symbols.is_empty() => {
            Some(SourceKernels::C(source.without(&symbols), *dialect))
        }
        _ => None,
    };
    let kernels = without.as_ref().unwrap_or(kernels);
    let mut read = ReadKernels::new();
    if !read_kernels(kernels, ways, &mut read, sink) {
        return true;
    }
    let given = ProgramOptions {
        arguments: &options.arguments,
        constants: &options.constants,
    };
    for (number, way) in ways.iter().enumerate() {
        let name = match number {
            0 => "main".to_owned(),
            n => format!("main#{}", n + 1),
        };
        let bound = BoundProgram::new(way, &read, given, smaller, &file);
        let made = bound.and_then(|bound| {
            let (test, remarks) = bound.test(&name, sink)?;
            remarks.into_iter().for_each(|remark| sink.push(remark));
            take(MadeTest::Program(&bound, test));
            Ok(())
        });
        if let Err(mut wrong) = made {
            if let (SourceKernels::C(source, _), Some(first)) = (kernels, wrong.first_mut())
                && let Some(text) = where_headers_are_missing(source)
            {
                first.advise_also(&text);
            }
            others.extend(wrong);
            return true;
        }
    }
    true
}

fn no_launch(file: &Arc<SourceFile>, ways: &[ProgramTrace]) -> Diagnostic {
    let span = ways.first().map_or(Span::default(), |way| way.span);
    let d = Diagnostic::error("no-launch", file, span, "this program launches no kernel");
    d.label("no way through `main` comes to a launch")
        .help("launch the kernel here, or give its launch with `--launch 'KERNEL<<<1, 32>>>'`")
}

/// The launches of the kernels of a file in a C-like language: their texts, and what they are bound
/// to, where the code can be read.
pub(super) fn launches(
    kind: SourceKind,
    options: &Options,
    sink: &mut Sink,
) -> Vec<(String, Option<BoundLaunch>)> {
    let (file, dialect) = (sink.file().clone(), kind.dialect());
    let text = launch::with_macros(&file);
    let kernels = SourceKernels::C(SourceUnit::read(text, language(dialect), sink), dialect);
    let all = written(options, sink, &mut Vec::new());
    let sizes = launch::sizes(&file.text);
    let mut found = Vec::new();
    for (number, (name, _)) in kernels.names().into_iter().enumerate() {
        let own = all
            .iter()
            .filter(|one| kernels.meant(&one.launch.kernel) == [number]);
        let mut given: Vec<Option<&WrittenLaunches>> = own.map(Some).collect();
        if given.is_empty() && options.launches.is_empty() {
            given.push(None);
        }
        for given in given {
            let mut own = Sink::new(&file);
            let instances = kernels.instances(number, given, sizes.as_ref(), &own);
            let instance = instances.into_iter().next().flatten();
            let kernel = kernels.kernel(number, instance.as_deref(), &mut own);
            let bound = match own.errors() {
                0 => kernel
                    .test(given, sizes.as_ref(), &[], &mut own)
                    .ok()
                    .flatten(),
                _ => None,
            };
            let bound = bound.map(|(bound, _)| bound);
            let by_value = kernel.head.parameters.iter().any(|p| p.by_value);
            let said = given.map(|given| given.file.text[given.launch.span.range()].to_owned());
            found.push((said.unwrap_or(name.clone()), bound.filter(|_| !by_value)));
        }
    }
    found
}

/// The test of a launch, of a file that was changed.
pub(in crate::litmus) fn read_again(
    launch: &KernelLaunch,
    dialect: Dialect,
    sink: &mut Sink,
) -> Option<LitmusTest> {
    let kind = match dialect {
        Dialect::Ptx => SourceKind::Ptx,
        Dialect::OpenCl => SourceKind::OpenCl,
        _ => SourceKind::Cuda,
    };
    let launches = match launch.by {
        // The program gives them.
        LaunchOrigin::Main(_) => Vec::new(),
        _ => vec![launch.text.clone()],
    };
    let options = Options {
        language: Some(kind),
        launches,
        arguments: launch.arguments.clone(),
        constants: launch.constants.clone(),
        ..Options::default()
    };
    let mut others = Vec::new();
    let tests = read(kind, &options, sink, &mut others);
    tests.into_iter().next().filter(|_| others.is_empty())
}

/// The test of a launch of a program's kernel; `None`: it cannot be read alone.
pub(in crate::litmus) fn launched_alone(
    program: &KernelLaunch,
    dialect: Dialect,
    file: &Arc<SourceFile>,
    text: &str,
) -> Option<LitmusTest> {
    let alone = KernelLaunch {
        text: text.to_owned(),
        by: LaunchOrigin::CommandLine,
        ..program.clone()
    };
    let mut sink = Sink::new(file);
    read_again(&alone, dialect, &mut sink).filter(|_| sink.errors() == 0)
}

/// Finds the kernel of a launch that a test was made with, bound as in the file.
fn found_again(
    launch: &KernelLaunch,
    dialect: Dialect,
    sink: &mut Sink,
) -> Result<Option<(SourceKernel, BoundLaunch)>, Vec<Diagnostic>> {
    let options = Options {
        launches: vec![launch.text.clone()],
        constants: launch.constants.clone(),
        ..Options::default()
    };
    let kernels = SourceKernels::of(dialect, &options, sink)?;
    let mut others = Vec::new();
    let all = written(&options, sink, &mut others);
    let (Some(given), true) = (all.first(), others.is_empty()) else {
        return Err(others);
    };
    let [number] = kernels.meant(&given.launch.kernel)[..] else {
        return Ok(None);
    };
    let kernel = kernels.kernel(number, given.launch.instance.as_deref(), sink);
    if sink.errors() > 0 {
        return Ok(None);
    }
    let mut bound = kernel.bound(Some(given), None, sink.file())?;
    kernel.add_dynamic(&mut bound, Some(given));
    Ok(Some((kernel, bound)))
}

/// Reads a kernel with the thread's place in registers; its launch has the sizes and numbers that
/// the file gives.
///
/// # Errors
/// What is wrong with the file, or cannot be said for all threads at once.
pub(in crate::litmus) fn form(
    launch: &KernelLaunch,
    dialect: Dialect,
    file: &Arc<SourceFile>,
) -> Result<Option<Form>, Vec<Diagnostic>> {
    let mut sink = Sink::new(file);
    let Some((kernel, mut bound)) = found_again(launch, dialect, &mut sink)? else {
        return Err(sink.into_diagnostics());
    };
    if bound.cluster.is_some() {
        return Ok(None);
    }
    bound.grid.clone_from(&launch.given.grid);
    bound.block.clone_from(&launch.given.block);
    for (name, number) in &launch.given.numbers {
        let of_name = bound.arguments.iter_mut().find(|a| a.parameter == *name);
        if let Some(argument) = of_name {
            argument.number = *number;
        }
    }
    let (mut form, _) = kernel.read_by(&bound, &launch.kernel, &sink, &form_made)?;
    form.test.name.clone_from(&launch.kernel);
    form.limit = kernel.head.limit;
    kernel.keep_sizes_of_code(&mut form);
    let structures = kernel.head.parameters.iter().filter(|p| p.by_value);
    structures.for_each(|parameter| add_targets(&mut form, &parameter.name));
    Ok(Some(form))
}

/// The most pointers in a parameter structure that lead to objects.
const MOST_TARGETS: usize = 64;

/// Declares an object for each word of a parameter structure that may hold a pointer.
fn add_targets(form: &mut Form, parameter: &str) {
    let locations = &mut form.test.program.locations;
    let Some(holder) = locations.iter().position(|l| l.name == parameter) else {
        return;
    };
    let LocationKind::Object { layout, init, .. } = &locations[holder].kind else {
        return;
    };
    let (layout, count) = (layout.clone(), init.len());
    let words = (0..count as u32).filter(|cell| layout.field(*cell).ty.bits == 64);
    for cell in words.take(MOST_TARGETS) {
        form.targets.push(PointerTarget {
            holder: LocId(holder as u16),
            offset: layout.offset(cell),
            object: LocId(locations.len() as u16),
        });
        locations.push(Location {
            name: format!("{parameter}{}", layout.suffix(cell, count)),
            also: Vec::new(),
            kind: LocationKind::Object {
                layout: Layout::of(
                    Ty {
                        bits: 8,
                        signed: false,
                    },
                    false,
                ),
                init: vec![Init::Int(0)],
                space: Space::Global,
                atomic: false,
                opencl: OpenClMemory::default(),
                kind: MemoryKind::default(),
                class: None,
            },
        });
    }
}

/// Reads a kernel with another launch.
///
/// # Errors
/// What is wrong with the file, or with the launch.
pub(in crate::litmus) fn at(
    launch: &KernelLaunch,
    dialect: Dialect,
    file: &Arc<SourceFile>,
    other: &OtherLaunch,
) -> Result<Option<LitmusTest>, Vec<Diagnostic>> {
    let mut sink = Sink::new(file);
    let Some((kernel, mut bound)) = found_again(launch, dialect, &mut sink)? else {
        return Err(sink.into_diagnostics());
    };
    let dimensions = other.range.dimensions();
    let sizes = |all: [u64; 3]| all[..dimensions].iter().map(|n| *n as u32).collect();
    (bound.grid, bound.block) = (sizes(other.range.groups()), sizes(other.range.local()));
    for (name, number) in &other.arguments {
        let of_name = bound.arguments.iter_mut().find(|a| a.parameter == *name);
        if let Some(argument) = of_name.filter(|argument| argument.of.is_none()) {
            argument.number = *number;
        }
    }
    let of_object: Vec<&str> = {
        let objects = kernel.head.parameters.iter().filter(|p| p.class.is_some());
        objects.map(|p| p.name.as_str()).collect()
    };
    fn listed(contents: &Contents) -> bool {
        matches!(contents, Contents::Values(v) if v.len() > 1)
    }
    for memory in &mut bound.memory {
        if !listed(&memory.contents) && !of_object.contains(&memory.name.as_str()) {
            memory.length = Some(other.most_elements as u64);
        }
    }
    let read = |made: &SourceTest<'_>, sink: &mut Sink| {
        read_made_as(made, Reading::At(other.clone()), sink)
    };
    let name = &launch.kernel;
    let (mut test, _) = kernel.read_by(&bound, name, &sink, &read)?;
    for _ in 0..MOST_STEERING {
        if !choose::contents(&mut bound, &test.program) {
            break;
        }
        (test, _) = kernel.read_by(&bound, name, &sink, &read)?;
    }
    test.name.clone_from(name);
    test.launch = Some(KernelLaunch {
        threads: other.threads.clone(),
        ..kernel.launched(&bound)
    });
    Ok(Some(test))
}

impl SourceKernels {
    /// The kernels of a file.
    ///
    /// # Errors
    /// What is wrong with a module.
    fn of(
        dialect: Dialect,
        options: &Options,
        sink: &mut Sink,
    ) -> Result<SourceKernels, Vec<Diagnostic>> {
        let file = sink.file().clone();
        match dialect {
            Dialect::Ptx => {
                let source = PtxFile::read(&file.name, &file.text)?;
                Ok(SourceKernels::Ptx(Rc::new(source)))
            }
            dialect => {
                let text = with_constants(&file, options);
                let unit = SourceUnit::read(text, language(dialect), sink);
                Ok(SourceKernels::C(unit, dialect))
            }
        }
    }

    /// The names with their places.
    fn names(&self) -> Vec<(String, Span)> {
        match self {
            SourceKernels::C(source, _) => source.kernels(),
            SourceKernels::Ptx(source) => {
                let all = source.kernels();
                all.map(|(kernel, at)| (ptx::short(source, &kernel.name), at))
                    .collect()
            }
        }
    }

    /// The kernels that a name is of, or short for.
    fn meant(&self, word: &str) -> Vec<usize> {
        match self {
            SourceKernels::Ptx(source) => source.meant(word),
            SourceKernels::C(source, _) => {
                let all = source.kernels().into_iter().enumerate();
                all.filter(|(_, (name, _))| name == word)
                    .map(|(i, _)| i)
                    .collect()
            }
        }
    }

    /// The instances of a kernel's template that are tests: those that a launch or the file says,
    /// else the first that the code admits. A kernel that is no template is one test.
    fn instances(
        &self,
        number: usize,
        given: Option<&WrittenLaunches>,
        sizes: Option<&launch::WrittenLaunch>,
        sink: &Sink,
    ) -> Vec<Option<String>> {
        let SourceKernels::C(source, _) = self else {
            return vec![None];
        };
        if let Some(instance) = given.and_then(|given| given.launch.instance.clone()) {
            return vec![Some(instance)];
        }
        let mut own = Sink::new(sink.file());
        let candidates = source.unit(number, None, &mut own).candidates();
        if candidates.is_empty() {
            return vec![None];
        }
        let written = source.instances(number);
        if !written.is_empty() {
            return written.into_iter().map(Some).collect();
        }
        let admitted = candidates.iter().find(|candidate| {
            let mut own = Sink::new(sink.file());
            let kernel = self.kernel(number, Some(candidate), &mut own);
            own.errors() == 0 && matches!(kernel.test(given, sizes, &[], &mut own), Ok(Some(_)))
        });
        vec![admitted.or(candidates.first()).cloned()]
    }

    fn kernel(&self, number: usize, instance: Option<&str>, sink: &mut Sink) -> SourceKernel {
        match self {
            SourceKernels::C(source, dialect) => {
                let unit = Rc::new(source.unit(number, instance, sink));
                let head = source.head(number, instance, &unit);
                SourceKernel {
                    head,
                    code: KernelCode::C(unit, *dialect),
                }
            }
            SourceKernels::Ptx(source) => {
                let found = source.kernels().nth(number);
                let head = found.map(|(kernel, at)| ptx::head(source, kernel, at));
                SourceKernel {
                    head: head.unwrap_or_default(),
                    code: KernelCode::Ptx(source.clone(), number),
                }
            }
        }
    }
}

/// Says of errors that headers were not read, as the names may be theirs.
fn missing_headers(source: &SourceUnit, kept: usize, sink: &mut Sink) {
    if let Some(text) = where_headers_are_missing(source) {
        sink.advise_also(kept, &text);
    }
}

/// What to do about headers that were not read, if there are any.
fn where_headers_are_missing(source: &SourceUnit) -> Option<String> {
    let told = |(name, _): &(String, Span)| match name.starts_with('/') || name.contains("..") {
        true => format!("`{name}` is outside of the folder of this project, and is not read"),
        false => format!("`{name}` is not beside this file"),
    };
    let all: Vec<String> = source.missing.iter().map(told).collect();
    (!all.is_empty()).then(|| {
        format!(
            "{}: the name may be from there; name its folder with `-I`, or write its declaration \
            into this file",
            all.join(", ")
        )
    })
}

fn no_kernel(kind: SourceKind, sink: &Sink) -> Diagnostic {
    let word = match kind {
        SourceKind::OpenCl => "__kernel",
        SourceKind::Cuda => "__global__",
        SourceKind::Ptx => ".entry",
        SourceKind::SpirV => "OpEntryPoint",
    };
    let first = sink.file().text.lines().next().map_or(0, str::len);
    let d = Diagnostic::error(
        "no-kernel",
        sink.file(),
        Span::new(0, first),
        "this file has no kernel",
    );
    d.label(format!("expected a function with `{word}`"))
        .help("name a file that defines one; a header is read with the file that includes it")
}

/// The error of a launch whose blocks a kernel does not take.
fn misfit(head: &KernelHead, block: &[u32], given: &WrittenLaunches) -> Option<Diagnostic> {
    let sizes = [0, 1, 2].map(|i| block.get(i).copied().map_or(1, u64::from));
    let broken = broken(head.limit.as_ref()?, sizes)?;
    let message = format!(
        "`{}` is launched with {} threads in a block, and {}",
        head.name,
        sizes.iter().product::<u64>(),
        broken.demand
    );
    let d = Diagnostic::error("launch-mismatch", &given.file, given.launch.span, message);
    Some(
        d.label("launched here")
            .note(format!("such a launch fails ({})", broken.source))
            .help(broken.help),
    )
}

fn unknown_kernel(written: &WrittenLaunches, names: &[(String, Span)], file: &str) -> Diagnostic {
    let wanted = &written.launch.kernel;
    let message = format!("`{file}` has no kernel `{wanted}`");
    let known: Vec<String> = names.iter().map(|(name, _)| format!("`{name}`")).collect();
    let d = Diagnostic::error(
        "unknown-kernel",
        &written.file,
        written.launch.span,
        message,
    );
    d.label("launched here")
        .note(format!("its kernels: {}", known.join(", ")))
        .did_you_mean(wanted, names.iter().map(|(name, _)| name.as_str()))
}

/// A kernel of a file.
struct SourceKernel {
    head: KernelHead,
    code: KernelCode,
}

/// Its code.
enum KernelCode {
    C(Rc<ClikeCode>, Dialect),
    /// A module, and the number of the kernel in it.
    Ptx(Rc<PtxFile>, usize),
}

impl SourceKernel {
    /// The test of a launch, bound; with errors in the code, none. `taken`: names of those before
    /// it.
    ///
    /// # Errors
    /// What of the launch does not fit the kernel.
    fn test(
        &self,
        given: Option<&WrittenLaunches>,
        sizes: Option<&launch::WrittenLaunch>,
        taken: &[String],
        sink: &mut Sink,
    ) -> Result<Option<(BoundLaunch, LitmusTest)>, Vec<Diagnostic>> {
        let mut bound = self.bound(given, sizes, sink.file())?;
        let mut whole = bound.given();
        self.make_smaller(&mut bound);
        self.add_dynamic(&mut bound, given);
        let open = bound.memory.iter().any(|m| m.length.is_none());
        if open {
            let Some(mut trial) = self.trial(&mut bound, sink) else {
                return Ok(None);
            };
            if let KernelCode::Ptx(..) = self.code
                && ptx::settle(&mut bound, &trial.program)
            {
                let Some((again, _)) = self.made(&bound, "trial", sink) else {
                    return Ok(None);
                };
                trial = again;
            }
            choose::lengths(&mut bound, &trial.program);
        }
        // Nothing was accessed through some parameters of a module: they are numbers.
        let numbers = bound.arguments.iter().filter(|a| a.of.is_none());
        let missing = |a: &&Argument| !whole.numbers.iter().any(|(name, _)| *name == a.parameter);
        let missing = numbers.filter(missing);
        let missing: Vec<_> = missing.map(|a| (a.parameter.clone(), a.number)).collect();
        whole.numbers.extend(missing);
        whole.has_arguments = match given {
            Some(given) => given.launch.arguments.is_some(),
            None => sizes.is_some_and(|sizes| sizes.gives_numbers(&self.head.name)),
        };
        let name = self.name(&bound, taken);
        let Some((mut test, mut remarks)) = self.made(&bound, &name, sink) else {
            return Ok(None);
        };
        for _ in 0..MOST_STEERING {
            if !choose::contents(&mut bound, &test.program) {
                break;
            }
            let Some(again) = self.made(&bound, &name, sink) else {
                return Ok(None);
            };
            (test, remarks) = again;
        }
        remarks.into_iter().for_each(|remark| sink.push(remark));
        test.launch = Some(KernelLaunch {
            given: whole,
            ..self.launched(&bound)
        });
        Ok(Some((bound, test)))
    }

    /// A test in which accesses show how long buffers are. A module whose accesses leave short
    /// buffers gets long ones.
    fn trial(&self, bound: &mut BoundLaunch, sink: &mut Sink) -> Option<LitmusTest> {
        let before = sink.mark();
        let made = self.made(bound, "trial", sink);
        if made.is_some() || !matches!(self.code, KernelCode::Ptx(..)) {
            return made.map(|(trial, _)| trial);
        }
        sink.take_back(before);
        bound.trial_bytes = ptx::LONG_TRIAL_BYTES;
        self.made(bound, "trial", sink).map(|(trial, _)| trial)
    }

    /// The launch of a test.
    fn launched(&self, bound: &BoundLaunch) -> KernelLaunch {
        let inputs = bound
            .memory
            .iter()
            .filter(|m| !m.dynamic)
            .filter(|m| matches!(m.contents, Contents::Open | Contents::Unknown));
        KernelLaunch {
            kernel: bound.kernel.clone(),
            text: bound.text(),
            grid: bound.grid.clone(),
            block: bound.block.clone(),
            by: bound.by,
            span: self.head.span,
            inputs: inputs.map(|m| m.name.clone()).collect(),
            is_smaller: bound.smaller.is_some(),
            notes: bound.smaller.iter().cloned().collect(),
            zeroed: bound.zeroed.clone(),
            arguments: Vec::new(),
            constants: BTreeMap::new(),
            given: bound.given(),
            full: None,
            threads: None,
            compiler: None,
        }
    }

    /// The name of a test: that of the kernel, with its sizes if there is one before.
    fn name(&self, bound: &BoundLaunch, taken: &[String]) -> String {
        let plain = bound.kernel.clone();
        let (grid, block) = (&bound.grid, &bound.block);
        let sized = format!(
            "{plain}<<<{}, {}>>>",
            super::bind::extent(grid),
            super::bind::extent(block)
        );
        let numbered = (2..).map(|n| format!("{sized}#{n}"));
        let mut all = [plain, sized.clone()].into_iter().chain(numbered);
        all.find(|name| !taken.contains(name)).unwrap_or_default()
    }

    /// The launch with all arguments.
    fn bound(
        &self,
        given: Option<&WrittenLaunches>,
        sizes: Option<&launch::WrittenLaunch>,
        file: &Arc<SourceFile>,
    ) -> Result<BoundLaunch, Vec<Diagnostic>> {
        let head = &self.head;
        let launch = given.map(|given| &given.launch).or(sizes);
        let block = launch
            .and_then(|l| l.block.clone())
            .unwrap_or_else(|| choose::block(head));
        let grid = launch
            .and_then(|l| l.grid.clone())
            .unwrap_or_else(|| choose::grid(head));
        let by = match (given, launch) {
            (Some(given), _) => given.by,
            (None, Some(_)) => LaunchOrigin::Line,
            _ => LaunchOrigin::Choice,
        };
        let span = given.filter(|given| given.by == LaunchOrigin::Line);
        let mut bound = BoundLaunch {
            kernel: head.name.clone(),
            span: span.map_or(self.head.span, |given| given.launch.span),
            grid,
            block,
            cluster: head.cluster.map(|sizes| sizes.to_vec()),
            cooperative: head.traits.grid_wide,
            by,
            arguments: Vec::new(),
            memory: Vec::new(),
            smaller: None,
            zeroed: Vec::new(),
            trial_bytes: ptx::TRIAL_BYTES,
        };
        match given {
            Some(given) => {
                // The reader of modules reports the directive that a launch does not fit.
                if let KernelCode::C(..) = self.code
                    && let Some(d) = misfit(head, &bound.block, given)
                {
                    return Err(vec![d]);
                }
                bind(&mut bound, head, given)?;
            }
            None => {
                super::bind::choose_arguments(&mut bound, head);
                if let Some(sizes) = sizes {
                    bind_numbers(&mut bound, head, sizes, file).map_err(|d| vec![*d])?;
                }
            }
        }
        Ok(bound)
    }

    /// Makes a launch of too many threads smaller, with numbers and buffers in proportion.
    fn make_smaller(&self, bound: &mut BoundLaunch) {
        let before = bound.threads();
        if before <= MOST_THREADS {
            return;
        }
        let whole = bound.text();
        let wanted = choose::block(&self.head);
        for (dimension, size) in bound.block.iter_mut().enumerate() {
            *size = (*size).min(wanted.get(dimension).copied().unwrap_or(1).max(1));
        }
        if self.head.cluster.is_none() {
            let mut left = 2;
            for size in &mut bound.grid {
                *size = (*size).min(left);
                left = (left / *size).max(1);
            }
        }
        let factor = (before / bound.threads().max(1)).max(1) as i64;
        for argument in bound.arguments.iter_mut().filter(|a| a.of.is_none()) {
            let scaled = argument.number / factor;
            if argument.number % factor == 0 && scaled > 0 {
                argument.number = scaled;
            }
        }
        for memory in bound
            .memory
            .iter_mut()
            .filter(|m| !matches!(&m.contents, Contents::Values(v) if v.len() > 1))
        {
            memory.length = None;
        }
        bound.smaller = Some(format!(
            "`{whole}` has {before} threads, too many to decide one by one: a smaller launch is \
            decided instead"
        ));
    }

    /// Keeps the sizes of objects that the code gives. A buffer may have any size, and that of
    /// dynamic shared memory is a part of the launch.
    fn keep_sizes_of_code(&self, form: &mut Form) {
        if let KernelCode::Ptx(module, _) = &self.code {
            for size in &mut form.sizes {
                let name = &form.test.program.location(size.object).name;
                let declared = module.bytes_of(name);
                size.of_code = declared == Some(size.bytes);
            }
        }
        form.sizes.retain(|size| size.of_code);
    }

    /// Adds the arrays of dynamic shared memory, which all begin at one place.
    fn add_dynamic(&self, bound: &mut BoundLaunch, given: Option<&WrittenLaunches>) {
        let shared = given
            .and_then(|given| given.launch.shared)
            .filter(|_| bound.smaller.is_none());
        let mut first: Option<String> = None;
        for (name, element) in &self.head.dynamic {
            let length = shared
                .zip(bytes_of(element))
                .map(|(bytes, size)| (bytes / size).max(1));
            bound.memory.push(LaunchMemory {
                name: name.clone(),
                span: bound.span,
                element: element.clone(),
                length,
                contents: Contents::Unknown,
                space: Some("shared"),
                class: None,
                dynamic: true,
                typed: false,
                same_as: first.clone(),
            });
            first.get_or_insert(name.clone());
        }
    }

    /// The test as a TOML file.
    fn document(&self, bound: &BoundLaunch, name: &str, source: &str) -> String {
        let (unit, dialect) = match &self.code {
            KernelCode::C(unit, dialect) => (unit, *dialect),
            KernelCode::Ptx(module, number) => {
                let Some((kernel, _)) = module.kernels().nth(*number) else {
                    return String::new();
                };
                let (launch, _) = ptx::launch(module, kernel, bound);
                return module
                    .to_toml(Some(&kernel.name), &launch)
                    .map_or(String::new(), |it| it.0);
            }
        };
        let head = head::head(name, source, dialect, bound);
        let code = format!("code = '''\n{}'''\n", unit.text());
        head.as_str().replacen("code = \"\"\n", &code, 1)
    }

    /// The test with warnings; `None`: `sink` has the errors.
    fn made(
        &self,
        bound: &BoundLaunch,
        name: &str,
        sink: &mut Sink,
    ) -> Option<(LitmusTest, Vec<Diagnostic>)> {
        let made = match &self.code {
            KernelCode::C(unit, dialect) => of_unit(unit, *dialect, bound, name, sink, &read_made),
            KernelCode::Ptx(source, number) => of_module(source, *number, bound, name),
        };
        match made {
            Ok(made) => Some(made),
            Err(wrong) => {
                wrong.into_iter().for_each(|d| sink.push(d));
                None
            }
        }
    }

    /// The kernel with a launch, as `read` reads it.
    fn read_by<T>(
        &self,
        bound: &BoundLaunch,
        name: &str,
        sink: &Sink,
        read: Reader<'_, T>,
    ) -> Result<(T, Vec<Diagnostic>), Vec<Diagnostic>> {
        let (source, number) = match &self.code {
            KernelCode::C(unit, dialect) => {
                return of_unit(unit, *dialect, bound, name, sink, read);
            }
            KernelCode::Ptx(source, number) => (source, *number),
        };
        let Some((kernel, at)) = source.kernels().nth(number) else {
            return Err(Vec::new());
        };
        let (launch, inputs) = ptx::launch(source, kernel, bound);
        source.placed_as(&kernel.name, at, &launch, &inputs, read)
    }
}

/// Reads a document.
type Reader<'a, T> = &'a dyn Fn(&SourceTest<'_>, &mut Sink) -> Option<T>;

/// A kernel in a C-like language with a launch.
fn of_unit<T>(
    unit: &Rc<ClikeCode>,
    dialect: Dialect,
    bound: &BoundLaunch,
    name: &str,
    sink: &Sink,
    read: Reader<'_, T>,
) -> Result<(T, Vec<Diagnostic>), Vec<Diagnostic>> {
    let head = head::head(name, &sink.file().name, dialect, bound);
    let made = SourceTest {
        head: &head,
        code: FileCode::C(unit.clone()),
    };
    let mut own = Sink::new(sink.file());
    let test = read(&made, &mut own).filter(|_| own.errors() == 0);
    let found = own.into_diagnostics();
    match test {
        Some(test) => Ok((test, found)),
        None => Err(found),
    }
}

/// A kernel of a module with a launch.
fn of_module(
    source: &PtxFile,
    number: usize,
    bound: &BoundLaunch,
    name: &str,
) -> Result<(LitmusTest, Vec<Diagnostic>), Vec<Diagnostic>> {
    let Some((kernel, at)) = source.kernels().nth(number) else {
        return Err(Vec::new());
    };
    let (launch, inputs) = ptx::launch(source, kernel, bound);
    let (test, found) = source.placed(&kernel.name, at, &launch, &inputs)?;
    let name = name.to_owned();
    Ok((LitmusTest { name, ..test }, found))
}
