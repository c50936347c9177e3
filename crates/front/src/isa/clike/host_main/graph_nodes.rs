//! Graphs whose nodes the program adds one by one.
//!
//! A node is a command in a stream of its own. It waits for the events of the nodes that it depends
//! on, and records its own event.
//!
//! # Sources
//! - CUDA runtime API, *Graph Management*: cudaGraphCreate, cudaGraphAddKernelNode,
//!   cudaGraphAddMemcpyNode1D, cudaGraphAddMemsetNode, cudaGraphAddHostNode, cudaGraphAddEmptyNode,
//!   cudaGraphAddDependencies.

use std::collections::BTreeSet;
use std::ops::Range;

use super::launches::KernelLaunchCall;
use super::machine::Machine;
use super::parser::Read;
use super::runtime::{RuntimeCallSite, SUCCESS};
use super::values::{
    GraphNode, GraphObject, HostLine, HostValue, LineEffect, RecordValue, StreamCapture,
};

impl Machine<'_> {
    /// `cudaGraphCreate(&graph, 0)`
    pub(super) fn new_graph(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let cell = self.variable_at(call, 0)?;
        let origin = self.unique(&call.hint);
        self.state.graphs.push(GraphObject {
            capture: StreamCapture {
                streams: BTreeSet::from([origin.clone()]),
                origin,
                events: BTreeSet::new(),
                lines: Vec::new(),
                started: (0, 0),
            },
            nodes: Vec::new(),
            launches: 0,
            threads: 0,
            names: None,
            launched: false,
        });
        self.state.cells[cell].value = HostValue::Graph(self.state.graphs.len() - 1);
        Ok(SUCCESS)
    }

    /// `cudaGraphAdd…Node(&node, graph, dependencies, count, …)`
    pub(super) fn add_node(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let cell = self.variable_at(call, 0)?;
        let HostValue::Graph(graph) = self.operand(call, 1)? else {
            return self.unknown_graph(call);
        };
        let behind = self.nodes_at(call, 2, 3)?;
        let stream = self.unique(&call.hint);
        let event = self.unique(&format!("{}_done", call.hint));
        let capture = StreamCapture {
            origin: stream.clone(),
            streams: BTreeSet::from([stream.clone()]),
            events: BTreeSet::new(),
            lines: Vec::new(),
            started: (self.launches, self.threads),
        };
        if self.state.capture.replace(capture).is_some() {
            return self.wrong(
                call.range,
                "a node that is added while a stream is captured is not followed",
                "expected the end of the capture before",
                "add it behind the capture",
            );
        }
        self.node_command(call, &stream)?;
        let Some(capture) = self.state.capture.take() else {
            return self.unknown_graph(call);
        };
        let (launches, threads) = capture.started;
        let object = &mut self.state.graphs[graph];
        object.launches += self.launches - launches;
        object.threads += self.threads - threads;
        (self.launches, self.threads) = (launches, threads);
        object.capture.streams.insert(stream.clone());
        object.capture.events.insert(event.clone());
        object.nodes.push(GraphNode {
            stream,
            event,
            behind,
            lines: capture.lines,
            range: call.range.clone(),
        });
        let node = object.nodes.len() - 1;
        self.state.cells[cell].value = HostValue::Node(graph, node);
        Ok(SUCCESS)
    }

    /// The command of a node, in its stream.
    fn node_command(&mut self, call: &RuntimeCallSite<'_>, stream: &str) -> Read<()> {
        match call.name {
            "cudaGraphAddEmptyNode" => Ok(()),
            "cudaGraphAddKernelNode" => {
                let record = self.record_at(call, 4)?;
                let member = |name: &str| self.member_value(&record, name);
                let launch = KernelLaunchCall {
                    kernel: member("func"),
                    sizes: [member("gridDim"), member("blockDim")],
                    list: member("kernelParams"),
                    shared: member("sharedMemBytes"),
                    cooperative: false,
                };
                self.launch_by_list(&launch, stream, call.range)
            }
            "cudaGraphAddMemcpyNode1D" => self.copy_in(call, [4, 5, 6], stream),
            "cudaGraphAddMemsetNode" => {
                let record = self.record_at(call, 4)?;
                let [to, value, width, height, size] =
                    ["dst", "value", "width", "height", "elementSize"]
                        .map(|name| self.member_value(&record, name));
                if self.known(&height, call.range)? > 1 || self.known(&size, call.range)? != 1 {
                    return self.wrong(
                        call.range,
                        "this fill is not followed",
                        "expected one row, and elements of one byte",
                        "set `height = 1`, `elementSize = 1`, and `width` in bytes",
                    );
                }
                let arguments = [to, value, width];
                let fill = RuntimeCallSite {
                    arguments: &arguments,
                    hint: String::new(),
                    ..*call
                };
                self.fill_in(&fill, stream)
            }
            "cudaGraphAddHostNode" => {
                let record = self.record_at(call, 4)?;
                let [function, data] =
                    ["fn", "userData"].map(|name| self.member_value(&record, name));
                self.host_function_in(call, function, data, stream)
            }
            _ => self.refused(call),
        }
    }

    /// The structure to which an operand points.
    pub(super) fn record_at(&mut self, call: &RuntimeCallSite<'_>, at: usize) -> Read<RecordValue> {
        if let HostValue::Cell(cell) = self.operand(call, at)?
            && let HostValue::Record(record) = &self.state.cells[cell].value
        {
            return Ok(record.clone());
        }
        self.wrong(
            call.range,
            format!(
                "the structure that `{}` is handed is not worked out",
                call.name
            ),
            "expected the address of a variable",
            "declare it in this function, and hand over its address",
        )
    }

    /// The value of a member.
    pub(super) fn member_value(&self, record: &RecordValue, name: &str) -> HostValue {
        let at = record.of.member(name);
        at.map_or(HostValue::Unset, |at| {
            self.state.cells[record.first + at].value.clone()
        })
    }

    /// The nodes that an operand lists; `count` is the operand with their number.
    fn nodes_at(
        &mut self,
        call: &RuntimeCallSite<'_>,
        at: usize,
        count: usize,
    ) -> Read<Vec<usize>> {
        let (list, count) = (self.operand(call, at)?, self.number_at(call, count)?);
        let mut found = Vec::new();
        for i in 0..count.max(0) as usize {
            let value = match list {
                HostValue::Cell(first) => self.state.cells.get(first + i).map(|c| &c.value),
                _ => None,
            };
            match value {
                Some(HostValue::Node(_, node)) => found.push(*node),
                _ => {
                    return self.wrong(
                        call.range,
                        "a node that this one depends on is not worked out",
                        format!("expected {count} nodes of this graph"),
                        "keep nodes in variables or arrays",
                    );
                }
            }
        }
        Ok(found)
    }

    /// `cudaGraphAddDependencies(graph, from, to, count)`
    pub(super) fn add_dependencies(&mut self, call: &RuntimeCallSite<'_>) -> Read<HostValue> {
        let HostValue::Graph(graph) = self.operand(call, 0)? else {
            return self.unknown_graph(call);
        };
        let from = self.nodes_at(call, 1, 3)?;
        let to = self.nodes_at(call, 2, 3)?;
        for (from, to) in from.into_iter().zip(to) {
            self.state.graphs[graph].nodes[to].behind.push(from);
        }
        Ok(SUCCESS)
    }

    /// The calls of the nodes of a graph, each behind those that it depends on.
    pub(super) fn node_lines(&mut self, graph: &GraphObject) -> Read<Vec<HostLine>> {
        let mut lines = Vec::new();
        let mut done = vec![false; graph.nodes.len()];
        let mut line = |text: String, range: &Range<usize>| {
            lines.push(HostLine {
                text,
                range: range.clone(),
                effect: LineEffect::Call,
            });
        };
        while let Some(wait) = done.iter().position(|done| !done) {
            let ready = |node: &GraphNode| node.behind.iter().all(|before| done[*before]);
            let next = (0..done.len()).find(|at| !done[*at] && ready(&graph.nodes[*at]));
            let Some(next) = next else {
                let range = graph.nodes[wait].range.clone();
                let d = self
                    .code
                    .error("graph", &range, "this node depends on itself");
                return Err(Box::new(d.label("expected a graph without a circle")));
            };
            done[next] = true;
            let node = &graph.nodes[next];
            for before in &node.behind {
                let event = &graph.nodes[*before].event;
                line(
                    format!("cudaStreamWaitEvent({}, {event});", node.stream),
                    &node.range,
                );
            }
            for own in &node.lines {
                line(own.text.clone(), &own.range);
            }
            line(
                format!("cudaEventRecord({}, {});", node.event, node.stream),
                &node.range,
            );
            let origin = &graph.capture.origin;
            line(
                format!("cudaStreamWaitEvent({origin}, {});", node.event),
                &node.range,
            );
        }
        Ok(lines)
    }
}
