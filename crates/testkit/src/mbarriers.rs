//! Random programs with mbarrier objects, as text: arrivals, waits and tests of all orders and
//! scopes, phases, byte counts. Some have asynchronous copies, or asynchronous operations of all
//! kinds.
//!
//! # Invariants
//! - Every generated program is valid input; it may be undefined, and it may hang.
//! - All registers are observed, as is all memory that has values.

use std::fmt::Write as _;

use program::litmus::LitmusTest;
use program::options::OPTIONS;
use rand::Rng;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_pcg::Pcg64Mcg;

use crate::generate::WAITS;
use crate::made;

/// A program that can be made smaller.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The expected count of each object; 0: the code initialises it.
    counts: [u32; 2],
    /// By thread: its CTA, and its instructions.
    threads: Vec<(u32, Vec<String>)>,
    /// The values of options for reading it.
    readings: Vec<(&'static str, &'static str)>,
}

impl Source {
    /// The program as a TOML test.
    pub fn text(&self, name: &str) -> String {
        let registers = |code: &[String]| {
            let all = code
                .iter()
                .flat_map(|line| line.split([' ', ',', ';', '{', '}']));
            let is_register = |w: &&str| {
                w.strip_prefix('r')
                    .is_some_and(|n| n.parse::<u32>().is_ok())
            };
            let mut found: Vec<String> = all.filter(is_register).map(str::to_owned).collect();
            found.sort();
            found.dedup();
            found
        };
        let mut observe = vec!["\"x\"".to_owned(), "\"y\"".to_owned(), "\"v\"".to_owned()];
        let readings: Vec<String> = self
            .readings
            .iter()
            .map(|(name, value)| format!("{name} = \"{value}\""))
            .collect();
        for (t, (_, code)) in self.threads.iter().enumerate() {
            observe.extend(registers(code).iter().map(|r| format!("\"T{t}:{r}\"")));
        }
        let mut out = format!(
            "name = \"{name}\"\nobserve = [{}]\noptions = {{ {} }}\n\n[memory]\nx = 0\ny = 0\ns = {{ init = 0, space = \"shared\" }}\n\
             v = {{ init = [1, 2], type = \"u64\" }}\nw = {{ init = [3, 4], type = \"u64\", space = \"shared\" }}\n",
            observe.join(", "),
            readings.join(", ")
        );
        for (object, count) in ["b", "e"].iter().zip(self.counts) {
            let _ = writeln!(
                out,
                "{object} = {{ type = \"mbarrier\", init = {count}, space = \"shared\" }}"
            );
        }
        for (t, (cta, code)) in self.threads.iter().enumerate() {
            let _ = write!(
                out,
                "\n[[thread]]\nname = \"T{t}\"\ncluster = 0\ncta = {cta}\n"
            );
            let regs: Vec<String> = registers(code).iter().map(|r| format!("{r} = 0")).collect();
            let _ = writeln!(out, "regs = {{ {} }}\ncode = '''", regs.join(", "));
            // The objects of the first CTA.
            if *cta != 0 {
                out.push_str("mapa.u64 pb, b, 0;\nmapa.u64 pe, e, 0;\nmapa.u64 ps, s, 0;\nmapa.u64 pw, w, 0;\n");
            }
            for line in code {
                let _ = writeln!(
                    out,
                    "{}",
                    if *cta == 0 {
                        line.clone()
                    } else {
                        remote(line)
                    }
                );
            }
            out.push_str("'''\n");
        }
        out
    }

    /// Reads the program.
    ///
    /// # Panics
    /// If the front end rejects it: that is a defect of the front end or of this generator.
    pub fn read(&self, name: &str) -> LitmusTest {
        made::read(&self.text(name))
    }

    /// The smallest program that single deletions of threads and instructions reach and on which
    /// `fails` still holds.
    pub fn shrink(&self, fails: impl Fn(&Source) -> bool) -> Source {
        made::smallest(self, Source::smaller, |s| {
            made::is_read(&s.text("smaller")) && fails(s)
        })
    }

    fn smaller(&self) -> Vec<Source> {
        let mut list = Vec::new();
        for t in 0..self.threads.len() {
            let mut without = self.clone();
            without.threads.remove(t);
            // The copies of the objects are numbered from the first CTA of the program.
            if without.threads.first().is_some_and(|t| t.0 == 0) {
                list.push(without);
            }
            for i in 0..self.threads[t].1.len() {
                let mut without = self.clone();
                without.threads[t].1.remove(i);
                list.push(without);
            }
        }
        list
    }
}

/// The same operation on the first CTA's objects.
fn remote(line: &str) -> String {
    line.replace("[b]", "[pb]")
        .replace("[e]", "[pe]")
        .replace("[s]", "[ps]")
        .replace("[w], [v]", "[pw], [v]")
}

fn any<T: Copy>(rng: &mut Pcg64Mcg, list: &[T]) -> T {
    *list.choose(rng).expect("never empty")
}

/// The program of a seed: two or three threads with up to that many instructions each.
pub fn program(seed: u64, instructions: usize) -> Source {
    some(seed, instructions, |_, _, _| None)
}

/// The same with asynchronous copies.
pub fn with_copies(seed: u64, instructions: usize) -> Source {
    some(seed, instructions, |rng, i, _| {
        rng.random_bool(0.5).then(|| copying(rng, i))
    })
}

/// The same with waits that have nothing to wait for.
pub fn with_waits(seed: u64, instructions: usize) -> Source {
    some(seed, instructions, |rng, _, _| {
        rng.random_bool(0.3)
            .then(|| format!("{};", any(rng, WAITS)))
    })
}

/// The same with asynchronous operations of all kinds, under some readings of the sources.
pub fn with_operations(seed: u64, instructions: usize) -> Source {
    let source = some(seed, instructions, |rng, i, cta| {
        rng.random_bool(0.7).then(|| operation(rng, i, cta))
    });
    let rng = &mut Pcg64Mcg::seed_from_u64(!seed);
    let mut readings = Vec::new();
    for row in OPTIONS.iter().filter(|row| row.reading.is_some()) {
        if rng.random_bool(0.3) {
            readings.push((row.name, any(rng, row.values)));
        }
    }
    Source { readings, ..source }
}

/// May draw an instruction with that number, in a thread of that CTA.
type Draw = fn(&mut Pcg64Mcg, usize, u32) -> Option<String>;

fn some(seed: u64, instructions: usize, draw: Draw) -> Source {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let rng = &mut rng;
    let count = rng.random_range(2..=3);
    let apart = rng.random_bool(0.4);
    let made = rng.random_bool(0.15);
    let counts = [if made { 0 } else { rng.random_range(1..=2) }, 1];
    let threads = (0..count).map(|t| {
        let cta = if t > 0 && apart {
            rng.random_range(0..2)
        } else {
            0
        };
        let budget = rng.random_range(1..=instructions);
        let mut code: Vec<String> = (0..budget)
            .map(|i| draw(rng, i, cta).unwrap_or_else(|| instruction(rng, i, cta)))
            .collect();
        if made && t == 0 {
            code.insert(0, "mbarrier.init.b64 [b], 1;".into());
        }
        if made && rng.random_bool(0.7) {
            code.insert(usize::from(t == 0), "bar.sync 0;".into());
        }
        (cta, code)
    });
    Source {
        counts,
        threads: threads.collect(),
        readings: Vec::new(),
    }
}

/// An asynchronous operation, or an instruction related to one.
fn operation(rng: &mut Pcg64Mcg, i: usize, cta: u32) -> String {
    let scope = any(rng, &["cta", "cluster", "gpu", "sys"]);
    let wide = any(rng, &["gpu", "sys"]);
    let loc = any(rng, &["x", "y"]);
    match rng.random_range(0..22) {
        0..=1 => "cp.async.bulk [w], [v], 16, [b];".into(),
        2..=3 => "cp.async.bulk [v], [w], 16;".into(),
        4 => format!("cp.async.bulk.relaxed.{scope}.b128 [w], [v], 16, [b];"),
        5 => format!("cp.async.bulk.relaxed.{scope}.b128 [v], [w], 16;"),
        6..=7 => format!("cp.reduce.async.bulk.relaxed.{scope}.add.u64 [v], [w], 16;"),
        8 => format!(
            "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group{} 0;",
            any(rng, &["", ".read"])
        ),
        9 => "cp.async.bulk.commit_group;".into(),
        10..=11 => format!("st.async.release.{wide}.u64 [{loc}], 1;"),
        12 => format!("red.async.release.{wide}.add.u64 [{loc}], 1;"),
        13..=14 => "st.async.u64 [s], 1, [b];".into(),
        15 if cta != 0 => "red.async.relaxed.cluster.add.u64 [s], 1, [b];".into(),
        15 => format!(
            "fence.proxy.async.{};",
            any(rng, &["global", "shared::cta", "shared::cluster"])
        ),
        16 => "fence.proxy.async;".into(),
        17 => format!("wgmma.fence;\nwgmma.mma_async r{i}, [w], 16;"),
        18 => "wgmma.commit_group;\nwgmma.wait_group 0;".into(),
        19 => format!(
            "{}.b128 {{r{i}, r1{i}}}, [v];",
            any(rng, &["ld.weak", "ld.relaxed.sys", "ld.acquire.gpu"])
        ),
        20 => format!(
            "{}.b128 [v], {{5, 6}};",
            any(rng, &["st.weak", "st.relaxed.sys", "st.release.gpu"])
        ),
        _ => format!(
            "ld.weak r{i}, {};",
            any(rng, &["s", "w", "w[1]", "v", "v[1]"])
        ),
    }
}

fn copying(rng: &mut Pcg64Mcg, i: usize) -> String {
    match rng.random_range(0..10) {
        0..=2 => format!("cp.async s, {}, 8;", any(rng, &["x", "x", "y"])),
        3 => "cp.async.commit_group;".into(),
        4 => format!("cp.async.wait_group {};", rng.random_range(0..=1)),
        5 => "cp.async.wait_all;".into(),
        6 => "cp.async.mbarrier.arrive.noinc.b64 [b];".into(),
        7 => "cp.async.mbarrier.arrive.b64 [b];".into(),
        _ => format!("ld.weak r{i}, s;"),
    }
}

fn instruction(rng: &mut Pcg64Mcg, i: usize, cta: u32) -> String {
    let b = any(rng, &["b", "b", "e"]);
    let loc = any(rng, &["x", "y"]);
    let scope = any(rng, &["cta", "cluster"]);
    match rng.random_range(0..20) {
        0..=3 => format!("st.weak {loc}, {};", rng.random_range(1..=2)),
        4..=7 => format!("ld.weak r{i}, {loc};"),
        8 => format!(
            "{} {loc}, 1;",
            any(rng, &["st.relaxed.gpu", "st.release.gpu"])
        ),
        9 => format!(
            "{} r{i}, {loc};",
            any(rng, &["ld.relaxed.gpu", "ld.acquire.gpu"])
        ),
        10 => format!(
            "fence.{}.{scope};",
            any(rng, &["acq_rel", "sc", "release", "acquire"])
        ),
        11..=14 => {
            let order = any(rng, &["release", "release", "relaxed"]);
            let form = any(
                rng,
                &[
                    "arrive",
                    "arrive",
                    "arrive",
                    "arrive_drop",
                    "arrive.expect_tx",
                ],
            );
            let bytes = if form == "arrive.expect_tx" {
                ", 8"
            } else {
                ""
            };
            format!("mbarrier.{form}.{order}.{scope}.b64 _, [{b}]{bytes};")
        }
        15 => format!(
            "mbarrier.{}.relaxed.{scope}.b64 [{b}], 8;",
            any(rng, &["expect_tx", "complete_tx"])
        ),
        // A wait is only possible for objects of the thread's CTA.
        _ if cta != 0 => format!("ld.weak r{i}, {loc};"),
        16..=18 => {
            let order = any(rng, &["acquire", "acquire", "relaxed"]);
            format!(
                "mbarrier.wait.{order}.{scope} [{b}], {};",
                any(rng, &[0, 0, 0, 1])
            )
        }
        _ => {
            let order = any(rng, &["acquire", "relaxed"]);
            let parity = rng.random_range(0..2);
            format!(
                "mbarrier.test_wait.parity.{order}.{scope}.b64 p, [{b}], {parity}; selp.u64 r{i}, 1, 2, p;"
            )
        }
    }
}
