//! The code that modules become, and the messages about those that are not read.

use super::{TranslatedModule, translate};
use crate::litmus::parse;
use diag::Diagnostic;
use std::fmt::Write;

/// The head of a module with a kernel `k(p)`, where `p` points to integers of the device.
const HEAD: &str = r#"
OpCapability Addresses
OpCapability Kernel
OpCapability Int64
%std = OpExtInstImport "OpenCL.std"
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %k "k" %id
OpName %p "p"
OpDecorate %id BuiltIn GlobalInvocationId
%uint = OpTypeInt 32 0
%ulong = OpTypeInt 64 0
%bool = OpTypeBool
%void = OpTypeVoid
%v3 = OpTypeVector %ulong 3
%in = OpTypePointer Input %v3
%gp = OpTypePointer CrossWorkgroup %uint
%fp = OpTypePointer Function %uint
%c0 = OpConstant %uint 0
%c1 = OpConstant %uint 1
%c2 = OpConstant %uint 2
%c16 = OpConstant %uint 16
%c272 = OpConstant %uint 272
%l1 = OpConstant %ulong 1
%kf = OpTypeFunction %void %gp
%id = OpVariable %in Input
"#;

/// A module whose kernel has a body.
fn module(body: &str) -> String {
    format!(
        "{HEAD}%k = OpFunction %void None %kf\n%p = OpFunctionParameter %gp\n%start = OpLabel\n\
         {body}\nOpFunctionEnd\n"
    )
}

fn code(text: &str) -> String {
    match translate("k.spvasm", text.as_bytes()) {
        Ok(TranslatedModule { file, .. }) => {
            let translation = file.translation.as_ref().expect("a translation");
            translation.code.as_str().to_owned()
        }
        Err(wrong) => said(&wrong),
    }
}

fn said(all: &[Diagnostic]) -> String {
    let mut out = String::new();
    for d in all {
        let _ = writeln!(out, "{}: {}; {}; {:?}", d.id, d.message, d.label, d.help);
    }
    out
}

#[track_caller]
fn becomes(body: &str, expected: &[&str]) {
    let code = code(&module(body));
    for part in expected {
        assert!(code.contains(part), "no `{part}` in\n{code}");
    }
    if let Err(wrong) = parse("k.spvasm", module(body).as_bytes()) {
        panic!("{code}\n{}", said(&wrong));
    }
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let said = code(text);
    assert!(said.contains(expected), "no `{expected}` in\n{said}");
}

#[test]
fn accesses_go_through_pointers() {
    becomes(
        "%a = OpInBoundsPtrAccessChain %gp %p %l1\n%v = OpLoad %uint %a\n%w = OpIAdd %uint %v %c1\n\
         OpStore %p %w\nOpReturn",
        &["kernel void k(global uint * p)", "p[1];", " + 1u;", "*p = "],
    );
    becomes(
        "%x = OpVariable %fp Function\nOpStore %x %c2\n%v = OpLoad %uint %x\n\
         OpStore %p %v\nOpReturn",
        &["uint x", "x = 2u;"],
    );
}

#[test]
fn numbers_of_a_work_item_are_calls() {
    becomes(
        "%all = OpLoad %v3 %id\n%i = OpCompositeExtract %ulong %all 1\n\
         %n = OpUConvert %uint %i\nOpStore %p %n\nOpReturn",
        &["= get_global_id(1);"],
    );
}

#[test]
fn atomic_operations_have_their_order_and_scope() {
    becomes(
        "%v = OpAtomicIAdd %uint %p %c2 %c16 %c1\nOpAtomicStore %p %c1 %c0 %v\n\
         %o = OpAtomicCompareExchange %uint %p %c1 %c2 %c2 %c1 %c0\nOpReturn",
        &[
            "atomic_fetch_add_explicit(p, 1u, memory_order_seq_cst, memory_scope_work_group)",
            "memory_order_relaxed, memory_scope_device);",
            "memory_order_acquire, memory_order_acquire, memory_scope_device);",
        ],
    );
    becomes(
        "OpControlBarrier %c2 %c2 %c272\nOpMemoryBarrier %c1 %c272\nOpReturn",
        &[
            "work_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_work_group);",
            "atomic_work_item_fence(CLK_LOCAL_MEM_FENCE, memory_order_seq_cst, ",
        ],
    );
}

#[test]
fn jumps_assign_what_the_target_takes_at_once() {
    let swap = "OpBranch %loop\n%loop = OpLabel\n\
        %a = OpPhi %uint %c0 %start %b %loop\n%b = OpPhi %uint %c1 %start %a %loop\n\
        %n = OpPhi %uint %c0 %start %m %loop\n%m = OpIAdd %uint %n %c1\n\
        %more = OpULessThan %bool %m %c2\nOpBranchConditional %more %loop %end\n\
        %end = OpLabel\nOpStore %p %a\nOpReturn";
    becomes(swap, &["goto block"]);
    // After one jump back, `a` is what `b` was, and `b` what `a` was.
    let tests = parse("k.spvasm", module(swap).as_bytes()).expect("a test");
    assert!(tests[0].program.threads[0].has_loop());
}

#[test]
fn calls_are_replaced_by_their_functions() {
    let text = module("%r = OpFunctionCall %uint %f %c1\nOpStore %p %r\nOpReturn").replace(
        "%k = OpFunction",
        "%ft = OpTypeFunction %uint %uint\n%f = OpFunction %uint None %ft\n\
         %n = OpFunctionParameter %uint\n%fs = OpLabel\n%is = OpIEqual %bool %n %c1\n\
         OpBranchConditional %is %fa %fb\n%fa = OpLabel\nOpReturnValue %c2\n%fb = OpLabel\n\
         OpReturnValue %n\nOpFunctionEnd\n%k = OpFunction",
    );
    let code = code(&text);
    assert!(code.contains("goto end_1;"), "{code}");
    parse("k.spvasm", text.as_bytes()).expect("a test");
    refused(
        &text.replace(
            "OpReturnValue %c2",
            "%q = OpFunctionCall %uint %f %n\nOpReturnValue %q",
        ),
        "calls itself",
    );
}

#[test]
fn a_function_changes_a_copy_of_what_it_takes_by_value() {
    let by_reference = module(
        "%x = OpVariable %fp Function\nOpStore %x %c1\n%r = OpFunctionCall %void %f %x\n\
         %v = OpLoad %uint %x\nOpStore %p %v\nOpReturn",
    )
    .replace(
        "%k = OpFunction",
        "%ft = OpTypeFunction %void %fp\n%f = OpFunction %void None %ft\n\
         %n = OpFunctionParameter %fp\n%fs = OpLabel\nOpStore %n %c2\nOpReturn\n\
         OpFunctionEnd\n%k = OpFunction",
    );
    let by_value = by_reference.replace(
        "%uint = OpTypeInt",
        "OpDecorate %n FuncParamAttr ByVal\n%uint = OpTypeInt",
    );
    let (by_reference, by_value) = (code(&by_reference), code(&by_value));
    assert!(by_reference.contains("x = 2u;"), "{by_reference}");
    assert!(!by_value.contains("x = 2u;"), "{by_value}");
    assert!(by_value.contains(" = x;"), "{by_value}");
}

#[test]
fn a_fence_of_no_memory_is_none() {
    // `%c16` is an order alone.
    let code = code(&module("OpMemoryBarrier %c1 %c16\nOpReturn"));
    assert!(!code.contains("fence"), "{code}");
}

#[test]
fn what_is_not_read_is_said_at_its_instruction() {
    let with = |line: &str| format!("{HEAD}{line}\n{}", module("OpReturn").replace(HEAD, ""));
    for (text, expected) in [
        (
            HEAD.replace("OpCapability Int64", "OpCapability Pipes"),
            "capability `Pipes`",
        ),
        (
            HEAD.replace("OpCapability Int64", "OpCapability ImageBasic"),
            "`ImageBasic`",
        ),
        (with("%q = OpTypeInt 24 0"), "an integer of 24 bits"),
        (
            with("%q = OpTypeSampler"),
            "`OpTypeSampler` is not supported",
        ),
        (
            with("OpTypeForwardPointer %gp CrossWorkgroup"),
            "refers to itself",
        ),
        (with("%q = OpTypeArray %uint %q"), "expected a size"),
        (with("%q = OpTypeStruct %q"), "is not a type"),
        (with("%uint = OpTypeInt 32 0"), "defined twice"),
        (module("OpUnreachable"), "`OpUnreachable` is not supported"),
        (module("OpNop"), "a block that does not end"),
        (module("OpBranch %none"), "is not a block"),
        (module("OpStore %p %none\nOpReturn"), "is not defined"),
        (
            module("%v = OpAtomicLoad %uint %p %c16 %c2\nOpReturn"),
            "has a scope that OpenCL lacks",
        ),
        (
            module("OpControlBarrier %c1 %c2 %c272\nOpReturn"),
            "scope of a work-group",
        ),
        (
            module("%v = OpUndef %uint\nOpStore %p %v\nOpReturn"),
            "not defined",
        ),
        (
            HEAD.replace("OpEntryPoint Kernel %k \"k\" %id", ""),
            "has no kernel",
        ),
        (HEAD.to_owned(), "has no function"),
        (
            HEAD.replace("OpenCL\n", "OpenCL 3\n"),
            "one operand too many",
        ),
        (
            HEAD.replace("%uint = OpTypeInt 32 0", "%uint = OpTypeInteger 32 0"),
            "not an instruction",
        ),
        (
            HEAD.replace("%uint = OpTypeInt 32 0", "OpTypeInt 32 0"),
            "this has a result",
        ),
        (
            HEAD.replace("Physical64", "Physical46"),
            "not a word for this operand",
        ),
        (
            HEAD.replace("\"OpenCL.std\"", "\"OpenCL.std"),
            "does not end",
        ),
    ] {
        refused(&text, expected);
    }
}

/// A small binary module, by its words.
fn binary() -> Vec<u8> {
    let text = module("OpReturn");
    let words = super::assemble::words("k.spvasm", text.as_bytes()).expect("a module");
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn binary_modules_are_listed() {
    let whole = binary();
    let read = translate("k.spv", &whole).expect("a module");
    assert!(
        read.file.text.contains("OpEntryPoint Kernel"),
        "{}",
        read.file.text
    );
    // The same in the other order of bytes.
    let turned: Vec<u8> = whole
        .chunks(4)
        .flat_map(|word| word.iter().rev().copied())
        .collect();
    let other = translate("k.spv", &turned).expect("a module");
    assert_eq!(read.file.text, other.file.text);
}

#[test]
fn broken_binary_modules_are_errors() {
    let whole = binary();
    let said = |bytes: &[u8]| match translate("k.spv", bytes) {
        Ok(_) => "read".to_owned(),
        Err(wrong) => said(&wrong),
    };
    assert!(said(&whole[..8]).contains("less than its head"));
    assert!(said(&whole[..whole.len() - 2]).contains("do not fill whole words"));
    let mut version = whole.clone();
    version[6] = 9;
    assert!(
        said(&version).contains("its version is 9"),
        "{}",
        said(&version)
    );
    let mut magic = whole.clone();
    magic[0] = 0;
    assert!(said(&magic).contains("it begins with"));
    let mut opcode = whole.clone();
    opcode[20..24].copy_from_slice(&[0xff, 0xff, 2, 0]);
    assert!(
        said(&opcode).contains("unknown number 65535"),
        "{}",
        said(&opcode)
    );
    // No cut, and no changed byte, is a panic.
    for end in (0..whole.len()).step_by(4) {
        let _ = translate("k.spv", &whole[..end]);
    }
    for at in 20..whole.len() {
        for change in [1, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] ^= change;
            let _ = translate("k.spv", &changed);
        }
    }
}
