//! Turns a kernel of a PTX module into a test: its code with all functions that it calls, its
//! parameters bound to values, its variables under `[memory]`.
//!
//! # Invariants
//! - The code keeps every byte except declarations of variables, so an error points to its line in
//!   the module.
//! - The result is read back as a test: an unsupported kernel gives errors, never a test.

mod accesses;
mod binding;
mod document;
mod draft;
mod fits;
mod mangled;
mod maps;
mod object;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use self::accesses::{Accesses, pieces, words};
use self::binding::{BYTES, BufferContents, FORM, WORD, rounded};
use self::document::KernelDraft;
use self::object::code_of;
use super::toml::{FileCode, SourceTest as TestParts, form_made, read_made};
use super::write::quote;
use crate::isa::ptx::module::{
    ElementInit, Kernel, Module, ModuleFunction, ModuleVariable, Param, parse,
};
use crate::isa::ptx::{PtxCode, bits_named, type_named};
use diag::{Diagnostic, MappedText, Severity, Sink, SourceFile, Span};
use program::litmus::{Atom, ConditionTerm, LitmusTest, Observable, Prop};
use program::points::{Points, access_of};
use program::{CmpOp, LocationKind, Op, Program, Space};

/// The result of importing a kernel.
#[derive(Default)]
struct Imported {
    /// The test, as TOML text.
    text: String,
    warnings: Vec<Diagnostic>,
    /// Buffers with an accessed word that reaches beyond their end, with their sizes in bytes.
    part: BTreeMap<String, u64>,
    /// Buffers that the kernel reads although the launch gives them no values.
    inputs: BTreeSet<String>,
}

/// The launch of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The number of CTAs in each dimension.
    pub grid: Vec<u32>,
    /// The number of threads per CTA in each dimension. If empty, the kernel's requirement applies,
    /// or else one thread.
    pub block: Vec<u32>,
    /// The number of CTAs per cluster in each dimension. If empty, the kernel's requirement
    /// applies, if there is one.
    pub cluster: Vec<u32>,
    /// Bindings of parameters, variables and special registers, as `--arg` takes them.
    pub args: Vec<String>,
    /// The condition of the test.
    pub ask: Option<String>,
}

/// A parsed module.
pub struct PtxFile {
    file: Arc<SourceFile>,
    module: Module,
}

impl PtxFile {
    /// The functions that a kernel calls, directly or through others.
    fn called<'a>(&'a self, kernel: &'a Kernel) -> Vec<&'a ModuleFunction> {
        let functions = &self.module.functions;
        let mut left: HashMap<&str, usize> = HashMap::new();
        functions.iter().enumerate().for_each(|(i, f)| {
            left.entry(&f.name).or_insert(i);
        });
        let (mut found, mut open) = (BTreeSet::new(), vec![kernel.body.as_str()]);
        while let Some(text) = open.pop() {
            for i in words(text).filter_map(|word| left.remove(word)) {
                found.insert(i);
                open.push(&functions[i].text);
            }
        }
        found.into_iter().map(|i| &functions[i]).collect()
    }

    /// The text of a kernel and of the functions that it calls, each with its offset in the module.
    fn code<'a>(&'a self, kernel: &'a Kernel) -> Vec<(&'a str, usize)> {
        let functions = self
            .called(kernel)
            .into_iter()
            .map(|f| (f.text.as_str(), f.start));
        functions
            .chain([(kernel.body.as_str(), kernel.start)])
            .collect()
    }

    /// Parses a module.
    ///
    /// # Errors
    /// All mistakes in the module.
    pub fn read(name: &str, text: &str) -> Result<PtxFile, Vec<Diagnostic>> {
        let file = SourceFile::new(name, text);
        let mut sink = Sink::new(&file);
        let module = parse(text, &mut sink);
        match sink.errors() {
            0 => Ok(PtxFile { file, module }),
            _ => Err(sink.into_diagnostics()),
        }
    }

    /// The number of the line at an offset.
    fn line(&self, offset: usize) -> usize {
        self.file.line_column(offset).0
    }

    /// Lists the module for the user: kernels with their parameters, variables, and constructs that
    /// are not supported.
    pub fn listing(&self) -> String {
        let mut out = String::new();
        fn count(n: u64) -> String {
            if n == 1 {
                String::new()
            } else {
                format!("[{n}]")
            }
        }
        fn shown(v: &ModuleVariable) -> String {
            format!(
                "{} .{} {}{}",
                v.space,
                v.ty.ptx_name(),
                v.name,
                v.elements.map_or("[]".to_owned(), count)
            )
        }
        for kernel in &self.module.kernels {
            let params: Vec<String> = kernel
                .params
                .iter()
                .map(|p| format!(".{} {}{}", p.ty, p.name, count(p.elements)))
                .collect();
            let short = mangled::DemangledName::of(&kernel.name)
                .map_or(String::new(), |name| format!("  {}", name.text()));
            let _ = writeln!(
                out,
                "{}({})  line {}{short}",
                kernel.name,
                params.join(", "),
                self.line(kernel.start)
            );
            for demand in &kernel.demands {
                let sizes: Vec<String> =
                    demand.sizes.iter().map(|size| format!(" {size}")).collect();
                let _ = writeln!(out, "  {}{}", demand.directive, sizes.join(","));
            }
            let inner = self.called(kernel).into_iter().flat_map(|f| &f.variables);
            for variable in inner.chain(&kernel.variables) {
                let _ = writeln!(out, "  {}", shown(variable));
            }
            self.refused(kernel, &mut out);
        }
        let all: Vec<(&str, usize)> = self
            .module
            .kernels
            .iter()
            .flat_map(|k| self.code(k))
            .collect();
        let all: HashSet<&str> = all.iter().flat_map(|(text, _)| words(text)).collect();
        for variable in self.used(&all).0 {
            let _ = writeln!(out, "{}", shown(variable));
        }
        out
    }

    /// Lists all constructs for which a launch of the kernel would be refused, each with all its
    /// lines, and the calls of unknown functions.
    fn refused(&self, kernel: &Kernel, out: &mut String) {
        let mut sink = Sink::new(&self.file);
        let unit = self.unit(kernel, &mut sink);
        self.module
            .made
            .into_iter()
            .for_each(|made| unit.newer(made, &mut sink));
        let mut all: Vec<Diagnostic> = sink
            .into_diagnostics()
            .into_iter()
            .filter(|d| d.severity == Severity::Error)
            .collect();
        if let Err(others) = self.test(
            Some(&kernel.name),
            &self.trial(kernel),
            &BTreeMap::new(),
            &BTreeSet::new(),
        ) {
            // The trial's bindings are made up. Errors count only if they are about the code, but
            // not about addresses or the number of threads, which depend on the bindings.
            fn of_code(d: &Diagnostic) -> bool {
                let of_trial =
                    d.id == "unsupported-address" || d.message.contains("names no thread");
                d.source.is_some() && d.id.starts_with("unsupported") && !of_trial
            }
            all.extend(others.into_iter().filter(of_code));
        }
        let mut lines: BTreeMap<(usize, String), BTreeSet<usize>> = BTreeMap::new();
        let mut order: HashMap<String, usize> = HashMap::new();
        for d in &all {
            let at = order.len();
            let at = *order.entry(d.message.clone()).or_insert(at);
            lines
                .entry((at, d.message.clone()))
                .or_default()
                .insert(self.line(d.span.range().start));
        }
        for ((_, message), lines) in &lines {
            let _ = writeln!(out, "  refused: {}: {message}", listed(lines));
        }
        let unknown: BTreeSet<usize> = unit
            .unknown_calls()
            .map(|span| self.line(span.range().start))
            .collect();
        if !unknown.is_empty() {
            let what = "a call of an unknown function; executions that reach it are undecided";
            let _ = writeln!(out, "  {}: {what}", listed(&unknown));
        }
    }

    /// A launch that binds each parameter to a made-up value.
    fn trial(&self, kernel: &Kernel) -> Launch {
        let parts = self.code(kernel);
        let accesses = Accesses::new(&parts);
        let mut args = Vec::new();
        for (n, param) in kernel.params.iter().enumerate() {
            if accesses.take_address(&param.name) {
                let bytes =
                    param.elements * bits_named(&param.ty).map_or(1, |ty| u64::from(ty.bytes()));
                let (ty, size) = if bytes.is_multiple_of(4) {
                    ("u32", 4)
                } else {
                    ("u8", 1)
                };
                args.push(format!("{}={ty}[{}]", param.name, bytes / size));
                continue;
            }
            for (k, (name, ty)) in pieces(param, &kernel.body).into_iter().enumerate() {
                let pointer = type_named(ty).is_some_and(|ty| ty.bits == 64);
                let value = if pointer {
                    format!("trial_{n}_{k}")
                } else {
                    "1".to_owned()
                };
                args.push(format!("{name}={value}"));
            }
        }
        let inner = self
            .called(kernel)
            .into_iter()
            .flat_map(|f| &f.variables)
            .chain(&kernel.variables);
        let words: HashSet<&str> = parts.iter().flat_map(|(text, _)| words(text)).collect();
        let unsized_ones = self
            .module
            .variables
            .iter()
            .chain(inner)
            .filter(|v| v.elements.is_none());
        let unsized_ones = unsized_ones.filter(|v| words.contains(v.name.as_str()));
        args.extend(unsized_ones.map(|v| format!("{}={BYTES}[1024]", v.name)));
        Launch {
            args,
            ..Launch::default()
        }
    }

    /// The variables of the module that code names, and those that their initial values point to.
    /// Also the functions that these initial values point to.
    fn used(&self, named: &HashSet<&str>) -> (Vec<&ModuleVariable>, Vec<&str>) {
        let all = &self.module.variables;
        let mut used: BTreeSet<usize> = (0..all.len())
            .filter(|i| named.contains(all[*i].name.as_str()))
            .collect();
        let (mut open, mut functions): (Vec<usize>, BTreeSet<&str>) =
            (used.iter().copied().collect(), BTreeSet::new());
        while let Some(i) = open.pop() {
            for initial in &all[i].init {
                let ElementInit::Address(name, _) = initial else {
                    continue;
                };
                match all.iter().position(|v| v.name == *name) {
                    Some(other) if used.insert(other) => open.push(other),
                    Some(_) => {}
                    None => drop(functions.insert(name)),
                }
            }
        }
        (
            used.into_iter().map(|i| &all[i]).collect(),
            functions.into_iter().collect(),
        )
    }

    /// The initial values of a variable, as a test writes them, if some of them are addresses;
    /// otherwise `None`.
    fn addresses(&self, v: &ModuleVariable) -> Result<Option<Vec<String>>, String> {
        fn holds(v: &ModuleVariable) -> bool {
            v.init
                .iter()
                .any(|initial| matches!(initial, ElementInit::Address(..)))
        }
        if !holds(v) {
            return Ok(None);
        }
        let text = |initial: &ElementInit| {
            let (name, offset) = match initial {
                ElementInit::Int(n) => return Ok(n.to_string()),
                ElementInit::Address(name, offset) => (name, *offset),
            };
            let Some(target) = self.module.variables.iter().find(|v| v.name == *name) else {
                return match offset {
                    0 => Ok(quote(&format!("&{}", code_of(name)))),
                    _ => Err(format!(
                        "`{}` begins with an address inside of the function `{name}`",
                        v.name
                    )),
                };
            };
            // A target without addresses gets its element type from accesses, so the element size
            // is unknown here.
            let size = if holds(target) {
                i64::from(target.ty.bytes())
            } else {
                0
            };
            match offset {
                0 => Ok(quote(&format!("&{name}"))),
                n if size > 0 && n > 0 && n % size == 0 => {
                    Ok(quote(&format!("&{name}[{}]", n / size)))
                }
                _ => Err(format!(
                    "`{}` begins with an address inside `{name}`, and the type of its elements is \
                    unknown",
                    v.name
                )),
            }
        };
        v.init
            .iter()
            .map(text)
            .collect::<Result<Vec<_>, _>>()
            .map(Some)
    }

    /// Parses a kernel with the functions that it calls.
    fn unit(&self, kernel: &Kernel, sink: &mut Sink) -> PtxCode {
        let mut text = MappedText::new();
        self.code(kernel)
            .into_iter()
            .for_each(|(part, start)| text.push_verbatim(part, start));
        PtxCode::parse(text, sink)
    }

    /// Finds the kernel for a name or a part of one. Without a name, the module must have exactly
    /// one kernel.
    ///
    /// # Errors
    /// If no kernel matches, or several.
    fn kernel(&self, name: Option<&str>) -> Result<&Kernel, Box<Diagnostic>> {
        let kernels = &self.module.kernels;
        let names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
        let list = names.iter().map(|n| format!("`{n}`"));
        let list = list.collect::<Vec<_>>().join(", ");
        match (name, kernels.as_slice()) {
            (_, []) => Err(Box::new(
                self.plain("no-kernel", "this module has no kernel".into()),
            )),
            (None, [one]) => Ok(one),
            (None, _) => Err(Box::new(
                self.plain(
                    "several-kernels",
                    format!("this module has {} kernels", kernels.len()),
                )
                .help(format!("choose one with `--kernel`: {list}")),
            )),
            (Some(name), _) => match mangled::meant(name, &names)[..] {
                [one] => Ok(&kernels[one]),
                [] => {
                    let d = self.plain(
                        "unknown-kernel",
                        format!("this module has no kernel `{name}`"),
                    );
                    let d = d.note(format!("its kernels: {list}"));
                    Err(Box::new(d.did_you_mean(name, names.iter().copied())))
                }
                ref several => {
                    let all: Vec<String> = several
                        .iter()
                        .map(|at| format!("`{}`", called(&kernels[*at].name)))
                        .collect();
                    let message = format!("`{name}` can be {} kernels of this module", all.len());
                    Err(Box::new(
                        self.plain("several-kernels", message)
                            .note(format!("they are {}", all.join(", ")))
                            .help("write more of the name with `--kernel`"),
                    ))
                }
            },
        }
    }

    fn plain(&self, id: &'static str, message: String) -> Diagnostic {
        Diagnostic::plain(id, format!("{}: {message}", self.file.name))
    }

    /// Turns a kernel into a test, as TOML text, with warnings.
    ///
    /// # Errors
    /// Unbound parameters, and all unsupported constructs of the kernel.
    pub fn to_toml(
        &self,
        kernel: Option<&str>,
        launch: &Launch,
    ) -> Result<(String, Vec<Diagnostic>), Vec<Diagnostic>> {
        let none = BTreeSet::new();
        let first = self.test(kernel, launch, &BTreeMap::new(), &none)?;
        if first.part.is_empty() && first.inputs.is_empty() {
            return Ok((first.text, first.warnings));
        }
        let mut made = self.test(kernel, launch, &first.part, &first.inputs)?;
        let inputs: Vec<String> = first
            .inputs
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        if let [name, ..] = inputs.as_slice() {
            let begin = if inputs.len() == 1 {
                "begins with unknown values"
            } else {
                "begin with unknown values"
            };
            let message = format!("{} {begin}: no values are given", inputs.join(", "));
            let name = name.trim_matches('`');
            made.warnings.push(self.plain("unknown-values", message).warning().help(format!(
                "give the first values with the binding, as in `--arg 0={name}=0` or `--arg \
                0={name}:u32[4]=1,2`, or, if other buffers point to it, `--arg {name}=u32=0`; \
                missing values are 0"
            )));
        }
        Ok((made.text, made.warnings))
    }

    /// Makes a test of a kernel. `whole`: buffers to extend to whole words, with their sizes in
    /// bytes; `inputs`: buffers that begin with unknown values.
    fn test(
        &self,
        kernel: Option<&str>,
        launch: &Launch,
        whole: &BTreeMap<String, u64>,
        inputs: &BTreeSet<String>,
    ) -> Result<Imported, Vec<Diagnostic>> {
        self.read_back(self.draft(kernel, launch, whole, inputs)?)
    }

    /// The test of a draft, as text that was read back.
    fn read_back(&self, mut draft: KernelDraft) -> Result<Imported, Vec<Diagnostic>> {
        let at = draft.front().len();
        let places: Vec<_> = draft
            .places
            .iter()
            .map(|(range, start)| (range.start + at..range.end + at, *start))
            .collect();
        let name = format!("{}, as a test", self.file.name);
        let moved = |all: Vec<Diagnostic>| -> Vec<Diagnostic> {
            all.into_iter().map(|d| self.moved(d, &places)).collect()
        };
        let read = super::read(&name, draft.text().as_bytes()).map_err(moved)?;
        let mut made = Imported {
            warnings: moved(read.warnings),
            ..Imported::default()
        };
        if let Some(test) = read.tests.first() {
            made.warnings
                .extend(self.taken_for_bits(test, &draft.memory));
            draft.give_fields(&test.program);
            made.part = parts_of_words(&test.program);
            made.part.retain(|name, _| draft.order.contains(name));
            let is_bare = |name: &String| {
                let made = draft.memory.get(name);
                draft.order.contains(name) && made.is_some_and(|made| made.init.is_none())
            };
            made.inputs = read_by(&test.program).into_iter().filter(is_bare).collect();
        }
        made.text = draft.text();
        Ok(made)
    }

    /// The kernels, in order, with where their names stand.
    pub(super) fn kernels(&self) -> impl Iterator<Item = (&Kernel, Span)> {
        self.module.kernels.iter().map(|kernel| {
            let before = &self.file.text[..kernel.start];
            let at = before.rfind(&kernel.name).unwrap_or(0);
            (kernel, Span::new(at, at + kernel.name.len()))
        })
    }

    /// A kernel's name without its arguments, and not mangled.
    pub(super) fn path_of(&self, name: &str) -> String {
        mangled::DemangledName::of(name).map_or(name.to_owned(), |parts| parts.path)
    }

    /// The kernels that a word is short for, by their numbers.
    pub(super) fn meant(&self, word: &str) -> Vec<usize> {
        let names: Vec<&str> = self
            .module
            .kernels
            .iter()
            .map(|k| k.name.as_str())
            .collect();
        mangled::meant(word, &names)
    }

    /// What there is to bind of a kernel, with its types: parameters, and pieces of structures.
    pub(super) fn pieces_of(&self, kernel: &Kernel) -> Vec<(String, String)> {
        let all = kernel
            .params
            .iter()
            .flat_map(|param| pieces(param, &kernel.body));
        all.map(|(name, ty)| (name, ty.to_owned())).collect()
    }

    /// The arrays of dynamic shared memory that a kernel names.
    pub(super) fn dynamic_of(&self, kernel: &Kernel) -> Vec<String> {
        let parts = self.code(kernel);
        let named: HashSet<&str> = parts.iter().flat_map(|(text, _)| words(text)).collect();
        let inner = self.called(kernel).into_iter().flat_map(|f| &f.variables);
        let all = self
            .module
            .variables
            .iter()
            .chain(inner)
            .chain(&kernel.variables);
        let dynamic = all.filter(|v| v.elements.is_none() && named.contains(v.name.as_str()));
        dynamic.map(|v| v.name.clone()).collect()
    }

    /// The bytes of the one variable of that name; `None`: the launch decides, or there are
    /// several.
    pub(super) fn bytes_of(&self, name: &str) -> Option<u64> {
        let module = &self.module;
        let inner = module.functions.iter().flat_map(|f| &f.variables);
        let own = module.kernels.iter().flat_map(|k| &k.variables);
        let mut all = module.variables.iter().chain(inner).chain(own);
        let variable = all.find(|v| v.name == name)?;
        if all.any(|v| v.name == name) {
            return None;
        }
        Some(variable.elements? * u64::from(variable.ty.bytes()))
    }

    /// The code of a kernel and of the functions that it calls.
    pub(super) fn text_of(&self, kernel: &Kernel) -> String {
        self.code(kernel)
            .into_iter()
            .map(|(text, _)| text)
            .collect()
    }

    /// A test of a kernel whose places are those of the module, with warnings. `inputs`: buffers
    /// that begin with unknown values.
    ///
    /// # Errors
    /// All that is wrong with the kernel and its launch.
    pub(super) fn placed(
        &self,
        kernel: &str,
        at: Span,
        launch: &Launch,
        inputs: &BTreeSet<String>,
    ) -> Result<(LitmusTest, Vec<Diagnostic>), Vec<Diagnostic>> {
        let draft = self.draft(Some(kernel), launch, &BTreeMap::new(), inputs)?;
        let (test, warnings) = self.in_place(&draft, at, &read_made)?;
        match self.draft_in_parts(&draft, &test.program, kernel, launch, inputs)? {
            None => Ok((test, warnings)),
            Some(draft) => self.in_place(&draft, at, &read_made),
        }
    }

    /// The same, read in another way.
    ///
    /// # Errors
    /// All that is wrong with the kernel and its launch.
    pub(super) fn placed_as<T>(
        &self,
        kernel: &str,
        at: Span,
        launch: &Launch,
        inputs: &BTreeSet<String>,
        read: &dyn Fn(&TestParts<'_>, &mut Sink) -> Option<T>,
    ) -> Result<(T, Vec<Diagnostic>), Vec<Diagnostic>> {
        let draft = self.draft(Some(kernel), launch, &BTreeMap::new(), inputs)?;
        let (form, _) = self.in_place(&draft, at, &form_made)?;
        let program = &form.test.program;
        let in_parts = self.draft_in_parts(&draft, program, kernel, launch, inputs)?;
        self.in_place(&in_parts.unwrap_or(draft), at, read)
    }

    /// A draft whose buffers have the parts that atomic accesses take together; `None`: there are
    /// none.
    fn draft_in_parts(
        &self,
        draft: &KernelDraft,
        program: &Program,
        kernel: &str,
        launch: &Launch,
        inputs: &BTreeSet<String>,
    ) -> Result<Option<KernelDraft>, Vec<Diagnostic>> {
        let mut part = parts_of_words(program);
        part.retain(|name, _| draft.order.contains(name));
        if part.is_empty() {
            return Ok(None);
        }
        let draft = self.draft(Some(kernel), launch, &part, inputs)?;
        Ok(Some(draft))
    }

    fn in_place<T>(
        &self,
        draft: &KernelDraft,
        at: Span,
        read: &dyn Fn(&TestParts<'_>, &mut Sink) -> Option<T>,
    ) -> Result<(T, Vec<Diagnostic>), Vec<Diagnostic>> {
        let mut code = MappedText::opaque(&draft.files, at);
        for (range, start) in &draft.places {
            code.push_verbatim(&draft.code[range.clone()], *start);
        }
        let head = MappedText::opaque(&format!("{}code = \"\"\n", draft.head()), at);
        let mut sink = Sink::new(&self.file);
        let made = TestParts {
            head: &head,
            code: FileCode::Ptx(code),
        };
        let test = read(&made, &mut sink).filter(|_| sink.errors() == 0);
        match test {
            Some(test) => Ok((test, sink.into_diagnostics())),
            None => Err(sink.into_diagnostics()),
        }
    }

    /// Warns about integers that a condition compares with floating-point numbers. The bits of such
    /// an integer are a number very close to 0, or a NaN.
    fn taken_for_bits(
        &self,
        test: &LitmusTest,
        memory: &BTreeMap<String, BufferContents>,
    ) -> Vec<Diagnostic> {
        let mut all = Vec::new();
        let integers = test.condition.iter().flat_map(equated);
        for (observable, n) in integers {
            let Observable::Mem { loc, .. } = observable else {
                continue;
            };
            let name = &test.program.location(loc).name;
            let Some(format) = memory.get(name).and_then(|made| made.number) else {
                continue;
            };
            let size = n & format.sign().wrapping_sub(1);
            if n != 0
                && n != format.sign()
                && (size <= (1i64 << format.fraction) || size > format.largest() + 1)
            {
                let message =
                    format!("the condition takes {n} for the bits of a number in `{name}`");
                let d = self.plain("bits-of-a-number", message).warning();
                let by_bits = format!("{:#x}", rounded(format, n as f64));
                all.push(d.help(match format.bits {
                    16 => format!("{n} is `{by_bits}` in `{name}`"),
                    _ => format!("write `{n}.0`, or the bits of it, `{by_bits}`"),
                }));
            }
        }
        all
    }

    /// Moves a diagnostic about the code of the test to the same place in the module.
    fn moved(&self, d: Diagnostic, places: &[(Range<usize>, usize)]) -> Diagnostic {
        let to = |span: Span| {
            let range = span.range();
            let (place, start) = places
                .iter()
                .rev()
                .find(|(p, _)| (p.start..=p.end).contains(&range.start))?;
            Some(Span::new(
                range.start - place.start + start,
                range.end - place.start + start,
            ))
        };
        let Some(span) = to(d.span).filter(|_| d.source.is_some()) else {
            return d;
        };
        // The help must suggest options of the import, not keys of a test.
        let special = d
            .message
            .split('`')
            .nth(1)
            .filter(|name| name.starts_with('%'));
        let help = match (d.id, special) {
            ("not-an-address", _) => Some(
                "bind the parameter that it comes from to a buffer: `--arg 0=buffer:u32[4]`"
                    .to_owned(),
            ),
            ("mixed-size", _) => Some(
                "give it elements of the smallest size: 8 bytes are two of `--arg \
                0=buffer:u32[8]`; or give its size in bytes, `--arg 0=buffer:bytes[64]`: its \
                accesses then decide the layout"
                    .to_owned(),
            ),
            ("unknown-register", Some(name)) => {
                Some(format!("give it a value as an input: `--arg {name}=0`"))
            }
            _ => None,
        };
        let d = help.into_iter().fold(d, |d, help| d.help(help));
        let secondary = d
            .secondary
            .iter()
            .filter_map(|(span, text)| Some((to(*span)?, text.clone())));
        Diagnostic {
            source: Some(self.file.clone()),
            span,
            secondary: secondary.collect(),
            ..d
        }
    }

    /// The error for a parameter in memory whose binding does not give its type.
    fn untyped(&self, kernel: &Kernel, param: &Param, bytes: u64) -> Diagnostic {
        let number = kernel
            .params
            .iter()
            .position(|p| p.name == param.name)
            .unwrap_or(0);
        let message = format!(
            "the layout of the {bytes} bytes of parameter `{}` of `{}` is unknown",
            param.name, kernel.name
        );
        self.plain("unbound-parameter", message)
            .note("code takes its address and reads it through the address")
            .help(format!(
                "give its elements or fields: `--arg {number}=u32[{}]=1,2`, or `--arg \
                '{number}={{u64,u32,u32}}=&buffer,1,2'`, laid out as in C",
                bytes.div_ceil(4)
            ))
    }

    fn unbound(&self, kernel: &Kernel, param: &Param, piece: &str, ty: &str) -> Diagnostic {
        let number = kernel
            .params
            .iter()
            .position(|p| p.name == param.name)
            .unwrap_or(0);
        let example = if ty.ends_with("64") {
            "buffer:u32[4]"
        } else {
            "4"
        };
        let offset = piece.strip_prefix(&param.name).unwrap_or_default();
        self.plain(
            "unbound-parameter",
            format!("parameter `{piece}` of `{}` is not bound", kernel.name),
        )
        .help(format!(
            "`--arg {number}{offset}={example}`, or `--arg {piece}={example}`; {FORM}"
        ))
    }
}

/// The names of objects that some instruction may read.
fn read_by(program: &Program) -> BTreeSet<String> {
    let points = Points::compute(program);
    let mut found = BTreeSet::new();
    for (thread, _, instr) in program
        .instrs()
        .filter(|(_, _, instr)| instr.op.read().is_some())
    {
        let objects = instr
            .op
            .address()
            .map(|addr| points.of(usize::from(thread.0), addr))
            .unwrap_or_default();
        found.extend(
            objects
                .into_iter()
                .map(|object| program.location(object).name.clone()),
        );
    }
    found
}

/// Objects in global memory with an atomic access to a word that reaches beyond their end:
/// compilers implement atomics on bytes this way. Nothing else shares that word, as objects begin
/// at words. Any other access beyond the end is an error.
fn parts_of_words(program: &Program) -> BTreeMap<String, u64> {
    let points = Points::compute(program);
    let mut found = BTreeMap::new();
    for (thread, _, instr) in program.instrs() {
        let atomic = Some(&instr.op)
            .filter(|op| matches!(op, Op::Rmw { .. }))
            .and_then(access_of);
        let Some((addr, ty)) = atomic.filter(|(_, ty)| u64::from(ty.bytes()) <= WORD) else {
            continue;
        };
        for object in points.of(usize::from(thread.0), addr) {
            let location = program.location(object);
            let LocationKind::Object {
                layout,
                init,
                space: Space::Global,
                ..
            } = &location.kind
            else {
                continue;
            };
            let bytes = layout.bytes(init.len());
            let narrow = layout.cells() == 1 && layout.field(0).ty.bits < ty.bits;
            if narrow && !bytes.is_multiple_of(u64::from(ty.bytes())) {
                found.insert(location.name.clone(), bytes);
            }
        }
    }
    found
}

/// `lines 3, 8 and 12`; a long list ends in the number of lines left out.
fn listed(lines: &BTreeSet<usize>) -> String {
    const SHOWN: usize = 8;
    let numbers: Vec<String> = lines.iter().take(SHOWN).map(usize::to_string).collect();
    match lines.len() {
        1 => format!("line {}", numbers[0]),
        n if n <= SHOWN => format!("{n} lines, {}", numbers.join(", ")),
        n => format!("{n} lines, {} and {} more", numbers.join(", "), n - SHOWN),
    }
}

/// The name of a kernel, with its unmangled form.
fn called(name: &str) -> String {
    match mangled::DemangledName::of(name) {
        Some(parts) => format!("{name} ({})", parts.text()),
        None => name.to_owned(),
    }
}

/// All comparisons for equality of an observable with an integer in a condition.
fn equated(prop: &Prop) -> Vec<(Observable, i64)> {
    match prop {
        Prop::And(all) | Prop::Or(all) => all.iter().flat_map(equated).collect(),
        Prop::Not(one) => equated(one),
        Prop::Cmp(CmpOp::Eq | CmpOp::Ne, _, ConditionTerm::Atom(a), ConditionTerm::Atom(b)) => {
            match (*a, *b) {
                (Atom::Observable(of), Atom::Const(n)) | (Atom::Const(n), Atom::Observable(of)) => {
                    vec![(of, n)]
                }
                _ => Vec::new(),
            }
        }
        Prop::Cmp(..) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each piece of a structure that code reads is bound separately; strings and floating-point
    /// arrays are variables like others.
    #[test]
    fn pieces_of_structures_are_registers_of_the_test() {
        let module = ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 1 .b8 \
        $str[5] = {97, 98, 99, 100};\n\
                      .visible .entry k(.param .align 4 .b8 k_0[12])\n{\n.reg .b64 %rd<3>;\n.reg \
                      .b32 %r<9>;\n.reg .f32 %f<2>;\n\
                      .shared .align 4 .b8 s[16];\nld.param.v2.u32 {%r1, %r2}, [k_0+4];\nmov.u64 \
                      %rd1, $str;\n\
                      mov.u32 %r3, s;\nst.shared.f32 [%r3], 0f00000000;\nret;\n}\n";
        let source = PtxFile::read("k.ptx", module).expect("well-formed");
        let launch = |args: &[&str]| Launch {
            block: vec![1],
            args: args.iter().map(|a| (*a).to_owned()).collect(),
            ..Launch::default()
        };
        let missing = source
            .to_toml(None, &launch(&["0+4=7"]))
            .expect_err("one is bound");
        assert!(
            missing.iter().all(|d| d.message.contains("`k_0+8`")) && missing.len() == 1,
            "{missing:?}"
        );
        let (text, _) = source
            .to_toml(None, &launch(&["0+4=7", "k_0+8=9"]))
            .expect("both are bound");
        assert!(
            text.contains(r#"regs = { "k_0+4" = 7, "k_0+8" = 9 }"#),
            "{text}"
        );
        let shared = r#"s = { init = "unknown", size = 4, type = "u32", space = "shared" }"#;
        assert!(text.contains(shared), "{text}");
    }

    /// A structure whose address is taken becomes memory of the test, and needs a type.
    #[test]
    fn structures_that_are_read_through_registers_are_in_memory() {
        let module = ".version 8.0\n.target sm_90\n.address_size 64\n\
                      .visible .entry k(.param .align 8 .b8 k_0[16], .param .u64 k_1)\n{\n.reg \
                      .b64 %rd<5>;\n.reg .b32 %r<3>;\n\
                      mov.b64 %rd1, k_0;\nld.param.u64 %rd2, [k_1];\nmov.u32 %r1, \
                      %tid.x;\nmul.wide.u32 %rd3, %r1, 4;\n\
                      add.s64 %rd4, %rd1, %rd3;\nld.param.u32 %r2, [%rd4+8];\nst.global.u32 \
                      [%rd2], %r2;\nret;\n}\n";
        let source = PtxFile::read("k.ptx", module).expect("well-formed");
        assert!(
            !source.listing().contains("refused"),
            "{}",
            source.listing()
        );
        let made = |arg: &str| {
            let args = arg
                .split(' ')
                .chain(["1=out:u32"])
                .map(str::to_owned)
                .collect();
            source
                .to_toml(
                    None,
                    &Launch {
                        block: vec![2],
                        args,
                        ..Launch::default()
                    },
                )
                .map(|(text, _)| text)
        };
        for (arg, line) in [
            (
                "0=u32[4]=1,2,3",
                r#"k_0 = { init = [1, 2, 3, 0], type = "u32", space = "param" }"#,
            ),
            (
                "0={u64,u32,u32}=&out,5,6",
                r#"k_0 = { init = ["&out", 0, 5, 6], type = "u32", space = "param" }"#,
            ),
            (
                "k_0=u32=1",
                r#"k_0 = { init = [1, 0, 0, 0], type = "u32", space = "param" }"#,
            ),
        ] {
            let text = made(arg).expect("with the binding");
            assert!(
                text.contains(line) && text.contains(r#"regs = { k_1 = "&out" }"#),
                "{text}"
            );
        }
        for arg in ["0=u32[3]", "0={u64,u64,u32}=1,2", "0=5", "0+8=5"] {
            let errors = made(arg).expect_err("16 bytes");
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert!(
                errors[0]
                    .message
                    .contains("the layout of the 16 bytes of parameter `k_0` of `k`"),
                "{errors:?}"
            );
        }
        // Binding the whole and a piece of it gives two values to the same bytes.
        assert_eq!(
            made("0={u64,u32,u32}=1,2 0+8=5").expect_err("twice")[0].id,
            "unknown-parameter"
        );
    }

    /// An integer compared with a floating-point number is read as bits. A warning says so if the
    /// declaration or the accesses make the buffer floating-point.
    #[test]
    fn integers_beside_numbers_are_told() {
        let module = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param \
        .u64 k_0)\n{\n.reg .b64 %rd<3>;\n\
                      .reg .f32 %f<2>;\nld.param.u64 %rd1, [k_0];\ncvta.to.global.u64 %rd2, %rd1;\n\
                      st.global.f32 [%rd2], 0f41980000;\nret;\n}\n";
        let told = |module: &str, arg: &str, ask: &str| {
            let source = PtxFile::read("k.ptx", module).expect("well-formed");
            let (block, args) = (
                vec![1],
                format!("0={arg}").split(' ').map(str::to_owned).collect(),
            );
            let launch = Launch {
                block,
                args,
                ask: Some(ask.to_owned()),
                ..Launch::default()
            };
            let (_, warnings) = source.to_toml(None, &launch).expect("a test");
            warnings
                .into_iter()
                .filter_map(|d| d.help)
                .collect::<Vec<_>>()
        };
        let help = ["write `19.0`, or the bits of it, `0x41980000`"];
        assert_eq!(told(module, "out", "out != 19"), help);
        assert_eq!(told(module, "out:f32", "out == 19 \\/ out == 0"), help);
        assert_eq!(
            told(module, "out", "out == -2"),
            ["write `-2.0`, or the bits of it, `0xc0000000`"]
        );
        for ask in ["out != 19.0", "out > 0.0", "out == 0x41980000", "out == 0"] {
            assert_eq!(told(module, "out", ask), [""; 0], "{ask}");
        }
        // The buffer is one of two pointers in a structure.
        let pair = module
            .replace(".u64 k_0", ".align 8 .b8 k_0[16]")
            .replace(".u64 %rd1", ".v2.u64 {%rd1, %rd2}");
        assert_eq!(told(&pair, "out 0+8=out", "out != 19"), help);
        // There is no such warning for integers.
        assert_eq!(told(module, "out:u32", "out != 19"), [""; 0]);
        assert_eq!(
            told(
                &module.replace(
                    "st.global.f32 [%rd2], 0f41980000",
                    "st.global.u32 [%rd2], 19"
                ),
                "out",
                "out != 19"
            ),
            [""; 0]
        );
    }
}
