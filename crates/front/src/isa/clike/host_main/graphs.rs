//! Graphs that streams capture, and their launches.
//!
//! A launch of a graph becomes the captured calls in streams and events of the graph's own, between
//! two events of the stream that it is launched in.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *CUDA Graphs*, *Creating a Graph Using Stream Capture*; CUDA
//!   runtime API, cudaStreamBeginCapture, cudaGraphLaunch: a launch is ordered behind earlier work
//!   of its stream and behind earlier launches of the graph.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::machine::Machine;
use super::parser::Read;
use super::runtime::{RuntimeCallSite, SUCCESS};
use super::values::{
    EventObject, GraphObject, HostLine, HostValue, LineEffect, StreamCapture, StreamObject,
};

impl Machine<'_> {
    /// `cudaStreamBeginCapture(stream, mode)`
    pub(super) fn begin_capture(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let stream = self.operand(call, 0)?;
        let origin = self.stream_text(&stream, call)?;
        if self.state.capture.is_some() {
            return self.wrong(
                call.range,
                "two captures at once are not followed",
                "expected the end of the other capture before",
                "capture one graph behind the other",
            );
        }
        if !self.state.streams.iter().any(|s| s.name == origin) {
            let d = self
                .code
                .error("capture", call.range, "a default stream cannot be captured");
            return Err(Box::new(
                d.label("expected a stream that the program makes").note(
                    "capture of the legacy default stream is an error (CUDA runtime API, \
                 cudaStreamBeginCapture)",
                ),
            ));
        }
        self.state.capture = Some(StreamCapture {
            streams: BTreeSet::from([origin.clone()]),
            origin,
            events: BTreeSet::new(),
            lines: Vec::new(),
            started: (self.launches, self.threads),
        });
        Ok(SUCCESS)
    }

    /// Takes a call into the capture, if it is of a stream that is captured.
    pub(super) fn captured(&mut self, text: &str, range: &Range<usize>) -> Read<bool> {
        let Some(capture) = &mut self.state.capture else {
            return Ok(false);
        };
        let names = operands(text);
        let is_captured = names.iter().any(|name| capture.streams.contains(*name));
        let joins = text.starts_with("cudaStreamWaitEvent")
            && names.iter().any(|name| capture.events.contains(*name));
        if !is_captured && !joins {
            return Ok(false);
        }
        let waits = [
            "cudaStreamSynchronize",
            "cudaStreamDestroy",
            "cudaDeviceSynchronize",
        ];
        if waits.iter().any(|call| text.starts_with(call)) {
            let d = self
                .code
                .error("capture", range, "a stream that is captured is waited for");
            return Err(Box::new(
                d.label("expected `cudaStreamEndCapture` before").note(
                    "a stream must not be synchronized while it is captured (CUDA C++ Programming \
                 Guide, Creating a Graph Using Stream Capture)",
                ),
            ));
        }
        if joins && let Some(stream) = names.first() {
            capture.streams.insert((*stream).to_owned());
        }
        if text.starts_with("cudaEventRecord")
            && let Some(event) = names.first()
        {
            capture.events.insert((*event).to_owned());
        }
        capture.lines.push(HostLine {
            text: text.to_owned(),
            range: range.clone(),
            effect: LineEffect::Call,
        });
        Ok(true)
    }

    /// `cudaStreamEndCapture(stream, &graph)`
    pub(super) fn end_capture(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let Some(capture) = self.state.capture.take() else {
            return self.wrong(
                call.range,
                "no capture ends here",
                "expected `cudaStreamBeginCapture` before",
                "begin a capture of this stream",
            );
        };
        let (launches, threads) = capture.started;
        let graph = GraphObject {
            launches: self.launches - launches,
            threads: self.threads - threads,
            capture,
            nodes: Vec::new(),
            names: None,
            launched: false,
        };
        // They run at the launches of the graph.
        (self.launches, self.threads) = (launches, threads);
        self.state.graphs.push(graph);
        let cell = self.variable_at(call, 1)?;
        self.state.cells[cell].value = HostValue::Graph(self.state.graphs.len() - 1);
        Ok(SUCCESS)
    }

    /// Calls on graphs.
    pub(super) fn graph_call(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        match call.name {
            "cudaGraphInstantiate" | "cudaGraphInstantiateWithFlags" => {
                let cell = self.variable_at(call, 0)?;
                let HostValue::Graph(graph) = self.operand(call, 1)? else {
                    return self.unknown_graph(call);
                };
                // Each instance orders its own launches.
                let made = self.state.graphs[graph].clone();
                self.state.graphs.push(made);
                self.state.cells[cell].value = HostValue::Graph(self.state.graphs.len() - 1);
                Ok(SUCCESS)
            }
            "cudaGraphLaunch" => {
                let HostValue::Graph(graph) = self.operand(call, 0)? else {
                    return self.unknown_graph(call);
                };
                let stream = self.stream_at(call, 1)?;
                self.launch_graph(graph, &stream, call.range)?;
                Ok(SUCCESS)
            }
            "cudaGraphCreate" => self.new_graph(call),
            "cudaGraphAddDependencies" => self.add_dependencies(call),
            name if name.starts_with("cudaGraphAdd") => self.add_node(call),
            "cudaGraphDestroy" | "cudaGraphExecDestroy" | "cudaGraphUpload" => Ok(SUCCESS),
            _ => self.refused(call),
        }
    }

    pub(super) fn unknown_graph<T>(&mut self, call: &RuntimeCallSite<'_>) -> Read<T> {
        self.wrong(
            call.range,
            "this graph is not worked out",
            "expected a graph that a stream captured",
            "make the graph with `cudaStreamBeginCapture` and `cudaStreamEndCapture`",
        )
    }

    /// Emits the calls of a graph.
    fn launch_graph(&mut self, graph: usize, stream: &str, range: &Range<usize>) -> Read<()> {
        let names = match self.state.graphs[graph].names.clone() {
            Some(names) => names,
            None => self.graph_names(graph),
        };
        let object = self.state.graphs[graph].clone();
        let (starts, ends) = (names["starts"].clone(), names["ends"].clone());
        self.emit_call(format!("cudaEventRecord({starts}, {stream});"), range)?;
        for captured in &object.capture.streams {
            let own = &names[captured];
            self.emit_call(format!("cudaStreamWaitEvent({own}, {starts});"), range)?;
            if object.launched {
                self.emit_call(format!("cudaStreamWaitEvent({own}, {ends});"), range)?;
            }
        }
        let nodes = self.node_lines(&object)?;
        for line in object.capture.lines.iter().chain(&nodes) {
            self.emit_call(renamed(&line.text, &names), &line.range)?;
        }
        let origin = &names[&object.capture.origin];
        self.emit_call(format!("cudaEventRecord({ends}, {origin});"), range)?;
        self.emit_call(format!("cudaStreamWaitEvent({stream}, {ends});"), range)?;
        self.launches += object.launches;
        self.threads += object.threads;
        let object = &mut self.state.graphs[graph];
        (object.names, object.launched) = (Some(names), true);
        for object in self.state.memory.iter_mut().filter(|memory| memory.escapes) {
            object.shadow.fill(None);
        }
        Ok(())
    }

    /// Streams and events of a graph's own, by the names of the captured ones.
    fn graph_names(&mut self, graph: usize) -> BTreeMap<String, String> {
        let capture = self.state.graphs[graph].capture.clone();
        let mut names = BTreeMap::new();
        for stream in &capture.streams {
            let name = self.unique(&format!("{stream}_graph"));
            self.state.streams.push(StreamObject {
                name: name.clone(),
                blocking: false,
                destroyed: None,
            });
            names.insert(stream.clone(), name);
        }
        let own = ["starts", "ends"].map(str::to_owned);
        for event in capture.events.iter().chain(&own) {
            let name = self.unique(&format!("graph_{event}"));
            self.state.events.push(EventObject {
                name: name.clone(),
                destroyed: None,
            });
            names.insert(event.clone(), name);
        }
        names
    }
}

/// The names among the operands of a call.
fn operands(text: &str) -> Vec<&str> {
    let open = text.find("<<<").or_else(|| text.find('(')).unwrap_or(0);
    let all = text[open..].split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    all.filter(|part| part.starts_with(|c: char| !c.is_ascii_digit()))
        .collect()
}

/// A call with other names among its operands.
fn renamed(text: &str, names: &BTreeMap<String, String>) -> String {
    let open = text.find("<<<").or_else(|| text.find('(')).unwrap_or(0);
    fn word(c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_'
    }
    let mut out = text[..open].to_owned();
    let mut rest = &text[open..];
    while let Some(c) = rest.chars().next() {
        let end = match word(c) {
            true => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            false => c.len_utf8(),
        };
        let part = &rest[..end];
        out += names.get(part).map_or(part, String::as_str);
        rest = &rest[end..];
    }
    out
}
