//! The extents, and the segments that each took over.

use super::Extent;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_store::{Result, StorageError, files};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;
use std::sync::Arc;

/// All extents. Replaced as a whole, so that readers take no lock.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    by_segment: FxHashMap<u64, Arc<Extent>>,
}

impl Registry {
    /// The extent that took over a segment; `None` if no extent did.
    pub fn of_segment(&self, segment: u64) -> Option<&Arc<Extent>> {
        self.by_segment.get(&segment)
    }

    /// The segments that were taken over.
    pub fn segments(&self) -> FxHashSet<u64> {
        self.by_segment.keys().copied().collect()
    }

    /// All extents, by number.
    pub fn extents(&self) -> Vec<&Arc<Extent>> {
        let mut extents: Vec<_> = self.by_segment.values().collect();
        extents.sort_unstable_by_key(|extent| extent.number);
        extents.dedup_by_key(|extent| extent.number);
        extents
    }

    /// The registry after `extent`, if there is one, took over `segments`.
    pub fn with(&self, segments: &[u64], extent: Option<&Arc<Extent>>) -> Self {
        let mut by_segment = self.by_segment.clone();
        for segment in segments {
            match extent {
                Some(extent) => by_segment.insert(*segment, Arc::clone(extent)),
                None => by_segment.remove(segment),
            };
        }
        Self { by_segment }
    }

    /// Encodes the registry for the manifest.
    pub fn encode(&self) -> ArrayBuf {
        let mut encoded = ArrayBuf::new();
        for extent in self.extents() {
            let segments: ArrayBuf = extent.segments.iter().map(|segment| *segment as i64).collect();
            let number = extent.number as i64;
            encoded.push(&DocumentBuf::new().with("number", number).with("segments", &segments));
        }
        encoded
    }

    /// Opens the extents that the manifest names.
    pub fn open(directory: &Path, encoded: Option<ArrayRef<'_>>) -> Result<Self> {
        let malformed = || StorageError::Corrupt {
            file: directory.with_file_name("manifest.bson"),
            offset_bytes: 0,
            found: "malformed 'extents'".into(),
        };
        let mut registry = Self::default();
        for value in encoded.into_iter().flat_map(ArrayRef::iter) {
            let (number, segments) = value.as_document().and_then(read_entry).ok_or_else(malformed)?;
            let extent = Arc::new(Extent::open(directory, number, segments.clone())?);
            registry.by_segment.extend(segments.iter().map(|segment| (*segment, Arc::clone(&extent))));
        }
        Ok(registry)
    }

    /// Removes all other files of the directory: an earlier run began them, and no durable manifest names them.
    pub fn remove_others(&self, directory: &Path) -> Result<()> {
        let named: FxHashSet<_> = self.extents().into_iter().map(|extent| extent.path.clone()).collect();
        files::entries(directory)?.iter().filter(|path| !named.contains(*path)).try_for_each(|path| files::remove(path))
    }
}

fn read_entry(document: DocumentRef<'_>) -> Option<(u64, Vec<u64>)> {
    let number = |value| if let ValueRef::Int64(number) = value { u64::try_from(number).ok() } else { None };
    let segments = document.get("segments")?.as_array()?.iter().map(number).collect::<Option<_>>()?;
    Some((number(document.get("number")?)?, segments))
}
