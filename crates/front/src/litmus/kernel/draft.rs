//! Drafts the test of a kernel: binds the parameters, then lists objects, registers and code.
//!
//! # Invariants
//! - Each step takes its bindings out of `given`. A binding that no step takes is an error.
//! - A draft with an error is none, and all errors are reported together.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write;
use std::ops::Range;

use super::super::write::{ObjectTable, quote, toml_key};
use super::accesses::{Accesses, mentions, pieces, words};
use super::binding::{
    BYTES, BufferContents, FORM, First, ParameterValue, bind, of_buffer, of_tensor, of_type,
};
use super::document::KernelDraft;
use super::object::{code_of, declared, object, of_bytes, one_of, sized};
use super::{Launch, PtxFile, fits, maps};
use crate::isa::ptx::module::{Kernel, ModuleVariable, Param};
use crate::isa::ptx::{bits_named, files_named};
use crate::litmus::toml::UNKNOWN;
use diag::{Diagnostic, Sink};

/// The bytes of a tensor map.
const MAP_BYTES: u64 = 128;

/// The special register with the size of a CTA's dynamic shared memory.
const DYNAMIC: &str = "%dynamic_smem_size";

/// The binding of a kernel's parameters and variables, in progress.
struct Drafting<'a> {
    source: &'a PtxFile,
    kernel: &'a Kernel,
    accesses: Accesses<'a>,
    /// The words of the code.
    words: HashSet<&'a str>,
    /// The variables of the kernel and of the functions that it calls.
    inner: Vec<&'a ModuleVariable>,
    /// The bindings of the launch that no step took yet.
    given: BTreeMap<String, ParameterValue>,
    /// The buffers, and the order in which parameters name them.
    memory: BTreeMap<String, BufferContents>,
    order: Vec<String>,
    regs: Vec<(String, First)>,
    /// The variables under `[memory]`.
    variables: Vec<(String, ObjectTable)>,
    errors: Vec<Diagnostic>,
}

impl PtxFile {
    /// Drafts the test of a kernel. `whole`: buffers to extend to whole words, with their sizes in
    /// bytes; `inputs`: buffers that begin with unknown values.
    ///
    /// # Errors
    /// Unbound parameters, and all unsupported constructs of the kernel.
    pub(super) fn draft(
        &self,
        kernel: Option<&str>,
        launch: &Launch,
        whole: &BTreeMap<String, u64>,
        inputs: &BTreeSet<String>,
    ) -> Result<KernelDraft, Vec<Diagnostic>> {
        let kernel = self.kernel(kernel).map_err(|d| vec![*d])?;
        let parts = self.code(kernel);
        let mut drafting = Drafting::new(self, kernel, &parts);
        drafting.check_launch(launch);
        drafting.read_bindings(launch);
        // Code takes the address of these parameters, so they are in memory.
        let (in_registers, in_memory): (Vec<&Param>, Vec<&Param>) = kernel
            .params
            .iter()
            .partition(|param| !drafting.accesses.take_address(&param.name));
        drafting.put_in_memory(&in_memory);
        drafting.put_in_registers(&in_registers);
        drafting.declare_variables();
        drafting.add_pointed_buffers();
        drafting.separate_names();
        drafting.bind_special_registers();
        if !drafting.errors.is_empty() {
            return Err(drafting.errors);
        }
        let is_parameter = |name: &str| in_memory.iter().any(|param| param.name == name);
        let mut objects = drafting.buffers(is_parameter, whole, inputs);
        objects.append(&mut drafting.variables);
        let (code, places) = self.code_of_parts(&parts);
        Ok(KernelDraft {
            top: self.top_of(kernel, launch),
            objects,
            launch: drafting.kernel_table(launch),
            files: self.lines_of_files(&parts),
            code,
            places,
            memory: drafting.memory,
            order: drafting.order,
        })
    }

    /// The document in front of the memory.
    fn top_of(&self, kernel: &Kernel, launch: &Launch) -> String {
        let file = &self.file.name;
        let mut out = format!("name = {}\n", quote(&kernel.name));
        let doc = format!("Kernel `{}` of `{file}`.", kernel.name);
        let _ = writeln!(out, "doc = {}", quote(&doc));
        let _ = writeln!(out, "source = {}", quote(file));
        out.push_str("tags = [\"kernel\"]\ndialect = \"ptx\"\n");
        if let Some(ask) = &launch.ask {
            let _ = writeln!(out, "condition = {}", quote(ask));
        }
        out
    }

    /// Lines that name the files which the code came from.
    fn lines_of_files(&self, parts: &[(&str, usize)]) -> String {
        let named: BTreeSet<i64> = parts
            .iter()
            .flat_map(|(text, _)| files_named(text))
            .collect();
        let mut lines = String::new();
        for (number, name) in &self.module.files {
            if named.contains(number) {
                let _ = writeln!(lines, ".file {number} \"{}\"", file_name(name));
            }
        }
        lines
    }

    /// The code of a test, and its parts with where they begin in the module.
    fn code_of_parts(&self, parts: &[(&str, usize)]) -> (String, Vec<(Range<usize>, usize)>) {
        let (mut code, mut places) = (String::new(), Vec::new());
        let file = file_name(&self.file.name);
        for (text, start) in parts {
            let line = self.file.line_column(*start).0;
            let _ = writeln!(code, "#line {line} \"{file}\"");
            places.push((code.len()..code.len() + text.len(), *start));
            code.push_str(text);
        }
        (code, places)
    }
}

impl<'a> Drafting<'a> {
    fn new(source: &'a PtxFile, kernel: &'a Kernel, parts: &[(&'a str, usize)]) -> Self {
        let inner = source.called(kernel).into_iter().flat_map(|f| &f.variables);
        Drafting {
            source,
            kernel,
            accesses: Accesses::new(parts),
            words: parts.iter().flat_map(|(text, _)| words(text)).collect(),
            inner: inner.chain(&kernel.variables).collect(),
            given: BTreeMap::new(),
            memory: BTreeMap::new(),
            order: Vec::new(),
            regs: Vec::new(),
            variables: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Reports instructions newer than the module says, and a launch that the kernel excludes.
    fn check_launch(&mut self, launch: &Launch) {
        let file = &self.source.file;
        // Parse errors are dropped here: reading the test reports them again.
        let unit = self.source.unit(self.kernel, &mut Sink::new(file));
        let mut sink = Sink::new(file);
        if let Some(made) = self.source.module.made {
            unit.newer(made, &mut sink);
        }
        self.errors = sink.into_diagnostics();
        self.errors.extend(fits::misfits(self.kernel, launch, file));
    }

    /// Parses the bindings of the launch.
    fn read_bindings(&mut self, launch: &Launch) {
        for text in &launch.args {
            let parsed = text.split_once('=').and_then(|(name, value)| {
                let name = self.full_name(name.trim());
                ParameterValue::of(&name, value).map(|binding| (name, binding))
            });
            match parsed {
                Some((name, binding)) => drop(self.given.insert(name, binding)),
                None => self.errors.push(
                    Diagnostic::plain("bad-argument", format!("`{text}` binds nothing"))
                        .help(format!("write {FORM}")),
                ),
            }
        }
    }

    /// The name that a binding is for. A parameter can be named by its number; for a structure, an
    /// offset may follow.
    fn full_name(&self, name: &str) -> String {
        let (first, offset) = name.find('+').map_or((name, ""), |at| name.split_at(at));
        let number = first.parse::<usize>().ok();
        match number.and_then(|n| self.kernel.params.get(n)) {
            Some(param) => format!("{}{}", param.name, offset.trim_end_matches("+0")),
            None => name.to_owned(),
        }
    }

    /// Makes an object of each parameter with an address that code takes.
    fn put_in_memory(&mut self, params: &[&Param]) {
        for param in params {
            let bytes =
                param.elements * bits_named(&param.ty).map_or(1, |ty| u64::from(ty.bytes()));
            let given = self.given.remove(&param.name);
            if let Some(ParameterValue::Tensor { buffer, shape }) = &given {
                self.put_map(&param.name, buffer, shape);
                continue;
            }
            if given.is_none()
                && bytes.is_multiple_of(MAP_BYTES)
                && let Some(shape) = maps::shape(&self.kernel.body)
            {
                let number = self.kernel.params.iter().position(|p| p.name == param.name);
                let buffer = format!("tensor{}", number.unwrap_or(0));
                self.put_map(&param.name, &buffer, &shape);
                continue;
            }
            let made = given
                .and_then(|binding| of_buffer(&param.name, &binding))
                .and_then(|made| made.filling(bytes));
            match made {
                Some(made) => {
                    self.memory.insert(param.name.clone(), made);
                    self.order.push(param.name.clone());
                }
                None => {
                    let piece = format!("{}+", param.name);
                    self.given.retain(|name, _| !name.starts_with(&piece));
                    self.errors
                        .push(self.source.untyped(self.kernel, param, bytes));
                }
            }
        }
    }

    /// Makes an object of a tensor map, and the buffer of its tensor if nothing else does.
    fn put_map(&mut self, name: &str, buffer: &str, shape: &str) {
        let Some(made) = of_tensor(shape) else {
            let message = format!("the tensor of `{name}` is too large");
            self.errors.push(
                self.source
                    .plain("bad-argument", message)
                    .help("a test has at most 16384 elements in a buffer: give a smaller tensor"),
            );
            return;
        };
        if !self.memory.contains_key(buffer) {
            self.order.push(buffer.to_owned());
        }
        let known = self.memory.entry(buffer.to_owned()).or_default();
        if known.is_unsaid() {
            *known = made;
        }
        let table = ObjectTable::default()
            .with_text("init", &format!("&{buffer}"))
            .with_text("tensor", shape);
        self.variables
            .push((name.to_owned(), table.in_space("param")));
    }

    /// Makes registers of the other parameters, one for each piece of a structure.
    fn put_in_registers(&mut self, params: &[&Param]) {
        let body = &self.kernel.body;
        for param in params {
            for (name, ty) in pieces(param, body) {
                match self.given.remove(&name) {
                    Some(binding) => self.put_in_register(param, name, ty, binding),
                    None if mentions(body, &param.name) => {
                        let error = self.source.unbound(self.kernel, param, &name, ty);
                        self.errors.push(error);
                    }
                    None => {}
                }
            }
        }
    }

    fn put_in_register(
        &mut self,
        param: &Param,
        name: String,
        ty: &str,
        mut binding: ParameterValue,
    ) {
        if let ParameterValue::Buffer { made, .. } = &mut binding
            && made.fields.is_empty()
        {
            made.number = self.accesses.numbers(&param.name);
        }
        match bind(binding, ty, &mut self.memory, &mut self.order) {
            Some(value) => self.regs.push((name, value)),
            None => {
                let message = format!("parameter `{name}` is not a floating-point number");
                self.errors.push(
                    self.source
                        .plain("bad-argument", message)
                        .help(format!("its type is `.{ty}`: write an integer")),
                );
            }
        }
    }

    /// Makes an object of each variable that the code names, or that the kernel declares.
    fn declare_variables(&mut self) {
        // Arrays of dynamic shared memory; all begin at one place.
        let mut dynamic: Vec<(&ModuleVariable, BufferContents)> = Vec::new();
        let (used, pointed_to) = self.source.used(&self.words);
        for name in &pointed_to {
            let table = ObjectTable::default().with("init", 0);
            self.variables
                .push((code_of(name), table.with_text("type", "u64")));
        }
        let mut tables = Vec::new();
        for variable in used.into_iter().chain(self.inner.clone()) {
            let Some(made) = self.given_for(variable) else {
                continue;
            };
            if variable.elements.is_none() && variable.space == "shared" {
                dynamic.push((variable, made));
            } else if let Some(table) = self.declared(variable, made) {
                tables.push((variable, table));
            }
        }
        let bytes = dynamic
            .iter()
            .filter_map(|(variable, made)| sized(variable, made))
            .max()
            .unwrap_or(0);
        if self.words.contains(DYNAMIC) {
            self.given
                .entry(DYNAMIC.to_owned())
                .or_insert(ParameterValue::Scalar(bytes as i64));
        }
        let types = dynamic
            .iter()
            .flat_map(|(variable, _)| self.accesses.of(variable, &self.inner))
            .collect();
        let reused = dynamic.iter().any(|of| self.accesses.reuse_object(of.0));
        if let Some((variable, made)) = one_of(&dynamic, bytes) {
            tables.push((variable, declared(variable, made, None, types, reused)));
        }
        self.list_variables(tables);
        if let Some(((first, _), others)) = dynamic.split_first() {
            for (variable, _) in others {
                let table = ObjectTable::default().with_text("at", &first.name);
                self.variables.push((variable.name.clone(), table));
            }
        }
    }

    /// The element type and the length that the launch gives a variable.
    fn given_for(&mut self, variable: &ModuleVariable) -> Option<BufferContents> {
        let Some(binding) = self.given.remove(&variable.name) else {
            return Some(BufferContents::default());
        };
        let made = of_type(&binding);
        if made.is_none() {
            let message = format!("`{}` is a variable of the module", variable.name);
            self.errors.push(
                Diagnostic::plain("bad-argument", message)
                    .help("give only its element type and length, as in `--arg s=u32[64]`"),
            );
        }
        made
    }

    /// The object of a variable, or the reason why its size is unknown.
    fn declared(
        &mut self,
        variable: &ModuleVariable,
        made: BufferContents,
    ) -> Option<DeclaredObject> {
        match self.source.addresses(variable) {
            Ok(addresses) => Some(declared(
                variable,
                made,
                addresses,
                self.accesses.of(variable, &self.inner),
                self.accesses.reuse_object(variable),
            )),
            Err(message) => {
                let (file, span) = (&self.source.file, variable.span);
                self.errors.push(
                    Diagnostic::error("unsupported-initialiser", file, span, message)
                        .label("declared here"),
                );
                None
            }
        }
    }

    fn list_variables(&mut self, tables: Vec<(&ModuleVariable, DeclaredObject)>) {
        for (variable, table) in tables {
            match table {
                Ok(table) => self.variables.push((variable.name.clone(), table)),
                Err((message, help)) => self.errors.push(
                    Diagnostic::error("unknown-size", &self.source.file, variable.span, message)
                        .label("declared here")
                        .help(help),
                ),
            }
        }
    }

    fn is_variable(&self, name: &str) -> bool {
        self.source
            .module
            .variables
            .iter()
            .chain(self.inner.iter().copied())
            .any(|variable| variable.name == name)
    }

    /// Adds buffers that only the initial values of other buffers point to.
    fn add_pointed_buffers(&mut self) {
        let mut at = 0;
        while let Some(name) = self.order.get(at).cloned() {
            at += 1;
            let said = self
                .given
                .get(&name)
                .and_then(|binding| of_buffer(&name, binding));
            let unsaid = self.memory.get_mut(&name).filter(|made| made.is_unsaid());
            if let (Some(made), Some(said)) = (unsaid, said) {
                *made = said;
                self.given.remove(&name);
            }
            let init = self.memory.get(&name).and_then(|made| made.init.clone());
            for first in init.unwrap_or_default() {
                let First::Address(name, _) = first else {
                    continue;
                };
                if !self.memory.contains_key(&name) && !self.is_variable(&name) {
                    self.memory.insert(name.clone(), BufferContents::default());
                    self.order.push(name);
                }
            }
        }
    }

    /// Drops buffers that are variables of the module, and reports names with two meanings.
    fn separate_names(&mut self) {
        // A pointer may also point to a variable, which is already declared.
        for name in std::mem::take(&mut self.order) {
            if !self.is_variable(&name) {
                self.order.push(name);
            } else if self.memory.get(&name) == Some(&BufferContents::default()) {
                self.memory.remove(&name);
            } else {
                let message = format!("`{name}` is a variable of the module, not a buffer");
                let error = self.source.plain("name-clash", message).help(format!(
                    "give the buffer another name; `--arg 0={name}` is the variable's address"
                ));
                self.errors.push(error);
            }
        }
        for (name, _) in &self.regs {
            if !self.memory.contains_key(name) && !self.is_variable(name) {
                continue;
            }
            let kernel = &self.kernel.name;
            let message =
                format!("`{name}` is a parameter of `{kernel}`, and a buffer or a variable");
            self.errors.push(
                self.source
                    .plain("name-clash", message)
                    .help("give the buffer another name, or the parameter one in the module"),
            );
        }
    }

    /// Makes registers of all other bindings. They must be for special registers: inputs such as
    /// timers.
    fn bind_special_registers(&mut self) {
        for (name, binding) in std::mem::take(&mut self.given) {
            match binding {
                ParameterValue::Scalar(value) if name.starts_with('%') => {
                    self.regs.push((name, First::Bits(value)));
                }
                // `%envreg` gets the lower half of the pointer.
                binding @ ParameterValue::Buffer { .. } if name.starts_with("%envreg") => {
                    let value = bind(binding, "u32", &mut self.memory, &mut self.order);
                    self.regs.extend(value.map(|value| (name, value)));
                }
                _ => self.errors.push(self.unknown_parameter(&name)),
            }
        }
    }

    fn unknown_parameter(&self, name: &str) -> Diagnostic {
        let kernel = &self.kernel.name;
        let known: Vec<&str> = self.kernel.params.iter().map(|p| p.name.as_str()).collect();
        let message = format!("`{kernel}` has no parameter or variable `{name}`");
        self.source
            .plain("unknown-parameter", message)
            .note(format!("its parameters: {}", known.join(", ")))
            .did_you_mean(name, known.iter().copied())
    }

    /// The buffers under `[memory]`.
    fn buffers(
        &self,
        is_parameter: impl Fn(&str) -> bool,
        whole: &BTreeMap<String, u64>,
        inputs: &BTreeSet<String>,
    ) -> Vec<(String, ObjectTable)> {
        let mut objects = Vec::new();
        for name in &self.order {
            let (values, elements, ty) = match whole.get(name) {
                Some(bytes) => self.memory[name]
                    .clone()
                    .of_words(*bytes)
                    .object(&self.memory),
                None => self.memory[name].object(&self.memory),
            };
            let space = if is_parameter(name) {
                "param"
            } else {
                "global"
            };
            let unknown = inputs.contains(name);
            let table = match ty.as_deref() {
                Some(BYTES) => of_bytes(elements, "global", unknown),
                ty if unknown => object(&[UNKNOWN.to_owned()], elements, ty, space),
                ty => object(&values, elements, ty, space),
            };
            objects.push((name.clone(), table));
        }
        objects
    }

    /// The table `[kernel]`: the launch and the first values of registers.
    fn kernel_table(&self, launch: &Launch) -> String {
        let mut out = String::from("[kernel]\n");
        if !launch.grid.is_empty() {
            let _ = writeln!(out, "grid = {}", sizes(&launch.grid));
        }
        let block = fits::block(self.kernel, launch);
        let _ = writeln!(out, "block = {}", sizes(block));
        if let Some(cluster) = fits::cluster(self.kernel, launch) {
            let _ = writeln!(out, "cluster = {}", sizes(cluster));
        }
        if !self.regs.is_empty() {
            let regs: Vec<String> = self
                .regs
                .iter()
                .map(|(name, first)| format!("{} = {}", toml_key(name), first.text(&self.memory)))
                .collect();
            let _ = writeln!(out, "regs = {{ {} }}", regs.join(", "));
        }
        out
    }
}

/// The object of a variable, or a message and a help if its size is unknown.
type DeclaredObject = Result<ObjectTable, (String, String)>;

/// The sizes of a launch in each dimension.
fn sizes(sizes: &[u32]) -> String {
    match sizes {
        [one] => one.to_string(),
        several => format!("{several:?}"),
    }
}

/// The name of a file without what has a meaning inside a TOML string, where `${` begins a
/// placeholder.
fn file_name(name: &str) -> String {
    name.replace(|c: char| c.is_control() || "\"'$".contains(c), "_")
}
