//! Instances of kernels that are templates: the arguments that a launch gives them, as text.
//!
//! # Sources
//! - ISO C++, temp.arg, temp.deduct.call: a parameter `T *` of a kernel that is handed an `int *`
//!   makes `T` an `int`.

use std::ops::Range;

use super::access::c_name;
use super::machine::{Machine, element_of};
use super::parser::Read;
use super::tree::HostExprKind;
use super::values::HostValue;
use crate::isa::clike::text_words::words;

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
