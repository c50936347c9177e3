//! Tests misuse of asynchronous operations and their barriers in PTX: each gives an error or a
//! warning in specific words.

use super::Folder;

#[test]
fn a_wait_that_waits_for_nothing_is_worth_a_warning() {
    let test = |code: &str| {
        let head = "name = \"T\"\ncondition = 'P0:r0 == 1'\n[memory]\ng = { type = \"u64\", init = [1, 1] }\n\
                    s = { type = \"u64\", init = [0, 0], space = \"shared\" }\n\
                    b = { type = \"mbarrier\", space = \"shared\" }\n[[thread]]\n";
        format!("{head}code = '''\n{code}\nld.shared.u64 r0, [s]\n'''\n")
    };
    let (copy, commit, wait) = (
        "cp.async.ca.shared.global [s], [g], 8",
        "cp.async.commit_group",
        "cp.async.wait_group",
    );
    let (store, tracked) = (
        "cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16",
        "mbarrier.init.shared::cta.b64 [b], 1\n\
         cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [b]",
    );
    let (reduce, release, matrix) = (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [g], [s], 16",
        "red.async.release.gpu.global.add.u64 [g], 1",
        "wgmma.fence\nwgmma.mma_async q, [s], 16",
    );
    let cases = [
        (format!("{copy}\n{commit}\n{wait} 0"), None),
        (format!("{copy}\n{commit}\n{commit}\n{wait} 1"), None),
        (format!("{copy}\ncp.async.wait_all"), None),
        (
            format!("{store}\ncp.async.bulk.commit_group\ncp.async.bulk.wait_group.read 0"),
            None,
        ),
        (format!("{wait} 0"), Some("no `cp.async` of this thread")),
        (
            format!("{copy}\n{wait} 0"),
            Some("no `cp.async.commit_group` is between"),
        ),
        (
            format!("{commit}\n{copy}\n{wait} 0"),
            Some("no `cp.async.commit_group` is between"),
        ),
        (
            format!("{copy}\n{commit}\n{wait} 1"),
            Some("1 of the 1 groups that it may leave incomplete"),
        ),
        (
            format!("{copy}\n{commit}\ncp.async.bulk.wait_group 0"),
            Some("no `cp.async.bulk` of this thread"),
        ),
        (
            format!("{tracked}\ncp.async.bulk.commit_group\ncp.async.bulk.wait_group 0"),
            Some("tracked by an mbarrier"),
        ),
        (
            "cp.async.wait_all".to_owned(),
            Some("no `cp.async` of this thread"),
        ),
        (
            format!("{reduce}\ncp.async.bulk.commit_group\ncp.async.bulk.wait_group 0"),
            None,
        ),
        (
            format!("{reduce}\ncp.async.bulk.wait_group 0"),
            Some("no `cp.async.bulk.commit_group` is between"),
        ),
        (
            format!("{reduce}\n{commit}\n{wait} 0"),
            Some("no `cp.async` of this thread"),
        ),
        (
            format!("{release}\n{commit}\n{wait} 0"),
            Some("no `cp.async` of this thread"),
        ),
        (
            format!("{matrix}\nwgmma.commit_group\nwgmma.wait_group 0"),
            None,
        ),
        (
            format!("{matrix}\nwgmma.wait_group 0"),
            Some("no `wgmma.commit_group` is between"),
        ),
        (
            format!("{matrix}\ncp.async.bulk.commit_group\ncp.async.bulk.wait_group 0"),
            Some("no `cp.async.bulk` of this"),
        ),
    ];
    for (code, wanted) in cases {
        let folder = Folder::new(&[("t.toml", &test(&code))]);
        let said = folder.run(&["check", "t.toml", "--model", "ptx"]);
        assert!(matches!(said.code, Some(0 | 3)), "{code}: {}", said.err);
        match wanted {
            None => assert!(!said.err.contains("empty-wait"), "{code}: {}", said.err),
            Some(why) => {
                for word in [
                    "warning[empty-wait]: this wait has no copies to wait for",
                    why,
                ] {
                    assert!(
                        said.err.contains(word),
                        "{code}: `{word}` is missing in:\n{}",
                        said.err
                    );
                }
            }
        }
    }
}

#[test]
fn of_a_program_that_may_end_early_nothing_else_is_said() {
    let ptx = |order: &str| {
        format!(
            "name = \"T\"\ncondition = 'P1:r0 == 1 && P1:r1 == 0'\nmemory = {{ x = 0, f = 0 }}\n[[thread]]\n\
             code = \"st.weak x, 1; st.{order}.gpu f, 1\"\n[[thread]]\ncta = 1\ncode = '''\nld.acquire.gpu r0, f\n\
             bne r0, 1, end\nld.weak r1, x\nsetp.ne.u32 p, r1, 1\n@p trap\nend:\n'''\n"
        )
    };
    let cuda = |order: &str, check: &str| {
        let flag = "cuda::atomic_ref<int, cuda::thread_scope_device>(f)";
        format!(
            "name = \"T\"\ndialect = \"cuda\"\nmemory = {{ x = 0, f = 0 }}\ncondition = 'P1:r == 2'\n[[thread]]\n\
             code = \"x = 1; {flag}.store(1, cuda::memory_order_{order});\"\n[[thread]]\nblock = 1\n\
             code = \"int r = {flag}.load(cuda::memory_order_acquire); if (r == 1) {{ {check} }}\"\n"
        )
    };
    let cases = [
        (ptx("release"), "forbidden", ""),
        (
            ptx("relaxed"),
            "undecided",
            "`@p trap` (P1, line 13) can end the program",
        ),
        (cuda("release", "assert(x == 1);"), "forbidden", ""),
        (
            cuda("relaxed", "assert(x == 1);"),
            "undecided",
            "`assert(x == 1);` (P1, line 9) can end the program",
        ),
        (
            cuda("release", "__trap();"),
            "undecided",
            "`__trap();` (P1, line 9) can end the program",
        ),
    ];
    for (text, verdict, why) in cases {
        let folder = Folder::new(&[("t.toml", &text)]);
        let said = folder.run(&["check", "t.toml", "--engine", "both", "--format", "jsonl"]);
        assert_eq!(
            said.code,
            Some(if verdict == "undecided" { 3 } else { 0 }),
            "{text}\n{}{}",
            said.out,
            said.err
        );
        for wanted in [&format!("\"verdict\":\"{verdict}\""), why] {
            assert!(
                said.out.contains(wanted),
                "{text}\n`{wanted}` is missing in:\n{}",
                said.out
            );
        }
        let seen = folder
            .run(&["run", "t.toml", "--schedule", "exhaustive"])
            .out;
        assert_eq!(
            seen.contains("ends the program"),
            verdict == "undecided",
            "{text}\n{seen}"
        );
    }
}

#[test]
fn every_misuse_of_asynchronous_operations_has_its_own_words() {
    let test = |first: &str| {
        format!(
            "name = \"Bad\"\ncondition = 'g[0] == 7'\n[memory]\ng = [7, 8]\nh = [7, 8]\nw = 0\n\
             s = {{ init = [0, 0], space = \"shared\" }}\nu = {{ type = \"mbarrier\", space = \"shared\" }}\n\
             b = {{ type = \"mbarrier\", init = 1, space = \"shared\" }}\n\
             [[thread]]\ncta = 0\ncluster = 0\ncode = '''\n{first}\n'''\n\
             [[thread]]\ncta = 1\ncluster = 0\ncode = 'nanosleep.u32 1'\n[expect]\nptx = {{ undefined = \"defined\" }}\n"
        )
    };
    let load = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes";
    let multicast =
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster";
    let store = "cp.async.bulk.global.shared::cta.bulk_group";
    let expect = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b]";
    let refused = [
        (
            format!("{load} [g], [h], 16, [b]"),
            "this writes shared memory, and `g` is in another state space",
        ),
        (
            format!("{store} [g], [h], 16"),
            "this reads shared memory, and `h` is in another state space",
        ),
        (
            format!("{store} [g+8], [s], 16"),
            "16 bytes at byte 8 of `g`, which has elements of 8 bytes",
        ),
        (
            format!("{store} [g], [s], 8"),
            "a bulk operation has a multiple of 16 bytes",
        ),
        (
            format!("{expect}, 1048576"),
            "an mbarrier object cannot count 1048576 bytes",
        ),
        (
            "ld.shared.u64 r0, [b]".to_owned(),
            "an ordinary access to an mbarrier object is undefined",
        ),
        (
            "mbarrier.arrive.shared.b64 _, [w]".to_owned(),
            "`w` is not an mbarrier object",
        ),
        ("mbarrier.wait [b], 2".to_owned(), "a phase has no parity 2"),
        (
            format!("{multicast} [s], [g], 16, [b], 8"),
            "the cluster has no CTA of rank 3",
        ),
        (
            format!("{multicast} [s], [g], 16, [b], 0"),
            "0 names no CTAs",
        ),
        (
            "mapa.shared::cluster.u64 r1, b, 2".to_owned(),
            "the cluster has no CTA of rank 2",
        ),
    ];
    for (code, words) in refused {
        Folder::new(&[("bad.toml", &test(&code))])
            .refused(&["bad.toml"], &[words, "bad.toml:14:1"]);
    }
    // Misuse that only an execution shows makes that execution undefined.
    let remote = "mapa.shared::cluster.u64 r1, b, 1";
    let undefined = [
        (
            "mbarrier.arrive.shared.b64 _, [u]".to_owned(),
            "it finds in `P0:u`: no mbarrier object",
        ),
        (
            format!("{expect}, 1048575\n{expect}, 1048575"),
            "it finds in `P0:b`: phase 0, pending 1 of 1, tx 1048575",
        ),
        (
            format!("{remote}\n{load} [s], [g], 16, [r1]"),
            "is not in the memory of the CTA to which the copy of",
        ),
    ];
    for (code, words) in undefined {
        let folder = Folder::new(&[("bad.toml", &test(&code))]);
        let said = folder.run(&["ask", "bad.toml", "--model", "ptx"]);
        assert!(
            said.out.contains("the program is undefined") && said.out.contains(words),
            "{}",
            said.out
        );
    }
}
