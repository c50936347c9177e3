//! Calls of the libraries of C and C++ in host code: memory, vectors, numbers, output.

use std::ops::Range;

use super::machine::{BYTE, Machine};
use super::parser::Read;
use super::tree::{HostBase, HostDeclared, HostExpr, HostType, is_stop_class};
use super::values::{AllocatedBy, HostPlace, HostValue, Pointer};
use program::Ty;

/// Functions that print, or that wait for a time.
const SILENT: [&str; 15] = [
    "printf",
    "fprintf",
    "puts",
    "putchar",
    "fputs",
    "fflush",
    "perror",
    "srand",
    "usleep",
    "sleep",
    "this_thread::sleep_for",
    "this_thread::yield",
    "setbuf",
    "nvtxRangePushA",
    "nvtxRangePop",
];

/// Functions whose results are not worked out.
const OPEN: [&str; 13] = [
    "strlen",
    "rand",
    "time",
    "clock",
    "drand48",
    "getenv",
    "random_device",
    "chrono::steady_clock::now",
    "chrono::high_resolution_clock::now",
    "chrono::system_clock::now",
    "chrono::milliseconds",
    "chrono::microseconds",
    "chrono::seconds",
];

impl Machine<'_> {
    /// A call of a function that is not of the file.
    pub(super) fn library_call(
        &mut self,
        name: &str,
        arguments: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let bare = name.strip_prefix("std::").unwrap_or(name);
        match bare {
            "assert" => return self.assertion(arguments, range),
            "swap" => return self.swap(arguments, range),
            "signal" | "sigaction" | "raise" => return self.signal_handler(range),
            _ => {}
        }
        // `make_float4(x, y, z, w)`
        let vector = name
            .strip_prefix("make_")
            .and_then(|name| self.code.type_of(name));
        if let Some(of) = vector.cloned() {
            return self.record_of(&of, arguments, range);
        }
        let mut values = Vec::new();
        for argument in arguments {
            let value = self.value(argument)?;
            values.push(self.decayed(value));
        }
        if SILENT.contains(&bare) {
            return Ok(HostValue::Int(0, Ty::S32));
        }
        if OPEN.contains(&bare) || bare.starts_with("chrono::") {
            return Ok(HostValue::Unknown);
        }
        if let Some(result) = self.helper_call(bare, &values, range) {
            return result;
        }
        if let Some(result) = self.algorithm(bare, &values, range) {
            return result;
        }
        if let Some(params) = self.code.only_declared(name) {
            return self.call_elsewhere(name, &params, &values, range);
        }
        match (bare, values.as_slice()) {
            ("malloc", [bytes]) => self.heap(bytes, false, range),
            ("calloc", [count, bytes]) => {
                let bytes = self.binary("*", count.clone(), bytes.clone(), range)?;
                self.heap(&bytes, true, range)
            }
            ("free", [pointer]) => self.free_heap(pointer, range),
            ("memset", [to, value, bytes]) => {
                let (to, value, bytes) = (to.clone(), value.clone(), self.known(bytes, range)?);
                self.fill_bytes(&to, &value, bytes, range)
            }
            ("memcpy" | "memmove", [to, from, bytes]) => {
                let (to, from) = (to.clone(), from.clone());
                let bytes = self.known(bytes, range)?;
                self.copy_on_host(&to, &from, bytes, range)
            }
            ("fill" | "iota", [from, to, value]) => {
                let (from, to, value) = (from.clone(), to.clone(), value.clone());
                self.fill(&from, &to, value, bare == "iota", range)
            }
            ("atoi" | "atol" | "stoi" | "stol" | "strtol" | "stoul" | "atoll", [text, ..]) => {
                Ok(text_number(text))
            }
            ("strcmp", [HostValue::Text(a), HostValue::Text(b)]) => {
                Ok(HostValue::Int(a.cmp(b) as i64, Ty::S32))
            }
            ("strcmp" | "strcasecmp" | "strncmp" | "strlen" | "uname", _) => {
                self.forget_results(&values);
                Ok(HostValue::Unknown)
            }
            ("fmin" | "fmax" | "fminf" | "fmaxf" | "min" | "max", [a, b]) => {
                let less = self.binary("<", b.clone(), a.clone(), range)?;
                Ok(match (self.truth(&less), bare.contains("min")) {
                    (Some(less), is_min) if less == is_min => b.clone(),
                    (Some(_), _) => a.clone(),
                    (None, _) => HostValue::Unknown,
                })
            }
            ("move" | "ref" | "cref", [value]) => Ok(value.clone()),
            ("abs", [HostValue::Int(n, ty)]) => Ok(HostValue::Int(n.wrapping_abs(), *ty)),
            (
                "abs" | "fabs" | "fabsf" | "sqrt" | "sqrtf" | "ceil" | "ceilf" | "floor" | "floorf"
                | "rint" | "round" | "exp" | "log" | "log2",
                [a],
            ) => Ok(mathematics(bare, a)),
            (
                "sin" | "cos" | "pow" | "powf" | "sinf" | "cosf" | "expf" | "tan" | "tanh" | "atan"
                | "atan2" | "logf" | "log10" | "fmod" | "fmodf" | "hypot" | "isnan" | "isfinite",
                _,
            ) => Ok(HostValue::Unknown),
            _ => self.wrong(
                range,
                format!("`{name}` is not followed"),
                "expected a function of this file, of CUDA's runtime, or a common one of C++",
                "leave the call out if no kernel depends on it, or check one kernel with \
                `--launch`",
            ),
        }
    }

    fn signal_handler(&self, range: &Range<usize>) -> Read<HostValue> {
        self.wrong(
            range,
            "signal handlers are not followed",
            "a handler may run in any thread, at any time",
            "make it a `std::thread` if it may be one: \"it is unspecified which thread of \
             execution contains the signal handler invocation\" (ISO C++, intro.multithread)",
        )
    }

    fn assertion(&mut self, arguments: &[HostExpr], range: &Range<usize>) -> Read<HostValue> {
        let Some(tree) = arguments.first() else {
            return Ok(HostValue::Unset);
        };
        let value = self.value(tree)?;
        match self.truth(&value) {
            Some(true) => {}
            Some(false) => {
                let d = self.code.error("assertion", range, "this assertion fails");
                return Err(Box::new(
                    d.label("it does not hold when the program comes here"),
                ));
            }
            None if value == HostValue::Unknown => {}
            None => {
                let condition = self.condition(&value, range);
                self.emit(format!("assert({condition} != 0);"), range);
            }
        }
        Ok(HostValue::Unset)
    }

    fn swap(&mut self, arguments: &[HostExpr], range: &Range<usize>) -> Read<HostValue> {
        if let [a, b] = arguments {
            let (a, b) = (self.place(a)?, self.place(b)?);
            let (x, y) = (self.load(&a, range)?, self.load(&b, range)?);
            self.store(&a, y, range)?;
            self.store(&b, x, range)?;
        }
        Ok(HostValue::Unset)
    }

    /// `malloc(bytes)`
    fn heap(&mut self, bytes: &HostValue, zeroed: bool, range: &Range<usize>) -> Read<HostValue> {
        let bytes = self.known(bytes, range)?;
        let bytes = self.size(bytes, 8, range)?;
        let hint = self.hint();
        let memory = self.allocate(&hint, range, BYTE, bytes, AllocatedBy::Heap);
        if zeroed {
            self.zeroed(memory);
        }
        Ok(HostValue::Pointer(Pointer {
            memory: Some(memory),
            offset: 0,
            element: BYTE,
        }))
    }

    /// `new int[n]`
    pub(super) fn new_memory(
        &mut self,
        of: &HostType,
        length: Option<&HostExpr>,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let length = match length {
            Some(tree) => self.number(tree)?,
            None => 1,
        };
        let hint = self.hint();
        let made = self.array(&hint, range, of, length, false)?;
        if let HostValue::Buffer(memory) = made {
            self.state.memory[memory].allocation = AllocatedBy::Heap;
        }
        Ok(self.decayed(made))
    }

    /// `free(p)`, `delete[] p`
    pub(super) fn free_heap(&mut self, value: &HostValue, range: &Range<usize>) -> Read<HostValue> {
        if let HostValue::Pointer(Pointer {
            memory: Some(memory),
            offset,
            ..
        }) = value
        {
            self.alive(*memory, range)?;
            let object = &self.state.memory[*memory];
            let heap = [AllocatedBy::Heap, AllocatedBy::Registered];
            if !heap.contains(&object.allocation) || *offset != 0 {
                return self.wrong_free(*memory, range, "`malloc` or `new`");
            }
            self.free_on_host(*memory, range);
        }
        Ok(HostValue::Unset)
    }

    pub(super) fn wrong_free<T>(
        &mut self,
        memory: usize,
        range: &Range<usize>,
        expected: &str,
    ) -> Read<T> {
        let object = &self.state.memory[memory];
        let d = self.code.error(
            "wrong-free",
            range,
            format!("`{}` is not freed as it was allocated", object.name),
        );
        let made = self.code.text.span(object.range.clone());
        Err(Box::new(
            d.label(format!("expected memory of {expected}"))
                .also(made, "allocated here"),
        ))
    }

    /// The values of a vector's list.
    pub(super) fn vector_of(
        &mut self,
        declared: &HostDeclared,
        all: &[HostExpr],
    ) -> Read<HostValue> {
        let HostBase::Vector(of, _) = &declared.of.base else {
            return Ok(HostValue::Unset);
        };
        let (name, range) = (&declared.name, &declared.range);
        let made = self.array(name, range, of, all.len() as i64, true)?;
        for (i, tree) in all.iter().enumerate() {
            let value = self.value(tree)?;
            let place = self.element(&made, i as i64, &tree.range)?;
            self.store(&place, value, &tree.range)?;
        }
        Ok(made)
    }

    /// `dim3(2, 2)`, `std::vector<int>(n)`, `std::thread(f, 1)`, `int(x)`
    pub(super) fn construct(
        &mut self,
        of: &HostType,
        arguments: &[HostExpr],
        name: &str,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let of = &self.resolved(of, range)?;
        match &of.base {
            HostBase::Record(record) if !record.methods.is_empty() => {
                let record = record.clone();
                self.new_object(&record, arguments, range)
            }
            HostBase::Thread(_) => self.start_thread(arguments, name, range),
            HostBase::Atomic(..) => self.atomic_reference(of, arguments, range),
            HostBase::Record(_) => self.record_of(of, arguments, range),
            HostBase::Dim3 => {
                let mut sizes = [1; 3];
                if let [one] = arguments {
                    let value = self.value(one)?;
                    if let HostValue::Dim3(_) = value {
                        return Ok(value);
                    }
                    sizes[0] = self.known(&value, range)?;
                    return Ok(HostValue::Dim3(sizes));
                }
                for (size, tree) in sizes.iter_mut().zip(arguments) {
                    *size = self.number(tree)?;
                }
                Ok(HostValue::Dim3(sizes))
            }
            HostBase::Vector(element, length) => {
                if let Some(made) = self.vector_from(element, arguments, name, range)? {
                    return Ok(made);
                }
                let mut value = None;
                let length = match (arguments, length) {
                    ([], Some(length)) => self.number(length)?,
                    ([], None) => 0,
                    ([first, rest @ ..], _) => {
                        let first = self.number(first)?;
                        value = rest.first().map(|tree| self.value(tree)).transpose()?;
                        first
                    }
                };
                let made = self.array(name, range, element, length, true)?;
                if let Some(value) = value {
                    for i in 0..length {
                        let place = self.element(&made, i, range)?;
                        self.store(&place, value.clone(), range)?;
                    }
                }
                Ok(made)
            }
            HostBase::Other(class) if is_stop_class(class, "stop_callback") => {
                self.stop_callback(arguments, name, range)
            }
            HostBase::Other(class) if is_stop_class(class, "stop_source") => {
                self.stop_source(arguments, name, range)
            }
            HostBase::Other(_) => self.unknown_object(arguments),
            _ => match arguments {
                [one] => {
                    let value = self.value(one)?;
                    Ok(self.converted(value, of))
                }
                _ => Ok(HostValue::Int(0, Ty::S32)),
            },
        }
    }

    /// An object of a class that is not followed. It must not be handed code.
    pub(super) fn unknown_object(&mut self, arguments: &[HostExpr]) -> Read<HostValue> {
        for argument in arguments {
            let value = self.value(argument)?;
            self.must_be_data(&value, &argument.range)?;
        }
        Ok(HostValue::Unknown)
    }

    /// Reports code that an object may run at a time, and in a thread, of its own.
    fn must_be_data(&self, value: &HostValue, range: &Range<usize>) -> Read<()> {
        if !matches!(value, HostValue::Closure(_) | HostValue::Function(_)) {
            return Ok(());
        }
        self.wrong(
            range,
            "this object may call the function that it is given",
            "expected an object that calls nothing",
            "call the function where it runs, or start a `std::thread`",
        )
    }

    /// `std::vector<int> v(p, p + n)`, `std::unique_ptr<int[]> p(new int[n])`; `None`: the first
    /// argument is no address.
    fn vector_from(
        &mut self,
        element: &HostType,
        arguments: &[HostExpr],
        name: &str,
        range: &Range<usize>,
    ) -> Read<Option<HostValue>> {
        let (Some(first), true) = (arguments.first(), arguments.len() <= 2) else {
            return Ok(None);
        };
        let before = self.state.clone();
        let first = self.named_value(first, name)?;
        let HostValue::Pointer(Pointer {
            memory: Some(memory),
            ..
        }) = first
        else {
            // The caller evaluates it.
            self.state = before;
            return Ok(None);
        };
        let Some(last) = arguments.get(1) else {
            return Ok(Some(HostValue::Buffer(memory)));
        };
        let last = self.value(last)?;
        let length = self.binary("-", last, first.clone(), range)?;
        let length = self.known(&length, range)?;
        let made = self.array(name, range, element, length, true)?;
        for at in 0..length {
            let value = self.element_value(&first, at, range)?;
            let place = self.element(&made, at, range)?;
            self.store(&place, value, range)?;
        }
        Ok(Some(made))
    }

    /// `v.size()`, `t.join()`
    pub(super) fn method(
        &mut self,
        of: &HostExpr,
        method: &str,
        arguments: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        if let Some(object) = self.atomic_of(of)? {
            return self.atomic_method(&object, method, arguments, range);
        }
        let object = self.value(of)?;
        if let Some(value) = self.object_method(&object, method, arguments, range)? {
            return Ok(value);
        }
        if let HostValue::Atomic(object) = &object {
            return self.atomic_method(object, method, arguments, range);
        }
        if let (HostValue::Thread(thread), "join") = (&object, method) {
            return self.join_thread(*thread, range);
        }
        if let Some(stop) = self.stop_state(&object)
            && let Some(value) = self.stop_call(stop, method, range)?
        {
            return Ok(value);
        }
        if matches!(method, "push_back" | "emplace_back") {
            let place = self.place(of)?;
            return self.push_back(&place, &object, arguments, range);
        }
        let mut values = Vec::new();
        for argument in arguments {
            let value = self.value(argument)?;
            if matches!(object, HostValue::Unknown | HostValue::Unset) {
                self.must_be_data(&value, &argument.range)?;
            }
            values.push(value);
        }
        match (&object, method) {
            (HostValue::Buffer(_) | HostValue::Cells(..), "size") => {
                Ok(HostValue::Int(self.length_of(&object, range)?, Ty::U64))
            }
            (HostValue::Buffer(_) | HostValue::Cells(..), "empty") => {
                let length = self.length_of(&object, range)?;
                Ok(HostValue::Int(i64::from(length == 0), Ty::S32))
            }
            (HostValue::Buffer(_) | HostValue::Cells(..), "data" | "begin" | "get") => {
                Ok(self.decayed(object))
            }
            (HostValue::Buffer(_), "end") => {
                let length = self.length_of(&object, range)?;
                let first = self.decayed(object);
                self.binary("+", first, HostValue::Int(length, Ty::WORD), range)
            }
            (HostValue::Buffer(_) | HostValue::Cells(..), "at" | "front" | "back") => {
                let at = match (method, values.first()) {
                    ("at", Some(at)) => self.known(at, range)?,
                    ("back", _) => self.length_of(&object, range)? - 1,
                    _ => 0,
                };
                let place = self.element(&object, at, range)?;
                self.load(&place, range)
            }
            (HostValue::Cells(..), "reserve") | (HostValue::Buffer(_), "reserve") => {
                Ok(HostValue::Unset)
            }
            (HostValue::Unknown | HostValue::Unset, _) => Ok(HostValue::Unknown),
            _ => self.wrong(
                range,
                format!("`{method}` is not followed here"),
                "expected `size`, `data`, `push_back` or another simple member of a vector",
                "use an array, and a loop over its elements",
            ),
        }
    }

    fn push_back(
        &mut self,
        place: &HostPlace,
        object: &HostValue,
        arguments: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let HostPlace::Cell(at) = place else {
            return Ok(HostValue::Unset);
        };
        let of = match &self.state.cells[*at].of.base {
            HostBase::Vector(of, _) => (**of).clone(),
            _ => return Ok(HostValue::Unset),
        };
        let value = match (&of.base, arguments) {
            (HostBase::Thread(_), _) => {
                let name = format!("thread_{}", self.state.threads.len() + 1);
                self.construct(&of, arguments, &name, range)?
            }
            (_, [one]) => self.value(one)?,
            _ => HostValue::Unset,
        };
        match object {
            HostValue::Buffer(memory) => {
                let object = &mut self.state.memory[*memory];
                if object.escapes {
                    return self.wrong(
                        range,
                        "this vector grows while a command may access it",
                        "its elements may move",
                        "give it its length before the first command",
                    );
                }
                object.bytes += object.element.bytes();
                object.initial.resize(object.cells());
                object.shadow.resize(object.cells());
                let last = object.length() as i64 - 1;
                let place = self.element(&HostValue::Buffer(*memory), last, range)?;
                self.store(&place, value, range)?;
            }
            HostValue::Cells(first, length) => {
                let all: Vec<_> = self.state.cells[*first..first + length].to_vec();
                let start = self.state.cells.len();
                self.state.cells.extend(all);
                self.cell(value, of);
                self.state.cells[*at].value = HostValue::Cells(start, length + 1);
            }
            _ => {}
        }
        Ok(HostValue::Unset)
    }

    /// `std::fill(from, to, value)`, `std::iota(from, to, value)`
    fn fill(
        &mut self,
        from: &HostValue,
        to: &HostValue,
        mut value: HostValue,
        counts: bool,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let length = self.binary("-", to.clone(), from.clone(), range)?;
        for i in 0..self.known(&length, range)? {
            let place = self.element(from, i, range)?;
            self.store(&place, value.clone(), range)?;
            if counts {
                value = self.binary("+", value, HostValue::Int(1, Ty::S32), range)?;
            }
        }
        Ok(HostValue::Unset)
    }

    /// `memset(p, value, bytes)`
    fn fill_bytes(
        &mut self,
        to: &HostValue,
        value: &HostValue,
        bytes: i64,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let byte = self.known(value, range)? & 0xff;
        let HostValue::Pointer(pointer) = to else {
            return Ok(to.clone());
        };
        let Some(memory) = pointer.memory else {
            return Ok(to.clone());
        };
        let element = self.state.memory[memory].element;
        let pattern = element.ty.wrap(repeated(byte));
        for at in 0..bytes / element.bytes() {
            let place = HostPlace::Memory(memory, pointer.offset + at * element.bytes(), element);
            let value = match element.floating {
                true => HostValue::Float(0.0, element.ty.bits),
                false => HostValue::Int(pattern, element.ty),
            };
            self.store(&place, value, range)?;
        }
        Ok(to.clone())
    }

    /// `memcpy(to, from, bytes)`
    fn copy_on_host(
        &mut self,
        to: &HostValue,
        from: &HostValue,
        bytes: i64,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let (HostValue::Pointer(a), HostValue::Pointer(b)) = (to, from) else {
            return Ok(to.clone());
        };
        for at in 0..bytes / a.element.bytes() {
            let source = self.element(&HostValue::Pointer(b.clone()), at, range)?;
            let value = self.load(&source, range)?;
            let target = self.element(&HostValue::Pointer(a.clone()), at, range)?;
            self.store(&target, value, range)?;
        }
        Ok(to.clone())
    }
}

/// A byte in each byte of a word.
pub(super) fn repeated(byte: i64) -> i64 {
    (0..8).fold(0, |all, _| (all << 8) | (byte & 0xff))
}

/// The number that a text begins with.
fn text_number(text: &HostValue) -> HostValue {
    let HostValue::Text(text) = text else {
        return HostValue::Unknown;
    };
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|(i, c)| !(c.is_ascii_digit() || (*i == 0 && (*c == '-' || *c == '+'))))
        .map_or(text.len(), |(i, _)| i);
    HostValue::Int(text[..end].parse().unwrap_or(0), Ty::S32)
}

fn mathematics(name: &str, value: &HostValue) -> HostValue {
    let number = match value {
        HostValue::Int(n, _) => *n as f64,
        HostValue::Float(n, _) => *n,
        _ => return HostValue::Unknown,
    };
    let result = match name {
        "ceil" | "ceilf" => number.ceil(),
        "floor" | "floorf" => number.floor(),
        "rint" => number.round_ties_even(),
        "round" => number.round(),
        "abs" | "fabs" | "fabsf" => number.abs(),
        "sqrt" | "sqrtf" => number.sqrt(),
        _ => return HostValue::Unknown,
    };
    HostValue::Float(result, 64)
}

/// The memory that a host pointer points to. `None` if the value is no pointer.
pub(super) fn memory_of(value: &HostValue) -> Option<Pointer> {
    match value {
        HostValue::Pointer(pointer) => Some(pointer.clone()),
        _ => None,
    }
}
