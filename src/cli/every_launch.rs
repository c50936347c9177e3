//! Asks the engine for every launch about a kernel, and joins its answer with the exact one about
//! the launch that is given.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::plan::{Question, Unit};
use super::settings::Settings;
use front::litmus::form::{self, Form, forms};
use parametric::decide::Apart;
use parametric::pairs::Together;
use parametric::{KernelInput, KernelLimits, KernelProperty, KernelVerdict, Sizes, decide_for};
use program::Dialect;
use program::litmus::{KernelLaunch, LaunchOrigin, LitmusTest};
use verdict::{Change, Launches, Need, PARAMETRIC, Reach, Reason, Remedy, Verdict, Where};
use why::Ask;

/// The time for a proof about a launch; to extend it to every launch; and to look for a race.
const PROOF: Duration = Duration::from_secs(4);
const EXTENSION: Duration = Duration::from_secs(2);
const SEARCH: Duration = Duration::from_secs(10);

/// A kernel of a source file for launches of any size.
pub(super) struct EveryLaunch<'a> {
    pub(super) test: &'a LitmusTest,
    /// The kernel with the place of a thread in registers; the reason if it has none.
    pub(super) form: Result<Form, String>,
    /// The time for one question, and the start of the current one.
    pub(super) timeout: Option<Duration>,
    pub(super) start: Cell<Instant>,
}

/// What a proof left open.
pub(super) struct Open {
    pub(super) why: String,
    pub(super) apart: Option<Box<Apart>>,
}

impl<'a> EveryLaunch<'a> {
    /// The kernel of a unit; `None`: the unit asks of one launch alone.
    pub(super) fn of(unit: &'a Unit<'_>, settings: &Settings) -> Option<EveryLaunch<'a>> {
        let test = unit.source;
        // A program launches its kernels itself, and a form is that of the file's own code.
        let is_kernel =
            |l: &KernelLaunch| !matches!(l.by, LaunchOrigin::Main(_)) && l.compiler.is_none();
        if !is_plain(unit, settings) || !test.launch.as_ref().is_some_and(is_kernel) {
            return None;
        }
        Some(EveryLaunch::of_launch(test, settings.limits.timeout))
    }

    /// The kernel of a launch in a source file.
    pub(super) fn of_launch(test: &'a LitmusTest, timeout: Option<Duration>) -> EveryLaunch<'a> {
        let form = match form::of_source(test) {
            Ok(Some(form)) => Ok(form),
            Ok(None) => Err("a launch with clusters".to_owned()),
            Err(errors) => Err(errors.first().map_or(String::new(), |d| d.message.clone())),
        };
        EveryLaunch {
            test,
            form,
            timeout,
            start: Cell::new(Instant::now()),
        }
    }

    /// Whether the exact engines have a smaller launch than the given one.
    pub(super) fn is_smaller(&self) -> bool {
        self.test.launch.as_ref().is_some_and(|l| l.is_smaller)
    }

    /// Whether the launch has so many threads that deciding it exactly takes long.
    fn is_wide(&self) -> bool {
        let sizes = self
            .test
            .launch
            .as_ref()
            .map(|l| l.grid.iter().chain(&l.block));
        sizes.is_some_and(|all| all.product::<u32>() > 32)
    }

    /// Whether nothing but sizes is given.
    pub(super) fn has_open_arguments(&self) -> bool {
        let launch = self.test.launch.as_ref();
        launch.is_some_and(|l| l.by != LaunchOrigin::Choice && !l.given.has_arguments)
    }

    fn decide(
        &self,
        ask: &Ask,
        sizes: Sizes,
        time: Duration,
        tries: bool,
    ) -> Result<KernelVerdict, Open> {
        let form = self.form.as_ref().map_err(|why| Open {
            why: why.clone(),
            apart: None,
        })?;
        let kernel = KernelInput {
            form,
            name: &self.test.file.name,
            bytes: self.test.file.text.as_bytes(),
            source: self.test.launch.is_some().then_some(self.test),
        };
        let property = match ask {
            Ask::Race => KernelProperty::Race,
            _ => KernelProperty::Divergence,
        };
        let limits = KernelLimits {
            answer: time,
            tries,
            ..KernelLimits::default()
        };
        Ok(decide_for(kernel, property, sizes, &limits))
    }

    /// A part of the time limit, within the rest of it; `usual` without a limit.
    fn time(&self, usual: Duration, part: u32) -> Duration {
        part_of(self.timeout, self.start.get(), usual, part)
    }

    /// A proof for the launch that is given, or for every one.
    pub(super) fn proof(&self, ask: &Ask) -> Result<verdict::Answer, Open> {
        let form = self.form.as_ref().map_err(|why| Open {
            why: why.clone(),
            apart: None,
        })?;
        let sizes = given(self.test, form);
        let begun = Instant::now();
        let (proved, assumed) = match self.decide(ask, sizes, self.time(PROOF, 2), false)? {
            KernelVerdict::Never { proved, assumed } => (proved, assumed),
            KernelVerdict::Happens { apart, .. } | KernelVerdict::Tried { apart, .. } => {
                return Err(Open {
                    why: said(ask, &apart),
                    apart: Some(Box::new(apart)),
                });
            }
            KernelVerdict::Undecided { reason, apart } => {
                let why = apart.as_ref().map_or(reason, |apart| said(ask, apart));
                return Err(Open {
                    why,
                    apart: apart.map(Box::new),
                });
            }
        };
        // Where blocks are not told apart, one block is meant.
        let one = Sizes {
            grid: [Some(1); 3],
            ..Sizes::ANY
        };
        let is_one = sizes.grid.iter().flatten().product::<u64>() == 1;
        let wider = [Some(Sizes::ANY), is_one.then_some(one)];
        let mut answer = never(ask, proved.launches(), assumed);
        for wide in wider.into_iter().flatten() {
            let left = self.time(EXTENSION, 4).saturating_sub(begun.elapsed() / 4);
            match self.decide(ask, wide, left, false) {
                Ok(KernelVerdict::Never { proved, assumed }) => {
                    return Ok(never(ask, proved.launches(), assumed));
                }
                Ok(KernelVerdict::Undecided {
                    apart: Some(apart), ..
                }) => {
                    if let Some(reach) = &mut answer.reach {
                        reach.open = Some(said(ask, &apart));
                        reach.lines = Some(apart.lines);
                    }
                }
                _ => {}
            }
        }
        Ok(answer)
    }

    /// Looks for an execution of what a proof left open, in launches of the given size and smaller
    /// ones.
    pub(super) fn search(&self, ask: &Ask) -> (verdict::Answer, Option<LitmusTest>) {
        match &self.form {
            Ok(form) => self.tried(ask, given(self.test, form), self.time(SEARCH, 1)),
            Err(why) => {
                let (why, apart) = (why.clone(), None);
                (undecided(Open { why, apart }), None)
            }
        }
    }

    /// A proof for launches of some sizes, else an execution; with the execution, its test.
    pub(super) fn tried(
        &self,
        ask: &Ask,
        sizes: Sizes,
        time: Duration,
    ) -> (verdict::Answer, Option<LitmusTest>) {
        match self.decide(ask, sizes, time, true) {
            Err(open) => (undecided(open), None),
            Ok(KernelVerdict::Never { proved, assumed }) => {
                (never(ask, proved.launches(), assumed), None)
            }
            Ok(KernelVerdict::Happens {
                exact,
                test,
                apart,
                launch,
            }) => {
                let verdict = match ask {
                    Ask::Race if apart.leaves => exact.verdict.clone(),
                    Ask::Race => Verdict::Racy,
                    _ => Verdict::Divergent,
                };
                let mut answer = verdict::Answer {
                    verdict,
                    engine: PARAMETRIC,
                    ..*exact
                };
                if self.test.launch.is_none() {
                    let said = said(ask, &apart);
                    let remark = format!("{said}: an execution of {launch} shows it");
                    answer.remarks.push(remark);
                }
                if let (Some(fault), Ask::Race) = (&mut answer.fault, ask) {
                    let barrier = self.barrier(&apart, sizes);
                    fault.remedy = barrier.map(|found| Remedy::Changes(vec![found.change]));
                }
                (answer, Some(*test))
            }
            Ok(KernelVerdict::Tried { up_to, apart }) => {
                let mut answer = never(ask, Launches::Tried(up_to), Vec::new());
                if let Some(reach) = &mut answer.reach {
                    reach.open = Some(said(ask, &apart));
                    reach.lines = Some(apart.lines);
                }
                (answer, None)
            }
            Ok(KernelVerdict::Undecided { reason, apart }) => {
                let (why, apart) = (reason, apart.map(Box::new));
                (undecided(Open { why, apart }), None)
            }
        }
    }
}

/// A part of a time limit from `start` on, within the rest of it; `usual` without a limit.
fn part_of(limit: Option<Duration>, start: Instant, usual: Duration, part: u32) -> Duration {
    limit.map_or(usual, |limit| {
        let left = limit.saturating_sub(start.elapsed());
        left.min(limit / part)
    })
}

/// The answer where neither a proof was found nor an execution.
fn undecided(open: Open) -> verdict::Answer {
    let verdict = Verdict::Undecided(Reason::NotProved(open.why));
    let mut answer = verdict::Answer::new(verdict, PARAMETRIC);
    answer.reach = open.apart.map(|apart| {
        Box::new(Reach {
            launches: Launches::One,
            assumed: Vec::new(),
            lines: Some(apart.lines),
            open: None,
        })
    });
    answer
}

/// A proof about the launch of a TOML kernel that the exact engines did not decide.
pub(super) fn in_place_of(
    unit: &Unit<'_>,
    settings: &Settings,
    question: &Question,
    start: Instant,
    exact: verdict::Answer,
) -> verdict::Answer {
    fn given_up(reason: &Reason) -> bool {
        reason.is_size() || *reason == Reason::Time
    }
    let test = unit.source;
    let is_open = exact.verdict.reason().is_some_and(given_up) && exact.defect.is_none();
    let asked = matches!(question.ask, Ask::Race | Ask::Divergence) && test.launch.is_none();
    if !is_open || !asked || !is_plain(unit, settings) {
        return exact;
    }
    let bytes = test.file.text.as_bytes();
    let all = forms(&test.file.name, bytes).unwrap_or_default();
    let Some(form) = all.into_iter().find(|form| form.test.name == test.name) else {
        return exact;
    };
    let sizes = Sizes::given(&form);
    let kernel = EveryLaunch {
        test,
        form: Ok(form),
        timeout: settings.limits.timeout,
        start: Cell::new(start),
    };
    match kernel.decide(&question.ask, sizes, kernel.time(PROOF, 2), false) {
        Ok(KernelVerdict::Never { proved, assumed }) => {
            never(&question.ask, proved.launches(), assumed)
        }
        Ok(KernelVerdict::Happens {
            exact: shown,
            apart,
            ..
        }) if apart.leaves => *shown,
        _ => exact,
    }
}

/// Whether nothing but the model of the dialect is asked, by no engine in particular.
pub(super) fn is_plain(unit: &Unit<'_>, settings: &Settings) -> bool {
    let plain = settings.set.is_empty() && settings.engine == engine::Engine::Auto;
    settings.every_launch && plain && unit.refused.is_none() && unit.asks_own_model()
}

/// A barrier of a block with which a kernel is race-free, and its threads come to all barriers
/// together.
pub(super) struct BarrierRepair {
    /// The barrier.
    pub(super) change: Change,
    /// Its statement.
    pub(super) barrier: &'static str,
    /// On which side of its line it is.
    pub(super) side: &'static str,
    /// The file with it.
    pub(super) text: String,
    /// How far that is proved.
    pub(super) proved: Launches,
}

impl EveryLaunch<'_> {
    /// A barrier that mends a race which an execution shows.
    pub(super) fn repair(&self) -> Option<BarrierRepair> {
        let form = self.form.as_ref().ok()?;
        let sizes = given(self.test, form);
        match self.decide(&Ask::Race, sizes, self.time(SEARCH, 2), true) {
            Ok(KernelVerdict::Happens { apart, .. }) if !apart.leaves => {
                self.barrier(&apart, sizes)
            }
            _ => None,
        }
    }

    /// A barrier of a block between two accesses that mends their race in launches of some sizes.
    fn barrier(&self, apart: &Apart, sizes: Sizes) -> Option<BarrierRepair> {
        if apart.together == Together::Grid {
            return None;
        }
        let barrier = match self.test.program.dialect {
            Dialect::OpenCl => "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
            Dialect::Ptx => "bar.sync 0;",
            _ => "__syncthreads();",
        };
        let [a, b] = &apart.lines;
        let places = [
            (a, Where::After),
            (b, Where::Before),
            (b, Where::After),
            (a, Where::Before),
        ];
        let end = Instant::now() + self.time(PROOF, 2);
        for (line, place) in places {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let Some(text) = with_barrier(&self.test.file.text, barrier, line.number, place) else {
                continue;
            };
            let Some(proved) = self.is_proved_as(&text, sizes, left) else {
                continue;
            };
            let change = Change {
                line: line.clone(),
                text: format!("a barrier at line {}", line.number),
                reason: String::new(),
                edit: Some(Need {
                    line: line.clone(),
                    place,
                    instead: barrier.to_owned(),
                    thread: String::new(),
                    text: String::new(),
                    what: "a barrier".to_owned(),
                }),
            };
            let side = match place {
                Where::After => "behind",
                _ => "in front of",
            };
            return Some(BarrierRepair {
                change,
                barrier,
                side,
                text,
                proved,
            });
        }
        None
    }

    /// How far the kernel of a changed file is proved: for launches of some sizes, or for all.
    fn is_proved_as(&self, text: &str, sizes: Sizes, time: Duration) -> Option<Launches> {
        let test = LitmusTest {
            file: self.test.file.changed(text.to_owned()),
            ..self.test.clone()
        };
        let Ok(Some(form)) = form::of_source(&test) else {
            return None;
        };
        let changed = EveryLaunch {
            test: &test,
            form: Ok(form),
            timeout: self.timeout,
            start: self.start.clone(),
        };
        let proved = |sizes: Sizes| {
            let mut reach = None;
            for ask in [Ask::Divergence, Ask::Race] {
                match changed.decide(&ask, sizes, time, false) {
                    Ok(KernelVerdict::Never { proved, .. }) => reach = Some(proved.launches()),
                    _ => return None,
                }
            }
            reach
        };
        let of_launch = proved(sizes)?;
        Some(proved(Sizes::ANY).unwrap_or(of_launch))
    }
}

/// A text with a barrier at a line.
fn with_barrier(text: &str, barrier: &str, line: u32, place: Where) -> Option<String> {
    let behind = usize::from(place == Where::After);
    let at = (line as usize + behind).saturating_sub(1);
    let mut lines: Vec<&str> = text.lines().collect();
    let beside = lines.get(line.saturating_sub(1) as usize)?;
    let indent = &beside[..beside.len() - beside.trim_start().len()];
    let own = format!("{indent}{barrier}");
    lines.insert(at.min(lines.len()), &own);
    Some(lines.join("\n") + "\n")
}

/// Says of an exact answer what a proof left open.
pub(super) fn limited(answer: &mut verdict::Answer, open: Open) {
    answer.reach = Some(Box::new(Reach {
        launches: Launches::One,
        assumed: Vec::new(),
        lines: open.apart.map(|apart| apart.lines),
        open: Some(open.why),
    }));
}

/// Two lines that may race, or a barrier that threads may miss.
fn said(ask: &Ask, apart: &Apart) -> String {
    let [a, b] = apart.lines.each_ref().map(|line| line.number);
    match ask {
        _ if apart.leaves => format!("line {a} may leave its object"),
        Ask::Race if a == b => format!("threads may race at line {a}"),
        Ask::Race => format!("lines {a} and {b} may race"),
        _ => format!("threads may part before the barrier of line {a}"),
    }
}

fn never(ask: &Ask, launches: Launches, assumed: Vec<String>) -> verdict::Answer {
    let verdict = match ask {
        Ask::Race => Verdict::RaceFree,
        _ => Verdict::Uniform,
    };
    let mut answer = verdict::Answer::new(verdict, PARAMETRIC);
    answer.reach = Some(Box::new(Reach {
        launches,
        assumed,
        lines: None,
        open: None,
    }));
    answer
}

/// Answers a question about a kernel; with it, the test of another launch that shows the answer.
///
/// `exact` decides the launch of the unit. All of them share the time from `start` on.
pub(super) fn answer(
    kernel: &EveryLaunch<'_>,
    question: &Question,
    start: Instant,
    exact: impl FnOnce() -> Option<verdict::Answer>,
) -> (Option<verdict::Answer>, Option<LitmusTest>) {
    kernel.start.set(start);
    let ask = &question.ask;
    let open = match kernel.proof(ask) {
        Ok(answer) => return (Some(answer), None),
        Err(open) => open,
    };
    // A race in a launch of many threads is found sooner in a smaller one.
    let searched = kernel.is_smaller() || (kernel.has_open_arguments() && kernel.is_wide());
    let searched = (searched && open.apart.is_some()).then(|| kernel.search(ask));
    let exact =
        match kernel.is_smaller() || searched.as_ref().is_some_and(|(_, test)| test.is_some()) {
            true => None,
            false => exact(),
        };
    let Some(mut exact) = exact else {
        let (answer, test) = searched.unwrap_or_else(|| (undecided(open), None));
        return (Some(answer), test);
    };
    let is_settled = match exact.verdict {
        Verdict::Undecided(_) => exact.defect.is_some(),
        Verdict::RaceFree | Verdict::Uniform => !kernel.has_open_arguments(),
        _ => true,
    };
    if is_settled || open.apart.is_none() {
        if matches!(exact.verdict, Verdict::RaceFree | Verdict::Uniform) {
            limited(&mut exact, open);
        }
        return (Some(exact), None);
    }
    let (wider, test) = searched.unwrap_or_else(|| kernel.search(ask));
    match (&exact.verdict, &wider.verdict) {
        (Verdict::Undecided(_), Verdict::Undecided(_)) => (Some(exact), None),
        (Verdict::Undecided(_), _) | (_, Verdict::Racy | Verdict::Divergent) => (Some(wider), test),
        _ => {
            limited(&mut exact, open);
            (Some(exact), None)
        }
    }
}

/// The sizes that a file gives, and its arguments, if it gives them.
pub(super) fn given(test: &LitmusTest, form: &Form) -> Sizes {
    let launch = test.launch.as_ref();
    Sizes {
        any_arguments: launch.is_some_and(|l| !l.given.has_arguments),
        ..Sizes::given(form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_share_the_time_of_a_question() {
        let second = Duration::from_secs(1);
        let now = Instant::now();
        assert_eq!(part_of(None, now, PROOF, 2), PROOF);
        assert_eq!(part_of(Some(60 * second), now, PROOF, 2), 30 * second);
        // Another engine took most of the time.
        let earlier = now
            .checked_sub(50 * second)
            .expect("the machine runs for a minute");
        let left = part_of(Some(60 * second), earlier, PROOF, 2);
        assert!(left <= 10 * second && left > second);
        assert_eq!(
            part_of(Some(40 * second), earlier, PROOF, 1),
            Duration::ZERO
        );
    }
}
