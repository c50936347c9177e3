//! Holds launches against the sizes that kernels in a C-like language demand.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *Launch Bounds*; *Thread Block Clusters*: the grid has whole
//!   clusters.
//! - OpenCL C, *Optional Attribute Qualifiers*: `reqd_work_group_size`.

use crate::isa::clike::{BlockLimit, ClikeCode, Language};
use crate::litmus::places::GridLayout;
use diag::{Sink, Span};
use program::NdRange;

/// The reason why a launch fails.
pub(super) struct Demand {
    /// The demand of the kernel.
    pub(super) demand: String,
    /// The document that says so.
    pub(super) source: &'static str,
    /// A launch that fits.
    pub(super) help: String,
}

/// Whether blocks of these sizes break a limit.
pub(super) fn broken(limit: &BlockLimit, sizes: [u64; 3]) -> Option<Demand> {
    if limit.admits(sizes) {
        return None;
    }
    Some(match limit {
        BlockLimit::AtMost(most) => Demand {
            demand: format!("takes at most {most} (`__launch_bounds__`)"),
            source: "CUDA C++ Programming Guide, Launch Bounds",
            help: format!("launch it with blocks of {most}, or less"),
        },
        BlockLimit::Exactly(demanded) => {
            let demanded = demanded.map(|n| n.to_string()).join(", ");
            Demand {
                demand: format!("takes exactly {demanded} (`reqd_work_group_size`)"),
                source: "OpenCL C, Optional Attribute Qualifiers",
                help: format!("launch it with blocks of {demanded}"),
            }
        }
    })
}

/// Reports a launch whose blocks break the limit that the code of its kernel states.
pub(super) fn check_block(
    unit: &ClikeCode,
    language: &Language,
    range: &NdRange,
    sink: &mut Sink,
) -> Option<()> {
    let Some((limit, span)) = unit.limit(language) else {
        return Some(());
    };
    let Some(broken) = broken(&limit, range.local()) else {
        return Some(());
    };
    let message = format!(
        "the kernel is launched with {} threads in a block, and {}",
        range.local().iter().product::<u64>(),
        broken.demand
    );
    sink.error("launch-mismatch", span, message, |d| {
        d.label("demanded here")
            .note(format!("such a launch fails ({})", broken.source))
            .help(broken.help)
    });
    None
}

/// Reports a grid that is not made of whole clusters.
pub(super) fn check_clusters(
    layout: &GridLayout,
    range: &NdRange,
    span: Span,
    sink: &mut Sink,
) -> Option<()> {
    let Some(dimension) = layout.partial_cluster(range) else {
        return Some(());
    };
    let blocks = range.groups()[dimension];
    let size = layout.cluster.map_or(1, |cluster| cluster[dimension]);
    let message = format!("{blocks} blocks are not whole clusters of {size}");
    sink.error("launch-mismatch", span, message, |d| {
        d.label(format!(
            "expected a multiple of {size} blocks in dimension {dimension}"
        ))
        .note("such a launch fails (CUDA C++ Programming Guide, Thread Block Clusters)")
    });
    None
}
