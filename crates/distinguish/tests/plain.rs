//! Compares the search with a plain enumeration that shares no code with it. Programs are written
//! as text, line by line, and the engines that decide tests list their outcomes under both models.
//!
//! All programs of up to two instructions are tried, and random ones of four. `FENCEPOST_LONG` adds
//! more pairs of models, and for those of C all programs of three. `FENCEPOST_PLAIN` tries a part
//! of the programs of four, or all of them.

use std::collections::BTreeSet;

use cat::model::Model;
use distinguish::{Alphabet, JudgeSetup, SearchRequest, Tier, search};
use engine::{Engine, Limits};
use front::litmus;
use front::mapping::Mapping;
use program::Dialect;
use program::litmus::LitmusTest;
use testkit::suite::{is_long, shipped};
use verdict::{State, Verdict};
use why::Session;

/// The text of programs: instructions by kind, with `{x}` for a location, `{r}` for a register,
/// `{v}` for a value.
struct Language {
    dialect: Dialect,
    head: &'static str,
    memory: &'static str,
    /// The key of a thread's group; empty if threads are in no groups.
    group: &'static str,
    writes: Vec<String>,
    reads: Vec<String>,
    updates: Vec<String>,
    fences: Vec<String>,
}

fn each(pattern: &str, orders: &[&str], scopes: &[&str]) -> Vec<String> {
    let with = |order: &&str| {
        let ordered = pattern.replace("{o}", order);
        scopes
            .iter()
            .map(move |scope| ordered.replace("{s}", scope))
            .collect::<Vec<_>>()
    };
    orders.iter().flat_map(with).collect()
}

fn ptx() -> Language {
    let scopes = ["cta", "gpu"];
    let with = |weak: &str, rest: Vec<String>| [vec![weak.to_owned()], rest].concat();
    Language {
        dialect: Dialect::Ptx,
        head: "",
        memory: "0",
        group: "cta",
        writes: with(
            "st.weak {x}, {v}",
            each("st.{o}.{s} {x}, {v}", &["relaxed", "release"], &scopes),
        ),
        reads: with(
            "ld.weak {r}, {x}",
            each("ld.{o}.{s} {r}, {x}", &["relaxed", "acquire"], &scopes),
        ),
        updates: each(
            "atom.{o}.{s}.exch {r}, {x}, {v}",
            &["relaxed", "acquire", "release", "acq_rel"],
            &scopes,
        ),
        fences: each("fence.{o}.{s}", &["acq_rel", "sc"], &scopes),
    }
}

fn cuda() -> Language {
    let scopes = ["block", "device"];
    let orders =
        |names: &'static [&'static str]| names.iter().map(|o| format!("cuda::memory_order_{o}"));
    let all = |pattern: &str, names: &'static [&'static str]| {
        let orders: Vec<String> = orders(names).collect();
        each(
            pattern,
            &orders.iter().map(String::as_str).collect::<Vec<_>>(),
            &scopes,
        )
    };
    let rmw = &["relaxed", "acquire", "release", "acq_rel", "seq_cst"];
    let at = "cuda::atomic_ref<int, cuda::thread_scope_{s}>({x})";
    Language {
        dialect: Dialect::Cuda,
        head: "dialect = \"cuda\"\n",
        memory: "0",
        group: "block",
        writes: all(
            &(at.to_owned() + ".store({v}, {o});"),
            &["relaxed", "release", "seq_cst"],
        ),
        reads: all(
            &("int {r} = ".to_owned() + at + ".load({o});"),
            &["relaxed", "acquire", "seq_cst"],
        ),
        updates: all(
            &("int {r} = ".to_owned() + at + ".exchange({v}, {o});"),
            rmw,
        ),
        fences: all(
            "cuda::atomic_thread_fence({o}, cuda::thread_scope_{s});",
            &["acquire", "release", "acq_rel", "seq_cst"],
        ),
    }
}

fn c(dialect: Dialect) -> Language {
    let opencl = dialect == Dialect::OpenCl;
    let scopes: &[&str] = if opencl {
        &[", memory_scope_work_group", ", memory_scope_device"]
    } else {
        &[""]
    };
    let all = |pattern: &str, names: &[&str]| {
        let orders: Vec<String> = names.iter().map(|o| format!("memory_order_{o}")).collect();
        each(
            pattern,
            &orders.iter().map(String::as_str).collect::<Vec<_>>(),
            scopes,
        )
    };
    let fence = match opencl {
        true => "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE, {o}{s});",
        false => "atomic_thread_fence({o});",
    };
    Language {
        dialect,
        head: if opencl {
            "dialect = \"opencl\"\n"
        } else {
            "dialect = \"c\"\n"
        },
        memory: "{ type = \"atomic_int\" }",
        group: if opencl { "work_group" } else { "" },
        writes: all(
            "atomic_store_explicit({x}, {v}, {o}{s});",
            &["relaxed", "release", "seq_cst"],
        ),
        reads: all(
            "int {r} = atomic_load_explicit({x}, {o}{s});",
            &["relaxed", "acquire", "seq_cst"],
        ),
        updates: all(
            "int {r} = atomic_exchange_explicit({x}, {v}, {o}{s});",
            &["relaxed", "acquire", "release", "acq_rel", "seq_cst"],
        ),
        fences: all(fence, &["acquire", "release", "acq_rel", "seq_cst"]),
    }
}

/// Threads of lines, and the group of each.
type Program = (Vec<Vec<String>>, Vec<usize>);

/// An instruction by number, and its location by number; a fence has the location 0.
type Line = (usize, usize);

const LOCATIONS: [&str; 3] = ["@x", "@y", "@z"];

/// Instructions by kind.
struct Instructions {
    /// Stores, loads and exchanges, then fences.
    all: Vec<String>,
    fences: usize,
}

impl Instructions {
    fn new(language: &Language) -> Instructions {
        let accesses = language
            .writes
            .iter()
            .chain(&language.reads)
            .chain(&language.updates);
        let all: Vec<String> = accesses.chain(&language.fences).cloned().collect();
        Instructions {
            fences: all.len() - language.fences.len(),
            all,
        }
    }

    fn is_fence(&self, line: &Line) -> bool {
        line.0 >= self.fences
    }

    /// Whether it is a shape of the search: no fence at an end of a thread or after another fence,
    /// and every location is written and accessed twice.
    fn is_meant(&self, threads: &[Vec<Line>]) -> bool {
        let stands = |thread: &Vec<Line>| {
            !self.is_fence(&thread[0])
                && !self.is_fence(&thread[thread.len() - 1])
                && !thread
                    .windows(2)
                    .any(|w| self.is_fence(&w[0]) && self.is_fence(&w[1]))
        };
        let accesses = || threads.iter().flatten().filter(|line| !self.is_fence(line));
        let shared = |location: usize| {
            let here: Vec<&Line> = accesses().filter(|line| line.1 == location).collect();
            here.is_empty()
                || here.len() > 1 && here.iter().any(|line| self.all[line.0].contains("{v}"))
        };
        threads.iter().all(stands) && (0..LOCATIONS.len()).all(shared)
    }

    /// Whether it is the first among programs that differ only in the order of threads and the
    /// names of locations.
    fn is_first(&self, threads: &[Vec<Line>]) -> bool {
        let used = threads
            .iter()
            .flatten()
            .filter(|line| !self.is_fence(line))
            .map(|line| line.1 + 1)
            .max();
        let mut names: Vec<Vec<usize>> = vec![Vec::new()];
        for l in 0..used.unwrap_or(0) {
            let longer = |n: &Vec<usize>| {
                (0..=n.len())
                    .map(|at| [&n[..at], &[l], &n[at..]].concat())
                    .collect::<Vec<Vec<usize>>>()
            };
            names = names.iter().flat_map(longer).collect();
        }
        names.iter().all(|names| {
            let renamed = |line: &Line| {
                if self.is_fence(line) {
                    *line
                } else {
                    (line.0, names[line.1])
                }
            };
            let mut other: Vec<Vec<Line>> = threads
                .iter()
                .map(|t| t.iter().map(renamed).collect())
                .collect();
            other.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            threads <= other.as_slice()
        })
    }

    fn text(&self, threads: &[Vec<Line>]) -> Vec<Vec<String>> {
        let line = |line: &Line| self.all[line.0].replace("{x}", LOCATIONS[line.1]);
        threads
            .iter()
            .map(|lines| lines.iter().map(line).collect())
            .collect()
    }

    /// Visits the programs with that many instructions until `each` returns true. No thread is
    /// longer than the one before it, and each program occurs under one choice of names.
    fn programs(
        &self,
        left: usize,
        threads: &mut Vec<Vec<Line>>,
        each: &mut dyn FnMut(&[Vec<Line>]) -> bool,
    ) -> bool {
        if threads.windows(2).any(|w| w[0].len() < w[1].len()) {
            return false;
        }
        if left == 0 {
            return self.is_meant(threads) && self.is_first(threads) && each(threads);
        }
        let used = threads
            .iter()
            .flatten()
            .filter(|line| !self.is_fence(line))
            .map(|line| line.1 + 1)
            .max();
        let fresh = used.unwrap_or(0).min(LOCATIONS.len() - 1);
        for new in [false, true]
            .into_iter()
            .skip(usize::from(threads.is_empty()))
        {
            for line in (0..self.all.len()).flat_map(|i| (0..=fresh).map(move |l| (i, l))) {
                if self.is_fence(&line) && line.1 > 0 {
                    continue;
                }
                if new {
                    threads.push(vec![line]);
                } else {
                    threads.last_mut().expect("there is one").push(line);
                }
                let stop = self.programs(left - 1, threads, each);
                if new {
                    threads.pop();
                } else {
                    threads.last_mut().expect("there is one").pop();
                }
                if stop {
                    return true;
                }
            }
        }
        false
    }
}

/// All assignments of threads to groups.
fn groups(language: &Language, threads: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..threads {
        let more = |g: Vec<usize>| {
            let most = if language.group.is_empty() {
                0
            } else {
                g.iter().max().map_or(0, |m| m + 1)
            };
            (0..=most).map(move |next| [g.as_slice(), &[next]].concat())
        };
        all = all.into_iter().flat_map(more).collect();
    }
    all
}

/// The program as a test that observes everything.
fn text(language: &Language, (threads, groups): &Program) -> String {
    let (mut code, mut observed, mut value) = (String::new(), Vec::new(), 0);
    for (t, (lines, group)) in threads.iter().zip(groups).enumerate() {
        code += "\n[[thread]]\n";
        if !language.group.is_empty() {
            code += &format!("{} = {group}\n", language.group);
        }
        code += "code = '''\n";
        for (i, line) in lines.iter().enumerate() {
            value += usize::from(line.contains("{v}"));
            if line.contains("{r}") {
                observed.push(format!("\"P{t}:r{i}\""));
            }
            let line = line
                .replace("{v}", &value.to_string())
                .replace("{r}", &format!("r{i}"));
            code += &(line.replace('@', "") + "\n");
        }
        code += "'''\n";
    }
    let used = |l: &&str| {
        threads
            .iter()
            .flatten()
            .any(|line| line.contains(&format!("@{l}")))
    };
    let locations: Vec<&str> = ["x", "y", "z"].into_iter().filter(used).collect();
    observed.extend(locations.iter().map(|l| format!("\"{l}\"")));
    let memory: String = locations
        .iter()
        .map(|l| format!("{l} = {}\n", language.memory))
        .collect();
    format!(
        "name = \"T\"\n{}observe = [{}]\n\n[memory]\n{memory}{code}",
        language.head,
        observed.join(", ")
    )
}

/// A model for the engines, with its mapping.
struct Side<'a> {
    model: &'a Model,
    mapping: Option<&'static Mapping>,
}

/// The allowed outcomes; `None` if the program is undefined.
fn allowed(source: &LitmusTest, side: &Side<'_>) -> Option<BTreeSet<State>> {
    let test = side.mapping.map_or(source.clone(), |m| {
        m.lowered(source).expect("everything has a counterpart")
    });
    let mut session = Session::new(&test, side.model, Engine::Enumerate, Limits::default(), &[]);
    if side.mapping.is_none()
        && session
            .undefined()
            .is_some_and(|answer| answer.verdict == Verdict::Undefined)
    {
        return None;
    }
    let list = session.outcomes();
    assert!(list.complete && list.defect.is_none(), "{list:?}");
    list.allowed_states()
}

/// Whether the first model allows what the second one forbids.
fn differ(language: &Language, program: &Program, sides: &[Side<'_>; 2]) -> bool {
    let text = text(language, program);
    let test = litmus::parse("T.toml", text.as_bytes())
        .unwrap_or_else(|e| panic!("{}\n{text}", e[0].message));
    let [there, here] = sides.each_ref().map(|side| allowed(&test[0], side));
    matches!((there, here), (Some(there), Some(here)) if !there.is_subset(&here))
}

/// Deterministic pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// A random program of four instructions within the search space.
fn drawn(language: &Language, instructions: &Instructions, numbers: &mut Numbers) -> Program {
    loop {
        let lengths: &[usize] = [
            &[2, 2][..],
            &[2, 2],
            &[3, 1],
            &[2, 1, 1],
            &[1, 1, 1, 1],
            &[4],
        ][numbers.below(6)];
        let mut thread = |length: &usize| -> Vec<Line> {
            let mut line = || {
                (
                    numbers.below(instructions.all.len()),
                    numbers.below(LOCATIONS.len()),
                )
            };
            (0..*length).map(|_| line()).collect()
        };
        let threads: Vec<Vec<Line>> = lengths.iter().map(&mut thread).collect();
        if instructions.is_meant(&threads) {
            let groups = groups(language, threads.len());
            let group = groups[numbers.below(groups.len())].clone();
            return (instructions.text(&threads), group);
        }
    }
}

/// A pair of models, with the mapping by which the first one judges programs of the second one's
/// language.
struct Pair {
    a: &'static str,
    b: &'static str,
    mapping: Option<&'static str>,
    language: Language,
    /// The number of instructions up to which long runs try every program.
    whole: usize,
}

fn pairs() -> Vec<Pair> {
    let pair = |a, b, mapping, language, whole| Pair {
        a,
        b,
        mapping,
        language,
        whole,
    };
    vec![
        pair("ptx", "sc", None, ptx(), 2),
        pair("sc", "ptx", None, ptx(), 2),
        pair("c11", "rc11", None, c(Dialect::C), 3),
        pair("rc11", "c11", None, c(Dialect::C), 3),
        pair("cuda-17", "cuda", None, cuda(), 2),
        pair("cuda", "cuda-17", None, cuda(), 2),
        pair("opencl-3.1", "opencl", None, c(Dialect::OpenCl), 2),
        pair("opencl", "opencl-simp", None, c(Dialect::OpenCl), 2),
        pair("ptx", "cuda", Some("cuda-ptx"), cuda(), 2),
        pair("ptx", "cuda", Some("cuda-ptx-erratum"), cuda(), 2),
    ]
}

impl Pair {
    /// Tries every `of`-th program of that size in all placements, starting at the given remainder.
    /// Returns the first on which the models differ, and the number of programs tried.
    fn plain(&self, size: usize, (from, of): (usize, usize)) -> (Option<String>, usize) {
        let (a, b) = (shipped(self.a), shipped(self.b));
        let mapping = self.mapping.map(|m| Mapping::named(m).expect("shipped"));
        let sides = [
            Side { model: &a, mapping },
            Side {
                model: &b,
                mapping: None,
            },
        ];
        let instructions = Instructions::new(&self.language);
        let (mut asked, mut number, mut found) = (0, 0, None);
        instructions.programs(size, &mut Vec::new(), &mut |threads| {
            for groups in groups(&self.language, threads.len()) {
                number += 1;
                if number % of != from {
                    continue;
                }
                asked += 1;
                let program = (instructions.text(threads), groups);
                if differ(&self.language, &program, &sides) {
                    found = Some(text(&self.language, &program));
                    return true;
                }
            }
            false
        });
        (found, asked)
    }

    /// The size of the program that the search finds.
    fn found(&self, size: usize) -> Option<usize> {
        let (a, b) = (shipped(self.a), shipped(self.b));
        let mapping = self.mapping.map(|m| Mapping::named(m).expect("shipped"));
        let alphabet = Alphabet::new(self.language.dialect, &[]);
        let sought = SearchRequest {
            allows: vec![JudgeSetup {
                model: &a,
                mapping,
                set: &[],
                learnt: None,
            }],
            forbids: vec![JudgeSetup {
                model: &b,
                mapping: None,
                set: &[],
                learnt: None,
            }],
            alphabet: &alphabet,
            size,
            tiers: &[Tier::Critical, Tier::Other],
            all: false,
            jobs: 2,
            deadline: None,
        };
        let answer = search(&sought).expect("they judge such programs");
        answer.found.first().map(|found| found.letters.len())
    }
}

/// The search and the plain enumeration agree: both find a program of that size, or neither does.
#[test]
fn none_is_found_where_there_is_none() {
    let long = is_long();
    for pair in pairs().into_iter().take(if long { 10 } else { 3 }) {
        let Pair { a, b, .. } = pair;
        let most = if long { pair.whole } else { 2 };
        let mut asked = 0;
        let plain = (2..=most).find(|&size| {
            let (found, of_size) = pair.plain(size, (0, 1));
            asked += of_size;
            found.is_some()
        });
        assert_eq!(pair.found(most), plain, "{a} and {b}");
        // If a random program of four instructions differs, the search finds one, too. Chance may
        // miss existing ones.
        let (instructions, mut numbers) = (Instructions::new(&pair.language), Numbers(1));
        let (a_model, b_model) = (shipped(a), shipped(b));
        let mapping = pair.mapping.map(|m| Mapping::named(m).expect("shipped"));
        let sides = [
            Side {
                model: &a_model,
                mapping,
            },
            Side {
                model: &b_model,
                mapping: None,
            },
        ];
        let draws = if long { 1_000 } else { 200 };
        let hit = (0..draws)
            .map(|_| drawn(&pair.language, &instructions, &mut numbers))
            .find(|p| differ(&pair.language, p, &sides));
        if let Some(program) = hit {
            assert!(
                pair.found(4).is_some(),
                "{a} and {b}:\n{}",
                text(&pair.language, &program)
            );
        }
        println!("{a} and {b}: {asked} programs up to {most} instructions, {draws} of 4");
    }
}

/// `FENCEPOST_PLAIN="sc ptx 4 0/16"`: of the millions of programs of four instructions, tries those
/// whose number leaves the remainder 0 when divided by 16. If one differs, the search finds one,
/// too; if none of all does, it finds none.
#[test]
fn a_part_of_all_programs_is_asked_about() {
    let asked = std::env::var("FENCEPOST_PLAIN")
        .unwrap_or_else(|_| format!("rc11 c11 3 0/{}", if is_long() { 1 } else { 4 }));
    let words: Vec<&str> = asked.split_whitespace().collect();
    let [a, b, size, part] = words[..] else {
        panic!("`FENCEPOST_PLAIN`: two models, a size, a part")
    };
    let number = |word: &str| {
        word.parse::<usize>()
            .unwrap_or_else(|e| panic!("`{word}`: {e}"))
    };
    let (from, of) = part.split_once('/').expect("a part such as 0/16");
    let pair = pairs()
        .into_iter()
        .find(|pair| (pair.a, pair.b) == (a, b))
        .expect("a pair of this test");
    let (found, programs) = pair.plain(number(size), (number(from), number(of)));
    println!(
        "{asked}: {programs} programs, none that differs: {}",
        found.is_none()
    );
    if let Some(program) = found {
        assert!(
            pair.found(number(size)).is_some(),
            "the search does not find\n{program}"
        );
    } else if (from, of) == ("0", "1") {
        assert!(
            pair.found(number(size))
                .is_none_or(|found| found < number(size))
        );
    }
}
