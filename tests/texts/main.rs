//! What is read and written: test formats, the model language, pictures; and the sources of the
//! project themselves.

mod house;
mod litmus_format;
mod model_language;
mod model_semantics;
mod pasted;
mod pictures;
