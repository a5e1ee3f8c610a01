//! Chooses the command that carries documents, and the size of its batches.

use super::batch::Limits;
use super::options::{Bulk, EmptyTimestamps, InsertionOrder, RestoreOptions, Validation};
use super::target::RestoredNamespace;
use crate::Link;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_client::{Acknowledgement, ClientError, CommandError, WriteConcern};

/// Documents in one command, at most.
/// Source: MongoDB limits, "Write Command Batch Limit Size".
const DOCUMENTS_MAX: usize = 100_000;
/// Documents of one `insert`, in bytes: enough to hide the round trip, and few enough that several links share the
/// run's memory.
const INSERT_BYTES: usize = 4 * 1024 * 1024;
/// Documents of one bulk insert, in bytes: the server sorts each batch, and larger batches make fewer runs to merge.
const BULK_BYTES: usize = 16 * 1024 * 1024;
/// The bulk path's command, with the fields and the reply of `insert`. The server may store the documents without
/// writing them to its log.
const BULK_COMMAND: &str = "bunkoBulkInsert";
/// MongoDB's `CommandNotFound`, and `Unauthorized` for users who may write but not list commands.
const NO_LISTING: [i32; 2] = [59, 13];

/// A command that takes documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `insert`, which every server has.
    Insert,
    /// The bulk path of a Bunko server.
    Bulk,
}

/// Whether a command must be journaled before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Journal {
    /// As the write concern says.
    AsAsked,
    /// Always, even if the write concern does not ask for it.
    Required,
}

impl Form {
    /// Asks the server which commands it has.
    /// # Errors
    /// The error of the connection, or a refusal other than [`NO_LISTING`].
    pub(super) fn choose(link: &mut dyn Link, options: &RestoreOptions) -> Result<Self, ClientError> {
        if options.bulk == Bulk::Never || options.order == InsertionOrder::Maintain {
            return Ok(Self::Insert);
        }
        match link.run("admin", &DocumentBuf::new().with("listCommands", 1_i32)) {
            Ok(reply) => {
                let commands = reply.as_ref().get("commands").and_then(ValueRef::as_document);
                let has_bulk = commands.is_some_and(|commands| commands.get(BULK_COMMAND).is_some());
                Ok(if has_bulk { Self::Bulk } else { Self::Insert })
            }
            Err(ClientError::Command(CommandError { code, .. })) if NO_LISTING.contains(&code) => Ok(Self::Insert),
            Err(error) => Err(error),
        }
    }

    /// Bytes of documents in a part and in a command, unless one document is longer.
    pub(super) fn batch_bytes(self) -> usize {
        match self {
            Self::Insert => INSERT_BYTES,
            Self::Bulk => BULK_BYTES,
        }
    }

    pub(super) fn limits(self, options: &RestoreOptions) -> Limits {
        let asked = options.batch_documents.map_or(DOCUMENTS_MAX, std::num::NonZeroUsize::get);
        Limits { bytes: self.batch_bytes(), count: asked.min(DOCUMENTS_MAX) }
    }

    /// The command without its documents, which follow as the sequence `documents`.
    pub(super) fn command(self, target: &RestoredNamespace, options: &RestoreOptions, journal: Journal) -> DocumentBuf {
        let name = match self {
            Self::Insert => "insert",
            Self::Bulk => BULK_COMMAND,
        };
        let concern = concern(&options.write_concern, journal);
        let mut command = DocumentBuf::new()
            .with(name, &target.data_collection())
            .with("ordered", options.order == InsertionOrder::Maintain)
            .with("writeConcern", &concern);
        if options.validation == Validation::Bypass {
            command.append("bypassDocumentValidation", true);
        }
        if options.empty_timestamps == EmptyTimestamps::Kept {
            command.append("bypassEmptyTsReplacement", true);
        }
        command
    }
}

/// The write concern of a command.
pub(super) fn concern(asked: &WriteConcern, journal: Journal) -> DocumentBuf {
    let mut concern = asked.clone();
    if journal == Journal::Required {
        concern.journal = Some(true);
        // A write concern without a reply would acknowledge nothing.
        if !concern.expects_reply() {
            concern.w = Acknowledgement::Members(1);
        }
    }
    concern.to_document()
}

/// Whether writes acknowledged with this concern survive a crash of the server.
pub(super) fn is_journaled(asked: &WriteConcern) -> bool {
    asked.journal == Some(true) || (asked.w == Acknowledgement::Majority && asked.journal.is_none())
}
