//! Checks the tables of kernels in the book, *Kernels as compilers print them*: each row names an
//! import and its answers. `BLESS=1 cargo test --test cli compiled` writes the program's answers
//! into the rows; times stay as they are.
//!
//! Modules are in `litmus/compiled/modules`. nvcc prints the same text for older targets, except
//! for the line `.target`, unless there is a separate module for one of them. A quick run checks
//! every kernel for the newest target, and a part of the changed kernels and of the runs
//! ([`testkit::suite`]).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value;
use testkit::suite::{is_long, step};

use super::fencepost;

/// The page, in `docs/src`.
const PAGE: &str = "docs/src/compiled-kernels.md";

/// The targets of the modules.
const TARGETS: [u32; 3] = [75, 80, 90];

/// The number of columns that describe the import: kernel, launch, arguments, condition.
const IMPORTED: usize = 4;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    fs::read_to_string(root().join(PAGE)).expect("a page")
}

/// The rows of the table with this first column: the line of each, and its cells.
fn rows(page: &str, first: &str) -> Vec<(usize, Vec<String>)> {
    let head = page
        .lines()
        .position(|line| line.starts_with(&format!("| {first} |")))
        .expect("a table");
    let table = page
        .lines()
        .enumerate()
        .skip(head + 2)
        .take_while(|(_, line)| line.starts_with('|'));
    let cells = |line: &str| {
        line.trim_matches('|')
            .split(" | ")
            .map(|c| c.trim().to_owned())
            .collect()
    };
    table.map(|(at, line)| (at, cells(line))).collect()
}

/// The part that a run checks; everything if it rewrites the page.
fn part<T: Clone>(rows: &[T]) -> Vec<T> {
    let step = if std::env::var_os("BLESS").is_some() {
        1
    } else {
        step()
    };
    rows.iter().step_by(step).cloned().collect()
}

/// The code in a cell.
fn code(cell: &str) -> &str {
    cell.trim_matches('`')
}

/// The module that contains a kernel, as printed for a target.
fn module(kernel: &str, target: u32) -> String {
    let folder = root().join("litmus/compiled/modules");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .map(|file| file.expect("a file").path())
        .collect();
    // The module for the target itself comes first, then the newest.
    files.sort_by_key(|file| {
        (
            !file.to_string_lossy().contains(&format!("sm_{target}")),
            file.clone(),
        )
    });
    let mut texts = files.iter().filter(|file| {
        let name = file.to_string_lossy();
        name.contains(&format!("sm_{target}")) || name.contains("sm_90")
    });
    let text = texts.find_map(|file| {
        fs::read_to_string(file)
            .ok()
            .filter(|text| text.contains(&format!(".entry {kernel}(")))
    });
    text.unwrap_or_else(|| panic!("no module has a kernel `{kernel}`"))
        .replace(".target sm_90", &format!(".target sm_{target}"))
}

/// Imports a kernel of a module as a row describes; `None` if the target lacks one of its
/// instructions.
fn import(folder: &Path, row: &[String], module: &str) -> Option<()> {
    fs::write(folder.join("k.ptx"), module).expect("writable");
    let kernel = code(&row[0]);
    let listed = fencepost(folder, &["import", "k.ptx"]).out;
    let refused: Vec<&str> = listed
        .lines()
        .skip_while(|line| !line.starts_with(&format!("{kernel}(")))
        .skip(1)
        .take_while(|line| line.starts_with(' '))
        .filter(|line| line.contains("refused"))
        .collect();
    if refused.iter().any(|line| line.contains("needs `.target")) {
        return None;
    }
    assert_eq!(refused, [""; 0], "{kernel}");
    let (launch, cluster) = row[1].split_once(", cluster ").unwrap_or((&row[1], "1"));
    let (grid, block) = launch.split_once(" × ").expect("blocks × threads");
    let mut arguments = vec![
        "import", "k.ptx", "--kernel", kernel, "--grid", grid, "--block", block,
    ];
    arguments.extend(["--cluster", cluster, "--ask", code(&row[3]), "-o", "k.toml"]);
    arguments.extend(
        code(&row[2])
            .split(' ')
            .flat_map(|argument| ["--arg", argument]),
    );
    let body = module
        .split(".entry ")
        .find(|text| text.starts_with(&format!("{kernel}(")))
        .expect("the kernel");
    if body.contains("%globaltimer") {
        arguments.extend(["--arg", "%globaltimer=0"]);
    }
    let _ = fs::remove_file(folder.join("k.toml"));
    let said = fencepost(folder, &arguments);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{kernel}");
    Some(())
}

/// The answers about the latest imported test.
#[derive(Clone)]
struct Answers {
    /// Whether the condition can hold.
    holds: &'static str,
    /// The two accesses of a race.
    race: Option<Vec<String>>,
    /// The number of events of the reachability query.
    events: u64,
}

fn answers(folder: &Path) -> Answers {
    let mut arguments = vec!["check", "k.toml", "--format", "jsonl", "--timings"];
    arguments.extend([
        "--property",
        "reachability",
        "--property",
        "race",
        "--property",
        "undefined",
    ]);
    let said = fencepost(folder, &arguments);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let lines: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect();
    let of = |property: &str| lines.iter().find(|line| line["property"] == property);
    let condition = of("reachability").expect("the condition");
    let undefined = of("undefined").is_some_and(|line| line["verdict"] == "undefined");
    let holds = match condition["verdict"].as_str() {
        _ if undefined => "undefined",
        Some("allowed") => "yes",
        Some("forbidden") => "no",
        _ => panic!("{condition}"),
    };
    let race = of("race")
        .filter(|line| line["verdict"] != "race-free")
        .map(|line| {
            assert_eq!(line["verdict"], "racy", "{line}");
            let accesses = line["race"]["accesses"].as_array().expect("accesses");
            let mut texts: Vec<String> = accesses
                .iter()
                .map(|a| a["text"].as_str().expect("text").to_owned())
                .collect();
            texts.sort();
            texts
        });
    Answers {
        holds,
        race,
        events: condition["events"].as_u64().expect("events"),
    }
}

/// Writes the answers into their cells, and compares the page with its former text.
fn held(told: Vec<(usize, Vec<String>)>) {
    static WRITING: Mutex<()> = Mutex::new(());
    let _alone = WRITING.lock();
    let page = page();
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    for (at, cells) in told {
        lines[at] = format!("| {} |", cells.join(" | "));
    }
    let new = lines.join("\n") + "\n";
    if std::env::var_os("BLESS").is_some() {
        fs::write(root().join(PAGE), new).expect("writable");
    } else {
        let differ: Vec<_> = page
            .lines()
            .zip(new.lines())
            .filter(|(old, new)| old != new)
            .collect();
        assert!(
            differ.is_empty(),
            "the page and the program: {differ:#?}; `BLESS=1` writes the page anew"
        );
    }
}

#[test]
fn the_kernels_of_the_book_have_the_answers_that_it_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = page();
    let mut told = Vec::new();
    let all = rows(&page, "kernel");
    for (at, mut cells) in part(&all) {
        let mut by_target: Vec<(u32, Answers)> = Vec::new();
        let mut before: Option<(String, Answers)> = None;
        for target in TARGETS {
            let module = module(code(&cells[0]), target);
            if import(folder.path(), &cells, &module).is_none() {
                continue;
            }
            let text = module.replace(&format!(".target sm_{target}"), "");
            // If nothing else differs, the answers are the same.
            let known = before.filter(|(same, _)| !is_long() && *same == text);
            let of = known.map_or_else(|| answers(folder.path()), |known| known.1);
            by_target.push((target, of.clone()));
            before = Some((text, of));
        }
        let (_, newest) = by_target.last().expect("a target");
        for (target, of) in &by_target {
            let same = of.holds == newest.holds && of.race.is_some() == newest.race.is_some();
            assert!(same, "{} on sm_{target}", cells[0]);
        }
        let race = if newest.race.is_some() { "yes" } else { "no" };
        let events = if by_target.len() == TARGETS.len()
            && by_target.iter().all(|(_, of)| of.events == newest.events)
        {
            newest.events.to_string()
        } else {
            by_target
                .iter()
                .map(|(target, of)| format!("{target}: {}", of.events))
                .collect::<Vec<_>>()
                .join(", ")
        };
        cells[IMPORTED..IMPORTED + 3].clone_from_slice(&[
            newest.holds.to_owned(),
            race.to_owned(),
            events,
        ]);
        told.push((at, cells));
    }
    assert!(all.len() >= 20, "{} kernels", all.len());
    held(told);
}

#[test]
fn a_changed_kernel_of_the_book_is_caught_at_the_lines_that_it_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = page();
    let kernels = rows(&page, "kernel");
    let mut told = Vec::new();
    let changes = rows(&page, "changed kernel");
    for (at, mut cells) in part(&changes) {
        let of = |row: &&(usize, Vec<String>)| row.1[0] == cells[0];
        let (_, row) = kernels
            .iter()
            .find(of)
            .unwrap_or_else(|| panic!("{} is not a kernel of the table", cells[0]));
        let (kernel, old) = (code(&cells[0]), code(&cells[1]));
        let new = if cells[2] == "nothing" {
            ""
        } else {
            code(&cells[2])
        };
        // The newest target for which the compiler prints that line.
        let changed = TARGETS.iter().rev().find_map(|target| {
            // A tab comes before operands.
            let module = module(kernel, *target).replace(" \t", " ");
            let start = module
                .find(&format!(".entry {kernel}("))
                .expect("found before");
            let end = start
                + module[start + 1..]
                    .find(".entry ")
                    .map_or(module[start..].len(), |next| next + 1);
            let body = &module[start..end];
            body.contains(old)
                .then(|| module.replace(body, &body.replace(old, new)))
        });
        let changed = changed.unwrap_or_else(|| panic!("{kernel}: no `{old}`"));
        import(folder.path(), row, &changed).expect("a target that has all of it");
        let Answers { holds, race, .. } = answers(folder.path());
        let code = |text: &String| format!("`{text}`");
        let race = race.map_or("–".to_owned(), |race| {
            race.iter().map(code).collect::<Vec<_>>().join(", ")
        });
        assert!(
            holds != "no" || race != "–",
            "{kernel} without `{old}`: nothing is caught"
        );
        cells[3..5].clone_from_slice(&[holds.to_owned(), race]);
        told.push((at, cells));
    }
    // Every correct kernel has a wrong variant.
    for (_, row) in &kernels {
        let right = row[IMPORTED] == "no" && row[IMPORTED + 1] == "no";
        assert!(
            !right || changes.iter().any(|(_, change)| change[0] == row[0]),
            "{} has no twin",
            row[0]
        );
    }
    held(told);
}

/// The model allows everything that the executor shows, and it shows races only if there are some.
#[test]
fn the_executor_runs_the_kernels_of_the_book_and_agrees() {
    let folder = tempfile::tempdir().expect("a folder");
    for (_, row) in part(&rows(&page(), "kernel")) {
        import(folder.path(), &row, &module(code(&row[0]), 90)).expect("the newest target");
        let said = fencepost(
            folder.path(),
            &["run", "k.toml", "--runs", "60", "--format", "jsonl"],
        );
        let seen: Value =
            serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}: {}", row[0], said.err));
        let observed = seen["observed"].as_array().expect("outcomes");
        assert!(
            !observed.is_empty() && observed.iter().all(|o| o["allowed"] == true),
            "{}: {seen}",
            row[0]
        );
        let races = seen["races"]
            .as_array()
            .is_some_and(|races| !races.is_empty());
        assert!(row[IMPORTED + 1] == "yes" || !races, "{}: {seen}", row[0]);
    }
}
