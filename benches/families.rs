//! How the time of a question grows: families of programs, each of one shape at several sizes,
//! asked of every engine.
//!
//! Each question has its limit; a family ends for an engine at the first size that meets it. Times
//! are the processor's, of this thread, on average over several runs of a quick question. The
//! growth is `n^k` or `b^n`, whichever of the two comes closer to all sizes answered (least squares
//! of logarithms). Beside `auto` stands how many times as long as the best other engine it takes.
//!
//! `cargo bench --bench families -- [WORD…] [--engine=NAME…]` measures the families whose names
//! contain one of the words, and compares with the figures in `benches/families.tsv`, by their
//! ratio to the middle of all ratios, so that another machine does not matter. `BLESS=1` writes
//! that file instead; `FENCEPOST_BASELINE=FILE` names another one, say for a comparison of two
//! commits on one machine.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{self, LitmusTest};
use fencepost::model::{self, Model};
use fencepost::skeleton::signature::signature;

// A third of the work is memory that lives for one question: with the allocator of the program, as
// it is there.
#[global_allocator]
static ALLOCATOR: streams::CountingAllocator = streams::CountingAllocator;

/// The time for one question.
const LIMIT: Duration = Duration::from_secs(8);
/// Quick questions are asked more often; this is when a question has been asked for long enough.
const ENOUGH: Duration = Duration::from_millis(200);

/// What is asked.
#[derive(Clone, Copy)]
enum Asked {
    /// Whether the condition can hold.
    Reach,
    /// All outcomes.
    Outcomes,
}

/// Programs of one shape.
struct Family {
    name: &'static str,
    asked: Asked,
    sizes: &'static [usize],
    make: fn(usize) -> String,
}

const FAMILIES: &[Family] = &[
    Family {
        name: "doublings",
        asked: Asked::Reach,
        sizes: &[4, 8, 16],
        make: doublings,
    },
    Family {
        name: "SUM+fence.sc",
        asked: Asked::Reach,
        sizes: &[4, 6, 8, 10],
        make: sum,
    },
    Family {
        name: "two loops",
        asked: Asked::Reach,
        sizes: &[4, 8, 12],
        make: loops,
    },
    Family {
        name: "increments, lost",
        asked: Asked::Reach,
        sizes: &[4, 8, 16],
        make: lost,
    },
    Family {
        name: "increments, atomic",
        asked: Asked::Reach,
        sizes: &[2, 3, 4, 5],
        make: atomic,
    },
    Family {
        name: "SB+fence.sc",
        asked: Asked::Reach,
        sizes: &[10, 20, 40],
        make: |n| ring(n, "fence.sc.gpu;"),
    },
    Family {
        name: "SB+fence.acq_rel",
        asked: Asked::Reach,
        sizes: &[10, 20, 40],
        make: |n| ring(n, "fence.acq_rel.gpu;"),
    },
    Family {
        name: "SAMELOC",
        asked: Asked::Reach,
        sizes: &[16, 32, 64],
        make: same_location,
    },
    Family {
        name: "LONG+fence.sc",
        asked: Asked::Reach,
        sizes: &[8, 16, 32, 64],
        make: long,
    },
    Family {
        name: "straight",
        asked: Asked::Reach,
        sizes: &[250, 500, 1000, 2000],
        make: straight,
    },
    Family {
        name: "branches",
        asked: Asked::Reach,
        sizes: &[6, 12, 24],
        make: branches,
    },
    Family {
        name: "barriers",
        asked: Asked::Reach,
        sizes: &[2, 4, 6, 12, 32],
        make: barriers,
    },
    Family {
        name: "meeting",
        asked: Asked::Reach,
        sizes: &[16, 64, 256],
        make: meeting,
    },
    Family {
        name: "chain+acq_rel",
        asked: Asked::Reach,
        sizes: &[4, 8, 16],
        make: |n| chain(n, "acq_rel"),
    },
    Family {
        name: "chain+relaxed",
        asked: Asked::Reach,
        sizes: &[4, 8, 16],
        make: |n| chain(n, "relaxed"),
    },
    Family {
        name: "ticket lock",
        asked: Asked::Reach,
        sizes: &[2, 3],
        make: ticket,
    },
    Family {
        name: "cas lock",
        asked: Asked::Reach,
        sizes: &[2, 3],
        make: cas,
    },
    Family {
        name: "feeding branches",
        asked: Asked::Reach,
        sizes: &[4, 8, 24],
        make: feeding,
    },
    Family {
        name: "sums in two orders",
        asked: Asked::Reach,
        sizes: &[10, 12, 16],
        make: two_orders,
    },
    Family {
        name: "increments, all",
        asked: Asked::Reach,
        sizes: &[4, 8, 16],
        make: increments,
    },
    Family {
        name: "last block",
        asked: Asked::Reach,
        sizes: &[4, 6, 8],
        make: last_block,
    },
    Family {
        name: "outcomes of IRIW",
        asked: Asked::Outcomes,
        sizes: &[3, 5, 7],
        make: readers,
    },
    Family {
        name: "outcomes of writers",
        asked: Asked::Outcomes,
        sizes: &[3, 4, 5, 6],
        make: writers,
    },
    Family {
        name: "outcomes of SB+fence.sc",
        asked: Asked::Outcomes,
        sizes: &[4, 8, 12],
        make: |n| ring(n, "fence.sc.gpu;"),
    },
    Family {
        name: "outcomes of increments",
        asked: Asked::Outcomes,
        sizes: &[3, 4, 5, 6],
        make: counter,
    },
];

/// A test: the names of its cells, the code of its threads, what it asks.
fn test(cells: &[&str], threads: &[String], condition: &str) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell} = 0")).collect();
    let mut text = format!(
        "name = \"T\"\ncondition = '{condition}'\nmemory = {{ {} }}\n",
        cells.join(", ")
    );
    for (cta, code) in threads.iter().enumerate() {
        write!(text, "[[thread]]\ncta = {cta}\ncode = '''{code}'''\n").expect("text grows");
    }
    text
}

fn all(n: usize, term: impl Fn(usize) -> String) -> String {
    (0..n).map(term).collect::<Vec<_>>().join(" && ")
}

fn doublings(n: usize) -> String {
    let adds = "add.u32 r0, r0, r0; ".repeat(n);
    let writer = "st.relaxed.gpu.u32 [x], 1;".to_owned();
    test(
        &["x"],
        &[writer, format!("ld.relaxed.gpu.u32 r0, [x]; {adds}")],
        &format!("P1:r0 == {}", 1u64 << n),
    )
}

fn sum(n: usize) -> String {
    let code = "st.relaxed.gpu.u32 [x], 1; fence.sc.gpu; ld.relaxed.gpu.u32 r0, [y]; add.u32 r1, r0, 1; \
                st.relaxed.gpu.u32 [y], r1;";
    test(&["x", "y"], &vec![code.to_owned(); n], &format!("y == {n}"))
}

fn loops(n: usize) -> String {
    let code = format!(
        "mov.u32 i, 0; L: atom.relaxed.gpu.add.u32 r0, [x], 1; ld.relaxed.gpu.u32 r1, [x]; add.u32 i, i, 1; \
         setp.lt.u32 p, i, {n}; @p bra L;"
    );
    format!(
        "bound = {n}\n{}",
        test(
            &["x"],
            &[code.clone(), code],
            &format!("P0:r1 == {n} && P1:r1 == {}", 2 * n)
        )
    )
}

fn lost(n: usize) -> String {
    let code =
        "ld.relaxed.gpu.u32 r0, [x]; add.u32 r0, r0, 1; st.relaxed.gpu.u32 [x], r0; ".repeat(n);
    test(&["x"], &[code.clone(), code], "x == 2")
}

fn atomic(n: usize) -> String {
    let code: String = (0..n)
        .map(|i| format!("atom.relaxed.gpu.add.u32 r{i}, [x], 1; "))
        .collect();
    test(
        &["x"],
        &[code.clone(), code.clone(), code],
        &format!("P0:r0 == P1:r0 && x == {}", 3 * n),
    )
}

/// Store buffering in a ring.
fn ring(n: usize, fence: &str) -> String {
    let cells: Vec<String> = (0..n).map(|i| format!("x{i}")).collect();
    let threads: Vec<String> = (0..n)
        .map(|i| {
            format!(
                "st.relaxed.gpu.u32 [x{i}], 1; {fence} ld.relaxed.gpu.u32 r0, [x{}];",
                (i + 1) % n
            )
        })
        .collect();
    test(
        &cells.iter().map(String::as_str).collect::<Vec<_>>(),
        &threads,
        &all(n, |i| format!("P{i}:r0 == 0")),
    )
}

fn same_location(n: usize) -> String {
    let writes = |from: usize| {
        (0..n)
            .map(|i| format!("st.relaxed.gpu.u32 [x], {}; ", from + i))
            .collect::<String>()
    };
    let threads = [
        writes(1),
        format!("{} ld.relaxed.gpu.u32 r0, [x];", writes(n + 1)),
    ];
    test(&["x"], &threads, &format!("P1:r0 == {}", n + 1))
}

fn long(n: usize) -> String {
    let thread = |mine: &str, other: &str| {
        let one = format!(
            "st.relaxed.gpu.u32 [{mine}], 1; fence.sc.gpu; ld.relaxed.gpu.u32 r0, [{other}]; "
        );
        one.repeat(n)
    };
    test(
        &["x", "y"],
        &[thread("x", "y"), thread("y", "x")],
        "P0:r0 == 0 && P1:r0 == 0",
    )
}

/// One thread that reads and writes eight locations in turn.
fn straight(n: usize) -> String {
    let locations: Vec<String> = (0..8).map(|i| format!("x{i}")).collect();
    let access = |i: usize| {
        let place = &locations[(i * 3 + i / 2) % 8];
        if i.is_multiple_of(2) {
            format!("ld.weak.u32 r0, [{place}]; ")
        } else {
            format!("st.weak.u32 [{place}], {i}; ")
        }
    };
    let names: Vec<&str> = locations.iter().map(String::as_str).collect();
    test(&names, &[(0..n).map(access).collect()], "P0:r0 == 12345")
}

fn branches(n: usize) -> String {
    let one = |k: usize| {
        format!(
            "ld.relaxed.gpu.u32 r{k}, [x]; setp.eq.u32 p, r{k}, 0; @p bra L{k}; st.relaxed.gpu.u32 [y], {}; L{k}: ",
            k + 1
        )
    };
    let code: String = (0..4).map(one).collect();
    let mut threads = vec![code; n];
    threads.push("st.relaxed.gpu.u32 [x], 1;".to_owned());
    test(&["x", "y"], &threads, "y == 4 && P0:r0 == 1 && P0:r3 == 0")
}

fn barriers(n: usize) -> String {
    let cells: Vec<String> = (0..n).map(|i| format!("x{i}")).collect();
    let thread = |t: usize| {
        let round = |i: usize| match t {
            0 => format!("st.weak.u32 [x{i}], 1; bar.sync 0; "),
            _ => format!("bar.sync 0; ld.weak.u32 r{i}, [x{i}]; "),
        };
        (0..n).map(round).collect::<String>()
    };
    let threads: Vec<String> = (0..4).map(thread).collect();
    let text = test(
        &cells.iter().map(String::as_str).collect::<Vec<_>>(),
        &threads,
        &format!("P3:r{} == 0", n - 1),
    );
    (1..4).fold(text, |text, cta| {
        text.replace(&format!("cta = {cta}\n"), "cta = 0\n")
    })
}

/// Threads that meet at one barrier, each with a store before it and a load of what its neighbour
/// stored behind it.
fn meeting(n: usize) -> String {
    let cells: Vec<String> = (0..n).map(|i| format!("x{i}")).collect();
    let thread = |t: usize| {
        format!(
            "st.weak.u32 [x{t}], 1; bar.sync 0; ld.weak.u32 r0, [x{}]; ",
            (t + 1) % n
        )
    };
    let threads: Vec<String> = (0..n).map(thread).collect();
    let text = test(
        &cells.iter().map(String::as_str).collect::<Vec<_>>(),
        &threads,
        "P0:r0 == 0",
    );
    (1..n).fold(text, |text, cta| {
        text.replace(&format!("cta = {cta}\n"), "cta = 0\n")
    })
}

/// A message passed through read-modify-writes of one flag.
fn chain(n: usize, order: &str) -> String {
    let mut threads = vec!["st.weak.u32 [x], 1; st.release.gpu.u32 [f], 1;".to_owned()];
    threads.extend((0..n).map(|_| format!("atom.{order}.gpu.add.u32 r0, [f], 1;")));
    threads.push("ld.acquire.gpu.u32 r0, [f]; ld.relaxed.gpu.u32 r1, [x];".to_owned());
    test(
        &["x", "f"],
        &threads,
        &format!("P{}:r0 == {} && P{}:r1 == 0", n + 1, n + 1, n + 1),
    )
}

fn ticket(n: usize) -> String {
    let code = "atom.relaxed.gpu.add.u32 t, [next], 1; L: ld.acquire.gpu.u32 s, [serving]; setp.ne.u32 p, s, t; \
                @p bra L; ld.relaxed.gpu.u32 r0, [x]; add.u32 r1, r0, 1; st.relaxed.gpu.u32 [x], r1; \
                add.u32 s, s, 1; st.release.gpu.u32 [serving], s;";
    test(
        &["x", "next", "serving"],
        &vec![code.to_owned(); n],
        &format!("~(x == {n})"),
    )
}

fn cas(n: usize) -> String {
    let code = "L: atom.acquire.gpu.cas.b32 s, [lock], 0, 1; setp.ne.u32 p, s, 0; @p bra L; \
                ld.relaxed.gpu.u32 r0, [x]; add.u32 r1, r0, 1; st.relaxed.gpu.u32 [x], r1; \
                st.release.gpu.u32 [lock], 0;";
    test(
        &["x", "lock"],
        &vec![code.to_owned(); n],
        &format!("~(x == {n})"),
    )
}

/// Threads that write only if they read what the next four threads write.
fn feeding(n: usize) -> String {
    let cells: Vec<String> = (0..n).map(|i| format!("x{i}")).collect();
    let thread = |i: usize| {
        let one = |k: usize| {
            format!(
                "ld.relaxed.gpu.u32 r{k}, [x{}]; setp.eq.u32 p, r{k}, 0; @p bra L{k}; \
                 st.relaxed.gpu.u32 [x{i}], {}; L{k}: ",
                (i + k + 1) % n,
                k + 1
            )
        };
        (0..4).map(one).collect::<String>()
    };
    test(
        &cells.iter().map(String::as_str).collect::<Vec<_>>(),
        &(0..n).map(thread).collect::<Vec<_>>(),
        "x0 == 1",
    )
}

/// A thread that adds up what it reads, in both orders.
fn two_orders(n: usize) -> String {
    let cells: Vec<String> = (0..n).map(|i| format!("x{i}")).collect();
    let each = |of: &dyn Fn(usize) -> String| (0..n).map(of).collect::<String>();
    let writer = each(&|i| format!("st.relaxed.gpu.u32 [x{i}], {}; ", 1 << i));
    let reader = each(&|i| format!("ld.relaxed.gpu.u32 r{i}, [x{i}]; "))
        + "mov.u32 s, 0; mov.u32 t, 0; "
        + &each(&|i| format!("add.u32 s, s, r{i}; "))
        + &each(&|i| format!("add.u32 t, t, r{}; ", n - 1 - i));
    test(
        &cells.iter().map(String::as_str).collect::<Vec<_>>(),
        &[writer, reader],
        "P1:s != P1:t",
    )
}

/// Two threads that add to one location; they use none of the old values.
fn increments(n: usize) -> String {
    let code: String = (0..n)
        .map(|i| format!("atom.relaxed.gpu.add.u32 r{i}, [x], 1; "))
        .collect();
    test(&["x"], &[code.clone(), code], &format!("x != {}", 2 * n))
}

/// Threads that each write a part; the last one to arrive adds up all parts.
fn last_block(n: usize) -> String {
    let cells: Vec<String> = (0..n).map(|i| format!("x{i}")).collect();
    let parts: String = (0..n)
        .map(|i| format!("ld.relaxed.gpu.u32 v, [x{i}]; add.u32 s, s, v; "))
        .collect();
    let thread = |i: usize| {
        format!(
            "st.relaxed.gpu.u32 [x{i}], {}; fence.acq_rel.gpu; \
             atom.relaxed.gpu.add.u32 a, [c], 1; setp.ne.u32 p, a, {}; @p bra E; \
             fence.acq_rel.gpu; mov.u32 s, 0; {parts}st.relaxed.gpu.u32 [t], s; E: ",
            i + 1,
            n - 1
        )
    };
    let names = ["c", "t"]
        .into_iter()
        .chain(cells.iter().map(String::as_str));
    test(
        &names.collect::<Vec<_>>(),
        &(0..n).map(thread).collect::<Vec<_>>(),
        &format!("t != {}", n * (n + 1) / 2),
    )
}

/// Two writers, and readers of both that nothing orders.
fn readers(n: usize) -> String {
    let mut threads: Vec<String> = ["x", "y"]
        .iter()
        .map(|cell| format!("st.relaxed.gpu.u32 [{cell}], 1;"))
        .collect();
    threads.extend(vec!["ld.acquire.gpu.u32 r0, [x]; ld.acquire.gpu.u32 r1, [y];".to_owned(); n]);
    test(
        &["x", "y"],
        &threads,
        &all(n, |i| format!("P{}:r0 == 1 && P{}:r1 == 0", i + 2, i + 2)),
    )
}

fn writers(n: usize) -> String {
    let mut threads: Vec<String> = (0..n)
        .map(|i| format!("st.relaxed.gpu.u32 [x], {};", i + 1))
        .collect();
    let loads = |count: usize| {
        (0..count)
            .map(|i| format!("ld.relaxed.gpu.u32 r{i}, [x]; "))
            .collect::<String>()
    };
    threads.extend(vec![loads(2); 2]);
    test(
        &["x"],
        &threads,
        &format!(
            "P{n}:r0 == 1 && P{n}:r1 == 2 && P{}:r0 == 2 && P{}:r1 == 1",
            n + 1,
            n + 1
        ),
    )
}

fn counter(n: usize) -> String {
    test(
        &["x"],
        &vec!["atom.relaxed.gpu.add.u32 r0, [x], 1;".to_owned(); n],
        &all(n, |i| format!("P{i}:r0 == {i}")),
    )
}

/// Processor time of this thread; the clock on the wall where the system does not tell.
fn clock(start: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// The answer in a word, and the time for one.
fn measure(asked: Asked, test: &LitmusTest, model: &Model, engine: Engine) -> (String, Duration) {
    let limits = Limits {
        timeout: Some(LIMIT),
        ..Limits::default()
    };
    let (start, mut runs) = (Instant::now(), 0);
    let before = clock(start);
    loop {
        let mut session = Session::new(test, model, engine, limits, &[]);
        let said = match asked {
            Asked::Reach => session.reachability(None, false).verdict.word().to_owned(),
            Asked::Outcomes => {
                let outcomes = session.outcomes();
                assert_eq!(outcomes.defect, None);
                if outcomes.complete {
                    outcomes.outcomes.len().to_string()
                } else {
                    "undecided".into()
                }
            }
        };
        runs += 1;
        if start.elapsed() >= ENOUGH {
            return (said, clock(start).saturating_sub(before) / runs);
        }
    }
}

/// How times grow with sizes: as a power of them, or exponentially.
fn growth(curve: &[(usize, f64)]) -> String {
    if curve.len() < 2 {
        return "-".to_owned();
    }
    // The slope of a line through the points, and how far they are from it.
    let fit = |x: fn(f64) -> f64| {
        let points: Vec<(f64, f64)> = curve
            .iter()
            .map(|&(n, ms)| (x(n as f64), ms.ln()))
            .collect();
        let mean =
            |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let along: f64 = points
            .iter()
            .map(|point| (point.0 - x) * (point.1 - y))
            .sum();
        let slope = along
            / points
                .iter()
                .map(|point| (point.0 - x).powi(2))
                .sum::<f64>();
        (
            points
                .iter()
                .map(|point| (point.1 - y - slope * (point.0 - x)).powi(2))
                .sum::<f64>(),
            slope,
        )
    };
    let (power, exponential) = (fit(f64::ln), fit(|n| n));
    if power.0 <= exponential.0 {
        format!("n^{:.1}", power.1)
    } else {
        format!("{:.2}^n", exponential.1.exp())
    }
}

/// Milliseconds by family, size and engine.
type Figures = BTreeMap<String, f64>;

fn read(path: &Path) -> Option<Figures> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = |line: &str| {
        Some((
            line.split('\t').next()?.to_owned(),
            line.split('\t').nth(1)?.parse().ok()?,
        ))
    };
    Some(text.lines().filter_map(line).collect())
}

/// What became slower or faster than the rest did.
fn compare(now: &Figures, then: &Figures) {
    let mut ratios: Vec<(f64, &String)> = now
        .iter()
        .filter_map(|(what, &ms)| Some((ms / then.get(what)?, what)))
        .collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(&(middle, _)) = ratios.get(ratios.len() / 2) else {
        return;
    };
    println!(
        "\n{} figures compared; the middle one is {middle:.2} of the baseline",
        ratios.len()
    );
    for (ratio, what) in ratios.iter().map(|(ratio, what)| (ratio / middle, what)) {
        if !(0.67..1.5).contains(&ratio) {
            println!("{what:50} {ratio:6.2} of the baseline");
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let only: Vec<String> = std::env::args()
        .filter_map(|word| Some(word.strip_prefix("--engine=")?.to_owned()))
        .collect();
    let model = model::load_shipped("ptx", &signature())
        .expect("shipped")
        .expect("a shipped model is sound");
    let wanted =
        |&engine: &Engine| only.is_empty() || only.iter().any(|name| name == label(engine));
    let engines: Vec<Engine> = Engine::ALONE
        .iter()
        .copied()
        .chain([Engine::Auto])
        .filter(wanted)
        .collect();
    let mut figures = Figures::new();
    let title: String = engines
        .iter()
        .map(|&e| format!("{:>12}", label(e)))
        .collect();
    println!(
        "{:26}{:>4}{:>12}{title}   ms of processor time",
        "", "n", "answer"
    );
    for family in FAMILIES
        .iter()
        .filter(|f| words.is_empty() || words.iter().any(|word| f.name.contains(word)))
    {
        // By engine: the sizes answered and their times; an engine that gave up is not asked for
        // more.
        let mut curves: Vec<Vec<(usize, f64)>> = vec![Vec::new(); engines.len()];
        for (rank, &n) in family.sizes.iter().enumerate() {
            let text = (family.make)(n);
            let read = litmus::parse("family.toml", text.as_bytes());
            let test = read
                .unwrap_or_else(|e| panic!("{}: {e:?}\n{text}", family.name))
                .remove(0);
            let (mut answer, mut row) = (String::new(), String::new());
            for (&engine, curve) in engines.iter().zip(&mut curves) {
                let mut ms = None;
                if curve.len() == rank {
                    let (said, time) = measure(family.asked, &test, &model, engine);
                    if said != "undecided" {
                        assert!(
                            answer.is_empty() || answer == said,
                            "{} {n}: {answer}, {said}",
                            family.name
                        );
                        answer = said;
                        ms = Some(time.as_secs_f64() * 1e3);
                    }
                }
                if let Some(ms) = ms {
                    curve.push((n, ms));
                    figures.insert(format!("{} {n} {}", family.name, label(engine)), ms);
                }
                write!(
                    row,
                    "{:>12}",
                    ms.map_or("-".to_owned(), |ms| format!("{ms:.2}"))
                )
                .expect("text grows");
            }
            let auto = engines
                .iter()
                .zip(&curves)
                .find(|(engine, _)| **engine == Engine::Auto)
                .map(|(_, curve)| curve);
            let alone = engines
                .iter()
                .zip(&curves)
                .filter(|(engine, _)| **engine != Engine::Auto)
                .map(|(_, curve)| curve);
            let best = alone
                .filter_map(|curve| curve.get(rank))
                .map(|point| point.1)
                .reduce(f64::min);
            if let (Some(&(_, auto)), Some(best)) = (auto.and_then(|curve| curve.get(rank)), best) {
                write!(row, "{:>8.2}", auto / best).expect("text grows");
            }
            println!("{:26}{n:>4}{answer:>12}{row}", family.name);
        }
        let row: String = curves
            .iter()
            .map(|curve| format!("{:>12}", growth(curve)))
            .collect();
        println!("{:26}{:>16}{row}", "", "growth");
    }
    let stored = || Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/families.tsv");
    let path = std::env::var_os("FENCEPOST_BASELINE").map_or_else(stored, PathBuf::from);
    let then = read(&path);
    if std::env::var_os("BLESS").is_some() {
        // What was not measured now stays as it was.
        let all: Figures = then.into_iter().flatten().chain(figures).collect();
        let text: String = all
            .iter()
            .map(|(what, ms)| format!("{what}\t{ms:.3}\n"))
            .collect();
        std::fs::write(&path, text).expect("the baseline can be written");
    } else if let Some(then) = then {
        compare(&figures, &then);
    }
}

fn label(engine: Engine) -> &'static str {
    if engine == Engine::Auto {
        "auto"
    } else {
        engine.name()
    }
}
