//! Resolves names at a place, and reports unknown ones.
//!
//! # Invariants
//! - Lookup order: parameters and local definitions, definitions of the model, base names, the
//!   library.
//! - A definition of the library is evaluated once, at its first use. If it needs an undeclared
//!   free relation, the error is at the use. The library refers to free relations only by their
//!   roles.

use std::rc::Rc;

use super::super::ast::{CatExpr, CatExprKind, Ident};
use super::super::build::Place;
use super::super::ir::{COHERENCE, Kind, READS_FROM};
use super::super::resolve::{FunctionBody, NameEnv, NameValue};
use super::{FreeId, Lowerer};
use diag::{Diagnostic, Span};

impl Lowerer<'_> {
    pub(super) fn name(&mut self, name: &str, span: Span, env: &mut NameEnv) -> NameValue {
        self.build.place = (env.file, span);
        match self.lookup(name, env) {
            Some((NameValue::Unsupported(what), place)) => {
                self.unsupported(&what, span, place, env);
                NameValue::Poison
            }
            Some((value, _)) => value,
            None => {
                self.unknown_name(name, span, env);
                NameValue::Poison
            }
        }
    }

    /// The meaning of a name, and the place of its definition.
    pub(super) fn lookup(
        &mut self,
        name: &str,
        env: &NameEnv,
    ) -> Option<(NameValue, Option<Place>)> {
        if let Some((_, value)) = env.locals.iter().rev().find(|(n, _)| n == name) {
            return Some((value.clone(), None));
        }
        if let Some(limit) = env.library {
            if let Some(at) = self.library.find(name, limit) {
                return Some(self.library_value(at, env));
            }
            return self.builtin(name).map(|v| (v, None));
        }
        if let Some(definition) = self.scope.get(name, env.limit) {
            return Some((definition.value.clone(), definition.place));
        }
        if let Some(value) = self.builtin(name) {
            return Some((value, None));
        }
        let at = self.library.find(name, u32::MAX)?;
        Some(self.library_value(at, env))
    }

    /// Base names and built-in functions.
    fn builtin(&mut self, name: &str) -> Option<NameValue> {
        if let Some(id) = self.signature.find(name) {
            return Some(NameValue::Node(
                self.build.base(id, self.signature.names[id.index()].kind),
            ));
        }
        let body = match name {
            "id" => return Some(NameValue::Node(self.build.id())),
            READS_FROM => return self.of_role(self.values, self.named_values.clone()),
            COHERENCE => return self.of_role(self.finals, self.named_final.clone()),
            "emptyset" => return Some(NameValue::Node(self.build.empty(Kind::Set))),
            "domain" => FunctionBody::Domain,
            "range" => FunctionBody::Range,
            "toid" => FunctionBody::ToId,
            _ => return None,
        };
        Some(self.new_function(name, body, NameEnv::default()))
    }

    /// The free relation with a role that is declared, or will be.
    fn of_role(
        &mut self,
        stated: Option<(FreeId, Place)>,
        named: Option<String>,
    ) -> Option<NameValue> {
        let id = stated.map(|s| s.0).or_else(|| {
            self.free
                .iter()
                .position(|f| Some(&f.name) == named.as_ref())
                .map(|at| FreeId(at as u32))
        })?;
        Some(NameValue::Node(self.build.free(id)))
    }

    /// A definition of the library, evaluated at its first use.
    pub(super) fn library_value(&mut self, at: u32, user: &NameEnv) -> (NameValue, Option<Place>) {
        let Some(file) = self.library.file else {
            return (NameValue::Poison, None);
        };
        let binding = self.library.bindings[at as usize].clone();
        let place = (file, binding.name.span);
        if let Some(value) = self.library.known.get(&at) {
            return (value.clone(), Some(place));
        }
        let before = self.diagnostics.len();
        let outer = self.build.place;
        let mut env = NameEnv {
            limit: 0,
            library: Some(at),
            locals: Vec::new(),
            file,
        };
        let calls = std::mem::take(&mut self.calls);
        let value = self.binding(&binding, &mut env);
        self.calls = calls;
        self.build.place = outer;
        if self.diagnostics.len() > before && user.library.is_some() {
            // The library definition that the model itself uses reports the error.
            return (NameValue::Poison, Some(place));
        }
        if self.diagnostics.len() > before {
            // A free relation that it needs is not declared (yet), so the error is at the use.
            let causes: Vec<Diagnostic> = self.diagnostics.drain(before..).collect();
            for cause in &causes {
                self.reported.remove(&(cause.id, file, cause.span));
            }
            if let Some(cause) = causes.into_iter().next() {
                let role = match cause.source.as_ref().map(|s| &s.text[cause.span.range()]) {
                    Some(COHERENCE) => "final",
                    _ => "values",
                };
                let source = self.files[user.file as usize].clone();
                let span = self.build.place.1;
                let diagnostic = Diagnostic::error(
                    "unknown-name",
                    &source,
                    span,
                    format!(
                        "`{}` of the library needs the free relation that is `{role}`, which is \
                         not declared here",
                        binding.name.name
                    ),
                )
                .help(format!(
                    "declare it first: `free NAME : …` and `{role} NAME`"
                ));
                self.report(diagnostic, user.file);
            }
            return (NameValue::Poison, Some(place));
        }
        if let NameValue::Node(node) = value {
            self.build.name(node, &binding.name.name);
            self.lets.push((binding.name.name.clone(), node, place));
        }
        self.library.known.insert(at, value.clone());
        (value, Some(place))
    }

    /// Reports unknown names in a function's body, even if the function is never called. If a name
    /// denotes an unsupported construct, the function does, too, and nothing is reported.
    pub(super) fn check_names(
        &mut self,
        body: &CatExpr,
        params: &[String],
        env: &NameEnv,
    ) -> Option<Rc<str>> {
        let mut used: Vec<Ident> = Vec::new();
        let mut bound: Vec<String> = params.to_vec();
        body.walk(&mut |e| {
            match &e.kind {
                CatExprKind::Name(name) => used.push(Ident {
                    name: name.clone(),
                    span: e.span,
                }),
                CatExprKind::Call(name, _) => used.push(name.clone()),
                CatExprKind::Let(bindings, _) => {
                    for b in bindings {
                        bound.push(b.name.name.clone());
                        bound.extend(b.params.iter().flatten().map(|p| p.name.clone()));
                    }
                }
                _ => {}
            }
            true
        });
        let mut unknown = Vec::new();
        for name in used.into_iter().filter(|n| !bound.contains(&n.name)) {
            match self.lookup(&name.name, env) {
                Some((NameValue::Unsupported(what), _)) => return Some(what),
                Some(_) => {}
                None => unknown.push(name),
            }
        }
        for name in unknown {
            self.unknown_name(&name.name, name.span, env);
        }
        None
    }

    pub(super) fn error(&mut self, id: &'static str, span: Span, env: &NameEnv, message: &str) {
        let source = self.files[env.file as usize].clone();
        self.report(Diagnostic::error(id, &source, span, message), env.file);
    }

    pub(super) fn unsupported(
        &mut self,
        what: &str,
        span: Span,
        defined: Option<Place>,
        env: &NameEnv,
    ) {
        let source = self.files[env.file as usize].clone();
        let mut diagnostic = Diagnostic::error(
            "not-supported",
            &source,
            span,
            format!("not supported: `{what}`"),
        )
        .label("this construct has no meaning here");
        match defined {
            Some((file, at)) if file == env.file => {
                diagnostic = diagnostic.also(at, "defined with it here")
            }
            Some((file, at)) => {
                let source = &self.files[file as usize];
                let (line, column) = source.line_column(at.start as usize);
                diagnostic = diagnostic.note(format!(
                    "defined with it at {}:{line}:{column}",
                    source.name
                ));
            }
            None => {}
        }
        self.report(diagnostic, env.file);
    }

    pub(super) fn unknown_name(&mut self, name: &str, span: Span, env: &NameEnv) {
        let source = self.files[env.file as usize].clone();
        let mut names: Vec<&str> = self.scope.names();
        names.extend(env.locals.iter().map(|(n, _)| n.as_str()));
        names.extend(self.signature.names.iter().map(|n| n.name));
        names.extend(self.library.bindings.iter().map(|b| b.name.name.as_str()));
        names.extend(["id", "domain", "range"]);
        let diagnostic = Diagnostic::error(
            "unknown-name",
            &source,
            span,
            format!("unknown name `{name}`"),
        )
        .label("neither defined above nor a base set or relation")
        .did_you_mean(name, names);
        self.report(diagnostic, env.file);
    }
}
