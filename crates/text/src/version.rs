//! The versions of text indexes that differ in their rules.

/// How an index takes letters and punctuation.
/// Source: MongoDB manual, "Text Index Versions".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextVersion {
    /// Versions 1 and 2: only Latin letters without marks have cases, marks count, and only ASCII has punctuation.
    Ascii,
    /// Version 3: letters, marks and punctuation are those of Unicode.
    Unicode,
}

impl TextVersion {
    /// By the number in a specification.
    pub fn numbered(number: i64) -> Option<Self> {
        match number {
            1 | 2 => Some(Self::Ascii),
            3 => Some(Self::Unicode),
            _ => None,
        }
    }
}
