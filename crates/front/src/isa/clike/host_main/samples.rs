//! Calls of the helper headers of NVIDIA's CUDA samples: `helper_cuda.h`, `helper_functions.h`.
//!
//! A file seldom comes with these headers. Their functions choose a device, read options and
//! measure times. No model sees any of that.
//!
//! # Sources
//! - CUDA samples, `Common/helper_cuda.h`, `Common/helper_string.h`, `Common/helper_timer.h`.

use std::ops::Range;

use super::machine::Machine;
use super::parser::Read;
use super::values::HostValue;
use program::Ty;

/// Functions that give 0: the first device, or no error.
const ZERO: [&str; 10] = [
    "findCudaDevice",
    "gpuDeviceInit",
    "gpuGetMaxGflopsDeviceId",
    "getLastCudaError",
    "__getLastCudaError",
    "sdkCreateTimer",
    "sdkDeleteTimer",
    "sdkStartTimer",
    "sdkStopTimer",
    "sdkResetTimer",
];

/// Functions that give a value which is not worked out.
const OPEN: [&str; 7] = [
    "sdkGetTimerValue",
    "sdkGetAverageTimerValue",
    "sdkFindFilePath",
    "checkCudaCapabilities",
    "_ConvertSMVer2Cores",
    "_ConvertSMVer2ArchName",
    "uname",
];

impl Machine<'_> {
    /// A call of a helper of the samples; `None`: the call is another one.
    pub(super) fn helper_call(
        &mut self,
        name: &str,
        values: &[HostValue],
        range: &Range<usize>,
    ) -> Option<Read<HostValue>> {
        if ZERO.contains(&name) {
            self.forget_results(values);
            return Some(Ok(HostValue::Int(0, Ty::S32)));
        }
        if OPEN.contains(&name) {
            self.forget_results(values);
            return Some(Ok(HostValue::Unknown));
        }
        match (name, values) {
            ("compareData" | "sdkCompareL2fe", [first, second, length, ..]) => {
                Some(self.compared(&[first.clone(), second.clone()], length, range))
            }
            ("checkCudaErrors", [result]) => Some(Ok(result.clone())),
            ("checkCmdLineFlag", [_, _, HostValue::Text(flag)]) => {
                let given = self.option(flag).is_some();
                Some(Ok(HostValue::Int(i64::from(given), Ty::S32)))
            }
            ("getCmdLineArgumentInt", [_, _, HostValue::Text(flag)]) => {
                let number = self.option(flag).and_then(|text| text.parse().ok());
                Some(Ok(HostValue::Int(number.unwrap_or(0), Ty::S32)))
            }
            ("getCmdLineArgumentString", [_, _, HostValue::Text(_), _]) => {
                self.forget_results(values);
                Some(Ok(HostValue::Unknown))
            }
            ("checkCmdLineFlag" | "getCmdLineArgumentInt", _) => Some(self.wrong(
                range,
                format!("`{name}` is not followed with these operands"),
                "expected the name of an option as a string",
                "check one kernel with `--launch`",
            )),
            _ => None,
        }
    }

    /// Reads all elements of two arrays.
    fn compared(
        &mut self,
        arrays: &[HostValue],
        length: &HostValue,
        range: &Range<usize>,
    ) -> Read<HostValue> {
        let length = self.known(length, range)?;
        for array in arrays {
            for at in 0..length {
                let place = self.element(array, at, range)?;
                self.load(&place, range)?;
            }
        }
        Ok(HostValue::Unknown)
    }

    /// The value of an option `-n=4` of the program; empty if it has none.
    fn option(&self, flag: &str) -> Option<String> {
        self.code.arguments.iter().find_map(|argument| {
            let name = argument.trim_start_matches('-');
            let (name, value) = name.split_once('=').unwrap_or((name, ""));
            (argument.starts_with('-') && name == flag).then(|| value.to_owned())
        })
    }
}
