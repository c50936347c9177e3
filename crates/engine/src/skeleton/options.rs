//! Options: all that a model tells the skeleton. The table of names is in [`super::signature`].

/// Option values, decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// `failed-cas = write`: a failed compare-and-swap writes the old value back.
    pub failed_cas_write: bool,
    /// `red = atom`: a reduction is an atomic whose result is dropped.
    pub red_atom: bool,
    /// `dep = syntactic`.
    pub dep_syntactic: bool,
    /// `rmw = single`: a read-modify-write is one event.
    pub rmw_single: bool,
}

impl Options {
    /// Decodes settings, later ones overriding earlier ones. Names and values were checked against the signature;
    /// others are ignored.
    pub fn from_settings<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Options {
        let mut options = Options::default();
        for (name, value) in settings {
            match name {
                "failed-cas" => options.failed_cas_write = value == "write",
                "red" => options.red_atom = value == "atom",
                "rmw" => options.rmw_single = value == "single",
                "dep" => options.dep_syntactic = value == "syntactic",
                _ => {}
            }
        }
        options
    }
}
