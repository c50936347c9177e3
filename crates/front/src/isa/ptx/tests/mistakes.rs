//! Errors for invalid code.

use super::*;

#[test]
fn mistakes_have_names() {
    for (code, id) in [
        ("setp.eq.and.u32 p, 1, 1", "wrong-operands"),
        ("lds r0, x", "unknown-instruction"),
        ("mbarrier.init.b64 [x], 1", "no-mbarrier"),
        ("mbarrier.arrive.global.b64 _, [b]", "unknown-qualifier"),
        ("mbarrier.arrive.b64 _, [b], 0", "out-of-range"),
        ("mbarrier.init.b64 [b], 40000", "out-of-range"),
        (
            "mbarrier.arrive.expect_tx.b64 _, [b], 1048576",
            "out-of-range",
        ),
        ("mbarrier.arrive.release.b64 _, [b]", "missing-scope"),
        ("mbarrier.arrive.cluster.b64 _, [b]", "missing-order"),
        (
            "mbarrier.arrive.acquire.cta.b64 _, [b]",
            "unknown-qualifier",
        ),
        (
            "mbarrier.arrive.release.gpu.b64 _, [b]",
            "unknown-qualifier",
        ),
        (
            "mbarrier.arrive.shared::cluster.b64 t, [b]",
            "wrong-operand",
        ),
        (
            "mbarrier.arrive.noComplete.relaxed.cta.b64 t, [b], 1",
            "conflicting-qualifiers",
        ),
        ("mbarrier.test_wait.parity.b64 p, [b], 2", "out-of-range"),
        (
            "mbarrier.try_wait.parity.shared::cluster.b64 p, [b], 0",
            "unknown-qualifier",
        ),
        ("mbarrier.wait.release.cta [b], 0", "unknown-qualifier"),
        ("mbarrier.pending_count.b64 r, t", "unsupported-qualifier"),
        ("mbarrier.arive.b64 _, [b]", "unknown-instruction"),
        ("ld.u64 r0, [b]", "mbarrier-access"),
        ("cp.async b, x, 8", "mbarrier-access"),
        ("cp.async s, x, 12", "wrong-operand"),
        ("cp.async s, x, 8, -1", "wrong-operand"),
        ("cp.async s, x, 8, 16", "wrong-operand"),
        ("cp.async s, x, 8, 8, 8", "wrong-operands"),
        ("ld.u32 n, words; cp.async s, x, n", "wrong-operand"),
        ("atom.add.s64 { r0 }, [x], 1", "wrong-operand"),
        ("ld.s64 { r0, r1 }, [x]", "wrong-operand"),
        ("ld.s64 r0, { x }", "wrong-operand"),
        ("cp.async x, x, 8", "wrong-space"),
        ("cp.async s, c, 8", "wrong-space"),
        ("cp.async.cg s, x, 8", "conflicting-qualifiers"),
        ("cp.async s, x, 16", "out-of-bounds"),
        ("cp.async s, x, 4", "misaligned"),
        ("cp.async s, x[1], 8", "out-of-bounds"),
        ("cp.async s, words, 8", "mixed-size"),
        ("mov.u64 p, x; cp.async [s], [p], 16", "out-of-bounds"),
        ("cp.async.wait_group n", "wrong-operand"),
        ("cp.async.wait_group -1", "wrong-operand"),
        ("cp.async.mbarrier.arrive.b64 [x]", "no-mbarrier"),
        (
            "cp.async.bulk.shared::cta.global [s], [x], 16",
            "conflicting-qualifiers",
        ),
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [ss], [gg], 16",
            "conflicting-qualifiers",
        ),
        (
            "cp.async.bulk.global.shared::cta.bulk_group [gg], [ss], 16, [b]",
            "conflicting-qualifiers",
        ),
        (
            "cp.async.bulk.shared::cta.shared::cta.mbarrier::complete_tx::bytes [ss], [ss], 16, [b]",
            "conflicting-qualifiers",
        ),
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster [ss], [gg], 16, [b], 1",
            "conflicting-qualifiers",
        ),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [ss], [gg], 16, [b], 2",
            "out-of-range",
        ),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [ss], [gg], 16, [b], 0",
            "out-of-range",
        ),
        ("cp.async.bulk ss, gg, 8, b", "wrong-operand"),
        ("cp.async.bulk ss, gg, 24, b", "wrong-operand"),
        ("cp.async.bulk ss, gg, 32, b", "out-of-bounds"),
        ("cp.async.bulk ss, gg[1], 16, b", "misaligned"),
        ("cp.async.bulk gg, ss, 16, b", "wrong-space"),
        ("cp.async.bulk ss, gg, 16", "wrong-space"),
        ("cp.async.bulk ss, gg, 16, x", "no-mbarrier"),
        ("cp.async.bulk b, gg, 16, b", "mbarrier-access"),
        ("cp.async.bulk ss, aliased, 16, b", "unsupported-alias"),
        (
            "mov.u64 p, gg; cp.async.bulk ss, [p], 32, b",
            "out-of-bounds",
        ),
        (
            "ld.u64 p, x; cp.async.bulk ss, [p], 16, b",
            "unsupported-alias",
        ),
        (
            "ld.u32 n, words; cp.async.bulk ss, gg, n, b",
            "wrong-operand",
        ),
        (
            "cp.async.bulk.tensor.1d.shared::cta.global [ss], [gg], 16",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group [gg], [ss], 16",
            "missing-operation",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add [gg], [ss], 16",
            "missing-type",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.u64 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.acquire.sys.add.u64 [gg], [ss], 16",
            "acquire-on-red",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.release.sys.add.u64 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.relaxed.add.u64 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.gpu.add.u64 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [gw], [sw], 16",
            "mixed-size",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [gg], [ss], 24",
            "wrong-operand",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [ss], [ss], 16",
            "wrong-space",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [aliased], [ss], 16",
            "unsupported-alias",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [gg], [ss], 16, [b]",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [gg], [ss], 16",
            "out-of-bounds",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.max.noftz.f16 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        (
            "atom.global.add.f16x2 r, [words], q",
            "conflicting-qualifiers",
        ),
        ("red.global.min.f16x2 [words], q", "conflicting-qualifiers"),
        (
            "red.global.xor.noftz.f16x2 [words], q",
            "conflicting-qualifiers",
        ),
        (
            "red.global.add.noftz.u32 [words], q",
            "conflicting-qualifiers",
        ),
        (
            "red.shared.add.noftz.v2.f16x2 [sw], {q, q}",
            "unsupported-qualifier",
        ),
        (
            "mov.u64 p, gg; red.global.add.noftz.v8.f16x2 [p], {q, q, q, q, q, q, q, q}",
            "unsupported-qualifier",
        ),
        (
            "atom.add.b128 {r, q}, [gg], {1, 2}",
            "unsupported-qualifier",
        ),
        ("atom.exch.b128 r, [gg], {1, 2}", "wrong-operand"),
        ("atom.cas.b128 {r, q}, [gg], 1, {1, 2}", "wrong-operand"),
        ("atom.cas.b128 {r, q}, [gg+8], {1, 2}, {1, 2}", "misaligned"),
        (
            "atom.exch.b128.u64 {r, q}, [gg], {1, 2}",
            "conflicting-qualifiers",
        ),
        ("discard.global.L2 [gg], 128", "out-of-bounds"),
        ("discard.global.L2 [gg], 64", "wrong-operand"),
        ("discard.global [gg], 128", "wrong-operand"),
        ("discard.global.L2 [ss], 128", "wrong-space"),
        ("discard.L2 [b], 128", "mbarrier-access"),
        ("st.bulk.weak.shared::cta [ss], 12, 0", "wrong-operand"),
        ("st.bulk.weak.shared::cta [ss], 16, 1", "wrong-operand"),
        ("st.bulk [gg], 16, 0", "wrong-space"),
        ("ld.mmio.acquire.gpu r1, [gg]", "conflicting-qualifiers"),
        ("st.mmio.sys [gg], 1", "conflicting-qualifiers"),
        (
            "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [gg], [b]",
            "wrong-space",
        ),
        (
            "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [ss], [ss]",
            "no-mbarrier",
        ),
        (
            "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [s], [b]",
            "out-of-bounds",
        ),
        (
            "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [b], [b]",
            "mbarrier-access",
        ),
        (
            "clusterlaunchcontrol.try_cancel.async.b128 [ss], [b]",
            "conflicting-qualifiers",
        ),
        (
            "clusterlaunchcontrol.try_cancel.mbarrier::complete_tx::bytes.b128 [ss], [b]",
            "unknown-instruction",
        ),
        (
            "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q",
            "wrong-operand",
        ),
        (
            "clusterlaunchcontrol.query_cancel.get_first_ctaid::w.b32.b128 r, {q, q}",
            "unknown-instruction",
        ),
        (
            "tensormap.replace.tile.global_address.global.b1024.b64 [words], q",
            "wrong-operand",
        ),
        (
            "tensormap.replace.tile.global_address.global.b1024.b32 [gg], q",
            "conflicting-qualifiers",
        ),
        (
            "tensormap.replace.tile.global_address.global.b1024.b64 [ss], q",
            "wrong-space",
        ),
        (
            "tensormap.replace.tile.box_dim.global.b1024.b64 [gg], 0, q",
            "conflicting-qualifiers",
        ),
        (
            "tensormap.replace.tile.global.b1024.b32 [gg], q",
            "conflicting-qualifiers",
        ),
        (
            "tensormap.replace.global_address.global.b1024.b64 [gg], q",
            "unknown-instruction",
        ),
        (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [gg], [gg], 128",
            "wrong-space",
        ),
        (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu [gg], [ss], 128",
            "conflicting-qualifiers",
        ),
        (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [gg], [ss], 64",
            "conflicting-qualifiers",
        ),
        ("multimem.red.add.f16 [words], q", "conflicting-qualifiers"),
        (
            "multimem.st.v2.u32 [words], {q, r}",
            "conflicting-qualifiers",
        ),
        (
            "multimem.ld_reduce.add.v2.f64 {q, r}, [gg]",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [ss], [ss], 16, [b]",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64 [ss], [gg], 16, [b]",
            "wrong-space",
        ),
        (
            "cp.reduce.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.add.u64 [ss], [gg], 16, [b]",
            "conflicting-qualifiers",
        ),
        (
            "cp.async.bulk.relaxed.b128.global.shared::cta.bulk_group [gg], [ss], 16",
            "missing-scope",
        ),
        (
            "cp.async.bulk.global.shared::cta.bulk_group.b128 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        ("st.async.weak.u64 [s], 1", "wrong-operands"),
        (
            "st.async.release.gpu.u64 [x], 1, [b]",
            "conflicting-qualifiers",
        ),
        ("st.async.release.u64 [x], 1", "missing-scope"),
        (
            "st.async.release.cluster.u64 [x], 1",
            "conflicting-qualifiers",
        ),
        (
            "st.async.release.gpu.shared::cluster.u64 [s], 1",
            "conflicting-qualifiers",
        ),
        (
            "st.async.release.gpu.v2.u64 [gg], {1, 1}",
            "conflicting-qualifiers",
        ),
        ("st.async.release.gpu.u64 [s], 1", "wrong-space"),
        ("st.async.relaxed.gpu.u64 [x], 1", "unknown-qualifier"),
        ("st.async.u64 [x], 1, [b]", "wrong-space"),
        ("st.async.u64 [s], 1, [x]", "no-mbarrier"),
        ("st.async.u64 [b], 1, [b]", "mbarrier-access"),
        ("st.async.cluster.u64 [s], 1, [b]", "conflicting-qualifiers"),
        ("st.async.mmio.u64 [s], 1, [b]", "conflicting-qualifiers"),
        ("st.async.global.u64 [s], 1, [b]", "conflicting-qualifiers"),
        ("st.async.b128 [s], 1, [b]", "out-of-bounds"),
        ("mov.u64 p, s; st.async [p], 1, [b]", "missing-type"),
        ("red.async.add.u32 [words], 1, [b]", "missing-order"),
        ("red.async.relaxed.add.u32 [words], 1, [b]", "missing-scope"),
        (
            "red.async.acquire.cluster.add.u32 [words], 1, [b]",
            "acquire-on-red",
        ),
        (
            "red.async.relaxed.gpu.add.u32 [words], 1, [b]",
            "conflicting-qualifiers",
        ),
        (
            "red.async.relaxed.cluster.add.u32 [words], 1",
            "wrong-operands",
        ),
        (
            "red.async.relaxed.cluster.add.u32 [words], 1, [b]",
            "wrong-space",
        ),
        (
            "red.async.relaxed.cluster.add.s64 [s], 1, [b]",
            "conflicting-qualifiers",
        ),
        (
            "red.async.relaxed.cluster.u64 [s], 1, [b]",
            "missing-operation",
        ),
        (
            "red.async.release.gpu.max.u32 [words], 1",
            "conflicting-qualifiers",
        ),
        (
            "red.async.release.gpu.add.u64 [x], 1, [b]",
            "conflicting-qualifiers",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 q, [ss], 16",
            "wrong-operands",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {q, r, t, u}, {1, 2, 3, 4}, 1, 1, 1, 1, 0",
            "unsupported-descriptor",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {q, r}, {1, 2, 3, 4}, 1, 1, 1, 1, 0",
            "wrong-operands",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k8.f32.f16.f16 {q, r, t, u}, {1, 2, 3, 4}, 1, 1, 1, 1, 0",
            "conflicting-qualifiers",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {q, r, t, u}, {1, 2, 3, 4}, 1, 1, 1, 1",
            "conflicting-qualifiers",
        ),
        (
            "mov.u32 r1, bytes; shr.u32 r2, r1, 4; cvt.u64.u32 r3, r2; or.b64 r4, r3, 0x100080000; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {q, r, t, u}, {1, 2, 3, 4}, r4, 1, 1, 1, 0",
            "out-of-bounds",
        ),
        (
            "mov.u32 r1, bytes; shr.u32 r2, r1, 4; cvt.u64.u32 r3, r2; or.b64 r4, r3, 0x2000100080000; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {q, r, t, u}, {1, 2, 3, 4}, r4, 1, 1, 1, 0",
            "unsupported-descriptor",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16.sp {q, r, t, u}, {1, 2, 3, 4}, 1, 1, 1, 1, 0",
            "unknown-qualifier",
        ),
        (
            "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [gg, {0}], [ss]",
            "missing-shape",
        ),
        (
            "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [gg, 0], [ss]",
            "syntax",
        ),
        (
            "cp.async.bulk.tensor.1d.im2col.global.shared::cta.bulk_group [gg, {0}], [ss]",
            "unsupported-qualifier",
        ),
        (
            "cp.async.bulk.tensor.1d.global.shared::cta [gg, {0}], [ss]",
            "unknown-instruction",
        ),
        (
            "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster [ss], [gg, {0}], [b], 3",
            "conflicting-qualifiers",
        ),
        ("wgmma.mma_async q, [gg], 16", "wrong-space"),
        ("wgmma.mma_async q, [ss], 8", "wrong-operand"),
        (
            "wgmma.mma_async q, [ss], 16; add.u64 r, q, 1",
            "unsupported-operand",
        ),
        (
            "wgmma.mma_async q, [ss], 16; mov.u64 q, 1",
            "unsupported-operand",
        ),
        ("wgmma.wait_group -1", "wrong-operand"),
        ("wgmma.wait_group.read 0", "unknown-qualifier"),
        ("wgmma q", "unknown-instruction"),
        ("tcgen05.mma q", "wrong-operands"),
        (
            "tcgen05.alloc.cta_group::1.sync.aligned.b32 [ss], 48",
            "wrong-operand",
        ),
        (
            "tcgen05.alloc.cta_group::2.sync.aligned.b32 [ss], 32",
            "unsupported-qualifier",
        ),
        (
            "mov.u32 r0, 0; tcgen05.dealloc.cta_group::1.sync.aligned.b32 r0, 0",
            "wrong-operand",
        ),
        (
            "tcgen05.alloc.cta_group::1.sync.aligned.b32 [ss], 512; tcgen05.alloc.cta_group::1.sync.aligned.b32 [ss], 32",
            "out-of-range",
        ),
        (
            "mov.u32 r0, 0; tcgen05.ld.sync.aligned.32x32b.x2.b32 {r1}, [r0]",
            "wrong-operands",
        ),
        (
            "mov.u32 r0, 0; tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {r1}, [r0]",
            "wrong-operand",
        ),
        (
            "mov.u32 r0, 0; tcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [r0], 4",
            "wrong-operands",
        ),
        (
            "mov.u32 r0, 0; tcgen05.ld.sync.aligned.b32 {r1}, [r0]",
            "missing-qualifier",
        ),
        (
            "mov.u32 r0, 0; tcgen05.ld.sync.aligned.32x32b.x1.pack::16b.b32 {r1}, [r0]",
            "unsupported-qualifier",
        ),
        (
            "mov.u32 r0, 0; tcgen05.st.sync.aligned.32x32b.x2.b32 [r0], {1}",
            "wrong-operands",
        ),
        (
            "tcgen05.cp.cta_group::1.128x256b [r0], 1",
            "unsupported-qualifier",
        ),
        ("tcgen05.commit.cta_group::1.b64 [b]", "missing-qualifier"),
        (
            "mov.u32 r0, 0; mov.u32 r1, bytes; shr.u32 r2, r1, 4; cvt.u64.u32 r3, r2; or.b64 r4, r3, 0x401000000000; tcgen05.mma.cta_group::1.kind::f16.block_scale [r0], [r0], r4, 0x4020010, 1",
            "unsupported-qualifier",
        ),
        (
            "mov.u32 r0, 0; mov.u32 r1, bytes; shr.u32 r2, r1, 4; cvt.u64.u32 r3, r2; or.b64 r4, r3, 0x401000000000; tcgen05.mma.cta_group::1 [r0], [r0], r4, 0x4020010, 1",
            "missing-qualifier",
        ),
        (
            "mov.u32 r0, 0; mov.u32 r1, bytes; shr.u32 r2, r1, 4; cvt.u64.u32 r3, r2; or.b64 r4, r3, 0x401000000000; tcgen05.mma.cta_group::1.kind::f16 [r0], [r0], r4, r2, 1",
            "unsupported-descriptor",
        ),
        (
            "mov.u32 r0, 0; mov.u32 r1, bytes; shr.u32 r2, r1, 4; cvt.u64.u32 r3, r2; or.b64 r4, r3, 0x401000000000; tcgen05.mma.cta_group::1.kind::f16 [r0], [r0], r4, 0x4020014, 1",
            "unsupported-descriptor",
        ),
        (
            "mov.u32 r0, 0; mov.u32 r1, bytes; shr.u32 r2, r1, 4; cvt.u64.u32 r3, r2; or.b64 r4, r3, 0x401000000000; tcgen05.mma.cta_group::1.kind::f16 [r0], [r0], r4, 0x2020010, 1",
            "unsupported-descriptor",
        ),
        (
            "mov.u32 r0, 0; mov.u32 r1, bytes; shr.u32 r2, r1, 4; cvt.u64.u32 r3, r2; or.b64 r4, r3, 0x401000000000; tcgen05.mma.cta_group::1.kind::tf32 [r0], [r0], r4, 0x4030010, 1",
            "unsupported-descriptor",
        ),
        (
            "mov.u32 r0, 0; mov.u32 r1, bytes; shr.u32 r2, r1, 4; cvt.u64.u32 r3, r2; or.b64 r4, r3, 0x1000000000; tcgen05.mma.cta_group::1.kind::f16 [r0], [r0], r4, 0x4020010, 1",
            "unsupported-descriptor",
        ),
        (
            "mov.u32 r0, 0; mov.u32 r1, bytes; shr.u32 r2, r1, 4; cvt.u64.u32 r3, r2; or.b64 r4, r3, 0x2000401000000000; tcgen05.mma.cta_group::1.kind::f16 [r0], [r0], r4, 0x4020010, 1",
            "unsupported-descriptor",
        ),
        (
            "mov.u32 r0, 0; mov.u32 r1, bytes; shr.u32 r2, r1, 4; cvt.u64.u32 r3, r2; or.b64 r4, r3, 0x401000000000; tcgen05.mma.cta_group::1.kind::f16 [r0], [r0], r4, 0x4400010, 1",
            "out-of-bounds",
        ),
        ("ld.b128 r, [gg]", "wrong-operand"),
        ("ld.b128.u64 {r, q}, [gg]", "conflicting-qualifiers"),
        ("ld.b128 {r, q}, [gg+8]", "misaligned"),
        ("ld.relaxed.gpu.b128 {r, q}, [x]", "out-of-bounds"),
        (
            "mov.u64 p, gg; ld.relaxed.gpu.b128 {p, q}, [p]",
            "wrong-operand",
        ),
        (
            "cp.async.bulk.prefetch.L2.global [gg], 16",
            "unsupported-qualifier",
        ),
        (
            "cp.async.bulk.relaxed.sys.global.shared::cta.bulk_group [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        (
            "cp.async.bulk.sys.global.shared::cta.bulk_group [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        ("cp.async.bulk.wait_group -1", "wrong-operand"),
        ("cp.async.wait_group.read 0", "unknown-qualifier"),
        ("fence.proxy.async.local", "unknown-qualifier"),
        ("fence.proxy.alias.global", "conflicting-qualifiers"),
        ("fence.proxy.alias.release.gpu", "conflicting-qualifiers"),
        ("fence.proxy.alias.acq_rel.sys", "conflicting-qualifiers"),
        ("fence.proxy.async.acq_rel.gpu", "conflicting-qualifiers"),
        ("fence.proxy.async.gpu", "conflicting-qualifiers"),
        (
            "fence.release.sync_restrict::shared::cta.cta",
            "conflicting-qualifiers",
        ),
        (
            "fence.acquire.sync_restrict::shared::cta.cluster",
            "conflicting-qualifiers",
        ),
        (
            "fence.sc.sync_restrict::shared::cta.cluster",
            "conflicting-qualifiers",
        ),
        (
            "fence.proxy.tensormap::generic.acquire.gpu [gg], 64",
            "wrong-operand",
        ),
        (
            "fence.proxy.tensormap::generic.acquire.gpu [ss], 128",
            "wrong-space",
        ),
        (
            "fence.proxy.tensormap::generic.acquire.gpu [words], 128",
            "wrong-operand",
        ),
        (
            "fence.proxy.tensormap::generic.acquire.gpu [b], 128",
            "mbarrier-access",
        ),
        (
            "fence.proxy.tensormap::generic.acquire.gpu",
            "conflicting-qualifiers",
        ),
        (
            "fence.proxy.tensormap::generic.release.gpu [gg], 128",
            "conflicting-qualifiers",
        ),
        ("fence.proxy.tensormap::generic.release", "missing-scope"),
        ("cp.async.bulk.tensor [ss], [ss], 16, [b]", "wrong-space"),
        ("cp.async.bulk.tensor [gg], [gg], 16, [b]", "wrong-space"),
        ("cp.async.bulk.tensor [ss], [gg], 17, [b]", "wrong-operand"),
        (
            "ld.u64 p, [x]; cp.async.bulk.tensor [ss], [p], 16, [b]",
            "unsupported-address",
        ),
        (
            "cp.async.bulk.tensor.global.shared::cta.bulk_group [ss], [gg], 16, [b]",
            "conflicting-qualifiers",
        ),
        (
            "cp.async.bulk.tensor.1d [ss], [gg, {0}], [b]",
            "unknown-instruction",
        ),
        (
            "cp.reduce.async.bulk.tensor.1d.add [gg], [ss], 16",
            "missing-type",
        ),
        (
            "cp.reduce.async.bulk.tensor.add.u64 [ss], [ss], 16",
            "wrong-space",
        ),
        (
            "cp.reduce.async.bulk.tensor.add.u64 [gg], [gg], 16",
            "wrong-space",
        ),
        (
            "cp.reduce.async.bulk.tensor.add.u32 [gg], [ss], 16",
            "wrong-operand",
        ),
        (
            "cp.reduce.async.bulk.tensor.mbarrier::complete_tx::bytes.add.u64 [gg], [ss], 16",
            "conflicting-qualifiers",
        ),
        (
            "cp.reduce.async.bulk.tensor.tile.add.u64 [gg], [ss], 16",
            "unsupported-qualifier",
        ),
        (
            "st.async.release.gpu.global.b128 [x], {1, 2}",
            "out-of-bounds",
        ),
        ("multimem.st.u32 [words], 1", "wrong-operand"),
        (
            "mov.u64 p, gg; multimem.st.u64 [p], 1",
            "unsupported-address",
        ),
        (
            "multimem.cp.async.bulk.global.shared::cta.bulk_group [gg], [ss], 16",
            "unsupported-qualifier",
        ),
        ("griddepcontrol.wait 0", "wrong-operands"),
        ("griddepcontrol.launch", "unknown-instruction"),
        ("fence.proxy.alias.sys", "conflicting-qualifiers"),
        ("fence.proxy.alias.release", "conflicting-qualifiers"),
        ("fence.proxy.async.release.sys", "conflicting-qualifiers"),
        (
            "fence.proxy.async.global.acquire.sys",
            "conflicting-qualifiers",
        ),
        ("fence.proxy.surface.acquire.sys", "conflicting-qualifiers"),
        ("atom.add.u64 r0, [b], 1", "mbarrier-access"),
        (
            "fence.proxy.async::generic.acquire.sync_restrict::shared::cta.cluster",
            "conflicting-qualifiers",
        ),
        (
            "fence.proxy.async::generic.release.sync_restrict::shared::cta.gpu",
            "conflicting-qualifiers",
        ),
        ("fence.proxy.async::generic", "conflicting-qualifiers"),
        ("fence.mbarrier_init.release.gpu", "missing-scope"),
        ("mapa.u64 r, b, 1", "out-of-range"),
        ("mapa.u64 r, x, 0", "wrong-space"),
        ("mov.u64 p, b; mapa.u64 r, p, 1", "out-of-range"),
        ("ld.u64 p, x; mapa.u64 r, p, 0", "wrong-operand"),
        ("ldu.global.u32 r0, [x]", "unsupported-instruction"),
        ("set.eq.u32 r0, r1, r2", "missing-type"),
        ("set.eq.f64.u32 r0, r1, r2", "missing-type"),
        ("set.eq.ftz.u32.u32 r0, r1, r2", "conflicting-qualifiers"),
        ("lop4.b32 r0, r1, r2, r3, 0x96", "unknown-instruction"),
        ("testp.finite.f32 p, r0", "unsupported-instruction"),
        ("ex2.f32 r0, r1", "unknown-instruction"),
        ("add.f16.f32 r0, 1, 2", "conflicting-qualifiers"),
        ("add.rz.f16 r0, r1, r2", "conflicting-qualifiers"),
        ("add.ftz.bf16 r0, r1, r2", "conflicting-qualifiers"),
        ("mov.b16 r1, 1; add.f16 r0, r1, 0x3c00", "wrong-operand"),
        ("sub.sat.bf16x2 r0, r1, r2", "conflicting-qualifiers"),
        ("mul.sat.s32 r0, r1, r2", "conflicting-qualifiers"),
        ("div.rn.f16 r0, r1, r2", "unsupported-qualifier"),
        ("fma.f16 r0, r1, r2, r3", "unsupported-qualifier"),
        (
            "fma.rn.sat.relu.f16 r0, r1, r2, r3",
            "conflicting-qualifiers",
        ),
        ("fma.rn.relu.f32 r0, r1, r2, r3", "conflicting-qualifiers"),
        ("fma.f64 r0, r1, r2, r3", "unsupported-qualifier"),
        ("fma.rn.sat.f64 r0, r1, r2, r3", "conflicting-qualifiers"),
        ("min.NaN.f64 r0, r1, r2", "conflicting-qualifiers"),
        ("mov.b16 r1, 1; setp.lt.bf16 p|q, r1, r1", "wrong-operand"),
        (
            "setp.lt.u32 p, 1, 2; setp.lt.and.u32 p|q, 1, 2, p",
            "wrong-operand",
        ),
        ("setp.lo.f16 p, r1, r2", "missing-operation"),
        ("set.lt.f16.bf16 r0, r1, r2", "missing-type"),
        ("set.lt.bf16x2.f16x2 r0, r1, r2", "missing-type"),
        ("cvt.f16.bf16 r0, r1", "conflicting-qualifiers"),
        ("cvt.f16.f32 r0, r1", "conflicting-qualifiers"),
        ("cvt.rn.f32.f16 r0, r1", "conflicting-qualifiers"),
        ("cvt.rm.relu.f16.f32 r0, r1", "conflicting-qualifiers"),
        ("cvt.rn.sat.bf16.f32 r0, r1", "conflicting-qualifiers"),
        ("cvt.rn.ftz.f16.f64 r0, r1", "conflicting-qualifiers"),
        ("cvt.rn.f16x2.f32 r0, r1", "conflicting-qualifiers"),
        ("cvt.rn.f16.f32 r0, r1, r2", "conflicting-qualifiers"),
        ("cvt.rm.f16x2.f32 r0, r1, r2", "conflicting-qualifiers"),
        ("cvt.rn.bf16.u8 r0, r1", "conflicting-qualifiers"),
        ("cvt.rn.satfinite.f32.f64 r0, r1", "conflicting-qualifiers"),
        ("add.u32 r0, 1, 1.5", "wrong-operand"),
        ("mov.u32 r0, 1.5.0", "bad-number"),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f64 {r0}, {r1}, {r2}, {r3}",
            "unsupported-qualifier",
        ),
        (
            "createpolicy.range.L2::evict_last.b64 d, [x], 4, 4",
            "unknown-instruction",
        ),
        ("ld.L2::cache_hint.u32 r0, [x]", "wrong-operand"),
        ("ld.L2::cache_hint.u32 r0, [x], 5", "wrong-operand"),
        ("fence.L2::cache_hint.sc.gpu", "unknown-qualifier"),
        ("ld.aquire.gpu r0, x", "unknown-qualifier"),
        ("ld.v2.u32 {r0, r1}, [x]", "out-of-bounds"),
        ("ld.f16 r0, x", "unsupported-qualifier"),
        ("ld.relaxed r0, x", "missing-scope"),
        ("ld.weak.gpu r0, x", "conflicting-qualifiers"),
        ("ld.volatile.relaxed.sys r0, x", "conflicting-qualifiers"),
        ("ld.relaxed.acquire.gpu r0, x", "conflicting-qualifiers"),
        ("ld.weak r0, yy", "unknown-location"),
        ("st.weak x, r0", "unknown-register"),
        ("goto L", "unknown-label"),
        ("L: L: exit", "duplicate-label"),
        ("ld.weak x, x", "name-clash"),
        ("ld.weak r0", "wrong-operands"),
        ("ld.weak 5, x", "wrong-operand"),
        ("st.u8 x, 256", "constant-out-of-range"),
        ("st.u32 [a+2], 1", "misaligned"),
        ("st.u32 [a+12], 1", "out-of-bounds"),
        ("ld.u32 r0, [a]; ld.u64 r1, [a]", "mixed-size"),
        ("ld.shared r0, x", "wrong-space"),
        ("st.weak c, 1", "read-only"),
        ("red.acquire.gpu.add x, 1", "acquire-on-red"),
        ("atom.gpu r0, x, 1", "missing-operation"),
        (".reg .pred p; add.u32 r0, p, 1", "type-mismatch"),
        (".reg .pred p; ld.u8 p, [x]", "type-mismatch"),
        (".reg .b16 q; setp.eq.u32 q, 1, 1", "type-mismatch"),
        ("mov.u32 r0, x", "type-mismatch"),
        ("mov.b32 r0, {1, 2, 3}", "wrong-operand"),
        ("mov.b16 {r0, r1, r2, r3}, 1", "wrong-operand"),
        ("ld.u32 r0, [a]; mov.b32 {r0, r1}, r0", "wrong-operand"),
        ("mov.b32 {r0, r1}, {r0, r1}", "wrong-operand"),
        (".reg .b16 q; mov.b64 {q, r}, 1", "type-mismatch"),
        ("mov.u64 r0, x; mov.b64 {r1, r2}, r0", "unsupported-address"),
        ("mov.u32 r0, %tid.x", "unknown-register"),
        (".shared .u32 y;", "unsupported-directive"),
        ("ld.weak r0 x", "syntax"),
        (
            "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {r0}, [ss]",
            "unknown-instruction",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r0}, [ss]",
            "wrong-operand",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.shared.b16 {r0}, [ss]",
            "wrong-operand",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x1.global.b16 {r0}, [gg]",
            "unknown-qualifier",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x1.b16 {r0}, [gg]",
            "wrong-space",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r0}, [gg]",
            "wrong-space",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r0}, [ss]",
            "unsupported-mask",
        ),
        (
            "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [ss], {r0}",
            "unknown-instruction",
        ),
        (
            "mov.u32 r0, 1; stmatrix.sync.aligned.m8n8.x1.shared.b16 [ss], {r0}",
            "unsupported-mask",
        ),
        (
            "mov.u32 r0, 1; movmatrix.sync.aligned.m8n8.b16 r1, r0",
            "unknown-instruction",
        ),
        (
            "mov.u32 r0, 1; movmatrix.sync.aligned.m8n8.trans.b16 r1, r0",
            "unsupported-mask",
        ),
        (
            "wmma.load.a.sync.aligned.row.m16n16k16.f16 {r0}, [ss]",
            "unsupported-instruction",
        ),
        ("#line 17\nst.weak x, 1", "syntax"),
        ("#line -1 \"k.ptx\"\nst.weak x, 1", "syntax"),
        ("#include \"k.ptx\"\nst.weak x, 1", "syntax"),
        ("/* x", "unterminated-comment"),
        ("mov r0, 99999999999999999999", "bad-number"),
    ] {
        fails(code, id);
    }
}

#[test]
fn one_mistake_does_not_cause_others() {
    let text =
        lower_with("ld.relaxed.gup r0, x\nst.weak x, r0", &env()).expect_err("a misspelt scope");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn suites_may_leave_names_undeclared() {
    let env = PtxEnv {
        acquiring_red: true,
        ..PtxEnv::default()
    };
    let program = lower_with("st.weak new, r7\nred.acq_rel.cta.add x, 1", &env).expect("lenient");
    assert_eq!(
        program.locations.last().map(|l| l.name.as_str()),
        Some("new")
    );
    assert_eq!(program.threads[0].regs[0].init, Init::Int(0));
}
