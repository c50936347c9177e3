//! Writes changes of a program as source text: new fences, barriers and atomic accesses, and other
//! scopes in function names.
//!
//! # Sources
//! - CUDA Programming Guide, *Memory Fence Functions*, *Synchronization Functions*, *Atomic
//!   Functions*, *Programmatic Dependent Launch*; CUDA runtime API, pipeline primitives.
//! - PTX ISA, `bar`, `cp.async.wait_all`, `griddepcontrol`; libcu++, *Extended API*.
//! - OpenCL C, *Synchronization Functions*, *Atomic Functions*; C11, 7.17.

use crate::Scope;

/// A language's source text for changes other than replaced words for orders and scopes.
#[derive(Debug)]
pub struct Writing {
    /// The prefixes of functions whose names end in their scope.
    pub suffixed: &'static [&'static str],
    /// These suffixes, narrowest scope first.
    pub suffixes: &'static [(&'static str, Scope)],
    /// Fences for code that names no orders, narrowest first.
    pub fences: &'static [(&'static str, Scope)],
    /// Barriers of groups of threads.
    pub barriers: &'static [(&'static str, Scope)],
    /// Statements that wait for asynchronous operations, each with the parts of names that identify
    /// code that uses them.
    pub waits: &'static [(&'static str, &'static [&'static str])],
    /// Whether the name of memory denotes the object itself, and not a pointer to it.
    pub objects: bool,
    /// Writes an atomic access.
    pub access: fn(&AtomicAccess<'_>) -> String,
}

/// An atomic access to write as text.
#[derive(Clone, Copy, Debug)]
pub struct AtomicAccess<'a> {
    /// `load`, `store`, `fetch_add`, …
    pub function: &'a str,
    /// The type of the object.
    pub ty: &'a str,
    /// The object, an lvalue.
    pub place: &'a str,
    /// For a compare-exchange: the variable with the expected value, and the word for the order on
    /// failure.
    pub expected: Option<(&'a str, &'a str)>,
    /// The value to store or add.
    pub value: Option<&'a str>,
    /// The word for its order.
    pub order: &'a str,
    /// The word for its scope.
    pub scope: &'a str,
}

/// Writes an access as a call that takes a pointer; the scope is last, if there are scopes.
fn by_pointer(access: &AtomicAccess<'_>, scoped: bool) -> String {
    let pointer = match access.place.strip_prefix('*') {
        Some(pointer) => pointer.trim().to_owned(),
        None => format!("&{}", access.place),
    };
    let scope = Some(access.scope).filter(|_| scoped);
    let expected = access.expected.map(|(variable, _)| format!("&{variable}"));
    let failure = access.expected.map(|(_, order)| order);
    let args = [
        Some(pointer.as_str()),
        expected.as_deref(),
        access.value,
        Some(access.order),
        failure,
        scope,
    ];
    let args: Vec<&str> = args.into_iter().flatten().collect();
    format!("atomic_{}_explicit({})", access.function, args.join(", "))
}

/// C.
pub static C: Writing = Writing {
    suffixed: &[],
    suffixes: &[],
    fences: &[],
    barriers: &[],
    waits: &[],
    objects: false,
    access: |access| by_pointer(access, false),
};

/// PTX, whose other changes are printed from the parsed instructions.
pub static PTX: Writing = Writing {
    suffixed: &[],
    suffixes: &[],
    fences: &[],
    barriers: &[("bar.sync 0", Scope::Cta)],
    waits: &[
        ("griddepcontrol.wait", &["griddepcontrol"]),
        ("cp.async.wait_all", &["async"]),
        ("cp.async.bulk.wait_group 0", &["bulk"]),
    ],
    objects: false,
    access: |access| access.place.to_owned(),
};

/// OpenCL C.
pub static OPENCL: Writing = Writing {
    suffixed: &[],
    suffixes: &[],
    fences: &[],
    barriers: &[
        ("barrier(CLK_LOCAL_MEM_FENCE)", Scope::Cta),
        ("barrier(CLK_GLOBAL_MEM_FENCE)", Scope::Cta),
        (
            "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
            Scope::Cta,
        ),
    ],
    waits: &[],
    objects: false,
    access: |access| by_pointer(access, true),
};

/// CUDA C++.
pub static CUDA: Writing = Writing {
    suffixed: &["__threadfence", "atomic"],
    suffixes: &[
        ("_block", Scope::Cta),
        ("", Scope::Gpu),
        ("_system", Scope::Sys),
    ],
    fences: &[
        ("__threadfence_block()", Scope::Cta),
        ("__threadfence()", Scope::Gpu),
        ("__threadfence_system()", Scope::Sys),
    ],
    barriers: &[
        ("__syncwarp()", Scope::Warp),
        ("__syncthreads()", Scope::Cta),
    ],
    waits: &[
        (
            "cudaGridDependencySynchronize()",
            &["cudaGridDependency", "cudaTriggerProgrammatic"],
        ),
        ("__pipeline_wait_prior(0)", &["__pipeline_"]),
        (
            "cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<0>{})",
            &["cp_async_bulk"],
        ),
    ],
    objects: true,
    access: |access| {
        let AtomicAccess {
            function,
            ty,
            place,
            expected,
            value,
            order,
            scope,
        } = access;
        let variable = expected.map_or(String::new(), |(variable, _)| format!("{variable}, "));
        let value = value.map_or(String::new(), |value| format!("{value}, "));
        let failure = expected.map_or(String::new(), |(_, order)| format!(", cuda::{order}"));
        format!(
            "cuda::atomic_ref<{ty}, \
             cuda::{scope}>({place}).{function}({variable}{value}cuda::{order}{failure})"
        )
    },
};

impl Writing {
    /// The names of a function for each scope, narrowest first, if its name ends in a scope.
    pub fn family(&self, name: &str) -> Option<Vec<(String, Scope)>> {
        let mut beginnings = self.suffixed.iter();
        let ending = self
            .suffixes
            .iter()
            .filter(|s| name.ends_with(s.0))
            .max_by_key(|(ending, _): &&(&str, Scope)| ending.len())?
            .0;
        let stem = &name[..name.len() - ending.len()];
        let rest = beginnings.find_map(|start| stem.strip_prefix(start))?;
        // `atomicAdd` belongs here; `atomic_thread_fence` and `atomic` do not.
        let known =
            stem.starts_with("__") && rest.is_empty() || rest.starts_with(char::is_uppercase);
        known.then(|| {
            self.suffixes
                .iter()
                .map(|(ending, scope)| (format!("{stem}{ending}"), *scope))
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_a_scope() {
        let names = |name| {
            CUDA.family(name)
                .map(|all| all.into_iter().map(|n| n.0).collect::<Vec<_>>())
        };
        let add = ["atomicAdd_block", "atomicAdd", "atomicAdd_system"].map(str::to_owned);
        assert_eq!(names("atomicAdd_system"), Some(add.to_vec()));
        assert!(names("__threadfence_block").is_some_and(|all| all[1] == "__threadfence"));
        assert_eq!(
            (
                names("atomic_thread_fence"),
                names("atomic_ref"),
                names("atomic")
            ),
            (None, None, None)
        );
    }

    #[test]
    fn accesses_as_they_are_written() {
        let access = |place, value| AtomicAccess {
            function: if value == Some("1") { "store" } else { "load" },
            ty: "int",
            place,
            expected: None,
            value,
            order: "memory_order_relaxed",
            scope: "S",
        };
        let cuda = "cuda::atomic_ref<int, cuda::S>(x).store(1, cuda::memory_order_relaxed)";
        assert_eq!((CUDA.access)(&access("x", Some("1"))), cuda);
        assert_eq!(
            (C.access)(&access("*x", None)),
            "atomic_load_explicit(x, memory_order_relaxed)"
        );
        assert_eq!(
            (OPENCL.access)(&access("x[1]", None)),
            "atomic_load_explicit(&x[1], memory_order_relaxed, S)"
        );
        let exchange = AtomicAccess {
            function: "exchange",
            expected: Some(("e", "memory_order_relaxed")),
            ..access("*x", Some("1"))
        };
        assert_eq!(
            (OPENCL.access)(&exchange),
            "atomic_exchange_explicit(x, &e, 1, memory_order_relaxed, memory_order_relaxed, S)"
        );
        assert_eq!(
            (CUDA.access)(&AtomicAccess {
                place: "x",
                ..exchange
            }),
            "cuda::atomic_ref<int, cuda::S>(x).exchange(e, 1, cuda::memory_order_relaxed, \
             cuda::memory_order_relaxed)"
        );
    }
}
