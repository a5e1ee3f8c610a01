//! `$changeStream`: returns changes as events once they are durable.
//!
//! A stream reads the log's history from its position on (`Feed` of `oplog`), and makes events of the entries that
//! concern it. A resume token (`token.rs`) names a time and an event: a resumed stream begins at that time and drops
//! the events up to the named one (`Reading::begin`). It fails with `ChangeStreamHistoryLost` if the log begins later.
//! A `getMore` that finds no event waits, without a thread, for a bell that rings for its collections (`Following` of
//! `store`). A stream that no client reads keeps nothing, and a server without streams pays nothing for streams.
//! Streams with the same options read the end of the log together (`tail.rs`).
//!
//! An update leaves its delta in the log as a note: update operators write it beside the document (`delta.rs` of
//! `update`), and for a pipeline both versions are compared (`delta.rs` of `catalog`). A collection with pre-images
//! leaves another note with the document before the change. Once readers see a record, its commit looks for followers
//! that the notes concern and asks for a sync, after which their bells ring (`followers.rs` of `store`). So a writer
//! pays only for streams that follow its own collection.
//!
//! The crate knows no command: it sees the command that opens a stream as a [`StreamContext`] and a [`StreamRequest`].
#![forbid(unsafe_code)]

mod delta;
mod event;
mod explain;
mod options;
mod reading;
mod source;
mod split;
mod stage;
mod tail;
mod target;
mod token;
mod token_key;

pub use explain::explain;
pub use reading::ImageExpiry;
pub use source::{StreamContext, StreamRequest, open};
pub use stage::{begins, may_open};
pub use tail::Tails;
