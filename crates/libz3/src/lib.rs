//! libz3, loaded when it is first called.
//!
//! A program that names libz3 as a library it needs has it loaded before `main`: 60,000 addresses
//! are relocated, which takes longer than most small tests, and only `--engine symbolic` and `both`
//! ever call it. So the functions that the crate `z3` calls are defined here, under Z3's names:
//! each hands its arguments on to libz3, which is opened at the first of these calls. As no
//! function is left that libz3 has to give, the linker leaves it out of what the program needs.
//!
//! # Invariants
//! - [`load`] is called, and its error told, before anything else of Z3: a function of a library
//!   has no way to say that the library is not there.
//! - Each function here has the type of the one of that name in `z3-sys`: it would not compile
//!   otherwise.
//! - A function that is missing here is found in libz3 by the linker, as everywhere: the program
//!   then needs libz3 to begin. A test of the command line sees that.
//! - On other systems than Linux nothing is defined here, and libz3 is loaded when the program
//!   begins.

/// libz3 cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "libz3 cannot be loaded: {0}; it is looked for beside the program, in ../lib/fencepost from there, where the build found \
     it, and where LD_LIBRARY_PATH says"
)]
pub struct Missing(
    /// What the loader says.
    pub String,
);

#[cfg(target_os = "linux")]
pub use linux::load;

/// Loads nothing: the loader did.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn load() -> Result<(), Missing> {
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::ffi::{c_int, c_uint};
    use std::sync::OnceLock;

    use libloading::Library;
    use z3_sys::*;

    use super::Missing;

    /// Under which names libz3 is looked for: with the version that the bindings are made for, else
    /// as one that was built by hand.
    const NAMES: [&str; 2] = ["libz3.so.5.3", "libz3.so"];

    /// Loads libz3, if it is not.
    ///
    /// # Errors
    /// It is not there, or lacks a function that is called.
    pub fn load() -> Result<(), Missing> {
        functions().as_ref().map(drop).map_err(Clone::clone)
    }

    /// What the loader says, which is behind what the crate says.
    fn missing(error: &libloading::Error) -> Missing {
        Missing(
            error
                .source()
                .map_or_else(|| error.to_string(), ToString::to_string),
        )
    }

    /// The library under the first name under which it is there.
    fn open() -> Result<Library, Missing> {
        let mut errors = NAMES.into_iter().map(|name| {
            // SAFETY: its initializers set up Z3's own state and touch nothing else; it is never
            // closed.
            unsafe { Library::new(name) }.map_err(|error| missing(&error))
        });
        let first = errors.next().expect("there is a name");
        first.or_else(|error| errors.find_map(Result::ok).ok_or(error))
    }

    macro_rules! functions {
        ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
            /// The functions of libz3 that the crate `z3` calls.
            #[allow(non_snake_case)] // Z3's own names
            struct Functions {
                $($name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*
            }

            fn functions() -> &'static Result<Functions, Missing> {
                static FUNCTIONS: OnceLock<Result<Functions, Missing>> = OnceLock::new();
                FUNCTIONS.get_or_init(|| {
                    // It stays for as long as its functions may be called: always.
                    let library: &'static Library = Box::leak(Box::new(open()?));
                    Ok(Functions {
                        // SAFETY: the type is that of Z3's C interface, as `z3-sys` has it.
                        $($name: *unsafe { library.get(stringify!($name)) }.map_err(|error| missing(&error))?,)*
                    })
                })
            }

            $(
                /// Z3's function of this name.
                ///
                /// # Safety
                /// As Z3 says of it.
                #[unsafe(no_mangle)]
                unsafe extern "C" fn $name($($arg: $type),*) $(-> $result)? {
                    // The same type, or this does not compile.
                    const _: unsafe extern "C" fn($($type),*) $(-> $result)? = z3_sys::$name;
                    match functions() {
                        // SAFETY: who calls this keeps what Z3 asks for.
                        Ok(functions) => unsafe { (functions.$name)($($arg),*) },
                        // `load` was to be called first. A panic here ends the program: it cannot
                        // unwind through C.
                        Err(error) => panic!("{error}"),
                    }
                }
            )*
        };
    }

    functions! {
        fn Z3_ast_to_string(c: Z3_context, a: Z3_ast) -> Z3_string;
        fn Z3_dec_ref(c: Z3_context, a: Z3_ast);
        fn Z3_del_config(c: Z3_config);
        fn Z3_del_context(c: Z3_context);
        fn Z3_func_decl_to_ast(c: Z3_context, f: Z3_func_decl) -> Option<Z3_ast>;
        fn Z3_get_app_decl(c: Z3_context, a: Z3_app) -> Option<Z3_func_decl>;
        fn Z3_get_ast_id(c: Z3_context, t: Z3_ast) -> c_uint;
        fn Z3_get_ast_kind(c: Z3_context, a: Z3_ast) -> Z3_ast_kind;
        fn Z3_get_bool_value(c: Z3_context, a: Z3_ast) -> Z3_lbool;
        fn Z3_get_full_version() -> Z3_string;
        fn Z3_global_param_set(param_id: Z3_string, param_value: Z3_string);
        fn Z3_inc_ref(c: Z3_context, a: Z3_ast);
        fn Z3_interrupt(c: Z3_context);
        fn Z3_mk_bool_sort(c: Z3_context) -> Option<Z3_sort>;
        fn Z3_mk_config() -> Option<Z3_config>;
        fn Z3_mk_const(c: Z3_context, s: Z3_symbol, ty: Z3_sort) -> Option<Z3_ast>;
        fn Z3_mk_context_rc(c: Z3_config) -> Option<Z3_context>;
        fn Z3_mk_int_symbol(c: Z3_context, i: c_int) -> Option<Z3_symbol>;
        fn Z3_mk_not(c: Z3_context, a: Z3_ast) -> Option<Z3_ast>;
        fn Z3_mk_or(c: Z3_context, num_args: c_uint, args: *const Z3_ast) -> Option<Z3_ast>;
        fn Z3_mk_params(c: Z3_context) -> Option<Z3_params>;
        fn Z3_mk_solver(c: Z3_context) -> Option<Z3_solver>;
        fn Z3_mk_solver_for_logic(c: Z3_context, logic: Z3_symbol) -> Option<Z3_solver>;
        fn Z3_mk_string_symbol(c: Z3_context, s: Z3_string) -> Option<Z3_symbol>;
        fn Z3_model_dec_ref(c: Z3_context, m: Z3_model);
        fn Z3_model_get_const_interp(c: Z3_context, m: Z3_model, a: Z3_func_decl) -> Option<Z3_ast>;
        fn Z3_model_inc_ref(c: Z3_context, m: Z3_model);
        fn Z3_params_dec_ref(c: Z3_context, p: Z3_params);
        fn Z3_params_inc_ref(c: Z3_context, p: Z3_params);
        fn Z3_params_set_bool(c: Z3_context, p: Z3_params, k: Z3_symbol, v: bool);
        fn Z3_params_set_uint(c: Z3_context, p: Z3_params, k: Z3_symbol, v: c_uint);
        fn Z3_set_error_handler(c: Z3_context, h: Z3_error_handler);
        fn Z3_solver_assert(c: Z3_context, s: Z3_solver, a: Z3_ast);
        fn Z3_solver_check_assumptions(
            c: Z3_context, s: Z3_solver, num_assumptions: c_uint, assumptions: *const Z3_ast
        ) -> Z3_lbool;
        fn Z3_solver_dec_ref(c: Z3_context, s: Z3_solver);
        fn Z3_solver_get_model(c: Z3_context, s: Z3_solver) -> Option<Z3_model>;
        fn Z3_solver_get_reason_unknown(c: Z3_context, s: Z3_solver) -> Z3_string;
        fn Z3_solver_inc_ref(c: Z3_context, s: Z3_solver);
        fn Z3_solver_set_params(c: Z3_context, s: Z3_solver, p: Z3_params);
        fn Z3_sort_to_ast(c: Z3_context, s: Z3_sort) -> Option<Z3_ast>;
        fn Z3_to_app(c: Z3_context, a: Z3_ast) -> Option<Z3_app>;
    }
}
