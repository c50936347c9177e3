//! Stop states: `std::stop_source`, `std::stop_token` and `std::stop_callback`.
//!
//! A stop state is a flag of the host program that remains. A callback has two more: whether it is
//! registered, taken or withdrawn, and whether its function has returned. A request takes the
//! registered callbacks, and runs their functions in its own thread. The constructor takes its
//! callback if it sees the request.
//!
//! # Invariants
//! - The function of a callback runs at most once. It runs once if the request is made before the
//!   destructor withdraws it: the flags are sequentially consistent.
//! - The destructor waits for a function that another thread runs.
//! - A variable that a callback captures by reference keeps its value while the callback exists.
//!
//! # Sources
//! - ISO C++, thread.stoptoken.intro, stopsource.mem, stopcallback.cons.
//!
//! # Where we differ
//! - A request also synchronises with the registration of a callback that was withdrawn before.

use std::ops::Range;
use std::rc::Rc;

use super::machine::{Flow, Machine};
use super::parser::Read;
use super::threads::reference;
use super::tree::{HostExpr, HostFunction};
use super::values::{Borrower, HostLine, HostValue, LineEffect, StopCallback};
use program::Ty;

/// Callbacks of one stop state. The text leaves their order open, so all orders are followed.
const MOST_CALLBACKS: usize = 3;

/// The values of a callback's first flag: registered, taken, withdrawn.
const REGISTERED: i64 = 1;
const TAKEN: i64 = 2;
const WITHDRAWN: i64 = 3;

impl Machine<'_> {
    /// A new stop state, to which no request was made. Returns its number.
    pub(super) fn new_stop(&mut self, name: &str, range: &Range<usize>) -> usize {
        let flag = self.flag(name, range);
        self.state.stops.push(flag);
        self.state.stops.len() - 1
    }

    /// `std::stop_source s`, or a copy of one.
    pub(super) fn stop_source(
        &mut self,
        arguments: &[HostExpr],
        name: &str,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        match arguments {
            [] => Ok(HostValue::Stop(
                self.new_stop(&format!("{name}_stops"), range),
            )),
            [other] => match self.value(other)? {
                stop @ HostValue::Stop(_) => Ok(stop),
                _ => self.unfollowed_state(range),
            },
            _ => self.unfollowed_state(range),
        }
    }

    fn unfollowed_state<T>(&self, range: &Range<usize>) -> Read<T> {
        self.wrong(
            range,
            "this stop state is not worked out",
            "expected the state of a `std::stop_source` or a `std::jthread`",
            "make it by `std::stop_source s;`, and hand over `s.get_token()`",
        )
    }

    /// The stop state of an object.
    pub(super) fn stop_state(&self, object: &HostValue) -> Option<usize> {
        match object {
            HostValue::Stop(stop) => Some(*stop),
            HostValue::Thread(thread) => self.state.stop_of_thread.get(thread).copied(),
            _ => None,
        }
    }

    /// `st.stop_requested()`, `t.request_stop()` and their like. A request synchronises with the
    /// question that sees it (ISO C++, thread.stoptoken.intro).
    pub(super) fn stop_call(
        &mut self,
        stop: usize,
        method: &str,
        range: &Range<usize>,
    ) -> Read<Option<HostValue>> {
        match method {
            "stop_requested" => {
                let flag = reference(&self.state.stops[stop]);
                let register = self.register();
                let load = format!("{flag}.load(cuda::memory_order_acquire)");
                self.emit(format!("int {register} = {load};"), range);
                Ok(Some(HostValue::Register(register, Ty::S32)))
            }
            "request_stop" => Ok(Some(self.request(stop, range))),
            "stop_possible" => Ok(Some(HostValue::Int(1, Ty::S32))),
            "get_stop_token" | "get_token" | "get_stop_source" => Ok(Some(HostValue::Stop(stop))),
            _ => Ok(None),
        }
    }

    /// The first request makes it, and runs the callbacks. Any other one writes nothing.
    fn request(&mut self, stop: usize, range: &Range<usize>) -> HostValue {
        let flag = self.state.stops[stop].clone();
        let made = self.exchanged(&flag, [0, 1], ["seq_cst", "relaxed"], range);
        self.emit(format!("if ({made} != 0) {{"), range);
        self.emit_with(LineEffect::Callbacks(stop), String::new(), range);
        self.emit("}".to_owned(), range);
        HostValue::Register(made, Ty::S32)
    }

    /// Emits the exchange of a flag's value for another one. Returns the register that says whether
    /// it was made.
    fn exchanged(
        &mut self,
        flag: &str,
        [from, to]: [i64; 2],
        [success, failure]: [&str; 2],
        range: &Range<usize>,
    ) -> String {
        let (expected, made) = (self.register(), self.register());
        let call = format!(
            "{}.compare_exchange_strong({expected}, {to}, cuda::memory_order_{success}, \
             cuda::memory_order_{failure})",
            reference(flag)
        );
        self.emit(format!("int {expected} = {from};"), range);
        self.emit(format!("int {made} = {call};"), range);
        made
    }

    /// `std::stop_callback c(token, f)`
    pub(super) fn stop_callback(
        &mut self,
        arguments: &[HostExpr],
        name: &str,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let [token, function] = arguments else {
            return self.unfollowed_state(range);
        };
        let token = self.value(token)?;
        let Some(stop) = self.stop_state(&token) else {
            return self.unfollowed_state(range);
        };
        let callee = self.value(function)?;
        let number = self.state.stop_callbacks.len();
        let [registered, returned] =
            ["registered", "returned"].map(|word| self.flag(&format!("{name}_{word}"), range));
        self.memory_escapes();
        let lines = self.callback_lines(&callee, &function.range)?;
        if let HostValue::Closure(closure) = &callee {
            self.share(&closure.clone(), Borrower::StopCallback(number));
        }
        self.state.stop_callbacks.push(StopCallback {
            stop,
            registered: registered.clone(),
            returned,
            lines,
            range: range.clone(),
        });
        let store = format!("store({REGISTERED}, cuda::memory_order_seq_cst)");
        self.emit(format!("{}.{store};", reference(&registered)), range);
        let requested = self.register();
        let flag = reference(&self.state.stops[stop]);
        let load = format!("{flag}.load(cuda::memory_order_seq_cst)");
        self.emit(format!("int {requested} = {load};"), range);
        self.emit(format!("if ({requested} != 0) {{"), range);
        self.run_callback(number, range);
        self.emit("}".to_owned(), range);
        Ok(HostValue::StopCallback(number))
    }

    /// Follows the function of a callback alone: it may run at any time.
    fn callback_lines(&mut self, callee: &HostValue, range: &Range<usize>) -> Read<Vec<HostLine>> {
        let (function, scope): (Rc<HostFunction>, _) = match callee {
            HostValue::Closure(closure) => (closure.function.clone(), Some(closure.clone())),
            HostValue::Function(name) => match self.code.function(name).transpose()? {
                Some(function) => (function, None),
                None => return self.unfollowed_callback(range),
            },
            _ => return self.unfollowed_callback(range),
        };
        // Memory may have any of its values when the function runs.
        self.forget_memory();
        let before: Vec<HostValue> = self.state.cells.iter().map(|c| c.value.clone()).collect();
        let lines = std::mem::take(&mut self.state.lines);
        let inside = std::mem::replace(&mut self.inside, true);
        let calls = std::mem::replace(&mut self.stop_callback, true);
        let frames = self.frames.len();
        let flow = self.function(&function, Vec::new(), scope.as_ref().map(|c| &c.scope));
        let flow = self.unless_late(flow, Flow::Exit)?;
        self.frames.truncate(frames);
        (self.inside, self.stop_callback) = (inside, calls);
        let own = std::mem::replace(&mut self.state.lines, lines);
        if matches!(flow, Flow::Exit | Flow::Throw) {
            return self.wrong(
                &function.range,
                "this callback ends the program",
                "expected a function that returns",
                "end the program in the thread that requests the stop",
            );
        }
        let mut values = before.iter().zip(&self.state.cells);
        if values.any(|(old, new)| *old != new.value) {
            return self.shared_variable(&function.range);
        }
        self.forget_memory();
        Ok(own)
    }

    fn forget_memory(&mut self) {
        for object in &mut self.state.memory {
            object.shadow.fill(None);
        }
    }

    fn unfollowed_callback<T>(&self, range: &Range<usize>) -> Read<T> {
        self.wrong(
            range,
            "the function of this callback is not worked out",
            "expected a function of this file, or a lambda",
            "name the function",
        )
    }

    /// Runs the function of a callback, unless it was taken or withdrawn.
    fn run_callback(&mut self, number: usize, range: &Range<usize>) {
        let callback = self.state.stop_callbacks[number].clone();
        let orders = ["seq_cst", "seq_cst"];
        let taken = self.exchanged(&callback.registered, [REGISTERED, TAKEN], orders, range);
        self.emit(format!("if ({taken} != 0) {{"), range);
        self.state.lines.extend(callback.lines);
        self.raise(&callback.returned, range);
        self.emit("}".to_owned(), range);
    }

    /// The destructor withdraws the callback, or waits until its function has returned.
    pub(super) fn end_callback(&mut self, number: usize) {
        let StopCallback {
            registered,
            returned,
            range,
            ..
        } = self.state.stop_callbacks[number].clone();
        let orders = ["relaxed", "relaxed"];
        let withdrawn = self.exchanged(&registered, [REGISTERED, WITHDRAWN], orders, &range);
        self.emit(format!("if ({withdrawn} == 0) {{"), &range);
        self.await_flag(&returned, &range);
        self.emit("}".to_owned(), &range);
        let own = Borrower::StopCallback(number);
        self.state.shared.retain(|(_, by)| *by != own);
    }

    /// Puts the callbacks in the places of the requests that run them, once all are known.
    pub(super) fn place_callbacks(&mut self) -> Read<()> {
        let lines = std::mem::take(&mut self.state.lines);
        let main = self.placed_in(lines)?;
        for at in 0..self.state.threads.len() {
            let lines = std::mem::take(&mut self.state.threads[at].1);
            self.state.threads[at].1 = self.placed_in(lines)?;
        }
        for at in 0..self.state.functions.len() {
            let lines = std::mem::take(&mut self.state.functions[at].1);
            self.state.functions[at].1 = self.placed_in(lines)?;
        }
        self.state.lines = main;
        Ok(())
    }

    fn placed_in(&mut self, lines: Vec<HostLine>) -> Read<Vec<HostLine>> {
        self.with_callbacks(lines, &mut Vec::new())?;
        Ok(std::mem::take(&mut self.state.lines))
    }

    /// Emits lines, and runs the callbacks of their requests. `requested` lists states that already
    /// have a request: a further one runs no callback.
    fn with_callbacks(&mut self, lines: Vec<HostLine>, requested: &mut Vec<usize>) -> Read<()> {
        for line in lines {
            let LineEffect::Callbacks(stop) = line.effect else {
                self.state.lines.push(line);
                continue;
            };
            if requested.contains(&stop) {
                continue;
            }
            requested.push(stop);
            for callback in self.order_of(stop)? {
                let outside = std::mem::take(&mut self.state.lines);
                self.run_callback(callback, &line.range);
                let own = std::mem::replace(&mut self.state.lines, outside);
                self.with_callbacks(own, requested)?;
            }
            requested.pop();
        }
        Ok(())
    }

    /// The order in which a request calls the callbacks of a state. The text leaves it open, so
    /// each order is a program of its own.
    fn order_of(&mut self, stop: usize) -> Read<Vec<usize>> {
        if let Some(known) = self.callback_orders.get(&stop) {
            return Ok(known.clone());
        }
        let all = self.state.stop_callbacks.iter().enumerate();
        let mut left: Vec<usize> = all
            .filter(|(_, c)| c.stop == stop)
            .map(|(n, _)| n)
            .collect();
        if left.len() > MOST_CALLBACKS {
            return self.too_many_callbacks(&left);
        }
        let mut order = Vec::new();
        while !left.is_empty() {
            let mut next = 0;
            while next + 1 < left.len() && !self.way() {
                next += 1;
            }
            order.push(left.remove(next));
        }
        if let [_, _, ..] = order.as_slice() {
            let lines = order
                .iter()
                .map(|n| self.state.stop_callbacks[*n].range.clone());
            let lines: Vec<String> = lines.map(|at| self.code.line(&at).to_string()).collect();
            self.assume(format!(
                "a request calls the callbacks of lines {} in this order",
                lines.join(", ")
            ));
        }
        self.callback_orders.insert(stop, order.clone());
        Ok(order)
    }

    fn too_many_callbacks<T>(&self, all: &[usize]) -> Read<T> {
        let range = &self.state.stop_callbacks[all[MOST_CALLBACKS]].range;
        self.wrong(
            range,
            format!("more than {MOST_CALLBACKS} callbacks have one stop state"),
            "the order in which a request calls them is open (ISO C++, stopsource.mem)",
            "let one callback do the work of several",
        )
    }
}
