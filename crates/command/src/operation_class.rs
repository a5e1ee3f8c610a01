//! Reads, writes and the rest: how `opLatencies`, `top` and `globalLock` tell commands apart.

/// The class of a command.
/// Source: MongoDB manual, "serverStatus", `opLatencies`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationClass {
    /// It looks at documents.
    Read,
    /// It changes documents.
    Write,
    /// Anything else.
    Command,
}

impl OperationClass {
    /// How many there are.
    pub(crate) const COUNT: usize = 3;

    /// The class of the command with that name.
    pub(crate) fn of(command: &str) -> Self {
        match command {
            "find" | "getMore" | "aggregate" | "count" | "distinct" => Self::Read,
            "insert" | "update" | "delete" | "findAndModify" | "bulkWrite" | "bunkoBulkInsert" => Self::Write,
            _ => Self::Command,
        }
    }

    /// A place in an array of [`Self::COUNT`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}
