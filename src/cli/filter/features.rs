//! Names for parts of a program: the words of `feature` in filters.

use program::{Instr, LocationKind, Program, Proxy, Space, Tag, Thread};

/// A name, its meaning, and its test.
pub(super) type Feature = (&'static str, &'static str, fn(&Program) -> bool);

/// Every feature.
pub(super) const FEATURES: &[Feature] = &[
    ("rmw", "a read-modify-write or reduction", |p| {
        any(p, |i| i.op.read().is_some() && i.op.write().is_some())
    }),
    ("fence", "a memory fence", |p| {
        any(p, |i| i.op.is_fence() && i.op.scope().is_some())
    }),
    ("barrier", "a barrier", |p| {
        any(p, |i| i.op.barrier().is_some())
    }),
    ("branch", "a branch", |p| {
        any(p, |i| i.op.target().is_some())
    }),
    ("loop", "a branch backwards", |p| {
        p.threads.iter().any(Thread::has_loop)
    }),
    ("weak", "a weak (non-atomic) access", |p| {
        tagged(p, Tag::Weak)
    }),
    ("sc", "a sequentially consistent operation or fence", |p| {
        tagged(p, Tag::SeqCst)
    }),
    ("volatile", "a volatile access", |p| {
        tagged(p, Tag::Volatile)
    }),
    (
        "proxy",
        "an access or fence of a proxy other than the generic one",
        |p| {
            [
                Tag::Surface,
                Tag::Texture,
                Tag::Constant,
                Tag::ProxyFence,
                Tag::Alias,
            ]
            .iter()
            .any(|tag| p.dialect.row().proxies && tagged(p, *tag))
                || aliases(p).any(|proxy| proxy != Proxy::Generic)
        },
    ),
    ("alias", "two names for one memory", |p| {
        aliases(p).next().is_some()
    }),
    ("shared", "memory of a block or work-group", |p| {
        spaces(p).any(|space| space == Space::Shared)
    }),
    ("host", "a thread of the host", |p| {
        p.threads.iter().any(|t| t.place.host)
    }),
    ("multi-gpu", "threads on several GPUs", |p| {
        differ(p, |t| t.place.gpu)
    }),
    (
        "multi-cta",
        "threads of several blocks or work-groups",
        |p| differ(p, |t| (t.place.gpu, t.place.cta)),
    ),
];

/// Whether some instruction has a property.
fn any(program: &Program, is: impl Fn(&Instr) -> bool) -> bool {
    program.instrs().any(|(_, _, instr)| is(instr))
}

/// Whether some event has a tag.
fn tagged(program: &Program, tag: Tag) -> bool {
    any(program, |instr| instr.op.has(tag))
}

fn aliases(program: &Program) -> impl Iterator<Item = Proxy> + '_ {
    program
        .locations
        .iter()
        .filter_map(|location| match location.kind {
            LocationKind::Alias { proxy, .. } => Some(proxy),
            LocationKind::Object { .. } => None,
        })
}

fn spaces(program: &Program) -> impl Iterator<Item = Space> + '_ {
    program
        .locations
        .iter()
        .filter_map(|location| match location.kind {
            LocationKind::Object { space, .. } => Some(space),
            LocationKind::Alias { .. } => None,
        })
}

/// Whether two threads differ in something.
fn differ<K: PartialEq>(program: &Program, of: impl Fn(&program::Thread) -> K) -> bool {
    let mut keys = program.threads.iter().map(of);
    keys.next()
        .is_some_and(|first| keys.any(|key| key != first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(text: &str) -> Vec<&'static str> {
        let test = front::litmus::parse("t.toml", text.as_bytes())
            .expect("a good test")
            .remove(0);
        FEATURES
            .iter()
            .filter(|f| (f.2)(&test.program))
            .map(|f| f.0)
            .collect()
    }

    #[test]
    fn a_program_is_told_by_what_it_uses() {
        let two = |first: &str, second: &str| {
            let head = "name = 't'\ncondition = 'x == 0'\nmemory = { x = 0 }\n";
            format!("{head}[[thread]]\ncode = '{first}'\n[[thread]]\ncta = 1\ncode = '{second}'\n")
        };
        assert_eq!(
            features(&two("st.weak x, 1", "ld.relaxed.gpu r0, x")),
            ["weak", "multi-cta"]
        );
        let text = two(
            "atom.relaxed.gpu.add.u32 r0, x, 1",
            "fence.sc.gpu; L: ld.relaxed.gpu r0, x; setp.eq.u32 p, r0, 0; @p bra L",
        );
        assert_eq!(
            features(&text),
            ["rmw", "fence", "branch", "loop", "sc", "multi-cta"]
        );
    }
}
