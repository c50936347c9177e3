//! Checks clauses of models for which no test in `litmus/` detects their absence
//! (`tests/engines/mutants`). The search finds no small program that does, with any of the further
//! letters.
//!
//! If it does find a program, that program belongs into `litmus/`. `FENCEPOST_CLAUSES="ptx 5 60
//! alias,surface"` reports its progress with these letters in 60 seconds for each clause and
//! direction, and its results.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cat::model::clauses::ModelText;
use cat::model::{Library, Shipped};
use distinguish::{
    Alphabet, Further, JudgeSetup, LetterMeanings, SearchRequest, Tier, says, search,
};
use engine::skeleton::signature::signature;
use program::Dialect;
use testkit::suite::is_long;

const FURTHER: [(&str, Further); 10] = [
    ("sys", Further::System),
    ("cluster", Further::Cluster),
    ("cas", Further::Compare),
    ("red", Further::Reduce),
    ("alias", Further::Alias),
    ("surface", Further::Surface),
    ("plain", Further::Plain),
    ("dep", Further::Depend),
    ("branch", Further::Branch),
    ("barrier", Further::Barrier),
];

/// The result for one clause.
struct Asked {
    clause: String,
    /// The numbers of instructions without a result: for programs that the model allows and the
    /// rest forbids, and the reverse.
    searched: [usize; 2],
    found: Option<String>,
}

/// The number of clauses without effect on such programs, and the results of the others.
fn asked(
    name: &str,
    tables: &[&str],
    further: &[Further],
    size: usize,
    tiers: &[Tier],
    each: Option<Duration>,
) -> (usize, Vec<Asked>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../tests/engines/mutants/{name}.toml"));
    let known: toml::Table = std::fs::read_to_string(path)
        .expect("there")
        .parse()
        .expect("TOML");
    let unnoticed = |clause: &str| {
        tables
            .iter()
            .any(|table| known.get(*table).is_some_and(|t| t.get(clause).is_some()))
    };
    let signature = signature();
    let main = Library::model(name).expect("shipped");
    let text = ModelText {
        main,
        name,
        includes: &Shipped,
        signature: &signature,
        prelude: None,
    };
    let (model, clauses) = text.clauses().expect("valid");
    let alphabet = Alphabet::new(Dialect::of_model(name).unwrap_or_default(), further);
    let plain = JudgeSetup {
        model: &model,
        mapping: None,
        set: &[],
        learnt: None,
    };
    let learnt = Arc::new(LetterMeanings::new(plain, &alphabet).expect("it judges such programs"));
    let judged = JudgeSetup {
        learnt: Some(&learnt),
        ..plain
    };
    let said = says(judged, &alphabet).expect("it judges such programs");
    let (mut silent, mut all) = (0, Vec::new());
    for clause in clauses.iter().filter(|clause| unnoticed(&clause.name)) {
        let Ok(mutant) = text.without(clause) else {
            continue;
        };
        let mutant = judged.instead(&mutant);
        if says(mutant, &alphabet).is_ok_and(|of| of == said) {
            silent += 1;
            continue;
        }
        let mut of_clause = Asked {
            clause: clause.name.clone(),
            searched: [0; 2],
            found: None,
        };
        for (way, (allows, forbids)) in [(mutant, judged), (judged, mutant)].into_iter().enumerate()
        {
            let (allows, forbids, alphabet) = (vec![allows], vec![forbids], &alphabet);
            let deadline = each.map(|each| Instant::now() + each);
            let sought = SearchRequest {
                allows,
                forbids,
                alphabet,
                size,
                tiers,
                all: false,
                jobs: 1,
                deadline,
            };
            // Clauses without which the model cannot judge are skipped.
            let Ok(answer) = search(&sought) else {
                continue;
            };
            of_clause.searched[way] = answer.searched;
            if let Some(found) = answer.found.first() {
                of_clause.searched[way] -= 1;
                let said = ["forbidden", "allowed"][way];
                let doc = format!(
                    "{said} under {name}, and the opposite without {}",
                    clause.name.replace('\\', "-")
                );
                of_clause.found = Some(found.text(alphabet, &found.shape.name(), &doc));
                break;
            }
        }
        let Asked {
            clause,
            searched: [there, back],
            found,
        } = &of_clause;
        println!(
            "{clause}: none up to {there} and {back}{}",
            found.as_ref().map_or("", |_| ", found")
        );
        all.push(of_clause);
    }
    (silent, all)
}

const BOTH: &[Tier] = &[Tier::Critical, Tier::Other];

/// Uses the usual letters; in long runs also each of the further ones.
#[test]
fn no_small_program_notices_what_is_said_to_be_unnoticed() {
    let long = is_long();
    let mut heard = 0;
    for name in ["ptx", "c11", "cuda"]
        .into_iter()
        .take(if long { 3 } else { 2 })
    {
        let dialect = Dialect::of_model(name).unwrap_or_default();
        let letters = FURTHER
            .iter()
            .filter(|(_, further)| long && further.lacks(dialect).is_none());
        for further in [None].into_iter().chain(letters.map(Some)) {
            let (word, further) = further.map_or(("none", Vec::new()), |(word, further)| {
                (*word, vec![*further])
            });
            let (_, all) = asked(
                name,
                &["redundant", "equivalent", "open"],
                &further,
                3,
                BOTH,
                None,
            );
            heard += all.len();
            for Asked { clause, found, .. } in all {
                assert!(
                    found.is_none(),
                    "{name} without {clause}, letters besides: {word}\n{}",
                    found.unwrap_or_default()
                );
            }
        }
    }
    assert!(heard > 20, "{heard} clauses say something of such programs");
}

/// Reports the progress of the search.
#[test]
fn clauses_are_asked_about() {
    let asked = std::env::var("FENCEPOST_CLAUSES").unwrap_or_else(|_| "c11 2 60".to_owned());
    let words: Vec<&str> = asked.split_whitespace().collect();
    let [name, size, seconds, ref letters @ ..] = words[..] else {
        panic!("a model, a size, seconds, letters")
    };
    let critical = letters.contains(&"critical");
    let further: Vec<Further> = letters
        .iter()
        .flat_map(|words| words.split(','))
        .filter(|word| *word != "critical")
        .map(|word| {
            FURTHER
                .iter()
                .find(|(known, _)| *known == word)
                .unwrap_or_else(|| panic!("`{word}`"))
                .1
        })
        .collect();
    let tiers = if critical { &BOTH[..1] } else { BOTH };
    let each = Duration::from_secs(seconds.parse().expect("seconds"));
    let (silent, all) = self::asked(
        name,
        &["redundant", "equivalent", "open"],
        &further,
        size.parse().expect("a size"),
        tiers,
        Some(each),
    );
    println!("{asked}: {silent} clauses say nothing of such programs");
    for Asked { clause, found, .. } in all {
        found.iter().for_each(|found| println!("{clause}\n{found}"));
    }
}
