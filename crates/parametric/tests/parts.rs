//! Proofs without one of their parts: an answer becomes weaker, and stays true.
//!
//! Each part has a kernel that is race-free for every launch by it, and a twin that races. Without
//! the part, neither is proved, and neither is called racy without an execution.
#![cfg(feature = "z3")]

mod ring;

use std::time::Duration;

use parametric::decide::Part;
use parametric::{KernelInput, KernelLimits, KernelProperty, KernelVerdict, decide};
use ring::{RING, ring};

const MEMORY: &str = "a = { type = \"int\", size = 4096 }
r = { type = \"int\", size = 4096 }
c = { type = \"int\" }";

fn cuda(code: &str) -> String {
    format!(
        "name = \"k\"\ndialect = \"cuda\"\n[memory]\n{MEMORY}\n[kernel]\ngrid = 2\nblock = 2\n\
         regs = {{ n = 4 }}\ncode = '''\n{code}\n'''\n"
    )
}

/// Whether a kernel is proved race-free, without a part.
fn is_proved(text: &str, any: bool, without: Option<Part>) -> bool {
    let limits = KernelLimits {
        question: Duration::from_secs(20),
        answer: Duration::from_secs(100),
        tries: false,
        without,
        ..KernelLimits::default()
    };
    let forms = front::litmus::form::forms("kernel.toml", text.as_bytes());
    let forms = forms.unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
    let kernel = KernelInput {
        form: &forms[0],
        name: "kernel.toml",
        bytes: text.as_bytes(),
        source: None,
    };
    let answer = decide(kernel, KernelProperty::Race, any, &limits);
    let racy = matches!(answer, KernelVerdict::Happens { .. });
    assert!(!racy, "{without:?}, without an execution:\n{text}");
    matches!(answer, KernelVerdict::Never { .. })
}

/// The first kernel is proved by the part alone; the second one races.
fn makes_stronger(part: Part, any: bool, free: &str, racy: &str) {
    assert!(is_proved(free, any, None), "{free}");
    assert!(!is_proved(free, any, Some(part)), "{part:?} for\n{free}");
    for without in [None, Some(part)] {
        assert!(!is_proved(racy, any, without), "{without:?} for\n{racy}");
    }
}

#[test]
fn rings_need_what_waits_have_seen() {
    let wait = "WAIT_FULL:\n\tmbarrier.try_wait.parity.shared.b64 %p3, [%r7], %r4;\n\
                \t@!%p3 bra WAIT_FULL;\n";
    let racy = RING.replacen(wait, "", 1);
    assert_ne!(racy, RING);
    makes_stronger(Part::Rings, true, &ring(RING), &ring(&racy));
}

#[test]
fn tickets_need_values_that_differ() {
    let own = "int n;\nint at = atomicAdd(&c, 1);\nr[at] = threadIdx.x;";
    let racy = own.replace("1)", "0)");
    makes_stronger(Part::Tickets, true, &cuda(own), &cuda(&racy));
}

#[test]
fn places_in_own_memory_need_what_was_stored() {
    let own = "int n;\nint at[2];\nat[0] = blockIdx.x * blockDim.x + threadIdx.x;\nat[1] = 7;\n\
               int *p = &at[0];\na[*p] = 1;";
    let racy = own.replace("&at[0]", "&at[1]");
    makes_stronger(Part::OwnMemory, false, &cuda(own), &cuda(&racy));
}
