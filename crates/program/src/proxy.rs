//! Proxies, the ways to memory: each is a row.

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
    /// Bulk copies and matrix instructions: asynchronous operations, no access of a thread. It has
    /// no row.
    Async,
}

/// What is told of a proxy.
pub struct ProxyRow {
    /// The proxy.
    pub proxy: Proxy,
    /// Its name in tests and in proxy fences.
    pub word: &'static str,
    /// The tag of what goes through it.
    pub tag: Tag,
    /// The instruction that loads through it, in the short form.
    pub load: &'static str,
    /// The one that stores, if there is one.
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

/// What a proxy fence can name, with its tag: aliases, the proxy of asynchronous copies, which no
/// access of a thread goes through, or a proxy.
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

/// Tags of a `fence.proxy.async` of one state space, as it is written.
pub const ASYNC_SPACES: [(&str, Tag); 3] = [
    ("global", Tag::OfGlobal),
    ("shared::cta", Tag::OfCta),
    ("shared::cluster", Tag::OfCluster),
];

/// Halves of a fence from the generic to the async proxy: what they are restricted to, their order,
/// and their tags (PTX ISA 9.4, membar / fence).
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

/// The words of [`PROXY_FENCES`]; all but the first two are names of proxies that an alias can go
/// through.
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
    /// Its row.
    pub fn row(self) -> &'static ProxyRow {
        &PROXIES[self as usize]
    }

    /// The proxy of that name.
    pub fn named(word: &str) -> Option<Proxy> {
        PROXIES
            .iter()
            .find(|row| row.word == word)
            .map(|row| row.proxy)
    }

    /// The proxy of which an access or a proxy fence has the tag. In C, that of the constant proxy
    /// is the consume order.
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
