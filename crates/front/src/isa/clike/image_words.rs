//! The types of images, and the images that a kernel takes.

use super::ast::Storage;

/// Types of images, with their numbers of coordinates.
const TYPES: [(&str, usize); 6] = [
    ("image1d_t", 1),
    ("image1d_buffer_t", 1),
    ("image1d_array_t", 2),
    ("image2d_t", 2),
    ("image2d_array_t", 3),
    ("image3d_t", 3),
];

/// The number of coordinates of an image type.
pub(super) fn coordinates(word: &str) -> Option<usize> {
    TYPES.iter().find(|of| of.0 == word).map(|of| of.1)
}

/// Whether the last coordinate of an image type is the number of an image in an array.
pub(super) fn is_array(word: &str) -> bool {
    word.ends_with("_array_t")
}

/// An image that a kernel takes.
pub(super) struct ImageParameter {
    pub(super) name: String,
    /// `read_only`, `write_only` or `read_write`.
    pub(super) access: Storage,
    pub(super) coordinates: usize,
    pub(super) is_array: bool,
}
