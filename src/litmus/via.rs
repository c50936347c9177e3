//! A test through a mapping: the same question about the program that a compiler makes of it.

use super::LitmusTest;
use crate::program::mapping::Mapping;

impl LitmusTest {
    /// The test with its program lowered to PTX; its condition means the same registers and locations.
    ///
    /// # Errors
    /// What has no counterpart there, in one sentence with the first such line: the test is valid, only this model has
    /// no words for it.
    pub fn via(&self, mapping: &Mapping) -> Result<LitmusTest, String> {
        let unmapped = match mapping.lower(&self.program) {
            Ok(program) => return Ok(LitmusTest { program, ..self.clone() }),
            Err(unmapped) => unmapped,
        };
        let first = &unmapped[0];
        let (line, _) = self.file.line_column(first.span.start as usize);
        let text = self.file.text.get(first.span.range()).unwrap_or_default();
        let others = match unmapped.len() - 1 {
            0 => String::new(),
            more => format!(" (and of {more} more)"),
        };
        let (mapping, rule) = (mapping.name, &first.rule);
        Err(format!("mapping `{mapping}` has no counterpart in PTX of `{text}`, line {line}{others}: {rule}"))
    }
}
