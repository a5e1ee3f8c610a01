//! The locks that a mongod would hold for an operation, as `currentOp` and the profiler show them.
//!
//! This server has no such locks: the modes are derived from the command's class, never from a wait. Operations wait
//! only for the write lock (`fsync` with `lock`).

use bunko_bson::DocumentBuf;
use bunko_request::counted_as::OperationClass;
use bunko_request::facts::CommandFacts;

/// How a command uses its collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// The command reads a snapshot, for which mongod takes only the global lock.
    Read,
    /// The command changes documents.
    Write,
    /// The command changes the definition of a collection.
    Definition,
    /// The command uses no collection.
    None,
}

impl Locking {
    /// The lock use of a command. `has_collection` says whether the command is about a collection.
    pub fn of(command: &CommandFacts, has_collection: bool) -> Self {
        match command.class {
            OperationClass::Write => Self::Write,
            OperationClass::Read => Self::Read,
            OperationClass::Command if command.changes.is_certain() => Self::Definition,
            OperationClass::Command if has_collection => Self::Read,
            OperationClass::Command => Self::None,
        }
    }

    /// The modes by resource.
    /// Source: MongoDB manual 8.2, "currentOp Output Fields", `locks`.
    fn modes(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::None => &[],
            Self::Read => &[("Global", "r")],
            Self::Write => &[
                ("FeatureCompatibilityVersion", "w"),
                ("ReplicationStateTransition", "w"),
                ("Global", "w"),
                ("Database", "w"),
                ("Collection", "w"),
            ],
            Self::Definition => &[
                ("FeatureCompatibilityVersion", "w"),
                ("ReplicationStateTransition", "w"),
                ("Global", "w"),
                ("Database", "w"),
                ("Collection", "W"),
            ],
        }
    }

    /// `locks` of a running operation.
    pub fn held(self) -> DocumentBuf {
        self.modes().iter().fold(DocumentBuf::new(), |held, (resource, mode)| held.with(resource, *mode))
    }

    /// `locks` of a finished operation.
    pub fn acquired(self) -> DocumentBuf {
        self.modes().iter().fold(DocumentBuf::new(), |acquired, (resource, mode)| {
            acquired.with(resource, &DocumentBuf::new().with("acquireCount", &DocumentBuf::new().with(mode, 1_i64)))
        })
    }
}
