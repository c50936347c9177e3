//! Gives the integers of 128 bits one name each: those of the structures in `library.cuh`.
//!
//! # Invariants
//! - Other code stays as it is.
//!
//! # Sources
//! - GCC, *128-bit Integers*: `__int128`, and `unsigned __int128`; CUDA C++ Programming Guide,
//!   *Extended types*.

use diag::MappedText;
use program::Dialect;

use super::text_words::{append_changed, words};

const WORD: &str = "__int128";
const SIGNED: &str = "__int128_t";
const UNSIGNED: &str = "__uint128_t";

/// The structure for a type with that name; `None`: it is another one.
pub fn wide_integer(name: &str) -> Option<&'static str> {
    match name {
        WORD => Some(SIGNED),
        "unsigned __int128" => Some(UNSIGNED),
        _ => None,
    }
}

/// The text with those names.
pub(super) fn with_wide_integers(text: MappedText, dialect: Dialect) -> MappedText {
    let source = text.as_str();
    if dialect != Dialect::Cuda || !source.contains(WORD) {
        return text;
    }
    let all: Vec<_> = words(source).into_iter().map(|w| w.0).collect();
    let word = |at: usize| all.get(at).map_or("", |w| &source[w.clone()]);
    let named = (0..all.len()).filter(|at| word(*at) == WORD);
    let changes = named.map(|at| {
        let is_sign = |word: &str| matches!(word, "unsigned" | "signed");
        let first = at.checked_sub(1).filter(|before| is_sign(word(*before)));
        let last = Some(at + 1).filter(|behind| is_sign(word(*behind)));
        let sign = first.or(last).map_or("", word);
        let whole = all[first.unwrap_or(at)].start..all[last.unwrap_or(at)].end;
        let name = if sign == "unsigned" { UNSIGNED } else { SIGNED };
        (whole, name)
    });
    let mut out = MappedText::new();
    append_changed(&mut out, &text, changes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spelling_has_one_name() {
        let of = |code: &str| {
            let text = MappedText::verbatim(code, 0);
            with_wide_integers(text, Dialect::Cuda).as_str().to_owned()
        };
        assert_eq!(of("__int128 a;"), "__int128_t a;");
        assert_eq!(of("const unsigned __int128 *a;"), "const __uint128_t *a;");
        assert_eq!(of("__int128 unsigned a;"), "__uint128_t a;");
        assert_eq!(of("signed __int128 a;"), "__int128_t a;");
        assert_eq!(of("unsigned a; int b;"), "unsigned a; int b;");
    }
}
