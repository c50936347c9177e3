//! Paints pictures as PNG files.
//!
//! # Invariants
//! - A unit of the layout is two pixels on each side.
//! - The font comes with the program, so a picture is the same on every machine. It is Hack; bold
//!   text is the same font with an outline. Characters that it lacks are replaced by `?`.
//! - A picture of more than [`MOST_PIXELS`] pixels is refused before its memory is taken.

use tiny_skia::{
    Color, FillRule, Paint, PathBuilder, Pixmap, Stroke as PixelStroke, StrokeDash, Transform,
};
use ttf_parser::{Face, OutlineBuilder};

use super::drawing::{Colour, Drawing, DrawnItem, Stroke, parts, round_frame};
use super::layout::geometry::{Path, PathPiece, PicturePoint};
use super::scene::Scene;

/// Pixels on each side of a unit of the layout.
const SCALE: f64 = 2.0;

/// The largest picture, in pixels: 400 MB while it is painted.
pub const MOST_PIXELS: f64 = 1e8;

/// The width of the outline of bold text, for a font of size 1.
const BOLD: f64 = 0.07;

/// A file with several pictures, one below the other.
///
/// # Errors
/// The picture has too many pixels: its width and height in pixels.
pub fn file(scenes: &[Scene]) -> Result<Vec<u8>, (f64, f64)> {
    let drawing = Drawing::of(scenes);
    let size = (
        (drawing.width * SCALE).ceil(),
        (drawing.height * SCALE).ceil(),
    );
    let picture = painted(&drawing, size).ok_or(size)?;
    picture.encode_png().map_err(|_| size)
}

/// The pixels of a drawing; nothing if they are too many.
fn painted(drawing: &Drawing, size: (f64, f64)) -> Option<Pixmap> {
    let (width, height) = size;
    if width * height > MOST_PIXELS {
        return None;
    }
    let mut picture = Pixmap::new(width as u32, height as u32)?;
    picture.fill(Color::WHITE);
    let font = Face::parse(epaint_default_fonts::HACK_REGULAR, 0).ok();
    for item in &drawing.items {
        paint(&mut picture, font.as_ref(), item);
    }
    Some(picture)
}

fn paint(picture: &mut Pixmap, font: Option<&Face<'_>>, item: &DrawnItem) {
    match item {
        DrawnItem::Frame {
            rect,
            radius,
            fill,
            stroke,
        } => {
            let mut frame = line(&round_frame(rect, *radius));
            frame.path.close();
            filled(picture, frame.clone(), fill);
            if let Some(stroke) = stroke {
                stroked(picture, frame, stroke);
            }
        }
        DrawnItem::Line { path, stroke } => stroked(picture, line(path), stroke),
        DrawnItem::Tip { points, fill } => {
            let mut tip = Outline::default();
            let [a, b, c] = points;
            tip.to(a);
            tip.line(b);
            tip.line(c);
            tip.path.close();
            filled(picture, tip, fill);
        }
        DrawnItem::Text {
            at,
            size,
            bold,
            middle,
            colour,
            text,
        } => {
            let Some(font) = font else { return };
            let letters = letters(font, *size, *at, *middle, text);
            if *bold {
                let stroke = Stroke {
                    colour,
                    width: size * BOLD,
                    dashes: "",
                };
                stroked(picture, letters.clone(), &stroke);
            }
            filled(picture, letters, colour);
        }
    }
}

/// The outlines of a line of text.
fn letters(font: &Face<'_>, size: f64, at: PicturePoint, middle: bool, text: &str) -> Outline {
    let unit = size / f64::from(font.units_per_em());
    let known = |c: char| font.glyph_index(c).or_else(|| font.glyph_index('?'));
    let glyphs: Vec<_> = text.chars().filter_map(known).collect();
    let advance = |glyph| unit * f64::from(font.glyph_hor_advance(glyph).unwrap_or(0));
    let width: f64 = glyphs.iter().map(|&glyph| advance(glyph)).sum();
    let mut outline = Outline {
        unit,
        left: if middle { at.x - width / 2.0 } else { at.x },
        base: at.y,
        path: PathBuilder::new(),
    };
    for glyph in glyphs {
        // A glyph without an outline is a space.
        let _ = font.outline_glyph(glyph, &mut outline);
        outline.left += advance(glyph);
    }
    outline
}

/// A path in pixels, made of points of the layout or of a glyph.
#[derive(Clone)]
struct Outline {
    path: PathBuilder,
    /// Where the next glyph begins, in units of the layout.
    left: f64,
    base: f64,
    /// A unit of the font in units of the layout.
    unit: f64,
}

impl Default for Outline {
    fn default() -> Outline {
        Outline {
            path: PathBuilder::new(),
            left: 0.0,
            base: 0.0,
            unit: 1.0,
        }
    }
}

fn pixels(value: f64) -> f32 {
    (value * SCALE) as f32
}

impl Outline {
    fn to(&mut self, point: &PicturePoint) {
        self.path.move_to(pixels(point.x), pixels(point.y));
    }

    fn line(&mut self, point: &PicturePoint) {
        self.path.line_to(pixels(point.x), pixels(point.y));
    }

    fn curve(&mut self, first: &PicturePoint, second: &PicturePoint, end: &PicturePoint) {
        self.path.cubic_to(
            pixels(first.x),
            pixels(first.y),
            pixels(second.x),
            pixels(second.y),
            pixels(end.x),
            pixels(end.y),
        );
    }

    /// A point of a glyph: the vertical axis of fonts points up.
    fn of_glyph(&self, x: f32, y: f32) -> PicturePoint {
        PicturePoint {
            x: self.left + self.unit * f64::from(x),
            y: self.base - self.unit * f64::from(y),
        }
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.to(&self.of_glyph(x, y));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.line(&self.of_glyph(x, y));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (control, end) = (self.of_glyph(x1, y1), self.of_glyph(x, y));
        self.path.quad_to(
            pixels(control.x),
            pixels(control.y),
            pixels(end.x),
            pixels(end.y),
        );
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let (first, second) = (self.of_glyph(x1, y1), self.of_glyph(x2, y2));
        self.curve(&first, &second, &self.of_glyph(x, y));
    }

    fn close(&mut self) {
        self.path.close();
    }
}

fn line(path: &Path) -> Outline {
    let mut outline = Outline::default();
    outline.to(&path.start);
    for piece in &path.pieces {
        match piece {
            PathPiece::Line(to) => outline.line(to),
            PathPiece::Curve(first, second, to) => outline.curve(first, second, to),
        }
    }
    outline
}

fn filled(picture: &mut Pixmap, outline: Outline, colour: Colour) {
    if let Some(path) = outline.path.finish() {
        let rule = FillRule::Winding;
        picture.fill_path(&path, &ink(colour), rule, Transform::identity(), None);
    }
}

fn stroked(picture: &mut Pixmap, outline: Outline, stroke: &Stroke) {
    let lengths: Vec<f32> = stroke
        .dashes
        .split_whitespace()
        .filter_map(|length| length.parse().ok())
        .map(pixels)
        .collect();
    let pen = PixelStroke {
        width: pixels(stroke.width),
        dash: StrokeDash::new(lengths, 0.0),
        ..PixelStroke::default()
    };
    if let Some(path) = outline.path.finish() {
        let paint = ink(stroke.colour);
        picture.stroke_path(&path, &paint, &pen, Transform::identity(), None);
    }
}

fn ink(colour: Colour) -> Paint<'static> {
    let [red, green, blue] = parts(colour).map(|part| (part * 255.0).round() as u8);
    let mut paint = Paint {
        anti_alias: true,
        ..Paint::default()
    };
    paint.set_color_rgba8(red, green, blue, 255);
    paint
}

#[cfg(test)]
mod tests {
    use super::super::layout::geometry::Rect;
    use super::*;

    fn drawn(items: Vec<DrawnItem>) -> Pixmap {
        let drawing = Drawing {
            width: 40.0,
            height: 20.0,
            items,
        };
        painted(&drawing, (80.0, 40.0)).expect("a small picture")
    }

    fn colour_at(picture: &Pixmap, x: u32, y: u32) -> (u8, u8, u8) {
        let pixel = picture.pixel(x, y).expect("a pixel of the picture");
        (pixel.red(), pixel.green(), pixel.blue())
    }

    const WHITE: (u8, u8, u8) = (255, 255, 255);

    #[test]
    fn shapes_have_their_colours() {
        let corner = |x: f64, y: f64| PicturePoint { x, y };
        let picture = drawn(vec![
            DrawnItem::Frame {
                rect: Rect {
                    x: 2.0,
                    y: 2.0,
                    w: 10.0,
                    h: 10.0,
                },
                radius: 2.0,
                fill: "#ff0000",
                stroke: Some(Stroke {
                    colour: "#0000ff",
                    width: 2.0,
                    dashes: "",
                }),
            },
            DrawnItem::Tip {
                points: [corner(20.0, 2.0), corner(30.0, 2.0), corner(25.0, 12.0)],
                fill: "#00ff00",
            },
        ]);
        assert_eq!(colour_at(&picture, 14, 14), (255, 0, 0));
        assert_eq!(colour_at(&picture, 4, 14), (0, 0, 255));
        // The corner is round.
        assert_eq!(colour_at(&picture, 2, 2), WHITE);
        assert_eq!(colour_at(&picture, 50, 10), (0, 255, 0));
        assert_eq!(colour_at(&picture, 42, 20), WHITE);
    }

    #[test]
    fn dashes_leave_gaps() {
        let line = |dashes| {
            let path = Path {
                start: PicturePoint { x: 0.0, y: 10.0 },
                pieces: vec![PathPiece::Line(PicturePoint { x: 40.0, y: 10.0 })],
            };
            let stroke = Stroke {
                colour: "#000000",
                width: 2.0,
                dashes,
            };
            drawn(vec![DrawnItem::Line { path, stroke }])
        };
        let inked = |picture: &Pixmap| {
            (0..80)
                .filter(|&x| colour_at(picture, x, 20) == (0, 0, 0))
                .count()
        };
        assert_eq!(inked(&line("")), 80);
        let dashed = inked(&line("5 5"));
        assert!((36..=44).contains(&dashed), "{dashed} of 80 pixels");
    }

    #[test]
    fn text_is_painted_where_it_stands() {
        let text = |text: &str, bold, middle| {
            let picture = drawn(vec![DrawnItem::Text {
                at: PicturePoint { x: 20.0, y: 15.0 },
                size: 10.0,
                bold,
                middle,
                colour: "#000000",
                text: text.to_owned(),
            }]);
            let dark = |x| {
                (0..40)
                    .filter(|&y| colour_at(&picture, x, y) != WHITE)
                    .count()
            };
            [(0..40).map(dark).sum::<usize>(), (40..80).map(dark).sum()]
        };
        let [left, right] = text("rf", false, false);
        assert_eq!(left, 0);
        assert!(right > 30, "{right}");
        let [left, right] = text("rf", false, true);
        assert!(left > 15 && right > 15, "{left}, {right}");
        assert!(text("rf", true, false)[1] > text("rf", false, false)[1]);
        assert_eq!(text("\u{6f22}", false, false), text("?", false, false));
        assert_eq!(text(" ", false, false), [0, 0]);
    }

    #[test]
    fn too_many_pixels_are_refused() {
        let drawing = Drawing {
            width: 10_000.0,
            height: 10_001.0,
            items: Vec::new(),
        };
        assert!(painted(&drawing, (10_000.0, 10_001.0)).is_none());
    }
}
