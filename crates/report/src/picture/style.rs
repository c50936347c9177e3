//! The drawing style of each relation.
//!
//! # Invariants
//! - Colour is never the only difference: kinds differ in dashes, too, and edges are labelled with
//!   their relations.
//!
//! # Sources
//! - The names, and the colours of `rf`, `co` and `fr`: herd7 (herdtools7, manual, *Drawing
//!   diagrams*).

use verdict::Style;

/// A style for edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeStyle {
    /// Its name in style sheets.
    pub class: &'static str,
    /// The colour on white.
    pub light: &'static str,
    /// The colour on black.
    pub dark: &'static str,
    /// Lengths of strokes and gaps; empty: a solid line.
    pub dashes: &'static str,
    /// Whether its relations are drawn by default.
    pub shown: bool,
}

impl EdgeStyle {
    /// Whether its relations are names for the same thing, so that one edge between two events is
    /// enough.
    pub fn once(&self) -> bool {
        self.shown && self.class != "dep"
    }
}

const fn kind(
    class: &'static str,
    light: &'static str,
    dark: &'static str,
    dashes: &'static str,
    shown: bool,
) -> EdgeStyle {
    EdgeStyle {
        class,
        light,
        dark,
        dashes,
        shown,
    }
}

/// The kinds of well-known relations.
const KINDS: &[(Style, EdgeStyle)] = &[
    (
        Style::ProgramOrder,
        kind("po", "#444444", "#c4c4c4", "", true),
    ),
    (Style::ReadsFrom, kind("rf", "#b80f1f", "#ff7b72", "", true)),
    (
        Style::Coherence,
        kind("co", "#1846c4", "#7db3ff", "8 3", true),
    ),
    (
        Style::FromReads,
        kind("fr", "#9a4a00", "#ffb35c", "3 3", true),
    ),
    (
        Style::Synchronization,
        kind("sync", "#0b6b32", "#5fd38a", "10 3 2 3", true),
    ),
    (
        Style::Dependency,
        kind("dep", "#6a1b9a", "#d5a6ff", "5 2", true),
    ),
];

/// The kind of [`WAITS`].
pub const WAIT: EdgeStyle = kind("wait", "#8a0f55", "#ff8cc6", "6 2", true);

/// The kind of missing relations, with the longest gaps.
const LACKING: EdgeStyle = kind("missing", "#111111", "#ffffff", "14 9", false);

/// The kinds of all other relations, in turn.
const OTHERS: &[EdgeStyle] = &[
    kind("o0", "#00616b", "#66d9e4", "12 3", false),
    kind("o1", "#7a5b00", "#e6cf5c", "2 2", false),
    kind("o2", "#8c2d62", "#f0a3cf", "9 2 2 2 2 2", false),
    kind("o3", "#3b5f1d", "#a9d67f", "4 4", false),
];

/// The relation from a blocked thread to the threads that could release it, in pictures of
/// executions that hang.
pub const WAITS: &str = "waits for";

/// The prefix of a relation that does not hold, so that the outcome is allowed.
pub const MISSING: &str = "missing: ";

/// The kind of relation `name`; `others` counts the relations without a style.
pub fn of(name: &str, style: Option<Style>, others: usize) -> EdgeStyle {
    if name.starts_with(MISSING) {
        return LACKING;
    }
    let known = KINDS.iter().find(|k| Some(k.0) == style);
    known.map_or(OTHERS[others % OTHERS.len()], |k| k.1)
}

/// All kinds.
pub fn all() -> impl Iterator<Item = EdgeStyle> {
    KINDS
        .iter()
        .map(|k| k.1)
        .chain([WAIT, LACKING])
        .chain(OTHERS.iter().copied())
}

/// The style sheet for pictures; `scope` is the selector of a picture.
pub fn sheet(scope: &str) -> String {
    let mut light = vec![
        "rect.paper{fill:#fff}".to_owned(),
        "text{fill:#111;font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}"
            .to_owned(),
        "text.dim{fill:#4a4a4a}".to_owned(),
        "text.bad{fill:#a00018;font-weight:bold}".to_owned(),
        "rect.group{fill:#56697f;fill-opacity:.07;stroke:#7b8794}".to_owned(),
        "rect.event{fill:#fff;stroke:#333}".to_owned(),
        "rect.event.init{fill:#f1f1f1;stroke-dasharray:3 2}".to_owned(),
        "rect.event.end{fill:#fdf0f5}".to_owned(),
        "rect.event.gap{fill:none;stroke:none}".to_owned(),
        "rect.event.mark{fill:#fff3d6;stroke:#8a4b00;stroke-width:2.5}".to_owned(),
        "rect.event.on{stroke-width:2.5}".to_owned(),
        "rect.rule{fill:#7b8794}".to_owned(),
        "rect.back{fill:#fff;fill-opacity:.88}".to_owned(),
    ];
    let mut dark = vec![
        "rect.paper{fill:#15181c}".to_owned(),
        "text{fill:#eceff1}".to_owned(),
        "text.dim{fill:#b4bcc4}".to_owned(),
        "text.bad{fill:#ff8a8a}".to_owned(),
        "rect.group{fill:#9fb4cc;fill-opacity:.08;stroke:#6c7885}".to_owned(),
        "rect.event{fill:#1f242a;stroke:#a9b3bd}".to_owned(),
        "rect.event.init{fill:#2a3037}".to_owned(),
        "rect.event.end{fill:#3a2230}".to_owned(),
        "rect.event.gap{fill:none}".to_owned(),
        "rect.event.mark{fill:#43350f;stroke:#ffc14d}".to_owned(),
        "rect.back{fill:#15181c;fill-opacity:.88}".to_owned(),
    ];
    let shapes = [
        "text.thread,text.title{font-weight:bold}",
        "path{fill:none;stroke-width:1.4}",
        "polygon{stroke:none}",
        ".cycle path{stroke-width:3.6}",
        ".cycle text{font-weight:bold}",
    ];
    light.extend(shapes.map(str::to_owned));
    for kind in all() {
        let EdgeStyle {
            class,
            light: on_white,
            dark: on_black,
            dashes,
            ..
        } = kind;
        let dashes = if dashes.is_empty() {
            String::new()
        } else {
            format!(";stroke-dasharray:{dashes}")
        };
        light.push(format!(".k-{class} path{{stroke:{on_white}{dashes}}}"));
        light.push(format!(
            ".k-{class} text,.k-{class} polygon{{fill:{on_white}}}"
        ));
        dark.push(format!(".k-{class} path{{stroke:{on_black}}}"));
        dark.push(format!(
            ".k-{class} text,.k-{class} polygon{{fill:{on_black}}}"
        ));
    }
    let scoped = |rules: &[String]| -> String {
        rules
            .iter()
            .map(|rule| {
                let (selectors, body) = rule.split_once('{').unwrap_or((rule, "}"));
                let selectors: Vec<_> = selectors
                    .split(',')
                    .map(|s| format!("{scope} {s}"))
                    .collect();
                format!("{}{{{body}\n", selectors.join(","))
            })
            .collect()
    };
    format!(
        "{}@media screen and (prefers-color-scheme:dark){{\n{}}}\n",
        scoped(&light),
        scoped(&dark)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_differ_in_more_than_colour_from_those_they_are_drawn_with() {
        let shown: Vec<EdgeStyle> = all().filter(|k| k.shown).collect();
        for (i, a) in shown.iter().enumerate() {
            for b in &shown[..i] {
                // `po` runs within a column and `rf` never does, so both may be solid.
                let both_plain = a.dashes.is_empty() && b.dashes.is_empty();
                assert!(
                    a.dashes != b.dashes || both_plain,
                    "{} and {}",
                    a.class,
                    b.class
                );
                assert_ne!(a.class, b.class);
            }
        }
    }

    #[test]
    fn a_sheet_is_for_its_scope_only() {
        for line in sheet(".picture")
            .lines()
            .filter(|l| l.ends_with('}') && l.len() > 1)
        {
            assert!(line.starts_with(".picture "), "{line}");
        }
    }
}
