//! Describes a change: its line, the text there, and the text to write instead.
//!
//! # Invariants
//! - The described text can be written: the front end has read it.

use super::{Knob, Spot, instr, spots};
use diag::one_line;
use front::litmus::{Splice, printed, respelled};
use program::edits::{Change, Edit, EditSite, edited};
use program::litmus::LitmusTest;
use program::{Program, SourceLine, Thread, ThreadId};
use verdict::{Need, Where};

impl Knob {
    /// The text at one level, and the text at another.
    pub fn needs(&self, test: &LitmusTest, what: usize, instead: usize) -> Vec<Need> {
        match self.splices(instead) {
            [] => vec![self.need(test, what, instead)],
            splices => splices
                .iter()
                .map(|splice| self.spelled(test, splice))
                .collect(),
        }
    }

    /// Describes a change of the text.
    fn spelled(&self, test: &LitmusTest, splice: &Splice) -> Need {
        let (file, span) = (&test.file, splice.span);
        // In assembly, a semicolon separates instructions.
        let instead = splice.text.trim().trim_start_matches("; ").to_owned();
        let place = if span.range().is_empty() {
            Where::After
        } else {
            Where::Instead
        };
        let what = file.text[span.range()].to_owned();
        // Its sites belong to the changed text, which may have more instructions.
        let first = self
            .spots()
            .filter_map(|(t, at)| test.program.thread(t).code.get(at));
        let mut all = first.chain(test.program.instrs().map(|i| i.2));
        let line = file.line_column(span.start as usize).0;
        let of = all
            .find(|instr| instr.span.start <= span.start && span.end <= instr.span.end)
            .filter(|_| place == Where::Instead);
        let (line, text) = match of {
            Some(instr) => (line, instr.text.clone()),
            None if place == Where::After => behind(&file.text, span.start as usize),
            None => (
                line,
                file.text
                    .lines()
                    .nth(line - 1)
                    .unwrap_or("")
                    .trim()
                    .to_owned(),
            ),
        };
        // If a word occurs twice, the whole instruction says which one is meant.
        let (what, instead) = match of {
            Some(instr) if text.matches(&what).count() > 1 => {
                let (start, end) = (instr.span.start as usize, instr.span.end as usize);
                let all = |word: &str| {
                    let new = [
                        &file.text[start..span.start as usize],
                        word,
                        &file.text[span.end as usize..end],
                    ];
                    one_line(&new.concat())
                };
                (all(&what), all(&instead))
            }
            _ => (what, instead),
        };
        let here: Vec<Spot> = spots(&test.program)
            .filter(|spot| {
                let at = instr(&test.program, *spot).span;
                place == Where::Instead && at.start <= span.start && span.end <= at.end
            })
            .collect();
        let all = if here.is_empty() {
            self.spots().collect()
        } else {
            here
        };
        Need {
            thread: threads(&test.program, all),
            line: source_line(&test.program, line as u32),
            text,
            what,
            instead,
            place,
        }
    }

    fn need(&self, test: &LitmusTest, what: usize, instead: usize) -> Need {
        let program = &test.program;
        let thread = threads(program, self.spots().collect());
        let (line, text) = self.instr(program).map_or((0.into(), String::new()), |i| {
            (i.line.clone(), i.text.clone())
        });
        let (mut before, mut after) = (self.says(what).to_owned(), self.says(instead).to_owned());
        // If one word for another does not say it, the whole instruction does.
        if instead > what
            && let (Some(spot), Some(change)) = (self.spots().next(), self.change(instead))
            && let Some(new) = rewritten(test, spot, &[change])
                .filter(|_| !matches!(change, Change::Generic | Change::FenceBefore(_)))
        {
            let word = Splice {
                span: new.span,
                text: test.file.text[new.span.range()].replacen(&before, &after, 1),
            };
            if !text.contains(&before) || respelled(test, &[word]).is_none() {
                (before, after) = (text.clone(), one_line(&new.text));
            }
        }
        let place = match self.change(instead) {
            Some(Change::FenceBefore(_)) => Where::Before,
            _ => Where::Instead,
        };
        Need {
            thread,
            line,
            text,
            what: before,
            instead: after,
            place,
        }
    }
}

/// The names of the threads of some instructions.
pub(crate) fn threads(program: &Program, spots: Vec<Spot>) -> String {
    let mut threads: Vec<ThreadId> = spots.into_iter().map(|s| s.0).collect();
    threads.dedup();
    let names: Vec<&str> = threads.iter().map(|t| &*program.thread(*t).name).collect();
    match names.as_slice() {
        [first, .., last] => format!("{first} to {last}"),
        [one] => (*one).to_owned(),
        [] => String::new(),
    }
}

/// An instruction as its dialect prints it: no text, if the printer refuses it. `None` if the
/// dialect is not printed.
fn printed_alone(program: &Program, spot: Spot) -> Option<Option<String>> {
    let thread = program.thread(spot.0);
    let elements = thread.code[spot.1].element.siblings(spot.1);
    let alone = Thread {
        code: thread.code[elements].to_vec(),
        ..thread.clone()
    };
    let text = printed(&alone, program)?.ok();
    Some(text.map(|text| text.trim().to_owned()))
}

/// An instruction of an assembly language with some changes. `None` if the printer does not print
/// it, or the file has it in another form.
pub(crate) fn rewritten(test: &LitmusTest, spot: Spot, changes: &[Change]) -> Option<Splice> {
    let old = instr(&test.program, spot);
    let there = test.file.text.get(old.span.range())?;
    if one_line(there) != old.text {
        return None;
    }
    let edits: Vec<Edit> = changes
        .iter()
        .map(|change| (EditSite::Instr(spot.0, spot.1), *change))
        .collect();
    let changed = edited(&test.program, &edits);
    let own = printed_alone(&test.program, spot)?;
    let text = match printed_alone(&changed, spot)? {
        Some(new) => own
            .and_then(|own| respelt(there, &own, &new))
            .unwrap_or_else(|| {
                // Its predicate became a branch around it, which is not printed.
                match there.split_once(char::is_whitespace) {
                    Some((predicate, _)) if predicate.starts_with('@') => {
                        format!("{predicate} {new}")
                    }
                    _ => new,
                }
            }),
        // Refused at its place.
        None => "?".to_owned(),
    };
    Some(Splice {
        span: old.span,
        text,
    })
}

/// A written instruction whose name takes the new words of the printed name; a compiler's names of
/// registers and types stay. `None` if anything else differs.
pub(super) fn respelt(there: &str, own: &str, new: &str) -> Option<String> {
    fn parts(text: &str) -> (Vec<String>, String) {
        let (name, operands) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
        (
            name.split('.').map(str::to_owned).collect::<Vec<_>>(),
            operands.to_owned(),
        )
    }
    let predicate = if there.starts_with('@') {
        there.find(char::is_whitespace)?
    } else {
        0
    };
    let start = predicate + there[predicate..].find(|c: char| !c.is_whitespace())?;
    let (mut words, operands) = parts(&there[start..]);
    let ((own, of_own), (new, of_new)) = (parts(own), parts(new));
    if of_own != of_new || words[0] != own[0] || own[0] != new[0] {
        return None;
    }
    // A word that the written name lacks is a default.
    let gone = |word: &String| own.contains(word) && !new.contains(word);
    let at = words.iter().position(gone).unwrap_or(1);
    words.retain(|word| !gone(word));
    let added: Vec<String> = new
        .iter()
        .filter(|word| !own.contains(word))
        .cloned()
        .collect();
    words.splice(at..at, added);
    Some(format!("{}{}{operands}", &there[..start], words.join(".")))
}

/// A line of a test's file, with the origin that its code states.
fn source_line(program: &Program, number: u32) -> SourceLine {
    let there = program
        .instrs()
        .map(|(_, _, instr)| &instr.line)
        .find(|line| line.number == number);
    there.cloned().unwrap_or_else(|| number.into())
}

/// The line on which a statement ends, and the statement's text on it.
fn behind(text: &str, end: usize) -> (usize, String) {
    let line = text[..end].bytes().filter(|b| *b == b'\n').count() + 1;
    let whole = text[..end].rsplit('\n').next().unwrap_or("").trim();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in whole.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ';' | '{' | '}' if depth == 0 && at + 1 < whole.len() => start = at + 1,
            _ => {}
        }
    }
    (line, whole[start..].trim().to_owned())
}
