//! Sizes of memory on the command line: `500M`, `1.5G`, or `none` for no limit; and the default
//! limit of a question.
//!
//! # Sources
//! - Linux, proc(5), `/proc/meminfo`; *Control Group v2*, `memory.max`.

use std::fs;

/// A limit of memory, in bytes; [`Size::NONE`] means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub Option<usize>);

impl Size {
    /// No limit.
    pub(super) const NONE: Size = Size(None);
}

/// With less, a question could not even be read.
const LEAST: usize = 1 << 20;

/// The limit if the machine says nothing of its memory, and the least default.
const PLAIN: usize = 256 << 20;

/// Reads a size; the error names the accepted forms.
pub(super) fn parse(text: &str) -> Result<Size, String> {
    if text == "none" {
        return Ok(Size::NONE);
    }
    let help = "expected a number and a unit, as in 500M or 2G, or `none`";
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .ok_or(help)?;
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| help)?;
    let power = match unit
        .strip_suffix("iB")
        .or(unit.strip_suffix('B'))
        .unwrap_or(unit)
    {
        "K" | "k" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return Err(format!("`{unit}` is not a unit of memory; {help}")),
    };
    let bytes = number * 1024_f64.powi(power);
    if bytes > isize::MAX as f64 {
        return Err("this exceeds every address space; `none` sets no limit".into());
    }
    // It fits, and is not negative.
    let bytes = bytes as usize;
    if bytes < LEAST {
        return Err("the engines need at least 1M; `none` sets no limit".into());
    }
    Ok(Size(Some(bytes)))
}

/// The default limit of a question: its share of half the memory, among the questions answered at
/// once.
pub(super) fn default(jobs: usize) -> usize {
    machine().map_or(PLAIN, |all| (all / 2 / jobs.max(1)).max(PLAIN))
}

/// The memory that this process may use, if the system says so.
fn machine() -> Option<usize> {
    let of_machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim()
            .strip_suffix("kB")?
            .trim()
            .parse::<usize>()
            .ok()?
            .checked_mul(1024)
    });
    let of_group = fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    of_machine.into_iter().chain(of_group).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("50M", 50 << 20),
            ("1.5G", 3 << 29),
            ("2048K", 2 << 20),
            ("2GiB", 2 << 30),
            ("1TB", 1 << 40),
        ] {
            assert_eq!(parse(text), Ok(Size(Some(bytes))), "{text}");
        }
        assert_eq!(parse("none"), Ok(Size::NONE));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "50",
            "M",
            "-1M",
            "0M",
            "1K",
            "NaNG",
            "1e9M",
            "1..2G",
            "50m",
            "99999999999999999999T",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_is_never_too_small_to_work_with() {
        assert_eq!(default(usize::MAX), PLAIN);
        assert!(default(1) >= default(2));
    }
}
