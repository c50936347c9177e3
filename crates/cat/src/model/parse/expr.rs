//! Parses expressions by precedence climbing.
//!
//! Loosest to tightest: `|`, `;`, `\`, `&`, then the cartesian `*`, prefix `~`, postfix operators,
//! application. Cartesian and postfix `*` look alike: it is cartesian if an operand follows.

use super::super::ast::{CatExpr, CatExprKind, ChainOp, Ident, UnaryOp};
use super::super::lex::CatTok;
use super::{CatParser, ParseResult, STATEMENT_WORDS, SyntaxError, reserved};
use diag::{Diagnostic, Span};

/// The limit on postfix operators of one operand; each makes the tree one level deeper.
const MAX_POSTFIX: usize = 8;

impl CatParser<'_> {
    /// A chain of binary operators that bind at least as tightly as `min`.
    pub(super) fn binary(&mut self, min: u8) -> ParseResult<CatExpr> {
        let mut left = self.product()?;
        // The operator of the chain `left`, unless brackets closed it.
        let mut open = None;
        while let Some((chain, level)) = self.operator().filter(|&(_, level)| level >= min) {
            self.tokens.advance();
            let right = self.binary(level + 1)?;
            let span = left.span.to(right.span);
            left = match (chain, left.kind) {
                (Some(op), CatExprKind::Chain(same, mut list))
                    if open == Some(op) && same == op =>
                {
                    list.push(right);
                    CatExpr {
                        kind: CatExprKind::Chain(op, list),
                        span,
                    }
                }
                (Some(op), kind) => {
                    let first = CatExpr {
                        kind,
                        span: left.span,
                    };
                    CatExpr {
                        kind: CatExprKind::Chain(op, vec![first, right]),
                        span,
                    }
                }
                (None, _) => self.unsupported_expr("++", span),
            };
            open = chain;
        }
        Ok(left)
    }

    /// The binary operator at the current token, with its level; the inner `None` is an unsupported
    /// operator.
    fn operator(&self) -> Option<(Option<ChainOp>, u8)> {
        match self.tok() {
            CatTok::Sym("|") => Some((Some(ChainOp::Union), 0)),
            CatTok::Sym("++") => Some((None, 1)),
            CatTok::Sym(";") => Some((Some(ChainOp::Seq), 2)),
            CatTok::Sym("\\") => Some((Some(ChainOp::Diff), 3)),
            CatTok::Sym("&") => Some((Some(ChainOp::Inter), 4)),
            _ => None,
        }
    }

    fn product(&mut self) -> ParseResult<CatExpr> {
        let first = self.unary()?;
        if !(self.is_sym("*") && self.operand_at(1)) {
            return Ok(first);
        }
        let mut list = vec![first];
        while self.is_sym("*") && self.operand_at(1) {
            self.tokens.advance();
            list.push(self.unary()?);
        }
        let span = list[0].span.to(self.before());
        Ok(CatExpr {
            kind: CatExprKind::Chain(ChainOp::Product, list),
            span,
        })
    }

    /// Whether the token `ahead` of the current one can begin an operand.
    fn operand_at(&self, ahead: usize) -> bool {
        match self.tokens.peek_at(ahead) {
            CatTok::Name(word) => !reserved(word),
            CatTok::Zero | CatTok::Sym("(" | "[" | "{") => true,
            // `r* ~empty x`: the tilde belongs to the next statement.
            CatTok::Sym("~") => {
                let next = self.tokens.peek_at(ahead + 1);
                !matches!(next, CatTok::Name(w) if STATEMENT_WORDS.contains(&w))
            }
            _ => false,
        }
    }

    fn unary(&mut self) -> ParseResult<CatExpr> {
        let start = self.span();
        if self.take_sym("~") {
            let inner = self.nested(Self::unary)?;
            let span = start.to(inner.span);
            return Ok(CatExpr {
                kind: CatExprKind::Unary(UnaryOp::Not, Box::new(inner)),
                span,
            });
        }
        let mut expr = self.primary()?;
        for count in 0.. {
            let op = match self.tok() {
                CatTok::Sym("^-1") => UnaryOp::Inverse,
                CatTok::Sym("?") => UnaryOp::Optional,
                CatTok::Sym("+") => UnaryOp::Plus,
                CatTok::Sym("^*") => UnaryOp::Star,
                CatTok::Sym("*") if !self.operand_at(1) => UnaryOp::Star,
                _ => break,
            };
            if count == MAX_POSTFIX {
                return Err(self.unexpected("at most eight postfix operators in a row"));
            }
            self.tokens.advance();
            let span = start.to(self.before());
            expr = CatExpr {
                kind: CatExprKind::Unary(op, Box::new(expr)),
                span,
            };
        }
        Ok(expr)
    }

    pub(super) fn primary(&mut self) -> ParseResult<CatExpr> {
        let start = self.span();
        match self.tok() {
            CatTok::Name(word) => self.word(word, start),
            CatTok::Zero => {
                self.tokens.advance();
                Ok(CatExpr {
                    kind: CatExprKind::Zero,
                    span: start,
                })
            }
            CatTok::Sym("(") => {
                self.tokens.advance();
                let inner = self.nested(Self::expr)?;
                if self.is_sym(",") {
                    while self.take_sym(",") {
                        self.nested(Self::expr)?;
                    }
                    self.close("(", ")", start)?;
                    return Ok(self.unsupported_expr("(…, …)", start.to(self.before())));
                }
                self.close("(", ")", start)?;
                Ok(inner)
            }
            CatTok::Sym("[") => {
                self.tokens.advance();
                let inner = self.nested(Self::expr)?;
                self.close("[", "]", start)?;
                let span = start.to(self.before());
                Ok(CatExpr {
                    kind: CatExprKind::Unary(UnaryOp::Identity, Box::new(inner)),
                    span,
                })
            }
            CatTok::Sym("{") => {
                self.tokens.advance();
                if self.take_sym("}") {
                    return Ok(CatExpr {
                        kind: CatExprKind::EmptySet,
                        span: start.to(self.before()),
                    });
                }
                while !matches!(self.tok(), CatTok::End | CatTok::Sym("}")) {
                    self.tokens.advance();
                }
                self.close("{", "}", start)?;
                Ok(self.unsupported_expr("{…}", start.to(self.before())))
            }
            _ => Err(self.unexpected("an expression")),
        }
    }

    /// Parses an expression that begins with a word: a name, an application or one of the long
    /// forms.
    fn word(&mut self, word: &str, start: Span) -> ParseResult<CatExpr> {
        match word {
            "_" => {
                self.tokens.advance();
                Ok(CatExpr {
                    kind: CatExprKind::Universe,
                    span: start,
                })
            }
            "let" => self.nested(|p| p.let_in(start)),
            "if" => self.nested(|p| p.if_expr(start)),
            "try" => self.nested(|p| p.try_expr(start)),
            "match" => self.match_expr(start),
            "fun" => self.nested(|p| p.fun_expr(start)),
            _ if reserved(word) => Err(self.unexpected("an expression")),
            _ => {
                self.tokens.advance();
                let name = Ident {
                    name: word.to_string(),
                    span: start,
                };
                let args = match self.tok() {
                    CatTok::Sym("(") => self.arguments()?,
                    CatTok::Sym("{") | CatTok::Zero => vec![self.primary()?],
                    CatTok::Name(next) if !reserved(next) => vec![self.nested(Self::primary)?],
                    _ => {
                        return Ok(CatExpr {
                            kind: CatExprKind::Name(name.name),
                            span: start,
                        });
                    }
                };
                Ok(CatExpr {
                    kind: CatExprKind::Call(name, args),
                    span: start.to(self.before()),
                })
            }
        }
    }

    /// `(e, …)`, possibly empty.
    pub(super) fn arguments(&mut self) -> ParseResult<Vec<CatExpr>> {
        let start = self.span();
        self.expect("(")?;
        let mut args = Vec::new();
        while !self.is_sym(")") {
            args.push(self.nested(Self::expr)?);
            if !self.take_sym(",") {
                break;
            }
        }
        self.close("(", ")", start)?;
        Ok(args)
    }

    fn let_in(&mut self, start: Span) -> ParseResult<CatExpr> {
        self.tokens.advance();
        let recursive = self.take_word("rec");
        let bindings = self.bindings()?;
        if !self.take_word("in") {
            return Err(self.unexpected("`in`"));
        }
        let body = self.expr()?;
        let span = start.to(self.before());
        if recursive {
            return Ok(self.unsupported_expr("let rec … in", span));
        }
        Ok(CatExpr {
            kind: CatExprKind::Let(bindings, Box::new(body)),
            span,
        })
    }

    fn if_expr(&mut self, start: Span) -> ParseResult<CatExpr> {
        self.tokens.advance();
        let variant = self.text("the name of a variant in quotes")?;
        if !self.take_word("then") {
            return Err(self.unexpected("`then`"));
        }
        let yes = self.expr()?;
        if !self.take_word("else") {
            return Err(self.unexpected("`else`"));
        }
        let no = self.expr()?;
        Ok(CatExpr {
            kind: CatExprKind::If(variant, Box::new(yes), Box::new(no)),
            span: start.to(self.before()),
        })
    }

    fn try_expr(&mut self, start: Span) -> ParseResult<CatExpr> {
        self.tokens.advance();
        let first = self.expr()?;
        if !self.take_word("with") {
            return Err(self.unexpected("`with`"));
        }
        let second = self.expr()?;
        Ok(CatExpr {
            kind: CatExprKind::Try(Box::new(first), Box::new(second)),
            span: start.to(self.before()),
        })
    }

    /// Skips `match … end` as a whole: sets of sets have no counterpart in the relational IR.
    fn match_expr(&mut self, start: Span) -> ParseResult<CatExpr> {
        let mut open = 0usize;
        loop {
            if self.is_word("match") {
                open += 1;
            } else if self.is_word("end") {
                open -= 1;
            } else if matches!(self.tok(), CatTok::End) {
                return Err(self.unexpected("`end` of `match`"));
            }
            self.tokens.advance();
            if open == 0 {
                return Ok(self.unsupported_expr("match", start.to(self.before())));
            }
        }
    }

    fn fun_expr(&mut self, start: Span) -> ParseResult<CatExpr> {
        self.tokens.advance();
        if self.is_sym("(") {
            self.parameters()?;
        } else {
            self.name("a parameter")?;
        }
        self.expect("->")?;
        self.expr()?;
        Ok(self.unsupported_expr("fun", start.to(self.before())))
    }

    /// An expression that is kept as text; only its use is an error.
    fn unsupported_expr(&self, what: &str, span: Span) -> CatExpr {
        let text = self.source.text[span.range()].to_string();
        CatExpr {
            kind: CatExprKind::Unsupported(what.to_string(), text),
            span,
        }
    }

    fn close(&mut self, opening: &str, closing: &'static str, start: Span) -> ParseResult<()> {
        if self.take_sym(closing) {
            return Ok(());
        }
        let reported: SyntaxError = self.unexpected(&format!("`{closing}`"));
        if let Some(last) = self.diagnostics.pop() {
            let last: Diagnostic = last.also(start, format!("`{opening}` opened here"));
            self.diagnostics.push(last);
        }
        Err(reported)
    }
}
