//! Computes the layout: rectangles and curves on a grid, independent of the output format.
//!
//! Columns are threads in the order of the scope tree; time runs down, with initial writes on top.
//! Edges use gutters and channels ([`route`](self)). Labels go where they cover nothing
//! ([`labels`](self)). If a label finds no room, the layout is repeated with more space.
//!
//! # Invariants
//! - Boxes, headings and labels do not overlap each other ([`PictureLayout::solid`]).
//! - Every shown edge has its label, or [`PictureLayout::foot`] contains the label's text.

pub mod geometry;

mod columns;
mod grid;
mod labels;
mod route;

use super::escape;
use super::scene::Scene;
use geometry::{Path, PicturePoint, Rect, text_width, wrapped};
use grid::SceneGrid;

/// Font size of actions.
pub const TEXT: f64 = 13.0;
/// Font size of code and of text around the picture.
pub const SMALL: f64 = 11.0;
/// Font size of labels.
pub const LABEL: f64 = 12.0;
/// Font size of the title.
pub const TITLE: f64 = 17.0;

/// Height of an event's box without its code, and of one line of code.
const EVENT_HEIGHT: f64 = 25.0;
const CODE_LINE: f64 = 13.0;
const INIT_HEIGHT: f64 = 26.0;
const LABEL_HEIGHT: f64 = 15.0;
const GROUP_LINE: f64 = 18.0;
const MARGIN: f64 = 14.0;
/// Distance between the borders of nested groups.
const NEST: f64 = 8.0;
/// Distance between lanes, and between a column and its first lane: an arrowhead fits in between.
const LANE: f64 = 8.0;
const FIRST_LANE: f64 = 14.0;
/// The limit on places in a text; code continues on the next line,
const MOST_PLACES: usize = 36;
/// up to this number of lines.
const MOST_CODE: usize = 3;
/// The least width of lines around the picture.
const LEAST_WIDTH: f64 = 440.0;
/// The limit on layouts with more space.
const ATTEMPTS: usize = 12;

/// A line of text.
#[derive(Clone, Debug)]
pub struct TextLine {
    /// Its rectangle.
    pub rect: Rect,
    /// Its text.
    pub text: String,
    /// The full text, if it was shortened.
    pub full: Option<String>,
}

/// A box of a group.
#[derive(Clone, Debug)]
pub struct GroupBox {
    /// The box.
    pub rect: Rect,
    /// Its name.
    pub label: TextLine,
}

/// The box of an event.
#[derive(Clone, Debug)]
pub struct EventBox {
    /// The box.
    pub rect: Rect,
    /// Its action, possibly shortened.
    pub action: String,
    /// Its code in lines, possibly shortened.
    pub code: Vec<String>,
}

/// An edge.
#[derive(Clone, Debug)]
pub struct EdgeLine {
    /// Its path.
    pub path: Path,
    /// The arrowhead at its end.
    pub tip: [PicturePoint; 3],
    /// The arrowhead at its start, if it holds in both directions.
    pub tail: Option<[PicturePoint; 3]>,
    /// The rectangle of its label.
    pub label: Option<Rect>,
}

/// A picture.
#[derive(Clone, Debug)]
pub struct PictureLayout {
    /// Width and height.
    pub size: (f64, f64),
    /// The title and the lines below it.
    pub head: Vec<TextLine>,
    /// Groups, outer ones first.
    pub groups: Vec<GroupBox>,
    /// Headings of columns.
    pub threads: Vec<TextLine>,
    /// The boxes of the scene's events.
    pub events: Vec<EventBox>,
    /// The scene's edges.
    pub edges: Vec<EdgeLine>,
    /// Lines below the picture.
    pub foot: Vec<TextLine>,
}

impl PictureLayout {
    /// Lays out a scene; `headed`: with its title.
    pub fn of(scene: &Scene, headed: bool) -> PictureLayout {
        let grid = SceneGrid::new(scene);
        let mut attempt = 0;
        loop {
            let (mut layout, unnamed) = grid.attempt(attempt as f64);
            attempt += 1;
            if unnamed.is_empty() || attempt == ATTEMPTS {
                let said = (!unnamed.is_empty()).then(|| grid.unnamed(&unnamed));
                layout.write_around(scene, headed, said);
                return layout;
            }
        }
    }

    /// All rectangles that must not overlap: boxes of events, headings, labels of shown edges, and
    /// text around the picture.
    pub fn solid(&self) -> Vec<Rect> {
        let texts = self
            .head
            .iter()
            .chain(&self.threads)
            .chain(&self.foot)
            .map(|t| t.rect);
        let groups = self.groups.iter().map(|g| g.label.rect);
        let labels = self.edges.iter().filter_map(|e| e.label);
        texts
            .chain(groups)
            .chain(self.events.iter().map(|e| e.rect))
            .chain(labels)
            .collect()
    }

    /// Adds the text above and below, and moves the picture down accordingly.
    fn write_around(&mut self, scene: &Scene, headed: bool, more: Option<String>) {
        let width = self.size.0.max(LEAST_WIDTH);
        fn places(size: f64, width: f64) -> usize {
            ((width - 2.0 * MARGIN) / text_width("m", size)).floor() as usize
        }
        let mut y = MARGIN;
        fn line(text: &str, size: f64, y: &mut f64) -> TextLine {
            let rect = Rect {
                x: MARGIN,
                y: *y,
                w: text_width(text, size),
                h: size + 5.0,
            };
            *y += size + 6.0;
            TextLine {
                rect,
                text: text.to_owned(),
                full: None,
            }
        }
        let title = Some(&scene.title).filter(|_| headed);
        for part in title
            .iter()
            .flat_map(|title| wrapped(&escape::line(title), places(TITLE, width)))
        {
            self.head.push(line(&part, TITLE, &mut y));
        }
        for fact in scene.facts.iter().filter(|_| headed) {
            for part in wrapped(&escape::line(fact), places(LABEL, width)) {
                self.head.push(line(&part, LABEL, &mut y));
            }
        }
        let down = y + 4.0;
        self.shift(down);
        let mut y = self.size.1 + down + 6.0;
        for said in scene.says.iter().chain(more.iter()) {
            for part in wrapped(&escape::line(said), places(LABEL, width)) {
                self.foot.push(line(&part, LABEL, &mut y));
            }
            y += 4.0;
        }
        self.size = (width, y + MARGIN / 2.0);
    }

    fn shift(&mut self, dy: f64) {
        let point = |p: &mut PicturePoint| p.y += dy;
        for rect in (self
            .groups
            .iter_mut()
            .flat_map(|g| [&mut g.rect, &mut g.label.rect]))
        .chain(self.threads.iter_mut().map(|t| &mut t.rect))
        .chain(self.events.iter_mut().map(|e| &mut e.rect))
        {
            rect.y += dy;
        }
        for edge in &mut self.edges {
            point(&mut edge.path.start);
            for piece in &mut edge.path.pieces {
                match piece {
                    geometry::PathPiece::Line(p) => point(p),
                    geometry::PathPiece::Curve(a, b, p) => [a, b, p].into_iter().for_each(point),
                }
            }
            edge.tip
                .iter_mut()
                .chain(edge.tail.iter_mut().flatten())
                .for_each(point);
            if let Some(label) = &mut edge.label {
                label.y += dy;
            }
        }
    }
}
