//! Settings that dump and restore share. Both move everything at once, by `bunko_tools`, over connections of their own.

use super::{Dump, Restore};
use bunko_archive::compression::Compression;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::num::NonZeroUsize;

/// Maximum number of collections at a time, because the tools have at most 64 connections.
const PARALLEL_MAX: usize = 64;

/// A dump or a restore, with its settings.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Transfer<'a> {
    Dump(&'a Dump),
    Restore(&'a Restore),
}

/// Compression of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompressionSetting {
    /// No compression.
    #[default]
    None,
    /// Gzip.
    Gzip,
    /// Zstandard, at its default level.
    Zstd,
    /// LZ4.
    Lz4,
}

impl CompressionSetting {
    /// The tools' value.
    pub fn get(self) -> Compression {
        match self {
            Self::None => Compression::None,
            Self::Gzip => Compression::Gzip,
            Self::Zstd => Compression::Zstd { level: 0 },
            Self::Lz4 => Compression::Lz4,
        }
    }
}

/// Files of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// One file, with the collections interleaved.
    #[default]
    Archive,
    /// Two files for each collection.
    Directory,
}

/// Number of connections that insert into one collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workers {
    /// The number grows as long as the throughput does.
    #[default]
    Automatic,
    /// A fixed number.
    Number(NonZeroUsize),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number of connections from 1 on, or 'automatic'")]
enum NumberOrText {
    Number(NonZeroUsize),
    Text(String),
}

impl<'de> Deserialize<'de> for Workers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(number) => Ok(Self::Number(number)),
            NumberOrText::Text(text) if text == "automatic" => Ok(Self::Automatic),
            NumberOrText::Text(text) => {
                Err(de::Error::custom(format!("'{text}' is neither a number of connections nor 'automatic'")))
            }
        }
    }
}

impl Serialize for Workers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Automatic => serializer.serialize_str("automatic"),
            Self::Number(number) => number.serialize(serializer),
        }
    }
}

/// Whether the server's own command for many documents is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BulkSetting {
    /// If the server has one.
    #[default]
    Automatic,
    /// Only `insert` is used.
    Never,
}

/// State of the kernel's cache of the dump when it is restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArchiveCache {
    /// Nothing is done to the cache after the dump.
    #[default]
    AsLeft,
    /// The dump is removed from the cache before the restore.
    Cold,
}

/// # Errors
/// A number larger than [`PARALLEL_MAX`].
pub(super) fn check_parallel_collections(number: NonZeroUsize) -> Result<(), String> {
    if number.get() <= PARALLEL_MAX {
        Ok(())
    } else {
        Err(format!("parallel-collections: {number} is not in 1..{PARALLEL_MAX}"))
    }
}
