//! The PTX instructions: the page of the book that the front end's tables make, which is also read
//! here.

/// The text.
const TEXT: &str = include_str!("../../../docs/src/instructions.md");

/// What a word of a form stands for.
const PLACEHOLDERS: [(&str, &[&str]); 3] = [
    ("scope", &["cta", "cluster", "gpu", "sys"]),
    ("space", &["global", "shared", "local", "const", "param"]),
    (
        "type",
        &[
            "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32",
            "s64", "f16", "f32", "f64",
        ],
    ),
];

/// A row of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageRow {
    /// Its heading, such as `Modelled: fences`.
    pub heading: &'static str,
    /// The form, or the names that are refused.
    pub form: String,
    /// The effect, or the reason for the refusal.
    pub effect: String,
}

/// The rows of an instruction that have all qualifiers of a word, such as `wgmma.fence`. A word of
/// a refused instruction has its row, and a word with a refused qualifier that of the qualifier.
pub(super) fn rows(word: &str) -> Vec<PageRow> {
    let mut parts = word.split('.');
    let opcode = parts.next().unwrap_or_default();
    let qualifiers: Vec<&str> = parts.collect();
    let mut heading = "";
    let (mut all, mut refused, mut is_opcode) = (Vec::new(), Vec::new(), false);
    for line in TEXT.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title;
            continue;
        }
        let cells = cells(line);
        let Some(first) = cells.first() else { continue };
        let names: Vec<&str> = first.split('`').skip(1).step_by(2).collect();
        if heading == "Refused: qualifiers" && names.iter().any(|name| qualifiers.contains(name)) {
            refused.push(PageRow {
                heading,
                form: first.clone(),
                effect: cells[1].clone(),
            });
        }
        if heading.is_empty() || !names.contains(&opcode) {
            continue;
        }
        is_opcode |= heading != "Refused: qualifiers";
        let is_refused = heading.starts_with("Refused");
        if heading == "Refused: qualifiers" || !is_refused && !has(&cells[1], &qualifiers) {
            continue;
        }
        let [form, effect] = match is_refused {
            true => [first.clone(), cells[1].clone()],
            false => [cells[1].clone(), cells[2].clone()],
        };
        all.push(PageRow {
            heading,
            form,
            effect,
        });
    }
    // No form of the instruction has these qualifiers.
    match all.is_empty() && is_opcode {
        true => refused,
        false => all,
    }
}

/// Whether a form has all of these qualifiers, or longer ones such as `tensormap::generic`.
fn has(form: &str, qualifiers: &[&str]) -> bool {
    fn is_between(c: char) -> bool {
        !(c.is_ascii_alphanumeric() || c == '_' || c == ':')
    }
    let words: Vec<&str> = form.split(is_between).collect();
    let is_there = |word: &&str| {
        let mut same = words.iter();
        same.any(|found| found == word || found.split("::").next() == Some(*word))
            || PLACEHOLDERS
                .iter()
                .any(|(name, all)| words.contains(name) && all.contains(word))
    };
    qualifiers.iter().all(is_there)
}

/// The cells of a line of a table; none for any other line.
fn cells(line: &str) -> Vec<String> {
    let Some(inside) = line.strip_prefix("| ").and_then(|l| l.strip_suffix('|')) else {
        return Vec::new();
    };
    // A bar in a cell has a backslash before it.
    let inside = inside.replace("\\|", "\u{1}");
    let cells = inside.split('|');
    cells
        .map(|cell| cell.trim().replace('\u{1}', "|"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_has_the_rows_with_its_qualifiers() {
        let all = rows("wgmma");
        assert!(all.len() > 3, "{all:?}");
        let fence = rows("wgmma.fence");
        assert_eq!(fence.len(), 1, "{fence:?}");
        assert!(fence[0].form.contains("wgmma.fence"), "{fence:?}");
        for word in ["fence.proxy.async", "fence.proxy.tensormap"] {
            assert!(!rows(word).is_empty(), "{word}");
        }
        for word in [
            "fence.sc.sys",
            "ld.mmio.acquire",
            "st.relaxed.gpu.shared.u32",
        ] {
            assert_eq!(rows(word).len(), 1, "{word}");
        }
        assert_eq!(rows("ld.release"), []);
        assert_eq!(rows("wgmma.fences"), []);
        assert_eq!(rows("wgmm"), []);
    }

    #[test]
    fn a_refused_instruction_has_its_reason() {
        let refused = rows("wmma.load");
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(refused[0].heading.starts_with("Refused"), "{refused:?}");
        assert!(refused[0].effect.contains("matrix"), "{refused:?}");
        for word in [
            "multimem.cp.async.bulk",
            "cp.async.bulk.wait_group.sync_restrict",
        ] {
            let refused = rows(word);
            assert_eq!(refused.len(), 1, "{refused:?}");
            assert_eq!(refused[0].heading, "Refused: qualifiers");
        }
    }
}
