//! The test formats from outside: the meaning of good files, and the messages for bad files.
//!
//! Messages are snapshots: they are part of the interface, and reviewers must read changes to them.

use fencepost::diag::{TextStyle, render};
use fencepost::litmus::{
    LitmusTest, Prop, Quantifier, Reachability, bless, parse, schema, to_toml,
};
use fencepost::program::{BarrierNaming, Init, LocationKind, Op, Program};

/// The messages for a file, as a user sees them.
fn messages(name: &str, bytes: &[u8]) -> String {
    match parse(name, bytes) {
        Ok(tests) => format!("no errors, {} tests", tests.len()),
        Err(diagnostics) => diagnostics
            .iter()
            .map(|d| render(d, TextStyle::Plain))
            .collect(),
    }
}

#[track_caller]
fn all(name: &str, text: &str) -> Vec<LitmusTest> {
    parse(name, text.as_bytes()).unwrap_or_else(|_| panic!("{}", messages(name, text.as_bytes())))
}

#[track_caller]
fn one(name: &str, text: &str) -> LitmusTest {
    let mut tests = all(name, text);
    assert_eq!(tests.len(), 1);
    tests.remove(0)
}

/// The content of a program, without its places in the file.
fn essence(test: &LitmusTest) -> String {
    let mut program: Program = test.program.clone();
    for instr in program.threads.iter_mut().flat_map(|t| &mut t.code) {
        instr.span = Default::default();
        instr.line = 0.into();
        instr.text.clear();
        instr.assembly = None;
    }
    format!(
        "{program:#?}\n{:?}\n{:?}\n{:?}",
        test.condition, test.quantifier, test.filter
    )
}

const MP: &str = r#"
name = "MP+rel+acq.gpu"
doc = "Message passing."
source = "PTX ISA 9.4, Release and Acquire Patterns"
tags = ["mp"]
condition = 'P1:r0 == 1 /\ P1:r1 == 0'
observe = ["x"]

[options]
dep = "syntactic"

[memory]
x = 0
flag = { init = 0, type = "u32" }

[[thread]]
cta = 0
code = """
st.weak x, 1
st.release.gpu.global.u32 [flag], 1;
"""

[[thread]]
work_group = 1
code = """
$L: ld.acquire.gpu.global.u32 %r0, [flag];
    setp.ne.u32 %p1, %r0, 1;
    @%p1 bra.uni $L;
    ld.weak r1, x
"""

[expect]
ptx = { reachability = "forbidden", axiom = "Causality" }
sc = { race = "race-free", liveness = { fair = "terminates" } }
"#;

#[test]
fn a_whole_test() {
    let test = one("mp.toml", MP);
    assert_eq!(
        (test.name.as_str(), test.quantifier),
        ("MP+rel+acq.gpu", Quantifier::Exists)
    );
    assert_eq!(test.tags, ["mp"]);
    assert_eq!(test.options[0].words(), ("dep", "syntactic"));
    assert_eq!(test.observe.len(), 1);
    assert!(matches!(&test.condition, Some(Prop::And(parts)) if parts.len() == 2));
    assert!(!test.program.threads[0].place.same(
        &test.program.threads[1].place,
        fencepost::program::Scope::Cta
    ));
    let ptx = &test.expect["ptx"];
    assert_eq!(ptx.reachability, Some(Reachability::Forbidden));
    assert_eq!(ptx.axiom.as_deref(), Some("Causality"));
    assert!(!test.expect["sc"].liveness["fair"]);
    let load = &test.program.threads[1].code[0];
    assert_eq!(
        &MP[load.span.range()],
        "ld.acquire.gpu.global.u32 %r0, [flag]"
    );
    assert_eq!(
        MP.lines().nth(load.line.number as usize - 1).map(str::trim),
        Some("$L: ld.acquire.gpu.global.u32 %r0, [flag];")
    );
}

#[test]
fn a_written_test_reads_back_the_same() {
    for (name, text) in [
        ("mp.toml", MP.to_string()),
        ("a.litmus", LITMUS.to_string()),
        ("b.litmus", "PTX b\n{ x=0; P0:r0=2; P1:r5=-3; }\nP0@cta 0,gpu 1 | P1@cta 1,gpu 0;\nst.weak x, r0 | red.acq_rel.cta.add x, 1;\nfilter x = 2 \\/ not (P1:r5 = 1)".to_string()),
        ("c.litmus", "PTX c\n{}\nP0@cta 0,gpu 0;\nLC00:;\natom.relaxed.gpu.cas r2, y, 0, 1;\nbeq r2, r3, LC00;\nadd r1, r2, 1;\ngoto LC00;\nforall (y == 1 \\/ 0:r1 == P0:r2)".to_string()),
    ] {
        let test = one(name, &text);
        let written = to_toml(&test).expect("PTX can say it");
        let again = one("again.toml", &written);
        assert_eq!(essence(&test), essence(&again), "{written}");
        assert_eq!(test.name, again.name);
        assert_eq!(test.expect.len(), again.expect.len());
    }
}

/// Types that are more than a number of bits, and structures that the code defines.
#[test]
fn memory_of_the_c_family_is_written_as_it_was_declared() {
    let text = r#"
        name = "types"
        dialect = "cuda"
        condition = "b == 1 /\\ n[1].at[0] == 0"
        [memory]
        b = { init = 5, type = "bool" }
        c = { type = "uchar" }
        s = { init = [1, -1], type = "short" }
        f = { init = 1, type = "cuda::atomic<bool, cuda::thread_scope_device>" }
        d = { type = "cuda::atomic<short>" }
        n = { init = [1, 2, 3, "&n[1].at[1]", 5, 6, 7, "&n[1]"], type = "Node" }
        [[thread]]
        regs = { r = "&n[1].at" }
        code = "struct Node { int data; long at[2]; Node *next; }; b = 2; Node *p = n + 1; p->data = 1;"
    "#;
    let test = one("types.toml", text);
    let written = to_toml(&test).expect("it can be said");
    let again = one("again.toml", &written);
    let memory = |test: &LitmusTest| {
        format!(
            "{:?} {:?}",
            test.program.locations, test.program.threads[0].regs
        )
    };
    assert_eq!(memory(&test), memory(&again), "{written}");
    assert_eq!(test.condition, again.condition);
    assert!(
        written.contains("type = \"bool\"") && written.contains("n[1].at[0] == 0"),
        "{written}"
    );
}

/// Structures of PTX with their content, and bytes by the type of their accesses.
#[test]
fn memory_of_several_sizes_is_written_with_its_fields() {
    let text = r#"
        name = "fields"
        condition = "P0:m[1].a[1] == 7 /\\ P0:d.at4[0] == 0"
        [memory]
        m = { init = [1, 2, 2, 5], fields = { a = "s32[2]", bar = "mbarrier", tag = "u8" }, size = 2, space = "shared" }
        d = { bytes = 8, space = "shared" }
        p = "&m[1].tag"
        [[thread]]
        regs = { r = "&m.a[1]" }
        code = """
        st.shared.u32 [m+28], 7
        st.shared.u32 [d], 1
        st.shared.u16 [d+4], 1
        """
    "#;
    let test = one("fields.toml", text);
    let written = to_toml(&test).expect("it can be said");
    let again = one("again.toml", &written);
    let memory = |test: &LitmusTest| {
        format!(
            "{:?} {:?}",
            test.program.locations, test.program.threads[0].regs
        )
    };
    assert_eq!(memory(&test), memory(&again), "{written}");
    assert_eq!(test.condition, again.condition);
    assert!(
        written.contains("m[1].a[1] == 7") && written.contains("bar = \"mbarrier\""),
        "{written}"
    );
}

const LITMUS: &str = r#"PTX quorum
"a note; exists // {"
"https://example.org/origin"
{ (* memory *) x = 0; y @ generic aliases x;
  s @ surface aliases y
}
P0@cta 0,gpu 0        | P1@cta 0 , gpu 0 ;
sust.weak s, 1        | bar.cta.sync 2, r9, 2 (* runs | on *) ;
bar.cta.sync 2, 1, 2  | ld.weak r0, y ;
~ exists ([x] = 1 /\ ~(1:r0 = 1))
"#;

#[test]
fn litmus_files_mean_what_the_suites_say() {
    let test = one("q.litmus", LITMUS);
    assert_eq!(
        (test.name.as_str(), test.quantifier),
        ("quorum", Quantifier::NotExists)
    );
    assert_eq!(
        (test.doc.as_str(), test.source.as_str()),
        ("a note; exists // {", "https://example.org/origin")
    );
    assert!(matches!(
        test.program.locations[2].kind,
        LocationKind::Alias { .. }
    ));
    let Op::Barrier(barrier) = &test.program.threads[1].code[0].op else {
        panic!("a barrier")
    };
    assert!(matches!(
        barrier.naming,
        BarrierNaming::Instance {
            instance: 2,
            id: Some(_),
            quorum: Some(_)
        }
    ));
    assert_eq!(
        test.program.threads[1].regs[0].init,
        Init::Int(0),
        "registers that are not listed start at 0"
    );
    let (line, _) = test
        .file
        .line_column(test.program.threads[1].code[0].span.start as usize);
    assert_eq!((line, test.program.threads[1].code[0].line.number), (8, 8));
}

const TEMPLATE: &str = r#"
name = "MP+${w}+${r}"
condition = 'P1:r0 == 1 /\ P1:r1 == 0'
memory = { x = 0, f = 0 }

[[axis]]
name = "w"
value = [
  { name = "rlx", flag = "st.relaxed.gpu f, 1" },
  { name = "fence", before = "fence.acq_rel.gpu", flag = "st.relaxed.gpu f, 1" },
]

[[axis]]
name = "r"
value = [{ name = "rlx", poll = "relaxed" }, { name = "acq", poll = "acquire" }]

[[thread]]
code = """
st.weak x, 1
${before}
${flag}
"""

[[thread]]
cta = 1
code = """
ld.${poll}.gpu r0, f
ld.weak r1, x
"""

[[matrix]]
model = "ptx"
rows = "w"
columns = "r"
axiom = "Causality"
table = '''
       rlx  acq
rlx    A    A
fence  A    F
'''

[[matrix]]
model = "ptx"
property = "race"
rows = "w"
letters = { R = "racy" }
table = '''
rlx R
fence -
'''
"#;

#[test]
fn a_template_is_the_product_of_its_axes() {
    let tests = all("t.toml", TEMPLATE);
    let expected = |t: &LitmusTest| {
        (
            t.name.clone(),
            t.expect["ptx"].reachability,
            t.expect["ptx"].race,
        )
    };
    use Reachability::{Allowed, Forbidden};
    assert_eq!(
        tests.iter().map(expected).collect::<Vec<_>>(),
        [
            ("MP+rlx+rlx".to_string(), Some(Allowed), Some(true)),
            ("MP+rlx+acq".to_string(), Some(Allowed), Some(true)),
            ("MP+fence+rlx".to_string(), Some(Allowed), None),
            ("MP+fence+acq".to_string(), Some(Forbidden), None),
        ]
    );
    assert_eq!(tests[3].expect["ptx"].axiom.as_deref(), Some("Causality"));
    assert_eq!(tests[0].expect["ptx"].axiom, None);
    assert_eq!(tests[3].program.threads[0].code.len(), 3);
    let fence = &tests[3].program.threads[0].code[1];
    assert_eq!(
        &TEMPLATE[fence.span.range()],
        "fence.acq_rel.gpu",
        "the span is where the text was written"
    );
}

#[test]
fn mistakes_in_templates_are_reported_once_and_where_they_are() {
    let bad = TEMPLATE
        .replace("poll = \"acquire\"", "pol = \"aquire\"")
        .replace("fence.acq_rel.gpu", "fence.acq_rle.gpu");
    let bad = bad.replace("fence  A    F", "fnce   A    X");
    insta::assert_snapshot!(messages("t.toml", bad.as_bytes()));
}

#[test]
fn instances_have_names_and_expectations_of_their_own() {
    let text = r#"
name = "family"
condition = 'x == ${v}'
memory = { x = 0 }
thread = [{ code = "st.weak x, ${v}" }]

[[instance]]
name = "first"
v = "1"
expect = { ptx = { reachability = "allowed" } }

[[instance]]
name = "second"
v = "2"
"#;
    let tests = all("i.toml", text);
    assert_eq!(
        tests
            .iter()
            .map(|t| (t.name.as_str(), t.expect.len()))
            .collect::<Vec<_>>(),
        [("first", 1), ("second", 0)]
    );
    let blessed = bless(text, "second", "ptx", "reachability", "forbidden").expect("a place");
    assert_eq!(
        all("i.toml", &blessed)[1].expect["ptx"].reachability,
        Some(Reachability::Forbidden)
    );
}

#[test]
fn a_kernel_becomes_threads() {
    let text = r#"
name = "kernel"
condition = 'a[3] == 4'
[memory]
a = [0, 0, 0, 0]
[kernel]
grid = 2
block = 2
regs = { rd1 = "&a" }
code = """
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mad.lo.s32 %r1, %r1, %r2, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    cvta.to.global.u64 %rd1, %rd1;
    add.s64 %rd3, %rd1, %rd2;
    add.s32 %r3, %r1, 1;
    st.global.u32 [%rd3], %r3;
    bar.sync 0;
    ret;
"""
"#;
    let test = one("k.toml", text);
    let places: Vec<_> = test
        .program
        .threads
        .iter()
        .map(|t| (t.name.as_str(), t.place.cta, t.place.warp))
        .collect();
    assert_eq!(
        places,
        [
            ("P0", 0, Some(0)),
            ("P1", 0, Some(0)),
            ("P2", 1, Some(0)),
            ("P3", 1, Some(0))
        ]
    );
    assert!(
        matches!(&test.program.threads[3].code[2].op, Op::Assign { value, .. } if format!("{value:?}").ends_with("Const(1))"))
    );
}

#[test]
fn messages_for_bad_code() {
    let text = r#"
name = "bad"
memory = { x = 0, z = { init = [0, 0], type = "u32" } }
[[thread]]
code = """
  ld.relaxed.gup r0, x
  lds r1, x
  st.weak\tx, r7
  st.weak yy, 1
  bne r0, 1, L1
L2:
  red.acquire.gpu.add x, 1
  ld.u32 r1, [z+2]; ld.u64 r2, [z]
  ld.v2.f16 {r1, r2}, [z]
  bar.sync 1, 2, 3
  ld.weak r1 x
"""
"#;
    insta::assert_snapshot!(messages("bad.toml", text.as_bytes()));
}

#[test]
fn messages_for_bad_keys_and_conditions() {
    let text = r#"
name = "bad"
conditon = 'x == 1'
condition = 'P1:r9 == 1 /\ y == 0 /\ s == 1'
filter = "x == = 2"
quantifier = "exist"
[memory]
x = 0
y = { alias = "w" }
s = { space = "shard" }
p = "&q"
[[thread]]
cat = 1
gpu = -1
code = ""
[[thread]]
cta = 1
block = 1
code = 5
[expect]
ptx = { reachability = "forbiden", livenes = {} }
"#;
    insta::assert_snapshot!(messages("bad.toml", text.as_bytes()));
}

#[test]
fn options_and_their_values_are_known() {
    let of = |line: &str| format!("name = 't'\n[[thread]]\ncode = ''\n[options]\n{line}\n");
    for (line, id) in [
        ("dep = 'syntactik'", "unknown-word"),
        ("nonsense = '1'", "unknown-key"),
        ("rmw = 'two'", "unknown-word"),
        ("red = 1", "wrong-type"),
    ] {
        let said = messages("o.toml", of(line).as_bytes());
        assert_eq!(
            (said.matches("error").count(), said.contains(id)),
            (1, true),
            "{line}: {said}"
        );
    }
    assert_eq!(
        one("o.toml", &of("rmw = 'pair'")).options[0].words(),
        ("rmw", "pair")
    );
}

#[test]
fn clusters_start_whole() {
    let thread = |place: &str| format!("[[thread]]\n{place}\ncode = ''\n");
    let test = |places: [&str; 2]| {
        format!(
            "name = 't'\ncondition = 'true'\n{}",
            places.map(thread).concat()
        )
    };
    let first = "cluster = 0\ncta = 0\nlaunched = true";
    for (second, errors) in [
        ("cluster = 0\ncta = 1\nlaunched = true", 0),
        ("cluster = 1\ncta = 1", 0),
        ("cluster = 0\ncta = 1", 1),
        ("cta = 0", 1),
    ] {
        for places in [[first, second], [second, first]] {
            let said = messages("o.toml", test(places).as_bytes());
            let (ids, label) = (
                "error[conflicting-keys]: `P1` and `P0` are of one cluster",
                "for all threads of a cluster",
            );
            assert_eq!(
                (said.matches(ids).count(), said.matches(label).count()),
                (errors, errors),
                "{places:?}: {said}"
            );
        }
    }
}

#[test]
fn readings_are_options_that_choose_one() {
    let expect = |text: &str| {
        format!("name = 't'\ncondition = 'true'\n[[thread]]\ncode = ''\n[expect.ptx]\n{text}\n")
    };
    let grid = |text: &str| {
        let axis = "[[axis]]\nname = 'a'\nvalue = [{ name = 'x' }]";
        format!(
            "name = 't+${{a}}'\ncondition = 'true'\n{axis}\n[[thread]]\ncode = ''\n[[matrix]]\nmodel = 'ptx'\nrows = 'a'\n{text}\n"
        )
    };
    let asked = "reachability = 'allowed'";
    for (text, id, part) in [
        (
            expect("readings.async-fence.path = 'allowed'"),
            "conflicting-keys",
            "expected `reachability` with it",
        ),
        (
            expect(&format!("{asked}\nreadings.asyncfence.path = 'allowed'")),
            "unknown-option",
            "`async-fence`",
        ),
        (
            expect(&format!("{asked}\nreadings.dep.value = 'allowed'")),
            "unknown-option",
            "`dep` chooses no reading",
        ),
        (
            expect(&format!("{asked}\nreadings.async-fence.cat = 'allowed'")),
            "unknown-option",
            "`cta`",
        ),
        (
            expect(&format!("{asked}\nreadings.async-fence.cta = 'racy'")),
            "unknown-word",
            "allowed",
        ),
        (
            grid("readings = 'async-fenc'\ntable = 'path\\nx A'"),
            "unknown-option",
            "`async-fence`",
        ),
        (
            grid("readings = 'async-fence'\nproperty = 'race'\ntable = 'path\\nx racy'"),
            "conflicting-keys",
            "no `property`",
        ),
        (
            grid("readings = 'async-fence'\ncolumns = 'a'\ntable = 'path\\nx A'"),
            "conflicting-keys",
            "no `columns`",
        ),
        (
            grid("readings = 'async-fence'\ntable = \"pth\\nx A\""),
            "unknown-value",
            "`path`",
        ),
    ] {
        let said = messages("o.toml", text.as_bytes());
        assert_eq!(
            (
                said.matches("error[").count(),
                said.contains(id),
                said.contains(part)
            ),
            (1, true, true),
            "{text}: {said}"
        );
    }
    let test = one(
        "o.toml",
        &grid("readings = 'async-fence'\ntable = \"path thread\\nx F A\""),
    );
    let expected = &test.expect["ptx"];
    assert_eq!(expected.reachability.map(|r| r.word()), Some("forbidden"));
    let said: Vec<_> = expected
        .readings
        .iter()
        .map(|(s, r)| (s.words().1, r.word()))
        .collect();
    assert_eq!(said, [("path", "forbidden"), ("thread", "allowed")]);
}

#[test]
fn messages_for_files_that_are_no_tests() {
    let mut all = String::new();
    for (name, bytes) in [
        ("syntax.toml", &b"name = \"a\"\n[memory\nx = = 1\n"[..]),
        ("latin1.toml", b"name = \"a\"\ndoc = \"caf\xe9\"\n"),
        ("empty.toml", b""),
        ("other.toml", b"name = 'a'\ndialect = 'hlsl'\n"),
        ("v.litmus", b"VULKAN v\n{}\n"),
        ("x.litmus", b"PTC v\n{}\n"),
        ("t.litmus", b"PTX t\n{ x = y; }\nP0@cta 0,gpu 0 | P1@cta 0,gpu 0;\nld.weak r0, x;\nexists (P3:r0 = 1)\n"),
        ("u.litmus", b"PTX u\n\"never closed\n{ }\n"),
    ] {
        all.push_str(&format!("--- {name}\n{}", messages(name, bytes)));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn nothing_makes_it_overflow_or_hang() {
    let deep = format!("name = 'd'\ncondition = '{}'\n", "(".repeat(1_000_000));
    assert!(messages("d.toml", deep.as_bytes()).contains("nests at most"));
    let nested = format!("name = {}", "[".repeat(1_000_000));
    assert!(messages("d.toml", nested.as_bytes()).contains("toml-syntax"));
    let code: String = (0..100_000).map(|i| format!("st.weak x, {i}\n")).collect();
    let long = format!("name = 'l'\nmemory = {{ x = 0 }}\nthread = [{{ code = '''{code}''' }}]\n");
    assert_eq!(one("l.toml", &long).program.threads[0].code.len(), 100_000);
    let wrong = long.replace("st.weak x", "st.weak y");
    assert!(messages("l.toml", wrong.as_bytes()).contains("there are more errors"));
}

#[test]
fn names_without_an_ending_go_by_the_first_word() {
    assert_eq!(one("-", LITMUS).name, "quorum");
    assert_eq!(one("-", MP).name, "MP+rel+acq.gpu");
}

#[test]
fn the_schema_and_the_reader_agree_on_keys() {
    let schema = schema();
    for key in schema["properties"].as_object().expect("an object").keys() {
        let text = format!("name = 't'\n{key} = 1979-05-27\n");
        assert!(
            !messages("k.toml", text.as_bytes()).contains("unknown-key"),
            "{key}"
        );
    }
    assert!(messages("k.toml", b"name = 't'\nnames = 1\n").contains("unknown-key"));
}

/// A small generator of random numbers, so that failures repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

#[test]
fn damaged_files_are_read_or_diagnosed() {
    let seeds = [("a.toml", MP), ("b.toml", TEMPLATE), ("c.litmus", LITMUS)];
    let scraps = [
        "${",
        "}",
        "[",
        "(*",
        "\"",
        "'",
        "|",
        ";",
        "\u{e9}",
        "@",
        "&x",
        "0x",
        "-",
        "_",
        "::",
        ".",
        ",",
        "\n",
        "99999999999",
    ];
    let mut random = Random(1);
    for round in 0..3000 {
        let (name, seed) = seeds[round % seeds.len()];
        let mut text: Vec<char> = seed.chars().collect();
        for _ in 0..=random.below(3) {
            let at = random.below(text.len());
            match random.below(3) {
                0 => drop(text.drain(at..(at + 1 + random.below(9)).min(text.len()))),
                1 => drop(text.splice(at..at, scraps[random.below(scraps.len())].chars())),
                _ => {
                    let from = random.below(text.len());
                    let piece: Vec<char> =
                        text[from..(from + random.below(40)).min(text.len())].to_vec();
                    drop(text.splice(at..at, piece));
                }
            }
        }
        let text: String = text.into_iter().collect();
        match parse(name, text.as_bytes()) {
            Ok(tests) => tests.iter().for_each(|t| drop(to_toml(t))),
            Err(diagnostics) => {
                assert!(
                    !diagnostics.is_empty(),
                    "an error without a message:\n{text}"
                );
                diagnostics
                    .iter()
                    .for_each(|d| assert!(!render(d, TextStyle::Plain).is_empty()));
            }
        }
        let _ = bless(&text, "MP+rel+acq.gpu", "ptx", "race", "racy");
    }
}

#[test]
fn the_examples_in_the_guide_are_true() {
    let guide = include_str!("../../docs/src/test-format.md");
    let blocks: Vec<&str> = guide
        .split("```toml\n")
        .skip(1)
        .filter_map(|b| b.split("```").next())
        .collect();
    let tests: Vec<LitmusTest> = blocks
        .iter()
        .filter(|b| b.starts_with("name"))
        .flat_map(|b| all("guide.toml", b))
        .collect();
    assert_eq!(tests.len(), 9);
    assert!(tests.iter().all(|t| {
        t.expect[t.program.dialect.default_model()]
            .reachability
            .is_some()
    }));
    let runs = blocks
        .iter()
        .find(|b| b.starts_with("[[run]]"))
        .expect("the example of runs");
    let test = one(
        "runs.toml",
        &format!("name = 'r'\n[[thread]]\ncode = ''\n{runs}"),
    );
    assert_eq!(test.runs[0].ends, Some("livelock"));
    let memory = blocks
        .iter()
        .find(|b| b.starts_with("[memory]"))
        .expect("the example of memory");
    assert_eq!(
        one("memory.toml", &format!("name = 'm'\n{memory}"))
            .program
            .locations
            .len(),
        11
    );
}
