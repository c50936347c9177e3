//! The rules of a model beside races, as far as a run shows that they hold in every execution.
//!
//! A run shows the preconditions of its own operations. A *doubt* is a rule that another execution
//! might break, or that a run does not check.
//!
//! # Sources
//! - The flag `undefined` of `models/ptx.cat` and `models/cuda-base.cat`, clause by clause:
//!   [`SteadyRun::undoubted`] says how each is met.

use super::{ObjectPhase, SteadyRun};
use program::dialect::Convergence;
use program::mbarrier::{MOST_ARRIVALS, arrivals};
use program::{BinOp, Expr, Op, Scope, TENSOR_TAGS, Tag, ThreadId, Update};

/// The tags of operations with rules of their own.
const OTHERS: [Tag; 12] = [
    Tag::LaunchControl,
    Tag::CancelRefused,
    Tag::LaunchDependents,
    Tag::GridWait,
    Tag::OtherCta,
    Tag::Alias,
    Tag::TensormapProxy,
    Tag::Surface,
    Tag::Texture,
    Tag::Wgmma,
    Tag::TensorCore,
    Tag::Ends,
];

/// Whether an operation on an object adds to the bytes that a phase expects, and does no more.
fn expects_bytes(op: &Op) -> bool {
    let Op::Rmw {
        update: Update::When { new, .. },
        ..
    } = op
    else {
        return false;
    };
    let Expr::Select(_, _, word) = new else {
        return false;
    };
    matches!(&**word, Expr::Bin(BinOp::Add, _, old, _) if matches!(**old, Expr::Reg(_)))
}

impl SteadyRun<'_> {
    /// Notes that an operation may break a rule in another execution.
    pub(super) fn doubt(&mut self, t: usize, at: usize, why: &'static str) {
        self.doubt.get_or_insert((t, at, why));
    }

    /// Notes an ordinary access, if it is to an mbarrier object.
    pub(super) fn doubt_object(&mut self, t: usize, at: usize) {
        let address = self.instr(t, at).op.address();
        let address = address.and_then(|addr| self.eval(t, addr));
        let copy = address.and_then(|from| self.memory.copy(from, from + 1));
        if copy.is_some_and(|(copy, _)| copy.has_mbarriers) {
            self.doubt(t, at, "an ordinary access to an mbarrier object");
        }
    }

    /// Notes that a thread comes to a barrier or a meeting.
    pub(super) fn takes_turn(&mut self, t: usize, at: usize, domain: Scope) {
        self.turns[t].push((domain, at));
    }

    /// An operation on an object meets its precondition in this run. It does so in each order of
    /// the operations of its phase, if it is an arrival that may be the last one.
    pub(super) fn may_be_last(&mut self, t: usize, at: usize, old: i64, of: ObjectPhase) {
        self.expected.retain(|(expects, _)| *expects != of);
        let Op::Rmw {
            dst: Some(dst),
            update: Update::When { cond, new },
            ..
        } = &self.instr(t, at).op
        else {
            return;
        };
        let count = arrivals(new).and_then(|count| self.eval(t, count));
        let last = count.map(|count| old & !MOST_ARRIVALS | count);
        let may = last.and_then(|word| self.eval_with(t, cond, Some((*dst, word))));
        if may != Some(1) {
            self.doubt(t, at, "a precondition that depends on other threads");
        }
    }

    /// An operation on an object that is no arrival. One that expects bytes is in its phase in
    /// every execution if its thread arrives in that phase afterwards.
    pub(super) fn expects(&mut self, t: usize, at: usize, of: ObjectPhase) {
        match expects_bytes(&self.instr(t, at).op) {
            true => self.expected.push((of, at)),
            false => self.doubt(t, at, "an operation of a phase that others may end"),
        }
    }

    /// Whether the run shows that no execution is undefined, given that it has no race and no wait
    /// without end; else the reason.
    ///
    /// - *Misuse* and *early arrivals*: the run ends at one. Each arrival is in one phase, and each
    ///   wait sees one phase, so other executions have the same words up to the order of arrivals.
    /// - *Divergence*: threads that have to come together have come to the same barriers.
    /// - *Unlike counts*, turns: a run gives them up. Clusters, too, so that nothing is remote, and
    ///   second addresses of memory.
    /// - *Copies in flight*, and two of one group: they are races of the run.
    /// - Other clauses speak of operations with a tag of [`OTHERS`].
    pub(in super::super) fn undoubted(&self) -> Result<(), String> {
        let others = |(t, at): (usize, usize), why: &str| {
            let instr = self.instr(t, at);
            Err(format!("`{}` (line {}), {why}", instr.text, instr.line))
        };
        if let Some((of, at)) = self.expected.first() {
            return others((of.thread, *at), "in a phase that others may end");
        }
        if let Some((t, at, why)) = self.doubt {
            return others((t, at), why);
        }
        for (t, at, instr) in self.program.instrs() {
            let has_rules = instr.op.has_any(&OTHERS) || instr.op.has_any(&TENSOR_TAGS);
            if instr.tile.is_some() || has_rules {
                return others((usize::from(t.0), at), "an operation with other rules");
            }
        }
        match self.astray() {
            Some(site) => others(site, "threads that have to meet take different ways"),
            None => Ok(()),
        }
    }

    /// A barrier or a meeting to which the threads of a group do not come alike.
    fn astray(&self) -> Option<(usize, usize)> {
        let of_blocks = self.program.dialect.row().convergence != Convergence::Aligned;
        (0..self.turns.len()).find_map(|t| {
            let first = |scope: Scope| self.mates[&scope][t].first().copied().unwrap_or(t);
            let of_block = |u: usize| {
                let all = self.turns[u].iter().copied();
                all.filter(|(domain, _)| *domain != Scope::Warp)
                    .collect::<Vec<_>>()
            };
            let warp = first(Scope::Warp);
            let block = first(Scope::Cta);
            let is_astray = self.has_code_of(t, warp) && self.turns[t] != self.turns[warp]
                || of_blocks && of_block(t) != of_block(block);
            let turn = self.turns[t].first().or(self.turns[warp].first());
            let turn = turn.or(self.turns[block].first());
            is_astray.then(|| (t, turn.map_or(0, |turn| turn.1)))
        })
    }

    /// Whether two threads have the same code. No rule binds the turns of others.
    fn has_code_of(&self, t: usize, u: usize) -> bool {
        let span = |t: usize| {
            let thread = self.program.thread(ThreadId(t as u16));
            thread.code.first().map(|instr| instr.span)
        };
        span(t) == span(u)
    }
}
