//! Follows branches and loops whose condition depends on the device.
//!
//! # How
//! - A branch that only accesses memory of the host stays a branch of the program that remains.
//! - A branch that ends the program without a call of the runtime stays, without its end: the other
//!   way is followed.
//! - Any other branch is a choice: each way is a program of its own.
//! - A loop stays, if its body does not call the runtime but to ask. Else its iterations are
//!   choices, and a few are followed.

use std::ops::Range;

use super::machine::{Flow, Machine};
use super::parser::Read;
use super::tree::{HostExpr, HostStmt};
use super::values::{HostLine, HostValue, ProgramState};

/// Iterations of a loop that are followed if the device decides how many there are.
const MOST_ITERATIONS: usize = 2;

/// Repetitions until the values of a loop do not change.
const MOST_ROUNDS: usize = 8;

impl Machine<'_> {
    /// Decides which way to go.
    pub(super) fn decide(&mut self, range: &Range<usize>) -> Read<bool> {
        if self.inside {
            return self.wrong(
                range,
                "this depends on the device",
                "expected a condition that the host knows, in a function that the program does not \
                 call itself",
                "compute it before the call",
            );
        }
        let way = self.way();
        self.choices.push((range.clone(), way));
        Ok(way)
    }

    /// The next choice of this way through the program.
    pub(super) fn way(&mut self) -> bool {
        let way = self.plan.get(self.decided.len()).copied().unwrap_or(true);
        self.decided.push(way);
        way
    }

    /// `if`
    pub(super) fn branch(
        &mut self,
        cond: &HostExpr,
        then: &HostStmt,
        other: Option<&HostStmt>,
    ) -> Read<Flow> {
        let value = self.value(cond)?;
        match (self.truth(&value), other) {
            (Some(true), _) => self.statement(then),
            (Some(false), Some(other)) => self.statement(other),
            (Some(false), None) => Ok(Flow::Next),
            (None, _) => self.open_branch(&value, cond, then, other),
        }
    }

    /// A branch whose condition is not known.
    fn open_branch(
        &mut self,
        value: &HostValue,
        cond: &HostExpr,
        then: &HostStmt,
        other: Option<&HostStmt>,
    ) -> Read<Flow> {
        if self.long_loops > 0 {
            let label = "the loop around it is left out";
            return self.too_large(&cond.range, "this depends on the device", label);
        }
        let condition = self.condition(value, &cond.range);
        let before = self.state.clone();
        let decided = (self.decided.len(), self.choices.len());
        self.state.begun = true;
        let first = self.statement(then)?;
        let mut taken = std::mem::replace(&mut self.state, before.clone());
        self.state.begun = true;
        self.keep_registers(&taken);
        let second = match other {
            Some(other) => self.statement(other)?,
            None => Flow::Next,
        };
        let mut left = std::mem::take(&mut self.state);
        let from = before.lines.len();
        let (lines, others) = (taken.lines.split_off(from), left.lines.split_off(from));
        let silent = [&lines, &others].map(|lines| !lines.iter().any(|line| line.calls()));
        let ends = [&first, &second].map(|flow| self.ends(flow));
        fn made(state: &ProgramState) -> usize {
            state.memory.len() + state.streams.len() + state.events.len() + state.threads.len()
        }
        let same = made(&taken) == made(&before) && made(&left) == made(&before);
        let parts = [lines, others];
        if silent == [true, true] && first == second && same {
            self.state = merged(taken, left, before.begun);
            self.emit_branch(&condition, parts, &cond.range);
            return Ok(first);
        }
        // The way that ends here has nothing behind it.
        for (end, way) in [(0, 1), (1, 0)] {
            if silent[end] && ends[end] && !ends[way] {
                let [then, other] = parts;
                let (flow, state, then, behind) = match end {
                    0 => (second, left, then, other),
                    _ => (first, taken, other, then),
                };
                self.state = state;
                self.state.begun = before.begun || !then.is_empty() || !behind.is_empty();
                let not = if end == 0 { "" } else { "!" };
                let text = format!("{not}({condition} != 0)");
                self.emit_branch(&text, [then, Vec::new()], &cond.range);
                self.state.lines.extend(behind);
                return Ok(flow);
            }
        }
        // The choices inside of the two ways belong to the way that is taken.
        self.decided.truncate(decided.0);
        self.choices.truncate(decided.1);
        self.state = before;
        match (self.decide(&cond.range)?, other) {
            (true, _) => self.statement(then),
            (false, Some(other)) => self.statement(other),
            (false, None) => Ok(Flow::Next),
        }
    }

    fn keep_registers(&mut self, other: &ProgramState) {
        self.state.registers = self.state.registers.max(other.registers);
        self.state.names = other.names.clone();
    }

    fn ends(&self, flow: &Flow) -> bool {
        let in_main = self.frames.len() == 1 && self.thread == 0;
        matches!(flow, Flow::Exit) || (in_main && matches!(flow, Flow::Return(_)))
    }

    fn emit_branch(
        &mut self,
        condition: &str,
        [then, other]: [Vec<HostLine>; 2],
        at: &Range<usize>,
    ) {
        if then.is_empty() && other.is_empty() {
            return;
        }
        self.emit(format!("if ({condition}) {{"), at);
        self.state.lines.extend(then);
        if !other.is_empty() {
            self.emit("} else {".to_owned(), at);
            self.state.lines.extend(other);
        }
        self.emit("}".to_owned(), at);
    }

    /// A loop.
    pub(super) fn repeat(
        &mut self,
        cond: Option<&HostExpr>,
        step: Option<&HostExpr>,
        body: &HostStmt,
        test_last: bool,
    ) -> Read<Flow> {
        let mut open = 0;
        let mut first = test_last;
        loop {
            let before = self.state.clone();
            let holds = match cond {
                Some(cond) if !first => {
                    let value = self.value(cond)?;
                    match self.truth(&value) {
                        Some(holds) => holds,
                        None => {
                            let at = &cond.range;
                            self.state = before;
                            if self.loop_remains(cond, step, body)? {
                                return Ok(Flow::Next);
                            }
                            self.value(cond)?;
                            self.next_iteration(&mut open, at)?
                        }
                    }
                }
                _ => true,
            };
            first = false;
            if !holds {
                return Ok(Flow::Next);
            }
            match self.statement(body)? {
                Flow::Break => return Ok(Flow::Next),
                Flow::Next | Flow::Continue => {}
                flow => return Ok(flow),
            }
            if let Some(step) = step {
                self.value(step)?;
            }
        }
    }

    /// Whether a loop with calls goes on: both ways are followed, up to a few iterations.
    fn next_iteration(&mut self, open: &mut usize, at: &Range<usize>) -> Read<bool> {
        *open += 1;
        if *open > MOST_ITERATIONS {
            let line = self.code.line(at);
            let note = format!(
                "the loop in line {line} is followed for at most {MOST_ITERATIONS} iterations, as \
                 the device decides how many there are"
            );
            if !self.bounded.contains(&note) {
                self.bounded.push(note);
            }
            return Ok(false);
        }
        self.decide(at)
    }

    /// Leaves a loop in the program that remains, if its body does not call the runtime.
    fn loop_remains(
        &mut self,
        cond: &HostExpr,
        step: Option<&HostExpr>,
        body: &HostStmt,
    ) -> Read<bool> {
        let mut before = self.state.clone();
        let decided = (self.decided.len(), self.choices.len());
        let start = before.lines.len();
        for _ in 0..MOST_ROUNDS {
            self.state = before.clone();
            self.state.begun = true;
            let value = self.value(cond)?;
            let condition = self.condition(&value, &cond.range);
            let tested = self.state.lines.len();
            let flow = self.statement(body)?;
            if let Some(step) = step {
                self.value(step)?;
            }
            let new = self.state.memory.len() + self.state.streams.len() + self.state.threads.len();
            let old = before.memory.len() + before.streams.len() + before.threads.len();
            let calls = self.state.lines[start..].iter().any(|line| line.calls());
            if calls || new != old || !matches!(flow, Flow::Next | Flow::Continue) {
                self.decided.truncate(decided.0);
                self.choices.truncate(decided.1);
                self.state = before;
                return Ok(false);
            }
            if forget_changes(&mut before, &self.state) {
                continue;
            }
            let body = self.state.lines.split_off(tested);
            let tests = self.state.lines.split_off(start);
            let begun = before.begun;
            self.state.begun = begun;
            if tests.is_empty() && body.is_empty() {
                return Ok(true);
            }
            self.state.begun = true;
            self.emit("while (true) {".to_owned(), &cond.range);
            self.state.lines.extend(tests);
            self.emit(format!("if (!({condition} != 0)) break;"), &cond.range);
            self.state.lines.extend(body);
            self.emit("}".to_owned(), &cond.range);
            return Ok(true);
        }
        self.state = before;
        Ok(false)
    }
}

/// Makes unknown what a loop changes; whether there was something new.
fn forget_changes(before: &mut ProgramState, after: &ProgramState) -> bool {
    let mut changed = false;
    for (old, new) in before.cells.iter_mut().zip(&after.cells) {
        if old.value != new.value && old.value != HostValue::Unknown {
            old.value = HostValue::Unknown;
            changed = true;
        }
    }
    for (old, new) in before.memory.iter_mut().zip(&after.memory) {
        changed |= old.shadow.keep_common(&new.shadow);
    }
    changed
}

/// The state behind both ways of a branch.
fn merged(mut a: ProgramState, b: ProgramState, begun: bool) -> ProgramState {
    for (old, new) in a.cells.iter_mut().zip(&b.cells) {
        if old.value != new.value {
            old.value = HostValue::Unknown;
        }
    }
    for (old, new) in a.memory.iter_mut().zip(&b.memory) {
        old.shadow.keep_common(&new.shadow);
    }
    a.registers = a.registers.max(b.registers);
    // What a branch writes is no initial value.
    a.begun = begun || a.lines.len() != b.lines.len() || a.begun;
    a
}
