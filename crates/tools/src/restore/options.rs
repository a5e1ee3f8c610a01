//! Options of a restore.

use crate::namespaces::{Filter, Renames};
use crate::{PipeEnd, ToolError};
use bunko_bson::Timestamp;
use bunko_client::WriteConcern;
use std::io::PipeReader;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// All options of `bunko restore`. Each field names its flags of the classic tool.
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
    /// Whether zero timestamps stay.
    pub empty_timestamps: EmptyTimestamps,
    /// `--preserveUUID`, which needs [`Existing::Drop`].
    pub uuids: Uuids,
    /// `--objcheck`.
    pub object_check: ObjectCheck,
    /// `--batchSize`: most documents in one command; if `None`, only their bytes limit a batch.
    pub batch_documents: Option<NonZeroUsize>,
    /// `--oplogReplay`, `--oplogLimit`, `--oplogFile`.
    pub oplog: Oplog,
    /// `--restoreDbUsersAndRoles`.
    pub users_and_roles: UsersAndRoles,
    /// Where the state for `--resume` is kept. `None` keeps no state, and an interrupted restore begins anew.
    pub resume: Option<ResumeFile>,
    /// `--verify`.
    pub verify: Verify,
    /// Whether a server's bulk path is used, if it has one.
    pub bulk: Bulk,
    /// Number of decompressing threads. Unless `insertion_workers` is set, at most twice as many links insert.
    pub threads: NonZeroUsize,
}

/// Whether the timestamps of zeros at the top of documents stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyTimestamps {
    /// The server replaces them with its time, as for any client.
    OfServer,
    /// Zero timestamps stay (`bypassEmptyTsReplacement`, since MongoDB 8.0).
    Kept,
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
            empty_timestamps: EmptyTimestamps::OfServer,
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

    /// Refuses options that contradict each other.
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
    /// A dump directory with one directory for each database.
    Directory {
        /// The directory.
        path: PathBuf,
        /// With `--db`: the database's name; the files in `path` itself are its collections.
        database: Option<String>,
    },
    /// One collection's `.bson` file, and the `.metadata.json` beside it if there is one.
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
    /// No dump: only an oplog file ([`Oplog::Replay`]) is replayed.
    Absent,
}

/// Where an archive is.
#[derive(Clone, Debug)]
pub enum ArchiveSource {
    /// In a file.
    File(PathBuf),
    /// Standard input.
    Stdin,
    /// A dump in this process.
    Pipe(PipeEnd<PipeReader>),
}

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The dump is restored.
    Restore,
    /// The dump is read to its end and checked; nothing is written, and the server is not contacted.
    DryRun,
    /// Only the dump's description of its namespaces is read.
    List,
}

/// How existing collections are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Documents are added to them.
    Keep,
    /// Collections that the dump has too are dropped first.
    Drop,
}

/// Whether indexes are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexes {
    /// All indexes of the dump except those on `_id`, which servers build themselves.
    Restore,
    /// No index is built.
    Skip,
}

/// Whether collections get their options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionOptions {
    /// Collections get the options in the dump.
    Restore,
    /// Collections get the server's defaults.
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

/// Effect of an error in one document or index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// The error is counted and reported.
    GoOn,
    /// The error ends the run.
    Stop,
}

/// Whether documents are inserted in the order of the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertionOrder {
    /// In any order.
    Any,
    /// In the dump's order within each collection.
    Maintain,
}

/// Whether the server checks documents with a collection's validator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// The server checks the documents.
    Enforce,
    /// The server does not check the documents.
    Bypass,
}

/// UUIDs of restored collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uuids {
    /// The server chooses new UUIDs.
    New,
    /// The UUIDs in the dump.
    Preserve,
}

/// How far documents are checked before they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectCheck {
    /// The lengths of documents are checked.
    None,
    /// Every value in the documents is checked.
    Deep,
}

/// Whether an oplog is replayed once all collections are restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Oplog {
    /// No oplog is replayed.
    None,
    /// The oplog is replayed.
    Replay {
        /// Only entries before this one.
        limit: Option<Timestamp>,
        /// A file of entries, for a dump without an oplog, or without any dump.
        file: Option<PathBuf>,
    },
}

/// Which users and roles are restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsersAndRoles {
    /// All users and roles of `admin`, if the dump has them and the filter takes them. A server that cannot take them
    /// causes a warning.
    IfPresent,
    /// Users and roles are left out.
    Skip,
    /// Users and roles of one database. It is an error if the dump lacks them or the server cannot take them.
    Of {
        /// The database's name in the dump.
        database: String,
    },
}

/// Where the state of an interrupted restore is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeFile {
    /// The file; a restore that is not interrupted removes it.
    pub path: PathBuf,
    /// How an existing state is used.
    pub mode: Resume,
}

/// How the state of an earlier restore is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The earlier state is overwritten.
    Fresh,
    /// Work that the state records as done is not repeated. Without a state all work is done, and documents that the
    /// server has already, byte for byte, are not failures.
    Continue,
}

/// Whether the server's collections are compared with the dump at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Nothing is compared.
    Nothing,
    /// Counts, checksums over all documents, and indexes.
    Everything,
}

/// Whether a server's bulk path is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bulk {
    /// The bulk path is used if the server has one and the order of documents does not matter.
    Automatic,
    /// As `Automatic`, but the first bytes of documents go through the server's log. The log takes them in faster, and
    /// the server moves them to their final place later. For more bytes than that, it would have to move them
    /// meanwhile.
    Behind {
        /// Number of bytes.
        log_bytes: u64,
    },
    /// Only `insert` is used.
    Never,
}
