//! One page: its blocks of code, links and headings.

use std::fs;
use std::path::{Path, PathBuf};

/// A page as written.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its path from the root of the repository.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// A block between fences.
#[derive(Clone, Debug)]
pub struct Block {
    /// The text after the opening fence.
    pub info: String,
    /// 1-based line of the opening fence.
    pub line: usize,
    /// The content of the block.
    pub text: String,
}

impl Block {
    /// The first word after the fence.
    pub fn language(&self) -> &str {
        self.info.split([',', ' ']).next().unwrap_or_default()
    }

    /// The name after `file=`.
    pub fn file(&self) -> Option<&str> {
        self.info
            .split([',', ' '])
            .find_map(|word| word.strip_prefix("file="))
    }
}

impl Page {
    /// Reads a page.
    pub fn read(path: &Path) -> Page {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Page {
            path: path.to_owned(),
            text,
        }
    }

    /// Its blocks, in order.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for (i, line) in self.text.lines().enumerate() {
            match (&mut open, line.strip_prefix("```")) {
                (None, Some(info)) => {
                    open = Some(Block {
                        info: info.trim().to_owned(),
                        line: i + 1,
                        text: String::new(),
                    });
                }
                (Some(_), Some("")) => blocks.extend(open.take()),
                (Some(block), _) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(
            open.is_none(),
            "{}: a block is not closed",
            self.path.display()
        );
        blocks
    }

    /// The text with each `{{#include FILE}}` line replaced by that file; the name of a missing
    /// file as an error.
    pub fn resolve(&self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        for line in text.lines() {
            let named = line
                .trim()
                .strip_prefix("{{#include ")
                .and_then(|rest| rest.strip_suffix("}}"));
            match named {
                Some(name) => {
                    let path = self.path.parent().unwrap_or(Path::new("")).join(name);
                    out.push_str(
                        &fs::read_to_string(&path)
                            .map_err(|e| format!("{}: {e}", path.display()))?,
                    );
                }
                None => {
                    out.push_str(line);
                    out.push('\n');
                }
            }
        }
        Ok(out)
    }

    /// The lines outside of blocks.
    fn prose(&self) -> Vec<String> {
        let mut inside = false;
        let mut lines = Vec::new();
        for line in self.text.lines() {
            if line.starts_with("```") {
                inside = !inside;
            } else if !inside {
                lines.push(line.to_owned());
            }
        }
        lines
    }

    /// The targets of its links.
    pub fn links(&self) -> Vec<String> {
        let mut found = Vec::new();
        for line in self.prose() {
            // Text between backquotes is not a link.
            let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            for piece in plain.split("](").skip(1) {
                found.extend(
                    piece
                        .split_once(')')
                        .map(|(target, _)| target.trim().to_owned()),
                );
            }
        }
        found
    }

    /// The names of its headings in links, by the rules of mdBook and GitHub.
    pub fn headings(&self) -> Vec<String> {
        let titles = self
            .prose()
            .into_iter()
            .filter(|line| line.starts_with('#'));
        titles
            .map(|line| {
                let title = line.trim_start_matches('#').trim().to_lowercase();
                let kept = title
                    .chars()
                    .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
                kept.collect::<String>().replace(' ', "-")
            })
            .collect()
    }
}
