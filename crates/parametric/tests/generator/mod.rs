//! Random kernels in CUDA C++. Their indices stay within arrays, and their signed numbers within
//! their types: unsigned ones may wrap around.

use std::fmt::Write;

use crate::random::Random;

/// The code in front of each kernel. `u`, `j` and `y` may wrap around, `w` has 64 bits, and `z`
/// leads to one of the first three elements of `s`. The thread has `a` alone.
pub(crate) const HEAD: &str = "__shared__ int s[16];
__shared__ int p[5];
__shared__ long long l[4];
__shared__ unsigned char c[8];
int n;
int t = threadIdx.x;
int b = blockIdx.x;
int i = blockIdx.x * blockDim.x + threadIdx.x;
unsigned u = i;
long long w = t;
int x = 0;
short j = t;
unsigned char y = t;
int *z = n > 2 ? &s[2] : &s[0];
int a[4];
a[0] = t;
a[1] = 1;
a[2] = b;
a[3] = 0;
struct P { int m; short e; char o; };
__shared__ P r[4];
";

/// Arrays: a name, the number of elements as a mask or a divisor, and whether atomics take it.
const ARRAYS: [(&str, &str, bool); 16] = [
    ("s", "& 15", true),
    ("s", "& 15", true),
    ("g", "& 15", true),
    ("h", "& 15", true),
    ("p", "% 5u", true),
    ("l", "& 3", false),
    ("c", "& 7", false),
    ("q", "& 7", false),
    ("g", "% 13u", true),
    ("z", "& 7", true),
    ("z", "& 7", true),
    ("a", "& 3", false),
    ("a", "& 3", false),
    ("r", "& 3].m", false),
    ("r", "& 3].e", false),
    ("r", "& 3].o", false),
];

const INDICES: [&str; 54] = [
    "t",
    "t + 1",
    "7 - t",
    "t ^ 1",
    "t / 2",
    "t % 2",
    "2 * t",
    "i",
    "i + 1",
    "0",
    "b",
    "n - 1 - t",
    "t & 2",
    "s[t & 15]",
    "c[t & 7]",
    "(int)((unsigned)t * 0x40000000u >> 28)",
    "(int)((unsigned)(i + 1) * 0x30000000u >> 29)",
    "(unsigned)n * 0x60000000u >> 28",
    "((unsigned)(t + n) << 30) >> 28",
    "row",
    "2 * t + row",
    "u",
    "u * 3u",
    "u - 1u",
    "u % 3u",
    "~u",
    "(u * 0xc0000000u) >> 30",
    "w",
    "(w << 33) >> 32",
    "(unsigned long long)i * 0x4000000000000000ull >> 61",
    "t << 1",
    "1 << (t & 3)",
    "-t >> 1",
    "8 >> (t & 3)",
    "(t - 1) % 3",
    "(t + n) % 3",
    "t % (n + 1)",
    "t * n",
    "x",
    "(unsigned char)(t * 64)",
    "min(t, n)",
    "t < 2 ? t : 7 - t",
    "j",
    "y",
    "y >> 6",
    "j >> 1",
    "(short)(j * 0x4001) >> 12",
    "(t - 3) / 2",
    "(t - 3) >> 1",
    "(signed char)(t * 100) >> 4",
    "a[t & 3]",
    "a[n & 3]",
    "x >> 1",
    "x / 4",
];

const CONDITIONS: [&str; 29] = [
    "t < 2",
    "t == 0",
    "t % 2 == 0",
    "i < n",
    "b == 0",
    "t + 1 < blockDim.x",
    "t >= 1",
    "(t & 1) != 0",
    "n > 3",
    "(unsigned)(t + 1) * 0x40000000u != 0u",
    "(unsigned)(n + 1) * 0x20000000u != 0u",
    "u - 1u < 3u",
    "row == 0",
    "u * 0x80000000u == 0u",
    "w * 2 > n",
    "x > 1",
    "t < n && b == 0",
    "t == n || row == 1",
    "(t ^ n) & 1",
    "j < 0",
    "y > 100",
    "x > 100",
    "x == 3",
    "a[1] == 1",
    "a[t & 3] == t",
    "z == &s[0]",
    "(t - 3) / 2 == 0",
    "__any_sync(0xffffffffu, t == n)",
    "x >> 1 == -1",
];

/// Heads of loops. `k` becomes a variable of its own.
const LOOPS: [&str; 30] = [
    "int k = 0; k < 2; k++",
    "int k = 1; k < blockDim.x; k *= 2",
    "int k = blockDim.x / 2; k > 0; k /= 2",
    "int k = blockDim.x / 2; k > 0; k >>= 1",
    "int k = t; k < n; k += blockDim.x",
    "int k = i; k < n; k += blockDim.x * gridDim.x",
    "int k = 3; k >= 0; k -= 2",
    "unsigned k = 2; k != 0; k--",
    "unsigned k = u; k < n; k += 2u",
    "long long k = t; k < n; k += blockDim.x",
    "int k = 0; k <= t; k++",
    "int k = 0; k < n; k++",
    "int k = n; k > 0; k -= 3",
    "int k = 1; k <= 4; k <<= 1",
    "unsigned k = n; k-- > 0; ",
    "int k = b; k < 3; k += gridDim.x",
    "unsigned k = 1u; k != 0u; k *= 0x10000u",
    "unsigned k = 0x40000000u; k != 0u; k <<= 1",
    "unsigned k = 0xfffffffeu; k != 1u; k++",
    "unsigned k = 3u; k < 4u; k--",
    "short k = 32765; k > 0; k++",
    "unsigned char k = 252; k != 1; k++",
    "signed char k = 120; k > 0; k += 3",
    "unsigned short k = 65533u; k > 10; k++",
    "int k = -5; k < 0; k /= 2",
    "int k = -8; k != -1; k >>= 1",
    "int k = 6 - t; k > 0; k -= 2",
    "int k = n; k >= 0; k -= blockDim.x",
    "int k = 0; k < 3; k += 1",
    "unsigned char k = 1; k != 0; k *= 4",
];

/// Assignments to the numbers of a thread.
const ASSIGNMENTS: [&str; 32] = [
    "x = t;",
    "x++;",
    "x = x ^ 1;",
    "x = t & 3;",
    "u = u * 3u + 1u;",
    "u -= 2u;",
    "u <<= 1;",
    "u *= 0x10001u;",
    "w += 5;",
    "w = w ^ t;",
    "x = (unsigned char)x + 100;",
    "x = (unsigned char)(x + 100);",
    "x = (unsigned char)x * 2;",
    "x = (unsigned char)(x >> 1);",
    "x = (signed char)(x + 90);",
    "x = (short)x - 7;",
    "x /= 2;",
    "x >>= 1;",
    "x = (x + 1) % 3;",
    "x = 1 - (x & 1);",
    "x = x == 2 ? 0 : 2;",
    "x = s[t & 15] & 7;",
    "x = 300 + t;",
    "j += 30000;",
    "j *= 3;",
    "y += 100;",
    "y <<= 1;",
    "y ^= 0x81;",
    "w = (int)w + 1;",
    "w += 1ll << 40;",
    "z = t < 2 ? &s[1] : z;",
    "z = &s[n & 1];",
];

/// Writes a kernel.
pub(crate) struct Generator {
    pub(crate) random: Random,
    pub(crate) text: String,
    depth: usize,
    loops: usize,
    values: usize,
}

impl Generator {
    pub(crate) fn new(random: Random) -> Generator {
        Generator {
            random,
            text: String::new(),
            depth: 0,
            loops: 0,
            values: 0,
        }
    }

    fn index(&mut self) -> String {
        let mut all = INDICES.map(String::from).to_vec();
        for n in 0..self.loops {
            for index in ["t + K", "t * K", "K", "t ^ K", "K & 1", "t + (K << 1)"] {
                all.push(index.replace('K', &format!("k{n}")));
            }
            all.push(format!("(unsigned)k{n} * 0x40000000u >> 28"));
            all.push(format!("(unsigned)(t + 4 * k{n}) * 0x20000000u >> 28"));
        }
        for n in 0..self.values {
            all.extend([format!("(v{n} & 3)"), format!("v{n}")]);
            all.push(format!("(unsigned)v{n} * 0x50000000u >> 28"));
        }
        self.random.of(&all)
    }

    /// An element of an array.
    fn place(&mut self, of_atomics: bool) -> String {
        let (array, within) = loop {
            let (array, within, atomics) = self.random.of(&ARRAYS);
            if atomics || !of_atomics {
                break (array, within);
            }
        };
        let index = self.index();
        let number = if within.starts_with('%') {
            "(unsigned)"
        } else {
            ""
        };
        let (within, member) = within.split_once(']').unwrap_or((within, ""));
        let place = format!("{array}[{number}({index}) {within}]{member}");
        if array == "s" && member.is_empty() && self.random.below(12) == 0 {
            let condition = self.condition();
            let other = self.random.of(&["&g[t & 7]", "&s[0]", "z", "&h[n & 7]"]);
            return format!("(*({condition} ? &{place} : {other}))");
        }
        place
    }

    fn condition(&mut self) -> String {
        let mut all = CONDITIONS.map(String::from).to_vec();
        for n in 0..self.loops {
            for condition in ["t < K", "t >= K", "K == 1", "(K & 1) == (t & 1)"] {
                all.push(condition.replace('K', &format!("k{n}")));
            }
            all.push(format!("(unsigned)(k{n} + 1) * 0x80000000u != 0u"));
        }
        for n in 0..self.values {
            all.push(format!("v{n} == 0"));
            all.push(format!("v{n} > t"));
        }
        self.random.of(&all)
    }

    fn barrier(&mut self) {
        let barrier = self.random.of(&[
            "__syncthreads();\n",
            "__syncthreads();\n",
            "__syncthreads();\n",
            "__syncthreads();\n",
            "__syncwarp();\n",
            "if (t < 2) __syncwarp(3);\n",
            "__threadfence_block();\n",
            "x += __shfl_xor_sync(0xffffffffu, x, 1);\n",
            "x += __syncthreads_or(t < n);\n",
        ]);
        self.text.push_str(barrier);
    }

    fn atomic(&mut self) -> String {
        let place = self.place(true);
        let atomic = self.random.of(&[
            "atomicAdd(&PLACE, 1)",
            "atomicAdd(&PLACE, 1)",
            "atomicAdd_block(&PLACE, 1)",
            "atomicAdd_system(&PLACE, 1)",
            "atomicMin_block(&PLACE, t)",
            "atomicSub(&PLACE, 1)",
            "atomicExch(&PLACE, t)",
            "atomicMax(&PLACE, t)",
            "atomicCAS(&PLACE, 0, 1)",
        ]);
        atomic.replace("PLACE", &place)
    }

    pub(crate) fn statement(&mut self) {
        match self.random.below(16) {
            0..=2 => {
                let place = self.place(false);
                let value = self.random.of(&["t + 1", "x", "b", "n"]);
                let _ = writeln!(self.text, "{place} = {value};");
            }
            3 | 4 => {
                let place = self.place(false);
                let _ = writeln!(self.text, "x += {place};");
            }
            5 => {
                let atomic = self.atomic();
                let _ = writeln!(self.text, "{atomic};");
            }
            6 | 7 => self.barrier(),
            8 if self.random.below(2) == 0 => self.leave(),
            8 if self.depth == 0 && self.values < 2 => {
                let read = match self.random.below(2) {
                    0 => self.place(false),
                    _ => self.atomic(),
                };
                let _ = writeln!(self.text, "int v{} = {read};", self.values);
                self.values += 1;
            }
            9 if self.depth < 2 && self.random.below(3) == 0 => self.switch(),
            9 | 10 if self.depth < 2 => self.branch(),
            11 | 12 if self.depth < 2 && self.loops < 2 => self.iterate(),
            13 => {
                let assignment = self.random.of(&ASSIGNMENTS);
                let _ = writeln!(self.text, "{assignment}");
            }
            _ => {
                let place = self.place(false);
                let _ = writeln!(self.text, "{place} = x;");
            }
        }
    }

    /// Ends a thread, a loop or an iteration under a condition.
    fn leave(&mut self) {
        let ways = match self.loops {
            0 => ["return;", "return;", "return;"],
            _ => ["return;", "break;", "continue;"],
        };
        let (way, condition, place) = (self.random.of(&ways), self.condition(), self.place(false));
        let before = match self.random.below(2) {
            0 => String::new(),
            _ => format!("{place} = 7; "),
        };
        let _ = writeln!(self.text, "if ({condition}) {{ {before}{way} }}");
    }

    fn branch(&mut self) {
        let condition = self.condition();
        let _ = writeln!(self.text, "if ({condition}) {{");
        self.inside();
        if self.random.below(3) == 0 {
            self.text.push_str("} else {\n");
            self.inside();
        }
        self.text.push_str("}\n");
    }

    fn switch(&mut self) {
        let index = self.index();
        let _ = writeln!(self.text, "switch (({index}) & 3) {{");
        for case in ["case 0", "case 1", "default"] {
            let _ = writeln!(self.text, "{case}:");
            self.inside();
            if self.random.below(2) == 0 {
                self.text.push_str("break;\n");
            }
        }
        self.text.push_str("}\n");
    }

    fn iterate(&mut self) {
        let n = self.loops;
        let head = self.random.of(&LOOPS);
        let head = ["k ", "k+", "k-"]
            .into_iter()
            .fold(head.to_string(), |head, k| {
                head.replace(k, &k.replace('k', &format!("k{n}")))
            });
        let _ = writeln!(self.text, "for ({head}) {{");
        self.loops += 1;
        self.inside();
        self.loops -= 1;
        self.text.push_str("}\n");
    }

    fn inside(&mut self) {
        self.depth += 1;
        for _ in 0..=self.random.below(2) {
            self.statement();
        }
        self.depth -= 1;
    }
}
