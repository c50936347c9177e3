//! Calls of host threads that order commands: recording an event and waiting for it, a wait for a
//! stream or a queue, a launch in another one.
//!
//! # Sources
//! - CUDA runtime API, *Stream Management*, *Event Management*; OpenCL API specification, clFinish,
//!   *Event Objects*.

use std::ops::Range;

use diag::Span;
use front::litmus::{Splice, respelled};
use program::Runtime;
use program::host::LaneKind;

use super::{Source, within};
use crate::knobs::{Knob, KnobLevel, Spot, Written, instr, spots};

/// The name of an event that a test does not have.
const EVENT: &str = "ordered";

/// A launch as written, by tokens.
struct LaunchCall {
    /// Its first token, and its semicolon.
    first: usize,
    last: usize,
    /// The stream or queue.
    lane: usize,
    /// For OpenCL: the commas between its arguments, and the bracket behind them.
    commas: Vec<usize>,
    close: usize,
}

impl Source<'_> {
    /// Calls that order the launches of host threads, or wait for them.
    pub(crate) fn calls(&self) -> Vec<Knob> {
        let program = &self.test.program;
        let Some(host) = &program.host else {
            return Vec::new();
        };
        let is_cuda = self.row.runtime == Some(Runtime::Cuda);
        let code: Vec<Range<usize>> = spots(program)
            .filter(|spot| host.command_of(spot.0).is_none())
            .map(|spot| instr(program, spot).span.range())
            .filter(|span| !span.is_empty())
            .collect();
        let Some((start, end)) = code
            .iter()
            .map(|s| s.start)
            .min()
            .zip(code.iter().map(|s| s.end).max())
        else {
            return Vec::new();
        };
        let lanes: Vec<&str> = (host.lanes.iter())
            .filter(|lane| lane.kind.is_stream() == is_cuda && lane.kind != LaneKind::OnDevice)
            .map(|lane| lane.name.as_str())
            .filter(|name| (0..self.tokens.len()).any(|at| self.token(at) == *name))
            .collect();
        let launches: Vec<LaunchCall> = (0..self.tokens.len())
            .filter(|at| (start..end).contains(&self.tokens[*at].start))
            .filter_map(|at| {
                if is_cuda {
                    self.launch(at)
                } else {
                    self.enqueue(at)
                }
            })
            .collect();
        let mut knobs = Vec::new();
        for (i, one) in launches.iter().enumerate() {
            let later = launches[i + 1..].iter();
            knobs.extend(later.filter_map(|other| {
                if is_cuda {
                    self.event(one, other)
                } else {
                    self.listed(one, other)
                }
            }));
        }
        let gaps = self
            .ends()
            .into_iter()
            .filter(|gap| start < gap.start && gap.start <= end + 1);
        for gap in gaps {
            if is_cuda {
                let waits = lanes
                    .iter()
                    .map(|lane| format!(" cudaStreamSynchronize({lane});"));
                knobs.extend(self.knob(
                    Written::Call,
                    &gap,
                    waits.chain([" cudaDeviceSynchronize();".to_owned()]),
                ));
            } else {
                let finish =
                    |lane: &&str| self.knob(Written::Call, &gap, [format!(" clFinish({lane});")]);
                knobs.extend(lanes.iter().filter_map(finish));
            }
        }
        for launch in &launches {
            for lane in lanes
                .iter()
                .filter(|lane| **lane != self.token(launch.lane))
            {
                let range = &self.tokens[launch.lane];
                let splice = Splice {
                    span: Span::new(range.start, range.end),
                    text: (*lane).to_owned(),
                };
                knobs.extend(self.call(launch, vec![splice]));
            }
        }
        knobs
    }

    /// A knob that changes calls, if the front end takes it.
    fn call(&self, launch: &LaunchCall, splices: Vec<Splice>) -> Option<Knob> {
        respelled(self.test, &splices)?;
        let span = Span::new(
            self.tokens[launch.first].start,
            self.tokens[launch.last].end,
        );
        let spots: Vec<Spot> = spots(&self.test.program)
            .filter(|spot| within(instr(&self.test.program, *spot).span, span))
            .collect();
        Some(Knob::written_so(
            Written::Call,
            &spots,
            vec![KnobLevel::text(splices)],
        ))
    }

    /// The statement around a token.
    fn around(&self, at: usize) -> Option<(usize, usize)> {
        let first = (0..at)
            .rev()
            .find(|i| matches!(self.token(*i), "" | ";" | "{" | "}"))
            .map_or(0, |i| i + 1);
        Some((
            first,
            (at..self.tokens.len()).find(|i| self.token(*i) == ";")?,
        ))
    }

    /// The launch whose `<<<` a token begins.
    fn launch(&self, at: usize) -> Option<LaunchCall> {
        let close = (at..self.tokens.len()).find(|i| matches!(self.token(*i), ">>" | ";"))?;
        let is_one =
            self.token(at) == "<<" && self.token(at + 1) == "<" && self.token(close + 1) == ">";
        let (first, last) = self.around(at)?;
        (is_one && self.before(close, 2) == ",").then(|| LaunchCall {
            first,
            last,
            lane: close - 1,
            commas: Vec::new(),
            close,
        })
    }

    /// The command that a token enqueues.
    fn enqueue(&self, at: usize) -> Option<LaunchCall> {
        if self.token(at) != "clEnqueueNDRangeKernel" {
            return None;
        }
        let (first, last) = self.around(at)?;
        let close = self.closing(at + 1)?;
        let mut depth = 0;
        let mut commas = Vec::new();
        for i in at + 1..close {
            match self.token(i) {
                "(" | "{" | "[" => depth += 1,
                ")" | "}" | "]" => depth -= 1,
                "," if depth == 1 => commas.push(i),
                _ => {}
            }
        }
        Some(LaunchCall {
            first,
            last,
            lane: at + 2,
            commas,
            close,
        })
    }

    /// An event that is recorded behind one launch, and waited for before another one.
    fn event(&self, one: &LaunchCall, other: &LaunchCall) -> Option<Knob> {
        let (from, to) = (self.token(one.lane), self.token(other.lane));
        if from == to {
            return None;
        }
        let text = self.text();
        let declared = text
            .lines()
            .find(|line| line.trim_start().starts_with("events"));
        let names = declared.map(|line| {
            line.split('"')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        });
        let mut splices = Vec::new();
        let name = match names {
            Some(names) => names
                .into_iter()
                .find(|name| (0..self.tokens.len()).all(|at| self.token(at) != name))?,
            None => {
                let line = text
                    .lines()
                    .find(|line| line.trim_start().starts_with("dialect"))?;
                let end = line.as_ptr() as usize - text.as_ptr() as usize + line.len();
                let text = format!("\nevents = [\"{EVENT}\"]");
                splices.push(Splice {
                    span: Span::new(end, end),
                    text,
                });
                EVENT.to_owned()
            }
        };
        let record = format!(" cudaEventRecord({name}, {from});");
        let wait = format!(" cudaStreamWaitEvent({to}, {name});");
        let gap = |at: usize| Span::new(self.tokens[at].end, self.tokens[at].end);
        if one.last + 1 == other.first {
            splices.push(Splice {
                span: gap(one.last),
                text: record + &wait,
            });
        } else {
            splices.push(Splice {
                span: gap(one.last),
                text: record,
            });
            splices.push(Splice {
                span: gap(other.first.checked_sub(1)?),
                text: wait,
            });
        }
        self.call(other, splices)
    }

    /// The event of one command in the wait list of another one.
    fn listed(&self, one: &LaunchCall, other: &LaunchCall) -> Option<Knob> {
        let before = |at: usize| Span::new(self.tokens[at].start, self.tokens[at].start);
        let mut splices = Vec::new();
        let argument =
            |launch: &LaunchCall, n: usize| launch.commas.get(n - 1).map(|comma| comma + 1);
        let name = match argument(one, 6) {
            Some(at) if self.token(at) == "&" => self.token(at + 1).to_owned(),
            Some(_) => return None,
            None => {
                let list = if argument(one, 5).is_some() {
                    ""
                } else {
                    ", NULL"
                };
                splices.push(Splice {
                    span: before(one.close),
                    text: format!("{list}, &{EVENT}"),
                });
                EVENT.to_owned()
            }
        };
        splices.push(match argument(other, 5) {
            None => Splice {
                span: before(other.close),
                text: format!(", {{{name}}}"),
            },
            Some(at) if self.token(at) == "NULL" => {
                let range = &self.tokens[at];
                Splice {
                    span: Span::new(range.start, range.end),
                    text: format!("{{{name}}}"),
                }
            }
            Some(at) if self.token(at) == "{" => Splice {
                span: before(at + 1),
                text: format!("{name}, "),
            },
            Some(_) => return None,
        });
        self.call(other, splices)
    }
}
