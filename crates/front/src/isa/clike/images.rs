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
//! - Images of several channels, samplers, and images of three dimensions are refused.

use std::ops::Range;

use super::ast::{Base, Expr as Tree, ExprKind, Storage, TypeName};
use super::image_words::{ImageParameter, coordinates};
use super::lower::Lowering;
use super::place::{Place, shifted};
use super::types::{Qualified, Type, Value};
use program::{BinOp, CmpOp, Expr, Format, LocId, MemoryKind, Ty};

/// The number in a pixel, by the ending of a function; `None`: no function ends so.
fn number(ending: &str) -> Option<Type> {
    match ending {
        "i" => Some(Type::Int(Ty::S32)),
        "ui" => Some(Type::Int(Ty::U32)),
        "f" => Some(Type::Float(Format::SINGLE)),
        _ => None,
    }
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
        let is_image = self.location(&word).is_some_and(|loc| self.is_image(loc));
        if !is_image || !param.declarator.pointers.is_empty() {
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
        matches!(self.symbols.object(loc).1.kind, MemoryKind::Image(_))
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
        if let ("get_image_width" | "get_image_height", [image]) = (word, args) {
            let (_, loc) = self.image_named(image)?;
            let [width, height] = self.sizes_of_image(loc);
            let size = if word == "get_image_width" {
                width
            } else {
                height
            };
            return Some(Value::of(Expr::Const(size), Ty::S32));
        }
        let read = word.strip_prefix("read_image").and_then(number);
        let written = word.strip_prefix("write_image").and_then(number);
        let of = read.clone().or(written)?;
        let access = match read.is_some() {
            true => Storage::ReadOnly,
            false => Storage::WriteOnly,
        };
        let expected = if read.is_some() { 2 } else { 3 };
        if read.is_some() && args.len() == 3 {
            self.error(
                "unsupported",
                &tree.range,
                "samplers are not supported",
                |d| d.label("expected a read without a sampler: `read_imagei(image, coordinate)`"),
            );
            return Some(self.nothing());
        }
        if args.len() != expected {
            let message = format!("`{word}` takes {expected} arguments, {} given", args.len());
            self.error("wrong-operands", &tree.range, message, |d| {
                d.label("expected as many")
            });
            return Some(self.nothing());
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
            ExprKind::Name => self.location(&word).filter(|loc| self.is_image(*loc)),
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

    /// The width and the height of an image.
    fn sizes_of_image(&self, loc: LocId) -> [i64; 2] {
        let pixels = self.symbols.elements(loc) as i64;
        match self.symbols.object(loc).1.kind {
            MemoryKind::Image(width) if width > 0 => {
                let width = i64::from(width);
                [width, pixels / width]
            }
            _ => [pixels, 1],
        }
    }

    /// The place of a pixel.
    fn pixel(&mut self, word: &str, of: &Type, access: Storage, args: &[Tree]) -> Option<Place> {
        let [image, coordinate, ..] = args else {
            return None;
        };
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
        let given = self.vector_of_tree(coordinate).map_or(1, |of| of.1);
        if wanted.is_some_and(|wanted| wanted != given) || given > 2 {
            let expected = match wanted {
                Some(2) => "expected two, as in `(int2)(x, y)`",
                _ => "expected one number",
            };
            let message = format!("{given} coordinates do not fit this image");
            self.error("wrong-operand", &coordinate.range, message, |d| {
                d.label(expected)
            });
            return None;
        }
        let index = self.index_of_pixel(loc, coordinate, given);
        let pointer = Value::new(Expr::Address(loc), there.pointer());
        let element = self.moved(pointer, index, false, &coordinate.range);
        self.pointed(element, &coordinate.range)
    }

    /// The number of a pixel, or a number behind all pixels.
    fn index_of_pixel(&mut self, loc: LocId, coordinate: &Tree, given: usize) -> Value {
        let [width, height] = self.sizes_of_image(loc);
        let all = self.components_of(coordinate, given);
        let mut all = all.into_iter().map(|value| value.expr);
        let x = all.next().unwrap_or(Expr::Const(0));
        let y = all.next().unwrap_or(Expr::Const(0));
        let bin = |op: BinOp, a: Expr, b: Expr| Expr::Bin(op, Ty::S32, a.into(), b.into());
        let rows = bin(BinOp::Mul, y, Expr::Const(width));
        if given == 1 {
            return Value::of(x, Ty::S32);
        }
        let inside = Expr::Cmp(
            CmpOp::Lt,
            Ty::U32,
            x.clone().into(),
            Expr::Const(width).into(),
        );
        let index = bin(BinOp::Add, rows, x);
        let behind = Expr::Const(width * height);
        let index = Expr::Select(inside.into(), index.into(), behind.into());
        Value::of(index, Ty::S32)
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
        let vector = Qualified::from(self.vector(&self.vector_word(of)?)?);
        let at = self.unnamed("pixel", &vector, &tree.range)?;
        let first = self.read(pixel).expr;
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
