//! An operation together with its interruption.

use super::interruption::Interruption;
use super::slot::RunningOperation;
use bunko_operation::OperationContext;
use std::sync::Arc;
use std::time::Instant;

/// An operation, and the flag that interrupts it.
#[derive(Clone)]
pub struct Context {
    interruption: Arc<Interruption>,
    operation: Arc<OperationContext>,
}

impl Context {
    /// The context of an operation that `interruption` interrupts.
    pub fn new(interruption: Arc<Interruption>, operation: Arc<OperationContext>) -> Self {
        Self { interruption, operation }
    }

    /// From now on, interrupts when another command must stop, whose time ends at the deadline.
    pub fn follow(&self, command: &RunningOperation, deadline: Option<Instant>) {
        self.interruption.follow(command, deadline);
    }

    /// The operation in which the work is counted.
    #[inline]
    pub fn operation(&self) -> &Arc<OperationContext> {
        &self.operation
    }

    /// Interrupts every command that works with this context, because its cursor was killed.
    pub fn note_killed_cursor(&self) {
        self.interruption.note_killed_cursor();
    }
}
