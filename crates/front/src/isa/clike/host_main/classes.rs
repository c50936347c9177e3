//! Makes, uses and ends objects of classes in host code, and makes instances of templates.
//!
//! # How
//! - An object is a structure in variables. Its functions see its members, and `this`.
//! - The destructor of a variable runs where its scope ends, the last object first.
//!
//! # Sources
//! - ISO C++, class.ctor, class.dtor, class.conv.fct, temp.inst, temp.deduct.call.
//!
//! # Where we differ
//! - Of several functions of one name, the number of arguments chooses.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::machine::{Flow, Machine};
use super::parser::Read;
use super::tree::{
    HostBase, HostDeclared, HostExpr, HostExprKind, HostFunction, HostRecord, HostType,
    TemplateArgument,
};
use super::values::{HostPlace, HostValue, RecordValue, zero_of};
use program::Ty;

impl Machine<'_> {
    /// A type with the instances of templates that it names.
    pub(super) fn resolved(&mut self, of: &HostType, range: &Range<usize>) -> Read<HostType> {
        let HostBase::Instance(name, given) = &of.base else {
            return Ok(of.clone());
        };
        let mut types = Vec::new();
        let mut constants = Vec::new();
        let Some(params) = self.code.class_template(name) else {
            return self.no_class(name, range);
        };
        for (param, argument) in params.iter().zip(given.iter()) {
            match argument {
                TemplateArgument::Type(of) => types.push((param.name.clone(), of.clone())),
                TemplateArgument::Value(tree) => {
                    constants.push((param.name.clone(), self.number(tree)?));
                }
            }
        }
        let is_whole = params.len() == given.len();
        match self
            .code
            .class_instance(name, types, constants)
            .filter(|_| is_whole)
        {
            Some(record) => Ok(HostType {
                base: HostBase::Record(record),
                ..of.clone()
            }),
            None => self.no_class(name, range),
        }
    }

    fn no_class<T>(&self, name: &str, range: &Range<usize>) -> Read<T> {
        self.wrong(
            range,
            format!("the class `{name}` is not followed"),
            "expected one without bases, virtual functions and types of its own",
            "use functions and structures, or check one kernel with `--launch`",
        )
    }

    /// Makes the object of a declaration; whether its type is a class with functions.
    pub(super) fn declare_object(&mut self, declared: &HostDeclared) -> Read<bool> {
        let HostBase::Record(record) = &declared.of.base else {
            return Ok(false);
        };
        if record.methods.is_empty() || !declared.of.is_record() || declared.of.reference {
            return Ok(false);
        }
        let record = record.clone();
        let range = &declared.range;
        let value = match declared.value.as_ref().map(|tree| (tree, &tree.kind)) {
            None => self.new_object(&record, &[], range)?,
            Some((_, HostExprKind::Construct(_, all) | HostExprKind::Braces(all))) => {
                let all = all.clone();
                self.new_object(&record, &all, range)?
            }
            Some((tree, _)) => match self.named_value(tree, &declared.name)? {
                value @ HostValue::Record(_) => value,
                value => self.object_of_value(&record, value, range)?,
            },
        };
        let cell = self.cell(value, declared.of.clone());
        self.bind(&declared.name, HostPlace::Cell(cell));
        self.bind(&format!("~{}", declared.name), HostPlace::Cell(cell));
        Ok(true)
    }

    /// A new object.
    pub(super) fn new_object(
        &mut self,
        record: &Rc<HostRecord>,
        arguments: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        if !record
            .methods
            .iter()
            .any(|method| method.name == record.name)
        {
            let of = HostType::plain(HostBase::Record(record.clone()));
            return self.record_of(&of, arguments, range);
        }
        let made = self.new_record(record)?;
        let HostValue::Record(object) = &made else {
            return Ok(made);
        };
        let object = object.clone();
        let constructor = self.chosen(record, &record.name, arguments.len(), range)?;
        let values = self.arguments(&constructor.params, arguments)?;
        self.call_of(&object, &constructor, values)?;
        Ok(made)
    }

    /// `C c = value`
    fn object_of_value(
        &mut self,
        record: &Rc<HostRecord>,
        value: HostValue,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let made = self.new_record(record)?;
        if let HostValue::Record(object) = &made {
            let constructor = self.chosen(record, &record.name, 1, range)?;
            self.call_of(&object.clone(), &constructor, vec![value])?;
        }
        Ok(made)
    }

    /// The function of a class for a number of arguments.
    fn chosen(
        &mut self,
        record: &Rc<HostRecord>,
        name: &str,
        count: usize,
        range: &Range<usize>,
    ) -> Read<Rc<HostFunction>> {
        let mut fitting: Vec<Rc<HostFunction>> = Vec::new();
        for method in record.methods.iter().filter(|method| method.name == name) {
            let function = self.code.method(record, method)?;
            let takes = |at: usize| function.params.get(at).is_none_or(|p| p.value.is_some());
            let copies = name == record.name
                && function
                    .params
                    .first()
                    .is_some_and(|param| match &param.of.base {
                        HostBase::Record(other) => other.name == record.name,
                        HostBase::Other(other) => *other == record.name,
                        _ => false,
                    });
            if function.params.len() >= count && takes(count) && !copies {
                fitting.push(function);
            }
        }
        match fitting.as_slice() {
            // `T *get()` and `const T *get() const` give the same.
            [one] => Ok(one.clone()),
            [first, ..] if count == 0 && name != record.name => Ok(first.clone()),
            [] => self.wrong(
                range,
                format!(
                    "`{}` has no function `{name}` for {count} arguments",
                    record.name
                ),
                "expected a call of a function that the class defines",
                "define it in the class",
            ),
            _ => self.wrong(
                range,
                format!(
                    "`{name}` of `{}` has overloads with {count} arguments",
                    record.name
                ),
                "expected numbers of arguments that differ",
                "give one of them another name",
            ),
        }
    }

    /// Calls a function of an object.
    fn call_of(
        &mut self,
        object: &RecordValue,
        function: &Rc<HostFunction>,
        values: Vec<HostValue>,
    ) -> Read<HostValue> {
        let mut scope = HashMap::new();
        for member in &object.of.members {
            let name = &member.declared.name;
            if let Some(place) = self.member_of(object, name) {
                scope.insert(name.clone(), place);
            }
        }
        for (name, value) in &object.of.constants {
            let of = HostType::plain(HostBase::Int(Ty::S32));
            let cell = self.cell(HostValue::Int(*value, Ty::S32), of);
            scope.insert(name.clone(), HostPlace::Cell(cell));
        }
        let of = HostType::plain(HostBase::Record(object.of.clone()));
        let own = self.cell(HostValue::Record(object.clone()), of.clone());
        let of = HostType { pointers: 1, ..of };
        let this = self.cell(HostValue::Cell(own), of);
        scope.insert("this".to_owned(), HostPlace::Cell(this));
        self.called(function, values, Some(&scope))
    }

    /// The object that `this` points to.
    pub(super) fn this_object(&self) -> Option<RecordValue> {
        let HostPlace::Cell(this) = self.find("this")? else {
            return None;
        };
        self.object_in(&self.state.cells[this].value)
    }

    /// The object that a value is, or points to.
    fn object_in(&self, value: &HostValue) -> Option<RecordValue> {
        let record = match value {
            HostValue::Record(record) => record,
            HostValue::Cell(at) => match &self.state.cells[*at].value {
                HostValue::Record(record) => record,
                _ => return None,
            },
            _ => return None,
        };
        (!record.of.methods.is_empty()).then(|| record.clone())
    }

    /// `object.name(arguments)`; `None`: the class has no such function.
    pub(super) fn object_method(
        &mut self,
        value: &HostValue,
        name: &str,
        arguments: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<Option<HostValue>> {
        let Some(object) = self.object_in(value) else {
            return Ok(None);
        };
        if !object.of.methods.iter().any(|method| method.name == name) {
            return Ok(None);
        }
        let function = self.chosen(&object.of, name, arguments.len(), range)?;
        let values = self.arguments(&function.params, arguments)?;
        self.call_of(&object, &function, values).map(Some)
    }

    /// An object as the value that its only conversion gives.
    pub(super) fn converted_object(
        &mut self,
        value: HostValue,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let HostValue::Record(record) = &value else {
            return Ok(value);
        };
        let converts = |name: &str| name == "operator";
        let count = record
            .of
            .methods
            .iter()
            .filter(|m| converts(&m.name))
            .count();
        if count == 0 {
            return Ok(value);
        }
        let record = record.clone();
        let function = self.chosen(&record.of, "operator", 0, range)?;
        self.call_of(&record, &function, Vec::new())
    }

    /// `member(arguments)` of a constructor.
    pub(super) fn initialize(
        &mut self,
        member: &str,
        arguments: &[HostExpr],
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let object = self.this_object();
        let at = object.as_ref().and_then(|object| object.of.member(member));
        let (Some(object), Some(at)) = (object, at) else {
            return self.wrong(
                range,
                format!("`{member}` is no member of this class"),
                "expected a member, with its value",
                "bases are not followed",
            );
        };
        let of = object.of.members[at].declared.of.clone();
        let of = self.resolved(&of, range)?;
        let cell = object.first + at;
        let value = match (&of.base, arguments) {
            (HostBase::Record(record), _) if of.is_record() => {
                let record = record.clone();
                self.new_object(&record, arguments, range)?
            }
            (HostBase::Vector(..) | HostBase::Dim3 | HostBase::Thread(_), _)
                if of.pointers == 0 =>
            {
                self.construct(&of, arguments, member, range)?
            }
            (_, [one]) => self.named_value(one, member)?,
            _ => zero_of(&of),
        };
        let value = self.converted(value, &of);
        self.state.cells[cell].of = of;
        self.state.cells[cell].value = value;
        Ok(HostValue::Unset)
    }

    /// Ends the objects of a scope, the last one first.
    pub(super) fn end_objects(
        &mut self,
        scope: &HashMap<String, HostPlace>,
        flow: &Flow,
    ) -> Read<()> {
        let ended = scope.iter().filter(|(name, _)| name.starts_with('~'));
        let mut cells: Vec<usize> = ended
            .filter_map(|(_, place)| match place {
                HostPlace::Cell(at) => Some(*at),
                _ => None,
            })
            .collect();
        cells.sort_unstable_by(|a, b| b.cmp(a));
        for cell in cells {
            let HostValue::Record(object) = self.state.cells[cell].value.clone() else {
                continue;
            };
            // A returned object lives on.
            let returned = matches!(flow, Flow::Return(HostValue::Record(r)) if *r == object);
            if !returned && *flow != Flow::Exit {
                self.end_object(&object)?;
            }
        }
        Ok(())
    }

    fn end_object(&mut self, object: &RecordValue) -> Read<()> {
        if let Some(method) = object.of.methods.iter().find(|method| method.name == "~") {
            let function = self.code.method(&object.of, method)?;
            self.call_of(object, &function, Vec::new())?;
        }
        for at in (0..object.of.members.len()).rev() {
            if let HostValue::Record(inner) = self.state.cells[object.first + at].value.clone() {
                self.end_object(&inner)?;
            }
        }
        Ok(())
    }
}
