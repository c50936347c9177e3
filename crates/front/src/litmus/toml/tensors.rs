//! The shapes of tensors, which tensor maps have: `tensor = "b16[64, 128] box[64, 8] swizzle128"`.
//!
//! # Sources
//! - CUDA Driver API, `cuTensorMapEncodeTiled`: sizes, strides in bytes and the box, from the
//!   dimension with adjacent elements; their limits.

use ::toml::de::DeTable;

use super::TestReader;
use super::template::TemplateChoice;
use crate::isa::TensorShape;
use crate::isa::ptx::type_named;

/// The form, for messages.
const FORM: &str =
    "expected such as `b16[64, 128] box[64, 8]`, with `strides[128]` or `swizzle128`";

impl TestReader<'_, '_> {
    /// Reads `tensor`.
    pub(super) fn tensor(
        &mut self,
        table: &DeTable<'_>,
        choice: &TemplateChoice,
    ) -> Option<TensorShape> {
        let text = self.string(table, "tensor", choice)?;
        let found = tensor_shape(text.as_str());
        if let Err(why) = &found {
            let span = text.span(0..text.as_str().len());
            self.sink.error("bad-tensor", span, *why, |d| d.label(FORM));
        }
        found.ok()
    }
}

/// Reads the text of a shape.
pub(in crate::litmus) fn tensor_shape(text: &str) -> Result<TensorShape, &'static str> {
    let mut words = parts(text)
        .ok_or("this shape of a tensor is not supported")?
        .into_iter();
    let (ty, sizes) = words
        .next()
        .ok_or("this shape of a tensor is not supported")?;
    let element = type_named(ty)
        .ok_or("this type of elements is not supported")?
        .bytes();
    let mut shape = TensorShape {
        element,
        strides: packed(element, &sizes),
        boxes: sizes.clone(),
        sizes,
        swizzle: 0,
    };
    for (word, numbers) in words {
        match (word, numbers.is_empty()) {
            ("box", false) => shape.boxes = numbers,
            ("strides", false) => shape.strides = numbers,
            ("swizzle32" | "swizzle64" | "swizzle128", true) => {
                shape.swizzle = word["swizzle".len()..].parse().unwrap_or(0);
            }
            _ => return Err("this part of a shape is unknown"),
        }
    }
    check(&shape)?;
    Ok(shape)
}

/// Splits a text into words, each with the numbers in brackets behind it.
fn parts(text: &str) -> Option<Vec<(&str, Vec<i64>)>> {
    let (mut rest, mut all) = (text.trim(), Vec::new());
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind.trim_start();
        let mut numbers = Vec::new();
        if let Some(list) = rest.strip_prefix('[') {
            let (list, behind) = list.split_once(']')?;
            numbers = list
                .split(',')
                .map(|n| n.trim().parse().ok())
                .collect::<Option<_>>()?;
            rest = behind.trim_start();
        }
        if word.is_empty() {
            return None;
        }
        all.push((word, numbers));
    }
    Some(all)
}

/// The strides of a tensor without holes.
fn packed(element: u32, sizes: &[i64]) -> Vec<i64> {
    let mut stride = i64::from(element);
    let inner = sizes.iter().take(sizes.len().saturating_sub(1));
    inner
        .map(|size| {
            stride = stride.saturating_mul(*size);
            stride
        })
        .collect()
}

fn check(shape: &TensorShape) -> Result<(), &'static str> {
    let rank = shape.sizes.len();
    if !(1..=5).contains(&rank) {
        return Err("a tensor has 1 to 5 dimensions");
    }
    let row = shape.boxes[0].saturating_mul(i64::from(shape.element));
    match () {
        () if shape.boxes.len() != rank || shape.strides.len() != rank - 1 => {
            Err("a box has a number for each dimension, and each but the first has a stride")
        }
        () if shape.sizes.iter().chain(&shape.strides).any(|n| *n < 1) => {
            Err("sizes and strides are at least 1")
        }
        () if shape.boxes.iter().any(|n| !(1..=256).contains(n)) => {
            Err("a box has 1 to 256 elements in each dimension")
        }
        () if row % 16 != 0 || shape.strides.iter().any(|n| n % 16 != 0) => {
            Err("a row of the box, and each stride, is a multiple of 16 bytes")
        }
        () if shape.sizes[0] * i64::from(shape.element) % 16 != 0 => {
            Err("a tensor whose rows are not multiples of 16 bytes is not supported")
        }
        () if shape.swizzle > 0 && row > shape.swizzle => {
            Err("a row of the box fits into the bytes of the swizzle")
        }
        () if shape.swizzle > row => Err("a swizzle of more bytes than a row is not supported"),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_sizes_strides_and_a_box() {
        let found = tensor_shape("b16[64, 128] box[64, 8] swizzle128").expect("a shape");
        assert_eq!(
            (found.element, found.bytes(), found.swizzle),
            (2, 1024, 128)
        );
        assert_eq!(found.strides, [128]);
        let found = tensor_shape("u32 [8,4,2] strides[64, 512] box [4, 2, 1]").expect("a shape");
        assert_eq!((found.bytes(), found.strides), (32, vec![64, 512]));
    }

    #[test]
    fn wrong_shapes_are_refused() {
        for text in [
            "",
            "b16",
            "f99[64]",
            "b16[64, 128] box[64]",
            "b16[64] box[4]",
            "b16[64] swizzle128 box[8]",
            "b16[64, 128] strides[24]",
            "b16[64] bux[64]",
            "b16[64",
            "b16[0]",
            "b16[512] box[512]",
        ] {
            assert!(tensor_shape(text).is_err(), "{text}");
        }
    }
}
