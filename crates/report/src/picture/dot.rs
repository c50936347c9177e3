//! Writes a picture in Graphviz format.
//!
//! # Invariants
//! - A file is one graph: Graphviz draws the further ones of a file elsewhere, or not at all.
//! - Only program order determines the ranks, so time runs down, with initial writes on top. Groups
//!   are clusters.
//!
//! # Sources
//! - Graphviz, *The DOT Language*; *Node, Edge and Graph Attributes*.

use std::fmt::Write;

use super::escape::dot;
use super::scene::{EventRole, Scene};

/// A file with several pictures, each a cluster of one graph.
pub fn several(scenes: &[Scene]) -> String {
    if let [scene] = scenes {
        return file(scene);
    }
    let title = scenes.first().map_or("", |scene| scene.title.as_str());
    let mut out = opened(title, "");
    let mut clusters = 0;
    for (number, scene) in scenes.iter().enumerate() {
        let _ = writeln!(out, "  subgraph cluster_{clusters} {{");
        clusters += 1;
        let label = lines(&labels(scene));
        let _ = writeln!(out, "  label={label}; labelloc=t; labeljust=l;");
        graph(&mut out, scene, &format!("s{number}_"), &mut clusters);
        out.push_str("  }\n");
    }
    out.push_str("}\n");
    out
}

/// A file with one picture, without hidden relations.
pub fn file(scene: &Scene) -> String {
    let label = lines(&labels(scene));
    let attributes = format!("label={label}, labelloc=t, labeljust=l, ");
    let mut out = opened(&scene.title, &attributes);
    graph(&mut out, scene, "", &mut 0);
    out.push_str("}\n");
    out
}

/// The texts of a picture.
fn labels(scene: &Scene) -> Vec<String> {
    let mut label: Vec<String> = Some(scene.title.clone())
        .filter(|title| !title.is_empty())
        .into_iter()
        .collect();
    label.extend(scene.facts.iter().chain(&scene.says).cloned());
    label
}

/// The beginning of a graph.
fn opened(title: &str, attributes: &str) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "digraph {} {{", dot(title));
    let _ = writeln!(
        out,
        "  graph [{attributes}fontname=monospace, newrank=true];"
    );
    let _ = writeln!(out, "  node [shape=box, fontname=monospace, fontsize=11];");
    let _ = writeln!(out, "  edge [fontname=monospace, fontsize=10];");
    out
}

/// The nodes and edges of a picture; `own` begins their names.
fn graph(out: &mut String, scene: &Scene, own: &str, clusters: &mut usize) {
    for (e, event) in scene
        .events
        .iter()
        .enumerate()
        .filter(|(_, e)| e.role == EventRole::Init)
    {
        let _ = writeln!(
            out,
            "  {own}e{e} [label={}, style=dashed];",
            dot(&event.action)
        );
    }
    let threads: Vec<usize> = (0..scene.seats.len()).collect();
    cluster(out, scene, own, &threads, 0, clusters);
    let first = |t: usize| scene.events.iter().position(|e| e.thread == Some(t));
    let firsts: Vec<usize> = threads.iter().filter_map(|&t| first(t)).collect();
    // Invisible edges keep threads next to each other in their order, and initial writes above
    // them.
    for two in firsts.windows(2) {
        let _ = writeln!(
            out,
            "  {{ rank=same; {own}e{} -> {own}e{} [style=invis]; }}",
            two[0], two[1]
        );
    }
    for (init, _) in scene
        .events
        .iter()
        .enumerate()
        .filter(|(_, e)| e.role == EventRole::Init)
    {
        if let Some(first) = firsts.first() {
            let _ = writeln!(out, "  {own}e{init} -> {own}e{first} [style=invis];");
        }
    }
    for edge in &scene.edges {
        let relation = &scene.relations[edge.relation];
        if !relation.shown {
            continue;
        }
        let mut attributes = format!(
            "label={}, color={}",
            dot(&relation.name),
            dot(relation.kind.light)
        );
        let _ = write!(attributes, ", fontcolor={}", dot(relation.kind.light));
        if !relation.kind.dashes.is_empty() {
            attributes.push_str(if relation.kind.class == "fr" {
                ", style=dotted"
            } else {
                ", style=dashed"
            });
        }
        if edge.bold {
            attributes.push_str(", penwidth=3.5");
        }
        if edge.both {
            attributes.push_str(", dir=both");
        }
        if relation.kind.class != "po" {
            attributes.push_str(", constraint=false");
        }
        let (from, to) = (edge.from, edge.to);
        let _ = writeln!(out, "  {own}e{from} -> {own}e{to} [{attributes}];");
    }
}

/// Writes the threads of one group at `depth`: a cluster for each subgroup, and finally one for
/// each thread.
fn cluster(
    out: &mut String,
    scene: &Scene,
    own: &str,
    threads: &[usize],
    depth: usize,
    clusters: &mut usize,
) {
    let indent = "  ".repeat(depth + 1);
    let mut done: Vec<&str> = Vec::new();
    for &t in threads {
        let group = scene.seats[t].groups.get(depth).map(String::as_str);
        let label = match group {
            Some(label) if done.contains(&label) => continue,
            Some(label) => label,
            None => scene.seats[t].thread.as_str(),
        };
        let _ = writeln!(out, "{indent}subgraph cluster_{clusters} {{");
        *clusters += 1;
        let _ = writeln!(out, "{indent}  label={};", dot(label));
        if group.is_some() {
            done.push(label);
            let members: Vec<usize> = threads
                .iter()
                .copied()
                .filter(|&o| scene.seats[o].groups.get(depth).map(String::as_str) == group)
                .collect();
            cluster(out, scene, own, &members, depth + 1, clusters);
        } else {
            events(out, scene, own, t, &indent);
        }
        let _ = writeln!(out, "{indent}}}");
    }
}

fn events(out: &mut String, scene: &Scene, own: &str, thread: usize, indent: &str) {
    for (e, event) in scene
        .events
        .iter()
        .enumerate()
        .filter(|(_, e)| e.thread == Some(thread))
    {
        let mut said = vec![event.action.clone()];
        said.extend(Some(event.code.clone()).filter(|c| !c.is_empty()));
        said.extend(event.mark.clone());
        let mark = if event.mark.is_some() {
            ", style=filled, fillcolor=\"#fff3d6\""
        } else {
            ""
        };
        let bold = if event.on_cycle || event.mark.is_some() {
            ", penwidth=2.5"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "{indent}  {own}e{e} [label={}{mark}{bold}];",
            lines(&said)
        );
    }
}

/// Several lines as one left-aligned label.
fn lines(texts: &[String]) -> String {
    let quoted = texts.iter().map(|t| {
        let quoted = dot(t);
        format!("{}\\l", &quoted[1..quoted.len() - 1])
    });
    format!("\"{}\"", quoted.collect::<String>())
}
