//! The page of `fencepost show`: the question, and every outcome of the test, under each model.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::super::decide::{self, Also, Decided};
use super::super::plan::{Question, Unit};
use super::super::run::Run;
use super::super::seams;
use super::super::settings::Settings;
use report::picture::page;
use report::picture::page::{Page, PageView};
use report::picture::{RelationChoice, Scene, subject};
use report::{AnswerLine, OutcomeTable};
use verdict::{Property, Verdict};

/// The largest number of outcomes on a page.
const MOST_OUTCOMES: usize = 48;

/// The answers of one model.
struct ModelAnswers {
    /// To the question.
    asked: Vec<AnswerLine>,
    /// The list of outcomes.
    table: Option<OutcomeTable>,
    /// About each outcome, in order.
    outcomes: Vec<AnswerLine>,
}

/// Decides everything and makes the page; `None` without a test.
pub(super) fn of(run: &mut Run<'_>, units: &[Unit<'_>]) -> Option<String> {
    let first = units.first()?;
    let (test, path) = (first.source, first.path);
    let mut page = Page {
        title: test.name.clone(),
        about: vec![path.to_owned()],
        models: units.iter().map(|u| u.model.label.clone()).collect(),
        ..Page::default()
    };
    page.about.extend(
        test.doc
            .split("\n\n")
            .map(str::trim)
            .filter(|d| !d.is_empty())
            .map(|d| d.replace('\n', " ")),
    );
    let mut model = 0;
    run.decide(units, said, |run, said| {
        said.asked.iter().for_each(|line| super::note(run, line));
        for line in &said.asked {
            add(&mut page, model, question_of(line), line);
        }
        if let Some(OutcomeTable { outcomes, .. }) = &said.table {
            if !outcomes.complete {
                let reason = outcomes
                    .reason
                    .as_ref()
                    .map_or("a limit".to_owned(), ToString::to_string);
                let name = &page.models[model];
                page.notes.push(format!(
                    "Under {name}, the list of outcomes is not complete: {reason}."
                ));
            }
            let left_out = outcomes.outcomes.len().saturating_sub(MOST_OUTCOMES);
            if left_out > 0 {
                let name = &page.models[model];
                page.notes.push(format!(
                    "Under {name}, {left_out} more outcomes are not on this page."
                ));
            }
        }
        for line in &said.outcomes {
            add(
                &mut page,
                model,
                format!("outcome: {}", line.proposition),
                line,
            );
        }
        model += 1;
        ControlFlow::Continue(())
    });
    page.views.sort_by_key(|v| (v.outcome, v.model));
    Some(page::file(&page))
}

/// Asks one model about everything.
fn said(unit: &Unit<'_>, settings: &Settings) -> Decided<ModelAnswers> {
    let Decided {
        results: asked,
        mut defects,
        ..
    } = decide::answers(unit, settings);
    let about_outcomes = unit
        .questions
        .iter()
        .all(|q| q.property() == Property::Reachability);
    let mut said = ModelAnswers {
        asked,
        table: None,
        outcomes: Vec::new(),
    };
    if about_outcomes {
        let mut listed = decide::outcomes(unit, settings, Also::default());
        defects.append(&mut listed.defects);
        said.table = listed.results.pop();
        let states = said
            .table
            .iter()
            .flat_map(|t| &t.outcomes.outcomes)
            .take(MOST_OUTCOMES)
            .map(|o| &o.state);
        let questions = states.filter(|s| !s.is_empty()).filter_map(|state| {
            let text = verdict::as_prop(state);
            let prop = seams::parse_prop(&unit.test, &text).ok()?;
            Some(Question::of_outcome(prop, text))
        });
        let each = Unit {
            path: unit.path,
            test: Cow::Borrowed(&*unit.test),
            source: unit.source,
            mapping: unit.mapping,
            model: unit.model.clone(),
            refused: unit.refused.clone(),
            questions: questions.collect(),
            place: 0,
        };
        let mut answers = decide::answers(&each, settings);
        defects.append(&mut answers.defects);
        said.outcomes = answers.results;
    }
    Decided::new(vec![said], defects)
}

/// The question in the page's words.
fn question_of(line: &AnswerLine) -> String {
    match (&line.property, line.proposition.as_str()) {
        (Property::Reachability, "") => "any execution".to_owned(),
        (Property::Reachability, proposition) => format!("{} ({proposition})", line.quantifier),
        (property, _) => property.to_string(),
    }
}

fn add(page: &mut Page, model: usize, name: String, line: &AnswerLine) {
    let outcome = page
        .outcomes
        .iter()
        .position(|o| *o == name)
        .unwrap_or_else(|| {
            page.outcomes.push(name);
            page.outcomes.len() - 1
        });
    let choice = RelationChoice {
        relations: None,
        rest: true,
        ..RelationChoice::default()
    };
    let scenes: Vec<Scene> = subject::subjects(line)
        .iter()
        .map(|s| Scene::new(s, &choice))
        .collect();
    let mut texts = subject::texts(line);
    if scenes.is_empty() {
        texts.insert(0, subject::nothing(line));
    }
    let racy = line.fault().is_some()
        && !matches!(line.answer.verdict, Verdict::Racy | Verdict::Undefined);
    let verdict = format!(
        "{}{}",
        line.answer.verdict.word(),
        if racy {
            " (the program is undefined)"
        } else {
            ""
        }
    );
    page.views.push(PageView {
        outcome,
        model,
        verdict,
        texts,
        scenes,
    });
}
