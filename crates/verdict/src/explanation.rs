//! Explains an answer: why an outcome is forbidden, or which change would forbid it.
//!
//! # Invariants
//! - An engine or the evaluator verified all of it. Every link holds in its execution, or fails
//!   there if [`Link::holds`] says so.
//! - Every chain breaks its axiom, and an engine decided every edit.
//! - Links name events by their position in the execution of the same breach.

use diag::SourceLine;
use serde::{Deserialize, Serialize};

use super::{Reason, Witness};

/// Why a reachability answer holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// For a forbidden outcome: a minimal set of axioms that together forbid it. Each comes with an
    /// execution that has the outcome and breaks this axiom alone.
    pub broken: Vec<Breach>,
    /// For an outcome that no execution has under any axioms: the values that cannot occur, each
    /// with a reason.
    pub impossible: Vec<String>,
    /// For a forbidden outcome: the orders, scopes, fences, barriers and dependencies that it
    /// depends on.
    pub needs: Option<Needs>,
    /// For an allowed outcome: changes that would forbid it.
    pub missing: Option<Missing>,
    /// The limit that cut the explanation short, if one did.
    #[serde(skip)]
    pub given_up: Option<Reason>,
}

/// An axiom, and how an execution breaks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    /// The axiom's name.
    pub axiom: String,
    /// The axiom as written: `irreflexive (rf | fr) ; causality`.
    pub text: String,
    /// The model's comment on the axiom: source section, tests that it forbids.
    pub doc: String,
    /// An execution that has the outcome and satisfies the other axioms of the set.
    pub execution: Witness,
    /// The edges that break the axiom, each beginning where the previous one ends. If `closes`, the
    /// last edge ends where the first begins. Empty if the axiom demands that something exists.
    pub chain: Vec<Link>,
    /// Relations of the axiom that combine several edges of the chain.
    pub made: Vec<ComposedLink>,
    /// Whether the chain is a cycle.
    pub closes: bool,
    /// Further links that make the chain break the axiom: other relations between its ends, sets
    /// that contain its events.
    pub besides: Vec<Link>,
}

/// A link of the axiom that combines a part of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComposedLink {
    /// Position of the first edge in [`Breach::chain`].
    pub first: usize,
    /// Position of the last edge.
    pub last: usize,
    /// The combined link, with all its parts.
    pub link: Link,
}

/// A pair of a relation in one execution, or (if `from` is `to`) a member of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The first event.
    pub from: usize,
    /// The second event.
    pub to: usize,
    /// The model's name of the relation or set; its expression if it has no name.
    pub relation: String,
    /// Whether the link is a set membership; then `from` is `to`.
    pub is_set: bool,
    /// Whether the link holds. A link that fails comes from the right side of a `\` in the model.
    pub holds: bool,
    /// A clause in words; `{a}` and `{b}` are placeholders for the two events.
    pub says: String,
    /// The links that this one is made of, one level down; empty for base relations.
    pub because: Vec<Link>,
}

/// The parts of a program that make an outcome forbidden.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// Together they forbid the outcome; without any one of them it is allowed.
    pub needed: Vec<Need>,
    /// Parts that may be weaker or missing, all at once, while the outcome stays forbidden.
    pub spare: Vec<Need>,
    /// Why the search ended early, if it did: then more may be spare.
    #[serde(skip)]
    pub given_up: Option<Reason>,
}

/// A part of a program: an order, a scope, a fence, a barrier, a dependency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// The thread's name; empty for a part outside all threads.
    pub thread: String,
    /// 1-based line in the test file; 0 if it has none.
    pub line: SourceLine,
    /// The instruction as written.
    pub text: String,
    /// The part of that instruction: ``the order `.release` ``.
    pub what: String,
    /// The text that would replace it: `` `.relaxed` ``.
    pub instead: String,
    /// The position of that text.
    pub place: Where,
}

/// The position at which an edit puts its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Where {
    /// In place of the current text.
    #[default]
    Instead,
    /// In front of the instruction.
    Before,
    /// Behind the statement.
    After,
}

/// Changes that would forbid an allowed outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Changes to the program that together forbid the outcome; each is necessary. Empty if the
    /// search found none.
    pub edits: Vec<Need>,
    /// The reading of the source in which they forbid it, if the answer used another one:
    /// `alias-overlap=fenced`. Without an edit, that reading forbids the program as it stands.
    #[serde(default)]
    pub under: Option<String>,
    /// How the changed program breaks an axiom. [`MissingLink`] marks links that do not hold in the
    /// unchanged program. Positions refer to the breach's own execution.
    pub breach: Option<Breach>,
    /// The links of the breach's chain that do not hold in the unchanged program.
    pub links: Vec<MissingLink>,
    /// Why the search found no changes, if it found none.
    pub none: Option<String>,
}

/// A link that holds only in a changed program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingLink {
    /// Position in [`Breach::chain`]; `None` for a link outside the chain.
    pub link: Option<usize>,
    /// The relations that the link consists of, down to the one that fails: `synchronizes`,
    /// `morally-strong`, `sr`.
    pub path: Vec<String>,
    /// Why the link fails: ``the scope of `st.release.cta [f]`, `.cta`, does not include P1, which
    /// runs in another CTA``.
    pub why: String,
}
