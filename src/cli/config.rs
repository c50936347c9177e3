//! `fencepost.toml`: options of a project, from the nearest folder upwards that has one.
//!
//! # Invariants
//! - The command line wins over the profile, the profile over the rest of the file, the file over
//!   defaults.
//! - Paths in the file are relative to its folder.
//! - A file with an unknown key or a wrong value is an error with its line: it is never half
//!   applied.
//!
//! Formats, reports, filters and paths are about suites: they apply to `check` alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::parser::ValueSource;
use clap::{ArgMatches, ValueEnum};
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::args::{
    self, Command, Deny, EngineArg, FormatArg, MemoryArg, NoTests, PicturesArg, QuestionArgs,
};
use super::duration::{self, Timeout};
use super::memory::{self, Size};
use super::terminal::Terminal;
use diag::{Diagnostic, Sink, SourceFile, Span, file};

/// The file's name.
pub(super) const NAME: &str = "fencepost.toml";

/// The table of profiles.
const PROFILE: &str = "profile";

/// The contents of a file.
#[derive(Clone, Debug, Default)]
struct Values {
    models: Option<Vec<String>>,
    engine: Option<EngineArg>,
    bound: Option<u32>,
    timeout: Option<Timeout>,
    slow_timeout: Option<Timeout>,
    memory: Option<Size>,
    jobs: Option<u16>,
    mapping: Option<String>,
    format: Option<FormatArg>,
    reports: Option<Vec<(FormatArg, PathBuf)>>,
    /// With its name in messages.
    filter: Option<(String, String)>,
    paths: Option<Vec<PathBuf>>,
    all_properties: Option<bool>,
    fail_fast: Option<bool>,
    deny: Option<Deny>,
    no_tests: Option<NoTests>,
    pictures: Option<PicturesArg>,
    cache: Option<bool>,
    cache_dir: Option<PathBuf>,
    kernels: Option<Vec<PathBuf>>,
}

/// Reads one value into its place; the error states the expectation.
type Read = fn(&mut Values, &ConfigPlace<'_>, &DeValue<'_>) -> Result<(), String>;

/// A key of the file.
struct ConfigKey {
    name: &'static str,
    /// For the schema.
    doc: &'static str,
    /// The JSON schema of its value.
    form: fn() -> Value,
    read: Read,
}

/// Every key.
const KEYS: [ConfigKey; 20] = [
    ConfigKey {
        name: "models",
        doc: "The models of commands that name none: names, or .cat files.",
        form: of_texts,
        read: |v, place, value| {
            v.models = Some(
                texts(value)?
                    .into_iter()
                    .map(|model| {
                        let is_file = model.ends_with(".cat");
                        if is_file {
                            place.path(&model).to_string_lossy().into_owned()
                        } else {
                            model
                        }
                    })
                    .collect(),
            );
            Ok(())
        },
    },
    ConfigKey {
        name: "engine",
        doc: "The engine that answers.",
        form: of_word::<EngineArg>,
        read: |v, _, value| {
            v.engine = Some(word(value)?);
            Ok(())
        },
    },
    ConfigKey {
        name: "bound",
        doc: "The largest number of iterations of a loop.",
        form: || of_number(0, 1000),
        read: |v, _, value| {
            v.bound = Some(number(value, 0, 1000)?);
            Ok(())
        },
    },
    ConfigKey {
        name: "timeout",
        doc: "The time limit of a question, as in 500ms, 10s or 2m, or none.",
        form: of_text,
        read: |v, _, value| {
            v.timeout = Some(duration::parse(&text(value)?)?);
            Ok(())
        },
    },
    ConfigKey {
        name: "slow-timeout",
        doc: "After how long a test that runs is named, as in 10s, or none.",
        form: of_text,
        read: |v, _, value| {
            v.slow_timeout = Some(duration::parse(&text(value)?)?);
            Ok(())
        },
    },
    ConfigKey {
        name: "memory",
        doc: "The memory limit of a question, as in 500M or 2G, or none.",
        form: of_text,
        read: |v, _, value| {
            v.memory = Some(memory::parse(&text(value)?)?);
            Ok(())
        },
    },
    ConfigKey {
        name: "jobs",
        doc: "How many questions are decided at once.",
        form: || of_number(1, u32::from(u16::MAX)),
        read: |v, _, value| {
            v.jobs = u16::try_from(number(value, 1, u32::from(u16::MAX))?).ok();
            Ok(())
        },
    },
    ConfigKey {
        name: "mapping",
        doc: "The mapping by which tests of other languages become PTX.",
        form: of_text,
        read: |v, _, value| {
            v.mapping = Some(text(value)?);
            Ok(())
        },
    },
    ConfigKey {
        name: "format",
        doc: "The form of the result of `check`.",
        form: of_word::<FormatArg>,
        read: |v, _, value| {
            v.format = Some(word(value)?);
            Ok(())
        },
    },
    ConfigKey {
        name: "reports",
        doc: "Further reports of `check`, each as FORMAT=FILE.",
        form: of_texts,
        read: |v, place, value| {
            let report = |text: &String| {
                args::report_file(text).map(|(format, file)| (format, place.path(file)))
            };
            v.reports = Some(texts(value)?.iter().map(report).collect::<Result<_, _>>()?);
            Ok(())
        },
    },
    ConfigKey {
        name: "filter",
        doc: "Which tests `check` takes, as for `--filter`.",
        form: of_text,
        read: |v, place, value| {
            v.filter = Some((format!("{}: filter", place.name), text(value)?));
            Ok(())
        },
    },
    ConfigKey {
        name: "paths",
        doc: "What `check` decides if no path is given.",
        form: of_texts,
        read: |v, place, value| {
            let paths = texts(value)?.into_iter().map(|path| place.path(path));
            v.paths = Some(paths.collect());
            Ok(())
        },
    },
    ConfigKey {
        name: "kernels",
        doc: "Which source files in folders are read.",
        form: of_texts,
        read: |v, place, value| {
            let patterns = texts(value)?.into_iter().map(|pattern| place.path(pattern));
            v.kernels = Some(patterns.collect());
            Ok(())
        },
    },
    ConfigKey {
        name: "all-properties",
        doc: "Whether `check` answers every property.",
        form: of_truth,
        read: |v, _, value| {
            v.all_properties = Some(truth(value)?);
            Ok(())
        },
    },
    ConfigKey {
        name: "fail-fast",
        doc: "Whether `check` ends at the first failure.",
        form: of_truth,
        read: |v, _, value| {
            v.fail_fast = Some(truth(value)?);
            Ok(())
        },
    },
    ConfigKey {
        name: "deny",
        doc: "What counts as a failure of `check` where no expectation mentions it.",
        form: of_word::<Deny>,
        read: |v, _, value| {
            v.deny = Some(word(value)?);
            Ok(())
        },
    },
    ConfigKey {
        name: "no-tests",
        doc: "What `check` does if no test matches.",
        form: of_word::<NoTests>,
        read: |v, _, value| {
            v.no_tests = Some(word(value)?);
            Ok(())
        },
    },
    ConfigKey {
        name: "pictures",
        doc: "Which answers have pictures in an HTML report of `check`.",
        form: of_word::<PicturesArg>,
        read: |v, _, value| {
            v.pictures = Some(word(value)?);
            Ok(())
        },
    },
    ConfigKey {
        name: "cache",
        doc: "Whether `check` keeps verdicts.",
        form: of_truth,
        read: |v, _, value| {
            v.cache = Some(truth(value)?);
            Ok(())
        },
    },
    ConfigKey {
        name: "cache-dir",
        doc: "The folder of kept verdicts.",
        form: of_text,
        read: |v, place, value| {
            v.cache_dir = Some(place.path(text(value)?));
            Ok(())
        },
    },
];

fn of_text() -> Value {
    json!({ "type": "string" })
}

fn of_texts() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn of_truth() -> Value {
    json!({ "type": "boolean" })
}

fn of_number(least: u32, most: u32) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most })
}

fn of_word<W: ValueEnum>() -> Value {
    let words = W::value_variants().iter();
    let names: Vec<String> = words
        .filter_map(W::to_possible_value)
        .map(|word| word.get_name().to_owned())
        .collect();
    json!({ "enum": names })
}

/// The JSON schema of the file.
pub(super) fn schema() -> Value {
    let options: serde_json::Map<String, Value> = KEYS
        .iter()
        .map(|key| {
            let mut form = (key.form)();
            form["description"] = key.doc.into();
            (key.name.to_owned(), form)
        })
        .collect();
    let mut all = options.clone();
    let profile = json!({
        "type": "object",
        "properties": options,
        "additionalProperties": false,
    });
    all.insert(
        PROFILE.to_owned(),
        json!({
            "description": "Options by name, chosen with `--profile`.",
            "type": "object",
            "additionalProperties": profile,
        }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": NAME,
        "type": "object",
        "properties": all,
        "additionalProperties": false,
    })
}

/// One of the words of an option; the error lists them.
fn word<W: ValueEnum>(value: &DeValue<'_>) -> Result<W, String> {
    let written = text(value)?;
    W::from_str(&written, false).map_err(|_| {
        let words = W::value_variants().iter();
        let names: Vec<String> = words
            .filter_map(W::to_possible_value)
            .map(|word| word.get_name().to_owned())
            .collect();
        format!("`{written}` is none of {}", names.join(", "))
    })
}

fn text(value: &DeValue<'_>) -> Result<String, String> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| "expected a text in quotes".into())
}

fn texts(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    fn expected() -> String {
        "expected a list of texts, as in [\"a\", \"b\"]".to_owned()
    }
    value
        .as_array()
        .ok_or_else(expected)?
        .iter()
        .map(|v| text(v.get_ref()).map_err(|_| expected()))
        .collect()
}

fn truth(value: &DeValue<'_>) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| "expected true or false".into())
}

fn number(value: &DeValue<'_>, least: u32, most: u32) -> Result<u32, String> {
    let written = value
        .as_integer()
        .and_then(|n| n.as_str().parse::<u32>().ok());
    written
        .filter(|n| (least..=most).contains(n))
        .ok_or_else(|| format!("expected a number from {least} to {most}"))
}

/// A file's place, seen from the current folder.
struct ConfigPlace<'a> {
    folder: &'a Path,
    name: &'a str,
}

impl ConfigPlace<'_> {
    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.join(path)
    }
}

/// Fills in options that the command line leaves open. On failure, every mistake.
pub(super) fn apply(
    command: &mut Command,
    matches: &ArgMatches,
    terminal: &Terminal,
) -> Result<(), Vec<Diagnostic>> {
    let Some(question) = question(command) else {
        return Ok(());
    };
    let (off, profile) = (question.no_config, question.profile.clone());
    if off {
        return Ok(());
    }
    let found = find().map_err(|diagnostic| vec![*diagnostic])?;
    let Some((folder, file)) = found else {
        fn missing(name: String) -> Vec<Diagnostic> {
            let plain = Diagnostic::plain(
                "no-config",
                format!("profile `{name}` needs a `{NAME}`, which was not found"),
            );
            vec![plain.note("folders searched: the current one and those above it")]
        }
        return profile.map_or(Ok(()), |name| Err(missing(name)));
    };
    let values = read(&folder, &file, profile.as_deref())?;
    if terminal.verbose {
        let profile = profile.map_or(String::new(), |name| format!(", profile {name}"));
        terminal.remark(&format!("options from {}{profile}", file.name));
    }
    let matches = matches
        .subcommand()
        .map_or(matches, |(_, of_command)| of_command);
    fill(command, values, &|id| {
        matches.value_source(id) == Some(ValueSource::CommandLine)
    });
    Ok(())
}

/// The question options of a command, if it has some.
fn question(command: &mut Command) -> Option<&mut QuestionArgs> {
    match command {
        Command::Check(args) => Some(&mut args.question),
        Command::Ask(args) => Some(&mut args.question),
        Command::Outcomes(args) => Some(&mut args.question),
        Command::Compare(args) => Some(&mut args.question),
        Command::Distinguish(args) => Some(&mut args.question),
        Command::Advise(args) => Some(&mut args.question),
        Command::Run(args) => Some(&mut args.question),
        Command::Show(args) => Some(&mut args.question),
        _ => None,
    }
}

/// Sets options that the file has a value for and the command line has not `given`.
fn fill(command: &mut Command, values: Values, given: &dyn Fn(&str) -> bool) {
    fn set<T>(place: &mut T, value: Option<T>, given: bool) {
        if let (false, Some(value)) = (given, value) {
            *place = value;
        }
    }
    if let Some(question) = question(command) {
        set(&mut question.engine, values.engine, given("engine"));
        set(&mut question.bound, values.bound.map(Some), given("bound"));
        set(
            &mut question.timeout,
            values.timeout.map(Some),
            given("timeout"),
        );
        set(
            &mut question.slow_timeout,
            values.slow_timeout,
            given("slow_timeout"),
        );
        // The name of a memory is no limit.
        let limited = question
            .memory
            .iter()
            .any(|memory| matches!(memory, MemoryArg::Size(_)));
        question
            .memory
            .extend(values.memory.filter(|_| !limited).map(MemoryArg::Size));
        set(&mut question.jobs, values.jobs.map(Some), given("jobs"));
        set(&mut question.kernels, values.kernels, false);
    }
    // A mapping has to fit the two models.
    if !matches!(command, Command::Distinguish(_))
        && let Some(question) = question(command)
    {
        set(
            &mut question.mapping,
            values.mapping.map(Some),
            given("mapping"),
        );
    }
    // The command line, or the tests, name the models to compare.
    if !matches!(command, Command::Compare(_) | Command::Distinguish(_))
        && let Some(question) = question(command)
    {
        set(&mut question.models, values.models, given("models"));
    }
    if let Command::Check(args) = command {
        set(&mut args.question.format, values.format, given("format"));
        set(&mut args.question.reports, values.reports, given("reports"));
        set(
            &mut args.select.configured_filter,
            values.filter.map(Some),
            given("filter"),
        );
        set(&mut args.paths, values.paths, given("paths"));
        set(
            &mut args.all_properties,
            values.all_properties,
            given("all_properties"),
        );
        set(
            &mut args.fail_fast,
            values.fail_fast,
            given("fail_fast") || given("no_fail_fast"),
        );
        set(&mut args.deny, values.deny.map(Some), given("deny"));
        set(
            &mut args.select.no_tests,
            values.no_tests,
            given("no_tests"),
        );
        set(&mut args.pictures, values.pictures, given("pictures"));
        set(
            &mut args.no_cache,
            values.cache.map(|on| !on),
            given("no_cache"),
        );
        set(&mut args.cache_dir, values.cache_dir.map(Some), false);
    }
}

/// A folder as seen from the current one, and its file.
type Found = (PathBuf, Arc<SourceFile>);

/// The nearest file.
fn find() -> Result<Option<Found>, Box<Diagnostic>> {
    let Ok(here) = std::env::current_dir() else {
        return Ok(None);
    };
    let mut folder = PathBuf::new();
    for above in here.ancestors() {
        if above.join(NAME).exists() && !above.join(NAME).is_dir() {
            let path = folder.join(NAME);
            let text = super::load::text(&path, file::LARGEST)?;
            return Ok(Some((
                folder,
                SourceFile::new(path.to_string_lossy(), text),
            )));
        }
        folder.push("..");
    }
    Ok(None)
}

/// The contents of a file, with the profile of that name over the rest.
fn read(
    folder: &Path,
    file: &Arc<SourceFile>,
    profile: Option<&str>,
) -> Result<Values, Vec<Diagnostic>> {
    let place = ConfigPlace {
        folder,
        name: &file.name,
    };
    let mut sink = Sink::new(file);
    let mut values = Values::default();
    let document = match DeTable::parse(&file.text) {
        Ok(document) => document,
        Err(error) => {
            let span = error
                .span()
                .map_or(Span::default(), |r| Span::new(r.start, r.end));
            return Err(vec![Diagnostic::error(
                "invalid-toml",
                file,
                span,
                error.message().to_owned(),
            )]);
        }
    };
    let root = document.get_ref();
    table(root, &place, &mut values, true, &mut sink);
    let profiles = root
        .get(PROFILE)
        .map(Spanned::get_ref)
        .and_then(DeValue::as_table);
    // All profiles are read, so that a mistake shows before its profile is used.
    for (name, value) in profiles.into_iter().flatten() {
        let mut of_profile = values.clone();
        match value.get_ref().as_table() {
            Some(own) => table(own, &place, &mut of_profile, false, &mut sink),
            None => sink.error(
                "wrong-type",
                span(value),
                "a profile must be a table of options",
                |d| d,
            ),
        }
        if profile == Some(name.get_ref().as_ref()) {
            values = of_profile;
        }
    }
    let names: Vec<&str> = profiles
        .into_iter()
        .flatten()
        .map(|(name, _)| name.get_ref().as_ref())
        .collect();
    let mut diagnostics = sink.into_diagnostics();
    if let Some(wanted) = profile.filter(|wanted| !names.contains(wanted)) {
        let plain = Diagnostic::plain(
            "unknown-profile",
            format!("`{}` has no profile `{wanted}`", file.name),
        );
        let listed = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        diagnostics.push(
            plain
                .note(format!("profiles: {listed}"))
                .did_you_mean(wanted, names),
        );
    }
    if diagnostics.is_empty() {
        Ok(values)
    } else {
        Err(diagnostics)
    }
}

/// Reads one table of options.
fn table(
    table: &DeTable<'_>,
    place: &ConfigPlace<'_>,
    values: &mut Values,
    is_root: bool,
    sink: &mut Sink,
) {
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        if is_root && name == PROFILE {
            if value.get_ref().as_table().is_none() {
                sink.error(
                    "wrong-type",
                    span(value),
                    "`profile` holds tables of options",
                    |d| d.help("write [profile.NAME]"),
                );
            }
            continue;
        }
        match KEYS.iter().find(|key| key.name == name) {
            Some(key) => {
                if let Err(expected) = (key.read)(values, place, value.get_ref()) {
                    let message = format!("`{name}` cannot have this value");
                    sink.error("wrong-value", span(value), message, |d| d.label(expected));
                }
            }
            None => {
                let known = || {
                    KEYS.iter()
                        .map(|key| key.name)
                        .chain(is_root.then_some(PROFILE))
                };
                let range = key.span();
                let message = format!("there is no option `{name}`");
                sink.error(
                    "unknown-key",
                    Span::new(range.start, range.end),
                    message,
                    |d| {
                        d.note(format!(
                            "options: {}",
                            known().collect::<Vec<_>>().join(", ")
                        ))
                        .did_you_mean(name, known())
                    },
                );
            }
        }
    }
}

fn span(value: &Spanned<DeValue<'_>>) -> Span {
    let range = value.span();
    Span::new(range.start, range.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diag::{TextStyle, render};

    fn values(text: &str, profile: Option<&str>) -> Result<Values, String> {
        let file = SourceFile::new("../fencepost.toml", text);
        read(Path::new(".."), &file, profile).map_err(|all| {
            all.iter()
                .map(|d| render(d, TextStyle::Plain))
                .collect::<String>()
        })
    }

    const FILE: &str = "models = ['ptx', 'm.cat']\nbound = 8\npaths = \
    ['litmus']\n\n[profile.ci]\nbound = 2\n\
                        reports = ['junit=out.xml']\ntimeout = '5s'\n";

    #[test]
    fn a_profile_wins_over_the_rest() {
        let plain = values(FILE, None).unwrap();
        assert_eq!((plain.bound, plain.timeout), (Some(8), None));
        let ci = values(FILE, Some("ci")).unwrap();
        assert_eq!(
            (ci.bound, ci.models.as_ref().map(Vec::len)),
            (Some(2), Some(2))
        );
        assert!(ci.timeout.is_some());
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let ci = values(FILE, Some("ci")).unwrap();
        assert_eq!(ci.models.unwrap(), ["ptx", "../m.cat"]);
        assert_eq!(ci.paths.unwrap(), [PathBuf::from("../litmus")]);
        assert_eq!(ci.reports.unwrap()[0].1, PathBuf::from("../out.xml"));
    }

    #[test]
    fn the_schema_has_every_key() {
        let schema = schema();
        for key in KEYS {
            for options in [
                &schema["properties"],
                &schema["properties"]["profile"]["additionalProperties"]["properties"],
            ] {
                assert!(!options[key.name].is_null(), "{}", key.name);
                assert!(!options[key.name]["description"].is_null());
            }
        }
        let words = &schema["properties"]["no-tests"]["enum"];
        assert_eq!(*words, json!(["pass", "fail"]));
        assert_eq!(schema["additionalProperties"], false);
    }

    #[test]
    fn findings_may_be_denied_by_the_file() {
        let read = values("deny = 'race'\nno-tests = 'pass'\npictures = 'all'", None).unwrap();
        assert_eq!(read.deny, Some(Deny::Race));
        assert_eq!(read.no_tests, Some(NoTests::Pass));
        assert_eq!(read.pictures, Some(PicturesArg::All));
    }

    #[test]
    fn mistakes_are_told_with_their_lines() {
        let expected = "\
error[unknown-key]: there is no option `buond`
 --> ../fencepost.toml:2:1
  |
2 | buond = 8
  | ^^^^^
  |
  = note: options: models, engine, bound, timeout, slow-timeout, memory, jobs, mapping, format, \
  reports, filter, paths, kernels, \
all-properties, fail-fast, deny, no-tests, pictures, cache, cache-dir, profile
  = help: did you mean `bound`?
";
        assert_eq!(values("jobs = 1\nbuond = 8\n", None).unwrap_err(), expected);
        for (text, word) in [
            ("bound = 'many'", "expected a number from 0 to 1000"),
            ("bound = 2000", "expected a number from 0 to 1000"),
            ("jobs = 0", "expected a number from 1"),
            ("models = 'ptx'", "expected a list of texts"),
            ("models = [1]", "expected a list of texts"),
            ("timeout = '5'", "a number and a unit"),
            (
                "engine = 'z3'",
                "`z3` is none of auto, symbolic, sat, enumerate, both",
            ),
            ("deny = 'all'", "`all` is none of undefined, race"),
            ("deny = true", "expected a text in quotes"),
            ("no-tests = 'maybe'", "`maybe` is none of pass, fail"),
            ("pictures = 'some'", "`some` is none of none, unmet, all"),
            ("reports = ['xml=a']", "xml"),
            ("cache = 1", "expected true or false"),
            ("profile = 1", "write [profile.NAME]"),
            ("[profile]\nci = 1", "a profile must be a table"),
            ("[profile.ci]\nbuond = 1", "did you mean `bound`?"),
            ("a = ", "invalid-toml"),
        ] {
            let shown = values(text, None).unwrap_err();
            assert!(shown.contains(word), "{text}: {shown}");
        }
        assert!(
            values(FILE, Some("cii"))
                .unwrap_err()
                .contains("did you mean `ci`?")
        );
    }
}
