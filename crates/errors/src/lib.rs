//! MongoDB's error codes, and the failure that every layer above the store returns.
//!
//! **Invariant:** an error that a user can see is a [`Failure`]: a code of MongoDB's, its name, and a message that
//! names the field and the value. Storage errors become failures in one place, `catalog`.
#![forbid(unsafe_code)]

mod code;
mod failure;

pub use code::ErrorCode;
pub use failure::Failure;

/// Result of an operation whose failure a user can see.
pub type Result<T, E = Failure> = std::result::Result<T, E>;
