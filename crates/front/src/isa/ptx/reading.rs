//! Reads a thread's code: statements, and the row of each instruction.

use std::sync::Mutex;

use std::collections::HashSet;

use diag::{MappedText, Sink};

use super::families::find;
use super::origin::Origins;
use super::parse::{OperandKind, PtxOperand, PtxStmt};
use super::{CodeItem, PtxCode, expand, parse, regs};

impl PtxCode {
    /// Parses a thread's code and reports mistakes to `sink`.
    pub fn parse(text: MappedText, sink: &mut Sink) -> PtxCode {
        let mut items = Vec::new();
        let mut suspects = HashSet::new();
        let errors = sink.errors();
        let origins = Origins::read(&text, sink);
        let text = expand::expand(&text, sink).unwrap_or(text);
        let stmts = parse::parse(&text, sink);
        let incomplete = sink.errors() > errors;
        for stmt in stmts {
            match stmt {
                PtxStmt::Label(range) => items.push(CodeItem::Label(range)),
                PtxStmt::Reg { ty, name, count } => items.push(CodeItem::Reg { ty, name, count }),
                PtxStmt::Targets(labels) => items.push(CodeItem::Targets(labels)),
                PtxStmt::Instr(raw) => {
                    let names = raw
                        .operands
                        .iter()
                        .flat_map(PtxOperand::elements)
                        .filter_map(|o| match &o.kind {
                            OperandKind::Name(n) => {
                                Some(regs::bare(&text.as_str()[n.name.clone()]).to_string())
                            }
                            _ => None,
                        });
                    let names: Vec<String> = names.collect();
                    match find(&text, raw, sink) {
                        Some(matched) => items.push(CodeItem::Instr(matched)),
                        None => suspects.extend(names),
                    }
                }
            }
        }
        PtxCode {
            text,
            items,
            origins,
            incomplete,
            suspects,
            latest: Mutex::default(),
            shared: Mutex::default(),
        }
    }
}
