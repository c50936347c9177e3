//! Executes the examples of the book in `docs/` and of the READMEs, and checks their links.
//!
//! - `book::PAGE::console` executes the ```` ```console ```` blocks of a page, in order. It uses a
//!   scratch folder with `litmus/`, `models/` and the saved output of compilers. It compares the
//!   printed text (standard output, then standard error). A line `…` matches any number of lines.
//! - `book::PAGE::texts` reads its TOML and `.cat` blocks, and the files that it includes.
//! - `book::PAGE::links` looks up every relative link, with its heading.
//! - `book::summary` checks that `SUMMARY.md` lists every page.
//!
//! A block ```` ```toml,file=mp.toml ```` is written to the scratch folder under that name.
//! `BLESS=1 cargo test --test corpus -- book::` rewrites the outputs that differ.

mod console;
mod page;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fencepost::diag::SourceFile;
use fencepost::{litmus, model};
use libtest_mimic::{Failed, Trial};
use page::Page;

/// The folder of the pages, from the root of the repository.
const SOURCE: &str = "docs/src";

pub(super) fn trials() -> Vec<Trial> {
    let mut trials = vec![Trial::test("book::summary", summary)];
    let mut paths = markdown(Path::new(SOURCE));
    paths.extend(["README.md", "litmus/README.md"].map(PathBuf::from));
    for path in paths {
        let page = Page::read(&path);
        let name = path
            .strip_prefix(SOURCE)
            .unwrap_or(&path)
            .display()
            .to_string();
        let trial = |what: &str, check: fn(&Page) -> Result<(), Failed>| {
            let page = page.clone();
            Trial::test(format!("book::{name}::{what}"), move || check(&page))
        };
        trials.extend([
            trial("console", console::run),
            trial("texts", texts),
            trial("links", links),
        ]);
    }
    trials
}

/// The pages in a folder, sorted.
fn markdown(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder of the book");
    let mut found = Vec::new();
    for path in entries.map(|e| e.expect("readable").path()) {
        if path.is_dir() {
            found.extend(markdown(&path));
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Checks that the summary lists exactly the existing pages.
fn summary() -> Result<(), Failed> {
    let root = Path::new(SOURCE);
    let summary = Page::read(&root.join("SUMMARY.md"));
    let listed: BTreeSet<PathBuf> = summary
        .links()
        .into_iter()
        .map(|link| root.join(link))
        .collect();
    let there: BTreeSet<PathBuf> = markdown(root)
        .into_iter()
        .filter(|p| !p.ends_with("SUMMARY.md"))
        .collect();
    let differ: Vec<_> = listed.symmetric_difference(&there).collect();
    if differ.is_empty() {
        Ok(())
    } else {
        Err(format!("SUMMARY.md and {SOURCE} differ in {differ:?}").into())
    }
}

/// Checks that TOML and model texts are well-formed, that tests can be read, and that included
/// files exist.
fn texts(page: &Page) -> Result<(), Failed> {
    let mut wrong = Vec::new();
    for block in page.blocks() {
        let place = format!("{}:{}", page.path.display(), block.line);
        let text = match page.resolve(&block.text) {
            Ok(text) => text,
            Err(missing) => {
                wrong.push(format!("{place}: cannot read {missing}"));
                continue;
            }
        };
        match block.language() {
            // A snippet does not begin with a name.
            "toml" if text.starts_with("name = ") => {
                if let Err(diagnostics) = litmus::parse("page.toml", text.as_bytes()) {
                    wrong.extend(diagnostics.iter().map(|d| format!("{place}: {d}")));
                }
            }
            "toml" => {
                if let Err(error) = text.parse::<toml::Table>() {
                    wrong.push(format!("{place}: {error}"));
                }
            }
            "cat" => {
                let (_, diagnostics) = model::parse::parse(&SourceFile::new("page.cat", text));
                wrong.extend(diagnostics.iter().map(|d| format!("{place}: {d}")));
            }
            _ => {}
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n").into())
    }
}

/// Checks that every relative link leads to a file, and to a heading if it names one.
fn links(page: &Page) -> Result<(), Failed> {
    let mut wrong = Vec::new();
    for link in page.links() {
        if link.contains("://") || link.starts_with("mailto:") {
            continue;
        }
        let (file, heading) = link
            .split_once('#')
            .map_or((link.as_str(), None), |(f, h)| (f, Some(h)));
        let target = match file {
            "" => page.path.clone(),
            _ => page.path.parent().unwrap_or(Path::new("")).join(file),
        };
        if !target.exists() {
            wrong.push(format!("{}: {link} leads nowhere", page.path.display()));
        } else if let Some(heading) = heading
            && !Page::read(&target).headings().iter().any(|h| h == heading)
        {
            wrong.push(format!(
                "{}: {link}: there is no such heading",
                page.path.display()
            ));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n").into())
    }
}
