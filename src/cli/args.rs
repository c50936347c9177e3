//! Declares the arguments of the command line. Nothing is looked up here.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};

use super::duration::{self, Timeout};
use super::partition::Partition;
use front::litmus::{PROPERTIES, source};
use simt::Early;

mod hand;
mod values;

pub(super) use hand::{CompletionsArgs, ExplainArgs, ManArgs, NewArgs};
pub(super) use values::report_file;
pub(super) use values::{
    Color, Deny, DenyAdvice, DeviceArg, EngineArg, FormatArg, LanguageArg, LintArg, MemoryArg,
    NoTests, OnlyArg, PicturesArg, Resident, ScheduleArg, SchedulingArg,
};
use values::{count, device, early, memory, option_value, resident, schedule};

/// A memory-model checker for GPU programs.
#[derive(Debug, Parser)]
#[command(name = "fencepost", version, about, after_help = EXIT_CODES)]
pub(super) struct Cli {
    /// Output to the terminal.
    #[command(flatten)]
    pub(super) talk: Talk,
    /// The command.
    #[command(subcommand)]
    pub(super) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0   every expectation met (ask, outcomes, distinguish, advise: answered)
  1   at least one expectation not met; compare, distinguish: or a mapping violated;
      advise: or a result that `--deny` names
  2   invalid input or usage; the other inputs are still decided
  3   nothing failed, but something is undecided
  4   no test matched
  70  a defect of Fencepost; a reproducer is written
  130, 143  interrupted (SIGINT, SIGTERM); answers so far are reported";

/// The commands. The arguments of a command are built when it is used; a doc comment on their type
/// would replace the one here.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum Command {
    /// Decide every expectation in the tests under PATH
    Check(CheckArgs),
    /// Is an outcome possible? Shows an execution, or the axioms that forbid it
    Ask(AskArgs),
    /// An execution as a picture: .svg, .pdf, .png, .tex, .dot, or a page to look around in (.html)
    Show(ShowArgs),
    /// Every outcome of a test: allowed or not, racy or not
    Outcomes(OutcomesArgs),
    /// What several models say of the same tests, and what makes the difference
    Compare(CompareArgs),
    /// The smallest program of which one model allows what another forbids
    Distinguish(DistinguishArgs),
    /// The cheapest orders, scopes and fences that keep a program right; the cheapest repair
    Advise(AdviseArgs),
    /// What compilers make of atomic operations, held against a mapping, and programs that notice
    Compilers(CompilersArgs),
    /// Runs tests step by step, and holds what was observed against the model
    Run(Box<RunArgs>),
    /// The devices that `run --on` can run tests on
    Devices(DevicesArgs),
    /// The answers of the parts of a run (`check --partition`, `run --on --partition`) as one,
    /// proved to be disjoint and complete
    Merge(MergeArgs),
    /// The models it knows; one model with its relations and axioms
    Models(ModelsArgs),
    /// `.litmus` files, and kernels as compilers print them (`.ptx`), to TOML tests
    Import(ImportArgs),
    /// JSON schema of the TOML test format, or of `fencepost.toml`
    Schema(SchemaArgs),
    /// A `fencepost.toml`, a first test and the schemas for editors, in a folder
    Init(InitArgs),
    /// A server for editors (Language Server Protocol) on standard input and output
    Lsp,
    /// A server for coding agents (Model Context Protocol) on standard input and output
    Mcp,
    /// A new test, from a template
    New(NewArgs),
    /// What an axiom, a relation or a term means: definition, source, example
    Explain(ExplainArgs),
    /// Completions for a shell, on standard output
    Completions(CompletionsArgs),
    /// Man pages
    Man(ManArgs),
}

// Options of every command.
#[derive(Clone, Debug, Args)]
pub(super) struct Talk {
    /// Colours in human output (`NO_COLOR` is honoured)
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN"
    )]
    pub(super) color: Color,
    /// Only what needs attention: unmet, undecided, defects; no warnings
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// More: every answer, with its engine and axioms, and the proof of what is not as expected;
    /// -vv: every proof
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
}

// Options of the commands that take source files.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct SourceArgs {
    /// The launch of a kernel of a source file (repeatable), as in 'K<<<2, 64>>>(in[128] = 1, n)'
    /// [default: that of a line `// fencepost: K<<<…>>>(…)` of the file, else a chosen one].
    /// `check` also takes `any` (race and divergence for every launch and input, needs Z3) and
    /// `given` (for the file's launch and every content of memory)
    #[arg(long = "launch", value_name = "K<<<G,B>>>(args)")]
    pub(super) launches: Vec<String>,
    /// The language of source files whose names do not say it
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(super) language: Option<LanguageArg>,
    /// The arguments of a program, `argv` of its `main`, as one text
    #[arg(long = "args", value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) program: Option<String>,
    /// Another value of a constant of a source file (repeatable): a macro, or a variable that is
    /// given a number. A name that the file does not define becomes a macro
    #[arg(long = "define", value_name = "NAME=VALUE", value_parser = constant)]
    pub(super) constants: Vec<(String, i64)>,
    /// A folder of headers, searched behind the folder of the file (repeatable)
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    pub(super) include: Vec<PathBuf>,
    /// Read the code that this compiler makes of source files: the answer is about that code
    /// [`NVCC` or `PATH` has it]
    #[arg(long, value_enum, value_name = "COMPILER")]
    pub(super) with: Option<WithArg>,
}

/// A compiler for source files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum WithArg {
    /// NVIDIA's nvcc, for CUDA C++
    Nvcc,
    /// clang, for CUDA C++ and OpenCL C
    Clang,
}

impl WithArg {
    fn compiler(self) -> source::CompiledWith {
        match self {
            WithArg::Nvcc => source::CompiledWith::Nvcc,
            WithArg::Clang => source::CompiledWith::Clang,
        }
    }
}

/// `NAME=VALUE`
pub(super) fn constant(text: &str) -> Result<(String, i64), String> {
    fn wrong() -> String {
        "expected a name and a number, as in `--define N=16`".to_owned()
    }
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let value = value.trim().parse().map_err(|_| wrong())?;
    Ok((name.trim().to_owned(), value))
}

impl SourceArgs {
    /// Whether the answers are for launches of any size, or for any content of memory.
    pub(super) fn unknown(&self) -> Option<LaunchArg> {
        match self.launches.as_slice() {
            [one] if one == "any" => Some(LaunchArg::Any),
            [one] if one == "given" => Some(LaunchArg::Given),
            _ => None,
        }
    }

    /// How source files are read.
    pub(super) fn options(&self) -> source::Options {
        source::Options {
            language: self.language.map(LanguageArg::kind),
            launches: self.launches.clone(),
            arguments: words(self.program.as_deref()),
            constants: self.constants.iter().cloned().collect(),
            include: self.include.clone(),
            headers: Vec::new(),
            with: self.with.map(WithArg::compiler),
        }
    }
}

/// The words of a text.
pub(super) fn words(text: Option<&str>) -> Vec<String> {
    let text = text.unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Instructions that programs are made of only if they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LettersArg {
    /// System scope, and threads on several devices
    Sys,
    /// Cluster scope, and threads in several clusters
    Cluster,
    /// Compare-exchanges in place of exchanges
    Cas,
    /// Reductions that add
    Red,
    /// Accesses by another virtual address, and the proxy fence
    Alias,
    /// Accesses through the surface proxy, and its fence
    Surface,
    /// Locations with non-atomic accesses
    Plain,
    /// Stores of values that depend on earlier reads of the thread
    Dep,
    /// Branches on values that were read
    Branch,
    /// Barriers of a group
    Barrier,
}

impl LettersArg {
    /// Its name in the search.
    pub(super) fn further(self) -> distinguish::Further {
        use distinguish::Further;
        match self {
            LettersArg::Sys => Further::System,
            LettersArg::Cluster => Further::Cluster,
            LettersArg::Cas => Further::Compare,
            LettersArg::Red => Further::Reduce,
            LettersArg::Alias => Further::Alias,
            LettersArg::Surface => Further::Surface,
            LettersArg::Plain => Further::Plain,
            LettersArg::Dep => Further::Depend,
            LettersArg::Branch => Further::Branch,
            LettersArg::Barrier => Further::Barrier,
        }
    }
}

// Options of the commands that ask the checkers.
#[derive(Clone, Debug, Args)]
pub(super) struct QuestionArgs {
    /// A model by name, or a .cat file (repeatable) [default: the models of the test's
    /// expectations, or of its dialect]
    #[arg(long = "model", value_name = "NAME|FILE.cat")]
    pub(super) models: Vec<String>,
    /// Which engine answers; `both` fails if they differ
    #[arg(long, value_enum, default_value = "auto")]
    pub(super) engine: EngineArg,
    /// At most N iterations of a loop [default: what the test says, else 4]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(0..=i64::from(program::litmus::MAX_BOUND))
    )]
    pub(super) bound: Option<u32>,
    /// How OpenCL and CUDA tests become PTX for a model of PTX [default: the current one of the
    /// dialect]
    #[arg(long, value_name = "NAME")]
    pub(super) mapping: Option<String>,
    /// An option of the model (repeatable)
    #[arg(long = "set", value_name = "OPTION=VALUE", value_parser = option_value)]
    pub(super) set: Vec<(String, String)>,
    /// What a .cat file without `free` declarations takes for granted [default: by the test's
    /// dialect]
    #[arg(long, value_name = "NAME")]
    pub(super) prelude: Option<String>,
    /// How many questions to work on at once [default: one per processor]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) jobs: Option<u16>,
    /// Time limit per question (for `run`: per test and model), as in 500ms, 10s, 2m, or `none`
    /// [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(super) timeout: Option<Timeout>,
    /// Name each test that runs for longer than this, again and again; `none` names none
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub(super) slow_timeout: Timeout,
    /// Memory limit per question, as in 500M, 2G, or `none` [default: of half the machine's memory,
    /// what `--jobs` leaves each]. `run` also takes the memory of its machine: `weak` is that of
    /// the model, or of the test's dialect, and `sc` a single store [default: weak; with
    /// `--scheduling lockstep`: sc]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub(super) memory: Vec<MemoryArg>,
    /// Which source files in folders are read, as a configuration says.
    #[arg(skip)]
    pub(super) kernels: Vec<PathBuf>,
    /// Form of the result on standard output
    #[arg(long, value_enum, default_value = "human")]
    pub(super) format: FormatArg,
    /// A further report, beside standard output (repeatable)
    #[arg(long = "report", value_name = "FORMAT=FILE", value_parser = report_file)]
    pub(super) reports: Vec<(FormatArg, PathBuf)>,
    /// Say how long each answer took
    #[arg(long)]
    pub(super) timings: bool,
    /// Use the options of this profile of `fencepost.toml`
    #[arg(long, value_name = "NAME", conflicts_with = "no_config")]
    pub(super) profile: Option<String>,
    /// Look for no `fencepost.toml`
    #[arg(long)]
    pub(super) no_config: bool,
    /// Where to write what shows a defect of Fencepost [default: the temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(super) repro_dir: Option<PathBuf>,
}

// Options that choose among tests.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct SelectArgs {
    /// Only what EXPR lets through, as in 'model = ptx and (tag = mp or name ~ ^MP) and not verdict
    /// = undecided'; a word alone is a part of the name
    #[arg(long, value_name = "EXPR")]
    pub(super) filter: Option<String>,
    /// Only the M-th of N parts, as in hash:1/4
    #[arg(long, value_name = "hash:M/N", value_parser = Partition::parse)]
    pub(super) partition: Option<Partition>,
    /// Only tests in files that differ from a commit, or that git does not know
    /// [default: the last commit]
    #[arg(
        long,
        value_name = "REV",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "HEAD"
    )]
    pub(super) changed: Option<String>,
    /// Show the tests and their questions, and decide nothing
    #[arg(long)]
    pub(super) list: bool,
    /// What to do if no test matches, as in an empty part: pass, or fail with exit code 4
    #[arg(long, value_enum, value_name = "WHAT", default_value = "fail")]
    pub(super) no_tests: NoTests,
    /// The filter of a configuration, with its name in messages.
    #[arg(skip)]
    pub(super) configured_filter: Option<(String, String)>,
}

impl SelectArgs {
    /// The options that narrow the selection, in words.
    pub(super) fn narrowing(&self) -> Vec<&'static str> {
        let configured = self.configured_filter.is_some() && self.filter.is_none();
        let given = [
            (self.filter.is_some(), "`--filter`"),
            (configured, "the filter of `fencepost.toml`"),
            (self.partition.is_some(), "`--partition`"),
            (self.changed.is_some(), "`--changed`"),
        ];
        let given = given.into_iter().filter(|(is_given, _)| *is_given);
        given.map(|(_, words)| words).collect()
    }
}

/// The launches that answers about kernels are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaunchArg {
    /// Every launch, with every input
    Any,
    /// The launch that the file gives, with every content of memory
    Given,
}

// Arguments of `fencepost check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Files, folders, or `-` for standard input
    #[arg(value_name = "PATH", default_value = ".")]
    pub(super) paths: Vec<PathBuf>,
    /// Answer every property that the model defines
    #[arg(long)]
    pub(super) all_properties: bool,
    /// Answer this property of each test, whatever the test expects (repeatable)
    #[arg(
        long,
        value_name = "PROPERTY",
        conflicts_with = "all_properties",
        value_parser = PossibleValuesParser::new(PROPERTIES)
    )]
    pub(super) property: Vec<String>,
    /// Stop after the first expectation that is not met, or defect
    #[arg(long, overrides_with = "no_fail_fast")]
    pub(super) fail_fast: bool,
    /// Keep going (the default)
    #[arg(long, overrides_with = "fail_fast")]
    pub(super) no_fail_fast: bool,
    /// Fail where a program is undefined under the model, or races, and the test does not mention
    /// it
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(super) deny: Option<Deny>,
    /// Also warn where programs leave these rules, and ask whether they race
    #[arg(long, value_enum, value_name = "RULES")]
    pub(super) lint: Option<LintArg>,
    /// Which answers come with pictures and explanations in an HTML report
    #[arg(long, value_enum, value_name = "WHICH", default_value = "unmet")]
    pub(super) pictures: PicturesArg,
    /// Decide again whenever a test or a model under the paths changes, until Ctrl-C
    #[arg(long)]
    pub(super) watch: bool,
    /// Rewrite expectations that are not met to what was decided
    #[arg(long)]
    pub(super) bless: bool,
    /// Only what failed in the last run over the same paths
    #[arg(long)]
    pub(super) rerun_failed: bool,
    /// Ask everything anew, and keep no verdicts (as with FENCEPOST_NO_CACHE=1)
    #[arg(long)]
    pub(super) no_cache: bool,
    /// The folder of a configuration for kept verdicts.
    #[arg(skip)]
    pub(super) cache_dir: Option<PathBuf>,
    /// The selection of tests.
    #[command(flatten)]
    pub(super) select: SelectArgs,
    /// How source files are read.
    #[command(flatten)]
    pub(super) sources: SourceArgs,
    /// Options of the questions.
    #[command(flatten)]
    pub(super) question: QuestionArgs,
}

// Arguments of `fencepost schema`.
#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// The schema of `fencepost.toml`
    #[arg(long)]
    pub(super) config: bool,
}

// Arguments of `fencepost init`.
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// The folder of the project
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(super) folder: PathBuf,
}

// Arguments of `fencepost ask`.
#[derive(Debug, Args)]
pub(super) struct AskArgs {
    /// A test file, or `-` for standard input
    #[arg(value_name = "TEST")]
    pub(super) test: PathBuf,
    /// The outcome in question, as in 'P1:r0 == 1 /\ x == 2' [default: the test's own condition]
    #[arg(long, value_name = "P")]
    pub(super) outcome: Option<String>,
    /// How source files are read.
    #[command(flatten)]
    pub(super) sources: SourceArgs,
    /// Options of the questions.
    #[command(flatten)]
    pub(super) question: QuestionArgs,
}

// Arguments of `fencepost show`.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// A test file, or `-` for standard input
    #[arg(value_name = "TEST")]
    pub(super) test: PathBuf,
    /// The outcome in question [default: the test's own condition]
    #[arg(long, value_name = "P")]
    pub(super) outcome: Option<String>,
    /// What to show instead of an outcome: race, undefined, liveness:fair, …
    #[arg(
        long,
        value_name = "PROPERTY",
        default_value = "reachability",
        conflicts_with = "outcome"
    )]
    pub(super) property: String,
    /// Which test, where the file has several
    #[arg(long, value_name = "TEST")]
    pub(super) name: Option<String>,
    /// Where to write it: FILE.svg, FILE.pdf, FILE.png, FILE.tex (TikZ), FILE.dot or FILE.html
    /// [default: SVG, to standard output]
    #[arg(short, long = "output", value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// The test in PTX, as the mapping makes it, instead of a picture
    #[arg(long, conflicts_with_all = ["outcome", "property", "relations"])]
    pub(super) lowered: bool,
    /// Draw these relations, as the model calls them [default: po, rf, co, fr and what else is
    /// usual]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(super) relations: Vec<String>,
    /// Leave out the title and the text around the picture
    #[arg(long)]
    pub(super) no_caption: bool,
    /// Leave out initial writes
    #[arg(long)]
    pub(super) no_init: bool,
    /// Draw only some events: `racing`, the accesses that race or the steps of the cycle
    #[arg(long, value_enum, value_name = "WHICH")]
    pub(super) only: Option<OnlyArg>,
    /// How source files are read.
    #[command(flatten)]
    pub(super) sources: SourceArgs,
    /// Options of the questions.
    #[command(flatten)]
    pub(super) question: QuestionArgs,
}

// Arguments of `fencepost outcomes`.
#[derive(Debug, Args)]
pub(super) struct OutcomesArgs {
    /// A test file, or `-` for standard input
    #[arg(value_name = "TEST")]
    pub(super) test: PathBuf,
    /// Show the two accesses that race, for each racy outcome, and what would make the program
    /// race-free
    #[arg(long)]
    pub(super) races: bool,
    /// How source files are read.
    #[command(flatten)]
    pub(super) sources: SourceArgs,
    /// Options of the questions.
    #[command(flatten)]
    pub(super) question: QuestionArgs,
}

// Arguments of `fencepost compare`.
#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// Files, folders, or `-` for standard input
    #[arg(value_name = "PATH", required = true)]
    pub(super) paths: Vec<PathBuf>,
    /// The models to compare; the first one is held against each of the others. Without any: those
    /// of each test's expectations
    #[arg(
        long = "models",
        id = "compared",
        value_name = "A,B",
        value_delimiter = ','
    )]
    pub(super) compared: Vec<String>,
    /// What the one test becomes in another language, as a test with the same names, instead of
    /// what a mapping makes of it
    #[arg(long, value_name = "FILE", conflicts_with = "mapping")]
    pub(super) target: Option<PathBuf>,
    /// The selection of tests.
    #[command(flatten)]
    pub(super) select: SelectArgs,
    /// How source files are read.
    #[command(flatten)]
    pub(super) sources: SourceArgs,
    /// Options of the questions.
    #[command(flatten)]
    pub(super) question: QuestionArgs,
}

// Arguments of `fencepost distinguish`.
#[derive(Debug, Args)]
pub(super) struct DistinguishArgs {
    /// The model that allows, by name or as a .cat file
    #[arg(value_name = "A")]
    pub(super) allows: String,
    /// The model that forbids
    #[arg(value_name = "B", required_unless_present = "suite")]
    pub(super) forbids: Option<String>,
    /// The minimal conformance suite of model A: what it forbids and allows with any weakening, and
    /// the clauses that each shows
    #[arg(long, conflicts_with_all = ["forbids", "both", "all"])]
    pub(super) suite: bool,
    /// Writes the tests of the suite into a folder, a file each
    #[arg(short, long, value_name = "DIR", conflicts_with = "forbids")]
    pub(super) output: Option<PathBuf>,
    /// Overwrites files that exist
    #[arg(long, requires = "output")]
    pub(super) force: bool,
    /// At most N instructions
    #[arg(
        long,
        value_name = "N",
        default_value = "4",
        value_parser = clap::value_parser!(u8).range(1..=6)
    )]
    pub(super) size: u8,
    /// Further instructions: `sys`, system scope and threads on several devices; `cluster`, that of
    /// clusters; `cas`, compare-exchanges in place of exchanges; `red`, reductions; `alias` and
    /// `surface`, accesses by such names and proxy fences; `plain`, locations whose accesses are
    /// not atomic; `dep`, stores of what depends on reads; `branch`, threads that go on only if a
    /// read is as the outcome says; `barrier`, barriers of a group
    #[arg(
        long,
        value_name = "LETTERS",
        value_enum,
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub(super) with: Vec<LettersArg>,
    /// Only programs that follow the guidelines of OpenCL: each atomic operation and each fence is
    /// sequentially consistent and has the scope of a device, or with `sys` that of all devices
    #[arg(long, conflicts_with = "suite")]
    pub(super) guidelines: bool,
    /// Only outcomes that no interleaving shows, though each location alone looks like memory:
    /// critical cycles
    #[arg(long, conflicts_with = "suite")]
    pub(super) critical: bool,
    /// Also the other way round: what B allows and A forbids
    #[arg(long)]
    pub(super) both: bool,
    /// All programs of which no instruction can be spared, not only the first
    #[arg(long)]
    pub(super) all: bool,
    /// Options of the questions; `--timeout` is that of the whole search.
    #[command(flatten)]
    pub(super) question: QuestionArgs,
}

// Arguments of `fencepost compilers`.
#[derive(Debug, Args)]
pub(super) struct CompilersArgs {
    /// A clang, for C and OpenCL C (repeatable) [default: all compilers in PATH]
    #[arg(long, value_name = "PATH")]
    pub(super) clang: Vec<PathBuf>,
    /// An nvcc, for CUDA C++ with libcu++ (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(super) nvcc: Vec<PathBuf>,
    /// A folder of headers (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(super) include: Vec<PathBuf>,
    /// What to compile for [default: the oldest target of a compiler that has scopes, sm_70 or
    /// later]
    #[arg(long, value_name = "ARCH")]
    pub(super) arch: Option<String>,
    /// Only these languages (repeatable)
    #[arg(long, value_name = "NAME", value_parser = ["c11", "scoped", "opencl", "cuda"])]
    pub(super) language: Vec<String>,
    /// What a compiler printed, as `--save` wrote it, instead of running one (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(super) read: Vec<PathBuf>,
    /// Write what each compiler printed, and a mapping that says what it does, to a folder
    #[arg(long, value_name = "DIR")]
    pub(super) save: Option<PathBuf>,
    /// Overwrite files that exist
    #[arg(long, requires = "save")]
    pub(super) force: bool,
    /// Programs that notice have at most N instructions; 0 looks for none
    #[arg(
        long,
        value_name = "N",
        default_value = "4",
        value_parser = clap::value_parser!(u8).range(0..=6)
    )]
    pub(super) size: u8,
    /// Options of the questions; `--timeout` is that of each search.
    #[command(flatten)]
    pub(super) question: QuestionArgs,
}

// Arguments of `fencepost advise`.
#[derive(Debug, Args)]
pub(super) struct AdviseArgs {
    /// Files, folders, or `-` for standard input
    #[arg(value_name = "TEST", required = true)]
    pub(super) paths: Vec<PathBuf>,
    /// What orders, scopes and fences cost, a table [default: that of models/costs.txt]
    #[arg(long, value_name = "FILE")]
    pub(super) cost: Option<PathBuf>,
    /// What the tests expect to go wrong must not: the outcomes that they expect allowed, races,
    /// undefined behaviour
    #[arg(long)]
    pub(super) repair: bool,
    /// Fail where something is stronger than it must be
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(super) deny: Option<DenyAdvice>,
    /// The selection of tests.
    #[command(flatten)]
    pub(super) select: SelectArgs,
    /// How source files are read.
    #[command(flatten)]
    pub(super) sources: SourceArgs,
    /// Options of the questions; `--timeout` is that of all questions about one program.
    #[command(flatten)]
    pub(super) question: QuestionArgs,
}

// Arguments of `fencepost run`.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Files, folders, or `-` for standard input
    #[arg(value_name = "PATH", default_value = ".")]
    pub(super) paths: Vec<PathBuf>,
    /// Run it on a device instead: opencl, cuda, or opencl:DEVICE, cuda:DEVICE (its number, or a
    /// part of its name)
    #[arg(
        long,
        value_name = "DEVICE",
        value_parser = device,
        conflicts_with_all = ["schedule", "runs", "record", "trace", "early"]
    )]
    pub(super) on: Option<DeviceArg>,
    /// With `--on`: how often each test is executed, as in 1e6, or a little more often
    #[arg(long, value_name = "N", value_parser = count, default_value = "100000", requires = "on")]
    pub(super) instances: u64,
    /// With `--on`: start no launch later than this, for each test
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "on")]
    pub(super) time: Option<Timeout>,
    /// With `--on` and `--partition`: pass over the tests that FILE, the jsonl of a run that was
    /// cut short, has results of
    #[arg(long, value_name = "FILE", requires_all = ["on", "partition"])]
    pub(super) resume: Option<PathBuf>,
    /// Which thread steps next: any; warps in lockstep; OpenCL's work-groups or sub-groups one
    /// after the other
    #[arg(long, value_enum, default_value = "independent")]
    pub(super) scheduling: SchedulingArg,
    /// Options of the launch.
    #[command(flatten)]
    pub(super) launch: LaunchArgs,
    /// Commands of OpenCL queues are submitted by a flush alone: what is never flushed never starts
    #[arg(long)]
    pub(super) submit_on_flush: bool,
    /// How much is bound before its turn: none, local, full:N [default: random: 3/4 none, 1/4
    /// full:2; exhaustive: none, then full:1]
    #[arg(long, value_name = "MODE", value_parser = early)]
    pub(super) early: Option<Early>,
    /// Who decides what happens next: exhaustive, random, replay:FILE
    #[arg(long, value_name = "HOW", default_value = "random", value_parser = schedule)]
    pub(super) schedule: ScheduleArg,
    /// How many random runs
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(super) runs: u64,
    /// Another seed gives other random runs
    #[arg(long, value_name = "N", default_value = "0")]
    pub(super) seed: u64,
    /// At most N steps per run
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(super) steps: usize,
    /// At most N states of an exhaustive exploration
    #[arg(long, value_name = "N", default_value = "2000000")]
    pub(super) states: usize,
    /// Show a run for each outcome, step by step
    #[arg(long)]
    pub(super) trace: bool,
    /// Write a run for each outcome, and for each way to stop, to a file, for `--schedule
    /// replay:FILE` (one test)
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
    /// Take a rule out of the machine, to see that what it then shows is noticed: a test of
    /// Fencepost, not of programs
    #[arg(long, value_name = "RULE", hide = true)]
    pub(super) without: Option<String>,
    /// The selection of tests.
    #[command(flatten)]
    pub(super) select: SelectArgs,
    /// How source files are read.
    #[command(flatten)]
    pub(super) sources: SourceArgs,
    /// Options of the questions.
    #[command(flatten)]
    pub(super) question: QuestionArgs,
}

// Options of a kernel's launch.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct LaunchArgs {
    /// Warps of N consecutive threads of a block [default: as the test says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) warp_size: Option<u32>,
    /// Each GPU has N multiprocessors; blocks that find no room wait [default: enough for every
    /// block]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) sms: Option<u32>,
    /// A multiprocessor has room for N blocks at once, or for as many as one of a target has:
    /// auto:sm_80 [default: 1, with `--sms`]
    #[arg(long, value_name = "N|auto:TARGET", value_parser = resident)]
    pub(super) resident: Option<Resident>,
    /// With `--resident auto:TARGET`: a thread has N registers, as `ptxas -v` says [default: few
    /// enough not to matter]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub(super) registers: Option<u32>,
    /// A cooperative launch: fails unless all blocks are resident at once
    #[arg(long)]
    pub(super) cooperative: bool,
    /// A block has at most N threads
    #[arg(long, value_name = "N", default_value = "1024")]
    pub(super) max_block: u32,
    /// A block has at most N bytes of shared memory
    #[arg(long, value_name = "N", default_value = "49152")]
    pub(super) max_shared: u64,
}

// Arguments of `fencepost devices`.
#[derive(Debug, Args)]
pub(super) struct DevicesArgs {
    /// Form of the list
    #[arg(long, value_enum, default_value = "human")]
    pub(super) format: FormatArg,
}

// Arguments of `fencepost merge`.
#[derive(Debug, Args)]
pub(super) struct MergeArgs {
    /// What `fencepost check --partition hash:M/N --format jsonl` wrote, for every M; or `fencepost
    /// run --on`
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
}

// Arguments of `fencepost models`.
#[derive(Debug, Args)]
pub(super) struct ModelsArgs {
    /// A model by name, or a .cat file; without it, the list of models
    #[arg(value_name = "NAME")]
    pub(super) name: Option<String>,
    /// What a .cat file without `free` declarations takes for granted
    #[arg(long, value_name = "NAME", default_value = "ptx")]
    pub(super) prelude: String,
    /// Form of the result on standard output
    #[arg(long, value_enum, default_value = "human")]
    pub(super) format: FormatArg,
}

// Arguments of `fencepost import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Test files, folders, `-` for standard input, or one source file: `.cu`, `.cl`, `.ptx`
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
    /// The folder to write to; of a kernel, the file; without it, one test goes to standard output
    #[arg(short, long = "output", value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite files that exist
    #[arg(long)]
    pub(super) force: bool,
    /// Of a source file: how a kernel is launched, as in 'K<<<2, 64>>>(in[128] = 1, out[2])'
    #[arg(
        long = "launch",
        value_name = "K<<<G,B>>>(args)",
        help_heading = "Kernels"
    )]
    pub(super) launches: Vec<String>,
    /// Of a source file: the arguments of its program, as one text
    #[arg(
        long = "args",
        value_name = "TEXT",
        allow_hyphen_values = true,
        help_heading = "Kernels"
    )]
    pub(super) program: Option<String>,
    /// Of a source file: another value of a constant (repeatable)
    #[arg(
        long = "define",
        value_name = "NAME=VALUE",
        value_parser = constant,
        help_heading = "Kernels"
    )]
    pub(super) constants: Vec<(String, i64)>,
    /// Of a source file: a folder of headers (repeatable)
    #[arg(
        short = 'I',
        long = "include",
        value_name = "DIR",
        help_heading = "Kernels"
    )]
    pub(super) include: Vec<PathBuf>,
    /// Of a kernel: what is expected of its races, which is written into the test
    #[arg(
        long,
        value_name = "VERDICT",
        help_heading = "Kernels",
        value_parser = PossibleValuesParser::new(["racy", "race-free"])
    )]
    pub(super) expect: Option<String>,
    /// The kernel of a `.ptx` file; without any of the following, its kernels are listed
    #[arg(long, value_name = "NAME", help_heading = "Kernels")]
    pub(super) kernel: Option<String>,
    /// CTAs: `2`, or `2,1,1`
    #[arg(
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        num_args = 1,
        help_heading = "Kernels"
    )]
    pub(super) grid: Vec<u32>,
    /// Threads per CTA
    #[arg(
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        num_args = 1,
        help_heading = "Kernels"
    )]
    pub(super) block: Vec<u32>,
    /// CTAs per cluster; without it, as the kernel demands
    #[arg(
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        num_args = 1,
        help_heading = "Kernels"
    )]
    pub(super) cluster: Vec<u32>,
    /// What a parameter is, by name or number: `0=data:u32[4]=1,2,3,4` (a buffer: type, length,
    /// first values), `1=data` (the same one), `2='&data[2]'`, `3=16`,
    /// `4=nodes:{u64,u32}[2]=&nodes[1],5,0,6` (structures, with pointers). Of a shared variable,
    /// what its elements are: `s=u32[64]`. Of a timer, its value: `%globaltimer=0`
    #[arg(long = "arg", value_name = "NAME=VALUE", help_heading = "Kernels")]
    pub(super) args: Vec<String>,
    /// The condition of the test: `out[0] == 10`
    #[arg(long, value_name = "P", help_heading = "Kernels")]
    pub(super) ask: Option<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn repeatable_options_keep_their_order() {
        let line = [
            "fencepost",
            "check",
            "a",
            "--model",
            "ptx",
            "--model",
            "m.cat",
            "--set",
            "dep=syntactic",
            "b",
        ];
        let cli = Cli::try_parse_from(line).unwrap();
        let Command::Check(args) = cli.command else {
            panic!("{cli:?}")
        };
        assert_eq!(args.question.models, ["ptx", "m.cat"]);
        assert_eq!(
            args.question.set,
            [("dep".to_owned(), "syntactic".to_owned())]
        );
        assert_eq!(args.paths, [PathBuf::from("a"), PathBuf::from("b")]);
    }

    #[test]
    fn the_later_of_two_opposites_wins() {
        let parse = |words: &[&str]| match Cli::try_parse_from(words).unwrap().command {
            Command::Check(args) => args.fail_fast,
            _ => unreachable!(),
        };
        assert!(parse(&[
            "fencepost",
            "check",
            "--no-fail-fast",
            "--fail-fast"
        ]));
        assert!(!parse(&[
            "fencepost",
            "check",
            "--fail-fast",
            "--no-fail-fast"
        ]));
    }
}
