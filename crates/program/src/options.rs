//! Options: all that a model tells the skeleton.
//!
//! [`OPTIONS`] is the one table: a model's `option`, a test's `[options]`, `--set` and the executor read it.

/// One option: off is its first value, and the default; on is the second.
#[derive(Debug)]
pub struct Row {
    /// The name after `option`.
    pub name: &'static str,
    /// Off and on.
    pub values: &'static [&'static str; 2],
    /// One line.
    pub doc: &'static str,
    /// A base name: in published files that never speak of it, the option is on.
    pub unspoken: Option<&'static str>,
    /// Where it stands when it is decoded.
    field: fn(&mut Options) -> &mut bool,
}

/// Every option.
pub const OPTIONS: &[Row] = &[
    Row {
        name: "failed-cas",
        values: &["none", "write"],
        doc: "what a failed compare-and-swap writes: nothing, or the old value",
        unspoken: None,
        field: |options| &mut options.failed_cas_write,
    },
    Row {
        name: "red",
        values: &["no-acquire", "atom"],
        doc: "whether the read half of a reduction can acquire: never (PTX ISA, 8.11), or as an atom does",
        unspoken: None,
        field: |options| &mut options.red_atom,
    },
    Row {
        name: "dep",
        values: &["value", "syntactic"],
        doc: "dependencies: only those that a value really carries, or all that the syntax shows",
        unspoken: None,
        field: |options| &mut options.dep_syntactic,
    },
    Row {
        name: "rmw",
        values: &["pair", "single"],
        doc: "a read-modify-write: a read and a write, or one event that is both (published files that never say rmw)",
        unspoken: Some("rmw"),
        field: |options| &mut options.rmw_single,
    },
];

/// An option that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    /// Its place in [`OPTIONS`].
    pub option: usize,
    /// Whether it is on.
    pub on: bool,
}

impl Setting {
    /// Reads a name and a value.
    ///
    /// # Errors
    /// The row, if only the value is unknown.
    pub fn read(name: &str, value: &str) -> Result<Setting, Option<&'static Row>> {
        let option = OPTIONS.iter().position(|row| row.name == name).ok_or(None)?;
        let row = &OPTIONS[option];
        let at = row.values.iter().position(|v| *v == value).ok_or(Some(row))?;
        Ok(Setting { option, on: at == 1 })
    }

    /// The option and its value as they are written.
    pub fn words(self) -> (&'static str, &'static str) {
        let row = &OPTIONS[self.option];
        (row.name, row.values[usize::from(self.on)])
    }
}

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
    /// What settings come to, later ones overriding earlier ones.
    pub fn of(settings: impl IntoIterator<Item = Setting>) -> Options {
        let mut options = Options::default();
        for setting in settings {
            *(OPTIONS[setting.option].field)(&mut options) = setting.on;
        }
        options
    }
}
