//! The objects of `json` and `jsonl`, one per answer. The keys and their order are an interface;
//! new keys are added at the end.

use std::io::{self, Write};

use indexmap::IndexMap;
use serde::Serialize;

use super::compact;
use super::comparison::Comparison;
use super::execution::{StateObject, WitnessObject, witness};
use super::explanation::{self, ExplanationObject};
use super::fault::{FaultObject, PairObject, UndefinedKeys};
use super::line::{AnswerLine, OutcomeTable, PartOf, UnmetReading};
use diag::SourceLine;
use verdict::{Dependence, Finding, Launches, Outcome, Outcomes, Property, Reason, Unwritten};

/// One answer; fields in the order of the keys.
#[derive(Serialize)]
struct AnswerObject<'a> {
    path: &'a str,
    test: &'a str,
    model: &'a str,
    property: String,
    quantifier: &'a str,
    verdict: &'a str,
    expected: Option<&'a str>,
    engine: &'a str,
    bound: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    axioms: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<WitnessObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    defect: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mapping: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Vec<FindingObject<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcomes: Option<Vec<OutcomeObject<'a>>>,
    #[serde(flatten)]
    undefined: UndefinedKeys<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<ExplanationObject<'a>>,
    /// The known reason why the expectation is not met.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends: Vec<DependenceObject<'a>>,
    /// Every outcome is forbidden, because no execution runs to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    vacuous: Option<bool>,
    /// The reading under which the answer differs from its expectation.
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<&'a UnmetReading>,
    /// All racing accesses, one pair for each pair of lines, and whether the list is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<Vec<PairObject<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs_complete: Option<bool>,
    /// Options that were set and that affect the answer.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    settings: IndexMap<&'a str, &'a str>,
    /// Present only with the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<usize>,
    /// Reads that may read unwritten memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unwritten: Vec<UnwrittenObject<'a>>,
    /// Of a kernel of a source file: its launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    launch: Option<&'a str>,
    /// How far the answer about a kernel goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    proved: Option<&'a str>,
    /// Of launches that were tried: the most blocks, and the most threads of a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    up_to: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    assumed: &'a [String],
    /// The lines that a proof could not separate.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<[u32; 2]>,
    /// Why nothing is said of other launches.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_proved: Option<&'a str>,
    /// Always the last key: `merge` removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<&'a PartOf>,
}

/// A read that may read unwritten memory.
#[derive(Serialize)]
struct UnwrittenObject<'a> {
    thread: &'a str,
    #[serde(flatten)]
    line: &'a SourceLine,
    text: &'a str,
    memory: &'a str,
}

/// How the answer depends on the reading of a source.
#[derive(Serialize)]
struct DependenceObject<'a> {
    option: &'a str,
    on: &'a str,
    source: &'a str,
    verdicts: IndexMap<&'a str, &'a str>,
}

/// The relation between two models.
#[derive(Serialize)]
struct FindingObject<'a> {
    with: &'a str,
    differs: Option<bool>,
    relation: &'a str,
    rule: Option<&'a str>,
    by: Option<&'a str>,
    places: Vec<PlaceObject<'a>>,
    why: &'a str,
}

/// An instruction to which a rule applies; without a line, another part of the program.
#[derive(Serialize)]
struct PlaceObject<'a> {
    thread: &'a str,
    #[serde(flatten)]
    line: &'a SourceLine,
    text: &'a str,
}

#[derive(Serialize)]
struct TableObject<'a> {
    path: &'a str,
    test: &'a str,
    model: &'a str,
    complete: bool,
    outcomes: Vec<OutcomeObject<'a>>,
    engine: &'a str,
    bound: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    defect: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mapping: Option<&'a str>,
    #[serde(flatten)]
    undefined: UndefinedKeys<'a>,
}

#[derive(Serialize)]
struct OutcomeObject<'a> {
    state: StateObject<'a>,
    allowed: bool,
    racy: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    race: Option<FaultObject<'a>>,
}

/// Writes the object for one answer, without a line end.
pub(super) fn write_line(out: &mut dyn Write, line: &AnswerLine) -> io::Result<()> {
    compact::write(out, &object(line))
}

/// The same as [`write_line`], for an answer in a comparison. The object for reachability contains
/// the outcomes and the relations between models.
pub(super) fn write_compared(
    out: &mut dyn Write,
    all: &Comparison,
    column: usize,
    line: usize,
) -> io::Result<()> {
    let this = &all.columns[column];
    let mut object = object(&this.lines[line]);
    if line == 0 {
        let model = this.lines[0].model.as_str();
        object.compared = Some(
            all.findings
                .iter()
                .filter_map(|f| finding(f, model))
                .collect(),
        );
        object.outcomes = Some(outcomes(&this.outcomes));
    }
    compact::write(out, &object)
}

/// The finding for a model and another one.
fn finding<'a>(f: &'a Finding, model: &str) -> Option<FindingObject<'a>> {
    let with = match model {
        m if m == f.left => &f.right,
        m if m == f.right => &f.left,
        _ => return None,
    };
    Some(FindingObject {
        with,
        differs: f.differs,
        relation: f.relation.word(),
        rule: f.rule.as_deref(),
        by: f.by.as_deref(),
        places: f
            .places
            .iter()
            .map(|p| PlaceObject {
                thread: &p.thread,
                line: &p.line,
                text: &p.text,
            })
            .collect(),
        why: &f.why,
    })
}

fn outcome(o: &Outcome) -> OutcomeObject<'_> {
    OutcomeObject {
        state: StateObject(&o.state),
        allowed: o.allowed,
        racy: o.racy,
        race: o.race.as_deref().map(FaultObject::of),
    }
}

fn outcomes(list: &Outcomes) -> Vec<OutcomeObject<'_>> {
    list.outcomes.iter().map(outcome).collect()
}

fn object(line: &AnswerLine) -> AnswerObject<'_> {
    let answer = &line.answer;
    let reach = answer.reach.as_deref();
    AnswerObject {
        path: &line.path,
        test: &line.test,
        model: &line.model,
        property: line.property.to_string(),
        quantifier: line.quantifier,
        verdict: answer.verdict.word(),
        expected: line.expected,
        engine: answer.engine,
        bound: answer.bound,
        reason: answer.verdict.reason().map(Reason::to_string),
        axioms: &answer.axioms,
        ms: line.ms,
        witness: answer.witness.as_ref().map(witness),
        defect: answer.defect.as_deref(),
        mapping: line.mapping,
        compared: None,
        outcomes: None,
        undefined: match &line.property {
            Property::Liveness(_) => UndefinedKeys::of(answer.definedness.as_ref(), None).alone(),
            _ => UndefinedKeys::of(answer.definedness.as_ref(), answer.fault.as_deref()),
        },
        explanation: answer.explanation.as_deref().map(explanation::object),
        known: line.known.as_ref().map(|known| known.reason.as_str()),
        depends: answer.dependences.iter().map(dependence).collect(),
        vacuous: answer.vacuous.then_some(true),
        reading: line.reading.as_ref(),
        pairs: answer
            .races
            .as_ref()
            .map(|races| races.pairs.iter().map(PairObject::of).collect()),
        pairs_complete: answer.races.as_ref().map(|races| races.complete),
        settings: line.settings.iter().copied().collect(),
        events: line.ms.and(answer.events),
        unwritten: answer.unwritten.iter().map(unwritten).collect(),
        launch: line.kernel.as_ref().map(|kernel| kernel.launch.as_str()),
        proved: reach.map(|reach| reach.launches.word()),
        up_to: reach.and_then(|reach| match reach.launches {
            Launches::Tried(up_to) => Some(up_to),
            _ => None,
        }),
        assumed: reach.map_or(&[], |reach| &reach.assumed),
        lines: reach
            .and_then(|reach| reach.lines.as_ref())
            .map(|lines| lines.each_ref().map(|line| line.number)),
        not_proved: reach.and_then(|reach| reach.open.as_deref()),
        part: line.part.as_ref(),
    }
}

fn unwritten(of: &Unwritten) -> UnwrittenObject<'_> {
    UnwrittenObject {
        thread: &of.thread,
        line: &of.line,
        text: &of.text,
        memory: &of.memory,
    }
}

fn dependence(of: &Dependence) -> DependenceObject<'_> {
    let verdicts = of
        .verdicts
        .iter()
        .map(|(value, word)| (value.as_str(), word.as_str()))
        .collect();
    DependenceObject {
        option: &of.option,
        on: &of.on,
        source: &of.source,
        verdicts,
    }
}

/// Writes the object for one list of outcomes, without a line end.
pub(super) fn write_table(out: &mut dyn Write, table: &OutcomeTable) -> io::Result<()> {
    let list = &table.outcomes;
    let object = TableObject {
        path: &table.path,
        test: &table.test,
        model: &table.model,
        complete: list.complete,
        outcomes: outcomes(list),
        engine: list.engine,
        bound: list.bound,
        reason: list.reason.as_ref().map(Reason::to_string),
        ms: table.ms,
        defect: list.defect.as_deref(),
        mapping: table.mapping,
        undefined: UndefinedKeys::of(list.definedness.as_ref(), None),
    };
    compact::write(out, &object)
}

#[cfg(test)]
mod tests {
    use super::super::{HumanOptions, ReportFormat, samples};
    use super::*;

    #[test]
    fn keys_come_in_the_promised_order() {
        let text = samples::written(ReportFormat::Jsonl, &HumanOptions::default());
        let expected = r#"{"path":"ptx/MP-gpu.litmus","test":"MP-gpu","model":"ptx-v7.5","property":"reachability","quantifier":"exists","verdict":"forbidden","expected":"forbidden","engine":"symbolic","bound":null,"axioms":["Causality"]}
{"path":"ptx/MP.litmus","test":"MP","model":"ptx-v7.5","property":"reachability","quantifier":"exists","verdict":"allowed","expected":"forbidden","engine":"symbolic","bound":null}
{"path":"ptx/MP.litmus","test":"MP","model":"ptx-v7.5","property":"race","quantifier":"none","verdict":"racy","expected":null,"engine":"symbolic","bound":null}
{"path":"ptx/Atom.litmus","test":"Atom","model":"ptx-v7.5","property":"reachability","quantifier":"forall","verdict":"forbidden","expected":"required","engine":"symbolic","bound":null,"axioms":["Causality"]}
{"path":"ptx/Loop.litmus","test":"Loop","model":"ptx-v7.5","property":"reachability","quantifier":"exists","verdict":"undecided","expected":"allowed","engine":"symbolic","bound":4,"reason":"loop bound: P1 can go on after 4 iterations of the loop at line 7; try `--bound 8`"}
{"path":"ptx/Odd.litmus","test":"Odd","model":"ptx-v7.5","property":"reachability","quantifier":"exists","verdict":"allowed","expected":null,"engine":"both","bound":null,"defect":"engines differ: symbolic allowed, enumerate forbidden"}
"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn time_and_evidence_follow() {
        let mut line = samples::line("MP", verdict::Verdict::Allowed, None);
        line.ms = Some(1.25);
        line.answer.witness = Some(samples::witness());
        let mut out = Vec::new();
        write_line(&mut out, &line).unwrap();
        let text = String::from_utf8(out).unwrap();
        let tail = r#""bound":null,"ms":1.25,"witness":{"events":[{"thread":"init","line":0,"action":"W x = 0","text":""},{"thread":"P0","line":4,"action":"W x = 1","text":"st.weak x, 1"},{"thread":"P1","line":4,"action":"R x = 1","text":"ld.weak r0, x"}],"relations":{"rf":[[1,2]],"co":[[0,1]]},"state":{"P1:r0":"1","x":"1"}}}"#;
        assert!(text.ends_with(tail), "{text}");
    }

    #[test]
    fn outcomes_are_listed_in_order() {
        let mut out = Vec::new();
        write_table(&mut out, &samples::table()).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"path":"MP.toml","test":"MP","model":"ptx","complete":true,"outcomes":[{"state":{"P1:r0":"0","x":"2"},"allowed":true,"racy":true},{"state":{"P1:r0":"1","x":"10"},"allowed":false,"racy":false}],"engine":"enumerate","bound":null}"#
        );
    }
}
