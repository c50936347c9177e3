//! Which engine to ask, and when to give up.

use std::time::Duration;

use program::litmus::LitmusTest;
use verdict::{Answer, Place, Reason};

/// Which engine answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The SAT solver for small circuits; for others, enumeration for a limited number of steps
    /// first.
    Auto,
    /// A circuit, and Z3.
    Symbolic,
    /// The same circuit, and a SAT solver in Rust.
    Sat,
    /// Explicit enumeration.
    Enumerate,
    /// All that there are; a difference is a defect.
    Both,
}

impl Engine {
    /// Whether it asks Z3.
    pub fn asks_z3(self) -> bool {
        cfg!(feature = "z3") && matches!(self, Engine::Symbolic | Engine::Both)
    }

    /// The engines of this build that answer alone.
    pub const ALONE: &[Engine] = &[
        #[cfg(feature = "z3")]
        Engine::Symbolic,
        Engine::Sat,
        Engine::Enumerate,
    ];

    /// The engine that answers, where no other one was needed.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Both => "both",
            Engine::Enumerate | Engine::Auto => "enumerate",
            Engine::Sat => "sat",
            Engine::Symbolic => "symbolic",
        }
    }
}

/// When to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At most this many iterations of a loop; `None`: as the test says, or [`DEFAULT_BOUND`].
    pub bound: Option<u32>,
    /// Wall time per question; `None` for no limit.
    pub timeout: Option<Duration>,
}

/// Where neither a test nor a user says how many iterations of a loop there may be.
pub const DEFAULT_BOUND: u32 = 4;

/// What can be said at one loop bound.
pub struct Tried {
    /// Where a larger one may tell more: the first loop that a thread can go on with.
    pub open: Option<Place>,
    /// Whether a thread is cut at the bound in some execution, consistent or not.
    pub cut: bool,
    /// The bound with which none would be, if none is.
    pub deepest: u32,
}

/// Why there is no answer, or not the whole of it.
pub enum Halt {
    /// A limit was met.
    Undecided(Reason),
    /// A law was broken.
    Defect(String),
}

impl Halt {
    /// An answer that ends so.
    pub fn end(self, answer: Answer) -> Answer {
        match self {
            Halt::Undecided(reason) => answer.undecided(reason),
            Halt::Defect(law) => answer.defective(law),
        }
    }
}

/// What came of asking at one loop bound after the other.
pub enum Depth<T> {
    /// An answer, and the smallest bound that gives it, if it depends on that.
    Told(T, Option<u32>),
    /// The largest bound is not enough: what it gave, and why.
    Open(T, Reason),
    /// Something else got in the way.
    Halted(T, Halt),
}

impl Limits {
    /// The loop bound for a test.
    pub fn bound_of(&self, test: &LitmusTest) -> u32 {
        self.bound.or(test.bound).unwrap_or(DEFAULT_BOUND)
    }

    /// The loop bounds to try for a test, smallest first.
    pub fn bounds(&self, test: &LitmusTest) -> Vec<u32> {
        let most = self.bound_of(test).max(1);
        let mut bounds: Vec<u32> = (0..).map(|i| 1 << i).take_while(|&b| b < most).collect();
        bounds.push(most);
        bounds
    }

    /// Asks `at` one loop bound after the other, each time beginning from `start`, until it says
    /// that a larger one can tell no more; then looks for the smallest bound that gives an answer.
    pub fn deepen<T: Clone>(
        &self,
        test: &LitmusTest,
        start: &T,
        mut at: impl FnMut(u32, &mut T) -> Result<Tried, Halt>,
    ) -> Depth<T> {
        let (mut low, mut last) = (0, None);
        for bound in self.bounds(test) {
            let mut told = start.clone();
            match at(bound, &mut told) {
                Err(halt) => return Depth::Halted(told, halt),
                Ok(Tried { open: Some(at), .. }) => {
                    low = bound;
                    last = Some((told, Reason::LoopBound { bound, at }));
                }
                Ok(tried) if low == 0 => return Depth::Told(told, tried.cut.then_some(bound)),
                Ok(tried) => {
                    let mut high = if tried.cut {
                        bound
                    } else {
                        tried.deepest.clamp(low + 1, bound)
                    };
                    // Where nothing is cut, one iteration less is what was likely not enough.
                    let mut next = if tried.cut {
                        low.midpoint(high)
                    } else {
                        high - 1
                    };
                    while low < next && next < high {
                        let mut smaller = start.clone();
                        match at(next, &mut smaller) {
                            Ok(Tried { open: None, .. }) => (high, told) = (next, smaller),
                            Ok(_) => low = next,
                            Err(_) => break,
                        }
                        next = low.midpoint(high);
                    }
                    return Depth::Told(told, Some(high));
                }
            }
        }
        let (told, reason) = last.expect("there is a bound to try");
        Depth::Open(told, reason)
    }

    /// The same of an answer.
    pub fn answer(
        &self,
        test: &LitmusTest,
        start: &Answer,
        at: impl FnMut(u32, &mut Answer) -> Result<Tried, Halt>,
    ) -> Answer {
        match self.deepen(test, start, at) {
            Depth::Told(answer, bound) => Answer { bound, ..answer },
            Depth::Open(answer, reason) => answer.undecided(reason),
            Depth::Halted(answer, halt) => halt.end(answer),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            bound: None,
            timeout: Some(Duration::from_secs(60)),
        }
    }
}
