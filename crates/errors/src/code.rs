//! The numbers and names that clients switch on.

use std::fmt;

/// An error code as clients see it: a named one, or a "location" that MongoDB never named.
/// Source: MongoDB manual, "Error Codes".
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub i32);

macro_rules! codes {
    ($($constant:ident = $number:literal $name:literal;)*) => {
        #[allow(missing_docs)]
        impl ErrorCode {
            $(pub const $constant: Self = Self($number);)*

            /// All named codes.
            #[cfg(test)]
            const NAMED: &'static [(i32, &'static str)] = &[$(($number, $name),)*];

            /// The name of a named code.
            fn known_name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    INTERNAL_ERROR = 1 "InternalError";
    BAD_VALUE = 2 "BadValue";
    NO_SUCH_KEY = 4 "NoSuchKey";
    GRAPH_CONTAINS_CYCLE = 5 "GraphContainsCycle";
    HOST_UNREACHABLE = 6 "HostUnreachable";
    UNKNOWN_ERROR = 8 "UnknownError";
    FAILED_TO_PARSE = 9 "FailedToParse";
    USER_NOT_FOUND = 11 "UserNotFound";
    UNSUPPORTED_FORMAT = 12 "UnsupportedFormat";
    UNAUTHORIZED = 13 "Unauthorized";
    TYPE_MISMATCH = 14 "TypeMismatch";
    OVERFLOW = 15 "Overflow";
    INVALID_LENGTH = 16 "InvalidLength";
    PROTOCOL_ERROR = 17 "ProtocolError";
    AUTHENTICATION_FAILED = 18 "AuthenticationFailed";
    ILLEGAL_OPERATION = 20 "IllegalOperation";
    INVALID_BSON = 22 "InvalidBSON";
    ALREADY_INITIALIZED = 23 "AlreadyInitialized";
    LOCK_TIMEOUT = 24 "LockTimeout";
    NAMESPACE_NOT_FOUND = 26 "NamespaceNotFound";
    INDEX_NOT_FOUND = 27 "IndexNotFound";
    PATH_NOT_VIABLE = 28 "PathNotViable";
    CANNOT_BACKFILL_ARRAY = 30 "CannotBackfillArray";
    ROLE_NOT_FOUND = 31 "RoleNotFound";
    FILE_STREAM_FAILED = 39 "FileStreamFailed";
    CONFLICTING_UPDATE_OPERATORS = 40 "ConflictingUpdateOperators";
    CURSOR_NOT_FOUND = 43 "CursorNotFound";
    NAMESPACE_EXISTS = 48 "NamespaceExists";
    MAX_TIME_MS_EXPIRED = 50 "MaxTimeMSExpired";
    DOLLAR_PREFIXED_FIELD_NAME = 52 "DollarPrefixedFieldName";
    INVALID_ID_FIELD = 53 "InvalidIdField";
    NOT_SINGLE_VALUE_FIELD = 54 "NotSingleValueField";
    EMPTY_FIELD_NAME = 56 "EmptyFieldName";
    DOTTED_FIELD_NAME = 57 "DottedFieldName";
    COMMAND_NOT_FOUND = 59 "CommandNotFound";
    WRITE_CONCERN_FAILED = 64 "WriteConcernFailed";
    MULTIPLE_ERRORS_OCCURRED = 65 "MultipleErrorsOccurred";
    IMMUTABLE_FIELD = 66 "ImmutableField";
    CANNOT_CREATE_INDEX = 67 "CannotCreateIndex";
    INDEX_ALREADY_EXISTS = 68 "IndexAlreadyExists";
    INVALID_OPTIONS = 72 "InvalidOptions";
    INVALID_NAMESPACE = 73 "InvalidNamespace";
    NODE_NOT_FOUND = 74 "NodeNotFound";
    NO_REPLICATION_ENABLED = 76 "NoReplicationEnabled";
    UNKNOWN_REPL_WRITE_CONCERN = 79 "UnknownReplWriteConcern";
    INDEX_OPTIONS_CONFLICT = 85 "IndexOptionsConflict";
    INDEX_KEY_SPECS_CONFLICT = 86 "IndexKeySpecsConflict";
    INVALID_ROLE_MODIFICATION = 87 "InvalidRoleModification";
    OPERATION_FAILED = 96 "OperationFailed";
    UNSATISFIABLE_WRITE_CONCERN = 100 "UnsatisfiableWriteConcern";
    NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE = 103 "NewReplicaSetConfigurationIncompatible";
    NOT_EXACT_VALUE_FIELD = 111 "NotExactValueField";
    WRITE_CONFLICT = 112 "WriteConflict";
    COMMAND_NOT_SUPPORTED = 115 "CommandNotSupported";
    CONFLICTING_OPERATION_IN_PROGRESS = 117 "ConflictingOperationInProgress";
    DOCUMENT_VALIDATION_FAILURE = 121 "DocumentValidationFailure";
    INVALID_REPLICA_SET_CONFIG = 93 "InvalidReplicaSetConfig";
    READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET = 134 "ReadConcernMajorityNotAvailableYet";
    NOT_YET_INITIALIZED = 94 "NotYetInitialized";
    NOT_SECONDARY = 95 "NotSecondary";
    NODE_NOT_ELECTABLE = 104 "NodeNotElectable";
    CONFIGURATION_IN_PROGRESS = 109 "ConfigurationInProgress";
    PRIMARY_STEPPED_DOWN = 189 "PrimarySteppedDown";
    CURRENT_CONFIG_NOT_COMMITTED_YET = 308 "CurrentConfigNotCommittedYet";
    NOT_PRIMARY_OR_SECONDARY = 13436 "NotPrimaryOrSecondary";
    CLUSTER_TIME_FAILS_RATE_LIMITER = 205 "ClusterTimeFailsRateLimiter";
    STALE_CLUSTER_TIME = 209 "StaleClusterTime";
    KEY_NOT_FOUND = 211 "KeyNotFound";
    INVALID_RESUME_TOKEN = 260 "InvalidResumeToken";
    EXCEEDED_TIME_LIMIT = 262 "ExceededTimeLimit";
    UNSATISFIABLE_COMMIT_QUORUM = 278 "UnsatisfiableCommitQuorum";
    CHANGE_STREAM_FATAL_ERROR = 280 "ChangeStreamFatalError";
    CHANGE_STREAM_HISTORY_LOST = 286 "ChangeStreamHistoryLost";
    COMMAND_FAILED = 125 "CommandFailed";
    NOT_A_REPLICA_SET = 123 "NotAReplicaSet";
    JS_INTERPRETER_FAILURE = 139 "JSInterpreterFailure";
    INVALID_SSL_CONFIGURATION = 140 "InvalidSSLConfiguration";
    EXCEEDED_MEMORY_LIMIT = 146 "ExceededMemoryLimit";
    CAPPED_POSITION_LOST = 136 "CappedPositionLost";
    CANNOT_INDEX_PARALLEL_ARRAYS = 171 "CannotIndexParallelArrays";
    QUERY_PLAN_KILLED = 175 "QueryPlanKilled";
    AMBIGUOUS_INDEX_KEY_PATTERN = 181 "AmbiguousIndexKeyPattern";
    CLIENT_METADATA_MISSING_FIELD = 183 "ClientMetadataMissingField";
    CLIENT_METADATA_APP_NAME_TOO_LARGE = 184 "ClientMetadataAppNameTooLarge";
    CLIENT_METADATA_DOCUMENT_TOO_LARGE = 185 "ClientMetadataDocumentTooLarge";
    CLIENT_METADATA_CANNOT_BE_MUTATED = 186 "ClientMetadataCannotBeMutated";
    INTERRUPTED_AT_SHUTDOWN = 11600 "InterruptedAtShutdown";
    INTERRUPTED = 11601 "Interrupted";
    INTERRUPTED_DUE_TO_REPL_STATE_CHANGE = 11602 "InterruptedDueToReplStateChange";
    MAX_STALENESS_OUT_OF_RANGE = 160 "MaxStalenessOutOfRange";
    INCOMPATIBLE_COLLATION_VERSION = 161 "IncompatibleCollationVersion";
    VIEW_DEPTH_LIMIT_EXCEEDED = 165 "ViewDepthLimitExceeded";
    COMMAND_NOT_SUPPORTED_ON_VIEW = 166 "CommandNotSupportedOnView";
    OPTION_NOT_SUPPORTED_ON_VIEW = 167 "OptionNotSupportedOnView";
    INVALID_VIEW_DEFINITION = 182 "InvalidViewDefinition";
    INVALID_PIPELINE_OPERATOR = 168 "InvalidPipelineOperator";
    VIEW_PIPELINE_MAX_SIZE_EXCEEDED = 195 "ViewPipelineMaxSizeExceeded";
    MAX_SUB_PIPELINE_DEPTH_EXCEEDED = 232 "MaxSubPipelineDepthExceeded";
    CURSOR_KILLED = 237 "CursorKilled";
    CONVERSION_FAILURE = 241 "ConversionFailure";
    INDEX_BUILD_ABORTED = 276 "IndexBuildAborted";
    CLIENT_DISCONNECT = 279 "ClientDisconnect";
    QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED = 292 "QueryExceededMemoryLimitNoDiskUseAllowed";
    NO_QUERY_EXECUTION_PLANS = 291 "NoQueryExecutionPlans";
    INVALID_INDEX_SPECIFICATION_OPTION = 197 "InvalidIndexSpecificationOption";
    CANNOT_BUILD_INDEX_KEYS = 201 "CannotBuildIndexKeys";
    NO_SUCH_SESSION = 206 "NoSuchSession";
    INVALID_UUID = 207 "InvalidUUID";
    SNAPSHOT_TOO_OLD = 239 "SnapshotTooOld";
    SNAPSHOT_UNAVAILABLE = 246 "SnapshotUnavailable";
    NO_SUCH_TRANSACTION = 251 "NoSuchTransaction";
    TRANSACTION_TOO_LARGE = 257 "TransactionTooLarge";
    NOT_A_RETRYABLE_WRITE_COMMAND = 50768 "NotARetryableWriteCommand";
    TOO_MANY_LOGICAL_SESSIONS = 261 "TooManyLogicalSessions";
    FAIL_POINT_SET_FAILED = 230 "FailPointSetFailed";
    QUERY_FEATURE_NOT_ALLOWED = 224 "QueryFeatureNotAllowed";
    TRANSACTION_COMMITTED = 256 "TransactionCommitted";
    INCOMPLETE_TRANSACTION_HISTORY = 217 "IncompleteTransactionHistory";
    TRANSACTION_TOO_OLD = 225 "TransactionTooOld";
    OPERATION_NOT_SUPPORTED_IN_TRANSACTION = 263 "OperationNotSupportedInTransaction";
    OBJECT_IS_BUSY = 314 "ObjectIsBusy";
    API_VERSION_ERROR = 322 "APIVersionError";
    API_STRICT_ERROR = 323 "APIStrictError";
    MECHANISM_UNAVAILABLE = 334 "MechanismUnavailable";
    AUDITING_NOT_ENABLED = 344 "AuditingNotEnabled";
    RUNTIME_AUDIT_CONFIGURATION_NOT_ENABLED = 345 "RuntimeAuditConfigurationNotEnabled";
    CANNOT_CONVERT_INDEX_TO_UNIQUE = 359 "CannotConvertIndexToUnique";
    COLLECTION_UUID_MISMATCH = 361 "CollectionUUIDMismatch";
    USER_WRITES_BLOCKED = 371 "UserWritesBlocked";
    QUERY_REJECTED_BY_SETTINGS = 411 "QueryRejectedBySettings";
    OUT_OF_DISK_SPACE = 14031 "OutOfDiskSpace";
    CANNOT_MODIFY = 10003 "CannotGrowDocumentInCappedNamespace";
    BSON_OBJECT_TOO_LARGE = 10334 "BSONObjectTooLarge";
    DUPLICATE_KEY = 11000 "DuplicateKey";
    CURSOR_IN_USE = 12051 "CursorInUse";
    MERGE_STAGE_NO_MATCHING_DOCUMENT = 13113 "MergeStageNoMatchingDocument";
    DATABASE_DIFFER_CASE = 13297 "DatabaseDifferCase";
    BACKGROUND_OPERATION_IN_PROGRESS_FOR_NAMESPACE = 12587 "BackgroundOperationInProgressForNamespace";
    KEY_TOO_LONG = 17280 "KeyTooLong";
    NOT_WRITABLE_PRIMARY = 10107 "NotWritablePrimary";
    NOT_PRIMARY_NO_SECONDARY_OK = 13435 "NotPrimaryNoSecondaryOk";
    IDL_UNKNOWN_FIELD = 40415 "IDLUnknownField";
    IDL_DUPLICATE_FIELD = 40413 "IDLDuplicateField";
    IDL_FAILED_TO_PARSE = 40414 "IDLFailedToParse";
    DOCUMENT_TOO_LARGE_TO_RETURN = 17420 "Location17420";
}

impl ErrorCode {
    /// The `codeName` of a reply: the code's name, or `Location` and the number.
    pub fn name(self) -> String {
        self.known_name().map_or_else(|| format!("Location{}", self.0), str::to_owned)
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::handbook::{Table, check_table};

    #[test]
    fn named_codes_have_names_and_others_are_locations() {
        assert_eq!(ErrorCode::DUPLICATE_KEY.name(), "DuplicateKey");
        assert_eq!(ErrorCode(15998).name(), "Location15998");
    }

    #[test]
    fn the_handbook_has_every_named_code() {
        let mut named: Vec<_> = ErrorCode::NAMED.iter().filter(|(_, name)| !name.starts_with("Location")).collect();
        named.sort_unstable();
        let mut table = Table::new(&["Code", "Name"]);
        for (number, name) in named {
            table.push([number.to_string(), (*name).to_owned()]);
        }
        check_table("reference/errors.md", "named codes", &table);
    }

    /// The codes that the page explains have their names.
    #[test]
    fn the_handbook_names_codes_as_replies_do() {
        let page = include_str!("../../../docs/reference/errors.md");
        let pairs = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |")).map(|(cell, _)| cell);
        let mut count = 0;
        for pair in pairs.flat_map(|cell| cell.split(", ")) {
            let Some((Ok(number), name)) = pair.split_once(' ').map(|(number, name)| (number.parse(), name)) else {
                continue;
            };
            assert_eq!(name, format!("`{}`", ErrorCode(number).name()));
            count += 1;
        }
        assert!(count > 10, "{count} codes");
    }
}
