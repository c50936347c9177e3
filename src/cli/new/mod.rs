//! `fencepost new`: a test from a template.
//!
//! # Invariants
//! - It overwrites nothing, neither the test nor the schema.
//! - The new test passes `fencepost check`: the templates are tests themselves, `NAME` aside.
//! - The first line names the schema by a relative path (`#:schema`), which editors with Taplo
//!   (Even Better TOML) and Tombi read: no network is needed.

use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use clap::ValueEnum;
use include_dir::{Dir, include_dir};

use super::args::NewArgs;
use super::terminal::{Terminal, cannot_write};
use super::{exit, seams};
use diag::Diagnostic;

/// One folder per dialect, one file per template.
static TEMPLATES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/src/cli/new/templates");

/// The name of the schema's file.
pub(super) const SCHEMA: &str = "fencepost.schema.json";

/// The number of folders above the test in which the schema may be.
const HEIGHT: usize = 16;

/// Runs it; returns the exit code.
pub(super) fn run(args: &NewArgs, terminal: &Terminal) -> u8 {
    match create(args) {
        Ok(made) => terminal.printed(&made, exit::OK),
        Err(diagnostic) => {
            terminal.diagnose(&diagnostic);
            exit::INVALID
        }
    }
}

/// Writes the test, and the schema if it is missing; lists the written files.
fn create(args: &NewArgs) -> Result<String, Box<Diagnostic>> {
    let (folder, name) = place(&args.name)?;
    let path = folder.join(format!("{name}.toml"));
    let template = template(args)?;
    fn failed(path: &Path, error: &io::Error) -> Box<Diagnostic> {
        Box::new(cannot_write(path, error))
    }
    fs::create_dir_all(&folder).map_err(|e| failed(&folder, &e))?;
    let (schema, new_schema) = schema(&folder);
    let quoted = toml::Value::String(name).to_string();
    let text = format!(
        "#:schema {schema}\n{}",
        template.replacen("\"NAME\"", &quoted, 1)
    );
    write_new(&path, &text).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Box::new(
            Diagnostic::plain(
                "file-exists",
                format!("`{}` exists and is left as it is", path.display()),
            )
            .help("choose another name, or remove the file"),
        ),
        _ => failed(&path, &error),
    })?;
    let mut made = format!("{}\n", path.display());
    if new_schema {
        let file = folder.join(SCHEMA);
        write_new(&file, &format!("{:#}\n", seams::schema())).map_err(|e| failed(&file, &e))?;
        made.push_str(&format!("{}\n", file.display()));
    }
    Ok(made)
}

/// The folder and the test's name.
fn place(path: &Path) -> Result<(PathBuf, String), Box<Diagnostic>> {
    let bad = |why: &str| {
        let message = format!("`{}` cannot be the name of a test: {why}", path.display());
        Box::new(
            Diagnostic::plain("bad-name", message)
                .help("choose a name such as MP+rel+acq, or folder/MP+rel+acq"),
        )
    };
    let Some(Component::Normal(last)) = path.components().next_back() else {
        return Err(bad("it has no last part"));
    };
    let Some(name) = last.to_str() else {
        return Err(bad("it is not UTF-8"));
    };
    let name = name.strip_suffix(".toml").unwrap_or(name);
    if name.is_empty() || name.starts_with('.') {
        return Err(bad("names that begin with a dot are passed over"));
    }
    if name.contains("${") || name.chars().any(char::is_control) {
        return Err(bad("it contains a placeholder or a control character"));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok((
        folder
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect(),
        name.to_owned(),
    ))
}

/// The template's text.
fn template(args: &NewArgs) -> Result<&'static str, Box<Diagnostic>> {
    let dialect = &args.dialect;
    let name = args
        .template
        .to_possible_value()
        .map(|v| v.get_name().to_owned())
        .unwrap_or_default();
    let file = TEMPLATES
        .get_file(format!("{dialect}/{name}.toml"))
        .and_then(|f| f.contents_utf8());
    file.ok_or_else(|| {
        let message = format!("there is no template `{name}` in dialect `{dialect}`");
        let there = TEMPLATES
            .get_dir(dialect)
            .into_iter()
            .flat_map(|d| d.files());
        let mut there: Vec<&str> = there
            .filter_map(|f| f.path().file_stem()?.to_str())
            .collect();
        there.sort_unstable();
        Box::new(
            Diagnostic::plain("no-template", message)
                .note(format!("templates: {}", there.join(", "))),
        )
    })
}

/// The path of the schema from the folder, and whether it must be written.
fn schema(folder: &Path) -> (String, bool) {
    // The folder of a name without one is the empty path.
    let at = fs::canonicalize(Path::new(".").join(folder)).unwrap_or_else(|_| folder.to_owned());
    let found = at
        .ancestors()
        .take(HEIGHT)
        .position(|above| above.join(SCHEMA).is_file());
    (
        format!("{}{SCHEMA}", "../".repeat(found.unwrap_or(0))),
        found.is_none(),
    )
}

/// Writes a file that does not exist.
pub(super) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use front::litmus::parse;

    #[test]
    fn every_template_is_a_test_with_an_expectation_of_its_dialects_model() {
        let mut seen = 0;
        for file in TEMPLATES.dirs().flat_map(Dir::files) {
            let text = file.contents_utf8().unwrap();
            assert_eq!(text.matches("\"NAME\"").count(), 1, "{:?}", file.path());
            let tests = parse("t.toml", text.as_bytes())
                .unwrap_or_else(|d| panic!("{:?}: {}", file.path(), d[0]));
            let test = &tests[0];
            assert!(
                test.expect
                    .contains_key(test.program.dialect.default_model()),
                "{:?}",
                file.path()
            );
            assert_eq!(
                file.path().parent().and_then(Path::to_str),
                Some(test.program.dialect.name())
            );
            seen += 1;
        }
        assert_eq!(seen, 26);
    }

    #[test]
    fn the_place_is_what_stands_before_the_name() {
        let at = |path: &str| {
            place(Path::new(path))
                .map(|(folder, name)| (folder.display().to_string(), name))
                .ok()
        };
        assert_eq!(at("MP"), Some(("".into(), "MP".into())));
        assert_eq!(at("./MP"), Some(("".into(), "MP".into())));
        assert_eq!(at("a/b/MP+rel.toml"), Some(("a/b".into(), "MP+rel".into())));
        assert_eq!(at(".."), None);
        assert_eq!(at(".x"), None);
        assert_eq!(at("a\nb"), None);
        assert_eq!(at("${x}"), None);
    }
}
