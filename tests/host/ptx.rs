//! Host programs with kernels in PTX.
//!
//! - Random programs have kernels in CUDA C++ and in PTX. The model `ptx` gives the same outcomes,
//!   race and end for the program in PTX and for the other one after mapping. Both use the mapping,
//!   but only one reads PTX.
//! - For these and for random programs with proxies and aliases, the executor shows exactly the
//!   outcomes that `ptx` allows without reads ahead of writes. The executor implements the handover
//!   at ends and starts of kernels; the model uses the launch graph.
//!
//! `FENCEPOST_SEED` sets the first seed of random programs, `testkit::suite` their number.

use std::collections::BTreeSet;
use std::time::Duration;

use fencepost::check::liveness::{Liveness, LivenessTask, ProgressModel};
use fencepost::check::{Engine, Limits, Session, operational};
use fencepost::diag::SourceFile;
use fencepost::litmus::{LitmusTest, parse};
use fencepost::model::{Library, Model, Shipped, load};
use fencepost::program::Dialect;
use fencepost::program::mapping::Mapping;
use fencepost::simt::schedule::StopKind;
use fencepost::simt::{
    Early, LaunchOptions, MachineMemory, MemoryRules, RunOptions, Schedule, observe,
};
use fencepost::skeleton::signature::signature;
use fencepost::verdict::{State, Verdict};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use testkit::in_ptx::program;
use testkit::suite::{number, programs, shipped};

fn limits() -> Limits {
    Limits {
        bound: Some(4),
        timeout: Some(Duration::from_secs(1)),
    }
}

fn ptx() -> Model {
    shipped("ptx")
}

/// The model, restricted to a machine that takes every step in order.
fn in_order() -> Model {
    let text = &Library::model("ptx").expect("shipped").text;
    let text = format!(
        "{text}\nacyclic po | rf | sc | syncbar | exitbar | launch | call-order as In-Order\n"
    );
    load(
        SourceFile::new("in-order.cat", text),
        "in-order",
        &Shipped,
        &signature(),
        None,
    )
    .expect("valid")
}

/// The outcomes that a model allows; `None` if it did not finish.
fn allowed(test: &LitmusTest, model: &Model) -> Option<BTreeSet<State>> {
    let outcomes = Session::new(test, model, Engine::Auto, limits(), &[]).outcomes();
    assert_eq!(outcomes.defect, None, "{}", test.file.text);
    outcomes.allowed_states()
}

fn race(test: &LitmusTest, model: &Model) -> Verdict {
    Session::new(test, model, Engine::Auto, limits(), &[])
        .race()
        .expect("it speaks of races")
        .verdict
}

fn end(test: &LitmusTest, model: &Model) -> Verdict {
    let setting = LivenessTask::new(test, model);
    Liveness::new(&setting, Engine::Auto, limits(), &[])
        .ask(ProgressModel::Fair)
        .verdict
}

/// The outcomes that runs show, if these are all.
fn shown(test: &LitmusTest, rules: MemoryRules) -> Option<BTreeSet<State>> {
    let options = RunOptions {
        memory: MachineMemory::Weak,
        early: Early::None,
        rules,
        states: 50_000,
        ..RunOptions::default()
    };
    let seen = observe(test, &options, Schedule::Exhaustive)
        .unwrap_or_else(|e| panic!("{e}\n{}", test.file.text));
    seen.complete.then(|| {
        operational::name(test, &seen)
            .into_iter()
            .map(|n| n.0)
            .collect()
    })
}

#[test]
fn kernels_in_ptx_are_what_those_in_cuda_are_mapped_to() {
    let (count, first) = (programs(60), number("FENCEPOST_SEED", 1));
    let (model, mapping) = (
        ptx(),
        Mapping::current(Dialect::Cuda).expect("there is one"),
    );
    let (mut compared, mut outcomes, mut racy) = (0, 0, 0);
    for seed in first..first + count {
        let pair = program(&mut Pcg64Mcg::seed_from_u64(seed), false);
        let (own, mapped) = (
            pair.in_ptx(),
            mapping.lowered(&pair.in_cuda()).expect("all of it maps"),
        );
        let (Some(a), Some(b)) = (allowed(&own, &model), allowed(&mapped, &model)) else {
            continue;
        };
        assert_eq!(a, b, "seed {seed}\n{}", own.file.text);
        assert_eq!(
            race(&own, &model),
            race(&mapped, &model),
            "seed {seed}\n{}",
            own.file.text
        );
        assert_eq!(
            end(&own, &model),
            end(&mapped, &model),
            "seed {seed}\n{}",
            own.file.text
        );
        compared += 1;
        outcomes += a.len();
        racy += u64::from(race(&own, &model) == Verdict::Racy);
    }
    println!("{compared} of {count} programs compared: {outcomes} outcomes, {racy} racy");
    assert!(count < 60 || compared * 10 > count * 8 && racy > 0 && racy < compared);
}

fn runs(proxies: bool) {
    let (count, first) = (programs(60), number("FENCEPOST_SEED", 1));
    let (model, in_order) = (ptx(), in_order());
    let (mut equal, mut outcomes, mut weak) = (0, 0, 0);
    for seed in first..first + count {
        let test = program(&mut Pcg64Mcg::seed_from_u64(seed), proxies).in_ptx();
        let (Some(seen), Some(all)) = (shown(&test, MemoryRules::ALL), allowed(&test, &in_order))
        else {
            continue;
        };
        assert_eq!(seen, all, "seed {seed}\n{}", test.file.text);
        let Some(most) = allowed(&test, &model) else {
            continue;
        };
        assert!(seen.is_subset(&most), "seed {seed}\n{}", test.file.text);
        equal += 1;
        outcomes += seen.len();
        let rules = MemoryRules {
            kernels: false,
            ..MemoryRules::ALL
        };
        weak += u64::from(shown(&test, rules).is_some_and(|without| !without.is_subset(&most)));
    }
    println!(
        "{equal} of {count} programs compared: {outcomes} outcomes; {weak} need that kernels cross proxies"
    );
    assert!(count < 60 || equal * 10 > count * 8);
    assert!(
        weak == 0 || proxies,
        "kernels cross proxies where there are some"
    );
    assert!(
        count < 60 || weak > 0 || !proxies,
        "kernels cross proxies where there are some"
    );
}

#[test]
fn runs_show_what_the_model_allows() {
    runs(false);
}

#[test]
fn runs_cross_proxies_where_the_model_does() {
    runs(true);
}

/// A program with the given code of a kernel and of the host.
fn text(dialect: &str, kernel: &str, host: &str) -> String {
    let memory = match dialect {
        "ptx" => {
            "{ x = 0, v = { space = \"shared\" }, t = { alias = \"x\", proxy = \"texture\" } }"
        }
        _ => "{ x = 0 }",
    };
    format!(
        "name = \"T\"\ndialect = \"{dialect}\"\ncondition = 'x == 0'\nmemory = {memory}\nstreams = {{ s = \"blocking\" }}\n\
         [[kernel]]\nname = \"K\"\nregs = {{}}\ncode = '''\n{kernel}\n'''\n[[host]]\ncode = '''\n{host}\n'''\n"
    )
}

/// The first message about a program: its name, the line, the text, the help.
fn first(text: &str) -> String {
    let Err(all) = parse("t.toml", text.as_bytes()) else {
        return "nothing is wrong".into();
    };
    let d = &all[0];
    let line = d
        .source
        .as_ref()
        .map_or(0, |source| source.line_column(d.span.start as usize).0);
    format!(
        "{} {line}: {} [{}] {}",
        d.id,
        d.message,
        d.label,
        d.help.as_deref().unwrap_or("-")
    )
}

#[test]
fn what_cannot_stand_there_is_told_with_its_line() {
    const KERNEL: &str = "st.global.u32 [x], 1;";
    const HOST: &str = "K<<<1, 1, 0, s>>>();";
    let c =
        "kernels are in PTX here; with `dialect = \"cuda\"`, they are in CUDA C++, as the host is";
    let calls = "kernels are in PTX here, and only `[[host]]` threads call the runtime";
    let own = "the host of a test in PTX is in CUDA C++: only kernels are in PTX";
    let theirs =
        "this looks like PTX: with `dialect = \"ptx\"`, kernels are in PTX, the host in CUDA C++";
    let operand = |line: u32, found: &str, help: &str| {
        format!("syntax {line}: expected an operand, found `{found}` [expected an operand] {help}")
    };
    let ptx = |kernel: &str, host: &str| first(&text("ptx", kernel, host));
    let after = |what: &str| first(&text("ptx", KERNEL, &format!("{HOST}\n{what}")));
    let changed = |from: &str, to: &str| first(&text("ptx", KERNEL, HOST).replace(from, to));
    let proxy = "wrong-proxy 15: `t` is the memory of `x` through another proxy \
                 [the host and copies have the generic proxy alone] name the memory itself: `x`";
    let through = text(
        "ptx",
        "st.global.u32 [%rd1], 1;",
        &format!("{HOST}\nx = 1;"),
    )
    .replace("regs = {}", "regs = { rd1 = \"&x\" }");
    let cases = [
        (
            ptx(KERNEL, "J<<<1, 1>>>();"),
            "unknown-name 14: there is no kernel `J` [expected a kernel of this test] -".to_string(),
        ),
        (ptx("x = 1;", HOST), operand(10, "=", c)),
        (first(&text("ptx", "x = 1;", HOST).replace("dialect = \"ptx\"", "")), operand(10, "=", c)),
        (ptx(&format!("{KERNEL}\ncudaStreamSynchronize(s);"), HOST), operand(11, "(", calls)),
        (ptx("K<<<1, 1>>>();", HOST), operand(10, "<", calls)),
        (
            first(&text("cuda", KERNEL, HOST)),
            format!("c-syntax 10: this does nothing [expected an assignment or a call] {theirs}"),
        ),
        (ptx(KERNEL, "ld.weak r0, x"), format!("c-syntax 14: `r0` is not allowed here [expected \
            `;`] {own}")),
        (
            ptx(KERNEL, "clFinish(s);"),
            "unknown-function 14: there is no call `clFinish` here [expected a call of the CUDA runtime] -"
                .to_string(),
        ),
        (
            changed("streams = { s = \"blocking\" }", "queues = { q = \"in-order\" }"),
            "conflicting-keys 5: `queues` does not go with `host` here [expected no such key] \
             CUDA has streams: declare `[streams]`"
                .to_string(),
        ),
        (
            changed("regs = {}", "initializer = true"),
            "conflicting-keys 7: only OpenCL has kernels of initialisers [expected no `initializer`] -"
                .to_string(),
        ),
        (after("int r = t;"), proxy.to_string()),
        (after("cudaMemcpyAsync(&x, &t, 4, cudaMemcpyDefault, s);"), proxy.to_string()),
        (
            after("v = 1;"),
            "wrong-space 15: `v` is shared memory, of which each CTA has its own \
             [neither the host nor a copy reaches it] let the kernel copy the values that the \
             host needs to global memory"
                .to_string(),
        ),
        (
            first(&through),
            "missing-type 15: `x` needs a type [only accesses through registers show the type] \
             declare it, for example `x = { type = \"u32\" }`"
                .to_string(),
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
    assert_eq!(ptx(KERNEL, HOST), "nothing is wrong");
}

#[test]
fn a_cooperative_launch_fails_where_there_is_no_room() {
    let run = |key: &str, room| {
        let text =
            text("ptx", "st.global.u32 [x], 1;", "K<<<2, 1, 0, s>>>();").replace("regs = {}", key);
        let test = parse("t.toml", text.as_bytes())
            .unwrap_or_else(|e| panic!("{}", e[0]))
            .remove(0);
        let launch = LaunchOptions {
            resident: room,
            ..LaunchOptions::default()
        };
        let options = RunOptions {
            memory: MachineMemory::Weak,
            launch,
            ..RunOptions::default()
        };
        observe(&test, &options, Schedule::Exhaustive)
            .expect("it runs")
            .ended
            .by(StopKind::Launch)
            > 0
    };
    assert!(run("cooperative = true", Some(1)));
    assert!(!run("cooperative = true", Some(2)) && !run("cooperative = false", Some(1)));
}
