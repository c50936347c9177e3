//! Pictures: small ones in full, and laws that hold for all tests of the corpus.
//!
//! # Invariants
//! - Boxes, headings and names of edges never overlap, and stay inside the picture; every shown
//!   edge has its name.
//! - Every SVG is well-formed XML that names its parts, every `.dot` file is one graph that parses,
//!   every PDF has its objects where its table says, every PNG has two pixels for a unit, every TikZ
//!   picture is closed, and all are the same when made again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencepost::check::liveness::{Liveness, LivenessTask, ProgressModel};
use fencepost::check::{Engine, Limits, Session};
use fencepost::litmus::{LitmusTest, Quantifier};
use fencepost::model::{self, Model};
use fencepost::program::Dialect;
use fencepost::report::AnswerLine;
use fencepost::report::picture::layout::PictureLayout;
use fencepost::report::picture::layout::geometry::Rect;
use fencepost::report::picture::page::{self, Page, PageView};
use fencepost::report::picture::{RelationChoice, Scene, dot, pdf, png, subject, svg, tikz};
use fencepost::skeleton::signature::signature;
use fencepost::verdict::{Property, Verdict};
use testkit::lines::line;
use testkit::suite::{files, in_parallel, is_long, sample, shipped};

/// Without a time limit, a busy machine draws the same pictures.
fn limits() -> Limits {
    Limits {
        bound: Some(2),
        timeout: None,
    }
}

fn session<'a>(test: &'a LitmusTest, model: &'a Model) -> Session<'a> {
    Session::new(test, model, Engine::Enumerate, limits(), &[]).detailed()
}

/// The answer to the test's query, with everything that shows it.
fn asked(test: &LitmusTest, model: &Model) -> AnswerLine {
    asked_within(test, model, limits())
}

/// Like [`asked`], with other limits, for queries that need not be decided.
fn asked_within(test: &LitmusTest, model: &Model, limits: Limits) -> AnswerLine {
    let negate = test.quantifier == Quantifier::ForAll;
    let mut session = Session::new(test, model, Engine::Enumerate, limits, &[])
        .detailed()
        .with_explanations();
    let answer = session.reachability(test.condition.as_ref(), negate);
    line(
        "test.toml",
        test,
        &model.name,
        Property::Reachability,
        answer,
    )
}

fn parsed(text: &str) -> LitmusTest {
    fencepost::litmus::parse("test.toml", text.as_bytes())
        .expect("a good test")
        .remove(0)
}

fn scenes(line: &AnswerLine, rest: bool) -> Vec<Scene> {
    subject::subjects(line)
        .iter()
        .map(|s| {
            Scene::new(
                s,
                &RelationChoice {
                    relations: None,
                    rest,
                    ..RelationChoice::default()
                },
            )
        })
        .collect()
}

const MP: &str = r#"
name = "MP"
condition = 'P1:r0 == 1 /\ P1:r1 == 0'
memory = { x = 0, f = 0 }
[[thread]]
code = "st.weak x, 1; st.release.gpu f, 1"
[[thread]]
cta = 1
code = "ld.acquire.gpu r0, f; ld.weak r1, x"
"#;

#[test]
fn a_forbidden_outcome_is_drawn_with_its_cycle() {
    let line = asked(&parsed(MP), &shipped("ptx"));
    assert_eq!(line.answer.verdict, Verdict::Forbidden);
    let scenes = scenes(&line, false);
    let bold: Vec<_> = scenes[0].edges.iter().filter(|e| e.bold).collect();
    assert!(!bold.is_empty());
    // Bold edges form cycles: each event has as many outgoing as incoming ones.
    for event in 0..scenes[0].events.len() {
        let (out, into) = bold.iter().fold((0, 0), |(out, into), e| {
            (
                out + usize::from(e.from == event),
                into + usize::from(e.to == event),
            )
        });
        assert_eq!(out, into, "event {event}");
    }
    insta::assert_snapshot!("mp_forbidden_svg", svg::file(&scenes[0]));
    insta::assert_snapshot!("mp_forbidden_dot", dot::file(&scenes[0]));
}

/// A release that is too narrow.
fn narrow() -> LitmusTest {
    parsed(&MP.replace("st.release.gpu", "st.release.cta"))
}

#[test]
fn the_link_that_an_allowed_outcome_lacks_is_drawn_into_its_execution() {
    let line = asked(&narrow(), &shipped("ptx"));
    assert_eq!(line.answer.verdict, Verdict::Allowed);
    let scenes = scenes(&line, false);
    assert_eq!(scenes.len(), 1);
    let bold = |missing: bool| {
        let scene = &scenes[0];
        let names = scene
            .edges
            .iter()
            .filter(|e| e.bold)
            .map(|e| scene.relations[e.relation].name.as_str());
        names
            .filter(|name| name.starts_with("missing: ") == missing)
            .collect::<Vec<_>>()
    };
    assert_eq!(bold(true), ["missing: synchronizes"]);
    assert_eq!(bold(false), ["po", "po", "fr"]);
    assert!(
        scenes[0]
            .says
            .iter()
            .any(|s| s.contains("does not include P1")),
        "{:?}",
        scenes[0].says
    );
    check_layout("narrow", &scenes[0]);
    assert!(svg::file(&scenes[0]).contains("class=\"edge k-missing cycle\""));
}

#[test]
fn a_link_of_events_that_are_not_there_is_drawn_in_the_changed_program() {
    // Only fences forbid store buffering.
    let test = parsed(
        r#"
name = "SB"
condition = 'P0:r0 == 0 /\ P1:r1 == 0'
memory = { x = 0, y = 0 }
[[thread]]
code = "st.relaxed.gpu x, 1; ld.relaxed.gpu r0, y"
[[thread]]
code = "st.relaxed.gpu y, 1; ld.relaxed.gpu r1, x"
"#,
    );
    let line = asked(&test, &shipped("ptx"));
    let scenes = scenes(&line, false);
    assert_eq!(scenes.len(), 2);
    assert!(!scenes[0].edges.iter().any(|e| e.bold));
    assert!(
        scenes[1].says[0].contains("program changed"),
        "{:?}",
        scenes[1].says
    );
    let missing = |e: &&fencepost::report::picture::scene::SceneEdge| {
        scenes[1].relations[e.relation]
            .name
            .starts_with("missing: ")
    };
    assert!(scenes[1].edges.iter().filter(missing).count() > 0);
}

#[test]
fn an_agent_stands_beside_its_thread_in_a_box_of_its_own() {
    // The loop begins the same copy twice, with nothing in between.
    let test = parsed(
        r#"
name = "Copies"
condition = 'P0:r0 == 0'
memory = { x = { init = 0, space = "shared" }, g = 7 }
[[thread]]
cta = 0
code = """
mov.u32 r1, 0
again:
cp.async.ca.shared.global [x], [g], 8
add.u32 r1, r1, 1
setp.lt.u32 p0, r1, 2
@p0 bra again
cp.async.wait_all
ld.shared.u64 r0, [x]
"""
[[thread]]
cta = 0
code = "ld.global.u64 r0, [g]"
"#,
    );
    let line = asked(&test, &shipped("ptx"));
    assert_eq!(line.answer.verdict, Verdict::Forbidden);
    let scene = &scenes(&line, false)[0];
    let seats: Vec<_> = scene
        .seats
        .iter()
        .map(|s| (s.thread.as_str(), s.groups.join(" / ")))
        .collect();
    let cta = "GPU 0 / CTA 0".to_owned();
    let agent = |n: u32| ("from line 10", format!("{cta} / P0's agent {n}"));
    assert_eq!(
        seats,
        [("P0", cta.clone()), agent(1), agent(2), ("P1", cta.clone())]
    );
    for seat in [1, 2] {
        let own = scene.events.iter().filter(|e| e.thread == Some(seat));
        let done: Vec<_> = own.map(|e| e.action.split_once(": ").unwrap().1).collect();
        assert_eq!(done, ["R g = 7", "W x = 7"]);
    }
    check_layout("copies", scene);
    let (dot, svg) = (dot::file(scene), svg::file(scene));
    for named in ["P0's agent 1", "P0's agent 2"] {
        assert!(dot.contains(&format!("label=\"{named}\"")), "{dot}");
        assert!(
            svg.contains(&format!(
                "class=\"dim\">{}</text>",
                named.replace('\'', "&#39;")
            )),
            "{svg}"
        );
    }
}

#[test]
fn a_file_shows_every_axiom_of_the_set() {
    let file = "litmus/ptx/02-fence-sc/R+fence.sc.gpu+fence.sc.gpu.toml";
    let (code, text, _) = fencepost(&["show", file, "--model", "ptx", "--engine", "enumerate"]);
    assert_eq!(code, 0);
    check_svg("both", &text);
    assert!(
        text.contains("breaks Coherence") || text.contains("Coherence ("),
        "{text}"
    );
    assert!(text.contains("Causality ("), "{text}");
    assert_eq!(text.matches("<g transform=\"translate(0 ").count(), 1);
}

#[test]
fn the_accesses_of_a_race_are_marked() {
    let test = parsed(
        r#"
name = "Race"
dialect = "cuda"
condition = 'P1:r0 == 1'
memory = { x = 0 }
[[thread]]
code = "x = 1;"
[[thread]]
block = 1
code = "int r0 = x;"
"#,
    );
    let model = shipped("cuda");
    let answer = session(&test, &model)
        .race()
        .expect("the model knows races");
    let line = line("test.toml", &test, "cuda", Property::Race, answer);
    let scene = &scenes(&line, false)[0];
    let marked: Vec<_> = scene
        .events
        .iter()
        .filter(|e| e.mark.is_some())
        .map(|e| e.code.as_str())
        .collect();
    assert_eq!(marked, ["7: x = 1;", "10: int r0 = x;"]);
    insta::assert_snapshot!("race_dot", dot::file(scene));
}

#[test]
fn a_hang_is_drawn_with_who_waits_for_whom() {
    let test = parsed(
        r#"
name = "Two barriers"
condition = "true"
[[thread]]
code = "bar.sync 0, 2; bar.sync 1, 2"
[[thread]]
code = "bar.sync 1, 2; bar.sync 0, 2"
"#,
    );
    let ptx = shipped("ptx");
    let setting = LivenessTask::new(&test, &ptx);
    let answer = Liveness::new(&setting, Engine::Enumerate, limits(), &[]).ask(ProgressModel::Fair);
    assert_eq!(answer.verdict, Verdict::Hangs);
    let line = line(
        "test.toml",
        &test,
        "ptx",
        Property::Liveness("fair".into()),
        answer,
    );
    let scene = &scenes(&line, false)[0];
    let bold = scene
        .edges
        .iter()
        .filter(|e| e.bold && scene.relations[e.relation].name == "waits for");
    assert_eq!(bold.count(), 2, "each waits for the other");
    insta::assert_snapshot!("hang_dot", dot::file(scene));
}

/// Threads of a kernel that meet at a barrier: more than a picture shows.
#[test]
fn what_is_not_drawn_is_said() {
    let test = parsed(
        r#"
name = "Forty"
condition = "a[0] == 0"
memory = { a = [0] }
[kernel]
block = 40
code = """
ld.weak.u32 r0, a[0];
bar.sync 0;
"""
"#,
    );
    let ptx = shipped("ptx");
    let answer = session(&test, &ptx).reachability(test.condition.as_ref(), false);
    let line = line("test.toml", &test, "ptx", Property::Reachability, answer);
    let scene = &scenes(&line, false)[0];
    assert_eq!(scene.seats.len(), 32);
    assert!(
        scene
            .says
            .iter()
            .any(|s| s.contains("8 more threads with 24 events")),
        "{:?}",
        scene.says
    );
    check_layout("Forty", scene);
}

#[test]
fn names_with_markup_are_text_everywhere() {
    // Files with such names are refused, but a user of the library may have them.
    let evil = "</title><script>alert(1)</script>\n\"'&\u{7}\u{202e} --> \\";
    let mut test = parsed(MP);
    test.name = evil.into();
    test.program.threads[0].name = evil.into();
    test.program.threads[0].code[0].text = evil.into();
    let line = asked(&test, &shipped("ptx"));
    assert!(line.test.contains("<script>"));
    for scene in scenes(&line, true) {
        check_layout("evil", &scene);
        check_svg("evil", &svg::file(&scene));
        check_dot("evil", &dot::file(&scene));
        let view = PageView {
            outcome: 0,
            model: 0,
            verdict: "x".into(),
            texts: vec![line.test.clone()],
            scenes: vec![scene],
        };
        let page = Page {
            title: line.test.clone(),
            about: vec![line.test.clone()],
            models: vec![line.test.clone()],
            outcomes: vec![line.test.clone()],
            views: vec![view],
            notes: vec![line.test.clone()],
        };
        let page = page::file(&page);
        assert_eq!(page.matches("<script>").count(), 1, "only its own");
        assert_eq!(
            page.matches("</title>").count(),
            page.matches("<title").count()
        );
    }
}

#[test]
fn long_code_is_cut_and_kept_whole_as_a_tooltip() {
    let sum = vec!["1"; 60].join(" + ");
    let test = parsed(&format!(
        "name = \"Long\"\ndialect = \"cuda\"\ncondition = 'x == 60'\nmemory = {{ x = 0 }}\n[[thread]]\ncode = \"x = {sum};\"\n"
    ));
    let line = asked(&test, &shipped("cuda"));
    let scene = &scenes(&line, false)[0];
    check_layout("Long", scene);
    let svg = svg::file(scene);
    assert!(svg.contains('\u{2026}'));
    assert!(svg.contains(&sum), "the tooltip has all of it");
    let width = PictureLayout::of(scene, true).size.0;
    assert!(width < 700.0, "{width}");
}

/// The picture of the race in [`RACE_OF_MANY`].
fn race_of_many(choice: &RelationChoice) -> Scene {
    let test = parsed(RACE_OF_MANY);
    let model = shipped("ptx");
    let answer = session(&test, &model)
        .race()
        .expect("the model knows races");
    assert_eq!(answer.verdict, Verdict::Racy);
    let line = line("test.toml", &test, "ptx", Property::Race, answer);
    Scene::new(&subject::subjects(&line)[0], choice)
}

const RACE_OF_MANY: &str = r#"
name = "Many"
condition = "a[0] == 0"
memory = { a = [0] }
[kernel]
block = 8
code = """
st.weak.u32 a[0], 1;
"""
"#;

#[test]
fn a_picture_of_a_race_may_show_the_pair_alone() {
    let whole = race_of_many(&RelationChoice::default());
    assert_eq!(whole.seats.len(), 8);
    let pair = race_of_many(&RelationChoice {
        only_vital: true,
        ..RelationChoice::default()
    });
    assert_eq!(pair.seats.len(), 2);
    assert!(pair.events.iter().all(|event| event.mark.is_some()));
    assert!(pair.says.iter().any(|s| s.contains("6 more threads")));
    check_layout("the pair", &pair);
}

#[test]
fn initial_writes_and_text_may_be_left_out() {
    let initial = |scene: &Scene| {
        let events = scene.events.iter();
        events.filter(|event| event.thread.is_none()).count()
    };
    let whole = race_of_many(&RelationChoice::default());
    assert!(initial(&whole) > 0 && !whole.title.is_empty());
    let bare = race_of_many(&RelationChoice {
        no_initial: true,
        no_caption: true,
        ..RelationChoice::default()
    });
    assert_eq!(initial(&bare), 0);
    assert_eq!(
        (bare.title.as_str(), bare.facts.len(), bare.says.len()),
        ("", 0, 0)
    );
    check_layout("bare", &bare);
    check_pdf("bare", &pdf::file(&[bare]));
}

#[test]
fn several_pictures_are_one_graph() {
    let scene = race_of_many(&RelationChoice::default());
    let text = dot::several(&[scene.clone(), scene]);
    check_dot("two", &text);
    assert_eq!(text.matches("digraph").count(), 1);
    assert!(text.contains("s0_e0") && text.contains("s1_e0"), "{text}");
}

#[test]
fn every_test_has_a_good_picture() {
    let models = Mutex::default();
    let files: Vec<PathBuf> = sample(files(Path::new("litmus"), &["toml"])).collect();
    let each = if is_long() { 2 } else { 1 };
    let drawn = in_parallel(&files, |_, file| {
        let name = file.display().to_string();
        let read = fencepost::litmus::read(&name, &std::fs::read(file).unwrap())
            .expect("the corpus is valid");
        let (mut pictures, mut cycles) = (0, 0);
        for test in read.tests.iter().take(each) {
            let Some(model) = model_for(test, &models) else {
                continue;
            };
            let line = asked_within(
                test,
                &model,
                Limits {
                    timeout: Some(Duration::from_secs(1)),
                    ..limits()
                },
            );
            for scene in [false, true]
                .into_iter()
                .flat_map(|rest| scenes(&line, rest))
            {
                let name = format!("{name}: {} under {}", test.name, model.name);
                check_layout(&name, &scene);
                let text = svg::file(&scene);
                check_svg(&name, &text);
                check_dot(&name, &dot::file(&scene));
                check_pdf(&name, &pdf::file(std::slice::from_ref(&scene)));
                check_tikz(&name, &tikz::file(std::slice::from_ref(&scene)));
                // Compressing takes longer than all other forms.
                if pictures % 8 == 0 {
                    let pixels = png::file(std::slice::from_ref(&scene)).expect("a small picture");
                    check_png(&name, &pixels, &text);
                }
                assert_eq!(text, svg::file(&scene));
                pictures += 1;
                cycles += usize::from(scene.edges.iter().any(|e| e.bold));
            }
        }
        (pictures, cycles)
    });
    let (pictures, cycles) = drawn
        .iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(
        pictures > 100 && cycles > 20 * each,
        "{pictures} pictures, {cycles} of them with a cycle"
    );
}

/// The first model in the test's expectations that needs no mapping.
fn model_for(test: &LitmusTest, models: &Mutex<HashMap<String, Arc<Model>>>) -> Option<Arc<Model>> {
    let default = test.program.dialect.default_model().to_owned();
    let ptx = test.program.dialect == Dialect::Ptx;
    let name = test
        .expect
        .keys()
        .find(|name| ptx || !name.starts_with("ptx"))
        .cloned()
        .unwrap_or(default);
    let mut models = models.lock().unwrap();
    if !models.contains_key(&name) {
        models.insert(
            name.clone(),
            Arc::new(model::load_shipped(&name, &signature())?.expect("valid")),
        );
    }
    models.get(&name).cloned()
}

fn check_layout(name: &str, scene: &Scene) {
    let layout = PictureLayout::of(scene, true);
    let solid = layout.solid();
    let (width, height) = layout.size;
    for (i, a) in solid.iter().enumerate() {
        let inside =
            a.x >= 0.0 && a.y >= 0.0 && a.right() <= width + 1.0 && a.bottom() <= height + 1.0;
        assert!(inside, "{name}: {a:?} is not inside {width} × {height}");
        for b in &solid[..i] {
            // Columns are measured to the tenth of a pixel.
            let a = Rect {
                x: a.x + 0.1,
                y: a.y + 0.1,
                w: a.w - 0.2,
                h: a.h - 0.2,
            };
            assert!(!a.overlaps(b), "{name}: {a:?} and {b:?} overlap");
        }
    }
    for (edge, drawn) in scene.edges.iter().zip(&layout.edges) {
        let relation = &scene.relations[edge.relation];
        assert!(
            drawn.label.is_some() || !relation.shown,
            "{name}: an edge of {} has no name",
            relation.name
        );
        assert!(
            drawn
                .path
                .points(5.0)
                .iter()
                .all(|p| p.x.is_finite() && p.y.is_finite()),
            "{name}"
        );
        // An edge ends at the boxes that it joins.
        for (event, end) in [(edge.from, drawn.path.start), (edge.to, drawn.path.end())] {
            let r = layout.events[event].rect;
            let near = Rect {
                x: r.x - 1.0,
                y: r.y - 1.0,
                w: r.w + 2.0,
                h: r.h + 2.0,
            };
            assert!(
                near.holds(end),
                "{name}: an edge of {} misses its event",
                relation.name
            );
        }
    }
}

fn check_svg(name: &str, text: &str) {
    let document = roxmltree::Document::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"), "{name}");
    let named: Vec<_> = root
        .attribute("aria-labelledby")
        .unwrap_or("")
        .split(' ')
        .collect();
    for (id, tag) in named.iter().zip(["title", "desc"]) {
        let found = root.children().find(|c| c.attribute("id") == Some(id));
        let found = found.unwrap_or_else(|| panic!("{name}: no element {id}"));
        assert!(
            found.has_tag_name(("http://www.w3.org/2000/svg", tag)) && found.text().is_some(),
            "{name}"
        );
    }
    assert!(
        !root.descendants().any(|n| n.has_tag_name("script")),
        "{name}"
    );
}

/// A reader for the written part of Graphviz's language: `digraph ID { statements }`, strings in
/// quotes.
fn check_dot(name: &str, text: &str) {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            c if c.is_whitespace() => {
                rest = &rest[c.len_utf8()..];
                continue;
            }
            '"' => {
                let mut escaped = false;
                let end = rest[1..].char_indices().find(|&(_, c)| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                end.unwrap_or_else(|| panic!("{name}: a string has no end: {rest}"))
                    .0
                    + 2
            }
            '-' if rest.starts_with("->") => 2,
            c if c.is_alphanumeric() || c == '_' || c == '.' => rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
                .unwrap_or(rest.len()),
            '{' | '}' | '[' | ']' | '=' | ',' | ';' => 1,
            other => panic!("{name}: `{other}` has no place here: {rest}"),
        };
        tokens.push(&rest[..length]);
        rest = &rest[length..];
    }
    assert_eq!((tokens[0], tokens[2]), ("digraph", "{"), "{name}");
    let (mut depth, mut nodes, mut ends) = (0_i32, Vec::new(), Vec::new());
    for (i, token) in tokens.iter().enumerate() {
        depth += i32::from(*token == "{") - i32::from(*token == "}");
        assert!(
            depth > 0 || i < 3 || i + 1 == tokens.len(),
            "{name}: it goes on after its end"
        );
        match *token {
            "->" => ends.extend([tokens[i - 1], tokens[i + 1]]),
            "[" if !ends.contains(&tokens[i - 1]) => nodes.push(tokens[i - 1]),
            "=" => assert!(
                !"{}[]=,;".contains(tokens[i + 1]),
                "{name}: a key has no value"
            ),
            _ => {}
        }
    }
    assert_eq!(depth, 0, "{name}");
    assert!(
        ends.iter().all(|e| nodes.contains(e)),
        "{name}: an edge joins no nodes"
    );
}

/// The table of a PDF names the place of each object, and streams have the length that is written.
fn check_pdf(name: &str, text: &str) {
    assert!(text.is_ascii() && text.starts_with("%PDF-1.4\n"), "{name}");
    assert!(text.ends_with("%%EOF\n"), "{name}");
    let number = |text: &str| text.trim().parse::<usize>().expect("a number");
    let (_, end) = text.rsplit_once("startxref\n").expect("an end");
    let table = number(end.lines().next().expect("a place"));
    let rows = text[table..].strip_prefix("xref\n0 8\n").expect("a table");
    for (object, row) in rows.lines().take(8).enumerate().skip(1) {
        let place = number(&row[..10]);
        let head = format!("{object} 0 obj\n");
        assert!(text[place..].starts_with(&head), "{name}: object {object}");
    }
    let (_, stream) = text.split_once("/Length ").expect("a stream");
    let (length, stream) = stream.split_once(" >>\nstream\n").expect("a length");
    assert!(
        stream[number(length)..].starts_with("endstream"),
        "{name}: the length is wrong"
    );
}

/// A PNG has the size of the SVG, two pixels for a unit, and an end.
fn check_png(name: &str, pixels: &[u8], svg: &str) {
    assert!(pixels.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
    assert!(pixels.ends_with(b"IEND\xaeB`\x82"), "{name}");
    let number = |at: usize| u32::from_be_bytes(pixels[at..at + 4].try_into().unwrap());
    let tree = roxmltree::Document::parse(svg).expect("well-formed XML");
    let of_svg = |key: &str| {
        let size: f64 = tree.root_element().attribute(key).unwrap().parse().unwrap();
        (2.0 * size) as u32
    };
    let (width, height) = (of_svg("width"), of_svg("height"));
    assert_eq!((number(16), number(20)), (width, height), "{name}");
}

/// Each command of a TikZ picture is closed, and braces come in pairs.
fn check_tikz(name: &str, text: &str) {
    let mut lines = text.lines().filter(|line| !line.starts_with('%'));
    assert!(
        lines
            .next()
            .is_some_and(|l| l.starts_with("\\begin{tikzpicture}")),
        "{name}"
    );
    assert_eq!(lines.next_back(), Some("\\end{tikzpicture}"), "{name}");
    for line in lines {
        assert!(
            line.starts_with('\\') && line.ends_with(';'),
            "{name}: {line}"
        );
        let plain = line.replace("\\{", "").replace("\\}", "");
        let mut depth = 0_i32;
        for c in plain.chars() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            assert!(depth >= 0, "{name}: {line}");
        }
        assert_eq!(depth, 0, "{name}: {line}");
    }
}

fn fencepost(arguments: &[&str]) -> (i32, String, String) {
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (
        run.status.code().expect("an exit code"),
        text(run.stdout),
        text(run.stderr),
    )
}

/// A file of the corpus with a forbidden outcome, and one with several tests.
const ONE: &str = "litmus/ptx/06-causality/MP+rel.gpu+acq.gpu.toml";
const SEVERAL: &str = "litmus/liveness/barriers.toml";

#[test]
fn show_writes_what_the_name_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (code, svg, _) = fencepost(&["show", ONE, "--engine", "enumerate"]);
    assert_eq!(code, 0);
    check_svg("standard output", &svg);
    for name in ["a.svg", "a.dot", "a.pdf", "a.png", "a.tex", "a.html"] {
        let (code, out, err) = fencepost(&["show", ONE, "-o", &at(name), "--engine", "enumerate"]);
        assert_eq!((code, out.as_str()), (0, ""), "{err}");
    }
    assert_eq!(std::fs::read_to_string(at("a.svg")).unwrap(), svg);
    check_dot("a.dot", &std::fs::read_to_string(at("a.dot")).unwrap());
    check_pdf("a.pdf", &std::fs::read_to_string(at("a.pdf")).unwrap());
    check_tikz("a.tex", &std::fs::read_to_string(at("a.tex")).unwrap());
    check_png("a.png", &std::fs::read(at("a.png")).unwrap(), &svg);
    // A file is replaced, not overwritten: a program that has the old one open keeps the whole of
    // it.
    std::fs::write(at("old.svg"), "old").unwrap();
    std::fs::hard_link(at("old.svg"), at("kept.svg")).unwrap();
    assert_eq!(
        fencepost(&["show", ONE, "-o", &at("old.svg"), "--engine", "enumerate"]).0,
        0
    );
    assert_eq!(std::fs::read_to_string(at("kept.svg")).unwrap(), "old");
    assert_eq!(std::fs::read_to_string(at("old.svg")).unwrap(), svg);
    let page = std::fs::read_to_string(at("a.html")).unwrap();
    for outside in ["http-equiv=\"refresh\"", "src=", "href=", "@import", "url("] {
        assert!(
            !page.contains(outside),
            "the page would fetch something: {outside}"
        );
    }
    // The query and four outcomes, under four models.
    assert_eq!(page.matches("<section class=\"view\"").count(), 20);
    for bad in [at("a.bmp"), "no/such/folder/a.svg".to_owned()] {
        assert_eq!(
            fencepost(&["show", ONE, "-o", &bad, "--engine", "enumerate"]).0,
            2,
            "{bad}"
        );
    }
}

#[test]
fn show_draws_the_relations_that_are_asked_for() {
    let ask =
        |names: &str| fencepost(&["show", ONE, "--relations", names, "--engine", "enumerate"]);
    let (code, svg, _) = ask("rf,base-causality");
    assert_eq!(code, 0);
    assert!(svg.contains("data-rel=\"base-causality\"") && !svg.contains("data-rel=\"co\""));
    let (code, out, err) = ask("base-casuality");
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("did you mean `base-causality`"), "{err}");
    let (code, _, err) = ask("rmw");
    assert_eq!(code, 0);
    assert!(err.contains("`rmw` relates no events"), "{err}");
}

#[test]
fn show_wants_one_test_and_one_model() {
    let (code, _, err) = fencepost(&["show", SEVERAL]);
    assert_eq!(code, 2);
    assert!(err.contains("choose one with `--name`"), "{err}");
    let (code, _, err) = fencepost(&["show", SEVERAL, "--name", "Count.mett"]);
    assert_eq!(code, 2);
    assert!(err.contains("did you mean `Count.met`"), "{err}");
    let (code, _, err) = fencepost(&["show", ONE, "--model", "ptx", "--model", "sc"]);
    assert_eq!(code, 2);
    assert!(err.contains("choose one with `--model`"), "{err}");
    let (code, _, err) = fencepost(&["show", ONE, "--property", "rac"]);
    assert_eq!(code, 2);
    assert!(err.contains("did you mean `race`"), "{err}");
}

#[test]
fn a_report_has_a_row_for_each_answer_and_pictures_where_they_are_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = |name: &str, pictures: &str| {
        let file = folder.path().join(name);
        let to = format!("html={}", file.display());
        let arguments = [
            "check",
            "litmus/ptx/06-causality",
            "--engine",
            "enumerate",
            "--pictures",
            pictures,
        ];
        let (code, out, err) =
            fencepost(&[&arguments[..], &["--format", "jsonl", "--report", &to]].concat());
        assert_eq!(code, 0, "{err}");
        (std::fs::read_to_string(file).unwrap(), out)
    };
    let (all, lines) = report("all.html", "all");
    let (again, _) = report("again.html", "all");
    assert!(all == again, "two runs give two pages");
    let (unmet, plain) = report("unmet.html", "unmet");
    assert_eq!(all.matches("<tbody ").count(), lines.lines().count());
    assert_eq!(unmet.matches("<tbody ").count(), plain.lines().count());
    assert!(all.matches("<figure").count() >= lines.lines().count() / 2);
    assert_eq!(
        unmet.matches("<figure").count(),
        0,
        "everything is as expected"
    );
    assert!(
        !lines.contains("\"witness\""),
        "evidence is for the page alone"
    );
}
