//! Places the labels of edges.
//!
//! # Invariants
//! - No label overlaps a box, a heading or another label.
//! - A label is on its edge or directly next to it.

use std::collections::HashMap;

use super::geometry::{Path, PicturePoint, Rect, at};

/// Side of a cell of the index of points.
const CELL: f64 = 32.0;

/// The rectangles that labels must not cover, and the paths that they should avoid.
pub(super) struct Labels {
    taken: Vec<Rect>,
    bounds: Rect,
    /// Points of all shown paths by cell, each with its path.
    points: HashMap<(i32, i32), Vec<(PicturePoint, usize)>>,
}

fn cell(p: PicturePoint) -> (i32, i32) {
    ((p.x / CELL).floor() as i32, (p.y / CELL).floor() as i32)
}

impl Labels {
    /// Labels stay inside `bounds` and do not overlap `taken`.
    pub(super) fn new(bounds: Rect, taken: Vec<Rect>, paths: &[(usize, &Path)]) -> Labels {
        let mut points: HashMap<(i32, i32), Vec<(PicturePoint, usize)>> = HashMap::new();
        for &(owner, path) in paths {
            for p in path.points(5.0) {
                points.entry(cell(p)).or_default().push((p, owner));
            }
        }
        Labels {
            taken,
            bounds,
            points,
        }
    }

    /// Places a label of that size for a path, and reserves its rectangle; `None` if there is no
    /// room.
    pub(super) fn place(&mut self, owner: usize, path: &Path, w: f64, h: f64) -> Option<Rect> {
        let points = path.points(5.0);
        let length = points.len() as f64;
        let short = length < 14.0;
        let mut best: Option<(f64, Rect)> = None;
        for (i, &p) in points.iter().enumerate() {
            if points.len() > 4 && (i < 1 || i + 2 >= points.len()) {
                continue;
            }
            let off_middle = (i as f64 / (length - 1.0).max(1.0) - 0.5).abs() * 2.0;
            let beside = [
                (0.0, 0.0, if short { 4.0 } else { 0.0 }),
                (w / 2.0 + 8.0, 0.0, 1.5),
                (-w / 2.0 - 8.0, 0.0, 2.0),
                (0.0, -h / 2.0 - 3.0, 1.5),
                (0.0, h / 2.0 + 3.0, 1.5),
            ];
            for (dx, dy, cost) in beside {
                let rect = Rect::around(at(p.x + dx, p.y + dy), w, h);
                let floor = cost + off_middle * 5.0;
                if best.as_ref().is_some_and(|(known, _)| *known <= floor) || !self.free(&rect) {
                    continue;
                }
                let cost = floor + 2.5 * self.covered(&rect, owner);
                if best.as_ref().is_none_or(|(known, _)| cost < *known) {
                    best = Some((cost, rect));
                }
            }
        }
        let (_, rect) = best?;
        self.taken.push(rect);
        Some(rect)
    }

    fn free(&self, rect: &Rect) -> bool {
        let inside = self.bounds.x <= rect.x
            && rect.right() <= self.bounds.right()
            && self.bounds.y <= rect.y
            && rect.bottom() <= self.bounds.bottom();
        inside && !self.taken.iter().any(|other| rect.overlaps(other))
    }

    /// The number of points of other paths that a label would cover.
    fn covered(&self, rect: &Rect, owner: usize) -> f64 {
        let ((x0, y0), (x1, y1)) = (
            cell(at(rect.x, rect.y)),
            cell(at(rect.right(), rect.bottom())),
        );
        let cells = (x0..=x1).flat_map(|x| (y0..=y1).map(move |y| (x, y)));
        let points = cells.filter_map(|c| self.points.get(&c)).flatten();
        points
            .filter(|(p, path)| *path != owner && rect.holds(*p))
            .count() as f64
    }
}
