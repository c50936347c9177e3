//! Writes a picture in Graphviz format.
//!
//! # Invariants
//! - Only program order determines the ranks, so time runs down, with initial writes on top. Groups
//!   are clusters.
//!
//! # Sources
//! - Graphviz, *The DOT Language*; *Node, Edge and Graph Attributes*.

use std::fmt::Write;

use super::escape::dot;
use super::scene::{EventRole, Scene};

/// A file with several pictures, as a sequence of graphs.
pub fn several(scenes: &[Scene]) -> String {
    scenes.iter().map(file).collect()
}

/// A file with one picture, without hidden relations.
pub fn file(scene: &Scene) -> String {
    let mut out = String::new();
    let mut label = vec![scene.title.clone()];
    label.extend(scene.facts.iter().chain(&scene.says).cloned());
    let _ = writeln!(out, "digraph {} {{", dot(&scene.title));
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "  graph [label={}, labelloc=t, labeljust=l, fontname=monospace, newrank=true];",
        lines(&label)
    );
    let _ = writeln!(out, "  node [shape=box, fontname=monospace, fontsize=11];");
    let _ = writeln!(out, "  edge [fontname=monospace, fontsize=10];");
    for (e, event) in scene
        .events
        .iter()
        .enumerate()
        .filter(|(_, e)| e.role == EventRole::Init)
    {
        let _ = writeln!(out, "  e{e} [label={}, style=dashed];", dot(&event.action));
    }
    let mut clusters = 0;
    let threads: Vec<usize> = (0..scene.seats.len()).collect();
    cluster(&mut out, scene, &threads, 0, &mut clusters);
    let first = |t: usize| scene.events.iter().position(|e| e.thread == Some(t));
    let firsts: Vec<usize> = threads.iter().filter_map(|&t| first(t)).collect();
    // Invisible edges keep threads next to each other in their order, and initial writes above
    // them.
    for two in firsts.windows(2) {
        let _ = writeln!(
            out,
            "  {{ rank=same; e{} -> e{} [style=invis]; }}",
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
            let _ = writeln!(out, "  e{init} -> e{first} [style=invis];");
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
        let _ = writeln!(out, "  e{} -> e{} [{attributes}];", edge.from, edge.to);
    }
    out.push_str("}\n");
    out
}

/// Writes the threads of one group at `depth`: a cluster for each subgroup, and finally one for
/// each thread.
fn cluster(out: &mut String, scene: &Scene, threads: &[usize], depth: usize, clusters: &mut usize) {
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
            cluster(out, scene, &members, depth + 1, clusters);
        } else {
            events(out, scene, t, &indent);
        }
        let _ = writeln!(out, "{indent}}}");
    }
}

fn events(out: &mut String, scene: &Scene, thread: usize, indent: &str) {
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
        let _ = writeln!(out, "{indent}  e{e} [label={}{mark}{bold}];", lines(&said));
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
