//! A test after some changes, and the parts that were added.
//!
//! # Invariants
//! - A changed instruction has the new text, if its dialect is printed.

use super::{Spot, instr, rewritten};
use diag::Span;
use front::litmus::{Splice, printed, respelled};
use program::edits::{Change, Edit, EditSite, edited, fence_text};
use program::litmus::LitmusTest;
use program::{Op, Program, Thread};

/// The test after some edits; each changed instruction has its new text.
pub fn version(test: &LitmusTest, edits: &[Edit]) -> LitmusTest {
    let mut program = edited(&test.program, edits);
    for (site, change) in edits {
        let EditSite::Instr(t, i) = *site else {
            continue;
        };
        let is_before = |edit: &&Edit| match **edit {
            (EditSite::Instr(u, j), Change::FenceBefore(_)) => u == t && j <= i,
            _ => false,
        };
        let at = i + edits.iter().filter(is_before).count();
        let (thread, old) = (
            &program.threads[usize::from(t.0)],
            instr(&test.program, (t, i)),
        );
        let new = &thread.code[at];
        if matches!(
            (&new.op, change),
            (Op::Branch { .. }, _) | (_, Change::FenceBefore(_) | Change::Value(_))
        ) {
            continue;
        }
        let elements = new.element.siblings(at);
        let alone = Thread {
            code: thread.code[elements.clone()].to_vec(),
            ..thread.clone()
        };
        let row = program.dialect.row();
        let text = match (printed(&alone, &program), *change) {
            (Some(Ok(text)), _) => text.trim().to_owned(),
            (_, Change::Scope(scope)) => {
                format!("{} /* {} */", old.text.trim(), row.scope_word(scope))
            }
            (_, Change::Order(order)) => {
                format!("{} /* {} */", old.text.trim(), row.order_word(order))
            }
            _ => continue,
        };
        program.threads[usize::from(t.0)].code[elements]
            .iter_mut()
            .for_each(|e| e.text.clone_from(&text));
    }
    LitmusTest {
        program,
        ..test.clone()
    }
}

/// Changes of a test: of its text, and of the program that the front end made of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) edits: Vec<Edit>,
    pub(crate) splices: Vec<Splice>,
}

/// A changed test.
pub(crate) struct Version {
    pub(crate) test: LitmusTest,
    pub(crate) added: Added,
}

/// The added parts of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Added {
    spots: Vec<Spot>,
    /// Parts of the file.
    spans: Vec<Span>,
}

impl Added {
    /// Whether an instruction is an added one.
    pub(crate) fn has(&self, program: &Program, spot: Spot) -> bool {
        let span = instr(program, spot).span;
        self.spots.contains(&spot)
            || self
                .spans
                .iter()
                .any(|s| s.start <= span.start && span.end <= s.end)
    }
}

impl Changes {
    /// All changes as changes of the file; `None` if some have no text.
    pub(crate) fn in_text(&self, test: &LitmusTest) -> Option<Vec<Splice>> {
        let mut splices = self.splices.clone();
        let mut spots = Vec::new();
        for (site, _) in &self.edits {
            let EditSite::Instr(t, i) = *site else {
                return None;
            };
            spots.push((t, i));
        }
        spots.sort_unstable();
        spots.dedup();
        for spot in spots {
            let here = self
                .edits
                .iter()
                .filter(|edit| edit.0 == EditSite::Instr(spot.0, spot.1))
                .map(|edit| edit.1);
            let (fences, changes): (Vec<Change>, Vec<Change>) =
                here.partition(|change| matches!(change, Change::FenceBefore(_)));
            if !changes.is_empty() {
                splices.push(rewritten(test, spot, &changes)?);
            }
            let at = instr(&test.program, spot).span.start;
            for fence in fences {
                let Change::FenceBefore(fence) = fence else {
                    continue;
                };
                let text = put_before(
                    &test.file.text,
                    at as usize,
                    &fence_text(test.program.dialect, fence),
                );
                splices.push(Splice {
                    span: Span { start: at, end: at },
                    text,
                });
            }
        }
        splices.sort_unstable();
        splices.dedup();
        Some(splices)
    }

    /// The test with all changes; `None` if the front end refuses it.
    pub(crate) fn of(&self, test: &LitmusTest) -> Option<Version> {
        let mut splices = self.splices.clone();
        splices.sort_unstable();
        splices.dedup();
        if splices.is_empty() {
            return Some(Version {
                test: version(test, &self.edits),
                added: self.added(Vec::new()),
            });
        }
        let (read, spans) = respelled(test, &splices)?;
        Some(Version {
            test: version(&read, &self.edits),
            added: self.added(spans),
        })
    }

    fn added(&self, spans: Vec<Span>) -> Added {
        let mut before: Vec<Spot> = self
            .edits
            .iter()
            .filter_map(|edit| match *edit {
                (EditSite::Instr(t, i), Change::FenceBefore(_)) => Some((t, i)),
                _ => None,
            })
            .collect();
        before.sort_unstable();
        let spots = (0..before.len())
            .map(|at| {
                (
                    before[at].0,
                    before[at].1 + before[..at].iter().filter(|s| s.0 == before[at].0).count(),
                )
            })
            .collect();
        Added { spots, spans }
    }
}

/// Puts a statement of assembly in front of a place: on a separate line, if the place begins its
/// line.
fn put_before(text: &str, at: usize, statement: &str) -> String {
    let indent = text[..at].rsplit('\n').next().unwrap_or("");
    match indent.trim().is_empty() {
        true => format!("{statement}\n{indent}"),
        false => format!("{}; ", statement.trim_end_matches(';')),
    }
}
