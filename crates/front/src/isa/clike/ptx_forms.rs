//! Lists the CUDA C++ functions that are PTX instructions. A row holds one form of a function, and
//! the assembly that the library writes for it.
//!
//! # Sources
//! - libcu++, `cuda/__ptx/instructions/generated/*.h`, and the PTX it compiles to: each function of
//!   `cuda::ptx` is one instruction.
//! - libcu++, `cuda/__barrier/barrier_arrive_tx.h`, `barrier_expect_tx.h`,
//!   `cuda/__memcpy_async/*.h`, for sm_90.
//! - Cooperative Groups, `cooperative_groups/details/async.h`.
//! - `cuda_pipeline_helpers.h`: `__pipeline_memcpy_async` and similar functions.
//! - CUDA Programming Guide, *Programmatic Dependent Launch*; `cuda_device_runtime_api.h`.

use super::words::group_word;
use program::Space;

/// An argument of a form.
#[derive(Clone, Copy)]
pub(super) enum Arg {
    /// One of these `cuda::ptx` words, each for a qualifier.
    Tag(&'static [&'static str]),
    /// The address of a word of shared memory with an mbarrier object.
    Object,
    /// A library barrier that is an mbarrier object.
    Barrier,
    /// A pointer to memory of that space.
    To(Space),
    /// `Room` is a pointer to 16 bytes of shared memory for a response; `Response` is a structure
    /// of 16 bytes that contains a response.
    Room,
    Response,
    /// A number of that many bits, or of the element type of the copy.
    Value(u8),
    Element,
    /// A number of bytes, copied in pieces as wide as their alignment: 4, 8 or 16 bytes.
    Pieces,
    /// A number of bytes with a declared alignment of 16.
    Wide,
    /// A pipeline.
    Pipe,
    /// A group of threads that shares the work of a copy.
    Group,
    /// A constant.
    Number,
    /// The constant 1.
    One,
    /// The time limit of a wait, which does not matter.
    Time,
}

/// The result of a call.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Gives {
    Nothing,
    Token,
    Truth,
    /// A number of 32 bits; the call names its type.
    Coordinate,
    /// No result; the threads of the group wait for each other after the call.
    Meeting,
}

/// A form of a function. In its text, `%0` is the result and `%1` the first argument; `%g` sets `p`
/// in the thread that a group elects.
pub(super) struct PtxForm {
    pub(super) name: &'static str,
    pub(super) args: &'static [Arg],
    pub(super) gives: Gives,
    pub(super) text: &'static str,
}

const fn form(
    name: &'static str,
    args: &'static [Arg],
    gives: Gives,
    text: &'static str,
) -> PtxForm {
    PtxForm {
        name,
        args,
        gives,
        text,
    }
}

use Arg::{
    Barrier, Element, Group, Number, Object, One, Pieces, Pipe, Response, Room, Tag, Time, To,
    Value as Bits, Wide,
};
use Gives::{Coordinate, Meeting, Nothing, Token, Truth};

const RELEASES: Arg = Tag(&["sem_release", "sem_relaxed"]);
const ACQUIRES: Arg = Tag(&["sem_acquire", "sem_relaxed"]);
const RELAXED: Arg = Tag(&["sem_relaxed"]);
const REACH: Arg = Tag(&["scope_cta", "scope_cluster"]);
const CLUSTER: Arg = Tag(&["scope_cluster"]);
const AWAY: Arg = Tag(&["space_cluster"]);
const OWN: Arg = Tag(&["space_shared"]);
const GLOBAL: Arg = Tag(&["space_global"]);
const TO_OWN: Arg = Tag(&["space_shared", "space_cluster"]);
const OPERATION: Arg = Tag(&[
    "op_add", "op_min", "op_max", "op_inc", "op_dec", "op_and", "op_or", "op_xor",
]);
const SHARED: Arg = To(Space::Shared);
const THERE: Arg = To(Space::Global);

/// The forms of `cuda::ptx`, of `cuda::device`, and of the device runtime.
pub(super) const FORMS: &[PtxForm] = &[
    form(
        "ptx::mbarrier_init",
        &[Object, Bits(32)],
        Nothing,
        "mbarrier.init.shared.b64 [%1], %2;",
    ),
    form(
        "ptx::mbarrier_inval",
        &[Object],
        Nothing,
        "mbarrier.inval.shared.b64 [%1];",
    ),
    form(
        "ptx::mbarrier_arrive",
        &[Object],
        Token,
        "mbarrier.arrive.shared.b64 %0, [%1];",
    ),
    form(
        "ptx::mbarrier_arrive",
        &[Object, Bits(32)],
        Token,
        "mbarrier.arrive.shared::cta.b64 %0, [%1], %2;",
    ),
    form(
        "ptx::mbarrier_arrive",
        &[RELEASES, REACH, OWN, Object],
        Token,
        "mbarrier.arrive%1%2%3.b64 %0, [%4];",
    ),
    form(
        "ptx::mbarrier_arrive",
        &[RELEASES, REACH, OWN, Object, Bits(32)],
        Token,
        "mbarrier.arrive%1%2%3.b64 %0, [%4], %5;",
    ),
    form(
        "ptx::mbarrier_arrive",
        &[RELEASES, CLUSTER, AWAY, Object],
        Nothing,
        "mbarrier.arrive%1%2%3.b64 _, [%4];",
    ),
    form(
        "ptx::mbarrier_arrive",
        &[RELEASES, CLUSTER, AWAY, Object, Bits(32)],
        Nothing,
        "mbarrier.arrive%1%2%3.b64 _, [%4], %5;",
    ),
    form(
        "ptx::mbarrier_arrive_no_complete",
        &[Object, Bits(32)],
        Token,
        "mbarrier.arrive.noComplete.shared.b64 %0, [%1], %2;",
    ),
    form(
        "ptx::mbarrier_arrive_expect_tx",
        &[RELEASES, REACH, OWN, Object, Bits(32)],
        Token,
        "mbarrier.arrive.expect_tx%1%2%3.b64 %0, [%4], %5;",
    ),
    form(
        "ptx::mbarrier_arrive_expect_tx",
        &[RELEASES, CLUSTER, AWAY, Object, Bits(32)],
        Nothing,
        "mbarrier.arrive.expect_tx%1%2%3.b64 _, [%4], %5;",
    ),
    form(
        "ptx::mbarrier_arrive_drop",
        &[RELEASES, CLUSTER, AWAY, Object, Bits(32)],
        Nothing,
        "mbarrier.arrive_drop%1%2%3.b64 _, [%4], %5;",
    ),
    form(
        "ptx::mbarrier_arrive_drop",
        &[RELEASES, REACH, OWN, Object, Bits(32)],
        Token,
        "mbarrier.arrive_drop%1%2%3.b64 %0, [%4], %5;",
    ),
    form(
        "ptx::mbarrier_expect_tx",
        &[RELAXED, REACH, TO_OWN, Object, Bits(32)],
        Nothing,
        "mbarrier.expect_tx%1%2%3.b64 [%4], %5;",
    ),
    form(
        "ptx::mbarrier_complete_tx",
        &[RELAXED, REACH, OWN, Object, Bits(32)],
        Nothing,
        "mbarrier.complete_tx%1%2%3.b64 [%4], %5;",
    ),
    form(
        "ptx::mbarrier_test_wait",
        &[Object, Bits(64)],
        Truth,
        "mbarrier.test_wait.shared.b64 p, [%1], %2;",
    ),
    form(
        "ptx::mbarrier_test_wait",
        &[ACQUIRES, REACH, Object, Bits(64)],
        Truth,
        "mbarrier.test_wait%1%2.shared::cta.b64 p, [%3], %4;",
    ),
    form(
        "ptx::mbarrier_test_wait_parity",
        &[Object, Bits(32)],
        Truth,
        "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;",
    ),
    form(
        "ptx::mbarrier_test_wait_parity",
        &[ACQUIRES, REACH, Object, Bits(32)],
        Truth,
        "mbarrier.test_wait.parity%1%2.shared::cta.b64 p, [%3], %4;",
    ),
    form(
        "ptx::mbarrier_try_wait",
        &[Object, Bits(64)],
        Truth,
        "mbarrier.try_wait.shared::cta.b64 p, [%1], %2;",
    ),
    form(
        "ptx::mbarrier_try_wait",
        &[Object, Bits(64), Time],
        Truth,
        "mbarrier.try_wait.shared::cta.b64 p, [%1], %2;",
    ),
    form(
        "ptx::mbarrier_try_wait",
        &[ACQUIRES, REACH, Object, Bits(64)],
        Truth,
        "mbarrier.try_wait%1%2.shared::cta.b64 p, [%3], %4;",
    ),
    form(
        "ptx::mbarrier_try_wait",
        &[ACQUIRES, REACH, Object, Bits(64), Time],
        Truth,
        "mbarrier.try_wait%1%2.shared::cta.b64 p, [%3], %4;",
    ),
    form(
        "ptx::mbarrier_try_wait_parity",
        &[Object, Bits(32)],
        Truth,
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;",
    ),
    form(
        "ptx::mbarrier_try_wait_parity",
        &[Object, Bits(32), Time],
        Truth,
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;",
    ),
    form(
        "ptx::mbarrier_try_wait_parity",
        &[ACQUIRES, REACH, Object, Bits(32)],
        Truth,
        "mbarrier.try_wait.parity%1%2.shared::cta.b64 p, [%3], %4;",
    ),
    form(
        "ptx::mbarrier_try_wait_parity",
        &[ACQUIRES, REACH, Object, Bits(32), Time],
        Truth,
        "mbarrier.try_wait.parity%1%2.shared::cta.b64 p, [%3], %4;",
    ),
    form(
        "ptx::fence",
        &[
            Tag(&["sem_sc", "sem_acq_rel", "sem_acquire", "sem_release"]),
            Tag(&["scope_cta", "scope_cluster", "scope_gpu", "scope_sys"]),
        ],
        Nothing,
        "fence%1%2;",
    ),
    form(
        "ptx::fence_mbarrier_init",
        &[Tag(&["sem_release"]), Tag(&["scope_cluster"])],
        Nothing,
        "fence.mbarrier_init%1%2;",
    ),
    form(
        "ptx::fence_sync_restrict",
        &[Tag(&["sem_acquire"]), AWAY, CLUSTER],
        Nothing,
        "fence.acquire.sync_restrict::shared::cluster.cluster;",
    ),
    form(
        "ptx::fence_sync_restrict",
        &[Tag(&["sem_release"]), OWN, CLUSTER],
        Nothing,
        "fence.release.sync_restrict::shared::cta.cluster;",
    ),
    form(
        "ptx::fence_proxy_async_generic_sync_restrict",
        &[Tag(&["sem_acquire"]), AWAY, CLUSTER],
        Nothing,
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;",
    ),
    form(
        "ptx::fence_proxy_async_generic_sync_restrict",
        &[Tag(&["sem_release"]), OWN, CLUSTER],
        Nothing,
        "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;",
    ),
    form("ptx::fence_proxy_alias", &[], Nothing, "fence.proxy.alias;"),
    form("ptx::fence_proxy_async", &[], Nothing, "fence.proxy.async;"),
    form(
        "ptx::fence_proxy_async",
        &[Tag(&["space_global", "space_shared", "space_cluster"])],
        Nothing,
        "fence.proxy.async%1;",
    ),
    form(
        "ptx::cp_async_bulk",
        &[TO_OWN, GLOBAL, SHARED, THERE, Number, Object],
        Nothing,
        "cp.async.bulk%1%2.mbarrier::complete_tx::bytes [%3], [%4], %5, [%6];",
    ),
    form(
        "ptx::cp_async_bulk",
        &[GLOBAL, OWN, THERE, SHARED, Number],
        Nothing,
        "cp.async.bulk%1%2.bulk_group [%3], [%4], %5;",
    ),
    form(
        "ptx::cp_async_bulk",
        &[AWAY, OWN, SHARED, SHARED, Number, Object],
        Nothing,
        "cp.async.bulk%1%2.mbarrier::complete_tx::bytes [%3], [%4], %5, [%6];",
    ),
    form(
        "ptx::cp_async_bulk",
        &[AWAY, GLOBAL, SHARED, THERE, Number, Object, Number],
        Nothing,
        "cp.async.bulk%1%2.mbarrier::complete_tx::bytes.multicast::cluster \
         [%3], [%4], %5, [%6], %7;",
    ),
    form(
        "ptx::cp_async_bulk_commit_group",
        &[],
        Nothing,
        "cp.async.bulk.commit_group;",
    ),
    form(
        "ptx::cp_async_bulk_wait_group",
        &[Number],
        Nothing,
        "cp.async.bulk.wait_group %1;",
    ),
    form(
        "ptx::cp_async_bulk_wait_group_read",
        &[Number],
        Nothing,
        "cp.async.bulk.wait_group.read %1;",
    ),
    form(
        "ptx::cp_reduce_async_bulk",
        &[GLOBAL, OWN, OPERATION, THERE, SHARED, Number],
        Nothing,
        "cp.reduce.async.bulk%1%2.bulk_group%3.%t [%4], [%5], %6;",
    ),
    form(
        "ptx::cp_reduce_async_bulk",
        &[AWAY, OWN, OPERATION, SHARED, SHARED, Number, Object],
        Nothing,
        "cp.reduce.async.bulk%1%2.mbarrier::complete_tx::bytes%3.%t [%4], [%5], %6, [%7];",
    ),
    form(
        "ptx::st_async",
        &[SHARED, Element, Object],
        Nothing,
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.%b [%1], %2, [%3];",
    ),
    form(
        "ptx::red_async",
        &[OPERATION, RELAXED, CLUSTER, AWAY, SHARED, Element, Object],
        Nothing,
        "red.async%2%3%4.mbarrier::complete_tx::bytes%1.%t [%5], %6, [%7];",
    ),
    form(
        "ptx::clusterlaunchcontrol_try_cancel",
        &[Room, Object],
        Nothing,
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 \
         [%1], [%2];",
    ),
    form(
        "ptx::clusterlaunchcontrol_try_cancel_multicast",
        &[Room, Object],
        Nothing,
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes\
         .multicast::cluster::all.b128 [%1], [%2];",
    ),
    form(
        "ptx::clusterlaunchcontrol_query_cancel_is_canceled",
        &[Response],
        Truth,
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, %1;",
    ),
    form(
        "ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid_x",
        &[Response],
        Coordinate,
        "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, %1;",
    ),
    form(
        "ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid_y",
        &[Response],
        Coordinate,
        "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %0, %1;",
    ),
    form(
        "ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid_z",
        &[Response],
        Coordinate,
        "clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %0, %1;",
    ),
    form("ptx::elect_sync", &[Number], Truth, "elect.sync _|p, %1;"),
    form(
        "ptx::cp_async_mbarrier_arrive",
        &[Object],
        Nothing,
        "cp.async.mbarrier.arrive.b64 [%1];",
    ),
    form(
        "ptx::cp_async_mbarrier_arrive_noinc",
        &[Object],
        Nothing,
        "cp.async.mbarrier.arrive.noinc.b64 [%1];",
    ),
    form(
        "ptx::barrier_cluster_arrive",
        &[],
        Nothing,
        "barrier.cluster.arrive;",
    ),
    form(
        "ptx::barrier_cluster_arrive",
        &[RELEASES],
        Nothing,
        "barrier.cluster.arrive%1;",
    ),
    form(
        "ptx::barrier_cluster_wait",
        &[],
        Nothing,
        "barrier.cluster.wait;",
    ),
    form(
        "ptx::barrier_cluster_wait",
        &[Tag(&["sem_acquire"])],
        Nothing,
        "barrier.cluster.wait%1;",
    ),
    form(
        "device::barrier_arrive_tx",
        &[Barrier, One, Bits(32)],
        Token,
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %0, [%1], %3;",
    ),
    form(
        "device::barrier_arrive_tx",
        &[Barrier, Bits(32), Bits(32)],
        Token,
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%1], %3; \
         mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1], %2;",
    ),
    form(
        "device::barrier_expect_tx",
        &[Barrier, Bits(32)],
        Nothing,
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%1], %2;",
    ),
    form(
        "device::memcpy_async_tx",
        &[SHARED, THERE, Number, Barrier],
        Nothing,
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%1], [%2], %3, [%4];",
    ),
    form(
        "memcpy_async",
        &[SHARED, THERE, Wide, Barrier],
        Nothing,
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%1], [%2], %3, [%4]; \
         mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%4], %3;",
    ),
    form(
        "memcpy_async",
        &[SHARED, THERE, Pieces, Barrier],
        Nothing,
        "cp.async.mbarrier.arrive.shared.b64 [%4];",
    ),
    form("memcpy_async", &[SHARED, THERE, Pieces, Pipe], Nothing, ""),
    form(
        "memcpy_async",
        &[Group, SHARED, THERE, Wide, Barrier],
        Nothing,
        "{ .reg .pred p; \
         %g @p cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%2], [%3], %4, [%5]; \
         @p mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%5], %4; }",
    ),
    form(
        "memcpy_async",
        &[Group, SHARED, THERE, Pieces, Barrier],
        Nothing,
        "cp.async.mbarrier.arrive.shared.b64 [%5];",
    ),
    form(
        "memcpy_async",
        &[Group, SHARED, THERE, Pieces, Pipe],
        Nothing,
        "",
    ),
    form(
        "cg::memcpy_async",
        &[Group, SHARED, THERE, Pieces],
        Nothing,
        "cp.async.commit_group;",
    ),
    form("cg::wait", &[Group], Meeting, "cp.async.wait_group 0;"),
    form(
        "cg::wait_prior",
        &[Number, Group],
        Meeting,
        "cp.async.wait_group %1;",
    ),
    form(
        "pipeline_producer_commit",
        &[Pipe, Barrier],
        Nothing,
        "cp.async.mbarrier.arrive.shared.b64 [%2];",
    ),
    form(
        "__pipeline_memcpy_async",
        &[SHARED, THERE, Number],
        Nothing,
        "cp.async.ca.shared.global [%1], [%2], %3, %3;",
    ),
    form("__pipeline_commit", &[], Nothing, "cp.async.commit_group;"),
    form(
        "__pipeline_wait_prior",
        &[Number],
        Nothing,
        "cp.async.wait_group %1;",
    ),
    form(
        "__pipeline_arrive_on",
        &[Object],
        Nothing,
        "cp.async.mbarrier.arrive.shared.b64 [%1];",
    ),
    form(
        "cudaGridDependencySynchronize",
        &[],
        Nothing,
        "griddepcontrol.wait;",
    ),
    form(
        "cudaTriggerProgrammaticLaunchCompletion",
        &[],
        Nothing,
        "griddepcontrol.launch_dependents;",
    ),
];

/// The name of a function as the rows write it.
pub(super) fn plain(name: &str) -> &str {
    let name = name.strip_prefix("::").unwrap_or(name);
    name.strip_prefix("cuda::").unwrap_or(name)
}

/// The same with the namespace of groups.
fn in_row(name: &str) -> (&str, bool) {
    let word = group_word(name);
    if word == name {
        (plain(name), false)
    } else {
        (word, true)
    }
}

/// Whether a call of this function, given without its namespaces, names its result type. Its
/// siblings differ from it only in the coordinate.
pub(super) fn is_typed(name: &str) -> bool {
    fn of_all(name: &str) -> Option<String> {
        name.rsplit_once('_').map(|(of_all, _)| of_all.to_owned())
    }
    let name = of_all(&format!("ptx::{name}"));
    FORMS
        .iter()
        .any(|form| form.gives == Gives::Coordinate && of_all(form.name) == name)
}

pub(super) fn forms(name: &str) -> impl Iterator<Item = &'static PtxForm> + '_ {
    let (word, of_groups) = in_row(name);
    FORMS
        .iter()
        .filter(move |form| match form.name.strip_prefix("cg::") {
            Some(name) => of_groups && name == word,
            None => !of_groups && form.name == word,
        })
}

/// Whether a function is a PTX instruction, even if its name begins like that of a runtime call.
pub(in crate::isa::clike) fn is_instruction(word: &str) -> bool {
    forms(word).next().is_some()
}

impl Arg {
    /// The argument as messages write it.
    pub(super) fn text(self) -> String {
        match self {
            Tag(words) => words.join("|"),
            Object => "&word".into(),
            Barrier => "bar".into(),
            To(Space::Shared) => "shared memory".into(),
            To(_) => "global memory".into(),
            Room => "&response".into(),
            Response => "response".into(),
            Bits(_) | Element => "value".into(),
            Pieces => "bytes".into(),
            Wide => "cuda::aligned_size_t<16>(bytes)".into(),
            Pipe => "pipe".into(),
            Group => "group".into(),
            Number => "constant".into(),
            One => "1".into(),
            Time => "time".into(),
        }
    }
}
