//! Tests of the server for editors: transcripts of conversations.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::command;

/// An editor, and the server that it talks to.
struct Editor {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Editor {
    fn new(folder: &Path) -> Editor {
        let mut server = command(folder, &["lsp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut editor = Editor {
            input: server.stdin.take(),
            output: BufReader::new(server.stdout.take().expect("piped")),
            server,
            last: 0,
        };
        let able = json!({ "workspace": { "codeLens": { "refreshSupport": true } } });
        let hello = editor.ask("initialize", &json!({ "capabilities": able }));
        assert_eq!(hello["capabilities"]["hoverProvider"], true);
        editor.tell("initialized", &json!({}));
        editor
    }

    fn raw(&mut self, text: &str) {
        let input = self.input.as_mut().expect("open");
        input.write_all(text.as_bytes()).expect("it reads");
        input.flush().expect("it reads");
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.raw(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).expect("it writes") > 0,
                "it ended"
            );
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().expect("a number"),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).expect("it writes");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// The first message that this accepts; others are passed over.
    fn until(&mut self, accepts: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.read();
            if accepts(&message) {
                return message;
            }
        }
    }

    fn whole_answer(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.until(|message| message["id"] == id && message.get("method").is_none())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.whole_answer(method, params);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    fn open(&mut self, name: &str, text: &str) -> Value {
        let uri = format!("file:///nowhere/{name}");
        let item = json!({ "uri": uri, "languageId": "x", "version": 1, "text": text });
        self.tell("textDocument/didOpen", &json!({ "textDocument": item }));
        json!({ "uri": uri })
    }

    fn change(&mut self, document: &Value, version: u32, text: &str) {
        let item = json!({ "uri": document["uri"], "version": version });
        let changes = json!([{ "text": text }]);
        let params = json!({ "textDocument": item, "contentChanges": changes });
        self.tell("textDocument/didChange", &params);
    }

    /// The next diagnostics of a version that this accepts.
    fn diagnostics(&mut self, version: u32, accepts: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let message = self.until(|message| {
            let all = message["params"]["diagnostics"].as_array();
            message["params"]["version"] == version && all.is_some_and(|all| accepts(all))
        });
        message["params"]["diagnostics"]
            .as_array()
            .expect("a list")
            .clone()
    }

    fn end(mut self) -> Option<i32> {
        self.ask("shutdown", &Value::Null);
        self.tell("exit", &Value::Null);
        self.server.wait().expect("ours").code()
    }
}

const TEST: &str = "name = \"MP\"\ncondition = 'P1:r0 == 1 /\\ P1:r1 == 0'\n\
    memory = { x = 0, f = 0 }\n\
    [[thread]]\ncta = 0\ncode = '''\nst.weak x, 1\nst.release.cta f, 1\n'''\n\
    [[thread]]\ncta = 1\ncode = '''\nld.acquire.gpu r0, f\nld.weak r1, x\n'''\n\
    [expect]\nptx = { reachability = \"forbidden\" }\n";

fn at(line: u32, character: u32) -> Value {
    json!({ "line": line, "character": character })
}

#[test]
fn a_test_is_written_decided_repaired_and_blessed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut editor = Editor::new(folder.path());
    let document = editor.open("MP.toml", &TEST.replace(".cta f", ".ctaa f"));
    let wrong = editor.diagnostics(1, |all| !all.is_empty());
    assert_eq!(wrong[0]["code"], "unknown-qualifier");
    assert_eq!(wrong[0]["range"]["start"], at(7, 11));
    assert!(
        wrong[0]["message"]
            .as_str()
            .expect("a text")
            .contains("did you mean `cta`?")
    );

    editor.change(&document, 2, TEST);
    let unmet = editor.diagnostics(2, |all| !all.is_empty());
    assert_eq!(unmet[0]["code"], "expectation-not-met", "{unmet:?}");
    assert_eq!(unmet[0]["range"]["start"], at(16, 0));
    editor.until(|message| message["method"] == "workspace/codeLens/refresh");
    let asked = json!({ "textDocument": document });
    let lenses = editor.ask("textDocument/codeLens", &asked);
    assert_eq!(
        lenses[0]["command"]["title"],
        "ptx: allowed, expected forbidden"
    );

    let range = json!({ "start": at(16, 0), "end": at(16, 0) });
    let params = json!({ "textDocument": document, "range": range, "context": {} });
    let actions = editor.ask("textDocument/codeAction", &params);
    let titles: Vec<&str> = actions
        .as_array()
        .expect("a list")
        .iter()
        .map(|action| action["title"].as_str().expect("a title"))
        .collect();
    assert!(
        titles[0].contains("`.gpu` for `.cta` at line 8"),
        "{titles:?}"
    );
    let edit = &actions[0]["edit"]["changes"][document["uri"].as_str().expect("a URI")][0];
    assert_eq!(
        (&edit["newText"], &edit["range"]["start"]),
        (&json!(".gpu"), &at(7, 10))
    );

    let why = json!({ "command": "fencepost.why", "arguments": [document["uri"], "ptx"] });
    let reason = editor.ask("workspace/executeCommand", &why);
    assert!(
        reason
            .as_str()
            .expect("a text")
            .contains("it would be forbidden with"),
        "{reason}"
    );

    let bless = json!({ "command": "fencepost.bless", "arguments": [document["uri"]] });
    editor.send(&json!({ "id": 99, "method": "workspace/executeCommand", "params": bless }));
    let applied = editor.until(|message| message["method"] == "workspace/applyEdit");
    let uri = document["uri"].as_str().expect("a URI");
    let text = applied["params"]["edit"]["changes"][uri][0]["newText"]
        .as_str()
        .expect("a text");
    assert!(text.contains("reachability = \"allowed\""), "{text}");

    // The repair, typed: all is well.
    editor.change(&document, 3, &TEST.replace(".cta f", ".gpu f"));
    editor.until(|message| message["method"] == "workspace/codeLens/refresh");
    let lenses = editor.ask("textDocument/codeLens", &asked);
    assert_eq!(lenses[0]["command"]["title"], "ptx: forbidden");
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn words_are_explained_and_completed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut editor = Editor::new(folder.path());
    let model = editor.open("m.cat", "acyclic po | rf as sc\nirreflexive hbb as x\n");
    let wrong = editor.diagnostics(1, |all| !all.is_empty());
    assert_eq!(wrong[0]["range"]["start"]["line"], 1);
    let hover = |position| json!({ "textDocument": model, "position": position });
    let meaning = editor.ask("textDocument/hover", &hover(at(0, 8)));
    let text = meaning["contents"]["value"].as_str().expect("a text");
    assert!(text.contains("po"), "{text}");
    assert_eq!(
        editor.ask("textDocument/hover", &hover(at(1, 14))),
        Value::Null
    );
    let items = editor.ask("textDocument/completion", &hover(at(1, 13)));
    let has = |items: &Value, word: &str| {
        items
            .as_array()
            .is_some_and(|all| all.iter().any(|item| item["label"] == word))
    };
    assert!(has(&items, "rf") && has(&items, "irreflexive"), "{items}");
    let test = editor.open("MP.toml", TEST);
    let position = json!({ "textDocument": test, "position": at(7, 3) });
    assert!(has(
        &editor.ask("textDocument/completion", &position),
        "release"
    ));
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn a_kernel_is_decided_when_it_is_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut editor = Editor::new(folder.path());
    let kernel = "// fencepost: k<<<1, 2>>>(out[2])\n__global__ void k(int *out) {\n  \
        __shared__ int s[2];\n  s[threadIdx.x] = 1;\n  out[threadIdx.x] = s[1 - threadIdx.x];\n}\n";
    let document = editor.open("k.cu", kernel);
    let racy = editor.diagnostics(1, |all| !all.is_empty());
    assert_eq!(racy[0]["code"], "program-fault", "{racy:?}");
    assert_eq!(racy[0]["range"]["start"]["line"], 4);
    let fixed = kernel.replace("= 1;\n", "= 1; __syncthreads();\n");
    editor.change(&document, 2, &fixed);
    // Nothing is known of the new text before it is saved.
    editor.diagnostics(2, <[Value]>::is_empty);
    editor.tell("textDocument/didSave", &json!({ "textDocument": document }));
    editor.until(|message| message["method"] == "workspace/codeLens/refresh");
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn garbage_large_texts_and_a_closed_input_are_survived() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut editor = Editor::new(folder.path());
    editor.raw("Content-Length: 7\r\n\r\ngarbage");
    let error = editor.until(|message| message.get("error").is_some());
    assert_eq!(error["error"]["code"], -32700);
    editor.send(&json!([1, 2]));
    let error = editor.until(|message| message.get("error").is_some());
    assert_eq!(error["error"]["code"], -32600);
    let unknown = editor.whole_answer("textDocument/formatting", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
    let missing = json!({ "textDocument": { "uri": "file:///gone.toml" }, "position": "no" });
    assert_eq!(editor.ask("textDocument/hover", &missing), Value::Null);
    let command = json!({ "command": "fencepost.bless", "arguments": [] });
    let refused = editor.whole_answer("workspace/executeCommand", &command);
    assert!(
        refused["error"]["message"]
            .as_str()
            .expect("a text")
            .contains("URI")
    );
    // Ten megabytes: a warning says that the text is not read, and the server answers.
    let large = "# comment\n".repeat(1 << 20);
    let document = editor.open("large.toml", &large);
    let [warning] = &editor.diagnostics(1, |all| !all.is_empty())[..] else {
        panic!("one warning");
    };
    assert_eq!(
        (&warning["code"], &warning["severity"]),
        (&"long-text".into(), &2.into())
    );
    let said = warning["message"].as_str().expect("a text");
    assert!(said.starts_with("this text has 10 MiB;"), "{said}");
    assert!(
        said.ends_with("`fencepost check large.toml` checks the file"),
        "{said}"
    );
    let place = json!({ "textDocument": document, "position": at(9, 1) });
    assert!(editor.ask("textDocument/completion", &place).is_array());
    // The editor is gone, without a word.
    editor.input = None;
    assert_eq!(editor.server.wait().expect("ours").code(), Some(1));

    let mut editor = Editor::new(folder.path());
    editor.raw("no head\r\n\r\n");
    assert_eq!(editor.server.wait().expect("ours").code(), Some(2));
}
