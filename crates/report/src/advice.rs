//! Advice: the cheapest orders, scopes and fences that keep a program correct, or make it correct.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use diag::SourceLine;

use super::fold::fold;

const BOLD: Style = Style::new().bold();
const UNSURE: Style = AnsiColor::Yellow.on_default();
const ADDED: Style = AnsiColor::Green.on_default();
const GONE: Style = AnsiColor::Red.on_default();

/// The number of lines shown around a change.
const CONTEXT: usize = 3;

/// The result of advice for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdviceVerdict {
    /// No cheaper program is correct.
    Minimal,
    /// A cheaper program is correct.
    OverSynchronised,
    /// The program is incorrect, and the changes make it correct.
    Repaired,
    /// The program is incorrect, and no orders, scopes or fences make it correct.
    BeyondRepair,
    /// The program has no expectations to keep.
    NothingToKeep,
    /// The search did not decide it.
    Undecided,
}

impl AdviceVerdict {
    /// The word in `jsonl`.
    pub fn word(self) -> &'static str {
        match self {
            AdviceVerdict::Minimal => "minimal",
            AdviceVerdict::OverSynchronised => "over-synchronised",
            AdviceVerdict::Repaired => "repaired",
            AdviceVerdict::BeyondRepair => "beyond-repair",
            AdviceVerdict::NothingToKeep => "nothing-to-keep",
            AdviceVerdict::Undecided => "undecided",
        }
    }
}

/// A change at one place.
#[derive(Clone, Debug, Serialize)]
pub struct AdvicePart {
    /// Its line in the file.
    #[serde(flatten)]
    pub line: SourceLine,
    /// The threads that contain it.
    pub threads: String,
    /// The old and the new text.
    pub text: String,
}

/// A part of the advice, and the best solution without it.
#[derive(Clone, Debug, Serialize)]
pub struct AdviceItem {
    /// The part.
    #[serde(flatten)]
    pub part: AdvicePart,
    /// Whether it is in every solution; `None`: undecided.
    pub needed: Option<bool>,
    /// The additional cost of the cheapest program without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<u64>,
    /// The other parts of that program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instead: Vec<AdvicePart>,
}

/// Advice for tests that share the same code.
#[derive(Clone, Debug, Serialize)]
pub struct AdviceReport {
    /// Their path.
    pub path: String,
    /// Their names.
    pub tests: Vec<String>,
    /// The models.
    pub models: Vec<String>,
    /// The result.
    #[serde(serialize_with = "word")]
    pub verdict: AdviceVerdict,
    /// The answers to keep: test, model, verdict.
    pub keeps: Vec<(String, String, &'static str)>,
    /// The cost of the program as written.
    pub cost: u64,
    /// The cost of the cheapest program.
    pub cheapest: Option<u64>,
    /// Whether no cheaper program is correct. This requires that stronger programs forbid no less,
    /// which is not known for every model.
    pub least: bool,
    /// The changes.
    pub changes: Vec<AdvicePart>,
    /// The synchronization of the cheapest program, part by part.
    pub menu: Vec<AdviceItem>,
    /// The number of places with a choice.
    pub choices: usize,
    /// The number of programs judged.
    pub programs: usize,
    /// The number of programs with an undecided answer, which counts as a failure.
    pub undecided: usize,
    /// The reason if it is undecided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Of a barrier that repairs a kernel: how far that is proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proved: Option<&'static str>,
    /// If nothing repairs it: the reading of the source in which a change forbids the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<String>,
    /// The change in the input format of `patch`.
    pub diff: String,
    /// The cheapest program as a file.
    pub program: Option<String>,
}

fn word<S: serde::Serializer>(verdict: &AdviceVerdict, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(verdict.word())
}

impl AdvicePart {
    fn says(&self) -> String {
        format!("{} ({}, line {})", self.text, self.threads, self.line)
    }
}

impl AdviceReport {
    /// The result in a sentence.
    pub fn says(&self) -> String {
        let (cost, programs) = (self.cost, self.programs);
        let least = self.cheapest.unwrap_or(cost);
        let mut text = match self.verdict {
            AdviceVerdict::Minimal if !self.least => {
                format!("no part of the program can be weaker: cost {cost}")
            }
            AdviceVerdict::Minimal => {
                format!("no order, scope or fence is stronger than needed: cost {cost}")
            }
            AdviceVerdict::OverSynchronised => {
                format!("over-synchronised: cost {cost}, and {least} suffices")
            }
            AdviceVerdict::Repaired if self.proved.is_some() => {
                return "not as expected; this barrier repairs it".to_owned();
            }
            AdviceVerdict::Repaired => {
                format!("not as expected; this change repairs it: cost {least}, now {cost}")
            }
            AdviceVerdict::BeyondRepair => {
                "not as expected, and no order, scope or fence repairs it".to_owned()
            }
            AdviceVerdict::NothingToKeep => {
                return "the test has no expectation that a weaker program could break".to_owned();
            }
            AdviceVerdict::Undecided => {
                let reason = self.reason.as_deref().unwrap_or("the search was given up");
                format!("undecided: {reason}")
            }
        };
        let s = if programs == 1 { "" } else { "s" };
        text += &format!(" ({programs} program{s} decided");
        if self.undecided > 0 {
            text += &format!(
                ", {} of them undecided, which count as failing",
                self.undecided
            );
        }
        text + ")"
    }

    /// Whether the user should look at it.
    pub(super) fn striking(&self) -> bool {
        !matches!(
            self.verdict,
            AdviceVerdict::Minimal | AdviceVerdict::NothingToKeep
        )
    }
}

/// Writes advice as text; with `all`, also its details.
pub(super) fn human(
    out: &mut dyn Write,
    advice: &AdviceReport,
    all: bool,
    columns: Option<usize>,
) -> io::Result<()> {
    let tests = match advice.tests.as_slice() {
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        [] => String::new(),
    };
    if all {
        for line in advice.diff.lines() {
            let style = match line.as_bytes() {
                [b'+', ..] => ADDED,
                [b'-', ..] => GONE,
                _ => Style::new(),
            };
            writeln!(out, "{style}{line}{style:#}")?;
        }
    }
    let style = if advice.verdict == AdviceVerdict::Undecided {
        UNSURE
    } else {
        BOLD
    };
    let models = advice.models.join(", ");
    writeln!(
        out,
        "{}",
        fold(
            &format!("{style}{tests}{style:#} under {models}: {}", advice.says()),
            columns
        )
    )?;
    if !all {
        return Ok(());
    }
    let mut say = |text: String| writeln!(out, "{}", fold(&text, columns));
    for (test, model, goal) in &advice.keeps {
        let of = if advice.tests.len() > 1 {
            format!("{test}: ")
        } else {
            String::new()
        };
        say(format!("  keeps: {of}{goal} under {model}"))?;
    }
    // The changes, unless the menu lists them.
    for change in advice.changes.iter().filter(|_| advice.menu.is_empty()) {
        say(format!("  it is so if {}", change.text))?;
    }
    match advice.proved {
        Some("every-launch") => say("  proved for every launch and every input".to_owned())?,
        Some(_) => say("  proved for this launch and every input".to_owned())?,
        None => {}
    }
    if let Some(reading) = &advice.reading {
        say(format!("  {reading}"))?;
    }
    let needed = advice.menu.iter().filter(|item| item.needed == Some(true));
    let needed: Vec<String> = needed.map(|item| item.part.says()).collect();
    if !needed.is_empty() {
        say("  needed in every solution:".to_owned())?;
        needed
            .iter()
            .try_for_each(|part| say(format!("    {part}")))?;
    }
    for item in advice.menu.iter().filter(|item| item.needed != Some(true)) {
        let part = item.part.says();
        match item.more {
            Some(more) => {
                say(format!("  without {part}, cost {more} more:"))?;
                item.instead
                    .iter()
                    .try_for_each(|part| say(format!("    {}", part.says())))?;
            }
            None => say(format!("  {part}: undecided whether the program needs it"))?,
        }
    }
    Ok(())
}

/// Writes the object for one piece of advice, without a line end.
pub(super) fn write(out: &mut dyn Write, advice: &AdviceReport) -> io::Result<()> {
    super::compact::write(out, &advice)
}

/// The difference of two texts in the unified format; empty if they are equal.
pub fn unified(path: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let ahead = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let behind = a[ahead..]
        .iter()
        .rev()
        .zip(b[ahead..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (x, y) = (&a[ahead..a.len() - behind], &b[ahead..b.len() - behind]);
    // The length of the longest common subsequence of the rests.
    let mut rest = vec![vec![0u32; y.len() + 1]; x.len() + 1];
    for i in (0..x.len()).rev() {
        for j in (0..y.len()).rev() {
            rest[i][j] = if x[i] == y[j] {
                rest[i + 1][j + 1] + 1
            } else {
                rest[i + 1][j].max(rest[i][j + 1])
            };
        }
    }
    // All lines of the file, each marked as kept, removed or added.
    let mut lines: Vec<(char, &str)> = a[..ahead].iter().map(|line| (' ', *line)).collect();
    let (mut i, mut j) = (0, 0);
    while i < x.len() || j < y.len() {
        if i < x.len() && j < y.len() && x[i] == y[j] {
            lines.push((' ', x[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < x.len() && (j == y.len() || rest[i + 1][j] >= rest[i][j + 1]) {
            lines.push(('-', x[i]));
            i += 1;
        } else {
            lines.push(('+', y[j]));
            j += 1;
        }
    }
    lines.extend(a[a.len() - behind..].iter().map(|line| (' ', *line)));
    let near = |n: usize| {
        let around = n.saturating_sub(CONTEXT)..(n + CONTEXT + 1).min(lines.len());
        lines[around].iter().any(|line| line.0 != ' ')
    };
    let mut text = format!("--- {path}\n+++ {path}\n");
    let mut n = 0;
    let (mut old_at, mut new_at) = (1, 1);
    while n < lines.len() {
        let end = (n..lines.len()).find(|&m| !near(m)).unwrap_or(lines.len());
        let count = |wanted: char| lines[n..end].iter().filter(|line| line.0 != wanted).count();
        let (olds, news) = (count('+'), count('-'));
        if end > n {
            text += &format!("@@ -{old_at},{olds} +{new_at},{news} @@\n");
            lines[n..end]
                .iter()
                .for_each(|(sign, line)| text += &format!("{sign}{line}\n"));
        }
        (old_at, new_at) = (old_at + olds, new_at + news);
        let next = (end..lines.len()).find(|&m| near(m)).unwrap_or(lines.len());
        (old_at, new_at, n) = (old_at + next - end, new_at + next - end, next);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_one_that_patch_reads() {
        let old: String = (1..=12).map(|n| format!("{n}\n")).collect();
        let new = old.replace("2\n3\n", "2\nx\n3\n").replace("11\n", "");
        let shown = unified("f", &old, &new);
        let wanted = "--- f\n+++ f\n@@ -1,5 +1,6 @@\n 1\n 2\n+x\n 3\n 4\n 5\n@@ -8,5 +9,4 @@\n \
            8\n 9\n 10\n-11\n 12\n";
        assert_eq!(shown, wanted);
        assert_eq!(unified("f", &old, &old), "");
    }
}
