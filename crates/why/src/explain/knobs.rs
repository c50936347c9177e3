//! What of a program an explanation turns: down, to see what an answer rests on; up, to see what it lacks.
//!
//! # Invariants
//! - The levels of a knob go from the weakest to the strongest, and one of them is what is written: the last one of
//!   [`weaker`], the first one of [`stronger`].
//! - Copies of one instruction (threads of one kernel) have one knob; barriers that meet have one, too, since a barrier
//!   without its partner waits for ever.

use crate::repair::knobs::{Spot, sites_of};
use cat::model::ir::{Model, NodeOp};
use front::isa::ptx;
use program::edits::{Change, Edit, Fence, PROXIES, Site, edited, enough, fence_text};
use program::litmus::LitmusTest;
use program::strength;
use program::tags::scope_suffix;
use program::words::Order;
use program::{BarrierNaming, Dialect, Expr, Instr, LocationKind, Op, Program, Scope, Space, Thread, ThreadId};
use verdict::Need;

/// What an access is that is not strong.
pub(super) const WEAK: &str = ".weak";

/// One thing that can be turned.
#[derive(Clone, Debug)]
pub(super) struct Knob {
    /// The thread, or threads; empty for something else than an instruction.
    thread: String,
    line: u32,
    text: String,
    levels: Vec<Level>,
    /// Whether it is worth saying that it may be weaker.
    pub(super) may_be_spare: bool,
}

/// One of its levels: what it takes, and what is there then; empty: nothing.
#[derive(Clone, Debug)]
struct Level {
    edits: Vec<Edit>,
    says: String,
}

impl Knob {
    /// Its strongest level.
    pub(super) fn top(&self) -> usize {
        self.levels.len() - 1
    }

    /// What is there at one level, and what is at another.
    pub(super) fn need(&self, what: usize, instead: usize) -> Need {
        Need {
            thread: self.thread.clone(),
            line: self.line,
            text: self.text.clone(),
            what: self.levels[what].says.clone(),
            instead: self.levels[instead].says.clone(),
        }
    }
}

/// The edits of a setting.
pub(super) fn edits(knobs: &[Knob], setting: &[usize]) -> Vec<Edit> {
    knobs.iter().zip(setting).flat_map(|(knob, &level)| knob.levels[level].edits.clone()).collect()
}

/// The test after some edits; what was changed says so in its text.
pub(super) fn version(test: &LitmusTest, edits: &[Edit]) -> LitmusTest {
    let mut program = edited(&test.program, edits);
    for (site, change) in edits {
        let Site::Instr(t, i) = *site else { continue };
        let before = |e: &&Edit| matches!(**e, (Site::Instr(u, j), Change::FenceBefore(_)) if u == t && j <= i);
        let at = i + edits.iter().filter(before).count();
        let (thread, old) = (&program.threads[usize::from(t.0)], &test.program.thread(t).code[i]);
        let text = match change {
            Change::FenceBefore(_) | Change::Nothing | Change::Value(_) | Change::Path(_) => continue,
            _ => written(thread, &thread.code[at], &program).unwrap_or_else(|| changed(old, *change, &program)),
        };
        program.threads[usize::from(t.0)].code[at].text = text;
    }
    LitmusTest { program, ..test.clone() }
}

/// An instruction of PTX as it would be written.
fn written(thread: &Thread, instr: &Instr, program: &Program) -> Option<String> {
    if program.dialect != Dialect::Ptx {
        return None;
    }
    let alone = Thread { code: vec![instr.clone()], ..thread.clone() };
    ptx::print(&alone, program).ok().map(|text| text.trim().to_owned())
}

fn changed(old: &Instr, change: Change, program: &Program) -> String {
    let with = match change {
        Change::Scope(scope) => scope_word(program.dialect, scope),
        Change::Order(order) => order.name().to_owned(),
        _ => return old.text.clone(),
    };
    format!("{} /* {with} */", old.text.trim())
}

/// A scope in the words of the dialect.
fn scope_word(dialect: Dialect, scope: Scope) -> String {
    strength::scope_name(dialect, scope).map_or_else(|| scope_suffix(scope), str::to_owned)
}

/// An order in the words of the dialect.
fn order_word(dialect: Dialect, order: Order) -> String {
    match dialect {
        Dialect::Ptx => order.name().replace("memory_order_", ".").replace(".seq_cst", ".sc"),
        _ => order.name().to_owned(),
    }
}

/// The scopes that operations of a dialect may have, narrowest first.
fn scopes(dialect: Dialect) -> Vec<Scope> {
    match dialect {
        Dialect::Ptx => vec![Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys],
        _ => {
            let mut scopes: Vec<Scope> = strength::scopes(dialect).iter().map(|s| s.1).collect();
            scopes.dedup();
            scopes
        }
    }
}

struct Maker<'t> {
    test: &'t LitmusTest,
    knobs: Vec<Knob>,
}

impl Maker<'_> {
    fn instr(&self, spot: Spot) -> &Instr {
        &self.test.program.thread(spot.0).code[spot.1]
    }

    /// A knob of an instruction and its copies; each level is a change of it, or none.
    fn add(&mut self, spots: &[Spot], levels: Vec<(Option<Change>, String)>, may_be_spare: bool) {
        if levels.len() < 2 {
            return;
        }
        let first = self.instr(spots[0]);
        let name = |spot: &Spot| self.test.program.thread(spot.0).name.clone();
        let thread = match spots {
            [first, .., last] if first.0 != last.0 => format!("{} to {}", name(first), name(last)),
            [first, ..] => name(first),
            [] => String::new(),
        };
        let (line, text) = (first.line, first.text.clone());
        let all = |change: Change| spots.iter().map(|&(t, i)| (Site::Instr(t, i), change)).collect();
        let levels = levels
            .into_iter()
            .map(|(change, says)| Level { edits: change.map_or_else(Vec::new, all), says })
            .collect();
        self.knobs.push(Knob { thread, line, text, levels, may_be_spare });
    }
}

/// Everything that orders the program of a test: fences, barriers, orders, dependencies, scopes. `value` says what a store
/// writes, `path` whether a branch is taken, in the execution that the answer rests on.
pub(super) fn weaker(
    test: &LitmusTest,
    model: &Model,
    value: &dyn Fn(Spot) -> Option<i64>,
    path: &dyn Fn(Spot) -> Option<bool>,
) -> Vec<Knob> {
    let dialect = test.program.dialect;
    let mut maker = Maker { test, knobs: Vec::new() };
    let nothing = || (Some(Change::Nothing), String::new());
    for spots in sites_of(test, &|op| matches!(op, Op::Fence { .. })) {
        let op = maker.instr(spots[0]).op.clone();
        let mut levels = vec![nothing()];
        levels.extend(strength::weaker(&op).into_iter().map(|o| (Some(Change::Order(o)), order_word(dialect, o))));
        levels.push((None, strength::order(&op).map_or(String::new(), |o| order_word(dialect, o))));
        maker.add(&spots, levels, true);
    }
    for spots in barriers(test) {
        maker.add(&spots, vec![nothing(), (None, String::new())], true);
    }
    for spots in sites_of(test, &|op| strength::order(op).is_some() && !matches!(op, Op::Fence { .. })) {
        let op = maker.instr(spots[0]).op.clone();
        let mut levels = Vec::new();
        if dialect == Dialect::Ptx && !matches!(op, Op::Rmw { .. }) {
            levels.push((Some(Change::Weak), WEAK.to_owned()));
        }
        levels.extend(strength::weaker(&op).into_iter().map(|o| (Some(Change::Order(o)), order_word(dialect, o))));
        let own = strength::order(&op).expect("the site was chosen so");
        levels.push((None, order_word(dialect, own)));
        maker.add(&spots, levels, true);
    }
    let speaks_of = |names: &[&str]| {
        model.nodes.iter().any(|n| matches!(&n.op, NodeOp::Base(name) if names.contains(&name.as_str())))
    };
    if speaks_of(&["addr", "data", "ctrl"]) {
        dependencies(&mut maker, value, path);
    }
    for spots in sites_of(test, &|op| strength::scope(op).is_some()) {
        let op = maker.instr(spots[0]).op.clone();
        let own = strength::scope(&op).expect("the site was chosen so");
        let narrower = scopes(dialect).into_iter().filter(|s| *s < own);
        let mut levels: Vec<_> = narrower.map(|s| (Some(Change::Scope(s)), scope_word(dialect, s))).collect();
        levels.push((None, scope_word(dialect, own)));
        maker.add(&spots, levels, true);
    }
    maker.knobs
}

/// Barriers by what they meet at.
fn barriers(test: &LitmusTest) -> Vec<Vec<Spot>> {
    let mut groups: Vec<(String, Vec<Spot>)> = Vec::new();
    for t in test.program.thread_ids() {
        for (i, instr) in test.program.thread(t).code.iter().enumerate() {
            let Op::Barrier(barrier) = &instr.op else { continue };
            let key = match &barrier.naming {
                BarrierNaming::Counted { id, .. } => format!("{id:?}"),
                BarrierNaming::Instance { instance, .. } => instance.to_string(),
            };
            match groups.iter_mut().find(|g| g.0 == key) {
                Some(group) => group.1.push((t, i)),
                None => groups.push((key, vec![(t, i)])),
            }
        }
    }
    groups.into_iter().map(|g| g.1).collect()
}

/// Stores of values that were read, and branches on them.
fn dependencies(maker: &mut Maker<'_>, value: &dyn Fn(Spot) -> Option<i64>, path: &dyn Fn(Spot) -> Option<bool>) {
    let reads = |e: &Expr| {
        let mut any = false;
        e.registers(&mut |_| any = true);
        any
    };
    let program = &maker.test.program;
    for t in program.thread_ids() {
        for (i, instr) in program.thread(t).code.iter().enumerate() {
            let (change, what) = match &instr.op {
                Op::Store { value: written, .. } if reads(written) => {
                    let Some(v) = value((t, i)) else { continue };
                    (
                        Change::Value(v),
                        (format!("the value {v} whatever was read"), "the dependence on what was read".to_owned()),
                    )
                }
                Op::Branch { cond, .. } if reads(cond) => {
                    let Some(taken) = path((t, i)) else { continue };
                    let word =
                        if taken { "a branch that is always taken" } else { "a branch that is never taken" };
                    (Change::Path(taken), (word.to_owned(), "the dependence on what was read".to_owned()))
                }
                _ => continue,
            };
            maker.add(&[(t, i)], vec![(Some(change), what.0), (None, what.1)], false);
        }
    }
}

/// Everything that could order the program of a test better: wider scopes, one place, one proxy, stronger orders, fences.
pub(super) fn stronger(test: &LitmusTest) -> Vec<Knob> {
    let (program, dialect) = (&test.program, test.program.dialect);
    let wide = enough(program);
    let mut maker = Maker { test, knobs: Vec::new() };
    for spots in sites_of(test, &|op| strength::scope(op).is_some()) {
        let own = strength::scope(&maker.instr(spots[0]).op).expect("the site was chosen so");
        let mut levels = vec![(None, scope_word(dialect, own))];
        let wider = scopes(dialect).into_iter().filter(|s| *s > own && *s <= wide);
        levels.extend(wider.map(|s| (Some(Change::Scope(s)), scope_word(dialect, s))));
        maker.add(&spots, levels, true);
    }
    proxies(&mut maker);
    orders(&mut maker, wide);
    places(&mut maker);
    fences(&mut maker, wide);
    maker.knobs
}

fn orders(maker: &mut Maker<'_>, wide: Scope) {
    let dialect = maker.test.program.dialect;
    for spots in sites_of(maker.test, &|op| !matches!(op, Op::Barrier(_))) {
        let op = maker.instr(spots[0]).op.clone();
        let mut levels = Vec::new();
        match &op {
            Op::Load { access, .. } | Op::Store { access, .. } if access.tags.has("WEAK") => {
                let word = if matches!(op, Op::Load { .. }) { ".acquire" } else { ".release" };
                levels.push((None, WEAK.to_owned()));
                let suffix = scope_suffix(wide);
                levels.push((Some(Change::Strong(wide)), format!(".relaxed{suffix}")));
                levels.push((Some(Change::Synchronizing(wide)), format!("{word}{suffix}")));
            }
            Op::Rmw { read, .. } if read.tags.has("RED") => {
                levels.push((None, "red".to_owned()));
                levels.push((Some(Change::Atomic), "atom".to_owned()));
            }
            _ => {
                let Some(own) = strength::order(&op) else { continue };
                levels.push((None, order_word(dialect, own)));
                // No access of PTX is sequentially consistent.
                let none =
                    |o: &Order| dialect == Dialect::Ptx && *o == Order::SeqCst && !matches!(op, Op::Fence { .. });
                let stronger = strength::stronger(&op).into_iter().filter(|o| !none(o));
                levels.extend(stronger.map(|o| (Some(Change::Order(o)), order_word(dialect, o))));
            }
        }
        maker.add(&spots, levels, true);
    }
}

/// One proxy, one name, and the flags of all regions.
fn proxies(maker: &mut Maker<'_>) {
    let through = |op: &Op| match op {
        Op::Load { access, .. } | Op::Store { access, .. } => PROXIES.iter().any(|p| access.tags.has(p)),
        _ => false,
    };
    if maker.test.program.dialect == Dialect::Ptx {
        for spots in sites_of(maker.test, &through) {
            let levels =
                vec![(None, "its proxy".to_owned()), (Some(Change::Generic), "the generic proxy".to_owned())];
            maker.add(&spots, levels, true);
        }
    }
    let lacks = |op: &Op| matches!(op, Op::Fence { .. } | Op::Barrier(_)) && strength::lacks_flags(op);
    if maker.test.program.dialect == Dialect::OpenCl {
        for spots in sites_of(maker.test, &lacks) {
            let levels =
                vec![(None, "its flags".to_owned()), (Some(Change::BothRegions), strength::ALL_FLAGS.to_owned())];
            maker.add(&spots, levels, true);
        }
    }
}

/// Threads where others run; not in programs with barriers or shared memory, which mean something else elsewhere.
fn places(maker: &mut Maker<'_>) {
    let program = &maker.test.program;
    let local = |l: &program::Location| matches!(l.kind, LocationKind::Object { space: Space::Shared, .. });
    let barrier = program.threads.iter().flat_map(|t| &t.code).any(|i| matches!(i.op, Op::Barrier(_)));
    if barrier || program.locations.iter().any(local) || program.dialect == Dialect::C {
        return;
    }
    let mut found = Vec::new();
    for t in program.thread_ids() {
        for other in program.thread_ids().filter(|o| *o < t) {
            let (a, b) = (program.thread(other), program.thread(t));
            if a.place == b.place || a.place.host || b.place.host {
                continue;
            }
            let group = match program.dialect {
                Dialect::OpenCl => "work-group",
                Dialect::Cuda => "block",
                _ => "CTA",
            };
            found.push((t, other, format!("{} in the {group} of {}", b.name, a.name)));
            break;
        }
    }
    for (t, other, says) in found {
        let levels = vec![
            Level { edits: Vec::new(), says: String::new() },
            Level { edits: vec![(Site::Thread(t), Change::PlaceOf(other))], says },
        ];
        let (thread, text) = (String::new(), String::new());
        maker.knobs.push(Knob { thread, line: 0, text, levels, may_be_spare: true });
    }
}

/// Fences in front of all accesses but the first of a thread.
fn fences(maker: &mut Maker<'_>, wide: Scope) {
    let program = &maker.test.program;
    let access = |op: &Op| matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. });
    let first = |t: ThreadId| program.thread(t).code.iter().position(|i| i.op.is_visible());
    let mut kinds: Vec<&'static str> = PROXIES
        .iter()
        .copied()
        .filter(|p| program.threads.iter().flat_map(|t| &t.code).any(|i| goes_through(&i.op, p)))
        .collect();
    if program.locations.iter().any(|l| matches!(l.kind, LocationKind::Alias { .. })) {
        kinds.push("ALIAS");
    }
    if program.dialect != Dialect::Ptx {
        kinds.clear();
    }
    let sites: Vec<Vec<Spot>> =
        sites_of(maker.test, &access).into_iter().filter(|s| Some(s[0].1) != first(s[0].0)).collect();
    let dialect = program.dialect;
    let text = |fence| format!("{} before", fence_text(dialect, fence));
    let level = |fence| (Some(Change::FenceBefore(fence)), text(fence));
    for spots in &sites {
        for kind in &kinds {
            maker.add(spots, vec![(None, String::new()), level(Fence::Proxy(kind))], true);
        }
    }
    for spots in &sites {
        let both = [Fence::AcquireRelease(wide), Fence::Sequential(wide)].map(level);
        maker.add(spots, std::iter::once((None, String::new())).chain(both).collect(), true);
    }
}

fn goes_through(op: &Op, proxy: &str) -> bool {
    match op {
        Op::Load { access, .. } | Op::Store { access, .. } => access.tags.has(proxy),
        _ => false,
    }
}
