//! The operations for testing compilers: one function for each, in each language.
//!
//! # Invariants
//! - A function's name describes its operation, so that a compiler's output is readable alone:
//!   `exchange_acq_rel_gpu_u32`.
//! - Each function performs one operation on `*x`. It returns the value read, except in forms with
//!   an unused result.

use std::fmt;

use front::mapping::{KINDS, ORDERS, OpKind, SourceOrder};
use program::words::SCOPES;
use program::{Dialect, Scope};

/// A language, or one way to write atomic operations in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceLanguage {
    /// C11, by the builtins behind `<stdatomic.h>`.
    C11,
    /// C with scopes: clang's `__scoped_atomic_*`.
    Scoped,
    /// OpenCL C 2.0, by the builtins behind its atomic functions.
    OpenCl,
    /// CUDA C++ with libcu++'s `cuda::atomic_ref`.
    Cuda,
}

/// The properties of a language.
#[derive(Debug)]
pub struct LanguageRow {
    /// Its name in reports and file names.
    pub name: &'static str,
    /// The dialect of its models.
    pub dialect: Dialect,
    /// The mapping to compare its compilers with.
    pub mapping: &'static str,
    /// The source model; a compiler may not allow any outcome that it forbids.
    pub model: &'static str,
    /// The options that select the language for clang or nvcc.
    pub(crate) options: &'static [&'static str],
    /// The extension of its files.
    pub(crate) ending: &'static str,
    /// Scopes and their words; a single row if the language has no scopes.
    scopes: &'static [(Scope, &'static str)],
    /// Sizes in bits.
    bits: &'static [u8],
    /// Whether fences are builtins; otherwise they are library functions.
    fences: bool,
}

/// The languages.
pub const LANGUAGES: &[(SourceLanguage, LanguageRow)] = &[
    (
        SourceLanguage::C11,
        LanguageRow {
            name: "c11",
            dialect: Dialect::C,
            mapping: "c-ptx",
            model: "c11",
            options: &["-x", "c", "-std=c11"],
            ending: "c",
            scopes: &[(Scope::Sys, "")],
            bits: &[32, 64, 8, 16],
            fences: true,
        },
    ),
    (
        SourceLanguage::Scoped,
        LanguageRow {
            name: "scoped",
            dialect: Dialect::Cuda,
            mapping: "cuda-ptx",
            model: "cuda",
            options: &["-x", "c", "-std=c11"],
            ending: "c",
            scopes: &[
                (Scope::Thread, "__MEMORY_SCOPE_SINGLE"),
                (Scope::Warp, "__MEMORY_SCOPE_WVFRNT"),
                (Scope::Cta, "__MEMORY_SCOPE_WRKGRP"),
                (Scope::Gpu, "__MEMORY_SCOPE_DEVICE"),
                (Scope::Sys, "__MEMORY_SCOPE_SYSTEM"),
            ],
            bits: &[32, 64, 8],
            fences: true,
        },
    ),
    (
        SourceLanguage::OpenCl,
        LanguageRow {
            name: "opencl",
            dialect: Dialect::OpenCl,
            mapping: "opencl-ptx",
            model: "opencl",
            options: &["-x", "cl", "-cl-std=CL2.0"],
            ending: "cl",
            scopes: &[
                (Scope::Warp, "__OPENCL_MEMORY_SCOPE_SUB_GROUP"),
                (Scope::Cta, "__OPENCL_MEMORY_SCOPE_WORK_GROUP"),
                (Scope::Gpu, "__OPENCL_MEMORY_SCOPE_DEVICE"),
                (Scope::Sys, "__OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES"),
            ],
            bits: &[32, 64],
            fences: false,
        },
    ),
    (
        SourceLanguage::Cuda,
        LanguageRow {
            name: "cuda",
            dialect: Dialect::Cuda,
            mapping: "cuda-ptx",
            model: "cuda",
            options: &["-x", "cu", "-std=c++17", "-rdc=true"],
            ending: "cu",
            scopes: &[
                (Scope::Thread, "cuda::thread_scope_thread"),
                (Scope::Cta, "cuda::thread_scope_block"),
                (Scope::Gpu, "cuda::thread_scope_device"),
                (Scope::Sys, "cuda::thread_scope_system"),
            ],
            bits: &[32, 64, 8, 16],
            fences: true,
        },
    ),
];

impl SourceLanguage {
    /// Its row.
    pub fn row(self) -> &'static LanguageRow {
        LANGUAGES
            .iter()
            .find(|l| l.0 == self)
            .map(|l| &l.1)
            .expect("every language has a row")
    }

    /// The language with that name.
    pub fn named(name: &str) -> Option<SourceLanguage> {
        LANGUAGES.iter().find(|l| l.1.name == name).map(|l| l.0)
    }
}

/// A form of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationForm {
    /// A load.
    Load,
    /// A store.
    Store,
    /// An exchange.
    Exchange,
    /// An addition whose result is used.
    Add,
    /// An addition with an unused result.
    AddUnused,
    /// A strong compare-exchange.
    Cas,
    /// A fence.
    Fence,
}

const FORMS: &[(&str, OperationForm, OpKind)] = &[
    ("load", OperationForm::Load, OpKind::Load),
    ("store", OperationForm::Store, OpKind::Store),
    ("exchange", OperationForm::Exchange, OpKind::Rmw),
    ("add", OperationForm::Add, OpKind::Rmw),
    ("add_unused", OperationForm::AddUnused, OpKind::Rmw),
    ("cas", OperationForm::Cas, OpKind::Cas),
    ("fence", OperationForm::Fence, OpKind::Fence),
];

impl OperationForm {
    /// The name in reports and functions.
    pub fn name(self) -> &'static str {
        FORMS.iter().find(|f| f.1 == self).map_or("?", |f| f.0)
    }

    /// The kind of its rows in a mapping.
    pub fn kind(self) -> OpKind {
        FORMS
            .iter()
            .find(|f| f.1 == self)
            .map_or(OpKind::Load, |f| f.2)
    }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AtomicOperation {
    /// Its form.
    pub form: OperationForm,
    /// Its order; for a compare-exchange, the order on success. The order on failure is the part
    /// that a load can have.
    pub order: SourceOrder,
    /// Its scope.
    pub scope: Scope,
    /// Its size in bits; 0 for a fence.
    pub bits: u8,
}

fn word<T: PartialEq>(table: &[(&'static str, T)], of: &T) -> &'static str {
    table
        .iter()
        .find(|row| row.1 == *of)
        .map_or("?", |row| row.0)
}

impl fmt::Display for AtomicOperation {
    /// The name of its function.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (form, order, scope) = (
            self.form.name(),
            word(ORDERS, &self.order),
            word(SCOPES, &self.scope),
        );
        write!(f, "{form}_{order}_{scope}")?;
        if self.bits > 0 {
            write!(f, "_u{}", self.bits)
        } else {
            Ok(())
        }
    }
}

impl AtomicOperation {
    /// All operations of a language.
    pub fn all(language: SourceLanguage) -> Vec<AtomicOperation> {
        let row = language.row();
        let mut all = Vec::new();
        for (_, form, kind) in FORMS {
            for &order in kind.orders() {
                let scoped = !matches!(order, SourceOrder::Plain | SourceOrder::Volatile);
                let scopes = if scoped {
                    row.scopes
                } else {
                    &[(Scope::Sys, "")]
                };
                for &(scope, _) in scopes {
                    match form {
                        OperationForm::Fence if !row.fences => {}
                        OperationForm::Fence => all.push(AtomicOperation {
                            form: *form,
                            order,
                            scope,
                            bits: 0,
                        }),
                        _ => all.extend(row.bits.iter().map(|&bits| AtomicOperation {
                            form: *form,
                            order,
                            scope,
                            bits,
                        })),
                    }
                }
            }
        }
        all
    }

    /// The operation with that function name.
    pub fn named(language: SourceLanguage, name: &str) -> Option<AtomicOperation> {
        AtomicOperation::all(language)
            .into_iter()
            .find(|operation| operation.to_string() == name)
    }

    /// Its kind, order and scope, the key of a mapping's rows.
    pub fn row(&self) -> (OpKind, SourceOrder, Scope) {
        (self.form.kind(), self.order, self.scope)
    }

    /// Its function in the language.
    pub(crate) fn source(&self, language: SourceLanguage) -> String {
        let scope = language
            .row()
            .scopes
            .iter()
            .find(|s| s.0 == self.scope)
            .map_or("", |s| s.1);
        match language {
            SourceLanguage::C11 | SourceLanguage::Scoped | SourceLanguage::OpenCl => {
                self.of_clang(language, scope)
            }
            SourceLanguage::Cuda => self.of_libcudacxx(scope),
        }
    }

    /// The result type: void, the type of the value read, or int for success.
    fn returns(&self, ty: &str) -> String {
        match self.form {
            OperationForm::Store | OperationForm::AddUnused | OperationForm::Fence => "void".into(),
            OperationForm::Cas => "int".into(),
            _ => ty.into(),
        }
    }

    fn of_clang(&self, language: SourceLanguage, scope: &str) -> String {
        fn order(order: SourceOrder) -> &'static str {
            match order {
                SourceOrder::Acquire => "__ATOMIC_ACQUIRE",
                SourceOrder::Release => "__ATOMIC_RELEASE",
                SourceOrder::AcqRel => "__ATOMIC_ACQ_REL",
                SourceOrder::SeqCst => "__ATOMIC_SEQ_CST",
                _ => "__ATOMIC_RELAXED",
            }
        }
        let (on_success, on_failure) = (order(self.order), order(self.on_failure()));
        let opencl = language == SourceLanguage::OpenCl;
        let ty = match (self.bits, opencl) {
            (8, _) => "unsigned char",
            (16, _) => "unsigned short",
            (64, true) => "ulong",
            (64, false) => "unsigned long long",
            (_, true) => "uint",
            (_, false) => "unsigned",
        };
        let (prefix, suffix) = match language {
            SourceLanguage::Scoped => ("__scoped_atomic", format!(", {scope}")),
            SourceLanguage::OpenCl => ("__opencl_atomic", format!(", {scope}")),
            _ => ("__c11_atomic", String::new()),
        };
        // Builtins for any type have other names than those for atomic types.
        let n = if language == SourceLanguage::Scoped {
            "_n"
        } else {
            ""
        };
        let pointer = match (self.order, language) {
            (SourceOrder::Plain, _) => format!("{ty} *x"),
            (SourceOrder::Volatile, _) => format!("volatile {ty} *x"),
            (_, SourceLanguage::Scoped) => format!("{ty} *x"),
            (_, SourceLanguage::OpenCl) => format!("volatile atomic_{ty} *x"),
            _ => format!("_Atomic({ty}) *x"),
        };
        let body = match self.form {
            OperationForm::Load | OperationForm::Store
                if matches!(self.order, SourceOrder::Plain | SourceOrder::Volatile) =>
            {
                match self.form {
                    OperationForm::Load => "return *x;".into(),
                    _ => "*x = 1;".into(),
                }
            }
            OperationForm::Load => format!("return {prefix}_load{n}(x, {on_success}{suffix});"),
            OperationForm::Store => format!("{prefix}_store{n}(x, 1, {on_success}{suffix});"),
            OperationForm::Exchange => {
                format!("return {prefix}_exchange{n}(x, 1, {on_success}{suffix});")
            }
            OperationForm::Add => format!("return {prefix}_fetch_add(x, 1, {on_success}{suffix});"),
            OperationForm::AddUnused => format!("{prefix}_fetch_add(x, 1, {on_success}{suffix});"),
            OperationForm::Cas => {
                let name = match language {
                    SourceLanguage::Scoped => "compare_exchange_n",
                    _ => "compare_exchange_strong",
                };
                let weak = if language == SourceLanguage::Scoped {
                    "0, "
                } else {
                    ""
                };
                format!(
                    "{ty} e = 5; return {prefix}_{name}(x, &e, 7, {weak}{on_success}, \
                     {on_failure}{suffix});"
                )
            }
            OperationForm::Fence => format!("{prefix}_thread_fence({on_success}{suffix});"),
        };
        let parameters = if self.form == OperationForm::Fence {
            "void".into()
        } else {
            pointer
        };
        format!("{} {self}({parameters}) {{ {body} }}\n", self.returns(ty))
    }

    fn of_libcudacxx(&self, scope: &str) -> String {
        let ty = match self.bits {
            8 => "unsigned char",
            16 => "unsigned short",
            64 => "unsigned long long",
            _ => "unsigned",
        };
        fn order(order: SourceOrder) -> String {
            format!("cuda::memory_order_{}", word(ORDERS, &order))
        }
        let on_success = order(self.order);
        let pointer = match self.order {
            SourceOrder::Volatile => format!("volatile {ty} *x"),
            _ => format!("{ty} *x"),
        };
        let object = format!("cuda::atomic_ref<{ty}, {scope}>(*x)");
        let body = match self.form {
            OperationForm::Load | OperationForm::Store
                if matches!(self.order, SourceOrder::Plain | SourceOrder::Volatile) =>
            {
                match self.form {
                    OperationForm::Load => "return *x;".into(),
                    _ => "*x = 1;".into(),
                }
            }
            OperationForm::Load => format!("return {object}.load({on_success});"),
            OperationForm::Store => format!("{object}.store(1, {on_success});"),
            OperationForm::Exchange => format!("return {object}.exchange(1, {on_success});"),
            OperationForm::Add => format!("return {object}.fetch_add(1, {on_success});"),
            OperationForm::AddUnused => format!("{object}.fetch_add(1, {on_success});"),
            OperationForm::Cas => {
                let on_failure = order(self.on_failure());
                format!(
                    "{ty} e = 5; return {object}.compare_exchange_strong(e, 7, {on_success}, \
                     {on_failure});"
                )
            }
            OperationForm::Fence => format!("cuda::atomic_thread_fence({on_success}, {scope});"),
        };
        let parameters = if self.form == OperationForm::Fence {
            String::new()
        } else {
            pointer
        };
        format!(
            "extern \"C\" __device__ {} {self}({parameters}) {{ {body} }}\n",
            self.returns(ty)
        )
    }

    /// The strongest failure order that adds nothing to the success order.
    fn on_failure(&self) -> SourceOrder {
        match self.order {
            SourceOrder::AcqRel => SourceOrder::Acquire,
            SourceOrder::Release => SourceOrder::Relaxed,
            order => order,
        }
    }
}

/// The text before the functions.
pub(crate) fn prologue(language: SourceLanguage) -> &'static str {
    match language {
        SourceLanguage::Cuda => "#include <cuda/atomic>\n",
        // OpenCL C has 64-bit atomic objects only with extensions.
        SourceLanguage::OpenCl => {
            "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n\
             #pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable\n"
        }
        _ => "",
    }
}

/// The word for a kind in a mapping file.
pub fn kind_word(kind: OpKind) -> &'static str {
    word(KINDS, &kind)
}

/// The word for an order in a mapping file.
pub fn order_word(order: SourceOrder) -> &'static str {
    word(ORDERS, &order)
}

/// The word for a scope in a mapping file.
pub fn scope_word(scope: Scope) -> &'static str {
    word(SCOPES, &scope)
}
