//! The amount of work of a stage.

/// The amount of work that a stage may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// A known number of lookups.
    Lookups(u64),
    /// Each document is found with little work.
    Steady,
    /// Many entries may be examined before a document is found.
    Searching,
}

impl Effort {
    /// The effort of several stages together.
    pub fn sum(efforts: impl Iterator<Item = Self>) -> Self {
        efforts.fold(Self::Lookups(0), |all, one| match (all, one) {
            (Self::Lookups(all), Self::Lookups(one)) => Self::Lookups(all + one),
            (Self::Searching, _) | (_, Self::Searching) => Self::Searching,
            _ => Self::Steady,
        })
    }
}
