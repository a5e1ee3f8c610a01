//! Which fields of its input something reads.

use std::collections::BTreeSet;

/// The dotted paths that are read, or all of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dependencies {
    /// Anything may be read, as with `$$ROOT`.
    All,
    /// Only these dotted paths.
    Fields(BTreeSet<String>),
}

impl Default for Dependencies {
    fn default() -> Self {
        Self::Fields(BTreeSet::new())
    }
}

impl Dependencies {
    /// Adds a dotted path.
    pub fn add(&mut self, path: impl Into<String>) {
        if let Self::Fields(fields) = self {
            fields.insert(path.into());
        }
    }

    /// Gives up: all is read.
    pub fn add_all(&mut self) {
        *self = Self::All;
    }
}
