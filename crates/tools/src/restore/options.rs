//! What a restore is asked to do.

use crate::ToolError;
use crate::namespaces::{Filter, Renames};
use bunko_bson::Timestamp;
use bunko_client::WriteConcern;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Everything that `bunko restore` can be told. The classic flags' names stand beside the fields.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// Where the dump is.
    pub source: Source,
    /// Whether anything is written (`--dryRun`, `--list`).
    pub mode: Mode,
    /// `--nsInclude`, `--nsExclude`, `--db`, `--collection`: names as they are in the dump.
    pub filter: Filter,
    /// `--nsFrom`, `--nsTo`.
    pub renames: Renames,
    /// `--drop`.
    pub existing: Existing,
    /// `--writeConcern`.
    pub write_concern: WriteConcern,
    /// `--noIndexRestore`.
    pub indexes: Indexes,
    /// `--noOptionsRestore`.
    pub collection_options: CollectionOptions,
    /// `--keepIndexVersion`.
    pub index_version: IndexVersion,
    /// `--stopOnError`.
    pub on_error: OnError,
    /// `--maintainInsertionOrder`, which also stops at the first error.
    pub order: InsertionOrder,
    /// `--numParallelCollections`: files of a directory that are read at the same time.
    pub parallel_collections: NonZeroUsize,
    /// `--numInsertionWorkersPerCollection`; `None` lets their number follow the throughput.
    pub insertion_workers: Option<NonZeroUsize>,
    /// `--bypassDocumentValidation`.
    pub validation: Validation,
    /// `--preserveUUID`, which needs [`Existing::Drop`].
    pub uuids: Uuids,
    /// `--objcheck`.
    pub object_check: ObjectCheck,
    /// `--batchSize`: at most so many documents in one command; `None` leaves it to their bytes.
    pub batch_documents: Option<NonZeroUsize>,
    /// `--oplogReplay`, `--oplogLimit`, `--oplogFile`.
    pub oplog: Oplog,
    /// `--restoreDbUsersAndRoles`.
    pub users_and_roles: UsersAndRoles,
    /// Where the state for `--resume` is kept; `None` keeps none, and what was interrupted begins anew.
    pub resume: Option<ResumeFile>,
    /// `--verify`.
    pub verify: Verify,
    /// Whether a server's bulk path is used where it has one.
    pub bulk: Bulk,
    /// Threads that decompress, and half the number of links at most.
    pub threads: NonZeroUsize,
}

impl RestoreOptions {
    /// A restore of everything with the classic tool's defaults.
    pub fn new(source: Source) -> Self {
        Self {
            source,
            mode: Mode::Restore,
            filter: Filter::default(),
            renames: Renames::default(),
            existing: Existing::Keep,
            write_concern: WriteConcern::default(),
            indexes: Indexes::Restore,
            collection_options: CollectionOptions::Restore,
            index_version: IndexVersion::ChosenByServer,
            on_error: OnError::GoOn,
            order: InsertionOrder::Any,
            parallel_collections: NonZeroUsize::new(4).expect("four is not zero"),
            insertion_workers: None,
            validation: Validation::Enforce,
            uuids: Uuids::New,
            object_check: ObjectCheck::None,
            batch_documents: None,
            oplog: Oplog::None,
            users_and_roles: UsersAndRoles::IfPresent,
            resume: None,
            verify: Verify::Nothing,
            bulk: Bulk::Automatic,
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        }
    }

    /// Refuses options that make no sense together.
    /// # Errors
    /// `Usage` names the flags.
    pub fn validate(&self) -> Result<(), ToolError> {
        let asked_workers = self.insertion_workers.map_or(1, NonZeroUsize::get);
        let has_oplog_file = matches!(self.oplog, Oplog::Replay { file: Some(_), .. });
        let contradictions = [
            (
                matches!(self.source, Source::Absent) && !has_oplog_file,
                "without a dump there is nothing to restore: --oplogReplay with --oplogFile replays a file alone",
            ),
            (
                matches!(self.source, Source::Absent) && self.resume.is_some(),
                "the replay of an oplog alone keeps no state: run it again without --resume and --resumeFile",
            ),
            (
                self.uuids == Uuids::Preserve && self.existing == Existing::Keep,
                "--preserveUUID needs --drop: a collection that is there keeps its UUID",
            ),
            (
                self.verify == Verify::Everything && self.oplog != Oplog::None,
                "--verify compares with the dump's collections, which --oplogReplay changes: use one of them",
            ),
            (
                self.order == InsertionOrder::Maintain && asked_workers > 1,
                "--maintainInsertionOrder sends one batch after the other: --numInsertionWorkersPerCollection above 1 \
                 cannot be combined with it",
            ),
        ];
        match contradictions.into_iter().find(|(is_there, _)| *is_there) {
            Some((_, message)) => Err(ToolError::Usage(message.to_owned())),
            None => Ok(()),
        }
    }

    /// Whether the first error ends the run.
    pub(super) fn stops_on_error(&self) -> bool {
        self.on_error == OnError::Stop || self.order == InsertionOrder::Maintain
    }
}

/// Where a dump is.
#[derive(Clone, Debug)]
pub enum Source {
    /// A dump directory, one directory for each database in it.
    Directory {
        /// The directory.
        path: PathBuf,
        /// Where `--db` says it: the files lie in `path` itself and are those of this database.
        database: Option<String>,
    },
    /// One collection's `.bson` file; its `.metadata.json`, where it lies beside it, is read too.
    File {
        /// The file; `-` is standard input, which has no metadata.
        path: PathBuf,
        /// The database that the documents belong to.
        database: String,
        /// The collection that they belong to.
        collection: String,
    },
    /// An archive.
    Archive(ArchiveSource),
    /// No dump: an oplog in a file of its own ([`Oplog::Replay`]) is replayed alone.
    Absent,
}

/// Where an archive is.
#[derive(Clone, Debug)]
pub enum ArchiveSource {
    /// In a file.
    File(PathBuf),
    /// It comes in at standard input.
    Stdin,
}

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The dump is restored.
    Restore,
    /// The dump is read to its end and checked; nothing is written and no server is asked.
    DryRun,
    /// Only what the dump says of its namespaces is read.
    List,
}

/// What happens to collections that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Documents are added to them.
    Keep,
    /// Those that the dump has too are dropped first.
    Drop,
}

/// Whether indexes are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexes {
    /// All of the dump but those on `_id`, which servers build themselves.
    Restore,
    /// None.
    Skip,
}

/// Whether collections get their options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionOptions {
    /// As in the dump.
    Restore,
    /// The server's defaults.
    Skip,
}

/// Which version new indexes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexVersion {
    /// The server's newest.
    ChosenByServer,
    /// The one in the dump.
    Keep,
}

/// What an error in one document or index means for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// It is counted and told.
    GoOn,
    /// It ends the run.
    Stop,
}

/// Whether documents go in as they come out of the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertionOrder {
    /// In any order.
    Any,
    /// In the dump's order within each collection.
    Maintain,
}

/// Whether the server holds documents against a collection's validator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// It does.
    Enforce,
    /// It does not.
    Bypass,
}

/// Which UUIDs restored collections have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uuids {
    /// New ones.
    New,
    /// Those of the dump.
    Preserve,
}

/// How far documents are checked before they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectCheck {
    /// Their lengths.
    None,
    /// Every value in them.
    Deep,
}

/// Whether an oplog is replayed once all collections are restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Oplog {
    /// No.
    None,
    /// Yes.
    Replay {
        /// Only entries before this one.
        limit: Option<Timestamp>,
        /// A file of entries, for a dump that has none, or for no dump at all.
        file: Option<PathBuf>,
    },
}

/// Which users and roles are restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsersAndRoles {
    /// Those of `admin`, if the dump has them and the filter takes them; a server that cannot take them is told of as a
    /// warning.
    IfPresent,
    /// None.
    Skip,
    /// Those of one database; that they are not there or that the server cannot take them is an error.
    Of {
        /// The database as the dump names it.
        database: String,
    },
}

/// Where the state of an interrupted restore is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeFile {
    /// The file; a restore that was not interrupted removes it.
    pub path: PathBuf,
    /// What a state that is there already means.
    pub mode: Resume,
}

/// What the state of an earlier restore means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Nothing: it is overwritten.
    Fresh,
    /// What it says is done is not done again. Without a state everything is done, and what is there already, byte for
    /// byte, is no failure.
    Continue,
}

/// Whether the server's collections are compared with the dump at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// No.
    Nothing,
    /// Counts, checksums over all documents, and indexes.
    Everything,
}

/// Whether a server's bulk path is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bulk {
    /// Where the server has one and the order of documents does not matter.
    Automatic,
    /// The same, but the first so many bytes of documents go through the server's log: it takes them in faster, and brings
    /// them to where they stay later. More than that it would have to move meanwhile.
    Behind {
        /// How many bytes.
        log_bytes: u64,
    },
    /// `insert` is.
    Never,
}
