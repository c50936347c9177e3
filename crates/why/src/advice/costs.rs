//! Costs of orders, scopes and fences, from a table in a file; [`Costs::shipped`] is the one in the
//! program.
//!
//! # Invariants
//! - Every line of a table was read, and every entry occurs once.
//! - A cost is at most [`MOST`], so sums of costs do not overflow.

use std::sync::Arc;

use diag::{Diagnostic, SourceFile, Span};
use program::Op;
use program::strength::{self, Order};
use program::words::SCOPES;

/// The largest entry.
pub const MOST: u64 = 1_000_000;

/// The keys of accesses and fences.
const ORDERS: [&str; 6] = [
    "weak", "relaxed", "acquire", "release", "acq_rel", "seq_cst",
];

/// The scopes whose threads a barrier can bring together: warp to device.
const MEETING: std::ops::Range<usize> = 1..5;

/// The costs of orders, scopes, fences, barriers and calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    accesses: [u64; 6],
    /// Costs of fences; no fence is weak or relaxed.
    fences: [u64; 6],
    scopes: [u64; 6],
    /// Those of barriers, by the scope of the threads that they bring together.
    barriers: [u64; 6],
    /// That of a call of the host.
    call: u64,
    in_loops: u64,
}

impl Costs {
    /// The table that applies without `--cost`.
    pub fn shipped() -> Costs {
        let text = models::MODELS
            .get_file("costs.txt")
            .and_then(|file| file.contents_utf8())
            .unwrap_or_default();
        Costs::read(&SourceFile::new("costs.txt", text)).expect("the shipped table is one")
    }

    /// Reads a table.
    ///
    /// # Errors
    /// Every mistake in it, each with its place.
    pub fn read(file: &Arc<SourceFile>) -> Result<Costs, Vec<Diagnostic>> {
        let mut costs = Costs {
            accesses: [0; 6],
            fences: [0; 6],
            scopes: [0; 6],
            barriers: [0; 6],
            call: 0,
            in_loops: 1,
        };
        let (mut seen, mut wrong) = (Vec::new(), Vec::new());
        for (line, text) in file.lines() {
            let (text, at) = (
                text.split('#').next().unwrap_or("").trim_end(),
                line.start as usize,
            );
            let indent = text.len() - text.trim_start().len();
            let span = Span::new(at + indent, at + text.len());
            if text.trim().is_empty() {
                continue;
            }
            let error =
                |message: String| Diagnostic::error("cost-table", file, span, message).help(HELP);
            let Some((key, number)) = text.split_once('=') else {
                wrong.push(error(format!(
                    "expected `NAME = NUMBER`, found `{}`",
                    text.trim()
                )));
                continue;
            };
            let key = diag::one_line(key);
            let Some(place) = costs.entry(&key) else {
                wrong.push(
                    error(format!("there is no cost of `{key}`"))
                        .did_you_mean(&key, keys().iter().map(String::as_str)),
                );
                continue;
            };
            match number.trim().parse::<u64>() {
                Ok(number) if number <= MOST => *place = number,
                _ => wrong.push(error(format!(
                    "expected a whole number from 0 to {MOST}, found `{}`",
                    number.trim()
                ))),
            }
            if seen.contains(&key) {
                wrong.push(error(format!("`{key}` occurs twice")));
            }
            seen.push(key);
        }
        let missing: Vec<String> = keys()
            .into_iter()
            .filter(|key| !seen.contains(key))
            .collect();
        if wrong.is_empty() && !missing.is_empty() {
            let end = Span::new(file.text.len(), file.text.len());
            let message = format!("the table ends without {}", missing.join(", "));
            wrong.push(Diagnostic::error("cost-table", file, end, message).help(HELP));
        }
        if wrong.is_empty() {
            Ok(costs)
        } else {
            Err(wrong)
        }
    }

    fn entry(&mut self, key: &str) -> Option<&mut u64> {
        fn order(name: &str) -> Option<usize> {
            ORDERS.iter().position(|order| *order == name)
        }
        match key.split_once(' ') {
            None if key == "loop" => Some(&mut self.in_loops),
            None => (key == "call").then_some(&mut self.call),
            Some(("access", name)) => order(name).map(|i| &mut self.accesses[i]),
            Some(("fence", name)) => order(name).filter(|i| *i > 1).map(|i| &mut self.fences[i]),
            Some(("scope", name)) => {
                let i = SCOPES.iter().position(|scope| scope.0 == name)?;
                Some(&mut self.scopes[i])
            }
            Some(("barrier", name)) => {
                let i = SCOPES.iter().position(|scope| scope.0 == name)?;
                MEETING.contains(&i).then(|| &mut self.barriers[i])
            }
            Some(_) => None,
        }
    }

    /// The cost of an instruction at its place.
    pub(super) fn of(&self, op: &Op, in_loop: bool) -> u64 {
        if !op.is_fence() && !op.is_access() {
            let once = self.of_meeting(op);
            return if in_loop { once * self.in_loops } else { once };
        }
        let order = match strength::order(op) {
            None if strength::is_plain(op) && !op.is_fence() => 0,
            None | Some(Order::Relaxed) => 1,
            Some(Order::Acquire | Order::Consume) => 2,
            Some(Order::Release) => 3,
            Some(Order::AcqRel) => 4,
            Some(Order::SeqCst) => 5,
        };
        let table = if op.is_fence() {
            &self.fences
        } else {
            &self.accesses
        };
        let scope = if order == 0 {
            None
        } else {
            strength::scope(op)
        };
        let scope = scope.and_then(|own| SCOPES.iter().position(|scope| scope.1 == own));
        let once = table[order] + scope.map_or(0, |i| self.scopes[i]);
        if in_loop { once * self.in_loops } else { once }
    }
}

impl Costs {
    /// What a barrier or a call of the host costs once.
    fn of_meeting(&self, op: &Op) -> u64 {
        match op {
            Op::Barrier(barrier) => SCOPES
                .iter()
                .position(|scope| scope.1 == barrier.domain)
                .map_or(0, |i| self.barriers[i]),
            Op::Call(_) => self.call,
            _ => 0,
        }
    }
}

/// All keys of a table.
fn keys() -> Vec<String> {
    let accesses = ORDERS.iter().map(|order| format!("access {order}"));
    let fences = ORDERS[2..].iter().map(|order| format!("fence {order}"));
    let scopes = SCOPES.iter().map(|scope| format!("scope {}", scope.0));
    let barriers = SCOPES[MEETING]
        .iter()
        .map(|scope| format!("barrier {}", scope.0));
    accesses
        .chain(fences)
        .chain(scopes)
        .chain(barriers)
        .chain(["call".to_owned(), "loop".to_owned()])
        .collect()
}

const HELP: &str = "a table has lines such as `access acquire = 8`, `fence acq_rel = 20`, `scope \
gpu = 3` and `loop = 3`";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Costs, Vec<Diagnostic>> {
        Costs::read(&SourceFile::new("c", text))
    }

    #[test]
    fn the_shipped_table_says_what_is_dearer() {
        let costs = Costs::shipped();
        assert!(costs.accesses.is_sorted() && costs.fences.is_sorted() && costs.scopes.is_sorted());
        assert!(costs.accesses[4] < costs.fences[4] && costs.in_loops > 1);
        let barriers = &costs.barriers[MEETING];
        assert!(barriers.is_sorted() && barriers[0] > 0 && costs.call > barriers[3]);
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let text = models::MODELS
            .get_file("costs.txt")
            .and_then(|file| file.contents_utf8())
            .expect("shipped");
        let said = |new: &str| {
            let text = text.replace("loop           = 3", new);
            let all = read(&text).expect_err("malformed");
            (all[0].message.clone(), text[all[0].span.range()].to_owned())
        };
        assert_eq!(said("loop = 1.5").1, "loop = 1.5");
        assert!(said("loops = 3").0.contains("no cost of `loops`"));
        assert!(said("loop 3").0.contains("expected `NAME = NUMBER`"));
        assert!(said("loop = 3\nloop = 4").0.contains("occurs twice"));
        assert!(said("").0.contains("without loop"));
        assert!(said("fence relaxed = 3").0.contains("no cost of"));
    }
}
