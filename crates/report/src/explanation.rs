//! Writes explanations as text.
//!
//! # Invariants
//! - A chain names an event by its instruction, thread and line. Further details name it by its
//!   instruction only, unless another instruction has the same text.

use std::io::{self, Write};

use anstyle::Style;

use super::execution::execution;
use verdict::{Breach, Explanation, Link, Missing, Need, Needs, Where, Witness};

mod object;

pub(super) use object::{ExplanationObject, object};

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// Writes an explanation; `whole`: down to base relations, and with the executions.
pub(super) fn human(out: &mut dyn Write, explanation: &Explanation, whole: bool) -> io::Result<()> {
    let names: Vec<String> = explanation
        .broken
        .iter()
        .map(|b| format!("{BOLD}{}{BOLD:#}", b.axiom))
        .collect();
    match (names.as_slice(), explanation.broken.as_slice()) {
        ([one], [only]) => {
            writeln!(
                out,
                "  every execution with this outcome breaks the axiom {one}, {}:",
                only.text
            )?;
            breach(out, only, whole)?;
        }
        ([first @ .., last], all) => {
            writeln!(
                out,
                "  every execution with this outcome breaks {} or {last}",
                first.join(", ")
            )?;
            for (name, one) in names.iter().zip(all) {
                writeln!(out, "  one that breaks {name} alone, {}:", one.text)?;
                breach(out, one, whole)?;
            }
        }
        ([], _) => {}
    }
    if !explanation.impossible.is_empty() {
        writeln!(
            out,
            "  no execution, consistent or not, reaches {}",
            explanation.impossible.join(", ")
        )?;
    }
    if let Some(needs) = &explanation.needs {
        self::needs(out, needs)?;
    }
    if let Some(missing) = &explanation.missing {
        self::missing(out, missing, whole)?;
    }
    if let Some(reason) = &explanation.given_up {
        writeln!(out, "  {DIM}the explanation is incomplete: {reason}{DIM:#}")?;
    }
    Ok(())
}

fn breach(out: &mut dyn Write, breach: &Breach, whole: bool) -> io::Result<()> {
    if breach.chain.is_empty() && breach.besides.is_empty() {
        return writeln!(
            out,
            "    the execution lacks the event or pair that the axiom demands"
        );
    }
    for (i, link) in breach.chain.iter().enumerate() {
        writeln!(
            out,
            "    {}. {}  {DIM}{}{DIM:#}",
            i + 1,
            sentence(&breach.execution, link, true),
            link.relation
        )?;
        because(out, &breach.execution, link, 1, whole)?;
    }
    for made in &breach.made {
        let steps = match made.last - made.first {
            0 => format!("step {}", made.first + 1),
            _ => format!("steps {} to {}", made.first + 1, made.last + 1),
        };
        writeln!(out, "    {DIM}{steps}: `{}`{DIM:#}", made.link.relation)?;
        if whole {
            because(out, &breach.execution, &made.link, 1, whole)?;
        }
    }
    if breach.closes && breach.chain.len() > 1 {
        let first = &breach.chain[0];
        writeln!(
            out,
            "    so {} would come before itself",
            full(&breach.execution, first.from)
        )?;
    }
    // The instruction's text already shows membership in a base set.
    let plain = |l: &&Link| !whole && l.is_set && l.because.is_empty();
    let mut told = Vec::new();
    for link in breach.besides.iter().filter(|l| !plain(l)) {
        let text = sentence(&breach.execution, link, false);
        if told.contains(&text) {
            continue;
        }
        writeln!(out, "    and {text}  {DIM}{}{DIM:#}", link.relation)?;
        told.push(text);
        // The other event that puts an event into a set is of no interest.
        if whole || !link.is_set {
            because(out, &breach.execution, link, 1, whole)?;
        }
    }
    if whole {
        execution(out, &breach.execution)?;
    }
    Ok(())
}

/// Writes the parts of a link: all of them level by level, or only the base relations below it.
fn because(
    out: &mut dyn Write,
    witness: &Witness,
    link: &Link,
    level: usize,
    whole: bool,
) -> io::Result<()> {
    let indent = "  ".repeat(level);
    if whole {
        for part in &link.because {
            writeln!(
                out,
                "     {indent}- {}  {DIM}{}{DIM:#}",
                sentence(witness, part, false),
                part.relation
            )?;
            because(out, witness, part, level + 1, whole)?;
        }
        return Ok(());
    }
    let mut told = Vec::new();
    leaves(link, &mut |leaf| {
        let mut text = sentence(witness, leaf, false);
        // "Both" refers to the events of the link, unless the text names others.
        fn ends(l: &Link) -> (usize, usize) {
            (l.from.min(l.to), l.from.max(l.to))
        }
        if ends(leaf) != ends(link) && !leaf.says.contains("{a}") && !leaf.says.contains("{b}") {
            text = format!(
                "{} and {}: {text}",
                short(witness, leaf.from),
                short(witness, leaf.to)
            );
        }
        if !told.contains(&text) {
            told.push(text);
        }
    });
    told.iter()
        .try_for_each(|text| writeln!(out, "     {indent}- {text}"))
}

/// The pairs of base relations below a link. Membership in a set is visible in an event's text, so
/// it is skipped.
fn leaves(link: &Link, tell: &mut dyn FnMut(&Link)) {
    for part in link.because.iter().filter(|p| !p.is_set && p.holds) {
        if part.because.is_empty() && part.from != part.to {
            tell(part);
        }
        leaves(part, tell);
    }
}

/// A link as a sentence.
fn sentence(witness: &Witness, link: &Link, at_length: bool) -> String {
    let name = |e: usize| {
        if at_length {
            full(witness, e)
        } else {
            short(witness, e)
        }
    };
    link.says
        .replace("{a}", &name(link.from))
        .replace("{b}", &name(link.to))
}

/// An event with its thread and line.
fn full(witness: &Witness, event: usize) -> String {
    let e = &witness.events[event];
    if e.thread.is_none() {
        return format!("the initial `{}`", e.action.trim_start_matches("W "));
    }
    format!(
        "{}`{}` ({}, line {})",
        half(witness, event),
        e.text.trim(),
        e.who(),
        e.line
    )
}

/// An event without its thread and line, if its text identifies it.
fn short(witness: &Witness, event: usize) -> String {
    let e = &witness.events[event];
    if e.thread.is_none()
        || witness
            .events
            .iter()
            .any(|o| o.text.trim() == e.text.trim() && (o.thread, &o.line) != (e.thread, &e.line))
    {
        return full(witness, event);
    }
    format!("{}`{}`", half(witness, event), e.text.trim())
}

/// Which of the events of one instruction it is.
fn half(witness: &Witness, event: usize) -> &'static str {
    let e = &witness.events[event];
    let same =
        |o: &&verdict::WitnessEvent| (o.thread, &o.line, &o.text) == (e.thread, &e.line, &e.text);
    if witness.events.iter().filter(same).count() < 2 {
        return "";
    }
    match e.action.split(' ').next() {
        Some("R") => "the read of ",
        Some("W") => "the write of ",
        Some("BA") => "the arrival at ",
        Some("BW") => "the wait of ",
        _ => "",
    }
}

fn needs(out: &mut dyn Write, needs: &Needs) -> io::Result<()> {
    if let Some(reason) = &needs.given_up {
        return writeln!(
            out,
            "  {DIM}the parts that it needs are undecided: {reason}{DIM:#}"
        );
    }
    if needs.needed.is_empty() {
        return writeln!(out, "  it is forbidden with any orders, scopes and fences");
    }
    // Which parts are unnecessary depends on the other parts. So the first list contains parts that
    // can all be removed at once, and the second the remaining ones.
    if !needs.spare.is_empty() {
        writeln!(out, "  it would still be forbidden")?;
        for (i, n) in needs.spare.iter().enumerate() {
            let and = if i == 0 { "" } else { "and " };
            match n.instead.as_str() {
                "" => writeln!(out, "    {and}without {}", called(n, ""))?,
                instead => {
                    writeln!(
                        out,
                        "    {and}with {} in place of {}",
                        quoted(instead),
                        called(n, &n.what)
                    )?;
                }
            }
        }
    }
    let then = if needs.spare.is_empty() {
        "it"
    } else {
        "with these changes, it"
    };
    writeln!(out, "  {then} needs all of these:")?;
    for n in &needs.needed {
        let without = match n.instead.as_str() {
            "" => "without it".to_owned(),
            instead => format!("with {}", quoted(instead)),
        };
        writeln!(
            out,
            "    {}: {without}, it would be allowed",
            called(n, &n.what)
        )?;
    }
    Ok(())
}

/// Puts a word of the program in quotes; leaves a description unchanged.
fn quoted(what: &str) -> String {
    if what.contains(' ') && !what.contains('(') && !what.contains('|') {
        what.to_owned()
    } else {
        format!("`{what}`")
    }
}

/// A part of an instruction: `` `.release` of `st.release.gpu f, 1` (P0, line 8)``.
fn called(need: &Need, what: &str) -> String {
    let mut text = if what.is_empty() {
        String::new()
    } else {
        format!("{} of ", quoted(what))
    };
    if need.line.is_known() {
        text += &format!(
            "`{}` ({}, line {})",
            need.text.trim(),
            need.thread,
            need.line
        );
    }
    text
}

/// A change that would forbid the outcome.
fn edit(edit: &Need) -> String {
    match (edit.line.number, edit.what.as_str()) {
        (0, _) => edit.instead.clone(),
        (_, "") => {
            let side = if edit.place == Where::After {
                "after"
            } else {
                "before"
            };
            format!("`{}` {side} {}", edit.instead, called(edit, ""))
        }
        (_, what) => format!(
            "{} in place of {}",
            quoted(&edit.instead),
            called(edit, what)
        ),
    }
}

/// A change that would reverse the answer, on one line; or why there is none.
pub fn remedy(explanation: &Explanation) -> Option<String> {
    if let Some(missing) = &explanation.missing {
        let edits: Vec<String> = missing.edits.iter().map(edit).collect();
        let none = missing
            .none
            .as_ref()
            .map(|none| format!("why not forbidden: {none}"));
        return none.or_else(|| {
            (!edits.is_empty()).then(|| {
                format!(
                    "it would be forbidden{} with {}",
                    under(missing),
                    edits.join(" and ")
                )
            })
        });
    }
    if !explanation.impossible.is_empty() {
        return Some(format!(
            "no execution, consistent or not, reaches {}",
            explanation.impossible.join(", ")
        ));
    }
    let needs = explanation
        .needs
        .as_ref()
        .filter(|needs| needs.given_up.is_none())?;
    Some(match needs.needed.first() {
        None => "it is forbidden with any orders, scopes and fences".to_owned(),
        Some(need) if need.instead.is_empty() => {
            format!("it would be allowed without {}", called(need, &need.what))
        }
        Some(need) => {
            format!(
                "it would be allowed with {} in place of {}",
                quoted(&need.instead),
                called(need, &need.what)
            )
        }
    })
}

/// The reading in which the changes suffice, if it is another one.
fn under(missing: &Missing) -> String {
    missing.under.as_ref().map_or(String::new(), |under| {
        format!(", in the reading `{under}` of the source,")
    })
}

fn missing(out: &mut dyn Write, missing: &Missing, whole: bool) -> io::Result<()> {
    if let Some(none) = &missing.none {
        return writeln!(out, "  why not forbidden: {none}");
    }
    writeln!(out, "  it would be forbidden{} with", under(missing))?;
    for (i, one) in missing.edits.iter().enumerate() {
        let and = if i == 0 { "" } else { "and " };
        writeln!(out, "    {and}{}", edit(one))?;
    }
    if let Some(b) = &missing.breach {
        writeln!(
            out,
            "  then it would break {BOLD}{}{BOLD:#} ({}):",
            b.axiom, b.text
        )?;
        breach(out, b, whole)?;
        lacking(out, missing)?;
    }
    Ok(())
}

/// The steps that do not hold in the program as it is. Steps that fail for the same reason are
/// grouped.
fn lacking(out: &mut dyn Write, missing: &Missing) -> io::Result<()> {
    let mut told: Vec<&str> = Vec::new();
    for link in &missing.links {
        if told.contains(&link.why.as_str()) {
            continue;
        }
        told.push(&link.why);
        let alike = missing.links.iter().filter(|l| l.why == link.why);
        let steps: Vec<String> = alike
            .filter_map(|l| l.link)
            .map(|l| (l + 1).to_string())
            .collect();
        let which = match steps.as_slice() {
            [] => "that does not hold".to_owned(),
            [one] => format!("step {one} does not hold"),
            [first @ .., last] => format!("steps {} and {last} do not hold", first.join(", ")),
        };
        let path = link.path.join(" > ");
        writeln!(
            out,
            "    {BOLD}as it is, {which}{BOLD:#}: {}  {DIM}{path}{DIM:#}",
            link.why
        )?;
    }
    Ok(())
}
