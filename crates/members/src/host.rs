//! The server around a member.

use bunko_bson::DocumentBuf;
use bunko_errors::Result;
use bunko_replica::Term;

/// The server around the member.
pub trait Host: Send + Sync {
    /// Makes the server the primary of a term, and begins what a primary writes uninvited.
    /// # Errors
    /// Failures of the storage; the member is a secondary then.
    fn step_up(&self, term: Term) -> Result<()>;
    /// Makes the primary a secondary, unless it is one.
    fn step_down(&self);
    /// Writes the set's configuration to `local.system.replset`.
    /// # Errors
    /// Failures of the write.
    fn note_configuration(&self) -> Result<()>;
    /// Whether the files must not change now, because an administrator copies them (`fsyncLock`).
    fn are_files_held(&self) -> bool;
    /// Ends the process, and starts it again.
    fn restart(&self);
    /// The server's state, as other members are told it.
    fn status(&self) -> DocumentBuf;
}
