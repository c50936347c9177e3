//! A page about one test: every outcome under every requested model, two of them next to each
//! other, with relations to switch on and off.
//!
//! # Invariants
//! - A page is self-contained: it uses no network and no other file. Without its script it shows
//!   everything, one below the other.
//! - The script takes names only from attributes and compares them; it never inserts markup.
//!
//! # Sources
//! - WHATWG, *HTML*; W3C, *WAI-ARIA 1.2*, `aria-pressed`.

use std::fmt::Write;

use super::escape::xml;
use super::scene::Scene;
use super::style::{self, EdgeStyle};
use super::svg;

/// The style of this page and of the suite report.
pub const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The content of a page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The test's name.
    pub title: String,
    /// Lines below it: the file, and the test's description.
    pub about: Vec<String>,
    /// The models, in order.
    pub models: Vec<String>,
    /// The test's query first, then its outcomes.
    pub outcomes: Vec<String>,
    /// The answers, in the order of outcomes and models.
    pub views: Vec<PageView>,
    /// Parts that are not on the page, and why.
    pub notes: Vec<String>,
}

/// One model's answer for one outcome.
#[derive(Clone, Debug)]
pub struct PageView {
    /// Index in [`Page::outcomes`].
    pub outcome: usize,
    /// Index in [`Page::models`].
    pub model: usize,
    /// The verdict, in a word or two.
    pub verdict: String,
    /// Explanations, each a text of several lines.
    pub texts: Vec<String>,
    /// Executions.
    pub scenes: Vec<Scene>,
}

/// Writes the page as a file.
pub fn file(page: &Page) -> String {
    let mut out = head(&page.title, true);
    let _ = writeln!(out, "<h1>{}</h1>", xml(&page.title));
    for line in &page.about {
        let _ = writeln!(out, "<p class=\"dim\">{}</p>", xml(line));
    }
    table(&mut out, page);
    controls(&mut out, page);
    out.push_str("<main class=\"panes\">\n");
    for (v, view) in page.views.iter().enumerate() {
        let (outcome, model) = (&page.outcomes[view.outcome], &page.models[view.model]);
        let _ = writeln!(
            out,
            "<section class=\"view\" data-outcome=\"{}\" data-model=\"{}\" aria-label=\"{} under \
             {}\">",
            view.outcome,
            xml(model),
            xml(outcome),
            xml(model)
        );
        let _ = writeln!(out, "<h2>{}: {}</h2>", xml(model), xml(&view.verdict));
        let _ = writeln!(out, "<p><code>{}</code></p>", xml(outcome));
        for (s, scene) in view.scenes.iter().enumerate() {
            figure(&mut out, scene, &format!("v{v}-{s}"));
        }
        for text in &view.texts {
            pre(&mut out, text);
        }
        out.push_str("</section>\n");
    }
    out.push_str("</main>\n");
    for note in &page.notes {
        let _ = writeln!(out, "<p>{}</p>", xml(note));
    }
    let _ = writeln!(out, "<script>\n{SCRIPT}</script>\n</body>\n</html>");
    out
}

/// The beginning of a page, up to the opened body.
pub fn head(title: &str, pictures: bool) -> String {
    let pictures = if pictures {
        style::sheet("svg.fencepost")
    } else {
        String::new()
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n<title>{}</title>\n<style>\n{STYLE}{pictures}</style>\n\
         </head>\n<body>\n",
        xml(title)
    )
}

/// A picture that scrolls with the keyboard if it is wider than the window.
pub fn figure(out: &mut String, scene: &Scene, id: &str) {
    let _ = writeln!(
        out,
        "<figure tabindex=\"0\">\n{}</figure>",
        svg::inline(scene, id)
    );
}

/// A text of several lines.
pub fn pre(out: &mut String, text: &str) {
    // A broken line continues with its indent.
    let _ = writeln!(
        out,
        "<pre>{}</pre>",
        text.lines()
            .map(|text| {
                let indent = text.len() - text.trim_start().len();
                format!("<span style=\"--i:{indent}\">{}</span>", xml(text))
            })
            .collect::<String>()
    );
}

/// A table of verdicts by outcome and model; each verdict is a button that shows its explanation.
fn table(out: &mut String, page: &Page) {
    out.push_str("<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">outcome</th>");
    for model in &page.models {
        let _ = write!(out, "<th scope=\"col\">{}</th>", xml(model));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (o, outcome) in page.outcomes.iter().enumerate() {
        let _ = write!(
            out,
            "<tr><th scope=\"row\"><code>{}</code></th>",
            xml(outcome)
        );
        for (m, model) in page.models.iter().enumerate() {
            match page.views.iter().find(|v| (v.outcome, v.model) == (o, m)) {
                Some(view) => {
                    let _ = write!(
                        out,
                        "<td><button type=\"button\" data-outcome=\"{o}\" \
                         data-model=\"{}\">{}</button></td>",
                        xml(model),
                        xml(&view.verdict)
                    );
                }
                None => out.push_str("<td class=\"dim\">\u{2014}</td>"),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn controls(out: &mut String, page: &Page) {
    out.push_str("<div class=\"controls\" hidden>\n<fieldset><legend>Show</legend>\n");
    out.push_str("<label>outcome <select id=\"outcome\">");
    for (o, outcome) in page.outcomes.iter().enumerate() {
        let _ = write!(out, "<option value=\"{o}\">{}</option>", xml(outcome));
    }
    out.push_str("</select></label>\n");
    let second = page.models.len() > 1;
    // Next to the first model, shows the first model with another verdict.
    let verdict = |m: usize| {
        page.views
            .iter()
            .find(|v| (v.outcome, v.model) == (0, m))
            .map(|v| v.verdict.as_str())
    };
    let other = (1..page.models.len())
        .find(|&m| verdict(m) != verdict(0))
        .unwrap_or(page.models.len());
    for (id, label, chosen) in [("left", "model", 0), ("right", "beside it", other)]
        .into_iter()
        .take(1 + usize::from(second))
    {
        let _ = write!(out, "<label>{label} <select id=\"{id}\">");
        if id == "right" {
            out.push_str("<option value=\"\">none</option>");
        }
        for (m, model) in page.models.iter().enumerate() {
            let selected = if m == chosen { " selected" } else { "" };
            let _ = write!(out, "<option{selected}>{}</option>", xml(model));
        }
        out.push_str("</select></label>\n");
    }
    out.push_str("</fieldset>\n<fieldset><legend>Relations</legend>\n");
    for (name, kind, shown) in relations(page) {
        let (name, checked) = (xml(&name), if shown { " checked" } else { "" });
        let _ = writeln!(
            out,
            "<label><input type=\"checkbox\" data-toggle=\"{name}\"{checked}>\
             <svg class=\"fencepost key\" width=\"34\" height=\"10\" aria-hidden=\"true\"><g \
             class=\"k-{}\">\
             <path d=\"M1 5L33 5\"/></g></svg>{name}</label>",
            kind.class
        );
    }
    out.push_str("</fieldset>\n</div>\n");
}

/// All relations of all pictures, shown ones first. A relation with only cycle steps shown counts
/// as hidden.
fn relations(page: &Page) -> Vec<(String, EdgeStyle, bool)> {
    let mut found: Vec<(String, EdgeStyle, bool)> = Vec::new();
    for scene in page.views.iter().flat_map(|v| &v.scenes) {
        for relation in &scene.relations {
            let shown = scene
                .relations
                .iter()
                .filter(|r| r.name == relation.name)
                .all(|r| r.shown);
            match found.iter_mut().find(|(name, ..)| *name == relation.name) {
                Some(known) => known.2 |= shown,
                None => found.push((relation.name.clone(), relation.kind, shown)),
            }
        }
    }
    found.sort_by_key(|(_, _, shown)| !shown);
    found
}
