//! The difference between two sets of a collection's indexes.

use crate::building::IndexBuild;
use crate::collection::Collection;
use crate::{Index, IndexState, notes};
use bunko_bson::DocumentBuf;
use bunko_store::Batch;
use std::sync::Arc;

/// The difference between a new set of indexes and the previous one.
#[derive(Clone, Copy)]
pub(crate) enum Difference<'a> {
    /// The build of these indexes is complete, if no unique key occurs twice.
    Built(&'a [Arc<Index>], &'a IndexBuild),
    Created(&'a [Arc<Index>]),
    Dropped(&'a [Arc<Index>]),
    /// The first indexes are replaced by the second ones, which have the same specifications and no keys.
    Replaced(&'a [Arc<Index>], &'a [Arc<Index>]),
    /// One index has a new specification. The oplog gets this command, and the options before the change.
    Respecified(&'a DocumentBuf, &'a DocumentBuf),
}

impl Difference<'_> {
    /// Adds to the batch what changes beside the collection's record: the indexes' keyspaces, and the oplog's notes.
    pub(super) fn put(&self, collection: &Collection, batch: &mut Batch) {
        match *self {
            Self::Built(built, _) => {
                for command in notes::built_commands(collection, built) {
                    notes::put_command(batch, collection, &command);
                }
            }
            Self::Replaced(old, new) => {
                for index in old {
                    batch.drop_keyspace(index.keyspace);
                }
                for index in new {
                    collection.engine.create_keyspace(batch, index.keyspace);
                }
            }
            Self::Respecified(command, options_before) => {
                let told = notes::before_modification(collection, Some(options_before));
                notes::put_command_after(batch, collection, command, Some(&told));
            }
            Self::Created(created) => {
                for index in created {
                    collection.engine.create_keyspace(batch, index.keyspace);
                }
            }
            Self::Dropped(dropped) => {
                for index in dropped {
                    // A failed build was never in the oplog.
                    if index.state() == IndexState::Ready {
                        let command = DocumentBuf::new().with("dropIndexes", collection.namespace().collection());
                        let command = command.with("index", index.name.as_str());
                        notes::put_command_after(batch, collection, &command, Some(&index.document));
                    }
                    batch.drop_keyspace(index.keyspace);
                }
            }
        }
    }

    pub(super) fn completes(&self, index: &Arc<Index>) -> bool {
        matches!(self, Self::Built(built, _) if built.iter().any(|built| Arc::ptr_eq(built, index)))
    }
}
