//! Writes a program in OpenCL C as one kernel, for a compiler of the language.
//!
//! # Invariants
//! - The program is one of [`super::shapes::program_of_one_device`]: no barrier is in a branch, and
//!   those of a group are alike.
//! - Work-items without a thread only come to the barriers.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::text::{flags_text, registers};
use super::{Flags, Program, Stmt};

/// A program as a kernel: its code, and its launch.
pub struct ProgramKernel {
    pub code: String,
    pub launch: String,
    /// The buffers that hold results, with their sizes.
    pub observed: Vec<(String, u32)>,
}

/// The bodies of a thread between its barriers, and the barriers.
fn parts(body: &[Stmt]) -> (Vec<Vec<Stmt>>, Vec<Flags>) {
    let (mut parts, mut barriers) = (vec![Vec::new()], Vec::new());
    for stmt in body {
        match stmt {
            Stmt::Barrier { flags } => {
                barriers.push(*flags);
                parts.push(Vec::new());
            }
            stmt => parts.last_mut().expect("never empty").push(stmt.clone()),
        }
    }
    (parts, barriers)
}

impl Program {
    /// The program as the kernel `name`, which writes all registers into a buffer.
    pub fn kernel(&self, name: &str) -> ProgramKernel {
        let groups: BTreeSet<u32> = self.threads.iter().map(|t| t.group).collect();
        let groups: Vec<u32> = groups.into_iter().collect();
        let mut places: Vec<(usize, usize)> = Vec::new();
        for t in &self.threads {
            let group = groups.iter().position(|g| *g == t.group).expect("listed");
            let before = places.iter().filter(|place| place.0 == group).count();
            places.push((group, before));
        }
        let size = 1 + places.iter().map(|place| place.1).max().unwrap_or(0);
        let mut all = BTreeSet::new();
        self.threads
            .iter()
            .for_each(|t| registers(&t.body, &mut all));
        let results = groups.len() * size * all.len();
        let mut buffers: Vec<(String, u32)> = Vec::new();
        let (mut parameters, mut inside) = (Vec::new(), String::new());
        for l in &self.locations {
            let ty = if l.atomic { "atomic_int" } else { "int" };
            if l.local {
                let _ = writeln!(inside, "local {ty} {0}_; local {ty} *{0} = &{0}_;", l.name);
            } else {
                parameters.push(format!("global {ty} *{}", l.name));
                buffers.push((l.name.clone(), 1));
            }
        }
        parameters.push("global int *results".into());
        buffers.push(("results".into(), results.max(1) as u32));
        let mut code = format!("kernel void {name}({}) {{\n{inside}", parameters.join(", "));
        self.begin(&mut code);
        for r in &all {
            let _ = writeln!(code, "int r{r} = -1;");
        }
        self.bodies(&places, &mut code);
        for (at, r) in all.iter().enumerate() {
            let count = all.len();
            let _ = writeln!(code, "results[get_global_id(0) * {count} + {at}] = r{r};");
        }
        code += "}\n";
        let arguments: Vec<String> = (buffers.iter())
            .map(|(name, size)| match *size {
                1 => format!("{name}[1] = 0"),
                n => format!("{name}[{n}] = 0"),
            })
            .collect();
        ProgramKernel {
            code,
            launch: format!(
                "{name}<<<{}, {size}>>>({})",
                groups.len(),
                arguments.join(", ")
            ),
            observed: buffers,
        }
    }

    /// Gives local memory its first values.
    fn begin(&self, code: &mut String) {
        let mut local = self.locations.iter().filter(|l| l.local).peekable();
        if local.peek().is_none() {
            return;
        }
        *code += "if (get_local_id(0) == 0) {\n";
        for l in local {
            let _ = match l.atomic {
                true => writeln!(code, "atomic_init({}, 0);", l.name),
                false => writeln!(code, "*{} = 0;", l.name),
            };
        }
        *code += "}\nwork_group_barrier(CLK_LOCAL_MEM_FENCE);\n";
    }

    /// The code of all threads, between the barriers.
    fn bodies(&self, places: &[(usize, usize)], code: &mut String) {
        let parted: Vec<_> = self.threads.iter().map(|t| parts(&t.body)).collect();
        let most = parted
            .iter()
            .map(|(parts, _)| parts.len())
            .max()
            .unwrap_or(0);
        for n in 0..most {
            let before = n.checked_sub(1);
            let flags = before.and_then(|n| parted.iter().find_map(|(_, all)| all.get(n)));
            if let Some(flags) = flags {
                let _ = writeln!(code, "work_group_barrier({});", flags_text(*flags));
            }
            for ((parts, _), (group, item)) in parted.iter().zip(places) {
                let Some(part) = parts.get(n).filter(|part| !part.is_empty()) else {
                    continue;
                };
                let _ = writeln!(
                    code,
                    "if (get_group_id(0) == {group} && get_local_id(0) == {item}) {{"
                );
                self.body(part, 1, code);
                *code += "}\n";
            }
        }
    }
}
