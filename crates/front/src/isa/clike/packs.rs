//! Writes out templates of functions with parameter packs: one function for each number of
//! arguments that calls give.
//!
//! # Invariants
//! - The functions have the name of the template, so that overload resolution chooses among them.
//!   The specifier [`INSTANCE`] marks them: a function without a pack goes before them.
//! - The text of an instance points to that of the template.
//! - Templates of classes, kernels, lambdas and constants with packs stay as they are: the parser
//!   refuses them.
//!
//! # Sources
//! - ISO C++, temp.variadic, expr.prim.fold, expr.sizeof, temp.func.order.

use std::collections::HashMap;
use std::ops::Range;

use super::text_words::{parts, words};
use diag::MappedText;

/// The specifier of functions that are written out here.
pub(super) const INSTANCE: &str = "__of_pack";

/// The largest number of arguments for a pack.
const MOST: usize = 16;

/// Arguments beyond those of the longest call: functions that forward a pack add some.
const FORWARDED: usize = 2;

/// The text with its templates written out.
pub(super) fn written_out(text: MappedText) -> MappedText {
    if !text.as_str().contains("...") || !text.as_str().contains("template") {
        return text;
    }
    let all: Vec<Range<usize>> = words(text.as_str()).into_iter().map(|w| w.0).collect();
    let source = Words {
        text: &text,
        all: &all,
    };
    let found: Vec<PackTemplate> = (0..all.len())
        .filter_map(|at| source.template(at))
        .collect();
    if found.is_empty() {
        return text;
    }
    let most = found.iter().map(|of| source.most_arguments(of)).max();
    let most = (most.unwrap_or(0) + FORWARDED).min(MOST);
    let mut out = MappedText::new();
    let mut from = 0;
    for of in &found {
        let start = all[of.whole.start].start;
        if start < from {
            continue;
        }
        out.push_slice(&text, from..start);
        for count in 0..=most {
            source.instance(of, count, &mut out);
        }
        from = all[of.whole.end - 1].end;
    }
    out.push_slice(&text, from..text.as_str().len());
    out
}

/// A template of a function that ends with packs of parameters; places are numbers of words.
struct PackTemplate {
    whole: Range<usize>,
    /// The parameters of the template, between `<` and `>`, and those before the pack.
    parameters: Range<usize>,
    /// The name of the pack of types.
    types: String,
    name: usize,
    /// The parameter of the function that is a pack, with the comma before it, and its name.
    pack: Range<usize>,
    values: String,
    /// The number of parameters before it.
    fixed: usize,
}

struct Words<'a> {
    text: &'a MappedText,
    all: &'a [Range<usize>],
}

impl Words<'_> {
    fn word(&self, at: usize) -> &str {
        self.all
            .get(at)
            .map_or("", |range| &self.text.as_str()[range.clone()])
    }

    /// The word behind the bracket that closes the one at `at`.
    fn behind(&self, at: usize) -> Option<usize> {
        let (open, close) = match self.word(at) {
            "(" => ("(", ")"),
            "[" => ("[", "]"),
            "{" => ("{", "}"),
            "<" => ("<", ">"),
            _ => return None,
        };
        let mut depth = 0usize;
        for i in at..self.all.len() {
            match self.word(i) {
                word if word == open => depth += 1,
                word if word == close => depth -= 1,
                ">>" if close == ">" => depth = depth.saturating_sub(2),
                ";" if close == ">" => return None,
                _ => {}
            }
            if depth == 0 {
                return Some(i + 1);
            }
        }
        None
    }

    /// The bracket that opens the group around word `at`.
    fn opening(&self, at: usize) -> usize {
        let mut depth = 0;
        for i in (0..at).rev() {
            match self.word(i) {
                ")" | "]" | "}" => depth += 1,
                "(" | "[" | "{" if depth == 0 => return i,
                "(" | "[" | "{" => depth -= 1,
                _ => {}
            }
        }
        0
    }

    /// The parts of a list between its commas.
    fn parts(&self, list: Range<usize>) -> Vec<Range<usize>> {
        parts(list, |at| self.word(at), |at| self.behind(at))
    }

    /// The template with a pack that begins at a word, if one does.
    fn template(&self, at: usize) -> Option<PackTemplate> {
        if (self.word(at), self.word(at + 1)) != ("template", "<") {
            return None;
        }
        let behind = self.behind(at + 1)?;
        let parameters = at + 2..behind - 1;
        let last = self.parts(parameters.clone()).pop()?;
        let mut packs = parameters.clone().filter(|&i| self.word(i) == "...");
        let is_type = matches!(self.word(last.start), "typename" | "class");
        if packs.next()? != last.start + 1 || packs.next().is_some() || !is_type {
            return None;
        }
        let types = self.word(last.start + 2).to_owned();
        let name = (behind..self.all.len())
            .take_while(|&i| !matches!(self.word(i), "{" | ";" | "struct" | "class" | "__global__"))
            .find(|&i| self.word(i + 1) == "(" && !self.word(i).starts_with("__"))?;
        if !self
            .word(name)
            .starts_with(|c: char| c.is_alphabetic() || c == '_')
        {
            return None;
        }
        if (behind..name).any(|i| self.word(i) == "__global__") {
            return None;
        }
        let close = self.behind(name + 1)?;
        let given = self.parts(name + 2..close - 1);
        let pack = given.last()?.clone();
        let dots = pack.clone().find(|&i| self.word(i) == "...")?;
        let brace = (close..self.all.len()).find(|&i| matches!(self.word(i), "{" | ";"))?;
        let end = match self.word(brace) {
            "{" => self.behind(brace)?,
            _ => brace + 1,
        };
        let named = dots + 1 < pack.end;
        Some(PackTemplate {
            whole: at..end,
            parameters,
            types,
            name,
            values: if named {
                self.word(dots + 1).to_owned()
            } else {
                String::new()
            },
            pack,
            fixed: given.len() - 1,
        })
    }

    /// The largest number of arguments that a call gives the pack.
    fn most_arguments(&self, of: &PackTemplate) -> usize {
        let name = self.word(of.name);
        let calls = (0..self.all.len()).filter(|&i| self.word(i) == name && i != of.name);
        let given = calls.filter_map(|i| {
            let open = match self.word(i + 1) {
                "<" => self.behind(i + 1)?,
                _ => i + 1,
            };
            if self.word(open) != "(" {
                return None;
            }
            let close = self.behind(open)?;
            Some(self.parts(open + 1..close - 1).len())
        });
        given.max().unwrap_or(0).saturating_sub(of.fixed)
    }

    /// Writes the function for a number of arguments.
    fn instance(&self, of: &PackTemplate, count: usize, out: &mut MappedText) {
        let body = of.pack.end..of.whole.end;
        if count == 0 && body.clone().any(|i| self.needs_one(i)) {
            return;
        }
        let parameters = self.parts(of.parameters.clone());
        let own = parameters.len() - 1;
        let mut writer = Writer {
            words: self,
            of,
            out,
        };
        if own + count > 0 {
            writer.plain(of.whole.start..of.parameters.start);
            for (n, part) in parameters[..own].iter().enumerate() {
                writer.comma(n);
                writer.plain(part.clone());
            }
            for n in 0..count {
                writer.comma(own + n);
                writer.made(
                    of.parameters.end - 1,
                    &format!("typename {}", numbered(&of.types, n)),
                );
            }
            writer.plain(of.parameters.end..of.parameters.end + 1);
        }
        writer.made(of.name, INSTANCE);
        writer.plain(of.parameters.end + 1..of.name + 2);
        let fixed = self.parts(of.name + 2..of.pack.end);
        for (n, part) in fixed[..of.fixed].iter().enumerate() {
            writer.comma(n);
            writer.plain(part.clone());
        }
        let dots = of.pack.clone().find(|&i| self.word(i) == "...");
        let dots = dots.unwrap_or(of.pack.end);
        for n in 0..count {
            writer.comma(of.fixed + n);
            writer.numbered(of.pack.start..dots, n);
            if !of.values.is_empty() {
                writer.made(dots + 1, &numbered(&of.values, n));
            }
        }
        writer.expanded(body, count);
        writer
            .out
            .push_opaque("\n", self.text.span(self.all[of.name].clone()));
    }

    /// Whether the `...` at a word folds a pack that must not be empty.
    fn needs_one(&self, at: usize) -> bool {
        if self.word(at) != "..." || !self.folds(at) {
            return false;
        }
        let (before, after) = (self.word(at - 1), self.word(at + 1));
        let unary = before == "(" || after == ")";
        let op = if before == "(" { after } else { before };
        unary && !matches!(op, "&&" | "||" | ",")
    }

    /// Whether the `...` at a word is that of a fold expression.
    fn folds(&self, at: usize) -> bool {
        let before = self.word(at - 1);
        let operand = before.starts_with(|c: char| c.is_alphanumeric() || c == '_')
            || matches!(before, ")" | "]" | "}" | ">");
        !operand && before != "sizeof"
    }
}

/// The name of one of a pack.
fn numbered(name: &str, n: usize) -> String {
    format!("{name}__{n}")
}

struct Writer<'w, 'o> {
    words: &'w Words<'w>,
    of: &'w PackTemplate,
    out: &'o mut MappedText,
}

impl Writer<'_, '_> {
    /// Writes words as they are, with the space between them.
    fn plain(&mut self, range: Range<usize>) {
        for at in range {
            let start = self.words.all[at].start;
            let end = self
                .words
                .all
                .get(at + 1)
                .map_or(self.words.all[at].end, |next| next.start);
            self.out.push_slice(self.words.text, start..end);
        }
    }

    /// Writes a text in the place of a word.
    fn made(&mut self, at: usize, text: &str) {
        let span = self.words.text.span(self.words.all[at].clone());
        self.out.push_opaque(&format!(" {text} "), span);
    }

    /// Writes the comma before part `n` of a list.
    fn comma(&mut self, n: usize) {
        if n > 0 {
            self.made(self.of.name, ",");
        }
    }

    /// Writes words with the names of element `n` of the packs.
    fn numbered(&mut self, range: Range<usize>, n: usize) {
        for at in range {
            match self.words.word(at) {
                word if word == self.of.types || word == self.of.values => {
                    let name = numbered(word, n);
                    self.made(at, &name);
                }
                _ => self.plain(at..at + 1),
            }
        }
    }

    /// Whether words name a pack.
    fn has_pack(&self, mut range: Range<usize>) -> bool {
        range.any(|i| {
            [&self.of.types, &self.of.values]
                .iter()
                .any(|n| *n == self.words.word(i))
        })
    }

    /// Writes words with their expansions and folds.
    fn expanded(&mut self, range: Range<usize>, count: usize) {
        let words = self.words;
        let dots: Vec<usize> = range.clone().filter(|&i| words.word(i) == "...").collect();
        // The words that each expansion replaces.
        let mut replaced: HashMap<usize, (Range<usize>, usize)> = HashMap::new();
        for at in dots {
            let whole = self.replaced_by(at, count);
            replaced.insert(whole.start, (whole, at));
        }
        let mut at = range.start;
        while at < range.end {
            let Some((whole, dots)) = replaced.get(&at).cloned() else {
                self.plain(at..at + 1);
                at += 1;
                continue;
            };
            match () {
                () if words.word(dots - 1) == "sizeof" => self.made(dots, &count.to_string()),
                () if words.folds(dots) => self.fold(whole.clone(), dots, count),
                () => {
                    let start = whole.start + usize::from(words.word(whole.start) == ",");
                    let lead = start > whole.start;
                    for n in 0..count {
                        self.comma(n + usize::from(lead));
                        self.numbered(start..dots, n);
                    }
                }
            }
            at = whole.end;
        }
    }

    /// The words that the `...` at a word replaces, with those that it repeats.
    fn replaced_by(&self, at: usize, count: usize) -> Range<usize> {
        let words = self.words;
        if words.word(at - 1) == "sizeof" {
            return at - 1..words.behind(at + 1).unwrap_or(at + 1);
        }
        let open = words.opening(at);
        if words.folds(at) {
            return open..words.behind(open).unwrap_or(at + 1);
        }
        let close = words.behind(open).unwrap_or(at + 1) - 1;
        let part = words
            .parts(open + 1..close)
            .into_iter()
            .find(|part| part.contains(&at));
        let start = part.map_or(at, |part| part.start);
        let comma = words.word(start - 1) == ",";
        // Without elements, the comma next to them goes, too.
        let after = count == 0 && !comma && words.word(at + 1) == ",";
        start - usize::from(comma)..at + 1 + usize::from(after)
    }

    /// `(v + ...)`, `(... + v)`, `(v + ... + 0)`, `(0 + ... + v)`
    fn fold(&mut self, whole: Range<usize>, dots: usize, count: usize) {
        let words = self.words;
        let (first, last) = (whole.start + 1, whole.end - 1);
        let left = first..dots.saturating_sub(1).max(first);
        let right = (dots + 2).min(last)..last;
        let (op, one, init, from_left) = match (dots == first, dots + 1 == last) {
            (true, _) => (dots + 1, right, None, true),
            (_, true) => (dots - 1, left, None, false),
            _ if self.has_pack(left.clone()) => (dots - 1, left, Some(right), false),
            _ => (dots - 1, right, Some(left), true),
        };
        let sign = words.word(op).to_owned();
        let operands: Vec<Option<usize>> = match (&init, from_left) {
            (Some(_), true) => std::iter::once(None).chain((0..count).map(Some)).collect(),
            (Some(_), false) => (0..count).map(Some).chain([None]).collect(),
            (None, _) => (0..count).map(Some).collect(),
        };
        if operands.is_empty() {
            let empty = if sign == "&&" { "true" } else { "false" };
            return self.made(dots, if sign == "," { "0" } else { empty });
        }
        let depth = operands.len() - 1;
        self.made(op, "(");
        if from_left {
            self.made(op, &"(".repeat(depth));
        }
        for (n, operand) in operands.iter().enumerate() {
            if n > 0 {
                self.made(op, &sign);
            }
            if !from_left {
                self.made(op, "(");
            }
            match (operand, &init) {
                (Some(element), _) => self.numbered(one.clone(), *element),
                (None, Some(init)) => self.plain(init.clone()),
                (None, None) => {}
            }
            if from_left && n > 0 {
                self.made(op, ")");
            }
        }
        if !from_left {
            self.made(op, &")".repeat(operands.len()));
        }
        self.made(op, ")");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(code: &str) -> String {
        let text = written_out(MappedText::verbatim(code, 0));
        let words = words(text.as_str());
        let all: Vec<&str> = words.into_iter().map(|w| &text.as_str()[w.0]).collect();
        all.join(" ")
    }

    #[test]
    fn a_function_is_written_out_for_each_number_of_arguments() {
        let made = squeezed(
            "template <class T, class... R> T f(T a, R... r) { return g(a, r * 2 ...); }\n\
             int n = f(1, 2);",
        );
        for part in [
            "template < class T > __of_pack T f ( T a ) { return g ( a ) ; }",
            "template < class T , typename R__0 , typename R__1 > __of_pack T f ( T a , R__0 r__0 \
             , R__1 r__1 ) { return g ( a , r__0 * 2 , r__1 * 2 ) ; }",
        ] {
            assert!(made.contains(part), "{part}\n{made}");
        }
    }

    #[test]
    fn folds_keep_the_side_from_which_they_begin() {
        let of = |fold: &str| {
            let code = format!("template <class... T> int f(T... v) {{ return {fold}; }} f(1, 2);");
            squeezed(&code)
        };
        for (fold, part) in [
            ("(v - ...)", "return ( ( v__0 - ( v__1 ) ) )"),
            ("(... - v)", "return ( ( v__0 - v__1 ) )"),
            ("(v - ... - 9)", "return ( ( v__0 - ( v__1 - ( 9 ) ) ) )"),
            ("(9 - ... - v)", "return ( ( ( 9 - v__0 ) - v__1 ) )"),
            ("sizeof...(v)", "return 2 ;"),
        ] {
            let made = of(fold);
            assert!(made.contains(part), "{fold}: {part}\n{made}");
        }
        // An empty pack has no sum, but it has a conjunction.
        assert!(!of("(v + ...)").contains("f ( )"));
        assert!(of("(v && ...)").contains("f ( ) { return true ; }"));
    }

    #[test]
    fn other_packs_stay_for_the_parser() {
        for code in [
            "template <class... T> struct S { };",
            "template <int... N> int f() { return 0; }",
            "template <class... T> __global__ void k(T... v) { }",
            "int f(int n, ...);",
        ] {
            assert_eq!(written_out(MappedText::verbatim(code, 0)).as_str(), code);
        }
    }
}
