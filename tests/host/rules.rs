//! Host programs: the effect of each ordering rule, waits that never end, and error messages.
//!
//! `tests/corpus` checks the verdicts of `litmus/host`.

use std::path::Path;

use fencepost::check::liveness::{Liveness, LivenessTask, ProgressModel};
use fencepost::check::{Engine, Limits, Session};
use fencepost::diag::{Diagnostic, Severity};
use fencepost::litmus::{LitmusTest, parse, read, read_path};
use fencepost::program::host::{
    ChildStart, CommandId, CommandOrigin, HostOp, Lane, LaneId, LaneKind, LaunchNode, LaunchOrders,
    Rule, StuckWait,
};
use fencepost::program::{Instr, Op};
use fencepost::verdict::{Definedness, Ending, Remedy, Verdict};
use testkit::suite::shipped;

/// For each rule, a test whose verdict rests on it.
const RESTS_ON: &[(Rule, &str)] = &[
    (Rule::Issue, "opencl/H12-issue"),
    (Rule::WaitList, "opencl/H03-wait-list"),
    (Rule::OwnEvent, "opencl/H01-in-order-queue"),
    (Rule::WaitForEvents, "opencl/H14b-wait-for-events"),
    (Rule::InOrder, "opencl/H01-in-order-queue"),
    (Rule::Marker, "opencl/H06-marker-event"),
    (Rule::BarrierAfter, "opencl/H04-barrier"),
    (Rule::BarrierBefore, "opencl/H04-barrier"),
    (Rule::Finish, "opencl/H14-finish"),
    (Rule::KernelStart, "opencl/H03-wait-list"),
    (Rule::KernelEnd, "opencl/H03-wait-list"),
    (Rule::Callback, "opencl/H21-callback"),
    (Rule::UserEvent, "opencl/H19-user-event"),
    (Rule::Blocking, "opencl/H17-blocking-map"),
    (Rule::GroupEnd, "opencl/H01-in-order-queue"),
    (Rule::BarrierList, "opencl/H07b-barrier-list-event"),
    (Rule::Initializer, "opencl/D06-initializer"),
    (Rule::HostOrder, "opencl/D08-host-order"),
    (Rule::Launch, "cuda/C12b-launch"),
    (Rule::Stream, "cuda/C01-one-stream"),
    (Rule::NullAfter, "cuda/C11c-null-stream-last"),
    (Rule::NullBefore, "cuda/C11-null-stream-first"),
    (Rule::StreamWaitEvent, "cuda/C05-event"),
    (Rule::StreamSynchronize, "cuda/C08-stream-synchronize"),
    (Rule::DeviceSynchronize, "cuda/C10-device-synchronize"),
    (Rule::EventSynchronize, "cuda/C13-event-synchronize"),
    (Rule::EventQuery, "cuda/Query+event"),
    (Rule::StreamQuery, "cuda/Query+stream"),
    (Rule::SynchronousCopy, "cuda/C18-copy-to-the-host"),
    (Rule::LaunchBody, "cuda/C01-one-stream"),
    (Rule::LaunchEnd, "cuda/C01-one-stream"),
];

/// The same for the rules of CUDA, with kernels in PTX: file and test.
const IN_PTX: &[(Rule, &str, &str)] = &[
    (Rule::Launch, "host-writes", "C12b-launch"),
    (Rule::Stream, "two-kernels", "C01-one-stream"),
    (Rule::NullAfter, "two-kernels", "C11c-null-stream-last"),
    (Rule::NullBefore, "two-kernels", "C11-null-stream-first"),
    (Rule::StreamWaitEvent, "two-kernels", "C05-event"),
    (
        Rule::StreamSynchronize,
        "host-reads",
        "C08-stream-synchronize",
    ),
    (
        Rule::DeviceSynchronize,
        "host-reads",
        "C10-device-synchronize",
    ),
    (
        Rule::EventSynchronize,
        "host-reads",
        "C13-event-synchronize",
    ),
    (Rule::EventQuery, "host-reads", "Query+event"),
    (Rule::StreamQuery, "host-reads", "Query+stream"),
    (Rule::SynchronousCopy, "host-reads", "C18-copy-to-the-host"),
    (Rule::LaunchBody, "two-kernels", "C01-one-stream"),
    (Rule::LaunchEnd, "two-kernels", "C01-one-stream"),
];

/// The same for rules that only kernels in PTX need.
const OF_PTX: &[(Rule, &str, &str)] = &[(
    Rule::GridWait,
    "../../ptx-async/11-kernels/Dependent",
    "Dependent+wait",
)];

/// Rules of commands that kernels enqueue, which [`as_child`] derives from others;
/// `tests/host/device_enqueue.rs` has the rule of tail launches.
const OF_CHILDREN: &[Rule] = &[
    Rule::WaitKernel,
    Rule::WaitWorkGroup,
    Rule::Family,
    Rule::TailLaunch,
];

fn tests(name: &str) -> Vec<LitmusTest> {
    let path = Path::new("litmus/host").join(format!("{name}.toml"));
    read_path(&path).unwrap_or_else(|d| panic!("{}: {}", path.display(), d[0]))
}

fn file(name: &str) -> LitmusTest {
    tests(name).remove(0)
}

fn in_ptx(name: &str, instance: &str) -> LitmusTest {
    let found = tests(&format!("ptx/{name}"))
        .into_iter()
        .find(|t| t.name == instance);
    found.unwrap_or_else(|| panic!("{name} has no {instance}"))
}

fn verdicts(test: &LitmusTest) -> (Verdict, Verdict) {
    let model = shipped(test.program.dialect.default_model());
    let mut session = Session::new(test, &model, Engine::Enumerate, Limits::default(), &[]);
    (
        session.reachability(None, false).verdict,
        session.race().unwrap().verdict,
    )
}

fn without(test: &LitmusTest, rule: Rule) -> LitmusTest {
    let mut test = test.clone();
    let host = test.program.host.as_mut().unwrap();
    host.rules = host.rules.without(rule);
    test
}

#[test]
fn every_rule_has_a_test_that_rests_on_it() {
    for rule in Rule::ALL {
        let alone = OF_CHILDREN.contains(rule) || OF_PTX.iter().any(|r| r.0 == *rule);
        let listed = RESTS_ON.iter().any(|r| r.0 == *rule) || alone;
        assert!(listed, "no test rests on {}", rule.id());
    }
    for (rule, name) in RESTS_ON {
        rests_on(&file(name), *rule);
    }
    for (rule, name, instance) in IN_PTX.iter().chain(OF_PTX) {
        rests_on(&in_ptx(name, instance), *rule);
    }
    let of_cuda = RESTS_ON.iter().filter(|r| r.1.starts_with("cuda/"));
    assert!(
        of_cuda.map(|r| r.0).eq(IN_PTX.iter().map(|r| r.0)),
        "every rule of CUDA has a test in PTX"
    );
}

fn rests_on(test: &LitmusTest, rule: Rule) {
    assert_eq!(
        verdicts(test),
        (Verdict::Forbidden, Verdict::RaceFree),
        "{}",
        test.name
    );
    let changed = without(test, rule);
    assert_eq!(
        verdicts(&changed),
        (Verdict::Allowed, Verdict::Racy),
        "{} without {}",
        test.name,
        rule.id()
    );
}

/// The test, changed so that the last instruction of the first command's only thread enqueues the
/// second command.
fn as_child(mut test: LitmusTest, flag: ChildStart) -> LitmusTest {
    let host = test.program.host.as_mut().unwrap();
    host.lanes.push(Lane {
        name: "d".into(),
        kind: LaneKind::OnDevice,
        device: 0,
    });
    let (parent, child) = (CommandId(0), CommandId(1));
    let thread = host.commands[0].threads[0];
    for call in &mut host.calls {
        if call.op
            == (HostOp::Enqueue {
                command: child,
                blocking: false,
            })
        {
            call.op = HostOp::Flush(LaneId(0));
        }
    }
    host.commands[1].lane = Some(LaneId(host.lanes.len() as u16 - 1));
    host.commands[1].origin = CommandOrigin::Device {
        parent,
        thread,
        flag,
    };
    let code = &mut test.program.threads[usize::from(thread.0)].code;
    let last: Instr = code.last().unwrap().clone();
    code.push(Instr {
        op: Op::Enqueue(child),
        ..last
    });
    test
}

#[test]
fn children_start_as_their_flag_says_and_belong_to_their_parent() {
    let two =
        "clEnqueueNDRangeKernel(q, K1, NULL, 1, 1);\nclEnqueueNDRangeKernel(q, K2, NULL, 1, 1);";
    let plain = || opencl(two);
    // The child of a plain buffer's writer is ordered after it only if it waits.
    assert_eq!(
        verdicts(&as_child(plain(), ChildStart::NoWait)),
        (Verdict::Allowed, Verdict::Racy)
    );
    for (flag, rule) in [
        (ChildStart::WaitKernel, Rule::WaitKernel),
        (ChildStart::WaitWorkGroup, Rule::WaitWorkGroup),
    ] {
        let test = as_child(plain(), flag);
        assert_eq!(
            verdicts(&test),
            (Verdict::Forbidden, Verdict::RaceFree),
            "{}",
            rule.id()
        );
        assert_eq!(
            verdicts(&without(&test, rule)),
            (Verdict::Allowed, Verdict::Racy),
            "{}",
            rule.id()
        );
    }
    // A command that waits for the parent waits for its children.
    let text = "clEnqueueNDRangeKernel(q, K0, NULL, 1, 1, NULL, &e);\nclEnqueueNDRangeKernel(q, K1, NULL, 1, 1);\n\
                clEnqueueNDRangeKernel(p, K2, NULL, 1, 1, {e});";
    let test = as_child(opencl(text), ChildStart::NoWait);
    assert_eq!(verdicts(&test), (Verdict::Forbidden, Verdict::RaceFree));
    assert_eq!(
        verdicts(&without(&test, Rule::Family)),
        (Verdict::Allowed, Verdict::Racy)
    );
}

#[test]
fn dependent_launches_are_in_a_stream_of_kernels() {
    let dependent =
        |host: &str| cuda_text(host).replace("name = \"K\"", "name = \"K\"\nprogrammatic = true");
    let edits = [
        ("\"cuda\"", "\"ptx\""),
        ("\"x = 1;\"", "\"st.weak [x], 1;\""),
        ("\"cudaDeviceSynchronize();\"", "\"\""),
    ];
    let ptx = |host: &str| {
        edits
            .iter()
            .fold(dependent(host), |text, (from, to)| text.replace(from, to))
    };
    let wrong = |host: &str| errors(ptx(host));
    let launches = "K<<<1, 1, 0, s>>>();\nK<<<1, 1, 0, s>>>();\ncudaStreamSynchronize(s);";
    assert_eq!(wrong(launches), ["nothing is wrong"]);
    assert_eq!(errors(dependent(launches)), ["nothing is wrong"]);
    let message =
        "unsupported 1: a dependent launch in a default stream is not supported [K<<<1, 1>>>();]";
    assert_eq!(wrong("K<<<1, 1>>>();"), [message]);
    let message = "unsupported 2: `cudaEventRecord` in a stream with dependent launches is not supported \
                   [cudaEventRecord(e, s);]";
    assert_eq!(
        wrong("K<<<1, 1, 0, s>>>();\ncudaEventRecord(e, s);\nK<<<1, 1, 0, s>>>();"),
        [message]
    );
    // Their end depends on their start, which is only partly specified.
    let test = parse("t.toml", ptx(launches).as_bytes())
        .unwrap_or_else(|d| panic!("{}", d[0]))
        .remove(0);
    let model = shipped("ptx");
    let setting = LivenessTask::new(&test, &model);
    let answer =
        Liveness::new(&setting, Engine::Enumerate, Limits::default(), &[]).ask(ProgressModel::Fair);
    assert_eq!(answer.verdict.word(), "undecided");
}

/// A program of OpenCL with the given code of one host thread.
fn opencl_text(host: &str) -> String {
    format!(
        "name = \"T\"\ndialect = \"opencl\"\ncondition = 'K2:r == 0'\nmemory = {{ x = 0, y = 0 }}\n\
         queues = {{ q = \"out-of-order\", p = {{ order = \"in-order\", context = \"other\" }} }}\n\
         [[kernel]]\nname = \"K0\"\ncode = \"*y = 1;\"\n[[kernel]]\nname = \"K1\"\ncode = \"*x = 1;\"\n\
         [[kernel]]\nname = \"K2\"\ncode = \"int r = *x;\"\n\
         [[function]]\nname = \"f\"\ncode = \"clFinish(q);\"\n[[host]]\ncode = '''\n{host}\n'''\n"
    )
}

fn opencl(host: &str) -> LitmusTest {
    let text = opencl_text(host)
        .replace("clFinish(q);\"", "\"")
        .replace(", context = \"other\"", "");
    parse("t.toml", text.as_bytes())
        .unwrap_or_else(|d| panic!("{}", d[0]))
        .remove(0)
}

fn cuda_text(host: &str) -> String {
    format!(
        "name = \"T\"\ndialect = \"cuda\"\ncondition = 'x == 0'\nmemory = {{ x = 0, p = {{ init = 0, kind = \"system\" }}, d = {{ init = 0, kind = \"device\" }} }}\n\
         streams = {{ s = \"blocking\", u = {{ kind = \"non-blocking\", device = 1 }} }}\nevents = [\"e\"]\n\
         [[kernel]]\nname = \"K\"\ncode = \"x = 1;\"\n\
         [[function]]\nname = \"f\"\ncode = \"cudaDeviceSynchronize();\"\n[[host]]\ncode = '''\n{host}\n'''\n"
    )
}

/// The messages about a host thread's code, each with its line in that code.
fn errors(text: String) -> Vec<String> {
    let first = text.lines().position(|l| l == "code = '''").unwrap() + 1;
    let Err(all) = parse("t.toml", text.as_bytes()) else {
        return vec!["nothing is wrong".into()];
    };
    let line = |d: &Diagnostic| {
        let source = d.source.as_ref().unwrap();
        let at = source.line_column(d.span.start as usize).0;
        let text = &source.text[d.span.range()];
        format!(
            "{} {}: {} [{}]",
            d.id,
            at as i64 - first as i64,
            d.message,
            text.split('\n').next().unwrap()
        )
    };
    all.iter()
        .filter(|d| d.severity == Severity::Error)
        .map(line)
        .collect()
}

#[test]
fn what_is_wrong_with_a_host_program_is_named_with_its_line() {
    let launch = "clEnqueueNDRangeKernel(q, K1, NULL, 1, 1, NULL, &e);";
    let read = "clEnqueueNDRangeKernel(q, K2, NULL, 1, 1);";
    let cl = |host: &str| errors(opencl_text(host).replace("\"clFinish(q);\"", "\"\""));
    let cu = |host: &str| errors(cuda_text(host).replace("\"cudaDeviceSynchronize();\"", "\"\""));
    let edited = |host: &str, from: &str, to: &str| {
        let text = opencl_text(host).replace("\"clFinish(q);\"", "\"\"");
        assert!(text.contains(from));
        errors(text.replace(from, to))
    };
    let uniform = |host: &str| edited(host, "name = \"K1\"", "name = \"K1\"\nuniform = true");
    let of_program = |host: &str| edited(host, "{ x = 0,", "{ x = { kind = \"program-scope\" },");
    // A use after the end of a queue, stream or event is for the property `lifetime`.
    let cases: Vec<(Vec<String>, &str)> = vec![
        (
            cl(&format!(
                "{launch}\nclEnqueueNDRangeKernel(p, K2, NULL, 1, 1, {{e}});"
            )),
            "other-context 2: `e` is an event of another context [e]",
        ),
        (
            cl(&format!(
                "{launch}\ncl_event u = clCreateUserEvent(other);\nclWaitForEvents({{e, u}});"
            )),
            "other-context 3: `u` is an event of another context [u]",
        ),
        (
            cl(&format!("clWaitForEvents({{e}});\n{launch}")),
            "null-event 1: `e` is not an event yet [e]",
        ),
        (
            cl(&format!("{launch}\nclWaitForEvents({{ee}});")),
            "unknown-event 2: there is no event `ee` [ee]",
        ),
        (
            cl("clWaitForEvents(NULL);"),
            "wrong-operands 1: this waits for nothing [clWaitForEvents(NULL);]",
        ),
        (
            cl("clEnqueueNDRangeKernel(q, K1, 18446744073709551615u, 4, 4);"),
            "bad-range 1: in dimension 0, offset and size exceed the largest `size_t` [18446744073709551615u]",
        ),
        (
            cl("clEnqueueNDRangeKernel(q, K1, NULL, 4, 0);"),
            "bad-range 1: groups of size 0 in dimension 0 [0]",
        ),
        (
            edited(
                "clEnqueueNDRangeKernel(q, K1, NULL, 4);",
                "*x = 1;",
                "*x = get_local_id(0);",
            ),
            "bad-range 1: the size of the work-groups is not given [4]",
        ),
        (
            edited(
                "clEnqueueNDRangeKernel(q, K1, NULL, {2, 2});",
                "condition = 'K2:r == 0'\n",
                "",
            ),
            "nothing is wrong",
        ),
        (
            cl("clEnqueueMapBuffer(q, x, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE_INVALIDATE_REGION);"),
            "wrong-operands 1: `CL_MAP_WRITE_INVALIDATE_REGION` is combined with another flag \
             [clEnqueueMapBuffer(q, x, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE_INVALIDATE_REGION);]",
        ),
        (
            cl("clEnqueueNDRangeKernel(q, K1, NULL, {4, 4}, 4);"),
            "bad-range 1: 1 dimensions here, 2 in the global size [4]",
        ),
        (
            cl(&format!(
                "{launch}\n{read}\nclReleaseCommandQueue(q);\nclFinish(q);"
            )),
            "nothing is wrong",
        ),
        (
            cl(&format!("{launch}\nclSetUserEventStatus(e, CL_COMPLETE);")),
            "wrong-operand 2: this is not a user event [e]",
        ),
        (
            cl("clFinsh(q);"),
            "unknown-function 1: there is no call `clFinsh` here [clFinsh]",
        ),
        (
            cl("clFinish(r);"),
            "unknown-name 1: there is no queue `r` [r]",
        ),
        (
            cl("if (*x == 1) { clFinish(q); }"),
            "unsupported 1: `clFinish` in a branch or a loop is not supported [clFinish(q);]",
        ),
        (
            uniform(
                "clEnqueueNDRangeKernel(q, K1, NULL, 4, 2);\nclEnqueueNDRangeKernel(q, K1, NULL, {4, 3}, {2, 2});",
            ),
            "bad-range 2: in dimension 1, 3 work-items are not whole work-groups of 2 [{2, 2}]",
        ),
        (
            cl(
                "clEnqueueNDRangeKernel(q, K1, NULL, 3, 2);\nclEnqueueNDRangeKernel(q, K2, NULL, 1, 1);",
            ),
            "nothing is wrong",
        ),
        (
            of_program("clEnqueueReadBuffer(q, x, CL_TRUE, y);"),
            "program-scope 1: the host cannot name `x`, a variable of the program \
             [clEnqueueReadBuffer(q, x, CL_TRUE, y);]",
        ),
        (
            of_program("clEnqueueMapBuffer(q, x, CL_TRUE, CL_MAP_READ);"),
            "program-scope 1: the host cannot name `x`, a variable of the program \
             [clEnqueueMapBuffer(q, x, CL_TRUE, CL_MAP_READ);]",
        ),
        (
            of_program("*y = 1;\nint r = 1 + *x;"),
            "program-scope 2: the host cannot name `x`, a variable of the program [int r = 1 + *x;]",
        ),
        (
            cu("K<<<0, 1, 0, s>>>();"),
            "empty-range 1: a launch of no threads [0]",
        ),
        (
            cu("cudaStreamDestroy(s);\nK<<<1, 1, 0, s>>>();"),
            "nothing is wrong",
        ),
        (
            cu("cudaEventRecord(g, s);"),
            "unknown-name 1: there is no event `g` [g]",
        ),
        (
            cu("cudaMalloc(&x, 4);"),
            "unknown-function 1: there is no call `cudaMalloc` here [cudaMalloc]",
        ),
        (
            cu("J<<<1, 1>>>();"),
            "unknown-name 1: there is no kernel `J` [J]",
        ),
        (
            cu("cudaMemcpy(x, p, sizeof(int), cudaMemcpyHostToDevice);"),
            "unsupported 1: copies from pageable memory are not supported \
             [cudaMemcpy(x, p, sizeof(int), cudaMemcpyHostToDevice);]",
        ),
        (
            cu("int r = cudaEventQuery(f);"),
            "unknown-name 1: there is no event `f` [f]",
        ),
        (
            cu("int r = cudaEventQuery();"),
            "wrong-operands 1: `cudaEventQuery` lacks operands [cudaEventQuery()]",
        ),
        (
            cu("if (cudaStreamQuery(t) == 0) { }"),
            "unknown-name 1: there is no stream `t` [t]",
        ),
        (
            cu("cudaStreamQuery(s + 1);"),
            "wrong-operand 1: `s + 1` is not allowed here [s + 1]",
        ),
        (
            cu("cudaStreamDestroy(s);\nint r = cudaStreamQuery(s);"),
            "nothing is wrong",
        ),
        (
            cl("int r = cudaStreamQuery(q);"),
            "unknown-function 1: there is no call `cudaStreamQuery` here [cudaStreamQuery]",
        ),
        (
            cl("clEnqueueNDRangeKernel(q, K1, NULL, 1, 1, {e}, &e);"),
            "null-event 1: `e` is not an event yet [e]",
        ),
        (
            cl(&format!(
                "{launch}\n{read}\nclReleaseEvent(e);\nclWaitForEvents({{e}});"
            )),
            "nothing is wrong",
        ),
        (
            cl(&format!(
                "{launch}\nclRetainEvent(e);\nclReleaseEvent(e);\nclWaitForEvents({{e}});\n{read}"
            )),
            "nothing is wrong",
        ),
        (
            cl(
                "cl_event u = clCreateUserEvent(context);\nclSetUserEventStatus(u, CL_COMPLETE);\n\
                clSetUserEventStatus(u, CL_COMPLETE);",
            ),
            "set-twice 3: the user event `u` is set twice [u]",
        ),
        (
            cl("clEnqueueUnmapMemObject(q, x);"),
            "not-mapped 1: this is not mapped [x]",
        ),
        (
            cl(
                "clEnqueueMapBuffer(q, x, CL_TRUE, CL_MAP_WRITE);\nclEnqueueMapBuffer(q, x, CL_TRUE, CL_MAP_WRITE);",
            ),
            "mapped-twice 2: this is mapped for writing already [x]",
        ),
        (
            cl(&format!(
                "clEnqueueMapBuffer(q, x, CL_TRUE, CL_MAP_READ);\nclEnqueueMapBuffer(q, x, CL_TRUE, CL_MAP_WRITE);\n{read}"
            )),
            "nothing is wrong",
        ),
        (
            cl("clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, x);"),
            "wrong-operand 1: `clEnqueueSVMMap` of a buffer object [x]",
        ),
        (
            cl("clEnqueueCopyBuffer(q, x, x);"),
            "overlapping-copy 1: memory is copied onto itself [x]",
        ),
        (
            cl(&format!("{launch}\nclSetEventCallback(e, CL_QUEUED, f);")),
            "wrong-operand 2: `CL_QUEUED` is not allowed here [CL_QUEUED]",
        ),
        (
            cl("barrier(CLK_GLOBAL_MEM_FENCE);"),
            "host-barrier 1: a barrier of the device in code of the host [barrier(CLK_GLOBAL_MEM_FENCE);]",
        ),
        (
            cu("__syncthreads();"),
            "host-barrier 1: a barrier of the device in code of the host [__syncthreads();]",
        ),
        (
            cu("cudaStreamDestroy(0);"),
            "wrong-operand 1: a default stream cannot be destroyed [cudaStreamDestroy(0);]",
        ),
        (
            cu("cudaEventRecord(e, s);\ncudaEventDestroy(e);\ncudaEventSynchronize(e);"),
            "nothing is wrong",
        ),
        (
            cu("K<<<1, 1, 0, u>>>();"),
            "wrong-operand 1: `u` is a stream of device 1 [K<<<1, 1, 0, u>>>();]",
        ),
        (
            cu("cudaSetDevice(1);\nK<<<1, 1, 0, u>>>();"),
            "nothing is wrong",
        ),
        (
            cu("K<<<1, {64, 32}, 0, s>>>();"),
            "bad-range 1: a block of 2048 threads [{64, 32}]",
        ),
        (
            cu("K<<<1, dim3(1, 1, 65), 0, s>>>();"),
            "bad-range 1: a block of 65 threads in z [dim3(1, 1, 65)]",
        ),
        (
            cu("cudaMemcpy(x, d, sizeof(int), cudaMemcpyHostToDevice);"),
            "wrong-operand 1: this memory belongs to a GPU, and `cudaMemcpyHostToDevice` needs \
            memory of the host [d]",
        ),
        (
            cu("cudaMemcpy(x, d, sizeof(int), cudaMemcpyDeviceToDevice);"),
            "nothing is wrong",
        ),
        (
            cu("K<<<5000, 1, 0, s>>>();"),
            "too-many-threads 1: a test has at most 4096 threads [5000]",
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, [expected]);
    }
}

#[test]
fn a_callback_that_blocks_is_undefined() {
    let read = opencl_text(
        "clEnqueueNDRangeKernel(q, K1, NULL, 1, 1, NULL, &e);\nclSetEventCallback(e, CL_COMPLETE, f);",
    );
    let found = errors(read.replace(
        "\"clFinish(q);\"",
        "\"clEnqueueReadBuffer(q, x, CL_TRUE, y);\"",
    ));
    assert!(
        found[0].starts_with("blocking-callback") && found[0].contains("ReadBuffer"),
        "{found:?}"
    );
    let cl = opencl_text(
        "clEnqueueNDRangeKernel(q, K1, NULL, 1, 1, NULL, &e);\nclSetEventCallback(e, CL_COMPLETE, f);",
    );
    let found = errors(cl);
    assert!(
        found[0].starts_with("blocking-callback") && found[0].contains("`clFinish` waits"),
        "{found:?}"
    );
    let found = errors(cuda_text("K<<<1, 1, 0, s>>>();\ncudaLaunchHostFunc(s, f);"));
    assert!(found[0].starts_with("blocking-callback"), "{found:?}");
}

#[test]
fn waits_that_never_end_are_told_link_by_link() {
    let test = file("opencl/H20-user-event-set-too-late");
    let launches = LaunchOrders::of(&test.program).unwrap();
    assert!(launches.ways.is_empty());
    let (_, stuck) = launches.stuck.unwrap();
    let StuckWait::Cycle(links) = &stuck else {
        panic!("{stuck:?}")
    };
    assert!(matches!(links[0].waits, LaunchNode::Return(_)), "{links:?}");
    assert!(
        links
            .iter()
            .zip(links.iter().cycle().skip(1))
            .all(|(a, b)| a.awaited == b.waits),
        "{links:?}"
    );
    let model = shipped("opencl");
    let mut session = Session::new(&test, &model, Engine::Enumerate, Limits::default(), &[]);
    let Verdict::Undecided(reason) = session.reachability(None, false).verdict else {
        panic!("no deadlock")
    };
    assert!(
        reason
            .to_string()
            .starts_with("deadlock: waits in a circle"),
        "{reason}"
    );
    let setting = LivenessTask::new(&test, &model);
    for progress in ProgressModel::ALL {
        let answer =
            Liveness::new(&setting, Engine::Enumerate, Limits::default(), &[]).ask(progress);
        assert_eq!(answer.verdict, Verdict::Hangs);
        let ends = answer.witness.unwrap().ends;
        assert_eq!(
            (ends[0].ending, ends[0].line.number),
            (Ending::Blocked, 18),
            "{ends:?}"
        );
        assert!(
            ends[0].why.contains("`clWaitForEvents({e});`") && ends[0].why.contains("line 19"),
            "{ends:?}"
        );
        assert_eq!(ends[1].ending, Ending::Stopped, "{ends:?}");
    }
}

#[test]
fn two_host_threads_that_wait_for_each_other_are_stuck() {
    let text = opencl_text(
        "cl_event u = clCreateUserEvent(context);\ncl_event v = clCreateUserEvent(context);\n\
                            clWaitForEvents({u});\nclSetUserEventStatus(v, CL_COMPLETE);",
    )
    .replace("\"clFinish(q);\"", "\"\"");
    let text = format!(
        "{text}[[host]]\ncode = '''\nclWaitForEvents({{v}});\nclSetUserEventStatus(u, CL_COMPLETE);\n'''\n"
    )
    .replace("condition = 'K2:r == 0'\n", "");
    let test = parse("t.toml", text.as_bytes())
        .unwrap_or_else(|d| panic!("{}", d[0]))
        .remove(0);
    let launches = LaunchOrders::of(&test.program).unwrap();
    let told = launches.stuck.unwrap().1.describe(&test.program).join("\n");
    assert!(
        launches.ways.is_empty() && told.contains("of H0") && told.contains("of H1"),
        "{told}"
    );
}

#[test]
fn a_race_between_commands_names_both_accesses() {
    for (name, accesses) in [
        (
            "cuda/producer-consumer-no-event",
            ["data[threadIdx.x] = 5;", "sum = data[0] + data[1];"],
        ),
        (
            "opencl/producer-consumer-no-event",
            ["data[get_global_id(0)] = 5;", "*sum = data[0] + data[1];"],
        ),
    ] {
        let test = file(name);
        let model = shipped(test.program.dialect.default_model());
        let mut session = Session::new(&test, &model, Engine::Enumerate, Limits::default(), &[]);
        let fault = session.race().unwrap().fault.unwrap();
        let mut told: Vec<(String, String)> = fault
            .events
            .iter()
            .map(|e| (e.event.thread_name.clone(), e.event.text.clone()))
            .collect();
        told.sort();
        assert!(
            told.iter()
                .any(|(t, c)| t.starts_with("produce.") && c == accesses[0]),
            "{told:?}"
        );
        assert!(
            told.iter().any(|(t, c)| t == "consume" && c == accesses[1]),
            "{told:?}"
        );
    }
}

/// Two host threads, each of which names an event that the other one makes.
const CROSSED: &str = "[[host]]\ncode = '''\nclEnqueueNDRangeKernel(q, K0, NULL, 1, 1, 1, &a, &b);\nclFlush(q);\n'''\n";

#[test]
fn events_that_two_threads_make_for_each_other_are_told_without_what_has_no_part_in_it() {
    let text = opencl_text("clEnqueueNDRangeKernel(q, K1, NULL, 1, 1, 1, &b, &a);\nclFlush(q);")
        .replace("\"clFinish(q);\"", "\"\"")
        .replace("condition = 'K2:r == 0'\n", "");
    let test = parse("t.toml", (text + CROSSED).as_bytes())
        .unwrap_or_else(|d| panic!("{}", d[0]))
        .remove(0);
    let told = LaunchOrders::of(&test.program)
        .unwrap()
        .stuck
        .unwrap()
        .1
        .describe(&test.program)
        .join("\n");
    assert!(
        told.contains("of H0") && told.contains("of H1") && !told.contains("clFlush"),
        "{told}"
    );
}

#[test]
fn what_a_range_of_no_items_and_an_empty_event_come_to_is_warned_of() {
    let warnings = |text: String| -> Vec<String> {
        let read = read("t.toml", text.as_bytes()).unwrap_or_else(|d| panic!("{}", d[0]));
        let called = |d: &Diagnostic| format!("{} `{}`", d.id, &text[d.span.range()]);
        read.warnings.iter().map(called).collect()
    };
    let cl = opencl_text("clEnqueueNDRangeKernel(q, K2, NULL, 0, 1);")
        .replace("\"clFinish(q);\"", "\"\"")
        .replace("condition = 'K2:r == 0'\n", "");
    assert!(warnings(cl).contains(&"empty-range `0`".to_owned()));
    let cu = cuda_text("K<<<1, 1, 0, s>>>();\ncudaEventSynchronize(e);")
        .replace("\"cudaDeviceSynchronize();\"", "\"\"");
    assert!(warnings(cu).contains(&"empty-event `e`".to_owned()));
}

#[test]
fn an_event_orders_what_two_queues_do_not() {
    let test = file("opencl/producer-consumer-no-event");
    let model = shipped("opencl");
    let mut session =
        Session::new(&test, &model, Engine::Enumerate, Limits::default(), &[]).explaining();
    let Definedness::Undefined(fault) = session.definedness(None).unwrap().unwrap() else {
        panic!("it races")
    };
    assert!(
        fault
            .why
            .iter()
            .any(|w| w.contains("no call orders these accesses of `produce` and `consume`"))
    );
    // Plain objects of OpenCL have no atomic functions; a wait list restores the order.
    let Some(Remedy::Changes(changes)) = &fault.remedy else {
        panic!("{:?}", fault.remedy)
    };
    let said: Vec<&str> = changes.iter().map(|change| change.text.as_str()).collect();
    assert!(
        said.len() == 2 && said[0].contains("&ordered") && said[1].contains("{ordered}"),
        "{said:?}"
    );
}
