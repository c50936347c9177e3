//! Propositions as text that [`front::litmus::condition::parse`] reads back.

use crate::litmus::{Atom, ConditionTerm, Observable, Prop};
use crate::{BinOp, LocId, LocationKind, Program};

/// A proposition as text.
pub fn show(prop: &Prop, program: &Program) -> String {
    let mut out = String::new();
    write(prop, program, 0, &mut out);
    out
}

/// An observable as text: `P1:r0`, `x`, `x[1]`, `P0:x`.
pub fn show_observable(observable: Observable, program: &Program) -> String {
    match observable {
        Observable::Reg(t, r) => {
            let thread = program.thread(t);
            format!("{}:{}", thread.name, thread.regs[usize::from(r.0)].name)
        }
        Observable::Mem { loc, index, viewer } => {
            let place = element(program, loc, index);
            viewer.map_or(place.clone(), |t| {
                format!("{}:{place}", program.thread(t).name)
            })
        }
    }
}

/// `strength` is the context: 0 the whole proposition, 1 part of a disjunction, 2 part of a
/// conjunction, 3 under a negation.
fn write(prop: &Prop, program: &Program, strength: u8, out: &mut String) {
    let (parts, word, own) = match prop {
        Prop::And(parts) => (parts, " /\\ ", 1),
        Prop::Or(parts) => (parts, " \\/ ", 0),
        Prop::Not(inner) => {
            out.push('~');
            return write(inner, program, 3, out);
        }
        Prop::Cmp(op, _, a, b) => {
            let text = format!("{} {} {}", side(a, program), op.symbol(), side(b, program));
            // `~x == 1` would parse as `~(x == 1)`; the parentheses are for human readers.
            return if strength == 3 {
                out.push_str(&format!("({text})"))
            } else {
                out.push_str(&text)
            };
        }
    };
    if parts.is_empty() {
        return out.push_str(if own == 1 { "true" } else { "false" });
    }
    // A nested list of the same kind keeps its parentheses, so that it parses back as nested.
    let nested = parts.len() == 1 || strength > own;
    if nested {
        out.push('(');
    }
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            out.push_str(word);
        }
        write(part, program, own + 1, out);
    }
    if nested {
        out.push(')');
    }
}

/// A compound operand keeps its parentheses, except a sum on the left of another sum.
fn side(of: &ConditionTerm, program: &Program) -> String {
    let (op, a, b) = match of {
        ConditionTerm::Atom(a) => return atom(*a, program),
        ConditionTerm::Of(op, a, b) => (*op, a, b),
    };
    let symbol = match op {
        BinOp::Add => "+",
        BinOp::Sub => "-",
        _ => "*",
    };
    fn inner(of: &ConditionTerm, bare: bool, program: &Program) -> String {
        match of {
            ConditionTerm::Of(..) if !bare => format!("({})", side(of, program)),
            of => side(of, program),
        }
    }
    format!(
        "{} {symbol} {}",
        inner(a, symbol != "*", program),
        inner(b, false, program)
    )
}

fn atom(atom: Atom, program: &Program) -> String {
    match atom {
        Atom::Const(v) => v.to_string(),
        Atom::Observable(o) => show_observable(o, program),
        Atom::Address { loc, index } => format!("&{}", element(program, loc, index)),
    }
}

fn element(program: &Program, loc: LocId, index: u32) -> String {
    let name = &program.location(loc).name;
    match &program.location(program.object(loc)).kind {
        LocationKind::Object { layout, init, .. } if layout.cells() > 1 => {
            format!("{name}{}", layout.suffix(index, init.len()))
        }
        // The object's name stands for its first element.
        _ if index == 0 => name.clone(),
        _ => format!("{name}[{index}]"),
    }
}
