//! Tests of the server for coding agents: transcripts of conversations.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::command;

/// A client, and the server that it talks to.
struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn new() -> Client {
        let mut command = command(Path::new(env!("CARGO_MANIFEST_DIR")), &["mcp"]);
        let mut server = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        Client {
            input: server.stdin.take(),
            output: BufReader::new(server.stdout.take().expect("piped")),
            server,
        }
    }

    fn line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{line}").expect("it reads");
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it writes");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: `{line}`"))
    }

    /// The answer to a request; notifications before it are passed over.
    fn ask(&mut self, id: u32, method: &str, params: &Value) -> Value {
        self.line(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        loop {
            let answer = self.read();
            if answer["id"] == id {
                return answer;
            }
            assert!(answer.get("method").is_some(), "{answer}");
        }
    }

    /// The result of a call of a tool.
    fn call(&mut self, id: u32, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask(id, "tools/call", &params)["result"].clone()
    }

    /// Closes the input; the exit code.
    fn close(mut self) -> Option<i32> {
        self.input = None;
        self.server.wait().expect("ours").code()
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

const RACY: &str = "__global__ void k(int *out) {\n  __shared__ int s[2];\n  s[threadIdx.x] = 1;\n  \
    out[threadIdx.x] = s[1 - threadIdx.x];\n}\n";

const TEST: &str = "name = 'MP'\ncondition = 'P1:r0 == 1 /\\ P1:r1 == 0'\n\
    memory = { x = 0, f = 0 }\n\
    [[thread]]\ncta = 0\ncode = 'st.weak x, 1; st.release.gpu f, 1'\n\
    [[thread]]\ncta = 1\ncode = 'ld.acquire.gpu r0, f; ld.weak r1, x'\n\
    [expect]\nptx = { reachability = 'forbidden' }\n";

#[test]
fn an_agent_checks_a_kernel_and_asks_about_a_test() {
    let mut client = Client::new();
    let version = json!({ "protocolVersion": "2025-03-26", "capabilities": {} });
    let hello = client.ask(1, "initialize", &version);
    assert_eq!(hello["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(hello["result"]["serverInfo"]["name"], "fencepost");
    client.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let tools = client.ask(2, "tools/list", &json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = tools
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| {
            assert_eq!(tool["inputSchema"]["additionalProperties"], false);
            tool["name"].as_str().expect("a name")
        })
        .collect();
    assert_eq!(
        names,
        [
            "check_kernel",
            "is_outcome_allowed",
            "explain_race",
            "weakest_fences",
            "compare_models"
        ]
    );

    let launch = "k<<<1, 2>>>(out[2])";
    let kernel = json!({ "source": RACY, "language": "cuda", "launch": launch });
    let racy = client.call(3, "check_kernel", &kernel);
    assert_eq!(racy["isError"], false, "{racy}");
    assert!(
        text(&racy).contains("threads race on `s["),
        "{}",
        text(&racy)
    );
    assert!(text(&racy).contains("__syncthreads();"), "{}", text(&racy));
    let race = &racy["structuredContent"]["answers"][0];
    assert_eq!(
        (&race["verdict"], &race["race_lines"]),
        (&json!("racy"), &json!([3, 4]))
    );
    let fixed = RACY.replace("= 1;\n", "= 1;\n  __syncthreads();\n");
    let kernel = json!({ "source": fixed, "language": "cuda", "launch": launch });
    let fixed = client.call(4, "check_kernel", &kernel);
    assert_eq!(
        fixed["structuredContent"]["answers"][0]["verdict"], "race-free",
        "{fixed}"
    );

    let forbidden = client.call(
        5,
        "is_outcome_allowed",
        &json!({ "test": TEST, "model": "ptx" }),
    );
    assert_eq!(
        forbidden["structuredContent"]["answers"][0]["verdict"],
        "forbidden"
    );
    assert!(
        text(&forbidden).contains("Causality"),
        "{}",
        text(&forbidden)
    );
    let other = json!({ "test": TEST, "model": "ptx", "outcome": "P1:r0 == 0" });
    let allowed = client.call(6, "is_outcome_allowed", &other);
    assert_eq!(
        allowed["structuredContent"]["answers"][0]["verdict"],
        "allowed"
    );
    let models = json!({ "test": TEST.replace(".gpu f", ".cta f"), "models": ["ptx", "sc"] });
    let compared = client.call(7, "compare_models", &models);
    assert!(
        text(&compared).contains("scope inclusion"),
        "{}",
        text(&compared)
    );
    let fences = client.call(8, "weakest_fences", &json!({ "test": TEST }));
    assert!(text(&fences).contains("MP"), "{}", text(&fences));
    let race = client.call(
        9,
        "explain_race",
        &json!({ "test": TEST.replace(".gpu f", ".cta f") }),
    );
    assert!(text(&race).contains("race on `x`"), "{}", text(&race));
    assert_eq!(client.close(), Some(0));
}

#[test]
fn garbage_gets_an_error_and_the_next_request_an_answer() {
    let mut client = Client::new();
    for (line, code) in [
        ("garbage", -32700),
        ("[]", -32600),
        ("{}", -32600),
        (r#"{"id":1}"#, -32600),
        (r#"{"id":[],"method":"ping"}"#, -32600),
        (r#"{"id":1,"method":"tools/cal"}"#, -32601),
        (r#"{"id":1,"method":"tools/call"}"#, -32602),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"chek_kernel"}}"#,
            -32602,
        ),
    ] {
        client.line(line);
        assert_eq!(client.read()["error"]["code"], code, "{line}");
    }
    client.line("");
    client.line(r#"{"method":"notifications/unheard-of"}"#);
    client.line(r#"{"method":"notifications/cancelled","params":{"requestId":77}}"#);
    let wrong = client.call(
        2,
        "check_kernel",
        &json!({ "source": "int", "langauge": "cuda" }),
    );
    assert_eq!(wrong["isError"], true);
    assert!(
        text(&wrong).contains("takes no argument `langauge`"),
        "{wrong}"
    );
    let no_test = json!({ "test": "name = 'x'\ncolour = 1\n" });
    let invalid = client.call(3, "is_outcome_allowed", &no_test);
    assert_eq!(invalid["isError"], true);
    assert!(text(&invalid).contains("test.toml:2"), "{}", text(&invalid));
    assert_eq!(client.ask(4, "ping", &json!({}))["result"], json!({}));
    assert_eq!(client.close(), Some(0));
}

/// A test that takes minutes.
fn long() -> String {
    let mut test =
        "name = 'long'\ncondition = 'P0:r0 == 77'\nmemory = { x = 0, y = 0, z = 0 }\n".to_owned();
    for thread in 0..8 {
        let code = (0..6)
            .map(|at| {
                let (a, b) = (["x", "y", "z"][(thread + at) % 3], ["y", "z", "x"][at % 3]);
                let sum = format!("add.s32 r{at}, r{at}, {at};");
                format!("ld.relaxed.gpu r{at}, {a}; {sum} st.relaxed.gpu {b}, r{at};")
            })
            .collect::<String>();
        test += &format!("[[thread]]\ncta = {thread}\ncode = '{code}'\n");
    }
    test
}

#[test]
fn a_long_call_reports_progress_ends_at_its_limit_and_is_cancelled() {
    let mut client = Client::new();
    let call = |id: u32, seconds: u32| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "is_outcome_allowed",
            "arguments": { "test": long(), "model": "ptx", "timeout_seconds": seconds },
            "_meta": { "progressToken": id },
        } })
        .to_string()
    };
    let begun = Instant::now();
    client.line(&call(1, 600));
    let progress = client.read();
    assert_eq!(progress["method"], "notifications/progress", "{progress}");
    assert_eq!(progress["params"]["progressToken"], 1);
    let cancel = json!({ "method": "notifications/cancelled", "params": { "requestId": 1 } });
    client.line(&cancel.to_string());
    // A cancelled call gets no answer, and the server serves on.
    let pong = client.ask(2, "ping", &json!({}));
    assert_eq!(pong["result"], json!({}));
    client.line(&call(3, 2));
    let result = loop {
        let answer = client.read();
        assert_ne!(answer["id"], 1, "cancelled");
        if answer["id"] == 3 {
            break answer["result"].clone();
        }
    };
    assert!(
        text(&result).contains("No answer within 2 s") || text(&result).contains("undecided"),
        "{result}"
    );
    assert_eq!(client.close(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(120));
}
