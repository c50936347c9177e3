//! Executes `console` blocks: `$ fencepost …` and the lines that it prints.
//!
//! # Invariants
//! - There is no shell: words are split at blanks outside of quotes. `COLUMNS=80` makes the
//!   terminal narrower. The other commands are `cat FILE` and `echo $?`, the exit code of the
//!   previous command.
//! - A page has its own scratch folder, so that commands may write files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use libtest_mimic::Failed;

use super::page::{Block, Page};

/// The command in a checkout.
const FROM_SOURCE: &str = "cargo run --release --";

/// Executes the blocks of a page, or rewrites them.
pub fn run(page: &Page) -> Result<(), Failed> {
    let blocks = page.blocks();
    if blocks.iter().all(|b| b.language() != "console") {
        return Ok(());
    }
    let scratch = tempfile::tempdir().map_err(|e| format!("no scratch folder: {e}"))?;
    fs::create_dir_all(scratch.path().join("tests/cli"))
        .map_err(|e| format!("no folder for tests: {e}"))?;
    for folder in ["litmus", "models", "tests/cli/compilers"] {
        provide(Path::new(folder), &scratch.path().join(folder))
            .map_err(|e| format!("{folder}: {e}"))?;
    }
    let mut code = None;
    let mut wrong = Vec::new();
    let mut blessed = Vec::new();
    for block in &blocks {
        if let Some(name) = block.file() {
            let text = page.resolve(&block.text)?;
            fs::write(scratch.path().join(name), text).map_err(|e| format!("{name}: {e}"))?;
        }
        if block.language() == "console" {
            let (text, problems) = console(page, block, scratch.path(), &mut code)?;
            wrong.extend(problems);
            blessed.push((block, text));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    if std::env::var_os("BLESS").is_some() {
        return bless(page, &blessed);
    }
    Err(format!(
        "{}\n`BLESS=1 cargo test --test book` rewrites the outputs",
        wrong.join("\n")
    )
    .into())
}

/// Provides a folder of the repository in the scratch folder.
fn provide(from: &Path, to: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::symlink(fs::canonicalize(from)?, to);
    #[cfg(not(unix))]
    {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                provide(&entry.path(), &target)?;
            } else {
                fs::copy(entry.path(), target)?;
            }
        }
        Ok(())
    }
}

/// Executes one block; returns its new text, and the differences.
fn console(
    page: &Page,
    block: &Block,
    folder: &Path,
    code: &mut Option<i32>,
) -> Result<(String, Vec<String>), Failed> {
    let mut text = String::new();
    let mut wrong = Vec::new();
    for (command, expected) in commands(&block.text) {
        let printed = output(&command, folder, code)?;
        text.push_str(&format!("$ {command}\n"));
        if fits(&expected, &printed) {
            text.push_str(&expected);
        } else {
            let printed: String = printed
                .lines()
                .map(|line| format!("{}\n", line.trim_end()))
                .collect();
            let place = format!("{}:{}", page.path.display(), block.line);
            wrong.push(format!(
                "{place}: $ {command}\n--- the page\n{expected}--- printed\n{printed}"
            ));
            text.push_str(&printed);
            // A blank line before the next command stays.
            text.push_str(&expected[expected.trim_end().len()..].replacen('\n', "", 1));
        }
    }
    Ok((text, wrong))
}

/// The commands of a block, each with the lines below it.
fn commands(text: &str) -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), list.last_mut()) {
            (Some(command), _) => list.push((command.to_owned(), String::new())),
            (None, Some((_, printed))) => {
                printed.push_str(line);
                printed.push('\n');
            }
            (None, None) => list.push((String::new(), format!("{line}\n"))),
        }
    }
    list
}

/// The output of a command.
fn output(command: &str, folder: &Path, code: &mut Option<i32>) -> Result<String, Failed> {
    if command == "echo $?" {
        return Ok(code.map_or_else(String::new, |code| format!("{code}\n")));
    }
    let narrow = command.strip_prefix("COLUMNS=80 ");
    let (command, columns) = (
        narrow.unwrap_or(command),
        if narrow.is_some() { "80" } else { "120" },
    );
    let command = match command.strip_prefix(FROM_SOURCE) {
        Some(rest) => format!("fencepost {rest}"),
        None => command.to_owned(),
    };
    let words = words(&command)?;
    match words.split_first() {
        Some((first, rest)) if first == "cat" => {
            let texts = rest.iter().map(|name| {
                fs::read_to_string(folder.join(name)).map_err(|e| format!("{name}: {e}"))
            });
            Ok(texts.collect::<Result<String, _>>()?)
        }
        Some((first, rest)) if first == "fencepost" => {
            let Output {
                status,
                stdout,
                stderr,
            } = Command::new(env!("CARGO_BIN_EXE_fencepost"))
                .args(rest)
                .current_dir(folder)
                .env("COLUMNS", columns)
                .stdin(Stdio::null())
                .output()?;
            *code = status.code();
            let all = [stdout, stderr].concat();
            Ok(String::from_utf8(all).map_err(|_| "the output is not UTF-8")?)
        }
        _ => Err(format!("`{command}`: only fencepost, cat and echo $? are known").into()),
    }
}

/// Splits a command at blanks outside of quotes.
fn words(command: &str) -> Result<Vec<String>, Failed> {
    let mut words: Vec<String> = Vec::new();
    let mut quote = None;
    let mut inside = false;
    for c in command.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => words.last_mut().expect("the quote began a word").push(c),
            (None, ' ') => inside = false,
            (None, c) => {
                if !inside {
                    words.push(String::new());
                    inside = true;
                }
                match c {
                    '\'' | '"' => quote = Some(c),
                    _ => words.last_mut().expect("just begun").push(c),
                }
            }
        }
    }
    if quote.is_some() {
        Err(format!("`{command}`: a quote is not closed").into())
    } else {
        Ok(words)
    }
}

/// Whether the printed lines match the expected ones, with `…` for any number of lines. Blanks at
/// ends do not count.
fn fits(expected: &str, printed: &str) -> bool {
    fn rest(expected: &[&str], printed: &[&str]) -> bool {
        match expected.split_first() {
            None => printed.is_empty(),
            Some((line, after)) if line.trim() == "…" => {
                (0..=printed.len()).any(|n| rest(after, &printed[n..]))
            }
            Some((line, after)) => match printed.split_first() {
                Some((other, left)) => line.trim_end() == other.trim_end() && rest(after, left),
                None => false,
            },
        }
    }
    rest(
        &expected.trim_end().lines().collect::<Vec<_>>(),
        &printed.trim_end().lines().collect::<Vec<_>>(),
    )
}

/// Writes the page with other outputs.
fn bless(page: &Page, blocks: &[(&Block, String)]) -> Result<(), Failed> {
    let lines: Vec<&str> = page.text.lines().collect();
    let mut out = String::new();
    let mut at = 0;
    for (block, text) in blocks {
        for line in &lines[at..block.line] {
            out.push_str(line);
            out.push('\n');
        }
        out.push_str(text);
        at = block.line + block.text.lines().count();
    }
    for line in &lines[at..] {
        out.push_str(line);
        out.push('\n');
    }
    Ok(fs::write(&page.path, out)?)
}
