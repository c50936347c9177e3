//! The tools of the server: names, schemas, and the command line that each call becomes.

use std::collections::BTreeMap;
use std::time::Duration;

use cat::model::Library;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::child::{ChildJob, Input};

/// The limit of a call without one, in seconds.
const TIME: u64 = 60;

/// The largest limit of a call, in seconds.
const LONGEST: u64 = 600;

/// A tool.
pub(super) struct Tool {
    name: &'static str,
    title: &'static str,
    doc: &'static str,
    /// The command that answers, with the options that it always has.
    command: &'static [&'static str],
    /// The arguments that it takes in addition to those of every tool.
    takes: &'static [Parameter],
    /// The form of its input.
    input: InputForm,
}

/// The form of an input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InputForm {
    /// A source file with kernels.
    Source,
    /// A litmus test.
    Test,
    /// Either of them.
    Any,
}

/// An argument that only some tools take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parameter {
    Launch,
    Defines,
    Model,
    Models,
    Outcome,
    Repair,
}

impl Parameter {
    fn name(self) -> &'static str {
        match self {
            Parameter::Launch => "launch",
            Parameter::Defines => "defines",
            Parameter::Model => "model",
            Parameter::Models => "models",
            Parameter::Outcome => "outcome",
            Parameter::Repair => "repair",
        }
    }

    fn schema(self) -> Value {
        let models = Library::names();
        match self {
            Parameter::Launch => text(
                "The launch, as in `k<<<2, 64>>>(in[128] = 1, n = 128)`: arrays with lengths and \
                values. `any`: every launch and input (needs Z3). Without it: a line `// \
                fencepost: k<<<…>>>(…)` of the source, else a small launch is chosen.",
            ),
            Parameter::Defines => json!({
                "type": "object",
                "additionalProperties": { "type": "integer" },
                "description": "Other values for macros and constants of the source.",
            }),
            Parameter::Model => json!({
                "type": "string",
                "description": format!(
                    "The memory model: {}, or the path of a .cat file. Without it: those of the \
                    test's expectations, or that of its language.",
                    models.join(", ")
                ),
            }),
            Parameter::Models => json!({
                "type": "array",
                "items": { "type": "string" },
                "minItems": 2,
                "description": format!("Two or more of {}.", models.join(", ")),
            }),
            Parameter::Outcome => text(
                "The outcome in question, as in `P1:r0 == 1 /\\ P1:r1 == 0`: registers of threads \
                and locations. Without it: the test's own condition.",
            ),
            Parameter::Repair => json!({
                "type": "boolean",
                "description": "True: find the cheapest repair of what the test expects to go \
                    wrong. Otherwise: the weakest orders that keep what it expects forbidden.",
            }),
        }
    }
}

fn text(doc: &str) -> Value {
    json!({ "type": "string", "description": doc })
}

const TEST: &str = "A litmus test in Fencepost's TOML format, with a condition and one [[thread]] \
    table per thread, or a .litmus file.";

const TOOLS: &[Tool] = &[
    Tool {
        name: "check_kernel",
        title: "Check a GPU kernel",
        doc: "Decides whether a kernel in CUDA C++, OpenCL C or PTX has data races, diverging \
            barriers, accesses out of bounds, failing assertions or hangs. Says how far the \
            answer goes: for every launch, for one launch, or tried sizes. A race comes with two \
            lines, the reason and a verified repair.",
        command: &["check"],
        takes: &[Parameter::Launch, Parameter::Defines],
        input: InputForm::Source,
    },
    Tool {
        name: "is_outcome_allowed",
        title: "Is an outcome possible?",
        doc: "Decides whether an outcome of a litmus test is allowed under a memory model. \
            `allowed` comes with an execution and the change that forbids it, `forbidden` with \
            the axioms that rule it out and the orders and scopes that it needs.",
        command: &["ask"],
        takes: &[Parameter::Outcome, Parameter::Model],
        input: InputForm::Test,
    },
    Tool {
        name: "explain_race",
        title: "Explain a race",
        doc: "Lists the pairs of accesses that race in a kernel or a litmus test, why nothing \
            orders them, and a repair.",
        command: &["check", "--property", "race", "-vv"],
        takes: &[Parameter::Launch, Parameter::Defines, Parameter::Model],
        input: InputForm::Any,
    },
    Tool {
        name: "weakest_fences",
        title: "The weakest orders, scopes and fences",
        doc: "Finds the cheapest memory orders, scopes and fences with which a program keeps what \
            its test expects to be forbidden, or the cheapest repair. Every proposal is decided \
            before it is shown.",
        command: &["advise"],
        takes: &[Parameter::Repair, Parameter::Model],
        input: InputForm::Any,
    },
    Tool {
        name: "compare_models",
        title: "Compare memory models",
        doc: "Decides a litmus test under several memory models, and names the rule that makes \
            the difference.",
        command: &["compare"],
        takes: &[Parameter::Models],
        input: InputForm::Test,
    },
];

/// The tool of that name.
pub(super) fn named(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// All names, in words.
pub(super) fn names() -> String {
    let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    names.join(", ")
}

/// The answer to `tools/list`.
pub(super) fn list() -> Vec<Value> {
    TOOLS.iter().map(Tool::description).collect()
}

/// The arguments of a call, of whatever tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    source: Option<String>,
    test: Option<String>,
    path: Option<String>,
    language: Option<String>,
    launch: Option<String>,
    #[serde(default)]
    defines: BTreeMap<String, i64>,
    model: Option<String>,
    models: Option<Vec<String>>,
    outcome: Option<String>,
    #[serde(default)]
    repair: bool,
    timeout_seconds: Option<u64>,
}

impl Tool {
    fn description(&self) -> Value {
        let mut properties = serde_json::Map::new();
        let mut add = |name: &str, schema: Value| {
            properties.insert(name.to_owned(), schema);
        };
        if self.input != InputForm::Test {
            add(
                "source",
                text("The source text of a file with one or more kernels."),
            );
            add(
                "language",
                json!({
                    "type": "string",
                    "enum": ["cuda", "opencl", "ptx"],
                    "description": "The language of `source`.",
                }),
            );
        }
        if self.input != InputForm::Source {
            add("test", text(TEST));
        }
        add("path", text("A file, in place of a text."));
        for parameter in self.takes {
            add(parameter.name(), parameter.schema());
        }
        add(
            "timeout_seconds",
            json!({
                "type": "integer",
                "minimum": 1,
                "maximum": LONGEST,
                "default": TIME,
                "description": "The longest time for the call.",
            }),
        );
        let required = match self.takes.contains(&Parameter::Models) {
            true => vec!["models"],
            false => Vec::new(),
        };
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.doc,
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            },
            "annotations": {
                "readOnlyHint": true,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        })
    }

    /// The command line for a call.
    ///
    /// # Errors
    /// The arguments are wrong: how, and what to pass instead.
    pub(super) fn job(&self, arguments: Value) -> Result<ChildJob, String> {
        self.refuse_foreign(&arguments)?;
        let arguments: Arguments = serde_json::from_value(arguments)
            .map_err(|error| format!("wrong arguments of `{}`: {error}", self.name))?;
        let seconds = arguments.timeout_seconds.unwrap_or(TIME);
        if !(1..=LONGEST).contains(&seconds) {
            return Err(format!(
                "`timeout_seconds` is {seconds}; pass 1 to {LONGEST}"
            ));
        }
        let input = self.input(&arguments)?;
        let mut line: Vec<String> = self.command.iter().map(|&word| word.to_owned()).collect();
        let mut option = |name: &str, value: &str| line.push(format!("--{name}={value}"));
        // A call may hold several questions.
        option("timeout", &format!("{}s", seconds.div_ceil(2)));
        if let Some(launch) = &arguments.launch {
            option("launch", launch);
        }
        for (name, value) in &arguments.defines {
            option("define", &format!("{name}={value}"));
        }
        if let Some(model) = &arguments.model {
            option("model", model);
        }
        if let Some(outcome) = &arguments.outcome {
            option("outcome", outcome);
        }
        match &arguments.models {
            Some(models) if models.len() < 2 => {
                return Err("`models` needs two or more names, as in [\"ptx\", \"sc\"]".into());
            }
            Some(models) => option("models", &models.join(",")),
            None if self.takes.contains(&Parameter::Models) => {
                return Err("`models` is missing; pass two names, as in [\"ptx\", \"sc\"]".into());
            }
            None => {}
        }
        if arguments.repair {
            line.push("--repair".to_owned());
        }
        Ok(ChildJob {
            arguments: line,
            input,
            reports: &["json"],
            time: Duration::from_secs(seconds),
        })
    }

    /// Refuses arguments of other tools.
    fn refuse_foreign(&self, arguments: &Value) -> Result<(), String> {
        let Some(given) = arguments.as_object() else {
            return Err("`arguments` is an object".into());
        };
        let description = self.description();
        let known = description["inputSchema"]["properties"].as_object();
        let known = known.expect("the schema above has properties");
        match given.keys().find(|name| !known.contains_key(*name)) {
            None => Ok(()),
            Some(name) => {
                let known: Vec<&str> = known.keys().map(String::as_str).collect();
                Err(format!(
                    "`{}` takes no argument `{name}`; it takes {}",
                    self.name,
                    known.join(", ")
                ))
            }
        }
    }

    /// The one input of a call.
    fn input(&self, arguments: &Arguments) -> Result<Input, String> {
        let Arguments {
            source,
            test,
            path,
            language,
            ..
        } = arguments;
        match (source, test, path) {
            (Some(source), None, None) => {
                let ending = match language.as_deref() {
                    Some("cuda") => "cu",
                    Some("opencl") => "cl",
                    Some("ptx") => "ptx",
                    _ => {
                        return Err("pass `language` with `source`: cuda, opencl or ptx".into());
                    }
                };
                Ok(Input::Text(format!("kernel.{ending}"), source.clone()))
            }
            (None, Some(test), None) => {
                let ending = if is_litmus(test) { "litmus" } else { "toml" };
                Ok(Input::Text(format!("test.{ending}"), test.clone()))
            }
            (None, None, Some(path)) => Ok(Input::Path(path.into())),
            _ => {
                let texts = match self.input {
                    InputForm::Source => "`source` (with `language`)",
                    InputForm::Test => "`test`",
                    InputForm::Any => "`source` (with `language`), `test`",
                };
                Err(format!("pass one of {texts} or `path`"))
            }
        }
    }
}

/// Whether a text is a `.litmus` file: it begins with a language and a name, and TOML with neither.
fn is_litmus(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    first.is_some_and(|line| !line.starts_with(['#', '[']) && !line.contains('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(tool: &str, arguments: Value) -> Result<Vec<String>, String> {
        let job = named(tool).expect("a tool").job(arguments)?;
        Ok(job.arguments)
    }

    #[test]
    fn arguments_become_options() {
        let kernel = json!({
            "source": "", "language": "cuda", "launch": "k<<<1, 2>>>()", "defines": { "N": 4 },
        });
        assert_eq!(
            line("check_kernel", kernel).expect("right"),
            [
                "check",
                "--timeout=30s",
                "--launch=k<<<1, 2>>>()",
                "--define=N=4"
            ]
        );
        let models = json!({ "test": "name = 'a'", "models": ["ptx", "sc"] });
        assert_eq!(
            line("compare_models", models).expect("right"),
            ["compare", "--timeout=30s", "--models=ptx,sc"]
        );
    }

    #[test]
    fn wrong_arguments_are_refused_with_what_to_pass() {
        for (tool, arguments, words) in [
            ("check_kernel", json!({}), "pass one of `source`"),
            ("check_kernel", json!({ "source": "" }), "pass `language`"),
            (
                "check_kernel",
                json!({ "path": "a", "source": "" }),
                "pass one of",
            ),
            (
                "check_kernel",
                json!({ "path": "a", "outcome": "" }),
                "takes no argument `outcome`",
            ),
            ("check_kernel", json!([1]), "is an object"),
            ("check_kernel", json!({ "path": 1 }), "expected a string"),
            (
                "compare_models",
                json!({ "path": "a" }),
                "`models` is missing",
            ),
            (
                "compare_models",
                json!({ "path": "a", "models": ["sc"] }),
                "two or more",
            ),
            (
                "explain_race",
                json!({ "path": "a", "timeout_seconds": 0 }),
                "1 to 600",
            ),
        ] {
            let wrong = line(tool, arguments).expect_err("wrong");
            assert!(wrong.contains(words), "{wrong}");
        }
    }

    #[test]
    fn a_text_says_whether_it_is_a_litmus_file() {
        assert!(is_litmus("\nPTX MP\n\"doc\"\n{ x = 0; }"));
        assert!(!is_litmus("# a comment\nname = 'MP'"));
        assert!(!is_litmus("name = 'MP'"));
    }
}
