//! Choices: turns the machine's nondeterminism into a sequence of small numbers.
//!
//! A step of the machine is one function. Wherever it could go on in several ways it gets a number
//! from a [`Chooser`]. The chooser determines the run: exhaustive search gives all answers in turn,
//! a random run gives random ones, a replay gives recorded ones. Every rule thus has one
//! implementation, and a schedule is the list of answers.

/// Answers the questions of a step.
pub trait Chooser {
    /// A number below `n`. `n` is at least 1.
    fn choose(&mut self, n: usize) -> usize;
}

/// All answers to the questions of one step, in lexicographic order: run the step, then
/// [`Script::advance`].
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Answer and number of possible answers; questions with only one possible answer are omitted.
    answers: Vec<(u32, u32)>,
    at: usize,
}

impl Script {
    /// Starts the step anew.
    pub fn rewind(&mut self) {
        self.at = 0;
    }

    /// Moves to the next sequence of answers; returns `false` after the last one.
    pub fn advance(&mut self) -> bool {
        self.answers.truncate(self.at);
        self.at = 0;
        while let Some((answer, n)) = self.answers.pop() {
            if answer + 1 < n {
                self.answers.push((answer + 1, n));
                return true;
            }
        }
        false
    }

    /// The answers since the start of the step.
    pub fn taken(&self) -> Vec<u32> {
        self.answers[..self.at].iter().map(|a| a.0).collect()
    }
}

impl Chooser for Script {
    fn choose(&mut self, n: usize) -> usize {
        if n < 2 {
            return 0;
        }
        if self.at == self.answers.len() {
            self.answers.push((0, n as u32));
        }
        let answer = self.answers[self.at].0;
        self.at += 1;
        answer as usize
    }
}

/// Draws random answers and remembers them.
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
    /// The answers since the caller last took them.
    pub taken: Vec<u32>,
}

impl Dice {
    /// The generator for a seed.
    pub fn new(seed: u64) -> Dice {
        Dice {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1,
            taken: Vec::new(),
        }
    }

    /// The next number: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
    /// generators", 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random number below `n` that is not remembered.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

impl Chooser for Dice {
    fn choose(&mut self, n: usize) -> usize {
        if n < 2 {
            return 0;
        }
        let answer = self.below(n);
        self.taken.push(answer as u32);
        answer
    }
}

/// Gives recorded answers.
#[derive(Clone, Debug)]
pub struct Tape<'a> {
    answers: &'a [u32],
    /// Whether an answer was missing or impossible.
    pub torn: bool,
}

impl<'a> Tape<'a> {
    /// Plays the answers.
    pub fn new(answers: &'a [u32]) -> Tape<'a> {
        Tape {
            answers,
            torn: false,
        }
    }

    /// Whether all answers were used and possible.
    pub fn fitted(&self) -> bool {
        !self.torn && self.answers.is_empty()
    }
}

impl Chooser for Tape<'_> {
    fn choose(&mut self, n: usize) -> usize {
        if n < 2 {
            return 0;
        }
        match self.answers.split_first() {
            Some((&answer, rest)) if (answer as usize) < n => {
                self.answers = rest;
                answer as usize
            }
            _ => {
                self.torn = true;
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_gives_every_sequence_once() {
        let mut script = Script::default();
        let mut all = Vec::new();
        loop {
            script.rewind();
            let a = script.choose(2);
            // The second question depends on the first answer.
            let b = if a == 0 {
                script.choose(3)
            } else {
                script.choose(1)
            };
            all.push((a, b));
            assert_eq!(
                script.taken(),
                if a == 0 { vec![0, b as u32] } else { vec![1] }
            );
            if !script.advance() {
                break;
            }
        }
        assert_eq!(all, [(0, 0), (0, 1), (0, 2), (1, 0)]);
    }

    #[test]
    fn a_step_that_stops_early_is_not_tried_again() {
        let mut script = Script::default();
        let mut tries = 0;
        loop {
            script.rewind();
            tries += 1;
            if script.choose(2) == 1 {
                script.choose(2);
            }
            if !script.advance() {
                break;
            }
        }
        assert_eq!(tries, 3);
    }

    #[test]
    fn dice_repeat_and_tapes_notice_what_does_not_fit() {
        let roll = |seed| {
            let mut dice = Dice::new(seed);
            (0..20).map(|_| dice.choose(7)).collect::<Vec<_>>()
        };
        assert_eq!(roll(3), roll(3));
        assert_ne!(roll(3), roll(4));
        let mut tape = Tape::new(&[1, 5]);
        assert_eq!((tape.choose(2), tape.torn), (1, false));
        tape.choose(3);
        assert!(tape.torn && !tape.fitted());
    }
}
