//! Parses `--arg`: binds a parameter to a value, or to a buffer of elements or structures with
//! initial values.

use std::collections::BTreeMap;

use super::super::toml::{is_identifier, tensor_shape};
use super::super::write::quote;
use crate::isa::ptx::{format_named, type_named};
use program::{FloatOp, Format, NumberType, Rounding, Ty};

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ParameterValue {
    /// An integer.
    Scalar(i64),
    /// A number that is not an integer.
    Float(f64),
    /// A tensor map of a buffer, with the shape of its tensor.
    Tensor { buffer: String, shape: String },
    /// The address of a buffer, or of an element of one.
    Buffer {
        name: String,
        index: Option<u64>,
        made: BufferContents,
    },
}

/// The contents of a buffer; `None`: not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BufferContents {
    /// The types of an element's fields. A single type means that it is not a structure; empty
    /// means that the types are not given.
    pub(super) fields: Vec<String>,
    pub(super) elements: Option<u64>,
    /// Initial values, field by field.
    pub(super) init: Option<Vec<First>>,
    /// The format of its elements, if they are floating-point numbers.
    pub(super) number: Option<Format>,
}

/// The initial value of a field or a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum First {
    Bits(i64),
    /// The address of an element of a buffer or variable.
    Address(String, u64),
}

/// The layout of a structure, as in C: each field begins at a multiple of its size.
struct Laid {
    /// The type of the smallest field: structures become arrays of such elements.
    element: Ty,
    /// The size of the structure in bytes.
    bytes: u64,
    /// The offset and size of each field.
    fields: Vec<(u64, u64)>,
}

impl Laid {
    /// Lays out fields by the names of their types; `None` if a name is not a type.
    fn new(fields: &[String]) -> Option<Laid> {
        let types: Vec<Ty> = fields
            .iter()
            .map(|name| type_named(name))
            .collect::<Option<_>>()?;
        let element = *types.iter().min_by_key(|ty| ty.bits)?;
        let largest = types.iter().map(|ty| u64::from(ty.bytes())).max()?;
        let mut bytes = 0u64;
        let fields = types
            .iter()
            .map(|ty| {
                let size = u64::from(ty.bytes());
                let at = bytes.next_multiple_of(size);
                bytes = at + size;
                (at, size)
            })
            .collect();
        Some(Laid {
            element,
            bytes: bytes.next_multiple_of(largest),
            fields,
        })
    }

    /// The number of elements of the smallest type in a structure.
    fn cells(&self) -> u64 {
        self.bytes / u64::from(self.element.bytes())
    }
}

/// The maximum number of elements in a buffer.
const LONGEST: u64 = 65_536;

/// The word for bytes whose contents accesses decide, and the maximum number of them.
pub(super) const BYTES: &str = "bytes";
pub(super) const MOST_BYTES: u64 = 16 * LONGEST;

/// The number of bytes in a word.
pub(super) const WORD: u64 = 4;

/// The form of a binding, for messages.
pub(super) const FORM: &str = "`NAME=VALUE`: VALUE is a number, `buffer:u32[4]=1,2,3,4` (type, \
    length, first values), `buffer` again, or `&buffer[2]`; a type can be a structure `{u64,u32}` \
    or `bytes` (accesses decide the layout); `&buffer[2]` can be a first value of 64 bits; a \
    tensor map is `tensor(buffer, b16[64,128] box[64,8] swizzle128)`";

/// The format of a floating-point type, with the integer type of the same size; `None` for an
/// integer type.
pub(super) fn float(ty: &str) -> Option<(Format, &'static str)> {
    let format = format_named(ty).filter(|_| !ty.ends_with("x2"))?;
    Some((format, ["u16", "u32", "u64"][usize::from(format.bits / 32)]))
}

/// The bits of a number, rounded to nearest even.
pub(super) fn rounded(to: Format, number: f64) -> i64 {
    FloatOp::To(NumberType::Float(to), Rounding::Nearest).apply(
        Format::DOUBLE,
        number.to_bits() as i64,
        0,
    )
}

/// A number with a fraction or an exponent, in decimal notation.
fn fraction(text: &str) -> Option<f64> {
    let digits = text.trim().trim_start_matches('-');
    let plain = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || ["inf", "nan"].contains(&digits);
    text.trim().parse().ok().filter(|_| plain)
}

/// An integer, in decimal or hexadecimal notation.
fn integer(text: &str) -> Option<i64> {
    let (minus, digits) = text
        .trim()
        .strip_prefix('-')
        .map_or((false, text.trim()), |rest| (true, rest));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse::<u64>().ok()?,
    };
    Some(if minus {
        (value as i64).wrapping_neg()
    } else {
        value as i64
    })
}

/// The first values in a list, for elements with fields of these types in turn.
fn first_values(list: &str, types: &[&str]) -> Option<Vec<First>> {
    let values = list.split(',').enumerate();
    values
        .map(|(at, text)| {
            let ty = match types {
                [] => "",
                _ => types[at % types.len()],
            };
            first_value(text, ty)
        })
        .collect()
}

/// A first value of a type; an empty one is unknown.
fn first_value(text: &str, ty: &str) -> Option<First> {
    let is_wide = ty.is_empty() || type_named(ty).is_some_and(|ty| ty.bits == 64);
    match (text.trim().strip_prefix('&'), float(ty)) {
        (Some(place), None) if is_wide => {
            pointed(place).map(|(name, index)| First::Address(name, index))
        }
        (Some(_), _) => None,
        (None, Some((format, _))) => fraction(text).map(|v| First::Bits(rounded(format, v))),
        (None, None) => integer(text).map(First::Bits),
    }
}

/// Splits `place[count]`.
fn split_count<'a>(place: &'a str, typed: &str) -> Option<(&'a str, Option<u64>)> {
    let counted = place
        .strip_suffix(']')
        .and_then(|rest| rest.rsplit_once('['));
    let Some((place, count)) = counted else {
        return Some((place, None));
    };
    let most = if place.trim() == BYTES || typed == BYTES {
        MOST_BYTES
    } else {
        LONGEST
    };
    let count = count.trim().parse().ok().filter(|n| *n <= most)?;
    Some((place, Some(count)))
}

impl ParameterValue {
    /// Parses the text after `NAME=`. A structure without a buffer name describes the buffer
    /// `NAME`.
    pub(super) fn of(name: &str, text: &str) -> Option<ParameterValue> {
        match text.trim_start().starts_with('{') {
            true => ParameterValue::parse(&format!("{name}:{text}")),
            false => ParameterValue::parse(text),
        }
    }

    fn parse(text: &str) -> Option<ParameterValue> {
        let text = text.trim();
        if let Some(value) = integer(text) {
            return Some(ParameterValue::Scalar(value));
        }
        if let Some(value) = fraction(text) {
            return Some(ParameterValue::Float(value));
        }
        if let Some(tensor) = text
            .strip_prefix("tensor(")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            return ParameterValue::of_tensor(tensor);
        }
        ParameterValue::parse_buffer(text)
    }

    /// Parses `buffer, b16[64,128] box[64,8]`.
    fn of_tensor(text: &str) -> Option<ParameterValue> {
        let (buffer, shape) = text.split_once(',')?;
        let (buffer, shape) = (buffer.trim().to_owned(), shape.trim().to_owned());
        (is_identifier(&buffer) && tensor_shape(&shape).is_ok())
            .then_some(ParameterValue::Tensor { buffer, shape })
    }

    /// Parses `buffer:u32[4]=1,2` and the like.
    fn parse_buffer(text: &str) -> Option<ParameterValue> {
        let (place, init) = text
            .split_once('=')
            .map_or((text, None), |(place, init)| (place, Some(init)));
        let typed = place
            .split_once(':')
            .map_or("", |(_, ty)| ty.split('[').next().unwrap_or(ty).trim());
        let structure = typed
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        let fields: Vec<&str> = match (structure, typed) {
            (Some(fields), _) => fields.split(',').map(str::trim).collect(),
            (None, "") => Vec::new(),
            (None, one) => vec![one],
        };
        // In `f32[4]=0.5` the type is in the place of a name: the binding is for a named buffer.
        let alone = place.split('[').next().unwrap_or(place).trim();
        let init = match init {
            None => None,
            Some(list) if fields.is_empty() && float(alone).is_some() => {
                Some(first_values(list, &[alone])?)
            }
            Some(list) => Some(first_values(list, &fields)?),
        };
        let (place, count) = split_count(place, typed)?;
        let (address, place) = place
            .strip_prefix('&')
            .map_or((false, place), |rest| (true, rest));
        let name = place
            .split_once(':')
            .map_or(place, |(name, _)| name)
            .trim()
            .to_owned();
        if address && (place.contains(':') || init.is_some()) {
            return None;
        }
        let number = match fields[..] {
            [one] => float(one).map(|(format, _)| format),
            _ => None,
        };
        // A floating-point number is stored as its bits.
        let fields: Vec<String> = fields
            .into_iter()
            .map(|ty| float(ty).map_or(ty, |(_, bits)| bits).to_owned())
            .collect();
        let laid = Laid::new(&fields);
        let fits = |laid: &Laid| laid.cells() * count.unwrap_or(1) <= LONGEST;
        let is_laid_out = match &laid {
            Some(laid) => fits(laid),
            None => structure.is_none(),
        };
        let init_fits = init
            .as_ref()
            .is_none_or(|list| list.len() as u64 <= LONGEST);
        // Bytes can have no initial values except zeros.
        let started = fields == [BYTES] && !init.as_deref().is_none_or(all_zeros);
        if !init_fits || !is_laid_out || started || !is_identifier(&name) {
            return None;
        }
        let (index, elements) = if address {
            (count, None)
        } else {
            (None, count)
        };
        Some(ParameterValue::Buffer {
            name,
            index,
            made: BufferContents {
                fields,
                elements,
                init,
                number,
            },
        })
    }
}

fn all_zeros(init: &[First]) -> bool {
    init.iter().all(|first| *first == First::Bits(0))
}

/// Parses `buffer` or `buffer[2]` into a name and an index.
fn pointed(place: &str) -> Option<(String, u64)> {
    let (name, index) = match place
        .trim()
        .strip_suffix(']')
        .and_then(|rest| rest.split_once('['))
    {
        Some((name, index)) => (name, index.trim().parse().ok().filter(|n| *n <= LONGEST)?),
        None => (place, 0),
    };
    let name = name.trim().to_owned();
    is_identifier(&name).then_some((name, index))
}

impl First {
    /// The value as a test writes it.
    pub(super) fn text(&self, memory: &BTreeMap<String, BufferContents>) -> String {
        let (name, index) = match self {
            First::Bits(value) => return value.to_string(),
            First::Address(name, index) => (name, index),
        };
        let cells = memory
            .get(name)
            .and_then(|made| Laid::new(&made.fields))
            .map_or(1, |laid| laid.cells());
        match index.saturating_mul(cells) {
            0 => quote(&format!("&{name}")),
            index => quote(&format!("&{name}[{index}]")),
        }
    }
}

impl BufferContents {
    /// Whether neither types nor size nor values are given.
    pub(super) fn is_unsaid(&self) -> bool {
        self.fields.is_empty() && self.elements.is_none() && self.init.is_none()
    }

    /// The contents, with as many elements as fill `bytes`; `None` if the type or the number of
    /// elements does not fit.
    pub(super) fn filling(mut self, bytes: u64) -> Option<BufferContents> {
        let own = Laid::new(&self.fields)?.bytes;
        let elements = *self.elements.get_or_insert(bytes / own);
        (elements.checked_mul(own) == Some(bytes)).then_some(self)
    }

    /// The contents extended to whole words. If the initial values are all 0, the buffer becomes
    /// bytes, and accesses decide its types.
    pub(super) fn of_words(mut self, bytes: u64) -> BufferContents {
        let bytes = bytes.next_multiple_of(WORD);
        self.init = self.init.filter(|init| !all_zeros(init));
        match (&self.init, Laid::new(&self.fields)) {
            (None, _) => (self.fields, self.elements) = (vec![BYTES.to_owned()], Some(bytes)),
            (Some(_), Some(laid)) => self.elements = Some(bytes / laid.bytes),
            (Some(_), None) => {}
        }
        self
    }

    /// The initial values, the number of elements and their type.
    pub(super) fn object(
        &self,
        memory: &BTreeMap<String, BufferContents>,
    ) -> (Vec<String>, u64, Option<String>) {
        let init = self.init.as_deref().unwrap_or_default();
        let points = init.iter().any(|first| matches!(first, First::Address(..)));
        let fields = if points && self.fields.is_empty() {
            vec!["u64".to_owned()]
        } else {
            self.fields.clone()
        };
        let Some(laid) = Laid::new(&fields).filter(|_| fields.len() > 1) else {
            let values: Vec<String> = init.iter().map(|first| first.text(memory)).collect();
            let elements = self.elements.unwrap_or(1).max(values.len() as u64);
            return (values, elements, fields.first().cloned());
        };
        let size = u64::from(laid.element.bytes());
        let structures = self
            .elements
            .unwrap_or(1)
            .max(init.len().div_ceil(fields.len()) as u64);
        let mut values = vec![
            "0".to_owned();
            if init.is_empty() {
                0
            } else {
                (structures * laid.cells()) as usize
            }
        ];
        for (n, first) in init.iter().enumerate() {
            let (at, bytes) = laid.fields[n % fields.len()];
            let at = ((n / fields.len()) as u64 * laid.bytes + at) / size;
            match first {
                First::Address(..) => values[at as usize] = first.text(memory),
                First::Bits(value) => {
                    for k in 0..bytes / size {
                        let piece = laid.element.wrap(value >> (8 * size * k));
                        values[(at + k) as usize] = piece.to_string();
                    }
                }
            }
        }
        (
            values,
            structures * laid.cells(),
            Some(laid.element.ptx_name()),
        )
    }
}

/// The contents that a binding gives to a variable or a named buffer: `u32[4]=1,2`.
pub(super) fn of_type(binding: &ParameterValue) -> Option<BufferContents> {
    let ParameterValue::Buffer {
        name,
        index: None,
        made,
    } = binding
    else {
        return None;
    };
    // A floating-point number is stored as its bits.
    let (number, word) =
        float(name).map_or((None, name.as_str()), |(format, bits)| (Some(format), bits));
    let ty = if name == BYTES && made.init.as_deref().is_none_or(all_zeros) {
        Ty::U32
    } else {
        type_named(word)?
    };
    let points = made
        .init
        .iter()
        .flatten()
        .any(|first| matches!(first, First::Address(..)));
    (made.fields.is_empty() && (ty.bits == 64 || !points)).then(|| BufferContents {
        fields: vec![word.to_owned()],
        number,
        ..made.clone()
    })
}

/// The contents that a binding gives to a buffer that others point to: `nodes=u32[4]`,
/// `nodes={u64,u32}[2]=&nodes[1],5`.
pub(super) fn of_buffer(name: &str, binding: &ParameterValue) -> Option<BufferContents> {
    match binding {
        ParameterValue::Buffer {
            name: own,
            index: None,
            made,
        } if own == name && !made.fields.is_empty() => Some(made.clone()),
        _ => of_type(binding),
    }
}

/// The buffer of a tensor map, in words of 64 bits; `None` if it is too long.
pub(super) fn of_tensor(shape: &str) -> Option<BufferContents> {
    let words = (tensor_shape(shape).ok()?.extent() as u64).div_ceil(8);
    (words <= LONGEST).then(|| BufferContents {
        fields: vec!["u64".to_owned()],
        elements: Some(words),
        ..BufferContents::default()
    })
}

/// Applies a binding to a parameter of type `ty`: returns its value, and records its buffer in
/// `memory`.
pub(super) fn bind(
    binding: ParameterValue,
    ty: &str,
    memory: &mut BTreeMap<String, BufferContents>,
    order: &mut Vec<String>,
) -> Option<First> {
    Some(match binding {
        ParameterValue::Float(value) => First::Bits(rounded(float(ty)?.0, value)),
        ParameterValue::Scalar(value) => {
            First::Bits(float(ty).map_or(value, |(format, _)| rounded(format, value as f64)))
        }
        // A tensor map is in memory.
        ParameterValue::Tensor { .. } => return None,
        ParameterValue::Buffer { name, index, made } => {
            if !memory.contains_key(&name) {
                order.push(name.clone());
            }
            let known = memory.entry(name.clone()).or_default();
            if !made.fields.is_empty() {
                known.fields = made.fields;
            }
            known.number = made.number.or(known.number);
            known.elements = made.elements.or(known.elements);
            known.init = made.init.or(known.init.take());
            First::Address(name, index.unwrap_or(0))
        }
    })
}
