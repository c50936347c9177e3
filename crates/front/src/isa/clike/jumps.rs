//! Lowers `goto` and its labels.
//!
//! # Invariants
//! - A label belongs to its function. The end of the function fills in the branches to it.
//! - A jump never enters a block, and never passes a declaration with an initial value in the block
//!   of its label. So no code sees a variable whose declaration did not run.
//!
//! # Sources
//! - C11, 6.2.1 and 6.8.6.1; ISO C++, stmt.goto and stmt.dcl.
//!
//! # Where we differ
//! - C permits both kinds of jumps, and leaves the variables without a value. Here they are errors.

use std::ops::Range;

use super::jump_places::JumpPlace;
use super::lower::Lowering;
use program::Expr;

impl Lowering<'_, '_> {
    fn jump_place(&self, range: &Range<usize>) -> JumpPlace {
        JumpPlace {
            at: self.code.len(),
            blocks: self.scopes.blocks(),
            range: range.clone(),
        }
    }

    /// Notes that a declaration here gives an initial value.
    pub(super) fn initialises_here(&mut self) {
        let (at, block) = (self.code.len(), self.scopes.blocks().last().copied());
        let block = block.unwrap_or(0);
        self.jumps.initialised.push((block, at));
    }

    /// `done:`
    pub(super) fn label(&mut self, name: &Range<usize>) {
        let (word, place) = (self.str(name).to_owned(), self.jump_place(name));
        if self.jumps.labels.insert(word.clone(), place).is_some() {
            let message = format!("there is a label `{word}` before");
            self.error("c-syntax", name, message, |d| {
                d.label("expected another name")
            });
        }
    }

    /// `goto done;`
    pub(super) fn go_to(&mut self, name: &Range<usize>) {
        let refused = if self.env.host.is_some() {
            Some("jumps in code of the host are not supported")
        } else if !self.endings.is_empty() {
            Some("jumps past the end of an object are not supported")
        } else {
            None
        };
        if let Some(message) = refused {
            self.error("unsupported", name, message, |d| {
                d.label("the language has them, Fencepost does not")
                    .help("use `if` and loops")
            });
            return;
        }
        let (word, place) = (self.str(name).to_owned(), self.jump_place(name));
        self.branch(Expr::Const(1));
        self.jumps.jumps.push((word, place));
    }

    /// Fills in the jumps of the function that ends here.
    pub(super) fn end_jumps(&mut self) {
        let all = std::mem::take(&mut self.jumps);
        for (word, from) in &all.jumps {
            let Some(to) = all.labels.get(word) else {
                let message = format!("this function has no label `{word}`");
                let known = all.labels.keys().map(String::as_str);
                self.error("c-syntax", &from.range, message, |d| {
                    d.label(format!("expected `{word}:` before a statement"))
                        .did_you_mean(word, known)
                });
                continue;
            };
            let enters = !from.blocks.starts_with(&to.blocks);
            let block = to.blocks.last().copied().unwrap_or(0);
            let between = from.at..=to.at;
            let passes = all
                .initialised
                .iter()
                .any(|(of, at)| *of == block && between.contains(at));
            let message = match (enters, passes) {
                (true, _) => "this jumps into a block",
                (_, true) => "this jumps past a declaration with an initial value",
                _ => {
                    self.patch(from.at, to.at);
                    continue;
                }
            };
            self.error("unsupported", &from.range, message, |d| {
                d.label("the variables there would have no value")
                    .help("declare them before the jump, and assign to them later")
            });
        }
    }
}
