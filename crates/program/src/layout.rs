//! Layouts: the cells of one element of an object, and their offsets.
//!
//! # Invariants
//! - A layout has at least one field. Fields are sorted by offset, do not overlap, and end within
//!   the element.
//! - Cells of an object are numbered element by element; the cells of an element follow the order
//!   of its fields.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::Ty;

/// A cell of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The suffix after the element's name: empty, `.data`, `.a[1]`, `[2]`.
    pub path: String,
    /// The offset from the element's first byte.
    pub offset: u32,
    /// The integer type of its value.
    pub ty: Ty,
    /// It holds 0 or 1.
    pub boolean: bool,
    /// It is an mbarrier object of PTX.
    pub mbarrier: bool,
}

/// The layout of one element of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The type's name, if the element is a structure or an array of structures.
    name: Option<Arc<str>>,
    fields: Arc<[Field]>,
    /// The distance in bytes from one element to the next.
    size: u32,
}

impl From<Ty> for Layout {
    fn from(ty: Ty) -> Layout {
        Layout::of(ty, false)
    }
}

impl Layout {
    /// One integer; `boolean`: it holds 0 or 1.
    pub fn of(ty: Ty, boolean: bool) -> Layout {
        let field = Field {
            path: String::new(),
            offset: 0,
            ty,
            boolean,
            mbarrier: false,
        };
        Layout {
            name: None,
            fields: [field].into(),
            size: ty.bytes(),
        }
    }

    /// Several cells.
    pub fn record(name: Option<&str>, fields: Vec<Field>, size: u32) -> Layout {
        Layout {
            name: name.map(Arc::from),
            fields: fields.into(),
            size,
        }
    }

    /// The type's name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The number of cells of an element.
    pub fn cells(&self) -> usize {
        self.fields.len()
    }

    /// The size in bytes of whole elements with this total number of cells.
    pub fn bytes(&self, cells: usize) -> u64 {
        (cells / self.cells()) as u64 * u64::from(self.size)
    }

    /// The field of a cell of an object.
    pub fn field(&self, cell: u32) -> &Field {
        &self.fields[cell as usize % self.cells()]
    }

    /// The offset of a cell from the object's first byte.
    pub fn offset(&self, cell: u32) -> i64 {
        i64::from(cell / self.cells() as u32) * i64::from(self.size)
            + i64::from(self.field(cell).offset)
    }

    /// Whether both have cells of the same sizes at the same offsets.
    pub fn is_alike(&self, other: &Layout) -> bool {
        fn same(pair: (&Field, &Field)) -> bool {
            (pair.0.offset, pair.0.ty.bits) == (pair.1.offset, pair.1.ty.bits)
        }
        self.size == other.size
            && self.cells() == other.cells()
            && self.fields.iter().zip(other.fields.iter()).all(same)
    }

    /// Whether some field is an mbarrier object.
    pub fn has_mbarriers(&self) -> bool {
        self.fields.iter().any(|field| field.mbarrier)
    }

    /// The same layout with mbarrier objects at some offsets from the object's first byte.
    pub fn with_mbarriers(&self, at: &BTreeSet<i64>) -> Layout {
        let found: BTreeSet<i64> = at.iter().map(|at| at % i64::from(self.size)).collect();
        let mut fields = self.fields.to_vec();
        fields
            .iter_mut()
            .for_each(|field| field.mbarrier |= found.contains(&i64::from(field.offset)));
        Layout {
            fields: fields.into(),
            ..self.clone()
        }
    }

    /// The suffix that names one cell of an object with this number of cells.
    pub fn suffix(&self, cell: u32, cells: usize) -> String {
        let path = &self.field(cell).path;
        match cells > self.cells() {
            true => format!("[{}]{path}", cell as usize / self.cells()),
            false => path.clone(),
        }
    }

    /// The cell that a suffix names in an object with this number of cells. The name of an object
    /// with one element may stand for that element, and the name of an element for its first cell.
    pub fn find(&self, suffix: &str, cells: usize) -> Option<u32> {
        let first = |suffix: &str| {
            let inside =
                |rest: &str| suffix.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']);
            self.fields
                .iter()
                .position(|f| f.path.strip_prefix(suffix).is_some_and(inside))
        };
        let element = suffix
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'));
        let of_element = element.and_then(|(n, rest)| {
            let n = n
                .parse::<usize>()
                .ok()
                .filter(|n| *n < cells / self.cells())?;
            Some(n * self.cells() + first(rest)?)
        });
        of_element.or_else(|| first(suffix)).map(|cell| cell as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_names_and_places() {
        let field = |path: &str, offset| Field {
            path: path.into(),
            offset,
            ty: Ty::S32,
            boolean: false,
            mbarrier: false,
        };
        let node = Layout::record(
            Some("Node"),
            vec![field(".data", 0), field(".at[0]", 8), field(".at[1]", 12)],
            16,
        );
        assert_eq!(
            (node.suffix(4, 6), node.offset(4), node.bytes(6)),
            ("[1].at[0]".into(), 24, 32)
        );
        assert_eq!(
            (
                node.find("[1].at[1]", 6),
                node.find("[1].at", 6),
                node.find("[1]", 6)
            ),
            (Some(5), Some(4), Some(3))
        );
        assert_eq!(
            (
                node.find("[2]", 6),
                node.find(".da", 6),
                node.find(".data", 3)
            ),
            (None, None, Some(0))
        );
        let word = Layout::from(Ty::S32);
        assert_eq!(
            (word.find("", 2), word.find("[1]", 2), word.find("[2]", 2)),
            (Some(0), Some(1), None)
        );
        assert_eq!(
            (word.suffix(0, 1), word.suffix(1, 2), word.offset(1)),
            (String::new(), "[1]".into(), 4)
        );
    }
}
