//! Helps unit tests: texts as tests, shipped models, and the query for a test's condition.

use crate::facts::Facts;
use crate::query::Query;
use crate::skeleton::signature::signature;
use crate::task::Task;
use cat::model::ir::Model;
use cat::model::load_shipped;
use program::litmus::LitmusTest;

/// The first test of a text.
pub(crate) fn parsed(text: &str) -> LitmusTest {
    let read = front::litmus::parse("t.toml", text.as_bytes());
    read.unwrap_or_else(|why| panic!("{why:?}\n{text}"))
        .remove(0)
}

/// A shipped model.
pub(crate) fn shipped(name: &str) -> Model {
    load_shipped(name, &signature())
        .expect("shipped")
        .expect("loads")
}

/// The facts of a small test.
pub(crate) fn facts<'a>(test: &'a LitmusTest, model: &'a Model) -> Facts<'a> {
    Facts::of(&Task::new(test, model, &[], 1), None).expect("a small test")
}

/// The query for executions that satisfy the test's condition.
pub(crate) fn holds<'a>(test: &'a LitmusTest, model: &'a Model) -> Query<'a> {
    Query {
        props: vec![(test.condition.as_ref().expect("has one"), true)],
        ..Query::complete(model)
    }
}
