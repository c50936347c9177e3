//! Answers one request: reads the text, asks each model, and writes answers as the program does.

use std::borrow::Cow;

use cat::model::{self, Library};
use diag::Diagnostic;
use engine::liveness::{Liveness, LivenessTask};
use engine::skeleton::signature::signature;
use engine::{Engine, Limits, ProgressModel};
use front::litmus;
use front::mapping::Mapping;
use program::Dialect;
use program::litmus::{LitmusTest, Prop, Quantifier, Reachability};
use report::picture::{PictureSubject, RelationChoice, Scene, style, subject, svg};
use report::{AnswerLine, FileSite, Human, HumanOptions, Json, OutcomeTable, Reporter};
use serde_json::value::RawValue;
use verdict::{Answer, Definedness, Outcomes, Property, Reason, Verdict};
use why::difference::{self, Means, Side};
use why::{Ask, Session};

use crate::examples::EXAMPLES;
use crate::request::{CheckRequest, InputError, ModelColumn, Picture, PlayAnswer, Reply, Request};

const ENGINE: Engine = Engine::Auto;

/// The stack of a question, in bytes: three quarters of the module's.
const STACK: usize = 6 << 20;

/// WebAssembly has no clock.
const LIMITS: Limits = Limits {
    bound: None,
    timeout: None,
};

/// A question with the words of its line.
struct PlayQuestion {
    ask: Ask,
    quantifier: &'static str,
    proposition: String,
    expected: Option<&'static str>,
}

/// A test under a model: the model, and the test as it is judged.
struct Judged<'t> {
    name: String,
    model: model::ir::Model,
    mapping: Option<&'static Mapping>,
    source: &'t LitmusTest,
    /// Why the model cannot speak of the test.
    refused: Option<Reason>,
    test: Cow<'t, LitmusTest>,
    questions: Vec<PlayQuestion>,
}

/// The answers of one model.
struct Decided {
    lines: Vec<AnswerLine>,
    outcomes: Option<Outcomes>,
}

/// Answers a request in JSON with JSON. A request that cannot be read is an answer with an error.
pub fn reply(request: &[u8]) -> String {
    let text = match serde_json::from_slice(request) {
        Ok(Request::About) => serde_json::to_string(&serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "models": Library::names(),
            "properties": properties(),
            "examples": EXAMPLES,
            "style": style::sheet("svg.fencepost"),
        })),
        Ok(Request::Check(request)) => serde_json::to_string(&check(&request)),
        Err(error) => {
            let message = format!("the request cannot be read: {error}");
            serde_json::to_string(&refused(vec![Diagnostic::plain("bad-request", message)]))
        }
    };
    text.expect("only text and numbers")
}

/// The properties that a page offers.
fn properties() -> Vec<String> {
    let others = ProgressModel::ALL.map(|progress| Ask::Liveness(progress).property());
    [Property::Reachability, Property::Race, Property::Undefined]
        .into_iter()
        .chain(others)
        .map(|property| property.to_string())
        .collect()
}

fn refused(diagnostics: Vec<Diagnostic>) -> Reply {
    Reply {
        errors: diagnostics.iter().map(InputError::of).collect(),
        ..Reply::default()
    }
}

fn check(request: &CheckRequest) -> Reply {
    let _share = stop::share(None, STACK);
    let read = match litmus::read(&request.file, request.text.as_bytes()) {
        Ok(read) => read,
        Err(diagnostics) => return refused(diagnostics),
    };
    let tests = read.tests.iter().map(|test| test.name.clone()).collect();
    let mut reply = Reply {
        tests,
        ..refused(read.warnings)
    };
    let mut tests = read.tests.iter();
    let Some(test) = tests.find(|test| request.test.is_empty() || test.name == request.test) else {
        let message = match request.test.as_str() {
            "" => "the text has no test and no kernel".to_owned(),
            name => format!("the text has no test `{name}`"),
        };
        let diagnostic = Diagnostic::plain("no-test", message);
        reply.errors.push(InputError::of(&diagnostic));
        return reply;
    };
    reply.test.clone_from(&test.name);
    reply.launch = test.launch.as_ref().map(|launch| launch.text.clone());
    let mut all = Vec::new();
    for name in models_of(request, test) {
        match judged(request, test, &name) {
            Ok(judged) => all.push(judged),
            Err(diagnostics) => reply.errors.extend(diagnostics.iter().map(InputError::of)),
        }
    }
    let decided: Vec<Decided> = all.iter().map(|judged| decide(request, judged)).collect();
    reply.difference = differences(&all, &decided);
    reply.columns = all
        .iter()
        .zip(&decided)
        .map(|(judged, decided)| column(request, judged, decided))
        .collect();
    reply
}

/// The models to ask, each once.
fn models_of(request: &CheckRequest, test: &LitmusTest) -> Vec<String> {
    let mut names = request.models.clone();
    if names.is_empty() {
        names = test.expect.keys().cloned().collect();
    }
    if names.is_empty() {
        let of_launch = test.launch.is_some() && test.program.assembly().is_some();
        let dialect = match of_launch {
            true => Dialect::Ptx,
            false => test.program.dialect,
        };
        names.push(dialect.default_model().to_owned());
    }
    let mut once: Vec<String> = Vec::new();
    for name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

/// Loads a model, and makes of the test what the model judges.
fn judged<'t>(
    request: &CheckRequest,
    test: &'t LitmusTest,
    name: &str,
) -> Result<Judged<'t>, Vec<Diagnostic>> {
    let Some(model) = model::load_shipped(name, &signature()) else {
        let names = Library::names();
        let plain = Diagnostic::plain("unknown-model", format!("there is no model `{name}`"));
        return Err(vec![plain.did_you_mean(name, names)]);
    };
    let model = model?;
    let dialect = test.program.dialect;
    let of = Dialect::of_model(name).filter(|&of| of != dialect);
    let mapping = of.and_then(|of| Mapping::current(dialect).filter(|mapping| mapping.to == of));
    if of.is_some() && mapping.is_none() {
        let message = format!("model `{name}` does not judge {} programs", dialect.name());
        return Err(vec![
            Diagnostic::plain("passed-over", message).help("choose another model"),
        ]);
    }
    let mut questions = questions(request, test, name)?;
    let (judged, refused) = match mapping.map(|mapping| mapping.lowered(test)) {
        None => (Cow::Borrowed(test), None),
        Some(Ok(lowered)) => (Cow::Owned(lowered), None),
        // The test is valid: this model has no words for it.
        Some(Err(why)) => (Cow::Borrowed(test), Some(Reason::NotInModel(why))),
    };
    for question in &mut questions {
        if let (
            Ask::Reachability {
                prop: Some(prop), ..
            },
            Some(mapping),
        ) = (&mut question.ask, mapping)
            && let Ok(meant) = mapping.meant(prop)
        {
            *prop = meant;
        }
    }
    Ok(Judged {
        name: name.to_owned(),
        model,
        mapping,
        source: test,
        refused,
        test: judged,
        questions,
    })
}

/// The questions of a request about a test.
fn questions(
    request: &CheckRequest,
    test: &LitmusTest,
    model: &str,
) -> Result<Vec<PlayQuestion>, Vec<Diagnostic>> {
    if !request.outcome.trim().is_empty() {
        let prop = litmus::parse_prop(test, &request.outcome)?;
        return Ok(vec![of_outcome(prop, request.outcome.trim())]);
    }
    let all = all_questions(test, model);
    let chosen: Vec<PlayQuestion> = match request.property.as_str() {
        "" if test.launch.is_some() => of_kernel(test),
        "" => {
            let own = all.iter().position(|q| q.expected.is_some()).is_none();
            all.into_iter()
                .filter(|question| match own {
                    true => question.ask.property() == Property::Reachability,
                    false => question.expected.is_some(),
                })
                .collect()
        }
        property => all
            .into_iter()
            .filter(|question| question.ask.property().to_string() == property)
            .collect(),
    };
    if chosen.is_empty() {
        let message = format!("there is no property `{}`", request.property);
        return Err(vec![Diagnostic::plain("unknown-property", message)]);
    }
    Ok(chosen)
}

fn of_outcome(prop: Prop, text: &str) -> PlayQuestion {
    PlayQuestion {
        ask: Ask::Reachability {
            prop: Some(prop),
            negate: false,
        },
        quantifier: Quantifier::Exists.name(),
        proposition: text.to_owned(),
        expected: None,
    }
}

/// A question about a property with its words; nothing is expected.
fn about(test: &LitmusTest, ask: Ask) -> PlayQuestion {
    PlayQuestion {
        ask,
        quantifier: test.quantifier.name(),
        proposition: String::new(),
        expected: None,
    }
}

/// What a page asks of a kernel, if its user chooses nothing.
fn of_kernel(test: &LitmusTest) -> Vec<PlayQuestion> {
    let lifetime = test.program.host.as_ref().map(|_| Ask::Lifetime);
    [Ask::Race, Ask::Misuse]
        .into_iter()
        .chain(lifetime)
        .chain([Ask::Liveness(ProgressModel::Fair)])
        .map(|ask| about(test, ask))
        .collect()
}

/// A question about every property, with what the test expects of the model.
fn all_questions(test: &LitmusTest, model: &str) -> Vec<PlayQuestion> {
    let expectation = test.expect.get(model).cloned().unwrap_or_default();
    let word = |is: Option<bool>, yes: &'static str, no: &'static str| {
        is.map(|is| if is { yes } else { no })
    };
    let reachability = expectation.reachability;
    let quantifier = match reachability {
        Some(Reachability::Required) => Quantifier::ForAll,
        _ => test.quantifier,
    };
    let mut questions = vec![
        PlayQuestion {
            ask: Ask::Reachability {
                prop: test.condition.clone(),
                negate: quantifier == Quantifier::ForAll,
            },
            quantifier: quantifier.name(),
            proposition: test.condition_text.trim().to_owned(),
            expected: reachability.map(Reachability::word),
        },
        PlayQuestion {
            expected: word(expectation.race, "racy", "race-free"),
            ..about(test, Ask::Race)
        },
        PlayQuestion {
            expected: word(expectation.undefined, "undefined", "defined"),
            ..about(test, Ask::Undefined)
        },
        PlayQuestion {
            expected: word(expectation.lifetime, "misused", "proper"),
            ..about(test, Ask::Lifetime)
        },
    ];
    questions.extend(ProgressModel::ALL.map(|progress| {
        let expected = expectation.liveness.get(progress.name()).copied();
        PlayQuestion {
            expected: word(expected, "hangs", "terminates"),
            ..about(test, Ask::Liveness(progress))
        }
    }));
    questions
}

fn undecided(reason: Reason) -> Answer {
    Answer::new(Verdict::Undecided(reason), Engine::Sat.name())
}

fn open<'s>(judged: &'s Judged<'_>) -> Session<'s> {
    let session = Session::new(&judged.test, &judged.model, ENGINE, LIMITS, &[]);
    match judged.mapping {
        Some(mapping) => session.via(judged.source, mapping),
        None => session,
    }
}

/// A session that explains.
fn explaining<'s>(judged: &'s Judged<'_>) -> Session<'s> {
    open(judged)
        .detailed()
        .with_all_races()
        .explaining()
        .with_explanations()
}

fn decide(request: &CheckRequest, judged: &Judged<'_>) -> Decided {
    let mut session = match request.brief {
        true => open(judged),
        false => explaining(judged),
    };
    let lines = judged
        .questions
        .iter()
        .map(|question| {
            line(
                request,
                judged,
                question,
                answer(request, judged, &mut session, question),
            )
        })
        .collect();
    let about_outcomes = judged
        .questions
        .iter()
        .all(|question| question.ask.property() == Property::Reachability);
    let wanted = request.outcomes && !request.brief;
    let lists = wanted && about_outcomes && judged.refused.is_none();
    let outcomes = lists.then(|| open(judged).outcomes());
    Decided { lines, outcomes }
}

fn answer(
    request: &CheckRequest,
    judged: &Judged<'_>,
    session: &mut Session<'_>,
    question: &PlayQuestion,
) -> Answer {
    if let Some(reason) = &judged.refused {
        return undecided(reason.clone());
    }
    let mut answer = match question.ask {
        Ask::Liveness(progress) => {
            let task = LivenessTask::new(&judged.test, &judged.model);
            Liveness::new(&task, ENGINE, LIMITS, &[]).ask(progress)
        }
        _ => match session.decide(&question.ask) {
            Some(answer) => answer,
            None if question.ask == Ask::Race => undecided(Reason::NotInModel("data races".into())),
            None => session
                .never_undefined()
                .unwrap_or_else(|| undecided(Reason::NotInModel("undefined behaviour".into()))),
        },
    };
    if stop::spent().is_some() {
        return undecided(Reason::Stack);
    }
    if matches!(question.ask, Ask::Reachability { .. } | Ask::Liveness(_)) {
        match session.definedness(None) {
            Some(Ok(known)) => answer.definedness = Some(known),
            Some(Err(law)) => {
                answer.defect.get_or_insert(law);
            }
            None => {}
        }
    }
    if let (Ask::Race | Ask::Undefined, Some(fault)) = (&question.ask, &mut answer.fault)
        && !request.brief
        && fault.race
        && fault.remedy.is_none()
    {
        fault.remedy = match session.definedness(None) {
            Some(Ok(Definedness::Undefined(again))) if again.race => again.remedy,
            _ => session.remedy(fault),
        };
    }
    answer
}

/// The line of an answer, as the program reports it.
fn line(
    request: &CheckRequest,
    judged: &Judged<'_>,
    question: &PlayQuestion,
    answer: Answer,
) -> AnswerLine {
    let test = judged.source;
    let span = test.expect.get(&judged.name).map(|e| e.span);
    let property = question.ask.property();
    let plain = AnswerLine::new(&request.file, &test.name, &judged.name, property, answer);
    AnswerLine {
        site: FileSite::at(&test.file, span.unwrap_or(test.condition_span)),
        quantifier: question.quantifier,
        proposition: question.proposition.clone(),
        expected: question.expected,
        mapping: judged.mapping.map(Mapping::name),
        notes: plain.answer.remarks.clone(),
        ..plain
    }
}

/// Why each further model differs from the first one.
fn differences(all: &[Judged<'_>], decided: &[Decided]) -> Vec<String> {
    let sides: Vec<Side<'_>> = all
        .iter()
        .zip(decided)
        .filter_map(|(judged, decided)| side(judged, decided))
        .collect();
    let Some((first, others)) = sides.split_first() else {
        return Vec::new();
    };
    let means = Means {
        engine: ENGINE,
        limits: LIMITS,
        set: Vec::new(),
    };
    others
        .iter()
        .map(|other| difference::finding(first, other, &means))
        .map(|finding| finding.why)
        .filter(|why| !why.is_empty())
        .collect()
}

fn side<'a>(judged: &'a Judged<'_>, decided: &'a Decided) -> Option<Side<'a>> {
    let condition = judged.questions.first().map(|question| &question.ask)?;
    Some(Side {
        label: &judged.name,
        model: &judged.model,
        mapping: judged.mapping,
        source: judged.source,
        test: &judged.test,
        condition: condition.clone(),
        answers: decided
            .lines
            .iter()
            .map(|line| (&line.property, &line.answer))
            .collect(),
        outcomes: decided.outcomes.as_ref()?,
    })
}

fn column(request: &CheckRequest, judged: &Judged<'_>, decided: &Decided) -> ModelColumn {
    let answers = decided
        .lines
        .iter()
        .enumerate()
        .map(|(number, line)| PlayAnswer {
            line: json(|out| Json::lines().line(out, line)),
            text: text(line),
            pictures: match request.brief {
                true => Vec::new(),
                false => pictures(line, &format!("{}-{number}", judged.name)),
            },
        })
        .collect();
    let outcomes = decided.outcomes.as_ref().map(|outcomes| {
        let table = OutcomeTable {
            path: request.file.clone(),
            test: judged.source.name.clone(),
            model: judged.name.clone(),
            mapping: judged.mapping.map(Mapping::name),
            outcomes: outcomes.clone(),
            ms: None,
        };
        json(|out| Json::lines().table(out, &table))
    });
    ModelColumn {
        model: judged.name.clone(),
        mapping: judged.mapping.map(Mapping::name),
        answers,
        outcomes,
    }
}

/// The executions of an answer; `id` is unique in the page.
fn pictures(line: &AnswerLine, id: &str) -> Vec<Picture> {
    subject::subjects(line)
        .iter()
        .enumerate()
        .map(|(number, subject)| picture(subject, &format!("{id}-{number}")))
        .collect()
}

/// The picture of an execution; `id` is unique in the page.
fn picture(subject: &PictureSubject<'_>, id: &str) -> Picture {
    let choice = RelationChoice {
        relations: None,
        rest: true,
        ..RelationChoice::default()
    };
    let scene = Scene::new(subject, &choice);
    let relations = scene.relations.iter();
    Picture {
        svg: svg::inline(&scene, id),
        relations: relations.map(|r| (r.name.clone(), r.shown)).collect(),
    }
}

fn json(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Box<RawValue> {
    let mut out = Vec::new();
    write(&mut out).expect("memory takes every byte");
    let text = String::from_utf8(out).expect("JSON is UTF-8");
    RawValue::from_string(text.trim().to_owned()).expect("a whole object")
}

/// The answer with its reason, as `ask` prints it.
fn text(line: &AnswerLine) -> String {
    let options = HumanOptions {
        explain: true,
        few: true,
        ..HumanOptions::default()
    };
    let mut out = Vec::new();
    let mut human = Human::new(options);
    human.line(&mut out, line).expect("memory takes every byte");
    anstream::adapter::strip_str(&String::from_utf8_lossy(&out)).to_string()
}
