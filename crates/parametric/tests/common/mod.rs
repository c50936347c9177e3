//! Asks about kernels that tests write as text.

use std::time::Duration;

use parametric::{
    KernelInput, KernelLimits, KernelProperty, KernelVerdict, Proved, decide, unreached,
};

/// Calls `f` with the one kernel of a file.
fn with_kernel<T>(text: &str, f: impl FnOnce(KernelInput<'_>) -> T) -> T {
    let forms = front::litmus::form::forms("kernel.toml", text.as_bytes());
    let forms = forms.unwrap_or_else(|errors| panic!("{errors:#?}"));
    f(KernelInput {
        form: &forms[0],
        name: "kernel.toml",
        bytes: text.as_bytes(),
        source: None,
    })
}

/// Asks about the one kernel of a file.
pub(crate) fn asked(text: &str, property: KernelProperty, any: bool) -> KernelVerdict {
    // Machines that run tests are busy, so tests wait long.
    let limits = KernelLimits {
        question: Duration::from_secs(20),
        answer: Duration::from_secs(200),
        ..KernelLimits::default()
    };
    asked_within(text, property, any, &limits)
}

/// Asks about the one kernel of a file, within limits.
pub(crate) fn asked_within(
    text: &str,
    property: KernelProperty,
    any: bool,
    limits: &KernelLimits,
) -> KernelVerdict {
    with_kernel(text, |kernel| decide(kernel, property, any, limits))
}

/// A kernel of a dialect as a file.
pub(crate) fn kernel(dialect: &str, memory: &str, kernel: &str, code: &str) -> String {
    format!(
        "name = \"k\"\ndialect = \"{dialect}\"\n[memory]\n{memory}\n[kernel]\n{kernel}\n\
         code = '''\n{code}\n'''\n"
    )
}

/// The kernel neither races nor diverges, and not because no thread comes to its accesses.
pub(crate) fn never(text: &str, any: bool, proved: Proved) {
    let time = Duration::from_secs(20);
    let unreached = with_kernel(text, |kernel| unreached(kernel, any, time));
    assert_eq!(
        unreached,
        Ok(Vec::new()),
        "lines that no thread comes to:\n{text}"
    );
    for property in [KernelProperty::Race, KernelProperty::Divergence] {
        match asked(text, property, any) {
            KernelVerdict::Never { proved: p, .. } if p == proved => {}
            other => panic!("{property:?} of\n{text}\n{other:?}"),
        }
    }
}

/// An execution shows that the kernel races.
pub(crate) fn races(text: &str, any: bool) {
    match asked(text, KernelProperty::Race, any) {
        KernelVerdict::Happens { exact, .. } => assert!(exact.witness.is_some()),
        other => panic!("race of\n{text}\n{other:?}"),
    }
}

/// The code without the `nth` of such lines.
pub(crate) fn without(code: &str, line: &str, nth: usize) -> String {
    let found = code.match_indices(line).nth(nth);
    let (at, _) = found.unwrap_or_else(|| panic!("no `{line}` number {nth}"));
    [&code[..at], &code[at + line.len()..]].concat()
}
