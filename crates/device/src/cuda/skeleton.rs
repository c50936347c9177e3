//! The code around the instances of a test in PTX: roles of groups, the meeting before each
//! instance, delays and stress.
//!
//! # Invariants
//! - It matches the version in OpenCL C line by line, with one exception: if `salt` is odd, groups
//!   get their roles by number, so that the blocks of one team are neighbours.
//! - Every thread of a group executes the same barriers.

use std::fmt::Write;

use crate::kernel::OFTEN;
use crate::launch::{APART, KernelShape, STRESSED};
use program::litmus::LitmusTest;

/// The parts that differ between kernels.
pub(super) struct SkeletonParts<'t> {
    /// `.version`
    pub(super) version: (u8, u8),
    /// `.target`
    pub(super) target: u8,
    /// The number of values that its groups hand over.
    pub(super) slots: usize,
    /// The code of an instance.
    pub(super) instances: &'t str,
    /// The numbers of temporary registers of 32, 16 and 64 bits, and of predicates.
    pub(super) counts: [u32; 4],
}

/// The whole kernel.
pub(super) fn text(test: &LitmusTest, shape: &KernelShape, parts: &SkeletonParts<'_>) -> String {
    let name = |loc: program::LocId| &test.program.location(loc).name;
    let mut text = format!(
        "// {}, made by Fencepost.\n",
        test.name.replace(['\n', '\r'], " ")
    );
    let (major, minor) = parts.version;
    let mut put = |line: String| writeln!(text, "{line}").expect("a string");
    put(format!(
        ".version {major}.{minor}\n.target sm_{}\n.address_size 64",
        parts.target
    ));
    let objects = (0..shape.shared.len())
        .map(|i| format!(",\n\t.param .u64 memory{i}, .param .u64 stride{i}"));
    put(format!(
        "{}{}\n)\n{{",
        HEAD.trim(),
        objects.collect::<String>()
    ));
    let [words, halves, longs, truths] = parts.counts.map(|count| count.max(1));
    put(format!(
        "\t.reg .b32 %w<{words}>;\n\t.reg .b16 %h<{halves}>;\n\t.reg .b64 %t<{longs}>;"
    ));
    put(format!("\t.reg .pred %q<{truths}>;"));
    put(REGISTERS.trim_matches('\n').into());
    for object in &shape.local {
        let bytes = object.bytes.div_ceil(8).max(1) * 8;
        put(format!(
            "\t.shared .align 16 .b8 L{}[{bytes}]; // {}",
            object.loc.0,
            name(object.loc)
        ));
    }
    if parts.slots > 0 {
        put(format!(
            "\t.shared .align 8 .b8 given[{}];",
            8 * parts.slots
        ));
    }
    for (i, object) in shape.shared.iter().enumerate() {
        let at = object.loc.0;
        put(format!(
            "\t.reg .b64 %M{at}; // {}\n\t.reg .b64 %first{i}, %stride{i};",
            name(object.loc)
        ));
        put(format!(
            "\tld.param.u64 %first{i}, [memory{i}];\n\tld.param.u64 %stride{i}, [stride{i}];"
        ));
    }
    put(TEAMS.trim_matches('\n').into());
    for (i, object) in shape.shared.iter().enumerate() {
        let at = object.loc.0;
        put(format!(
            "\tmul.lo.u64 %x8, %instance, %stride{i};\n\tadd.s64 %M{at}, %first{i}, %x8;"
        ));
    }
    for object in &shape.local {
        for (offset, cell) in &object.cells {
            let (at, bits) = (object.loc.0, cell.ty.bits);
            // A value as wide as a register is stored from one.
            put(format!(
                "\tmov.b64 %x8, {};\n\t@%one st.shared.u{bits} [L{at}+{offset}], %x8;",
                cell.init
            ));
        }
    }
    put(MEETING.trim_matches('\n').into());
    if shape.meets() {
        put("\tbarrier.sync 15;".into());
    }
    put(DELAY.trim_matches('\n').into());
    put(parts.instances.trim_matches('\n').into());
    put(END.trim_matches('\n').into());
    let numbers = [
        ("${groups}", shape.groups.len()),
        ("${apart}", APART * 4),
        ("${twice}", 2 * APART * 4),
        ("${often}", OFTEN as usize),
        ("${stressed}", STRESSED),
        ("${width}", shape.results.len() * 8),
    ];
    numbers.iter().fold(text, |text, (name, number)| {
        text.replace(name, &number.to_string())
    })
}

const HEAD: &str = "
.visible .entry test(
	.param .u64 meeting, .param .u64 results, .param .u64 order,
	.param .u32 teams, .param .u32 instances, .param .u32 factor, .param .u32 first,
	.param .u32 patience, .param .u32 delay, .param .u32 salt, .param .u32 stress
";

const REGISTERS: &str = "
	.reg .b32 %me, %block, %team, %group, %turn, %steps, %ended, %teams, %instances, %patience, \
	%delay, %salt, %stress, %all;
	.reg .b32 %x<8>, %left;
	.reg .b64 %meeting, %results, %order, %instance, %mine, %through, %met, %missed, %factor, \
	%start, %each, %x8, %x9, %a0, %a1;
	.reg .pred %one, %p<3>;
	.shared .align 4 .b32 joined;
";

/// Groups join in the order in which they start, or by their number.
const TEAMS: &str = "
	ld.param.u64 %meeting, [meeting];
	ld.param.u64 %results, [results];
	ld.param.u64 %order, [order];
	ld.param.u32 %teams, [teams];
	ld.param.u32 %instances, [instances];
	ld.param.u32 %x0, [factor];
	cvt.u64.u32 %factor, %x0;
	ld.param.u32 %x0, [first];
	cvt.u64.u32 %start, %x0;
	ld.param.u32 %patience, [patience];
	ld.param.u32 %delay, [delay];
	ld.param.u32 %salt, [salt];
	ld.param.u32 %stress, [stress];
	cvt.u64.u32 %each, %instances;
	mov.u32 %me, %tid.x;
	mov.u32 %block, %ctaid.x;
	setp.eq.u32 %one, %me, 0;
	and.b32 %x0, %salt, 1;
	setp.ne.u32 %p0, %x0, 0;
	@%p0 bra JOINED;
	@%one atom.relaxed.gpu.global.add.u32 %x0, [%meeting], 1;
	@%one st.shared.u32 [joined], %x0;
	barrier.sync 15;
	ld.shared.u32 %block, [joined];
JOINED:
	mul.lo.u32 %all, %teams, ${groups};
	add.s64 %through, %meeting, ${apart};
	div.u32 %team, %block, ${groups};
	rem.u32 %x0, %block, ${groups};
	mul.wide.u32 %x8, %x0, 4;
	add.s64 %a0, %order, %x8;
	ld.global.u32 %group, [%a0];
	setp.lt.u32 %p0, %team, %teams;
	@%p0 bra PLAY;
	// Spare groups keep memory busy until all others are through, for a limited time.
	sub.u32 %x0, %block, %all;
	setp.ge.u32 %p0, %x0, %stress;
	@%p0 bra DONE;
	mul.wide.u32 %x8, %teams, ${twice};
	add.s64 %a0, %meeting, %x8;
	mov.u32 %x1, 0;
	mul.lo.u32 %x2, %block, 2654435761;
	xor.b32 %x2, %x2, %salt;
STRESS:
	mad.lo.u32 %x2, %x2, 1664525, 1013904223;
	shr.u32 %x3, %x2, 16;
	rem.u32 %x3, %x3, ${stressed};
	mul.wide.u32 %x9, %x3, ${apart};
	add.s64 %a1, %a0, %x9;
	ld.volatile.global.u32 %x3, [%a1+${twice}];
	add.u32 %x3, %x3, %x1;
	st.volatile.global.u32 [%a1+${twice}], %x3;
	add.u32 %x1, %x1, 1;
	and.b32 %x3, %x1, 63;
	setp.ne.u32 %p0, %x3, 0;
	@%p0 bra ON;
	ld.relaxed.gpu.global.u32 %x3, [%through];
	setp.eq.u32 %p0, %x3, %all;
	@%p0 bra DONE;
ON:
	setp.lt.u32 %p0, %x1, 4194304;
	@%p0 bra STRESS;
	bra DONE;
PLAY:
	mul.wide.u32 %x8, %team, ${twice};
	add.s64 %x8, %x8, ${twice};
	add.s64 %met, %meeting, %x8;
	add.s64 %missed, %met, ${apart};
	mov.u32 %turn, 0;
TURN:
	cvt.u64.u32 %instance, %turn;
	mad.lo.u64 %instance, %instance, %factor, %start;
	rem.u64 %instance, %instance, %each;
	mul.wide.u32 %x8, %team, %instances;
	add.s64 %instance, %instance, %x8;
	mul.lo.u64 %x8, %instance, ${width};
	add.s64 %mine, %results, %x8;
";

/// The groups of a team wait for each other, at the start longer than later, and no longer after
/// many misses.
const MEETING: &str = "
	setp.eq.u32 %p0, %patience, 0;
	@%p0 bra MET;
	@!%one bra MET;
	red.relaxed.gpu.global.add.u32 [%met], 1;
	ld.relaxed.gpu.global.u32 %x0, [%missed];
	setp.ge.u32 %p0, %x0, ${often};
	@%p0 bra MET;
	add.u32 %x1, %turn, 1;
	mul.lo.u32 %x1, %x1, ${groups};
	mov.u32 %left, %patience;
	setp.eq.u32 %p0, %turn, 0;
	@%p0 mul.lo.u32 %left, %left, ${often};
WAIT:
	ld.relaxed.gpu.global.u32 %x0, [%met];
	setp.ge.u32 %p0, %x0, %x1;
	@%p0 bra MET;
	sub.u32 %left, %left, 1;
	setp.ne.u32 %p0, %left, 0;
	@%p0 bra WAIT;
	red.relaxed.gpu.global.add.u32 [%missed], 1;
MET:
";

const DELAY: &str = "
	setp.eq.u32 %p0, %delay, 0;
	@%p0 bra GO;
	mad.lo.u32 %x0, %block, 40503, %me;
	mul.lo.u32 %x1, %turn, 2654435761;
	xor.b32 %x0, %x0, %x1;
	xor.b32 %x0, %x0, %salt;
	rem.u32 %x0, %x0, %delay;
	mov.u32 %x1, 0;
SPIN:
	setp.ge.u32 %p0, %x1, %x0;
	@%p0 bra GO;
	ld.volatile.shared.u32 %x2, [joined];
	add.u32 %x1, %x1, 1;
	bra SPIN;
GO:
";

const END: &str = "
	add.u32 %turn, %turn, 1;
	setp.lt.u32 %p0, %turn, %instances;
	@%p0 bra TURN;
	@%one red.relaxed.gpu.global.add.u32 [%through], 1;
DONE:
	ret;
}
";
