//! Explanations as the key `explanation` of `json` and `jsonl`.
//!
//! # Invariants
//! - Absent parts have no key; keys follow the order of the fields here.

use serde::Serialize;

use super::sentence;
use crate::execution::{WitnessObject, witness};
use diag::SourceLine;
use verdict::{Breach, Explanation, Link, MissingLink, Need, Reason, Where, Witness};

/// The value of the key.
#[derive(Serialize)]
pub(crate) struct ExplanationObject<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<BreachObject<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    impossible: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<NeedsObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<MissingObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    given_up: Option<String>,
}

#[derive(Serialize)]
struct BreachObject<'a> {
    axiom: &'a str,
    text: &'a str,
    doc: &'a str,
    chain: Vec<LinkObject<'a>>,
    closes: bool,
    made: Vec<MadeObject<'a>>,
    besides: Vec<LinkObject<'a>>,
    execution: WitnessObject<'a>,
}

#[derive(Serialize)]
struct MadeObject<'a> {
    first: usize,
    last: usize,
    link: LinkObject<'a>,
}

/// A link; `from` and `to` are indices of events in the execution of the same object.
#[derive(Serialize)]
struct LinkObject<'a> {
    from: usize,
    to: usize,
    relation: &'a str,
    set: bool,
    holds: bool,
    says: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    because: Vec<LinkObject<'a>>,
}

#[derive(Serialize)]
struct NeedsObject<'a> {
    needed: Vec<NeedObject<'a>>,
    spare: Vec<NeedObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    given_up: Option<String>,
}

#[derive(Serialize)]
struct NeedObject<'a> {
    thread: &'a str,
    #[serde(flatten)]
    line: &'a SourceLine,
    text: &'a str,
    what: &'a str,
    instead: &'a str,
    place: Where,
}

#[derive(Serialize)]
struct MissingObject<'a> {
    edits: Vec<NeedObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    breach: Option<BreachObject<'a>>,
    links: &'a [MissingLink],
    #[serde(skip_serializing_if = "Option::is_none")]
    none: Option<&'a str>,
}

/// An explanation as the value of its key.
pub(crate) fn object(explanation: &Explanation) -> ExplanationObject<'_> {
    fn all(list: &[Need]) -> Vec<NeedObject<'_>> {
        list.iter().map(need_object).collect()
    }
    ExplanationObject {
        broken: explanation.broken.iter().map(breach_object).collect(),
        impossible: &explanation.impossible,
        needs: explanation.needs.as_ref().map(|n| NeedsObject {
            needed: all(&n.needed),
            spare: all(&n.spare),
            given_up: n.given_up.as_ref().map(Reason::to_string),
        }),
        missing: explanation.missing.as_ref().map(|m| MissingObject {
            edits: all(&m.edits),
            breach: m.breach.as_ref().map(breach_object),
            links: &m.links,
            none: m.none.as_deref(),
        }),
        given_up: explanation.given_up.as_ref().map(Reason::to_string),
    }
}

fn breach_object(breach: &Breach) -> BreachObject<'_> {
    fn links<'a>(breach: &'a Breach, list: &'a [Link]) -> Vec<LinkObject<'a>> {
        list.iter()
            .map(|l| link_object(&breach.execution, l))
            .collect()
    }
    BreachObject {
        axiom: &breach.axiom,
        text: &breach.text,
        doc: &breach.doc,
        chain: links(breach, &breach.chain),
        closes: breach.closes,
        made: (breach.made.iter())
            .map(|m| MadeObject {
                first: m.first,
                last: m.last,
                link: link_object(&breach.execution, &m.link),
            })
            .collect(),
        besides: links(breach, &breach.besides),
        execution: witness(&breach.execution),
    }
}

fn link_object<'a>(witness: &Witness, link: &'a Link) -> LinkObject<'a> {
    LinkObject {
        from: link.from,
        to: link.to,
        relation: &link.relation,
        set: link.is_set,
        holds: link.holds,
        says: sentence(witness, link, true),
        because: link
            .because
            .iter()
            .map(|part| link_object(witness, part))
            .collect(),
    }
}

fn need_object(need: &Need) -> NeedObject<'_> {
    let Need {
        thread,
        line,
        text,
        what,
        instead,
        place,
    } = need;
    NeedObject {
        thread,
        line,
        text: text.trim(),
        what,
        instead,
        place: *place,
    }
}
