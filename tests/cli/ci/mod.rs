//! Tests the features for CI, from outside: formats for other tools, selections, the cache,
//! configuration, interrupts.

#[cfg(unix)]
mod action;
mod cache;
mod config;
mod device;
mod formats;
mod hostile;
mod interrupt;
mod merge;
mod output;
mod select;
mod trouble;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Said;

/// A temporary folder with tests, and a cache next to it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        fs::create_dir(folder.0.path().join("work")).unwrap();
        files
            .iter()
            .for_each(|(name, text)| folder.write(name, text));
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("work").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn cache(&self) -> PathBuf {
        self.0.path().join("cache")
    }

    /// The command, without a cache.
    fn command(&self, arguments: &[&str]) -> Command {
        self.command_in(Path::new(""), arguments)
    }

    fn command_in(&self, below: &Path, arguments: &[&str]) -> Command {
        let mut command = super::command(&self.0.path().join("work").join(below), arguments);
        for variable in ["CLICOLOR_FORCE", "CLICOLOR"] {
            command.env_remove(variable);
        }
        command.env("FENCEPOST_NO_CACHE", "1");
        command
    }

    fn run(&self, arguments: &[&str]) -> Said {
        Said::from(self.command(arguments).output().unwrap())
    }

    /// A run with the cache of this folder.
    fn cached(&self, arguments: &[&str]) -> Said {
        Said::from(self.with_cache(arguments).output().unwrap())
    }

    fn with_cache(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        command
            .env_remove("FENCEPOST_NO_CACHE")
            .env("FENCEPOST_CACHE_DIR", self.cache());
        command
    }
}

/// Message passing by release and acquire, which PTX forbids to fail; `expected` is in line 13.
fn mp(name: &str, expected: &str) -> String {
    format!(
        "\
# A comment that stays.
name = \"{name}\"
condition = 'P1:r0 == 1 /\\ P1:r1 == 0'
tags = [\"mp\"]
memory = {{ x = 0, f = 0 }}

[[thread]]
code = \"st.weak x, 1; st.release.gpu f, 1\"
[[thread]]
cta = 1
code = \"ld.acquire.gpu r0, f; ld.weak r1, x\"
[expect]
ptx = {{ reachability = \"{expected}\" }} # and another one
"
    )
}

/// Store buffering, which every model but sequential consistency allows.
fn sb(name: &str) -> String {
    format!(
        "\
name = \"{name}\"
condition = 'P0:r0 == 0 /\\ P1:r0 == 0'
tags = [\"sb\"]
memory = {{ x = 0, y = 0 }}
[[thread]]
code = \"st.relaxed.gpu x, 1; ld.relaxed.gpu r0, y\"
[[thread]]
cta = 1
code = \"st.relaxed.gpu y, 1; ld.relaxed.gpu r0, x\"
[expect]
ptx = {{ reachability = \"allowed\" }}
sc = {{ reachability = \"forbidden\" }}
"
    )
}

/// A loop for which no bound is enough.
const SPIN: &str = "\
name = \"Spin\"
condition = 'P0:r1 == 100'
memory = { x = 0 }
[[thread]]
code = '''
L: add.u32 r1, r1, 1
ld.relaxed.gpu r0, x
setp.eq.u32 p, r0, 0
@p bra L
'''
[[thread]]
cta = 1
code = \"st.relaxed.gpu x, 1\"
[expect]
ptx = { reachability = \"forbidden\" }
";

/// The lines of `jsonl` as objects.
fn objects(text: &str) -> Vec<serde_json::Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}")))
        .collect()
}

/// The names of the tests in a `jsonl` report.
fn names(said: &Said) -> Vec<String> {
    objects(&said.out)
        .iter()
        .map(|o| o["test"].as_str().unwrap().to_owned())
        .collect()
}
