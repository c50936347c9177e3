//! Gives code the functions and types of CUDA's headers that are written in CUDA C++ here.
//!
//! The front end inlines them as it inlines functions of the code.
//!
//! # Invariants
//! - Code gets the definitions that it names, and those that these name. What the code defines
//!   itself stays as it is.
//! - The place of a definition is that of a word that needs it.
//!
//! # Sources
//! - C11, 7.24, *String handling*; cuRAND Library, *Device API Overview*.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use diag::{MappedText, Span};
use program::{BinOp, Dialect, Expr};

use super::Language;
use super::ast::Expr as Tree;
use super::items::{Item, items};
use super::lower::Lowering;
use super::text_words::words;
use super::types::{Type, Value, folded};

const TEXT: &str = include_str!("library.cuh");

/// Copies elements, and clears them.
const COPY: &str = "__copy_elements";
const CLEAR: &str = "__clear_elements";

/// Functions for a number of bytes, and the definition that does their work.
const OF_BYTES: &[(&str, &str)] = &[
    ("memcpy", COPY),
    ("memmove", COPY),
    ("__builtin_memcpy", COPY),
    ("__builtin_memmove", COPY),
    ("memset", CLEAR),
    ("__builtin_memset", CLEAR),
];

static ITEMS: LazyLock<Vec<Item>> =
    LazyLock::new(|| items(&MappedText::verbatim(TEXT, 0), language_of_library()));

fn language_of_library() -> &'static Language {
    Language::of(Dialect::Cuda).expect("CUDA C++ has a row")
}

/// The code behind the definitions that it needs.
pub(super) fn with_definitions(text: MappedText, language: &Language) -> MappedText {
    if !language.cpp {
        return text;
    }
    let source = text.as_str();
    let mut roots: BTreeMap<&str, Span> = BTreeMap::new();
    for (range, _) in words(source) {
        let word = &source[range.clone()];
        let stands_for = OF_BYTES.iter().find(|row| row.0 == word);
        let word = stands_for.map_or(word, |row| row.1);
        if ITEMS.iter().any(|item| item.declares(word)) {
            roots.entry(word).or_insert_with(|| text.span(range));
        }
    }
    if roots.is_empty() {
        return text;
    }
    let own = items(&text, language).into_iter().flat_map(|i| i.names);
    let own: HashSet<String> = own.collect();
    roots.retain(|word, _| !own.contains(*word));
    let mut out = MappedText::new();
    for (item, span) in ITEMS.iter().zip(definitions(roots)) {
        if let Some(span) = span {
            out.push_opaque(&TEXT[item.range.clone()], span);
            out.push_opaque("\n", span);
        }
    }
    out.push_slice(&text, 0..source.len());
    out
}

/// For each definition, the place of the word that needs it, if one does.
fn definitions(roots: BTreeMap<&str, Span>) -> Vec<Option<Span>> {
    let mut needed = vec![None; ITEMS.len()];
    let mut open: Vec<(&str, Span)> = roots.into_iter().collect();
    while let Some((word, span)) = open.pop() {
        let of_word = ITEMS.iter().enumerate().filter(|(_, i)| i.declares(word));
        for (at, item) in of_word {
            if needed[at].is_none() {
                needed[at] = Some(span);
                open.extend(item.words().map(|word| (word, span)));
            }
        }
    }
    needed
}

impl Lowering<'_, '_> {
    /// `memcpy(to, from, bytes)` and its like; `None`: the call is another one.
    ///
    /// The number of bytes is a known multiple of the elements' size: where a part of an element is
    /// copied, the front end refuses the call.
    pub(super) fn call_of_bytes(
        &mut self,
        tree: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Option<Value> {
        let row = OF_BYTES.iter().find(|row| row.0 == self.str(name))?;
        let known = self.functions.get(row.1)?.clone();
        let [to, middle, bytes] = args else {
            return None;
        };
        let size = self.element_size(to)?;
        let copied = row.1 == COPY;
        let alike = match copied {
            true => self.element_size(middle) == Some(size),
            false => self.peeked(middle) == Expr::Const(0),
        };
        let count = self.peeked(bytes);
        if !alike || !is_multiple(&folded(count), size) {
            let expected = match copied {
                true => "whole elements, and two pointers to elements of one size",
                false => "whole elements, and the byte 0",
            };
            self.error(
                "unsupported-function",
                &tree.range,
                format!("this call of `{}` is not supported", row.0),
                |d| {
                    d.label(format!("expected {expected}"))
                        .help("write the number of bytes as `n * sizeof(…)`, or use a loop")
                },
            );
            return Some(Value::void());
        }
        let given: &[&Tree] = if copied {
            &[to, middle, bytes]
        } else {
            &[to, bytes]
        };
        self.call_function(&tree.range, name, &known, None, given)
    }

    /// The value of an expression, without its code.
    fn peeked(&mut self, tree: &Tree) -> Expr {
        let code = self.code.len();
        let value = self.eval(tree).expr;
        self.code.truncate(code);
        self.read_only.retain(|read| *read < code);
        value
    }

    /// The bytes of an element behind a pointer or of an array.
    fn element_size(&mut self, pointer: &Tree) -> Option<u64> {
        let value = self.unevaluated(pointer);
        let of = match &value.ty {
            Type::Array(of, _) => of.ty.clone(),
            _ => value.target()?.ty.clone(),
        };
        Some(of.size()).filter(|size| *size > 0)
    }
}

/// Whether a number is a multiple of `size` for all values of its parts.
fn is_multiple(number: &Expr, size: u64) -> bool {
    match number {
        Expr::Const(n) => n.unsigned_abs().is_multiple_of(size),
        Expr::Bin(BinOp::Mul, _, a, b) => is_multiple(a, size) || is_multiple(b, size),
        Expr::Bin(BinOp::Add | BinOp::Sub, _, a, b) => is_multiple(a, size) && is_multiple(b, size),
        Expr::Bin(BinOp::Shl, _, a, b) => match &**b {
            Expr::Const(by @ 0..=31) => (1_u64 << by).is_multiple_of(size) || is_multiple(a, size),
            _ => false,
        },
        Expr::Cast(_, a) => is_multiple(a, size),
        _ => false,
    }
}
