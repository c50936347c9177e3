//! Translates the kernels of SPIR-V modules to OpenCL C, which the front end for that language
//! reads.
//!
//! A module is binary (`.spv`) or text (`.spvasm`). The crate `rspirv` has the grammar and reads
//! the binary form. The text of the file, or a listing with one instruction a line, is what
//! messages show. Each line of the code has the place of its instruction there.
//!
//! The files:
//! - `binary` splits a module into instructions and lists them; `assemble` makes a binary of text.
//! - `module` has the tables: types, constants, functions with their blocks, kernels.
//! - `types` writes types, `values` operands and pointers.
//! - `kernel` walks over the code of a kernel, `operations` writes its computations, `atomics`
//!   atomic operations, fences and barriers, `groups` the functions of groups.
//!
//! # Invariants
//! - A call is replaced by the function's code. Recursion is refused.
//! - An instruction without a translation is an error at its place.
//! - Each result is a variable that one instruction assigns. A `goto` replaces each branch.
//!
//! # Sources
//! - SPIR-V Specification, unified; OpenCL SPIR-V Environment Specification; OpenCL C, *Atomic
//!   Functions*, *Synchronization Functions*.
//!
//! # Where we differ
//! - `OpControlBarrier` is `work_group_barrier` or `sub_group_barrier`, and has the order of these:
//!   compilers write `SequentiallyConsistent` for them, but neither fence of a barrier is in the
//!   order of sequentially consistent operations (OpenCL, *Memory Ordering Rules*).
//! - Integers have no sign in SPIR-V: objects have unsigned types.

mod assemble;
mod atomics;
mod binary;
mod groups;
mod kernel;
mod module;
mod operations;
mod refusal;
#[cfg(test)]
mod tests;
mod types;
mod values;

use std::sync::Arc;

use diag::{Diagnostic, SourceFile, Span, Translation};

use kernel::Writer;
use module::SpirvModule;
use refusal::Refusal;

/// A module, translated: a file with its code, and errors in the kernels that it lacks.
#[derive(Debug)]
pub struct TranslatedModule {
    /// The text or the listing of the module, with the code.
    pub file: Arc<SourceFile>,
    /// Errors in other kernels.
    pub refused: Vec<Diagnostic>,
}

/// Whether bytes begin as a binary module does, in either order of bytes.
pub fn is_binary(bytes: &[u8]) -> bool {
    let magic = rspirv::spirv::MAGIC_NUMBER;
    bytes.starts_with(&magic.to_le_bytes()) || bytes.starts_with(&magic.to_be_bytes())
}

/// Translates the kernels of a module.
///
/// # Errors
/// Those of the module, or of all its kernels.
pub fn translate(name: &str, bytes: &[u8]) -> Result<TranslatedModule, Vec<Diagnostic>> {
    let listed = match is_text(name, bytes) {
        true => assemble::listed(name, bytes),
        false => binary::listed(name, bytes),
    };
    let listed = listed.map_err(|d| vec![*d])?;
    let file = SourceFile::new(name, listed.text.as_str());
    let said = |refusal: Refusal, spans: &[Span]| {
        let span = spans.get(refusal.at).copied().unwrap_or_default();
        let message = match refusal.message.is_empty() {
            true => refusal.label.clone(),
            false => format!("instruction {}: {}", refusal.at + 1, refusal.message),
        };
        Diagnostic::error("unsupported-spirv", &file, span, message).label(refusal.label)
    };
    let spans = listed.spans.clone();
    let module = SpirvModule::of(listed).map_err(|refusal| vec![said(*refusal, &spans)])?;
    if module.kernels.is_empty() {
        let d = Diagnostic::error("no-kernel", &file, file.top(), "this module has no kernel");
        return Err(vec![d.label("expected an `OpEntryPoint Kernel`").help(
            "link the module with one that has a kernel, or compile a kernel",
        )]);
    }
    let mut writer = Writer::new(&module);
    let mut refused = Vec::new();
    for kernel in &module.kernels {
        if let Err(refusal) = writer.kernel(kernel) {
            refused.push(said(*refusal, &spans));
        }
    }
    if refused.len() == module.kernels.len() {
        return Err(refused);
    }
    let translation = Translation {
        code: writer.code(),
        origins: module.origins,
    };
    Ok(TranslatedModule {
        file: SourceFile::translated(name, &file.text, translation),
        refused,
    })
}

/// Whether a module is in text: its name says so, or its bytes are no binary one.
fn is_text(name: &str, bytes: &[u8]) -> bool {
    let named = name.ends_with(".spvasm");
    named || !is_binary(bytes) && !name.ends_with(".spv") && std::str::from_utf8(bytes).is_ok()
}
