//! The items of a whole source file: which of its functions, types and variables a kernel needs.
//!
//! A source file holds several kernels, and code of the host. The parser reads a kernel with the
//! items that it names, and with those that these name. All other items may be anything.
//!
//! # Invariants
//! - Items do not overlap and come in the order of the file. A namespace, and `extern "C" { … }`,
//!   gives its items as items of the file.
//! - An item that declares no name belongs to no kernel.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use super::Language;
use super::text_words::words;
use super::words::is_keyword;
use diag::MappedText;

/// Words that make a function a kernel.
const KERNEL_WORDS: [&str; 3] = ["__global__", "kernel", "__kernel"];

/// Says how many blocks a cluster has.
const CLUSTER: &str = "__cluster_dims__";

/// Say how many threads a block has: at most, or exactly.
pub(super) const LIMITS: [&str; 2] = ["__launch_bounds__", "reqd_work_group_size"];

/// Specifiers and attributes that take arguments in parentheses, so that no function has such a
/// name.
const WITH_ARGUMENTS: [&str; 9] = [
    "__launch_bounds__",
    "__maxnreg__",
    CLUSTER,
    "__block_size__",
    "__attribute__",
    "__attribute",
    "alignas",
    "__align__",
    "__declspec",
];

/// One item of a file.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Its place in the text.
    pub(super) range: Range<usize>,
    /// The names that it declares.
    pub(super) names: Vec<String>,
    /// The words that it is made of.
    words: BTreeSet<String>,
    /// Whether it is a function with its body.
    pub(super) is_function: bool,
    /// The place of its name, if it is a kernel.
    pub(super) kernel: Option<Range<usize>>,
    /// The place of its cluster size, which is a part of its launch.
    pub(super) cluster: Option<Range<usize>>,
    /// The place of its limit of threads in a block.
    pub(super) limit: Option<Range<usize>>,
}

impl Item {
    /// Whether it declares that name.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    /// The words that it is made of.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }
}

/// Splits a text without directives into its items.
pub(super) fn items(text: &MappedText, language: &Language) -> Vec<Item> {
    let source = text.as_str();
    let all: Vec<Range<usize>> = words(source).into_iter().map(|word| word.0).collect();
    let mut splitter = Splitter {
        source,
        language,
        all: &all,
        found: Vec::new(),
    };
    splitter.split(0, all.len());
    splitter.found
}

/// The text of a kernel and of all that it needs.
pub(super) fn needed(text: &MappedText, items: &[Item], kernel: &Range<usize>) -> MappedText {
    let mut kept = vec![false; items.len()];
    let mut open: Vec<usize> = (0..items.len())
        .filter(|&i| items[i].kernel.as_ref() == Some(kernel))
        .collect();
    while let Some(at) = open.pop() {
        if std::mem::replace(&mut kept[at], true) {
            continue;
        }
        let others = items
            .iter()
            .enumerate()
            .filter(|(_, item)| item.kernel.is_none());
        open.extend(
            others
                .filter(|(i, item)| {
                    !kept[*i] && item.names.iter().any(|n| items[at].words.contains(n))
                })
                .map(|(i, _)| i),
        );
    }
    let mut out = MappedText::new();
    for item in items
        .iter()
        .zip(kept)
        .filter(|(_, kept)| *kept)
        .map(|(item, _)| item)
    {
        let Range { start, end } = item.range;
        let cut = item.cluster.clone().unwrap_or(start..start);
        out.push_slice(text, start..cut.start);
        out.push_slice(text, cut.end..end);
        out.push_opaque("\n", text.span(item.range.end..item.range.end));
    }
    out
}

struct Splitter<'a> {
    source: &'a str,
    language: &'a Language,
    all: &'a [Range<usize>],
    found: Vec<Item>,
}

impl<'a> Splitter<'a> {
    fn word(&self, at: usize) -> &'a str {
        self.all
            .get(at)
            .map_or("", |range| &self.source[range.clone()])
    }

    fn is_name(&self, at: usize) -> bool {
        let word = self.word(at);
        let starts = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        starts && !is_keyword(word, self.language.dialect)
    }

    /// The word behind the parenthesis, bracket or brace that closes the one at `at`.
    fn behind(&self, at: usize, end: usize) -> usize {
        let mut open = 0usize;
        for i in at..end {
            match self.word(i) {
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => open = open.saturating_sub(1),
                _ => {}
            }
            if open == 0 {
                return i + 1;
            }
        }
        end
    }

    fn split(&mut self, from: usize, end: usize) {
        let mut at = from;
        while at < end {
            let head = at;
            let mut list = None;
            let mut body = None;
            while at < end && self.word(at) != ";" {
                match self.word(at) {
                    "(" => {
                        if !WITH_ARGUMENTS.contains(&self.word(at.max(1) - 1)) || at == head {
                            list = Some(at);
                        }
                        at = self.behind(at, end);
                    }
                    "[" => at = self.behind(at, end),
                    "{" if self.is_wrapper(head, at) => break,
                    "{" => {
                        let close = self.behind(at, end);
                        body.get_or_insert(at);
                        at = close;
                        // A body ends its function; an initialiser or a structure goes on to `;`.
                        let is_function = !self.is_type(head) && list.is_some_and(|l| l < close);
                        if self.word(close) != ";"
                            && is_function
                            && !self.assigns(head, body.unwrap_or(at))
                        {
                            break;
                        }
                    }
                    "}" => {
                        at += 1;
                        break;
                    }
                    _ => at += 1,
                }
            }
            if self.word(at) == "{" {
                let close = self.behind(at, end);
                self.split(at + 1, close.saturating_sub(1).max(at + 1));
                at = close;
                continue;
            }
            if self.word(at) == ";" {
                at += 1;
            }
            self.add(head..at, list, body);
        }
    }

    /// Finds `namespace a {` and `extern "C" {`; word `at` is the `{`.
    fn is_wrapper(&self, head: usize, at: usize) -> bool {
        let first = self.word(head);
        first == "namespace" || (first == "inline" && self.word(head + 1) == "namespace") || {
            first == "extern" && self.word(head + 1).starts_with('"') && at == head + 2
        }
    }

    fn is_type(&self, head: usize) -> bool {
        let typed = ["struct", "class", "union", "enum", "typedef"];
        let first = self.behind_template(head);
        // `struct S f() { … }` is a function; the name of a structure comes before its brace.
        typed.contains(&self.word(first))
            && (first..self.all.len())
                .find(|&i| match self.word(i) {
                    "{" | ";" => true,
                    "(" => !WITH_ARGUMENTS.contains(&self.word(i.max(1) - 1)),
                    _ => false,
                })
                .is_some_and(|i| self.word(i) != "(")
    }

    /// The word behind the parameters of a template, if one begins at `head`.
    fn behind_template(&self, head: usize) -> usize {
        let mut at = head;
        while self.word(at) == "template" && self.word(at + 1) == "<" {
            let mut open = 0i32;
            at += 1;
            while at < self.all.len() {
                open += match self.word(at) {
                    "<" => 1,
                    ">" => -1,
                    ">>" => -2,
                    _ => 0,
                };
                at += 1;
                if open <= 0 {
                    break;
                }
            }
        }
        at
    }

    /// Whether a value is given between two words, outside of parentheses.
    fn assigns(&self, head: usize, body: usize) -> bool {
        let mut at = self.behind_template(head);
        while at < body {
            match self.word(at) {
                "(" | "[" => at = self.behind(at, body),
                "operator" => at += 2,
                "=" => return true,
                _ => at += 1,
            }
        }
        false
    }

    fn add(&mut self, words: Range<usize>, list: Option<usize>, body: Option<usize>) {
        if words.len() < 2 {
            return;
        }
        let head = words.start..body.unwrap_or(words.end).min(words.end);
        let is_function = body.is_some()
            && list.is_some_and(|l| head.contains(&l))
            && !self.is_type(words.start)
            && !self.assigns(words.start, head.end);
        let (mut names, mut kernel) = (Vec::new(), None);
        if is_function {
            // The first list of parentheses behind a name is that of its parameters.
            let named = self.named(head.clone());
            // `template <> int f<int>(…)`
            let named = named.or_else(|| self.before_arguments(list?));
            // An operator is used without its name: it goes with the types of its parameters.
            if let Some(operator) = head.clone().find(|&i| self.word(i) == "operator") {
                let rest = (operator..head.end).filter(|&i| self.is_name(i));
                names.extend(rest.map(|i| self.word(i).to_owned()));
            } else if let Some(name) = named {
                names.push(self.word(name).to_owned());
                if (head.start..name).any(|i| KERNEL_WORDS.contains(&self.word(i))) {
                    kernel = Some(self.all[name].clone());
                }
            }
        } else {
            names = self.declared(&words, body);
        }
        let own: HashSet<&str> = names.iter().map(String::as_str).collect();
        let inside = words
            .clone()
            .filter(|&i| self.is_name(i))
            .map(|i| self.word(i));
        let inside = inside
            .filter(|word| !own.contains(word))
            .map(str::to_owned)
            .collect();
        let with_arguments = |i: usize| {
            let last = self.behind(i + 1, words.end) - 1;
            self.all[i].start..self.all[last].end
        };
        let clustered = head.clone().find(|&i| self.word(i) == CLUSTER);
        let limited = head.clone().find(|&i| LIMITS.contains(&self.word(i)));
        self.found.push(Item {
            cluster: clustered.map(with_arguments),
            limit: limited.map(with_arguments),
            range: self.all[words.start].start..self.all[words.end - 1].end,
            names,
            words: inside,
            is_function,
            kernel,
        });
    }

    /// The first name before parentheses, apart from specifiers and attributes with arguments.
    fn named(&self, head: Range<usize>) -> Option<usize> {
        let mut at = head.start;
        while at < head.end {
            if WITH_ARGUMENTS.contains(&self.word(at)) {
                at = self.behind(at + 1, head.end).max(at + 1);
                continue;
            }
            if self.word(at + 1) == "(" && self.is_name(at) {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    /// The name before the arguments of a template, which end before word `at`.
    fn before_arguments(&self, at: usize) -> Option<usize> {
        let mut open = 0i32;
        for i in (0..at).rev() {
            open += match self.word(i) {
                ">" => 1,
                ">>" => 2,
                "<" => -1,
                _ => 0,
            };
            if open <= 0 {
                return i
                    .checked_sub(1)
                    .filter(|&i| self.word(i + 1) == "<" && self.is_name(i));
            }
        }
        None
    }

    /// The names that a declaration declares: of types, variables and enumerators.
    fn declared(&self, words: &Range<usize>, body: Option<usize>) -> Vec<String> {
        let is_enum = words.clone().take(3).any(|i| self.word(i) == "enum");
        let tag = |i: usize| ["struct", "class", "union", "enum"].contains(&self.word(i));
        // `template int f<float>(float *p);` names an instance, and declares no `p`.
        if self.word(words.start) == "template" && self.word(words.start + 1) != "<" {
            let named = |&i: &usize| self.is_name(i) && ["<", "(", ";"].contains(&self.word(i + 1));
            let name = (words.start + 1..words.end).find(named);
            return name.map(|i| self.word(i).to_owned()).into_iter().collect();
        }
        let mut names = Vec::new();
        // The parameters of a template are names of its own.
        let mut at = self.behind_template(words.start);
        while at < words.end {
            let inside = body == Some(at);
            if inside && !is_enum {
                at = self.behind(at, words.end);
                continue;
            }
            // The classes behind `:` are declared elsewhere.
            if self.word(at) == ":" && body.is_some_and(|body| at < body) {
                at = body.unwrap_or(at);
                continue;
            }
            let ends = ["=", ";", ",", "[", "{", "(", "}", ":"].contains(&self.word(at + 1));
            let before = at.checked_sub(1).filter(|b| *b >= words.start);
            let typed = before
                .is_some_and(|b| !["=", "(", "[", "<", "::"].contains(&self.word(b)) || is_enum);
            // `typedef int (*f)(int);`
            let points = self.word(at + 1) == ")"
                && before.is_some_and(|b| self.word(b) == "*" && self.word(b.max(1) - 1) == "(");
            if self.is_name(at) && typed && (ends || points || before.is_some_and(tag)) {
                names.push(self.word(at).to_owned());
                // So are those of a function that is only declared.
                if self.word(at + 1) == "(" && self.word(at + 2) != "*" {
                    at = self.behind(at + 1, words.end);
                    continue;
                }
            }
            at += 1;
        }
        names
    }
}
