//! Defines tasks: one test under one model at one loop bound, for one purpose.
//!
//! # Invariants
//! - A task is input, and nothing changes it. [`Facts::of`] computes everything that engines need.
//!
//! [`Facts::of`]: crate::facts::Facts::of

use cat::model::ir::Model;
use program::litmus::{LitmusTest, Prop};
use program::options::{OptionValues, Setting};

use crate::skeleton::Purpose;
use crate::thin_air::excludes_thin_air;

/// One test under one model at one loop bound.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The test.
    pub test: &'a LitmusTest,
    /// The model. Under a purpose about progress, it may use the names of
    /// [`signature::of_endless`](crate::skeleton::signature::of_endless).
    pub model: &'a Model,
    /// The values of all options.
    pub options: OptionValues,
    /// The loop bound.
    pub bound: u32,
    /// The kind of question.
    pub purpose: Purpose,
    /// Whether domains hold values out of thin air even if an axiom excludes them. Queries that
    /// leave that axiom out need this.
    pub thin_air: bool,
    /// Whether descriptions of executions have every relation that the model names.
    pub detail: bool,
}

impl<'a> Task<'a> {
    /// A task about outcomes. `set` overrides the options of the test and of the model.
    pub fn new(test: &'a LitmusTest, model: &'a Model, set: &[Setting], bound: u32) -> Task<'a> {
        Task {
            test,
            model,
            options: options(test, model, set),
            bound,
            purpose: Purpose::Outcomes,
            thin_air: false,
            detail: false,
        }
    }

    /// The same task under other settings.
    pub(crate) fn under(&self, set: &[Setting]) -> Task<'a> {
        Task {
            options: options(self.test, self.model, set),
            ..*self
        }
    }

    /// Whether no value out of thin air matters, because an axiom excludes them all.
    pub(crate) fn excludes_thin_air(&self) -> bool {
        !self.thin_air && excludes_thin_air(self.model)
    }

    /// The condition and the filter of the test, if it has them.
    pub(crate) fn props(&self) -> Vec<&'a Prop> {
        self.test
            .condition
            .iter()
            .chain(&self.test.filter)
            .collect()
    }
}

/// The options of a test under a model; `set` overrides both.
fn options(test: &LitmusTest, model: &Model, set: &[Setting]) -> OptionValues {
    let of_model = model
        .options
        .iter()
        .map(|&(option, value)| Setting { option, value });
    OptionValues::of(of_model.chain(test.options.iter().chain(set).copied()))
}
