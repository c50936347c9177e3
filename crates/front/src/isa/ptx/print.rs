//! Prints micro-ops as PTX in the short form. Reading the text gives the same micro-ops.
//!
//! # Invariants
//! - The printed text reads back to the same program; micro-ops without a PTX instruction are
//!   refused.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::iter;

use super::table::PRED;
use program::proxy::{ASYNC_HALVES, ASYNC_SPACES, PROXY_FENCES};
use program::{
    Access, AsmInstr, Barrier, BarrierAction, BarrierNaming, BinOp, CmpOp, EventKind, Expr, Instr,
    Mark, Op, Program, Proxy, RegId, Scope, Tag, Thread, Ty, Update, is_further,
};

/// A micro-op that PTX cannot express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unprintable {
    /// Its index in the thread's code.
    pub index: usize,
    /// A description of the micro-op.
    pub what: String,
}

/// Prints a thread's code, one instruction per line.
///
/// # Errors
/// If no PTX instruction makes a micro-op.
pub fn print(thread: &Thread, program: &Program) -> Result<String, Unprintable> {
    let printer = Printer { thread, program };
    let targets = thread.code.iter().filter_map(|i| i.op.target());
    let mut labels: BTreeMap<usize, String> =
        targets.map(|target| (target, String::new())).collect();
    labels
        .iter_mut()
        .enumerate()
        .for_each(|(n, (_, label))| *label = format!("L{n}"));
    let mut out = String::new();
    for index in 0..=thread.code.len() {
        if let Some(label) = labels.get(&index) {
            let _ = writeln!(out, "{label}:");
        }
        if let Some(instr) = thread.code.get(index).filter(|instr| instr.element.at == 0) {
            // An instruction with several micro-ops is printed at its first one: the operation on
            // the object, or the load of a copy.
            if is_further(&thread.code, index) {
                continue;
            }
            // A mapping made these micro-ops, from code in another language.
            if (instr.op.has(Tag::Asynchronous) || instr.op.has(Tag::Mbarrier))
                && instr.assembly.is_none()
            {
                return Err(Unprintable {
                    index,
                    what: instr.text.clone(),
                });
            }
            // A copy has neither order nor scope, so its text stays valid.
            if instr.op.has(Tag::Asynchronous) {
                let _ = writeln!(out, "{}", instr.text);
                continue;
            }
            if instr.op.has(Tag::Mbarrier) {
                let line = on_object(instr).ok_or_else(|| Unprintable {
                    index,
                    what: instr.text.clone(),
                })?;
                let _ = writeln!(out, "{line}");
                continue;
            }
            let line = match &thread.code[instr.element.siblings(index)] {
                [_] => printer.op(&instr.op, &labels),
                elements => printer.vector(elements),
            };
            let line = line.ok_or_else(|| Unprintable {
                index,
                what: instr.text.clone(),
            })?;
            let _ = writeln!(out, "{line}");
        }
    }
    Ok(out)
}

/// The words before the type of an access to generic memory, or the whole text of a fence. `None`
/// if PTX has no such instruction.
pub fn opcode(op: &Op) -> Option<String> {
    match op {
        Op::Load { access, .. } => {
            let proxy = Proxy::tagged(&access.tags)?.row();
            Some(format!("{}{}", proxy.load, order(access)?))
        }
        Op::Store { access, .. } => {
            let proxy = Proxy::tagged(&access.tags)?.row();
            Some(format!("{}{}", proxy.store?, order(access)?))
        }
        Op::Rmw {
            update,
            read,
            write,
            ..
        } => {
            let order = match (read.tags.has(Tag::Acquire), write.tags.has(Tag::Release)) {
                (true, true) => "acq_rel",
                (true, false) => "acquire",
                (false, true) => "release",
                (false, false) => "relaxed",
            };
            let name = match update {
                Update::Exchange(_) => "exch",
                Update::Apply(op, _) => atomic_name(*op)?,
                Update::CompareExchange { .. } => "cas",
                Update::When { .. } => return None,
            };
            let kind = if read.tags.has(Tag::Reduction) {
                "red"
            } else {
                "atom"
            };
            Some(format!(
                "{kind}.{order}.{}.{name}",
                scope_name(read.scope?)?
            ))
        }
        Op::Mark { mark, .. } => fence(mark),
        _ => None,
    }
}

/// The text of an operation on an mbarrier object, with its present order and scope.
fn on_object(instr: &Instr) -> Option<String> {
    let AsmInstr {
        opcode,
        qualifiers,
        operands,
    } = &**instr.assembly.as_ref()?;
    let write = instr.op.write()?;
    let Some(scope) = write.scope else {
        return Some(instr.text.clone());
    };
    let said = ["release", "acquire", "relaxed", "cta", "cluster"];
    let (rest, name): (Vec<&str>, Vec<&str>) = iter::once(opcode)
        .chain(qualifiers)
        .map(String::as_str)
        .filter(|word| !said.contains(word))
        .partition(|word| *word == "b64" || word.starts_with("shared"));
    let orders = [
        (Tag::Release, "release"),
        (Tag::Acquire, "acquire"),
        (Tag::Relaxed, "relaxed"),
    ];
    let order = orders.into_iter().find(|o| write.tags.has(o.0))?.1;
    let rest: String = rest.into_iter().map(|w| format!(".{w}")).collect();
    Some(format!(
        "{}.{order}.{}{rest} {operands}",
        name.join("."),
        scope_name(scope)?
    ))
}

struct Printer<'a> {
    thread: &'a Thread,
    program: &'a Program,
}

impl Printer<'_> {
    fn reg(&self, id: RegId) -> &str {
        &self.thread.regs[usize::from(id.0)].name
    }

    fn op(&self, op: &Op, labels: &BTreeMap<usize, String>) -> Option<String> {
        Some(match op {
            op if op.aborts() => "trap".to_owned(),
            Op::Load { dst, addr, access } => {
                let suffix = self.suffix(addr, access.ty);
                format!(
                    "{}{suffix} {}, {}",
                    opcode(op)?,
                    self.reg(*dst),
                    self.address(addr)?
                )
            }
            Op::Store {
                addr,
                value,
                access,
            } => {
                let suffix = self.suffix(addr, access.ty);
                let value = self.fitted(value, access.ty)?;
                format!("{}{suffix} {}, {value}", opcode(op)?, self.address(addr)?)
            }
            Op::Rmw {
                dst,
                addr,
                update,
                read,
                ..
            } => self.rmw(&opcode(op)?, *dst, addr, update, read)?,
            Op::Mark { .. } => opcode(op)?,
            Op::Barrier(barrier) => self.barrier(barrier)?,
            // An exchange between lanes consists of several micro-ops with shared results.
            Op::Give { .. } | Op::Take { .. } => return None,
            Op::Choice { .. } | Op::Call(_) | Op::Enqueue(_) | Op::Status { .. } => return None,
            Op::Assign { dst, value } => self.assign(*dst, value)?,
            Op::Branch { cond, target } => {
                let label = labels.get(target)?;
                match cond {
                    Expr::Const(0) => return None,
                    Expr::Const(_) => format!("goto {label}"),
                    Expr::Reg(p) => format!("@{} bra {label}", self.reg(*p)),
                    Expr::Cmp(op, ty, a, b) => {
                        let opcode = match op {
                            CmpOp::Eq => "beq",
                            CmpOp::Ne => "bne",
                            CmpOp::Lt => "blt",
                            CmpOp::Le => "ble",
                            CmpOp::Gt => "bgt",
                            CmpOp::Ge => "bge",
                        };
                        format!(
                            "{opcode}{} {}, {}, {label}",
                            dotted(*ty),
                            self.value(a)?,
                            self.value(b)?
                        )
                    }
                    _ => return None,
                }
            }
        })
    }

    /// A vector instruction, from its elements.
    fn vector(&self, elements: &[Instr]) -> Option<String> {
        let mut ops: Vec<&Op> = elements.iter().map(|e| &e.op).collect();
        ops.sort_by_key(|op| match unchecked_address(op) {
            Some(Expr::Bin(BinOp::Add, _, _, n)) => match *n {
                Expr::Const(n) => n,
                _ => 0,
            },
            _ => 0,
        });
        let access = ops[0].accesses().next()?;
        let row = Proxy::tagged(&access.tags)?.row();
        let items = ops.iter().map(|op| match op {
            Op::Load { dst, .. } => Some(self.reg(*dst).to_owned()),
            Op::Store { value, access, .. } => self.fitted(value, access.ty),
            _ => None,
        });
        let items = items.collect::<Option<Vec<_>>>()?.join(", ");
        let (order, count, ty) = (order(access)?, ops.len(), named(access.ty));
        let address = self.address(&unchecked_address(ops[0])?)?;
        let of = if elements[0].element.whole {
            ".b128".to_owned()
        } else {
            format!(".v{count}{ty}")
        };
        Some(match ops[0].write() {
            None => format!("{}{order}{of} {{{items}}}, {address}", row.load),
            Some(_) => format!("{}{order}{of} {address}, {{{items}}}", row.store?),
        })
    }

    /// The type qualifier of an access, if it differs from the default.
    fn suffix(&self, addr: &Expr, ty: Ty) -> String {
        match addr.base().map(|loc| self.program.element(loc)) {
            Some(own)
                if own == ty
                    && addr
                        .base()
                        .is_none_or(|loc| self.program.layout(loc).cells() == 1) =>
            {
                String::new()
            }
            _ => named(ty),
        }
    }

    fn address(&self, addr: &Expr) -> Option<String> {
        match addr {
            Expr::Address(_) => self.value(addr),
            Expr::Reg(r) => Some(format!("[{}]", self.reg(*r))),
            Expr::Bin(BinOp::Add, Ty::U64, base, offset) => match (&**base, &**offset) {
                (Expr::Reg(r), Expr::Const(n)) => Some(format!("[{}+{n}]", self.reg(*r))),
                _ => self.value(addr),
            },
            _ => None,
        }
    }

    fn value(&self, value: &Expr) -> Option<String> {
        Some(match value {
            Expr::Const(v) => v.to_string(),
            Expr::Reg(r) => self.reg(*r).to_string(),
            Expr::Address(loc) => self.program.location(*loc).name.clone(),
            Expr::Bin(BinOp::Add, Ty::U64, base, offset) => match (&**base, &**offset) {
                (Expr::Address(loc), Expr::Const(n)) => {
                    if self.program.layout(*loc).cells() > 1 {
                        return Some(format!("{}+{n}", self.program.location(*loc).name));
                    }
                    let size = i64::from(self.program.element(*loc).bytes());
                    format!(
                        "{}[{}]",
                        self.program.location(*loc).name,
                        (n % size == 0).then_some(n / size)?
                    )
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    /// An operand, without the conversion to the instruction's type, which the instruction makes.
    fn fitted(&self, value: &Expr, ty: Ty) -> Option<String> {
        match value {
            Expr::Cast(to, inner) if *to == ty => self.value(inner),
            other => self.value(other),
        }
    }

    fn rmw(
        &self,
        opcode: &str,
        dst: Option<RegId>,
        addr: &Expr,
        update: &Update,
        read: &Access,
    ) -> Option<String> {
        let ty = read.ty;
        let operands = match update {
            Update::Exchange(v) | Update::Apply(_, v) => self.fitted(v, ty)?,
            Update::When { .. } => return None,
            Update::CompareExchange { expected, new } => {
                format!("{}, {}", self.fitted(expected, ty)?, self.fitted(new, ty)?)
            }
        };
        let (place, suffix) = (self.address(addr)?, self.suffix(addr, ty));
        Some(if read.tags.has(Tag::Reduction) {
            format!("{opcode}{suffix} {place}, {operands}")
        } else {
            let dst = dst.map_or("_", |r| self.reg(r));
            format!("{opcode}{suffix} {dst}, {place}, {operands}")
        })
    }

    fn barrier(&self, barrier: &Barrier) -> Option<String> {
        // The barriers of votes in source languages have a number of their own.
        let is_of_cta = barrier.domain == Scope::Cta;
        if is_of_cta && barrier.naming.number().is_some_and(|id| id < 0) {
            return None;
        }
        let (first, rest) = match &barrier.naming {
            BarrierNaming::Counted { id, count } => (self.value(id)?, [count, &None]),
            BarrierNaming::Instance {
                instance,
                id,
                quorum,
            } => (instance.to_string(), [id, quorum]),
        };
        let mut operands = vec![first];
        for operand in rest.into_iter().flatten() {
            operands.push(self.value(operand)?);
        }
        let operands = operands.join(", ");
        let relaxed = barrier.arrive.has(Tag::Relaxed);
        Some(match (barrier.domain, barrier.action) {
            (Scope::Cta, BarrierAction::Sync) => format!("bar.cta.sync {operands}"),
            (Scope::Cta, BarrierAction::Arrive) => format!("bar.cta.arrive {operands}"),
            (Scope::Warp, BarrierAction::Sync) => match &barrier.lanes {
                Some(Expr::Const(mask)) => format!("bar.warp.sync {mask:#x}"),
                Some(mask) => format!("bar.warp.sync {}", self.value(mask)?),
                None => "bar.warp.sync 0xffffffff".to_string(),
            },
            (Scope::Cluster, BarrierAction::Arrive) if relaxed => {
                "barrier.cluster.arrive.relaxed".to_string()
            }
            (Scope::Cluster, BarrierAction::Arrive) => "barrier.cluster.arrive".to_string(),
            (Scope::Cluster, BarrierAction::Wait) => "barrier.cluster.wait".to_string(),
            _ => return None,
        })
    }

    fn assign(&self, dst: RegId, value: &Expr) -> Option<String> {
        let ty = self.thread.regs[usize::from(dst.0)].ty;
        let dst = self.reg(dst);
        Some(match value {
            Expr::Const(_) | Expr::Reg(_) | Expr::Address(_) => {
                let suffix = if ty == PRED {
                    ".pred".to_string()
                } else {
                    dotted(ty)
                };
                format!("mov{suffix} {dst}, {}", self.value(value)?)
            }
            Expr::Bin(..) if self.value(value).is_some() => {
                format!("mov.u64 {dst}, {}", self.value(value)?)
            }
            Expr::Bin(BinOp::Add, ty, a, b) if self.product(a, *ty).is_some() => {
                let (x, y) = self.product(a, *ty)?;
                format!("mad{} {dst}, {x}, {y}, {}", dotted(*ty), self.value(b)?)
            }
            Expr::Bin(op, ty, a, b) => {
                format!(
                    "{}{} {dst}, {}, {}",
                    arith_name(*op)?,
                    dotted(*ty),
                    self.value(a)?,
                    self.value(b)?
                )
            }
            Expr::Cmp(op, ty, a, b) => {
                format!(
                    "setp.{}{} {dst}, {}, {}",
                    op.ptx_name(),
                    dotted(*ty),
                    self.value(a)?,
                    self.value(b)?
                )
            }
            Expr::Select(p, a, b) => {
                let Expr::Reg(p) = **p else { return None };
                let (a, b) = (self.fitted(a, ty)?, self.fitted(b, ty)?);
                format!("selp{} {dst}, {a}, {b}, {}", dotted(ty), self.reg(p))
            }
            Expr::Cast(ty, inner) => format!("cvt{}.s64 {dst}, {}", named(*ty), self.value(inner)?),
            Expr::Fused(..) => return None,
        })
    }

    fn product(&self, value: &Expr, ty: Ty) -> Option<(String, String)> {
        match value {
            Expr::Bin(BinOp::Mul, own, x, y) if *own == ty => {
                Some((self.value(x)?, self.value(y)?))
            }
            _ => None,
        }
    }
}

/// The address of an access, without the check of its alignment.
fn unchecked_address(op: &Op) -> Option<Expr> {
    match op.address() {
        Some(Expr::Select(_, address, _)) => Some((**address).clone()),
        address => address.cloned(),
    }
}

/// Order and scope of a load or store.
fn order(access: &Access) -> Option<String> {
    let tags = &access.tags;
    if tags.has(Tag::Volatile) {
        return Some(".volatile".to_string());
    }
    let Some(scope) = access.scope else {
        return tags.has(Tag::Weak).then(|| ".weak".to_string());
    };
    let order = [
        (Tag::Relaxed, "relaxed"),
        (Tag::Acquire, "acquire"),
        (Tag::Release, "release"),
    ];
    let order = order.into_iter().find(|o| tags.has(o.0))?.1;
    let mmio = if tags.has(Tag::Mmio) { ".mmio" } else { "" };
    Some(format!("{mmio}.{order}.{}", scope_name(scope)?))
}

fn fence(
    Mark {
        kind,
        tags,
        scope,
        pending,
        ..
    }: &Mark,
) -> Option<String> {
    if *kind != EventKind::Fence {
        return None;
    }
    let groups = [(Tag::Bulk, "cp.async.bulk"), (Tag::Wgmma, "wgmma")]
        .into_iter()
        .find(|row| tags.has(row.0));
    let groups = groups.map_or("cp.async", |row| row.1);
    let alone = [
        (Tag::WgmmaFence, "wgmma.fence"),
        (Tag::LaunchDependents, "griddepcontrol.launch_dependents"),
        (Tag::GridWait, "griddepcontrol.wait"),
    ];
    if let Some((_, text)) = alone.into_iter().find(|row| tags.has(row.0)) {
        return Some(text.to_owned());
    }
    // The address of a tensor-map fence is not printed, and an alignment mark comes from another
    // instruction.
    if tags.has(Tag::TensormapProxy) || tags.has(Tag::Lanes) {
        return None;
    }
    if tags.has(Tag::CommitGroup) {
        return Some(format!("{groups}.commit_group"));
    }
    if let Some(read) = [(Tag::WaitGroup, ""), (Tag::WaitGroupRead, ".read")]
        .into_iter()
        .find(|row| tags.has(row.0))
    {
        return Some(format!("{groups}.wait_group{} {}", read.1, (*pending)?));
    }
    if tags.has(Tag::MbarrierInit) {
        return Some("fence.mbarrier_init.release.cluster".to_string());
    }
    if let Some((of, order, _)) = ASYNC_HALVES
        .iter()
        .rev()
        .find(|row: &&(&str, &str, &[Tag])| tags.has_all(row.2))
        .filter(|_| tags.has(Tag::ProxyFence) && tags.has(Tag::Half))
    {
        let proxies = if tags.has(Tag::AsyncProxy) {
            ".proxy.async::generic"
        } else {
            ""
        };
        return Some(format!("fence{proxies}.{order}.{of}.cluster"));
    }
    if tags.has(Tag::ProxyFence) {
        let (kind, _) = PROXY_FENCES.iter().find(|kind| tags.has(kind.1))?;
        let space = ASYNC_SPACES
            .iter()
            .find(|row| tags.has(row.1))
            .map_or(String::new(), |row| format!(".{}", row.0));
        return Some(format!("fence.proxy.{kind}{space}"));
    }
    let orders = [
        (Tag::SeqCst, "sc"),
        (Tag::AcqRel, "acq_rel"),
        (Tag::Acquire, "acquire"),
        (Tag::Release, "release"),
    ];
    let order = orders.into_iter().find(|o| tags.has(o.0))?.1;
    let proxy = if tags.has(Tag::Half) {
        "proxy.alias."
    } else {
        ""
    };
    Some(format!("fence.{proxy}{order}.{}", scope_name((*scope)?)?))
}

fn scope_name(scope: Scope) -> Option<&'static str> {
    Some(match scope {
        Scope::Cta => "cta",
        Scope::Cluster => "cluster",
        Scope::Gpu => "gpu",
        Scope::Sys => "sys",
        _ => return None,
    })
}

fn atomic_name(op: BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Inc => "inc",
        BinOp::Dec => "dec",
        BinOp::Add | BinOp::Sub | BinOp::And | BinOp::Or | BinOp::Xor | BinOp::Min | BinOp::Max => {
            arith_name(op)?
        }
        _ => return None,
    })
}

fn arith_name(op: BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add => "add",
        BinOp::Sub => "sub",
        BinOp::Mul => "mul",
        BinOp::Div => "div",
        BinOp::Rem => "rem",
        BinOp::And => "and",
        BinOp::Or => "or",
        BinOp::Xor => "xor",
        BinOp::Shl => "shl",
        BinOp::Shr => "shr",
        BinOp::Min => "min",
        BinOp::Max => "max",
        BinOp::Inc | BinOp::Dec | BinOp::Float(..) | BinOp::Unknown | BinOp::Tells => return None,
    })
}

/// A type qualifier, such as `.u32`.
fn named(ty: Ty) -> String {
    format!(".{}", ty.ptx_name())
}

/// The type qualifier, unless it is the default.
fn dotted(ty: Ty) -> String {
    if ty == Ty::WORD {
        String::new()
    } else {
        named(ty)
    }
}
