//! What is running, for `currentOp` and `killOp`.

/// The running operations.
#[derive(Debug, Default)]
pub struct Operations {}
