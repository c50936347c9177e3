//! Chooses the shape of a tensor if the launch gives no map of it.
//!
//! A kernel does not know the box of its tensor maps, but it says how many bytes the copies of a
//! phase bring. The chosen box has so many bytes that most phases complete.
//!
//! # Invariants
//! - Only the text of the kernel decides, so equal kernels have equal tensors.
//! - The tensor is one box. A copy at other coordinates writes zeros to shared memory, or nothing
//!   to global memory.
//!
//! # Where we differ
//! - All maps of a kernel have one box. Elements have 16 bits, and a row has 64 of them, with a
//!   swizzle of 128 bytes, unless the box is smaller than that.

use std::collections::{BTreeMap, HashMap};

/// The bytes of a row with a swizzle of 128 bytes.
const ROW: i64 = 128;
/// The bytes of a tile in a kernel whose copies are in groups.
const USUAL: i64 = 64 * ROW;
/// The most elements of a dimension of a box.
const MOST: i64 = 256;

/// A line of a kernel: the instruction, and its operands.
type Line<'t> = (&'t str, Vec<&'t str>);

/// The shape for the tensor maps of a kernel; `None` if it copies no tiles, or of a box that cannot
/// be guessed.
pub(super) fn shape(body: &str) -> Option<String> {
    let lines: Vec<Line<'_>> = body.split([';', '{', '}', '\n']).filter_map(line).collect();
    let is_tile = |opcode: &str| opcode.contains(".bulk.tensor.") && opcode.starts_with("cp.");
    let copy = lines.iter().find(|line| is_tile(line.0))?.0;
    let dimensions = copy.split('.').find_map(|word| {
        let digit = word.strip_suffix('d')?;
        digit.parse::<usize>().ok().filter(|n| (1..=5).contains(n))
    })?;
    let constants = constants(&lines);
    let bytes = most_frequent(&lines, &constants, &is_tile).unwrap_or(USUAL);
    let rows = bytes / ROW;
    let fits = bytes % ROW == 0 && (1..=MOST).contains(&rows) && dimensions > 1;
    let (row, rows, swizzle) = match fits {
        true => (ROW / 2, rows, " swizzle128"),
        false if bytes % 16 == 0 && bytes / 2 <= MOST => (bytes / 2, 1, ""),
        false => return None,
    };
    let mut sizes = vec![row.to_string(), rows.to_string()];
    sizes.resize(dimensions.max(1), "1".to_owned());
    let sizes = sizes.join(", ");
    Some(format!("b16[{sizes}] box[{sizes}]{swizzle}"))
}

fn line(text: &str) -> Option<Line<'_>> {
    let text = text.split("//").next()?.trim();
    let text = match text.strip_prefix('@') {
        Some(guarded) => guarded.split_once(char::is_whitespace)?.1.trim(),
        None => text,
    };
    let (opcode, operands) = text.split_once(char::is_whitespace)?;
    Some((opcode, operands.split(',').map(str::trim).collect()))
}

/// The numbers of registers that one instruction writes.
fn constants<'t>(lines: &[Line<'t>]) -> HashMap<&'t str, i64> {
    let moves = lines.iter().filter(|line| line.0.starts_with("mov."));
    let numbers = moves.filter_map(|(_, operands)| match operands[..] {
        [to, number] => Some((to, number.parse().ok()?)),
        _ => None,
    });
    numbers.collect()
}

/// The number of bytes that most copies bring: what a phase expects, by the copies behind it.
fn most_frequent(
    lines: &[Line<'_>],
    constants: &HashMap<&str, i64>,
    is_tile: &dyn Fn(&str) -> bool,
) -> Option<i64> {
    let mut found: BTreeMap<i64, usize> = BTreeMap::new();
    let expects = |line: &Line<'_>| line.0.starts_with("mbarrier.") && line.0.contains("expect_tx");
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| expects(line)) {
        let bytes = line.1.last()?;
        let bytes = bytes.parse().ok().or(constants.get(bytes).copied());
        let behind = lines[at + 1..].iter().take_while(|line| !expects(line));
        let copies = behind.filter(|line| is_tile(line.0)).count() as i64;
        if let Some(bytes) = bytes.filter(|bytes| copies > 0 && bytes % copies == 0) {
            *found.entry(bytes / copies).or_default() += 1;
        }
    }
    let most = found.into_iter().max_by_key(|(_, times)| *times);
    most.map(|(bytes, _)| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: &str = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes \
        [%r1], [%rd1, {%r2, %r3}], [%r4];\n";

    #[test]
    fn the_box_has_the_bytes_that_most_phases_expect() {
        let expect = |bytes: &str| format!("mbarrier.arrive.expect_tx.b64 _, [%r4], {bytes};\n");
        let phase = |bytes: &str| format!("{}{COPY}{COPY}", expect(bytes));
        let body = format!(
            "mov.u32 %r9, 32768;\n{}{}{}",
            phase("%r9"),
            phase("16384"),
            phase("%r9")
        );
        let whole = "b16[64, 128] box[64, 128] swizzle128";
        assert_eq!(shape(&body).as_deref(), Some(whole));
        assert_eq!(shape(&expect("4096")), None);
    }

    #[test]
    fn a_small_box_is_one_row() {
        let body = format!("mbarrier.arrive.expect_tx.b64 _, [%r4], 64;\n{COPY}");
        assert_eq!(shape(&body).as_deref(), Some("b16[32, 1] box[32, 1]"));
    }
}
