//! Lists the families of the instruction set, and finds the row of an instruction.
//!
//! # Invariants
//! - Qualifiers are accepted in any order; PTX's own order changed between versions
//!   (`ld.global.relaxed.gpu.u32` and `ld.relaxed.gpu.global.u32` are both in use).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use super::parse::{OperandKind, PtxOperand, RawInstr};
use super::table::{BARE, InstrRow, Matched, POLICY, QualKind, Quals, or_list};
use super::{
    arith, asynchronous, atomics, barriers, bits, carry, clusters, control, copies, fences, lanes,
    matrices, mbarrier, memory, multimem, outside, tcgen05, tensormap, textures, tiles, unknown,
    wgmma,
};
use diag::{MappedText, Sink};

/// The families of the instruction set, in order of documentation: description, whether they make
/// events for models, and rows. Families without events are computed before models see the program.
pub(super) const FAMILIES: [(&str, bool, &[InstrRow]); 21] = [
    ("loads and stores", true, memory::ROWS),
    ("textures and surfaces", true, textures::ROWS),
    ("atomic operations", true, atomics::ROWS),
    ("fences", true, fences::ROWS),
    ("barriers", true, barriers::ROWS),
    ("mbarrier objects", true, mbarrier::ROWS),
    ("asynchronous copies", true, copies::ROWS),
    ("tensor maps", true, tensormap::ROWS),
    (
        "asynchronous stores, reductions and matrix instructions",
        true,
        asynchronous::ROWS,
    ),
    (
        "requests to the scheduler of clusters",
        true,
        clusters::ROWS,
    ),
    ("multimem addresses", true, multimem::ROWS),
    ("matrices in shared memory", true, matrices::ROWS),
    ("matrix instructions of a warpgroup", true, wgmma::ROWS),
    ("tensor memory", true, tcgen05::ROWS),
    ("copies of tiles", true, tiles::ROWS),
    ("lanes of a warp", false, lanes::ROWS),
    ("control", false, control::ROWS),
    ("arithmetic and moves", false, arith::ROWS),
    ("bits", false, bits::ROWS),
    ("carries", false, carry::ROWS),
    (
        "operations with values that are not worked out",
        false,
        unknown::ROWS,
    ),
];

/// The instruction set: every row, in order of documentation.
pub fn rows() -> impl Iterator<Item = &'static InstrRow> {
    FAMILIES.into_iter().flat_map(|family| family.2)
}

fn by_opcode() -> &'static HashMap<&'static str, Vec<&'static InstrRow>> {
    static INDEX: OnceLock<HashMap<&'static str, Vec<&'static InstrRow>>> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index: HashMap<_, Vec<_>> = HashMap::new();
        for row in rows() {
            index.entry(row.opcode).or_default().push(row);
        }
        index
    })
}

/// Finds the row of an instruction and sorts its qualifiers. Reports an error and returns `None` if
/// there is no row.
pub(super) fn find(text: &MappedText, mut raw: RawInstr, sink: &mut Sink) -> Option<Matched> {
    let mut search = RowSearch {
        text,
        raw: &raw,
        sink,
    };
    let row = search.row()?;
    let (quals, complete) = search.qualifiers(row);
    if quals.all(QualKind::Cache).any(|word| word == POLICY) {
        drop_policy(text, &mut raw, sink)?;
    }
    complete.then_some(Matched { row, quals, raw })
}

/// The search for the row of one instruction.
struct RowSearch<'a> {
    text: &'a MappedText,
    raw: &'a RawInstr,
    sink: &'a mut Sink,
}

impl<'a> RowSearch<'a> {
    fn word(&self, range: &Range<usize>) -> &'a str {
        &self.text.as_str()[range.clone()]
    }

    fn opcode(&self) -> &'a str {
        self.word(&self.raw.opcode)
    }

    fn has(&self, qualifier: &str) -> bool {
        self.raw.quals.iter().any(|q| self.word(q) == qualifier)
    }

    /// The row with the most keys among those that fit.
    fn row(&mut self) -> Option<&'static InstrRow> {
        let Some(rows) = by_opcode().get(self.opcode()) else {
            self.unknown_opcode();
            return None;
        };
        let row = rows
            .iter()
            .filter(|row| self.fits(row))
            .max_by_key(|row| row.keys.len() + usize::from(!row.one_of.is_empty()))
            .copied();
        if row.is_none() {
            self.unknown_form(rows);
        }
        row
    }

    fn fits(&self, row: &InstrRow) -> bool {
        if let [BARE] = row.keys {
            let last = self.raw.operands.last().map(|o| &o.kind);
            return self.raw.quals.is_empty() && matches!(last, Some(OperandKind::Int(_)));
        }
        row.tiled == self.raw.tiled
            && row.keys.iter().all(|key| self.has(key))
            && (row.one_of.is_empty() || row.one_of.iter().any(|key| self.has(key)))
    }

    fn unknown_opcode(&mut self) {
        let opcode = self.opcode();
        let span = self.text.span(self.raw.opcode.clone());
        if let Some(what) = outside::instruction(opcode) {
            self.sink.error(
                "unsupported-instruction",
                span,
                format!("`{opcode}` is not supported: {what}"),
                |d| d.label("PTX has this instruction, the checker has not"),
            );
        } else {
            self.sink.error(
                "unknown-instruction",
                span,
                format!("there is no instruction `{opcode}`"),
                |d| {
                    d.label("expected a PTX instruction")
                        .did_you_mean(opcode, by_opcode().keys().copied())
                },
            );
        }
    }

    fn unknown_form(&mut self, rows: &[&'static InstrRow]) {
        let (opcode, raw) = (self.opcode(), self.raw);
        let unsupported = raw.quals.iter().find(|range| {
            let word = self.word(range);
            outside::qualifier(word).is_some() && !rows.iter().any(|row| row.names(word))
        });
        if let Some(range) = unsupported {
            return report_unsupported(self.text, opcode, range, self.sink);
        }
        let forms: Vec<&str> = rows.iter().map(|r| r.syntax).collect();
        let end = raw.quals.last().map_or(raw.opcode.end, |q| q.end);
        let first = raw.quals.first().map(|first| self.word(first));
        self.sink.error(
            "unknown-instruction",
            self.text.span(raw.opcode.start..end),
            format!("there is no such form of `{opcode}`"),
            |d| {
                let keys = rows
                    .iter()
                    .flat_map(|r| r.keys.iter().copied())
                    .filter(|k| *k != BARE);
                let d = d.label(format!("expected {}", or_list(&forms)));
                match first {
                    Some(first) => d.did_you_mean(first, keys),
                    None => d,
                }
            },
        );
    }

    /// The qualifiers, sorted into the row's groups, and whether there were no errors. Reports all
    /// unknown and conflicting ones.
    fn qualifiers(&mut self, row: &InstrRow) -> (Quals, bool) {
        let mut quals = Quals::default();
        let mut complete = true;
        for range in &self.raw.quals {
            complete &= self.qualifier(row, range, &mut quals).is_some();
        }
        (quals, complete)
    }

    fn qualifier(&mut self, row: &InstrRow, range: &Range<usize>, quals: &mut Quals) -> Option<()> {
        let word = self.word(range);
        if let Some(key) = row.keys.iter().copied().find(|key| *key == word)
            && !quals.written().any(|q| q.1 == word)
        {
            quals.push(QualKind::Key, key, range.clone());
            return Some(());
        }
        let group = row
            .groups
            .iter()
            .find_map(|g| Some((g.kind, *g.words.iter().find(|w| **w == word)?)));
        let Some((kind, known)) = group else {
            self.unknown_qualifier(row, range);
            return None;
        };
        let many = matches!(kind, QualKind::Cache | QualKind::Ignored);
        let room = if kind == QualKind::Types { 2 } else { 1 };
        if !many && quals.all(kind).count() >= room {
            let first = quals.place(kind).unwrap_or_default();
            self.sink.error(
                "conflicting-qualifiers",
                self.text.span(range.clone()),
                format!("`.{word}` after `.{}`", &self.text.as_str()[first.clone()]),
                |d| {
                    d.label("only one of these can be given")
                        .also(self.text.span(first), "the first one")
                },
            );
            return None;
        }
        quals.push(kind, known, range.clone());
        Some(())
    }

    fn unknown_qualifier(&mut self, row: &InstrRow, range: &Range<usize>) {
        let (opcode, word) = (self.opcode(), self.word(range));
        if outside::qualifier(word).is_some() {
            return report_unsupported(self.text, opcode, range, self.sink);
        }
        self.sink.error(
            "unknown-qualifier",
            self.text.span(range.clone()),
            format!("`{opcode}` has no qualifier `.{word}`"),
            |d| {
                let words = row.groups.iter().flat_map(|g| g.words.iter().copied());
                d.label(format!("expected the form {}", row.syntax))
                    .did_you_mean(word, words)
            },
        );
    }
}

/// Removes the cache policy from the operands: it changes no value that is read (PTX ISA, Cache
/// Eviction Priority Hints).
fn drop_policy(text: &MappedText, raw: &mut RawInstr, sink: &mut Sink) -> Option<()> {
    let policy = raw.operands.pop();
    if let Some(PtxOperand {
        kind: OperandKind::Name(name),
        ..
    }) = &policy
        && !name.brackets
    {
        return Some(());
    }
    let place = policy.map_or(raw.opcode.clone(), |o| o.range);
    sink.error(
        "wrong-operand",
        text.span(place),
        "this operand is not a cache policy",
        |d| {
            d.label(format!(
                "`.{POLICY}` takes a policy in a register, after the other operands"
            ))
        },
    );
    None
}

fn report_unsupported(text: &MappedText, opcode: &str, range: &Range<usize>, sink: &mut Sink) {
    let word = &text.as_str()[range.clone()];
    let what = outside::qualifier(word).unwrap_or_default();
    let message = format!("`{opcode}` with `.{word}` is not supported: {what}");
    sink.error(
        "unsupported-qualifier",
        text.span(range.clone()),
        message,
        |d| d.label("PTX has this qualifier, the checker has not"),
    );
}
