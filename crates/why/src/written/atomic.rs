//! Writes plain accesses to memory as atomic ones.

use std::ops::Range;

use diag::Span;
use front::litmus::{Splice, respelled};
use program::strength::{self, Order};
use program::writing::AtomicAccess;
use program::{LocId, Op, Scope, Ty};

use super::{Source, within};
use crate::knobs::{Knob, KnobLevel, Spot, Written, instr, spots};

/// An access to memory as an expression.
struct Accessed {
    /// The replaced text.
    range: Range<usize>,
    /// The object.
    place: String,
    function: &'static str,
    /// The stored or added value: a part of the text, or else 1.
    value: Option<Range<usize>>,
    spots: Vec<Spot>,
}

impl Source<'_> {
    /// Plain accesses to memory in the code.
    fn plain(&self) -> Vec<Accessed> {
        (0..self.tokens.len())
            .filter_map(|at| self.accessed(at))
            .collect()
    }

    /// The plain access to the object that a token names.
    fn accessed(&self, at: usize) -> Option<Accessed> {
        let (text, program) = (self.text(), &self.test.program);
        let word = self.token(at);
        let named = program
            .locations
            .iter()
            .position(|l| l.name == word)
            .map(|l| LocId(l as u16));
        fn is_word(token: &str) -> bool {
            token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        }
        if !is_word(word)
            || word.starts_with(char::is_numeric)
            || matches!(self.before(at, 1), "." | "->" | "::")
        {
            return None;
        }
        let mut last = at;
        while self.token(last + 1) == "[" {
            last = self.closing(last + 1)?;
        }
        let mut first = at;
        let mut place = text[self.tokens[at].start..self.tokens[last].end].to_owned();
        let mut object = named.is_some() && self.writing.objects || last > at;
        match self.before(at, 1) {
            // `*(volatile int*)&x`
            "&" if self.before(at, 2) == ")" => {
                first = self.opening(at.checked_sub(2)?)?.checked_sub(1)?;
                object = self.token(first) == "*";
            }
            "&" => return None,
            "*" if !is_word(self.before(at, 2)) && !matches!(self.before(at, 2), ")" | "]") => {
                first = at - 1;
                place.insert(0, '*');
                object = last == at;
            }
            _ => {}
        }
        let start = self.tokens[first].start;
        let value = |from: usize| {
            let end = (from..self.tokens.len()).find(|&i| self.token(i) == ";")?;
            let start = self.tokens.get(from)?.start;
            Some(start..start + text[start..self.tokens[end].start].trim_end().len())
        };
        let stands_alone = matches!(self.before(first, 1), "" | ";" | "{" | "}" | ")");
        let (function, value, end) = match self.token(last + 1) {
            "(" => return None,
            "++" if stands_alone => ("fetch_add", None, self.tokens[last + 1].end),
            sign @ ("=" | "+=" | "-=" | "&=" | "|=" | "^=") if stands_alone => {
                let functions = [
                    ("=", "store"),
                    ("+=", "fetch_add"),
                    ("-=", "fetch_sub"),
                    ("&=", "fetch_and"),
                    ("|=", "fetch_or"),
                ];
                let function = functions
                    .iter()
                    .find(|f| f.0 == sign)
                    .map_or("fetch_xor", |f| f.1);
                let value = value(last + 2)?;
                (function, Some(value.clone()), value.end)
            }
            _ => ("load", None, self.tokens[last].end),
        };
        let wanted = |op: &Op| {
            let base = op.address().and_then(|address| address.base());
            let here = named.is_none() || base.is_none() || base == named;
            let kind = match function {
                "load" => op.read().is_some(),
                "store" => op.write().is_some(),
                _ => true,
            };
            here && kind && strength::is_plain(op)
        };
        let inside = |spot: &Spot| {
            let instr = instr(program, *spot);
            wanted(&instr.op)
                && within(
                    Span::new(start, end.min(instr.span.end as usize)),
                    instr.span,
                )
        };
        let spots: Vec<Spot> = spots(program).filter(inside).collect();
        let accessed = Accessed {
            range: start..end,
            place,
            function,
            value,
            spots,
        };
        (object && !accessed.spots.is_empty()).then_some(accessed)
    }

    /// Accesses as atomic ones; `None` if the type of an object has no name.
    fn atomic(&self, all: &[&Accessed], order: Order, scope: Option<Scope>) -> Option<Vec<Splice>> {
        // A stored value may hold another access.
        fn holds(outer: &Accessed, inner: &Accessed) -> bool {
            let value = outer.value.as_ref();
            value.is_some_and(|value| {
                value.start <= inner.range.start && inner.range.end <= value.end
            })
        }
        let mut splices = Vec::new();
        for one in all
            .iter()
            .filter(|one| !all.iter().any(|outer| holds(outer, one)))
        {
            let inner: Vec<&Accessed> = all
                .iter()
                .copied()
                .filter(|inner| holds(one, inner))
                .collect();
            let mut inner = self.atomic(&inner, order, scope)?;
            let declared = inner
                .iter()
                .position(|s| !one.range.contains(&(s.span.start as usize)));
            splices.extend(declared.map(|at| inner.swap_remove(at)));
            let value = one
                .value
                .as_ref()
                .map(|value| filled(self.text(), value.clone(), &inner));
            splices.extend(self.atomic_one(one, value, order, scope)?);
        }
        splices.sort_unstable();
        splices.dedup();
        Some(splices)
    }

    fn atomic_one(
        &self,
        accessed: &Accessed,
        value: Option<String>,
        order: Order,
        scope: Option<Scope>,
    ) -> Option<Vec<Splice>> {
        let op = &instr(&self.test.program, accessed.spots[0]).op;
        let ty = type_name(op.accesses().next()?.ty)?;
        let order = match (accessed.function, order) {
            ("load", Order::AcqRel) => Order::Acquire,
            ("store", Order::AcqRel) => Order::Release,
            _ => order,
        };
        let scope = scope.map_or(String::new(), |scope| self.row.scope_word(scope));
        let value = value.or_else(|| (accessed.function == "fetch_add").then(|| "1".to_owned()));
        let text = (self.writing.access)(&AtomicAccess {
            function: accessed.function,
            ty,
            place: &accessed.place,
            expected: None,
            value: value.as_deref(),
            order: self.row.order_word(order),
            scope: &scope,
        });
        let span = Span::new(accessed.range.start, accessed.range.end);
        let named = op
            .address()
            .and_then(|address| address.base())
            .filter(|_| !self.writing.objects);
        let declared =
            named.and_then(|loc| self.declared_plain(&self.test.program.location(loc).name, ty));
        Some(
            [Splice { span, text }]
                .into_iter()
                .chain(declared)
                .collect(),
        )
    }

    /// The type in the declaration of a location, made atomic, if it is another one.
    fn declared_plain(&self, name: &str, ty: &str) -> Option<Splice> {
        let mut at = 0;
        for line in self.text().split_inclusive('\n') {
            let (quoted, start) = (format!("\"{ty}\""), at);
            at += line.len();
            let rest = line.trim_start().strip_prefix(name).map(str::trim_start);
            if let (true, Some(found)) = (
                rest.is_some_and(|rest| rest.starts_with('=')),
                line.find(&quoted),
            ) {
                let start = start + found + 1;
                let text = format!("atomic_{ty}");
                return Some(Splice {
                    span: Span::new(start, start + ty.len()),
                    text,
                });
            }
        }
        None
    }

    /// A knob for each plain access.
    pub(crate) fn accesses(&self, wide: Scope) -> Vec<Knob> {
        let scope = (!self.row.scopes.is_empty()).then_some(wide);
        let mut knobs = Vec::new();
        for accessed in self.plain() {
            let orders = [Order::Relaxed, Order::AcqRel];
            let levels: Vec<KnobLevel> = orders
                .into_iter()
                .filter_map(|order| self.atomic_level(&[&accessed], order, scope))
                .collect();
            if !levels.is_empty() {
                knobs.push(Knob::written_so(Written::More, &accessed.spots, levels));
            }
        }
        knobs
    }

    /// A level at which accesses are atomic; `None` if the front end refuses it.
    fn atomic_level(
        &self,
        all: &[&Accessed],
        order: Order,
        scope: Option<Scope>,
    ) -> Option<KnobLevel> {
        let splices = self.atomic(all, order, scope)?;
        respelled(self.test, &splices)?;
        Some(KnobLevel::text(splices))
    }

    /// All plain accesses to a location together.
    pub(crate) fn atomicity(&self, loc: LocId, accesses: &[Spot]) -> Option<Knob> {
        let mut plain = self.plain();
        plain.retain(|a| a.spots.iter().any(|s| accesses.contains(s)));
        let plain: Vec<&Accessed> = plain.iter().collect();
        let mut scopes: Vec<Option<Scope>> = self.row.choices().into_iter().map(Some).collect();
        if scopes.is_empty() {
            scopes.push(None);
        }
        let mut levels = Vec::new();
        for order in [Order::Relaxed, Order::AcqRel, Order::SeqCst] {
            for scope in &scopes {
                let level = self.atomic_level(&plain, order, *scope);
                levels.extend(level.map(|level| level.called(self.row.order_word(order))));
            }
        }
        (!levels.is_empty())
            .then(|| Knob::written_so(Written::More, accesses, levels).of_location(loc))
    }

    /// The index of the bracket that closes one, and of the one that opens it.
    pub(super) fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0;
        (open..self.tokens.len()).find(|&i| {
            depth += level(self.token(i));
            depth == 0
        })
    }

    pub(super) fn opening(&self, close: usize) -> Option<usize> {
        let mut depth = 0;
        (0..=close).rev().find(|&i| {
            depth += level(self.token(i));
            depth == 0
        })
    }
}

fn level(token: &str) -> i32 {
    match token {
        "(" | "[" => 1,
        ")" | "]" => -1,
        _ => 0,
    }
}

/// The name of a type in all languages.
fn type_name(ty: Ty) -> Option<&'static str> {
    match (ty.bits, ty.signed) {
        (32, true) => Some("int"),
        (32, false) => Some("unsigned"),
        (64, true) => Some("long"),
        _ => None,
    }
}

/// A part of a text with parts of it replaced.
fn filled(text: &str, range: Range<usize>, splices: &[Splice]) -> String {
    let (mut new, mut at) = (String::new(), range.start);
    for splice in splices {
        let span = splice.span.range();
        new += &text[at..span.start];
        new += &splice.text;
        at = span.end;
    }
    new + &text[at..range.end]
}
