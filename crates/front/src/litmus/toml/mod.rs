//! The TOML test format: one test per file, or a template for several.
//!
//! # Invariants
//! - Every key is in [`super::keys`]; everything else is rejected.
//! - Every diagnostic points at the exact text it is about, also inside strings.
//! - All errors of a file are reported at once; a file with a TOML syntax error is not read
//!   further.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};
use indexmap::IndexMap;

use super::build::{build, build_clike};
use super::condition::{self, Resolver, Unknown};
use super::fronts::{Front, Syntax, dialects};
use super::keys;
use super::reading::{Form, Reading, of_two};
use crate::document::{self, Value, span_of};
use crate::isa::clike::{ClikeCode, WarpMapping};
use crate::isa::ptx::PtxEnv;
use diag::{MappedText, Sink, Span, one_line};
use program::litmus::{LitmusTest, MAX_BOUND, Prop, Quantifier};
use program::options::{OPTIONS, OptionRow, Setting};

mod clike;
mod cuda;
mod expect;
mod fields;
mod host;
mod matrix;
mod memory;
mod range;
mod run;
mod strings;
pub(super) mod target;
pub(super) mod template;
mod tensors;
mod threads;

pub(super) use memory::{UNKNOWN, is_identifier};
use strings::map_string;
use template::{Template, TemplateChoice};
pub(super) use tensors::tensor_shape;

/// Reads the tests of a TOML file. With `only`, reads the test of that name alone: keys that only
/// other tests use are not reported, and matrices are skipped.
pub(super) fn read(sink: &mut Sink, only: Option<&str>) -> Vec<LitmusTest> {
    read_as(sink, only, Reading::Exact)
}

/// The same, with the kernel launched as `reading` says.
pub(super) fn read_as(sink: &mut Sink, only: Option<&str>, reading: Reading) -> Vec<LitmusTest> {
    let file = sink.file().clone();
    let Some(document) = document::parse(&file.text, sink) else {
        return Vec::new();
    };
    let root = document.get_ref();
    document::table(root, file.top(), keys::TEST, None, "a test", sink);
    if only.is_none() {
        allow(root, sink);
    }
    let template = Template::new(root, &file.text, sink);
    let choices = template.choices(sink);
    let matrices = match only {
        None => matrix::read(root, &template, &file.text, sink),
        Some(_) => Vec::new(),
    };
    let mut reader = TestReader {
        file: &file.text,
        root,
        made: None,
        template,
        sink,
        reading,
    };
    let mut tests = Vec::new();
    let mut names: HashMap<String, Span> = HashMap::new();
    for choice in &choices {
        if only.is_some_and(|only| reader.name(choice).is_none_or(|(name, _)| name != only)) {
            continue;
        }
        let Some((mut test, span)) = reader.test(choice) else {
            continue;
        };
        for m in &matrices {
            m.apply(choice, &mut test.expect);
        }
        reader.check_expectations(&test);
        if let Some(first) = names.insert(test.name.clone(), span) {
            let message = format!("two tests of this file are called `{}`", test.name);
            reader.sink.error("duplicate-name", span, message, |d| {
                let d = d.label("expected a name that differs between tests");
                if first == span {
                    d
                } else {
                    d.also(first, "the first one")
                }
            });
        }
        tests.push(test);
        if only.is_some() {
            break;
        }
    }
    let TestReader { template, sink, .. } = reader;
    if only.is_none() {
        template.report_unused(sink);
    }
    tests
}

/// A test whose document was made of a source file: the document stands for places of the file,
/// and the code is the file's.
pub(in crate::litmus) struct SourceTest<'a> {
    /// The document without the code.
    pub(in crate::litmus) head: &'a MappedText,
    /// The code.
    pub(in crate::litmus) code: FileCode,
}

/// Allows the warnings that a whole file names.
fn allow(root: &DeTable<'_>, sink: &mut Sink) {
    let named = root
        .get("allow")
        .and_then(|value| value.get_ref().as_array());
    for item in named.into_iter().flatten() {
        if let Some(id) = item.get_ref().as_str() {
            sink.allow(id, span_of(item));
        }
    }
}

/// The code of a kernel of a source file.
pub(in crate::litmus) enum FileCode {
    /// In a C-like language, parsed.
    C(Rc<ClikeCode>),
    /// In PTX.
    Ptx(MappedText),
    /// A whole program.
    Program(ProgramCode),
}

/// The code of a program with its host, in the order of the document.
pub(in crate::litmus) struct ProgramCode {
    pub(in crate::litmus) kernels: Vec<Rc<ClikeCode>>,
    pub(in crate::litmus) functions: Vec<MappedText>,
    pub(in crate::litmus) threads: Vec<MappedText>,
}

/// Reads a test that was made of the file of `sink`.
pub(in crate::litmus) fn read_made(made: &SourceTest<'_>, sink: &mut Sink) -> Option<LitmusTest> {
    read_made_as(made, Reading::Exact, sink)
}

/// Reads it with another launch, if `reading` says so.
pub(in crate::litmus) fn read_made_as(
    made: &SourceTest<'_>,
    reading: Reading,
    sink: &mut Sink,
) -> Option<LitmusTest> {
    made_by(made, reading, sink, |reader| {
        reader
            .test(&TemplateChoice::default())
            .map(|(test, _)| test)
    })
}

/// Reads it with the thread's place in registers.
pub(in crate::litmus) fn form_made(made: &SourceTest<'_>, sink: &mut Sink) -> Option<Form> {
    made_by(made, Reading::Form, sink, |reader| {
        let root = reader.root;
        let kernel = root.get("kernel").and_then(|v| v.get_ref().as_table())?;
        reader.form(kernel, &TemplateChoice::default())
    })
}

fn made_by<T>(
    made: &SourceTest<'_>,
    reading: Reading,
    sink: &mut Sink,
    read: impl FnOnce(&mut TestReader<'_, '_>) -> Option<T>,
) -> Option<T> {
    let (parsed, errors) = DeTable::parse_recoverable(made.head.as_str());
    debug_assert!(errors.is_empty(), "{errors:?} in {}", made.head.as_str());
    let root = placed_table(parsed.into_inner(), made.head);
    document::table(&root, Span::default(), keys::TEST, None, "a test", sink);
    let file = sink.file().clone();
    let template = Template::new(&root, &file.text, sink);
    let mut reader = TestReader {
        file: &file.text,
        root: &root,
        made: Some(made),
        template,
        sink,
        reading,
    };
    read(&mut reader)
}

/// A table whose spans are the places that a text stands for.
fn placed_table<'t>(table: DeTable<'t>, text: &MappedText) -> DeTable<'t> {
    let at = |range: Range<usize>| text.span(range).range();
    let entries = table.into_iter().map(|(key, value)| {
        let range = at(key.span());
        (Spanned::new(range, key.into_inner()), placed(value, text))
    });
    entries.collect()
}

fn placed<'t>(value: Value<'t>, text: &MappedText) -> Value<'t> {
    let range = text.span(value.span()).range();
    let inner = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(placed_table(table, text)),
        DeValue::Array(items) => {
            DeValue::Array(items.into_iter().map(|item| placed(item, text)).collect())
        }
        other => other,
    };
    Spanned::new(range, inner)
}

/// Reads the kernels of a TOML file with the thread's place in registers.
pub(super) fn forms(sink: &mut Sink) -> Vec<Form> {
    let file = sink.file().clone();
    let Some(document) = document::parse(&file.text, sink) else {
        return Vec::new();
    };
    let root = document.get_ref();
    let kernel = root.get("kernel").and_then(|v| v.get_ref().as_table());
    let alone = !["thread", "host"].iter().any(|key| root.contains_key(*key));
    let Some(kernel) = kernel.filter(|_| alone) else {
        return Vec::new();
    };
    document::table(root, file.top(), keys::TEST, None, "a test", sink);
    if let Some(value) = kernel.get("cluster") {
        sink.error(
            "unsupported-cluster",
            span_of(value),
            "clusters have a launch",
            |d| d.label("expected no clusters, where the launch is left open"),
        );
        return Vec::new();
    }
    let template = Template::new(root, &file.text, sink);
    let choices = template.choices(sink);
    let mut reader = TestReader {
        file: &file.text,
        root,
        made: None,
        template,
        sink,
        reading: Reading::Form,
    };
    let forms = choices
        .iter()
        .filter_map(|choice| reader.form(kernel, choice));
    forms.collect()
}

/// Reads the tests of a file one after another.
struct TestReader<'a, 's> {
    file: &'a str,
    root: &'a DeTable<'a>,
    /// Of a document that was made: the text that it was made of.
    made: Option<&'a SourceTest<'a>>,
    template: Template,
    sink: &'s mut Sink,
    reading: Reading,
}

impl TestReader<'_, '_> {
    /// A string with its placeholders filled in.
    fn text(&mut self, value: &Value<'_>, choice: &TemplateChoice) -> Option<MappedText> {
        let decoded = value.get_ref().as_str()?;
        if self.made.is_some() {
            return Some(MappedText::opaque(decoded, span_of(value)));
        }
        let text = map_string(self.file, value.span(), decoded);
        Some(self.template.fill(text, choice, self.sink))
    }

    fn string(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        choice: &TemplateChoice,
    ) -> Option<MappedText> {
        self.text(table.get(key)?, choice)
    }

    /// The code of a kernel in PTX, or of a thread.
    fn code(&mut self, table: &DeTable<'_>, choice: &TemplateChoice) -> Option<MappedText> {
        match self.made.map(|made| &made.code) {
            Some(FileCode::Ptx(text)) => Some(text.clone()),
            _ => self.string(table, "code", choice),
        }
    }

    /// The parsed code of a kernel that a source file has.
    fn of_source(&self) -> Option<Rc<ClikeCode>> {
        match self.made.map(|made| &made.code) {
            Some(FileCode::C(unit)) => Some(unit.clone()),
            _ => None,
        }
    }

    /// The code of a program that a source file has.
    fn program(&self) -> Option<&ProgramCode> {
        match self.made.map(|made| &made.code) {
            Some(FileCode::Program(program)) => Some(program),
            _ => None,
        }
    }

    fn plain(&mut self, table: &DeTable<'_>, key: &str, choice: &TemplateChoice) -> String {
        self.string(table, key, choice)
            .map_or(String::new(), |t| t.as_str().to_string())
    }

    /// The strings of a list, with their placeholders filled in.
    fn list(&mut self, key: &str, choice: &TemplateChoice) -> Vec<MappedText> {
        let Some(DeValue::Array(items)) = self.root.get(key).map(Value::get_ref) else {
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item| self.text(item, choice))
            .collect()
    }

    /// The value of a key that must be one of some words. Checks it again, since a placeholder may
    /// have produced it.
    fn word(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        words: &[&'static str],
        choice: &TemplateChoice,
    ) -> Option<&'static str> {
        let text = self.string(table, key, choice)?;
        let word = text.as_str();
        let found = words.iter().find(|w| **w == word).copied();
        if found.is_none() {
            let span = table.get(key).map_or(Span::default(), span_of);
            self.sink.error(
                "unknown-word",
                span,
                format!("`{key}` cannot be `{word}`"),
                |d| {
                    d.label(format!("expected one of {}", words.join(", ")))
                        .did_you_mean(word, words.iter().copied())
                },
            );
        }
        found
    }

    /// The kernel of a test, for every launch.
    fn form(&mut self, kernel: &DeTable<'_>, choice: &TemplateChoice) -> Option<Form> {
        let word = self.word(self.root, "dialect", keys::DIALECTS, choice);
        let dialect = dialects().find(|d| Some(d.name()) == word);
        let range = self.index_space(dialect.unwrap_or_default(), kernel, choice)?;
        let errors = self.sink.errors();
        let layout = self.layout(kernel, choice)?;
        if layout.mapping != WarpMapping::Consecutive {
            // The sub-groups of another launch are others.
            return None;
        }
        let warp = layout.warp;
        let (test, _) = self.test(choice)?;
        if self.sink.errors() > errors {
            return None;
        }
        let regs = kernel.get("regs").and_then(|v| v.get_ref().as_table());
        let names = regs.map_or(Vec::new(), |regs| {
            let all = document::entries(regs).into_iter();
            all.map(|(name, _, _)| name.to_string()).collect()
        });
        let assume = self.string(kernel, "assume", choice);
        let assume = assume.map(|text| {
            let span = text.span(0..text.as_str().len());
            (text.as_str().to_string(), span)
        });
        match of_two(test, range, warp, names, assume) {
            Ok(mut form) => {
                form.sizes = self.sizes(&form.test.program, choice);
                Some(form)
            }
            Err(span) => {
                let message = "this value differs between threads";
                self.sink.error("unsupported-place", span, message, |d| {
                    d.label("depends on the number of the thread before it runs")
                });
                None
            }
        }
    }

    fn test(&mut self, choice: &TemplateChoice) -> Option<(LitmusTest, Span)> {
        let root = self.root;
        let word = self.word(root, "dialect", keys::DIALECTS, choice);
        let dialect = dialects()
            .find(|d| Some(d.name()) == word)
            .unwrap_or_default();
        let (name, name_span) = self.name(choice)?;
        let barriers = self.word(root, "barriers", &["ptx", "litmus"], choice);
        let reductions = self.word(root, "reductions", &["ptx", "litmus"], choice);
        let env = PtxEnv {
            strict: true,
            instance_barriers: barriers == Some("litmus"),
            acquiring_red: reductions == Some("litmus"),
            of_every_thread: matches!(self.reading, Reading::Form),
            ..PtxEnv::default()
        };
        let errors = self.sink.errors();
        let mut symbols = self.memory(dialect, choice);
        let mut condition_text = self.string(root, "condition", choice);
        let mut filter_text = self.string(root, "filter", choice);
        let mut observed = self.list("observe", choice);
        for text in [&condition_text, &filter_text]
            .into_iter()
            .flatten()
            .chain(&observed)
        {
            symbols.watch(text.as_str());
        }
        if !self.root.contains_key("host") {
            self.without_host();
        }
        let mut program = if self.root.contains_key("host") {
            self.host_program(dialect, symbols, env, choice)
        } else {
            match Front::of(dialect).syntax {
                Syntax::Ptx => {
                    let (threads, units) = self.threads(dialect, &symbols, choice);
                    build(dialect, threads, &units, symbols, &env, self.sink)
                }
                Syntax::C => {
                    let threads = self.c_threads(dialect, &symbols, choice);
                    build_clike(dialect, threads, symbols, self.sink)
                }
            }
        };
        program.machine = self.machine(dialect);
        let broken = self.sink.errors() > errors;
        if broken && root.contains_key("host") {
            // The threads are unknown, so names in a proposition must not cause further errors.
            (condition_text, filter_text) = (None, None);
            observed.clear();
        }
        let unknown = if broken {
            Unknown::AddRegisters
        } else {
            Unknown::Reject
        };
        let mut resolver = Resolver::new(&mut program, unknown);
        let condition = optional_prop(condition_text.as_ref(), &mut resolver, self.sink);
        let filter = optional_prop(filter_text.as_ref(), &mut resolver, self.sink);
        let observe = observed
            .iter()
            .filter_map(|t| condition::parse_observable(t, &mut resolver, self.sink))
            .collect();
        let quantifier =
            match self.word(root, "quantifier", &["exists", "~exists", "forall"], choice) {
                _ if !root.contains_key("condition") => Quantifier::None,
                Some("~exists") => Quantifier::NotExists,
                Some("forall") => Quantifier::ForAll,
                _ => Quantifier::Exists,
            };
        let test = LitmusTest {
            name,
            doc: self.plain(root, "doc", choice),
            source: self.plain(root, "source", choice),
            tags: self
                .list("tags", choice)
                .into_iter()
                .map(|t| t.as_str().to_string())
                .collect(),
            file: self.sink.file().clone(),
            program,
            condition,
            condition_span: (condition_text.as_ref())
                .map_or(Span::default(), |t| t.span(0..t.as_str().len())),
            condition_text: condition_text
                .map_or(String::new(), |t: MappedText| one_line(t.as_str())),
            quantifier,
            filter,
            observe,
            expect: self.expectations(choice),
            options: self.options(choice),
            bound: self.bound(choice),
            runs: self.runs(choice),
            launch: None,
        };
        Some((test, name_span))
    }

    /// The test's name. If the file's name has no placeholders, the names of the chosen values are
    /// appended.
    fn name(&mut self, choice: &TemplateChoice) -> Option<(String, Span)> {
        let value = self.root.get("name")?;
        let span = span_of(value);
        let written = self.text(value, choice)?;
        let fixed = !value.get_ref().as_str()?.contains("${");
        let chosen: Vec<_> = self
            .template
            .chosen(choice)
            .map(|(_, value)| value)
            .collect();
        let (name, span) = match (fixed, choice.instance, chosen.last()) {
            (true, Some(_), Some(value)) => (value.name.clone(), value.span),
            (true, None, Some(_)) => {
                let parts = chosen.iter().map(|value| value.name.as_str());
                (
                    [written.as_str()]
                        .into_iter()
                        .chain(parts)
                        .collect::<Vec<_>>()
                        .join("+"),
                    span,
                )
            }
            _ => (written.as_str().to_string(), span),
        };
        if name.trim().is_empty() {
            self.sink
                .error("empty-name", span, "a test needs a name", |d| {
                    d.label("expected a name")
                });
        } else if name.chars().any(char::is_control) {
            // Each answer is printed on one line, and terminals act on control characters.
            let message = format!("`{}` cannot be the name of a test", name.escape_debug());
            self.sink.error("bad-name", span, message, |d| {
                d.label("holds a control character")
            });
        }
        Some((name, span))
    }

    fn options(&mut self, choice: &TemplateChoice) -> Vec<Setting> {
        let Some(table) = self
            .root
            .get("options")
            .and_then(|v| v.get_ref().as_table())
        else {
            return Vec::new();
        };
        OPTIONS
            .iter()
            .filter_map(|row: &OptionRow| {
                Setting::read(row.name, self.word(table, row.name, row.values, choice)?).ok()
            })
            .collect()
    }

    fn bound(&mut self, choice: &TemplateChoice) -> Option<u32> {
        let bound = self.count(self.root, &["bound"], choice)?;
        if bound > MAX_BOUND {
            let span = self.root.get("bound").map_or(Span::default(), span_of);
            self.sink.error(
                "large-bound",
                span,
                format!("a loop bound of {bound} is too large"),
                |d| d.label(format!("expected at most {MAX_BOUND}")),
            );
        }
        Some(bound)
    }

    /// Reports expectations about properties that the test does not have.
    fn check_expectations(&mut self, test: &LitmusTest) {
        let asked = test.quantifier != Quantifier::None;
        for (model, expectation) in test
            .expect
            .iter()
            .filter(|(_, e)| e.reachability.is_some() && !asked)
        {
            let message = format!("`{model}` is expected to answer, but the test has no condition");
            self.sink
                .error("missing-condition", expectation.span, message, |d| {
                    d.label("reachability of what?").help("add a `condition`")
                });
        }
        for (model, expectation) in &test.expect {
            let Some(reason) = &expectation.known else {
                continue;
            };
            let problem = match (reason.trim(), expectation.answers()) {
                ("", _) => "without a reason",
                (_, 0) => "of no expected answer",
                _ => continue,
            };
            let message = format!("`{model}` has a known failure {problem}");
            self.sink
                .error("bad-known-failure", expectation.span, message, |d| {
                    d.label("expected an answer that the model is known not to give, and why")
                        .help("as in `{ reachability = \"forbidden\", known = \"why\" }`")
                });
        }
    }
}

/// The integer in a value, as 64 bits.
fn optional_prop(
    text: Option<&MappedText>,
    resolver: &mut Resolver<'_>,
    sink: &mut Sink,
) -> Option<Prop> {
    condition::parse(text?, resolver, sink)
}

fn integer(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    let digits = number.as_str().replace('_', "");
    let radix = number.radix();
    i64::from_str_radix(&digits, radix)
        .ok()
        .or_else(|| u64::from_str_radix(&digits, radix).ok().map(|v| v as i64))
}

/// An empty map of expectations.
fn no_expectations() -> IndexMap<String, program::litmus::Expectation> {
    IndexMap::new()
}
