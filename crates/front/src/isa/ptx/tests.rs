//! Tests of the instruction table: the micro-ops of instructions, and errors.

mod forms;
mod memory;
mod mistakes;
mod sharing;
mod values;

use super::*;
use crate::isa::{Object, SymbolKind, Symbols};
use diag::{MappedText, Sink, SourceFile, Span};
use program::{
    BinOp, Dialect, Expr, GroupSeat, Init, Instr, LocationKind, Machine, Op, Place, Program, Scope,
    Thread, Ty,
};

/// Lowers code against these locations:
/// - x, a (three elements), c (constant), param (a parameter of three elements), s (shared);
/// - b (an mbarrier object);
/// - words, gw and sw, declared as two words of 32 bits and as four, global and shared;
/// - gg and ss (two elements, global and shared);
/// - aliased, which has a second address.
fn lower_with(code: &str, env: &PtxEnv) -> Result<Program, String> {
    let mut sink = Sink::new(&SourceFile::new("c", code));
    let mut symbols = Symbols::default();
    for (name, elements, space) in [
        ("x", 1, program::Space::Global),
        ("a", 3, program::Space::Global),
        ("c", 1, program::Space::Constant),
        ("param", 3, program::Space::Param),
        ("s", 1, program::Space::Shared),
        ("gg", 2, program::Space::Global),
        ("ss", 2, program::Space::Shared),
        ("aliased", 2, program::Space::Global),
    ] {
        let object = Object {
            init: vec![Init::Int(0); elements],
            space,
            ..Object::scalar(0)
        };
        symbols.declare(name, Span::default(), SymbolKind::Object(object), &mut sink);
    }
    let of = symbols.find("aliased").expect("it was declared");
    let alias = SymbolKind::Alias {
        of,
        proxy: program::Proxy::Generic,
    };
    symbols.declare("second", Span::default(), alias, &mut sink);
    let (ty, class) = (
        Some((program::mbarrier::WORD, Span::default())),
        Some(program::Class::Mbarrier),
    );
    let object = Object {
        space: program::Space::Shared,
        ty,
        class,
        ..Object::scalar(0)
    };
    symbols.declare("b", Span::default(), SymbolKind::Object(object), &mut sink);
    let ty = Some((Ty::U32, Span::default()));
    for (name, elements, space) in [
        ("words", 2, program::Space::Global),
        ("gw", 4, program::Space::Global),
        ("sw", 4, program::Space::Shared),
    ] {
        let words = Object {
            init: vec![Init::Int(0); elements],
            space,
            ty,
            declared: true,
            ..Object::scalar(0)
        };
        symbols.declare(name, Span::default(), SymbolKind::Object(words), &mut sink);
    }
    // An array of bytes, and a structure: a word of 64 bits, an mbarrier object and two words of 16
    // bits.
    let ty = Some((
        Ty {
            bits: 8,
            signed: false,
        },
        Span::default(),
    ));
    let shared = Object {
        space: program::Space::Shared,
        ty,
        declared: true,
        ..Object::scalar(0)
    };
    let bytes = Object {
        init: vec![Init::Int(0); 32],
        cut: true,
        ..shared.clone()
    };
    let field = |path: &str, offset, bits, mbarrier| program::Field {
        path: path.into(),
        offset,
        ty: Ty {
            bits,
            signed: false,
        },
        boolean: false,
        mbarrier,
    };
    let fields = vec![
        field(".key", 0, 64, false),
        field(".bar", 8, 64, true),
        field(".h[0]", 16, 16, false),
        field(".h[1]", 18, 16, false),
    ];
    let fields = Some(program::Layout::record(None, fields, 24));
    let structure = Object {
        init: vec![Init::Int(0); 4],
        fields,
        ..shared
    };
    for (name, object) in [("bytes", bytes), ("structure", structure)] {
        symbols.declare(name, Span::default(), SymbolKind::Object(object), &mut sink);
    }
    let unit = PtxCode::parse(MappedText::verbatim(code, 0), &mut sink);
    unit.settle_types(env.strict, &mut symbols, &mut sink);
    let lowered = unit.lower(env, &symbols, &mut sink);
    let untyped = [Some(lowered.untyped().to_vec())];
    let open = symbols.open();
    let (name, place, source) = ("P0".into(), Place::device(0, 0), String::new());
    let thread = Thread {
        name,
        place,
        regs: lowered.regs,
        code: lowered.code,
        source,
    };
    let mut program = Program {
        dialect: Dialect::Ptx,
        threads: vec![thread],
        locations: symbols.into_locations(),
        machine: Machine::full(),
        host: None,
        assumed: Vec::new(),
        group_copies: Vec::new(),
    };
    if sink.errors() == 0 {
        pointers::resolve(&mut program, &untyped, &open, &mut sink);
    }
    place_columns(&mut program, &mut sink);
    refuse_accumulators(&program, &mut sink);
    if sink.errors() == 0 {
        Ok(program)
    } else {
        Err(sink
            .into_diagnostics()
            .iter()
            .map(|d| format!("{}: {d}\n", d.id))
            .collect())
    }
}

fn env() -> PtxEnv {
    PtxEnv {
        strict: true,
        cluster: vec![0],
        ..PtxEnv::default()
    }
}

#[track_caller]
fn lower(code: &str) -> Program {
    lower_with(code, &env()).unwrap_or_else(|e| panic!("{code}\n{e}"))
}

/// The name, the qualifiers and the operands of an instruction are data; its predicate is a branch.
#[test]
fn an_instruction_has_parts() {
    let program =
        lower("setp.eq.u32 p, 1, 1\n@p mbarrier.arrive.expect_tx.shared::cta.b64  _, [b],  8");
    let code = &program.threads[0].code;
    let last = code.last().expect("some code");
    let parts = last.assembly.as_ref().expect("it is assembly");
    assert_eq!(parts.opcode, "mbarrier");
    assert_eq!(
        parts.qualifiers,
        ["arrive", "expect_tx", "shared::cta", "b64"]
    );
    assert_eq!(parts.operands, "_, [b], 8");
    assert!(last.has_qualifier("expect_tx") && !last.has_qualifier("complete_tx"));
}

#[track_caller]
fn short(code: &str) -> String {
    let program = lower(code);
    print(&program.threads[0], &program).unwrap_or_else(|e| panic!("{code}\n{e:?}"))
}

#[track_caller]
fn fails(code: &str, id: &str) {
    match lower_with(code, &env()) {
        Ok(_) => panic!("{code}: expected {id}"),
        Err(text) => assert!(
            text.starts_with(&format!("{id}: ")),
            "{code}: expected {id}, found\n{text}"
        ),
    }
}
