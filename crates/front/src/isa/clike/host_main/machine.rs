//! Follows the statements of host code.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::code::HostCode;
use super::parser::Read;
pub(super) use super::tree::{BYTE, element_of};
use super::tree::{
    HostBase, HostDeclared, HostExpr, HostExprKind, HostFunction, HostLoop, HostStmt, HostStmtKind,
    HostType, is_stop_class, names_stops,
};
pub(super) use super::values::null;
use super::values::{
    AllocatedBy, HostLine, HostPlace, HostValue, HostVariable, LaunchRange, LineEffect, Pointer,
    ProgramState, zero_of,
};
use crate::isa::clike::words::is_keyword;
use program::Ty;

/// Where the code goes on behind a statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
    Return(HostValue),
    /// The code goes on behind a label.
    Goto(String),
    /// A handler of an enclosing `try` goes on.
    Throw,
    /// The program ends.
    Exit,
}

/// Follows one way through a program.
pub(super) struct Machine<'a> {
    pub(super) code: &'a HostCode<'a>,
    pub(super) state: ProgramState,
    /// The scopes of each function that is being followed, the innermost last.
    pub(super) frames: Vec<Vec<HashMap<String, HostPlace>>>,
    globals: HashMap<String, HostPlace>,
    /// Which way to go at each choice.
    pub(super) plan: Vec<bool>,
    pub(super) decided: Vec<bool>,
    /// The choices that were made, with their places.
    pub(super) choices: Vec<(Range<usize>, bool)>,
    pub(super) launches: usize,
    /// Those that are no part of a graph.
    pub(super) ranges: Vec<LaunchRange>,
    /// Threads of all launches, and elements of all copies.
    pub(super) threads: i64,
    pub(super) copied: i64,
    pub(super) steps: usize,
    /// Steps that are followed, in all or in the current loop.
    pub(super) most_steps: usize,
    /// Only the launches count: memory has any size, and values that long loops change are unknown.
    pub(super) for_launches: bool,
    /// How many loops enclose the code that may be left out.
    pub(super) long_loops: usize,
    /// How many `try` blocks enclose the code.
    tries: usize,
    /// The code is a function that the runtime calls.
    pub(super) inside: bool,
    /// The code is a stop callback.
    pub(super) stop_callback: bool,
    /// Whose lines are followed: 0 is `main`.
    pub(super) thread: usize,
    /// The name that memory gets which the expression allocates.
    pub(super) hint: Option<String>,
    /// The order of the callbacks of each stop state that a request calls.
    pub(super) callback_orders: HashMap<usize, Vec<usize>>,
    /// Loops of which only some iterations are followed.
    pub(super) bounded: Vec<String>,
    /// Assumptions that the answer names.
    pub(super) assumed: Vec<String>,
}

/// Statements and iterations that are followed.
const MOST_STEPS: usize = 200_000;

/// Functions that are followed inside of each other.
const DEEPEST: usize = 64;

impl<'a> Machine<'a> {
    pub(super) fn new(code: &'a HostCode<'a>, plan: Vec<bool>) -> Machine<'a> {
        let taken = code.device_names().cloned().chain(code.device_locals());
        let state = ProgramState {
            names: taken.map(|name| (name, 1)).collect(),
            ..ProgramState::default()
        };
        Machine {
            code,
            state,
            frames: Vec::new(),
            globals: HashMap::new(),
            plan,
            decided: Vec::new(),
            choices: Vec::new(),
            launches: 0,
            ranges: Vec::new(),
            threads: 0,
            copied: 0,
            steps: 0,
            most_steps: MOST_STEPS,
            for_launches: false,
            long_loops: 0,
            tries: 0,
            inside: false,
            stop_callback: false,
            thread: 0,
            hint: None,
            callback_orders: HashMap::new(),
            bounded: Vec::new(),
            assumed: Vec::new(),
        }
    }

    /// Follows `main`.
    pub(super) fn run(&mut self) -> Read<()> {
        self.frames.push(vec![HashMap::new()]);
        for declaration in self.code.variables() {
            for declared in &declaration {
                // A variable that cannot be read is unknown where the program names it.
                let _ = self.declare(declared);
            }
        }
        self.device_variables()?;
        let scopes = self.frames.pop().unwrap_or_default();
        self.globals = scopes.into_iter().next().unwrap_or_default();
        let Some(main) = self.code.function("main").transpose()? else {
            return Ok(());
        };
        let mut arguments = vec![
            HostValue::Int(self.code.arguments.len() as i64 + 1, Ty::S32),
            HostValue::Function("argv".to_owned()),
        ];
        arguments.truncate(main.params.len());
        let flow = self.function(&main, arguments, None);
        let is_late = self.state.late;
        let flow = self.unless_late(flow, Flow::Exit)?;
        if is_late {
            self.flush_queues();
        }
        if flow != Flow::Exit {
            self.threads_end();
        }
        self.place_callbacks()
    }

    pub(super) fn wrong<T>(
        &self,
        range: &Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) -> Read<T> {
        let d = self.code.error("not-followed", range, message);
        Err(Box::new(d.label(label.into()).help(help.into())))
    }

    /// Reports what smaller constants would make possible.
    pub(super) fn too_large<T>(
        &self,
        range: &Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Read<T> {
        let d = self.code.error("too-large", range, message);
        Err(Box::new(d.label(label.into()).help(
            "make the sizes smaller: `--define NAME=VALUE` for a constant, `--args` for arguments",
        )))
    }

    /// Adds a line to the program that remains.
    pub(super) fn emit(&mut self, text: String, range: &Range<usize>) {
        self.emit_with(LineEffect::Other, text, range);
    }

    /// Adds a line with an effect to the program that remains.
    pub(super) fn emit_with(&mut self, effect: LineEffect, text: String, range: &Range<usize>) {
        self.state.lines.push(HostLine {
            text,
            range: range.clone(),
            effect,
        });
    }

    /// Adds a call of the runtime.
    pub(super) fn emit_call(&mut self, text: String, range: &Range<usize>) -> Read<()> {
        if self.stop_callback {
            return self.wrong(
                range,
                "a stop callback that calls the runtime is not followed",
                "expected code that accesses memory: it may run at any time, or not at all",
                "call the runtime in the thread that requests the stop",
            );
        }
        if self.inside {
            let d = self.code.error(
                "blocking-callback",
                range,
                "a call of CUDA in a function that `cudaLaunchHostFunc` runs",
            );
            return Err(Box::new(d.label("this is undefined").note(
                "a host function must not make any CUDA call (CUDA runtime API, \
                 cudaLaunchHostFunc)",
            )));
        }
        if self.captured(&text, range)? {
            return Ok(());
        }
        self.emit_with(LineEffect::Call, text, range);
        Ok(())
    }

    pub(super) fn register(&mut self) -> String {
        self.state.registers += 1;
        format!("r{}", self.state.registers)
    }

    /// A name that nothing else has.
    pub(super) fn unique(&mut self, name: &str) -> String {
        let plain: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let plain = match plain.trim_matches('_') {
            "" => "memory".to_owned(),
            word if word.starts_with(|c: char| c.is_ascii_digit()) => format!("m{word}"),
            // Registers have such names.
            word if is_register(word) => format!("{word}_"),
            // Of the host it may be the name of a variable.
            word if is_keyword(word, self.code.dialect) => format!("{word}_"),
            word => word.to_owned(),
        };
        let count = self.state.names.entry(plain.clone()).or_default();
        *count += 1;
        match *count {
            1 => plain,
            n => {
                let next = format!("{plain}_{n}");
                self.unique(&next)
            }
        }
    }

    /// Calls a function with values.
    pub(super) fn function(
        &mut self,
        function: &Rc<HostFunction>,
        arguments: Vec<HostValue>,
        scope: Option<&HashMap<String, HostPlace>>,
    ) -> Read<Flow> {
        if self.frames.len() > DEEPEST {
            return self.wrong(
                &function.range,
                format!("`{}` calls itself too often", function.name),
                format!("more than {DEEPEST} calls inside of each other"),
                "let the recursion end with values that the host knows",
            );
        }
        self.frames
            .push(vec![scope.cloned().unwrap_or_default(), HashMap::new()]);
        for (param, value) in function.params.iter().zip(arguments) {
            match value {
                // A reference is the place itself.
                HostValue::Cell(at) if param.of.reference => {
                    self.bind(&param.name, HostPlace::Cell(at));
                }
                HostValue::Pointer(Pointer {
                    memory: Some(memory),
                    offset,
                    element,
                }) if param.of.reference && param.of.is_memory() => {
                    self.bind(&param.name, HostPlace::Memory(memory, offset, element));
                }
                value => self.new_variable(param, value)?,
            }
        }
        let flow = self.block(&function.body);
        self.frames.pop();
        flow
    }

    /// Makes a variable that begins with a value.
    fn new_variable(&mut self, declared: &HostDeclared, value: HostValue) -> Read<()> {
        let addressed = self.code.addressed.contains(&declared.name);
        let is_memory = declared.of.is_number()
            && (addressed || (self.code.concurrent && self.is_outside_of_functions()))
            && declared.arrays.is_empty()
            && !declared.of.constant;
        if is_memory {
            let element = element_of(&declared.of.base);
            let (name, range) = (declared.name.clone(), declared.range.clone());
            let at = self.allocate(
                &name,
                &range,
                element,
                element.bytes(),
                AllocatedBy::Variable,
            );
            self.bind(&declared.name, HostPlace::Memory(at, 0, element));
            if value != HostValue::Unset {
                self.store(&HostPlace::Memory(at, 0, element), value, &declared.range)?;
            }
            return Ok(());
        }
        let value = self.own_copy(value);
        let value = self.converted(value, &declared.of);
        if let (true, HostValue::Record(record)) = (addressed && self.code.concurrent, &value) {
            self.members_in_memory(&record.clone(), &declared.name)?;
        }
        let cell = self.cell(value, declared.of.clone());
        self.bind(&declared.name, HostPlace::Cell(cell));
        Ok(())
    }

    /// Whether variables of the file are being made.
    fn is_outside_of_functions(&self) -> bool {
        matches!(self.frames.as_slice(), [scopes] if scopes.len() == 1)
    }

    pub(super) fn cell(&mut self, value: HostValue, of: HostType) -> usize {
        self.state.cells.push(HostVariable { value, of });
        self.state.cells.len() - 1
    }

    pub(super) fn bind(&mut self, name: &str, place: HostPlace) {
        if let Some(scope) = self.frames.last_mut().and_then(|f| f.last_mut()) {
            scope.insert(name.to_owned(), place);
        }
    }

    /// The place of a variable.
    pub(super) fn find(&self, name: &str) -> Option<HostPlace> {
        let scopes = self.frames.last()?;
        let found = scopes.iter().rev().find_map(|scope| scope.get(name));
        found.or_else(|| self.globals.get(name)).cloned()
    }

    /// All variables in sight, as a lambda captures them.
    pub(super) fn scope(&self) -> HashMap<String, HostPlace> {
        let mut all = HashMap::new();
        for scope in self.frames.last().into_iter().flatten() {
            all.extend(scope.clone());
        }
        all
    }

    /// Follows statements in a new scope.
    pub(super) fn block(&mut self, all: &[HostStmt]) -> Read<Flow> {
        self.enter();
        let mut flow = Flow::Next;
        let mut at = 0;
        while let Some(stmt) = all.get(at) {
            at += 1;
            flow = self.statement(stmt)?;
            if let Flow::Goto(label) = &flow
                && let Some(target) = all.iter().position(|stmt| is_label(stmt, label))
            {
                at = target;
                flow = Flow::Next;
            }
            if flow != Flow::Next {
                break;
            }
        }
        self.leave(&flow)?;
        Ok(flow)
    }

    /// `try`
    fn try_block(&mut self, body: &[HostStmt], handlers: &[(String, Vec<HostStmt>)]) -> Read<Flow> {
        self.tries += 1;
        let flow = self.block(body);
        self.tries -= 1;
        match (flow?, handlers.first()) {
            (Flow::Throw, Some((name, handler))) => {
                self.state.thrown = false;
                self.enter();
                let of = HostType::plain(HostBase::Auto);
                let caught = self.cell(HostValue::Unknown, of);
                self.bind(name, HostPlace::Cell(caught));
                let flow = self.block(handler)?;
                self.leave(&flow)?;
                Ok(flow)
            }
            (flow, _) => Ok(flow),
        }
    }

    fn enter(&mut self) {
        if let Some(scopes) = self.frames.last_mut() {
            scopes.push(HashMap::new());
        }
    }

    /// Leaves a scope. Its arrays and vectors end, but for one that a function returns.
    fn leave(&mut self, flow: &Flow) -> Read<()> {
        let scope = self
            .frames
            .last_mut()
            .and_then(Vec::pop)
            .unwrap_or_default();
        if *flow != Flow::Exit {
            self.destroy_at_end(&scope)?;
        }
        self.end_objects(&scope, flow)?;
        let mut ended: Vec<usize> = scope
            .values()
            .filter_map(|place| match place {
                HostPlace::Cell(at) => match self.state.cells[*at].value {
                    HostValue::Buffer(memory) => Some(memory),
                    _ => None,
                },
                HostPlace::Memory(memory, ..) => Some(*memory),
                HostPlace::Component(..) => None,
            })
            .collect();
        ended.sort_unstable();
        ended.dedup();
        if let Flow::Return(HostValue::Buffer(returned)) = flow {
            ended.retain(|memory| memory != returned);
        }
        // A reference does not end what it names.
        ended.retain(|memory| self.is_variable(*memory) && !self.is_bound(*memory));
        // The memory of `main` lives as long as the program.
        let inner = self.frames.last().is_some_and(|scopes| scopes.len() > 2);
        if self.frames.len() > 1 || inner {
            ended
                .into_iter()
                .for_each(|memory| self.end_of_life(memory));
        }
        Ok(())
    }

    fn is_variable(&self, memory: usize) -> bool {
        self.state.memory[memory].allocation == AllocatedBy::Variable
    }

    /// Whether a name in sight is of this memory.
    fn is_bound(&self, memory: usize) -> bool {
        let of = |place: &HostPlace| match place {
            HostPlace::Memory(own, ..) => *own == memory,
            HostPlace::Cell(at) => self.state.cells[*at].value == HostValue::Buffer(memory),
            HostPlace::Component(..) => false,
        };
        let scopes = self.frames.iter().flatten().chain([&self.globals]);
        scopes.flat_map(HashMap::values).any(of)
    }

    /// Runs the destructors of stop callbacks, and of threads that join, the last made first.
    fn destroy_at_end(&mut self, scope: &HashMap<String, HostPlace>) -> Read<()> {
        let cells = scope.values().filter_map(|place| match place {
            HostPlace::Cell(at) => Some(*at),
            _ => None,
        });
        let mut cells: Vec<usize> = cells.collect();
        cells.sort_unstable();
        cells.dedup();
        for at in cells.into_iter().rev() {
            let variable = &self.state.cells[at];
            match (&variable.value, &variable.of.base) {
                (HostValue::Thread(thread), HostBase::Thread(true)) => {
                    let thread = *thread;
                    // The destructor requests a stop first (ISO C++, thread.jthread.cons).
                    if let Some(stop) = self.stop_state(&HostValue::Thread(thread)) {
                        self.stop_call(stop, "request_stop", &(0..0))?;
                    }
                    self.join_thread(thread, &(0..0))?;
                }
                (HostValue::StopCallback(callback), _) if !variable.of.reference => {
                    self.end_callback(*callback);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn step(&mut self, range: &Range<usize>) -> Read<()> {
        self.steps += 1;
        if self.steps > self.most_steps {
            return self.too_large(
                range,
                "this program takes too many steps",
                format!("more than {MOST_STEPS} statements come before the end"),
            );
        }
        Ok(())
    }

    pub(super) fn statement(&mut self, stmt: &HostStmt) -> Read<Flow> {
        let flow = self.statement_alone(stmt)?;
        Ok(match (self.state.ended, self.state.thrown) {
            (true, _) => Flow::Exit,
            (false, true) => Flow::Throw,
            (false, false) => flow,
        })
    }

    fn statement_alone(&mut self, stmt: &HostStmt) -> Read<Flow> {
        self.step(&stmt.range)?;
        match &stmt.kind {
            HostStmtKind::Empty | HostStmtKind::Case(_) | HostStmtKind::Label(_) => Ok(Flow::Next),
            HostStmtKind::Try(body, handlers) => self.try_block(body, handlers),
            HostStmtKind::Goto(label) => Ok(Flow::Goto(label.clone())),
            // Without a handler, the program ends.
            HostStmtKind::Throw => Ok(match self.tries {
                0 => Flow::Exit,
                _ => Flow::Throw,
            }),
            HostStmtKind::Declare(all) => {
                for declared in all {
                    self.declare(declared)?;
                }
                Ok(Flow::Next)
            }
            HostStmtKind::Expr(tree) => {
                if let Some(flow) = self.ends_program(tree)? {
                    return Ok(flow);
                }
                self.value(tree)?;
                Ok(Flow::Next)
            }
            HostStmtKind::Block(all) => self.block(all),
            HostStmtKind::If(cond, then, other) => self.branch(cond, then, other.as_deref()),
            HostStmtKind::Loop {
                init,
                cond,
                step,
                body,
                test_last,
            } => {
                self.enter();
                if let Some(init) = init {
                    self.statement(init)?;
                }
                let again = HostLoop {
                    cond: cond.as_ref(),
                    step: step.as_ref(),
                    body,
                    test_last: *test_last,
                };
                let flow = match self.for_launches {
                    true => self.long_loop(&again)?,
                    false => self.repeat(again.cond, again.step, body, *test_last)?,
                };
                self.leave(&flow)?;
                Ok(flow)
            }
            HostStmtKind::Elements(declared, over, body) => self.elements(declared, over, body),
            HostStmtKind::Switch(value, body) => self.switch(value, body),
            HostStmtKind::Break => Ok(Flow::Break),
            HostStmtKind::Continue => Ok(Flow::Continue),
            HostStmtKind::Return(None) => Ok(Flow::Return(HostValue::Unset)),
            HostStmtKind::Return(Some(tree)) => Ok(Flow::Return(self.value(tree)?)),
        }
    }

    /// `exit(1)` and its kind.
    fn ends_program(&mut self, tree: &HostExpr) -> Read<Option<Flow>> {
        let HostExprKind::Call(callee, arguments) = &tree.kind else {
            return Ok(None);
        };
        let HostExprKind::Name(name) = &callee.kind else {
            return Ok(None);
        };
        let ends = [
            "exit",
            "abort",
            "std::exit",
            "std::abort",
            "_Exit",
            "std::terminate",
        ];
        if !ends.contains(&name.as_str()) {
            return Ok(None);
        }
        for argument in arguments {
            self.value(argument)?;
        }
        Ok(Some(Flow::Exit))
    }

    /// Makes the variable of a declaration.
    pub(super) fn declare(&mut self, declared: &HostDeclared) -> Read<()> {
        if !declared.arrays.is_empty() {
            return self.declare_array(declared);
        }
        if matches!(declared.of.base, HostBase::Instance(..)) {
            let of = self.resolved(&declared.of, &declared.range)?;
            let declared = HostDeclared {
                of,
                ..declared.clone()
            };
            return self.declare(&declared);
        }
        if self.declare_object(declared)? {
            return Ok(());
        }
        let of = &declared.of;
        if matches!(of.base, HostBase::Atomic(_, false, _)) && of.pointers == 0 && !of.reference {
            return self.declare_atomic(declared);
        }
        let value = match &declared.value {
            None => self.initial(declared)?,
            Some(tree) => match (&declared.of, &tree.kind) {
                // A reference is another name of a place.
                (of, _) if of.reference && !of.constant => {
                    if let Some(place) = self.place_if_any(tree)? {
                        self.bind(&declared.name, place);
                        return Ok(());
                    }
                    self.value(tree)?
                }
                (of, HostExprKind::Braces(all)) if matches!(of.base, HostBase::Vector(..)) => {
                    let all = all.clone();
                    self.vector_of(declared, &all)?
                }
                (of, HostExprKind::Construct(_, all))
                    if matches!(of.base, HostBase::Vector(..) | HostBase::Thread(_)) =>
                {
                    let all = all.clone();
                    self.construct(of, &all, &declared.name, &tree.range)?
                }
                (_, HostExprKind::Construct(of, all)) => {
                    self.construct(of, all, &declared.name, &tree.range)?
                }
                (of, HostExprKind::Braces(all)) if of.is_record() => {
                    let (of, all) = (of.clone(), all.clone());
                    self.record_of(&of, &all, &tree.range)?
                }
                (of, HostExprKind::Braces(all)) if names_stops(of) => {
                    let (of, all) = (of.clone(), all.clone());
                    self.construct(&of, &all, &declared.name, &tree.range)?
                }
                (_, HostExprKind::Braces(all)) if all.is_empty() => zero_of(&declared.of),
                _ => self.named_value(tree, &declared.name)?,
            },
        };
        self.new_variable(declared, value)
    }

    /// The value of a variable without an initialiser.
    fn initial(&mut self, declared: &HostDeclared) -> Read<HostValue> {
        Ok(match &declared.of.base {
            HostBase::Vector(..) => {
                let of = declared.of.clone();
                self.construct(&of, &[], &declared.name, &declared.range)?
            }
            HostBase::Dim3 => HostValue::Dim3([1, 1, 1]),
            HostBase::Record(record) if declared.of.pointers == 0 => {
                let record = record.clone();
                self.new_record(&record)?
            }
            HostBase::Other(class)
                if declared.of.pointers == 0 && is_stop_class(class, "stop_source") =>
            {
                self.stop_source(&[], &declared.name, &declared.range)?
            }
            _ => HostValue::Unset,
        })
    }

    /// `int a[4] = {1, 2}`, `cudaStream_t s[2]`
    fn declare_array(&mut self, declared: &HostDeclared) -> Read<()> {
        let listed = match declared.value.as_ref().map(|v| &v.kind) {
            Some(HostExprKind::Braces(all)) => Some(all.clone()),
            Some(_) => {
                return self.wrong(
                    &declared.range,
                    "this array begins with something that is no list",
                    "expected `{…}`",
                    "write its elements between braces",
                );
            }
            None => None,
        };
        let [length] = declared.arrays.as_slice() else {
            return self.wrong(
                &declared.range,
                "arrays of arrays are not followed in host code",
                "expected one dimension",
                "compute the index: `a[i * n + j]`",
            );
        };
        let length = match (length, &listed) {
            (Some(tree), _) => self.number(tree)?,
            (None, Some(all)) => all.len() as i64,
            (None, None) => 0,
        };
        let value = self.array(
            &declared.name,
            &declared.range,
            &declared.of,
            length,
            listed.is_some(),
        )?;
        if let Some(all) = listed {
            for (i, tree) in all.iter().enumerate() {
                let element = self.value(tree)?;
                let place = self.element(&value, i as i64, &tree.range)?;
                self.store(&place, element, &tree.range)?;
            }
        }
        let cell = self.cell(value, declared.of.clone());
        self.bind(&declared.name, HostPlace::Cell(cell));
        Ok(())
    }

    fn elements(
        &mut self,
        declared: &HostDeclared,
        over: &HostExpr,
        body: &HostStmt,
    ) -> Read<Flow> {
        let all = self.value(over)?;
        if self.for_launches && self.leaves_out(&all, declared, body) {
            return Ok(Flow::Next);
        }
        let mut flow = Flow::Next;
        for i in 0..self.length_of(&all, &over.range)? {
            self.step(&over.range)?;
            self.enter();
            let place = self.element(&all, i, &over.range)?;
            match declared.of.reference {
                true => self.bind(&declared.name, place),
                false => {
                    let value = self.load(&place, &over.range)?;
                    self.new_variable(declared, value)?;
                }
            }
            flow = self.statement(body)?;
            self.leave(&flow)?;
            match flow {
                Flow::Break => return Ok(Flow::Next),
                Flow::Next | Flow::Continue => flow = Flow::Next,
                _ => break,
            }
        }
        Ok(flow)
    }

    fn switch(&mut self, value: &HostExpr, body: &[HostStmt]) -> Read<Flow> {
        let wanted = self.number(value)?;
        let mut from = None;
        for (i, stmt) in body.iter().enumerate() {
            match &stmt.kind {
                HostStmtKind::Case(Some(tree)) if self.number(tree)? == wanted => {
                    from = Some(i);
                    break;
                }
                HostStmtKind::Case(None) => from = Some(i),
                _ => {}
            }
        }
        let Some(from) = from else {
            return Ok(Flow::Next);
        };
        match self.block(&body[from..])? {
            Flow::Break => Ok(Flow::Next),
            flow => Ok(flow),
        }
    }
}

fn is_label(stmt: &HostStmt, label: &str) -> bool {
    matches!(&stmt.kind, HostStmtKind::Label(name) if name == label)
}

fn is_register(word: &str) -> bool {
    let number = word.strip_prefix('r').filter(|n| !n.is_empty());
    number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}
