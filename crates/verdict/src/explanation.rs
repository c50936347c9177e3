//! Why an outcome is forbidden, or what is missing for it to be.
//!
//! # Invariants
//! - Everything in here was verified: every link holds in the execution beside it (or does not,
//!   where [`Link::holds`] says so), every chain breaks its axiom, every edit was decided by an
//!   engine.
//! - Links name events by their position in the execution beside them.

use diag::SourceLine;
use serde::{Deserialize, Serialize};

use super::{Reason, Witness};

/// Why an answer about reachability is what it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// Of a forbidden outcome: the axioms that together forbid it, a minimal set, each with an
    /// execution that has the outcome and breaks this axiom alone.
    pub broken: Vec<Breach>,
    /// Of an outcome that no execution has, whatever the axioms: which values cannot occur, each
    /// with a reason.
    pub impossible: Vec<String>,
    /// Of a forbidden outcome: the orders, scopes, fences, barriers and dependencies that this
    /// rests on.
    pub needs: Option<Needs>,
    /// Of an allowed outcome: what is missing for it to be forbidden.
    pub missing: Option<Missing>,
    /// Why there is less here than there could be: a limit that was hit.
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
    /// What the model says of it: source section, tests that it forbids.
    pub doc: String,
    /// An execution that has the outcome and satisfies the other axioms of the set.
    pub execution: Witness,
    /// The edges that break it, each beginning where the one before ends; where `closes`, the last
    /// ends where the first begins. Empty if the axiom demands that something exists.
    pub chain: Vec<Link>,
    /// The relations of the axiom that several edges of the chain make up.
    pub made: Vec<Made>,
    /// Whether the chain is a cycle.
    pub closes: bool,
    /// What else makes the chain break the axiom: other relations between its ends, sets that its
    /// events are in.
    pub besides: Vec<Link>,
}

/// A link of an axiom that a part of a chain makes up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// Position of the first edge in [`Breach::chain`].
    pub first: usize,
    /// Of the last.
    pub last: usize,
    /// What they make up, with all that it is made of.
    pub link: Link,
}

/// A pair of a relation in one execution, or (`from` is `to`) a member of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The first event.
    pub from: usize,
    /// The second event.
    pub to: usize,
    /// The relation or set as the model calls it; an expression, where it has no name.
    pub relation: String,
    /// Whether it is a set, and `from` is `to`.
    pub is_set: bool,
    /// Whether it holds. One that does not stands where the model says `\`.
    pub holds: bool,
    /// A clause in words, in which `{a}` and `{b}` stand for the two events.
    pub says: String,
    /// What it is made of, one level down; empty for base relations.
    pub because: Vec<Link>,
}

/// What of a program a forbidden outcome rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// Together they forbid the outcome; without any one of them it is allowed.
    pub needed: Vec<Need>,
    /// What may be weaker, or missing, all at once, and the outcome is still forbidden.
    pub spare: Vec<Need>,
    /// Why the search was given up, if it was: then more may be spare.
    #[serde(skip)]
    pub given_up: Option<Reason>,
}

/// Something of a program: an order, a scope, a fence, a barrier, a dependency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// The thread's name; empty for what belongs to none.
    pub thread: String,
    /// 1-based line in the test file; 0 for what has none.
    pub line: SourceLine,
    /// The instruction as written.
    pub text: String,
    /// What of it: ``the order `.release` ``.
    pub what: String,
    /// What would be there instead: `` `.relaxed` ``.
    pub instead: String,
    /// Where that would be.
    pub place: Where,
}

/// Where something would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Where {
    /// In place of what is there.
    #[default]
    Instead,
    /// In front of the instruction.
    Before,
    /// Behind the statement.
    After,
}

/// What is missing for an allowed outcome to be forbidden.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Changes to the program that together forbid the outcome; none can be spared. Empty if none
    /// were found.
    pub edits: Vec<Need>,
    /// The reading of the source in which they do, if it is another one than that of the answer:
    /// `alias-overlap=fenced`.
    #[serde(default)]
    pub under: Option<String>,
    /// How the changed program breaks an axiom; links that do not hold in the program as it is are
    /// marked so by [`MissingLink`]. Positions are those of the breach's own execution.
    pub breach: Option<Breach>,
    /// The links of the breach's chain that do not hold in the program as it is.
    pub links: Vec<MissingLink>,
    /// Why there is no more to say, if there is none.
    pub none: Option<String>,
}

/// A link that holds in a changed program only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingLink {
    /// Which link of [`Breach::chain`]; `None`: something beside it.
    pub link: Option<usize>,
    /// The relations that it is made of, down to the one that fails: `synchronizes`,
    /// `morally-strong`, `sr`.
    pub path: Vec<String>,
    /// Why it does not hold: ``the scope of `st.release.cta [f]`, `.cta`, does not include P1,
    /// which runs in another CTA``.
    pub why: String,
}
