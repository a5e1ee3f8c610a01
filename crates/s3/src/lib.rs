//! Objects in a bucket of S3, or of another server that speaks its protocol.
//!
//! ```text
//! Settings (variables, files) ─► Bucket: get, put, list, delete, Upload ─► attempts ─► signature ─► HTTP
//! ```
//! Requests are signed with the hash of their body (AWS Signature Version 4), so the server refuses bytes that were
//! changed on the way, over http too. Calls block.
//!
//! **Invariant:** an object that is being uploaded has no name before all of its bytes were acknowledged.
//! **Invariant:** no error and no `Debug` output has a secret.
#![forbid(unsafe_code)]

mod address;
mod answers;
mod attempts;
mod bucket;
mod credentials;
mod error;
mod settings;
mod signature;
mod transport;
mod upload;

pub use address::Address;
pub use bucket::{Bucket, Condition, Depth, Part, Stored};
pub use error::{Kind, S3Error};
pub use settings::{Patience, Settings};
pub use upload::Upload;

/// Result of a call.
pub type Result<T, E = S3Error> = std::result::Result<T, E>;
