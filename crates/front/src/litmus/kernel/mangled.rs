//! Matches kernels by the names that people write: parses the names that compilers mangle.
//!
//! # Invariants
//! - An unknown part of a name is left out, never guessed. Fewer words may then match the name.
//!
//! # Sources
//! - Itanium C++ ABI, *Name Mangling*: `<nested-name>`, `<source-name>`, `<template-args>`.

use std::ops::Range;

/// A demangled name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DemangledName {
    /// The qualified name: `ns::scan`.
    pub(super) path: String,
    /// Template arguments: `<int, 4>`; `<…>` if some are not understood; empty without arguments.
    pub(super) arguments: String,
}

impl DemangledName {
    /// Demangles a name; `None` if it is not mangled.
    pub(super) fn of(mangled: &str) -> Option<DemangledName> {
        let mut reader = NameReader {
            rest: mangled.strip_prefix("_Z")?,
        };
        reader.name()
    }

    /// The name as C++ writes it.
    pub(super) fn text(&self) -> String {
        format!("{}{}", self.path, self.arguments)
    }

    /// The name without its namespaces.
    fn last(&self) -> &str {
        self.path.rsplit("::").next().unwrap_or_default()
    }
}

/// The indices of the names that match a word best; a single one if the word is unambiguous.
pub(super) fn meant(word: &str, names: &[&str]) -> Vec<usize> {
    let told: Vec<Option<DemangledName>> =
        names.iter().map(|name| DemangledName::of(name)).collect();
    fn plain(text: &str) -> String {
        text.replace(' ', "")
    }
    let word = plain(word);
    let of =
        |at: usize, holds: &dyn Fn(&DemangledName) -> bool| told[at].as_ref().is_some_and(holds);
    let tiers: [&dyn Fn(usize) -> bool; 6] = [
        &|at| names[at] == word,
        &|at| of(at, &|name| plain(&name.text()) == word),
        &|at| of(at, &|name| name.path == word),
        &|at| {
            of(at, &|name| {
                name.last() == word || plain(&format!("{}{}", name.last(), name.arguments)) == word
            })
        },
        &|at| {
            names[at].starts_with(&word)
                || of(at, &|name| {
                    name.path.starts_with(&word) || name.last().starts_with(&word)
                })
        },
        &|at| names[at].contains(&word) || of(at, &|name| plain(&name.text()).contains(&word)),
    ];
    let all: Range<usize> = 0..names.len();
    let found = tiers
        .iter()
        .map(|tier| all.clone().filter(|at| tier(*at)).collect::<Vec<_>>());
    if word.is_empty() {
        Vec::new()
    } else {
        found
            .into_iter()
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }
}

struct NameReader<'a> {
    rest: &'a str,
}

impl<'a> NameReader<'a> {
    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Reads a number and as many letters.
    fn source(&mut self) -> Option<&'a str> {
        let digits = self.rest.len()
            - self
                .rest
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        let length: usize = self.rest[..digits].parse().ok()?;
        let name = self.rest.get(digits..digits.checked_add(length)?)?;
        self.rest = &self.rest[digits + length..];
        // An anonymous namespace.
        Some(if name.starts_with("_GLOBAL__N_") {
            "(anonymous namespace)"
        } else {
            name
        })
    }

    fn name(&mut self) -> Option<DemangledName> {
        let nested = self.eat("N");
        while nested && ["K", "V", "r"].iter().any(|word| self.eat(word)) {}
        let (mut parts, mut arguments) = (Vec::new(), String::new());
        if self.eat("St") {
            parts.push("std");
        }
        loop {
            if self.eat("L") || nested && self.eat("E") {
                if self.rest.is_empty() || !self.rest.starts_with(|c: char| c.is_ascii_digit()) {
                    break;
                }
                continue;
            }
            if self.eat("I") {
                arguments = self.arguments().unwrap_or_else(|| "<…>".to_owned());
                // The arguments may belong to an enclosing class whose member's name follows.
                if arguments == "<…>"
                    || !nested
                    || !self.rest.starts_with(|c: char| c.is_ascii_digit())
                {
                    break;
                }
                continue;
            }
            let Some(part) = self.source() else { break };
            parts.push(part);
            arguments.clear();
            if !nested && !self.rest.starts_with('I') {
                break;
            }
        }
        (!parts.is_empty()).then(|| DemangledName {
            path: parts.join("::"),
            arguments,
        })
    }

    /// Reads the arguments of a template and their end; `None` if one of them is not understood.
    fn arguments(&mut self) -> Option<String> {
        let mut all = Vec::new();
        while !self.eat("E") {
            all.push(self.argument(0)?);
        }
        Some(format!("<{}>", all.join(", ")))
    }

    fn argument(&mut self, depth: usize) -> Option<String> {
        if depth > 16 {
            return None;
        }
        if self.eat("L") {
            let ty = self.argument(depth + 1)?;
            let end = self.rest.find('E')?;
            let value = self.rest[..end].replace('n', "-");
            self.rest = &self.rest[end + 1..];
            let written = value
                .strip_prefix('-')
                .unwrap_or(&value)
                .chars()
                .all(|c| c.is_ascii_digit());
            return written.then(|| match (ty.as_str(), value.as_str()) {
                ("bool", "0") => "false".to_owned(),
                ("bool", _) => "true".to_owned(),
                _ => value,
            });
        }
        for (letter, behind) in [("P", "*"), ("R", "&"), ("K", " const")] {
            if self.eat(letter) {
                return Some(self.argument(depth + 1)? + behind);
            }
        }
        const BUILTIN: [(&str, &str); 17] = [
            ("v", "void"),
            ("w", "wchar_t"),
            ("b", "bool"),
            ("c", "char"),
            ("a", "signed char"),
            ("h", "unsigned char"),
            ("s", "short"),
            ("t", "unsigned short"),
            ("i", "int"),
            ("j", "unsigned int"),
            ("l", "long"),
            ("m", "unsigned long"),
            ("x", "long long"),
            ("y", "unsigned long long"),
            ("f", "float"),
            ("d", "double"),
            ("Dh", "half"),
        ];
        if let Some((_, name)) = BUILTIN.iter().find(|(letter, _)| self.eat(letter)) {
            return Some((*name).to_owned());
        }
        if self
            .rest
            .starts_with(|c: char| c == 'N' || c.is_ascii_digit())
        {
            return self
                .name()
                .map(|name| name.text())
                .filter(|text| !text.contains('…'));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_to_their_parts() {
        for (mangled, text) in [
            ("_Z3addPfS_i", "add"),
            ("_ZN2ns4scanEPi", "ns::scan"),
            ("_Z4tmplILi3EEvPi", "tmpl<3>"),
            ("_Z4tmplIfLin2ELb1EEvPT_", "tmpl<float, -2, true>"),
            (
                "_ZN3cub6detail4KernINS_6PolicyEiEEvT0_",
                "cub::detail::Kern<…>",
            ),
            ("_Z4kernIN2ns1SEPKfEvv", "kern<ns::S, float const*>"),
            ("_ZN12_GLOBAL__N_11kEv", "(anonymous namespace)::k"),
        ] {
            assert_eq!(
                DemangledName::of(mangled)
                    .map(|name| name.text())
                    .as_deref(),
                Some(text),
                "{mangled}"
            );
        }
        for other in [
            "main",
            "_Z",
            "_ZN",
            "_Z99a",
            "_Z1",
            "_Z18446744073709551615a",
        ] {
            assert_eq!(DemangledName::of(other), None, "{other}");
        }
    }

    #[test]
    fn a_word_is_short_for_what_fits_it_best() {
        let names = [
            "_Z4tmplILi3EEvPi",
            "_Z4tmplILi4EEvPi",
            "_ZN2ns4scanEPi",
            "_Z10scan_afterPi",
            "plain",
            "plainer",
        ];
        for (word, meant_ones) in [
            ("plain", &[4][..]),
            ("plaine", &[5]),
            ("tmpl<4>", &[1]),
            ("tmpl", &[0, 1]),
            ("scan", &[2]),
            ("ns::scan", &[2]),
            ("scan_", &[3]),
            ("after", &[3]),
            ("_Z4tmplILi3", &[0]),
            ("sca", &[2, 3]),
            ("nothing", &[]),
            ("", &[]),
        ] {
            assert_eq!(meant(word, &names), meant_ones, "{word}");
        }
    }
}
