//! Access to an operation that may not exist yet.

use crate::context::{OperationContext, UnitOfWork};

/// A source of the operation that is created on demand. Most writes end without a check and never create it.
pub trait OperationSource {
    /// The operation, created by the first call.
    fn operation(&self) -> &OperationContext;

    /// The unit of work that the operation's writes belong to; `None` if they belong to none.
    fn unit(&self) -> Option<&UnitOfWork> {
        self.operation().unit()
    }

    /// Whether the operation must not write to databases of users. Most writes ask for nothing else.
    fn is_kept_from_writing(&self) -> bool {
        self.operation().is_kept_from_writing()
    }
}

impl OperationSource for OperationContext {
    fn operation(&self) -> &OperationContext {
        self
    }
}
