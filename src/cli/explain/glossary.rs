//! The glossary: one text, a chapter of the book, that is also read here.
//!
//! Its form: `## term` or `## term, other name`, then paragraphs. The last paragraph may be
//! ``Example: `TEST`, `MODEL`.``

/// The text.
const TEXT: &str = include_str!("../../../docs/src/glossary.md");

/// One term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GlossaryTerm {
    /// Its names, the usual one first.
    pub names: Vec<String>,
    /// Its meaning.
    pub text: String,
    /// A test, and the model that decides it.
    pub example: Option<(String, String)>,
}

/// All terms, in the order of the text.
pub(super) fn terms() -> Vec<GlossaryTerm> {
    let sections = TEXT.split("\n## ").skip(1);
    sections
        .map(|section| {
            let (head, body) = section.split_once('\n').unwrap_or((section, ""));
            let (text, example) = match body.split_once("\nExample: ") {
                Some((text, rest)) => (text, example(rest)),
                None => (body, None),
            };
            GlossaryTerm {
                names: head.split(", ").map(str::to_owned).collect(),
                text: plain(text),
                example,
            }
        })
        .collect()
}

/// The two words in backquotes.
fn example(text: &str) -> Option<(String, String)> {
    let mut words = text.split('`').skip(1).step_by(2);
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

/// Without the marks of links: `[text](target)` is `text`.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.trim();
    while let Some(at) = rest.find("](") {
        let (before, after) = rest.split_at(at);
        let open = before.rfind('[');
        match (open, after.find(')')) {
            (Some(open), Some(close)) => {
                out.push_str(&before[..open]);
                out.push_str(&before[open + 1..]);
                rest = &after[close + 1..];
            }
            _ => {
                out.push_str(before);
                out.push_str("](");
                rest = &after[2..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_their_text() {
        assert_eq!(
            plain("see [a race](races.md), and x[1](2"),
            "see a race, and x[1](2"
        );
    }

    #[test]
    fn every_term_has_a_name_and_a_text_and_is_there_once() {
        let mut seen = std::collections::BTreeSet::new();
        let list = terms();
        assert!(list.len() > 20, "{}", list.len());
        for term in list {
            assert!(!term.text.is_empty(), "{:?}", term.names);
            for name in term.names {
                assert!(seen.insert(name.to_lowercase()), "{name} is there twice");
            }
        }
    }
}
