//! Instances of kernels that are templates: the arguments that a launch gives them, as text.
//!
//! # Sources
//! - ISO C++, temp.arg, temp.deduct.call: a parameter `T *` of a kernel that is handed an `int *`
//!   makes `T` an `int`.

use std::collections::HashMap;
use std::ops::Range;

use super::access::c_name;
use super::machine::{Machine, element_of};
use super::parser::Read;
use super::tree::{HostBase, HostDeclared, HostExpr, HostExprKind, HostType, TemplateArgument};
use super::values::{HostPlace, HostValue, Pointer};
use crate::isa::clike::text_words::words;
use program::Ty;

/// The parameters of a kernel's template, and the words of each parameter of the kernel.
struct KernelTemplate {
    /// The names of types and values, in order.
    names: Vec<String>,
    params: Vec<Vec<String>>,
}

impl Machine<'_> {
    /// The arguments of a template that a launch gives: `int, 4`.
    pub(super) fn instance(&mut self, given: &Range<usize>) -> Read<String> {
        let mut parser = self.code.parser(given.clone())?;
        let mut all = Vec::new();
        loop {
            if parser.ends() {
                return Ok(all.join(", "));
            }
            let start = parser.token(0).range.start;
            if parser.is_type() {
                let of = parser.type_name()?;
                let end = parser.end();
                all.push(match of.is_number() {
                    true => c_name(element_of(&of.base)),
                    false => self.code.text.as_str()[start..end].to_owned(),
                });
            } else {
                let tree = parser.additive()?;
                if let HostExprKind::Name(name) = &tree.kind
                    && let Some(text) = self.bound_type(name)
                {
                    all.push(text);
                    parser.eat(",");
                    continue;
                }
                // An enumerator, or a function of the device, is named as it stands.
                let named = match &tree.kind {
                    HostExprKind::Name(name) => name.contains("::") || self.is_function(name),
                    _ => false,
                };
                all.push(match named {
                    true => self.code.text.as_str()[tree.range.clone()].to_owned(),
                    false => self.number(&tree)?.to_string(),
                });
            }
            parser.eat(",");
        }
    }

    /// Whether a name is that of a function of the file.
    fn is_function(&mut self, name: &str) -> bool {
        self.find(name).is_none() && self.code.function(name).is_some()
    }

    /// The arguments of a template that the arguments of a launch imply; `None`: the kernel is not
    /// a template, or they imply not all.
    pub(super) fn deduced(&self, kernel: &str, arguments: &[HostValue]) -> Option<String> {
        let template = self.template(kernel)?;
        let mut all = Vec::new();
        for name in &template.names {
            let at = template
                .params
                .iter()
                .position(|words| words.contains(name))?;
            let element = match arguments.get(at)? {
                HostValue::Pointer(pointer) => pointer.element,
                HostValue::Int(_, ty) => super::values::ElementType::number(*ty, false),
                HostValue::Float(_, bits) => element_of(&super::tree::HostBase::Float(*bits)),
                _ => return None,
            };
            all.push(c_name(element));
        }
        Some(all.join(", "))
    }

    fn template(&self, kernel: &str) -> Option<KernelTemplate> {
        let source = self.code.kernel_text(kernel)?;
        let all: Vec<&str> = words(source).into_iter().map(|w| &source[w.0]).collect();
        if all.first() != Some(&"template") {
            return None;
        }
        let close = all.iter().position(|word| *word == ">")?;
        let names = all[..close].split(|word| *word == ",");
        let names = names.filter_map(|part| part.iter().take_while(|word| **word != "=").last());
        let named = all.iter().position(|word| *word == kernel)?;
        let open = named + 2;
        let end = open + all[open..].iter().position(|word| *word == ")")?;
        let params = all[open..end].split(|word| *word == ",");
        Some(KernelTemplate {
            names: names.map(|name| (*name).to_owned()).collect(),
            params: params
                .map(|part| part.iter().map(|word| (*word).to_owned()).collect())
                .collect(),
        })
    }
}

impl Machine<'_> {
    /// Calls the instance of a function template that a call asks for.
    pub(super) fn call_template(
        &mut self,
        name: &str,
        given: &[TemplateArgument],
        arguments: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let Some((template, signature)) = self.code.function_template(name).transpose()? else {
            return Ok(HostValue::Unknown);
        };
        let values = self.arguments(&signature, arguments)?;
        let (mut types, mut constants) = (Vec::new(), Vec::new());
        for (at, parameter) in template.iter().enumerate() {
            let name = parameter.name.clone();
            match given.get(at) {
                Some(TemplateArgument::Type(of)) => types.push((name, of.clone())),
                Some(TemplateArgument::Value(tree)) => constants.push((name, self.number(tree)?)),
                None => {
                    let mut pairs = signature.iter().zip(&values);
                    let found = pairs.find_map(|(param, value)| self.implied(param, value, &name));
                    let found = found.filter(|_| parameter.is_type);
                    let Some(of) = found else {
                        return self.wrong(
                            range,
                            format!("the call does not imply `{name}` of the template"),
                            "expected an argument whose type gives it",
                            "write the arguments of the template: `f<int>(…)`",
                        );
                    };
                    types.push((name, of));
                }
            }
        }
        let function = self
            .code
            .function_instance(name, types.clone(), &constants)?;
        let mut scope = HashMap::new();
        for (name, value) in constants {
            let of = HostType::plain(HostBase::Int(Ty::S32));
            let cell = self.cell(HostValue::Int(value, Ty::S32), of);
            scope.insert(name, HostPlace::Cell(cell));
        }
        for (name, of) in types {
            let cell = self.cell(HostValue::Unset, of);
            scope.insert(type_key(&name), HostPlace::Cell(cell));
        }
        self.called(&function, values, Some(&scope))
    }

    /// The type that a parameter of a template is by the value of an argument.
    fn implied(&self, param: &HostDeclared, value: &HostValue, name: &str) -> Option<HostType> {
        let is_named = |of: &HostType| matches!(&of.base, HostBase::Other(own) if own == name);
        let place = match value {
            HostValue::Cell(at) if param.of.reference => Some(&self.state.cells[*at]),
            _ => None,
        };
        let value = place.map_or(value, |variable| &variable.value);
        if let HostBase::Vector(inner, _) = &param.of.base {
            return match value {
                _ if !is_named(inner) => None,
                HostValue::Cells(first, _) => Some(self.state.cells[*first].of.clone()),
                value => self.type_behind(value, 1),
            };
        }
        if !is_named(&param.of) {
            return None;
        }
        if let Some(variable) = place.filter(|_| !matches!(value, HostValue::Buffer(_))) {
            return Some(variable.of.clone());
        }
        let pointers = param.of.pointers + usize::from(!param.arrays.is_empty());
        self.type_behind(value, pointers)
    }

    /// The type behind a number of pointers, by a value.
    fn type_behind(&self, value: &HostValue, pointers: usize) -> Option<HostType> {
        let decayed = self.decayed(value.clone());
        let mut of = match decayed {
            HostValue::Int(_, ty) | HostValue::Register(_, ty) => {
                HostType::plain(HostBase::Int(ty))
            }
            HostValue::Float(_, bits) => HostType::plain(HostBase::Float(bits)),
            HostValue::Stream(_) => HostType::plain(HostBase::Stream),
            HostValue::Event(_) => HostType::plain(HostBase::Event),
            HostValue::Dim3(_) => HostType::plain(HostBase::Dim3),
            HostValue::Record(record) => HostType::plain(HostBase::Record(record.of)),
            HostValue::Cell(at) => {
                let of = self.state.cells[at].of.clone();
                HostType {
                    pointers: of.pointers + 1,
                    ..of
                }
            }
            HostValue::Pointer(pointer) => HostType {
                pointers: 1,
                ..HostType::plain(self.base_behind(&pointer)?)
            },
            HostValue::Closure(_) | HostValue::Function(_) | HostValue::Text(_) => {
                HostType::plain(HostBase::Auto)
            }
            _ => return None,
        };
        of.pointers = of.pointers.checked_sub(pointers)?;
        of.reference = false;
        of.constant = false;
        Some(of)
    }

    /// The type of the elements behind an address.
    fn base_behind(&self, pointer: &Pointer) -> Option<HostBase> {
        let record = pointer
            .memory
            .and_then(|m| self.state.memory[m].record.clone());
        if let Some(record) = record.filter(|r| r.size == pointer.element.bytes()) {
            return Some(HostBase::Record(record));
        }
        let element = pointer.element;
        Some(match (element.said, element.floating) {
            (false, _) => HostBase::Void,
            (true, true) => HostBase::Float(element.ty.bits),
            (true, false) => HostBase::Int(element.ty),
        })
    }

    /// The type that a parameter of the enclosing template is, as text.
    fn bound_type(&self, name: &str) -> Option<String> {
        let HostPlace::Cell(cell) = self.find(&type_key(name))? else {
            return None;
        };
        let of = &self.state.cells[cell].of;
        match &of.base {
            _ if of.is_number() => Some(c_name(element_of(&of.base))),
            HostBase::Record(record) if of.is_record() => Some(record.name.clone()),
            _ => None,
        }
    }
}

/// The key of a template's type among the names in sight.
fn type_key(name: &str) -> String {
    format!("<{name}>")
}
