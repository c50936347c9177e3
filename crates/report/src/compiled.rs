//! What a compiler made of atomic operations, held against a mapping.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

const BOLD: Style = Style::new().bold();
const BAD: Style = AnsiColor::Red.on_default();
const UNSURE: Style = AnsiColor::Yellow.on_default();

/// What a compiler made of the operations of a language.
#[derive(Clone, Debug, Serialize)]
pub struct Compiled {
    /// The compiler, in its own words, and its target.
    pub compiler: String,
    /// The language.
    pub language: &'static str,
    /// What it is held against.
    pub mapping: &'static str,
    /// By what came of it, the worst first.
    pub operations: Vec<CompiledOperation>,
}

/// Operations of which one thing was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CompiledOperation {
    /// How it compares.
    pub verdict: CompiledVerdict,
    /// Forms, such as `exchange`.
    pub forms: Vec<&'static str>,
    /// The order of all of them.
    pub order: &'static str,
    /// Sizes in bits; empty of fences.
    pub bits: Vec<u8>,
    /// Scopes; empty where there are none.
    pub scopes: Vec<&'static str>,
    /// What was made; where the compiler refused, its reason for the first of them.
    pub made: String,
    /// What the mapping asks for.
    pub asked: String,
}

/// How what was made compares with what is asked, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CompiledVerdict {
    /// Less of something.
    Weaker,
    /// It has instructions that are not judged.
    Unjudged,
    /// The compiler refuses the operation.
    Refused,
    /// More of something.
    Stronger,
    /// The same.
    Equal,
}

impl CompiledVerdict {
    /// In text.
    pub fn word(self) -> &'static str {
        match self {
            CompiledVerdict::Weaker => "weaker",
            CompiledVerdict::Unjudged => "unjudged",
            CompiledVerdict::Refused => "refused",
            CompiledVerdict::Stronger => "stronger",
            CompiledVerdict::Equal => "equal",
        }
    }

    fn style(self) -> Style {
        match self {
            CompiledVerdict::Weaker => BAD,
            CompiledVerdict::Unjudged => UNSURE,
            _ => Style::new(),
        }
    }
}

impl CompiledOperation {
    /// How many operations it stands for.
    pub fn count(&self) -> usize {
        self.forms.len() * self.bits.len().max(1) * self.scopes.len().max(1)
    }

    /// Operations of which the same came are told together, as long as they are all of some forms,
    /// sizes and scopes.
    pub fn together(mut all: Vec<CompiledOperation>) -> Vec<CompiledOperation> {
        all = merged(all, |operation| &mut operation.bits);
        all = merged(all, |operation| &mut operation.scopes);
        all = merged(all, |operation| &mut operation.forms);
        all.sort_by_key(|operation| operation.verdict);
        all
    }

    fn of(&self) -> String {
        let mut of = format!("{} {}", self.forms.join("|"), self.order);
        for bits in &self.bits {
            of += &format!(" u{bits}");
        }
        if self.scopes.is_empty() {
            of
        } else {
            format!("{of} {}", self.scopes.join(" "))
        }
    }
}

/// Those that differ in one part alone become one.
fn merged<T: Clone>(
    all: Vec<CompiledOperation>,
    part: impl Fn(&mut CompiledOperation) -> &mut Vec<T>,
) -> Vec<CompiledOperation> {
    let mut found: Vec<CompiledOperation> = Vec::new();
    let rest = |operation: &CompiledOperation| {
        let mut rest = operation.clone();
        part(&mut rest).clear();
        // Reasons speak of sizes and addresses: what was refused is told with that of the first.
        if rest.verdict == CompiledVerdict::Refused {
            rest.made.clear();
        }
        rest
    };
    for mut new in all {
        // A fence has no size, which is none that others could be added to.
        let is_open = !part(&mut new).is_empty();
        let fits = |old: &mut CompiledOperation| {
            is_open && !part(old).is_empty() && rest(old) == rest(&new)
        };
        match found.iter_mut().position(fits) {
            Some(at) => part(&mut found[at]).append(part(&mut new)),
            None => found.push(new),
        }
    }
    found
}

impl Compiled {
    /// How many operations came out so.
    pub fn count(&self, verdict: CompiledVerdict) -> usize {
        self.operations
            .iter()
            .filter(|o| o.verdict == verdict)
            .map(CompiledOperation::count)
            .sum()
    }
}

/// Writes it for people: what is weaker, refused or not judged; all of it if asked for.
pub(super) fn human(out: &mut dyn Write, compiled: &Compiled, verbose: bool) -> io::Result<()> {
    use CompiledVerdict::{Equal, Refused, Stronger, Unjudged, Weaker};
    let all: usize = compiled
        .operations
        .iter()
        .map(CompiledOperation::count)
        .sum();
    let counts: Vec<String> = [Equal, Stronger, Weaker, Unjudged, Refused]
        .into_iter()
        .map(|verdict| (compiled.count(verdict), verdict.word()))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let Compiled {
        compiler,
        language,
        mapping,
        ..
    } = compiled;
    let counts = counts.join(", ");
    writeln!(
        out,
        "{BOLD}{language} by {compiler}, held against `{mapping}`: {all} operations: {counts}{BOLD:#}"
    )?;
    let shown =
        |o: &&CompiledOperation| verbose || matches!(o.verdict, Weaker | Unjudged | Refused);
    for operation in compiled.operations.iter().filter(shown) {
        let (verdict, style) = (operation.verdict.word(), operation.verdict.style());
        write!(
            out,
            "  {style}{verdict:8}{style:#}  {}: {}",
            operation.of(),
            operation.made
        )?;
        match operation.verdict {
            Refused | Equal => writeln!(out)?,
            _ => writeln!(out, "; asked: {}", operation.asked)?,
        }
    }
    Ok(())
}

/// The object of one report, without a line end.
pub(super) fn write(out: &mut dyn Write, compiled: &Compiled) -> io::Result<()> {
    super::compact::write(out, &compiled)
}
