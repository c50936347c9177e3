//! Host threads: `std::thread` and `std::jthread`.
//!
//! A thread is a thread of the host program that remains. Its start and its end are handed over by
//! flags, as a release and an acquire: the constructor synchronises with the start, and the end
//! with `join` (ISO C++, thread.thread.constr, thread.thread.member).
//!
//! # Invariants
//! - A variable that a thread captures by reference keeps its value while the thread runs. Memory
//!   may change.

use std::ops::Range;
use std::rc::Rc;

use super::code::words_of;
use super::machine::{Flow, Machine, element_of};
use super::parser::Read;
use super::tree::{HostBase, HostExpr, HostFunction};
use super::values::{AllocatedBy, Borrower, HostLambda, HostPlace, HostValue};
use program::Ty;

impl Machine<'_> {
    /// `std::thread t(f, 1)`
    pub(super) fn start_thread(
        &mut self,
        arguments: &[HostExpr],
        name: &str,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let [callee, rest @ ..] = arguments else {
            return Ok(HostValue::Unset);
        };
        let callee = self.value(callee)?;
        let mut values = Vec::new();
        for tree in rest {
            let value = self.value(tree)?;
            values.push(self.decayed(value));
        }
        let (function, scope) = match callee {
            HostValue::Closure(closure) => (closure.function.clone(), Some(closure)),
            HostValue::Function(name) => match self.code.function(&name).transpose()? {
                Some(function) => (function, None),
                None => return self.unfollowed_thread(range),
            },
            _ => return self.unfollowed_thread(range),
        };
        let number = self.state.threads.len();
        let name = self.unique(name);
        let starts = self.flag(&format!("{name}_starts"), range);
        self.flag(&format!("{name}_ends"), range);
        if takes_token(&function) {
            let stop = self.new_stop(&format!("{name}_stops"), range);
            self.state.stop_of_thread.insert(number, stop);
            values.insert(0, HostValue::Stop(stop));
        }
        self.memory_escapes();
        self.raise(&starts, range);
        self.state.threads.push((name.clone(), Vec::new()));
        self.follow_thread(number, &function, values, scope.as_ref(), range)?;
        if let Some(closure) = &scope {
            self.share(closure, Borrower::Thread(number));
        }
        Ok(HostValue::Thread(number))
    }

    /// Lets other threads access the memory that exists.
    pub(super) fn memory_escapes(&mut self) {
        for object in &mut self.state.memory {
            object.escapes |= !object.allocation.is_device();
        }
        self.state.begun = true;
    }

    fn unfollowed_thread<T>(&mut self, range: &Range<usize>) -> Read<T> {
        self.wrong(
            range,
            "what this thread runs is not worked out",
            "expected a function of this file, or a lambda",
            "name the function",
        )
    }

    /// A flag of the program that remains, which is 0 at first. Returns its name.
    pub(super) fn flag(&mut self, name: &str, range: &Range<usize>) -> String {
        let element = element_of(&HostBase::Int(Ty::S32));
        let memory = self.allocate(name, range, element, element.bytes(), AllocatedBy::Variable);
        self.zeroed(memory);
        self.state.memory[memory].escapes = true;
        self.state.memory[memory].name.clone()
    }

    pub(super) fn raise(&mut self, flag: &str, range: &Range<usize>) {
        let reference = reference(flag);
        self.emit(
            format!("{reference}.store(1, cuda::memory_order_release);"),
            range,
        );
    }

    pub(super) fn await_flag(&mut self, flag: &str, range: &Range<usize>) {
        let load = format!("{}.load(cuda::memory_order_acquire)", reference(flag));
        self.emit(format!("while ({load} == 0) {{ }}"), range);
    }

    /// Follows the code of a thread.
    fn follow_thread(
        &mut self,
        number: usize,
        function: &Rc<HostFunction>,
        values: Vec<HostValue>,
        scope: Option<&Rc<HostLambda>>,
        range: &Range<usize>,
    ) -> Read<()> {
        let name = self.state.threads[number].0.clone();
        let lines = std::mem::take(&mut self.state.lines);
        let thread = std::mem::replace(&mut self.thread, number + 1);
        let before: Vec<HostValue> = self.state.cells.iter().map(|c| c.value.clone()).collect();
        self.await_flag(&format!("{name}_starts"), range);
        let frames = self.frames.len();
        let flow = self.function(function, values, scope.map(|closure| &closure.scope));
        self.unless_late(flow, Flow::Exit)?;
        self.frames.truncate(frames);
        self.state.ended = false;
        self.raise(&format!("{name}_ends"), range);
        self.thread = thread;
        let own = std::mem::replace(&mut self.state.lines, lines);
        self.state.threads[number].1 = own;
        let changed = before
            .iter()
            .zip(&self.state.cells)
            .any(|(old, new)| *old != new.value);
        if changed {
            return self.shared_variable(&function.range);
        }
        Ok(())
    }

    pub(super) fn shared_variable<T>(&mut self, range: &Range<usize>) -> Read<T> {
        self.wrong(
            range,
            "threads share a variable that one of them changes",
            "expected variables of its own",
            "hand over values, or keep what is shared in memory: `int *p = new int`",
        )
    }

    /// Notes the variables that code captures by reference.
    pub(super) fn share(&mut self, closure: &HostLambda, by: Borrower) {
        let words = words_of(self.code, &closure.function.range);
        for (name, place) in &closure.scope {
            if let (HostPlace::Cell(at), true) = (place, words.contains(name)) {
                self.state.shared.push((*at, by));
            }
        }
    }

    /// Reports a variable that a running thread or a stop callback shares.
    pub(super) fn not_shared(&mut self, cell: usize, range: &Range<usize>) -> Read<()> {
        match self.state.shared.iter().any(|(at, _)| *at == cell) {
            true => self.shared_variable(range),
            false => Ok(()),
        }
    }

    /// Marks threads that nothing joins: the destructor of `std::thread` ends such a program (ISO
    /// C++, thread.thread.destr).
    pub(super) fn threads_end(&mut self) {
        let threads = self.state.threads.clone();
        for (number, (name, lines)) in threads.iter().enumerate() {
            if self.state.joined.contains(&number) {
                continue;
            }
            let Some(start) = lines.first().map(|line| line.range.clone()) else {
                continue;
            };
            self.mark_late_use(name, &start);
        }
    }

    /// `t.join()`
    pub(super) fn join_thread(&mut self, number: usize, range: &Range<usize>) -> Read<HostValue> {
        let name = self.state.threads[number].0.clone();
        self.await_flag(&format!("{name}_ends"), range);
        self.state
            .shared
            .retain(|(_, by)| *by != Borrower::Thread(number));
        self.state.joined.push(number);
        Ok(HostValue::Unset)
    }
}

/// Whether a function takes the token of its thread first.
fn takes_token(function: &HostFunction) -> bool {
    function.params.first().is_some_and(
        |param| matches!(&param.of.base, HostBase::Other(name) if name.ends_with("stop_token")),
    )
}

pub(super) fn reference(flag: &str) -> String {
    format!("cuda::atomic_ref<int, cuda::thread_scope_system>({flag}[0])")
}
