//! Where operations of a command are counted: its class in `opLatencies`, its kind in `top`, its counter in
//! `opcounters`.

/// The class of a command.
/// Source: MongoDB manual, "serverStatus", `opLatencies`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationClass {
    /// Commands that read documents.
    Read,
    /// Commands that change documents.
    Write,
    /// Anything else.
    Command,
}

impl OperationClass {
    /// Number of classes.
    pub const COUNT: usize = 3;

    /// Index into an array of [`Self::COUNT`] elements.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// The kinds of use that `top` lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageKind {
    /// Queries of every kind.
    Query,
    /// Further batches of cursors.
    GetMore,
    /// Inserts.
    Insert,
    /// Updates.
    Update,
    /// Deletes.
    Remove,
    /// All other commands.
    Command,
}

impl UsageKind {
    /// All kinds with their names in `top`, in its order.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Query, "queries"),
        (Self::GetMore, "getmore"),
        (Self::Insert, "insert"),
        (Self::Update, "update"),
        (Self::Remove, "remove"),
        (Self::Command, "commands"),
    ];

    /// The name as an opcode of the old protocol, which `currentOp` and the profiler show.
    pub fn opcode_name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::GetMore => "getmore",
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Remove => "remove",
            Self::Command => "command",
        }
    }
}

/// The counter of a command in `opcounters`.
/// Source: MongoDB manual 8.2, "serverStatus", `opcounters`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcounter {
    /// `query`.
    Query,
    /// `getmore`.
    GetMore,
    /// `insert`, `update` or `delete`, which the command counts for each of its statements.
    ByStatement,
    /// `command`.
    Command,
}
