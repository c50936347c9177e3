//! Random rings of mbarrier objects, barriers of CUDA C++ and groups of asynchronous copies, held
//! against the exact engines at small launches: nothing that races there is proved race-free.
//!
//! `FENCEPOST_KERNELS=N` compares N of each, from number `FENCEPOST_SEED` on.
#![cfg(feature = "z3")]

mod exact;
mod random;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use exact::{exact, number, said};
use parametric::{KernelLimits, KernelProperty, KernelVerdict};
use random::Random;

/// A ring: thread 0 fills its stages, and the others empty them.
struct Ring {
    random: Random,
    stages: u64,
    threads: u64,
    code: String,
}

/// Ways to make the number of a stage in `%r3` of the iteration in `%r2`. The last two are wrong
/// for some iterations.
const STAGES: [&str; 4] = [
    "rem.u32 %r3, %r2, SIZE;",
    "rem.u32 %r3, %r2, SIZE;",
    "mul.lo.u32 %r3, %r2, 0x40000001; rem.u32 %r3, %r3, SIZE;",
    "add.u32 %r3, %r2, 1; rem.u32 %r3, %r3, SIZE;",
];

/// Ways to make a parity in `%r4`. The first two are right for a ring that begins at stage 0.
const PARITIES: [&str; 8] = [
    "div.u32 %r4, %r2, SIZE; and.b32 %r4, %r4, 1;",
    "div.u32 %r4, %r2, SIZE; and.b32 %r4, %r4, 1;",
    "div.u32 %r4, %r2, SIZE; rem.u32 %r4, %r4, 2;",
    "and.b32 %r4, %r2, 1;",
    "shl.b32 %r4, %r2, 30; shr.u32 %r4, %r4, 30; div.u32 %r4, %r4, SIZE; and.b32 %r4, %r4, 1;",
    "shl.b32 %r4, %r2, 31; shr.u32 %r4, %r4, 31;",
    "mov.u32 %r4, 0;",
    "sub.u32 %r4, 0, %r2; div.u32 %r4, %r4, SIZE; and.b32 %r4, %r4, 1;",
];

impl Ring {
    fn new(seed: u64) -> Ring {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.below(2);
        let (stages, threads) = (1 + random.below(3), 2 + random.below(2));
        Ring {
            random,
            stages,
            threads,
            code: String::new(),
        }
    }

    fn line(&mut self, line: &str) {
        let line = line.replace("SIZE", &self.stages.to_string());
        let _ = writeln!(self.code, "\t{line}");
    }

    /// One of several lines, mostly the first.
    fn mostly(&mut self, all: &[&str]) -> String {
        match self.random.below(5) {
            0 => self.random.of(all).to_string(),
            _ => all[0].to_string(),
        }
    }

    /// A loop of one of the roles: waits, accesses the stage, and arrives.
    fn role(&mut self, name: &str, [wait, arrive]: [&str; 2], access: &str) {
        let _ = writeln!(self.code, "{name}:");
        self.line("setp.ge.u32 %p2, %r2, n;");
        self.line("@%p2 bra DONE;");
        let (stage, parity) = (self.mostly(&STAGES), self.mostly(&PARITIES));
        self.line(&stage);
        self.line(&parity);
        let turned = match name {
            "FILL" => self.mostly(&["xor.b32 %r4, %r4, 1;", "mov.u32 %r9, 0;"]),
            _ => self.mostly(&["mov.u32 %r9, 0;", "xor.b32 %r4, %r4, 1;"]),
        };
        self.line(&turned);
        self.line("shl.b32 %r5, %r3, 3;");
        let wait = format!(
            "add.u32 %r6, {wait}, %r5;\n{name}_WAITS:\n\
             \tmbarrier.try_wait.parity.shared.b64 %p3, [%r6], %r4;\n\t@!%p3 bra {name}_WAITS;"
        );
        let order = self.mostly(&[".release", ".relaxed"]);
        let arrive = format!(
            "add.u32 %r7, {arrive}, %r5;\n\tmbarrier.arrive{order}.cta.shared.b64 _, [%r7];"
        );
        let access = format!("shl.b32 %r8, %r3, 2;\n\tadd.u32 %r13, %r12, %r8;\n\t{access}");
        let parts = match self.random.below(12) {
            0 => vec![wait, arrive, access],
            1 => vec![access, wait, arrive],
            2 => vec![access, arrive],
            3 => vec![access, arrive, wait],
            _ => vec![wait, access, arrive],
        };
        for part in parts {
            self.line(&part);
        }
        let step = self.mostly(&["add.u32 %r2, %r2, 1;", "add.u32 %r2, %r2, 2;"]);
        self.line(&step);
        self.line(&format!("bra {name};"));
    }

    /// Code that makes the objects. Only if their counts come from the block is a ring right in
    /// every launch.
    fn objects(&mut self) {
        self.line("mov.u32 %r20, %ntid.x;");
        let count = self.mostly(&[
            "sub.u32 %r20, %r20, 1;",
            "mov.u32 %r9, 0;",
            "mov.u32 %r20, 1;",
        ]);
        self.line(&count);
        self.line("@%p1 bra READY;");
        for at in (0..self.stages).map(|stage| 8 * stage) {
            self.line(&format!("mbarrier.init.shared.b64 [%r10+{at}], 1;"));
            self.line(&format!("mbarrier.init.shared.b64 [%r11+{at}], %r20;"));
        }
        let _ = writeln!(self.code, "READY:");
        let met = self.mostly(&["bar.sync 0;", "mov.u32 %r9, 0;"]);
        self.line(&met);
    }

    /// The ring as a file, for some rounds.
    fn file(mut self) -> String {
        self.line(".reg .pred %p<9>;\n\t.reg .b32 %r<40>;");
        for line in [
            "mov.u32 %r1, %tid.x;",
            "mov.u32 %r2, 0;",
            "mov.u32 %r12, s;",
        ] {
            self.line(line);
        }
        self.line("mov.u32 %r10, full;\n\tmov.u32 %r11, empty;");
        self.line("setp.ne.u32 %p1, %r1, 0;");
        let by_code = self.random.below(2) == 0;
        if by_code {
            self.objects();
        }
        self.line("@%p1 bra DRAIN;");
        self.role("FILL", ["%r11", "%r10"], "st.shared.u32 [%r13], %r2;");
        let access = self.mostly(&["ld.shared.u32 %r14, [%r13];", "st.shared.u32 [%r13], 7;"]);
        self.role("DRAIN", ["%r10", "%r11"], &access);
        let _ = writeln!(self.code, "DONE:\n\tret;");
        let consumers = self.threads - 1;
        let count = match self.random.below(6) {
            0 => 1 + self.random.below(2),
            _ => consumers,
        };
        let rounds = 1 + self.random.below(5);
        let object = |name: &str, n: u64| {
            let counts = vec![n.to_string(); self.stages as usize].join(", ");
            let made = match by_code {
                true => format!("size = {}", self.stages),
                false => format!("init = [{counts}]"),
            };
            format!("{name} = {{ type = \"mbarrier\", {made}, space = \"shared\" }}")
        };
        let memory = format!(
            "s = {{ type = \"u32\", size = {}, space = \"shared\" }}\n{}\n{}",
            self.stages,
            object("full", 1),
            object("empty", count)
        );
        let launch = format!(
            "grid = 1\nblock = {}\nregs = {{ n = {rounds} }}",
            self.threads
        );
        file("ptx", &memory, &launch, &self.code)
    }
}

/// Groups of asynchronous copies: statements, some in a loop or under a condition.
struct Copies {
    random: Random,
    loops: usize,
    code: String,
}

/// Numbers of elements; `k` is the iteration of a loop, or 0.
const ELEMENTS: [&str; 9] = [
    "t",
    "t",
    "t ^ 1",
    "t + 4",
    "t + k",
    "4 * k + t",
    "4 * (k & 1) + t",
    "4 * (k % 3) + t",
    "4 * ((k + 1) & 1) + t",
];

const CONDITIONS: [&str; 5] = ["t == 0", "t < 2", "k == 1", "n > 1", "k + 1 < n"];

impl Copies {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.code, "{line}");
    }

    fn statement(&mut self, depth: usize) {
        let elements = [(); 2].map(|()| self.random.of(&ELEMENTS));
        let [to, from] = elements;
        match self.random.below(13) {
            0..=2 => self.line(&format!(
                "__pipeline_memcpy_async(&s[({to}) & 15], &g[({from}) & 15], 4);"
            )),
            3 | 4 => self.line("__pipeline_commit();"),
            5..=7 => {
                let n = self.random.below(3);
                self.line(&format!("__pipeline_wait_prior({n});"));
            }
            8 | 9 => self.line("__syncthreads();"),
            10 => {
                let access = self.random.of(&[
                    "x += s[AT];",
                    "x += s[AT];",
                    "s[AT] = t;",
                    "g[AT] = t;",
                    "r[AT] = x;",
                ]);
                self.line(&access.replace("AT", &format!("({to}) & 15")));
            }
            11 if depth < 2 => self.inside(depth),
            12 if depth == 0 && self.loops < 2 => self.looped(),
            _ => self.line("__pipeline_commit();\n__pipeline_wait_prior(0);"),
        }
    }

    fn inside(&mut self, depth: usize) {
        let condition = self.random.of(&CONDITIONS);
        self.line(&format!("if ({condition}) {{"));
        for _ in 0..=self.random.below(2) {
            self.statement(depth + 1);
        }
        self.line("}");
    }

    fn looped(&mut self) {
        self.loops += 1;
        self.line("for (k = 0; k < n; k++) {");
        for _ in 0..2 + self.random.below(4) {
            self.statement(1);
        }
        self.line("}");
    }

    /// Copies as a file.
    fn file(seed: u64) -> String {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (threads, n) = (1 + random.below(4), 1 + random.below(3));
        let mut copies = Copies {
            random,
            loops: 0,
            code: "__shared__ int s[16];\nint n;\nint t = threadIdx.x;\nint x = 0, k = 0;\n".into(),
        };
        for _ in 0..2 + copies.random.below(6) {
            copies.statement(0);
        }
        let memory = "g = { type = \"int\", size = 16 }\nr = { type = \"int\", size = 16 }";
        let launch = format!("grid = 1\nblock = {threads}\nregs = {{ n = {n} }}");
        file("cuda", memory, &launch, &copies.code)
    }
}

/// Threads that access shared memory and meet at barriers of CUDA C++, each in its own order.
struct Barriers {
    random: Random,
    names: &'static [&'static str],
    code: String,
}

impl Barriers {
    fn statements(&mut self, depth: usize) {
        for _ in 0..=self.random.below(2) {
            let name = self.random.of(self.names);
            let place = self.random.below(2);
            let line = match self.random.below(20) {
                0..=4 => format!("{name}.arrive_and_wait();"),
                5..=8 => format!("(void){name}.arrive();"),
                9 | 10 => format!(
                    "{{ auto token = {name}.arrive(); s[{place}] = 2; \
                     {name}.wait(cuda::std::move(token)); }}"
                ),
                11 => format!("{name}.wait_parity({place});"),
                12 => format!("(void){name}.arrive(2);"),
                13..=15 => format!("s[{place}] = 1;"),
                16 | 17 => format!("x += s[{place}];"),
                _ if depth == 0 => {
                    let rounds = 1 + self.random.below(2);
                    let head = format!("for (int i = 0; i < {rounds}; ++i)");
                    self.within(&head, 1);
                    continue;
                }
                _ => format!("if (i == 0) {{ {name}.arrive_and_wait(); }}"),
            };
            let _ = writeln!(self.code, "{line}");
        }
    }

    fn within(&mut self, head: &str, depth: usize) {
        let _ = writeln!(self.code, "{head} {{");
        self.statements(depth);
        self.code.push_str("}\n");
    }

    /// Barriers as a file.
    fn file(seed: u64) -> String {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let threads = 2 + random.below(4) / 3;
        let names: &[&str] = random.of(&[&["full"], &["full", "empty"]]);
        let mut all = Barriers {
            random,
            names,
            code: "__shared__ int s[2];\nint x = 0;\n".into(),
        };
        for name in names {
            let counts = [threads, threads, threads, 1, threads - 1, threads + 1];
            let count = all.random.of(&counts);
            let _ = writeln!(
                all.code,
                "__shared__ cuda::barrier<cuda::thread_scope_block> {name};\n\
                 if (threadIdx.x == 0) init(&{name}, {count});"
            );
        }
        all.code.push_str("__syncthreads();\n");
        all.within("if (threadIdx.x == 0)", 0);
        all.within("else", 0);
        if all.random.below(3) == 0 {
            all.statements(0);
        }
        all.code.push_str("r[threadIdx.x] = x;\n");
        let memory = "r = { type = \"int\", size = 4 }";
        let launch = format!("grid = 1\nblock = {threads}");
        file("cuda", memory, &launch, &all.code)
    }
}

fn file(dialect: &str, memory: &str, launch: &str, code: &str) -> String {
    format!(
        "name = \"k\"\ndialect = \"{dialect}\"\n[memory]\n{memory}\n[kernel]\n{launch}\n\
         code = '''\n{code}'''\n"
    )
}

/// Compares the answers about kernels with some numbers.
fn none_is_missed(few: u64, model: &str, kernel: impl Fn(u64) -> String) {
    let (count, first) = (
        number("FENCEPOST_KERNELS", few),
        number("FENCEPOST_SEED", 1),
    );
    let limits = KernelLimits {
        question: Duration::from_millis(500),
        answer: Duration::from_secs(3),
        tries: false,
        ..KernelLimits::default()
    };
    let mut tally = BTreeMap::<String, u32>::new();
    let mut wrong = Vec::new();
    for seed in first..first + count {
        let text = kernel(seed);
        let mut truth: Option<Option<bool>> = None;
        for any in [false, true] {
            let answer = said(&text, KernelProperty::Race, any, &limits);
            let is_proved = matches!(answer, KernelVerdict::Never { .. });
            let mut key = format!("any={any} proved={is_proved}");
            if is_proved {
                let truth = *truth.get_or_insert_with(|| exact(&text, model, KernelProperty::Race));
                key = format!("{key} racy={truth:?}");
                if truth == Some(true) {
                    println!("seed {seed}: any={any}\n{text}\n{answer:?}");
                    wrong.push(seed);
                }
            }
            *tally.entry(key).or_default() += 1;
        }
    }
    println!("{tally:#?}");
    assert!(wrong.is_empty(), "wrong proofs for seeds {wrong:?}");
}

#[test]
fn no_race_of_a_ring_is_missed() {
    none_is_missed(5, "ptx", |seed| Ring::new(seed).file());
}

#[test]
fn no_race_of_copies_is_missed() {
    none_is_missed(15, "ptx", Copies::file);
}

#[test]
fn no_race_of_barriers_is_missed() {
    none_is_missed(15, "cuda", Barriers::file);
}
