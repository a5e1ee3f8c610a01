//! A command as it was received (the document and its sequences, its fields by name, the kind of value that each may
//! hold), and the facts about a command that its entry states. The crate knows nothing of how commands run.

pub mod client_metadata;
pub mod counted_as;
pub mod deployment;
pub mod encrypted_fields;
pub mod facts;
pub mod field_kinds;
pub mod fields;
pub mod generic_fields;
pub mod inner_pipelines;
pub mod internal_fields;
mod peer;
pub mod query_shape;
pub mod read_preference;
mod request;
pub mod secret_names;
pub mod stable_api;
pub mod statement;
pub mod truncated_command;
pub mod write_concern;

pub use field_kinds::{Field, Kind};
pub use fields::Fields;
pub use peer::Peer;
pub use request::Request;
