//! Writes pictures as a `tikzpicture`, for `\input` in a document with `\usepackage{tikz}`.
//!
//! # Invariants
//! - One unit is a PostScript point (1bp), and the picture has the size of the SVG.
//! - Special characters of TeX are escaped; one that TeX's engines without Unicode lack becomes
//!   text.
//!
//! # Sources
//! - T. Tantau, *The TikZ and PGF Packages*: Actions on Paths; Nodes and Edges.

use std::fmt::Write;

use super::super::latex;
use super::drawing::{Drawing, DrawnItem, Stroke, number, parts};
use super::layout::geometry::{Path, PathPiece, PicturePoint};
use super::scene::Scene;

/// A file with several pictures, one below the other.
pub fn file(scenes: &[Scene]) -> String {
    let drawing = Drawing::of(scenes);
    let mut out = String::from(
        "% \\usepackage{tikz}; to fit a column: \\resizebox{\\linewidth}{!}{\\input{...}}\n\
         \\begin{tikzpicture}[x=1bp, y=-1bp, line cap=butt]\n",
    );
    // Writing to a string cannot fail.
    let (width, height) = (number(drawing.width), number(drawing.height));
    let _ = writeln!(
        out,
        "\\useasboundingbox (0,0) rectangle ({width},{height});"
    );
    for item in &drawing.items {
        let _ = writeln!(out, "{}", command(item));
    }
    out.push_str("\\end{tikzpicture}\n");
    out
}

fn command(item: &DrawnItem) -> String {
    match item {
        DrawnItem::Frame {
            rect,
            radius,
            fill,
            stroke,
        } => {
            let painted = match stroke {
                Some(stroke) => format!("draw={}, {}", colour(stroke.colour), line(stroke)),
                None => "draw=none".to_owned(),
            };
            format!(
                "\\path[fill={}, {painted}, rounded corners={}bp] {} rectangle {};",
                colour(fill),
                number(*radius),
                place(&PicturePoint {
                    x: rect.x,
                    y: rect.y
                }),
                place(&PicturePoint {
                    x: rect.right(),
                    y: rect.bottom()
                })
            )
        }
        DrawnItem::Line { path, stroke } => {
            let painted = format!("draw={}, {}", colour(stroke.colour), line(stroke));
            format!("\\path[{painted}] {};", curve(path))
        }
        DrawnItem::Tip { points, fill } => {
            let [a, b, c] = points.each_ref().map(place);
            format!("\\path[fill={}] {a} -- {b} -- {c} -- cycle;", colour(fill))
        }
        DrawnItem::Text {
            at,
            size,
            bold,
            middle,
            colour: ink,
            text,
        } => {
            let anchor = if *middle { "base" } else { "base west" };
            let series = if *bold { "\\bfseries" } else { "" };
            let (size, leading) = (number(size * 0.9), number(size * 1.1));
            format!(
                "\\node[anchor={anchor}, inner sep=0, text={}] at {} {{\\ttfamily{series}\
                 \\fontsize{{{size}bp}}{{{leading}bp}}\\selectfont {}}};",
                colour(ink),
                place(at),
                escaped(text)
            )
        }
    }
}

fn place(point: &PicturePoint) -> String {
    format!("({},{})", number(point.x), number(point.y))
}

fn curve(path: &Path) -> String {
    let mut out = place(&path.start);
    for piece in &path.pieces {
        let _ = match piece {
            PathPiece::Line(to) => write!(out, " -- {}", place(to)),
            PathPiece::Curve(a, b, to) => write!(
                out,
                " .. controls {} and {} .. {}",
                place(a),
                place(b),
                place(to)
            ),
        };
    }
    out
}

fn colour(colour: &'static str) -> String {
    let [red, green, blue] = parts(colour).map(number);
    format!("{{rgb,1:red,{red};green,{green};blue,{blue}}}")
}

fn line(stroke: &Stroke) -> String {
    let mut out = format!("line width={}bp", number(stroke.width));
    let lengths: Vec<&str> = stroke.dashes.split_whitespace().collect();
    if !lengths.is_empty() {
        out.push_str(", dash pattern=");
        for (i, length) in lengths.iter().enumerate() {
            let word = if i % 2 == 0 { "on" } else { "off" };
            let _ = write!(out, "{word} {length}bp ");
        }
    }
    out.trim_end().to_owned()
}

/// Text for TeX. Blanks keep their width, as in code.
fn escaped(text: &str) -> String {
    let plain = text
        .replace('\u{2026}', "...")
        .replace('\u{2014}', "--")
        .replace('\u{22ee}', ":");
    latex::escaped(&plain).replace(' ', "\\ ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_command() {
        assert_eq!(
            escaped(r"\input{x} 50% a_b #1"),
            "\\textbackslash{}input\\{x\\}\\ 50\\%\\ a\\_b\\ \\#1"
        );
        assert_eq!(escaped("a--b"), "a-{}-{}b");
    }

    #[test]
    fn colours_and_dashes_have_their_forms() {
        assert_eq!(colour("#ff0000"), "{rgb,1:red,1;green,0;blue,0}");
        let stroke = Stroke {
            colour: "#000000",
            width: 1.4,
            dashes: "8 3",
        };
        assert_eq!(
            line(&stroke),
            "line width=1.4bp, dash pattern=on 8bp off 3bp"
        );
    }
}
