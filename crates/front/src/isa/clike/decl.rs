//! Parses the declarations of the C family: specifiers, declarators, initialisers.
//!
//! # Sources
//! - C11, 6.7, *Declarations*; ISO C++, dcl.dcl; OpenCL C, *Address Space Qualifiers*; CUDA C++
//!   Programming Guide, *Variable Memory Space Specifiers*.

use std::ops::Range;

use super::ast::{
    Base, Declaration, Declarator, Declared, EnumSyntax, Expr, Function, Initial, Prototype,
    Qualifiers, Specifiers, StmtKind, Storage, TypeName,
};
use super::floats;
use super::image_words;
use super::lex::Tok;
use super::packs;
use super::parse::{Failed, Parsed, Parser};
use super::refused::{self, is_own_name, names_type};
use super::types::BYTE;
use super::words::{column, is_keyword, type_named};
use program::{Format, Space, Ty};

/// Storage classes and function specifiers, and whether C, OpenCL C and CUDA C++ have them.
const STORAGE: &[(&str, Storage, [bool; 3])] = &[
    ("static", Storage::Static, [true, true, true]),
    ("extern", Storage::Extern, [true, true, true]),
    ("register", Storage::Register, [true, false, false]),
    ("typedef", Storage::Typedef, [true, true, true]),
    ("constexpr", Storage::Constexpr, [false, false, true]),
    (packs::INSTANCE, Storage::OfPack, [false, false, true]),
    ("inline", Storage::Inline, [true, true, true]),
    ("__inline__", Storage::Inline, [true, true, true]),
    ("__forceinline__", Storage::Inline, [false, false, true]),
    ("__noinline__", Storage::Inline, [false, false, true]),
    ("__shared__", Storage::Shared, [false, false, true]),
    ("__constant__", Storage::Constant, [false, false, true]),
    ("__device__", Storage::Device, [false, false, true]),
    ("__host__", Storage::Device, [false, false, true]),
    ("__global__", Storage::Kernel, [false, false, true]),
    ("kernel", Storage::Kernel, [false, true, false]),
    ("__kernel", Storage::Kernel, [false, true, false]),
    ("read_only", Storage::ReadOnly, [false, true, false]),
    ("__read_only", Storage::ReadOnly, [false, true, false]),
    ("write_only", Storage::WriteOnly, [false, true, false]),
    ("__write_only", Storage::WriteOnly, [false, true, false]),
    ("read_write", Storage::ReadWrite, [false, true, false]),
    ("__read_write", Storage::ReadWrite, [false, true, false]),
    ("pipe", Storage::Pipe, [false, true, false]),
    ("__pipe", Storage::Pipe, [false, true, false]),
];

/// OpenCL's address spaces; `None`: the generic one.
const REGIONS: &[(&str, Option<Space>)] = &[
    ("global", Some(Space::Global)),
    ("__global", Some(Space::Global)),
    ("local", Some(Space::Shared)),
    ("__local", Some(Space::Shared)),
    ("constant", Some(Space::Constant)),
    ("__constant", Some(Space::Constant)),
    ("private", Some(Space::Local)),
    ("__private", Some(Space::Local)),
    ("generic", None),
    ("__generic", None),
];

/// Pointer qualifiers that do not matter to any model.
const PROMISES: &[&str] = &["restrict", "__restrict", "__restrict__"];

/// Attributes of GCC and OpenCL C without an effect that a model could see.
const ATTRIBUTES: &[&str] = &[
    "always_inline",
    "noinline",
    "unused",
    "used",
    "pure",
    "const",
    "hot",
    "cold",
    "nonnull",
    "nothrow",
    "noreturn",
    "flatten",
    "warn_unused_result",
    "deprecated",
    "reqd_work_group_size",
    "work_group_size_hint",
    "vec_type_hint",
    "opencl_unroll_hint",
    "intel_reqd_sub_group_size",
    "global",
    "device",
    "host",
    "launch_bounds",
];

/// Words that make up integer types.
const PARTS: &[&str] = &["signed", "unsigned", "char", "short", "int", "long"];

const LONG_DOUBLE: &str = "floating-point types of more than 64 bits are";

impl Parser<'_, '_> {
    fn storage(&self, word: &str) -> Option<Storage> {
        STORAGE
            .iter()
            .find(|s| s.0 == word && s.2[column(self.language.dialect)])
            .map(|s| s.1)
    }

    fn region(&self, word: &str) -> Option<Option<Space>> {
        REGIONS
            .iter()
            .find(|r| r.0 == word && self.language.row().regions)
            .map(|r| r.1)
    }

    /// The floating-point type of that name, unless the code declares something else by the name:
    /// `half` is no keyword of CUDA C++.
    fn floating(&self, word: &str) -> Option<Format> {
        let value = match self.language.row().regions {
            true => word.strip_prefix("atomic_").unwrap_or(word),
            false => word,
        };
        floats::named(value, column(self.language.dialect))
            .filter(|_| !self.variables.contains(word))
    }

    fn is_qualifier(&self, word: &str) -> bool {
        matches!(word, "const" | "volatile" | "_Atomic")
            || PROMISES.contains(&word)
            || self.region(word).is_some()
    }

    /// Whether the word `n` tokens ahead belongs to a type.
    pub(super) fn is_type(&self, n: usize) -> bool {
        let word = self.word_at(n);
        !word.is_empty()
            && (self.is_qualifier(word)
                || PARTS.contains(&word)
                || matches!(
                    word,
                    "void" | "bool" | "_Bool" | "auto" | "enum" | "struct" | "class" | "union"
                )
                || (self.language.cpp && matches!(word, "decltype" | "typename"))
                || self.names_group(n)
                || self.names_image(n)
                || self.floating(word).is_some()
                || self.names_class(n)
                || self.types.contains(word)
                || self.is_nested_type(word)
                || self.is_type_name(n))
    }

    /// Whether the word `n` tokens ahead names a type of images.
    fn names_image(&self, n: usize) -> bool {
        self.language.row().regions && image_words::coordinates(self.word_at(n)).is_some()
    }

    /// Whether the word `n` tokens ahead names a type without being a keyword. A variable may have
    /// the same name.
    fn is_type_name(&self, n: usize) -> bool {
        let word = self.word_at(n);
        let behind = matches!(
            self.tokens.peek_at(n + 1),
            Tok::Name | Tok::Punct("*" | "&" | "&&" | ">" | ")" | "(" | "[" | "{" | ",")
        );
        let calls = self.tokens.peek_at(n + 1) == Tok::Punct("(");
        behind
            && !self.variables.contains(word)
            && !(calls && is_own_name(word, self.language.dialect))
            && names_type(word, self.language.dialect)
    }

    /// Whether a type in parentheses begins `n` tokens ahead, after the opening parenthesis.
    pub(super) fn is_type_alone(&self, n: usize) -> bool {
        if !self.is_type(n)
            || self.is_qualifier(self.word_at(n))
            || is_keyword(self.word_at(n), self.language.dialect)
        {
            return self.is_type(n);
        }
        let mut behind = n + 1;
        while matches!(self.tokens.peek_at(behind), Tok::Punct("*" | "&"))
            || self.is_qualifier(self.word_at(behind))
        {
            behind += 1;
        }
        matches!(
            self.tokens.peek_at(behind),
            Tok::Punct(")" | "[" | "<" | ":")
        ) || self.is_type(behind)
    }

    /// Whether a declaration begins with the next token.
    pub(super) fn declares(&self) -> bool {
        // `size_t(n)` is a cast, `enum { A }` is not.
        let own = matches!(
            self.word(),
            "enum" | "struct" | "class" | "union" | "decltype"
        );
        // `S<4>::f(x)`, `S<4>(x)`: an expression.
        if self.language.cpp
            && let Some(behind) = self.behind_instance(0)
        {
            return !matches!(self.tokens.peek_at(behind), Tok::Punct(":" | "(" | "{"));
        }
        if self.names_group(0) {
            return false;
        }
        let cast =
            self.language.cpp && !own && matches!(self.tokens.peek_at(1), Tok::Punct("(" | "{"));
        // `int (*f)(int)`
        let pointer =
            self.tokens.peek_at(2) == Tok::Punct("*") && self.tokens.peek_at(4) == Tok::Punct(")");
        let cast = cast && !(pointer && matches!(self.tokens.peek_at(5), Tok::Punct("(" | "[")));
        let cast = cast && !self.points_to_function(1);
        let named = matches!(
            self.tokens.peek_at(1),
            Tok::Punct("(" | "[" | "{" | ")" | "," | ">")
        ) && !self.types.contains(self.word())
            && self.is_type_name(0)
            && !is_keyword(self.word(), self.language.dialect);
        self.storage(self.word()).is_some() || (self.is_type(0) && !cast && !named)
    }

    /// Reports the word at `range` if Fencepost does not support it or the language lacks it.
    pub(super) fn refused_word(&mut self, range: &Range<usize>) -> Parsed<()> {
        let word = self.str(range);
        if self.types.contains(word) || self.variables.contains(word) {
            return Ok(());
        }
        let Some(refused) = refused::word(word, self.language.dialect) else {
            return Ok(());
        };
        refused.report(
            word,
            self.language.dialect,
            self.text.span(range.clone()),
            self.sink,
        );
        Err(Failed)
    }

    /// Reads the name of a new variable or function.
    pub(super) fn new_name(&mut self, expected: &str) -> Parsed<Range<usize>> {
        if self.tokens.peek() != Tok::Name {
            return self.unexpected(expected);
        }
        let range = self.next();
        if is_keyword(self.str(&range), self.language.dialect) {
            let message = format!("`{}` is a keyword", self.str(&range));
            return self.fail(range, message, expected);
        }
        Ok(range)
    }

    /// Takes a qualifier into `all`, if one comes next.
    fn qualifier(&mut self, all: &mut Qualifiers) -> bool {
        match self.word() {
            "const" => all.constant = true,
            "volatile" => all.volatile = true,
            "_Atomic" if self.tokens.peek_at(1) != Tok::Punct("(") => all.atomic = true,
            word if PROMISES.contains(&word) => {}
            word => match self.region(word) {
                Some(space) => (all.space, all.generic) = (space, space.is_none()),
                None => return false,
            },
        }
        self.next();
        true
    }

    /// Reads the specifiers that a declaration begins with.
    pub(super) fn specifiers(&mut self) -> Parsed<Specifiers> {
        let start = self.tokens.range().start;
        let mut storage = Vec::new();
        let mut of_base = Qualifiers::default();
        let mut base: Option<Base> = None;
        let mut parts: Vec<&str> = Vec::new();
        loop {
            let (word, range) = (self.word(), self.tokens.range());
            if self.tokens.peek() == Tok::Name && word == "_Atomic" {
                self.refused_word(&range)?;
            }
            if word == "double" && parts == ["long"] {
                return self.refuse(LONG_DOUBLE, "use `double`");
            }
            if self.qualifier(&mut of_base) {
                continue;
            }
            let first = base.is_none() && parts.is_empty();
            if self.language.cpp && first && word == "typename" {
                self.next();
                continue;
            }
            if self.aligned(&mut storage) {
                continue;
            }
            if (first || word.starts_with("__")) && !self.types.contains(word) {
                self.refused_word(&range)?;
            }
            if self.storage_class(&mut storage) || self.skipped_specifier()? {
                continue;
            }
            if PARTS.contains(&word) && base.is_none() {
                self.next();
                parts.push(word);
            } else if first && let Some(named) = self.base(&mut of_base)? {
                base = Some(named);
            } else {
                break;
            }
        }
        let range = start..self.tokens.last().range.end.max(start);
        let base = match base {
            Some(base) => base,
            None => self.base_of_parts(&parts, range.clone())?,
        };
        Ok(Specifiers {
            base,
            of_base,
            storage,
            range,
        })
    }

    /// Takes `alignas(n)`, if it comes next with an alignment that all objects have.
    fn aligned(&mut self, storage: &mut Vec<(Storage, Range<usize>)>) -> bool {
        let aligns = matches!(self.word(), "alignas" | "__align__") && self.is_aligned();
        if !self.language.cpp || !aligns {
            return false;
        }
        storage.push((Storage::Aligned, self.tokens.range()));
        for _ in ["alignas", "(", "n", ")"] {
            self.next();
        }
        true
    }

    /// Takes a storage class or a function specifier, if one comes next.
    fn storage_class(&mut self, storage: &mut Vec<(Storage, Range<usize>)>) -> bool {
        let Some(class) = self.storage(self.word()) else {
            return false;
        };
        let range = self.next();
        // `extern "C"`
        if class != Storage::Extern || self.string().is_none() {
            storage.push((class, range));
        }
        true
    }

    /// Reads past a specifier without an effect that a model could see, if one comes next.
    fn skipped_specifier(&mut self) -> Parsed<bool> {
        let cpp = self.language.cpp;
        match self.word() {
            // Limits such as the number of registers of a thread do not matter to a model.
            "__launch_bounds__" | "__maxnreg__" if cpp => {
                self.next();
                self.parenthesised()?;
            }
            // Such a parameter is `const`, and keeps its value.
            "__grid_constant__" if cpp => drop(self.next()),
            "__attribute__" | "__attribute" => {
                self.next();
                self.attribute()?;
            }
            "" if [self.tokens.peek(), self.tokens.peek_at(1)] == [Tok::Punct("["); 2] => {
                self.attributes()?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads a base type other than a list of words such as `unsigned int`, if one comes next.
    fn base(&mut self, of_base: &mut Qualifiers) -> Parsed<Option<Base>> {
        let (word, range) = (self.word(), self.tokens.range());
        let cpp = self.language.cpp;
        Ok(Some(
            if self.classes.contains(word) && self.tokens.peek_at(1) == Tok::Punct("<") {
                self.next();
                let arguments = self.template_arguments()?;
                Base::Instance(range, arguments.into())
            } else if cpp && self.is_member_type(word) {
                self.next();
                Base::Named(range)
            } else if cpp && word == "decltype" {
                self.next();
                self.expect("(")?;
                let of = self.comma()?;
                self.expect(")")?;
                Base::TypeOf(of.into())
            } else if self.names_group(0) {
                self.next();
                if self.eat("<") {
                    self.next();
                    self.expect(">")?;
                }
                Base::Group
            } else if self.names_image(0) {
                self.next();
                Base::Image(range)
            } else if self.pointers.contains(word) {
                self.next();
                Base::Function(range)
            } else if self.types.contains(word) {
                self.next();
                Base::Named(range)
            } else if matches!(word, "struct" | "union") || (word == "class" && cpp) {
                self.structure()?
            } else if word == "enum" {
                self.enumeration()?
            } else if self.names_class(0) {
                self.class()?
            } else if self.takes_reference() {
                Base::Refer(self.template()?.into())
            } else if word == "_Atomic" {
                self.next();
                self.expect("(")?;
                let of = self.specifiers()?;
                self.expect(")")?;
                of_base.atomic = true;
                of.base
            } else if self.is_type(0) {
                self.next();
                self.base_of_word(word, range, of_base)
            } else {
                return Ok(None);
            },
        ))
    }

    /// The base type that one word names.
    fn base_of_word(&self, word: &str, range: Range<usize>, of_base: &mut Qualifiers) -> Base {
        match (word, type_named(word)) {
            ("void", _) => Base::Void,
            ("bool" | "_Bool", _) => Base::Bool,
            ("auto", _) => Base::Auto,
            (word, _) if self.floating(word).is_some() => {
                of_base.atomic |= word.starts_with("atomic_");
                self.floating(word).map_or(Base::Void, Base::Float)
            }
            (_, Some((ty, atomic))) => {
                of_base.atomic |= atomic;
                if word == "atomic_bool" {
                    Base::Bool
                } else {
                    Base::Int(ty)
                }
            }
            _ => Base::Named(range),
        }
    }

    /// The base type of a list of words such as `unsigned int`.
    fn base_of_parts(&mut self, parts: &[&str], range: Range<usize>) -> Parsed<Base> {
        if parts.is_empty() {
            return self.unexpected("a type such as `int`");
        }
        let Some(ty) = made_of(parts) else {
            let message = format!("`{}` is not a type", parts.join(" "));
            return self.fail(range, message, "a type such as `unsigned int`");
        };
        let is_long_long = parts.iter().filter(|p| **p == "long").count() == 2;
        if is_long_long && self.language.row().regions {
            let span = self.text.span(range);
            self.sink.error(
                "not-in-language",
                span,
                "`long long` is reserved in OpenCL C",
                |d| d.label("expected `long`, which has 64 bits"),
            );
            return Err(Failed);
        }
        Ok(Base::Int(ty))
    }

    /// Whether `alignas(n)` comes next, with an alignment that all objects have.
    fn is_aligned(&self) -> bool {
        let Tok::Int(n, _) = self.tokens.peek_at(2) else {
            return false;
        };
        self.tokens.peek_at(1) == Tok::Punct("(")
            && self.tokens.peek_at(3) == Tok::Punct(")")
            && (1..=program::memory::ALIGNMENT).contains(&n)
            && n.count_ones() == 1
    }

    /// `enum E : int { A, B = 2 }`, from its first word.
    fn enumeration(&mut self) -> Parsed<Base> {
        self.next();
        let scoped = self.language.cpp && matches!(self.word(), "class" | "struct");
        if scoped {
            self.next();
        }
        let name = self.tag()?;
        let underlying = if self.eat(":") {
            match self.specifiers()?.base {
                Base::Int(ty) => Some(ty),
                Base::Bool => Some(BYTE),
                _ => return self.unexpected("an integer type"),
            }
        } else {
            None
        };
        if !self.eat("{") {
            if name.is_none() {
                return self.unexpected("the name of an enumeration or `{`");
            }
            return Ok(Base::Enum(
                EnumSyntax {
                    name,
                    underlying,
                    scoped,
                    all: None,
                }
                .into(),
            ));
        }
        let mut all = Vec::new();
        while !self.eat("}") {
            let enumerator = self.new_name("the name of an enumerator")?;
            let word = self.str(&enumerator);
            self.variables.insert(word);
            let value = if self.eat("=") {
                Some(self.expression()?)
            } else {
                None
            };
            all.push((enumerator, value));
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(Base::Enum(
            EnumSyntax {
                name,
                underlying,
                scoped,
                all: Some(all),
            }
            .into(),
        ))
    }

    /// The name of a structure or enumeration, if one comes next; in C++ it becomes a type name.
    pub(super) fn tag(&mut self) -> Parsed<Option<Range<usize>>> {
        if self.tokens.peek() != Tok::Name {
            return Ok(None);
        }
        let name = self.new_name("another name")?;
        if self.language.cpp {
            let word = self.str(&name);
            self.types.insert(word);
        }
        Ok(Some(name))
    }

    /// Reads a declarator; if `named`, it must have a name.
    pub(super) fn declarator(&mut self, named: bool) -> Parsed<Declarator> {
        let mut all = Declarator::default();
        while self.eat("*") {
            let mut of_pointer = Qualifiers::default();
            while self.qualifier(&mut of_pointer) {}
            all.pointers.push(of_pointer);
        }
        if matches!(self.tokens.peek(), Tok::Punct("&" | "&&")) {
            if !self.language.cpp {
                return self.unexpected("a name; C has no references");
            }
            all.temporary = self.tokens.peek() == Tok::Punct("&&");
            self.next();
            all.reference = true;
        }
        // `int *__restrict__ p`, `int & __restrict__ r`
        while self.qualifier(&mut Qualifiers::default()) {}
        if self.points_to_function(0) {
            self.function_pointer(&mut all)?;
            return Ok(all);
        }
        if named {
            if self.tokens.peek() == Tok::Punct("(") {
                return self.refuse(
                    "pointers to arrays, and to functions in OpenCL C, are",
                    "declare a pointer to the first element, or call the function itself",
                );
            }
            if self.language.cpp && self.tokens.peek() == Tok::Punct("[") {
                return self.structured(all);
            }
            all.name = match self.word() {
                "operator" if self.language.cpp => self.operator_name()?,
                _ => self.new_name("the name of a register")?,
            };
        }
        self.array_sizes(&mut all)?;
        Ok(all)
    }

    /// Reads the sizes behind the name of an array: `[4][]`.
    pub(super) fn array_sizes(&mut self, declarator: &mut Declarator) -> Parsed<()> {
        while self.tokens.peek() == Tok::Punct("[") {
            let start = self.next().start;
            let size = if self.tokens.peek() == Tok::Punct("]") {
                None
            } else {
                Some(self.expression()?)
            };
            let end = self.expect("]")?.end;
            declarator.arrays.push((size, start..end));
        }
        Ok(())
    }

    /// `(int *)`, without the parentheses.
    pub(super) fn type_name(&mut self) -> Parsed<TypeName> {
        let specifiers = self.specifiers()?;
        let declarator = self.declarator(false)?;
        Ok(TypeName {
            specifiers,
            declarator,
        })
    }

    /// `int r = E, s`, without the `;`.
    pub(super) fn declaration(&mut self) -> Parsed<Declaration> {
        let specifiers = self.specifiers()?;
        let first = self.declarator(true)?;
        self.declarators(specifiers, first)
    }

    /// Reads the declarators from the first name on.
    pub(super) fn declarators(
        &mut self,
        specifiers: Specifiers,
        first: Declarator,
    ) -> Parsed<Declaration> {
        let mut all = Vec::new();
        let is_type = specifiers.has(Storage::Typedef).is_some();
        let mut first = Some(first);
        loop {
            let declarator = match first.take() {
                Some(first) => first,
                None => self.declarator(true)?,
            };
            self.has_a_place(&specifiers, &declarator)?;
            let word = self.str(&declarator.name);
            if is_type && declarator.calls {
                self.pointers.insert(word);
            }
            if is_type {
                self.types.insert(word);
            } else {
                self.variables.insert(word);
            }
            let auto = matches!(specifiers.base, Base::Auto);
            if auto
                && self.tokens.peek() == Tok::Punct("=")
                && self.tokens.peek_at(1) == Tok::Punct("{")
            {
                return self.refuse(
                    "variables of type `std::initializer_list` are",
                    "without `=`, it has the type of its one value",
                );
            }
            let value = self.initial()?;
            if auto && value.is_none() {
                return self.unexpected("`=` and a value, which decides the type");
            }
            all.push(Declared { declarator, value });
            if !self.eat(",") {
                return Ok(Declaration { specifiers, all });
            }
        }
    }

    /// Reports an object in the generic address space. Only targets of pointers may lie there
    /// (OpenCL C, Address Space Qualifiers).
    fn has_a_place(&mut self, specifiers: &Specifiers, declarator: &Declarator) -> Parsed<()> {
        if !declarator
            .pointers
            .last()
            .unwrap_or(&specifiers.of_base)
            .generic
        {
            return Ok(());
        }
        let name = &declarator.name;
        let range = if name.is_empty() {
            specifiers.range.clone()
        } else {
            name.clone()
        };
        let message = format!(
            "`{}` would be in the generic address space, in which nothing is",
            self.str(&range)
        );
        self.fail(
            range,
            message,
            "another address space, or a pointer to it: `generic int *p`",
        )
    }

    /// Whether the declarator just read is that of a function: its parameters come next.
    fn is_function(&self) -> bool {
        if self.language.cpp && self.tokens.peek() == Tok::Punct("<") && !self.in_block() {
            return true;
        }
        if self.tokens.peek() != Tok::Punct("(") || self.in_block() {
            return false;
        }
        // `int n(4);` is a variable in C++, `int f(int n);` and `int f();` are functions.
        let mut open = 0;
        let mut n = 0;
        loop {
            match self.tokens.peek_at(n) {
                Tok::Punct("(") => open += 1,
                Tok::Punct(")") => open -= 1,
                Tok::End => return false,
                _ => {}
            }
            n += 1;
            if open == 0 {
                break;
            }
        }
        let typed = self.is_type(1) || self.tokens.peek_at(1) == Tok::Punct(")");
        self.tokens.peek_at(n) == Tok::Punct("{") || typed
    }

    /// `(int *p, int v) { … }`, after the name.
    pub(super) fn function(
        &mut self,
        specifiers: Specifiers,
        declarator: Declarator,
    ) -> Parsed<StmtKind> {
        // `template <> int f<int>(…)`
        let specialises = match self.language.cpp && self.tokens.peek() == Tok::Punct("<") {
            true => Some(self.template_arguments()?),
            false => None,
        };
        self.expect("(")?;
        let word = self.str(&declarator.name);
        if self.floating(word).is_some() {
            // A function named `half` hides the type of the library.
            self.variables.insert(word);
        }
        let template = std::mem::take(&mut self.pending);
        if !template.is_empty() {
            let word = self.str(&declarator.name);
            self.templates.insert(word);
        }
        let (params, defaults) = self.parameters()?;
        let constant = self.behind_parameters()?;
        let constructs = match self.is_constructor(&specifiers, &declarator) {
            true => Some(self.member_initialisers()?),
            false => None,
        };
        if self.language.cpp && self.eat("=") && matches!(self.word(), "default" | "delete" | "") {
            self.next();
            self.expect(";")?;
            return Ok(StmtKind::Function(None));
        }
        if self.eat(";") {
            if let Some(value) = defaults.iter().flatten().next() {
                let range = value.range.clone();
                let message = "a default argument in a declaration";
                return self.fail(range, message, "it in the definition of the function");
            }
            if !template.is_empty() || specialises.is_some() || constructs.is_some() {
                return Ok(StmtKind::Function(None));
            }
            let result = TypeName {
                specifiers,
                declarator,
            };
            return Ok(StmtKind::Prototype(Prototype { result, params }.into()));
        }
        let result = self.result_of(specifiers, declarator)?;
        if self.tokens.peek() != Tok::Punct("{") {
            return self.unexpected("`{` and the body of the function");
        }
        let body = self.nested(Self::body)?;
        Ok(StmtKind::Function(Some(
            Function {
                result,
                params,
                defaults,
                template,
                specialises,
                constant,
                constructs,
                body,
            }
            .into(),
        )))
    }

    /// The type of a result: the one behind `->`, if there is one.
    pub(super) fn result_of(
        &mut self,
        specifiers: Specifiers,
        declarator: Declarator,
    ) -> Parsed<TypeName> {
        if !self.language.cpp || !self.eat("->") {
            return Ok(TypeName {
                specifiers,
                declarator,
            });
        }
        let mut result = self.type_name()?;
        result.declarator.name = declarator.name;
        result.specifiers.storage.extend(specifiers.storage);
        Ok(result)
    }

    /// The parameters of a function behind the `(`, with their default arguments.
    pub(super) fn parameters(&mut self) -> Parsed<(Vec<TypeName>, Vec<Option<Expr>>)> {
        let (mut params, mut defaults) = (Vec::new(), Vec::new());
        if self.word() == "void" && self.tokens.peek_at(1) == Tok::Punct(")") {
            self.next();
        }
        while !self.eat(")") {
            if self.tokens.peek() == Tok::Punct("...") {
                return self.refuse(
                    "functions of any number of arguments are",
                    "give them one by one",
                );
            }
            let specifiers = self.specifiers()?;
            let mut declarator = self.declarator(false)?;
            if declarator.name.is_empty() && self.tokens.peek() == Tok::Name {
                declarator.name = self.new_name("the name of a parameter")?;
                let word = self.str(&declarator.name);
                self.variables.insert(word);
                self.array_sizes(&mut declarator)?;
            }
            defaults.push(match self.language.cpp && self.eat("=") {
                true => Some(self.expression()?),
                false => None,
            });
            self.has_a_place(&specifiers, &declarator)?;
            params.push(TypeName {
                specifiers,
                declarator,
            });
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok((params, defaults))
    }

    /// Skips words behind the parameters of a function that change nothing: attributes, and `const`
    /// of a member function. Returns whether that is there.
    pub(super) fn behind_parameters(&mut self) -> Parsed<bool> {
        let mut constant = false;
        loop {
            match self.word() {
                "__attribute__" | "__attribute" => {
                    self.next();
                    self.attribute()?;
                }
                "const" | "noexcept" | "override" | "mutable" | "constexpr" | "__device__"
                | "__host__"
                    if self.language.cpp =>
                {
                    constant |= self.word() == "const";
                    self.next();
                }
                _ => return Ok(constant),
            }
        }
    }

    /// Reads a declaration or a function, with its `;`.
    pub(super) fn declared(&mut self) -> Parsed<StmtKind> {
        let specifiers = self.specifiers()?;
        if self.tokens.peek() == Tok::Punct(";") {
            self.next();
            return Ok(StmtKind::Declare(Declaration {
                specifiers,
                all: Vec::new(),
            }));
        }
        // `S::S(int n) : a(n) { … }`
        if self.is_outer_constructor(&specifiers) {
            let (name, specifiers) = as_constructor(specifiers);
            return self.function(
                specifiers,
                Declarator {
                    name,
                    ..Declarator::default()
                },
            );
        }
        let first = self.declarator(true)?;
        if self.is_function() {
            return self.function(specifiers, first);
        }
        let all = self.declarators(specifiers, first)?;
        self.expect(";")?;
        Ok(StmtKind::Declare(all))
    }

    /// Reads an initialiser, if one comes next.
    pub(super) fn initial(&mut self) -> Parsed<Option<Initial>> {
        if self.eat("=") {
            return self.nested(Self::initial_value).map(Some);
        }
        if self.language.cpp && self.tokens.peek() == Tok::Punct("{") {
            return self.nested(Self::initial_value).map(Some);
        }
        let start = self.tokens.range().start;
        if self.language.cpp && self.eat("(") {
            let (mut all, _) = self.arguments()?;
            return Ok(Some(match all.len() {
                1 => Initial::Value(all.swap_remove(0)),
                _ => Initial::Call(all, start..self.tokens.last().range.end),
            }));
        }
        Ok(None)
    }

    pub(super) fn initial_value(&mut self) -> Parsed<Initial> {
        let start = self.tokens.range().start;
        if !self.eat("{") {
            return self.expression().map(Initial::Value);
        }
        let mut all = Vec::new();
        while !self.eat("}") {
            if self.tokens.peek() == Tok::Punct("[") {
                return self.refuse(
                    "designated elements are",
                    "give the values in the order of the elements",
                );
            }
            all.push(match self.eat(".") {
                true if self.tokens.peek() != Tok::Name => {
                    return self.unexpected("the name of a member");
                }
                true => {
                    let name = self.next();
                    self.expect("=")?;
                    Initial::Member(name, self.nested(Self::initial_value)?.into())
                }
                false => self.nested(Self::initial_value)?,
            });
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(Initial::List(all, start..self.tokens.last().range.end))
    }

    /// Skips `((always_inline))`: attributes without an effect that a model could see.
    pub(super) fn attribute(&mut self) -> Parsed<()> {
        self.expect("(")?;
        self.expect("(")?;
        while !self.eat(")") {
            if self.tokens.peek() == Tok::Name
                && !ATTRIBUTES.contains(&self.word().trim_matches('_'))
            {
                return self.refuse(
                    "such attributes are",
                    "leave it out, if nothing depends on it",
                );
            }
            self.next();
            if self.tokens.peek() == Tok::Punct("(") {
                self.parenthesised()?;
            }
            if self.tokens.peek() == Tok::End {
                return self.unexpected("`)`");
            }
        }
        self.expect(")").map(drop)
    }

    /// Skips text in parentheses.
    pub(super) fn parenthesised(&mut self) -> Parsed<()> {
        let mut open = 0;
        loop {
            match self.tokens.peek() {
                Tok::Punct("(") => open += 1,
                Tok::Punct(")") => open -= 1,
                Tok::End => return self.unexpected("`)`"),
                _ if open == 0 => return self.unexpected("`(`"),
                _ => {}
            }
            self.next();
            if open == 0 {
                return Ok(());
            }
        }
    }

    /// Reports that the language has a construct that Fencepost does not support.
    pub(super) fn refuse<T>(&mut self, what: &str, instead: &str) -> Parsed<T> {
        let span = self.text.span(self.tokens.range());
        self.sink
            .error("unsupported", span, format!("{what} not supported"), |d| {
                d.label("the language has them, Fencepost does not")
                    .help(instead)
            });
        Err(Failed)
    }
}

/// The specifiers of a constructor, which has no result.
pub(super) fn nothing(range: Range<usize>) -> Specifiers {
    Specifiers {
        base: Base::Void,
        of_base: Qualifiers::default(),
        storage: Vec::new(),
        range,
    }
}

/// The name of a constructor outside of its class, and its specifiers.
fn as_constructor(specifiers: Specifiers) -> (Range<usize>, Specifiers) {
    let name = match &specifiers.base {
        Base::Named(range) => range.clone(),
        _ => specifiers.range.clone(),
    };
    let plain = nothing(name.clone());
    (name, plain)
}

/// The type that words such as `unsigned long` form, in any order (C11, 6.7.2).
fn made_of(parts: &[&str]) -> Option<Ty> {
    let count = |word: &str| parts.iter().filter(|p| **p == word).count();
    let (signed, unsigned) = (count("signed"), count("unsigned"));
    let bits = match (count("char"), count("short"), count("int"), count("long")) {
        (1, 0, 0, 0) => 8,
        (0, 1, 0 | 1, 0) => 16,
        (0, 0, 0 | 1, 0) => 32,
        (0, 0, 0 | 1, 1 | 2) => 64,
        _ => return None,
    };
    (signed + unsigned <= 1).then_some(Ty {
        bits,
        signed: unsigned == 0,
    })
}
