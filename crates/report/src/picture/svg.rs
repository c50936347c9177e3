//! Writes a picture as SVG.
//!
//! # Invariants
//! - A file is self-contained: it includes its style sheet. Colours follow the reader's scheme;
//!   printed pages are light.
//! - Its title and description state its content in words.
//!
//! # Sources
//! - W3C, *Scalable Vector Graphics (SVG) 2*; *SVG Accessibility API Mappings*.

use std::fmt::Write;
use std::slice;

use super::escape::xml;
use super::layout::geometry::{Path, PathPiece, PicturePoint, Rect};
use super::layout::{LABEL, PictureLayout, SMALL, TEXT, TITLE, TextLine};
use super::scene::{EventRole, Scene};
use super::style;

/// A file with one picture.
pub fn file(scene: &Scene) -> String {
    stacked(slice::from_ref(scene))
}

/// A file with several pictures, one below the other, under one title.
pub fn stacked(scenes: &[Scene]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    write_svg(&mut out, scenes, "fencepost", true);
    out
}

/// A picture within a page that has the style sheet. `id` is the prefix of element names and is
/// unique in the page.
pub fn inline(scene: &Scene, id: &str) -> String {
    let mut out = String::new();
    write_svg(&mut out, slice::from_ref(scene), id, false);
    out
}

fn write_svg(out: &mut String, scenes: &[Scene], id: &str, alone: bool) {
    let layouts: Vec<PictureLayout> = scenes
        .iter()
        .enumerate()
        .map(|(i, scene)| PictureLayout::of(scene, alone && i == 0))
        .collect();
    let width = layouts.iter().map(|l| l.size.0.ceil()).fold(0.0, f64::max);
    let height: f64 = layouts.iter().map(|l| l.size.1.ceil()).sum();
    let (w, h) = (number(width), number(height));
    let xmlns = if alone {
        "xmlns=\"http://www.w3.org/2000/svg\" "
    } else {
        ""
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<svg {xmlns}class=\"fencepost\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         role=\"img\" \
         aria-labelledby=\"{id}-t {id}-d\">"
    );
    let (title, facts) = scenes.first().map_or(("", String::new()), |s| {
        (s.title.as_str(), s.facts.join(", "))
    });
    let _ = writeln!(
        out,
        "<title id=\"{id}-t\">{}: {}</title>",
        xml(title),
        xml(&facts)
    );
    let described: Vec<String> = scenes.iter().map(Scene::description).collect();
    let _ = writeln!(
        out,
        "<desc id=\"{id}-d\">{}</desc>",
        xml(&described.join(" "))
    );
    if alone {
        let _ = writeln!(out, "<style>\n{}</style>", style::sheet("svg.fencepost"));
    }
    let _ = writeln!(out, "<rect class=\"paper\" width=\"{w}\" height=\"{h}\"/>");
    let mut y = 0.0;
    for (i, (scene, layout)) in scenes.iter().zip(&layouts).enumerate() {
        if i > 0 {
            let _ = writeln!(out, "<g transform=\"translate(0 {})\">", number(y));
            let line = Rect {
                x: 14.0,
                y: 0.0,
                w: width - 28.0,
                h: 1.0,
            };
            let _ = writeln!(out, "<rect class=\"rule\" {}/>", rect(&line));
        }
        write_picture(out, scene, layout);
        if i > 0 {
            out.push_str("</g>\n");
        }
        y += layout.size.1.ceil();
    }
    out.push_str("</svg>\n");
}

fn write_picture(out: &mut String, scene: &Scene, layout: &PictureLayout) {
    for text in &layout.head {
        let title = text.rect.h > LABEL + 6.0;
        write_text(
            out,
            text,
            if title { "title" } else { "" },
            if title { TITLE } else { LABEL },
        );
    }
    for group in &layout.groups {
        let _ = writeln!(
            out,
            "<rect class=\"group\" {} rx=\"7\"/>",
            rect(&group.rect)
        );
    }
    for group in &layout.groups {
        write_text(out, &group.label, "dim", SMALL);
    }
    for thread in &layout.threads {
        write_text(out, thread, "thread", TEXT);
    }
    write_events(out, scene, layout);
    write_edges(out, scene, layout);
    for text in &layout.foot {
        write_text(out, text, "", LABEL);
    }
}

fn write_events(out: &mut String, scene: &Scene, layout: &PictureLayout) {
    for (event, placed) in scene.events.iter().zip(&layout.events) {
        let role = match event.role {
            EventRole::Init => " init",
            EventRole::Step => "",
            EventRole::End => " end",
            EventRole::Gap => " gap",
        };
        let mark = if event.mark.is_some() { " mark" } else { "" };
        let on = if event.on_cycle { " on" } else { "" };
        let mut said = event.action.clone();
        for more in [
            Some(event.code.as_str()).filter(|c| !c.is_empty()),
            event.mark.as_deref(),
        ]
        .into_iter()
        .flatten()
        {
            said = format!("{said} \u{2014} {more}");
        }
        let _ = writeln!(out, "<g><title>{}</title>", xml(&said));
        let _ = writeln!(
            out,
            "<rect class=\"event{role}{mark}{on}\" {} rx=\"4\"/>",
            rect(&placed.rect)
        );
        let r = &placed.rect;
        let x = r.x + 8.0;
        let first = if placed.code.is_empty() {
            r.y + r.h / 2.0 + TEXT * 0.35
        } else {
            r.y + 17.0
        };
        text_at(out, x, first, "", TEXT, &placed.action);
        for (i, line) in placed.code.iter().enumerate() {
            text_at(out, x, first + 15.0 + 13.0 * i as f64, "dim", SMALL, line);
        }
        out.push_str("</g>\n");
    }
}

/// Writes the paths of all edges first, then their labels, so that no path crosses a label.
fn write_edges(out: &mut String, scene: &Scene, layout: &PictureLayout) {
    let open = |out: &mut String, e: usize| {
        let edge = &scene.edges[e];
        let relation = &scene.relations[edge.relation];
        let hidden = if relation.shown {
            ""
        } else {
            " style=\"display:none\""
        };
        let bold = if edge.bold { " cycle" } else { "" };
        let name = xml(&relation.name);
        let _ = write!(
            out,
            "<g class=\"edge k-{}{bold}\" data-rel=\"{name}\"{hidden}>",
            relation.kind.class
        );
    };
    for (e, drawn) in layout.edges.iter().enumerate() {
        open(out, e);
        let _ = write!(
            out,
            "<path d=\"{}\"/><polygon points=\"{}\"/>",
            path(&drawn.path),
            triangle(&drawn.tip)
        );
        if let Some(tail) = &drawn.tail {
            let _ = write!(out, "<polygon points=\"{}\"/>", triangle(tail));
        }
        out.push_str("</g>\n");
    }
    for (e, drawn) in layout.edges.iter().enumerate() {
        let Some(label) = &drawn.label else { continue };
        let name = &scene.relations[scene.edges[e].relation].name;
        open(out, e);
        let _ = write!(out, "<rect class=\"back\" {} rx=\"3\"/>", rect(label));
        let (x, y) = (
            number(label.x + label.w / 2.0),
            number(label.y + label.h - 3.8),
        );
        let size = number(LABEL);
        let name = xml(name);
        let _ = writeln!(
            out,
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" \
             text-anchor=\"middle\">{name}</text></g>"
        );
    }
}

fn write_text(out: &mut String, text: &TextLine, class: &str, size: f64) {
    let (x, y) = (text.rect.x, text.rect.y + size * 0.95);
    match &text.full {
        None => text_at(out, x, y, class, size, &text.text),
        Some(full) => {
            let _ = writeln!(out, "<g><title>{}</title>", xml(full));
            text_at(out, x, y, class, size, &text.text);
            out.push_str("</g>\n");
        }
    }
}

fn text_at(out: &mut String, x: f64, y: f64, class: &str, size: f64, text: &str) {
    let class = if class.is_empty() {
        String::new()
    } else {
        format!(" class=\"{class}\"")
    };
    let (x, y, size) = (number(x), number(y), number(size));
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{class}>{}</text>",
        xml(text)
    );
}

fn rect(r: &Rect) -> String {
    format!(
        "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
        number(r.x),
        number(r.y),
        number(r.w),
        number(r.h)
    )
}

fn point(p: &PicturePoint) -> String {
    format!("{} {}", number(p.x), number(p.y))
}

fn triangle(points: &[PicturePoint; 3]) -> String {
    points.iter().map(point).collect::<Vec<_>>().join(" ")
}

fn path(path: &Path) -> String {
    let mut out = format!("M{}", point(&path.start));
    for piece in &path.pieces {
        let _ = match piece {
            PathPiece::Line(p) => write!(out, "L{}", point(p)),
            PathPiece::Curve(a, b, p) => write!(out, "C{} {} {}", point(a), point(b), point(p)),
        };
    }
    out
}

/// A length rounded to a tenth of a pixel, written briefly.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}
