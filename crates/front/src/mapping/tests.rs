//! Unit tests of the mappings: every row, scopes, barriers, branches.

use super::*;
use diag::{Diagnostic, SourceFile, SourceLine};
use program::Dialect;
use program::words::SCOPES;
use program::{
    Access, Barrier, BarrierAction, BarrierNaming, BinOp, Expr, InstrId, LocId, Op, Place, RegId,
    Scope, Tag, Tags, Thread, Ty, Update,
};

fn access(tags: &[Tag], scope: Option<Scope>) -> Access {
    Access {
        tags: Tags::of(tags),
        scope,
        ty: Ty::S32,
    }
}

/// The tags that the source dialects attach to an order: those of the read, and those of the write
/// or fence.
fn tags(order: SourceOrder, kind: OpKind) -> (Vec<Tag>, Vec<Tag>) {
    let (read, write) = match order {
        SourceOrder::Plain => return (vec![], vec![]),
        SourceOrder::Volatile => return (vec![Tag::Volatile], vec![Tag::Volatile]),
        SourceOrder::Relaxed => (Tag::Relaxed, Tag::Relaxed),
        SourceOrder::Acquire => (Tag::Acquire, Tag::Relaxed),
        SourceOrder::Release => (Tag::Relaxed, Tag::Release),
        SourceOrder::AcqRel => (Tag::Acquire, Tag::Release),
        SourceOrder::SeqCst => (Tag::SeqCst, Tag::SeqCst),
    };
    match kind {
        OpKind::Fence => {
            let tag = match order {
                SourceOrder::Acquire => Tag::Acquire,
                SourceOrder::Release => Tag::Release,
                SourceOrder::AcqRel => Tag::AcqRel,
                _ => read,
            };
            (vec![tag], vec![])
        }
        OpKind::Rmw | OpKind::Cas => (
            vec![Tag::Atomic, Tag::Rmw, read],
            vec![Tag::Atomic, Tag::Rmw, write],
        ),
        _ => (vec![Tag::Atomic, read], vec![Tag::Atomic, write]),
    }
}

fn row(kind: OpKind, order: SourceOrder) -> MappingRow {
    MappingRow {
        kind,
        order,
        scope: None,
        steps: Vec::new(),
    }
}

fn source(row: &MappingRow, scope: Scope) -> Op {
    let (read, write) = tags(row.order, row.kind);
    let addr = Expr::Address(LocId(0));
    let scope = Some(scope);
    match row.kind {
        OpKind::Load => Op::Load {
            dst: RegId(0),
            addr,
            access: access(&read, scope),
        },
        OpKind::Store => Op::Store {
            addr,
            value: Expr::Const(1),
            access: access(&write, scope),
        },
        OpKind::Rmw | OpKind::Cas => Op::Rmw {
            dst: Some(RegId(0)),
            addr,
            update: match row.kind {
                OpKind::Cas => Update::CompareExchange {
                    expected: Expr::Const(0),
                    new: Expr::Const(1),
                },
                _ => Update::Apply(BinOp::Add, Expr::Const(1)),
            },
            read: access(&read, scope),
            write: access(&write, scope),
        },
        OpKind::Fence => Op::fence(Tags::of(&read), scope),
        // These rows have a single scope.
        OpKind::Arrive | OpKind::Wait => unreachable!("{row:?}: of objects, which programs have"),
    }
}

/// A micro-op as PTX spells it.
fn spelled(op: &Op) -> String {
    let order = |tags: &Tags| {
        let known = [
            (Tag::Volatile, "volatile"),
            (Tag::Weak, "weak"),
            (Tag::SeqCst, "sc"),
            (Tag::AcqRel, "acq_rel"),
            (Tag::Acquire, "acquire"),
            (Tag::Release, "release"),
            (Tag::Relaxed, "relaxed"),
        ];
        known.iter().find(|k| tags.has(k.0)).map_or("?", |k| k.1)
    };
    let suffix = |scope: Option<Scope>| match scope {
        None => "",
        Some(Scope::Cta) => ".cta",
        Some(Scope::Cluster) => ".cluster",
        Some(Scope::Gpu) => ".gpu",
        Some(Scope::Sys) => ".sys",
        Some(_) => ".?",
    };
    match op {
        Op::Load { access, .. } => format!("ld.{}{}", order(&access.tags), suffix(access.scope)),
        Op::Store { access, .. } => format!("st.{}{}", order(&access.tags), suffix(access.scope)),
        Op::Rmw { read, write, .. } => {
            assert!(
                read.tags.has(Tag::Rmw) && write.tags.has(Tag::Rmw) && read.scope == write.scope
            );
            let order = match (order(&read.tags), order(&write.tags)) {
                ("acquire", "release") => "acq_rel",
                ("acquire", _) => "acquire",
                (_, "release") => "release",
                (order, _) => order,
            };
            format!("atom.{order}{}", suffix(read.scope))
        }
        Op::Give { .. } | Op::Take { .. } => "lanes".to_string(),
        Op::Choice { .. } => "spurious".to_string(),
        Op::Call(_) | Op::Enqueue(_) => "call".to_string(),
        Op::Status { .. } => "status".to_string(),
        Op::Mark { mark, .. } => format!("fence.{}{}", order(&mark.tags), suffix(mark.scope)),
        Op::Barrier(b) => match (&b.naming, b.domain) {
            (
                BarrierNaming::Counted {
                    id: Expr::Const(0),
                    count: None,
                },
                Scope::Cta,
            ) => "bar.sync 0".into(),
            (_, Scope::Warp) => "bar.warp.sync".into(),
            (_, domain) => format!("barrier of {domain:?}"),
        },
        Op::Assign { .. } | Op::Branch { .. } => "other".into(),
    }
}

fn lowered(mapping: &Mapping, op: &Op) -> String {
    lower::op(mapping, op)
        .unwrap()
        .iter()
        .map(spelled)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Every row of a mapping, at device scope.
fn all_rows(name: &str) -> Vec<String> {
    let mapping = Mapping::named(name).unwrap();
    let text = |row: &MappingRow| {
        format!(
            "{:?} {:?}: {}",
            row.kind,
            row.order,
            lowered(mapping, &source(row, Scope::Gpu))
        )
    };
    let others = mapping.rows.iter().filter(|row| row.scope.is_none());
    let mut rows: Vec<_> = others.map(text).collect();
    rows.sort();
    rows
}

const CURRENT: &[&str] = &[
    "Fence AcqRel: fence.acq_rel.gpu",
    "Fence Acquire: fence.acquire.gpu",
    "Fence Relaxed: ",
    "Fence Release: fence.release.gpu",
    "Fence SeqCst: fence.sc.gpu",
    "Load Acquire: ld.acquire.gpu",
    "Load Plain: ld.weak",
    "Load Relaxed: ld.relaxed.gpu",
    "Load SeqCst: fence.sc.gpu; ld.acquire.gpu",
    "Load Volatile: ld.volatile.sys",
    "Rmw AcqRel: atom.acq_rel.gpu",
    "Rmw Acquire: atom.acquire.gpu",
    "Rmw Relaxed: atom.relaxed.gpu",
    "Rmw Release: atom.release.gpu",
    "Rmw SeqCst: fence.sc.gpu; atom.acquire.gpu",
    "Store Plain: st.weak",
    "Store Relaxed: st.relaxed.gpu",
    "Store Release: st.release.gpu",
    "Store SeqCst: fence.sc.gpu; st.relaxed.gpu",
    "Store Volatile: st.volatile.sys",
];

#[test]
fn every_row_of_the_current_mappings() {
    assert_eq!(all_rows("opencl-ptx"), CURRENT);
    assert_eq!(all_rows("cuda-ptx"), CURRENT);
    assert_eq!(all_rows("c-ptx"), CURRENT);
}

#[test]
fn the_alternatives_differ_in_one_row() {
    for from in ["opencl-ptx", "cuda-ptx"] {
        let current = all_rows(from);
        let other = |name: &str| {
            let rows = all_rows(&format!("{from}-{name}"));
            let new: Vec<String> = rows.into_iter().filter(|r| !current.contains(r)).collect();
            assert_eq!(new.len(), 1);
            new[0].clone()
        };
        assert_eq!(
            other("erratum"),
            "Load SeqCst: fence.sc.gpu; ld.relaxed.gpu"
        );
        assert_eq!(
            other("old-rmw"),
            "Rmw SeqCst: fence.sc.gpu; atom.acq_rel.gpu"
        );
        if from == "cuda-ptx" {
            assert_eq!(other("llvm"), "Store SeqCst: fence.sc.gpu; st.release.gpu");
        }
    }
}

#[test]
fn every_scope_has_its_counterpart() {
    let mapping = Mapping::current(Dialect::Cuda).unwrap();
    let load = row(OpKind::Load, SourceOrder::SeqCst);
    let of = |scope| lowered(mapping, &source(&load, scope));
    assert_eq!(of(Scope::Thread), "fence.sc.cta; ld.acquire.cta");
    assert_eq!(of(Scope::Warp), "fence.sc.cta; ld.acquire.cta");
    assert_eq!(of(Scope::Cta), "fence.sc.cta; ld.acquire.cta");
    assert_eq!(of(Scope::Cluster), "fence.sc.cluster; ld.acquire.cluster");
    assert_eq!(of(Scope::Gpu), "fence.sc.gpu; ld.acquire.gpu");
    assert_eq!(of(Scope::Sys), "fence.sc.sys; ld.acquire.sys");
    let error = lower::op(mapping, &source(&load, Scope::QueueFamily)).unwrap_err();
    assert!(error.contains("scope table"), "{error}");
}

#[test]
fn what_was_lowered_are_the_steps_of_its_row() {
    for mapping in shipped() {
        for row in mapping.rows.iter().filter(|r| r.scope.is_none()) {
            let ops = lower::op(mapping, &source(row, Scope::Gpu)).unwrap();
            let steps: Vec<MappingStep> = ops.iter().filter_map(MappingStep::of).collect();
            let fixed = |step: &MappingStep| match step.reach {
                StepScope::Mapped => MappingStep {
                    reach: StepScope::Fixed(Scope::Gpu),
                    ..*step
                },
                _ => *step,
            };
            assert_eq!(steps, row.steps.iter().map(fixed).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_fence_of_one_thread_becomes_nothing() {
    for mapping in shipped() {
        let fence = source(&row(OpKind::Fence, SourceOrder::SeqCst), Scope::Thread);
        assert_eq!(lowered(mapping, &fence), "", "{}", mapping.name);
    }
}

fn barrier(domain: Scope, scope: Scope) -> Op {
    Op::Barrier(Barrier {
        action: BarrierAction::Sync,
        domain,
        lanes: None,
        naming: BarrierNaming::Counted {
            id: Expr::Const(-3),
            count: None,
        },
        arrive: Tags::of(&[
            Tag::Barrier,
            Tag::BarrierArrive,
            Tag::EntryFence,
            Tag::Release,
            Tag::Global,
        ]),
        wait: Tags::of(&[
            Tag::Barrier,
            Tag::BarrierWait,
            Tag::ExitFence,
            Tag::Acquire,
            Tag::Global,
        ]),
        scope: Some(scope),
    })
}

#[test]
fn barriers_order_their_group_and_wider_ones_need_fences() {
    let mapping = Mapping::current(Dialect::OpenCl).unwrap();
    assert_eq!(
        lowered(mapping, &barrier(Scope::Cta, Scope::Cta)),
        "bar.sync 0"
    );
    assert_eq!(
        lowered(mapping, &barrier(Scope::Warp, Scope::Warp)),
        "bar.warp.sync"
    );
    assert_eq!(
        lowered(mapping, &barrier(Scope::Cta, Scope::Gpu)),
        "fence.acq_rel.gpu; bar.sync 0; fence.acq_rel.gpu"
    );
    assert_eq!(
        lowered(mapping, &barrier(Scope::Cta, Scope::Sys)),
        "fence.acq_rel.sys; bar.sync 0; fence.acq_rel.sys"
    );
    let error = lower::op(mapping, &barrier(Scope::Gpu, Scope::Gpu)).unwrap_err();
    assert!(error.contains("barrier rows"), "{error}");
}

#[test]
fn branches_go_where_they_went() {
    let mapping = Mapping::current(Dialect::OpenCl).unwrap();
    let load = source(&row(OpKind::Load, SourceOrder::SeqCst), Scope::Gpu);
    let fence = source(&row(OpKind::Fence, SourceOrder::Relaxed), Scope::Gpu);
    let branch = |target| Op::Branch {
        cond: Expr::Const(1),
        target,
    };
    let ops = [branch(3), load.clone(), fence, load, branch(1), branch(6)];
    let line = |(i, op): (usize, Op)| {
        let (span, line, text) = (
            Span::new(i, i + 1),
            SourceLine::from(i as u32),
            i.to_string(),
        );
        Instr::new(InstrId(i as u32), op, span, line, text)
    };
    let code: Vec<Instr> = ops.into_iter().enumerate().map(line).collect();
    let thread = Thread {
        name: "P0".into(),
        place: Place::device(0, 0),
        regs: Vec::new(),
        code,
        source: String::new(),
    };
    let program = Program {
        dialect: Dialect::OpenCl,
        threads: vec![thread],
        locations: Vec::new(),
        machine: Machine::full(),
        host: None,
        assumed: Vec::new(),
        group_copies: Vec::new(),
    };
    let mapped = mapping.lower(&program).unwrap();
    assert_eq!(mapped.dialect, Dialect::Ptx);
    let code = &mapped.threads[0].code;
    // 0: branch; 1, 2: load; 3, 4: load; 5, 6: branches.
    assert_eq!(
        code.iter().map(|i| i.line.number).collect::<Vec<_>>(),
        [0, 1, 1, 3, 3, 4, 5]
    );
    let targets = code.iter().filter_map(|i| i.op.target());
    assert_eq!(targets.collect::<Vec<_>>(), [3, 1, 7]);
}

#[test]
fn what_has_no_counterpart_names_its_rule() {
    let mapping = Mapping::current(Dialect::OpenCl).unwrap();
    let consume = Op::Load {
        dst: RegId(0),
        addr: Expr::Const(0),
        access: access(&[Tag::Atomic, Tag::Constant], Some(Scope::Gpu)),
    };
    assert!(
        lower::op(mapping, &consume)
            .unwrap_err()
            .contains("order table")
    );
    // No read-modify-write is volatile; volatile accesses are plain accesses of the source.
    let volatile = row(OpKind::Rmw, SourceOrder::Volatile);
    assert!(
        lower::op(mapping, &source(&volatile, Scope::Gpu))
            .unwrap_err()
            .contains("has no row")
    );
    let mut narrow = source(&row(OpKind::Rmw, SourceOrder::Relaxed), Scope::Gpu);
    if let Op::Rmw { read, .. } = &mut narrow {
        read.ty = Ty {
            bits: 8,
            signed: true,
        };
    }
    assert!(lower::op(mapping, &narrow).unwrap_err().contains("8 bits"));
}

fn read(text: &str) -> Result<Mapping, Vec<Diagnostic>> {
    file::parse(&SourceFile::new("folder/mine.toml", text), shipped())
}

const HEAD: &str =
    "from = \"cuda\"\nto = \"ptx\"\nbase = \"cuda-ptx\"\ndoc = \"mine\"\nsources = []\n";

#[test]
fn a_file_has_its_own_rows_before_those_of_its_base() {
    let mine = read(&format!(
        "{HEAD}[scopes]\ncluster = \"gpu\"\n[load]\nacquire = \"ld.relaxed.s; fence.acquire.s\"\n\
         [rmw]\nrelaxed = {{ sys = \"atom.relaxed.sys\", other = \"atom.relaxed.gpu\" }}\n\
         [cas]\nacq_rel = \"atom.relaxed.gpu\"\n[fence]\nacquire = \"fence.acq_rel.sys\"\n\
         [barrier]\ngroups = [\"cta\"]\nwider = \"fence.sc.sys\"\n"
    ))
    .unwrap();
    assert_eq!((mine.name.as_str(), mine.from), ("mine", Dialect::Cuda));
    let of = |kind, order, scope| lowered(&mine, &source(&row(kind, order), scope));
    assert_eq!(
        of(OpKind::Load, SourceOrder::Acquire, Scope::Cluster),
        "ld.relaxed.gpu; fence.acquire.gpu"
    );
    assert_eq!(
        of(OpKind::Load, SourceOrder::Relaxed, Scope::Cta),
        "ld.relaxed.cta"
    );
    assert_eq!(
        of(OpKind::Rmw, SourceOrder::Relaxed, Scope::Cta),
        "atom.relaxed.gpu"
    );
    assert_eq!(
        of(OpKind::Rmw, SourceOrder::Relaxed, Scope::Sys),
        "atom.relaxed.sys"
    );
    assert_eq!(
        of(OpKind::Rmw, SourceOrder::AcqRel, Scope::Sys),
        "atom.acq_rel.sys"
    );
    // A compare-exchange uses a separate row, or else that of a read-modify-write.
    assert_eq!(
        of(OpKind::Cas, SourceOrder::AcqRel, Scope::Sys),
        "atom.relaxed.gpu"
    );
    assert_eq!(
        of(OpKind::Cas, SourceOrder::Relaxed, Scope::Sys),
        "atom.relaxed.sys"
    );
    // The file's row for all scopes replaces the base's row for one scope.
    assert_eq!(
        of(OpKind::Fence, SourceOrder::Acquire, Scope::Thread),
        "fence.acq_rel.sys"
    );
    assert_eq!(of(OpKind::Fence, SourceOrder::Release, Scope::Thread), "");
    assert_eq!(
        lowered(&mine, &barrier(Scope::Cta, Scope::Gpu)),
        "fence.sc.sys; bar.sync 0; fence.sc.sys"
    );
    assert!(
        lower::op(&mine, &barrier(Scope::Warp, Scope::Warp))
            .unwrap_err()
            .contains("barrier rows")
    );
}

#[test]
fn what_a_file_cannot_say_is_told_at_its_place() {
    for (text, id, place, expected) in [
        (
            "[load]\nrelease = \"ld.weak\"",
            "unknown-key",
            "release",
            "known keys: plain",
        ),
        (
            "[load]\nrelaxed = \"st.relaxed.s\"",
            "unknown-step",
            "\"st.relaxed.s\"",
            "expected `ld` or `fence`",
        ),
        (
            "[load]\nrelaxed = \"ld.release.s\"",
            "unknown-step",
            "\"ld.release.s\"",
            "one of .weak, .volatile",
        ),
        (
            "[arrive]\nrelease = \"atom.release.s\"",
            "unknown-step",
            "\"atom.release.s\"",
            "expected `mbarrier.arrive` or `fence`",
        ),
        (
            "[wait]\nacquire = \"mbarrier.try_wait.release.s\"",
            "unknown-step",
            "\"mbarrier.try_wait.release.s\"",
            "one of .relaxed, .acquire",
        ),
        (
            "[load]\nrelaxed = \"ld.relaxed\"",
            "unknown-step",
            "\"ld.relaxed\"",
            "expected a scope",
        ),
        (
            "[load]\nrelaxed = \"ld.relaxed.warp\"",
            "unknown-step",
            "\"ld.relaxed.warp\"",
            "expected a scope",
        ),
        (
            "[load]\nrelaxed = \"ld.weak.s\"",
            "unknown-step",
            "\"ld.weak.s\"",
            "expected no scope",
        ),
        (
            "[load]\nrelaxed = \"ld.relaxed.s.s\"",
            "unknown-step",
            "\"ld.relaxed.s.s\"",
            "behind the scope",
        ),
        (
            "[load]\nrelaxed = \"fence.sc.s\"",
            "unknown-step",
            "\"fence.sc.s\"",
            "the access once",
        ),
        (
            "[store]\nrelaxed = \"st.weak; st.weak\"",
            "unknown-step",
            "\"st.weak; st.weak\"",
            "the access once",
        ),
        (
            "[fence]\nacquire = \"ld.weak\"",
            "unknown-step",
            "\"ld.weak\"",
            "expected `fence`",
        ),
        (
            "[fence]\nacquire = 1",
            "wrong-type",
            "1",
            "expected a string or a table",
        ),
        (
            "[fence]\nacquire = { queue = \"\" }",
            "unknown-key",
            "queue",
            "known keys: thread",
        ),
        (
            "[barrier]\ngroups = [\"block\"]\nwider = \"\"",
            "unknown-word",
            "\"block\"",
            "one of thread",
        ),
        (
            "[scopes]\nsys = \"warp\"",
            "unknown-word",
            "\"warp\"",
            "one of cta",
        ),
        (
            "[[gap]]\nname = \"a\"\nlost = \"b\"",
            "missing-key",
            "[[gap]]",
            "`source` is needed",
        ),
        ("load = ", "toml-syntax", "", ""),
    ] {
        let text = format!("{HEAD}{text}");
        let found = read(&text).unwrap_err();
        let first = &found[0];
        let label = first.label.clone() + &first.help.clone().unwrap_or_default();
        assert_eq!((found.len(), first.id), (1, id), "{text}: {label}");
        assert!(
            text[first.span.range()].contains(place),
            "{text}: {}",
            &text[first.span.range()]
        );
        assert!(label.contains(expected), "{text}: {label}");
    }
    for (text, id) in [
        ("", "missing-key"),
        (
            "from = \"ptx\"\nto = \"ptx\"\ndoc = \"\"\nsources = []",
            "unknown-word",
        ),
        (&HEAD.replace("cuda-ptx", "cuda-pxt"), "unknown-mapping"),
        (
            &HEAD.replace("base =", "gaps = [\"leading fences\"]\nbase ="),
            "unknown-gap",
        ),
        (
            &HEAD.replace("base = \"cuda-ptx\"", "gaps = [\"leading fences\"]"),
            "unknown-gap",
        ),
    ] {
        let found = read(text).unwrap_err();
        assert!(found.iter().all(|d| d.id == id), "{text}: {found:?}");
    }
}

#[test]
fn mappings_without_rows_have_no_counterpart_of_anything() {
    let empty = read("from = \"c\"\nto = \"ptx\"\ndoc = \"\"\nsources = []").unwrap();
    for (_, kind) in KINDS
        .iter()
        .filter(|(_, kind)| !matches!(kind, OpKind::Arrive | OpKind::Wait))
    {
        for order in kind.orders() {
            let error = lower::op(&empty, &source(&row(*kind, *order), Scope::Sys)).unwrap_err();
            assert!(error.contains("has no row"), "{error}");
        }
    }
}

#[test]
fn a_mapping_is_written_as_it_is_read() {
    for mapping in shipped() {
        let again = read(&mapping.to_toml()).unwrap();
        let rows = |mapping: &Mapping| {
            let mut rows: Vec<String> = mapping.rows.iter().map(|row| format!("{row:?}")).collect();
            rows.sort();
            rows
        };
        assert_eq!(rows(&again), rows(mapping));
        assert_eq!(
            (again.from, again.to, &again.doc),
            (mapping.from, mapping.to, &mapping.doc)
        );
        let scopes = |mapping: &Mapping| {
            SCOPES
                .iter()
                .map(|s| mapping.scope(s.1))
                .collect::<Vec<_>>()
        };
        assert_eq!(scopes(&again), scopes(mapping));
        let wide = barrier(Scope::Cta, Scope::Sys);
        assert_eq!(lowered(&again, &wide), lowered(mapping, &wide));
    }
}

#[test]
fn what_mends_a_gap_is_shipped() {
    for mapping in shipped() {
        for gap in &mapping.gaps {
            if let GapTest::Mended(by) = &gap.told {
                assert!(Mapping::named(by).is_some(), "{}: {by}", mapping.name);
            }
        }
    }
}
