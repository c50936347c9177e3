//! Tags: which proxies a path has crossed, for proxy-preserved base causality order.
//!
//! | Tag | Entry of … | Applies to accesses of the location … |
//! |---|---|---|
//! | `Generic` | a generic access | generic, same virtual address |
//! | `Raw(p, c)` | an access by proxy `p` in CTA `c` | by `p` in `c`, same virtual address |
//! | `GenericAlias` | `Generic`, then `fence.proxy.alias` | generic |
//! | `In(p, c)` | `Generic`, then `fence.proxy.p` in `c` | by `p` in `c`, same virtual address |
//! | `InAlias(p, c)` | `GenericAlias`, then `fence.proxy.p` in `c` | by `p` in `c` |
//!
//! A fence adds entries and keeps those it found: `fence.proxy.alias` adds `GenericAlias` for each `Generic`;
//! `fence.proxy.p` of a thread of CTA `d` adds `In(p, d)` for each `Generic`, `InAlias(p, d)` for each `GenericAlias`, and
//! `Generic` for each `Raw(p, d)`. All additions are computed from what was known before the fence, so that leaving one
//! proxy and entering another takes two fences. These are the clauses of `proxy-preserved` in `models/ptx.cat`, one by
//! one.
//!
//! # Sources
//! - PTX ISA, Memory Consistency Model, Proxy-preserved base causality order; D. Lustig, S. Cooksey, O. Giroux,
//!   "Mixed-Proxy Extensions for the NVIDIA PTX Memory Consistency Model", ISCA 2022.

use super::view::{Key, View};
use crate::program::Proxy;
use crate::simt::code::Fence;

/// Which proxies a path has crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Tag {
    Generic,
    GenericAlias,
    Raw(Proxy, u16),
    In(Proxy, u16),
    InAlias(Proxy, u16),
}

impl Tag {
    /// The tag of an access by a thread of that CTA.
    pub(super) fn of(proxy: Proxy, cta: u16) -> Tag {
        match proxy {
            Proxy::Generic => Tag::Generic,
            p => Tag::Raw(p, cta),
        }
    }

    /// Whether an entry with this tag, about address `known`, orders an access of the same location through address `va`
    /// by `proxy` in `cta`.
    pub(super) fn applies(self, known: u16, va: u16, proxy: Proxy, cta: u16) -> bool {
        match self {
            Tag::Generic => known == va && proxy == Proxy::Generic,
            Tag::GenericAlias => proxy == Proxy::Generic,
            Tag::Raw(p, c) | Tag::In(p, c) => known == va && (p, c) == (proxy, cta),
            Tag::InAlias(p, c) => (p, c) == (proxy, cta),
        }
    }
}

/// A proxy fence of a thread of that CTA.
pub(super) fn cross(view: &mut View, fence: Fence, cta: u16) {
    let mut added: Vec<(Key, u128)> = Vec::new();
    for e in view.entries() {
        let tag = match (fence, e.key.tag) {
            (Fence::Alias, Tag::Generic) => Tag::GenericAlias,
            (Fence::Proxy(Proxy::Generic), _) => continue,
            (Fence::Proxy(p), Tag::Generic) => Tag::In(p, cta),
            (Fence::Proxy(p), Tag::GenericAlias) => Tag::InAlias(p, cta),
            (Fence::Proxy(p), Tag::Raw(q, c)) if (p, cta) == (q, c) => Tag::Generic,
            _ => continue,
        };
        added.push((Key { tag, ..e.key }, e.writes));
    }
    for (key, writes) in added {
        view.add(key, writes);
    }
}
