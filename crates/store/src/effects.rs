//! Decodes effects from a batch or from the log.

use crate::engines::EngineSelection;
use crate::{KeyspaceId, Location, RecordId, varint};
use std::borrow::Cow;

pub(crate) const PUT_RECORD: u8 = 1;
pub(crate) const REPLACE_RECORD: u8 = 2;
pub(crate) const DELETE_RECORD: u8 = 3;
pub(crate) const PUT_KEY: u8 = 4;
pub(crate) const DELETE_KEY: u8 = 5;
pub(crate) const DROP_KEYSPACE: u8 = 6;
pub(crate) const PUT_PRIMARY_KEY: u8 = 7;
pub(crate) const MOVE_PRIMARY_KEY: u8 = 8;
pub(crate) const CREATE_KEYSPACE: u8 = 9;
pub(crate) const ADOPT_FILE: u8 = 10;
pub(crate) const PLACE_RECORD: u8 = 11;
pub(crate) const NOTE: u8 = 12;
pub(crate) const TAKE_KEY: u8 = 13;
pub(crate) const TAKE_PRIMARY_KEY: u8 = 14;
pub(crate) const REMEMBER: u8 = 15;
pub(crate) const FORGET: u8 = 16;

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
        /// Location of the version that it replaces.
        replaced: Option<Location>,
    },
    /// A file that the engine wrote ahead of the log belongs to it from now on; see [`crate::Staged`].
    AdoptFile {
        /// The record store whose documents it holds.
        keyspace: KeyspaceId,
        /// The file's number.
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
        /// Location of its document.
        location: Location,
    },
    /// A document is gone.
    DeleteRecord {
        /// The record store.
        keyspace: KeyspaceId,
        /// The record.
        record: RecordId,
        /// Location of its document.
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
        /// Whether the key is new or led to another record before.
        presence: Presence,
    },
    /// A primary key now leads to a record and its document's location. Written again with every version of the
    /// document.
    PutPrimaryKey {
        /// The index.
        keyspace: KeyspaceId,
        /// The memcomparable key.
        key: &'a [u8],
        /// The record.
        record: RecordId,
        /// Location of the document.
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
    /// A keyspace exists from now on. A keyspace without this effect belongs to the store's own engine.
    CreateKeyspace {
        /// The keyspace.
        keyspace: KeyspaceId,
        /// The name of the engine that holds it.
        engine: &'a str,
        /// A BSON document that only that engine understands, or nothing.
        settings: &'a [u8],
    },
    /// A keyspace is dropped with all that it holds.
    DropKeyspace {
        /// The keyspace.
        keyspace: KeyspaceId,
    },
}

impl Effect<'_> {
    /// Filler of an unused slot.
    pub(crate) const EMPTY: Self = Self::DropKeyspace { keyspace: KeyspaceId(0) };

    /// The keyspace that it changes.
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

/// Whether a key existed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The key is new.
    New,
    /// The key existed, for the record's previous version.
    Moved,
    /// The key existed, for another record. The same batch deletes that record or takes the key from it.
    Taken,
}

/// A log record's documents in the order of its effects.
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

/// Iterates over a log record's effects.
#[derive(Clone)]
pub struct Effects<'a> {
    source: Source<'a>,
    /// The engine whose effects are shown; `None` shows all effects.
    part: Option<EngineSelection<'a>>,
}

#[derive(Clone)]
enum Source<'a> {
    Encoded(Walk<'a>),
    /// Effects alone, without notes and remembered values.
    Decoded(std::slice::Iter<'a, Effect<'a>>),
}

/// Walks encoded effects. Document positions are derived from the position of the log record.
#[derive(Clone)]
struct Walk<'a> {
    rest: &'a [u8],
    documents: Documents<'a>,
    /// Position of the next document in the log.
    next_document: u64,
    /// Location of the document that was put or placed last.
    last: Option<Location>,
}

impl<'a> Effects<'a> {
    /// `documents_position` is the position of the record's first document in the log.
    pub(crate) fn new(encoded: &'a [u8], documents: Documents<'a>, documents_position: u64) -> Self {
        let walk = Walk { rest: encoded, documents, next_document: documents_position, last: None };
        Self { source: Source::Encoded(walk), part: None }
    }

    /// Decodes the effects into `slots`, for callers that walk them several times. If `slots` is too short, the effects
    /// stay encoded. Decoded effects contain no notes and no remembered values.
    pub(crate) fn decoded(self, slots: &'a mut [Effect<'a>]) -> Self {
        let mut count = 0;
        for effect in self.clone() {
            let Some(slot) = slots.get_mut(count) else { return self };
            *slot = effect;
            count += 1;
        }
        Self::of_decoded(&slots[..count])
    }

    /// Iterates over effects that were decoded before.
    pub(crate) fn of_decoded(effects: &'a [Effect<'a>]) -> Self {
        Self { source: Source::Decoded(effects.iter()), part: None }
    }

    /// Whether the effects were decoded before.
    pub(crate) fn is_decoded(&self) -> bool {
        matches!(self.source, Source::Decoded(_))
    }

    /// Only the effects on one engine's keyspaces.
    pub(crate) fn of<'p>(self, part: EngineSelection<'p>) -> Effects<'p>
    where
        'a: 'p,
    {
        Effects { part: Some(part), ..self }
    }

    /// Whether the walk stopped before the end, which happens only in a malformed record.
    pub(crate) fn is_cut(&self) -> bool {
        match &self.source {
            Source::Encoded(walk) => !walk.rest.is_empty(),
            Source::Decoded(_) => false,
        }
    }

    /// Bytes after the last document, once all effects of a log record have been walked.
    pub(crate) fn padding(&self) -> &'a [u8] {
        match &self.source {
            Source::Encoded(Walk { documents: Documents::InARow(rest), .. }) => rest,
            Source::Encoded(_) | Source::Decoded(_) => &[],
        }
    }

    /// Iterates over all statements: effects on all engines' keyspaces, notes, and remembered values.
    pub fn noted(self) -> Noted<'a> {
        Noted(self)
    }
}

impl<'a> Walk<'a> {
    fn decode(&mut self) -> Option<Statement<'a>> {
        let mut input = self.rest;
        let (&kind, rest) = input.split_first()?;
        input = rest;
        if matches!(kind, NOTE | REMEMBER | FORGET) {
            let statement = decode_note(kind, &mut input)?;
            self.rest = input;
            return Some(statement);
        }
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
            PUT_KEY | TAKE_KEY | DELETE_KEY | PUT_PRIMARY_KEY | MOVE_PRIMARY_KEY | TAKE_PRIMARY_KEY => {
                self.decode_key(kind, keyspace, &mut input)?
            }
            CREATE_KEYSPACE => {
                let engine = std::str::from_utf8(varint::take_bytes(&mut input)?).ok()?;
                Effect::CreateKeyspace { keyspace, engine, settings: varint::take_bytes(&mut input)? }
            }
            DROP_KEYSPACE => Effect::DropKeyspace { keyspace },
            _ => return None,
        };
        self.rest = input;
        Some(Statement::Effect(effect))
    }

    fn decode_key(&self, kind: u8, keyspace: KeyspaceId, input: &mut &'a [u8]) -> Option<Effect<'a>> {
        let key = varint::take_bytes(input)?;
        Some(match kind {
            DELETE_KEY => Effect::DeleteKey { keyspace, key },
            PUT_KEY | TAKE_KEY => Effect::PutKey {
                keyspace,
                key,
                record: RecordId(varint::take(input)?),
                presence: if kind == PUT_KEY { Presence::New } else { Presence::Taken },
            },
            _ => Effect::PutPrimaryKey {
                keyspace,
                key,
                record: RecordId(varint::take(input)?),
                location: self.last?,
                presence: match kind {
                    PUT_PRIMARY_KEY => Presence::New,
                    MOVE_PRIMARY_KEY => Presence::Moved,
                    _ => Presence::Taken,
                },
            },
        })
    }
}

/// Decodes a statement that concerns no keyspace.
fn decode_note<'a>(kind: u8, input: &mut &'a [u8]) -> Option<Statement<'a>> {
    let content = varint::take_bytes(input)?;
    Some(match kind {
        NOTE => Statement::Note(content),
        REMEMBER => Statement::Remember { key: content, value: varint::take_bytes(input)? },
        _ => Statement::Forget { key: content, start: varint::take_bytes(input)? },
    })
}

impl<'a> Iterator for Effects<'a> {
    type Item = Effect<'a>;

    fn next(&mut self) -> Option<Effect<'a>> {
        loop {
            let effect = match &mut self.source {
                Source::Decoded(effects) => *effects.next()?,
                Source::Encoded(walk) => match walk.decode()? {
                    Statement::Effect(effect) => effect,
                    Statement::Note(_) | Statement::Remember { .. } | Statement::Forget { .. } => continue,
                },
            };
            if self.part.as_ref().is_none_or(|part| part.contains(effect.keyspace())) {
                return Some(effect);
            }
        }
    }
}

/// A statement of a log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement<'a> {
    /// An effect.
    Effect(Effect<'a>),
    /// A note from [`crate::Batch::note`].
    Note(&'a [u8]),
    /// The store remembers this value under this key from now on.
    Remember {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// The store forgets the value of this key if it begins with `start`.
    Forget {
        /// The key.
        key: &'a [u8],
        /// Beginning of the value.
        start: &'a [u8],
    },
}

/// Iterates over all statements of a log record.
pub struct Noted<'a>(Effects<'a>);

impl<'a> Iterator for Noted<'a> {
    type Item = Statement<'a>;

    fn next(&mut self) -> Option<Statement<'a>> {
        match &mut self.0.source {
            Source::Encoded(walk) => walk.decode(),
            Source::Decoded(effects) => effects.next().copied().map(Statement::Effect),
        }
    }
}
