//! What each keyspace holds where: kept as records are applied, as of the watermark saved with each checkpoint.

use crate::compression::Compression;
use crate::staging::segment_of_extent;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_store::{Effect, Effects, KeyspaceId, Location, Lsn, Presence, segment_of, varint};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes of one keyspace's documents in one segment of the log, or in the extent that took it over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Of documents that the newest state leads to.
    pub live: u64,
    /// Of all that are there.
    pub total: u64,
}

/// Documents by segment, and entries in the trees.
#[derive(Default)]
pub(crate) struct Accounts {
    state: Mutex<State>,
}

#[derive(Clone, Default)]
pub(crate) struct State {
    pub shares: FxHashMap<(KeyspaceId, u64), Share>,
    /// Entries in the trees by keyspace.
    pub entries: FxHashMap<KeyspaceId, u64>,
    /// Compressors of the keyspaces that chose one.
    pub compression: FxHashMap<KeyspaceId, Compression>,
    /// Dropped keyspaces, until no view is older than that and the drop is durable.
    pub dropped: FxHashMap<KeyspaceId, Lsn>,
}

impl State {
    fn put(&mut self, keyspace: KeyspaceId, location: Location) {
        let share = self.shares.entry((keyspace, segment_of(location.position))).or_default();
        share.live += u64::from(location.length);
        share.total += u64::from(location.length);
    }

    /// A document of a share that has its total already.
    fn place(&mut self, keyspace: KeyspaceId, location: Location) {
        let share = self.shares.entry((keyspace, segment_of(location.position))).or_default();
        share.live += u64::from(location.length);
        share.total = share.total.max(share.live);
    }

    fn take(&mut self, keyspace: KeyspaceId, location: Location) {
        if let Some(share) = self.shares.get_mut(&(keyspace, segment_of(location.position))) {
            share.live = share.live.saturating_sub(u64::from(location.length));
        }
    }

    fn count(&mut self, keyspace: KeyspaceId) {
        *self.entries.entry(keyspace).or_insert(0) += 1;
    }

    fn uncount(&mut self, keyspace: KeyspaceId) {
        if let Some(count) = self.entries.get_mut(&keyspace) {
            *count = count.saturating_sub(1);
        }
    }

    fn drop_keyspace(&mut self, keyspace: KeyspaceId, lsn: Lsn) {
        self.shares.retain(|(of, _), _| *of != keyspace);
        self.entries.remove(&keyspace);
        self.compression.remove(&keyspace);
        self.dropped.insert(keyspace, lsn);
    }

    /// Live and total bytes by segment, of all keyspaces together.
    pub fn by_segment(&self) -> FxHashMap<u64, Share> {
        let mut segments: FxHashMap<u64, Share> = FxHashMap::default();
        for ((_, segment), share) in &self.shares {
            let of_segment = segments.entry(*segment).or_default();
            of_segment.live += share.live;
            of_segment.total += share.total;
        }
        segments
    }
}

impl Accounts {
    /// Goes on from what a checkpoint noted; `None` for a malformed note.
    pub fn restore(note: DocumentRef<'_>) -> Option<Self> {
        let mut state = State::default();
        for [keyspace, segment, live, total] in numbers(note.get("shares"))? {
            state.shares.insert((keyspace_id(keyspace)?, segment), Share { live, total });
        }
        for [keyspace, count] in numbers(note.get("entries"))? {
            state.entries.insert(keyspace_id(keyspace)?, count);
        }
        for value in note.get("compression").and_then(ValueRef::as_array).into_iter().flat_map(ArrayRef::iter) {
            let document = value.as_document()?;
            let Some(ValueRef::Int64(keyspace)) = document.get("id") else { return None };
            let compression = Compression::from_settings(document).ok()??;
            state.compression.insert(keyspace_id(u64::try_from(keyspace).ok()?)?, compression);
        }
        Some(Self { state: Mutex::new(state) })
    }

    /// For the manifest.
    pub fn encode(state: &State, note: DocumentBuf) -> DocumentBuf {
        let shares = state.shares.iter();
        let shares = packed(
            shares.map(|((keyspace, segment), share)| [u64::from(keyspace.0), *segment, share.live, share.total]),
        );
        let entries = packed(state.entries.iter().map(|(keyspace, count)| [u64::from(keyspace.0), *count]));
        let mut compression = ArrayBuf::new();
        for (keyspace, of_keyspace) in &state.compression {
            compression.push(&of_keyspace.settings().with("id", i64::from(keyspace.0)));
        }
        note.with("shares", ValueRef::Binary { subtype: 0, bytes: &shares })
            .with("entries", ValueRef::Binary { subtype: 0, bytes: &entries })
            .with("compression", &compression)
    }

    pub fn apply(&self, lsn: Lsn, effects: Effects<'_>) {
        let mut state = self.state.lock();
        for effect in effects {
            match effect {
                Effect::PutRecord { keyspace, location, replaced, .. } => {
                    state.put(keyspace, location);
                    match replaced {
                        Some(replaced) => state.take(keyspace, replaced),
                        None => state.count(keyspace),
                    }
                }
                Effect::AdoptFile { keyspace, number, documents_bytes } => {
                    let share = Share { live: 0, total: documents_bytes };
                    state.shares.insert((keyspace, segment_of_extent(number)), share);
                }
                Effect::PlaceRecord { keyspace, location, .. } => {
                    state.place(keyspace, location);
                    state.count(keyspace);
                }
                Effect::DeleteRecord { keyspace, replaced, .. } => {
                    state.take(keyspace, replaced);
                    state.uncount(keyspace);
                }
                Effect::PutPrimaryKey { presence: Presence::Moved, .. } => {}
                Effect::PutKey { keyspace, .. } | Effect::PutPrimaryKey { keyspace, .. } => state.count(keyspace),
                Effect::DeleteKey { keyspace, .. } => state.uncount(keyspace),
                Effect::CreateKeyspace { keyspace, settings, .. } => {
                    let chosen = DocumentRef::parse(settings)
                        .ok()
                        .and_then(|settings| Compression::from_settings(settings).ok().flatten());
                    state.compression.extend(chosen.map(|compression| (keyspace, compression)));
                }
                Effect::DropKeyspace { keyspace } => state.drop_keyspace(keyspace, lsn),
            }
        }
    }

    /// The compressor that a keyspace chose.
    pub fn compression(&self, keyspace: KeyspaceId) -> Option<Compression> {
        self.state.lock().compression.get(&keyspace).copied()
    }

    /// Keyspaces that some view, open or to come, may read from, or that a power cut may bring back.
    pub fn needed_keyspaces(&self) -> FxHashSet<KeyspaceId> {
        let state = self.state.lock();
        state.entries.keys().chain(state.dropped.keys()).copied().collect()
    }

    pub fn copy(&self) -> State {
        self.state.lock().clone()
    }

    /// Segments were rewritten: `kept` are the bytes that are still there, by keyspace and segment.
    pub fn rewritten(&self, segments: &[u64], kept: &FxHashMap<(KeyspaceId, u64), u64>) {
        let mut state = self.state.lock();
        state.shares.retain(|key, share| {
            if segments.contains(&key.1) {
                share.total = kept.get(key).copied().unwrap_or(0);
            }
            share.total > 0
        });
    }

    /// Shares in segments that are nowhere any more: a checkpoint may have noted some that went after its watermark.
    pub fn forget_segments(&self, is_there: impl Fn(u64) -> bool) {
        self.state.lock().shares.retain(|(_, segment), share| share.live > 0 || is_there(*segment));
    }

    /// No view is older than `oldest_view`, and the log is durable up to there: keyspaces dropped before are gone for all.
    pub fn forget_dropped(&self, oldest_view: Lsn) {
        self.state.lock().dropped.retain(|_, lsn| *lsn >= oldest_view);
    }
}

fn keyspace_id(number: u64) -> Option<KeyspaceId> {
    u32::try_from(number).ok().map(KeyspaceId)
}

/// Numbers as they are noted: a share takes a fifth of what it would take as an array's elements, and there may be one
/// for each collection in each segment.
fn packed<const N: usize>(rows: impl Iterator<Item = [u64; N]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in rows.flatten() {
        varint::put(&mut bytes, number);
    }
    bytes
}

/// What [`packed`] made, so many at a time; what is absent is empty.
fn numbers<const N: usize>(value: Option<ValueRef<'_>>) -> Option<Vec<[u64; N]>> {
    let mut rest = match value {
        None => return Some(Vec::new()),
        Some(ValueRef::Binary { bytes, .. }) => bytes,
        Some(_) => return None,
    };
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let mut row = [0; N];
        for number in &mut row {
            *number = varint::take(&mut rest)?;
        }
        rows.push(row);
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_store::SEGMENT_BYTES;

    const RECORDS: KeyspaceId = KeyspaceId(4);

    fn location(position: u64, length: u32) -> Location {
        Location { position, length, checksum: 0 }
    }

    #[test]
    fn what_a_checkpoint_noted_is_gone_on_from() {
        let mut state = State::default();
        state.put(RECORDS, location(100, 30));
        state.put(RECORDS, location(SEGMENT_BYTES * 3, 50));
        state.take(RECORDS, location(100, 30));
        state.count(RECORDS);
        state.compression.insert(RECORDS, Compression::Zstd { level: 9 });
        let note = Accounts::encode(&state, DocumentBuf::new());
        let restored = Accounts::restore(note.as_ref()).expect("well-formed").copy();
        assert_eq!(restored.shares, state.shares);
        assert_eq!(restored.shares[&(RECORDS, 0)], Share { live: 0, total: 30 });
        assert_eq!((restored.entries, restored.compression), (state.entries, state.compression));
    }

    #[test]
    fn a_rewritten_segment_holds_what_was_kept() {
        let accounts = Accounts::default();
        {
            let mut state = accounts.state.lock();
            state.put(RECORDS, location(0, 10));
            state.put(RECORDS, location(20, 70));
            state.take(RECORDS, location(20, 70));
            state.put(RECORDS, location(SEGMENT_BYTES, 5));
        }
        accounts.rewritten(&[0], &[((RECORDS, 0), 10)].into_iter().collect());
        assert_eq!(accounts.copy().by_segment()[&0], Share { live: 10, total: 10 });
        accounts.rewritten(&[0], &FxHashMap::default());
        assert!(!accounts.copy().by_segment().contains_key(&0));
        assert_eq!(accounts.copy().by_segment()[&1], Share { live: 5, total: 5 });
    }
}
