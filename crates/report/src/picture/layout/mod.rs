//! Where everything goes: rectangles and curves on a grid, without a word of any format.
//!
//! Columns are threads, side by side by their place in the scope tree; time runs down, initial
//! writes on top. Edges go through gutters and channels ([`route`](self)), names are put where they
//! cover nothing ([`labels`](self)); where there is no room for one, everything is laid out again
//! with more.
//!
//! # Invariants
//! - Boxes, headings and labels do not overlap each other ([`Layout::solid`]).
//! - Every edge that is shown has its label, or [`Layout::foot`] says what the label would have
//!   said.

pub mod geometry;

mod columns;
mod grid;
mod labels;
mod route;

use super::escape;
use super::scene::Scene;
use geometry::{Path, Point, Rect, text_width, wrapped};
use grid::Grid;

/// Size of what an event did, of code and labels, of the title.
pub const TEXT: f64 = 13.0;
/// Size of code, and of what is said around the picture.
pub const SMALL: f64 = 11.0;
/// Size of labels.
pub const LABEL: f64 = 12.0;
/// Size of the title.
pub const TITLE: f64 = 17.0;

/// Height of an event's box without its code, and of each line of code.
const EVENT_HEIGHT: f64 = 25.0;
const CODE_LINE: f64 = 13.0;
const INIT_HEIGHT: f64 = 26.0;
const LABEL_HEIGHT: f64 = 15.0;
const GROUP_LINE: f64 = 18.0;
const MARGIN: f64 = 14.0;
/// Distance of the borders of nested groups.
const NEST: f64 = 8.0;
/// Distance of lanes, and of the first one from its column: there is an arrow between them.
const LANE: f64 = 8.0;
const FIRST_LANE: f64 = 14.0;
/// Texts are cut at so many places; code goes on in another line,
const MOST_PLACES: usize = 36;
/// and is cut after so many lines.
const MOST_CODE: usize = 3;
/// Lines around the picture are at least this long.
const LEAST_WIDTH: f64 = 440.0;
/// How often everything is laid out again with more room.
const ATTEMPTS: usize = 12;

/// A line of text.
#[derive(Clone, Debug)]
pub struct Text {
    /// Where it is.
    pub rect: Rect,
    /// What it says.
    pub text: String,
    /// The whole of it, if it was cut.
    pub full: Option<String>,
}

/// A box of a group.
#[derive(Clone, Debug)]
pub struct Group {
    /// The box.
    pub rect: Rect,
    /// What it is called.
    pub label: Text,
}

/// The box of an event.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The box.
    pub rect: Rect,
    /// What it did, cut if it must be.
    pub action: String,
    /// Its code in lines, cut if it must be.
    pub code: Vec<String>,
}

/// An edge.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Its line.
    pub path: Path,
    /// The arrow at its end.
    pub tip: [Point; 3],
    /// The arrow at its start, if it holds in both directions.
    pub tail: Option<[Point; 3]>,
    /// Where its name is.
    pub label: Option<Rect>,
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Width and height.
    pub size: (f64, f64),
    /// The title and the lines below it.
    pub head: Vec<Text>,
    /// Groups, outer ones first.
    pub groups: Vec<Group>,
    /// Headings of columns.
    pub threads: Vec<Text>,
    /// By event of the scene.
    pub events: Vec<Placed>,
    /// By edge of the scene.
    pub edges: Vec<Drawn>,
    /// Lines below the picture.
    pub foot: Vec<Text>,
}

impl Layout {
    /// Lays out a scene; `headed`: under its title.
    pub fn of(scene: &Scene, headed: bool) -> Layout {
        let grid = Grid::new(scene);
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

    /// Everything that must not overlap: boxes of events, headings, labels of shown edges, text
    /// around the picture.
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

    /// Adds what is said above and below, and moves the picture down accordingly.
    fn write_around(&mut self, scene: &Scene, headed: bool, more: Option<String>) {
        let width = self.size.0.max(LEAST_WIDTH);
        let places = |size: f64| ((width - 2.0 * MARGIN) / text_width("m", size)).floor() as usize;
        let mut y = MARGIN;
        let line = |text: &str, size: f64, y: &mut f64| {
            let rect = Rect {
                x: MARGIN,
                y: *y,
                w: text_width(text, size),
                h: size + 5.0,
            };
            *y += size + 6.0;
            Text {
                rect,
                text: text.to_owned(),
                full: None,
            }
        };
        let title = Some(&scene.title).filter(|_| headed);
        for part in title
            .iter()
            .flat_map(|title| wrapped(&escape::line(title), places(TITLE)))
        {
            self.head.push(line(&part, TITLE, &mut y));
        }
        for fact in scene.facts.iter().filter(|_| headed) {
            for part in wrapped(&escape::line(fact), places(LABEL)) {
                self.head.push(line(&part, LABEL, &mut y));
            }
        }
        let down = y + 4.0;
        self.shift(down);
        let mut y = self.size.1 + down + 6.0;
        for said in scene.says.iter().chain(more.iter()) {
            for part in wrapped(&escape::line(said), places(LABEL)) {
                self.foot.push(line(&part, LABEL, &mut y));
            }
            y += 4.0;
        }
        self.size = (width, y + MARGIN / 2.0);
    }

    fn shift(&mut self, dy: f64) {
        let point = |p: &mut Point| p.y += dy;
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
                    geometry::Piece::Line(p) => point(p),
                    geometry::Piece::Curve(a, b, p) => [a, b, p].into_iter().for_each(point),
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
