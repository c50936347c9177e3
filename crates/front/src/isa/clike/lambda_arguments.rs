//! Writes out kernels that are launched with lambdas or function objects.
//!
//! `k<<<1, 32>>>(n, [=] __device__ (int i) { … })` becomes a launch of a kernel that has the lambda
//! in it, with its captured variables as parameters. `k<<<1, 32>>>(n, Add(p))` is treated alike.
//!
//! # Invariants
//! - A kernel is written out if each of its launches has such an argument, and if declarations show
//!   the types of the variables in it. Any other kernel stays as it is.
//! - The text of a written kernel points to that of the kernel and of the argument.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *Extended Lambdas*: captures are copies.
//! - ISO C++, expr.prim.lambda.capture.
//!
//! # Where we differ
//! - A function object is made by each thread from the values that the host has.

use std::collections::HashSet;
use std::ops::Range;

use super::text_words::{parts, words};
use diag::MappedText;

/// Words that end no type.
const NO_TYPES: [&str; 9] = [
    "return", "else", "goto", "case", "new", "delete", "auto", "typename", "template",
];

/// The text with its kernels written out.
pub(super) fn written_out(text: MappedText) -> MappedText {
    let source = text.as_str();
    if !source.contains("<<<") || !source.contains("template") {
        return text;
    }
    let all: Vec<Range<usize>> = words(source).into_iter().map(|w| w.0).collect();
    let source = LaunchText {
        text: &text,
        all: &all,
    };
    let kernels: Vec<(TemplateKernel, Vec<LambdaLaunch>)> = source
        .kernels()
        .into_iter()
        .filter_map(|kernel| {
            let launches = source.launches(&kernel)?;
            (!launches.is_empty()).then_some((kernel, launches))
        })
        .collect();
    if kernels.is_empty() {
        return text;
    }
    let mut edits: Vec<(Range<usize>, MappedText)> = Vec::new();
    for (kernel, launches) in &kernels {
        let mut written = MappedText::new();
        for (number, launch) in launches.iter().enumerate() {
            let name = match number {
                0 => source.word(kernel.name).to_owned(),
                n => format!("{}_{}", source.word(kernel.name), n + 1),
            };
            source.write_kernel(kernel, launch, &name, &mut written);
            edits.push(source.write_launch(launch, &name));
        }
        let whole = all[kernel.whole.start].start..all[kernel.whole.end - 1].end;
        edits.push((whole, written));
    }
    edits.sort_by_key(|edit| edit.0.start);
    let mut out = MappedText::new();
    let mut from = 0;
    for (range, written) in edits {
        if range.start < from {
            continue;
        }
        out.push_slice(&text, from..range.start);
        out.push_slice(&written, 0..written.as_str().len());
        from = range.end;
    }
    out.push_slice(&text, from..text.as_str().len());
    out
}

/// A kernel that is a template; places are numbers of words.
struct TemplateKernel {
    whole: Range<usize>,
    /// The parameters of the template.
    template: Vec<Range<usize>>,
    /// The words between the template's parameters and the name.
    head: Range<usize>,
    name: usize,
    params: Vec<Range<usize>>,
    /// The words between the braces.
    body: Range<usize>,
}

/// A launch with lambdas.
struct LambdaLaunch {
    name: usize,
    /// The sizes, with the brackets and the `(` behind them.
    configuration: Range<usize>,
    arguments: Vec<Range<usize>>,
    /// The number of the parameter, and the parts of the lambda or the function object.
    lambdas: Vec<(usize, Vec<Range<usize>>)>,
    /// The captured variables with their types.
    captures: Vec<(String, String)>,
    /// The `)`.
    end: usize,
}

struct LaunchText<'a> {
    text: &'a MappedText,
    all: &'a [Range<usize>],
}

impl<'a> LaunchText<'a> {
    fn word(&self, at: usize) -> &'a str {
        let text: &'a MappedText = self.text;
        self.all
            .get(at)
            .map_or("", |range| &text.as_str()[range.clone()])
    }

    fn is_name(&self, at: usize) -> bool {
        let word = self.word(at);
        word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }

    /// The bytes of words.
    fn bytes(&self, of: &Range<usize>) -> Range<usize> {
        match of.is_empty() {
            true => self.all[of.start].start..self.all[of.start].start,
            false => self.all[of.start].start..self.all[of.end - 1].end,
        }
    }

    /// The word behind the bracket that closes the one at `at`.
    fn behind(&self, at: usize) -> Option<usize> {
        let mut depth = 0usize;
        for i in at..self.all.len() {
            match self.word(i) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return Some(i + 1);
            }
        }
        None
    }

    /// The parts of a list between its commas.
    fn parts(&self, list: Range<usize>) -> Vec<Range<usize>> {
        parts(list, |at| self.word(at), |at| self.behind(at))
    }

    fn kernels(&self) -> Vec<TemplateKernel> {
        (0..self.all.len())
            .filter_map(|at| self.kernel(at))
            .collect()
    }

    /// The kernel whose template begins at `at`.
    fn kernel(&self, at: usize) -> Option<TemplateKernel> {
        if self.word(at) != "template" || self.word(at + 1) != "<" {
            return None;
        }
        let close = (at + 2..self.all.len()).find(|i| [">", ";", "{"].contains(&self.word(*i)))?;
        let open = (close + 1..self.all.len()).find(|i| ["{", ";"].contains(&self.word(*i)))?;
        let head = close + 1..open;
        if self.word(close) != ">" || !head.clone().any(|i| self.word(i) == "__global__") {
            return None;
        }
        let behind = (close + 1..=open).rfind(|i| self.word(*i) == ")")?;
        let start = (close + 1..behind).find(|i| {
            self.word(*i) == "(" && self.behind(*i) == Some(behind + 1) && self.is_name(i - 1)
        })?;
        let end = self.behind(open)?;
        Some(TemplateKernel {
            whole: at..end,
            template: self.parts(at + 2..close),
            head: close + 1..start - 1,
            name: start - 1,
            params: self.parts(start + 1..behind),
            body: open + 1..end - 1,
        })
    }

    /// The launches of a kernel; `None`: one of them has no lambda, or one that stays.
    fn launches(&self, kernel: &TemplateKernel) -> Option<Vec<LambdaLaunch>> {
        let name = self.word(kernel.name);
        let starts = (0..self.all.len()).filter(|i| {
            self.word(*i) == name && self.word(i + 1) == "<<" && self.word(i + 2) == "<"
        });
        starts.map(|at| self.launch(kernel, at)).collect()
    }

    fn launch(&self, kernel: &TemplateKernel, at: usize) -> Option<LambdaLaunch> {
        let open = (at + 3..self.all.len()).find(|i| {
            self.word(*i) == ">>" && self.word(i + 1) == ">" && self.word(i + 2) == "("
        })? + 2;
        let end = self.behind(open)? - 1;
        let arguments = self.parts(open + 1..end);
        if arguments.len() != kernel.params.len() {
            return None;
        }
        let mut lambdas = Vec::new();
        let mut captures = Vec::new();
        for (n, argument) in arguments.iter().enumerate() {
            let object = match self.lambda(argument, at) {
                Some(lambda) => Some(vec![lambda]),
                None => self.function_object(argument, at),
            };
            let Some(parts) = object.filter(|_| self.is_open(kernel, n)) else {
                continue;
            };
            for part in &parts {
                self.captures(part, at, &mut captures)?;
            }
            lambdas.push((n, parts));
        }
        (!lambdas.is_empty()).then_some(LambdaLaunch {
            name: at,
            configuration: at + 1..open + 1,
            arguments,
            lambdas,
            captures,
            end,
        })
    }

    /// The lambda that an argument is, or that it names.
    fn lambda(&self, argument: &Range<usize>, launch: usize) -> Option<Range<usize>> {
        let start = match self.word(argument.start) {
            "[" => argument.start,
            name if argument.len() == 1 => {
                (0..launch).rev().find(|i| {
                    self.word(*i) == name
                        && self.word(i.wrapping_sub(1)) == "auto"
                        && self.word(i + 1) == "="
                        && self.word(i + 2) == "["
                })? + 2
            }
            _ => return None,
        };
        let mut at = self.behind(start)?;
        while self.word(at) != "{" {
            at = match self.word(at) {
                "(" => self.behind(at)?,
                "" | ";" | "," => return None,
                _ => at + 1,
            };
        }
        Some(start..self.behind(at)?)
    }

    /// Whether the type of a kernel's parameter is a parameter of the template.
    fn is_open(&self, kernel: &TemplateKernel, number: usize) -> bool {
        let param = &kernel.params[number];
        let of_template = |i: usize| {
            let named = |of: &Range<usize>| self.word(of.end - 1) == self.word(i);
            kernel.template.iter().any(named)
        };
        (param.start..param.end - 1)
            .all(|i| matches!(self.word(i), "const" | "&" | "&&") || of_template(i))
    }

    /// `Add(p)`, or the name of a variable `Add f(p)`: the class and the values.
    fn function_object(&self, argument: &Range<usize>, launch: usize) -> Option<Vec<Range<usize>>> {
        let is_class = |at: usize| {
            self.is_name(at)
                && (1..self.all.len()).any(|i| {
                    self.word(i) == self.word(at)
                        && matches!(self.word(i - 1), "struct" | "class")
                        && self.word(i + 1) == "{"
                })
        };
        let values =
            |open: usize| matches!(self.word(open), "(" | "{").then_some(open..self.behind(open)?);
        if argument.len() > 1 && is_class(argument.start) {
            let values = values(argument.start + 1)?;
            return (values.end == argument.end).then(|| vec![argument.clone()]);
        }
        let declared = (1..launch).rev().find(|i| {
            argument.len() == 1 && self.word(*i) == self.word(argument.start) && is_class(i - 1)
        })?;
        Some(vec![declared - 1..declared, values(declared + 1)?])
    }

    /// Adds the variables that a lambda captures; `None`: the type of one is not to be seen.
    fn captures(
        &self,
        lambda: &Range<usize>,
        launch: usize,
        all: &mut Vec<(String, String)>,
    ) -> Option<()> {
        let listed = match self.word(lambda.start) {
            "[" => lambda.start..self.behind(lambda.start)?,
            _ => lambda.start..lambda.start + 1,
        };
        // `[p = q]` makes a variable of its own.
        let makes = listed
            .clone()
            .any(|i| self.word(i) == "=" && self.is_name(i - 1));
        if makes {
            return None;
        }
        let code = listed.end..lambda.end;
        let mut own: HashSet<&str> = HashSet::new();
        for at in code.clone().skip(1) {
            let declares = self.is_name(at)
                && (self.is_name(at - 1) || matches!(self.word(at - 1), "*" | "&"))
                && matches!(self.word(at + 1), "=" | ";" | "," | ")" | "[")
                && self.type_before(at).is_some();
            if declares {
                own.insert(self.word(at));
            }
        }
        for at in code {
            let word = self.word(at);
            let member = matches!(self.word(at - 1), "." | "->" | "::");
            if !self.is_name(at) || member || own.contains(word) {
                continue;
            }
            if all.iter().any(|(name, _)| name == word) {
                continue;
            }
            let declared = (0..launch).rev().find(|i| {
                self.word(*i) == word
                    && !lambda.contains(i)
                    && matches!(self.word(i + 1), "=" | ";" | "," | ")" | "[" | "(" | "{")
                    && self.type_before(*i).is_some()
            });
            let Some(declared) = declared else { continue };
            if matches!(self.word(declared + 1), "[") {
                return None;
            }
            all.push((word.to_owned(), self.type_before(declared)?));
        }
        Some(())
    }

    /// The type that stands before a declared name; `None`: the name is not declared there.
    fn type_before(&self, name: usize) -> Option<String> {
        let mut at = name.checked_sub(1)?;
        let mut stars = String::new();
        while matches!(self.word(at), "*" | "const" | "__restrict__") {
            stars.insert_str(0, self.word(at));
            at = at.checked_sub(1)?;
        }
        if self.word(at) == "," {
            // `int *a, *b`: the type stands at the beginning.
            let start = (0..at)
                .rev()
                .find(|i| matches!(self.word(*i), ";" | "{" | "}" | "("))?
                + 1;
            let end = (start..at).find(|i| !self.is_name(*i))?;
            let end = if self.word(end) == "*" { end } else { end - 1 };
            if self.word(start - 1) == "(" || end <= start {
                return None;
            }
            return self.base(start..end).map(|base| base + " " + &stars);
        }
        let end = at + 1;
        while self.is_name(at) {
            at = at.checked_sub(1)?;
        }
        let begins = matches!(self.word(at), ";" | "{" | "}" | "(" | ")" | ",");
        let base = self.base(at + 1..end).filter(|_| begins)?;
        Some(base + " " + &stars)
    }

    /// The words of a type.
    fn base(&self, of: Range<usize>) -> Option<String> {
        let all: Vec<&str> = of.map(|i| self.word(i)).collect();
        let is_type = !all.is_empty() && !all.iter().any(|word| NO_TYPES.contains(word));
        is_type.then(|| all.join(" "))
    }

    /// Appends a kernel with the lambdas of a launch in it.
    fn write_kernel(
        &self,
        kernel: &TemplateKernel,
        launch: &LambdaLaunch,
        name: &str,
        out: &mut MappedText,
    ) {
        let at = self.text.span(self.all[kernel.name].clone());
        let is_lambda = |n: usize| launch.lambdas.iter().any(|lambda| lambda.0 == n);
        let gone: HashSet<&str> = kernel
            .params
            .iter()
            .enumerate()
            .filter(|(n, _)| is_lambda(*n))
            .flat_map(|(_, param)| param.clone().map(|i| self.word(i)))
            .collect();
        let stays = |param: &&Range<usize>| !gone.contains(self.word(param.end - 1));
        let template: Vec<&Range<usize>> = kernel.template.iter().filter(stays).collect();
        if !template.is_empty() {
            out.push_opaque("template <", at);
            for (n, param) in template.iter().enumerate() {
                if n > 0 {
                    out.push_opaque(", ", at);
                }
                out.push_slice(self.text, self.bytes(param));
            }
            out.push_opaque("> ", at);
        }
        out.push_slice(self.text, self.bytes(&kernel.head));
        out.push_opaque(&format!(" {name}("), at);
        let mut first = true;
        for (n, param) in kernel.params.iter().enumerate() {
            if !is_lambda(n) {
                out.push_opaque(if first { "" } else { ", " }, at);
                out.push_slice(self.text, self.bytes(param));
                first = false;
            }
        }
        for (name, of) in &launch.captures {
            let comma = if first { "" } else { ", " };
            out.push_opaque(&format!("{comma}{of} {name}"), at);
            first = false;
        }
        out.push_opaque(") { ", at);
        for (n, lambda) in &launch.lambdas {
            let param = self.word(kernel.params[*n].end - 1);
            out.push_opaque(&format!("auto {param} = "), at);
            for part in lambda {
                out.push_slice(self.text, self.bytes(part));
            }
            out.push_opaque("; ", at);
        }
        out.push_slice(self.text, self.bytes(&kernel.body));
        out.push_opaque(" }\n", at);
    }

    /// A launch of the written kernel, in place of the one with lambdas.
    fn write_launch(&self, launch: &LambdaLaunch, name: &str) -> (Range<usize>, MappedText) {
        let at = self.text.span(self.all[launch.name].clone());
        let mut out = MappedText::new();
        out.push_opaque(name, at);
        out.push_slice(self.text, self.bytes(&launch.configuration));
        let mut first = true;
        for (n, argument) in launch.arguments.iter().enumerate() {
            if !launch.lambdas.iter().any(|lambda| lambda.0 == n) {
                out.push_opaque(if first { "" } else { ", " }, at);
                out.push_slice(self.text, self.bytes(argument));
                first = false;
            }
        }
        for (name, _) in &launch.captures {
            let comma = if first { "" } else { ", " };
            out.push_opaque(&format!("{comma}{name}"), at);
            first = false;
        }
        out.push_opaque(")", at);
        (self.bytes(&(launch.name..launch.end + 1)), out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(code: &str) -> String {
        let made = written_out(MappedText::verbatim(code, 0));
        let source = made.as_str();
        let all: Vec<&str> = words(source).into_iter().map(|w| &source[w.0]).collect();
        all.join(" ")
    }

    const KERNEL: &str = "template <typename F> __global__ void k(int n, F f) { f(n); }\n";

    #[test]
    fn a_launch_with_a_lambda_hands_over_what_it_captures() {
        let code = format!(
            "{KERNEL}int main() {{ int *a, *d; const float s = 2; \
             k<<<1, 4>>>(3, [=] __device__ (int i) {{ int t = i; d[t] = s; }}); }}"
        );
        let made = squeezed(&code);
        for part in [
            "__global__ void k ( int n , int * d , const float s ) { auto f = [ = ] __device__ ( \
             int i ) { int t = i ; d [ t ] = s ; } ; f ( n ) ; }",
            "k << < 1 , 4 >> > ( 3 , d , s ) ;",
        ] {
            assert!(made.contains(part), "{part}\n{made}");
        }
        assert!(!made.contains("template"), "{made}");
    }

    #[test]
    fn a_function_object_is_made_in_the_kernel() {
        let class = "struct Add { int *p; Add(int *p) : p(p) {} };";
        for main in ["k<<<1, 4>>>(3, Add(d));", "Add g(d); k<<<1, 4>>>(3, g);"] {
            let code = format!("{class} {KERNEL} int main() {{ int *d; {main} }}");
            let made = squeezed(&code);
            for part in [
                "k ( int n , int * d ) { auto f = Add ( d ) ; f ( n ) ; }",
                "( 3 , d ) ;",
            ] {
                assert!(made.contains(part), "{part}\n{made}");
            }
        }
    }

    #[test]
    fn other_kernels_stay() {
        for main in [
            "int main() { k<<<1, 4>>>(3, S()); }",
            "int main() { auto d = g(); k<<<1, 4>>>(3, [p = d](int i) { p[i] = 0; }); }",
            "int main() { int d[4]; k<<<1, 4>>>(3, [=](int i) { d[i] = 0; }); }",
        ] {
            let code = format!("{KERNEL}{main}");
            let text = MappedText::verbatim(&code, 0);
            assert_eq!(written_out(text).as_str(), code);
        }
    }
}
