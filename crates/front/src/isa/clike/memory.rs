//! Declares the memory that code declares: memory of the program, of a function, of a group, of a
//! thread.
//!
//! # Sources
//! - C11, 6.2.4; CUDA C++ Programming Guide, *Variable Memory Space Specifiers*; OpenCL C, *Address
//!   Space Qualifiers*: the variables that a block may declare. Variables shared by a group have no
//!   initialiser.

use std::ops::Range;

use super::ast::{Declared, Expr as Tree, Initial, Specifiers, Storage};
use super::lower::Lowering;
use super::scope::Binding;
use super::types::{Qualified, Record, Type};
use crate::isa::{DeclarationPlace, Object, SymbolKind};
use program::{Class, Expr, Init, LocId, MemoryKind, OpenClMemory, Space};

impl<'a> Lowering<'a, '_> {
    /// `extern __shared__ int s[];`: memory of that name; the test gives its size.
    pub(super) fn declared_by_test(
        &mut self,
        declared: &Declared,
        of: &Qualified,
        range: &Range<usize>,
    ) {
        let name = &declared.declarator.name;
        let word = self.str(name);
        let element = match &of.ty {
            Type::Array(element, _) => &element.ty,
            ty => ty,
        };
        let found = self.location(word);
        let there = found.map(|loc| (self.of_location(loc), self.symbols.object(loc).1.space));
        let can_view = |ty: &Type| ty == element || (ty.size() > 0 && element.size() > 0);
        let can_view = there
            .as_ref()
            .is_some_and(|(of, space)| can_view(&of.ty) && *space == Space::Shared);
        if let (true, Some(loc)) = (can_view, found) {
            let object = self.symbols.object(loc).0;
            if let Some(object) = self.symbols.object_mut(object) {
                object.dynamic = true;
            }
            let (first, begins) = self
                .dynamic
                .get_or_insert_with(|| (word.to_owned(), loc))
                .clone();
            if begins != loc {
                let message = format!("`{word}` begins where `{first}` does");
                self.error("unsupported", range, message, |d| {
                    d.label("expected a further name of that memory in the test")
                        .note(
                            "all arrays of dynamic shared memory start at the same address (CUDA \
                            C++ Programming Guide, __shared__)",
                        )
                        .help(format!(
                            "declare it in `[memory]` behind `{first}`, as `{word} = \
                            {{ at = \"{first}\" }}`"
                        ))
                });
            } else if let Some((first, _)) = there.filter(|(of, _)| of.ty != *element) {
                let bytes = self.symbols.elements(loc) as u64 * first.ty.size();
                let elements = (bytes / element.size()).max(1) as u32;
                if element.stored().is_none() || first.ty.stored().is_none() {
                    self.symbols.view_structures();
                }
                let all = match &of.ty {
                    Type::Array(element, _) => Type::Array(element.clone(), elements),
                    _ => Type::Array(of.clone().into(), elements),
                };
                let binding = Binding::Memory(Expr::Address(loc), all.into());
                match self.outside {
                    true => self.scopes.bind_outside(word, binding),
                    false => self.scopes.bind(word, binding),
                }
            }
        } else {
            let message = match there {
                Some(_) => format!("`{word}` is other memory than this declaration says"),
                None => format!("the size of `{word}` is not in the code"),
            };
            let ty = element.name();
            self.error("unsupported", range, message, |d| {
                d.label("expected memory of that name and type in the test")
                    .help(format!(
                        "declare it in `[memory]`, with its size: `{word} = {{ size = 4, init = 0, \
                        type = \"{ty}\", space = \"shared\" }}`"
                    ))
            });
        }
    }

    /// Declares a variable outside of all functions: one object for all threads of the device.
    pub(super) fn of_program(
        &mut self,
        specifiers: &Specifiers,
        declared: &Declared,
        of: Qualified,
    ) {
        let name = &declared.declarator.name;
        let region = of.space;
        let constant =
            specifiers.has(Storage::Constant).is_some() || region == Some(Space::Constant);
        let host = self.env.language.cpp && !constant && specifiers.has(Storage::Device).is_none();
        if host || matches!(region, Some(Space::Local | Space::Shared)) {
            let word = self.str(name);
            if host && self.unit.of_file {
                self.of_host.insert(word);
                return;
            }
            let message = format!(
                "`{word}` is a variable {}",
                if host { "of the host" } else { "of no thread" }
            );
            self.error("unsupported", name, message, |d| {
                d.label("expected a variable of the device").help(if host {
                    "write `__device__` before it"
                } else {
                    "declare it in the kernel"
                })
            });
            return;
        }
        if let Some(init) = self.first_values(declared, &of) {
            let space = if constant {
                Space::Constant
            } else {
                Space::Global
            };
            self.memory(declared, of, space, init);
        }
    }

    /// `static int n = 1;` in a function: one object for all threads of the device and all calls.
    /// No other function can name it, so the function's name is part of its name.
    pub(super) fn of_function(
        &mut self,
        specifiers: &Specifiers,
        declared: &Declared,
        of: Qualified,
    ) {
        let name = &declared.declarator.name;
        if !self.may_declare(name) {
            return;
        }
        let region = of.space;
        let sized = of.ty.size() > 0 && (of.ty.is_aggregate() || of.ty.stored().is_some());
        let elsewhere = matches!(region, Some(Space::Local | Space::Shared));
        if !sized || elsewhere {
            let range = specifiers.has(Storage::Static).unwrap_or(name);
            self.error(
                "unsupported",
                range,
                "this cannot be a static variable",
                |d| d.label("expected a variable of the device, of a type that has a size"),
            );
            return;
        }
        let word = self.str(name);
        let key = (name.start, self.owner().to_owned());
        let loc = match self.lasting.get(&key) {
            Some(loc) => *loc,
            None => {
                let space = region.unwrap_or(Space::Global);
                let Some(init) = self.first_values(declared, &of) else {
                    return;
                };
                let function = match self.owner() {
                    "" => self.kernel.unwrap_or(""),
                    owner => owner,
                };
                let called = format!("{function}::{word}");
                let object = self.object_of_type(&of, space, init, name);
                let Some(loc) = self.object_of_code(&called, name, object) else {
                    return;
                };
                self.declared_memory.push(loc);
                self.lasting.insert(key, loc);
                loc
            }
        };
        self.scopes
            .bind(word, Binding::Memory(Expr::Address(loc), of));
    }

    /// Declares memory of the code: of all threads, with its first values; of a group of threads,
    /// or of each thread.
    pub(super) fn memory(
        &mut self,
        declared: &Declared,
        of: Qualified,
        space: Space,
        init: Vec<Init>,
    ) {
        let name = &declared.declarator.name;
        let word = self.str(name);
        if !self.may_declare(name) {
            return;
        }
        if of.ty.size() == 0 {
            let message = format!("a `{}` has no size here", of.ty.name());
            self.error("wrong-operand", name, message, |d| {
                d.label("expected a type that is defined before")
            });
            return;
        }
        if let (Space::Shared, Some(_)) = (space, &declared.value) {
            self.error(
                "wrong-operand",
                name,
                format!("`{word}` has an initialiser"),
                |d| {
                    d.label("expected none")
                        .note("variables that a group of threads shares cannot be initialised")
                        .help("assign to it in one thread, and let the others wait at a barrier")
                },
            );
            return;
        }
        let loc = match space {
            Space::Shared => self.shared_object(word, name, name.start, &of),
            _ => {
                let object = self.object_of_type(&of, space, init, name);
                self.object_of_code(word, name, object)
                    .inspect(|loc| self.declared_memory.push(*loc))
            }
        };
        let Some(loc) = loc else { return };
        let addr = Expr::Address(loc);
        let binding = Binding::Memory(addr.clone(), of.clone());
        if self.outside {
            self.scopes.bind_outside(word, binding);
            return;
        }
        self.scopes.bind(word, binding);
        if space == Space::Local {
            self.ends_with_block(&addr, &of);
        }
        match &declared.value {
            Some(Initial::List(all, range)) => self.initial_list(&addr, &of, all, range),
            Some(Initial::Call(all, range)) => {
                let args: Vec<&Tree> = all.iter().collect();
                self.construct(&addr, &of, &args, range);
            }
            Some(Initial::Value(value)) if matches!(of.ty, Type::Struct(_)) => {
                self.construct(&addr, &of, &[value], &value.range);
            }
            None if space == Space::Local && self.needs_initialising(&of.ty) => {
                self.construct(&addr, &of, &[], name);
            }
            Some(Initial::Value(value)) => {
                self.error(
                    "wrong-operand",
                    &value.range,
                    "one value for an array",
                    |d| d.label("expected a list in `{}`"),
                );
            }
            Some(Initial::Member(..)) | None => {}
        }
    }

    /// The object that a group of threads shares, the same for all calls of the function. `place`
    /// is a text position that identifies it.
    pub(super) fn shared_object(
        &mut self,
        word: &str,
        name: &Range<usize>,
        place: usize,
        of: &Qualified,
    ) -> Option<LocId> {
        let key = (place, self.owner().to_owned());
        if let Some(loc) = self.lasting.get(&key) {
            return Some(*loc);
        }
        let object = self.object_of_type(of, Space::Shared, Vec::new(), name);
        let loc = self.object_of_code(word, name, object)?;
        self.declared_memory.push(loc);
        self.lasting.insert(key, loc);
        Some(loc)
    }

    /// Makes an object of a type; `init` has the initial values for an object of all threads.
    fn object_of_type(
        &self,
        of: &Qualified,
        space: Space,
        init: Vec<Init>,
        range: &Range<usize>,
    ) -> Object {
        // The element type of an array. For an array of one element, the object itself.
        let element = match &of.ty {
            Type::Array(element, n) if *n > 1 || element.ty.stored().is_some() => {
                Qualified::clone(element)
            }
            _ => of.clone(),
        };
        let span = self.unit.text.span(range.clone());
        let mut atomic = false;
        element.ty.each_cell(&mut |_, _, of| atomic |= of.atomic);
        let of_program = matches!(space, Space::Global | Space::Constant);
        Object {
            ty: element.ty.stored().map(|ty| (ty, span)),
            declared: true,
            record: element
                .ty
                .is_aggregate()
                .then(|| Record(element.ty.clone())),
            init: match space {
                _ if of_program => init,
                Space::Shared => unwritten(&of.ty),
                _ => vec![Init::Int(0); of.ty.cells() as usize],
            },
            space,
            atomic: Some(element.atomic || atomic),
            opencl: OpenClMemory {
                global: space == Space::Local || of_program,
                local: space == Space::Shared,
                capped: !of_program,
            },
            kind: match space {
                Space::Global if self.env.language.row().regions => MemoryKind::ProgramScope,
                Space::Global | Space::Constant => MemoryKind::default(),
                _ => MemoryKind::Private,
            },
            class: match element.ty {
                Type::Object(class, _) => Some(class),
                _ => None,
            },
            boolean: element.ty.is_boolean(),
            floating: match element.ty {
                Type::Float(format) => Some(format),
                _ => None,
            },
            of_code: true,
            ..Object::scalar(0)
        }
    }

    /// Declares memory of the thread for a structure without a name.
    pub(super) fn unnamed(
        &mut self,
        word: &str,
        of: &Qualified,
        range: &Range<usize>,
    ) -> Option<Expr> {
        let object = self.object_of_type(of, Space::Local, Vec::new(), range);
        let loc = self.object_of_code(word, range, object)?;
        self.declared_memory.push(loc);
        Some(Expr::Address(loc))
    }

    /// The location for a declaration in the code. The threads of a kernel share it. Within a
    /// thread, each declaration has a location; a condition names the first one of a name.
    ///
    /// The place of a declaration identifies shared memory. So threads agree on it, even if they
    /// call different functions in another order.
    fn object_of_code(&mut self, word: &str, name: &Range<usize>, object: Object) -> Option<LocId> {
        let span = self.unit.text.span(name.clone());
        let place = (object.space == Space::Shared).then(|| DeclarationPlace {
            unit: std::ptr::from_ref(self.unit) as usize,
            at: name.start,
            owner: self.owner().to_owned(),
        });
        for n in 0.. {
            let called = match (n, self.owner()) {
                (0, _) => word.to_owned(),
                (1, owner) if place.is_some() && !owner.is_empty() => format!("{owner}::{word}"),
                _ => format!("{word}#{n}"),
            };
            let Some(old) = self.symbols.find(&called) else {
                let kind = SymbolKind::Object(object);
                let loc = self.symbols.declare(&called, span, kind, self.sink)?;
                self.symbols.set_place(loc, place);
                return Some(loc);
            };
            if let (Some(own), Some(other)) = (&place, self.symbols.place(old))
                && own.unit == other.unit
            {
                if own == other {
                    return Some(old);
                }
                continue;
            }
            let taken = self.declared_memory.contains(&old);
            if self.symbols.is_like(old, &object) && !taken {
                return Some(old);
            }
            if object.space == Space::Local {
                continue;
            }
            if taken {
                self.error(
                    "duplicate-name",
                    name,
                    format!("`{word}` is declared in two blocks"),
                    |d| {
                        d.label("expected another name")
                            .note("memory that threads share has one name for each object")
                    },
                );
                return None;
            }
            return self
                .symbols
                .declare(&called, span, SymbolKind::Object(object), self.sink);
        }
        None
    }
}

/// The initial contents of memory that a group shares: any values, except that the words of
/// barriers, latches and semaphores are 0.
fn unwritten(ty: &Type) -> Vec<Init> {
    let mut found = Vec::new();
    ty.each_cell(&mut |_, _, of| {
        found.push(match of.ty {
            Type::Object(
                Class::Barrier(_) | Class::Latch(_) | Class::Semaphore(..) | Class::Mbarrier,
                _,
            ) => Init::Int(0),
            _ => Init::Unknown,
        });
    });
    found
}
