//! Extents that are written ahead of the log: documents of a bulk load, which pass through no segment.
//!
//! Such an extent takes the place of a segment that never was: its documents' locations are as if they had come from a
//! segment with a number beyond all that the log will ever reach.

use crate::compression::Compression;
use crate::extents::{Extent, ExtentWriter};
use bunko_store::{KeyspaceId, Location, Lsn, RecordId, Result, SEGMENT_BYTES, StorageError};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;

/// The first of the segments that never were; the log would need four exabytes to come to it.
const FIRST_SEGMENT: u64 = 1 << 36;

/// The segment whose place the extent with that number takes.
pub(crate) fn segment_of_extent(number: u64) -> u64 {
    FIRST_SEGMENT + number
}

/// The extent that took the place of a segment; `None` for a segment of the log.
pub(crate) fn extent_of_segment(segment: u64) -> Option<u64> {
    segment.checked_sub(FIRST_SEGMENT)
}

/// Writes documents into an extent of their own, and says where each is.
pub(crate) fn write(
    directory: &Path,
    number: u64,
    keyspace: KeyspaceId,
    compression: Compression,
    documents: &mut dyn Iterator<Item = (RecordId, &[u8])>,
) -> Result<(Option<Extent>, Vec<Location>)> {
    let segment = segment_of_extent(number);
    let mut writer = ExtentWriter::create(directory, number)?;
    let mut locations = Vec::with_capacity(documents.size_hint().0);
    let start = segment * SEGMENT_BYTES;
    let mut position = start;
    for (record, document) in documents {
        let length = document.len() as u32;
        if position + u64::from(length) > start + SEGMENT_BYTES {
            return Err(StorageError::RecordTooLarge { length_bytes: position - start + u64::from(length) });
        }
        writer.push(keyspace, compression, record, position, document)?;
        locations.push(Location { position, length, checksum: bunko_checksum::crc32c(document) });
        position += u64::from(length);
    }
    Ok((writer.finish(vec![segment])?, locations))
}

/// Extents on their way into the registry, and those in it whose documents are still being placed.
#[derive(Default)]
pub(crate) struct Staging {
    extents: Mutex<FxHashMap<u64, Stage>>,
}

enum Stage {
    /// Written, and not named by the log.
    Written(Arc<Extent>),
    /// Named by the log; its documents are being placed.
    Placing,
    /// All that will be placed is below.
    Placed(Lsn),
}

impl Staging {
    /// Whether an extent must be left alone: what a view from `oldest_view` on does not find in it may yet be placed.
    pub fn protects(&self, number: u64, oldest_view: Lsn) -> bool {
        let mut extents = self.extents.lock();
        let is_over = matches!(extents.get(&number), Some(Stage::Placed(end)) if *end <= oldest_view);
        if is_over {
            extents.remove(&number);
        }
        extents.contains_key(&number)
    }

    /// The log names an extent: it comes out, from here or, at a start, from its file. `None` where there is neither,
    /// because it was rewritten later.
    pub fn adopt(&self, directory: &Path, number: u64) -> Result<Option<Arc<Extent>>> {
        let mut extents = self.extents.lock();
        if let Some(stage) = extents.get_mut(&number) {
            return Ok(match std::mem::replace(stage, Stage::Placing) {
                Stage::Written(extent) => Some(extent),
                Stage::Placing | Stage::Placed(_) => None,
            });
        }
        if !Extent::path(directory, number).exists() {
            return Ok(None);
        }
        Extent::open(directory, number, vec![segment_of_extent(number)]).map(|extent| Some(Arc::new(extent)))
    }
}

/// Keeps an extent from being rewritten; dropped when the last document is placed.
pub(crate) struct Hold {
    number: u64,
    staging: Arc<Staging>,
    now: Box<dyn Fn() -> Lsn + Send>,
}

impl Hold {
    /// Enters an extent that was just written.
    pub fn new(extent: Extent, staging: &Arc<Staging>, now: Box<dyn Fn() -> Lsn + Send>) -> Self {
        let number = extent.number;
        staging.extents.lock().insert(number, Stage::Written(Arc::new(extent)));
        Self { number, staging: Arc::clone(staging), now }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut extents = self.staging.extents.lock();
        match extents.remove(&self.number) {
            // Nobody will ever name it. Where it cannot be removed, the next start does.
            Some(Stage::Written(extent)) => drop(std::fs::remove_file(&extent.path)),
            Some(Stage::Placing) => drop(extents.insert(self.number, Stage::Placed((self.now)()))),
            Some(Stage::Placed(_)) | None => {}
        }
    }
}
