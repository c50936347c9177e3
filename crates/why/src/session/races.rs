//! Finds all racing pairs, and sorts out those that are no race if two writes of one value are
//! benign.
//!
//! # Invariants
//! - Each pair of lines is reported once, for whatever threads and executions.
//! - Two writes are spared only if no consistent execution has two at their lines, in one place of
//!   memory, that store different values ([`engine::skeleton::rivals`]). If that is undecided, so
//!   is the answer.

use std::collections::BTreeSet;

use super::Session;
use cat::rel::Rel;
use engine::engines::Checked;
use engine::facts::Facts;
use engine::fault;
use engine::limits::Halt;
use engine::query::{Deadline, Query};
use engine::skeleton::rivals::{Spot, spots};
use verdict::{RacingPair, RacingPairs};

/// The known races of a task.
pub(super) struct Races<'q> {
    /// The query for another one.
    query: Query<'q>,
    /// Pairs of lines reported already.
    told: BTreeSet<[Spot; 2]>,
    /// Lines of writes that are benign, and of writes that are not.
    benign: BTreeSet<[Spot; 2]>,
    differing: BTreeSet<[Spot; 2]>,
    /// Pairs of writes that are no race.
    no_race: Option<Rel>,
    /// The racing pairs found.
    pairs: Vec<RacingPair>,
}

impl<'q> Races<'q> {
    /// Without known races; the query asks for a race.
    pub(super) fn of(query: &Query<'q>) -> Self {
        Races {
            query: query.clone(),
            told: BTreeSet::new(),
            benign: BTreeSet::new(),
            differing: BTreeSet::new(),
            no_race: None,
            pairs: Vec::new(),
        }
    }

    /// Excludes reported pairs and benign pairs from the query.
    fn spare(&mut self, facts: &Facts<'_>) {
        let told = |i: usize, j: usize| self.told.contains(&spots(&facts.sk, i, j));
        let told = Rel::from_fn(facts.sk.len(), told);
        self.query.spared = Some(self.no_race.iter().fold(told, |all, more| all.or(more)));
    }

    /// The query for a race that is not known.
    pub(super) fn query(&self) -> &Query<'q> {
        &self.query
    }

    /// Pairs that are no race.
    pub(super) fn spared(&self) -> Option<&Rel> {
        self.no_race.as_ref()
    }
}

impl<'a> Session<'a> {
    /// An execution with a race between lines that were not reported, and the engine that found it.
    /// Its pairs are added.
    pub(super) fn race_between(
        &mut self,
        facts: &Facts<'a>,
        bound: u32,
        races: &mut Races<'a>,
        deadline: Deadline,
    ) -> Result<(Option<Box<Checked>>, &'static str), Halt> {
        loop {
            let (said, engine) = self.ask(bound, &races.query, deadline);
            let Some(found) = said.found()? else {
                return Ok((None, engine));
            };
            let before = races.pairs.len();
            let benign = races.benign.len();
            for (i, j) in fault::pairs(
                facts,
                &found.1,
                races.query.flags.as_deref().unwrap_or_default(),
            ) {
                let at = spots(&facts.sk, i, j);
                if self.is_benign(facts, bound, i, j, races, deadline)? || !races.told.insert(at) {
                    continue;
                }
                races.pairs.push(fault::racing(facts, &found.0, i, j));
            }
            if races.benign.len() > benign {
                races.no_race = Some(Rel::from_fn(facts.sk.len(), |i, j| {
                    both_write(facts, i, j) && races.benign.contains(&spots(&facts.sk, i, j))
                }));
            }
            // A flag that marks no pair is reported alone.
            if races.pairs.len() > before || races.benign.len() == benign {
                return Ok((Some(found), engine));
            }
            races.spare(facts);
        }
    }

    /// Whether two racing events are writes of one value, and such pairs are benign.
    fn is_benign(
        &mut self,
        facts: &Facts<'a>,
        bound: u32,
        i: usize,
        j: usize,
        races: &mut Races<'a>,
        deadline: Deadline,
    ) -> Result<bool, Halt> {
        let at = spots(&facts.sk, i, j);
        let Some(rivals) = facts.rivals.as_ref().filter(|_| both_write(facts, i, j)) else {
            return Ok(false);
        };
        if races.benign.contains(&at) || races.differing.contains(&at) {
            return Ok(races.benign.contains(&at));
        }
        // Memory that nothing has written has one value in an engine, and any value in a machine.
        let unknown = (0..facts.sk.events.len()).filter(|&e| {
            let event = &facts.sk.events[e];
            event
                .thread
                .is_some_and(|t| facts.unwritten.unknowns.writes((t, event.instr)))
        });
        let mut benign = !rivals.rest_on_values(at)
            || !unknown
                .map(|e| spots(&facts.sk, e, e)[0])
                .any(|spot| at.contains(&spot));
        for &differ in rivals.differ(at) {
            let query = Query {
                flags: None,
                spared: None,
                require: differ,
                ..races.query.clone()
            };
            if !benign {
                break;
            }
            benign = self.ask(bound, &query, deadline).0.found()?.is_none();
        }
        if benign {
            &mut races.benign
        } else {
            &mut races.differing
        }
        .insert(at);
        Ok(benign)
    }

    /// All racing pairs of lines: those found already, then those of executions with a race between
    /// others.
    pub(super) fn all_races(
        &mut self,
        facts: &Facts<'a>,
        bound: u32,
        mut races: Races<'a>,
        deadline: Deadline,
    ) -> Result<RacingPairs, Halt> {
        loop {
            let known = races.pairs.len();
            races.spare(facts);
            match self.race_between(facts, bound, &mut races, deadline) {
                Ok((None, _)) => {
                    return Ok(RacingPairs {
                        pairs: races.pairs,
                        complete: true,
                    });
                }
                Ok((Some(_), _)) if races.pairs.len() > known => {}
                Err(Halt::Defect(law)) => return Err(Halt::Defect(law)),
                Ok(_) | Err(_) => {
                    return Ok(RacingPairs {
                        pairs: races.pairs,
                        complete: false,
                    });
                }
            }
        }
    }
}

fn both_write(facts: &Facts<'_>, i: usize, j: usize) -> bool {
    facts.sk.events[i].is_write() && facts.sk.events[j].is_write()
}
