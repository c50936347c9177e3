//! Text extracted from a file, with a map back to the file: code in a TOML string, a column of a
//! `.litmus` table, a template with its placeholders filled in.
//!
//! # Invariants
//! - Pieces cover the text without gaps, in order.
//! - A verbatim piece is a byte-for-byte copy of the file at its offset; an opaque piece maps to
//!   its whole span.
//! - [`MappedText::span`] never leaves the file and never joins places that are far apart in it.

use std::ops::Range;

use super::Span;

/// A text with a map from its bytes to places in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedText {
    text: String,
    pieces: Vec<TextPiece>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextPiece {
    /// Offset in the text at which the piece begins.
    at: usize,
    /// The part of the file that the piece comes from.
    file: Span,
    verbatim: bool,
}

/// Two pieces this close in the file (an escape, a line continuation) are shown as one place.
const NEARBY: u32 = 8;

impl MappedText {
    /// An empty text.
    pub fn new() -> Self {
        MappedText::default()
    }

    /// A copy of a part of the file that begins at byte `offset`.
    pub fn verbatim(text: &str, offset: usize) -> Self {
        let mut mapped = MappedText::new();
        mapped.push_verbatim(text, offset);
        mapped
    }

    /// A text that maps as a whole to `span`.
    pub fn opaque(text: &str, span: Span) -> Self {
        let mut mapped = MappedText::new();
        mapped.push_opaque(text, span);
        mapped
    }

    /// The text without its map.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Appends a copy of the file at byte `offset`.
    pub fn push_verbatim(&mut self, text: &str, offset: usize) {
        if text.is_empty() && !self.pieces.is_empty() {
            return;
        }
        let file = Span::new(offset, offset + text.len());
        match self.pieces.last_mut() {
            Some(last) if last.verbatim && last.file.end == file.start => last.file.end = file.end,
            _ => self.pieces.push(TextPiece {
                at: self.text.len(),
                file,
                verbatim: true,
            }),
        }
        self.text.push_str(text);
    }

    /// Appends text that maps as a whole to `span`.
    pub fn push_opaque(&mut self, text: &str, span: Span) {
        if text.is_empty() && !self.pieces.is_empty() {
            return;
        }
        self.pieces.push(TextPiece {
            at: self.text.len(),
            file: span,
            verbatim: false,
        });
        self.text.push_str(text);
    }

    /// Appends a part of another mapped text.
    pub fn push_slice(&mut self, from: &MappedText, range: Range<usize>) {
        let mut at = range.start;
        while at < range.end {
            let i = from.piece_at(at);
            let piece = from.pieces[i];
            let end = from
                .pieces
                .get(i + 1)
                .map_or(from.text.len(), |next| next.at)
                .min(range.end);
            let text = &from.text[at..end];
            if piece.verbatim {
                self.push_verbatim(text, piece.file.start as usize + (at - piece.at));
            } else {
                self.push_opaque(text, piece.file);
            }
            at = end;
        }
    }

    /// The span in the file of a byte range of the text. If the range covers pieces that are far
    /// apart in the file, this is the place where the range begins.
    pub fn span(&self, range: Range<usize>) -> Span {
        if self.pieces.is_empty() {
            return Span::default();
        }
        let first = self.piece_at(range.start);
        let mut span = self.part(first, range.start, range.end);
        for i in first + 1..self.pieces.len() {
            let piece = self.pieces[i];
            if piece.at >= range.end
                || piece.file.start < span.end
                || piece.file.start - span.end > NEARBY
            {
                break;
            }
            span.end = self.part(i, piece.at, range.end).end;
        }
        span
    }

    /// The index of the piece that holds byte `at`.
    fn piece_at(&self, at: usize) -> usize {
        self.pieces
            .partition_point(|p| p.at <= at)
            .saturating_sub(1)
    }

    /// The place in the file of the part of `start..end` that lies in piece `i`.
    fn part(&self, i: usize, start: usize, end: usize) -> Span {
        let piece = self.pieces[i];
        if !piece.verbatim {
            return piece.file;
        }
        let len = piece.file.end - piece.file.start;
        let from = (start.saturating_sub(piece.at) as u32).min(len);
        let to = (end.saturating_sub(piece.at) as u32).min(len);
        Span {
            start: piece.file.start + from,
            end: piece.file.start + to.max(from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbatim_text_maps_byte_for_byte() {
        let t = MappedText::verbatim("ld.weak r0, x", 100);
        assert_eq!(t.span(3..7), Span::new(103, 107));
        assert_eq!(t.span(13..13), Span::new(113, 113));
    }

    #[test]
    fn substituted_text_maps_to_where_it_was_written() {
        let template = MappedText::verbatim("a ${k} b", 10);
        let value = MappedText::verbatim("fence", 500);
        let mut t = MappedText::new();
        t.push_slice(&template, 0..2);
        t.push_slice(&value, 0..5);
        t.push_slice(&template, 6..8);
        assert_eq!(t.as_str(), "a fence b");
        assert_eq!(t.span(2..7), Span::new(500, 505));
        assert_eq!(
            t.span(0..9),
            Span::new(10, 12),
            "far apart: the beginning only"
        );
        assert_eq!(t.span(8..9), Span::new(17, 18));
    }

    #[test]
    fn escapes_do_not_break_a_place_in_two() {
        let mut t = MappedText::verbatim("ab", 10);
        t.push_opaque("\t", Span::new(12, 14));
        t.push_verbatim("cd", 14);
        assert_eq!(t.span(0..5), Span::new(10, 16));
        assert_eq!(t.span(3..4), Span::new(14, 15));
    }
}
