//! Generates the book's page of instructions from the tables that the parser uses.
//!
//! # Invariants
//! - The page matches the tables: a test generates it again and compares. `BLESS=1 cargo test -p
//!   fencepost-front page` rewrites it.

use super::expand::CALL;
use super::families::FAMILIES;
use super::needs;
use super::outside::REFUSED;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/src/instructions.md"
);

const HEAD: &str = "\
# The PTX instructions

The tables of the front end make this page (`BLESS=1 cargo test -p fencepost-front page` makes it \
again).

- A *modelled* instruction makes events of memory models.
- A *folded* instruction makes no events: Fencepost computes its value, or it decides which code \
runs.
- A *refused* instruction or qualifier is an error at its place, with the reason given here. \
Fencepost ignores none.
- The column *needs* names a version of PTX and a target newer than PTX 6.0 and `sm_70`. In a \
module for an older one, the instruction is an error.
";

fn page() -> String {
    let mut text = HEAD.to_owned();
    let mut line = |line: String| {
        text += &line;
        text.push('\n');
    };
    line(format!(
        "\nEverywhere, these need: {}; so do registers of clusters.",
        needs::of_any()
    ));
    for (name, events, rows) in FAMILIES {
        line(format!(
            "\n## {}: {name}\n\n| instruction | form | effect | needs |\n|---|---|---|---|",
            if events { "Modelled" } else { "Folded" }
        ));
        let rows = rows
            .iter()
            .map(|row| (row.opcode, row.syntax, row.doc, needs::of_row(row)));
        let call = [("call", CALL.0, CALL.1, String::new())]
            .into_iter()
            .filter(|_| name == "control");
        for (opcode, syntax, doc, needs) in rows.chain(call) {
            line(format!(
                "| `{opcode}` | {} | {} | {needs} |",
                cell(syntax),
                cell(doc)
            ));
        }
    }
    for (title, table) in ["instructions", "qualifiers"].into_iter().zip(REFUSED) {
        line(format!(
            "\n## Refused: {title}\n\n| names | description |\n|---|---|"
        ));
        for (what, names) in table {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            line(format!("| {} | {} |", names.join(" "), cell(what)));
        }
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[test]
fn the_page_of_instructions_is_true() {
    let new = page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(PAGE, &new).expect("writable");
    } else {
        let old = std::fs::read_to_string(PAGE).expect("the page");
        assert_eq!(old, new, "{PAGE} is made anew by BLESS=1");
    }
}

#[test]
fn requirements_name_qualifiers_that_their_rows_take() {
    let rows = super::rows().map(|row| (row.syntax, needs::impossible(row)));
    let wrong: Vec<_> = rows.filter(|(_, words)| !words.is_empty()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
