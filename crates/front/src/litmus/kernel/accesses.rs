//! Finds the types with which code accesses memory, from its text: compilers print arrays as bytes,
//! and pointers without their target types.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::binding::float;
use crate::isa::ptx::bits_named;
use crate::isa::ptx::module::{ModuleVariable, Param};
use program::{Format, Ty};

/// The instructions of a kernel and of the functions that it calls, as opcodes and operands.
pub(super) struct Accesses<'a> {
    lines: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Accesses<'a> {
    /// Splits code into instructions. Each part of the code comes with its offset.
    pub(super) fn new(code: &[(&'a str, usize)]) -> Self {
        let mut lines = Vec::new();
        // For each open block, the unique names of its registers: compilers use one name in many
        // blocks.
        let mut blocks: Vec<HashMap<&str, String>> = Vec::new();
        let mut number = 0;
        for line in code.iter().flat_map(|(text, _)| text.split([';', '\n'])) {
            let mut line = line.trim();
            while let Some(brace @ ('{' | '}')) = line.chars().next() {
                match brace {
                    '{' => blocks.push(HashMap::new()),
                    _ => drop(blocks.pop()),
                }
                line = line[1..].trim();
            }
            let line = line
                .trim_start_matches(|c| c != ' ' && line.starts_with('@'))
                .trim();
            let Some((opcode, operands)) = line.split_once(char::is_whitespace) else {
                continue;
            };
            if let (".reg", Some(block)) = (opcode, blocks.last_mut()) {
                number += 1;
                block.extend(words(operands).map(|word| (word, format!("{word}${number}"))));
            }
            let own = |word: &str| blocks.iter().rev().find_map(|block| block.get(word));
            let operands = match words(operands).any(|word| own(word).is_some()) {
                true => Cow::Owned(renamed(operands, &own)),
                false => Cow::Borrowed(operands),
            };
            lines.push((opcode, operands));
        }
        Accesses { lines }
    }

    /// The opcodes of accesses through `names`, or through registers computed from them.
    fn through<'s>(&'s self, mut names: HashSet<&'s str>) -> Vec<&'s str> {
        loop {
            let before = names.len();
            for (opcode, operands) in &self.lines {
                let Some((result, of)) = operands.split_once(',') else {
                    continue;
                };
                let pure = !operands.contains('[') && !opcode.starts_with("st");
                if pure && words(of).any(|word| names.contains(word)) {
                    names.extend(words(result));
                }
            }
            if names.len() == before {
                break;
            }
        }
        self.lines
            .iter()
            .filter(|line| words(address(&line.1)).any(|word| names.contains(word)))
            .map(|line| line.0)
            .collect()
    }

    /// Whether a variable holds an mbarrier object and, at another time, ordinary data.
    pub(super) fn reuse_object(&self, v: &ModuleVariable) -> bool {
        let all = self.through(HashSet::from([v.name.as_str()]));
        fn of_object(opcode: &&str) -> bool {
            opcode.starts_with("mbarrier.")
        }
        all.iter().any(of_object)
            && all
                .iter()
                .any(|opcode| !of_object(opcode) && element(opcode).is_some())
    }

    /// Whether an instruction takes the address of a name.
    pub(super) fn take_address(&self, name: &str) -> bool {
        self.lines.iter().any(|(opcode, of)| {
            (opcode.starts_with("mov.") || opcode.starts_with("cvta."))
                && of.rsplit(',').next().is_some_and(|of| of.trim() == name)
        })
    }

    /// The types of the accesses to a variable, by its name or through registers. Without such an
    /// access, for example if its address goes through memory, these are the types of all accesses
    /// to its space through registers. `inner` are the variables of the kernel.
    pub(super) fn of(&self, v: &ModuleVariable, inner: &[&ModuleVariable]) -> Vec<Ty> {
        let named = |operands: &str| {
            inner
                .iter()
                .any(|v| v.ty.bits > 8 && mentions(operands, &v.name))
        };
        let scalar = |operands: &str| {
            inner
                .iter()
                .any(|v| v.elements == Some(1) && mentions(operands, &v.name))
        };
        let found: Vec<Ty> = self
            .through(HashSet::from([v.name.as_str()]))
            .into_iter()
            .filter_map(element)
            .collect();
        if !found.is_empty() {
            return found;
        }
        let any = self.lines.iter().filter(|(opcode, operands)| {
            !named(operands) && !scalar(operands) && opcode.contains(&format!(".{}", v.space))
        });
        any.filter_map(|line| element(line.0)).collect()
    }

    /// The floating-point format of the target of a pointer parameter, if all accesses have that
    /// format.
    pub(super) fn numbers(&self, param: &str) -> Option<Format> {
        let loaded = self.lines.iter().filter(|(opcode, operands)| {
            opcode.starts_with("ld.param") && mentions(address(operands), param)
        });
        let registers = loaded
            .flat_map(|(_, operands)| words(operands.split('[').next().unwrap_or_default()))
            .collect();
        let accesses = self
            .through(registers)
            .into_iter()
            .filter(|opcode| element(opcode).is_some());
        let mut formats = accesses.map(|opcode| float(opcode.rsplit('.').next()?));
        let first = formats.next()??.0;
        formats
            .all(|other| other.is_some_and(|(format, _)| format == first))
            .then_some(first)
    }
}

/// The address operand of an instruction, without its brackets.
pub(super) fn address(operands: &str) -> &str {
    operands
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or("", |(address, _)| address)
}

/// The element type that an opcode names.
fn element(opcode: &str) -> Option<Ty> {
    let mut quals = opcode.split('.');
    match quals.next()? {
        "mbarrier" => Some(Ty::U64),
        // The lane's part of a row: two elements of 16 bits, or one element from each of two rows.
        "ldmatrix" | "stmatrix" => Some(Ty {
            bits: if opcode.contains(".trans") { 16 } else { 32 },
            signed: false,
        }),
        "ld" | "st" | "atom" | "red" => quals.filter_map(bits_named).next_back(),
        _ => None,
    }
}

/// The text with some words replaced.
fn renamed<'n>(text: &str, other: &dyn Fn(&str) -> Option<&'n String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    for word in words(text) {
        let at = rest.find(word).unwrap_or(0);
        out.push_str(&rest[..at]);
        out.push_str(other(word).map_or(word, String::as_str));
        rest = &rest[at + word.len()..];
    }
    out + rest
}

/// The names and numbers in a text.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '$' | '%'))
        .filter(|word| !word.is_empty())
}

/// Whether a text contains a name as a whole word.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    words(text).any(|word| word == name)
}

/// The parts of a parameter that need a binding, with their types. For a structure, these are the
/// pieces that code reads, as `p+8`; otherwise the whole.
pub(super) fn pieces<'a>(param: &'a Param, code: &'a str) -> Vec<(String, &'a str)> {
    if param.elements == 1 {
        return vec![(param.name.clone(), &param.ty)];
    }
    let mut found: BTreeMap<u64, &str> = BTreeMap::new();
    for line in code
        .split([';', '\n'])
        .filter(|line| mentions(address(line), &param.name))
    {
        let word = line
            .split_whitespace()
            .find(|word| word.contains(".param"))
            .unwrap_or_default();
        let Some((ty, bits)) = word
            .split('.')
            .rev()
            .find_map(|q| Some((q, bits_named(q)?)))
        else {
            continue;
        };
        let offset = address(line)
            .split_once('+')
            .map_or(Some(0), |(_, n)| n.trim().parse().ok());
        let width = [("v2", 2), ("v4", 4)]
            .iter()
            .find(|v| word.split('.').any(|q| q == v.0))
            .map_or(1, |v| v.1);
        for at in offset
            .into_iter()
            .flat_map(|o: u64| (0..width).map(move |i| o + i * u64::from(bits.bytes())))
        {
            // If code reads a piece with several types, the widest counts.
            let widest = found.entry(at).or_insert(ty);
            if bits_named(widest).is_none_or(|before| before.bits < bits.bits) {
                *widest = ty;
            }
        }
    }
    let name = |at: u64| {
        if at == 0 {
            param.name.clone()
        } else {
            format!("{}+{at}", param.name)
        }
    };
    found.into_iter().map(|(at, ty)| (name(at), ty)).collect()
}
