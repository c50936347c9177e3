//! Answers about a kernel that is text: of the exact engines at the launch of its file, and of the
//! engine for every launch.

use std::time::Duration;

use cat::model::load_shipped;
use engine::skeleton::signature::signature;
use engine::{Engine, Limits as ExactLimits};
use front::mapping::Mapping;
use parametric::{KernelInput, KernelLimits, KernelProperty, KernelVerdict, decide};
use program::Dialect;
use verdict::Verdict;
use why::Session;

/// What the exact engines say of a property in the launch of a file; `None`: it is not decided.
pub(crate) fn exact(text: &str, model: &str, property: KernelProperty) -> Option<bool> {
    let mut test = { front::litmus::parse("kernel.toml", text.as_bytes()).ok()? }.swap_remove(0);
    if model == "ptx" && test.program.dialect == Dialect::Cuda {
        test = Mapping::current(Dialect::Cuda)?.lowered(&test).ok()?;
    }
    let model = load_shipped(model, &signature())?.ok()?;
    let limits = ExactLimits {
        bound: Some(8),
        timeout: Some(Duration::from_secs(2)),
    };
    let mut session = Session::new(&test, &model, Engine::Auto, limits, &[]);
    let answer = match property {
        KernelProperty::Race | KernelProperty::Bounds => session.race()?,
        KernelProperty::Divergence => session.undefined()?,
    };
    match answer.verdict {
        Verdict::Racy => Some(true),
        Verdict::Undefined => {
            let fault = answer.fault?;
            Some(fault.relation.contains("diverg"))
        }
        Verdict::RaceFree | Verdict::Defined => Some(false),
        _ => None,
    }
}

/// A number that a variable of the environment gives.
pub(crate) fn number(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

/// What the engine says of a kernel.
pub(crate) fn said(
    text: &str,
    property: KernelProperty,
    any: bool,
    limits: &KernelLimits,
) -> KernelVerdict {
    let forms = front::litmus::form::forms("kernel.toml", text.as_bytes());
    let forms = forms.unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
    let kernel = KernelInput {
        form: &forms[0],
        name: "kernel.toml",
        bytes: text.as_bytes(),
        source: None,
    };
    decide(kernel, property, any, limits)
}
