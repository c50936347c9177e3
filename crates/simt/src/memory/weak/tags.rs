//! Tags record the proxies that a path has crossed, for proxy-preserved base causality order.
//!
//! | Tag | Entry of … | Applies to accesses of the location … |
//! |---|---|---|
//! | `Generic` | a generic access | generic, same virtual address |
//! | `Raw(p, c)` | an access by proxy `p` in CTA `c` | by `p` in `c`, same virtual address |
//! | `GenericAlias` | `Generic`, then `fence.proxy.alias` | generic |
//! | `In(p, c)` | `Generic`, then `fence.proxy.p` in `c` | by `p` in `c`, same virtual address |
//! | `InAlias(p, c)` | `GenericAlias`, then `fence.proxy.p` in `c` | by `p` in `c` |
//! | `Mapped` | `Generic`, then a release half of `fence.proxy.tensormap` | none |
//! | `Launched` | `Generic`, then the start of a kernel | none |
//! | `OfMap(c)` | `Mapped` or `Launched`, then an acquire half in `c` | reads of that map in `c` |
//! | `Of(c)` | any access in CTA `c` | none |
//! | `Over` | `Of(c)`, then the end of the kernel of `c` | none |
//!
//! A fence adds entries and keeps the existing ones:
//! - `fence.proxy.alias` adds `GenericAlias` for each `Generic`.
//! - `fence.proxy.p` of a thread of CTA `d` adds `In(p, d)` for each `Generic`, `InAlias(p, d)` for
//!   each `GenericAlias`, and `Generic` for each `Raw(p, d)`.
//!
//! A fence computes all additions from the entries before it, so leaving one proxy and entering
//! another takes two fences. These are the clauses of `proxy-preserved` in `models/ptx.cat`, one by
//! one.
//!
//! Tensor maps are read through a proxy that only an acquire half enters. The half for the map `v`,
//! in CTA `c`, adds `OfMap(c)` for each `Mapped` of that address and, at a scope of the GPU or
//! wider, for each `Launched`.
//!
//! Order by calls of the runtime crosses proxies and addresses without a fence. The knowledge that
//! a kernel hands on at its end has left its proxies ([`leave`]). A kernel that starts enters all
//! of them ([`enter`]): `In(p, d)` for each `Generic`, `InAlias(p, d)` for each `GenericAlias`, and
//! through any address for each `Over`. A thread of the host does both in its calls.
//!
//! # Sources
//! - PTX ISA, Memory Consistency Model, Proxy-preserved base causality order; D. Lustig, S.
//!   Cooksey, O. Giroux, "Mixed-Proxy Extensions for the NVIDIA PTX Memory Consistency Model", ISCA
//!   2022.
//! - PTX ISA, Memory Consistency Model, Causality order, API synchronization; CUDA C++ Programming
//!   Guide, *Texture and Surface Memory*, Read/Write Coherency, and *Virtual Aliasing Support*, for
//!   the ends and starts of kernels.

use super::view::{ViewKey, WriteView};
use crate::code::Fence;
use program::{Proxy, Scope};

/// The proxies that a path has crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum PathTag {
    Generic,
    GenericAlias,
    Raw(Proxy, u16),
    In(Proxy, u16),
    InAlias(Proxy, u16),
    Mapped,
    Launched,
    OfMap(u16),
    Of(u16),
    Over,
}

/// All proxies except the generic one.
const SPECIAL: [Proxy; 4] = [
    Proxy::Surface,
    Proxy::Texture,
    Proxy::Constant,
    Proxy::Async,
];

impl PathTag {
    /// The tag of an access by a thread of that CTA.
    pub(super) fn of(proxy: Proxy, cta: u16) -> PathTag {
        match proxy {
            Proxy::Generic => PathTag::Generic,
            p => PathTag::Raw(p, cta),
        }
    }

    /// Whether an entry with this tag, about address `known`, orders an access of the same location
    /// through address `va` by `proxy` in `cta`.
    pub(super) fn applies(self, known: u16, va: u16, proxy: Proxy, cta: u16) -> bool {
        match self {
            PathTag::Generic => known == va && proxy == Proxy::Generic,
            PathTag::GenericAlias => proxy == Proxy::Generic,
            PathTag::Raw(p, c) | PathTag::In(p, c) => {
                known == va && p == proxy && (c == cta || c == EVERYWHERE)
            }
            PathTag::InAlias(p, c) => (p, c) == (proxy, cta),
            PathTag::Mapped
            | PathTag::Launched
            | PathTag::OfMap(_)
            | PathTag::Of(_)
            | PathTag::Over => false,
        }
    }
}

/// The knowledge that a thread of that CTA hands to the runtime: its accesses have left their
/// proxies.
pub(super) fn leave(view: &mut WriteView, cta: u16) {
    extend(view, |tag, add| match tag {
        PathTag::Raw(_, c) if c == cta => add(PathTag::Generic),
        PathTag::Of(c) if c == cta => add(PathTag::Over),
        _ => {}
    });
}

/// The knowledge that a thread of that CTA learns from the runtime: later accesses by any proxy
/// follow it.
pub(super) fn enter(view: &mut WriteView, cta: u16) {
    extend(view, |tag, add| match tag {
        PathTag::Generic => {
            SPECIAL.iter().for_each(|p| add(PathTag::In(*p, cta)));
            add(PathTag::Launched);
        }
        PathTag::GenericAlias => SPECIAL.iter().for_each(|p| add(PathTag::InAlias(*p, cta))),
        PathTag::Over => {
            add(PathTag::InAlias(Proxy::Generic, cta));
            SPECIAL.iter().for_each(|p| add(PathTag::InAlias(*p, cta)));
        }
        _ => {}
    });
}

/// Applies a proxy fence of a thread of that CTA.
pub(super) fn cross(view: &mut WriteView, fence: Fence, cta: u16) {
    extend(view, |tag, add| match (fence, tag) {
        (Fence::Alias, PathTag::Generic) => add(PathTag::GenericAlias),
        (Fence::Proxy(Proxy::Generic), _) => {}
        (Fence::Proxy(p), PathTag::Generic) => add(PathTag::In(p, cta)),
        (Fence::Proxy(p), PathTag::GenericAlias) => add(PathTag::InAlias(p, cta)),
        (Fence::Proxy(p), PathTag::Raw(q, c)) if (p, cta) == (q, c) => add(PathTag::Generic),
        _ => {}
    });
}

/// Applies half of a `fence.proxy.tensormap` of a thread of that CTA.
pub(super) fn map(view: &mut WriteView, acquire: bool, scope: Scope, va: Option<u16>, cta: u16) {
    let mut added: Vec<(ViewKey, u128)> = Vec::new();
    for e in view.entries() {
        let tag = match e.key.tag {
            PathTag::Generic if !acquire => PathTag::Mapped,
            PathTag::Mapped if acquire && va == Some(e.key.va) => PathTag::OfMap(cta),
            PathTag::Launched if acquire && va == Some(e.key.va) && scope >= Scope::Gpu => {
                PathTag::OfMap(cta)
            }
            _ => continue,
        };
        added.push((ViewKey { tag, ..e.key }, e.writes));
    }
    added
        .into_iter()
        .for_each(|(key, writes)| view.add(key, writes));
}

/// The number that means every CTA.
const EVERYWHERE: u16 = u16::MAX;

/// Applies a `fence.proxy.async` of a thread of that CTA to the memory that `covers` selects. It
/// relates accesses ordered with it or, if `local`, only those of the async proxy of its CTA.
pub(super) fn cross_async(
    view: &mut WriteView,
    cta: u16,
    local: bool,
    covers: impl Fn(u16) -> bool,
) {
    let to = if local { cta } else { EVERYWHERE };
    let mut added: Vec<(ViewKey, u128)> = Vec::new();
    for e in view.entries().iter().filter(|e| covers(e.key.loc)) {
        let mut add = |tag| added.push((ViewKey { tag, ..e.key }, e.writes));
        match e.key.tag {
            PathTag::Generic => add(PathTag::In(Proxy::Async, to)),
            PathTag::Raw(Proxy::Async, c) => {
                add(PathTag::In(Proxy::Async, to));
                if !local || c == cta {
                    add(PathTag::Generic);
                }
            }
            _ => {}
        }
    }
    added
        .into_iter()
        .for_each(|(key, writes)| view.add(key, writes));
}

/// Converts the accesses of a complete asynchronous operation, as if a proxy fence had followed it.
pub(super) fn complete(view: &mut WriteView) {
    extend(view, |tag, add| {
        if let PathTag::Raw(Proxy::Async, _) = tag {
            add(PathTag::Generic);
        }
    });
}

/// Adds entries derived from the existing ones; computes all before it adds any.
fn extend(view: &mut WriteView, of: impl Fn(PathTag, &mut dyn FnMut(PathTag))) {
    let mut added: Vec<(ViewKey, u128)> = Vec::new();
    for e in view.entries() {
        of(e.key.tag, &mut |tag| {
            added.push((ViewKey { tag, ..e.key }, e.writes))
        });
    }
    for (key, writes) in added {
        view.add(key, writes);
    }
}
