//! Reads the names of the CUDA C++ library classes that objects in memory may have.
//!
//! # Sources
//! - libcu++, *Extended API*: `cuda::atomic`, `cuda::barrier`, `cuda::latch`,
//!   `cuda::counting_semaphore`. Classes of the standard library, and classes without a scope
//!   argument, have system scope.
//! - ISO C++, thread.barrier.class, thread.latch.class, thread.sema.cnt: the initial counts that
//!   they allow.

use super::words::{bare, type_named};
use program::dialect::CUDA_SCOPES;
use program::{Class, Scope, Ty, mbarrier};

/// The largest count of a latch, and of a semaphore without a maximum in its type.
const LARGEST: i64 = i32::MAX as i64;

/// The classes, without their namespaces.
const CLASSES: &[&str] = &[
    "atomic",
    "atomic_flag",
    "barrier",
    "latch",
    "counting_semaphore",
    "binary_semaphore",
];

/// Whether a name, without arguments, names a class.
pub(super) fn is_class(name: &str) -> bool {
    bare(name) != name && (is_class_word(bare(name)) || atomic_alias(name).is_some())
}

/// Whether a name, without arguments, names a pipeline or its state.
pub(super) fn is_pipeline_class(name: &str) -> bool {
    bare(name) != name && matches!(bare(name), "pipeline" | "pipeline_shared_state")
}

/// The value type of `std::atomic_int` and similar names.
pub(super) fn atomic_alias(name: &str) -> Option<Ty> {
    type_named(name)
        .filter(|(_, atomic)| *atomic && bare(name) != "atomic_flag")
        .map(|(ty, _)| ty)
}

/// Whether a name names a class in code with `using namespace cuda`.
pub(super) fn is_class_word(name: &str) -> bool {
    CLASSES.contains(&name)
}

/// The class of that name and the type of its word; `None`: no class has that name.
///
/// # Errors
/// A message if the arguments of the name are wrong.
pub fn class_named(name: &str) -> Option<Result<(Ty, Class), String>> {
    let (head, rest) = match name.split_once('<') {
        Some((head, rest)) => (head.trim(), Some(rest)),
        None => (name.trim(), None),
    };
    if !is_class(head) {
        return None;
    }
    let class = bare(head);
    let args: Vec<&str> = match rest.map(|r| r.trim().strip_suffix('>')) {
        None => Vec::new(),
        Some(None) => return Some(Err("expected `>` at the end".to_string())),
        Some(Some(inside)) => inside
            .split(',')
            .map(str::trim)
            .filter(|a| !a.is_empty())
            .collect(),
    };
    let standard = head.contains("std::");
    Some(read(class, &args, standard))
}

fn read(class: &str, args: &[&str], standard: bool) -> Result<(Ty, Class), String> {
    if let Some(ty) = atomic_alias(class) {
        return match args {
            [] => Ok((ty, Class::Atomic(Scope::Sys))),
            _ => Err(format!("`{class}` takes no arguments")),
        };
    }
    let mut args = args.iter().copied();
    let ty = match class {
        "atomic" => {
            let name = args
                .next()
                .ok_or("expected a type, as in `cuda::atomic<int>`")?;
            type_named(name)
                .map(|t| t.0)
                .ok_or(format!("`{name}` is not an integer type"))?
        }
        "atomic_flag" => Ty::S32,
        _ => Ty::WORD,
    };
    let scoped = !standard && class != "atomic_flag";
    let scope = match if scoped { args.next() } else { None } {
        None => Scope::Sys,
        Some(word) => CUDA_SCOPES
            .iter()
            .find(|s| s.0 == bare(word))
            .map(|s| s.1)
            .ok_or_else(|| {
                let names: Vec<String> = CUDA_SCOPES
                    .iter()
                    .map(|s| format!("`cuda::{}`", s.0))
                    .collect();
                format!(
                    "`{word}` is not a scope; expected one of {}",
                    names.join(", ")
                )
            })?,
    };
    let class = match class {
        "atomic" => Class::Atomic(scope),
        "atomic_flag" => Class::Flag,
        "barrier" => Class::Barrier(scope),
        "latch" => Class::Latch(scope),
        "binary_semaphore" => Class::Semaphore(scope, 1),
        _ => {
            let most = args.next().map_or(Ok(LARGEST), |n| {
                n.parse().map_err(|_| format!("`{n}` is not a number"))
            })?;
            if !(0..=LARGEST).contains(&most) {
                return Err(format!("the largest count is between 0 and {LARGEST}"));
            }
            Class::Semaphore(scope, most)
        }
    };
    match args.next() {
        Some(extra) => Err(format!(
            "`{extra}` is one argument too many; completion functions are not supported"
        )),
        None => Ok((ty, class)),
    }
}

/// The word of an object that the code initialises with a count.
///
/// # Errors
/// A message if the class does not allow the count.
pub fn initial(class: Class, count: i64) -> Result<i64, String> {
    let (most, word) = match class {
        Class::Atomic(_) => return Ok(count),
        Class::Flag => (1, count),
        Class::Latch(_) => (LARGEST, count),
        Class::Semaphore(_, most) => (most, count),
        Class::Barrier(_) | Class::Mbarrier => (mbarrier::MOST_ARRIVALS, mbarrier::made(count)),
    };
    if (0..=most).contains(&count) {
        Ok(word)
    } else {
        Err(format!("expected a count between 0 and {most}"))
    }
}

/// The name of a class, and the count that gives its object this word.
pub fn class_name(class: Class, element: &str, word: i64) -> (String, i64) {
    fn scope(scope: Scope) -> String {
        let name = CUDA_SCOPES
            .iter()
            .find(|s| s.1 == scope)
            .map_or("thread_scope_system", |s| s.0);
        format!("cuda::{name}")
    }
    match class {
        Class::Atomic(s) => (format!("cuda::atomic<{element}, {}>", scope(s)), word),
        Class::Flag => ("cuda::atomic_flag".to_string(), word),
        Class::Barrier(s) => (
            format!("cuda::barrier<{}>", scope(s)),
            mbarrier::count_of(word),
        ),
        Class::Latch(s) => (format!("cuda::latch<{}>", scope(s)), word),
        Class::Semaphore(s, most) => (
            format!("cuda::counting_semaphore<{}, {most}>", scope(s)),
            word,
        ),
        Class::Mbarrier => ("mbarrier".to_string(), mbarrier::count_of(word)),
    }
}
