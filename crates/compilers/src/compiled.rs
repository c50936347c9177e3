//! Reads a compiler's output for operations: the accesses and fences of each PTX function, in
//! order.
//!
//! # Invariants
//! - The PTX front end interprets each instruction. Instructions that it cannot read become
//!   [`CompiledInstr::Unread`]; such an operation counts as neither weaker nor stronger.
//! - Parameters and the stack are not shared memory, so their accesses are skipped. Code that
//!   executes only if an address is on the stack is skipped, too; libcu++'s functions begin with
//!   such a test.

use program::Tag;
use std::collections::{HashMap, HashSet};
use std::fmt;

use front::litmus;
use front::mapping::MappingStep;
use petgraph::algo::dominators::simple_fast;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;
use petgraph::visit::DfsPostOrder;
use program::Op;

/// A relevant instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledItem {
    /// The instruction.
    pub what: CompiledInstr,
    /// Whether it is in a loop, for example if an operation consists of compare-exchanges.
    pub is_looped: bool,
    /// Whether some path through the function avoids it.
    pub is_optional: bool,
}

/// The kind of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompiledInstr {
    /// An access or a fence.
    Step(MappingStep),
    /// A read-modify-write without a result, which is a separate PTX instruction: `red`.
    Reduction(MappingStep),
    /// A call of an undefined function.
    Call(String),
    /// An instruction that the front end does not read, and the reason.
    Unread(String, String),
}

impl fmt::Display for CompiledItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            CompiledInstr::Step(step) => write!(f, "{step}")?,
            CompiledInstr::Reduction(step) => {
                write!(f, "{}", step.to_string().replace("atom", "red"))?
            }
            CompiledInstr::Call(name) => write!(f, "call {name}")?,
            CompiledInstr::Unread(opcode, _) => write!(f, "{opcode}")?,
        }
        match (self.is_looped, self.is_optional) {
            (true, _) => write!(f, " in a loop"),
            (false, true) => write!(f, " on some paths"),
            (false, false) => Ok(()),
        }
    }
}

/// The functions with a body in a PTX text, by name.
pub fn functions(text: &str) -> HashMap<String, Vec<CompiledItem>> {
    let text: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = HashMap::new();
    let mut rest = text.as_str();
    while let Some(at) = [".func", ".entry"]
        .iter()
        .filter_map(|word| rest.find(word))
        .min()
    {
        rest = rest[at..]
            .split_once(char::is_whitespace)
            .map_or("", |(_, rest)| rest);
        let Some(end) = rest.find(['{', ';']) else {
            break;
        };
        let (head, body) = rest.split_at(end);
        if body.starts_with(';') {
            continue;
        }
        let Some(length) = matching(body) else { break };
        if let Some(name) = name(head) {
            found.insert(name.to_owned(), items(&body[1..length]));
        }
        rest = &body[length..];
    }
    found
}

/// The position of the brace that closes the first one.
fn matching(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// The name in a function's head: after its result, before its parameters.
fn name(head: &str) -> Option<&str> {
    let head = head.trim_start();
    let head = if head.starts_with('(') {
        head.split_once(')')?.1
    } else {
        head
    };
    let name = head.split('(').next()?.trim();
    name.split_whitespace().next()
}

/// A statement, reduced to its relevant part.
#[derive(Debug)]
enum Statement<'a> {
    /// A relevant instruction.
    Kept(CompiledInstr),
    /// A jump, which may be conditional.
    Branch { to: &'a str, is_conditional: bool },
    /// The end of the function.
    End,
    /// Any other statement, or a jump that is never taken.
    Other,
}

/// The accesses and fences of a function, in a possible order of execution.
fn items(body: &str) -> Vec<CompiledItem> {
    let mut statements = Vec::new();
    let mut labels: HashMap<&str, usize> = HashMap::new();
    let mut of_the_stack: HashSet<&str> = HashSet::new();
    for statement in body.split([';', '{', '}']) {
        let mut statement = statement.trim();
        while let Some((label, rest)) = statement
            .split_once(':')
            .filter(|(l, _)| l.chars().all(is_name))
        {
            labels.insert(label, statements.len());
            statement = rest.trim();
        }
        let guard = statement
            .strip_prefix('@')
            .and_then(|rest| rest.split_once(char::is_whitespace));
        let (opcode, operands) = {
            let unguarded = guard.map_or(statement, |(_, rest)| rest.trim());
            unguarded
                .split_once(char::is_whitespace)
                .unwrap_or((unguarded, ""))
        };
        if opcode == "isspacep.local" {
            of_the_stack.extend(operands.split(',').next().map(str::trim));
        }
        // Whether it executes, assuming that no address is on the stack.
        let is_never = guard.is_some_and(|(guard, _)| of_the_stack.contains(guard));
        let is_always = guard.is_none_or(|(g, _)| {
            g.strip_prefix('!')
                .is_some_and(|g| of_the_stack.contains(g))
        });
        statements.push(if is_never {
            Statement::Other
        } else {
            read_statement(opcode, operands, !is_always)
        });
    }

    // Nodes are the points between statements: the function enters at the first and leaves at the
    // last.
    let exit = statements.len();
    let mut flow: DiGraph<(), ()> = DiGraph::new();
    let places: Vec<_> = (0..=exit).map(|_| flow.add_node(())).collect();
    for (at, statement) in statements.iter().enumerate() {
        let (to, is_passed) = match statement {
            Statement::Branch { to, is_conditional } => (labels.get(to), *is_conditional),
            Statement::End => (Some(&exit), false),
            Statement::Kept(_) | Statement::Other => (None, true),
        };
        let next = is_passed.then_some(at + 1);
        for to in to.copied().into_iter().chain(next) {
            flow.add_edge(places[at], places[to], ());
        }
    }
    let looped: HashSet<_> = kosaraju_scc(&flow)
        .into_iter()
        .filter(|component| component.len() > 1)
        .flatten()
        .collect();
    let dominators = simple_fast(&flow, places[0]);
    let always: Option<HashSet<_>> = dominators.dominators(places[exit]).map(Iterator::collect);
    let mut order = Vec::new();
    let mut walk = DfsPostOrder::new(&flow, places[0]);
    while let Some(place) = walk.next(&flow) {
        order.push(place);
    }
    order
        .into_iter()
        .rev()
        .filter_map(|place| match statements.get(place.index()) {
            Some(Statement::Kept(what)) => Some(CompiledItem {
                what: what.clone(),
                is_looped: looped.contains(&place),
                is_optional: always
                    .as_ref()
                    .is_some_and(|always| !always.contains(&place)),
            }),
            _ => None,
        })
        .collect()
}

fn read_statement<'a>(opcode: &str, operands: &'a str, is_conditional: bool) -> Statement<'a> {
    let mut words = opcode.split('.');
    match words.next().unwrap_or_default() {
        "bra" => Statement::Branch {
            to: operands.trim(),
            is_conditional,
        },
        "ret" | "exit" | "trap" if !is_conditional => Statement::End,
        "call" => {
            let callee = operands.split([',', '(', ')']).map(str::trim).find(|w| {
                !w.is_empty()
                    && w.chars().all(is_name)
                    && !w.starts_with("retval")
                    && !w.starts_with("param")
            });
            Statement::Kept(CompiledInstr::Call(
                callee.unwrap_or("an address").to_owned(),
            ))
        }
        "ld" | "st" | "atom" | "red" | "fence" | "membar"
            if !words.any(|w| matches!(w, "param" | "local")) =>
        {
            // A predicated instruction that is not a jump.
            match read(opcode) {
                CompiledInstr::Unread(opcode, why) => {
                    Statement::Kept(CompiledInstr::Unread(opcode, why))
                }
                _ if is_conditional => Statement::Kept(CompiledInstr::Unread(
                    opcode.to_owned(),
                    "it has a predicate".to_owned(),
                )),
                what => Statement::Kept(what),
            }
        }
        _ => Statement::Other,
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Interprets an instruction with the front end.
fn read(opcode: &str) -> CompiledInstr {
    let bits: u32 = opcode
        .split('.')
        .rev()
        .find_map(|word| {
            word.strip_prefix(['b', 'u', 's', 'f'])
                .and_then(|bits| bits.parse().ok())
        })
        .unwrap_or(32);
    let first = opcode.split('.').next().unwrap_or_default();
    let operands = match first {
        "ld" => " r, [x]",
        "st" => " [x], 1",
        "red" => " [x], 1",
        "atom" if opcode.split('.').any(|word| word == "cas") => " r, [x], 0, 1",
        "atom" => " r, [x], 1",
        _ => "",
    };
    let test = format!(
        "name = \"x\"\n[memory]\nx = {{ type = \"u{bits}\" }}\n[[thread]]\ncta = 0\ncode = \
         '{opcode}{operands}'\n"
    );
    fn unread(why: &str, opcode: &str) -> CompiledInstr {
        CompiledInstr::Unread(opcode.to_owned(), why.to_owned())
    }
    let mut tests = match litmus::parse("x.toml", test.as_bytes()) {
        Ok(tests) => tests,
        Err(found) => return unread(found.first().map_or("", |d| &d.message), opcode),
    };
    let code = tests
        .pop()
        .and_then(|mut test| test.program.threads.pop())
        .map(|thread| thread.code);
    for mut op in code.into_iter().flatten().map(|instr| instr.op) {
        let reduction = op.has(Tag::Reduction);
        if reduction {
            op.accesses_mut()
                .for_each(|access| access.tags = access.tags.without(&[Tag::Reduction]));
        }
        if let Some(step) = MappingStep::of(&op) {
            return if reduction {
                CompiledInstr::Reduction(step)
            } else {
                CompiledInstr::Step(step)
            };
        }
        if !matches!(op, Op::Assign { .. }) {
            break;
        }
    }
    unread("it is neither an access nor a fence", opcode)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(body: &str) -> String {
        let text = format!(
            ".visible .func  (.param .b32 func_retval0) f(\n\t.param .b64 \
             f_param_0\n)\n{{\n{body}\n}}\n"
        );
        let functions = functions(&text);
        functions["f"]
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ")
    }

    #[test]
    fn instructions_mean_what_the_front_end_says() {
        assert_eq!(
            told("ld.param.u64 %rd1, [f_param_0]; // comment ld.u32\n ld.u32 %r1, [%rd1];"),
            "ld.weak"
        );
        assert_eq!(
            told("ld.volatile.u32 %r1, [%rd1]; st.release.gpu.u32 [%rd1], %r1;"),
            "ld.volatile; st.release.gpu"
        );
        // The defaults: relaxed, device scope.
        assert_eq!(
            told("atom.global.add.u32 %r1, [%rd1], 1;"),
            "atom.relaxed.gpu"
        );
        assert_eq!(
            told("atom.add.acquire.cta.u32 %r1,[%rd1],%r5;"),
            "atom.acquire.cta"
        );
        assert_eq!(
            told("atom.cas.b64 %rd3, [%rd1], %rd2, %rd4;"),
            "atom.relaxed.gpu"
        );
        assert_eq!(told("red.global.add.u32 [%rd1], 1;"), "red.relaxed.gpu");
        assert_eq!(
            told("membar.sys; fence.acq_rel.cta;"),
            "fence.sc.sys; fence.acq_rel.cta"
        );
    }

    #[test]
    fn what_stands_in_a_loop_is_told() {
        let body = "ld.u32 %r1, [%rd2];\n$L_1:\n atom.cas.b32 %r2, [%rd2], %r1, %r3;\n @%p1 bra \
            $L_1;\n fence.sc.gpu;";
        assert_eq!(
            told(body),
            "ld.weak; atom.relaxed.gpu in a loop; fence.sc.gpu"
        );
    }

    #[test]
    fn instructions_come_in_the_order_of_execution() {
        let body =
            "bra.uni L1; L2: fence.sc.gpu; ret; L1: ld.relaxed.gpu.u32 %r1, [%rd1]; bra.uni L2;";
        assert_eq!(told(body), "ld.relaxed.gpu; fence.sc.gpu");
        let body = "ld.relaxed.gpu.u32 %r1, [%rd1]; @%p1 bra L1; fence.sc.gpu; L1: ret;";
        assert_eq!(told(body), "ld.relaxed.gpu; fence.sc.gpu on some paths");
        // A predicated instruction is not a jump, and a step cannot express it.
        assert_eq!(
            told("@%p1 fence.sc.gpu; @!%p1 st.u32 [%rd1], 1;"),
            "fence.sc.gpu; st.u32"
        );
    }

    #[test]
    fn what_is_for_the_stack_alone_is_passed_over() {
        let body = "isspacep.local %p2, %rd1; @%p2 bra L1; atom.add.relaxed.gpu.u32 %r1, [%rd1], \
                    1; ret; \
                    L1: ld.u32 %r1, [%rd1]; ret;";
        assert_eq!(told(body), "atom.relaxed.gpu");
        let body = "isspacep.local %p2, %rd1; @!%p2 bra L1; ld.u32 %r1, [%rd1]; ret; \
                    L1: atom.add.relaxed.gpu.u32 %r1, [%rd1], 1; ret;";
        assert_eq!(told(body), "atom.relaxed.gpu");
        let body = "isspacep.shared %p2, %rd1; @%p2 bra L1; st.u32 [%rd1], 1; ret; L1: ld.u32 \
            %r1, [%rd1]; ret;";
        assert_eq!(told(body).matches("on some paths").count(), 2);
    }

    #[test]
    fn the_stack_is_passed_over_and_calls_are_told() {
        assert_eq!(
            told("ld.local.u8 %r1, [%rd3]; st.volatile.local.u32 [%rd3], %r2; ret;"),
            ""
        );
        let call = "{ .param .b64 param0; st.param.b64 [param0+0], %rd1; call.uni (retval0), \
        _Z4loadv, ( param0 ); }";
        assert_eq!(told(call), "call _Z4loadv");
    }

    #[test]
    fn what_the_front_end_does_not_read_is_no_step() {
        let functions = functions(
            ".visible .entry k()\n{ ld.relaxed.moon.u32 %r1, [%rd1]; }\n.extern .func g();\n",
        );
        assert!(matches!(functions["k"][0].what, CompiledInstr::Unread(..)));
        assert_eq!(functions.len(), 1);
    }
}
