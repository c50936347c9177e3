//! Chooses the edges of a scene: the pairs of each relation, and the cycle in bold.

use std::collections::BTreeSet;

use super::super::style::{self, EdgeStyle};
use super::{
    CycleStep, FAR_TOO_MANY, MOST_EDGES, PictureSubject, RelationChoice, Scene, SceneEdge,
    SceneRelation,
};
use verdict::{Style, Witness};

impl Scene {
    /// Adds the chosen relations, then the steps of the cycle.
    pub(super) fn add_relations(
        &mut self,
        subject: &PictureSubject<'_>,
        choice: &RelationChoice,
        place: &[Option<usize>],
    ) {
        let witness = subject.witness;
        let own = witness
            .relations
            .iter()
            .map(|(name, pairs)| (name, pairs, true));
        let derived = witness
            .derived
            .iter()
            .map(|(name, pairs)| (name, pairs, false));
        let mut others = 0;
        let mut not_drawn = Vec::new();
        for (name, pairs, always) in own.chain(derived) {
            let style = witness.style(name);
            let kind = style::of(name, style, others);
            let asked = choice.relations.as_ref().map(|names| names.contains(name));
            let mut shown = asked.unwrap_or(kind.shown || always);
            if !shown && !choice.rest {
                continue;
            }
            if pairs.len() > FAR_TOO_MANY * 8 && style != Some(Style::ProgramOrder) {
                if shown {
                    not_drawn.push(format!("`{name}` ({} pairs)", pairs.len()));
                }
                continue;
            }
            let mut pairs = reduced(pairs, place.len());
            if style == Some(Style::FromReads) {
                pairs = nearest(&pairs, witness.drawn_as(Style::Coherence));
            }
            let edges = self.drawable(&pairs, kind, asked == Some(true), place);
            if edges.is_empty() {
                continue;
            }
            let too_many = edges.len()
                > if asked == Some(true) {
                    FAR_TOO_MANY
                } else {
                    MOST_EDGES
                };
            // Program order is always drawn; it never clutters the picture.
            if too_many && style != Some(Style::ProgramOrder) {
                if shown {
                    not_drawn.push(format!("`{name}` ({} pairs)", edges.len()));
                }
                shown = false;
                if !choice.rest || edges.len() > MOST_EDGES {
                    continue;
                }
            }
            // Kinds drawn by default belong to a single relation each.
            others += usize::from(!kind.shown);
            let relation = self.relations.len();
            self.relations.push(SceneRelation {
                name: name.clone(),
                kind,
                shown,
            });
            self.edges
                .extend(edges.into_iter().map(|(from, to, both)| SceneEdge {
                    from,
                    to,
                    relation,
                    bold: false,
                    both,
                }));
        }
        if !not_drawn.is_empty() {
            self.says.push(format!(
                "Not drawn, since they would cover the rest: {}.",
                not_drawn.join(", ")
            ));
        }
        for step in &subject.cycle {
            self.add_step(step, witness, place);
        }
    }

    /// The pairs between drawn events, each once. `both`: the relation holds in both directions.
    fn drawable(
        &self,
        pairs: &[(usize, usize)],
        kind: EdgeStyle,
        asked: bool,
        place: &[Option<usize>],
    ) -> Vec<(usize, usize, bool)> {
        let all: BTreeSet<(usize, usize)> = pairs.iter().copied().collect();
        let mut edges = Vec::new();
        for &(a, b) in pairs {
            let (Some(from), Some(to)) = (place[a], place[b]) else {
                continue;
            };
            if a == b || (b < a && all.contains(&(b, a))) {
                continue;
            }
            // Drops `mo` where `co` is drawn. From synchronization, drops pairs in program order
            // and pairs from initial writes.
            let repeats = kind.once()
                && self.edges.iter().any(|e| {
                    let r = &self.relations[e.relation];
                    r.shown && r.kind == kind && e.from == from && e.to == to
                });
            let thread = self.events[from].thread;
            let inside = from < to && thread == self.events[to].thread;
            let idle = kind.class == "sync" && (thread.is_none() || inside);
            if asked || !(repeats || idle) {
                edges.push((from, to, all.contains(&(b, a))));
            }
        }
        edges
    }

    /// Adds a step of the cycle: makes its edge bold, and creates it if necessary.
    fn add_step(&mut self, step: &CycleStep, witness: &Witness, place: &[Option<usize>]) {
        let (Some(mut from), Some(mut to)) = (place[step.from], place[step.to]) else {
            return;
        };
        let mut name = step.name.as_str();
        // A step along an inverse relation is drawn as the relation.
        while let Some(inverse) = name.strip_suffix("^-1") {
            (from, to, name) = (to, from, inverse);
        }
        if from == to {
            return;
        }
        let found = self.relations.iter().position(|r| r.name == name);
        let relation = found.unwrap_or_else(|| {
            let kind = style::of(name, witness.style(name), self.relations.len());
            self.relations.push(SceneRelation {
                name: name.to_owned(),
                kind,
                shown: true,
            });
            self.relations.len() - 1
        });
        let same =
            |e: &&mut SceneEdge| e.relation == relation && (e.from, e.to) == (from, to) && !e.both;
        match self.edges.iter_mut().find(same) {
            Some(edge) => edge.bold = true,
            None => {
                // A bold edge is not repeated under another name: `co` next to `mo`.
                let kind = self.relations[relation].kind;
                let relations = &self.relations;
                self.edges.retain(|e| {
                    let same = (e.from, e.to) == (from, to) && relations[e.relation].kind == kind;
                    e.bold || !same || !kind.once()
                });
                self.edges.push(SceneEdge {
                    from,
                    to,
                    relation,
                    bold: true,
                    both: false,
                });
            }
        }
        // A bold edge of a hidden relation is shown without the relation's other edges.
        if !self.relations[relation].shown {
            let name = self.relations[relation].name.clone();
            let kind = self.relations[relation].kind;
            self.relations.push(SceneRelation {
                name,
                kind,
                shown: true,
            });
            let alone = self.relations.len() - 1;
            for edge in self
                .edges
                .iter_mut()
                .filter(|e| e.relation == relation && e.bold)
            {
                edge.relation = alone;
            }
        }
    }

    /// Sorts relations, shown ones first; otherwise keeps their order.
    pub(super) fn relations_in_order(&mut self) {
        let mut order: Vec<usize> = (0..self.relations.len()).collect();
        order.sort_by_key(|&r| !self.relations[r].shown);
        let mut new = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &r)| new[r] = at);
        self.relations = order.iter().map(|&r| self.relations[r].clone()).collect();
        self.edges
            .iter_mut()
            .for_each(|e| e.relation = new[e.relation]);
        // Bold edges are last, so they are drawn over the others.
        self.edges
            .sort_by_key(|e| (e.bold, e.relation, e.from, e.to));
    }
}

/// Removes the pairs that follow by transitivity, if the relation is a strict partial order.
fn reduced(pairs: &[(usize, usize)], n: usize) -> Vec<(usize, usize)> {
    let mut after: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); n];
    for &(a, b) in pairs {
        after[a].insert(b);
    }
    let order = pairs
        .iter()
        .all(|&(a, b)| a != b && !after[b].contains(&a) && after[b].is_subset(&after[a]));
    if !order {
        return pairs.to_vec();
    }
    pairs
        .iter()
        .copied()
        .filter(|&(a, c)| !after[a].iter().any(|&b| b != c && after[b].contains(&c)))
        .collect()
}

/// The earliest of the writes that overwrite the value of a read.
fn nearest(fr: &[(usize, usize)], co: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let all: BTreeSet<(usize, usize)> = fr.iter().copied().collect();
    let later = |r: usize, w: usize| {
        co.iter()
            .any(|&(before, after)| after == w && all.contains(&(r, before)))
    };
    fr.iter().copied().filter(|&(r, w)| !later(r, w)).collect()
}
