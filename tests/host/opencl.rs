//! Host programs of OpenCL that are refused: commands after a failure, and wrong image commands.

use fencepost::diag::Severity;
use fencepost::litmus::parse;

/// A program; `HOST` stands for the code of the host.
const PROGRAM: &str = r#"
name = "t"
dialect = "opencl"
condition = 'x == 1'

[queues]
q = "out-of-order"
p = "in-order"
o = { order = "in-order", context = "other" }

[memory]
x = { type = "int" }
y = { type = "int" }
i = { type = "int", size = 6, kind = "image", width = 3 }
w = { type = "int", kind = "pipe" }

[[kernel]]
name = "K1"
code = "*x = 1;"

[[kernel]]
name = "K2"
code = "*y = 1;"

[[host]]
code = '''
HOST
'''
"#;

/// The first error in a host program, and whether it quotes the text about queues.
fn first(host: &str) -> (String, bool) {
    match parse("t.toml", PROGRAM.replace("HOST", host).as_bytes()) {
        Ok(_) => ("nothing is wrong".to_owned(), false),
        Err(all) => {
            let mut errors = all.iter().filter(|d| d.severity == Severity::Error);
            let error = errors.next().expect("an error");
            let quotes = format!("{error:?}").contains("may no longer be available");
            (error.message.clone(), quotes)
        }
    }
}

#[test]
fn what_a_failure_leaves_open_is_refused() {
    let user = "cl_event u = clCreateUserEvent(context);";
    let waits = "clEnqueueNDRangeKernel(q, K1, NULL, 1, 1, {u}, &e);";
    let fails = "clSetUserEventStatus(u, -1);";
    let other = "clEnqueueNDRangeKernel(p, K2, NULL, 1, 1, NULL, &f);";
    let far = "clEnqueueNDRangeKernel(o, K2, NULL, 1, 1); clFinish(o);";
    let map = "clEnqueueMapBuffer(q, x, CL_FALSE, CL_MAP_READ, {u});";
    let query = "int s = 1; clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, &s);";
    let open = "`K2` may run when a command has failed";
    let queue = "this queue may no longer be available";
    let fine = "nothing is wrong";
    let cases: [(&[&str], &str); 10] = [
        (&[other, "clWaitForEvents({f});", waits, fails], fine),
        (&[other, waits, fails], open),
        (&[waits, fails, other], open),
        (&[waits, fails, "clFinish(q);"], queue),
        (&[waits, fails, "clFlush(p);"], queue),
        (&[waits, fails, far], fine),
        (&[other, fails, "clFinish(p);"], fine),
        (&[map, fails], "a mapping that fails is not supported"),
        (
            &[waits, fails, query],
            "the status of a failed command is not defined",
        ),
        (&["clSetUserEventStatus(u, 1);"], "`1` is not allowed here"),
    ];
    for (calls, expected) in cases {
        let host = format!("{user}\n{}", calls.join("\n"));
        let (message, quotes) = first(&host);
        assert_eq!(message, expected, "{host}");
        let is_refused = expected != fine && !expected.contains("allowed");
        assert_eq!(quotes, is_refused, "{host}");
    }
}

#[test]
fn image_commands_need_an_image_and_a_region_inside_of_it() {
    let read = "`clEnqueueReadImage` does not take such a region";
    let cases = [
        (
            "clEnqueueReadImage(q, i, CL_TRUE, {2, 1, 0}, {1, 1, 1}, 0, 0, y);",
            "nothing is wrong",
        ),
        (
            "clEnqueueReadImage(q, i, CL_TRUE, {2, 1, 0}, {2, 1, 1}, 0, 0, y);",
            read,
        ),
        (
            "clEnqueueReadImage(q, i, CL_TRUE, {0, 0}, {1, 1}, 0, 0, y);",
            read,
        ),
        (
            "clEnqueueReadImage(q, x, CL_TRUE, {0, 0, 0}, {1, 1, 1}, 0, 0, y);",
            "`clEnqueueReadImage` of memory that is not an image",
        ),
        (
            "clEnqueueReadBuffer(q, i, CL_TRUE, y);",
            "`clEnqueueReadBuffer` of an image",
        ),
        (
            "clEnqueueReadBuffer(q, w, CL_TRUE, y);",
            "`clEnqueueReadBuffer` of a pipe",
        ),
        (
            "clEnqueueCopyImageToBuffer(q, i, x, {2, 1, 0}, {2, 1, 1}, 0);",
            "`clEnqueueCopyImageToBuffer` does not take such a region",
        ),
        (
            "clEnqueueMapImage(q, i, CL_TRUE, CL_MAP_READ, {0, 0, 0}, {2, 2, 1}, NULL, NULL);",
            "`clEnqueueMapImage` does not take such a region",
        ),
    ];
    for (host, expected) in cases {
        assert_eq!(first(host).0, expected, "{host}");
    }
}
