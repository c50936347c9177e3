//! Known gaps: what a mapping is known not to keep of a model of its source language, as its file
//! declares it.
//!
//! A gap says how to tell whether an outcome, which PTX allows and the source model forbids, lies
//! in it ([`Told`]). What a mapping does not keep beyond its gaps is a violation.

/// One known gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What reports call it.
    pub name: String,
    /// What the mapping does not keep; the end of a sentence.
    pub lost: String,
    /// How to tell that an outcome lies in it.
    pub told: Told,
}

/// How to tell that an outcome lies in a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// By the source model: it allows the outcome once less stands for some of its axioms. Its text
    /// says for which, and what, under the gap's name.
    Less,
    /// By another shipped mapping of that name: through it, PTX forbids the outcome.
    Mended(String),
}
