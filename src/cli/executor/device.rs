//! `fencepost run --on`: a device's observations, each outcome compared with the model.
//!
//! # Invariants
//! - An outcome is a find only if the model knows the program to be defined: an undefined program
//!   allows any outcome.
//! - A test that the device cannot run, or a failing device, does not affect the other tests.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use crate::cli::args::{DeviceArg, FormatArg, RunArgs};
use crate::cli::decide::{Decided, milliseconds};
use crate::cli::exit::{self, Events};
use crate::cli::merge::{self, Kept};
use crate::cli::plan::{RequestedModels, Unit};
use crate::cli::run::Run;
use crate::cli::select::Selection;
use crate::cli::settings::Settings;
use crate::cli::terminal::Terminal;
use crate::cli::{defect, devices, panics};
use device::{Device, DeviceInfo, DeviceOptions, Histogram, TestKernel, Trouble, word};
use diag::Diagnostic;
use operational::{Faults, ModelComparison};
use report::{Hazards, Observations, ObservedOutcome, ReportSubject};
use simt::schedule::{Observation, Recorded, RunOutcome};
use verdict::{State, Verdict};

/// Instances that were not counted, of all, and the reason: a word for the report.
const STUCK: &str = "stuck";

/// Runs it; returns the exit code.
pub(super) fn execute(args: &RunArgs, on: &DeviceArg, terminal: &Terminal) -> Result<u8, u8> {
    let mut run = Run::new(terminal, &args.question, ReportSubject::Others)?;
    run.sources = args.sources.options();
    let mut selection = run.select(&args.select)?;
    let device = find(on).map_err(|why| devices::none(terminal, &why))?;
    let options = DeviceOptions {
        instances: args.instances,
        seed: args.seed,
        time: args.time.and_then(|time| time.0),
    };
    let files = run.load(&args.paths);
    let mut units = run.plan_for(
        &files,
        RequestedModels::Dialect(&args.question.models),
        |_, _| Ok(Vec::new()),
    );
    selection.narrow_runs(&mut units, &run.settings, Observations::ON_DEVICE);
    let kept = match &args.resume {
        Some(file) => {
            resumed(file, &units, &selection, device.about(), args).map_err(|diagnostic| {
                terminal.diagnose(&diagnostic);
                exit::INVALID
            })?
        }
        None => BTreeMap::new(),
    };
    run.open(&units, false)?;
    // Launches come one after the other; meanwhile the checkers work on earlier observations.
    let about = device.about().clone();
    let device = Mutex::new(device);
    run.decide(
        &units,
        |unit, settings| match kept.get(&unit.place) {
            Some(kept) => {
                let report = Observations {
                    kept: Some(kept.line.clone()),
                    ..Observations::default()
                };
                Decided::new(vec![(report, None, kept.events)], Vec::new())
            }
            None => judge(unit, settings, &device, &about, &options).map(|(mut report, find)| {
                report.part = selection.part(unit, 0, 1);
                (report, find, Events::default())
            }),
        },
        |run, (report, find, events)| {
            run.events = run.events.and(events);
            if report.kept.is_some() {
                return run.outputs.observations(&report);
            }
            run.summary.add_observations(&report);
            run.events.answered = true;
            run.events.undecided |=
                report.undecided().is_some() || report.observed.iter().any(|o| o.allowed.is_none());
            run.events.unmet |= report.observed.iter().any(|o| o.allowed == Some(false));
            if let Some(find) = find {
                run.terminal.diagnose(&find);
            }
            run.outputs.observations(&report)
        },
    );
    Ok(run.end())
}

/// The results of an earlier run that need not be found again, by the place of their pair.
fn resumed(
    file: &Path,
    units: &[Unit<'_>],
    selection: &Selection,
    about: &DeviceInfo,
    args: &RunArgs,
) -> Result<BTreeMap<usize, Kept>, Box<Diagnostic>> {
    let name = file.display();
    if args.question.format != FormatArg::Jsonl {
        let plain = Diagnostic::plain(
            "resume",
            "`--resume` repeats the written results and needs `--format jsonl`",
        );
        return Err(Box::new(plain.help("add `--format jsonl`")));
    }
    let mut all = BTreeMap::new();
    for kept in merge::kept(file)? {
        let here = units.first().and_then(|unit| selection.part(unit, 0, 1));
        if here.is_none_or(|here| {
            (here.whole, here.number) != (kept.part.whole.clone(), kept.part.number)
        }) {
            let plain = Diagnostic::plain(
                "another-run",
                format!("`{name}` belongs to another run or another part"),
            );
            return Err(Box::new(plain.help(
                "give the same tests, models, options and part, and use the same build of \
                Fencepost",
            )));
        }
        let Some((seed, runs)) = kept.seed_and_runs else {
            continue;
        };
        if (kept.memory.as_str(), seed) != (place(about).as_str(), args.seed) {
            let plain = Diagnostic::plain(
                "another-run",
                format!("`{name}` belongs to another device or another seed"),
            );
            return Err(Box::new(
                plain.note(format!("the file has {}, seed {seed}", kept.memory)),
            ));
        }
        if runs >= args.instances || args.time.is_some() {
            all.insert(kept.part.pair, kept);
        }
    }
    Ok(all)
}

/// The place of a test's run, in words.
fn place(about: &DeviceInfo) -> String {
    format!("on {about}")
}

/// The device in the request.
fn find(on: &DeviceArg) -> Result<Box<dyn Device>, String> {
    let devices = devices::of(on.runtime)?;
    let known: Vec<String> = devices.iter().map(|d| d.about().to_string()).collect();
    let is_it = |d: &dyn Device| match &on.device {
        None => true,
        Some(text) => match text.parse::<usize>() {
            Ok(number) => d.about().number == number,
            Err(_) => d.about().name.to_lowercase().contains(&text.to_lowercase()),
        },
    };
    let named = on.device.as_deref().unwrap_or_default();
    devices
        .into_iter()
        .find(|device| is_it(device.as_ref()))
        .ok_or_else(|| format!("no device matches `{named}`; devices: {}", known.join(", ")))
}

/// Runs one test and compares its observations with one model.
fn judge(
    unit: &Unit<'_>,
    settings: &Settings,
    device: &Mutex<Box<dyn Device>>,
    about: &DeviceInfo,
    options: &DeviceOptions,
) -> Decided<(Observations, Option<Diagnostic>)> {
    let start = Instant::now();
    let test = unit.test.as_ref();
    let mut report = Observations {
        path: unit.path.to_owned(),
        test: unit.test.name.clone(),
        model: unit.model.request.clone(),
        mapping: unit.mapping.map(|m| m.name()),
        schedule: Observations::ON_DEVICE,
        ..Observations::default()
    };
    let mut find = None;
    let done = panics::catch(|| {
        let seen = DeviceRuns::of(unit, device, about, options)?;
        seen.tell(&mut report, unit, settings, about, options);
        find = seen.find(&report, unit, settings, about, options);
        Ok(())
    });
    match done {
        Err(message) => report.defect = Some(message),
        Ok(Err(why)) => report.refused = Some(why),
        Ok(Ok(())) => {}
    }
    let defects = report.defect.as_ref().map(|law| {
        let again = defect::Again {
            words: format!(" {}", on(about)),
            schedule: None,
        };
        defect::record_run(test, &unit.model, law, settings, &again)
    });
    report.ms = settings.timings.then(|| milliseconds(start));
    Decided::new(vec![(report, find)], defects.into_iter().collect())
}

/// The option that names the device again.
fn on(about: &DeviceInfo) -> String {
    format!("--on {}:{}", word(about.runtime), about.number)
}

/// Runs of a test on a device.
struct DeviceRuns<'a> {
    kernel: TestKernel<'a>,
    seen: Histogram,
    /// The failure after which no more instances ran.
    failure: Option<String>,
}

impl<'a> DeviceRuns<'a> {
    /// # Errors
    /// The reason why nothing ran.
    fn of(
        unit: &'a Unit<'_>,
        device: &Mutex<Box<dyn Device>>,
        about: &DeviceInfo,
        options: &DeviceOptions,
    ) -> Result<Self, String> {
        if let Some(reason) = &unit.refused {
            return Err(reason.to_string());
        }
        let kernel = device::prepare(&unit.test, about.runtime).map_err(|why| why.to_string())?;
        let (seen, trouble) = {
            // A panic during the comparison left nothing behind that matters here.
            let device = device
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            device::run(&kernel, device.as_ref(), options)
        };
        let failure = match trouble {
            Some(Trouble::Refused(why)) => return Err(why),
            Some(Trouble::Failed(why)) if seen.launches == 0 => return Err(why),
            Some(Trouble::Failed(why)) => Some(why),
            None => None,
        };
        Ok(DeviceRuns {
            kernel,
            seen,
            failure,
        })
    }

    /// Fills in the report, with the model's answers.
    fn tell(
        &self,
        report: &mut Observations,
        unit: &Unit<'_>,
        settings: &Settings,
        about: &DeviceInfo,
        options: &DeviceOptions,
    ) {
        let (test, seen) = (unit.test.as_ref(), &self.seen);
        report.reason = self.failure.clone();
        report.memory = place(about);
        report.runs = Some((seen.instances(), options.seed));
        report.ended = ended(seen);
        report.unfinished = seen.outcomes.is_empty();
        let observation = observation(seen);
        let (model, engine, limits) = (&unit.model.model, settings.engine, settings.limits);
        let held = operational::hold(test, model, engine, limits, &settings.set, &observation);
        let faults = (!held.too_large)
            .then(|| operational::faults(test, model, engine, limits, &settings.set, &observation));
        fill(report, &held, faults.as_ref());
    }

    /// The outcomes that the device shows and the model forbids, written down; `None` without any.
    fn find(
        &self,
        report: &Observations,
        unit: &Unit<'_>,
        settings: &Settings,
        about: &DeviceInfo,
        options: &DeviceOptions,
    ) -> Option<Diagnostic> {
        let instances = self.seen.instances();
        let finds: Vec<String> = report
            .observed
            .iter()
            .filter(|o| o.allowed == Some(false))
            .map(|o| format!("{} ({} of {instances})", values(&o.state), o.count))
            .collect();
        if finds.is_empty() {
            return None;
        }
        let text = format!(
            "{about} shows outcomes that {} forbids: {}",
            unit.model.label,
            finds.join("; ")
        );
        let again = format!(
            "{} --model {} --instances {instances} --seed {}",
            on(about),
            unit.model.request,
            options.seed
        );
        let written = defect::record_find(&unit.test, &text, &self.kernel, &again, settings);
        let place = written.map_or_else(
            |why| format!("it could not be written: {why}"),
            |folder| format!("test and kernel are in {}", folder.display()),
        );
        let message = format!("{}: {text}", unit.test.name);
        Some(Diagnostic::plain("find", message).note(place))
    }
}

fn values(state: &State) -> String {
    state
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn ended(seen: &Histogram) -> Vec<(&'static str, u64)> {
    let finished = seen.instances() - seen.stuck;
    [("finished", finished), (STUCK, seen.stuck)]
        .into_iter()
        .filter(|(_, n)| *n > 0)
        .collect()
}

/// The observations, in the executor's form.
fn observation(seen: &Histogram) -> Observation {
    let outcomes = seen
        .outcomes
        .iter()
        .map(|(state, &count)| RunOutcome {
            state: state.clone(),
            count,
            schedule: Recorded::default(),
        })
        .collect();
    Observation {
        outcomes,
        ..Observation::default()
    }
}

fn fill(report: &mut Observations, held: &ModelComparison, faults: Option<&Faults>) {
    let word = |of: fn(&Faults) -> &Option<Verdict>| {
        faults.and_then(|f| of(f).as_ref()).map(Verdict::word)
    };
    let (race, undefined) = (word(|f| &f.race), word(|f| &f.undefined));
    let is_undefined = race == Some("racy") || undefined == Some("undefined");
    let unsure = [race, undefined].contains(&Some("undecided"));
    report.reason = report.reason.take().or_else(|| {
        let why = held.reason.as_ref()?;
        (!held.complete).then(|| format!("the outcomes that the model allows: {why}"))
    });
    (report.bound, report.listed) = (held.bound, held.complete);
    report.too_large = held.too_large;
    report.not_observed = held.not_observed.clone();
    report.defect = held
        .defect
        .clone()
        .or_else(|| faults.and_then(|f| f.defect.clone()));
    report.observed = held
        .observed
        .iter()
        .map(|o| {
            let allowed = match o.allowed {
                Some(false) if is_undefined => Some(true),
                Some(false) if unsure => None,
                known => known,
            };
            ObservedOutcome {
                state: o.state.clone(),
                count: o.count,
                allowed,
                trace: None,
            }
        })
        .collect();
    if unsure && report.observed.iter().any(|o| o.allowed.is_none()) {
        report
            .reason
            .get_or_insert_with(|| "undecided whether the program is defined".into());
    }
    report.hazards = is_undefined.then(|| Hazards {
        observed: Vec::new(),
        race,
        undefined,
    });
}
