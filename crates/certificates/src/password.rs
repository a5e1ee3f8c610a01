//! A secret that nothing prints.

use std::fmt;
use zeroize::Zeroizing;

/// Password of an encrypted key. `Debug` and `Display` print [`Self::SHOWN`] in its place; its
/// memory is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<String>);

impl Password {
    /// Text that is printed in place of a password.
    pub const SHOWN: &str = "<password>";

    /// Keeps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(Zeroizing::new(secret.into()))
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
