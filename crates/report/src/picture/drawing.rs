//! Turns pictures into shapes and texts with their colours on white, for writers without styles.
//!
//! # Invariants
//! - Hidden relations are left out.
//! - Items come in the order in which they are painted, and look as in the style sheet
//!   ([`style::sheet`](super::style::sheet)).

use super::layout::geometry::{Path, PathPiece, PicturePoint, Rect};
use super::layout::{LABEL, PictureLayout, SMALL, TEXT, TITLE, TextLine};
use super::scene::{EventRole, Scene};

/// Pictures, one below the other.
pub(super) struct Drawing {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) items: Vec<DrawnItem>,
}

/// A colour in hexadecimal: `#56697f`.
pub(super) type Colour = &'static str;

/// A thing to paint.
pub(super) enum DrawnItem {
    /// A rectangle with round corners.
    Frame {
        rect: Rect,
        radius: f64,
        fill: Colour,
        stroke: Option<Stroke>,
    },
    /// An open line.
    Line { path: Path, stroke: Stroke },
    /// An arrowhead.
    Tip {
        points: [PicturePoint; 3],
        fill: Colour,
    },
    /// A line of text. `at` is the left end of its base line, or the middle.
    Text {
        at: PicturePoint,
        size: f64,
        bold: bool,
        middle: bool,
        colour: Colour,
        text: String,
    },
}

/// How a line is painted.
#[derive(Clone, Copy)]
pub(super) struct Stroke {
    pub(super) colour: Colour,
    pub(super) width: f64,
    /// Lengths of strokes and gaps; empty: a solid line.
    pub(super) dashes: &'static str,
}

/// Control points of a quarter of a circle, as a part of the radius.
const ARC: f64 = 0.5523;

const INK: Colour = "#111111";
const DIM: Colour = "#4a4a4a";
const WHITE: Colour = "#ffffff";

impl Drawing {
    /// The drawing of some scenes under the title of the first one.
    pub(super) fn of(scenes: &[Scene]) -> Drawing {
        let mut drawing = Drawing {
            width: 0.0,
            height: 0.0,
            items: Vec::new(),
        };
        for (number, scene) in scenes.iter().enumerate() {
            let layout = PictureLayout::of(scene, number == 0);
            drawing.width = drawing.width.max(layout.size.0.ceil());
            drawing.add(scene, &layout);
            drawing.height += layout.size.1.ceil();
        }
        drawing
    }

    /// Adds a picture below the others.
    fn add(&mut self, scene: &Scene, layout: &PictureLayout) {
        for text in &layout.head {
            let is_title = text.rect.h > LABEL + 6.0;
            self.line(text, if is_title { TITLE } else { LABEL }, is_title, INK);
        }
        for group in &layout.groups {
            let stroke = Stroke {
                colour: "#7b8794",
                width: 1.0,
                dashes: "",
            };
            self.frame(&group.rect, 7.0, "#f3f4f6", Some(stroke));
        }
        for group in &layout.groups {
            self.line(&group.label, SMALL, false, DIM);
        }
        for thread in &layout.threads {
            self.line(thread, TEXT, true, INK);
        }
        self.events(scene, layout);
        self.edges(scene, layout);
        for text in &layout.foot {
            self.line(text, LABEL, false, INK);
        }
    }

    fn events(&mut self, scene: &Scene, layout: &PictureLayout) {
        for (event, placed) in scene.events.iter().zip(&layout.events) {
            let (mut fill, mut colour, mut dashes) = (WHITE, "#333333", "");
            match event.role {
                EventRole::Init => (fill, dashes) = ("#f1f1f1", "3 2"),
                EventRole::End => fill = "#fdf0f5",
                EventRole::Step | EventRole::Gap => {}
            }
            if event.mark.is_some() {
                (fill, colour) = ("#fff3d6", "#8a4b00");
            }
            let bold = event.mark.is_some() || event.on_cycle;
            let width = if bold { 2.5 } else { 1.0 };
            if event.role != EventRole::Gap {
                let stroke = Stroke {
                    colour,
                    width,
                    dashes,
                };
                self.frame(&placed.rect, 4.0, fill, Some(stroke));
            }
            let r = &placed.rect;
            let x = r.x + 8.0;
            let first = match placed.code.is_empty() {
                true => r.y + r.h / 2.0 + TEXT * 0.35,
                false => r.y + 17.0,
            };
            self.text(PicturePoint { x, y: first }, TEXT, INK, &placed.action);
            for (i, code) in placed.code.iter().enumerate() {
                let y = first + 15.0 + 13.0 * i as f64;
                self.text(PicturePoint { x, y }, SMALL, DIM, code);
            }
        }
    }

    /// Adds the paths of all edges first, then their labels, so that no path crosses a label.
    fn edges(&mut self, scene: &Scene, layout: &PictureLayout) {
        let shown = |e: usize| {
            let relation = &scene.relations[scene.edges[e].relation];
            Some(relation).filter(|relation| relation.shown)
        };
        for (e, drawn) in layout.edges.iter().enumerate() {
            let Some(relation) = shown(e) else { continue };
            let fill = relation.kind.light;
            let stroke = Stroke {
                colour: fill,
                width: if scene.edges[e].bold { 3.6 } else { 1.4 },
                dashes: relation.kind.dashes,
            };
            let path = self.moved_path(&drawn.path);
            self.items.push(DrawnItem::Line { path, stroke });
            for tip in [Some(&drawn.tip), drawn.tail.as_ref()]
                .into_iter()
                .flatten()
            {
                let points = tip.map(|point| self.moved(point));
                self.items.push(DrawnItem::Tip { points, fill });
            }
        }
        for (e, drawn) in layout.edges.iter().enumerate() {
            let (Some(label), Some(relation)) = (&drawn.label, shown(e)) else {
                continue;
            };
            self.frame(label, 3.0, WHITE, None);
            let at = PicturePoint {
                x: label.x + label.w / 2.0,
                y: label.y + label.h - 3.8,
            };
            let at = self.moved(at);
            self.items.push(DrawnItem::Text {
                at,
                size: LABEL,
                bold: scene.edges[e].bold,
                middle: true,
                colour: relation.kind.light,
                text: super::escape::line(&relation.name),
            });
        }
    }

    fn frame(&mut self, rect: &Rect, radius: f64, fill: Colour, stroke: Option<Stroke>) {
        let rect = Rect {
            y: rect.y + self.height,
            ..*rect
        };
        self.items.push(DrawnItem::Frame {
            rect,
            radius,
            fill,
            stroke,
        });
    }

    fn line(&mut self, line: &TextLine, size: f64, bold: bool, colour: Colour) {
        let at = PicturePoint {
            x: line.rect.x,
            y: line.rect.y + size * 0.95,
        };
        self.text(at, size, colour, &line.text);
        if let Some(DrawnItem::Text { bold: is_bold, .. }) = self.items.last_mut() {
            *is_bold = bold;
        }
    }

    fn text(&mut self, at: PicturePoint, size: f64, colour: Colour, text: &str) {
        let at = self.moved(at);
        self.items.push(DrawnItem::Text {
            at,
            size,
            bold: false,
            middle: false,
            colour,
            text: super::escape::line(text),
        });
    }

    /// A point of the picture that is added, below the others.
    fn moved(&self, point: PicturePoint) -> PicturePoint {
        PicturePoint {
            y: point.y + self.height,
            ..point
        }
    }

    fn moved_path(&self, path: &Path) -> Path {
        let pieces = path.pieces.iter().map(|piece| match piece {
            PathPiece::Line(p) => PathPiece::Line(self.moved(*p)),
            PathPiece::Curve(a, b, p) => {
                PathPiece::Curve(self.moved(*a), self.moved(*b), self.moved(*p))
            }
        });
        Path {
            start: self.moved(path.start),
            pieces: pieces.collect(),
        }
    }
}

/// A rectangle with round corners; the writer closes it.
pub(super) fn round_frame(rect: &Rect, radius: f64) -> Path {
    let radius = radius.min(rect.w / 2.0).min(rect.h / 2.0);
    let off = radius * (1.0 - ARC);
    let (left, top, right, bottom) = (rect.x, rect.y, rect.right(), rect.bottom());
    let at = |x: f64, y: f64| PicturePoint { x, y };
    let pieces = vec![
        PathPiece::Line(at(right - radius, top)),
        PathPiece::Curve(
            at(right - off, top),
            at(right, top + off),
            at(right, top + radius),
        ),
        PathPiece::Line(at(right, bottom - radius)),
        PathPiece::Curve(
            at(right, bottom - off),
            at(right - off, bottom),
            at(right - radius, bottom),
        ),
        PathPiece::Line(at(left + radius, bottom)),
        PathPiece::Curve(
            at(left + off, bottom),
            at(left, bottom - off),
            at(left, bottom - radius),
        ),
        PathPiece::Line(at(left, top + radius)),
        PathPiece::Curve(
            at(left, top + off),
            at(left + off, top),
            at(left + radius, top),
        ),
    ];
    Path {
        start: at(left + radius, top),
        pieces,
    }
}

/// The parts of a colour, from 0 to 1.
pub(super) fn parts(colour: Colour) -> [f64; 3] {
    let part = |at: usize| {
        let digits = colour.get(at..at + 2).unwrap_or("00");
        f64::from(u8::from_str_radix(digits, 16).unwrap_or(0)) / 255.0
    };
    [part(1), part(3), part(5)]
}

/// A number with at most three places, written briefly.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}
