//! Explains a race of a program with a host: the rule of the runtime that leaves the two accesses
//! unordered, and the call that would order them.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *Asynchronous Concurrent Execution*, *Streams*, *Implicit
//!   Synchronization*; CUDA runtime API, *API synchronization behavior*, *Stream synchronization
//!   behavior*, cudaEventRecord, cudaStreamWaitEvent, cudaLaunchHostFunc, cudaFreeAsync.

use diag::{Diagnostic, Span};
use program::host::{
    CallId, CommandId, CommandKind, CommandOrigin, HandleId, HostOp, HostProgram, LaneId, LaneKind,
    Ref,
};
use program::litmus::LitmusTest;
use program::{Dialect, Op, Scope, ThreadId};
use verdict::FaultEvent;

/// The host and the commands of a program.
#[derive(Clone, Copy)]
pub(super) struct Agents<'a> {
    pub(super) test: &'a LitmusTest,
    pub(super) host: &'a HostProgram,
}

/// The calls that free memory.
const FREES: [&str; 5] = [
    "free(",
    "delete",
    "cudaFree",
    "cudaFreeHost",
    "cudaFreeAsync",
];

impl Agents<'_> {
    fn command(&self, thread: usize) -> Option<CommandId> {
        self.host.command_of(ThreadId(thread as u16))
    }

    fn text(&self, span: Span) -> &str {
        self.test.file.text.get(span.range()).unwrap_or("")
    }

    /// The place of a call.
    fn place_of(&self, call: CallId) -> Span {
        let thread = self.host.call(call).thread;
        let code = &self.test.program.thread(thread).code;
        code.iter()
            .find(|instr| matches!(instr.op, Op::Call(at) if at == call))
            .map_or(Span::default(), |instr| instr.span)
    }

    fn line_of(&self, span: Span) -> usize {
        self.test.file.line_column(span.start as usize).0
    }

    /// The call that enqueues a command.
    fn call_of(&self, command: CommandId) -> Option<CallId> {
        match self.host.command(command).origin {
            CommandOrigin::Call(call) => Some(call),
            _ => None,
        }
    }

    /// `` `fill` of line 12 ``: a kernel, or the call that makes a command.
    fn called(&self, command: CommandId) -> String {
        let of = self.host.command(command);
        let Some(call) = self.call_of(command) else {
            return format!("`{}`", of.name);
        };
        let span = self.place_of(call);
        let text = self.text(span);
        let name = match (of.kind, text.split_once("<<<")) {
            (CommandKind::Kernel, Some((before, _))) => last_word(before),
            (CommandKind::Kernel, None) => None,
            // The call may be inside of a check of its result.
            _ => {
                let at = text.find("cuda").or_else(|| text.find("clEnqueue"));
                at.map(|at| first_word(&text[at..]))
            }
        };
        let name = name.unwrap_or(&of.name);
        format!("`{name}` of line {}", self.line_of(span))
    }

    /// Names a thread: the host, or its command and its place in the launch.
    pub(super) fn thread(&self, thread: usize) -> String {
        let Some(command) = self.command(thread) else {
            return self.host_thread(thread);
        };
        let of = self.host.command(command);
        let name = self.called(command);
        if of.threads.len() < 2 {
            return name;
        }
        let id = ThreadId(thread as u16);
        let rank = self.test.program.seat(id, Scope::Cta).rank;
        let at = of.threads.iter().position(|t| *t == id).unwrap_or(0);
        match (of.groups.iter().max(), of.groups.get(at)) {
            (Some(last), Some(block)) if *last > 0 => {
                format!("{name}, thread {rank} of block {block},")
            }
            _ => format!("{name}, thread {rank},"),
        }
    }

    fn host_thread(&self, thread: usize) -> String {
        let hosts = (0..self.test.program.threads.len()).filter(|t| self.command(*t).is_none());
        match (hosts.count(), self.test.program.threads.get(thread)) {
            (2.., Some(of)) if of.name != "main" => format!("the host thread `{}`", of.name),
            (2.., _) => "`main`".to_owned(),
            _ => "the host".to_owned(),
        }
    }

    /// Both sides of a race, as the subject of a sentence.
    pub(super) fn both(&self, threads: [Option<usize>; 2]) -> String {
        let [a, b] = threads.map(|thread| {
            thread.map_or("a thread".to_owned(), |thread| match self.command(thread) {
                Some(command) => self.called(command),
                None => self.host_thread(thread),
            })
        });
        let commands = threads.map(|thread| self.command(thread?));
        match a == b {
            true if commands[0] != commands[1] => format!("two runs of {a}"),
            true => format!("threads of {a}"),
            false => format!("{a} and {b}"),
        }
    }

    /// The order of two threads in a message: commands as they are enqueued, then the host.
    pub(super) fn rank(&self, thread: Option<usize>) -> usize {
        let command = thread.and_then(|thread| self.command(thread));
        command.map_or(usize::MAX, |command| usize::from(command.0))
    }

    /// Whether two events are of one command, or both of the host.
    pub(super) fn same(&self, a: &FaultEvent, b: &FaultEvent) -> bool {
        self.rank(a.event.thread) == self.rank(b.event.thread)
    }

    /// The verb for a call that allocates or frees memory.
    pub(super) fn verb(&self, span: Span) -> Option<&'static str> {
        let text = self.text(span);
        let named = |calls: &[&str]| calls.iter().any(|call| text.contains(call));
        match () {
            () if named(&FREES) => Some("frees"),
            () if named(&["cudaMallocAsync"]) => Some("allocates"),
            () => None,
        }
    }

    /// Why nothing orders two threads; `None`: they are of one command.
    pub(super) fn reason(&self, threads: [Option<usize>; 2]) -> Option<String> {
        let [a, b] = threads;
        let commands = [self.command(a?), self.command(b?)];
        match commands {
            [Some(a), Some(b)] if a == b => None,
            [Some(a), Some(b)] => Some(self.between(a, b)),
            [Some(command), None] | [None, Some(command)] => Some(self.beside_host(command)),
            [None, None] => Some("no `join` and no atomic flag orders the two host threads".into()),
        }
    }

    /// Why a command and the host are not ordered.
    fn beside_host(&self, command: CommandId) -> String {
        let of = self.host.command(command);
        let name = self.called(command);
        if self.is_opencl() {
            return format!(
                "nothing waits for {name}: a call that does not block returns before its command \
                 is complete (OpenCL API specification, Memory Ordering Rules: Host-side and \
                 Device-side Commands)"
            );
        }
        let early = self.early_record(command, None);
        let why = match of.kind {
            CommandKind::Kernel => {
                "a launch returns before its kernel ends (CUDA C++ Programming Guide, Asynchronous \
                 Concurrent Execution)"
            }
            CommandKind::HostFunction => {
                "a host function runs when its stream comes to it, as the host goes on (CUDA \
                 runtime API, cudaLaunchHostFunc)"
            }
            _ if of.name.contains("Free") || of.name.contains("Malloc") => {
                "memory is allocated and freed in the order of its stream (CUDA runtime API, \
                Stream \
                 Ordered Memory Allocator)"
            }
            _ if of.name.contains("Async") => {
                "such a call returns before its command is complete (CUDA runtime API, API \
                 synchronization behavior)"
            }
            _ => {
                "such a copy need not be complete when the call returns (CUDA runtime API, API \
                 synchronization behavior)"
            }
        };
        match early {
            Some(early) => early,
            None => format!("nothing waits for {name}: {why}"),
        }
    }

    /// Why two commands are not ordered.
    fn between(&self, a: CommandId, b: CommandId) -> String {
        let (first, second) = if a < b { (a, b) } else { (b, a) };
        let lanes = [first, second].map(|c| self.host.command(c).lane);
        if self.is_opencl() {
            let names = lanes.map(|lane| lane.map_or(String::new(), |lane| self.queue(lane)));
            return match names[0] == names[1] {
                true => format!(
                    "nothing orders the two in {}: an out-of-order queue may run its commands in \
                     any order, or at once (OpenCL API specification, \
                     clCreateCommandQueueWithProperties)",
                    names[0]
                ),
                false => format!(
                    "nothing orders {} and {}: only events order commands of different queues \
                     (OpenCL API specification, Execution Model: Synchronization)",
                    names[0], names[1]
                ),
            };
        }
        if let Some(early) = self.early_record(first, lanes[1]) {
            return early;
        }
        let kinds = lanes.map(|lane| lane.map(|lane| self.host.lane(lane).kind));
        let names = lanes.map(|lane| lane.map_or(String::new(), |lane| self.lane(lane)));
        fn free(kind: Option<LaneKind>) -> bool {
            kind == Some(LaneKind::Stream { blocking: false })
        }
        fn null(kind: Option<LaneKind>) -> bool {
            kind == Some(LaneKind::Null)
        }
        if (null(kinds[0]) && free(kinds[1])) || (free(kinds[0]) && null(kinds[1])) {
            return format!(
                "nothing orders {} and {}: a non-blocking stream does not synchronize with the \
                 legacy default stream (CUDA runtime API, Stream synchronization behavior)",
                names[0], names[1]
            );
        }
        format!(
            "nothing orders {} and {}: commands of different streams may run in any order, or at \
             once (CUDA C++ Programming Guide, Streams)",
            names[0], names[1]
        )
    }

    fn is_opencl(&self) -> bool {
        self.test.program.dialect == Dialect::OpenCl
    }

    /// A queue in a sentence.
    fn queue(&self, lane: LaneId) -> String {
        format!("the queue `{}`", self.host.lane(lane).name)
    }

    /// A stream in a sentence.
    fn lane(&self, lane: LaneId) -> String {
        let of = self.host.lane(lane);
        match of.kind {
            LaneKind::Null => of.name.clone(),
            _ if of.name.contains(' ') => of.name.clone(),
            _ => format!("the stream `{}`", of.name),
        }
    }

    /// Names an event that a thread waits for in vain, since its record or its wait comes too
    /// early. `lane`: the stream that waits; `None`: the host.
    fn early_record(&self, command: CommandId, lane: Option<LaneId>) -> Option<String> {
        let call = self.call_of(command)?;
        let own = self.host.command(command).lane?;
        let waits = |at: CallId| match (&self.host.call(at).op, lane) {
            (HostOp::LaneWait(waiting, event), Some(lane)) if *waiting == lane => vec![*event],
            (HostOp::Wait(all), None) => handles(all),
            _ => Vec::new(),
        };
        let mut all = self.host.call_ids().flat_map(|at| {
            let events = waits(at).into_iter();
            events.map(move |event| (at, event))
        });
        all.find_map(|(wait, event)| self.too_early(command, call, own, (wait, event)))
    }

    /// The sentence about a wait for an event, if its record or the wait itself comes too early.
    fn too_early(
        &self,
        command: CommandId,
        call: CallId,
        own: LaneId,
        waited: (CallId, HandleId),
    ) -> Option<String> {
        let (wait, event) = waited;
        let name = &self.host.handle(event).name;
        let recorded = self.records(event, own);
        let before = recorded.iter().copied().filter(|at| *at < wait).max();
        match before {
            Some(at) if at < call && call < wait => Some(format!(
                "`{name}` is recorded in line {}, before {}: an event captures the work that its \
                 stream has at that time (CUDA runtime API, cudaEventRecord)",
                self.line_of(self.place_of(at)),
                self.called(command)
            )),
            None if call < wait && !recorded.is_empty() => Some(format!(
                "the wait for `{name}` in line {} comes before its record: a wait for an event \
                that \
                 is not recorded does nothing (CUDA runtime API, cudaStreamWaitEvent)",
                self.line_of(self.place_of(wait))
            )),
            _ => None,
        }
    }

    /// The calls that record an event in a stream.
    fn records(&self, event: HandleId, lane: LaneId) -> Vec<CallId> {
        self.host
            .call_ids()
            .filter(|at| match self.host.call(*at).op {
                HostOp::Record(of, into) => of == event && into == lane,
                _ => false,
            })
            .collect()
    }

    /// The same for OpenCL.
    fn advised_opencl(&self, d: Diagnostic, commands: [Option<CommandId>; 2]) -> Diagnostic {
        match commands {
            [Some(command), None] | [None, Some(command)] => {
                match self.host.command(command).lane {
                    Some(lane) => d.help(format!(
                        "call `clFinish({});` between {} and the access of the host",
                        self.host.lane(lane).name,
                        self.called(command)
                    )),
                    None => d,
                }
            }
            [Some(a), Some(b)] if a != b => {
                let (first, second) = if a < b { (a, b) } else { (b, a) };
                d.help(format!(
                    "let {} give an event, and put the event into the wait list of {}",
                    self.called(first),
                    self.called(second)
                ))
            }
            _ => d,
        }
    }

    /// Adds the call that would order two threads.
    pub(super) fn advised(&self, d: Diagnostic, threads: [Option<usize>; 2]) -> Diagnostic {
        let [Some(a), Some(b)] = threads else {
            return d;
        };
        if self.is_opencl() {
            return self.advised_opencl(d, [self.command(a), self.command(b)]);
        }
        match [self.command(a), self.command(b)] {
            [Some(command), None] | [None, Some(command)] => {
                match self.host.command(command).lane {
                    Some(lane) => {
                        let wait = match self.host.lane(lane) {
                            of if of.kind == LaneKind::Null => {
                                "cudaStreamSynchronize(0)".to_owned()
                            }
                            of if of.name.contains(' ') => {
                                "cudaStreamSynchronize(cudaStreamPerThread)".to_owned()
                            }
                            of => format!("cudaStreamSynchronize({})", of.name),
                        };
                        d.help(format!(
                            "call `{wait};` between {} and the access of the host",
                            self.called(command)
                        ))
                    }
                    None => d,
                }
            }
            [Some(a), Some(b)] if a != b => {
                let (first, second) = if a < b { (a, b) } else { (b, a) };
                let text = format!(
                    "record an event behind {}, and let the other stream wait for it before {}: \
                     `cudaEventRecord`, `cudaStreamWaitEvent`",
                    self.called(first),
                    self.called(second)
                );
                d.help(text)
            }
            _ => d,
        }
    }
}

/// The events among references.
fn handles(all: &[Ref]) -> Vec<HandleId> {
    all.iter()
        .filter_map(|reference| match reference {
            Ref::Handle(event) => Some(*event),
            Ref::Command(_) => None,
        })
        .collect()
}

/// The identifier that a text begins with.
fn first_word(text: &str) -> &str {
    &text[..text
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(text.len())]
}

/// The identifier that a text ends with.
fn last_word(text: &str) -> Option<&str> {
    fn is_word(c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_'
    }
    let text = text.trim_end();
    let start = text.rfind(|c: char| !is_word(c)).map_or(0, |at| at + 1);
    Some(&text[start..]).filter(|word| !word.is_empty())
}
