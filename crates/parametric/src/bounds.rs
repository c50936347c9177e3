//! Questions about one thread: can an access lie outside of its object, where the size is known.
//!
//! # Invariants
//! - An access that may lie outside changes no answer about races by itself: an execution shows it,
//!   or the answer names it as an assumption.
//! - An index that depends on values of memory is not said to be wrong: those values are inputs.

use program::{CmpOp, Ty};

use crate::exec::PlaceAt;
use crate::pairs::{PairQuestion, SymbolicRun};
use crate::term::Origin;

/// Whether the range of an offset shows that the access lies inside of an object of this size.
pub(crate) fn is_inside(run: &SymbolicRun, place: &PlaceAt, bytes: u64) -> bool {
    let (least, most) = run.terms.range(place.offset);
    least >= 0 && most + i128::from(place.bytes) <= i128::from(bytes)
}

/// Whether a thread comes to an access that lies outside of so many bytes. Both threads of the
/// question are that thread.
pub(crate) fn outside(run: &mut SymbolicRun, place: &PlaceAt, bytes: u64) -> PairQuestion {
    let setting = &run.setting;
    let mut conditions = [&setting.facts[..], &setting.of_thread, &place.facts].concat();
    conditions.push(place.guard);
    let terms = &mut run.terms;
    let zero = terms.int(0);
    let last = terms.int(bytes as i64 - i64::from(place.bytes));
    let before = terms.cmp(CmpOp::Lt, Ty::WORD, place.offset, zero);
    let behind = terms.cmp(CmpOp::Gt, Ty::WORD, place.offset, last);
    conditions.push(terms.or(vec![before, behind]));
    let places = setting.places.clone();
    PairQuestion {
        conditions,
        common: Vec::new(),
        places: [places.clone(), places],
        unordered: None,
        iterations: Vec::new(),
        offset: None,
    }
}

/// Whether a question depends on more than the place of the thread and numbers that are given.
pub(crate) fn is_of_inputs(run: &SymbolicRun, question: &PairQuestion) -> bool {
    let known = [Origin::Place, Origin::Iteration, Origin::Last];
    let all = run.terms.symbols_in(&question.conditions);
    all.iter()
        .any(|(_, id)| !known.contains(&run.terms.symbol(*id).origin))
}
