//! `fencepost compilers`: compares compiled atomic operations with a mapping, and finds programs
//! that notice a difference.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::args::{CompilersArgs, EngineArg};
use super::catalogue::Catalogue;
use super::distinguish::{MappedModel, Way, confirmed};
use super::run::Run;
use super::terminal::{Terminal, cannot_write};
use super::{exit, files, load};
use compilers::{
    AtomicOperation, CompiledInstr, CompiledItem, Compiler, CompilerRecord, CompilerReport, Family,
    OperationResult, SourceLanguage, Strength, as_exchanges,
};
use diag::{Diagnostic, file};
use distinguish::{Alphabet, SearchRequest, Tier};
use front::mapping::{Mapping, MappingStep, OpKind, SourceOrder, StepScope};
use program::Scope;
use report::{CompiledOperation, CompiledReport, CompiledVerdict, Distinction, ReportSubject};

/// The model of PTX that judges compiled code.
const TARGET: &str = "ptx";

/// Runs it; returns the exit code.
pub(super) fn run(args: &CompilersArgs, terminal: &Terminal) -> u8 {
    compilers(args, terminal).unwrap_or_else(|code| code)
}

fn compilers(args: &CompilersArgs, terminal: &Terminal) -> Result<u8, u8> {
    let refuse = |diagnostic: &Diagnostic| {
        terminal.diagnose(diagnostic);
        exit::INVALID
    };
    let mut question = args.question.clone();
    if !question.models.is_empty() {
        let plain = Diagnostic::plain(
            "unfit-model",
            "`compilers` judges instructions under `ptx` and takes no `--model`",
        );
        return Err(refuse(&plain.help(
            "`--save` writes a mapping; `compare` takes it with any models",
        )));
    }
    // All engines of this build decide the result.
    if question.engine == EngineArg::Auto {
        question.engine = EngineArg::Both;
    }
    let mut run = Run::new(terminal, &question, ReportSubject::Others)?;
    let records = records(args, &mut run)?;
    let reports: Vec<CompilerReport> = records
        .into_iter()
        .map(|record| report(record, run.settings.mapping))
        .collect();
    if let Some(folder) = &args.save {
        for report in &reports {
            save(report, folder, args.force).map_err(|d| refuse(&d))?;
        }
    }
    run.open(&[], false)?;
    for report in &reports {
        run.events.answered = true;
        run.events.unmet |= report.count(Strength::Weaker) > 0;
        let compiled = told(report);
        run.summary.add_compiled(&compiled);
        run.events.undecided |= compiled.count(CompiledVerdict::Unjudged) > 0;
        if run.outputs.compiled(&compiled).is_break() {
            return Ok(run.end());
        }
    }
    for report in reports.iter().filter(|_| args.size > 0) {
        for row in weakened(report) {
            if search(&mut run, args, report, row)? {
                return Ok(run.end());
            }
        }
    }
    Ok(run.end())
}

/// The printed code in one file.
fn record(path: &Path) -> Result<CompilerRecord, Box<Diagnostic>> {
    let text = load::text(path, file::LARGEST)?;
    CompilerRecord::read(&text).map_err(|why| {
        let place = path.display();
        let message = format!("`{place}` is not an output of `compilers`: {why}");
        Box::new(Diagnostic::plain("no-record", message))
    })
}

/// The printed code: from files, or from the named compilers, or from the installed ones.
fn records(args: &CompilersArgs, run: &mut Run<'_>) -> Result<Vec<CompilerRecord>, u8> {
    let mut records = Vec::new();
    let mut invalid = Vec::new();
    for path in &args.read {
        match record(path) {
            Ok(record) => records.push(record),
            Err(diagnostic) => invalid.push(*diagnostic),
        }
    }
    let named = [(Family::Clang, &args.clang), (Family::Nvcc, &args.nvcc)];
    let named = named
        .iter()
        .flat_map(|(family, paths)| paths.iter().map(|path| (*family, path)));
    let mut compilers = Vec::new();
    for (family, path) in named {
        match Compiler::new(family, path, &args.include, args.arch.as_deref()) {
            Ok(compiler) => compilers.push(compiler),
            Err(why) => invalid.push(Diagnostic::plain("no-compiler", why)),
        }
    }
    if !invalid.is_empty() {
        run.terminal.diagnose_all(&invalid);
        return Err(exit::INVALID);
    }
    if records.is_empty() && compilers.is_empty() {
        compilers = Compiler::installed(&args.include, args.arch.as_deref());
        if compilers.is_empty() {
            let plain = "no compiler was found: neither `clang` nor `nvcc` is installed; `--clang \
                PATH` and `--nvcc PATH` name one, `--read FILE` reads the output of one from \
                elsewhere";
            run.terminal.remark(plain);
            return Err(exit::UNDECIDED);
        }
    }
    for compiler in &compilers {
        let path = compiler.path.display();
        let languages: Vec<&SourceLanguage> = compiler
            .languages()
            .iter()
            .filter(|language| {
                args.language.is_empty()
                    || args.language.iter().any(|name| name == language.row().name)
            })
            .collect();
        if languages.is_empty() {
            let own: Vec<&str> = compiler
                .languages()
                .iter()
                .map(|language| language.row().name)
                .collect();
            let message = format!("`{path}` compiles none of the languages in `--language`");
            let plain = Diagnostic::plain("unfit-language", message);
            run.events.invalid |= run
                .terminal
                .diagnose_all(&[plain.help(format!("it compiles {}", own.join(", ")))])
                > 0;
        }
        for language in languages {
            let all = AtomicOperation::all(*language);
            let name = format!("{}, {}", compiler.version, compiler.arch);
            match compiler.compile(*language, &all) {
                Ok(Ok(outputs)) => records.push(CompilerRecord::new(*language, &name, &outputs)),
                Ok(Err(why)) => {
                    let (language, arch) = (language.row().name, &compiler.arch);
                    let message =
                        format!("`{path}` compiles nothing of {language} for `{arch}`: {why}");
                    let help = "`--arch` names another target, `--include` a folder of headers, \
                    `--language` other languages";
                    run.events.invalid |=
                        run.terminal
                            .diagnose_all(&[Diagnostic::plain("no-compiler", message).help(help)])
                            > 0;
                }
                Err(error) => {
                    let message = format!("`{path}` could not be run: {error}");
                    run.terminal
                        .diagnose(&Diagnostic::plain("no-compiler", message));
                    return Err(exit::UNDECIDED);
                }
            }
        }
    }
    Ok(records)
}

/// Compared with the wanted mapping, if it is of the language, or else the language's.
fn report(record: CompilerRecord, selected: Option<&'static Mapping>) -> CompilerReport {
    let row = record.language.row();
    let mapping = selected
        .filter(|m| m.from == row.dialect)
        .unwrap_or_else(|| Mapping::named(row.mapping).expect("shipped"));
    CompilerReport::new(record, mapping)
}

/// Writes the compiler's output, and a mapping that describes it.
fn save(report: &CompilerReport, folder: &Path, force: bool) -> Result<(), Box<Diagnostic>> {
    let name = report.record.name();
    let mut files: Vec<(PathBuf, String)> =
        vec![(folder.join(format!("{name}.ptx")), report.record.text())];
    files.extend(
        report
            .observed(None)
            .map(|mapping| (folder.join(format!("{name}.toml")), mapping.to_toml())),
    );
    fs::create_dir_all(folder).map_err(|error| Box::new(cannot_write(folder, &error)))?;
    for (path, text) in files {
        if !force && path.exists() {
            let message = format!("`{}` exists and is left as it is", path.display());
            return Err(Box::new(
                Diagnostic::plain("file-exists", message).help("`--force` overwrites it"),
            ));
        }
        files::replace(&path, text.as_bytes())
            .map_err(|error| Box::new(cannot_write(&path, &error)))?;
    }
    Ok(())
}

fn verdict(judged: &OperationResult) -> CompiledVerdict {
    match (&judged.made, judged.strength) {
        (Err(_), _) => CompiledVerdict::Refused,
        (Ok(_), None) => CompiledVerdict::Unjudged,
        (Ok(_), Some(Strength::Weaker)) => CompiledVerdict::Weaker,
        (Ok(_), Some(Strength::Stronger)) => CompiledVerdict::Stronger,
        (Ok(_), Some(Strength::Equal)) => CompiledVerdict::Equal,
    }
}

fn told(report: &CompilerReport) -> CompiledReport {
    let row = report.record.language.row();
    let operation = |judged: &OperationResult| {
        let operation = judged.operation;
        // Scopes are listed together if all of them match the mapping.
        let alike = report.operations.iter().filter(|other| {
            let AtomicOperation {
                form, order, bits, ..
            } = other.operation;
            (form, order, bits, other.strength)
                == (
                    operation.form,
                    operation.order,
                    operation.bits,
                    judged.strength,
                )
        });
        let mapped: Vec<String> = alike.map(|other| made(report, other, true)).collect();
        let is_mapped = judged.strength == Some(Strength::Equal)
            || mapped.iter().all(|other| *other == mapped[0]);
        CompiledOperation {
            verdict: verdict(judged),
            forms: vec![operation.form.name()],
            order: compilers::order_word(operation.order),
            bits: Some(operation.bits)
                .filter(|bits| *bits > 0)
                .into_iter()
                .collect(),
            scopes: scope(report, judged)
                .map(compilers::scope_word)
                .into_iter()
                .collect(),
            made: made(report, judged, is_mapped),
            asked: sequence(
                judged
                    .asked
                    .iter()
                    .map(|step| reach(report, judged, step).to_string())
                    .collect(),
            ),
        }
    };
    CompiledReport {
        compiler: report.record.compiler.clone(),
        language: row.name,
        mapping: report.mapping.name(),
        operations: CompiledOperation::together(report.operations.iter().map(operation).collect()),
    }
}

/// The scope of an operation, if its language and its order have any.
fn scope(report: &CompilerReport, judged: &OperationResult) -> Option<Scope> {
    let is_plain = matches!(
        judged.operation.order,
        SourceOrder::Plain | SourceOrder::Volatile
    );
    (report.record.language != SourceLanguage::C11 && !is_plain).then_some(judged.operation.scope)
}

/// A step of a mapping, at the scope that the operation's is mapped to.
fn reach(report: &CompilerReport, judged: &OperationResult, step: &MappingStep) -> MappingStep {
    let own = scope(report, judged).and_then(|scope| report.mapping.scope(scope));
    match step.reach {
        StepScope::Fixed(scope) if own == Some(scope) => MappingStep {
            reach: StepScope::Mapped,
            ..*step
        },
        _ => *step,
    }
}

/// The compiled operation, at scopes of a mapping or at its actual ones.
fn made(report: &CompilerReport, judged: &OperationResult, is_mapped: bool) -> String {
    let reach = |step: &MappingStep| {
        if is_mapped {
            reach(report, judged, step)
        } else {
            *step
        }
    };
    match &judged.made {
        Ok(items) => sequence(
            items
                .iter()
                .map(|item| match &item.what {
                    CompiledInstr::Step(step) => CompiledItem {
                        what: CompiledInstr::Step(reach(step)),
                        ..item.clone()
                    }
                    .to_string(),
                    CompiledInstr::Reduction(step) => CompiledItem {
                        what: CompiledInstr::Reduction(reach(step)),
                        ..item.clone()
                    }
                    .to_string(),
                    _ => item.to_string(),
                })
                .collect(),
        ),
        Err(why) => why.clone(),
    }
}

fn sequence(parts: Vec<String>) -> String {
    if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.join("; ")
    }
}

/// The kinds and orders that came out weaker, in the order of the operations.
fn weakened(report: &CompilerReport) -> Vec<(OpKind, SourceOrder)> {
    let mut rows: Vec<(OpKind, SourceOrder)> = Vec::new();
    for judged in report
        .operations
        .iter()
        .filter(|j| j.strength == Some(Strength::Weaker))
    {
        let (kind, order, _) = judged.operation.row();
        if !rows.contains(&(kind, order)) {
            rows.push((kind, order));
        }
    }
    rows
}

/// The smallest program whose outcome the source model and PTX by the mapping forbid, and PTX
/// allows with that one row as compiled. Breaks if the reader has left.
fn search(
    run: &mut Run<'_>,
    args: &CompilersArgs,
    report: &CompilerReport,
    row: (OpKind, SourceOrder),
) -> Result<bool, u8> {
    let language = report.record.language.row();
    let words = format!(
        "{} {}",
        compilers::kind_word(row.0),
        compilers::order_word(row.1)
    );
    let Some(mapping) = report.observed(Some(row)) else {
        run.terminal.remark(&format!(
            "no search for a program that notices `{words}`: only sizes or forms that no mapping \
            row has came out weaker"
        ));
        return Ok(false);
    };
    let mapping: &'static Mapping = Box::leak(Box::new(mapping));
    let mut catalogue = Catalogue::new(None);
    let models = (
        catalogue.get(TARGET, mapping.to),
        catalogue.get(language.model, mapping.from),
    );
    let (Some(target), Some(source)) = models else {
        run.terminal.diagnose_all(&catalogue.diagnostics());
        return Err(exit::INVALID);
    };
    let allows = MappedModel {
        model: target.clone(),
        mapping: Some(mapping),
    };
    let promised = MappedModel {
        model: target,
        mapping: Some(report.mapping),
    };
    let forbids = MappedModel {
        model: source,
        mapping: None,
    };
    let mut alphabet = Alphabet::new(language.dialect, &[]);
    let set = run.settings.set.clone();
    // The search knows exchanges alone; a compare-exchange that succeeds is one. The result is
    // written and decided with those.
    alphabet.compares = row.0 == OpKind::Cas;
    let searched = |side: &MappedModel| {
        let mapping = side
            .mapping
            .filter(|_| alphabet.compares)
            .map(|m| &*Box::leak(Box::new(as_exchanges(m))));
        MappedModel {
            model: side.model.clone(),
            mapping: mapping.or(side.mapping),
        }
    };
    let ways = [searched(&allows), searched(&promised)];
    let sought = SearchRequest {
        allows: vec![ways[0].judged(&set)],
        // A loss of the mapping itself is not the compiler's.
        forbids: vec![forbids.judged(&set), ways[1].judged(&set)],
        alphabet: &alphabet,
        size: usize::from(args.size),
        tiers: &[Tier::Critical, Tier::Other],
        all: false,
        jobs: run.pool.jobs(),
        deadline: run.settings.limits.timeout.map(|t| Instant::now() + t),
    };
    let answer = distinguish::search(&sought).map_err(|why| {
        run.terminal
            .diagnose(&Diagnostic::plain("cannot-distinguish", why));
        exit::INVALID
    })?;
    let mut found = Vec::new();
    for (number, program) in answer.found.iter().enumerate() {
        found.extend(confirmed(
            run,
            Way {
                allows: &allows,
                forbids: &forbids,
            },
            &alphabet,
            program,
            number,
        ));
    }
    let distinction = Distinction {
        allows: format!("{}, its {words} alone", allows.called()),
        forbids: forbids.called(),
        alphabet: alphabet.describe(),
        size: usize::from(args.size),
        searched: answer.searched,
        stopped: answer.stopped,
        found,
    };
    run.summary.add_distinction(&distinction);
    run.events.undecided |= distinction.stopped.is_some();
    Ok(run.outputs.distinction(&distinction).is_break())
}
