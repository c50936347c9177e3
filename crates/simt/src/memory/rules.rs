//! Sets of rules of a memory, each of which can be taken out: a memory without one of its rules is wrong, and tests look for what
//! it then shows.

/// Declares such a set: its name, and its rules with a line about each.
macro_rules! rules {
    ($(#[$about:meta])* $name:ident: $($(#[$doc:meta])* $rule:ident,)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $rule: bool,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: $name = $name { $($rule: true,)* };

            /// Their names.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($rule)),*];

            /// What is left without the rule of that name; `None` if there is none.
            pub fn without(mut self, name: &str) -> Option<$name> {
                match name {
                    $(stringify!($rule) => self.$rule = false,)*
                    _ => return None,
                }
                Some(self)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                $name::ALL
            }
        }
    };
}
pub(super) use rules;
