//! Launches as people write them: `block_sum<<<2, 64>>>(in[128] = 1, out[2], 128)`, in a line of a
//! source file behind `// fencepost:`, or on the command line.
//!
//! # Form
//! - `kernel<<<grid, block, shared, stream>>>(arguments)`: sizes are numbers, `dim3(8, 8)`,
//!   `(8, 8)` or `{8, 8}`; the bytes of dynamic shared memory and the stream may be left out, and
//!   so may the arguments, all at once.
//! - An argument is a number, `name = number`, a buffer or a place in one: `in[128]`,
//!   `in[128] = 1`, `in[4] = {1, 2, 3, 4}`, `in:u32[8] = unknown`, `&in[3]`, `in + 3`, `in`.
//! - Lines such as `//--blockDim=64 --gridDim=2`, or with `--local_size`, `--num_groups` and
//!   `--global_size`, give sizes alone, as files for GPUVerify do. `--kernel-args=k,0x3` gives the
//!   numbers of a kernel, and `-DWIDTH=256` defines a macro.
//!
//! # Sources
//! - GPUVerify, *Basic usage*: `--kernel-args`. Values are hexadecimal; `*` leaves one open.

use std::ops::Range;

use diag::{MappedText, Sink, SourceFile, Span};

use crate::isa::clike::with_headers;

/// A launch, as far as it was written.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenLaunch {
    /// The kernel, or a part of its name; empty: any.
    pub(super) kernel: String,
    /// The arguments of its template.
    pub(super) instance: Option<String>,
    /// The place of the launch.
    pub(super) span: Span,
    /// Blocks, by dimension.
    pub(super) grid: Option<Vec<u32>>,
    /// Threads per block, by dimension.
    pub(super) block: Option<Vec<u32>>,
    /// Bytes of dynamic shared memory.
    pub(super) shared: Option<u64>,
    /// Its arguments; `None`: they were not written.
    pub(super) arguments: Option<Vec<WrittenArgument>>,
    /// The numbers of kernels that are given apart from sizes.
    pub(super) numbers: Vec<KernelNumbers>,
}

impl WrittenLaunch {
    /// Whether it gives the numbers of a kernel apart from sizes.
    pub(super) fn gives_numbers(&self, kernel: &str) -> bool {
        self.numbers.iter().any(|given| given.kernel == kernel)
    }
}

/// The values of a kernel's parameters that are no buffers, in order.
#[derive(Clone, Debug)]
pub(super) struct KernelNumbers {
    pub(super) kernel: String,
    /// As they are written.
    pub(super) values: Vec<String>,
    pub(super) span: Span,
}

/// An argument of a launch.
#[derive(Clone, Debug)]
pub(super) struct WrittenArgument {
    /// Its place.
    pub(super) span: Span,
    pub(super) value: ArgumentValue,
}

/// The value of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArgumentValue {
    /// A number, with the name that it is given by.
    Number(i64, Option<String>),
    /// A buffer.
    Buffer(Buffer),
    /// The address of an element of a buffer, by its name.
    Element(String, u64),
}

/// A buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Buffer {
    pub(super) name: String,
    /// The type of its elements, where it is said.
    pub(super) element: Option<String>,
    /// `None`: as many as the launch accesses.
    pub(super) length: Option<u64>,
    pub(super) contents: Contents,
}

/// The first contents of a buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Contents {
    /// It is not said: any values, unless the course of the program depends on them.
    #[default]
    Open,
    /// Any values.
    Unknown,
    /// These values; a single one is for all elements.
    Values(Vec<i64>),
}

/// What begins a line of a file that says how a kernel is launched.
const DIRECTIVE: &str = "fencepost:";

/// What a size is of.
#[derive(Clone, Copy)]
enum SizeOf {
    Block,
    Grid,
    /// All threads.
    Global,
}

/// Options of GPUVerify for sizes.
const SIZES: [(&str, SizeOf); 5] = [
    ("--blockDim=", SizeOf::Block),
    ("--local_size=", SizeOf::Block),
    ("--gridDim=", SizeOf::Grid),
    ("--num_groups=", SizeOf::Grid),
    ("--global_size=", SizeOf::Global),
];

/// GPUVerify's option for the numbers of a kernel.
pub(super) const NUMBERS: &str = "--kernel-args=";

/// The launches in the lines of a file, in order; errors go to `sink`.
pub(super) fn directives(text: &str, sink: &mut Sink) -> Vec<WrittenLaunch> {
    let sign = match sink.file().translation {
        Some(_) => ";",
        None => "//",
    };
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let comment = line
            .find(sign)
            .map(|at| at + sign.len())
            .map(|at| (at, line[at..].trim_start()));
        if let Some((at, rest)) = comment
            && let Some(body) = rest.strip_prefix(DIRECTIVE)
        {
            let skipped = line[at..].len() - rest.len() + DIRECTIVE.len();
            let launch = body.trim_start();
            let begin = start + at + skipped + body.len() - launch.len();
            let mapped = MappedText::verbatim(launch.trim_end(), begin);
            found.extend(read(&mapped, sink));
        }
        start += line.len();
    }
    found
}

/// Sizes and numbers that a file for GPUVerify says.
pub(super) fn sizes(text: &str) -> Option<WrittenLaunch> {
    let mut launch = WrittenLaunch::default();
    let mut global: Option<Vec<u32>> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let begin = start;
        start += line.len();
        let Some(rest) = line.trim_start().strip_prefix("//") else {
            continue;
        };
        for word in rest.split_whitespace() {
            let line_span = Span::new(begin, begin + line.trim_end().len());
            if let Some(numbers) = word.strip_prefix(NUMBERS) {
                let mut parts = numbers.split(',').map(str::to_owned);
                let kernel = parts.next().unwrap_or_default();
                launch.numbers.push(KernelNumbers {
                    kernel,
                    values: parts.collect(),
                    span: line_span,
                });
                continue;
            }
            let given = SIZES
                .iter()
                .find_map(|(option, of)| Some((numbers(word.strip_prefix(option)?)?, *of)));
            match given {
                Some((sizes, SizeOf::Grid)) => launch.grid = Some(sizes),
                Some((sizes, SizeOf::Block)) => launch.block = Some(sizes),
                Some((sizes, SizeOf::Global)) => global = Some(sizes),
                None => continue,
            }
            launch.span = line_span;
        }
    }
    if let (Some(all), Some(block)) = (global, &launch.block) {
        let sizes = all.iter().zip(block);
        let whole = sizes.map(|(all, block)| all.checked_div(*block).filter(|n| *n > 0));
        launch.grid = whole.collect::<Option<Vec<u32>>>().or(launch.grid);
    }
    let is_given = launch.grid.is_some() || launch.block.is_some() || !launch.numbers.is_empty();
    is_given.then_some(launch)
}

/// The text of a file with its headers, behind the macros that its lines for GPUVerify define:
/// `-DWIDTH=256`, beside options that begin with `--`.
pub(super) fn with_macros(file: &SourceFile) -> MappedText {
    let mut out = MappedText::new();
    let mut start = 0;
    for line in file.text.split_inclusive('\n') {
        let span = Span::new(start, start + line.trim_end().len());
        start += line.len();
        let Some(options) = line.trim_start().strip_prefix("//") else {
            continue;
        };
        if !options.trim_start().starts_with("--") {
            continue;
        }
        let words = options.split_whitespace();
        for definition in words.filter_map(|word| word.strip_prefix("-D")) {
            // Compilers define a macro without a value as 1.
            let (name, value) = definition.split_once('=').unwrap_or((definition, "1"));
            out.push_opaque(&format!("#define {name} {value}\n"), span);
        }
    }
    let text = with_headers(file);
    out.push_slice(&text, 0..text.as_str().len());
    out
}

/// `64`, `[8,8]`, `(8,8)` or `{8,8}`.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let inner = text.trim_matches(['[', ']', '(', ')', '{', '}']);
    inner.split(',').map(|n| n.trim().parse().ok()).collect()
}

/// A launch from its text.
pub(super) fn read(text: &MappedText, sink: &mut Sink) -> Option<WrittenLaunch> {
    let mut reader = LaunchReader { text, at: 0, sink };
    reader.launch()
}

struct LaunchReader<'t, 's> {
    text: &'t MappedText,
    at: usize,
    sink: &'s mut Sink,
}

/// An example of a launch.
const FORM: &str = "`kernel<<<2, 64>>>(in[128] = 1, out[2], 128)`";

impl<'t> LaunchReader<'t, '_> {
    fn rest(&self) -> &'t str {
        &self.text.as_str()[self.at..]
    }

    fn skip(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, sign: &str) -> bool {
        self.skip();
        let is = self.rest().starts_with(sign);
        self.at += if is { sign.len() } else { 0 };
        is
    }

    fn wrong<T>(&mut self, expected: &str) -> Option<T> {
        self.skip();
        let end = self
            .rest()
            .find([',', ')', '>'])
            .unwrap_or(self.rest().len());
        let span = self
            .text
            .span(self.at..self.at + end.max(1).min(self.rest().len()));
        self.sink
            .error("bad-launch", span, "this is not a launch", |d| {
                d.label(format!("expected {expected}"))
                    .help(format!("a launch is written as in {FORM}"))
            });
        None
    }

    fn expect(&mut self, sign: &str) -> Option<()> {
        if self.eat(sign) {
            return Some(());
        }
        self.wrong(&format!("`{sign}`"))
    }

    /// Letters, digits, `_`, `$` and `::`.
    fn name(&mut self) -> Option<(String, Range<usize>)> {
        self.skip();
        let rest = self.rest();
        let mut len = rest
            .find(|c: char| !(c.is_alphanumeric() || "_$:".contains(c)))
            .unwrap_or(rest.len());
        // `in:u32[8]`: the name ends at a single colon.
        if let Some(colon) = rest[..len].find(':')
            && !rest[colon..].starts_with("::")
        {
            len = colon;
        }
        let starts = rest.starts_with(|c: char| c.is_alphabetic() || "_$".contains(c));
        if len == 0 || !starts {
            return None;
        }
        let range = self.at..self.at + len;
        self.at += len;
        Some((rest[..len].to_owned(), range))
    }

    fn number(&mut self) -> Option<i64> {
        self.skip();
        let rest = self.rest();
        let (sign, digits) = match rest.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, rest),
        };
        let len = digits
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(digits.len());
        let word = digits[..len].to_ascii_lowercase();
        let value = match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok().map(|n| n as i64),
            None => word.trim_end_matches(['u', 'l']).parse::<i64>().ok(),
        };
        let value = value.filter(|_| digits.starts_with(|c: char| c.is_ascii_digit()))?;
        self.at += rest.len() - digits.len() + len;
        Some(sign * value)
    }

    /// A size by dimension.
    fn extent(&mut self) -> Option<Vec<u32>> {
        let wrapped = self.eat("dim3") || ["(", "{"].contains(&self.peek());
        if !wrapped {
            return self.size().map(|one| vec![one]);
        }
        let close = if self.eat("{") {
            "}"
        } else {
            self.expect("(")?;
            ")"
        };
        let mut all = vec![self.size()?];
        while self.eat(",") {
            all.push(self.size()?);
        }
        self.expect(close)?;
        Some(all)
    }

    fn size(&mut self) -> Option<u32> {
        let size = self.number().and_then(|n| u32::try_from(n).ok());
        match size {
            Some(size) if size > 0 => Some(size),
            _ => self.wrong("a size, which is at least 1"),
        }
    }

    fn peek(&mut self) -> &'t str {
        self.skip();
        self.rest().get(..1).unwrap_or("")
    }

    fn launch(&mut self) -> Option<WrittenLaunch> {
        let Some((kernel, _)) = self.name() else {
            return self.wrong("the name of a kernel");
        };
        let mut launch = WrittenLaunch {
            kernel,
            span: self.text.span(0..self.text.as_str().len()),
            ..WrittenLaunch::default()
        };
        if self.peek() == "<" && !self.rest().starts_with("<<<") {
            launch.instance = Some(self.instance()?);
        }
        if self.eat("<<<") {
            launch.grid = Some(self.extent()?);
            self.expect(",")?;
            launch.block = Some(self.extent()?);
            if self.eat(",") {
                let Some(bytes) = self.number().and_then(|n| u64::try_from(n).ok()) else {
                    return self.wrong("bytes of dynamic shared memory");
                };
                launch.shared = Some(bytes);
            }
            if self.eat(",") && self.number().is_none() && self.name().is_none() {
                return self.wrong("a stream");
            }
            self.expect(">>>")?;
        }
        if self.eat("(") {
            let mut all = Vec::new();
            while !self.eat(")") {
                all.push(self.argument()?);
                if !self.eat(",") {
                    self.expect(")")?;
                    break;
                }
            }
            launch.arguments = Some(all);
        }
        self.eat(";");
        self.skip();
        if !self.rest().is_empty() {
            return self.wrong("the end of the launch");
        }
        Some(launch)
    }

    /// `<int, 8>`
    fn instance(&mut self) -> Option<String> {
        self.expect("<")?;
        let end = self.rest().find('>').filter(|end| *end > 0);
        let Some(end) = end else {
            return self.wrong("the arguments of a template, as in `kernel<int, 8>`");
        };
        let text = self.rest()[..end]
            .split(',')
            .map(str::trim)
            .collect::<Vec<_>>();
        self.at += end + 1;
        Some(text.join(", "))
    }

    fn argument(&mut self) -> Option<WrittenArgument> {
        self.skip();
        let start = self.at;
        let value = self.value()?;
        let span = self.text.span(start..self.at);
        Some(WrittenArgument { span, value })
    }

    fn value(&mut self) -> Option<ArgumentValue> {
        if let Some(number) = self.number() {
            return Some(ArgumentValue::Number(number, None));
        }
        if self.eat("&") {
            return self.element();
        }
        let Some((name, _)) = self.name() else {
            return self.wrong("a number or a buffer");
        };
        match name.as_str() {
            "nullptr" | "NULL" | "false" => return Some(ArgumentValue::Number(0, None)),
            "true" => return Some(ArgumentValue::Number(1, None)),
            _ => {}
        }
        if self.eat(":") {
            return match self.name() {
                Some((element, _)) => self.buffer(name, Some(element)),
                None => self.wrong("the type of an element"),
            };
        }
        if self.eat("+") {
            return match self.count() {
                Some(at) => Some(ArgumentValue::Element(name, at)),
                None => self.wrong("the number of an element"),
            };
        }
        if self.peek() == "[" {
            return self.buffer(name, None);
        }
        if !self.eat("=") {
            return Some(ArgumentValue::Element(name, 0));
        }
        match self.number() {
            Some(number) => Some(ArgumentValue::Number(number, Some(name))),
            None => self.wrong("a number; of a buffer, say the length: `in[4] = 1`"),
        }
    }

    fn count(&mut self) -> Option<u64> {
        self.number().and_then(|n| u64::try_from(n).ok())
    }

    /// `in[3]`, behind `&`.
    fn element(&mut self) -> Option<ArgumentValue> {
        let Some((name, _)) = self.name() else {
            return self.wrong("the name of a buffer");
        };
        if !self.eat("[") {
            return Some(ArgumentValue::Element(name, 0));
        }
        let Some(at) = self.count() else {
            return self.wrong("the number of an element");
        };
        self.expect("]")?;
        Some(ArgumentValue::Element(name, at))
    }

    /// `[128] = 1`, behind a name.
    fn buffer(&mut self, name: String, element: Option<String>) -> Option<ArgumentValue> {
        self.expect("[")?;
        let length = match self.peek() {
            "]" => None,
            _ => match self.count().filter(|n| *n > 0) {
                Some(length) => Some(length),
                None => return self.wrong("how many elements it has"),
            },
        };
        self.expect("]")?;
        let contents = if self.eat("=") {
            self.contents()?
        } else {
            Contents::Open
        };
        Some(ArgumentValue::Buffer(Buffer {
            name,
            element,
            length,
            contents,
        }))
    }

    fn contents(&mut self) -> Option<Contents> {
        if self.eat("unknown") {
            return Some(Contents::Unknown);
        }
        let list = self.eat("{");
        let mut values = Vec::new();
        loop {
            match self.number() {
                Some(value) => values.push(value),
                None => return self.wrong("a number, `{1, 2}`, or `unknown`"),
            }
            if !list || !self.eat(",") {
                break;
            }
        }
        if list {
            self.expect("}")?;
            // A list of one value is for the first element alone.
            if values.len() == 1 {
                values.push(0);
            }
        }
        Some(Contents::Values(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diag::SourceFile;

    fn launch(text: &str) -> Result<WrittenLaunch, String> {
        let file = SourceFile::new("t", text);
        let mut sink = Sink::new(&file);
        let launch = read(&MappedText::verbatim(text, 0), &mut sink);
        let messages: Vec<String> = sink
            .into_diagnostics()
            .iter()
            .map(|d| d.label.clone())
            .collect();
        launch.ok_or(messages.join("; "))
    }

    #[test]
    fn launches_are_read_as_they_are_written() {
        let it =
            launch("block_sum<<<2, dim3(8, 4), 256>>>(in[128] = 1, out[], -3, &in[2], n = 0x10)")
                .expect("a launch");
        assert_eq!(
            (it.grid, it.block, it.shared),
            (Some(vec![2]), Some(vec![8, 4]), Some(256))
        );
        let values: Vec<ArgumentValue> = it
            .arguments
            .expect("arguments")
            .into_iter()
            .map(|a| a.value)
            .collect();
        let buffer = |name: &str, length, contents| {
            ArgumentValue::Buffer(Buffer {
                name: name.into(),
                element: None,
                length,
                contents,
            })
        };
        let expected = [
            buffer("in", Some(128), Contents::Values(vec![1])),
            buffer("out", None, Contents::Open),
            ArgumentValue::Number(-3, None),
            ArgumentValue::Element("in".into(), 2),
            ArgumentValue::Number(16, Some("n".into())),
        ];
        assert_eq!(values, expected);
        assert!(launch("k").expect("a kernel alone").arguments.is_none());
        assert!(
            launch("k<<<1, 2>>>")
                .expect("without arguments")
                .arguments
                .is_none()
        );
    }

    #[test]
    fn what_is_no_launch_says_what_was_expected() {
        for (text, part) in [
            ("<<<1, 2>>>()", "the name of a kernel"),
            ("k<<<0, 2>>>()", "a size"),
            ("k<<<1>>>()", "`,`"),
            ("k<<<1, 2>>>(a[x])", "how many elements"),
            ("k<<<1, 2>>>(a[2] = x)", "`unknown`"),
            ("k<<<1, 2>>>(3) and more", "the end"),
            ("k<<<1, 2>>>(n = )", "a number"),
        ] {
            let wrong = launch(text).expect_err(text);
            assert!(wrong.contains(part), "{text}: {wrong}");
        }
    }

    #[test]
    fn lines_of_a_file_say_launches() {
        let text = "//pass\n//--blockDim=[8,8] --gridDim=2\n// fencepost: k<<<1, 2>>>(x[2])\n\
                    int a; // fencepost: k<<<1, 4>>>(x[2])\n";
        let file = SourceFile::new("t", text);
        let mut sink = Sink::new(&file);
        let all = directives(text, &mut sink);
        assert_eq!(all.len(), 2);
        let at = text.find("k<").expect("it is there");
        assert_eq!(all[0].span, Span::new(at, at + "k<<<1, 2>>>(x[2])".len()));
        let found = sizes(text).expect("sizes");
        assert_eq!((found.grid, found.block), (Some(vec![2]), Some(vec![8, 8])));
        let found = sizes("// --kernel-args=k,0x3,*").expect("numbers").numbers;
        assert_eq!((&*found[0].kernel, found[0].values.len()), ("k", 2));
        let found = sizes("//--local_size=64 --global_size=512").expect("sizes");
        assert_eq!((found.grid, found.block), (Some(vec![8]), Some(vec![64])));
    }
}
