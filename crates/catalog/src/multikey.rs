//! Facts about all documents in an index: the arrays on its paths, and the types of its values.

use crate::KeyTypes;

/// The last path component that is distinguished; an array at a later component is recorded here.
const COMPONENT_MAX: u32 = 63;

/// The components of an index's paths at which some document has an array, for each field, and the types of the values.
///
/// Arrays are recorded for each component, not only for each field: the component tells whether two fields lead through
/// the same array, and so whether their values in one key belong together.
#[derive(Clone, Debug, Default)]
pub struct Multikey {
    arrays: Vec<u64>,
    types: KeyTypes,
}

impl Multikey {
    /// `arrays` has 64 bits for each field, one for each component; the lowest bit is that of the first component.
    pub(crate) fn from_bits(arrays: Vec<u64>, types: KeyTypes) -> Self {
        Self { arrays, types }
    }

    /// No arrays, and values of these types.
    pub(crate) fn of_types(types: KeyTypes) -> Self {
        Self { arrays: Vec::new(), types }
    }

    /// Replaces the types.
    pub(crate) fn with_types(self, types: KeyTypes) -> Self {
        Self { types, ..self }
    }

    /// The types of values so far, in an index that records them.
    pub fn types(&self) -> KeyTypes {
        self.types
    }

    /// The arrays, as [`Self::from_bits`] takes them. Fields after the last one with an array may be missing.
    pub(crate) fn bits(&self) -> &[u64] {
        &self.arrays
    }

    pub(crate) fn note(&mut self, field: usize, component: usize) {
        if self.arrays.len() <= field {
            self.arrays.resize(field + 1, 0);
        }
        self.arrays[field] |= 1 << bit(component);
    }

    /// The arrays and types of both indexes.
    pub(crate) fn with(&self, other: &Self) -> Self {
        let fields = self.arrays.len().max(other.arrays.len());
        let arrays = (0..fields).map(|field| self.of_field(field) | other.of_field(field)).collect();
        Self { arrays, types: self.types.with(other.types) }
    }

    /// Whether no document has an array on any path.
    pub fn is_empty(&self) -> bool {
        self.arrays.iter().all(|bits| *bits == 0)
    }

    /// Whether `self` includes all arrays and types of `other`.
    pub fn covers(&self, other: &Self) -> bool {
        self.types.covers(other.types)
            && other.arrays.iter().enumerate().all(|(field, bits)| bits & !self.of_field(field) == 0)
    }

    /// Whether some document has an array on the path of this field.
    pub fn is_multikey_at(&self, field: usize) -> bool {
        self.of_field(field) != 0
    }

    /// Whether some document has an array at this component of the field's path.
    pub fn has_array_at(&self, field: usize, component: usize) -> bool {
        self.of_field(field) & 1 << bit(component) != 0
    }

    fn of_field(&self, field: usize) -> u64 {
        self.arrays.get(field).copied().unwrap_or(0)
    }
}

fn bit(component: usize) -> u32 {
    u32::try_from(component).unwrap_or(u32::MAX).min(COMPONENT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_known_by_field_and_component() {
        let mut multikey = Multikey::default();
        assert!(multikey.is_empty() && multikey.covers(&Multikey::default()));
        multikey.note(2, 1);
        let mut more = multikey.clone();
        more.note(0, 500);
        assert!(more.covers(&multikey) && !multikey.covers(&more));
        assert!(more.has_array_at(0, 63) && more.is_multikey_at(2) && !more.is_multikey_at(1));
        assert!(more.has_array_at(2, 1) && !more.has_array_at(2, 0));
        assert!(multikey.with(&more).covers(&more));
    }
}
