//! Reads files: the prelude, the library and includes.
//!
//! # Invariants
//! - A file is parsed once and executed at each `include`, as in herd. Cycles and overlong chains
//!   are errors.

use std::rc::Rc;
use std::sync::Arc;

use super::super::ast::{CatStmtKind, ModelFile};
use super::super::library::Library;
use super::super::parse::parse;
use super::{Lowerer, MAX_ERRORS, each_statement};
use diag::{Diagnostic, SourceFile, Span};

/// The limit on nested includes.
const MAX_INCLUDE_DEPTH: usize = 32;
/// The limit on `include` statements in total.
const MAX_INCLUDES: usize = 1_000;

impl Lowerer<'_> {
    /// Reads the prelude; without one, every use of `rf` and `co` in the model would be an error.
    pub(super) fn prelude(&mut self, name: Option<&str>) -> bool {
        let names = Library::preludes();
        let start = Span::default();
        let Some(name) = name else {
            let list = names.join("`, `");
            self.report(
                Diagnostic::error(
                    "no-prelude",
                    &self.files[0],
                    start,
                    "this model declares no free relation",
                )
                .help(format!(
                    "name the prelude that it takes for granted: `{list}`"
                )),
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
                let diagnostic =
                    Diagnostic::plain("unknown-prelude", format!("there is no prelude `{name}`"))
                        .note(format!("there are `{list}`"))
                        .did_you_mean(name, names.iter().copied());
                self.report(diagnostic, 0);
                false
            }
        }
    }

    /// Loads the standard library: its definitions wait until they are used; its procedures are
    /// available at once.
    pub(super) fn load_library(&mut self) {
        let Some(source) = Library::file("stdlib.cat") else {
            return;
        };
        let index = self.add_file(source);
        let tree = self.parse_file(index);
        self.library.file = Some(index);
        for statement in &tree.statements {
            match &statement.kind {
                CatStmtKind::Let { bindings, .. } => self
                    .library
                    .bindings
                    .extend(bindings.iter().cloned().map(Rc::new)),
                CatStmtKind::Procedure(..) => self.statement(statement, index),
                _ => {}
            }
        }
    }

    /// The index of a file, adding it if it is new.
    fn add_file(&mut self, source: Arc<SourceFile>) -> u32 {
        match self.files.iter().position(|f| *f == source) {
            Some(at) => at as u32,
            None => {
                self.files.push(source);
                self.files.len() as u32 - 1
            }
        }
    }

    /// The tree of a file; its syntax errors are reported the first time.
    pub(super) fn parse_file(&mut self, index: u32) -> Rc<ModelFile> {
        if let Some(tree) = self.parsed.get(&index) {
            return tree.clone();
        }
        let (tree, diagnostics) = parse(&self.files[index as usize]);
        // Each diagnostic quotes a line. If a file is not a model at all, one diagnostic is enough.
        let quoted = if tree.statements.is_empty() {
            1
        } else {
            diagnostics.len()
        };
        for diagnostic in diagnostics.into_iter().take(quoted) {
            self.report(diagnostic, index);
        }
        let tree = Rc::new(tree);
        self.parsed.insert(index, tree.clone());
        tree
    }

    /// A file and all its includes. Missing files are skipped here; executing the include reports
    /// them.
    pub(super) fn reachable(
        &mut self,
        tree: &Rc<ModelFile>,
        index: u32,
        seen: &mut Vec<u32>,
    ) -> Vec<Rc<ModelFile>> {
        let mut list = vec![tree.clone()];
        if seen.len() > MAX_INCLUDES {
            return list;
        }
        let mut paths = Vec::new();
        each_statement(&tree.statements, &mut |s| {
            if let CatStmtKind::Include(path) = &s.kind {
                paths.push(path.clone());
            }
        });
        for path in paths {
            let Ok(Some(source)) = self
                .includes
                .resolve(&self.files[index as usize].clone(), &path)
            else {
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

    /// [`Self::reachable`], unless the chain of includes is too long. Executing it reports that.
    fn reachable_once(
        &mut self,
        tree: &Rc<ModelFile>,
        index: u32,
        seen: &mut Vec<u32>,
    ) -> Vec<Rc<ModelFile>> {
        if self.including.len() >= MAX_INCLUDE_DEPTH {
            return vec![tree.clone()];
        }
        self.including.push(index);
        let list = self.reachable(tree, index, seen);
        self.including.pop();
        list
    }

    pub(super) fn file(&mut self, index: u32, tree: &ModelFile) {
        self.including.push(index);
        for statement in &tree.statements {
            if self.diagnostics.len() >= MAX_ERRORS {
                break;
            }
            self.statement(statement, index);
        }
        self.including.pop();
    }

    pub(super) fn include(&mut self, path: &str, span: Span, file: u32) {
        let including = self.files[file as usize].clone();
        // Every model sees the library already.
        let found = self.includes.resolve(&including, path);
        let source = match found {
            Ok(Some(source)) => source,
            Ok(None) => {
                let shipped: Vec<String> = Library::names()
                    .iter()
                    .map(|n| format!("{n}.cat"))
                    .collect();
                let diagnostic = Diagnostic::error(
                    "include-not-found",
                    &including,
                    span,
                    format!("there is no file `{path}`"),
                )
                .label("looked in the folder of this file and among the shipped files")
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
            let chain: Vec<String> = self
                .including
                .iter()
                .map(|&i| format!("`{}`", self.files[i as usize].name))
                .collect();
            let diagnostic = Diagnostic::error(id, &including, span, message)
                .label("included here")
                .note(format!("being read: {}", chain.join(", then ")));
            return self.report(diagnostic, file);
        }
        self.include_count += 1;
        let tree = self.parse_file(index);
        self.file(index, &tree);
    }
}
