//! Reads a module in text, as `spirv-dis` prints it, by the tables of `rspirv`.
//!
//! # Invariants
//! - An instruction is on one line. Its words go through the reader of binary modules, which checks
//!   them again.
//! - A numeric id keeps its number.
//!
//! # Sources
//! - SPIRV-Tools, *SPIR-V Assembly language syntax*.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use rspirv::grammar::{INSTRUCTION_TABLE, OPENCL_STD_100_INSTRUCTION_TABLE};
use rspirv::grammar::{LogicalOperand, OperandKind, OperandQuantifier};
use rspirv::spirv::{self, Op};

use super::binary::{SpirvText, instructions};
use diag::{Diagnostic, SourceFile, Span};

/// The head of the binary module: its magic number, version, generator, bound and schema.
const HEAD: [u32; 5] = [spirv::MAGIC_NUMBER, 0x0001_0600, 0, 0, 0];

/// The words of masks.
const MASKS: &[(OperandKind, &[(&str, u32)])] = &[
    (
        OperandKind::FunctionControl,
        &[
            ("None", 0),
            ("Inline", 1),
            ("DontInline", 2),
            ("Pure", 4),
            ("Const", 8),
        ],
    ),
    (
        OperandKind::SelectionControl,
        &[("None", 0), ("Flatten", 1), ("DontFlatten", 2)],
    ),
    (
        OperandKind::LoopControl,
        &[("None", 0), ("Unroll", 1), ("DontUnroll", 2)],
    ),
    (
        OperandKind::MemoryAccess,
        &[
            ("None", 0),
            ("Volatile", 1),
            ("Aligned", 2),
            ("Nontemporal", 4),
        ],
    ),
    (
        OperandKind::FPFastMathMode,
        &[
            ("None", 0),
            ("NotNaN", 1),
            ("NotInf", 2),
            ("NSZ", 4),
            ("AllowRecip", 8),
            ("Fast", 16),
        ],
    ),
];

/// The number of a word of an enumeration.
fn enumerator(kind: OperandKind, word: &str) -> Option<u32> {
    fn of<T: FromStr>(word: &str, number: fn(T) -> u32) -> Option<u32> {
        word.parse::<T>().ok().map(number)
    }
    match kind {
        OperandKind::Capability => of(word, |it: spirv::Capability| it as u32),
        OperandKind::SourceLanguage => of(word, |it: spirv::SourceLanguage| it as u32),
        OperandKind::ExecutionModel => of(word, |it: spirv::ExecutionModel| it as u32),
        OperandKind::ExecutionMode => of(word, |it: spirv::ExecutionMode| it as u32),
        OperandKind::AddressingModel => of(word, |it: spirv::AddressingModel| it as u32),
        OperandKind::MemoryModel => of(word, |it: spirv::MemoryModel| it as u32),
        OperandKind::StorageClass => of(word, |it: spirv::StorageClass| it as u32),
        OperandKind::Dim => of(word, |it: spirv::Dim| it as u32),
        OperandKind::ImageFormat => of(word, |it: spirv::ImageFormat| it as u32),
        OperandKind::AccessQualifier => of(word, |it: spirv::AccessQualifier| it as u32),
        OperandKind::Decoration => of(word, |it: spirv::Decoration| it as u32),
        OperandKind::BuiltIn => of(word, |it: spirv::BuiltIn| it as u32),
        OperandKind::LinkageType => of(word, |it: spirv::LinkageType| it as u32),
        OperandKind::FPRoundingMode => of(word, |it: spirv::FPRoundingMode| it as u32),
        OperandKind::FunctionParameterAttribute => {
            of(word, |it: spirv::FunctionParameterAttribute| it as u32)
        }
        OperandKind::GroupOperation => of(word, |it: spirv::GroupOperation| it as u32),
        kind => {
            let words = MASKS.iter().find(|row| row.0 == kind)?.1;
            let mut all = word
                .split('|')
                .map(|word| words.iter().find(|row| row.0 == word));
            all.try_fold(0, |mask, row| Some(mask | row?.1))
        }
    }
}

/// The enumerations of the parameters of decorations and modes.
const OF_PARAMETERS: [OperandKind; 6] = [
    OperandKind::BuiltIn,
    OperandKind::LinkageType,
    OperandKind::FunctionParameterAttribute,
    OperandKind::FPRoundingMode,
    OperandKind::FPFastMathMode,
    OperandKind::AccessQualifier,
];

/// Reads a module in text.
///
/// # Errors
/// The first mistake.
pub(super) fn listed(name: &str, bytes: &[u8]) -> Result<SpirvText, Box<Diagnostic>> {
    let assembler = assembled(name, bytes)?;
    let all = instructions(name, &assembler.words)?;
    let names = assembler.ids.into_iter();
    let names = names.filter(|(name, _)| !name.starts_with(|c: char| c.is_ascii_digit()));
    Ok(SpirvText {
        text: assembler.file.text.clone(),
        spans: assembler.spans,
        all,
        names: names.map(|(name, id)| (id, name)).collect(),
    })
}

/// The words of a module in text.
#[cfg(test)]
pub(super) fn words(name: &str, bytes: &[u8]) -> Result<Vec<u32>, Box<Diagnostic>> {
    assembled(name, bytes).map(|assembler| assembler.words)
}

fn assembled(name: &str, bytes: &[u8]) -> Result<Assembler, Box<Diagnostic>> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        let message = format!("`{name}` is not UTF-8 text");
        let d = Diagnostic::plain("not-utf8", message);
        return Err(Box::new(d.help("a binary module has the ending `.spv`")));
    };
    let file = SourceFile::new(name, text);
    let mut assembler = Assembler {
        words: HEAD.to_vec(),
        file: file.clone(),
        spans: Vec::new(),
        ids: HashMap::new(),
        next: first_id(text),
        opcodes: INSTRUCTION_TABLE
            .iter()
            .map(|row| (row.opname, row.opcode as u32))
            .collect(),
        widths: HashMap::new(),
        library: None,
        tokens: Vec::new(),
        at: 0,
    };
    for (span, line) in file.lines() {
        assembler.line(span, line)?;
    }
    assembler.words[3] = assembler.next;
    Ok(assembler)
}

/// The first number above all numeric ids.
fn first_id(text: &str) -> u32 {
    let numbers = text.split('%').skip(1).filter_map(|rest| {
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        rest[..end].parse::<u32>().ok()
    });
    numbers.filter(|n| *n < 1 << 22).max().unwrap_or(0) + 1
}

/// A word of a line, and whether it is a string.
#[derive(Clone, Debug)]
struct TextToken {
    text: String,
    is_string: bool,
    span: Span,
}

/// Makes words of lines.
struct Assembler {
    words: Vec<u32>,
    file: Arc<SourceFile>,
    spans: Vec<Span>,
    ids: HashMap<String, u32>,
    next: u32,
    opcodes: HashMap<&'static str, u32>,
    /// How numbers of a type are written, by the type and by each value of it.
    widths: HashMap<u32, NumberForm>,
    library: Option<u32>,
    /// The words of the current line, and how many of them were read.
    tokens: Vec<TextToken>,
    at: usize,
}

/// How numbers of a type are written.
#[derive(Clone, Copy)]
struct NumberForm {
    bits: u32,
    is_float: bool,
}

type Assembled<T> = Result<T, Box<Diagnostic>>;

impl Assembler {
    fn fail<T>(&self, span: Span, message: String, expected: &str) -> Assembled<T> {
        let d = Diagnostic::error("spirv-syntax", &self.file, span, message);
        Err(Box::new(d.label(format!("expected {expected}"))))
    }

    fn line(&mut self, span: Span, line: &str) -> Assembled<()> {
        self.tokens = self.split(span, line)?;
        self.at = 0;
        let Some(first) = self.tokens.first().cloned() else {
            return Ok(());
        };
        let result = match first.text.starts_with('%') && !first.is_string {
            true => {
                self.at = 1;
                let equals = self.token("`=`")?;
                if equals.text != "=" {
                    return self.fail(equals.span, format!("found `{}`", equals.text), "`=`");
                }
                Some(self.id(&first)?)
            }
            false => None,
        };
        let word = self.token("an instruction")?;
        let opcode = word
            .text
            .strip_prefix("Op")
            .and_then(|name| self.opcodes.get(name))
            .copied();
        let row = opcode.and_then(|opcode| INSTRUCTION_TABLE.lookup_opcode(opcode));
        let Some(row) = row else {
            let message = format!("`{}` is not an instruction", word.text);
            return self.fail(word.span, message, "one, such as `OpLoad`");
        };
        if row.opcode == Op::ExtInst && !self.is_of_library()? {
            // It describes the source.
            return Ok(());
        }
        let start = self.words.len();
        self.words.push(row.opcode as u32);
        let mut given = LineParts {
            op: row.opcode,
            result,
            ty: None,
            first: None,
            whole: span,
        };
        for operand in row.operands {
            self.operands(operand, &mut given)?;
        }
        self.finish(start, &word)?;
        self.track(&given, start);
        Ok(())
    }

    /// Ends an instruction whose first word is at `start`.
    fn finish(&mut self, start: usize, word: &TextToken) -> Assembled<()> {
        if let Some(extra) = self.tokens.get(self.at).cloned() {
            let message = format!("`{}` is one operand too many", extra.text);
            return self.fail(
                extra.span,
                message,
                &format!("the operands of `{}`", word.text),
            );
        }
        let (first, last) = match self.tokens.as_slice() {
            [first, .., last] => (first.span, last.span),
            _ => (word.span, word.span),
        };
        let count = self.words.len() - start;
        if count > 0xffff {
            return self.fail(
                first,
                "this instruction is too long".to_owned(),
                "65535 words",
            );
        }
        self.words[start] |= (count as u32) << 16;
        self.spans.push(Span {
            start: first.start,
            end: last.end,
        });
        Ok(())
    }

    /// Whether the set of an instruction is `OpenCL.std`.
    fn is_of_library(&mut self) -> Assembled<bool> {
        let set = self.tokens.get(self.at + 1).cloned();
        Ok(match set {
            Some(set) => Some(self.id(&set)?) == self.library,
            None => true,
        })
    }

    /// Notes how numbers of a type are written, and which set is `OpenCL.std`.
    fn track(&mut self, given: &LineParts, start: usize) {
        let named = self
            .tokens
            .last()
            .is_some_and(|last| last.text == "OpenCL.std");
        if given.op == Op::ExtInstImport && named {
            self.library = given.result;
        }
        let Some(result) = given.result else { return };
        let form = match (given.op, self.words.get(start + 2)) {
            (Op::TypeInt, Some(bits)) => Some(NumberForm {
                bits: *bits,
                is_float: false,
            }),
            (Op::TypeFloat, Some(bits)) => Some(NumberForm {
                bits: *bits,
                is_float: true,
            }),
            _ => given.ty.and_then(|ty| self.widths.get(&ty)).copied(),
        };
        if let Some(form) = form {
            self.widths.insert(result, form);
        }
    }

    /// The words of a line.
    fn split(&self, span: Span, line: &str) -> Assembled<Vec<TextToken>> {
        let mut all = Vec::new();
        let mut chars = line.char_indices().peekable();
        let base = span.range().start;
        while let Some((start, c)) = chars.next() {
            match c {
                ';' => break,
                c if c.is_whitespace() => {}
                '"' => {
                    let mut text = String::new();
                    loop {
                        match chars.next() {
                            Some((_, '"')) => break,
                            Some((_, '\\')) => text.extend(chars.next().map(|(_, c)| c)),
                            Some((_, c)) => text.push(c),
                            None => {
                                return self.fail(span, "this string does not end".into(), "`\"`");
                            }
                        }
                    }
                    let end = chars.peek().map_or(line.len(), |(at, _)| *at);
                    all.push(TextToken {
                        text,
                        is_string: true,
                        span: Span::new(base + start, base + end),
                    });
                }
                _ => {
                    let rest = &line[start..];
                    let end = rest.find(|c: char| c.is_whitespace() || c == ';');
                    let end = start + end.unwrap_or(rest.len());
                    while chars.peek().is_some_and(|(at, _)| *at < end) {
                        chars.next();
                    }
                    all.push(TextToken {
                        text: line[start..end].to_owned(),
                        is_string: false,
                        span: Span::new(base + start, base + end),
                    });
                }
            }
        }
        Ok(all)
    }

    fn token(&mut self, expected: &str) -> Assembled<TextToken> {
        match self.tokens.get(self.at).cloned() {
            Some(token) => {
                self.at += 1;
                Ok(token)
            }
            None => {
                let last = self.tokens.last().map_or(Span::default(), |last| last.span);
                self.fail(last, "this instruction ends here".to_owned(), expected)
            }
        }
    }

    fn id(&mut self, token: &TextToken) -> Assembled<u32> {
        let Some(name) = token.text.strip_prefix('%').filter(|_| !token.is_string) else {
            return self.fail(
                token.span,
                format!("`{}` is not an id", token.text),
                "`%` and a name",
            );
        };
        let number = name
            .parse::<u32>()
            .ok()
            .filter(|n| (1..1 << 22).contains(n));
        let next = &mut self.next;
        let id = *self.ids.entry(name.to_owned()).or_insert_with(|| {
            number.unwrap_or_else(|| {
                *next += 1;
                *next - 1
            })
        });
        Ok(id)
    }

    /// Reads a logical operand as often as it comes.
    fn operands(&mut self, operand: &LogicalOperand, given: &mut LineParts) -> Assembled<()> {
        match operand.kind {
            OperandKind::IdResult => {
                return match given.result {
                    Some(id) => {
                        self.words.push(id);
                        Ok(())
                    }
                    None => self.fail(
                        given.whole,
                        "this has a result".into(),
                        "`%name =` before it",
                    ),
                };
            }
            OperandKind::IdResultType => {
                let token = self.token("a type")?;
                let ty = self.id(&token)?;
                given.ty = Some(ty);
                self.words.push(ty);
                return Ok(());
            }
            _ => {}
        }
        loop {
            let more = self.at < self.tokens.len();
            match operand.quantifier {
                OperandQuantifier::One => return self.operand(operand.kind, given),
                OperandQuantifier::ZeroOrOne if more => {
                    return self.operand(operand.kind, given);
                }
                OperandQuantifier::ZeroOrMore if more => self.operand(operand.kind, given)?,
                _ => return Ok(()),
            }
        }
    }

    fn operand(&mut self, kind: OperandKind, given: &mut LineParts) -> Assembled<()> {
        match kind {
            OperandKind::IdRef | OperandKind::IdScope | OperandKind::IdMemorySemantics => {
                let token = self.token("an id")?;
                let id = self.id(&token)?;
                given.first.get_or_insert(id);
                self.words.push(id);
            }
            OperandKind::LiteralInteger | OperandKind::LiteralFloat => self.number(32, false)?,
            OperandKind::LiteralString => {
                let token = self.token("a string")?;
                if !token.is_string {
                    let message = format!("`{}` is not a string", token.text);
                    return self.fail(token.span, message, "one in quotes");
                }
                self.string(&token.text);
            }
            OperandKind::LiteralContextDependentNumber => {
                self.number_of(given.ty.unwrap_or(0), given.whole)?;
            }
            OperandKind::LiteralExtInstInteger => self.extended()?,
            OperandKind::PairLiteralIntegerIdRef => {
                self.number_of(given.first.unwrap_or(0), given.whole)?;
                self.operand(OperandKind::IdRef, given)?;
            }
            OperandKind::PairIdRefLiteralInteger => {
                self.operand(OperandKind::IdRef, given)?;
                self.number(32, false)?;
            }
            OperandKind::PairIdRefIdRef => {
                self.operand(OperandKind::IdRef, given)?;
                self.operand(OperandKind::IdRef, given)?;
            }
            kind => {
                let token = self.token("a word")?;
                let Some(number) = enumerator(kind, &token.text).filter(|_| !token.is_string)
                else {
                    let message = format!("`{}` is not a word for this operand", token.text);
                    return self.fail(token.span, message, &format!("one of `{kind:?}`"));
                };
                self.words.push(number);
                match kind {
                    OperandKind::Decoration | OperandKind::ExecutionMode => self.parameters()?,
                    OperandKind::MemoryAccess if number & 2 != 0 => self.number(32, false)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// What stands behind a decoration or a mode.
    fn parameters(&mut self) -> Assembled<()> {
        while let Some(token) = self.tokens.get(self.at).cloned() {
            let word = token.text.as_str();
            if token.is_string {
                self.string(word);
            } else if word.starts_with('%') {
                let id = self.id(&token)?;
                self.words.push(id);
            } else if let Some(number) = OF_PARAMETERS.iter().find_map(|k| enumerator(*k, word)) {
                self.words.push(number);
            } else {
                self.number(32, false)?;
                continue;
            }
            self.at += 1;
        }
        Ok(())
    }

    fn string(&mut self, text: &str) {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let words = bytes
            .chunks(4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        self.words.extend(words);
    }

    /// A number in the form of a type, or of the type of a value.
    fn number_of(&mut self, ty: u32, whole: Span) -> Assembled<()> {
        match self.widths.get(&ty).copied() {
            Some(form) => self.number(form.bits, form.is_float),
            None => self.fail(
                whole,
                "this type has no numbers".to_owned(),
                "a type of numbers",
            ),
        }
    }

    fn number(&mut self, bits: u32, is_float: bool) -> Assembled<()> {
        let token = self.token("a number")?;
        let text = token.text.as_str();
        fn hex(text: &str) -> Option<u64> {
            u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
        }
        let value = match is_float {
            true => match bits {
                64 => text.parse::<f64>().ok().map(f64::to_bits),
                32 => text.parse::<f32>().ok().map(|v| u64::from(v.to_bits())),
                _ => hex(text).or_else(|| text.parse::<u64>().ok()),
            },
            false => text
                .parse::<u64>()
                .ok()
                .or_else(|| text.parse::<i64>().ok().map(|n| n as u64))
                .or_else(|| hex(text)),
        };
        let Some(value) = value.filter(|_| !token.is_string) else {
            return self.fail(token.span, format!("`{text}` is not a number"), "one");
        };
        self.words.push(value as u32);
        if bits == 64 {
            self.words.push((value >> 32) as u32);
        }
        Ok(())
    }

    /// The name of an instruction of an extended set, or its number.
    fn extended(&mut self) -> Assembled<()> {
        let token = self.token("the name of an instruction")?;
        let row = OPENCL_STD_100_INSTRUCTION_TABLE
            .iter()
            .find(|row| row.opname == token.text);
        let number = row.map(|row| u32::from(row.opcode));
        match number.or_else(|| token.text.parse().ok()) {
            Some(number) => {
                self.words.push(number);
                Ok(())
            }
            None => {
                let message = format!("`{}` is not an instruction of `OpenCL.std`", token.text);
                self.fail(token.span, message, "one, such as `s_max`")
            }
        }
    }
}

/// The parts of a line that its operands refer to.
struct LineParts {
    op: Op,
    result: Option<u32>,
    ty: Option<u32>,
    first: Option<u32>,
    whole: Span,
}
