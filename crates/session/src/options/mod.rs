//! Options that any command may carry: concerns, time limits, and the session and transaction that it belongs to.

mod generic_options;
mod read_concern;

pub use generic_options::GenericOptions;
pub use read_concern::ReadConcern;
