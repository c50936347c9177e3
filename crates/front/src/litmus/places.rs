//! The places of threads: in an index space, or on the host.

use crate::isa::clike::{Coordinates, WarpMapping};
use program::{NdRange, Place, SubGroups, WorkItem};

/// The maximum number of threads in a test.
pub const MAX_THREADS: usize = 4096;

/// The layout of a kernel's threads on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct GridLayout {
    pub(super) gpu: u32,
    pub(super) domain: u32,
    /// The number of threads in a warp.
    pub(super) warp: u32,
    /// Which threads share a warp.
    pub(super) mapping: WarpMapping,
    /// The number of CTAs in a cluster, per dimension.
    pub(super) cluster: Option<[u64; 3]>,
    /// Whether the launch is cooperative: it fails unless all its blocks are resident at once.
    pub(super) cooperative: bool,
}

impl GridLayout {
    /// All threads of an index space, in order of their places; the caller has checked its size.
    pub(super) fn threads(&self, range: NdRange) -> Vec<(Coordinates, Place)> {
        self.of(range, range.items())
    }

    /// A dimension in which the blocks of an index space are not whole clusters.
    pub(super) fn partial_cluster(&self, range: &NdRange) -> Option<usize> {
        let cluster = self.cluster?;
        (0..3).find(|&d| !range.groups()[d].is_multiple_of(cluster[d].max(1)))
    }

    /// Some threads of an index space, by their places.
    pub(super) fn some(&self, range: NdRange, items: &[WorkItem]) -> Vec<(Coordinates, Place)> {
        self.of(range, items.iter().copied())
    }

    fn of(
        &self,
        range: NdRange,
        items: impl Iterator<Item = WorkItem>,
    ) -> Vec<(Coordinates, Place)> {
        let all = items.map(|item| Coordinates {
            range,
            item,
            warp: self.warp,
            cluster: self.cluster.unwrap_or([1; 3]),
            mapping: self.mapping,
        });
        all.map(|at| (at, self.place(at))).collect()
    }

    /// Two threads of a warp by their places, which differ in every coordinate.
    pub(super) fn two(&self, dimensions: usize) -> Vec<(Coordinates, Place)> {
        let [global, local] = [8, 4].map(|size| vec![size; dimensions]);
        let range = NdRange::new(&global, &local, &[]);
        let Ok(range) = range else {
            return Vec::new();
        };
        let all = self.threads(range);
        let place = all.first().map(|(_, place)| place.clone());
        let ends = [all.first(), all.last()].into_iter().flatten();
        ends.zip(place.into_iter().cycle())
            .map(|((at, _), place)| (*at, place))
            .collect()
    }

    /// Where a thread runs.
    fn place(&self, at: Coordinates) -> Place {
        let range = at.range;
        let group = range.group_linear_id(at.item);
        let lane = range.local_linear_id(at.item);
        let size = range.size(at.item.group).iter().product();
        // The test has few threads, so these numbers fit into 32 bits.
        let cluster = self.cluster.map(|shape| {
            let [x, y, z] = [0, 1, 2].map(|d| at.item.group[d] / shape[d]);
            let [across, down] = [0, 1].map(|d| range.groups()[d].div_ceil(shape[d]));
            narrow((z * down + y) * across + x)
        });
        let groups = SubGroups {
            size,
            room: u64::from(self.warp),
        };
        let sub_group = self.mapping.sub_group(groups, lane);
        let device = Place::device(self.gpu, narrow(group));
        Place {
            cluster,
            warp: Some(narrow(sub_group)),
            domain: self.domain,
            cooperative: self.cooperative,
            launched: true,
            ..device
        }
    }
}

fn narrow(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The place of a host thread: a separate device, with a number far above those that tests use.
pub(super) fn host_place(number: usize) -> Place {
    let gpu = u32::MAX - u32::try_from(number).unwrap_or(0);
    Place {
        host: true,
        ..Place::device(gpu, 0)
    }
}

/// PTX's special registers for the place of a thread (PTX ISA, *Special Registers*).
pub(super) fn special_registers(at: Coordinates) -> Vec<(String, i64)> {
    let Coordinates {
        range,
        item,
        warp,
        cluster,
        ..
    } = at;
    let in_cluster = [0, 1, 2].map(|d| item.group[d] % cluster[d]);
    let lane = range.local_linear_id(item);
    let in_warp = lane % u64::from(warp);
    let warps = SubGroups {
        size: range.local().iter().product(),
        room: u64::from(warp),
    };
    let mut all = vec![
        ("%laneid".to_string(), in_warp),
        (
            "%cluster_ctarank".to_string(),
            in_cluster[0] + cluster[0] * (in_cluster[1] + cluster[1] * in_cluster[2]),
        ),
        ("%cluster_nctarank".to_string(), cluster.iter().product()),
        ("%warpid".to_string(), warps.of(lane)),
        ("%nwarpid".to_string(), warps.count()),
    ];
    for (d, axis) in ["x", "y", "z"].into_iter().enumerate() {
        all.push((format!("%tid.{axis}"), item.local[d]));
        all.push((format!("%ntid.{axis}"), range.local()[d]));
        all.push((format!("%ctaid.{axis}"), item.group[d]));
        all.push((format!("%nctaid.{axis}"), range.groups()[d]));
        all.push((format!("%cluster_ctaid.{axis}"), in_cluster[d]));
        all.push((format!("%cluster_nctaid.{axis}"), cluster[d]));
        all.push((format!("%clusterid.{axis}"), item.group[d] / cluster[d]));
        all.push((
            format!("%nclusterid.{axis}"),
            range.groups()[d].div_ceil(cluster[d]),
        ));
    }
    // The masks are defined for warps of at most 32 lanes.
    if let Some(own) = 1u32.checked_shl(in_warp as u32) {
        let masks = [
            ("eq", own),
            ("lt", own - 1),
            ("le", own | (own - 1)),
            ("gt", !(own | (own - 1))),
            ("ge", !(own - 1)),
        ];
        all.extend(masks.map(|(name, mask)| (format!("%lanemask_{name}"), u64::from(mask))));
    }
    all.into_iter()
        .map(|(name, value)| (name, value as i64))
        .collect()
}
