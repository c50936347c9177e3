//! Reads and writes pixels of images in OpenCL C: `read_imagei(i, x)`, `write_imagei(i, x, v)`.
//!
//! # Invariants
//! - A pixel is one number, the first component of a vector. A read gives 0 for the second and the
//!   third component, and 1 for the last.
//! - Kernels use an image by these functions alone. A coordinate outside of the image leads to no
//!   pixel.
//!
//! # Sources
//! - OpenCL C, *Image Read and Write Functions*, *Image Query Functions*, *Access Qualifiers*;
//!   OpenCL API specification, *Image Format Descriptor*: `CL_R` with `CL_SIGNED_INT32`,
//!   `CL_UNSIGNED_INT32` or `CL_FLOAT`.
//!
//! # Where we differ
//! - Images of several channels, samplers for arrays of images, and samplers with linear filters or
//!   normalized coordinates are refused. A sampler is a constant.

use std::ops::Range;

use super::ast::{Base, Expr as Tree, ExprKind, Storage, TypeName};
use super::image_words::{ImageParameter, coordinates, is_array};
use super::lower::Lowering;
use super::place::{Place, shifted};
use super::scope::Binding;
use super::types::{Qualified, Type, Value};
use program::{BinOp, CmpOp, Expr, Format, Init, LocId, MemoryKind, Op, Ty};

/// The number in a pixel, by the ending of a function; `None`: no function ends so.
fn number(ending: &str) -> Option<Type> {
    match ending {
        "i" => Some(Type::Int(Ty::S32)),
        "ui" => Some(Type::Int(Ty::U32)),
        "f" => Some(Type::Float(Format::SINGLE)),
        _ => None,
    }
}

/// Samplers (OpenCL C, *Samplers*): the bits of their properties, and two address modes.
const SAMPLER_NORMALIZED: i64 = 1;
const SAMPLER_LINEAR: i64 = 0x20;
const SAMPLER_ADDRESS: i64 = 0xe;
const SAMPLER_TO_EDGE: i64 = 2;
const SAMPLER_CLAMP: i64 = 4;

/// Whether a coordinate is not negative, and below a size.
fn is_below(x: &Expr, size: i64) -> Expr {
    Expr::Cmp(
        CmpOp::Lt,
        Ty::U32,
        x.clone().into(),
        Expr::Const(size).into(),
    )
}

/// The nearest coordinate within a size.
fn nearest(x: Expr, size: i64) -> Expr {
    let bin = |op: BinOp, a: Expr, b: i64| Expr::Bin(op, Ty::S32, a.into(), Expr::Const(b).into());
    bin(BinOp::Min, bin(BinOp::Max, x, 0), size - 1)
}

/// A function that asks for a size of an image.
#[derive(Clone, Copy)]
enum SizeQuery {
    /// Its width, height or depth, by number.
    Dimension(usize),
    /// The number of images in an array.
    Images,
}

impl SizeQuery {
    fn named(word: &str) -> Option<SizeQuery> {
        Some(match word {
            "get_image_width" => SizeQuery::Dimension(0),
            "get_image_height" => SizeQuery::Dimension(1),
            "get_image_depth" => SizeQuery::Dimension(2),
            "get_image_array_size" => SizeQuery::Images,
            _ => return None,
        })
    }
}

/// The width, the height and the depth of memory that is an image of so many pixels.
pub(super) fn sizes_of_image(kind: MemoryKind, pixels: u64) -> [u64; 3] {
    let (width, height) = match kind {
        MemoryKind::Image { width, height } => (u64::from(width), u64::from(height)),
        _ => (0, 0),
    };
    let width = if width == 0 { pixels } else { width }.max(1);
    let rows = pixels / width;
    let height = if height == 0 { rows } else { height }.max(1);
    [width, height, rows / height]
}

impl Lowering<'_, '_> {
    /// Takes the access qualifier of an image parameter. The memory of its name is the image.
    pub(super) fn bind_image(&mut self, param: &TypeName) -> bool {
        let name = &param.declarator.name;
        let all = [Storage::ReadOnly, Storage::WriteOnly, Storage::ReadWrite];
        let mut given = all
            .into_iter()
            .filter(|it| param.specifiers.has(*it).is_some());
        let Base::Image(of) = &param.specifiers.base else {
            if given.next().is_some() {
                self.error(
                    "wrong-operand",
                    name,
                    "this parameter is not an image",
                    |d| {
                        d.label("expected no access qualifier")
                            .note("OpenCL C, Access Qualifiers")
                    },
                );
            }
            return false;
        };
        let word = self.str(name).to_owned();
        let image = self.image_of_name(&word);
        if image.is_none() || !param.declarator.pointers.is_empty() {
            let message = format!("nothing is bound to the image `{word}`");
            self.error("unbound-parameter", name, message, |d| {
                d.label("expected an image of that name").help(format!(
                    "declare it in `[memory]`: `{word} = {{ type = \"int\", kind = \"image\" }}`"
                ))
            });
            return true;
        }
        // Without a qualifier, an image is read only.
        let parameter = ImageParameter {
            name: word,
            access: given.next().unwrap_or(Storage::ReadOnly),
            coordinates: coordinates(self.str(of)).unwrap_or(1),
            is_array: is_array(self.str(of)),
        };
        if given.next().is_some() {
            self.error("wrong-operand", name, "two access qualifiers", |d| {
                d.label("expected one of `read_only`, `write_only` and `read_write`")
            });
        }
        self.images.push(parameter);
        true
    }

    fn is_image(&self, loc: LocId) -> bool {
        matches!(self.symbols.object(loc).1.kind, MemoryKind::Image { .. })
    }

    /// The image that a name means: that of an argument of the launch, or the memory of this name.
    fn image_of_name(&self, name: &str) -> Option<LocId> {
        let loc = match self.scopes.find(name) {
            Some(Binding::Register(given)) => match self.initial(given.reg) {
                Init::Address { loc, index: 0 } => Some(loc),
                _ => None,
            },
            _ => self.location(name),
        };
        loc.filter(|loc| self.is_image(*loc))
    }

    /// Reports an image that a kernel uses like other memory.
    pub(super) fn refuse_image(&mut self, loc: LocId, range: &Range<usize>) {
        let of_host = (self.env.host.as_ref()).is_some_and(|names| !names.of_kernel);
        if of_host || !self.is_image(loc) {
            return;
        }
        let message = format!("`{}` is an image", self.str(range));
        self.error("wrong-operand", range, message, |d| {
            d.label("expected `read_imagei(…)`, `write_imagei(…)` or another function of images")
                .note("an image is opaque to kernels (OpenCL API, Memory Model: Memory Objects)")
        });
    }

    /// The vector that a read of an image gives; `None`: the function is another one.
    pub(super) fn pixel_type(&self, word: &str) -> Option<Qualified> {
        if !self.env.language.row().regions {
            return None;
        }
        let of = number(word.strip_prefix("read_image")?)?;
        self.vector(&self.vector_word(&of)?).map(Qualified::from)
    }

    fn vector_word(&self, of: &Type) -> Option<String> {
        match of {
            Type::Int(ty) => Some(if ty.signed { "int4" } else { "uint4" }.to_owned()),
            Type::Float(_) => Some("float4".to_owned()),
            _ => None,
        }
    }

    /// A call of a function of images; `None`: it is another function.
    pub(super) fn image_call(&mut self, word: &str, tree: &Tree, args: &[Tree]) -> Option<Value> {
        if !self.env.language.row().regions {
            return None;
        }
        if let (Some(query), [image]) = (SizeQuery::named(word), args) {
            return Some(self.size_of_image(query, image));
        }
        let read = word.strip_prefix("read_image").and_then(number);
        let written = word.strip_prefix("write_image").and_then(number);
        let of = read.clone().or(written)?;
        let access = match read.is_some() {
            true => Storage::ReadOnly,
            false => Storage::WriteOnly,
        };
        let most = 3;
        let least = if read.is_some() { 2 } else { most };
        if !(least..=most).contains(&args.len()) {
            let message = format!("`{word}` takes {most} arguments, {} given", args.len());
            self.error("wrong-operands", &tree.range, message, |d| {
                d.label("expected as many; a read may lack the sampler")
            });
            return Some(self.nothing());
        }
        if let (Some(_), [image, sampler, coordinate]) = (&read, args) {
            let done = self.sampled_pixel(word, &of, [image, sampler, coordinate], tree);
            return Some(done.unwrap_or_else(|| self.nothing()));
        }
        let pixel = self.pixel(word, &of, access, args);
        let done = pixel.and_then(|pixel| match args.get(2) {
            Some(color) => self.write_pixel(&pixel, &of, color),
            None => self.read_pixel(pixel, &of, tree),
        });
        Some(done.unwrap_or_else(|| self.nothing()))
    }

    /// The image that an argument names.
    fn image_named(&mut self, tree: &Tree) -> Option<(String, LocId)> {
        let word = self.str(&tree.range).to_owned();
        let loc = match tree.kind {
            ExprKind::Name => self.image_of_name(&word),
            _ => None,
        };
        if loc.is_none() {
            self.error("wrong-operand", &tree.range, "this is not an image", |d| {
                d.label("expected the name of one")
                    .help("declare it in `[memory]`, with `kind = \"image\"`")
            });
        }
        Some((word, loc?))
    }

    /// The value of a query for a size. The last size of an array is the number of its images.
    fn size_of_image(&mut self, query: SizeQuery, image: &Tree) -> Value {
        let Some((name, loc)) = self.image_named(image) else {
            return self.nothing();
        };
        let sizes = self.sizes_of_image(loc);
        let own = self.images.iter().find(|parameter| parameter.name == name);
        let (count, is_array) = own.map_or((3, false), |own| (own.coordinates, own.is_array));
        let at = match query {
            SizeQuery::Dimension(at) => (at + usize::from(is_array) < count).then_some(at),
            SizeQuery::Images => is_array.then(|| count - 1),
        };
        let Some(at) = at else {
            let message = "this query does not fit the type of the image";
            self.error("wrong-operand", &image.range, message, |d| {
                d.label("expected a query for one of its sizes")
                    .note("OpenCL C, Built-in Image Query Functions")
            });
            return self.nothing();
        };
        let ty = match query {
            SizeQuery::Dimension(_) => Ty::S32,
            SizeQuery::Images => Ty::U64,
        };
        Value::of(Expr::Const(sizes[at]), ty)
    }

    /// The width, the height and the depth of an image.
    fn sizes_of_image(&self, loc: LocId) -> [i64; 3] {
        sizes_of_image(
            self.symbols.object(loc).1.kind,
            self.symbols.elements(loc) as u64,
        )
        .map(|size| size as i64)
    }

    /// The place of a pixel.
    fn pixel(&mut self, word: &str, of: &Type, access: Storage, args: &[Tree]) -> Option<Place> {
        let [image, coordinate, ..] = args else {
            return None;
        };
        let (loc, given) = self.image_that_fits(word, of, access, [image, coordinate])?;
        let at = self.coordinates_of(coordinate, given);
        let index = self.index_of_pixel(loc, at);
        self.numbered_pixel(loc, index, &coordinate.range)
    }

    /// The image of a call and its number of coordinates, if the call fits it.
    fn image_that_fits(
        &mut self,
        word: &str,
        of: &Type,
        access: Storage,
        [image, coordinate]: [&Tree; 2],
    ) -> Option<(LocId, usize)> {
        let (name, loc) = self.image_named(image)?;
        let there = self.of_location(loc);
        if there.ty != *of {
            let message = format!("`{word}` does not access pixels of `{}`", there.ty.name());
            self.error("wrong-operand", &image.range, message, |d| {
                d.label(format!("expected an image of `{}`", of.name()))
            });
            return None;
        }
        let own = self.images.iter().find(|parameter| parameter.name == name);
        let (allowed, wanted) = own.map_or((Storage::ReadWrite, None), |parameter| {
            (parameter.access, Some(parameter.coordinates))
        });
        if allowed != Storage::ReadWrite && allowed != access {
            let (is, not) = match allowed {
                Storage::ReadOnly => ("read_only", "written"),
                _ => ("write_only", "read"),
            };
            let message = format!("the image `{name}` is {is}, and is {not}");
            self.error("wrong-operand", &image.range, message, |d| {
                d.label("expected `read_write` in the parameters of the kernel")
                    .note("OpenCL C, Access Qualifiers")
            });
            return None;
        }
        // A vector of four has three coordinates.
        let given = match self.vector_of_tree(coordinate).map_or(1, |of| of.1) {
            3 => 4,
            4 => 3,
            given => given,
        };
        if wanted.is_some_and(|wanted| wanted != given) || given > 3 {
            let expected = match wanted {
                Some(2) => "expected two, as in `(int2)(x, y)`",
                Some(3) => "expected three, as in `(int4)(x, y, z, 0)`",
                _ => "expected one number",
            };
            let message = format!("{given} coordinates do not fit this image");
            self.error("wrong-operand", &coordinate.range, message, |d| {
                d.label(expected)
            });
            return None;
        }
        Some((loc, given))
    }

    fn numbered_pixel(&mut self, loc: LocId, index: Value, range: &Range<usize>) -> Option<Place> {
        let pointer = Value::new(Expr::Address(loc), self.of_location(loc).pointer());
        let element = self.moved(pointer, index, false, range);
        self.pointed(element, range)
    }

    /// The coordinates of a pixel: one, two or three.
    fn coordinates_of(&mut self, coordinate: &Tree, given: usize) -> [Option<Expr>; 3] {
        let components = if given == 3 { 4 } else { given };
        let all = self.components_of(coordinate, components);
        let mut all = all.into_iter().take(given).map(|value| value.expr);
        [all.next(), all.next(), all.next()]
    }

    /// The number of a pixel, or a number behind all pixels.
    fn index_of_pixel(&mut self, loc: LocId, coordinates: [Option<Expr>; 3]) -> Value {
        let sizes = self.sizes_of_image(loc);
        let behind: i64 = sizes.iter().product();
        let bin = |op: BinOp, a: Expr, b: Expr| Expr::Bin(op, Ty::S32, a.into(), b.into());
        let all: Vec<Expr> = coordinates.into_iter().flatten().collect();
        let Some((last, before)) = all.split_last() else {
            return Value::of(Expr::Const(behind), Ty::S32);
        };
        let (mut index, mut inside) = (last.clone(), None);
        for (x, size) in before.iter().zip(sizes).rev() {
            index = bin(
                BinOp::Add,
                bin(BinOp::Mul, index, Expr::Const(size)),
                x.clone(),
            );
            let below = is_below(x, size);
            inside = Some(match inside {
                Some(inside) => bin(BinOp::And, inside, below),
                None => below,
            });
        }
        // The last coordinate leads behind all pixels on its own.
        if let Some(inside) = inside {
            index = Expr::Select(inside.into(), index.into(), Expr::Const(behind).into());
        }
        Value::of(index, Ty::S32)
    }

    /// A sampler: `CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST`.
    fn sampler(&mut self, tree: &Tree) -> Option<i64> {
        let value = self.eval(tree).constant();
        let reason = match value {
            None => "is not a constant",
            Some(value) if value & SAMPLER_NORMALIZED != 0 => "has normalized coordinates",
            Some(value) if value & SAMPLER_LINEAR != 0 => "has a linear filter",
            Some(value) if value & SAMPLER_ADDRESS > SAMPLER_CLAMP => "repeats the image",
            Some(value) => return Some(value & SAMPLER_ADDRESS),
        };
        let message = format!("a sampler that {reason} is not supported");
        self.error("unsupported", &tree.range, message, |d| {
            d.label("expected integer coordinates, and the nearest pixel")
                .help("`CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST`")
        });
        None
    }

    /// `read_imagei(image, sampler, coordinate)`
    fn sampled_pixel(
        &mut self,
        word: &str,
        of: &Type,
        [image, sampler_tree, coordinate]: [&Tree; 3],
        tree: &Tree,
    ) -> Option<Value> {
        let address = self.sampler(sampler_tree)?;
        let (name, loc) = self.image_named(image)?;
        let own = self.images.iter().find(|parameter| parameter.name == name);
        if own.is_none_or(|parameter| parameter.access != Storage::ReadOnly) {
            let message = format!("`{name}` is read with a sampler, and is not `read_only`");
            self.error("wrong-operand", &image.range, message, |d| {
                d.label("expected a `read_only` image of the kernel")
                    .note("OpenCL C, Built-in Image Read Functions")
            });
            return None;
        }
        if own.is_some_and(|parameter| parameter.is_array) {
            let message = "samplers for arrays of images are not supported";
            self.error("unsupported", &sampler_tree.range, message, |d| {
                d.label("expected a read without a sampler, inside of the image")
            });
            return None;
        }
        if let Some((Type::Float(_), _)) = self.vector_of_tree(coordinate) {
            let message = "coordinates of floating point are not supported";
            self.error("unsupported", &coordinate.range, message, |d| {
                d.label("expected integers, as in `(int2)(x, y)`")
            });
            return None;
        }
        let (_, given) = self.image_that_fits(word, of, Storage::ReadOnly, [image, coordinate])?;
        let sizes = self.sizes_of_image(loc);
        let all = self.coordinates_of(coordinate, given);
        let mut inside = Expr::Const(1);
        let mut at = [None, None, None];
        for (n, x) in all.into_iter().flatten().enumerate() {
            let x = self.kept(Value::of(x, Ty::S32)).expr;
            inside = Expr::Bin(
                BinOp::And,
                Ty::S32,
                inside.into(),
                is_below(&x, sizes[n]).into(),
            );
            at[n] = Some(match address {
                SAMPLER_TO_EDGE => nearest(x, sizes[n]),
                _ => x,
            });
        }
        let index = self.index_of_pixel(loc, at);
        let first = self.temporary(self.of_location(loc).word()?);
        // The border of an image without a component for transparency is black, and opaque.
        self.push(Op::Assign {
            dst: first,
            value: Expr::Const(0),
        });
        let skip = (address == SAMPLER_CLAMP).then(|| {
            let outside = Expr::Cmp(CmpOp::Eq, Ty::S32, inside.into(), Expr::Const(0).into());
            self.branch(outside)
        });
        let pixel = self.numbered_pixel(loc, index, &coordinate.range)?;
        let value = self.read(pixel).expr;
        self.push(Op::Assign { dst: first, value });
        if let Some(skip) = skip {
            let end = self.code.len();
            self.patch(skip, end);
        }
        self.pixel_vector(Expr::Reg(first), of, tree)
    }

    /// Writes the first component of a vector to a pixel.
    fn write_pixel(&mut self, pixel: &Place, of: &Type, color: &Tree) -> Option<Value> {
        let given = self.vector_of_tree(color);
        if given
            .as_ref()
            .is_none_or(|given| given.0 != *of || given.1 != 4)
        {
            let expected = format!("expected a value of type `{}`", self.vector_word(of)?);
            let message = "this is not the value of a pixel";
            self.error("wrong-operand", &color.range, message, |d| {
                d.label(expected)
            });
            return None;
        }
        let value = self.components_of(color, 4).into_iter().next()?;
        self.write(pixel, value.expr);
        Some(Value::void())
    }

    /// Reads a pixel into a vector.
    fn read_pixel(&mut self, pixel: Place, of: &Type, tree: &Tree) -> Option<Value> {
        let first = self.read(pixel).expr;
        self.pixel_vector(first, of, tree)
    }

    /// The vector of a pixel with this first component.
    fn pixel_vector(&mut self, first: Expr, of: &Type, tree: &Tree) -> Option<Value> {
        let vector = Qualified::from(self.vector(&self.vector_word(of)?)?);
        let at = self.unnamed("pixel", &vector, &tree.range)?;
        let one = match of {
            Type::Float(_) => i64::from(1.0f32.to_bits()),
            _ => 1,
        };
        let others = [Expr::Const(0), Expr::Const(0), Expr::Const(one)];
        let all = std::iter::once(first).chain(others);
        for ((offset, part), value) in vector.parts().into_iter().zip(all) {
            self.write(&Place::Memory(shifted(&at, offset), part), value);
        }
        Some(Value::new(at, vector.ty))
    }
}
