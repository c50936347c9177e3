//! Leaves out long loops of the host where only the launches of a program count.
//!
//! # Invariants
//! - A loop is left out if it has many iterations, or a branch that the device decides.
//! - It calls neither the runtime nor a function of the file. Behind it, all memory and the
//!   variables that it may change are unknown.
//! - A branch that ends the program or the function within such a loop is not taken.

use std::collections::BTreeSet;

use super::machine::{Flow, Machine};
use super::parser::Read;
use super::tree::{HostDeclared, HostExpr, HostExprKind, HostLoop, HostStmt, HostStmtKind};
use super::values::{HostPlace, HostValue};

/// Statements of a loop that are followed before it is left out.
const MOST_LOOP_STEPS: usize = 1_000;

/// Functions of objects that change nothing.
const QUERIES: [&str; 9] = [
    "size", "length", "count", "at", "data", "begin", "end", "str", "c_str",
];

/// The changes that a loop may make.
#[derive(Default)]
struct LoopChanges {
    /// Variables, by name.
    names: BTreeSet<String>,
    /// Whether the loop does more than it may.
    acts: bool,
}

impl Machine<'_> {
    /// Follows a loop, or leaves it out if it is long.
    pub(super) fn long_loop(&mut self, again: &HostLoop<'_>) -> Read<Flow> {
        let mut changes = LoopChanges::default();
        for tree in [again.cond, again.step].into_iter().flatten() {
            self.changes_of_tree(tree, &mut changes);
        }
        self.changes_of(again.body, &mut changes);
        if changes.acts {
            return self.repeat(again.cond, again.step, again.body, again.test_last);
        }
        let (state, frames) = (self.state.clone(), self.frames.clone());
        let decided = (self.decided.len(), self.choices.len());
        let (steps, most) = (self.steps, self.most_steps);
        self.most_steps = most.min(steps + MOST_LOOP_STEPS);
        self.long_loops += 1;
        let result = self.repeat(again.cond, again.step, again.body, again.test_last);
        let all = self.steps;
        self.most_steps = most;
        self.long_loops -= 1;
        match result {
            Err(wrong) if wrong.id == "too-large" && all <= most => {
                (self.state, self.frames, self.steps) = (state, frames, steps);
                self.decided.truncate(decided.0);
                self.choices.truncate(decided.1);
                self.forget_changes(&changes);
                Ok(Flow::Next)
            }
            result => result,
        }
    }

    /// Leaves out a loop over the elements of large memory; whether it did.
    pub(super) fn leaves_out(
        &mut self,
        over: &HostValue,
        declared: &HostDeclared,
        body: &HostStmt,
    ) -> bool {
        let HostValue::Buffer(memory) = over else {
            return false;
        };
        if self.state.memory[*memory].length() <= MOST_LOOP_STEPS {
            return false;
        }
        let mut changes = LoopChanges::default();
        self.changes_of(body, &mut changes);
        changes.names.remove(&declared.name);
        if !changes.acts {
            self.forget_changes(&changes);
        }
        !changes.acts
    }

    /// Lets the variables that a loop may change, and all memory, have any value.
    fn forget_changes(&mut self, changes: &LoopChanges) {
        for object in &mut self.state.memory {
            object.shadow.fill(None);
            object.initial.fill(None);
            object.open = true;
        }
        for name in &changes.names {
            let Some(HostPlace::Cell(cell)) = self.find(name) else {
                continue;
            };
            match self.state.cells[cell].value {
                HostValue::Cells(first, count) => {
                    let cells = &mut self.state.cells[first..first + count];
                    cells
                        .iter_mut()
                        .for_each(|cell| cell.value = HostValue::Unknown);
                }
                HostValue::Buffer(_) => {}
                _ => self.state.cells[cell].value = HostValue::Unknown,
            }
        }
    }

    fn changes_of(&self, stmt: &HostStmt, changes: &mut LoopChanges) {
        match &stmt.kind {
            HostStmtKind::Empty
            | HostStmtKind::Break
            | HostStmtKind::Continue
            | HostStmtKind::Case(_)
            | HostStmtKind::Return(_) => {}
            HostStmtKind::Declare(all) => {
                for declared in all {
                    // It may name another variable.
                    changes.acts |= declared.of.reference;
                    let value = declared.value.iter();
                    value.for_each(|tree| self.changes_of_tree(tree, changes));
                }
            }
            HostStmtKind::Expr(tree) => self.changes_of_tree(tree, changes),
            HostStmtKind::If(cond, then, other) => {
                self.changes_of_tree(cond, changes);
                let ways = std::iter::once(then).chain(other);
                ways.for_each(|stmt| self.changes_of(stmt, changes));
            }
            HostStmtKind::Loop {
                init,
                cond,
                step,
                body,
                ..
            } => {
                let trees = cond.iter().chain(step);
                trees.for_each(|tree| self.changes_of_tree(tree, changes));
                let parts = init.iter().chain(std::iter::once(body));
                parts.for_each(|stmt| self.changes_of(stmt, changes));
            }
            HostStmtKind::Block(all) => all.iter().for_each(|stmt| self.changes_of(stmt, changes)),
            HostStmtKind::Elements(..)
            | HostStmtKind::Switch(..)
            | HostStmtKind::Try(..)
            | HostStmtKind::Throw
            | HostStmtKind::Label(_)
            | HostStmtKind::Goto(_) => changes.acts = true,
        }
    }

    fn changes_of_tree(&self, tree: &HostExpr, changes: &mut LoopChanges) {
        match &tree.kind {
            HostExprKind::Int(..)
            | HostExprKind::Float(_)
            | HostExprKind::Str(_)
            | HostExprKind::Name(_)
            | HostExprKind::SizeOfType(_)
            | HostExprKind::SizeOf(_) => {}
            HostExprKind::Unary("&", of) | HostExprKind::Step(of, ..) => {
                self.changes_variable(of, changes);
            }
            HostExprKind::Unary(_, of)
            | HostExprKind::Member(of, _)
            | HostExprKind::Cast(_, of) => self.changes_of_tree(of, changes),
            HostExprKind::Assign(_, to, from) => {
                self.changes_variable(to, changes);
                self.changes_of_tree(from, changes);
            }
            HostExprKind::Binary(_, a, b)
            | HostExprKind::Comma(a, b)
            | HostExprKind::Index(a, b) => {
                self.changes_of_tree(a, changes);
                self.changes_of_tree(b, changes);
            }
            HostExprKind::Choice(a, b, c) => {
                let all = [a, b, c].into_iter();
                all.for_each(|tree| self.changes_of_tree(tree, changes));
            }
            HostExprKind::Call(callee, arguments) => {
                changes.acts |= !self.is_harmless(callee);
                arguments
                    .iter()
                    .for_each(|tree| self.changes_of_tree(tree, changes));
            }
            HostExprKind::Construct(_, arguments) | HostExprKind::Braces(arguments) => {
                arguments
                    .iter()
                    .for_each(|tree| self.changes_of_tree(tree, changes));
            }
            HostExprKind::Launch(_)
            | HostExprKind::New(..)
            | HostExprKind::Place(..)
            | HostExprKind::Delete(_)
            | HostExprKind::Instance(..)
            | HostExprKind::Initialize(..)
            | HostExprKind::Lambda(..) => changes.acts = true,
        }
    }

    /// Notes the variable that an assignment is to, or that holds the address of its memory.
    fn changes_variable(&self, to: &HostExpr, changes: &mut LoopChanges) {
        match &to.kind {
            HostExprKind::Name(name) => {
                changes.names.insert(name.clone());
            }
            // All memory is forgotten.
            HostExprKind::Index(of, at) => {
                if !self.is_address(of) {
                    self.changes_variable(of, changes);
                }
                self.changes_of_tree(at, changes);
            }
            HostExprKind::Unary("*", of) => self.changes_of_tree(of, changes),
            HostExprKind::Member(of, _) => self.changes_variable(of, changes),
            _ => changes.acts = true,
        }
    }

    /// Whether a variable holds the address of memory.
    fn is_address(&self, tree: &HostExpr) -> bool {
        let HostExprKind::Name(name) = &tree.kind else {
            return false;
        };
        let Some(HostPlace::Cell(cell)) = self.find(name) else {
            return false;
        };
        let value = &self.state.cells[cell].value;
        matches!(value, HostValue::Pointer(_) | HostValue::Buffer(_))
    }

    /// Whether a call changes nothing but memory.
    fn is_harmless(&self, callee: &HostExpr) -> bool {
        match &callee.kind {
            HostExprKind::Member(_, method) => QUERIES.contains(&method.as_str()),
            HostExprKind::Name(name) => {
                let bare = name.strip_prefix("std::").unwrap_or(name);
                let of_runtime = ["cu", "cl", "swap", "exchange"];
                let of_runtime = of_runtime.iter().any(|word| bare.starts_with(word));
                match self.find(name) {
                    // A distribution of random numbers.
                    Some(HostPlace::Cell(cell)) => {
                        matches!(self.state.cells[cell].value, HostValue::Unknown)
                    }
                    Some(_) => false,
                    None => !of_runtime && self.code.function(name).is_none(),
                }
            }
            _ => false,
        }
    }
}
