//! Facts about a command, from the table of commands. Privileges, the audit event and the function that runs the
//! command are not here, because they need the server itself.

use crate::Request;
use crate::counted_as::{Opcounter, OperationClass, UsageKind};
use crate::field_kinds::{Field, Kind, field};
use crate::query_shape::ShapePart;
use bunko_bson::DocumentRef;

/// Facts about one command.
pub struct CommandFacts {
    /// The name that `listCommands` shows.
    pub name: &'static str,
    /// Other spellings, used by old clients.
    pub aliases: &'static [&'static str],
    /// The command's own fields with their kinds, besides the first and the generic ones. `*` alone allows any field.
    pub fields: &'static [Field],
    /// Fields that only MongoDB's servers send each other, besides those of all commands. They are refused as not
    /// supported yet.
    pub internal_fields: &'static [&'static str],
    /// Array fields that may also come as a document sequence.
    pub sequences: &'static [&'static str],
    /// The treatment of documents in a sequence that are not valid BSON.
    pub invalid_documents: InvalidDocuments,
    /// The databases that the command may run against.
    pub databases: Databases,
    /// How transactions may use the command.
    pub transaction: TransactionUse,
    /// Where the command reads documents.
    pub reads: ReadsFrom,
    /// The stored data that the command changes.
    pub changes: Changes,
    /// The read concerns that the command allows.
    pub read_concern: ReadConcernUse,
    /// Whether the command takes a write concern.
    pub write_concern: WriteConcernUse,
    /// Whether a client may send the command again without its being done twice.
    pub retry: Retry,
    /// The command's place in the Stable API.
    pub stable_api: Stability,
    /// Whether the command waits for a turn while many long commands run.
    pub queueing: Queueing,
    /// Whether the command's messages may be compressed.
    pub compression: Compression,
    /// The fields that are hidden when the command is shown.
    pub secrets: Secrets,
    /// How `explain` treats the command.
    pub explain: Explanation,
    /// The command's entries in the profiler.
    pub profiling: Profiling,
    /// The command's class in `opLatencies`.
    pub class: OperationClass,
    /// The command's kind in `top` and `currentOp`.
    pub usage: UsageKind,
    /// The command's counter in `opcounters`.
    pub opcounter: Opcounter,
    /// Whether the server's default time limit for reads applies.
    pub time_limit: TimeLimit,
    /// Whether the command's expressions see a cluster time on a standalone server.
    pub own_time: OwnTime,
    /// Whether the command may use the oplog and the collections of sessions, which are not stored.
    pub unstored: UnstoredUse,
    /// Whether the command may carry `encryptionInformation`.
    pub encryption: EncryptionUse,
    /// Whether the failpoint `failCommand` applies to the command.
    pub fail_point: FailPointUse,
    /// Whether the command builds indexes, whose progress `currentOp` then shows.
    pub index_build: IndexBuildUse,
    /// The fields of the command's query shape; empty if it has no shape.
    pub query_shape: &'static [(&'static str, ShapePart)],
    /// Whether operators can make settings for the shapes of the command.
    pub query_settings: SettingsUse,
}

impl CommandFacts {
    /// A command that reads and changes no documents, runs on any database, and allows nothing special. Entries take
    /// their remaining facts from here. The name is always their own.
    pub const PLAIN: Self = Self {
        name: "",
        aliases: &[],
        fields: &[],
        internal_fields: &[],
        sequences: &[],
        invalid_documents: InvalidDocuments::Refused,
        databases: Databases::Any,
        transaction: TransactionUse::Refused,
        reads: ReadsFrom::Nothing,
        changes: Changes::None,
        read_concern: ReadConcernUse::LocalOnly,
        write_concern: WriteConcernUse::Refused,
        retry: Retry::Unsafe,
        stable_api: Stability::Outside,
        queueing: Queueing::Queued,
        compression: Compression::Allowed,
        secrets: Secrets::None,
        explain: Explanation::Refused,
        profiling: Profiling::Whole,
        class: OperationClass::Command,
        usage: UsageKind::Command,
        opcounter: Opcounter::Command,
        time_limit: TimeLimit::OnlyItsOwn,
        own_time: OwnTime::Hidden,
        unstored: UnstoredUse::Refused,
        encryption: EncryptionUse::Refused,
        fail_point: FailPointUse::Applies,
        index_build: IndexBuildUse::None,
        query_shape: &[],
        query_settings: SettingsUse::None,
    };

    /// Whether the command with this body changes something, so that it waits while `fsync` holds writes back.
    pub fn writes(&self, body: DocumentRef<'_>) -> bool {
        self.changes.is_certain() || self.changes.is_asked_for(body)
    }

    /// Whether the command's queries have a shape, by which statistics are gathered.
    pub fn has_query_shape(&self) -> bool {
        !self.query_shape.is_empty()
    }

    /// Whether an operator can make settings for the shapes of the command's queries.
    pub fn takes_query_settings(&self) -> bool {
        self.query_settings == SettingsUse::ByShape
    }

    /// Whether the command is `explain`.
    pub fn is_explain(&self) -> bool {
        self.explain == Explanation::Itself
    }
}

/// `fields` of a command whose field names are not fixed, such as names of parameters or sections.
pub const ANY_FIELDS: &[Field] = &[field("*", Kind::Own)];

/// Whether operators can make settings for the shapes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsUse {
    /// There are no settings for the command.
    None,
    /// Settings belong to the command's query shape.
    ByShape,
}

/// Databases against which a command may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Databases {
    /// The command may run against any database.
    Any,
    /// The command may run against `admin` alone.
    Admin,
    /// Only `admin`, and only on a server with test commands enabled; elsewhere the command does not exist.
    AdminOfTests,
    /// Any, on a server with test commands enabled.
    AnyOfTests,
}

impl Databases {
    /// Whether the command exists only with test commands enabled.
    pub fn is_of_tests(self) -> bool {
        matches!(self, Self::AdminOfTests | Self::AnyOfTests)
    }

    /// Whether the command runs only against `admin`.
    pub fn is_admin_only(self) -> bool {
        matches!(self, Self::Admin | Self::AdminOfTests)
    }
}

/// How the command treats documents in a sequence that are not valid BSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidDocuments {
    /// The whole command is refused.
    Refused,
    /// The command reports an error for each of them.
    Reported,
}

/// How a command may be used in a transaction.
/// Source: MongoDB manual 8.2, "Transactions and Operations".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionUse {
    /// Not allowed in a transaction.
    Refused,
    /// Allowed as any statement.
    Anywhere,
    /// Allowed as any statement but the first.
    NotFirst,
    /// Commits the transaction.
    Commits,
    /// Aborts the transaction.
    Aborts,
}

impl TransactionUse {
    /// Whether the command ends the transaction.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Commits | Self::Aborts)
    }
}

/// Where a command reads documents. Reads end when their client disconnects; other commands continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadsFrom {
    /// Nowhere, or only in order to change the documents.
    Nothing,
    /// In the collection that its first value names.
    Collection,
    /// From a cursor. The field `collection` names the cursor's collection.
    Cursor,
}

/// The stored data that a command changes. `fsync` with `lock` holds such commands back.
#[derive(Clone, Copy)]
pub enum Changes {
    /// Nothing, or something that `fsync` does not hold back.
    None,
    /// Documents of the collection that its first value names.
    Documents,
    /// Documents of the collections in `nsInfo`.
    DocumentsOfSeveral,
    /// Anything else that is stored: collections, indexes, users, settings, the writes of a transaction.
    Other,
    /// Something that is stored, such as the output of a pipeline, if this function finds it in the command's body.
    Output(fn(DocumentRef<'_>) -> bool),
}

impl Changes {
    /// Whether every command of this kind changes something.
    pub fn is_certain(self) -> bool {
        matches!(self, Self::Documents | Self::DocumentsOfSeveral | Self::Other)
    }

    /// Whether a command of this kind changes something because of its body.
    pub fn is_asked_for(self, body: DocumentRef<'_>) -> bool {
        matches!(self, Self::Output(has_output) if has_output(body))
    }
}

/// The read concerns that a command allows outside transactions.
/// Source: MongoDB manual 8.2, "Read Concern and Operations", "Read Concern \"snapshot\"".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadConcernUse {
    /// Only `local`.
    LocalOnly,
    /// All levels, and past states.
    AllLevels,
    /// All levels but `snapshot`.
    NoSnapshot,
    /// All levels of the explained command, except `snapshot` on a member of a set.
    OfExplained,
    /// All levels, without effect: the cursor keeps the level that it was opened with.
    KeptByCursor,
}

impl ReadConcernUse {
    /// Whether levels other than `local` have an effect.
    pub fn has_levels(self) -> bool {
        matches!(self, Self::AllLevels | Self::NoSnapshot | Self::OfExplained)
    }
}

/// Whether a command takes a write concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteConcernUse {
    /// The command takes none.
    Refused,
    /// The command takes one, even if the request changes nothing.
    Taken,
    /// The command takes one if the request has an output.
    WithOutput,
}

/// Whether a client may send a command with the same transaction number again without its being done twice.
/// Source: MongoDB manual 8.2, "Retryable Writes".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The server refuses a transaction number outside a transaction.
    Unsafe,
    /// The session remembers the statements that are done, so that a repetition does nothing.
    Safe,
}

/// The place of a command in the Stable API.
/// Source: MongoDB manual 8.2, "Stable API".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// Not in version 1.
    Outside,
    /// In version 1, except for these fields.
    Version1 {
        /// The fields that are outside.
        fields_outside: &'static [&'static str],
    },
}

impl Stability {
    /// In version 1 with all fields.
    pub const WHOLE: Self = Self::Version1 { fields_outside: &[] };
}

/// Whether a command waits for a turn while many long commands run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// The command waits for a turn.
    Queued,
    /// The command runs at once: it shows what the server does or ends an operation, or others may wait for its end.
    AtOnce,
}

/// Whether a command's reply may be compressed.
/// Source: MongoDB specifications, "Wire Compression in Drivers", "Messages not allowed to be compressed".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// The reply may be compressed.
    Allowed,
    /// The reply is never compressed: it carries secrets next to text that an attacker may choose, and the compressed
    /// length would betray them.
    Never,
}

/// The fields of a command that hold a secret, or values from which a secret could be guessed.
#[derive(Clone, Copy)]
pub enum Secrets {
    /// None of the command's known fields.
    None,
    /// These fields. Unknown fields are hidden too if the command has a list of fields, because an unknown field may be
    /// a mistyped secret. All other fields are searched for names of secrets.
    Fields(&'static [&'static str]),
    /// Fields with the name of a secret, at any depth: the command takes settings or documents of many kinds.
    Named,
    /// Fields with the name of a secret, if the function finds that the command is about the collections of users.
    OfUsers(fn(&Request<'_>) -> bool),
    /// The secrets of the command that is explained, whose facts the function finds.
    OfExplained(FindFacts),
}

/// Finds the facts of a command by its name.
pub type FindFacts = fn(&str) -> Option<&'static CommandFacts>;

/// How `explain` treats a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// `explain` refuses the command.
    Refused,
    /// As the query of a `find`.
    Find,
    /// As the query of a `distinct`.
    Distinct,
    /// As a count.
    Count,
    /// As a pipeline.
    Pipeline,
    /// As the pipeline that a `mapReduce` is turned into.
    MapReduce,
    /// As a write.
    Write(ExplainedWrite),
    /// The command is `explain` itself, which is refused.
    Itself,
}

/// The writes that can be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainedWrite {
    /// The only statement in `updates`.
    Update,
    /// The only statement in `deletes`.
    Delete,
    /// A `findAndModify`.
    FindAndModify,
    /// The only operation in `ops`.
    Bulk,
}

/// A command's entries in the profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profiling {
    /// One entry for the command.
    Whole,
    /// One entry for each statement.
    ByStatement,
    /// No entry. The log still shows the command.
    Never,
}

/// Whether the default time limit of reads applies to a command without its own `maxTimeMS`.
/// Source: MongoDB manual 8.2, "defaultMaxTimeMS".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// Only `maxTimeMS` limits the command.
    OnlyItsOwn,
    /// The default limit applies.
    OfReads,
}

/// Whether expressions of a command see the server's own time as `$$CLUSTER_TIME` on a standalone server, which has no
/// cluster time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnTime {
    /// Expressions do not see the time.
    Hidden,
    /// Expressions see the server's own time, because the command may update by pipelines.
    Shown,
}

/// Whether a command may use collections that are not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnstoredUse {
    /// The command is refused on such collections.
    Refused,
    /// The command reads all of them.
    Reads,
    /// The command reads the oplog, or reports on it. It is refused on other such collections.
    ReadsOplog,
    /// The command is refused on such collections, and the oplog has an error of its own for dropping it.
    RefusedAsDrop,
    /// The command is refused on such collections, and collections have errors of their own for indexes.
    RefusedAsIndexBuild,
}

/// Whether a command may carry `encryptionInformation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncryptionUse {
    /// The field is refused.
    Refused,
    /// The field is allowed.
    Allowed,
}

/// Whether the failpoint `failCommand` applies to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailPointUse {
    /// The failpoint applies.
    Applies,
    /// The failpoint does not apply to the command, so that a failpoint can always be switched off.
    Exempt,
}

/// Whether a command builds indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexBuildUse {
    /// The command builds no indexes.
    None,
    /// The command builds the indexes in its field `indexes` on the collection that its first value names.
    Builds,
}
