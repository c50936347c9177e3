//! Features of modules and launches of real kernels: `import` reads each, refuses it at its place,
//! or lists it among its refusals.

use std::fs;
use std::path::Path;

use super::{Said, fencepost};

const HEAD: &str = ".version 8.6\n.target sm_100a\n.address_size 64\n";

fn import(folder: &Path, module: &str, arguments: &[&str]) -> Said {
    fs::write(folder.join("k.ptx"), format!("{HEAD}{module}")).expect("writable");
    fencepost(folder, &[&["import", "k.ptx"], arguments].concat())
}

/// The verdicts of a kernel under a condition.
fn verdicts(folder: &Path, module: &str, arguments: &[&str]) -> Vec<String> {
    let said = import(
        folder,
        module,
        &[arguments, &["-o", "k.toml", "--force"]].concat(),
    );
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{module}");
    let said = fencepost(
        folder,
        &[
            "check",
            "k.toml",
            "--property",
            "reachability",
            "--format",
            "jsonl",
        ],
    );
    let verdict = |line: &str| {
        let answer: serde_json::Value = serde_json::from_str(line).expect("an object");
        let reason = answer["reason"]
            .as_str()
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default();
        answer["verdict"].as_str().expect("a verdict").to_owned() + &reason
    };
    said.out
        .lines()
        .filter(|line| line.contains("\"verdict\""))
        .map(verdict)
        .collect()
}

/// `warpSize`, as nvcc prints it, alone and in expressions.
#[test]
fn the_size_of_a_warp_is_a_constant() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = ".const .u32 t[2] = {WARP_SZ, WARP_SZ*2};\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<4>;\n\
                  .shared .b8 s[WARP_SZ];\nld.param.u64 %rd1, [p];\nmov.u32 %r1, WARP_SZ;\nadd.u32 %r2, %r1, WARP_SZ-1;\nadd.u32 %r2, %r2, -WARP_SZ;\n\
                  mov.u64 %rd2, t;\nld.const.u32 %r3, [%rd2+WARP_SZ/8];\nst.shared.u32 [s+(WARP_SZ-4)], %r3;\nld.shared.u32 %r4, [s+28];\n\
                  add.u32 %r4, %r4, %r2;\nst.global.u32 [%rd1], %r4;\nret;\n}\n";
    let asked = |ask: &str| verdicts(folder.path(), module, &["--arg", "0=out:u32", "--ask", ask]);
    assert_eq!(
        (asked("out == 95"), asked("out != 95")),
        (vec!["allowed".to_owned()], vec!["forbidden".to_owned()])
    );
}

/// A function that is only declared: its kernel is read, and a call is reported where a thread
/// reaches it, and only there.
#[test]
fn calls_of_declared_functions_are_told_where_they_are_come_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = ".extern .func (.param .b32 o) far(.param .b32 i);\n.func lone();\n.func (.param .b32 o) near(.param .b32 i);\n\
                  .func (.param .b32 o) near(.param .b32 i) { .reg .b32 %r; ld.param.b32 %r, [i]; st.param.b32 [o], %r; ret; }\n\
                  .visible .entry k(.param .u64 p, .param .u32 n)\n{\n.reg .b64 %rd<9>;\n.reg .b32 %r<9>;\n.reg .pred %p<3>;\n\
                  ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nsetp.eq.u32 %p1, %r1, 0;\n\
                  {\n.param .b32 a;\n.param .b32 o;\nst.param.b32 [a], 1;\ncall.uni (o), near, (a);\nld.param.b32 %r3, [o];\n}\n@%p1 bra L;\n\
                  {\n.param .b32 a;\n.param .b32 o;\nst.param.b32 [a], 4;\ncall.uni (o), far, (a);\nld.param.b32 %r3, [o];\n}\n\
                  L:\nst.global.u32 [%rd1], %r3;\nret;\n}\n";
    let asked = |n: &str, ask: &str| {
        let launch = ["--arg", "0=out:u32", "--arg", n, "--ask", ask];
        verdicts(folder.path(), module, &launch)
    };
    assert_eq!(asked("1=0", "out == 1"), ["allowed"]);
    assert_eq!(asked("1=0", "out != 1"), ["forbidden"]);
    for ask in ["out == 4", "out != 4"] {
        let told = asked("1=1", ask);
        assert!(
            told[0].contains("calls an unknown function") && told[0].contains("k.ptx:"),
            "{told:?}"
        );
    }
    let listed = import(folder.path(), module, &[]);
    assert!(
        listed.out.contains("a call of an unknown function") && !listed.out.contains("refused"),
        "{}",
        listed.out
    );
    let undeclared = module.replace(".extern .func (.param .b32 o) far(.param .b32 i);", "");
    let launch = ["--arg", "0=out:u32", "--arg", "1=0", "--ask", "out == 1"];
    let refused = import(folder.path(), &undeclared, &launch);
    assert!(
        refused
            .err
            .contains("the code calls `far`, and the module does not declare it"),
        "{}",
        refused.err
    );
}

/// The proof for every launch is no answer about the code of a function that nobody knows.
#[test]
fn a_call_of_a_declared_function_leaves_races_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = |guard: &str| {
        format!(
            "{HEAD}.extern .func far();\n.visible .entry k(.param .u64 p)\n{{\n\
             .reg .b64 %rd<4>;\n.reg .b32 %r<4>;\n.reg .pred %p<3>;\nld.param.u64 %rd1, [p];\n\
             mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n\
             setp.gt.u32 %p1, %r1, 5000;\n{guard}\ncall far;\nL:\n\
             st.global.u32 [%rd3], 1;\nret;\n}}\n"
        )
    };
    for (guard, verdict) in [("", "undecided"), ("@!%p1 bra L;", "race-free")] {
        fs::write(folder.path().join("m.ptx"), module(guard)).expect("writable");
        let said = fencepost(folder.path(), &["check", "m.ptx", "--format", "jsonl"]);
        let race = said.out.lines().find(|line| line.contains("\"race\""));
        let found = race.is_some_and(|line| line.contains(&format!(":\"{verdict}\"")));
        assert!(found, "{guard}: {}{}", said.out, said.err);
    }
}

/// Tables of functions and objects with virtual functions: a call through one is reported where a
/// thread reaches it, and only there.
#[test]
fn calls_through_tables_are_told_where_they_are_come_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = ".visible .func f() { ret; }\n.func (.param .b32 o) g(.param .b32 i) { .reg .b32 %r; ld.param.b32 %r, [i]; st.param.b32 [o], %r; ret; }\n\
                  .global .align 8 .u64 tab[3] = {f, g, generic(place)+8};\n.global .align 8 .u64 place[2] = {0, tab};\n.global .align 8 .u64 none[1] = {h};\n\
                  .visible .entry k(.param .u64 p, .param .u32 n)\n{\n.reg .b64 %rd<9>;\n.reg .b32 %r<9>;\n.reg .pred %p<3>;\n\
                  ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nmov.u64 %rd2, tab;\nld.global.u64 %rd3, [%rd2+8];\n\
                  ld.global.u64 %rd4, [%rd2];\nld.global.u64 %rd5, [%rd2+16];\nld.global.u64 %rd6, [%rd5];\n\
                  setp.eq.u64 %p2, %rd3, %rd4;\nselp.b32 %r3, 100, 1, %p2;\nsetp.eq.u64 %p2, %rd6, %rd2;\n@!%p2 add.u32 %r3, %r3, 50;\n\
                  setp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\n{\n.param .b32 a;\n.param .b32 o;\nst.param.b32 [a], 4;\n\
                  P: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (o), %rd3, (a), P;\nld.param.b32 %r3, [o];\n}\n\
                  L:\nst.global.u32 [%rd1], %r3;\nret;\n}\n.visible .entry other() { ret; }\n";
    let asked = |n: &str, ask: &str| {
        verdicts(
            folder.path(),
            module,
            &[
                "--kernel",
                "k",
                "--arg",
                "0=out:u32",
                "--arg",
                n,
                "--ask",
                ask,
            ],
        )
    };
    assert_eq!(asked("1=0", "out == 1"), ["allowed"]);
    assert_eq!(asked("1=0", "out != 1"), ["forbidden"]);
    for ask in ["out == 4", "out != 4"] {
        let told = asked("1=1", ask);
        assert!(
            told[0].contains("calls an unknown function") && told[0].contains("k.ptx:"),
            "{told:?}"
        );
    }
    let listed = import(folder.path(), module, &[]);
    let line = module
        .lines()
        .position(|line| line.contains("call (o)"))
        .expect("a line")
        + 4;
    assert!(
        listed
            .out
            .contains(&format!("line {line}: a call of an unknown function")),
        "{}",
        listed.out
    );
    assert!(
        !listed.out.contains("refused") && !listed.out.contains("none"),
        "{}",
        listed.out
    );
    for (wrong, what) in [
        (
            ".global .align 8 .u64 t[1] = {f+4};",
            "an address inside of the function `f`",
        ),
        (
            ".global .align 4 .u32 t[1] = {f};",
            "an address has 64 bits",
        ),
        (
            ".global .align 1 .b8 t[8] = {0xFF(f), 0};",
            "a part of an address is not supported",
        ),
    ] {
        let module = format!(
            ".visible .func f() {{ ret; }}\n{wrong}\n.visible .entry k() {{ .reg .b64 %rd<2>; mov.u64 %rd1, t; ld.global.u64 %rd1, [%rd1]; ret; }}\n"
        );
        let said = import(folder.path(), &module, &["--block", "1"]);
        assert!(
            said.code == Some(2) && said.err.contains(what) && said.err.contains("k.ptx:5"),
            "{}",
            said.err
        );
    }
}

/// A kernel's requirements are checked against the launch.
#[test]
fn a_launch_fits_its_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |demands: &str, launch: &[&str]| {
        let module = format!(".visible .entry k()\n{demands}\n{{ ret; }}\n");
        import(folder.path(), &module, launch)
    };
    for (demands, launch, help) in [
        (".reqntid 64", &["--block", "32"][..], "`--block 64`"),
        (".reqntid 8, 8", &["--block", "64"], "`--block 8,8`"),
        (".maxntid 32", &["--block", "33"], "`--block 32`, or less"),
        (
            ".maxntid 8, 4, 1",
            &["--block", "33"],
            "`--block 8,4,1`, or less",
        ),
        (
            ".reqnctapercluster 2",
            &["--grid", "4", "--cluster", "4"],
            "give `--cluster 2`",
        ),
        (
            ".explicitcluster",
            &["--grid", "4"],
            "give the number of blocks in a cluster: `--cluster 2`",
        ),
        (
            ".maxclusterrank 2",
            &["--grid", "4", "--cluster", "4"],
            "`--cluster 2`, or less",
        ),
        (
            ".maxntid 32\n.minnctapersm 2",
            &["--block", "11,3"],
            "`--block 32`, or less",
        ),
    ] {
        let said = said(demands, launch);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{demands}");
        assert!(
            said.err.contains("error[launch-mismatch]") && said.err.contains("k.ptx:5:1"),
            "{}",
            said.err
        );
        assert!(said.err.contains(&format!("help: {help}")), "{}", said.err);
    }
    for (demands, launch, line) in [
        (".reqntid 64", &["--grid", "1"][..], "block = 64"),
        (".reqntid 4, 2", &["--block", "4,2,1"], "block = [4, 2, 1]"),
        (".maxntid 32, 1, 1", &["--block", "4,8"], "block = [4, 8]"),
        (
            ".reqnctapercluster 2, 1",
            &["--grid", "4"],
            "cluster = [2, 1]",
        ),
        (
            ".explicitcluster\n.reqnctapercluster 2",
            &["--grid", "4", "--cluster", "2"],
            "cluster = 2",
        ),
        (".maxntid 32", &["--grid", "1"], "block = 1"),
    ] {
        let said = said(demands, launch);
        assert!(
            said.code == Some(0) && said.out.contains(line),
            "{demands}: {}{}",
            said.out,
            said.err
        );
    }
}

/// The shortest part that distinguishes a kernel names it.
#[test]
fn kernels_have_short_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = [
        "_Z4scanPi",
        "_Z10scan_afterPi",
        "_ZN2ns4fillILi3EEEvPi",
        "_ZN2ns4fillILi4EEEvPi",
        "plain",
    ];
    let module: String = names
        .iter()
        .map(|name| format!(".visible .entry {name}() {{ ret; }}\n"))
        .collect();
    for (short, name) in [
        ("scan", names[0]),
        ("after", names[1]),
        ("fill<3>", names[2]),
        ("ns::fill<4>", names[3]),
        ("pla", "plain"),
    ] {
        let said = import(folder.path(), &module, &["--kernel", short]);
        assert!(
            said.code == Some(0) && said.out.starts_with(&format!("name = \"{name}\"")),
            "{short}: {}",
            said.err
        );
    }
    let said = import(folder.path(), &module, &["--kernel", "fill"]);
    assert!(
        said.code == Some(2)
            && said.err.contains("can be 2 kernels")
            && said.err.contains("(ns::fill<4>)"),
        "{}",
        said.err
    );
    assert!(!said.err.contains("plain"), "{}", said.err);
    let said = import(folder.path(), &module, &["--kernel", "empty"]);
    assert!(
        said.code == Some(2) && said.err.contains("no kernel `empty`"),
        "{}",
        said.err
    );
    assert!(
        import(folder.path(), &module, &[])
            .out
            .contains("_ZN2ns4fillILi3EEEvPi()  line 6  ns::fill<3>")
    );
}

/// A list contains everything that a launch would refuse, each once with all its lines, and nothing
/// that depends on arguments.
#[test]
fn a_list_has_all_refusals() {
    let folder = tempfile::tempdir().expect("a folder");
    let many = "pmevent 1;\n".repeat(11);
    let module = format!(
        ".visible .entry k(.param .u64 p, .param .u32 n, .param .align 8 .b8 s[16])\n{{\n.reg .b64 %rd<4>;\n.reg .b32 %r<9>;\n.reg .pred %p<3>;\n{many}\
         vadd.u32.u32.u32 %r1, %r2, %r3;\nld.param.u64 %rd1, [p];\nld.global.u32 %r4, [%rd1];\nld.param.u64 %rd2, [s+8];\nadd.u64 %rd3, %rd1, %rd2;\n\
         elect.sync %r5|%p1, %r4;\nelect.sync %r6|%p2, %r4;\npmevent 2;\nret;\n}}\n"
    );
    let said = import(folder.path(), &module, &[]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let refused: Vec<&str> = said
        .out
        .lines()
        .filter(|line| line.contains("refused"))
        .collect();
    let [first, second, third] = refused[..] else {
        panic!("{}", said.out)
    };
    assert!(
        first.starts_with(
            "  refused: 12 lines, 9, 10, 11, 12, 13, 14, 15, 16 and 4 more: `pmevent`"
        ),
        "{first}"
    );
    assert!(second.starts_with("  refused: line 20: `vadd`"), "{second}");
    assert_eq!(
        third,
        "  refused: 2 lines, 25, 26: the mask of an election is not a constant"
    );
    // Only the refusals that lowering finds.
    let said = import(
        folder.path(),
        &module
            .replace("pmevent", "// pmevent")
            .replace("vadd", "// vadd"),
        &[],
    );
    let refused: Vec<&str> = said
        .out
        .lines()
        .filter(|line| line.contains("refused"))
        .collect();
    assert_eq!(
        refused,
        ["  refused: 2 lines, 25, 26: the mask of an election is not a constant"],
        "{}",
        said.out
    );
}

/// An array whose size the launch gives may also have floating-point elements.
#[test]
fn shared_arrays_are_of_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = ".extern .shared .align 16 .b8 smem[];\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<3>;\n.reg .b32 %r<3>;\n.reg .f32 %f<3>;\n\
                  ld.param.u64 %rd1, [p];\nmov.u32 %r1, smem;\nst.shared.f32 [%r1+4], 0f3F800000;\nld.shared.f32 %f1, [%r1+4];\n\
                  st.global.f32 [%rd1], %f1;\nret;\n}\n";
    for (arg, line) in [
        (
            "smem=f32[64]",
            "smem = { init = \"unknown\", size = 64, type = \"u32\", space = \"shared\" }",
        ),
        (
            "smem=f32[2]=0.5,1",
            "smem = { init = [1056964608, 1065353216], type = \"u32\", space = \"shared\" }",
        ),
    ] {
        let said = import(
            folder.path(),
            module,
            &["--arg", "0=out:f32", "--arg", arg, "--ask", "out == 1.0"],
        );
        assert!(
            said.code == Some(0) && said.out.contains(line),
            "{arg}: {}{}",
            said.out,
            said.err
        );
    }
    for wrong in ["smem=f33[4]", "smem=f32[", "smem=f32[2]=x"] {
        let said = import(
            folder.path(),
            module,
            &["--arg", "0=out:f32", "--arg", wrong],
        );
        assert!(
            said.code == Some(2) && said.err.contains("error["),
            "{wrong}: {}",
            said.out
        );
    }
}

/// Files are written as a whole: a file that cannot be replaced stays as it was, and no temporary
/// file remains.
#[cfg(unix)]
#[test]
fn imports_are_written_as_a_whole() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().expect("a folder");
    let module = ".visible .entry k() { ret; }\n";
    fs::write(folder.path().join("old.toml"), "old").expect("writable");
    let before = fs::metadata(folder.path().join("old.toml"))
        .expect("there")
        .ino();
    let said = import(
        folder.path(),
        module,
        &["--block", "1", "-o", "old.toml", "--force"],
    );
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_ne!(
        fs::metadata(folder.path().join("old.toml"))
            .expect("there")
            .ino(),
        before,
        "another file"
    );
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    assert_eq!(names, ["k.ptx", "old.toml"]);
}

/// A kernel as compilers of Triton print it: blocks of a demanded size, whose number is masked;
/// shared memory of unsaid length, with addresses of 32 bits; and pointers that it does not use.
fn tile(block: &str, barrier: &str) -> String {
    format!(
        "{HEAD}.extern .shared .align 16 .b8 pool[];\n.visible .entry tile(.param .u64 a, .param \
         .u64 b, .param .u64 scratch)\n{block}\n{{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n\
         ld.param.b64 %rd1, [a];\nld.param.b64 %rd2, [b];\nmov.u32 %r1, %tid.x;\n\
         and.b32 %r2, %r1, 63;\nmov.u32 %r3, %ctaid.x;\nshl.b32 %r4, %r3, 6;\n\
         or.b32 %r4, %r4, %r2;\nmad.wide.u32 %rd3, %r4, 4, %rd1;\n\
         ld.global.b32 %r5, [%rd3];\nmov.b32 %r6, pool;\nshl.b32 %r7, %r2, 2;\n\
         add.s32 %r8, %r6, %r7;\nst.shared.b32 [%r8], %r5;\n{barrier}\n\
         xor.b32 %r7, %r7, 4;\nadd.s32 %r8, %r6, %r7;\nld.shared.b32 %r5, [%r8];\n\
         mad.wide.u32 %rd4, %r4, 4, %rd2;\nst.global.b32 [%rd4], %r5;\nret;\n}}\n"
    )
}

#[test]
fn a_chosen_launch_has_the_blocks_and_the_memory_that_a_kernel_demands() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |text: &str, arguments: &[&str]| {
        fs::write(folder.path().join("tile.ptx"), text).expect("writable");
        fencepost(
            folder.path(),
            &[&["check", "--no-cache", "tile.ptx"], arguments].concat(),
        )
    };
    let right = tile(".reqntid 64", "bar.sync 0;");
    let said = check(&right, &[]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    // A word for each thread of a block.
    assert!(said.out.contains("tile<<<2, 64, 256>>>("), "{}", said.out);
    // All launches have such blocks.
    assert!(said.out.contains("for every launch"), "{}", said.out);
    assert!(said.out.contains("as the kernel demands"), "{}", said.out);
    let chosen = said
        .out
        .lines()
        .find_map(|l| l.strip_prefix("launch chosen: "));
    let again = check(&right, &["--launch", chosen.expect("a launch")]);
    assert_eq!(again.code, Some(0), "{}{}", again.out, again.err);
    let without = check(&tile(".reqntid 64", ""), &[]);
    assert!(without.out.contains("1 racy"), "{}", without.out);
    // Threads 0 and 64 of a larger block access one word.
    for (block, launch) in [("", "--launch=any"), (".maxntid 65", "--launch=any")] {
        let said = check(&tile(block, "bar.sync 0;"), &[launch, "--property", "race"]);
        assert!(!said.out.contains("race-free"), "{block}: {}", said.out);
    }
    let most = check(&tile(".maxntid 64", "bar.sync 0;"), &["--launch=any"]);
    assert!(
        most.out.contains("blocks of at most 64 threads"),
        "{}",
        most.out
    );
}

/// A warp stores a matrix at the addresses of rows that its lanes give, next to an mbarrier object
/// or over it.
#[test]
fn rows_of_a_matrix_may_lie_beside_an_mbarrier_object() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |object: u32| {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n\
             .reg .b32 %r<12>;\n.reg .pred %p<2>;\n.shared .align 16 .b8 s[264];\n\
             mov.u32 %r1, %tid.x;\nmov.u32 %r6, s;\nsetp.eq.u32 %p1, %r1, 0;\n\
             @%p1 mbarrier.init.shared.b64 [%r6+{object}], 1;\n\
             and.b32 %r10, %r1, 15;\nshl.b32 %r10, %r10, 4;\nadd.u32 %r11, %r6, %r10;\n\
             bar.sync 0;\n\
             stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r11], {{%r1, %r1}};\nret;\n}}\n"
        );
        fs::write(folder.path().join("rows.ptx"), text).expect("writable");
        fencepost(folder.path(), &["check", "--no-cache", "rows.ptx"])
    };
    let beside = check(256);
    assert_eq!(beside.code, Some(0), "{}{}", beside.out, beside.err);
    // A matrix takes a whole warp.
    assert!(beside.out.contains("k<<<1, 32>>>"), "{}", beside.out);
    let over = check(240);
    assert_ne!(over.code, Some(0), "{}{}", over.out, over.err);
}
