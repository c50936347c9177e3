//! Makes the objects under `[memory]`: buffers, and the variables of a module.
//!
//! # Invariants
//! - Compilers print arrays as bytes, so the accesses to an array decide its elements.

use std::collections::BTreeMap;

use super::super::toml::UNKNOWN;
use super::super::write::{ObjectTable, fields};
use super::binding::{BYTES, BufferContents, MOST_BYTES};
use crate::isa::ptx::module::{ElementInit, ModuleVariable};
use crate::isa::ptx::type_named;
use program::{Layout, Ty};

const BYTE: Ty = Ty {
    bits: 8,
    signed: false,
};

/// The number of bytes that the launch gives an array of dynamic shared memory; `None` if it does
/// not say.
pub(super) fn sized(variable: &ModuleVariable, made: &BufferContents) -> Option<u64> {
    let element = made
        .fields
        .first()
        .map_or(variable.ty, |word| type_named(word).unwrap_or(BYTE));
    made.elements
        .map(|n| n.saturating_mul(u64::from(element.bytes())))
}

/// Merges all arrays of dynamic shared memory into the first. If a single binding describes them,
/// it is kept; if several do, the merged array is `bytes` bytes.
pub(super) fn one_of<'v>(
    all: &[(&'v ModuleVariable, BufferContents)],
    bytes: u64,
) -> Option<(&'v ModuleVariable, BufferContents)> {
    let (first, _) = all.first()?;
    let mut said = all.iter().filter(|(_, made)| !made.is_unsaid());
    let made = match (said.next(), said.next()) {
        (None, _) => BufferContents::default(),
        (Some((_, one)), None) => one.clone(),
        _ => BufferContents {
            fields: vec![BYTES.to_owned()],
            elements: Some(bytes),
            ..BufferContents::default()
        },
    };
    Some((first, made))
}

/// A variable under `[memory]`. Compilers print arrays as bytes, so `types`, the types of
/// the accesses, decide the element type.
pub(super) fn declared(
    v: &ModuleVariable,
    made: BufferContents,
    addresses: Option<Vec<String>>,
    types: Vec<Ty>,
    reused: bool,
) -> Result<ObjectTable, (String, String)> {
    if let Some(init) = addresses {
        let elements = v.elements.unwrap_or(1);
        return Ok(object(&init, elements, Some(&v.ty.ptx_name()), v.space));
    }
    let begins: Vec<i64> = v
        .init
        .iter()
        .map(|initial| {
            if let ElementInit::Int(n) = initial {
                *n
            } else {
                0
            }
        })
        .collect();
    let help = || {
        format!(
            "give its size in bytes or its elements: `--arg {0}=bytes[64]`, `--arg {0}=u32[64]`",
            v.name
        )
    };
    let bytes = v
        .elements
        .map(|n| n.saturating_mul(u64::from(v.ty.bytes())));
    // An array is not accessed with a type that does not divide its size.
    let whole = |ty: &Ty| bytes.is_none_or(|bytes| bytes % u64::from(ty.bytes()) == 0);
    let narrower = |ty: &Ty| ty.bits < v.ty.bits || (v.ty.bits == 8 && v.elements != Some(1));
    let differ = |word: &str| {
        let said = type_named(word).map(|ty| ty.bits);
        types.iter().any(|ty| Some(ty.bits) < said)
            || types.iter().any(|ty| ty.bits != types[0].bits)
    };
    let differ_in_bytes = v.ty.bits == 8 && types.iter().any(|ty| ty.bits != types[0].bits);
    let several = (reused || differ_in_bytes) && begins.iter().all(|n| *n == 0);
    let cut = match made.fields.first() {
        Some(word) if word == BYTES => made.elements.or(bytes),
        // A type that differs from that of some access only gives the number of bytes.
        Some(word) if v.elements.is_none() && made.init.is_none() && (reused || differ(word)) => {
            sized(v, &made)
        }
        None if made.init.is_none() && (several || v.space == "local") => bytes,
        _ => None,
    };
    if let Some(bytes) = cut.filter(|bytes| (1..=MOST_BYTES).contains(bytes)) {
        let unknown = v.space == "shared" && made.init.is_none();
        return Ok(of_bytes(bytes, v.space, unknown));
    }
    let ty = match made.fields.first() {
        Some(word) => type_named(word).unwrap_or(v.ty),
        None => {
            let smallest = types.into_iter().min_by_key(|ty| ty.bits);
            smallest.filter(narrower).filter(whole).unwrap_or(v.ty)
        }
    };
    let size = u64::from(ty.bytes());
    let elements = match (made.elements, bytes) {
        (Some(n), _) => n,
        (None, Some(bytes)) if bytes % size == 0 => bytes / size,
        _ => return Err((format!("the size of `{}` is not known", v.name), help())),
    };
    let init = match made.init {
        None if v.space == "shared" => vec![UNKNOWN.to_owned()],
        Some(init) => init
            .iter()
            .map(|first| first.text(&BTreeMap::new()))
            .collect(),
        None => regrouped(&begins, v.ty, ty)
            .iter()
            .map(i64::to_string)
            .collect::<Vec<_>>(),
    };
    Ok(object(
        &init,
        elements.max(1),
        Some(&ty.ptx_name()),
        v.space,
    ))
}

/// The object for the code of a function whose address is in memory; only its address matters.
pub(super) fn code_of(function: &str) -> String {
    format!("{function}$code")
}

/// An array of bytes.
pub(super) fn of_bytes(bytes: u64, space: &str, unknown: bool) -> ObjectTable {
    first(ObjectTable::default().with("bytes", bytes), unknown).in_space(space)
}

/// Adds the initial value of an array of bytes whose values are unknown.
fn first(table: ObjectTable, unknown: bool) -> ObjectTable {
    if unknown {
        table.with_text("init", UNKNOWN)
    } else {
        table
    }
}

/// An array of bytes after accesses decided its fields.
pub(super) fn of_fields(layout: &Layout, cells: usize, space: &str, unknown: bool) -> ObjectTable {
    if layout.cells() == 1 {
        let init = unknown.then(|| UNKNOWN.to_owned());
        let ty = layout.field(0).ty.ptx_name();
        return object(init.as_slice(), cells as u64, Some(&ty), space);
    }
    let count = cells / layout.cells();
    let table = ObjectTable::default()
        .with("fields", fields(layout))
        .of_size(count as u64);
    first(table, unknown).in_space(space)
}

/// Converts initial values to another type: the same bytes in little-endian order.
fn regrouped(init: &[i64], from: Ty, to: Ty) -> Vec<i64> {
    let bytes: Vec<u8> = init
        .iter()
        .flat_map(|v| v.to_le_bytes().into_iter().take(from.bytes() as usize))
        .collect();
    fn value(part: &[u8]) -> i64 {
        part.iter()
            .rev()
            .fold(0, |v, &byte| v << 8 | i64::from(byte))
    }
    bytes
        .chunks(to.bytes() as usize)
        .map(|part| to.wrap(value(part)))
        .collect()
}

/// An object. Without a type, accesses decide the type.
pub(super) fn object(init: &[String], elements: u64, ty: Option<&str>, space: &str) -> ObjectTable {
    let table = ObjectTable::default();
    let mut table = match init {
        [one] if one == UNKNOWN => table.with_text("init", UNKNOWN).of_size(elements),
        _ if elements > 1 && init.iter().all(|value| value == "0") => table.of_size(elements),
        [] => table.with("init", 0),
        [one] if elements == 1 => table.with("init", one),
        _ => {
            let mut values = init.to_vec();
            values.resize(values.len().max(elements as usize), "0".to_owned());
            table.with("init", format!("[{}]", values.join(", ")))
        }
    };
    if let Some(ty) = ty {
        table = table.with_text("type", ty);
    }
    table.in_space(space)
}
