//! Finds the calls that concern the same lane or event, so that their order matters.
//!
//! # Sources
//! - OpenCL API specification, *Host environment and thread safety*: calls of several threads
//!   happen one after the other.
//! - CUDA driver API, *Stream synchronization behavior*, for streams that synchronize with the
//!   legacy default stream.

use std::collections::BTreeSet;

use super::{CallId, HandleKind, HostOp, HostProgram, LaneId, LaneKind, Ref};

/// An object that a call concerns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallTopic {
    /// A stream or queue.
    Lane(LaneId),
    /// The legacy default stream of a device and all streams that synchronize with it.
    Legacy(u32),
    /// A recorded event.
    Handle(super::HandleId),
}

/// The pairs of calls of different threads that concern the same object, the earlier call first;
/// sorted.
pub(super) fn ordered(host: &HostProgram, order: &[CallId]) -> Vec<(CallId, CallId)> {
    let about: Vec<BTreeSet<CallTopic>> = order.iter().map(|c| of(host, *c)).collect();
    let mut pairs = Vec::new();
    for (i, &x) in order.iter().enumerate() {
        for (j, &y) in order.iter().enumerate().skip(i + 1) {
            if host.call(x).thread != host.call(y).thread && !about[i].is_disjoint(&about[j]) {
                pairs.push((x, y));
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// The objects that a call on a lane concerns.
pub(super) fn of_lane(host: &HostProgram, id: LaneId) -> impl Iterator<Item = CallTopic> + use<> {
    let legacy = match host.lane(id).kind {
        LaneKind::Null | LaneKind::Stream { blocking: true } => {
            Some(CallTopic::Legacy(host.lane(id).device))
        }
        _ => None,
    };
    [CallTopic::Lane(id)].into_iter().chain(legacy)
}

fn of(host: &HostProgram, call: CallId) -> BTreeSet<CallTopic> {
    let lane = |id: LaneId| of_lane(host, id);
    match &host.call(call).op {
        HostOp::Enqueue { command, .. } => host
            .command(*command)
            .lane
            .into_iter()
            .flat_map(lane)
            .collect(),
        HostOp::Finish(l) | HostOp::Flush(l) | HostOp::Release(l) => lane(*l).collect(),
        HostOp::SyncDevice(device) => {
            let all = (0..host.lanes.len() as u16)
                .map(LaneId)
                .filter(|l| host.lane(*l).device == *device);
            all.flat_map(lane).collect()
        }
        HostOp::Record(h, l) | HostOp::LaneWait(l, h) => {
            lane(*l).chain([CallTopic::Handle(*h)]).collect()
        }
        HostOp::Wait(refs) => refs
            .iter()
            .filter_map(|r| match r {
                Ref::Handle(h) if host.handle(*h).kind == HandleKind::Recorded => {
                    Some(CallTopic::Handle(*h))
                }
                _ => None,
            })
            .collect(),
        HostOp::CreateUser(_) | HostOp::SetUser(_) => BTreeSet::new(),
    }
}
