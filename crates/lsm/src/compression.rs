//! Compression of blocks of documents.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use std::fmt;

/// A block compressor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    None,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard at a level from 1 to 22.
    Zstd {
        /// Higher is smaller and slower.
        level: i32,
    },
}

/// Default level of Zstandard, as in `MongoDB`.
const ZSTD_LEVEL: i32 = 6;

impl Compression {
    /// Parses a compressor's name, with a level if the compressor takes one.
    ///
    /// # Errors
    /// A sentence that names the refused value.
    pub fn parse(name: &str, level: Option<i32>) -> Result<Self, String> {
        let without_level = |compression| match level {
            None => Ok(compression),
            Some(level) => Err(format!("blockCompressor {name} takes no compression level, but {level} is given")),
        };
        match name {
            "none" => without_level(Self::None),
            "snappy" => without_level(Self::Snappy),
            "lz4" => without_level(Self::Lz4),
            "zstd" => match level.unwrap_or(ZSTD_LEVEL) {
                level @ 1..=22 => Ok(Self::Zstd { level }),
                level => Err(format!("a compression level of zstd is from 1 to 22, not {level}")),
            },
            _ => Err(format!("unknown blockCompressor '{name}': it is none, snappy, lz4 or zstd")),
        }
    }

    /// The name, as [`Self::parse`] takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd { .. } => "zstd",
        }
    }

    /// The level, if the compressor has one.
    pub fn level(self) -> Option<i32> {
        if let Self::Zstd { level } = self { Some(level) } else { None }
    }
}

impl Compression {
    /// Reads a collection's settings `blockCompressor` and `compressionLevel`. `None` if the collection did not choose
    /// a compressor.
    ///
    /// # Errors
    /// A sentence that names the setting and its value.
    pub fn from_settings(settings: DocumentRef<'_>) -> Result<Option<Self>, String> {
        let level = match settings.get("compressionLevel") {
            None => None,
            Some(value) => {
                let level = number::as_i64_exact(value).and_then(|level| i32::try_from(level).ok());
                Some(level.ok_or_else(|| "compressionLevel must be a whole number from 1 to 22".to_owned())?)
            }
        };
        match settings.get("blockCompressor") {
            None if level.is_some() => Err("compressionLevel is given without blockCompressor".into()),
            None => Ok(None),
            Some(ValueRef::String(name)) => Self::parse(name, level).map(Some),
            Some(other) => Err(format!("blockCompressor must be a string, not of type {}", other.kind().alias())),
        }
    }

    /// The settings, as [`Self::from_settings`] reads them.
    pub fn settings(self) -> DocumentBuf {
        let settings = DocumentBuf::new().with("blockCompressor", self.name());
        match self.level() {
            Some(level) => settings.with("compressionLevel", level),
            None => settings,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.level().map_or(Ok(()), |level| write!(f, ", level {level}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_levels_are_read_or_refused() {
        for (name, level, expected) in [
            ("none", None, Ok(Compression::None)),
            ("lz4", None, Ok(Compression::Lz4)),
            ("zstd", None, Ok(Compression::Zstd { level: 6 })),
            ("zstd", Some(22), Ok(Compression::Zstd { level: 22 })),
            ("zstd", Some(0), Err("a compression level of zstd is from 1 to 22, not 0")),
            ("snappy", Some(3), Err("blockCompressor snappy takes no compression level, but 3 is given")),
            ("zlib", None, Err("unknown blockCompressor 'zlib': it is none, snappy, lz4 or zstd")),
        ] {
            assert_eq!(Compression::parse(name, level), expected.map_err(str::to_owned));
        }
    }
}
