//! Tests which work a request to stop ends. They run in a separate process, because a request
//! cannot be withdrawn.

use std::env;
use std::process::Command;

use fencepost::algebra::bits::Bits;
use fencepost::algebra::{Leaves, Reuse, Value, interpret, interpret_all, needed};
use fencepost::model::ir::{FreeId, Kind, NodeId};
use fencepost::model::signature::BaseId;
use fencepost::rel::{EventSet, Rel};
use fencepost::stop;
use testkit::suite::shipped;

const EVENTS: usize = 3;

struct Nothing;

impl Leaves<Bits> for Nothing {
    fn base(&self, _: BaseId, kind: Kind) -> Value<EventSet, Rel> {
        match kind {
            Kind::Set => Value::Set(EventSet::empty(EVENTS)),
            Kind::Rel => Value::Rel(Rel::empty(EVENTS)),
        }
    }

    fn free(&self, _: FreeId) -> Rel {
        Rel::empty(EVENTS)
    }
}

/// Set in the process that receives the request.
const INSIDE: &str = "FENCEPOST_TEST_STOPPED";

/// A replay that received a signal once panicked: its interpreter had ended, although there was no
/// deadline.
#[test]
fn a_request_ends_searches_and_no_replay() {
    if env::var_os(INSIDE).is_none() {
        let this = ["--exact", "stopped::a_request_ends_searches_and_no_replay"];
        let inside = Command::new(env::current_exe().expect("a test is a program"))
            .args(this)
            .env(INSIDE, "1")
            .status();
        return assert!(inside.expect("it can be run again").success());
    }
    let model = shipped("ptx");
    let all = needed(&model, (0..model.nodes.len() as u32).map(NodeId));
    let algebra = Bits {
        executed: EventSet::from_fn(EVENTS, |_| true),
    };
    let search = || interpret(&model, &algebra, &Nothing, &all, Reuse::none(), None);
    assert!(search().is_some());
    stop::listen().store(2, std::sync::atomic::Ordering::Relaxed);
    assert!(search().is_none());
    assert!(
        interpret_all(&model, &algebra, &Nothing, &all)
            .iter()
            .all(Option::is_some)
    );
}
