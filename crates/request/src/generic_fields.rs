//! The names of fields that any command may carry.

/// Fields that any command may carry. Fields that drivers send with each command come first, as names are searched in
/// this order.
pub const GENERIC: &[&str] = &[
    "$db",
    "lsid",
    "txnNumber",
    "$clusterTime",
    "$readPreference",
    "$configTime",
    "$topologyTime",
    "$audit",
    "$client",
    "mayBypassWriteBlocking",
    "rawData",
    "writeConcern",
    "readConcern",
    "maxTimeMS",
    "comment",
    "autocommit",
    "startTransaction",
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
    "stmtId",
    INTERNAL_MAX_TIME,
];

/// The field that members of a cluster send to each other instead of `maxTimeMS`.
pub const INTERNAL_MAX_TIME: &str = "maxTimeMSOpOnly";

/// Whether any command may carry a field of this name.
pub fn is_generic(name: &str) -> bool {
    GENERIC.contains(&name)
}
