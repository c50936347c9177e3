//! Evaluates the expressions of host code.

use std::ops::Range;
use std::rc::Rc;

use super::machine::{Flow, Machine, element_of, null};
use super::opencl::CL_CONSTANTS;
use super::parser::Read;
use super::runtime::is_driver_call;
use super::tree::{HostBase, HostDeclared, HostExpr, HostExprKind, HostFunction, HostType};
use super::values::{ElementType, HostLambda, HostPlace, HostValue, Pointer, StreamValue};
use crate::isa::clike::math::number_named;
use crate::isa::clike::words::LIMITS;
use program::{Dialect, Ty};

/// Names of numbers in the headers of the runtime and of C.
const CONSTANTS: [(&str, i64); 48] = [
    ("cudaDevAttrMaxThreadsPerBlock", 1),
    ("cudaDevAttrWarpSize", 10),
    ("cudaDevAttrMultiProcessorCount", 16),
    ("RAND_MAX", 0x7fff_ffff),
    ("true", 1),
    ("false", 0),
    ("cudaSuccess", 0),
    ("CUDA_SUCCESS", 0),
    ("CU_MEM_ALLOCATION_TYPE_PINNED", 1),
    ("CU_MEM_LOCATION_TYPE_DEVICE", 1),
    ("CU_MEM_ACCESS_FLAGS_PROT_READ", 1),
    ("CU_MEM_ACCESS_FLAGS_PROT_READWRITE", 3),
    ("CU_MEM_ALLOC_GRANULARITY_MINIMUM", 0),
    ("CU_MEM_ALLOC_GRANULARITY_RECOMMENDED", 1),
    ("cudaErrorInvalidValue", 1),
    ("cudaErrorMemoryAllocation", 2),
    ("cudaErrorNotReady", 600),
    ("cudaStreamDefault", 0),
    ("cudaStreamNonBlocking", 1),
    ("cudaEventDefault", 0),
    ("cudaEventBlockingSync", 1),
    ("cudaEventDisableTiming", 2),
    ("cudaEventInterprocess", 4),
    ("cudaEventWaitDefault", 0),
    ("cudaMemcpyHostToHost", 0),
    ("cudaMemcpyHostToDevice", 1),
    ("cudaMemcpyDeviceToHost", 2),
    ("cudaMemcpyDeviceToDevice", 3),
    ("cudaMemcpyDefault", 4),
    ("cudaHostAllocDefault", 0),
    ("cudaHostAllocPortable", 1),
    ("cudaHostAllocMapped", 2),
    ("cudaHostAllocWriteCombined", 4),
    ("cudaHostRegisterDefault", 0),
    ("cudaHostRegisterPortable", 1),
    ("cudaHostRegisterMapped", 2),
    ("cudaMemAttachGlobal", 1),
    ("cudaMemAttachHost", 2),
    ("cudaStreamCaptureModeGlobal", 0),
    ("cudaStreamCaptureModeThreadLocal", 1),
    ("cudaStreamCaptureModeRelaxed", 2),
    ("EXIT_SUCCESS", 0),
    ("EXIT_FAILURE", 1),
    // Of the headers of NVIDIA's samples.
    ("EXIT_WAIVED", 2),
    ("cudaCpuDeviceId", -1),
    ("cudaLaunchAttributeClusterDimension", 4),
    ("cudaLaunchAttributeCooperative", 2),
    ("cudaLaunchAttributeProgrammaticStreamSerialization", 6),
];

impl Machine<'_> {
    /// The value of an expression.
    pub(super) fn value(&mut self, tree: &HostExpr) -> Read<HostValue> {
        let range = &tree.range;
        match &tree.kind {
            HostExprKind::Int(n, ty) => Ok(HostValue::Int(*n, *ty)),
            HostExprKind::Float(n) => {
                let single = self.code.text.as_str()[range.clone()].ends_with(['f', 'F']);
                Ok(HostValue::Float(*n, if single { 32 } else { 64 }))
            }
            HostExprKind::Str(text) => Ok(HostValue::Text(text.clone())),
            HostExprKind::Name(name) => self.name(name, range),
            HostExprKind::Unary(op, of) => self.unary(op, of, range),
            HostExprKind::Binary(op @ ("&&" | "||"), a, b) => self.logic(op, a, b),
            HostExprKind::Binary(op, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.binary(op, a, b, range)
            }
            HostExprKind::Choice(cond, then, other) => self.choice(cond, then, other),
            HostExprKind::Comma(a, b) => {
                self.value(a)?;
                self.value(b)
            }
            HostExprKind::Assign(op, target, value) => self.assign(*op, target, value, range),
            HostExprKind::Step(target, up, prefix) => {
                let op = if *up { "+" } else { "-" };
                let one = HostExpr {
                    kind: HostExprKind::Int(1, Ty::S32),
                    range: range.clone(),
                };
                if let Some(old) = self.atomic_update(op, target, &one, range)? {
                    return match prefix {
                        true => self.binary(op, old, HostValue::Int(1, Ty::S32), range),
                        false => Ok(old),
                    };
                }
                let place = self.place(target)?;
                let old = self.load(&place, range)?;
                let new = self.binary(op, old.clone(), HostValue::Int(1, Ty::S32), range)?;
                self.store(&place, new.clone(), range)?;
                Ok(if *prefix { new } else { old })
            }
            HostExprKind::Call(callee, arguments) => self.call(callee, arguments, range),
            HostExprKind::Instance(name, _) => self.name(name, range),
            HostExprKind::Initialize(member, all) => self.initialize(member, all, range),
            HostExprKind::Launch(launch) => self.launch(launch, range),
            HostExprKind::Index(of, _) => {
                if self.is_argv(of) {
                    return self.argument(tree);
                }
                let place = self.place(tree)?;
                self.load(&place, range)
            }
            // Members of structures that the runtime fills are not worked out.
            HostExprKind::Member(of, name) => match self.place_if_any(tree)? {
                Some(place) => self.load(&place, range),
                None => Ok(self.device_property(of, name).unwrap_or(HostValue::Unknown)),
            },
            HostExprKind::Cast(of, value) => {
                let value = self.value(value)?;
                Ok(self.cast(value, of))
            }
            HostExprKind::SizeOfType(of) => {
                let of = self.resolved(of, range)?;
                Ok(HostValue::Int(size_of(&of), Ty::U64))
            }
            HostExprKind::SizeOf(of) => self.size_of_value(of),
            HostExprKind::New(of, length, values) => {
                if matches!(of.base, HostBase::Other(_)) && of.pointers == 0 {
                    return self.unknown_object(values);
                }
                let made = self.new_memory(of, length.as_deref(), range)?;
                if let ([value], None, true) = (values.as_slice(), length, of.is_number()) {
                    let value = self.value(value)?;
                    let place = self.element(&made, 0, range)?;
                    self.store(&place, value, range)?;
                }
                Ok(made)
            }
            HostExprKind::Place(at, of, arguments) => self.placed(at, of, arguments, range),
            HostExprKind::Delete(of) => {
                let value = self.value(of)?;
                self.free_heap(&value, range)
            }
            HostExprKind::Construct(of, arguments) => {
                let hint = self.hint();
                self.construct(of, arguments, &hint, range)
            }
            HostExprKind::Braces(all) => self.braces(all, range),
            HostExprKind::Lambda(function, copies) => Ok(self.lambda(function, *copies)),
        }
    }

    /// `{1, 2}`
    fn braces(&mut self, all: &[HostExpr], range: &Range<usize>) -> Read<HostValue> {
        match all {
            [] => Ok(HostValue::Int(0, Ty::S32)),
            [one] => self.value(one),
            [_, _] | [_, _, _] => {
                let mut sizes = [1; 3];
                for (size, tree) in sizes.iter_mut().zip(all) {
                    *size = self.number(tree)?;
                }
                Ok(HostValue::Dim3(sizes))
            }
            _ => self.wrong(
                range,
                "this list is not followed here",
                "expected a value",
                "give it a name: an array or a vector",
            ),
        }
    }

    /// `[&](int n) { … }`
    fn lambda(&mut self, function: &Rc<HostFunction>, copies: bool) -> HostValue {
        let mut scope = self.scope();
        if copies {
            self.copy_captures(&mut scope);
        }
        HostValue::Closure(Rc::new(HostLambda {
            function: function.clone(),
            scope,
        }))
    }

    /// `cond ? then : other`
    fn choice(&mut self, cond: &HostExpr, then: &HostExpr, other: &HostExpr) -> Read<HostValue> {
        let value = self.value(cond)?;
        if let Some(holds) = self.truth(&value) {
            return self.value(if holds { then } else { other });
        }
        let before = self.state.clone();
        let first = self.value(then)?;
        let second = self.value(other)?;
        let silent = self.state.lines.len() == before.lines.len();
        fn number(value: &HostValue) -> bool {
            matches!(
                value,
                HostValue::Int(..) | HostValue::Float(..) | HostValue::Unknown | HostValue::Text(_)
            )
        }
        if silent && (first == second || (number(&first) && number(&second))) {
            return Ok(if first == second {
                first
            } else {
                HostValue::Unknown
            });
        }
        self.state = before;
        match self.decide(&cond.range)? {
            true => self.value(then),
            false => self.value(other),
        }
    }

    /// The value of an initialiser or an assigned value; memory that it allocates gets this name.
    pub(super) fn named_value(&mut self, tree: &HostExpr, name: &str) -> Read<HostValue> {
        let before = self.hint.replace(name.to_owned());
        let value = self.value(tree);
        self.hint = before;
        value
    }

    pub(super) fn hint(&self) -> String {
        self.hint.clone().unwrap_or_else(|| "memory".to_owned())
    }

    /// Copies the variables that a lambda captures by value.
    fn copy_captures(&mut self, scope: &mut std::collections::HashMap<String, HostPlace>) {
        for place in scope.values_mut() {
            if let HostPlace::Cell(at) = place {
                let variable = self.state.cells[*at].clone();
                *at = self.cell(variable.value, variable.of);
            }
        }
    }

    fn name(&mut self, name: &str, range: &Range<usize>) -> Read<HostValue> {
        if let Some(place) = self.find(name) {
            return self.load(&place, range);
        }
        let bare = name.strip_prefix("std::").unwrap_or(name);
        let mut constants = CONSTANTS.iter().chain(&CL_CONSTANTS);
        if let Some((_, value)) = constants.find(|c| c.0 == name) {
            return Ok(HostValue::Int(*value, Ty::S32));
        }
        if let Some((from, distance)) = self.code.enumerator(name).cloned() {
            let from = match from {
                Some(tree) => self.number(&tree)?,
                None => 0,
            };
            return Ok(HostValue::Int(from + distance, Ty::S32));
        }
        if let Some((_, n, ty)) = LIMITS.iter().find(|limit| limit.0 == bare) {
            return Ok(HostValue::Int(*n, *ty));
        }
        if let Some((n, format)) = number_named(bare) {
            return Ok(HostValue::Float(n, format.bits));
        }
        let is_known =
            self.code.kernels.iter().any(|k| k == name) || self.code.function(name).is_some();
        Ok(match bare {
            "NULL" | "nullptr" => null(super::machine::BYTE),
            "cudaStreamLegacy" => HostValue::Stream(StreamValue::Legacy),
            "cudaStreamPerThread" => HostValue::Stream(StreamValue::PerThread),
            "__LINE__" => HostValue::Int(self.code.line(range) as i64, Ty::S32),
            "__FILE__" | "__func__" | "__FUNCTION__" | "cout" | "cerr" | "endl" | "stderr"
            | "stdout" => HostValue::Text(name.to_owned()),
            _ if is_known => HostValue::Function(name.to_owned()),

            _ if self.code.is_of_device(name) => {
                return self.wrong(
                    range,
                    format!("the host names `{name}`, a variable of the device"),
                    "only numbers, structures and arrays of them are followed",
                    "hand the kernel memory that `cudaMalloc` allocates",
                );
            }
            _ if name.contains("::") || name.starts_with("cuda") => HostValue::Unknown,
            _ if name.starts_with("CL_") => HostValue::Unknown,
            _ => {
                return self.wrong(
                    range,
                    format!("there is no `{name}` here"),
                    "expected a name that this file declares",
                    "write its declaration into this file: headers are not read",
                );
            }
        })
    }

    fn unary(&mut self, op: &str, of: &HostExpr, range: &Range<usize>) -> Read<HostValue> {
        match op {
            "&" => self.address(of, range),
            "*" => {
                let value = self.value(of)?;
                let place = self.element(&value, 0, range)?;
                self.load(&place, range)
            }
            "!" => {
                let value = self.value(of)?;
                match self.truth(&value) {
                    Some(holds) => Ok(HostValue::Int(i64::from(!holds), Ty::S32)),
                    None => self.binary("==", value, HostValue::Int(0, Ty::S32), range),
                }
            }
            _ => {
                let value = self.value(of)?;
                match (op, value) {
                    ("-", HostValue::Float(n, bits)) => Ok(HostValue::Float(-n, bits)),
                    ("+", value) => Ok(value),
                    ("-", value) => self.binary("-", HostValue::Int(0, Ty::S32), value, range),
                    (_, value) => self.binary("^", HostValue::Int(-1, Ty::S32), value, range),
                }
            }
        }
    }

    /// `&x`
    pub(super) fn address(&mut self, of: &HostExpr, range: &Range<usize>) -> Read<HostValue> {
        if let HostExprKind::Name(name) = &of.kind
            && self.find(name).is_none()
            && !self.code.is_of_device(name)
        {
            return self.name(name, range);
        }
        Ok(match self.place(of)? {
            HostPlace::Cell(at) => match self.state.cells[at].value {
                // `&a` of an array is the address of its first element.
                HostValue::Buffer(_) => self.decayed(self.state.cells[at].value.clone()),
                _ => HostValue::Cell(at),
            },
            HostPlace::Memory(memory, offset, element) => HostValue::Pointer(Pointer {
                memory: Some(memory),
                offset,
                element,
            }),
            HostPlace::Component(..) => HostValue::Unknown,
        })
    }

    fn assign(
        &mut self,
        op: Option<&'static str>,
        target: &HostExpr,
        value: &HostExpr,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        if let Some(op) = op
            && let Some(old) = self.atomic_update(op, target, value, range)?
        {
            return Ok(old);
        }
        let place = self.place(target)?;
        if let (HostExprKind::Braces(all), None) = (&value.kind, op)
            && self.stores_list(&place, all, range)?
        {
            return Ok(HostValue::Unset);
        }
        let name = match &target.kind {
            HostExprKind::Name(name) => name.clone(),
            HostExprKind::Index(of, _) => match &of.kind {
                HostExprKind::Name(name) => name.clone(),
                _ => self.hint(),
            },
            _ => self.hint(),
        };
        let mut new = self.named_value(value, &name)?;
        if let Some(op) = op {
            let old = self.load(&place, range)?;
            new = self.binary(op, old, new, range)?;
        }
        self.store(&place, new.clone(), range)?;
        Ok(new)
    }

    /// `(int*)p`
    fn cast(&mut self, value: HostValue, of: &HostType) -> HostValue {
        match (&value, of.pointers) {
            // `(void**)&p` is still the address of `p`.
            (HostValue::Cell(_), _) => value,
            (_, 0) if matches!(of.base, HostBase::Void) => HostValue::Unset,
            _ => self.converted(value, of),
        }
    }

    fn size_of_value(&mut self, of: &HostExpr) -> Read<HostValue> {
        let bytes = match &of.kind {
            HostExprKind::Name(name) => match self.find(name) {
                Some(HostPlace::Cell(at)) => match &self.state.cells[at].value {
                    HostValue::Buffer(memory)
                        if !matches!(self.state.cells[at].of.base, HostBase::Vector(..)) =>
                    {
                        self.state.memory[*memory].bytes
                    }
                    HostValue::Cells(_, length) => 8 * *length as i64,
                    _ => size_of(&self.state.cells[at].of),
                },
                Some(HostPlace::Memory(_, _, element)) => element.bytes(),
                _ => return self.name(name, &of.range),
            },
            HostExprKind::Index(..) | HostExprKind::Unary("*", _)
                if let Some((of, _)) = self.declared_type(of)
                    && !matches!(of.base, HostBase::Auto | HostBase::Other(_)) =>
            {
                size_of(&of)
            }
            HostExprKind::Index(..) | HostExprKind::Unary("*", _) => match self.place(of)? {
                HostPlace::Memory(_, _, element) => element.bytes(),
                _ => 8,
            },
            _ => {
                return self.wrong(
                    &of.range,
                    "this size is not worked out",
                    "expected a type or a variable",
                    "write the type: `sizeof(int)`",
                );
            }
        };
        Ok(HostValue::Int(bytes, Ty::U64))
    }

    /// The type that declarations give an expression, and whether it is an array of that type:
    /// `sizeof *p` does not use the value of `p` (ISO C++, expr.sizeof).
    pub(super) fn declared_type(&self, tree: &HostExpr) -> Option<(HostType, bool)> {
        match &tree.kind {
            HostExprKind::Name(name) => match self.find(name)? {
                HostPlace::Cell(at) => {
                    let variable = &self.state.cells[at];
                    let array =
                        matches!(variable.value, HostValue::Buffer(_) | HostValue::Cells(..));
                    Some(match &variable.of.base {
                        HostBase::Vector(inner, _) => ((**inner).clone(), true),
                        _ => (variable.of.clone(), array),
                    })
                }
                _ => None,
            },
            HostExprKind::Index(of, _) | HostExprKind::Unary("*", of) => {
                let (mut of, array) = self.declared_type(of)?;
                if !array {
                    of.pointers = of.pointers.checked_sub(1)?;
                }
                Some((of, false))
            }
            _ => None,
        }
    }

    /// Whether an expression is the second parameter of `main`.
    fn is_argv(&mut self, of: &HostExpr) -> bool {
        let HostExprKind::Name(name) = &of.kind else {
            return false;
        };
        let Some(HostPlace::Cell(at)) = self.find(name) else {
            return false;
        };
        self.state.cells[at].value == HostValue::Function("argv".to_owned())
    }

    /// `argv[1]`
    fn argument(&mut self, tree: &HostExpr) -> Read<HostValue> {
        let HostExprKind::Index(_, at) = &tree.kind else {
            return Ok(HostValue::Unknown);
        };
        let at = self.number(at)?;
        if at == 0 {
            return Ok(HostValue::Text(self.code.file.name.clone()));
        }
        let given = usize::try_from(at - 1)
            .ok()
            .and_then(|at| self.code.arguments.get(at));
        match given {
            Some(text) => Ok(HostValue::Text(text.clone())),
            None => self.wrong(
                &tree.range,
                format!("the program is not given argument {at}"),
                format!("{} given", self.code.arguments.len()),
                "give them behind `--args`, as in `--args 64`",
            ),
        }
    }

    /// A call of a function, a method or a lambda.
    fn call(
        &mut self,
        callee: &HostExpr,
        arguments: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let name = match &callee.kind {
            HostExprKind::Name(name) | HostExprKind::Instance(name, _) => name.clone(),
            HostExprKind::Member(of, method) => return self.method(of, method, arguments, range),
            _ => String::new(),
        };
        let own = self.find(&name);
        if own.is_none() && !name.is_empty() {
            if let Some(object) = self.this_object() {
                let this = HostValue::Record(object);
                if let Some(value) = self.object_method(&this, &name, arguments, range)? {
                    return Ok(value);
                }
            }
            if self.code.function_template(&name).is_some() {
                let given = match &callee.kind {
                    HostExprKind::Instance(_, given) => given.clone(),
                    _ => Rc::from([]),
                };
                return self.call_template(&name, &given, arguments, range);
            }
            match self
                .code
                .functions_taking(&name, arguments.len())?
                .as_slice()
            {
                [] => {}
                [function] => {
                    let values = self.arguments(&function.params, arguments)?;
                    return self.called(function, values, None);
                }
                _ => {
                    return self.wrong(
                        range,
                        format!("several functions `{name}` take so many arguments"),
                        "expected one: the host's overloads are not told apart by types",
                        "give the functions different names",
                    );
                }
            }
            let opencl = self.code.dialect == Dialect::OpenCl && is_opencl(&name);
            if name.starts_with("cuda") || is_driver_call(&name) || opencl {
                return self.runtime_call(&name, arguments, range);
            }
            if self.code.kernels.contains(&name) {
                return self.wrong(
                    range,
                    format!("`{name}` is a kernel, and this is no launch"),
                    "expected `<<<grid, block>>>` behind its name",
                    format!("write `{name}<<<1, 1>>>(…)`"),
                );
            }
            return self.library_call(&name, arguments, range);
        }
        let callee = self.value(callee)?;
        match callee {
            HostValue::Closure(closure) => {
                let values = self.arguments(&closure.function.params, arguments)?;
                self.called(&closure.function.clone(), values, Some(&closure.scope))
            }
            HostValue::Function(name) => {
                let Some(function) = self.code.function(&name).transpose()? else {
                    return Ok(HostValue::Unknown);
                };
                let values = self.arguments(&function.params, arguments)?;
                self.called(&function, values, None)
            }
            _ => self.wrong(
                range,
                "this call is not followed",
                "expected a function of this file",
                "use `--launch` to check one kernel alone",
            ),
        }
    }

    pub(super) fn called(
        &mut self,
        function: &Rc<HostFunction>,
        values: Vec<HostValue>,
        scope: Option<&std::collections::HashMap<String, HostPlace>>,
    ) -> Read<HostValue> {
        match self.function(function, values, scope)? {
            Flow::Return(value) => Ok(value),
            Flow::Exit => {
                self.state.ended = true;
                Ok(HostValue::Unset)
            }
            Flow::Throw => {
                self.state.thrown = true;
                Ok(HostValue::Unset)
            }
            _ => Ok(HostValue::Unset),
        }
    }

    /// The arguments of a call: places for references, else values.
    pub(super) fn arguments(
        &mut self,
        params: &[HostDeclared],
        all: &[HostExpr],
    ) -> Read<Vec<HostValue>> {
        let mut values = Vec::new();
        for (i, tree) in all.iter().enumerate() {
            let reference = params.get(i).is_some_and(|p| p.of.reference);
            if reference && let Some(place) = self.place_if_any(tree)? {
                values.push(match place {
                    HostPlace::Cell(at) => HostValue::Cell(at),
                    HostPlace::Memory(memory, offset, element) => HostValue::Pointer(Pointer {
                        memory: Some(memory),
                        offset,
                        element,
                    }),
                    HostPlace::Component(..) => self.load(&place, &tree.range)?,
                });
                continue;
            }
            values.push(self.value(tree)?);
        }
        for param in params.iter().skip(all.len()) {
            let Some(default) = &param.value else { break };
            values.push(self.value(default)?);
        }
        Ok(values)
    }
}

/// Whether a name is that of a call of OpenCL's host API.
fn is_opencl(name: &str) -> bool {
    let rest = name.strip_prefix("cl").unwrap_or("");
    rest.starts_with(|c: char| c.is_ascii_uppercase())
}

/// The size of a type in bytes.
pub(super) fn size_of(of: &HostType) -> i64 {
    let element: ElementType = element_of(&of.base);
    match &of.base {
        _ if of.pointers > 0 => 8,
        HostBase::Stream | HostBase::Event => 8,
        HostBase::Dim3 => 12,
        HostBase::Record(record) => record.size,
        _ => element.bytes(),
    }
}
