//! `fencepost devices`: what `run --on` can run tests on.

use serde_json::json;

use super::args::{DevicesArgs, FormatArg};
use super::terminal::Terminal;
use super::{exit, settings};
use device::opencl;
use report::Subject;

/// Runs it; returns the exit code.
pub(super) fn run(args: &DevicesArgs, terminal: &Terminal) -> u8 {
    if let Some(diagnostic) = settings::unfit(args.format.into(), Subject::Others) {
        terminal.diagnose(&diagnostic);
        return exit::INVALID;
    }
    let devices = match opencl::devices() {
        Ok(devices) if !devices.is_empty() => devices,
        Ok(_) => return none(terminal, "there is no OpenCL device"),
        Err(trouble) => return none(terminal, &trouble.to_string()),
    };
    let objects = devices.iter().map(|d| {
        json!({
            "device": format!("opencl:{}", d.number), "name": d.name, "platform": d.platform, "driver": d.driver,
            "version": d.version, "units": d.units()
        })
    });
    let text = match args.format {
        FormatArg::Human => {
            let lines = devices.iter().map(|d| format!("{d}, {}, {} compute units\n", d.version, d.units()));
            lines.collect()
        }
        FormatArg::Json => {
            format!("{:#}\n", json!({ "version": 1, "devices": objects.collect::<Vec<_>>() }))
        }
        _ => objects.map(|o| format!("{o}\n")).collect::<String>(),
    };
    terminal.printed(&text, exit::OK)
}

/// Says that there is none.
pub(super) fn none(terminal: &Terminal, why: &str) -> u8 {
    terminal.remark(why);
    exit::UNDECIDED
}
