//! Extents that are written ahead of the log, for documents of a bulk load, which are in no segment.
//!
//! Such an extent takes the place of a virtual segment: its documents have locations in a segment whose number is
//! beyond all segments that the log will ever reach.

use crate::compression::Compression;
use crate::extents::{Extent, ExtentWriter};
use bunko_store::{KeyspaceId, Location, Lsn, RecordId, Result, SEGMENT_BYTES, StorageError, files};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;

/// The first virtual segment; the log would need four exabytes to reach it.
const FIRST_SEGMENT: u64 = 1 << 36;

/// The virtual segment of the extent with that number.
pub(crate) fn segment_of_extent(number: u64) -> u64 {
    FIRST_SEGMENT + number
}

/// The extent of a virtual segment; `None` for a segment of the log.
pub(crate) fn extent_of_segment(segment: u64) -> Option<u64> {
    segment.checked_sub(FIRST_SEGMENT)
}

/// Writes documents into an extent of their own, and returns their locations.
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

/// Extents that are not in the registry yet, and extents in it whose documents are still being placed.
#[derive(Default)]
pub(crate) struct Staging {
    extents: Mutex<FxHashMap<u64, Stage>>,
}

enum Stage {
    /// Written, and not named by the log yet.
    Written(Arc<Extent>),
    /// Named by the log; its documents are being placed.
    Placing,
    /// All documents that will be placed have been placed below this LSN.
    Placed(Lsn),
}

impl Staging {
    /// Whether an extent must be left alone: documents in it may still be placed that a view from `oldest_view` on does
    /// not see.
    pub fn protects(&self, number: u64, oldest_view: Lsn) -> bool {
        let mut extents = self.extents.lock();
        let is_over = matches!(extents.get(&number), Some(Stage::Placed(end)) if *end <= oldest_view);
        if is_over {
            extents.remove(&number);
        }
        extents.contains_key(&number)
    }

    /// Takes out an extent that the log now names; at a start, opens it from its file. `None` if neither is possible,
    /// because the extent was rewritten later.
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

/// Keeps an extent from being rewritten; dropped when the last document has been placed.
pub(crate) struct Hold {
    number: u64,
    staging: Arc<Staging>,
    now: Box<dyn Fn() -> Lsn + Send>,
}

impl Hold {
    /// Registers an extent that was just written.
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
            // The extent was never adopted, so the log will never name it. If its file cannot be removed, the next
            // start removes it.
            Some(Stage::Written(extent)) => drop(files::remove(&extent.path)),
            Some(Stage::Placing) => drop(extents.insert(self.number, Stage::Placed((self.now)()))),
            Some(Stage::Placed(_)) | None => {}
        }
    }
}
