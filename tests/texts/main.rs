//! Reading and writing of texts: test formats, the model language, pictures; and the sources of the
//! project.

mod civl;
mod house;
mod litmus_format;
mod model_language;
mod model_semantics;
mod pasted;
mod pictures;
mod rows;
