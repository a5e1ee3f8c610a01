//! The changes of one write: physical, idempotent effects, encoded as they stand in the log.
//!
//! Effects are encoded before documents, so that a record's effects can be decoded without touching the documents, and
//! an inserted document's bytes are copied only once on their way to the log.

use crate::effects::{
    ADOPT_FILE, CREATE_KEYSPACE, DELETE_KEY, DELETE_RECORD, DROP_KEYSPACE, Documents, FORGET, MOVE_PRIMARY_KEY, NOTE,
    PLACE_RECORD, PUT_KEY, PUT_PRIMARY_KEY, PUT_RECORD, REMEMBER, REPLACE_RECORD, TAKE_KEY, TAKE_PRIMARY_KEY,
};
use crate::{Added, Effect, Effects, KeyspaceId, Location, Noted, Presence, RecordId, varint};
use std::borrow::Cow;

/// Room for the effects of one replaced document and a few index keys, in bytes.
const EFFECTS_BYTES_USUAL: usize = 192;

/// Effects that become one log record, all or none.
#[derive(Default)]
pub struct Batch<'d> {
    effects: Vec<u8>,
    /// Number of effects, without notes.
    effects_count: usize,
    /// See [`Self::operations`].
    operations: u64,
    documents: Vec<Cow<'d, [u8]>>,
    documents_bytes: usize,
    /// Offset of the last document among all document bytes, and its checksum.
    last_document: Option<(usize, u32)>,
    /// Whether the batch creates or drops keyspaces.
    changes_keyspaces: bool,
    /// Offset, among the encoded effects, of the first value that is remembered or forgotten.
    remembered_from: Option<usize>,
}

impl<'d> Batch<'d> {
    /// A batch without effects.
    pub fn new() -> Self {
        Self::with_room(EFFECTS_BYTES_USUAL)
    }

    /// A batch without effects, with room for this many bytes of effects.
    pub fn with_room(effects_bytes: usize) -> Self {
        Self { effects: Vec::with_capacity(effects_bytes), ..Self::default() }
    }

    /// Whether the batch has no effects and no notes.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// Bytes that the record's body will take in the log.
    pub fn len_bytes(&self) -> usize {
        self.effects.len() + self.documents_bytes
    }

    /// Inserts a document under a record id that is not in use.
    pub fn insert_record(&mut self, keyspace: KeyspaceId, record: RecordId, document: impl Into<Cow<'d, [u8]>>) {
        self.effects.push(PUT_RECORD);
        self.document(keyspace, record, document.into());
    }

    /// Replaces a record's document; `replaced` is the old document's location.
    pub fn replace_record(
        &mut self,
        keyspace: KeyspaceId,
        record: RecordId,
        document: impl Into<Cow<'d, [u8]>>,
        replaced: Location,
    ) {
        self.effects.push(REPLACE_RECORD);
        self.effects.extend_from_slice(&replaced.encode());
        self.document(keyspace, record, document.into());
    }

    pub(crate) fn adopt_file(&mut self, keyspace: KeyspaceId, number: u64, documents_bytes: u64) {
        self.effects.push(ADOPT_FILE);
        self.header(keyspace);
        varint::put(&mut self.effects, number);
        varint::put(&mut self.effects, documents_bytes);
    }

    /// Lets an unused record id lead to a document of [`crate::Staged`].
    pub fn place_record(&mut self, keyspace: KeyspaceId, record: RecordId, location: Location) {
        self.operations += 1;
        self.effects.push(PLACE_RECORD);
        self.effects.extend_from_slice(&location.encode());
        self.header(keyspace);
        varint::put(&mut self.effects, record.0);
    }

    fn document(&mut self, keyspace: KeyspaceId, record: RecordId, document: Cow<'d, [u8]>) {
        debug_assert!(self.remembered_from.is_none(), "documents come before what is remembered");
        self.operations += 1;
        self.header(keyspace);
        varint::put(&mut self.effects, record.0);
        varint::put(&mut self.effects, document.len() as u64);
        let checksum = bunko_checksum::crc32c(&document);
        self.effects.extend_from_slice(&checksum.to_le_bytes());
        self.last_document = Some((self.documents_bytes, checksum));
        self.documents_bytes += document.len();
        self.documents.push(document);
    }

    /// Deletes a record; `replaced` is its document's location.
    pub fn delete_record(&mut self, keyspace: KeyspaceId, record: RecordId, replaced: Location) {
        self.operations += 1;
        self.effects.push(DELETE_RECORD);
        self.effects.extend_from_slice(&replaced.encode());
        self.header(keyspace);
        varint::put(&mut self.effects, record.0);
    }

    /// Lets an index key, which must not be empty, lead to a record.
    pub fn put_key(&mut self, keyspace: KeyspaceId, key: &[u8], record: RecordId) {
        self.put_key_of(PUT_KEY, keyspace, key, record);
    }

    /// As [`Self::put_key`], for a key that led to another record before.
    pub fn take_key(&mut self, keyspace: KeyspaceId, key: &[u8], record: RecordId) {
        self.put_key_of(TAKE_KEY, keyspace, key, record);
    }

    fn put_key_of(&mut self, kind: u8, keyspace: KeyspaceId, key: &[u8], record: RecordId) {
        self.effects.push(kind);
        self.header(keyspace);
        self.key(key);
        varint::put(&mut self.effects, record.0);
    }

    /// Lets a primary key lead to the record and document that were put or placed last.
    pub fn put_primary_key(&mut self, keyspace: KeyspaceId, key: &[u8], record: RecordId, presence: Presence) {
        let kind = match presence {
            Presence::New => PUT_PRIMARY_KEY,
            Presence::Moved => MOVE_PRIMARY_KEY,
            Presence::Taken => TAKE_PRIMARY_KEY,
        };
        self.put_key_of(kind, keyspace, key, record);
    }

    /// Removes an index key.
    pub fn delete_key(&mut self, keyspace: KeyspaceId, key: &[u8]) {
        self.effects.push(DELETE_KEY);
        self.header(keyspace);
        self.key(key);
    }

    /// Creates a keyspace in the engine with that name; `settings` is a BSON document that only the engine
    /// understands, or nothing.
    pub fn create_keyspace(&mut self, keyspace: KeyspaceId, engine: &str, settings: &[u8]) {
        self.changes_keyspaces = true;
        self.effects.push(CREATE_KEYSPACE);
        self.header(keyspace);
        self.key(engine.as_bytes());
        self.key(settings);
    }

    /// Drops a keyspace with all that it holds.
    pub fn drop_keyspace(&mut self, keyspace: KeyspaceId) {
        self.changes_keyspaces = true;
        self.effects.push(DROP_KEYSPACE);
        self.header(keyspace);
    }

    /// Adds a note, which engines ignore: facts that readers of the history need beside the effects.
    pub fn note(&mut self, content: &[u8]) {
        self.operations += 1;
        self.effects.push(NOTE);
        self.key(content);
    }

    /// Makes the store remember a small value by a key, in memory and through restarts; see
    /// [`Store::remembered`](crate::Store::remembered). The batch's documents must be put before, and no other batch in
    /// flight may have the key.
    pub fn remember(&mut self, key: &[u8], value: &[u8]) {
        self.begin_remembered(REMEMBER);
        self.key(key);
        self.key(value);
    }

    /// Makes the store forget the value of a key if it begins with `start`. As for [`Self::remember`], documents come
    /// first; but another batch in flight may remember a value of the key that begins differently.
    pub fn forget(&mut self, key: &[u8], start: &[u8]) {
        self.begin_remembered(FORGET);
        self.key(key);
        self.key(start);
    }

    fn begin_remembered(&mut self, kind: u8) {
        self.remembered_from.get_or_insert(self.effects.len());
        self.effects.push(kind);
    }

    /// The batch's statements from the first remembered or forgotten value on; empty if there is none.
    pub(crate) fn remembered(&self) -> Noted<'_> {
        let encoded = self.remembered_from.map_or(&[][..], |from| &self.effects[from..]);
        // No document is put after remembered values.
        Effects::new(encoded, Documents::InARow(&[]), 0).noted()
    }

    pub(crate) fn remembers(&self) -> bool {
        self.remembered_from.is_some()
    }

    fn header(&mut self, keyspace: KeyspaceId) {
        self.effects_count += 1;
        varint::put(&mut self.effects, u64::from(keyspace.0));
    }

    fn key(&mut self, key: &[u8]) {
        varint::put_bytes(&mut self.effects, key);
    }

    /// All statements of the batch, as the log's history shows them.
    pub fn noted(&self) -> Noted<'_> {
        self.effects(0).noted()
    }

    pub(crate) fn effects_count(&self) -> usize {
        self.effects_count
    }

    /// Upper bound of the operations that the log's history shows of the batch.
    pub(crate) fn operations(&self) -> u64 {
        self.operations
    }

    /// Makes the batch's record longer by meaningless bytes. No document may be put after them.
    pub(crate) fn pad(&mut self, bytes: usize) {
        self.documents_bytes += bytes;
        self.documents.push(Cow::Owned(vec![0; bytes]));
    }

    pub(crate) fn encoded_effects(&self) -> &[u8] {
        &self.effects
    }

    pub(crate) fn changes_keyspaces(&self) -> bool {
        self.changes_keyspaces
    }

    /// Location of the last document if the first begins at `documents_position`.
    pub(crate) fn last_location(&self, documents_position: u64) -> Option<Location> {
        let (offset, checksum) = self.last_document?;
        let length = (self.documents_bytes - offset) as u32;
        Some(Location { position: documents_position + offset as u64, length, checksum })
    }

    pub(crate) fn documents(&self) -> &[Cow<'d, [u8]>] {
        &self.documents
    }

    /// Bytes of documents and effects that need room; 0 for a batch that only removes documents and keys, or drops
    /// keyspaces.
    pub(crate) fn growth_bytes(&self) -> usize {
        let is_drop = |effect| matches!(effect, Effect::DropKeyspace { .. });
        let is_removal = |effect| matches!(effect, Effect::DeleteRecord { .. } | Effect::DeleteKey { .. });
        let makes_room = self.changes_keyspaces && self.effects(0).any(is_drop)
            || self.documents.is_empty() && self.effects(0).all(is_removal);
        if makes_room { 0 } else { self.len_bytes() }
    }

    /// Whether the batch may use the disk reserve: it only removes, or drops keyspaces. A batch without effects, which
    /// has notes at most, takes only its place in the log.
    pub fn makes_room(&self) -> bool {
        self.growth_bytes() == 0
    }

    /// Whether the batch drops keyspaces, and so makes room.
    pub(crate) fn drops(&self) -> bool {
        self.changes_keyspaces && self.makes_room()
    }

    /// The batch's part of the changes that wait for a checkpoint.
    pub(crate) fn added(&self) -> Added {
        Added { changes: self.effects_count as u64, logged_bytes: self.len_bytes() as u64 }
    }

    /// Iterates over the effects; the documents stand in the log from `documents_position` on.
    pub(crate) fn effects(&self, documents_position: u64) -> Effects<'_> {
        Effects::new(&self.effects, Documents::OneByOne(self.documents.iter()), documents_position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::Statement;

    const RECORDS: KeyspaceId = KeyspaceId(300);
    const INDEX: KeyspaceId = KeyspaceId(7);
    const OLD: Location = Location { position: 9, length: 3, checksum: 4 };

    /// A note, and every kind of effect.
    fn of_every_kind() -> Batch<'static> {
        let (records, index, old) = (RECORDS, INDEX, OLD);
        let mut batch = Batch::new();
        batch.note(b"noted");
        batch.insert_record(records, RecordId(1), b"first".as_slice());
        batch.put_key(index, b"key", RecordId(1));
        batch.put_primary_key(index, b"id", RecordId(1), Presence::New);
        batch.replace_record(records, RecordId(2), b"second!".to_vec(), old);
        batch.delete_record(records, RecordId(3), old);
        batch.take_key(index, b"taken", RecordId(2));
        batch.put_primary_key(index, b"taken too", RecordId(2), Presence::Taken);
        batch.delete_key(index, b"gone");
        batch.create_keyspace(index, "lsm", b"settings");
        batch.drop_keyspace(index);
        batch.adopt_file(records, 77, 7000);
        batch.place_record(records, RecordId(4), old);
        batch.put_primary_key(index, b"placed", RecordId(4), Presence::New);
        batch
    }

    #[test]
    fn effects_come_back_with_their_documents_positions() {
        let (records, index, old) = (RECORDS, INDEX, OLD);
        let batch = of_every_kind();
        let mut effects = batch.effects(1000);
        let seen: Vec<_> = effects.by_ref().collect();
        assert!(!effects.is_cut());
        let at = |position, text: &[u8]| Location {
            position,
            length: text.len() as u32,
            checksum: bunko_checksum::crc32c(text),
        };
        assert_eq!(
            seen,
            [
                Effect::PutRecord {
                    keyspace: records,
                    record: RecordId(1),
                    location: at(1000, b"first"),
                    document: b"first",
                    replaced: None
                },
                Effect::PutKey { keyspace: index, key: b"key", record: RecordId(1), presence: Presence::New },
                Effect::PutPrimaryKey {
                    keyspace: index,
                    key: b"id",
                    record: RecordId(1),
                    location: at(1000, b"first"),
                    presence: Presence::New
                },
                Effect::PutRecord {
                    keyspace: records,
                    record: RecordId(2),
                    location: at(1005, b"second!"),
                    document: b"second!",
                    replaced: Some(old)
                },
                Effect::DeleteRecord { keyspace: records, record: RecordId(3), replaced: old },
                Effect::PutKey { keyspace: index, key: b"taken", record: RecordId(2), presence: Presence::Taken },
                Effect::PutPrimaryKey {
                    keyspace: index,
                    key: b"taken too",
                    record: RecordId(2),
                    location: at(1005, b"second!"),
                    presence: Presence::Taken
                },
                Effect::DeleteKey { keyspace: index, key: b"gone" },
                Effect::CreateKeyspace { keyspace: index, engine: "lsm", settings: b"settings" },
                Effect::DropKeyspace { keyspace: index },
                Effect::AdoptFile { keyspace: records, number: 77, documents_bytes: 7000 },
                Effect::PlaceRecord { keyspace: records, record: RecordId(4), location: old },
                Effect::PutPrimaryKey {
                    keyspace: index,
                    key: b"placed",
                    record: RecordId(4),
                    location: old,
                    presence: Presence::New
                },
            ]
        );
    }

    #[test]
    fn effects_are_the_same_from_every_source() {
        let batch = of_every_kind();
        let seen: Vec<_> = batch.effects(1000).collect();
        let in_a_row = Effects::new(batch.encoded_effects(), Documents::InARow(b"firstsecond!"), 1000);
        assert_eq!(in_a_row.collect::<Vec<_>>(), seen);
        let mut slots = vec![Effect::EMPTY; seen.len()];
        let decoded = batch.effects(1000).decoded(&mut slots);
        assert_eq!(decoded.clone().collect::<Vec<_>>(), seen);
        assert_eq!(decoded.collect::<Vec<_>>(), seen);
        let mut too_few = [Effect::EMPTY; 3];
        assert_eq!(batch.effects(1000).decoded(&mut too_few).collect::<Vec<_>>(), seen);
        assert_eq!((batch.effects_count(), batch.documents().len()), (seen.len(), 2));
        let stated: Vec<_> = batch.effects(1000).noted().collect();
        assert_eq!(stated[0], Statement::Note(b"noted"));
        assert_eq!(stated[1..], seen.into_iter().map(Statement::Effect).collect::<Vec<_>>());
    }
}
