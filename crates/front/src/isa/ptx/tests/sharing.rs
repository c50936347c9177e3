//! Code that threads share, against code that is lowered for each of them.

use super::*;

/// Lowers two threads of a kernel with this code, and prints the micro-ops of the second one.
/// `shares`: whether they share their code.
fn second(code: &str, shares: bool) -> Result<String, String> {
    let mut sink = Sink::new(&SourceFile::new("c", code));
    let symbols = {
        let mut symbols = Symbols::default();
        let object = SymbolKind::Object(Object {
            init: vec![Init::Int(0); 64],
            ty: Some((Ty::U32, Span::default())),
            ..Object::scalar(0)
        });
        symbols.declare("x", Span::default(), object, &mut sink);
        symbols
    };
    let unit = PtxCode::parse(MappedText::verbatim(code, 0), &mut sink);
    let varying: [String; 2] = ["%tid.x".into(), "%laneid".into()];
    let threads = [0, 33].map(|number: u32| {
        let seat = |rank, of| GroupSeat {
            rank,
            of,
            ..GroupSeat::ALONE
        };
        let special = |name: &str, value: u32| (name.to_string(), Expr::Const(value.into()));
        let env = PtxEnv {
            specials: vec![
                special("%tid.x", number),
                special("%laneid", number % 32),
                special("%ntid.x", 64),
            ],
            varying: if shares {
                varying.to_vec().into()
            } else {
                Default::default()
            },
            seats: Seats::new(seat(number % 32, 32), seat(number, 64)),
            ..env()
        };
        unit.lower(&env, &symbols, &mut sink)
    });
    let [_, second] = threads;
    if sink.errors() > 0 {
        return Err(sink
            .into_diagnostics()
            .iter()
            .map(|d| format!("{}: {d}\n", d.id))
            .collect());
    }
    let ops = second.code.iter().map(|instr| format!("{:?}\n", instr.op));
    let regs = second.regs.iter().map(|reg| format!("{}\n", reg.name));
    Ok(ops.chain(regs).collect())
}

#[track_caller]
fn is_the_same(code: &str) {
    assert_eq!(second(code, true), second(code, false), "{code}");
}

#[test]
fn a_thread_puts_its_own_values_into_shared_code() {
    let code = "mov.u32 %r1, %tid.x; add.s32 %r2, %r1, %ntid.x; st.u32 [x], %r2";
    is_the_same(code);
    let own = second(code, true).expect("code");
    assert!(own.contains("Const(33)"), "{own}");
    assert!(own.contains("Const(64)"), "{own}");
}

/// The lanes of a warp run other code: each gives its value as its own lane.
#[test]
fn lanes_share_no_code_that_depends_on_their_rank() {
    is_the_same("mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r2|%p1, %r1, 0, 31, -1");
    is_the_same("shfl.sync.up.b32 %r2|%p1, %tid.x, 1, 0, -1; st.u32 [x], %r2");
    is_the_same("elect.sync %r1|%p1, -1; @%p1 st.u32 [x], 1");
    is_the_same("elect.sync %r1|%p1, 6; @%p1 st.u32 [x], 1");
    is_the_same(
        "mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r2|%p1, %r1, %r1, 31, -1; \
         st.u32 [x], %r2",
    );
    is_the_same(
        "mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r2|%p1, %r1, 0, 31, 3; \
         st.u32 [x], %r2",
    );
    is_the_same(
        "mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r2|%p1, %r1, 9, 6175, -1; \
         st.u32 [x], %r2",
    );
    is_the_same("setp.eq.u32 %p1, %tid.x, 33; bar.red.popc.u32 %r1, 0, %p1; st.u32 [x], %r1");
}

/// An operand that must be a constant depends on the thread: the code is lowered for each.
#[test]
fn code_that_needs_the_values_is_not_shared() {
    let code = "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; shl.b32 %r3, 1, %r2; \
                cp.async.wait_group %r2; st.u32 [x], %r3";
    is_the_same(code);
}

/// Seats differ by what lowering read of one of them, and by nothing else.
#[test]
fn seats_differ_by_what_was_read() {
    let seats = [0, 1, 2].map(|rank| {
        let warp = GroupSeat {
            rank,
            of: 32,
            ..GroupSeat::ALONE
        };
        Seats::new(warp, GroupSeat::ALONE)
    });
    let [first, second, third] = &seats;
    assert!(first == second && second == third);
    assert_eq!(second.any_of_warp(), third.any_of_warp());
    assert!(first == second && second == third);
    assert!(!second.leads_warp());
    assert!(first != second && second == third);
    assert_eq!(third.warp().rank, 2);
    assert!(second != third);
}
