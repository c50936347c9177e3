//! Builds the map of the house from the sources: the crates, their contents, and their imports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use super::imports::Crate;
use super::{crates, root};

const PAGE: &str = "docs/src/map.md";

const HEAD: &str = "\
# The map of the house

The heads of the source files make this page (`BLESS=1 cargo test --test texts house` makes it again). A crate imports only
crates above it in the list; cargo checks that. Inside a crate, files of different folders do not import each other in
circles; a test checks that.
";

/// The crates that each crate imports.
fn arrows(all: &BTreeMap<String, Crate>) -> BTreeMap<&str, BTreeSet<&str>> {
    let named = |house: &Crate, own: &str| {
        let words: BTreeSet<&str> = house.outside().into_values().flatten().collect();
        all.keys()
            .map(String::as_str)
            .filter(|name| *name != own && words.contains(name))
            .collect()
    };
    all.iter()
        .map(|(name, house)| (name.as_str(), named(house, name)))
        .collect()
}

/// The number of levels of crates below a crate.
fn height(name: &str, arrows: &BTreeMap<&str, BTreeSet<&str>>) -> usize {
    arrows[name]
        .iter()
        .map(|below| 1 + height(below, arrows))
        .max()
        .unwrap_or(0)
}

/// The page's number of lines for a crate, if it is still about right: not every edit changes the
/// page.
fn about(old: &str, name: &str, lines: usize) -> usize {
    let row = old
        .lines()
        .find(|line| line.starts_with(&format!("| `{name}` |")));
    let told = row.and_then(|row| row.trim_end_matches(" |").rsplit_once(' ')?.1.parse().ok());
    told.filter(|told: &usize| told.abs_diff(lines) * 10 <= lines)
        .unwrap_or(lines.next_multiple_of(100))
}

fn page(old: &str) -> String {
    let all = crates();
    let arrows = arrows(&all);
    let mut order: Vec<&str> = arrows.keys().copied().collect();
    order.sort_by_key(|name| (height(name, &arrows), *name));
    let mut text =
        format!("{HEAD}\n| crate | what | imports | lines, about |\n|---|---|---|---|\n");
    for name in &order {
        let house = &all[*name];
        let imports: Vec<String> = arrows[name]
            .iter()
            .map(|below| format!("`{below}`"))
            .collect();
        let lines = about(old, name, house.files.values().map(|file| file.lines).sum());
        let what = &house.files[&Vec::new()].doc;
        writeln!(
            text,
            "| `{name}` | {what} | {} | {lines} |",
            imports.join(", ")
        )
        .expect("a string");
    }
    for name in &order {
        let place = if *name == "fencepost" {
            "src".to_owned()
        } else {
            format!("crates/{name}/src")
        };
        let rooms: Vec<_> = all[*name]
            .files
            .iter()
            .filter(|(module, _)| module.len() == 1)
            .collect();
        if rooms.is_empty() {
            continue;
        }
        writeln!(text, "\n## {name}\n\nIn `{place}`:\n").expect("a string");
        for (module, file) in rooms.iter().filter(|(_, file)| !file.is_test) {
            writeln!(text, "- `{}`: {}", module[0], file.doc).expect("a string");
        }
    }
    text
}

#[test]
fn the_map_is_true() {
    let old = fs::read_to_string(root().join(PAGE)).unwrap_or_default();
    let new = page(&old);
    if std::env::var_os("BLESS").is_some() {
        fs::write(root().join(PAGE), &new).expect("written");
    } else {
        assert_eq!(old, new, "{PAGE} is made anew by BLESS=1");
    }
}
