//! The values found at the paths of one document.

use bunko_bson::EncodedValue;

/// Maximum number of paths found in one walk; further paths are looked up one by one.
pub(crate) const SLOTS_MAX: usize = 8;

/// The slot of a path among the paths found together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathSlot(pub(crate) u8);

/// The values at the paths of one document.
#[derive(Clone, Copy, Debug)]
pub struct PathValues<'a>(pub(crate) [PathValue<'a>; SLOTS_MAX]);

/// The result of looking up a path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PathValue<'a> {
    /// The document has no value there.
    Missing,
    Found(EncodedValue<'a>),
    /// The path was not looked up, or leads through an array. The caller must follow the path itself.
    Unknown,
}

impl<'a> PathValues<'a> {
    #[inline]
    pub(crate) fn at(&self, slot: PathSlot) -> PathValue<'a> {
        self.0[usize::from(slot.0)]
    }
}
