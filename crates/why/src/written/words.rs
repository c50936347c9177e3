//! Lists the words of the code that state a scope, an order or flags, each as a knob.

use diag::Span;
use program::Scope;
use program::strength::{self, ALL_FLAGS, Order};

use super::Source;
use crate::knobs::{Knob, Written};

impl Source<'_> {
    /// The words of the code that state a scope, or end in one, up to a scope.
    pub(crate) fn scopes(&self, wide: Scope) -> Vec<Knob> {
        let words = self.scope_words();
        (0..self.tokens.len())
            .filter_map(|at| self.wider_scopes(at, &words, wide))
            .collect()
    }

    /// The words for scopes, one for each.
    fn scope_words(&self) -> Vec<(&'static str, Scope)> {
        let mut words: Vec<(&str, Scope)> = self.row.scopes.to_vec();
        words.dedup_by_key(|word| word.1);
        words
    }

    /// A knob that puts wider scopes, up to one, in the place of a token.
    fn wider_scopes(&self, at: usize, words: &[(&str, Scope)], wide: Scope) -> Option<Knob> {
        let (own, all) = match self.spelled(at, self.row.scopes) {
            Some((own, prefix)) => (own, without(prefix, words)),
            None => {
                let names = self.family_at(at)?;
                (names.iter().find(|name| name.0 == self.token(at))?.1, names)
            }
        };
        let wider = all
            .into_iter()
            .filter(|name| own < name.1 && name.1 <= wide)
            .map(|name| name.0);
        self.knob(Written::Scope, &self.tokens[at], wider)
    }

    /// The functions that differ from the called one in their scope.
    fn family_at(&self, at: usize) -> Option<Vec<(String, Scope)>> {
        self.writing
            .family(self.token(at))
            .filter(|_| self.token(at + 1) == "(")
    }

    /// The words of the code that state an order.
    pub(crate) fn orders(&self) -> Vec<Knob> {
        (0..self.tokens.len())
            .filter_map(|at| self.stronger_orders(at))
            .collect()
    }

    /// A knob that puts stronger orders in the place of a token.
    fn stronger_orders(&self, at: usize) -> Option<Knob> {
        let (own, prefix) = self.spelled(at, self.row.orders)?;
        let stronger = |o: &&(&str, Order)| {
            o.1 != Order::Consume
                && o.1.bits() != own.bits()
                && o.1.bits() & own.bits() == own.bits()
        };
        let mut orders: Vec<_> = self.row.orders.iter().filter(stronger).collect();
        orders.sort_by_key(|o| o.1.bits().count_ones());
        let words = orders.into_iter().map(|o| o.0[prefix..].to_owned());
        self.knob(Written::Order, &self.tokens[at], words)
    }

    /// The meaning of a token among some words, and the prefix that is left out there:
    /// `memory_order::release`.
    pub(super) fn spelled<T: Copy>(&self, at: usize, words: &[(&str, T)]) -> Option<(T, usize)> {
        let word = self.token(at);
        let prefix = if self.before(at, 1) == "::" {
            self.before(at, 2)
        } else {
            ""
        };
        words.iter().find_map(|&(name, meaning)| {
            let rest = name.strip_suffix(word)?;
            let left_out = !prefix.is_empty() && rest.strip_suffix('_') == Some(prefix);
            (rest.is_empty() || left_out).then_some((meaning, rest.len()))
        })
    }

    /// Flags of fences; for barriers that meet, together.
    pub(crate) fn flags(&self) -> Vec<Knob> {
        let (fences, barriers): (Vec<Knob>, Vec<Knob>) = (0..self.tokens.len())
            .filter_map(|at| self.all_flags(at))
            .partition(|knob| {
                knob.instr(&self.test.program)
                    .is_some_and(|i| i.op.is_fence())
            });
        fences.into_iter().chain(Knob::joined(barriers)).collect()
    }

    /// A knob that puts all flags in the place of a token that is the only one.
    fn all_flags(&self, at: usize) -> Option<Knob> {
        let word = self.token(at);
        let alone = self.before(at, 1) != "|" && self.token(at + 1) != "|";
        // `0` can stand for no flags. Only the front end can tell it from other numbers.
        let is_flag = word == "0" || ALL_FLAGS.split(" | ").any(|flag| flag == word);
        if !self.row.regions || !alone || !is_flag {
            return None;
        }
        let knob = self.knob(Written::Flags, &self.tokens[at], [ALL_FLAGS.to_owned()])?;
        knob.instr(&self.test.program)
            .is_some_and(|i| strength::lacks_flags(&i.op))
            .then_some(knob)
    }

    /// The words of the code that state an order or a scope, and their alternatives: any order, and
    /// some scopes.
    pub(crate) fn words(&self, scopes: &[Scope]) -> Vec<(Span, Vec<String>)> {
        let of_scopes = self.scope_words();
        let mut all = Vec::new();
        for (at, range) in self.tokens.iter().enumerate() {
            if let Some(mut words) = self.alternatives(at, &of_scopes, scopes) {
                words.retain(|word| word != self.token(at));
                all.push((Span::new(range.start, range.end), words));
            }
        }
        all
    }

    /// All orders, or some scopes, as words in the place of a token that states one.
    fn alternatives(
        &self,
        at: usize,
        of_scopes: &[(&str, Scope)],
        scopes: &[Scope],
    ) -> Option<Vec<String>> {
        if let Some((_, prefix)) = self.spelled(at, self.row.orders) {
            let orders = self.row.orders.iter().filter(|o| o.1 != Order::Consume);
            return Some(orders.map(|o| o.0[prefix..].to_owned()).collect());
        }
        let names = match self.spelled(at, self.row.scopes) {
            Some((_, prefix)) => without(prefix, of_scopes),
            None => self.family_at(at)?,
        };
        let names = names.into_iter().filter(|name| scopes.contains(&name.1));
        Some(names.map(|name| name.0).collect())
    }
}

/// Words without a prefix of that length.
fn without(prefix: usize, words: &[(&str, Scope)]) -> Vec<(String, Scope)> {
    words
        .iter()
        .map(|(word, scope)| (word[prefix..].to_owned(), *scope))
        .collect()
}
