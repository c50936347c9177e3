//! Random tests of a critical-cycle shape: threads in a ring, each with an access to its own
//! location and one to its neighbour's.
//!
//! Store buffering, message passing, load buffering, IRIW and their relatives are such rings.
//! Unstructured programs of the same size seldom are. `fence.sc`, release patterns through a later
//! store, and reductions matter in rings.

use rand::Rng;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_pcg::Pcg64Mcg;

use super::generate::{Ins, Line, Source, ThreadSource, Val};

fn any<T: Copy>(rng: &mut Pcg64Mcg, list: &[T]) -> T {
    *list.choose(rng).expect("never empty")
}

struct Ring<'a> {
    rng: &'a mut Pcg64Mcg,
    /// Scopes to choose from.
    scopes: &'static [&'static str],
    registers: usize,
    values: i64,
}

impl Ring<'_> {
    fn scope(&mut self) -> &'static str {
        any(self.rng, self.scopes)
    }

    fn load(&mut self, loc: &str) -> Ins {
        self.registers += 1;
        let order = any(self.rng, &["weak", "relaxed", "relaxed", "acquire"]);
        Ins::Load {
            dst: format!("r{}", self.registers - 1),
            loc: loc.into(),
            order,
            scope: self.scope(),
        }
    }

    fn store(&mut self, loc: &str, order: &'static str) -> Ins {
        self.values += 1;
        Ins::Store {
            loc: loc.into(),
            value: Val::Int(self.values),
            order,
            scope: self.scope(),
        }
    }

    fn atomic(&mut self, loc: &str) -> Ins {
        let (op, scope) = (any(self.rng, &["add", "exch"]), self.scope());
        if self.rng.random_bool(0.3) {
            let order = any(self.rng, &["relaxed", "release"]);
            return Ins::Rmw {
                dst: None,
                loc: loc.into(),
                op: "add",
                args: vec![Val::Int(1)],
                order,
                scope,
            };
        }
        self.registers += 1;
        let order = any(
            self.rng,
            &["relaxed", "relaxed", "acquire", "release", "acq_rel"],
        );
        let dst = Some(format!("r{}", self.registers - 1));
        Ins::Rmw {
            dst,
            loc: loc.into(),
            op,
            args: vec![Val::Int(1)],
            order,
            scope,
        }
    }

    /// An access to a location: one instruction, or a release and a later store.
    fn access(&mut self, loc: &str) -> Vec<Ins> {
        match self.rng.random_range(0..20) {
            0..8 => vec![self.load(loc)],
            8..15 => {
                let order = any(self.rng, &["weak", "relaxed", "relaxed", "release"]);
                vec![self.store(loc, order)]
            }
            15..17 => vec![self.store(loc, "release"), self.store(loc, "relaxed")],
            _ => vec![self.atomic(loc)],
        }
    }

    fn between(&mut self, barrier: bool) -> Vec<Ins> {
        match self.rng.random_range(0..10) {
            0..3 => vec![Ins::Fence {
                order: "sc",
                scope: self.scope(),
            }],
            3..6 => {
                let order = any(self.rng, &["acq_rel", "acquire", "release"]);
                vec![Ins::Fence {
                    order,
                    scope: self.scope(),
                }]
            }
            6..8 if barrier => vec![Ins::Barrier {
                arrive: false,
                id: 0,
                count: None,
            }],
            _ => vec![],
        }
    }
}

/// The ring of a seed.
pub fn ring(seed: u64) -> Source {
    let mut rng = Pcg64Mcg::seed_from_u64(seed ^ 0x5eed_0000);
    let n = any(&mut rng, &[2, 2, 2, 3, 3, 4]);
    let wide = rng.random_bool(0.75);
    let scopes: &[&str] = if wide {
        &["gpu", "gpu", "sys"]
    } else {
        &["cta", "gpu", "sys"]
    };
    let apart = rng.random_bool(0.7);
    let barrier = !apart && rng.random_bool(0.5);
    let mut ring = Ring {
        rng: &mut rng,
        scopes,
        registers: 0,
        values: 0,
    };
    let names = ["x", "y", "z", "w"];
    let mut threads: Vec<ThreadSource> = Vec::new();
    for i in 0..n {
        let mut code = ring.access(names[i]);
        code.extend(ring.between(barrier));
        code.extend(ring.access(names[(i + 1) % n]));
        let cta = if apart {
            i as u32
        } else {
            ring.rng.random_range(0..2)
        };
        threads.push(thread(i, cta, code));
    }
    if n < 4 && ring.rng.random_bool(0.25) {
        // A thread that passes a value on.
        let loc = any(ring.rng, &names[..n]);
        let code = vec![ring.atomic(loc)];
        let cta = if apart { n as u32 } else { 0 };
        threads.push(thread(n, cta, code));
    }
    Source {
        locations: names[..n].iter().map(|l| ((*l).to_owned(), None)).collect(),
        threads,
    }
}

fn thread(i: usize, cta: u32, code: Vec<Ins>) -> ThreadSource {
    let code = code
        .into_iter()
        .map(|op| Line { guard: None, op })
        .collect();
    ThreadSource {
        name: format!("T{i}"),
        gpu: 0,
        cluster: None,
        cta,
        warp: None,
        code,
    }
}
