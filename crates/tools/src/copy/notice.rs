//! Lines for the user of a copy while it runs.

use serde_json::json;
use std::fmt;
use std::time::Duration;

/// A line for the user.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A sentence.
    Note(String),
    /// How much of the data is copied.
    Copying {
        /// Documents that the target has.
        documents: u64,
        /// Documents of the source, by its own estimate.
        expected: u64,
    },
    /// How far the target is behind the source.
    Lag {
        /// From the last applied event to the source's time, in seconds; cluster times have no fractions.
        seconds: u32,
        /// Events applied by this run.
        changes: u64,
    },
    /// The source's last change is applied.
    Drained {
        /// Time from the block of the source's writes, or from the start of the last catching up, until the last change
        /// was applied.
        pause: Duration,
    },
    /// Source and target were compared, and are equal.
    Equal {
        /// Collections, views and time series.
        namespaces: u64,
        /// Their documents.
        documents: u64,
    },
}

impl Notice {
    /// One JSON object.
    pub fn to_json(&self) -> String {
        let line = match self {
            Self::Note(sentence) => json!({ "event": "note", "message": sentence }),
            Self::Copying { documents, expected } => {
                json!({ "event": "copying", "documents": documents, "documentsExpected": expected })
            }
            Self::Lag { seconds, changes } => json!({ "event": "lag", "lagSeconds": seconds, "changes": changes }),
            Self::Drained { pause } => json!({ "event": "drained", "pauseMillis": pause.as_millis() as u64 }),
            Self::Equal { namespaces, documents } => {
                json!({ "event": "equal", "namespaces": namespaces, "documents": documents })
            }
        };
        line.to_string()
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note(sentence) => f.write_str(sentence),
            Self::Copying { documents, expected } => write!(f, "copying: {documents} of about {expected} documents"),
            Self::Lag { seconds, changes } => write!(f, "following: {seconds} s behind, {changes} changes applied"),
            Self::Drained { pause } => {
                write!(f, "the last change is applied after a pause of {} ms", pause.as_millis())
            }
            Self::Equal { namespaces, documents } => {
                write!(f, "source and target are equal: {namespaces} collections and views, {documents} documents")
            }
        }
    }
}
