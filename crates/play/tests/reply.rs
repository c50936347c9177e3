//! Tests the answers of a page without a browser. `docs/play/test.mjs` asks the module itself.

use serde_json::{Value, json};

const FLAG: &str = include_str!("../examples/flag.toml");
const KERNEL: &str = include_str!("../examples/reduce.cu");

fn ask(request: &Value) -> Value {
    let reply = play::reply(request.to_string().as_bytes());
    serde_json::from_str(&reply).expect("JSON")
}

fn check(file: &str, text: &str, more: &[(&str, Value)]) -> Value {
    let mut request = json!({ "call": "check", "file": file, "text": text });
    for (key, value) in more {
        request[*key] = value.clone();
    }
    ask(&request)
}

/// The verdicts, model by model.
fn verdicts(reply: &Value) -> Vec<&str> {
    let columns = reply["columns"].as_array().expect("columns");
    columns
        .iter()
        .flat_map(|column| column["answers"].as_array().expect("answers"))
        .map(|answer| answer["line"]["verdict"].as_str().expect("a word"))
        .collect()
}

#[test]
fn an_answer_has_its_reason_its_picture_and_all_outcomes() {
    let reply = check("flag.toml", FLAG, &[("outcomes", true.into())]);
    assert_eq!(verdicts(&reply), ["allowed"]);
    let column = &reply["columns"][0];
    let answer = &column["answers"][0];
    assert!(answer["text"].as_str().expect("text").contains("allowed"));
    let picture = &answer["pictures"][0];
    assert!(picture["svg"].as_str().expect("SVG").starts_with("<svg"));
    assert!(
        picture["relations"]
            .as_array()
            .expect("a list")
            .contains(&json!(["rf", true]))
    );
    let outcomes = column["outcomes"]["outcomes"].as_array().expect("a list");
    assert_eq!(outcomes.len(), 4);
    assert_eq!(column["outcomes"]["complete"], true);
    assert_eq!(
        answer["line"]["explanation"]["missing"]["edits"][0]["line"],
        12
    );
}

#[test]
fn two_models_stand_side_by_side_with_the_rule_that_differs() {
    let two = [("models", json!(["ptx", "sc"])), ("outcomes", true.into())];
    let reply = check("flag.toml", FLAG, &two);
    assert_eq!(verdicts(&reply), ["allowed", "forbidden"]);
    assert_eq!(reply["difference"].as_array().expect("a list").len(), 1);
    // One model, or the same one twice, differs from nothing.
    let one = [("models", json!(["ptx", "ptx"])), ("outcomes", true.into())];
    let reply = check("flag.toml", FLAG, &one);
    assert_eq!(verdicts(&reply), ["allowed"]);
    assert_eq!(reply["difference"], json!([]));
}

#[test]
fn a_kernel_is_decided_for_its_launch_which_is_told() {
    let reply = check("kernel.cu", KERNEL, &[]);
    assert_eq!(verdicts(&reply), ["racy", "undefined", "terminates"]);
    let launch = reply["launch"].as_str().expect("a launch");
    assert!(launch.starts_with("block_sum<<<"), "{launch}");
}

#[test]
fn a_property_and_an_outcome_may_be_chosen() {
    let of = |key: &str, value: &str| {
        let reply = check("flag.toml", FLAG, &[(key, value.into())]);
        verdicts(&reply).join(" ")
    };
    assert_eq!(of("property", "race"), "racy");
    assert_eq!(of("property", "liveness:obe"), "terminates");
    assert_eq!(of("outcome", "P1:r0 == 1 && P1:r1 == 1"), "allowed");
    assert_eq!(of("outcome", "P1:r0 == 7"), "forbidden");
}

#[test]
fn a_model_judges_other_languages_through_a_mapping_or_not_at_all() {
    let cuda = play::EXAMPLES
        .iter()
        .find(|example| example.file == "MP+rel.device+acq.device.toml")
        .expect("an example");
    let condition = [
        ("models", json!(["ptx", "opencl"])),
        ("property", "reachability".into()),
    ];
    let reply = check(cuda.file, cuda.text, &condition);
    assert_eq!(verdicts(&reply), ["forbidden"]);
    assert!(reply["columns"][0]["mapping"].is_string());
    let error = reply["errors"][0]["message"].as_str().expect("an error");
    assert_eq!(error, "model `opencl` does not judge cuda programs");
}

#[test]
fn wrong_input_has_its_place() {
    let reply = check("flag.toml", &FLAG.replace("st.weak", "st.wek"), &[]);
    assert_eq!(reply["columns"], json!([]));
    let error = &reply["errors"][0];
    assert_eq!(
        (&error["severity"], &error["line"]),
        (&json!("error"), &json!(11))
    );
    for (key, value, said) in [
        ("property", "rac", "there is no property `rac`"),
        ("test", "other", "the text has no test `other`"),
    ] {
        let reply = check("flag.toml", FLAG, &[(key, value.into())]);
        assert_eq!(reply["errors"][0]["message"], said);
    }
    let reply: Value = serde_json::from_str(&play::reply(b"\xff")).expect("JSON");
    assert_eq!(reply["columns"], json!([]));
    let reply = ask(&json!({ "call": "check", "txet": "" }));
    let error = reply["errors"][0]["message"].as_str().expect("an error");
    assert!(error.contains("txet"), "{error}");
}

#[test]
fn every_example_meets_what_it_expects() {
    for example in play::EXAMPLES {
        let reply = check(example.file, example.text, &[]);
        let errors = reply["errors"].as_array().expect("a list");
        assert!(
            errors.iter().all(|error| error["severity"] == "warning"),
            "{}: {errors:?}",
            example.file
        );
        assert!(!verdicts(&reply).is_empty(), "{}", example.file);
        for column in reply["columns"].as_array().expect("columns") {
            for answer in column["answers"].as_array().expect("answers") {
                let line = &answer["line"];
                let met = match line["expected"].as_str() {
                    Some("required") => line["verdict"] == "forbidden",
                    Some(expected) => line["verdict"] == expected,
                    None => line["verdict"] != "undecided",
                };
                assert!(met, "{}: {line}", example.file);
            }
        }
    }
}
