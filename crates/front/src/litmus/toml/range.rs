//! Index spaces of kernels: `grid` and `block`, or `global`, `local` and `offset`, and the places
//! of their threads.
//!
//! # Sources
//! - OpenCL API specification, *clEnqueueNDRangeKernel*: invalid sizes; *Mapping Work-items Onto an
//!   ND-range*.
//! - CUDA C++ Programming Guide, *Thread Hierarchy*, *Thread Block Clusters*.

use ::toml::de::{DeTable, DeValue};

use super::template::TemplateChoice;
use super::{TestReader, integer};
use crate::document::{Value, span_of};
use crate::isa::clike::{Coordinates, WarpMapping};
use crate::litmus::demands::check_clusters;
use crate::litmus::fronts::{Front, dialects};
use crate::litmus::keys;
use crate::litmus::places::{GridLayout, MAX_THREADS};
use crate::litmus::reading::Reading;
use diag::Span;
use program::{Dialect, NdRange, Place, RangeError};

/// Keys of an index space in OpenCL.
const OF_OPENCL: [&str; 4] = ["global", "local", "offset", "uniform"];

/// The key for which work-items share a sub-group.
const MAPPING: &str = "sub_group_mapping";

/// Sizes, one per dimension, with their place in the file.
struct Extent {
    sizes: Vec<u64>,
    span: Span,
}

/// The sizes of an index space of OpenCL.
struct OpenClSizes {
    global: Extent,
    local: Extent,
    offset: Option<Extent>,
}

impl TestReader<'_, '_> {
    /// The threads of a kernel, by their places. Reports an error and returns none if the index
    /// space is invalid or too large. An index space of OpenCL may be empty.
    pub(super) fn grid(
        &mut self,
        dialect: Dialect,
        table: &DeTable<'_>,
        choice: &TemplateChoice,
    ) -> Vec<(Coordinates, Place)> {
        let layout = self.layout(table, choice);
        self.uniform(dialect, table);
        let Some(range) = self.index_space(dialect, table, choice) else {
            return Vec::new();
        };
        let Some(layout) = layout else {
            return Vec::new();
        };
        let span = table.get("cluster").map_or(Span::default(), span_of);
        let is_exact = matches!(self.reading, Reading::Exact);
        if is_exact && check_clusters(&layout, &range, span, self.sink).is_none() {
            return Vec::new();
        }
        let range = match &self.reading {
            Reading::Exact => range,
            Reading::Form => return layout.two(range.dimensions()),
            Reading::At(launch) => match &launch.threads {
                Some(items) => return layout.some(launch.range, items),
                None => launch.range,
            },
        };
        if range.count().is_none_or(|n| n > MAX_THREADS as u64) {
            let span = ["block", "global", "grid"]
                .into_iter()
                .find_map(|k| table.get(k))
                .map(span_of);
            self.too_many(span.unwrap_or_default());
            return Vec::new();
        }
        layout.threads(range)
    }

    /// The layout of a kernel's threads. Reports an error and returns `None` if a size is 0.
    pub(super) fn layout(
        &mut self,
        table: &DeTable<'_>,
        choice: &TemplateChoice,
    ) -> Option<GridLayout> {
        let warp = self
            .count(table, &["warp", "sub_group"], choice)
            .unwrap_or(32);
        let mapping = self.mapping(table, choice);
        let cluster = self.extent(table, "cluster", choice);
        let gpu = self.count(table, &["gpu", "device"], choice).unwrap_or(0);
        let domain = self.count(table, &["domain"], choice).unwrap_or(0);
        let cooperative = table
            .get("cooperative")
            .and_then(|v| v.get_ref().as_bool())
            .unwrap_or(false);
        if warp == 0 {
            self.cannot_be_zero("warp", table.get("warp").map_or(Span::default(), span_of));
            return None;
        }
        let shape = cluster
            .as_ref()
            .map(|c| [0, 1, 2].map(|d| c.sizes.get(d).copied().unwrap_or(1)));
        if let (Some(shape), Some(cluster)) = (shape, &cluster)
            && (shape.contains(&0) || cluster.sizes.len() > 3)
        {
            self.cannot_be_zero("cluster", cluster.span);
            return None;
        }
        Some(GridLayout {
            gpu,
            domain,
            warp,
            mapping,
            cluster: shape,
            cooperative,
        })
    }

    /// Which work-items share a sub-group. The dialects without a choice have no such key.
    fn mapping(&mut self, table: &DeTable<'_>, choice: &TemplateChoice) -> WarpMapping {
        let Some(value) = table.get(MAPPING) else {
            return WarpMapping::Consecutive;
        };
        let dialect = self.word(self.root, "dialect", keys::DIALECTS, choice);
        let dialect = dialects().find(|d| Some(d.name()) == dialect);
        let dialect = dialect.unwrap_or_default();
        if !Front::of(dialect).ranges {
            let message = format!("kernels of the dialect `{dialect}` have no `{MAPPING}`");
            let span = span_of(value);
            self.sink.error("conflicting-keys", span, message, |d| {
                d.label("expected OpenCL, which leaves the mapping to the implementation")
            });
        }
        match self.word(table, MAPPING, keys::MAPPINGS, choice) {
            Some("strided") => WarpMapping::Strided,
            _ => WarpMapping::Consecutive,
        }
    }

    /// The index space of a kernel. Reports an error and returns `None` if it is missing or
    /// invalid.
    pub(super) fn index_space(
        &mut self,
        dialect: Dialect,
        table: &DeTable<'_>,
        choice: &TemplateChoice,
    ) -> Option<NdRange> {
        let given = OF_OPENCL
            .into_iter()
            .find_map(|key| Some((key, table.get(key)?)));
        let Some((key, value)) = given else {
            return self.grid_of_blocks(table, choice);
        };
        let blocks = ["grid", "block"]
            .into_iter()
            .find_map(|key| Some((key, table.get(key)?)));
        if !Front::of(dialect).ranges {
            let message = format!("kernels of the dialect `{dialect}` have no `{key}`");
            self.sink
                .error("conflicting-keys", span_of(value), message, |d| {
                    d.label(
                        "expected `grid` and `block`: how many CTAs, and how many threads in each",
                    )
                });
            return None;
        }
        if let Some((other, place)) = blocks {
            let message = format!("`{other}` and `{key}` both say how many work-items there are");
            let first = span_of(value);
            self.sink
                .error("conflicting-keys", span_of(place), message, |d| {
                    d.label("expected `global` and `local`, or `grid` and `block`")
                        .also(first, "the other one")
                });
            return None;
        }
        let sizes = self.opencl_sizes(table, span_of(value), choice)?;
        let range = self.range_of(&sizes)?;
        if self.uniform(dialect, table) {
            self.check_full_groups(&range, &sizes)?;
        }
        Some(range)
    }

    /// The sizes of an index space of OpenCL, with as many dimensions each.
    fn opencl_sizes(
        &mut self,
        table: &DeTable<'_>,
        place: Span,
        choice: &TemplateChoice,
    ) -> Option<OpenClSizes> {
        let (global, local) = (
            self.extent(table, "global", choice),
            self.extent(table, "local", choice),
        );
        let offset = self.extent(table, "offset", choice);
        let (Some(global), Some(local)) = (global, local) else {
            let missing = if table.contains_key("global") {
                "local"
            } else {
                "global"
            };
            if !table.contains_key(missing) {
                let message = format!("`kernel` has no `{missing}`");
                self.sink.error("missing-key", place, message, |d| {
                    d.label("an index space has a `global` and a `local` size")
                        .help(
                            "without a local size, the implementation chooses one, and a test \
                            would have to cover all of them",
                        )
                });
            }
            return None;
        };
        let others = [Some(&local), offset.as_ref()].into_iter().flatten();
        for other in others {
            if other.sizes.len() != global.sizes.len() {
                let (n, m) = (other.sizes.len(), global.sizes.len());
                let message = format!(
                    "this has {n} dimension{}, but `global` has {m}",
                    if n == 1 { "" } else { "s" }
                );
                self.sink.error("bad-range", other.span, message, |d| {
                    d.label("expected a number for each dimension")
                        .also(global.span, "the global size")
                });
                return None;
            }
        }
        Some(OpenClSizes {
            global,
            local,
            offset,
        })
    }

    fn range_of(&mut self, sizes: &OpenClSizes) -> Option<NdRange> {
        let OpenClSizes {
            global,
            local,
            offset,
        } = sizes;
        let first = offset.as_ref().map_or(&[][..], |o| &o.sizes);
        let error = match NdRange::new(&global.sizes, &local.sizes, first) {
            Ok(range) => return Some(range),
            Err(error) => error,
        };
        let (span, expected) = match error {
            RangeError::Dimensions => (global.span, "expected one to three numbers"),
            RangeError::EmptyGroups(_) => (local.span, "expected positive numbers"),
            RangeError::Overflow(_) => (
                offset.as_ref().map_or(global.span, |o| o.span),
                "expected an offset for which every global id fits 64 bits",
            ),
        };
        self.sink
            .error("bad-range", span, error.to_string(), |d| d.label(expected));
        None
    }

    /// Reports a work-group that is not full.
    fn check_full_groups(&mut self, range: &NdRange, sizes: &OpenClSizes) -> Option<()> {
        let Some(d) = range.remainder() else {
            return Some(());
        };
        let (size, group) = (range.global()[d], range.local()[d]);
        let message =
            format!("in dimension {d}, {size} work-items are not whole work-groups of {group}");
        self.sink
            .error("bad-range", sizes.global.span, message, |diagnostic| {
                diagnostic
                    .label(format!("expected a multiple of {group}"))
                    .also(sizes.local.span, "the size of a work-group")
                    .help(
                        "without `uniform = true`, as without \
                         `-cl-uniform-work-group-size`, the last one may be smaller",
                    )
            });
        None
    }

    /// Whether all work-groups must be full; only OpenCL has this key.
    pub(super) fn uniform(&mut self, dialect: Dialect, table: &DeTable<'_>) -> bool {
        let Some(value) = table.get("uniform") else {
            return false;
        };
        if !Front::of(dialect).ranges {
            let message = format!("kernels of the dialect `{dialect}` have no `uniform`");
            self.sink
                .error("conflicting-keys", span_of(value), message, |d| {
                    d.label("expected no such key")
                        .help("leave it out: blocks are always full here")
                });
            return false;
        }
        value.get_ref().as_bool() == Some(true)
    }

    /// A grid of full blocks; sizes that are not given are 1.
    fn grid_of_blocks(&mut self, table: &DeTable<'_>, choice: &TemplateChoice) -> Option<NdRange> {
        if !table.contains_key("block") {
            let at = table.get("code").map_or(Span::default(), span_of);
            self.sink
                .error("missing-key", at, "`kernel` has no `block`", |d| {
                    d.label("`block` is needed: threads per CTA")
                });
            return None;
        }
        let grid = self.extent(table, "grid", choice);
        let block = self.extent(table, "block", choice)?;
        if table.contains_key("grid") && grid.is_none() {
            return None;
        }
        fn sizes(extent: Option<&Extent>) -> [u64; 3] {
            [0, 1, 2].map(|d| extent.and_then(|e| e.sizes.get(d).copied()).unwrap_or(1))
        }
        for (key, extent) in [("grid", grid.as_ref()), ("block", Some(&block))] {
            if sizes(extent).contains(&0) {
                self.cannot_be_zero(key, extent.map_or(Span::default(), |e| e.span));
                return None;
            }
        }
        let (blocks, threads) = (sizes(grid.as_ref()), sizes(Some(&block)));
        let dimensions = block
            .sizes
            .len()
            .max(grid.as_ref().map_or(1, |g| g.sizes.len()));
        let range = match [0, 1, 2].map(|d| blocks[d].checked_mul(threads[d])) {
            [Some(x), Some(y), Some(z)] => {
                NdRange::new(&[x, y, z][..dimensions.clamp(1, 3)], &threads, &[]).ok()
            }
            _ => None,
        };
        if range.is_none() {
            self.too_many(block.span);
        }
        range
    }

    fn cannot_be_zero(&mut self, key: &str, span: Span) {
        let message = format!("`{key}` cannot be 0");
        self.sink.error("bad-number", span, message, |d| {
            d.label("expected a positive number")
        });
    }

    pub(super) fn too_many(&mut self, span: Span) {
        self.sink.error(
            "too-many-threads",
            span,
            format!("a test has at most {MAX_THREADS} threads"),
            |d| d.label("too many threads"),
        );
    }

    /// A number, or a list of one to three. `None` if the key is absent; reports an error and
    /// returns `None` if the value is invalid.
    fn extent(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        choice: &TemplateChoice,
    ) -> Option<Extent> {
        let value = table.get(key)?;
        let items: Vec<&Value<'_>> = match value.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => vec![value],
        };
        let span = span_of(value);
        if !(1..=3).contains(&items.len()) {
            self.sink
                .error("bad-range", span, RangeError::Dimensions.to_string(), |d| {
                    d.label("expected one to three numbers")
                });
            return None;
        }
        let sizes: Vec<Option<u64>> = items
            .iter()
            .map(|item| self.size(item, key, choice))
            .collect();
        Some(Extent {
            sizes: sizes.into_iter().collect::<Option<_>>()?,
            span,
        })
    }

    fn size(&mut self, value: &Value<'_>, key: &str, choice: &TemplateChoice) -> Option<u64> {
        let number = match value.get_ref() {
            // The check of keys has already reported negative numbers and values of other kinds.
            DeValue::Integer(i) if i.as_str().starts_with('-') => return None,
            DeValue::Integer(_) => integer(value.get_ref()).map(|n| n as u64),
            DeValue::String(_) => self
                .text(value, choice)
                .and_then(|t| t.as_str().trim().parse().ok()),
            _ => return None,
        };
        if number.is_none() {
            self.sink.error(
                "bad-number",
                span_of(value),
                format!("`{key}` is not a size"),
                |d| d.label("expected an integer of at most 64 bits"),
            );
        }
        number
    }
}
