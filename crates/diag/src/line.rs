//! Lines of a test, with the lines of other files that they were made from.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::visible;

/// A line of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceLine {
    /// The line number in the test's file, from 1; 0 means none.
    #[serde(rename = "line")]
    pub number: u32,
    /// For code that a compiler printed: the source lines that it names. A kernel's line comes
    /// first, a module's last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<SourceOrigin>,
}

/// A line of another file that a line of a test was made from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceOrigin {
    /// The file name, as the compiler wrote it.
    pub file: String,
    /// The line number, from 1.
    pub line: u32,
    /// The code was inlined at the line before this one in the list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inlined: bool,
}

impl SourceLine {
    /// Whether the line number is known.
    pub fn is_known(&self) -> bool {
        self.number > 0
    }

    /// The text after the number: ` [latch.cu:17, latch.ptx:62]`, ` [sync.h:126, inlined at
    /// latch.cu:17, latch.ptx:62]`, or empty.
    pub fn came_from(&self) -> String {
        let chains = self.origin.chunk_by(|_, next| next.inlined);
        let all: Vec<String> = chains
            .map(|lines: &[SourceOrigin]| {
                lines
                    .iter()
                    .rev()
                    .map(SourceOrigin::to_string)
                    .collect::<Vec<_>>()
                    .join(", inlined at ")
            })
            .collect();
        if all.is_empty() {
            String::new()
        } else {
            format!(" [{}]", all.join(", "))
        }
    }
}

impl From<u32> for SourceLine {
    fn from(number: u32) -> SourceLine {
        SourceLine {
            number,
            origin: Vec::new(),
        }
    }
}

impl fmt::Display for SourceLine {
    /// Prints `45 [latch.cu:17, latch.ptx:62]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, self.came_from())
    }
}

impl fmt::Display for SourceOrigin {
    /// Prints the file without its folders: compilers write whole paths.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or_default();
        write!(f, "{}:{}", visible(name), self.line)
    }
}
