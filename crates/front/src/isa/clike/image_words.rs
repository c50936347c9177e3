//! The types of images, and the images that a kernel takes.

use super::ast::Storage;

/// Types of images, with their numbers of coordinates.
const TYPES: [(&str, usize); 3] = [("image1d_t", 1), ("image1d_buffer_t", 1), ("image2d_t", 2)];

/// The number of coordinates of an image type.
pub(super) fn coordinates(word: &str) -> Option<usize> {
    TYPES.iter().find(|of| of.0 == word).map(|of| of.1)
}

/// An image that a kernel takes.
pub(super) struct ImageParameter {
    pub(super) name: String,
    /// `read_only`, `write_only` or `read_write`.
    pub(super) access: Storage,
    pub(super) coordinates: usize,
}
