//! Relations between commands that do not come from the order of calls.

use super::{CommandId, CommandKind, HostProgram};
use crate::{Program, ThreadId};

impl HostProgram {
    /// Explains for a race between two threads that no call orders their accesses; `None` where
    /// calls could not order them.
    pub fn apart(&self, program: &Program, a: ThreadId, b: ThreadId) -> Option<String> {
        let (of_a, of_b) = (self.command_of(a), self.command_of(b));
        if of_a == of_b && of_a.is_some() {
            return None;
        }
        let name = |t: ThreadId, of: Option<CommandId>| match of {
            Some(command) => format!("`{}`", self.name_of(command)),
            None => format!("the host thread {}", program.thread(t).name),
        };
        Some(format!(
            "no call orders these accesses of {} and {}",
            name(a, of_a),
            name(b, of_b)
        ))
    }

    /// The mappings of memory to the host: the command that begins each, and the command that ends
    /// it, if any. An unmap belongs to the earliest open mapping of its object.
    pub fn mappings(&self, program: &Program) -> Vec<(CommandId, Option<CommandId>)> {
        let object = |id: CommandId| {
            let code = self
                .command(id)
                .threads
                .first()
                .map(|t| &program.thread(*t).code);
            code.and_then(|c| c.first())
                .and_then(|i| i.op.read().and(i.op.address())?.base())
        };
        let mut all: Vec<(CommandId, Option<CommandId>)> = Vec::new();
        for id in self.command_ids() {
            match self.command(id).kind {
                CommandKind::Map => all.push((id, None)),
                CommandKind::Unmap => {
                    if let Some(mapping) = all
                        .iter_mut()
                        .find(|m| m.1.is_none() && object(m.0) == object(id))
                    {
                        mapping.1 = Some(id);
                    }
                }
                _ => {}
            }
        }
        all
    }
}
