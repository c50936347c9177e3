//! Splits a run into parts (`--partition`) that are disjoint and together complete.

use super::digest::sha256;

/// `hash:M/N`: the M-th of N parts.
///
/// A (test, model) pair is in part `1 + h mod N`. `h` is the first eight bytes of SHA-256(`path NUL
/// test NUL model`) as a number, the highest byte first. So the part of a pair depends on nothing
/// else, and any tool can compute it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// From 1.
    pub(super) part: u64,
    /// The number of parts.
    pub(super) parts: u64,
}

impl Partition {
    /// Reads `hash:M/N`; the error names the accepted form.
    pub fn parse(text: &str) -> Result<Partition, String> {
        let help = "expected hash:M/N, as in hash:1/4 for the first of four parts";
        let (part, parts) = text
            .strip_prefix("hash:")
            .and_then(|t| t.split_once('/'))
            .ok_or(help)?;
        let number = |text: &str| match text.bytes().all(|b| b.is_ascii_digit()) {
            true => text.parse::<u64>().map_err(|_| help.to_owned()),
            false => Err(help.to_owned()),
        };
        let (part, parts) = (number(part)?, number(parts)?);
        if part == 0 || part > parts {
            return Err(format!("there is no part {part} of {parts}; {help}"));
        }
        Ok(Partition { part, parts })
    }

    /// Whether a pair is in this part.
    pub(super) fn holds(self, path: &str, test: &str, model: &str) -> bool {
        let hash = sha256(format!("{path}\0{test}\0{model}").as_bytes());
        let number = hash[..8]
            .iter()
            .fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        number % self.parts == self.part - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_in_one_part() {
        for parts in [1, 2, 3, 7] {
            let mut sizes = vec![0; parts];
            for test in 0..500 {
                let name = format!("T{test}");
                let of: Vec<_> = (1..=parts)
                    .filter(|m| {
                        Partition::parse(&format!("hash:{m}/{parts}"))
                            .unwrap()
                            .holds("a.toml", &name, "ptx")
                    })
                    .collect();
                assert_eq!(of.len(), 1, "{name} in {of:?} of {parts}");
                sizes[of[0] - 1] += 1;
            }
            assert!(sizes.iter().all(|n| *n > 500 / parts / 2), "{sizes:?}");
        }
    }

    #[test]
    fn the_part_is_what_the_documentation_says() {
        // printf 'a.toml\0MP\0ptx' | sha256sum
        let number: u64 = 0x9389_df75_bd49_afba;
        let part = Partition {
            part: 1 + number % 5,
            parts: 5,
        };
        assert!(part.holds("a.toml", "MP", "ptx"));
        assert!(
            !Partition {
                part: 1 + (number + 1) % 5,
                ..part
            }
            .holds("a.toml", "MP", "ptx")
        );
    }

    #[test]
    fn what_is_no_partition_is_refused() {
        for text in [
            "",
            "1/2",
            "hash:",
            "hash:1",
            "hash:0/2",
            "hash:3/2",
            "hash:1/0",
            "hash:-1/2",
            "hash:a/b",
            "count:1/2",
        ] {
            assert!(Partition::parse(text).is_err(), "{text}");
        }
    }
}
