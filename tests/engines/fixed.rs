//! Random programs that read memory without writes. An unreachable store makes it count as written,
//! and the outcomes stay the same.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use testkit::suite::{number, programs};

use crate::kept::{answers, one};

/// A program whose accesses depend on inputs; without and with an unreachable store to the inputs.
fn generate(seed: u64) -> [String; 2] {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let rng = &mut rng;
    let mut threads = Vec::new();
    for t in 0..rng.random_range(2..=3) {
        let mut code = String::new();
        for i in 0..rng.random_range(2..5) {
            let how = one(rng, &["weak", "weak", "relaxed.gpu", "acquire.gpu"]);
            // An input, the value that it selects, and whether the access happens at all.
            code += &format!("ld.{how}.u32 k{i}, [in+{}]; ", 4 * rng.random_range(0..4));
            let index = one(
                rng,
                &["and.b32 o, k, 1;", "shr.u32 o, k, 1;", "min.u32 o, k, 1;"],
            )
            .replace('k', &format!("k{i}"));
            code += &format!("{index} mul.wide.u32 d, o, 4; mov.u64 a, x; add.u64 a, a, d; ");
            let place = one(rng, &["[a]", "[a]", "[y]"]);
            let access = match rng.random_range(0..6) {
                0 | 1 => format!(
                    "st.{}.u32 {place}, k{i};",
                    one(rng, &["weak", "relaxed.gpu", "release.gpu"])
                ),
                2 | 3 => format!(
                    "ld.{}.u32 r{i}, {place};",
                    one(rng, &["weak", "relaxed.gpu", "acquire.gpu"])
                ),
                4 => format!("atom.relaxed.gpu.add.u32 r{i}, {place}, k{i};"),
                _ => "fence.acq_rel.gpu;".to_owned(),
            };
            let test = one(rng, &["eq", "ne", "gt"]);
            code += &match rng.random_range(0..3) {
                0 => format!(
                    "setp.{test}.u32 p, k{i}, {}; @p bra S{i}; {access} S{i}: ",
                    rng.random_range(0..3)
                ),
                // It can also read writes of others.
                1 if rng.random_bool(0.5) => {
                    format!(
                        "ld.relaxed.gpu.u32 v, [y]; setp.{test}.u32 p, v, k{i}; @p bra S{i}; {access} S{i}: "
                    )
                }
                _ => format!("{access} "),
            };
        }
        threads.push((t, rng.random_range(0..2), code));
    }
    let inputs: Vec<String> = (0..4).map(|_| rng.random_range(0..4).to_string()).collect();
    let regs: Vec<String> = threads
        .iter()
        .flat_map(|(t, _, code)| {
            (0..4)
                .filter(|i| code.contains(&format!("u32 r{i},")))
                .map(move |i| format!("\"P{t}:r{i}\""))
        })
        .collect();
    ["", "bra END; st.weak.u32 [in], 1; "].map(|never| {
        let threads: Vec<String> = threads
            .iter()
            .map(|(_, cta, code)| format!("[[thread]]\ncta = {cta}\ncode = '''{code}{never}END: mov.u32 z, 0;'''\n"))
            .collect();
        format!(
            "name = \"seed-{seed}\"\nobserve = [\"x[0]\", \"x[1]\", \"y\", {}]\n[memory]\nin = {{ init = [{}], type = \"u32\" }}\n\
             x = {{ size = 2, type = \"u32\" }}\ny = {{ type = \"u32\" }}\n{}",
            regs.join(", "),
            inputs.join(", "),
            threads.concat()
        )
    })
}

#[test]
fn what_nobody_writes_is_what_it_was() {
    let (count, first) = (programs(150), number("FENCEPOST_SEED", 1));
    let (mut compared, mut several) = (0, 0);
    for seed in first..first + count {
        let [folded, open] = generate(seed);
        for model in ["ptx", "sc"] {
            let (Some(one), Some(all)) = (answers(&folded, model, 2), answers(&open, model, 2))
            else {
                continue;
            };
            assert_eq!(one, all, "{model}: {folded}");
            (compared, several) = (compared + 1, several + u64::from(one.0.len() > 1));
        }
    }
    assert!(
        compared > count && several > count / 4,
        "{compared} compared, {several} of them with several outcomes"
    );
}

/// An address beyond the end of an object refers to the object there.
#[test]
fn a_store_that_leads_out_of_its_object_writes_what_it_hits() {
    let program = |never: &str| {
        format!(
            "name = \"astray\"\nobserve = [\"P0:k\"]\n[memory]\nx = {{ size = 1, type = \"u32\" }}\n\
             in = {{ init = [3], type = \"u32\" }}\ny = {{ type = \"u32\" }}\n[[thread]]\ncta = 0\n\
             code = '''ld.relaxed.gpu.u32 r, [y]; mul.wide.u32 d, r, 256; mov.u64 a, x; add.u64 a, a, d; st.weak.u32 [a], 7; \
             ld.weak.u32 k, [in]; {never}END: mov.u32 z, 0;'''\n[[thread]]\ncta = 1\ncode = '''st.relaxed.gpu.u32 [y], 1;'''\n"
        )
    };
    let (folded, open) = (
        answers(&program(""), "ptx", 2),
        answers(&program("bra END; st.weak.u32 [in], 1; "), "ptx", 2),
    );
    assert_eq!(folded, open);
    assert_eq!(folded.expect("decided").0.len(), 2);
}
