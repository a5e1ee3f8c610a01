//! What one write does: physical, idempotent effects, encoded as they stand in the log.
//!
//! The encoding is effects first, documents after, so that a record's effects can be decoded without touching the
//! documents, and an inserted document's bytes are copied only once on their way to the log.

use crate::engines::Part;
use crate::{KeyspaceId, Location, RecordId, varint};
use std::borrow::Cow;

const PUT_RECORD: u8 = 1;
const REPLACE_RECORD: u8 = 2;
const DELETE_RECORD: u8 = 3;
const PUT_KEY: u8 = 4;
const DELETE_KEY: u8 = 5;
const DROP_KEYSPACE: u8 = 6;
const PUT_PRIMARY_KEY: u8 = 7;
const MOVE_PRIMARY_KEY: u8 = 8;
const CREATE_KEYSPACE: u8 = 9;
const ADOPT_FILE: u8 = 10;
const PLACE_RECORD: u8 = 11;

/// Room for the effects of one replaced document and a few index keys, in bytes.
const EFFECTS_BYTES_USUAL: usize = 192;

/// One effect, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect<'a> {
    /// A document now stands at `location`.
    PutRecord {
        /// The record store.
        keyspace: KeyspaceId,
        /// The record.
        record: RecordId,
        /// Where the document's bytes stand in the log.
        location: Location,
        /// The bytes themselves.
        document: &'a [u8],
        /// Where the version that it replaces was.
        replaced: Option<Location>,
    },
    /// A file that the engine wrote ahead of the log belongs to it from now on; see [`crate::Staged`].
    AdoptFile {
        /// The record store whose documents it holds.
        keyspace: KeyspaceId,
        /// Its number.
        number: u64,
        /// Bytes of all its documents.
        documents_bytes: u64,
    },
    /// A new record, whose document stands in an adopted file.
    PlaceRecord {
        /// The record store.
        keyspace: KeyspaceId,
        /// The record.
        record: RecordId,
        /// Where its document is.
        location: Location,
    },
    /// A document is gone.
    DeleteRecord {
        /// The record store.
        keyspace: KeyspaceId,
        /// The record.
        record: RecordId,
        /// Where it was.
        replaced: Location,
    },
    /// An index key now leads to a record.
    PutKey {
        /// The index.
        keyspace: KeyspaceId,
        /// The memcomparable key.
        key: &'a [u8],
        /// The record.
        record: RecordId,
    },
    /// A primary key now leads to a record and to where its document stands; written again with every version.
    PutPrimaryKey {
        /// The index.
        keyspace: KeyspaceId,
        /// The memcomparable key.
        key: &'a [u8],
        /// The record.
        record: RecordId,
        /// Where its document is.
        location: Location,
        /// Whether the key is new or was there for the version before.
        presence: Presence,
    },
    /// An index key is gone.
    DeleteKey {
        /// The index.
        keyspace: KeyspaceId,
        /// The memcomparable key.
        key: &'a [u8],
    },
    /// A keyspace is there from now on; one that was never created belongs to the store's own engine.
    CreateKeyspace {
        /// Which.
        keyspace: KeyspaceId,
        /// The name of the engine that holds it.
        engine: &'a str,
        /// A BSON document that only that engine understands, or nothing.
        settings: &'a [u8],
    },
    /// All of a keyspace is gone.
    DropKeyspace {
        /// Which.
        keyspace: KeyspaceId,
    },
}

impl Effect<'_> {
    /// What it changes.
    pub fn keyspace(&self) -> KeyspaceId {
        match *self {
            Self::PutRecord { keyspace, .. }
            | Self::AdoptFile { keyspace, .. }
            | Self::PlaceRecord { keyspace, .. }
            | Self::DeleteRecord { keyspace, .. }
            | Self::PutKey { keyspace, .. }
            | Self::PutPrimaryKey { keyspace, .. }
            | Self::DeleteKey { keyspace, .. }
            | Self::CreateKeyspace { keyspace, .. }
            | Self::DropKeyspace { keyspace } => keyspace,
        }
    }
}

/// Whether a key was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It was not.
    New,
    /// It was, for the record's version before.
    Moved,
}

/// Effects that become one log record, all or none.
#[derive(Default)]
pub struct Batch<'d> {
    effects: Vec<u8>,
    documents: Vec<Cow<'d, [u8]>>,
    documents_bytes: usize,
    /// Whether it creates or drops keyspaces.
    changes_keyspaces: bool,
}

impl<'d> Batch<'d> {
    /// A batch without effects.
    pub fn new() -> Self {
        Self { effects: Vec::with_capacity(EFFECTS_BYTES_USUAL), ..Self::default() }
    }

    /// Whether nothing was put in.
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

    /// Replaces a record's document; `replaced` is where the old one stood.
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

    /// Lets a record id that is not in use lead to a document of [`crate::Staged`].
    pub fn place_record(&mut self, keyspace: KeyspaceId, record: RecordId, location: Location) {
        self.effects.push(PLACE_RECORD);
        self.effects.extend_from_slice(&location.encode());
        self.header(keyspace);
        varint::put(&mut self.effects, record.0);
    }

    fn document(&mut self, keyspace: KeyspaceId, record: RecordId, document: Cow<'d, [u8]>) {
        self.header(keyspace);
        varint::put(&mut self.effects, record.0);
        varint::put(&mut self.effects, document.len() as u64);
        self.effects.extend_from_slice(&crc32c::crc32c(&document).to_le_bytes());
        self.documents_bytes += document.len();
        self.documents.push(document);
    }

    /// Deletes a record; `replaced` is where its document stood.
    pub fn delete_record(&mut self, keyspace: KeyspaceId, record: RecordId, replaced: Location) {
        self.effects.push(DELETE_RECORD);
        self.effects.extend_from_slice(&replaced.encode());
        self.header(keyspace);
        varint::put(&mut self.effects, record.0);
    }

    /// Lets an index key, which is not empty, lead to a record.
    pub fn put_key(&mut self, keyspace: KeyspaceId, key: &[u8], record: RecordId) {
        self.effects.push(PUT_KEY);
        self.header(keyspace);
        self.key(key);
        varint::put(&mut self.effects, record.0);
    }

    /// Lets a primary key lead to the record, and the document, that was put last.
    pub fn put_primary_key(&mut self, keyspace: KeyspaceId, key: &[u8], record: RecordId, presence: Presence) {
        self.effects.push(if presence == Presence::New { PUT_PRIMARY_KEY } else { MOVE_PRIMARY_KEY });
        self.header(keyspace);
        self.key(key);
        varint::put(&mut self.effects, record.0);
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

    /// Removes all of a keyspace.
    pub fn drop_keyspace(&mut self, keyspace: KeyspaceId) {
        self.changes_keyspaces = true;
        self.effects.push(DROP_KEYSPACE);
        self.header(keyspace);
    }

    fn header(&mut self, keyspace: KeyspaceId) {
        varint::put(&mut self.effects, u64::from(keyspace.0));
    }

    fn key(&mut self, key: &[u8]) {
        varint::put(&mut self.effects, key.len() as u64);
        self.effects.extend_from_slice(key);
    }

    pub(crate) fn encoded_effects(&self) -> &[u8] {
        &self.effects
    }

    pub(crate) fn changes_keyspaces(&self) -> bool {
        self.changes_keyspaces
    }

    pub(crate) fn documents(&self) -> &[Cow<'d, [u8]>] {
        &self.documents
    }

    /// Bytes of documents and effects that ask for room; a batch that only removes, or drops keyspaces, asks for none.
    pub(crate) fn growth_bytes(&self) -> usize {
        let is_drop = |effect| matches!(effect, Effect::DropKeyspace { .. });
        let is_removal = |effect| matches!(effect, Effect::DeleteRecord { .. } | Effect::DeleteKey { .. });
        let makes_room = self.changes_keyspaces && self.effects(0).any(is_drop)
            || self.documents.is_empty() && self.effects(0).all(is_removal);
        if makes_room { 0 } else { self.len_bytes() }
    }

    /// The effects, with documents that stand in the log from that position on.
    pub(crate) fn effects(&self, documents_position: u64) -> Effects<'_> {
        Effects::new(&self.effects, Documents::OneByOne(self.documents.iter()), documents_position)
    }
}

/// A record's documents in the order of its effects.
#[derive(Clone)]
pub(crate) enum Documents<'a> {
    /// As a batch holds them.
    OneByOne(std::slice::Iter<'a, Cow<'a, [u8]>>),
    /// As they stand in the log.
    InARow(&'a [u8]),
}

impl<'a> Documents<'a> {
    fn next(&mut self, length: u32) -> Option<&'a [u8]> {
        match self {
            Self::OneByOne(documents) => documents.next().map(AsRef::as_ref),
            Self::InARow(bytes) => {
                let (document, rest) = bytes.split_at_checked(length as usize)?;
                *bytes = rest;
                Some(document)
            }
        }
    }
}

/// Walks a record's effects; the documents' positions follow from the record's own.
#[derive(Clone)]
pub struct Effects<'a> {
    rest: &'a [u8],
    documents: Documents<'a>,
    /// Where the next document of the record stands in the log.
    next_document: u64,
    /// The document put or placed last.
    last: Option<Location>,
    /// Whose effects are shown; all where there is nothing to tell them apart.
    part: Option<Part<'a>>,
}

impl<'a> Effects<'a> {
    /// `documents_position` is where the record's first document stands in the log.
    pub(crate) fn new(encoded: &'a [u8], documents: Documents<'a>, documents_position: u64) -> Self {
        Self { rest: encoded, documents, next_document: documents_position, last: None, part: None }
    }

    /// Only those of one engine's keyspaces.
    pub(crate) fn of<'p>(self, part: Part<'p>) -> Effects<'p>
    where
        'a: 'p,
    {
        Effects { part: Some(part), ..self }
    }

    /// Whether the walk ended before the end, which only a malformed record does.
    pub(crate) fn is_cut(&self) -> bool {
        !self.rest.is_empty()
    }

    fn decode(&mut self) -> Option<Effect<'a>> {
        let mut input = self.rest;
        let (&kind, rest) = input.split_first()?;
        input = rest;
        let known = if matches!(kind, REPLACE_RECORD | DELETE_RECORD | PLACE_RECORD) {
            let (encoded, rest) = input.split_at_checked(Location::ENCODED_BYTES)?;
            input = rest;
            Location::decode(encoded)
        } else {
            None
        };
        let keyspace = KeyspaceId(u32::try_from(varint::take(&mut input)?).ok()?);
        let effect = match kind {
            PUT_RECORD | REPLACE_RECORD => {
                let record = RecordId(varint::take(&mut input)?);
                let length = u32::try_from(varint::take(&mut input)?).ok()?;
                let (checksum, rest) = input.split_at_checked(4)?;
                input = rest;
                let checksum = u32::from_le_bytes(checksum.try_into().ok()?);
                let location = Location { position: self.next_document, length, checksum };
                self.next_document += u64::from(length);
                self.last = Some(location);
                let document = self.documents.next(length)?;
                Effect::PutRecord { keyspace, record, location, document, replaced: known }
            }
            DELETE_RECORD => {
                Effect::DeleteRecord { keyspace, record: RecordId(varint::take(&mut input)?), replaced: known? }
            }
            PLACE_RECORD => {
                self.last = known;
                Effect::PlaceRecord { keyspace, record: RecordId(varint::take(&mut input)?), location: known? }
            }
            ADOPT_FILE => Effect::AdoptFile {
                keyspace,
                number: varint::take(&mut input)?,
                documents_bytes: varint::take(&mut input)?,
            },
            PUT_KEY | DELETE_KEY | PUT_PRIMARY_KEY | MOVE_PRIMARY_KEY => {
                let key = take_bytes(&mut input)?;
                match kind {
                    DELETE_KEY => Effect::DeleteKey { keyspace, key },
                    PUT_KEY => Effect::PutKey { keyspace, key, record: RecordId(varint::take(&mut input)?) },
                    _ => Effect::PutPrimaryKey {
                        keyspace,
                        key,
                        record: RecordId(varint::take(&mut input)?),
                        location: self.last?,
                        presence: if kind == PUT_PRIMARY_KEY { Presence::New } else { Presence::Moved },
                    },
                }
            }
            CREATE_KEYSPACE => {
                let engine = std::str::from_utf8(take_bytes(&mut input)?).ok()?;
                Effect::CreateKeyspace { keyspace, engine, settings: take_bytes(&mut input)? }
            }
            DROP_KEYSPACE => Effect::DropKeyspace { keyspace },
            _ => return None,
        };
        self.rest = input;
        Some(effect)
    }
}

fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint::take(input)?).ok()?;
    let (bytes, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(bytes)
}

impl<'a> Iterator for Effects<'a> {
    type Item = Effect<'a>;

    fn next(&mut self) -> Option<Effect<'a>> {
        loop {
            let effect = self.decode()?;
            if self.part.as_ref().is_none_or(|part| part.contains(effect.keyspace())) {
                return Some(effect);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_come_back_with_their_documents_positions() {
        let (records, index) = (KeyspaceId(300), KeyspaceId(7));
        let old = Location { position: 9, length: 3, checksum: 4 };
        let mut batch = Batch::new();
        batch.insert_record(records, RecordId(1), b"first".as_slice());
        batch.put_key(index, b"key", RecordId(1));
        batch.put_primary_key(index, b"id", RecordId(1), Presence::New);
        batch.replace_record(records, RecordId(2), b"second!".to_vec(), old);
        batch.delete_record(records, RecordId(3), old);
        batch.delete_key(index, b"gone");
        batch.create_keyspace(index, "lsm", b"settings");
        batch.drop_keyspace(index);
        batch.adopt_file(records, 77, 7000);
        batch.place_record(records, RecordId(4), old);
        batch.put_primary_key(index, b"placed", RecordId(4), Presence::New);
        let mut effects = batch.effects(1000);
        let seen: Vec<_> = effects.by_ref().collect();
        assert!(!effects.is_cut());
        let at =
            |position, text: &[u8]| Location { position, length: text.len() as u32, checksum: crc32c::crc32c(text) };
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
                Effect::PutKey { keyspace: index, key: b"key", record: RecordId(1) },
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
        let in_a_row = Effects::new(batch.encoded_effects(), Documents::InARow(b"firstsecond!"), 1000);
        assert_eq!(in_a_row.collect::<Vec<_>>(), seen);
        assert_eq!(batch.documents().len(), 2);
    }
}
