//! Random host programs of CUDA with each kernel in two forms: in CUDA C++, and as the PTX that its
//! compiler makes of it.

use std::fmt::Write as _;

use front::litmus::parse;
use program::RegId;
use program::litmus::{LitmusTest, Observable};
use rand::Rng;
use rand_pcg::Pcg64Mcg;

/// A program in both forms.
pub struct Pair {
    memory: &'static str,
    kernels: Vec<[String; 2]>,
    function: String,
    hosts: Vec<String>,
}

/// A statement in both languages.
type Statement = [String; 2];

struct Maker<'r> {
    rng: &'r mut Pcg64Mcg,
    /// The number of registers so far.
    registers: u32,
    /// Whether kernels use proxies and aliases, which CUDA C++ cannot express.
    proxies: bool,
}

impl Maker<'_> {
    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.rng.random_range(0..all.len())].clone()
    }

    fn statement(&mut self) -> Statement {
        if self.proxies && self.rng.random_bool(0.6) {
            return [String::new(), self.through_proxy()];
        }
        self.registers += 1;
        let (n, memory) = (self.registers, self.one_of(&["x", "x", "y"]));
        let (scope, suffix) =
            self.one_of(&[("device", "gpu"), ("system", "sys"), ("block", "cta")]);
        let refer = format!("cuda::atomic_ref<int, cuda::thread_scope_{scope}> f{n}({memory});\n");
        let at = |order: &str| format!("cuda::memory_order_{order}");
        match self.rng.random_range(0..10u32) {
            0..=2 => [
                format!("{memory} = {n};"),
                format!("st.weak.s32 [{memory}], {n};"),
            ],
            3..=5 => [
                format!("int r{n} = {memory};"),
                format!("ld.weak.s32 r{n}, [{memory}];"),
            ],
            6 => {
                let order = self.one_of(&["relaxed", "release"]);
                let call = format!("{refer}f{n}.store({n}, {});", at(order));
                [call, format!("st.{order}.{suffix}.s32 [{memory}], {n};")]
            }
            7 => {
                let order = self.one_of(&["relaxed", "acquire"]);
                let call = format!("{refer}int r{n} = f{n}.load({});", at(order));
                [call, format!("ld.{order}.{suffix}.s32 r{n}, [{memory}];")]
            }
            8 => {
                let order = self.one_of(&["relaxed", "acq_rel"]);
                let call = format!("{refer}int r{n} = f{n}.fetch_add(1, {});", at(order));
                [
                    call,
                    format!("atom.{order}.{suffix}.add.s32 r{n}, [{memory}], 1;"),
                ]
            }
            _ => {
                let (order, word) = self.one_of(&[("acq_rel", "acq_rel"), ("seq_cst", "sc")]);
                let call = format!(
                    "cuda::atomic_thread_fence({}, cuda::thread_scope_{scope});",
                    at(order)
                );
                [call, format!("fence.{word}.{suffix};")]
            }
        }
    }

    fn through_proxy(&mut self) -> String {
        self.registers += 1;
        let n = self.registers;
        match self.rng.random_range(0..9u32) {
            0 => format!("sust.weak d, {n};"),
            1 => format!("suld.weak r{n}, d;"),
            2 | 3 => format!("tld.weak r{n}, t;"),
            4 => format!("st.weak.s32 [a], {n};"),
            5 | 6 => format!("ld.weak.s32 r{n}, [a];"),
            7 => "fence.proxy.alias;".into(),
            _ => format!("fence.proxy.{};", self.one_of(&["surface", "texture"])),
        }
    }

    fn block(&mut self, most: usize) -> Statement {
        let mut both = [String::new(), String::new()];
        for _ in 0..self.rng.random_range(1..=most) {
            let statement = self.statement();
            both.iter_mut()
                .zip(statement)
                .for_each(|(all, one)| *all += &format!("{one}\n"));
        }
        both
    }

    /// A statement of the host, which is C++ in both forms.
    fn of_host(&mut self) -> String {
        let proxies = std::mem::take(&mut self.proxies);
        let [c, _] = self.statement();
        self.proxies = proxies;
        c
    }

    fn host(&mut self) -> String {
        let mut code = String::new();
        for _ in 0..self.rng.random_range(2..=5) {
            let stream = self.one_of(&["0", "s", "u", "n"]);
            code += &match self.rng.random_range(0..14u32) {
                0 | 1 => self.of_host(),
                2 => format!("cudaStreamSynchronize({stream});"),
                3 => "cudaDeviceSynchronize();".to_string(),
                4 => format!("cudaEventRecord(e, {stream});"),
                5 => format!("cudaStreamWaitEvent({stream}, e);"),
                6 => "cudaEventSynchronize(e);".to_string(),
                7 => format!("cudaMemcpyAsync(&y, &x, 4, cudaMemcpyDefault, {stream});"),
                8 => format!("cudaLaunchHostFunc({stream}, f);"),
                _ => {
                    let (kernel, grid) =
                        (self.rng.random_range(0..2u32), self.one_of(&[1, 1, 1, 2]));
                    format!("K{kernel}<<<{grid}, 1, 0, {stream}>>>();")
                }
            };
            code += "\n";
        }
        code
    }
}

/// A random program; `proxies` makes kernels that CUDA C++ cannot express.
pub fn program(rng: &mut Pcg64Mcg, proxies: bool) -> Pair {
    let mut maker = Maker {
        rng,
        registers: 0,
        proxies,
    };
    let kernels = (0..2).map(|_| maker.block(2)).collect();
    let function = maker.of_host();
    let hosts = if maker.rng.random_bool(0.3) { 2 } else { 1 };
    let hosts = (0..hosts).map(|_| maker.host()).collect();
    let memory = match proxies {
        true => {
            "x = { type = \"int\" }\ny = { type = \"int\" }\nd = { alias = \"x\", proxy = \"surface\" }\n\
             t = { alias = \"x\", proxy = \"texture\" }\na = { alias = \"x\" }\n"
        }
        false => "x = { type = \"int\" }\ny = { type = \"int\" }\n",
    };
    Pair {
        memory,
        kernels,
        function,
        hosts,
    }
}

impl Pair {
    /// The program with kernels in CUDA C++.
    pub fn in_cuda(&self) -> LitmusTest {
        self.read("cuda", 0)
    }

    /// The program with kernels in PTX.
    pub fn in_ptx(&self) -> LitmusTest {
        self.read("ptx", 1)
    }

    fn read(&self, dialect: &str, language: usize) -> LitmusTest {
        let mut text = format!(
            "name = \"T\"\ndialect = \"{dialect}\"\nevents = [\"e\"]\n\
             streams = {{ s = \"blocking\", u = \"blocking\", n = \"non-blocking\" }}\n[memory]\n{}",
            self.memory
        );
        for (i, kernel) in self.kernels.iter().enumerate() {
            let code = &kernel[language];
            writeln!(text, "[[kernel]]\nname = \"K{i}\"\ncode = '''\n{code}'''").expect("a string");
        }
        writeln!(
            text,
            "[[function]]\nname = \"f\"\ncode = '''\n{}\n'''",
            self.function
        )
        .expect("a string");
        for host in &self.hosts {
            writeln!(text, "[[host]]\ncode = '''\n{host}'''").expect("a string");
        }
        let mut test = parse("t.toml", text.as_bytes())
            .unwrap_or_else(|e| panic!("{}\n{text}", e[0]))
            .remove(0);
        // Observes every value that threads read.
        for t in test.program.thread_ids() {
            let regs = &test.program.thread(t).regs;
            let read =
                (0..regs.len() as u16).filter(|r| regs[usize::from(*r)].name.starts_with('r'));
            test.observe
                .extend(read.map(|r| Observable::Reg(t, RegId(r))));
        }
        test
    }
}
