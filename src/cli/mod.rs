//! The command line: arguments in, exit code out. One file per command.
//!
//! # Invariants
//! - Every path through [`run()`] ends in one of the codes of [`exit`]; a panic ends in
//!   [`exit::DEFECT`].
//! - stdout carries the result and nothing else; a reader that closes it early ends the run
//!   quietly.
//! - `seams.rs` has every call to the test front end and to the model language.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use diag::Diagnostic;

mod args;
pub mod duration;
mod every_launch;
pub mod exit;
pub mod partition;
pub mod paths;

mod advise;
mod ask;
mod blessing;
mod cache;
mod catalogue;
mod changed;
mod check;
mod child;
mod compare;
mod compilers;
mod config;
mod decide;
mod defect;
mod devices;
mod digest;
mod distinguish;
mod executor;
mod explain;
mod failed;
mod files;
mod filter;
mod full_launches;
mod guidelines;
mod headers;
mod import;
mod init;
mod interrupt;
mod kernels;
mod launches;
mod list;
mod load;
mod lsp;
mod man;
mod mcp;
mod memory;
mod merge;
mod model_text;
mod models;
mod new;
mod outcomes;
mod outputs;
mod panics;
mod plan;
mod pool;
mod programs;
mod progress;
mod run;
mod running;
mod schema;
mod seams;
mod select;
mod settings;
mod show;
mod steady;
mod suite;
mod terminal;
mod watch;
mod with;

use args::{Cli, Color, Command, Talk};
use terminal::Terminal;

/// Runs a command line, the program's name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let parsed = Cli::command().try_get_matches_from(arguments);
    let (mut cli, matches) =
        match parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches))) {
            Ok(parsed) => parsed,
            Err(error) => {
                // Help and version are errors for clap, too.
                let terminal = Terminal::new(&Talk {
                    color: Color::Auto,
                    quiet: false,
                    verbose: 0,
                });
                let text = error.render().ansi().to_string();
                if error.use_stderr() {
                    terminal.remark(text.trim_end());
                    return ExitCode::from(exit::INVALID);
                }
                return ExitCode::from(terminal.printed(&text, exit::OK));
            }
        };
    let terminal = Terminal::new(&cli.talk);
    interrupt::listen();
    if let Err(diagnostics) = config::apply(&mut cli.command, &matches, &terminal) {
        terminal.diagnose_all(&diagnostics);
        return ExitCode::from(exit::INVALID);
    }
    let code = interrupt::done(move || {
        panics::catch(|| dispatch(&cli.command, &terminal)).unwrap_or_else(|message| {
            terminal.diagnose(&Diagnostic::plain(
                "defect",
                format!("a defect of Fencepost: {message}"),
            ));
            exit::DEFECT
        })
    });
    let code = code.unwrap_or_else(|e| {
        terminal.diagnose(&Diagnostic::plain(
            "no-threads",
            format!("cannot start a thread: {e}"),
        ));
        exit::INVALID
    });
    ExitCode::from(interrupt::code().unwrap_or(code))
}

fn dispatch(command: &Command, terminal: &Terminal) -> u8 {
    match command {
        Command::Check(args) => check::run(args, terminal),
        Command::Ask(args) => ask::run(args, terminal),
        Command::Show(args) => show::run(args, terminal),
        Command::Outcomes(args) => outcomes::run(args, terminal),
        Command::Compare(args) => compare::run(args, terminal),
        Command::Distinguish(args) => distinguish::run(args, terminal),
        Command::Advise(args) => advise::run(args, terminal),
        Command::Compilers(args) => compilers::run(args, terminal),
        Command::Run(args) => executor::run(args, terminal),
        Command::Devices(args) => devices::run(args, terminal),
        Command::Merge(args) => merge::run(args, terminal),
        Command::Models(args) => models::run(args, terminal),
        Command::Import(args) => import::run(args, terminal),
        Command::Schema(args) => schema::run(args, terminal),
        Command::Init(args) => init::run(args, terminal),
        Command::New(args) => new::run(args, terminal),
        Command::Explain(args) => explain::run(args, terminal),
        Command::Completions(args) => man::completions(args, terminal),
        Command::Lsp => lsp::run(terminal),
        Command::Mcp => mcp::run(terminal),
        Command::Man(args) => man::run(args, terminal),
    }
}
