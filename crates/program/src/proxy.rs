//! Proxies, the access paths to memory: a table with one row for each.

use super::Tags;
use crate::Tag;

/// The access path to memory (PTX ISA, Memory Consistency Model, Proxies).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Proxy {
    /// Ordinary loads, stores and atomics.
    Generic,
    /// Surface instructions.
    Surface,
    /// Texture instructions.
    Texture,
    /// Constant loads.
    Constant,
    /// Bulk copies and matrix instructions: asynchronous operations, which are no accesses of a
    /// thread. It has no row.
    Async,
}

/// The names of a proxy.
pub struct ProxyRow {
    /// The proxy.
    pub proxy: Proxy,
    /// Its name in tests and in proxy fences.
    pub word: &'static str,
    /// The tag of accesses through it.
    pub tag: Tag,
    /// The load instruction through it, in the short form.
    pub load: &'static str,
    /// The store instruction through it, if there is one.
    pub store: Option<&'static str>,
}

/// Every proxy, in the order of [`Proxy`].
pub const PROXIES: [ProxyRow; 4] = [
    ProxyRow {
        proxy: Proxy::Generic,
        word: "generic",
        tag: Tag::Generic,
        load: "ld",
        store: Some("st"),
    },
    ProxyRow {
        proxy: Proxy::Surface,
        word: "surface",
        tag: Tag::Surface,
        load: "suld",
        store: Some("sust"),
    },
    ProxyRow {
        proxy: Proxy::Texture,
        word: "texture",
        tag: Tag::Texture,
        load: "tld",
        store: None,
    },
    ProxyRow {
        proxy: Proxy::Constant,
        word: "constant",
        tag: Tag::Constant,
        load: "cold",
        store: None,
    },
];

/// The operands of a proxy fence, with their tags: aliases, the proxy of asynchronous copies (which
/// no access of a thread uses), or a proxy.
pub const PROXY_FENCES: [(&str, Tag); PROXIES.len() + OTHERS.len()] = {
    let mut all = [OTHERS[0]; PROXIES.len() + OTHERS.len()];
    all[1] = OTHERS[1];
    let mut i = 0;
    while i < PROXIES.len() {
        all[i + OTHERS.len()] = (PROXIES[i].word, PROXIES[i].tag);
        i += 1;
    }
    all
};

const OTHERS: [(&str, Tag); 2] = [("alias", Tag::Alias), ("async", Tag::AsyncProxy)];

/// Tags of a `fence.proxy.async` for one state space, by its suffix.
pub const ASYNC_SPACES: [(&str, Tag); 3] = [
    ("global", Tag::OfGlobal),
    ("shared::cta", Tag::OfCta),
    ("shared::cluster", Tag::OfCluster),
];

/// Halves of a fence from the generic to the async proxy: their restriction, order and tags (PTX
/// ISA 9.4, membar / fence).
pub const ASYNC_HALVES: [(&str, &str, &[Tag]); 3] = [
    (
        "sync_restrict::shared::cta",
        "release",
        &[Tag::Release, Tag::OfCta],
    ),
    (
        "sync_restrict::shared::cluster::read",
        "release",
        &[Tag::Release, Tag::OfCluster, Tag::OfReads],
    ),
    (
        "sync_restrict::shared::cluster",
        "acquire",
        &[Tag::Acquire, Tag::OfCluster],
    ),
];

/// The words of [`PROXY_FENCES`]; all except the first two are proxies that an alias can use.
pub const PROXY_FENCE_WORDS: [&str; PROXY_FENCES.len()] = {
    let mut words = [""; PROXY_FENCES.len()];
    let mut i = 0;
    while i < words.len() {
        words[i] = PROXY_FENCES[i].0;
        i += 1;
    }
    words
};

impl Proxy {
    /// The row of the proxy.
    pub fn row(self) -> &'static ProxyRow {
        &PROXIES[self as usize]
    }

    /// The proxy with that name.
    pub fn named(word: &str) -> Option<Proxy> {
        PROXIES
            .iter()
            .find(|row| row.word == word)
            .map(|row| row.proxy)
    }

    /// The proxy whose tag an access or a proxy fence has. In C, the tag of the constant proxy
    /// means the consume order.
    pub fn tagged(tags: &Tags) -> Option<Proxy> {
        PROXIES
            .iter()
            .find(|row| tags.has(row.tag))
            .map(|row| row.proxy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_proxy_stands_in_its_place() {
        for (i, row) in PROXIES.iter().enumerate() {
            assert_eq!(row.proxy as usize, i);
        }
    }
}
