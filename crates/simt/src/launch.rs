//! Launches: regroups threads into warps of another size, and checks the size of blocks.
//!
//! # Sources
//! - CUDA Programming Guide, *Compute Capabilities, Technical Specifications*: 1,024 threads per
//!   block, 48 KB of statically allocated shared memory per block.
//! - *Cooperative Groups, Grid Synchronization*: a cooperative launch fails unless all blocks are
//!   resident at once.

use std::collections::BTreeMap;

use super::LaunchOptions;
use super::code::Code;
use super::layer::residency;
use program::host::CommandId;
use program::litmus::LitmusTest;
use program::{LocationKind, Op, Scope, Space, Thread};

/// Special registers that depend on the warps; reading the test fixed their values.
const OF_WARPS: [&str; 3] = ["%laneid", "%warpid", "%nwarpid"];

/// The test with warps of `size` consecutive threads of a block; `None` if it does not change.
///
/// # Errors
/// If the test depends on its own warps.
pub(super) fn regroup(test: &LitmusTest, size: Option<u32>) -> Result<Option<LitmusTest>, String> {
    let Some(size) = size else { return Ok(None) };
    if size == 0 {
        return Err("a warp has at least one thread".into());
    }
    let mut new = test.clone();
    let mut counts: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut changed = false;
    for thread in new.program.threads.iter_mut().filter(|t| !t.place.host) {
        let count = counts
            .entry((thread.place.gpu, thread.place.cta))
            .or_default();
        let warp = Some(*count / size);
        *count += 1;
        changed |= thread.place.warp != warp;
        thread.place.warp = warp;
    }
    fn of_warps(op: &Op, text: &str) -> bool {
        op.barrier().is_some_and(|b| b.domain == Scope::Warp)
            || OF_WARPS.iter().any(|r| text.contains(r))
    }
    let mut all = test.program.threads.iter().flat_map(|t| &t.code);
    match all.find(|i| changed && of_warps(&i.op, &i.text)) {
        Some(i) => Err(format!(
            "line {}: `{}` depends on the test's warps; give their size in the test (`warp`), not \
            by an option",
            i.line, i.text
        )),
        None => Ok(changed.then_some(new)),
    }
}

/// The test with cooperative launches, if the options ask for them and it has others; `None` if it
/// does not change.
pub fn cooperative(test: &LitmusTest, launch: &LaunchOptions) -> Option<LitmusTest> {
    fn others(t: &Thread) -> bool {
        t.place.launched && !t.place.cooperative
    }
    if !launch.cooperative || !test.program.threads.iter().any(others) {
        return None;
    }
    let mut new = test.clone();
    for thread in &mut new.program.threads {
        thread.place.cooperative |= thread.place.launched;
    }
    Some(new)
}

/// Checks that every block fits.
///
/// # Errors
/// If a block is too large.
pub(super) fn fits(code: &Code, launch: &LaunchOptions) -> Result<(), String> {
    let program = &code.program;
    let blocks =
        (0..program.threads.len()).filter(|&t| code.cta[t] == t && !program.threads[t].place.host);
    for t in blocks {
        let threads = code.members(t, Scope::Cta).len();
        if threads as u64 > u64::from(launch.max_block) {
            return Err(format!(
                "launch failed: block {} has {threads} threads, and a block can have {}",
                program.threads[t].place.cta, launch.max_block
            ));
        }
    }
    let mut sum = 0;
    for location in &program.locations {
        if let LocationKind::Object {
            layout,
            init,
            space: Space::Shared,
            ..
        } = &location.kind
        {
            sum += layout.bytes(init.len());
            if sum > launch.max_shared {
                return Err(format!(
                    "launch failed: with `{}` a block needs {sum} bytes of shared memory, and it \
                        can have {}",
                    location.name, launch.max_shared
                ));
            }
        }
    }
    resident(code, launch)
}

/// Checks that all blocks of a cooperative launch are resident at once.
fn resident(code: &Code, launch: &LaunchOptions) -> Result<(), String> {
    let Some(room) = launch.capacity() else {
        return Ok(());
    };
    if room == 0 {
        return Err("launch failed: a multiprocessor has no room for one block".to_owned());
    }
    let program = &code.program;
    let mut blocks: BTreeMap<(usize, Option<CommandId>), usize> = BTreeMap::new();
    for t in (0..program.threads.len()).filter(|&t| code.cta[t] == t) {
        if let Some(of) = residency::launch(code, t)
            && (launch.cooperative || program.threads[t].place.cooperative)
        {
            *blocks.entry((code.group(t, Scope::Gpu), of)).or_default() += 1;
        }
    }
    match blocks.into_values().find(|&n| n > room) {
        Some(n) => Err(format!(
            "launch failed: a cooperative launch needs all its {n} blocks resident at once, and \
                there is room for {room}"
        )),
        None => Ok(()),
    }
}
