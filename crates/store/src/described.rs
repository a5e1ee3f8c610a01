//! The description of a data directory that is not opened: its format, its engine, and how far its checkpoint is.

use crate::checked_documents::{Parts, number};
use crate::manifest::{FORMAT_VERSION, Manifest, OLDEST_FORMAT};
use crate::{Lsn, Result, files};
use std::ops::RangeInclusive;
use std::path::Path;

/// The description of a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedDirectory {
    /// Version of its format.
    pub format: u32,
    /// The engine that it was made with; `None` if this program cannot read the format.
    pub engine: Option<String>,
    /// The last checkpoint has all records below this position.
    pub watermark: Lsn,
    /// Time when the last record below the watermark, or a later one, was written; milliseconds since 1970.
    pub time_ms: u64,
}

impl DescribedDirectory {
    /// The formats that this program reads. It writes the last one.
    pub const READ: RangeInclusive<u32> = OLDEST_FORMAT..=FORMAT_VERSION;

    /// Whether this program reads the format.
    pub fn is_read(&self) -> bool {
        Self::READ.contains(&self.format)
    }

    /// Whether this program writes the format.
    pub fn is_current(&self) -> bool {
        self.format == FORMAT_VERSION
    }
}

/// Describes the data directory; `None` if it has no manifest. Nothing in it is changed.
///
/// # Errors
/// Errors of the files; [`crate::StorageError::Corrupt`] for a damaged manifest.
pub fn describe(directory: &Path) -> Result<Option<DescribedDirectory>> {
    let path = Manifest::path(directory);
    let Some(bytes) = files::read(&path)? else { return Ok(None) };
    let mut parts = Parts::new(&path, &bytes);
    let header = parts.next()?;
    let format = number(header, "formatVersion").and_then(|format| u32::try_from(format).ok());
    let format = format.ok_or_else(|| parts.corrupt("has no format version"))?;
    let mut described = DescribedDirectory {
        format,
        engine: None,
        watermark: Lsn(number(header, "watermark").unwrap_or_default()),
        time_ms: number(header, "timeMs").unwrap_or_default(),
    };
    if described.is_read() {
        let manifest = Manifest::read(directory)?;
        described.engine = manifest.and_then(|manifest| manifest.engines.into_iter().next()).map(|(name, _)| name);
    }
    Ok(Some(described))
}
