//! What is advised, held against the front end and the engines: applied to the file as a programmer
//! would, on the lines that it names, the test is accepted and is what was promised.
//!
//! `FENCEPOST_SAMPLE` sets of how many (test, model) pairs advice is asked for (`0`: all),
//! `FENCEPOST_SHARD=K/N` takes every `N`th of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cat::model::{Model, load_shipped};
use engine::skeleton::signature::signature;
use engine::{Engine, Limits};
use front::litmus::{parse, read_path};
use front::mapping::Mapping;
use program::Dialect;
use program::litmus::LitmusTest;
use verdict::{Definedness, Need, Remedy, Verdict, Where};

use crate::Session;
use crate::explain::tests::{files, sample, shard};

const LIMITS: Limits = Limits {
    bound: Some(4),
    timeout: Some(Duration::from_secs(10)),
};

/// How many (test, model) pairs a quick run asks about.
const SAMPLE: usize = 20;

fn model(name: &str) -> Model {
    load_shipped(name, &signature())
        .expect("shipped")
        .expect("valid")
}

/// The text with a change applied on the line that it names; lines that were put in shift later
/// ones.
fn applied(text: &str, edits: &[Need]) -> Result<String, String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut edits: Vec<&Need> = edits.iter().collect();
    // From the end, so that numbers stay true; what comes before an instruction while that reads as
    // it is named.
    edits.sort_by_key(|edit| {
        let rank = [Where::Before, Where::Instead, Where::After]
            .iter()
            .position(|place| *place == edit.place);
        (std::cmp::Reverse(edit.line.number), rank)
    });
    for edit in edits {
        let at = (edit.line.number as usize)
            .checked_sub(1)
            .ok_or(format!("no line: {edit:?}"))?;
        let line = lines.get(at).ok_or("beyond the end")?.clone();
        match edit.place {
            Where::Instead => {
                // In the part of the line that the text names; a statement over several lines is on
                // the first.
                let what = diag::one_line(&edit.what);
                let plain = diag::one_line(&line);
                let start = plain.find(edit.text.as_str()).unwrap_or(0);
                let found = plain[start..]
                    .find(&what)
                    .map(|n| start + n)
                    .or_else(|| plain.find(&what));
                // Of a template, the line as it reads in the test.
                let (plain, found) = match found {
                    Some(found) => (plain, found),
                    None if line.contains("${") => {
                        let text = in_function(&edit.text);
                        let found = text.find(&what).ok_or(format!("no `{what}` in `{text}`"))?;
                        (text, found)
                    }
                    None => return Err(format!("no `{what}` in `{line}`")),
                };
                lines[at] = format!(
                    "{}{}{}",
                    &plain[..found],
                    edit.instead,
                    &plain[found + what.len()..]
                );
            }
            Where::Before => {
                let start = line
                    .find(&edit.text)
                    .unwrap_or(line.len() - line.trim_start().len());
                lines[at] = format!("{}{}; {}", &line[..start], edit.instead, &line[start..]);
            }
            Where::After => {
                let statement = edit.text.as_str();
                let end = line
                    .find(statement)
                    .ok_or(format!("no `{statement}` in `{line}`"))?
                    + statement.len();
                // On a line of its own, unless more code follows.
                lines[at] = match line[end..].trim() {
                    "" => format!("{line}\n{}", edit.instead),
                    _ => format!("{} {}{}", &line[..end], edit.instead, &line[end..]),
                };
            }
        }
    }
    Ok(lines.join("\n") + "\n")
}

/// An instruction of a call as its function has it: `%rd$6_1` of a call is `%rd1` there.
fn in_function(text: &str) -> String {
    let mut parts = text.split('$');
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.trim_start_matches(|c: char| c.is_ascii_digit());
        match digits
            .strip_prefix('_')
            .filter(|_| digits.len() < part.len())
        {
            Some(rest) => all += rest,
            None => {
                all.push('$');
                all += part;
            }
        }
    }
    all
}

/// The test with changes applied to its file.
fn changed(test: &LitmusTest, edits: &[Need]) -> Result<LitmusTest, String> {
    let text = applied(&test.file.text, edits)?;
    let tests =
        parse(&test.file.name, text.as_bytes()).map_err(|errors| errors[0].message.clone())?;
    tests
        .into_iter()
        .find(|new| new.name == test.name)
        .ok_or("the test is gone".to_owned())
}

#[derive(Debug, Default)]
struct Counts {
    forbidding: usize,
    race_free: usize,
    none: usize,
    /// Changes of threads and memory.
    no_code: usize,
}

/// What is said of one test under one model.
fn check(
    test: &LitmusTest,
    mapping: Option<&'static Mapping>,
    model: &Model,
    counts: &mut Counts,
) -> Result<(), String> {
    let judge = |test: &LitmusTest| match mapping {
        None => Some(test.clone()),
        Some(mapping) => mapping.lowered(test).ok(),
    };
    let Some(judged) = judge(test) else {
        return Ok(());
    };
    let negate = test.quantifier == program::litmus::Quantifier::ForAll;
    let new = || {
        let session = Session::new(&judged, model, Engine::Auto, LIMITS, &[]);
        if let Some(by) = mapping {
            session.via(test, by)
        } else {
            session
        }
    };
    let again = |edits: &[Need]| {
        let new = changed(test, edits)?;
        judge(&new).ok_or("the mapping has no words for it".to_owned())
    };
    // A proxy is said in words: it takes another instruction.
    let in_words = |edit: &Need| !edit.line.is_known() || edit.what == "its proxy";
    // Nor is a change in code that stands for the last use of a placeholder: the file with it is no
    // template any more.
    let ends_template =
        |edits: &[Need]| again(edits).is_err_and(|why| why.starts_with("no placeholder"));
    let in_code =
        |edits: &[Need]| !edits.is_empty() && !edits.iter().any(in_words) && !ends_template(edits);
    if test.condition.is_some() {
        let answer = new().with_explanations().reachability(None, negate);
        assert_eq!(answer.defect, None, "{}", test.name);
        if let Some(missing) = answer.explanation.and_then(|e| e.missing) {
            match in_code(&missing.edits) {
                true => {
                    let new =
                        again(&missing.edits).map_err(|e| format!("{e}: {:#?}", missing.edits))?;
                    let found = Session::new(&new, model, Engine::Auto, LIMITS, &[])
                        .reachability(None, negate);
                    if found.verdict != Verdict::Forbidden {
                        return Err(format!("{:?} with {:#?}", found.verdict, missing.edits));
                    }
                    counts.forbidding += 1;
                }
                false if missing.edits.is_empty() => counts.none += 1,
                false => counts.no_code += 1,
            }
        }
    }
    let definedness = new().explaining().definedness(LIMITS.timeout).transpose()?;
    let Some(Definedness::Undefined(fault)) = definedness else {
        return Ok(());
    };
    match fault.remedy {
        Some(Remedy::Changes(changes)) => {
            let edits: Option<Vec<Need>> = changes.into_iter().map(|change| change.edit).collect();
            let Some(edits) = edits.filter(|edits| !ends_template(edits)) else {
                counts.no_code += 1;
                return Ok(());
            };
            let new = again(&edits).map_err(|e| format!("{e}: {edits:#?}"))?;
            let found = Session::new(&new, model, Engine::Auto, LIMITS, &[])
                .race()
                .map(|answer| answer.verdict);
            if found != Some(Verdict::RaceFree) {
                return Err(format!("{found:?} with {edits:#?}"));
            }
            counts.race_free += 1;
        }
        _ => counts.none += 1,
    }
    Ok(())
}

#[test]
fn what_is_advised_can_be_written_and_helps() {
    let sample = sample(SAMPLE);
    let only = std::env::var("FENCEPOST_ONLY").unwrap_or_default();
    let mut paths = Vec::new();
    files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus"),
        "toml",
        &mut paths,
    );
    let mut pairs: Vec<(LitmusTest, Option<&'static Mapping>, &str)> = Vec::new();
    // Files take longer to read than what is asked of a few of their tests.
    let of_files = if sample == 0 || !only.is_empty() {
        1
    } else {
        (paths.len() / (2 * sample)).max(1)
    };
    for test in paths
        .iter()
        .step_by(of_files)
        .flat_map(|path| read_path(path).unwrap_or_default())
    {
        let dialect = test.program.dialect;
        if test.program.host.is_some() || !test.name.contains(&only) {
            continue;
        }
        if dialect != Dialect::Ptx && dialect != Dialect::C {
            pairs.push((test.clone(), Mapping::current(dialect), "ptx"));
        }
        pairs.push((test, None, dialect.default_model()));
    }
    let models: BTreeMap<&str, Model> = pairs.iter().map(|pair| (pair.2, model(pair.2))).collect();
    let step = if sample == 0 {
        1
    } else {
        pairs.len().div_ceil(sample).max(1)
    };
    let (first, shards) = shard();
    let (mut counts, mut failed) = (BTreeMap::<&str, Counts>::new(), Vec::new());
    for (test, mapping, name) in pairs.iter().step_by(step).skip(first).step_by(shards) {
        let counts = counts.entry(test.program.dialect.name()).or_default();
        if let Err(what) = check(test, *mapping, &models[name], counts) {
            eprintln!("{} under {name}: {what}", test.name);
            failed.push(format!("{} under {name}", test.name));
        }
    }
    eprintln!("{counts:#?}");
    assert!(failed.is_empty(), "{} failed: {failed:#?}", failed.len());
}

/// A row of a template has the code of both threads on one line; and where two fences are to be put
/// in front of one instruction, it matters which comes first.
#[test]
fn what_is_advised_on_one_line_helps() {
    let read = |path: &str| {
        read_path(
            &Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../litmus/ptx-async")
                .join(path),
        )
    };
    let tests = [
        "09-async-proxy/Fence.flag.toml",
        "14-strong-copies/Strong.toml",
    ]
    .map(|path| read(path).expect("well-formed"));
    let (model, mut counts) = (model("ptx"), Counts::default());
    let named = ["MP+issuer.relaxed+thread", "Strong+store.weak+load+thread"];
    for test in tests
        .iter()
        .flatten()
        .filter(|test| named.contains(&test.name.as_str()))
    {
        check(test, None, &model, &mut counts)
            .unwrap_or_else(|what| panic!("{}: {what}", test.name));
    }
    assert_eq!(counts.forbidding, 2);
}
