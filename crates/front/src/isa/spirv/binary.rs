//! Splits a binary module into instructions, and lists them.
//!
//! # Invariants
//! - The words of all instructions are counted before `rspirv` reads them: it panics on a string
//!   that reaches beyond the module.
//!
//! # Sources
//! - SPIR-V Specification, 2.3, *Physical Layout of a SPIR-V Module and Instruction*.

use std::collections::HashMap;

use rspirv::binary::{Consumer, Disassemble, ParseAction, ParseState, parse_bytes};
use rspirv::dr::{Instruction, ModuleHeader, Operand};
use rspirv::grammar::OPENCL_STD_100_INSTRUCTION_TABLE;
use rspirv::spirv::{MAGIC_NUMBER, Op};

use diag::{Diagnostic, Span};

/// The words of the head of a module.
const HEAD: usize = 5;

/// The newest version that is read.
const NEWEST: (u32, u32) = (1, 6);

/// The instructions of a module with their places in a text.
#[derive(Debug, Default)]
pub(super) struct SpirvText {
    pub(super) text: String,
    pub(super) spans: Vec<Span>,
    pub(super) all: Vec<Instruction>,
    /// The names that a text gives to ids.
    pub(super) names: HashMap<u32, String>,
}

/// Collects instructions.
#[derive(Default)]
struct Collector {
    all: Vec<Instruction>,
}

impl Consumer for Collector {
    fn initialize(&mut self) -> ParseAction {
        ParseAction::Continue
    }

    fn finalize(&mut self) -> ParseAction {
        ParseAction::Continue
    }

    fn consume_header(&mut self, _: ModuleHeader) -> ParseAction {
        ParseAction::Continue
    }

    fn consume_instruction(&mut self, instruction: Instruction) -> ParseAction {
        self.all.push(instruction);
        ParseAction::Continue
    }
}

fn wrong(name: &str, message: &str, help: &str) -> Box<Diagnostic> {
    let text = format!("`{name}` is not a module of SPIR-V: {message}");
    Box::new(Diagnostic::plain("spirv-module", text).help(help.to_owned()))
}

/// Reads and lists a binary module.
///
/// # Errors
/// What is wrong with it.
pub(super) fn listed(name: &str, bytes: &[u8]) -> Result<SpirvText, Box<Diagnostic>> {
    let words = words(name, bytes)?;
    let all = instructions(name, &words)?;
    let mut listed = SpirvText::default();
    for instruction in &all {
        let start = listed.text.len();
        listed.text += &line(instruction);
        listed.spans.push(Span::new(start, listed.text.len()));
        listed.text.push('\n');
    }
    listed.all = all;
    Ok(listed)
}

/// The words of a module, in the order of bytes of its first word.
fn words(name: &str, bytes: &[u8]) -> Result<Vec<u32>, Box<Diagnostic>> {
    let whole = "compile it again: the file may be cut off";
    if bytes.len() < 4 * HEAD {
        let message = format!("{} bytes are less than its head has", bytes.len());
        return Err(wrong(name, &message, whole));
    }
    if !bytes.len().is_multiple_of(4) {
        let message = format!("{} bytes do not fill whole words", bytes.len());
        return Err(wrong(name, &message, whole));
    }
    fn word(b: &[u8]) -> u32 {
        u32::from_le_bytes([b[0], b[1], b[2], b[3]])
    }
    let mut words: Vec<u32> = bytes.chunks_exact(4).map(word).collect();
    if words[0] == MAGIC_NUMBER.swap_bytes() {
        words.iter_mut().for_each(|word| *word = word.swap_bytes());
    }
    if words[0] != MAGIC_NUMBER {
        let message = format!(
            "it begins with {:#010x}, not {MAGIC_NUMBER:#010x}",
            words[0]
        );
        return Err(wrong(
            name,
            &message,
            "name a file that `llvm-spirv` or `spirv-as` made",
        ));
    }
    let version = (words[1] >> 16 & 0xff, words[1] >> 8 & 0xff);
    if version.0 == 0 || version > NEWEST {
        let message = format!("its version is {}.{}", version.0, version.1);
        let help = format!(
            "compile it for a version from 1.0 to {}.{}",
            NEWEST.0, NEWEST.1
        );
        return Err(wrong(name, &message, &help));
    }
    Ok(words)
}

/// The instructions of a module.
pub(super) fn instructions(name: &str, words: &[u32]) -> Result<Vec<Instruction>, Box<Diagnostic>> {
    let mut at = HEAD;
    let mut number = 0;
    while at < words.len() {
        number += 1;
        let (count, opcode) = ((words[at] >> 16) as usize, words[at] & 0xffff);
        if count == 0 || at + count > words.len() {
            let message = format!(
                "instruction {number} has {count} words, and {} are left",
                words.len() - at
            );
            return Err(wrong(
                name,
                &message,
                "compile it again: the file may be cut off",
            ));
        }
        // Its operands are those of another instruction, which `rspirv` does not check.
        if opcode == Op::SpecConstantOp as u32 {
            let message = format!("instruction {number}, `OpSpecConstantOp`, is not supported");
            let help = "set the constants first: `spirv-opt --freeze-spec-const \
                --fold-spec-const-op-composite`";
            return Err(wrong(name, &message, help));
        }
        at += count;
    }
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut collector = Collector::default();
    match parse_bytes(&bytes, &mut collector) {
        Ok(()) => Ok(collector.all),
        Err(state) => {
            let number = collector.all.len() + 1;
            let message = match state {
                ParseState::OpcodeUnknown(_, _, opcode) => {
                    format!("instruction {number} has the unknown number {opcode}")
                }
                other => format!("instruction {number}: {other}"),
            };
            Err(wrong(
                name,
                &message,
                "`spirv-val` reports the faults of a module",
            ))
        }
    }
}

/// An instruction on one line.
fn line(instruction: &Instruction) -> String {
    let mut out = String::new();
    if let Some(id) = instruction.result_id {
        out += &format!("%{id} = ");
    }
    out += &format!("Op{}", instruction.class.opname);
    if let Some(ty) = instruction.result_type {
        out += &format!(" %{ty}");
    }
    for operand in &instruction.operands {
        out.push(' ');
        out += &match operand {
            Operand::LiteralString(text) => format!("{text:?}"),
            Operand::LiteralExtInstInteger(number) => extended(*number),
            operand => operand.disassemble(),
        };
    }
    out
}

/// The name of an instruction of `OpenCL.std`.
pub(super) fn extended(number: u32) -> String {
    let row = OPENCL_STD_100_INSTRUCTION_TABLE.lookup_opcode(number);
    row.map_or(number.to_string(), |row| row.opname.to_owned())
}
