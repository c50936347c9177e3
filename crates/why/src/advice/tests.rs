//! What is advised, held against the engines: the program keeps what it has to, one that is weaker
//! in one place does not, and no cheaper one does where all of them are gone through.

use std::path::Path;
use std::time::Duration;

use cat::model::{Model, load_shipped};
use engine::skeleton::signature::signature;
use engine::{Engine, Limits};
use front::litmus::{parse, read_path};
use front::mapping::Mapping;
use program::Dialect;
use program::litmus::{LitmusTest, Quantifier, Reachability};

use super::*;
use crate::explain::tests::is_long;

const LIMITS: Limits = Limits {
    bound: None,
    timeout: Some(Duration::from_secs(600)),
};

thread_local! {
    /// How many programs were seen to fail by what showed that others do.
    static RECALLED: Cell<usize> = const { Cell::new(0) };
}

/// What another version showed, the engines say of this one, too.
pub(super) fn is_so(session: &mut Session<'_>, asked: &TestGoals<'_>) {
    RECALLED.set(RECALLED.get() + 1);
    let fails = |goal: &Ask| matches!(SearchSetup::met(session, goal), Ok(Some(false)) | Err(_));
    assert!(asked.goals.iter().any(fails), "{}", asked.test.name);
}

/// Peterson's lock for two threads, with everything as strong as it can be.
const PETERSON: &str = r#"
name = "Peterson"
doc = "Both threads in the critical section: each holds `c` at 1 while it is in."
dialect = "cuda"
condition = 'P0:r == 1 \/ P1:r == 1'

[memory]
a = 0
b = 0
turn = 0
c = 0

[[thread]]
block = 0
code = '''
cuda::atomic_ref<int, cuda::thread_scope_system>(a).store(1, cuda::memory_order_seq_cst);
cuda::atomic_ref<int, cuda::thread_scope_system>(turn).store(1, cuda::memory_order_seq_cst);
int r = 0;
int other = cuda::atomic_ref<int, cuda::thread_scope_system>(b).load(cuda::memory_order_seq_cst);
int mine = cuda::atomic_ref<int, cuda::thread_scope_system>(turn).load(cuda::memory_order_seq_cst);
if (other == 0 || mine == 0) {
    r = c;
    c = 1;
    c = 0;
}
'''

[[thread]]
block = 1
code = '''
cuda::atomic_ref<int, cuda::thread_scope_system>(b).store(1, cuda::memory_order_seq_cst);
cuda::atomic_ref<int, cuda::thread_scope_system>(turn).store(0, cuda::memory_order_seq_cst);
int r = 0;
int other = cuda::atomic_ref<int, cuda::thread_scope_system>(a).load(cuda::memory_order_seq_cst);
int mine = cuda::atomic_ref<int, cuda::thread_scope_system>(turn).load(cuda::memory_order_seq_cst);
if (other == 0 || mine == 1) {
    r = c;
    c = 1;
    c = 0;
}
'''

[expect]
cuda = { reachability = "forbidden" }
"#;

struct Goals {
    name: String,
    model: Model,
    mapping: Option<&'static Mapping>,
    goals: Vec<Ask>,
}

/// What a test expects that is right.
fn goals(test: &LitmusTest) -> Vec<Goals> {
    let of = |(name, e): (&String, &program::litmus::Expectation)| {
        let never = |negate| Ask::Reachability { prop: None, negate };
        let never = match e.reachability? {
            Reachability::Allowed => return None,
            Reachability::Required => never(true),
            Reachability::Forbidden => never(test.quantifier == Quantifier::ForAll),
        };
        let current = Mapping::current(test.program.dialect);
        let mapping = current.filter(|m| Dialect::of_model(name) == Some(m.to));
        let model = load_shipped(name, &signature())
            .expect("shipped")
            .expect("valid");
        Some(Goals {
            name: name.clone(),
            model,
            mapping,
            goals: vec![never],
        })
    };
    test.expect.iter().filter_map(of).collect()
}

fn asked<'a>(test: &'a LitmusTest, goals: &'a [Goals]) -> Vec<TestGoals<'a>> {
    let of = |g: &'a Goals| TestGoals {
        test,
        model: &g.model,
        name: &g.name,
        mapping: g.mapping,
        goals: g.goals.clone(),
    };
    goals.iter().map(of).collect()
}

/// Whether a file keeps the goals of a test, by all engines.
fn keeps(text: &str, test: &LitmusTest, asked: &[TestGoals<'_>]) -> bool {
    let tests = parse("advised.toml", text.as_bytes()).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    let new = tests
        .into_iter()
        .find(|new| new.name == test.name)
        .expect("the same test");
    let met = |one: &TestGoals<'_>| {
        let judged = one
            .mapping
            .map_or_else(|| new.clone(), |m| m.lowered(&new).expect("mapped"));
        one.goals.iter().all(|goal| {
            let mut session = Session::new(&judged, one.model, Engine::Both, LIMITS, &[]);
            let answer = session.decide(goal);
            let answer = answer.expect("the model speaks of it");
            assert_eq!(answer.defect, None, "{text}");
            assert!(
                answer.verdict.reason().is_none(),
                "{text}\n{:?}",
                answer.verdict
            );
            matches!(
                answer.verdict,
                Verdict::Forbidden | Verdict::RaceFree | Verdict::Defined
            )
        })
    };
    asked.iter().all(met)
}

/// Asks for advice about a test, and holds it against the engines.
fn advised(test: &LitmusTest) -> Advice {
    let goals = goals(test);
    assert!(
        !goals.is_empty(),
        "{} expects nothing that could be lost",
        test.name
    );
    let mut asked = asked(test, &goals);
    let costs = Costs::shipped();
    let how = SearchSetup {
        engine: Engine::Auto,
        limits: LIMITS,
        set: &[],
        costs: &costs,
    };
    let advice = advise(asked.clone(), &how);
    let told = format!("{}: {advice:#?}", test.name);
    assert_eq!((&advice.given_up, advice.undecided), (&None, 0), "{told}");
    let found = advice.found.as_ref().unwrap_or_else(|| panic!("{told}"));
    for (number, goal) in &advice.kept {
        asked[*number].goals.push(goal.clone());
    }
    assert!(keeps(&found.text, test, &asked), "{told}");
    assert_eq!(
        keeps(&test.file.text, test, &asked),
        advice.held == Some(true),
        "{told}"
    );
    assert!(found.weaker.len() >= found.menu.len(), "{told}");
    for weaker in &found.weaker {
        assert_ne!(*weaker, found.text, "{told}");
        assert!(
            !keeps(weaker, test, &asked),
            "one step weaker does, too:\n{weaker}\n{told}"
        );
    }
    assert!(
        advice.held != Some(true) || found.cost <= advice.cost,
        "{told}"
    );
    assert_eq!(
        found.changes.is_empty(),
        found.text == test.file.text,
        "{told}"
    );
    advice
}

/// The tests of a shipped file.
fn shipped(path: &str) -> Vec<LitmusTest> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../litmus")
        .join(path);
    read_path(&path)
        .unwrap_or_else(|e| panic!("{}: {e:?}", path.display()))
        .into_iter()
        .collect()
}

fn one(path: &str, name: &str) -> LitmusTest {
    shipped(path)
        .into_iter()
        .find(|test| test.name == name)
        .expect(name)
}

#[test]
fn message_passing_needs_a_release_and_an_acquire() {
    let advice = advised(&one(
        "ptx/06-causality/MP+rel.gpu+acq.gpu.toml",
        "MP+rel.gpu+acq.gpu",
    ));
    let found = advice.found.expect("found");
    assert!(found.changes.is_empty());
    // Release and acquire, or fences that cost more.
    let more: Vec<bool> = found
        .menu
        .iter()
        .map(|(_, without)| matches!(without, Without::More(1.., _)))
        .collect();
    assert_eq!(more, [true, true]);
}

#[test]
fn store_buffering_needs_its_fences() {
    let advice = advised(&one(
        "ptx/02-fence-sc/SB+fence.sc.gpu+fence.sc.gpu.rlx.toml",
        "SB+fence.sc.gpu+fence.sc.gpu.rlx",
    ));
    let menu = advice.found.expect("found").menu;
    let fences: Vec<&Without> = menu
        .iter()
        .filter(|m| m.0.text.contains("fence.sc"))
        .map(|m| &m.1)
        .collect();
    assert_eq!(fences, [&Without::Needed, &Without::Needed]);
}

#[test]
fn independent_reads_of_independent_writes_need_two_fences() {
    advised(&one(
        "ptx/02-fence-sc/IRIW+fence.sc.gpu.toml",
        "IRIW+fence.sc.gpu",
    ));
}

#[test]
fn a_lock_of_two_is_weakened_as_far_as_it_goes() {
    let tests = parse("peterson.toml", PETERSON.as_bytes()).expect("a test");
    let advice = advised(&tests[0]);
    let found = advice.found.expect("found");
    assert!(found.cost < advice.cost && advice.held == Some(true));
    assert!(
        !found.text.contains("thread_scope_system"),
        "{}",
        found.text
    );
}

/// What is changed in a kernel as a compiler prints it is changed in the compiler's words.
#[test]
fn a_kernel_keeps_its_names_and_types() {
    let advice = advised(&one("compiled/lookback-split.toml", "lookback_split"));
    let text = advice.found.expect("found").text;
    assert!(text.contains("st.weak.b32 [%rd4],%r15;"), "{text}");
}

#[test]
fn idioms_are_advised_in_every_language() {
    // A spin lock, a seqlock, a ring of one producer and one consumer.
    for language in ["ptx", "cuda", "opencl"] {
        for idiom in ["A04", "A10", "A19"] {
            let tests = shipped(&format!("idioms/{language}/{idiom}.toml"));
            for test in tests.iter().filter(|test| !goals(test).is_empty()).take(2) {
                advised(test);
            }
        }
    }
}

/// The programs of the book that are stronger than they must be, and a kernel as its compiler
/// printed it; with `FENCEPOST_LONG`, three more kernels.
#[test]
fn what_is_too_strong_is_weakened_as_far_as_it_goes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus/over-synchronised");
    let files = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|file| file.expect("a file").file_name());
    let mut files: Vec<String> = files
        .map(|file| format!("over-synchronised/{}", file.display()))
        .collect();
    assert_eq!(files.len(), 7);
    let kernels = ["lookback-split", "seqlock", "ring-buffer", "latch"].into_iter();
    files.extend(
        kernels
            .take(if is_long() { 4 } else { 1 })
            .map(|kernel| format!("compiled/{kernel}.toml")),
    );
    for file in files {
        for test in shipped(&file).iter().filter(|test| !goals(test).is_empty()) {
            let advice = advised(test);
            let weaker = advice.found.is_some_and(|found| found.cost < advice.cost);
            assert!(
                advice.held == Some(true) && (weaker || file.ends_with("latch.toml")),
                "{file}"
            );
        }
    }
    assert!(RECALLED.get() > 100, "{}", RECALLED.get());
}

/// All idioms that expect something that could be lost, and the same of each combination of a
/// template.
#[test]
fn every_idiom_is_weakened_as_far_as_it_goes() {
    if !is_long() {
        return;
    }
    let mut advised_of = 0;
    for language in ["ptx", "cuda", "opencl"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../litmus/idioms")
            .join(language);
        for file in std::fs::read_dir(folder)
            .expect("a folder")
            .map(|file| file.expect("a file").file_name())
        {
            let tests = shipped(&format!("idioms/{language}/{}", file.display()));
            for test in tests.iter().filter(|test| !goals(test).is_empty()) {
                advised(test);
                advised_of += 1;
            }
        }
    }
    assert!(advised_of > 300, "{advised_of}");
}

#[test]
fn a_wrong_program_is_repaired() {
    let text = one(
        "ptx/06-causality/MP+rel.cta+acq.gpu.toml",
        "MP+rel.cta+acq.gpu",
    )
    .file
    .text
    .clone();
    let text = text
        .replace("\"allowed\"", "\"forbidden\"")
        .replace("st.release.cta", "st.relaxed.cta");
    let tests = parse("mp.toml", text.as_bytes()).expect("a test");
    let advice = advised(&tests[0]);
    assert_eq!(advice.held, Some(false));
    assert!(
        advice
            .found
            .expect("found")
            .text
            .contains("st.release.gpu f, 1")
    );
}

#[test]
fn what_no_order_forbids_is_beyond_repair() {
    let text = one(
        "ptx/06-causality/MP+rel.gpu+acq.gpu.toml",
        "MP+rel.gpu+acq.gpu",
    )
    .file
    .text
    .clone();
    let text = text.replace("P1:r0 == 1 /\\ P1:r1 == 0", "P1:r0 == 1 /\\ P1:r1 == 1");
    let test = &parse("mp.toml", text.as_bytes()).expect("a test")[0];
    let goals = goals(test);
    let costs = Costs::shipped();
    let how = SearchSetup {
        engine: Engine::Auto,
        limits: LIMITS,
        set: &[],
        costs: &costs,
    };
    let advice = advise(asked(test, &goals), &how);
    assert_eq!(
        (advice.held, advice.found.is_none(), advice.given_up),
        (Some(false), true, None)
    );
}

#[test]
fn of_all_settings_none_is_cheaper() {
    let programs = [
        (
            "st.weak x, 1; st.release.cta f, 1",
            "ld.acquire.cta r0, f; ld.weak r1, x",
            "P1:r0 == 1 /\\ P1:r1 == 0",
        ),
        (
            "st.relaxed.cta x, 1; fence.sc.cta; ld.relaxed.cta r0, f",
            "st.relaxed.cta f, 1; fence.sc.cta; ld.relaxed.cta r1, x",
            "P0:r0 == 0 /\\ P1:r1 == 0",
        ),
    ];
    for (p0, p1, condition) in programs {
        let thread = |code: &str| format!("[[thread]]\ncta = 0\ncode = \"{code}\"\n");
        let text = format!(
            "name = \"T\"\ncondition = '{condition}'\n[memory]\nx = 0\nf = 0\n{}{}[expect]\nptx = {{ reachability = \"forbidden\" }}\n",
            thread(p0),
            thread(p1)
        );
        let test = &parse("t.toml", text.as_bytes()).expect("a test")[0];
        let found = advised(test).found.expect("found");
        let goals = goals(test);
        let (choices, written) = choices(&[test], &Costs::shipped());
        let costs_now: u64 = choices
            .iter()
            .map(|choice| choice.costs[choice.knob.written()])
            .sum();
        let mut asked = asked(test, &goals);
        let costs = Costs::shipped();
        let how = SearchSetup {
            engine: Engine::Enumerate,
            limits: LIMITS,
            set: &[],
            costs: &costs,
        };
        for (number, goal) in advise(asked.clone(), &how).kept {
            asked[number].goals.push(goal);
        }
        // Every setting there is, in the order of counting.
        let mut cheapest = u64::MAX;
        let mut setting = vec![0; choices.len()];
        let mut counted = 0;
        loop {
            let cost: u64 = choices
                .iter()
                .zip(&setting)
                .map(|(choice, option)| choice.costs[*option])
                .sum();
            let splices = choices
                .iter()
                .zip(&setting)
                .flat_map(|(choice, option)| choice.knob.splices(*option).to_vec());
            counted += 1;
            if cost < cheapest {
                let changes = Changes {
                    edits: Vec::new(),
                    splices: splices.collect(),
                };
                let version = changes.of(test).expect("written");
                let all = asked.iter().all(|one| {
                    how.keeps(&version.test, one, None, &mut VecDeque::new()) == Ok(true)
                });
                cheapest = if all { cost } else { cheapest };
            }
            let Some(next) = (0..setting.len()).find(|&k| setting[k] + 1 < choices[k].costs.len())
            else {
                break;
            };
            setting[..next].fill(0);
            setting[next] += 1;
        }
        assert!(counted > 700, "{counted}");
        assert_eq!(found.cost, written + cheapest - costs_now, "{text}");
    }
}

/// A program of one block in CUDA C++ that is expected to be race-free.
fn block(code: &str) -> String {
    let memory = "out = { init = 0, size = 2 }\ns = { kind = \"shared\", init = [0, 0] }";
    let code = format!("code = \"\"\"\n{code}\"\"\"");
    let expect = "[expect]\ncuda = { race = \"race-free\" }";
    format!(
        "name = \"T\"\ndialect = \"cuda\"\n[memory]\n{memory}\n[kernel]\nblock = 2\n{code}\n{expect}\n"
    )
}

/// A program of a host that launches `w` and `r`, which race for `x`.
fn hosted(dialect: &str, (lanes, x): (&str, &str), kernels: [&str; 2], host: &str) -> String {
    let kernel = |name: &str, code: &str| {
        format!("[[kernel]]\nname = \"{name}\"\ncode = '''\n{code}\n'''\n")
    };
    let kernels = kernel("w", kernels[0]) + &kernel("r", kernels[1]);
    let host = format!("[[host]]\ncode = '''\n{host}\n'''");
    let expect = format!("[expect]\n{dialect} = {{ race = \"race-free\" }}");
    format!(
        "name = \"T\"\ndialect = \"{dialect}\"\n{lanes}\n[memory]\nx = {x}\n{kernels}{host}\n{expect}\n"
    )
}

/// A program of threads in these blocks, which race.
fn threads(dialect: &str, memory: &str, threads: &[(u32, &str)]) -> String {
    let key = if dialect == "ptx" { "cta" } else { "block" };
    let thread =
        |(at, code): &(u32, &str)| format!("[[thread]]\n{key} = {at}\ncode = '''\n{code}\n'''\n");
    let threads: String = threads.iter().map(thread).collect();
    let expect = format!("[expect]\n{dialect} = {{ race = \"race-free\" }}");
    format!("name = \"T\"\ndialect = \"{dialect}\"\n[memory]\n{memory}\n{threads}{expect}\n")
}

/// What mends the race of a program: the file, and what is said of it, by advice and of the race
/// alike. What is advised is decided by all engines.
fn mends(text: &str) -> (String, Vec<String>) {
    let test = &parse("t.toml", text.as_bytes()).unwrap_or_else(|e| panic!("{text}\n{e:?}"))[0];
    let (name, _) = test.expect.iter().next().expect("it expects something");
    let model = load_shipped(name, &signature())
        .expect("shipped")
        .expect("valid");
    let asked = TestGoals {
        test,
        model: &model,
        name,
        mapping: None,
        goals: vec![Ask::Race],
    };
    let costs = Costs::shipped();
    let how = SearchSetup {
        engine: Engine::Auto,
        limits: LIMITS,
        set: &[],
        costs: &costs,
    };
    let advice = advise(vec![asked], &how);
    assert_eq!(
        (advice.held, &advice.given_up),
        (Some(false), &None),
        "{text}"
    );
    let found = advice
        .found
        .unwrap_or_else(|| panic!("nothing helps\n{text}"));
    let read = parse("t.toml", found.text.as_bytes());
    let new = &read.unwrap_or_else(|e| panic!("{}\n{e:?}", found.text))[0];
    let mut session = Session::new(new, &model, Engine::Both, LIMITS, &[]);
    assert_eq!(
        session.race().map(|answer| answer.verdict),
        Some(Verdict::RaceFree),
        "{}",
        found.text
    );
    assert!(
        session
            .undefined()
            .is_none_or(|answer| answer.verdict == Verdict::Defined),
        "{}",
        found.text
    );
    let mut session = Session::new(test, &model, Engine::Auto, LIMITS, &[]);
    let fault = session
        .race()
        .and_then(|answer| answer.fault)
        .expect("it races");
    let Some(Remedy::Changes(changes)) = session.remedy(&fault) else {
        panic!("no remedy\n{text}")
    };
    let said: Vec<String> = changes.into_iter().map(|change| change.text).collect();
    let advised: Vec<String> = found.changes.into_iter().map(|part| part.text).collect();
    assert_eq!(said, advised, "{text}");
    (found.text, said)
}

#[test]
fn a_barrier_is_put_where_it_is_missing() {
    let sum = "if (threadIdx.x == 0) { out[r] = s[0] + s[1]; }";
    // At the end of a round.
    let head = "for (int r = 0; r < 2; r++) {\ns[threadIdx.x] = r;\n";
    let (text, said) = mends(&block(&format!("{head}__syncthreads();\n{sum}\n}}\n")));
    assert!(
        text.contains(&format!("{sum} __syncthreads();\n}}")) && said.len() == 1,
        "{text}"
    );
    // Both are missing.
    assert_eq!(mends(&block(&format!("{head}{sum}\n}}\n"))).1.len(), 2);
    // Not on a branch, where threads would part.
    let (text, _) = mends(&block(
        "if (threadIdx.x == 0) { s[0] = 1; }\nif (threadIdx.x == 1) { out[0] = s[0]; }\n",
    ));
    assert!(text.contains("s[0] = 1; } __syncthreads();"), "{text}");
    // A flag that ends a loop in which threads meet: read by an atomic operation, it would have
    // them part.
    let ends = "if (threadIdx.x == 0) { s[0] = 0; }\n__syncthreads();\nint it = 0;\nwhile (it < 2 && s[0] == 0) {\n\
                __syncthreads();\nif (threadIdx.x == 0) { s[0] = 1; }\nit++;\n}\n__syncthreads();\n\
                out[threadIdx.x] = it;\n";
    let (text, said) = mends(&block(ends));
    assert!(!text.contains("atomic") && said.len() == 1, "{text}");
}

#[test]
fn threads_with_code_of_their_own_meet() {
    let shared = "s = { space = \"shared\", type = \"u32\" }";
    let (text, said) = mends(&threads(
        "ptx",
        shared,
        &[(0, "st.shared.u32 [s], 1"), (0, "ld.shared.u32 %r, [s]")],
    ));
    assert!(
        text.contains("st.shared.u32 [s], 1; bar.sync 0\n") && said.len() == 2,
        "{text}"
    );
    // In two blocks, only atomic accesses take the race away, and it is said that they order
    // nothing.
    let (text, said) = mends(&threads(
        "ptx",
        "s = 0",
        &[(0, "st.weak s, 1"), (1, "ld.weak r, s")],
    ));
    let is_marked = |text: &String| text.ends_with("(values stay unordered)");
    assert!(
        text.contains(".relaxed.") && said.iter().all(is_marked),
        "{said:?}"
    );
}

#[test]
fn the_host_orders_what_it_launches() {
    let streams = "streams = { a = \"non-blocking\", b = \"non-blocking\" }";
    let cuda = ["x = 1;", "int v = x;"];
    let two = "w<<<1, 1, 0, a>>>();\nr<<<1, 1, 0, b>>>();";
    let event = "cudaEventRecord(ordered, a); cudaStreamWaitEvent(b, ordered);";
    let (text, _) = mends(&hosted("cuda", (streams, "0"), cuda, two));
    assert!(text.contains(event), "{text}");
    let reads = "w<<<1, 1, 0, a>>>();\nint v = x;\nr<<<1, 1, 0, a>>>();";
    let (text, _) = mends(&hosted("cuda", (streams, "0"), cuda, reads));
    assert!(
        text.contains("w<<<1, 1, 0, a>>>(); cudaStreamSynchronize(a);"),
        "{text}"
    );
    let ptx = ["st.global.u32 [x], 1;", "ld.global.u32 %r, [x];"];
    let (text, _) = mends(&hosted("ptx", (streams, "0"), ptx, two));
    assert!(text.contains(event), "{text}");
    let queues = "queues = { p = \"in-order\", q = \"in-order\" }";
    let two = "clEnqueueNDRangeKernel(p, w, NULL, 1, 1);\nclFlush(p);\n\
               clEnqueueNDRangeKernel(q, r, NULL, 1, 1);\nclFinish(q);";
    let opencl = ["*x = 1;", "int v = *x;"];
    let (text, _) = mends(&hosted(
        "opencl",
        (queues, "{ type = \"int\" }"),
        opencl,
        two,
    ));
    assert!(
        text.contains("w, NULL, 1, 1, NULL, &ordered)")
            && text.contains("r, NULL, 1, 1, {ordered})"),
        "{text}"
    );
}

#[test]
fn copies_and_earlier_kernels_are_waited_for() {
    let memory = "s = { space = \"shared\", type = \"u32\" }\ng = { type = \"u32\" }";
    let copy =
        "cp.async.ca.shared.global [s], [g], 4;\ncp.async.commit_group;\nld.shared.u32 %r, [s];";
    let (text, _) = mends(&threads("ptx", memory, &[(0, copy)]));
    assert!(text.contains("cp.async.wait_all"), "{text}");
    let kernels = [
        "griddepcontrol.launch_dependents;\nst.global.u32 [x], 1;",
        "ld.global.u32 %r, [x];\ngriddepcontrol.wait;\nst.global.u32 [x], %r;",
    ];
    let late = hosted(
        "ptx",
        ("streams = { n = \"non-blocking\" }", "0"),
        kernels,
        "w<<<1, 1, 0, n>>>();\nr<<<1, 1, 0, n>>>();",
    );
    let (text, _) = mends(&late.replace("name = \"r\"", "name = \"r\"\nprogrammatic = true"));
    assert!(
        text.contains("griddepcontrol.wait; ld.global.u32 %r, [x];"),
        "{text}"
    );
}

/// The release is missing: the acquire stays, whatever it costs.
#[test]
fn nothing_is_made_weaker_where_something_is_missing() {
    let f = "cuda::atomic_ref<int, cuda::thread_scope_device>(f)";
    let reads = format!("if ({f}.load(cuda::memory_order_acquire) == 1) {{ int v = x; }}");
    let writes = format!("x = 1;\n{f}.store(1, cuda::memory_order_relaxed);");
    let (text, said) = mends(&threads(
        "cuda",
        "x = 0\nf = 0",
        &[(0, &writes), (1, &reads)],
    ));
    assert!(
        text.contains("memory_order_release") && text.contains(&reads) && said.len() == 1,
        "{text}"
    );
}
