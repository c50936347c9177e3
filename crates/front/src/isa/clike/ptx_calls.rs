//! Calls of functions of CUDA C++ that are instructions of PTX, by the table of [`super::ptx_forms`].
//!
//! # Invariants
//! - What an instruction means is said by the rows of PTX alone, as of any assembly ([`super::inline_asm`]): a mapping to PTX leaves it as
//!   it is, and a model of C++ has no words for it.
//! - Pointers are generic addresses, which the library converts to the state space that a function is for: where it is known what a pointer
//!   is to, another space is refused.
//! - What a copy moves are elements of the type that its pointers point to.
//!
//! # Where we differ
//! - Forms for objects and memory of another block of the cluster are refused: C++ has no name here for what lies there.

use std::ops::Range;
use std::rc::Rc;

use super::ast::{Expr as Tree, ExprKind};
use super::inline_asm::{Given, How};
use super::lower::Lowering;
use super::ptx_forms::{Arg, FORMS, Form, Gives, OF_PIPELINES, forms, is_instruction, plain};
use super::types::{Enumeration, Qualified, Type, Value};
use program::{BinOp, Class, Expr, Init, Op, RegId, Scope, Space, Ty};

/// The type of such a pipeline.
const PIPELINE: &str = "cuda::pipeline<cuda::thread_scope_thread>";

use Arg::{Barrier, Number, Object, One, Pieces, Pipe, Tag, Time, To, Value as Bits, Wide};
use Gives::{Nothing, Token, Truth};

impl Lowering<'_, '_> {
    /// A call of a function that is an instruction of PTX, or of one that has to do with them.
    pub(super) fn ptx_call(&mut self, tree: &Tree, name: &Range<usize>, args: &[Tree]) -> Option<Value> {
        if !self.env.language.cpp {
            return None;
        }
        let word = self.str(name);
        if plain(word) == "device::barrier_native_handle" {
            let object = match args {
                [object] => self.mbarrier_of(object),
                _ => {
                    self.error("wrong-operands", &tree.range, "this takes a barrier", |d| d.label("expected one"));
                    None
                }
            };
            let pointer = Qualified::from(Type::Int(Ty::U64)).pointer();
            return Some(Value::new(object.unwrap_or(Expr::Const(0)), pointer));
        }
        match (plain(word), args) {
            ("aligned_size_t", [_, bytes]) => return Some(self.eval(bytes)),
            ("make_pipeline", []) => {
                let (name, ty) = (PIPELINE.to_owned(), Ty::S32);
                let of = Enumeration { name, ty, promoted: ty, scoped: true };
                return Some(Value::new(Expr::Const(0), Type::Enum(Rc::new(of))));
            }
            ("make_pipeline", _) => {
                let message = "a pipeline of several threads is not supported";
                self.error("unsupported-function", &tree.range, message, |d| {
                    d.label("expected `cuda::make_pipeline()`").help(
                        "use barriers of the library for the stages, and `cuda::memcpy_async` or `cuda::device::memcpy_async_tx`",
                    )
                });
                return Some(self.nothing());
            }
            _ => {}
        }
        let known = is_instruction(word);
        if known && self.env.host.as_ref().is_some_and(|host| !host.of_kernel) {
            self.error("unsupported-function", name, format!("`{word}` is a function of the device"), |d| {
                d.label("expected it in a kernel")
            });
            return Some(self.nothing());
        }
        if !known && !plain(word).starts_with("ptx::") {
            return None;
        }
        let Some(form) = forms(word).find(|form| self.fits(form, args)) else {
            self.no_form(tree, name, known);
            return Some(self.nothing());
        };
        Some(self.instruction(form, tree, args).unwrap_or_else(|| self.nothing()))
    }

    /// A call of a function of a pipeline.
    pub(super) fn pipeline_method(
        &mut self,
        tree: &Tree,
        object: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Option<Value> {
        if !self.is_pipeline(object) {
            return None;
        }
        let word = self.str(name);
        let Some(form) = OF_PIPELINES.iter().find(|form| form.name == word && args.is_empty()) else {
            let message = format!("`{word}` of a pipeline is not supported");
            self.error("unknown-function", name, message, |d| {
                let names: Vec<&str> = OF_PIPELINES.iter().map(|form| form.name).collect();
                d.label(format!("expected one of `{}`, without arguments", names.join("`, `")))
            });
            return Some(self.nothing());
        };
        Some(self.instruction(form, tree, args).unwrap_or_else(|| self.nothing()))
    }

    /// Whether an expression names a pipeline.
    fn is_pipeline(&self, tree: &Tree) -> bool {
        self.type_of_place(tree).is_some_and(|of| matches!(&of.ty, Type::Enum(of) if of.name == PIPELINE))
    }

    fn pipeline(&mut self, tree: &Tree) -> Option<()> {
        if self.is_pipeline(tree) {
            return Some(());
        }
        self.error("wrong-operand", &tree.range, "this is no pipeline", |d| {
            d.label("expected one, as in `auto pipe = cuda::make_pipeline();`")
        });
        None
    }

    /// How a number of bytes is aligned: as it says, or as elements are.
    fn alignment(&self, tree: &Tree, element: Option<Ty>) -> i64 {
        match &tree.kind {
            ExprKind::Call(name, args) if plain(self.str(name)) == "aligned_size_t" && args.len() == 2 => {
                match args[0].kind {
                    ExprKind::Int(n, _) => n,
                    _ => 0,
                }
            }
            _ => element.map_or(0, |ty| i64::from(ty.bytes())),
        }
    }

    /// Whether arguments are those of a form, as far as that tells it from others.
    fn fits(&mut self, form: &Form, args: &[Tree]) -> bool {
        form.args.len() == args.len()
            && form.args.iter().zip(args).all(|(arg, tree)| match arg {
                Tag(words) => words.contains(&last(self.str(&tree.range))),
                One => self.str(&tree.range) == "1",
                Wide => self.alignment(tree, None) >= 16,
                Pipe => self.is_pipeline(tree),
                Barrier => !self.is_pipeline(tree),
                _ => true,
            })
    }

    fn no_form(&mut self, tree: &Tree, name: &Range<usize>, known: bool) {
        let word = self.str(name);
        if !known {
            let message = format!("the instruction `{word}` is not supported in CUDA C++");
            let names: Vec<&str> = FORMS.iter().map(|form| form.name).collect();
            self.error("unsupported-function", name, message, |d| {
                d.label("expected another function of `cuda::ptx`")
                    .did_you_mean(plain(word), names)
                    .help("write the test in PTX: `dialect = \"ptx\"`")
            });
            return;
        }
        let all: Vec<String> = forms(word)
            .map(|form| {
                let args: Vec<String> = form.args.iter().map(|arg| arg.text()).collect();
                format!("`{}({})`", form.name, args.join(", "))
            })
            .collect();
        self.error("wrong-operands", &tree.range, format!("this form of `{word}` is not supported"), |d| {
            d.label(format!("expected {}", all.join(" or ")))
                .note("other forms of the library are for groups of threads, or for what lies in another block")
        });
    }

    fn instruction(&mut self, form: &Form, tree: &Tree, args: &[Tree]) -> Option<Value> {
        let (mut given, mut words, mut element, mut pieces) = (Vec::new(), Vec::new(), None, None);
        let result = match form.gives {
            Nothing => None,
            Token => Some(Ty::U64),
            Truth => Some(Ty::U32),
        };
        let result = result.map(|ty| {
            let reg = self.temporary(ty);
            let one = Given::unknown(reg, 0, ty);
            words.push(one.word());
            given.push(one);
            reg
        });
        for (number, (arg, tree)) in form.args.iter().zip(args).enumerate() {
            let (value, ty) = match arg {
                Tag(_) => {
                    let word = last(self.str(&tree.range));
                    let qualifier = word.split_once('_').map_or(word, |w| w.1);
                    words.push(match word {
                        "space_shared" => ".shared::cta".to_owned(),
                        "space_cluster" => ".shared::cluster".to_owned(),
                        _ => format!(".{qualifier}"),
                    });
                    continue;
                }
                Time | One => {
                    words.push("1".to_owned());
                    continue;
                }
                Object => (self.word_of(tree)?, Ty::U64),
                Barrier => (self.mbarrier_of(tree)?, Ty::U64),
                To(space) => {
                    let (addr, ty) = self.elements_of(tree, *space)?;
                    if element.get_or_insert(ty).bits != ty.bits {
                        let message = "a copy between elements of different sizes";
                        self.error("mixed-size", &tree.range, message, |d| {
                            d.label("expected pointers to elements of one size")
                        });
                        return None;
                    }
                    (addr, Ty::U64)
                }
                Bits(bits) => {
                    let ty = Ty { bits: *bits, signed: false };
                    (self.scalar(tree).fit(ty), ty)
                }
                Pipe => {
                    self.pipeline(tree)?;
                    words.push(String::new());
                    continue;
                }
                Number | Pieces | Wide => {
                    let Some(n) = self.eval(tree).constant() else {
                        self.error("wrong-operand", &tree.range, "this has to be a constant", |d| {
                            d.label("expected a constant")
                                .note("how many accesses a copy makes is known before a program runs")
                        });
                        return None;
                    };
                    if matches!(arg, Pieces) {
                        pieces = Some((n, self.alignment(tree, element)));
                    }
                    words.push(n.to_string());
                    continue;
                }
            };
            let one = self.passed(value, number + 1, ty);
            words.push(one.word());
            given.push(one);
        }
        if result.is_none() {
            words.insert(0, "_".to_owned());
        }
        let mut texts = Vec::new();
        if let Some((bytes, alignment)) = pieces {
            let size = alignment.min(16);
            if bytes <= 0 || !matches!(size, 4 | 8 | 16) || bytes % size != 0 {
                let message =
                    format!("{bytes} bytes that are aligned at {alignment} are no asynchronous copy here");
                self.error("unsupported", &tree.range, message, |d| {
                    d.label("expected a multiple of an alignment of 4, 8 or 16 bytes")
                        .note("the library copies others with loads and stores (cuda/__memcpy_async)")
                });
                return None;
            }
            texts.extend((0..bytes / size).map(|k| {
                let (to, from, at) = (&words[1], &words[2], k * size);
                format!(
                    "{{ .reg .b64 to, from; add.u64 to, {to}, {at}; add.u64 from, {from}, {at}; \
                     cp.async.ca.shared.global [to], [from], {size}, {size}; }} "
                )
            }));
        }
        let text = text_of(form, &words, element);
        match form.gives {
            Truth => texts.push(text),
            _ => texts.extend(text.split_inclusive(';').map(str::to_owned)),
        }
        let mut mapped = self.declared_operands(&given, &tree.range);
        // Each instruction is a place of its own: that tells it from the next one.
        let ends = self.str(&tree.range).char_indices().map(|(at, c)| tree.range.start + at + c.len_utf8());
        let ends: Vec<usize> = ends.collect();
        for (text, end) in texts.iter().zip(ends.iter().rev()) {
            mapped.push_opaque(text, self.unit.text.span(tree.range.start..*end));
        }
        if texts.len() > ends.len() {
            let message = format!("a copy in {} pieces is not supported", texts.len() - 1);
            self.error("unsupported", &tree.range, message, |d| {
                d.label("expected fewer")
                    .help("copy with several calls, or give a wider alignment: `cuda::aligned_size_t<16>`")
            });
            return None;
        }
        self.lower_ptx(mapped, given, &tree.range, &How::Library(element))?;
        Some(match (form.gives, result) {
            (Truth, Some(reg)) => Value::new(
                Expr::Bin(BinOp::And, Ty::U32, Expr::Reg(reg).into(), Expr::Const(1).into()),
                Type::Bool,
            ),
            (_, Some(reg)) => Value::of(Expr::Reg(reg), Ty::U64),
            _ => self.nothing(),
        })
    }

    /// The barrier of the library that an expression names, as the address of an mbarrier object.
    fn mbarrier_of(&mut self, tree: &Tree) -> Option<Expr> {
        match self.is_object(tree).then(|| self.atomic_object(tree)).flatten() {
            Some((Class::Barrier(Scope::Cta), atomic)) => {
                self.in_space(&atomic.addr, Space::Shared, &tree.range)?;
                Some(atomic.addr)
            }
            _ => {
                self.error("wrong-operand", &tree.range, "this is no barrier of block scope", |d| {
                    d.label("expected a `cuda::barrier<cuda::thread_scope_block>` in shared memory")
                });
                None
            }
        }
    }

    /// The address of a word that holds an mbarrier object.
    fn word_of(&mut self, tree: &Tree) -> Option<Expr> {
        let value = self.scalar(tree);
        match value.target().and_then(|to| to.word()) {
            Some(ty) if ty.bits == 64 => {}
            _ => {
                self.error("wrong-operand", &tree.range, "this is no address of a 64-bit word", |d| {
                    d.label("expected one, of a `uint64_t` in shared memory")
                });
                return None;
            }
        }
        self.in_space(&value.expr, Space::Shared, &tree.range)?;
        Some(value.expr)
    }

    /// The address of elements in memory of a space, and their type.
    fn elements_of(&mut self, tree: &Tree, space: Space) -> Option<(Expr, Ty)> {
        let value = self.scalar(tree);
        let Some(ty) = value.target().and_then(|to| to.word()) else {
            self.error("wrong-operand", &tree.range, "this is no pointer to integers", |d| {
                d.label("expected a pointer to what is copied")
            });
            return None;
        };
        let addr = self.counted_from_the_start(value.expr, &tree.range);
        if addr.base().is_none() {
            self.untold(&tree.range);
            return None;
        }
        self.in_space(&addr, space, &tree.range)?;
        Some((addr, ty))
    }

    fn untold(&mut self, range: &Range<usize>) {
        self.error("unsupported-address", range, "what this points to cannot be told", |d| {
            d.label("expected an array of the test or the kernel, or a parameter that stays what it is, perhaps with an offset")
        });
    }

    /// A value, with the addresses that parameters have from the start; whether they keep these is seen in the end.
    fn counted_from_the_start(&mut self, mut value: Expr, range: &Range<usize>) -> Expr {
        let mut found = Vec::new();
        value.visit_mut(&mut |e| {
            if let Expr::Reg(r) = *e
                && let Some(address) = self.address_in(r)
            {
                found.push((r, range.clone()));
                *e = address;
            }
        });
        self.kept_addresses.extend(found);
        value
    }

    /// The address that a register has had since it got one, if it got no other value so far.
    fn address_in(&self, reg: RegId) -> Option<Expr> {
        let mut written = self.code.iter().filter(|instr| instr.op.defines() == Some(reg));
        match (written.next().map(|instr| &instr.op), &self.regs[usize::from(reg.0)].init) {
            (None, Init::Address { loc, index }) => {
                let offset = i64::from(*index) * i64::from(self.symbols.ty(*loc).bytes());
                let sum = Expr::Bin(BinOp::Add, Ty::U64, Expr::Address(*loc).into(), Expr::Const(offset).into());
                Some(if offset == 0 { Expr::Address(*loc) } else { sum })
            }
            (Some(Op::Assign { value, .. }), _) if written.next().is_none() => match value {
                Expr::Reg(other) if *other != reg => self.address_in(*other),
                value => {
                    self.init_of(value).filter(|init| matches!(init, Init::Address { .. })).map(|_| value.clone())
                }
            },
            _ => None,
        }
    }

    /// Reports parameters that were taken for what they are at the start, and are written.
    pub(super) fn keep_addresses(&mut self) {
        for (reg, range) in std::mem::take(&mut self.kept_addresses) {
            if self.address_in(reg).is_none() {
                self.untold(&range);
            }
        }
    }

    /// Reports an address that is surely of another space.
    fn in_space(&mut self, addr: &Expr, space: Space, range: &Range<usize>) -> Option<()> {
        let Some(loc) = addr.base().filter(|loc| self.symbols.object(*loc).1.space != space) else {
            return Some(());
        };
        let name = self.symbols.get(loc).name.clone();
        let wanted = if space == Space::Shared { "shared" } else { "global" };
        self.error("wrong-space", range, format!("`{name}` is not in {wanted} memory"), |d| {
            d.label(format!("expected memory that is {wanted}"))
        });
        None
    }

    /// An argument in a register, or as a constant.
    fn passed(&mut self, value: Expr, number: usize, ty: Ty) -> Given {
        if let Expr::Const(n) = value {
            return Given::Constant(n);
        }
        let reg = self.temporary(ty);
        self.push(Op::Assign { dst: reg, value: value.clone() });
        let known = self.init_of(&value);
        Given::Register {
            reg,
            name: format!("$op{number}"),
            ty,
            target: None,
            elsewhere: false,
            place: None,
            known,
        }
    }
}

/// The last part of a name: `cuda::ptx::sem_release` is `sem_release`.
fn last(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// Whether an operation is one on bits, which have no sign.
fn is_bitwise(words: &[String]) -> bool {
    words.iter().any(|w| matches!(w.as_str(), ".and" | ".or" | ".xor"))
}

/// The assembly of a form.
fn text_of(form: &Form, words: &[String], element: Option<Ty>) -> String {
    let mut text = String::new();
    let mut chars = form.text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '%' { chars.next() } else { None }) {
            ('%', Some(digit @ '0'..='9')) => {
                text.push_str(&words[digit as usize - '0' as usize]);
            }
            ('%', Some(kind)) => {
                let ty = element.unwrap_or(Ty::U32);
                let letter = match kind {
                    'b' => 'b',
                    _ if is_bitwise(words) => 'b',
                    _ if ty.signed => 's',
                    _ => 'u',
                };
                text.push_str(&format!("{letter}{}", ty.bits));
            }
            (c, _) => text.push(c),
        }
    }
    if form.gives == Truth {
        text = format!("{{ .reg .pred p; {text} selp.b32 {}, 1, 0, p; }}", words[0]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::clike::Unit;
    use crate::isa::clike::tests::env;
    use crate::isa::{Object, SymbolKind, Symbols};
    use diag::{MappedText, Sink, SourceFile, Span, Style, render};
    use program::{Class, Dialect};

    /// What is wrong with a thread's code over what arguments name here; nothing: it becomes PTX.
    fn wrong(code: &str) -> String {
        let file = SourceFile::new("test", code);
        let mut sink = Sink::new(&file);
        let mut symbols = Symbols::default();
        let shared = Object { space: Space::Shared, ..Object::scalar(0) };
        for (name, ty, elements, class) in [
            ("x", Ty::U32, 4, None),
            ("g", Ty::U32, 4, None),
            ("b", Ty::U64, 1, None),
            ("bar", Ty::WORD, 1, Some(Class::Barrier(Scope::Cta))),
        ] {
            let of = if name == "g" { Object::scalar(0) } else { shared.clone() };
            let object =
                Object { init: vec![Init::Int(0); elements], ty: Some((ty, Span::default())), class, ..of };
            symbols.declare(name, Span::default(), SymbolKind::Object(object), &mut sink);
        }
        let env = env(Dialect::Cuda);
        let unit = Unit::parse(MappedText::verbatim(code, 0), env.language, &mut sink);
        let lowered = unit.lower(&env, &mut symbols, &mut sink);
        if sink.errors() == 0 {
            assert!(
                ["producer_acquire();", "consumer_release();"].iter().any(|nothing| code.ends_with(nothing))
                    || lowered.code.iter().any(|i| i.op.is_ptx() || i.op.barrier().is_some())
            );
        }
        sink.into_diagnostics().iter().map(|d| render(d, Style::Plain)).collect()
    }

    #[test]
    fn every_form_is_assembly_that_the_rows_of_ptx_have() {
        let pipe = "auto pipe = cuda::make_pipeline(); ";
        let calls =
            FORMS.iter().map(|form| ("cuda::", form)).chain(OF_PIPELINES.iter().map(|form| ("pipe.", form)));
        for (before, form) in calls {
            // Each word of each tag, and the first ones of the others.
            for n in 0..8 {
                let arg = |arg: &Arg| match arg {
                    Tag(words) => format!("cuda::ptx::{}", words[n % words.len()]),
                    Object => "&b".into(),
                    Barrier => "bar".into(),
                    To(Space::Shared) => "x".into(),
                    To(_) => "g".into(),
                    Bits(_) | Time => "7".into(),
                    Number | Pieces => "16".into(),
                    Wide => "cuda::aligned_size_t<16>(16)".into(),
                    Pipe => "pipe".into(),
                    One => "1".into(),
                };
                let parity = form.name.ends_with("_parity");
                let args: Vec<String> = form.args.iter().map(arg).collect();
                let args = args.join(", ").replace(", 7", if parity { ", 1" } else { ", 7" });
                let before =
                    if form.name.starts_with("cuda") || form.name.starts_with("__") { "" } else { before };
                let code = match form.name {
                    "pipeline_consumer_wait_prior" => {
                        format!("{pipe}cuda::pipeline_consumer_wait_prior<2>(pipe);")
                    }
                    name => format!("{pipe}{before}{name}({args});"),
                };
                assert_eq!(wrong(&code), "", "{code}");
            }
        }
    }
}
