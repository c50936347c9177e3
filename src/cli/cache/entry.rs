//! One file of the cache: a line with the checksum of the rest, then the answers as JSON.
//!
//! # Invariants
//! - Bytes that [`write()`] did not produce for this very key are refused: cut, changed, or moved
//!   from another key.

use std::io;

use serde::{Deserialize, Serialize};

use super::super::digest::{hex, sha256};
use super::key::Key;
use verdict::Answer;

/// The first word of every file, and the version of the format.
const HEAD: &str = "fencepost-verdicts 1 ";

#[derive(Serialize)]
struct WrittenEntry<'a> {
    key: String,
    answers: &'a [Option<Answer>],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptEntry {
    key: String,
    answers: Vec<Option<Answer>>,
}

/// The file's content.
pub(super) fn write(key: &Key, answers: &[Option<Answer>]) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(&WrittenEntry {
        key: key.to_string(),
        answers,
    })?;
    let mut bytes = format!("{HEAD}{}\n", hex(&sha256(&body))).into_bytes();
    bytes.extend(body);
    Ok(bytes)
}

/// The answers in a file, or its fault.
pub(super) fn read(
    bytes: &[u8],
    key: &Key,
    questions: usize,
) -> Result<Vec<Option<Answer>>, &'static str> {
    let rest = bytes
        .strip_prefix(HEAD.as_bytes())
        .ok_or("has no valid first line")?;
    let end = rest.iter().position(|b| *b == b'\n').ok_or("is cut off")?;
    let (sum, body) = (&rest[..end], &rest[end + 1..]);
    if sum != hex(&sha256(body)).as_bytes() {
        return Err("is cut off or was changed: its checksum differs");
    }
    let kept: KeptEntry = serde_json::from_slice(body).map_err(|_| "cannot be understood")?;
    if kept.key != key.to_string() || kept.answers.len() != questions {
        return Err("belongs to another question");
    }
    Ok(kept.answers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict::hang::Wait;
    use verdict::{
        Change, Definedness, Dependence, Ending, Explanation, Fault, FaultEvent, Launches,
        RacingPair, RacingPairs, Reach, Remedy, Seat, Style, ThreadEnd, Unwritten, Verdict,
        Witness, WitnessEvent,
    };

    /// An answer with a value in every field.
    fn full() -> Answer {
        let event = WitnessEvent {
            thread: Some(1),
            thread_name: "P1".into(),
            agent: Some("agent".into()),
            line: 4.into(),
            action: "R x = \"1\"\n".into(),
            text: "ld.weak r0, x".into(),
        };
        let end = ThreadEnd {
            thread: "P1".into(),
            ending: Ending::Looping,
            line: 7.into(),
            text: "é".into(),
            served: true,
            waits_for: vec!["P0".into()],
            polls: vec![("x".into(), "0".into())],
            period: Some(2),
            waits: vec![Wait::at_barrier(&["P0".to_owned()])],
            why: "loops".into(),
        };
        let witness = Witness {
            events: vec![event.clone()],
            relations: vec![("rf".into(), vec![(0, 1)])],
            state: vec![("P1:r0".into(), "1".into())],
            ends: vec![end],
            threads: vec![Seat {
                thread: "P1".into(),
                groups: vec!["CTA 1".into()],
            }],
            derived: vec![("hb".into(), vec![(1, 0)])],
            styles: vec![("rf".into(), Style::ReadsFrom)],
        };
        let change = Change {
            line: 3.into(),
            text: "a".into(),
            reason: "b".into(),
            edit: None,
        };
        let fault = Fault {
            flag: "race".into(),
            relation: "data-race".into(),
            race: true,
            lifetime: false,
            place: Some("x".into()),
            object: None,
            events: vec![FaultEvent {
                event,
                noun: "load".into(),
                at: Some(0),
                span: None,
            }],
            why: vec!["w".into()],
            remedy: Some(Remedy::Changes(vec![change])),
            execution: Some(witness.clone()),
        };
        Answer {
            verdict: Verdict::Allowed,
            engine: "enumerate",
            bound: Some(2),
            axioms: vec!["Causality".into()],
            witness: Some(witness),
            defect: None,
            races: Some(Box::new(RacingPairs {
                pairs: vec![RacingPair {
                    place: Some("x".into()),
                    events: [fault.events[0].clone(), fault.events[0].clone()],
                }],
                complete: true,
            })),
            fault: Some(Box::new(fault.clone())),
            definedness: Some(Definedness::Undefined(Box::new(fault))),
            explanation: Some(Box::new(Explanation {
                impossible: vec!["x".into()],
                ..Explanation::default()
            })),
            vacuous: true,
            dependences: vec![Dependence {
                option: "o".into(),
                on: "p".into(),
                source: "s".into(),
                verdicts: vec![("v".into(), "allowed".into())],
            }],
            events: Some(7),
            remarks: vec!["r".into()],
            unwritten: vec![Unwritten {
                thread: "P0".into(),
                line: 3.into(),
                text: "i".into(),
                memory: "x".into(),
            }],
            reach: Some(Box::new(Reach {
                launches: Launches::Tried([2, 4]),
                assumed: vec!["a".into()],
                lines: Some([3.into(), 4.into()]),
                open: Some("o".into()),
            })),
        }
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        let (key, answers) = (Key::sample(1), [Some(full()), None]);
        let read = read(&write(&key, &answers).unwrap(), &key, 2).unwrap();
        assert_eq!(format!("{read:?}"), format!("{answers:?}"));
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_noticed() {
        let key = Key::sample(1);
        let bytes = write(&key, &[Some(full())]).unwrap();
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut], &key, 1).is_err(), "cut at {cut}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(read(&changed, &key, 1).is_err(), "changed at {at}");
        }
    }

    #[test]
    fn an_entry_in_the_place_of_another_is_refused() {
        let bytes = write(&Key::sample(1), &[Some(full())]).unwrap();
        assert!(read(&bytes, &Key::sample(2), 1).is_err());
        assert!(read(&bytes, &Key::sample(1), 2).is_err());
    }
}
