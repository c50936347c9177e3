//! The search held against a plain enumeration that shares no code with it: programs are written as text, line by line, and the
//! engines that decide tests list their outcomes under both models.
//!
//! Up to two instructions every program is tried, of four as many as chance draws; with `FENCEPOST_LONG`, for more pairs of models.
//! `FENCEPOST_SIZE=3` tries every program of three, which takes longer than all other tests.

use std::collections::{BTreeMap, BTreeSet};

use cat::model::{Model, load_shipped};
use distinguish::{Alphabet, Judged, Sought, Tier, search};
use engine::skeleton::signature::signature;
use engine::{Engine, Limits};
use front::litmus;
use front::mapping::Mapping;
use program::Dialect;
use program::litmus::LitmusTest;
use verdict::{State, Verdict};
use why::Session;

/// How programs are written: instructions by what they do, with `{x}` for a location, `{r}` for a register, `{v}` for a value.
struct Language {
    dialect: Dialect,
    head: &'static str,
    memory: &'static str,
    /// The key of a thread's group; none where threads are in no groups.
    group: &'static str,
    writes: Vec<String>,
    reads: Vec<String>,
    updates: Vec<String>,
    fences: Vec<String>,
}

fn each(pattern: &str, orders: &[&str], scopes: &[&str]) -> Vec<String> {
    let with = |order: &&str| {
        let ordered = pattern.replace("{o}", order);
        scopes.iter().map(move |scope| ordered.replace("{s}", scope)).collect::<Vec<_>>()
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
        writes: with("st.weak {x}, {v}", each("st.{o}.{s} {x}, {v}", &["relaxed", "release"], &scopes)),
        reads: with("ld.weak {r}, {x}", each("ld.{o}.{s} {r}, {x}", &["relaxed", "acquire"], &scopes)),
        updates: each("atom.{o}.{s}.exch {r}, {x}, {v}", &["relaxed", "acquire", "release", "acq_rel"], &scopes),
        fences: each("fence.{o}.{s}", &["acq_rel", "sc"], &scopes),
    }
}

fn cuda() -> Language {
    let scopes = ["block", "device"];
    let orders = |names: &'static [&'static str]| names.iter().map(|o| format!("cuda::memory_order_{o}"));
    let all = |pattern: &str, names: &'static [&'static str]| {
        let orders: Vec<String> = orders(names).collect();
        each(pattern, &orders.iter().map(String::as_str).collect::<Vec<_>>(), &scopes)
    };
    let rmw = &["relaxed", "acquire", "release", "acq_rel", "seq_cst"];
    let at = "cuda::atomic_ref<int, cuda::thread_scope_{s}>({x})";
    Language {
        dialect: Dialect::Cuda,
        head: "dialect = \"cuda\"\n",
        memory: "0",
        group: "block",
        writes: all(&(at.to_owned() + ".store({v}, {o});"), &["relaxed", "release", "seq_cst"]),
        reads: all(&("int {r} = ".to_owned() + at + ".load({o});"), &["relaxed", "acquire", "seq_cst"]),
        updates: all(&("int {r} = ".to_owned() + at + ".exchange({v}, {o});"), rmw),
        fences: all(
            "cuda::atomic_thread_fence({o}, cuda::thread_scope_{s});",
            &["acquire", "release", "acq_rel", "seq_cst"],
        ),
    }
}

fn c(dialect: Dialect) -> Language {
    let opencl = dialect == Dialect::OpenCl;
    let scopes: &[&str] = if opencl { &[", memory_scope_work_group", ", memory_scope_device"] } else { &[""] };
    let all = |pattern: &str, names: &[&str]| {
        let orders: Vec<String> = names.iter().map(|o| format!("memory_order_{o}")).collect();
        each(pattern, &orders.iter().map(String::as_str).collect::<Vec<_>>(), scopes)
    };
    let fence = match opencl {
        true => "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE, {o}{s});",
        false => "atomic_thread_fence({o});",
    };
    Language {
        dialect,
        head: if opencl { "dialect = \"opencl\"\n" } else { "dialect = \"c\"\n" },
        memory: "{ type = \"atomic_int\" }",
        group: if opencl { "work_group" } else { "" },
        writes: all("atomic_store_explicit({x}, {v}, {o}{s});", &["relaxed", "release", "seq_cst"]),
        reads: all("int {r} = atomic_load_explicit({x}, {o}{s});", &["relaxed", "acquire", "seq_cst"]),
        updates: all(
            "int {r} = atomic_exchange_explicit({x}, {v}, {o}{s});",
            &["relaxed", "acquire", "release", "acq_rel", "seq_cst"],
        ),
        fences: all(fence, &["acquire", "release", "acq_rel", "seq_cst"]),
    }
}

/// Threads of lines, and the group of each.
type Program = (Vec<Vec<String>>, Vec<usize>);

/// Whether it is one of those that the search speaks of: no fence at an end of a thread or behind another one, and every location
/// is written, and accessed twice.
fn is_meant(threads: &[Vec<String>]) -> bool {
    let fence = |line: &String| line.contains("fence");
    let stands = |thread: &Vec<String>| {
        !fence(&thread[0])
            && !fence(&thread[thread.len() - 1])
            && !thread.windows(2).any(|w| fence(&w[0]) && fence(&w[1]))
    };
    let lines = || threads.iter().flatten();
    let shared = |location: &str| {
        let here: Vec<&String> = lines().filter(|l| l.contains(location)).collect();
        here.is_empty() || here.len() > 1 && here.iter().any(|l| l.contains("{v}"))
    };
    threads.iter().all(stands) && ["@x", "@y", "@z"].into_iter().all(shared)
}

/// Every instruction, at every location.
fn instructions(language: &Language) -> Vec<String> {
    let accesses = || language.writes.iter().chain(&language.reads).chain(&language.updates);
    let at = |line: &String| ["@x", "@y", "@z"].map(|location| line.replace("{x}", location));
    accesses().flat_map(at).chain(language.fences.iter().cloned()).collect()
}

/// Every program of that many instructions whose threads stand in the order of their lines.
fn programs(language: &Language, size: usize) -> Vec<Program> {
    let instructions = instructions(language);
    let mut threads: BTreeMap<usize, Vec<Vec<String>>> = BTreeMap::from([(0, vec![Vec::new()])]);
    for length in 1..=size {
        let longer = |t: &Vec<String>| {
            instructions.iter().map(|i| [t.as_slice(), std::slice::from_ref(i)].concat()).collect::<Vec<_>>()
        };
        let all = threads[&(length - 1)].iter().flat_map(longer).collect();
        threads.insert(length, all);
    }
    fn fill(
        threads: &BTreeMap<usize, Vec<Vec<String>>>,
        left: usize,
        so_far: &mut Vec<Vec<String>>,
        out: &mut Vec<Vec<Vec<String>>>,
    ) {
        if left == 0 {
            if is_meant(so_far) {
                out.push(so_far.clone());
            }
            return;
        }
        for length in 1..=left {
            for thread in &threads[&length] {
                if so_far.last().is_some_and(|last| last > thread) {
                    continue;
                }
                so_far.push(thread.clone());
                fill(threads, left - length, so_far, out);
                so_far.pop();
            }
        }
    }
    let mut all = Vec::new();
    fill(&threads, size, &mut Vec::new(), &mut all);
    let placed =
        |threads: Vec<Vec<String>>| groups(language, threads.len()).into_iter().map(move |g| (threads.clone(), g));
    all.into_iter().flat_map(placed).collect()
}

/// Every way to say in which group each thread is.
fn groups(language: &Language, threads: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..threads {
        let more = |g: Vec<usize>| {
            let most = if language.group.is_empty() { 0 } else { g.iter().max().map_or(0, |m| m + 1) };
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
            let line = line.replace("{v}", &value.to_string()).replace("{r}", &format!("r{i}"));
            code += &(line.replace('@', "") + "\n");
        }
        code += "'''\n";
    }
    let used = |l: &&str| threads.iter().flatten().any(|line| line.contains(&format!("@{l}")));
    let locations: Vec<&str> = ["x", "y", "z"].into_iter().filter(used).collect();
    observed.extend(locations.iter().map(|l| format!("\"{l}\"")));
    let memory: String = locations.iter().map(|l| format!("{l} = {}\n", language.memory)).collect();
    format!("name = \"T\"\n{}observe = [{}]\n\n[memory]\n{memory}{code}", language.head, observed.join(", "))
}

/// One model as the engines ask it.
struct Side<'a> {
    model: &'a Model,
    mapping: Option<&'static Mapping>,
}

/// The outcomes that are allowed, or nothing if the program is undefined.
fn allowed(source: &LitmusTest, side: &Side<'_>) -> Option<BTreeSet<State>> {
    let test = side.mapping.map_or(source.clone(), |m| m.lowered(source).expect("everything has a counterpart"));
    let mut session = Session::new(&test, side.model, Engine::Enumerate, Limits::default(), &[]);
    if side.mapping.is_none() && session.undefined().is_some_and(|answer| answer.verdict == Verdict::Undefined) {
        return None;
    }
    let list = session.outcomes();
    assert!(list.complete && list.defect.is_none(), "{list:?}");
    Some(list.outcomes.into_iter().filter(|o| o.allowed).map(|o| o.state).collect())
}

/// Whether the first model allows what the second one forbids.
fn differ(language: &Language, program: &Program, sides: &[Side<'_>; 2]) -> bool {
    let text = text(language, program);
    let test = litmus::parse("T.toml", text.as_bytes()).unwrap_or_else(|e| panic!("{}\n{text}", e[0].message));
    let [there, here] = sides.each_ref().map(|side| allowed(&test[0], side));
    matches!((there, here), (Some(there), Some(here)) if !there.is_subset(&here))
}

/// Numbers that look random and are the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// A program of four instructions, of those that are meant.
fn drawn(language: &Language, instructions: &[String], numbers: &mut Numbers) -> Program {
    loop {
        let lengths: &[usize] = [&[2, 2][..], &[2, 2], &[3, 1], &[2, 1, 1], &[1, 1, 1, 1], &[4]][numbers.below(6)];
        let mut thread = |length: &usize| -> Vec<String> {
            (0..*length).map(|_| instructions[numbers.below(instructions.len())].clone()).collect()
        };
        let threads: Vec<Vec<String>> = lengths.iter().map(&mut thread).collect();
        if is_meant(&threads) {
            let groups = groups(language, threads.len());
            let group = groups[numbers.below(groups.len())].clone();
            return (threads, group);
        }
    }
}

/// What the search says of a pair is what the plain enumeration says: a program of that size, or none.
#[test]
fn none_is_found_where_there_is_none() {
    let long = std::env::var_os("FENCEPOST_LONG").is_some();
    let c11 = || c(Dialect::C);
    let opencl = || c(Dialect::OpenCl);
    let pairs: [(&str, &str, Option<&str>, Language); 10] = [
        ("ptx", "sc", None, ptx()),
        ("sc", "ptx", None, ptx()),
        ("c11", "rc11", None, c11()),
        ("rc11", "c11", None, c11()),
        ("cuda-17", "cuda", None, cuda()),
        ("cuda", "cuda-17", None, cuda()),
        ("opencl-3.1", "opencl", None, opencl()),
        ("opencl", "opencl-simp", None, opencl()),
        ("ptx", "cuda", Some("cuda-ptx"), cuda()),
        ("ptx", "cuda", Some("cuda-ptx-erratum"), cuda()),
    ];
    let model = |name| load_shipped(name, &signature()).expect("shipped").expect("valid");
    for (a, b, mapping, language) in pairs.into_iter().take(if long { 10 } else { 3 }) {
        let (a_model, b_model) = (model(a), model(b));
        let mapping = mapping.map(|m| Mapping::named(m).expect("shipped"));
        let sides = [Side { model: &a_model, mapping }, Side { model: &b_model, mapping: None }];
        let alphabet = Alphabet::new(language.dialect, &[]);
        let found = |size| {
            let sought = Sought {
                allows: vec![Judged { model: &a_model, mapping, set: &[], learnt: None }],
                forbids: vec![Judged { model: &b_model, mapping: None, set: &[], learnt: None }],
                alphabet: &alphabet,
                size,
                tiers: &[Tier::Critical, Tier::Other],
                all: false,
                jobs: 2,
                deadline: None,
            };
            let answer = search(&sought).expect("they judge such programs");
            answer.found.first().map(|found| found.letters.len())
        };
        let size = std::env::var("FENCEPOST_SIZE").ok().and_then(|size| size.parse().ok());
        let most = size.unwrap_or(2);
        let mut asked = 0;
        let plain = (2..=most).find(|&size| {
            programs(&language, size).iter().any(|program| {
                asked += 1;
                differ(&language, program, &sides)
            })
        });
        assert_eq!(found(most), plain, "{a} and {b}");
        // Of four instructions, one that differs is found whenever there is one; that there is one, chance may miss.
        let (all, mut numbers) = (instructions(&language), Numbers(1));
        let draws = if long { 1_000 } else { 200 };
        let hit = (0..draws).map(|_| drawn(&language, &all, &mut numbers)).find(|p| differ(&language, p, &sides));
        if let Some(program) = hit {
            assert!(found(4).is_some(), "{a} and {b}:\n{}", text(&language, &program));
        }
        println!("{a} and {b}: {asked} programs up to {most} instructions, {draws} of 4");
    }
}
