//! Computes the identity of the program to which a recording belongs.
//!
//! # Invariants
//! - The identity depends only on the content of a test's text, not on the data structures here. So
//!   a recording can be played as long as its test does not change. Names of tests, comments and
//!   places in the file do not count.

use std::hash::Hasher;

use program::litmus::LitmusTest;
use program::memory::Memory;
use program::{Program, Register, SCOPE_ROWS, Scope};

use super::fingerprint::Hasher128;

/// The identity of the program that a test runs.
pub fn identity(test: &LitmusTest) -> String {
    let mut hash = Hasher128::default();
    for line in lines(&test.program) {
        hash.write_usize(line.len());
        hash.write(line.as_bytes());
    }
    format!("{:032x}", hash.value())
}

/// The levels with a fixed place in the line of a thread. Others follow where a test names them, so
/// that a new level leaves the identity of older tests alone.
const IN_LINE: [Scope; 5] = [
    Scope::Gpu,
    Scope::QueueFamily,
    Scope::Cluster,
    Scope::Cta,
    Scope::Warp,
];

/// Lines with the language, each memory cell, and for each thread its place, the initial values of
/// its registers and its code as written.
fn lines(program: &Program) -> Vec<String> {
    let memory = Memory::new(program);
    let mut lines = vec![program.dialect.name().to_owned()];
    for cell in &memory.cells {
        let (space, of) = (cell.space.name(), &memory.cell(cell.memory).name);
        lines.push(format!(
            "{space} {} {of} {}",
            cell.name,
            memory.show(program, cell.init)
        ));
    }
    for (id, thread) in program.thread_ids().zip(&program.threads) {
        let p = &thread.place;
        // 0 means none.
        let [cluster, warp] = [p.cluster, p.warp].map(|n| n.map_or(0, |n| u64::from(n) + 1));
        let (host, cooperative) = (u8::from(p.host), u8::from(p.cooperative));
        let mut line = format!(
            "thread {} {} {cluster} {} {warp} {} {} {host} {cooperative}",
            p.gpu, p.queue_family, p.cta, p.domain, p.kernel
        );
        let others = SCOPE_ROWS
            .iter()
            .filter(|row| !IN_LINE.contains(&row.scope));
        let numbers = others.filter_map(|row| p.group(row.scope));
        for number in numbers.filter(|number| *number > 0) {
            line += &format!(" {number}");
        }
        lines.push(line);
        let init = |r: &Register| memory.show(program, memory.initial(program, &r.init, Some(id)));
        lines.extend(
            thread
                .regs
                .iter()
                .map(|r| format!("{} {}", r.name, init(r))),
        );
        lines.extend(thread.code.iter().map(|i| i.text.clone()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        identity(&front::litmus::parse("test.toml", text.as_bytes()).expect("well-formed")[0])
    }

    const TEST: &str =
        "name = 'T'\nmemory = { x = 0 }\n[[thread]]\ncta = 0\ncode = 'st.weak x, 1'\n";

    #[test]
    fn what_counts_is_what_runs() {
        let name = of(TEST);
        // Recordings in files contain it: it must not change with this program.
        assert_eq!(name, "baac64c618d0514fc90168101e1d3b6c");
        assert_eq!(
            of(&TEST.replace("'T'", "'U'").replace("cta", "# where\ncta")),
            name
        );
        for (old, new) in [
            ("x = 0", "x = 2"),
            ("cta = 0", "cta = 1"),
            ("x, 1", "x, 2"),
            ("weak", "relaxed.gpu"),
        ] {
            assert_ne!(of(&TEST.replace(old, new)), name, "{new}");
        }
    }
}
