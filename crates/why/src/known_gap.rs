//! Reduces a source model to the guarantees that a mapping is known to keep: see [`Gap`].

use cat::model::ir::{Axiom, Kind, Model, Test, TestEffect};
use cat::model::words::notes;
use front::mapping::{Gap, GapTest};

/// The model with what the mapping keeps in place of the gap's axioms. `None` if the gap is told in
/// another way, or does not concern the model: it has none of the axioms, or does not say what is
/// kept of them.
pub fn reduced(model: &Model, gap: &Gap) -> Option<Model> {
    if gap.told != GapTest::Less {
        return None;
    }
    let notes = notes(&model.files, "Kept by mappings:");
    let (kept, axioms) = (notes.get(gap.name.as_str())?, notes.get("instead of")?);
    let concerned = |axiom: &Axiom| axioms.split(", ").any(|name| name == axiom.name);
    let (_, node, span) = model.lets.iter().rev().find(|l| l.0 == *kept)?;
    if model.node(*node).kind != Kind::Rel || !model.axioms.iter().any(concerned) {
        return None;
    }
    let mut reduced = model.clone();
    reduced.axioms.retain(|axiom| !concerned(axiom));
    reduced.axioms.push(Axiom {
        name: kept.clone(),
        test: Test::Acyclic,
        negated: false,
        effect: TestEffect::Rejects,
        node: *node,
        doc: gap.lost.clone(),
        span: *span,
    });
    Some(reduced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cat::model::{Library, load_shipped};
    use engine::skeleton::signature::signature;
    use front::mapping::{Mapping, shipped};

    #[test]
    fn gaps_speak_of_the_models_of_their_language() {
        let models: Vec<Model> = Library::names()
            .into_iter()
            .map(|name| {
                load_shipped(name, &signature())
                    .expect("shipped")
                    .expect("valid")
            })
            .collect();
        for mapping in shipped() {
            let family = |m: &&Model| m.name.split('-').next() == Some(mapping.from.name());
            for gap in &mapping.gaps {
                if let GapTest::Mended(by) = &gap.told {
                    assert_eq!(
                        Mapping::named(by).map(|m| m.from),
                        Some(mapping.from),
                        "{by}"
                    );
                    continue;
                }
                for model in models.iter().filter(family) {
                    let reduced = reduced(model, gap)
                        .unwrap_or_else(|| panic!("{}: {}", model.name, gap.name));
                    assert!(reduced.axioms.len() <= model.axioms.len());
                }
            }
        }
    }

    #[test]
    fn other_models_have_no_gap() {
        let ptx = load_shipped("ptx", &signature())
            .expect("shipped")
            .expect("valid");
        for gap in shipped().iter().flat_map(|m| &m.gaps) {
            assert!(reduced(&ptx, gap).is_none());
        }
    }
}
