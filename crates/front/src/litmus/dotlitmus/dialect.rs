//! The dialect of a `.litmus` file: its first word.

use super::cells::skip_space;
use diag::{Sink, Span};
use program::Dialect;

/// First words of the dialects.
const DIALECTS: &[(&str, Dialect)] = &[
    ("PTX", Dialect::Ptx),
    ("OPENCL", Dialect::OpenCl),
    ("OpenCL", Dialect::OpenCl),
    ("C", Dialect::C),
    ("VULKAN", Dialect::Vulkan),
    ("Vulkan", Dialect::Vulkan),
];

/// Where the text begins, byte order mark and white space aside.
pub(super) fn begin(text: &str) -> usize {
    let bare = text.trim_start_matches('\u{feff}');
    text.len() - bare.len() + skip_space(bare, 0)
}

/// The dialect, from the first word.
pub(super) fn dialect(text: &str, sink: &mut Sink) -> Option<Dialect> {
    let start = begin(text);
    let word = text[start..].split_whitespace().next().unwrap_or("");
    let span = Span::new(start, start + word.len());
    match DIALECTS.iter().find(|d| d.0 == word) {
        Some((_, Dialect::Vulkan)) => {
            let message = "`.litmus` files of the Vulkan dialect are not supported yet";
            sink.error("unsupported-dialect", span, message, |d| d.label("only `PTX`, `OPENCL` and `C` are read"));
            None
        }
        Some((_, dialect)) => Some(*dialect),
        None => {
            sink.error("unknown-dialect", span, format!("`{word}` is no dialect of `.litmus` files"), |d| {
                let known = DIALECTS.iter().map(|d| d.0);
                d.label("expected `PTX`, `OPENCL` or `C`").did_you_mean(word, known)
            });
            None
        }
    }
}
