//! Stores a compiler's output as one file: a head with language and compiler, then PTX. Refused
//! operations are comments.
//!
//! # Invariants
//! - Reading a written file gives the same outputs.

use std::collections::HashMap;
use std::fmt::Write;

use crate::compiled::{CompiledItem, functions};
use crate::compiler::Output;
use crate::operation::{AtomicOperation, SourceLanguage};

const HEAD: &str = "// fencepost compilers: ";
const REFUSED: &str = "// refused: ";

/// The words before the version in a compiler's version line, and its short name.
const NAMES: [(&str, &str); 2] = [("clang version", "clang"), ("release", "nvcc")];

/// One compiler's output for one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompilerRecord {
    /// The language.
    pub language: SourceLanguage,
    /// The compiler's version line and the target.
    pub compiler: String,
    /// The PTX texts, concatenated.
    text: String,
    /// Reasons for refusal, by function name.
    refused: HashMap<String, String>,
}

impl CompilerRecord {
    /// Stores the result of [`crate::Compiler::compile`].
    pub fn new(
        language: SourceLanguage,
        compiler: &str,
        outputs: &[(AtomicOperation, Output)],
    ) -> CompilerRecord {
        let mut texts: Vec<&str> = Vec::new();
        let mut refused = HashMap::new();
        for (operation, output) in outputs {
            match output {
                // Functions that were compiled together share one text.
                Output::Text(text) if texts.last() != Some(&text.as_str()) => texts.push(text),
                Output::Text(_) => {}
                Output::Refused(why) => {
                    refused.insert(operation.to_string(), why.clone());
                }
            }
        }
        let text = texts
            .iter()
            .map(|text| format!("{}\n", text.trim()))
            .collect();
        CompilerRecord {
            language,
            compiler: compiler.to_owned(),
            text,
            refused,
        }
    }

    /// A short name for files and for the observed mapping: compiler, version, language, target.
    pub fn name(&self) -> String {
        let (version, arch) = self
            .compiler
            .rsplit_once(", ")
            .unwrap_or((&self.compiler, "ptx"));
        let short = NAMES.iter().find_map(|(word, name)| {
            let rest = version.split_once(word)?.1.trim_start();
            Some(format!("{name}-{}", rest.split([' ', ',']).next()?))
        });
        let name = format!(
            "{}-{}-{arch}",
            short.as_deref().unwrap_or(version),
            self.language.row().name
        );
        name.chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') {
                    c
                } else {
                    '-'
                }
            })
            .collect()
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut out = format!("{HEAD}{}; {}\n", self.language.row().name, self.compiler);
        for operation in AtomicOperation::all(self.language) {
            let name = operation.to_string();
            if let Some(why) = self.refused.get(&name) {
                let _ = writeln!(out, "{REFUSED}{name}: {why}");
            }
        }
        out + &self.text
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A sentence that says what is wrong with its first line.
    pub fn read(text: &str) -> Result<CompilerRecord, String> {
        let head = text.lines().next().and_then(|line| line.strip_prefix(HEAD));
        let (language, compiler) = head.and_then(|head| head.split_once("; ")).ok_or_else(|| {
            format!(
                "its first line is not `{HEAD}LANGUAGE; COMPILER`; `fencepost compilers --save` \
                writes such files"
            )
        })?;
        let known = SourceLanguage::named(language)
            .ok_or_else(|| format!("`{language}` is not a language with atomic operations"))?;
        let refused = text
            .lines()
            .filter_map(|line| line.strip_prefix(REFUSED)?.split_once(": "))
            .map(|(name, why)| (name.to_owned(), why.to_owned()))
            .collect();
        let rest = text
            .lines()
            .skip(1)
            .skip_while(|line| line.starts_with(REFUSED));
        let text = rest.map(|line| format!("{line}\n")).collect();
        Ok(CompilerRecord {
            language: known,
            compiler: compiler.to_owned(),
            text,
            refused,
        })
    }

    /// The result for each operation in the file.
    pub fn outputs(&self) -> Vec<(AtomicOperation, Result<Vec<CompiledItem>, String>)> {
        let mut functions = functions(&self.text);
        AtomicOperation::all(self.language)
            .into_iter()
            .filter_map(|operation| {
                let name = operation.to_string();
                let made = match (functions.remove(&name), self.refused.get(&name)) {
                    (Some(items), _) => Ok(items),
                    (None, Some(why)) => Err(why.clone()),
                    (None, None) => return None,
                };
                Some((operation, made))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back() {
        let all = AtomicOperation::all(SourceLanguage::C11);
        let function =
            |operation: &AtomicOperation| format!(".func {operation}()\n{{ fence.sc.sys; }}\n");
        let both = function(&all[0]) + &function(&all[1]);
        let outputs = [
            (all[0], Output::Text(both.clone())),
            (all[1], Output::Text(both)),
            (all[2], Output::Refused("error: no: such thing".into())),
        ];
        let record = CompilerRecord::new(SourceLanguage::C11, "clang 1.0, sm_70", &outputs);
        let again = CompilerRecord::read(&record.text()).expect("written by us");
        assert_eq!(again, record);
        let made = again.outputs();
        assert_eq!(made.iter().map(|m| m.0).collect::<Vec<_>>(), all[..3]);
        assert_eq!(made[1].1.as_ref().map(Vec::len), Ok(1));
        assert_eq!(made[2].1, Err("error: no: such thing".to_owned()));
    }

    #[test]
    fn names_are_short() {
        let name = |compiler| CompilerRecord::new(SourceLanguage::C11, compiler, &[]).name();
        assert_eq!(
            name("Debian clang version 19.1.7 (3~deb12u1), sm_70"),
            "clang-19.1.7-c11-sm_70"
        );
        assert_eq!(
            name("Cuda compilation tools, release 13.0, V13.0.48, sm_90"),
            "nvcc-13.0-c11-sm_90"
        );
        assert_eq!(name("a/compiler"), "a-compiler-c11-ptx");
    }

    #[test]
    fn other_files_are_refused() {
        for (text, why) in [
            (".version 8.0", "first line"),
            ("// fencepost compilers: c11", "first line"),
            (
                "// fencepost compilers: fortran; gfortran",
                "`fortran` is not a language",
            ),
        ] {
            let error = CompilerRecord::read(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
