//! Plan of a dump, as it is recorded.

use super::extended_json_text as text;
use super::ranges::Range;
use crate::Link;
use bunko_bson::{DocumentBuf, Timestamp};
use serde::{Deserialize, Serialize};

/// Kind of a namespace in the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Kind {
    Collection,
    View,
    TimeSeries,
    /// One database's part of the users or roles.
    Authorisation,
    Oplog,
}

/// Order in which documents arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Order {
    /// By `_id`: a reader that loses the cursor continues after the last document.
    ById,
    /// In storage order, which is faster, and for capped collections the order that matters. A reader that loses the
    /// cursor starts again.
    Natural,
    /// In the order in which the server finds them: views, and documents that a filter selects. As [`Self::Natural`]
    /// otherwise.
    Found,
}

/// Whether the dump can be resumed after an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resumability {
    /// The output is files.
    Resumable,
    /// The output is a pipe or a device.
    Once,
}

/// One namespace of the dump.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Planned {
    pub database: String,
    /// Name of the documents' collection in the dump.
    pub collection: String,
    /// Name of the metadata in the dump. It differs from `collection` only for time series.
    pub metadata_name: String,
    /// Namespace from which the documents are read.
    pub source_database: String,
    pub source_collection: String,
    /// Filter for the documents to read; `None` for all.
    #[serde(with = "text::optional_document")]
    pub filter: Option<DocumentBuf>,
    pub kind: Kind,
    /// The namespace's metadata in JSON; empty for the oplog.
    pub metadata: String,
    /// The server's estimate.
    pub documents: u64,
    /// The server's estimate.
    pub size_bytes: u64,
    pub order: Order,
    /// Ranges to read; empty if there are no documents to read.
    pub ranges: Vec<Range>,
}

impl Planned {
    /// `database.collection`, as messages and progress name it.
    pub fn namespace(&self) -> String {
        if self.database.is_empty() {
            self.collection.clone()
        } else {
            format!("{}.{}", self.database, self.collection)
        }
    }
}

/// The whole dump, as it is recorded before it begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Plan {
    /// [`super::DumpOptions::fingerprint`].
    pub fingerprint: String,
    pub server_version: String,
    /// Seconds and increment of the oplog entry from which the oplog is dumped ([`super::oplog::start`]).
    pub oplog_start: Option<(u32, u32)>,
    /// Large collections first, then users and roles, the oplog last.
    pub collections: Vec<Planned>,
}

impl Plan {
    pub fn oplog_start(&self) -> Option<Timestamp> {
        self.oplog_start.map(|(seconds, increment)| Timestamp { seconds, increment })
    }
}

/// Adds the link's read preference, if it has one.
pub(super) fn with_read_preference(mut command: DocumentBuf, link: &dyn Link) -> DocumentBuf {
    if let Some(read_preference) = link.read_preference() {
        command.append("$readPreference", read_preference);
    }
    command
}

/// Name of a kind in metadata and preludes.
pub(super) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Collection | Kind::Authorisation => "collection",
        Kind::View => "view",
        Kind::TimeSeries => "timeseries",
        Kind::Oplog => "",
    }
}
