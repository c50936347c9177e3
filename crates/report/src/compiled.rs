//! Reports the code that a compiler generates for atomic operations, compared with a mapping.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

const BOLD: Style = Style::new().bold();
const BAD: Style = AnsiColor::Red.on_default();
const UNSURE: Style = AnsiColor::Yellow.on_default();

/// A compiler's code for the operations of a language.
#[derive(Clone, Debug, Serialize)]
pub struct CompiledReport {
    /// The compiler's version line, and its target.
    pub compiler: String,
    /// The language.
    pub language: &'static str,
    /// The mapping that it is compared with.
    pub mapping: &'static str,
    /// The operations by result, the worst first.
    pub operations: Vec<CompiledOperation>,
}

/// Operations with the same result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CompiledOperation {
    /// The result of the comparison.
    pub verdict: CompiledVerdict,
    /// Forms, such as `exchange`.
    pub forms: Vec<&'static str>,
    /// The order of all of them.
    pub order: &'static str,
    /// Sizes in bits; empty for fences.
    pub bits: Vec<u8>,
    /// Scopes; empty if the language has none.
    pub scopes: Vec<&'static str>,
    /// The generated code; if the compiler refused, its reason for the first operation.
    pub made: String,
    /// The code that the mapping requires.
    pub asked: String,
}

/// The comparison of generated with required code, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CompiledVerdict {
    /// Weaker in some respect.
    Weaker,
    /// It contains instructions that cannot be judged.
    Unjudged,
    /// The compiler refuses the operation.
    Refused,
    /// Stronger in some respect.
    Stronger,
    /// The same.
    Equal,
}

impl CompiledVerdict {
    /// The word in messages.
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
    /// The number of operations in the group.
    pub fn count(&self) -> usize {
        self.forms.len() * self.bits.len().max(1) * self.scopes.len().max(1)
    }

    /// Groups operations with the same result. A group contains all combinations of its forms,
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

/// Merges groups that differ only in one part.
fn merged<T: Clone>(
    all: Vec<CompiledOperation>,
    part: impl Fn(&mut CompiledOperation) -> &mut Vec<T>,
) -> Vec<CompiledOperation> {
    let mut found: Vec<CompiledOperation> = Vec::new();
    let rest = |operation: &CompiledOperation| {
        let mut rest = operation.clone();
        part(&mut rest).clear();
        // Reasons mention sizes and addresses; a merged group shows the first one.
        if rest.verdict == CompiledVerdict::Refused {
            rest.made.clear();
        }
        rest
    };
    for mut new in all {
        // A fence has no size and is not merged with sizes.
        let is_open = !part(&mut new).is_empty();
        match found
            .iter_mut()
            .position(|old| is_open && !part(old).is_empty() && rest(old) == rest(&new))
        {
            Some(at) => part(&mut found[at]).append(part(&mut new)),
            None => found.push(new),
        }
    }
    found
}

impl CompiledReport {
    /// The number of operations with this result.
    pub fn count(&self, verdict: CompiledVerdict) -> usize {
        self.operations
            .iter()
            .filter(|o| o.verdict == verdict)
            .map(CompiledOperation::count)
            .sum()
    }
}

/// Writes it as text: weaker, refused and unjudged operations, or all of them.
pub(super) fn human(
    out: &mut dyn Write,
    compiled: &CompiledReport,
    verbose: bool,
) -> io::Result<()> {
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
    let CompiledReport {
        compiler,
        language,
        mapping,
        ..
    } = compiled;
    let counts = counts.join(", ");
    writeln!(
        out,
        "{BOLD}{language} by {compiler}, held against `{mapping}`: {all} operations: \
         {counts}{BOLD:#}"
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
            _ => writeln!(out, "; expected: {}", operation.asked)?,
        }
    }
    Ok(())
}

/// Writes the object for one report, without a line end.
pub(super) fn write(out: &mut dyn Write, compiled: &CompiledReport) -> io::Result<()> {
    super::compact::write(out, &compiled)
}
