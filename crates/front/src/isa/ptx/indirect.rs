//! Calls of registers: which function one calls, where that can be read off the text of a thread.
//!
//! # Invariants
//! - A register is followed to one `mov` of a function's address through registers and parameters
//!   that nothing else in the whole text writes: what it holds is that address, whenever the call
//!   is come to.

use std::collections::HashSet;

/// The function whose address a register holds, of those whose addresses are taken, and what hands
/// it on: registers, and parameters in brackets.
pub(super) fn pointed(
    text: &str,
    taken: &HashSet<&str>,
    register: &str,
) -> Option<(String, Vec<String>)> {
    let mut holders: Vec<String> = Vec::new();
    let mut holder = register.to_owned();
    while !holders.contains(&holder) {
        let all = definitions(text, &holder);
        let [(opcode, source)] = all.as_slice() else {
            return None;
        };
        let moves = ["mov.", "ld.param.", "st.param."]
            .iter()
            .any(|word| opcode.starts_with(word));
        holders.push(holder);
        if moves && taken.contains(source) {
            return Some(((*source).to_owned(), holders));
        }
        holder = Some(source)
            .filter(|_| moves)
            .map(|source| (*source).to_owned())?;
    }
    None
}

/// Whether anything else writes what hands an address on, in a text that has become longer.
pub(super) fn is_written_again(text: &str, holders: &[String]) -> bool {
    holders
        .iter()
        .any(|holder| definitions(text, holder).len() > 1)
}

/// The instructions of a text that write a register, or a parameter in brackets: opcode and second
/// operand.
fn definitions<'t>(text: &'t str, holder: &str) -> Vec<(&'t str, &'t str)> {
    // Behind a label, too.
    let statements = text.split([';', ':', '\n']).map(str::trim);
    let of = |statement: &'t str| {
        let statement = match statement.strip_prefix('@') {
            Some(rest) => rest.split_once(char::is_whitespace)?.1.trim_start(),
            None => statement,
        };
        let (opcode, operands) = statement.split_once(char::is_whitespace)?;
        let operands = operands.trim_start();
        // Of a vector, each element is written.
        let behind = operands
            .find('}')
            .filter(|_| operands.starts_with('{'))
            .unwrap_or(0);
        let first = operands[behind..].find(',').map(|n| n + behind);
        let (first, second) = operands.split_at(first?);
        let mut written = first.split(['{', '}', ',']).map(str::trim);
        let stores = opcode.starts_with("st.") == first.trim_start().starts_with('[');
        (stores && written.any(|name| name == holder)).then_some((opcode, second[1..].trim()))
    };
    statements.filter_map(of).collect()
}
