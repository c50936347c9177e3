//! Lowers functions of the mathematical library, and arithmetic of floating point in expressions.
//!
//! # Sources
//! - C11, 7.12; CUDA Math API; OpenCL C, *Math Functions*, *Relational Functions*.

use std::ops::Range;

use super::ast::Expr as Tree;
use super::floats::{arithmetic, common, converted, float, is_zero, magnitude, name, word};
use super::language::Language;
use super::lower::Lowering;
use super::types::{Type, Value, folded};
use program::{BinOp, Expr, FloatOp, Format, Rounding, Ty};

/// The computation of a function of the mathematical library.
#[derive(Clone, Copy)]
enum Computes {
    Operation(FloatOp),
    Magnitude,
    IsNan,
    IsFinite,
    /// `a * b + c`, rounded once.
    Fused,
    /// A value that is not worked out; the number of arguments.
    Open(usize),
}

pub(super) const NEAREST: Rounding = Rounding::Nearest;

/// Functions without the suffix `f` of the ones for `float`.
const FUNCTIONS: &[(&str, Computes)] = &[
    ("fmax", Computes::Operation(FloatOp::Max)),
    ("fmin", Computes::Operation(FloatOp::Min)),
    ("sqrt", Computes::Operation(FloatOp::Sqrt(NEAREST))),
    ("fabs", Computes::Magnitude),
    ("floor", Computes::Operation(FloatOp::Whole(Rounding::Down))),
    ("ceil", Computes::Operation(FloatOp::Whole(Rounding::Up))),
    ("trunc", Computes::Operation(FloatOp::Whole(Rounding::Zero))),
    ("rint", Computes::Operation(FloatOp::Whole(NEAREST))),
    ("isnan", Computes::IsNan),
    ("isfinite", Computes::IsFinite),
    ("fma", Computes::Fused),
    ("exp", Computes::Open(1)),
    ("exp2", Computes::Open(1)),
    ("exp10", Computes::Open(1)),
    ("expm1", Computes::Open(1)),
    ("log", Computes::Open(1)),
    ("log2", Computes::Open(1)),
    ("log10", Computes::Open(1)),
    ("log1p", Computes::Open(1)),
    ("sin", Computes::Open(1)),
    ("cos", Computes::Open(1)),
    ("tan", Computes::Open(1)),
    ("asin", Computes::Open(1)),
    ("acos", Computes::Open(1)),
    ("atan", Computes::Open(1)),
    ("sinh", Computes::Open(1)),
    ("cosh", Computes::Open(1)),
    ("tanh", Computes::Open(1)),
    ("erf", Computes::Open(1)),
    ("cbrt", Computes::Open(1)),
    ("rsqrt", Computes::Open(1)),
    ("round", Computes::Open(1)),
    ("pow", Computes::Open(2)),
    ("fmod", Computes::Open(2)),
    ("atan2", Computes::Open(2)),
    ("hypot", Computes::Open(2)),
];

/// Functions that CUDA has for `float` alone.
const INTRINSICS: &[(&str, Computes)] = &[
    ("__fadd_rn", Computes::Operation(FloatOp::Add(NEAREST))),
    ("__fsub_rn", Computes::Operation(FloatOp::Sub(NEAREST))),
    ("__fmul_rn", Computes::Operation(FloatOp::Mul(NEAREST))),
    ("__fdiv_rn", Computes::Operation(FloatOp::Div(NEAREST))),
    ("__fsqrt_rn", Computes::Operation(FloatOp::Sqrt(NEAREST))),
    ("__fmaf_rn", Computes::Fused),
    ("__expf", Computes::Open(1)),
    ("__exp10f", Computes::Open(1)),
    ("__logf", Computes::Open(1)),
    ("__log2f", Computes::Open(1)),
    ("__log10f", Computes::Open(1)),
    ("__sinf", Computes::Open(1)),
    ("__cosf", Computes::Open(1)),
    ("__tanf", Computes::Open(1)),
    ("__powf", Computes::Open(2)),
    ("__fdividef", Computes::Open(2)),
    ("__frsqrt_rn", Computes::Open(1)),
];

/// Clocks of CUDA: their values are not worked out (CUDA C++ Programming Guide, *Time Function*).
const CLOCKS: &[(&str, Ty)] = &[
    ("clock", Ty::WORD),
    ("clock64", Ty::WORD),
    ("__globaltimer", Ty::U64),
];

/// Functions that keep the bits of a value: the types of the argument and of the result.
const SAME_BITS: &[(&str, Type, Type)] = &[
    ("__float_as_int", SINGLE, Type::INT),
    ("__float_as_uint", SINGLE, Type::Int(Ty::U32)),
    ("__int_as_float", Type::INT, SINGLE),
    ("__uint_as_float", Type::Int(Ty::U32), SINGLE),
    ("__double_as_longlong", DOUBLE, Type::Int(Ty::WORD)),
    ("__longlong_as_double", Type::Int(Ty::WORD), DOUBLE),
];

const SINGLE: Type = Type::Float(Format::SINGLE);
const DOUBLE: Type = Type::Float(Format::DOUBLE);

/// Functions of CUDA for `__half`.
const OF_HALVES: &[(&str, Computes)] = &[
    ("__hadd", Computes::Operation(FloatOp::Add(NEAREST))),
    ("__hsub", Computes::Operation(FloatOp::Sub(NEAREST))),
    ("__hmul", Computes::Operation(FloatOp::Mul(NEAREST))),
    ("__hdiv", Computes::Operation(FloatOp::Div(NEAREST))),
    ("__hmax", Computes::Operation(FloatOp::Max)),
    ("__hmin", Computes::Operation(FloatOp::Min)),
    ("__hfma", Computes::Fused),
    ("__habs", Computes::Magnitude),
    ("hsqrt", Computes::Operation(FloatOp::Sqrt(NEAREST))),
    ("hexp", Computes::Open(1)),
    ("hlog", Computes::Open(1)),
];

/// Conversions of CUDA by name: the type of the result, and the mode where the result is an
/// integer.
const CONVERSIONS: &[(&str, Type, Rounding)] = &[
    ("__float2half", HALF, NEAREST),
    ("__float2half_rn", HALF, NEAREST),
    ("__double2half", HALF, NEAREST),
    ("__int2half_rn", HALF, NEAREST),
    ("__half2float", SINGLE, NEAREST),
    ("__float2bfloat16", BRAIN, NEAREST),
    ("__float2bfloat16_rn", BRAIN, NEAREST),
    ("__double2bfloat16", BRAIN, NEAREST),
    ("__bfloat162float", SINGLE, NEAREST),
    ("__float2int_rn", Type::INT, NEAREST),
    ("__float2int_rz", Type::INT, Rounding::Zero),
    ("__float2int_rd", Type::INT, Rounding::Down),
    ("__float2int_ru", Type::INT, Rounding::Up),
    ("__float2uint_rn", Type::Int(Ty::U32), NEAREST),
    ("__float2uint_rz", Type::Int(Ty::U32), Rounding::Zero),
    ("__int2float_rn", SINGLE, NEAREST),
    ("__uint2float_rn", SINGLE, NEAREST),
    ("__double2float_rn", SINGLE, NEAREST),
    ("__double2int_rz", Type::INT, Rounding::Zero),
    ("__int2double_rn", DOUBLE, NEAREST),
];

const HALF: Type = Type::Float(Format::HALF);
const BRAIN: Type = Type::Float(Format::BRAIN);

/// Constants of the headers.
const CONSTANTS: &[(&str, f64, Format)] = &[
    ("FLT_MAX", f32::MAX as f64, Format::SINGLE),
    ("FLT_MIN", f32::MIN_POSITIVE as f64, Format::SINGLE),
    ("FLT_EPSILON", f32::EPSILON as f64, Format::SINGLE),
    ("INFINITY", f64::INFINITY, Format::SINGLE),
    ("NAN", f64::NAN, Format::SINGLE),
    ("DBL_MAX", f64::MAX, Format::DOUBLE),
    ("DBL_MIN", f64::MIN_POSITIVE, Format::DOUBLE),
    ("DBL_EPSILON", f64::EPSILON, Format::DOUBLE),
    ("M_PI", std::f64::consts::PI, Format::DOUBLE),
];

/// The number and format of the constant of that name.
pub(super) fn number_named(name: &str) -> Option<(f64, Format)> {
    let (_, number, format) = CONSTANTS.iter().find(|row| row.0 == name)?;
    Some((*number, *format))
}

/// The constant of that name.
pub(super) fn constant(name: &str) -> Option<Value> {
    let (number, format) = number_named(name)?;
    let bits = match format.bits {
        32 => i64::from((number as f32).to_bits()),
        _ => number.to_bits() as i64,
    };
    Some(Value::literal(bits, Type::Float(format)))
}

/// A member of `std::numeric_limits<T>` (ISO C++, numeric.limits).
pub(super) fn limit_of_type(of: &Type, word: &str) -> Option<Value> {
    let number = |n: i64| Some(Value::literal(n, of.clone()));
    match of {
        Type::Int(ty) => {
            let all = 1i64.checked_shl(u32::from(ty.bits) - u32::from(ty.signed));
            let most = ty.wrap(all.unwrap_or(0).wrapping_sub(1));
            match word {
                "max" => number(most),
                "min" | "lowest" if ty.signed => number(most.wrapping_neg().wrapping_sub(1)),
                "min" | "lowest" => number(0),
                "digits" => Some(Value::int(i64::from(ty.bits - u8::from(ty.signed)))),
                _ => None,
            }
        }
        Type::Float(format) => {
            let infinity = format.nan() & !((1 << format.fraction) - 1);
            match word {
                "infinity" => number(infinity),
                "max" => number(infinity - 1),
                "lowest" => number((infinity - 1) | format.sign()),
                "min" => number(1 << format.fraction),
                "digits" => Some(Value::int(i64::from(format.fraction) + 1)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Functions of OpenCL C with other names, or with approximations under such names.
const OF_OPENCL: &[&str] = &["native_", "half_"];

/// The function of that name, and whether its name says `float`.
fn function(name: &str, language: &Language) -> Option<(Computes, bool)> {
    fn row(name: &str) -> Option<Computes> {
        FUNCTIONS.iter().find(|row| row.0 == name).map(|row| row.1)
    }
    if language.row().regions {
        fn open(rest: &str) -> Option<Computes> {
            match row(rest) {
                Some(Computes::Open(n)) => Some(Computes::Open(n)),
                Some(_) => Some(Computes::Open(1)),
                None => None,
            }
        }
        return OF_OPENCL
            .iter()
            .find_map(|prefix| open(name.strip_prefix(prefix)?))
            .or_else(|| row(name))
            .map(|computes| (computes, false));
    }
    let intrinsic = INTRINSICS.iter().find(|row| row.0 == name);
    if let (Some((_, computes)), true) = (intrinsic, language.cpp) {
        return Some((*computes, true));
    }
    match row(name) {
        Some(computes) => Some((computes, false)),
        None => row(name.strip_suffix('f')?).map(|computes| (computes, true)),
    }
}

/// Whether a function of that name computes with numbers of floating point, and does nothing else.
pub(super) fn is_function(name: &str, language: &Language) -> bool {
    let name = super::words::bare(name);
    function(name, language).is_some()
        || (language.cpp && SAME_BITS.iter().any(|row| row.0 == name))
        || (language.cpp && OF_HALVES.iter().any(|row| row.0 == name))
        || (language.cpp && super::half_pairs::is_function(name))
        || (language.cpp && CONVERSIONS.iter().any(|row| row.0 == name))
        || (language.cpp && name == "__saturatef")
        || (language.cpp && CLOCKS.iter().any(|row| row.0 == name))
}

impl Computes {
    /// How many arguments the function takes.
    fn arguments(self) -> usize {
        match self {
            Computes::Fused => 3,
            Computes::Operation(
                FloatOp::Max
                | FloatOp::Min
                | FloatOp::Add(_)
                | FloatOp::Sub(_)
                | FloatOp::Mul(_)
                | FloatOp::Div(_),
            ) => 2,
            Computes::Open(n) => n,
            _ => 1,
        }
    }

    fn value(self, format: Format, args: &[Expr]) -> Value {
        let one = || args[0].clone();
        let expr = match self {
            Computes::Operation(op) => {
                let second = args.get(1).cloned().unwrap_or(Expr::Const(0));
                float(op, format, one(), second)
            }
            Computes::Magnitude => magnitude(format, &args[0]),
            Computes::Fused => fused(format, args),
            Computes::IsNan => float(FloatOp::Unordered, format, one(), one()),
            // Only a finite number has a difference of zero to itself.
            Computes::IsFinite => {
                let difference = float(FloatOp::Sub(NEAREST), format, one(), one());
                is_zero(format, &difference, true)
            }
            Computes::Open(_) => open(word(format), args),
        };
        match self {
            Computes::IsNan | Computes::IsFinite => Value::of(expr, Ty::S32),
            _ => Value::new(expr, Type::Float(format)),
        }
    }
}

fn fused(format: Format, args: &[Expr]) -> Expr {
    let fused = program::Fused {
        format,
        rounding: NEAREST,
    };
    Expr::Fused(
        fused,
        [0, 1, 2].map(|n| Box::new(args.get(n).cloned().unwrap_or(Expr::Const(0)))),
    )
}

/// A value that is not worked out.
fn open(ty: Ty, args: &[Expr]) -> Expr {
    let some = args.iter().filter(|arg| **arg != Expr::Const(0));
    some.cloned().fold(Expr::unknown(ty), |all, arg| {
        Expr::Bin(BinOp::Unknown, ty, all.into(), arg.into())
    })
}

impl Lowering<'_, '_> {
    /// Calls a function of the mathematical library; `None`: the call is another one.
    pub(super) fn math_call(&mut self, tree: &Tree, name: &str, args: &[Tree]) -> Option<Value> {
        let name = super::words::bare(name);
        if let Some(value) = self.pair_call(tree, name, args) {
            return Some(value);
        }
        let clock = CLOCKS.iter().find(|row| row.0 == name);
        if let (Some((_, ty)), true, []) = (clock, self.env.language.cpp, args) {
            return Some(Value::of(Expr::unknown(*ty), *ty));
        }
        if let ("abs", true, [arg]) = (name, self.env.language.cpp, args)
            && let Type::Float(format) = self.unevaluated(arg).ty
        {
            let value = self.scalar(arg);
            return Some(Value::new(
                magnitude(format, &value.expr),
                Type::Float(format),
            ));
        }
        let same = SAME_BITS.iter().find(|row| row.0 == name);
        if let (Some((_, from, to)), true) = (same, self.env.language.cpp) {
            return Some(self.same_bits(tree, to, from, args));
        }
        let conversion = CONVERSIONS.iter().find(|row| row.0 == name);
        if let (Some((_, to, by)), true) = (conversion, self.env.language.cpp) {
            return Some(self.converted_by_name(tree, to, *by, args));
        }
        if name == "__saturatef" && self.env.language.cpp {
            return Some(self.saturated(tree, args));
        }
        let of_half = OF_HALVES.iter().find(|row| row.0 == name);
        let of_half = of_half.filter(|_| self.env.language.cpp);
        let (computes, single) = match of_half {
            Some(row) => (row.1, false),
            None => function(name, self.env.language)?,
        };
        let wanted = computes.arguments();
        if args.len() != wanted {
            let message = format!("`{name}` takes {wanted} arguments, {} given", args.len());
            self.error("wrong-operands", &tree.range, message, |d| {
                d.label("expected another number of arguments")
            });
            return Some(self.nothing());
        }
        let values: Vec<Value> = args.iter().map(|arg| self.scalar(arg)).collect();
        let format = match single {
            _ if of_half.is_some() && values.iter().any(|v| v.ty == BRAIN) => Format::BRAIN,
            _ if of_half.is_some() => Format::HALF,
            true => Format::SINGLE,
            false => self.format_of(&values),
        };
        let mut numbers = Vec::new();
        for (value, arg) in values.iter().zip(args) {
            let of = Type::Float(format);
            let expr = self.assignable(value, &of, &arg.range);
            let kept = self.kept(Value::new(expr, of));
            numbers.push(folded(kept.expr));
        }
        Some(computes.value(format, &numbers))
    }

    /// Whether a name is that of a function of numbers that the code does not define itself, in a
    /// language where such functions take vectors.
    pub(super) fn is_math_of_code(&self, name: &str) -> bool {
        let language = self.env.language;
        language.row().regions
            && function(name, language).is_some()
            && !self.functions.contains_key(name)
    }

    /// A function of numbers for one component of its vectors (OpenCL C, *Math Functions*).
    pub(super) fn math_of_component(
        &mut self,
        tree: &Tree,
        name: &str,
        element: &Type,
        values: Vec<Value>,
    ) -> Value {
        let (Some((computes, _)), Type::Float(format)) =
            (function(name, self.env.language), element)
        else {
            return self.nothing();
        };
        if values.len() != computes.arguments() {
            let wanted = computes.arguments();
            let message = format!("`{name}` takes {wanted} arguments, {} given", values.len());
            self.error("wrong-operands", &tree.range, message, |d| {
                d.label("expected another number of arguments")
            });
            return self.nothing();
        }
        let mut numbers = Vec::new();
        for value in &values {
            let expr = self.assignable(value, element, &tree.range);
            let kept = self.kept(Value::new(expr, element.clone()));
            numbers.push(folded(kept.expr));
        }
        computes.value(*format, &numbers)
    }

    /// `__float2int_rn(v)`: the number as another type, rounded.
    fn converted_by_name(&mut self, tree: &Tree, to: &Type, by: Rounding, args: &[Tree]) -> Value {
        let [arg] = args else {
            let message = format!("this function takes 1 argument, {} given", args.len());
            self.error("wrong-operands", &tree.range, message, |d| {
                d.label("expected one number")
            });
            return self.nothing();
        };
        let value = self.scalar(arg);
        let (Type::Float(format), Some(ty), Type::Int(_)) = (&value.ty, to.word(), to) else {
            return value.converted(to);
        };
        let whole = float(
            FloatOp::Whole(by),
            *format,
            value.expr.clone(),
            Expr::Const(0),
        );
        let expr = super::floats::to_integer(*format, ty, &whole);
        Value::new(expr, to.clone())
    }

    /// `__saturatef(v)`: the number in 0 to 1; a NaN becomes 0 (CUDA Math API).
    fn saturated(&mut self, tree: &Tree, args: &[Tree]) -> Value {
        let [arg] = args else {
            self.error(
                "wrong-operands",
                &tree.range,
                "`__saturatef` takes 1 argument",
                |d| d.label(format!("{} given", args.len())),
            );
            return self.nothing();
        };
        let value = self.scalar(arg);
        let expr = self.assignable(&value, &SINGLE, &arg.range);
        let one = Expr::Const(i64::from(1f32.to_bits()));
        let least = float(FloatOp::Max, Format::SINGLE, expr, Expr::Const(0));
        Value::new(float(FloatOp::Min, Format::SINGLE, least, one), SINGLE)
    }

    /// `as_float(n)`, with the same bits, or `convert_float(n)` (OpenCL C).
    pub(super) fn as_float(
        &mut self,
        tree: &Tree,
        format: Format,
        same_bits: bool,
        args: &[Tree],
    ) -> Value {
        let value = match args {
            [arg] => Some(self.scalar(arg)),
            _ => None,
        };
        let Some(value) = value.filter(|value| {
            let number = value.ty.promoted().is_some() || matches!(value.ty, Type::Float(_));
            number && (!same_bits || value.word().bits == format.bits)
        }) else {
            self.error(
                "wrong-operands",
                &tree.range,
                "this cannot be converted",
                |d| d.label("expected one number; for the same bits, one of the same size"),
            );
            return self.nothing();
        };
        let expr = match same_bits {
            true => Value::of(value.expr.clone(), value.word()).fit(word(format)),
            false => converted(&value, format),
        };
        Value::new(expr, Type::Float(format))
    }

    /// `__float_as_int(v)`: the same bits (CUDA Math API, *Type Casting Intrinsics*).
    fn same_bits(&mut self, tree: &Tree, to: &Type, from: &Type, args: &[Tree]) -> Value {
        let [arg] = args else {
            self.error(
                "wrong-operands",
                &tree.range,
                "this function takes 1 argument",
                |d| d.label(format!("{} given", args.len())),
            );
            return self.nothing();
        };
        let value = self.scalar(arg);
        let expr = self.assignable(&value, from, &arg.range);
        let word = from.word().unwrap_or(Ty::U32);
        let expr = Value::of(expr, word).fit(to.word().unwrap_or(Ty::U32));
        Value::new(expr, to.clone())
    }

    /// The format that overloads choose for arguments; that of integers is `double`.
    fn format_of(&self, values: &[Value]) -> Format {
        let formats = values.iter().filter_map(|value| match value.ty {
            Type::Float(format) => Some(format),
            _ => None,
        });
        let widest = formats.max_by_key(|format| format.bits);
        match self.env.language.dialect {
            program::Dialect::C => Format::DOUBLE,
            _ => widest.unwrap_or(Format::DOUBLE),
        }
    }

    /// Whether an operation is one of floating point; then, its result.
    pub(super) fn float_arithmetic(
        &mut self,
        op: BinOp,
        a: &Value,
        b: &Value,
        range: &Range<usize>,
    ) -> Option<Value> {
        let format = common(&a.ty, &b.ty)?;
        let result = arithmetic(op, format, a, b);
        if result.is_none() {
            let name = name(format);
            self.error(
                "wrong-operand",
                range,
                format!("no such operation on `{name}`"),
                |d| d.label("expected integers"),
            );
            return Some(self.nothing());
        }
        result
    }
}
