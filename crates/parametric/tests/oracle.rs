//! Random kernels, held against the exact engines at small launches: nothing that races there is
//! proved race-free, and nothing that diverges there is proved uniform.
//!
//! `FENCEPOST_KERNELS=N` tries so many.
#![cfg(feature = "z3")]

use std::fmt::Write;
use std::time::Duration;

use cat::model::load_shipped;
use engine::skeleton::signature::signature;
use engine::{Engine, Limits as ExactLimits};
use parametric::decide::Part;
use parametric::{KernelInput, KernelLimits, KernelProperty, KernelVerdict, decide};
use verdict::Verdict;
use why::Session;

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}

/// A kernel in CUDA C++ whose indices stay within 16 elements.
struct Generator {
    random: Random,
    text: String,
    depth: usize,
    loops: usize,
    values: usize,
}

impl Generator {
    fn index(&mut self) -> String {
        let mut all: Vec<String> = [
            "t",
            "t + 1",
            "7 - t",
            "t ^ 1",
            "t / 2",
            "t % 2",
            "2 * t",
            "i",
            "i + 1",
            "0",
            "b",
            "n - 1 - t",
            "t & 2",
            "s[t & 15]",
            "(int)((unsigned)t * 0x40000000u >> 28)",
            "(int)((unsigned)(i + 1) * 0x30000000u >> 29)",
        ]
        .map(String::from)
        .to_vec();
        for n in 0..self.loops {
            all.extend([format!("t + k{n}"), format!("t * k{n}"), format!("k{n}")]);
            all.push(format!("t ^ k{n}"));
        }
        for n in 0..self.values {
            all.extend([format!("(v{n} & 3)"), format!("v{n}")]);
        }
        let index = self.random.of(&all);
        format!("({index}) & 15")
    }

    fn place(&mut self) -> String {
        let array = self.random.of(&["s", "s", "g", "h"]);
        let index = self.index();
        format!("{array}[{index}]")
    }

    fn condition(&mut self) -> String {
        let mut all: Vec<String> = [
            "t < 2",
            "t == 0",
            "t % 2 == 0",
            "i < n",
            "b == 0",
            "t + 1 < blockDim.x",
            "t >= 1",
            "(t & 1) != 0",
            "n > 3",
        ]
        .map(String::from)
        .to_vec();
        for n in 0..self.loops {
            all.extend([
                format!("t < k{n}"),
                format!("t >= k{n}"),
                format!("k{n} == 1"),
            ]);
        }
        for n in 0..self.values {
            all.push(format!("v{n} == 0"));
        }
        self.random.of(&all)
    }

    fn statement(&mut self) {
        match self.random.below(12) {
            0..=2 => {
                let place = self.place();
                let _ = writeln!(self.text, "{place} = t + 1;");
            }
            3 | 4 => {
                let place = self.place();
                let _ = writeln!(self.text, "x += {place};");
            }
            5 => {
                let place = self.place();
                let name = self.random.of(&["atomicAdd", "atomicAdd_block"]);
                let _ = writeln!(self.text, "{name}(&{place}, 1);");
            }
            6 | 7 => {
                let barriers = [
                    "__syncthreads();\n",
                    "__syncthreads();\n",
                    "__syncwarp();\n",
                    "__threadfence_block();\n",
                ];
                let barrier = self.random.of(&barriers);
                self.text.push_str(barrier);
            }
            8 if self.depth == 0 && self.random.below(2) == 0 => {
                let condition = self.condition();
                let place = self.place();
                let before = self
                    .random
                    .of(&["", "WRITE"])
                    .replace("WRITE", &format!("{place} = 7;"));
                let _ = writeln!(self.text, "if ({condition}) {{ {before} return; }}");
            }
            8 if self.depth == 0 && self.values < 2 => {
                let place = self.place();
                let read = self.random.of(&["PLACE", "atomicAdd(&PLACE, 1)"]);
                let read = read.replace("PLACE", &place);
                let _ = writeln!(self.text, "int v{} = {read};", self.values);
                self.values += 1;
            }
            9 | 10 if self.depth < 2 => {
                let condition = self.condition();
                let _ = writeln!(self.text, "if ({condition}) {{");
                self.inside();
                if self.random.below(3) == 0 {
                    self.text.push_str("} else {\n");
                    self.inside();
                }
                self.text.push_str("}\n");
            }
            11 if self.depth < 2 && self.loops < 2 => {
                let n = self.loops;
                let head = self.random.of(&[
                    "int k = 0; k < 2; k++",
                    "int k = 1; k < blockDim.x; k *= 2",
                    "int k = blockDim.x / 2; k > 0; k /= 2",
                    "int k = blockDim.x / 2; k > 0; k >>= 1",
                    "int k = t; k < n; k += blockDim.x",
                    "int k = i; k < n; k += blockDim.x * gridDim.x",
                    "int k = 3; k >= 0; k -= 2",
                    "unsigned k = 2; k != 0; k--",
                ]);
                let head = head
                    .replace("k ", &format!("k{n} "))
                    .replace("k+", &format!("k{n}+"));
                let head = head.replace("k-", &format!("k{n}-"));
                let _ = writeln!(self.text, "for ({head}) {{");
                self.loops += 1;
                self.inside();
                self.loops -= 1;
                self.text.push_str("}\n");
            }
            _ => {
                let place = self.place();
                let _ = writeln!(self.text, "{place} = x;");
            }
        }
    }

    fn inside(&mut self) {
        self.depth += 1;
        for _ in 0..=self.random.below(2) {
            self.statement();
        }
        self.depth -= 1;
    }
}

/// The launch of a kernel: blocks, threads of a block, and its argument.
#[derive(Clone, Copy)]
struct KernelSize {
    grid: u64,
    block: u64,
    n: u64,
}

impl KernelSize {
    fn random(random: &mut Random) -> KernelSize {
        let grid = 1 + random.below(3);
        KernelSize {
            grid,
            block: 1 + random.below(if grid == 1 { 8 } else { 4 }),
            n: random.below(9),
        }
    }
}

/// The code of a kernel, and a launch.
fn kernel(seed: u64) -> (String, KernelSize, Random) {
    let mut generator = Generator {
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        text: String::new(),
        depth: 0,
        loops: 0,
        values: 0,
    };
    generator.random.below(2);
    for _ in 0..2 + generator.random.below(4) {
        generator.statement();
    }
    let size = KernelSize::random(&mut generator.random);
    (generator.text, size, generator.random)
}

fn file(seed: u64, code: &str, size: KernelSize) -> String {
    let KernelSize { grid, block, n } = size;
    format!(
        "name = \"k{seed}\"\ndialect = \"cuda\"\n[memory]\ng = {{ type = \"int\", size = 16 }}\n\
         h = {{ type = \"int\", size = 16 }}\n[kernel]\ngrid = {grid}\nblock = {block}\n\
         regs = {{ n = {n} }}\ncode = '''\n__shared__ int s[16];\nint n;\nint t = threadIdx.x;\n\
         int b = blockIdx.x;\nint i = blockIdx.x * blockDim.x + threadIdx.x;\nint x = 0;\n{code}'''\n"
    )
}

/// What the exact engines say of a property in the launch of a file.
fn exact(text: &str, property: KernelProperty) -> Option<bool> {
    let tests = front::litmus::parse("kernel.toml", text.as_bytes()).ok()?;
    let model = load_shipped("cuda", &signature())?.ok()?;
    let limits = ExactLimits {
        bound: Some(8),
        timeout: Some(Duration::from_secs(2)),
    };
    let mut session = Session::new(&tests[0], &model, Engine::Auto, limits, &[]);
    let answer = match property {
        KernelProperty::Race | KernelProperty::Bounds => session.race()?,
        KernelProperty::Divergence => session.undefined()?,
    };
    match answer.verdict {
        Verdict::Racy => Some(true),
        Verdict::Undefined => {
            let fault = answer.fault?;
            Some(fault.relation.contains("diverg"))
        }
        Verdict::RaceFree | Verdict::Defined => Some(false),
        _ => None,
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

const LIMITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(3));

/// What the engine says of a kernel.
fn said(text: &str, property: KernelProperty, any: bool, limits: &KernelLimits) -> KernelVerdict {
    let forms = front::litmus::form::forms("kernel.toml", text.as_bytes());
    let forms = forms.unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
    let kernel = KernelInput {
        form: &forms[0],
        name: "kernel.toml",
        bytes: text.as_bytes(),
        source: None,
    };
    decide(kernel, property, any, limits)
}

#[test]
fn no_race_is_missed() {
    let (count, first) = (number("FENCEPOST_KERNELS", 40), number("FENCEPOST_SEED", 1));
    let mut tally = std::collections::BTreeMap::<String, u32>::new();
    for seed in first..first + count {
        let (code, size, mut random) = kernel(seed);
        let text = file(seed, &code, size);
        // To try a suspicion takes most of the time.
        let limits = KernelLimits {
            question: LIMITS.0,
            answer: LIMITS.1,
            tries: seed % 10 == 0,
            ..KernelLimits::default()
        };
        for property in [KernelProperty::Race, KernelProperty::Divergence] {
            let truth = exact(&text, property);
            for any in [false, true] {
                let answer = said(&text, property, any, &limits);
                let word = match &answer {
                    KernelVerdict::Never { .. } => "never",
                    KernelVerdict::Happens { .. } => "happens",
                    KernelVerdict::Tried { .. } => "tried",
                    KernelVerdict::Undecided { .. } => "undecided",
                };
                let key = format!("{property:?} any={any} {word} {truth:?}");
                *tally.entry(key).or_default() += 1;
                let is_never = matches!(answer, KernelVerdict::Never { .. });
                let wrong = is_never && truth == Some(true);
                assert!(!wrong, "{property:?} any={any}\n{text}\n{answer:?}");
                // A proof for every launch holds in others, too.
                for _ in 0..if is_never && any { 2 } else { 0 } {
                    let other = file(seed, &code, KernelSize::random(&mut random));
                    let truth = exact(&other, property);
                    assert!(truth != Some(true), "{property:?}\n{other}\n{answer:?}");
                }
            }
        }
    }
    println!("{tally:#?}");
}

/// Where the solver does not answer whether a number of a thread wraps around, the proof takes
/// machine words, and no assumption.
#[test]
fn numbers_that_may_wrap_around_are_machine_words() {
    let said = |factor: &str| {
        let code = format!("h[(int)((unsigned)t * {factor}u >> 28) & 15] = t;\n");
        let size = KernelSize {
            grid: 1,
            block: 7,
            n: 0,
        };
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
        let size = KernelSize {
            grid,
            block: 2,
            n: 2,
        };
        let text = file(0, code, size);
        assert_eq!(exact(&text, KernelProperty::Race), Some(true), "{text}");
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
