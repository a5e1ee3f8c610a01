//! Which members of a replica set may serve reads.

use bunko_bson::DocumentBuf;
use std::fmt;
use std::str::FromStr;

/// The role of the server to connect to, and the `$readPreference` of reads.
///
/// Source: MongoDB manual, "Read Preference".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadPreference {
    /// The primary only.
    #[default]
    Primary,
    /// The primary, or a secondary if there is none.
    PrimaryPreferred,
    /// A secondary only.
    Secondary,
    /// A secondary, or the primary if there is none.
    SecondaryPreferred,
    /// A primary or a secondary, whichever answers first.
    Nearest,
}

impl ReadPreference {
    /// MongoDB's name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::PrimaryPreferred => "primaryPreferred",
            Self::Secondary => "secondary",
            Self::SecondaryPreferred => "secondaryPreferred",
            Self::Nearest => "nearest",
        }
    }

    /// The value of a command's `$readPreference` field.
    pub fn to_document(self) -> DocumentBuf {
        DocumentBuf::new().with("mode", self.name())
    }
}

impl fmt::Display for ReadPreference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ReadPreference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let modes = [Self::Primary, Self::PrimaryPreferred, Self::Secondary, Self::SecondaryPreferred, Self::Nearest];
        let mode = modes.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(text));
        mode.ok_or_else(|| format!("'{text}' is not a read preference"))
    }
}
