//! Runs the preprocessor: directives, macros, and aliases of namespaces, which are replaced as
//! text.
//!
//! # Invariants
//! - The result is the text without directives and with its macros expanded. Expanded text points
//!   to the place of its use.
//! - A macro is expanded once: its name is not expanded inside of its text (C11, 6.10.3.4).
//! - The directives that the preprocessor drops have no effect that a model could see; it refuses
//!   all others.
//!
//! # Sources
//! - C11, 6.10, *Preprocessing directives*; ISO C++, namespace.alias, namespace.udir, dcl.typedef;
//!   OpenCL C, *Enqueuing Kernels*, `ndrange_t`.
//! - CUDA C++ Programming Guide, *#pragma unroll*; OpenCL C, *Attributes* and *#pragma OPENCL
//!   EXTENSION*.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::conditional::{self, Number};
use super::kernel_literals::with_kernels_of_literals;
use super::lambda_arguments;
use super::language_macros::{CUDA_MACROS, MACROS};
use super::library_classes::with_classes;
use super::packs;
use super::text_words::{Word, words};
use super::wide_integers::with_wide_integers;
use super::words::is_keyword;
use diag::{MAX_NESTING, MappedText, Sink, Span};
use program::Dialect;

/// Headers of the languages and their libraries. The front end knows their names.
const HEADERS: &[&str] = &[
    "cuda",
    "cub",
    "thrust",
    "cooperative_groups",
    "device_",
    "sm_",
    "nv",
    "atomic",
    "barrier",
    "latch",
    "semaphore",
    "std",
    "assert.h",
    "cassert",
    "stdatomic.h",
    "threads.h",
    "pthread.h",
    "cstd",
    "cinttypes",
    "inttypes.h",
    "limits",
    "type_traits",
    "utility",
    "new",
    "stddef.h",
    "cstddef",
    "iostream",
    "vector",
    "thread",
    "memory",
    "CL/",
    "math.h",
    "cmath",
    "string.h",
    "cstring",
    "chrono",
];

/// Pragmas without an effect that a model could see, by their first words.
const PRAGMAS: &[&str] = &[
    "unroll",
    "nounroll",
    "once",
    "nv_diag_suppress",
    "nv_diag_default",
    "nv_exec_check_disable",
    "hd_warning_disable",
    "diag_suppress",
    "GCC diagnostic",
    "clang diagnostic",
    "clang loop",
    "OPENCL EXTENSION",
    "STDC FP_CONTRACT",
    "region",
    "endregion",
];

/// Namespaces with names that the front end knows without a prefix, too.
const NAMESPACES: &[&str] = &[
    "cuda",
    "cuda::std",
    "std",
    "cooperative_groups",
    "cuda::experimental",
    "cuda::device",
];

/// The largest length of the text in bytes.
const LONGEST: usize = 1 << 20;

/// The largest number of words of an alias.
const LONGEST_ALIAS: usize = 100;

/// A macro, or another name that is replaced by text.
#[derive(Debug)]
struct Macro {
    /// Names of its parameters; `None`: it takes no arguments.
    parameters: Option<Vec<String>>,
    /// Whether these are parameters of a template: the arguments stand in `< >`.
    of_template: bool,
    /// The words of its text.
    body: Vec<String>,
    /// The number of open blocks at its definition. It ends with the innermost of them; macros do
    /// not end.
    depth: usize,
    /// It stands for a function of the language, which no directive asks for.
    of_language: bool,
}

/// Whether a text may use macros that stand for functions of the language.
fn uses_macros_of_language(source: &str, dialect: Dialect) -> bool {
    let words: &[&str] = match dialect {
        Dialect::OpenCl => &[
            "sub_group",
            "event_t",
            "RESERVE_ID",
            "sampler_t",
            "CLK_FILTER_",
            "pow",
            "rootn",
            "DECLARE_UF_",
            "__add_noovfl",
        ],
        Dialect::Cuda => &["__cvta_", "DECLARE_UF_", "__mod_pow2"],
        _ => &[],
    };
    words.iter().any(|word| source.contains(word))
}

/// The macros that stand for functions of the language, if the text may use them.
fn macros_of_language(source: &str, dialect: Dialect) -> HashMap<String, Macro> {
    if !uses_macros_of_language(source, dialect) {
        return HashMap::new();
    }
    let all = match dialect {
        Dialect::Cuda => CUDA_MACROS,
        _ => MACROS,
    };
    all.iter().map(|text| of_text(text)).collect()
}

/// The name and the macro of a text `NAME replacement` or `NAME(parameters) replacement`.
fn of_text(text: &str) -> (String, Macro) {
    fn owned(text: &str) -> Vec<String> {
        let all = words(text).into_iter();
        all.map(|word| text[word.0].to_owned()).collect()
    }
    let (head, body) = match text.split_once(')') {
        Some(parts) => parts,
        None => text.split_once(' ').unwrap_or((text, "")),
    };
    let (name, parameters) = match head.split_once('(') {
        Some((name, parameters)) => (name, Some(parameters.replace(',', " "))),
        None => (head, None),
    };
    let of = Macro {
        parameters: parameters.map(|all| owned(&all)),
        of_template: false,
        body: owned(body),
        depth: 0,
        of_language: true,
    };
    (name.to_owned(), of)
}

/// The parameter of a macro for any further arguments.
const REST: &str = "__VA_ARGS__";

impl Macro {
    /// The sign that its arguments begin with.
    fn opening(&self) -> &'static str {
        if self.of_template { "<" } else { "(" }
    }

    /// The change in nesting by a word among its arguments.
    fn nesting(&self, word: &str) -> i32 {
        match (self.of_template, word) {
            (_, "(") | (true, "<") => 1,
            (_, ")") | (true, ">") => -1,
            (true, ">>") => -2,
            _ => 0,
        }
    }
}

/// What is left of a source file.
pub(super) struct Preprocessed {
    pub(super) text: MappedText,
    /// Headers that were not read, with their places.
    pub(super) missing: Vec<(String, Span)>,
    /// What the reading took for granted.
    pub(super) assumed: Vec<String>,
}

/// Whether a header is one of the languages and their libraries.
pub(super) fn is_of_language(header: &str) -> bool {
    HEADERS.iter().any(|known| header.starts_with(known))
}

/// Whether a header is one of NVIDIA's samples whose functions are known: it is not read.
pub(super) fn is_of_samples(header: &str) -> bool {
    let helper = header.strip_prefix("helper_");
    helper.is_some_and(|name| ["cuda.h", "functions.h", "string.h", "timer.h"].contains(&name))
}

/// Removes directives and expands macros.
pub(super) fn preprocess(text: MappedText, dialect: Dialect, sink: &mut Sink) -> MappedText {
    preprocessed(text, dialect, false, sink).text
}

/// The same of a whole source file: code of the host may use anything there, so a directive that
/// no kernel needs is passed over.
pub(super) fn preprocess_file(text: MappedText, dialect: Dialect, sink: &mut Sink) -> Preprocessed {
    let text = match dialect {
        Dialect::OpenCl => with_types_of_header(with_kernels_of_literals(text)),
        _ => text,
    };
    let text = without_namespaces(text);
    preprocessed(text, dialect, true, sink)
}

/// Structures that the header of OpenCL's host API defines, and their definitions.
const HEADER_TYPES: [(&str, &str); 3] = [
    (
        "cl_buffer_region",
        "typedef struct { size_t origin; size_t size; } cl_buffer_region;\n",
    ),
    (
        "cl_image_format",
        "typedef struct { unsigned image_channel_order; unsigned image_channel_data_type; } \
         cl_image_format;\n",
    ),
    (
        "cl_image_desc",
        "typedef struct { unsigned image_type; size_t image_width; size_t image_height; \
         size_t image_depth; size_t image_array_size; size_t image_row_pitch; \
         size_t image_slice_pitch; unsigned num_mip_levels; unsigned num_samples; void *buffer; } \
         cl_image_desc;\n",
    ),
];

/// The text with those of these structures in front that it names.
fn with_types_of_header(text: MappedText) -> MappedText {
    let named = |name: &str| text.as_str().contains(name);
    let all: Vec<&str> = (HEADER_TYPES.iter().filter(|(name, _)| named(name)))
        .map(|(_, definition)| *definition)
        .collect();
    if all.is_empty() {
        return text;
    }
    let mut out = MappedText::new();
    out.push_opaque(&all.concat(), text.span(0..0));
    out.push_slice(&text, 0..text.as_str().len());
    out
}

/// The text without the names of its own namespaces before `::`: their items are items of the file.
/// Other names for these namespaces go, too, and declarations that only make their names shorter.
fn without_namespaces(text: MappedText) -> MappedText {
    let source = text.as_str();
    if !source.contains("namespace") {
        return text;
    }
    let all = words(source);
    let word = |n: usize| all.get(n).map_or("", |word| &source[word.0.clone()]);
    let mut own: HashSet<&str> = HashSet::new();
    for at in (0..all.len()).filter(|&at| word(at) == "namespace") {
        let mut names: Vec<usize> = Vec::new();
        let mut next = at + 1;
        while is_name(word(next)) {
            names.push(next);
            if word(next + 1) != "::" {
                break;
            }
            next += 2;
        }
        let behind = names.last().map_or("", |last| word(last + 1));
        if behind == "{" && !NAMESPACES.contains(&word(at + 1)) {
            own.extend(names.iter().map(|&n| word(n)));
        }
    }
    let mut gone: Vec<Range<usize>> = Vec::new();
    for at in 0..all.len() {
        let names = match word(at) {
            "namespace" if word(at + 2) == "=" => at + 3,
            "using" if word(at + 1) == "namespace" => at + 2,
            "using" => at + 1,
            _ => continue,
        };
        let names = names + usize::from(word(names) == "::");
        let last = (names..)
            .step_by(2)
            .find(|&n| !is_name(word(n)) || word(n + 1) != "::")
            .unwrap_or(names);
        let is_short = word(at) == "using" && word(at + 1) != "namespace";
        let is_own = match is_short {
            true => last > names && own.contains(word(names)),
            false => (names..=last).step_by(2).all(|n| own.contains(word(n))),
        };
        if is_own && word(last + 1) == ";" {
            if word(at) == "namespace" {
                own.insert(word(at + 1));
            }
            gone.push(all[at].0.start..all[last + 1].0.end);
        }
    }
    let mut out = MappedText::new();
    let mut from = 0;
    let mut gone = gone.into_iter().peekable();
    for at in 0..all.len() {
        if let Some(range) = gone.next_if(|range| range.start == all[at].0.start) {
            out.push_slice(&text, from..range.start);
            from = range.end;
        }
        if all[at].0.start < from {
            continue;
        }
        let qualifies = own.contains(word(at)) && word(at + 1) == "::";
        let declares = at > 0 && word(at - 1) == "namespace";
        if qualifies && !declares && !inside_declaration(&word, at) {
            let first = at.checked_sub(1).filter(|&n| {
                word(n) == "::" && !n.checked_sub(1).is_some_and(|n| is_name(word(n)))
            });
            let start = all[first.unwrap_or(at)].0.start;
            out.push_slice(&text, from..start.max(from));
            from = all[at + 1].0.end;
        }
    }
    out.push_slice(&text, from..source.len());
    out
}

/// Whether a name is part of `namespace a::b {`.
fn inside_declaration<'w>(word: &dyn Fn(usize) -> &'w str, at: usize) -> bool {
    let mut first = at;
    while first > 1 && word(first - 1) == "::" {
        first -= 2;
    }
    first > 0 && word(first - 1) == "namespace"
}

fn preprocessed(
    text: MappedText,
    dialect: Dialect,
    whole_file: bool,
    sink: &mut Sink,
) -> Preprocessed {
    let source = text.as_str();
    if !source.contains('#')
        && !source.contains("namespace")
        && !source.contains("using")
        && !source.contains("ndrange_t")
        && !uses_macros_of_language(source, dialect)
    {
        let missing = Vec::new();
        let text = packs::written_out(with_classes(with_wide_integers(text, dialect), dialect));
        let text = match whole_file && dialect == Dialect::Cuda {
            true => lambda_arguments::written_out(text),
            false => text,
        };
        let assumed = Vec::new();
        return Preprocessed {
            text,
            missing,
            assumed,
        };
    }
    let words = words(source);
    let mut p = Preprocessor {
        text: &text,
        dialect,
        words,
        at: 0,
        macros: macros_of_language(source, dialect),
        gone: HashSet::new(),
        groups: Vec::new(),
        depth: 0,
        sink,
        out: MappedText::new(),
        whole_file,
        missing: Vec::new(),
        versions: BTreeMap::new(),
    };
    p.run();
    let assumed = p.versions.iter().map(|(name, version)| {
        format!("`{name}` is {version} (`--define {name}=…` sets another version)")
    });
    let assumed = assumed.collect();
    let text = packs::written_out(with_classes(with_wide_integers(p.out, dialect), dialect));
    Preprocessed {
        text: match whole_file && dialect == Dialect::Cuda {
            true => lambda_arguments::written_out(text),
            false => text,
        },
        missing: p.missing,
        assumed,
    }
}

/// Whether words are the type of a pointer to a function: `int (*)(int)`.
fn names_function_pointer(words: &[&str]) -> bool {
    let plain = |w: &&str| is_name(w) || matches!(*w, "::" | "," | "(" | ")" | "*" | "&");
    words.iter().all(plain) && words.windows(4).any(|w| w == ["(", "*", ")", "("])
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$')
}

/// An open `#if`.
struct ConditionGroup {
    /// The place of the directive.
    range: Range<usize>,
    /// Whether one of its branches was compiled.
    taken: bool,
    /// Whether its `#else` has come.
    last: bool,
}

struct Preprocessor<'a, 's> {
    text: &'a MappedText,
    dialect: Dialect,
    words: Vec<Word>,
    at: usize,
    macros: HashMap<String, Macro>,
    /// Names that `#undef` declared not to be macros.
    gone: HashSet<String>,
    groups: Vec<ConditionGroup>,
    depth: usize,
    sink: &'s mut Sink,
    out: MappedText,
    /// Whether the text is a whole source file.
    whole_file: bool,
    missing: Vec<(String, Span)>,
    /// The versions of the compiler that the file is read with, where branches depend on them.
    versions: BTreeMap<&'static str, i64>,
}

impl<'a> Preprocessor<'a, '_> {
    fn str(&self, range: &Range<usize>) -> &'a str {
        &self.text.as_str()[range.clone()]
    }

    fn word(&self, n: usize) -> &'a str {
        self.words.get(self.at + n).map_or("", |w| self.str(&w.0))
    }

    fn run(&mut self) {
        // The start of the text that was not copied yet.
        let mut from = 0;
        while let Some((range, first)) = self.words.get(self.at).cloned() {
            let word = self.str(&range);
            let behind = match word {
                "#" if first => self.directive(range.start),
                "{" => {
                    self.depth += 1;
                    None
                }
                "}" => {
                    self.depth = self.depth.saturating_sub(1);
                    let depth = self.depth;
                    self.macros.retain(|_, m| m.depth <= depth);
                    None
                }
                "namespace" | "using" | "ndrange_t" => self.alias(range.start),
                "template" => self.alias_template(),
                _ => self.expansion(&range, from),
            };
            match behind {
                Some((behind, copied)) => {
                    if !copied {
                        self.out.push_slice(self.text, from..range.start);
                    }
                    from = behind;
                    while self.words.get(self.at).is_some_and(|w| w.0.start < behind) {
                        self.at += 1;
                    }
                }
                None => self.at += 1,
            }
            if self.out.as_str().len() > LONGEST {
                let span = self.text.span(range);
                self.sink.error(
                    "unsupported",
                    span,
                    "the macros of this code expand to too long a text",
                    |d| d.label(format!("expected at most {LONGEST} bytes")),
                );
                break;
            }
        }
        self.out
            .push_slice(self.text, from..self.text.as_str().len());
        if let Some(open) = self.groups.pop() {
            self.wrong(
                &open.range,
                "this `#if` is not closed".into(),
                "expected `#endif` behind it",
            );
        }
    }

    fn wrong(&mut self, range: &Range<usize>, message: String, label: &str) {
        let span = self.text.span(range.clone());
        self.sink
            .error("c-syntax", span, message, |d| d.label(label));
    }

    /// The words of the line from here on, and the end of the line. A `\` at the end joins lines.
    fn line(&self) -> (Vec<Range<usize>>, usize) {
        let rest = self.words[self.at..].iter().enumerate();
        let all: Vec<_> = rest
            .take_while(|(n, w)| *n == 0 || !w.1)
            .map(|(_, w)| w.0.clone())
            .collect();
        let last = all.last().map_or(self.text.as_str().len(), |w| w.end);
        let end = self.text.as_str()[last..]
            .find('\n')
            .map_or(self.text.as_str().len(), |n| last + n);
        (all, end)
    }

    /// Handles a directive; returns the position after it.
    fn directive(&mut self, start: usize) -> Option<(usize, bool)> {
        let (line, end) = self.line();
        let words: Vec<&str> = line.iter().map(|r| self.str(r)).collect();
        let rest = |n: usize| {
            line.get(n)
                .map_or("", |r| self.text.as_str()[r.start..end].trim())
        };
        let refused = match (words.get(1).copied().unwrap_or_default(), rest(2)) {
            ("", _) => None,
            ("include", header) => {
                let name = header.trim_matches(['<', '>', '"']);
                let known = is_of_language(name);
                let is_told = self.missing.iter().any(|(told, _)| told == name);
                let is_ours = header.starts_with('"') && !is_of_samples(name);
                if self.whole_file && !known && is_ours && !is_told {
                    let span = self.text.span(start..end);
                    self.missing.push((name.to_owned(), span));
                }
                (!known).then_some(("headers of your own are", "write its declarations here"))
            }
            ("pragma", pragma) => {
                let known = PRAGMAS.iter().any(|p| pragma.starts_with(p));
                (!known).then_some((
                    "this pragma is",
                    "leave it out, if the program does not depend on it",
                ))
            }
            ("define", _) => self.define(&line),
            ("undef", name) => {
                self.macros.remove(name);
                self.gone.insert(name.to_string());
                None
            }
            ("if" | "ifdef" | "ifndef" | "elif" | "else" | "endif", _) => {
                return Some((self.conditional(&line, end), false));
            }
            ("error" | "warning" | "line", _) => Some(("this directive is", "leave it out")),
            _ => Some((
                "unknown directives are",
                "expected `#define`, `#include` or `#pragma`",
            )),
        };
        if let Some((what, instead)) = refused.filter(|_| !self.whole_file) {
            let span = self.text.span(start..end);
            self.sink
                .error("unsupported", span, format!("{what} not supported"), |d| {
                    d.label("expected plain code").help(instead)
                });
        }
        Some((end, false))
    }

    /// Handles a directive of conditional compilation up to `end`; returns the position of the next
    /// text to compile.
    fn conditional(&mut self, line: &[Range<usize>], end: usize) -> usize {
        let range = line[0].start..end;
        let word = self.str(&line[1]);
        let go_on = match word {
            "if" | "ifdef" | "ifndef" => {
                let holds = self.condition(word, line, end);
                self.groups.push(ConditionGroup {
                    range,
                    taken: holds,
                    last: false,
                });
                holds
            }
            "endif" => {
                if self.groups.pop().is_none() {
                    self.wrong(
                        &range,
                        "`#endif` closes nothing".into(),
                        "expected an `#if` before it",
                    );
                }
                true
            }
            _ => {
                let open = self.groups.last().map(|group| (group.taken, group.last));
                let Some((taken, false)) = open else {
                    self.wrong(
                        &range,
                        format!("`#{word}` belongs to nothing"),
                        "expected an `#if` before it",
                    );
                    return end;
                };
                let holds = !taken && (word == "else" || self.condition("if", line, end));
                if let Some(group) = self.groups.last_mut() {
                    (group.taken, group.last) = (taken || holds, word == "else");
                }
                holds
            }
        };
        if go_on { end } else { self.next_branch(end) }
    }

    /// The position of the next directive of the innermost `#if`.
    fn next_branch(&self, from: usize) -> usize {
        let mut open = 0;
        let behind = self
            .words
            .iter()
            .enumerate()
            .filter(|(_, w)| w.0.start >= from && w.1);
        for (n, (range, _)) in behind.filter(|(_, w)| self.str(&w.0) == "#") {
            match self.words.get(n + 1).map_or("", |w| self.str(&w.0)) {
                "if" | "ifdef" | "ifndef" => open += 1,
                "endif" | "elif" | "else" if open == 0 => return range.start,
                "endif" => open -= 1,
                _ => {}
            }
        }
        self.text.as_str().len()
    }

    /// Whether the code after a directive is compiled. Reports an error if only a compiler's
    /// command line decides it.
    fn condition(&mut self, word: &str, line: &[Range<usize>], end: usize) -> bool {
        let words: Vec<String> = line[2..].iter().map(|r| self.str(r).to_string()).collect();
        let number = match (word, words.as_slice()) {
            ("if", _) => self.number_of_file(&words),
            (_, [name]) if is_name(name) => {
                // `#ifndef N`, `#define N 4`: a default, used unless the code defines the name.
                let next: Vec<&str> = self.words[self.at + line.len()..]
                    .iter()
                    .take(3)
                    .map(|w| self.str(&w.0))
                    .collect();
                let default = word == "ifndef" && next == ["#", "define", name.as_str()];
                let number = match self.defined(name) {
                    Number::Unknown(_) if default => Number::Is(0),
                    number => number,
                };
                match conditional::truth(&number) {
                    Ok(defined) => Ok(Number::Is(i64::from(defined == (word == "ifdef")))),
                    Err(name) => Ok(Number::Unknown(name)),
                }
            }
            _ => Err(format!("`#{word}` takes one name")),
        };
        let range = line[0].start..end;
        let holds = number.map(|number| conditional::truth(&number));
        match holds {
            Ok(Ok(holds)) => holds,
            Ok(Err(name)) => {
                let span = self.text.span(range);
                self.sink.error(
                    "unsupported",
                    span,
                    "the code does not decide this branch",
                    |d| {
                        d.label(format!(
                            "it depends on `{name}`, and the command line of a compiler sets that"
                        ))
                        .help(format!(
                            "set it in the code: `#define {name} 1` or `#undef {name}`, or keep \
                            only one branch"
                        ))
                    },
                );
                true
            }
            Err(problem) => {
                self.wrong(
                    &range,
                    problem,
                    "expected a condition of numbers and macros",
                );
                true
            }
        }
    }

    /// 1 if a name is defined, else 0.
    fn defined(&self, name: &str) -> Number {
        if let Some(of) = self.macros.get(name) {
            return Number::Is(i64::from(!of.of_language));
        }
        if self.gone.contains(name) {
            return Number::Is(0);
        }
        match conditional::predefined(name, self.dialect) {
            Some(defined) => Number::Is(i64::from(defined.is_some())),
            // A compiler that is told nothing else compiles the file so.
            None if self.whole_file => Number::Is(0),
            None => Number::Unknown(name.to_string()),
        }
    }

    /// The value of a condition. In a whole file, it chooses the versions that decide the value.
    fn number_of_file(&mut self, words: &[String]) -> Result<Number, String> {
        loop {
            let number = self.number(words)?;
            let open = match conditional::truth(&number) {
                Err(name) if self.whole_file => conditional::chosen_version(&name),
                _ => None,
            };
            match open {
                Some((name, version)) if !self.versions.contains_key(name) => {
                    self.versions.insert(name, version);
                }
                _ => return Ok(number),
            }
        }
    }

    /// The value of a condition.
    fn number(&self, words: &[String]) -> Result<Number, String> {
        // `defined` takes names before their expansion. Its placeholder is no name that code can
        // have.
        let mut plain = Vec::new();
        let mut asked = Vec::new();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            if word != "defined" {
                plain.push(word.clone());
                continue;
            }
            let name = match &words[at..] {
                [open, name, close, ..]
                    if (open.as_str(), close.as_str()) == ("(", ")") && is_name(name) =>
                {
                    at += 3;
                    name
                }
                [name, ..] if is_name(name) => {
                    at += 1;
                    name
                }
                _ => return Err("`defined` takes a name".into()),
            };
            plain.push(format!("defined {}", asked.len()));
            asked.push(self.defined(name));
        }
        let (mut out, mut budget) = (Vec::new(), LONGEST);
        expand(
            &plain,
            &self.macros,
            &mut Vec::new(),
            0,
            &mut out,
            &mut budget,
        )?;
        conditional::value(&out, &|name| match name
            .strip_prefix("defined ")
            .and_then(|n| n.parse::<usize>().ok())
        {
            Some(n) => asked[n].clone(),
            None if name == "true" => Number::Is(1),
            None if name == "false" || self.gone.contains(name) => Number::Is(0),
            None => match self.versions.get(name).map_or_else(
                || conditional::predefined(name, self.dialect),
                |version| Some(Some(Number::Is(*version))),
            ) {
                Some(defined) => defined.unwrap_or(Number::Is(0)),
                None if self.whole_file => Number::Is(0),
                None => Number::Unknown(name.to_string()),
            },
        })
    }

    /// `#define NAME words`, `#define NAME(a, b) words`: the reason for a refusal, if any.
    fn define(&mut self, line: &[Range<usize>]) -> Option<(&'static str, &'static str)> {
        let words: Vec<&str> = line.iter().map(|r| self.str(r)).collect();
        let Some(name) = words.get(2).filter(|w| is_name(w)) else {
            return Some(("a macro without a name is", "write `#define NAME words`"));
        };
        let adjacent = line
            .get(3)
            .is_some_and(|r| r.start == line[2].end && self.str(r) == "(");
        let (parameters, body) = if adjacent {
            let Some(close) = words.iter().position(|w| *w == ")") else {
                return Some((
                    "a list of parameters without an end is",
                    "write `)` behind it",
                ));
            };
            let names: Vec<String> = words[4..close]
                .iter()
                .filter(|w| **w != ",")
                .map(|w| if *w == "..." { REST } else { *w }.to_string())
                .collect();
            if !names.iter().all(|n| is_name(n)) {
                return Some(("such parameters of macros are", "write the replacement"));
            }
            (Some(names), &words[close + 1..])
        } else {
            (None, &words[3..])
        };
        let names = parameters.as_deref().unwrap_or(&[]);
        let quotes_other = body.iter().enumerate().any(|(at, word)| {
            let next = body.get(at + 1).copied().unwrap_or("");
            *word == "#" && !names.iter().any(|name| name == next)
        });
        if quotes_other {
            return Some((
                "`#` in front of anything but a parameter is",
                "write the replacement",
            ));
        }
        let body: Vec<String> = body.iter().map(|w| w.to_string()).collect();
        if let Some(old) = self.macros.get(*name).filter(|old| !old.of_language)
            && (&old.parameters, &old.body) != (&parameters, &body)
        {
            return Some((
                "a macro with two definitions is",
                "give it another name, or `#undef` it first",
            ));
        }
        self.macros.insert(
            name.to_string(),
            Macro {
                parameters,
                of_template: false,
                body,
                depth: 0,
                of_language: false,
            },
        );
        None
    }

    /// Handles names for other names: `using namespace cuda;`, `namespace cg =
    /// cooperative_groups;`, `using T = int;`, `ndrange_t n = ndrange_1D(4);`. Returns the position
    /// after them; `None`: something else comes next.
    fn alias(&mut self, start: usize) -> Option<(usize, bool)> {
        let mut words = Vec::new();
        let mut end = None;
        for (range, _) in self.words[self.at..].iter().take(LONGEST_ALIAS) {
            match self.str(range) {
                ";" => {
                    end = Some(range.end);
                    break;
                }
                "{" | "}" => break,
                word => words.push(word),
            }
        }
        let end = end?;
        fn name_of(words: &[&str]) -> String {
            words.concat()
        }
        let mut refused = None;
        match words[..] {
            ["using", "namespace", ref name @ ..] => {
                if !NAMESPACES.contains(&name_of(name).trim_start_matches("::")) {
                    refused = Some((
                        "namespaces of your own are",
                        "expected a namespace of the libraries, such as `cuda`",
                    ));
                }
            }
            ["namespace", name, "=", ref of @ ..] | ["using", name, "=", ref of @ ..]
                if is_name(name) =>
            {
                let keyword = is_keyword(name, self.dialect);
                if keyword {
                    let span = self.text.span(start..end);
                    self.sink
                        .error("c-syntax", span, format!("`{name}` is a keyword"), |d| {
                            d.label("expected another name")
                        });
                } else if of.iter().all(|w| {
                    is_name(w)
                        || matches!(*w, "::" | "<" | ">" | ",")
                        || w.starts_with(|c: char| c.is_ascii_digit())
                }) || names_function_pointer(of)
                {
                    self.rename(name, of);
                } else {
                    refused = Some(("names of such types are", "write out the type"));
                }
            }
            // The sizes are numbers.
            ["ndrange_t", name, "=", ref of @ ..]
                if is_name(name) && of.first().is_some_and(|w| w.starts_with("ndrange_")) =>
            {
                self.rename(name, of);
            }
            ["using", ref name @ ..]
                if NAMESPACES.iter().any(|n| {
                    name_of(name)
                        .trim_start_matches("::")
                        .starts_with(&format!("{n}::"))
                }) => {}
            // A definition for the parser to accept or refuse.
            _ => return None,
        }
        if refused.is_some() && self.whole_file {
            // It may be the host's: an item that needs it is refused by the grammar.
            return None;
        }
        if let Some((what, instead)) = refused {
            let span = self.text.span(start..end);
            self.sink
                .error("unsupported", span, format!("{what} not supported"), |d| {
                    d.label("stands here").help(instead)
                });
        }
        Some((end, false))
    }

    /// Makes a name stand for other words.
    fn rename(&mut self, name: &str, words: &[&str]) {
        let body = words.iter().map(|w| w.to_string()).collect();
        self.macros.insert(
            name.to_string(),
            Macro {
                parameters: None,
                of_template: false,
                body,
                depth: self.depth,
                of_language: false,
            },
        );
    }

    /// Handles `template <class T> using R = S<T, 4>;`. Returns the position after it; `None`:
    /// something else comes next.
    fn alias_template(&mut self) -> Option<(usize, bool)> {
        let rest = &self.words[self.at..];
        let line: Vec<&str> = rest
            .iter()
            .take(LONGEST_ALIAS)
            .map(|word| self.str(&word.0))
            .take_while(|word| !matches!(*word, ";" | "{" | "}" | "("))
            .collect();
        let end = rest
            .get(line.len())
            .filter(|end| self.str(&end.0) == ";")?
            .0
            .end;
        let close = line.iter().position(|word| *word == ">")?;
        let ["using", name, "=", of @ ..] = line.get(close + 1..)? else {
            return None;
        };
        let parameters = line.get(2..close)?.split(|word| *word == ",");
        let names = parameters.map(|parameter| parameter.last().map(|name| name.to_string()));
        let body: Vec<String> = of
            .iter()
            .filter(|word| **word != "typename")
            .map(|word| word.to_string())
            .collect();
        let of = Macro {
            parameters: Some(names.collect::<Option<Vec<_>>>()?),
            of_template: true,
            body,
            depth: self.depth,
            of_language: false,
        };
        self.macros.insert(name.to_string(), of);
        Some((end, false))
    }

    /// Writes the expansion of a name, and returns the position after it. The text that was not
    /// copied yet begins at `from`.
    fn expansion(&mut self, range: &Range<usize>, from: usize) -> Option<(usize, bool)> {
        let word = self.str(range);
        let of = self.macros.get(word)?;
        let words = &self.words[self.at..];
        let mut end = range.end;
        let mut call = vec![word.to_string()];
        if of.parameters.is_some() {
            if self.word(1) != of.opening() {
                return None;
            }
            let mut open = 0;
            for (word, _) in &words[1..] {
                let text = self.str(word);
                call.push(text.to_string());
                end = word.end;
                open += of.nesting(text);
                if open <= 0 {
                    break;
                }
            }
        }
        let span = self.text.span(range.start..end);
        let mut out = Vec::new();
        let mut budget = LONGEST;
        let message = expand(
            &call,
            &self.macros,
            &mut Vec::new(),
            0,
            &mut out,
            &mut budget,
        )
        .err();
        self.out.push_slice(self.text, from..range.start);
        if let Some(message) = message {
            self.sink.error("c-syntax", span, message, |d| {
                d.label("expected a use of the macro as it is defined")
            });
        }
        let (before, behind) = self.text.as_str().split_at(range.start);
        let mut text = joined(&out);
        // A qualified name has no space in it.
        if behind[end - range.start..].starts_with("::") {
            text.truncate(text.trim_end().len());
        }
        if before.ends_with("::") {
            text.remove(0);
        }
        self.out.push_opaque(&text, span);
        Some((end, true))
    }
}

/// Joins words with spaces, except within qualified names.
fn joined(words: &[String]) -> String {
    let mut text = String::from(" ");
    for (n, word) in words.iter().enumerate() {
        text.push_str(word);
        if word != "::" && words.get(n + 1).is_none_or(|next| next != "::") {
            text.push(' ');
        }
    }
    text
}

/// Expands words into `out`, except for names in `hidden`.
fn expand(
    words: &[String],
    macros: &HashMap<String, Macro>,
    hidden: &mut Vec<String>,
    depth: usize,
    out: &mut Vec<String>,
    budget: &mut usize,
) -> Result<(), String> {
    if depth > MAX_NESTING {
        return Err("macros are nested too deeply here".to_string());
    }
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        *budget = budget
            .checked_sub(word.len() + 1)
            .ok_or("this macro expands to too long a text")?;
        let of = macros.get(word).filter(|_| !hidden.contains(word));
        let body = match of {
            None => None,
            Some(Macro {
                parameters: None,
                body,
                ..
            }) => Some(body.clone()),
            Some(Macro {
                parameters: Some(_),
                ..
            }) if words.get(at).map(String::as_str) != of.map(Macro::opening) => None,
            Some(
                of @ Macro {
                    parameters: Some(names),
                    body,
                    ..
                },
            ) => {
                let (mut arguments, behind) =
                    arguments(of, words, at).ok_or("this macro's arguments have no end")?;
                at = behind;
                if names.last().is_some_and(|name| name == REST) {
                    gather(&mut arguments, names.len());
                }
                let given = if names.is_empty() && arguments == [Vec::<String>::new()] {
                    0
                } else {
                    arguments.len()
                };
                if given != names.len() {
                    return Err(format!(
                        "the macro `{word}` takes {} arguments, {given} given",
                        names.len()
                    ));
                }
                let mut whole = Vec::new();
                for argument in &arguments {
                    let mut expanded = Vec::new();
                    expand(argument, macros, hidden, depth + 1, &mut expanded, budget)?;
                    whole.push(expanded);
                }
                Some(replaced(body, names, &arguments, &whole))
            }
        };
        match body {
            None => out.push(word.clone()),
            Some(body) => {
                hidden.push(word.clone());
                expand(&body, macros, hidden, depth + 1, out, budget)?;
                hidden.pop();
            }
        }
    }
    Ok(())
}

/// The text of a macro with its arguments: `whole` has them expanded, for all places but those
/// next to `##`.
fn replaced(
    body: &[String],
    names: &[String],
    arguments: &[Vec<String>],
    whole: &[Vec<String>],
) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let (mut pasted, mut quotes) = (false, false);
    for (at, word) in body.iter().enumerate() {
        if word == "##" {
            pasted = true;
            continue;
        }
        let next = body.get(at + 1);
        if let ("#", Some(n)) = (
            word.as_str(),
            next.and_then(|next| names.iter().position(|name| name == next)),
        ) {
            out.push(quoted(&arguments[n]));
            quotes = true;
            continue;
        }
        if std::mem::take(&mut quotes) {
            continue;
        }
        let pastes = pasted || body.get(at + 1).is_some_and(|next| next == "##");
        let mut put = match names.iter().position(|name| name == word) {
            Some(n) if pastes => arguments[n].clone(),
            Some(n) => whole[n].clone(),
            None => vec![word.clone()],
        };
        // `, ## __VA_ARGS__` without arguments leaves the comma out.
        if pasted && put.is_empty() && out.last().is_some_and(|last| last == ",") {
            out.pop();
        } else if pasted && !put.is_empty() && out.last().is_some_and(|last| last != ",") {
            let last = out.pop().unwrap_or_default();
            put[0] = last + &put[0];
        }
        out.extend(put);
        pasted = false;
    }
    out
}

/// The words of an argument as a string (ISO C++, cpp.stringize).
fn quoted(words: &[String]) -> String {
    let text = words.join(" ").replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

/// Joins the arguments for `...` to one.
fn gather(arguments: &mut Vec<Vec<String>>, names: usize) {
    if arguments.len() < names {
        arguments.push(Vec::new());
        return;
    }
    let rest = arguments.split_off(names - 1);
    arguments.push(rest.join(&",".to_owned()));
}

/// The arguments of a call with its `(` at word `at`, and the position after its `)`.
fn arguments(of: &Macro, words: &[String], at: usize) -> Option<(Vec<Vec<String>>, usize)> {
    let mut all = vec![Vec::new()];
    let mut open = 0;
    for (n, word) in words.iter().enumerate().skip(at) {
        open += of.nesting(word);
        match (word.as_str(), open) {
            ("(" | "<", 1) if n == at => {}
            // `>>` closes the alias and an argument.
            (">>", -1) if of.of_template => {
                return None;
            }
            (_, 0) => return Some((all, n + 1)),
            (",", 1) => all.push(Vec::new()),
            _ => all.last_mut()?.push(word.clone()),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use diag::SourceFile;

    fn read(code: &str) -> (String, String) {
        read_in(Dialect::Cuda, code)
    }

    fn read_in(dialect: Dialect, code: &str) -> (String, String) {
        let file = SourceFile::new("test", code);
        let mut sink = Sink::new(&file);
        let out = preprocess(MappedText::verbatim(code, 0), dialect, &mut sink);
        let text = diag::one_line(out.as_str());
        let found = sink.into_diagnostics();
        (
            text,
            found
                .iter()
                .map(|d| d.message.clone())
                .collect::<Vec<_>>()
                .join("; "),
        )
    }

    #[track_caller]
    fn reads(code: &str, expected: &str) {
        assert_eq!(read(code), (expected.to_string(), String::new()), "{code}");
    }

    #[test]
    fn functions_of_the_language_may_be_macros() {
        let (expanded, _) = read_in(Dialect::OpenCl, "event_t e; int r = sub_group_elect();");
        assert!(expanded.contains("int e;"), "{expanded}");
        assert!(expanded.contains("__sub_group_elect ( 1 )"), "{expanded}");
        let own = "#define sub_group_elect() 5\nint r = sub_group_elect();";
        let (expanded, errors) = read_in(Dialect::OpenCl, own);
        assert!(expanded.contains("= 5"), "{expanded}");
        assert_eq!(errors, "");
        let asked = "#ifdef sub_group_elect\nint a;\n#else\nint b;\n#endif";
        let (chosen, _) = read_in(Dialect::OpenCl, asked);
        assert!(!chosen.contains("int a"), "{chosen}");
        let (other, _) = read_in(Dialect::Cuda, "int r = sub_group_elect();");
        assert_eq!(other, "int r = sub_group_elect();");
    }

    #[test]
    fn directives_and_aliases_leave_code_without_them() {
        reads("#include <cuda/atomic>\n#pragma unroll 4\nx = 1;", "x = 1;");
        reads(
            "#define N 4\n#define M (N + 1)\nx = M; y = xN;",
            "x = ( 4 + 1 ) ; y = xN;",
        );
        reads(
            "#define LOAD(p) atomicAdd(p, 0)\nr = LOAD(&x) + LOAD(&y);",
            "r = atomicAdd ( & x , 0 ) + atomicAdd ( & y , 0 ) ;",
        );
        reads("#define A B\n#define B A\nA;", "A ;");
        reads("#define F(a, b) a##_##b = b\nF(x, y);", "x_y = y ;");
        reads(
            "#define F(f, ...) f(__VA_ARGS__)\nF(g, 1, (2, 3)); F(g);",
            "g ( 1 , ( 2 , 3 ) ) ; g ( ) ;",
        );
        reads(
            "template <class T> using R = S<T, 4>; R<int> r; R<U<int> > s;",
            "S < int , 4 > r; S < U < int > , 4 > s;",
        );
        reads(
            "#define S \\\n  cuda::thread_scope_device\nS;",
            "cuda::thread_scope_device ;",
        );
        reads("#define N 1\n#undef N\nN; \"N\" // N", "N; \"N\" // N");
        reads(
            "using namespace cuda; namespace cg = cooperative_groups; cg::sync(g);",
            "cooperative_groups::sync(g);",
        );
        reads(
            "{ using T = unsigned int; T r; } T s;",
            "{ unsigned int r; } T s;",
        );
        reads(
            "ndrange_t n = ndrange_1D(4, 2); f(q, n);",
            "f(q, ndrange_1D ( 4 , 2 ) );",
        );
        reads(
            "using R = cuda::atomic_ref<int, cuda::thread_scope_device>; R f(x);",
            "cuda::atomic_ref < int , cuda::thread_scope_device > f(x);",
        );
    }

    #[test]
    fn conditions_choose_what_is_compiled() {
        reads("#if 1\na;\n#else\nb;\n#endif\nc;", "a; c;");
        reads(
            "#if 0\na;\n#if 1\nx;\n#else\ny;\n#endif\n#elif 1\nb;\n#else\nc;\n#endif",
            "b;",
        );
        reads(
            "#define N 3\n#if N > 2 && !defined(M) || defined N\na;\n#endif",
            "a;",
        );
        reads("#ifndef N\n#define N 4\n#endif\nN;", "4 ;");
        reads("#undef DEBUG\n#ifdef DEBUG\na;\n#endif\nb;", "b;");
        reads(
            "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 600\na;\n#else\nb;\n#endif",
            "a;",
        );
        reads(
            "#if 700 > __CUDA_ARCH__\na;\n#endif\n#ifdef __OPENCL_VERSION__\nb;\n#endif\nc;",
            "c;",
        );
        reads(
            "#define A (1 << 4)\n#if A / 0x8 - 02 == 0 && -1 < +1\na;\n#endif",
            "a;",
        );
        // Text that is not compiled may be anything, and may depend on unknown names.
        reads("#if 0 && DEBUG\n# frob \"\n#endif\nb;", "b;");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (code, part) in [
            ("#include \"mine.h\"", "headers of your own"),
            (
                "#ifdef DEBUG\nx = 1;\n#endif",
                "the code does not decide this branch",
            ),
            (
                "#if __CUDA_ARCH__ >= 900\nx = 1;\n#endif",
                "the code does not decide this branch",
            ),
            ("#if 1\nx = 1;", "not closed"),
            ("#endif", "closes nothing"),
            ("#if 1\n#else\n#else\n#endif", "`#else` belongs to nothing"),
            ("#if (1\n#endif", "not closed"),
            ("#if 1 /\n#endif", "ends here"),
            ("#ifdef\n#endif", "takes one name"),
            ("#if defined(3)\n#endif", "`defined` takes a name"),
            ("#if 1 / 0\n#endif", "division by zero"),
            ("#pragma omp parallel", "this pragma"),
            ("#define F(a) #b\n", "`#` in front of anything"),
            ("#define N 1\n#define N 2", "two definitions"),
            ("#define F(a, b) a\nF(1);", "takes 2 arguments"),
            ("#define F(a) a\nF(1;", "no end"),
            ("using namespace mine;", "namespaces of your own"),
            ("using P = int *;", "such types"),
            ("#frob", "unknown directives"),
        ] {
            let (_, messages) = read(code);
            assert!(messages.contains(part), "{code}: {messages}");
        }
    }

    #[test]
    fn expansions_point_to_where_they_are_used() {
        let code = "#define N 4\nx = N;";
        let out = preprocess(
            MappedText::verbatim(code, 0),
            Dialect::Cuda,
            &mut Sink::new(&SourceFile::new("test", code)),
        );
        let at = out.as_str().find('4').unwrap();
        assert_eq!(out.span(at..at + 1), Span::new(16, 17));
    }

    #[test]
    fn growth_is_bounded() {
        let mut code = String::from("#define A0 x x\n");
        for n in 1..40 {
            code.push_str(&format!("#define A{n} A{} A{}\n", n - 1, n - 1));
        }
        assert!(read(&format!("{code}A39")).1.contains("too long"));
    }
}
