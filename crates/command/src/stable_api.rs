//! `apiVersion` and what goes with it: a client's wish for nothing but what later servers have too.

use crate::fields::wrong_type;
use bunko_bson::ValueRef;
use bunko_errors::{ErrorCode, Failure, Result};

/// The commands of version 1.
/// Source: MongoDB manual, "Stable API".
const COMMANDS: &[&str] = &[
    "aggregate",
    "authenticate",
    "bulkWrite",
    "collMod",
    "count",
    "create",
    "createIndexes",
    "delete",
    "drop",
    "dropDatabase",
    "dropIndexes",
    "endSessions",
    "explain",
    "find",
    "findAndModify",
    "getMore",
    "hello",
    "insert",
    "killCursors",
    "listCollections",
    "listDatabases",
    "listIndexes",
    "ping",
    "refreshSessions",
    "saslContinue",
    "saslStart",
    "update",
];

/// Whether the command of that name is in version 1.
pub(crate) fn has(command: &str) -> bool {
    COMMANDS.contains(&command)
}

/// What a request says of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StableApi {
    has_version: bool,
    has_wish: bool,
    is_strict: bool,
}

impl StableApi {
    /// Reads one of the three fields.
    /// # Errors
    /// `TypeMismatch`; `APIVersionError` for another version than 1.
    pub fn read(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        match (name, value) {
            ("apiVersion", ValueRef::String("1")) => self.has_version = true,
            ("apiVersion", ValueRef::String(_)) => {
                return Err(Failure::new(ErrorCode::API_VERSION_ERROR, "API version must be \"1\""));
            }
            ("apiVersion", _) => return Err(wrong_type(name, value, "string")),
            (_, ValueRef::Boolean(wish)) => {
                self.has_wish = true;
                self.is_strict |= name == "apiStrict" && wish;
            }
            _ => return Err(wrong_type(name, value, "bool")),
        }
        Ok(())
    }

    /// Judges them together.
    /// # Errors
    /// 4886600 for a wish without a version; `APIStrictError` where a strict client runs what version 1 has not.
    pub fn check(self, command: &str) -> Result<()> {
        if self.has_wish && !self.has_version {
            return Err(Failure::new(
                ErrorCode(4_886_600),
                "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion",
            ));
        }
        if self.is_strict && !has(command) {
            return Err(Failure::new(
                ErrorCode::API_STRICT_ERROR,
                format!("Provided apiStrict:true, but the command {command} is not in API Version 1"),
            ));
        }
        Ok(())
    }
}
