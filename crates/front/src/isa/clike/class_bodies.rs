//! Parses structures and classes: members, member functions, constructors, constants, base classes.
//!
//! # Sources
//! - C11, 6.7.2.1; ISO C++, class.mem, class.derived, class.ctor, over.oper.

use std::ops::Range;

use super::ast::{
    Base, Declaration, Declarator, Declared, Initial, Specifiers, StmtKind, Storage, StructSyntax,
};
use super::decl::nothing;
use super::lex::Tok;
use super::parse::{ClassParts, Failed, Parsed, Parser};

const BIT_FIELDS: (&str, &str) = (
    "bit-fields are",
    "one access covers several of them: use separate members",
);

impl Parser<'_, '_> {
    /// `struct S { int a; }`, from its first word.
    pub(super) fn structure(&mut self) -> Parsed<Base> {
        let is_union = self.word() == "union";
        let start = self.next().start;
        let template = std::mem::take(&mut self.pending);
        let align = self.alignment()?;
        let name = self.tag()?;
        if let (Some(name), false) = (&name, template.is_empty()) {
            let word = self.str(name);
            self.classes.insert(word);
        }
        let specialises = match self.language.cpp && self.tokens.peek() == Tok::Punct("<") {
            true => Some(self.template_arguments()?),
            false => None,
        };
        let bases = self.bases()?;
        let word = name.as_ref().map_or("", |name| self.str(name)).to_owned();
        let own = ClassParts {
            name: word,
            ..ClassParts::default()
        };
        let around = std::mem::replace(&mut self.class, own);
        let members = match self.eat("{") {
            true => match self.nested(Self::members) {
                Ok(members) => Some(members),
                Err(Failed) => {
                    self.class = around;
                    self.behind_brace();
                    return Err(Failed);
                }
            },
            false if name.is_none() => return self.unexpected("the name of a structure or `{`"),
            false => None,
        };
        let own = std::mem::replace(&mut self.class, around);
        Ok(Base::Struct(
            StructSyntax {
                name,
                members,
                functions: own.functions,
                constants: own.constants,
                bases,
                template,
                specialises,
                align,
                is_union,
                range: start..self.tokens.last().range.end,
            }
            .into(),
        ))
    }

    /// `__align__(16)`, `alignas(8)`
    fn alignment(&mut self) -> Parsed<Option<std::rc::Rc<super::ast::Expr>>> {
        let mut align = None;
        loop {
            match self.word() {
                "__align__" | "alignas" if self.language.cpp => {
                    self.next();
                    self.expect("(")?;
                    align = Some(self.expression()?.into());
                    self.expect(")")?;
                }
                "__attribute__" | "__attribute" | "_Alignas" | "__align__" | "alignas" => {
                    return self.refuse(
                        "alignment and packing of structures are",
                        "leave it out, if only sizes depend on it",
                    );
                }
                _ => return Ok(align),
            }
        }
    }

    /// `: public B, private C`
    fn bases(&mut self) -> Parsed<Vec<super::ast::TypeName>> {
        let mut all = Vec::new();
        if !self.language.cpp || !self.eat(":") {
            return Ok(all);
        }
        loop {
            while matches!(self.word(), "public" | "private" | "protected") {
                self.next();
            }
            if self.word() == "virtual" {
                return self.refuse(
                    "virtual base classes are",
                    "name the functions that are meant",
                );
            }
            all.push(self.type_name()?);
            if !self.eat(",") {
                return Ok(all);
            }
        }
    }

    /// Skips to the `}` of a structure with an error.
    fn behind_brace(&mut self) {
        let mut open = 0;
        loop {
            match self.tokens.peek() {
                Tok::Punct("{") => open += 1,
                Tok::Punct("}") if open == 0 => return,
                Tok::Punct("}") => open -= 1,
                Tok::End => return,
                _ => {}
            }
            self.next();
        }
    }

    /// The members of a structure, after the `{`.
    fn members(&mut self) -> Parsed<Vec<Declaration>> {
        let mut all = Vec::new();
        while !self.eat("}") {
            self.pending = Vec::new();
            // The program compiles, so it has access to whatever it names.
            if self.language.cpp && matches!(self.word(), "public" | "private" | "protected") {
                self.next();
                self.expect(":")?;
                continue;
            }
            if self.language.cpp && self.eat(";") {
                continue;
            }
            if self.language.cpp && self.word() == "template" {
                self.next();
                let types = self.types.clone();
                self.pending = self.template_parameters()?;
                let read = self.member(&mut all);
                self.types = types;
                read?;
                continue;
            }
            self.member(&mut all)?;
        }
        Ok(all)
    }

    /// One member, or one declaration of several.
    fn member(&mut self, all: &mut Vec<Declaration>) -> Parsed<()> {
        if self.language.cpp && self.member_of_class()? {
            return Ok(());
        }
        let template = std::mem::take(&mut self.pending);
        let specifiers = self.specifiers()?;
        if specifiers.has(Storage::Aligned).is_some() {
            return self.refuse(
                "alignments of members are",
                "leave them out, if only sizes depend on them",
            );
        }
        if self.method_begins() {
            self.pending = template;
            let declarator = self.declarator(true)?;
            return self.method_of_structure(specifiers, declarator);
        }
        let of_class = [Storage::Static, Storage::Constexpr, Storage::Typedef]
            .iter()
            .any(|s| specifiers.has(*s).is_some())
            || (matches!(specifiers.base, Base::Enum(_)) && self.tokens.peek() == Tok::Punct(";"))
            || (is_named_structure(&specifiers) && self.tokens.peek() == Tok::Punct(";"));
        if of_class && self.language.cpp {
            return self.constant_of_class(specifiers);
        }
        if specifiers
            .storage
            .iter()
            .any(|s| !matches!(&s.0, Storage::Device | Storage::Inline))
        {
            return self.refuse("such members are", "declare it outside of the structure");
        }
        let members = self.members_of_type()?;
        all.push(Declaration {
            specifiers,
            all: members,
        });
        Ok(())
    }

    /// The declared names behind a type, with their `;`.
    fn members_of_type(&mut self) -> Parsed<Vec<Declared>> {
        let mut members = Vec::new();
        loop {
            match self.tokens.peek() {
                Tok::Punct(":") => return self.refuse(BIT_FIELDS.0, BIT_FIELDS.1),
                Tok::Punct(";") if members.is_empty() => {
                    return self.refuse("members without a name are", "name the member");
                }
                _ => {}
            }
            let declarator = self.declarator(true)?;
            let value = match self.tokens.peek() {
                Tok::Punct(":") => return self.refuse(BIT_FIELDS.0, BIT_FIELDS.1),
                Tok::Punct("=" | "{") if self.language.cpp => self.initial()?,
                _ => None,
            };
            members.push(Declared { declarator, value });
            if !self.eat(",") {
                break;
            }
        }
        self.expect(";")?;
        Ok(members)
    }

    /// `static constexpr int n = 4;`, `typedef int T;`, `enum { A };`, `struct S { … };` in a
    /// class.
    fn constant_of_class(&mut self, specifiers: Specifiers) -> Parsed<()> {
        let own = match &specifiers.base {
            Base::Struct(of) => of.name.clone(),
            Base::Enum(of) => of.name.clone(),
            _ => None,
        };
        if let Some(own) = own {
            let word = self.str(&own);
            self.nested_types.insert((self.class.name.clone(), word));
        }
        if self.eat(";") {
            let all = Vec::new();
            self.class.constants.push(Declaration { specifiers, all });
            return Ok(());
        }
        let constant = specifiers.of_base.constant
            || [Storage::Constexpr, Storage::Typedef]
                .iter()
                .any(|s| specifiers.has(*s).is_some());
        if !constant {
            return self.refuse(
                "variables that the objects of a class share are",
                "declare it outside of the structure",
            );
        }
        let first = self.declarator(true)?;
        let is_type = specifiers.has(Storage::Typedef).is_some();
        let constants = self.declarators(specifiers, first)?;
        self.expect(";")?;
        for declared in constants.all.iter().filter(|_| is_type) {
            let word = self.str(&declared.declarator.name);
            self.nested_types.insert((self.class.name.clone(), word));
        }
        self.class.constants.push(constants);
        Ok(())
    }

    /// Reads a constructor, a destructor or a `friend`, if one comes next.
    fn member_of_class(&mut self) -> Parsed<bool> {
        let start = self.tokens.position();
        while matches!(
            self.word(),
            "__device__" | "__host__" | "explicit" | "constexpr" | "inline" | "__forceinline__"
        ) {
            self.next();
        }
        if self.word() == "operator" && self.tokens.peek_at(1) == Tok::Name {
            self.conversion_of_class()?;
            return Ok(true);
        }
        let constructs = !self.class.name.is_empty()
            && self.word() == self.class.name
            && self.tokens.peek_at(1) == Tok::Punct("(");
        let destroys = self.tokens.peek() == Tok::Punct("~");
        if !constructs && !destroys {
            self.tokens.go_to(start);
            if matches!(self.word(), "friend" | "virtual" | "mutable") {
                let range = self.tokens.range();
                self.refused_word(&range)?;
            }
            return Ok(false);
        }
        let at = self.next();
        let name = match destroys {
            true => at.start..self.next().end,
            false => at,
        };
        let result = nothing(name.clone());
        let declarator = Declarator {
            name,
            ..Declarator::default()
        };
        self.method_of_structure(result, declarator)?;
        Ok(true)
    }

    /// `operator T *() const { … }`: a conversion, which has its result's type as its name.
    fn conversion_of_class(&mut self) -> Parsed<()> {
        let start = self.next().start;
        let result = self.specifiers()?;
        let mut declarator = self.declarator(false)?;
        declarator.name = start..self.tokens.last().range.end;
        self.method_of_structure(result, declarator)
    }

    /// Whether a member function comes next, behind its specifiers.
    fn method_begins(&self) -> bool {
        let mut n = 0;
        while matches!(self.tokens.peek_at(n), Tok::Punct("*" | "&" | "&&")) {
            n += 1;
        }
        let named = self.tokens.peek_at(n) == Tok::Name;
        let operator = self.word_at(n) == "operator";
        self.language.cpp && named && (operator || self.tokens.peek_at(n + 1) == Tok::Punct("("))
    }

    /// `int get() const { return x; }` in a structure; a declaration waits for its definition.
    fn method_of_structure(&mut self, specifiers: Specifiers, name: Declarator) -> Parsed<()> {
        if let StmtKind::Function(Some(function)) = self.function(specifiers, name)? {
            self.class.functions.push(function);
        }
        self.eat(";");
        Ok(())
    }

    /// `operator+`, `operator()`, `operator[]`, from its first word.
    pub(super) fn operator_name(&mut self) -> Parsed<Range<usize>> {
        let start = self.next().start;
        match self.tokens.peek() {
            Tok::Punct(open @ ("(" | "[")) => {
                self.next();
                self.expect(if open == "(" { ")" } else { "]" })?;
            }
            Tok::Punct(_) => drop(self.next()),
            _ => {
                return self.refuse(
                    "conversions of your own are",
                    "write a function with a name, and call it",
                );
            }
        }
        Ok(start..self.tokens.last().range.end)
    }

    /// Whether a function is a constructor.
    pub(super) fn is_constructor(&self, specifiers: &Specifiers, name: &Declarator) -> bool {
        let word = self.str(&name.name);
        let of_class = match word.rsplit_once("::") {
            Some((class, own)) => class.rsplit("::").next() == Some(own),
            None => word == self.class.name && !word.is_empty(),
        };
        self.language.cpp && of_class && matches!(specifiers.base, Base::Void)
    }

    /// Whether the specifiers are the name of a constructor outside of its class: `S::S(`.
    pub(super) fn is_outer_constructor(&self, specifiers: &Specifiers) -> bool {
        let Base::Named(range) = &specifiers.base else {
            return false;
        };
        let word = self.str(range);
        let twice = word
            .rsplit_once("::")
            .is_some_and(|(class, own)| class == own);
        self.language.cpp && twice && self.tokens.peek() == Tok::Punct("(")
    }

    /// `: a(n), b{2}` behind the parameters of a constructor.
    pub(super) fn member_initialisers(&mut self) -> Parsed<Vec<(Range<usize>, Initial)>> {
        let mut all = Vec::new();
        if !self.eat(":") {
            return Ok(all);
        }
        loop {
            let name = self.new_name("the name of a member")?;
            if self.tokens.peek() == Tok::Punct("<") {
                self.template_arguments()?;
            }
            let value = match self.tokens.peek() {
                Tok::Punct("{") => self.nested(Self::initial_value)?,
                _ => {
                    let start = self.expect("(")?.start;
                    let (args, _) = self.arguments()?;
                    Initial::Call(args, start..self.tokens.last().range.end)
                }
            };
            all.push((name, value));
            if !self.eat(",") {
                return Ok(all);
            }
        }
    }

    /// `[x, y]` of `auto [x, y] = p;`.
    pub(super) fn structured(&mut self, mut all: Declarator) -> Parsed<Declarator> {
        let start = self.next().start;
        while !self.eat("]") {
            let name = self.new_name("a name")?;
            let word = self.str(&name);
            self.variables.insert(word);
            all.parts.push(name);
            if !self.eat(",") {
                self.expect("]")?;
                break;
            }
        }
        all.name = start..self.tokens.last().range.end;
        Ok(all)
    }

    /// Whether a word is `S::T` of a class of the code that declares the type `T`.
    pub(super) fn is_nested_type(&self, word: &str) -> bool {
        let Some((class, own)) = word.rsplit_once("::") else {
            return false;
        };
        let class = class.rsplit("::").next().unwrap_or(class);
        let mut all = self.nested_types.iter();
        self.language.cpp && all.any(|(of, name)| of == class && *name == own)
    }

    /// Whether a word is `S::T` of a class of the code, or of a parameter of a template.
    pub(super) fn is_member_type(&self, word: &str) -> bool {
        let class = word.rsplit_once("::").map(|(class, _)| class);
        class.is_some_and(|class| self.types.contains(class)) && !self.types.contains(word)
    }

    /// Whether the type of a thread group begins `n` tokens ahead.
    pub(super) fn names_group(&self, n: usize) -> bool {
        let word = self.word_at(n);
        self.language.cpp
            && super::words::GROUP_TYPES.contains(&super::words::group_word(word))
            && !self.types.contains(word)
            && !self.variables.contains(word)
    }

    /// The token behind the arguments of a class template that begins `n` tokens ahead.
    pub(super) fn behind_instance(&self, n: usize) -> Option<usize> {
        let named = self.classes.contains(self.word_at(n));
        if !named || self.tokens.peek_at(n + 1) != Tok::Punct("<") {
            return None;
        }
        let (mut at, mut open) = (n + 1, 0i32);
        loop {
            match self.tokens.peek_at(at) {
                Tok::Punct("<" | "(") => open += 1,
                Tok::Punct(">" | ")") => open -= 1,
                Tok::Punct(">>") => open -= 2,
                Tok::Punct(";" | "{") | Tok::End => return None,
                _ => {}
            }
            at += 1;
            if open <= 0 {
                return Some(at);
            }
        }
    }
}

/// Whether a declaration defines a structure with a name.
fn is_named_structure(specifiers: &Specifiers) -> bool {
    matches!(&specifiers.base, Base::Struct(of) if of.name.is_some() && of.members.is_some())
}
