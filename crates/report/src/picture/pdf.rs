//! Writes pictures as a PDF file with one page of their size.
//!
//! # Invariants
//! - Text is text: it can be searched and copied. The font is Courier, which every reader has, so
//!   the file embeds none; characters outside Latin-1 are replaced by similar ones.
//! - The file has no date and no random identifier. It is ASCII.
//!
//! # Sources
//! - ISO 32000-1:2008, *Portable document format*: 7.5, File Structure; 8.5, Path Construction;
//!   9.6, Simple Fonts; Annex D, WinAnsiEncoding.

use std::fmt::Write;

use super::drawing::{Drawing, DrawnItem, Stroke, number, parts, round_frame};
use super::layout::geometry::{Path, PathPiece, PicturePoint};
use super::scene::Scene;

/// The advance of every character of Courier, for a font of size 1.
const ADVANCE: f64 = 0.6;

/// A file with several pictures, one below the other.
pub fn file(scenes: &[Scene]) -> String {
    let drawing = Drawing::of(scenes);
    let page = Page {
        height: drawing.height,
    };
    let content: String = drawing
        .items
        .iter()
        .map(|item| page.painted(item))
        .collect();
    let title = scenes.first().map_or("", |scene| scene.title.as_str());
    let (width, height) = (number(drawing.width), number(drawing.height));
    let font = |name: &str| {
        format!("<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>")
    };
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R \
             /Resources << /Font << /F0 5 0 R /F1 6 0 R >> >> >>"
        ),
        format!(
            "<< /Length {} >>\nstream\n{content}endstream",
            content.len()
        ),
        font("Courier"),
        font("Courier-Bold"),
        format!("<< /Title {} /Creator (Fencepost) >>", string(title)),
    ];
    let mut out = String::from("%PDF-1.4\n");
    let mut places = Vec::new();
    for (i, object) in objects.iter().enumerate() {
        places.push(out.len());
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{} 0 obj\n{object}\nendobj", i + 1);
    }
    let (table, count) = (out.len(), objects.len() + 1);
    let _ = writeln!(out, "xref\n0 {count}\n0000000000 65535 f ");
    for place in places {
        let _ = writeln!(out, "{place:010} 00000 n ");
    }
    let _ = writeln!(
        out,
        "trailer\n<< /Size {count} /Root 1 0 R /Info 7 0 R >>\nstartxref\n{table}\n%%EOF"
    );
    out
}

/// A page: its vertical axis points up, that of pictures down.
struct Page {
    height: f64,
}

impl Page {
    fn point(&self, point: &PicturePoint) -> String {
        format!("{} {}", number(point.x), number(self.height - point.y))
    }

    fn painted(&self, item: &DrawnItem) -> String {
        match item {
            DrawnItem::Frame {
                rect,
                radius,
                fill,
                stroke,
            } => {
                let (line, paint) = match stroke {
                    Some(stroke) => (stroked(stroke), "B"),
                    None => (String::new(), "f"),
                };
                let frame = self.path(&round_frame(rect, *radius));
                format!(
                    "{line}{} rg\n{} h\n{paint}\n",
                    colour(fill),
                    frame.trim_end()
                )
            }
            DrawnItem::Line { path, stroke } => {
                format!("{}{}S\n", stroked(stroke), self.path(path))
            }
            DrawnItem::Tip { points, fill } => {
                let [a, b, c] = points.each_ref().map(|point| self.point(point));
                format!("{} rg\n{a} m {b} l {c} l f\n", colour(fill))
            }
            DrawnItem::Text {
                at,
                size,
                bold,
                middle,
                colour: ink,
                text,
            } => {
                let width = text.chars().count() as f64 * ADVANCE * size;
                let at = PicturePoint {
                    x: if *middle { at.x - width / 2.0 } else { at.x },
                    y: at.y,
                };
                format!(
                    "{} rg\nBT /F{} {} Tf {} Td {} Tj ET\n",
                    colour(ink),
                    u8::from(*bold),
                    number(*size),
                    self.point(&at),
                    string(text)
                )
            }
        }
    }

    fn path(&self, path: &Path) -> String {
        let mut out = format!("{} m\n", self.point(&path.start));
        for piece in &path.pieces {
            let _ = match piece {
                PathPiece::Line(to) => writeln!(out, "{} l", self.point(to)),
                PathPiece::Curve(a, b, to) => writeln!(
                    out,
                    "{} {} {} c",
                    self.point(a),
                    self.point(b),
                    self.point(to)
                ),
            };
        }
        out
    }
}

fn colour(colour: &'static str) -> String {
    parts(colour).map(number).join(" ")
}

fn stroked(stroke: &Stroke) -> String {
    format!(
        "{} RG {} w [{}] 0 d\n",
        colour(stroke.colour),
        number(stroke.width),
        stroke.dashes
    )
}

/// A string of WinAnsiEncoding; bytes beyond ASCII are octal.
fn string(text: &str) -> String {
    let mut out = String::from("(");
    for c in text.chars() {
        match c {
            '(' | ')' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            ' '..='~' => out.push(c),
            '\u{2026}' => out.push_str("\\205"),
            '\u{2014}' => out.push_str("\\227"),
            '\u{22ee}' => out.push(':'),
            '\u{a1}'..='\u{ff}' => {
                let _ = write!(out, "\\{:03o}", u32::from(c));
            }
            _ => out.push('?'),
        }
    }
    out.push(')');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_closed_and_ascii() {
        assert_eq!(string("a (b) \\ c"), "(a \\(b\\) \\\\ c)");
        assert_eq!(string("\u{e9}\u{2026}\u{6f22}\n"), "(\\351\\205??)");
    }
}
