//! Finds the kernels of a source file, their parameters, and hints at their launches.
//!
//! # Invariants
//! - Spans are those of the file.
//! - Hints choose the sizes of a launch. No answer rests on them.

use std::ops::Range;

use super::ast::{Base, Declarator, Expr as Tree, ExprKind, Function, Stmt, StmtKind, Storage};
use super::dynamic_memory::arrays;
use super::items::{Item, items, needed};
use super::lower::Lowering;
use super::preprocess::{Preprocessed, preprocess_file};
use super::text_words::words;
use super::types::{Qualified, Type};
use super::{ClikeCode, Env, Language, annotations, class_name, floats, library, parse};
use crate::isa::Symbols;
use diag::{MappedText, Sink, SourceFile, Span};
use program::{BinOp, Class, CmpOp, Dialect, Space, Ty};

/// GPUVerify's annotation beside functions.
const AXIOM: &str = "__axiom";

/// A source file, split into its items.
#[derive(Clone, Debug)]
pub struct SourceUnit {
    text: MappedText,
    items: Vec<Item>,
    language: &'static Language,
    /// Headers that the file includes and that were not read, with their places.
    pub missing: Vec<(String, Span)>,
    /// What the reading of the directives took for granted.
    assumed: Vec<String>,
}

/// A kernel: its name, its parameters, and hints at its launch.
#[derive(Clone, Debug, Default)]
pub struct KernelHead {
    /// Its name.
    pub name: String,
    /// The place of the name.
    pub span: Span,
    /// Its parameters, in order.
    pub parameters: Vec<KernelParameter>,
    /// Arrays of dynamic shared memory, with the types of their elements.
    pub dynamic: Vec<(String, String)>,
    /// Blocks per cluster, as it demands.
    pub cluster: Option<[u32; 3]>,
    /// Threads per block, as it demands.
    pub limit: Option<BlockLimit>,
    /// Hints at its launch.
    pub traits: Traits,
}

/// The threads in a block that a kernel demands: a launch of other blocks fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockLimit {
    /// At most this number (`__launch_bounds__`, `.maxntid`).
    AtMost(u32),
    /// Exactly these sizes (`reqd_work_group_size`, `.reqntid`).
    Exactly([u32; 3]),
}

impl BlockLimit {
    /// Whether a launch may have blocks of these sizes.
    pub fn admits(self, block: [u64; 3]) -> bool {
        match self {
            BlockLimit::AtMost(most) => block.iter().product::<u64>() <= u64::from(most),
            BlockLimit::Exactly(sizes) => block == sizes.map(u64::from),
        }
    }
}

/// A parameter of a kernel.
#[derive(Clone, Debug)]
pub struct KernelParameter {
    /// Its name.
    pub name: String,
    /// The place of the name.
    pub span: Span,
    /// The type behind the pointer, as a test writes it; `None`: it is a value.
    pub pointee: Option<String>,
    /// It is a structure, which each thread copies from the one of the launch.
    pub by_value: bool,
    /// The address space that it says it points to: `shared`, `const`.
    pub space: Option<&'static str>,
    /// The class of the library behind the pointer.
    pub class: Option<Class>,
    /// The name of its type.
    pub type_name: String,
}

/// Hints of a kernel's code at its launch.
#[derive(Clone, Debug, Default)]
pub struct Traits {
    /// It uses the number of a thread in its block.
    pub threads: bool,
    /// It uses the number of a block in its grid.
    pub blocks: bool,
    /// It uses the number of a block in the second dimension of the grid, and not in the first.
    pub block_rows: bool,
    /// It uses the size of a block.
    pub any_size: bool,
    /// It uses the number of a thread in the second dimension of its block.
    pub rows: bool,
    /// Threads of a warp hand each other values, or meet.
    pub lanes: bool,
    /// All blocks of the grid meet.
    pub grid_wide: bool,
    /// Threads meet at objects in memory, or copy asynchronously.
    pub objects: bool,
    /// It accesses memory atomically, or through objects of a library.
    pub atomics: bool,
    /// Sizes of shared arrays, by dimension.
    pub shared: Vec<Vec<u64>>,
    /// Comparisons of a parameter with something else, which bound or select threads.
    pub bounds: Vec<ParameterBound>,
}

/// A comparison of a parameter with a constant.
#[derive(Clone, Debug)]
pub struct ParameterBound {
    /// The parameter.
    pub parameter: String,
    /// The constant that it is compared with; `None`: the other side is not constant.
    pub constant: Option<i64>,
    /// Of a precondition: how it compares with the constant.
    pub required: Option<CmpOp>,
}

/// Words that give the number of a thread.
const THREADS: [&str; 9] = [
    "threadIdx",
    "thread_rank",
    "thread_index",
    "num_threads",
    "get_local_id",
    "get_global_id",
    "get_local_linear_id",
    "get_global_linear_id",
    "blockDim",
];

/// Words that give the size of a block.
const SIZES: [&str; 4] = [
    "blockDim",
    "get_local_size",
    "num_threads",
    "get_enqueued_local_size",
];

/// Words that give the number of a block.
const BLOCKS: [&str; 13] = [
    "blockIdx",
    "gridDim",
    "group_index",
    "block_rank",
    "block_index",
    "get_group_id",
    "get_num_groups",
    "get_global_id",
    "get_global_size",
    "get_global_linear_id",
    "this_grid",
    "this_cluster",
    "cluster_group",
];

/// What begins the names of functions by which lanes of a warp hand each other values.
const LANES: [&str; 16] = [
    "__shfl",
    "__ballot",
    "__any_sync",
    "__all_sync",
    "__match",
    "__reduce_",
    "__syncwarp",
    "__activemask",
    "tiled_partition",
    "coalesced_threads",
    "sub_group_",
    "get_sub_group",
    "shfl",
    "ballot",
    "warpSize",
    "laneid",
];

/// Types and numbers that a template without an instance is tried with.
const INSTANCE_TYPES: [&str; 2] = ["int", "float"];
const INSTANCE_NUMBERS: [u32; 9] = [8, 4, 16, 32, 2, 1, 64, 128, 256];

/// Arguments of a template in a file: `k<int>(` behind `template`, and `k<int><<<`.
fn written_instances(text: &MappedText, name: &str) -> Vec<String> {
    let source = text.as_str();
    let all: Vec<&str> = words(source).into_iter().map(|w| &source[w.0]).collect();
    let mut found = Vec::new();
    for at in (0..all.len()).filter(|&at| all[at] == name) {
        if all.get(at + 1) != Some(&"<") {
            continue;
        }
        let behind = all[at + 1..].iter().scan(0i32, |open, word| {
            *open += match *word {
                "<" => 1,
                ">" => -1,
                ">>" => -2,
                _ => 0,
            };
            (*open > 0).then_some(())
        });
        let close = at + 1 + behind.count();
        let explicit = all[..at]
            .iter()
            .rev()
            .take(4)
            .any(|word| *word == "template");
        let launched = all.get(close + 1) == Some(&"<<") && all.get(close + 2) == Some(&"<");
        let simple = all[at + 2..close].iter().all(|w| {
            w.starts_with(|c: char| c.is_alphanumeric() || c == '_') || matches!(*w, "," | "::")
        });
        if (explicit || launched) && simple && close > at + 2 {
            found.push(
                all[at + 2..close]
                    .join(" ")
                    .replace(" ,", ",")
                    .replace(" :: ", "::"),
            );
        }
    }
    found
}

impl SourceUnit {
    /// Reads a file; errors in its directives go to `sink`.
    pub fn read(text: MappedText, language: &'static Language, sink: &mut Sink) -> SourceUnit {
        let Preprocessed {
            text,
            missing,
            assumed,
        } = preprocess_file(text, language.dialect, sink);
        let items = items(&text, language);
        SourceUnit {
            text,
            items,
            language,
            missing,
            assumed,
        }
    }

    /// The names of the kernels, in order, with their places.
    pub fn kernels(&self) -> Vec<(String, Span)> {
        let kernels = self.items.iter().filter_map(|item| item.kernel.clone());
        kernels
            .map(|name| {
                let text = self.text.as_str()[name.clone()].to_owned();
                (text, self.text.span(name))
            })
            .collect()
    }

    /// The file without the declarations of variables of the device that are memory of a program.
    pub fn without(&self, names: &[String]) -> SourceUnit {
        let mut unit = self.clone();
        unit.items
            .retain(|item| item.is_function || !item.names.iter().any(|n| names.contains(n)));
        unit
    }

    /// The language of the file.
    pub fn dialect(&self) -> Dialect {
        self.language.dialect
    }

    /// The text without directives, and its items.
    pub(super) fn parts(&self) -> (&MappedText, &[Item]) {
        (&self.text, &self.items)
    }

    fn item(&self, kernel: usize) -> Option<(&Item, &Range<usize>)> {
        let mut all = self
            .items
            .iter()
            .filter_map(|i| Some((i, i.kernel.as_ref()?)));
        all.nth(kernel)
    }

    /// A kernel with all that it needs, parsed. `instance`: the arguments of its template.
    pub fn unit(&self, kernel: usize, instance: Option<&str>, sink: &mut Sink) -> ClikeCode {
        let errors = sink.errors();
        let text = match self.item(kernel) {
            Some((_, name)) => {
                let mut text = needed(&self.text, &self.items, name);
                if let Some(arguments) = instance {
                    let word = &self.text.as_str()[name.clone()];
                    let instance = format!("template __global__ void {word}<{arguments}>();\n");
                    text.push_opaque(&instance, self.text.span(name.clone()));
                }
                text
            }
            None => MappedText::new(),
        };
        let text = library::with_definitions(text, self.language);
        self.warn_of_axioms(sink);
        let (stmts, instances) = parse::statements(&text, self.language, sink);
        ClikeCode {
            text,
            stmts,
            instances,
            assumed: self.assumed.clone(),
            of_file: true,
            broken: sink.errors() > errors,
        }
    }

    /// Warns of annotations of verifiers that speak of all threads of all kernels.
    fn warn_of_axioms(&self, sink: &mut Sink) {
        for item in &self.items {
            let text = &self.text.as_str()[item.range.clone()];
            if text
                .strip_prefix(AXIOM)
                .is_some_and(|rest| rest.trim_start().starts_with('('))
            {
                annotations::warn_unused(self.text.span(item.range.clone()), sink);
            }
        }
    }

    /// The arguments of a kernel's template that the file itself has, in explicit instantiations
    /// and in launches.
    pub fn instances(&self, kernel: usize) -> Vec<String> {
        let Some((_, name)) = self.item(kernel) else {
            return Vec::new();
        };
        let word = &self.text.as_str()[name.clone()];
        let mut all: Vec<String> = Vec::new();
        for arguments in written_instances(&self.text, word) {
            if !all.contains(&arguments) {
                all.push(arguments);
            }
        }
        all
    }

    /// A kernel's name, its parameters, and hints at its launch.
    pub fn head(&self, kernel: usize, arguments: Option<&str>, unit: &ClikeCode) -> KernelHead {
        let Some((item, name)) = self.item(kernel) else {
            return KernelHead::default();
        };
        let mut head = unit.head(self.language);
        let word = &self.text.as_str()[name.clone()];
        head.name = match arguments {
            Some(arguments) => format!("{word}<{arguments}>"),
            None => word.to_owned(),
        };
        head.span = self.text.span(name.clone());
        head.cluster = item.cluster.clone().map(|cluster| {
            let text = self.text.as_str()[cluster].to_owned();
            let numbers = text.split(|c: char| !c.is_ascii_digit());
            let mut sizes = numbers.filter_map(|n| n.parse::<u32>().ok());
            [1, 1, 1].map(|one| sizes.next().unwrap_or(one))
        });
        head.limit = item
            .limit
            .clone()
            .and_then(|limit| block_limit(&self.text.as_str()[limit]));
        head
    }
}

/// The limit that a specifier or an attribute with arguments states, if they are numbers.
fn block_limit(text: &str) -> Option<BlockLimit> {
    let (word, arguments) = text.split_once('(')?;
    fn number(argument: &str) -> Option<u32> {
        argument.trim().trim_end_matches(['u', 'U']).parse().ok()
    }
    let mut sizes = arguments
        .trim_end()
        .strip_suffix(')')?
        .split(',')
        .map(number);
    if word.trim() == "__launch_bounds__" {
        return Some(BlockLimit::AtMost(sizes.next()??));
    }
    let mut size = || sizes.next()?;
    Some(BlockLimit::Exactly([size()?, size()?, size()?]))
}

impl ClikeCode {
    /// The limit of threads in a block that the kernel states, and its place.
    pub fn limit(&self, language: &Language) -> Option<(BlockLimit, Span)> {
        let all = items(&self.text, language).into_iter();
        let limit = all
            .filter(|item| item.kernel.is_some())
            .find_map(|item| item.limit)?;
        let stated = block_limit(&self.text.as_str()[limit.clone()])?;
        Some((stated, self.text.span(limit)))
    }

    /// Arguments for the template of the kernel, if it is one that nothing instantiates: those to
    /// try first come first.
    pub fn candidates(&self) -> Vec<String> {
        let Some(kernel) = self.kernel().filter(|kernel| !kernel.template.is_empty()) else {
            return Vec::new();
        };
        let said = kernel.template.iter().rev();
        let open = kernel.template.len() - said.take_while(|p| p.default.is_some()).count();
        let mut all = Vec::new();
        for ty in INSTANCE_TYPES {
            for number in INSTANCE_NUMBERS {
                let given = kernel.template[..open].iter().map(|param| match &param.of {
                    None => ty.to_owned(),
                    Some(_) if param.words => "cuda::thread_scope_device".to_owned(),
                    Some(of) if matches!(of.specifiers.base, Base::Bool) => "true".to_owned(),
                    Some(_) => number.to_string(),
                });
                let arguments = given.collect::<Vec<String>>().join(", ");
                if !all.contains(&arguments) {
                    all.push(arguments);
                }
            }
        }
        all
    }

    /// The parameters of the kernel, and hints at its launch.
    fn head(&self, language: &'static Language) -> KernelHead {
        let mut head = KernelHead {
            traits: self.traits(),
            ..KernelHead::default()
        };
        let env = Env::alone(language);
        // The lowering of the code reports their errors.
        let file = SourceFile::new("", "");
        let (mut symbols, mut sink) = (Symbols::default(), Sink::new(&file));
        let mut lowering = Lowering::new(self, &env, &mut symbols, &mut sink);
        lowering.define_types();
        let Some(kernel) = self.kernel() else {
            return head;
        };
        lowering.bind_template_of_kernel(kernel);
        for stmt in &kernel.body {
            lowering.define_constant(stmt);
        }
        for stmt in self.stmts.iter().chain(&kernel.body) {
            shared(stmt, &mut |declarator| {
                let sizes = declarator.arrays.iter().map(|(size, _)| {
                    let size = lowering.fixed(size.as_ref()?, "the size of an array");
                    size.and_then(|size| u64::try_from(size).ok())
                });
                let sizes: Option<Vec<u64>> = sizes.collect();
                head.traits.shared.extend(sizes.filter(|s| !s.is_empty()));
            });
        }
        for param in &kernel.params {
            // The host says what the pixels of an image are.
            let of = match param.specifiers.base {
                Base::Image(_) => Some(Type::Int(Ty::S32).into()),
                _ => lowering.kernel_parameter(param),
            };
            let is_object = matches!(param.specifiers.base, Base::Image(_))
                || param.specifiers.has(Storage::Pipe).is_some();
            let parameter = self.parameter(&param.declarator, of, is_object);
            head.parameters.push(parameter);
        }
        for (specifiers, declared) in arrays(self.text.as_str(), &self.stmts, kernel) {
            let of = lowering.base(specifiers);
            // The type may depend on a template: each function then views bytes as its own type.
            let element = of
                .and_then(|of| written(&of))
                .map_or("u8".to_owned(), |w| w.0);
            let name = self.text.as_str()[declared.declarator.name.clone()].to_owned();
            head.dynamic.push((name, element));
        }
        head
    }

    fn kernel(&self) -> Option<&Function> {
        self.stmts.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::Function(Some(f)) if f.result.specifiers.has(Storage::Kernel).is_some() => {
                Some(&**f)
            }
            _ => None,
        })
    }

    /// A parameter; `is_object`: it is an image or a pipe, and this the type of its elements.
    fn parameter(
        &self,
        declarator: &Declarator,
        of: Option<Qualified>,
        is_object: bool,
    ) -> KernelParameter {
        let name = declarator.name.clone();
        let to = match of.as_ref().map(|of| &of.ty) {
            Some(Type::Pointer(to)) => Some((**to).clone()),
            // The launch has a structure to copy from.
            Some(Type::Struct(_)) => of.clone(),
            _ if declarator.reference || is_object => of.clone(),
            _ => None,
        };
        let space = to
            .as_ref()
            .and_then(|to| to.space)
            .and_then(|space| match space {
                Space::Shared => Some("shared"),
                Space::Constant => Some("const"),
                _ => None,
            });
        let class = to.as_ref().and_then(|to| match to.ty {
            Type::Object(class, _) => Some(class),
            _ => None,
        });
        KernelParameter {
            span: self.text.span(name.clone()),
            name: self.text.as_str()[name].to_owned(),
            by_value: !(declarator.reference || is_object)
                && of
                    .as_ref()
                    .is_some_and(|of| matches!(of.ty, Type::Struct(_))),
            pointee: to.map(|to| written(&to).map_or("s32".to_owned(), |w| w.0)),
            space,
            class,
            type_name: of.map_or(String::new(), |of| of.ty.name()),
        }
    }

    /// Hints of the code at its launch.
    fn traits(&self) -> Traits {
        let source = self.text.as_str();
        let all: Vec<&str> = words(source).into_iter().map(|w| &source[w.0]).collect();
        let (mut traits, mut columns) = (Traits::default(), false);
        for (at, &word) in all.iter().enumerate() {
            let next = |n: usize| all.get(at + n).copied().unwrap_or("");
            traits.threads |= THREADS.contains(&word);
            traits.blocks |= BLOCKS.contains(&word);
            traits.any_size |= SIZES.contains(&word);
            let of = |names: &[&str], dimension: [&str; 2]| {
                names.contains(&word)
                    && match next(1) {
                        "." => next(2) == dimension[0],
                        "(" => next(2) == dimension[1],
                        _ => false,
                    }
            };
            let of_blocks = ["blockIdx", "get_global_id", "get_group_id"];
            traits.rows |= of(&["threadIdx", "get_local_id", "get_global_id"], ["y", "1"]);
            traits.block_rows |= of(&of_blocks, ["y", "1"]);
            columns |= of(&of_blocks, ["x", "0"]);
            traits.lanes |= LANES.iter().any(|lanes| word.starts_with(lanes));
            traits.grid_wide |= ["this_grid", "grid_group"].contains(&word);
            let objects = ["mbarrier", "cp_async", "memcpy_async", "pipeline"];
            traits.objects |= objects.iter().any(|object| word.contains(object));
            traits.objects |= word == "barrier" && ["<", ";"].contains(&next(1));
            traits.atomics |= word.to_ascii_lowercase().contains("atom");
        }
        traits.block_rows &= !columns;
        let Some(kernel) = self.kernel() else {
            return traits;
        };
        let mut found = Vec::new();
        for stmt in self.stmts.iter().chain(&kernel.body) {
            stmt.each_expr(&mut |tree| self.bounds(tree, false, &mut found));
        }
        let parameters: Vec<&str> = kernel
            .params
            .iter()
            .map(|p| &source[p.declarator.name.clone()])
            .collect();
        found.retain(|bound: &ParameterBound| parameters.contains(&bound.parameter.as_str()));
        traits.bounds = found;
        traits
    }

    /// The comparisons of names in an expression, `required`: of a precondition.
    fn bounds(&self, tree: &Tree, required: bool, found: &mut Vec<ParameterBound>) {
        let text = |range: &std::ops::Range<usize>| &self.text.as_str()[range.clone()];
        let required = match &tree.kind {
            ExprKind::Call(name, _) => text(name).contains("requires"),
            _ => required,
        };
        if let ExprKind::Cmp(op, a, b) = &tree.kind {
            for (name, other, op) in [(a, b, *op), (b, a, turned(*op))] {
                if let (ExprKind::Name, true) = (&name.kind, required || op != CmpOp::Ne) {
                    found.push(ParameterBound {
                        parameter: text(&name.range).to_owned(),
                        constant: number(other).map(|n| n as i64),
                        required: required.then_some(op),
                    });
                }
            }
        }
        tree.parts()
            .into_iter()
            .for_each(|part| self.bounds(part, required, found));
    }
}

/// Calls `f` with each shared object that a statement declares.
fn shared(stmt: &Stmt, f: &mut dyn FnMut(&Declarator)) {
    match &stmt.kind {
        StmtKind::Declare(declaration) => {
            let local = declaration.specifiers.of_base.space == Some(Space::Shared);
            if local || declaration.specifiers.has(Storage::Shared).is_some() {
                declaration.all.iter().for_each(|d| f(&d.declarator));
            }
        }
        StmtKind::Block(all) => all.iter().for_each(|stmt| shared(stmt, f)),
        _ => {}
    }
}

/// A comparison with its sides exchanged.
fn turned(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::Lt => CmpOp::Gt,
        CmpOp::Le => CmpOp::Ge,
        CmpOp::Gt => CmpOp::Lt,
        CmpOp::Ge => CmpOp::Le,
        CmpOp::Eq | CmpOp::Ne => op,
    }
}

/// The number that an expression of constants is.
fn number(tree: &Tree) -> Option<u64> {
    match &tree.kind {
        ExprKind::Int(n, _) => u64::try_from(*n).ok(),
        ExprKind::Bin(op, a, b) => {
            let (a, b) = (number(a)?, number(b)?);
            match op {
                BinOp::Add => a.checked_add(b),
                BinOp::Sub => a.checked_sub(b),
                BinOp::Mul => a.checked_mul(b),
                BinOp::Div => a.checked_div(b),
                BinOp::Shl => u32::try_from(b).ok().and_then(|b| a.checked_shl(b)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A type as a test writes it, and its class.
fn written(of: &Qualified) -> Option<(String, Option<Class>)> {
    match &of.ty {
        Type::Bool => Some(("bool".to_owned(), None)),
        Type::Struct(structure) => Some((structure.name.clone(), None)),
        Type::Float(format) => Some((floats::name(*format).to_owned(), None)),
        Type::Object(class, value) => {
            let ty = value.word().unwrap_or(Ty::S32);
            let sign = if ty.signed { "" } else { "u" };
            let element = format!("{sign}int{}_t", ty.bits);
            Some((class_name(*class, &element, 0).0, Some(*class)))
        }
        ty => ty.word().map(|ty| (ty.ptx_name().to_owned(), None)),
    }
}
