//! Lowers calls of CUDA C++ functions that are PTX instructions, by the table of
//! [`super::ptx_forms`].
//!
//! # Invariants
//! - Only the rows of PTX define the meaning of an instruction, as for any assembly
//!   ([`super::inline_asm`]). A mapping to PTX does not change it, and a model of C++ has no word
//!   for it.
//! - Pointers are generic addresses; the library converts them to the state space of the function.
//!   If the target of a pointer is known and lies in another space, Fencepost refuses it.
//! - A copy moves elements of the type that its pointers point to.
//!
//! # Where we differ
//! - The full mask of an election, and a group, contain only the threads that exist.

use std::ops::Range;

use super::ast::{Expr as Tree, ExprKind};
use super::inline_asm::{AsmOperand, How};
use super::lower::Lowering;
use super::place::{Place, shifted};
use super::ptx_forms::{Arg, FORMS, Gives, PtxForm, forms, is_instruction, plain};
use super::scope::ThreadGroup;
use super::types::{Qualified, Type, Value};
use program::{BarrierAction, BinOp, Class, Expr, Init, Op, RegId, Scope, Space, Ty};

use Arg::{
    Barrier, Element, Group, Number, Object, One, Pieces, Pipe, Response, Room, Tag, Time, To,
    Value as Bits, Wide,
};
use Gives::{Coordinate, Meeting, Nothing, Token, Truth};

/// The type of the cells that a type is a row of: of an `int4`, `int`.
fn cell_of(of: &Type) -> Option<Ty> {
    let mut cells = Vec::new();
    of.each_cell(&mut |_, _, cell| cells.push(cell.word()));
    let first = (*cells.first()?)?;
    let bytes = cells.len() as u64 * u64::from(first.bytes());
    (cells.iter().all(|cell| *cell == Some(first)) && bytes == of.size()).then_some(first)
}

/// The operands of a call, for the text of its instructions.
#[derive(Default)]
struct CallOperands {
    /// The registers.
    given: Vec<AsmOperand>,
    /// The words of the text for the result and the arguments.
    words: Vec<String>,
    /// The type of the elements that a copy moves.
    element: Option<Ty>,
    /// The bytes of a copy in pieces, and their alignment.
    pieces: Option<(i64, i64)>,
    /// The threads that share the copy, with the rank of this thread and their number.
    group: Option<(ThreadGroup, i64, i64)>,
}

impl CallOperands {
    /// Adds a register.
    fn push(&mut self, one: AsmOperand) {
        self.words.push(one.word());
        self.given.push(one);
    }
}

/// The qualifier of PTX for a word of the library, such as `sem_relaxed`.
fn qualifier(word: &str) -> String {
    match word {
        "space_shared" => ".shared::cta".to_owned(),
        "space_cluster" => ".shared::cluster".to_owned(),
        _ => format!(".{}", word.split_once('_').map_or(word, |w| w.1)),
    }
}

impl Lowering<'_, '_> {
    /// Lowers a call of a function that is a PTX instruction, or of a related function.
    pub(super) fn ptx_call(
        &mut self,
        tree: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Option<Value> {
        if !self.env.language.cpp {
            return None;
        }
        let word = self.str(name);
        if plain(word) == "device::barrier_native_handle" {
            let object = match args {
                [object] => self.mbarrier_of(object),
                _ => {
                    self.error("wrong-operands", &tree.range, "this takes a barrier", |d| {
                        d.label("expected one")
                    });
                    None
                }
            };
            let pointer = Qualified::from(Type::Int(Ty::U64)).pointer();
            return Some(Value::new(object.unwrap_or(Expr::Const(0)), pointer));
        }
        match (plain(word), args) {
            ("aligned_size_t", [_, bytes]) => return Some(self.eval(bytes)),
            ("make_pipeline", _) => {
                self.error(
                    "wrong-operand",
                    &tree.range,
                    "a pipeline is not a value here",
                    |d| {
                        d.label(
                            "expected it in a declaration: `auto pipe = cuda::make_pipeline();`",
                        )
                    },
                );
                return Some(self.nothing());
            }
            ("pipeline_consumer_wait_prior", [n, pipe]) => {
                if let Some(n) = self.eval(n).constant() {
                    self.wait_prior(tree, n, pipe);
                }
                return Some(self.nothing());
            }
            _ => {}
        }
        let known = is_instruction(word);
        if known && self.env.host.as_ref().is_some_and(|host| !host.of_kernel) {
            self.error(
                "unsupported-function",
                name,
                format!("`{word}` is a function of the device"),
                |d| d.label("expected it in a kernel"),
            );
            return Some(self.nothing());
        }
        if !known && !plain(word).starts_with("ptx::") {
            return None;
        }
        let Some(form) = forms(word).find(|form| self.fits(form, args)) else {
            self.no_form(tree, name, known);
            return Some(self.nothing());
        };
        let value = self
            .instruction(form, tree, args)
            .unwrap_or_else(|| self.nothing());
        if form.gives == Meeting
            && let Some(group) = args.iter().find_map(|tree| self.group_of(tree))
        {
            self.sync(group, BarrierAction::Sync);
        }
        Some(value)
    }

    /// The alignment of a number of bytes: the one it names, or that of the elements.
    fn alignment(&self, tree: &Tree, element: Option<Ty>) -> i64 {
        match &tree.kind {
            ExprKind::Call(name, args)
                if plain(self.str(name)) == "aligned_size_t" && args.len() == 2 =>
            {
                match args[0].kind {
                    ExprKind::Int(n, _) => n,
                    _ => 0,
                }
            }
            _ => element.map_or(0, |ty| i64::from(ty.bytes())),
        }
    }

    /// Whether arguments fit a form, as far as they distinguish it from other forms.
    fn fits(&mut self, form: &PtxForm, args: &[Tree]) -> bool {
        form.args.len() == args.len()
            && form.args.iter().zip(args).all(|(arg, tree)| match arg {
                Tag(words) => words.contains(&last(self.str(&tree.range))),
                One => self.str(&tree.range) == "1",
                Wide => self.alignment(tree, None) >= 16,
                Pipe => self.is_pipeline(tree),
                Barrier => !self.is_pipeline(tree),
                Group => self.group_of(tree).is_some(),
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
        self.error(
            "wrong-operands",
            &tree.range,
            format!("this form of `{word}` is not supported"),
            |d| {
                d.label(format!("expected {}", all.join(" or "))).note(
                    "other forms of the library are for other groups of threads and \
                    directions, and for what only newer targets have",
                )
            },
        );
    }

    fn instruction(&mut self, form: &PtxForm, tree: &Tree, args: &[Tree]) -> Option<Value> {
        let mut operands = CallOperands::default();
        let result = match form.gives {
            Nothing | Meeting => None,
            Token => Some(Ty::U64),
            Truth | Coordinate => Some(Ty::U32),
        };
        let result = result.map(|ty| {
            let reg = self.temporary(ty);
            operands.push(AsmOperand::unknown(reg, 0, ty));
            reg
        });
        for (number, (arg, tree)) in form.args.iter().zip(args).enumerate() {
            match arg {
                Tag(_) => operands.words.push(qualifier(last(self.str(&tree.range)))),
                Time | One => operands.words.push("1".to_owned()),
                Pipe => operands.words.push(String::new()),
                Group => self.members(form, tree, &mut operands)?,
                Number | Pieces | Wide => self.number(arg, tree, &mut operands)?,
                Response => self.response(tree, number, &mut operands)?,
                _ => {
                    let (value, ty) = self.argument_value(arg, tree, &mut operands)?;
                    let one = self.passed(value, number + 1, ty);
                    operands.push(one);
                }
            }
        }
        if result.is_none() {
            operands.words.insert(0, "_".to_owned());
        }
        let mut texts = self.copies_of_pieces(form, tree, &operands)?;
        let election = match operands.group {
            Some((of, rank, _)) => self.election(of, rank),
            None => String::new(),
        };
        let text = text_of(form, &operands.words, operands.element, &election);
        match form.gives {
            Truth => texts.push(text),
            _ => texts.extend(text.split_inclusive(';').map(str::to_owned)),
        }
        self.library(&texts, operands.given, &tree.range, operands.element)?;
        Some(match (form.gives, result) {
            (Truth, Some(reg)) => Value::new(
                Expr::Bin(
                    BinOp::And,
                    Ty::U32,
                    Expr::Reg(reg).into(),
                    Expr::Const(1).into(),
                ),
                Type::Bool,
            ),
            (Coordinate, Some(reg)) => Value::of(Expr::Reg(reg), Ty::U32),
            (_, Some(reg)) => Value::of(Expr::Reg(reg), Ty::U64),
            _ => self.nothing(),
        })
    }

    /// The value of an argument that the instruction has in a register, and its type.
    fn argument_value(
        &mut self,
        arg: &Arg,
        tree: &Tree,
        operands: &mut CallOperands,
    ) -> Option<(Expr, Ty)> {
        let ty = match arg {
            Object => return Some((self.word_of(tree)?, Ty::U64)),
            Barrier => return Some((self.mbarrier_of(tree)?, Ty::U64)),
            Room => return Some((self.room_of(tree)?, Ty::U64)),
            To(space) => {
                let (addr, ty) = self.elements_of(tree, *space)?;
                if operands.element.get_or_insert(ty).bits != ty.bits {
                    let message = "a copy between elements of different sizes";
                    self.error("mixed-size", &tree.range, message, |d| {
                        d.label("expected pointers to elements of one size")
                    });
                    return None;
                }
                return Some((addr, Ty::U64));
            }
            Bits(bits) => Ty {
                bits: *bits,
                signed: false,
            },
            Element => operands.element.map_or(Ty::U32, |of| Ty {
                signed: false,
                ..of
            }),
            // These are words of the text, not registers.
            Tag(_) | Time | One | Pipe | Group | Number | Pieces | Wide | Response => return None,
        };
        Some((self.scalar(tree).bits(ty), ty))
    }

    /// Passes the two words of a response.
    fn response(&mut self, tree: &Tree, number: usize, operands: &mut CallOperands) -> Option<()> {
        let [low, high] = self.response_of(tree)?;
        let first = 10 * (number + 1);
        let low = self.passed(low, first, Ty::U64);
        let high = self.passed(high, first + 1, Ty::U64);
        operands
            .words
            .push(format!("{{{}, {}}}", low.word(), high.word()));
        operands.given.extend([low, high]);
        Some(())
    }

    /// Takes the group of threads that share a copy.
    fn members(&mut self, form: &PtxForm, tree: &Tree, operands: &mut CallOperands) -> Option<()> {
        let of = self.group_of(tree)?;
        if !matches!(of.domain, Scope::Cta | Scope::Warp) {
            let message = "a copy by threads of several blocks";
            self.error("wrong-operand", &tree.range, message, |d| {
                d.label("expected a group of a block: the block itself, or a tile")
            });
            return None;
        }
        operands.group = match form.gives {
            Meeting => None,
            _ => {
                let rank = self.rank_in(&tree.range, of)?;
                let size = self.size_of_group(&tree.range, of)?;
                Some((of, rank, size))
            }
        };
        operands.words.push(String::new());
        Some(())
    }

    /// Takes a number of accesses or bytes.
    fn number(&mut self, arg: &Arg, tree: &Tree, operands: &mut CallOperands) -> Option<()> {
        let Some(n) = self.eval(tree).constant() else {
            let message = "this has to be a constant";
            self.error("wrong-operand", &tree.range, message, |d| {
                d.label("expected a constant")
                    .note("how many accesses a copy makes is known before a program runs")
            });
            return None;
        };
        if matches!(arg, Pieces) {
            operands.pieces = Some((n, self.alignment(tree, operands.element)));
        }
        operands.words.push(n.to_string());
        Some(())
    }

    /// The instructions of a copy in pieces: those of the pieces that this thread copies.
    fn copies_of_pieces(
        &mut self,
        form: &PtxForm,
        tree: &Tree,
        operands: &CallOperands,
    ) -> Option<Vec<String>> {
        let Some((bytes, alignment)) = operands.pieces else {
            return Some(Vec::new());
        };
        let size = alignment.min(16);
        if bytes <= 0 || !matches!(size, 4 | 8 | 16) || bytes % size != 0 {
            let message = format!(
                "a copy of {bytes} bytes with alignment {alignment} cannot be asynchronous here"
            );
            self.error("unsupported", &tree.range, message, |d| {
                d.label("expected a multiple of an alignment of 4, 8 or 16 bytes")
                    .note("the library copies others with loads and stores (cuda/__memcpy_async)")
            });
            return None;
        }
        let first = 1 + usize::from(operands.group.is_some());
        let (to, from) = (&operands.words[first], &operands.words[first + 1]);
        let own = match operands.group {
            Some((of, rank, threads)) => shares(form, of, rank, threads, bytes / size),
            None => (0..bytes / size).collect(),
        };
        let copies = own.into_iter().map(|k| {
            let at = k * size;
            format!(
                "{{ .reg .b64 to, from; add.u64 to, {to}, {at}; add.u64 from, {from}, {at}; \
                 cp.async.ca.shared.global [to], [from], {size}, {size}; }} "
            )
        });
        Some(copies.collect())
    }

    /// Lowers the instructions of a library function.
    pub(super) fn library(
        &mut self,
        texts: &[String],
        given: Vec<AsmOperand>,
        range: &Range<usize>,
        element: Option<Ty>,
    ) -> Option<()> {
        let mut mapped = self.declared_operands(&given, range);
        // Each instruction gets a different place, which distinguishes it from the next one.
        let ends = self
            .str(range)
            .char_indices()
            .map(|(at, c)| range.start + at + c.len_utf8());
        let ends: Vec<usize> = ends.collect();
        for (text, end) in texts.iter().zip(ends.iter().rev()) {
            mapped.push_opaque(text, self.unit.text.span(range.start..*end));
        }
        if texts.len() > ends.len() {
            let message = format!("a copy in {} pieces is not supported", texts.len() - 1);
            self.error("unsupported", range, message, |d| {
                d.label("expected fewer").help(
                    "copy with several calls, or give a wider alignment: \
                    `cuda::aligned_size_t<16>`",
                )
            });
            return None;
        }
        self.lower_ptx(mapped, given, range, &How::Library(element))
    }

    /// PTX that sets `p` in the thread that a group elects to start a bulk copy (libcu++,
    /// `cuda/__memcpy_async/elect_one.h`).
    fn election(&self, group: ThreadGroup, rank: i64) -> String {
        match (group.domain, rank / 32) {
            (Scope::Cta, 0) => {}
            (Scope::Warp, _) if group.size == 32 => {}
            (Scope::Cta, _) => return "setp.ne.u32 p, 0, 0;".to_owned(),
            _ => return format!("setp.eq.u32 p, {rank}, 0;"),
        }
        format!("elect.sync _|p, {};", self.env.warp.all())
    }

    /// The library barrier that an expression names, as the address of an mbarrier object.
    fn mbarrier_of(&mut self, tree: &Tree) -> Option<Expr> {
        match self
            .is_object(tree)
            .then(|| self.atomic_object(tree))
            .flatten()
        {
            Some((Class::Barrier(Scope::Cta), atomic)) => {
                self.in_space(&atomic.addr, Space::Shared, &tree.range)?;
                Some(atomic.addr)
            }
            _ => {
                self.error(
                    "wrong-operand",
                    &tree.range,
                    "this is not a barrier of block scope",
                    |d| {
                        d.label(
                            "expected a `cuda::barrier<cuda::thread_scope_block>` in shared memory",
                        )
                    },
                );
                None
            }
        }
    }

    /// The address of a word with an mbarrier object.
    fn word_of(&mut self, tree: &Tree) -> Option<Expr> {
        let value = self.scalar(tree);
        match value.target().and_then(|to| to.word()) {
            Some(ty) if ty.bits == 64 => {}
            _ => {
                self.error(
                    "wrong-operand",
                    &tree.range,
                    "this is not an address of a 64-bit word",
                    |d| d.label("expected one, of a `uint64_t` in shared memory"),
                );
                return None;
            }
        }
        self.in_space(&value.expr, Space::Shared, &tree.range)?;
        Some(value.expr)
    }

    /// The address of the shared memory that receives a response.
    fn room_of(&mut self, tree: &Tree) -> Option<Expr> {
        let value = self.scalar(tree);
        let fits = value.target().is_some_and(|to| {
            let mut sizes = Vec::new();
            to.ty
                .each_cell(&mut |_, _, cell| sizes.push(cell.ty.size()));
            let alike = sizes.iter().all(|size| *size > 0 && *size == sizes[0]);
            !matches!(to.ty, Type::Struct(_)) || alike && to.ty.size() == 16
        });
        if !fits {
            self.error(
                "wrong-operand",
                &tree.range,
                "this is not a pointer to room for a response",
                |d| {
                    d.label(
                        "expected one to 16 bytes of shared memory: to a `uint4`, a `longlong2`, \
                        or an array",
                    )
                },
            );
            return None;
        }
        let addr = self.counted_from_the_start(value.expr, &tree.range);
        if addr.base().is_none() {
            self.untold(&tree.range);
            return None;
        }
        self.in_space(&addr, Space::Shared, &tree.range)?;
        Some(addr)
    }

    /// The halves of a response in a structure. Reads each member, as any copy of the structure
    /// would.
    fn response_of(&mut self, tree: &Tree) -> Option<[Expr; 2]> {
        let of = self
            .type_of_place(tree)
            .filter(|of| matches!(of.ty, Type::Struct(_)) && of.ty.size() == 16);
        if of.is_none_or(|of| !of.is_plain()) {
            self.error(
                "wrong-operand",
                &tree.range,
                "a response is of 16 bytes",
                |d| {
                    d.label(
                        "expected a structure that holds one, such as a `uint4` or a `longlong2`",
                    )
                },
            );
            return None;
        }
        let (addr, of) = self.memory_place(tree)?;
        let mut cells = Vec::new();
        of.ty
            .each_cell(&mut |_, offset, cell| cells.push((offset, cell.clone())));
        let mut halves = [Expr::Const(0), Expr::Const(0)];
        for (offset, cell) in cells {
            let part = self.read(Place::Memory(shifted(&addr, offset), cell));
            let bits = Ty {
                signed: false,
                ..part.word()
            };
            let wide = Expr::Cast(Ty::U64, Expr::Cast(bits, part.expr.into()).into());
            let shift = 8 * (offset % 8) as i64;
            let half = &mut halves[(offset / 8) as usize];
            *half = match (offset % 8, bits.bits) {
                (0, 64) => wide,
                (0, _) => Expr::Bin(BinOp::Or, Ty::U64, wide.into(), half.clone().into()),
                _ => {
                    let high =
                        Expr::Bin(BinOp::Shl, Ty::U64, wide.into(), Expr::Const(shift).into());
                    Expr::Bin(BinOp::Or, Ty::U64, half.clone().into(), high.into())
                }
            };
        }
        Some(halves)
    }

    /// The address of elements in memory of a space, and their type.
    fn elements_of(&mut self, tree: &Tree, space: Space) -> Option<(Expr, Ty)> {
        let value = self.scalar(tree);
        let Some(ty) = value.target().and_then(|to| cell_of(&to.ty)) else {
            self.error(
                "wrong-operand",
                &tree.range,
                "this is not a pointer to numbers",
                |d| d.label("expected a pointer to the source of the copy"),
            );
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

    pub(super) fn untold(&mut self, range: &Range<usize>) {
        self.error(
            "unsupported-address",
            range,
            "the target of this pointer is unknown",
            |d| {
                d.label(
                    "expected an array of the test or the kernel, or an unchanged parameter, both \
                    optionally with an offset",
                )
            },
        );
    }

    /// Replaces parameters in a value by their initial addresses. [`Self::keep_addresses`] checks
    /// at the end that the parameters kept them.
    pub(super) fn counted_from_the_start(&mut self, mut value: Expr, range: &Range<usize>) -> Expr {
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

    /// The address in a register, if the code has given it no other value so far.
    fn address_in(&self, reg: RegId) -> Option<Expr> {
        let mut written = self
            .code
            .iter()
            .filter(|instr| instr.op.defines() == Some(reg));
        match (
            written.next().map(|instr| &instr.op),
            &self.regs[usize::from(reg.0)].init,
        ) {
            (None, Init::Address { loc, index }) => {
                let offset = self.symbols.layout(*loc).offset(*index);
                let sum = Expr::Bin(
                    BinOp::Add,
                    Ty::U64,
                    Expr::Address(*loc).into(),
                    Expr::Const(offset).into(),
                );
                Some(if offset == 0 {
                    Expr::Address(*loc)
                } else {
                    sum
                })
            }
            (Some(Op::Assign { value, .. }), _) if written.next().is_none() => match value {
                Expr::Reg(other) if *other != reg => self.address_in(*other),
                value => is_address(value).then(|| value.clone()),
            },
            _ => None,
        }
    }

    /// Reports parameters that the code writes after the lowering relied on their initial
    /// addresses.
    pub(super) fn keep_addresses(&mut self) {
        for (reg, range) in std::mem::take(&mut self.kept_addresses) {
            if self.address_in(reg).is_none() {
                self.untold(&range);
            }
        }
    }

    /// Reports an address that surely lies in another space.
    pub(super) fn in_space(
        &mut self,
        addr: &Expr,
        space: Space,
        range: &Range<usize>,
    ) -> Option<()> {
        let Some(loc) = addr
            .base()
            .filter(|loc| self.symbols.object(*loc).1.space != space)
        else {
            return Some(());
        };
        let name = self.symbols.get(loc).name.clone();
        let wanted = if space == Space::Shared {
            "shared"
        } else {
            "global"
        };
        self.error(
            "wrong-space",
            range,
            format!("`{name}` is not in {wanted} memory"),
            |d| d.label(format!("expected memory that is {wanted}")),
        );
        None
    }

    /// Passes an argument in a register, or as a constant.
    pub(super) fn passed(&mut self, value: Expr, number: usize, ty: Ty) -> AsmOperand {
        if let Expr::Const(n) = value {
            return AsmOperand::Constant(n);
        }
        let reg = self.temporary(ty);
        self.push(Op::Assign {
            dst: reg,
            value: value.clone(),
        });
        let known = self.init_of(&value);
        AsmOperand::Register {
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

/// The last part of a name: `cuda::ptx::sem_release` gives `sem_release`.
fn last(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// The pieces that one thread of a group copies. In tiles of Cooperative Groups, all threads take
/// the same number of steps. In the last step, threads without a piece copy the last piece once
/// more (`accelerated_async_copy`).
fn shares(form: &PtxForm, group: ThreadGroup, rank: i64, threads: i64, pieces: i64) -> Vec<i64> {
    let own = (0..pieces).filter(|k| k % threads == rank);
    let rest = pieces % threads;
    let last = (form.name == "cg::memcpy_async" && group.domain == Scope::Warp && threads > 1)
        .then_some(pieces - 1)
        .filter(|_| rest > 0 && rank >= rest);
    own.chain(last).collect()
}

/// Whether a value is a known address, perhaps in another block's memory.
fn is_address(value: &Expr) -> bool {
    match value {
        Expr::Address(_) => true,
        Expr::Bin(BinOp::Add, _, base, offset) => {
            matches!((&**base, &**offset), (Expr::Address(_), Expr::Const(_)))
        }
        _ => false,
    }
}

/// Whether an operation is bitwise, so that its operand has no sign.
fn is_bitwise(words: &[String]) -> bool {
    words
        .iter()
        .any(|w| matches!(w.as_str(), ".and" | ".or" | ".xor"))
}

/// The assembly of a form.
fn text_of(form: &PtxForm, words: &[String], element: Option<Ty>, election: &str) -> String {
    let mut text = String::new();
    let mut chars = form.text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '%' { chars.next() } else { None }) {
            ('%', Some(digit @ '0'..='9')) => {
                text.push_str(&words[digit as usize - '0' as usize]);
            }
            ('%', Some('g')) => text.push_str(election),
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
    use crate::isa::clike::ClikeCode;
    use crate::isa::clike::tests::env;
    use crate::isa::{Object, SymbolKind, Symbols};
    use diag::{MappedText, Sink, SourceFile, Span, TextStyle, render};
    use program::{Class, Dialect};

    /// The errors of a thread's code, which may use the arguments below. Without errors, the code
    /// becomes PTX.
    fn wrong(code: &str) -> String {
        let file = SourceFile::new("test", code);
        let mut sink = Sink::new(&file);
        let mut symbols = Symbols::default();
        let shared = Object {
            space: Space::Shared,
            ..Object::scalar(0)
        };
        for (name, ty, elements, class) in [
            ("x", Ty::U32, 4, None),
            ("g", Ty::U32, 4, None),
            ("b", Ty::U64, 1, None),
            ("bar", Ty::WORD, 1, Some(Class::Barrier(Scope::Cta))),
        ] {
            let of = if name == "g" {
                Object::scalar(0)
            } else {
                shared.clone()
            };
            let object = Object {
                init: vec![Init::Int(0); elements],
                ty: Some((ty, Span::default())),
                class,
                ..of
            };
            symbols.declare(name, Span::default(), SymbolKind::Object(object), &mut sink);
        }
        let env = crate::isa::clike::Env {
            cluster: (0..8).collect(),
            ..env(Dialect::Cuda)
        };
        let unit = ClikeCode::parse(MappedText::verbatim(code, 0), env.language, &mut sink);
        let lowered = unit.lower(&env, &mut symbols, &mut sink);
        if sink.errors() == 0 {
            // A single lane elects itself, and a query only reads a value.
            let acts = lowered
                .code
                .iter()
                .any(|i| i.op.is_ptx() || i.op.barrier().is_some());
            assert!(acts || code.contains("elect_sync") || code.contains("query_cancel"));
        }
        sink.into_diagnostics()
            .iter()
            .map(|d| render(d, TextStyle::Plain))
            .collect()
    }

    #[test]
    fn what_is_no_request_or_response_is_refused_where_it_stands() {
        let says = |code: &str, what: &str, at: &str| {
            let message = wrong(code);
            assert!(
                message.contains(what) && message.contains(at),
                "{code}: {message}"
            );
        };
        let ask = |args: &str| format!("cuda::ptx::clusterlaunchcontrol_try_cancel({args});");
        assert_eq!(wrong(&ask("x, &b")), "");
        says(&ask("g, &b"), "`g` is not in shared memory", ":1:44");
        says(&ask("&x[2], &b"), "16 bytes at byte 8 of `x`", ":1:1");
        says(
            &ask("7, &b"),
            "this is not a pointer to room for a response",
            ":1:44",
        );
        says(
            &ask("x, x"),
            "this is not an address of a 64-bit word",
            ":1:47",
        );
        says(
            &ask("x"),
            "this form of `cuda::ptx::clusterlaunchcontrol_try_cancel` is not supported",
            ":1:1",
        );
        let query = |what: &str, arg: &str| {
            format!("auto r = cuda::ptx::clusterlaunchcontrol_query_cancel_{what}({arg});")
        };
        assert_eq!(wrong(&query("is_canceled", "make_longlong2(1, 2)")), "");
        assert_eq!(
            wrong(&query(
                "get_first_ctaid_z<unsigned int>",
                "make_ulonglong2(1, 2)"
            )),
            ""
        );
        says(
            &query("is_canceled", "make_uint2(1, 2)"),
            "a response is of 16 bytes",
            ":1:67",
        );
        says(
            &query("is_canceled", "x[0]"),
            "a response is of 16 bytes",
            ":1:67",
        );
        says(
            &query("get_first_ctaid_x<long long>", "make_uint4(1, 2, 3, 4)"),
            "integers of 32 bits",
            ":1:",
        );
        says(
            &query("get_first_ctaid_w<int>", "make_uint4(1, 2, 3, 4)"),
            "is not supported in CUDA C++",
            ":1:10",
        );
    }

    #[test]
    fn every_form_is_assembly_that_the_rows_of_ptx_have() {
        let before = "auto pipe = cuda::make_pipeline(); auto tile = \
        cg::tiled_partition<32>(cg::this_thread_block()); ";
        for form in FORMS {
            // Each word of each tag, and the first words of the others.
            for n in 0..8 {
                let arg = |arg: &Arg| match arg {
                    Tag(words) => format!("cuda::ptx::{}", words[n % words.len()]),
                    Object => "&b".into(),
                    Barrier => "bar".into(),
                    To(Space::Shared) => "x".into(),
                    To(_) => "g".into(),
                    Room => "x".into(),
                    Response => "make_uint4(1, 2, 3, 4)".into(),
                    Bits(_) | Time | Element => "7".into(),
                    Number if form.name == "ptx::elect_sync" => "1".into(),
                    Number | Pieces => "16".into(),
                    Wide => "cuda::aligned_size_t<16>(16)".into(),
                    Pipe => "pipe".into(),
                    Group => "tile".into(),
                    One => "1".into(),
                };
                let parity = form.name.ends_with("_parity");
                let args: Vec<String> = form.args.iter().map(arg).collect();
                let args = args
                    .join(", ")
                    .replace(", 7", if parity { ", 1" } else { ", 7" });
                let space = if ["cuda", "__", "cg::"]
                    .iter()
                    .any(|p| form.name.starts_with(p))
                {
                    ""
                } else {
                    "cuda::"
                };
                let code = match form.name {
                    "cg::wait_prior" => format!("{before}cg::wait_prior<2>(tile);"),
                    name => format!("{before}{space}{name}({args});"),
                };
                assert_eq!(wrong(&code), "", "{code}");
            }
        }
    }
}
