//! The rules of this memory, each of which can be taken out: see [`crate::simt::Rules`].

/// Which rules are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanguageRules {
    /// Accesses agree with what happens before them.
    pub coherence: bool,
    /// No other thread's write comes between the halves of a read-modify-write.
    pub atomicity: bool,
    /// Locations declared non-atomic hold what is visible.
    pub visible: bool,
    /// Sequentially consistent operations agree.
    pub agreement: bool,
    /// … those of fences, too.
    pub agreement_fences: bool,
    /// Acquires synchronize with releases.
    pub synchronization: bool,
    /// Release fences are releases.
    pub release_fence: bool,
    /// Acquire fences are acquires.
    pub acquire_fence: bool,
    /// Release sequences go on after their head.
    pub sequence: bool,
    /// What a release sequence was relied on for stays true of it.
    pub pins: bool,
    /// … and what was not relied on does not come true.
    pub breaks: bool,
    /// OpenCL: synchronization that counts for both regions.
    pub cross: bool,
    /// OpenCL: regions are ordered apart.
    pub regions: bool,
    /// Synchronization, agreement and races ask for inclusive scopes.
    pub scopes: bool,
    /// Barriers order memory.
    pub barriers: bool,
}

impl LanguageRules {
    /// All of them.
    pub const ALL: LanguageRules = LanguageRules {
        coherence: true,
        atomicity: true,
        visible: true,
        agreement: true,
        agreement_fences: true,
        synchronization: true,
        release_fence: true,
        acquire_fence: true,
        sequence: true,
        pins: true,
        breaks: true,
        cross: true,
        regions: true,
        scopes: true,
        barriers: true,
    };
}

impl Default for LanguageRules {
    fn default() -> Self {
        LanguageRules::ALL
    }
}
