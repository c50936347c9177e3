//! Answers about kernels of source files, in sentences at the lines of the file.
//!
//! # Invariants
//! - A report has two racing lines once, whichever threads race there.
//! - A change that is proposed was decided: the kernel with it does not race.

use std::collections::BTreeSet;
use std::time::Duration;

use diag::{Diagnostic, SourceLine, Span};
use program::litmus::{KernelLaunch, LaunchOrigin, LitmusTest};
use program::{Dialect, Scope, ThreadId, WorkItem};
use report::{AnswerLine, KernelAnswer, LaunchSource};
use simt::race::Race;
use simt::{Early, MachineMemory, RunOptions, Schedule};
use verdict::{
    Answer, Ending, Fault, FaultEvent, InstrPlace, Launches, PARAMETRIC, Property, RacingPair,
    Reason, Remedy, Unwritten, Verdict, Where, Witness,
};

use super::plan::{Question, Unit};
use super::programs::Agents;
use super::settings::Settings;

/// The runs that look for the reason of a race, and their time.
const RUNS: u32 = 20;
const LONGEST: Duration = Duration::from_millis(400);

/// Whether it is a failure if the program races, is undefined or hangs.
pub(super) fn denies(unit: &Unit<'_>, question: &Question, settings: &Settings) -> bool {
    let race = question.property() == Property::Race;
    // In PTX, a race is information.
    let defined = unit.test.program.dialect == Dialect::Ptx && race;
    (unit.source.launch.is_some() && !defined) || (settings.deny_race && race)
}

/// The reads of memory before any write to it, except those of buffers that the launch fills. One
/// answer about a kernel lists them: the one about races or, if that is a proof, the next one.
/// `earlier` are the answers before this one. A race explains the reads of its own object.
pub(super) fn mistaken_reads(
    unit: &Unit<'_>,
    earlier: &[AnswerLine],
    answer: &Answer,
) -> Vec<Unwritten> {
    let reads = &answer.unwritten;
    let Some(launch) = &unit.source.launch else {
        return reads.clone();
    };
    if earlier
        .iter()
        .map(|line| &line.answer)
        .any(|answer| answer.verdict == Verdict::Racy || answer.engine != PARAMETRIC)
    {
        return Vec::new();
    }
    let pairs = answer.races.iter().flat_map(|races| &races.pairs);
    let of_fault = answer
        .fault
        .iter()
        .filter_map(|fault| fault.place.as_deref());
    let racing: BTreeSet<String> = pairs
        .filter_map(|pair| pair.place.as_deref())
        .chain(of_fault)
        .map(object_of)
        .collect();
    let mine = reads.iter().filter(|read| {
        let object = object_of(&read.memory);
        !launch.inputs.contains(&object) && !racing.contains(&object)
    });
    let test = unit.source;
    let told = Told { unit, test, launch };
    mine.map(|read| {
        let place = read
            .memory
            .split_once(':')
            .map_or(&*read.memory, |parts| parts.1);
        Unwritten {
            thread: told.placed(&read.thread),
            memory: place.to_owned(),
            ..read.clone()
        }
    })
    .collect()
}

/// The object that a place is in: `s` of `block 0:s[1]`.
fn object_of(place: &str) -> String {
    let name = place.split_once(':').map_or(place, |parts| parts.1);
    name.split(['[', '.']).next().unwrap_or("").to_owned()
}

/// The errors of a kernel at its lines; `None`: the test comes from no source file. `shown`: the
/// kernel with the launch that the answer is about, if it is another one.
pub(super) fn told(
    unit: &Unit<'_>,
    shown: Option<&LitmusTest>,
    question: &Question,
    answer: &Answer,
) -> Option<Box<KernelAnswer>> {
    let own = unit.source.launch.as_ref()?;
    let test = shown.unwrap_or(unit.source);
    let launch = test.launch.as_ref()?;
    let kernel = Told { unit, test, launch };
    let mut found = match (&question.property(), &answer.verdict) {
        (Property::Race, Verdict::Racy) => kernel.races(answer),
        (Property::Undefined, Verdict::Undefined) | (Property::Divergence, Verdict::Divergent) => {
            let fault = answer.fault.iter().filter(|fault| !fault.race);
            let fault = fault.filter(|fault| !fault.lifetime);
            fault.map(|fault| kernel.misuse(fault)).collect()
        }
        (Property::Lifetime, Verdict::Misused) => {
            let fault = answer.fault.iter();
            fault.map(|fault| kernel.late_use(fault)).collect()
        }
        (Property::Liveness(_), Verdict::Hangs) => kernel.hang(answer).into_iter().collect(),
        (Property::Race, Verdict::Undecided(Reason::Astray(Some(place)))) => {
            vec![kernel.outside(place)]
        }
        _ => Vec::new(),
    };
    if own.compiler.is_some() {
        // A change of the compiled code is none of the file.
        found
            .iter_mut()
            .for_each(|wrong: &mut Diagnostic| wrong.help = None);
    }
    // A proof is about the launch that is given, whatever its size.
    let is_main = matches!(own.by, LaunchOrigin::Main(_));
    let is_smaller = own.is_smaller && answer.engine != PARAMETRIC;
    let is_given = own.is_smaller && shown.is_none() && !is_smaller;
    let text = match is_given {
        true => &own.given.text,
        false => &launch.text,
    };
    // A race may be shown in a launch of fewer threads, whatever the given one does.
    let is_shrunk = own.by != LaunchOrigin::Choice && shown.is_some() && !same_sizes(launch, own);
    let mut notes = match is_smaller || is_main {
        true if is_main && shown.is_some() => {
            vec![format!(
                "the race is one of `{text}`, with the written constants"
            )]
        }
        true => own.notes.clone(),
        false => Vec::new(),
    };
    notes.extend(
        own.compiler
            .as_ref()
            .map(|by| format!("this is about the code that {by} makes of the file")),
    );
    if own.by != LaunchOrigin::Choice {
        notes.extend(launch.zeroed.iter().map(|name| {
            format!("`{name}` begins with 0 here: the course of the kernel depends on its values")
        }));
    }
    Some(Box::new(KernelAnswer {
        kernel: launch.kernel.clone(),
        launch: text.clone(),
        origin: match own.by {
            LaunchOrigin::Main(launches) => LaunchSource::Main(launches),
            _ if is_smaller || is_shrunk => LaunchSource::Smaller,
            LaunchOrigin::Line => LaunchSource::File,
            LaunchOrigin::CommandLine => LaunchSource::CommandLine,
            LaunchOrigin::Choice => LaunchSource::Chosen,
        },
        found,
        notes,
        beyond: match own.full {
            Some(_) => of_full_launches(answer),
            None => beyond(&launch.kernel, answer),
        },
    }))
}

/// What the answer about a program says of its launches with the written constants.
fn of_full_launches(answer: &Answer) -> Option<String> {
    let open = answer.reach.as_ref()?.open.as_ref()?;
    Some(format!("`main` with the written constants: {open}"))
}

/// Whether a launch has the blocks and threads that another one was given.
pub(super) fn same_sizes(launch: &KernelLaunch, given: &KernelLaunch) -> bool {
    fn whole(sizes: &[u32]) -> [u32; 3] {
        [0, 1, 2].map(|axis| sizes.get(axis).copied().unwrap_or(1))
    }
    whole(&launch.grid) == whole(&given.given.grid)
        && whole(&launch.block) == whole(&given.given.block)
}

/// What the answer says of other launches and inputs.
pub(super) fn beyond(kernel: &str, answer: &Answer) -> Option<String> {
    let reach = answer.reach.as_deref()?;
    let word = answer.verdict.word();
    let open = reach.open.as_deref().unwrap_or_default();
    Some(match (reach.launches, answer.verdict.reason()) {
        (_, Some(_)) => return None,
        (Launches::One, _) if open.is_empty() => return None,
        (Launches::One, _) => format!("`{kernel}`: not proved for other launches: {open}"),
        (launches @ Launches::Tried(_), _) => {
            format!("`{kernel}`: {word} in {launches}, tried exactly; not proved beyond: {open}")
        }
        (launches, _) => {
            let assumed = reach.assumed.join("; ");
            let open = match open {
                "" => String::new(),
                open => format!("; not proved for other launches: {open}"),
            };
            format!("`{kernel}`: {word} for {launches}, assuming: {assumed}{open}")
        }
    })
}

/// A kernel and its test.
struct Told<'a> {
    unit: &'a Unit<'a>,
    test: &'a LitmusTest,
    launch: &'a KernelLaunch,
}

impl Told<'_> {
    /// All pairs of lines that race, each once.
    fn races(&self, answer: &Answer) -> Vec<Diagnostic> {
        let first = answer.fault.as_deref();
        let mut pairs: Vec<RacingPair> = match &answer.races {
            Some(races) => races.pairs.clone(),
            None => Vec::new(),
        };
        // The answer has an execution of this pair.
        if let Some(own) = first.and_then(pair_of) {
            fn lines(pair: &RacingPair) -> [u32; 2] {
                pair.events.each_ref().map(|e| e.event.line.number)
            }
            match pairs.iter().position(|pair| lines(pair) == lines(&own)) {
                Some(at) => {
                    pairs.remove(at);
                    pairs.insert(0, own);
                }
                None => pairs.insert(0, own),
            }
        }
        // The calls of a program say why, without a run.
        let runs = match self.agents() {
            Some(_) => Vec::new(),
            None => self.runs(),
        };
        let execution = first.and_then(|fault| fault.execution.as_ref());
        pairs
            .iter()
            .enumerate()
            .map(|(i, pair)| {
                let witness = execution.or(answer.witness.as_ref()).filter(|_| i == 0);
                let d = self
                    .race(pair, witness)
                    .note(self.reason(pair, &runs, witness));
                match first
                    .filter(|_| i == 0)
                    .and_then(|fault| fault.remedy.as_ref())
                {
                    Some(Remedy::Changes(changes)) => {
                        let all = changes.iter().map(proposal).collect::<Vec<_>>();
                        d.help(all.join(", and "))
                    }
                    _ => match self.agents() {
                        Some(agents) => {
                            agents.advised(d, pair.events.each_ref().map(|e| e.event.thread))
                        }
                        None => d,
                    },
                }
            })
            .collect()
    }

    fn race(&self, pair: &RacingPair, witness: Option<&Witness>) -> Diagnostic {
        let [a, b] = &pair.events;
        // The read comes first in the message; of a program, the host or the later command.
        let (first, second) = match (self.agents(), writes(a), writes(b)) {
            (Some(agents), ..) if agents.rank(b.event.thread) > agents.rank(a.event.thread) => {
                (b, a)
            }
            (agents, true, false) if agents.is_none_or(|of| of.same(a, b)) => (b, a),
            _ => (a, b),
        };
        let place = self.place(pair.place.as_deref(), a);
        let kernel = &self.launch.kernel;
        let who = match self.agents() {
            Some(agents) => agents.both([first, second].map(|e| e.event.thread)),
            None => "threads".to_owned(),
        };
        let message = match &place {
            Some(place) => format!("`{kernel}`: {who} race on {place}"),
            None => format!("`{kernel}`: {who} race"),
        };
        let [one, other] = [first, second].map(|event| {
            let (thread, does) = (self.thread(event), self.does(event, pair));
            format!("{thread} {does}{}", turn(event, witness))
        });
        let span = self.span(first);
        let d = Diagnostic::error("race", &self.test.file, span, message);
        let d = match self.span(second) {
            // One statement has both.
            same if same == span => d.label(format!("{one}; {other}")),
            apart => d.label(one).also(apart, other),
        };
        match self.unit.test.program.dialect {
            Dialect::Ptx => d.warning(),
            _ => d,
        }
    }

    /// `` `s[1]` in shared memory of block 0``.
    fn place(&self, place: Option<&str>, event: &FaultEvent) -> Option<String> {
        let place = place?;
        let (owner, name) = match place.split_once(':') {
            Some((owner, name)) => (Some(owner), name),
            None => (None, place),
        };
        let block = event.event.thread.map(|t| self.block(t));
        match (owner, block) {
            (Some(_), Some(block)) if self.blocks() > 1 => Some(format!("`{name}` of {block}")),
            _ => Some(format!("`{name}`")),
        }
    }

    /// The host and the commands of a program; `None`: the test is a kernel.
    fn agents(&self) -> Option<Agents<'_>> {
        let host = self.test.program.host.as_deref()?;
        Some(Agents {
            test: self.test,
            host,
        })
    }

    fn blocks(&self) -> u32 {
        self.launch.grid.iter().product()
    }

    /// The place of a thread, where not all run.
    fn item(&self, thread: usize) -> Option<&WorkItem> {
        self.launch.threads.as_ref()?.get(thread)
    }

    fn block(&self, thread: usize) -> String {
        if let Some(item) = self.item(thread) {
            return format!("block {}", place_of(item.group, &self.launch.grid));
        }
        let program = &self.test.program;
        let cta = program.threads.get(thread).map_or(0, |t| t.place.cta);
        format!("block {}", coordinates(cta, &self.launch.grid))
    }

    /// `thread 3 of block 1`, or its agent.
    fn thread(&self, event: &FaultEvent) -> String {
        let Some(thread) = event.event.thread else {
            return event.event.who();
        };
        let thread = self.coordinates(thread);
        match &event.event.agent {
            Some(agent) => format!("the {agent} of {thread}"),
            None => thread,
        }
    }

    /// `thread 3 of block 1`.
    fn coordinates(&self, thread: usize) -> String {
        if let Some(agents) = self.agents() {
            return agents.thread(thread);
        }
        if let Some(item) = self.item(thread) {
            let number = place_of(item.local, &self.launch.block);
            return match self.blocks() {
                1 => format!("thread {number}"),
                _ => format!("thread {number} of {}", self.block(thread)),
            };
        }
        let id = ThreadId(thread as u16);
        let rank = self.test.program.seat(id, Scope::Cta).rank;
        let warps = self.launch.block.iter().product::<u32>() > 32;
        let warp = self
            .test
            .program
            .threads
            .get(thread)
            .and_then(|t| t.place.warp);
        let lane = match warp.filter(|_| warps) {
            Some(warp) => format!(" (warp {warp}, lane {})", self.test.program.lane(id)),
            None => String::new(),
        };
        let threads: u32 = self.launch.block.iter().product();
        if threads == 1 {
            return self.block(thread);
        }
        let number = coordinates(rank, &self.launch.block);
        match self.blocks() {
            1 => format!("thread {number}{lane}"),
            _ => format!("thread {number} of {}{lane}", self.block(thread)),
        }
    }

    /// `` reads `s[1]` ``, with the value, where it is worked out.
    fn does(&self, event: &FaultEvent, pair: &RacingPair) -> String {
        let agents = self.agents().filter(|_| writes(event));
        let does = match agents.and_then(|agents| agents.verb(self.span(event))) {
            Some(verb) => verb,
            None if writes(event) => "writes",
            None => "reads",
        };
        let name = pair
            .place
            .as_deref()
            .map(|place| place.split_once(':').map_or(place, |p| p.1));
        let value = event
            .event
            .action
            .rsplit_once(" = ")
            .map(|(_, value)| value.trim());
        let known = self.launch.inputs.is_empty();
        let value = value.filter(|value| known && !value.contains('?'));
        match (name, value) {
            (Some(name), Some(value)) => format!("{does} `{name}` (`{value}`)"),
            (Some(name), None) => format!("{does} `{name}`"),
            (None, _) => does.to_owned(),
        }
    }

    /// The place of an event's statement.
    fn span(&self, event: &FaultEvent) -> Span {
        event.span.unwrap_or(self.launch.span)
    }

    /// Runs of the executor, with the races that they have.
    fn runs(&self) -> Vec<Race> {
        let dialect = self.test.program.dialect;
        let Some(memory) = MachineMemory::of(dialect, dialect.default_model()) else {
            return Vec::new();
        };
        let options = RunOptions {
            memory,
            early: Early::None,
            races: true,
            timeout: Some(LONGEST),
            ..RunOptions::default()
        };
        let schedule = Schedule::Random {
            runs: RUNS.into(),
            seed: 0,
        };
        let observed = simt::observe(self.test, &options, schedule);
        observed.map_or(Vec::new(), |observation| observation.races)
    }

    /// The reason that nothing orders two accesses.
    fn reason(&self, pair: &RacingPair, runs: &[Race], witness: Option<&Witness>) -> String {
        let agents = self.agents();
        let of_host = agents.and_then(|a| a.reason(pair.events.each_ref().map(|e| e.event.thread)));
        if let Some(reason) = of_host {
            return reason;
        }
        if pair.events.iter().any(|event| event.event.agent.is_some()) {
            return "nothing orders the two: an asynchronous operation is ordered only with \
                    accesses behind a wait for it, and through another proxy only by a proxy fence"
                .to_owned();
        }
        let lines = pair.events.each_ref().map(|event| event.event.line.number);
        if let Some(race) = runs.iter().find(|race| {
            let found = [race.first.line.number, race.second.line.number];
            found == lines || found == [lines[1], lines[0]]
        }) {
            return format!("nothing orders the two: {}", self.placed(&race.why));
        }
        let [a, b] = pair.events.each_ref().map(|event| {
            let thread = event.event.thread?;
            self.test.program.threads.get(thread)
        });
        let same = a
            .zip(b)
            .is_some_and(|(a, b)| a.place.same(&b.place, Scope::Cta));
        let passed = pair.events.each_ref().map(|event| barriers(event, witness));
        let why = match (same, passed) {
            (false, _) => {
                "they are in different blocks, and no synchronization connects the blocks"
            }
            (true, [Some(a), Some(b)]) if a != b => {
                "no barrier between them joins these two threads"
            }
            (true, _) => "no barrier between them",
        };
        format!("nothing orders the two: {why}")
    }

    /// Undefined behaviour other than a race.
    fn misuse(&self, fault: &Fault) -> Diagnostic {
        let kernel = &self.launch.kernel;
        let name = report::misuse_name(fault);
        let id = if fault.relation == "divergence" {
            "divergence"
        } else {
            "undefined"
        };
        let message = format!("`{kernel}`: {name}");
        let first = fault.events.first();
        let span = first.map_or(self.launch.span, |event| self.span(event));
        let mut d = Diagnostic::error(id, &self.test.file, span, message);
        for (i, event) in fault.events.iter().enumerate() {
            // In a sentence, a thread of a program ends with a comma.
            let thread = self.thread(event);
            let noun = match event.noun.as_str() {
                // The mark of an unmet precondition.
                "fence" if fault.relation == "MISUSE" => "misuse",
                noun => noun,
            };
            let said = format!("{}: {noun}", thread.trim_end_matches(','));
            let at = self.span(event);
            d = match i {
                0 => d.label(said),
                _ if at == span => d.note(said),
                _ => d.also(at, said),
            };
        }
        fault.why.iter().fold(d, |d, why| d.note(why.clone()))
    }

    /// A use of something behind its end: the place of the use, and that of the end.
    fn late_use(&self, fault: &Fault) -> Diagnostic {
        let kernel = &self.launch.kernel;
        let events = &fault.events;
        let spans: Vec<Span> = events.iter().map(|event| self.span(event)).collect();
        let host = self.test.program.host.as_deref();
        let marked = host.iter().flat_map(|host| &host.late_uses);
        let mut marked = marked.filter(|late| spans.len() == 1 && late.used == spans[0]);
        if let Some(late) = marked.next() {
            let object = &late.object;
            if object.starts_with("the thread") {
                let message = format!("`{kernel}`: {object} is never joined");
                return Diagnostic::error("lifetime", &self.test.file, late.used, message)
                    .label("started here")
                    .note(
                        "the destructor of a `std::thread` that was not joined ends the program \
                         (ISO C++, thread.thread.destr)",
                    )
                    .help("call its `join()` before its scope ends");
            }
            let message = format!("`{kernel}`: {object} is used after its end");
            let d = Diagnostic::error("lifetime", &self.test.file, late.used, message);
            let d = d.label("used here");
            let d = match late.ended {
                Some(ended) => d.also(ended, "its life ends here"),
                None => d,
            };
            let is_opencl = self.test.program.dialect == Dialect::OpenCl;
            return d
                .note(rule_of(object, is_opencl))
                .help("end its life behind its last use");
        }
        let object = fault.object.clone().unwrap_or_else(|| "memory".to_owned());
        let message = format!("`{kernel}`: `{object}` is used after its end");
        let (Some(end), Some(used)) = (events.first(), events.last()) else {
            return Diagnostic::error("lifetime", &self.test.file, self.launch.span, message);
        };
        let (ended, at) = (self.span(end), self.span(used));
        let [by_end, by_use] = [end, used].map(|event| {
            let thread = event.event.thread.map(|thread| self.coordinates(thread));
            thread.map_or(event.event.who().to_string(), |name| {
                name.trim_end_matches(',').to_owned()
            })
        });
        let d = Diagnostic::error("lifetime", &self.test.file, at, message);
        let d = d.label(format!("{by_use} can access it here"));
        let d = match ended == at {
            true => d,
            false => d.also(ended, format!("{by_end} ends its life")),
        };
        let threads = [end.event.thread, used.event.thread];
        let why = self.agents().and_then(|agents| agents.reason(threads));
        let d = why.into_iter().fold(d, |d, why| d.note(why));
        d.note(rule_of(
            "memory",
            self.test.program.dialect == Dialect::OpenCl,
        ))
    }

    /// An access outside of all memory.
    fn outside(&self, place: &InstrPlace) -> Diagnostic {
        let kernel = &self.launch.kernel;
        let message = format!("`{kernel}`: an access outside of every object");
        let thread = threads_named(self.test, &place.thread);
        let who = thread.map_or(place.thread.clone(), |t| self.coordinates(t));
        let label = format!("{who} can access memory outside every object");
        let span = self.line_span(&place.line);
        let d = Diagnostic::error("out-of-bounds", &self.test.file, span, message).label(label);
        d.note(format!("the launch is `{}`", self.launch.text))
            .help("make the object larger, or guard the access by a comparison with its length")
    }

    /// A text with threads by their places in the launch.
    fn placed(&self, text: &str) -> String {
        let mut out = String::new();
        for (i, word) in text.split(' ').enumerate() {
            let name = word.trim_end_matches([',', ';', ':', '.']);
            let is_name = name
                .strip_prefix('P')
                .is_some_and(|n| n.parse::<usize>().is_ok());
            let thread = threads_named(self.test, name).filter(|_| is_name);
            out += if i > 0 { " " } else { "" };
            match thread {
                Some(thread) => {
                    out += &self.coordinates(thread);
                    out += &word[name.len()..];
                }
                None => out += word,
            }
        }
        out
    }

    /// The threads that never end.
    fn hang(&self, answer: &Answer) -> Option<Diagnostic> {
        let ends = &answer.witness.as_ref()?.ends;
        let stuck =
            |end: &&verdict::ThreadEnd| matches!(end.ending, Ending::Blocked | Ending::Looping);
        let all: Vec<&verdict::ThreadEnd> = ends.iter().filter(stuck).collect();
        let first = all.first()?;
        let kernel = &self.launch.kernel;
        let message = format!("`{kernel}`: not every thread ends");
        let span = self.line_span(&first.line);
        let thread = threads_named(self.test, &first.thread);
        let who = thread.map_or(first.thread.clone(), |t| self.coordinates(t));
        let label = format!("{who} {}", first.why);
        let d = Diagnostic::error("hang", &self.test.file, span, message).label(label);
        Some(match all.len() {
            1 => d,
            2 => d.note("one more thread does not end"),
            n => d.note(format!("{} more threads do not end", n - 1)),
        })
    }

    fn line_span(&self, line: &SourceLine) -> Span {
        let code = self
            .test
            .program
            .threads
            .iter()
            .flat_map(|thread| &thread.code);
        let mut same = code.filter(|instr| instr.line.number == line.number);
        same.next().map_or(self.launch.span, |instr| instr.span)
    }
}

/// The rule about the end of an object.
fn rule_of(object: &str, is_opencl: bool) -> &'static str {
    match (is_opencl, object.split(' ').nth(1).unwrap_or_default()) {
        (false, "stream") => {
            "a destroyed stream must not be used (CUDA runtime API, cudaStreamDestroy)"
        }
        (false, "event") => {
            "a destroyed event must not be used (CUDA runtime API, cudaEventDestroy)"
        }
        (false, _) => {
            "memory that was freed must not be accessed (CUDA runtime API, Memory Management)"
        }
        (true, "queue") => "a released queue must not be used (OpenCL API, clReleaseCommandQueue)",
        (true, "event") => {
            "a released event is not valid (OpenCL API, clReleaseEvent: CL_INVALID_EVENT)"
        }
        (true, _) => {
            "released memory must not be used, and a kernel does not retain its arguments (OpenCL \
             API, clReleaseMemObject, clSetKernelArg, clSVMFree)"
        }
    }
}

/// The number of a thread.
fn threads_named(test: &LitmusTest, name: &str) -> Option<usize> {
    test.program
        .threads
        .iter()
        .position(|thread| thread.name == name)
}

/// The two accesses of a race.
fn pair_of(fault: &Fault) -> Option<RacingPair> {
    let [a, b] = fault.events.as_slice() else {
        return None;
    };
    Some(RacingPair {
        place: fault.place.clone(),
        events: [a.clone(), b.clone()],
    })
}

fn writes(event: &FaultEvent) -> bool {
    event.event.action.starts_with('W')
}

/// A change that makes the program race-free, as something to do.
fn proposal(change: &verdict::Change) -> String {
    let Some(edit) = &change.edit else {
        return change.text.clone();
    };
    let new = edit.instead.trim().trim_matches('`');
    let line = edit.line.number;
    match edit.place {
        // All threads have the same code.
        Where::Instead => match change.text.strip_prefix(&format!("{}'s ", edit.thread)) {
            Some(rest) => format!("let {}", rest.replacen(" has ", " have ", 1)),
            None => change.text.clone(),
        },
        Where::Before => format!("add `{new}` before line {line}"),
        Where::After => format!("add `{new}` behind line {line}"),
    }
}

/// ` in iteration 2`, where an execution passes the instruction of an event several times.
fn turn(event: &FaultEvent, witness: Option<&Witness>) -> String {
    let (Some(witness), Some(at)) = (witness, event.at) else {
        return String::new();
    };
    let kind = event.event.action.chars().next();
    let same = |e: &verdict::WitnessEvent| {
        fn place(e: &verdict::WitnessEvent) -> Option<String> {
            e.action.split(" = ").next().map(str::to_owned)
        }
        let whole = (e.thread, &e.line, &e.text)
            == (event.event.thread, &event.event.line, &event.event.text);
        whole && e.action.chars().next() == kind && place(e) == place(&event.event)
    };
    let all = witness.events.iter().filter(|e| same(e)).count();
    let before = witness.events.iter().take(at).filter(|e| same(e)).count();
    if all > 1 {
        format!(" in iteration {}", before + 1)
    } else {
        String::new()
    }
}

/// How many barriers the thread of an event passes before it.
fn barriers(event: &FaultEvent, witness: Option<&Witness>) -> Option<usize> {
    let (witness, at) = (witness?, event.at?);
    let before = witness.events.iter().take(at);
    let own = before.filter(|e| e.thread == event.event.thread && e.action == "BW");
    Some(own.count())
}

/// Coordinates in as many dimensions as a size has.
fn place_of(place: [u64; 3], sizes: &[u32]) -> String {
    match sizes.len() {
        0 | 1 => place[0].to_string(),
        n => {
            let all: Vec<String> = place[..n].iter().map(u64::to_string).collect();
            format!("({})", all.join(", "))
        }
    }
}

/// A number as coordinates in as many dimensions as a size has.
fn coordinates(number: u32, sizes: &[u32]) -> String {
    if sizes.len() < 2 {
        return number.to_string();
    }
    let mut left = number;
    let all: Vec<String> = sizes
        .iter()
        .map(|size| {
            let here = left % size.max(&1);
            left /= size.max(&1);
            here.to_string()
        })
        .collect();
    format!("({})", all.join(", "))
}
