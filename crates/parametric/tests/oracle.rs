//! Random kernels, held against the exact engines at small launches: nothing that races there is
//! proved race-free, and nothing that diverges there is proved uniform.
//!
//! `FENCEPOST_KERNELS=N` compares N kernels, from number `FENCEPOST_SEED` on. Suspicions are tried
//! for one of `FENCEPOST_TRIES` kernels.
#![cfg(feature = "z3")]

mod exact;
mod generator;
mod random;

use std::time::Duration;

use exact::{exact, number, said};
use generator::{Generator, HEAD};
use parametric::decide::Part;
use parametric::{KernelLimits, KernelProperty, KernelVerdict};
use random::Random;

/// The launch of a kernel: blocks, threads of a block in two dimensions, and its argument.
#[derive(Clone, Copy)]
struct KernelSize {
    grid: u64,
    block: [u64; 2],
    n: u64,
}

impl KernelSize {
    fn line(grid: u64, block: u64, n: u64) -> KernelSize {
        KernelSize {
            grid,
            block: [block, 1],
            n,
        }
    }

    /// A launch of some kernel. It has a second dimension only if the code reads that: proofs for
    /// every launch assume so.
    fn random(random: &mut Random, code: &str) -> KernelSize {
        let grid = 1 + random.below(3);
        let rows = 1 + if reads_rows(code) { random.below(2) } else { 0 };
        KernelSize {
            grid,
            block: [1 + random.below(if grid == 1 { 8 } else { 4 }) / rows, rows],
            n: random.below(9),
        }
    }
}

/// The code of a kernel, and a launch.
fn kernel(seed: u64) -> (String, KernelSize, Random) {
    let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut generator = Generator::new(random);
    generator.random.below(2);
    for _ in 0..1 + generator.random.below(5) {
        generator.statement();
    }
    let size = KernelSize::random(&mut generator.random, &generator.text);
    (generator.text, size, generator.random)
}

fn reads_rows(code: &str) -> bool {
    code.contains("row")
}

fn file(seed: u64, code: &str, size: KernelSize) -> String {
    let KernelSize { grid, block, n } = size;
    // Some begin with memory that differs from place to place.
    let first = |by: u64| -> String {
        let values: Vec<String> = (0..16u64)
            .map(|at| {
                (if seed.is_multiple_of(3) {
                    at * by % 7
                } else {
                    0
                })
                .to_string()
            })
            .collect();
        values.join(", ")
    };
    let row = match reads_rows(code) {
        true => "int row = threadIdx.y;\n",
        false => "",
    };
    format!(
        "name = \"k{seed}\"\ndialect = \"cuda\"\n[memory]\n\
         g = {{ type = \"int\", init = [{}] }}\nh = {{ type = \"int\", init = [{}] }}\n\
         q = {{ type = \"short\", size = 8 }}\n[kernel]\ngrid = {grid}\nblock = {block:?}\n\
         regs = {{ n = {n} }}\ncode = '''\n{HEAD}{row}{code}'''\n",
        first(1),
        first(3)
    )
}

const LIMITS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(1500));

#[test]
fn no_race_is_missed() {
    let (count, first) = (number("FENCEPOST_KERNELS", 40), number("FENCEPOST_SEED", 1));
    let mut tally = std::collections::BTreeMap::<String, u32>::new();
    let mut wrong = Vec::new();
    for seed in first..first + count {
        for (key, missed) in compared(seed) {
            *tally.entry(key).or_default() += 1;
            if let Some(missed) = missed {
                println!("seed {seed}: {missed}");
                wrong.push(seed);
            }
        }
    }
    println!("{tally:#?}");
    assert!(wrong.is_empty(), "wrong proofs for seeds {wrong:?}");
}

/// Compares the answers about a kernel: each with its kind, and the text of a wrong one.
fn compared(seed: u64) -> Vec<(String, Option<String>)> {
    let mut all = Vec::new();
    let (code, size, mut random) = kernel(seed);
    let text = file(seed, &code, size);
    // To try a suspicion takes most of the time.
    let limits = KernelLimits {
        question: LIMITS.0,
        answer: LIMITS.1,
        tries: seed.is_multiple_of(number("FENCEPOST_TRIES", 10)),
        ..KernelLimits::default()
    };
    for property in [KernelProperty::Race, KernelProperty::Divergence] {
        let mut exact_here: Option<Option<bool>> = None;
        for any in [false, true] {
            let answer = said(&text, property, any, &limits);
            let word = match &answer {
                KernelVerdict::Never { .. } => "never",
                KernelVerdict::Happens { .. } => "happens",
                KernelVerdict::Tried { .. } => "tried",
                KernelVerdict::Undecided { .. } => "undecided",
            };
            let mut key = format!("{property:?} any={any} {word}");
            let mut missed = None;
            if word == "never" {
                let truth = *exact_here.get_or_insert_with(|| exact(&text, "cuda", property));
                key = format!("{key} {truth:?}");
                missed = (truth == Some(true)).then(|| text.clone());
            }
            // A proof for every launch holds in others, too.
            for _ in 0..if word == "never" && any { 2 } else { 0 } {
                let other = file(seed, &code, KernelSize::random(&mut random, &code));
                if exact(&other, "cuda", property) == Some(true) {
                    missed.get_or_insert(other);
                }
            }
            let missed = missed.map(|text| format!("{property:?} any={any}\n{text}\n{answer:?}"));
            all.push((key, missed));
        }
    }
    all
}

/// Where the solver does not answer whether a number of a thread wraps around, the proof takes
/// machine words, and no assumption.
#[test]
fn numbers_that_may_wrap_around_are_machine_words() {
    let said = |factor: &str| {
        let code = format!("h[(int)((unsigned)t * {factor}u >> 28) & 15] = t;\n");
        let size = KernelSize::line(1, 7, 0);
        let limits = KernelLimits {
            question: Duration::from_secs(20),
            answer: Duration::from_secs(60),
            tries: false,
            without: Some(Part::Leaving),
            ..KernelLimits::default()
        };
        said(&file(0, &code, size), KernelProperty::Race, false, &limits)
    };
    let racy = said("0x40000000");
    assert!(!matches!(racy, KernelVerdict::Never { .. }), "{racy:?}");
    let free = said("0x10000000");
    assert!(matches!(free, KernelVerdict::Never { .. }), "{free:?}");
}

/// Kernels that race, of two blocks or of one, and what no proof may be made without.
const NEEDS: [(Part, u64, &str); 5] = [
    (Part::Grid, 2, "g[t] = b;\n"),
    (Part::Scopes, 2, "atomicAdd_block(&g[0], 1);\n"),
    (
        Part::Exits,
        1,
        "if (t == 0) { s[0] = 7; return; }\n__syncthreads();\nx += s[0];\n",
    ),
    (
        Part::Together,
        1,
        "if (t == 0) __syncthreads();\nif (t == 0) s[0] = 1; else x += s[0];\n",
    ),
    (
        Part::Iterations,
        1,
        "for (int k = 0; k < n; k++) s[t + k] = t;\n",
    ),
];

/// Each part of the argument is needed: without it, a kernel is called race-free that races.
#[test]
fn each_part_of_the_argument_is_needed() {
    for (part, grid, code) in NEEDS {
        let size = KernelSize::line(grid, 2, 2);
        let text = file(0, code, size);
        assert_eq!(
            exact(&text, "cuda", KernelProperty::Race),
            Some(true),
            "{text}"
        );
        let never = |without: Option<Part>| {
            let limits = KernelLimits {
                question: Duration::from_secs(20),
                answer: Duration::from_secs(60),
                tries: false,
                without,
                ..KernelLimits::default()
            };
            let answer = said(&text, KernelProperty::Race, false, &limits);
            matches!(answer, KernelVerdict::Never { .. })
        };
        assert!(!never(None), "{text}");
        assert!(never(Some(part)), "{part:?} is not needed for\n{text}");
    }
}
