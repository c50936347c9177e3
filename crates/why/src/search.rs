//! Looking for few changes of a program that turn an answer: settings of knobs, each of which has levels.
//!
//! One knob is tried, then two, then all together; a setting that helps is then turned down, knob by knob, as far as it
//! goes on helping.
//!
//! # Invariants
//! - A setting that is handed out was decided to help; after [`lowered`], none of its knobs can be turned down alone.
//!
//! # Sources
//! - Minimal sets by deletion: as for unsatisfiable cores.

/// By knob, its level.
pub(super) type Setting = Vec<usize>;

/// Why a search was given up.
pub(super) struct GivenUp(pub(super) String);

/// Pairs of knobs are tried among at most so many.
const PAIRED: usize = 16;

/// Whether a setting helps.
pub(super) trait Decides {
    /// Decides the program of a setting.
    fn decide(&mut self, setting: &Setting) -> Result<bool, GivenUp>;
}

/// A setting that helps: of one knob, of two, or of all. `None` if not even all together do.
pub(super) fn one_two_or_all(by: &mut impl Decides, top: &Setting) -> Result<Option<Setting>, GivenUp> {
    let n = top.len();
    if n == 0 || !by.decide(top)? {
        return Ok(None);
    }
    for i in 0..n {
        let mut one = vec![0; n];
        one[i] = top[i];
        if by.decide(&one)? {
            return Ok(Some(one));
        }
    }
    for i in 0..n.min(PAIRED) {
        for j in i + 1..n.min(PAIRED) {
            let mut two = vec![0; n];
            (two[i], two[j]) = (top[i], top[j]);
            if by.decide(&two)? {
                return Ok(Some(two));
            }
        }
    }
    Ok(Some(top.clone()))
}

/// Turns every knob down, in this order, as far as the setting goes on helping.
pub(super) fn lowered(by: &mut impl Decides, mut setting: Setting, order: &[usize]) -> Result<Setting, GivenUp> {
    for &i in order {
        for level in 0..setting[i] {
            let mut lower = setting.clone();
            lower[i] = level;
            if by.decide(&lower)? {
                setting = lower;
                break;
            }
        }
    }
    Ok(setting)
}
