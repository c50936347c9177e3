//! A cursor over tokens, shared by the parsers of all small languages here.
//!
//! # Invariants
//! - There is always a next token: the last token marks the end of the text, and the cursor never
//!   moves past it.
//! - The cursor counts nesting and limits it to [`MAX_NESTING`], so code that reads a tree can
//!   recurse over it.

use std::ops::Range;

/// The maximum nesting of brackets and blocks in every language. Real programs stay below 20.
pub const MAX_NESTING: usize = 100;

/// A token with its byte range in the text.
#[derive(Clone, Debug)]
pub struct Token<K> {
    /// The token's kind.
    pub kind: K,
    /// The token's byte range.
    pub range: Range<usize>,
}

impl<K> Token<K> {
    /// A token of the kind `kind` that takes the bytes `range`.
    pub fn new(kind: K, range: Range<usize>) -> Self {
        Token { kind, range }
    }
}

/// A parser's position in a list of tokens.
#[derive(Clone, Debug)]
pub struct Cursor<K> {
    tokens: Vec<Token<K>>,
    at: usize,
    depth: usize,
}

impl<K: Copy + PartialEq> Cursor<K> {
    /// A cursor before the first token. The last token must mark the end of the text.
    ///
    /// # Panics
    /// If `tokens` is empty.
    pub fn new(tokens: Vec<Token<K>>) -> Self {
        assert!(!tokens.is_empty(), "the end is a token");
        Cursor {
            tokens,
            at: 0,
            depth: 0,
        }
    }

    /// The kind of the next token.
    pub fn peek(&self) -> K {
        self.peek_at(0)
    }

    /// The kind of the token that is `ahead` positions after the next one.
    pub fn peek_at(&self, ahead: usize) -> K {
        self.token_at(ahead).kind
    }

    /// As [`Cursor::peek_at`], with the token's range.
    pub fn token_at(&self, ahead: usize) -> &Token<K> {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    /// The byte range of the next token.
    pub fn range(&self) -> Range<usize> {
        self.token_at(0).range.clone()
    }

    /// The token before the next one; at the beginning, the first token.
    pub fn last(&self) -> &Token<K> {
        &self.tokens[self.at.saturating_sub(1)]
    }

    /// Returns the next token and moves past it.
    pub fn advance(&mut self) -> Token<K> {
        let token = self.token_at(0).clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Moves past the next token if it has this kind; returns whether it did.
    pub fn eat(&mut self, kind: K) -> bool {
        let found = self.peek() == kind;
        if found {
            self.advance();
        }
        found
    }

    /// Takes the next token for two: the first has `len` bytes.
    pub fn split(&mut self, kinds: [K; 2], len: usize) {
        let whole = self.range();
        let middle = (whole.start + len).min(whole.end);
        let halves = [whole.start..middle, middle..whole.end];
        let two = kinds
            .into_iter()
            .zip(halves)
            .map(|(kind, range)| Token::new(kind, range));
        self.tokens.splice(self.at..self.at + 1, two);
    }

    /// The number of tokens already consumed.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Moves to a position returned by [`Cursor::position`].
    pub fn go_to(&mut self, position: usize) {
        self.at = position.min(self.tokens.len() - 1);
    }

    /// The consumed tokens from a position on.
    pub fn since(&self, position: usize) -> &[Token<K>] {
        &self.tokens[position..self.at]
    }

    /// The tokens not yet consumed.
    pub fn rest(&self) -> &[Token<K>] {
        &self.tokens[self.at..]
    }

    /// Enters a nesting level; returns `false`, without effect, if it is too deep.
    pub fn descend(&mut self) -> bool {
        let fits = self.depth < MAX_NESTING;
        self.depth += usize::from(fits);
        fits
    }

    /// Leaves a nesting level.
    pub fn ascend(&mut self) {
        self.depth -= 1;
    }

    /// The current nesting depth.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Returns to a depth after an error.
    pub fn ascend_to(&mut self, depth: usize) {
        self.depth = depth;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Cursor<char> {
        let mut tokens: Vec<_> = text
            .char_indices()
            .map(|(i, c)| Token::new(c, i..i + c.len_utf8()))
            .collect();
        tokens.push(Token::new('$', text.len()..text.len()));
        Cursor::new(tokens)
    }

    #[test]
    fn it_never_goes_behind_the_end() {
        let mut cursor = of("ab");
        assert!(!cursor.eat('b') && cursor.eat('a'));
        assert_eq!(
            (
                cursor.peek(),
                cursor.peek_at(7),
                cursor.last().range.clone()
            ),
            ('b', '$', 0..1)
        );
        for _ in 0..3 {
            cursor.advance();
        }
        assert_eq!(
            (cursor.peek(), cursor.range(), cursor.position()),
            ('$', 2..2, 2)
        );
        cursor.go_to(0);
        assert_eq!(
            (cursor.peek(), cursor.rest().len(), cursor.since(0).len()),
            ('a', 3, 0)
        );
    }

    #[test]
    fn it_counts_levels() {
        let mut cursor = of("");
        assert!((0..MAX_NESTING).all(|_| cursor.descend()));
        assert!(!cursor.descend());
        cursor.ascend();
        assert!(cursor.descend());
        cursor.ascend_to(3);
        assert_eq!(cursor.depth(), 3);
    }
}
