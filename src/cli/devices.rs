//! `fencepost devices`: the devices that `run --on` can run tests on.

use serde_json::json;

use super::args::{DevicesArgs, FormatArg};
use super::terminal::Terminal;
use super::{exit, settings};
use device::{Device, DeviceInfo, word};
use program::dialect::Runtime;
use report::ReportSubject;

/// Runs it; returns the exit code.
pub(super) fn run(args: &DevicesArgs, terminal: &Terminal) -> u8 {
    if let Some(diagnostic) = settings::unfit(args.format.into(), ReportSubject::Others) {
        terminal.diagnose(&diagnostic);
        return exit::INVALID;
    }
    let (mut devices, mut why) = (Vec::new(), Vec::new());
    for runtime in [Runtime::OpenCl, Runtime::Cuda] {
        match of(runtime) {
            Ok(found) => devices.extend(found),
            Err(reason) => why.push(reason),
        }
    }
    if devices.is_empty() {
        return none(terminal, &why.join("\n"));
    }
    let abouts: Vec<&DeviceInfo> = devices.iter().map(|d| d.about()).collect();
    let objects = abouts.iter().map(|d| {
        json!({
            "device": format!("{}:{}", word(d.runtime), d.number),
            "name": d.name, "platform": d.platform,
            "driver": d.driver, "version": d.version, "units": d.units
        })
    });
    let text = match args.format {
        FormatArg::Human => {
            let lines = abouts
                .iter()
                .map(|d| format!("{d}, {}, {} compute units\n", d.version, d.units));
            lines.collect()
        }
        FormatArg::Json => {
            format!(
                "{:#}\n",
                json!({ "version": 1, "devices": objects.collect::<Vec<_>>() })
            )
        }
        _ => objects.map(|o| format!("{o}\n")).collect::<String>(),
    };
    terminal.printed(&text, exit::OK)
}

/// The devices of a runtime, or the reason why it has none.
pub(super) fn of(runtime: Runtime) -> Result<Vec<Box<dyn Device>>, String> {
    match device::devices(runtime) {
        Ok(devices) if devices.is_empty() => Err(format!("no {} device was found", runtime.name())),
        Ok(devices) => Ok(devices),
        Err(trouble) => Err(trouble.to_string()),
    }
}

/// Reports that no device exists.
pub(super) fn none(terminal: &Terminal, why: &str) -> u8 {
    terminal.remark(why);
    exit::UNDECIDED
}
