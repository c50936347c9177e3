//! Syntax trees to the relational IR: files and statements. Expressions are in [`expr`], `let rec` in
//! [`recursion`], `free`, roles and `with … from` in [`free`].
//!
//! # Invariants
//! - Every error of a model is reported, each once; a model is built only if there is none.
//! - Functions and procedures are inlined at each use; the finished table has no names but for output.
//! - Every definition, used or not, is a root of the table, so output can show it.
//!
//! # Where we differ
//! - herd's variants (`if "name" …`) are never set: the `else` branch is taken.
//! - A definition whose right-hand side uses a construct without meaning here is an error only where it is used:
//!   herd's libraries define much that no axiom needs.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::ast::{Expr, File, Ident, Stmt, StmtKind, TestRole, TestStmt, TestWord};
use super::build::{Builder, Place};
use super::ir::{Axiom, FreeId, FreeRel, Kind, Model, NodeId, Test};
use super::library::{IncludeResolver, Library};
use super::parse::parse;
use super::resolve::{CallSite, Env, Function, FunctionBody, LibraryScope, Scope, Value};
use super::signature::Signature;
use crate::diag::{Diagnostic, SourceFile, Span};

mod expr;
mod free;
mod recursion;

/// How deep files may include each other.
const MAX_INCLUDE_DEPTH: usize = 32;
/// How many `include` statements are followed in all.
const MAX_INCLUDES: usize = 1_000;
/// How many errors are reported before giving up.
const MAX_ERRORS: usize = 100;

/// A procedure and the names that it sees.
struct Procedure {
    params: Vec<String>,
    body: Vec<Stmt>,
    limit: u32,
    file: u32,
}

/// Everything known while a model is read.
pub(super) struct Lowerer<'a> {
    signature: &'a Signature,
    includes: &'a dyn IncludeResolver,
    build: Builder,
    scope: Scope,
    library: LibraryScope,
    procedures: FxHashMap<String, Rc<Procedure>>,
    files: Vec<Arc<SourceFile>>,
    parsed: FxHashMap<u32, Rc<File>>,
    /// Files being read, outermost first.
    including: Vec<u32>,
    include_count: usize,
    diagnostics: Vec<Diagnostic>,
    reported: FxHashSet<(&'static str, u32, Span)>,
    free: Vec<FreeRel>,
    values: Option<(FreeId, Place)>,
    finals: Option<(FreeId, Place)>,
    axioms: Vec<Axiom>,
    flags: Vec<Axiom>,
    lets: Vec<(String, NodeId, Place)>,
    shows: Vec<(String, NodeId)>,
    options: Vec<(String, String)>,
    /// Parameters and definitions of the procedure being run; `None` outside procedures.
    procedure: Option<(u32, Vec<(String, Value)>)>,
    calls: Vec<CallSite>,
    memo: FxHashMap<(u32, Vec<NodeId>), Value>,
    functions: u32,
    depth: usize,
    steps: usize,
}

impl<'a> Lowerer<'a> {
    pub(super) fn new(signature: &'a Signature, includes: &'a dyn IncludeResolver, main: Arc<SourceFile>) -> Self {
        Lowerer {
            signature,
            includes,
            build: Builder::default(),
            scope: Scope::default(),
            library: LibraryScope::default(),
            procedures: FxHashMap::default(),
            files: vec![main],
            parsed: FxHashMap::default(),
            including: Vec::new(),
            include_count: 0,
            diagnostics: Vec::new(),
            reported: FxHashSet::default(),
            free: Vec::new(),
            values: None,
            finals: None,
            axioms: Vec::new(),
            flags: Vec::new(),
            lets: Vec::new(),
            shows: Vec::new(),
            options: Vec::new(),
            procedure: None,
            calls: Vec::new(),
            memo: FxHashMap::default(),
            functions: 0,
            depth: 0,
            steps: 0,
        }
    }

    /// Reads the library, the prelude if the model needs one, and the model.
    pub(super) fn run(mut self, name: &str, prelude: Option<&str>) -> Result<Model, Vec<Diagnostic>> {
        let main = self.parse_file(0);
        self.load_library();
        let mut seen = vec![0];
        let statements = self.reachable(&main, 0, &mut seen);
        let own_free = statements.iter().any(|f| declares_free(f));
        if !own_free {
            if !self.prelude(prelude) {
                return Err(self.diagnostics);
            }
            let rmw = statements.iter().any(|f| mentions(f, "rmw"));
            if !rmw && self.signature.options.iter().any(|o| o.name == "rmw") {
                // Published files that never speak of `rmw` take a read-modify-write for one event.
                self.options.push(("rmw".to_string(), "single".to_string()));
            }
        }
        self.file(0, &main);
        self.check_roles();
        if self.diagnostics.is_empty() { Ok(self.finish(name, &main)) } else { Err(self.diagnostics) }
    }

    /// Whether the main file or a file that it includes declares a free relation.
    pub(super) fn has_free(mut self) -> bool {
        let main = self.parse_file(0);
        let mut seen = vec![0];
        self.reachable(&main, 0, &mut seen).iter().any(|f| declares_free(f))
    }

    /// Reads the prelude; without one, whatever the model says of `rf` and `co` would be an error.
    fn prelude(&mut self, name: Option<&str>) -> bool {
        let names = Library::preludes();
        let start = Span::default();
        let Some(name) = name else {
            let list = names.join("`, `");
            self.report(
                Diagnostic::error("no-prelude", &self.files[0], start, "this model declares no free relation")
                    .help(format!("name the prelude that it takes for granted: `{list}`")),
                0,
            );
            return false;
        };
        match Library::prelude(name) {
            Some(source) => {
                let index = self.add_file(source);
                let tree = self.parse_file(index);
                self.file(index, &tree);
                true
            }
            None => {
                let list = names.join("`, `");
                let diagnostic = Diagnostic::plain("unknown-prelude", format!("there is no prelude `{name}`"))
                    .note(format!("there are `{list}`"))
                    .did_you_mean(name, names.iter().copied());
                self.report(diagnostic, 0);
                false
            }
        }
    }

    /// The standard library: its definitions wait until they are used, its procedures are at hand.
    fn load_library(&mut self) {
        let Some(source) = Library::file("stdlib.cat") else { return };
        let index = self.add_file(source);
        let tree = self.parse_file(index);
        self.library.file = Some(index);
        for statement in &tree.statements {
            match &statement.kind {
                StmtKind::Let { bindings, .. } => {
                    self.library.bindings.extend(bindings.iter().cloned().map(Rc::new))
                }
                StmtKind::Procedure(..) => self.statement(statement, index),
                _ => {}
            }
        }
    }

    // Files.

    /// The index of a file, which is added if it is new.
    fn add_file(&mut self, source: Arc<SourceFile>) -> u32 {
        match self.files.iter().position(|f| f.name == source.name && f.text == source.text) {
            Some(at) => at as u32,
            None => {
                self.files.push(source);
                self.files.len() as u32 - 1
            }
        }
    }

    /// The tree of a file; its syntax errors are reported the first time.
    fn parse_file(&mut self, index: u32) -> Rc<File> {
        if let Some(tree) = self.parsed.get(&index) {
            return tree.clone();
        }
        let (tree, diagnostics) = parse(&self.files[index as usize]);
        for diagnostic in diagnostics {
            self.report(diagnostic, index);
        }
        let tree = Rc::new(tree);
        self.parsed.insert(index, tree.clone());
        tree
    }

    /// A file and all that it includes; files that cannot be found are left out (running them reports it).
    fn reachable(&mut self, tree: &Rc<File>, index: u32, seen: &mut Vec<u32>) -> Vec<Rc<File>> {
        let mut list = vec![tree.clone()];
        if seen.len() > MAX_INCLUDES {
            return list;
        }
        let mut paths = Vec::new();
        each_statement(&tree.statements, &mut |s| {
            if let StmtKind::Include(path) = &s.kind {
                paths.push(path.clone());
            }
        });
        for path in paths {
            let Ok(Some(source)) = self.includes.resolve(&self.files[index as usize].clone(), &path) else {
                continue;
            };
            let included = self.add_file(source);
            if !seen.contains(&included) && seen.len() < MAX_INCLUDES {
                seen.push(included);
                let tree = self.parse_file(included);
                list.extend(self.reachable_once(&tree, included, seen));
            }
        }
        list
    }

    /// [`Self::reachable`], unless the chain of includes is too long (which running it reports).
    fn reachable_once(&mut self, tree: &Rc<File>, index: u32, seen: &mut Vec<u32>) -> Vec<Rc<File>> {
        if self.including.len() >= MAX_INCLUDE_DEPTH {
            return vec![tree.clone()];
        }
        self.including.push(index);
        let list = self.reachable(tree, index, seen);
        self.including.pop();
        list
    }

    fn file(&mut self, index: u32, tree: &File) {
        self.including.push(index);
        for statement in &tree.statements {
            if self.diagnostics.len() >= MAX_ERRORS {
                break;
            }
            self.statement(statement, index);
        }
        self.including.pop();
    }

    fn include(&mut self, path: &str, span: Span, file: u32) {
        let including = self.files[file as usize].clone();
        // The library is visible already.
        let found = self.includes.resolve(&including, path);
        let source = match found {
            Ok(Some(source)) => source,
            Ok(None) => {
                let shipped: Vec<String> = Library::names().iter().map(|n| format!("{n}.cat")).collect();
                let diagnostic =
                    Diagnostic::error("include-not-found", &including, span, format!("there is no file `{path}`"))
                        .label("neither beside this file nor among the shipped ones")
                        .did_you_mean(path, shipped.iter().map(String::as_str));
                return self.report(diagnostic, file);
            }
            Err(diagnostic) => return self.report(diagnostic.also_at(&including, span), file),
        };
        let index = self.add_file(source);
        if Some(index) == self.library.file {
            return;
        }
        let problem = if self.including.contains(&index) {
            Some(("include-cycle", format!("`{path}` includes itself")))
        } else if self.including.len() >= MAX_INCLUDE_DEPTH || self.include_count >= MAX_INCLUDES {
            Some(("too-many-includes", "too many includes".to_string()))
        } else {
            None
        };
        if let Some((id, message)) = problem {
            let chain: Vec<String> =
                self.including.iter().map(|&i| format!("`{}`", self.files[i as usize].name)).collect();
            let diagnostic = Diagnostic::error(id, &including, span, message)
                .label("included here")
                .note(format!("being read: {}", chain.join(", then ")));
            return self.report(diagnostic, file);
        }
        self.include_count += 1;
        let tree = self.parse_file(index);
        self.file(index, &tree);
    }

    // Statements.

    fn statement(&mut self, statement: &Stmt, file: u32) {
        let place = (file, statement.span);
        match &statement.kind {
            StmtKind::Let { recursive: false, bindings } => self.let_statement(bindings, file),
            StmtKind::Let { recursive: true, bindings } => self.let_rec(bindings, file),
            StmtKind::Free(decl) => self.free_statement(decl, file),
            StmtKind::Values(name) => self.role(name, file, true),
            StmtKind::Final(name) => self.role(name, file, false),
            StmtKind::Option(name, value) => self.option(name, value, file),
            StmtKind::Test(test) => self.test(test, place),
            StmtKind::Show(list) => self.show(list, file),
            StmtKind::Unshow(names) => self.shows.retain(|(n, _)| !names.iter().any(|u| u.name == *n)),
            StmtKind::ShowFlag(_) => {}
            StmtKind::Include(path) => self.include(path, statement.span, file),
            StmtKind::Procedure(name, params, body) => {
                let procedure = Procedure {
                    params: params.iter().map(|p| p.name.clone()).collect(),
                    body: body.clone(),
                    limit: self.scope.count(),
                    file,
                };
                self.procedures.insert(name.name.clone(), Rc::new(procedure));
            }
            StmtKind::Call(name, args) => self.call_procedure(name, args, file),
            StmtKind::With(name, expr) => self.with(name, expr, file),
            StmtKind::If(_, _, no) => {
                for statement in no {
                    self.statement(statement, file);
                }
            }
        }
    }

    /// The names visible to the next statement.
    fn env(&self, file: u32) -> Env {
        match &self.procedure {
            Some((limit, locals)) => Env { limit: *limit, library: None, locals: locals.clone(), file },
            None => Env { limit: self.scope.count(), library: None, locals: Vec::new(), file },
        }
    }

    fn let_statement(&mut self, bindings: &[super::ast::Binding], file: u32) {
        let values: Vec<Value> = bindings
            .iter()
            .map(|binding| {
                let mut env = self.env(file);
                self.binding(binding, &mut env)
            })
            .collect();
        for (binding, value) in bindings.iter().zip(values) {
            self.define(&binding.name, value, file);
        }
    }

    /// Makes a name visible to what follows, and to output.
    fn define(&mut self, name: &Ident, value: Value, file: u32) {
        let place = (file, name.span);
        let value = match value {
            Value::Node(node) => {
                self.build.name(node, &name.name);
                self.lets.push((name.name.clone(), node, place));
                Value::Node(node)
            }
            other => other,
        };
        match &mut self.procedure {
            Some((_, locals)) => locals.push((name.name.clone(), value)),
            None => self.scope.define(&name.name, value, Some(place)),
        }
    }

    fn option(&mut self, name: &Ident, value: &Ident, file: u32) {
        let source = self.files[file as usize].clone();
        let Some(spec) = self.signature.options.iter().find(|o| o.name == name.name) else {
            let names: Vec<&str> = self.signature.options.iter().map(|o| o.name).collect();
            let diagnostic = Diagnostic::error(
                "unknown-option",
                &source,
                name.span,
                format!("there is no option `{}`", name.name),
            )
            .note(format!("options are `{}`", names.join("`, `")))
            .did_you_mean(&name.name, names.iter().copied());
            return self.report(diagnostic, file);
        };
        if !spec.values.contains(&value.name.as_str()) {
            let diagnostic = Diagnostic::error(
                "unknown-option-value",
                &source,
                value.span,
                format!("option `{}` cannot be `{}`", name.name, value.name),
            )
            .note(format!("it can be `{}`", spec.values.join("`, `")))
            .did_you_mean(&value.name, spec.values.iter().copied());
            return self.report(diagnostic, file);
        }
        self.options.retain(|(n, _)| *n != name.name);
        self.options.push((name.name.clone(), value.name.clone()));
    }

    fn test(&mut self, test: &TestStmt, place: Place) {
        let mut env = self.env(place.0);
        let value = self.eval(&test.expr, &mut env);
        let node = match test.word {
            TestWord::Empty => self.node_of(value, &test.expr, &env),
            TestWord::Acyclic => self.relation_for(value, &test.expr, &env, "`acyclic` tests a relation"),
            TestWord::Irreflexive => self.relation_for(value, &test.expr, &env, "`irreflexive` tests a relation"),
        };
        let Some(node) = node else { return };
        let (kind, word) = match test.word {
            TestWord::Acyclic => (Test::Acyclic, "acyclic"),
            TestWord::Irreflexive => (Test::Irreflexive, "irreflexive"),
            TestWord::Empty => (Test::Empty, "empty"),
        };
        let (list, negated) = match test.role {
            TestRole::Axiom => (&mut self.axioms, test.negated),
            TestRole::Flag => (&mut self.flags, test.negated),
            TestRole::UndefinedUnless => (&mut self.flags, !test.negated),
        };
        let name = match &test.name {
            Some(name) => name.name.clone(),
            None => format!("{word}-{}", list.len() + 1),
        };
        list.push(Axiom { name, test: kind, negated, node, doc: test.doc.clone(), span: place });
    }

    fn show(&mut self, list: &[(Expr, Option<Ident>)], file: u32) {
        for (expr, name) in list {
            let mut env = self.env(file);
            let value = self.eval(expr, &mut env);
            let Some(node) = self.node_of(value, expr, &env) else { continue };
            let name = match name {
                Some(name) => name.name.clone(),
                None => self.files[file as usize].text[expr.span.range()].to_string(),
            };
            self.shows.retain(|(n, _)| *n != name);
            self.shows.push((name, node));
        }
    }

    fn call_procedure(&mut self, name: &Ident, args: &[Expr], file: u32) {
        let source = self.files[file as usize].clone();
        let Some(procedure) = self.procedures.get(&name.name).cloned() else {
            let mut names: Vec<&str> = self.procedures.keys().map(String::as_str).collect();
            names.sort_unstable();
            let diagnostic = Diagnostic::error(
                "unknown-name",
                &source,
                name.span,
                format!("there is no procedure `{}`", name.name),
            )
            .did_you_mean(&name.name, names);
            return self.report(diagnostic, file);
        };
        if args.len() != procedure.params.len() {
            let diagnostic = wrong_arity(&source, name, procedure.params.len(), args.len());
            return self.report(diagnostic, file);
        }
        if self.calls.len() >= expr::MAX_CALLS {
            let diagnostic =
                Diagnostic::error("too-many-calls", &source, name.span, "procedures call each other too deeply");
            return self.report(diagnostic, file);
        }
        let mut env = self.env(file);
        let values: Vec<Value> = args.iter().map(|a| self.eval(a, &mut env)).collect();
        let locals = procedure.params.iter().cloned().zip(values).collect();
        let outer = self.procedure.replace((procedure.limit, locals));
        self.calls.push(CallSite { name: name.name.clone(), file, span: name.span });
        for statement in &procedure.body {
            self.statement(statement, procedure.file);
        }
        self.calls.pop();
        self.procedure = outer;
    }

    // The end.

    fn finish(self, name: &str, main: &File) -> Model {
        let mut model = Model {
            name: name.to_string(),
            title: main.title.clone(),
            header: main.header.clone(),
            nodes: Vec::new(),
            groups: Vec::new(),
            free: Vec::new(),
            // Checked by `check_roles`; the fallback is never seen.
            values: self.values.map_or(FreeId(0), |v| v.0),
            finals: self.finals.map_or(FreeId(0), |f| f.0),
            axioms: self.axioms,
            flags: self.flags,
            lets: self.lets,
            shows: self.shows,
            options: self.options,
            files: self.files,
        };
        let mut free = self.free;
        let roots: Vec<NodeId> = model
            .axioms
            .iter()
            .chain(&model.flags)
            .map(|a| a.node)
            .chain(model.lets.iter().map(|l| l.1))
            .chain(model.shows.iter().map(|s| s.1))
            .chain(free.iter().flat_map(|f| [Some(f.within), f.containing, f.covering]).flatten())
            .collect();
        let mut placed = self.build.finish(&roots, &mut model).into_iter();
        let targets = model
            .axioms
            .iter_mut()
            .chain(&mut model.flags)
            .map(|a| &mut a.node)
            .chain(model.lets.iter_mut().map(|l| &mut l.1))
            .chain(model.shows.iter_mut().map(|s| &mut s.1))
            .chain(free.iter_mut().flat_map(|f| {
                [Some(&mut f.within), f.containing.as_mut(), f.covering.as_mut()].into_iter().flatten()
            }));
        for (target, node) in targets.zip(&mut placed) {
            *target = node;
        }
        model.free = free;
        model
    }

    /// Keeps a diagnostic unless the same was reported at the same place.
    fn report(&mut self, mut diagnostic: Diagnostic, file: u32) {
        if self.diagnostics.len() >= MAX_ERRORS || !self.reported.insert((diagnostic.id, file, diagnostic.span)) {
            return;
        }
        for call in self.calls.iter().rev().take(3) {
            let source = &self.files[call.file as usize];
            let (line, column) = source.line_column(call.span.start as usize);
            diagnostic =
                diagnostic.note(format!("in the call of `{}` at {}:{line}:{column}", call.name, source.name));
        }
        self.diagnostics.push(diagnostic);
        if self.diagnostics.len() == MAX_ERRORS {
            self.diagnostics
                .push(Diagnostic::plain("too-many-errors", format!("gave up after {MAX_ERRORS} errors")));
        }
    }

    fn new_function(&mut self, name: &str, body: FunctionBody, env: Env) -> Value {
        self.functions += 1;
        Value::Function(Rc::new(Function { id: self.functions, name: name.to_string(), body, env }))
    }

    /// A base set of the skeleton, whatever the model calls by its name.
    fn base_set(&mut self, name: &str) -> NodeId {
        self.build.base(name, Kind::Set)
    }
}

impl Diagnostic {
    /// Attributes a message about a file to the statement that asked for the file.
    fn also_at(mut self, source: &Arc<SourceFile>, span: Span) -> Diagnostic {
        if self.source.is_none() {
            self.source = Some(source.clone());
            self.span = span;
        }
        self
    }
}

fn wrong_arity(source: &Arc<SourceFile>, name: &Ident, wanted: usize, given: usize) -> Diagnostic {
    let arguments = |n: usize| if n == 1 { "1 argument".to_string() } else { format!("{n} arguments") };
    Diagnostic::error(
        "wrong-arity",
        source,
        name.span,
        format!("`{}` takes {}, {} given", name.name, arguments(wanted), given),
    )
}

/// Calls `visit` on all statements, those inside others included.
fn each_statement(statements: &[Stmt], visit: &mut dyn FnMut(&Stmt)) {
    for statement in statements {
        visit(statement);
        match &statement.kind {
            StmtKind::Procedure(_, _, body) => each_statement(body, visit),
            StmtKind::If(_, yes, no) => {
                each_statement(yes, visit);
                each_statement(no, visit);
            }
            _ => {}
        }
    }
}

fn declares_free(file: &File) -> bool {
    let mut found = false;
    each_statement(&file.statements, &mut |s| found |= matches!(s.kind, StmtKind::Free(_)));
    found
}

/// Whether an expression of the file uses the name.
fn mentions(file: &File, name: &str) -> bool {
    let mut found = false;
    let mut visit = |e: &Expr| {
        e.walk(&mut |e| {
            found |= matches!(&e.kind, super::ast::ExprKind::Name(n) if n == name);
            !found
        });
    };
    each_statement(&file.statements, &mut |s| match &s.kind {
        StmtKind::Let { bindings, .. } => bindings.iter().for_each(|b| visit(&b.body)),
        StmtKind::Test(test) => visit(&test.expr),
        StmtKind::Show(list) => list.iter().for_each(|(e, _)| visit(e)),
        StmtKind::Call(_, args) => args.iter().for_each(&mut visit),
        StmtKind::With(_, e) => visit(e),
        _ => {}
    });
    found
}
