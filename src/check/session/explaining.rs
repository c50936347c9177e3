//! Explanations of answers about outcomes, beside the answer.

use super::{Said, Session};
use crate::check::explain;
use crate::check::query::{Deadline, Query};
use crate::litmus::{Prop, condition};
use crate::verdict::{Answer, Explanation};

impl<'a> Session<'a> {
    /// Answers about outcomes come with an [`Explanation`]; costs many more questions.
    pub fn with_explanations(mut self) -> Self {
        (self.explain, self.explanations) = (true, true);
        self
    }

    /// For each axiom of a minimal set (those of `query`), an execution that breaks it alone.
    pub(super) fn show_breaches(
        &mut self,
        answer: &mut Answer,
        bound: u32,
        query: &Query<'a>,
        deadline: Deadline,
    ) {
        let mut explanation = Explanation::default();
        let core: Vec<usize> = (0..query.axioms.len()).filter(|&i| query.axioms[i]).collect();
        for &axiom in &core {
            // Best is one that breaks no other axiom at all.
            let without = |axioms: Vec<bool>| {
                let mut axioms = axioms;
                axioms[axiom] = false;
                Query { axioms, ..query.clone() }
            };
            let mut said = self.ask(bound, &without(vec![true; query.axioms.len()]), deadline).0;
            if matches!(said, Said::No) {
                said = self.ask(bound, &without(query.axioms.clone()), deadline).0;
            }
            match said {
                Said::Yes(found) => {
                    let task = self.prepare(bound, deadline).expect("prepared before").task.clone();
                    match explain::breach(&task, &found.0, &found.1, axiom) {
                        Ok(breach) => explanation.broken.push(breach),
                        Err(law) => answer.defect = Some(law),
                    }
                }
                Said::Unknown(reason) => explanation.given_up = Some(reason),
                Said::Defect(law) => answer.defect = Some(law),
                Said::No => answer.defect = Some("an axiom that can be spared counts as needed".into()),
            }
        }
        if core.is_empty() {
            explanation.impossible = self.impossible(bound, query, deadline);
        }
        answer.explanation = Some(Box::new(explanation));
    }

    /// The parts of the proposition that no execution satisfies, whatever the axioms; if each can hold alone, nothing.
    fn impossible(&mut self, bound: u32, query: &Query<'a>, deadline: Deadline) -> Vec<String> {
        let Some((whole, true)) = query.props.last().copied() else { return Vec::new() };
        let parts = match whole {
            Prop::And(parts) => parts.as_slice(),
            other => std::slice::from_ref(other),
        };
        let mut list = Vec::new();
        for part in parts {
            let mut props = query.props.clone();
            props.pop();
            props.push((part, true));
            let alone = Query { props, ..query.clone() };
            if matches!(self.ask(bound, &alone, deadline).0, Said::No) {
                list.push(condition::show(part, &self.test.program));
            }
        }
        list
    }
}
