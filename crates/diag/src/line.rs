//! Lines of a test, and where what stands there came from.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::visible;

/// A line of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceLine {
    /// In the test's file, from 1; 0: none.
    #[serde(rename = "line")]
    pub number: u32,
    /// Where code that something else printed says that it came from: the line of a kernel first,
    /// that of a module last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<Origin>,
}

/// A line of another file, from which a line was made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The file, as it was named.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// It was inlined at the line in front of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inlined: bool,
}

impl SourceLine {
    /// Whether there is one.
    pub fn is_known(&self) -> bool {
        self.number > 0
    }

    /// What stands behind the number: ` [latch.cu:17, latch.ptx:62]`, ` [sync.h:126, inlined at
    /// latch.cu:17, latch.ptx:62]`, or nothing.
    pub fn came_from(&self) -> String {
        let chains = self.origin.chunk_by(|_, next| next.inlined);
        let chain = |lines: &[Origin]| {
            lines
                .iter()
                .rev()
                .map(Origin::to_string)
                .collect::<Vec<_>>()
                .join(", inlined at ")
        };
        let all: Vec<String> = chains.map(chain).collect();
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
    /// `45 [latch.cu:17, latch.ptx:62]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, self.came_from())
    }
}

impl fmt::Display for Origin {
    /// Without folders: compilers name files by their whole paths.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or_default();
        write!(f, "{}:{}", visible(name), self.line)
    }
}
