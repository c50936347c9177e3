//! What would make a racy program race-free: wider scopes, stronger orders, fence flags, atomic accesses.
//!
//! The operations of a program have [`knobs`]; a setting of them is a program of its own, which is decided anew. Nothing
//! is concluded from the racy execution alone. One knob is tried, then two, then all together; a setting that helps is
//! then turned down, knob by knob, as far as it goes on helping. Only where no order and no scope helps is plain memory
//! made atomic.
//!
//! # Invariants
//! - A setting that is handed out was decided to be race-free, by the engine of the session.
//! - Which changes are found depends on the program alone, unless time runs out; then there are none.

pub(super) mod knobs;

use std::collections::HashMap;
use std::time::Instant;

use self::knobs::Knobs;
use super::search::{Decides, GivenUp, Setting, lowered, one_two_or_all};
use super::{Session, session};
use engine::task::Task;
use program::LocId;
use verdict::{Answer, Fault, Remedy, Verdict};

/// At most so many programs are decided before, and as many after memory is made atomic.
const DECISIONS: usize = 300;

/// A search for what helps.
struct Search<'s, 'a> {
    session: &'s Session<'a>,
    knobs: Knobs<'a>,
    known: HashMap<Setting, bool>,
    deadline: Option<Instant>,
    /// The last race that was found.
    race: Option<Box<Fault>>,
    /// Some program that was tried is left to implementations.
    left_open: bool,
}

/// Looks for what removes the races of a test; `first` is one of them, found in the program as it is.
pub(super) fn search(session: &Session<'_>, task: &Task<'_>, first: &Fault, deadline: Option<Instant>) -> Remedy {
    let knobs = Knobs::new(session.test(), task);
    let mut search = Search { session, knobs, known: HashMap::new(), deadline, race: None, left_open: false };
    match search.run(first) {
        Ok(remedy) => remedy,
        Err(GivenUp(reason)) => Remedy::Undecided(reason),
    }
}

impl Search<'_, '_> {
    fn run(&mut self, first: &Fault) -> Result<Remedy, GivenUp> {
        let top = self.knobs.top();
        let found = match one_two_or_all(self, &top)? {
            Some(setting) => Some(setting),
            None => self.atomic(first)?,
        };
        if let Some(setting) = found {
            let order = self.knobs.in_order_of_lowering();
            let setting = lowered(self, setting, &order)?;
            return Ok(Remedy::Changes(self.knobs.changes(&setting, first)));
        }
        Ok(Remedy::None(match self.knobs.nothing_orders() {
            _ if self.left_open => {
                "they belong to commands that nothing orders, and what atomic operations of several kernel instances do to one \
                 buffer is left to implementations"
                    .into()
            }
            true => "the program has no atomic operation and no fence that could order them".into(),
            false => "they race even with every order seq_cst and every scope as wide as it can be".into(),
        }))
    }

    /// A setting that helps where orders and scopes do not: the memory that the accesses race for is atomic, and then,
    /// as long as there are races for other memory, more of it.
    fn atomic(&mut self, first: &Fault) -> Result<Option<Setting>, GivenUp> {
        let ordered = self.knobs.top().len();
        let mut made: Vec<LocId> = Vec::new();
        let mut object = first.object.clone();
        while let Some(loc) = object.as_deref().and_then(|name| self.knobs.plain_location(name)) {
            if made.contains(&loc) {
                break;
            }
            made.push(loc);
            self.knobs.add_atomic(loc);
            self.known.clear();
            let top = self.knobs.top();
            let alone = top.iter().enumerate().map(|(i, &top)| if i < ordered { 0 } else { top }).collect();
            for setting in [alone, top] {
                if self.decide(&setting)? {
                    return Ok(Some(setting));
                }
            }
            object = self.race.as_ref().and_then(|race| race.object.clone());
        }
        Ok(None)
    }
}

impl Decides for Search<'_, '_> {
    /// Whether the program of a setting is race-free.
    fn decide(&mut self, setting: &Setting) -> Result<bool, GivenUp> {
        if let Some(&known) = self.known.get(setting) {
            return Ok(known);
        }
        let left = self.deadline.map(|d| d.saturating_duration_since(Instant::now()));
        if self.known.len() >= DECISIONS || left.is_some_and(|left| left.is_zero()) {
            return Err(GivenUp("there are too many changes to try".into()));
        }
        let test = self.knobs.turned(setting);
        let free = match self.session.of(&test, left).race() {
            Some(Answer { verdict: Verdict::RaceFree, .. }) => true,
            Some(Answer { verdict: Verdict::Racy, fault, .. }) => {
                self.race = fault;
                false
            }
            // That helps no program that has to work everywhere.
            Some(Answer { verdict: Verdict::Undecided(reason), .. }) if session::is_left_open(&reason) => {
                self.left_open = true;
                false
            }
            Some(Answer { verdict: Verdict::Undecided(reason), .. }) => return Err(GivenUp(reason)),
            _ => return Err(GivenUp("the model knows no races".into())),
        };
        self.known.insert(setting.clone(), free);
        Ok(free)
    }
}
