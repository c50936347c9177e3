//! Embeds the shipped memory models, the files of `models/`.

use include_dir::{Dir, include_dir};

/// The files, by their path inside `models/`.
pub static MODELS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/models");
