//! `fencepost lsp`: a server for editors, which checks tests and models as they are typed.
//!
//! Tests and models are read in this process at each pause of typing. Deciding runs in a child,
//! which the next change cancels.
//!
//! # Invariants
//! - Every request gets exactly one answer.
//! - Diagnostics, lenses and edits speak of the current text: results for an older one are dropped.
//! - No message ends the server, but `exit`, a head without a length, and the end of the input.
//!
//! # Sources
//! - *Language Server Protocol Specification*, 3.17.

mod actions;
mod completion;
mod document;
mod messages;
mod text;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::child::{self, ChildJob, ChildOutcome, Finished, Input};
use super::exit;
use super::terminal::Terminal;
use document::{Document, DocumentKind};
use messages::{Editor, Incoming};

/// How long typing pauses before a text is read.
const QUIET: Duration = Duration::from_millis(150);

/// How long a run over a document may take.
const DECIDING: Duration = Duration::from_secs(60);

/// How long the meaning of a word may take.
const EXPLAINING: Duration = Duration::from_secs(10);

/// How many words the server looks up at the same time.
const HOVERS: usize = 4;

/// Codes of errors, from the JSON-RPC 2.0 specification and the protocol.
mod code {
    pub(super) const PARSE: i32 = -32700;
    pub(super) const INVALID_REQUEST: i32 = -32600;
    pub(super) const METHOD_NOT_FOUND: i32 = -32601;
    pub(super) const NOT_INITIALIZED: i32 = -32002;
    pub(super) const CANCELLED: i32 = -32800;
}

/// An input of the main loop.
enum LspInput {
    /// The editor says something.
    Incoming(Incoming),
    /// A child has ended.
    Ended(ChildPurpose, Option<Box<Finished>>),
}

impl From<Incoming> for LspInput {
    fn from(incoming: Incoming) -> LspInput {
        LspInput::Incoming(incoming)
    }
}

/// The purpose of a child.
enum ChildPurpose {
    /// The verdicts of a version of a document.
    Verdicts(String, Value),
    /// The meaning of a word, for a request.
    Hover(Value, String),
    /// The reason for an answer, for a request.
    Why(Value),
    /// Expectations as decided, of a version of a document, for a request.
    Bless(Value, String, Value),
}

/// Runs the server; returns the exit code.
pub(super) fn run(terminal: &Terminal) -> u8 {
    let (sender, events) = channel();
    let messages = sender.clone();
    // Detached: a read cannot be interrupted, and ends with the process.
    thread::spawn(move || messages::read(&mut io::stdin().lock(), &messages));
    let mut server = LspServer {
        editor: Editor::default(),
        sender,
        documents: BTreeMap::new(),
        unread: BTreeMap::new(),
        runs: BTreeMap::new(),
        meanings: BTreeMap::new(),
        hovers: 0,
        phase: LspPhase::Begun,
        refreshes: false,
    };
    let error = server.serve(&events);
    for cancelled in server.runs.values() {
        cancelled.store(true, Ordering::Relaxed);
    }
    if let Some(error) = error {
        terminal.remark(&format!("fencepost lsp: {error}"));
        return exit::INVALID;
    }
    match server.phase {
        // An `exit` without `shutdown` before it is an error, the protocol says.
        LspPhase::ShutDown => exit::OK,
        LspPhase::Begun | LspPhase::Serving => exit::UNMET,
    }
}

/// How far the conversation is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LspPhase {
    /// Before `initialize`.
    Begun,
    /// After it.
    Serving,
    /// After `shutdown`.
    ShutDown,
}

struct LspServer {
    editor: Editor,
    sender: Sender<LspInput>,
    documents: BTreeMap<String, Document>,
    /// Documents that changed, and when each is read.
    unread: BTreeMap<String, Instant>,
    /// By document: cancels its run.
    runs: BTreeMap<String, Arc<AtomicBool>>,
    /// Words with their meanings; an unknown word has the empty text.
    meanings: BTreeMap<String, String>,
    /// How many words are being looked up.
    hovers: usize,
    phase: LspPhase,
    /// Whether the editor asks for lenses again when told to.
    refreshes: bool,
}

impl LspServer {
    /// Serves until the end; the error that ended it.
    fn serve(&mut self, events: &Receiver<LspInput>) -> Option<String> {
        loop {
            match events.recv_timeout(QUIET / 3) {
                Ok(LspInput::Incoming(Incoming::Message(message))) => {
                    if message["method"] == "exit" {
                        return None;
                    }
                    self.take(&message);
                }
                Ok(LspInput::Incoming(Incoming::Garbage(error))) => {
                    let text = format!("a message without JSON: {error}");
                    self.editor.refuse(&Value::Null, code::PARSE, &text);
                }
                Ok(LspInput::Incoming(Incoming::Closed(error))) => return error,
                Ok(LspInput::Ended(purpose, finished)) => self.ended(purpose, finished),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
            self.read_changed();
            if self.editor.is_lost() || stop::requested().is_some() {
                return None;
            }
        }
    }

    fn take(&mut self, message: &Value) {
        let id = message.get("id").filter(|id| !id.is_null());
        let params = &message["params"];
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => self.request(id, method, params),
            (Some(method), None) if self.phase == LspPhase::Serving => self.notice(method, params),
            (Some(_), None) => {}
            // An answer of the editor to a request of this server.
            (None, Some(_)) if message.get("result").or(message.get("error")).is_some() => {}
            (None, id) => {
                let id = id.cloned().unwrap_or_default();
                self.editor
                    .refuse(&id, code::INVALID_REQUEST, "a message without a method");
            }
        }
    }

    fn notice(&mut self, method: &str, params: &Value) {
        let item = &params["textDocument"];
        let uri = item["uri"].as_str().unwrap_or_default();
        match method {
            "textDocument/didOpen" => {
                if let Some(document) = Document::new(item) {
                    self.documents.insert(document.uri.clone(), document);
                    self.changed(uri, Duration::ZERO);
                    self.decide_saved(uri);
                }
            }
            "textDocument/didChange" => {
                let changes = params["contentChanges"].as_array();
                let text = changes
                    .and_then(|all| all.last())
                    .and_then(|c| c["text"].as_str());
                if let (Some(document), Some(text)) = (self.documents.get_mut(uri), text) {
                    document.change(&item["version"], text);
                    self.changed(uri, QUIET);
                }
            }
            "textDocument/didSave" => self.decide_saved(uri),
            "textDocument/didClose" => {
                self.cancel(uri);
                self.unread.remove(uri);
                if self.documents.remove(uri).is_some() {
                    let none = json!({ "uri": uri, "diagnostics": [] });
                    self.editor.notify("textDocument/publishDiagnostics", none);
                }
            }
            _ => {}
        }
    }

    fn changed(&mut self, uri: &str, pause: Duration) {
        self.cancel(uri);
        self.unread.insert(uri.to_owned(), Instant::now() + pause);
    }

    fn cancel(&mut self, uri: &str) {
        if let Some(cancelled) = self.runs.remove(uri) {
            cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// Decides a source file, which is done when it is opened or saved.
    fn decide_saved(&mut self, uri: &str) {
        let document = self.documents.get(uri);
        if document.is_some_and(|document| document.language == DocumentKind::Source) {
            self.decide(uri);
        }
    }

    /// Reads each document that has been quiet for long enough.
    fn read_changed(&mut self) {
        let now = Instant::now();
        let due: Vec<String> = self
            .unread
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(uri, _)| uri.clone())
            .collect();
        for uri in due {
            self.unread.remove(&uri);
            let Some(document) = self.documents.get(&uri) else {
                continue;
            };
            let is_valid = self.publish(document);
            if is_valid && document.language.is_decided_at_once() {
                self.decide(&uri);
            }
        }
    }

    /// Sends the diagnostics of a document; whether its text can be decided.
    fn publish(&self, document: &Document) -> bool {
        let problems = document.problems();
        let is_error = |problem: &diag::Diagnostic| problem.severity == diag::Severity::Error;
        let is_valid = !document.is_too_long() && !problems.iter().any(is_error);
        self.editor.notify(
            "textDocument/publishDiagnostics",
            json!({
                "uri": document.uri,
                "version": document.version,
                "diagnostics": document.diagnostics(&problems),
            }),
        );
        is_valid
    }

    /// Decides a document in a child.
    fn decide(&mut self, uri: &str) {
        let Some(document) = self
            .documents
            .get(uri)
            .filter(|document| !document.is_too_long())
        else {
            return;
        };
        let purpose = ChildPurpose::Verdicts(uri.to_owned(), document.version.clone());
        let job = job(document, &["check", "--timeout=20s"], &["json", "sarif"]);
        self.cancel(uri);
        let cancelled = self.start(purpose, job);
        self.runs.insert(uri.to_owned(), cancelled);
    }

    /// Starts a child; what cancels it.
    fn start(&self, purpose: ChildPurpose, job: ChildJob) -> Arc<AtomicBool> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let (flag, sender) = (Arc::clone(&cancelled), self.sender.clone());
        thread::spawn(move || {
            let finished = match child::run(&job, &flag) {
                Ok(ChildOutcome::Finished(finished)) => Some(Box::new(finished)),
                Ok(ChildOutcome::OutOfTime | ChildOutcome::Cancelled) | Err(_) => None,
            };
            let _ = sender.send(LspInput::Ended(purpose, finished));
        });
        cancelled
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) {
        if method == "initialize" {
            self.phase = LspPhase::Serving;
            self.refreshes =
                params["capabilities"]["workspace"]["codeLens"]["refreshSupport"] == true;
            return self.editor.answer(id, capabilities());
        }
        match self.phase {
            LspPhase::Begun => {
                return self
                    .editor
                    .refuse(id, code::NOT_INITIALIZED, "send `initialize` first");
            }
            LspPhase::ShutDown => {
                return self
                    .editor
                    .refuse(id, code::INVALID_REQUEST, "the server is shut down");
            }
            LspPhase::Serving => {}
        }
        let uri = params["textDocument"]["uri"].as_str().unwrap_or_default();
        let document = self.documents.get(uri);
        let offset = document.map(|d| text::offset(&d.text, &params["position"]));
        match (method, document, offset) {
            ("shutdown", ..) => {
                self.phase = LspPhase::ShutDown;
                self.editor.answer(id, Value::Null);
            }
            ("textDocument/hover", Some(document), Some(offset)) => {
                let word = text::word(&document.text, offset).1.to_owned();
                self.hover(id, word);
            }
            ("textDocument/completion", Some(document), Some(offset)) => {
                self.editor
                    .answer(id, json!(completion::at(document, offset)));
            }
            ("textDocument/codeLens", Some(document), _) => {
                self.editor.answer(id, json!(actions::lenses(document)));
            }
            ("textDocument/codeAction", Some(document), _) => {
                let line = params["range"]["start"]["line"].as_u64().unwrap_or(0);
                self.editor.answer(id, json!(actions::at(document, line)));
            }
            ("workspace/executeCommand", ..) => self.command(id, params),
            // A document that the server leaves alone.
            (
                "textDocument/hover"
                | "textDocument/completion"
                | "textDocument/codeLens"
                | "textDocument/codeAction",
                ..,
            ) => self.editor.answer(id, Value::Null),
            (other, ..) => {
                let text = format!("unknown method `{other}`");
                self.editor.refuse(id, code::METHOD_NOT_FOUND, &text);
            }
        }
    }

    /// Answers with the meaning of a word, which a child finds at its first time.
    fn hover(&mut self, id: &Value, word: String) {
        if let Some(meaning) = self.meanings.get(&word) {
            return self.editor.answer(id, of_meaning(meaning));
        }
        if word.is_empty() || self.hovers >= HOVERS {
            return self.editor.answer(id, Value::Null);
        }
        self.hovers += 1;
        // Orders of C-like languages are explained by their last part.
        let prefixes = ["memory_order_", "memory_scope_", "thread_scope_"];
        let bare = prefixes.iter().find_map(|prefix| word.strip_prefix(prefix));
        let job = ChildJob {
            arguments: vec!["explain".to_owned()],
            input: Input::Word(bare.unwrap_or(&word).to_owned()),
            reports: &[],
            time: EXPLAINING,
        };
        self.start(ChildPurpose::Hover(id.clone(), word), job);
    }

    /// Runs a command of a lens or an action: `fencepost.why` and `fencepost.bless`, each with a
    /// document.
    fn command(&mut self, id: &Value, params: &Value) {
        let arguments = &params["arguments"];
        let uri = arguments[0].as_str().unwrap_or_default();
        let Some(document) = self.documents.get(uri) else {
            let text = "pass the URI of an open document as the first argument";
            return self.editor.refuse(id, code::INVALID_REQUEST, text);
        };
        match params["command"].as_str() {
            Some("fencepost.why") => {
                let mut line = vec!["ask", "--timeout=20s"];
                let model = arguments[1]
                    .as_str()
                    .map(|model| format!("--model={model}"));
                line.extend(model.as_deref());
                let job = job(document, &line, &["json"]);
                self.start(ChildPurpose::Why(id.clone()), job);
            }
            Some("fencepost.bless") => {
                let version = document.version.clone();
                let job = job(document, &["check", "--bless", "--timeout=20s"], &["json"]);
                self.start(
                    ChildPurpose::Bless(id.clone(), uri.to_owned(), version),
                    job,
                );
            }
            other => {
                let name = other.unwrap_or_default();
                let text = format!(
                    "unknown command `{name}`; there are fencepost.why and fencepost.bless"
                );
                self.editor.refuse(id, code::METHOD_NOT_FOUND, &text);
            }
        }
    }

    /// Passes the result of a child on.
    fn ended(&mut self, purpose: ChildPurpose, finished: Option<Box<Finished>>) {
        match (purpose, finished) {
            (ChildPurpose::Verdicts(uri, version), Some(finished)) => {
                self.decided(&uri, &version, *finished);
            }
            (ChildPurpose::Verdicts(..), None) => {}
            (ChildPurpose::Hover(id, word), finished) => {
                self.hovers -= 1;
                let text = finished.filter(|finished| finished.code == Some(0));
                let text = text.map(|finished| finished.out).unwrap_or_default();
                self.editor.answer(&id, of_meaning(&text));
                self.meanings.insert(word, text);
            }
            (ChildPurpose::Why(id), Some(finished)) => {
                let text = [finished.out.trim_end(), finished.err.trim_end()].join("\n");
                self.editor.show(text.trim());
                self.editor.answer(&id, json!(text.trim()));
            }
            (ChildPurpose::Bless(id, uri, version), Some(finished)) => {
                self.blessed(&id, &uri, &version, *finished);
            }
            (ChildPurpose::Why(id) | ChildPurpose::Bless(id, ..), None) => {
                let text = format!("no answer within {} s", DECIDING.as_secs());
                self.editor.refuse(&id, code::CANCELLED, &text);
            }
        }
    }

    /// Keeps the verdicts of a document, if its text is the same.
    fn decided(&mut self, uri: &str, version: &Value, finished: Finished) {
        let document = self.documents.get_mut(uri);
        let Some(document) = document.filter(|document| document.version == *version) else {
            return;
        };
        document.report = finished.report;
        document.sarif = finished.sarif;
        self.runs.remove(uri);
        self.publish(&self.documents[uri]);
        if self.refreshes {
            self.editor
                .request("lenses", "workspace/codeLens/refresh", Value::Null);
        }
    }

    /// Sends the edit that puts verdicts in the place of unmet expectations.
    fn blessed(&self, id: &Value, uri: &str, version: &Value, finished: Finished) {
        let document = self
            .documents
            .get(uri)
            .filter(|document| document.version == *version);
        let (Some(document), Some(text)) = (document, finished.text) else {
            let text = "the text changed meanwhile; bless it again";
            return self.editor.refuse(id, code::CANCELLED, text);
        };
        if text == document.text {
            self.editor
                .show("every expectation that can be rewritten is met");
        } else {
            let whole = text::range(&document.text, 0, document.text.len());
            let edit = json!({ "changes": { uri: [{ "range": whole, "newText": text }] } });
            let params = json!({ "label": "bless", "edit": edit });
            self.editor.request("bless", "workspace/applyEdit", params);
        }
        self.editor.answer(id, Value::Null);
    }
}

/// A run over the text of a document.
fn job(document: &Document, line: &[&str], reports: &'static [&'static str]) -> ChildJob {
    ChildJob {
        arguments: line.iter().map(|&word| word.to_owned()).collect(),
        input: Input::Text(document.name(), document.text.clone()),
        reports,
        time: DECIDING,
    }
}

/// The answer to a request for the meaning of a word.
fn of_meaning(text: &str) -> Value {
    match text.trim_end() {
        "" => Value::Null,
        text => {
            json!({ "contents": { "kind": "markdown", "value": format!("```text\n{text}\n```") } })
        }
    }
}

/// The answer to `initialize`.
fn capabilities() -> Value {
    json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            // 1: changes bring the whole text.
            "textDocumentSync": { "openClose": true, "change": 1, "save": true },
            "hoverProvider": true,
            "completionProvider": { "triggerCharacters": [".", "_", "\"", "'"] },
            "codeActionProvider": { "codeActionKinds": ["quickfix", "source"] },
            "codeLensProvider": {},
            "executeCommandProvider": { "commands": ["fencepost.why", "fencepost.bless"] },
        },
        "serverInfo": { "name": "fencepost", "version": env!("CARGO_PKG_VERSION") },
    })
}
