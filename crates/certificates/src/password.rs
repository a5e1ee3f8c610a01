//! A secret that nothing prints.

use std::fmt;

/// What an encrypted key is opened with. Wherever it is printed, [`Self::SHOWN`] stands for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// What stands for each.
    pub const SHOWN: &str = "<password>";

    /// Keeps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::SHOWN)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
