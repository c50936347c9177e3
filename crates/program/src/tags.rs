//! Defines tags: the properties of an instruction that a model sees.
//!
//! A dialect attaches tags when it lowers an instruction. Each tag becomes a set of events, which
//! has the tag's name in every model. [`Tag`] is the one list: a tag that it lacks does not exist.
//! Names are those of the field's published models, so that their files run unmodified.
//!
//! # Invariants
//! - [`Tags`] is a set of bits, one for each tag; it iterates in alphabetical order of names.

use std::fmt;

/// The languages that have a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speakers {
    /// PTX alone.
    Ptx,
    /// Several, or another than PTX.
    Several,
}

/// Whether the device runner builds operations with a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDevices {
    /// It does, or another tag of the operation decides.
    Built,
    /// It refuses them.
    Unbuilt,
}

/// What is known of a tag.
#[derive(Debug)]
pub struct TagRow {
    /// The tag.
    pub tag: Tag,
    /// Its name in models.
    pub name: &'static str,
    /// The languages that have it.
    pub speakers: Speakers,
    /// Whether the device runner builds it. The executor takes every tag.
    pub devices: OnDevices,
    /// Its meaning, headed by the languages that have it, if these are not all.
    pub doc: &'static str,
}

/// Declares the tags, one row each: variant, name in models, languages and devices, meaning.
macro_rules! tags {
    ($($variant:ident $name:literal ($speakers:ident, $devices:ident) $doc:literal;)*) => {
        /// A tag; [`Tag::row`] has its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Tag {
            $(#[doc = $doc] $variant,)*
        }

        /// One row for each tag, in the order of [`Tag`].
        pub const TAGS: &[TagRow] = &[$(TagRow {
            tag: Tag::$variant,
            name: $name,
            speakers: Speakers::$speakers,
            devices: OnDevices::$devices,
            doc: $doc,
        }),*];
    };
}

tags! {
    Relaxed "RLX" (Several, Built) "relaxed memory operation";
    Acquire "ACQ" (Several, Built) "acquire operation or fence";
    Release "REL" (Several, Built) "release operation or fence";
    AcqRel "ACQ_REL" (Several, Built) "fence (or RMW) that is acquire and release";
    SeqCst "SC" (Several, Built) "sequentially consistent operation or fence";
    Constant "CON" (Several, Built) "PTX: constant proxy; C: consume order";
    Weak "WEAK" (Several, Built) "weak (non-atomic) access";
    Atomic "A" (Several, Built) "atomic operation";
    FailRelaxed "FAIL_RLX" (Several, Built)
        "CUDA: a compare-exchange that is relaxed on failure, though not on success";
    FailAcquire "FAIL_ACQ" (Several, Built)
        "CUDA: a compare-exchange that acquires on failure, but differs on success";
    FailSeqCst "FAIL_SC" (Several, Built)
        "CUDA: a compare-exchange that is sequentially consistent on failure, but not on success";
    Object "OBJECT" (Several, Built)
        "CUDA: an operation of a barrier, latch, semaphore or vote of the library";
    Misuse "MISUSE" (Several, Built)
        "CUDA, PTX: an operation whose precondition does not hold; it orders nothing";
    Aligned "ALIGNED" (Ptx, Built)
        "PTX: an instruction that all threads of a warp must execute together";
    Lanes "LANES" (Ptx, Unbuilt)
        "PTX: an aligned instruction of the lanes of a warp, other than a barrier";
    Mbarrier "MB" (Ptx, Unbuilt) "PTX: either half of an operation on an mbarrier object";
    MbarrierArrive "MBA" (Ptx, Built) "PTX: an arrival at an mbarrier object, the write half";
    MbarrierWait "MBW" (Ptx, Built)
        "PTX: a wait or test of an mbarrier object that found the phase complete, the write half";
    MbarrierInit "MBI" (Ptx, Unbuilt)
        "PTX: initialization of an mbarrier object, the write half; the fence \
         `fence.mbarrier_init`";
    OwnCta "OWN" (Ptx, Built)
        "PTX: an operation on an mbarrier object of the thread's own CTA alone";
    Asynchronous "ASY" (Ptx, Unbuilt)
        "PTX: an event of an asynchronous operation, in no thread's program order";
    CommitGroup "CG" (Ptx, Unbuilt) "PTX: asynchronous copies become a group";
    WaitGroup "GW" (Ptx, Unbuilt) "PTX: a wait for groups of asynchronous copies";
    WaitGroupRead "GR" (Ptx, Unbuilt)
        "PTX: a wait until groups of asynchronous copies have read their sources";
    Bulk "BULK" (Several, Built)
        "PTX: bulk copies become a group, or a wait for such groups (other copies have separate \
        groups)";
    MbarrierBytes "MBT" (Ptx, Built)
        "PTX: an mbarrier object counts the bytes that an asynchronous copy brought, the write \
        half";
    Rmw "RMW" (Several, Built) "either half of a read-modify-write";
    Wgmma "WGMMA" (Several, Built)
        "PTX: reads by matrix instructions of a warpgroup, the groups of these instructions, \
        waits for the groups";
    WgmmaFence "WGF" (Ptx, Unbuilt) "PTX: `wgmma.fence`";
    TensorLoad "TLD" (Ptx, Unbuilt) "PTX: `tcgen05.ld` begins to read tensor memory";
    TensorStore "TST" (Ptx, Unbuilt) "PTX: `tcgen05.st` begins to write tensor memory";
    TensorMultiply "TMMA" (Ptx, Unbuilt)
        "PTX: `tcgen05.mma` begins to read and write its accumulator in tensor memory";
    TensorOperand "TMMAR" (Ptx, Unbuilt)
        "PTX: `tcgen05.mma` begins to read an operand in tensor memory";
    TensorAlloc "TALLOC" (Ptx, Unbuilt) "PTX: `tcgen05.alloc` gives columns of tensor memory";
    TensorFree "TFREE" (Ptx, Unbuilt)
        "PTX: `tcgen05.dealloc` takes columns of tensor memory back";
    TensorWaitLoad "TWL" (Ptx, Unbuilt) "PTX: `tcgen05.wait::ld`";
    TensorWaitStore "TWS" (Ptx, Unbuilt) "PTX: `tcgen05.wait::st`";
    TensorBefore "TBF" (Ptx, Unbuilt) "PTX: `tcgen05.fence::before_thread_sync`";
    TensorAfter "TAF" (Ptx, Unbuilt) "PTX: `tcgen05.fence::after_thread_sync`";
    TensorCore "TCORE" (Ptx, Unbuilt)
        "PTX: reads of shared memory by `tcgen05.mma`, and the arrivals of `tcgen05.commit`";
    LaunchControl "CLC" (Ptx, Built)
        "PTX: a response of `clusterlaunchcontrol.try_cancel` is written";
    CancelRefused "REFUSED" (Ptx, Unbuilt)
        "PTX: a query finds that `clusterlaunchcontrol.try_cancel` was refused";
    LaunchDependents "GDL" (Ptx, Unbuilt) "PTX: `griddepcontrol.launch_dependents`";
    GridWait "GDW" (Ptx, Unbuilt) "PTX: `griddepcontrol.wait`";
    OtherCta "AWAY" (Ptx, Built)
        "PTX: an access of an asynchronous operation to the shared memory of another CTA alone";
    Reduction "RED" (Several, Built) "either half of a PTX reduction, which returns no value";
    Volatile "VOLATILE" (Several, Built) "volatile access";
    Mmio "MMIO" (Several, Built) "mmio access";
    Generic "GEN" (Ptx, Built) "generic proxy";
    Surface "SUR" (Ptx, Built) "surface proxy";
    Texture "TEX" (Ptx, Built) "texture proxy";
    AsyncProxy "ASYNC" (Ptx, Unbuilt) "async proxy; `fence.proxy.async`";
    TensormapProxy "TMAP" (Several, Built)
        "PTX: tensormap proxy: reads of tensor maps, and the halves of `fence.proxy.tensormap`";
    OfGlobal "OF_GLOBAL" (Ptx, Built) "PTX: `fence.proxy.async.global`";
    OfCta "OF_CTA" (Ptx, Built) "PTX: `fence.proxy.async.shared::cta`";
    OfCluster "OF_CLUSTER" (Ptx, Built) "PTX: `fence.proxy.async.shared::cluster`";
    OfReads "OF_READS" (Ptx, Built)
        "PTX: a fence of reads alone, `.sync_restrict::shared::cluster::read`";
    Alias "ALIAS" (Ptx, Built) "alias proxy fence";
    Half "HALF" (Ptx, Unbuilt)
        "PTX: a proxy fence with an order, which does its work together with one of the other \
         order";
    ProxyFence "PF" (Ptx, Built) "proxy fence";
    Barrier "B" (Several, Built) "either half of a barrier";
    BarrierArrive "BA" (Several, Built) "arrival at a barrier";
    BarrierWait "BW" (Several, Built) "wait at a barrier";
    Collective "COLLECTIVE" (Several, Built)
        "CUDA: arrival at a barrier of a group of threads, all of which must take part";
    EntryFence "EF" (Several, Built)
        "OpenCL: entry fence of a barrier, the same event as its arrival";
    ExitFence "XF" (Several, Built) "OpenCL: exit fence of a barrier, the same event as its wait";
    Global "GLOBAL" (Several, Built) "OpenCL: fences of global memory; accesses to it";
    Local "LOCAL" (Several, Built) "OpenCL: fences of local memory; accesses to it";
    ImageFence "IMAGE_FENCE" (Several, Unbuilt) "OpenCL: fences of images";
    PipeRead "PIPE_READ" (Several, Unbuilt)
        "OpenCL: accesses of a kernel to a pipe from which it reads";
    PipeWrite "PIPE_WRITE" (Several, Unbuilt)
        "OpenCL: accesses of a kernel to a pipe to which it writes";
    Map "MAP" (Several, Built) "OpenCL: accesses of a command that maps memory to the host";
    Unmap "UNMAP" (Several, Built) "OpenCL: accesses of a command that ends a mapping";
    Discards "DISCARDS" (Several, Built)
        "OpenCL: a write of a mapping that discards the contents of its memory";
    Begins "BEGINS" (Several, Built)
        "host programs: a write that begins the life of the memory that it writes";
    Ends "ENDS" (Several, Built)
        "host programs: a write that ends the life of the memory that it writes; the use of a \
         stream, queue, event or allocation whose life has ended";
    Capped "CAPPED" (Several, Built)
        "OpenCL: an operation with an effect on local memory only within its work-group";
}

impl Tag {
    /// Its row.
    pub fn row(self) -> &'static TagRow {
        &TAGS[self as usize]
    }

    /// Its name in models.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The tag of that name.
    pub fn named(name: &str) -> Option<Tag> {
        TAGS.iter().find(|row| row.name == name).map(|row| row.tag)
    }
}

/// A set of tags.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Tags(u128);

const _: () = assert!(TAGS.len() <= u128::BITS as usize);

impl Tags {
    /// The set of the given tags.
    pub fn of(tags: &[Tag]) -> Tags {
        let mut all = Tags::default();
        all.extend(tags);
        all
    }

    /// Adds a tag.
    pub fn insert(&mut self, tag: Tag) {
        self.0 |= 1 << tag as u32;
    }

    /// Adds several tags.
    pub fn extend(&mut self, tags: &[Tag]) {
        tags.iter().for_each(|tag| self.insert(*tag));
    }

    /// The set without some tags.
    pub fn without(self, tags: &[Tag]) -> Tags {
        Tags(self.0 & !Tags::of(tags).0)
    }

    /// Whether the tag is in the set.
    pub fn has(self, tag: Tag) -> bool {
        self.0 >> tag as u32 & 1 == 1
    }

    /// Whether one of the tags is in the set.
    pub fn has_any(self, tags: &[Tag]) -> bool {
        self.0 & Tags::of(tags).0 != 0
    }

    /// Whether all of the tags are in the set.
    pub fn has_all(self, tags: &[Tag]) -> bool {
        Tags::of(tags).0 & !self.0 == 0
    }

    /// The tags in alphabetical order of their names.
    pub fn iter(self) -> impl Iterator<Item = Tag> {
        let mut all: Vec<&TagRow> = TAGS.iter().filter(|row| self.has(row.tag)).collect();
        all.sort_by_key(|row| row.name);
        all.into_iter().map(|row| row.tag)
    }
}

impl fmt::Debug for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Tag::name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_place_and_its_name() {
        for (i, row) in TAGS.iter().enumerate() {
            assert_eq!(row.tag as usize, i);
            assert_eq!(Tag::named(row.name), Some(row.tag));
        }
    }

    #[test]
    fn sets_iterate_by_name() {
        let tags = Tags::of(&[Tag::Relaxed, Tag::Atomic, Tag::Generic]);
        assert_eq!(format!("{tags:?}"), r#"{"A", "GEN", "RLX"}"#);
        assert_eq!(
            tags.without(&[Tag::Atomic, Tag::Weak]),
            Tags::of(&[Tag::Generic, Tag::Relaxed])
        );
    }
}
