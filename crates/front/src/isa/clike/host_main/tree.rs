//! Defines the syntax trees of host code: `main` of a source file and the functions that it calls.
//!
//! Host code has constructs that no kernel has, such as launches, strings and `new`. It needs no
//! types for its meaning but those of memory, so trees keep operators as they are written.
//!
//! # Invariants
//! - Offsets in structures are those of the device: each member is aligned to its size.
//! - A structure with anything but numbers has no cells, and is never memory.
//!
//! # Sources
//! - Itanium C++ ABI, *Non-POD Class Types*: offsets of members.

use std::ops::Range;
use std::rc::Rc;

use program::Ty;

/// An expression with its place in the text.
#[derive(Clone, Debug)]
pub(super) struct HostExpr {
    pub(super) kind: HostExprKind,
    pub(super) range: Range<usize>,
}

/// The form of an expression.
#[derive(Clone, Debug)]
pub(super) enum HostExprKind {
    Int(i64, Ty),
    /// A number of floating point.
    Float(f64),
    Str(String),
    Name(String),
    /// `-a`, `!a`, `~a`, `*a`, `&a`
    Unary(&'static str, Box<HostExpr>),
    Binary(&'static str, Box<HostExpr>, Box<HostExpr>),
    Choice(Box<HostExpr>, Box<HostExpr>, Box<HostExpr>),
    Comma(Box<HostExpr>, Box<HostExpr>),
    /// `a = b`, or `a op= b` with the operator.
    Assign(Option<&'static str>, Box<HostExpr>, Box<HostExpr>),
    /// `++a`, `a--`: whether it adds, and whether the operator is a prefix.
    Step(Box<HostExpr>, bool, bool),
    Call(Box<HostExpr>, Vec<HostExpr>),
    /// `kernel<<<grid, block, bytes, stream>>>(arguments)`
    Launch(Box<HostLaunch>),
    Index(Box<HostExpr>, Box<HostExpr>),
    /// `a.b` and `a->b`
    Member(Box<HostExpr>, String),
    Cast(HostType, Box<HostExpr>),
    SizeOfType(HostType),
    SizeOf(Box<HostExpr>),
    /// `new T`, `new T[n]`, and the values of the constructor.
    New(HostType, Option<Box<HostExpr>>, Vec<HostExpr>),
    /// `new (p) T(value)`
    Place(Box<HostExpr>, HostType, Vec<HostExpr>),
    /// `delete p`, `delete[] p`
    Delete(Box<HostExpr>),
    /// `dim3(2, 2)`, `std::vector<int>(n)`, `int(x)`
    Construct(HostType, Vec<HostExpr>),
    /// `{1, 2}`
    Braces(Vec<HostExpr>),
    /// The name of a function with the arguments of its template.
    Instance(String, Rc<[TemplateArgument]>),
    /// `member(values)` of a constructor.
    Initialize(String, Vec<HostExpr>),
    /// A lambda, and whether it captures values.
    Lambda(Rc<HostFunction>, bool),
}

/// A launch of a kernel.
#[derive(Clone, Debug)]
pub(super) struct HostLaunch {
    pub(super) kernel: Range<usize>,
    /// The arguments of its template.
    pub(super) instance: Option<Range<usize>>,
    /// The operands between the triple brackets.
    pub(super) configuration: Vec<HostExpr>,
    pub(super) arguments: Vec<HostExpr>,
}

/// A type as host code writes it.
#[derive(Clone, Debug)]
pub(super) struct HostType {
    pub(super) base: HostBase,
    /// The number of `*`.
    pub(super) pointers: usize,
    pub(super) reference: bool,
    pub(super) constant: bool,
}

impl HostType {
    /// A type without `*` and `&`.
    pub(super) fn plain(base: HostBase) -> HostType {
        HostType {
            base,
            pointers: 0,
            reference: false,
            constant: false,
        }
    }
}

/// The type without its `*` and `&`.
#[derive(Clone, Debug)]
pub(super) enum HostBase {
    Void,
    Bool,
    Int(Ty),
    /// A number of floating point, by its bits.
    Float(u8),
    Auto,
    Stream,
    Event,
    Dim3,
    /// `cuda::atomic<int, cuda::thread_scope_system>`, and whether it is a reference to a number:
    /// the type of its value, and its name as kernels have it.
    Atomic(Ty, bool, Rc<str>),
    /// A structure of the file or of the runtime.
    Record(Rc<HostRecord>),
    /// `std::vector<T>`, `std::array<T, n>`
    Vector(Box<HostType>, Option<Box<HostExpr>>),
    /// `std::thread`; `std::jthread`, which joins at its end.
    Thread(bool),
    /// A class template of the file.
    Template,
    /// A class template with its arguments.
    Instance(String, Rc<[TemplateArgument]>),
    /// Any other type.
    Other(String),
}

/// A parameter of a template.
#[derive(Clone, Debug)]
pub(super) struct TemplateParameter {
    pub(super) name: String,
    pub(super) is_type: bool,
}

/// An argument of a template.
#[derive(Clone, Debug)]
pub(super) enum TemplateArgument {
    Type(HostType),
    Value(HostExpr),
}

/// Whether a type is the class of the library, with template arguments or without.
pub(super) fn is_stop_class(class: &str, name: &str) -> bool {
    let plain = class.split('<').next().unwrap_or(class);
    plain.rsplit("::").next() == Some(name)
}

/// Whether objects of a type have or use a stop state.
pub(super) fn names_stops(of: &HostType) -> bool {
    of.pointers == 0
        && matches!(&of.base, HostBase::Other(class)
            if is_stop_class(class, "stop_source") || is_stop_class(class, "stop_callback"))
}

/// A function of a class, which is parsed where it is called.
#[derive(Debug)]
pub(super) struct HostMethod {
    /// The name of the class for a constructor, `~` for the destructor, `operator` for a
    /// conversion.
    pub(super) name: String,
    /// From its parameters to the end of its body.
    pub(super) range: Range<usize>,
}

/// A declared name.
#[derive(Clone, Debug)]
pub(super) struct HostDeclared {
    pub(super) name: String,
    pub(super) range: Range<usize>,
    pub(super) of: HostType,
    /// The sizes of an array; `None`: the initialiser decides.
    pub(super) arrays: Vec<Option<HostExpr>>,
    pub(super) value: Option<HostExpr>,
}

/// A function or a lambda.
#[derive(Clone, Debug)]
pub(super) struct HostFunction {
    pub(super) name: String,
    pub(super) params: Vec<HostDeclared>,
    pub(super) body: Vec<HostStmt>,
    pub(super) range: Range<usize>,
}

/// A statement with its place in the text.
#[derive(Clone, Debug)]
pub(super) struct HostStmt {
    pub(super) kind: HostStmtKind,
    pub(super) range: Range<usize>,
}

/// The form of a statement.
#[derive(Clone, Debug)]
pub(super) enum HostStmtKind {
    Empty,
    Declare(Vec<HostDeclared>),
    Expr(HostExpr),
    If(HostExpr, Box<HostStmt>, Option<Box<HostStmt>>),
    /// Any loop: `for (init; cond; step) body`; a `do` loop tests after the body.
    Loop {
        init: Option<Box<HostStmt>>,
        cond: Option<HostExpr>,
        step: Option<HostExpr>,
        body: Box<HostStmt>,
        test_last: bool,
    },
    /// `for (auto &s : streams) body`
    Elements(HostDeclared, HostExpr, Box<HostStmt>),
    Switch(HostExpr, Vec<HostStmt>),
    /// `case n:`; `default:` has no value.
    Case(Option<HostExpr>),
    Block(Vec<HostStmt>),
    /// `try { … } catch (T e) { … }`: the handlers in order, each with the name `e`.
    Try(Vec<HostStmt>, Vec<(String, Vec<HostStmt>)>),
    Throw,
    /// `name:`
    Label(String),
    Goto(String),
    Break,
    Continue,
    Return(Option<HostExpr>),
}

/// A loop without its first statement.
pub(super) struct HostLoop<'a> {
    pub(super) cond: Option<&'a HostExpr>,
    pub(super) step: Option<&'a HostExpr>,
    pub(super) body: &'a HostStmt,
    pub(super) test_last: bool,
}

/// The type of numbers in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ElementType {
    pub(super) ty: Ty,
    /// Whether it is a number of floating point.
    pub(super) floating: bool,
    /// Whether the code says it: `void` does not.
    pub(super) said: bool,
    /// The distance to the next one in bytes.
    pub(super) stride: u32,
}

impl ElementType {
    pub(super) fn bytes(self) -> i64 {
        i64::from(self.stride)
    }

    /// A number of a type.
    pub(super) fn number(ty: Ty, floating: bool) -> ElementType {
        ElementType {
            ty,
            floating,
            said: true,
            stride: u32::from(ty.bits / 8).max(1),
        }
    }

    /// A structure.
    pub(super) fn record(record: &HostRecord) -> ElementType {
        let byte = Ty {
            bits: 8,
            signed: false,
        };
        ElementType {
            stride: u32::try_from(record.size).unwrap_or(1).max(1),
            ..ElementType::number(byte, false)
        }
    }
}

/// A byte of unsaid type.
pub(super) const BYTE: ElementType = ElementType {
    ty: Ty {
        bits: 8,
        signed: false,
    },
    floating: false,
    said: false,
    stride: 1,
};

/// The type of numbers that a type is made of.
pub(super) fn element_of(base: &HostBase) -> ElementType {
    match base {
        HostBase::Int(ty) | HostBase::Atomic(ty, false, _) => ElementType::number(*ty, false),
        HostBase::Float(bits) => ElementType::number(
            Ty {
                bits: *bits,
                signed: false,
            },
            true,
        ),
        HostBase::Record(record) => ElementType::record(record),
        HostBase::Bool => ElementType { said: true, ..BYTE },
        _ => BYTE,
    }
}

/// A structure: its members in order.
#[derive(Debug)]
pub(super) struct HostRecord {
    pub(super) name: String,
    pub(super) members: Vec<RecordMember>,
    /// The numbers that it consists of; empty: it is not memory.
    pub(super) cells: Vec<RecordCell>,
    /// In bytes.
    pub(super) size: i64,
    /// The functions of a class.
    pub(super) methods: Vec<HostMethod>,
    /// The types that the arguments of its template are.
    pub(super) types: Vec<(String, HostType)>,
    /// The numbers that the arguments of its template are.
    pub(super) constants: Vec<(String, i64)>,
}

/// A member of a structure.
#[derive(Debug)]
pub(super) struct RecordMember {
    pub(super) declared: HostDeclared,
    /// The number of its elements, if it is an array.
    pub(super) length: Option<i64>,
    pub(super) offset: i64,
}

/// A number in a structure.
#[derive(Debug)]
pub(super) struct RecordCell {
    /// `.key`, `.a[1]`
    pub(super) path: String,
    pub(super) offset: i64,
    pub(super) element: ElementType,
}

impl HostRecord {
    /// The structure with these members; `None`: a member is of an unknown size.
    pub(super) fn new(name: String, declared: Vec<HostDeclared>) -> Option<HostRecord> {
        let mut record = HostRecord {
            name,
            members: Vec::new(),
            cells: Vec::new(),
            size: 0,
            methods: Vec::new(),
            types: Vec::new(),
            constants: Vec::new(),
        };
        let (mut aligned, mut plain) = (1, true);
        for declared in declared {
            let length = match declared.arrays.as_slice() {
                [] => None,
                [Some(size)] => match size.kind {
                    HostExprKind::Int(length, _) => Some(length),
                    _ => return None,
                },
                _ => return None,
            };
            let (bytes, align) = sizes(&declared.of);
            record.size = next_multiple(record.size, align);
            aligned = aligned.max(align);
            let offset = record.size;
            plain &= record.add_cells(&declared, length, offset);
            record.size += bytes * length.unwrap_or(1);
            record.members.push(RecordMember {
                declared,
                length,
                offset,
            });
        }
        record.size = next_multiple(record.size, aligned);
        if !plain {
            record.cells.clear();
        }
        Some(record)
    }

    /// The same with the functions of a class.
    pub(super) fn with_methods(self, methods: Vec<HostMethod>) -> HostRecord {
        HostRecord { methods, ..self }
    }

    /// Adds the numbers of a member; whether it has nothing else.
    fn add_cells(&mut self, declared: &HostDeclared, length: Option<i64>, offset: i64) -> bool {
        let (bytes, _) = sizes(&declared.of);
        for i in 0..length.unwrap_or(1) {
            let name = match length {
                Some(_) => format!(".{}[{i}]", declared.name),
                None => format!(".{}", declared.name),
            };
            let start = offset + i * bytes;
            match &declared.of.base {
                HostBase::Record(inner) if declared.of.pointers == 0 => {
                    if inner.cells.is_empty() {
                        return false;
                    }
                    self.cells.extend(inner.cells.iter().map(|cell| RecordCell {
                        path: format!("{name}{}", cell.path),
                        offset: start + cell.offset,
                        element: cell.element,
                    }));
                }
                _ if declared.of.is_number() => self.cells.push(RecordCell {
                    path: name,
                    offset: start,
                    element: element_of(&declared.of.base),
                }),
                _ => return false,
            }
        }
        true
    }

    /// The largest alignment of a member. Vectors of two and four numbers are aligned to their
    /// size, up to 16 bytes (CUDA C++ Programming Guide, Built-in Vector Types).
    fn alignment(&self) -> i64 {
        let members = &self.members;
        let is_vector = !members.is_empty()
            && members
                .iter()
                .zip(["x", "y", "z", "w"])
                .all(|(m, name)| m.declared.name == name)
            && self.name.ends_with(['2', '4']);
        let inner = members.iter().map(|m| sizes(&m.declared.of).1);
        match is_vector {
            true => self.size.min(16),
            false => inner.max().unwrap_or(1),
        }
    }

    /// The structure that begins at an offset inside of it and has that size.
    pub(super) fn record_at(of: &Rc<HostRecord>, inside: i64, size: i64) -> Option<Rc<HostRecord>> {
        if inside == 0 && size == of.size {
            return Some(of.clone());
        }
        of.members.iter().find_map(|member| {
            let HostBase::Record(inner) = &member.declared.of.base else {
                return None;
            };
            let from = inside - member.offset;
            let is_in = member.declared.of.pointers == 0
                && (0..inner.size * member.length.unwrap_or(1)).contains(&from);
            match is_in {
                true => HostRecord::record_at(inner, from % inner.size, size),
                false => None,
            }
        })
    }

    /// The number of a member.
    pub(super) fn member(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|m| m.declared.name == name)
    }
}

/// The size of a type and its alignment.
fn sizes(of: &HostType) -> (i64, i64) {
    match &of.base {
        _ if of.pointers > 0 => (8, 8),
        HostBase::Record(record) => (record.size, record.alignment()),
        HostBase::Dim3 => (12, 4),
        HostBase::Int(_) | HostBase::Bool | HostBase::Float(_) | HostBase::Atomic(..) => {
            let bytes = element_of(&of.base).bytes();
            (bytes, bytes)
        }
        _ => (8, 8),
    }
}

fn next_multiple(n: i64, of: i64) -> i64 {
    (n + of - 1) / of * of
}
