//! Describes a single instance of a kernel as a test again: the launch for `fencepost import`.
//!
//! # Invariants
//! - The kernel is launched as for a device, with one team that runs one instance and nothing else.

use crate::launch::{APART, FINISHED, KernelShape, ResultWord};
use front::litmus::kernel::Launch;
use program::litmus::{LitmusTest, Observable};

/// One instance.
#[derive(Clone, Debug)]
pub struct Once {
    /// Its launch, with a condition that names all of `places` and `ends`.
    pub launch: Launch,
    /// The place of each observable of the test.
    pub places: Vec<String>,
    /// Names whose value is 1 if a thread came to its end.
    pub ends: Vec<String>,
}

/// A single instance of a kernel whose groups have `size` threads; `None`: an object has cells of
/// several types.
pub(crate) fn once(test: &LitmusTest, shape: &KernelShape, size: usize) -> Option<Once> {
    let groups = shape.groups.len();
    fn list(all: Vec<i64>) -> String {
        all.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
    }
    let mut args = vec![
        format!("meeting=meetings:u32[{}]=0", 4 * APART),
        format!("results=told:s64[{}]=0", shape.results.len()),
        format!(
            "order=dealt:u32[{groups}]={}",
            list((0..groups as i64).collect())
        ),
    ];
    // Groups get their roles by number, do not meet, and have no delays.
    let numbers = [
        ("teams", 1),
        ("instances", 1),
        ("factor", 1),
        ("first", 0),
        ("patience", 0),
        ("delay", 0),
    ];
    args.extend(
        numbers
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    args.extend(["salt=1".to_owned(), "stress=0".to_owned()]);
    for (i, object) in shape.shared.iter().enumerate() {
        let ty = object.cells.first()?.1.ty;
        if object.cells.iter().enumerate().any(|(at, (offset, cell))| {
            cell.ty != ty || *offset != at as u64 * u64::from(ty.bytes())
        }) {
            return None;
        }
        let first = list(object.cells.iter().map(|(_, cell)| cell.init).collect());
        args.push(format!(
            "memory{i}=m{i}:{}[{}]={first}",
            ty.ptx_name(),
            object.cells.len()
        ));
        args.push(format!("stride{i}=0"));
    }
    // An object with one element has no index.
    fn element(name: String, of: usize, at: usize) -> String {
        if of == 1 {
            name
        } else {
            format!("{name}[{at}]")
        }
    }
    fn word(word: ResultWord, shape: &KernelShape) -> String {
        element("told".into(), shape.results.len(), shape.word(word))
    }
    let place = |(i, observable): (usize, &Observable)| match *observable {
        Observable::Mem { loc, index, .. } if !shape.is_local(test.program.object(loc)) => {
            let at = shape
                .shared
                .iter()
                .position(|object| object.loc == test.program.object(loc))?;
            Some(element(
                format!("m{at}"),
                shape.shared[at].cells.len(),
                index as usize,
            ))
        }
        _ => Some(word(ResultWord::Final(i), shape)),
    };
    let places = test
        .observables()
        .iter()
        .enumerate()
        .map(place)
        .collect::<Option<Vec<String>>>()?;
    let ends: Vec<String> = test
        .program
        .thread_ids()
        .map(|t| word(ResultWord::End(t), shape))
        .collect();
    let parts = ends.iter().map(|end| format!("{end} == {FINISHED}"));
    let ask = parts
        .chain(places.iter().map(|place| format!("{place} == 0")))
        .collect::<Vec<_>>()
        .join(" /\\ ");
    let launch = Launch {
        grid: vec![groups as u32],
        block: vec![size as u32],
        args,
        ask: Some(ask),
        ..Launch::default()
    };
    Some(Once {
        launch,
        places,
        ends,
    })
}
