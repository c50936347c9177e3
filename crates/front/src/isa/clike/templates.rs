//! Parses templates of functions, and the arguments that instantiate them.
//!
//! # Sources
//! - ISO C++, temp.param, temp.arg, temp.explicit.

use std::collections::HashMap;

use super::ast::{
    Base, Declarator, Expr, ExprKind, Qualifiers, Specifiers, StmtKind, TemplateArgument,
    TemplateParameter, TypeName,
};
use super::lex::Tok;
use super::parse::{Parsed, Parser};
use super::signs::ADDITIVE;
use super::words::takes_words;
use program::Ty;

const MANY: (&str, &str) = (
    "templates of any number of parameters are",
    "write out the instance that is used",
);

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
        self.types.extend(self.classes.iter().copied());
        kind
    }

    /// `<typename T, int N>`, behind `template`.
    pub(super) fn template_parameters(&mut self) -> Parsed<Vec<TemplateParameter>> {
        self.expect("<")?;
        let mut all = Vec::new();
        while !self.closes_angle() {
            all.push(self.template_parameter()?);
            if !self.eat(",") {
                self.close_angle()?;
                break;
            }
        }
        Ok(all)
    }

    /// Takes a `>`, also the first half of `>>`.
    fn closes_angle(&mut self) -> bool {
        if self.tokens.peek() == Tok::Punct(">>") {
            self.tokens.split([Tok::Punct(">"); 2], 1);
        }
        self.eat(">")
    }

    pub(super) fn close_angle(&mut self) -> Parsed<()> {
        match self.closes_angle() {
            true => Ok(()),
            false => self.unexpected("`>`"),
        }
    }

    fn after_template(&mut self) -> Parsed<StmtKind> {
        self.pending = self.template_parameters()?;
        let kind = self.declared()?;
        match &kind {
            StmtKind::Function(_) | StmtKind::Prototype(_) => Ok(kind),
            StmtKind::Declare(declaration)
                if declaration.all.is_empty()
                    && matches!(declaration.specifiers.base, Base::Struct(_)) =>
            {
                Ok(kind)
            }
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
                words: false,
                default,
            });
        }
        let words = takes_words(self.word());
        let of = match words {
            true => {
                let range = self.next();
                TypeName {
                    specifiers: Specifiers {
                        base: Base::Int(Ty::S32),
                        of_base: Qualifiers::default(),
                        storage: Vec::new(),
                        range,
                    },
                    declarator: Declarator::default(),
                }
            }
            false => self.type_name()?,
        };
        if self.tokens.peek() == Tok::Punct("...") {
            return self.refuse(MANY.0, MANY.1);
        }
        let name = match of.declarator.calls && !of.declarator.name.is_empty() {
            true => of.declarator.name.clone(),
            false => self.new_name("the name of a constant")?,
        };
        let word = self.str(&name);
        self.variables.insert(word);
        let default = match self.eat("=") {
            true => Some(TemplateArgument::Value(self.binary(ADDITIVE)?)),
            false => None,
        };
        Ok(TemplateParameter {
            name,
            of: Some(of),
            words,
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
        if self.tokens.peek() != Tok::Punct("(") {
            return self.node(ExprKind::Name, name, 0);
        }
        self.expect("(")?;
        let (args, depth) = self.arguments()?;
        let whole = name.start..self.tokens.last().range.end;
        self.node(ExprKind::Call(name, args), whole, depth)
    }

    /// `<int, 4>`
    pub(super) fn template_arguments(&mut self) -> Parsed<Vec<TemplateArgument>> {
        self.expect("<")?;
        let mut all = Vec::new();
        while !self.closes_angle() {
            all.push(match self.is_type(0) {
                true => TemplateArgument::Type(self.type_name()?),
                false => TemplateArgument::Value(self.binary(ADDITIVE)?),
            });
            if !self.eat(",") {
                self.close_angle()?;
                break;
            }
        }
        Ok(all)
    }
}
