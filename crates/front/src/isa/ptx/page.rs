//! The page of the book that lists the instructions, made from the tables that read them.
//!
//! # Invariants
//! - The page is true: a test makes it again and compares. `BLESS=1 cargo test -p fencepost-front page` rewrites it.

use super::expand::CALL;
use super::outside::REFUSED;
use super::table::FAMILIES;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/instructions.md");

const HEAD: &str = "\
# The PTX instructions

This page is made from the tables that read them (`BLESS=1 cargo test -p fencepost-front page` makes it again), so it is true. What is
*modelled* makes events that models know. What is *folded* makes none: it is computed, or decides which code runs. What is refused is an
error at its place, with the reason that stands here; nothing is passed over.
";

fn page() -> String {
    let mut text = HEAD.to_owned();
    let cell = |text: &str| text.replace('|', "\\|");
    let mut line = |line: String| {
        text += &line;
        text.push('\n');
    };
    for (name, events, rows) in FAMILIES {
        line(format!(
            "\n## {}: {name}\n\n| instruction | form | what it does |\n|---|---|---|",
            if events { "Modelled" } else { "Folded" }
        ));
        let rows = rows.iter().map(|row| (row.opcode, row.syntax, row.doc));
        let call = [("call", CALL.0, CALL.1)].into_iter().filter(|_| name == "control");
        for (opcode, syntax, doc) in rows.chain(call) {
            line(format!("| `{opcode}` | {} | {} |", cell(syntax), cell(doc)));
        }
    }
    for (title, table) in ["instructions", "qualifiers"].into_iter().zip(REFUSED) {
        line(format!("\n## Refused: {title}\n\n| names | what they are |\n|---|---|"));
        for (what, names) in table {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            line(format!("| {} | {} |", names.join(" "), cell(what)));
        }
    }
    text
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
