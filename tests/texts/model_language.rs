//! Tests the model language on its test folders, and the shipped models.
//!
//! `tests/texts/models/ok` holds models that load, with the table each lowers to;
//! `tests/texts/models/err` holds models that do not, with their diagnostics. Snapshots are next to
//! their inputs.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fencepost::diag::{Diagnostic, SourceFile, TextStyle, render};
use fencepost::model::ir::{Kind, Model, NodeId, NodeOp};
use fencepost::model::{
    Library, Shipped, declares_free, load, load_file, load_shipped, parse, print,
};
use fencepost::skeleton::signature::signature;

/// The model files of a folder, sorted.
fn inputs(folder: &str) -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = std::fs::read_dir(Path::new("tests/texts/models").join(folder))
        .expect("the folder exists")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "cat"))
        .collect();
    list.sort();
    assert!(!list.is_empty());
    list
}

fn stem(path: &Path) -> &str {
    path.file_stem()
        .and_then(|s| s.to_str())
        .expect("plain file names")
}

fn prelude(path: &Path) -> &'static str {
    if stem(path).starts_with("ptx") {
        "ptx"
    } else {
        "total"
    }
}

fn rendered(diagnostics: &[Diagnostic]) -> String {
    diagnostics
        .iter()
        .map(|d| render(d, TextStyle::Plain))
        .collect::<Vec<_>>()
        .join("\n")
}

fn snapshot(folder: &str, name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => format!("models/{folder}"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, text);
    });
}

/// A node as text: leaves by name, the rest by number.
fn operator(model: &Model, op: &NodeOp) -> String {
    let n = |id: &NodeId| match &model.node(*id).op {
        NodeOp::Base(id) => model.base(*id).name.to_string(),
        NodeOp::Free(free) => format!("{}!", model.free[free.0 as usize].name),
        NodeOp::Universe => "_".to_string(),
        _ => format!("#{}", id.0),
    };
    match op {
        NodeOp::Base(id) => model.base(*id).name.to_string(),
        NodeOp::Free(free) => format!("free {}", free.0),
        NodeOp::Var(group, member) => format!("var {group}.{member}"),
        NodeOp::Empty => "empty".to_string(),
        NodeOp::Universe => "_".to_string(),
        NodeOp::IdentityOn(a) => format!("[{}]", n(a)),
        NodeOp::Product(a, b) => format!("{} * {}", n(a), n(b)),
        NodeOp::Union(a, b) => format!("{} | {}", n(a), n(b)),
        NodeOp::Inter(a, b) => format!("{} & {}", n(a), n(b)),
        NodeOp::Diff(a, b) => format!("{} \\ {}", n(a), n(b)),
        NodeOp::Seq(a, b) => format!("{} ; {}", n(a), n(b)),
        NodeOp::Inverse(a) => format!("{}^-1", n(a)),
        NodeOp::Plus(a) => format!("{}^+", n(a)),
        NodeOp::Domain(a) => format!("domain({})", n(a)),
        NodeOp::Range(a) => format!("range({})", n(a)),
    }
}

/// The whole model as text.
fn dump(model: &Model) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "name {:?} title {:?}\nheader {:?}",
        model.name, model.title, model.header
    );
    for (at, node) in model.nodes.iter().enumerate() {
        let kind = if node.kind == Kind::Set { "set" } else { "rel" };
        let mode = if node.is_static { "static" } else { "      " };
        let name = node
            .name
            .as_deref()
            .map_or(String::new(), |n| format!("  ({n})"));
        let _ = writeln!(
            out,
            "#{at:<3} {kind} {mode} {}{name}",
            operator(model, &node.op)
        );
    }
    for group in &model.groups {
        let _ = writeln!(
            out,
            "group {:?} vars {:?} bodies {:?} range {:?}",
            group.names, group.vars, group.bodies, group.range
        );
    }
    for free in &model.free {
        let bound = |id: Option<NodeId>| id.map_or("-".to_string(), |id| format!("#{}", id.0));
        let _ = writeln!(
            out,
            "free {} {:?} within #{} containing {} covering {}",
            free.name,
            free.shape,
            free.within.0,
            bound(free.containing),
            bound(free.covering)
        );
    }
    let _ = writeln!(out, "values {} final {}", model.values.0, model.finals.0);
    for (word, list) in [("axiom", &model.axioms), ("flag", &model.flags)] {
        for a in list {
            let not = if a.negated { "~" } else { "" };
            let _ = writeln!(
                out,
                "{word} {}: {not}{:?} #{} doc {:?}",
                a.name, a.test, a.node.0, a.doc
            );
        }
    }
    for (name, node, _) in &model.lets {
        let _ = writeln!(out, "let {name} = #{}", node.0);
    }
    for (name, node) in &model.shows {
        let _ = writeln!(out, "show {name} = #{}", node.0);
    }
    for (name, value) in model.option_words() {
        let _ = writeln!(out, "option {name} = {value}");
    }
    for file in &model.files {
        let _ = writeln!(out, "file {}", file.name);
    }
    out
}

/// Checks the invariants of `model::ir`.
fn check_invariants(model: &Model) {
    let mut depends: Vec<Option<u32>> = vec![None; model.nodes.len()];
    for (at, node) in model.nodes.iter().enumerate() {
        if let NodeOp::Var(group, member) = node.op {
            assert_eq!(
                model.groups[group as usize].vars[member as usize].index(),
                at
            );
            depends[at] = Some(group);
        }
        for operand in node.op.operands() {
            assert!(operand.index() < at, "operands come first: {at}");
            let inside = depends[operand.index()]
                .filter(|&g| model.groups[g as usize].range.contains(&(at as u32)));
            depends[at] = depends[at].or(inside);
            assert!(node.is_static <= model.node(operand).is_static);
        }
        let kinds: Vec<Kind> = node.op.operands().map(|o| model.node(o).kind).collect();
        let (operands, result) = match node.op {
            NodeOp::IdentityOn(_) | NodeOp::Product(..) => (Some(Kind::Set), Some(Kind::Rel)),
            NodeOp::Seq(..) | NodeOp::Inverse(_) | NodeOp::Plus(_) => {
                (Some(Kind::Rel), Some(Kind::Rel))
            }
            NodeOp::Domain(_) | NodeOp::Range(_) => (Some(Kind::Rel), Some(Kind::Set)),
            NodeOp::Union(..) | NodeOp::Inter(..) | NodeOp::Diff(..) => (Some(node.kind), None),
            NodeOp::Free(_) => (None, Some(Kind::Rel)),
            _ => (None, None),
        };
        assert!(
            operands.is_none_or(|k| kinds.iter().all(|&o| o == k))
                && result.is_none_or(|k| k == node.kind)
        );
    }
    for (number, group) in model.groups.iter().enumerate() {
        for at in group.range.clone() {
            assert_eq!(
                depends[at as usize],
                Some(number as u32),
                "everything in the range depends on a variable"
            );
        }
        assert!(group.bodies.iter().all(|b| group.range.contains(&b.0)));
        assert_eq!(group.range.start, group.vars[0].0);
    }
    for free in &model.free {
        for bound in [Some(free.within), free.containing, free.covering]
            .into_iter()
            .flatten()
        {
            assert!(model.node(bound).is_static && model.node(bound).kind == Kind::Rel);
        }
    }
}

/// Checks that parsing the printed text gives the same tree.
fn check_round_trip(source: &Arc<SourceFile>) {
    let (tree, errors) = parse::parse(source);
    assert!(errors.is_empty(), "{}", rendered(&errors));
    let printed = print::file(&tree);
    let again = SourceFile::new("printed", printed.clone());
    let (second, errors) = parse::parse(&again);
    assert!(errors.is_empty(), "{printed}\n{}", rendered(&errors));
    assert_eq!(tree, second, "{printed}");
    assert_eq!(print::file(&second), printed);
}

fn shipped(name: &str) -> Model {
    match load_shipped(name, &signature()).expect("it is listed") {
        Ok(model) => model,
        Err(diagnostics) => panic!("{name}:\n{}", rendered(&diagnostics)),
    }
}

#[test]
fn models_that_load() {
    for path in inputs("ok") {
        let model = match load_file(&path, &signature(), Some(prelude(&path))) {
            Ok(model) => model,
            Err(diagnostics) => panic!("{}:\n{}", path.display(), rendered(&diagnostics)),
        };
        check_invariants(&model);
        check_round_trip(&model.files[0]);
        snapshot("ok", stem(&path), &dump(&model));
    }
}

#[test]
fn models_that_do_not_load() {
    for path in inputs("err") {
        let Err(diagnostics) = load_file(&path, &signature(), Some(prelude(&path))) else {
            panic!("{} loads", path.display());
        };
        snapshot("err", stem(&path), &rendered(&diagnostics));
    }
}

#[test]
fn shipped_models_load_and_say_what_they_are() {
    for name in Library::names() {
        let model = shipped(name);
        check_invariants(&model);
        for file in &model.files {
            check_round_trip(file);
        }
        assert!(
            model.header.contains("Source") && model.header.contains("Deviations"),
            "{name}: {}",
            model.header
        );
        for axiom in &model.axioms {
            assert!(axiom.doc.contains("Forbids "), "{name}: {}", axiom.name);
        }
        assert!(declares_free(&model.files[0], &Shipped));
    }
    let names = Library::names();
    assert!(
        ["c11", "opencl", "ptx", "ptx-v6.0", "ptx-v7.5", "rc11", "sc"]
            .iter()
            .all(|n| names.contains(n))
    );
}

#[test]
fn preludes_and_stand_ins_load() {
    for name in Library::preludes() {
        for include in [
            "basic.cat",
            "cos.cat",
            "c11_cos.cat",
            "c11_los.cat",
            "filters.cat",
            "x86fences.cat",
        ] {
            let main = SourceFile::new("m.cat", format!("include \"{include}\"\nacyclic po | fr"));
            assert!(!declares_free(&main, &Shipped));
            let model = load(main, "m", &Shipped, &signature(), Some(name));
            check_invariants(
                &model.unwrap_or_else(|d| panic!("{name}, {include}:\n{}", rendered(&d))),
            );
        }
    }
}

fn errors_of(text: String) -> Vec<&'static str> {
    match load(
        SourceFile::new("m.cat", text),
        "m",
        &Shipped,
        &signature(),
        Some("total"),
    ) {
        Ok(_) => Vec::new(),
        Err(diagnostics) => diagnostics.iter().map(|d| d.id).collect(),
    }
}

#[test]
fn deep_or_long_text_is_an_answer_and_not_a_crash() {
    let many = 100_000;
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("~", ""),
        ("f(", ")"),
        ("let a = ", " in a"),
        ("try ", " with po"),
    ] {
        let text = format!(
            "let x = {}po{}\nacyclic unknown",
            open.repeat(many),
            close.repeat(many)
        );
        let ids = errors_of(text);
        assert!(
            ids.contains(&"nesting-too-deep") && ids.contains(&"unknown-name"),
            "{open}: {ids:?}"
        );
    }
    for nested in [
        "procedure p() = ",
        "if \"v\" ",
        "procedure p() = $ ",
        "match ",
    ] {
        assert!(!errors_of(nested.repeat(many)).is_empty());
    }
    for chained in [" | po", " ; po", " & po", " \\ po"] {
        assert_eq!(
            errors_of(format!("let x = rf{}\nacyclic x", chained.repeat(20_000))),
            [""; 0]
        );
    }
    assert_eq!(
        errors_of(format!("let x = po{}", "?".repeat(many))),
        ["syntax-error"]
    );
    let at_limit = diag::MAX_NESTING;
    assert_eq!(
        errors_of(format!(
            "let x = {}po{}",
            "(".repeat(at_limit),
            ")".repeat(at_limit)
        )),
        [""; 0]
    );
    assert_eq!(
        errors_of(format!(
            "let x = {}po{}",
            "~".repeat(at_limit),
            "?".repeat(8)
        )),
        [""; 0]
    );
}

#[test]
fn calls_and_brackets_together_stay_within_the_stack() {
    let mut text = "let f0(x) = x\n".to_string();
    for n in 1..60 {
        let _ = writeln!(
            text,
            "let f{n}(x) = {}f{m}(x){}",
            "[domain(".repeat(45),
            ")]".repeat(45),
            m = n - 1
        );
    }
    text.push_str("acyclic f59(co)\n");
    assert!(errors_of(text).contains(&"too-large"));
}

#[test]
fn damaged_text_never_panics() {
    // A linear congruential generator: the test must repeat.
    let mut state = 12_345_u64;
    let mut below = |n: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % n
    };
    let pieces = [
        "let", "rec", "(", ")", "*", "^-1", "~", "|", "in", "and", "é", "\"", "(*", "*)", "0",
        "with", "end",
    ];
    for path in inputs("ok").into_iter().chain(inputs("err")) {
        let original = std::fs::read_to_string(&path).expect("readable");
        for _ in 0..60 {
            let mut text = original.clone();
            for _ in 0..1 + below(4) {
                let mut at = below(text.len().max(1));
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                match below(3) {
                    0 => text.insert_str(at, pieces[below(pieces.len())]),
                    1 if at < text.len() => {
                        text.remove(at);
                    }
                    _ => text.truncate(at.max(1)),
                }
            }
            let source = SourceFile::new("damaged.cat", text);
            if let Err(list) = load(source.clone(), "m", &Shipped, &signature(), Some("total")) {
                assert!(!rendered(&list).is_empty());
            }
            let (tree, errors) = parse::parse(&source);
            if errors.is_empty() {
                let printed = SourceFile::new("printed", print::file(&tree));
                assert_eq!(parse::parse(&printed).0, tree, "{}", printed.text);
            }
        }
    }
}

#[test]
fn functions_that_explode_are_an_answer_and_not_a_hang() {
    let mut text = "let f0(x) = x | po\n".to_string();
    for n in 1..40 {
        let _ = writeln!(text, "let f{n}(x) = f{m}(x ; po) | f{m}(x ; rf)", m = n - 1);
    }
    text.push_str("acyclic f39(co)\n");
    assert!(errors_of(text).contains(&"too-large"));
    let mut text = "let f0(x) = x | po\n".to_string();
    for n in 1..200 {
        let _ = writeln!(text, "let f{n}(x) = f{m}(x)", m = n - 1);
    }
    text.push_str("acyclic f199(co)\n");
    assert!(errors_of(text).contains(&"too-many-calls"));
    assert_eq!(errors_of("lett x = po\n".repeat(1_000)).len(), 1);
    assert_eq!(errors_of("acyclic unknown\n".repeat(1_000)).len(), 101);
}

#[test]
fn a_model_without_free_relations_needs_a_prelude() {
    let main = SourceFile::new("m.cat", "acyclic po | rf");
    let ids = |prelude| match load(main.clone(), "m", &Shipped, &signature(), prelude) {
        Ok(model) => vec![
            model
                .free
                .iter()
                .map(|f| f.name.clone())
                .collect::<Vec<_>>()
                .join(" "),
        ],
        Err(list) => list.iter().map(|d| d.id.to_string()).collect(),
    };
    assert_eq!(ids(None), ["no-prelude"]);
    assert_eq!(ids(Some("totl")), ["unknown-prelude"]);
    assert_eq!(ids(Some("total")), ["rf co"]);
    assert_eq!(ids(Some("ptx")), ["rf co sync_fence"]);
}
