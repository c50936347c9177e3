//! Forms of CUDA C++ as users write them: what is read, and what the answer is.
//!
//! Each file of `tests/cli/forms` has snippets. A snippet begins with `=== title | answer`; the answer
//! is `race-free`; `racy N` or `undefined N`, with the line of one of the two accesses; or `unread`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::fencepost;

/// A snippet with its expected answer.
struct Snippet {
    title: String,
    answer: String,
    code: String,
}

fn snippets(text: &str) -> Vec<Snippet> {
    let mut all: Vec<Snippet> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("=== ") {
            Some(head) => {
                let (title, answer) = head.split_once(" | ").expect("`title | answer`");
                all.push(Snippet {
                    title: title.to_owned(),
                    answer: answer.to_owned(),
                    code: String::new(),
                });
            }
            None => {
                let last = all.last_mut().expect("a file begins with a head");
                last.code.push_str(line);
                last.code.push('\n');
            }
        }
    }
    all
}

/// The answer of `check`, and what it prints.
fn answer(code: &str) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("k.cu"), code).expect("writable");
    let said = fencepost(folder.path(), &["check", "--no-cache", "k.cu"]);
    let place = said
        .out
        .split_once("--> k.cu:")
        .and_then(|(_, rest)| rest.split(':').next());
    let answer = match said.code {
        Some(0)
            if said
                .out
                .contains("1 race-free; no barrier divergence, no hang") =>
        {
            "race-free".to_owned()
        }
        Some(1) if said.out.contains("error[race]") => format!("racy {}", place.unwrap_or("?")),
        Some(1) if said.out.contains("error[undefined]") => {
            format!("undefined {}", place.unwrap_or("?"))
        }
        Some(2) => "unread".to_owned(),
        code => format!("exit {code:?}"),
    };
    (answer, said.out + &said.err)
}

#[test]
fn forms_are_read_as_users_write_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/forms");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder of snippets")
        .map(|file| file.expect("a file").path())
        .collect();
    files.sort();
    let mut unlike = String::new();
    let mut count = 0;
    for file in files {
        let text = fs::read_to_string(&file).expect("readable");
        for snippet in snippets(&text) {
            let (given, said) = answer(&snippet.code);
            count += 1;
            if given != snippet.answer {
                let _ = writeln!(
                    unlike,
                    "{}: {}: expected {}, is {given}\n{said}",
                    file.display(),
                    snippet.title,
                    snippet.answer
                );
            }
        }
    }
    assert!(count > 100, "only {count} snippets");
    assert!(unlike.is_empty(), "{unlike}");
}
