//! Lowers syntax trees to the relational IR: files and statements. [`expr`] lowers expressions,
//! [`recursion`] `let rec`, and [`free`] free relations, roles and `with … from`.
//!
//! # Invariants
//! - Every error of a model is reported once; a model is built only if there are no errors.
//! - Functions and procedures are inlined at each use. The finished table keeps names only for
//!   output.
//! - Every definition, used or not, is a root of the table, so output can show it.
//!
//! # Where we differ
//! - herd's variants (`if "name" …`) are never set: lowering takes the `else` branch.
//! - A definition whose right-hand side uses an unsupported construct is an error only at its uses.
//!   herd's libraries define many things that no axiom needs.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::ast::{CatExpr, CatStmt, CatStmtKind, Ident, ModelFile, TestRole, TestStmt, TestWord};
use super::build::{Place, TableBuilder};
use super::ir::{Axiom, EFFECTS, FreeId, FreeRel, Kind, Model, NodeId, Test, TestEffect};
use super::library::IncludeResolver;
use super::part::{ClauseOccurrence, ClausePart, ClauseRemoval};
use super::resolve::{
    CallSite, DefinitionScope, FunctionBody, LibraryScope, ModelFunction, NameEnv, NameValue,
};
use super::signature::{OptionValue, Signature};
use super::words::notes;
use diag::{Diagnostic, SourceFile, Span};

mod expr;
mod files;
mod free;
mod kinds;
mod names;
mod recursion;

/// The limit on reported errors.
const MAX_ERRORS: usize = 100;

/// A procedure and the names visible in it.
struct Procedure {
    params: Vec<String>,
    body: Vec<CatStmt>,
    limit: u32,
    file: u32,
}

/// The trees of a model's files.
pub(super) type Trees = FxHashMap<u32, Rc<ModelFile>>;

/// The state of reading a model.
pub(super) struct Lowerer<'a> {
    signature: &'a Signature,
    includes: &'a dyn IncludeResolver,
    build: TableBuilder,
    scope: DefinitionScope,
    library: LibraryScope,
    procedures: FxHashMap<String, Rc<Procedure>>,
    files: Vec<Arc<SourceFile>>,
    parsed: Trees,
    /// Files being read, outermost first.
    including: Vec<u32>,
    include_count: usize,
    diagnostics: Vec<Diagnostic>,
    reported: FxHashSet<(&'static str, u32, Span)>,
    free: Vec<FreeRel>,
    values: Option<(FreeId, Place)>,
    finals: Option<(FreeId, Place)>,
    /// The relations that the model will declare as `values` and `final`.
    named_values: Option<String>,
    named_final: Option<String>,
    axioms: Vec<Axiom>,
    flags: Vec<Axiom>,
    lets: Vec<(String, NodeId, Place)>,
    shows: Vec<(String, NodeId)>,
    options: Vec<OptionValue>,
    /// Parameters and definitions of the procedure being run; `None` outside procedures.
    procedure: Option<(u32, Vec<(String, NameValue)>)>,
    calls: Vec<CallSite>,
    memo: FxHashMap<(u32, Vec<NodeId>), NameValue>,
    functions: u32,
    depth: usize,
    steps: usize,
    /// The clauses met so far, if the caller needs them.
    pub(super) met: Option<Vec<ClauseOccurrence>>,
    /// The clause to leave out.
    pub(super) gone: Option<ClauseRemoval>,
}

impl<'a> Lowerer<'a> {
    pub(super) fn new(
        signature: &'a Signature,
        includes: &'a dyn IncludeResolver,
        main: Arc<SourceFile>,
    ) -> Self {
        Lowerer {
            signature,
            includes,
            build: TableBuilder::default(),
            scope: DefinitionScope::default(),
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
            named_values: None,
            named_final: None,
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
            met: None,
            gone: None,
        }
    }

    /// Reads the library, the prelude if the model needs one, and the model.
    pub(super) fn run(self, name: &str, prelude: Option<&str>) -> Result<Model, Vec<Diagnostic>> {
        self.run_with_clauses(name, prelude)
            .map(|(model, ..)| model)
    }

    /// The same, with the clauses and the trees of the files.
    pub(super) fn run_with_clauses(
        mut self,
        name: &str,
        prelude: Option<&str>,
    ) -> Result<(Model, Vec<ClauseOccurrence>, Trees), Vec<Diagnostic>> {
        let main = self.parse_file(0);
        self.load_library();
        let mut seen = vec![0];
        let statements = self.reachable(&main, 0, &mut seen);
        let own_free = statements.iter().any(|f| declares_free(f));
        if !own_free {
            if !self.prelude(prelude) {
                return Err(self.diagnostics);
            }
            for (option, spec) in self.signature.options.iter().enumerate() {
                if spec
                    .unspoken
                    .is_some_and(|name| !statements.iter().any(|f| mentions(f, name)))
                {
                    self.options.push((option, spec.values.len() - 1));
                }
            }
        }
        for file in &statements {
            each_statement(&file.statements, &mut |s| match &s.kind {
                CatStmtKind::Values(name) => self.named_values = Some(name.name.clone()),
                CatStmtKind::Final(name) => self.named_final = Some(name.name.clone()),
                _ => {}
            });
        }
        self.file(0, &main);
        self.check_roles();
        if !self.diagnostics.is_empty() {
            return Err(self.diagnostics);
        }
        let trees = std::mem::take(&mut self.parsed);
        let (model, met) = self.finish(name, &main);
        Ok((model, met, trees))
    }

    /// Whether the main file or a file that it includes declares a free relation.
    pub(super) fn has_free(mut self) -> bool {
        let main = self.parse_file(0);
        let mut seen = vec![0];
        self.reachable(&main, 0, &mut seen)
            .iter()
            .any(|f| declares_free(f))
    }

    // Statements.

    fn statement(&mut self, statement: &CatStmt, file: u32) {
        let place = (file, statement.span);
        match &statement.kind {
            CatStmtKind::Let {
                recursive: false,
                bindings,
            } => self.let_statement(bindings, file),
            CatStmtKind::Let {
                recursive: true,
                bindings,
            } => self.let_rec(bindings, file),
            CatStmtKind::Free(decl) => self.free_statement(decl, file),
            CatStmtKind::Values(name) => self.role(name, file, true),
            CatStmtKind::Final(name) => self.role(name, file, false),
            CatStmtKind::Option(name, value) => self.option(name, value, file),
            CatStmtKind::Test(test) => self.test(test, place),
            CatStmtKind::Show(list) => self.show(list, file),
            CatStmtKind::Unshow(names) => self
                .shows
                .retain(|(n, _)| !names.iter().any(|u| u.name == *n)),
            CatStmtKind::ShowFlag(_) => {}
            CatStmtKind::Include(path) => self.include(path, statement.span, file),
            CatStmtKind::Procedure(name, params, body) => {
                let procedure = Procedure {
                    params: params.iter().map(|p| p.name.clone()).collect(),
                    body: body.clone(),
                    limit: self.scope.count(),
                    file,
                };
                self.procedures
                    .insert(name.name.clone(), Rc::new(procedure));
            }
            CatStmtKind::Call(name, args) => self.call_procedure(name, args, file),
            CatStmtKind::With(name, expr) => self.with(name, expr, file),
            CatStmtKind::If(_, _, no) => {
                for statement in no {
                    self.statement(statement, file);
                }
            }
        }
    }

    /// The names visible to the next statement.
    fn env(&self, file: u32) -> NameEnv {
        match &self.procedure {
            Some((limit, locals)) => NameEnv {
                limit: *limit,
                library: None,
                locals: locals.clone(),
                file,
            },
            None => NameEnv {
                limit: self.scope.count(),
                library: None,
                locals: Vec::new(),
                file,
            },
        }
    }

    fn let_statement(&mut self, bindings: &[super::ast::LetBinding], file: u32) {
        let values: Vec<NameValue> = bindings
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

    /// Makes a name visible to later statements and to output.
    fn define(&mut self, name: &Ident, value: NameValue, file: u32) {
        let place = (file, name.span);
        let value = match value {
            NameValue::Node(node) => {
                self.build.name(node, &name.name);
                self.lets.push((name.name.clone(), node, place));
                NameValue::Node(node)
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
        let Some(option) = self
            .signature
            .options
            .iter()
            .position(|o| o.name == name.name)
        else {
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
        let spec = &self.signature.options[option];
        let Some(at) = spec.values.iter().position(|v| *v == value.name) else {
            let diagnostic = Diagnostic::error(
                "unknown-option-value",
                &source,
                value.span,
                format!("option `{}` cannot be `{}`", name.name, value.name),
            )
            .note(format!("it can be `{}`", spec.values.join("`, `")))
            .did_you_mean(&value.name, spec.values.iter().copied());
            return self.report(diagnostic, file);
        };
        for other in (0..spec.values.len()).filter(|other| *other != at) {
            self.meet((file, value.span), ClausePart::Option(other), None);
        }
        let gone = self.gone.filter(|gone| gone.is_at(file, value.span));
        let at = gone.and_then(|gone| gone.value()).unwrap_or(at);
        self.options.retain(|&(o, _)| o != option);
        self.options.push((option, at));
    }

    fn test(&mut self, test: &TestStmt, place: Place) {
        if let Some(word) = test
            .means
            .as_ref()
            .filter(|w| TestEffect::read(&w.name).is_none())
        {
            let source = self.files[place.0 as usize].clone();
            let message = format!("a flag cannot mean `{}`", word.name);
            let words = EFFECTS.map(|(word, _)| word);
            let diagnostic = Diagnostic::error("unknown-meaning", &source, word.span, message)
                .note(format!("it can mean `{}`", words.join("`, `")))
                .did_you_mean(&word.name, words);
            self.report(diagnostic, place.0);
        }
        let mut env = self.env(place.0);
        let value = self.eval(&test.expr, &mut env);
        let node = match test.word {
            TestWord::Empty => self.node_of(value, &test.expr, &env),
            TestWord::Acyclic => {
                self.relation_for(value, &test.expr, &env, "`acyclic` tests a relation")
            }
            TestWord::Irreflexive => {
                self.relation_for(value, &test.expr, &env, "`irreflexive` tests a relation")
            }
        };
        let Some(node) = node else { return };
        let (kind, word) = match test.word {
            TestWord::Acyclic => (Test::Acyclic, "acyclic"),
            TestWord::Irreflexive => (Test::Irreflexive, "irreflexive"),
            TestWord::Empty => (Test::Empty, "empty"),
        };
        let (list, negated) = match test.role {
            TestRole::Axiom => (&self.axioms, test.negated),
            TestRole::Flag => (&self.flags, test.negated),
            TestRole::UndefinedUnless => (&self.flags, !test.negated),
        };
        let number = list.len();
        let effect = match (test.role, &test.means, &test.name) {
            (TestRole::Axiom, ..) => TestEffect::Rejects,
            (_, Some(word), _) => TestEffect::read(&word.name).unwrap_or(TestEffect::Undefined),
            (_, None, name) => TestEffect::of_published(name.as_ref().map_or("", |n| &n.name)),
        };
        let name = match &test.name {
            Some(name) => name.name.clone(),
            None => format!("{word}-{}", number + 1),
        };
        let part = if effect == TestEffect::Rejects {
            ClausePart::Axiom(number)
        } else {
            ClausePart::Flag(number)
        };
        if !self.meet(place, part, None) {
            return;
        }
        let list = if effect == TestEffect::Rejects {
            &mut self.axioms
        } else {
            &mut self.flags
        };
        list.push(Axiom {
            name,
            test: kind,
            negated,
            effect,
            node,
            doc: test.doc.clone(),
            span: place,
        });
    }

    fn show(&mut self, list: &[(CatExpr, Option<Ident>)], file: u32) {
        for (expr, name) in list {
            let mut env = self.env(file);
            let value = self.eval(expr, &mut env);
            let Some(node) = self.node_of(value, expr, &env) else {
                continue;
            };
            let name = match name {
                Some(name) => name.name.clone(),
                None => self.files[file as usize].text[expr.span.range()].to_string(),
            };
            self.shows.retain(|(n, _)| *n != name);
            self.shows.push((name, node));
        }
    }

    fn call_procedure(&mut self, name: &Ident, args: &[CatExpr], file: u32) {
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
            let diagnostic = Diagnostic::error(
                "too-many-calls",
                &source,
                name.span,
                "procedures call each other too deeply",
            );
            return self.report(diagnostic, file);
        }
        let mut env = self.env(file);
        let values: Vec<NameValue> = args.iter().map(|a| self.eval(a, &mut env)).collect();
        let locals = procedure.params.iter().cloned().zip(values).collect();
        let outer = self.procedure.replace((procedure.limit, locals));
        self.calls.push(CallSite {
            name: name.name.clone(),
            file,
            span: name.span,
        });
        for statement in &procedure.body {
            self.statement(statement, procedure.file);
        }
        self.calls.pop();
        self.procedure = outer;
    }

    // The end.

    fn finish(self, name: &str, main: &ModelFile) -> (Model, Vec<ClauseOccurrence>) {
        let mut met = self.met.unwrap_or_default();
        // The library's clauses do not belong to the model.
        met.retain(|m| Some(m.place.0) != self.library.file);
        let mut model = Model {
            name: name.to_string(),
            language: main
                .head
                .iter()
                .find(|word| !word.starts_with('"'))
                .cloned()
                .unwrap_or_default(),
            title: main.title.clone(),
            header: main.header.clone(),
            nodes: Vec::new(),
            groups: Vec::new(),
            free: Vec::new(),
            // `check_roles` has checked these; the fallback never appears.
            values: self.values.map_or(FreeId(0), |v| v.0),
            finals: self.finals.map_or(FreeId(0), |f| f.0),
            axioms: self.axioms,
            flags: self.flags,
            lets: self.lets,
            shows: self.shows,
            drawn: drawn(&self.files),
            options: self.options,
            signature: self.signature.clone(),
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
            .chain(
                free.iter()
                    .flat_map(|f| [Some(f.within), f.containing, f.covering])
                    .flatten(),
            )
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
                [
                    Some(&mut f.within),
                    f.containing.as_mut(),
                    f.covering.as_mut(),
                ]
                .into_iter()
                .flatten()
            }));
        for (target, node) in targets.zip(&mut placed) {
            *target = node;
        }
        model.free = free;
        (model, met)
    }

    /// Records a clause; returns whether it stays.
    fn meet(&mut self, place: Place, part: ClausePart, text: Option<&CatExpr>) -> bool {
        if let Some(met) = &mut self.met {
            met.push(ClauseOccurrence {
                place,
                part,
                text: text.map_or(String::new(), super::print::expr),
            });
        }
        !self.is_gone(place)
    }

    fn is_gone(&self, (file, span): Place) -> bool {
        self.gone
            .as_ref()
            .is_some_and(|gone| gone.is_at(file, span))
    }

    /// Records a diagnostic, unless the same one was reported at the same span.
    fn report(&mut self, mut diagnostic: Diagnostic, file: u32) {
        if self.diagnostics.len() >= MAX_ERRORS
            || !self.reported.insert((diagnostic.id, file, diagnostic.span))
        {
            return;
        }
        for call in self.calls.iter().rev().take(3) {
            let source = &self.files[call.file as usize];
            let (line, column) = source.line_column(call.span.start as usize);
            diagnostic = diagnostic.note(format!(
                "in the call of `{}` at {}:{line}:{column}",
                call.name, source.name
            ));
        }
        self.diagnostics.push(diagnostic);
        if self.diagnostics.len() == MAX_ERRORS {
            self.diagnostics.push(Diagnostic::plain(
                "too-many-errors",
                format!("gave up after {MAX_ERRORS} errors"),
            ));
        }
    }

    fn new_function(&mut self, name: &str, body: FunctionBody, env: NameEnv) -> NameValue {
        self.functions += 1;
        NameValue::Function(Rc::new(ModelFunction {
            id: self.functions,
            name: name.to_string(),
            body,
            env,
        }))
    }

    /// A base set of the skeleton, even if the model shadows its name.
    ///
    /// # Panics
    /// If the signature lacks it: every signature has the names that the language uses.
    fn base(&mut self, name: &str, kind: Kind) -> NodeId {
        let id = self
            .signature
            .find(name)
            .expect("the language speaks of it");
        self.build.base(id, kind)
    }
}

/// The drawing styles in the texts, as pairs of relation name and style; file by file.
fn drawn(files: &[Arc<SourceFile>]) -> Vec<(String, String)> {
    files
        .iter()
        .flat_map(|file| notes(std::slice::from_ref(file), "Drawn as:"))
        .flat_map(|(style, names)| -> Vec<(String, String)> {
            names
                .split(", ")
                .map(|name| (name.to_owned(), style.clone()))
                .collect()
        })
        .collect()
}

fn wrong_arity(source: &Arc<SourceFile>, name: &Ident, wanted: usize, given: usize) -> Diagnostic {
    fn arguments(n: usize) -> String {
        if n == 1 {
            "1 argument".to_string()
        } else {
            format!("{n} arguments")
        }
    }
    Diagnostic::error(
        "wrong-arity",
        source,
        name.span,
        format!(
            "`{}` takes {}, {} given",
            name.name,
            arguments(wanted),
            given
        ),
    )
}

/// Calls `visit` on all statements, including nested ones.
fn each_statement(statements: &[CatStmt], visit: &mut dyn FnMut(&CatStmt)) {
    for statement in statements {
        visit(statement);
        match &statement.kind {
            CatStmtKind::Procedure(_, _, body) => each_statement(body, visit),
            CatStmtKind::If(_, yes, no) => {
                each_statement(yes, visit);
                each_statement(no, visit);
            }
            _ => {}
        }
    }
}

fn declares_free(file: &ModelFile) -> bool {
    let mut found = false;
    each_statement(&file.statements, &mut |s| {
        found |= matches!(s.kind, CatStmtKind::Free(_))
    });
    found
}

/// Whether an expression of the file uses the name.
fn mentions(file: &ModelFile, name: &str) -> bool {
    let mut found = false;
    let mut visit = |e: &CatExpr| {
        e.walk(&mut |e| {
            found |= matches!(&e.kind, super::ast::CatExprKind::Name(n) if n == name);
            !found
        });
    };
    each_statement(&file.statements, &mut |s| match &s.kind {
        CatStmtKind::Let { bindings, .. } => bindings.iter().for_each(|b| visit(&b.body)),
        CatStmtKind::Test(test) => visit(&test.expr),
        CatStmtKind::Show(list) => list.iter().for_each(|(e, _)| visit(e)),
        CatStmtKind::Call(_, args) => args.iter().for_each(&mut visit),
        CatStmtKind::With(_, e) => visit(e),
        _ => {}
    });
    found
}
