//! The versions of text indexes that differ in their rules.

/// The rules of an index for letters and punctuation.
/// Source: MongoDB manual, "Text Index Versions".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextVersion {
    /// Versions 1 and 2: only ASCII letters have cases, letters with marks differ from those without, and only ASCII
    /// characters are punctuation.
    Ascii,
    /// Version 3: letters, marks and punctuation are those of Unicode.
    Unicode,
}

impl TextVersion {
    /// Finds a version by its number in specifications.
    pub fn numbered(number: i64) -> Option<Self> {
        match number {
            1 | 2 => Some(Self::Ascii),
            3 => Some(Self::Unicode),
            _ => None,
        }
    }
}
