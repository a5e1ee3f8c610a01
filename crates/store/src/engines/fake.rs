//! An engine for tests that records its calls and keeps no data.

use super::{EngineKind, Survival};
use crate::engine::{Direction, Effort, KeyCursor, KeyRange, Reclaimed, RecordCursor, RecordRange, Space, View};
use crate::{Effects, Engine, KeyspaceId, KeyspaceStatistics, Location, Lsn, RecordId, Result, StorageError};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_versions::Views;
use parking_lot::Mutex;
use std::sync::Arc;

/// Calls to an engine.
#[derive(Default)]
pub(crate) struct Told {
    /// Keyspaces of the effects, one list for each record.
    pub applied: Mutex<Vec<Vec<u32>>>,
    /// The oldest view at each reclaim step.
    pub reclaimed: Mutex<Vec<Lsn>>,
    /// Number of reclaim steps that will find work.
    pub steps_left: Mutex<usize>,
    /// How often the engine was opened.
    pub opened: Mutex<usize>,
    /// Whether the next checkpoint panics.
    pub panics: Mutex<bool>,
    /// Maximum growth in bytes that is admitted; `None` for no limit.
    pub room_bytes: Mutex<Option<usize>>,
    /// Bytes that the engine says it has not flushed.
    pub unflushed_bytes: Mutex<u64>,
    /// Whether the engine says that its map is full.
    pub is_map_full: Mutex<bool>,
    /// The position that the engine says its files know of.
    pub files_end: Mutex<Lsn>,
}

struct Fake {
    name: &'static str,
    told: Arc<Told>,
    view: Nothing,
}

/// An empty view. A read fills in the engine's name as bytes, so that a test sees which engine answered.
#[derive(Clone, Copy)]
struct Nothing(&'static str);

/// The engine, and the record of its calls.
pub(crate) fn fake(name: &'static str, survival: Survival) -> (EngineKind, Arc<Told>) {
    let told = Arc::new(Told::default());
    let engine = Arc::clone(&told);
    let open = Arc::new(move |_: super::Opening<'_>| {
        *engine.opened.lock() += 1;
        Ok(Arc::new(Fake { name, told: Arc::clone(&engine), view: Nothing(name) }) as Arc<dyn Engine>)
    });
    (EngineKind { name, survival, open }, told)
}

impl Engine for Fake {
    fn name(&self) -> &'static str {
        self.name
    }

    fn check_settings(&self, _settings: DocumentRef<'_>) -> Result<(), String> {
        Ok(())
    }

    fn admit(&self, growth_bytes: usize) -> Result<()> {
        if *self.told.is_map_full.lock() {
            return Err(StorageError::MapFull { path: "map".into(), map_bytes: 0 });
        }
        match *self.told.room_bytes.lock() {
            Some(room) if room < growth_bytes => {
                Err(StorageError::OutOfMemory { used_bytes: 0, limit_bytes: room as u64 })
            }
            _ => Ok(()),
        }
    }

    fn apply(&self, _lsn: Lsn, effects: Effects<'_>, _views: Views<'_>) -> Result<()> {
        self.told.applied.lock().push(effects.map(|effect| effect.keyspace().0).collect());
        Ok(())
    }

    fn view(&self, _before: Lsn) -> Box<dyn View> {
        Box::new(self.view)
    }

    fn latest(&self) -> &dyn View {
        &self.view
    }

    fn begin_checkpoint(&self, _watermark: Lsn) -> Result<()> {
        Ok(())
    }

    fn finish_checkpoint(&self, _oldest_view: Lsn) -> Result<DocumentBuf> {
        assert!(!std::mem::take(&mut *self.told.panics.lock()), "asked for");
        Ok(DocumentBuf::new())
    }

    fn files_end(&self) -> Lsn {
        *self.told.files_end.lock()
    }

    fn reclaim(&self, oldest_view: Lsn, _effort: Effort) -> Result<Reclaimed> {
        let mut left = self.told.steps_left.lock();
        if *left == 0 {
            return Ok(Reclaimed::Nothing);
        }
        *left -= 1;
        self.told.reclaimed.lock().push(oldest_view);
        Ok(Reclaimed::Some)
    }

    fn unflushed_bytes(&self) -> u64 {
        *self.told.unflushed_bytes.lock()
    }

    fn space(&self, keyspaces: &[(KeyspaceId, KeyspaceStatistics)]) -> Vec<Space> {
        vec![Space::default(); keyspaces.len()]
    }

    fn size_bytes(&self) -> u64 {
        0
    }

    fn status(&self) -> DocumentBuf {
        DocumentBuf::new()
    }
}

impl View for Nothing {
    fn record(&self, _keyspace: KeyspaceId, _record: RecordId, into: &mut Vec<u8>) -> Result<Option<Location>> {
        into.clear();
        into.extend_from_slice(self.0.as_bytes());
        Ok(None)
    }

    fn key(&self, _keyspace: KeyspaceId, _key: &[u8]) -> Result<Option<RecordId>> {
        Ok(None)
    }

    fn records(&self, _keyspace: KeyspaceId, _range: RecordRange, _direction: Direction) -> Box<dyn RecordCursor> {
        Box::new(*self)
    }

    fn keys(&self, _keyspace: KeyspaceId, _range: KeyRange, _direction: Direction) -> Box<dyn KeyCursor> {
        Box::new(*self)
    }
}

impl RecordCursor for Nothing {
    fn next(&mut self) -> Result<Option<(RecordId, Location, &[u8])>> {
        Ok(None)
    }
}

impl KeyCursor for Nothing {
    fn next(&mut self) -> Result<Option<(&[u8], RecordId)>> {
        Ok(None)
    }
}
