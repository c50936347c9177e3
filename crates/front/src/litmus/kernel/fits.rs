//! Checks a launch against the requirements of its kernel.
//!
//! # Sources
//! - PTX ISA 9.4, *Performance-Tuning Directives* (`.maxntid`, `.reqntid`), *Cluster Dimension
//!   Directives* (`.reqnctapercluster`, `.explicitcluster`, `.maxclusterrank`): a launch that does
//!   not fit is an error.
//! - CUDA C++ Programming Guide, *Launch Bounds*: `__launch_bounds__` is `.maxntid`.

use std::sync::Arc;

use super::Launch;
use crate::isa::ptx::module::Kernel;
use diag::{Diagnostic, SourceFile};

/// Threads per CTA, from the launch, or else from the kernel, or else one.
pub(super) fn block<'a>(kernel: &'a Kernel, launch: &'a Launch) -> &'a [u32] {
    match kernel.demands(".reqntid") {
        Some(demanded) if launch.block.is_empty() => demanded,
        None if launch.block.is_empty() => &[1],
        _ => &launch.block,
    }
}

/// CTAs per cluster, from the launch, or else from the kernel.
pub(super) fn cluster<'a>(kernel: &'a Kernel, launch: &'a Launch) -> Option<&'a [u32]> {
    match &launch.cluster[..] {
        [] => kernel.demands(".reqnctapercluster"),
        given => Some(given),
    }
}

/// All requirements of the kernel that the launch violates.
pub(super) fn misfits(kernel: &Kernel, launch: &Launch, file: &Arc<SourceFile>) -> Vec<Diagnostic> {
    let (block, cluster) = (block(kernel, launch), cluster(kernel, launch));
    let ctas = cluster.map_or(1, count);
    fn of(sizes: &[u32]) -> String {
        sizes
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(",")
    }
    let mut all = Vec::new();
    for demand in &kernel.demands {
        let sizes = &demand.sizes;
        let most = count(sizes);
        let (message, help) = match demand.directive {
            ".reqntid" if !same(block, sizes) => (
                format!(
                    "`{}` is launched with blocks of {}, and demands blocks of {}",
                    kernel.name,
                    of(block),
                    of(sizes)
                ),
                format!("`--block {}`", of(sizes)),
            ),
            ".maxntid" if count(block) > most => (
                format!(
                    "`{}` is launched with {} threads in a block, and takes at most {most}",
                    kernel.name,
                    count(block)
                ),
                format!("`--block {}`, or less", of(sizes)),
            ),
            ".reqnctapercluster" if cluster.is_some_and(|cluster| !same(cluster, sizes)) => (
                format!(
                    "`{}` is launched with clusters of {}, and demands clusters of {}",
                    kernel.name,
                    of(cluster.unwrap_or_default()),
                    of(sizes)
                ),
                format!(
                    "give `--cluster {}`, or leave it out: the kernel's demand then holds",
                    of(sizes)
                ),
            ),
            ".explicitcluster" if cluster.is_none() => (
                format!(
                    "`{}` is launched without clusters, and demands a cluster size",
                    kernel.name
                ),
                "give the number of blocks in a cluster: `--cluster 2`".to_owned(),
            ),
            ".maxclusterrank" if ctas > most => (
                format!(
                    "`{}` is launched with {ctas} blocks in a cluster, and takes at most {most}",
                    kernel.name
                ),
                format!("`--cluster {most}`, or less"),
            ),
            _ => continue,
        };
        all.push(
            Diagnostic::error("launch-mismatch", file, demand.span, message)
                .label("demanded here")
                .note(
                    "such a launch fails (PTX ISA 9.4, Performance-Tuning Directives, Cluster \
                    Dimension Directives)",
                )
                .help(help),
        );
    }
    all
}

/// The product of the sizes in all dimensions.
fn count(sizes: &[u32]) -> u64 {
    sizes
        .iter()
        .fold(1, |all, size| all.saturating_mul(u64::from(*size)))
}

/// Whether sizes are equal in each dimension; missing ones count as 1.
fn same(a: &[u32], b: &[u32]) -> bool {
    fn of(sizes: &[u32], n: usize) -> u32 {
        sizes.get(n).copied().unwrap_or(1)
    }
    (0..a.len().max(b.len())).all(|n| of(a, n) == of(b, n))
}
