//! The fields that documents can have: one file and one line in [`SHAPES`] each.

mod analytics;
mod counter;
mod docsize;
mod events;
mod multiplication_table;
mod nested;
mod plain;
mod ycsb;

use crate::id::IdKind;
use crate::layout::{Field, Layout};
use std::fmt;

/// All shapes.
pub static SHAPES: &[&Shape] = &[
    &plain::SHAPE,
    &counter::SHAPE,
    &docsize::SHAPE,
    &multiplication_table::SHAPE,
    &ycsb::SHAPE,
    &nested::SHAPE,
    &analytics::SHAPE,
    &events::SHAPE,
];

/// The fields of a document.
pub struct Shape {
    /// Name in scenario files.
    pub name: &'static str,
    /// Description in a sentence.
    pub about: &'static str,
    /// Encoded size if none is requested.
    pub default_document_bytes: usize,
    /// The kind of `_id` if none is requested.
    pub default_id: IdKind,
    /// All fields but `_id`, which comes first.
    pub(crate) fields: &'static [Field],
}

impl Shape {
    /// The shape of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SHAPES.iter().copied().find(|shape| shape.name == name)
    }

    /// Whether documents have a pad, so that their size can be chosen.
    pub fn is_padded(&self) -> bool {
        Layout::least(self.fields, self.default_id).1 > 0
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shape({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::tests::options;
    use crate::{Dataset, DatasetOptions};
    use bunko_bson::{DocumentBuf, DocumentRef};
    use std::collections::HashSet;

    fn document(shape: &Shape) -> DocumentBuf {
        let mut encoded = Vec::new();
        Dataset::new(&options(shape.name)).expect("a dataset").write(0, &mut encoded);
        DocumentBuf::parse(encoded).expect("well formed")
    }

    #[test]
    fn every_shape_explains_itself() {
        for shape in SHAPES {
            let document = document(shape);
            let names: Vec<_> = document.as_ref().iter().map(|element| element.name).collect();
            assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{} doubles a name", shape.name);
            assert_eq!(document.as_ref().len_bytes(), shape.default_document_bytes, "{}", shape.name);
            assert!(shape.about.ends_with('.'), "{}", shape.name);
            assert!(Shape::named(shape.name).is_some_and(|found| std::ptr::eq(found, *shape)));
        }
    }

    #[test]
    fn every_shape_has_a_script() {
        for shape in SHAPES {
            let path = format!("tests/scripts/shapes/{}.txt", shape.name);
            assert!(std::fs::exists(&path).expect("readable"), "{path} is missing");
        }
    }

    #[test]
    fn documents_differ_in_all_but_constants() {
        for shape in SHAPES {
            let dataset =
                Dataset::new(&DatasetOptions { documents: 100_000, ..options(shape.name) }).expect("a dataset");
            let (mut first, mut second) = (Vec::new(), Vec::new());
            dataset.write(7, &mut first);
            dataset.write(12_345, &mut second);
            let (first, second) = (DocumentRef::trusted(&first), DocumentRef::trusted(&second));
            for (a, b) in
                first.iter().zip(second.iter()).filter(|(a, _)| !["n", "kuku", "active", "kind"].contains(&a.name))
            {
                assert_ne!(format!("{:?}", a.value), format!("{:?}", b.value), "{} of {}", a.name, shape.name);
            }
        }
    }
}
