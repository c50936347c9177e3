//! Reads a [`Mapping`] from a TOML file.
//!
//! # Invariants
//! - Every key is in [`KEYS`]; everything else is rejected, at its place.
//! - A row in a file replaces all rows of the base for the same order, at every scope.
//! - A base is always a shipped mapping, and bases form no cycle: each is read before the files
//!   that use it.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use ::toml::de::{DeTable, DeValue};
use models::MODELS;

use super::gaps::{Gap, GapTest};
use super::table::{
    KINDS, Mapping, MappingRow, MappingStep, ORDERS, OpKind, SEMANTICS, Semantics, SourceOrder,
    StepScope,
};
use crate::document::{self, TableKey, Value, ValueShape, entries, key, required, span_of};
use crate::litmus::dialects;
use diag::{Diagnostic, Sink, SourceFile, Span, file};
use program::words::SCOPES;
use program::{Dialect, Scope};

/// The target sequence of an operation: the same for all scopes, or a table by scope.
const BECOMES: ValueShape = ValueShape::OneOf(&[ValueShape::Text, ValueShape::Table(BY_SCOPE)]);

const BY_SCOPE: &[TableKey] = &[
    key("thread", ValueShape::Text, "its PTX at thread scope"),
    key(
        "warp",
        ValueShape::Text,
        "its PTX at the scope of a warp or sub-group",
    ),
    key(
        "cta",
        ValueShape::Text,
        "its PTX at the scope of a CTA, block or work-group",
    ),
    key("cluster", ValueShape::Text, "its PTX at cluster scope"),
    key("gpu", ValueShape::Text, "its PTX at device scope"),
    key("sys", ValueShape::Text, "its PTX at system scope"),
    key("other", ValueShape::Text, "its PTX at every other scope"),
];

const fn rows(name: &'static str, keys: &'static [TableKey]) -> TableKey {
    key(name, ValueShape::Table(keys), "what each order becomes")
}

const fn order(name: &'static str) -> TableKey {
    key(
        name,
        BECOMES,
        "a sequence of PTX operations, between semicolons; `.s` is the mapped scope",
    )
}

/// The groups that a barrier can have: those of scopes, and grids.
const GROUPS: &[(&str, Scope)] = &[
    ("thread", Scope::Thread),
    ("warp", Scope::Warp),
    ("cta", Scope::Cta),
    ("cluster", Scope::Cluster),
    ("grid", Scope::Grid),
    ("gpu", Scope::Gpu),
    ("sys", Scope::Sys),
];
const GROUP: ValueShape =
    ValueShape::Word(&["thread", "warp", "cta", "cluster", "grid", "gpu", "sys"]);
const TARGET: ValueShape = ValueShape::Word(&["cta", "cluster", "gpu", "sys"]);
const LOADS: &[TableKey] = &[
    order("plain"),
    order("volatile"),
    order("relaxed"),
    order("acquire"),
    order("seq_cst"),
];
const STORES: &[TableKey] = &[
    order("plain"),
    order("volatile"),
    order("relaxed"),
    order("release"),
    order("seq_cst"),
];
const OTHERS: &[TableKey] = &[
    order("relaxed"),
    order("acquire"),
    order("release"),
    order("acq_rel"),
    order("seq_cst"),
];

/// The keys of a file.
const KEYS: &[TableKey] = &[
    required(
        "from",
        ValueShape::Word(&["c", "cuda", "opencl"]),
        "the language it maps from",
    ),
    required("to", ValueShape::Word(&["ptx"]), "the language it maps to"),
    key(
        "base",
        ValueShape::Text,
        "the shipped mapping that supplies the missing rows",
    ),
    key(
        "gaps",
        ValueShape::List(&ValueShape::Text),
        "the known gaps of the base that this mapping shares",
    ),
    key(
        "current",
        ValueShape::Bool,
        "whether it is the default, if it is shipped",
    ),
    required("doc", ValueShape::Text, "a description"),
    required(
        "sources",
        ValueShape::List(&ValueShape::Text),
        "its sources: document and section",
    ),
    key(
        "scopes",
        ValueShape::Table(&[
            key("thread", TARGET, "what thread scope becomes"),
            key("warp", TARGET, "the PTX scope for a warp or sub-group"),
            key(
                "cta",
                TARGET,
                "the PTX scope for a CTA, block or work-group",
            ),
            key("cluster", TARGET, "what cluster scope becomes"),
            key("gpu", TARGET, "what device scope becomes"),
            key("sys", TARGET, "what system scope becomes"),
        ]),
        "what source scopes become",
    ),
    rows("load", LOADS),
    rows("store", STORES),
    rows("rmw", OTHERS),
    rows("cas", OTHERS),
    rows("fence", OTHERS),
    rows("arrive", &[order("release")]),
    rows("wait", &[order("acquire")]),
    key(
        "barrier",
        ValueShape::Table(&[
            required(
                "groups",
                ValueShape::List(&GROUP),
                "the groups that have barriers in PTX",
            ),
            required(
                "wider",
                ValueShape::Text,
                "the fences on both sides of a barrier of a scope wider than its group",
            ),
        ]),
        "what barriers become",
    ),
    key(
        "gap",
        ValueShape::List(&ValueShape::Table(&[
            required("name", ValueShape::Text, "what reports call it"),
            required(
                "lost",
                ValueShape::Text,
                "the lost property, as the end of a sentence",
            ),
            required("source", ValueShape::Text, "what says so"),
            key(
                "mended",
                ValueShape::Text,
                "the shipped mapping without this gap; if absent, the source model decides",
            ),
        ])),
        "the properties that the mapping is known to lose, the smallest gap first",
    ),
];

/// The mappings in `models/mappings`, each after its base.
pub(super) fn shipped() -> Vec<Mapping> {
    let files = MODELS
        .get_dir("mappings")
        .into_iter()
        .flat_map(|d| d.files());
    let mut waiting: Vec<Arc<SourceFile>> = files
        .filter_map(|f| {
            Some(SourceFile::new(
                format!("models/{}", f.path().to_str()?),
                f.contents_utf8()?,
            ))
        })
        .collect();
    let mut read: Vec<Mapping> = Vec::new();
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|file| match parse(file, &read) {
            Ok(mapping) => {
                read.push(mapping);
                false
            }
            Err(_) => true,
        });
        assert!(
            waiting.len() < before,
            "shipped: {:?}",
            parse(&waiting[0], &read).map(|m| m.name)
        );
    }
    read
}

impl Mapping {
    /// Loads a mapping from a file.
    ///
    /// # Errors
    /// All mistakes in the file.
    pub fn load(path: &Path) -> Result<&'static Mapping, Vec<Diagnostic>> {
        let name = path.display().to_string();
        fn unreadable(why: String, name: &str) -> Vec<Diagnostic> {
            vec![Diagnostic::plain(
                "unreadable-file",
                format!("`{name}` cannot be read: {why}"),
            )]
        }
        let bytes = file::read(path, file::LARGEST)
            .map_err(|error| unreadable(error.to_string(), &name))?;
        let text =
            String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".into(), &name))?;
        let mut mapping = parse(&SourceFile::new(&name, text), super::table::shipped())?;
        mapping.asked = name;
        if let Some(by) = mapping.gaps.iter().find_map(|gap| match &gap.told {
            GapTest::Mended(by) => Mapping::named(by).is_none().then_some(by),
            GapTest::Less => None,
        }) {
            let message = format!(
                "`{}`: `mended` names `{by}`, which is not a shipped mapping",
                mapping.asked
            );
            return Err(vec![Diagnostic::plain("unknown-mapping", message)]);
        }
        Ok(Box::leak(Box::new(mapping)))
    }
}

impl Mapping {
    /// Prints the mapping as a file, without its known gaps. Reading the file back gives the same
    /// rows.
    pub fn to_toml(&self) -> String {
        let sources: Vec<String> = self.sources.iter().map(|source| quoted(source)).collect();
        let mut out = format!(
            "from = {}\nto = {}\ndoc = {}\nsources = [{}]\n\n[scopes]\n",
            quoted_language(self.from),
            quoted_language(self.to),
            quoted(&self.doc),
            sources.join(", ")
        );
        for (from, to) in &self.scopes {
            let _ = writeln!(out, "{} = {}", scope_word(from), quoted(scope_word(to)));
        }
        for (name, kind) in KINDS {
            let rows: Vec<&MappingRow> = self.rows.iter().filter(|r| r.kind == *kind).collect();
            if !rows.is_empty() {
                let _ = writeln!(out, "\n[{name}]");
            }
            for (name, order) in ORDERS {
                let of_order: Vec<&&MappingRow> =
                    rows.iter().filter(|r| r.order == *order).collect();
                match of_order.as_slice() {
                    [] => {}
                    [one] if one.scope.is_none() => {
                        let _ = writeln!(out, "{name} = {}", quoted_steps(&one.steps));
                    }
                    several => {
                        let by_scope = several.iter().map(|row| {
                            format!(
                                "{} = {}",
                                row.scope.as_ref().map_or("other", scope_word),
                                quoted_steps(&row.steps)
                            )
                        });
                        let _ = writeln!(
                            out,
                            "{name} = {{ {} }}",
                            by_scope.collect::<Vec<_>>().join(", ")
                        );
                    }
                }
            }
        }
        if !self.groups.is_empty() {
            let groups: Vec<String> = self
                .groups
                .iter()
                .map(|scope| quoted(super::table::word(GROUPS, scope)))
                .collect();
            let _ = writeln!(
                out,
                "\n[barrier]\ngroups = [{}]\nwider = {}",
                groups.join(", "),
                quoted_steps(&self.wider)
            );
        }
        out
    }
}

fn scope_word(scope: &Scope) -> &'static str {
    super::table::word(SCOPES, scope)
}

fn quoted(text: &str) -> String {
    ::toml::Value::String(text.to_owned()).to_string()
}

fn quoted_language(dialect: Dialect) -> String {
    quoted(dialect.name())
}

fn quoted_steps(steps: &[MappingStep]) -> String {
    quoted(
        &steps
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; "),
    )
}

/// Parses a file; `known` lists the mappings that may be its base.
pub(super) fn parse(file: &Arc<SourceFile>, known: &[Mapping]) -> Result<Mapping, Vec<Diagnostic>> {
    let mut sink = Sink::new(file);
    let mapping = document::parse(&file.text, &mut sink).and_then(|root| {
        document::table(
            root.get_ref(),
            file.top(),
            KEYS,
            None,
            "a mapping",
            &mut sink,
        );
        let mut reader = MappingReader {
            file,
            known,
            sink: &mut sink,
        };
        reader.mapping(root.get_ref())
    });
    match mapping {
        Some(mapping) if sink.errors() == 0 => Ok(mapping),
        _ => Err(sink.into_diagnostics()),
    }
}

struct MappingReader<'a, 's> {
    file: &'a SourceFile,
    known: &'a [Mapping],
    sink: &'s mut Sink,
}

fn of<T: Copy>(table: &[(&'static str, T)], name: &str) -> Option<T> {
    table.iter().find(|row| row.0 == name).map(|row| row.1)
}

fn text(table: &DeTable<'_>, key: &str) -> Option<String> {
    Some(table.get(key)?.get_ref().as_str()?.to_owned())
}

/// The strings of a list, each with its place.
fn texts<'t>(table: &'t DeTable<'_>, key: &str) -> Vec<(&'t str, Span)> {
    let Some(DeValue::Array(items)) = table.get(key).map(Value::get_ref) else {
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| Some((item.get_ref().as_str()?, span_of(item))))
        .collect()
}

fn sub<'t, 'a>(table: &'t DeTable<'a>, key: &str) -> Option<&'t DeTable<'a>> {
    match table.get(key)?.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

impl MappingReader<'_, '_> {
    fn mapping(&mut self, root: &DeTable<'_>) -> Option<Mapping> {
        let stem = Path::new(&self.file.name)
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        let language = |key: &str| {
            let word = text(root, key)?;
            dialects().find(|dialect| dialect.name() == word)
        };
        let mut mapping = Mapping {
            asked: stem.clone().unwrap_or_default(),
            name: stem.unwrap_or_default(),
            from: language("from")?,
            to: language("to")?,
            current: root
                .get("current")
                .is_some_and(|v| v.get_ref().as_bool() == Some(true)),
            doc: text(root, "doc")?,
            sources: texts(root, "sources")
                .into_iter()
                .map(|s| s.0.to_owned())
                .collect(),
            rows: Vec::new(),
            scopes: Vec::new(),
            groups: Vec::new(),
            wider: Vec::new(),
            gaps: Vec::new(),
            by_hand: None,
        };
        for (name, kind) in KINDS {
            for (order, _, value) in sub(root, name).into_iter().flat_map(entries) {
                let Some(order) = of(ORDERS, order) else {
                    continue;
                };
                self.row(*kind, order, value, &mut mapping.rows);
            }
        }
        for (from, _, value) in sub(root, "scopes").into_iter().flat_map(entries) {
            let to = value.get_ref().as_str().and_then(|to| of(SCOPES, to));
            mapping.scopes.extend(of(SCOPES, from).zip(to));
        }
        if let Some(barrier) = sub(root, "barrier") {
            mapping.groups = texts(barrier, "groups")
                .iter()
                .filter_map(|g| of(GROUPS, g.0))
                .collect();
            if let Some(value) = barrier.get("wider") {
                mapping.wider = self.steps(OpKind::Fence, value).unwrap_or_default();
            }
        }
        mapping.gaps = self.gaps(root);
        self.inherit(root, &mut mapping)?;
        Some(mapping)
    }

    /// Copies everything from the base that the file does not override.
    fn inherit(&mut self, root: &DeTable<'_>, mapping: &mut Mapping) -> Option<()> {
        let kept = texts(root, "gaps");
        let Some(value) = root.get("base") else {
            for (_, span) in kept {
                self.sink
                    .error("unknown-gap", span, "these gaps need a base", |d| {
                        d.label("expected a `base` with it")
                    });
            }
            return Some(());
        };
        let name = value.get_ref().as_str()?;
        let Some(base) = self.known.iter().find(|m| m.name == name) else {
            let known = self.known;
            self.sink.error(
                "unknown-mapping",
                span_of(value),
                format!("there is no mapping `{name}`"),
                |d| {
                    d.label("expected the name of a shipped mapping")
                        .did_you_mean(name, known.iter().map(|m| m.name.as_str()))
                },
            );
            return None;
        };
        let own: Vec<(OpKind, SourceOrder)> =
            mapping.rows.iter().map(|r| (r.kind, r.order)).collect();
        // A compare-exchange without rows in the file follows the file's read-modify-writes, not
        // the base's rows.
        let said = |r: &&MappingRow| {
            own.contains(&(r.kind, r.order))
                || r.kind == OpKind::Cas && own.contains(&(OpKind::Rmw, r.order))
        };
        mapping
            .rows
            .extend(base.rows.iter().filter(|r| !said(r)).cloned());
        let scopes: Vec<Scope> = mapping.scopes.iter().map(|s| s.0).collect();
        mapping
            .scopes
            .extend(base.scopes.iter().filter(|s| !scopes.contains(&s.0)));
        if !root.contains_key("barrier") {
            mapping.groups.clone_from(&base.groups);
            mapping.wider.clone_from(&base.wider);
        }
        let mut gaps = Vec::new();
        for (name, span) in kept {
            match base.gaps.iter().find(|g| g.name == name) {
                Some(gap) => gaps.push(gap.clone()),
                None => self.sink.error(
                    "unknown-gap",
                    span,
                    format!("`{}` has no gap `{name}`", base.name),
                    |d| {
                        d.label("expected the name of a known gap of the base")
                            .did_you_mean(name, base.gaps.iter().map(|g| g.name.as_str()))
                    },
                ),
            }
        }
        mapping.gaps.splice(0..0, gaps);
        Some(())
    }

    fn gaps(&mut self, root: &DeTable<'_>) -> Vec<Gap> {
        let Some(DeValue::Array(items)) = root.get("gap").map(Value::get_ref) else {
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item: &Value<'_>| {
                let DeValue::Table(table) = item.get_ref() else {
                    return None;
                };
                let told = text(table, "mended").map_or(GapTest::Less, GapTest::Mended);
                Some(Gap {
                    name: text(table, "name")?,
                    lost: text(table, "lost")?,
                    told,
                })
            })
            .collect()
    }

    /// The rows of one order: for all scopes, or by scope.
    fn row(
        &mut self,
        kind: OpKind,
        order: SourceOrder,
        value: &Value<'_>,
        rows: &mut Vec<MappingRow>,
    ) {
        if let DeValue::Table(by_scope) = value.get_ref() {
            for (scope, _, value) in entries(by_scope) {
                let steps = self.steps(kind, value);
                rows.extend(steps.map(|steps| MappingRow {
                    kind,
                    order,
                    scope: of(SCOPES, scope),
                    steps,
                }));
            }
        } else {
            let steps = self.steps(kind, value);
            rows.extend(steps.map(|steps| MappingRow {
                kind,
                order,
                scope: None,
                steps,
            }));
        }
    }

    /// Parses a string into a sequence of fences. For any kind but a fence, the sequence contains
    /// the access exactly once.
    fn steps(&mut self, kind: OpKind, value: &Value<'_>) -> Option<Vec<MappingStep>> {
        let span = span_of(value);
        let words = value.get_ref().as_str()?;
        let texts: Vec<&str> = words
            .split(';')
            .map(str::trim)
            .filter(|step| !step.is_empty())
            .collect();
        let mut steps = Vec::with_capacity(texts.len());
        for text in &texts {
            match step(kind, text) {
                Ok(step) => steps.push(step),
                Err(expected) => {
                    self.sink.error(
                        "unknown-step",
                        span,
                        format!("`{text}` is not allowed here"),
                        |d| d.label(expected),
                    );
                    return None;
                }
            }
        }
        let accesses = steps.iter().filter(|s| s.kind != OpKind::Fence).count();
        if kind != OpKind::Fence && accesses != 1 {
            let message = format!(
                "the PTX of one operation has {accesses} accesses `{}`",
                kind.opcode()
            );
            self.sink.error("unknown-step", span, message, |d| {
                d.label("expected the access once, with fences before or after it")
            });
            return None;
        }
        Some(steps)
    }
}

/// The orders that a PTX access or fence can have (PTX ISA, `ld`, `st`, `atom`, `fence`).
fn semantics_of(kind: OpKind) -> &'static [Semantics] {
    use Semantics::{AcqRel, Acquire, Relaxed, Release, Sc, Volatile, Weak};
    match kind {
        OpKind::Load => &[Weak, Volatile, Relaxed, Acquire],
        OpKind::Store => &[Weak, Volatile, Relaxed, Release],
        OpKind::Rmw | OpKind::Cas => &[Relaxed, Acquire, Release, AcqRel],
        OpKind::Fence => &[Acquire, Release, AcqRel, Sc],
        OpKind::Arrive => &[Relaxed, Release],
        OpKind::Wait => &[Relaxed, Acquire],
    }
}

/// Parses one step of a row for operations of a kind. The error says what was expected.
fn step(kind: OpKind, text: &str) -> Result<MappingStep, String> {
    let of_kind = |kind: OpKind| Some((kind, text.strip_prefix(kind.opcode())?.strip_prefix('.')?));
    let Some((kind, rest)) = of_kind(OpKind::Fence).or_else(|| of_kind(kind)) else {
        return Err(match kind {
            OpKind::Fence => "expected `fence` with an order".into(),
            _ => format!("expected `{}` or `fence` with an order", kind.opcode()),
        });
    };
    let (opcode, mut parts) = (kind.opcode(), rest.split('.'));
    let allowed = semantics_of(kind);
    let word = parts.next().unwrap_or_default();
    let Some(semantics) = of(SEMANTICS, word).filter(|s| allowed.contains(s)) else {
        let words: Vec<String> = allowed
            .iter()
            .map(|s| format!(".{}", super::table::word(SEMANTICS, s)))
            .collect();
        return Err(format!(
            "expected `{opcode}` with one of {}",
            words.join(", ")
        ));
    };
    let scope = parts.next();
    let bare = matches!(semantics, Semantics::Weak | Semantics::Volatile);
    let reach = match scope {
        None if bare => StepScope::None,
        Some("s") if !bare => StepScope::Mapped,
        Some(name) if !bare => match of(SCOPES, name).filter(|s| *s > Scope::Warp) {
            Some(scope) => StepScope::Fixed(scope),
            None => return Err("expected a scope: .s, .cta, .cluster, .gpu or .sys".into()),
        },
        None => return Err("expected a scope: .s, .cta, .cluster, .gpu or .sys".into()),
        Some(_) => return Err(format!("expected no scope: `{opcode}.{word}` has none")),
    };
    if parts.next().is_some() {
        return Err("expected nothing behind the scope".into());
    }
    Ok(MappingStep {
        kind,
        semantics,
        reach,
    })
}
