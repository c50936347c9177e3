//! Loads libz3 at the first call of one of its functions.
//!
//! If a program lists libz3 as a needed library, the loader loads it before `main`. It then
//! relocates 60,000 addresses, which takes longer than most small tests. Only `--engine symbolic`
//! and `both` ever call it.
//!
//! So this crate defines the functions that the crate `z3` calls, under Z3's names. Each forwards
//! its arguments to libz3, which the first call opens. The linker finds every function here, so it
//! leaves libz3 out of the needed libraries.
//!
//! # Invariants
//! - The caller calls [`load`], and reports its error, before any other function of Z3: those
//!   functions cannot report a missing library.
//! - Each function here has the type of its namesake in `z3-sys`; otherwise it does not compile.
//! - The linker takes a function that is missing here from libz3, as usual; the program then needs
//!   libz3 to start. A test of the command line detects that.
//! - On systems other than Linux this crate defines nothing, and the loader loads libz3 when the
//!   program starts.

/// Error: libz3 cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "libz3 cannot be loaded: {0}; places searched: the folder of the program, ../lib/fencepost \
    from there, the build's libz3, LD_LIBRARY_PATH"
)]
pub struct MissingLibrary(
    /// The loader's message.
    pub String,
);

#[cfg(target_os = "linux")]
pub use linux::load;

/// Does nothing: the loader has loaded libz3 already.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn load() -> Result<(), MissingLibrary> {
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::ffi::{c_int, c_uint};
    use std::sync::OnceLock;

    use libloading::Library;
    use z3_sys::*;

    use super::MissingLibrary;

    /// File names of libz3: first the one with the version of the bindings, then that of a manual
    /// build.
    const NAMES: [&str; 2] = ["libz3.so.5.3", "libz3.so"];

    /// Loads libz3, unless it is loaded.
    ///
    /// # Errors
    /// libz3 is absent, or lacks a function that is called.
    pub fn load() -> Result<(), MissingLibrary> {
        functions().as_ref().map(drop).map_err(Clone::clone)
    }

    /// The loader's message, which the crate's error wraps.
    fn missing(error: &libloading::Error) -> MissingLibrary {
        MissingLibrary(
            error
                .source()
                .map_or_else(|| error.to_string(), ToString::to_string),
        )
    }

    /// Opens the library under the first of its names that exists.
    fn open() -> Result<Library, MissingLibrary> {
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

            fn functions() -> &'static Result<Functions, MissingLibrary> {
                static FUNCTIONS: OnceLock<Result<Functions, MissingLibrary>> = OnceLock::new();
                FUNCTIONS.get_or_init(|| {
                    // Leaks the library, because its functions may be called at any time.
                    let library: &'static Library = Box::leak(Box::new(open()?));
                    Ok(Functions {
                        // SAFETY: the type is that of Z3's C interface, as `z3-sys` declares it.
                        $($name: *unsafe { library.get(stringify!($name)) }
                            .map_err(|error| missing(&error))?,)*
                    })
                })
            }

            $(
                /// Z3's function of this name.
                ///
                /// # Safety
                /// The same as for Z3's function.
                #[unsafe(no_mangle)]
                unsafe extern "C" fn $name($($arg: $type),*) $(-> $result)? {
                    // Compiles only if the types are the same.
                    const _: unsafe extern "C" fn($($type),*) $(-> $result)? = z3_sys::$name;
                    match functions() {
                        // SAFETY: the caller keeps the contract of Z3's function.
                        Ok(functions) => unsafe { (functions.$name)($($arg),*) },
                        // The caller skipped `load`. A panic here ends the program: it cannot
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
        fn Z3_get_numeral_uint64(c: Z3_context, v: Z3_ast, u: *mut u64) -> bool;
        fn Z3_global_param_set(param_id: Z3_string, param_value: Z3_string);
        fn Z3_inc_ref(c: Z3_context, a: Z3_ast);
        fn Z3_interrupt(c: Z3_context);
        fn Z3_mk_bool_sort(c: Z3_context) -> Option<Z3_sort>;
        fn Z3_mk_bv_sort(c: Z3_context, sz: c_uint) -> Option<Z3_sort>;
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
        fn Z3_model_eval(
            c: Z3_context, m: Z3_model, t: Z3_ast, model_completion: bool, v: *mut Z3_ast
        ) -> bool;
        fn Z3_model_get_const_interp(c: Z3_context, m: Z3_model, a: Z3_func_decl) -> Option<Z3_ast>;
        fn Z3_model_inc_ref(c: Z3_context, m: Z3_model);
        fn Z3_model_to_string(c: Z3_context, m: Z3_model) -> Z3_string;
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
        fn Z3_solver_from_string(c: Z3_context, s: Z3_solver, file_name: Z3_string);
        fn Z3_solver_get_model(c: Z3_context, s: Z3_solver) -> Option<Z3_model>;
        fn Z3_solver_get_reason_unknown(c: Z3_context, s: Z3_solver) -> Z3_string;
        fn Z3_solver_inc_ref(c: Z3_context, s: Z3_solver);
        fn Z3_solver_set_params(c: Z3_context, s: Z3_solver, p: Z3_params);
        fn Z3_sort_to_ast(c: Z3_context, s: Z3_sort) -> Option<Z3_ast>;
        fn Z3_to_app(c: Z3_context, a: Z3_ast) -> Option<Z3_app>;
    }
}
