//! The classes of commands for `opLatencies`, `top` and `globalLock`: reads, writes and the rest.

/// The class of a command.
/// Source: MongoDB manual, "serverStatus", `opLatencies`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationClass {
    /// It reads documents.
    Read,
    /// It changes documents.
    Write,
    /// Anything else.
    Command,
}

impl OperationClass {
    /// Number of classes.
    pub(crate) const COUNT: usize = 3;

    /// Index into an array of [`Self::COUNT`] elements.
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}
