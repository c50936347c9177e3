//! Constants of a program that give its sizes, and smaller ones in their place.
//!
//! A program for a million elements has more threads than can be decided one by one. The same
//! program with smaller constants mostly has the same mistakes; the answer names the constants.
//!
//! # How
//! - A constant is the value of a macro or of a variable that is written as a number, or a number
//!   in the sizes of a launch.
//! - The smallest one becomes 4, and the others keep their ratio to it, up to 16. If that is still
//!   too large, all become 4; then small ones become smaller, and numbers that no name has.
//! - A number in the sizes of a launch is replaced everywhere, and so is the number before it, as
//!   in `(n + 255) / 256`.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use crate::isa::clike::text_words::words;
use crate::isa::clike::words::type_named;
use diag::MappedText;

/// Values of constants, by name, and of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constants {
    /// By name.
    pub named: BTreeMap<String, i64>,
    /// Numbers that stand for others.
    pub numbers: BTreeMap<i64, i64>,
}

/// Constants up to this value stay.
const SMALL: i64 = 16;

/// What the smallest constant becomes.
const LEAST: i64 = 4;

/// What the smallest constant becomes where small ones change, too.
const TINY: i64 = 2;

/// Words of code that counts on the size of a warp.
const OF_WARPS: [&str; 5] = ["__shfl", "__ballot", "__syncwarp", "warp", "WARP"];

/// The size of a warp.
const WARP: i64 = 32;

/// A constant: its name, where its value stands, and its value.
struct ConstantDefinition {
    name: String,
    range: Range<usize>,
    value: i64,
}

/// The names of the macros that a text defines, of whatever value.
fn macros(source: &str) -> HashSet<String> {
    let all: Vec<&str> = words(source).into_iter().map(|w| &source[w.0]).collect();
    let definitions = all.windows(3).filter(|w| w[..2] == ["#", "define"]);
    definitions.map(|w| w[2].to_owned()).collect()
}

/// The constants that a text defines.
fn definitions(source: &str) -> Vec<ConstantDefinition> {
    let all = words(source);
    let word = |at: usize| all.get(at).map_or("", |w| &source[w.0.clone()]);
    let mut found = Vec::new();
    // Where the last value of a declaration ends.
    let mut last = usize::MAX;
    for at in 0..all.len() {
        let continues = at > 0 && last == at - 1 && word(at - 1) == ",";
        let (name, from, to) = if word(at) == "#" && word(at + 1) == "define" {
            let from = at + 3;
            let to = (from..all.len()).find(|i| all[*i].1).unwrap_or(all.len());
            (at + 2, from, to)
        } else if word(at + 1) == "=" && at > 0 && (is_integer(word(at - 1)) || continues) {
            let from = at + 2;
            last = end_of_value(&word, from, all.len());
            (at, from, last)
        } else {
            continue;
        };
        // `argc > 1 ? atoi(argv[1]) : 1 << 20`: the number without arguments.
        let is_choice = (from..to).any(|i| word(i) == "?");
        let colon = (from..to).rfind(|i| word(*i) == ":").filter(|_| is_choice);
        let from = colon.map_or(from, |colon| colon + 1);
        let value: Vec<&str> = (from..to).map(word).collect();
        if let Some(value) = number(&value) {
            found.push(ConstantDefinition {
                name: word(name).to_owned(),
                range: all[from].0.start..all[to - 1].0.end,
                value,
            });
        }
    }
    found
}

/// The word behind a value: `;`, `,`, or the end of the parameters with a default argument.
fn end_of_value<'w>(word: &dyn Fn(usize) -> &'w str, from: usize, end: usize) -> usize {
    let mut open = 0i32;
    let found = (from..end).find(|i| {
        open += match word(*i) {
            "(" => 1,
            ")" => -1,
            _ => 0,
        };
        open < 0 || open == 0 && [";", ","].contains(&word(*i))
    });
    found.unwrap_or(end)
}

fn is_integer(word: &str) -> bool {
    word == "auto" || type_named(word).is_some_and(|(ty, atomic)| ty.bits >= 16 && !atomic)
}

/// The number that words are: numbers, `<<`, `*` and parentheses.
fn number(words: &[&str]) -> Option<i64> {
    match words {
        ["(", inner @ .., ")"] => number(inner),
        [one] => literal(one),
        _ => {
            let at = words.iter().position(|word| ["<<", "*"].contains(word))?;
            let (a, b) = (number(&words[..at])?, number(&words[at + 1..])?);
            match words[at] {
                "*" => a.checked_mul(b),
                _ => a.checked_shl(u32::try_from(b).ok()?),
            }
        }
    }
}

fn literal(word: &str) -> Option<i64> {
    word.trim_end_matches(['u', 'U', 'l', 'L']).parse().ok()
}

/// The numbers in the sizes of launches.
fn launch_numbers(source: &str) -> Vec<i64> {
    let all: Vec<&str> = words(source).into_iter().map(|w| &source[w.0]).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let launch = all[at..].starts_with(&["<<", "<"]);
        let sizes = all[at] == "dim3";
        if launch || sizes {
            let close = if launch { ">>" } else { ")" };
            let end = (at..all.len()).find(|i| [close, ";"].contains(&all[*i]));
            let end = end.unwrap_or(all.len());
            found.extend(all[at..end].iter().filter_map(|word| literal(word)));
            at = end;
        }
        at += 1;
    }
    found
}

/// All numbers of a text.
fn literals(source: &str) -> Vec<i64> {
    let all = words(source).into_iter();
    all.filter_map(|word| literal(&source[word.0])).collect()
}

impl Constants {
    /// Sets of smaller constants than a text has, to be tried one after the other.
    pub fn candidates(text: &str) -> Vec<Constants> {
        let in_launches = launch_numbers(text);
        let all = [
            Constants::scaled(text, in_launches.clone(), [SMALL, LEAST, SMALL]),
            Constants::scaled(text, in_launches.clone(), [SMALL, LEAST, LEAST]),
            // Small constants, too, as the sides of a tile.
            Constants::scaled(text, in_launches, [TINY, TINY, LEAST]),
            // Numbers that no name has.
            Constants::scaled(text, literals(text), [SMALL, LEAST, LEAST]),
        ];
        let mut found: Vec<Constants> = Vec::new();
        for one in all.into_iter().flatten() {
            if !found.contains(&one) {
                found.push(one);
            }
        }
        found
    }

    /// Smaller values of the constants above a limit, and of numbers: from `least` to `most`, in
    /// their ratio; `None`: none is above the limit.
    fn scaled(
        text: &str,
        mut numbers: Vec<i64>,
        [limit, least, most]: [i64; 3],
    ) -> Option<Constants> {
        let of_warps = OF_WARPS.iter().any(|word| text.contains(word));
        let large = |value: i64| value > limit && !(of_warps && value == WARP);
        let named = definitions(text).into_iter().filter(|d| large(d.value));
        let named: Vec<(String, i64)> = named.map(|d| (d.name, d.value)).collect();
        // A number with a neighbour, as in `(n + 255) / 256`, is one size.
        numbers.retain(|n| large(*n));
        let all = numbers.clone();
        numbers.retain(|n| !all.contains(&(n + 1)));
        let smallest = named
            .iter()
            .map(|n| n.1)
            .chain(numbers.iter().copied())
            .min()?;
        let scaled = |value: i64| (value / smallest).saturating_mul(least).clamp(least, most);
        Some(Constants {
            named: named
                .into_iter()
                .map(|(name, value)| (name, scaled(value)))
                .collect(),
            numbers: numbers
                .into_iter()
                .map(|value| (value, scaled(value)))
                .collect(),
        })
    }

    /// A text with these constants. A name that the text does not define becomes a macro, as
    /// compilers do it (`-D`).
    pub fn put_into(&self, text: &MappedText) -> MappedText {
        let source = text.as_str();
        let mut edits: Vec<(Range<usize>, i64)> = Vec::new();
        let mut defined = macros(source);
        for definition in definitions(source) {
            if let Some(value) = self.named.get(&definition.name) {
                edits.push((definition.range, *value));
            }
            defined.insert(definition.name);
        }
        for (range, _) in words(source) {
            let Some(value) = literal(&source[range.clone()]) else {
                continue;
            };
            let before = self.numbers.get(&(value + 1)).map(|new| new - 1);
            if let Some(new) = self.numbers.get(&value).copied().or(before) {
                edits.push((range, new));
            }
        }
        edits.sort_by_key(|edit| edit.0.start);
        let mut out = MappedText::new();
        for (name, value) in self
            .named
            .iter()
            .filter(|(name, _)| !defined.contains(*name))
        {
            out.push_opaque(&format!("#define {name} {value}\n"), text.span(0..0));
        }
        let mut at = 0;
        for (range, value) in edits {
            if range.start < at {
                continue;
            }
            out.push_slice(text, at..range.start);
            out.push_opaque(&value.to_string(), text.span(range.clone()));
            at = range.end;
        }
        out.push_slice(text, at..source.len());
        out
    }

    /// The constants in a sentence: `` `n = 16`, 4 in place of 256 ``.
    pub fn told(&self) -> String {
        let named = self
            .named
            .iter()
            .map(|(name, value)| format!("`{name} = {value}`"));
        let numbers = self.numbers.iter();
        let numbers = numbers.map(|(old, new)| format!("{new} in place of {old}"));
        named.chain(numbers).collect::<Vec<_>>().join(", ")
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.numbers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "#define THREADS 256\nconst int n = 1 << 20;\nint few = 8;\n\
                        k<<<(n + 127) / 128, 128>>>(THREADS);\n";

    #[test]
    fn a_name_that_no_text_defines_becomes_a_macro() {
        let given = |source: &str| {
            let named = BTreeMap::from([("N".to_owned(), 8)]);
            let constants = Constants {
                named,
                numbers: BTreeMap::new(),
            };
            let text = constants.put_into(&MappedText::verbatim(source, 0));
            text.as_str().to_owned()
        };
        assert_eq!(given("int a[N];"), "#define N 8\nint a[N];");
        assert_eq!(given("#define N 4\nint a[N];"), "#define N 8\nint a[N];");
        assert_eq!(given("const int N = 4;"), "const int N = 8;");
        // Its operands give its value.
        assert_eq!(
            given("#define N (M + 1)\nint a[N];"),
            "#define N (M + 1)\nint a[N];"
        );
    }

    #[test]
    fn smaller_constants_keep_their_ratio() {
        let smaller = &Constants::candidates(CODE)[0];
        assert_eq!(smaller.told(), "`THREADS = 8`, `n = 16`, 4 in place of 128");
        let text = smaller.put_into(&MappedText::verbatim(CODE, 0));
        assert_eq!(
            text.as_str(),
            "#define THREADS 8\nconst int n = 16;\nint few = 8;\nk<<<(n + 3) / 4, 4>>>(THREADS);\n"
        );
    }

    #[test]
    fn the_number_without_arguments_is_a_constant() {
        let text = "int n = argc > 1 ? atoi(argv[1]) : 1 << 20;";
        let least = &Constants::candidates(text)[0];
        let made = least.put_into(&MappedText::verbatim(text, 0));
        assert_eq!(made.as_str(), "int n = argc > 1 ? atoi(argv[1]) : 4;");
    }

    #[test]
    fn a_default_argument_is_a_constant() {
        let text = "static int test(bool b, const int count = 1000000) { return (count); }";
        let least = &Constants::candidates(text)[0];
        assert_eq!(least.told(), "`count = 4`");
        let made = least.put_into(&MappedText::verbatim(text, 0));
        assert!(made.as_str().contains("count = 4)"), "{}", made.as_str());
    }

    #[test]
    fn all_names_of_a_declaration_are_constants() {
        let text = "int width = 1024, height = 512, few = 2; g(a, b = 64);";
        let told = Constants::candidates(text)[0].told();
        assert_eq!(told, "`height = 4`, `width = 8`");
    }

    #[test]
    fn small_constants_and_numbers_become_smaller_last() {
        let told = |text: &str| {
            let all = Constants::candidates(text);
            all.iter().map(Constants::told).collect::<Vec<_>>()
        };
        assert_eq!(
            told("#define TILE 16\nconst int n = 512;\nf(n, 64);"),
            [
                "`n = 4`",
                "`TILE = 2`, `n = 4`",
                "`n = 4`, 4 in place of 64, 4 in place of 512"
            ]
        );
    }

    #[test]
    fn code_of_warps_keeps_their_size() {
        assert_eq!(Constants::candidates("k<<<1, 32>>>(); __syncwarp();"), []);
        assert!(!Constants::candidates("k<<<1, 32>>>();").is_empty());
    }
}
