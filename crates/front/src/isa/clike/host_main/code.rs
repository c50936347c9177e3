//! Finds the functions, types and variables of the host in a source file.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::parser::{HostParser, Read};
use super::tree::{
    HostBase, HostDeclared, HostExpr, HostFunction, HostMethod, HostRecord, HostType,
    TemplateParameter,
};
use crate::isa::clike::SourceUnit;
use crate::isa::clike::items::Item;
use crate::isa::clike::text_words::words;
use diag::{Diagnostic, MappedText, SourceFile};
use program::{Dialect, Ty};

/// The host code of a source file.
pub struct HostCode<'a> {
    pub(super) text: &'a MappedText,
    pub(super) file: &'a Arc<SourceFile>,
    items: &'a [Item],
    types: HashMap<String, Option<HostType>>,
    /// The templates of classes, with the place behind their heads.
    class_templates: HashMap<String, (Vec<TemplateParameter>, Range<usize>)>,
    instances: RefCell<HashMap<String, Rc<HostRecord>>>,
    /// Enumerators: the expression that the value counts from, and the distance to it.
    enumerators: HashMap<String, (Option<HostExpr>, i64)>,
    functions: RefCell<HashMap<String, Rc<HostFunction>>>,
    /// The names of kernels, in order.
    pub(super) kernels: Vec<String>,
    /// Variables whose address is taken, so that they are memory.
    pub(super) addressed: HashSet<String>,
    /// Whether the program has several threads of the host, or functions that the runtime calls.
    pub(super) concurrent: bool,
    /// Whether the file asks for default streams of the threads.
    pub(super) per_thread: bool,
    /// The language of the file.
    pub(super) dialect: Dialect,
    /// What the command line says behind the program's name.
    pub(super) arguments: Vec<String>,
}

/// Words that say that a variable is the device's.
const OF_DEVICE: [&str; 4] = ["__device__", "__constant__", "__shared__", "__managed__"];

/// Structures of the runtime.
const RUNTIME_TYPES: [&str; 9] = [
    "struct cudaKernelNodeParams { void *func; dim3 gridDim; dim3 blockDim; \
     unsigned sharedMemBytes; void **kernelParams; void **extra; };",
    "struct cudaMemsetParams { void *dst; size_t pitch; unsigned value; unsigned elementSize; \
     size_t width; size_t height; };",
    "struct cudaHostNodeParams { void *fn; void *userData; };",
    "struct cudaLaunchAttributeValue { int cooperative; \
     int programmaticStreamSerializationAllowed; dim3 clusterDim; int priority; };",
    "struct cudaLaunchAttribute { int id; cudaLaunchAttributeValue val; };",
    "struct cudaLaunchConfig_t { dim3 gridDim; dim3 blockDim; size_t dynamicSmemBytes; \
     cudaStream_t stream; cudaLaunchAttribute *attrs; unsigned numAttrs; };",
    "struct CUmemLocation { int type; int id; };",
    "struct CUmemAllocationProp { int type; int requestedHandleTypes; CUmemLocation location; };",
    "struct CUmemAccessDesc { CUmemLocation location; int flags; };",
];

/// Words of programs in which several threads of the host run.
const CONCURRENT: [&str; 6] = [
    "cudaLaunchHostFunc",
    "cudaStreamAddCallback",
    "cudaGraphAddHostNode",
    "std::thread",
    "std::jthread",
    "stop_callback",
];

/// Vectors of numbers: the prefix of their names, and the type of their members.
const VECTORS: [(&str, &str); 12] = [
    ("char", "signed char"),
    ("uchar", "unsigned char"),
    ("short", "short"),
    ("ushort", "unsigned short"),
    ("int", "int"),
    ("uint", "unsigned"),
    ("long", "long"),
    ("ulong", "unsigned long"),
    ("longlong", "long long"),
    ("ulonglong", "unsigned long long"),
    ("float", "float"),
    ("double", "double"),
];

/// Says that default streams are those of the threads.
const PER_THREAD: &str = "#define CUDA_API_PER_THREAD_DEFAULT_STREAM";

impl<'a> HostCode<'a> {
    /// The host code of a file; `None`: it has no `main`. `arguments` are those of the program.
    pub fn new(
        unit: &'a SourceUnit,
        file: &'a Arc<SourceFile>,
        arguments: &[String],
    ) -> Option<HostCode<'a>> {
        let (text, items) = unit.parts();
        items.iter().find(|item| is_function(item, "main"))?;
        let mut code = HostCode {
            text,
            file,
            items,
            types: HashMap::new(),
            class_templates: HashMap::new(),
            instances: RefCell::default(),
            enumerators: HashMap::new(),
            functions: RefCell::default(),
            kernels: items
                .iter()
                .filter_map(|item| Some(text.as_str()[item.kernel.clone()?].to_owned()))
                .collect(),
            addressed: addressed(text.as_str()),
            concurrent: CONCURRENT.iter().any(|word| text.as_str().contains(word)),
            per_thread: file
                .text
                .lines()
                .any(|line| line.trim().starts_with(PER_THREAD)),
            dialect: unit.dialect(),
            arguments: arguments.to_vec(),
        };
        code.add_runtime_types();
        for item in items {
            code.add_type(item);
        }
        Some(code)
    }

    fn add_runtime_types(&mut self) {
        let mut all: Vec<String> = RUNTIME_TYPES.map(str::to_owned).to_vec();
        if self.dialect == Dialect::Cuda {
            all.extend(vectors());
        }
        for definition in &all {
            let text = MappedText::verbatim(definition, 0);
            let parser = HostParser::new(&text, 0..definition.len(), self.file, &self.types);
            let record = parser.and_then(|mut parser| parser.record());
            if let Ok(Some(record)) = record {
                let name = record.name.clone();
                let of = HostType::plain(HostBase::Record(Rc::new(record)));
                self.types.insert(name, Some(of));
            }
        }
    }

    /// `typedef int T;`, `using T = int;`, and names of structures, which host code cannot use.
    fn add_type(&mut self, item: &Item) {
        let source = &self.text.as_str()[item.range.clone()];
        let all: Vec<Range<usize>> = words(source).into_iter().map(|w| w.0).collect();
        let word = |at: usize| all.get(at).map_or("", |r| &source[r.clone()]);
        let start = item.range.start;
        let (name, of) = match word(0) {
            "typedef" if word(1) == "struct" && source.contains('{') => {
                let of = self.record(item);
                self.types.insert(word(all.len() - 2).to_owned(), of);
                return;
            }
            "typedef" if all.len() > 3 => {
                let last = all.len() - 2;
                let of = start + all[1].start..start + all[last].start;
                (word(last), Some(of))
            }
            "using" if word(2) == "=" => {
                let of = start + all[3].start..item.range.end;
                (word(1), Some(of))
            }
            "struct" | "class" => {
                let of = self.record(item);
                self.types.insert(word(1).to_owned(), of);
                return;
            }
            "template" => {
                if let Ok(mut parser) = self.parser(item.range.clone())
                    && let Ok(params) = parser.template_head()
                    && matches!(parser.word(0), "class" | "struct")
                {
                    let (name, rest) = (parser.word(1).to_owned(), parser.rest(&item.range));
                    drop(parser);
                    let of = HostType::plain(HostBase::Template);
                    // A specialisation would need the arguments to choose.
                    let known = self.class_templates.insert(name.clone(), (params, rest));
                    self.types.insert(name, known.is_none().then_some(of));
                }
                return;
            }
            "enum" => {
                if let Ok(mut parser) = self.parser(item.range.clone())
                    && let Ok((name, all)) = parser.enumeration()
                {
                    drop(parser);
                    self.enumerators.extend(all);
                    let of = HostType::plain(HostBase::Int(Ty::S32));
                    self.types.insert(name, Some(of));
                }
                return;
            }
            "union" => (word(1), None),
            _ => return,
        };
        let of = of.and_then(|range| {
            let mut parser = HostParser::new(self.text, range, self.file, &self.types).ok()?;
            parser.type_name().ok()
        });
        self.types.insert(name.to_owned(), of);
    }

    /// The structure that an item defines; `None`: it has more than members.
    fn record(&self, item: &Item) -> Option<HostType> {
        let mut parser =
            HostParser::new(self.text, item.range.clone(), self.file, &self.types).ok()?;
        let record = match parser.record() {
            Ok(Some(record)) => record,
            _ => {
                let mut parser = self.parser(item.range.clone()).ok()?;
                parser.class().ok()??
            }
        };
        Some(HostType::plain(HostBase::Record(Rc::new(record))))
    }

    /// The parameters of a class template.
    pub(super) fn class_template(&self, name: &str) -> Option<&Vec<TemplateParameter>> {
        self.class_templates.get(name).map(|template| &template.0)
    }

    /// The types of the file with those of a template.
    fn types_with(&self, own: &[(String, HostType)]) -> HashMap<String, Option<HostType>> {
        let mut types = self.types.clone();
        types.extend(
            own.iter()
                .map(|(name, of)| (name.clone(), Some(of.clone()))),
        );
        types
    }

    /// An instance of a class template; `None`: the class is not read.
    pub(super) fn class_instance(
        &self,
        name: &str,
        types: Vec<(String, HostType)>,
        constants: Vec<(String, i64)>,
    ) -> Option<Rc<HostRecord>> {
        let key = format!("{name} {types:?} {constants:?}");
        if let Some(known) = self.instances.borrow().get(&key) {
            return Some(known.clone());
        }
        let (_, range) = self.class_templates.get(name)?;
        let in_sight = self.types_with(&types);
        let mut parser = HostParser::new(self.text, range.clone(), self.file, &in_sight).ok()?;
        let record = parser.class().ok()??;
        let record = Rc::new(HostRecord {
            types,
            constants,
            ..record
        });
        self.instances.borrow_mut().insert(key, record.clone());
        Some(record)
    }

    /// The function that a method of a class is.
    pub(super) fn method(&self, of: &HostRecord, method: &HostMethod) -> Read<Rc<HostFunction>> {
        let key = format!(
            "{}::{} {:?} {:?}",
            of.name, method.name, method.range, of.types
        );
        if let Some(known) = self.functions.borrow().get(&key) {
            return Ok(known.clone());
        }
        let types = self.types_with(&of.types);
        let range = method.range.clone();
        let mut parser = HostParser::new(self.text, range, self.file, &types)?;
        let function = Rc::new(parser.method_function(&method.name)?);
        self.functions.borrow_mut().insert(key, function.clone());
        Ok(function)
    }

    /// The item of a function template.
    fn template_item(&self, name: &str) -> Option<&Item> {
        let item = self.items.iter().find(|item| is_function(item, name))?;
        let source = &self.text.as_str()[item.range.clone()];
        source.starts_with("template").then_some(item)
    }

    /// The parameters of a function template, and those of its functions.
    pub(super) fn function_template(
        &self,
        name: &str,
    ) -> Option<Read<(Vec<TemplateParameter>, Vec<HostDeclared>)>> {
        let item = self.template_item(name)?;
        let read = || {
            let mut parser = self.parser(item.range.clone())?;
            Ok((parser.template_head()?, parser.signature()?))
        };
        Some(read())
    }

    /// An instance of a function template.
    pub(super) fn function_instance(
        &self,
        name: &str,
        types: Vec<(String, HostType)>,
        constants: &[(String, i64)],
    ) -> Read<Rc<HostFunction>> {
        let key = format!("{name} {types:?} {constants:?}");
        if let Some(known) = self.functions.borrow().get(&key) {
            return Ok(known.clone());
        }
        let range = self
            .template_item(name)
            .map_or(0..0, |item| item.range.clone());
        let in_sight = self.types_with(&types);
        let mut parser = HostParser::new(self.text, range, self.file, &in_sight)?;
        parser.template_head()?;
        let function = Rc::new(parser.function_behind_template()?);
        self.functions.borrow_mut().insert(key, function.clone());
        Ok(function)
    }

    pub(super) fn parser(&self, range: Range<usize>) -> Read<HostParser<'_>> {
        HostParser::new(self.text, range, self.file, &self.types)
    }

    /// The parameters of a function that the file declares and does not define.
    pub(super) fn only_declared(&self, name: &str) -> Option<Vec<HostDeclared>> {
        let mut variables = self.items.iter().filter(|item| !item.is_function);
        let item = variables.find(|item| item.declares(name))?;
        let source = &self.text.as_str()[item.range.clone()];
        let at = words(source)
            .into_iter()
            .find(|word| &source[word.0.clone()] == name)?;
        let from = item.range.start + at.0.end;
        self.parser(from..item.range.end).ok()?.parameters().ok()
    }

    /// The parameters of a kernel, as far as they can be read.
    pub(super) fn kernel_parameters(&self, kernel: usize) -> Option<Vec<HostDeclared>> {
        let mut kernels = self.items.iter().filter(|item| item.kernel.is_some());
        let item = kernels.nth(kernel)?;
        let from = item.kernel.clone()?.end;
        self.parser(from..item.range.end).ok()?.parameters().ok()
    }

    /// The value of an enumerator: an expression, and a number to add.
    pub(super) fn enumerator(&self, name: &str) -> Option<&(Option<HostExpr>, i64)> {
        self.enumerators.get(name)
    }

    /// The type of that name, if host code can use it.
    pub(super) fn type_of(&self, name: &str) -> Option<&HostType> {
        self.types.get(name)?.as_ref()
    }

    /// The function of that name; `None`: the file has none.
    pub(super) fn function(&self, name: &str) -> Option<Read<Rc<HostFunction>>> {
        if let Some(known) = self.functions.borrow().get(name) {
            return Some(Ok(known.clone()));
        }
        let item = self.items.iter().find(|item| is_function(item, name))?;
        let read = || {
            let function = Rc::new(self.parser(item.range.clone())?.function()?);
            let mut all = self.functions.borrow_mut();
            all.insert(name.to_owned(), function.clone());
            Ok(function)
        };
        Some(read())
    }

    /// Finds the functions called `name` that take `count` arguments.
    pub(super) fn functions_taking(&self, name: &str, count: usize) -> Read<Vec<Rc<HostFunction>>> {
        let named = self.items.iter().filter(|item| is_function(item, name));
        let all: Vec<&Item> = named.collect();
        let mut found = Vec::new();
        for item in &all {
            let function = match all.len() {
                1 => self.function(name).transpose()?,
                _ => Some(Rc::new(self.parser(item.range.clone())?.function()?)),
            };
            let takes = |function: &Rc<HostFunction>| {
                let least = function.params.iter().filter(|p| p.value.is_none());
                (least.count()..=function.params.len()).contains(&count)
            };
            found.extend(function.filter(takes));
        }
        Ok(found)
    }

    /// The variables of the file that are the host's, as far as they can be read.
    pub(super) fn variables(&self) -> Vec<Vec<HostDeclared>> {
        let all = self
            .items
            .iter()
            .filter(|item| item.kernel.is_none() && !item.is_function)
            .filter(|item| {
                let text = &self.text.as_str()[item.range.clone()];
                !OF_DEVICE.iter().any(|word| text.contains(word))
            });
        all.filter_map(|item| {
            let mut parser = self.parser(item.range.clone()).ok()?;
            match parser.declares() {
                true => parser.declaration().ok(),
                false => None,
            }
        })
        .collect()
    }

    /// The variables of the device with their declarations, as far as they can be read.
    pub(super) fn of_device(&self) -> Vec<(Range<usize>, HostDeclared)> {
        let mut found = Vec::new();
        for item in self
            .items
            .iter()
            .filter(|item| self.is_variable_of_device(item))
        {
            if self.item_text(item).contains("__shared__") {
                continue;
            }
            let Ok(mut parser) = self.parser(item.range.clone()) else {
                continue;
            };
            if let Ok(all) = parser.declaration() {
                found.extend(all.into_iter().map(|one| (item.range.clone(), one)));
            }
        }
        found
    }

    /// The places of the functions of the host.
    pub(super) fn host_functions(&self) -> impl Iterator<Item = Range<usize>> {
        self.items
            .iter()
            .filter(|item| item.is_function)
            .filter(|item| {
                let head = self.head(item);
                !head.contains("__device__") && !head.contains("__global__")
            })
            .map(|item| item.range.clone())
    }

    fn item_text(&self, item: &Item) -> &str {
        &self.text.as_str()[item.range.clone()]
    }

    /// The text before the first brace.
    fn head(&self, item: &Item) -> &str {
        self.item_text(item).split('{').next().unwrap_or("")
    }

    fn is_variable_of_device(&self, item: &Item) -> bool {
        let text = self.item_text(item);
        !item.is_function && OF_DEVICE.iter().any(|word| text.contains(word))
    }

    /// The text of a kernel.
    pub(super) fn kernel_text(&self, name: &str) -> Option<&str> {
        let text = self.text.as_str();
        let item = self
            .items
            .iter()
            .find(|item| item.kernel.clone().is_some_and(|k| &text[k] == name))?;
        Some(&text[item.range.clone()])
    }

    /// The names of the device's variables.
    pub(super) fn device_names(&self) -> impl Iterator<Item = &String> {
        self.items
            .iter()
            .filter(|item| self.is_variable_of_device(item))
            .flat_map(|item| &item.names)
    }

    /// The names of variables in functions of the device. Memory with such a name would hide them.
    pub(super) fn device_locals(&self) -> HashSet<String> {
        let mut found = HashSet::new();
        let of_device = self.items.iter().filter(|item| {
            item.kernel.is_some() || item.is_function && self.head(item).contains("__device__")
        });
        for item in of_device {
            let text = self.item_text(item);
            let body = text.find('{').map_or("", |at| &text[at..]);
            let all: Vec<&str> = words(body).into_iter().map(|w| &body[w.0]).collect();
            locals(&all, &mut found);
        }
        found
    }

    /// Variables of the device, by name.
    pub(super) fn is_of_device(&self, name: &str) -> bool {
        self.device_names().any(|own| own == name)
    }

    pub(super) fn error(
        &self,
        id: &'static str,
        range: &Range<usize>,
        message: impl Into<String>,
    ) -> Box<Diagnostic> {
        let span = self.text.span(range.clone());
        Box::new(Diagnostic::error(id, self.file, span, message.into()))
    }

    /// The number of a line of the file.
    pub(super) fn line(&self, range: &Range<usize>) -> usize {
        let at = self.text.span(range.clone()).start as usize;
        self.file.line_column(at).0
    }
}

/// Words that no type ends with.
const NO_TYPES: [&str; 6] = ["return", "else", "goto", "case", "new", "delete"];

/// Adds the names of the variables that code declares, as far as its words show.
fn locals(all: &[&str], found: &mut HashSet<String>) {
    fn is_name(word: &str) -> bool {
        word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }
    let word = |at: usize| all.get(at).copied().unwrap_or("");
    let ends = |at: usize| matches!(word(at), "=" | ";" | "," | "[" | "{");
    let begins = |at: usize| matches!(word(at), ";" | "{" | "}" | "(" | ")" | "const" | "unsigned");
    for at in 2..all.len() {
        let typed = is_name(word(at - 1)) && !NO_TYPES.contains(&word(at - 1));
        let pointer = matches!(word(at - 1), "*" | "&")
            && is_name(word(at - 2))
            && at.checked_sub(3).is_some_and(begins);
        if !is_name(word(at)) || !ends(at + 1) || !(typed || pointer) {
            continue;
        }
        found.insert(word(at).to_owned());
        // `int a = 1, *b;`
        let (mut open, mut next) = (0, at + 1);
        while next < all.len() && (open > 0 || !matches!(word(next), ";" | ")")) {
            match word(next) {
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => open -= 1,
                "," if open == 0 => {
                    let name = next + 1 + usize::from(word(next + 1) == "*");
                    if is_name(word(name)) && (ends(name + 1) || word(name + 1) == ";") {
                        found.insert(word(name).to_owned());
                    }
                }
                _ => {}
            }
            next += 1;
        }
    }
}

/// The definitions of the vectors of one to four numbers.
fn vectors() -> impl Iterator<Item = String> {
    VECTORS.iter().flat_map(|(prefix, member)| {
        (1..=4).map(move |n| {
            let members = ["x", "y", "z", "w"][..n].join(", ");
            format!("struct {prefix}{n} {{ {member} {members}; }};")
        })
    })
}

/// Whether an item is the function of that name.
fn is_function(item: &Item, name: &str) -> bool {
    item.is_function && item.kernel.is_none() && item.names.iter().any(|n| n == name)
}

/// Calls that only write numbers to their operands, or read them at once.
const ASKS: [&str; 13] = [
    "cudaGetDevice",
    "cudaGetDeviceCount",
    "cudaDeviceGetAttribute",
    "cudaDeviceGetStreamPriorityRange",
    "cudaEventElapsedTime",
    "cudaMemGetInfo",
    "cudaMallocPitch",
    "cudaOccupancy",
    "clCreate",
    "clGet",
    "clSetKernelArg",
    "clEnqueueNDRangeKernel",
    "clEnqueueFillBuffer",
];

/// Variables with an address that the code passes on: `f(&x)`, `= &x`. Some calls keep no address.
fn addressed(source: &str) -> HashSet<String> {
    let all: Vec<&str> = words(source).into_iter().map(|w| &source[w.0]).collect();
    let mut names = HashSet::new();
    for (at, _) in all.iter().enumerate().filter(|(_, word)| **word == "&") {
        let before = at.checked_sub(1).map_or("", |b| all[b]);
        let behind = all.get(at + 2).copied().unwrap_or("");
        let handed = matches!(before, "(" | "," | "=" | ")") && matches!(behind, ")" | "," | ";");
        if handed && !ASKS.iter().any(|call| called(&all, at).starts_with(call)) {
            names.insert(all[at + 1].to_owned());
        }
    }
    names
}

/// The function among whose operands a word is.
fn called<'w>(all: &[&'w str], at: usize) -> &'w str {
    let mut open = 0;
    for i in (0..at).rev() {
        match all[i] {
            ")" | "]" => open += 1,
            "(" | "[" if open > 0 => open -= 1,
            "(" => return i.checked_sub(1).map_or("", |before| all[before]),
            ";" | "{" | "}" => break,
            _ => {}
        }
    }
    ""
}

impl HostType {
    /// Whether values of the type are numbers.
    pub(super) fn is_number(&self) -> bool {
        let number = matches!(
            self.base,
            HostBase::Int(_) | HostBase::Bool | HostBase::Float(_)
        );
        number && self.pointers == 0
    }

    /// Whether it is a structure.
    pub(super) fn is_record(&self) -> bool {
        matches!(self.base, HostBase::Record(_)) && self.pointers == 0
    }

    /// Whether arrays of the type are memory of numbers.
    pub(super) fn is_memory(&self) -> bool {
        let numbers = match &self.base {
            HostBase::Record(record) => !record.cells.is_empty(),
            HostBase::Atomic(_, reference, _) => !reference,
            _ => false,
        };
        self.is_number() || (numbers && self.pointers == 0)
    }
}

/// The words of a part of the code.
pub(super) fn words_of(code: &HostCode<'_>, range: &Range<usize>) -> HashSet<String> {
    let source = &code.text.as_str()[range.clone()];
    words(source)
        .into_iter()
        .map(|w| source[w.0].to_owned())
        .collect()
}
