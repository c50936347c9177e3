//! Durations on the command line: `500ms`, `10s`, `1.5s`, `2m`, `1h`, or `none` for no limit.

use std::time::Duration;

/// A time limit; [`Timeout::NONE`] means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout(pub Option<Duration>);

impl Timeout {
    /// No limit.
    pub const NONE: Timeout = Timeout(None);
}

/// Short enough to be added to the current time on every system.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Reads a duration; the error names the accepted forms.
pub fn parse(text: &str) -> Result<Timeout, String> {
    if text == "none" {
        return Ok(Timeout::NONE);
    }
    let help = "expected a number and a unit, as in 500ms, 10s, 2m or 1h, or `none`";
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .ok_or(help)?;
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| help)?;
    let scale = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is not a unit of time; {help}")),
    };
    let duration = Duration::try_from_secs_f64(number * scale)
        .ok()
        .filter(|d| *d <= LONGEST);
    let duration = duration.ok_or("the limit is above 100 years; `none` sets no limit")?;
    if duration.is_zero() {
        return Err("a limit of zero decides nothing; `none` sets no limit".into());
    }
    Ok(Timeout(Some(duration)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_read() {
        for (text, ms) in [
            ("500ms", 500),
            ("10s", 10_000),
            ("1.5s", 1500),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(
                parse(text),
                Ok(Timeout(Some(Duration::from_millis(ms)))),
                "{text}"
            );
        }
        assert_eq!(parse("none"), Ok(Timeout::NONE));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "10",
            "s",
            "10x",
            "-1s",
            "1e9s",
            "0s",
            "0.0000000000001s",
            "1..2s",
            "99999999999999999999h",
            "9223372036854775807s",
            "876001h",
            "NaNs",
            "infs",
            "-1s",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
