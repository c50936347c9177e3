//! Parses classes of the host: their members, and where their functions stand.
//!
//! # Invariants
//! - Functions are parsed where they are called, so that one for the device does no harm.
//! - A class with bases, virtual functions, types of its own, or functions that are defined
//!   elsewhere is not read.

use super::parser::{HostParser, Read};
use super::tree::{
    HostDeclared, HostExpr, HostExprKind, HostFunction, HostMethod, HostRecord, HostStmt,
    HostStmtKind, TemplateArgument, TemplateParameter,
};
use crate::isa::clike::lex::Tok;
use std::ops::Range;
use std::rc::Rc;

/// An item of a class.
enum ClassItem {
    Members(Vec<HostDeclared>),
    Method(HostMethod),
    /// Nothing that has an effect.
    Silent,
    /// The class is not read.
    Refused,
}

/// Items that say nothing of a class's objects.
const SILENT: [&str; 5] = ["using", "friend", "static_assert", "typedef", "template"];

/// Items with which a class is not read.
const REFUSED: [&str; 5] = ["enum", "struct", "class", "union", "virtual"];

impl HostParser<'_> {
    /// `class C { … };`; `None`: it is not read.
    pub(super) fn class(&mut self) -> Read<Option<HostRecord>> {
        self.eat_word("typedef");
        self.next();
        let mut name = String::new();
        while self.sign(0) != "{" {
            if self.peek() != Tok::Name {
                return Ok(None);
            }
            if self.word(0) != "final" {
                name = self.word(0).to_owned();
            }
            self.next();
        }
        self.next();
        let (mut members, mut methods) = (Vec::new(), Vec::new());
        while !self.eat("}") {
            match self.class_item(&name)? {
                ClassItem::Members(all) => members.extend(all),
                ClassItem::Method(method) => methods.push(method),
                ClassItem::Silent => {}
                ClassItem::Refused => return Ok(None),
            }
        }
        let record = HostRecord::new(name, members);
        Ok(record.map(|record| record.with_methods(methods)))
    }

    fn class_item(&mut self, class: &str) -> Read<ClassItem> {
        let word = self.word(0);
        if self.peek() == Tok::End || REFUSED.contains(&word) {
            return Ok(ClassItem::Refused);
        }
        if matches!(word, "public" | "private" | "protected") && self.sign(1) == ":" {
            self.next();
            self.next();
            return Ok(ClassItem::Silent);
        }
        if self.eat(";") {
            return Ok(ClassItem::Silent);
        }
        if SILENT.contains(&word) {
            self.skip_item();
            return Ok(ClassItem::Silent);
        }
        if matches!(
            word,
            "explicit" | "inline" | "__host__" | "__device__" | "constexpr"
        ) && self.word(1) == class
            || word == "explicit"
        {
            self.next();
            return self.class_item(class);
        }
        if self.eat("~") {
            self.next();
            return self.method("~".to_owned());
        }
        if word == class && self.sign(1) == "(" {
            self.next();
            return self.method(class.to_owned());
        }
        if word == "operator" {
            self.next();
            self.type_name()?;
            return self.method("operator".to_owned());
        }
        let (at, tokens) = self.save();
        let typed = self.type_name().is_ok();
        if typed && self.eat_word("operator") {
            let mut name = "operator".to_owned();
            while self.sign(0) != "(" || self.sign(1) == ")" && name == "operator" {
                name += self.sign(0);
                if self.peek() == Tok::End || self.sign(0).is_empty() {
                    return Ok(ClassItem::Refused);
                }
                self.next();
                if name == "operator(" {
                    name += self.sign(0);
                    self.next();
                }
            }
            return self.method(name);
        }
        if typed && self.peek() == Tok::Name && self.sign(1) == "(" {
            let (name, _) = self.name("the name of a function")?;
            return self.method(name);
        }
        self.restore(at, tokens);
        if !self.declares() {
            return Ok(ClassItem::Refused);
        }
        let all = self.declaration()?;
        self.expect(";")?;
        Ok(ClassItem::Members(all))
    }

    /// Skips an item up to its `;` or its body.
    fn skip_item(&mut self) {
        while self.peek() != Tok::End {
            match self.sign(0) {
                ";" => {
                    self.next();
                    return;
                }
                "{" => {
                    self.skip_nested();
                    self.eat(";");
                    return;
                }
                _ => {
                    self.next();
                }
            }
        }
    }

    /// Skips parentheses, brackets or braces with all in them.
    fn skip_nested(&mut self) {
        let mut open = 0i32;
        while self.peek() != Tok::End {
            open += match self.sign(0) {
                "(" | "[" | "{" => 1,
                ")" | "]" | "}" => -1,
                _ => 0,
            };
            self.next();
            if open <= 0 {
                return;
            }
        }
    }

    /// A function of a class, from its parameters on.
    fn method(&mut self, name: String) -> Read<ClassItem> {
        let start = self.token(0).range.start;
        self.skip_nested();
        while self.peek() != Tok::End {
            match self.sign(0) {
                // Defined elsewhere.
                ";" => return Ok(ClassItem::Refused),
                // `= default;`, `= delete;`
                "=" => {
                    self.skip_item();
                    return Ok(ClassItem::Silent);
                }
                ":" => {
                    self.next();
                    while self.peek() != Tok::End {
                        while !matches!(self.sign(0), "(" | "{") && self.peek() != Tok::End {
                            self.next();
                        }
                        self.skip_nested();
                        if !self.eat(",") {
                            break;
                        }
                    }
                }
                "{" => {
                    self.skip_nested();
                    let range = start..self.end();
                    return Ok(ClassItem::Method(HostMethod { name, range }));
                }
                _ => {
                    self.next();
                }
            }
        }
        Ok(ClassItem::Refused)
    }

    /// The function of a method: its parameters, its initialisers and its body.
    pub(super) fn method_function(&mut self, name: &str) -> Read<HostFunction> {
        let start = self.token(0).range.start;
        let params = self.parameters()?;
        while !matches!(self.sign(0), "{" | ":") && self.peek() != Tok::End {
            self.next();
        }
        let mut body = Vec::new();
        if self.eat(":") {
            loop {
                body.push(self.initializer()?);
                if !self.eat(",") {
                    break;
                }
            }
        }
        body.extend(self.body()?);
        Ok(HostFunction {
            name: name.to_owned(),
            params,
            body,
            range: start..self.end(),
        })
    }

    /// `member(value)` of a constructor.
    fn initializer(&mut self) -> Read<HostStmt> {
        let start = self.token(0).range.start;
        let (member, _) = self.name("a member")?;
        let close = if self.sign(0) == "{" { "}" } else { ")" };
        if !self.eat("(") {
            self.expect("{")?;
        }
        let kind = HostExprKind::Initialize(member, self.list(close)?);
        let range = start..self.end();
        let tree = HostExpr {
            kind,
            range: range.clone(),
        };
        Ok(HostStmt {
            kind: HostStmtKind::Expr(tree),
            range,
        })
    }

    /// `template <typename T, int n>`: its parameters.
    pub(super) fn template_head(&mut self) -> Read<Vec<TemplateParameter>> {
        self.next();
        self.expect("<")?;
        let mut all = Vec::new();
        while self.sign(0) != ">" {
            let is_type = self.eat_word("typename") || self.eat_word("class");
            if !is_type {
                self.type_name()?;
            }
            let (name, _) = self.name("a parameter of the template")?;
            all.push(TemplateParameter { name, is_type });
            if !self.eat(",") {
                break;
            }
        }
        self.expect(">")?;
        Ok(all)
    }

    /// `<float, 4>` behind the name of a template of the file.
    pub(super) fn template_values(&mut self) -> Read<Rc<[TemplateArgument]>> {
        self.expect("<")?;
        let mut all = Vec::new();
        loop {
            all.push(match self.is_type() {
                true => TemplateArgument::Type(self.type_name()?),
                false => TemplateArgument::Value(self.additive()?),
            });
            if !self.eat(",") {
                break;
            }
        }
        self.expect(">")?;
        Ok(all.into())
    }

    /// The place of the rest.
    pub(super) fn rest(&self, range: &Range<usize>) -> Range<usize> {
        self.token(0).range.start..range.end
    }
}
