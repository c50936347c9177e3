//! Known gaps of a mapping: properties of its source model that its file declares as not preserved.
//!
//! A gap says how to recognise an outcome that lies in it ([`GapTest`]): PTX allows the outcome,
//! and the source model forbids it. Any difference beyond the declared gaps is a violation.

/// One known gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its name in reports.
    pub name: String,
    /// The property that the mapping does not preserve; the end of a sentence.
    pub lost: String,
    /// How to recognise an outcome that lies in the gap.
    pub told: GapTest,
}

/// How to recognise that an outcome lies in a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GapTest {
    /// By a weaker source model, which allows the outcome. The model's text gives the weaker
    /// definitions under the gap's name.
    Less,
    /// By another shipped mapping, with this name: under that mapping, PTX forbids the outcome.
    Mended(String),
}
