//! The format of the log, by its name in the configuration.

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON document a line, with mongod's fields.
    Json,
    /// Text for reading.
    Text,
}

impl LogFormat {
    /// The format with that name in `systemLog.format`.
    pub fn named(name: &str) -> Self {
        if name == "text" { Self::Text } else { Self::Json }
    }
}
