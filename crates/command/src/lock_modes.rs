//! The locks that a mongod would hold for an operation, in the words of `currentOp` and the profiler.
//!
//! This server has no such locks: the modes follow from the command's class, and never from a wait. Operations wait for the
//! lock against writes (`fsync` with `lock`) alone.

use crate::generic_options::is_held_back_for_name;
use crate::operation_class::OperationClass;
use bunko_bson::DocumentBuf;

/// How a command uses its collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locking {
    /// It reads one state, for which mongod takes no lock below the global one.
    Read,
    /// It changes documents.
    Write,
    /// It changes a collection as a whole.
    Definition,
    /// It works with no collection.
    None,
}

impl Locking {
    /// That of a command; `has_collection` tells whether it concerns one.
    pub fn of(command: &str, has_collection: bool) -> Self {
        match OperationClass::of(command) {
            OperationClass::Write => Self::Write,
            OperationClass::Read => Self::Read,
            OperationClass::Command if is_held_back_for_name(command) => Self::Definition,
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

    /// `locks` of an operation at work.
    pub fn held(self) -> DocumentBuf {
        self.modes().iter().fold(DocumentBuf::new(), |held, (resource, mode)| held.with(resource, *mode))
    }

    /// `locks` of an operation that is over.
    pub fn acquired(self) -> DocumentBuf {
        self.modes().iter().fold(DocumentBuf::new(), |acquired, (resource, mode)| {
            acquired.with(resource, &DocumentBuf::new().with("acquireCount", &DocumentBuf::new().with(mode, 1_i64)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_follow_from_the_command() {
        for (command, has_collection, locking) in [
            ("find", true, Locking::Read),
            ("insert", true, Locking::Write),
            ("bulkWrite", true, Locking::Write),
            ("createIndexes", true, Locking::Definition),
            ("collStats", true, Locking::Read),
            ("ping", false, Locking::None),
        ] {
            assert_eq!(Locking::of(command, has_collection), locking, "{command}");
        }
        assert_eq!(Locking::Read.held(), DocumentBuf::new().with("Global", "r"));
    }
}
