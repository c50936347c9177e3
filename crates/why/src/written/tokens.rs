//! Splits the code of a test into tokens.

use std::ops::Range;

use program::litmus::LitmusTest;

/// Punctuation of more than one character.
const LONG: &[&str] = &[
    "<<=", ">>=", "::", "->", "++", "--", "==", "!=", "<=", ">=", "&&", "||", "+=", "-=", "&=",
    "|=", "^=", "<<", ">>",
];

/// The types of locations as the file declares them: strings on the line that begins with a
/// location's name.
pub(super) fn declarations(test: &LitmusTest) -> Vec<Range<usize>> {
    let text = &test.file.text;
    let (mut found, mut at) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let name = line
            .split('=')
            .next()
            .unwrap_or("")
            .trim()
            .trim_matches('"');
        let declared = line.contains('=') && test.program.locations.iter().any(|l| l.name == name);
        let quoted = line
            .find("type")
            .and_then(|n| Some(n + line[n..].find('"')? + 1));
        if let (true, Some(open)) = (declared, quoted)
            && let Some(len) = line[open..].find('"')
        {
            found.push(start + open..start + open + len);
        }
    }
    found
}

/// What is between the outermost braces around a place of a source file.
fn function_around(text: &str, at: usize) -> Option<Range<usize>> {
    let (mut depth, mut start, mut i) = (0, 0, 0);
    while let Some(c) = text[i..].chars().next() {
        let rest = &text[i..];
        let passed = match rest.get(..2) {
            Some("//") => rest.find('\n').unwrap_or(rest.len()),
            Some("/*") => rest.find("*/").map_or(rest.len(), |n| n + 2),
            _ => 0,
        };
        if passed > 0 {
            i += passed;
            continue;
        }
        match c {
            '{' => {
                start = if depth == 0 { i + 1 } else { start };
                depth += 1;
            }
            '}' => {
                depth = usize::saturating_sub(depth, 1);
                if depth == 0 && (start..i).contains(&at) {
                    return Some(start..i);
                }
            }
            _ => {}
        }
        i += c.len_utf8();
    }
    None
}

/// The parts of a file that are code of the test: whole strings of TOML, whole functions of a
/// source file, else from the first to the last instruction of a thread.
pub(super) fn regions(test: &LitmusTest) -> Vec<Range<usize>> {
    let text = &test.file.text;
    let mut regions: Vec<Range<usize>> = Vec::new();
    let whole = |span: Range<usize>| {
        if test.launch.is_some() {
            return function_around(text, span.start);
        }
        ["'''", "\"\"\""].iter().find_map(|quote| {
            let open = text[..span.start].rfind(quote)?;
            let close = span.end + text[span.end..].find(quote)?;
            text[..open]
                .trim_end()
                .ends_with('=')
                .then(|| open + quote.len()..close)
        })
    };
    for t in test.program.thread_ids() {
        let spans: Vec<Range<usize>> = test
            .program
            .thread(t)
            .code
            .iter()
            .map(|i| i.span.range())
            .collect();
        for span in spans.iter().filter(|span| !span.is_empty()) {
            if regions.iter().any(|r| r.contains(&span.start)) {
                continue;
            }
            regions.push(whole(span.clone()).unwrap_or_else(|| {
                // Up to the end of the statement.
                let end = text[span.end..]
                    .find([';', '\n'])
                    .map_or(span.end, |n| span.end + n + 1);
                span.start..end
            }));
        }
    }
    let more = instance(test).into_iter().filter(|r| {
        regions
            .iter()
            .all(|have| r.end <= have.start || have.end <= r.start)
    });
    regions.extend(more.collect::<Vec<_>>());
    regions.sort_by_key(|r| r.start);
    regions
}

/// The values of a test that is an instance of its file: they belong to the code, but to no
/// instruction.
fn instance(test: &LitmusTest) -> Vec<Range<usize>> {
    let text = &test.file.text;
    let (mut found, mut at, mut inside) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let value = value.trim();
        let quoted =
            value.len() > 1 && value.starts_with(['"', '\'']) && value.ends_with(&value[..1]);
        if line.starts_with('[') {
            inside = false;
        } else if key.trim() == "name" && quoted {
            inside = value[1..value.len() - 1] == test.name;
        } else if inside && quoted {
            let open = start + line.find(value).unwrap_or(0);
            found.push(open + 1..open + value.len() - 1);
        }
    }
    found
}

/// The tokens of a part of a file, without comments and strings.
pub(super) fn tokens(text: &str, region: Range<usize>) -> Vec<Range<usize>> {
    let (mut all, mut at) = (Vec::new(), region.start);
    while at < region.end {
        let rest = &text[at..region.end];
        let word = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |n| n + 2)
        } else if let Some(string) = rest.strip_prefix('"') {
            string.find('"').map_or(rest.len(), |n| n + 2)
        } else {
            0
        };
        let long = LONG
            .iter()
            .find(|p| rest.starts_with(**p))
            .map_or(0, |p| p.len());
        let one = rest.chars().next().map_or(1, char::len_utf8);
        let len = if word > 0 { word } else { long.max(one) };
        if skipped == 0 && !rest.starts_with(char::is_whitespace) {
            all.push(at..at + len);
        }
        at += skipped.max(if skipped > 0 { 0 } else { len });
    }
    all
}
