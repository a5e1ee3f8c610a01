//! The form in which results are printed.

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// As scripts would write the values.
    Text,
    /// Canonical Extended JSON.
    Canonical,
    /// Relaxed Extended JSON.
    Relaxed,
}

impl Output {
    /// The name that the prelude knows.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Canonical => "canonical",
            Self::Relaxed => "relaxed",
        }
    }
}
