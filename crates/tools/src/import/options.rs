//! The options of an import.

use crate::ToolError;
use crate::restore::{Existing, InsertionOrder, OnError, Validation};
use bunko_client::WriteConcern;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of connections of one import.
pub const WORKERS_MAX: usize = 64;

/// The input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, or a pipe with a name.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

/// How JSON holds its documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonForm {
    /// One after another, with white space between them; usually one on each line.
    Lines,
    /// In one array.
    Array,
}

/// The separator of a table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// As in CSV.
    Comma,
    /// As in TSV.
    Tab,
}

impl Separator {
    /// The separator as a byte.
    pub fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Tab => b'\t',
        }
    }
}

/// Where a table's column names are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldNames {
    /// In its first record.
    HeaderLine,
    /// In the options.
    Listed(Vec<String>),
}

/// Whether column names end with types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnTypes {
    /// Names have no types: a value that reads as a number is one, any other is a string.
    Automatic,
    /// Names end with types, such as `price.decimal()`.
    Declared,
}

/// The treatment of a value that is not of its column's type: mongoimport's `--parseGrace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// The value takes the type that it looks like.
    AutoCast,
    /// The document gets no such field.
    SkipField,
    /// The record is left out.
    SkipRow,
    /// The import ends.
    Stop,
}

/// The treatment of an empty value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blanks {
    /// The value is an empty string, or an error if its column has another type.
    Keep,
    /// The document gets no such field.
    Ignore,
}

/// The meaning of a number in a column's dotted name, such as `tags.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Positions {
    /// The name of a field.
    AsNames,
    /// A position in an array.
    AsIndexes,
}

/// A table, CSV or TSV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// The character between two columns.
    pub separator: Separator,
    /// The names of the columns.
    pub fields: FieldNames,
    /// Whether the names have types.
    pub types: ColumnTypes,
    /// The treatment of values that are not of their column's type.
    pub grace: Grace,
    /// The treatment of empty values.
    pub blanks: Blanks,
    /// The meaning of numbers in names.
    pub positions: Positions,
}

/// The format of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Extended JSON.
    Json(JsonForm),
    /// CSV or TSV.
    Table(TableOptions),
    /// Encoded documents, one after another, as a dump's files have them.
    Bson,
}

/// The write that is made of each document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The document is inserted.
    Insert,
    /// The document replaces the one with the same key fields, or is inserted.
    Upsert,
    /// The document's fields are set in the one with the same key fields; without one, the document is inserted.
    Merge,
    /// The document with the same key fields is deleted.
    Delete,
}

/// The part of generated `_id`s by which those of this run differ from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunId {
    /// Seconds since 1970.
    pub seconds: u32,
    /// Any number.
    pub number: u64,
}

/// One import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The input.
    pub source: Source,
    /// Format of the input.
    pub format: Format,
    /// The database to write to.
    pub database: String,
    /// The collection to write to.
    pub collection: String,
    /// The write that is made of each document.
    pub mode: Mode,
    /// Fields by which documents are found, except by [`Mode::Insert`]: dotted paths.
    pub key_fields: Vec<String>,
    /// Whether the collection is dropped first.
    pub existing: Existing,
    /// Whether the import goes on after a document that the server refuses.
    pub on_error: OnError,
    /// Whether documents are inserted in the order of the input. The other modes keep it in any case.
    pub order: InsertionOrder,
    /// Connections, each with a thread that parses. Documents that keep their order take one.
    pub workers: NonZeroUsize,
    /// When the server acknowledges.
    pub write_concern: WriteConcern,
    /// Whether the collection's validator is asked.
    pub validation: Validation,
    /// The file that records the acknowledged parts of the input, so that the import can be resumed.
    pub resume_file: Option<PathBuf>,
    /// The id of this run; a resumed import keeps the id of its first run.
    pub run_id: RunId,
}

impl ImportOptions {
    /// Checks that the options make sense together.
    /// # Errors
    /// `Usage` names the flags.
    pub fn validate(&self) -> Result<(), ToolError> {
        let has_default_key = self.key_fields == ["_id"];
        let is_file = matches!(self.source, Source::File(_));
        let contradictions = [
            (
                self.resume_file.is_some() && !is_file,
                "--resume: standard input cannot be read again, so that nothing can be resumed: name a --file",
            ),
            (self.resume_file.is_some() && self.mode == Mode::Delete && !has_default_key, {
                "--resume: --mode delete with --upsertFields may delete a second document where a deletion is repeated"
            }),
            (self.mode == Mode::Insert && !has_default_key, "--upsertFields needs --mode upsert, merge or delete"),
            (self.workers.get() > WORKERS_MAX, "--numInsertionWorkers: 64 are the most"),
            (
                self.validation == Validation::Bypass && self.mode == Mode::Delete,
                "--bypassDocumentValidation has no effect with --mode delete",
            ),
            (self.key_fields.iter().any(String::is_empty), "--upsertFields: a field's name is empty"),
        ];
        match contradictions.into_iter().find(|(is_there, _)| *is_there) {
            Some((_, message)) => Err(ToolError::Usage(message.into())),
            None => Ok(()),
        }
    }

    /// `database.collection`.
    pub fn namespace(&self) -> String {
        format!("{}.{}", self.database, self.collection)
    }

    /// Whether documents are written in the order of the input. Only inserts do without it, as by mongoimport: of several
    /// records with the same key fields, the last one must count.
    pub(super) fn is_ordered(&self) -> bool {
        self.order == InsertionOrder::Maintain || self.mode != Mode::Insert
    }

    /// Whether the run ends at the first document that is refused. Order demands it, as by mongoimport.
    pub(super) fn stops_on_error(&self) -> bool {
        self.on_error == OnError::Stop || self.is_ordered()
    }

    /// A hash of all options that decide which documents are written.
    pub(super) fn fingerprint(&self) -> String {
        let what = format!("{:?}", (self.namespace(), &self.format, self.mode, &self.key_fields));
        format!("{:016x}", xxh3_64(what.as_bytes()))
    }
}
