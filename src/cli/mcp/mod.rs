//! `fencepost mcp`: a server for coding agents, which call it as an oracle for their kernels.
//!
//! Messages are JSON-RPC 2.0, one per line: requests on standard input, answers on standard output.
//!
//! # Invariants
//! - Every request gets exactly one answer, unless it was cancelled; then it gets none.
//! - No input ends the server before its standard input ends: garbage gets an error.
//! - Each call runs in a child with a time limit, at most [`AT_ONCE`] at a time.
//! - When standard input ends, running calls may finish; on a signal, they end at once.
//!
//! # Sources
//! - *Model Context Protocol*, revision 2025-06-18: Lifecycle, Transports (stdio), Tools, Utilities
//!   (Cancellation, Ping, Progress).

mod answer;
mod tools;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::terminal::Terminal;
use super::{child, exit};

/// The revisions of the protocol that the server speaks, newest first.
const REVISIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];

/// How many calls run at the same time; others wait.
const AT_ONCE: usize = 2;

/// How many calls may wait or run.
const MOST: usize = 64;

/// The longest message, in bytes.
const LONGEST: u64 = 16 << 20;

/// How often a call reports its progress.
const PROGRESS: Duration = Duration::from_secs(1);

/// How often the server looks for a signal.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the server waits for cancelled calls at its end.
const PATIENCE: Duration = Duration::from_secs(2);

const INSTRUCTIONS: &str = "\
Fencepost decides questions about the memory model of GPU programs: races, barriers, orders and \
scopes of atomics in CUDA C++, OpenCL C and PTX. Its answers rest on proofs or on executions, not \
on tests. Call check_kernel after each change of a kernel with shared memory, atomics, barriers or \
flags. Verdicts: `racy` and `allowed` come with an execution or two lines; `undecided` is no \
answer, and says what to try next.";

/// Codes of errors, from the JSON-RPC 2.0 specification.
mod code {
    pub(super) const PARSE: i32 = -32700;
    pub(super) const INVALID_REQUEST: i32 = -32600;
    pub(super) const METHOD_NOT_FOUND: i32 = -32601;
    pub(super) const INVALID_PARAMS: i32 = -32602;
}

/// An input of the main loop.
enum McpInput {
    /// A line of standard input.
    Line(Vec<u8>),
    /// A line over [`LONGEST`], which was skipped.
    TooLong,
    /// A call has ended; its request.
    Ended(String),
}

/// Runs the server; returns the exit code.
pub(super) fn run(terminal: &Terminal) -> u8 {
    let (sender, events) = channel();
    let lines = sender.clone();
    // Detached: a read cannot be interrupted, and ends with the process.
    thread::spawn(move || read(&mut io::stdin().lock(), &lines));
    let mut server = McpServer {
        out: Arc::new(Mutex::new(None)),
        sender,
        calls: BTreeMap::new(),
        permits: Permits::new(AT_ONCE),
    };
    server.serve(&events);
    match server.failure() {
        Some(error) if !super::terminal::reader_left(&error) => {
            terminal.diagnose(&super::terminal::cannot_write(
                "standard output".as_ref(),
                &error,
            ));
            exit::INVALID
        }
        _ => exit::OK,
    }
}

/// Passes the lines of the input on; an empty line is the end.
fn read(input: &mut impl BufRead, lines: &Sender<McpInput>) {
    loop {
        let mut line = Vec::new();
        let got = input.by_ref().take(LONGEST).read_until(b'\n', &mut line);
        let is_end = !matches!(got, Ok(1..));
        let is_cut = line.len() as u64 == LONGEST && line.last() != Some(&b'\n');
        let event = if is_cut && skip_line(input).is_ok() {
            McpInput::TooLong
        } else {
            McpInput::Line(line)
        };
        if lines.send(event).is_err() || is_end {
            return;
        }
    }
}

/// Skips the rest of a line.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let (length, is_done) = match end {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        input.consume(length);
        if is_done {
            return Ok(());
        }
    }
}

/// The error of the first failed write, shared by the threads that write.
type Failure = Arc<Mutex<Option<io::Error>>>;

struct McpServer {
    /// Held while a message is written.
    out: Failure,
    sender: Sender<McpInput>,
    /// By request: whether the call is cancelled.
    calls: BTreeMap<String, Arc<AtomicBool>>,
    permits: Arc<Permits>,
}

impl McpServer {
    fn serve(&mut self, events: &Receiver<McpInput>) {
        let mut is_open = true;
        while is_open || !self.calls.is_empty() {
            match events.recv_timeout(PAUSE) {
                Ok(McpInput::Line(line)) if line.is_empty() => is_open = false,
                Ok(McpInput::Line(line)) => self.take(&line),
                Ok(McpInput::TooLong) => {
                    let message = "the message is longer than 16 MiB; pass a `path` instead";
                    self.refuse(&Value::Null, code::INVALID_REQUEST, message);
                }
                Ok(McpInput::Ended(id)) => _ = self.calls.remove(&id),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let is_lost = self
                .out
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_some();
            if is_lost || stop::requested().is_some() {
                break;
            }
        }
        for cancelled in self.calls.values() {
            cancelled.store(true, Ordering::Relaxed);
        }
        // Each call ends its child first.
        let end = Instant::now() + PATIENCE;
        while !self.calls.is_empty() && Instant::now() < end {
            if let Ok(McpInput::Ended(id)) = events.recv_timeout(PAUSE) {
                self.calls.remove(&id);
            }
        }
    }

    /// The error that ended the output, if one did.
    fn failure(self) -> Option<io::Error> {
        self.out
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn refuse(&self, id: &Value, code: i32, message: &str) {
        write(
            &self.out,
            &json!({
                "jsonrpc": "2.0",
                "id": id,
                "error": { "code": code, "message": message },
            }),
        );
    }

    fn answer(&self, id: &Value, result: &Value) {
        write(
            &self.out,
            &json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        );
    }

    /// Handles a line.
    fn take(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let message: Value = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => {
                let text = format!("no JSON: {error}; send one JSON-RPC message per line");
                return self.refuse(&Value::Null, code::PARSE, &text);
            }
        };
        let id = message.get("id").cloned();
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            // An answer of the client to a request; this server sends none.
            if message.get("result").is_some() || message.get("error").is_some() {
                return;
            }
            let text = "no `method`; send one JSON-RPC object per line, no batches";
            return self.refuse(&id.unwrap_or_default(), code::INVALID_REQUEST, text);
        };
        let params = message.get("params").cloned().unwrap_or_else(|| json!({}));
        match id {
            None => self.notice(method, &params),
            Some(id @ (Value::String(_) | Value::Number(_))) => self.request(&id, method, &params),
            Some(_) => {
                let text = "`id` is a string or a number";
                self.refuse(&Value::Null, code::INVALID_REQUEST, text);
            }
        }
    }

    /// Handles a notification; unknown ones are ignored, as the protocol wants.
    fn notice(&self, method: &str, params: &Value) {
        if method == "notifications/cancelled"
            && let Some(cancelled) = self.calls.get(&name_of(&params["requestId"]))
        {
            cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) {
        match method {
            "initialize" => self.answer(id, &greeting(params)),
            "ping" => self.answer(id, &json!({})),
            "tools/list" => self.answer(id, &json!({ "tools": tools::list() })),
            "tools/call" => self.call(id, params),
            other => {
                let text = format!(
                    "unknown method `{other}`; there are initialize, ping, tools/list, tools/call"
                );
                self.refuse(id, code::METHOD_NOT_FOUND, &text);
            }
        }
    }

    /// Begins a call of a tool.
    fn call(&mut self, id: &Value, params: &Value) {
        let name = params["name"].as_str().unwrap_or_default();
        let Some(tool) = tools::named(name) else {
            let text = format!("unknown tool `{name}`; there are {}", tools::names());
            return self.refuse(id, code::INVALID_PARAMS, &text);
        };
        let key = name_of(id);
        if self.calls.contains_key(&key) {
            let text = format!("a call with the id {id} is running");
            return self.refuse(&Value::Null, code::INVALID_REQUEST, &text);
        }
        let arguments = params
            .get("arguments")
            .cloned()
            .unwrap_or_else(|| json!({}));
        let job = match tool.job(arguments) {
            Ok(job) => job,
            Err(wrong) => return self.answer(id, &answer::failed(&wrong)),
        };
        if self.calls.len() >= MOST {
            let text = format!("{MOST} calls are running or waiting; call again later");
            return self.answer(id, &answer::failed(&text));
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        self.calls.insert(key.clone(), Arc::clone(&cancelled));
        let call = Call {
            id: id.clone(),
            token: params["_meta"].get("progressToken").cloned(),
            job,
            cancelled,
            permits: Arc::clone(&self.permits),
            out: Arc::clone(&self.out),
        };
        let sender = self.sender.clone();
        thread::spawn(move || {
            call.run();
            let _ = sender.send(McpInput::Ended(key));
        });
    }
}

/// A running call.
struct Call {
    id: Value,
    /// The token with which the client asked for progress.
    token: Option<Value>,
    job: child::ChildJob,
    cancelled: Arc<AtomicBool>,
    permits: Arc<Permits>,
    out: Failure,
}

impl Call {
    fn run(self) {
        while !self.permits.take() {
            if self.cancelled.load(Ordering::Relaxed) || stop::requested().is_some() {
                return;
            }
            thread::sleep(PAUSE / 4);
        }
        let result = thread::scope(|scope| {
            let (done, waits) = channel::<()>();
            scope.spawn(|| self.report(waits));
            let result = child::run(&self.job, &self.cancelled);
            drop(done);
            result
        });
        self.permits.give_back();
        let result = match result {
            Ok(child::ChildOutcome::Cancelled) => return,
            Ok(child::ChildOutcome::OutOfTime) => answer::out_of_time(self.job.time),
            Ok(child::ChildOutcome::Finished(finished)) => answer::of(&finished),
            Err(error) => answer::failed(&format!("cannot run the question: {error}")),
        };
        write(
            &self.out,
            &json!({ "jsonrpc": "2.0", "id": self.id, "result": result }),
        );
    }

    /// Reports progress if the call has a token, until the channel closes.
    fn report(&self, waits: Receiver<()>) {
        let Some(token) = &self.token else {
            return;
        };
        let begun = Instant::now();
        while waits.recv_timeout(PROGRESS) == Err(RecvTimeoutError::Timeout) {
            let seconds = begun.elapsed().as_secs();
            write(
                &self.out,
                &json!({
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": {
                        "progressToken": token,
                        "progress": seconds,
                        "total": self.job.time.as_secs(),
                        "message": format!("deciding for {seconds} s"),
                    },
                }),
            );
        }
    }
}

/// A request by its id: `1` and `"1"` differ.
fn name_of(id: &Value) -> String {
    id.to_string()
}

/// The answer to `initialize`.
fn greeting(params: &Value) -> Value {
    let wanted = params["protocolVersion"].as_str().unwrap_or_default();
    let revision = REVISIONS.iter().find(|&&revision| revision == wanted);
    json!({
        "protocolVersion": revision.unwrap_or(&REVISIONS[0]),
        "capabilities": { "tools": {} },
        "serverInfo": {
            "name": "fencepost",
            "title": "Fencepost",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "instructions": INSTRUCTIONS,
    })
}

/// Writes a message. The first error is kept, and nothing is written after it.
fn write(out: &Failure, message: &Value) {
    let mut failure = out.lock().unwrap_or_else(PoisonError::into_inner);
    if failure.is_some() {
        return;
    }
    if streams::stdout_was_closed() {
        *failure = Some(io::Error::other("it is closed"));
        return;
    }
    let mut stdout = io::stdout().lock();
    let written = writeln!(stdout, "{message}").and_then(|()| stdout.flush());
    *failure = written.err();
}

/// How many more calls may run.
struct Permits(Mutex<usize>);

impl Permits {
    fn new(count: usize) -> Arc<Permits> {
        Arc::new(Permits(Mutex::new(count)))
    }

    fn take(&self) -> bool {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = *left > 0;
        *left -= usize::from(is_free);
        is_free
    }

    fn give_back(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn long_lines_are_skipped_and_the_next_one_is_read() {
        let mut input = vec![b'x'; LONGEST as usize + 5];
        input.extend(b"\nnext\n");
        let (sender, events) = channel();
        read(&mut Cursor::new(input), &sender);
        drop(sender);
        let got: Vec<McpInput> = events.into_iter().collect();
        assert!(matches!(got[0], McpInput::TooLong));
        assert!(matches!(&got[1], McpInput::Line(line) if line == b"next\n"));
        assert!(matches!(&got[2], McpInput::Line(line) if line.is_empty()));
        assert_eq!(got.len(), 3);
    }
}
