//! Builds the base sets and relations of models from the graph of events and the listed values.
//!
//! | File | Content |
//! |---|---|
//! | [`signature`] | all base names, in one table |
//! | [`base`] | builders of sets and relations |
//! | [`copies`] | the relations of asynchronous copies |
//! | [`endless`] | the relations of rules about endless executions |
//! | [`tensor`] | accesses to the same tensor memory |
//! | [`rivals`] | writes to one place that store different values |

pub mod base;
mod copies;
mod endless;
pub mod rivals;
pub mod signature;
mod tensor;
