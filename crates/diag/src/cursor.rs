//! A walk over the tokens of a text: what the parsers of all our small languages share.
//!
//! # Invariants
//! - There is always a next token: the last one stands for the end of the text, and nobody goes
//!   behind it.
//! - Nesting is counted here, and limited to [`MAX_NESTING`]: who reads a tree may walk it by
//!   recursion.

use std::ops::Range;

/// How deeply brackets, blocks and the like may nest, in every language. What people write stays
/// below 20.
pub const MAX_NESTING: usize = 100;

/// A token, and the bytes of the text that it takes.
#[derive(Clone, Debug)]
pub struct Token<K> {
    /// What it is.
    pub kind: K,
    /// Its bytes.
    pub range: Range<usize>,
}

impl<K> Token<K> {
    /// A token of the kind `kind` that takes the bytes `range`.
    pub fn new(kind: K, range: Range<usize>) -> Self {
        Token { kind, range }
    }
}

/// Where a parser stands.
#[derive(Clone, Debug)]
pub struct Cursor<K> {
    tokens: Vec<Token<K>>,
    at: usize,
    depth: usize,
}

impl<K: Copy + PartialEq> Cursor<K> {
    /// Stands before the first of some tokens, the last of which stands for the end of the text.
    ///
    /// # Panics
    /// There is none.
    pub fn new(tokens: Vec<Token<K>>) -> Self {
        assert!(!tokens.is_empty(), "the end is a token");
        Cursor {
            tokens,
            at: 0,
            depth: 0,
        }
    }

    /// The next token.
    pub fn peek(&self) -> K {
        self.peek_at(0)
    }

    /// The token `ahead` of the next one.
    pub fn peek_at(&self, ahead: usize) -> K {
        self.token_at(ahead).kind
    }

    /// The same with its place.
    pub fn token_at(&self, ahead: usize) -> &Token<K> {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    /// The place of the next token.
    pub fn range(&self) -> Range<usize> {
        self.token_at(0).range.clone()
    }

    /// The token before the next one; at the beginning, the next one.
    pub fn last(&self) -> &Token<K> {
        &self.tokens[self.at.saturating_sub(1)]
    }

    /// Goes over a token.
    pub fn advance(&mut self) -> Token<K> {
        let token = self.token_at(0).clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Goes over the next token if it is this one, and says whether it was.
    pub fn eat(&mut self, kind: K) -> bool {
        let found = self.peek() == kind;
        if found {
            self.advance();
        }
        found
    }

    /// How many tokens lie behind.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Goes to where [`Cursor::position`] was this.
    pub fn go_to(&mut self, position: usize) {
        self.at = position.min(self.tokens.len() - 1);
    }

    /// The tokens behind, from a position on.
    pub fn since(&self, position: usize) -> &[Token<K>] {
        &self.tokens[position..self.at]
    }

    /// The tokens ahead.
    pub fn rest(&self) -> &[Token<K>] {
        &self.tokens[self.at..]
    }

    /// Goes a level deeper; `false`: it is too deep, and nothing was done.
    pub fn descend(&mut self) -> bool {
        let fits = self.depth < MAX_NESTING;
        self.depth += usize::from(fits);
        fits
    }

    /// Comes back from a level.
    pub fn ascend(&mut self) {
        self.depth -= 1;
    }

    /// How deep it is.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Comes back to a depth after an error.
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
