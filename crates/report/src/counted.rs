//! Writes a number of things in words.

/// `n thing` or `n things`.
pub fn counted(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}
