//! A test through a mapping: the same question about the program that a compiler makes of it.

use super::LitmusTest;
use crate::diag::Diagnostic;
use crate::program::mapping::Mapping;

impl LitmusTest {
    /// The test with its program lowered to PTX; its condition means the same registers and locations.
    pub fn via(&self, mapping: &Mapping) -> Result<LitmusTest, Vec<Diagnostic>> {
        match mapping.lower(&self.program) {
            Ok(program) => Ok(LitmusTest { program, ..self.clone() }),
            Err(unmapped) => {
                let diagnostic = |(span, rule)| {
                    let message = format!("mapping `{}` has no counterpart of this in PTX", mapping.name);
                    Diagnostic::error("no-counterpart", &self.file, span, message).note(rule)
                };
                Err(unmapped.into_iter().map(|u| diagnostic((u.span, u.rule))).collect())
            }
        }
    }
}
