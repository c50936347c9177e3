//! Reads and writes the messages of the Language Server Protocol: a head with the length, a body in
//! JSON.
//!
//! # Sources
//! - *Language Server Protocol Specification*, 3.17, Base Protocol.

use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

/// The longest body, in bytes.
const LONGEST: u64 = 64 << 20;

/// What the input of an editor brings.
pub(super) enum Incoming {
    /// A message.
    Message(Value),
    /// A body without JSON, and the error.
    Garbage(String),
    /// The end, for a reason if it is an error.
    Closed(Option<String>),
}

/// Passes the messages of the input on, and then its end.
///
/// Passes a body without JSON on as garbage, because it can read the next message. It ends the
/// input after a head without a length, because it cannot tell where the next message begins.
pub(super) fn read<E: From<Incoming>>(input: &mut impl BufRead, events: &Sender<E>) {
    loop {
        let incoming = match body(input) {
            Ok(Some(body)) => match serde_json::from_slice(&body) {
                Ok(message) => Incoming::Message(message),
                Err(error) => Incoming::Garbage(error.to_string()),
            },
            Ok(None) => Incoming::Closed(None),
            Err(error) => Incoming::Closed(Some(error.to_string())),
        };
        let is_end = matches!(incoming, Incoming::Closed(_));
        if events.send(incoming.into()).is_err() || is_end {
            return;
        }
    }
}

/// The next body; `None` at the end of the input.
fn body(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut length: Option<u64> = None;
    loop {
        let mut line = Vec::new();
        // A head has two short lines.
        if input.by_ref().take(4096).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        if name.eq_ignore_ascii_case("Content-Length") {
            length = value.trim().parse().ok();
        }
    }
    let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    let length = length.ok_or_else(|| wrong("a message without `Content-Length`"))?;
    if length > LONGEST {
        return Err(wrong("a message over 64 MiB"));
    }
    let mut body = Vec::new();
    input.by_ref().take(length).read_to_end(&mut body)?;
    Ok((body.len() as u64 == length).then_some(body))
}

/// The output to the editor, shared by the threads that answer.
#[derive(Clone, Default)]
pub(super) struct Editor(Arc<Mutex<Option<io::Error>>>);

impl Editor {
    /// Whether the editor does not read any more.
    pub(super) fn is_lost(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    /// Sends a message.
    fn send(&self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        let mut failure = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_some() {
            return;
        }
        let body = message.to_string();
        let mut out = io::stdout().lock();
        let written = write!(out, "Content-Length: {}\r\n\r\n{body}", body.len());
        *failure = written.and_then(|()| out.flush()).err();
    }

    /// Answers a request.
    pub(super) fn answer(&self, id: &Value, result: Value) {
        self.send(json!({ "id": id, "result": result }));
    }

    /// Answers a request with an error.
    pub(super) fn refuse(&self, id: &Value, code: i32, text: &str) {
        self.send(json!({ "id": id, "error": { "code": code, "message": text } }));
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &str, params: Value) {
        self.send(json!({ "method": method, "params": params }));
    }

    /// Sends a request; its answer is not used.
    pub(super) fn request(&self, id: &str, method: &str, params: Value) {
        self.send(json!({ "id": id, "method": method, "params": params }));
    }

    /// Shows a text to the user.
    pub(super) fn show(&self, text: &str) {
        // 3: information
        self.notify("window/showMessage", json!({ "type": 3, "message": text }));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::mpsc::channel;

    use super::*;

    fn events(input: &str) -> Vec<Incoming> {
        let (sender, events) = channel();
        read(&mut Cursor::new(input.as_bytes()), &sender);
        drop(sender);
        events.into_iter().collect()
    }

    #[test]
    fn a_message_follows_garbage_of_the_right_length() {
        let got = events("Content-Length: 3\r\n\r\n{x}content-length: 2\r\nX: y\r\n\r\n{}");
        assert!(matches!(got[0], Incoming::Garbage(_)));
        assert!(matches!(&got[1], Incoming::Message(message) if *message == json!({})));
        assert!(matches!(got[2], Incoming::Closed(None)));
    }

    #[test]
    fn wrong_heads_and_cut_bodies_end_the_input() {
        for (input, is_error) in [
            ("garbage\n\n", true),
            ("Content-Length: 99999999999\r\n\r\n", true),
            ("Content-Length: 10\r\n\r\n{}", false),
            ("", false),
        ] {
            let got = events(input);
            assert_eq!(got.len(), 1, "{input}");
            assert!(
                matches!(&got[0], Incoming::Closed(why) if why.is_some() == is_error),
                "{input}"
            );
        }
    }
}
