//! Gives code the classes of `cuda::std` that are no objects of a model: `array` and `span`.
//!
//! # Invariants
//! - Code that names neither class stays as it is.
//! - The text of a class points to the beginning of the code.
//!
//! # Sources
//! - ISO C++, array, views.span; libcu++, *Standard API*.
//!
//! # Where we differ
//! - A `span` has no extent in its type, and its constructor takes an address and a length.

use diag::MappedText;
use program::Dialect;

use super::text_words::{append_changed, words};

/// A class: its name behind `cuda::std::`, its name here, and its definition.
struct LibraryClass {
    name: &'static str,
    own: &'static str,
    text: &'static str,
}

const CLASSES: [LibraryClass; 2] = [
    LibraryClass {
        name: "array",
        own: "cuda_std_array",
        text: "template <typename T, int N> struct cuda_std_array { T elements[N]; \
               __device__ T &operator[](int i) { return elements[i]; } \
               __device__ const T &operator[](int i) const { return elements[i]; } \
               __device__ T &front() { return elements[0]; } \
               __device__ T &back() { return elements[N - 1]; } \
               __device__ T *data() { return elements; } \
               __device__ T *begin() { return elements; } \
               __device__ T *end() { return elements + N; } \
               __device__ void fill(T value) { for (int i = 0; i < N; ++i) elements[i] = value; } \
               __device__ size_t size() const { return N; } \
               __device__ bool empty() const { return N == 0; } };\n",
    },
    LibraryClass {
        name: "span",
        own: "cuda_std_span",
        text: "template <typename T> struct cuda_std_span { T *first; size_t length; \
               __device__ cuda_std_span(T *p, size_t n) : first(p), length(n) {} \
               __device__ T &operator[](size_t i) const { return first[i]; } \
               __device__ T &front() const { return first[0]; } \
               __device__ T &back() const { return first[length - 1]; } \
               __device__ T *data() const { return first; } \
               __device__ T *begin() const { return first; } \
               __device__ T *end() const { return first + length; } \
               __device__ size_t size() const { return length; } \
               __device__ bool empty() const { return length == 0; } };\n",
    },
];

/// The text with the classes that it names.
pub(super) fn with_classes(text: MappedText, dialect: Dialect) -> MappedText {
    let source = text.as_str();
    if dialect != Dialect::Cuda || !source.contains("cuda") {
        return text;
    }
    let all: Vec<_> = words(source).into_iter().map(|w| w.0).collect();
    let word = |at: usize| all.get(at).map_or("", |w| &source[w.clone()]);
    let named = |at: usize| {
        let prefix = ["cuda", "::", "std", "::"];
        let is = prefix.iter().enumerate().all(|(i, w)| word(at + i) == *w);
        let class = CLASSES.iter().find(|class| class.name == word(at + 4));
        class.filter(|_| is && word(at + 5) == "<")
    };
    let found: Vec<(usize, &LibraryClass)> = (0..all.len())
        .filter_map(|at| Some((at, named(at)?)))
        .collect();
    if found.is_empty() {
        return text;
    }
    let mut out = MappedText::new();
    for class in &CLASSES {
        if found.iter().any(|(_, of)| of.name == class.name) {
            out.push_opaque(class.text, text.span(0..0));
        }
    }
    let changes = found.into_iter();
    let changes = changes.map(|(at, class)| (all[at].start..all[at + 4].end, class.own));
    append_changed(&mut out, &text, changes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_classes_that_are_named_come() {
        let of = |code: &str| {
            let text = MappedText::verbatim(code, 0);
            with_classes(text, Dialect::Cuda).as_str().to_owned()
        };
        assert_eq!(of("std::array<int, 4> a;"), "std::array<int, 4> a;");
        let made = of("cuda::std::array<int, 4> a;");
        assert!(made.ends_with("cuda_std_array<int, 4> a;"), "{made}");
        assert!(!made.contains("span"), "{made}");
    }
}
