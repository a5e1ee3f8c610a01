//! Sets of field names, looked up together in one walk over a document.

use crate::evaluation::Evaluation;
use bunko_bson::DocumentRef;

/// Distinct names, each with a position.
#[derive(Debug)]
pub(super) struct Names(Box<[Box<str>]>);

/// Whether a document has each of the names.
pub(super) struct FoundNames(Box<[bool]>);

impl Names {
    pub fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut names: Vec<Box<str>> = names.map(Box::from).collect();
        names.sort_unstable();
        names.dedup();
        Self(names.into())
    }

    /// The position of a name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.0.binary_search_by(|known| (**known).cmp(name)).ok()
    }

    /// Looks up all names in a document.
    pub fn find(&self, document: DocumentRef<'_>, evaluation: &mut Evaluation<'_>) -> FoundNames {
        let mut found = vec![false; self.0.len()].into_boxed_slice();
        let mut missing = found.len();
        for element in document {
            if missing == 0 || !evaluation.goes_on(1) {
                break;
            }
            if let Some(place) = self.place(element.name)
                && !std::mem::replace(&mut found[place], true)
            {
                missing -= 1;
            }
        }
        FoundNames(found)
    }
}

impl FoundNames {
    /// Whether the document has the name at that position.
    pub fn has(&self, place: usize) -> bool {
        self.0[place]
    }

    /// Whether the document has all names.
    pub fn all(&self) -> bool {
        self.0.iter().all(|&found| found)
    }
}
