//! What dump and restore have in common: they move everything at once, by `bunko_tools`, over connections of their own.

use super::{Dump, Restore};
use bunko_archive::compression::Compression;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::num::NonZeroUsize;

/// More make no sense: the tools have at most 64 connections.
const PARALLEL_MAX: usize = 64;

/// One or the other, with its settings.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Transfer<'a> {
    Dump(&'a Dump),
    Restore(&'a Restore),
}

/// How a dump is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompressionSetting {
    /// Not at all.
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
    /// As the tools take it.
    pub fn get(self) -> Compression {
        match self {
            Self::None => Compression::None,
            Self::Gzip => Compression::Gzip,
            Self::Zstd => Compression::Zstd { level: 0 },
            Self::Lz4 => Compression::Lz4,
        }
    }
}

/// What a dump consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// One file, the collections' documents in turn.
    #[default]
    Archive,
    /// Two files for each collection.
    Directory,
}

/// How many connections insert into one collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workers {
    /// As many as the throughput gains by.
    #[default]
    Automatic,
    /// So many.
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

/// Whether a server's own command for many documents is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BulkSetting {
    /// Where the server has one.
    #[default]
    Automatic,
    /// `insert` is.
    Never,
}

/// What the kernel has in memory of the dump when it is restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArchiveCache {
    /// What dumping left there.
    #[default]
    AsLeft,
    /// Nothing.
    Cold,
}

/// # Errors
/// A number that the tools have no connections for.
pub(super) fn check_parallel_collections(number: NonZeroUsize) -> Result<(), String> {
    if number.get() <= PARALLEL_MAX {
        Ok(())
    } else {
        Err(format!("parallel-collections: {number} is not in 1..{PARALLEL_MAX}"))
    }
}
