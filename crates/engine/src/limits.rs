//! Defines the choice of engine, and the limits at which a question ends undecided.

use std::time::Duration;

use program::litmus::LitmusTest;
use verdict::{Answer, InstrPlace, Reason};

/// The engine that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The SAT solver for small circuits. For others, enumeration tries first, for a limited number
    /// of steps.
    Auto,
    /// A circuit, solved by Z3.
    Symbolic,
    /// The same circuit, solved by a SAT solver in Rust.
    Sat,
    /// Explicit enumeration.
    Enumerate,
    /// All engines of this build; a difference is a defect.
    Both,
}

impl Engine {
    /// Whether it calls Z3. Without libz3 in the build, only the engine of that name does.
    pub fn asks_z3(self) -> bool {
        match self {
            Engine::Symbolic => true,
            Engine::Both => cfg!(feature = "z3"),
            Engine::Auto | Engine::Sat | Engine::Enumerate => false,
        }
    }

    /// The engines of this build that answer alone.
    pub const ALONE: &[Engine] = &[
        #[cfg(feature = "z3")]
        Engine::Symbolic,
        Engine::Sat,
        Engine::Enumerate,
    ];

    /// The name of the engine; for `Auto`, that of the engine which answers if no other was needed.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Both => "both",
            Engine::Enumerate | Engine::Auto => "enumerate",
            Engine::Sat => "sat",
            Engine::Symbolic => "symbolic",
        }
    }
}

/// The limits of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest number of iterations of a loop; `None`: the test's number, or [`DEFAULT_BOUND`].
    pub bound: Option<u32>,
    /// Wall time per question; `None` for no limit.
    pub timeout: Option<Duration>,
}

/// The loop bound if neither test nor user gives one.
pub const DEFAULT_BOUND: u32 = 4;

/// The state of the search after one loop bound.
pub struct BoundTrial {
    /// The first loop that a thread can continue; `None` if a larger bound adds nothing.
    pub open: Option<InstrPlace>,
    /// Whether the bound cuts a thread in some execution, consistent or not.
    pub cut: bool,
    /// If the bound cuts no thread: the smallest bound that cuts none.
    pub deepest: u32,
}

/// Why the answer is missing or incomplete.
pub enum Halt {
    /// A limit was reached.
    Undecided(Reason),
    /// A law was broken.
    Defect(String),
}

impl Halt {
    /// The answer that results from it.
    pub fn end(self, answer: Answer) -> Answer {
        match self {
            Halt::Undecided(reason) => answer.undecided(reason),
            Halt::Defect(law) => answer.defective(law),
        }
    }
}

/// The result of trying one loop bound after the other.
pub enum Depth<T> {
    /// An answer, and the smallest bound that gives it, if it depends on the bound.
    Told(T, Option<u32>),
    /// The largest bound is too small: its result, and the reason.
    Open(T, Reason),
    /// Another problem ended the search.
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

    /// Calls `at` for one loop bound after the other, each time from `start`, until a larger bound
    /// adds nothing. Then it looks for the smallest bound that gives an answer.
    pub fn deepen<T: Clone>(
        &self,
        test: &LitmusTest,
        start: &T,
        mut at: impl FnMut(u32, &mut T) -> Result<BoundTrial, Halt>,
    ) -> Depth<T> {
        let (mut low, mut last) = (0, None);
        for bound in self.bounds(test) {
            let mut told = start.clone();
            match at(bound, &mut told) {
                Err(halt) => return Depth::Halted(told, halt),
                Ok(BoundTrial { open: Some(at), .. }) => {
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
                    // If nothing is cut, one iteration less was likely too few.
                    let mut next = if tried.cut {
                        low.midpoint(high)
                    } else {
                        high - 1
                    };
                    while low < next && next < high {
                        let mut smaller = start.clone();
                        match at(next, &mut smaller) {
                            Ok(BoundTrial { open: None, .. }) => (high, told) = (next, smaller),
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

    /// As [`Limits::deepen`], for an answer.
    pub fn answer(
        &self,
        test: &LitmusTest,
        start: &Answer,
        at: impl FnMut(u32, &mut Answer) -> Result<BoundTrial, Halt>,
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
