//! Points, rectangles and curves, and the width of text.

/// A point; `y` runs down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PicturePoint {
    /// The distance from the left.
    pub x: f64,
    /// The distance from the top.
    pub y: f64,
}

/// A point.
pub fn at(x: f64, y: f64) -> PicturePoint {
    PicturePoint { x, y }
}

impl PicturePoint {
    fn towards(self, to: PicturePoint, part: f64) -> PicturePoint {
        at(
            self.x + (to.x - self.x) * part,
            self.y + (to.y - self.y) * part,
        )
    }

    /// The distance to another point.
    pub fn distance(self, to: PicturePoint) -> f64 {
        (to.x - self.x).hypot(to.y - self.y)
    }
}

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    /// Left.
    pub x: f64,
    /// Top.
    pub y: f64,
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
}

impl Rect {
    /// A rectangle around a point.
    pub fn around(middle: PicturePoint, w: f64, h: f64) -> Rect {
        Rect {
            x: middle.x - w / 2.0,
            y: middle.y - h / 2.0,
            w,
            h,
        }
    }

    /// The smallest rectangle that contains some points.
    pub fn of(points: &[PicturePoint]) -> Rect {
        let least =
            |of: fn(&PicturePoint) -> f64| points.iter().map(of).fold(f64::INFINITY, f64::min);
        let most =
            |of: fn(&PicturePoint) -> f64| points.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
        let (x, y) = (least(|p| p.x), least(|p| p.y));
        Rect {
            x,
            y,
            w: most(|p| p.x) - x,
            h: most(|p| p.y) - y,
        }
    }

    /// Right edge.
    pub fn right(&self) -> f64 {
        self.x + self.w
    }

    /// Bottom edge.
    pub fn bottom(&self) -> f64 {
        self.y + self.h
    }

    /// Whether the two share more than an edge.
    pub fn overlaps(&self, other: &Rect) -> bool {
        self.x < other.right()
            && other.x < self.right()
            && self.y < other.bottom()
            && other.y < self.bottom()
    }

    /// Whether it contains a point.
    pub fn holds(&self, p: PicturePoint) -> bool {
        self.x <= p.x && p.x <= self.right() && self.y <= p.y && p.y <= self.bottom()
    }
}

/// A piece of a path, starting at the end of the previous one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathPiece {
    /// A straight line to a point.
    Line(PicturePoint),
    /// A cubic curve: two control points and the end.
    Curve(PicturePoint, PicturePoint, PicturePoint),
}

impl PathPiece {
    fn end(&self) -> PicturePoint {
        match *self {
            PathPiece::Line(p) | PathPiece::Curve(_, _, p) => p,
        }
    }
}

/// A path.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The start.
    pub start: PicturePoint,
    /// The consecutive pieces.
    pub pieces: Vec<PathPiece>,
}

impl Path {
    /// An empty path.
    pub fn from(start: PicturePoint) -> Path {
        Path {
            start,
            pieces: Vec::new(),
        }
    }

    /// The end.
    pub fn end(&self) -> PicturePoint {
        self.pieces.last().map_or(self.start, PathPiece::end)
    }

    /// Adds a straight line.
    pub fn line(mut self, to: PicturePoint) -> Path {
        if to != self.end() {
            self.pieces.push(PathPiece::Line(to));
        }
        self
    }

    /// Adds a curve to `to`, horizontal at both ends.
    pub fn sway(mut self, to: PicturePoint) -> Path {
        let from = self.end();
        let reach = (to.x - from.x) * 0.5;
        self.pieces.push(PathPiece::Curve(
            at(from.x + reach, from.y),
            at(to.x - reach, to.y),
            to,
        ));
        self
    }

    /// Adds a curve to `to`, above or below the end, with a bulge to the side.
    pub fn bulge(mut self, to: PicturePoint, by: f64) -> Path {
        let from = self.end();
        // A cubic curve reaches three quarters of the distance to its control points.
        self.pieces.push(PathPiece::Curve(
            at(from.x + by / 0.75, from.y),
            at(to.x + by / 0.75, to.y),
            to,
        ));
        self
    }

    /// Adds lines through rounded corners.
    pub fn corners(mut self, through: &[PicturePoint]) -> Path {
        const RADIUS: f64 = 9.0;
        for (i, &corner) in through.iter().enumerate() {
            let from = self.end();
            let Some(&next) = through.get(i + 1) else {
                return self.line(corner);
            };
            let (before, after) = (from.distance(corner), corner.distance(next));
            let radius = RADIUS.min(before / 2.0).min(after / 2.0);
            if radius < 0.5 {
                self = self.line(corner);
                continue;
            }
            let (enter, leave) = (
                corner.towards(from, radius / before),
                corner.towards(next, radius / after),
            );
            self = self.line(enter);
            self.pieces.push(PathPiece::Curve(
                enter.towards(corner, 0.55),
                leave.towards(corner, 0.55),
                leave,
            ));
        }
        self
    }

    /// The path in the opposite direction.
    pub fn reversed(&self) -> Path {
        let mut ends = vec![self.start];
        ends.extend(self.pieces.iter().map(PathPiece::end));
        let mut path = Path::from(self.end());
        for (piece, &to) in self.pieces.iter().zip(&ends).rev() {
            path.pieces.push(match *piece {
                PathPiece::Line(_) => PathPiece::Line(to),
                PathPiece::Curve(a, b, _) => PathPiece::Curve(b, a, to),
            });
        }
        path
    }

    /// Points of the path, about `step` apart, from start to end.
    pub fn points(&self, step: f64) -> Vec<PicturePoint> {
        let mut out = vec![self.start];
        let mut from = self.start;
        for piece in &self.pieces {
            let to = piece.end();
            let (a, b) = match *piece {
                PathPiece::Line(p) => (from.towards(p, 1.0 / 3.0), from.towards(p, 2.0 / 3.0)),
                PathPiece::Curve(a, b, _) => (a, b),
            };
            let length = from.distance(a) + a.distance(b) + b.distance(to);
            let parts = (length / step).ceil().clamp(1.0, 400.0) as usize;
            for i in 1..=parts {
                let t = i as f64 / parts as f64;
                let (p, q, r) = (from.towards(a, t), a.towards(b, t), b.towards(to, t));
                out.push(p.towards(q, t).towards(q.towards(r, t), t));
            }
            from = to;
        }
        out
    }

    /// The triangle of an arrowhead at the end.
    pub fn arrow(&self, size: f64) -> [PicturePoint; 3] {
        let tip = self.end();
        let points = self.points(2.0);
        let back = points
            .iter()
            .rev()
            .find(|p| p.distance(tip) >= size)
            .copied()
            .unwrap_or(self.start);
        let length = back.distance(tip).max(0.001);
        let (dx, dy) = ((tip.x - back.x) / length, (tip.y - back.y) / length);
        let base = at(tip.x - dx * size, tip.y - dy * size);
        let half = size * 0.42;
        [
            tip,
            at(base.x - dy * half, base.y + dx * half),
            at(base.x + dy * half, base.y - dx * half),
        ]
    }
}

/// The width of a text at `size` pixels in a monospaced font; characters of East Asian scripts take
/// two places.
pub fn text_width(text: &str, size: f64) -> f64 {
    const ADVANCE: f64 = 0.61;
    places(text) as f64 * size * ADVANCE
}

fn places(text: &str) -> usize {
    text.chars().map(place).sum()
}

fn place(c: char) -> usize {
    match c as u32 {
        0x0300..=0x036f | 0x200b..=0x200d | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe4f => {
            2
        }
        0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f000..=0x1ffff | 0x20000..=0x3ffff => 2,
        _ => 1,
    }
}

/// The text, shortened to `most` places with an ellipsis.
pub fn shortened(text: &str, most: usize) -> String {
    if places(text) <= most {
        return text.to_owned();
    }
    let mut used = 1;
    let mut out: String = text
        .chars()
        .take_while(|c| {
            used += place(*c);
            used <= most
        })
        .collect();
    out.push('\u{2026}');
    out
}

/// The text in lines of at most `most` places, broken at spaces if possible.
pub fn wrapped(text: &str, most: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split(' ') {
        let mut word = word.to_owned();
        if !line.is_empty() && places(&line) + 1 + places(&word) > most {
            lines.push(std::mem::take(&mut line));
        }
        while places(&word) > most {
            let mut used = 0;
            let head: String = word
                .chars()
                .take_while(|&c| {
                    used += place(c);
                    used <= most
                })
                .collect();
            // A line without room for one character would loop forever.
            if head.is_empty() {
                break;
            }
            // Code breaks better after a bracket or comma than inside a name, if that leaves a good
            // part of the line.
            let seam = head
                .rfind([',', '(', ':', ';', '.'])
                .map(|at| at + 1)
                .filter(|at| at * 2 > head.len());
            let rest = word.split_off(seam.unwrap_or(head.len()));
            lines.push(std::mem::replace(&mut word, rest));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_backwards_goes_the_same_way() {
        let path = Path::from(at(0.0, 0.0))
            .sway(at(100.0, 40.0))
            .line(at(150.0, 40.0))
            .bulge(at(150.0, 90.0), 20.0);
        let (mut there, back) = (path.points(5.0), path.reversed().points(5.0));
        there.reverse();
        assert_eq!(there.len(), back.len());
        assert!(there.iter().zip(&back).all(|(a, b)| a.distance(*b) < 1e-9));
    }

    #[test]
    fn an_arrow_points_along_the_end_of_its_path() {
        let [tip, a, b] = Path::from(at(0.0, 0.0)).line(at(0.0, 50.0)).arrow(8.0);
        assert_eq!(tip, at(0.0, 50.0));
        assert!(a.y == 42.0 && b.y == 42.0 && a.x == -b.x);
    }

    #[test]
    fn long_texts_are_broken_and_cut() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(
            wrapped("scope>(x).load(order)", 18),
            ["scope>(x).load(", "order)"]
        );
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("\u{6f22}", 1), ["\u{6f22}"]);
        assert_eq!(shortened("abcdef", 4), "abc\u{2026}");
        assert_eq!(shortened("abcd", 4), "abcd");
    }
}
