//! Parses PTX code into statements: labels, instructions with their operands, register
//! declarations.
//!
//! # Invariants
//! - A malformed statement is reported and skipped; the parser continues after it.
//! - Every range lies in the parsed text; nothing is resolved yet.
//!
//! A statement ends at `;` or at the end of a line, unless the line ends in a comma or inside
//! brackets.

use std::ops::Range;

use super::constant::constant;
use super::lex::{PtxToken, lex};
use super::outside;
use diag::{Cursor, ErrorReported, MappedText, Sink};

#[derive(Clone, Debug)]
pub(super) enum PtxStmt {
    /// A label, `name:`.
    Label(Range<usize>),
    Instr(RawInstr),
    /// A declaration `.reg .type a, b<4>;`: type, name, count.
    Reg {
        ty: Range<usize>,
        name: Range<usize>,
        count: Option<i64>,
    },
    /// The labels in `.branchtargets a, b`; the label before it names the list.
    Targets(Vec<Range<usize>>),
}

/// An unresolved instruction.
#[derive(Clone, Debug)]
pub(super) struct RawInstr {
    /// The range from the predicate to the last operand.
    pub(super) range: Range<usize>,
    /// The predicate: `@p`, or `@!p` (`true`).
    pub(super) pred: Option<(bool, Range<usize>)>,
    /// The opcode without qualifiers.
    pub(super) opcode: Range<usize>,
    /// The qualifiers, without their dots.
    pub(super) quals: Vec<Range<usize>>,
    pub(super) operands: Vec<PtxOperand>,
    /// Coordinates follow an address, `[map, {c}]`; they are an operand of their own.
    pub(super) tiled: bool,
}

/// An operand with its place.
#[derive(Clone, Debug)]
pub(super) struct PtxOperand {
    pub(super) range: Range<usize>,
    pub(super) kind: OperandKind,
}

#[derive(Clone, Debug)]
pub(super) enum OperandKind {
    Int(i64),
    /// A constant with a decimal point.
    Fraction(f64),
    /// A register, location or label, possibly as an address.
    Name(NameOperand),
    /// `_`, which discards a result.
    Discard,
    /// The elements of a vector, `{a, b}`.
    Vector(Vec<PtxOperand>),
    /// Two destinations, `d|p`.
    Pair(Vec<PtxOperand>),
    /// A texel, `[t, {x, y}]`: the reference and the coordinates.
    Texel(Vec<PtxOperand>),
}

impl PtxOperand {
    /// The elements of a vector; any other operand is its own single element.
    pub(super) fn elements(&self) -> &[PtxOperand] {
        match &self.kind {
            OperandKind::Vector(all) | OperandKind::Pair(all) | OperandKind::Texel(all) => all,
            _ => std::slice::from_ref(self),
        }
    }
}

/// A name with the text around it.
#[derive(Clone, Debug)]
pub(super) struct NameOperand {
    pub(super) name: Range<usize>,
    /// Whether it is in `[…]`.
    pub(super) brackets: bool,
    /// Whether `!` precedes it.
    pub(super) negated: bool,
    /// The offset `+ n`, in bytes.
    pub(super) offset: i64,
    /// The index `[n]`, in elements.
    pub(super) index: i64,
}

impl NameOperand {
    /// The range of the name with its offset, `p+8`. After expansion of blocks, this is the name of
    /// a register for a piece of a parameter.
    pub(super) fn piece(&self) -> Range<usize> {
        let offset = if self.offset == 0 {
            0
        } else {
            format!("+{}", self.offset).len()
        };
        self.name.start..self.name.end + offset
    }
}

pub(super) fn parse(text: &MappedText, sink: &mut Sink) -> Vec<PtxStmt> {
    let mut parser = PtxParser {
        text,
        tokens: Cursor::new(lex(text.as_str())),
        sink,
        out: Vec::new(),
        in_textures: false,
        coordinates: None,
    };
    parser.run();
    parser.out
}

struct PtxParser<'a> {
    text: &'a MappedText,
    tokens: Cursor<PtxToken>,
    sink: &'a mut Sink,
    out: Vec<PtxStmt>,
    /// The current instruction names texels.
    in_textures: bool,
    /// The coordinates behind the address that was read last.
    coordinates: Option<PtxOperand>,
}

/// Instructions with texels as operands.
const TEXTURES: [&str; 4] = ["tex", "tld4", "suld", "sust"];

impl PtxParser<'_> {
    fn run(&mut self) {
        loop {
            match self.tokens.peek() {
                PtxToken::End => return,
                PtxToken::Newline | PtxToken::Punct(';' | '{' | '}') => drop(self.tokens.advance()),
                _ => {
                    if self.statement().is_err() {
                        self.skip_statement();
                    }
                }
            }
        }
    }

    fn str(&self, range: &Range<usize>) -> &str {
        &self.text.as_str()[range.clone()]
    }

    fn eat(&mut self, c: char) -> bool {
        self.tokens.eat(PtxToken::Punct(c))
    }

    fn skip_newlines(&mut self) {
        while self.tokens.peek() == PtxToken::Newline {
            self.tokens.advance();
        }
    }

    fn skip_statement(&mut self) {
        while !matches!(
            self.tokens.peek(),
            PtxToken::End | PtxToken::Newline | PtxToken::Punct(';')
        ) {
            self.tokens.advance();
        }
    }

    fn fail<T>(&mut self, expected: &str) -> Result<T, ErrorReported> {
        let range = self.tokens.range();
        let span = self.text.span(range.clone());
        let found = match self.tokens.peek() {
            PtxToken::End | PtxToken::Newline => "the end of the line".to_string(),
            PtxToken::OpenComment => {
                self.sink.error(
                    "unterminated-comment",
                    span,
                    "this comment is never closed",
                    |d| d.label("expected `*/` after it"),
                );
                return Err(ErrorReported);
            }
            PtxToken::BadNumber => {
                let message = format!(
                    "`{}` is not an integer of at most 64 bits",
                    self.str(&range)
                );
                self.sink.error("bad-number", span, message, |d| {
                    d.label(
                        "expected an integer, or the bits of a floating-point number as \
                         in `0f3F800000`",
                    )
                });
                return Err(ErrorReported);
            }
            _ => format!("`{}`", self.str(&range)),
        };
        self.sink.error(
            "syntax",
            span,
            format!("expected {expected}, found {found}"),
            |d| d.label(format!("expected {expected}")),
        );
        Err(ErrorReported)
    }

    fn word(&mut self, expected: &str) -> Result<Range<usize>, ErrorReported> {
        if self.tokens.peek() == PtxToken::Word {
            Ok(self.tokens.advance().range)
        } else {
            self.fail(expected)
        }
    }

    fn statement(&mut self) -> Result<(), ErrorReported> {
        if self.tokens.peek() == PtxToken::Word && self.tokens.peek_at(1) == PtxToken::Punct(':') {
            let name = self.tokens.advance().range;
            self.tokens.advance();
            self.out.push(PtxStmt::Label(name));
            return Ok(());
        }
        let start = self.tokens.range().start;
        if self.eat('#') {
            let is_line =
                self.tokens.peek() == PtxToken::Word && self.str(&self.tokens.range()) == "line";
            let numbered =
                matches!(self.tokens.peek_at(1), PtxToken::Int(n) if u32::try_from(n).is_ok());
            if !is_line || !numbered || self.tokens.peek_at(2) != PtxToken::Str {
                return self.fail(
                    "`line`, the number of the next line and its file, as in `#line 17 \"k.ptx\"`",
                );
            }
            self.skip_statement();
            return Ok(());
        }
        if self.tokens.peek() == PtxToken::Word && self.str(&self.tokens.range()).starts_with('.') {
            return self.directive();
        }
        let pred = if self.eat('@') {
            let negated = self.eat('!');
            Some((negated, self.word("a predicate register")?))
        } else {
            None
        };
        let word = self.word("an instruction or a label")?;
        let (opcode, quals) = self.split(word);
        self.in_textures = TEXTURES.contains(&self.str(&opcode));
        let mut operands = Vec::new();
        let mut tiled = false;
        self.coordinates = None;
        // Operands of an unsupported instruction may have unknown forms. Collect the names in it:
        // it may write them.
        if outside::instruction(self.str(&opcode)).is_some() {
            while !matches!(
                self.tokens.peek(),
                PtxToken::End | PtxToken::Newline | PtxToken::Punct(';')
            ) {
                let range = self.tokens.advance().range;
                if self
                    .str(&range)
                    .starts_with(|c: char| c.is_ascii_alphabetic() || "%_$".contains(c))
                {
                    let name = NameOperand {
                        name: range.clone(),
                        brackets: false,
                        negated: false,
                        offset: 0,
                        index: 0,
                    };
                    operands.push(PtxOperand {
                        range,
                        kind: OperandKind::Name(name),
                    });
                }
            }
        }
        if !self.at_end() {
            loop {
                operands.push(self.operand()?);
                if let Some(coordinates) = self.coordinates.take() {
                    operands.push(coordinates);
                    tiled = true;
                }
                if !self.eat(',') {
                    break;
                }
                self.skip_newlines();
            }
        }
        if !self.at_end() {
            return self.fail("`,`, `;` or the end of the line");
        }
        let end = self.tokens.last().range.end;
        self.out.push(PtxStmt::Instr(RawInstr {
            range: start..end,
            pred,
            opcode,
            quals,
            operands,
            tiled,
        }));
        Ok(())
    }

    fn at_end(&self) -> bool {
        matches!(
            self.tokens.peek(),
            PtxToken::End | PtxToken::Newline | PtxToken::Punct(';' | '}')
        )
    }

    /// Splits a word such as `ld.weak.u32` at its dots.
    fn split(&self, word: Range<usize>) -> (Range<usize>, Vec<Range<usize>>) {
        let mut parts = Vec::new();
        let mut start = word.start;
        for piece in self.str(&word).split('.') {
            parts.push(start..start + piece.len());
            start += piece.len() + 1;
        }
        let opcode = parts.remove(0);
        (opcode, parts)
    }

    /// Reads `.reg`; skips line and pragma information.
    fn directive(&mut self) -> Result<(), ErrorReported> {
        let word = self.tokens.range();
        match self.str(&word) {
            ".loc" | ".file" | ".pragma" => {
                self.skip_statement();
                Ok(())
            }
            ".reg" => {
                self.tokens.advance();
                let ty = self.word("a register type such as `.u32`")?;
                loop {
                    let name = self.word("a register name")?;
                    let count = if self.eat('<') {
                        let PtxToken::Int(n) = self.tokens.peek() else {
                            return self.fail("a number of registers");
                        };
                        self.tokens.advance();
                        if !self.eat('>') {
                            return self.fail("`>`");
                        }
                        Some(n)
                    } else {
                        None
                    };
                    self.out.push(PtxStmt::Reg {
                        ty: ty.clone(),
                        name,
                        count,
                    });
                    if !self.eat(',') {
                        break;
                    }
                    self.skip_newlines();
                }
                if self.at_end() {
                    Ok(())
                } else {
                    self.fail("`,`, `;` or the end of the line")
                }
            }
            ".branchtargets" => {
                self.tokens.advance();
                let mut labels = Vec::new();
                loop {
                    self.skip_newlines();
                    labels.push(self.word("a label")?);
                    if !self.eat(',') {
                        break;
                    }
                }
                self.out.push(PtxStmt::Targets(labels));
                if self.at_end() {
                    Ok(())
                } else {
                    self.fail("`,`, `;` or the end of the line")
                }
            }
            other => {
                let message =
                    format!("the directive `{other}` is not supported inside a thread's code");
                let span = self.text.span(word.clone());
                self.sink
                    .error("unsupported-directive", span, message, |d| {
                        d.label("only `.reg` is read here")
                            .help("declare memory in the test's `[memory]` table")
                    });
                Err(ErrorReported)
            }
        }
    }

    fn integer(&mut self) -> Option<i64> {
        constant(self.text.as_str(), &mut self.tokens)
    }

    fn operand(&mut self) -> Result<PtxOperand, ErrorReported> {
        let start = self.tokens.range().start;
        let kind = self.operand_kind()?;
        let end = self.tokens.last().range.end.max(start);
        Ok(PtxOperand {
            range: start..end,
            kind,
        })
    }

    fn operand_kind(&mut self) -> Result<OperandKind, ErrorReported> {
        if let Some(value) = self.integer() {
            return Ok(OperandKind::Int(value));
        }
        match self.tokens.peek() {
            PtxToken::Fraction(v) => {
                self.tokens.advance();
                Ok(OperandKind::Fraction(v))
            }
            PtxToken::Punct('{') => {
                self.tokens.advance();
                let mut all = Vec::new();
                loop {
                    self.skip_newlines();
                    if self.tokens.peek() == PtxToken::Punct('{') {
                        return self.fail("an element of the vector");
                    }
                    all.push(self.operand()?);
                    self.skip_newlines();
                    if self.eat('}') {
                        return Ok(OperandKind::Vector(all));
                    }
                    if !self.eat(',') {
                        return self.fail("`,` or `}`");
                    }
                }
            }
            PtxToken::Punct('[') => {
                self.tokens.advance();
                self.skip_newlines();
                if self.integer().is_some() {
                    self.fail::<()>("a location or a register that holds an address")?;
                }
                let start = self.tokens.range().start;
                let mut name = self.name(true)?;
                let range = start..self.tokens.last().range.end;
                if self.in_textures && self.eat(',') {
                    return self.texel(PtxOperand {
                        range,
                        kind: OperandKind::Name(name),
                    });
                }
                name.brackets = true;
                if self.eat(',') {
                    self.skip_newlines();
                    if self.tokens.peek() != PtxToken::Punct('{') {
                        return self.fail("coordinates such as `{%r1, %r2}`");
                    }
                    self.coordinates = Some(self.operand()?);
                }
                if !self.eat(']') {
                    return self.fail("`]`");
                }
                // The address is one of a variable that hosts and devices name alike.
                if self.tokens.peek() == PtxToken::Word
                    && self.str(&self.tokens.range()) == ".unified"
                {
                    self.tokens.advance();
                }
                Ok(OperandKind::Name(name))
            }
            PtxToken::Punct('!') => {
                self.tokens.advance();
                let mut name = self.name(false)?;
                name.negated = true;
                Ok(OperandKind::Name(name))
            }
            PtxToken::Word if self.str(&self.tokens.range()) == "_" => {
                let range = self.tokens.range();
                self.tokens.advance();
                self.perhaps_pair(PtxOperand {
                    range,
                    kind: OperandKind::Discard,
                })
            }
            PtxToken::Word => {
                let name = self.name(true)?;
                self.perhaps_pair(PtxOperand {
                    range: name.name.clone(),
                    kind: OperandKind::Name(name),
                })
            }
            _ => self.fail("an operand"),
        }
    }

    /// The coordinates of a texel, behind the reference. A sampler before them changes no access.
    fn texel(&mut self, reference: PtxOperand) -> Result<OperandKind, ErrorReported> {
        self.skip_newlines();
        let mut coordinates = self.operand()?;
        if self.eat(',') {
            self.skip_newlines();
            coordinates = self.operand()?;
        }
        if !self.eat(']') {
            return self.fail("`]`");
        }
        let mut all = vec![reference];
        match coordinates.kind {
            OperandKind::Vector(coordinates) => all.extend(coordinates),
            _ => all.push(coordinates),
        }
        Ok(OperandKind::Texel(all))
    }

    /// The operand, or a pair if `|` and a second one follow.
    fn perhaps_pair(&mut self, first: PtxOperand) -> Result<OperandKind, ErrorReported> {
        if !self.eat('|') {
            return Ok(first.kind);
        }
        let second = self.name(false)?;
        let second = PtxOperand {
            range: second.name.clone(),
            kind: OperandKind::Name(second),
        };
        Ok(OperandKind::Pair(vec![first, second]))
    }

    /// Parses `name`, `name[2]` or `name+4`.
    fn name(&mut self, address: bool) -> Result<NameOperand, ErrorReported> {
        let name = self.word("a name")?;
        let mut operand = NameOperand {
            name,
            brackets: false,
            negated: false,
            offset: 0,
            index: 0,
        };
        if !address {
            return Ok(operand);
        }
        if self.tokens.peek() == PtxToken::Punct('[') {
            self.tokens.advance();
            operand.index = match self.integer() {
                Some(index) => index,
                None => return self.fail("an element number"),
            };
            if !self.eat(']') {
                return self.fail("`]`");
            }
        }
        if let PtxToken::Punct(sign @ ('+' | '-')) = self.tokens.peek() {
            self.tokens.advance();
            let Some(offset) = self.integer() else {
                return self.fail("an offset in bytes");
            };
            operand.offset = if sign == '-' {
                offset.wrapping_neg()
            } else {
                offset
            };
        }
        Ok(operand)
    }
}
