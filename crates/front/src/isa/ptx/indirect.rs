//! Resolves calls through registers, if the text of the thread shows the called function.
//!
//! # Invariants
//! - A register is followed to one `mov` of a function's address, through registers and parameters
//!   with no other writer in the whole text. So the register holds that address whenever the call
//!   runs.

use std::collections::HashSet;

/// The function with its address in a register, among the `taken` ones. Also returns the registers
/// and parameters (in brackets) that pass the address on.
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

/// Whether any of the holders has a further writer, now that the text has grown.
pub(super) fn is_written_again(text: &str, holders: &[String]) -> bool {
    holders
        .iter()
        .any(|holder| definitions(text, holder).len() > 1)
}

/// The instructions that write a register or a parameter (in brackets), as opcode and second
/// operand.
fn definitions<'t>(text: &'t str, holder: &str) -> Vec<(&'t str, &'t str)> {
    // A statement may follow a label.
    let statements = text.split([';', ':', '\n']).map(str::trim);
    statements
        .filter_map(|statement| definition(statement, holder))
        .collect()
}

/// The opcode and the second operand of a statement, if it writes `holder`.
fn definition<'t>(statement: &'t str, holder: &str) -> Option<(&'t str, &'t str)> {
    let statement = match statement.strip_prefix('@') {
        Some(rest) => rest.split_once(char::is_whitespace)?.1.trim_start(),
        None => statement,
    };
    let (opcode, operands) = statement.split_once(char::is_whitespace)?;
    let operands = operands.trim_start();
    // An instruction with a vector destination writes each element.
    let behind = operands
        .find('}')
        .filter(|_| operands.starts_with('{'))
        .unwrap_or(0);
    let first = operands[behind..].find(',').map(|n| n + behind);
    let (first, second) = operands.split_at(first?);
    let mut written = first.split(['{', '}', ',']).map(str::trim);
    let stores = opcode.starts_with("st.") == first.trim_start().starts_with('[');
    (stores && written.any(|name| name == holder)).then_some((opcode, second[1..].trim()))
}
