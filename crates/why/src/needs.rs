//! Searches the parts of a program that forbid an outcome, and the missing parts that would
//! forbid an allowed one: changes the program and decides it again.
//!
//! # Invariants
//! - Every program that the results speak of was decided by the engine of the session.

use std::time::{Duration, Instant};

use engine::skeleton::signature::{self, BaseRole};
use program::Op;
use program::edits::Change;
use program::litmus::{LitmusTest, Prop};
use program::options::Setting;
use verdict::{Answer, Need, Needs, Reason, Verdict};

use crate::knobs::{self, Around, Changes, Kind, Knob, Spot, Version, WEAK};
use crate::search::{GivenUp, Search, of_test};
use crate::session::Session;
use crate::written::Source;

/// At most so many programs are decided for one explanation.
const DECISIONS: usize = 400;

/// What could forbid an outcome: wider scopes, one proxy, stronger orders, one place, fences.
const STRONGER: &[Kind] = &[
    knobs::scopes,
    knobs::proxies,
    knobs::flags,
    knobs::strengths,
    knobs::places,
    knobs::proxy_fences,
    knobs::fences_before,
];

/// Whether a program forbids the outcome.
fn forbids(
    session: &Session<'_>,
    negate: bool,
) -> impl FnMut(&LitmusTest, Option<Duration>) -> Result<bool, GivenUp> {
    move |test, left| {
        let Some(judged) = session.judged(test) else {
            return Ok(false);
        };
        let mut changed = session.of(&judged, left);
        match changed.reachability(None, negate).verdict {
            Verdict::Forbidden => Ok(ends(session, test, &mut changed, left)),
            Verdict::Allowed => Ok(false),
            Verdict::Undecided(reason) => Err(GivenUp(reason)),
            other => Err(GivenUp(Reason::Engine(format!(
                "`{}` is not an answer about an outcome",
                other.word()
            )))),
        }
    }
}

/// Whether some execution of a program ends, if it waits in other places than that of the session:
/// one in which threads wait for ever forbids everything. Nor may what was put in be undefined
/// where it stands, or have a fair execution that hangs, unless there was one before.
pub(crate) fn ends(
    session: &Session<'_>,
    test: &LitmusTest,
    changed: &mut Session<'_>,
    left: Option<Duration>,
) -> bool {
    fn waits(test: &LitmusTest) -> usize {
        test.program
            .instrs()
            .filter(|i| i.2.op.barrier().is_some() || matches!(&i.2.op, Op::Call(_)))
            .count()
    }
    let lanes = |test: &LitmusTest| -> Option<Vec<_>> {
        test.program
            .host
            .as_ref()
            .map(|host| host.commands.iter().map(|c| c.lane).collect())
    };
    if waits(test) <= waits(session.written()) && lanes(test) == lanes(session.written()) {
        return true;
    }
    let judged = changed.test();
    // Without a condition, the question is of the program that is prepared already.
    let runs = match judged.condition {
        None => runs(changed),
        Some(_) => {
            let all = LitmusTest {
                condition: Some(Prop::And(Vec::new())),
                ..judged.clone()
            };
            runs(&mut session.of(&all, left))
        }
    };
    runs && (!session.hangs(judged, left) || session.hangs(session.test(), left))
}

/// Whether a program has an execution that ends, and is defined.
fn runs(session: &mut Session<'_>) -> bool {
    let is_defined = |answer: Answer| answer.verdict == Verdict::Defined;
    session.reachability(None, false).verdict == Verdict::Allowed
        && session.undefined().is_none_or(is_defined)
}

/// What of its program a forbidden outcome rests on: everything that orders it (fences, barriers,
/// orders, dependencies, scopes) is turned down. `value` and `path` say what stores write, and
/// which way branches go, in an execution that has the outcome.
pub(crate) fn needs(
    session: &Session<'_>,
    negate: bool,
    value: &dyn Fn(Spot) -> Option<i64>,
    path: &dyn Fn(Spot) -> Option<bool>,
    deadline: Option<Instant>,
) -> Needs {
    let program = &session.test().program;
    let around = Around::new(program);
    let dependencies = match signature::speaks_of(session.model(), BaseRole::Dependency) {
        true => knobs::dependencies(program, value, path),
        false => Vec::new(),
    };
    let mut kinds: Vec<Vec<Knob>> = [knobs::fences, knobs::barriers, knobs::orders]
        .map(|kind: Kind| kind(&around))
        .into();
    kinds.push(knobs::scopes(&around));
    fn down(knobs: Vec<Knob>) -> impl Iterator<Item = Knob> {
        knobs.into_iter().filter_map(Knob::down)
    }
    let mut knobs: Vec<Knob> = kinds.into_iter().flat_map(down).collect();
    // A dependency is taken away by what one execution writes, and which way it goes: to go on from
    // there would say of other things that they can be spared which others with the outcome rest
    // on.
    let firm = knobs.len();
    knobs.extend(down(dependencies));
    let test = session.test();
    let decides = of_test(test, forbids(session, negate));
    let mut search = Search::new(test, knobs, true, DECISIONS, deadline, decides);
    let top = search.top();
    let lowered = search.least(top.clone(), firm).and_then(|setting| {
        #[cfg(test)]
        session.claim(claims(&search, &setting, 0..firm));
        search.lowered(setting, firm..top.len())
    });
    let setting = match lowered {
        Ok(setting) => setting,
        Err(GivenUp(reason)) => {
            return Needs {
                needed: Vec::new(),
                spare: Vec::new(),
                given_up: Some(reason),
            };
        }
    };
    #[cfg(test)]
    session.claim(claims(&search, &setting, firm..top.len()));
    let needed = search
        .turned(&setting)
        .flat_map(|(knob, at)| knob.needs(session.test(), at, at - 1))
        .collect();
    let may_be_spare =
        |knob: &Knob| !matches!(knob.change(0), Some(Change::Value(_) | Change::Path(_)));
    let levels = search.knobs.iter().zip(&setting).zip(&top);
    let mut spare: Vec<Need> = levels
        .filter(|((knob, at), top)| at < top && may_be_spare(knob))
        .flat_map(|((knob, &at), &top)| knob.needs(session.test(), top, at))
        .collect();
    // What is not there, or weak, has no scope to speak of.
    fn gone(n: &Need) -> bool {
        n.instead.is_empty() || n.instead == WEAK
    }
    let without: Vec<Need> = spare.iter().filter(|n| gone(n)).cloned().collect();
    spare.retain(|n| {
        gone(n)
            || !without
                .iter()
                .any(|w| (&w.thread, &w.line, &w.text) == (&n.thread, &n.line, &n.text))
    });
    Needs {
        needed,
        spare,
        given_up: None,
    }
}

/// Changes that forbid an allowed outcome, and the program that has them.
pub(crate) struct Forbidding {
    /// The changes in words.
    pub(crate) needs: Vec<Need>,
    pub(crate) changes: Changes,
    pub(crate) version: Version,
    /// The number of programs decided.
    pub(crate) decided: usize,
}

/// Looks for the fewest changes that forbid an outcome: wider scopes, one proxy, stronger orders,
/// one place, fences.
///
/// # Errors
/// Why there are none.
pub(crate) fn forbidding(
    session: &Session<'_>,
    negate: bool,
    deadline: Option<Instant>,
) -> Result<Forbidding, String> {
    let written = session.written();
    let around = Around::new(&written.program);
    let knobs: Vec<Knob> = match Source::new(written) {
        None => {
            let knobs = STRONGER
                .iter()
                .flat_map(|kind| kind(&around))
                .filter_map(Knob::up);
            knobs.filter_map(|knob| knob.writable(written)).collect()
        }
        Some(source) => {
            let wide = around.wide();
            let places = knobs::places(&around)
                .into_iter()
                .filter_map(Knob::up)
                .collect();
            let words = [source.scopes(wide), source.flags(), source.orders()];
            let more = [
                source.fences(wide),
                source.accesses(wide),
                source.barriers().0,
                places,
            ];
            words.into_iter().chain(more).flatten().collect()
        }
    };
    let decides = of_test(written, forbids(session, negate));
    let mut search =
        Search::new(written, knobs, false, DECISIONS, deadline, decides).past_undecided();
    // Another place of a thread is no change of the code: only where nothing else helps.
    let code: Vec<usize> = (0..search.knobs.len())
        .filter(|&i| !search.knobs[i].is_place())
        .collect();
    let found = match search.one_two_or_all_of(&code) {
        Ok(None) if code.len() < search.knobs.len() => search.one_two_or_all(),
        found => found,
    };
    let found = found.and_then(|found| match found {
        Some(setting) => search.least(setting, search.knobs.len()).map(Some),
        None => Ok(None),
    });
    match found {
        Ok(Some(setting)) => {
            #[cfg(test)]
            session.claim(claims(&search, &setting, 0..setting.len()));
            let needs = search
                .turned(&setting)
                .flat_map(|(knob, at)| knob.needs(written, 0, at))
                .collect();
            let changes = search.changes(&setting);
            let version = changes
                .of(written)
                .ok_or("the changed program cannot be written as a test")?;
            Ok(Forbidding {
                needs,
                changes,
                version,
                decided: search.decided(),
            })
        }
        Ok(None) => Err(match search.open {
            Some(reason) => {
                format!("the search for a change that forbids it was given up: {reason}")
            }
            None => {
                "no wider scope, stronger order, added fence or other place of a thread forbids it"
                    .into()
            }
        }),
        Err(GivenUp(reason)) => Err(format!(
            "the search for a change that forbids it was given up: {reason}"
        )),
    }
}

/// What forbids an outcome in the reading that a setting of the session chooses: nothing, or the
/// fewest proxy fences. `None`: they do not, or the program, with all such fences, has nothing that
/// the reading speaks of.
pub(crate) fn fence_forbidding(
    session: &Session<'_>,
    negate: bool,
    setting: Setting,
    deadline: Option<Instant>,
) -> Option<Forbidding> {
    let written = session.written();
    let knobs = match Source::new(written) {
        None => knobs::proxy_fences_anywhere(&Around::new(&written.program)),
        Some(_) => return None,
    };
    let knobs: Vec<Knob> = knobs
        .into_iter()
        .filter_map(Knob::up)
        .filter_map(|knob| knob.writable(written))
        .collect();
    let decides = of_test(written, forbids(session, negate));
    let mut search =
        Search::new(written, knobs, false, DECISIONS, deadline, decides).past_undecided();
    let top = search.top();
    let reading = setting.row().reading.as_ref()?;
    if !reading.bears_on(&search.version(&top)?.test.program) {
        return None;
    }
    // It may be that nothing has to be changed.
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let as_written = forbids(session, negate)(written, left).ok()?;
    let one = |i: usize| {
        (0..top.len())
            .map(|at| if at == i { top[at] } else { 0 })
            .collect()
    };
    let settings: Vec<_> = (0..top.len()).map(one).chain([top.clone()]).collect();
    let found = match as_written {
        true => vec![0; top.len()],
        false => {
            let found = search.first_of(settings).ok()??;
            search.least(found, top.len()).ok()?
        }
    };
    let needs = search
        .turned(&found)
        .flat_map(|(knob, at)| knob.needs(written, 0, at))
        .collect();
    let changes = search.changes(&found);
    Some(Forbidding {
        needs,
        version: changes.of(written)?,
        changes,
        decided: search.decided(),
    })
}

/// For the tests: the programs that a setting speaks of, and whether each forbids the outcome: the
/// one of the setting does, and none that has less in one of these places.
#[cfg(test)]
fn claims<D: FnMut(&Changes, Option<Duration>) -> Result<bool, GivenUp>>(
    search: &Search<'_, D>,
    setting: &[usize],
    places: std::ops::Range<usize>,
) -> Vec<(LitmusTest, bool)> {
    let setting = setting.to_vec();
    let less = places.filter(|&i| setting[i] > 0).map(|i| {
        let mut lower = setting.clone();
        lower[i] -= 1;
        (lower, false)
    });
    let all = std::iter::once((setting.clone(), true)).chain(less);
    all.filter_map(|(setting, forbids)| Some((search.version(&setting)?.test, forbids)))
        .collect()
}
