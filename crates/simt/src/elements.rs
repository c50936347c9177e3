//! Runs vector instructions with their elements in every order.
//!
//! A model puts no order between the elements of a vector. The machine runs one micro-op after the
//! other; so a free choice in front of the instruction picks the next element.
//!
//! # Invariants
//! - Every order of the elements can be chosen, and all elements access the addresses that the
//!   instruction computed.
//! - Every other instruction stays the same, except for its index.
//!
//! # Sources
//! - PTX ISA 9.4, Memory Consistency Model, Vector Data-types: elements are accessed in an
//!   unspecified order.

use program::litmus::LitmusTest;
use program::{BinOp, Element, Expr, Init, Instr, Op, RegId, Register, Thread, Ty};

/// Whether a test has vector instructions.
pub fn has_vectors(test: &LitmusTest) -> bool {
    test.program
        .instrs()
        .any(|(_, _, instr)| is_vector(instr.element))
}

fn is_vector(element: Element) -> bool {
    element.of > 1 && !element.whole
}

/// A rewritten test, and by thread the new places of its instructions.
type Ordered = (LitmusTest, Vec<Vec<usize>>);

/// Rewrites a test so that choices order the elements of its vectors; also returns the new places
/// of its instructions, by thread. `None` if the test has no vectors.
///
/// # Errors
/// If a thread runs out of registers.
pub(super) fn in_any_order(test: &LitmusTest) -> Result<Option<Ordered>, String> {
    if !has_vectors(test) {
        return Ok(None);
    }
    let mut new = test.clone();
    let mut moved = Vec::new();
    for thread in &mut new.program.threads {
        let code = std::mem::take(&mut thread.code);
        let mut out = Rewriting {
            thread,
            code: Vec::new(),
        };
        let mut places = Vec::with_capacity(code.len() + 1);
        let mut rest = code.as_slice();
        while let Some(first) = rest.first() {
            let (elements, after) = rest.split_at(usize::from(first.element.of));
            if is_vector(first.element) {
                places.resize(places.len() + elements.len(), out.code.len());
                out.vector(elements)?;
            } else {
                places.extend((0..elements.len()).map(|k| out.code.len() + k));
                out.code.extend_from_slice(elements);
            }
            rest = after;
        }
        places.push(out.code.len());
        let mut code = out.code;
        for instr in &mut code {
            if let (Some(target), false) = (instr.op.target_mut(), instr.element == PUT_IN) {
                *target = places[*target];
            }
            if !instr.element.whole {
                instr.element = Element {
                    cells: instr.element.cells,
                    ..Element::ONLY
                };
            }
        }
        thread.code = code;
        moved.push(places);
    }
    Ok(Some((new, moved)))
}

/// Marks an instruction that this file adds: its branches already have their final targets.
const PUT_IN: Element = Element {
    at: 1,
    of: 0,
    ..Element::ONLY
};

struct Rewriting<'a> {
    thread: &'a mut Thread,
    code: Vec<Instr>,
}

impl Rewriting<'_> {
    fn register(&mut self, ty: Ty) -> Result<RegId, String> {
        let number =
            u16::try_from(self.thread.regs.len()).map_err(|_| "too many registers".to_owned())?;
        self.thread.regs.push(Register {
            name: format!("${number}"),
            ty,
            init: Init::Int(0),
        });
        Ok(RegId(number))
    }

    fn vector(&mut self, elements: &[Instr]) -> Result<(), String> {
        let mut elements = elements.to_vec();
        // A destination may also be the address register.
        let defined: Vec<RegId> = elements.iter().filter_map(|e| e.op.defines()).collect();
        for element in &mut elements {
            if let Some(address) = element
                .op
                .address()
                .filter(|a| a.any(&|e| matches!(e, Expr::Reg(r) if defined.contains(r))))
                .cloned()
            {
                let dst = self.register(Ty::U64)?;
                self.put(
                    element,
                    Op::Assign {
                        dst,
                        value: address,
                    },
                );
                if let Some(address) = element.op.address_mut() {
                    *address = Expr::Reg(dst);
                }
            }
        }
        let choice = self.register(Ty::S32)?;
        let done = elements
            .iter()
            .map(|_| self.register(Ty::S32))
            .collect::<Result<Vec<_>, _>>()?;
        for &dst in &done {
            self.put(
                &elements[0],
                Op::Assign {
                    dst,
                    value: Expr::Const(0),
                },
            );
        }
        for _ in &elements {
            let mut over = Vec::new();
            for (k, element) in elements.iter().enumerate() {
                let was = self.put(
                    element,
                    Op::Branch {
                        cond: Expr::Reg(done[k]),
                        target: 0,
                    },
                );
                // The last remaining element is not a choice.
                let last = done[k + 1..]
                    .iter()
                    .fold(Expr::Const(1), |all, d| both(all, Expr::Reg(*d)));
                let must = self.put(
                    element,
                    Op::Branch {
                        cond: last,
                        target: 0,
                    },
                );
                self.put(
                    element,
                    Op::Choice {
                        dst: choice,
                        spurious: false,
                    },
                );
                let not = self.put(
                    element,
                    Op::Branch {
                        cond: Expr::Reg(choice),
                        target: 0,
                    },
                );
                self.aim(must);
                self.code.push(element.clone());
                self.put(
                    element,
                    Op::Assign {
                        dst: done[k],
                        value: Expr::Const(1),
                    },
                );
                over.push(self.put(
                    element,
                    Op::Branch {
                        cond: Expr::Const(1),
                        target: 0,
                    },
                ));
                self.aim(was);
                self.aim(not);
            }
            over.into_iter().for_each(|branch| self.aim(branch));
        }
        Ok(())
    }

    fn put(&mut self, like: &Instr, op: Op) -> usize {
        self.code.push(Instr {
            op,
            element: PUT_IN,
            ..like.clone()
        });
        self.code.len() - 1
    }

    /// Lets a branch lead to the next instruction.
    fn aim(&mut self, branch: usize) {
        let here = self.code.len();
        if let Some(target) = self.code[branch].op.target_mut() {
            *target = here;
        }
    }
}

fn both(a: Expr, b: Expr) -> Expr {
    Expr::Bin(BinOp::And, Ty::S32, Box::new(a), Box::new(b))
}
