//! Random sequential programs in C and C++, of one thread, with everything of the languages that
//! the front end accepts. Each is available as a test, and as a function for a compiler of the
//! language.
//!
//! # Invariants
//! - No program has undefined or unspecified behaviour, except for signed overflow, which `-fwrapv`
//!   defines as the front end does.
//! - Shifts stay within the type (except in OpenCL C); divisors are not 0 and not -1.
//! - Indexes are within their array, and variables have values.
//! - An expression changes a variable at most once and does not use it elsewhere, unless the
//!   language defines the order.
//! - Every program ends: loops count, and nothing else changes their counters.

use std::collections::BTreeSet;
use std::fmt::Write;

use program::litmus::LitmusTest;
use rand::Rng;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_pcg::Pcg64Mcg;

use crate::made;

/// The language of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cpp,
    OpenCl,
}

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    pub language: Language,
    /// Structures and enumerations.
    types: Vec<String>,
    /// Memory: type, name, initial values; more than one value makes an array.
    memory: Vec<(Type, String, Vec<i64>)>,
    /// Memory of the structure, with initial values.
    structures: Vec<(String, Vec<i64>)>,
    /// The elements of structures and arrays of arrays.
    parts: Vec<Part>,
    /// Functions, and declarations before the statements.
    functions: Vec<String>,
    head: Vec<String>,
    /// Statements of the outermost block.
    body: Vec<String>,
    /// Variables of the outermost block.
    observed: Vec<String>,
}

/// Types: name in the code, name in `[memory]`, bits, whether signed.
type Type = (&'static str, &'static str, u8, bool);

const TYPES: [Type; 9] = [
    ("bool", "bool", 1, false),
    ("signed char", "char", 8, true),
    ("unsigned char", "uchar", 8, false),
    ("short", "short", 16, true),
    ("unsigned short", "ushort", 16, false),
    ("int", "int", 32, true),
    ("unsigned", "uint", 32, false),
    ("long", "long", 64, true),
    ("unsigned long", "ulong", 64, false),
];

/// An element of a structure or an array of arrays.
#[derive(Clone, Debug)]
struct Part {
    /// Its text in code and in a condition, with `@` for each index.
    text: String,
    name: String,
    /// The bounds of the indices: powers of two.
    sizes: Vec<usize>,
}

impl Part {
    /// A text with its indices.
    fn at(text: &str, indices: &[String]) -> String {
        let mut pieces = text.split('@');
        let mut all = pieces.next().unwrap_or("").to_string();
        pieces
            .zip(indices)
            .for_each(|(piece, index)| all += &format!("{index}{piece}"));
        all
    }

    /// All elements that it names: in a condition, and in the code.
    fn all(&self) -> Vec<(String, String)> {
        let mut indices: Vec<Vec<String>> = vec![Vec::new()];
        for size in &self.sizes {
            let with =
                |i: usize, before: &Vec<String>| [before.as_slice(), &[i.to_string()]].concat();
            indices = indices
                .iter()
                .flat_map(|before| (0..*size).map(move |i| with(i, before)))
                .collect();
        }
        indices
            .iter()
            .map(|at| (Part::at(&self.name, at), Part::at(&self.text, at)))
            .collect()
    }
}

/// What stands before a member function, where `__device__` does in a kernel's program.
const DEVICE: &str = "/* device */";

/// Numbers of floating point.
const FLOATS: &[&str] = &[
    "0.0f",
    "1.0f",
    "0.1f",
    "0.1",
    "-2.5f",
    "1e-3",
    "3",
    "16777217.0f",
    "1.5",
    "-0.0",
    "1e10f",
];

/// Constants at the edges of the types.
const EDGES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "7",
    "-1",
    "-2",
    "100",
    "127",
    "128",
    "-128",
    "-129",
    "255",
    "256",
    "300",
    "32767",
    "32768",
    "65535",
    "65536",
    "2147483647",
    "0x7fffffff",
    "0x80000000",
    "0xffffffff",
    "4294967296",
    "1u",
    "3000000000u",
    "5L",
    "-1L",
    "0xfffffffffUL",
    "010",
    "'a'",
    "'\\xff'",
    "'\\101'",
    "0x7fL",
];

impl Program {
    /// The program of a seed.
    pub fn of(language: Language, seed: u64) -> Program {
        Maker::new(language, seed).program(seed)
    }

    /// The final values to compare, in order: the name, and the expression that a compiler's
    /// program prints.
    fn finals(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for (_, name, init) in &self.memory {
            match init.len() {
                1 if self.language != Language::Cpp => {
                    all.push((name.clone(), format!("{name}[0]")))
                }
                1 => all.push((name.clone(), name.clone())),
                n => all.extend((0..n).map(|i| (format!("{name}[{i}]"), format!("{name}[{i}]")))),
            }
        }
        all.extend(self.parts.iter().flat_map(Part::all));
        all.extend(
            self.observed
                .iter()
                .map(|name| (format!("P0:{name}"), name.clone())),
        );
        all
    }

    fn code(&self) -> String {
        self.head
            .iter()
            .chain(&self.body)
            .map(|line| format!("{line}\n"))
            .collect()
    }

    /// The program as a test.
    pub fn text(&self) -> String {
        let dialect = match self.language {
            Language::C => "c",
            Language::Cpp => "cuda",
            Language::OpenCl => "opencl",
        };
        let finals: Vec<String> = self
            .finals()
            .into_iter()
            .map(|f| format!("\"{}\"", f.0))
            .collect();
        let mut text =
            format!("name = \"sequential\"\ndialect = \"{dialect}\"\ncondition = '0 == 0'\n");
        let _ = writeln!(text, "observe = [{}]\n\n[memory]", finals.join(", "));
        for (ty, name, init) in &self.memory {
            let _ = writeln!(text, "{name} = {{ type = \"{}\", init = {init:?} }}", ty.1);
        }
        for (name, init) in &self.structures {
            let _ = writeln!(text, "{name} = {{ type = \"S\", init = {init:?} }}");
        }
        // A multi-line literal string holds single apostrophes.
        let (types, functions, code) = (self.types.concat(), self.functions.concat(), self.code());
        let _ = write!(
            text,
            "\n[[thread]]\ncode = '''\n{types}{functions}{code}'''\n"
        );
        text
    }

    /// The test, read.
    ///
    /// # Panics
    /// If the front end rejects it: that is a defect of the front end or of the generator.
    pub fn read(&self) -> LitmusTest {
        made::read(&self.text())
    }

    /// The number of final values.
    pub fn results(&self) -> usize {
        self.finals().len()
    }

    /// The program as a function that prints its final values on one line; in OpenCL C it writes
    /// them through a pointer.
    pub fn function(&self, name: &str) -> String {
        let mut text = self.functions.concat();
        let (parameters, of_memory, show) = match self.language {
            Language::OpenCl => ("global long *results", "", ["*results++ = (long)(", ");"]),
            Language::C | Language::Cpp => {
                ("void", "static ", ["printf(\"%lld \", (long long)(", "));"])
            }
        };
        let _ = writeln!(
            text,
            "static void {name}({parameters}) {{\n{}",
            self.types.concat()
        );
        for (ty, name, init) in &self.memory {
            let values: Vec<String> = init.iter().map(|v| v.to_string()).collect();
            match (init.len(), self.language) {
                (1, Language::Cpp) => {
                    let _ = writeln!(text, "static {} {name} = ({}){};", ty.0, ty.0, values[0]);
                }
                (n, _) => {
                    let _ = writeln!(
                        text,
                        "{of_memory}{} {name}[{n}] = {{{}}};",
                        ty.0,
                        values.join(", ")
                    );
                }
            }
        }
        for (name, init) in &self.structures {
            let values: Vec<String> = init.iter().map(|v| v.to_string()).collect();
            // In C, memory is passed by its address.
            let array = if self.language != Language::Cpp {
                "[1]"
            } else {
                ""
            };
            let _ = writeln!(
                text,
                "{of_memory}struct S {name}{array} = {{{}}};",
                values.join(", ")
            );
        }
        text.push_str(&self.code());
        for (_, value) in self.finals() {
            let _ = writeln!(text, "{}{value}{}", show[0], show[1]);
        }
        text.push_str(if self.language == Language::OpenCl {
            "}\n"
        } else {
            "printf(\"\\n\");\n}\n"
        });
        text
    }

    /// The program, in OpenCL C, as a kernel that writes its final values through a pointer.
    pub fn opencl_kernel(&self, name: &str) -> String {
        let function = self.function(&format!("in_{name}"));
        format!("{function}kernel void {name}(global long *results) {{ in_{name}(results); }}\n")
    }

    /// The program, in C++, as a kernel of CUDA C++ that writes its final values through a pointer.
    /// Its memory belongs to the module, so that a compiler does not know its content.
    pub fn kernel(&self, name: &str) -> String {
        let types = self.types.concat().replace(DEVICE, "__device__");
        let mut text = format!("namespace in_{name} {{\n{types}");
        for line in self.functions.iter().flat_map(|f| f.lines()) {
            let device = line.replacen("static ", "__device__ static ", 1);
            let line = match line.starts_with("static ") || line.starts_with("template ") {
                true => &device,
                false => line,
            };
            let _ = writeln!(text, "{line}");
        }
        let listed = |init: &[i64]| {
            init.iter()
                .map(i64::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        for (ty, name, init) in &self.memory {
            let (size, open, close) = if init.len() == 1 {
                (String::new(), "(", ")")
            } else {
                (format!("[{}]", init.len()), "{", "}")
            };
            let cast = if init.len() == 1 {
                format!("({})", ty.0)
            } else {
                String::new()
            };
            let _ = writeln!(
                text,
                "__device__ {} {name}{size} = {cast}{open}{}{close};",
                ty.0,
                listed(init)
            );
        }
        for (name, init) in &self.structures {
            let _ = writeln!(text, "__device__ struct S {name} = {{{}}};", listed(init));
        }
        let _ = writeln!(
            text,
            "extern \"C\" __global__ void {name}(long long *results) {{\n{}",
            self.code()
        );
        for (_, value) in self.finals() {
            let _ = writeln!(text, "*results++ = (long long)({value});");
        }
        text + "}\n}\n"
    }

    /// Programs with one statement less in the outermost block.
    pub fn smaller(&self) -> Vec<Program> {
        let without = |i: usize| {
            let mut less = self.clone();
            less.body.remove(i);
            less
        };
        (0..self.body.len()).map(without).collect()
    }
}

/// A variable that code can name.
#[derive(Clone, Debug)]
struct Variable {
    name: String,
    ty: Type,
    /// Whether code may assign to it.
    free: bool,
}

/// An expression: its text, and the variables that it reads and changes.
#[derive(Clone, Debug, Default)]
struct Made {
    text: String,
    /// Whether it contains variables, so that no compiler can see an overflow in it.
    varies: bool,
    reads: BTreeSet<String>,
    writes: BTreeSet<String>,
}

/// The variables that an expression must not use.
#[derive(Clone, Debug, Default)]
struct Bans {
    read: BTreeSet<String>,
    write: BTreeSet<String>,
}

impl Bans {
    /// Adds the bans for an expression that is unsequenced with `other`.
    fn beside(&self, other: &Made) -> Bans {
        let mut all = self.clone();
        all.read.extend(other.writes.iter().cloned());
        all.write
            .extend(other.writes.iter().chain(&other.reads).cloned());
        all
    }
}

struct Maker {
    rng: Pcg64Mcg,
    language: Language,
    types: Vec<String>,
    memory: Vec<(Type, String, Vec<i64>)>,
    structures: Vec<(String, Vec<i64>)>,
    parts: Vec<Part>,
    /// Blocks of variables, the innermost last.
    scopes: Vec<Vec<Variable>>,
    names: usize,
    enumerators: Vec<String>,
    /// Arrays of four elements that never change.
    tables: Vec<String>,
    functions: Vec<Function>,
    /// A structure that functions take and return: its number, and the types of its members.
    pair: Option<(u64, Type, Type)>,
    /// The type of the member of a structure with member functions.
    method: Option<Type>,
    /// The statement is in a function. A function that uses memory has no order among the operands
    /// of an expression, so calls of it would be refused.
    called: bool,
}

/// A function: its name, and its parameters, each with whether it is a reference.
#[derive(Clone, Debug)]
struct Function {
    name: String,
    parameters: Vec<(Type, bool)>,
    /// C++: its template takes a constant; the last parameter has a default argument.
    template: bool,
    default: bool,
}

impl Maker {
    fn new(language: Language, seed: u64) -> Maker {
        let rng = Pcg64Mcg::seed_from_u64(seed);
        Maker {
            rng,
            language,
            types: Vec::new(),
            memory: Vec::new(),
            structures: Vec::new(),
            parts: Vec::new(),
            scopes: vec![Vec::new()],
            names: 0,
            enumerators: Vec::new(),
            tables: Vec::new(),
            functions: Vec::new(),
            pair: None,
            method: None,
            called: false,
        }
    }

    fn any<T: Clone>(&mut self, all: &[T]) -> T {
        all.choose(&mut self.rng).expect("never empty").clone()
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    /// A function that uses only its parameters and variables.
    fn function(&mut self, name: String) -> String {
        let mut parameters = Vec::new();
        let mut head = Vec::new();
        self.scopes = vec![Vec::new(), Vec::new()];
        for i in 0..self.rng.random_range(1..=3) {
            let (ty, name) = (self.any(&TYPES), format!("a{i}"));
            let by_reference = self.language == Language::Cpp && self.chance(25);
            head.push(format!(
                "{} {}{name}",
                ty.0,
                if by_reference { "&" } else { "" }
            ));
            parameters.push((ty, by_reference));
            self.declare(Variable {
                name,
                ty,
                free: true,
            });
        }
        let template = self.language == Language::Cpp && self.chance(30);
        let last = parameters.last().is_some_and(|last: &(Type, bool)| !last.1);
        let default = self.language == Language::Cpp && last && self.chance(30);
        if default {
            let value = self.any(EDGES);
            let _ = write!(head.last_mut().expect("there is one"), " = {value}");
        }
        let result = self.any(&TYPES);
        self.called = true;
        let mut body: String = (0..self.rng.random_range(0..=2))
            .map(|_| self.statement(1) + " ")
            .collect();
        if self.chance(40) {
            let (cond, value) = (
                self.expression(1, &Bans::default()),
                self.expression(2, &Bans::default()),
            );
            let _ = write!(body, "if ({}) return {}; ", cond.text, value.text);
        }
        let value = self.expression(2, &Bans::default()).text;
        let text = format!(
            "{}static {} {name}({}) {{ {body}return {value}{}; }}\n",
            if template { "template <int N> " } else { "" },
            result.0,
            head.join(", "),
            if template { " + N" } else { "" },
        );
        self.functions.push(Function {
            name,
            parameters,
            template,
            default,
        });
        self.scopes = vec![Vec::new()];
        self.called = false;
        text
    }

    /// A call of a function, its arguments in any order.
    fn call(&mut self, depth: u32, bans: &Bans) -> Made {
        let function = self.any(&self.functions.clone());
        let mut all = Made {
            varies: true,
            ..Made::default()
        };
        let mut texts = Vec::new();
        let mut parameters = function.parameters;
        if function.default && self.chance(40) {
            parameters.pop();
        }
        for (ty, by_reference) in parameters {
            let beside = bans.beside(&all);
            let arg = if by_reference {
                let fits = |v: &Variable| v.free && v.ty == ty && !beside.write.contains(&v.name);
                let Some(v) = self
                    .visible()
                    .into_iter()
                    .find(fits)
                    .filter(|v| !beside.read.contains(&v.name))
                else {
                    return self.leaf(bans);
                };
                let both: BTreeSet<String> = [v.name.clone()].into();
                Made {
                    text: v.name,
                    varies: true,
                    reads: both.clone(),
                    writes: both,
                }
            } else {
                self.expression(depth, &beside)
            };
            texts.push(arg.text.clone());
            all = joined(String::new(), &[&all, &arg]);
        }
        let given = match function.template {
            true => format!("<{}>", self.rng.random_range(-3..4)),
            false => String::new(),
        };
        Made {
            text: format!("{}{given}({})", function.name, texts.join(", ")),
            varies: true,
            ..all
        }
    }

    fn program(mut self, seed: u64) -> Program {
        let mut functions: Vec<String> = (0..self.rng.random_range(0..=2))
            .map(|i| self.function(format!("g{seed}_{i}")))
            .collect();
        if self.chance(30) {
            functions.push(self.pair(seed));
        }
        for i in 0..self.rng.random_range(1..=3) {
            let ty = self.any(&TYPES);
            let n = if self.chance(30) { 4 } else { 1 };
            let values = (0..n).map(|_| self.value(ty)).collect();
            self.memory.push((ty, format!("m{i}"), values));
        }
        let mut head = Vec::new();
        if self.chance(30) {
            let (a, b) = (self.rng.random_range(-3..200), self.rng.random_range(0..5));
            self.enumerators = vec!["EA".into(), "EB".into(), "EC".into()];
            head.push(format!("enum E {{ EA, EB = {a}, EC = EB + {b} }};"));
        }
        if self.chance(40) {
            self.aggregates(&mut head);
        }
        // OpenCL C has them only outside kernels.
        if self.language != Language::OpenCl && self.chance(30) {
            let ty = self.any(&TYPES);
            let values = [(); 3].map(|()| self.value(ty).to_string()).join(", ");
            let word = if self.language == Language::Cpp && self.chance(50) {
                "constexpr"
            } else {
                "const"
            };
            head.push(format!("static {word} {} tab[4] = {{{values}}};", ty.0));
            self.tables.push("tab".into());
        }
        if self.language == Language::Cpp && self.chance(30) {
            let b = self.rng.random_range(1..100);
            self.types.push(format!(
                "enum class K : unsigned char {{ A, B = {b}, C }};\n"
            ));
        }
        if self.language == Language::Cpp && self.chance(30) {
            let (ty, by) = (self.any(&TYPES), self.any(&TYPES));
            self.method = Some(ty);
            self.types.push(format!(
                "struct M {{ {} v; {DEVICE} {} get() const {{ return v; }} \
                 {DEVICE} operator {}() const {{ return v; }} \
                 {DEVICE} void up({} v) {{ this->v ^= v; if (get() == 3) this->v = 1; }} }};\n",
                ty.0, by.0, by.0, by.0
            ));
        }
        let mut observed = Vec::new();
        for i in 0..self.rng.random_range(2..=4) {
            let ty = self.any(&TYPES);
            let (name, value) = (format!("r{i}"), self.any(EDGES));
            head.push(format!("{} {name} = ({}){value};", ty.0, ty.0));
            observed.push(name.clone());
            self.scopes[0].push(Variable {
                name,
                ty,
                free: true,
            });
        }
        let body = (0..self.rng.random_range(2..=6))
            .map(|_| self.statement(3))
            .collect();
        let Maker {
            language,
            types,
            memory,
            structures,
            parts,
            ..
        } = self;
        Program {
            language,
            types,
            memory,
            structures,
            parts,
            functions,
            head,
            body,
            observed,
        }
    }

    /// A structure, a function that makes one, and a function that takes one.
    fn pair(&mut self, n: u64) -> String {
        let (a, b, c) = (self.any(&TYPES), self.any(&TYPES), self.any(&TYPES));
        self.pair = Some((n, a, b));
        let listed = self.chance(50);
        let made = match self.language {
            Language::Cpp if listed => "return {v, w};".to_owned(),
            _ => format!("struct Q{n} q = {{ .a = v, .b = w }}; q.a ^= 1; return q;"),
        };
        let (a, b, c) = (a.0, b.0, c.0);
        format!(
            "struct Q{n} {{ {a} a; {b} b; }};\nstatic struct Q{n} mk{n}({a} v, {b} w) {{ {made} }}\n\
             static {c} fold{n}(struct Q{n} q) {{ q.b += 3; return q.a - q.b; }}\n"
        )
    }

    /// A statement with structures that have no names.
    fn paired(&mut self, (n, a, b): (u64, Type, Type)) -> String {
        let none = Bans::default();
        let Some(Variable { name: to, .. }) = self.target(&none) else {
            return ";".into();
        };
        let first = self.expression(2, &none);
        let second = self.expression(2, &none.beside(&first)).text;
        let first = first.text;
        match self.rng.random_range(0..4) {
            0 => format!(
                "{{ struct Q{n} qq = mk{n}({first}, {second}); {to} = fold{n}(qq); {to} += qq.a; }}"
            ),
            1 => format!("{to} = mk{n}({first}, {second}).b;"),
            2 => format!(
                "{{ struct Q{n} qq; qq = mk{n}({first}, {second}); qq.b ^= 1; {to} = fold{n}(qq) ^ qq.b; }}"
            ),
            _ if self.language != Language::Cpp => {
                format!(
                    "{to} = fold{n}((struct Q{n}){{ .b = ({})({second}), .a = ({})({first}) }});",
                    b.0, a.0
                )
            }
            _ => format!(
                "{to} = fold{n}(Q{n}{{({})({first}), ({})({second})}});",
                a.0, b.0
            ),
        }
    }

    /// A structure, objects of it, and an array of arrays.
    fn aggregates(&mut self, head: &mut Vec<String>) {
        let types = [(); 4].map(|()| self.any(&TYPES));
        let [a, b, c, d] = &types;
        self.types.push(format!(
            "struct S {{ {} a; {} b[2]; struct {{ {} c, d; }} e; }};\n",
            a.0, b.0, c.0
        ));
        let members = [("a", None), ("b[@]", Some(2)), ("e.c", None), ("e.d", None)];
        let cells = [a, b, b, c, c];
        let mut part = |text: String, name: String, sizes: Vec<usize>| {
            self.parts.push(Part { text, name, sizes });
        };
        let dot = if self.language != Language::Cpp {
            "->"
        } else {
            "."
        };
        for (member, size) in members {
            let sizes: Vec<usize> = size.into_iter().collect();
            part(
                format!("sm{dot}{member}"),
                format!("sm.{member}"),
                sizes.clone(),
            );
            part(
                format!("so.{member}"),
                format!("P0:so.{member}"),
                sizes.clone(),
            );
            let of_array = [&[2], sizes.as_slice()].concat();
            part(
                format!("sa[@].{member}"),
                format!("P0:sa[@].{member}"),
                of_array,
            );
        }
        part("mm[@][@]".into(), "P0:mm[@][@]".into(), vec![2, 4]);
        let values = |maker: &mut Maker, types: &[&Type]| -> Vec<i64> {
            types.iter().map(|ty| maker.value(**ty)).collect()
        };
        let memory = values(self, &cells);
        self.structures.push(("sm".into(), memory));
        let list = |all: &[i64]| {
            all.iter()
                .map(i64::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let one = values(self, &cells);
        // The rest is 0; values without braces go to the parts in order.
        let few = self.rng.random_range(1..=5);
        head.push(format!("struct S so = {{{}}};", list(&one[..few])));
        let two = [values(self, &cells), values(self, &cells)];
        head.push(match self.chance(50) {
            true => format!(
                "struct S sa[2] = {{{{{}}}, {{{}}}}};",
                list(&two[0]),
                list(&two[1][..few])
            ),
            false => format!(
                "struct S sa[2] = {{{}, {}}};",
                list(&two[0]),
                list(&two[1][..few])
            ),
        });
        let rows = [values(self, &[d; 4]), values(self, &[d; 4])];
        let rows = format!(
            "{{{{{}}}, {{{}}}}}",
            list(&rows[0]),
            list(&rows[1][..few.min(4)])
        );
        head.push(format!(
            "{} mm[{}][4] = {rows};",
            d.0,
            if self.chance(50) { "2" } else { "" }
        ));
    }

    /// A part of a structure or an array of arrays, with any indices, or constant ones.
    fn part(&mut self, fixed: bool, bans: &Bans) -> Made {
        let part = self.any(&self.parts.clone());
        let mut all = Made::default();
        let mut indices = Vec::new();
        for size in &part.sizes {
            let index = match fixed {
                true => joined(self.rng.random_range(0..*size).to_string(), &[]),
                false => self.index(*size, &bans.beside(&all)),
            };
            indices.push(index.text.clone());
            all = joined(String::new(), &[&all, &index]);
        }
        Made {
            text: Part::at(&part.text, &indices),
            varies: true,
            ..all
        }
    }

    /// Statements about structures: copies, pointers, references.
    fn structured(&mut self) -> String {
        let none = Bans::default();
        let object = |maker: &mut Maker| match maker.rng.random_range(0..3) {
            0 => if maker.language != Language::Cpp {
                "*sm"
            } else {
                "sm"
            }
            .to_string(),
            1 => "so".to_string(),
            _ => format!("sa[{}]", maker.index(2, &Bans::default()).text),
        };
        let (one, other) = (object(self), object(self));
        match self.rng.random_range(0..6) {
            // The language does not define which of two indices is evaluated first.
            0 => format!("{{ struct S *p = &{one}; *p = {other}; }}").replace("&*sm", "sm"),
            1 => format!(
                "{{ struct S t = {one}; t.a ^= 1; {} = t; }}",
                ["so", "sa[0]", "sa[1]"][self.rng.random_range(0..3)]
            ),
            2 => {
                let value = self.expression(2, &none).text;
                format!("{{ struct S *p = &{one}; p->e.d = {value}; p->b[p->a & 1] += 3; }}")
                    .replace("&*sm", "sm")
            }
            3 if self.language == Language::Cpp => {
                let value = self.expression(2, &none).text;
                format!("{{ S &t = {one}; t.b[1] = {value}; auto &u = t.e.c; u ^= 1; }}")
            }
            _ => {
                let place = self.part(false, &none);
                let op = self.operator();
                let value = self.value_for(&op, 2, &none.beside(&place));
                format!("{} {op} {};", place.text, value.text)
            }
        }
    }

    fn value(&mut self, (_, _, bits, signed): Type) -> i64 {
        let v: i64 = self.rng.random_range(-300..300);
        match (bits, signed) {
            (1, _) => v & 1,
            (8, true) => i64::from(v as i8),
            (8, false) => i64::from(v as u8),
            (_, false) => v.abs(),
            _ => v,
        }
    }

    fn fresh(&mut self) -> String {
        // Few names, so that inner ones hide outer ones.
        self.names += 1;
        if self.chance(50) {
            format!("r{}", self.rng.random_range(0..5))
        } else {
            format!("t{}", self.names)
        }
    }

    /// The visible variables.
    fn visible(&self) -> Vec<Variable> {
        let mut all: Vec<Variable> = Vec::new();
        for variable in self.scopes.iter().rev().flatten() {
            if !all.iter().any(|v| v.name == variable.name) {
                all.push(variable.clone());
            }
        }
        all
    }

    /// A statement of at most `depth` levels.
    fn statement(&mut self, depth: u32) -> String {
        let none = Bans::default();
        let simple = depth == 0;
        match self.rng.random_range(0..100) {
            0..10 => self.declaration(),
            10..20 if !self.memory.is_empty() => self.stored(),
            20..45 => {
                let made = self.assignment(2, &none);
                format!("{};", made.text)
            }
            45..50 => {
                let made = self.expression(3, &none);
                format!("{};", made.text)
            }
            50..54 if !self.memory.is_empty() => self.pointer(),
            54..62 if !self.parts.is_empty() => self.structured(),
            62..64 if self.language == Language::Cpp => self.referred(),
            70..76 if self.language == Language::Cpp && !simple => self.declaring(depth),
            76..80 => self.floating(),
            88..91 if !self.called => self.united(),
            80..83 if !self.called => self.addressed(),
            83..86 if self.language == Language::Cpp && !self.called => self.elements(),
            86..88 if self.method.is_some() && !self.called => self.method(),
            64..70 if self.pair.is_some() => {
                let pair = self.pair.expect("there is one");
                self.paired(pair)
            }
            _ if simple => {
                let made = self.assignment(1, &none);
                format!("{};", made.text)
            }
            54..68 => {
                let cond = self.expression(2, &none).text;
                let then = self.block(depth - 1);
                if self.chance(50) {
                    let other = self.block(depth - 1);
                    format!("if ({cond}) {then} else {other}")
                } else {
                    format!("if ({cond}) {then}")
                }
            }
            68..82 => self.looped(depth),
            83..92 => self.switch(depth),
            _ => self.block(depth - 1),
        }
    }

    /// A statement with numbers of floating point. Those that no integer type of 32 bits holds are
    /// compared alone: a conversion of one is undefined.
    fn floating(&mut self) -> String {
        let none = Bans::default();
        let Some(Variable { name: to, .. }) = self.target(&none) else {
            return ";".into();
        };
        let (first, second) = (self.expression(2, &none), self.expression(1, &none));
        let ty = self.any(&["float", "double"]);
        let op = self.any(&["+", "-", "*", "/"]);
        let (edge, other) = (self.any(FLOATS), self.any(FLOATS));
        let compared = self.any(&["<", "<=", ">", ">=", "==", "!="]);
        let step = self.any(&["", "f++; ", "f *= 0.75f; ", "f = -f; ", "f += 3; "]);
        // OpenCL C 1.2, 6.3.i: the first operand of `?:` is no float.
        let truth = if self.language == Language::OpenCl {
            "g != 0"
        } else {
            "g"
        };
        format!(
            "{{ {ty} f = {}; f = f {op} {edge}; {ty} g = {}; {step}\
             {to} = f {compared} g + {other} ? \
             (f > -1e6f && f < 1e6f ? (int)f : 5) : ({truth} ? 1 : 2); }}",
            first.text, second.text
        )
    }

    /// A statement with a union, whose members have the same bits.
    fn united(&mut self) -> String {
        let none = Bans::default();
        let Some(Variable { name: to, .. }) = self.target(&none) else {
            return ";".into();
        };
        let (first, second) = (self.expression(2, &none), self.expression(1, &none));
        let (a, b) = self.any(&[
            ("unsigned", "int"),
            ("float", "unsigned"),
            ("unsigned long", "double"),
            ("short", "unsigned short"),
        ]);
        // No number of floating point is computed: its bits might be those of a NaN.
        let set = match a {
            "float" => format!("u.a = {};", self.any(FLOATS)),
            _ => format!("u.a = {};", first.text),
        };
        let (change, result) = match b {
            "double" => (String::new(), "u.b > 0.5 ? 3 : 4".to_owned()),
            _ => (format!("u.b ^= {}; ", second.text), "u.b".to_owned()),
        };
        let back = self.any(&["", "u.a == 0 ? 1 : "]);
        format!("{{ union {{ {a} a; {b} b; }} u; {set} {change}{to} = {back}{result}; }}")
    }

    /// A statement that takes the address of a variable.
    fn addressed(&mut self) -> String {
        let none = Bans::default();
        let Some(Variable { name: to, .. }) = self.target(&none) else {
            return ";".into();
        };
        let (first, second) = (self.expression(2, &none), self.expression(2, &none));
        let ty = self.any(&TYPES).0;
        let op = self.any(&["=", "^=", "+="]);
        format!(
            "{{ {ty} q = ({ty})({}); {ty} *p = &q; *p {op} {}; {to} = q; }}",
            first.text, second.text
        )
    }

    /// A loop over the elements of an array.
    fn elements(&mut self) -> String {
        let none = Bans::default();
        let Some(Variable { name: to, .. }) = self.target(&none) else {
            return ";".into();
        };
        let ty = self.any(&TYPES);
        let values = [(); 3].map(|()| self.value(ty).to_string()).join(", ");
        let word = self.any(&["auto", "auto &", "const auto &", "int", ty.0]);
        let (array, step) = (
            format!("{} e[3] = {{{values}}};", ty.0),
            self.any(&["", "if (v == 1) continue; ", "if (v > 100) break; "]),
        );
        format!("{{ {array} for ({word} v : e) {{ {step}{to} = {to} * 3 + v; }} }}")
    }

    /// A statement with an object that has member functions.
    fn method(&mut self) -> String {
        let none = Bans::default();
        let Some(Variable { name: to, .. }) = self.target(&none) else {
            return ";".into();
        };
        let ty = self.method.expect("there is one").0;
        let (first, second) = (self.expression(2, &none), self.expression(2, &none));
        let through = self.any(&["o.", "(&o)->"]);
        let result = self.any(&["o.get()", "o", "o + 1", "2 - o"]);
        format!(
            "{{ M o = {{({ty})({})}}; {through}up({}); {to} = {result}; }}",
            first.text, second.text
        )
    }

    /// A statement whose condition declares a variable, which may be a narrow one (ISO C++17,
    /// stmt.select, stmt.while).
    fn declaring(&mut self, depth: u32) -> String {
        let (name, ty) = (format!("c{}", self.scopes.len()), self.any(&TYPES));
        let value = self.expression(2, &Bans::default()).text;
        let counter = format!("i{}", self.scopes.len());
        self.scopes.push(vec![
            Variable {
                name: name.clone(),
                ty,
                free: true,
            },
            Variable {
                name: counter.clone(),
                ty: TYPES[5],
                free: false,
            },
        ]);
        let kind = self.rng.random_range(0..5);
        if kind != 4 {
            self.scopes.last_mut().expect("a block").pop();
        }
        let test = self.expression(1, &Bans::default()).text;
        let (then, other) = (self.block(depth - 1), self.block(depth - 1));
        self.scopes.pop();
        let declared = format!("{} {name} = {value}", ty.0);
        match kind {
            0 => format!("if ({declared}) {then} else {other}"),
            1 => format!("if ({declared}; {test}) {then} else {other}"),
            // A `bool` cannot be a label.
            2 if ty.2 > 1 => {
                format!(
                    "switch ({declared}) {{ case 0: {then} case 1: {other} break; default: {then} }}"
                )
            }
            2 | 3 => {
                format!("switch ({declared}; {test}) {{ case 0: {then} break; default: {other} }}")
            }
            _ => format!(
                "{{ int {counter} = 3; while ({} {name} = {counter}) {{ {counter}--; if ({test}) continue; {then} }} }}",
                ty.0
            ),
        }
    }

    fn statements(&mut self, depth: u32) -> String {
        (0..self.rng.random_range(1..=3))
            .map(|_| self.statement(depth) + " ")
            .collect()
    }

    fn block(&mut self, depth: u32) -> String {
        self.scopes.push(Vec::new());
        let body = self.statements(depth);
        self.scopes.pop();
        format!("{{ {body}}}")
    }

    fn declare(&mut self, variable: Variable) {
        self.scopes.last_mut().expect("a block").push(variable);
    }

    fn declaration(&mut self) -> String {
        let name = self.fresh();
        let ty = self.any(&TYPES);
        if self
            .scopes
            .last()
            .expect("a block")
            .iter()
            .any(|v| v.name == name)
            || self.scopes.len() == 1
        {
            return ";".into();
        }
        // A name in its own initialiser is the new variable, which has no value yet.
        let bans = Bans {
            read: [name.clone()].into(),
            write: [name.clone()].into(),
        };
        let value = self.expression(2, &bans).text;
        self.declare(Variable {
            name: name.clone(),
            ty,
            free: true,
        });
        match self.rng.random_range(0..6) {
            0 if self.language == Language::Cpp => format!("{} {name}({value});", ty.0),
            1 => format!("{} {name}; {name} = {value};", ty.0),
            _ => format!("{} {name} = {value};", ty.0),
        }
    }

    /// An assignment to memory.
    fn stored(&mut self) -> String {
        let (_, name, init) = self.any(&self.memory.clone());
        let place = match (init.len(), self.language) {
            (1, Language::C | Language::OpenCl) => Made {
                text: format!("*{name}"),
                ..Made::default()
            },
            (1, Language::Cpp) => Made {
                text: name,
                ..Made::default()
            },
            (n, _) => {
                let at = self.index(n, &Bans::default());
                Made {
                    text: format!("{name}[{}]", at.text),
                    ..at
                }
            }
        };
        let op = self.operator();
        // In C++17 the right operand comes first; GCC does not keep to that if it is a variable
        // that the left operand changes.
        let bans = Bans::default().beside(&place);
        let value = self.value_for(&op, 2, &bans);
        format!("{} {op} {};", place.text, value.text)
    }

    fn operator(&mut self) -> String {
        let all = [
            "=", "=", "=", "+=", "-=", "*=", "&=", "|=", "^=", "/=", "%=", "<<=", ">>=",
        ];
        self.any(&all).to_string()
    }

    /// The right operand of an assignment.
    fn value_for(&mut self, op: &str, depth: u32, bans: &Bans) -> Made {
        let made = self.expression(depth, bans);
        let text = match op {
            "/=" | "%=" => format!("(({}) & 15) + 1", made.text),
            // In OpenCL C, the number of bits of a shift is taken modulo the width of its type.
            "<<=" | ">>=" if self.language != Language::OpenCl => format!("({}) & 7", made.text),
            _ => return made,
        };
        Made { text, ..made }
    }

    /// An index into an array of `n` elements, a power of two.
    fn index(&mut self, n: usize, bans: &Bans) -> Made {
        let made = self.expression(1, bans);
        Made {
            text: format!("({}) & {}", made.text, n - 1),
            ..made
        }
    }

    /// A reference to a variable of the thread.
    fn referred(&mut self) -> String {
        let none = Bans::default();
        let Some(variable) = self.target(&none) else {
            return ";".into();
        };
        let value = self.expression(2, &none).text;
        format!(
            "{{ {} &q = {}; q = {value}; q ^= 1; }}",
            variable.ty.0, variable.name
        )
    }

    /// A pointer to memory, and accesses through it.
    fn pointer(&mut self) -> String {
        let (ty, name, init) = self.any(&self.memory.clone());
        let first = match (init.len(), self.language) {
            (1, Language::Cpp) => format!("&{name}"),
            _ => name,
        };
        let last = init.len() - 1;
        let at = self.rng.random_range(0..=last);
        let value = self.expression(2, &Bans::default()).text;
        let pointer = format!("{} *p = {first} + {at};", ty.0);
        let reference = self.language == Language::Cpp && self.chance(30);
        match self.rng.random_range(0..5) {
            _ if reference => format!("{{ {pointer} {} &r = *p; r = {value}; r ^= 1; }}", ty.0),
            0 => format!("{{ {pointer} p -= {at}; p[{at}] = {value}; }}"),
            1 => format!("{{ {pointer} {} *q = p++; q[p - q - 1] = {value}; }}", ty.0),
            2 => format!("{{ {pointer} if (p && p != 0) *p = {value}; }}"),
            3 => format!(
                "{{ void *v = {first}; {} *p = ({} *)v; p[{at}] = {value}; }}",
                ty.0, ty.0
            ),
            _ => format!("{{ {pointer} *p = {value}; *p += 1; }}"),
        }
    }

    fn looped(&mut self, depth: u32) -> String {
        let (name, n) = (
            format!("i{}", self.scopes.len()),
            self.rng.random_range(1..=4),
        );
        let ty = self.any(&[TYPES[2], TYPES[5], TYPES[6], TYPES[7]]);
        self.scopes.push(vec![Variable {
            name: name.clone(),
            ty,
            free: false,
        }]);
        let body = self.block(depth - 1);
        let body = match self.rng.random_range(0..4) {
            0 => {
                let cond = self.expression(1, &Bans::default()).text;
                format!("{{ {body} if ({cond}) break; }}")
            }
            1 => {
                let cond = self.expression(1, &Bans::default()).text;
                format!("{{ if ({cond}) continue; {body} }}")
            }
            _ => body,
        };
        self.scopes.pop();
        match self.rng.random_range(0..4) {
            0 => format!("{{ {} {name} = 0; while ({name}++ < {n}) {body} }}", ty.0),
            1 => format!(
                "{{ {} {name} = 0; do {body} while (++{name} < {n}); }}",
                ty.0
            ),
            2 => format!("for ({} {name} = {n}; {name}; {name}--) {body}", ty.0),
            _ => format!("for ({} {name} = 0; {name} < {n}; ++{name}) {body}", ty.0),
        }
    }

    fn switch(&mut self, depth: u32) -> String {
        let value = self.expression(2, &Bans::default()).text;
        let value = if self.chance(50) {
            format!("({value}) & 3")
        } else {
            value
        };
        if self.has_scoped() && self.chance(40) {
            let (then, other) = (self.block(depth - 1), self.block(depth - 1));
            return format!(
                "switch ((K)({value})) {{ case K::A: {then} break; case K::C: default: {other} }}"
            );
        }
        let mut body = String::new();
        let mut labels = vec!["0", "1", "2", "3", "-1", "255", "default"];
        for _ in 0..self.rng.random_range(1..=4) {
            let at = self.rng.random_range(0..labels.len());
            let label = labels.remove(at);
            let label = if label == "default" {
                "default:".into()
            } else {
                format!("case {label}:")
            };
            let inner = self.block(depth - 1);
            let end = if self.chance(50) { " break;" } else { "" };
            let _ = write!(body, "{label} {inner}{end} ");
        }
        format!("switch ({value}) {{ {body}}}")
    }

    /// A variable that may change.
    fn target(&mut self, bans: &Bans) -> Option<Variable> {
        let all: Vec<Variable> = self
            .visible()
            .into_iter()
            .filter(|v| v.free && !bans.write.contains(&v.name))
            .collect();
        all.choose(&mut self.rng).cloned()
    }

    /// An assignment to a variable.
    fn assignment(&mut self, depth: u32, bans: &Bans) -> Made {
        let Some(variable) = self.target(bans) else {
            return self.expression(0, bans);
        };
        let name = variable.name.clone();
        let op = self.operator();
        let mut inner = bans.clone();
        // The value may depend on the variable, but in C it must not change it.
        if self.language != Language::Cpp || op != "=" {
            inner.write.insert(name.clone());
        }
        let value = self.value_for(&op, depth, &inner);
        let mut all = Made {
            text: format!("{name} {op} {}", value.text),
            ..value
        };
        if op != "=" {
            all.reads.insert(name.clone());
        }
        all.writes.insert(name);
        all.varies = true;
        all
    }

    /// An expression of at most `depth` levels; it can be an operand.
    fn expression(&mut self, depth: u32, bans: &Bans) -> Made {
        if depth == 0 {
            return self.leaf(bans);
        }
        let d = depth - 1;
        match self.rng.random_range(0..100) {
            0..15 => self.leaf(bans),
            15..50 => {
                let ops = [
                    "+", "-", "*", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=", "/", "%", "<<",
                    ">>",
                ];
                let op = self.any(&ops);
                let a = self.expression(d, bans);
                // In C++17 the left operand of a shift comes first: the right one may change the
                // variables that it read.
                let mut beside = bans.beside(&a);
                if self.language == Language::Cpp && matches!(op, "<<" | ">>") {
                    beside = bans.clone();
                }
                let b = self.expression(d, &beside);
                // An overflow of constants is refused.
                let op = match op {
                    "+" | "-" | "*" if !a.varies && !b.varies => "^",
                    op => op,
                };
                let right = match op {
                    "/" | "%" => format!("(({} & 15) + 1)", b.text),
                    "<<" | ">>" if self.language != Language::OpenCl => format!("({} & 7)", b.text),
                    _ => b.text.clone(),
                };
                joined(format!("({} {op} {right})", a.text), &[&a, &b])
            }
            50..60 => {
                let a = self.expression(d, bans);
                let op = self.any(&["-", "~", "!", "+"]);
                // GCC turns `-(a / b)` into `a / -b`, which traps if `a` is the least number and
                // `b` is 1, with or without `-fwrapv`.
                let op = if op == "-" && (!a.varies || a.text.contains('/')) {
                    "~"
                } else {
                    op
                };
                joined(format!("({op}{})", a.text), &[&a])
            }
            60..74 => {
                let (a, ty) = (self.expression(d, bans), self.any(&TYPES));
                match self.rng.random_range(0..3) {
                    0 if self.language == Language::Cpp => {
                        joined(format!("static_cast<{}>({})", ty.0, a.text), &[&a])
                    }
                    _ => joined(format!("(({}){})", ty.0, a.text), &[&a]),
                }
            }
            74..80 => {
                let c = self.expression(d, bans);
                let (a, b) = (self.expression(d, bans), self.expression(d, bans));
                joined(
                    format!("({} ? {} : {})", c.text, a.text, b.text),
                    &[&c, &a, &b],
                )
            }
            80..87 => {
                let (a, b) = (self.expression(d, bans), self.expression(d, bans));
                let op = self.any(&["&&", "||"]);
                joined(format!("({} {op} {})", a.text, b.text), &[&a, &b])
            }
            87..90 => {
                let (a, b) = (self.assignment(d, bans), self.expression(d, bans));
                joined(format!("({}, {})", a.text, b.text), &[&a, &b])
            }
            90..93 => {
                let a = self.assignment(d, bans);
                joined(format!("({})", a.text), &[&a])
            }
            93..97 if !self.functions.is_empty() => self.call(d, bans),
            93..95 => {
                let a = self.expression(d, bans);
                match self.rng.random_range(0..4) {
                    // The least number has no absolute value.
                    0 => joined(format!("abs((int)({} | 1))", a.text), &[&a]),
                    _ if self.language == Language::OpenCl => {
                        joined(format!("popcount((unsigned)({}))", a.text), &[&a])
                    }
                    1 => joined(format!("__builtin_ffsll({})", a.text), &[&a]),
                    2 => joined(format!("__builtin_popcountll({})", a.text), &[&a]),
                    _ => joined(format!("__builtin_popcount({})", a.text), &[&a]),
                }
            }
            97..99 => match self.target(bans) {
                Some(v) if v.ty.2 > 1 || self.language != Language::Cpp => {
                    let sign = self.any(&["++", "--"]);
                    let text = match self.chance(50) {
                        true => format!("({}{sign})", v.name),
                        false => format!("({sign}{})", v.name),
                    };
                    Made {
                        text,
                        varies: true,
                        reads: [v.name.clone()].into(),
                        writes: [v.name].into(),
                    }
                }
                _ => self.leaf(bans),
            },
            _ if self.chance(60) => {
                // It is not evaluated: its reads and changes have no effect.
                let of = self.expression(2, bans).text;
                joined(format!("(sizeof({of}) + 0)"), &[])
            }
            _ => {
                let mut all: Vec<&str> = TYPES.iter().map(|ty| ty.0).collect();
                if !self.parts.is_empty() {
                    all.extend(["struct S", "so.b", "sa", "mm[1]", "mm"]);
                }
                joined(format!("sizeof({})", self.any(&all)), &[])
            }
        }
    }

    /// Whether there is a scoped enumeration.
    fn has_scoped(&self) -> bool {
        self.types.iter().any(|t| t.starts_with("enum class"))
    }

    fn leaf(&mut self, bans: &Bans) -> Made {
        if self.has_scoped() && self.chance(5) {
            let all = [
                "static_cast<int>(K::B)",
                "((unsigned)K::C)",
                "(K::A < K::C)",
                "(K::B == K::C)",
            ];
            return joined(self.any(&all).into(), &[]);
        }
        if !self.parts.is_empty() && self.chance(15) {
            return self.part(true, bans);
        }
        if !self.tables.is_empty() && self.chance(8) {
            let (table, at) = (self.any(&self.tables.clone()), self.rng.random_range(0..4));
            return Made {
                text: format!("{table}[{at}]"),
                varies: true,
                ..Made::default()
            };
        }
        if self.chance(30) {
            let text = self.any(EDGES);
            let text = if text.starts_with('-') {
                format!("({text})")
            } else {
                text.to_string()
            };
            return joined(text, &[]);
        }
        if !self.enumerators.is_empty() && self.chance(10) {
            let text = self.any(&self.enumerators.clone());
            return joined(text, &[]);
        }
        if !self.memory.is_empty() && self.chance(40) {
            let (_, name, init) = self.any(&self.memory.clone());
            let text = match (init.len(), self.language) {
                (1, Language::C | Language::OpenCl) => format!("(*{name})"),
                (1, Language::Cpp) => name,
                (n, _) => format!("{name}[{}]", self.rng.random_range(0..n)),
            };
            return Made {
                text,
                varies: true,
                ..Made::default()
            };
        }
        let all: Vec<Variable> = self
            .visible()
            .into_iter()
            .filter(|v| !bans.read.contains(&v.name))
            .collect();
        match all.choose(&mut self.rng) {
            Some(v) => Made {
                text: v.name.clone(),
                varies: true,
                reads: [v.name.clone()].into(),
                ..Made::default()
            },
            None => joined("1".into(), &[]),
        }
    }
}

/// A text with the reads and writes of all its parts.
fn joined(text: String, parts: &[&Made]) -> Made {
    let mut all = Made {
        text,
        ..Made::default()
    };
    for part in parts {
        all.varies |= part.varies;
        all.reads.extend(part.reads.iter().cloned());
        all.writes.extend(part.writes.iter().cloned());
    }
    all
}
