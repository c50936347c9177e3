//! Parses templates of functions, and the arguments that instantiate them.
//!
//! # Sources
//! - ISO C++, temp.param, temp.arg, temp.explicit.

use std::collections::HashMap;
use std::ops::Range;

use super::ast::{Expr, ExprKind, StmtKind, TypeName};
use super::expr::ADDITIVE;
use super::lex::Tok;
use super::parse::{Parsed, Parser};

const MANY: (&str, &str) = (
    "templates of any number of parameters are",
    "write out the instance that is used",
);

/// A parameter of a template.
#[derive(Debug)]
pub(super) struct TemplateParameter {
    pub(super) name: Range<usize>,
    /// The type of a constant; `None`: the parameter is a type.
    pub(super) of: Option<TypeName>,
    pub(super) default: Option<TemplateArgument>,
}

/// An argument of a template.
#[derive(Debug)]
pub(super) enum TemplateArgument {
    Type(TypeName),
    Value(Expr),
}

/// The arguments of templates as the code writes them.
#[derive(Debug, Default)]
pub(super) struct Instances {
    /// Those of calls, by the position of the function's name.
    pub(super) of_calls: HashMap<usize, Vec<TemplateArgument>>,
    /// Those of explicit instantiations, by the name of the function.
    pub(super) explicit: HashMap<String, Vec<TemplateArgument>>,
}

impl<'a> Parser<'a, '_> {
    /// `template <typename T> … f(…) { … }`, or `template void f<int>(int *);`.
    pub(super) fn template_declaration(&mut self) -> Parsed<StmtKind> {
        self.next();
        if self.tokens.peek() != Tok::Punct("<") {
            return self.explicit_instance();
        }
        let before = self.types.clone();
        let kind = self.after_template();
        self.pending.clear();
        self.types = before;
        kind
    }

    fn after_template(&mut self) -> Parsed<StmtKind> {
        self.next();
        let mut all = Vec::new();
        while !self.eat(">") {
            all.push(self.template_parameter()?);
            if !self.eat(",") {
                self.expect(">")?;
                break;
            }
        }
        if matches!(self.word(), "struct" | "class" | "union" | "using") {
            return self.refuse(
                "templates of classes are",
                "write out the instance that is used",
            );
        }
        if all.is_empty() {
            return self.refuse(
                "specialisations of templates are",
                "write a function instead of a template; C++ prefers it",
            );
        }
        self.pending = all;
        let kind = self.declared()?;
        match kind {
            StmtKind::Function(_) => Ok(kind),
            _ => self.refuse(
                "templates of variables are",
                "declare the variable that is used",
            ),
        }
    }

    fn template_parameter(&mut self) -> Parsed<TemplateParameter> {
        if matches!(self.word(), "typename" | "class") {
            self.next();
            if self.tokens.peek() == Tok::Punct("...") {
                return self.refuse(MANY.0, MANY.1);
            }
            let name = self.new_name("the name of a type")?;
            let word = self.str(&name);
            self.types.insert(word);
            let default = match self.eat("=") {
                true => Some(TemplateArgument::Type(self.type_name()?)),
                false => None,
            };
            return Ok(TemplateParameter {
                name,
                of: None,
                default,
            });
        }
        let of = self.type_name()?;
        if self.tokens.peek() == Tok::Punct("...") {
            return self.refuse(MANY.0, MANY.1);
        }
        let name = self.new_name("the name of a constant")?;
        let default = match self.eat("=") {
            true => Some(TemplateArgument::Value(self.binary(ADDITIVE)?)),
            false => None,
        };
        Ok(TemplateParameter {
            name,
            of: Some(of),
            default,
        })
    }

    /// `void f<int>(int *);` behind `template`.
    fn explicit_instance(&mut self) -> Parsed<StmtKind> {
        self.specifiers()?;
        let declarator = self.declarator(true)?;
        let word = self.str(&declarator.name);
        if self.tokens.peek() == Tok::Punct("<") {
            let args = self.template_arguments()?;
            if self
                .instances
                .explicit
                .insert(word.to_owned(), args)
                .is_some()
            {
                let message = format!("`{word}` is instantiated twice");
                return self.fail(declarator.name, message, "one instance of a template");
            }
        }
        self.parenthesised()?;
        self.expect(";")?;
        Ok(StmtKind::Empty)
    }

    /// Whether a call of a template with arguments comes next.
    pub(super) fn names_instance(&self) -> bool {
        self.templates.contains(self.word()) && self.tokens.peek_at(1) == Tok::Punct("<")
    }

    /// `f<int, 4>(x)`
    pub(super) fn instance(&mut self) -> Parsed<Expr> {
        let name = self.next();
        let given = self.template_arguments()?;
        self.instances.of_calls.insert(name.start, given);
        self.expect("(")?;
        let (args, depth) = self.arguments()?;
        let whole = name.start..self.tokens.last().range.end;
        self.node(ExprKind::Call(name, args), whole, depth)
    }

    /// `<int, 4>`
    fn template_arguments(&mut self) -> Parsed<Vec<TemplateArgument>> {
        self.expect("<")?;
        let mut all = Vec::new();
        while !self.eat(">") {
            all.push(match self.is_type(0) {
                true => TemplateArgument::Type(self.type_name()?),
                false => TemplateArgument::Value(self.binary(ADDITIVE)?),
            });
            if !self.eat(",") {
                self.expect(">")?;
                break;
            }
        }
        Ok(all)
    }
}
