//! Finds which file of a crate imports which, from the text.
//!
//! # Rules
//! - A path that names an item is an import of the file that defines it. Re-exports are followed to
//!   their end, so a `mod.rs` that only lists its folder imports nothing.
//! - A path that names only a module is none; the items then taken from the module are.
//! - Code for unit tests only, comments and strings do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A path as written, segment by segment.
type Segments = Vec<String>;

/// A file of a crate, which is a module.
pub(super) struct File {
    /// Its path from the root of the repository.
    pub(super) path: PathBuf,
    /// The number of lines, tests included.
    pub(super) lines: usize,
    /// The first sentence of its module doc.
    pub(super) doc: String,
    /// Names that `use` binds in it, with their paths.
    bound: BTreeMap<String, Segments>,
    /// Paths named outside of `use`.
    named: BTreeSet<Segments>,
    /// Whether it contains only unit tests.
    pub(super) is_test: bool,
}

/// The files of a crate by module path; the root has the empty one.
pub(super) struct Crate {
    /// Its files.
    pub(super) files: BTreeMap<Segments, File>,
}

/// The target of a path.
enum End {
    /// An item, and the module whose file defines it.
    Item(Segments),
    /// A module.
    Module(Segments),
    /// Something outside the crate, or defined on the spot.
    Elsewhere,
}

impl Crate {
    /// Reads the sources in a folder, relative to the root of the repository.
    pub(super) fn read(root: &Path, folder: &str) -> Crate {
        let mut files = BTreeMap::new();
        for path in rust_files(&root.join(folder)) {
            let inner = path
                .strip_prefix(root.join(folder))
                .expect("found there")
                .with_extension("");
            let mut module: Segments = inner
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            if module
                .last()
                .is_some_and(|last| ["mod", "lib"].contains(&last.as_str()))
            {
                module.pop();
            }
            let is_test = module.iter().any(|part| part == "tests");
            let text = fs::read_to_string(&path).expect("readable");
            let path = path.strip_prefix(root).expect("found there").to_path_buf();
            // A program is a separate crate: it takes everything from the library.
            if !path.ends_with("src/main.rs") {
                files.insert(module, File::new(path, &text, is_test));
            }
        }
        Crate { files }
    }

    /// The files that each file imports.
    pub(super) fn imports(&self) -> BTreeMap<&Path, BTreeSet<&Path>> {
        let mut all = BTreeMap::new();
        for (module, file) in self.compiled() {
            let mut found = BTreeSet::new();
            for path in file.paths() {
                if let End::Item(of) = self.end(module, path, &mut BTreeSet::new()) {
                    found.insert(self.files[&of].path.as_path());
                }
            }
            found.remove(file.path.as_path());
            all.insert(file.path.as_path(), found);
        }
        all
    }

    /// The first words of a file's paths that lead out of the crate.
    pub(super) fn outside(&self) -> BTreeMap<&Path, BTreeSet<&str>> {
        let leaves = |module, path: &Segments| {
            matches!(self.end(module, path, &mut BTreeSet::new()), End::Elsewhere)
        };
        self.compiled()
            .map(|(module, file)| {
                let words = file
                    .paths()
                    .filter(|path| leaves(module, path))
                    .map(|path| path[0].as_str());
                (file.path.as_path(), words.collect())
            })
            .collect()
    }

    /// All files except unit tests.
    fn compiled(&self) -> impl Iterator<Item = (&Segments, &File)> {
        self.files.iter().filter(|(_, file)| !file.is_test)
    }

    /// The folder of a file: its own, or the one of the same name next to it.
    fn room(&self, file: &Path) -> PathBuf {
        let own = file.with_extension("");
        let has = |room: &Path| self.compiled().any(|(_, file)| file.path.starts_with(room));
        if has(&own) {
            own
        } else {
            file.parent().unwrap_or(Path::new("")).to_path_buf()
        }
    }

    /// Sets of files that all import each other, directly or not.
    pub(super) fn circles(&self) -> Vec<BTreeSet<&Path>> {
        let imports = self.imports();
        let reached: BTreeMap<_, _> = imports
            .keys()
            .map(|&from| (from, reached(from, &imports)))
            .collect();
        let together = |a: &Path, b: &Path| reached[a].contains(b) && reached[b].contains(a);
        let sets: BTreeSet<BTreeSet<&Path>> = imports
            .keys()
            .map(|a| imports.keys().copied().filter(|b| together(a, b)).collect())
            .collect();
        sets.into_iter().filter(|set| set.len() > 1).collect()
    }

    /// Whether files are of several folders.
    pub(super) fn is_across_folders(&self, set: &BTreeSet<&Path>) -> bool {
        let folders: BTreeSet<PathBuf> = set.iter().map(|file| self.room(file)).collect();
        folders.len() > 1
    }

    fn end(
        &self,
        module: &Segments,
        path: &[String],
        seen: &mut BTreeSet<(Segments, Segments)>,
    ) -> End {
        if !seen.insert((module.clone(), path.to_vec())) {
            return End::Elsewhere;
        }
        let (mut at, mut rest) = match path[0].as_str() {
            "crate" => (Segments::new(), &path[1..]),
            "self" => (module.clone(), &path[1..]),
            "super" => (module.clone(), path),
            first
                if self.is_module(module, first)
                    || self.files[module].bound.contains_key(first) =>
            {
                // `use a::b; b::c`: the name leads to itself only if it means a crate of that name.
                if self.files[module]
                    .bound
                    .get(first)
                    .is_some_and(|path| path.len() == 1 && path[0] == first)
                {
                    return End::Elsewhere;
                }
                (module.clone(), path)
            }
            _ => return End::Elsewhere,
        };
        while let Some((segment, further)) = rest.split_first() {
            if segment == "super" {
                if at.pop().is_none() {
                    return End::Elsewhere;
                }
            } else if self.is_module(&at, segment) {
                at.push(segment.clone());
            } else if let Some(bound) = self.files[&at].bound.get(segment) {
                match self.end(&at.clone(), bound, seen) {
                    End::Module(module) => at = module,
                    end => return end,
                }
            } else {
                return End::Item(at);
            }
            rest = further;
        }
        End::Module(at)
    }

    fn is_module(&self, module: &Segments, name: &str) -> bool {
        let mut inner = module.clone();
        inner.push(name.to_owned());
        self.files.contains_key(&inner)
    }
}

/// All files that a file imports, directly or not.
fn reached<'a>(
    from: &'a Path,
    imports: &BTreeMap<&'a Path, BTreeSet<&'a Path>>,
) -> BTreeSet<&'a Path> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        open.extend(
            imports
                .get(file)
                .into_iter()
                .flatten()
                .copied()
                .filter(|&next| seen.insert(next)),
        );
    }
    seen
}

impl File {
    fn new(path: PathBuf, text: &str, is_test: bool) -> File {
        let tokens = without_tests(tokens(text));
        let (mut bound, mut named) = (BTreeMap::new(), BTreeSet::new());
        let mut at = 0;
        while at < tokens.len() {
            if tokens[at] == "use" {
                at += 1;
                at = used(&tokens, at, &Segments::new(), &mut bound);
            } else if is_word(&tokens[at]) {
                let mut segments = vec![tokens[at].clone()];
                while tokens.get(at + 1).is_some_and(|t| t == "::")
                    && tokens.get(at + 2).is_some_and(|t| is_word(t))
                {
                    segments.push(tokens[at + 2].clone());
                    at += 2;
                }
                if segments.len() > 1 {
                    named.insert(segments);
                }
            }
            at += 1;
        }
        File {
            path,
            lines: text.lines().count(),
            doc: doc(text),
            bound,
            named,
            is_test,
        }
    }

    fn paths(&self) -> impl Iterator<Item = &Segments> {
        self.bound.values().chain(&self.named)
    }
}

/// Reads a tree of `use` from `at`; returns the position after it.
fn used(
    tokens: &[String],
    mut at: usize,
    prefix: &Segments,
    bound: &mut BTreeMap<String, Segments>,
) -> usize {
    let mut path = prefix.clone();
    loop {
        match tokens[at].as_str() {
            "{" => {
                at += 1;
                while tokens[at] != "}" {
                    at = used(tokens, at, &path, bound);
                    at += usize::from(tokens[at] == ",");
                }
                return at + 1;
            }
            "::" => at += 1,
            "self" if !path.is_empty() => at += 1,
            "as" => {
                bound.insert(tokens[at + 1].clone(), path);
                return at + 2;
            }
            word if is_word(word) => {
                path.push(word.to_owned());
                at += 1;
            }
            "*" => {
                bound.insert(format!("* {}", path.join("::")), path);
                return at + 1;
            }
            _ => {
                if let Some(name) = path.last().cloned() {
                    bound.insert(name, path);
                }
                return at;
            }
        }
    }
}

/// The first sentence of a module doc.
fn doc(text: &str) -> String {
    let lines = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim);
    let paragraph: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ").replace("[`", "`").replace("`]", "`");
    // If a sentence continues with the name of an item, the name adds nothing to the map.
    let ends = [". ", ": `", ": see"]
        .iter()
        .filter_map(|end| paragraph.find(end));
    paragraph[..ends.min().unwrap_or(paragraph.len())]
        .trim_end_matches('.')
        .to_owned()
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_') && !["as", "use"].contains(&token)
}

/// Words, `::` and single signs, without comments, strings and characters.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(hashes) = raw(rest) {
            let close = format!("\"{}", "#".repeat(hashes));
            let begin = hashes + 2;
            begin
                + rest[begin..]
                    .find(&close)
                    .map_or(rest.len() - begin, |at| at + close.len())
        } else if c == '"' {
            quoted(rest, '"')
        } else if c == '\''
            && (rest[1..].starts_with('\\') || rest[1..].chars().nth(1) == Some('\''))
        {
            quoted(rest, '\'')
        } else if rest.starts_with("::") {
            out.push("::".to_owned());
            2
        } else if c.is_alphanumeric() || c == '_' {
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            out.push(rest[..end].to_owned());
            end
        } else {
            if !c.is_whitespace() {
                out.push(c.to_string());
            }
            c.len_utf8()
        };
        rest = &rest[length..];
    }
    out
}

/// The number of `#` at the start of a raw string.
fn raw(text: &str) -> Option<usize> {
    let text = text.strip_prefix('r')?;
    let hashes = text.len() - text.trim_start_matches('#').len();
    text[hashes..].starts_with('"').then_some(hashes)
}

/// The length of a string or character, quotes included.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Removes every item that only unit tests use.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is = |word: &str| {
            tokens[at..]
                .iter()
                .take_while(|t| *t != "]")
                .any(|t| t == word)
        };
        if tokens[at] != "#" || !is("cfg") || !is("test") || is("not") {
            out.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let mut depth = 0;
        for token in &tokens[at..] {
            at += 1;
            depth += i32::from(token == "{") - i32::from(token == "}");
            if depth == 0 && (token == ";" || token == "}") {
                break;
            }
        }
    }
    out
}

/// All Rust files below a folder, sorted.
pub(super) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}
