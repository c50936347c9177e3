//! What a program uses, by name: the words of `feature` in filters.

use program::{Instr, LocationKind, Op, Program, Proxy, Space, Tags};

/// A name, what it means, and how it is told.
pub(super) type Feature = (&'static str, &'static str, fn(&Program) -> bool);

/// Every feature.
pub(super) const FEATURES: &[Feature] = &[
    ("rmw", "a read-modify-write or reduction", |p| any(p, |i, _| matches!(i.op, Op::Rmw { .. }))),
    ("fence", "a memory fence", |p| any(p, |i, _| matches!(&i.op, Op::Fence { scope: Some(_), .. }))),
    ("barrier", "a barrier", |p| any(p, |i, _| matches!(i.op, Op::Barrier(_)))),
    ("branch", "a branch", |p| any(p, |i, _| matches!(i.op, Op::Branch { .. }))),
    ("loop", "a branch backwards", |p| any(p, |i, at| matches!(i.op, Op::Branch { target, .. } if target <= at))),
    ("weak", "a weak (non-atomic) access", |p| tagged(p, "WEAK")),
    ("sc", "a sequentially consistent operation or fence", |p| tagged(p, "SC")),
    ("volatile", "a volatile access", |p| tagged(p, "VOLATILE")),
    ("proxy", "an access or fence of another proxy than the generic one", |p| {
        ["SUR", "TEX", "CON", "PF", "ALIAS"].iter().any(|tag| p.dialect == program::Dialect::Ptx && tagged(p, tag))
            || aliases(p).any(|proxy| proxy != Proxy::Generic)
    }),
    ("alias", "two names for one memory", |p| aliases(p).next().is_some()),
    ("shared", "memory of a block or work-group", |p| spaces(p).any(|space| space == Space::Shared)),
    ("host", "a thread of the host", |p| p.threads.iter().any(|t| t.place.host)),
    ("multi-gpu", "threads on several GPUs", |p| differ(p, |t| t.place.gpu)),
    ("multi-cta", "threads of several blocks or work-groups", |p| differ(p, |t| (t.place.gpu, t.place.cta))),
];

/// Whether some instruction is so; it is given with its index.
fn any(program: &Program, is: impl Fn(&Instr, usize) -> bool) -> bool {
    program.threads.iter().any(|t| t.code.iter().enumerate().any(|(at, instr)| is(instr, at)))
}

/// Whether some access or fence has a tag.
fn tagged(program: &Program, tag: &str) -> bool {
    let has = |tags: &Tags| tags.has(tag);
    any(program, |instr, _| match &instr.op {
        Op::Load { access, .. } | Op::Store { access, .. } => has(&access.tags),
        Op::Rmw { read, write, .. } => has(&read.tags) || has(&write.tags),
        Op::Fence { tags, .. } => has(tags),
        _ => false,
    })
}

fn aliases(program: &Program) -> impl Iterator<Item = Proxy> + '_ {
    program.locations.iter().filter_map(|location| match location.kind {
        LocationKind::Alias { proxy, .. } => Some(proxy),
        LocationKind::Object { .. } => None,
    })
}

fn spaces(program: &Program) -> impl Iterator<Item = Space> + '_ {
    program.locations.iter().filter_map(|location| match location.kind {
        LocationKind::Object { space, .. } => Some(space),
        LocationKind::Alias { .. } => None,
    })
}

/// Whether two threads differ in something.
fn differ<K: PartialEq>(program: &Program, of: impl Fn(&program::Thread) -> K) -> bool {
    let mut keys = program.threads.iter().map(of);
    keys.next().is_some_and(|first| keys.any(|key| key != first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(text: &str) -> Vec<&'static str> {
        let test = front::litmus::parse("t.toml", text.as_bytes()).expect("a good test").remove(0);
        FEATURES.iter().filter(|f| (f.2)(&test.program)).map(|f| f.0).collect()
    }

    #[test]
    fn a_program_is_told_by_what_it_uses() {
        let two = |first: &str, second: &str| {
            let head = "name = 't'\ncondition = 'x == 0'\nmemory = { x = 0 }\n";
            format!("{head}[[thread]]\ncode = '{first}'\n[[thread]]\ncta = 1\ncode = '{second}'\n")
        };
        assert_eq!(features(&two("st.weak x, 1", "ld.relaxed.gpu r0, x")), ["weak", "multi-cta"]);
        let text = two(
            "atom.relaxed.gpu.add.u32 r0, x, 1",
            "fence.sc.gpu; L: ld.relaxed.gpu r0, x; setp.eq.u32 p, r0, 0; @p bra L",
        );
        assert_eq!(features(&text), ["rmw", "fence", "branch", "loop", "sc", "multi-cta"]);
    }
}
