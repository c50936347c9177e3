//! Walks over the code of a kernel, with the functions that it calls.
//!
//! # Invariants
//! - Variables are declared before the first statement, so that no jump passes a declaration.
//! - An instruction has a variable or an expression for its result before another one uses it: in a
//!   module, a block comes behind those that dominate it. Results of `OpPhi` are declared first.
//! - A jump assigns the variables of `OpPhi` before it leaves, all from values before any of them.

use std::collections::{HashMap, HashSet};

use rspirv::dr::Operand;
use rspirv::spirv::{Op, StorageClass};

use super::module::{Block, EntryPoint, SpirvFunction, SpirvModule, SpirvType};
use super::refusal::Translated;
use super::values::SpirvValue;
use crate::isa::clike::is_reserved;
use diag::{MappedText, Span};

/// Statements of a kernel with all its calls.
const MOST_STATEMENTS: usize = 100_000;

/// A line of code with the instruction that it comes from.
type Line = (String, usize);

/// A function whose code is being written.
struct FunctionText {
    function: u32,
    values: HashMap<u32, SpirvValue>,
    /// What the names of this instance end with.
    suffix: String,
    /// The variable for its result.
    result: Option<String>,
    /// Whether a jump leads to its end.
    leaves: bool,
}

/// Writes the code of a module.
pub(super) struct Writer<'a> {
    pub(super) module: &'a SpirvModule,
    /// The structures that are defined.
    pub(super) structures: Vec<u32>,
    /// The lines in front of all kernels.
    pub(super) outside: Vec<Line>,
    /// The names of variables in front of all kernels.
    pub(super) program_scope: HashMap<u32, String>,
    kernels: Vec<Line>,
    /// The declarations and the statements of the current kernel.
    declarations: Vec<Line>,
    body: Vec<Line>,
    /// The names of its local memory.
    pub(super) local: HashMap<u32, String>,
    names: HashSet<String>,
    frames: Vec<FunctionText>,
    calls: usize,
}

/// What of the writer a kernel changes outside of itself.
struct OutsideMark {
    structures: usize,
    outside: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(module: &'a SpirvModule) -> Writer<'a> {
        Writer {
            module,
            structures: Vec::new(),
            outside: Vec::new(),
            program_scope: HashMap::new(),
            kernels: Vec::new(),
            declarations: Vec::new(),
            body: Vec::new(),
            local: HashMap::new(),
            names: HashSet::new(),
            frames: Vec::new(),
            calls: 0,
        }
    }

    /// The code of all kernels that could be written.
    pub(super) fn code(&self) -> MappedText {
        let mut code = MappedText::new();
        for (text, at) in self.outside.iter().chain(&self.kernels) {
            let span = self.module.listed.spans.get(*at);
            code.push_opaque(text, span.copied().unwrap_or(Span::default()));
            code.push_opaque("\n", span.copied().unwrap_or(Span::default()));
        }
        code
    }

    /// Writes a kernel.
    pub(super) fn kernel(&mut self, kernel: &EntryPoint) -> Translated<()> {
        let mark = OutsideMark {
            structures: self.structures.len(),
            outside: self.outside.len(),
        };
        let written = self.write_kernel(kernel);
        if written.is_err() {
            self.structures.truncate(mark.structures);
            self.outside.truncate(mark.outside);
            let outside = &self.outside;
            let kept = |name: &String| outside.iter().any(|(line, _)| line.contains(name.as_str()));
            self.program_scope.retain(|_, name| kept(name));
        }
        written
    }

    fn write_kernel(&mut self, kernel: &EntryPoint) -> Translated<()> {
        self.declarations.clear();
        self.body.clear();
        self.local.clear();
        self.names.clear();
        self.frames.clear();
        self.calls = 0;
        let module = self.module;
        let Some(function) = module.functions.get(&kernel.function) else {
            return module.fail(kernel.at, "this kernel has no function", "expected one");
        };
        if is_reserved(&kernel.name) || !is_name(&kernel.name) {
            let message = format!("`{}` cannot name a kernel in OpenCL C", kernel.name);
            return module.fail(kernel.at, &message, "expected letters, digits and `_`");
        }
        self.names.insert(kernel.name.clone());
        self.enter(kernel.function, None);
        let mut params = Vec::new();
        for (number, at) in function.params.iter().enumerate() {
            let (Some(id), Some(ty)) = (module.inst(*at).result_id, module.inst(*at).result_type)
            else {
                continue;
            };
            let name = self.parameter_name(kernel.function, id, number);
            match module.by_value.contains(&id) {
                true => {
                    let (_, to) = self.pointed(*at, ty)?;
                    params.push(self.declared(*at, to, &name)?);
                    self.bind(id, SpirvValue::Place(name, to));
                }
                false => {
                    params.push(self.declared(*at, ty, &name)?);
                    self.bind(id, SpirvValue::Text(name));
                }
            }
        }
        self.function_body(kernel.at, function)?;
        self.frames.pop();
        let size = kernel.size.map_or(String::new(), |[x, y, z]| {
            format!("__attribute__((reqd_work_group_size({x}, {y}, {z}))) ")
        });
        let head = format!(
            "{size}kernel void {}({}) {{",
            kernel.name,
            params.join(", ")
        );
        self.kernels.push((head, function.at));
        self.kernels.append(&mut self.declarations);
        self.kernels.append(&mut self.body);
        self.kernels.push(("}".to_owned(), function.at));
        Ok(())
    }

    /// The name of a parameter: its own, or that in the function which the kernel hands it to.
    fn parameter_name(&mut self, function: u32, id: u32, number: usize) -> String {
        let handed = || {
            let code = self.module.functions.get(&function)?;
            let all = code.blocks.iter().flat_map(|block| block.body.clone());
            let mut calls = all.filter_map(|at| {
                let inst = self.module.inst(at);
                let to = inst
                    .operands
                    .iter()
                    .skip(1)
                    .position(|o| *o == Operand::IdRef(id))?;
                let called = self.module.id(at, 0).ok()?;
                let params = &self.module.functions.get(&called)?.params;
                let inner = self.module.inst(*params.get(to)?).result_id?;
                (inst.class.opcode == Op::FunctionCall).then_some(inner)
            });
            calls.find_map(|inner| self.module.names.get(&inner))
        };
        let own = self.module.names.get(&id).or_else(handed).cloned();
        self.fresh(&own.unwrap_or(format!("arg{number}")))
    }

    /// A name that nothing else has, as close to a wanted one as the language permits.
    pub(super) fn fresh(&mut self, wanted: &str) -> String {
        let plain: String = wanted
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let plain = match plain.starts_with(|c: char| c.is_ascii_digit()) || is_reserved(&plain) {
            true => format!("{plain}_"),
            false => plain,
        };
        let plain = match is_name(&plain) {
            true => plain,
            false => format!("v{plain}"),
        };
        let numbered = (2..).map(|n| format!("{plain}_{n}"));
        let mut all = std::iter::once(plain.clone()).chain(numbered);
        let name = all
            .find(|name| !self.names.contains(name))
            .unwrap_or(plain.clone());
        self.names.insert(name.clone());
        name
    }

    fn enter(&mut self, function: u32, result: Option<String>) {
        let suffix = match self.calls {
            0 => String::new(),
            n => format!("_{n}"),
        };
        self.calls += 1;
        self.frames.push(FunctionText {
            function,
            values: HashMap::new(),
            suffix,
            result,
            leaves: false,
        });
    }

    fn suffix(&self) -> &str {
        self.frames.last().map_or("", |frame| frame.suffix.as_str())
    }

    /// Gives a result its value.
    pub(super) fn bind(&mut self, id: u32, value: SpirvValue) {
        if let Some(frame) = self.frames.last_mut() {
            frame.values.insert(id, value);
        }
    }

    /// The value of a result of the current function.
    pub(super) fn bound(&self, id: u32) -> Option<&SpirvValue> {
        self.frames.last()?.values.get(&id)
    }

    /// Adds a statement.
    pub(super) fn emit(&mut self, at: usize, text: impl Into<String>) {
        self.body.push((text.into(), at));
    }

    /// Adds a declaration.
    pub(super) fn declare(&mut self, at: usize, text: String) {
        self.declarations.push((format!("{text};"), at));
    }

    /// Declares a variable for a result.
    pub(super) fn variable(&mut self, at: usize, id: u32, ty: u32) -> Translated<String> {
        let wanted = format!("v{id}{}", self.suffix());
        let name = self.fresh(&wanted);
        let text = self.declared(at, ty, &name)?;
        self.declare(at, text);
        Ok(name)
    }

    /// Assigns an expression to the variable for the result of an instruction.
    pub(super) fn set(&mut self, at: usize, value: &str) -> Translated<()> {
        let inst = self.module.inst(at);
        let (Some(id), Some(ty)) = (inst.result_id, inst.result_type) else {
            return self
                .module
                .fail(at, "an instruction without a result", "expected one");
        };
        let name = self.variable(at, id, ty)?;
        self.emit(at, format!("{name} = {value};"));
        self.bind(id, SpirvValue::Text(name));
        Ok(())
    }

    /// Writes the blocks of the innermost function.
    fn function_body(&mut self, at: usize, function: &'a SpirvFunction) -> Translated<()> {
        if function.blocks.is_empty() {
            let name = self.module.inst(function.at).result_id;
            let name = name.and_then(|id| self.module.names.get(&id));
            let message = format!(
                "`{}` is a function of another module",
                name.map_or("this", String::as_str)
            );
            return self
                .module
                .fail(at, &message, "link the modules first: `spirv-link`");
        }
        self.declare_phis(function)?;
        let targets = self.targets(function);
        for (number, block) in function.blocks.iter().enumerate() {
            if targets.contains(&block.id) {
                let label = self.label(block.id);
                self.emit(block.body.start - 1, format!("{label}:;"));
            }
            let next = function.blocks.get(number + 1);
            for at in block.body.clone() {
                if self.body.len() > MOST_STATEMENTS {
                    let message = "this kernel is too long with the functions that it calls";
                    return self.module.fail(at, message, "expected fewer instructions");
                }
                match at + 1 == block.body.end {
                    true => self.terminator(at, block, next, function)?,
                    false => self.instruction(at)?,
                }
            }
        }
        if self.frames.last().is_some_and(|frame| frame.leaves) {
            let line = format!("end{}:;", self.suffix());
            self.emit(function.at, line);
        }
        Ok(())
    }

    fn label(&self, block: u32) -> String {
        format!("block{block}{}", self.suffix())
    }

    /// The blocks that a jump leads to, and not only the end of the block before.
    fn targets(&self, function: &SpirvFunction) -> HashSet<u32> {
        let mut all = HashSet::new();
        for (number, block) in function.blocks.iter().enumerate() {
            let Some(inst) = block.body.clone().last().map(|at| self.module.inst(at)) else {
                continue;
            };
            let next = function.blocks.get(number + 1).map(|next| next.id);
            let ids = inst.operands.iter().filter_map(|operand| match operand {
                Operand::IdRef(id) => Some(*id),
                _ => None,
            });
            all.extend(ids.filter(|id| Some(*id) != next));
            if inst.class.opcode == Op::Switch {
                all.extend(next);
            }
        }
        all
    }

    /// Declares the variables of all `OpPhi`.
    fn declare_phis(&mut self, function: &SpirvFunction) -> Translated<()> {
        for at in function.blocks.iter().flat_map(|block| block.body.clone()) {
            let inst = self.module.inst(at);
            if let (Op::Phi, Some(id), Some(ty)) =
                (inst.class.opcode, inst.result_id, inst.result_type)
            {
                let name = self.variable(at, id, ty)?;
                self.bind(id, SpirvValue::Text(name));
            }
        }
        Ok(())
    }

    /// The assignments of a jump, for the `OpPhi` of its target.
    fn phis(&mut self, at: usize, from: &Block, to: &Block) -> Translated<Vec<String>> {
        let mut all: Vec<(String, String, usize)> = Vec::new();
        for phi in to.body.clone() {
            let inst = self.module.inst(phi);
            match inst.class.opcode {
                Op::Phi => {}
                Op::Line | Op::NoLine => continue,
                _ => break,
            }
            let pair = inst
                .operands
                .chunks(2)
                .find(|pair| matches!(pair, [_, Operand::IdRef(parent)] if *parent == from.id));
            let (Some([Operand::IdRef(value), _]), Some(id)) = (pair, inst.result_id) else {
                let message = format!("no value for the jump from %{}", from.id);
                return self.module.fail(phi, &message, "expected one");
            };
            let value = self.text(at, *value)?;
            let Some(SpirvValue::Text(name)) = self.bound(id) else {
                continue;
            };
            if *name != value {
                all.push((name.clone(), value, phi));
            }
        }
        let mut lines = Vec::new();
        for n in 0..all.len() {
            let (_, value, phi) = all[n].clone();
            let words: Vec<&str> = value
                .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .collect();
            if all[..n]
                .iter()
                .any(|(earlier, ..)| words.contains(&earlier.as_str()))
            {
                let inst = self.module.inst(phi);
                let (id, ty) = (inst.result_id.unwrap_or(0), inst.result_type.unwrap_or(0));
                let before = self.variable(phi, id, ty)?;
                lines.push(format!("{before} = {value};"));
                all[n].1 = before;
            }
        }
        lines.extend(
            all.iter()
                .map(|(name, value, _)| format!("{name} = {value};")),
        );
        Ok(lines)
    }

    /// The statements of a jump. A jump to the next block falls through.
    fn jump(
        &mut self,
        at: usize,
        from: &Block,
        to: u32,
        function: &SpirvFunction,
    ) -> Translated<Vec<String>> {
        let Some(target) = function.blocks.iter().find(|block| block.id == to) else {
            let message = format!("%{to} is not a block of this function");
            return self.module.fail(at, &message, "expected one");
        };
        let mut lines = self.phis(at, from, target)?;
        lines.push(format!("goto {};", self.label(to)));
        Ok(lines)
    }

    /// A jump at the end of a block: one to the next block falls through.
    fn last_jump(
        &mut self,
        at: usize,
        from: &Block,
        to: u32,
        next: Option<&Block>,
        function: &SpirvFunction,
    ) -> Translated<()> {
        let mut lines = self.jump(at, from, to, function)?;
        if next.is_some_and(|next| next.id == to) {
            lines.pop();
        }
        lines.into_iter().for_each(|line| self.emit(at, line));
        Ok(())
    }

    fn terminator(
        &mut self,
        at: usize,
        block: &Block,
        next: Option<&Block>,
        function: &SpirvFunction,
    ) -> Translated<()> {
        let module = self.module;
        match module.inst(at).class.opcode {
            Op::Branch => self.last_jump(at, block, module.id(at, 0)?, next, function),
            Op::BranchConditional => {
                let condition = self.operand(at, 0)?;
                let (then, other) = (module.id(at, 1)?, module.id(at, 2)?);
                if next.is_some_and(|next| next.id == then) && then != other {
                    let lines = self.jump(at, block, other, function)?.join(" ");
                    self.emit(at, format!("if (!{condition}) {{ {lines} }}"));
                    return self.last_jump(at, block, then, next, function);
                }
                let lines = self.jump(at, block, then, function)?.join(" ");
                self.emit(at, format!("if ({condition}) {{ {lines} }}"));
                self.last_jump(at, block, other, next, function)
            }
            Op::Switch => self.switch(at, block, next, function),
            Op::Return => self.leave(at, next, None),
            Op::ReturnValue => {
                let value = self.operand(at, 0)?;
                self.leave(at, next, Some(value))
            }
            Op::Unreachable => module.refuse(at, "the code is undefined here"),
            Op::Kill | Op::TerminateInvocation => module.refuse(at, "the end of a block"),
            _ => module.fail(
                at,
                "a block that does not end",
                "expected a jump or a return",
            ),
        }
    }

    fn switch(
        &mut self,
        at: usize,
        block: &Block,
        next: Option<&Block>,
        function: &SpirvFunction,
    ) -> Translated<()> {
        let module = self.module;
        let (selector, ty) = (self.operand(at, 0)?, module.type_id(at, module.id(at, 0)?)?);
        let bits = self.bits(at, ty)?;
        let cases = module.inst(at).operands.get(2..).unwrap_or_default();
        for pair in (0..cases.len() / 2).map(|n| 2 + 2 * n) {
            let (value, to) = (module.literal(at, pair)?, module.id(at, pair + 1)?);
            let value = super::values::number(bits, value);
            let lines = self.jump(at, block, to, function)?.join(" ");
            self.emit(at, format!("if ({selector} == {value}) {{ {lines} }}"));
        }
        self.last_jump(at, block, module.id(at, 1)?, next, function)
    }

    /// Ends the innermost function.
    fn leave(&mut self, at: usize, next: Option<&Block>, value: Option<String>) -> Translated<()> {
        let of_kernel = self.frames.len() == 1;
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        frame.leaves |= !of_kernel && next.is_some();
        let goes = match of_kernel {
            true => Some("return;".to_owned()),
            false => next.map(|_| format!("goto end{};", frame.suffix)),
        };
        let assigns = frame
            .result
            .as_ref()
            .zip(value)
            .map(|(to, v)| format!("{to} = {v};"));
        let lines: Vec<String> = assigns.into_iter().chain(goes).collect();
        lines.into_iter().for_each(|line| self.emit(at, line));
        Ok(())
    }

    /// Replaces a call by the code of its function.
    pub(super) fn call(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        let called = module.id(at, 0)?;
        let Some(function) = module.functions.get(&called) else {
            return module.fail(at, &format!("%{called} is not a function"), "expected one");
        };
        if self.frames.iter().any(|frame| frame.function == called) {
            let message = "a function that calls itself is not supported";
            return module.fail(at, message, "OpenCL C has no recursion");
        }
        let inst = module.inst(at);
        let (id, ty) = (inst.result_id.unwrap_or(0), inst.result_type.unwrap_or(0));
        let mut given = Vec::new();
        for n in 1..inst.operands.len() {
            let value = self.value(at, module.id(at, n)?)?;
            let param = function.params.get(n - 1);
            given.push(
                match param.and_then(|param| module.inst(*param).result_id) {
                    Some(param) if module.by_value.contains(&param) => self.copied(at, n)?,
                    _ => value,
                },
            );
        }
        if given.len() != function.params.len() {
            let message = format!(
                "{} arguments for {} parameters",
                given.len(),
                function.params.len()
            );
            return module.fail(at, &message, "expected as many");
        }
        let result = match module.type_at(at, ty)? {
            SpirvType::Void => None,
            _ => Some(self.variable(at, id, ty)?),
        };
        self.enter(called, result.clone());
        for (param, value) in function.params.iter().zip(given) {
            if let Some(id) = module.inst(*param).result_id {
                self.bind(id, value);
            }
        }
        self.function_body(at, function)?;
        self.frames.pop();
        if let Some(name) = result {
            self.bind(id, SpirvValue::Text(name));
        }
        Ok(())
    }

    /// A copy of what an argument points to: the function may change it.
    fn copied(&mut self, at: usize, operand: usize) -> Translated<SpirvValue> {
        let pointer = self.module.id(at, operand)?;
        let (from, ty) = self.place(at, pointer)?;
        let name = self.fresh(&format!("copy{pointer}"));
        let text = self.declared(at, ty, &name)?;
        self.declare(at, text);
        self.copy(at, &name, &from, ty)?;
        Ok(SpirvValue::Place(name, ty))
    }

    /// `OpVariable` of a function.
    pub(super) fn private_variable(&mut self, at: usize) -> Translated<()> {
        let module = self.module;
        let inst = module.inst(at);
        let (Some(id), Some(ty)) = (inst.result_id, inst.result_type) else {
            return module.fail(at, "a variable without a type", "expected one");
        };
        let (StorageClass::Function, to) = self.pointed(at, ty)? else {
            return module.refuse(at, "expected the storage class `Function`");
        };
        let wanted = match module.names.get(&id) {
            Some(name) => format!("{name}{}", self.suffix()),
            None => format!("v{id}{}", self.suffix()),
        };
        let name = self.fresh(&wanted);
        let text = self.declared(at, to, &name)?;
        self.declare(at, text);
        self.bind(id, SpirvValue::Place(name.clone(), to));
        if inst.operands.len() > 1 {
            let value = module.id(at, 1)?;
            self.store(at, &name, to, value)?;
        }
        Ok(())
    }
}

/// Whether a text is a name in C.
fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
