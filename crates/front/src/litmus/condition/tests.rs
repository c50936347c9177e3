//! Conditions: syntax, resolution, printing.

use super::*;
use crate::litmus::parse as parse_test;
use diag::SourceFile;
use program::Program;
use program::litmus::LitmusTest;

/// A program with registers r0 (typed) and r1, an array and shared memory.
fn program() -> Program {
    let text = r#"
name = "t"
[memory]
x = 0
a = [0, 0]
s = { space = "shared" }
[[thread]]
cta = 0
code = "ld.u32 r0, [w]; mov r1, a"
[[thread]]
cta = 1
code = ""
"#;
    let text = text.replace(
        "x = 0\n",
        "x = 0\nw = { type = \"u32\" }\nu = { type = \"u64\" }\n",
    );
    let tests: Vec<LitmusTest> = parse_test("t.toml", text.as_bytes()).expect("a correct test");
    tests.into_iter().next().expect("one test").program
}

fn read(text: &str) -> Result<(Prop, String), String> {
    let mut program = program();
    let mut sink = Sink::new(&SourceFile::new("c", text));
    let mut resolver = Resolver::new(&mut program, Unknown::Reject);
    let prop = parse(&MappedText::verbatim(text, 0), &mut resolver, &mut sink);
    match prop {
        Some(prop) => {
            let shown = show(&prop, &program);
            Ok((prop, shown))
        }
        None => Err(sink
            .into_diagnostics()
            .iter()
            .map(|d| format!("{d}\n"))
            .collect()),
    }
}

#[track_caller]
fn shown(text: &str) -> String {
    read(text).unwrap_or_else(|e| panic!("{e}")).1
}

#[test]
fn every_spelling_means_the_same() {
    let plain = shown(r"P0:r0 == 1 /\ x == 2 \/ ~(a[1] != 0)");
    assert_eq!(plain, r"P0:r0 == 1 /\ x == 2 \/ ~(a[1] != 0)");
    assert_eq!(
        shown("0:%r0 = 0x1 && [x] = 2 || !(not not [a[1]] != 0)"),
        plain.replace("~(", "~~~(")
    );
    assert_eq!(shown("P0:r1 == &a[1] /\\ true"), "P0:r1 == &a[1] /\\ true");
    assert_eq!(shown("-1 <= x"), "-1 <= x");
}

#[test]
fn what_is_shown_reads_back() {
    for text in [
        r"x - (2 - x) * 3 <= x * (x * 2) - 1 - x",
        r"(x == 1 /\ x == 2) /\ (x == 3 \/ false)",
        r"~(~x == 1 /\ x == 0)",
        r"((x == 1 \/ x == 2) \/ x == 3)",
    ] {
        let (prop, shown) = read(text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            read(&shown).map(|r| r.0),
            Ok(prop),
            "{text} was shown as {shown}"
        );
    }
}

#[test]
fn comparisons_take_the_type_of_what_they_compare() {
    let ty = |text| match read(text) {
        Ok((Prop::Cmp(_, ty, ..), _)) => ty,
        other => panic!("{other:?}"),
    };
    assert_eq!(ty("P0:r0 == -1"), Ty::U32);
    assert_eq!(ty("x == -1"), Ty::WORD);
    assert_eq!(ty("0 == 0"), Ty::WORD);
}

#[test]
fn sums_are_computed_in_64_bits() {
    let ty = |text| match read(text) {
        Ok((Prop::Cmp(_, ty, ..), _)) => ty,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        shown("P0:r0 + 1 == x-2*(a[1] + 3)"),
        "P0:r0 + 1 == x - (2 * (a[1] + 3))"
    );
    assert_eq!(
        shown("(x + 1) - 2 - (x - 1) < -x"),
        "x + 1 - 2 - (x - 1) < 0 - x"
    );
    assert_eq!(
        shown("(x == 1 /\\ (x + 1) * 2 == 4) \\/ (true)"),
        "x == 1 /\\ (x + 1) * 2 == 4 \\/ true"
    );
    assert_eq!(ty("P0:r0 + 1 == 0"), Ty::WORD);
    assert_eq!(ty("P0:r0 == -1"), Ty::U32);
    assert_eq!(ty("u + P0:r0 >= 0"), Ty::U64);
    assert_eq!(ty("u == P0:r0"), Ty::WORD);
    assert_eq!(
        read("x + &a[1] == 1 /\\ &x == x - 1").unwrap_err(),
        "c:1:5: error: conditions cannot compute with an address\n\
         c:1:19: error: conditions cannot compute with an address\n"
    );
    assert_eq!(read("x + == 1").unwrap_err().lines().count(), 1);
    let long = |n: usize| format!("x{} == 1 /\\ x + 1 == 2", " + 1".repeat(n));
    assert!(read(&long(MAX_NESTING)).is_ok());
    assert!(
        read(&long(MAX_NESTING + 1))
            .unwrap_err()
            .contains("nests at most")
    );
}

/// Floating-point numbers become their bits, as many as the other side has.
#[test]
fn numbers_of_floating_point_are_compared_as_such() {
    assert_eq!(shown("w == 1.5"), "w == 1069547520");
    assert_eq!(shown("1.5e0 = P0:r0"), "P0:r0 == 1069547520");
    assert_eq!(shown("u != -25e-1"), "~(u == -4610560118520545280)");
    assert_eq!(shown("w == 0.0"), r"w == 0 \/ w == 2147483648");
    assert_eq!(shown("w >= 1.0"), r"w >= 1065353216 /\ w <= 2139095040");
    assert_eq!(
        shown("1.0 > w"),
        r"w <= 1065353215 \/ w >= 2147483648 /\ w <= 4286578688"
    );
    // An integer stays an integer; a sum of integers has no floating-point format.
    assert_eq!(shown("w == 1"), "w == 1");
    let place = |text: &str| read(text).unwrap_err();
    assert_eq!(
        place("w + 1 == 1.5"),
        "c:1:1: error: a comparison of a floating-point number with another kind of value\n"
    );
    assert_eq!(
        place("1.5 == w + 1"),
        "c:1:8: error: a comparison of a floating-point number with another kind of value\n"
    );
    assert_eq!(
        place("w + 1.5 == 1"),
        "c:1:5: error: `1.5` is not an integer of at most 64 bits\n"
    );
    assert_eq!(
        place("w == 1e39"),
        "c:1:1: error: no number of 32 bits is as large as 1e39\n"
    );
    assert_eq!(
        place("w == 1e999"),
        "c:1:6: error: `1e999` is not a number\n"
    );
    assert_eq!(
        place("w == 1.5.5"),
        "c:1:6: error: `1.5.5` is not a number\n"
    );
}

#[test]
fn errors_name_the_place_and_all_come_at_once() {
    assert_eq!(
        read("P0:r7 == 1 /\\ y == 0 /\\ P9:r0 == 0 /\\ a[2] == 0").unwrap_err(),
        "c:1:4: error: thread `P0` has no register `r7`\n\
         c:1:15: error: there is no location `y`\n\
         c:1:25: error: there is no thread `P9`\n\
         c:1:39: error: `a` has 2 elements, this is number 2\n"
    );
    assert_eq!(read("x == ").unwrap_err().lines().count(), 1);
    assert!(
        read("s == 0")
            .unwrap_err()
            .contains("every CTA has its own copy of `s`")
    );
    assert!(read("P1:s == 0").is_ok());
}

#[test]
fn a_quantifier_is_a_key_of_its_own() {
    let alone = "the condition is the proposition alone";
    for text in ["exists (x == 1)", "~exists x == 1", " forall x == 1"] {
        let at = 1 + text.len() - text.trim_start().len();
        let error = format!("c:1:{at}: error: {alone}\n");
        assert_eq!(read(text).unwrap_err(), error);
    }
    for text in ["exists == 1", "forall.x == 1", "existsx == 1"] {
        assert!(!read(text).unwrap_err().contains(alone), "{text}");
    }
}

#[test]
fn nesting_is_limited() {
    let nested = |n: usize| format!("{}x == 1{}", "(".repeat(n), ")".repeat(n));
    assert!(read(&nested(MAX_NESTING)).is_ok());
    assert!(
        read(&nested(MAX_NESTING + 1))
            .unwrap_err()
            .contains("nests at most")
    );
    assert!(read(&"~".repeat(1_000_000)).is_err());
}
