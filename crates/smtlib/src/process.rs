//! Runs the program, sends commands, and reads answers under a deadline.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::place::{UnusableProgram, program};

/// The text that marks the end of an answer.
const END: &str = "fencepost-end";

/// How often a wait looks for a request to stop.
const PAUSE: Duration = Duration::from_millis(20);

/// How long after the deadline the program may still give up alone.
const GRACE: Duration = Duration::from_millis(300);

/// How many idle processes a thread keeps for later questions.
const IDLE: usize = 2;

thread_local! {
    static IDLE_PROCESSES: RefCell<Vec<Process>> = const { RefCell::new(Vec::new()) };
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No program is usable.
    #[error(transparent)]
    Unusable(#[from] UnusableProgram),
    /// The time is over, or a stop was requested.
    #[error("time")]
    Time,
    /// The program ran out of memory.
    #[error("Z3 ran out of memory")]
    Memory,
    /// The program printed an error, or ended.
    #[error("Z3 failed: {0}")]
    Broken(String),
}

/// A running program, without any assertion at first.
pub struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    /// The memory limit that it was started with, in MiB.
    memory: Option<usize>,
    /// Whether it waits for commands: its last answer was whole.
    is_ready: bool,
}

impl Process {
    /// An idle process of this thread after a reset, or a new one.
    ///
    /// # Errors
    /// No program is usable, or it does not start.
    pub fn new() -> Result<Process, Failure> {
        let memory = stop::memory_for_all().map(|bytes| (bytes >> 20).max(1));
        let idle = IDLE_PROCESSES.with_borrow_mut(|all| {
            let at = all.iter().position(|process| process.memory == memory);
            at.map(|at| all.swap_remove(at))
        });
        if let Some(mut process) = idle {
            let soon = Some(Instant::now() + Duration::from_secs(10));
            if process.ask("(reset)\n", soon) == Ok(String::new()) {
                return Ok(process);
            }
        }
        Process::start(memory)
    }

    fn start(memory: Option<usize>) -> Result<Process, Failure> {
        let program = program()?;
        let wrong = |reason: String| UnusableProgram::Wrong {
            path: program.path.clone(),
            reason,
        };
        let mut command = Command::new(&program.path);
        command.args(["-in", "-smt2"]);
        if let Some(memory) = memory {
            command.arg(format!("-memory:{memory}"));
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| wrong(error.to_string()))?;
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        // Ends when the program closes its output, or when nothing receives its lines any more.
        thread::Builder::new()
            .name("z3".into())
            .spawn(move || {
                for line in output.lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            })
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Process {
            child,
            input,
            lines,
            memory,
            is_ready: true,
        })
    }

    /// Whether it still answers. After a failure it does not, and another one has to be made.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Sends commands; everything that the program prints for them, without the last newline.
    ///
    /// # Errors
    /// The deadline passes, a stop is requested, or the program prints an error or ends.
    pub fn ask(&mut self, commands: &str, deadline: Option<Instant>) -> Result<String, Failure> {
        let answer = self.converse(commands, deadline);
        self.is_ready = answer.is_ok();
        answer
    }

    fn converse(&mut self, commands: &str, deadline: Option<Instant>) -> Result<String, Failure> {
        let input = &mut self.input;
        // A program that has ended reads nothing; its output then ends, too.
        let _ = input
            .write_all(commands.as_bytes())
            .and_then(|()| writeln!(input, "(echo \"{END}\")"))
            .and_then(|()| input.flush());
        let mut answer = String::new();
        loop {
            match self.lines.recv_timeout(PAUSE) {
                Ok(line) if line == END => break,
                Ok(line) => {
                    if !answer.is_empty() {
                        answer.push('\n');
                    }
                    answer += &line;
                }
                Err(RecvTimeoutError::Timeout) => {
                    let is_over = deadline.is_some_and(|end| Instant::now() > end + GRACE);
                    if is_over || stop::late(None) {
                        return Err(Failure::Time);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    if stop::late(deadline) {
                        return Err(Failure::Time);
                    }
                    // It did not read everything either, perhaps: that says no more.
                    if answer.is_empty() {
                        "it ended without an answer".clone_into(&mut answer);
                    }
                    return Err(failure(answer));
                }
            }
        }
        if answer.lines().any(|line| line.starts_with("(error")) {
            return Err(failure(answer));
        }
        Ok(answer)
    }

    /// Keeps the process for another question of this thread.
    pub fn put_back(self) {
        if self.is_ready {
            IDLE_PROCESSES.with_borrow_mut(|all| {
                all.push(self);
                if all.len() > IDLE {
                    all.remove(0);
                }
            });
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // If it has ended already, both calls fail and do no harm.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sorts an error of the program.
fn failure(text: String) -> Failure {
    if ["out of memory", "max. memory", "memout"]
        .iter()
        .any(|words| text.contains(words))
    {
        Failure::Memory
    } else {
        Failure::Broken(text)
    }
}

/// The pairs of an answer to `get-value`, as in `((a true) (b #x01))`. Names and values are words
/// without blanks or parentheses; a value in parentheses gets the empty word.
pub fn values(answer: &str) -> Vec<(&str, &str)> {
    answer
        .split(['(', ')'])
        .map(|pair| pair.split_whitespace())
        .filter_map(|mut words| Some((words.next()?, words.next().unwrap_or(""))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_pairs() {
        assert_eq!(
            values("((v0 true)\n (v1 false) (x #x00ff))"),
            [("v0", "true"), ("v1", "false"), ("x", "#x00ff")]
        );
        assert_eq!(values("()"), []);
    }

    #[test]
    fn memory_is_a_limit_and_anything_else_a_failure() {
        assert_eq!(failure("(error \"out of memory\")".into()), Failure::Memory);
        let other = "(error \"line 1 column 2: unknown constant a\")".to_owned();
        assert_eq!(failure(other.clone()), Failure::Broken(other));
    }
}
